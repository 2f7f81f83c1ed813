/* SPDX-License-Identifier: MIT
 *
 * Rows behind a group's cursor that cannot be claimed, since another transaction holds them: they keep nobody waiting
 * but themselves, and nothing is asked for again and again because of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "reader_fixture.h"

enum { HELD_MAX = 6000 };

/* The table: rows 1 .. held, which somebody holds but for one, and behind them one with the order_key "k". */
static struct {
  size_t held;
  uint64_t free_id; /* 0 = none */
  size_t statements;
  enum {
    KEYLESS,   /* the others have none, */
    KEYS,      /* or one each, */
    BUSY_FIRST /* or "busy", but for the first one, which has that of the last */
  } keys;
} table;

static char own_keys[HELD_MAX][8];

static bool is_behind(uint64_t id) { return id <= table.held; }

static bool is_held(uint64_t id) { return is_behind(id) && id != table.free_id; }

static struct duebox_bytes key_of(uint64_t id) {
  if (!is_behind(id) || (table.keys == BUSY_FIRST && id == 1))
    return (struct duebox_bytes){"k", 1};
  if (table.keys == KEYLESS)
    return (struct duebox_bytes){"", 0};
  if (table.keys == BUSY_FIRST)
    return (struct duebox_bytes){"busy", 4};
  (void)snprintf(own_keys[id], sizeof *own_keys, "%u", (unsigned)id);
  return (struct duebox_bytes){own_keys[id], strlen(own_keys[id])};
}

/* As the table has them. */
static struct task_batch *read_rows(const uint64_t *ids, size_t count, enum task_state state) {
  struct task_batch *batch = make_batch(ids, count, state);
  for (size_t i = 0; i < count; i++)
    batch->tasks[i].order_key = key_of(ids[i]);
  return batch;
}

static enum store_status read_last(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                                   int64_t ahead_us, struct store_limit limit, struct task_batch **batch,
                                   int64_t *next_us, int64_t *now_us, struct err *err) {
  const uint64_t last = table.held + 1;
  bool behind = ranges->after.next_us >= (int64_t)last;
  table.statements++;
  *batch = behind ? NULL : read_rows(&last, 1, TASK_SCHEDULED);
  if (next_us)
    *next_us = INT64_MAX;
  *now_us = clock_mono_us();
  return STORE_OK;
}

static enum store_status find_held(struct store_session *ss, const struct store_range *ranges,
                                   const struct store_cursor *until, size_t range_count, struct found_id *found,
                                   size_t *count, struct err *err) {
  const struct store_range *range = ranges; /* in higher priorities there are no rows */
  table.statements++;
  memset(count, 0, range_count * sizeof *count);
  for (uint64_t i = 1; range->priority == 5 && i <= table.held && *count < range->limit; i++) {
    uint64_t id = range->last ? table.held + 1 - i : i;
    if ((int64_t)id > range->after.next_us && (int64_t)id <= until->next_us)
      found[(*count)++] = (struct found_id){.next_us = (int64_t)id, .id = id, .keyed = key_of(id).len > 0};
  }
  return STORE_OK;
}

static enum store_status read_ids(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                  const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                  struct task_batch **batch, struct err *err) {
  table.statements++;
  *batch = read_rows(ids, count, TASK_SCHEDULED);
  return STORE_OK;
}

static enum store_status claim_free(struct store_session *ss, const struct store_claim *claim,
                                    struct task_batch **batch, uint64_t *lost, struct err *err) {
  uint64_t ids[HELD_MAX];
  size_t count = 0;
  table.statements++;
  for (size_t i = 0; i < claim->count; i++)
    if (!is_held(claim->ids[i]))
      ids[count++] = claim->ids[i];
  *batch = count ? read_rows(ids, count, TASK_CLAIMED) : NULL;
  return STORE_OK;
}

