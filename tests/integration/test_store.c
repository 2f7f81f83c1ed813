/* SPDX-License-Identifier: MIT
 *
 * The store against a real server: leases, reading, claiming and settling when nothing goes wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops
#define ROW(...) sql(f, "INSERT INTO outbox " __VA_ARGS__)

/* --- instances and shards --- */

static void instances_live_and_leave(void **state) {
  struct fixture *f = *state;
  struct instance_row me = {
      .id = "a", .host = "h'ost", .admin_url = "http://127.0.0.1:1", .version = "1", .routes = "x", .pid = 42};
  uint32_t living, sets;
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(living, 1);
  me.id = "b";
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(living, 2);
  assert_int_equal(sets, 1);
  me.routes = "y";
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(sets, 2);
  me.routes = ""; /* it ends, and takes no shards */
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(living, 1);
  assert_int_equal(sets, 1);
  me.routes = "y";
  sql(f, "UPDATE outbox_instances SET alive_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE id = 'a'");
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(living, 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_instances"), 2);
  sql(f, "UPDATE outbox_instances SET alive_until = UTC_TIMESTAMP(6) - INTERVAL 25 HOUR WHERE id = 'a'");
  ok(f, OPS->housekeep(f->ss, 86400000, 86400000, &f->err));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_instances"), 1);
  assert_string_equal(ask_text(f, "SELECT host FROM outbox_instances WHERE id = 'b'"), "h'ost");
  ok(f, OPS->leave(f->ss, &(struct instance_row){.id = "b", .host = "h"}, &f->err));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_instances"), 0);
}

static void clock_is_the_databases(void **state) {
  struct fixture *f = *state;
  int64_t now;
  ok(f, OPS->now(f->ss, &now, &f->err));
  int64_t said = ask(f, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))");
  assert_true(now <= said && said - now < 60 * 1000000);
}

static void one_of_two_acquires(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch;
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE shard = 2");
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  assert_true(rows[2].expired && rows[2].unclean);
  assert_false(rows[1].expired);
  assert_string_equal(rows[1].owner, "me");
  ok(f, OPS->acquire(f->ss, "second", &rows[2], 60000, &epoch, &f->err));
  assert_true(epoch > rows[2].epoch);
  ok(f, OPS->acquire(f->ss, "third", &rows[2], 60000, &epoch, &f->err));
  assert_int_equal(epoch, 0);
  ok(f, OPS->acquire(f->ss, "third", &rows[1], 60000, &epoch, &f->err));
  assert_int_equal(epoch, 0);
  assert_string_equal(ask_text(f, "SELECT owner FROM outbox_shards WHERE shard = 2"), "second");
}

/* The server comes back with a clock that is an hour behind. The leases of the dead, and their signs of life, used to
 * count for that hour, and nobody took their shards; nor did anything say so. */
static void a_lease_from_before_the_clock_was_put_back_is_over(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch;
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE shard = 2");
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 10 MINUTE WHERE shard = 1");
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  assert_true(rows[2].expired && rows[2].unclean);
  assert_false(rows[1].expired);
  ok(f, OPS->acquire(f->ss, "second", &rows[2], 60000, &epoch, &f->err));
  assert_true(epoch > rows[2].epoch);
  ok(f, OPS->acquire(f->ss, "second", &rows[1], 60000, &epoch, &f->err));
  assert_int_equal(epoch, 0);
}

static void renewal_tells_what_is_lost(void **state) {
  struct fixture *f = *state;
  enum lease_fate fates[SHARDS];
  int64_t now;
  sql(f, "UPDATE outbox_shards SET owner = 'other', epoch = epoch + 1 WHERE shard = 1");
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 SECOND");
  ok(f, OPS->renew(f->ss, "me", f->leases, SHARDS, 60000, fates, &now, &f->err));
  assert_int_equal(fates[1], LEASE_LOST);
  for (int i = 0; i < SHARDS; i += i ? 1 : 2)
    assert_int_equal(fates[i], LEASE_RENEWED);
  assert_int_equal(
      ask(f, "SELECT COUNT(*) FROM outbox_shards WHERE lease_until > UTC_TIMESTAMP(6) + INTERVAL 30 SECOND"), 3);
}

