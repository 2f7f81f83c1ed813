/* SPDX-License-Identifier: MIT
 *
 * How the server goes about what the store sends: every statement of the steady state is explained on a filled table.
 * None may sort rows, and none may scan a table that grows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops

enum { ROWS = 40000 };

/* Tables with a row for each shard, instance or route. */
static bool is_small(const char *table) {
  return strcmp(table, "outbox_shards") == 0 || strcmp(table, "s") == 0 || strcmp(table, "outbox_routes") == 0 ||
         strcmp(table, "i") == 0;
}

/* One line of EXPLAIN: id, select_type, table, type, possible_keys, key, key_len, ref, rows, Extra. MySQL has
 * partitions before the type, and what is filtered before Extra. */
static void check_line(char *const *fields, const char *statement, bool mysql) {
  const char *table = fields[2] ? fields[2] : "", *type = fields[3 + mysql] ? fields[3 + mysql] : "",
             *extra = fields[9 + 2 * mysql] ? fields[9 + 2 * mysql] : "";
  bool values = strcmp(table, "v") == 0 || strcmp(table, "b") == 0 || strncmp(table, "<union", 6) == 0 ||
                strncmp(table, "<derived", 8) == 0 || table[0] == '\0';
  bool scans = strcmp(type, "ALL") == 0 || (strcmp(type, "index") == 0 && !strstr(extra, "for group-by"));
  if (fields[1] && strcmp(fields[1], "INSERT") == 0)
    return; /* the table that is added to */
  if (scans && !values && !is_small(table))
    fail_msg("scans %s (%s; %s): %.300s", table, type, extra, statement);
  bool own_claims = strstr(statement, "claimed_by = 'me' AND id >") != NULL; /* few, and only after a fault */
  if (strstr(extra, "filesort") && !values && !own_claims)
    fail_msg("sorts %s (%s; %s): %.300s", table, type, extra, statement);
}

/* Explains one statement on a connection as the store makes them: its settings are part of the plan. */
static void explain_one(struct fixture *f, struct db_conn *conn, const char *statement) {
  struct text explain = {0};
  struct db_result result;
  struct db_row row;
  bool mysql = is_mysql(f);
  text_puts(&explain, mysql ? "EXPLAIN FORMAT = TRADITIONAL " : "EXPLAIN ");
  text_puts(&explain, statement);
  if (!db_script(conn, &explain, "explaining", &result, 1, &f->err))
    fail_msg("%s: %.300s", f->err.text, statement);
  while (db_next(&result, &row, DB_ANY_COLUMNS))
    check_line(row.fields, statement, mysql);
  db_results_free(&result, 1);
  text_free(&explain);
}

/* Explains the statements of a script that are neither transaction control nor DDL; frees it. Returns how many. */
static size_t explain(struct fixture *f, struct db_conn *conn, char *script) {
  static const char *const verbs[] = {"SELECT", "UPDATE", "DELETE", "INSERT", "("};
  size_t explained = 0;
  for (char *statement = script, *next; statement; statement = next) {
    next = strstr(statement, ";\n");
    if (next) {
      *next = '\0';
      next += 2;
    }
    const char *condition = strncmp(statement, "/*M!", 4) == 0 ? strstr(statement, "*/ ") : NULL;
    statement += condition ? condition + 3 - statement : 0;
    for (size_t i = 0; i < 5; i++)
      if (strncmp(statement, verbs[i], strlen(verbs[i])) == 0) {
        explain_one(f, conn, statement);
        explained++;
      }
  }
  free(script);
  return explained;
}

static void explain_all(struct fixture *f, size_t at_least) {
  char **scripts;
  size_t count = capture_end(&scripts), explained = 0;
  struct db_conn *conn;
  if (!db_open(&f->config, DB_DAEMON, "plans", &conn, &f->err))
    fail_msg("%s", f->err.text);
  for (size_t i = 0; i < count; i++)
    explained += explain(f, conn, scripts[i]);
  db_close(&conn);
  assert_in_range(explained, at_least, 100);
}

