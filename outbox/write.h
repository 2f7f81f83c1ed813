/* SPDX-License-Identifier: MIT
 *
 * outbox/write.h - decisions as statements: a few for any number of rows, inside whatever transaction is open.
 *
 * Rows that get the same values are written by a list of their ids (write_group.h), finished rows deleted by one; what
 * has values of its own travels as one JSON text per statement (JSON_TABLE). Measured on MariaDB 10.11 per 1000 rows:
 * DELETE by list 10 ms, UPDATE by list 20 ms and by JSON_TABLE 33 ms (a UNION ALL of values or ELT and INTERVAL take
 * the same, CASE more), lines of attempts by list 8 ms and by JSON_TABLE 18 ms. Every statement is guarded by shard,
 * state and attempt and has a row count to expect; writer.differs says that a count was not met, and then the
 * transaction must not be committed.
 */
#ifndef OUTBOX_WRITE_H
#define OUTBOX_WRITE_H

#include "core/store.h"
#include "outbox/session.h"

struct writer {
  struct store_session *ss;
  const char *what;
  struct decision *const *decisions; /* sorted by id */
  size_t count;
  const char *fence;         /* SQL condition for statements that are their own transaction; "TRUE" inside another */
  const struct text *shards; /* "1,2": the shards of the decisions */
  bool no_wait;              /* the rows are locked: wait for nothing more */
  uint64_t expected[DB_RESULTS_MAX];
  size_t statements; /* in the session's script */
  bool differs;
};

/* Adds everything that the decisions ask for to the session's script, sending parts of it when it grows long. */
MUSTCHECK bool write_decisions(struct writer *w, struct err *err);
/* Counts a statement that the caller has put into the script. */
void write_expect(struct writer *w, uint64_t rows);
/* Sends what is in the script, compares row counts and begins an empty script. */
MUSTCHECK bool write_flush(struct writer *w, struct err *err);

/* Whether the decision can apply to a row in the state it says. */
bool write_possible(const struct decision *decision);
/* How many statements it takes by itself. */
unsigned write_statements(const struct decision *decision);

#endif
