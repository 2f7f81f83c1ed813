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
    assert_int_equal(of_b, few[0].queue == queues.first[false] ? i / 2 + 1 : (i + 1) / 2);
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

static void ask(uint32_t lane, struct inbox_entry *entries, size_t count, size_t bytes) {
  for (size_t i = 0; i < count; i++)
    assert_true(inbox_queues_put_asked(&queues, lane, &entries[i], bytes));
}

/* How many the walk gives before it comes to this one. */
static size_t before(const struct inbox_entry *entry) {
  size_t count = 0;
  for (const struct inbox_entry *next; (next = inbox_queues_next(&queues)) != entry; count++)
    assert_non_null(next);
  return count;
}

/* All that came over HTTP was one queue: a peer's thousand callbacks were in front of any other's. */
static void lanes_take_turns(void **state) {
  ask(7, many, 1000, 1);
  ask(8, few, 1, 1);
  fill("a", &few[1], 1);
  inbox_queues_collect(&queues);
  assert_in_range(before(&few[0]), 0, 2);
  inbox_queues_collect(&queues);
  assert_in_range(before(&few[1]), 0, 2);
}

/* They share room, for there may be hundreds of them; one alone takes no more than half. */
static void lanes_share_room(void **state) {
  ask(7, many, INBOX_QUEUE_RECORDS / 2, 1);
  assert_false(inbox_queues_put_asked(&queues, 7, &few[0], 1));
  ask(8, &many[INBOX_QUEUE_RECORDS / 2], INBOX_QUEUE_RECORDS / 4, 1);
  assert_false(inbox_queues_put_asked(&queues, 8, &few[0], 1));
  ask(9, few, 1, 1);
  assert_true(inbox_queues_has_room(&queues, "a"));
  inbox_queues_collect(&queues);
  for (struct inbox_entry *entry; (entry = inbox_queues_next(&queues));) {
    inbox_queues_take(&queues, entry);
    inbox_queues_release(entry);
  }
  ask(7, many, INBOX_QUEUE_RECORDS / 2, 1);
}

static void lanes_share_bytes(void **state) {
  enum { SIZE = 256 * 1024, FIT = INBOX_QUEUE_BYTES / SIZE / 2 };
  ask(7, many, FIT, SIZE);
  assert_false(inbox_queues_put_asked(&queues, 7, &few[0], SIZE));
  ask(8, few, 1, SIZE);
}

static bool is_taken(struct inbox_entry **entry) {
  if ((*entry = inbox_queues_next(&queues)))
    inbox_queues_take(&queues, *entry);
  return *entry;
}

/* Takes a walk; how many of it are of the queue of that entry, and of all. */
static size_t walk(const struct inbox_entry *of, size_t *all) {
  size_t count = 0;
  struct inbox_entry *entry;
  inbox_queues_collect(&queues);
  for (*all = 0; is_taken(&entry); ++*all)
    count += entry->queue == of->queue;
  return count;
}

/* Rows of 900 kB: one of them takes tens of milliseconds, for which the others wait once (P8). */
static void large_rows_have_every_other_walk(void **state) {
  size_t all, large = 0;
  fill("large", many, 100);
  fill("small", &many[100], 3);
  for (int i = 0; i < 4; i++)
    inbox_queues_weigh(&many[0], 900 * 1024);
  inbox_queues_weigh(&many[100], 0);
  for (int i = 0; i < 6; i++) {
    size_t of_large = walk(&many[0], &all);
    large += of_large;
    assert_in_range(of_large, 0, 2);
    assert_true(of_large == all || of_large == 0); /* never both in one */
    fill("small", &many[200 + 10 * i], 10);
  }
  assert_in_range(large, 3, 6);
}

static void large_records_have_every_other_walk(void **state) {
  size_t all;
  for (size_t i = 0; i < 8; i++)
    assert_true(inbox_queues_put(&queues, "large", &many[i], 900 * 1024));
  fill("small", &many[100], 100);
  size_t first = walk(&many[0], &all), second = walk(&many[0], &all);
  assert_int_equal(first + second, 1);
  assert_int_equal(walk(&many[0], &all), 1);
  assert_int_equal(all, 1);
}

/* What is large is found only behind others: it does not come with them, and is not forgotten. */
static void a_large_one_behind_small_ones_is_the_next(void **state) {
  size_t all;
  fill("a", few, 2);
  assert_true(inbox_queues_put(&queues, "a", &few[2], INBOX_QUEUE_BYTES / 2));
  fill("a", &few[3], 1);
  assert_int_equal(walk(&few[0], &all), 2);
  assert_int_equal(walk(&few[0], &all), 1);
  assert_int_equal(walk(&few[0], &all), 1);
  assert_int_equal(walk(&few[0], &all), 0);
}

static void large_queues_take_turns(void **state) {
  size_t of_a = 0, of_b = 0;
  for (size_t i = 0; i < 10; i++) {
    assert_true(inbox_queues_put(&queues, "a", &many[i], INBOX_WALK_BYTES));
    assert_true(inbox_queues_put(&queues, "b", &many[10 + i], INBOX_WALK_BYTES));
  }
  fill("c", few, 1);
  fill("d", &few[1], 1);
  for (unsigned i = 0; i < 12; i++) {
    fill("c", &many[100 + i], 1);
    inbox_queues_collect(&queues);
    for (struct inbox_entry *entry; is_taken(&entry);) {
      of_a += entry->queue == many[0].queue;
      of_b += entry->queue == many[10].queue;
    }
  }
  assert_int_equal(of_a, 3);
  assert_int_equal(of_b, 3);
}

/* Rows are not large for ever. */
static void what_was_large_is_forgotten(void **state) {
  size_t all;
  fill("a", many, 100);
  for (int i = 0; i < 10; i++)
    inbox_queues_weigh(&many[0], 900 * 1024);
  assert_int_equal(walk(&many[0], &all), 1);
  for (int i = 0; i < 40; i++)
    inbox_queues_weigh(&many[0], 0);
  assert_int_equal(walk(&many[0], &all), 99);
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
      cmocka_unit_test_teardown(lanes_take_turns, tear_down),
      cmocka_unit_test_teardown(lanes_share_room, tear_down),
      cmocka_unit_test_teardown(lanes_share_bytes, tear_down),
      cmocka_unit_test_teardown(large_rows_have_every_other_walk, tear_down),
      cmocka_unit_test_teardown(large_records_have_every_other_walk, tear_down),
      cmocka_unit_test_teardown(a_large_one_behind_small_ones_is_the_next, tear_down),
      cmocka_unit_test_teardown(large_queues_take_turns, tear_down),
      cmocka_unit_test_teardown(what_was_large_is_forgotten, tear_down),
      cmocka_unit_test_teardown(what_is_passed_over_stays_in_front, tear_down),
  };
  return cmocka_run_group_tests_name("inbox_queue", tests, NULL, NULL);
}
