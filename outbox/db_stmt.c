/* SPDX-License-Identifier: MIT */
#include "outbox/db_stmt.h"

#include <string.h>

#include "core/base/clock.h"
#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/db_rows.h"
#include "outbox/next_id.h"
#include "outbox/server.h"

bool db_unexpected(struct err *err, const char *what) {
  return err_set(err, DB_E_PROTOCOL, "%s: the server's answer is not what the statement gives; %s", what,
                 db_error_cure(DB_E_PROTOCOL));
}

/* The columns that the answers of a script describe, in bytes. MySQL's tables have 4096 columns at most, and our widest
 * answer has some dozens. The library takes them all before it returns, and in twenty times as much memory. */
enum { COLUMNS_MAX = 256 * 1024 };

enum { PACKET_FREE = 1024 }; /* of max_allowed_packet, beside a statement */

/* Stands in all guards (guard.h), and in what the server says of one that does not hold. */
#define GUARD_NUMBER "9223372036854775807"

static bool too_many_columns(const char *what, struct err *err) {
  return err_set(err, DB_E_PROTOCOL,
                 "%s: the server describes the columns of its answer in more than %d KiB, which no statement gives; %s",
                 what, COLUMNS_MAX / 1024, db_error_cure(DB_E_PROTOCOL));
}

static bool failed(struct db_conn *conn, const char *what, struct err *err) {
  if (conn->received.exceeded)
    return too_many_columns(what, err);
  int code = server_error((int)mysql_errno(conn->mysql));
  if (code == DB_GUARD && !strstr(mysql_error(conn->mysql), GUARD_NUMBER)) {
    (void)db_failed(conn->mysql, conn->config, what, code, db_error_cure(DB_E_VALUE), err);
    err->code = DB_E_VALUE;
    return false;
  }
  const char *cure = conn->role == DB_MIGRATE ? db_error_cure_migrating(code) : db_error_cure(code);
  return db_failed(conn->mysql, conn->config, what, code, cure, err);
}

static bool endless(struct db_conn *conn, const char *what, struct err *err) {
  db_api_interrupt(conn->mysql); /* the rest is not waited for */
  return err_set(err, DB_E_PROTOCOL, "%s: the server's answer has more than %llu MiB, which no statement gives; %s",
                 what, (unsigned long long)(conn->max_answer >> 20), db_error_cure(DB_E_PROTOCOL));
}

/* The next part of an answer is waited for. sent: bytes that are to leave before. */
static void limit(struct db_conn *conn, size_t sent, bool rows) {
  if (conn->limit_ms)
    db_watch_limit(&conn->watch, conn->limit_ms + (int64_t)(sent / DB_WATCH_SLOWEST), rows);
}

/* Takes the result of the statement that the connection has just finished. */
static bool take(struct db_conn *conn, const char *what, struct db_result *result, struct err *err) {
  MYSQL_RES *set = mysql_use_result(conn->mysql);
  *result = (struct db_result){.conn = conn, .set = set};
  if (!set && mysql_field_count(conn->mysql) != 0)
    return failed(conn, what, err);
  if (!set) {
    result->count = mysql_affected_rows(conn->mysql);
    return true;
  }
  result->columns = mysql_num_fields(set);
  conn->received.left = conn->max_answer + DB_API_READ_AHEAD;
  limit(conn, 0, true);
  switch (db_rows_take(conn->mysql, set, conn->max_answer, &result->rows)) {
  case DB_ROWS_ALL:
    result->count = db_rows_count(result->rows);
    return true;
  case DB_ROWS_ENDLESS:
    endless(conn, what, err);
    break;
  case DB_ROWS_NO_MEMORY:
    err_set(err, DB_E_NO_MEMORY, "%s: no memory for the answer; %s", what, db_error_cure(DB_E_NO_MEMORY));
    break;
  case DB_ROWS_FAILED: /* a row that is not whole yet may be too large already */
    if (conn->received.exceeded)
      endless(conn, what, err);
    else
      failed(conn, what, err);
  }
  mysql_free_result(set);
  return false;
}

