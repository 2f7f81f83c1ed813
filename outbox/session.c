/* SPDX-License-Identifier: MIT */
#include "outbox/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "outbox/db_error.h"
#include "outbox/rights.h"
#include "outbox/server.h"
#include "outbox/side_tables.h"
#include "query.h"

enum { CONFLICT_TRIES = 5, LOST_TRIES = 2, SKIP_US = 3 * 1000 * 1000, IDLE_MARGIN_US = 1000 * 1000 };
enum { NAME_TRIES = 4, LIMIT_MIN_S = 3 };
enum { RIGHTS_US = 5 * 1000 * 1000 }; /* how often a session may begin anew to find out what it may do now */
enum { OUTLIVE_US = 2 * 1000 * 1000, OUTLIVE_STEP_NS = 2 * 1000 * 1000 };

/* The server has ended an idle connection, or is about to: connecting again costs less than a failed unit. */
static bool idle_too_long(const struct store_session *ss) {
  int64_t margin = ss->conn->idle_limit_us / 2;
  if (margin > IDLE_MARGIN_US)
    margin = IDLE_MARGIN_US;
  return clock_mono_us() - ss->used_us > ss->conn->idle_limit_us - margin;
}

/* Whether the server still executes what a session of before had sent. Another server may give the same number to
 * somebody else, so nothing but a bounded wait may follow from it. */
static bool is_executing(struct store_session *ss, bool *executing, struct err *err) {
  struct text script = {0};
  struct db_result result;
  text_puts(&script, "SELECT 1 FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep' AND ID = ");
  text_u64(&script, ss->lost_thread);
  bool ok = db_script(ss->conn, &script, "looking for the session of before", &result, 1, err);
  text_free(&script);
  if (ok) {
    *executing = result.count > 0;
    db_results_free(&result, 1);
  }
  return ok;
}

/* The server goes on executing a script whose client is gone, and keeps its locks: what it commits must not come after
 * the next unit has judged whether it did. */
static bool outlive_lost(struct store_session *ss, struct err *err) {
  bool executing = ss->lost_thread != 0;
  int64_t deadline = clock_mono_us() + OUTLIVE_US;
  while (executing && clock_mono_us() < deadline) {
    if (!is_executing(ss, &executing, err)) {
      db_close(&ss->conn);
      return false;
    }
    if (executing)
      nanosleep(&(struct timespec){.tv_nsec = OUTLIVE_STEP_NS}, NULL);
  }
  ss->lost_thread = 0;
  return true;
}

static void note_server(struct outbox *outbox, const struct db_conn *conn) {
  pthread_mutex_lock(&outbox->server_lock);
  if (*outbox->server && strcmp(outbox->server, conn->server) != 0)
    atomic_fetch_add(&outbox->changes, 1);
  snprintf(outbox->server, sizeof outbox->server, "%s", conn->server);
  pthread_mutex_unlock(&outbox->server_lock);
}

/* While it lives the server keeps a name for the session, by which others find it (silent.c). A server that refuses
 * such names lets it live without. */
static bool take_name(struct store_session *ss, struct err *err) {
  static const char what[] = "naming a session";
  struct outbox *outbox = ss->outbox;
  uint64_t taken = 0;
  for (int try = 0; *outbox->instance && !taken && try < NAME_TRIES; try++) {
    struct db_result result;
    struct db_row row;
    session_begin(ss);
    session_add(ss, query_session_name,
                ARGS(STRING("instance", outbox->instance),
                     UNSIGNED("number", atomic_fetch_add(&outbox->connections, 1) % SESSION_NAMES)));
    if (!session_send(ss, what, &result, 1, err))
      return db_error_class(err->code) == DB_REFUSED;
    bool ok = db_next(&result, &row, 1) && db_u64(&row, 0, 1, &taken);
    db_results_free(&result, 1);
    if (!ok)
      return db_unexpected(err, what);
  }
  return true;
}

/* How the database is reached as of now, for no longer than the session's own limit. */
static struct database_config config_now(const struct store_session *ss) {
  struct database_config config = *ss->outbox->config;
  if (ss->limit_ms && config.connect_timeout_ms > ss->limit_ms)
    config.connect_timeout_ms = ss->limit_ms;
  if (ss->limit_ms && config.read_timeout_ms > ss->limit_ms)
    config.read_timeout_ms = ss->limit_ms;
  return config;
}