static void only_the_leases_named_are_renewed(void **state) {
  struct fixture *f = *state;
  enum lease_fate fate;
  int64_t now;
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 10 SECOND");
  ok(f, OPS->renew(f->ss, "me", &f->leases[2], 1, 60000, &fate, &now, &f->err));
  assert_int_equal(fate, LEASE_RENEWED);
  assert_string_equal(ask_text(f,
                               "SELECT GROUP_CONCAT(shard) FROM outbox_shards WHERE lease_until > UTC_TIMESTAMP(6) + "
                               "INTERVAL 30 SECOND"),
                      "2");
}

static void what_was_seen_long_ago_acquires_nothing(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch;
  ok(f, OPS->give_back(f->ss, "me", &f->leases[0], false, &f->err));
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  ok(f, OPS->acquire(f->ss, "other", &rows[0], 60000, &epoch, &f->err));
  const struct shard_lease theirs = {.shard = 0, .epoch = epoch, .owner = "other"};
  ok(f, OPS->give_back(f->ss, "other", &theirs, false, &f->err));
  ok(f, OPS->acquire(f->ss, "me", &rows[0], 60000, &epoch, &f->err));
  assert_int_equal(epoch, 0);
  assert_string_equal(ask_text(f, "SELECT owner FROM outbox_shards WHERE shard = 0"), "(null)");
}

static void shard_given_back_is_clean_and_ends_our_rights(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  enum lease_fate fate;
  int64_t now;
  bool lost[1];
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'x', 3)");
  struct decision done = decide_on(f, 1, EVENT_DONE);
  ok(f, OPS->give_back(f->ss, "me", &f->leases[3], false, &f->err));
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  assert_true(rows[3].expired && !rows[3].unclean);
  assert_string_equal(rows[3].owner, "");
  ok(f, OPS->renew(f->ss, "me", &f->leases[3], 1, 60000, &fate, &now, &f->err));
  assert_int_equal(fate, LEASE_LOST);
  ok(f, OPS->settle(f->ss, &f->leases[3], 1, &done, 1, lost, &f->err));
  assert_true(lost[0] && !done.applied);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 1);
}

/* --- reading --- */

static void look_finds_the_earliest_of_each_group(void **state) {
  struct fixture *f = *state;
  const struct store_group *groups;
  size_t count;
  int64_t now;
  ok(f, OPS->look(f->ss, &(struct store_look){f->leases, SHARDS, LIVING, NULL, 0, 0}, &groups, &count, &now, &f->err));
  assert_int_equal(count, 0);
  assert_true(now > 0);
  ROW("(route, payload, shard, due_at, priority) VALUES ('b', 'x', 1, '2030-01-01 00:00:02', 5), "
      "('b', 'x', 1, '2030-01-01 00:00:01.000001', 5), ('b', 'x', 1, '2031-01-01', 9), ('c', 'x', 2, '2031-01-01', 5)");
  ROW("(route, payload, shard, state, lease_until) VALUES ('b', 'x', 1, 'awaiting', '2029-01-01')");
  ok(f, OPS->look(f->ss, &(struct store_look){&f->leases[1], 1, LIVING, NULL, 0, 0}, &groups, &count, &now, &f->err));
  assert_int_equal(count, 3);
  assert_int_equal(groups[0].state, TASK_SCHEDULED);
  assert_int_equal(groups[0].priority, 5);
  assert_string_equal(groups[0].route, "b");
  assert_int_equal(groups[0].next_us, INT64_C(1893456001000001));
  assert_int_equal(groups[1].priority, 9);
  assert_int_equal(groups[2].state, TASK_AWAITING);
  assert_int_equal(groups[2].next_us, INT64_C(1861920000000000));
}

