/* SPDX-License-Identifier: MIT
 *
 * What becomes of a batch of rows. A suspended route is probed with one task, however many rows were read: each more
 * would burn an attempt, or be a duplicate, at a destination that is down. (A page of the sweep used to go, 256 tasks.)
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

/* Rows that are due, as a reading got them that may hand out `most`. Returns how many went to the driver. */
static size_t take(struct fixture *f, size_t most) {
  f->batch = (struct task_batch){.open = ROWS, .count = ROWS, .tasks = f->tasks, .buffer = f, .release = release};
  for (int i = 0; i < ROWS; i++)
    f->tasks[i] = (struct task){.id = (uint64_t)i + 1,
                                .state = TASK_SCHEDULED,
                                .due_us = 1,
                                .asked_due_us = 1,
                                .recoveries = f->recoveries,
                                .route = {"work", 4},
                                .message_id = {"m", 1},
                                .payload = {"x", 1},
                                .payload_len = 1,
                                .batch = &f->batch};
  struct group *group = lane_group(&f->lane, 0, 0, true);
  assert_non_null(group);
  group->cursor = (struct store_cursor){2, ROWS};
  const struct reading reading = {.lane = &f->lane, .most = most, .began_us = clock_mono_us(), .due_until_us = 10};
  reader_take(&f->s, &reading, &f->batch);
  return mailbox_count(&f->driver.in);
}

static void all_that_may_go_do(void **state) { assert_int_equal(take(*state, 10), 10); }

static void a_suspended_route_is_probed_with_one(void **state) {
  struct fixture *f = *state;
  assert_true(health_down(&f->lane.health, &(struct health_trouble){.message = "down", .retry_after_ms = -1}, 0));
  lane_limit(&f->lane);
  assert_int_equal(take(f, 1), 1);
  assert_int_equal(f->lane.health.state, HEALTH_PROBING);
  assert_int_equal(f->lane.in_flight, 1);
  assert_true(f->lane.groups->sweep); /* the others are met again */
}

/* Plain SQL is to see what becomes of a task while its destination stands still: the one that goes is claimed in the
 * table. */
static void a_stalled_route_is_probed_by_a_recorded_claim(void **state) {
  struct fixture *f = *state;
  assert_false(reader_records_claims(&f->s, &f->lane, 0));
  f->lane.stalled = true;
  assert_true(reader_records_claims(&f->s, &f->lane, 0));
  int64_t before = clock_mono_us();
  assert_int_equal(take(f, 1), 1);
  assert_true(stall_probe_at_us(&f->lane.stall) >= before + STALL_FIRST_US);
}

/* A task that was in flight in a crash leaves under a recorded claim only, or the next crash would not count: where
 * claims of its shard are kept in memory again it stays in the table, and they are written from then on. */
static void what_was_in_a_crash_does_not_leave_from_memory(void **state) {
  struct fixture *f = *state;
  f->recoveries = 1;
  leases_gain(&f->leases, 0, 1, clock_instant(), 1000 * 1000, false);
  assert_int_equal(take(f, 10), 0);
  assert_true(reader_records_claims(&f->s, &f->lane, 0));
  leases_view(&f->leases, f->s.view);
  assert_true(f->s.view[0].cautious);
  assert_true(f->lane.groups->sweep); /* they are met again */
}

/* Whoever may insert may ask for any time, and a task that its endpoint never answers has its place for so long: 32
 * rows used to keep a route of HTTP hooks from all others for 49 days. */
static void no_row_has_a_place_for_longer_than_its_route_lets_it(void **state) {
  struct fixture *f = *state;
  f->route.timeout_ms = 3000;
  f->route.timeout_max_ms = 300000;
  const struct task tasks[] = {{.id = 1}, {.id = 2, .timeout_ms = UINT32_MAX}, {.id = 3, .timeout_ms = 4000}};
  assert_int_equal(take_tasks(f, tasks, 3, 10, false), 3);
  assert_int_equal(f->tasks[0].view.timeout_ms, 3000);
  assert_int_equal(f->tasks[1].view.timeout_ms, 300000);
  assert_int_equal(f->tasks[2].view.timeout_ms, 4000);
}

