/* SPDX-License-Identifier: MIT */
#include "integration/store_fixture.h"

#include <mysql.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outbox/db_api.h"
#include "outbox/outbox.h"
#include "outbox/schema.h"

int __real_mysql_real_query(MYSQL *mysql, const char *query, unsigned long len);
int __wrap_mysql_real_query(MYSQL *mysql, const char *query, unsigned long len);

/* One test runs at a time, in one thread. */
static struct {
  MYSQL *root, *other;
  struct fixture *fixture;
  enum fault fault;
  const char *text, *instead;
  unsigned error;
  int times;
  const char *call_text;
  void (*call)(struct fixture *f);
  atomic_int sent; /* sessions of several threads count */
  bool capturing;
  char *captured[64];
  size_t captured_count;
  char **kept; /* freed by the teardown */
  size_t kept_count;
} it;

static int send_fewer(MYSQL *mysql, const char *query, unsigned long len) {
  char *fewer = strndup(query, len);
  *strchr(strstr(fewer, it.text), ',') = '+';
  int rc = __real_mysql_real_query(mysql, fewer, len);
  free(fewer);
  return rc;
}

/* The script with something else in the place of the text, or behind it. */
static int send_other(MYSQL *mysql, const char *query, unsigned long len) {
  char *script = strndup(query, len), *other;
  char *at = strstr(script, it.text);
  int rest = (int)(at - script) + (it.fault == FAULT_KILL_BEHIND ? (int)strlen(it.text) : 0);
  const char *with = it.fault == FAULT_KILL_BEHIND ? ";\nKILL QUERY CONNECTION_ID()" : it.instead;
  assert_true(asprintf(&other, "%.*s%s%s", rest, script, with, at + strlen(it.text)) >= 0);
  int rc = __real_mysql_real_query(mysql, other, strlen(other));
  free(other);
  free(script);
  return rc;
}

static int inject(MYSQL *mysql, const char *query, unsigned long len) {
  char kill[64];
  it.times--;
  switch (it.fault) {
  case FAULT_KILL_BEFORE:
    snprintf(kill, sizeof kill, "KILL CONNECTION %lu", mysql_thread_id(mysql));
    assert_int_equal(__real_mysql_real_query(it.root, kill, strlen(kill)), 0);
    return __real_mysql_real_query(mysql, query, len);
  case FAULT_LOSE_ANSWER:
    assert_int_equal(__real_mysql_real_query(mysql, query, len), 0);
    while (mysql_next_result(mysql) == 0)
      mysql_free_result(mysql_store_result(mysql));
    db_api_interrupt(mysql);
    mysql->net.last_errno = 2013;
    return 1;
  case FAULT_FEWER:
    return send_fewer(mysql, query, len);
  case FAULT_KILL_BEHIND:
  case FAULT_INSTEAD:
    return send_other(mysql, query, len);
  default:
    mysql->net.last_errno = it.error;
    return 1;
  }
}

int __wrap_mysql_real_query(MYSQL *mysql, const char *query, unsigned long len) {
  if (mysql == it.root || mysql == it.other)
    return __real_mysql_real_query(mysql, query, len);
  it.sent++;
  if (it.capturing && it.captured_count < 64)
    it.captured[it.captured_count++] = strndup(query, len);
  if (it.call && strstr(query, it.call_text)) {
    void (*call)(struct fixture * f) = it.call;
    it.call = NULL;
    call(it.fixture);
  }
  if (it.times > 0 && strstr(query, it.text))
    return inject(mysql, query, len);
  return __real_mysql_real_query(mysql, query, len);
}

void fault_arm(struct fixture *f, enum fault fault, const char *text, unsigned error, int times) {
  it.fault = fault;
  it.text = text;
  it.error = error;
  it.times = times;
}

void fault_instead(struct fixture *f, const char *text, const char *other, int times) {
  fault_arm(f, FAULT_INSTEAD, text, 0, times);
  it.instead = other;
}

void fault_call(struct fixture *f, const char *text, void (*call)(struct fixture *f)) {
  it.call_text = text;
  it.call = call;
}

int statements_sent(void) {
  int sent = it.sent;
  it.sent = 0;
  return sent;
}

void capture_start(void) { it.capturing = true; }

size_t capture_end(char ***scripts) {
  it.capturing = false;
  *scripts = it.captured;
  size_t count = it.captured_count;
  it.captured_count = 0;
  return count;
}

static MYSQL *connect_root(const char *socket, const char *database) {
  MYSQL *mysql = mysql_init(NULL);
  assert_non_null(mysql);
  if (!mysql_real_connect(mysql, NULL, "root", "", database, 0, socket, CLIENT_MULTI_STATEMENTS))
    fail_msg("connecting to the test server at %s: %s", socket, mysql_error(mysql));
  return mysql;
}

