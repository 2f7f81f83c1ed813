/* SPDX-License-Identifier: MIT
 *
 * admin/exposition.h - writes metric families in Prometheus' text format 0.0.4 or in OpenMetrics 1.0.
 *
 * The differences live here: OpenMetrics names a counter's family without _total, states units, and ends with # EOF.
 * Numbers are written from integers, so that no locale can put a comma into them.
 */
#ifndef ADMIN_EXPOSITION_H
#define ADMIN_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/metrics.h"

struct exposition {
  FILE *out;
  bool open_metrics;
  const char *family; /* name given to begin(), without _total */
  bool counter;
};

/* One label; name NULL ends a list. Values may hold any bytes. */
struct label {
  const char *name, *value;
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_INFO };

/* Opens a family. name has neither _total nor _info; its samples follow before the next begin. */
void exposition_begin(struct exposition *ex, const char *name, enum metric_type type, const char *help);
void exposition_integer(struct exposition *ex, const struct label *labels, int64_t value);
/* The one sample of a METRIC_INFO family. */
void exposition_info(struct exposition *ex, const struct label *labels);
/* A value in microseconds, written in seconds. */
void exposition_seconds(struct exposition *ex, const struct label *labels, int64_t us);
void exposition_histogram(struct exposition *ex, const struct label *labels, const struct histogram *histogram);
void exposition_end(struct exposition *ex);

/* Whether an Accept header prefers OpenMetrics to the text format. Pure. */
bool exposition_prefers_open_metrics(const char *accept);

#endif
