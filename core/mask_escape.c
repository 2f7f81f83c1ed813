/* SPDX-License-Identifier: MIT */
#include "core/mask_escape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/utf8.h"

enum { BACKSLASHES_MAX = 15, GAP_MAX = 64 };

static int nibble(char c) {
  if (!isxdigit((unsigned char)c))
    return -1;
  return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

bool mask_hex_escape(const char *p) { return (*p == '%' || *p == '=') && mask_hex_byte(p + 1) >= 0; }

int mask_hex_byte(const char *p) {
  int high = nibble(p[0]), low = high < 0 ? -1 : nibble(p[1]);
  return low < 0 ? -1 : high * 16 + low;
}

static bool read_unit(const char *p, unsigned *unit) {
  int high = mask_hex_byte(p), low = high < 0 ? -1 : mask_hex_byte(p + 2);
  *unit = low < 0 ? 0 : (unsigned)(high * 256 + low);
  return low >= 0;
}

/* A number that ends with that sign; 0 = it is none. */
static size_t read_number(const char *p, const char *digits, int base, char sign, unsigned *code) {
  char *end;
  if (!isxdigit((unsigned char)*digits))
    return 0;
  *code = (unsigned)strtoul(digits, &end, base);
  return *end == sign ? (size_t)(end + 1 - p) : 0;
}

static size_t read_octal(const char *p, size_t backslashes, unsigned *code) {
  enum { DIGITS = 3 };
  const char *digits = p + backslashes;
  if (digits[0] > '3' || strspn(digits, "01234567") < DIGITS)
    return 0;
  *code = (unsigned)(digits[0] - '0') * 64 + (unsigned)(digits[1] - '0') * 8 + (unsigned)(digits[2] - '0');
  return backslashes + DIGITS;
}

size_t mask_numbered(const char *p, size_t backslashes, unsigned *code) {
  size_t len = backslashes + 5;
  unsigned low;
  if (strncmp(p, "&#", 2) == 0) {
    bool hex = p[2] == 'x' || p[2] == 'X';
    return read_number(p, p + (hex ? 3 : 2), hex ? 16 : 10, ';', code);
  }
  if (backslashes > 0 && strncmp(p + backslashes, "u{", 2) == 0)
    return read_number(p, p + backslashes + 2, 16, '}', code);
  if (backslashes > 0 && p[backslashes] != 'u')
    return read_octal(p, backslashes, code);
  if (backslashes == 0 || !read_unit(p + backslashes + 1, code))
    return 0;
  if (*code >> 10 != 0xd800 >> 10 || strncmp(p + len, p, backslashes + 1) != 0 || !read_unit(p + 2 * len - 4, &low))
    return len;
  *code = 0x10000 + ((*code & 0x3ff) << 10 | (low & 0x3ff));
  return 2 * len;
}

size_t mask_named(const char *p, size_t backslashes, unsigned *code) {
  static const struct {
    const char *name;
    char is;
  } names[] = {{"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&lt;", '<'}, {"&gt;", '>'}};
  static const char letters[] = "abtnvfr"; /* from 7 on */
  for (size_t i = 0; *p == '&' && i < sizeof names / sizeof *names; i++) {
    *code = (unsigned char)names[i].is;
    if (strncmp(p, names[i].name, strlen(names[i].name)) == 0)
      return strlen(names[i].name);
  }
  const char *letter = backslashes && p[backslashes] ? strchr(letters, p[backslashes]) : NULL;
  *code = letter ? 7 + (unsigned)(letter - letters) : 0;
  return letter ? backslashes + 1 : 0;
}

size_t mask_backslashes(const char *p) {
  size_t n = 0;
  while (n < BACKSLASHES_MAX && p[n] == '\\')
    n++;
  return n;
}

/* How many bytes at p are a character that breaks a word, however it is escaped: a blank, a control character, one that
 * cannot be seen, or the question mark that utf8_make_printable() has put there. */
static size_t breaks_word(const char *p) {
  size_t n = mask_backslashes(p), len = n + 3;
  int byte = mask_hex_escape(p) ? mask_hex_byte(p + 1) : n > 0 && p[n] == 'x' ? mask_hex_byte(p + n + 1) : -1;
  unsigned code = (unsigned)byte;
  if (byte < 0 && (len = mask_numbered(p, n, &code)) == 0 && (len = mask_named(p, n, &code)) == 0)
    len = utf8_decode(p, strnlen(p, 4), &code);
  return *p && len > 0 && (code == ' ' || code == '?' || utf8_is_unsafe(code)) ? len : 0;
}

/* The same with the sign in front by which quoted-printable says that a line goes on. */
static size_t gap_step(const char *p) {
  size_t sign = *p == '=' ? 1 : 0, step = breaks_word(p + sign);
  return step > 0 ? sign + step : 0;
}

size_t mask_gap(const char *p) {
  size_t len = 0;
  for (size_t step; len < GAP_MAX && (step = gap_step(p + len)) > 0;)
    len += step;
  return len;
}

size_t mask_hex_gap(const char *p) {
  size_t len = 0;
  for (size_t step; len < GAP_MAX && p[len] && (step = strchr(":,-.;", p[len]) ? 1 : gap_step(p + len)) > 0;)
    len += step;
  size_t n = mask_backslashes(p + len);
  if (n > 0 && p[len + n] == 'x')
    return len + n + 1;
  return len + (p[len] == '0' && (p[len + 1] == 'x' || p[len + 1] == 'X') ? 2 : 0);
}

size_t mask_soft_break(const char *p) { return *p == '=' ? mask_gap(p) : 0; }