/* The tables seq_1_to_N that MariaDB has and MySQL has not, as a query. One a statement. */
static char *with_sequence(MYSQL *mysql, char *text) {
  static const char name[] = "seq_1_to_";
  char *at = strstr(text, name), *end, *out;
  if (!at || strstr(mysql_get_server_info(mysql), "MariaDB"))
    return text;
  unsigned long last = strtoul(at + strlen(name), &end, 10);
  assert_int_equal(__real_mysql_real_query(mysql, "SET cte_max_recursion_depth = 1000000", 37), 0);
  assert_true(asprintf(&out,
                       "%.*s(WITH RECURSIVE n AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM n WHERE seq < %lu) "
                       "SELECT seq FROM n) AS numbers%s",
                       (int)(at - text), text, last, end) >= 0);
  free(text);
  return out;
}

static unsigned run(MYSQL *mysql, const char *format, va_list args) {
  char *text;
  assert_true(vasprintf(&text, format, args) >= 0);
  text = with_sequence(mysql, text);
  unsigned error = __real_mysql_real_query(mysql, text, strlen(text)) ? mysql_errno(mysql) : 0;
  free(text);
  return error;
}

#define RUN(mysql, error)                                                                                              \
  do {                                                                                                                 \
    va_list args;                                                                                                      \
    va_start(args, format);                                                                                            \
    error = run(mysql, format, args);                                                                                  \
    va_end(args);                                                                                                      \
  } while (0)

static void drain(MYSQL *mysql) {
  int more;
  do {
    mysql_free_result(mysql_store_result(mysql));
    more = mysql_next_result(mysql);
  } while (more == 0);
  if (more > 0)
    fail_msg("a statement of a script: %s", mysql_error(mysql));
}

void sql(struct fixture *f, const char *format, ...) {
  unsigned error;
  RUN(it.root, error);
  if (error)
    fail_msg("%s: %s", format, mysql_error(it.root));
  drain(it.root);
}

void other(struct fixture *f, const char *format, ...) {
  unsigned error;
  if (!it.other)
    it.other = connect_root(f->config.socket, f->database);
  RUN(it.other, error);
  if (error)
    fail_msg("%s: %s", format, mysql_error(it.other));
  drain(it.other);
}

void starts(struct fixture *f, struct db_conn *conn, const char *statement) {
  assert_int_equal(mysql_send_query(conn->mysql, statement, strlen(statement)), 0);
  while (ask(f, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO IS NOT NULL AND ID = %llu",
             (unsigned long long)db_thread(conn)) == 0)
    ;
}

bool is_mysql(struct fixture *f) { return !strstr(mysql_get_server_info(it.root), "MariaDB"); }

unsigned sql_error(struct fixture *f, const char *format, ...) {
  unsigned error;
  RUN(it.root, error);
  if (!error)
    drain(it.root);
  return error;
}

static const char *first_field(const char *format) {
  static char out[4096];
  MYSQL_RES *result = mysql_store_result(it.root);
  if (!result)
    fail_msg("%s gives no rows", format);
  MYSQL_ROW row = mysql_fetch_row(result);
  snprintf(out, sizeof out, "%s", !row ? "(none)" : row[0] ? row[0] : "(null)");
  mysql_free_result(result);
  return out;
}

int64_t ask(struct fixture *f, const char *format, ...) {
  unsigned error;
  RUN(it.root, error);
  if (error)
    fail_msg("%s: %s", format, mysql_error(it.root));
  return strtoll(first_field(format), NULL, 10);
}

const char *ask_text(struct fixture *f, const char *format, ...) {
  unsigned error;
  RUN(it.root, error);
  if (error)
    fail_msg("%s: %s", format, mysql_error(it.root));
  return first_field(format);
}

void store_ok(struct fixture *f, enum store_status status, const char *call, const char *file, int line) {
  if (status == STORE_OK)
    return;
  print_error("%s:%d: %s gave status %d: %s\n", file, line, call, (int)status, f->err.text);
  _fail(file, line);
}

int store_setup_empty(void **state) {
  const char *socket = getenv("DUEBOX_TEST_MYSQL");
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  it.root = connect_root(socket, NULL);
  snprintf(f->database, sizeof f->database, "duebox_store_%d", (int)getpid());
  it.fixture = f;
  sql(f, "DROP DATABASE IF EXISTS %s", f->database);
  /* A character set that does not mix with ours: a statement that leaves one to the database's default fails. */
  sql(f, "CREATE DATABASE %s CHARACTER SET utf16", f->database);
  sql(f, "USE %s", f->database);
  sql(f, "SET time_zone = '+00:00'");
  f->config = (struct database_config){.socket = socket,
                                       .user = "root",
                                       .password = "",
                                       .name = f->database,
                                       .table = "outbox",
                                       .connect_timeout_ms = 5000,
                                       .read_timeout_ms = 30000};
  if (!outbox_create(&f->config, &f->store, &f->err))
    fail_msg("%s", f->err.text);
  *state = f;
  return 0;
}

