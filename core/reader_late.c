/* SPDX-License-Identifier: MIT
 *
 * core/reader_late.c - before a task with an order_key leaves: whether the index has others of its key that go before
 * it and that nobody here knows.
 *
 * Due times are given before commits, so a task may become visible behind the cursor of its group, and the next one of
 * its order_key beyond it a moment later. Tasks of a higher priority are another group, which was read earlier: one
 * that came into that since goes before those that are read now. A sweep, or the next reading of that group, would meet
 * the first one in time, but after the second.
 *
 * So whoever reads a task with an order_key asks the index once more, in one statement: for its group up to where that
 * is read from, and for the groups of the higher priorities from their beginnings up to now, behind their cursors and
 * beyond them, also where no group is known. That is a later snapshot than the one in which the task was met. A task
 * that was committed before the one at hand was inserted is visible in each snapshot that shows this one: so it is in
 * what was read with it (the same group, beyond that position), or in what is asked here, or it was taken before, and
 * is known or over. What is due later than the task at hand does not go before it.
 */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/reader.h"

enum { LATE_ROWS = 256 }; /* that keep their turn */

/* Rows with an order_key that nobody knows here, the last one of each group first. Of others there may be any number
 * that stay where they are, since somebody holds them: they go before nobody. */
struct late {
  uint64_t ids[LATE_ROWS];
  size_t count;
  bool more;           /* there are others */
  unsigned priorities; /* bits of those that have some */
};

/* What is asked for: ranges of which there may be more, each walked backwards. Of higher priorities of which no group
 * is known there is mostly nothing: whether there is something is asked for all of them at once, in the last range. */
struct look {
  struct store_range ranges[STORE_PRIORITY_MAX];
  struct store_cursor until[STORE_PRIORITY_MAX];
  size_t counts[STORE_PRIORITY_MAX], count;
  int64_t from_us;
  unsigned unknown; /* bits: these */
};

static void add_late(struct scheduler *s, const struct lane *lane, const struct found_id *found, uint8_t priority,
                     struct late *late) {
  if (found->foreign || !found->keyed || flight_by_id(s->flights, found->id) || order_knows(&lane->order, found->id))
    return;
  late->priorities |= 1u << priority;
  late->more = late->count == LATE_ROWS;
  if (!late->more)
    late->ids[late->count++] = found->id;
}

static bool is_start(struct store_cursor at) { return at.next_us == 0 && at.id == 0; }

/* Of a group that is not read to its end what is due has not been met, however far it is from now. */
static void add_range(struct scheduler *s, struct group *group, uint8_t priority, struct store_cursor until,
                      struct look *look) {
  const struct group *of = lane_group(group->lane, group->shard, priority, false);
  int64_t from_us = look->from_us;
  if (of && priority > group->priority)
    from_us = earlier(from_us, scheduler_read_from(s, of, of->cursor).next_us);
  look->ranges[look->count] = (struct store_range){.state = TASK_SCHEDULED,
                                                   .shard = group->shard,
                                                   .priority = priority,
                                                   .route = group->lane->name,
                                                   .after = {from_us, 0},
                                                   .host = scheduler_host(s, group->shard),
                                                   .ahead_us = AHEAD_MAX_US + AHEAD_MARGIN_US,
                                                   .last = true};
  look->until[look->count++] = until;
}

static const struct store_cursor to_the_end = {INT64_MAX, UINT64_MAX};

static void add_higher(struct scheduler *s, struct group *group, struct look *look) {
  for (int priority = group->priority + 1; priority <= STORE_PRIORITY_MAX; priority++)
    if (lane_group(group->lane, group->shard, (uint8_t)priority, false))
      add_range(s, group, (uint8_t)priority, to_the_end, look);
    else
      look->unknown |= 1u << priority;
  if (!look->unknown)
    return;
  add_range(s, group, (uint8_t)__builtin_ctz(look->unknown), to_the_end, look);
  look->ranges[look->count - 1].priorities = look->unknown;
}

/* There is something: they are asked one by one. */
static void add_unknown(struct scheduler *s, struct group *group, struct look *look) {
  for (int priority = group->priority + 1; priority <= STORE_PRIORITY_MAX; priority++)
    if (look->unknown & 1u << priority)
      add_range(s, group, (uint8_t)priority, to_the_end, look);
}

/* One page of each. Keeps the ranges that have more, up to where that is. */
static bool look_on(struct scheduler *s, struct group *group, struct look *look, struct late *late, size_t *found) {
  const struct found_id *at = reader_found(s);
  struct err err = {0};
  size_t kept = 0;
  const uint32_t limit = READ_MAX / (uint32_t)look->count;
  for (size_t i = 0; i < look->count; i++)
    look->ranges[i].limit = look->ranges[i].priorities ? 1 : limit;
  if (!at ||
      !scheduler_db_ok(
          s, s->store->ops->find(s->ss, look->ranges, look->until, look->count, s->found, look->counts, &err), &err))
    return false;
  bool unknown = look->unknown && look->counts[look->count - 1] > 0;
  for (size_t i = 0; i < look->count && !look->ranges[i].priorities; i++) {
    const size_t count = look->counts[i];
    for (size_t j = 0; j < count && !late->more; j++)
      add_late(s, group->lane, &at[j], look->ranges[i].priority, late);
    at += count;
    *found += count;
    if (count < limit)
      continue;
    look->ranges[kept] = look->ranges[i];
    look->until[kept++] = (struct store_cursor){at[-1].next_us, at[-1].id - 1};
  }
  look->count = kept;
  if (unknown)
    add_unknown(s, group, look);
  look->unknown = 0;
  return true;
}

