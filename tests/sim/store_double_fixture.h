/* SPDX-License-Identifier: MIT
 *
 * tests/sim/store_double_fixture.h - what the cases of the store double stand on: a world with one strand, a database
 * of four shards that "me" holds, a session, and a second client beside it. The cases know these helpers and the port
 * alone, so that they can be run on a server as well.
 */
#ifndef TESTS_SIM_STORE_DOUBLE_FIXTURE_H
#define TESTS_SIM_STORE_DOUBLE_FIXTURE_H

#include "store_double.h"

enum { SHARDS = 4 };
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
/* All states of living tasks. */
#define LIVING ((1u << TASK_DONE) - 1)

struct fixture {
  struct table db;
  struct machine machine;
  struct store *store;
  const struct store_ops *ops;
  struct store_session *ss;
  struct shard_lease leases[SHARDS]; /* all shards, held by "me" */
  struct tx *other;                  /* what the second client has open; NULL = nothing */
  struct err err;
  char text[1024];
};

typedef void case_fn(struct fixture *f);
struct store_case {
  const char *name; /* NULL = behind the last one */
  case_fn *run;
};
/* store_double_cases_*.c */
extern const struct store_case read_cases[], claim_cases[], settle_cases[], result_cases[];
/* store_double_cases_storm.c: the first of so many seeds whose run fails, or differs when it is run again; 0 = none. */
uint64_t store_double_storm(uint64_t first, uint64_t count);
/* Runs a case in a world of its own. State: the case. */
void run_case(void **state);

NORETURN void case_failed(const char *file, int line, const char *fmt, ...) PRINTF(3, 4);
#define check(holds) ((holds) ? (void)0 : case_failed(__FILE__, __LINE__, "not: %s", #holds))
#define check_int(is, wanted)                                                                                          \
  do {                                                                                                                 \
    int64_t is_ = (int64_t)(is), wanted_ = (int64_t)(wanted);                                                          \
    if (is_ != wanted_)                                                                                                \
      case_failed(__FILE__, __LINE__, "%s is %lld, not %lld", #is, (long long)is_, (long long)wanted_);                \
  } while (0)
#define check_text(is, wanted)                                                                                         \
  do {                                                                                                                 \
    const char *is_ = (is);                                                                                            \
    if (strcmp(is_, (wanted)) != 0)                                                                                    \
      case_failed(__FILE__, __LINE__, "%s is %s, not %s", #is, is_, (wanted));                                         \
  } while (0)
#define ok(f, call)                                                                                                    \
  do {                                                                                                                 \
    (f)->err.text[0] = '\0';                                                                                           \
    if ((call) != STORE_OK)                                                                                            \
      case_failed(__FILE__, __LINE__, "%s: %s", #call, (f)->err.text);                                                 \
  } while (0)

/* A row; what is zero has its default: route "r", payload "p", due now, message id "m<id>". */
struct spec {
  uint64_t id;
  const char *route, *payload, *message_id, *order_key, *host, *claimed_by, *move_to_host;
  uint8_t shard, priority;
  enum task_state state;
  uint32_t attempt, failures, timeout_ms;
  int64_t due_us, expires_us, lease_until_us; /* from now on */
  uint64_t epoch;
  int move_to_shard; /* one more than it */
};
void insert(struct fixture *f, struct spec spec);
/* "scheduled|attempt|failures|recoveries|revision", "(none)". Until the next call. */
const char *row_of(struct fixture *f, uint64_t id);
/* States of all rows by id: "claimed,scheduled". */
const char *states_of(struct fixture *f);
/* "done|attempt|failures" of the last row in the history, "(none)". */
const char *over_of(struct fixture *f);
/* "kind|outcome|attempt" of the last line of the attempts, "(none)". */
const char *line_of(struct fixture *f);
struct row *the_row(struct fixture *f, uint64_t id);
struct shard_entry *the_shard(struct fixture *f, uint8_t shard);
/* The second client: changes a payload, or deletes, in a transaction of its own. */
void change(struct fixture *f, uint64_t id, const char *payload);
void delete_row(struct fixture *f, uint64_t id);
/* Begins a transaction, if none is open, and takes a lock; let_go() ends it. */
void hold(struct fixture *f, enum lock_kind kind, uint64_t key);
void let_go(struct fixture *f);
/* What hits the next scripts, or the next that commit. */
void hit(struct fixture *f, enum table_hit with, bool commits, int times);

struct task_batch *read_group(struct fixture *f, enum task_state state, uint8_t shard, const char *route);
void release(struct task_batch *batch);
size_t size_of(const struct task_batch *batch);
enum store_status claim_rows(struct fixture *f, const struct shard_lease *leases, size_t lease_count,
                             const uint64_t *ids, size_t count, struct task_batch **batch, uint64_t *lost);
/* A decision about a row as the table has it now. Its texts live until the end of the case. */
struct decision decide_on(struct fixture *f, uint64_t id, enum task_event event);
struct decision decide_on_sent(const struct task *task, enum task_event event);
size_t settle(struct fixture *f, struct decision *decisions, size_t count);
/* A row of each: ids 1 to count, in shard 0. */
void rows_and_decisions(struct fixture *f, struct decision *d, size_t count, enum task_event event);

#endif
