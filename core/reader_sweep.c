/* SPDX-License-Identifier: MIT
 *
 * core/reader_sweep.c - rows behind the cursors: what committed late, was handed back, waits for its turn, or is
 * overdue.
 *
 * A sweep goes over a group's part of the index from its start to the cursor, a page at a time, and reads by id what is
 * neither in flight nor known to wait.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/reader.h"

enum {
  SWEEP_ROWS = 256,
  SKIP_ROWS = 256,
  SWEEP_BYTES = 4 * 1024 * 1024,
  OVERDUE_ROWS = 100,
  OVERDUE_MAX = 500, /* of one route, not settled yet */
  OVERDUE_SLICE_US = 2 * 1000,
  TAKE_BACK_ROWS = 4096,
  EXPIRE_ROWS = 500,
  EXPIRE_SLICE_US = 5 * 1000,
  EXPIRE_EVERY_US = 1000 * 1000, /* how much later than its expires_at a row that waits may end */
  BOUND_CLAIMS_US = 1000 * 1000, /* how often to look for claims of instances that died */
};

struct found_id *reader_found(struct scheduler *s) {
  return s->found ? s->found : (s->found = calloc(READ_MAX, sizeof *s->found));
}

/* Rows of the group up to its cursor that are due and neither in flight nor waiting for their turn, from where the last
 * page ended. *more: the pass has not come to its end. */
static size_t find_behind(struct scheduler *s, struct group *group, uint32_t credit, uint64_t *ids, size_t *found,
                          bool *more) {
  struct lane *lane = group->lane;
  uint32_t limit = group->in_flight + credit + SWEEP_ROWS;
  limit = limit < READ_MAX ? limit : READ_MAX;
  if (group->shard == SHARD_BOUND)
    limit = SWEEP_ROWS; /* of others there may be any number */
  /* More than may take off: those that turn out to wait must not make a page of their own each. Not many large ones:
   * the server takes its time over them. */
  double page = 1 + SWEEP_BYTES / (lane->average_bytes + 1);
  uint32_t rows = page < SWEEP_ROWS ? (uint32_t)page : SWEEP_ROWS, most = credit > rows ? credit : rows;
  struct store_range range = {.state = TASK_SCHEDULED,
                              .shard = group->shard,
                              .priority = group->priority,
                              .route = lane->name,
                              .after = scheduler_read_from(s, group, group->swept),
                              .limit = limit,
                              .host = scheduler_host(s, group->shard)};
  size_t wanted = 0, i = 0;
  struct err err = {0};
  *more = false;
  if (!reader_found(s) ||
      !scheduler_db_ok(s, s->store->ops->find(s->ss, &range, &group->cursor, 1, s->found, found, &err), &err))
    return 0;
  for (; i < *found && wanted < most; i++) {
    group->swept = (struct store_cursor){s->found[i].next_us, s->found[i].id};
    if (!s->found[i].foreign && !flight_by_id(s->flights, s->found[i].id) && !order_knows(&lane->order, s->found[i].id))
      ids[wanted++] = s->found[i].id;
  }
  *more = i < *found || *found == limit;
  return wanted;
}

/* A pass is over. Where it found nothing to take, the next one waits: a late row one poll interval at most, or longer
 * where looking takes its share of the time. */
static void end_pass(const struct scheduler *s, struct group *group) {
  int64_t poll_us = s->config->config->engine.poll_max_ms * 1000, now = clock_mono_us();
  int64_t share = SWEEP_SHARE * (1 + gauge_value(&group->lane->waiting_groups));
  int64_t rest_us = pace_rest_us(group->sweep_cost_us, share, PASS_REST_MAX_US);
  if (group->sweep_took == 0)
    group->sweep_at_us = now + (rest_us > poll_us ? rest_us : poll_us);
  group->sweep = group->sweep_again && group->sweep_took > 0;
  group->sweep_again = group->sweep_first = false;
  group->swept = (struct store_cursor){0};
  group->sweep_cost_us = 0;
  group->sweep_took = 0;
}

