/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_window.c - the window of unconfirmed messages, against a model that keeps a plain list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_window.h"

enum { STEPS = 5000, TASKS = 64, LIMIT = 32 };

static struct duebox_task tasks[TASKS];
static char ids[TASKS][24];

static int make_tasks(void **state) {
  (void)state;
  for (int i = 0; i < TASKS; i++) {
    snprintf(ids[i], sizeof(ids[i]), "task-%d", i);
    tasks[i] = (struct duebox_task){.struct_size = sizeof(tasks[i]), .message_id = ids[i]};
  }
  return 0;
}

/* The model: one entry per tag of this generation, settled or open. */
struct model {
  const struct duebox_task *open[STEPS + 1];
  uint64_t next;
  uint32_t count;
};

static uint64_t seed;

static uint32_t random_below(uint32_t limit) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (uint32_t)(seed >> 11) % limit;
}

static uint64_t oldest_open(const struct model *m) {
  uint64_t tag = 1;
  while (tag < m->next && !m->open[tag])
    tag++;
  return tag;
}

static void publish(struct amqp_window *w, struct model *m) {
  const struct duebox_task *task = &tasks[random_below(TASKS)];
  if (m->count == LIMIT)
    return;
  assert_int_equal(amqp_window_add(w, task, (int64_t)m->next), m->next);
  m->open[m->next++] = task;
  m->count++;
}

static void confirm_one(struct amqp_window *w, struct model *m) {
  uint64_t tag = oldest_open(m) + random_below(16);
  assert_int_equal(amqp_window_knows(w, tag), tag < m->next);
  const struct duebox_task *want = tag < m->next ? m->open[tag] : NULL;
  assert_ptr_equal(amqp_window_take(w, tag), want);
  assert_null(amqp_window_take(w, tag)); /* a second confirm finds nothing */
  if (want) {
    m->open[tag] = NULL;
    m->count--;
  }
}

static void confirm_many(struct amqp_window *w, struct model *m) {
  uint64_t upto = oldest_open(m) + random_below(12);
  if (upto >= m->next)
    return;
  for (uint64_t tag = 1; tag <= upto; tag++) {
    if (!m->open[tag])
      continue;
    assert_ptr_equal(amqp_window_take_upto(w, upto), m->open[tag]);
    m->open[tag] = NULL;
    m->count--;
  }
  assert_null(amqp_window_take_upto(w, upto));
}

static void check_oldest(const struct amqp_window *w, const struct model *m) {
  const struct amqp_slot *oldest = amqp_window_oldest(w);
  assert_int_equal(w->count, m->count);
  assert_int_equal(oldest != NULL, m->count > 0);
  if (oldest)
    assert_int_equal(oldest->sent_us, (int64_t)oldest_open(m));
}

static void any_order_of_confirms(void **state) {
  (void)state;
  for (uint64_t round = 1; round <= 20; round++) {
    struct amqp_window w;
    struct model *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    assert_true(amqp_window_init(&w, LIMIT));
    seed = round * 0x9e3779b97f4a7c15u;
    m->next = 1;
    for (int step = 0; step < STEPS; step++) {
      uint32_t dice = random_below(10);
      if (dice < 6)
        publish(&w, m);
      else if (dice < 9)
        confirm_one(&w, m);
      else
        confirm_many(&w, m);
      check_oldest(&w, m);
    }
    amqp_window_free(&w);
    free(m);
  }
}

/* A route whose queue confirms nothing leaves the others their room: an open message keeps its own, for ever. */
static void an_old_message_takes_no_room_from_others(void **state) {
  (void)state;
  struct amqp_window w;
  assert_true(amqp_window_init(&w, 16));
  amqp_window_add(&w, &tasks[0], 7);
  for (uint64_t tag = 2; tag < 10000; tag += 15) {
    for (uint64_t i = 0; i < 15; i++)
      assert_int_equal(amqp_window_add(&w, &tasks[1], 0), tag + i);
    assert_int_equal(w.count, 16);
    for (uint64_t i = 15; i-- > 0;)
      assert_ptr_equal(amqp_window_take(&w, tag + i), &tasks[1]);
  }
  assert_int_equal(amqp_window_oldest(&w)->sent_us, 7);
  assert_ptr_equal(amqp_window_take(&w, 1), &tasks[0]);
  assert_null(amqp_window_oldest(&w));
  amqp_window_free(&w);
}

