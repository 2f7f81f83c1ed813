/* SPDX-License-Identifier: MIT
 *
 * Settling on a real server: what each event writes, guards, fences, and that it takes few statements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops
#define ROW(...) sql(f, "INSERT INTO outbox " __VA_ARGS__)
#define IN_SECONDS(column) "TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), " column ")"

/* --- what is written --- */

static void done_without_history_leaves_nothing(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0)");
  struct decision d = decide_on(f, 1, EVENT_DONE);
  assert_int_equal(settle(f, &d, 1), 1);
  assert_int_equal(ask(f, "SELECT (SELECT COUNT(*) FROM outbox) + (SELECT COUNT(*) FROM outbox_history) + "
                          "(SELECT COUNT(*) FROM outbox_attempts)"),
                   0);
}

static void done_with_history_keeps_everything(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, message_id, task_key, headers, due_at, first_due_at, dedup_key, order_key, "
      "max_attempts, timeout_ms, expires_at, priority, last_error) VALUES (1, 'r', x'00ff27', 0, 'm', "
      "'k', "
      "'{\"a\":\"b\"}', '2020-01-02', '2020-01-01', 'd', 'o', 3, 4, '2040-01-01', 7, 'before')");
  struct decision d = decide_on(f, 1, EVENT_DONE);
  d.keep_us = INT64_C(3600000000);
  d.published_us = INT64_C(1577836800123456); /* 2020-01-01 00:00:00.123456 */
  d.log_attempt = true;
  assert_int_equal(settle(f, &d, 1), 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
  assert_string_equal(
      ask_text(f, "SELECT CONCAT_WS('|', id, message_id, route, HEX(payload), headers, task_key, due_at, priority, "
                  "order_key, dedup_key, max_attempts, timeout_ms, expires_at, shard, state, attempt, "
                  "failures, claimed_by, published_at, last_error) FROM outbox_history"),
      "1|m|r|00FF27|{\"a\":\"b\"}|k|2020-01-01 00:00:00.000000|7|o|d|3|4|2040-01-01 00:00:00.000000|0|done|1|0|me|"
      "2020-01-01 00:00:00.123456|before");
  assert_in_range(ask(f, "SELECT " IN_SECONDS("keep_until") " FROM outbox_history"), 3500, 3600);
  assert_string_equal(ask_text(f,
                               "SELECT CONCAT_WS('|', message_id, attempt, kind, outcome, task_id, route, claimed_by, "
                               "due_at, published_at) FROM outbox_attempts"),
                      "m|1|success|done|1|r|me|2020-01-02 00:00:00.000000|2020-01-01 00:00:00.123456");
}

static void a_retry_keeps_when_it_was_first_asked_for(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', '', 0, '2020-01-01')");
  for (int i = 1; i <= 2; i++) {
    struct decision d = decide_on(f, 1, EVENT_RETRY);
    d.failures++;
    d.delay_us = 3600 * INT64_C(1000000);
    d.log_attempt = true;
    d.error_class = "kafka.timeout";
    d.error = "it's \"late\"\n\xff\x01 \xe2\x82\xac";
    assert_int_equal(settle(f, &d, 1), 1);
    assert_int_equal(ask(f, "SELECT attempt * 10 + failures FROM outbox"), 11 * i);
  }
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, first_due_at, error_class, last_error, claimed_by, "
                                  "lease_until) FROM outbox"),
                      "scheduled|2020-01-01 00:00:00.000000|kafka.timeout|it's \"late\"\n?\x01 \xe2\x82\xac");
  assert_in_range(ask(f, "SELECT " IN_SECONDS("next_at") " FROM outbox"), 3500, 3600);
  assert_string_equal(
      ask_text(f, "SELECT GROUP_CONCAT(attempt, kind, outcome, error_class ORDER BY seq) FROM outbox_attempts"),
      "1failureretrykafka.timeout,2failureretrykafka.timeout");
}

static void absurd_numbers_do_not_stop_a_batch(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0), (2, 'r', '', 0)");
  struct decision d[] = {decide_on(f, 1, EVENT_RETRY), decide_on(f, 2, EVENT_DEAD)};
  char *huge = calloc(1, 200001);
  assert_non_null(huge);
  memset(huge, 'e', 200000);
  d[0].delay_us = INT64_MAX;
  d[0].error = huge;
  d[1].keep_us = INT64_MAX;
  d[1].error = huge;
  d[1].error_class = "a class that is longer than the sixty-four characters that its column holds, by far";
  assert_int_equal(settle(f, d, 2), 2);
  free(huge);
  assert_in_range(ask(f, "SELECT TIMESTAMPDIFF(DAY, UTC_TIMESTAMP(6), due_at) FROM outbox"), 3600, 3700);
  assert_in_range(ask(f, "SELECT LENGTH(last_error) FROM outbox"), 1000, 65535);
  assert_string_equal(ask_text(f, "SELECT error_class FROM outbox_history"),
                      "a class that is longer than the sixty-four characters that its c");
}

