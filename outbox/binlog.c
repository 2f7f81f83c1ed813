/* SPDX-License-Identifier: MIT
 *
 * outbox/binlog.c - follows the server's binlog and tells what may be due earlier than anybody knew.
 *
 * It begins at the log's present end each time, so nothing depends on a position being kept or a file still being
 * there; what it missed is found by looking at the table. A transaction's rows are told at its commit, which comes here
 * a moment before they can be seen. A connection of its own, for one thread; it writes nothing, not even that it was
 * there: no replica is registered, and semi-synchronous replication is never asked for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/random.h"
#include "outbox/binlog_row.h"
#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "outbox/server.h"
#include "query.h"

#define WHAT "following the binlog"

enum { HEARTBEAT_MAX_MS = 2000, HEARTBEATS = 3 /* before the read time-out */ };
enum { FILE_MAX = 512, PLACE_MAX = 512, DENIED = 1227 };

struct store_watch {
  struct outbox *outbox;
  unsigned generation; /* of the store when conn was opened */
  const char *host;
  int64_t max_payload;
  struct db_conn *conn;
  struct db_tail *tail;
  char user[256]; /* as GRANT wants it */
  char database[256];
  struct binlog_columns columns;
  struct binlog_table table;
  struct store_hint hints[STORE_HINTS_MAX]; /* of the transaction that is being read */
  size_t count;
};

/* Runs one statement of sql/queries. */
static bool ask(struct store_watch *watch, const char *statement, const struct sql_arg *args, struct db_result *result,
                struct err *err) {
  struct text script = {0};
  text_statement(&script, statement, watch->outbox->config->table, args);
  atomic_fetch_add_explicit(&watch->outbox->statements, 1, memory_order_relaxed);
  bool ok = db_script(watch->conn, &script, WHAT, result, 1, err);
  text_free(&script);
  return ok;
}

static bool look_at_server(struct store_watch *watch, struct err *err) {
  struct db_result result;
  struct db_row row;
  uint64_t on = 0;
  if (!ask(watch, query_watch_server, NO_ARGS, &result, err))
    return false;
  bool ok =
      (db_next(&result, &row, 3) && db_u64(&row, 0, 1, &on) && db_copy(&row, 1, watch->user, sizeof watch->user) &&
       db_copy(&row, 2, watch->database, sizeof watch->database)) ||
      db_unexpected(err, WHAT);
  db_results_free(&result, 1);
  if (ok && !on)
    return err_set(err, DB_E_BINLOG,
                   "the server writes no binlog; for instant wake-up set log_bin and binlog_format = ROW in its "
                   "configuration and restart it");
  return ok;
}

/* MariaDB tells them in two rows, each with its name; MySQL in one. */
static bool find_end(struct store_watch *watch, char *file, uint64_t *position, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool ok = true, mysql = server_is_mysql(watch->conn);
  file[0] = '\0';
  *position = 0;
  if (!ask(watch, mysql ? query_watch_position_mysql : query_watch_position, NO_ARGS, &result, err))
    return false;
  while (ok && db_next(&result, &row, mysql ? 5 : 2))
    if (mysql)
      ok = db_copy(&row, 0, file, FILE_MAX) && db_u64(&row, 1, UINT64_MAX, position);
    else
      ok = row.fields[0] && strcasecmp(row.fields[0], "Binlog_snapshot_file") == 0
               ? db_copy(&row, 1, file, FILE_MAX)
               : db_u64(&row, 1, UINT64_MAX, position);
  db_results_free(&result, 1);
  if (!ok || !file[0])
    return db_unexpected(err, WHAT);
  if (*position > UINT32_MAX) /* more than the request has room for; the next file begins anew */
    return err_set(err, DB_E_BINLOG, "the binlog file %s is larger than 4 GiB; run FLUSH BINARY LOGS", file);
  return true;
}

static int field_named(const char *column) {
#define NAME(symbol, column, type) [BINLOG_##symbol] = (column),
  static const char *const names[BINLOG_FIELDS] = {BINLOG_FIELD_LIST(NAME)};
#undef NAME
  for (int i = 0; i < BINLOG_FIELDS; i++)
    if (column && strcasecmp(names[i], column) == 0)
      return i;
  return -1;
}

static bool find_columns(struct store_watch *watch, struct err *err) {
  struct binlog_columns *columns = &watch->columns;
  struct db_result result;
  struct db_row row;
  columns->count = 0;
  for (int i = 0; i < BINLOG_FIELDS; i++)
    columns->at[i] = -1;
  if (!ask(watch, query_watch_columns, ARGS(STRING("name", watch->outbox->config->table)), &result, err))
    return false;
  for (; db_next(&result, &row, 1); columns->count++) {
    int field = field_named(row.fields[0]);
    if (field >= 0)
      columns->at[field] = (int)columns->count;
  }
  db_results_free(&result, 1);
  return true;
}

