/* SPDX-License-Identifier: MIT
 *
 * The table of shards is small, and people put their hands into it: a careless DELETE, a TRUNCATE, a backup of this one
 * table. A shard without a row was read by nobody ever again, and a row that was put in again handed out epochs that
 * had been handed out before. And what it says of those that died with claims in their memory.
 */
#include <stdio.h>
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops
#define ROW(values) sql(f, "INSERT INTO outbox " values)

static uint64_t shards_gone(struct fixture *f, struct shard_row rows[STORE_SHARDS_MAX], size_t *count) {
  uint64_t gone = 0;
  ok(f, OPS->shards(f->ss, rows, count, &gone, &f->err));
  return gone;
}

static void expect_gone(struct fixture *f, uint64_t expected) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  assert_int_equal(shards_gone(f, rows, &count), expected);
}

/* The last one too, which leaves no gap behind, and that of bound tasks. */
static void a_deleted_row_comes_back_and_nobody_takes_it_at_once(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch, gone = shard_bit(1) | shard_bit(SHARDS - 1) | shard_bit(SHARD_BOUND);
  bool lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'x', 1)");
  struct decision done = decide_on(f, 1, EVENT_DONE);
  expect_gone(f, 0);
  sql(f, "DELETE FROM outbox_shards WHERE shard IN (1, %d, 63)", SHARDS - 1);
  expect_gone(f, gone);
  ok(f, OPS->remake_shards(f->ss, gone, 60000, &f->err));
  ok(f, OPS->remake_shards(f->ss, gone, 60000, &f->err)); /* another daemon's */
  assert_int_equal(shards_gone(f, rows, &count), 0);
  assert_int_equal(count, SHARDS);
  assert_true(!rows[1].expired && rows[1].unclean);
  assert_string_equal(rows[1].owner, "");
  ok(f, OPS->acquire(f->ss, "other", &rows[1], 60000, &epoch, &f->err));
  assert_int_equal(epoch, 0);
  ok(f, OPS->settle(f->ss, &f->leases[1], 1, &done, 1, &lost, &f->err));
  assert_true(lost && !done.applied);
  assert_int_equal(ask(f, "SELECT epoch FROM outbox_shards WHERE shard = 63"), 1);
}

/* Each by itself was enough to keep all shards from being read, taken over or shared out. */
static void what_a_hand_has_written_into_one_row_costs_no_other(void **state) {
  static const char *const hands[] = {
      "UPDATE outbox_shards SET owner = 'ghost', lease_until = NULL WHERE shard = 2",
      "UPDATE outbox_shards SET owner = '', lease_until = NULL WHERE shard = 2",
      "UPDATE outbox_shards SET owner = 'ghost', lease_until = '2020-01-01', unclean = 2 WHERE shard = 2",
      "UPDATE outbox_shards SET owner = 'ghost', lease_until = '2020-01-01', unclean = -1 WHERE shard = 2",
      "UPDATE outbox_shards SET owner = REPEAT('\xc3\xa9', 64), lease_until = NULL WHERE shard = 2",
  };
  struct fixture *f = *state;
  for (size_t i = 0; i < ARRAY_LEN(hands); i++) {
    struct shard_row rows[STORE_SHARDS_MAX];
    size_t count;
    uint64_t epoch;
    sql(f, "%s", hands[i]);
    sql(f, "INSERT IGNORE INTO outbox_shards (shard) VALUES (200)");
    assert_int_equal(shards_gone(f, rows, &count), 0);
    assert_int_equal(count, SHARDS);
    assert_true(rows[2].expired);
    ok(f, OPS->acquire(f->ss, "me", &rows[2], 60000, &epoch, &f->err));
    assert_true(epoch > rows[2].epoch);
  }
}