int reader_by_due(const void *a, const void *b) {
  const struct task *x = a, *y = b;
  if (x->due_us != y->due_us)
    return x->due_us < y->due_us ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

void reader_sort_by_due(struct task_batch *batch) {
  if (batch)
    qsort(batch->tasks, batch->count, sizeof *batch->tasks, reader_by_due);
}

/* Where somebody holds the rows that were tried to claim, the pass goes on with those for which there was no room: from
 * its start it would meet the same ones again. */
static bool go_on_at(const struct scheduler *s, struct group *group, uint64_t id, size_t found) {
  size_t at = 1;
  while (id && at < found && s->found[at].id != id)
    at++;
  if (!id || at >= found)
    return false;
  group->swept = (struct store_cursor){s->found[at - 1].next_us, s->found[at - 1].id};
  return true;
}

bool reader_sweep(struct scheduler *s, struct group *group, uint32_t credit) {
  UNFILLED uint64_t ids[READ_MAX];
  bool more = false;
  uint64_t untried = 0;
  struct shard_lease lease = {.shard = group->shard, .epoch = group->epoch, .owner = s->instance};
  struct reading reading = {.lane = group->lane,
                            .recorded = reader_records_claims(s, group->lane, group->shard),
                            .leases = &lease,
                            .lease_count = 1,
                            .began_us = clock_mono_us(),
                            .most = credit,
                            .untried = &untried};
  struct task_batch *batch = NULL;
  struct err err = {0};
  const struct store_cursor from = scheduler_read_from(s, group, group->swept);
  size_t found = 0, wanted = find_behind(s, group, credit, ids, &found, &more), took = 0;
  if (s->retry_wait_us == 0 && wanted > 0) {
    enum store_status status =
        s->store->ops->read_ids(s->ss, TASK_SCHEDULED, shard_bit(group->shard), scheduler_host(s, group->shard), ids,
                                wanted, 0, reader_inline(s, reading.lane, reading.recorded, wanted), &batch, &err);
    if (scheduler_db_ok(s, status, &err)) {
      reader_sort_by_due(batch);
      if (batch && !reader_keeps_order(s, group, from, batch->tasks, batch->count)) {
        reader_give_up(batch);
        return true;
      }
      reading.due_until_us = scheduler_db_surely_us(s); /* what is claimed or read again may be due later by then */
      took = reader_take(s, &reading, batch);
      more = go_on_at(s, group, untried, found) || more;
    }
  }
  if (group->shard == SHARD_BOUND && took == 0)
    group->sweep_rest_until_us = reader_bound_rest_until_us(s, group, reading.began_us, SWEEP_SHARE);
  group->sweep_took += took;
  s->busy = s->busy || took > 0;
  group->sweep_cost_us += clock_mono_us() - reading.began_us;
  if (!more)
    end_pass(s, group);
  return took > 0 || more;
}

void reader_give_up(struct task_batch *batch) {
  for (size_t i = 0, rows = batch ? batch->count : 0; i < rows; i++)
    task_release(&batch->tasks[i]);
}

static int compare_ids(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Sorts the ids; which of them have a row that is due. */
static void find_here(uint64_t *ids, size_t count, const struct task_batch *batch, bool *here) {
  memset(here, 0, count * sizeof *here);
  qsort(ids, count, sizeof *ids, compare_ids);
  for (size_t i = 0; batch && i < batch->count; i++) {
    const uint64_t *at = bsearch(&batch->tasks[i].id, ids, count, sizeof *ids, compare_ids);
    if (at)
      here[at - ids] = true;
  }
}

/* Those of the ids that have no row any more, or none that is due, lose their turn. Returns how many. */
static size_t miss_absent(struct lane *lane, uint64_t *ids, size_t count, uint64_t shards,
                          const struct task_batch *batch) {
  size_t absent = 0;
  bool renumbered = false;
  UNFILLED bool here[READ_MAX];
  find_here(ids, count, batch, here);
  for (size_t i = 0; i < count; i++) {
    absent += !here[i];
    renumbered = renumbered || (!here[i] && ids[i] >= STORE_ID_MAY_CHANGE);
    if (!here[i] && order_missed(&lane->order, ids[i], false))
      lane_sweep_first(lane);
  }
  /* Its task may have another id by now, and its place in the key: a sweep finds out who goes first. */
  bool sweep = renumbered && order_forget_shards(&lane->order, shards);
  if (sweep || renumbered)
    lane_sweep_first(lane);
  return absent;
}

/* Where one is gone those behind it may be too: an application deletes thousands with one statement, and each would
 * take a round trip. */
static void skip_absent(struct scheduler *s, struct lane *lane, uint64_t shards, const char *host) {
  uint64_t ids[SKIP_ROWS];
  bool here[SKIP_ROWS];
  struct task_batch *batch = NULL;
  struct err err = {0};
  const struct store_limit limit = {0}; /* without payloads */
  size_t count = order_behind(&lane->order, shards, ids, SKIP_ROWS);
  if (count == 0 || !scheduler_db_ok(s,
                                     s->store->ops->read_ids(s->ss, TASK_SCHEDULED, shards, host, ids, count,
                                                             AHEAD_MAX_US + AHEAD_MARGIN_US, limit, &batch, &err),
                                     &err))
    return;
  find_here(ids, count, batch, here);
  for (size_t i = 0; i < count; i++)
    if (!here[i])
      order_gone(&lane->order, ids[i]);
  reader_give_up(batch);
}

/* Tasks whose turn it is, off the queue. */
struct called {
  uint64_t ids[READ_MAX]; /* those that may be read now first */
  uint8_t shard[READ_MAX];
  size_t count, readable;
  struct shard_lease leases[STORE_SHARDS_MAX]; /* of the shards that may be read */
  size_t lease_count;
  uint64_t shards, kept; /* bits: these, and those that are ours at all */
  bool recorded;
};

static void add_shard(struct scheduler *s, struct lane *lane, uint8_t shard, struct called *called) {
  const struct instant instant = clock_instant();
  const struct shard_lease lease = {.shard = shard, .epoch = scheduler_epoch(s, lane, shard), .owner = s->instance};
  if (!lease.epoch) {
    if (order_forget_shards(&lane->order, shard_bit(shard)))
      lane_sweep_first(lane);
    return;
  }
  called->kept |= shard_bit(shard);
  if (!reader_may_read(s, lane, shard, lease.epoch, &instant))
    return;
  called->shards |= shard_bit(shard);
  called->recorded = called->recorded || reader_records_claims(s, lane, shard);
  called->leases[called->lease_count++] = lease;
}

static void choose_called(struct scheduler *s, struct lane *lane, uint32_t credit, struct called *called) {
  size_t all = order_called(&lane->order, called->ids, called->shard, credit < READ_MAX ? credit : READ_MAX);
  uint64_t seen = 0;
  called->count = called->readable = called->lease_count = 0;
  called->shards = called->kept = 0;
  called->recorded = false;
  for (size_t i = 0; i < all; i++) {
    const uint64_t shard = shard_bit(called->shard[i]), id = called->ids[i];
    if (!(seen & shard))
      add_shard(s, lane, called->shard[i], called);
    seen |= shard;
    if (!(called->kept & shard))
      continue;
    called->ids[called->count] = id;
    if (called->shards & shard) {
      called->ids[called->count] = called->ids[called->readable];
      called->ids[called->readable++] = id;
    }
    called->count++;
  }
}

size_t reader_take_called(struct scheduler *s, struct lane *lane, uint32_t credit) {
  UNFILLED struct called called;
  const int64_t now = clock_mono_us();
  size_t took = 0;
  order_call_due(&lane->order, scheduler_db_now_us(s) + s->ahead_us);
  if (now < lane->call_at_us)
    return 0;
  choose_called(s, lane, credit, &called);
  if (called.count == 0)
    return 0;
  const struct reading reading = {.lane = lane,
                                  .recorded = called.recorded,
                                  .leases = called.leases,
                                  .lease_count = called.lease_count,
                                  .began_us = now,
                                  .most = credit,
                                  .due_until_us = scheduler_db_surely_us(s)};
  const char *host = scheduler_host(s, called.shards == shard_bit(SHARD_BOUND) ? SHARD_BOUND : 0);
  struct task_batch *batch = NULL;
  struct err err = {0};
  if (called.readable > 0 &&
      scheduler_db_ok(s,
                      s->store->ops->read_ids(s->ss, TASK_SCHEDULED, called.shards, host, called.ids, called.readable,
                                              AHEAD_MAX_US + AHEAD_MARGIN_US,
                                              reader_inline(s, lane, called.recorded, called.readable), &batch, &err),
                      &err)) {
    took = miss_absent(lane, called.ids, called.readable, called.shards,
                       batch); /* the next of their keys have their turn at once */
    if (took > 0)
      skip_absent(s, lane, called.shards, host);
    took += reader_take(s, &reading, batch);
  }
  reader_settle_turns(s, lane, called.ids, called.count);
  if (took == 0) /* held by somebody, or too large for now */
    lane->call_at_us = now + s->config->config->engine.poll_max_ms * 1000;
  return took;
}

/* What somebody got past the schema's CHECKs does not become the name of a lane, nor of metrics. */
static const char *lane_name(const struct task *task) {
  return task->unreadable && strcmp(task->unreadable, "route") == 0 ? "(unreadable routes)" : task->route.data;
}

/* Rows that are not in flight come to this end without having been so. Returns the shards of those for which there was
 * no memory. */
static uint64_t end_rows(struct scheduler *s, struct task_batch *batch, enum flight_end end) {
  struct flight_list ended = {0};
  uint64_t left = 0;
  size_t rows = batch->count;
  int64_t now = clock_mono_us();
  for (size_t i = 0; i < rows; i++) {
    struct task *task = &batch->tasks[i];
    bool known = flight_of(s->flights, task) != NULL;
    struct lane *lane = known ? NULL : scheduler_lane_make(s, lane_name(task));
    task->attempt_now = task->attempt;
    struct flight *flight = lane ? reader_begin_flight(s, lane, NULL, task, now) : NULL;
    bool back = end == FLIGHT_RECOVER || end == FLIGHT_UNSENT; /* others of its order_key wait until it is */
    if (flight && back && lane->route && task->order_key.len > 0)
      flight->in_order = order_enter(&lane->order, flight);
    if (!flight && !known)
      left |= shard_bit(task->shard);
    if (flight && (end == FLIGHT_REFUSED || (back && task->unreadable)))
      reader_refuse_unreadable(flight, &ended);
    else if (flight)
      reader_end_flight(flight, end, NULL, NULL, &ended);
    else
      task_release(task);
  }
  mailbox_put(s->settler, &ended);
  return left;
}

size_t scheduler_end_misfits(struct scheduler *s, struct store_group *groups, size_t count) {
  int64_t deadline = clock_mono_us() + EXPIRE_SLICE_US;
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    struct task_batch *batch = NULL;
    struct err err = {0};
    const struct store_group group = groups[i];
    if (!group.misfit)
      groups[kept++] = group;
    if (!group.has_misfits || atomic_load(&s->on_hold) || s->retry_wait_us)
      continue;
    s->busy = true; /* there may be more */
    if (clock_mono_us() >= deadline)
      continue;
    enum store_status status = s->store->ops->read_misfits(s->ss, &group, EXPIRE_ROWS, &batch, &err);
    if (scheduler_db_ok(s, status, &err) && batch)
      (void)end_rows(s, batch, FLIGHT_REFUSED);
  }
  return kept;
}

/* One page of a group's due rows: those that are not in flight and whose time is over end. */
static void expire_page(struct scheduler *s, struct group *group) {
  struct found_id found[EXPIRE_ROWS];
  uint64_t ids[EXPIRE_ROWS];
  size_t found_count = 0, wanted = 0;
  struct task_batch *batch = NULL;
  struct err err = {0};
  struct store_range range = {.state = TASK_SCHEDULED,
                              .shard = group->shard,
                              .priority = group->priority,
                              .route = group->lane->name,
                              .after = scheduler_read_from(s, group, group->expiring),
                              .limit = EXPIRE_ROWS};
  enum store_status status =
      s->store->ops->find(s->ss, &range, &(struct store_cursor){INT64_MAX, UINT64_MAX}, 1, found, &found_count, &err);
  for (size_t i = 0; status == STORE_OK && i < found_count; i++)
    if (!flight_by_id(s->flights, found[i].id))
      ids[wanted++] = found[i].id;
  if (status == STORE_OK && wanted > 0)
    status = s->store->ops->expired(s->ss, TASK_SCHEDULED, group->shard, ids, &wanted, &err);
  if (status == STORE_OK && wanted > 0)
    status = s->store->ops->read_ids(s->ss, TASK_SCHEDULED, shard_bit(group->shard), NULL, ids, wanted, 0,
                                     (struct store_limit){0}, &batch, &err);
  if (!scheduler_db_ok(s, status, &err))
    return;
  if (batch)
    (void)end_rows(s, batch, FLIGHT_EXPIRED); /* the next pass meets what is left */
  bool more = found_count == EXPIRE_ROWS;
  if (more)
    lane_note_flood(group->lane, clock_mono_us());
  group->expiring = more ? (struct store_cursor){found[found_count - 1].next_us, found[found_count - 1].id}
                         : (struct store_cursor){0};
  if (!more)
    group->expired_pass = s->expire_pass;
}

/* A group with due rows that nobody reads now, and that this pass has not been through; NULL = none. Bound tasks are
 * the housekeeper's. */
static struct group *waiting_group(struct scheduler *s, int64_t now_us) {
  int64_t db_now = scheduler_db_now_us(s);
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (!lane->route || lane_ends_many(lane) || (!lane->order.waiting && scheduler_credit(s, lane, now_us) > 0))
      continue;
    for (struct group *group = lane->groups; group; group = group->next)
      if (group->expired_pass != s->expire_pass && (group->due || group->next_us <= db_now) &&
          group->shard != SHARD_BOUND && group->epoch &&
          leases_safe(s->leases, group->shard, group->epoch, clock_instant()))
        return group;
  }
  return NULL;
}