static int setup_filled(void **state) {
  store_setup(state);
  struct fixture *f = *state;
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, task_key, message_id, due_at, priority) SELECT seq, "
      "CONCAT('route.', seq %% 10), REPEAT('x', 100), seq %% 4, CONCAT('key', seq), CONCAT('m', seq), "
      "'2020-01-01' + INTERVAL seq SECOND, 4 + seq %% 2 FROM seq_1_to_%d",
      ROWS);
  sql(f, "UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = '2020-01-01' WHERE id %% 50 = 0");
  sql(f,
      "INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, "
      "target_host, shard, created_at, state, attempt, failures, recoveries, finished_at, keep_until) SELECT 100000 + "
      "seq, "
      "CONCAT('h', seq), 'r', '', '{}', '', '2020-01-01', 5, '', '', 0, '2020-01-01', 'done', 1, 0, 0, '2020-01-01', "
      "'2035-01-01' FROM seq_1_to_%d",
      ROWS / 10);
  sql(f,
      "INSERT INTO outbox_attempts (message_id, attempt, kind, outcome, task_id, route, due_at, finished_at) SELECT "
      "CONCAT('h', seq), 1, 'result', 'done', seq, 'r', '2020-01-01', '2020-01-01' FROM seq_1_to_%d",
      ROWS / 10);
  sql(f, "ANALYZE TABLE outbox, outbox_history, outbox_attempts");
  if (is_mysql(f))
    sql(f, "SET explain_json_format_version = 1");
  /* What is captured are the statements of a session, not how it connects after a quiet time. */
  int64_t now;
  ok(f, OPS->now(f->ss, &now, &f->err));
  assert_true(db_run(f->ss->conn, "SET SESSION wait_timeout = 600", "test", &f->err));
  f->ss->conn->idle_limit_us = INT64_C(600) * 1000000;
  return 0;
}

static void finding_and_reading(void **state) {
  struct fixture *f = *state;
  const struct store_group *groups;
  struct store_range range = {.state = TASK_SCHEDULED,
                              .shard = 1,
                              .priority = 5,
                              .route = "route.1",
                              .limit = 1000,
                              .after = {.next_us = INT64_C(1577840000000000), .id = 7}};
  struct task_batch *batch;
  struct found_id found[1000];
  uint64_t ids[500];
  uint32_t moved[2];
  size_t count;
  int64_t now;
  for (size_t i = 0; i < 500; i++)
    ids[i] = 80 * i + 1;
  capture_start();
  ok(f, OPS->look(f->ss, &(struct store_look){f->leases, SHARDS, LIVING, NULL, 0, 0}, &groups, &count, &now, &f->err));
  assert_in_range(count, 10, 200);
  ok(f, OPS->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch,
                  (int64_t[1]){0}, &now, &f->err));
  assert_int_equal(batch->count, 1000);
  release(batch);
  struct store_range ranges[] = {range, range, range};
  ranges[1].priority = 4;
  ranges[1].route = "route.2";
  ranges[1].shard = 2;
  ranges[2].route = "none";
  ok(f, OPS->read(f->ss, ranges, 3, 0, (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch,
                  (int64_t[4]){0}, &now, &f->err));
  assert_int_equal(batch->count, 2000);
  release(batch);
  ok(f,
     OPS->find(f->ss, &range, &(struct store_cursor){.next_us = INT64_C(1577850000000000)}, 1, found, &count, &f->err));
  ok(f, OPS->read_ids(f->ss, TASK_SCHEDULED, shard_bit(1), NULL, ids, 500, 0,
                      (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch, &f->err));
  assert_int_equal(batch->count, 500);
  release(batch);
  count = 500;
  ok(f, OPS->expired(f->ss, TASK_HELD, 1, ids, &count, &f->err));
  ok(f, OPS->next_due(f->ss, ranges, 3, (int64_t[3]){0}, &now, &f->err));
  const struct store_routes some = {TASK_SCHEDULED, 5, (const char *const[]){"none", "route.3"}, 2, 0, 10};
  ok(f, OPS->find_routes(f->ss, 1, &some, ids, &count, &f->err));
  assert_int_equal(count, 10);
  ok(f, OPS->hold(f->ss, &f->leases[1], &some, moved, &f->err));
  assert_int_equal(moved[0], 0);
  assert_int_equal(moved[1], 10);
  struct store_walk walk = {.priority = 4};
  bool all;
  ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &(struct store_unblock){"route.1", true, 10}, &walk, moved, &all,
                     &f->err));
  ok(f, OPS->stranded(f->ss, &(uint64_t){0}, ids, &(size_t){500}, &f->err));
  explain_all(f, 11);
}

