/* SPDX-License-Identifier: MIT
 *
 * admin/exposition.c - text formats of metrics. No state but the struct given.
 *
 * Sources: the Prometheus exposition format 0.0.4 and the OpenMetrics 1.0 specification.
 */
#include "admin/exposition.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/http.h"
#include "core/base/utf8.h"

static bool ends_with(const char *text, const char *end) {
  size_t len = strlen(text), end_len = strlen(end);
  return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

void exposition_begin(struct exposition *ex, const char *name, enum metric_type type, const char *help) {
  static const char *const types[] = {"counter", "gauge", "histogram", "info"};
  const char *suffix = "", *type_name = types[type];
  ex->family = name;
  ex->counter = type == METRIC_COUNTER;
  if (!ex->open_metrics && type == METRIC_COUNTER)
    suffix = "_total";
  if (!ex->open_metrics && type == METRIC_INFO) { /* the text format has no such type */
    suffix = "_info";
    type_name = "gauge";
  }
  fprintf(ex->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix, type_name);
  if (ex->open_metrics && (ends_with(name, "_seconds") || ends_with(name, "_bytes")))
    fprintf(ex->out, "# UNIT %s %s\n", name, strrchr(name, '_') + 1);
}

/* What a terminal would obey is written as the picture of it, since rows may name any route, and two names must not
 * become one; what else deceives the eye as the log writes it. */
static void write_character(FILE *out, const char *text, size_t size, unsigned code) {
  if (code == '\n')
    fputs("\\n", out);
  else if (code < 0x20 || code == 0x7f)
    fprintf(out, "\xe2\x90%c", (int)(0x80 + (code == 0x7f ? 0x21 : code))); /* U+2400 and further */
  else if (utf8_is_unsafe(code))
    fprintf(out, "\\\\u%04x", code);
  else if (code == '"' || code == '\\')
    fprintf(out, "\\%c", (int)code);
  else
    fwrite(text, 1, size, out);
}

static void write_label(FILE *out, const struct label *label) {
  char ascii[512];
  const char *text = text_utf8(label->value, ascii, sizeof(ascii));
  size_t size, len = strlen(text);
  fprintf(out, "%s=\"", label->name);
  for (size_t i = 0; i < len; i += size) {
    unsigned code = '?';
    size = utf8_decode(text + i, len - i, &code);
    size = size ? size : 1;
    write_character(out, text + i, size, code);
  }
  fputc('"', out);
}

/* Writes the sample's name and labels; `more` is a further label or NULL. */
static void write_name(struct exposition *ex, const char *suffix, const struct label *labels,
                       const struct label *more) {
  fprintf(ex->out, "%s%s", ex->family, suffix);
  char before = '{';
  for (const struct label *label = labels; label && label->name; label++, before = ',') {
    fputc(before, ex->out);
    write_label(ex->out, label);
  }
  if (more) {
    fputc(before, ex->out);
    write_label(ex->out, more);
    before = ',';
  }
  fputs(before == ',' ? "} " : " ", ex->out);
}

/* Seconds with as many decimals as are needed, one at least: the canonical form of OpenMetrics for `le`. */
static void seconds_text(int64_t us, char text[32]) {
  uint64_t magnitude = us < 0 ? -(uint64_t)us : (uint64_t)us;
  int len = snprintf(text, 32, "%s%llu.%06llu", us < 0 ? "-" : "", (unsigned long long)(magnitude / 1000000),
                     (unsigned long long)(magnitude % 1000000));
  while (text[len - 1] == '0' && text[len - 2] != '.')
    text[--len] = '\0';
}

void exposition_integer(struct exposition *ex, const struct label *labels, int64_t value) {
  write_name(ex, ex->counter ? "_total" : "", labels, NULL);
  fprintf(ex->out, "%lld\n", (long long)value);
}

void exposition_info(struct exposition *ex, const struct label *labels) {
  write_name(ex, "_info", labels, NULL);
  fputs("1\n", ex->out);
}

void exposition_seconds(struct exposition *ex, const struct label *labels, int64_t us) {
  char text[32];
  seconds_text(us, text);
  write_name(ex, ex->counter ? "_total" : "", labels, NULL);
  fprintf(ex->out, "%s\n", text);
}

/* The count is the sum of the buckets as they were read, so that the sample agrees with itself. */
void exposition_histogram(struct exposition *ex, const struct label *labels, const struct histogram *histogram) {
  uint64_t below = 0;
  char text[32];
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
    below += counted(&histogram->bucket[i]);
    if (i < HISTOGRAM_BUCKETS - 1)
      seconds_text(histogram_bounds_us[i], text);
    else
      memcpy(text, "+Inf", 5);
    write_name(ex, "_bucket", labels, &(struct label){"le", text});
    fprintf(ex->out, "%llu\n", (unsigned long long)below);
  }
  seconds_text((int64_t)counted(&histogram->sum_us), text);
  write_name(ex, "_sum", labels, NULL);
  fprintf(ex->out, "%s\n", text);
  write_name(ex, "_count", labels, NULL);
  fprintf(ex->out, "%llu\n", (unsigned long long)below);
}

void exposition_end(struct exposition *ex) {
  if (ex->open_metrics)
    fputs("# EOF\n", ex->out);
}

/* "1", "0.5", "0.25" in thousandths (RFC 9110, 12.4.2); strtod() would ask the locale. */
static int thousandths(const char *text) {
  int value = (*text == '1') * 1000;
  if (text[0] == '0' && text[1] == '.')
    for (int i = 2, weight = 100; weight > 0 && text[i] >= '0' && text[i] <= '9'; i++, weight /= 10)
      value += (text[i] - '0') * weight;
  return value;
}

/* The q-value of one media range; 1000 when it has none. */
static int quality(const char *range, size_t len) {
  const char *end = range + len;
  for (const char *p = range; (p = memchr(p, ';', (size_t)(end - p))) != NULL;) {
    p++;
    p += strspn(p, " \t");
    if (strncasecmp(p, "q=", 2) == 0)
      return thousandths(p + 2);
  }
  return 1000;
}

bool exposition_prefers_open_metrics(const char *accept) {
  int open_metrics = 0, text = 0;
  while (*accept) {
    accept += strspn(accept, ", \t");
    size_t len = strcspn(accept, ",");
    if (strncasecmp(accept, "application/openmetrics-text", 28) == 0)
      open_metrics = quality(accept, len);
    else if (strncasecmp(accept, "text/plain", 10) == 0 || strncmp(accept, "*/*", 3) == 0) {
      int q = quality(accept, len);
      text = q > text ? q : text;
    }
    accept += len;
  }
  return open_metrics > 0 && open_metrics >= text;
}