/* --- order, and tasks that are to move --- */

/* What is behind the cursor and found no room keeps its turn in its order_key (P5): a later one, read beyond the cursor
 * before it is met again, used to overtake it. */
static void a_task_that_found_no_room_keeps_its_turn(void **state) {
  struct fixture *f = *state;
  static const struct duebox_bytes k = {"k", 1};
  struct task first[] = {{.id = 1}, {.id = 2, .order_key = k}}, later[] = {{.id = 3, .order_key = k}};
  assert_int_equal(take_tasks(f, first, 2, 1, false), 1);
  assert_true(order_knows(&f->lane.order, 2));
  struct flight_list sent = {0};
  mailbox_take(&f->driver.in, 0, &sent);
  lane_refund(&f->lane, sent.head->task, true);
  flight_give_back(&f->flights, flight_list_pop(&sent));
  assert_int_equal(f->released, 1);
  assert_int_equal(take_tasks(f, later, 1, 10, false), 0);
  assert_true(order_knows(&f->lane.order, 3));
  order_free(&f->lane.order);
}

/* A waiting task whose order_key plain SQL changed twice used to be known under both keys: the first one called it,
 * lost sight of it, and none of its tasks left ever again (P1). */
static void a_task_with_another_key_has_no_turn_in_the_first(void **state) {
  struct fixture *f = *state;
  static const struct duebox_bytes a = {"a", 1}, b = {"b", 1};
  struct task first[] = {{.id = 1, .order_key = a}, {.id = 2, .order_key = a}}, renamed[] = {{.id = 2, .order_key = b}};
  assert_int_equal(take_tasks(f, first, 2, 10, false), 1);
  assert_true(order_knows(&f->lane.order, 2));
  (void)take_tasks(f, renamed, 1, 10, false);
  assert_non_null(flight_by_id(&f->flights, 2));
  assert_false(order_knows(&f->lane.order, 2));
  order_free(&f->lane.order);
}

/* A task that was given to another route since its id was known has no turn here: it is neither moved nor ended by this
 * one. */
static void a_task_of_another_route_is_left_to_it(void **state) {
  struct fixture *f = *state;
  struct task tasks[] = {{.id = 1, .route = {"another", 7}, .moves = true},
                         {.id = 2, .route = {"another", 7}, .unreadable = "attempt"},
                         {.id = 3, .moves = true}};
  (void)take_tasks(f, tasks, 3, 10, true);
  assert_int_equal(mailbox_count(&f->settler), 1);
  assert_non_null(flight_by_id(&f->flights, 3));
}

/* To the database 'work ' is 'work', so that it is read with the others. It was left where it was, for ever (P1). */
static void a_route_with_a_blank_at_its_end_is_refused_where_it_is_read(void **state) {
  struct fixture *f = *state;
  struct task tasks[] = {{.id = 1, .route = {"work  ", 6}, .unreadable = "route"}};
  (void)take_tasks(f, tasks, 1, 10, true);
  assert_int_equal(mailbox_count(&f->settler), 1);
  assert_non_null(flight_by_id(&f->flights, 1));
}

static enum store_status read_rows(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                                   int64_t ahead_us, struct store_limit limit, struct task_batch **batch,
                                   int64_t *next_us, int64_t *now_us, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  *batch = &f->batch;
  if (next_us)
    *next_us = INT64_MAX;
  *now_us = clock_mono_us();
  return STORE_OK;
}

/* The lane is to be read from this store, under a lease of its shard. */
static void read_from(struct fixture *f, const struct store *store) {
  f->config.engine.batch = 100;
  f->s.store = store;
  f->s.ss = (struct store_session *)f;
  f->s.lanes = &f->lane;
  leases_gain(&f->leases, 0, 1, clock_instant(), INT64_C(3600) * 1000000, false);
}

