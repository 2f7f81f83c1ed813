/* SPDX-License-Identifier: MIT */
#include "outbox/db_stmt.h"

#include <string.h>

#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/server.h"

bool db_unexpected(struct err *err, const char *what) {
  return err_set(err, DB_E_PROTOCOL, "%s: the server's answer is not what the statement gives; %s", what,
                 db_error_cure(DB_E_PROTOCOL));
}

static bool failed(struct db_conn *conn, const char *what, struct err *err) {
  int code = server_error((int)mysql_errno(conn->mysql));
  const char *cure = conn->role == DB_MIGRATE ? db_error_cure_migrating(code) : db_error_cure(code);
  return err_set(err, code, "%s: %s (error %d)%s%s", what, mysql_error(conn->mysql), code, *cure ? "; " : "", cure);
}

/* Takes the result of the statement that the connection has just finished. */
static bool take(struct db_conn *conn, struct db_result *result) {
  *result = (struct db_result){.rows = mysql_store_result(conn->mysql)};
  if (!result->rows && mysql_field_count(conn->mysql) != 0)
    return false;
  result->count = result->rows ? mysql_num_rows(result->rows) : mysql_affected_rows(conn->mysql);
  return true;
}

/* Reads away what is left so that the connection can be used again. */
static void drain(struct db_conn *conn) {
  while (mysql_next_result(conn->mysql) == 0) {
    MYSQL_RES *rows = mysql_store_result(conn->mysql);
    if (rows)
      mysql_free_result(rows);
  }
}

bool db_script(struct db_conn *conn, const struct text *script, const char *what, struct db_result *results, size_t n,
               struct err *err) {
  if (script->failed)
    return err_set(err, DB_E_NO_MEMORY, "%s: no memory for the statement; %s", what, db_error_cure(DB_E_NO_MEMORY));
  if (script->len + 1024 > conn->max_packet && conn->max_packet)
    return err_set(err, DB_E_PACKET, "%s: a statement of %zu bytes is over the server's max_allowed_packet of %llu; %s",
                   what, script->len, (unsigned long long)conn->max_packet, db_error_cure(DB_E_PACKET));
  size_t got = 0;
  int rc = mysql_real_query(conn->mysql, script->data, script->len);
  while (rc == 0 && got < n && take(conn, &results[got])) {
    got++;
    rc = mysql_next_result(conn->mysql);
  }
  if (rc == -1 && got == n)
    return true;
  bool server_said_no = mysql_errno(conn->mysql) != 0;
  if (server_said_no)
    failed(conn, what, err);
  else
    db_unexpected(err, what);
  db_results_free(results, got);
  if (!server_said_no)
    drain(conn);
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
    if (results[i].rows)
      mysql_free_result(results[i].rows);
    results[i].rows = NULL;
  }
}

bool db_next(struct db_result *result, struct db_row *row) {
  if (!result->rows)
    return false;
  row->fields = mysql_fetch_row(result->rows);
  if (!row->fields)
    return false;
  row->lengths = mysql_fetch_lengths(result->rows);
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