static void the_look_is_a_loose_scan(void **state) {
  struct fixture *f = *state;
  const struct store_group *groups;
  size_t count;
  int64_t now;
  capture_start();
  ok(f, OPS->look(f->ss, &(struct store_look){f->leases, 2, LIVING, NULL, 0, 0}, &groups, &count, &now, &f->err));
  char **scripts;
  assert_int_equal(capture_end(&scripts), 1);
  assert_non_null(strstr(ask_text(f, "EXPLAIN FORMAT=JSON %s", scripts[0]), "\"using_index_for_group_by\": true"));
  free(scripts[0]);
}

static int64_t status_of(struct fixture *f, const char *name) {
  return ask(f, "SELECT SUM(VARIABLE_VALUE) FROM %s WHERE VARIABLE_NAME LIKE '%s'",
             is_mysql(f) ? "performance_schema.session_status" : "information_schema.SESSION_STATUS", name);
}

/* The index entries that the statements sent since capture_start() read, when root runs them. */
static int64_t entries_read(struct fixture *f) {
  char **scripts;
  size_t count = capture_end(&scripts);
  int64_t asked = status_of(f, "Handler\\_read%"), before = status_of(f, "Handler\\_read%");
  asked = before - asked; /* what asking costs: on MySQL it reads some hundreds of a table */
  for (size_t i = 0; i < count; i++) {
    (void)ask_text(f, "%s", scripts[i]);
    free(scripts[i]);
  }
  return status_of(f, "Handler\\_read%") - before - asked;
}

/* An application may write any number of routes that nobody knows. Once they are held, neither the poll of what may be
 * due nor the question for held rows of the known routes reads an entry of theirs. */
static void held_rows_of_unknown_routes_cost_polls_nothing(void **state) {
  struct fixture *f = *state;
  const struct store_group *groups;
  size_t count;
  int64_t now;
  uint32_t moved[250];
  enum { NAMES = 3000 };
  static char names[NAMES][24];
  static const char *routes[NAMES];
  for (int i = 0; i < NAMES; i++) {
    snprintf(names[i], sizeof names[i], "unknown.%04d", i + 1);
    routes[i] = names[i];
  }
  sql(f,
      "INSERT INTO outbox (route, payload, shard, due_at) SELECT CONCAT('unknown.', LPAD(seq, 4, 0)), '', 1, "
      "'2020-01-01' FROM "
      "seq_1_to_%d",
      NAMES);
  const struct store_look poll = {f->leases, SHARDS, LIVING & ~TASK_BIT(TASK_HELD), NULL, 0, 0},
                          held = {f->leases,
                                  SHARDS,
                                  TASK_BIT(TASK_HELD),
                                  (const char *const[]){"route.1", "unknown.0007"},
                                  2,
                                  0},
                          some = {f->leases, SHARDS, TASK_BIT(TASK_HELD), NULL, 0, 10};
  capture_start();
  ok(f, OPS->look(f->ss, &poll, &groups, &count, &now, &f->err));
  assert_true(count > NAMES);
  assert_true(entries_read(f) > NAMES);
  for (int first = 0; first < NAMES; first += 250) { /* as many as one unit takes */
    const struct store_routes which = {TASK_SCHEDULED, 5, routes + first, 250, 0, 1000};
    capture_start();
    ok(f, OPS->hold(f->ss, &f->leases[1], &which, moved, &f->err));
    for (int i = 0; i < 250; i++)
      assert_int_equal(moved[i], 1);
    char **scripts;
    size_t sent = capture_end(&scripts);
    assert_in_range(sent, 1, 8);
    for (size_t i = 0; i < sent; i++)
      free(scripts[i]);
  }
  capture_start();
  ok(f, OPS->look(f->ss, &poll, &groups, &count, &now, &f->err));
  assert_in_range(count, 10, 200);
  assert_in_range(entries_read(f), 1, 1000);
  capture_start();
  ok(f, OPS->look(f->ss, &held, &groups, &count, &now, &f->err));
  assert_int_equal(count, 1);
  assert_string_equal(groups[0].route, "unknown.0007");
  assert_in_range(entries_read(f), 1, 100);
  capture_start();
  ok(f, OPS->look(f->ss, &some, &groups, &count, &now, &f->err));
  assert_int_equal(count, 10);
  assert_in_range(entries_read(f), 1, 500);
}

