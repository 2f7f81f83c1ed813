/* SPDX-License-Identifier: MIT
 *
 * core/order_return.c - order keys whose heads are over, and what these blocked in the table: a key is closed until
 * that is back, for what was committed later would overtake it.
 *
 * What this daemon has blocked it knows by id, up to a number. If nobody else can have blocked any of the key, they
 * come back by their ids, and the key goes on as soon as a look has seen their groups. Otherwise a walk over all
 * blocked rows of our shards brings them back.
 */
#include <stdlib.h>
#include <string.h>

#include "core/order_internal.h"

static bool is_on_its_way(enum order_back state) { return state == BACK_DONE || state == BACK_SEEN; }

static void set_back(struct order *order, struct order_key *key, enum order_back state) {
  order->ready += (size_t)(state == BACK_READY) - (size_t)(key->back_state == BACK_READY);
  order->came_back += (size_t)is_on_its_way(state) - (size_t)is_on_its_way(key->back_state);
  key->back_state = state;
}

static void forget_blocked(struct order *order, struct order_key *key) {
  order->blocked_ids -= key->blocked_count;
  free(key->blocked);
  key->blocked = NULL;
  key->blocked_count = key->blocked_room = key->back = key->asked = 0;
  key->own = false;
}

void order_set_closed(struct order *order, struct order_key *key, bool closed) {
  key->returns = false;
  set_back(order, key, BACK_BY_WALK);
  order->closed += (size_t)closed - (size_t)key->closed;
  key->closed = closed;
  if (!closed)
    forget_blocked(order, key);
}

void order_head_comes(struct order *order, struct order_key *key) {
  key->returns = false;
  set_back(order, key, BACK_BY_WALK);
}

void order_head_over(struct order *order, struct order_key *key) {
  if (key->closed && key->own && !key->head && !key->blocking)
    set_back(order, key, key->back < key->blocked_count ? BACK_READY : BACK_DONE);
}

void order_blocked_by_others(struct order *order, struct order_key *key) { forget_blocked(order, key); }

void order_not_own(struct order *order, uint64_t shards) {
  for (struct order_key *key = order->closed ? order->keys : NULL; key; key = key->hh.next) {
    if (!key->own || !(shards & shard_bit(key->shard)))
      continue;
    set_back(order, key, BACK_BY_WALK);
    forget_blocked(order, key);
  }
}

/* Another instance of our name may block rows that are bound to our host. */
static bool blocks_alone(const struct order *order, uint8_t shard) {
  return shard != SHARD_BOUND && !(order->closed_shards & shard_bit(shard));
}

bool order_block(struct order *order, const struct task *task) {
  struct order_key *key = order_find(order, task->order_key);
  if (!key)
    return false;
  bool first = !key->closed;
  key->blocking++;
  order_set_closed(order, key, true);
  if (first) {
    key->own = blocks_alone(order, task->shard);
    key->shard = task->shard;
  } else if (key->own && key->shard != task->shard) {
    forget_blocked(order, key);
  }
  return true;
}

static void note_blocked(struct order *order, struct order_key *key, uint64_t id) {
  if (!key->own)
    return;
  if (key->blocked_count == key->blocked_room) {
    uint32_t room = key->blocked_room ? key->blocked_room * 2 : 8;
    uint64_t *more = key->blocked_count < ORDER_BLOCKED_PER_KEY && order->blocked_ids < ORDER_BLOCKED_MAX
                         ? realloc(key->blocked, room * sizeof *more)
                         : NULL;
    if (!more) {
      forget_blocked(order, key);
      return;
    }
    key->blocked = more;
    key->blocked_room = room;
  }
  key->blocked[key->blocked_count++] = id;
  order->blocked_ids++;
}

bool order_blocked_done(struct order *order, const struct task *task) {
  struct order_key *key = order_find(order, task->order_key);
  if (!key || key->blocking == 0)
    return false;
  note_blocked(order, key, task->id);
  if (--key->blocking > 0 || key->head)
    return false;
  (void)order_forget_waiting(order, key); /* they come after those that are brought back */
  order_head_over(order, key);
  return true;
}

void order_close_shards(struct order *order, uint64_t shards) {
  order_not_own(order, shards);
  order->closed_shards |= shards;
  order->shards_return &= ~shards;
}

/* --- by a walk --- */

static bool awaits_walk(const struct order_key *key) {
  return key->closed && !key->head && !key->blocking && key->back_state == BACK_BY_WALK;
}

bool order_awaits_return(const struct order *order) {
  if (order->closed_shards)
    return true;
  for (const struct order_key *key = order->closed ? order->keys : NULL; key; key = key->hh.next)
    if (awaits_walk(key))
      return true;
  return false;
}

void order_return_begin(struct order *order) {
  order->shards_return = order->closed_shards;
  for (struct order_key *key = order->closed ? order->keys : NULL; key; key = key->hh.next)
    key->returns = awaits_walk(key);
}

bool order_returned(struct order *order) {
  bool sweep = (order->closed_shards & order->shards_return) != 0;
  order->closed_shards &= ~order->shards_return;
  for (struct order_key *key = order->closed ? order->keys : NULL, *next; key; key = next) {
    next = key->hh.next;
    if (!key->returns || key->head)
      continue;
    order_set_closed(order, key, false);
    sweep = true;
    (void)order_goes_on(order, key);
  }
  return sweep;
}

/* --- by their ids --- */

size_t order_ready(struct order *order, uint64_t *ids, size_t most, uint8_t *shard) {
  size_t n = 0;
  for (struct order_key *key = order->ready ? order->keys : NULL; key && n < most; key = key->hh.next) {
    if (key->back_state != BACK_READY || (n > 0 && key->shard != *shard))
      continue;
    size_t left = key->blocked_count - key->back;
    key->asked = (uint32_t)(left < most - n ? left : most - n);
    memcpy(&ids[n], &key->blocked[key->back], key->asked * sizeof *ids);
    n += key->asked;
    *shard = key->shard;
  }
  return n;
}

void order_ready_done(struct order *order, bool all) {
  for (struct order_key *key = order->ready ? order->keys : NULL; key; key = key->hh.next) {
    if (key->back_state != BACK_READY || !key->asked)
      continue;
    key->back += key->asked;
    key->asked = 0;
    set_back(order, key, !all ? BACK_BY_WALK : key->back < key->blocked_count ? BACK_READY : BACK_DONE);
    if (!all)
      forget_blocked(order, key);
  }
}

void order_seen_begin(struct order *order) {
  for (struct order_key *key = order->came_back ? order->keys : NULL; key; key = key->hh.next)
    if (key->back_state == BACK_DONE)
      set_back(order, key, BACK_SEEN);
}

bool order_seen_end(struct order *order, uint64_t shards) {
  bool sweep = false;
  for (struct order_key *key = order->came_back ? order->keys : NULL, *next; key; key = next) {
    next = key->hh.next;
    if (key->back_state != BACK_SEEN || !(shards & shard_bit(key->shard)))
      continue;
    order_set_closed(order, key, false);
    sweep = true;
    (void)order_goes_on(order, key);
  }
  return sweep;
}
