/* SPDX-License-Identifier: MIT
 *
 * The store when the database misbehaves: conflicts, lost connections, lost answers, servers that may not be used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops
#define ROW(...) sql(f, "INSERT INTO outbox " __VA_ARGS__)

enum { DEADLOCK = 1213 };

/* --- answers that are not the server's --- */

static enum store_status ask_shards(struct fixture *f) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  return OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err);
}

static enum store_status ask_settings(struct fixture *f) {
  const struct route_setting *settings;
  size_t count;
  return OPS->route_settings(f->ss, &settings, &count, &f->err);
}

static enum store_status ask_ids(struct fixture *f) {
  struct task_batch *batch = NULL;
  const uint64_t ids[] = {1, 2};
  return OPS->read_ids(f->ss, TASK_SCHEDULED, shard_bit(0), NULL, ids, 2, 0,
                       (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch, &f->err);
}

static enum store_status ask_renewal(struct fixture *f) {
  enum lease_fate fates[SHARDS];
  int64_t now_us;
  return OPS->renew(f->ss, f->leases[0].owner, f->leases, SHARDS, 10000, fates, &now_us, &f->err);
}

/* One of them has no row any more, so the rows are locked and read. */
static enum store_status ask_to_settle(struct fixture *f) {
  bool lost[SHARDS];
  struct decision d[] = {decide_on(f, 1, EVENT_DONE), decide_on(f, 2, EVENT_DONE), decide_on(f, 2, EVENT_DONE)};
  d[2].id = 3;
  return OPS->settle(f->ss, f->leases, SHARDS, d, 3, lost, &f->err);
}

/* Whoever changes the answers on their way, by a column too few, gets a clear error out of us: no memory beyond the
 * columns is read, and nothing is committed that follows from such an answer. */
static void an_answer_with_a_column_too_few_is_refused(void **state) {
  struct fixture *f = *state;
  static const struct {
    const char *text;
    enum store_status (*ask)(struct fixture *f);
  } asked[] = {{"shard, epoch, owner", ask_shards},
               {"paused, reason", ask_settings},
               {"task_key, order_key, IF(", ask_ids},
               {"SELECT shard, epoch", ask_renewal},
               {"attempt, CAST(message_id AS BINARY), changed_at", ask_to_settle}};
  ROW("(id, route, payload, shard, message_id) VALUES (1, 'r', 'p', 0, 'm1'), (2, 'r', 'p', 0, 'm2')");
  sql(f, "INSERT INTO outbox_routes (route, paused, reason) VALUES ('r', FALSE, 'x')");
  for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
    f->err = (struct err){0};
    fault_arm(f, FAULT_FEWER, asked[i].text, 0, 1000);
    if (asked[i].ask(f) != STORE_DOWN || !strstr(f->err.text, "not what the statement gives"))
      fail_msg("%s: %s", asked[i].text, f->err.text);
    fault_arm(f, FAULT_NONE, "", 0, 0);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 2);
  ok(f, ask_to_settle(f));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
}

static void take_head(void *ctx, const struct store_head *head) { assert_non_null(head->route); }

static enum store_status ask_heads(struct fixture *f) { return OPS->heads(f->ss, NULL, take_head, NULL, &f->err); }

static enum store_status ask_some_heads(struct fixture *f) {
  return OPS->heads(f->ss, &(struct store_heads_part){.keys = 1}, take_head, NULL, &f->err);
}

static enum store_status ask_to_pause(struct fixture *f) {
  return OPS->set_route(f->ss, &(struct route_setting){.route = "r", .paused = true}, "ann", &f->err);
}

/* The same for a NULL where the column has none: it ended the daemon. */
static void an_answer_with_a_null_where_there_is_none_is_refused(void **state) {
  struct fixture *f = *state;
  static const struct {
    const char *text, *instead;
    enum store_status (*ask)(struct fixture *f);
  } asked[] = {{"o.failures, h.route,", "o.failures, NULL,", ask_heads},
               {"o.failures, h.route, h.order_key", "o.failures, h.route, NULL", ask_heads},
               {"SELECT h.route, h.order_key FROM", "SELECT NULL, h.order_key FROM", ask_some_heads},
               {"SELECT h.route, h.order_key FROM", "SELECT h.route, NULL FROM", ask_some_heads},
               {"SELECT paused, reason FROM", "SELECT NULL, reason FROM", ask_to_pause}};
  ROW("(id, route, payload, order_key, failures) VALUES (1, 'r', 'p', 'k', 1), (2, 'r', 'p', 'k2', 1)");
  sql(f, "INSERT INTO outbox_heads (head_id, shard, route, order_key, message_id, failures) "
         "SELECT id, shard, route, order_key, message_id, failures FROM outbox");
  sql(f, "INSERT INTO outbox_routes (route, paused, reason) VALUES ('r', FALSE, 'x')");
  for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
    f->err = (struct err){0};
    fault_instead(f, asked[i].text, asked[i].instead, 1000);
    if (asked[i].ask(f) != STORE_DOWN || !strstr(f->err.text, "not what the statement gives"))
      fail_msg("%s: %s", asked[i].instead, f->err.text);
    fault_arm(f, FAULT_NONE, "", 0, 0);
    ok(f, asked[i].ask(f));
  }
}

