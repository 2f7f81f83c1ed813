/* SPDX-License-Identifier: MIT
 *
 * tests/support/metrics_text.c - see metrics_text.h. Rules: Prometheus exposition format 0.0.4, OpenMetrics 1.0.
 */
#include "support/metrics_text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(struct metrics_text *metrics, const char *line, const char *why) {
  snprintf(metrics->error, sizeof(metrics->error), "%s: %.300s", why, line);
  return false;
}

static size_t name_length(const char *text) {
  size_t n = 0;
  while (isalpha((unsigned char)text[n]) || text[n] == '_' || text[n] == ':' ||
         (n > 0 && isdigit((unsigned char)text[n])))
    n++;
  return n;
}

/* Walks {a="b",c="d"} and returns what follows, or NULL. Only \\, \" and \n may be escaped. */
static const char *skip_labels(const char *p) {
  if (*p != '{')
    return p;
  do {
    size_t n = name_length(++p);
    if (n == 0 || p[n] != '=' || p[n + 1] != '"')
      return NULL;
    for (p += n + 2; *p != '"'; p++)
      if (*p == '\0' || (*p == '\\' && !strchr("\\\"n", *++p)))
        return NULL;
    p++;
  } while (*p == ',');
  return *p == '}' ? p + 1 : NULL;
}

static const char *family(const struct metrics_text *metrics) {
  return metrics->family_count ? metrics->families[metrics->family_count - 1] : "";
}

/* Whether a sample of this name may stand in the family that is open. */
static bool name_fits(const struct metrics_text *metrics, const char *name, size_t len) {
  static const char *const histogram[] = {"_bucket", "_sum", "_count", NULL};
  static const char *const total[] = {"_total", NULL}, *const info[] = {"_info", NULL}, *const plain[] = {"", NULL};
  size_t base = strlen(family(metrics));
  const char *const *suffixes = plain;
  if (strcmp(metrics->type, "histogram") == 0)
    suffixes = histogram;
  else if (metrics->open_metrics && strcmp(metrics->type, "counter") == 0)
    suffixes = total;
  else if (metrics->open_metrics && strcmp(metrics->type, "info") == 0)
    suffixes = info;
  if (len < base || strncmp(name, family(metrics), base) != 0)
    return false;
  for (; *suffixes; suffixes++)
    if (strlen(*suffixes) == len - base && strncmp(name + base, *suffixes, len - base) == 0)
      return true;
  return false;
}

static bool read_sample(struct metrics_text *metrics, const char *line) {
  size_t name = name_length(line);
  const char *end = skip_labels(line + name);
  if (name == 0 || !end || *end != ' ')
    return wrong(metrics, line, "no name, labels and value");
  if (!metrics->type[0] || !name_fits(metrics, line, name))
    return wrong(metrics, line, "the sample does not belong to the family before it");
  char *rest;
  double value = strtod(end + 1, &rest);
  if (rest == end + 1 || *rest || !isfinite(value))
    return wrong(metrics, line, "the value is no number");
  if (strcmp(metrics->type, "counter") == 0 &&
      (value < 0 || (!metrics->open_metrics && !strstr(family(metrics), "_total"))))
    return wrong(metrics, line, "not a counter");
  if (metrics->sample_count == METRICS_SERIES_MAX || (size_t)(end - line) >= sizeof(metrics->samples[0].key))
    return wrong(metrics, line, "too much for the test");
  struct metrics_sample *sample = &metrics->samples[metrics->sample_count];
  snprintf(sample->key, sizeof(sample->key), "%.*s", (int)(end - line), line);
  sample->value = value;
  if (metrics_text_find(metrics, sample->key, &value))
    return wrong(metrics, line, "the series stands here twice");
  metrics->sample_count++;
  return true;
}

static bool begin_family(struct metrics_text *metrics, const char *line, const char *name, size_t len) {
  if (len == 0 || name[len] != ' ' || !name[len + 1] || len >= sizeof(metrics->families[0]))
    return wrong(metrics, line, "no name and help");
  for (size_t i = 0; i < metrics->family_count; i++)
    if (strlen(metrics->families[i]) == len && strncmp(metrics->families[i], name, len) == 0)
      return wrong(metrics, line, "the family stands here twice");
  if (metrics->family_count == METRICS_FAMILIES_MAX)
    return wrong(metrics, line, "too much for the test");
  snprintf(metrics->families[metrics->family_count++], sizeof(metrics->families[0]), "%.*s", (int)len, name);
  metrics->type[0] = '\0';
  return true;
}

