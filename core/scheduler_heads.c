/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_heads.c - heads of order keys: tasks that others of their key wait for, in all shards. They have
 * failed and go again first, or have moved to another shard or host. Where the route parks what fails, a failed one is
 * none.
 *
 * The table of heads is the truth: it is read when shards come to us, or a route is new here, whose order keys wait for
 * that, and from time to time while there are heads, for people may end a head by plain SQL; in parts, for whatever is
 * read here, all routes wait for. Rows that a head blocked come back when it is over.
 *
 * Nobody leases the shard of bound tasks: there a key may also be held by a claim of another instance, one that runs
 * under our name too or has crashed and is not known to be dead yet.
 *
 * @thread scheduler
 */
#include <string.h>

#include "core/base/clock.h"
#include "core/scheduler.h"

enum {
  HEADS_SOON_US = 50 * 1000, /* how long a head may be over elsewhere before anybody notices: where one was lately, */
  HEADS_EVERY_US = 1000 * 1000,           /* and at most */
  HEADS_SHARE = 20,                       /* reading heads may take 1/20 of the time, */
  HEADS_AWAITED_SHARE = 2,                /* or half of it, where order keys wait for it */
  HEADS_KEYS = 500,                       /* read together, where there are more */
  UNBLOCK_EVERY_US = 5000 * 1000,         /* how often to look for rows that were blocked by nobody we know */
  UNBLOCK_ROWS = 250,                     /* are walked over in one step, */
  UNBLOCK_SLICE_US = 4 * 1000,            /* and no step begins when some have taken this long */
  UNBLOCK_SHARE = 4,                      /* The others have this many times that for themselves, */
  UNBLOCK_AHEAD_US = 500 * 1000,          /* but for what little is done at once, */
  UNBLOCK_REST_MAX_US = 10 * 1000 * 1000, /* and this at most, since a moment may be slow. */
  UNBLOCK_SELDOM = 100,                   /* A walk without a reason takes this part of the time, */
  UNBLOCK_SELDOM_MAX_US = 60 * 1000 * 1000,
  SOON_US = 1000 * 1000, /* Behind a task that is tried again within this time the others wait in memory, */
  SOON_FAILURES = 8,     /* until it has failed more often than this. */
};

/* Rows that were blocked are looked for by the next look. */
static void unblock_soon(struct scheduler *s, struct lane *lane) {
  lane->order.left = false;
  lane->unblock_look = s->look + 1;
  lane->to_unblock = UINT64_MAX;
  scheduler_look_soon(s);
}

/* People see why a task waits, and a long queue has room, where it is blocked in the table; that costs two writes of it
 * and a walk. Of bound tasks others may block some. */
static bool is_soon(const struct flight *flight) {
  const struct decision *decision = &flight->decision;
  return decision->event == EVENT_RETRY && decision->delay_us <= SOON_US && decision->failures <= SOON_FAILURES &&
         flight->end != FLIGHT_MOVES && flight->task->shard != SHARD_BOUND;
}

void scheduler_leave_order(struct scheduler *s, struct flight *flight, bool handed_back) {
  struct lane *lane = flight->lane;
  size_t heads = lane->order.heads;
  bool failed = flight->settled && flight->decision.applied && !flight->decision.changed && flight->decision.head;
  if (failed && flight->end == FLIGHT_MOVES) { /* whoever is there sends it at once */
    s->heads_rest_us = HEADS_SOON_US;
    s->heads_at_us = earlier(s->heads_at_us, clock_mono_us() + HEADS_SOON_US);
  }
  enum order_end head = is_soon(flight) ? ORDER_HEAD_SOON : ORDER_HEAD;
  if (order_leave(&lane->order, flight, failed ? head : handed_back ? ORDER_AGAIN : ORDER_OVER))
    lane_sweep_first(lane);
  if (failed && head == ORDER_HEAD_SOON)
    order_call_at(&lane->order, flight->task, scheduler_db_now_us(s) + flight->decision.delay_us);
  if (lane->order.left || (lane->order.heads < heads && flight->task->shard == SHARD_BOUND))
    unblock_soon(s, lane);
  s->heads_stale = s->heads_stale || lane->order.unsure; /* read by that look, before anything is taken */
  lane->order.unsure = false;
}

