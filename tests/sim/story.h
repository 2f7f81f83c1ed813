/* SPDX-License-Identifier: MIT
 *
 * tests/sim/story.h - one run of the simulation: what a seed makes of it, from the first INSERT to the verdict.
 *
 * A story has two parts. In the first, users insert and change tasks while faults happen. Then the faults end, at least
 * one daemon is left running, and every task has to come to its end; the checker judges the whole.
 *
 * A story of isolation is another: one route is well, its destination is quick and it has little to do, and all others
 * are in trouble of every kind, in tables in which a row stands for a thousand. The checker judges whether the tasks of
 * the one wait for the others.
 *
 * A story of keys is like the first, of one route whose failing tasks block their order keys, while daemons come and
 * go.
 *
 * In a story of flow nothing is wrong: what comes without end must not hide a task that became visible behind it.
 */
#ifndef TESTS_SIM_STORY_H
#define TESTS_SIM_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "world.h"

enum fault_kind {
  FAULT_KILL,
  FAULT_PAUSE,
  FAULT_DRAIN,
  FAULT_RELOAD,
  FAULT_DB_DOWN,
  FAULT_DB_READ_ONLY,
  FAULT_DB_SLOW,
  FAULT_DB_SESSIONS,
  FAULT_DB_FAILOVER,
  FAULT_ROW_LOCK,
  FAULT_TABLE_LOCK,
  FAULT_LEASE_LOCK,
  FAULT_REFUSED_WRITES,
  FAULT_LOST_ANSWERS,
  FAULT_BROKER_DOWN,
  FAULT_BROKER_FROZEN,
  FAULT_SINK_FULL,
  FAULT_CLOCK_STEP,
  FAULT_LEASE_ROWS,
  FAULT_LOG,
  FAULT_RESULT,
  FAULT_TRUNCATE,
  FAULT_COMMAND,
  FAULT_PAUSED_ROUTE,
  FAULT_UPDATE,
  FAULT_DELETE,
  FAULT_SNAPSHOT, /* in stories of isolation alone */
  FAULT_BROKER_FAILS,
  FAULT_TARGET_DOWN,
  FAULT_KINDS
};
extern const char *const fault_names[FAULT_KINDS];

struct story_count {
  struct world_count world;
  uint64_t tasks, deliveries, faults[FAULT_KINDS];
  uint64_t broker[16];
  int64_t virtual_us;
};

/* What is left out of a story. All zero: nothing. */
struct story_cut {
  unsigned tasks, processes; /* so many at most; 0 = as it is */
  uint32_t faults;           /* bits: these do not happen, in the order in which they are drawn */
  unsigned quiet;            /* 1 = of itself the broker does nothing wrong */
};

enum story_kind { STORY_PROMISES, STORY_ISOLATION, STORY_KEYS, STORY_FLOW };

/* Tells the story of a seed. False: a promise was broken, or the core failed; *why says what, valid until the next. */
MUSTCHECK bool story_run(enum story_kind kind, uint64_t seed, const struct story_cut *cut, bool trace,
                         struct story_count *count, const char **why);

#endif
