/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "order_fixture.h"

/* Tasks 1 to 3 of a key: the first one fails, and is tried again soon. */
static void fail_soon(struct fixture *f) {
  for (uint64_t id = 1; id <= 4; id++)
    name(f, id, "k");
  assert_true(meet(f, 1));
  assert_false(meet(f, 2));
  assert_false(meet(f, 3));
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD_SOON);
}

static void end_head(struct fixture *f) {
  assert_true(meet(f, 1));
  (void)order_leave(&f->order, &f->flight[1], ORDER_OVER);
}

/* They used to be blocked in the table, each time that a task failed, and to be brought back. */
static void others_wait_here_for_a_head_that_goes_soon(void **state) {
  struct fixture *f = *state;
  fail_soon(f);
  assert_false(order_blocked(&f->order, &f->task[2]));
  assert_true(order_knows(&f->order, 2) && order_knows(&f->order, 3));
  assert_false(meet(f, 4));
  assert_int_equal(called(f), 0);
  end_head(f);
  assert_false(f->order.left || order_awaits_return(&f->order));
  for (uint64_t id = 2; id <= 4; id++) {
    assert_int_equal(called(f), id);
    assert_true(meet(f, id));
    assert_false(order_leave(&f->order, &f->flight[id], ORDER_OVER));
  }
  assert_null(f->order.keys);
}

/* It is not read where the index has it, behind all that waits. */
static void a_head_that_goes_soon_is_called_when_it_is_due(void **state) {
  struct fixture *f = *state;
  fail_soon(f);
  order_call_at(&f->order, &f->task[1], 1000);
  assert_int_equal(order_calls_at(&f->order), 1000);
  order_call_due(&f->order, 999);
  assert_int_equal(called(f), 0);
  order_call_due(&f->order, 1000);
  assert_int_equal(called(f), 1);
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_HEAD_SOON)); /* once more, and another is due earlier */
  order_call_at(&f->order, &f->task[1], 3000);
  name(f, 5, "other");
  assert_true(meet(f, 5));
  assert_false(order_leave(&f->order, &f->flight[5], ORDER_HEAD_SOON));
  order_call_at(&f->order, &f->task[5], 2000);
  assert_int_equal(order_calls_at(&f->order), 2000);
  assert_false(order_missed(&f->order, 1, true)); /* it was read before, and found no room */
  assert_int_equal(called(f), 1);
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  order_call_due(&f->order, 5000);
  assert_int_equal(called(f), 2);
  assert_int_equal(called(f), 5);
  assert_int_equal(order_calls_at(&f->order), INT64_MAX);
  assert_false(order_forget_shards(&f->order, UINT64_C(1) << 1)); /* a called one too */
  assert_false(order_knows(&f->order, 5));
}

static void where_some_are_blocked_the_others_are_too(void **state) {
  struct fixture *f = *state;
  name(f, 1, "k");
  name(f, 2, "k");
  meet(f, 1);
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD);
  assert_true(order_block(&f->order, &f->task[2]));
  assert_false(order_blocked_done(&f->order, &f->task[2]));
  fail_soon(f);
  assert_true(order_blocked(&f->order, &f->task[3]));
  end_head(f);
  assert_true(f->order.left && order_awaits_return(&f->order));
}

/* What waits here does not go before what comes back. */
static void behind_several_heads_all_are_met_anew(void **state) {
  struct fixture *f = *state;
  bool freed;
  fail_soon(f);
  order_heads_begin(&f->order);
  assert_false(order_head(&f->order, f->task[1].order_key, 1));
  assert_false(order_head(&f->order, f->task[1].order_key, 9));
  assert_false(order_heads_end(&f->order, &freed));
  assert_true(order_blocked(&f->order, &f->task[4]));
  end_head(f);
  assert_true(f->order.left && f->order.unsure);
  assert_int_equal(called(f), 0);
  assert_true(come_back(f));
  assert_false(order_knows(&f->order, 2) || order_knows(&f->order, 3));
}

/* A shard comes while its key has a head, or has one by a claim that was taken back there. */
static void a_shard_that_came_may_have_blocked_ones_behind_a_head_that_goes_soon(void **state) {
  struct fixture *f = *state;
  name(f, 2, "k");
  for (int early = 0; early < 2; early++) {
    if (early)
      order_close_shards(&f->order, UINT64_C(1) << 1);
    name(f, 1, "k");
    assert_true(order_enter(&f->order, &f->flight[1]));
    assert_false(order_leave(&f->order, &f->flight[1], ORDER_HEAD_SOON));
    if (!early)
      order_close_shards(&f->order, UINT64_C(1) << 1);
    assert_true(come_back(f));
    assert_true(order_blocked(&f->order, &f->task[2]));
    end_head(f);
    assert_false(order_may_go(&f->order, &f->task[2]));
    assert_true(come_back(f));
    assert_null(f->order.keys);
  }
}

/* A shard was another daemon's for a while, and its key has the same head as before. What the other one blocked is in
 * the table alone, and used to be overtaken by what came when the head was over. */
static void what_others_blocked_behind_the_same_head_comes_first(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  meet(f, 1);
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD);
  assert_false(order_forget_shards(&f->order, UINT64_C(1) << 1));
  order_close_shards(&f->order, UINT64_C(1) << 1);
  order_heads_begin(&f->order);
  assert_false(order_head(&f->order, f->task[1].order_key, 1));
  bool freed;
  assert_false(order_heads_end(&f->order, &freed));
  assert_true(come_back(f)); /* but for 2, which the other one blocked: the head is not over */
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(meet(f, 3));
  assert_true(come_back(f));
  assert_true(meet(f, 2));
}

int main(void) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  static const struct CMUnitTest tests[] = {
      ROW(others_wait_here_for_a_head_that_goes_soon),
      ROW(a_head_that_goes_soon_is_called_when_it_is_due),
      ROW(where_some_are_blocked_the_others_are_too),
      ROW(behind_several_heads_all_are_met_anew),
      ROW(a_shard_that_came_may_have_blocked_ones_behind_a_head_that_goes_soon),
      ROW(what_others_blocked_behind_the_same_head_comes_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
