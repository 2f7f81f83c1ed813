/* SPDX-License-Identifier: MIT
 *
 * Between a row's reading and its hand-over: it is put off, its driver is replaced, its route goes another way, it
 * expires. Nothing leaves early (P3), to the wrong plugin, or after its time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "reader_fixture.h"

/* --- behind the cursor --- */

enum { PUT_OFF_US = 10 * 1000 * 1000 };

static enum store_status find_first(struct store_session *ss, const struct store_range *ranges,
                                    const struct store_cursor *until, size_t range_count, struct found_id *found,
                                    size_t *count, struct err *err) {
  found[0] = (struct found_id){.next_us = 1, .id = 1};
  *count = 1;
  return STORE_OK;
}

/* Plain SQL has put it off since it was found. */
static enum store_status read_put_off(struct store_session *ss, enum task_state state, uint64_t shards,
                                      const char *host, const uint64_t *ids, size_t count, int64_t ahead_us,
                                      struct store_limit limit, struct task_batch **batch, struct err *err) {
  struct fixture *f = (struct fixture *)(void *)ss;
  f->batch = (struct task_batch){.open = 1, .count = 1, .tasks = f->tasks, .buffer = f, .release = release};
  f->tasks[0] = (struct task){.id = 1,
                              .state = TASK_SCHEDULED,
                              .due_us = clock_mono_us() + PUT_OFF_US,
                              .asked_due_us = 1,
                              .route = {"work", 4},
                              .message_id = {"m", 1},
                              .payload = {"x", 1},
                              .payload_len = 1,
                              .batch = &f->batch};
  *batch = &f->batch;
  return STORE_OK;
}

/* A row that a sweep finds due, and that is due a moment later by the time it is read or claimed, waits for that
 * moment: nothing leaves early (P3). (A sweep used to take all that it had found for due.) */
static void what_is_put_off_while_it_is_swept_is_not_early(void **state) {
  static const struct store_ops ops = {.find = find_first, .read_ids = read_put_off};
  struct fixture *f = *state;
  struct store store = {.ops = &ops};
  struct group *group = lane_group(&f->lane, 0, 0, true);
  assert_non_null(group);
  f->s.store = &store;
  f->s.ss = (struct store_session *)(void *)f;
  group->cursor = (struct store_cursor){2, ROWS};
  assert_true(reader_sweep(&f->s, group, 10));
  assert_int_equal(mailbox_count(&f->driver.in), 0);
  assert_int_equal(f->s.early.count, 1);
  flight_give_back(&f->flights, flight_list_pop(&f->s.early));
  free(f->s.found);
}

/* --- tasks that wait for their moment --- */

/* A row that was read a little early waits in memory; then its moment comes. */
static void wait_in_memory(struct fixture *f) {
  f->tasks[0] = (struct task){.id = 1,
                              .state = TASK_SCHEDULED,
                              .due_us = clock_mono_us() + PUT_OFF_US,
                              .route = {"work", 4},
                              .message_id = {"m", 1},
                              .payload = {"x", 1},
                              .payload_len = 1,
                              .batch = &f->batch};
  f->batch = (struct task_batch){.open = 1, .count = 1, .tasks = f->tasks, .buffer = f, .release = release};
  const struct reading reading = {.lane = &f->lane, .most = 1, .began_us = clock_mono_us(), .due_until_us = 10};
  reader_take(&f->s, &reading, &f->batch);
  assert_int_equal(f->s.early.count, 1);
  f->s.db_clock = (struct db_clock){.seen_us = clock_mono_us(), .steady = {.low_us = 2 * PUT_OFF_US}};
}

static void it_goes_to_the_driver_that_it_was_read_for(void **state) {
  struct fixture *f = *state;
  wait_in_memory(f);
  scheduler_send_due(&f->s);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
}

/* A reload sends its route to another plugin meanwhile, which would take the first one's route_data for its own: what
 * waits goes back to the table. (The daemon used to die of it.) */
static void never_to_another(void **state) {
  struct fixture *f = *state;
  struct driver other = {.module = &reader_module, .max_inflight = 1000};
  mailbox_init(&other.in);
  wait_in_memory(f);
  f->lane.driver = &other;
  scheduler_send_due(&f->s);
  assert_int_equal(mailbox_count(&other.in), 0);
  struct flight_list given_back = {0};
  mailbox_take(&f->settler, 0, &given_back);
  assert_int_equal(given_back.count, 1);
  assert_int_equal(given_back.head->end, FLIGHT_UNSENT);
  flight_give_back(&f->flights, flight_list_pop(&given_back));
  mailbox_destroy(&other.in);
}

