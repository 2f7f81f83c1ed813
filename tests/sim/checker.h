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
  bool clean;              /* no fault, and nobody changed or deleted a task */
  int64_t quiet_us;        /* clean: since then all daemons run, and have shared the shards out */
  int64_t still_us;        /* clean: no route stands still for longer then while one of its tasks may leave */
  unsigned faults;         /* that may make one more copy of what is in flight */
  bool ordered;            /* what stands behind the dot in a message id is an order key that holds */
  bool told;               /* what a daemon that died may have had the leases tell: nobody has deleted them */
  bool few_attempts;       /* a route, or the daemons, let tasks die that were tried too often or for too long */
  int64_t round_trip_us;   /* to the database, at most: half of it a daemon may be wrong about the database's clock */
  int64_t longest_wait_us; /* between two attempts: where the next would come too late, a task expires at once */
  const char *away;        /* a host that never comes; NULL = none */
  bool stood_still;        /* a daemon, or a call of its plugin */
  const char *good; /* isolation: tasks of this route leave within bound_us, from quiet_us to the end of the run */
  int64_t bound_us, end_us;
};

/* NULL: all promises are kept. Otherwise the first that is not, with its evidence; valid until the next call. */
MUSTCHECK const char *checker_judge_isolation(const struct table *db, const struct broker *broker,
                                              const struct run_facts *facts);
MUSTCHECK const char *checker_judge(const struct table *db, const struct broker *broker, const struct run_facts *facts);

#endif