/* A group of which so many rows are behind the cursor, and one beyond. */
static struct group *fill(struct fixture *f, size_t held) {
  static const struct store_ops ops = {.read = read_last, .find = find_held, .read_ids = read_ids, .claim = claim_free};
  static const struct store store = {.ops = &ops};
  table.held = held;
  table.keys = KEYLESS;
  table.free_id = 0;
  table.statements = 0;
  f->released = 1; /* no batch of the fixture's */
  f->route.claim = CLAIM_RECORDED;
  f->config.engine.batch = 100;
  f->config.engine.poll_max_ms = 100;
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  f->s.lanes = &f->lane;
  leases_gain(&f->leases, 0, 1, clock_instant(), INT64_C(3600) * 1000000, false);
  struct group *group = lane_group(&f->lane, 0, 5, true);
  assert_non_null(group);
  group->epoch = 1;
  group->due = true;
  group->cursor = (struct store_cursor){(int64_t)held, held};
  lane_sweep(group); /* their claims failed */
  return group;
}

/* Reads until there is no more to do now. Returns how many statements that took. */
static size_t read_all(struct fixture *f) {
  enum { SPINS = 20000 };
  do {
    scheduler_read(&f->s);
  } while (f->s.read_more && table.statements < SPINS);
  return table.statements;
}

static void finish(struct fixture *f) {
  free(f->s.found);
  order_free(&f->lane.order);
}

/* Hundreds of rows that somebody holds: a task of an order_key behind them goes, for none of them is of its key. (It
 * waited for all of them, and the reader spun.) */
static void a_task_with_an_order_key_passes_rows_without(void **state) {
  struct fixture *f = *state;
  (void)fill(f, 300);
  size_t statements = read_all(f);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
  assert_in_range(statements, 1, 20);
  finish(f);
}

/* Nor does it wait for thousands. (It did, and the whole route with it, for as long as they were held.) */
static void a_task_with_an_order_key_passes_thousands_without(void **state) {
  struct fixture *f = *state;
  (void)fill(f, HELD_MAX - 1);
  size_t statements = read_all(f);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
  assert_in_range(statements, 1, 200);
  finish(f);
}

/* Nor for thousands that have an order_key each: once a sweep has met them, they are known. */
static void a_task_with_an_order_key_passes_thousands_of_other_keys(void **state) {
  struct fixture *f = *state;
  struct group *group = fill(f, HELD_MAX - 1);
  table.keys = KEYS;
  group->sweep = false;
  size_t statements = read_all(f);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
  assert_in_range(statements, 1, 200);
  finish(f);
}

/* A transaction of hundreds committed late. Most of it waits for a task that is out, and that alone was read: the first
 * one, which is of the key of the task at hand, was overtaken. */
static void one_that_came_late_among_hundreds_of_a_busy_key_is_not_overtaken(void **state) {
  struct fixture *f = *state;
  struct task out = {.id = HELD_MAX, .message_id = {"m", 1}, .order_key = {"busy", 4}};
  struct flight_list sent = {0};
  struct group *group = fill(f, 300);
  table.keys = BUSY_FIRST;
  table.free_id = 1;
  group->sweep = false;
  order_reserve(&f->lane.order, &out);
  (void)read_all(f);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
  mailbox_take(&f->driver.in, 0, &sent);
  assert_int_equal(sent.head->id, 1);
  assert_true(order_knows(&f->lane.order, 301));
  mailbox_put(&f->driver.in, &sent);
  finish(f);
}

/* Of a page only as many are tried as there is room for, and those that are held have the first places: one among them
 * that nobody holds, a failed one whose time has come again, say, was never tried. */
static void a_free_row_among_held_ones_is_found_however_little_room_there_is(void **state) {
  struct fixture *f = *state;
  (void)fill(f, 400);
  table.free_id = 200;
  f->config.engine.batch = 8;
  assert_in_range(read_all(f), 1, 4 * 400 / 8);
  assert_non_null(flight_by_id(&f->flights, 200));
  assert_int_equal(mailbox_count(&f->driver.in), 2);
  finish(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_task_with_an_order_key_passes_rows_without, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_task_with_an_order_key_passes_thousands_without, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_task_with_an_order_key_passes_thousands_of_other_keys, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_that_came_late_among_hundreds_of_a_busy_key_is_not_overtaken, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_free_row_among_held_ones_is_found_however_little_room_there_is, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests_name("reader_behind", tests, NULL, NULL);
}
