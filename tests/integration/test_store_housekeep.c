/* SPDX-License-Identifier: MIT
 *
 * Housekeeping: partitions that are made and dropped in time, what a wrong clock does to them, and row ids that come to
 * their end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops

static int64_t partitions_of(struct fixture *f, const char *table) {
  return ask(f,
             "SELECT COUNT(*) FROM information_schema.partitions WHERE table_schema = DATABASE() AND table_name = '%s'",
             table);
}

static void add_history(struct fixture *f, int id, const char *keep_until) {
  sql(f,
      "INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, "
      "target_host, shard, created_at, state, attempt, failures, recoveries, finished_at, keep_until) VALUES (%d, 'm', "
      "'r', '', '{}', '', UTC_TIMESTAMP(6), 5, '', '', 0, UTC_TIMESTAMP(6), 'done', 1, 0, 0, UTC_TIMESTAMP(6), %s)",
      id, keep_until);
}

static void add_attempt(struct fixture *f, int attempt, const char *finished_at) {
  sql(f,
      "INSERT INTO outbox_attempts (message_id, attempt, kind, outcome, task_id, route, due_at, finished_at) VALUES "
      "('m', %d, 'failure', 'retry', 1, 'r', UTC_TIMESTAMP(6), %s)",
      attempt, finished_at);
}

static void partitions_are_made_ahead(void **state) {
  struct fixture *f = *state;
  const int64_t day = 86400000;
  ok(f, OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err));
  int64_t history = partitions_of(f, "outbox_history"), attempts = partitions_of(f, "outbox_attempts");
  assert_in_range(history, 10, 20);
  assert_in_range(attempts, 2, 20);
  add_history(f, 1, "UTC_TIMESTAMP(6) + INTERVAL 30 DAY");
  add_history(f, 2, "UTC_TIMESTAMP(6) + INTERVAL 31 DAY");
  add_attempt(f, 1, "UTC_TIMESTAMP(6)");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history PARTITION (p_later)"), 0);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts PARTITION (p_later)"), 0);
  ok(f, OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err));
  assert_int_equal(partitions_of(f, "outbox_history"), history);
  assert_int_equal(partitions_of(f, "outbox_attempts"), attempts);
  ok(f, OPS->housekeep(f->ss, 400 * day, 10 * day, &f->err));
  assert_in_range(partitions_of(f, "outbox_history"), history + 1, 60);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), 2);
}

/* Splits what is older than `age` off the first partition of an empty table. */
static void split_off(struct fixture *f, const char *table, const char *name, const char *age) {
  char bound[64];
  snprintf(bound, sizeof bound, "%s", ask_text(f, "SELECT UTC_TIMESTAMP(6) - INTERVAL %s", age));
  sql(f,
      "ALTER TABLE %s REORGANIZE PARTITION p_later INTO (PARTITION %s VALUES LESS THAN ('%s'), "
      "PARTITION p_later VALUES LESS THAN (MAXVALUE))",
      table, name, bound);
}

static void partitions_whose_time_is_over_are_dropped(void **state) {
  struct fixture *f = *state;
  const int64_t day = 86400000;
  split_off(f, "outbox_history", "p1", "3 DAY");
  split_off(f, "outbox_history", "p2", "1 HOUR");
  add_history(f, 1, "UTC_TIMESTAMP(6) - INTERVAL 4 DAY");
  add_history(f, 2, "UTC_TIMESTAMP(6) - INTERVAL 2 DAY");
  add_history(f, 3, "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR");
  split_off(f, "outbox_attempts", "p1", "11 DAY");
  split_off(f, "outbox_attempts", "p2", "9 DAY");
  add_attempt(f, 1, "UTC_TIMESTAMP(6) - INTERVAL 12 DAY");
  add_attempt(f, 2, "UTC_TIMESTAMP(6) - INTERVAL 10 DAY");
  sql(f, "INSERT INTO outbox_quarantine (source, origin, reason, sha256, length, body, received_at) VALUES ('s', 'o', "
         "'r', '', 0, '', UTC_TIMESTAMP(6) - INTERVAL 11 DAY), ('s', 'p', 'r', '', 0, '', UTC_TIMESTAMP(6))");
  sql(f, "INSERT INTO outbox_audit (actor, verb, filter, changed, at) VALUES ('a', 'v', '', 0, '2020-01-01')");
  ok(f, OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err));
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id) FROM outbox_history"), "3");
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(attempt) FROM outbox_attempts"), "2");
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(origin) FROM outbox_quarantine"), "p");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 0);
}