static void what_a_hand_has_written_among_the_instances_costs_no_shard(void **state) {
  struct fixture *f = *state;
  const struct instance_row me = {.id = "h-1", .host = "h", .admin_url = "", .version = "1", .routes = "x", .pid = 1};
  struct store_namesake found;
  uint32_t living, sets;
  sql(f, "DELETE FROM outbox_instances");
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(living, 1);
  sql(f,
      "INSERT INTO outbox_instances (id, host, url, routes, started_at, alive_until) VALUES (REPEAT('\xc3\xa9', 64), "
      "'h', REPEAT('\xc3\xa9', 512), 'x', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 9 MINUTE)");
  ok(f, OPS->namesake(f->ss, "h-1", &found, &f->err));
  assert_string_equal(found.id, "?");
  sql(f, "UPDATE outbox_instances SET alive_until = '2099-01-01' WHERE id <> 'h-1'");
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(living, 1);
}

/* TRUNCATE, and a migration after it, do not make another number of shards of a table. */
static void an_empty_table_of_shards_is_filled_again(void **state) {
  struct fixture *f = *state;
  sql(f, "TRUNCATE outbox_shards");
  expect_gone(f, shard_bit(SHARDS) - 1 + shard_bit(SHARD_BOUND));
  f->store.ops->close(&f->ss);
  ok(f, OPS->open(f->store.self, "test", 0, &f->ss, &f->err));
  expect_gone(f, shard_bit(SHARDS) - 1 + shard_bit(SHARD_BOUND));
  ok(f, OPS->remake_shards(f->ss, shard_bit(SHARDS) - 1 + shard_bit(SHARD_BOUND), 60000, &f->err));
  expect_gone(f, 0);
}

/* Restored from a backup, or put in by hand with the defaults. A claim of before is one of an earlier epoch all the
 * same, or nobody would ever take it back. */
static void an_epoch_is_never_handed_out_again(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch, before = f->leases[1].epoch;
  const uint64_t id = 1;
  struct task_batch *batch;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', 'x', 1, '2020-01-01')");
  ok(f, claim_rows(f, &f->leases[1], 1, &id, 1, 1000, 1000, &batch, &(uint64_t){0}));
  assert_int_equal(batch->count, 1);
  release(batch);
  sql(f, "REPLACE INTO outbox_shards (shard) VALUES (1)");
  assert_int_equal(shards_gone(f, rows, &count), 0);
  assert_int_equal(rows[1].epoch, 0);
  ok(f, OPS->acquire(f->ss, "me", &rows[1], 60000, &epoch, &f->err));
  assert_true(epoch > before);
  struct shard_lease lease = {.shard = 1, .epoch = epoch, .owner = "me"};
  ok(f, OPS->lost_claims(f->ss, &lease, 1, 10, &batch, &f->err));
  assert_int_equal(batch->count, 1);
  release(batch);
}

