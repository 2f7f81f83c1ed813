/* SPDX-License-Identifier: MIT
 *
 * core/reader.c - the scheduler's reading beyond the cursors: due groups to rows.
 *
 * A group is read behind a cursor, so a backlog is walked over once. Rows are read a little before they are due, by as
 * much as reading takes, and wait in memory until then; they are never sent early.
 *
 * @thread scheduler
 */
#include "core/reader.h"

#include "core/base/clock.h"

enum {
  LITTLE_ROWS = 10,    /* less than that went in one turn: no backlog, */
  MANY_ROWS = 50,      /* unless so many were read */
  CAUTIOUS_ROWS = 16,  /* per claim after an unclean takeover: the one that kills the process has little company */
  RANGES_MAX = 16,     /* groups in one statement */
  MEASURED_READS = 16, /* what reading takes is measured over about as many */
  AHEAD_MIN_US = 100,
  WIDE_ROWS = 256, /* at most, where most of them have to wait */
  INLINE_BYTES = 16 * 1024,
  PROBES_US = 20 * 1000,         /* for the probes of suspended lanes, before the others have their turn again */
  READ_US = 20 * 1000,           /* for lanes with little to read, before what is due is sent, */
  BACKLOG_US = 5 * 1000,         /* and for those with a backlog: a turn, mostly, before what was settled is seen */
  FIRST_ROWS = 100,              /* of a lane that had no backlog, in one turn */
  DRAINED_US = 10 * 1000 * 1000, /* how long it tells of the next turn that one left nothing */
};

/* For a lane with a backlog. */
static const struct row_limits turn_limits = {.least = 100, .most = READ_MAX, .turn_us = 20 * 1000};

/* What one statement reads of a lane. */
struct plan {
  struct group *group[RANGES_MAX];
  struct store_range range[RANGES_MAX];
  int64_t next_us[RANGES_MAX];          /* what follows in each group */
  struct shard_lease lease[RANGES_MAX]; /* of the shards concerned, each once */
  size_t count, lease_count;
  bool recorded;
  bool backlog; /* it is one group, known to have many rows due: what follows them is not asked for */
};

static void add_lease(const struct scheduler *s, struct plan *plan, const struct group *group) {
  for (size_t i = 0; i < plan->lease_count; i++)
    if (plan->lease[i].shard == group->shard)
      return;
  plan->lease[plan->lease_count++] =
      (struct shard_lease){.shard = group->shard, .epoch = group->epoch, .owner = s->instance};
}

static bool is_bound(const struct group *group) { return group->shard == SHARD_BOUND; }

/* Groups for one statement out of the due ones, highest priority and earliest first: one that is known to have a
 * backlog by itself, which is the cheapest way to read much, or those of the highest priority that are not. One of
 * bound tasks has a way of its own; bound: one may be chosen. */
static size_t choose_groups(struct group **groups, size_t count, bool bound) {
  size_t n = 0, kept = 0;
  for (size_t i = 0; i < count; i++)
    if (bound || !is_bound(groups[i]))
      groups[kept++] = groups[i];
  if (kept == 0 || groups[0]->backlog || is_bound(groups[0]))
    return kept ? 1 : 0;
  for (size_t i = 0; i < kept && groups[i]->priority == groups[0]->priority; i++)
    if (!groups[i]->backlog && !is_bound(groups[i]))
      groups[n++] = groups[i];
  return n;
}

/* Where most rows of a backlog have to wait for others of their order_key, those that may go are behind them. */
static uint32_t wide_limit(const struct group *group, uint32_t credit) {
  uint64_t wide = (uint64_t)credit * (group->wide ? group->wide : 1);
  return credit >= WIDE_ROWS ? credit : wide < WIDE_ROWS ? (uint32_t)wide : WIDE_ROWS;
}

/* Follows a reading that might have let `credit` rows go, of which `took` did. */
static void widen(struct group *group, uint32_t credit, size_t took) {
  uint32_t wide = group->wide ? group->wide : 1;
  if (!group->backlog || took >= credit)
    group->wide = wide / 2;
  else if (took < credit / 2 && wide < WIDE_ROWS)
    group->wide = wide * 2;
}

const char *scheduler_host(const struct scheduler *s, uint8_t shard) {
  return shard == SHARD_BOUND ? s->config->config->engine.instance : NULL;
}