static bool ensure_connected(struct store_session *ss, struct err *err) {
  unsigned generation = atomic_load(&ss->outbox->generation);
  if (ss->conn && (ss->generation != generation || idle_too_long(ss)))
    db_close(&ss->conn);
  ss->in_transaction = ss->continues = false;
  if (ss->conn)
    return true;
  ss->generation = generation;
  ss->config = config_now(ss);
  if (!db_open(&ss->config, DB_DAEMON, ss->purpose, &ss->conn, err) || !ss->conn)
    return false;
  if (!take_name(ss, err) || (!atomic_load(&ss->outbox->has_rights) && !rights_check(ss->conn, err))) {
    db_close(&ss->conn);
    return false;
  }
  atomic_store(&ss->outbox->has_rights, true);
  note_server(ss->outbox, ss->conn);
  ss->opened_us = clock_mono_us();
  return outlive_lost(ss, err);
}

/* xorshift64: spreads waits, nothing more. */
static uint64_t next_random(struct store_session *ss) {
  ss->random ^= ss->random << 13;
  ss->random ^= ss->random >> 7;
  ss->random ^= ss->random << 17;
  return ss->random;
}

/* 5 to 50 ms at first, twice as long each time, so that those who met do not meet again. */
static void wait_before(struct store_session *ss, int try) {
  uint64_t us = (5000 + next_random(ss) % 45000) << (try - 1);
  struct timespec wait = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
  nanosleep(&wait, NULL);
}

/* A right that was given since then may count in a new session only. */
static bool may_have_it_now(const struct store_session *ss, int code) {
  return db_error_is_right(code) && clock_mono_us() - ss->opened_us >= RIGHTS_US;
}

/* After a failed unit: leaves the session without an open transaction, by closing it where nothing else helps. */
static void clean_up(struct store_session *ss, int code) {
  enum db_class cls = db_error_class(code);
  struct err ignored; /* what matters is that the transaction is over; closing ends it as well */
  bool usable = cls == DB_CONFLICT || cls == DB_REFUSED || cls == DB_FULL;
  if (ss->committing) {
    ss->unknown = true;
    ss->lost_commits++;
    ss->lost_thread = ss->conn && !usable ? db_thread(ss->conn) : 0;
  }
  ss->committing = false;
  if (cls == DB_READ_ONLY)
    atomic_fetch_add(&ss->outbox->generation, 1);
  if (!usable || (ss->in_transaction && !session_rollback(ss, "rolling back", &ignored)) || may_have_it_now(ss, code))
    db_close(&ss->conn);
  ss->in_transaction = false;
}

/* A read waits for nothing but a table that somebody holds as a whole. */
static bool find_locked_beside(struct store_session *ss) {
  struct err ignored; /* the lock that was met is what counts */
  unsigned tables = ss->reads_beside & ~ss->locked_tables;
  return !tables || !ss->conn || side_tables_find(ss, tables, &ignored);
}

/* The next try may well succeed, but tasks have waited for this one, and it is not the last of its kind: nobody else
 * would say so. */
static void say_late(struct store_session *ss, const char *what, const struct err *err) {
  if (err->code == DB_E_LATE)
    log_repeated(&ss->late, LOG_LEVEL_WARN, "DUEBOX-DB-TROUBLE",
                 "%s: %s. It is tried again at once, on a new connection", what, err->text);
}

static enum store_status run(struct store_session *ss, const char *what, unit_fn *unit, void *arg, int tries,
                             struct err *err) {
  struct err local = {0};
  struct err *seen = err ? err : &local;
  int conflicts = 0, losses = 0;
  ss->unknown = ss->committing = false;
  ss->reads_beside = 0;
  for (;;) {
    bool connected = ensure_connected(ss, seen);
    bool done = connected && unit(ss, arg, seen) && db_is_sound(ss->conn, what, seen);
    ss->used_us = clock_mono_us();
    if (done) {
      ss->in_transaction = false;
      return STORE_OK;
    }
    enum db_class cls = db_error_class(seen->code);
    clean_up(ss, seen->code);
    if (seen->code == DB_LOCK_WAIT && !find_locked_beside(ss))
      db_close(&ss->conn);
    if (connected && cls == DB_CONFLICT && ++conflicts < tries) {
      wait_before(ss, conflicts);
    } else if (!connected || cls != DB_LOST || ++losses >= LOST_TRIES) {
      if (connected)
        err_wrap(seen, "%s", what);
      return db_class_status(cls);
    } else {
      say_late(ss, what, seen);
    }
  }
}

