/* SPDX-License-Identifier: MIT
 *
 * core/reader_pick.c - another task than the one whose turn it is, to find out whether a destination fails or only the
 * tasks at the head of its route do.
 *
 * The head of a route, the highest priority and the earliest due time, is where whoever inserted many broken tasks has
 * them: they would be its only probes. So most probes are taken from elsewhere: of all groups now the one that came due
 * last, now one of any age, now of a single group, those that have not failed yet before others. What has an order_key,
 * is to move or was in flight in a crash stays where it is: others may have to go before it.
 *
 * A picked row lies beyond the cursor of its group, or behind it. Reading meets it again, and knows that it is in
 * flight.
 */
#include "core/base/clock.h"
#include "core/reader.h"

enum {
  PICK_GROUPS = 16,      /* in which one is looked for, */
  PICK_ROWS = 16,        /* in so many rows of each */
  PICK_SHARE = 4,        /* so many times as long as it took the route waits, but for a probe */
  PICK_NEAR_US = 1 << 13 /* the shortest step back from now */
};

/* Spreads 0, 1, 2, .. evenly over 0 .. count - 1, whatever count is meanwhile. */
static size_t spread(uint32_t n, uint32_t by, size_t count) { return (size_t)(((uint64_t)(n * by) * count) >> 32); }

int64_t reader_pick_until_us(uint32_t n, int64_t oldest_us, int64_t now_us) {
  unsigned steps = 1;
  if (n % 4 < 2)
    return now_us;
  while (steps < 50 && now_us - oldest_us > (int64_t)PICK_NEAR_US << steps)
    steps++;
  return now_us - ((int64_t)PICK_NEAR_US << spread(n / 4 * 2 + n % 2, UINT32_C(3242174889), steps));
}

/* Where rows are looked for, and those that were found. */
struct some {
  struct group *group[PICK_GROUPS];
  size_t groups;
  struct found_id found[PICK_GROUPS * PICK_ROWS];
  uint64_t ids[PICK_GROUPS * PICK_ROWS];
  size_t count;
  uint64_t shards; /* bits */
  const char *host;
};

static bool may_have_some(const struct group *group, int64_t now_us) {
  return group->readable && !group->rests && (group->due || group->next_us <= now_us);
}

/* Every other time one of them, whatever the others have; of many, others come first each time. Bound tasks are read by
 * themselves. */
static void choose_groups(const struct scheduler *s, const struct lane *lane, int64_t now_us, struct some *some) {
  size_t due = 0, at = 0, most = lane->picks % 2 ? 1 : PICK_GROUPS;
  some->groups = 0;
  for (const struct group *group = lane->groups; group; group = group->next)
    due += may_have_some(group, now_us);
  size_t first = spread(lane->picks / 2, UINT32_C(2654435769), due);
  for (int turn = 0; turn < 2; turn++)
    for (struct group *group = lane->groups; group; group = group->next) {
      if (!may_have_some(group, now_us) || (at++ % (due ? due : 1) < first) != (turn == 1))
        continue;
      bool fits = some->groups < most &&
                  (!some->groups || (group->shard != SHARD_BOUND && some->group[0]->shard != SHARD_BOUND));
      if (fits)
        some->group[some->groups++] = group;
    }
  some->host = some->groups ? scheduler_host(s, some->group[0]->shard) : NULL;
}

/* The last rows of each that are due by then and that nobody knows here. */
static bool find_some(struct scheduler *s, const struct lane *lane, int64_t until_us, struct some *some) {
  some->count = 0;
  some->shards = 0;
  for (size_t i = 0; i < some->groups; i++) {
    const struct group *group = some->group[i];
    const struct store_range range = {.state = TASK_SCHEDULED,
                                      .shard = group->shard,
                                      .priority = group->priority,
                                      .route = lane->name,
                                      .limit = PICK_ROWS,
                                      .host = some->host,
                                      .last = true};
    struct found_id *found = some->found;
    size_t count = 0;
    struct err err = {0};
    enum store_status status =
        s->store->ops->find(s->ss, &range, &(struct store_cursor){until_us, UINT64_MAX}, 1, found, &count, &err);
    if (!scheduler_db_ok(s, status, &err))
      return false;
    for (size_t j = 0; j < count; j++)
      if (!found[j].foreign && !flight_by_id(s->flights, found[j].id) && !order_knows(&lane->order, found[j].id))
        some->ids[some->count++] = found[j].id;
    some->shards |= shard_bit(group->shard);
  }
  return some->count > 0;
}

