/* SPDX-License-Identifier: MIT
 *
 * A task is its row id and its message id: ids may be handed out again, by a replica that lacked the last inserts and
 * was promoted, by a restored backup or by TRUNCATE. What was sent must never end a task that was not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops
enum { N = 400 };

static void insert(struct fixture *f, const char *name) {
  sql(f,
      "INSERT INTO outbox (message_id, route, payload, shard, due_at) "
      "SELECT CONCAT('%s', seq), 'r', 'x', seq %% %d, '2020-01-01' FROM seq_1_to_%d",
      name, SHARDS, N);
}

static struct decision *decide_on_all(struct fixture *f, enum task_event event) {
  struct decision *d = calloc(N, sizeof *d);
  assert_non_null(d);
  for (uint64_t i = 0; i < N; i++)
    d[i] = (struct decision){.id = i + 1,
                             .message_id = message_id_of(f, i + 1),
                             .shard = (uint8_t)((i + 1) % SHARDS),
                             .event = event,
                             .attempt = 1,
                             .delay_us = INT64_C(3600000000),
                             .log_attempt = event == EVENT_DEAD,
                             .keep_us = event == EVENT_EXPIRE ? 1000000 : 0,
                             .head = event == EVENT_RETRY};
  return d;
}

static void assert_untouched(struct fixture *f, struct decision *d, size_t count) {
  assert_int_equal(settle(f, d, count), 0);
  for (size_t i = 0; i < count; i++)
    assert_true(d[i].mismatch && !d[i].applied && !d[i].busy);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE message_id LIKE 'new%%' AND state = 'scheduled' AND "
                          "attempt = 0 AND due_at = '2020-01-01'"),
                   N);
  assert_int_equal(ask(f, "SELECT (SELECT COUNT(*) FROM outbox_history) + (SELECT COUNT(*) FROM outbox_attempts) + "
                          "(SELECT COUNT(*) FROM outbox_heads)"),
                   0);
}

/* Whatever was decided about a task, and in batches as alone: the one that has its id now is left as it is. */
static void a_task_that_got_the_id_of_another_is_left_alone(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_DONE, EVENT_DEAD,    EVENT_RETRY, EVENT_PUBLISHED,
                                           EVENT_HOLD, EVENT_RELEASE, EVENT_EXPIRE};
  for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
    sql(f, "TRUNCATE outbox");
    insert(f, "old");
    struct decision *d = decide_on_all(f, events[i]);
    sql(f, "TRUNCATE outbox");
    insert(f, "new");
    assert_untouched(f, d, N);
    assert_untouched(f, d, 1);
    free(d);
  }
}

static void the_others_of_the_batch_are_settled(void **state) {
  struct fixture *f = *state;
  insert(f, "old");
  struct decision *d = decide_on_all(f, EVENT_DONE);
  sql(f, "DELETE FROM outbox WHERE id IN (7, 8)");
  sql(f, "INSERT INTO outbox (id, message_id, route, payload, shard) VALUES (7, 'OLD7', 'r', 'new', 3)");
  assert_int_equal(settle(f, d, N), N - 2);
  assert_true(d[6].mismatch && !d[7].mismatch);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id) FROM outbox"), "OLD7");
  free(d);
}

/* An id and a message id are a pair: it is not enough that the batch has both, each in another row. */
static void the_message_id_of_another_of_the_batch_does_not_count(void **state) {
  struct fixture *f = *state;
  insert(f, "old");
  struct decision *d = decide_on_all(f, EVENT_DONE);
  sql(f, "UPDATE outbox SET message_id = 'parked' WHERE id = 5");
  sql(f, "UPDATE outbox SET message_id = 'old5' WHERE id = 6");
  sql(f, "UPDATE outbox SET message_id = 'old6' WHERE id = 5");
  assert_int_equal(settle(f, d, N), N - 2);
  assert_true(d[4].mismatch && d[5].mismatch);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id, message_id ORDER BY id) FROM outbox"), "5old6,6old5");
  free(d);
}