void scheduler_expire(struct scheduler *s) {
  int64_t began = clock_mono_us(), now = began;
  struct group *group = NULL;
  if (now < s->expire_at_us)
    return;
  while (s->retry_wait_us == 0 && now - began < EXPIRE_SLICE_US && (group = waiting_group(s, now))) {
    expire_page(s, group);
    now = clock_mono_us();
  }
  s->expire_cost_us += now - began;
  s->expire_at_us = now + pace_rest_us(now - began, SWEEP_SHARE, REST_MAX_US);
  if (group)
    return;
  s->expire_pass++;
  s->expire_at_us = now + later(EXPIRE_EVERY_US, pace_rest_us(s->expire_cost_us, SWEEP_SHARE, PASS_REST_MAX_US));
  s->expire_cost_us = 0;
}

/* One page of a group's overdue rows. Of a route only so many are on their way to the settler at a time: those of
 * others come between them. */
static void end_overdue(struct scheduler *s, struct store_group *found) {
  struct store_range range = {.state = found->state,
                              .shard = found->shard,
                              .priority = found->priority,
                              .route = found->route,
                              .after = {found->next_us - 1, UINT64_MAX}, /* nothing but what was deleted is before */
                              .limit = OVERDUE_MAX + OVERDUE_ROWS};
  struct lane *lane = scheduler_lane_make(s, found->route);
  struct found_id ids_found[OVERDUE_MAX + OVERDUE_ROWS];
  uint64_t ids[OVERDUE_ROWS];
  size_t found_count = 0, wanted = 0;
  struct err err = {0};
  const struct lease_slot *slot = &s->view[found->shard];
  if (!slot->epoch || slot->stage == LEASE_SHUT || !lane || found->next_us == INT64_MAX ||
      lane_unread(lane) + OVERDUE_ROWS > OVERDUE_MAX)
    return; /* none any more, or not yet */
  enum store_status status = s->store->ops->find(s->ss, &range, &(struct store_cursor){INT64_MAX, UINT64_MAX}, 1,
                                                 ids_found, &found_count, &err);
  if (!scheduler_db_ok(s, status, &err))
    return;
  found->next_us = found_count ? ids_found[0].next_us : INT64_MAX;
  for (size_t i = 0; i < found_count && wanted < OVERDUE_ROWS; i++)
    if (!flight_by_id(s->flights, ids_found[i].id))
      ids[wanted++] = ids_found[i].id;
  struct task_batch *batch = NULL;
  /* A claim of another host that lives may be in flight there, whatever its time. */
  const char *host = found->state == TASK_CLAIMED ? scheduler_host(s, found->shard) : NULL;
  if (wanted > 0)
    status = s->store->ops->read_ids(s->ss, found->state, shard_bit(found->shard), host, ids, wanted, 0,
                                     (struct store_limit){0}, &batch, &err);
  if (!scheduler_db_ok(s, status, &err) || !batch)
    return;
  s->busy = true; /* there may be more */
  if (wanted == OVERDUE_ROWS)
    lane_note_flood(lane, clock_mono_us());
  (void)end_rows(s, batch, found->state == TASK_CLAIMED ? FLIGHT_RECOVER : FLIGHT_NO_RESULT);
}

