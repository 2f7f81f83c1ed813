/* SPDX-License-Identifier: MIT
 *
 * tests/sim/store_double_session.h - inside of the store double: a session, and how a unit of work runs on it, as in
 * outbox/session.h.
 *
 * A unit sends scripts: double_begin() brings one to the server, what follows is done there in one instant, apart from
 * waits for locks, and double_end() or double_commit() brings the answer back. In between others go on.
 */
#ifndef TESTS_SIM_STORE_DOUBLE_SESSION_H
#define TESTS_SIM_STORE_DOUBLE_SESSION_H

#include "core/base/attr.h"
#include "core/base/err.h"
#include "outbox/db_error.h"
#include "store_double.h"

struct store_double {
  struct store store;
  struct table *db;
  const struct machine *machine;
  char instance[STORE_INSTANCE_MAX + 1];
  atomic_uint_fast64_t statements;
  unsigned generation; /* raised when the server turns out to be read-only: all sessions connect again */
  uint64_t changes;    /* of the server */
  uint64_t server;     /* the one that was reached last; 0 = none yet */
};

enum script { SCRIPT_READS, SCRIPT_WRITES, SCRIPT_COMMITS };

struct store_session {
  struct store_double *store;
  struct table *db;
  char purpose[32];
  struct connection *conn; /* NULL = not connected */
  unsigned generation;
  int64_t limit_us; /* for the server's answers; 0 = the database's */
  bool committing;  /* what was sent may have been committed, and nobody knows it yet */
  bool unknown;     /* the unit was run before, and its commit may have happened */
  uint32_t lost_commits;
  enum script script; /* that is on its way, or was last */
  bool lose_answer;   /* of the script that is on its way */
  int64_t spent_us;   /* since it was sent */
  int64_t cost_us;    /* of what it has done so far, and has not taken time for */
  uint64_t sent_tx, lost_tx;
  int64_t skip_until_us;
  unsigned locked_tables;
  struct store_group *groups;
  struct route_setting *settings;
  struct results_forms *forms;
};

typedef bool unit_fn(struct store_session *ss, void *arg, struct err *err);

MUSTCHECK enum store_status double_run(struct store_session *ss, const char *what, unit_fn *unit, void *arg,
                                       struct err *err);
/* The same without redoing it after a conflict. */
MUSTCHECK enum store_status double_try(struct store_session *ss, const char *what, unit_fn *unit, void *arg,
                                       struct err *err);
enum store_status double_open(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                              struct err *err);
void double_close(struct store_session **ss);
/* Connects for a watch: what is not a unit of work, and not redone. */
MUSTCHECK bool double_connect(struct store_session *ss, struct err *err);
void double_limit(struct store_session *ss, int64_t lease_ms);

/* The script that is under way has passed over so many rows, or entries of an index, and reads or writes so many:
 * table.h
 */
void double_cost(struct store_session *ss, size_t passed, size_t taken);
void double_cost_ghosts(struct store_session *ss, size_t ghosts);
/* A script of so many statements arrives at the server. */
MUSTCHECK bool double_begin(struct store_session *ss, enum script script, unsigned statements, struct err *err);
/* Its answer comes. */
MUSTCHECK bool double_end(struct store_session *ss, struct err *err);
/* The server does the COMMIT of the transaction, a moment later; more of the script may follow. */
void double_do_commit(struct store_session *ss);
/* The script ends with the COMMIT, and its answer comes. */
MUSTCHECK bool double_commit(struct store_session *ss, struct err *err);
/* The answer is an error. */
bool double_fail(struct store_session *ss, int code, struct err *err);
/* ROLLBACK, as a script of its own. */
MUSTCHECK bool double_rollback(struct store_session *ss, struct err *err);
/* The session's transaction, begun if it is not. */
struct tx *double_tx(struct store_session *ss);
/* Takes a lock for the transaction; without one it is asked for only. wait: as long as a statement waits. */
MUSTCHECK bool double_lock(struct store_session *ss, enum lock_kind kind, uint64_t key, bool shared, bool wait,
                           struct err *err);
bool double_locked(const struct store_session *ss, enum lock_kind kind, uint64_t key, bool shared);

void double_met_lock(struct store_session *ss);
bool double_skips(const struct store_session *ss, bool met_again);
/* Which of the shards' rows somebody else holds; asked for only where locks are skipped. */
MUSTCHECK bool double_locked_shards(struct store_session *ss, bool skip, const struct shard_lease *leases, size_t count,
                                    bool locked[STORE_SHARDS_MAX], struct err *err);
/* Whether a lease is ours by what the table says at this instant. */
bool double_holds(const struct store_session *ss, const struct shard_lease *lease);
/* Locks the leases' shards, shared, for the transaction. *all: all are ours. */
MUSTCHECK bool double_fence(struct store_session *ss, const struct shard_lease *leases, size_t count, bool *all,
                            struct err *err);

#endif
