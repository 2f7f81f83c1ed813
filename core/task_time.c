/* SPDX-License-Identifier: MIT */
#include "core/task_time.h"

bool task_time_valid(int64_t us, const char *what, struct err *err) {
  static const int64_t min_us = INT64_C(946684800000000), end_us = INT64_C(7258118400000000);
  return (us >= min_us && us < end_us) || err_set(err, 0, "%s is from 2000 to 2199", what);
}