/* A row that leaves the shard of bound tasks goes where its INSERT would have put it. */
static void a_task_moves_to_its_own_shard_beside_a_gap(void **state) {
  struct fixture *f = *state;
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  bool lost;
  sql(f, "DELETE FROM outbox_shards WHERE shard IN (0, 1)");
  for (int i = 1; i <= 8; i++)
    sql(f,
        "INSERT INTO outbox (id, route, payload, order_key, target_host, move_to_host) VALUES (%d, 'r', '', 'k%d', "
        "'h', '')",
        i, i);
  for (uint64_t i = 1; i <= 8; i++) {
    struct decision back = decide_on(f, i, EVENT_RELEASE);
    back.shard = SHARD_BOUND;
    ok(f, OPS->settle(f->ss, &bound, 1, &back, 1, &lost, &f->err));
    assert_true(back.applied);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE shard = CRC32(order_key) MOD 4"), 8);
}

/* One more than the highest there is would be no epoch: the server refused each acquisition, and nobody said why. */
static void an_epoch_that_no_daemon_writes_is_told_of(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  uint64_t epoch = 7, gone;
  size_t count;
  sql(f, "UPDATE outbox_shards SET owner = NULL, epoch = 18446744073709551615 WHERE shard = 1");
  ok(f, OPS->shards(f->ss, rows, &count, &gone, &f->err));
  assert_int_equal(OPS->acquire(f->ss, "me", &rows[1], 60000, &epoch, &f->err), STORE_REFUSED);
  assert_int_equal(epoch, 0);
  assert_non_null(strstr(f->err.text, "UPDATE `outbox_shards` SET epoch = 0 WHERE shard = 1"));
  sql(f, "UPDATE `outbox_shards` SET epoch = 0 WHERE shard = 1");
  ok(f, OPS->shards(f->ss, rows, &count, &gone, &f->err));
  ok(f, OPS->acquire(f->ss, "me", &rows[1], 60000, &epoch, &f->err));
  assert_true(epoch > 0 && epoch <= STORE_EPOCH_MAX);
}

static bool is_maybe_sent(struct fixture *f, uint64_t id) {
  struct task_place place = {0};
  char name[32];
  snprintf(name, sizeof name, "id:%llu", (unsigned long long)id);
  ok(f, OPS->locate(f->ss, &(const char *){name}, 1, &place, &f->err));
  assert_true(place.found);
  return place.maybe_sent;
}

static void expect_maybe_sent(struct fixture *f, const char *which) {
  for (uint64_t id = 1; id <= strlen(which); id++)
    if (is_maybe_sent(f, id) != (which[id - 1] == 'y'))
      fail_msg("task %llu: not as in %s", (unsigned long long)id, which);
}

static uint64_t take(struct fixture *f, const char *who) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch;
  assert_int_equal(shards_gone(f, rows, &count), 0);
  ok(f, OPS->acquire(f->ss, who, &rows[1], 60000, &epoch, &f->err));
  assert_true(epoch > 0);
  return epoch;
}

/* A claim in memory leaves no trace in the row, and who had it is gone: that it may have been sent stays known, whoever
 * takes the shard over, and whatever becomes of that one. */
static void what_was_due_when_its_shard_was_abandoned_may_have_been_sent(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', '', 1, '2020-01-01'), (2, 'r', '', 1, '2100-01-01'), "
      "(3, 'r', '', 1, '2020-01-01'), (4, 'r', '', 1, NULL), (5, 'r', '', 2, '2020-01-01'), "
      "(6, 'r', '', 1, '2020-01-01'), (7, 'r', '', 1, '2020-01-01'), (8, 'r', '', 1, '2100-01-01'), "
      "(9, 'r', '', 1, '2100-01-01'), (10, 'r', '', 1, '2100-01-01')");
  sql(f, "UPDATE outbox SET state = 'held' WHERE id = 3");
  sql(f, "UPDATE outbox SET state = 'blocked' WHERE id = 6");
  sql(f, "UPDATE outbox SET state = 'awaiting', lease_until = '2100-01-01' WHERE id = 7"); /* was sent */
  sql(f, "UPDATE outbox SET recoveries = 1 WHERE id = 8");               /* was in flight in a crash */
  sql(f, "UPDATE outbox SET move_to_shard = 2 WHERE id = 9");            /* has its turn, is not due */
  sql(f, "UPDATE outbox SET first_due_at = '2020-01-01' WHERE id = 10"); /* was put off by the shard's next holder */
  expect_maybe_sent(f, "nnnnnnyynn");
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE shard = 1");
  expect_maybe_sent(f, "ynyynyyyny");
  struct shard_lease hers = {.shard = 1, .owner = "she", .epoch = take(f, "she")};
  expect_maybe_sent(f, "ynyynyyyny");
  ROW("(id, route, payload, shard) VALUES (11, 'r', '', 1)"); /* due now, and nobody has died since */
  expect_maybe_sent(f, "ynyynyyynyn");
  ok(f, OPS->give_back(f->ss, "she", &hers, false, &f->err));
  expect_maybe_sent(f, "ynyynyyynyn");
  take(f, "he");
  expect_maybe_sent(f, "ynyynyyynyn");
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE shard = 1");
  expect_maybe_sent(f, "ynyynyyynyy");
}