/* How many ALTERs the store has sent since capture_start(), and how many of them wait, for a second. */
static size_t alters(size_t *waiting) {
  char **scripts;
  size_t count = capture_end(&scripts), found = 0;
  *waiting = 0;
  for (size_t i = 0; i < count; i++) {
    found += strstr(scripts[i], "ALTER TABLE") != NULL;
    *waiting += strncmp(scripts[i], "ALTER TABLE", strlen("ALTER TABLE")) == 0;
    free(scripts[i]);
  }
  return found;
}

/* DDL that waits for a reader makes all who write the table wait behind it: each is tried once, without waiting where
 * the server can, and put off until the next housekeeping. The other steps are done. */
static void a_reader_only_puts_partitions_off(void **state) {
  struct fixture *f = *state;
  const int64_t day = 86400000;
  size_t waiting;
  split_off(f, "outbox_history", "p1", "1 HOUR");
  add_history(f, 1, "UTC_TIMESTAMP(6) - INTERVAL 2 HOUR");
  split_off(f, "outbox_attempts", "p1", "241 HOUR");
  add_attempt(f, 1, "UTC_TIMESTAMP(6) - INTERVAL 250 HOUR");
  sql(f, "INSERT INTO outbox_audit (actor, verb, filter, changed, at) VALUES ('a', 'v', '', 0, '2020-01-01')");
  other(f, "START TRANSACTION");
  other(f, "SELECT COUNT(*) FROM outbox_history");
  other(f, "SELECT COUNT(*) FROM outbox_attempts");
  if (!is_mysql(f))
    assert_true(db_run(f->ss->conn, "SET SESSION lock_wait_timeout = 20", "test", &f->err));
  capture_start();
  int64_t began = clock_mono_us();
  assert_int_equal(OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err), STORE_BUSY);
  assert_in_range(clock_mono_us() - began, 0, 20000000 - 1); /* less than one wait */
  assert_int_equal(alters(&waiting), 2);
  assert_int_equal(waiting, 0);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 0);
  add_history(f, 2, "UTC_TIMESTAMP(6) + INTERVAL 90 DAY");
  other(f, "COMMIT");
  enum store_status status = STORE_BUSY; /* the server's own threads look at a table now and then */
  for (int64_t until = clock_mono_us() + 60 * 1000000; status == STORE_BUSY && clock_mono_us() < until;)
    status = OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err);
  ok(f, status);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id) FROM outbox_history"), "2");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 0);
  assert_in_range(partitions_of(f, "outbox_history"), 10, 20);
}

/* A table that is never free for a moment gets its partitions all the same: what is late waits, once. */
static void late_partitions_are_waited_for(void **state) {
  struct fixture *f = *state;
  const int64_t day = 86400000;
  size_t waiting;
  split_off(f, "outbox_history", "p1", "3 DAY");
  other(f, "START TRANSACTION");
  other(f, "SELECT COUNT(*) FROM outbox_history");
  capture_start();
  assert_int_equal(OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err), STORE_BUSY);
  assert_int_equal(alters(&waiting), 2); /* one drops p1, the other makes the attempts' first partitions */
  assert_int_equal(waiting, 2);
  other(f, "COMMIT");
}

/* A clock that was years ahead has left partitions of that time: what is written now would be kept for years. The next
 * housekeeping makes sound ones of them, with all rows, and no more than otherwise. */
static void partitions_of_a_wrong_clock_are_made_anew(void **state) {
  struct fixture *f = *state;
  const int64_t day = 86400000;
  static const char *const tables[] = {"outbox_history", "outbox_attempts"};
  for (size_t i = 0; i < 2; i++) {
    split_off(f, tables[i], "p1", "-3650 DAY");
    split_off(f, tables[i], "p2", "-3900 DAY");
  }
  add_history(f, 1, "UTC_TIMESTAMP(6) + INTERVAL 1 DAY");
  add_history(f, 2, "UTC_TIMESTAMP(6) + INTERVAL 3700 DAY");
  add_attempt(f, 1, "UTC_TIMESTAMP(6)");
  for (int again = 0; again < 2; again++) {
    ok(f, OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err));
    assert_in_range(partitions_of(f, "outbox_history"), 10, 20);
    assert_in_range(partitions_of(f, "outbox_attempts"), 2, 20);
    for (size_t i = 0; i < 2; i++)
      assert_int_equal(ask(f,
                           "SELECT COUNT(*) FROM information_schema.partitions WHERE table_schema = DATABASE() AND "
                           "table_name = '%s' AND partition_description <> 'MAXVALUE' AND "
                           "TRIM(BOTH CHAR(39) FROM partition_description) > UTC_TIMESTAMP(6) + INTERVAL 50 DAY",
                           tables[i]),
                       0);
  }
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id) FROM outbox_history PARTITION (p_later)"), "2");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), 2);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 1);
}

