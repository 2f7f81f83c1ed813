/* SPDX-License-Identifier: MIT
 *
 * Rows that are larger than engine.max_payload: they end dead, and cost the other routes little until then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "reader_fixture.h"

enum { TOO_LARGE = 40 << 20 };

static size_t claims;

static void release_copy(struct task_batch *batch) {}

static enum store_status claim_one(struct store_session *ss, const struct store_claim *claim, struct task_batch **batch,
                                   uint64_t *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  claims++;
  assert_int_equal(claim->count, 1);
  f->tasks[ROWS - 1] = f->tasks[0];
  f->tasks[ROWS - 1].state = TASK_CLAIMED;
  f->tasks[ROWS - 1].batch = &f->claimed;
  f->claimed = (struct task_batch){.open = 1, .count = 1, .tasks = &f->tasks[ROWS - 1], .release = release_copy};
  *batch = &f->claimed;
  return STORE_OK;
}

/* One of 40 MB was claimed before it was refused: a transaction of 80 MB with the rows of all shards in it, on the
 * thread that reads for all routes. Where the byte credit did not buy it, it was read again and again. */
static void it_is_not_claimed(void **state) {
  struct fixture *f = *state;
  static const struct store_ops ops = {.claim = claim_one};
  const struct store store = {.ops = &ops};
  const struct task tasks[] = {{.id = 1}, {.id = 2, .payload_len = TOO_LARGE}, {.id = 3, .payload_len = TOO_LARGE}};
  struct flight_list ended = {0};
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  claims = 0;
  assert_int_equal(take_tasks(f, tasks, 3, 10, true), 1);
  assert_int_equal(claims, 1);
  mailbox_take(&f->settler, 0, &ended);
  assert_int_equal(ended.count, 2);
  for (const struct flight *flight = ended.head; flight; flight = flight->next) {
    assert_int_equal(flight->end, FLIGHT_REFUSED);
    assert_int_equal(flight->task->state, TASK_SCHEDULED);
    assert_string_equal(flight->outcome.error_class, "row.payload_too_large");
  }
  mailbox_put(&f->settler, &ended);
}

/* The server reads all of a row to tell its length, and all routes wait for it: after one of 40 MB a statement asks for
 * few rows of that route, and not at once. */
static void after_it_few_rows_are_read_at_a_time(void **state) {
  struct fixture *f = *state;
  const struct task tasks[] = {{.id = 1, .payload_len = TOO_LARGE}};
  f->route.inflight_bytes = TOO_LARGE;
  assert_true(lane_credit(&f->lane, READ_MAX, clock_mono_us()) > 50);
  assert_int_equal(take_tasks(f, tasks, 1, 10, false), 0);
  assert_int_equal(mailbox_count(&f->settler), 1);
  assert_true(f->lane.rests_until_us > 0);
  assert_int_equal(lane_credit(&f->lane, READ_MAX, f->lane.rests_until_us - 1), 0);
  assert_int_equal(lane_wakes_at(&f->lane, f->lane.rests_until_us - 1), f->lane.rests_until_us);
  assert_int_equal(lane_credit(&f->lane, READ_MAX, f->lane.rests_until_us), 1);
  lane_note_too_large(&f->lane, 1000, 21000);
  assert_int_equal(f->lane.rests_until_us, 21000 + 9 * 20000);
}

static enum store_status read_one(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                  const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                  struct task_batch **batch, struct err *err) {
  *batch = make_batch(ids, count, TASK_SCHEDULED);
  (*batch)->tasks[0].priority = 0;
  (*batch)->tasks[0].order_key = (struct duebox_bytes){"k", 1};
  return STORE_OK;
}

/* A large row is read by itself, after the others of its batch: where one of these was put back meanwhile, it is too.
 * That took the turn in its order_key from it, and the next one of the key left. */
static void it_keeps_its_turn_when_it_is_put_back(void **state) {
  struct fixture *f = *state;
  static const struct store_ops ops = {.read_ids = read_one};
  const struct store store = {.ops = &ops};
  static const struct duebox_bytes k = {"k", 1};
  const struct task tasks[] = {{.id = 1, .order_key = k, .payload_len = 1000}, {.id = 2, .recoveries = 1}};
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  leases_gain(&f->leases, 0, 1, clock_instant(), 1000 * 1000, false);
  assert_int_equal(take_tasks(f, tasks, 2, 10, false), 0);
  assert_true(order_knows(&f->lane.order, 1));
  order_free(&f->lane.order);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(it_is_not_claimed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(after_it_few_rows_are_read_at_a_time, set_up, tear_down),
      cmocka_unit_test_setup_teardown(it_keeps_its_turn_when_it_is_put_back, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("reader_large", tests, NULL, NULL);
}