void scheduler_is_blocked(struct scheduler *s, struct flight *flight) {
  if (order_blocked_done(&flight->lane->order, flight->task))
    unblock_soon(s, flight->lane);
}

static bool failed_are_heads(const struct lane *lane) { return lane->route && lane->route->order == ORDER_BLOCK; }

static void note_head(void *ctx, const struct store_head *head) {
  struct lane *lane = scheduler_lane(ctx, head->route);
  if (lane && (!head->failed || failed_are_heads(lane)) && order_head(&lane->order, head->order_key, head->id))
    lane_sweep_first(lane);
}

static size_t count_heads(const struct scheduler *s) {
  size_t heads = 0;
  for (const struct lane *lane = s->lanes; lane; lane = lane->next)
    heads += lane->order.heads;
  return heads;
}

static bool any_unknown(const struct scheduler *s) {
  for (const struct lane *lane = s->lanes; lane; lane = lane->next)
    if (lane->heads_unknown)
      return true;
  return false;
}

/* Before the first part: what is not read by the last one is over. */
static void begin_heads(struct scheduler *s, bool many) {
  for (struct lane *lane = s->heads_came ? s->lanes : NULL; lane; lane = lane->next)
    lane->heads_unknown = lane->heads_unknown || lane->route;
  s->heads_came = false;
  s->heads_part = (struct store_heads_part){.keys = s->heads_stale || !many ? 0 : HEADS_KEYS};
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    order_heads_begin(&lane->order);
    lane->heads_come = lane->heads_unknown;
  }
}

/* freed: a head was over. The next of its key may have moved too, and be over as soon. */
static void rest(struct scheduler *s, int64_t began_us, bool freed) {
  s->heads_rest_us = freed ? HEADS_SOON_US : earlier(later(2 * s->heads_rest_us, HEADS_SOON_US), HEADS_EVERY_US);
  s->heads_at_us = began_us + later((clock_mono_us() - began_us) * HEADS_SHARE, s->heads_rest_us);
}

static void note_elsewhere(void *ctx, const struct store_head *claim) {
  struct lane *lane = ctx;
  order_claim(&lane->order, claim->order_key, claim->id);
}

bool scheduler_note_elsewhere(struct scheduler *s, struct lane *lane) {
  struct err err = {0};
  return scheduler_db_ok(s,
                         s->store->ops->claims_elsewhere(s->ss, s->instance, s->config->config->engine.instance,
                                                         lane->name, note_elsewhere, lane, &err),
                         &err);
}

/* Which claims of other instances are over. What they were about may be the heads of their keys now. */
static bool end_elsewhere(struct scheduler *s) {
  int64_t began = clock_mono_us();
  if (began < s->elsewhere_at_us)
    return true;
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (!lane->order.elsewhere)
      continue;
    order_claims_begin(&lane->order);
    if (!scheduler_note_elsewhere(s, lane))
      return false;
    if (order_claims_end(&lane->order)) {
      lane_sweep_first(lane);
      s->heads_stale = true;
    }
  }
  s->elsewhere_at_us = began + later((clock_mono_us() - began) * HEADS_SHARE, HEADS_SOON_US);
  return true;
}

/* Somebody holds the table: which heads a shard brought nobody can tell. What has an order_key waits for that, and
 * nothing else does. */
static void go_on_without_heads(struct scheduler *s) {
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    if (lane->route)
      scheduler_close_keys(lane);
  s->heads_stale = false;
  s->held_at_us = 0;
}

int64_t scheduler_heads_awaited_at(const struct scheduler *s) {
  return s->heads_part.more && any_unknown(s) ? s->heads_at_us : INT64_MAX;
}