enum store_status session_run(struct store_session *ss, const char *what, unit_fn *unit, void *arg, struct err *err) {
  return run(ss, what, unit, arg, CONFLICT_TRIES, err);
}

enum store_status session_try(struct store_session *ss, const char *what, unit_fn *unit, void *arg, struct err *err) {
  return run(ss, what, unit, arg, 1, err);
}

static bool nothing(struct store_session *ss, void *arg, struct err *err) { return true; }

enum store_status session_open(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                               struct err *err) {
  *out = NULL;
  struct store_session *ss = calloc(1, sizeof *ss);
  if (!ss) {
    err_set(err, DB_E_NO_MEMORY, "opening a database session: out of memory");
    return STORE_REFUSED;
  }
  ss->outbox = store;
  ss->random = (uint64_t)clock_mono_us() ^ (uintptr_t)ss;
  snprintf(ss->purpose, sizeof ss->purpose, "%s", purpose);
  if (lease_ms)
    session_limit(ss, lease_ms);
  enum store_status status = session_run(ss, "opening a database session", nothing, NULL, err);
  if (status == STORE_REFUSED)
    session_close(&ss);
  *out = ss;
  return status;
}

void session_close(struct store_session **ss) {
  if (!*ss)
    return;
  db_close(&(*ss)->conn);
  text_free(&(*ss)->script);
  text_free(&(*ss)->part);
  free((*ss)->groups);
  free((*ss)->settings);
  free((*ss)->forms);
  free(*ss);
  *ss = NULL;
}

void session_limit(struct store_session *ss, int64_t lease_ms) {
  int64_t seconds = lease_ms / 3 / 1000;
  int64_t limit_ms = (seconds < LIMIT_MIN_S ? LIMIT_MIN_S : seconds) * 1000;
  if (limit_ms == ss->limit_ms)
    return;
  ss->limit_ms = limit_ms;
  db_close(&ss->conn); /* the limits of a connection are those that it was made with */
}

void session_begin(struct store_session *ss) { text_clear(&ss->script); }

void session_begin_transaction(struct store_session *ss) {
  text_clear(&ss->script);
  text_puts(&ss->script, ss->continues ? "DO 0" : server_begin(ss->conn));
  ss->in_transaction = true;
  ss->continues = false;
}

bool session_start(struct store_session *ss, const char *what, struct err *err) {
  ss->in_transaction = true;
  return db_run(ss->conn, server_begin(ss->conn), what, err);
}

void session_add(struct store_session *ss, const char *statement, const struct sql_arg *args) {
  text_statement(&ss->script, statement, ss->outbox->config->table, args);
}

void session_add_no_wait(struct store_session *ss, const char *statement, const struct sql_arg *args) {
  text_puts(&ss->script, ss->script.len ? ";\n" : "");
  text_puts(&ss->script, SERVER_NO_WAIT);
  text_query(&ss->script, statement, ss->outbox->config->table, args);
}

void session_add_commit(struct store_session *ss) {
  text_puts(&ss->script, ";\n");
  text_puts(&ss->script, server_commit(ss->conn));
}

static void count_statements(struct store_session *ss, size_t n) {
  atomic_fetch_add_explicit(&ss->outbox->statements, n, memory_order_relaxed);
}

bool session_send(struct store_session *ss, const char *what, struct db_result *results, size_t n, struct err *err) {
  count_statements(ss, n);
  return db_script(ss->conn, &ss->script, what, results, n, err);
}

bool session_send_commit(struct store_session *ss, const char *what, struct db_result *results, size_t n, size_t commit,
                         struct err *err) {
  if (!session_send(ss, what, results, n, err)) {
    bool undone = ss->conn->untouched == commit + 1 && server_undid_commit(ss->conn, err->code);
    ss->committing = commit < ss->conn->untouched && !undone;
    return false;
  }
  ss->in_transaction = false;
  return true;
}

/* The server undoes a statement that it refuses: its commit comes behind it. */
void session_change_failed(struct store_session *ss) { ss->committing = ss->conn->untouched > 1; }

bool session_change(struct store_session *ss, const char *what, uint64_t *count, struct err *err) {
  struct db_result result;
  if (!session_send(ss, what, &result, 1, err)) {
    session_change_failed(ss);
    return false;
  }
  *count = result.count;
  db_results_free(&result, 1);
  return true;
}