/* What is dropped does not come back: while the clocks of server and daemon are years apart nothing is deleted, and no
 * partition is made. */
static void nothing_old_is_deleted_while_clocks_differ(void **state) {
  struct fixture *f = *state;
  const int64_t day = 86400000;
  static const char *const clocks[] = {"SET timestamp = 2100000000", "SET timestamp = 1000000000"};
  ok(f, OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err));
  int64_t history = partitions_of(f, "outbox_history"), attempts = partitions_of(f, "outbox_attempts");
  add_history(f, 1, "UTC_TIMESTAMP(6) + INTERVAL 1 DAY");
  sql(f, "INSERT INTO outbox_audit (actor, verb, filter, changed) VALUES ('a', 'v', '', 0)");
  for (size_t i = 0; i < 2; i++) {
    assert_true(db_run(f->ss->conn, clocks[i], "test", &f->err));
    assert_int_equal(OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err), STORE_REFUSED);
    assert_non_null(strstr(f->err.text, "clock"));
    assert_int_equal(partitions_of(f, "outbox_history"), history);
    assert_int_equal(partitions_of(f, "outbox_attempts"), attempts);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 1);
  assert_true(db_run(f->ss->conn, "SET timestamp = 0", "test", &f->err));
  ok(f, OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err));
}

/* --- row ids --- */

enum { SET_INSERT_ID, EXPLICIT, ROLLED_BACK, JUST_BELOW };

static void choose_id(struct fixture *f, int how) {
  static const char columns[] = "message_id, route, payload, delay_ms", far[] = "'far', 'r', 'x', 3600000";
  if (how == SET_INSERT_ID) {
    sql(f, "SET insert_id = 18446744073709551614");
    sql(f, "INSERT INTO outbox (%s) VALUES (%s)", columns, far);
    return;
  }
  sql(f, "START TRANSACTION");
  sql(f, "INSERT INTO outbox (id, %s) VALUES (%s, %s)", columns,
      how == JUST_BELOW ? "9223372036854775807" : "18446744073709551615", far);
  sql(f, how == ROLLED_BACK ? "ROLLBACK" : "COMMIT");
}

static bool put_right(struct fixture *f, int64_t waited_us) {
  uint64_t far;
  bool reset;
  ok(f, OPS->row_ids(f->ss, waited_us, &reset, &far, &f->err));
  assert_true(reset || far == 0 || far > INT64_MAX);
  return reset;
}

/* Whoever may INSERT can drive the counter of ids to its end, after which nobody's INSERT works any more, not even
 * when the row is gone. The daemon puts it right; the row stays the task that it is, and ids stay in their order. */
static void ids_at_their_end_are_put_right(void **state) {
  struct fixture *f = *state;
  for (int how = SET_INSERT_ID; how <= JUST_BELOW; how++) {
    sql(f, "DELETE FROM outbox");
    sql(f, "INSERT INTO outbox (message_id, route, payload) VALUES ('near', 'r', 'x')");
    choose_id(f, how);
    if (how != JUST_BELOW)
      assert_int_equal(sql_error(f, "INSERT INTO outbox (route, payload) VALUES ('r', 'x')"), 1467);
    assert_true(put_right(f, 0));
    sql(f, "INSERT INTO outbox (message_id, route, payload) VALUES ('later', 'r', 'x')");
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE id < 1000"), how == ROLLED_BACK ? 2 : 3);
    assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id ORDER BY id) FROM outbox"),
                        how == ROLLED_BACK ? "near,later" : "near,far,later");
    assert_false(put_right(f, 0));
  }
}

/* On MariaDB the counter is put back only when nobody has to wait for that: behind an ALTER that waits for one open
 * transaction everybody waited, claims too, for a second every ten. */