static void a_dead_task_raises_its_alert(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, message_id, task_key, due_at) VALUES (1, 'r', '', 0, 'm\"1', 'k', '2020-01-01 "
      "00:00:01')");
  struct decision d = decide_on(f, 1, EVENT_DEAD);
  d.failures = 3;
  d.keep_us = 1000000;
  d.error_class = "x";
  d.error = "broken \"pipe\"";
  d.alert_route = "ops.alert";
  d.log_attempt = true;
  assert_int_equal(settle(f, &d, 1), 1);
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', route, task_key, state) FROM outbox"),
                      "ops.alert|k|scheduled");
  assert_string_equal(ask_text(f,
                               "SELECT CONCAT_WS('|', JSON_VALUE(p, '$.message_id'), JSON_VALUE(p, '$.route'), "
                               "JSON_VALUE(p, '$.task_key'), JSON_VALUE(p, '$.attempt'), JSON_VALUE(p, '$.failures'), "
                               "JSON_VALUE(p, '$.error_class'), JSON_VALUE(p, '$.error'), JSON_VALUE(p, '$.due_at')) "
                               "FROM (SELECT CONVERT(payload USING utf8mb4) AS p FROM outbox) alert"),
                      "m\"1|r|k|1|3|x|broken \"pipe\"|2020-01-01T00:00:01.000000Z");
  assert_int_equal(ask(f, "SELECT JSON_VALUE(p, '$.dead_at') LIKE '20__-__-__T__:__:__.______Z' FROM (SELECT "
                          "CONVERT(payload USING utf8mb4) AS p FROM outbox) alert"),
                   1);
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, failures, last_error) FROM outbox_history"),
                      "dead|3|broken \"pipe\"");
}

static void a_published_row_awaits_its_result(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0), (2, 'r', '', 0)");
  for (uint64_t id = 1; id <= 2; id++) { /* the short way and, with a line in the attempts, the long way */
    struct decision d = decide_on(f, id, EVENT_PUBLISHED);
    d.delay_us = 900 * INT64_C(1000000);
    d.published_us = INT64_C(1577836800123456);
    d.log_attempt = id == 2;
    assert_int_equal(settle(f, &d, 1), 1);
  }
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state, attempt, published_at ORDER BY id) FROM outbox"),
                      "awaiting12020-01-01 00:00:00.123456,awaiting12020-01-01 00:00:00.123456");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE next_at = lease_until AND " IN_SECONDS(
                              "lease_until") " BETWEEN 800 AND 900"),
                   2);
  assert_string_equal(ask_text(f, "SELECT CONCAT(kind, outcome) FROM outbox_attempts"), "successpublished");
}

static void claims_are_released_and_rows_held_or_blocked(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, state, lease_until, claimed_by, attempt, due_at) VALUES "
      "(1, 'r', '', 0, 'claimed', '2030-01-01', 'me', 1, '2020-01-01')");
  ROW("(id, route, payload, shard) VALUES (2, 'r', '', 1), (3, 'r', '', 2)");
  struct decision d[] = {decide_on(f, 1, EVENT_RELEASE), decide_on(f, 2, EVENT_HOLD), decide_on(f, 3, EVENT_BLOCK)};
  d[0].attempt = 1;
  d[0].recoveries = 1;
  d[0].error = "its daemon ended";
  d[1].attempt = d[2].attempt = 0;
  assert_int_equal(settle(f, d, 3), 3);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id, state, attempt, recoveries, COALESCE(claimed_by, '-'), "
                                  "COALESCE(lease_until, '-'), COALESCE(last_error, '-') ORDER BY id) FROM outbox"),
                      "1scheduled11--its daemon ended,2held00---,3blocked00---");
  assert_string_equal(ask_text(f, "SELECT due_at FROM outbox WHERE id = 1"), "2020-01-01 00:00:00.000000");
}

