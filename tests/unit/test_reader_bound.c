/* SPDX-License-Identifier: MIT
 *
 * Tasks that are bound to our host, behind any number of tasks of a host that is away: the other routes do not wait for
 * the walk over these (P8), and ours are found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "reader_fixture.h"

enum { AWAY = 20000, PAGE = 1000, PATIENCE_US = 60 * 1000 * 1000, ROUTES = 12, FIND_US = 100, WAKE_US = 5000 };

/* The table: rows 1 .. away are bound to the other host, the next one to ours; all are due. */
static struct {
  uint64_t away;
  size_t finds, found;
  uint64_t claimed; /* the last one */
} table;

static bool is_ours(uint64_t id) { return id > table.away; }

static int64_t due_us(uint64_t id) { return (int64_t)id; }

static struct task_batch *read_rows(const uint64_t *ids, size_t count, enum task_state state) {
  struct task_batch *batch = make_batch(ids, count, state);
  for (size_t i = 0; i < count; i++)
    batch->tasks[i].shard = SHARD_BOUND;
  return batch;
}

static enum store_status find(struct store_session *ss, const struct store_range *ranges,
                              const struct store_cursor *until, size_t range_count, struct found_id *found,
                              size_t *count, struct err *err) {
  const struct store_range *range = ranges;
  assert_string_equal(range->host, "here");
  assert_in_range(range->limit, 1, PAGE);
  memset(count, 0, range_count * sizeof *count);
  table.finds++;
  for (uint64_t id = (uint64_t)range->after.next_us + 1; id <= table.away + 1 && *count < range->limit; id++)
    if (due_us(id) <= until->next_us)
      found[(*count)++] = (struct found_id){.id = id, .next_us = due_us(id), .foreign = !is_ours(id)};
  table.found += *count;
  return STORE_OK;
}

static enum store_status read_ids(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                  const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                  struct task_batch **batch, struct err *err) {
  for (size_t i = 0; i < count; i++)
    assert_true(is_ours(ids[i]));
  *batch = count ? read_rows(ids, count, TASK_SCHEDULED) : NULL;
  return STORE_OK;
}

static enum store_status claim(struct store_session *ss, const struct store_claim *claim, struct task_batch **batch,
                               uint64_t *lost, struct err *err) {
  table.claimed = claim->ids[0];
  *batch = read_rows(claim->ids, claim->count, TASK_CLAIMED);
  return STORE_OK;
}

static struct group *fill(struct fixture *f, uint64_t away) {
  static const struct store_ops ops = {.find = find, .read_ids = read_ids, .claim = claim};
  static const struct store store = {.ops = &ops};
  memset(&table, 0, sizeof table);
  table.away = away;
  f->released = 1; /* no batch of the fixture's */
  f->config.engine.batch = 100;
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  f->s.lanes = &f->lane;
  f->s.view[SHARD_BOUND].epoch = 1;
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  leases_renewed(&f->leases, bound, clock_instant(), INT64_C(3600) * 1000000);
  struct group *group = lane_group(&f->lane, SHARD_BOUND, 5, true);
  assert_non_null(group);
  group->epoch = 1;
  group->due = true;
  return group;
}

/* One page for each round of reading: whatever else is due is read between, and has most of the time. */
static void those_of_a_host_that_is_away_are_walked_over_in_pages(void **state) {
  struct fixture *f = *state;
  struct group *group = fill(f, AWAY);
  int64_t limit = clock_mono_us() + PATIENCE_US;
  size_t pages = 0;
  for (; table.claimed == 0 && clock_mono_us() < limit; pages += table.finds) {
    table.finds = table.found = 0;
    scheduler_read(&f->s);
    assert_in_range(table.finds, 0, 1);
    assert_in_range(table.found, 0, PAGE);
  }
  assert_int_equal(table.claimed, AWAY + 1);
  assert_true(pages >= AWAY / PAGE);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
  assert_int_equal(group->cursor.id, AWAY + 1);
}

/* Once it is through, and nothing of ours is out, it does not begin anew. */
static void the_walk_does_not_begin_anew(void **state) {
  struct fixture *f = *state;
  struct group *group = fill(f, 3);
  scheduler_read(&f->s);
  assert_int_equal(table.claimed, 4);
  struct flight_list settled = {0};
  mailbox_take(&f->driver.in, 0, &settled);
  settled.head->end = FLIGHT_OUTCOME;
  settled.head->settled = true;
  settled.head->decision = (struct decision){.applied = true, .event = EVENT_DONE, .shard = SHARD_BOUND};
  scheduler_arrivals(&f->s, &settled);
  assert_int_equal(group->in_flight, 0);
  assert_int_equal(group->cursor.id, 4);
}

/* Work of our own that flows has us read on all the time, and the earliest row that is looked for beyond the cursor
 * then may be another host's for a while. One behind it is looked for all the same. */
