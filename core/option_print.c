/* SPDX-License-Identifier: MIT
 *
 * core/option_print.c - filled options back to text, compared, and the nearest known word. Pure.
 *
 * What could be a secret is masked here, once for everyone who prints: secret rows, passwords inside URLs, and
 * pass-through keys that look like one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/options.h"
#include "core/url_login.h"

struct printer {
  char *out;
  size_t cap, len;
};

static void put(struct printer *to, const char *fmt, ...) PRINTF(2, 3);
static void put(struct printer *to, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  bool room = to->len < to->cap;
  int n = vsnprintf(room ? to->out + to->len : NULL, room ? to->cap - to->len : 0, fmt, args);
  va_end(args);
  to->len += n > 0 ? (size_t)n : 0;
}

/* Prints a text; the passwords of the URLs in it are masked. */
static void put_text(struct printer *to, const char *text) {
  for (struct url_login login; url_login_find(text, &login); text = login.at)
    put(to, "%.*s" OPTION_MASK, (int)(login.colon + 1 - text), text);
  put(to, "%s", text);
}

static void put_duration(struct printer *to, int64_t ms) {
  static const struct {
    const char *unit;
    int64_t ms;
  } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
  size_t i = 0;
  while (units[i].ms > 1 && ms % units[i].ms != 0)
    i++;
  if (ms == 0)
    put(to, "0");
  else
    put(to, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
}

static void put_size(struct printer *to, int64_t bytes) {
  static const char *const units[] = {"", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    unit++;
  }
  put(to, "%lld%s", (long long)bytes, units[unit]);
}

static bool looks_secret(const char *key) {
  static const char *const words[] = {"password",   "passwd", "secret",  "token",
                                      "credential", "jaas",   "key.pem", "oauthbearer.config"};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (strcasestr(key, words[i]))
      return true;
  return false;
}

static void put_list(struct printer *to, const struct duebox_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    put(to, "%s", i ? ", " : "");
    put_text(to, list->items[i]);
  }
}

static void put_durations(struct printer *to, const struct duebox_durations *list) {
  for (size_t i = 0; i < list->count; i++) {
    put(to, "%s", i ? ", " : "");
    put_duration(to, list->ms[i]);
  }
}

static void put_map(struct printer *to, const struct duebox_map *map, bool secret) {
  for (size_t i = 0; i < map->count; i++) {
    put(to, "%s%s=", i ? ", " : "", map->items[i].key);
    put_text(to, secret || looks_secret(map->items[i].key) ? OPTION_MASK : map->items[i].value);
  }
}

size_t option_print(const struct duebox_option *row, const void *filled, char *out, size_t cap) {
  const void *field = (const char *)filled + row->offset;
  struct printer to = {.out = out, .cap = cap};
  const char *text;
  if (cap > 0)
    out[0] = '\0';
  switch (row->type) {
  case DUEBOX_OPT_STRING:
    text = *(const char *const *)field;
    put_text(&to, text ? text : "");
    break;
  case DUEBOX_OPT_SECRET:
    text = *(const char *const *)field;
    put(&to, "%s", text && text[0] ? OPTION_MASK : "");
    break;
  case DUEBOX_OPT_BOOL:
    put(&to, "%s", *(const bool *)field ? "true" : "false");
    break;
  case DUEBOX_OPT_INT:
    put(&to, "%lld", (long long)*(const int64_t *)field);
    break;
  case DUEBOX_OPT_SIZE:
    put_size(&to, *(const int64_t *)field);
    break;
  case DUEBOX_OPT_DURATION:
    put_duration(&to, *(const int64_t *)field);
    break;
  case DUEBOX_OPT_RATE:
    put(&to, *(const double *)field > 0 ? "%.15g/s" : "%.15g", *(const double *)field);
    break;
  case DUEBOX_OPT_NUMBER:
    put(&to, "%.15g", *(const double *)field);
    break;
  case DUEBOX_OPT_ENUM:
    put(&to, "%s", row->choices[*(const int *)field]);
    break;
  case DUEBOX_OPT_LIST:
    put_list(&to, field);
    break;
  case DUEBOX_OPT_DURATIONS:
    put_durations(&to, field);
    break;
  case DUEBOX_OPT_MAP:
    put_map(&to, field, row->flags & DUEBOX_OPT_FILE);
    break;
  }
  return to.len;
}