static void expired_and_cancelled_rows_are_history(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0), (2, 'r', '', 1)");
  struct decision d[] = {decide_on(f, 1, EVENT_EXPIRE), decide_on(f, 2, EVENT_CANCEL)};
  assert_int_equal(settle(f, d, 2), 2);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id, state ORDER BY id) FROM outbox_history"),
                      "1expired,2cancelled");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
}

static void what_the_consumer_said_is_kept(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0), (2, 'r', '', 0), (3, 'r', '', 0)");
  struct result_record record = {.attempt = 1,
                                 .retry_in_ms = -1,
                                 .extend_ms = -1,
                                 .progress = 0.25,
                                 .error_message = "no",
                                 .error_stack = "at a\nat b",
                                 .checkpoint = "half\tway",
                                 .checkpoint_len = 8,
                                 .result_json = "{\"n\": 12345678901234567890}",
                                 .result_json_len = 27};
  struct decision d[] = {decide_on(f, 1, EVENT_DONE), decide_on(f, 2, EVENT_RETRY), decide_on(f, 3, EVENT_PUBLISHED)};
  for (int i = 0; i < 3; i++) {
    d[i].record = &record;
    d[i].error = record.error_message;
    d[i].log_attempt = i < 2;
    d[i].keep_us = 1000000;
  }
  assert_int_equal(settle(f, d, 3), 3);
  assert_string_equal(
      ask_text(f, "SELECT CONCAT_WS('|', result, checkpoint, progress, last_error) FROM outbox_history"),
      "{\"n\": 12345678901234567890}|half\tway|0.25|no\nat a\nat b");
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', checkpoint, progress, last_error) FROM outbox WHERE id = 2"),
                      "half\tway|0.25|no\nat a\nat b");
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', checkpoint, progress) FROM outbox WHERE id = 3"),
                      "half\tway|0.25");
  assert_string_equal(
      ask_text(f, "SELECT GROUP_CONCAT(kind, outcome, error, result ORDER BY task_id) FROM outbox_attempts"),
      "resultdoneno\nat a\nat b{\"n\": 12345678901234567890},"
      "resultretryno\nat a\nat b{\"n\": 12345678901234567890}");
}

/* --- guards and fences --- */

/* Inserts `count` rows into shard id % SHARDS and fills decisions about them, all done. */
static struct decision *many(struct fixture *f, size_t count) {
  struct decision *d = calloc(count, sizeof *d);
  assert_non_null(d);
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, due_at) SELECT seq, 'r', 'x', seq %% %d, '2020-01-01' "
      "FROM seq_1_to_%zu",
      SHARDS, count);
  for (size_t i = 0; i < count; i++)
    d[i] = (struct decision){.id = i + 1,
                             .message_id = message_id_of(f, i + 1),
                             .shard = (uint8_t)((i + 1) % SHARDS),
                             .event = EVENT_DONE,
                             .attempt = 1};
  return d;
}

static void guards_let_only_what_fits_through(void **state) {
  struct fixture *f = *state;
  struct decision *d = many(f, 100);
  sql(f, "UPDATE outbox SET state = 'held' WHERE id = 10");
  sql(f, "UPDATE outbox SET attempt = 1 WHERE id = 20");
  sql(f, "UPDATE outbox SET shard = 3 WHERE id = 29"); /* shard 1 as it was read */
  sql(f, "DELETE FROM outbox WHERE id = 40");
  for (int i = 49; i < 100; i++)
    d[i].event = EVENT_RETRY;
  sql(f, "UPDATE outbox SET attempt = 1 WHERE id = 90");
  d[90].keep_us = 1000000;
  d[90].event = EVENT_DONE;
  assert_int_equal(settle(f, d, 100), 95);
  assert_false(d[9].applied || d[19].applied || d[28].applied || d[39].applied || d[89].applied);
  assert_true(d[0].applied && d[90].applied);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id ORDER BY id) FROM outbox WHERE id < 50"), "10,20,29");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE attempt = 1 AND id >= 50"), 50);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), 1);
  assert_int_equal(settle(f, d, 100), 0);
  free(d);
}

static void one_row_alone_is_guarded_too(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0)");
  const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_PUBLISHED, EVENT_RELEASE};
  for (size_t i = 0; i < 4; i++) {
    struct decision d = decide_on(f, 1, events[i]);
    d.attempt_from++;
    assert_int_equal(settle(f, &d, 1), 0);
    d = decide_on(f, 1, events[i]);
    d.from = TASK_CLAIMED;
    assert_int_equal(settle(f, &d, 1), 0);
    d = decide_on(f, 1, events[i]);
    d.shard = 1;
    assert_int_equal(settle(f, &d, 1), 0);
  }
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, attempt) FROM outbox"), "scheduled0");
}