static void reading_on_does_not_hide_what_came_late(void **state) {
  struct fixture *f = *state;
  struct group *group = fill(f, 3);
  scheduler_read(&f->s);
  assert_int_equal(group->cursor.id, 4);
  assert_false(group->sweep);
  const struct store_group late = {.state = TASK_SCHEDULED, .shard = SHARD_BOUND, .priority = 5, .next_us = 2};
  assert_ptr_equal(scheduler_note_group(&f->s, &f->lane, &late, scheduler_db_now_us(&f->s)), group);
  assert_true(group->sweep);
}

/* --- many routes --- */

/* Of a dozen other routes, which little else is due of, any number of rows of the host that is away are due; of ours
 * there are some, as many as a page has, or one. */
static struct {
  struct lane lanes[ROUTES];
  size_t finds, pages; /* of all of these; of ours */
  size_t ours;
} many;

static enum store_status find_many(struct store_session *ss, const struct store_range *ranges,
                                   const struct store_cursor *until, size_t range_count, struct found_id *found,
                                   size_t *count, struct err *err) {
  bool is_other = strcmp(ranges->route, "work") != 0;
  ++*(is_other ? &many.finds : &many.pages);
  thread_sleep(FIND_US);
  memset(count, 0, range_count * sizeof *count);
  for (uint64_t id = (uint64_t)ranges->after.next_us + 1; *count < ranges->limit && (is_other || id <= many.ours); id++)
    if (due_us(id) <= until->next_us)
      found[(*count)++] = (struct found_id){.id = id, .next_us = due_us(id), .foreign = is_other};
  return STORE_OK;
}

/* A round of reading, and then a pause as the thread makes: whoever rested has done so by then. */
static void read_and_pause(struct fixture *f) {
  scheduler_read(&f->s);
  thread_sleep(WAKE_US);
}

/* None of ours takes place in the route: they are gone. */
static enum store_status read_none(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                   const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                   struct task_batch **batch, struct err *err) {
  *batch = NULL;
  return STORE_OK;
}

static struct group *fill_many(struct fixture *f, struct store_ops *ops) {
  static struct store store;
  struct group *group = fill(f, 0);
  memset(&many, 0, sizeof many);
  *ops = (struct store_ops){.find = find_many, .read_ids = read_none, .claim = claim};
  store = (struct store){.ops = ops};
  f->s.store = &store;
  for (size_t i = 0; i < ROUTES; i++) {
    struct lane *lane = &many.lanes[i];
    (void)snprintf(lane->name, sizeof lane->name, "other%zu", i);
    lane->route = &f->route;
    lane->driver = &f->driver;
    lane->drained_until_us = INT64_MAX;
    lane->next = i + 1 < ROUTES ? lane + 1 : &f->lane;
    struct group *other = lane_group(lane, SHARD_BOUND, 5, true);
    assert_non_null(other);
    other->epoch = 1;
    other->due = true;
  }
  f->s.lanes = many.lanes;
  return group;
}

static void free_many(struct fixture *f) {
  for (size_t i = 0; i < ROUTES; i++)
    free(many.lanes[i].groups);
  free(f->s.found);
}

/* A route with a backlog of tasks for our host goes on while the others' are walked over. (It stood still.) */
static void a_backlog_of_ours_waits_for_no_walk_of_other_routes(void **state) {
  struct fixture *f = *state;
  struct store_ops ops;
  (void)fill_many(f, &ops);
  many.ours = UINT64_MAX;
  while (many.pages < 20) {
    read_and_pause(f);
    assert_in_range(many.finds, 0, 20 * ROUTES);
  }
  free_many(f);
}

/* A task for our host that came late is found while the others' pages are looked through again. (It was not.) */
static void one_that_came_late_is_found_beside_sweeps_of_other_routes(void **state) {
  struct fixture *f = *state;
  struct store_ops ops;
  struct group *group = fill_many(f, &ops);
  ops.read_ids = read_ids;
  for (size_t i = 0; i < ROUTES; i++) {
    struct group *other = many.lanes[i].groups;
    other->due = false;
    other->cursor = (struct store_cursor){INT64_MAX - 1, UINT64_MAX};
    lane_sweep(other);
  }
  for (int round = 0; round < 3; round++)
    read_and_pause(f);
  many.finds = 0;
  many.ours = 1;
  group->due = false;
  group->cursor = (struct store_cursor){2, 2};
  lane_sweep(group);
  while (table.claimed == 0) {
    read_and_pause(f);
    assert_in_range(many.finds, 0, 4 * ROUTES);
  }
  assert_int_equal(table.claimed, 1);
  free_many(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(those_of_a_host_that_is_away_are_walked_over_in_pages, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_walk_does_not_begin_anew, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reading_on_does_not_hide_what_came_late, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_backlog_of_ours_waits_for_no_walk_of_other_routes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_that_came_late_is_found_beside_sweeps_of_other_routes, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("reader_bound", tests, NULL, NULL);
}