static void an_open_transaction_keeps_the_ids_and_holds_up_nobody(void **state) {
  struct fixture *f = *state;
  uint64_t far;
  bool reset;
  if (is_mysql(f))
    skip();
  sql(f, "DELETE FROM outbox");
  choose_id(f, ROLLED_BACK);
  sql(f, "START TRANSACTION");
  (void)ask(f, "SELECT COUNT(*) FROM outbox");
  /* What waits for a lock of tables waits for a second at least, each time; a busy machine is slow now and then. */
  int64_t quickest = INT64_MAX;
  for (int try = 0; try < 10 && quickest >= 900000; try++) {
    int64_t began = clock_mono_us();
    assert_int_equal(OPS->row_ids(f->ss, 0, &reset, &far, &f->err), STORE_BUSY);
    int64_t took = clock_mono_us() - began;
    quickest = took < quickest ? took : quickest;
  }
  assert_true(quickest < 900000);
  sql(f, "COMMIT");
  assert_true(put_right(f, 0));
}

/* Whatever becomes of the task, and whoever waits for it. What a daemon may hold at this moment keeps its id for a
 * while: under a new one it would be sent once more. */
static void far_ids_are_given_up_whatever_becomes_of_their_tasks(void **state) {
  struct fixture *f = *state;
  const int64_t second = 1000000;
  static const struct {
    const char *change;
    int seconds; /* until then it keeps its id */
    const char *then;
  } cases[] = {
      {"UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL 30 DAY", 0,
       "awaiting 1 0"},
      {"UPDATE outbox SET due_at = '2001-01-01', shard = 63, target_host = 'nowhere'", 0, "scheduled 0 0"},
      {"UPDATE outbox SET state = 'blocked', due_at = '2001-01-01'", 0, "blocked 0 0"},
      {"UPDATE outbox SET due_at = UTC_TIMESTAMP(6)", 15, "scheduled 0 1"},
      {"UPDATE outbox SET due_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR", 15, "scheduled 0 1"}, /* from memory, perhaps */
      {"UPDATE outbox SET due_at = '2001-01-01', order_key = 'k', shard = 63, target_host = 'nowhere'", 15,
       "scheduled 0 0"},
      {"INSERT INTO outbox_heads (head_id, shard, route, order_key) SELECT id, 1, route, order_key FROM outbox", 15,
       "scheduled 0 0"},
      {"UPDATE outbox SET state = 'claimed', attempt = 2, claimed_by = 'i', lease_until = UTC_TIMESTAMP(6)", 45,
       "scheduled 2 0"}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    sql(f, "DELETE FROM outbox");
    sql(f, "DELETE FROM outbox_heads");
    sql(f, "INSERT INTO outbox_heads (head_id, shard, route, order_key) VALUES (1, 1, 'r', 'gone')");
    choose_id(f, EXPLICIT);
    sql(f, "%s", cases[i].change);
    if (cases[i].seconds > 0) {
      assert_false(put_right(f, cases[i].seconds * second - 1));
      assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE id = 18446744073709551615"), 1);
    }
    assert_true(put_right(f, cases[i].seconds * second));
    sql(f, "INSERT INTO outbox (message_id, route, payload) VALUES ('later', 'r', 'x')");
    assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id, id ORDER BY id) FROM outbox"), "far1,later2");
    assert_string_equal(
        ask_text(f, "SELECT CONCAT_WS(' ', state, attempt, recoveries, claimed_by) FROM outbox WHERE id = 1"),
        cases[i].then);
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_heads WHERE order_key <> 'gone'"),
                     strncmp(cases[i].change, "INSERT", 6) == 0);
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_heads WHERE head_id <> 1 OR order_key = 'gone'"), 0);
  }
}

/* A result of the task is known as such afterwards, and one of an earlier task with its message id is not taken for it.
 */
static void attempts_follow_their_task_to_its_new_id(void **state) {
  struct fixture *f = *state;
  sql(f, "DELETE FROM outbox");
  choose_id(f, EXPLICIT);
  sql(f, "INSERT INTO outbox_attempts (message_id, attempt, task_id, route, kind, outcome, due_at, finished_at) VALUES "
         "('far', 1, 18446744073709551615, 'r', 'result', 'retry', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)), "
         "('far', 1, 18446744073709551614, 'r', 'result', 'done', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)), "
         "('near', 1, 18446744073709551615, 'r', 'result', 'done', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
  assert_true(put_right(f, 0));
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id, ' ', outcome, IF(task_id > 1, '', ' moved') ORDER "
                                  "BY seq) FROM outbox_attempts"),
                      "far retry moved,far done,near done");
}

