/* SPDX-License-Identifier: MIT */
#include "core/lane.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/poll_pace.h"

enum {
  PROBES_ELSEWHERE = 4, /* one of so many is the task whose turn it is */
  WORTH_READING = 4,    /* the part of the concurrency, or of a batch, that must be free */
  BATCH_BYTES = 2 * 1024 * 1024,
  AHEAD_MS = 20,     /* how much is read ahead of answers and settling, as time */
  DONE_MS = 10,      /* how fast tasks leave is measured over this */
  OUT_TASKS = 8,     /* how long they are out over about as many */
  ENDING_MAX = 4096, /* tasks that end without having been at the sink, on their way to the settler */
  REFUSED_REST = 9,  /* times as long as claims took of which the server refused some the others have, */
  REFUSED_REST_MAX_US = 10 * 1000 * 1000,
  ALL_REFUSED_MAX_US = 1000 * 1000, /* and so long at last where it refuses all */
  FLOOD_US = 1000 * 1000,
};

static double tokens_now(const struct lane *lane, int64_t now_us) {
  double rate = lane->route->rate;
  double burst = rate < 1 ? 1 : rate / 10 < 1 ? 1 : rate / 10; /* a tenth of a second's worth */
  double tokens = lane->tokens + rate * (double)(now_us - lane->tokens_at_us) / 1e6;
  return tokens < burst ? tokens : burst;
}

static int64_t concurrency_now(const struct lane *lane) {
  int64_t most = lane->route->concurrency, depth = depth_now(&lane->depth);
  if (lane->shares_line && depth < most)
    most = depth;
  return lane->health.ramp && lane->health.ramp < most ? lane->health.ramp : most;
}

static bool is_open(const struct lane *lane) {
  return lane->route && lane->driver && !lane->paused && !health_suspended(&lane->health);
}

/* How many tasks there may be beyond those at the sink: what leaves in some milliseconds, so that an answer makes room
 * at once, whatever settling takes. Nothing where something else than the sink holds tasks back. */
static int64_t read_ahead(const struct lane *lane) {
  return lane->route->rate > 0 || lane->health.ramp ? 0 : (int64_t)(lane->done_per_ms * AHEAD_MS);
}

static unsigned parked(const atomic_uint *count) {
  unsigned n = atomic_load_explicit(count, memory_order_relaxed);
  return n < LANE_PARKED_MAX ? n : LANE_PARKED_MAX;
}

/* Tasks that take a place: those whose rows somebody keeps locked have had their turn at the sink, and hold up nobody.
 */
static uint32_t places_taken(const struct lane *lane) { return lane->in_flight - parked(&lane->parked.charged); }

uint32_t lane_room(const struct lane *lane) {
  if (!is_open(lane))
    return 0;
  /* What lanes have in flight beyond the sink must not take places there from each other. */
  int64_t room = concurrency_now(lane) - (int64_t)places_taken(lane),
          driver_room = (int64_t)lane->driver->max_inflight - lane->driver->at_sink;
  room = (driver_room < room ? driver_room : room) + read_ahead(lane);
  return room > 0 ? (uint32_t)room : 0;
}

void lane_limit(struct lane *lane) {
  if (lane->health.state == HEALTH_PROBING && lane->route && lane->driver && !lane->paused)
    return; /* its probe has its place, whatever late news of others says */
  atomic_store_explicit(&lane->at_sink_max, is_open(lane) ? (unsigned)concurrency_now(lane) : 0, memory_order_relaxed);
}

void lane_follow_stall(struct lane *lane, int64_t now_us) {
  /* Calls of which a claim is recorded may take long, and only being refused says something of their sink. */
  bool timed = lane->route && lane->route->claim == CLAIM_MEMORY;
  lane->stalled = lane->route && (timed ? stall_is_now : stall_refuses)(&lane->stall, now_us);
  if (depth_tick(&lane->depth, now_us))
    lane_limit(lane);
}

bool lane_is_full(const struct lane *lane) {
  if (!is_open(lane) || lane->route->claim != CLAIM_RECORDED || lane->stalled)
    return false;
  int64_t at_sink = atomic_load_explicit(&lane->at_sink, memory_order_relaxed);
  return at_sink > 0 && (at_sink >= concurrency_now(lane) || lane->bytes_in_flight >= lane->route->inflight_bytes);
}

bool lane_follow_places(struct lane *lane, bool full, int64_t now_us) {
  bool was = gauge_value(&lane->full_since_us) != 0;
  lane->full_from_us = !full ? 0 : lane->full_from_us ? lane->full_from_us : now_us;
  bool is = full && now_us - lane->full_from_us > lane->route->timeout_ms * 1000 + READY_STUCK_US;
  set_gauge(&lane->full_since_us, is ? lane->full_from_us : 0);
  return is != was;
}

