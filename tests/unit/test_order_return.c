/* SPDX-License-Identifier: MIT */
#include "core/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A lane's order, and tasks 1 to TASKS of the keys that a test gives them. */
enum { TASKS = 3000, LONG = 2000 /* more than wait of one key where there is little room */ };
struct fixture {
  struct order order;
  struct task task[TASKS + 1];
  struct flight flight[TASKS + 1];
};

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  for (uint64_t id = 1; id <= TASKS; id++) {
    f->task[id] = (struct task){.id = id, .due_us = (int64_t)id, .priority = 5, .shard = 1};
    f->flight[id] = (struct flight){.id = id, .task = &f->task[id]};
  }
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  order_free(&f->order);
  free(f);
  return 0;
}

static void name(struct fixture *f, uint64_t id, const char *key) {
  f->task[id].order_key = (struct duebox_bytes){key, strlen(key)};
}

/* Goes if it may, else waits. */
static bool meet(struct fixture *f, uint64_t id) {
  bool go = order_may_go(&f->order, &f->task[id]);
  if (go)
    assert_true(order_enter(&f->order, &f->flight[id]));
  else
    assert_false(order_wait(&f->order, &f->task[id]));
  return go;
}

/* What was blocked is back in the table, by the ids of the rows, and a look has seen it. */
static bool come_back(struct fixture *f) {
  uint64_t ids[10];
  uint8_t shard = 0;
  while (order_ready(&f->order, ids, 10, &shard)) {
    assert_int_equal(shard, 1);
    order_ready_done(&f->order, true);
  }
  order_seen_begin(&f->order);
  return order_seen_end(&f->order, shard_bit(1));
}

static uint64_t called(struct fixture *f) {
  uint64_t id = 0;
  uint8_t shard;
  return order_called(&f->order, &id, 1, &shard) ? id : 0;
}

/* Task 1 fails, and is the head of the key of tasks 2 to last, which are blocked. */
static void block_all(struct fixture *f, uint64_t last) {
  for (uint64_t id = 1; id <= last; id++)
    name(f, id, "k");
  meet(f, 1);
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD);
  for (uint64_t id = 2; id <= last; id++)
    assert_true(order_block(&f->order, &f->task[id]));
  for (uint64_t id = 2; id <= last; id++)
    assert_false(order_blocked_done(&f->order, &f->task[id]));
}

static void end_head(struct fixture *f) {
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
}

static void nobody_passes_one_that_is_being_blocked(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  meet(f, 1);
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD);
  assert_true(order_block(&f->order, &f->task[2])); /* on its way into the table */
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(meet(f, 3));
  assert_true(order_blocked_done(&f->order, &f->task[2]));
  assert_false(order_knows(&f->order, 3)); /* it is read again, after 2 */
  assert_true(come_back(f));
  assert_null(f->order.keys);
}

/* The head of a key is over, and those that it blocked come back from the table a moment later: what is committed
 * meanwhile used to go before them. */
static void nobody_passes_those_that_come_back(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  meet(f, 1);
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD);
  assert_true(order_block(&f->order, &f->task[2]));
  assert_false(order_blocked_done(&f->order, &f->task[2])); /* the head is not over */
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(meet(f, 3)); /* committed now */
  assert_false(order_knows(&f->order, 3));
  assert_true(come_back(f)); /* a sweep meets 2, then 3 */
  assert_true(meet(f, 2));
  assert_false(meet(f, 3));
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  assert_int_equal(called(f), 3);
}

static void blocked_rows_are_told_by_their_ids(void **state) {
  struct fixture *f = *state;
  uint64_t ids[100];
  uint8_t shard = 0;
  block_all(f, 151);
  assert_int_equal(order_ready(&f->order, ids, 100, &shard), 0); /* the head is not over */
  end_head(f);
  assert_false(order_awaits_return(&f->order));
  assert_int_equal(order_ready(&f->order, ids, 100, &shard), 100);
  assert_true(ids[0] == 2 && ids[99] == 101 && shard == 1);
  order_ready_done(&f->order, true);
  order_seen_begin(&f->order); /* too early */
  assert_int_equal(order_ready(&f->order, ids, 100, &shard), 50);
  assert_true(ids[0] == 102);
  order_ready_done(&f->order, true);
  assert_int_equal(order_ready(&f->order, ids, 100, &shard), 0);
  assert_false(order_seen_end(&f->order, UINT64_MAX));
  order_seen_begin(&f->order);
  assert_false(order_may_go(&f->order, &f->task[2]));
  assert_false(order_seen_end(&f->order, ~shard_bit(1))); /* rows of the shard are held */
  assert_true(order_seen_end(&f->order, shard_bit(1)));
  assert_true(order_may_go(&f->order, &f->task[2]));
  assert_null(f->order.keys);
  assert_true(!f->order.blocked_ids && !f->order.closed && !f->order.ready && !f->order.came_back);
}

