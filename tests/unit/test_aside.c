/* SPDX-License-Identifier: MIT
 *
 * Results whose rows an open transaction holds wait by themselves: however many there are, those of other tasks and of
 * other routes are tried in their turn. (The first 500 used to be tried for ever, and 4,096 stopped all results.)
 */
#include "core/aside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ENTRIES = ASIDE_MAX + 10 };
struct fixture {
  struct aside aside;
  struct aside_entry entry[ENTRIES];
  char task[ENTRIES][24];
  unsigned tried[ENTRIES];
};

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  for (int i = 0; f && i < ENTRIES; i++)
    snprintf(f->task[i], sizeof f->task[i], "task-%d", i);
  *state = f;
  return f ? 0 : -1;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  while (aside_pop(&f->aside))
    ;
  assert_null(f->aside.routes);
  assert_null(f->aside.by_task);
  assert_int_equal(f->aside.count, 0);
  assert_int_equal(f->aside.bytes, 0);
  free(f);
  return 0;
}

static bool put(struct fixture *f, int i, const char *route) {
  return aside_put(&f->aside, &f->entry[i], ASIDE_BUSY, route, f->task[i], 10);
}

static void try_some(struct fixture *f, size_t most, size_t expected) {
  struct aside_entry *out[500];
  size_t n = aside_next(&f->aside, out, most);
  assert_int_equal(n, expected);
  for (size_t i = 0; i < n; i++)
    f->tried[out[i] - f->entry]++;
}

static void all_are_tried_in_turn(void **state) {
  struct fixture *f = *state;
  for (int i = 0; i < 4000; i++)
    assert_true(put(f, i, "locked"));
  for (int i = 4000; i < 4003; i++)
    assert_true(put(f, i, "other"));
  try_some(f, 500, 500);
  for (int i = 4000; i < 4003; i++)
    assert_int_equal(f->tried[i], 1);
  for (int i = 0; i < 9; i++)
    try_some(f, 500, 500);
  for (int i = 0; i < 4003; i++)
    assert_true(f->tried[i] > 0);
}

static void each_is_tried_once_at_a_time(void **state) {
  struct fixture *f = *state;
  for (int i = 0; i < 5; i++)
    assert_true(put(f, i, i % 2 ? "odd" : "even"));
  try_some(f, 500, 5);
  for (int i = 0; i < 5; i++)
    assert_int_equal(f->tried[i], 1);
}

static void a_full_route_leaves_room_for_others(void **state) {
  struct fixture *f = *state;
  for (int i = 0; i < ASIDE_PER_ROUTE; i++)
    assert_true(put(f, i, "locked"));
  assert_false(put(f, ASIDE_PER_ROUTE, "locked"));
  assert_true(put(f, ASIDE_PER_ROUTE, "other"));
  assert_false(aside_follow(&f->aside, &f->entry[0], &f->entry[ASIDE_PER_ROUTE + 1], f->task[0], 10));
  assert_false(
      aside_put(&f->aside, &f->entry[ASIDE_PER_ROUTE + 1], ASIDE_BUSY, "large", "large", ASIDE_BYTES_PER_ROUTE + 1));
  assert_null(aside_find(&f->aside, "large"));
}

static void all_together_are_bounded(void **state) {
  struct fixture *f = *state;
  char route[16];
  for (int i = 0; i < ASIDE_MAX; i++) {
    snprintf(route, sizeof route, "route-%d", i % 100);
    assert_true(put(f, i, route));
  }
  assert_false(put(f, ASIDE_MAX, "one more"));
}

static void later_results_of_a_task_wait_behind_the_first(void **state) {
  struct fixture *f = *state;
  assert_true(put(f, 0, "r"));
  assert_true(put(f, 1, "r"));
  struct aside_entry *first = aside_find(&f->aside, "task-0");
  assert_ptr_equal(first, &f->entry[0]);
  assert_true(aside_follow(&f->aside, first, &f->entry[2], "task-0", 10));
  assert_true(aside_follow(&f->aside, first, &f->entry[3], strcpy(f->task[3], "task-0"), 10));
  try_some(f, 500, 2);
  aside_remove(&f->aside, &f->entry[0]);
  memset(f->task[0], 'x', sizeof f->task[0] - 1); /* the name that the first one brought goes with it */
  assert_ptr_equal(aside_find(&f->aside, "task-0"), &f->entry[2]);
  try_some(f, 500, 2);
  assert_int_equal(f->tried[2], 1);
  assert_int_equal(f->tried[3], 0);
  aside_remove(&f->aside, &f->entry[2]);
  aside_remove(&f->aside, &f->entry[3]);
  assert_null(aside_find(&f->aside, "task-0"));
  assert_int_equal(f->aside.count, 1);
}

