/* SPDX-License-Identifier: MIT
 *
 * plugins/http: whose turn it is to begin a request, and to open a connection.
 */
#include "http_turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "http_transfer.h"

enum { MOST = 400, ROUTES = 20 };

static struct http_turns turns;
static struct http_transfer transfers[MOST];
static struct duebox_task tasks[MOST];
static char routes[ROUTES + 1]; /* their addresses are the routes */
static size_t used;

static struct http_transfer *put(size_t route, bool opens) {
  struct http_transfer *t = &transfers[used];
  tasks[used] = (struct duebox_task){.route_data = &routes[route]};
  *t = (struct http_transfer){.task = &tasks[used++], .opens = opens};
  http_turns_put(&turns, t);
  return t;
}

static size_t route_of(const struct http_transfer *t) { return (size_t)((const char *)t->task->route_data - routes); }

static int start(void **state) {
  used = 0;
  return http_turns_init(&turns, MOST) ? 0 : -1;
}

static int stop(void **state) {
  http_turns_free(&turns);
  return 0;
}

static void few_begin_in_a_turn_in_their_order(void **state) {
  size_t begun = 0;
  for (size_t i = 0; i < 3 * HTTP_TURN_BEGINS; i++)
    put(0, false);
  for (size_t turn = 1; turn <= 3; turn++) {
    assert_false(http_turns_empty(&turns));
    http_turns_next(&turns);
    for (struct http_transfer *t = http_turns_take(&turns); t; t = http_turns_take(&turns))
      assert_ptr_equal(t, &transfers[begun++]);
    assert_int_equal(begun, turn * HTTP_TURN_BEGINS);
  }
  assert_true(http_turns_empty(&turns));
}

static void routes_take_turns(void **state) {
  static const size_t order[] = {0, 1, 2, 0, 2, 0, 0};
  for (size_t i = 0; i < 4; i++)
    put(0, false);
  put(1, false);
  put(2, false);
  put(2, false);
  http_turns_next(&turns);
  for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
    assert_int_equal(route_of(http_turns_take(&turns)), order[i]);
  assert_null(http_turns_take(&turns));
  assert_true(http_turns_empty(&turns));
}

/* A request that can go out on a kept connection does not wait for those that need new ones. */
static void few_connections_are_opened_in_a_turn(void **state) {
  size_t opened = 0;
  for (size_t i = 0; i < (size_t)10 * ROUTES; i++)
    put(i % ROUTES, true);
  struct http_transfer *good = put(ROUTES, false);
  bool good_begun = false;
  http_turns_next(&turns);
  for (struct http_transfer *t = http_turns_take(&turns); t; t = http_turns_take(&turns)) {
    opened += t->may_open;
    good_begun = good_begun || t == good;
  }
  assert_int_equal(opened, HTTP_TURN_OPENS);
  assert_true(good_begun);
  assert_false(good->may_open);
}

/* Who found no connection left keeps his place, so all routes get as many. */
static void connections_are_shared_out(void **state) {
  enum { ROUNDS = 4, TURNS = ROUNDS * ROUTES / HTTP_TURN_OPENS };
  _Static_assert(ROUNDS * ROUTES % HTTP_TURN_OPENS == 0, "whole turns");
  size_t opened[ROUTES] = {0};
  for (size_t i = 0; i < (size_t)10 * ROUTES; i++)
    put(i / 10, true);
  for (size_t turn = 0; turn < TURNS; turn++) {
    http_turns_next(&turns);
    for (struct http_transfer *t = http_turns_take(&turns); t; t = http_turns_take(&turns))
      opened[route_of(t)]++;
  }
  for (size_t i = 0; i < ROUTES; i++)
    assert_int_equal(opened[i], ROUNDS);
}