/* Clients may put rows where those with far ids would go, and rows that the table's CHECKs refuse. What was moved
 * behind such rows goes on with those that come after it: tasks of an order_key that are due at the same time keep
 * their order. */
static void far_ids_find_room_whatever_is_there(void **state) {
  struct fixture *f = *state;
  sql(f, "DELETE FROM outbox");
  sql(f, "INSERT INTO outbox (id, message_id, route, payload) VALUES (7, 'a', 'r', 'x'), (4611686018427387903, 'b', "
         "'r', 'x'), (4611686018427387904, 'c', 'r', 'x'), (18446744073709551000, 'd', 'r', 'x')");
  if (!is_mysql(f)) {
    sql(f, "SET check_constraint_checks = 0, sql_mode = ''");
    sql(f, "INSERT INTO outbox (id, message_id, route, payload, delay_ms, due_at, created_at, state, shard) VALUES "
           "(18446744073709551001, 'e', '', 'x', 1000000000000000000, '0000-00-00', '0000-00-00', '', 40)");
    sql(f, "SET check_constraint_checks = 1");
  }
  choose_id(f, EXPLICIT);
  assert_true(put_right(f, 15 * 1000000));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE id > 4611686018427387903"), 0);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id ORDER BY id) FROM outbox WHERE id > 7"),
                      is_mysql(f) ? "b,c,d,far" : "b,c,d,e,far");
  sql(f, "INSERT INTO outbox (route, payload) VALUES ('r', 'x')");
}

/* The binlog takes each row as a whole, twice: with their content some are moved at a time. */
static void large_rows_with_far_ids_move_a_few_at_a_time(void **state) {
  struct fixture *f = *state;
  sql(f, "DELETE FROM outbox");
  for (int i = 0; i < 5; i++)
    sql(f,
        "INSERT INTO outbox (id, message_id, route, payload, delay_ms) VALUES (%d + 18446744073709551610, 'm%d', 'r', "
        "REPEAT('x', 400000), 3600000)",
        i, i);
  assert_true(put_right(f, 0));
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id, id ORDER BY id) FROM outbox"),
                      "m01,m12,m23,m34,m45");
}

/* Its connections were made before: without a look at the tables it would go on for as long as they hold. */
static void a_table_that_loses_its_transactions_is_noticed(void **state) {
  struct fixture *f = *state;
  const int64_t day = 86400000;
  struct store_session *other;
  int64_t now;
  ok(f, OPS->open(f->store.self, "other", 0, &other, &f->err));
  ok(f, OPS->now(other, &now, &f->err));
  sql(f, "ALTER TABLE outbox_shards ENGINE = MyISAM");
  ok(f, OPS->now(other, &now, &f->err));
  assert_int_equal(OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "outbox_shards has the engine MyISAM"));
  assert_int_equal(OPS->now(other, &now, &f->err), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "outbox_shards has the engine MyISAM"));
  sql(f, "ALTER TABLE outbox_shards ENGINE = InnoDB");
  ok(f, OPS->now(other, &now, &f->err));
  ok(f, OPS->housekeep(f->ss, 30 * day, 10 * day, &f->err));
  OPS->close(&other);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(partitions_are_made_ahead),
      TEST(partitions_whose_time_is_over_are_dropped),
      TEST(a_reader_only_puts_partitions_off),
      TEST(late_partitions_are_waited_for),
      TEST(partitions_of_a_wrong_clock_are_made_anew),
      TEST(nothing_old_is_deleted_while_clocks_differ),
      TEST(a_table_that_loses_its_transactions_is_noticed),
      TEST(ids_at_their_end_are_put_right),
      TEST(an_open_transaction_keeps_the_ids_and_holds_up_nobody),
      TEST(far_ids_are_given_up_whatever_becomes_of_their_tasks),
      TEST(attempts_follow_their_task_to_its_new_id),
      TEST(far_ids_find_room_whatever_is_there),
      TEST(large_rows_with_far_ids_move_a_few_at_a_time),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