/* Ids are whole numbers, however large: next to each other beyond 2^53 they are still different ones. */
static void the_largest_ids_are_told_apart(void **state) {
  struct fixture *f = *state;
  static const uint64_t first[] = {(UINT64_C(1) << 53) - 20, UINT64_MAX - 60};
  static const enum task_event events[] = {EVENT_DONE, EVENT_PUBLISHED};
  for (size_t i = 0; i < 4; i++) {
    struct decision d[40];
    uint64_t base = first[i / 2];
    sql(f,
        "INSERT INTO outbox (id, message_id, route, payload, shard) SELECT %llu + seq - 1, CONCAT('m', seq), 'r', '', "
        "0 "
        "FROM seq_1_to_40",
        (unsigned long long)base);
    for (size_t k = 0; k < 40; k++)
      d[k] = decide_on(f, base + k, events[i % 2]);
    sql(f, "UPDATE outbox SET message_id = 'another' WHERE id = %llu", (unsigned long long)base + 30);
    assert_int_equal(settle(f, d, 40), 39);
    assert_true(d[30].mismatch);
    sql(f, "DELETE FROM outbox");
  }
}

/* Rows of one time with message ids that begin alike differ at the end alone: that counts. */
static void message_ids_that_begin_alike_are_told_apart(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_DONE, EVENT_PUBLISHED};
  for (size_t i = 0; i < 4; i++) {
    struct decision d[20];
    char version[32];
    sql(f, "INSERT INTO outbox (id, message_id, route, payload, shard) SELECT seq, REPEAT('a', seq), 'r', '', 0 "
           "FROM seq_1_to_20");
    snprintf(version, sizeof version, "%s", ask_text(f, "SELECT changed_at FROM outbox WHERE id = 1"));
    for (size_t k = 0; k < 20; k++) {
      d[k] = decide_on(f, k + 1, events[i % 2]);
      d[k].changed_at = (struct duebox_bytes){.data = version, .len = i < 2 ? strlen(version) : 0};
    }
    sql(f, "UPDATE outbox SET message_id = REPEAT('a', IF(id = 19, 40, 41)), changed_at = changed_at WHERE id IN (19, "
           "20)");
    sql(f, "UPDATE outbox SET message_id = REPEAT('a', 39 - id), changed_at = changed_at WHERE id IN (19, 20)");
    assert_int_equal(settle(f, d, 20), 18);
    assert_true(d[18].mismatch && d[19].mismatch);
    sql(f, "DELETE FROM outbox");
  }
}

/* Message ids are compared as bytes, and any printable one is safe in a statement. */
static void message_ids_may_hold_any_printable_byte(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_PUBLISHED, EVENT_DEAD};
  for (size_t i = 0; i < 4; i++) {
    sql(f, "INSERT INTO outbox (id, message_id, route, payload, shard) VALUES (1, 'a''\\\\\"{};--%%_', 'r', '', 1), "
           "(2, 'A''\\\\\"{};--%%_', 'r', '', 2)");
    struct decision d[] = {decide_on(f, 1, events[i]), decide_on(f, 2, events[i])};
    assert_int_equal(settle(f, d, 1), 1);
    assert_int_equal(settle(f, d + 1, 1), 1);
    sql(f, "DELETE FROM outbox");
  }
}

/* --- a COMMIT without an answer --- */

static void two(struct fixture *f, struct decision d[2]) {
  sql(f, "INSERT INTO outbox (id, route, payload, shard, order_key) VALUES (1, 'r', '', 1, 'a'), (2, 'r', '', 2, 'b')");
  for (uint64_t i = 0; i < 2; i++) {
    d[i] = decide_on(f, i + 1, EVENT_RETRY);
    d[i].head = true;
    d[i].delay_us = INT64_C(3600000000);
  }
}

/* The connection is lost with the COMMIT, and the server is away: what became of it nobody knows yet. */
static void settle_and_lose(struct fixture *f, struct decision *d, size_t count, enum fault fault, int tries) {
  bool lost[SHARDS];
  const char *socket = f->config.socket;
  release(read_group(f, TASK_SCHEDULED, 0, "r")); /* it is connected */
  fault_arm(f, fault, "COMMIT", 0, 1);
  f->config.socket = "/nowhere";
  while (tries-- > 0)
    assert_int_equal(OPS->settle(f->ss, f->leases, SHARDS, d, count, lost, &f->err), STORE_DOWN);
  f->config.socket = socket;
  for (size_t n = 0; n < count; n++)
    assert_true(!d[n].applied && d[n].unknown);
}

/* Whether a COMMIT without an answer happened is found out by whoever gives the batch again, however long the server
 * was away: a failed head of an order key that counted as vanished let those behind it overtake. */
static void an_unknown_commit_is_known_when_the_server_is_back(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  two(f, d);
  settle_and_lose(f, d, 2, FAULT_LOSE_ANSWER, 2);
  assert_int_equal(settle(f, d, 2), 2);
  assert_true(d[0].applied && d[1].applied && !d[0].unknown);
  assert_int_equal(ask(f, "SELECT SUM(attempt) FROM outbox"), 2);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_heads"), 2);
}

