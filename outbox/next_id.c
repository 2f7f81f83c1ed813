/* SPDX-License-Identifier: MIT */
#include "outbox/next_id.h"

#include "outbox/db_error.h"
#include "outbox/db_stmt.h"
#include "query.h"

/* Ids from there on come to their end. Rows that get theirs from a counter that was put just below are beyond
 * STORE_ID_FAR too, so those that are moved never take it there again. */
static const uint64_t end = UINT64_C(1) << 63;

enum { LOCK_WAIT_US = 1000 * 1000 }; /* innodb_lock_wait_timeout of our sessions (db_conn.c) */

bool next_id_ends(uint64_t next) { return next >= end; }

bool next_id_read(struct db_conn *conn, const char *what, uint64_t *next, struct err *err) {
  struct text script = {0};
  struct db_result result;
  struct db_row row;
  const char *table = conn->config->table;
  text_statement(&script, query_ids_next, table, ARGS(STRING("name", table)));
  bool ok = db_script(conn, &script, what, &result, 1, err);
  text_free(&script);
  if (!ok)
    return false;
  *next = 0;
  ok = !db_next(&result, &row, 1) || !row.fields[0] || db_u64(&row, 0, UINT64_MAX, next) || db_unexpected(err, what);
  db_results_free(&result, 1);
  return ok;
}

/* Both may be true. What took so long has waited: it is tried again as after any lock, and tells then without waiting
 * that the counter has ended. */
void next_id_explain(struct db_conn *conn, const char *what, int64_t took_us, struct err *err) {
  uint64_t next = 0;
  if (took_us < LOCK_WAIT_US && (!next_id_read(conn, what, &next, err) || next_id_ends(next)))
    return;
  err_set(
      err, DB_LOCK_WAIT,
      "%s: no next row id (error %d): a statement of another session has the lock, which inserts many rows or takes "
      "long; where it lasts, look for it in SHOW PROCESSLIST",
      what, DB_NO_ROW_ID);
}
