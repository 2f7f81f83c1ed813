/* SPDX-License-Identifier: MIT */
#include "core/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A lane's order, and tasks 1 to TASKS of the keys that a test gives them. */
enum { TASKS = 5 };
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

/* What was blocked is back in the table. */
static bool come_back(struct fixture *f) {
  assert_true(order_awaits_return(&f->order));
  order_return_begin(&f->order);
  return order_returned(&f->order);
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
      ROW(what_others_blocked_behind_the_same_head_comes_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