static void a_row_is_read_as_it_was_written(void **state) {
  struct fixture *f = *state;
  ROW("(route, payload, shard, headers, task_key, order_key, message_id, max_attempts, timeout_ms, expires_at, "
      "target_host, due_at, first_due_at, attempt, failures, recoveries, checkpoint) VALUES ('r', 'p', 63, "
      "'{\"a\": \"\\u00e9\"}', 'k\xc3\xa9y', 'o', 'm-1', 7, 1500, '2040-01-01 00:00:00.5', 'host', "
      "'2020-02-29 12:34:56.789012', '2019-12-31 23:59:59.999999', 3, 2, 1, 'half')");
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, SHARD_BOUND, "r");
  assert_int_equal(batch->count, 1);
  const struct task *task = &batch->tasks[0];
  assert_int_equal(task->id, ask(f, "SELECT id FROM outbox"));
  assert_string_equal(task->headers.data, "{\"a\": \"u00e9\"}");
  assert_string_equal(task->task_key.data, "k\xc3\xa9y");
  assert_int_equal(task->task_key.len, 4);
  assert_string_equal(task->order_key.data, "o");
  assert_string_equal(task->message_id.data, "m-1");
  assert_string_equal(task->route.data, "r");
  assert_string_equal(task->target_host.data, "host");
  assert_string_equal(task->checkpoint.data, "half");
  assert_int_equal(task->max_attempts, 7);
  assert_int_equal(task->timeout_ms, 1500);
  assert_int_equal(task->expires_us, INT64_C(2208988800500000));
  assert_int_equal(task->due_us, INT64_C(1582979696789012));
  assert_int_equal(task->asked_due_us, INT64_C(1577836799999999));
  assert_int_equal(task->attempt, 3);
  assert_int_equal(task->failures, 2);
  assert_int_equal(task->recoveries, 1);
  assert_int_equal(task->priority, 5);
  release(batch);
}

static void payload_bytes_come_unchanged(void **state) {
  struct fixture *f = *state;
  char hex[513] = "";
  for (int i = 0; i < 256; i++)
    snprintf(hex + 2 * i, 3, "%02x", i);
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', x'%s', 0, '2020-01-01'), (2, 'r', '', 0, '2020-01-02'), "
      "(3, 'r', REPEAT('m', 1048576), 0, '2020-01-03'), (4, 'r', REPEAT('L', 8388609), 0, '2020-01-04')",
      hex);
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  assert_int_equal(batch->count, 4);
  assert_int_equal(batch->tasks[0].payload.len, 256);
  for (int i = 0; i < 256; i++)
    assert_int_equal((unsigned char)batch->tasks[0].payload.data[i], i);
  assert_non_null(batch->tasks[1].payload.data);
  assert_int_equal(batch->tasks[1].payload.len, 0);
  assert_int_equal(batch->tasks[2].payload.len, 1048576);
  assert_int_equal(batch->tasks[2].payload.data[1048575], 'm');
  assert_null(batch->tasks[3].payload.data);
  assert_int_equal(batch->tasks[3].payload_len, 8388609);
  release(batch);
}

static void nothing_is_read_early(void **state) {
  struct fixture *f = *state;
  ROW("(route, payload, shard, delay_ms) VALUES ('r', 'x', 0, 3600000)");
  assert_null(read_group(f, TASK_SCHEDULED, 0, "r"));
}

/* Reads the group in steps of two and returns the ids as digits. */
static const char *walk(struct fixture *f, struct store_cursor after, char *out) {
  char *end = out;
  for (;;) {
    struct store_range range = {
        .state = TASK_SCHEDULED, .shard = 0, .priority = 5, .route = "r", .after = after, .limit = 2};
    struct task_batch *batch;
    int64_t now;
    ok(f, OPS->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch,
                    (int64_t[1]){0}, &now, &f->err));
    *end = '\0';
    if (!batch)
      return out;
    for (size_t i = 0; i < batch->count; i++)
      end += sprintf(end, "%llu", (unsigned long long)batch->tasks[i].id);
    const struct task *last = &batch->tasks[batch->count - 1];
    after = (struct store_cursor){.next_us = last->due_us, .id = last->id};
    release(batch);
  }
}