/* The index has a row that is to move before all others, whenever it is due. As the last one of a page it took the
 * cursor to its due time, over all that was due before that. */
static void a_row_that_is_to_move_takes_the_cursor_nowhere(void **state) {
  struct fixture *f = *state;
  static const struct store_ops ops = {.read = read_rows};
  const struct store store = {.ops = &ops};
  read_from(f, &store);
  f->tasks[0] = (struct task){.id = 9,
                              .state = TASK_SCHEDULED,
                              .due_us = clock_mono_us() + INT64_C(3600) * 1000000,
                              .route = {"work", 4},
                              .message_id = {"m", 1},
                              .moves = true,
                              .batch = &f->batch};
  f->batch = (struct task_batch){.open = 1, .count = 1, .tasks = f->tasks, .buffer = f, .release = release};
  struct group *group = lane_group(&f->lane, 0, 5, true);
  assert_non_null(group);
  group->epoch = 1;
  group->due = true;
  f->tasks[0].priority = 5;
  scheduler_read(&f->s);
  assert_int_equal(mailbox_count(&f->settler), 1);
  assert_int_equal(group->cursor.next_us, STORE_MOVES_US);
  assert_int_equal(group->cursor.id, 9);
}

/* --- claims that the server refuses --- */

static bool refuses_all, refuses_tenth;
static size_t claims;
static uint64_t grown; /* the row that has more bytes than its share of the answer */

static void release_copy(struct task_batch *batch) { free(batch); }

static enum store_status claim_but_one(struct store_session *ss, const struct store_claim *claim,
                                       struct task_batch **batch, uint64_t *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  claims++;
  *batch = NULL;
  for (size_t i = 0; i < claim->count; i++)
    if (refuses_tenth ? claim->ids[i] % 10 == 0 : claim->ids[i] == 5 || refuses_all) {
      err_set(err, 1, "refused by a trigger");
      return STORE_REFUSED;
    }
  struct task_batch *claimed = calloc(1, sizeof *claimed);
  assert_non_null(claimed);
  assert_true(claim->limit.payload == f->s.config->config->engine.max_payload);
  assert_true(claim->count == 1 || claim->limit.bytes * (int64_t)claim->count <= STORE_ANSWER_BYTES);
  *claimed = (struct task_batch){.open = (unsigned)claim->count,
                                 .count = claim->count,
                                 .tasks = &f->tasks[claim->ids[0]],
                                 .release = release_copy};
  for (size_t i = 0; i < claim->count; i++)
    claimed->tasks[i] = (struct task){.id = claim->ids[i],
                                      .state = TASK_CLAIMED,
                                      .attempt = 1,
                                      .due_us = 1,
                                      .route = {"work", 4},
                                      .message_id = {"m", 1},
                                      .order_key = {"k", claim->ids[i] == grown},
                                      .payload = {claim->ids[i] == grown ? NULL : "x", 1},
                                      .payload_len = 1,
                                      .batch = claimed};
  *batch = claimed;
  return STORE_OK;
}

static void claim_eight(struct fixture *f, bool all_are_refused) {
  static const struct store_ops ops = {.claim = claim_but_one};
  static struct store store;
  struct task tasks[8];
  store = (struct store){.ops = &ops};
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  claims = 0, refuses_all = all_are_refused;
  for (size_t i = 0; i < 8; i++)
    tasks[i] = (struct task){.id = i + 1, .order_key = {"k", i + 1 == grown}};
  (void)take_tasks(f, tasks, 8, 10, true);
}

/* One row whose claim the server refuses (a trigger, a CHECK) costs only itself: its neighbours used to wait for ever,
 * and all routes for up to five seconds each time. */
static void a_refused_claim_costs_its_own_row(void **state) {
  struct fixture *f = *state;
  claim_eight(f, false);
  assert_int_equal(mailbox_count(&f->driver.in), 7);
  assert_null(flight_by_id(&f->flights, 5));
  assert_int_equal(f->s.retry_wait_us, 0);
}