static void impossible_and_repeated_decisions_are_not_applied(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, state, lease_until) VALUES (1, 'r', '', 0, 'awaiting', '2030-01-01')");
  ROW("(id, route, payload, shard) VALUES (2, 'r', '', 0)");
  struct decision d[] = {decide_on(f, 1, EVENT_HOLD), decide_on(f, 2, EVENT_DONE), decide_on(f, 2, EVENT_DONE)};
  assert_int_equal(settle(f, d, 3), 1);
  assert_false(d[0].applied);
}

static void a_stale_epoch_settles_nothing(void **state) {
  struct fixture *f = *state;
  struct decision *d = many(f, 40);
  bool lost[SHARDS];
  sql(f, "UPDATE outbox_shards SET epoch = epoch + 1, owner = 'other' WHERE shard IN (1, 2)");
  ok(f, OPS->settle(f->ss, f->leases, SHARDS, d, 40, lost, &f->err));
  assert_true(!lost[0] && lost[1] && lost[2] && !lost[3]);
  for (int i = 0; i < 40; i++)
    assert_int_equal(d[i].applied, d[i].shard == 0 || d[i].shard == 3);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 20);
  const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_PUBLISHED, EVENT_DEAD};
  for (int i = 0; i < 4; i++) { /* one row alone */
    d[0].event = events[i];
    ok(f, OPS->settle(f->ss, &f->leases[1], 1, d, 1, lost, &f->err));
    assert_true(lost[0] && !d[0].applied);
  }
  ok(f, OPS->settle(f->ss, f->leases, 1, d, 40, lost, &f->err)); /* no lease at all for most */
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 20);
  free(d);
}

/* A daemon that is stopped between two round trips must not keep a shard from the others: the fence is in the script
 * that commits, whichever way the batch is settled. */
static void no_lock_on_a_shard_lives_across_a_round_trip(void **state) {
  struct fixture *f = *state;
  struct decision *d = many(f, 40);
  sql(f, "UPDATE outbox SET attempt = 1 WHERE id = 7"); /* the quick way fails, the careful way follows */
  char **scripts;
  capture_start();
  assert_int_equal(settle(f, d, 40), 39);
  size_t count = capture_end(&scripts), fences = 0;
  for (size_t i = 0; i < count; i++) {
    bool fenced = strstr(scripts[i], "LOCK IN SHARE MODE");
    fences += fenced;
    assert_true(!fenced || strstr(strstr(scripts[i], "LOCK IN SHARE MODE"), "COMMIT"));
    free(scripts[i]);
  }
  assert_int_equal(fences, 2);
  free(d);
}

static void take_in_the_middle(struct fixture *f) {
  sql(f, "SET innodb_lock_wait_timeout = 1");
  assert_int_equal(sql_error(f, "UPDATE outbox_shards SET epoch = epoch + 1, owner = 'other' WHERE shard = 0"), 0);
}

static void wait_for_the_writes(struct fixture *f) { fault_call(f, "COMMIT", take_in_the_middle); }

/* The careful way judges the rows before it has the fence: whoever takes a shard in between makes it begin again. */
static void a_shard_taken_between_judging_and_writing_is_lost(void **state) {
  struct fixture *f = *state;
  struct decision *d = many(f, 40);
  bool lost[SHARDS];
  sql(f, "UPDATE outbox SET attempt = 1 WHERE id = 7");
  fault_call(f, "FOR UPDATE", wait_for_the_writes);
  ok(f, OPS->settle(f->ss, f->leases, SHARDS, d, 40, lost, &f->err));
  assert_true(lost[0] && !lost[1]);
  for (int i = 0; i < 40; i++)
    assert_int_equal(d[i].applied, d[i].shard != 0 && d[i].id != 7);
  free(d);
}

/* A failover may hand an epoch out twice: the fence knows whose it is. */
static void an_epoch_that_another_daemon_has_too_is_no_right(void **state) {
  struct fixture *f = *state;
  struct decision *d = many(f, 40);
  bool lost[SHARDS];
  sql(f, "UPDATE outbox_shards SET owner = 'other' WHERE shard = 1");
  ok(f, OPS->settle(f->ss, f->leases, SHARDS, d, 40, lost, &f->err));
  assert_true(!lost[0] && lost[1]);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 10);
  ok(f, OPS->settle(f->ss, &f->leases[1], 1, &d[0], 1, lost, &f->err)); /* one row alone */
  assert_true(lost[0] && !d[0].applied);
  free(d);
}