static bool read_comment(struct metrics_text *metrics, const char *line) {
  if (strcmp(line, "# EOF") == 0 && metrics->open_metrics) {
    metrics->ended = true;
    return true;
  }
  const char *name = line + 7;
  size_t len = strlen(line) > 7 ? name_length(name) : 0;
  if (strncmp(line, "# HELP ", 7) == 0)
    return begin_family(metrics, line, name, len);
  if (strlen(family(metrics)) != len || strncmp(family(metrics), name, len) != 0)
    return wrong(metrics, line, "not of the family that HELP began");
  if (strncmp(line, "# TYPE ", 7) == 0) {
    snprintf(metrics->type, sizeof(metrics->type), "%s", name + len + 1);
    bool known = strcmp(metrics->type, "counter") == 0 || strcmp(metrics->type, "gauge") == 0 ||
                 strcmp(metrics->type, "histogram") == 0 || (metrics->open_metrics && !strcmp(metrics->type, "info"));
    return known || wrong(metrics, line, "unknown type");
  }
  if (strncmp(line, "# UNIT ", 7) == 0 && metrics->open_metrics) {
    const char *unit = name + len + 1;
    bool suffix = len > strlen(unit) && strncmp(name + len - strlen(unit), unit, strlen(unit)) == 0;
    return suffix || wrong(metrics, line, "the name does not end with the unit");
  }
  return wrong(metrics, line, "unknown comment");
}

/* Splits a bucket's key into the series without le, and le. */
static bool split_bucket(const char *key, char series[384], double *le) {
  const char *at = strstr(key, "le=\""), *bucket = strstr(key, "_bucket{");
  if (!at || !bucket || at[strlen(at) - 1] != '}')
    return false;
  int labels = (int)(at - bucket) - 8;
  snprintf(series, 384, "%.*s_count%s%.*s%s", (int)(bucket - key), key, labels ? "{" : "", labels ? labels - 1 : 0,
           bucket + 8, labels ? "}" : "");
  *le = strncmp(at + 4, "+Inf", 4) == 0 ? INFINITY : strtod(at + 4, NULL);
  return true;
}

/* Buckets of a series stand together, rise in le and in count, and end with +Inf, which is the series' count. */
static bool check_buckets(struct metrics_text *metrics) {
  char series[384], before[384] = "";
  double le, last_le = 0, last_value = 0, total;
  for (size_t i = 0; i < metrics->sample_count; i++) {
    const struct metrics_sample *sample = &metrics->samples[i];
    if (!strstr(sample->key, "_bucket"))
      continue;
    if (!split_bucket(sample->key, series, &le))
      return wrong(metrics, sample->key, "a bucket without le");
    bool same = strcmp(series, before) == 0;
    if (same && (le <= last_le || sample->value < last_value))
      return wrong(metrics, sample->key, "buckets do not rise");
    if (!same && before[0] && !isinf(last_le))
      return wrong(metrics, before, "the last bucket is not +Inf");
    if (isinf(le) && (!metrics_text_find(metrics, series, &total) || total != sample->value))
      return wrong(metrics, sample->key, "+Inf is not the count");
    memcpy(before, series, sizeof(before));
    last_le = le;
    last_value = sample->value;
  }
  return true;
}

bool metrics_text_read(struct metrics_text *metrics, const char *text, bool open_metrics) {
  memset(metrics, 0, sizeof(*metrics));
  metrics->open_metrics = open_metrics;
  while (*text) {
    char line[1024];
    size_t len = strcspn(text, "\n");
    if (text[len] != '\n' || len >= sizeof(line) || len == 0 || metrics->ended)
      return wrong(metrics, text, "a line that is empty, endless, too long or after the end");
    snprintf(line, sizeof(line), "%.*s", (int)len, text);
    if (!(line[0] == '#' ? read_comment(metrics, line) : read_sample(metrics, line)))
      return false;
    text += len + 1;
  }
  if (metrics->ended != open_metrics)
    return wrong(metrics, text, "OpenMetrics, and only it, ends with # EOF");
  return check_buckets(metrics);
}

bool metrics_text_find(const struct metrics_text *metrics, const char *key, double *value) {
  for (size_t i = 0; i < metrics->sample_count; i++) {
    if (strcmp(metrics->samples[i].key, key) != 0)
      continue;
    *value = metrics->samples[i].value;
    return true;
  }
  return false;
}