size_t option_print_duration(int64_t ms, char *out, size_t cap) {
  struct printer to = {.out = out, .cap = cap};
  put_duration(&to, ms);
  return to.len;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool same_list(const struct duebox_list *a, const struct duebox_list *b) {
  bool same = a->count == b->count;
  for (size_t i = 0; same && i < a->count; i++)
    same = strcmp(a->items[i], b->items[i]) == 0;
  return same;
}

static bool same_map(const struct duebox_map *a, const struct duebox_map *b) {
  bool same = a->count == b->count;
  for (size_t i = 0; same && i < a->count; i++)
    same = strcmp(a->items[i].key, b->items[i].key) == 0 && strcmp(a->items[i].value, b->items[i].value) == 0;
  return same;
}

static bool same_durations(const struct duebox_durations *a, const struct duebox_durations *b) {
  return a->count == b->count && (a->count == 0 || memcmp(a->ms, b->ms, a->count * sizeof *a->ms) == 0);
}

static bool same_value(enum duebox_option_type type, const void *a, const void *b) {
  switch (type) {
  case DUEBOX_OPT_STRING:
  case DUEBOX_OPT_SECRET:
    return same_text(*(const char *const *)a, *(const char *const *)b);
  case DUEBOX_OPT_BOOL:
    return *(const bool *)a == *(const bool *)b;
  case DUEBOX_OPT_INT:
  case DUEBOX_OPT_SIZE:
  case DUEBOX_OPT_DURATION:
    return *(const int64_t *)a == *(const int64_t *)b;
  case DUEBOX_OPT_RATE:
  case DUEBOX_OPT_NUMBER:
    return *(const double *)a == *(const double *)b;
  case DUEBOX_OPT_ENUM:
    return *(const int *)a == *(const int *)b;
  case DUEBOX_OPT_LIST:
    return same_list(a, b);
  case DUEBOX_OPT_DURATIONS:
    return same_durations(a, b);
  case DUEBOX_OPT_MAP:
    return same_map(a, b);
  }
  return false;
}

bool options_equal(const struct duebox_option *rows, const void *a, const void *b) {
  for (; rows && rows->name; rows++)
    if (!same_value(rows->type, (const char *)a + rows->offset, (const char *)b + rows->offset))
      return false;
  return true;
}

enum { WORD_MAX = 63 };

/* Optimal string alignment distance: insert, delete, replace, or swap two neighbours. Words of at most WORD_MAX. */
static size_t distance(const char *a, const char *b) {
  size_t rows[3][WORD_MAX + 1], *older = rows[0], *old = rows[1], *now = rows[2];
  size_t la = strlen(a), lb = strlen(b);
  for (size_t j = 0; j <= lb; j++) {
    older[j] = 0;
    old[j] = j;
  }
  for (size_t i = 1; i <= la; i++) {
    now[0] = i;
    for (size_t j = 1; j <= lb; j++) {
      size_t best = old[j - 1] + (a[i - 1] != b[j - 1]);
      best = old[j] + 1 < best ? old[j] + 1 : best;
      best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && older[j - 2] + 1 < best)
        best = older[j - 2] + 1;
      now[j] = best;
    }
    size_t *spare = older;
    older = old;
    old = now;
    now = spare;
  }
  return old[lb];
}

const char *option_suggest(const char *word, const char *const *known, size_t count) {
  const char *best = NULL;
  size_t len = strlen(word), best_distance = 4;
  for (size_t i = 0; len <= WORD_MAX && i < count; i++) {
    if (strlen(known[i]) > WORD_MAX)
      continue;
    size_t d = distance(word, known[i]);
    if (d < best_distance && d * 2 < len) {
      best = known[i];
      best_distance = d;
    }
  }
  return best;
}
