/* SPDX-License-Identifier: MIT */
#include "core/leases.h"

#include <stdlib.h>
#include <string.h>

enum { JUMP_US = 500 * 1000 }; /* less is a busy machine, or a clock that is slewed */

void leases_init(struct leases *leases) {
  memset(leases, 0, sizeof *leases);
  mutex_init(&leases->lock);
  leases->slot[SHARD_BOUND] = (struct lease_slot){.epoch = 1, .stage = LEASE_SHUT, .turn_us = INT64_MAX, .quiet = true};
  atomic_store(&leases->epoch[SHARD_BOUND], 1);
}

void leases_destroy(struct leases *leases) { mutex_destroy(&leases->lock); }

/* Under the lock. */
static void set_safe(struct leases *leases, uint8_t shard, struct instant sent, int64_t for_us) {
  if (sent.boot_us < atomic_load(&leases->doubt_us))
    return;
  atomic_store(&leases->skew_us[shard], sent.boot_us - sent.mono_us);
  atomic_store(&leases->safe_until_us[shard], sent.boot_us + for_us);
}

void leases_gain(struct leases *leases, uint8_t shard, uint64_t epoch, struct instant sent, int64_t for_us,
                 bool cautious) {
  mutex_lock(&leases->lock);
  leases->slot[shard] = (struct lease_slot){.epoch = epoch, .cautious = cautious};
  atomic_store(&leases->epoch[shard], epoch);
  set_safe(leases, shard, sent, for_us);
  mutex_unlock(&leases->lock);
}

void leases_renewed(struct leases *leases, struct shard_lease lease, struct instant sent, int64_t for_us) {
  mutex_lock(&leases->lock);
  if (leases->slot[lease.shard].epoch == lease.epoch)
    set_safe(leases, lease.shard, sent, for_us);
  mutex_unlock(&leases->lock);
}

/* Under the lock. */
static void forget(struct leases *leases, uint8_t shard) {
  leases->slot[shard] = (struct lease_slot){0};
  atomic_store(&leases->safe_until_us[shard], 0);
  atomic_store(&leases->epoch[shard], 0);
}

void leases_note_left(struct leases *leases, uint8_t shard) {
  mutex_lock(&leases->lock);
  leases->slot[shard].left = true;
  mutex_unlock(&leases->lock);
}

void leases_note_all_left(struct leases *leases) {
  mutex_lock(&leases->lock);
  for (int i = 0; i < STORE_SHARDS_MAX; i++)
    leases->slot[i].left = leases->slot[i].left || atomic_load(&leases->in_flight[i]) > 0;
  mutex_unlock(&leases->lock);
}

bool leases_lose(struct leases *leases, struct shard_lease lease, bool *left) {
  mutex_lock(&leases->lock);
  if (left)
    *left = leases->slot[lease.shard].left;
  bool ours = leases->slot[lease.shard].epoch == lease.epoch;
  if (ours)
    forget(leases, lease.shard);
  mutex_unlock(&leases->lock);
  return ours;
}

void leases_doubt(struct leases *leases, int64_t now_boot_us) {
  mutex_lock(&leases->lock);
  atomic_store(&leases->doubt_us, now_boot_us);
  for (int i = 0; i < STORE_SHARDS_MAX; i++)
    atomic_store(&leases->safe_until_us[i], 0);
  mutex_unlock(&leases->lock);
}

/* Under the lock. The one place where a shard's stage changes while it is ours. */
static void enter(struct lease_slot *slot, enum lease_stage stage, int64_t turn_us) {
  slot->stage = stage;
  slot->turn_us = turn_us;
  slot->quiet = false;
}

bool leases_hold_name(struct leases *leases, bool ours) {
  mutex_lock(&leases->lock);
  struct lease_slot *slot = &leases->slot[SHARD_BOUND];
  if (ours && slot->stage == LEASE_SHUT && slot->quiet)
    enter(slot, LEASE_STAYS, 0);
  else if (!ours && slot->stage != LEASE_SHUT)
    enter(slot, LEASE_SHUT, INT64_MAX);
  bool held = slot->stage != LEASE_SHUT;
  if (!held)
    atomic_store(&leases->safe_until_us[SHARD_BOUND], 0);
  mutex_unlock(&leases->lock);
  return held;
}

void leases_leave(struct leases *leases, uint8_t shard, int64_t now_us) {
  mutex_lock(&leases->lock);
  struct lease_slot *slot = &leases->slot[shard];
  enter(slot, LEASE_EMPTIES, now_us);
  slot->slow_us = LEASE_SLOWEST_US;
  slot->leaving_us = now_us;
  mutex_unlock(&leases->lock);
}

void leases_leave_all(struct leases *leases, int64_t now_us, int64_t read_for_us) {
  mutex_lock(&leases->lock);
  for (int i = 0; i < SHARD_BOUND; i++) {
    struct lease_slot *slot = &leases->slot[i];
    if (!slot->epoch || slot->for_good)
      continue;
    if (read_for_us > 0)
      enter(slot, LEASE_EMPTIES, now_us + read_for_us);
    else
      enter(slot, LEASE_SHUT, INT64_MAX);
    slot->slow_us = LEASE_SLOWEST_US;
    slot->for_good = true;
    slot->leaving_us = now_us;
  }
  mutex_unlock(&leases->lock);
}

void leases_stay(struct leases *leases, int64_t now_us, int64_t limit_us) {
  mutex_lock(&leases->lock);
  for (int i = 0; i < SHARD_BOUND; i++)
    if (leases->slot[i].stage != LEASE_STAYS && now_us - leases->slot[i].leaving_us > limit_us) {
      enter(&leases->slot[i], LEASE_STAYS, 0);
      leases->slot[i].rest_until_us = now_us + 10 * limit_us;
    }
  mutex_unlock(&leases->lock);
}