static void a_cursor_meets_every_row_once(void **state) {
  struct fixture *f = *state;
  char out[64];
  ROW("(id, route, payload, shard, due_at) VALUES (3, 'r', '', 0, '2020-01-01'), (1, 'r', '', 0, '2020-01-02'), "
      "(7, 'r', '', 0, '2020-01-02'), (5, 'r', '', 0, '2020-01-02'), (2, 'r', '', 0, '2020-01-03'), "
      "(4, 'other', '', 0, '2020-01-03'), (6, 'r', '', 1, '2020-01-03')");
  assert_string_equal(walk(f, (struct store_cursor){0}, out), "31572");
}

static void groups_are_read_one_after_the_other_in_one_statement(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, priority, due_at) VALUES (1, 'r', 'a', 0, 5, '2020-01-01'), (2, 'r', 'b', 0, 9, "
      "'2020-01-02'), (3, 'r', 'c', 0, 5, '2020-01-03'), (4, 's', 'd', 1, 9, '2020-01-01'), (5, 'r', 'e', 0, 5, "
      "'2020-01-02')");
  const struct store_range ranges[] = {
      {.state = TASK_SCHEDULED, .shard = 0, .priority = 9, .route = "r", .limit = 10},
      {.state = TASK_SCHEDULED, .shard = 0, .priority = 5, .route = "r", .limit = 2},
      {.state = TASK_SCHEDULED, .shard = 3, .priority = 5, .route = "r", .limit = 10},
      {.state = TASK_SCHEDULED, .shard = 1, .priority = 9, .route = "s", .limit = 10},
  };
  const char expected[] = "2154";
  struct task_batch *batch;
  int64_t now;
  statements_sent();
  ok(f, OPS->read(f->ss, ranges, 4, 0, (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch,
                  (int64_t[4]){0}, &now, &f->err));
  assert_int_equal(statements_sent(), 1);
  assert_int_equal(batch->count, 4);
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(batch->tasks[i].id, expected[i] - '0');
  assert_string_equal(batch->tasks[3].payload.data, "d");
  release(batch);
}

static void a_late_commit_is_found_behind_the_cursor(void **state) {
  struct fixture *f = *state;
  other(f, "START TRANSACTION");
  other(f, "INSERT INTO outbox (id, route, payload, shard, due_at) VALUES (1, 'r', '', 0, '2020-01-01')");
  ROW("(id, route, payload, shard, due_at, order_key) VALUES (2, 'r', '', 0, '2020-01-02', 'k')");
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  assert_int_equal(batch->count, 1);
  struct store_cursor until = {.next_us = batch->tasks[0].due_us, .id = 2};
  release(batch);
  other(f, "COMMIT");
  struct store_range range = {.state = TASK_SCHEDULED, .priority = 5, .route = "r", .limit = 10};
  struct found_id found[10];
  size_t count;
  ok(f, OPS->find(f->ss, &range, &until, 1, found, &count, &f->err));
  assert_int_equal(count, 2);
  assert_int_equal(found[0].id, 1);
  assert_false(found[0].keyed);
  assert_int_equal(found[1].id, 2);
  assert_true(found[1].keyed);
  range.last = true;
  ok(f, OPS->find(f->ss, &range, &until, 1, found, &count, &f->err));
  assert_int_equal(count, 2);
  assert_int_equal(found[0].id, 2);
  range.last = false;
  until.id = 1;
  range.priorities = 1u << 4 | 1u << 5 | 1u << (range.priority = 6);
  ok(f, OPS->find(f->ss, &range, &until, 1, found, &count, &f->err));
  assert_int_equal(count, 1);
}