bool session_commit(struct store_session *ss, const char *what, struct err *err) {
  struct db_result result;
  session_begin(ss);
  text_puts(&ss->script, server_commit(ss->conn));
  if (!session_send_commit(ss, what, &result, 1, 0, err))
    return false;
  db_results_free(&result, 1);
  return true;
}

bool session_rollback(struct store_session *ss, const char *what, struct err *err) {
  count_statements(ss, 1);
  if (!server_roll_back(ss->conn, what, err))
    return false;
  ss->in_transaction = false;
  return true;
}

const struct text *session_ids(struct store_session *ss, const uint64_t *ids, size_t count) {
  text_clear(&ss->part);
  for (size_t i = 0; i < count; i++) {
    if (i)
      text_add(&ss->part, ",", 1);
    text_u64(&ss->part, ids[i]);
  }
  return &ss->part;
}

void text_shards(struct text *text, const struct shard_lease *leases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    text_puts(text, i ? "," : "");
    text_u64(text, leases[i].shard);
  }
}

void session_names(struct text *out, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (i)
      text_add(out, ",", 1);
    text_sql(out, names[i], strlen(names[i]));
  }
}

void text_leases(struct text *text, const struct shard_lease *leases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    text_puts(text, i ? " OR shard = " : "shard = ");
    text_u64(text, leases[i].shard);
    text_puts(text, " AND epoch = ");
    text_u64(text, leases[i].epoch);
    if (leases[i].shard == SHARD_BOUND)
      continue;
    text_puts(text, " AND owner = ");
    text_sql(text, leases[i].owner ? leases[i].owner : "", leases[i].owner ? strlen(leases[i].owner) : 0);
  }
}

void session_met_lock(struct store_session *ss) { ss->skip_until_us = clock_mono_us() + SKIP_US; }

const char *session_skip(const struct store_session *ss, bool met_again) {
  return met_again || clock_mono_us() < ss->skip_until_us ? "SKIP LOCKED" : "";
}

bool session_locked_shards(struct store_session *ss, const char *skip, const struct shard_lease *leases, size_t count,
                           bool locked[STORE_SHARDS_MAX], struct err *err) {
  static const char what[] = "looking for shards that are locked";
  struct db_result result;
  struct db_row row;
  uint64_t shard;
  bool ok = true;
  memset(locked, 0, STORE_SHARDS_MAX * sizeof *locked);
  if (!*skip || count == 0)
    return true;
  text_clear(&ss->part);
  text_shards(&ss->part, leases, count);
  session_begin(ss);
  session_add(ss, query_free_shards, ARGS(RAW("shards", ss->part)));
  if (!session_send(ss, what, &result, 1, err))
    return false;
  for (size_t i = 0; i < count; i++)
    locked[leases[i].shard] = true;
  if (result.count < count)
    session_met_lock(ss);
  while (ok && db_next(&result, &row, 1)) {
    ok = db_u64(&row, 0, STORE_SHARDS_MAX - 1, &shard) || db_unexpected(err, what);
    if (ok)
      locked[shard] = false;
  }
  db_results_free(&result, 1);
  return ok;
}

void session_fence(struct store_session *ss, const struct shard_lease *leases, size_t count) {
  struct text ours = {0};
  text_leases(&ours, leases, count);
  session_add(ss, query_settle_fence, ARGS(RAW("leases", ours)));
  text_free(&ours);
}

void session_audit(struct store_session *ss, const char *actor, const char *verb, const char *reason,
                   const char *filter, uint64_t changed, const struct text *before) {
  enum { ACTOR_MAX = 64, REASON_MAX = 512, FILTER_MAX = 60000 };
  const struct sql_arg image =
      before->len ? (struct sql_arg){.name = "before", .kind = SQL_STRING, .string = before->data, .len = before->len}
                  : WORD("before", "NULL");
  ss->script.failed = ss->script.failed || before->failed;
  session_add_no_wait(ss, query_audit,
                      ARGS(CLEAN("actor", actor ? actor : "", ACTOR_MAX), STRING("verb", verb),
                           CLEAN("reason", reason ? reason : "", REASON_MAX), CLEAN("filter", filter, FILTER_MAX),
                           UNSIGNED("changed", changed), image));
}
