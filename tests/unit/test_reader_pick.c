/* SPDX-License-Identifier: MIT
 *
 * Of a route whose endpoint is well, and fails on the content of many tasks alone, the others get through: its probes
 * are not always the tasks that stand first. (300 such rows used to keep all others waiting for 300 probes and more.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "reader_fixture.h"

enum { ROWS_MAX = 4000, BREAKER = 20, FIRST_DUE = 1000 };

struct row {
  uint64_t id;
  int64_t due_us;
  uint8_t priority;
  bool bad, keyed;
  uint32_t failures;
};

/* The table, in order of ids. A task that is done has due_us 0. */
static struct {
  struct row row[ROWS_MAX];
  size_t count;
} table;

/* How long it takes to look for rows, which a route rests for some times as long. */
static int64_t find_takes_us;

static struct row *row_of(uint64_t id) { return &table.row[id - 1]; }

static void add_rows(size_t count, struct row like, int64_t step_us) {
  for (size_t i = 0; i < count; i++) {
    assert_in_range(table.count, 0, ROWS_MAX - 1);
    like.id = table.count + 1;
    table.row[table.count++] = like;
    like.due_us += step_us;
  }
}

static bool before(const struct row *a, const struct row *b) {
  return a->due_us != b->due_us ? a->due_us < b->due_us : a->id < b->id;
}

static bool is_behind(const struct row *row, struct store_cursor cursor) {
  return row->due_us < cursor.next_us || (row->due_us == cursor.next_us && row->id <= cursor.id);
}

/* The first rows of the range that are due, or the last, up to `until`. */
static size_t list(const struct store_range *range, struct store_cursor until, uint64_t *ids) {
  int64_t now_us = clock_mono_us();
  size_t n = 0;
  for (size_t i = 0; i < table.count; i++) {
    const struct row *row = &table.row[i];
    if (row->priority != range->priority || !row->due_us || row->due_us > now_us || is_behind(row, range->after) ||
        !is_behind(row, until))
      continue;
    size_t at = n < range->limit ? n++ : range->limit;
    for (; at > 0 && before(row, row_of(ids[at - 1])) != range->last; at--)
      if (at < range->limit)
        ids[at] = ids[at - 1];
    if (at < range->limit)
      ids[at] = row->id;
  }
  return n;
}

static struct task_batch *batch_of(const uint64_t *ids, size_t count) {
  struct task_batch *batch = count ? make_batch(ids, count, TASK_SCHEDULED) : NULL;
  for (size_t i = 0; i < count; i++) {
    batch->tasks[i].due_us = row_of(ids[i])->due_us;
    batch->tasks[i].priority = row_of(ids[i])->priority;
    batch->tasks[i].failures = row_of(ids[i])->failures;
    batch->tasks[i].order_key = (struct duebox_bytes){"k", row_of(ids[i])->keyed};
  }
  return batch;
}

static enum store_status read_table(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                                    int64_t ahead_us, struct store_limit limit, struct task_batch **batch,
                                    int64_t *next_us, int64_t *now_us, struct err *err) {
  uint64_t ids[READ_MAX];
  size_t count = list(ranges, (struct store_cursor){INT64_MAX, UINT64_MAX}, ids);
  assert_int_equal(range_count, 1); /* one shard, and a priority at a time */
  *batch = batch_of(ids, count);
  *now_us = clock_mono_us();
  if (next_us)
    *next_us = INT64_MAX;
  return STORE_OK;
}

static enum store_status find_in_table(struct store_session *ss, const struct store_range *ranges,
                                       const struct store_cursor *until, size_t range_count, struct found_id *found,
                                       size_t *count, struct err *err) {
  uint64_t ids[READ_MAX];
  thread_sleep(find_takes_us);
  *count = list(ranges, *until, ids);
  for (size_t i = 0; i < *count; i++)
    found[i] = (struct found_id){.next_us = row_of(ids[i])->due_us, .id = ids[i]};
  return STORE_OK;
}

static enum store_status read_ids(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                  const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                  struct task_batch **batch, struct err *err) {
  *batch = batch_of(ids, count);
  return STORE_OK;
}

static const struct store_ops ops = {.read = read_table, .find = find_in_table, .read_ids = read_ids};
static const struct store store = {.ops = &ops};

static int set_up_route(void **state) {
  if (set_up(state) != 0)
    return -1;
  struct fixture *f = *state;
  table.count = 0;
  find_takes_us = 0;
  f->released = 1; /* no batch of the fixture's */
  f->route.breaker = BREAKER;
  f->route.concurrency = 32;
  f->config.engine.batch = 100;
  f->config.engine.poll_max_ms = 100;
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  f->s.lanes = &f->lane;
  leases_gain(&f->leases, 0, 1, clock_instant(), INT64_C(3600) * 1000000, false);
  return 0;
}

