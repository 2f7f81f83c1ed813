/* SPDX-License-Identifier: MIT */
#include "core/json_salvage.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_quote(char c) { return c == '"' || c == '\''; }
/* Of what stands without quotes: numbers, true, NaN .. */
static bool is_bare(char c) { return isalnum((unsigned char)c) || c == '_' || c == '+' || c == '-' || c == '.'; }
static bool is_one_of(char c, const char *set) { return c && strchr(set, c); }

#define QUOTING "\"'\\" /* a quote within a string has a backslash */

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

static void doubt(struct json_salvage *s, const char *from) {
  if (!s->doubt || from < s->doubt)
    s->doubt = from;
}

/* Whether a string ends with the quote before `s`: who forgets to escape quotes has some in the middle of texts. */
static bool ends_here(struct json_salvage s, bool value) {
  const char *behind = s.at;
  skip_space(&s);
  if (s.at == s.end || is_one_of(*s.at, ",}]"))
    return true;
  return value ? s.at > behind && is_quote(*s.at) : *s.at == ':'; /* the next name, where the comma is missing */
}

/* Takes the string that begins here, a value or what may be a name; false, at the end, when it is not closed. With a
 * quote in it that is none of its ends, where it ends is a guess, and all is in doubt from its member's name on. So it
 * is where a string in single quotes may be members in double quotes that a stray quote has swallowed: JSON within a
 * string has as many brackets that open as that close. */
static bool take_string(struct json_salvage *s, bool is_value, const char *name, struct duebox_bytes *out) {
  const char *quote = s->at++;
  int open = 0; /* brackets */
  bool quoted = false, members = false;
  for (; s->at < s->end; s->at++) {
    open += is_one_of(*s->at, "{[") - is_one_of(*s->at, "}]");
    if (*s->at == '\\' && s->at + 1 < s->end) {
      s->at++;
    } else if (*s->at == *quote && ends_here((struct json_salvage){.at = s->at + 1, .end = s->end}, is_value)) {
      if (members && open != 0)
        doubt(s, name);
      s->mixed |= quoted && open > 0; /* JSON within a string: its other members follow */
      *out = (struct duebox_bytes){.data = quote + 1, .len = (size_t)(s->at++ - quote - 1)};
      return true;
    } else if (*s->at == *quote) {
      quoted = true;
      doubt(s, name);
    } else {
      members |= *s->at == '"';
    }
  }
  return false;
}

/* Skips an array or object. What may not stand where it does leaves in doubt which brackets are meant. */
static void skip_container(struct json_salvage *s, const char *member) {
  enum { NAME = 'n', VALUE = 'v', BARE = '0' }; /* beside the signs themselves: what stands before the next byte */
  struct duebox_bytes ignored;
  const char *name = member;
  uint64_t objects = 0; /* bits, the innermost one lowest: which of the open brackets are braces */
  size_t depth = 0;
  char last = ':';
  do {
    char c = *s->at;
    bool in_object = objects & 1;
    bool name_next = in_object && is_one_of(last, "{,"),
         value_next = last == ':' || (!in_object && is_one_of(last, "[,"));
    bool sound = name_next || value_next;
    if (c == '"' || (c == '\'' && sound)) { /* elsewhere that is an apostrophe */
      const char *from = s->at;
      if (last != ':')
        name = from;
      if (!sound)
        doubt(s, name);
      if (!take_string(s, !name_next, name, &ignored))
        return doubt(s, from);
      last = name_next ? NAME : VALUE;
      continue;
    }
    s->at++;
    if (is_space(c))
      continue;
    if (c == '{' || c == '[') {
      sound = value_next && depth < 64;
      objects = objects << 1 | (c == '{');
      depth++;
    } else if (c == '}' || c == ']') {
      sound = in_object == (c == '}') && last != NAME;
      objects >>= 1;
      depth--;
    } else if (c == ':' || c == ',') {
      sound = (last == NAME) == (c == ':');
    } else {
      sound = is_bare(c) && (value_next || last == BARE);
      c = BARE;
    }
    if (!sound)
      doubt(s, name);
    last = c;
  } while (depth > 0 && s->at < s->end);
  skip_space(s);
  if (s->at == s->end) /* the record is not closed: a bracket may be missing anywhere */
    doubt(s, member);
}

