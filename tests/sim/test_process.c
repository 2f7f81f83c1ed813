/* SPDX-License-Identifier: MIT
 *
 * tests/sim/test_process.c - stories written by hand: one daemon, one route, and one thing that happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker.h"
#include "core/base/log.h"
#include "memory.h"
#include "process.h"
#include "table.h"
#include "world.h"

enum { SECOND = 1000 * 1000 };

static struct {
  struct profile profile;
  struct table db;
  struct broker broker;
  struct process process;
} sim;

static int64_t any_number(const char *route) { return INT64_MAX; }

/* One daemon with the route "order", whose claims are kept in memory. */
static void begin(void) {
  const struct world_options options = {
      .seed = 1, .strategy = STRATEGY_PREEMPT, .preempt_ppm = 10000, .steps_max = 5 * 1000 * 1000};
  memset(&sim, 0, sizeof sim);
  log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, -1);
  world_begin(&options);
  table_begin(&sim.db, 1, chance_of(1, 1));
  broker_begin(&sim.broker, 1);
  sim.broker.clock = (int64_t(*)(const void *))table_clock;
  sim.broker.database = &sim.db;
  sim.broker.most = any_number;
  sim.broker.low_us = sim.broker.answer_low_us = 100;
  sim.broker.high_us = sim.broker.answer_high_us = 200;
  sim.broker.hang_low_us = sim.broker.hang_high_us = SECOND;
  sim.profile = (struct profile){.route_count = 1,
                                 .lease_ms = 2000,
                                 .wake = WAKE_POLL,
                                 .poll_min_ms = 1,
                                 .poll_max_ms = 10,
                                 .batch = 100,
                                 .settle_rows = 100,
                                 .hang_ms = 5000,
                                 .drain_timeout_ms = 1000,
                                 .inflight_bytes = 1 << 20};
  sim.profile.routes[0].name = "order";
  sim.profile.routes[0].timeout_ms = 5000;
  sim.profile.routes[0].concurrency = 10;
  sim.profile.routes[0].backoff_ms = 10;
  sim.profile.routes[0].backoff_max_ms = 10;
  sim.process.machine = (struct machine){.number = 1, .chance = chance_of(1, 2), .wall_ahead_us = TABLE_EPOCH_US};
  sim.process.profile = &sim.profile;
  (void)strcpy(sim.process.host, "host1");
  sim.process.machine.host = sim.process.host;
  sim.process.db = &sim.db;
}

static bool has_ended(void *arg) { return !sim.process.running; }

static void end_process(void) {
  sim.process.drain = true;
  process_ask(&sim.process, PROCESS_END);
  if (!world_wait(has_ended, NULL, world_now_us() + 30 * SECOND))
    world_fail("the daemon does not end");
}

/* Tells the story. */
static void run(void (*story)(void *arg)) {
  const char *why;
  begin();
  world_spawn(NULL, "broker", broker_run, &sim.broker);
  world_spawn(NULL, "story", story, NULL);
  bool ok = world_run(&why);
  if (!ok)
    fail_msg("%s", why);
  world_end();
  memory_free_all(1);
  table_end(&sim.db);
}

/* Due so much later than now. */
static void insert(const char *message_id, const char *order_key, int64_t later_us) {
  struct tx *tx = user_begin(&sim.db);
  struct row *row = user_insert(tx, "order", "x", 1);
  blob_put(&row->text[ROW_MESSAGE_ID], message_id);
  blob_put(&row->text[ROW_ORDER_KEY], order_key);
  row->due_us += later_us;
  if (!user_commit(&tx))
    world_fail("no database");
}

/* When it was handed over for the first time; INT64_MAX = never. */
static int64_t sent_us(const char *message_id) {
  for (size_t i = 0; i < sim.broker.message_count; i++)
    if (strcmp(sim.broker.messages[i].message_id, message_id) == 0)
      return sim.broker.messages[i].submitted_us;
  return INT64_MAX;
}

static bool out_was_sent(void *arg) { return sent_us("out") != INT64_MAX; }
static bool task_was_sent(void *arg) { return sent_us("task") != INT64_MAX; }
static bool nothing_is_left(void *arg) { return sim.db.data.rows.count == 0; }

static void wait_for(bool (*holds)(void *arg), void *arg) {
  if (!world_wait(holds, arg, world_now_us() + 30 * SECOND))
    world_fail("waited in vain");
}

/* The row ids of a truncated table are handed out again: the task that has now the id of one that is out does not take
 * the turn of that one. */
static void tell_of_an_id_that_is_handed_out_again(void *arg) {
  process_start(&sim.process);
  insert("other", "", 3600 * (int64_t)SECOND); /* has id 1 */
  sim.broker.frozen_until_us = world_now_us() + SECOND;
  insert("out", "k", 0);
  wait_for(out_was_sent, NULL);
  if (!table_truncate(&sim.db))
    world_fail("cannot truncate");
  insert("first", "k", 0);
  insert("second", "k", 1); /* has the id of the one that is out */
  wait_for(nothing_is_left, NULL);
  end_process();
  if (sent_us("first") >= sent_us("second"))
    world_fail("the second one was sent first");
  world_stop();
}