/* What the next statement reads of the priorities above that one, the credit shared among its groups. */
static void make_plan(struct scheduler *s, struct lane *lane, uint32_t credit, uint8_t above, bool bound,
                      struct plan *plan) {
  *plan = (struct plan){0};
  size_t due = lane_due_groups(lane, scheduler_db_now_us(s) + s->ahead_us, plan->group, RANGES_MAX);
  while (due > 0 && plan->group[due - 1]->priority <= above)
    due--;
  plan->count = choose_groups(plan->group, due, bound);
  plan->count = plan->count < credit ? plan->count : credit;
  plan->backlog = plan->count == 1 && plan->group[0]->backlog;
  for (size_t i = 0; i < plan->count; i++) {
    struct group *group = plan->group[i];
    plan->recorded = plan->recorded || reader_records_claims(s, lane, group->shard);
    plan->range[i] =
        (struct store_range){.state = TASK_SCHEDULED,
                             .shard = group->shard,
                             .priority = group->priority,
                             .route = lane->name,
                             .after = scheduler_read_from(s, group, group->cursor),
                             .limit = plan->count == 1 ? wide_limit(group, credit) : credit / (uint32_t)plan->count};
    add_lease(s, plan, group);
  }
}

static size_t plan_rows(const struct plan *plan) {
  size_t rows = 0;
  for (size_t i = 0; i < plan->count; i++)
    rows += plan->range[i].limit;
  return rows;
}

/* Where the index has a row that was read. One that is to move comes before all others, but in its order_key. */
static struct store_cursor position(const struct task *task) {
  bool first = task->moves && task->order_key.len == 0;
  return (struct store_cursor){first ? STORE_MOVES_US : task->due_us, task->id};
}

/* The rows of each group come together. */
static size_t rows_of(const struct group *group, const struct task_batch *batch, size_t first) {
  size_t row = first;
  while (batch && row < batch->count && batch->tasks[row].shard == group->shard &&
         batch->tasks[row].priority == group->priority)
    row++;
  return row - first;
}

static bool keeps_order(struct scheduler *s, const struct plan *plan, const struct task_batch *batch) {
  size_t row = 0;
  for (size_t i = 0; i < plan->count; i++) {
    size_t rows = rows_of(plan->group[i], batch, row);
    if (rows > 0 && !reader_keeps_order(s, plan->group[i], plan->range[i].after, &batch->tasks[row], rows))
      return false;
    row += rows;
  }
  return true;
}

/* Moves the cursors behind the rows that were read; a group that gave fewer than it might is read to its end. */
static void move_cursors(struct plan *plan, const struct task_batch *batch) {
  size_t row = 0;
  for (size_t i = 0; i < plan->count; i++) {
    struct group *group = plan->group[i];
    size_t first = row;
    row += rows_of(group, batch, row);
    if (row > first)
      group->cursor = position(&batch->tasks[row - 1]);
    group->backlog = row - first >= plan->range[i].limit;
    group->due = group->backlog || plan->backlog; /* what follows is asked for when it came to its end */
    group->next_us = group->due ? group->cursor.next_us : plan->next_us[i];
  }
}

/* How long before its due time a row is read: by as much as reading takes, most of the time. Reading a backlog does not
 * count: what is in it is late anyway. */
static void measure(struct scheduler *s, int64_t took_us) {
  int64_t away = took_us > s->read_mean_us ? took_us - s->read_mean_us : s->read_mean_us - took_us;
  s->read_mean_us += (took_us - s->read_mean_us) / MEASURED_READS;
  s->read_spread_us += (away - s->read_spread_us) / MEASURED_READS;
  int64_t ahead = s->read_mean_us + 3 * s->read_spread_us;
  s->ahead_us = ahead < AHEAD_MIN_US ? AHEAD_MIN_US : ahead > AHEAD_MAX_US ? AHEAD_MAX_US : ahead;
}

/* Reads on beyond the cursors, of the priorities above that one. True when there were rows. *asked: so many groups
 * seemed to have some. */
static bool advance(struct scheduler *s, struct lane *lane, uint32_t credit, uint8_t above, size_t *asked) {
  struct plan plan;
  make_plan(s, lane, credit, above, true, &plan);
  *asked = plan.count;
  if (plan.count > 0 && is_bound(plan.group[0])) {
    if (reader_bound(s, plan.group[0], credit) || s->retry_wait_us)
      return true;
    make_plan(s, lane, credit, above, false, &plan); /* nor do those of other hosts keep the others waiting */
  }
  if (plan.count == 0)
    return false;
  int64_t began = clock_mono_us(), db_now = 0;
  struct task_batch *batch = NULL;
  struct err err = {0};
  enum store_status status = s->store->ops->read(s->ss, plan.range, plan.count, s->ahead_us + AHEAD_MARGIN_US,
                                                 reader_inline(s, lane, plan.recorded, plan_rows(&plan)), &batch,
                                                 plan.backlog ? NULL : plan.next_us, &db_now, &err);
  if (!scheduler_db_ok(s, status, &err))
    return false;
  if (!plan.backlog)
    scheduler_track_clock(s, db_now, began, clock_mono_us());
  if (!keeps_order(s, &plan, batch)) {
    reader_give_up(batch);
    return true;
  }
  move_cursors(&plan, batch);
  struct reading reading = {.lane = lane,
                            .recorded = plan.recorded,
                            .leases = plan.lease,
                            .lease_count = plan.lease_count,
                            .began_us = began,
                            .most = credit,
                            .due_until_us = later(db_now, scheduler_db_surely_us(s))};
  size_t rows = batch ? batch->count : 0;
  size_t took = reader_take(s, &reading, batch);
  if (plan.count == 1)
    widen(plan.group[0], credit, took);
  if (!plan.backlog && rows < credit)
    measure(s, clock_mono_us() - began);
  return rows > 0;
}