int store_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count) {
  if (!getenv("DUEBOX_TEST_MYSQL")) {
    fprintf(stderr,
            "Skipped: DUEBOX_TEST_MYSQL is not set to the unix socket of a MariaDB or MySQL server for tests\n");
    return 77;
  }
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return _cmocka_run_group_tests("store", tests, count, NULL, NULL);
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file)
    fail_msg("%s cannot be read", path);
  char *text = calloc(1, 65536);
  assert_non_null(text);
  assert_true(fread(text, 1, 65535, file) > 0);
  fclose(file);
  return text;
}

/* Runs a file of sql/examples/ for the test's database. */
static void run_example(struct fixture *f, const char *path) {
  char *file = read_file(path), *at = file, *name;
  char *script = calloc(1, 131072);
  assert_non_null(script);
  while ((name = strstr(at, "`shop`"))) {
    strncat(script, at, (size_t)(name - at));
    strcat(script, f->database);
    at = name + strlen("`shop`");
  }
  strcat(script, at);
  script[strlen(script) - 1] = '\0';
  sql(f, "%s", script);
  free(script);
  free(file);
}

static void migrate(struct fixture *f) {
  struct db_conn *conn;
  FILE *out = fopen("/dev/null", "w");
  assert_non_null(out);
  if (!db_open(&f->config, DB_MIGRATE, "test", &conn, &f->err) ||
      !schema_migrate(conn, &(struct migrate_options){.shards = SHARDS}, out, &f->err))
    fail_msg("%s", f->err.text);
  db_close(&conn);
  fclose(out);
}

int store_setup(void **state) {
  store_setup_empty(state);
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  /* The store works with what these two grant, or fails. */
  run_example(f, STORE_SQL_DIR "/examples/users.sql");
  migrate(f);
  run_example(f, STORE_SQL_DIR "/examples/grants.sql");
  f->config.user = "duebox";
  f->config.password = "duebox-password";
  ok(f, f->store.ops->open(f->store.self, "test", 0, &f->ss, &f->err));
  ok(f, f->store.ops->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  assert_int_equal(count, SHARDS);
  for (size_t i = 0; i < count; i++) {
    f->leases[i].shard = rows[i].shard;
    f->leases[i].owner = "me";
    ok(f, f->store.ops->acquire(f->ss, "me", &rows[i], 60000, &f->leases[i].epoch, &f->err));
    assert_true(f->leases[i].epoch > 0);
  }
  statements_sent();
  return 0;
}

int store_teardown(void **state) {
  struct fixture *f = *state;
  if (!f)
    return 0;
  if (f->ss)
    f->store.ops->close(&f->ss);
  outbox_destroy(&f->store);
  if (it.other)
    mysql_close(it.other); /* first: a transaction that a failed test left open would hold up the DROP */
  sql(f, "DROP DATABASE IF EXISTS %s", f->database);
  mysql_close(it.root);
  while (it.kept_count > 0)
    free(it.kept[--it.kept_count]);
  free(it.kept);
  free(f);
  memset(&it, 0, sizeof it);
  return 0;
}

struct task_batch *read_group(struct fixture *f, enum task_state state, uint8_t shard, const char *route) {
  struct store_range range = {.state = state, .shard = shard, .priority = 5, .route = route, .limit = 1000};
  struct task_batch *batch;
  int64_t now;
  ok(f, f->store.ops->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 8 << 20, .bytes = INT64_MAX}, &batch,
                           (int64_t[1]){0}, &now, &f->err));
  assert_true(now > 0);
  return batch;
}

void release(struct task_batch *batch) {
  if (!batch)
    return;
  for (size_t i = 0, count = batch->count; i < count; i++)
    task_release(&batch->tasks[i]);
}