/* --- conflicts --- */

static void a_deadlock_is_redone(void **state) {
  struct fixture *f = *state;
  static const char *const where[] = {"outbox_attempts", "COMMIT"};
  struct decision d[2];
  two_rows(f, d, EVENT_RETRY);
  for (int i = 0; i < 2; i++) {
    fault_arm(f, FAULT_ERROR, where[i], DEADLOCK, 2);
    d[0].attempt_from = d[1].attempt_from = (uint32_t)i;
    d[0].attempt = d[1].attempt = (uint32_t)i + 1;
    assert_int_equal(settle(f, d, 2), 2);
  }
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(attempt) FROM outbox"), "2,2");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 4);
}

static void conflicts_without_end_leave_nothing_done(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  bool lost[SHARDS];
  two_rows(f, d, EVENT_DONE);
  fault_arm(f, FAULT_ERROR, "COMMIT", DEADLOCK, 1000);
  assert_int_equal(OPS->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_BUSY);
  assert_non_null(strstr(f->err.text, "1213"));
  assert_false(d[0].applied || d[1].applied);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 2);
  other(f, "UPDATE outbox SET priority = 9"); /* no lock is left behind */
  fault_arm(f, FAULT_NONE, "", 0, 0);
  assert_int_equal(settle(f, d, 2), 2);
  assert_done_once(f);
}

static void commit_other(struct fixture *f) { other(f, "COMMIT"); }

static void a_lock_wait_is_rolled_back_and_redone(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  two_rows(f, d, EVENT_DONE);
  other(f, "START TRANSACTION");
  other(f, "SELECT id FROM outbox WHERE id = 2 FOR UPDATE");
  fault_call(f, "ROLLBACK", commit_other); /* the first try has given up, with the first half of its work done */
  assert_int_equal(settle(f, d, 2), 2);
  assert_done_once(f);
}

/* --- lost connections --- */

static void a_killed_connection_is_replaced(void **state) {
  struct fixture *f = *state;
  static const char *const where[] = {"START TRANSACTION", "COMMIT"};
  for (int i = 0; i < 2; i++) {
    struct decision d[2];
    two_rows(f, d, EVENT_DONE);
    fault_arm(f, FAULT_KILL_BEFORE, where[i], 0, 1);
    assert_int_equal(settle(f, d, 2), 2);
    assert_done_once(f);
    sql(f, "DELETE FROM outbox_history");
    sql(f, "DELETE FROM outbox_attempts");
  }
  fault_arm(f, FAULT_KILL_BEFORE, "SELECT", 0, 1);
  assert_null(read_group(f, TASK_SCHEDULED, 0, "r"));
}

static void a_connection_that_dies_again_is_down(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  bool lost[SHARDS];
  two_rows(f, d, EVENT_DONE);
  fault_arm(f, FAULT_KILL_BEFORE, "START TRANSACTION", 0, 2);
  assert_int_equal(OPS->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_DOWN);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 2);
  assert_int_equal(settle(f, d, 2), 2);
  assert_done_once(f);
}

static void an_unknown_commit_of_one_row_is_found_out(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0), (2, 'r', 'p', 0)");
  for (uint64_t id = 1; id <= 2; id++) {
    struct decision d = decide_on(f, id, EVENT_DONE);
    fault_arm(f, id == 1 ? FAULT_LOSE_ANSWER : FAULT_KILL_BEFORE, "DELETE", 0, 1);
    assert_int_equal(settle(f, &d, 1), 1);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
}