static int64_t pages_asked_for(struct fixture *f) {
  return ask(f, "SELECT VARIABLE_VALUE FROM %s WHERE VARIABLE_NAME = 'Innodb_buffer_pool_read_requests'",
             is_mysql(f) ? "performance_schema.global_status" : "information_schema.GLOBAL_STATUS");
}

/* The least that one run asks for: the server's own threads ask for some too. */
static int64_t pages_read(struct fixture *f, const char *script) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 50; i++) {
    int64_t before = pages_asked_for(f);
    (void)ask_text(f, "%s", script);
    int64_t read = pages_asked_for(f) - before;
    least = read < least ? read : least;
  }
  return least;
}

/* A long transaction keeps what was deleted in the indexes: looking at every group walks over it, and asking for what
 * is due from some time on does not. */
static void what_cannot_be_purged_costs_a_seek_nothing(void **state) {
  struct fixture *f = *state;
  const struct store_group *groups;
  struct store_range range = {.state = TASK_SCHEDULED, .shard = 1, .priority = 5, .route = "route.1"};
  struct task_batch *batch;
  size_t count;
  int64_t now, next;
  char **scripts;
  other(f, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
  other(f, "SELECT COUNT(*) FROM outbox");
  sql(f, "DELETE FROM outbox");
  sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id, due_at) VALUES (900000, 'route.1', 'x', 1, 'new', "
         "'2021-01-01 00:00:00')");
  const struct store_look all = {f->leases, SHARDS, LIVING, NULL, 0, 0};
  range.after = (struct store_cursor){INT64_C(1609459200000000) - 1000000, UINT64_MAX}; /* a second before */
  range.limit = 10;
  capture_start();
  ok(f, OPS->look(f->ss, &all, &groups, &count, &now, &f->err));
  assert_int_equal(count, 1);
  ok(f, OPS->next_due(f->ss, &range, 1, &next, &now, &f->err));
  assert_true(next == INT64_C(1609459200000000));
  ok(f, OPS->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 100, .bytes = INT64_MAX}, &batch, NULL, &now,
                  &f->err));
  assert_int_equal(batch->count, 1);
  release(batch);
  assert_int_equal(capture_end(&scripts), 3);
  int64_t pages[3];
  for (int i = 0; i < 3; i++)
    pages[i] = pages_read(f, scripts[i]);
  other(f, "ROLLBACK");
  for (int i = 1; i < 3; i++)
    if (pages[i] > pages[0] / 2)
      fail_msg("%lld pages, the whole walk takes %lld: %s", (long long)pages[i], (long long)pages[0], scripts[i]);
  for (int i = 0; i < 3; i++)
    free(scripts[i]);
}

/* Rows of a transaction that is open are in the index, and nobody else sees them: who asks for the next row of the
 * group before them must not walk over them all. An application that loads tasks in bulk would delay the other routes.
 */
