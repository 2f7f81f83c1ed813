/* SPDX-License-Identifier: MIT */
#include "core/metrics.h"

const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS - 1] = {
    250,      500,       1000,      2000,      5000,       10000,      20000,      50000,
    100000,   200000,    500000,    1000000,   2000000,    5000000,    10000000,   30000000,
    60000000, 120000000, 300000000, 600000000, 1200000000, 2400000000, 3600000000,
};

void histogram_add(struct histogram *histogram, int64_t value_us) {
  size_t i = 0;
  while (i < HISTOGRAM_BUCKETS - 1 && value_us > histogram_bounds_us[i])
    i++;
  count(&histogram->bucket[i], 1);
  count(&histogram->count, 1);
  count(&histogram->sum_us, value_us > 0 ? (uint64_t)value_us : 0);
  raise_gauge(&histogram->max_us, value_us);
}

int64_t histogram_quantile_us(const struct histogram *histogram, double share) {
  uint64_t total = counted(&histogram->count), before = 0;
  double rank = share * (double)total;
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
    uint64_t here = counted(&histogram->bucket[i]);
    if (here > 0 && (double)(before + here) >= rank) {
      int64_t low = i ? histogram_bounds_us[i - 1] : 0, most = gauge_value(&histogram->max_us);
      int64_t high = i < HISTOGRAM_BUCKETS - 1 && histogram_bounds_us[i] < most ? histogram_bounds_us[i] : most;
      double within = (rank - (double)before) / (double)here;
      return high > low ? low + (int64_t)(within * (double)(high - low)) : high;
    }
    before += here;
  }
  return 0;
}