/* As advance(), and on to the next priority where what seemed due is gone. True also when the database does not answer.
 */
static bool advance_above(struct scheduler *s, struct lane *lane, uint32_t credit, uint8_t above) {
  size_t asked = 1;
  for (int turn = 0; asked > 0 && turn < STORE_SHARDS_MAX; turn++)
    if (advance(s, lane, credit, above, &asked) || s->retry_wait_us)
      return true;
  return false;
}

bool reader_may_read(const struct scheduler *s, const struct lane *lane, uint8_t shard, uint64_t epoch,
                     const struct instant *now) {
  return epoch && !((s->claims_unknown | (s->claims_lost & ~lane->unclaimed)) & shard_bit(shard)) &&
         leases_safe(s->leases, shard, epoch, *now);
}

/* Groups that may not be read now come back when their lease is renewed or their claims are taken back, or go with it.
 */
static void set_readable(struct scheduler *s, struct lane *lane, bool *cautious) {
  struct instant now = clock_instant();
  *cautious = false;
  for (struct group *group = lane->groups; group; group = group->next) {
    group->readable = reader_may_read(s, lane, group->shard, group->epoch, &now);
    group->rests = now.mono_us < group->rest_until_us;
    group->sweep_rests = !group->sweep_first && now.mono_us < group->sweep_rest_until_us;
    *cautious = *cautious || (group->readable && s->view[group->shard].cautious);
  }
}

struct store_limit reader_inline(const struct scheduler *s, const struct lane *lane, bool recorded, size_t rows) {
  /* The credit in rows counts on tasks of the usual size. */
  int64_t bytes = 2 * (int64_t)lane->average_bytes;
  if (bytes < INLINE_BYTES)
    bytes = INLINE_BYTES;
  if (rows && bytes > STORE_ANSWER_BYTES / (int64_t)rows)
    bytes = STORE_ANSWER_BYTES / (int64_t)rows;
  return (struct store_limit){.payload = s->config->config->engine.max_payload, .bytes = recorded ? 0 : bytes};
}

bool reader_records_claims(const struct scheduler *s, const struct lane *lane, uint8_t shard) {
  return lane->route->claim == CLAIM_RECORDED || lane->stalled || lane_is_wary(lane) || s->view[shard].cautious ||
         shard == SHARD_BOUND;
}

uint32_t scheduler_credit(const struct scheduler *s, const struct lane *lane, int64_t now_us) {
  int64_t batch = s->config->config->engine.batch;
  return lane_credit(lane, batch < READ_MAX ? (uint32_t)batch : READ_MAX, now_us);
}

/* What one turn may take. Whether a lane has a backlog shows when it has been read: until then little. */
static uint32_t turn_credit(const struct scheduler *s, const struct lane *lane) {
  uint32_t credit = scheduler_credit(s, lane, clock_mono_us());
  size_t most = lane->backlog ? row_pace_rows(&s->pace_turns, &turn_limits) : FIRST_ROWS;
  return credit > most ? (uint32_t)most : credit;
}

/* Those whose turn has come, then by priority, of each what is behind the cursors, a page at a time, and what is beyond
 * them; never beyond while tasks of an order_key may be behind that go first. True when there may be more to do. */
static bool read_in_turn(struct scheduler *s, struct lane *lane, uint32_t credit) {
  if (reader_take_called(s, lane, credit) > 0 || s->retry_wait_us)
    return true;
  if (lane->unblock_look > s->look)
    return false; /* tasks that were blocked come back first */
  struct group *behind = lane_swept_group(lane);
  if (behind && advance_above(s, lane, credit, behind->priority))
    return true;
  size_t asked;
  bool swept = behind && reader_sweep(s, behind, credit);
  bool hold = s->retry_wait_us || lane_must_sweep(lane);
  if (!hold)
    credit = turn_credit(s, lane);
  return (!hold && credit > 0 && advance(s, lane, credit, 0, &asked)) || swept;
}