/* Of one route at a time, and the busy ones without them. A task's next result has the place of the one before; what
 * keeps one waiting may change. */
static void some_are_tried_apart(void **state) {
  struct fixture *f = *state;
  struct aside_entry *out[10];
  for (int i = 0; i < 6; i++)
    assert_true(aside_put(&f->aside, &f->entry[i], ASIDE_APART, i < 3 ? "one" : "two", f->task[i], 10));
  assert_true(put(f, 6, "one"));
  assert_true(aside_follow(&f->aside, &f->entry[0], &f->entry[7], "task-0", 10));
  try_some(f, 500, 1);
  assert_int_equal(f->tried[6], 1);
  assert_int_equal(aside_next_apart(&f->aside, out, 2), 2);
  const char *first = out[0] < &f->entry[3] ? "one" : "two";
  assert_int_equal(aside_next_apart(&f->aside, out, 10), 3);
  assert_string_not_equal(out[0] < &f->entry[3] ? "one" : "two", first);
  assert_int_equal(f->aside.tried[ASIDE_APART], 6);
  aside_remove(&f->aside, &f->entry[0]); /* the next one of its task, */
  assert_int_equal(f->aside.tried[ASIDE_APART], 6);
  for (int i = 1; i < 6; i++)
    aside_remove(&f->aside, &f->entry[i]);
  assert_int_equal(aside_next_apart(&f->aside, out, 10), 1);
  assert_ptr_equal(out[0], &f->entry[7]); /* is tried in its place */
  aside_turn_to(&f->aside, &f->entry[7], ASIDE_BUSY);
  assert_int_equal(aside_next_apart(&f->aside, out, 10), 0);
  try_some(f, 500, 2);
  aside_turn_to(&f->aside, &f->entry[6], ASIDE_APART);
  assert_int_equal(aside_next_apart(&f->aside, out, 10), 1);
  try_some(f, 500, 1);
  assert_int_equal(f->tried[7], 2);
}

/* For so long, and again only after half of the room was free: where rows are given back one by one it would be for
 * ever else. */
static void what_finds_no_room_is_to_wait_for_a_while(void **state) {
  struct fixture *f = *state;
  for (int i = 0; i < ASIDE_PER_ROUTE; i++) {
    assert_false(aside_is_to_wait(&f->aside, "locked", 10, 1, 100));
    assert_true(put(f, i, "locked"));
  }
  assert_true(aside_is_to_wait(&f->aside, "locked", 10, 1000, 100));
  assert_true(aside_is_to_wait(&f->aside, "locked", 10, 1099, 100));
  assert_false(aside_is_to_wait(&f->aside, "locked", 10, 1100, 100));
  assert_false(aside_is_to_wait(&f->aside, "other", 10, 1099, 100)); /* it has room */
  assert_false(aside_is_to_wait(&f->aside, "locked", ASIDE_BYTES_PER_ROUTE + 1, 1000, 100));
  aside_remove(&f->aside, &f->entry[0]);
  assert_false(aside_is_to_wait(&f->aside, "locked", 10, 1100, 100)); /* it has room */
  assert_true(put(f, 0, "locked"));
  assert_false(aside_is_to_wait(&f->aside, "locked", 10, 1100, 100));
  for (int i = 0; i < ASIDE_PER_ROUTE / 2; i++)
    aside_remove(&f->aside, &f->entry[i]);
  for (int i = 0; i < ASIDE_PER_ROUTE / 2; i++)
    assert_true(put(f, i, "locked"));
  assert_true(aside_is_to_wait(&f->aside, "locked", 10, 1100, 100));
}

static void where_all_together_have_no_room_each_is_to_wait(void **state) {
  struct fixture *f = *state;
  char route[16];
  for (int i = 0; i < ASIDE_MAX; i++) {
    snprintf(route, sizeof route, "route-%d", i % 100);
    assert_true(put(f, i, route));
  }
  assert_true(aside_is_to_wait(&f->aside, "one more", 10, 1000, 100));
  assert_false(aside_is_to_wait(&f->aside, "another", 10, 1100, 100));
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(all_are_tried_in_turn),
      ROW(each_is_tried_once_at_a_time),
      ROW(a_full_route_leaves_room_for_others),
      ROW(all_together_are_bounded),
      ROW(later_results_of_a_task_wait_behind_the_first),
      ROW(some_are_tried_apart),
      ROW(what_finds_no_room_is_to_wait_for_a_while),
      ROW(where_all_together_have_no_room_each_is_to_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