void lane_follow_delivery(struct lane *lane, const struct flight *flight) {
  if (lane->shares_line && lane->route &&
      depth_learn(&lane->depth, lane->route->concurrency, flight->ahead, flight->handed_us, flight->completed_us))
    lane_limit(lane);
}

/* How many bytes of tasks may come. Where nothing is in flight one task may go whatever its size: a large one must not
 * wait for ever. */
int64_t lane_bytes(const struct lane *lane, bool *alone) {
  int64_t held = (int64_t)atomic_load_explicit(&lane->parked.bytes, memory_order_relaxed);
  if (held > lane->route->inflight_bytes) /* as much once more, at most */
    held = lane->route->inflight_bytes;
  *alone = places_taken(lane) == 0 && lane->ending == parked(&lane->parked.ending);
  return lane->route->inflight_bytes + held - lane->bytes_in_flight - lane->bytes_ending;
}

bool lane_fits(const struct lane *lane, int64_t bytes) {
  bool alone;
  return lane_bytes(lane, &alone) >= bytes || alone;
}

bool lane_picks(const struct lane *lane) {
  if (health_suspended(&lane->health))
    return lane->probes % PROBES_ELSEWHERE != PROBES_ELSEWHERE - 1;
  return health_doubted(&lane->health, (uint32_t)lane->route->breaker);
}

uint32_t lane_credit(const struct lane *lane, uint32_t batch, int64_t now_us) {
  if (!lane->route || !lane->driver || lane->paused || lane_ends_many(lane))
    return 0;
  if (health_suspended(&lane->health))
    return health_may_send(&lane->health, now_us) ? 1 : 0;
  if ((lane->stalled && stall_probe_at_us(&lane->stall) > now_us) || lane->refused_claims.at_us > now_us ||
      lane->rests_until_us > now_us || (lane->pick_at_us > now_us && lane_picks(lane)))
    return 0;
  if (lane->stalled)
    batch = 1;
  int64_t credit = (int64_t)lane_room(lane), ahead = read_ahead(lane);
  /* With much in flight, wait until reading a few more is worth a statement: credit comes back in batches. Not while
   * places for long calls are free, and not on behalf of the limits below. */
  uint32_t taken = places_taken(lane);
  if (taken > 0 && (lane->route->claim == CLAIM_MEMORY || taken >= concurrency_now(lane)) &&
      credit < (concurrency_now(lane) + ahead) / WORTH_READING && credit < batch / WORTH_READING)
    return 0;
  bool alone;
  int64_t bytes = lane_bytes(lane, &alone);
  int64_t by_bytes = bytes <= 0 ? alone : 1 + (int64_t)((double)bytes / (lane->average_bytes + 256));
  if (by_bytes < credit)
    credit = by_bytes;
  if (lane->route->rate > 0) {
    int64_t by_rate = (int64_t)tokens_now(lane, now_us);
    if (by_rate < credit)
      credit = by_rate;
  }
  /* The memory of a batch lives as long as its slowest task, which may be long. */
  int64_t rows = 1 + (int64_t)(BATCH_BYTES / (lane->average_bytes + 256));
  if (rows < credit)
    credit = rows;
  if (credit > batch)
    credit = batch;
  return credit > 0 ? (uint32_t)credit : 0;
}

void lane_note_flood(struct lane *lane, int64_t now_us) { set_gauge(&lane->flooded_until_us, now_us + FLOOD_US); }

enum lane_turn lane_turn(const struct lane *lane, int64_t now_us) {
  if (lane->backlog)
    return LANE_BACKLOG;
  return now_us < lane->drained_until_us ? LANE_DRAINED : LANE_FIRST;
}

bool lane_flooded(const struct lane *lane, int64_t now_us) { return gauge_value(&lane->flooded_until_us) > now_us; }

void lane_note_claims(struct lane *lane, bool refused, bool all, int64_t began_us, int64_t now_us) {
  struct refused_claims *claims = &lane->refused_claims;
  int64_t took_us = (now_us - began_us) * REFUSED_REST, longer = claims->wait_us * 2;
  if (took_us > REFUSED_REST_MAX_US)
    took_us = REFUSED_REST_MAX_US;
  if (longer > ALL_REFUSED_MAX_US)
    longer = ALL_REFUSED_MAX_US;
  claims->wait_us = !refused ? 0 : all && longer > took_us ? longer : took_us;
  claims->at_us = refused ? now_us + claims->wait_us : 0;
}

void lane_note_too_large(struct lane *lane, int64_t began_us, int64_t now_us) {
  lane->rests_until_us = now_us + pace_rest_us(now_us - began_us, REFUSED_REST, REFUSED_REST_MAX_US);
}