static void return_at_once(void *arg) { (void)arg; }
static void note_end(void *over) { atomic_store((atomic_bool *)over, true); }

/* A driver hangs and another one takes its place: what waits for its moment goes to that one, and what the hung one was
 * not yet able to hand over goes back to the table, unsent. */
static void those_of_a_hung_driver_are_not_lost(void **state) {
  struct fixture *f = *state;
  struct driver other = {.module = &reader_module, .max_inflight = 1000};
  struct task handed[] = {{.id = 7}};
  mailbox_init(&other.in);
  mailbox_init(&f->s.in);
  mutex_init(&f->s.ask_lock);
  mutex_init(&f->driver.own);
  atomic_bool over = false;
  f->driver.thread.ended = note_end;
  assert_true(thread_start(&f->driver.thread, "hung", return_at_once, &over));
  f->driver.env.flights = &f->flights;
  f->s.lanes = &f->lane;
  struct task_batch batch = {.open = 1, .count = 1, .tasks = handed, .buffer = f, .release = release};
  handed[0] = (struct task){.id = 7,
                            .state = TASK_SCHEDULED,
                            .due_us = 1,
                            .route = {"work", 4},
                            .message_id = {"m", 1},
                            .payload = {"x", 1},
                            .payload_len = 1,
                            .batch = &batch};
  const struct reading reading = {.lane = &f->lane, .most = 1, .began_us = clock_mono_us(), .due_until_us = 10};
  reader_take(&f->s, &reading, &batch);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
  wait_in_memory(f);
  scheduler_replace(&f->s, &f->driver, &other);
  scheduler_configure(&f->s);
  scheduler_send_due(&f->s);
  struct flight_list sent = {0}, given_back = {0};
  mailbox_take(&other.in, 0, &sent);
  mailbox_take(&f->settler, 0, &given_back);
  assert_int_equal(sent.count, 1);
  assert_int_equal(sent.head->id, 1);
  assert_int_equal(given_back.count, 1);
  assert_int_equal(given_back.head->id, 7);
  assert_int_equal(given_back.head->end, FLIGHT_UNSENT);
  assert_ptr_equal(f->lane.driver, &other);
  flight_give_back(&f->flights, flight_list_pop(&sent));
  flight_give_back(&f->flights, flight_list_pop(&given_back));
  assert_int_equal(f->released, 2);
  f->released = 1;
  mailbox_destroy(&f->s.in);
  mailbox_destroy(&other.in);
  while (!atomic_load(&over)) /* it was detached, and its struct is in the fixture */
    thread_sleep(1000);
  mutex_destroy(&f->driver.own);
  mutex_destroy(&f->s.ask_lock);
}

enum { HUNG = 3 };

/* Several hang, one after the other, while the reader waits for its database: each replacement counts, in their order,
 * and the lane has the last one. (It had one that was abandoned, and its tasks stayed there for ever.) */
static void a_lane_follows_all_replacements(void **state) {
  struct fixture *f = *state;
  struct driver drivers[HUNG + 1] = {0};
  atomic_bool over[HUNG] = {false};
  struct task tasks[] = {{.id = 1}};
  mailbox_init(&f->s.in);
  mutex_init(&f->s.ask_lock);
  f->s.lanes = &f->lane;
  for (size_t i = 0; i <= HUNG; i++) {
    drivers[i].module = &reader_module;
    drivers[i].max_inflight = 1000;
    drivers[i].env.flights = &f->flights;
    mailbox_init(&drivers[i].in);
    mutex_init(&drivers[i].own);
  }
  f->lane.driver = &drivers[0];
  for (size_t i = 0; i < HUNG; i++) {
    drivers[i].thread.ended = note_end;
    assert_true(thread_start(&drivers[i].thread, "hung", return_at_once, &over[i]));
    scheduler_replace(&f->s, &drivers[i], &drivers[i + 1]);
  }
  scheduler_configure(&f->s);
  assert_ptr_equal(f->lane.driver, &drivers[HUNG]);
  (void)take_tasks(f, tasks, 1, 1, false);
  assert_int_equal(mailbox_count(&drivers[HUNG].in), 1);
  struct flight_list sent = {0};
  mailbox_take(&drivers[HUNG].in, 0, &sent);
  flight_give_back(&f->flights, flight_list_pop(&sent));
  for (size_t i = 0; i < HUNG; i++)
    while (!atomic_load(&over[i])) /* they were detached, and their structs are here */
      thread_sleep(1000);
  for (size_t i = 0; i <= HUNG; i++) {
    assert_int_equal(drivers[i].abandoned, i < HUNG);
    mailbox_destroy(&drivers[i].in);
    mutex_destroy(&drivers[i].own);
  }
  mutex_destroy(&f->s.ask_lock);
  mailbox_destroy(&f->s.in);
}