static void an_unknown_claim_is_found_out(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t lost;
  const enum fault faults[] = {FAULT_LOSE_ANSWER, FAULT_KILL_BEFORE};
  for (int i = 0; i < 2; i++) {
    ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0), (2, 'r', 'p', 0)");
    fault_arm(f, faults[i], "COMMIT", 0, 1);
    ok(f, claim_rows(f, &f->leases[0], 1, ids, 2, 1000, 1000, &batch, &lost));
    assert_non_null(batch);
    assert_int_equal(batch->count, 2);
    assert_int_equal(batch->tasks[0].attempt, 1);
    release(batch);
    assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state, attempt) FROM outbox"), "claimed1,claimed1");
    sql(f, "DELETE FROM outbox");
  }
}

/* A session that is lost while it commits goes on in the server, and holds its rows. Whoever asked meanwhile whether
 * its claim happened passed these rows over and was told no; a moment later they were claimed, nobody knew of it, and
 * others of their order_keys overtook them. */
static void what_a_lost_session_executes_is_waited_for(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  struct db_conn *lost;
  size_t count;
  assert_true(db_open(&f->config, DB_DAEMON, "test", &lost, &f->err));
  starts(f, lost, "DO SLEEP(1)");
  db_close(&f->ss->conn);
  f->ss->lost_thread = db_thread(lost);
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO IS NOT NULL AND ID = %llu",
                       (unsigned long long)db_thread(lost)),
                   0);
  db_close(&lost);
}

/* A failover, a restored backup, a balancer between servers that know nothing of each other. */
static void another_server_is_noticed(void **state) {
  struct fixture *f = *state;
  struct outbox *outbox = f->store.self;
  struct shard_row rows[STORE_SHARDS_MAX];
  char server[STORE_SERVER_MAX], again[STORE_SERVER_MAX];
  size_t count;
  assert_int_equal(f->store.server(outbox, server), 0);
  assert_non_null(strchr(server, ':'));
  db_close(&f->ss->conn);
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  assert_int_equal(f->store.server(outbox, again), 0);
  assert_string_equal(server, again);
  snprintf(outbox->server, sizeof outbox->server, "elsewhere:3306");
  db_close(&f->ss->conn);
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  assert_int_equal(f->store.server(outbox, again), 1);
  assert_string_equal(server, again);
}

static void hold_another_shard(struct fixture *f) {
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_shards WHERE shard = 1 FOR UPDATE");
}

/* What was claimed is found although its shard cannot be fenced now. */
static void a_claim_is_found_in_a_shard_that_is_locked_by_now(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0), (2, 'r', 'p', 1)");
  session_met_lock(f->ss);
  fault_call(f, "PROCESSLIST", hold_another_shard);
  fault_arm(f, FAULT_LOSE_ANSWER, "COMMIT", 0, 1);
  ok(f, claim_rows(f, f->leases, 2, ids, 2, 1000, 1000, &batch, &lost));
  other(f, "ROLLBACK");
  assert_non_null(batch);
  assert_int_equal(batch->count, 2);
  release(batch);
}

static void hold_the_shards(struct fixture *f) {
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_shards FOR UPDATE");
}

/* Written, no answer, and no way to ask: that is not the same as rows that somebody else holds. */
static void a_claim_that_cannot_be_asked_about_is_unknown(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1};
  struct task_batch *batch;
  uint64_t lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0)");
  fault_call(f, "PROCESSLIST", hold_the_shards);
  fault_arm(f, FAULT_LOSE_ANSWER, "COMMIT", 0, 1);
  assert_int_equal(claim_rows(f, &f->leases[0], 1, ids, 1, 1000, 1000, &batch, &lost), STORE_DOWN);
  other(f, "ROLLBACK");
  assert_null(batch);
  ok(f, OPS->own_claims(f->ss, "me", f->leases, 2, 0, 100, &batch, &f->err));
  assert_int_equal(batch->count, 1);
  release(batch);
}