/* Of what waits for its next attempt a copy was out, or nobody can say that none was. */
static void what_has_had_an_attempt_may_have_been_sent(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', '', 1, '2100-01-01'), (2, 'r', '', 1, '2100-01-01'), "
      "(3, 'r', '', 1, '2100-01-01'), (4, 'r', '', 1, '2100-01-01'), (5, 'r', '', 1, '2100-01-01')");
  sql(f, "UPDATE outbox SET attempt = 1, failures = 1, error_class = 'http.timeout' WHERE id = 2");
  sql(f, "UPDATE outbox SET state = 'blocked', attempt = 1 WHERE id = 3");
  sql(f, "UPDATE outbox SET state = 'held', attempt = 3 WHERE id = 4"); /* brought back when it was dead */
  sql(f, "UPDATE outbox SET state = 'claimed', attempt = 1, lease_until = '2100-01-01' WHERE id = 5");
  expect_maybe_sent(f, "nyyyy");
}

/* Its owner ended in order, and could not write what became of some tasks. */
static void a_shard_that_is_given_back_unclean_is_abandoned(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', '', 1, '2020-01-01'), (2, 'r', '', 1, '2100-01-01'), "
      "(3, 'r', '', 2, '2020-01-01'), (4, 'r', '', 2, '2100-01-01')");
  sql(f,
      "UPDATE outbox SET attempt = 1, error_class = 'daemon.stopped' WHERE id = 4"); /* broken off, as its row says */
  expect_maybe_sent(f, "nnny");
  ok(f, OPS->give_back(f->ss, "me", &f->leases[1], true, &f->err));
  expect_maybe_sent(f, "ynny");
  take(f, "she");
  expect_maybe_sent(f, "ynny");
}

/* The server's clock was ahead while the daemon lived, and was put back when it was dead: what it sent was due by the
 * clock of then. */
static void a_clock_that_was_put_back_makes_nothing_sure(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', '', 1, UTC_TIMESTAMP(6) + INTERVAL 30 MINUTE)");
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE shard = 1");
  expect_maybe_sent(f, "y");
  take(f, "she");
  expect_maybe_sent(f, "y");
}

/* Who had the shard before its row was deleted is not known. */
static void a_row_that_was_deleted_makes_nothing_sure(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', '', 1, '2020-01-01')");
  sql(f, "DELETE FROM outbox_shards WHERE shard = 1");
  expect_maybe_sent(f, "y");
  ok(f, OPS->remake_shards(f->ss, shard_bit(1), 60000, &f->err));
  expect_maybe_sent(f, "y");
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) WHERE shard = 1");
  take(f, "she");
  expect_maybe_sent(f, "y");
}

/* Two that live under one name; one that had it before, and died, is none. */
static void one_of_the_same_name_is_found(void **state) {
  struct fixture *f = *state;
  struct instance_row one = {
      .id = "a", .host = "h", .admin_url = "http://one", .version = "1", .routes = "x", .pid = 7};
  struct instance_row two = {.id = "b", .host = "h", .admin_url = "", .version = "1", .routes = "x"};
  struct instance_row three = {.id = "c", .host = "other", .admin_url = "", .version = "1", .routes = "x"};
  struct store_namesake found;
  uint32_t living, sets;
  ok(f, OPS->beat(f->ss, &one, 60000, &living, &sets, &f->err));
  ok(f, OPS->beat(f->ss, &two, 60000, &living, &sets, &f->err));
  ok(f, OPS->beat(f->ss, &three, 60000, &living, &sets, &f->err));
  ok(f, OPS->namesake(f->ss, "b", &found, &f->err)); /* started quickly after the other one had died */
  assert_string_equal(found.id, "");
  ok(f, OPS->beat(f->ss, &one, 60000, &living, &sets, &f->err));
  ok(f, OPS->namesake(f->ss, "b", &found, &f->err));
  assert_string_equal(found.id, "a");
  assert_int_equal(found.pid, 7);
  assert_string_equal(found.admin_url, "http://one");
  ok(f, OPS->namesake(f->ss, "c", &found, &f->err));
  assert_string_equal(found.id, "");
  one.routes = ""; /* it ends */
  ok(f, OPS->beat(f->ss, &one, 60000, &living, &sets, &f->err));
  ok(f, OPS->namesake(f->ss, "b", &found, &f->err));
  assert_string_equal(found.id, "");
}