/* Small ones too: what is read for several rows is not sized by that limit. */
static void a_payload_over_the_limit_is_not_loaded(void **state) {
  struct fixture *f = *state;
  f->config.engine.max_payload = 1024;
  assert_int_equal(reader_inline(&f->s, &f->lane, false, 10).payload, 1024);
  assert_int_equal(reader_inline(&f->s, &f->lane, true, 10).payload, 1024);
  assert_int_equal(take(f, 10), 10);
}

/* Plain SQL may write any number of bytes into rows between their reading and their claim. What is too much for one
 * answer comes without them, is given back, read by its size then, and not overtaken in its order_key. */
static void a_row_that_has_grown_since_is_given_back(void **state) {
  struct fixture *f = *state;
  grown = 3;
  claim_eight(f, false);
  grown = 0;
  assert_int_equal(mailbox_count(&f->driver.in), 6);
  struct flight_list ended = {0};
  assert_int_equal(mailbox_count(&f->settler), 1);
  (void)mailbox_take(&f->settler, 0, &ended);
  assert_int_equal(ended.head->task->id, 3);
  assert_true(ended.head->end == FLIGHT_UNSENT && ended.head->in_order);
  mailbox_put(&f->settler, &ended);
}

/* Where the server refuses every claim of a route, that is noticed after a few, and the route waits; the others do not.
 * (The thread that reads for all of them waited, up to five seconds each time.) */
static void where_all_claims_are_refused_few_are_tried(void **state) {
  struct fixture *f = *state;
  claim_eight(f, true);
  assert_int_equal(mailbox_count(&f->driver.in), 0);
  assert_in_range(claims, 3, 8);
  assert_int_equal(f->s.retry_wait_us, 0);
  int64_t at_us = f->lane.refused_claims.at_us;
  assert_true(at_us > 0);
  assert_int_equal(lane_credit(&f->lane, 10, at_us - 1), 0);
  assert_int_equal(lane_wakes_at(&f->lane, at_us - 1), at_us);
  assert_true(lane_credit(&f->lane, 10, at_us) > 0);
}

/* It refuses some and lets others pass: one reading tries so many times, and what is left is met again. (It tried two
 * for each refused row, hundreds in a row, and no route was read meanwhile.) */
static void where_some_claims_are_refused_one_reading_tries_so_many(void **state) {
  struct fixture *f = *state;
  struct task tasks[ROWS - 1];
  uint64_t started = 0;
  static const struct store_ops ops = {.claim = claim_but_one};
  static struct store store;
  store = (struct store){.ops = &ops};
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  f->route.concurrency = ROWS;
  refuses_tenth = true;
  for (size_t i = 0; i < ROWS - 1; i++)
    tasks[i] = (struct task){.id = i + 1};
  claims = 0;
  started = take_tasks(f, tasks, ROWS - 1, ROWS, true);
  refuses_tenth = false;
  assert_in_range(claims, 10, 40);
  assert_true(started > 0);
  assert_true(f->lane.refused_claims.at_us > 0);
  assert_int_equal(f->s.retry_wait_us, 0);
}

/* The time that claims take which the server refuses is a tenth of all; where it refuses none there is no wait. */
static void refused_claims_take_a_tenth_of_the_time(void **state) {
  struct lane lane = {0};
  lane_note_claims(&lane, true, false, 1000, 21000);
  assert_int_equal(lane.refused_claims.at_us, 21000 + 9 * 20000);
  for (int i = 0; i < 10; i++)
    lane_note_claims(&lane, true, true, 1000, 21000);
  assert_int_equal(lane.refused_claims.at_us, 21000 + 1000 * 1000);
  lane_note_claims(&lane, false, false, 1000, 21000);
  assert_int_equal(lane.refused_claims.at_us, 0);
}

/* --- what committed late --- */

enum { LATE = 300 };

static size_t late_rows;
static struct task late_tasks[LATE];
static struct task_batch late_batch;
static void release_late(struct task_batch *batch) {}