/* A replica that the server has never heard of: one of its own has a small number, if any. */
static uint32_t server_id(void) { return (uint32_t)random_u64() | UINT32_C(0x80000000); }

static uint64_t heartbeat_ns(const struct database_config *config) {
  int64_t ms = config->read_timeout_ms / HEARTBEATS;
  return (uint64_t)(ms < HEARTBEAT_MAX_MS ? ms : HEARTBEAT_MAX_MS) * 1000000;
}

static void name_the_right(const struct store_watch *watch, struct err *err) {
  if (err->code == DENIED)
    (void)err_set(err, DENIED,
                  "the daemon's user may not read the binlog; for instant wake-up run: "
                  "GRANT %s ON *.* TO %s",
                  server_binlog_rights(watch->conn), watch->user);
}

/* An UPDATE holds its row twice; the client library has some copies of an event. Rows of other tables may be of any
 * size: what is larger ends the watch, and the next one begins behind it. */
static size_t largest_event(int64_t max_payload) {
  enum { LEAST = 16 << 20, MOST = 1 << 30, IMAGES = 2, ROW_ROOM = 2 << 20 };
  size_t both = IMAGES * ((size_t)max_payload + ROW_ROOM);
  return both < LEAST ? LEAST : both > MOST ? MOST : both;
}

/* There is no end of a log, but of each event: where nothing happens the server says so again and again. */
static bool next_event(struct store_watch *watch, struct db_event *event, struct err *err) {
  struct db_conn *conn = watch->conn;
  db_watch_limit(&conn->watch, conn->limit_ms, true);
  bool ok = db_api_tail_next(watch->tail, event, err);
  if (!db_watch_done(&conn->watch) || ok)
    return ok;
  return err_set(err, DB_E_LATE, WHAT ": an event did not come in full within %.3g s (database.read_timeout); %s",
                 (double)conn->limit_ms / 1e3, db_error_cure(DB_E_LATE));
}

/* The position comes first: what alters the table after that is in the log that follows. */
static bool begin(struct store_watch *watch, struct err *err) {
  const struct database_config *config = watch->outbox->config;
  char file[FILE_MAX];
  uint64_t position;
  struct db_result result;
  struct db_event event;
  if (!db_open(config, DB_DAEMON, "binlog", &watch->conn, err))
    return false;
  MYSQL *mysql = watch->conn->mysql;
  const char *hello = server_is_mysql(watch->conn) ? query_watch_begin_mysql : query_watch_begin;
  if (!db_api_can_tail(mysql, err) || !look_at_server(watch, err) || !find_end(watch, file, &position, err) ||
      !find_columns(watch, err) || !ask(watch, hello, ARGS(UNSIGNED("period", heartbeat_ns(config))), &result, err))
    return false;
  db_results_free(&result, 1);
  /* Only the first event shows that we may: it says which file this is. */
  db_watch_limit(&watch->conn->watch, watch->conn->limit_ms, false);
  bool follows =
      db_api_tail(mysql, config, file, position, server_id(), largest_event(watch->max_payload), &watch->tail, err);
  watch->conn->received.left = UINT64_MAX; /* from here on each event has its limit, and there is no end of them */
  if (follows && next_event(watch, &event, err))
    return true;
  name_the_right(watch, err);
  return false;
}

enum store_status ops_watch(void *store, const char *host, int64_t max_payload, struct store_watch **out,
                            struct err *err) {
  struct store_watch *watch = *out = calloc(1, sizeof *watch);
  if (!watch) {
    err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory");
    return STORE_DOWN;
  }
  watch->outbox = store;
  watch->host = host;
  watch->max_payload = max_payload;
  watch->generation = atomic_load(&watch->outbox->generation);
  if (begin(watch, err))
    return STORE_OK;
  ops_watch_close(out);
  return db_class_status(db_error_class(err->code));
}

void ops_watch_end(struct store_watch *watch) { db_watch_interrupt(&watch->conn->watch); }

void ops_watch_close(struct store_watch **watch) {
  if (!*watch)
    return;
  db_api_tail_close(&(*watch)->tail);
  db_close(&(*watch)->conn);
  free(*watch);
  *watch = NULL;
}

/* --- events --- */