static int64_t leased(struct fixture *f, const struct instance_row *me) {
  struct name_lease lease, seen;
  ok(f, OPS->lease_name(f->ss, me, me->host, 60000, &lease, &f->err));
  ok(f, OPS->lease_name(f->ss, me, me->host, 0, &seen, &f->err));
  assert_true(lease.runs && seen.runs && seen.since_us == lease.since_us);
  ok(f, OPS->lease_name(f->ss, me, "nobody's", 0, &seen, &f->err));
  assert_true(!seen.runs && !seen.since_us);
  return lease.since_us;
}

/* Of two of one name one alone holds it, until it ends, or its lease has. */
static void a_name_has_one_holder(void **state) {
  struct fixture *f = *state;
  struct instance_row one = {.id = "a-1", .host = "h", .admin_url = "", .version = "1", .routes = "x", .pid = 7};
  struct instance_row two = {.id = "b-2", .host = "h", .admin_url = "", .version = "1", .routes = "x"};
  struct instance_row three = {.id = "c-3", .host = "H", .admin_url = "", .version = "1", .routes = "x"};
  int64_t since, again;
  since = leased(f, &one);
  assert_true(since > 0);
  again = leased(f, &one);
  assert_int_equal(again, since);
  again = leased(f, &two);
  assert_int_equal(again, 0);
  again = leased(f, &three); /* another name */
  assert_true(again > 0);
  sql(f, "UPDATE outbox_instances SET alive_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE id = 'h'");
  again = leased(f, &one); /* nobody had it meanwhile */
  assert_int_equal(again, since);
  sql(f, "UPDATE outbox_instances SET alive_until = UTC_TIMESTAMP(6) WHERE id = 'h'");
  again = leased(f, &two);
  assert_true(again > since);
  ok(f, OPS->leave(f->ss, &one, &f->err)); /* not its own any more */
  again = leased(f, &one);
  assert_int_equal(again, 0);
  ok(f, OPS->leave(f->ss, &two, &f->err));
  again = leased(f, &one);
  assert_true(again > since);
  /* The server's clock was put back by a day: nobody waits for that long. */
  sql(f, "UPDATE outbox_instances SET seen_at = UTC_TIMESTAMP(6) + INTERVAL 1 DAY, alive_until = UTC_TIMESTAMP(6) + "
         "INTERVAL 1 DAY WHERE id = 'h'");
  again = leased(f, &two);
  assert_true(again > 0);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_deleted_row_comes_back_and_nobody_takes_it_at_once),
      TEST(an_empty_table_of_shards_is_filled_again),
      TEST(what_a_hand_has_written_into_one_row_costs_no_other),
      TEST(what_a_hand_has_written_among_the_instances_costs_no_shard),
      TEST(an_epoch_is_never_handed_out_again),
      TEST(a_task_moves_to_its_own_shard_beside_a_gap),
      TEST(an_epoch_that_no_daemon_writes_is_told_of),
      TEST(what_was_due_when_its_shard_was_abandoned_may_have_been_sent),
      TEST(what_has_had_an_attempt_may_have_been_sent),
      TEST(a_shard_that_is_given_back_unclean_is_abandoned),
      TEST(a_clock_that_was_put_back_makes_nothing_sure),
      TEST(a_row_that_was_deleted_makes_nothing_sure),
      TEST(one_of_the_same_name_is_found),
      TEST(a_name_has_one_holder),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
