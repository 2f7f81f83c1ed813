/* SPDX-License-Identifier: MIT */
#include "outbox/db_patience.h"

#include <errmsg.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/db_stmt.h"
#include "query.h"

#define WHAT "asking whether the migration goes on"

enum {
  LOOKS = 2
}; /* in turn that find nothing: the first may have met the moment between a statement's end and ours */

/* False: it does not say. */
static bool ask(struct db_patience *patience, bool *at_work, struct err *err) {
  const struct database_config *config = patience->conn->config;
  struct text script = {0};
  struct db_result result;
  struct db_row row;
  char command[32] = "";
  *at_work = true;
  if (!patience->second && !db_open(config, DB_MIGRATE, "migrate-watch", &patience->second, err))
    return false;
  text_statement(&script, query_schema_at_work, config->table, ARGS(STRING("name", config->table)));
  bool ok = db_script(patience->second, &script, WHAT, &result, 1, err);
  text_free(&script);
  if (!ok)
    return false;
  ok = (db_next(&result, &row, 1) && db_copy(&row, 0, command, sizeof command)) || db_unexpected(err, WHAT);
  db_results_free(&result, 1);
  /* Behind a balancer another server may have answered, which knows nothing of that lock. */
  bool same = !patience->conn->is_cluster && strcmp(patience->conn->server, patience->second->server) == 0;
  *at_work = !same || (*command && strcmp(command, "Sleep") != 0);
  return ok;
}

/* Whether the server lives, and is at work for us as far as is known. */
static bool look(struct db_patience *patience, struct err *why) {
  struct err err = {0};
  bool at_work;
  if (ask(patience, &at_work, &err)) {
    if (!at_work)
      err_set(why, CR_SERVER_LOST,
              "the server has done what it was to do, or its session has ended; the answer was lost");
    return at_work;
  }
  db_close(&patience->second);
  bool refused = db_error_ends_script(err.code) || (err.code < CR_MIN_ERROR && db_error_class(err.code) == DB_DOWN);
  if (!refused)
    err_set(why, err.code, "the server does not answer on another connection either: %s", err.text);
  return refused;
}

static void run(void *arg) {
  struct db_patience *patience = arg;
  const int64_t pause_us = patience->conn->config->read_timeout_ms * 1000;
  int missed = 0;
  mutex_lock(&patience->lock);
  while (!patience->over && missed < LOOKS) {
    int64_t deadline = clock_mono_us() + pause_us;
    while (!patience->over && clock_mono_us() < deadline)
      (void)cond_wait_until(&patience->changed, &patience->lock, deadline);
    if (patience->over)
      break;
    mutex_unlock(&patience->lock);
    missed = look(patience, &patience->why) ? 0 : missed + 1;
    mutex_lock(&patience->lock);
  }
  if (!patience->over) {
    (void)shutdown(patience->socket, SHUT_RDWR);
    patience->cut = true;
  }
  mutex_unlock(&patience->lock);
  db_close(&patience->second);
}

void db_patience_begin(struct db_patience *patience, struct db_conn *conn) {
  *patience = (struct db_patience){.conn = conn, .limit_ms = conn->limit_ms};
  mutex_init(&patience->lock);
  cond_init(&patience->changed);
  patience->socket = fcntl(db_api_socket(conn->mysql), F_DUPFD_CLOEXEC, 0);
  /* Where no thread is to be had, an ALTER that may wait for ever is better than none. */
  patience->started = patience->socket >= 0 && thread_start(&patience->thread, "db-patience", run, patience);
  conn->limit_ms = 0;
}

bool db_patience_end(struct db_patience *patience, bool ok, struct err *err) {
  patience->conn->limit_ms = patience->limit_ms;
  mutex_lock(&patience->lock);
  patience->over = true;
  cond_signal(&patience->changed);
  mutex_unlock(&patience->lock);
  if (patience->started)
    thread_join(&patience->thread);
  cond_destroy(&patience->changed);
  mutex_destroy(&patience->lock);
  if (patience->socket >= 0)
    close(patience->socket);
  if (ok || !patience->cut)
    return ok;
  return err_set(err, CR_SERVER_LOST,
                 "waiting for the server was given up: %s; it may be at work still, which SHOW PROCESSLIST tells. When "
                 "it is not, run `duebox migrate` again: it goes on where it was",
                 patience->why.text);
}