static void generations_start_at_one_and_know_nothing_of_each_other(void **state) {
  (void)state;
  struct amqp_window w;
  assert_true(amqp_window_init(&w, 16));
  uint32_t generation = w.generation;
  for (int i = 0; i < 5; i++)
    amqp_window_add(&w, &tasks[i], 0);
  for (int i = 0; i < 5; i++) /* the sink empties it before a new channel */
    assert_ptr_equal(amqp_window_take_upto(&w, UINT64_MAX), &tasks[i]);
  amqp_window_reset(&w);
  assert_int_equal(w.generation, generation + 1);
  assert_false(amqp_window_knows(&w, 1));
  assert_null(amqp_window_take(&w, 3));
  assert_int_equal(amqp_window_add(&w, &tasks[9], 0), 1);
  assert_ptr_equal(amqp_window_take(&w, 1), &tasks[9]);
  amqp_window_free(&w);
}

static const struct duebox_task *returned(struct amqp_window *w, const char *id) {
  return amqp_window_take_returned(w, w->next - 1, id, strlen(id));
}

static void returns_are_found_by_message_id(void **state) {
  (void)state;
  struct amqp_window w;
  assert_true(amqp_window_init(&w, 16));
  for (int i = 0; i < 10; i++)
    amqp_window_add(&w, &tasks[i], 0);
  assert_ptr_equal(returned(&w, "task-3"), &tasks[3]);
  assert_null(returned(&w, "task-3")); /* its ack, which follows, must find nothing either */
  assert_null(amqp_window_take(&w, 4));
  assert_ptr_equal(returned(&w, "task-7"), &tasks[7]);
  assert_ptr_equal(returned(&w, "task-1"), &tasks[1]);        /* before the last one returned: found all the same */
  assert_null(amqp_window_take_returned(&w, 9, "task-9", 6)); /* its tag is 10 */
  assert_null(returned(&w, "task-11"));
  assert_null(returned(&w, "task"));
  assert_null(returned(&w, ""));
  assert_int_equal(w.count, 7);
  while (amqp_window_take_upto(&w, UINT64_MAX))
    continue;
  assert_null(returned(&w, "task-0"));
  amqp_window_free(&w);
}

/* Two rows may carry the same message id if the application gave it twice: the broker returns in publish order. */
static void equal_ids_are_returned_in_order(void **state) {
  (void)state;
  struct amqp_window w;
  struct duebox_task twins[3] = {{.message_id = "twin"}, {.message_id = "twin"}, {.message_id = "twin"}};
  assert_true(amqp_window_init(&w, 16));
  for (int i = 0; i < 3; i++)
    amqp_window_add(&w, &twins[i], 0);
  for (int i = 0; i < 3; i++)
    assert_ptr_equal(returned(&w, "twin"), &twins[i]);
  amqp_window_free(&w);
}

static void touching_moves_the_time_of_the_newest(void **state) {
  (void)state;
  struct amqp_window w;
  assert_true(amqp_window_init(&w, 16));
  amqp_window_add(&w, &tasks[0], 5);
  amqp_window_add(&w, &tasks[1], 6);
  amqp_window_touch(&w, 99);
  assert_int_equal(amqp_window_oldest(&w)->sent_us, 5);
  amqp_window_take(&w, 1);
  assert_int_equal(amqp_window_oldest(&w)->sent_us, 99);
  amqp_window_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_order_of_confirms),
      cmocka_unit_test(an_old_message_takes_no_room_from_others),
      cmocka_unit_test(generations_start_at_one_and_know_nothing_of_each_other),
      cmocka_unit_test(returns_are_found_by_message_id),
      cmocka_unit_test(equal_ids_are_returned_in_order),
      cmocka_unit_test(touching_moves_the_time_of_the_newest),
  };
  return cmocka_run_group_tests_name("amqp window", tests, make_tasks, NULL);
}
