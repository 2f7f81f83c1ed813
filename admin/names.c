/* SPDX-License-Identifier: MIT
 *
 * admin/names.c - enum to word. Pure.
 */
#include "admin/names.h"

const char *outcome_name(enum duebox_outcome_class cls) {
  static const char *const names[] = {
      [DUEBOX_DELIVERED] = "delivered",     [DUEBOX_REJECTED] = "rejected", [DUEBOX_RETRY] = "retry",
      [DUEBOX_UNAVAILABLE] = "unavailable", [DUEBOX_UNKNOWN] = "unknown",   [DUEBOX_GONE] = "gone",
  };
  _Static_assert(ARRAY_LEN(names) == DUEBOX_GONE + 1, "every outcome has a name");
  return names[cls];
}

const char *quarantined_name(enum quarantine_kind kind) {
  static const char *const names[] = {
      [QUARANTINED_BROKEN] = "broken",
      [QUARANTINED_ORPHAN] = "orphan",
      [QUARANTINED_MISROUTED] = "misrouted",
      [QUARANTINED_FLAWED] = "flawed",
      [QUARANTINED_CONTRADICTION] = "contradiction",
      [QUARANTINED_REFUSED] = "refused",
  };
  _Static_assert(ARRAY_LEN(names) == QUARANTINED_KINDS, "every kind has a name");
  return names[kind];
}

const char *fate_name(enum result_fate fate) {
  static const char *const names[] = {
      [RESULT_APPLIED] = "applied",     [RESULT_DUPLICATE] = "duplicate", [RESULT_STALE] = "stale",
      [RESULT_LATE] = "late",           [RESULT_ORPHAN] = "orphan",       [RESULT_BROKEN] = "broken",
      [RESULT_MISROUTED] = "misrouted",
  };
  _Static_assert(ARRAY_LEN(names) == RESULT_FATES, "every fate has a name");
  return names[fate];
}