static enum store_status find_late(struct store_session *ss, const struct store_range *ranges,
                                   const struct store_cursor *until, size_t range_count, struct found_id *found,
                                   size_t *count, struct err *err) {
  memset(count, 0, range_count * sizeof *count);
  if (ranges->last) /* the other one is a sweep */
    for (; *count < late_rows; ++*count)
      found[*count] =
          (struct found_id){.next_us = (int64_t)(late_rows - *count), .id = late_rows - *count, .keyed = true};
  return STORE_OK;
}

static enum store_status read_late(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                   const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                   struct task_batch **batch, struct err *err) {
  late_batch = (struct task_batch){.open = (unsigned)count, .count = count, .tasks = late_tasks};
  late_batch.release = release_late;
  for (size_t i = 0; i < count; i++)
    late_tasks[i] = (struct task){.id = ids[i],
                                  .state = state,
                                  .due_us = (int64_t)ids[i],
                                  .priority = 5,
                                  .route = {"work", 4},
                                  .message_id = {"m", 1},
                                  .order_key = {"k", 1},
                                  .batch = &late_batch};
  *batch = &late_batch;
  return STORE_OK;
}

/* Reads a task of the order_key k beyond a cursor behind which others came late. */
static struct group *read_beyond(struct fixture *f, size_t late) {
  static const struct store_ops ops = {.read = read_rows, .find = find_late, .read_ids = read_late};
  static struct store store;
  store = (struct store){.ops = &ops};
  late_rows = late;
  read_from(f, &store);
  f->tasks[0] = (struct task){.id = LATE + 1,
                              .state = TASK_SCHEDULED,
                              .due_us = LATE + 1,
                              .priority = 5,
                              .route = {"work", 4},
                              .message_id = {"m", 1},
                              .order_key = {"k", 1},
                              .payload = {"x", 1},
                              .payload_len = 1,
                              .batch = &f->batch};
  f->batch = (struct task_batch){.open = 1, .count = 1, .tasks = f->tasks, .buffer = f, .release = release};
  struct group *group = lane_group(&f->lane, 0, 5, true);
  assert_non_null(group);
  group->epoch = 1;
  group->due = true;
  group->cursor = (struct store_cursor){LATE, LATE};
  scheduler_read(&f->s);
  free(f->s.found);
  return group;
}

static void a_task_goes_when_nothing_came_late(void **state) {
  struct fixture *f = *state;
  struct group *group = read_beyond(f, 0);
  assert_int_equal(mailbox_count(&f->driver.in), 1);
  assert_int_equal(group->cursor.id, LATE + 1);
  order_free(&f->lane.order);
}

/* Tasks of its order_key that committed before it was inserted, and whose due times were passed before that, go first
 * (P5). Where transactions took some milliseconds to commit, one in twenty used to be overtaken. */
static void what_came_late_is_not_overtaken(void **state) {
  struct fixture *f = *state;
  uint64_t ids[LATE];
  uint8_t shards[LATE];
  (void)read_beyond(f, 2);
  assert_int_equal(mailbox_count(&f->driver.in), 0);
  assert_true(order_knows(&f->lane.order, LATE + 1));
  assert_int_equal(order_called(&f->lane.order, ids, shards, LATE), 1);
  assert_int_equal(ids[0], 1); /* the first of them is read next, */
  assert_false(order_missed(&f->lane.order, 1, false));
  assert_int_equal(order_called(&f->lane.order, ids, shards, LATE), 1);
  assert_int_equal(ids[0], 2); /* then the other */
  order_free(&f->lane.order);
}

/* A transaction of hundreds: which is the first of its key is found out by a sweep from the beginning. */
static void a_lot_that_came_late_is_swept_first(void **state) {
  struct fixture *f = *state;
  struct group *group = read_beyond(f, LATE);
  assert_int_equal(mailbox_count(&f->driver.in), 0);
  assert_false(order_knows(&f->lane.order, LATE + 1));
  assert_int_equal(group->cursor.id, LATE); /* it is read again */
  assert_true(group->sweep_first);
  order_free(&f->lane.order);
}