/* Up to where all that is left has been walked back. */
static int64_t walked_to(const struct look *look) {
  int64_t at_us = INT64_MIN;
  for (size_t i = 0; i < look->count; i++)
    at_us = later(at_us, look->until[i].next_us);
  return at_us;
}

/* A page at a time: most positions are of tasks in flight, or known to wait; of bound ones many may be others'. */
static bool look_behind(struct scheduler *s, struct group *group, struct store_cursor until, struct late *late) {
  const bool bound = group->shard == SHARD_BOUND;
  const int64_t began = clock_mono_us(), db_now = scheduler_db_now_us(s),
                from_us = bound ? poll_late_bound_from_us(&s->pace, db_now, began)
                                : poll_late_from_us(&s->pace, db_now, began);
  struct look look = {.from_us = from_us};
  size_t total = 0, pages = 0;
  bool ends = false;
  if (!is_start(until))
    add_range(s, group, group->priority, until, &look);
  add_higher(s, group, &look);
  late->count = 0;
  late->priorities = 0;
  late->more = false;
  for (; look.count > 0 && !late->more && !ends; pages++) {
    if (!look_on(s, group, &look, late, &total))
      return false;
    const int64_t now = clock_mono_us();
    ends = bound && look.count > 0 && poll_late_bound_ends(&s->pace, walked_to(&look), db_now, now, now - began);
  }
  const int64_t ended = clock_mono_us();
  if (!bound && pages > 0)
    poll_late_done(&s->pace, from_us, ended, ended - began, total, pages);
  return true;
}

static bool find_late(struct scheduler *s, struct group *group, struct store_cursor until, struct late *late) {
  UNFILLED struct late compared;
  return look_behind(s, group, until, late) &&
         (!poll_late_compares(&s->pace) || look_behind(s, group, until, &compared));
}

static bool any_key(const struct task *tasks, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (tasks[i].order_key.len > 0)
      return true;
  return false;
}

static int by_turn(const void *a, const void *b) {
  const struct task *x = a, *y = b;
  return x->priority != y->priority ? (int)y->priority - (int)x->priority : reader_by_due(x, y);
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

/* Nor does a sweep meet what is beyond the cursors: where a higher priority has some it is read, before this group. */
static void read_higher(struct scheduler *s, struct group *group, unsigned priorities) {
  for (int priority = group->priority + 1; priority <= STORE_PRIORITY_MAX; priority++) {
    struct group *higher =
        priorities & 1u << priority ? lane_group(group->lane, group->shard, (uint8_t)priority, true) : NULL;
    if (!higher)
      continue; /* none, or no memory now */
    if (higher->epoch == 0 && higher->seen == 0)
      higher->epoch = scheduler_epoch(s, group->lane, group->shard); /* it is new */
    higher->due = true;
  }
}

/* Of more than are read it is not known which of a key is the first; those that cannot go now line up in any order.
 * True where a sweep is to meet the others. It would not be of use for what does not find room to wait: it has met
 * that. */
static bool needs_sweep(struct lane *lane, const struct task *task, bool *no_room) {
  if (order_may_go(&lane->order, task) || order_blocked(&lane->order, task))
    return true;
  if (order_wait(&lane->order, task))
    lane_sweep_first(lane);
  *no_room = *no_room || !order_knows(&lane->order, task->id);
  return false;
}

/* Keeps the turns of those that were found. True: a sweep goes first. */
static bool keep_turns(struct lane *lane, const struct late *late, struct task_batch *batch) {
  bool needed = false, no_room = false;
  if (batch)
    qsort(batch->tasks, batch->count, sizeof *batch->tasks, by_turn);
  for (size_t i = 0, rows = batch ? batch->count : 0; i < rows; i++) {
    const struct task *task = &batch->tasks[i];
    if (task->unreadable || task->order_key.len == 0)
      continue;
    if (late->more)
      needed = needs_sweep(lane, task, &no_room) || needed;
    else
      reader_keep_turn(lane, task);
  }
  return late->more && (needed || !no_room);
}

bool reader_keeps_order(struct scheduler *s, struct group *group, struct store_cursor from, const struct task *tasks,
                        size_t count) {
  struct task_batch *batch = NULL;
  struct err err = {0};
  UNFILLED struct late late;
  if ((is_start(from) && group->priority >= STORE_PRIORITY_MAX) || !any_key(tasks, count))
    return true;
  if (!find_late(s, group, from, &late))
    return false;
  if (late.count > 0 &&
      !scheduler_db_ok(s,
                       s->store->ops->read_ids(s->ss, TASK_SCHEDULED, shard_bit(group->shard),
                                               scheduler_host(s, group->shard), late.ids, late.count,
                                               AHEAD_MAX_US + AHEAD_MARGIN_US, (struct store_limit){0}, &batch, &err),
                       &err))
    return false;
  bool sweeps = keep_turns(group->lane, &late, batch);
  reader_give_up(batch);
  if (sweeps) {
    sweep_first(group);
    read_higher(s, group, late.priorities);
  }
  return !sweeps;
}
