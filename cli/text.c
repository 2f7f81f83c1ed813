/* SPDX-License-Identifier: MIT */
#include "cli/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

bool text_is_utf8(const char *text, size_t len) {
  unsigned code;
  for (size_t i = 0, size; i < len; i += size) {
    size = utf8_decode(text + i, len - i, &code);
    if (size == 0 || code == 0)
      return false;
  }
  return true;
}

const char *text_name_prefix(const char *message_id) {
  static const char row[] = "id:", message[] = "message_id:";
  bool odd = *message_id == '-' || strncmp(message_id, row, sizeof row - 1) == 0 ||
             strncmp(message_id, message, sizeof message - 1) == 0;
  return odd ? message : "";
}

/* Characters that a terminal obeys instead of showing them. */
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
    size_t size = utf8_decode(text + i, len - i, &code);
    bool kept_line = lines == TEXT_KEEP_LINES && size == 1 && (code == '\n' || code == '\t');
    if (size == 0) {
      used += (size_t)sprintf(out + used, "\\x%02x", (unsigned char)text[i]);
      size = 1;
    } else if (!kept_line && utf8_is_unsafe(code)) {
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