/* One step of reading for a lane: while it is in trouble one from elsewhere, else those whose turn it is. Where none
 * may be taken from elsewhere they go in this very step: the rest that follows is for both. */
static bool read_lane(struct scheduler *s, struct lane *lane) {
  uint32_t credit = turn_credit(s, lane);
  bool cautious = false;
  if (credit == 0)
    return false;
  set_readable(s, lane, &cautious);
  if (cautious && credit > CAUTIOUS_ROWS)
    credit = CAUTIOUS_ROWS;
  bool picks = lane_picks(lane);
  int64_t rest_us = 0;
  bool picked = picks && reader_pick(s, lane, &rest_us);
  bool more = picked || s->retry_wait_us || read_in_turn(s, lane, credit);
  if (picks)
    lane->pick_at_us = clock_mono_us() + rest_us;
  return more;
}

static bool due_now(const struct scheduler *s, struct lane *lane) {
  struct group *group;
  return lane_swept_group(lane) || lane_due_groups(lane, scheduler_db_now_us(s) + s->ahead_us, &group, 1) > 0;
}

/* What is left of a lane that has no room now is known since it had some. One of which little is read at a time, such
 * as the next of an order_key, has no backlog, although others that have to wait become due meanwhile: it does not wait
 * for the turns of those that have one. */
static void read_step(struct scheduler *s, struct lane *lane) {
  int64_t began_us = clock_mono_us();
  bool had = lane->backlog;
  uint32_t credit = turn_credit(s, lane);
  uint64_t read_before = counted(&s->metrics->rows_read);
  int64_t out_before = atomic_load(&s->in_flight);
  if (credit == 0)
    return;
  bool more = read_lane(s, lane) && due_now(s, lane);
  uint64_t rows = counted(&s->metrics->rows_read) - read_before;
  int64_t went = atomic_load(&s->in_flight) - out_before;
  lane->backlog = more && (rows >= MANY_ROWS || went >= (credit < LITTLE_ROWS ? credit : LITTLE_ROWS));
  if (lane->backlog)
    lane_note_flood(lane, began_us);
  else if (rows > 0)
    lane->drained_until_us = began_us + DRAINED_US;
  if (had && lane->backlog)
    row_pace_note(&s->pace_turns, &turn_limits, credit, clock_mono_us() - began_us);
  s->read_more = s->read_more || (more && scheduler_credit(s, lane, clock_mono_us()));
}

/* Probes of suspended lanes cost a claim each, and those of hundreds may be due at once: the others wait for some of
 * them, and have their turn before the next ones. */
static void read_suspended(struct scheduler *s) {
  int64_t began = clock_mono_us();
  size_t i = 0, from = s->probes_from;
  bool over = false;
  s->probes_from = 0;
  for (struct lane *lane = s->lanes; lane && s->retry_wait_us == 0; lane = lane->next, i++) {
    if (i < from || !health_suspended(&lane->health))
      continue;
    if (over) {
      s->probes_from = i;
      s->read_more = true;
      return;
    }
    read_step(s, lane);
    over = clock_mono_us() - began > PROBES_US;
  }
}

/* One step for each lane of the kind. What is left when the time is over has its turn first the next time. */
static void read_those(struct scheduler *s, enum lane_turn turn) {
  struct lane *first = s->read_first[turn] ? s->read_first[turn] : s->lanes, *lane = first;
  int64_t now_us = clock_mono_us(), until_us = now_us + (turn == LANE_BACKLOG ? BACKLOG_US : READ_US);
  bool over = false;
  while (lane && s->retry_wait_us == 0) {
    if (!health_suspended(&lane->health) && lane->round != s->round && lane_turn(lane, now_us) == turn) {
      if (over) {
        s->read_first[turn] = lane;
        s->read_more = true;
        return;
      }
      lane->round = s->round;
      read_step(s, lane);
      over = clock_mono_us() >= until_us;
    }
    lane = lane->next ? lane->next : s->lanes;
    if (lane == first)
      break;
  }
}

/* Those with a backlog come last, and some at a time: how many are flooded, a task of one that is not waits for few of
 * their turns. When many become flooded at once, who is shows in their first turns: a lane that has been read to its
 * end lately waits for some of these alone. */
void scheduler_read(struct scheduler *s) {
  s->read_more = false;
  s->round++;
  for (enum lane_turn turn = 0; turn < LANE_TURNS; turn++)
    read_those(s, turn);
  read_suspended(s);
}