bool leases_idlest(struct leases *leases, int64_t now_us, uint8_t *shard) {
  int_fast32_t least = INT_FAST32_MAX;
  mutex_lock(&leases->lock);
  for (int i = 0; i < SHARD_BOUND; i++) {
    int_fast32_t in_flight = atomic_load(&leases->in_flight[i]);
    if (leases->slot[i].epoch && leases->slot[i].stage == LEASE_STAYS && in_flight < least &&
        now_us >= leases->slot[i].rest_until_us) {
      least = in_flight;
      *shard = (uint8_t)i;
    }
  }
  mutex_unlock(&leases->lock);
  return least < INT_FAST32_MAX;
}

/* Shards that are ours and no further than that stage. */
static size_t count_until(struct leases *leases, enum lease_stage last) {
  size_t n = 0;
  mutex_lock(&leases->lock);
  for (int i = 0; i < SHARD_BOUND; i++)
    n += leases->slot[i].epoch && leases->slot[i].stage <= last;
  mutex_unlock(&leases->lock);
  return n;
}

size_t leases_staying(struct leases *leases) { return count_until(leases, LEASE_STAYS); }

size_t leases_read(struct leases *leases) { return count_until(leases, LEASE_EMPTIES); }

bool leases_give_back(struct leases *leases, struct shard_lease lease, bool *left) {
  mutex_lock(&leases->lock);
  const struct lease_slot *slot = &leases->slot[lease.shard];
  bool may = slot->epoch == lease.epoch && slot->quiet && atomic_load(&leases->in_flight[lease.shard]) == 0;
  *left = slot->left;
  if (may)
    forget(leases, lease.shard);
  mutex_unlock(&leases->lock);
  return may;
}

bool leases_step(struct leases *leases, uint8_t shard, bool slow_out, int64_t now_us) {
  mutex_lock(&leases->lock);
  struct lease_slot *slot = &leases->slot[shard];
  const struct lease_slot before = *slot;
  if (slot->stage == LEASE_EMPTIES && !slow_out) {
    if (slot->slow_us > LEASE_SLOW_US)
      slot->slow_us /= LEASE_SLOWER;
    else if (now_us >= slot->turn_us)
      enter(slot, LEASE_SHUT, slot->for_good ? INT64_MAX : now_us + LEASE_SHUT_US);
  } else if (slot->stage == LEASE_SHUT && now_us >= slot->turn_us) {
    enter(slot, LEASE_EMPTIES, now_us + LEASE_OPEN_US);
  }
  bool moved = slot->stage != before.stage || slot->slow_us != before.slow_us;
  mutex_unlock(&leases->lock);
  return moved;
}

void leases_view(struct leases *leases, struct lease_slot view[STORE_SHARDS_MAX]) {
  mutex_lock(&leases->lock);
  for (int i = 0; i < STORE_SHARDS_MAX; i++)
    leases->slot[i].quiet = leases->slot[i].stage == LEASE_SHUT;
  memcpy(view, leases->slot, sizeof leases->slot);
  mutex_unlock(&leases->lock);
}

void leases_calm(struct leases *leases, uint8_t shard) {
  mutex_lock(&leases->lock);
  leases->slot[shard].cautious = false;
  mutex_unlock(&leases->lock);
}

void leases_worry(struct leases *leases, uint8_t shard) {
  mutex_lock(&leases->lock);
  leases->slot[shard].cautious = leases->slot[shard].epoch != 0;
  mutex_unlock(&leases->lock);
}

size_t leases_held(struct leases *leases, struct shard_lease out[STORE_SHARDS_MAX]) {
  size_t n = 0;
  mutex_lock(&leases->lock);
  for (int i = 0; i < STORE_SHARDS_MAX; i++)
    if (leases->slot[i].epoch)
      out[n++] = (struct shard_lease){.shard = (uint8_t)i, .epoch = leases->slot[i].epoch, .owner = leases->owner};
  mutex_unlock(&leases->lock);
  return n;
}

size_t leases_owned(struct leases *leases, struct shard_lease out[STORE_SHARDS_MAX]) {
  size_t n = leases_held(leases, out);
  return n > 0 && out[n - 1].shard == SHARD_BOUND ? n - 1 : n; /* the last one */
}

int64_t leases_safe_us(const struct leases *l, uint8_t shard, uint64_t epoch, struct instant now) {
  int64_t skew = now.boot_us - now.mono_us - atomic_load_explicit(&l->skew_us[shard], memory_order_relaxed);
  if (atomic_load_explicit(&l->epoch[shard], memory_order_acquire) != epoch || llabs(skew) >= JUMP_US)
    return 0;
  int64_t left = atomic_load_explicit(&l->safe_until_us[shard], memory_order_acquire) - now.boot_us;
  return left > 0 ? left : 0;
}

bool leases_safe(const struct leases *leases, uint8_t shard, uint64_t epoch, struct instant now) {
  return leases_safe_us(leases, shard, epoch, now) > 0;
}

int64_t clock_bounds_moved(struct clock_bounds *bounds, int64_t db_now_us, int64_t sent_boot_us, int64_t got_boot_us) {
  struct clock_bounds before = *bounds;
  *bounds =
      (struct clock_bounds){.known = true, .low_us = db_now_us - got_boot_us, .high_us = db_now_us - sent_boot_us};
  if (before.known && bounds->low_us > before.high_us + JUMP_US)
    return bounds->low_us - before.high_us;
  if (before.known && bounds->high_us < before.low_us - JUMP_US)
    return bounds->high_us - before.low_us;
  return 0;
}