static void rows_are_read_by_id_while_they_are_due_and_in_state(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2, 3, 4, 99};
  struct task_batch *batch;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', 'one', 0, '2020-01-01'), (2, 'r', 'two', 1, '2020-01-01'), "
      "(3, 'r', 'three', 0, '2100-01-01')");
  ROW("(id, route, payload, shard, state) VALUES (4, 'r', 'four', 0, 'held')");
  ok(f, OPS->read_ids(f->ss, TASK_SCHEDULED, shard_bit(0), NULL, ids, 5, 0,
                      (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch, &f->err));
  assert_int_equal(batch->count, 1);
  assert_string_equal(batch->tasks[0].payload.data, "one");
  release(batch);
}

static void tasks_bound_to_a_host_are_read_by_that_host(void **state) {
  struct fixture *f = *state;
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  struct store_range range = {.state = TASK_SCHEDULED, .shard = SHARD_BOUND, .priority = 5, .route = "r", .limit = 10};
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t not_ours;
  struct found_id found[10];
  size_t count;
  bool lost;
  ROW("(id, route, payload, target_host) VALUES (1, 'r', 'a', 'one'), (2, 'r', 'b', 'it\\'s'), (3, 'r', 'c', '')");
  range.host = "it's";
  ok(f, OPS->find(f->ss, &range, &(struct store_cursor){INT64_MAX, UINT64_MAX}, 1, found, &count, &f->err));
  assert_int_equal(count, 2);
  assert_true(found[0].id == 1 && found[0].foreign);
  assert_true(found[1].id == 2 && !found[1].foreign);
  ok(f, OPS->read_ids(f->ss, TASK_SCHEDULED, shard_bit(SHARD_BOUND), range.host, ids, 2, 0,
                      (struct store_limit){.payload = 1000, .bytes = INT64_MAX}, &batch, &f->err));
  assert_int_equal(batch->count, 1);
  assert_int_equal(batch->tasks[0].id, 2);
  release(batch);
  ok(f, claim_rows(f, &bound, 1, ids, 2, 1000, 1000, &batch, &not_ours));
  assert_int_equal(not_ours, 0);
  release(batch);
  struct decision done = decide_on(f, 2, EVENT_DONE);
  ok(f, OPS->settle(f->ss, &bound, 1, &done, 1, &lost, &f->err));
  assert_true(done.applied && !lost);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id, IF(shard = 63, 'bound', 'free') ORDER BY id) FROM outbox"),
                      "1bound,3free");
}

/* --- people --- */

static void rows_of_an_unknown_route_are_held_and_come_back(void **state) {
  struct fixture *f = *state;
  uint32_t moved;
  bool all;
  const struct store_routes which = {.priority = 5, .routes = (const char *const[]){"r"}, .route_count = 1, .limit = 2};
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0), (2, 'r', '', 0), (3, 'r', '', 0), (4, 's', '', 0)");
  ROW("(id, route, payload, shard, delay_ms) VALUES (5, 'r', '', 0, 100000)");
  ok(f, OPS->hold(f->ss, &f->leases[0], &which, &moved, &f->err));
  assert_int_equal(moved, 2);
  ok(f, OPS->hold(f->ss, &f->leases[0], &which, &moved, &f->err));
  assert_int_equal(moved, 1);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id ORDER BY id) FROM outbox WHERE state = 'held'"), "1,2,3");
  struct shard_lease stale = {.shard = 0, .epoch = f->leases[0].epoch - 1, .owner = "me"};
  ok(f, OPS->unhold(f->ss, &stale, "r", 10, &moved, &all, &f->err));
  assert_int_equal(moved, 0);
  ok(f, OPS->unhold(f->ss, &f->leases[0], "r", 10, &moved, &all, &f->err));
  assert_int_equal(moved, 3);
  assert_true(all);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'held'"), 0);
}

