/* SPDX-License-Identifier: MIT */
#include "core/json_scan.h"

#include <string.h>

static bool problem(struct json_scan *s, const char *text) {
  if (!s->problem)
    s->problem = text;
  return false;
}

struct json_scan json_scan_start(const char *text, size_t len) {
  return (struct json_scan){.start = text, .at = text, .end = text + len};
}

static void skip_space(struct json_scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
    s->at++;
}

/* Takes c when it is next, after white space. */
static bool take(struct json_scan *s, char c) {
  skip_space(s);
  if (s->at == s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

static bool is_digit(const struct json_scan *s) { return s->at < s->end && *s->at >= '0' && *s->at <= '9'; }

enum json_scan_type json_scan_peek(struct json_scan *s) {
  skip_space(s);
  if (s->problem || s->at == s->end)
    return SCAN_NOTHING;
  switch (*s->at) {
  case '{':
    return SCAN_OBJECT;
  case '[':
    return SCAN_ARRAY;
  case '"':
    return SCAN_STRING;
  case 't':
  case 'f':
    return SCAN_BOOL;
  case 'n':
    return SCAN_NULL;
  default:
    return *s->at == '-' || is_digit(s) ? SCAN_NUMBER : SCAN_NOTHING;
  }
}

bool json_scan_enter(struct json_scan *s) { return take(s, '{') || problem(s, "an object { } is wanted"); }

bool json_scan_key(struct json_scan *s, bool *first, char *key, size_t *len) {
  bool was_first = *first;
  *first = false;
  if (s->problem || take(s, '}'))
    return false;
  if (!was_first && !take(s, ','))
    return problem(s, "a comma or the end of the object is wanted");
  if (json_scan_peek(s) != SCAN_STRING)
    return problem(s, "a key in double quotes is wanted");
  return json_scan_string(s, key, len) && (take(s, ':') || problem(s, "a colon is wanted after a key"));
}

/* Table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t utf8_length(const char *text, const char *end) {
  const unsigned char *p = (const unsigned char *)text;
  size_t left = (size_t)(end - text), n;
  unsigned char low = 0x80, high = 0xBF;
  if (left == 0)
    return 0;
  if (p[0] < 0x80)
    return 1;
  if (p[0] >= 0xC2 && p[0] <= 0xDF)
    n = 2;
  else if (p[0] >= 0xE0 && p[0] <= 0xEF)
    n = 3;
  else if (p[0] >= 0xF0 && p[0] <= 0xF4)
    n = 4;
  else
    return 0;
  if (p[0] == 0xE0)
    low = 0xA0;
  else if (p[0] == 0xED)
    high = 0x9F;
  else if (p[0] == 0xF0)
    low = 0x90;
  else if (p[0] == 0xF4)
    high = 0x8F;
  if (left < n || p[1] < low || p[1] > high)
    return 0;
  for (size_t i = 2; i < n; i++)
    if (p[i] < 0x80 || p[i] > 0xBF)
      return 0;
  return n;
}

static bool take_hex4(struct json_scan *s, unsigned *value) {
  *value = 0;
  for (int i = 0; i < 4; i++, s->at++) {
    char c = s->at < s->end ? *s->at : '\0';
    unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                            : 16;
    if (digit == 16)
      return problem(s, "\\u needs four hexadecimal digits");
    *value = *value * 16 + digit;
  }
  return true;
}

/* Takes what follows "\u" and gives the code point. */
static bool take_unicode(struct json_scan *s, unsigned *code) {
  unsigned low;
  if (!take_hex4(s, code))
    return false;
  if (*code == 0)
    return problem(s, "a NUL character (\\u0000) is not allowed");
  if (*code >= 0xDC00 && *code <= 0xDFFF)
    return problem(s, "half of a surrogate pair");
  if (*code < 0xD800 || *code > 0xDBFF)
    return true;
  if (s->end - s->at < 6 || s->at[0] != '\\' || s->at[1] != 'u')
    return problem(s, "half of a surrogate pair");
  s->at += 2;
  if (!take_hex4(s, &low))
    return false;
  if (low < 0xDC00 || low > 0xDFFF)
    return problem(s, "half of a surrogate pair");
  *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
  return true;
}

static size_t put_utf8(unsigned code, char *out) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    out[0] = (char)(0xC0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3F));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = (char)(0xE0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3F));
    out[2] = (char)(0x80 | (code & 0x3F));
    return 3;
  }
  out[0] = (char)(0xF0 | code >> 18);
  out[1] = (char)(0x80 | (code >> 12 & 0x3F));
  out[2] = (char)(0x80 | (code >> 6 & 0x3F));
  out[3] = (char)(0x80 | (code & 0x3F));
  return 4;
}