/* The server goes away twice in a row: the claim is given up, and nobody knows what became of it. */
static void claims_without_an_answer_are_found_by_their_name(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0), (2, 'r', 'p', 0)");
  ROW("(id, route, payload, shard, state, claimed_by, lease_until) VALUES (3, 'r', 'p', 0, 'claimed', 'she', "
      "'2035-01-01'), (4, 'r', 'p', 3, 'claimed', 'me', '2035-01-01'), (5, 'r', 'p', 0, 'claimed', 'me', "
      "'2035-01-01')");
  ok(f, OPS->own_claims(f->ss, "me", f->leases, 2, 0, 100, &batch, &f->err));
  assert_null(batch);
  fault_arm(f, FAULT_LOSE_ANSWER, "COMMIT", 0, 2);
  assert_int_equal(claim_rows(f, f->leases, 1, ids, 2, 1000, 1000, &batch, &lost), STORE_DOWN);
  assert_null(batch);
  ok(f, OPS->own_claims(f->ss, "me", f->leases, 2, 1, 100, &batch, &f->err)); /* the page behind id 1 */
  assert_int_equal(batch->count, 1);
  assert_int_equal(batch->tasks[0].id, 2);
  release(batch);
  ok(f, OPS->own_claims(f->ss, "me", f->leases, 2, 0, 100, &batch,
                        &f->err)); /* not in shard 3, nor under an earlier lease */
  assert_int_equal(batch->count, 2);
  struct decision d[2];
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(batch->tasks[i].id, ids[i]);
    assert_int_equal(batch->tasks[i].attempt, 1);
    d[i] = decide_on(f, ids[i], EVENT_RELEASE);
  }
  release(batch);
  assert_int_equal(settle(f, d, 2), 2);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state, recoveries ORDER BY id) FROM outbox"),
                      "scheduled0,scheduled0,claimed0,claimed0,claimed0");
  ok(f, OPS->own_claims(f->ss, "me", f->leases, 2, 0, 100, &batch, &f->err));
  assert_null(batch);
}

/* --- sessions that fall silent --- */

/* Returns when no transaction is open any more. */
static void wait_for_locks(struct fixture *f) {
  for (time_t limit = time(NULL) + 60; time(NULL) < limit; sql(f, "SELECT SLEEP(0.1)"))
    if (ask(f, "SELECT COUNT(*) FROM information_schema.INNODB_TRX") == 0)
      return;
  fail_msg("a session that is silent inside its transaction keeps its locks");
}

/* A daemon that is frozen, or cut off, between two statements of a transaction must not stop the others: the server
 * ends its transaction after seconds. */
static void a_silent_session_keeps_no_locks(void **state) {
  struct fixture *f = *state;
  const uint64_t id = 1;
  enum intervened changed;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0)");
  fault_call(f, "COMMIT", wait_for_locks);
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_CANCEL, &id, 1, 0, "ann", "m", "", 0, &changed, &f->err));
  assert_true(changed);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 1);
}