static bool run_script(struct db_conn *conn, const struct text *script, const char *what, struct db_result *results,
                       size_t n, struct err *err) {
  conn->untouched = 0;
  if (script->failed)
    return err_set(err, DB_E_NO_MEMORY, "%s: no memory for the statement; %s", what, db_error_cure(DB_E_NO_MEMORY));
  if (script->len + PACKET_FREE > conn->max_packet && conn->max_packet)
    return err_set(err, DB_E_PACKET,
                   "%s: a statement of %zu bytes, and the %d that are kept free beside it, are over the server's "
                   "max_allowed_packet of %llu; %s",
                   what, script->len, PACKET_FREE, (unsigned long long)conn->max_packet, db_error_cure(DB_E_PACKET));
  if (!db_is_sound(conn, what, err))
    return false;
  size_t got = 0;
  conn->untouched = SIZE_MAX;
  conn->received.left = COLUMNS_MAX + n * DB_API_READ_AHEAD;
  limit(conn, script->len, false);
  int rc = mysql_real_query(conn->mysql, script->data, script->len);
  bool taken = true;
  while (rc == 0 && got < n) {
    uint64_t for_columns = conn->received.left;
    taken = take(conn, what, &results[got], err);
    if (!taken)
      break;
    got++;
    conn->received.left = for_columns;
    if (mysql_more_results(conn->mysql))
      limit(conn, 0, false);
    rc = mysql_next_result(conn->mysql);
  }
  if (rc == -1 && got == n)
    return true;
  bool server_said_no = mysql_errno(conn->mysql) != 0;
  if (taken && server_said_no)
    failed(conn, what, err);
  else if (taken)
    db_unexpected(err, what);
  if (db_error_ends_script(err->code))
    conn->untouched = got + 1;
  db_results_free(results, got);
  if (taken && !server_said_no)
    db_api_interrupt(conn->mysql); /* there may be no end of what is left */
  return false;
}

static bool run_limited(struct db_conn *conn, const struct text *script, const char *what, struct db_result *results,
                        size_t n, struct err *err) {
  bool ok = run_script(conn, script, what, results, n, err);
  if (conn->limit_ms == 0 || !db_watch_done(&conn->watch) || ok) /* what was cut off behind its end is whole */
    return ok;
  return err_set(err, DB_E_LATE, "%s: the server has not answered in full within %.3g s (database.read_timeout)%s; %s",
                 what, (double)conn->limit_ms / 1e3,
                 conn->limit_ms > conn->config->read_timeout_ms ? ", and for the lock of migrations" : "",
                 db_error_cure(DB_E_LATE));
}

bool db_script(struct db_conn *conn, const struct text *script, const char *what, struct db_result *results, size_t n,
               struct err *err) {
  int64_t began_us = clock_mono_us();
  bool ok = run_limited(conn, script, what, results, n, err);
  if (ok || err->code != DB_NO_ROW_ID)
    return ok;
  size_t untouched = conn->untouched;
  next_id_explain(conn, what, clock_mono_us() - began_us, err);
  conn->untouched = untouched;
  return false;
}

bool db_run(struct db_conn *conn, const char *statement, const char *what, struct err *err) {
  struct text script = {.data = (char *)statement, .len = strlen(statement)};
  struct db_result result = {0};
  if (!db_script(conn, &script, what, &result, 1, err))
    return false;
  db_results_free(&result, 1);
  return true;
}

void db_results_free(struct db_result *results, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (results[i].set)
      mysql_free_result(results[i].set);
    results[i].set = NULL;
    db_rows_free(&results[i].rows);
  }
}

bool db_is_sound(const struct db_conn *conn, const char *what, struct err *err) {
  return !conn->unsound || db_unexpected(err, what);
}

bool db_next(struct db_result *result, struct db_row *row, unsigned columns) {
  if (!result->rows || (columns && result->columns != columns)) {
    if (result->conn)
      result->conn->unsound = true;
    return false;
  }
  const struct db_stored_row *stored = db_rows_next(result->rows);
  if (!stored)
    return false;
  *row = (struct db_row){stored->fields, stored->lengths};
  result->fetched++;
  return true;
}

bool db_u64(const struct db_row *row, unsigned field, uint64_t max, uint64_t *out) {
  return number_parse(row->fields[field], row->lengths[field], max, out);
}

bool db_time(const struct db_row *row, unsigned field, int64_t *us) {
  return row->fields[field] && time_parse(row->fields[field], row->lengths[field], us);
}

bool db_copy(const struct db_row *row, unsigned field, char *out, size_t cap) {
  size_t len = row->fields[field] ? row->lengths[field] : 0;
  if (len >= cap)
    return false;
  if (len)
    memcpy(out, row->fields[field], len);
  out[len] = '\0';
  return true;
}
