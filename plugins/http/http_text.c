/* SPDX-License-Identifier: MIT */
#include "http_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Length of the UTF-8 character at p (RFC 3629 section 4: no overlong form, no surrogate, at most U+10FFFF), or 0. */
static size_t utf8_len(const unsigned char *p, size_t left) {
  size_t len = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : 4;
  if ((p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4 || len > left)
    return 0;
  for (size_t i = 1; i < len; i++)
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
  bool outside = (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf4 && p[1] >= 0x90);
  return overlong || outside ? 0 : len;
}

static bool is_control(const unsigned char *p, size_t len) {
  return (len == 1 && (p[0] <= ' ' || p[0] == 0x7f)) || (len == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

size_t http_text_clean(char *out, size_t cap, const char *text, size_t len) {
  const unsigned char *p = (const unsigned char *)text, *end = p + len;
  size_t used = 0;
  bool blank = true; /* none at the beginning */
  while (p < end) {
    size_t step = utf8_len(p, (size_t)(end - p));
    bool control = step > 0 && is_control(p, step);
    const void *from = control ? " " : step ? (const void *)p : "?";
    size_t put = control || step == 0 ? 1 : step;
    if (!control || !blank) {
      if (used + put >= cap)
        break;
      memcpy(out + used, from, put);
      used += put;
    }
    blank = control;
    p += step ? step : 1;
  }
  while (used > 0 && out[used - 1] == ' ')
    used--;
  out[used] = '\0';
  return used;
}