static void take_and_do_not_commit_yet(struct fixture *f) {
  other(f, "START TRANSACTION");
  other(f, "UPDATE outbox_shards SET epoch = epoch + 1 WHERE shard = 0");
}

static void one_row_alone_waits_for_whoever_takes_the_shard(void **state) {
  struct fixture *f = *state;
  bool lost[SHARDS];
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0)");
  struct decision d = decide_on(f, 1, EVENT_DONE);
  fault_call(f, "DELETE", take_and_do_not_commit_yet);
  ok(f, OPS->settle(f->ss, f->leases, SHARDS, &d, 1, lost, &f->err));
  assert_true(d.busy && !lost[0] && !d.applied); /* nobody knows yet whose it will be */
  other(f, "COMMIT");
  ok(f, OPS->settle(f->ss, f->leases, SHARDS, &d, 1, lost, &f->err));
  assert_true(lost[0] && !d.busy && !d.applied);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 1);
}

/* --- changes after reading --- */

/* A change that commits while the copy is at the sink is not deleted as done with the old content: the row is due again
 * with the new one, the next attempt and the next revision. */
static void a_change_in_flight_is_sent_too(void **state) {
  struct fixture *f = *state;
  static const char *const changes[] = {"payload = 'new'",       "headers = '{\"a\":\"b\"}'",
                                        "task_key = 'k'",        "order_key = 'k'",
                                        "due_at = '2020-01-02'", "dedup_key = CONCAT('d', id), payload = 'xx'"};
  static const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_DEAD, EVENT_PUBLISHED};
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', 'x', 0, '2020-01-01'), (2, 'r', 'x', 0, '2020-01-01'), "
        "(3, 'r', 'x', 0, '2020-01-01')");
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    assert_int_equal(batch->count, 3);
    struct decision d[] = {decide_on_sent(&batch->tasks[0], events[i % 4]),
                           decide_on_sent(&batch->tasks[1], events[i % 4]),
                           decide_on_sent(&batch->tasks[2], EVENT_DONE)};
    sql(f, "UPDATE outbox SET %s WHERE id IN (2, 3)", changes[i]);
    assert_int_equal(settle(f, d, 2), 2);
    assert_int_equal(settle(f, d + 2, 1), 1); /* one alone */
    assert_true(!d[0].changed && d[1].changed && d[2].changed);
    assert_string_equal(
        ask_text(f, "SELECT GROUP_CONCAT(CONCAT_WS('|', state, attempt, revision) ORDER BY id) FROM outbox "
                    "WHERE id > 1"),
        "scheduled|1|1,scheduled|1|1");
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE id > 1 AND %s", i == 5 ? "payload = 'xx'" : changes[i]),
                     2);
    release(batch);
    sql(f, "DELETE FROM outbox");
  }
}

/* A change of what no consumer sees, or one that leaves all as it was, makes no copy. */
static void a_change_of_nothing_that_was_sent_is_settled(void **state) {
  struct fixture *f = *state;
  for (int alone = 0; alone < 2; alone++) {
    ROW("(id, route, payload, shard) VALUES (1, 'r', 'x', 0), (2, 'r', 'x', 0)");
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct decision d[] = {decide_on_sent(&batch->tasks[0], EVENT_DONE), decide_on_sent(&batch->tasks[1], EVENT_DONE)};
    sql(f, "UPDATE outbox SET priority = 7, max_attempts = 9");
    sql(f, "UPDATE outbox SET payload = 'y'");
    sql(f, "UPDATE outbox SET payload = 'x'");
    assert_int_equal(alone ? settle(f, d, 1) + settle(f, d + 1, 1) : settle(f, d, 2), 2);
    assert_true(!d[0].changed && !d[1].changed);
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
    release(batch);
  }
}

/* In a batch each row is judged by itself. */
static void changes_of_some_rows_of_a_batch(void **state) {
  struct fixture *f = *state;
  enum { ROWS = 20 };
  struct decision d[ROWS];
  sql(f, "INSERT INTO outbox (id, route, payload, shard) SELECT seq, 'r', CONCAT('old', seq), 0 FROM seq_1_to_20");
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  assert_int_equal(batch->count, ROWS);
  for (int i = 0; i < ROWS; i++)
    d[i] = decide_on_sent(&batch->tasks[i], EVENT_DONE);
  sql(f, "UPDATE outbox SET payload = REPLACE(payload, 'old', 'new') WHERE id %% 2 = 0");
  sql(f, "UPDATE outbox SET priority = 9 WHERE id %% 4 = 1");
  assert_int_equal(settle(f, d, ROWS), ROWS);
  for (int i = 0; i < ROWS; i++)
    assert_int_equal(d[i].changed, d[i].id % 2 == 0);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE payload LIKE 'new%%' AND revision = 1"), ROWS / 2);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), ROWS / 2);
  release(batch);
}

