/* SPDX-License-Identifier: MIT */
#include "core/base/utf8.h"

#include <string.h>

size_t utf8_decode(const char *text, size_t len, unsigned *code) {
  static const unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)text[0];
  size_t size = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || size > len)
    return 0;
  unsigned value = size == 1 ? first : first & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) {
    unsigned char next = (unsigned char)text[i];
    if ((next & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (next & 0x3f);
  }
  /* Overlong forms, surrogates and what lies beyond Unicode are no characters (RFC 3629, section 3). */
  if (value < smallest[size] || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff)
    return 0;
  *code = value;
  return size;
}

size_t utf8_whole(const char *text, size_t len) {
  static const unsigned char leads[] = {0xc0, 0xe0, 0xf0}; /* of characters of two, three and four bytes */
  for (size_t back = 1; back <= 3 && back <= len; back++) {
    unsigned char byte = (unsigned char)text[len - back];
    if (byte >= leads[back - 1])
      return len - back;
    if ((byte & 0xc0) != 0x80)
      return len;
  }
  return len;
}

bool utf8_is_unsafe(unsigned code) {
  bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  bool separator = code == 0x2028 || code == 0x2029;
  bool direction = code == 0x061c || (code >= 0x200e && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                   (code >= 0x2066 && code <= 0x2069);
  bool unseen = code == 0xad || code == 0x34f || code == 0x115f || code == 0x1160 || code == 0x180e ||
                (code >= 0x200b && code <= 0x200d) || (code >= 0x2060 && code <= 0x2064) ||
                (code >= 0x206a && code <= 0x206f) || code == 0x3164 || code == 0xfeff || code == 0xffa0 ||
                (code >= 0xfff9 && code <= 0xfffb);
  return control || separator || direction || unseen;
}

void utf8_make_printable(char *text, const char *kept) {
  size_t size, len = strlen(text);
  for (size_t i = 0; i < len; i += size ? size : 1) {
    unsigned code = 0;
    size = utf8_decode(text + i, len - i, &code);
    if (size == 0 || (utf8_is_unsafe(code) && !strchr(kept, text[i])))
      memset(text + i, '?', size ? size : 1);
  }
}