bool scheduler_heads(struct scheduler *s) {
  if (!end_elsewhere(s))
    return false;
  int64_t now = clock_mono_us();
  size_t known = count_heads(s);
  bool unknown = any_unknown(s);
  struct err err = {0};
  if (!s->heads_stale && !s->heads_came && (now < s->heads_at_us || (known == 0 && !unknown)))
    return true;
  if (s->heads_stale || s->heads_came || !s->heads_part.more)
    begin_heads(s, known > HEADS_KEYS || unknown || s->heads_came);
  struct store_heads_part *part = s->heads_part.keys ? &s->heads_part : NULL;
  enum store_status status = s->store->ops->heads(s->ss, part, note_head, s, &err);
  if (status == STORE_BUSY) { /* somebody holds the table: those that we know stay heads */
    if (s->heads_stale)
      go_on_without_heads(s);
    rest(s, now, false);
    return true;
  }
  if (!scheduler_db_ok(s, status, &err))
    return false;
  if (part && part->more) {
    s->heads_at_us = now + (clock_mono_us() - now) * (any_unknown(s) ? HEADS_AWAITED_SHARE : HEADS_SHARE);
    return true;
  }
  bool any_freed = false;
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    bool freed = false;
    if (order_heads_end(&lane->order, &freed))
      lane_sweep_first(lane);
    if (freed)
      unblock_soon(s, lane);
    any_freed = any_freed || freed;
    lane->heads_unknown = lane->heads_unknown && !lane->heads_come;
  }
  s->heads_stale = false;
  rest(s, now, any_freed);
  return true;
}

/* --- blocked rows come back --- */

static uint64_t own_shards(const struct scheduler *s) {
  uint64_t shards = 0;
  for (int i = 0; i < STORE_SHARDS_MAX; i++)
    if (s->view[i].epoch && s->view[i].stage != LEASE_SHUT)
      shards |= shard_bit((uint8_t)i);
  return shards;
}

void scheduler_return_begin(struct scheduler *s) {
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (!lane->route || lane->returning || !order_awaits_return(&lane->order))
      continue;
    lane->returning = true;
    lane->returned = 0;
    lane->walk.on = false; /* it may have passed by what is to come back now */
    order_return_begin(&lane->order);
  }
}

void scheduler_return_seen(struct scheduler *s, const struct store_group *groups, size_t count,
                           const struct shard_lease *leases, size_t lease_count) {
  uint64_t seen = 0;
  for (size_t i = 0; i < lease_count; i++)
    seen |= shard_bit(leases[i].shard);
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    lane->blocked = lane->claimed = 0, lane->first_blocked_us = 0;
  for (size_t i = 0; i < count; i++) {
    bool blocked = groups[i].state == TASK_BLOCKED, claimed = groups[i].state == TASK_CLAIMED;
    struct lane *lane = blocked || claimed ? scheduler_lane(s, groups[i].route) : NULL;
    if (lane)
      *(blocked ? &lane->blocked : &lane->claimed) |= shard_bit(groups[i].shard);
    if (lane && blocked && (lane->first_blocked_us == 0 || groups[i].next_us < lane->first_blocked_us))
      lane->first_blocked_us = groups[i].next_us;
  }
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    set_gauge(&lane->metrics.first_blocked_us, lane->first_blocked_us);
    lane->unclaimed |= seen & ~lane->claimed;
    lane->returned |= seen & ~lane->blocked;
    lane->old_shards &= ~seen; /* each of its groups is noted next */
    lane->unseen &= ~seen;
  }
}

void scheduler_return_end(struct scheduler *s) {
  uint64_t own = own_shards(s);
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (!lane->returning || lane->heads_unknown || own & (~lane->returned | lane->held_shards | lane->unseen))
      continue;
    lane->returning = false;
    if (order_returned(&lane->order))
      lane_sweep_first(lane);
    if (order_awaits_return(&lane->order))
      scheduler_look_soon(s); /* heads that were over since */
  }
}

/* The shards whose blocked rows somebody waits for, or that are to be looked through. */
static uint64_t to_walk(const struct scheduler *s, const struct lane *lane) {
  uint64_t awaited = lane->returning ? ~lane->returned : 0;
  return lane->route ? (lane->to_unblock | awaited) & lane->blocked & own_shards(s) : 0;
}

/* The lane has a walk to go on with: the one that it is on, or the next. After one that left rows behind, which
 * somebody had locked, none begins before the next look. */
static bool has_walk(const struct scheduler *s, struct lane *lane) {
  struct unblock_walk *walk = &lane->walk;
  uint64_t shard = shard_bit(walk->shard);
  walk->on = walk->on && lane->route && lane->blocked & shard && own_shards(s) & shard &&
             s->view[walk->shard].epoch == walk->epoch;
  return walk->on || (lane->blocked && s->look >= lane->walk_from && to_walk(s, lane));
}

