/* SPDX-License-Identifier: MIT
 *
 * tests/sim/checker.h - whether a run kept the promises. It sees what the database committed and what the broker was
 * given, and knows nothing of the core.
 */
#ifndef TESTS_SIM_CHECKER_H
#define TESTS_SIM_CHECKER_H

#include "broker.h"
#include "core/base/attr.h"
#include "table.h"

/* What happened in the run, so far as promises depend on it. */
struct run_facts {
  bool clean;          /* no fault, and nobody changed or deleted a task */
  unsigned faults;     /* that may make one more copy of what is in flight */
  bool ordered;        /* what stands behind the dot in a message id is an order key that holds */
  bool users_move_due; /* somebody changed due times by UPDATE */
};

/* NULL: all promises are kept. Otherwise the first that is not, with its evidence; valid until the next call. */
MUSTCHECK const char *checker_judge(const struct table *db, const struct broker *broker, const struct run_facts *facts);

#endif
