/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_heads.c - heads of order keys: tasks that others of their key wait for, in all shards. They have
 * failed and go again first, or have moved to another shard or host. Where the route parks what fails, a failed one is
 * none.
 *
 * The table of heads is the truth: it is read when shards come to us, and from time to time while there are heads, for
 * people may end a head by plain SQL, and when a route is new here; then in parts, for whatever is read here, all
 * routes wait for. Rows that a head blocked come back when it is over.
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
  HEADS_EVERY_US = 1000 * 1000,   /* and at most */
  HEADS_SHARE = 20,               /* reading heads may take 1/20 of the time */
  HEADS_KEYS = 500,               /* read together, where there are more */
  UNBLOCK_EVERY_US = 5000 * 1000, /* how often to look for rows that were blocked by nobody we know */
  UNBLOCK_ROWS = 500,
  UNBLOCK_SHARE = 20,            /* that walks over all blocked rows of a shard, and may take 1/20 of the time, */
  UNBLOCK_AHEAD_US = 500 * 1000, /* but for what little is done at once, */
  UNBLOCK_REST_MAX_US = 10 * 1000 * 1000, /* and this at most, since a moment may be slow */
};

/* Rows that were blocked are looked for by the next look. */
static void unblock_soon(struct scheduler *s, struct lane *lane) {
  lane->unblock_look = s->look + 1;
  lane->to_unblock = UINT64_MAX;
  scheduler_look_soon(s);
}

void scheduler_leave_order(struct scheduler *s, struct flight *flight, bool handed_back) {
  struct lane *lane = flight->lane;
  size_t heads = lane->order.heads;
  bool failed = flight->settled && flight->decision.applied && !flight->decision.changed && flight->decision.head;
  if (failed && flight->end == FLIGHT_MOVES) { /* whoever is there sends it at once */
    s->heads_rest_us = HEADS_SOON_US;
    s->heads_at_us = earlier(s->heads_at_us, clock_mono_us() + HEADS_SOON_US);
  }
  if (order_leave(&lane->order, flight, failed ? ORDER_HEAD : handed_back ? ORDER_AGAIN : ORDER_OVER))
    lane_sweep_first(lane);
  if (lane->order.heads < heads)
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

bool scheduler_heads(struct scheduler *s) {
  if (!end_elsewhere(s))
    return false;
  int64_t now = clock_mono_us();
  size_t known = count_heads(s);
  bool unknown = any_unknown(s);
  struct err err = {0};
  if (!s->heads_stale && (now < s->heads_at_us || (known == 0 && !unknown)))
    return true;
  if (s->heads_stale || !s->heads_part.more)
    begin_heads(s, known > HEADS_KEYS || unknown);
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
    s->heads_at_us = now + (clock_mono_us() - now) * HEADS_SHARE;
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
    order_return_begin(&lane->order);
  }
}

void scheduler_return_seen(struct scheduler *s, const struct store_group *groups, size_t count,
                           const struct shard_lease *leases, size_t lease_count) {
  uint64_t seen = 0;
  for (size_t i = 0; i < lease_count; i++)
    seen |= shard_bit(leases[i].shard);
  for (size_t i = 0; i < count; i++) {
    struct lane *lane = groups[i].state == TASK_BLOCKED ? scheduler_lane(s, groups[i].route) : NULL;
    if (lane)
      lane->blocked |= shard_bit(groups[i].shard);
  }
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    lane->returned |= seen & ~lane->blocked;
    lane->blocked = 0;
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

void scheduler_unblock(struct scheduler *s, struct lane *lane, const struct store_group *found) {
  struct shard_lease lease = {.shard = found->shard, .epoch = s->view[found->shard].epoch, .owner = s->instance};
  int64_t now = clock_mono_us();
  struct err err = {0};
  uint32_t moved = 0;
  bool all = false, awaited = lane->returning && !(lane->returned & shard_bit(found->shard));
  if (now >= lane->unblock_at_us) {
    lane->to_unblock = UINT64_MAX;
    lane->unblock_at_us = now + UNBLOCK_EVERY_US;
  }
  if ((!awaited && !(lane->to_unblock & shard_bit(found->shard))) || lane->unblock_paid_us > now + UNBLOCK_AHEAD_US)
    return;
  enum store_status status = s->store->ops->unblock(s->ss, &lease, s->config->config->engine.instance, found->route,
                                                    failed_are_heads(lane), UNBLOCK_ROWS, &moved, &all, &err);
  int64_t rest_us = pace_rest_us(clock_mono_us() - now, UNBLOCK_SHARE, UNBLOCK_REST_MAX_US);
  lane->unblock_paid_us = later(lane->unblock_paid_us, now) + rest_us;
  if (!scheduler_db_ok(s, status, &err))
    return;
  lane->to_unblock &= ~shard_bit(found->shard);
  if (all)
    lane->returned |= shard_bit(found->shard);
  if (moved > 0) {
    lane->old_shards |= shard_bit(found->shard); /* also where no group is left that could be swept */
    lane->unseen |= awaited ? shard_bit(found->shard) : 0;
    lane_sweep_first(lane);
  }
  if (moved == UNBLOCK_ROWS)
    unblock_soon(s, lane);
  else if (moved > 0)
    scheduler_look_soon(s);
}
