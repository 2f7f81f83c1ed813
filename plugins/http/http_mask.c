/* SPDX-License-Identifier: MIT */
#include "http_mask.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "http_url.h"

/* A shorter word hides nothing, a longer one is no word of a language; a text may quote a long secret cut. */
enum { WORD_MIN = 4, LANGUAGE_MAX = 15, CUT_MIN = 12, WORDS_MAX = 128 };

struct word {
  const char *text;
  size_t len;
  bool common; /* may be in any text by chance */
};

struct words {
  struct word items[WORDS_MAX];
  size_t count;
  bool full;
};

/* Not what pages escape in their own way: slashes, quotes, '&', '=', percent signs. */
static bool in_word(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_'; }

static bool is_escape(const char *p) {
  return p[0] == '%' && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2]);
}

static bool could_be_language(const char *text, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (!isalpha((unsigned char)text[i]))
      return false;
  return len <= LANGUAGE_MAX;
}

static void add(struct words *words, const char *text, size_t len, bool common) {
  if (len < WORD_MIN)
    return;
  if (words->count == WORDS_MAX)
    words->full = true;
  else
    words->items[words->count++] = (struct word){text, len, common};
}

/* The words of a header's value. */
static void add_value(struct words *words, const char *text) {
  while (*text) {
    size_t len = 0;
    while (in_word(text[len]))
      len++;
    add(words, text, len, false);
    text += len ? len : 1;
  }
}

/* The words of the path and the query of a URL, without what its template takes from the task. */
static void add_url(struct words *words, const char *template) {
  struct http_url url;
  if (!template || !http_url_split(template, &url))
    return;
  bool query = false, value = false;
  for (const char *p = url.rest; *p;) {
    size_t len = 0;
    if (*p == '{') {
      p += p[1] == '{' ? 2 : strcspn(p, "}");
      continue;
    }
    while (in_word(p[len]))
      len++;
    add(words, p, len, !value && could_be_language(p, len));
    p += len;
    if (len > 0)
      continue;
    query = query || *p == '?';
    value = query && (*p == '=' || (value && *p != '&'));
    p += is_escape(p) ? 3 : 1;
  }
}

static void collect(struct words *words, const struct http_route *route, const char *reply_to) {
  add_url(words, route->url);
  add_url(words, route->callback);
  if (route->authorization) {
    const char *behind = strchr(route->authorization, ' '); /* "Bearer" alone is no secret */
    add_value(words, behind ? behind : route->authorization);
  }
  for (size_t i = 0; i < route->secret_headers.count; i++)
    add_value(words, route->secret_headers.items[i].value);
  const char *mac = reply_to ? strrchr(reply_to, '.') : NULL; /* core's URL of a callback ends with it */
  if (mac)
    add(words, mac + 1, strlen(mac + 1), could_be_language(mac + 1, strlen(mac + 1)));
}

/* Whether what is at p follows something that stands before a part of a URL: a slash, or one that is escaped. */
static bool in_url(const char *text, const char *p) {
  size_t before = (size_t)(p - text);
  return (before > 0 && strchr("/\\;=&?", p[-1])) || (before > 2 && is_escape(p - 3)) ||
         (before > 5 && strncasecmp(p - 6, "\\u00", 4) == 0);
}

/* How much of the text at p is the word, or the beginning of it: 0 = nothing. */
static size_t match(const char *text, const char *p, const struct word *word) {
  size_t n = 0;
  while (n < word->len && tolower((unsigned char)p[n]) == tolower((unsigned char)word->text[n]))
    n++;
  bool cut = n >= CUT_MIN || (n >= WORD_MIN && p[n] == '\0');
  if (n < word->len)
    return cut && !word->common ? n : 0;
  return word->common && (in_word(p[n]) || !in_url(text, p)) ? 0 : n;
}

void http_mask(char *out, size_t cap, const char *text, const struct http_route *route, const char *reply_to) {
  struct words words;
  words.count = 0;
  words.full = false;
  collect(&words, route, reply_to);
  size_t used = 0;
  for (const char *p = text; *p && used + 1 < cap;) {
    size_t hidden = words.full ? strlen(p) : 0; /* what cannot be masked is not shown */
    for (size_t i = 0; i < words.count && !words.full; i++) {
      size_t n = match(text, p, &words.items[i]);
      hidden = n > hidden ? n : hidden;
    }
    const char *from = hidden ? "***" : p;
    size_t n = hidden ? 3 : 1, room = cap - 1 - used;
    n = n < room ? n : room;
    memcpy(out + used, from, n);
    used += n;
    p += hidden ? hidden : 1;
  }
  out[used] = '\0';
}
