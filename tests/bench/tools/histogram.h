/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/histogram.h - how often a time was measured: a log-linear histogram, 64 linear steps in each
 * doubling.
 *
 * Up to 64 us each microsecond has a bucket of its own, beyond that a bucket is at most 1/64 (1.6 %) of its value wide;
 * the last one ends after more than a century. What is negative counts as 0. It never allocates, and belongs to one
 * thread.
 */
#ifndef TESTS_BENCH_HISTOGRAM_H
#define TESTS_BENCH_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

enum { HISTOGRAM_STEPS = 64, HISTOGRAM_DOUBLINGS = 46, HISTOGRAM_BUCKETS = HISTOGRAM_STEPS * HISTOGRAM_DOUBLINGS };

struct histogram {
  uint64_t counts[HISTOGRAM_BUCKETS];
  uint64_t total;
  int64_t max_us;
};

/* @param us  a time in microseconds */
void histogram_add(struct histogram *histogram, int64_t us);

/* The time below which this share (0 to 1) of all values lies, in microseconds, as the middle of its bucket. 0 when
 * nothing was added. */
int64_t histogram_quantile(const struct histogram *histogram, double share);

/* Prints {"count", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "buckets": [[middle in us, count], ..]}, without
 * empty buckets. */
void histogram_print(const struct histogram *histogram, FILE *out);

#endif