/* What was decided without sending, about a row that is another by now, is decided anew. */
static void what_was_not_sent_is_judged_again(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, expires_at) VALUES (1, 'r', 'x', 0, '2020-01-01')");
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  struct decision d = decide_on_sent(&batch->tasks[0], EVENT_EXPIRE);
  d.sent = NULL;
  sql(f, "UPDATE outbox SET expires_at = '2040-01-01'");
  assert_int_equal(settle(f, &d, 1), 0);
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, attempt, revision) FROM outbox"), "scheduled00");
  release(batch);
}

/* Our own statements change no version: settling what follows them stays quick. */
static void our_own_changes_make_no_version(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_RETRY, EVENT_HOLD, EVENT_BLOCK};
  for (size_t i = 0; i < 3; i++) {
    ROW("(id, route, payload, shard) VALUES (1, 'r', 'x', 0)");
    sql(f, "UPDATE outbox SET changed_at = '2020-01-01 00:00:00.000007'");
    struct decision d = decide_on(f, 1, events[i]);
    assert_int_equal(settle(f, &d, 1), 1);
    assert_string_equal(ask_text(f, "SELECT changed_at FROM outbox"), "2020-01-01 00:00:00.000007");
    sql(f, "DELETE FROM outbox");
  }
}

/* --- cost --- */

/* How many it takes, on a session that need not connect again since it was idle. */
static int round_trips(struct fixture *f, struct decision *d, size_t count) {
  int64_t now;
  ok(f, OPS->now(f->ss, &now, &f->err));
  statements_sent();
  assert_int_equal(settle(f, d, count), count);
  return statements_sent();
}

static void a_batch_takes_one_round_trip(void **state) {
  struct fixture *f = *state;
  struct decision *d = many(f, 1000);
  assert_int_equal(round_trips(f, d, 999), 1);
  assert_int_equal(round_trips(f, &d[999], 1), 1);
  free(d);
}

static void large_batches_of_large_texts_are_split(void **state) {
  struct fixture *f = *state;
  struct decision *d = many(f, 3000);
  char *error = calloc(1, 4096);
  assert_non_null(error);
  memset(error, '\'', 4095);
  for (size_t i = 0; i < 3000; i++) {
    d[i].event = i % 2 ? EVENT_RETRY : EVENT_DEAD;
    d[i].keep_us = 1000000;
    d[i].log_attempt = true;
    d[i].error = error;
  }
  assert_int_equal(settle(f, d, 3000), 3000);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE attempt = 1 AND LENGTH(last_error) = 4095"), 1500);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE LENGTH(last_error) = 4095"), 1500);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 3000);
  free(error);
  free(d);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(done_without_history_leaves_nothing),
      TEST(done_with_history_keeps_everything),
      TEST(a_retry_keeps_when_it_was_first_asked_for),
      TEST(absurd_numbers_do_not_stop_a_batch),
      TEST(a_dead_task_raises_its_alert),
      TEST(a_published_row_awaits_its_result),
      TEST(claims_are_released_and_rows_held_or_blocked),
      TEST(expired_and_cancelled_rows_are_history),
      TEST(what_the_consumer_said_is_kept),
      TEST(guards_let_only_what_fits_through),
      TEST(one_row_alone_is_guarded_too),
      TEST(impossible_and_repeated_decisions_are_not_applied),
      TEST(a_stale_epoch_settles_nothing),
      TEST(no_lock_on_a_shard_lives_across_a_round_trip),
      TEST(a_shard_taken_between_judging_and_writing_is_lost),
      TEST(an_epoch_that_another_daemon_has_too_is_no_right),
      TEST(one_row_alone_waits_for_whoever_takes_the_shard),
      TEST(a_change_in_flight_is_sent_too),
      TEST(a_change_of_nothing_that_was_sent_is_settled),
      TEST(changes_of_some_rows_of_a_batch),
      TEST(what_was_not_sent_is_judged_again),
      TEST(our_own_changes_make_no_version),
      TEST(a_batch_takes_one_round_trip),
      TEST(large_batches_of_large_texts_are_split),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
