/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_queue.c - lanes take turns, keep their order and lose nothing, against a model of lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_queue.h"

enum { ROUTES = 4, LANES = 2 * ROUTES, SIZE = 60 };

static const char *const names[ROUTES] = {"a", "b", "c", "d"};

static struct amqp_waiting make(struct duebox_task *task, int lane, uint64_t token) {
  *task = (struct duebox_task){.route = names[lane % ROUTES], .token = token};
  return (struct amqp_waiting){.task = task, .suspect = lane >= ROUTES};
}

/* Thousands of suspects of one route cost another route one turn, and its fresh tasks another one. */
static void routes_take_turns(void **state) {
  (void)state;
  struct amqp_queue queue;
  struct duebox_task tasks[24];
  static const int lanes[24] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 1, 1};
  static const uint64_t order[24] = {0, 20, 22, 1,  21, 23, 2,  3,  4,  5,  6,  7,
                                     8, 9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  assert_true(amqp_queue_init(&queue, 24));
  assert_null(amqp_queue_next(&queue));
  for (uint64_t i = 0; i < 24; i++)
    assert_true(amqp_queue_put(&queue, make(&tasks[i], lanes[i], i)));
  assert_int_equal(queue.lanes, 3);
  assert_false(amqp_queue_put(&queue, make(&(struct duebox_task){0}, 0, 99))); /* full */
  for (int i = 0; i < 24; i++) {
    assert_int_equal(amqp_queue_next(&queue)->task->token, order[i]);
    amqp_queue_take(&queue);
  }
  assert_null(amqp_queue_next(&queue));
  assert_int_equal(queue.count + queue.lanes, 0);
  amqp_queue_free(&queue);
}

struct model {
  uint64_t lane[LANES][SIZE];
  size_t count[LANES];
  int round[LANES]; /* lanes that are not empty, in the order of their turns */
  size_t lanes;
};

static void shift_turn(struct model *m, bool stays) {
  int lane = m->round[0];
  memmove(m->round, m->round + 1, --m->lanes * sizeof *m->round);
  if (stays)
    m->round[m->lanes++] = lane;
}

static bool keep_odd(void *ctx, const struct amqp_waiting *waiting) {
  (*(unsigned *)ctx)++;
  return waiting->task->token % 2;
}

static void filter(struct model *m) {
  struct model old = *m;
  memset(m, 0, sizeof *m);
  for (size_t r = 0; r < old.lanes; r++) {
    int lane = old.round[r];
    for (size_t i = 0; i < old.count[lane]; i++)
      if (old.lane[lane][i] % 2)
        m->lane[lane][m->count[lane]++] = old.lane[lane][i];
    if (m->count[lane])
      m->round[m->lanes++] = lane;
  }
}

static void follows_a_model(void **state) {
  (void)state;
  static struct duebox_task tasks[200000];
  struct model m = {0};
  struct amqp_queue queue;
  assert_true(amqp_queue_init(&queue, SIZE));
  srand(11);
  for (uint64_t step = 0; step < sizeof tasks / sizeof *tasks; step++) {
    int dice = rand() % 100, lane = rand() % LANES;
    unsigned seen = 0, before = queue.count;
    if (dice < 50) {
      assert_int_equal(amqp_queue_put(&queue, make(&tasks[step], lane, step)), before < SIZE);
      if (before < SIZE && m.count[lane] == 0)
        m.round[m.lanes++] = lane;
      if (before < SIZE)
        m.lane[lane][m.count[lane]++] = step;
    } else if (dice < 98 && before > 0) {
      lane = m.round[0];
      assert_int_equal(amqp_queue_next(&queue)->task->token, m.lane[lane][0]);
      if (dice < 90) {
        amqp_queue_take(&queue);
        memmove(m.lane[lane], m.lane[lane] + 1, --m.count[lane] * sizeof m.lane[lane][0]);
      } else {
        amqp_queue_skip(&queue);
      }
      shift_turn(&m, m.count[lane] > 0);
    } else if (dice >= 98) {
      amqp_queue_filter(&queue, keep_odd, &seen);
      assert_int_equal(seen, before);
      filter(&m);
    }
    assert_int_equal(queue.lanes, m.lanes);
  }
  amqp_queue_free(&queue);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(routes_take_turns),
      cmocka_unit_test(follows_a_model),
  };
  return cmocka_run_group_tests_name("amqp queue", tests, NULL, NULL);
}
