/* SPDX-License-Identifier: MIT
 *
 * Whose results a worker takes next (P8): peers take turns, so do the lanes of each, none may have all workers, and who
 * has more waiting than its share is refused while others are not.
 */
#include "admin/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WORKERS = 8, LANE_MAX = 100, PEER_MAX = 150, MANY = 2 * PEER_MAX };

struct fixture {
  struct turns turns;
  struct turn many[MANY], few[8];
};

static struct fixture fixture;

static int set_up(void **state) {
  struct fixture *f = *state = &fixture;
  *f = (struct fixture){0};
  turns_init(&f->turns, &(struct turn_limits){.workers = WORKERS, .lane_max = LANE_MAX, .peer_max = PEER_MAX});
  return 0;
}

static bool put(struct fixture *f, uint8_t peer, uint32_t lane, struct turn *turn) {
  struct turn_key key = {.lane = lane};
  key.peer.s6_addr[15] = peer;
  return turns_put(&f->turns, &key, turn);
}

static unsigned fill(struct fixture *f, uint8_t peer, uint32_t lane, unsigned count) {
  unsigned taken = 0;
  for (unsigned i = 0; i < count; i++)
    taken += put(f, peer, lane, &f->many[i]);
  return taken;
}

/* A worker does what it takes at once. NULL = there is nothing to do. */
static struct turn *do_next(struct fixture *f) {
  struct turn *turn = turns_take(&f->turns);
  if (turn)
    turns_done(&f->turns, turn->lane);
  return turn;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  while (do_next(f))
    continue;
  assert_int_equal(f->turns.waiting, 0);
  assert_int_equal(f->turns.working, 0);
  assert_true(STAILQ_EMPTY(&f->turns.peers)); /* nobody is remembered who has nothing there */
  return 0;
}

static void one_peer_with_many_keeps_no_other_waiting(void **state) {
  struct fixture *f = *state;
  assert_int_equal(fill(f, 1, 7, LANE_MAX), LANE_MAX);
  assert_true(put(f, 2, 7, &f->few[0]));
  assert_true(put(f, 2, 7, &f->few[1]));
  assert_ptr_equal(do_next(f), &f->many[0]);
  assert_ptr_equal(do_next(f), &f->few[0]);
  assert_ptr_equal(do_next(f), &f->many[1]);
  assert_ptr_equal(do_next(f), &f->few[1]);
  assert_ptr_equal(do_next(f), &f->many[2]); /* in their order */
}

/* They all come from one address where a proxy is in front. */
static void one_route_with_many_keeps_no_other_of_its_peer_waiting(void **state) {
  struct fixture *f = *state;
  assert_int_equal(fill(f, 1, 7, LANE_MAX), LANE_MAX);
  assert_true(put(f, 1, 8, &f->few[0]));
  assert_ptr_equal(do_next(f), &f->many[0]);
  assert_ptr_equal(do_next(f), &f->few[0]);
}

static void a_peer_has_no_more_turns_with_more_lanes(void **state) {
  struct fixture *f = *state;
  for (unsigned lane = 0; lane < 50; lane++)
    assert_true(put(f, 1, lane, &f->many[lane]));
  for (int i = 0; i < 4; i++)
    assert_true(put(f, 2, 7, &f->few[i]));
  for (int i = 0; i < 4; i++) {
    (void)do_next(f);
    assert_ptr_equal(do_next(f), &f->few[i]);
  }
}

static void what_is_beyond_its_share_is_refused_alone(void **state) {
  struct fixture *f = *state;
  assert_int_equal(fill(f, 1, 7, LANE_MAX + 20), LANE_MAX);
  assert_true(put(f, 1, 8, &f->few[0]));
  unsigned more = 0;
  for (unsigned i = LANE_MAX; i < MANY; i++)
    more += put(f, 1, 100 + i, &f->many[i]);
  assert_int_equal(LANE_MAX + 1 + more, PEER_MAX);
  assert_false(put(f, 1, 9, &f->few[1]));
  assert_true(put(f, 2, 7, &f->few[1]));
  assert_ptr_equal(do_next(f), &f->many[0]);
  assert_true(put(f, 1, 7, &f->few[2])); /* there is room again */
}

/* Its results take long: somebody holds their rows, or they are large. */
static void a_lane_leaves_as_many_workers_as_it_has(void **state) {
  struct fixture *f = *state;
  struct turn *first, *second;
  assert_int_equal(fill(f, 1, 7, LANE_MAX), LANE_MAX);
  for (int i = 0; i < WORKERS / 2; i++)
    assert_non_null(turns_take(&f->turns));
  assert_false(turns_ready(&f->turns));
  assert_null(turns_take(&f->turns));
  assert_true(put(f, 1, 8, &f->few[0]));
  assert_true(put(f, 1, 8, &f->few[1]));
  assert_true(put(f, 1, 8, &f->few[2]));
  assert_true(turns_ready(&f->turns));
  assert_ptr_equal(first = turns_take(&f->turns), &f->few[0]);
  assert_ptr_equal(second = turns_take(&f->turns), &f->few[1]);
  assert_null(turns_take(&f->turns)); /* it leaves two, as many as it has */
  assert_true(put(f, 2, 7, &f->few[3]));
  assert_ptr_equal(turns_take(&f->turns), &f->few[3]); /* and another one has a worker at once */
  turns_done(&f->turns, f->few[3].lane);
  turns_done(&f->turns, first->lane);
  assert_ptr_equal(turns_take(&f->turns), &f->few[2]);
  turns_done(&f->turns, f->few[2].lane);
  turns_done(&f->turns, second->lane);
  for (int i = 0; i < WORKERS / 2; i++)
    turns_done(&f->turns, f->many[0].lane);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(one_peer_with_many_keeps_no_other_waiting), TEST(one_route_with_many_keeps_no_other_of_its_peer_waiting),
      TEST(a_peer_has_no_more_turns_with_more_lanes),  TEST(what_is_beyond_its_share_is_refused_alone),
      TEST(a_lane_leaves_as_many_workers_as_it_has),
  };
  return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