static void what_is_not_committed_costs_its_neighbour_nothing(void **state) {
  struct fixture *f = *state;
  struct store_range range = {.state = TASK_SCHEDULED,
                              .shard = 1,
                              .priority = 5,
                              .route = "route.1",
                              .limit = 10,
                              .after = {.next_us = INT64_C(1900000000000000)}};
  struct task_batch *batch;
  struct found_id found[10];
  size_t count;
  int64_t now, next;
  char **scripts;
  other(f, "START TRANSACTION");
  other(f,
        "INSERT INTO outbox (route, payload, shard, message_id, priority, due_at) SELECT 'route.1a', 'x', 1, "
        "CONCAT('open', seq), 5, '2021-01-01' FROM seq_1_to_%d",
        ROWS / 2);
  capture_start();
  ok(f, OPS->next_due(f->ss, &range, 1, &next, &now, &f->err));
  ok(f, OPS->find(f->ss, &range, &(struct store_cursor){INT64_C(1950000000000000), 1}, 1, found, &count, &f->err));
  assert_int_equal(count, 0);
  ok(f, OPS->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 100, .bytes = INT64_MAX}, &batch,
                  (int64_t[1]){0}, &now, &f->err));
  release(batch);
  size_t script_count = capture_end(&scripts);
  assert_int_equal(script_count, 3);
  for (size_t i = 0; i < script_count; i++) {
    int64_t pages = pages_read(f, scripts[i]);
    if (pages > 1000)
      fail_msg("%lld pages: %s", (long long)pages, scripts[i]);
    free(scripts[i]);
  }
  other(f, "ROLLBACK");
}

/* Many tasks may be due at the same moment (one INSERT .. SELECT, "at nine o'clock"): a position among them is sought
 * by the id too, which every index ends with. Otherwise each page would walk over all pages before it. */
static void positions_among_equal_times_are_sought(void **state) {
  struct fixture *f = *state;
  struct store_range range = {.state = TASK_SCHEDULED,
                              .shard = 1,
                              .priority = 5,
                              .route = "route.1",
                              .limit = 10,
                              .after = {.next_us = INT64_C(1577840000000000), .id = 2000}};
  struct task_batch *batch;
  struct found_id found[10];
  size_t count;
  int64_t now;
  sql(f, "UPDATE outbox SET due_at = FROM_UNIXTIME(1577840000) WHERE shard = 1 AND state = 'scheduled'");
  capture_start();
  ok(f, OPS->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 0, .bytes = INT64_MAX}, &batch, (int64_t[1]){0},
                  &now, &f->err));
  release(batch);
  ok(f, OPS->find(f->ss, &range, &(struct store_cursor){INT64_C(1577840000000000), 30000}, 1, found, &count, &f->err));
  assert_int_equal(count, 10);
  char **scripts;
  size_t script_count = capture_end(&scripts), sought = 0;
  for (size_t i = 0; i < script_count; i++) {
    char *statement = strstr(scripts[i], "SELECT id"), *end = statement ? strrchr(statement, '0') : NULL;
    if (statement && strstr(statement, "id > 2000")) {
      end[1] = '\0'; /* behind LIMIT 10 there may be a bracket */
      const char *plan = ask_text(f, "EXPLAIN FORMAT=JSON %s", statement);
      if (!strstr(plan, "\"key_length\": \"87\"")) /* 79 is without the id */
        fail_msg("%s\n%s", statement, plan);
      sought++;
    }
    free(scripts[i]);
  }
  assert_int_equal(sought, 2);
}

