/* SPDX-License-Identifier: MIT */
#include "core/json_salvage.h"

#include <string.h>

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_quote(char c) { return c == '"' || c == '\''; }

static void skip_space(struct json_salvage *s) {
  while (s->at < s->end && is_space(*s->at))
    s->at++;
}

static bool take(struct json_salvage *s, char c) {
  skip_space(s);
  if (s->at == s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

/* Whether a string ends with the quote before `s`: who forgets to escape quotes has some in the middle of texts. */
static bool ends_here(struct json_salvage s, bool value) {
  const char *behind = s.at;
  skip_space(&s);
  if (s.at == s.end || *s.at == ',' || *s.at == '}' || *s.at == ']')
    return true;
  return value ? s.at > behind && is_quote(*s.at) : *s.at == ':'; /* the next name, where the comma is missing */
}

/* Takes the string that begins here, a value or what may be a name; false, at the end, when it is not closed. */
static bool take_string(struct json_salvage *s, bool is_value, struct duebox_bytes *out) {
  char quote = *s->at++;
  const char *from = s->at;
  for (; s->at < s->end; s->at++) {
    if (*s->at == '\\') {
      if (++s->at == s->end)
        return false;
    } else if (*s->at == quote && ends_here((struct json_salvage){s->at + 1, s->end}, is_value)) {
      *out = (struct duebox_bytes){.data = from, .len = (size_t)(s->at++ - from)};
      return true;
    }
  }
  return false;
}

/* Skips an array or object, by counting brackets outside of strings. A single quote opens a string only where a value
 * may begin, for elsewhere it is an apostrophe. */
static void skip_container(struct json_salvage *s) {
  struct duebox_bytes ignored;
  size_t depth = 0;
  char last = ':';
  while (s->at < s->end) {
    char c = *s->at;
    if (c == '"' || (c == '\'' && strchr("{[,:", last))) {
      if (!take_string(s, last == ':', &ignored))
        return;
      last = c;
      continue;
    }
    s->at++;
    if (c == '{' || c == '[')
      depth++;
    else if ((c == '}' || c == ']') && --depth == 0)
      return;
    if (!is_space(c))
      last = c;
  }
}

static bool take_value(struct json_salvage *s, struct duebox_bytes *value, bool *text) {
  skip_space(s);
  const char *from = s->at;
  *text = s->at < s->end && is_quote(*s->at);
  if (*text)
    return take_string(s, true, value);
  if (s->at < s->end && (*s->at == '{' || *s->at == '['))
    skip_container(s);
  else
    while (s->at < s->end && *s->at != ',' && *s->at != '}' && !is_space(*s->at))
      s->at++;
  *value = (struct duebox_bytes){.data = from, .len = (size_t)(s->at - from)};
  return true;
}

bool json_salvage_start(struct json_salvage *s, const char *text, size_t len) {
  static const char mark[] = "\xef\xbb\xbf"; /* what some editors and libraries put before UTF-8 */
  *s = (struct json_salvage){.at = text, .end = text + len};
  if (len >= 3 && memcmp(text, mark, 3) == 0)
    s->at += 3;
  return take(s, '{');
}

bool json_salvage_ended(struct json_salvage *s) {
  bool closed = take(s, '}');
  skip_space(s);
  return closed ? s->at == s->end : true;
}

bool json_salvage_next(struct json_salvage *s, struct duebox_bytes *key, struct duebox_bytes *value, bool *text) {
  while (s->at < s->end && *s->at != '}') {
    if (!is_quote(*s->at)) {
      s->at++; /* a comma, or rubbish */
      continue;
    }
    if (!take_string(s, false, key))
      return false;
    if (take(s, ':'))
      return take_value(s, value, text);
  }
  return false;
}