static void begin_walk(const struct scheduler *s, struct lane *lane) {
  uint64_t shards = to_walk(s, lane), later_ones = shards & (~UINT64_C(1) << lane->walk.shard);
  uint8_t shard = (uint8_t)__builtin_ctzll(later_ones ? later_ones : shards);
  lane->walk =
      (struct unblock_walk){.on = true, .shard = shard, .epoch = s->view[shard].epoch, .for_return = lane->returning};
  lane->to_unblock &= ~shard_bit(shard);
}

static void end_walk(struct scheduler *s, struct lane *lane) {
  struct unblock_walk *walk = &lane->walk;
  walk->on = false;
  if (walk->left)
    lane->walk_from = s->look + 1;
  else if (walk->for_return)
    lane->returned |= shard_bit(walk->shard);
  int64_t rest_us = pace_rest_us(walk->took_us, UNBLOCK_SELDOM, UNBLOCK_SELDOM_MAX_US);
  lane->unblock_at_us = later(lane->unblock_at_us, clock_mono_us() + rest_us);
  if (walk->any)
    scheduler_look_soon(s);
}

/* Rows came back: also where no group is left that could be swept. */
static void note_returned(struct lane *lane) {
  uint64_t shard = shard_bit(lane->walk.shard);
  lane->walk.any = true;
  lane->old_shards |= shard;
  lane->unseen |= lane->walk.for_return ? shard : 0;
  lane_sweep_first(lane);
}

static bool same_position(const struct store_walk *a, const struct store_walk *b) {
  return a->priority == b->priority && a->after.next_us == b->after.next_us && a->after.id == b->after.id;
}

/* One step of a walk, charged with its COMMIT. */
static void walk_on(struct scheduler *s, struct lane *lane) {
  struct unblock_walk *walk = &lane->walk;
  if (!walk->on)
    begin_walk(s, lane);
  struct shard_lease lease = {.shard = walk->shard, .epoch = walk->epoch, .owner = s->instance};
  const struct store_unblock what = {.route = lane->name, .failed_too = failed_are_heads(lane), .limit = UNBLOCK_ROWS};
  const struct store_walk before = walk->at;
  int64_t began_us = clock_mono_us();
  struct err err = {0};
  uint32_t moved = 0;
  bool all = false;
  enum store_status status =
      s->store->ops->unblock(s->ss, &lease, s->config->config->engine.instance, &what, &walk->at, &moved, &all, &err);
  int64_t took_us = clock_mono_us() - began_us;
  s->unblock_paid_us = later(s->unblock_paid_us, began_us) + pace_rest_us(took_us, UNBLOCK_SHARE, UNBLOCK_REST_MAX_US);
  if (!scheduler_db_ok(s, status, &err))
    return;
  walk->took_us += took_us;
  if (moved > 0)
    note_returned(lane);
  walk->left = walk->left || (!all && moved == 0);
  bool stands = moved == 0 && !walk->at.end && same_position(&walk->at, &before); /* a table or a shard is locked */
  if (walk->at.end || stands)
    end_walk(s, lane);
}

void scheduler_unblock(struct scheduler *s) {
  int64_t now = clock_mono_us(), until_us = now + UNBLOCK_SLICE_US;
  struct lane *first = s->unblock_lane ? s->unblock_lane : s->lanes, *lane = first;
  s->unblock_at_us = INT64_MAX;
  while (lane && s->retry_wait_us == 0) {
    if (now >= lane->unblock_at_us) {
      lane->to_unblock = UINT64_MAX;
      lane->unblock_at_us = now + UNBLOCK_EVERY_US;
    }
    bool walks = has_walk(s, lane);
    if (walks && (now >= until_us || s->unblock_paid_us > now + UNBLOCK_AHEAD_US)) {
      s->unblock_at_us = later(now, s->unblock_paid_us - UNBLOCK_AHEAD_US);
      break;
    }
    if (walks) {
      walk_on(s, lane);
      first = lane; /* once more around: it may go on */
      now = clock_mono_us();
    }
    lane = lane->next ? lane->next : s->lanes;
    if (lane == first && !has_walk(s, lane))
      break;
  }
  s->unblock_lane = lane;
}
