/* SPDX-License-Identifier: MIT */
#include "core/json_salvage.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_quote(char c) { return c == '"' || c == '\''; }
static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
/* Of what stands without quotes: numbers, true, NaN .. */
static bool is_bare(char c) { return is_word(c) || c == '+' || c == '-' || c == '.'; }

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

/* Takes the string that begins here, a value or what may be a name; false, at the end, when it is not closed. With a
 * quote in it that is none of its ends, where it ends is a guess. */
static bool take_string(struct json_salvage *s, bool is_value, struct duebox_bytes *out) {
  char quote = *s->at++;
  const char *from = s->at;
  for (; s->at < s->end; s->at++) {
    if (*s->at == '\\') {
      if (++s->at == s->end)
        return false;
    } else if (*s->at == quote && ends_here((struct json_salvage){.at = s->at + 1, .end = s->end}, is_value)) {
      *out = (struct duebox_bytes){.data = from, .len = (size_t)(s->at++ - from)};
      return true;
    } else if (*s->at == quote) {
      s->unsure = true;
    }
  }
  s->unsure = true;
  return false;
}

/* Skips an array or object, by counting brackets outside of strings. A single quote opens a string only where a value
 * may begin, for elsewhere it is an apostrophe. */
static void skip_container(struct json_salvage *s) {
  struct duebox_bytes ignored;
  uint64_t objects = 0; /* bits, the innermost one lowest: which of the open brackets are braces */
  size_t depth = 0;
  char last = ':';
  while (s->at < s->end) {
    char c = *s->at;
    bool may_begin = strchr("{[,:", last) != NULL;
    if (c == '"' || (c == '\'' && may_begin)) {
      s->unsure |= !may_begin;
      if (!take_string(s, last == ':', &ignored))
        return;
      last = c;
      continue;
    }
    s->at++;
    if (c == '{' || c == '[') {
      depth++;
      s->unsure |= !may_begin || depth > 64;
      objects = objects << 1 | (c == '{');
    } else if (c == '}' || c == ']') {
      s->unsure |= (objects & 1) != (c == '}');
      objects >>= 1;
      if (--depth == 0)
        return;
    } else {
      s->unsure |= !is_space(c) && !is_bare(c) && c != ',' && c != ':';
    }
    if (!is_space(c))
      last = c;
  }
  s->unsure = true;
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
    for (; s->at < s->end && *s->at != ',' && *s->at != '}' && !is_space(*s->at); s->at++)
      s->unsure |= !is_bare(*s->at);
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
      s->unsure |= *s->at != ',' && !is_space(*s->at);
      s->at++; /* a comma, or rubbish */
      continue;
    }
    if (!take_string(s, false, key))
      return false;
    if (take(s, ':'))
      return take_value(s, value, text);
    s->unsure = true;
  }
  return false;
}

static bool is_quoting(char c) { return is_quote(c) || c == '\\'; } /* a quote within a string has a backslash */

static const char *skip(const char *at, const char *end, bool (*what)(char c)) {
  while (at < end && what(*at))
    at++;
  return at;
}

static bool begins_with(const char *at, const char *end, const char *word) {
  size_t len = strlen(word);
  return (size_t)(end - at) >= len && memcmp(at, word, len) == 0 &&
         (at + len == end || is_space(at[len]) || is_quoting(at[len]) || strchr(",}]", at[len]));
}

bool json_salvage_other(const char *text, size_t len, const char *name, const char *value) {
  const char *end = text + len;
  size_t name_len = strlen(name);
  for (const char *at = text; (size_t)(end - at) > name_len; at++) {
    if (strncasecmp(at, name, name_len) != 0 || (at > text && is_word(at[-1])))
      continue;
    const char *behind = skip(skip(at + name_len, end, is_quoting), end, is_space);
    if (behind == end || *behind != ':')
      continue;
    behind = skip(skip(behind + 1, end, is_space), end, is_quoting);
    if (!begins_with(behind, end, value) && !begins_with(behind, end, "null"))
      return true;
  }
  return false;
}