void scheduler_overdue(struct scheduler *s) {
  int64_t began = clock_mono_us(), now = began;
  if (now < s->overdue_at_us || atomic_load(&s->on_hold))
    return;
  for (size_t i = 0; i < s->overdue_count && s->retry_wait_us == 0 && now - began < OVERDUE_SLICE_US; i++) {
    end_overdue(s, &s->overdue[s->overdue_turn++ % s->overdue_count]);
    now = clock_mono_us();
  }
  s->overdue_at_us = now + pace_rest_us(now - began, SWEEP_SHARE, REST_MAX_US);
}

/* Claims of ours that nobody here knows. What is in flight is ours too, so all pages are read. */
static void take_back_own(struct scheduler *s, const struct shard_lease *leases, size_t count, uint64_t shards) {
  uint64_t after = 0;
  s->claims_unknown &= ~shards;
  for (size_t rows = TAKE_BACK_ROWS; rows == TAKE_BACK_ROWS;) {
    struct task_batch *batch = NULL;
    struct err err = {0};
    enum store_status status =
        s->store->ops->own_claims(s->ss, s->instance, leases, count, after, TAKE_BACK_ROWS, &batch, &err);
    if (!scheduler_db_ok(s, status, &err)) {
      s->claims_unknown |= shards;
      return;
    }
    rows = batch ? batch->count : 0;
    if (rows == 0)
      return;
    after = batch->tasks[rows - 1].id;
    s->claims_unknown |= end_rows(s, batch, FLIGHT_UNSENT);
  }
}

