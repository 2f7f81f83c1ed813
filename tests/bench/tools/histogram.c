/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include <inttypes.h>
#include <stddef.h>

/* The first 64 values have buckets of width 1, the next 64 buckets too, then each doubling has 64 of twice the width.
 */
static size_t bucket_of(uint64_t us) {
  if (us < HISTOGRAM_STEPS)
    return us;
  unsigned doubling = 63U - 6U - (unsigned)__builtin_clzll(us); /* 0 for 64 to 127 */
  size_t bucket = ((size_t)doubling + 1) * HISTOGRAM_STEPS + (size_t)((us >> doubling) - HISTOGRAM_STEPS);
  return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static int64_t middle_of(size_t bucket) {
  if (bucket < HISTOGRAM_STEPS)
    return (int64_t)bucket;
  unsigned doubling = (unsigned)(bucket / HISTOGRAM_STEPS) - 1;
  uint64_t low = (uint64_t)(bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS) << doubling;
  return (int64_t)(low + ((UINT64_C(1) << doubling) >> 1));
}

void histogram_add(struct histogram *histogram, int64_t us) {
  histogram->counts[bucket_of(us > 0 ? (uint64_t)us : 0)]++;
  histogram->total++;
  if (us > histogram->max_us)
    histogram->max_us = us;
}

int64_t histogram_quantile(const struct histogram *histogram, double share) {
  uint64_t wanted = (uint64_t)(share * (double)histogram->total), seen = 0;
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
    seen += histogram->counts[i];
    if (seen > wanted || (seen == histogram->total && seen > 0))
      return middle_of(i) < histogram->max_us ? middle_of(i) : histogram->max_us;
  }
  return 0;
}

void histogram_print(const struct histogram *histogram, FILE *out) {
  static const struct {
    const char *name;
    double share;
  } ranks[] = {{"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};
  fprintf(out, "{\"count\": %" PRIu64, histogram->total);
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
    fprintf(out, ", \"%s\": %.3f", ranks[i].name, (double)histogram_quantile(histogram, ranks[i].share) / 1000);
  fprintf(out, ", \"max_ms\": %.3f, \"buckets\": [", (double)histogram->max_us / 1000);
  const char *comma = "";
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
    if (histogram->counts[i]) {
      fprintf(out, "%s[%" PRId64 ", %" PRIu64 "]", comma, middle_of(i), histogram->counts[i]);
      comma = ", ";
    }
  }
  fprintf(out, "]}");
}
