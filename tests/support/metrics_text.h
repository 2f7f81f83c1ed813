/* SPDX-License-Identifier: MIT
 *
 * tests/support/metrics_text.h - a strict reader of Prometheus' text format and of OpenMetrics.
 *
 * Reads line by line and refuses what a scraper would refuse or merge wrongly: samples without HELP and TYPE, families
 * in pieces, series twice, bad escapes, buckets that are not cumulative.
 */
#ifndef TESTS_SUPPORT_METRICS_TEXT_H
#define TESTS_SUPPORT_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { METRICS_SERIES_MAX = 4096, METRICS_FAMILIES_MAX = 256 };

struct metrics_sample {
  char key[384]; /* name{labels} as written */
  double value;
};

struct metrics_text {
  bool open_metrics;
  struct metrics_sample samples[METRICS_SERIES_MAX];
  size_t sample_count;
  char families[METRICS_FAMILIES_MAX][96];
  size_t family_count;
  char type[16]; /* of the family that is being read */
  bool ended;    /* # EOF seen */
  char error[512];
};

/* False with `error` set when the text is not right. */
bool metrics_text_read(struct metrics_text *metrics, const char *text, bool open_metrics);
/* The value of a series by its whole key; false when there is none. */
bool metrics_text_find(const struct metrics_text *metrics, const char *key, double *value);

#endif