/* --- changed between reading and claiming --- */

/* Its expires_at was set, to a time that is over, after it was read and before the claim, which read it again. */
static enum store_status claim_expired(struct store_session *ss, const struct store_claim *claim,
                                       struct task_batch **batch, uint64_t *lost, struct err *err) {
  struct fixture *f = (struct fixture *)(void *)ss;
  f->tasks[1] = f->tasks[0];
  f->tasks[1].state = TASK_CLAIMED;
  f->tasks[1].attempt = 1;
  f->tasks[1].recorded = true;
  f->tasks[1].expires_us = 1;
  f->tasks[1].batch = &f->claimed;
  f->claimed =
      (struct task_batch){.open = 1, .count = claim->count, .tasks = &f->tasks[1], .buffer = f, .release = release};
  *batch = &f->claimed;
  *lost = 0;
  return STORE_OK;
}

/* An expires_at is kept up to the moment at which the task leaves: it expires, although it is claimed by then. */
static void what_expires_before_it_is_claimed_is_not_sent(void **state) {
  static const struct store_ops ops = {.claim = claim_expired};
  struct fixture *f = *state;
  const struct store store = {.ops = &ops};
  struct task tasks[] = {{.id = 1}};
  f->s.store = &store;
  f->s.ss = (struct store_session *)(void *)f;
  f->lane.config = &f->ref;
  assert_int_equal(take_tasks(f, tasks, 1, 10, true), 0);
  struct flight_list ended = {0};
  mailbox_take(&f->settler, 0, &ended);
  assert_int_equal(ended.count, 1);
  assert_int_equal(ended.head->end, FLIGHT_EXPIRED);
  assert_int_equal(ended.head->task->state, TASK_CLAIMED);
  flight_give_back(&f->flights, flight_list_pop(&ended));
  assert_int_equal(f->released, 2);
  f->released = 1;
}

/* --- nothing of it can leave --- */

/* A route whose places are all taken by calls that last longer than it says, while something is due, is full; not while
 * what is due is what the look before saw, nor once a call is over. */
static void a_route_that_nothing_can_leave_by_says_so(void **state) {
  struct fixture *f = *state;
  const struct task tasks[] = {{.id = 1, .priority = 5, .timeout_ms = UINT32_MAX}, {.id = 2, .priority = 5}};
  f->route.timeout_max_ms = 300000;
  assert_int_equal(take_tasks(f, tasks, 2, 10, false), 2);
  struct flight_list sent = {0};
  mailbox_take(&f->driver.in, 0, &sent);
  sent.head->handed_us = 1; /* it is there for longest */
  for (struct flight *flight = sent.head; flight; flight = flight->next)
    atomic_store(&flight->submitted, true);
  atomic_store(&f->lane.at_sink, 2);
  f->route.claim = CLAIM_RECORDED;
  f->route.concurrency = 2;
  f->s.lanes = &f->lane;
  f->s.look = 7;
  f->lane.groups->seen = 7;
  f->lane.groups->next_us = 1;
  scheduler_follow_stalls(&f->s);
  assert_true(f->lane.full_from_us > 0);
  f->lane.full_from_us -= READY_STUCK_US + 1;
  f->s.look = 8; /* that saw nothing of it */
  scheduler_follow_stalls(&f->s);
  assert_int_equal(f->lane.full_from_us, 0);
  f->s.look = 7;
  f->lane.full_from_us = clock_mono_us() - READY_STUCK_US - 1;
  scheduler_follow_stalls(&f->s);
  assert_true(gauge_value(&f->lane.full_since_us) > 0);
  assert_string_equal(f->lane.full_task, "m");
  lane_note_left(&f->lane);
  scheduler_follow_stalls(&f->s);
  assert_int_equal(gauge_value(&f->lane.full_since_us), 0);
  assert_string_equal(f->lane.full_task, "");
  for (struct flight *flight; (flight = flight_list_pop(&sent));)
    flight_give_back(&f->flights, flight);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_put_off_while_it_is_swept_is_not_early, set_up, tear_down),
      cmocka_unit_test_setup_teardown(it_goes_to_the_driver_that_it_was_read_for, set_up, tear_down),
      cmocka_unit_test_setup_teardown(never_to_another, set_up, tear_down),
      cmocka_unit_test_setup_teardown(those_of_a_hung_driver_are_not_lost, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_lane_follows_all_replacements, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_expires_before_it_is_claimed_is_not_sent, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_route_that_nothing_can_leave_by_says_so, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("reader_moment", tests, NULL, NULL);
}