struct task_batch *read_bound(struct fixture *f, const char *host) {
  enum { MOST = 10 };
  const struct store_range range = {
      .state = TASK_SCHEDULED, .shard = SHARD_BOUND, .priority = 5, .route = "r", .host = host, .limit = MOST};
  struct found_id found[MOST];
  uint64_t ids[MOST];
  size_t count, ours = 0;
  struct task_batch *batch;
  ok(f, f->store.ops->find(f->ss, &range, &(struct store_cursor){INT64_MAX, UINT64_MAX}, 1, found, &count, &f->err));
  for (size_t i = 0; i < count; i++)
    if (!found[i].foreign)
      ids[ours++] = found[i].id;
  ok(f, f->store.ops->read_ids(f->ss, TASK_SCHEDULED, shard_bit(SHARD_BOUND), host, ids, ours, 0,
                               (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch, &f->err));
  assert_int_equal(batch ? batch->count : 0, ours);
  return batch;
}

size_t count_bound(struct fixture *f, const char *host) {
  struct task_batch *batch = read_bound(f, host);
  size_t count = batch ? batch->count : 0;
  release(batch);
  return count;
}

struct duebox_bytes message_id_of(struct fixture *f, uint64_t id) {
  char *text = strdup(ask_text(f, "SELECT message_id FROM outbox WHERE id = %llu", (unsigned long long)id));
  it.kept = realloc(it.kept, (it.kept_count + 1) * sizeof *it.kept);
  assert_true(text && it.kept);
  it.kept[it.kept_count++] = text;
  return (struct duebox_bytes){text, strlen(text)};
}

enum store_status claim_rows(struct fixture *f, const struct shard_lease *leases, size_t lease_count,
                             const uint64_t *ids, size_t count, int64_t timeout_ms, int64_t lease_ms,
                             struct task_batch **batch, uint64_t *lost) {
  static char route[STORE_ROUTE_MAX + 1], message_ids[100][STORE_ID_MAX + 1];
  assert_in_range(count, 0, 100);
  for (size_t i = 0; i < count; i++)
    snprintf(message_ids[i], sizeof *message_ids, "%s",
             ask_text(f, "SELECT message_id FROM outbox WHERE id = %llu", (unsigned long long)ids[i]));
  snprintf(route, sizeof route, "%s",
           ask_text(f, "SELECT route FROM outbox WHERE id = %llu", (unsigned long long)ids[0]));
  const struct store_claim claim = {.instance = "me",
                                    .route = route,
                                    .host = "it's",
                                    .leases = leases,
                                    .lease_count = lease_count,
                                    .ids = ids,
                                    .message_ids = (const char(*)[STORE_ID_MAX + 1]) message_ids,
                                    .count = count,
                                    .timeout_ms = timeout_ms,
                                    .timeout_most_ms = 60000,
                                    .lease_ms = lease_ms,
                                    .limit = {1000, INT64_MAX}};
  return f->store.ops->claim(f->ss, &claim, batch, lost, &f->err);
}

struct decision decide_on(struct fixture *f, uint64_t id, enum task_event event) {
  unsigned long long row = id;
  uint32_t attempt = (uint32_t)ask(f, "SELECT attempt FROM outbox WHERE id = %llu", row);
  return (struct decision){
      .id = id,
      .message_id = message_id_of(f, id),
      .shard = (uint8_t)ask(f, "SELECT shard FROM outbox WHERE id = %llu", row),
      .from = (enum task_state)(ask(f, "SELECT state + 0 FROM outbox WHERE id = %llu", row) - 1),
      .attempt_from = attempt,
      .event = event,
      .attempt = attempt + 1,
      .failures = (uint32_t)ask(f, "SELECT failures FROM outbox WHERE id = %llu", row),
      .recoveries = (uint32_t)ask(f, "SELECT recoveries FROM outbox WHERE id = %llu", row),
  };
}

struct decision decide_on_sent(const struct task *task, enum task_event event) {
  return (struct decision){.id = task->id,
                           .message_id = task->message_id,
                           .changed_at = task->changed_at,
                           .sent = task,
                           .shard = task->shard,
                           .from = task->state,
                           .attempt_from = task->attempt,
                           .event = event,
                           .attempt = task->state == TASK_CLAIMED ? task->attempt : task->attempt + 1,
                           .delay_us = INT64_C(3600000000),
                           .published_us = INT64_C(1577836800123456)};
}

size_t settle(struct fixture *f, struct decision *decisions, size_t count) {
  bool lost[SHARDS];
  ok(f, f->store.ops->settle(f->ss, f->leases, SHARDS, decisions, count, lost, &f->err));
  size_t applied = 0;
  for (size_t i = 0; i < count; i++)
    applied += decisions[i].applied;
  return applied;
}

void two_rows(struct fixture *f, struct decision d[2], enum task_event event) {
  sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id) VALUES (1, 'r', 'p', 0, 'm1'), "
         "(2, 'r', 'p', 1, 'm2')");
  for (uint64_t id = 1; id <= 2; id++) {
    d[id - 1] = decide_on(f, id, event);
    d[id - 1].keep_us = d[id - 1].delay_us = INT64_C(3600000000);
    d[id - 1].log_attempt = true;
  }
}

void assert_done_once(struct fixture *f) {
  assert_string_equal(
      ask_text(f, "SELECT CONCAT_WS('|', (SELECT COUNT(*) FROM outbox), (SELECT COUNT(*) FROM outbox_history), "
                  "(SELECT COUNT(*) FROM outbox_attempts))"),
      "0|2|2");
}