static void people_cancel_and_reschedule(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {4, 1, 2, 3, 9};
  enum intervened changed[5];
  ROW("(id, route, payload, shard, message_id) VALUES (1, 'r', 'pay', 0, 'm1'), (4, 'r', 'pay', 1, 'm4')");
  ROW("(id, route, payload, shard, state, lease_until, claim_epoch) VALUES (2, 'r', '', 0, 'claimed', '2030-01-01', "
      "(SELECT epoch FROM outbox_shards WHERE shard = 0)), (3, 'r', '', 0, 'awaiting', '2030-01-01', NULL)");
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_CANCEL, ids, 5, 0, "ann", "m", "it's over", 1000000, changed,
                       &f->err));
  assert_true(!changed[0] && changed[1] && !changed[2] && changed[3] && !changed[4]);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id ORDER BY id) FROM outbox"), "2,4");
  assert_string_equal(ask_text(f, "SELECT CONCAT(message_id, state, payload) FROM outbox_history WHERE id = 1"),
                      "m1cancelledpay");
  assert_string_equal(ask_text(f, "SELECT CONCAT(actor, verb, reason, changed) FROM outbox_audit"),
                      "anncancelit's over2");
  assert_string_equal(ask_text(f, "SELECT JSON_VALUE(before_image, '$[1].state') FROM outbox_audit"), "awaiting");
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(JSON_VALUE(before_image, '$[0].maybe_sent'), "
                                  "JSON_VALUE(before_image, '$[1].maybe_sent')) FROM outbox_audit"),
                      "01");
  ROW("(id, route, payload, shard, first_due_at) VALUES (5, 'r', '', 0, '2020-01-01')");
  const uint64_t five[] = {5, 2};
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_RESCHEDULE, five, 2, INT64_C(1893456000000001), "ann", "m", NULL,
                       0, changed, &f->err));
  assert_true(changed[0] && !changed[1]);
  assert_string_equal(
      ask_text(f, "SELECT CONCAT(due_at, COALESCE(first_due_at, '-'), next_at) FROM outbox WHERE id = 5"),
      "2030-01-01 00:00:00.000001-2030-01-01 00:00:00.000001");
}

/* Whoever had claimed it holds its shard no longer, or, of a bound task, lives no longer: it is ended like one that is
 * claimed in the memory of the dead. Nobody says of an instance that has no row whether it lives. */
static void people_cancel_what_the_dead_have_claimed(void **state) {
  struct fixture *f = *state;
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1, .owner = "me"};
  const uint64_t ids[] = {1, 2, 3, 4};
  enum intervened changed[4];
  sql(f, "INSERT INTO outbox_instances (id, host, alive_until) VALUES ('dead', 'h', '2020-01-01'), "
         "('lives', 'h', '2100-01-01')");
  ROW("(id, route, payload, shard, target_host, attempt, state, lease_until, claim_epoch, claimed_by) VALUES "
      "(1, 'r', '', 0, '', 1, 'claimed', '2030-01-01', (SELECT epoch - 1 FROM outbox_shards WHERE shard = 0), 'dead'), "
      "(2, 'r', '', 63, 'h', 1, 'claimed', '2030-01-01', 1, 'dead'), "
      "(3, 'r', '', 63, 'h', 1, 'claimed', '2030-01-01', 1, 'lives'), "
      "(4, 'r', '', 63, 'h', 1, 'claimed', '2030-01-01', 1, 'unheard of')");
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_RESCHEDULE, ids, 1, INT64_C(1893456000000000), "a", "m", "", 0,
                       changed, &f->err));
  assert_false(changed[0]);
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_CANCEL, ids, 1, 0, "a", "m", "", 1000000, changed, &f->err));
  assert_true(changed[0]);
  ok(f, OPS->intervene(f->ss, &bound, INTERVENE_CANCEL, ids + 1, 3, 0, "a", "m", "", 1000000, changed, &f->err));
  assert_true(changed[0] && !changed[1] && !changed[2]);
  assert_string_equal(
      ask_text(f, "SELECT GROUP_CONCAT(id, state, claimed_by, attempt ORDER BY id) FROM outbox_history"),
      "1cancelleddead1,2cancelleddead1");
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id ORDER BY id) FROM outbox"), "3,4");
}

