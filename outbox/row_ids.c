/* SPDX-License-Identifier: MIT
 *
 * outbox/row_ids.c - row ids that come to their end, and how the table gets ordinary ones again.
 *
 * Nothing in a table keeps a client from choosing the next id: who may INSERT may SET insert_id, in no CHECK, default
 * or generated column may an AUTO_INCREMENT column be named, and the counter stays where it is when the row is rolled
 * back or deleted. After an id near the end every INSERT of everybody fails (error 1467). So the counter is put right:
 * rows with far ids get ordinary ones, then the counter follows the largest. Two daemons may do this at once.
 */
#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "outbox/server.h"
#include "query.h"

/* Far is what no counter that begins with 1 reaches. Rows that get their ids from a counter that was put just below
 * `end` are beyond `far` too, so those that are moved never take it there again. */
static const uint64_t far = UINT64_C(1) << 62, end = UINT64_C(1) << 63;

enum { MOVES = 200 }; /* of up to 1000 rows, as in sql/queries/ids_move.sql; the next time goes on */
enum { RESETS = 50 }; /* one after the other; a moment without a transaction that has touched the table is enough */

struct row_ids_unit {
  bool reset;
};

/* One number; 0 for NULL. */
static bool read_number(struct store_session *ss, const char *what, uint64_t *number, struct err *err) {
  struct db_result result;
  struct db_row row;
  if (!session_send(ss, what, &result, 1, err))
    return false;
  *number = 0;
  bool ok =
      !db_next(&result, &row, 1) || !row.fields[0] || db_u64(&row, 0, UINT64_MAX, number) || db_unexpected(err, what);
  db_results_free(&result, 1);
  return ok;
}

static bool move_rows(struct store_session *ss, struct err *err) {
  uint64_t moved = 1;
  for (int i = 0; i < MOVES && moved; i++) {
    session_begin(ss);
    session_add(ss, query_ids_move, ARGS(UNSIGNED("far", far)));
    if (!session_change(ss, "giving rows ordinary ids", &moved, err))
      return false;
  }
  return true;
}

static bool reset_counter(struct store_session *ss, struct err *err) {
  uint64_t ignored;
  for (int tries = 1;; tries++) {
    session_begin(ss);
    session_add(ss, query_ids_reset, NO_ARGS);
    if (session_change(ss, "putting the row ids' counter back", &ignored, err))
      return true;
    if (err->code != DB_LOCK_WAIT || tries == RESETS || server_is_mysql(ss->conn)) /* that one waits */
      return false;
  }
}

static bool put_right(struct store_session *ss, void *arg, struct err *err) {
  struct row_ids_unit *u = arg;
  uint64_t next, is_far;
  session_begin(ss);
  session_add(ss, query_ids_next, ARGS(STRING("name", ss->outbox->config->table)));
  if (!read_number(ss, "reading the next row id", &next, err))
    return false;
  if (next < end)
    return true;
  if (!move_rows(ss, err))
    return false;
  session_begin(ss);
  session_add(ss, query_ids_far, ARGS(UNSIGNED("far", far)));
  if (!read_number(ss, "looking for far row ids", &is_far, err))
    return false;
  if (is_far)
    return true; /* of tasks that are on their way: once they are over */
  u->reset = reset_counter(ss, err);
  return u->reset;
}

enum store_status ops_row_ids(struct store_session *ss, bool *reset, struct err *err) {
  struct row_ids_unit unit = {0};
  enum store_status status = session_try(ss, "row ids", put_right, &unit, err);
  *reset = unit.reset;
  return status;
}
