/* SPDX-License-Identifier: MIT */
#include "outbox/server.h"

#include <string.h>

#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/db_stmt.h"
#include "query.h"

bool server_is_mysql(const struct db_conn *conn) {
  const char *version = mysql_get_server_info(conn->mysql);
  return version && !strstr(version, "MariaDB");
}

/* MySQL tells where its log ends only to those who have the second one. */
const char *server_binlog_rights(const struct db_conn *conn) {
  return server_is_mysql(conn) ? "REPLICATION SLAVE, REPLICATION CLIENT" : "REPLICATION SLAVE";
}

bool server_wait_for_cluster(struct db_conn *conn, struct err *err) {
  /* Before SELECT and START TRANSACTION (1), UPDATE and DELETE (2), INSERT (4). */
  return !conn->is_cluster || db_run(conn, "SET SESSION wsrep_sync_wait = 7", "joining a Galera cluster", err);
}

/* BEGIN NOT ATOMIC is MariaDB's. */
static bool is_undone_by_others(const struct db_conn *conn) { return conn->is_cluster && !server_is_mysql(conn); }

/* With autocommit what is left of a script would commit each statement by itself. */
const char *server_begin(const struct db_conn *conn) {
  return is_undone_by_others(conn) ? "BEGIN NOT ATOMIC SET autocommit = 0; START TRANSACTION; SAVEPOINT duebox; END"
                                   : "START TRANSACTION";
}

/* One statement, so that the transaction cannot become another one between its parts. */
const char *server_commit(const struct db_conn *conn) {
  return is_undone_by_others(conn)
             ? "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, "
               "MESSAGE_TEXT = 'the transaction was undone in favour of one of another node of the cluster'; "
               "RELEASE SAVEPOINT duebox; COMMIT; SET autocommit = 1; END"
             : "COMMIT";
}

bool server_undid_commit(const struct db_conn *conn, int code) {
  return is_undone_by_others(conn) && code == DB_DEADLOCK;
}

/* The answer may be that the transaction was undone before, and then nothing else was executed. */
bool server_roll_back(struct db_conn *conn, const char *what, struct err *err) {
  const char *statement = is_undone_by_others(conn) ? "BEGIN NOT ATOMIC ROLLBACK; SET autocommit = 1; END" : "ROLLBACK";
  return db_run(conn, statement, what, err) ||
         (server_undid_commit(conn, err->code) && db_run(conn, statement, what, err));
}

int server_error(int code) {
  enum { LOCK_NOWAIT = 3572, CHECK_VIOLATED = 3819, CHECK_VIOLATED_MARIADB = 4025 };
  switch (code) {
  case LOCK_NOWAIT:
    return DB_LOCK_WAIT;
  case CHECK_VIOLATED:
    return CHECK_VIOLATED_MARIADB;
  default:
    return code;
  }
}

/* Moves the ids of a result into a list; says how many there are. */
static bool take_ids(struct db_result *result, struct text *ids, size_t *count, const char *what, struct err *err) {
  struct db_row row;
  uint64_t id;
  text_clear(ids);
  for (*count = 0; db_next(result, &row, 1); ++*count) {
    if (!db_u64(&row, 0, UINT64_MAX, &id))
      return db_unexpected(err, what);
    text_puts(ids, *count ? "," : "");
    text_u64(ids, id);
  }
  if (*count == 0)
    text_puts(ids, "NULL");
  return true;
}

static size_t ids_in(const struct text *ids) {
  size_t n = 1;
  for (size_t i = 0; i < ids->len; i++)
    n += ids->data[i] == ',';
  return n;
}

bool server_lock_rows(struct store_session *ss, const char *what, const char *skip, struct text *ids, struct err *err) {
  return !*skip || !server_is_mysql(ss->conn) || server_lock_entries(ss, what, ids, err);
}

bool server_lock_entries(struct store_session *ss, const char *what, struct text *ids, struct err *err) {
  struct db_result results[2] = {0};
  if (ids->failed)
    return true;
  size_t asked = ids_in(ids), got;
  session_begin_transaction(ss);
  session_add(ss, query_lock_entries, ARGS(RAW("ids", *ids)));
  if (!session_send(ss, what, results, 2, err))
    return false;
  bool ok = take_ids(&results[1], ids, &got, what, err);
  db_results_free(results, 2);
  ss->continues = true;
  if (ok && got < asked)
    session_met_lock(ss);
  return ok;
}
