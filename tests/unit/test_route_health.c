/* SPDX-License-Identifier: MIT
 *
 * What outcomes make of a route: after an outage a success ends the back-off, so that the next outage begins with short
 * waits again. (With a concurrency of up to 4 it stayed, and a short outage could stop the route for half a minute.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scheduler.h"

static void deliver(struct scheduler *s, struct lane *lane) {
  struct task task = {.id = 1, .view = {.message_id = "m"}};
  const struct flight flight = {
      .id = 1, .task = &task, .lane = lane, .end = FLIGHT_OUTCOME, .outcome = {.cls = DUEBOX_DELIVERED}};
  scheduler_follow_outcome(s, &flight);
}

/* It is down and back so many times, as its plugin reports, and then takes a task. */
static void outages(uint32_t concurrency) {
  const struct health_trouble trouble = {.message = "down", .retry_after_ms = -1};
  struct route_config route = {.concurrency = concurrency};
  struct lane lane = {.name = "work", .route = &route};
  struct scheduler s = {.lanes = &lane};
  mutex_init(&s.lanes_lock);
  for (int i = 0; i < 5; i++) {
    assert_true(health_down(&lane.health, &trouble, 0));
    assert_true(health_reachable(&lane.health, concurrency));
  }
  assert_true(lane.health.backoff_us > 1000 * 1000);
  deliver(&s, &lane);
  assert_int_equal(lane.health.backoff_us, 0);
  mutex_destroy(&s.lanes_lock);
}

static void a_success_ends_the_back_off(void **state) { outages(100); }
static void of_a_narrow_route_too(void **state) { outages(1); }

static void gone(void *engine, const char *route, const char *reason, int64_t since_us) { ++*(int *)engine; }

static void refuse_for_good(struct driver *driver, struct driver *now, int *paused) {
  struct route_config route = {.concurrency = 1};
  struct lane lane = {.name = "work", .route = &route, .driver = now};
  struct scheduler s = {.lanes = &lane, .route_gone = gone, .engine = paused};
  struct task task = {.id = 1, .view = {.message_id = "m"}};
  const struct flight flight = {
      .id = 1, .task = &task, .lane = &lane, .driver = driver, .end = FLIGHT_OUTCOME, .outcome = {.cls = DUEBOX_GONE}};
  mutex_init(&s.lanes_lock);
  scheduler_follow_outcome(&s, &flight);
  mutex_destroy(&s.lanes_lock);
}

/* Whether it is suspended by so many such outcomes in a row. */
static bool suspends(uint32_t times, struct duebox_outcome outcome) {
  struct route_config route = {.concurrency = 10, .breaker = 5};
  struct lane lane = {.name = "work", .route = &route};
  struct scheduler s = {.lanes = &lane};
  struct task task = {.id = 1, .view = {.message_id = "m"}};
  const struct flight flight = {.id = 1, .task = &task, .lane = &lane, .end = FLIGHT_OUTCOME, .outcome = outcome};
  mutex_init(&s.lanes_lock);
  for (uint32_t i = 0; i < times; i++)
    scheduler_follow_outcome(&s, &flight);
  mutex_destroy(&s.lanes_lock);
  return health_suspended(&lane.health);
}

/* A proxy's 407, which may be the endpoint's: the request may have been received, and the destination is not well. */
static void a_blameless_answer_of_the_target_is_its_failure(void **state) {
  const struct duebox_outcome answered = {.cls = DUEBOX_UNKNOWN, .blameless = true, .scope = DUEBOX_SCOPE_TARGET},
                              broke = {.cls = DUEBOX_UNKNOWN, .blameless = true},
                              silent = {.cls = DUEBOX_UNKNOWN, .scope = DUEBOX_SCOPE_TARGET};
  assert_false(suspends(4, answered));
  assert_true(suspends(5, answered));
  assert_false(suspends(50, broke) || suspends(50, silent));
}

/* What the former destination answers after a reload pauses no route that goes to another one now. */
static void a_former_destination_says_nothing_of_the_present_one(void **state) {
  struct driver old = {.name = "old"}, new = {.name = "new"};
  int paused = 0;
  refuse_for_good(&old, &old, &paused);
  assert_int_equal(paused, 1);
  refuse_for_good(&old, &new, &paused);
  assert_int_equal(paused, 1);
}

/* A destination that is gone pauses its route, until people resume it: also where they do so before the pause is in the
 * table. What was set before counts for nothing. */
static void people_resume_what_was_gone(void **state) {
  static struct config config;
  struct config_ref ref = {.users = 1, .config = &config};
  struct lane lane = {.name = "work", .paused = true, .gone = true, .gone_us = 1000};
  struct scheduler s = {.lanes = &lane, .config = &ref};
  struct route_setting resumed = {.route = "work", .changed_us = 999};
  mutex_init(&s.lanes_lock);
  mutex_init(&s.ask_lock);
  mailbox_init(&s.in);
  scheduler_settings(&s, &resumed, 1);
  scheduler_configure(&s);
  assert_true(lane.paused);
  resumed.changed_us = 1001;
  scheduler_settings(&s, &resumed, 1);
  scheduler_configure(&s);
  assert_false(lane.paused);
  free(s.known_settings);
  mailbox_destroy(&s.in);
  mutex_destroy(&s.ask_lock);
  mutex_destroy(&s.lanes_lock);
}

static struct driver *no_driver(void *engine, const struct plugin_config *plugin) { return NULL; }

/* Somebody pauses a route before a reload brings it: it is paused from its first moment on. (Settings are read once a
 * second, and until then its tasks were sent.) */
static void a_route_that_was_paused_before_it_came_does_not_begin(void **state) {
  static struct route_config route = {.name = "new"};
  static struct config without, with = {.routes = &route, .route_count = 1};
  struct config_ref before = {.users = 2, .config = &without}, after = {.users = 2, .config = &with};
  struct scheduler s = {.config = &before, .driver_for = no_driver};
  const struct route_setting paused = {.route = "new", .paused = true, .changed_us = 1};
  mutex_init(&s.lanes_lock);
  mutex_init(&s.ask_lock);
  cond_init(&s.answered);
  mailbox_init(&s.in);
  scheduler_settings(&s, &paused, 1);
  scheduler_configure(&s);
  scheduler_reload(&s, &after);
  scheduler_configure(&s);
  assert_true(scheduler_lane(&s, "new")->paused);
  scheduler_free(&s);
  mailbox_destroy(&s.in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_success_ends_the_back_off),
      cmocka_unit_test(of_a_narrow_route_too),
      cmocka_unit_test(people_resume_what_was_gone),
      cmocka_unit_test(a_route_that_was_paused_before_it_came_does_not_begin),
      cmocka_unit_test(a_blameless_answer_of_the_target_is_its_failure),
      cmocka_unit_test(a_former_destination_says_nothing_of_the_present_one),
  };
  return cmocka_run_group_tests_name("route_health", tests, NULL, NULL);
}
