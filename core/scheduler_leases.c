/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_leases.c - what leases mean for reading: shards that come and go, and those that are leaving.
 *
 * Which lanes read a leaving shard no more is decided here, from how long their tasks are out; when it is shut, or
 * opened again, is for leases_step() to say.
 *
 * @thread scheduler
 */
#include <string.h>

#include "core/base/clock.h"
#include "core/scheduler.h"

enum { LEAVE_STEP_US = 10 * 1000 };

uint64_t scheduler_epoch(const struct scheduler *s, const struct lane *lane, uint8_t shard) {
  const struct lease_slot *slot = &s->view[shard];
  return slot->stage == LEASE_SHUT || lane->away & shard_bit(shard) ? 0 : slot->epoch;
}

/* What whoever was here before left is found out first: claims, and blocked and held rows. */
static void shard_came(struct scheduler *s, uint8_t shard) {
  s->claims_lost |= shard_bit(shard);
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    scheduler_close(lane, shard_bit(shard));
    lane->unclaimed &= ~shard_bit(shard);
    lane->suspects.survived = 0; /* others may have come with it */
  }
}

/* Lanes that had ceased to read a shard do so again: it stays, or another lease has begun. */
static bool come_back(struct scheduler *s, uint8_t shard) {
  bool any = false;
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (!(lane->away & shard_bit(shard)))
      continue;
    lane->away &= ~shard_bit(shard);
    scheduler_close(lane, shard_bit(shard));
    any = true;
  }
  return any;
}

/* What has become of one lease. True: something is to be read that was not before. */
static bool follow_slot(struct scheduler *s, uint8_t shard, const struct lease_slot *was) {
  const struct lease_slot *slot = &s->view[shard];
  bool other = slot->epoch != was->epoch, shut = slot->stage == LEASE_SHUT, was_shut = was->stage == LEASE_SHUT;
  bool opens = !other && was_shut && !shut, gone = was->epoch && (other || (shut && !was_shut));
  if (other) {
    s->calm_count[shard] = 0;
    s->claims_unknown &= ~shard_bit(shard); /* of an earlier epoch now */
  }
  bool comes = (other && slot->epoch) || opens;
  if (comes)
    shard_came(s, shard);
  if (!slot->epoch)
    s->claims_lost &= ~shard_bit(shard); /* they are for whoever has it now */
  bool back = (other || slot->stage == LEASE_STAYS) && come_back(s, shard);
  /* Groups of a lost shard are not read again until a look has seen them under a new epoch. */
  for (struct lane *lane = gone ? s->lanes : NULL; lane; lane = lane->next)
    lane_leave_shard(lane, shard);
  return comes || (back && slot->epoch);
}

/* Leases of these shards (bits) are over. What is out under them may be so for long, and its outcome is not written:
 * nobody waits for it who has its row now, which may be us again. */
static void let_go(struct scheduler *s, uint64_t shards) {
  for (struct flight *flight = flight_first(s->flights); flight; flight = flight_after(s->flights, flight)) {
    struct lane *lane = flight->lane;
    uint8_t shard = flight->task->shard;
    if (flight->over || !(shards & shard_bit(shard)) || flight->epoch == s->view[shard].epoch)
      continue;
    flight->over = true;
    if (flight->in_order && order_leave(&lane->order, flight, ORDER_LOST))
      lane_sweep_first(lane);
    if (flight->suspicion)
      suspects_back(&lane->suspects, flight->suspicion, false, &s->last_chance);
    flight->suspicion = SUSPICION_NONE;
  }
}

static void take_view(struct scheduler *s) {
  struct lease_slot before[STORE_SHARDS_MAX];
  memcpy(before, s->view, sizeof before);
  leases_view(s->leases, s->view);
  bool changed = false;
  uint64_t over = 0;
  for (int i = 0; i < STORE_SHARDS_MAX; i++) {
    changed = follow_slot(s, (uint8_t)i, &before[i]) || changed;
    if (before[i].epoch && s->view[i].epoch != before[i].epoch)
      over |= shard_bit((uint8_t)i);
  }
  if (over)
    let_go(s, over);
  if (!changed)
    return;
  s->look_at_us = 0;
  s->heads_came = true;
  s->held_at_us = 0;
  s->pace = (struct poll_pace){0};
}

/* --- shards that are leaving --- */

/* The lane reads the shard no more where its tasks are out for long: `out_us`. */
static void judge(const struct scheduler *s, struct lane *lane, uint8_t shard, int64_t out_us) {
  if (s->view[shard].stage != LEASE_EMPTIES || lane->away & shard_bit(shard) || out_us <= s->view[shard].slow_us)
    return;
  lane->away |= shard_bit(shard);
  lane_leave_shard(lane, shard);
}

/* What is known of lanes, and what is out now and for how long, decides. Returns the shards (bits) of which lanes that
 * do not read them have something out. */
static uint64_t judge_lanes(struct scheduler *s, int64_t now_us) {
  uint64_t slow_out = 0;
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    for (int i = 0; lane->out_us > LEASE_SLOW_US && i < SHARD_BOUND; i++)
      judge(s, lane, (uint8_t)i, lane->out_us);
  for (struct flight *flight = flight_first(s->flights); flight; flight = flight_after(s->flights, flight)) {
    judge(s, flight->lane, flight->task->shard, now_us - flight->read_us);
    slow_out |= flight->lane->away & shard_bit(flight->task->shard);
  }
  return slow_out;
}

static bool step(struct scheduler *s, int64_t now_us) {
  uint64_t slow_out = judge_lanes(s, now_us);
  bool moved = false;
  for (int i = 0; i < SHARD_BOUND; i++)
    moved = leases_step(s->leases, (uint8_t)i, slow_out & shard_bit((uint8_t)i), now_us) || moved;
  return moved;
}

/* A shard that is shut for good goes no step further. */
static bool any_leaves(const struct scheduler *s) {
  for (int i = 0; i < SHARD_BOUND; i++)
    if (s->view[i].stage == LEASE_EMPTIES || (s->view[i].stage == LEASE_SHUT && !s->view[i].for_good))
      return true;
  return false;
}

/* Nobody waits for the keeper's next round: its shards are read by no one meanwhile. */
static void tell_empty(struct scheduler *s) {
  uint64_t empty = 0;
  for (int i = 0; i < SHARD_BOUND; i++)
    if (s->view[i].quiet && atomic_load(&s->leases->in_flight[i]) == 0)
      empty |= shard_bit((uint8_t)i);
  if (empty & ~s->emptied && s->shard_empty)
    s->shard_empty(s->engine);
  s->emptied = empty;
}

void scheduler_follow_leases(struct scheduler *s) {
  int64_t now = clock_mono_us();
  take_view(s);
  if (!any_leaves(s)) {
    s->leave_at_us = INT64_MAX;
  } else if (now >= s->leave_at_us || s->leave_at_us == INT64_MAX) {
    while (step(s, now))
      take_view(s);
    s->leave_at_us = now + LEAVE_STEP_US;
  }
  tell_empty(s);
}