/* Two keys of different shards: one call is about one shard. */
static void rows_of_one_shard_come_back_at_a_time(void **state) {
  struct fixture *f = *state;
  uint64_t ids[10];
  uint8_t shard = 0;
  for (uint64_t id = 1; id <= 4; id++) {
    name(f, id, id % 2 ? "a" : "b");
    f->task[id].shard = id % 2 ? 1 : 2;
  }
  for (uint64_t id = 1; id <= 2; id++) {
    meet(f, id);
    (void)order_leave(&f->order, &f->flight[id], ORDER_HEAD);
    assert_true(order_block(&f->order, &f->task[id + 2]));
    assert_false(order_blocked_done(&f->order, &f->task[id + 2]));
    assert_true(meet(f, id));
    assert_false(order_leave(&f->order, &f->flight[id], ORDER_OVER));
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(order_ready(&f->order, ids, 10, &shard), 1);
    assert_int_equal(f->task[ids[0]].shard, shard);
    order_ready_done(&f->order, true);
  }
  order_seen_begin(&f->order);
  assert_true(order_seen_end(&f->order, UINT64_MAX));
  assert_null(f->order.keys);
}

static void assert_waits_for_walk(struct fixture *f) {
  uint64_t ids[10];
  uint8_t shard;
  assert_int_equal(order_ready(&f->order, ids, 10, &shard), 0);
  order_seen_begin(&f->order);
  assert_false(order_seen_end(&f->order, UINT64_MAX));
  assert_true(order_awaits_return(&f->order));
  assert_false(order_may_go(&f->order, &f->task[2]));
  order_return_begin(&f->order);
  assert_true(order_returned(&f->order));
  assert_null(f->order.keys);
  assert_true(!f->order.blocked_ids && !f->order.closed && !f->order.ready && !f->order.came_back);
}

/* Somebody has locked, changed or deleted one of the rows. */
static void rows_that_do_not_come_back_are_left_to_a_walk(void **state) {
  struct fixture *f = *state;
  uint64_t ids[10];
  uint8_t shard;
  block_all(f, 3);
  end_head(f);
  assert_int_equal(order_ready(&f->order, ids, 10, &shard), 2);
  order_ready_done(&f->order, false);
  assert_waits_for_walk(f);
}

static void rows_that_others_may_have_blocked_are_left_to_a_walk(void **state) {
  struct fixture *f = *state;
  for (int way = 0; way < 5; way++) {
    f->task[3].shard = way == 0 ? 2 : 1;           /* of two shards */
    f->task[2].shard = way == 1 ? SHARD_BOUND : 1; /* of a host */
    block_all(f, way == 2 ? TASKS : 3);            /* too many to be remembered */
    if (way == 3)
      assert_false(order_forget_shards(&f->order, shard_bit(1))); /* the shard was lost when they were blocked, */
    end_head(f);
    if (way == 4)
      assert_false(order_forget_shards(&f->order, shard_bit(1))); /* or when they were to come back */
    assert_waits_for_walk(f);
  }
}

/* The key has another head before its rows are back, and one that was named by the table may have blocked others. */
static void a_head_that_comes_meanwhile_keeps_them(void **state) {
  struct fixture *f = *state;
  uint64_t ids[10];
  uint8_t shard;
  bool freed;
  block_all(f, 3);
  end_head(f);
  assert_false(order_head(&f->order, f->task[1].order_key, 9));
  assert_int_equal(order_ready(&f->order, ids, 10, &shard), 0);
  assert_false(order_awaits_return(&f->order));
  order_heads_begin(&f->order);
  (void)order_heads_end(&f->order, &freed);
  assert_true(freed);
  assert_waits_for_walk(f);
}

int main(void) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  static const struct CMUnitTest tests[] = {
      ROW(nobody_passes_one_that_is_being_blocked),
      ROW(nobody_passes_those_that_come_back),
      ROW(blocked_rows_are_told_by_their_ids),
      ROW(rows_of_one_shard_come_back_at_a_time),
      ROW(rows_that_do_not_come_back_are_left_to_a_walk),
      ROW(rows_that_others_may_have_blocked_are_left_to_a_walk),
      ROW(a_head_that_comes_meanwhile_keeps_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
