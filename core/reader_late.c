/* SPDX-License-Identifier: MIT
 *
 * core/reader_late.c - tasks with an order_key that committed late: behind the position from which their group is read
 * on, after the due times there were passed.
 *
 * Due times are given before commits, so a task may become visible behind the cursor, and the next one of its order_key
 * beyond it a moment later. A sweep would meet the first one in time, but after the second. So whoever reads a task
 * with an order_key asks the index once more what is behind, which is a later snapshot: what was committed before that
 * task was inserted is there.
 */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/reader.h"

enum {
  LATE_ROWS = READ_MAX, /* whose order_keys are read, */
  LATE_PAGE = 256,      /* in one statement */
  LATE_KEYED = 256,     /* that keep their turn: those that have one */
};

/* Rows behind a cursor that nobody knows here, the last one first. */
struct late {
  uint64_t ids[LATE_ROWS];
  size_t count;
  struct task *keyed[LATE_KEYED]; /* of those that were read, in no order */
  size_t keyed_count;
  bool keyless; /* some have no order_key */
  bool more;    /* there are others, or they have not been read */
};

static void add_late(struct scheduler *s, const struct lane *lane, const struct found_id *found, struct late *late) {
  if (found->foreign || flight_by_id(s->flights, found->id) || order_knows(&lane->order, found->id))
    return;
  late->more = late->count == LATE_ROWS;
  if (!late->more)
    late->ids[late->count++] = found->id;
}

/* From the cursor back, a page at a time: most positions are of tasks in flight, or known to wait. */
static bool look_behind(struct scheduler *s, struct group *group, struct store_cursor until, struct late *late) {
  const bool bound = group->shard == SHARD_BOUND; /* there any number of others' rows may be walked over */
  const int64_t began = clock_mono_us(), now_us = scheduler_db_now_us(s),
                from_us = bound ? now_us - poll_back_us(&s->pace) : poll_late_from_us(&s->pace, now_us, began);
  const struct store_range range = {.state = TASK_SCHEDULED,
                                    .shard = group->shard,
                                    .priority = group->priority,
                                    .route = group->lane->name,
                                    .after = {from_us, 0},
                                    .limit = READ_MAX,
                                    .host = scheduler_host(s, group->shard),
                                    .ahead_us = AHEAD_MAX_US + AHEAD_MARGIN_US,
                                    .last = true};
  struct found_id *found = reader_found(s);
  size_t count = READ_MAX, total = 0, pages = 0;
  struct err err = {0};
  late->count = 0;
  late->more = false;
  while (count == READ_MAX && !late->more) {
    if (!found || !scheduler_db_ok(s, s->store->ops->find(s->ss, &range, until, found, &count, &err), &err))
      return false;
    for (size_t i = 0; i < count && !late->more; i++)
      add_late(s, group->lane, &found[i], late);
    if (count > 0)
      until = (struct store_cursor){found[count - 1].next_us, found[count - 1].id - 1};
    total += count;
    pages++;
  }
  const int64_t ended = clock_mono_us();
  if (!bound)
    poll_late_done(&s->pace, from_us, ended, ended - began, total, pages);
  return true;
}

static bool find_late(struct scheduler *s, struct group *group, struct store_cursor until, struct late *late) {
  UNFILLED struct late compared;
  return look_behind(s, group, until, late) &&
         (!poll_late_compares(&s->pace) || look_behind(s, group, until, &compared));
}

/* Nobody of its order_key goes before it, whatever is read first. */
static void keep_turn(struct lane *lane, const struct task *task) {
  if (order_may_go(&lane->order, task)) {
    order_reserve(&lane->order, task);
    (void)order_missed(&lane->order, task->id, true);
  } else if (!order_blocked(&lane->order, task) && order_wait(&lane->order, task)) {
    lane_sweep_first(lane);
  }
}

static bool any_key(const struct task *tasks, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (tasks[i].order_key.len > 0)
      return true;
  return false;
}

static void add_keyed(struct late *late, struct task *task) {
  bool goes = !task->unreadable, keyed = goes && task->order_key.len > 0;
  late->keyless = late->keyless || (goes && !keyed);
  if (keyed && late->keyed_count < LATE_KEYED) {
    late->keyed[late->keyed_count++] = task;
    return;
  }
  late->more = late->more || keyed;
  task_release(task);
}

/* Finds those that have an order_key. Thousands may have none, and stay where they are: somebody holds them. */
static bool read_keyed(struct scheduler *s, const struct group *group, struct late *late) {
  for (size_t at = 0, n; at < late->count && late->keyed_count < LATE_KEYED; at += n) {
    struct task_batch *batch = NULL;
    struct err err = {0};
    n = late->count - at < LATE_PAGE ? late->count - at : LATE_PAGE;
    enum store_status status = s->store->ops->read_ids(
        s->ss, TASK_SCHEDULED, shard_bit(group->shard), scheduler_host(s, group->shard), &late->ids[at], n,
        AHEAD_MAX_US + AHEAD_MARGIN_US, (struct store_limit){0}, &batch, &err);
    if (!scheduler_db_ok(s, status, &err))
      return false;
    for (size_t i = 0, rows = batch ? batch->count : 0; i < rows; i++) /* it may be gone with its last task */
      add_keyed(late, &batch->tasks[i]);
    late->more = late->more || (late->keyed_count == LATE_KEYED && at + n < late->count);
  }
  return true;
}

static int by_due(const void *a, const void *b) {
  return reader_by_due(*(struct task *const *)a, *(struct task *const *)b);
}

/* A sweep is to find out which of a key is the first. Where the last one, or this one so far, has met nothing that
 * goes, the next one would not either: it rests. */
static void sweep_first(struct group *group) {
  int64_t now = clock_mono_us();
  bool sweeps = group->swept.id != 0;
  if (sweeps && group->sweep_took == 0)
    group->rest_until_us = now + pace_rest_us(group->sweep_cost_us, SWEEP_SHARE, PASS_REST_MAX_US);
  else if (!sweeps)
    group->rest_until_us = group->sweep_at_us;
  group->rests = now < group->rest_until_us;
  group->sweep_cost_us = 0;
  lane_sweep_first(group->lane);
}

bool reader_keeps_order(struct scheduler *s, struct group *group, struct store_cursor from, const struct task *tasks,
                        size_t count) {
  struct lane *lane = group->lane;
  UNFILLED struct late late;
  if ((from.next_us == 0 && from.id == 0) || !any_key(tasks, count))
    return true;
  if (!find_late(s, group, from, &late))
    return false;
  late.keyed_count = 0;
  late.keyless = false;
  bool read = read_keyed(s, group, &late), first = late.more && late.keyless;
  qsort(late.keyed, late.keyed_count, sizeof *late.keyed, by_due);
  for (size_t i = 0; i < late.keyed_count; i++) {
    if (read && late.more)
      first = first || order_may_go(&lane->order, late.keyed[i]);
    else if (read)
      keep_turn(lane, late.keyed[i]);
    task_release(late.keyed[i]);
  }
  if (read && first) /* there are too many to know which of a key is the first */
    sweep_first(group);
  return read && !first;
}
