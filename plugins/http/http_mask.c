/* SPDX-License-Identifier: MIT */
#include "http_mask.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http_url.h"

/* A shorter word hides nothing, a longer one is no word of a language; a text may quote a long secret cut. */
enum { WORD_MIN = 4, LANGUAGE_MAX = 15, CUT_MIN = 12, WORDS_MAX = 128, ROOM = 4096 };

struct word {
  const char *text;
  size_t len;
  bool common; /* may be in any text by chance */
};

struct words {
  struct word items[WORDS_MAX];
  size_t count;
  bool blind;      /* what there is to hide cannot be found, so no text is shown */
  char room[ROOM]; /* for secrets as endpoints write them after decoding */
  size_t used;
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
    words->blind = true;
  else
    words->items[words->count++] = (struct word){text, len, common};
}

/* A secret as a whole, and its words, for endpoints escape what stands between them each in its own way. One without a
 * word could be there in any form. */
static void add_secret_part(struct words *words, const char *text, size_t size) {
  size_t before = words->count;
  for (size_t at = 0, len = 0; at < size; at += len ? len : 1) {
    for (len = 0; at + len < size && in_word(text[at + len]);)
      len++;
    add(words, text + at, len, false);
  }
  if (size > 0 && words->count == before)
    words->blind = true;
  add(words, text, size, false);
}

static void add_secret(struct words *words, const char *text) { add_secret_part(words, text, strlen(text)); }

/* Room for a text of that length and its NUL. */
static char *reserve(struct words *words, size_t len) {
  if (len >= sizeof words->room - words->used) {
    words->blind = true;
    return NULL;
  }
  words->used += len + 1;
  return words->room + words->used - len - 1;
}

/* What follows "Basic": frameworks show user and password, and each alone. */
static void add_credentials(struct words *words, const char *base64) {
  size_t len = strlen(base64);
  char *text = len % 4 == 0 ? reserve(words, len) : NULL;
  int size = text ? EVP_DecodeBlock((unsigned char *)text, (const unsigned char *)base64, (int)len) : 0;
  if (size <= 0)
    return;
  text[size] = '\0'; /* the padding decodes to NULs */
  const char *colon = strchr(text, ':');
  add_secret(words, colon ? colon + 1 : text);
  add_secret(words, text);
}

/* The value of a header that is secret; "Bearer" alone is none. */
static void add_value(struct words *words, const char *value) {
  const char *behind = strchr(value, ' ');
  bool basic = behind && strncasecmp(value, "basic ", 6) == 0;
  if (basic)
    add_credentials(words, behind + 1);
  add_secret(words, basic || (behind && strncasecmp(value, "bearer ", 7) == 0) ? behind + 1 : value);
}

/* A part of a path or query with escapes in it, as it stands there and as frameworks show it. */
static void add_escaped(struct words *words, const char *part, size_t len) {
  char *text = memchr(part, '%', len) ? reserve(words, len) : NULL;
  if (!text)
    return;
  char *to = text;
  for (const char *p = part; p < part + len; p++) {
    char hex[3] = {p[0], part + len - p > 2 ? p[1] : '\0', part + len - p > 2 ? p[2] : '\0'};
    if (is_escape(hex) && hex[0] == '%') {
      char digits[3] = {hex[1], hex[2], '\0'};
      *to++ = (char)strtol(digits, NULL, 16);
      p += 2;
    } else {
      *to++ = *p;
    }
  }
  *to = '\0';
  add(words, part, len, false);
  add(words, text, (size_t)(to - text), false);
}

/* The words of the path and the query of a URL, without what its template takes from the task. */
static void add_url(struct words *words, const char *template) {
  struct http_url url;
  if (!template || !http_url_split(template, &url))
    return;
  bool query = false, value = false;
  const char *part_end = url.rest;
  for (const char *p = url.rest; *p;) {
    size_t len = 0;
    if (p >= part_end) { /* a segment, a name or a value, or what parts them */
      part_end = p + strcspn(p, "/?&={");
      add_escaped(words, p, (size_t)(part_end - p));
      part_end += p == part_end;
    }
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

/* Keys of signatures, which receivers have, too: as they are written, and without "whsec_". */
static void add_keys(struct words *words, const char *keys) {
  static const char blanks[] = " \t\r\n";
  for (const char *p = keys ? keys + strspn(keys, blanks) : ""; *p; p += strspn(p, blanks)) {
    size_t len = strcspn(p, blanks);
    const char *prefix = memchr(p, '_', len), *key = prefix ? prefix + 1 : p;
    add(words, p, len, false);
    add_secret_part(words, key, (size_t)(p + len - key));
    p += len;
  }
}

static void collect(struct words *words, const struct http_route *route, const char *reply_to) {
  add_url(words, route->url);
  add_url(words, route->callback);
  if (route->authorization)
    add_value(words, route->authorization);
  for (size_t i = 0; i < route->secret_headers.count; i++)
    add_value(words, route->secret_headers.items[i].value);
  add_keys(words, route->secret);
  add_keys(words, route->previous_secret);
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
  words.count = words.used = 0;
  words.blind = false;
  collect(&words, route, reply_to);
  size_t used = 0;
  for (const char *p = text; *p && used + 1 < cap;) {
    size_t hidden = words.blind ? strlen(p) : 0;
    for (size_t i = 0; i < words.count && !words.blind; i++) {
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