/* Takes an escape behind its backslash; writes 1 to 4 bytes. */
static bool take_escape(struct json_scan *s, char out[4], size_t *n) {
  static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  char c = s->at < s->end ? *s->at++ : '\0';
  unsigned code;
  if (c == 'u') {
    if (!take_unicode(s, &code))
      return false;
    *n = put_utf8(code, out);
    return true;
  }
  const char *letter = c ? strchr(letters, c) : NULL;
  if (!letter)
    return problem(s, "unknown escape in a string");
  out[0] = meanings[letter - letters];
  *n = 1;
  return true;
}

/* Length of what needs no look: ASCII that is neither the end nor an escape. Most strings are one such run. */
static size_t plain_run(const struct json_scan *s) {
  const char *p = s->at;
  while (p < s->end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' && *p != '\\')
    p++;
  return (size_t)(p - s->at);
}

/* Takes the next piece of a string: a run, one UTF-8 sequence or one escape. */
static bool take_piece(struct json_scan *s, char escaped[4], const char **piece, size_t *n) {
  *piece = s->at;
  *n = plain_run(s);
  if (*n == 0 && s->at < s->end && *s->at == '\\') {
    s->at++;
    *piece = escaped;
    return take_escape(s, escaped, n);
  }
  if (*n == 0) {
    if ((unsigned char)*s->at < 0x20)
      return problem(s, "a control character stands in a string; write it as \\u00XX");
    *n = utf8_length(s->at, s->end);
    if (*n == 0)
      return problem(s, "a string is not valid UTF-8");
  }
  s->at += *n;
  return true;
}

bool json_scan_string(struct json_scan *s, char *out, size_t *len) {
  size_t used = 0, n;
  char escaped[4];
  const char *piece;
  if (!take(s, '"'))
    return problem(s, "a string in double quotes is wanted");
  while (s->at < s->end && *s->at != '"') {
    if (!take_piece(s, escaped, &piece, &n))
      return false;
    if (out)
      memcpy(out + used, piece, n);
    used += n;
  }
  if (s->at == s->end)
    return problem(s, "a string is not closed");
  s->at++;
  if (out)
    out[used] = '\0';
  if (len)
    *len = used;
  return true;
}

/* RFC 8259 section 6; whole says that it has neither fraction nor exponent. */
static bool take_number(struct json_scan *s, struct duebox_bytes *span, bool *whole) {
  if (json_scan_peek(s) != SCAN_NUMBER)
    return problem(s, "a number is wanted");
  const char *from = s->at;
  *whole = true;
  s->at += *s->at == '-';
  if (!is_digit(s))
    return problem(s, "a number needs a digit");
  bool zero = *s->at == '0';
  while (is_digit(s))
    s->at++;
  if (zero && s->at - from > 1 + (*from == '-'))
    return problem(s, "a number begins with a needless zero");
  if (s->at < s->end && *s->at == '.') {
    *whole = false;
    s->at++;
    if (!is_digit(s))
      return problem(s, "a number needs a digit behind its point");
    while (is_digit(s))
      s->at++;
  }
  if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
    *whole = false;
    s->at++;
    if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
      s->at++;
    if (!is_digit(s))
      return problem(s, "a number needs a digit in its exponent");
    while (is_digit(s))
      s->at++;
  }
  *span = (struct duebox_bytes){.data = from, .len = (size_t)(s->at - from)};
  return true;
}

