/* SPDX-License-Identifier: MIT
 *
 * outbox/write.h - decisions as statements: a few for any number of rows, inside whatever transaction is open.
 *
 * Rows that get the same values are written by a list of their ids (write_group.h), finished rows deleted by one; what
 * has values of its own travels as one JSON text per statement (JSON_TABLE). Measured on MariaDB 10.11 per 1000 rows:
 * DELETE by list 10 ms, UPDATE by list 20 ms and by JSON_TABLE 33 ms (a UNION ALL of values or ELT and INTERVAL take
 * the same, CASE more), lines of attempts by list 8 ms and by JSON_TABLE 18 ms. Every statement is guarded by id,
 * message id, shard, state and attempt and has a row count to expect. A guarded writer's script ends where a count is
 * not met (guard.h); otherwise writer.differs says so, and then the transaction must not be committed. A list has the
 * ids of its rows, and one text with what each is known by, version and message id, at the place of its id: compared
 * with that, a row costs the server a quarter of what it costs to find it in a list of such texts.
 */
#ifndef OUTBOX_WRITE_H
#define OUTBOX_WRITE_H

#include "core/store.h"
#include "outbox/session.h"

enum { ROWS_ANY = -1 }; /* a statement whose row count says nothing */

struct writer {
  struct store_session *ss;
  const char *what;
  struct decision *const *decisions; /* sorted by id */
  size_t count;
  const char *fence;         /* SQL condition for statements that are their own transaction; "TRUE" inside another */
  const struct text *shards; /* "1,2": the shards of the decisions */
  bool no_wait;              /* the rows are locked: wait for nothing more */
  bool versioned;            /* the rows are not locked: they are to be in the version that was decided about */
  bool guarded;              /* in a transaction: a statement that finds other rows ends the script with DB_GUARD */
  int64_t expected[DB_RESULTS_MAX];
  size_t statements; /* in the session's script */
  bool differs;
  bool fenced; /* write_commit: it was the guard of the leases that failed */
};

/* Adds everything that the decisions ask for to the session's script, sending parts of it when it grows long. */
MUSTCHECK bool write_decisions(struct writer *w, struct err *err);
/* Adds lines of tasks whose copies have left and whose rows are gone. All have `sent`. */
MUSTCHECK bool write_removed(struct writer *w, struct decision *const *gone, size_t count, struct err *err);
/* Counts a statement that the caller has put into the script. */
void write_expect(struct writer *w, int64_t rows);
/* Sends what is in the script, compares row counts and begins an empty script. */
MUSTCHECK bool write_flush(struct writer *w, struct err *err);
/* Of rows that nobody else can have changed: what failed a guard, or gave other counts, is a refusal. Returns false. */
bool write_not_taken(const char *what, struct err *err);
/* Sends what is in the script with a guard for these leases, and commits if everything is as expected. */
MUSTCHECK bool write_commit(struct writer *w, const struct shard_lease *leases, size_t count, struct err *err);

/* Whether the decision can apply to a row in the state it says. */
bool write_possible(const struct decision *decision);
/* Has less of the decision written, which the server refused with that error: the next form that makes a difference.
 * False when there is none. */
bool write_reduce(struct decision *decision, int code);
/* The tables beside that of the tasks that it is written to, as bits (side_tables.h). */
unsigned write_tables(const struct decision *decision);
/* How many statements it takes by itself. */
unsigned write_statements(const struct decision *decision);

#endif