/* Where the server ends every session that is idle, the next call connects again and nobody notices. */
static void an_idle_session_that_the_server_ended_is_replaced(void **state) {
  struct fixture *f = *state;
  struct store_session *idle;
  int64_t now;
  sql(f, "SET GLOBAL wait_timeout = 2");
  ok(f, OPS->open(f->store.self, "idle", 0, &idle, &f->err));
  sql(f, "SET GLOBAL wait_timeout = 28800");
  int64_t id = ask(f, "SELECT MAX(id) FROM information_schema.processlist");
  while (ask(f, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %lld", (long long)id))
    sql(f, "SELECT SLEEP(0.1)");
  statements_sent();
  ok(f, OPS->now(idle, &now, &f->err));
  /* Setting up, checking the schema, counting shards, looking at engines and collations, asking: none failed. */
  assert_int_equal(statements_sent(), 5);
  OPS->close(&idle);
}

/* What a server may have as its defaults, each of which would cut answers or refuse writes. */
static void a_servers_defaults_do_not_matter(void **state) {
  struct fixture *f = *state;
  struct store_session *ss;
  struct store_range range = {.state = TASK_SCHEDULED, .priority = 5, .route = "r", .limit = 10};
  struct task_batch *batch;
  int64_t now;
  bool lost[SHARDS];
  struct decision d[2];
  two_rows(f, d, EVENT_DONE);
  ROW("(id, route, payload, shard, message_id) VALUES (3, 'r', 'p', 0, 'm3')");
  sql(f, "SET GLOBAL sql_select_limit = 1; SET GLOBAL sql_safe_updates = 1; SET GLOBAL completion_type = 'RELEASE'; "
         "SET GLOBAL TRANSACTION READ ONLY");
  enum store_status opened = OPS->open(f->store.self, "test", 0, &ss, &f->err);
  sql(f, "SET GLOBAL sql_select_limit = DEFAULT; SET GLOBAL sql_safe_updates = 0; SET GLOBAL completion_type = 0; "
         "SET GLOBAL TRANSACTION READ WRITE");
  ok(f, opened);
  ok(f, OPS->read(ss, &range, 1, 0, (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch, (int64_t[1]){0},
                  &now, &f->err));
  assert_int_equal(batch->count, 2);
  release(batch);
  ok(f, OPS->settle(ss, f->leases, SHARDS, d, 2, lost, &f->err));
  assert_true(d[0].applied && d[1].applied);
  OPS->close(&ss);
}

/* --- servers that may not be used --- */

static void a_server_that_becomes_read_only_is_left(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  struct store_session *second;
  bool lost[SHARDS];
  int64_t now;
  ok(f, OPS->open(f->store.self, "second", 0, &second, &f->err));
  two_rows(f, d, EVENT_DONE);
  sql(f, "SET GLOBAL read_only = 1");
  enum store_status status = OPS->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err);
  enum store_status others = OPS->now(second, &now, NULL);
  sql(f, "SET GLOBAL read_only = 0");
  assert_int_equal(status, STORE_DOWN);
  assert_non_null(strstr(f->err.text, "primary"));
  assert_int_equal(others, STORE_DOWN); /* the other session connects again as well, and sees it */
  assert_int_equal(settle(f, d, 2), 2);
  ok(f, OPS->now(second, &now, &f->err));
  OPS->close(&second);
  assert_done_once(f);
}

static enum store_status open_with(struct fixture *f, const struct database_config *config) {
  struct store_session *ss = NULL;
  f->config = *config;
  enum store_status status = OPS->open(f->store.self, "test", 0, &ss, &f->err);
  assert_int_equal(ss == NULL, status == STORE_REFUSED);
  OPS->close(&ss);
  return status;
}

static void refusals_say_what_to_do(void **state) {
  struct fixture *f = *state;
  const struct database_config good = f->config;
  struct database_config bad = good;
  bad.password = "wrong";
  assert_int_equal(open_with(f, &bad), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "check database.user and its password"));
  bad = good;
  bad.table = "other";
  assert_int_equal(open_with(f, &bad), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "duebox"));
  bad = good;
  bad.socket = NULL;
  bad.host = "192.0.2.1"; /* RFC 5737: never reached, because it is refused before */
  assert_int_equal(open_with(f, &bad), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "database.tls: true"));
  bad = good;
  bad.socket = "/nonexistent/socket";
  assert_int_equal(open_with(f, &bad), STORE_DOWN);
  assert_non_null(strstr(f->err.text, "/nonexistent/socket"));
  assert_int_equal(open_with(f, &good), STORE_OK);
}

static void tls_that_the_server_lacks_is_not_given_up(void **state) {
  struct fixture *f = *state;
  struct database_config config = f->config;
  if (is_mysql(f) || strcmp(ask_text(f, "SELECT @@have_ssl"), "YES") == 0) /* MySQL makes itself certificates */
    skip();
  config.socket = NULL;
  config.host = "127.0.0.1";
  config.port = ask(f, "SELECT @@port");
  assert_int_equal(open_with(f, &config), STORE_OK);
  config.tls = true;
  assert_int_not_equal(open_with(f, &config), STORE_OK);
}

static void schemas_that_are_not_ours_are_refused(void **state) {
  struct fixture *f = *state;
  const struct database_config config = f->config;
  sql(f, "INSERT INTO outbox_schema (version, name, checksum, applied_at) VALUES (9999, 'later', '', '2030-01-01')");
  assert_int_equal(open_with(f, &config), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "version 9999"));
  sql(f, "DELETE FROM outbox_schema WHERE version = 9999");
  sql(f, "UPDATE outbox_schema SET applied_at = NULL WHERE version = 2");
  assert_int_equal(open_with(f, &config), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "run `duebox migrate`"));
}

static void a_missing_table_says_so(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  two_rows(f, d, EVENT_DONE);
  sql(f, "RENAME TABLE outbox_history TO gone");
  assert_int_equal(settle(f, d, 2), 0);
  assert_true(d[0].refused && d[1].refused);
  assert_non_null(strstr(f->err.text, "run `duebox migrate`"));
  sql(f, "RENAME TABLE gone TO outbox_history");
  assert_int_equal(settle(f, d, 2), 2);
}