bool json_scan_int(struct json_scan *s, int64_t *value) {
  struct duebox_bytes span;
  bool whole;
  if (!take_number(s, &span, &whole))
    return false;
  if (!whole)
    return problem(s, "a whole number is wanted");
  bool negative = span.data[0] == '-';
  *value = 0;
  for (size_t i = negative; i < span.len; i++) {
    int digit = span.data[i] - '0';
    if (__builtin_mul_overflow(*value, 10, value) || __builtin_sub_overflow(*value, digit, value))
      return problem(s, "a number is too large");
  }
  if (!negative && *value == INT64_MIN)
    return problem(s, "a number is too large");
  if (!negative)
    *value = -*value;
  return true;
}

/* strtod() would ask the locale for the decimal point. */
bool json_scan_double(struct json_scan *s, double *value) {
  struct duebox_bytes span;
  bool whole, point = false, negative_exponent = false;
  int64_t mantissa = 0;
  int scale = 0, exponent = 0;
  if (!take_number(s, &span, &whole))
    return false;
  size_t i = span.data[0] == '-';
  for (; i < span.len && span.data[i] != 'e' && span.data[i] != 'E'; i++) {
    if (span.data[i] == '.') {
      point = true;
    } else if (mantissa < INT64_C(100000000000000000)) {
      mantissa = mantissa * 10 + (span.data[i] - '0');
      scale -= point;
    } else {
      scale += !point; /* digits that no double can hold */
    }
  }
  for (i++; i < span.len; i++) {
    if (span.data[i] == '-')
      negative_exponent = true;
    else if (span.data[i] != '+' && exponent < 10000)
      exponent = exponent * 10 + (span.data[i] - '0');
  }
  scale += negative_exponent ? -exponent : exponent;
  *value = (double)mantissa;
  for (; scale > 0 && *value != 0 && *value < 1e300; scale--)
    *value *= 10;
  double divisor = 1;
  for (; scale < 0 && *value != 0; scale++) {
    divisor *= 10;
    if (divisor >= 1e22 || scale == -1) {
      *value /= divisor;
      divisor = 1;
    }
  }
  if (span.data[0] == '-')
    *value = -*value;
  return true;
}

static bool take_word(struct json_scan *s, const char *word) {
  size_t n = strlen(word);
  if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
    return problem(s, "a value is wanted");
  s->at += n;
  return true;
}

static bool skip_value(struct json_scan *s, int depth);

static bool skip_container(struct json_scan *s, int depth, bool object) {
  bool first = true;
  if (depth == JSON_SCAN_DEPTH)
    return problem(s, "it is nested too deeply");
  s->at++;
  if (object) {
    while (json_scan_key(s, &first, NULL, NULL))
      if (!skip_value(s, depth + 1))
        return false;
    return !s->problem;
  }
  for (; !take(s, ']'); first = false) {
    if (!first && !take(s, ','))
      return problem(s, "a comma or the end of the array is wanted");
    if (!skip_value(s, depth + 1))
      return false;
  }
  return true;
}

static bool skip_value(struct json_scan *s, int depth) {
  struct duebox_bytes ignored;
  bool whole;
  switch (json_scan_peek(s)) {
  case SCAN_OBJECT:
    return skip_container(s, depth, true);
  case SCAN_ARRAY:
    return skip_container(s, depth, false);
  case SCAN_STRING:
    return json_scan_string(s, NULL, NULL);
  case SCAN_NUMBER:
    return take_number(s, &ignored, &whole);
  case SCAN_BOOL:
    return take_word(s, *s->at == 't' ? "true" : "false");
  case SCAN_NULL:
    return take_word(s, "null");
  case SCAN_NOTHING:
    break;
  }
  return problem(s, "a value is wanted");
}

bool json_scan_value(struct json_scan *s, struct duebox_bytes *span) {
  skip_space(s);
  const char *from = s->at;
  if (!skip_value(s, 0))
    return false;
  if (span)
    *span = (struct duebox_bytes){.data = from, .len = (size_t)(s->at - from)};
  return true;
}

bool json_scan_end(struct json_scan *s) {
  skip_space(s);
  return !s->problem && (s->at == s->end || problem(s, "something follows behind the end"));
}
