/* SPDX-License-Identifier: MIT
 *
 * What a daemon that stands still has left open on the server ends as soon as others may take over from it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "integration/store_fixture.h"
#include "outbox/outbox.h"
#include "outbox/session.h"

#define OPS f->store.ops

/* Another daemon: a store of its own under a name of its own. */
struct daemon {
  struct database_config config;
  struct store store;
  struct store_session *ss;
};

/* The server ends no session that is idle within this test, however slow the machine is. */
static void stay(struct fixture *f, struct store_session *ss) {
  assert_true(db_run(ss->conn, "SET SESSION wait_timeout = 120", "test", &f->err));
  ss->conn->idle_limit_us = 120 * 1000000;
}

static void start(struct fixture *f, struct daemon *d, const char *instance, const char *user, const char *password) {
  d->config = f->config;
  d->config.user = user;
  d->config.password = password;
  assert_true(outbox_create(&d->config, &d->store, &f->err));
  d->store.identify(d->store.self, instance);
  ok(f, d->store.ops->open(d->store.self, "settler", 0, &d->ss, &f->err));
  stay(f, d->ss);
}

static void stop(struct daemon *d) {
  d->store.ops->close(&d->ss);
  outbox_destroy(&d->store);
}

/* It has locked the row in a transaction that no time limit of the server would end within this test. */
static void stand_still(struct fixture *f, struct daemon *d) {
  struct err *err = &f->err;
  if (!is_mysql(f))
    assert_true(db_run(d->ss->conn, "SET SESSION idle_transaction_timeout = 120", "test", err));
  assert_true(db_run(d->ss->conn, "START TRANSACTION", "test", err));
  assert_true(db_run(d->ss->conn, "UPDATE outbox SET priority = 9 WHERE id = 1", "test", err));
}

static int64_t holders(struct fixture *f) {
  return ask(f, "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_rows_modified > 0");
}

/* Says of an instance when its last sign of life runs out, and its lease of shard 0. */
static void runs(struct fixture *f, const char *instance, const char *alive_until, const char *lease_until) {
  sql(f, "REPLACE INTO outbox_instances (id, host, alive_until) VALUES ('%s', 'h', %s)", instance, alive_until);
  sql(f, "UPDATE outbox_shards SET owner = '%s', lease_until = %s WHERE shard = 0", instance, lease_until);
}

#define PAST "'2020-01-01'"
#define SOON "UTC_TIMESTAMP(6) + INTERVAL 9 MINUTE"

/* Nobody waits for the dead: its locks go as soon as its lease and its last sign of life have run out. As long as one
 * of them runs it lives, and nothing of it is touched; nor is anything of others, ever. */
static void the_sessions_of_the_silent_are_ended_and_no_others(void **state) {
  struct fixture *f = *state;
  struct daemon dead = {0}, alive = {0};
  struct store_silent silent;
  static const char *const living[][2] = {{SOON, SOON}, {PAST, SOON}, {SOON, PAST}};
  sql(f, "INSERT INTO outbox (id, route, payload, shard) VALUES (1, 'r', 'p', 0)");
  start(f, &dead, "dead-1", f->config.user, f->config.password);
  start(f, &alive, "alive-1", f->config.user, f->config.password);
  uint64_t stays = db_thread(alive.ss->conn);
  stand_still(f, &dead);
  for (size_t i = 0; i < 3; i++) {
    runs(f, "dead-1", living[i][0], living[i][1]);
    ok(f, OPS->end_silent(f->ss, "dead-1", &silent, &f->err));
    assert_false(silent.silent);
    assert_int_equal(holders(f), 1);
  }
  runs(f, "dead-1", PAST, PAST);
  ok(f, OPS->end_silent(f->ss, "dead-1", &silent, &f->err));
  assert_true(silent.silent);
  assert_int_equal(silent.ended, 1);
  assert_int_equal(silent.refused, 0);
  while (holders(f) > 0)
    usleep(200 * 1000); /* InnoDB shows the same picture again to whoever asks within a tenth of a second */
  sql(f, "UPDATE outbox SET priority = 1 WHERE id = 1");
  ok(f, OPS->end_silent(f->ss, "dead-1", &silent, &f->err));
  assert_true(silent.silent);
  assert_int_equal(silent.ended, 0);
  int64_t now;
  ok(f, alive.store.ops->now(alive.ss, &now, &f->err));
  assert_int_equal(db_thread(alive.ss->conn), stays);
  stop(&alive);
  stop(&dead);
}

/* What an administrator may have set for all, and what made one statement fail on MySQL, and find one session only on
 * MariaDB. */
static void forbid_recursion(struct fixture *f) {
  const char *limit =
      is_mysql(f) ? "SET SESSION cte_max_recursion_depth = 0" : "SET SESSION max_recursive_iterations = 0";
  int64_t now;
  do
    ok(f, OPS->now(f->ss, &now, &f->err)); /* the server may have ended it meanwhile, which was idle */
  while (!db_run(f->ss->conn, limit, "test", &f->err));
}

/* Every connection has a name, also one that is made anew while the one before is still there; an instance that nobody
 * knows any more is silent. */
static void every_session_is_found(void **state) {
  struct fixture *f = *state;
  enum { SESSIONS = 8 };
  struct daemon d = {0};
  struct store_session *more[SESSIONS];
  struct store_silent silent;
  start(f, &d, "dead-2", f->config.user, f->config.password);
  for (int i = 0; i < SESSIONS; i++) {
    ok(f, d.store.ops->open(d.store.self, "test", 0, &more[i], &f->err));
    stay(f, more[i]);
  }
  for (int i = 0; i < SESSION_NAMES; i++) { /* as often as there are names */
    int64_t now;
    db_close(&more[0]->conn);
    ok(f, d.store.ops->now(more[0], &now, &f->err));
  }
  forbid_recursion(f);
  ok(f, OPS->end_silent(f->ss, "dead-2", &silent, &f->err));
  assert_true(silent.silent);
  assert_int_equal(silent.ended, SESSIONS + 1);
  for (int i = 0; i < SESSIONS; i++)
    d.store.ops->close(&more[i]);
  stop(&d);
}

/* Sessions of a user that we may not touch: their locks last until the server ends them, and that is no failure. */
static void sessions_that_may_not_be_ended_are_left(void **state) {
  struct fixture *f = *state;
  struct daemon dead = {0};
  struct store_silent silent;
  sql(f, "INSERT INTO outbox (id, route, payload, shard) VALUES (1, 'r', 'p', 0)");
  start(f, &dead, "dead-3", "root", "");
  stand_still(f, &dead);
  ok(f, OPS->end_silent(f->ss, "dead-3", &silent, &f->err));
  assert_true(silent.silent);
  assert_int_equal(silent.ended, 0);
  assert_int_equal(silent.refused, 1);
  assert_int_equal(holders(f), 1);
  stop(&dead);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(the_sessions_of_the_silent_are_ended_and_no_others),
      TEST(every_session_is_found),
      TEST(sessions_that_may_not_be_ended_are_left),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
