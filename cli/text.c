/* SPDX-License-Identifier: MIT */
#include "cli/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t text_decode(const char *text, size_t len, unsigned *code) {
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

bool text_is_utf8(const char *text, size_t len) {
  unsigned code;
  for (size_t i = 0, size; i < len; i += size) {
    size = text_decode(text + i, len - i, &code);
    if (size == 0 || code == 0)
      return false;
  }
  return true;
}

size_t text_whole(const char *text, size_t len) {
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

/* Characters that a terminal obeys instead of showing them. */
static bool is_control(unsigned code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

/* Line and paragraph separators and the bidirectional marks: they reorder what stands around them. */
static bool is_reordering(unsigned code) {
  return (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x061c || code == 0xfeff;
}

static size_t write_escaped(char *out, unsigned code) {
  if (code == '\n')
    return (size_t)sprintf(out, "\\n");
  if (code == '\t')
    return (size_t)sprintf(out, "\\t");
  if (code == '\r')
    return (size_t)sprintf(out, "\\r");
  return (size_t)sprintf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
}

char *text_safe(const char *text, size_t len, enum text_lines lines) {
  char *out = malloc(len * 4 + 1); /* the longest escape of one byte is \xNN; \uNNNN comes from three bytes */
  if (!out)
    return NULL;
  size_t used = 0;
  for (size_t i = 0; i < len;) {
    unsigned code;
    size_t size = text_decode(text + i, len - i, &code);
    bool kept_line = lines == TEXT_KEEP_LINES && size == 1 && (code == '\n' || code == '\t');
    if (size == 0) {
      used += (size_t)sprintf(out + used, "\\x%02x", (unsigned char)text[i]);
      size = 1;
    } else if (!kept_line && (is_control(code) || is_reordering(code))) {
      used += write_escaped(out + used, code);
    } else {
      memcpy(out + used, text + i, size);
      used += size;
    }
    i += size;
  }
  out[used] = '\0';
  return out;
}