/* A page of claims that nobody works on, however long their calls might have taken. */
static void take_back_lost(struct scheduler *s, struct task_batch *batch, uint64_t shards) {
  if (!batch || batch->count < TAKE_BACK_ROWS)
    s->claims_lost &= ~shards;
  if (batch)
    s->claims_lost |= end_rows(s, batch, FLIGHT_RECOVER);
}

/* Those that were found and are not settled would be found again. */
static bool are_taken_back(const struct scheduler *s) {
  size_t out = 0;
  for (const struct lane *lane = s->lanes; lane; lane = lane->next)
    out += lane_unread(lane);
  return out < TAKE_BACK_ROWS / 4;
}

/* Claims of those who held a shard before us. */
static void take_back_leased(struct scheduler *s, const struct shard_lease *leases, size_t count, uint64_t shards) {
  struct task_batch *batch = NULL;
  struct err err = {0};
  if (!are_taken_back(s))
    return;
  enum store_status status = s->store->ops->lost_claims(s->ss, leases, count, TAKE_BACK_ROWS, &batch, &err);
  if (scheduler_db_ok(s, status, &err))
    take_back_lost(s, batch, shards);
}

static void take_back_bound(struct scheduler *s) {
  const struct engine_config *engine = &s->config->config->engine;
  struct task_batch *batch = NULL;
  struct err err = {0};
  enum store_status status =
      s->store->ops->lost_bound_claims(s->ss, engine->instance, engine->lease_ms, TAKE_BACK_ROWS, &batch, &err);
  s->bound_claims_at_us = clock_mono_us() + BOUND_CLAIMS_US;
  if (status != STORE_BUSY && scheduler_db_ok(s, status, &err))
    take_back_lost(s, batch, shard_bit(SHARD_BOUND));
}

