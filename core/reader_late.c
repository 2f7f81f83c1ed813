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
#include "core/base/clock.h"
#include "core/reader.h"

enum { LATE_ROWS = 256 }; /* whose order_keys are read */

struct late {
  uint64_t ids[LATE_ROWS];
  size_t count;
  bool more; /* there are others */
};

static void add_late(struct scheduler *s, const struct lane *lane, const struct found_id *found, struct late *late) {
  if (flight_by_id(s->flights, found->id) || order_knows(&lane->order, found->id))
    return;
  late->more = late->count == LATE_ROWS;
  if (!late->more)
    late->ids[late->count++] = found->id;
}

/* From the cursor back, a page at a time: most positions are of tasks in flight, or known to wait. */
static bool look_behind(struct scheduler *s, struct group *group, struct store_cursor until, struct late *late) {
  const int64_t began = clock_mono_us(), from_us = poll_late_from_us(&s->pace, scheduler_db_now_us(s), began);
  const struct store_range range = {.state = TASK_SCHEDULED,
                                    .shard = group->shard,
                                    .priority = group->priority,
                                    .route = group->lane->name,
                                    .after = {from_us, 0},
                                    .limit = READ_MAX,
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

bool reader_keeps_order(struct scheduler *s, struct group *group, struct store_cursor from, const struct task *tasks,
                        size_t count) {
  struct lane *lane = group->lane;
  UNFILLED struct late late;
  struct task_batch *batch = NULL;
  struct err err = {0};
  bool first = false;
  if ((from.next_us == 0 && from.id == 0) || !any_key(tasks, count))
    return true;
  if (!find_late(s, group, from, &late))
    return false;
  if (late.count == 0)
    return true;
  enum store_status status =
      s->store->ops->read_ids(s->ss, TASK_SCHEDULED, group->shard, scheduler_host(s, group->shard), late.ids,
                              late.count, AHEAD_MAX_US + AHEAD_MARGIN_US, (struct store_limit){0}, &batch, &err);
  if (!scheduler_db_ok(s, status, &err))
    return false;
  reader_sort_by_due(batch);
  for (size_t i = 0, rows = batch ? batch->count : 0; i < rows; i++) {
    struct task *task = &batch->tasks[i];
    bool goes = !task->unreadable;
    if (goes && late.more)
      first = first || task->order_key.len == 0 || order_may_go(&lane->order, task);
    else if (goes && task->order_key.len > 0)
      keep_turn(lane, task);
    task_release(task);
  }
  if (first) /* there are too many to know which of a key is the first */
    lane_sweep_first(lane);
  return !first;
}