/* --- memory --- */

enum { BATCHES = 400, BATCH = 100, LARGE = 1000 };

static char text[LARGE];
static size_t buffers, most_buffers;

static void free_batch(struct task_batch *batch) {
  buffers--;
  free(batch->tasks);
  free(batch);
}

static void take_buffer(struct fixture *f, uint64_t first_id) {
  struct task_batch *batch = calloc(1, sizeof *batch);
  assert_non_null(batch);
  *batch = (struct task_batch){.open = BATCH,
                               .count = BATCH,
                               .tasks = calloc(BATCH, sizeof *batch->tasks),
                               .release = free_batch,
                               .bytes = BATCH * (LARGE + TASK_BYTES)};
  assert_non_null(batch->tasks);
  for (size_t i = 0; i < BATCH; i++)
    batch->tasks[i] = (struct task){.id = first_id + i,
                                    .state = TASK_SCHEDULED,
                                    .due_us = 1,
                                    .asked_due_us = 1,
                                    .route = {"work", 4},
                                    .message_id = {"m", 1},
                                    .payload = {text, LARGE},
                                    .payload_len = LARGE,
                                    .batch = batch};
  buffers++;
  most_buffers = buffers > most_buffers ? buffers : most_buffers;
  const struct reading reading = {.lane = &f->lane, .most = BATCH, .began_us = clock_mono_us(), .due_until_us = 10};
  reader_take(&f->s, &reading, batch);
}

static void settle(struct fixture *f, struct flight *flight) {
  assert_true(flight->task->payload.len == LARGE && memcmp(flight->task->payload.data, text, LARGE) == 0);
  assert_string_equal(flight->task->message_id.data, "m");
  lane_refund(&f->lane, flight->task, true);
  flight_give_back(&f->flights, flight);
}

/* One task in a hundred takes for ever, and its batch's buffer with all the others would live as long as it: of 400
 * batches 80 MB. What is held beyond what is in flight stays within inflight_bytes and a batch. */
static void slow_tasks_do_not_hold_the_memory_of_their_batches(void **state) {
  struct fixture *f = *state;
  struct flight_list slow = {0}, taken = {0};
  struct flight *flight;
  const size_t bound = (size_t)f->route.inflight_bytes + BATCH * (LARGE + TASK_BYTES);
  f->released = 1; /* no batch of the others */
  f->route.concurrency = f->driver.max_inflight = 2 * BATCHES + 2 * BATCH;
  memset(text, 'x', sizeof text);
  buffers = most_buffers = 0;
  for (size_t i = 0; i < BATCHES; i++) {
    take_buffer(f, i * BATCH + 1);
    mailbox_take(&f->driver.in, 0, &taken);
    for (size_t n = 0; (flight = flight_list_pop(&taken)); n++)
      if (n == 0)
        flight_list_add(&slow, flight);
      else
        settle(f, flight);
    size_t held = atomic_load(&f->lane.held_bytes), need = (i + 1) * (LARGE + TASK_BYTES);
    assert_int_equal(f->lane.in_flight, i + 1);
    assert_true(held <= need + bound);
  }
  assert_in_range(most_buffers, 1, bound / LARGE / BATCH + 1);
  while ((flight = flight_list_pop(&slow)))
    settle(f, flight);
  assert_int_equal(buffers, 0);
  assert_int_equal(atomic_load(&f->lane.held_bytes), 0);
}

/* Where all that is held is in flight too, nothing is copied: the payload is used in place. */
static void a_route_whose_tasks_are_alike_copies_nothing(void **state) {
  struct fixture *f = *state;
  struct flight_list taken = {0};
  struct flight *flight;
  f->released = 1;
  f->route.concurrency = f->driver.max_inflight = 10 * BATCH;
  f->route.inflight_bytes = 5 * BATCH * LARGE;
  buffers = most_buffers = 0;
  for (size_t i = 0; i < 5; i++)
    take_buffer(f, i * BATCH + 1);
  mailbox_take(&f->driver.in, 0, &taken);
  size_t n = 0;
  for (; (flight = flight_list_pop(&taken)); n++) {
    assert_ptr_equal(flight->task->payload.data, text);
    settle(f, flight);
  }
  assert_int_equal(n, 5 * BATCH);
  assert_int_equal(buffers, 0);
}