static bool may_be_picked(const struct task *task) {
  return !task->unreadable && !task->moves && task->order_key.len == 0 && task->recoveries == 0;
}

static bool is_better(const struct task *task, const struct task *than) {
  return task->failures != than->failures ? task->failures < than->failures : reader_by_due(task, than) > 0;
}

/* The one among them that has failed least, and of these the one that came due last; false: there is none that may go.
 */
static bool choose(struct scheduler *s, const struct some *some, uint64_t *id, uint8_t *shard) {
  struct task_batch *batch = NULL;
  struct err err = {0};
  const struct task *best = NULL;
  const struct store_limit without_payloads = {0};
  enum store_status status = s->store->ops->read_ids(s->ss, TASK_SCHEDULED, some->shards, some->host, some->ids,
                                                     some->count, 0, without_payloads, &batch, &err);
  if (!scheduler_db_ok(s, status, &err))
    return false;
  for (size_t i = 0, rows = batch ? batch->count : 0; i < rows; i++)
    if (may_be_picked(&batch->tasks[i]) && (!best || is_better(&batch->tasks[i], best)))
      best = &batch->tasks[i];
  *id = best ? best->id : 0;
  *shard = best ? best->shard : 0;
  reader_give_up(batch);
  return *id != 0;
}

static int64_t oldest_us(const struct some *some) {
  int64_t oldest = INT64_MAX;
  for (size_t i = 0; i < some->groups; i++)
    oldest = earlier(oldest, some->group[i]->next_us);
  return oldest;
}

static uint64_t epoch_of(const struct some *some, uint8_t shard) {
  for (size_t i = 0; i < some->groups; i++)
    if (some->group[i]->shard == shard)
      return some->group[i]->epoch;
  return 0;
}

static bool pick(struct scheduler *s, struct lane *lane) {
  const int64_t now_us = scheduler_db_surely_us(s);
  UNFILLED struct some some;
  uint64_t id;
  uint8_t shard;
  choose_groups(s, lane, now_us, &some);
  const int64_t until_us = reader_pick_until_us(lane->picks++, oldest_us(&some), now_us);
  if (!find_some(s, lane, until_us, &some) || !choose(s, &some, &id, &shard))
    return false;
  const struct shard_lease lease = {.shard = shard, .epoch = epoch_of(&some, shard), .owner = s->instance};
  const struct reading reading = {.lane = lane,
                                  .recorded = reader_records_claims(s, lane, shard),
                                  .leases = &lease,
                                  .lease_count = 1,
                                  .began_us = clock_mono_us(),
                                  .most = 1,
                                  .due_until_us = now_us};
  struct task_batch *batch = NULL;
  struct err err = {0};
  enum store_status status = s->store->ops->read_ids(s->ss, TASK_SCHEDULED, shard_bit(shard), some.host, &id, 1, 0,
                                                     reader_inline(s, lane, reading.recorded, 1), &batch, &err);
  return scheduler_db_ok(s, status, &err) && reader_take(s, &reading, batch) > 0;
}

bool reader_pick(struct scheduler *s, struct lane *lane, int64_t *rest_us) {
  int64_t began_us = clock_mono_us();
  bool took = pick(s, lane);
  *rest_us = pace_rest_us(clock_mono_us() - began_us, PICK_SHARE, REST_MAX_US); /* the others waited */
  return took;
}