static void a_stale_epoch_changes_nothing_for_people(void **state) {
  struct fixture *f = *state;
  const uint64_t id = 1;
  const struct shard_lease stale = {.shard = 0, .epoch = f->leases[0].epoch - 1, .owner = "me"};
  enum intervened changed;
  ROW("(id, route, payload, shard) VALUES (1, 'r', '', 0)");
  for (int verb = INTERVENE_CANCEL; verb <= INTERVENE_RESCHEDULE; verb++) {
    ok(f, OPS->intervene(f->ss, &stale, (enum intervention)verb, &id, 1, INT64_C(1893456000000000), "a", "m", "b", 0,
                         &changed, &f->err));
    assert_false(changed);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE due_at < '2030-01-01'"), 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 0);
}

static void tasks_are_located_by_either_id(void **state) {
  struct fixture *f = *state;
  struct task_place place;
  ROW("(id, route, payload, shard, message_id) VALUES (17, 'r', '', 1, 'abc'), (18, 'r', '', 2, '17'), "
      "(19, 'r', '', 3, 'x')");
  sql(f, "UPDATE outbox SET state = 'awaiting', lease_until = UTC_TIMESTAMP(6) WHERE id = 17");
  ok(f, OPS->locate(f->ss, &(const char *){"abc"}, 1, &place, &f->err));
  assert_true(place.found && place.id == 17 && place.shard == 1 && place.state == TASK_AWAITING);
  assert_string_equal(place.route, "r");
  ok(f, OPS->locate(f->ss, &(const char *){"17"}, 1, &place, &f->err));
  assert_true(place.ambiguous); /* "id:17" as a message id: tests/sim/store_double_cases_read.c */
  ok(f, OPS->locate(f->ss, &(const char *){"id:17"}, 1, &place, &f->err));
  assert_true(place.found && place.id == 17 && place.shard == 1);
  ok(f, OPS->locate(f->ss, &(const char *){"message_id:17"}, 1, &place, &f->err));
  assert_true(place.found && place.id == 18 && place.shard == 2);
  ok(f, OPS->locate(f->ss, &(const char *){"message_id:19"}, 1, &place, &f->err));
  assert_false(place.found);
  ok(f, OPS->locate(f->ss, &(const char *){"19"}, 1, &place, &f->err));
  assert_true(place.found && place.id == 19);
  ok(f, OPS->locate(f->ss, &(const char *){"' OR 1=1 -- "}, 1, &place, &f->err));
  assert_false(place.found);
  ok(f, OPS->locate(f->ss, &(const char *){"bestellung-\xc3\xa9"}, 1, &place, &f->err)); /* the column is ASCII */
  assert_false(place.found);
}

static void route_settings_are_kept_and_audited(void **state) {
  struct fixture *f = *state;
  const struct route_setting *settings;
  size_t count;
  struct route_setting set = {.route = "r", .paused = true, .reason = "partner's down \"again\""};
  ok(f, OPS->route_settings(f->ss, &settings, &count, &f->err));
  assert_int_equal(count, 0);
  ok(f, OPS->set_route(f->ss, &set, "ann", &f->err));
  set.paused = false;
  ok(f, OPS->set_route(f->ss, &set, "bob", &f->err));
  ok(f, OPS->route_settings(f->ss, &settings, &count, &f->err));
  assert_int_equal(count, 1);
  assert_string_equal(settings[0].route, "r");
  assert_string_equal(settings[0].reason, set.reason);
  assert_false(settings[0].paused);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 2);
  assert_string_equal(
      ask_text(f, "SELECT JSON_VALUE(before_image, '$[0].paused') FROM outbox_audit WHERE actor = 'bob'"), "1");
}

/* What a daemon has learned of a destination is told late, perhaps: an operator who has resumed the route meanwhile is
 * right. The route used to be paused again. */