/* max_allowed_packet bounds what a server takes, not the rows that it gives. */
static void a_row_over_the_packet_limit_is_read(void **state) {
  struct fixture *f = *state;
  enum { PAYLOAD = 3 << 20, PACKET = 1 << 20 };
  struct store_range range = {.state = TASK_SCHEDULED, .priority = 5, .route = "r", .limit = 10};
  struct task_batch *batch;
  int64_t now, before = ask(f, "SELECT @@GLOBAL.max_allowed_packet");
  sql(f, "INSERT INTO outbox (route, payload, shard) VALUES ('r', REPEAT('x', %d), 0)", PAYLOAD);
  sql(f, "SET GLOBAL max_allowed_packet = %d", PACKET);
  OPS->close(&f->ss);
  ok(f, OPS->open(f->store.self, "test", 0, &f->ss, &f->err));
  enum store_status status =
      OPS->read(f->ss, &range, 1, 0, (struct store_limit){.payload = PAYLOAD, .bytes = PAYLOAD * 2}, &batch,
                (int64_t[1]){0}, &now, &f->err);
  sql(f, "SET GLOBAL max_allowed_packet = %lld", (long long)before);
  ok(f, status);
  assert_non_null(batch);
  assert_int_equal(batch->count, 1);
  assert_int_equal(batch->tasks[0].payload.len, PAYLOAD);
  task_release(&batch->tasks[0]);
}

static size_t misfits(struct fixture *f, bool *has) {
  const struct store_group *groups;
  struct task_batch *batch;
  size_t groups_count, count = 0;
  int64_t now;
  ok(f, OPS->look(f->ss, &(struct store_look){f->leases, SHARDS, TASK_BIT(TASK_SCHEDULED), NULL, 0, 0}, &groups,
                  &groups_count, &now, &f->err));
  assert_int_equal(groups_count, 1);
  *has = groups[0].has_misfits;
  ok(f, OPS->read_misfits(f->ss, &groups[0], 10, &batch, &f->err));
  for (size_t rows = batch ? batch->count : 0; count < rows; count++)
    task_release(&batch->tasks[count]);
  return count;
}

/* By the clock of a session that has no right time, where due_at is NULL: long due, and the ordinary read finds it. */
static void a_row_of_1970_is_no_misfit(void **state) {
  struct fixture *f = *state;
  struct store_range range = {.state = TASK_SCHEDULED, .priority = 5, .route = "r", .limit = 10};
  struct task_batch *batch;
  int64_t now;
  bool has;
  sql(f, "INSERT INTO outbox (route, payload, shard, created_at, due_at) VALUES ('r', 'x', 0, '1970-01-01', NULL)");
  assert_int_equal(misfits(f, &has), 0);
  assert_false(has);
  ok(f, OPS->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 10, .bytes = 100}, &batch, (int64_t[1]){0}, &now,
                  &f->err));
  assert_non_null(batch);
  assert_null(batch->tasks[0].unreadable);
  task_release(&batch->tasks[0]);
  if (is_mysql(f))
    return;
  sql(f, "SET check_constraint_checks = 0");
  sql(f, "UPDATE outbox SET created_at = '1969-12-31 23:59:59'");
  assert_int_equal(misfits(f, &has), 1);
  assert_true(has);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(an_answer_with_a_column_too_few_is_refused),
      TEST(an_answer_with_a_null_where_there_is_none_is_refused),
      TEST(a_deadlock_is_redone),
      TEST(conflicts_without_end_leave_nothing_done),
      TEST(a_lock_wait_is_rolled_back_and_redone),
      TEST(a_killed_connection_is_replaced),
      TEST(a_connection_that_dies_again_is_down),
      TEST(an_unknown_commit_of_one_row_is_found_out),
      TEST(an_unknown_claim_is_found_out),
      TEST(what_a_lost_session_executes_is_waited_for),
      TEST(another_server_is_noticed),
      TEST(a_claim_is_found_in_a_shard_that_is_locked_by_now),
      TEST(a_claim_that_cannot_be_asked_about_is_unknown),
      TEST(claims_without_an_answer_are_found_by_their_name),
      TEST(a_silent_session_keeps_no_locks),
      TEST(an_idle_session_that_the_server_ended_is_replaced),
      TEST(a_servers_defaults_do_not_matter),
      TEST(a_server_that_becomes_read_only_is_left),
      TEST(refusals_say_what_to_do),
      TEST(tls_that_the_server_lacks_is_not_given_up),
      TEST(schemas_that_are_not_ours_are_refused),
      TEST(a_missing_table_says_so),
      TEST(a_row_over_the_packet_limit_is_read),
      TEST(a_row_of_1970_is_no_misfit),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