/* Keeps those of the leases whose shards are among `shards`, and returns the bits of these. */
static uint64_t choose_leases(const struct shard_lease *leases, size_t count, uint64_t shards, struct shard_lease *out,
                              size_t *out_count) {
  uint64_t chosen = 0;
  *out_count = 0;
  for (size_t i = 0; i < count; i++)
    if (shards & shard_bit(leases[i].shard)) {
      out[(*out_count)++] = leases[i];
      chosen |= shard_bit(leases[i].shard);
    }
  return chosen;
}

/* Until a shard's claims are taken back nothing of it is read: others of their order_keys would overtake them. */
void scheduler_take_back(struct scheduler *s, const struct shard_lease *leases, size_t count) {
  struct shard_lease asked[STORE_SHARDS_MAX];
  size_t n = 0;
  uint64_t shards = choose_leases(leases, count, s->claims_unknown, asked, &n);
  if (n)
    take_back_own(s, asked, n, shards);
  shards = choose_leases(leases, count, s->claims_lost & ~shard_bit(SHARD_BOUND), asked, &n);
  if (s->retry_wait_us == 0 && n)
    take_back_leased(s, asked, n, shards);
  bool bound = s->claims_lost & shard_bit(SHARD_BOUND) || (s->bound_claims && clock_mono_us() >= s->bound_claims_at_us);
  if (s->retry_wait_us == 0 && bound && choose_leases(leases, count, shard_bit(SHARD_BOUND), asked, &n))
    take_back_bound(s);
  s->bound_claims = false;
}