enum { LARGE_READ_US = 40 * 1000 };

static enum store_status read_large(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                    const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                    struct task_batch **batch, struct err *err) {
  static struct task_batch read; /* each is released before the next is read, or with the flight of the test's end */
  struct fixture *f = (struct fixture *)ss;
  assert_int_equal(count, 1);
  thread_sleep(LARGE_READ_US);
  read = (struct task_batch){.open = 1, .count = 1, .tasks = &f->tasks[ROWS - 1], .buffer = f, .release = release};
  f->tasks[ROWS - 1] = f->tasks[ids[0] - 1];
  f->tasks[ROWS - 1].payload = (struct duebox_bytes){"x", 1};
  f->tasks[ROWS - 1].batch = &read;
  *batch = &read;
  return STORE_OK;
}

/* Each takes a statement of its own, and a route may have thousands of them at once, as far as its byte credit goes:
 * the others have their turn in between (P8). */
static void large_rows_let_other_routes_through(void **state) {
  static const struct store_ops ops = {.read_ids = read_large};
  static const struct store store = {.ops = &ops};
  struct fixture *f = *state;
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  f->batch = (struct task_batch){.open = 3, .count = 3, .tasks = f->tasks, .buffer = f, .release = release};
  for (size_t i = 0; i < f->batch.count; i++)
    f->tasks[i] = (struct task){.id = i + 1,
                                .state = TASK_SCHEDULED,
                                .due_us = 1,
                                .route = {"work", 4},
                                .message_id = {"m", 1},
                                .payload_len = 1000,
                                .batch = &f->batch};
  struct group *group = lane_group(&f->lane, 0, 0, true);
  assert_non_null(group);
  group->cursor = (struct store_cursor){1, 3};
  const struct reading reading = {.lane = &f->lane, .most = 10, .began_us = clock_mono_us(), .due_until_us = 10};
  assert_int_equal(reader_take(&f->s, &reading, &f->batch), 1);
  assert_non_null(flight_by_id(&f->flights, 1));
  assert_true(group->sweep); /* which meets the others again */
  assert_int_equal(f->released, 1);
  f->released = 0; /* and the one that was read is released at the end */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(all_that_may_go_do, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_suspended_route_is_probed_with_one, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_stalled_route_is_probed_by_a_recorded_claim, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_was_in_a_crash_does_not_leave_from_memory, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_row_has_a_place_for_longer_than_its_route_lets_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_task_that_found_no_room_keeps_its_turn, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_task_with_another_key_has_no_turn_in_the_first, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_task_of_another_route_is_left_to_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_route_with_a_blank_at_its_end_is_refused_where_it_is_read, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_row_that_is_to_move_takes_the_cursor_nowhere, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_payload_over_the_limit_is_not_loaded, set_up, tear_down),
      cmocka_unit_test_setup_teardown(large_rows_let_other_routes_through, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_row_that_has_grown_since_is_given_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_refused_claim_costs_its_own_row, set_up, tear_down),
      cmocka_unit_test_setup_teardown(where_all_claims_are_refused_few_are_tried, set_up, tear_down),
      cmocka_unit_test_setup_teardown(where_some_claims_are_refused_one_reading_tries_so_many, set_up, tear_down),
      cmocka_unit_test(refused_claims_take_a_tenth_of_the_time),
      cmocka_unit_test_setup_teardown(a_task_goes_when_nothing_came_late, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_came_late_is_not_overtaken, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_lot_that_came_late_is_swept_first, set_up, tear_down),
      cmocka_unit_test_setup_teardown(slow_tasks_do_not_hold_the_memory_of_their_batches, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_route_whose_tasks_are_alike_copies_nothing, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("reader_take", tests, NULL, NULL);
}