static void claiming_and_people(void **state) {
  struct fixture *f = *state;
  uint64_t ids[100];
  struct task_place place;
  struct task_batch *batch;
  uint64_t lost;
  enum intervened changed[100];
  for (size_t i = 0; i < 100; i++)
    ids[i] = 40 * i + 1;
  capture_start();
  ok(f, claim_rows(f, &f->leases[1], 1, ids, 100, 1000, 1000, &batch, &lost));
  assert_int_equal(batch->count, 100);
  release(batch);
  ok(f, OPS->own_claims(f->ss, "me", &f->leases[1], 1, 0, 1000, &batch, &f->err));
  assert_int_equal(batch->count, 100);
  release(batch);
  ok(f, OPS->claims_elsewhere(f->ss, "me", "h", "r", NULL, NULL, &f->err));
  ok(f, OPS->locate(f->ss, &(const char *){"m77"}, 1, &place, &f->err));
  assert_true(place.found);
  for (size_t i = 0; i < 100; i++)
    ids[i] += 4;
  ok(f, OPS->intervene(f->ss, &f->leases[1], INTERVENE_CANCEL, ids, 50, 0, "a", "m", "b", 1000, changed, &f->err));
  ok(f, OPS->intervene(f->ss, &f->leases[1], INTERVENE_RESCHEDULE, ids + 50, 50, INT64_C(1893456000000000), "a", "m",
                       "b", 0, changed, &f->err));
  explain_all(f, 13);
}

static void settling(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_DONE, EVENT_DEAD, EVENT_RETRY, EVENT_RELEASE, EVENT_HOLD};
  enum { N = 1000 };
  struct decision *d = calloc(N, sizeof *d);
  assert_non_null(d);
  for (uint64_t i = 0; i < N; i++) {
    uint64_t id = 3 + 20 * i; /* scheduled, every one */
    d[i] = (struct decision){.id = id,
                             .message_id = message_id_of(f, id),
                             .shard = (uint8_t)(id % 4),
                             .event = events[i % 5],
                             .attempt = 1,
                             .log_attempt = true,
                             .keep_us = i % 2 ? 1000000 : 0,
                             .alert_route = "ops.alert",
                             .delay_us = 1000000};
  }
  capture_start();
  assert_int_equal(settle(f, d, N), N);
  for (uint64_t i = 0; i < N; i++)
    d[i] = (struct decision){.id = 4 + 20 * i,
                             .message_id = message_id_of(f, 4 + 20 * i),
                             .shard = (uint8_t)((4 + 20 * i) % 4),
                             .event = EVENT_PUBLISHED,
                             .attempt = 1};
  assert_int_equal(settle(f, d, N), N);
  explain_all(f, 9);
  free(d);
}

static enum result_fate accept(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  *out = (struct decision){.event = row->id % 100 ? EVENT_DONE : EVENT_PROGRESS, .attempt = 1, .keep_us = 1000000};
  return RESULT_APPLIED;
}

static void results(void **state) {
  struct fixture *f = *state;
  enum { N = 400 };
  struct store_result *r = calloc(N, sizeof *r);
  assert_non_null(r);
  for (int i = 0; i < N; i++) {
    r[i] = (struct store_result){.record = {.attempt = 1, .progress = -1}, .body = {"", 0}};
    snprintf(r[i].record.message_id, sizeof r[i].record.message_id, i % 2 ? "m%d" : "h%d",
             i % 2 ? 50 + 50 * (i / 2) : 50 + i);
  }
  /* What it sent is compared where a row was changed, and what contradicts is kept. */
  sql(f, "UPDATE outbox SET last_error = 'a note', sent_digest = 0, claim_epoch = 0 WHERE id = 100");
  r[2].record.status = RESULT_FAIL;
  capture_start();
  ok(f, OPS->settle_results(f->ss, r, N, accept, NULL, &f->err));
  explain_all(f, 9);
  assert_int_equal(r[1].fate, RESULT_APPLIED);
  assert_true(r[2].contradicts);
  assert_int_equal(r[0].fate, RESULT_DUPLICATE);
  free(r);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_filled, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(finding_and_reading),
      TEST(the_look_is_a_loose_scan),
      TEST(held_rows_of_unknown_routes_cost_polls_nothing),
      TEST(what_cannot_be_purged_costs_a_seek_nothing),
      TEST(what_is_not_committed_costs_its_neighbour_nothing),
      TEST(positions_among_equal_times_are_sought),
      TEST(claiming_and_people),
      TEST(settling),
      TEST(results),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