static void an_old_pause_does_not_undo_what_people_set_since(void **state) {
  struct fixture *f = *state;
  const struct route_setting *settings;
  size_t count;
  struct route_setting resumed = {.route = "r"}, gone = {.route = "r", .paused = true, .reason = "HTTP 410"};
  ok(f, OPS->now(f->ss, &gone.changed_us, &f->err));
  sql(f, "SELECT SLEEP(0.01)");
  ok(f, OPS->set_route(f->ss, &resumed, "ann", &f->err));
  ok(f, OPS->set_route(f->ss, &gone, "duebox", &f->err));
  ok(f, OPS->route_settings(f->ss, &settings, &count, &f->err));
  assert_false(settings[0].paused);
  assert_true(settings[0].changed_us > gone.changed_us);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 1);
  gone.changed_us = settings[0].changed_us + 1;
  ok(f, OPS->set_route(f->ss, &gone, "duebox", &f->err));
  ok(f, OPS->route_settings(f->ss, &settings, &count, &f->err));
  assert_true(settings[0].paused);
}

/* --- sessions --- */

/* Such a limit is meant for people's queries: one that is shorter than a poll, or than a batch, must not end it. */
static void a_servers_limit_on_statements_is_not_ours(void **state) {
  struct fixture *f = *state;
  const char *limit = is_mysql(f) ? "max_execution_time" : "max_statement_time";
  struct store_session *ss;
  struct text script = {0};
  struct db_result result;
  struct db_row row;
  sql(f, "SET GLOBAL %s = 20", limit);
  enum store_status opened = OPS->open(f->store.self, "test", 0, &ss, &f->err);
  sql(f, "SET GLOBAL %s = 0", limit);
  ok(f, opened);
  text_puts(&script, "SELECT @@SESSION.");
  text_puts(&script, limit);
  assert_true(db_script(ss->conn, &script, "test", &result, 1, &f->err));
  assert_true(db_next(&result, &row, 1));
  assert_true(strtod(row.fields[0], NULL) == 0);
  db_results_free(&result, 1);
  text_free(&script);
  OPS->close(&ss);
}

/* --- housekeeping --- */

static void expired_rows_are_told_from_the_others(void **state) {
  struct fixture *f = *state;
  static const char *const values[] = {"0, 'held', '2020-01-01'", "0, 'held', '2035-01-01'", "0, 'held', NULL",
                                       "1, 'held', '2020-01-01'", "0, 'scheduled', '2020-01-01'"};
  uint64_t ids[] = {1, 2, 3, 4, 5, 6};
  size_t n = 6;
  for (int i = 0; i < 5; i++)
    sql(f, "INSERT INTO outbox (id, route, payload, shard, state, expires_at) VALUES (%d, 'r', 'p', %s)", i + 1,
        values[i]);
  ok(f, OPS->expired(f->ss, TASK_HELD, 0, ids, &n, &f->err));
  assert_int_equal(n, 1);
  assert_int_equal(ids[0], 1);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(instances_live_and_leave),
      TEST(clock_is_the_databases),
      TEST(one_of_two_acquires),
      TEST(a_lease_from_before_the_clock_was_put_back_is_over),
      TEST(renewal_tells_what_is_lost),
      TEST(only_the_leases_named_are_renewed),
      TEST(what_was_seen_long_ago_acquires_nothing),
      TEST(shard_given_back_is_clean_and_ends_our_rights),
      TEST(look_finds_the_earliest_of_each_group),
      TEST(a_row_is_read_as_it_was_written),
      TEST(payload_bytes_come_unchanged),
      TEST(nothing_is_read_early),
      TEST(a_cursor_meets_every_row_once),
      TEST(groups_are_read_one_after_the_other_in_one_statement),
      TEST(a_late_commit_is_found_behind_the_cursor),
      TEST(rows_are_read_by_id_while_they_are_due_and_in_state),
      TEST(tasks_bound_to_a_host_are_read_by_that_host),
      TEST(rows_of_an_unknown_route_are_held_and_come_back),
      TEST(people_cancel_and_reschedule),
      TEST(people_cancel_what_the_dead_have_claimed),
      TEST(a_stale_epoch_changes_nothing_for_people),
      TEST(tasks_are_located_by_either_id),
      TEST(route_settings_are_kept_and_audited),
      TEST(an_old_pause_does_not_undo_what_people_set_since),
      TEST(a_servers_limit_on_statements_is_not_ours),
      TEST(expired_rows_are_told_from_the_others),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