void lane_note_done(struct lane *lane, int64_t now_us) {
  lane->done++;
  int64_t took_us = now_us - lane->done_since_us;
  if (took_us < DONE_MS * 1000)
    return;
  double per_ms = (double)lane->done * 1000 / (double)took_us;
  lane->done_per_ms += (per_ms - lane->done_per_ms) / 4;
  lane->done = 0;
  lane->done_since_us = now_us;
}

void lane_note_out(struct lane *lane, int64_t out_us) {
  lane->out_us += lane->out_us ? (out_us - lane->out_us) / OUT_TASKS : out_us;
}

void lane_note_unsent(struct lane *lane) { lane->done_per_ms = 0; }

int64_t lane_wakes_at(const struct lane *lane, int64_t now_us) {
  if (!lane->route || lane->paused)
    return INT64_MAX;
  if (health_suspended(&lane->health))
    return health_wakes_at(&lane->health);
  if (lane->refused_claims.at_us > now_us || lane->rests_until_us > now_us)
    return lane->refused_claims.at_us > lane->rests_until_us ? lane->refused_claims.at_us : lane->rests_until_us;
  if (lane->pick_at_us > now_us && lane_picks(lane))
    return lane->pick_at_us;
  if (lane->route->rate > 0 && tokens_now(lane, now_us) < 1)
    return now_us + 1 + (int64_t)((1 - tokens_now(lane, now_us)) / lane->route->rate * 1e6);
  if (lane->stalled && stall_probe_at_us(&lane->stall) > now_us)
    return stall_probe_at_us(&lane->stall);
  return INT64_MAX;
}

void lane_note_size(struct lane *lane, const struct task *task) {
  double weight = lane->average_bytes > 0 ? 0.05 : 1; /* nothing is known of it before the first */
  lane->average_bytes += weight * ((double)task_size(task) - lane->average_bytes);
}

/* Of a row that is too large to be sent its payload was not read. */
static int64_t bytes_read(const struct task *task) {
  return task->payload.data ? task_size(task) : (int64_t)task->beside_len;
}

void lane_begin(struct lane *lane, const struct task *task) {
  lane->ending++;
  lane->bytes_ending += bytes_read(task);
}

void lane_ended(struct lane *lane, const struct task *task) {
  lane->ending--;
  lane->bytes_ending -= bytes_read(task);
}

bool lane_ends_many(const struct lane *lane) { return lane->ending - parked(&lane->parked.ending) >= ENDING_MAX; }

uint32_t lane_unread(const struct lane *lane) { return lane->unread - parked(&lane->parked.unread); }

bool lane_is_wary(const struct lane *lane) { return parked(&lane->parked.charged) >= LANE_WARY_FROM; }

/* What lane_begin() and lane_charge() have counted of it. */
static size_t bytes_counted(const struct flight *flight) {
  return (size_t)(flight->driver ? task_size(flight->task) : bytes_read(flight->task));
}

void lane_park(struct lane *lane, struct flight *flight) {
  struct lane_parked *all = &lane->parked;
  flight->parked = true;
  atomic_fetch_add_explicit(&all->bytes, bytes_counted(flight), memory_order_relaxed);
  atomic_fetch_add_explicit(flight->driver ? &all->charged : &all->ending, 1, memory_order_relaxed);
  if (!flight->group)
    atomic_fetch_add_explicit(&all->unread, 1, memory_order_relaxed);
}

void lane_unpark(struct lane *lane, struct flight *flight) {
  struct lane_parked *all = &lane->parked;
  if (!flight->parked)
    return;
  flight->parked = false;
  atomic_fetch_sub_explicit(&all->bytes, bytes_counted(flight), memory_order_relaxed);
  atomic_fetch_sub_explicit(flight->driver ? &all->charged : &all->ending, 1, memory_order_relaxed);
  if (!flight->group)
    atomic_fetch_sub_explicit(&all->unread, 1, memory_order_relaxed);
}

void lane_charge(struct lane *lane, const struct task *task, int64_t now_us) {
  if (lane->route->rate > 0) {
    lane->tokens = tokens_now(lane, now_us) - 1;
    lane->tokens_at_us = now_us;
  }
  lane->in_flight++;
  lane->bytes_in_flight += task_size(task);
  lane_note_size(lane, task);
  set_gauge(&lane->metrics.inflight, lane->in_flight);
  set_gauge(&lane->metrics.inflight_bytes, lane->bytes_in_flight);
}

void lane_refund(struct lane *lane, const struct task *task, bool sent) {
  if (!sent)
    lane->tokens++;
  lane->in_flight--;
  lane->bytes_in_flight -= task_size(task);
  set_gauge(&lane->metrics.inflight, lane->in_flight);
  set_gauge(&lane->metrics.inflight_bytes, lane->bytes_in_flight);
}

