/* SPDX-License-Identifier: MIT
 *
 * The results that wait: each source has a queue and room of its own, they take turns, and what a walk passes over
 * stays in front of what is behind it.
 */
#include "core/inbox_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MANY = INBOX_QUEUE_RECORDS + 1 };

static struct inbox_queues queues;
static struct inbox_entry many[MANY], few[4];

static int tear_down(void **state) {
  inbox_queues_free(&queues);
  return 0;
}

static void fill(const char *source, struct inbox_entry *entries, size_t count) {
  for (size_t i = 0; i < count; i++)
    assert_true(inbox_queues_put(&queues, source, &entries[i], 1));
}

static void nothing_waits_in_the_beginning(void **state) {
  inbox_queues_collect(&queues);
  assert_null(inbox_queues_next(&queues));
  assert_int_equal(inbox_queues_oldest(&queues), 0);
  assert_true(inbox_queues_has_room(&queues, "a"));
}

static void one_that_is_full_leaves_room_to_others(void **state) {
  fill("a", many, MANY - 1);
  assert_false(inbox_queues_put(&queues, "a", &many[MANY - 1], 1));
  assert_false(inbox_queues_has_room(&queues, "a"));
  assert_true(inbox_queues_has_room(&queues, "b"));
  fill("b", few, 1);
  assert_true(inbox_queues_put(&queues, "c", &few[1], INBOX_QUEUE_BYTES)); /* one is taken, however large */
  assert_false(inbox_queues_put(&queues, "c", &few[2], 1));
}

/* Else a source would be stopped and resumed for each single record. */
static void there_is_room_again_when_half_of_it_is_free(void **state) {
  fill("a", many, MANY - 1);
  inbox_queues_collect(&queues);
  for (size_t i = 0; i < INBOX_QUEUE_RECORDS / 2 + 1; i++) {
    assert_false(inbox_queues_has_room(&queues, "a"));
    struct inbox_entry *entry = inbox_queues_next(&queues);
    inbox_queues_take(&queues, entry);
    inbox_queues_release(entry);
  }
  assert_true(inbox_queues_has_room(&queues, "a"));
}

static void they_take_turns(void **state) {
  fill("a", many, 100);
  fill("b", few, 2);
  inbox_queues_collect(&queues);
  for (unsigned of_b = 0, i = 0; i < 4; i++) {
    const struct inbox_entry *entry = inbox_queues_next(&queues);
    of_b += entry->queue == few[0].queue;
    assert_int_equal(of_b, few[0].queue == queues.first ? i / 2 + 1 : (i + 1) / 2);
  }
  for (size_t i = 2; i < 100; i++) /* then the rest, in its order */
    assert_ptr_equal(inbox_queues_next(&queues), &many[i]);
  assert_null(inbox_queues_next(&queues));
}

/* A walk that ends early must not be at the same one's cost each time. */
static void another_one_is_first_the_next_time(void **state) {
  fill("a", many, 2);
  fill("b", few, 2);
  inbox_queues_collect(&queues);
  const struct inbox_queue *first = inbox_queues_next(&queues)->queue;
  inbox_queues_collect(&queues);
  assert_ptr_not_equal(inbox_queues_next(&queues)->queue, first);
  inbox_queues_collect(&queues);
  assert_ptr_equal(inbox_queues_next(&queues)->queue, first);
}

static void what_is_passed_over_stays_in_front(void **state) {
  for (int i = 0; i < 4; i++)
    few[i].since_us = 10 + i;
  fill("a", few, 3);
  inbox_queues_collect(&queues);
  inbox_queues_take(&queues, inbox_queues_next(&queues));
  assert_ptr_equal(inbox_queues_next(&queues), &few[1]); /* passed over */
  inbox_queues_take(&queues, inbox_queues_next(&queues));
  assert_null(inbox_queues_next(&queues));
  assert_int_equal(queues.waiting, 1);
  assert_int_equal(inbox_queues_oldest(&queues), 11);
  fill("a", &few[3], 1); /* seen when it is collected */
  assert_null(inbox_queues_next(&queues));
  inbox_queues_collect(&queues);
  assert_int_equal(queues.waiting, 2);
  assert_ptr_equal(inbox_queues_next(&queues), &few[1]);
  assert_ptr_equal(inbox_queues_next(&queues), &few[3]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(nothing_waits_in_the_beginning, tear_down),
      cmocka_unit_test_teardown(one_that_is_full_leaves_room_to_others, tear_down),
      cmocka_unit_test_teardown(there_is_room_again_when_half_of_it_is_free, tear_down),
      cmocka_unit_test_teardown(they_take_turns, tear_down),
      cmocka_unit_test_teardown(another_one_is_first_the_next_time, tear_down),
      cmocka_unit_test_teardown(what_is_passed_over_stays_in_front, tear_down),
  };
  return cmocka_run_group_tests_name("inbox_queue", tests, NULL, NULL);
}