/* That a new connection is needed is known when libcurl asks for it. */
static void who_finds_no_connection_left_is_the_first_of_its_line(void **state) {
  struct http_transfer *all[HTTP_TURN_OPENS + 1];
  for (size_t i = 0; i <= HTTP_TURN_OPENS; i++)
    all[i] = put(0, false);
  http_turns_next(&turns);
  for (size_t i = 0; i <= HTTP_TURN_OPENS; i++)
    assert_ptr_equal(http_turns_take(&turns), all[i]);
  for (size_t i = 0; i < HTTP_TURN_OPENS; i++) {
    assert_true(http_turns_open(&turns, all[i]));
    assert_true(http_turns_open(&turns, all[i])); /* another address of its host */
  }
  struct http_transfer *bounced = all[HTTP_TURN_OPENS];
  assert_false(http_turns_open(&turns, bounced));
  assert_false(http_turns_open(&turns, bounced)); /* another address of its host */
  assert_true(bounced->opens);
  struct http_transfer *later = put(0, false);
  http_turns_put(&turns, bounced);
  assert_null(http_turns_take(&turns)); /* nor does the one behind it begin in this turn */
  http_turns_next(&turns);
  assert_ptr_equal(http_turns_take(&turns), bounced);
  assert_ptr_equal(http_turns_take(&turns), later);
  assert_true(http_turns_open(&turns, bounced)); /* it has been counted */
  for (size_t i = 0; i < HTTP_TURN_OPENS - 1; i++)
    put(1, true);
  for (size_t i = 0; i < HTTP_TURN_OPENS - 1; i++)
    assert_non_null(http_turns_take(&turns));
  assert_false(http_turns_open(&turns, later));
}

/* An endpoint that processes a few requests of a connection and refuses the others: all get through, for nobody begins
 * anew before those that it has refused. */
static void who_has_begun_before_goes_first(void **state) {
  struct http_transfer *first = put(0, false), *second = put(0, false);
  http_turns_next(&turns);
  assert_ptr_equal(http_turns_take(&turns), first);
  struct http_transfer *third = put(0, false);
  first->beginnings = 1;
  http_turns_put(&turns, first);
  assert_ptr_equal(http_turns_take(&turns), first);
  assert_ptr_equal(http_turns_take(&turns), second);
  assert_ptr_equal(http_turns_take(&turns), third);
  assert_true(http_turns_empty(&turns));
}

/* A route with connections goes on with them, however many others want new ones. */
static void who_waits_for_a_connection_may_use_one_that_is_free(void **state) {
  for (size_t i = 0; i < (size_t)10 * ROUTES; i++)
    put(i % ROUTES, true);
  struct http_transfer *first = put(ROUTES, true), *second = put(ROUTES, true), *third = put(ROUTES, false);
  size_t begun = 0;
  http_turns_next(&turns);
  while (http_turns_take(&turns))
    begun++;
  assert_int_equal(begun, HTTP_TURN_OPENS);
  http_turns_kept(&turns, &routes[ROUTES]);
  assert_ptr_equal(http_turns_take(&turns), first);
  assert_false(http_turns_open(&turns, first)); /* it was not free */
  assert_null(http_turns_take(&turns));
  http_turns_kept(&turns, &routes[ROUTES]);
  http_turns_kept(&turns, &routes[ROUTES]);
  assert_ptr_equal(http_turns_take(&turns), second);
  assert_ptr_equal(http_turns_take(&turns), third);
  http_turns_kept(&turns, &routes[ROUTES]); /* where nobody waits: nothing */
  assert_null(http_turns_take(&turns));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(few_begin_in_a_turn_in_their_order, start, stop),
      cmocka_unit_test_setup_teardown(routes_take_turns, start, stop),
      cmocka_unit_test_setup_teardown(few_connections_are_opened_in_a_turn, start, stop),
      cmocka_unit_test_setup_teardown(connections_are_shared_out, start, stop),
      cmocka_unit_test_setup_teardown(who_finds_no_connection_left_is_the_first_of_its_line, start, stop),
      cmocka_unit_test_setup_teardown(who_has_begun_before_goes_first, start, stop),
      cmocka_unit_test_setup_teardown(who_waits_for_a_connection_may_use_one_that_is_free, start, stop),
  };
  return cmocka_run_group_tests_name("http_turns", tests, NULL, NULL);
}