static bool same_group(const struct store_hint *a, const struct store_hint *b) {
  return a->shard == b->shard && a->priority == b->priority && strcmp(a->route, b->route) == 0;
}

/* One hint for each group of a transaction; when there are too many, one for all. */
static void add(struct store_watch *watch, const struct store_hint *hint) {
  size_t i = 0;
  while (i < watch->count && !same_group(&watch->hints[i], hint))
    i++;
  if (i == watch->count && watch->count == STORE_HINTS_MAX) {
    watch->hints[0] = (struct store_hint){.due_us = INT64_MIN};
    watch->count = 1;
    return;
  }
  if (i < watch->count && watch->hints[i].due_us <= hint->due_us)
    return;
  watch->hints[i] = *hint;
  if (i == watch->count)
    watch->count++;
}

static void add_general(struct store_watch *watch) { add(watch, &(struct store_hint){.due_us = INT64_MIN}); }

static bool is_named(struct duebox_bytes name, const char *text) {
  return name.len == strlen(text) && strncasecmp(name.data, text, name.len) == 0;
}

static void take_map(struct store_watch *watch, const struct db_event *event) {
  struct binlog_map map;
  if (!binlog_read_map(event->body, event->len, &map))
    return; /* its rows belong to no table that we know */
  if (is_named(map.database, watch->database) && is_named(map.table, watch->outbox->config->table))
    binlog_describe(&watch->table, &map, &watch->columns);
  else if (map.table_id == watch->table.id)
    watch->table.id = 0;
}

/* Rows that cannot be read, perhaps because their table is being altered, may still be due. */
static void take_rows(struct store_watch *watch, const struct db_event *event) {
  struct binlog_rows rows;
  struct binlog_image before, after;
  struct store_hint hint;
  enum binlog_step step = BINLOG_BROKEN;
  if (!binlog_read_rows(event->type, event->body, event->len, event->plain, &rows))
    rows.table_id = 0;
  if (rows.table_id == 0 || rows.table_id != watch->table.id)
    return;
  while ((step = binlog_next(&rows, &watch->table, &before, &after)) == BINLOG_ROW)
    if (binlog_tells(&rows, &before, &after, watch->host, &hint))
      add(watch, &hint);
  if (step == BINLOG_BROKEN)
    add_general(watch);
}

enum taken { MORE, TELL, ANEW };

static enum taken take_statement(struct store_watch *watch, const struct db_event *event) {
  switch (binlog_judge(event->statement, event->database, watch->database, watch->outbox->config->table)) {
  case BINLOG_CHANGE:
    add_general(watch);
    return MORE; /* its commit follows */
  case BINLOG_DEFINITION:
    return ANEW;
  case BINLOG_NOTHING:
    break;
  }
  return watch->count && is_named(event->statement, "COMMIT") ? TELL : MORE;
}

static enum taken take(struct store_watch *watch, const struct db_event *event) {
  if (binlog_adds_rows(event->type)) {
    take_rows(watch, event);
    return MORE;
  }
  switch (event->type) {
  case BINLOG_TABLE_MAP:
    take_map(watch, event);
    return MORE;
  case BINLOG_QUERY:
  case BINLOG_QUERY_COMPRESSED:
    return take_statement(watch, event);
  case BINLOG_FORMAT: /* the server has started anew, and so have its numbers of tables */
    watch->table.id = 0;
    return MORE;
  case BINLOG_PACKED: /* it is not unpacked: anything may be in it */
  case BINLOG_INCIDENT:
    add_general(watch);
    return TELL;
  case BINLOG_XID:
  case BINLOG_XA_PREPARE:
    return watch->count ? TELL : MORE;
  case BINLOG_HEARTBEAT:
    return TELL;
  default:
    return MORE;
  }
}

enum store_status ops_watch_next(struct store_watch *watch, const struct store_hint **hints, size_t *count,
                                 struct err *err) {
  enum taken taken = MORE;
  struct db_event event;
  watch->count = 0;
  while (taken == MORE) {
    if (!next_event(watch, &event, err)) {
      enum store_status status = db_class_status(db_error_class(err->code));
      return status == STORE_BUSY ? STORE_DOWN : status;
    }
    taken = take(watch, &event);
  }
  if (taken == ANEW) {
    err_set(err, 0, "the table is being altered");
    return STORE_BUSY;
  }
  if (atomic_load(&watch->outbox->generation) != watch->generation) {
    err_set(err, DB_E_READ_ONLY, WHAT ": the server had become read-only");
    return STORE_DOWN;
  }
  *hints = watch->hints;
  *count = watch->count;
  return STORE_OK;
}