static bool take_value(struct json_salvage *s, const char *name, struct duebox_bytes *value, bool *text) {
  skip_space(s);
  const char *from = s->at;
  *text = s->at < s->end && is_quote(*s->at);
  if (*text && take_string(s, true, name, value))
    return true;
  if (*text) {
    doubt(s, name);
    return false;
  }
  bool container = s->at < s->end && is_one_of(*s->at, "{[");
  if (container)
    skip_container(s, name);
  else
    while (s->at < s->end && !is_space(*s->at) && !is_one_of(*s->at, ",}\"'"))
      s->at++;
  *value = (struct duebox_bytes){.data = from, .len = (size_t)(s->at - from)};
  skip_space(s);
  bool ends = s->at < s->end && is_one_of(*s->at, ",}") && !(s->end - s->at > 1 && isdigit((unsigned char)s->at[1]));
  if (!container && (!ends || value->len == 0)) {
    value->len = 0;
    doubt(s, name);
  }
  return true;
}

bool json_salvage_start(struct json_salvage *s, const char *text, size_t len) {
  static const char mark[] = "\xef\xbb\xbf"; /* what some editors and libraries put before UTF-8 */
  *s = (struct json_salvage){.at = text, .end = text + len, .apart = true};
  if (len >= 3 && memcmp(text, mark, 3) == 0)
    s->at += 3;
  return take(s, '{');
}

bool json_salvage_next(struct json_salvage *s, struct duebox_bytes *key, struct duebox_bytes *value, bool *text) {
  for (skip_space(s); s->at < s->end; skip_space(s)) {
    const char *from = s->at;
    bool may_begin = s->apart;
    s->apart = *from == ',';
    if (is_quote(*from)) {
      if (!may_begin)
        doubt(s, from);
      bool closed = take_string(s, false, from, key);
      if (closed && take(s, ':'))
        return take_value(s, from, value, text);
      doubt(s, from);
    } else if (take(s, '}')) {
      s->closed = true;
      skip_space(s);
      if (s->at < s->end) {
        s->mixed = true;
        s->excess = is_one_of(*s->at, "}],");
        doubt(s, s->at);
      }
      s->at = s->end;
    } else if (is_one_of(*from, "{[")) { /* another record, perhaps */
      doubt(s, from);
      skip_container(s, from);
    } else {
      s->at++;
      if (*from != ',')
        doubt(s, from);
    }
  }
  return false;
}

static const char *end_of(const char *at, const char *end, const char *set) {
  while (at < end && !is_one_of(*at, set))
    at++;
  return at;
}

static bool behind_is_colon(const char *at, const char *end) {
  while (at < end && (is_space(*at) || is_one_of(*at, QUOTING)))
    at++;
  return at < end && *at == ':';
}

bool json_salvage_search(const char **at, const char *end, const char *name, struct duebox_bytes *value) {
  size_t name_len = strlen(name);
  char before = ','; /* the last byte that is no space */
  for (const char *p = *at; (size_t)(end - p) > name_len; p++) {
    bool named = is_one_of(before, "{," QUOTING) && strncasecmp(p, name, name_len) == 0;
    bool colon = false;
    size_t quotes = is_quote(before);
    if (!is_space(*p))
      before = *p;
    if (!named)
      continue;
    const char *from = p + name_len;
    bool nested = false;
    for (; from < end && !is_bare(*from) && (colon || *from != ','); from++) {
      colon |= *from == ':';
      nested |= *from == '{';
      quotes += is_quote(*from);
    }
    if (from == end || !(colon || quotes > 2 || (quotes == 2 && isdigit((unsigned char)*from))))
      continue; /* the colon may be what is missing */
    const char *behind = end_of(from, end, is_one_of(from[-1], QUOTING) ? QUOTING : QUOTING " \t\r\n,{}[]");
    if (!is_quote(from[-1]) && end - behind > 1 && is_quote(*behind) && is_bare(behind[1]) &&
        !behind_is_colon(end_of(behind + 1, end, QUOTING), end)) { /* rubbish before the value */
      from = behind + 1;
      behind = end_of(from, end, QUOTING);
    }
    *at = behind;
    *value = (struct duebox_bytes){.data = from, .len = (size_t)(behind - from)};
    bool is_name = nested && behind_is_colon(behind, end);
    if (!is_name && !(value->len == 4 && memcmp(from, "null", 4) == 0))
      return true;
  }
  return false;
}