/* Nor does a task get the turn of one that waited behind that, whose id it has. */
static void tell_of_the_id_of_one_that_waits(void *arg) {
  process_start(&sim.process);
  insert("other", "", 3600 * (int64_t)SECOND); /* has id 1 */
  sim.broker.frozen_until_us = world_now_us() + SECOND;
  insert("out", "k", 0);
  wait_for(out_was_sent, NULL);
  insert("behind", "k", 0);
  world_sleep(100 * 1000); /* it is met */
  if (!table_truncate(&sim.db))
    world_fail("cannot truncate");
  insert("first", "k", 0);
  insert("second", "k", 1); /* has the id of the one that is out */
  insert("third", "k", 2);  /* has the id of the one that waited */
  wait_for(nothing_is_left, NULL);
  end_process();
  if (sent_us("first") >= sent_us("second") || sent_us("second") >= sent_us("third"))
    world_fail("one was sent before the one that came first");
  world_stop();
}

static bool both_hang(void *arg) { return sim.broker.counts[BROKER_HANG] == 2; }
static bool has_answered(void *arg) { return sim.broker.record_count > 0; }

static unsigned sessions(void) {
  unsigned n = 0;
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    n += sim.db.connections[i] != NULL;
  return n;
}

/* Results and settler, which end after all plugins. */
static bool two_have_left(void *sessions_before) { return sessions() + 2 == *(unsigned *)sessions_before; }

/* A call hangs for as long as the daemon waits for it at its end, and comes back while the leases are given back: the
 * source's with a record, the sink's with an outcome. */
static void tell_of_plugins_that_come_back(void *arg) {
  sim.profile.source = true;
  sim.profile.routes[0].result = RESULT_EXPECTED;
  sim.profile.routes[0].timeout_ms = 60 * 1000;
  sim.broker.answers_for = "order";
  sim.broker.answer_low_us = sim.broker.answer_high_us = 500 * 1000;
  sim.broker.hang_low_us = sim.broker.hang_high_us = 60 * SECOND;
  sim.broker.frozen_until_us = 10 * SECOND;
  process_start(&sim.process);
  insert("task", "", 0);
  wait_for(task_was_sent, NULL);
  sim.broker.faults.hang = 1000000;
  wait_for(both_hang, NULL);
  sim.broker.faults.hang = 0;
  wait_for(has_answered, NULL);
  unsigned before = sessions();
  process_ask(&sim.process, PROCESS_END);
  wait_for(two_have_left, &before);
  sim.db.slow = 1000;
  world_sleep(1000);
  sim.broker.hang_is_over = true;
  wait_for(has_ended, NULL);
  world_stop();
}

static void plugins_that_come_back_when_the_daemon_ends_do_no_harm(void **state) {
  run(tell_of_plugins_that_come_back);
}

static bool one_hangs(void *arg) { return sim.broker.counts[BROKER_HANG] == 1; }
static bool nobody_is_connected(void *arg) { return sessions() == 0; }

/* The engine is no more, but for what it has left behind, and the process has still to return from main(). */
static void end_engine(void) {
  process_ask(&sim.process, PROCESS_END);
  wait_for(nobody_is_connected, NULL);
  world_sleep(50 * 1000);
  if (!sim.process.running)
    world_fail("the process is over too soon");
}

/* A call hangs, with a task in hand, until the engine is no more. */
static void tell_of_a_plugin_that_outlives_the_engine(void *arg) {
  sim.broker.hang_low_us = sim.broker.hang_high_us = 600 * (int64_t)SECOND;
  sim.broker.frozen_until_us = 5 * SECOND;
  process_start(&sim.process);
  insert("task", "", 0);
  wait_for(task_was_sent, NULL);
  sim.broker.faults.hang = 1000000;
  wait_for(one_hangs, NULL);
  end_engine();
  sim.broker.hang_is_over = true;
  wait_for(has_ended, NULL);
  world_stop();
}

/* An instance is being made to replace another, which comes back by itself: the new one has never been used, and its
 * create() outlives the engine. */
static void tell_of_an_instance_that_is_made_too_late(void *arg) {
  sim.broker.hang_low_us = sim.broker.hang_high_us = 10 * SECOND;
  process_start(&sim.process);
  sim.broker.faults.hang = 1000000;
  wait_for(one_hangs, NULL);
  int64_t hung_us = world_now_us();
  sim.broker.faults.hang = 0;
  sim.broker.create_hangs = true;
  sim.broker.hang_low_us = sim.broker.hang_high_us = 600 * (int64_t)SECOND;
  wait_for(both_hang, NULL);
  world_sleep(hung_us + 10 * SECOND + SECOND / 2 - world_now_us());
  end_engine();
  sim.broker.hang_is_over = true;
  wait_for(has_ended, NULL);
  world_stop();
}

static void a_plugin_that_outlives_the_engine_does_no_harm(void **state) {
  run(tell_of_a_plugin_that_outlives_the_engine);
}

static void nor_does_one_that_is_still_being_made(void **state) { run(tell_of_an_instance_that_is_made_too_late); }

static void an_id_that_is_handed_out_again_has_no_turn_before_its_time(void **state) {
  run(tell_of_an_id_that_is_handed_out_again);
}

static void nor_the_turn_of_one_that_waited(void **state) { run(tell_of_the_id_of_one_that_waits); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plugins_that_come_back_when_the_daemon_ends_do_no_harm),
      cmocka_unit_test(a_plugin_that_outlives_the_engine_does_no_harm),
      cmocka_unit_test(nor_does_one_that_is_still_being_made),
      cmocka_unit_test(an_id_that_is_handed_out_again_has_no_turn_before_its_time),
      cmocka_unit_test(nor_the_turn_of_one_that_waited),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