bool lane_holds_much(const struct lane *lane) {
  int64_t held = (int64_t)atomic_load_explicit(&lane->held_bytes, memory_order_relaxed);
  return held - lane->bytes_in_flight - (int64_t)lane->in_flight * TASK_BYTES > lane->route->inflight_bytes;
}

bool lane_send(struct lane *lane, const struct task *task) {
  if (!health_send(&lane->health, task->id))
    return false;
  lane->probes++;
  unsigned at_sink = atomic_load_explicit(&lane->at_sink, memory_order_relaxed); /* they may take long to fail */
  atomic_store_explicit(&lane->at_sink_max, at_sink + 1, memory_order_relaxed);
  return true;
}

void lane_probe_lost(struct lane *lane, uint64_t row, int64_t now_us) {
  if (lane->health.state == HEALTH_PROBING && lane->health.suspect == row)
    health_probe_lost(&lane->health, now_us);
}

struct group *lane_group(struct lane *lane, uint8_t shard, uint8_t priority, bool make) {
  for (struct group *group = lane->groups; group; group = group->next)
    if (group->shard == shard && group->priority == priority)
      return group;
  struct group *group = make ? calloc(1, sizeof *group) : NULL;
  if (group) {
    group->lane = lane;
    group->shard = shard;
    group->priority = priority;
    group->next_us = INT64_MAX;
    group->next = lane->groups;
    lane->groups = group;
    lane->priorities |= priority <= STORE_PRIORITY_MAX ? 1u << priority : 0; /* a row past the CHECKs may have any */
  }
  return group;
}

static bool before(const struct group *a, const struct group *b) {
  return a->priority != b->priority ? a->priority > b->priority : a->next_us < b->next_us;
}

size_t lane_due_groups(struct lane *lane, int64_t db_now_us, struct group **out, size_t most) {
  size_t n = 0;
  for (struct group *group = lane->groups; group; group = group->next) {
    if (!group->readable || group->rests || !(group->due || group->next_us <= db_now_us))
      continue;
    size_t at = n < most ? n++ : most;
    /* Insertion into a short list; what falls off its end is read next time. */
    for (; at > 0 && before(group, out[at - 1]); at--)
      if (at < most)
        out[at] = out[at - 1];
    if (at < most)
      out[at] = group;
  }
  return n;
}

void lane_sweep(struct group *group) {
  if (group->cursor.next_us == 0 && group->cursor.id == 0) {
    group->due = true; /* nothing is behind: it is read from its start anyway */
    return;
  }
  group->sweep_again = group->sweep_again || (group->sweep && group->swept.id);
  group->sweep = true;
}

void lane_sweep_shard(struct lane *lane, uint8_t shard) {
  for (struct group *group = lane->groups; group; group = group->next)
    if (group->shard == shard)
      lane_sweep(group);
}

void lane_sweep_first(struct lane *lane) {
  for (struct group *group = lane->groups; group; group = group->next) {
    lane_sweep(group);
    group->low_us = 0;
    group->sweep_first = group->sweep;
    group->sweep_again = false;
    group->swept = (struct store_cursor){0};
    group->sweep_took = 0;
  }
}

void lane_leave_shard(struct lane *lane, uint8_t shard) {
  if (order_forget_shards(&lane->order, shard_bit(shard)))
    lane_sweep_first(lane);
  for (struct group *group = lane->groups; group; group = group->next)
    if (group->shard == shard)
      group->epoch = 0;
}

bool lane_must_sweep(const struct lane *lane) {
  for (const struct group *group = lane->groups; group; group = group->next)
    if (group->readable && group->sweep && group->sweep_first)
      return true;
  return false;
}

void lane_restart(struct group *group) {
  group->cursor = group->swept = (struct store_cursor){0};
  group->sweep = group->sweep_again = group->sweep_first = false;
}

struct group *lane_swept_group(struct lane *lane) {
  struct group *best = NULL;
  for (struct group *group = lane->groups; group; group = group->next)
    if (group->readable && !group->rests && !group->sweep_rests && group->sweep && (!best || before(group, best)))
      best = group;
  return best;
}

void lane_forget_groups(struct lane *lane, uint64_t look) {
  int64_t groups = 0, next_due = 0;
  for (struct group **at = &lane->groups; *at;) {
    struct group *group = *at;
    if (group->seen == look || group->in_flight > 0) {
      at = &group->next;
      groups++;
      if (group->next_us != INT64_MAX && (next_due == 0 || group->next_us < next_due))
        next_due = group->next_us;
    } else {
      *at = group->next;
      free(group);
    }
  }
  set_gauge(&lane->waiting_groups, groups);
  set_gauge(&lane->next_due_us, next_due);
}

void lane_clear_oldest(struct lane *lane) {
  bool held = held_claim_age_us(&lane->held_claim, clock_mono_us()) > 0;
  set_gauge(&lane->metrics.oldest_due_us, held ? lane->held_claim.place.due_us : 0);
}
