/* SPDX-License-Identifier: MIT
 *
 * Tasks that end without having been at their sink, because their time is over, say, are read quicker than that is
 * written. They have limits of their own (P6): a million of one route used to be in memory at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "reader_fixture.h"

enum { BATCH = 1000, BYTES = 10000 };

/* Rows whose time is over, of that size, as far as there is credit. Returns how many. */
static size_t read_expired(struct fixture *f, uint64_t first, size_t bytes) {
  uint64_t ids[BATCH];
  size_t n = scheduler_credit(&f->s, &f->lane, clock_mono_us());
  assert_in_range(n, 0, BATCH);
  for (size_t i = 0; i < n; i++)
    ids[i] = first + i;
  struct task_batch *batch = n ? make_batch(ids, n, TASK_SCHEDULED) : NULL;
  for (size_t i = 0; i < n; i++) {
    batch->tasks[i].expires_us = 1;
    batch->tasks[i].payload_len = bytes;
  }
  const struct reading reading = {.lane = &f->lane, .most = n, .began_us = clock_mono_us(), .due_until_us = INT64_MAX};
  assert_int_equal(reader_take(&f->s, &reading, batch), n);
  return n;
}

static size_t read_all(struct fixture *f, size_t bytes) {
  size_t all = 0;
  f->released = 1; /* no batch of the fixture's */
  f->config.engine.batch = BATCH;
  f->route.concurrency = BATCH;
  for (size_t n = 1; n > 0 && all < 100 * BATCH; all += n)
    n = read_expired(f, all + 1, bytes);
  assert_int_equal(mailbox_count(&f->settler), all);
  return all;
}

/* The settler is through with all of them. */
static void settle(struct fixture *f) {
  struct flight_list settled = {0};
  mailbox_take(&f->settler, 0, &settled);
  for (struct flight *flight = settled.head; flight; flight = flight->next) {
    assert_int_equal(flight->end, FLIGHT_EXPIRED);
    flight->settled = true;
    flight->decision = (struct decision){.applied = true, .event = EVENT_EXPIRE};
  }
  scheduler_arrivals(&f->s, &settled);
  assert_int_equal(f->lane.ending, 0);
  assert_int_equal(f->lane.bytes_ending, 0);
}

static void those_whose_time_is_over_wait_for_the_settler(void **state) {
  struct fixture *f = *state;
  f->route.inflight_bytes = 1 << 24;
  size_t all = read_all(f, 1);
  assert_in_range(all, BATCH, 10 * BATCH);
  settle(f);
  assert_in_range(read_all(f, 1), BATCH, 10 * BATCH); /* it goes on */
}

static void so_do_their_bytes(void **state) {
  struct fixture *f = *state;
  f->route.inflight_bytes = 1 << 20;
  f->lane.average_bytes = BYTES;
  assert_in_range(read_all(f, BYTES) * BYTES, 1, 2 * f->route.inflight_bytes);
  settle(f);
  assert_true(scheduler_credit(&f->s, &f->lane, clock_mono_us()) > 0);
}

/* One that leaves counts as it did: for its concurrency. */
static void those_that_leave_do_not_count_twice(void **state) {
  struct fixture *f = *state;
  struct task tasks[] = {{.id = 1}, {.id = 2}};
  assert_int_equal(take_tasks(f, tasks, 2, 10, false), 2);
  assert_int_equal(f->lane.in_flight, 2);
  assert_int_equal(f->lane.ending, 0);
  assert_int_equal(f->lane.bytes_ending, 0);
}

/* Where there is no memory for a task it stays in the table, and keeps its place in its order_key: the next one of that
 * left when there was some again. */
static void what_there_is_no_memory_for_keeps_its_turn(void **state) {
  struct fixture *f = *state;
  static const struct duebox_bytes k = {"k", 1};
  const struct task first[] = {{.id = 1, .order_key = k}}, moving[] = {{.id = 2, .order_key = {"l", 1}, .moves = true}},
                    later[] = {{.id = 3, .order_key = k}, {.id = 4, .order_key = {"l", 1}}};
  f->flights.slots = FLIGHT_CHUNK * FLIGHT_CHUNKS;
  assert_int_equal(take_tasks(f, first, 1, 10, false), 0);
  assert_int_equal(take_tasks(f, moving, 1, 10, false), 0);
  f->flights.slots = 0;
  assert_int_equal(take_tasks(f, later, 2, 10, false), 0);
  assert_int_equal(mailbox_count(&f->settler), 0);
  order_free(&f->lane.order);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(those_whose_time_is_over_wait_for_the_settler, set_up, tear_down),
      cmocka_unit_test_setup_teardown(so_do_their_bytes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(those_that_leave_do_not_count_twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_there_is_no_memory_for_keeps_its_turn, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("reader_ends", tests, NULL, NULL);
}