static int tear_down_route(void **state) {
  struct fixture *f = *state;
  free(f->s.found);
  order_free(&f->lane.order);
  return tear_down(state);
}

/* As polls see them. */
static void show_groups(struct fixture *f) {
  for (uint8_t priority = 1; priority <= 9; priority++) {
    const struct store_range range = {.priority = priority, .limit = 1};
    uint64_t first;
    if (!list(&range, (struct store_cursor){INT64_MAX, UINT64_MAX}, &first))
      continue;
    struct group *group = lane_group(&f->lane, 0, priority, true);
    assert_non_null(group);
    group->epoch = 1;
    group->due = true;
    group->next_us = row_of(first)->due_us;
  }
}

/* The endpoint answers a task: 500 to a bad one, which is tried again after some seconds, and so not in this test. */
static bool answer(struct flight *flight, struct flight_list *settled) {
  struct row *row = row_of(flight->id);
  flight->end = FLIGHT_OUTCOME;
  flight->completed_us = clock_mono_us();
  atomic_store(&flight->submitted, true);
  flight_set_outcome(flight, row->bad ? &DUEBOX_OUTCOME(.cls = DUEBOX_RETRY, .scope = DUEBOX_SCOPE_TARGET,
                                                        .retry_after_ms = -1, .error_class = "http.500")
                                      : &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
  flight->settled = true;
  flight->decision = (struct decision){.event = row->bad ? EVENT_RETRY : EVENT_DONE, .applied = true};
  flight->decision.delay_us = row->bad ? INT64_C(3600) * 1000000 : 0;
  row->failures += row->bad;
  row->due_us = row->bad ? clock_mono_us() + INT64_C(3600) * 1000000 : 0;
  flight_list_add(settled, flight);
  return !row->bad;
}

/* Reads once and answers what left; a suspended route may be probed again at once. Returns how many of these were good
 * ones, *bad how many were not. */
static size_t turn(struct fixture *f, size_t *bad) {
  struct flight_list sent = {0}, settled = {0};
  struct flight *flight;
  size_t good = 0;
  *bad = 0;
  show_groups(f);
  if (f->lane.health.state == HEALTH_SUSPENDED)
    f->lane.health.probe_at_us = 0;
  scheduler_read(&f->s);
  mailbox_take(&f->driver.in, 0, &sent);
  while ((flight = flight_list_pop(&sent)))
    if (answer(flight, &settled))
      good++;
    else
      ++*bad;
  scheduler_arrivals(&f->s, &settled);
  return good;
}

static void suspend(struct fixture *f) {
  f->lane.health.refusals = BREAKER;
  assert_true(health_refused(&f->lane.health, &(struct health_trouble){.message = "500", .retry_after_ms = -1}, BREAKER,
                             32, clock_mono_us()));
}

/* Probes until a good task has left. */
static size_t probes_until_good(struct fixture *f) {
  suspend(f);
  for (size_t probes = 1; probes < 2000; probes++) {
    size_t bad = 0, good = turn(f, &bad);
    assert_int_equal(good + bad, 1); /* and no probe is left out */
    if (good)
      return probes;
  }
  return 2000;
}

static void bad_ones_of_a_higher_priority_keep_no_other_from_being_the_probe(void **state) {
  add_rows(3000, (struct row){.due_us = FIRST_DUE, .priority = 9, .bad = true}, 1);
  add_rows(3, (struct row){.due_us = FIRST_DUE, .priority = 5}, 1000);
  assert_in_range(probes_until_good(*state), 1, 6);
}

static void nor_do_earlier_ones(void **state) {
  add_rows(3000, (struct row){.due_us = FIRST_DUE, .priority = 5, .bad = true}, 1);
  add_rows(1, (struct row){.due_us = FIRST_DUE + 4000, .priority = 5}, 0);
  assert_in_range(probes_until_good(*state), 1, 2);
}

/* Bad ones go on coming behind them: those of any age have their chance. */
static void nor_do_later_ones(void **state) {
  int64_t now_us = clock_mono_us();
  add_rows(1000, (struct row){.due_us = now_us - 100 * INT64_C(1000000), .priority = 5, .bad = true}, 1000);
  add_rows(200, (struct row){.due_us = now_us - 90 * INT64_C(1000000), .priority = 5}, 300 * 1000);
  add_rows(2000, (struct row){.due_us = now_us - 10 * INT64_C(1000000), .priority = 5, .bad = true}, 5000);
  assert_in_range(probes_until_good(*state), 1, 40);
}

/* What has failed before steps behind what has not. */
static void what_has_failed_steps_behind(void **state) {
  add_rows(10, (struct row){.due_us = FIRST_DUE, .priority = 5, .bad = true}, 1);
  add_rows(1, (struct row){.due_us = FIRST_DUE + 20, .priority = 5}, 1);
  add_rows(12, (struct row){.due_us = FIRST_DUE + 30, .priority = 5, .bad = true, .failures = 1}, 1);
  assert_in_range(probes_until_good(*state), 1, 2);
}

/* One with an order_key may have others of its key before it, that nobody has read. */
static void what_has_an_order_key_overtakes_nobody(void **state) {
  add_rows(30, (struct row){.due_us = FIRST_DUE, .priority = 5, .bad = true}, 1);
  add_rows(1, (struct row){.due_us = FIRST_DUE + 40, .priority = 5, .keyed = true}, 1);
  assert_int_equal(probes_until_good(*state), 31);
}

/* Of a route that is in doubt, where failures are fewer than suspend it, what may not be picked has its turn as well.
 * (A route whose tasks all had an order_key stood still after ten failures, and /readyz was well.) */
static void where_none_may_be_picked_the_next_has_its_turn(void **state) {
  struct fixture *f = *state;
  size_t good = 0, bad;
  add_rows(8, (struct row){.due_us = FIRST_DUE, .priority = 5, .keyed = true}, 1);
  f->lane.health.refusals = BREAKER / 2;
  find_takes_us = 5000;
  for (size_t turns = 0; good < 8 && turns < 20; turns++) {
    f->lane.pick_at_us = 0; /* its rest is over */
    good += turn(f, &bad);
  }
  assert_int_equal(good, 8);
}

/* When one has got through the route is open, and many bad ones seldom suspend it again: after ten of them in a row
 * others have their turn too. */
static void bad_ones_seldom_suspend_it_again(void **state) {
  struct fixture *f = *state;
  size_t good = 0, bad = 0;
  add_rows(3000, (struct row){.due_us = FIRST_DUE, .priority = 9, .bad = true}, 1);
  add_rows(500, (struct row){.due_us = FIRST_DUE, .priority = 5}, 1);
  size_t probes = probes_until_good(f);
  for (size_t turns = 0; good < 400 && turns < 400000; turns++) {
    size_t some = 0;
    good += turn(f, &some);
    bad += some;
  }
  assert_in_range(bad, 400, 2999);                       /* nor do these stand still */
  assert_in_range(f->lane.probes - probes, 0, good / 4); /* it was open nearly all the time */
}

/* A route that is well picks nothing. */
static void priority_counts_where_nothing_fails(void **state) {
  struct fixture *f = *state;
  size_t bad;
  add_rows(32, (struct row){.due_us = FIRST_DUE, .priority = 9}, 1);
  add_rows(32, (struct row){.due_us = FIRST_DUE, .priority = 5}, 1);
  assert_int_equal(turn(f, &bad), 32);
  for (uint64_t id = 1; id <= 32; id++)
    assert_int_equal(row_of(id)->due_us, 0);
  assert_int_equal(f->lane.picks, 0);
}

static void times_to_look_from_are_of_any_age(void **state) {
  const int64_t now_us = INT64_C(1800000000) * 1000000, day_us = INT64_C(86400) * 1000000;
  bool near = false, middle = false, far = false;
  for (uint32_t n = 0; n < 100; n++) {
    int64_t at = reader_pick_until_us(n, now_us - day_us, now_us), age = now_us - at;
    assert_in_range(age, 0, 2 * day_us);
    assert_true(n % 4 >= 2 || age == 0);
    near = near || (age > 0 && age < 100 * 1000);
    middle = middle || (age > 1000 * 1000 && age < 60 * 1000 * 1000);
    far = far || age > day_us / 4;
    assert_in_range(now_us - reader_pick_until_us(n, now_us, now_us), 0, 20 * 1000);
    assert_true(reader_pick_until_us(n, 0, now_us) > 0);
  }
  assert_true(near && middle && far);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(bad_ones_of_a_higher_priority_keep_no_other_from_being_the_probe, set_up_route,
                                      tear_down_route),
      cmocka_unit_test_setup_teardown(nor_do_earlier_ones, set_up_route, tear_down_route),
      cmocka_unit_test_setup_teardown(nor_do_later_ones, set_up_route, tear_down_route),
      cmocka_unit_test_setup_teardown(what_has_failed_steps_behind, set_up_route, tear_down_route),
      cmocka_unit_test_setup_teardown(what_has_an_order_key_overtakes_nobody, set_up_route, tear_down_route),
      cmocka_unit_test_setup_teardown(where_none_may_be_picked_the_next_has_its_turn, set_up_route, tear_down_route),
      cmocka_unit_test_setup_teardown(bad_ones_seldom_suspend_it_again, set_up_route, tear_down_route),
      cmocka_unit_test_setup_teardown(priority_counts_where_nothing_fails, set_up_route, tear_down_route),
      cmocka_unit_test(times_to_look_from_are_of_any_age),
  };
  return cmocka_run_group_tests_name("reader_pick", tests, NULL, NULL);
}
