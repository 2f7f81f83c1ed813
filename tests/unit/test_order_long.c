/* SPDX-License-Identifier: MIT
 *
 * Tens of thousands wait for their turn in one order_key. All routes wait for what is done about them: noting each, and
 * forgetting all when their shard goes, must cost about the same whatever order they come in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/order.h"
#include "tests/support/own_time.h"

enum { MANY = 30000, TIMES = 10, LEAST_MS = 20 };

/* How long it takes to note them all and to forget them, the second half with that priority. */
static int64_t take_ms(struct task *tasks, uint8_t priority) {
  struct order order = {0};
  struct flight first = {.id = MANY + 1, .task = &tasks[MANY]};
  int64_t began_ms = own_time_ms();
  assert_true(order_enter(&order, &first));
  for (size_t i = 0; i < MANY; i++) {
    tasks[i].priority = i < MANY / 2 ? 5 : priority;
    assert_false(order_wait(&order, &tasks[i]));
  }
  assert_true(order_knows(&order, 1) && order_knows(&order, MANY));
  assert_false(order_forget_shards(&order, shard_bit(0)));
  int64_t took_ms = own_time_ms() - began_ms;
  assert_null(order.waiting);
  assert_false(order_leave(&order, &first, ORDER_OVER));
  assert_null(order.keys);
  return took_ms;
}

static void urgent_ones_behind_others_cost_no_more(void **state) {
  struct task *tasks = calloc(MANY + 1, sizeof *tasks);
  assert_non_null(tasks);
  for (size_t i = 0; i <= MANY; i++)
    tasks[i] = (struct task){.id = i + 1, .due_us = (int64_t)i + 1, .order_key = {"k", 1}, .message_id = {"m", 1}};
  int64_t in_order_ms = take_ms(tasks, 5), mixed_ms = take_ms(tasks, 9);
  printf("in order: %lld ms, the second half urgent: %lld ms\n", (long long)in_order_ms, (long long)mixed_ms);
  assert_true(mixed_ms <= TIMES * in_order_ms + LEAST_MS);
  free(tasks);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(urgent_ones_behind_others_cost_no_more)};
  return cmocka_run_group_tests_name("order_long", tests, NULL, NULL);
}