static void an_unknown_commit_that_did_not_happen_is_done_again(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  two(f, d);
  settle_and_lose(f, d, 2, FAULT_KILL_BEFORE, 1);
  assert_int_equal(settle(f, d, 2), 2);
  assert_int_equal(ask(f, "SELECT SUM(attempt) FROM outbox"), 2);
}

/* A failover may lose a commit, the row that it was about, and hand its id out again: that was told as written. */
static void an_unknown_commit_is_not_told_of_rows_that_are_lost(void **state) {
  struct fixture *f = *state;
  struct decision d[3];
  two(f, d);
  sql(f, "INSERT INTO outbox (id, route, payload, shard) VALUES (3, 'r', '', 1)");
  d[2] = decide_on(f, 3, EVENT_DONE);
  settle_and_lose(f, d, 3, FAULT_LOSE_ANSWER, 1);
  sql(f, "UPDATE outbox SET message_id = 'other' WHERE id = 1");
  sql(f, "DELETE FROM outbox WHERE id = 2");
  assert_int_equal(settle(f, d, 3), 1);
  assert_true(!d[0].applied && d[0].mismatch && !d[0].unknown);
  assert_true(!d[1].applied && d[1].gone && !d[1].unknown);
  assert_true(d[2].applied && !d[2].gone);
}

/* What was found out is true whatever becomes of that try: when its connection was lost as well, the next one knew
 * nothing of the commit any more, and those behind a failed head of an order key overtook it. */
static void an_unknown_commit_that_was_found_out_stays_known(void **state) {
  static const char *const where[] = {"ROLLBACK", "COMMIT"};
  struct fixture *f = *state;
  for (size_t others = 0; others < 2; others++) {
    struct decision d[3];
    two(f, d);
    sql(f, "INSERT INTO outbox (id, route, payload, shard) VALUES (3, 'r', '', 1)");
    d[2] = decide_on(f, 3, EVENT_DONE);
    settle_and_lose(f, d, 2, FAULT_LOSE_ANSWER, 1);
    release(read_group(f, TASK_SCHEDULED, 0, "r")); /* it is connected again */
    fault_arm(f, FAULT_KILL_BEFORE, where[others], 0, 1);
    assert_int_equal(settle(f, d, 2 + others), 2 + others);
    assert_true(d[0].applied && d[1].applied && !d[0].gone && !d[0].busy);
    assert_int_equal(ask(f, "SELECT SUM(attempt) FROM outbox WHERE id < 3"), 2);
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE id = 3"), 1 - others);
    sql(f, "DELETE FROM outbox");
    sql(f, "DELETE FROM outbox_heads");
  }
}

/* Two commits without an answer, of which one has happened: each tells of itself. */
static void unknown_commits_are_told_apart(void **state) {
  static const enum fault faults[] = {FAULT_LOSE_ANSWER, FAULT_KILL_BEFORE};
  struct fixture *f = *state;
  struct decision d[4];
  sql(f, "INSERT INTO outbox (id, route, payload, shard) VALUES (1, 'r', '', 1), (2, 'r', '', 1), (3, 'r', '', 1), "
         "(4, 'r', '', 1)");
  for (size_t i = 0; i < 2; i++) { /* the first and the third, and the others */
    struct decision some[] = {decide_on(f, i + 1, EVENT_RETRY), decide_on(f, i + 3, EVENT_RETRY)};
    settle_and_lose(f, some, 2, faults[i], 1);
    d[i] = some[0];
    d[i + 2] = some[1];
  }
  assert_int_equal(settle(f, d, 4), 4);
  for (size_t i = 0; i < 4; i++)
    assert_true(d[i].applied && !d[i].unknown && d[i].written == (i % 2 == 0));
  assert_int_equal(ask(f, "SELECT SUM(attempt) FROM outbox"), 4);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_task_that_got_the_id_of_another_is_left_alone),
      TEST(the_others_of_the_batch_are_settled),
      TEST(the_message_id_of_another_of_the_batch_does_not_count),
      TEST(the_largest_ids_are_told_apart),
      TEST(message_ids_that_begin_alike_are_told_apart),
      TEST(message_ids_may_hold_any_printable_byte),
      TEST(an_unknown_commit_is_known_when_the_server_is_back),
      TEST(an_unknown_commit_that_did_not_happen_is_done_again),
      TEST(an_unknown_commit_is_not_told_of_rows_that_are_lost),
      TEST(an_unknown_commit_that_was_found_out_stays_known),
      TEST(unknown_commits_are_told_apart),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
