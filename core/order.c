/* SPDX-License-Identifier: MIT */
#include "core/order.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"

struct order_wait {
  uint64_t id;
  uint64_t of; /* hash of its message_id: the id may be another task's by now */
  int64_t due_us;
  uint8_t shard, priority;
  bool queued; /* in the lane's queue of called ones, */
  bool later;  /* or of those that are called at due_us */
  struct order_key *key;
  struct order_wait *next, *prev; /* waiting: in its key's list; called: in its queue */
  UT_hash_handle hh;
};

struct order_key {
  struct flight *out;              /* on its way; NULL = nobody */
  struct order_wait *called;       /* its turn, not read yet; NULL = nobody */
  struct order_wait *first, *last; /* waiting, the next one first, */
  struct order_wait *newest;       /* and the one that was lined up last; NULL = not known */
  uint32_t waiting;
  bool missed;         /* some wait in the table alone */
  uint32_t blocking;   /* being blocked in the table */
  bool closed;         /* some may be blocked there, also when there is no head any more */
  bool returns;        /* bringing them back has begun, and nothing was blocked since */
  uint64_t head;       /* blocks the others; 0 = none */
  bool soon;           /* it is tried again soon: they wait here, as long as none of them is blocked in the table */
  bool more_heads;     /* there are others behind it, in the table */
  bool head_seen;      /* in the table, since order_heads_begin() */
  uint64_t elsewhere;  /* claimed by another instance; 0 = none */
  bool elsewhere_seen; /* in the table, since order_claims_begin() */
  UT_hash_handle hh;
  size_t len;
  char text[];
};

static struct order_key *find_key(const struct order *order, struct duebox_bytes name) {
  struct order_key *key;
  HASH_FIND(hh, order->keys, name.data, name.len, key);
  return key;
}

static struct order_key *make_key(struct order *order, struct duebox_bytes name) {
  struct order_key *key = find_key(order, name);
  if (key || !(key = calloc(1, sizeof *key + name.len)))
    return key;
  key->len = name.len;
  memcpy(key->text, name.data, name.len);
  HASH_ADD_KEYPTR(hh, order->keys, key->text, key->len, key);
  if (!key->hh.tbl) { /* uthash found no memory */
    free(key);
    return NULL;
  }
  return key;
}

static struct order_wait *find_waiting(const struct order *order, uint64_t id) {
  struct order_wait *wait;
  HASH_FIND(hh, order->waiting, &id, sizeof id, wait);
  return wait;
}

static uint64_t of(const struct task *task) {
  return task->message_id.len ? hash_keyed(task->message_id.data, task->message_id.len) : 0;
}

static struct order_wait *make_waiting(struct order *order, struct order_key *key, const struct task *task) {
  struct order_wait *wait = calloc(1, sizeof *wait);
  if (!wait)
    return NULL;
  *wait = (struct order_wait){.id = task->id,
                              .of = of(task),
                              .due_us = task->due_us,
                              .shard = task->shard,
                              .priority = task->priority,
                              .key = key};
  HASH_ADD(hh, order->waiting, id, sizeof wait->id, wait);
  if (!wait->hh.tbl) {
    free(wait);
    return NULL;
  }
  order->of_shard[wait->shard]++;
  return wait;
}

static void forget(struct order *order, struct order_wait *wait) {
  order->of_shard[wait->shard]--;
  HASH_DELETE(hh, order->waiting, wait);
  free(wait);
}

static void drop_if_idle(struct order *order, struct order_key *key) {
  if (key->out || key->called || key->first || key->missed || key->head || key->blocking || key->closed ||
      key->elsewhere)
    return;
  HASH_DELETE(hh, order->keys, key);
  free(key);
}

/* Into a list, in front of that one; NULL = at its end. */
static void put_in(struct order_wait **first, struct order_wait **last, struct order_wait *at,
                   struct order_wait *wait) {
  wait->next = at;
  wait->prev = at ? at->prev : *last;
  *(wait->prev ? &wait->prev->next : first) = wait;
  *(at ? &at->prev : last) = wait;
}

static void take_out(struct order_wait **first, struct order_wait **last, const struct order_wait *wait) {
  *(wait->prev ? &wait->prev->next : first) = wait->next;
  *(wait->next ? &wait->next->prev : last) = wait->prev;
}

/* Out of either queue. */
static void dequeue_this(struct order *order, struct order_wait *wait) {
  take_out(wait->later ? &order->later : &order->called, wait->later ? &order->later_last : &order->called_last, wait);
  wait->queued = wait->later = false;
}

static void enqueue(struct order *order, struct order_wait *wait) {
  if (wait->later)
    dequeue_this(order, wait);
  wait->queued = true;
  put_in(&order->called, &order->called_last, NULL, wait);
}

static void line_out(struct order_wait *wait) {
  struct order_key *key = wait->key;
  if (key->newest == wait)
    key->newest = NULL;
  take_out(&key->first, &key->last, wait);
  key->waiting--;
}

/* True when the next one waits in the table alone. */
static bool call_next(struct order *order, struct order_key *key) {
  struct order_wait *wait = key->first;
  if (wait) {
    line_out(wait);
    key->called = wait;
    enqueue(order, wait);
    return false;
  }
  bool missed = key->missed;
  key->missed = false;
  drop_if_idle(order, key);
  return missed;
}

/* Nobody of the key is called while others stand before it that are not known here. */
static bool goes_on(struct order *order, struct order_key *key) {
  if (!key->out && !key->called && !key->head && !key->blocking && !key->closed && !key->elsewhere)
    return call_next(order, key);
  drop_if_idle(order, key);
  return false;
}

static void set_closed(struct order *order, struct order_key *key, bool closed) {
  key->returns = false;
  order->closed += (size_t)closed - (size_t)key->closed;
  key->closed = closed;
}

static bool goes_before(const struct order_wait *a, const struct order_wait *b) {
  if (a->priority != b->priority)
    return a->priority > b->priority;
  return a->due_us != b->due_us ? a->due_us < b->due_us : a->id < b->id;
}

/* They come from the index in their order: nearly always at the end, or behind the one before. */
static void line_up(struct order_key *key, struct order_wait *wait) {
  struct order_wait *at = key->last && goes_before(wait, key->last) ? key->newest ? key->newest : key->first : NULL;
  while (at && !goes_before(wait, at))
    at = at->next;
  while (at && at->prev && goes_before(wait, at->prev))
    at = at->prev;
  put_in(&key->first, &key->last, at, wait);
  key->newest = wait;
  key->waiting++;
}

bool order_may_go(const struct order *order, const struct task *task) {
  const struct order_key *key = task->order_key.len ? find_key(order, task->order_key) : NULL;
  if (key && !key->out && key->head == task->id)
    return true;
  if (task->order_key.len && order->closed_shards & shard_bit(task->shard))
    return false;
  return !key || (!key->head && !key->blocking && !key->closed && !key->elsewhere && !key->out && key->called &&
                  key->called->id == task->id);
}

bool order_blocked(const struct order *order, const struct task *task) {
  const struct order_key *key = order->heads && task->order_key.len ? find_key(order, task->order_key) : NULL;
  return key && key->head && key->head != task->id && (!key->soon || key->closed);
}

static void uncall(struct order *order, struct order_wait *wait) {
  wait->key->called = NULL;
  if (wait->queued || wait->later)
    dequeue_this(order, wait);
  forget(order, wait);
}

/* Its row is gone, has another key, or is another task's; the key goes on without it. True as order_leave(). */
static bool leave_key(struct order *order, struct order_wait *wait) {
  struct order_key *key = wait->key;
  if (key->called == wait) {
    uncall(order, wait);
    return goes_on(order, key);
  }
  line_out(wait);
  forget(order, wait);
  drop_if_idle(order, key);
  return false;
}

bool order_changed(struct order *order, const struct task *task) {
  struct order_wait *known = order->waiting ? find_waiting(order, task->id) : NULL;
  if (!known || (known->of == of(task) && known->key->len == task->order_key.len &&
                 memcmp(known->key->text, task->order_key.data, task->order_key.len) == 0))
    return false;
  bool called = known->key->called == known;
  (void)leave_key(order, known);
  return called;
}

static bool has_room(const struct order *order, const struct order_key *key) {
  uint32_t all = HASH_COUNT(order->waiting), left = all < ORDER_WAITING_MAX ? ORDER_WAITING_MAX - all : 0;
  return left > 0 && (key->waiting < ORDER_WAITING_PER_KEY || key->waiting < left);
}

bool order_wait(struct order *order, const struct task *task) {
  bool sweep = order_changed(order, task);
  struct order_key *key = find_key(order, task->order_key);
  if (!key || find_waiting(order, task->id))
    return sweep;
  /* Behind one that is in the table alone nobody may be remembered: it would be called before it. */
  bool room = !key->missed && !key->closed && has_room(order, key);
  struct order_wait *wait = room ? make_waiting(order, key, task) : NULL;
  if (wait)
    line_up(key, wait);
  else
    key->missed = true;
  return sweep;
}

void order_reserve(struct order *order, const struct task *task) {
  struct order_key *key = task->order_key.len ? make_key(order, task->order_key) : NULL;
  if (!key || key->called)
    return; /* called already; without memory the next batch decides anew */
  key->called = make_waiting(order, key, task);
  drop_if_idle(order, key);
}

/* The called one waits again, as the next of its key. A head does not: it goes whenever it is met. */
static void recall(struct order *order, struct order_key *key) {
  struct order_wait *wait = key->called;
  if (wait->id == key->head) {
    uncall(order, wait);
    return;
  }
  key->called = NULL;
  if (wait->queued)
    dequeue_this(order, wait);
  line_up(key, wait);
}

static void set_elsewhere(struct order *order, struct order_key *key, uint64_t id) {
  order->elsewhere += (size_t)(id != 0) - (size_t)(key->elsewhere != 0);
  key->elsewhere = id;
}

bool order_enter(struct order *order, struct flight *flight) {
  struct order_key *key = make_key(order, flight->task->order_key);
  if (!key || key->out)
    return false;
  if (key->elsewhere == flight->id)
    set_elsewhere(order, key, 0); /* that claim is taken back: ours from now on */
  if (key->called && key->called->id == flight->id)
    uncall(order, key->called);
  else if (key->called)
    recall(order, key); /* the flight was not read for its turn: it is a claim that is taken back */
  key->out = flight;
  return true;
}

/* They are met again by a sweep. True when there were any. */
static bool forget_waiting(struct order *order, struct order_key *key) {
  bool waited = key->first || key->missed;
  while (key->first) {
    struct order_wait *wait = key->first;
    line_out(wait);
    forget(order, wait);
  }
  key->missed = false;
  return waited;
}

/* What waited here is met by a sweep, and blocked; behind one that goes soon it stays. While blocked rows of our shards
 * come back, those behind this head do not, whoever blocked them. */
static bool set_head(struct order *order, struct order_key *key, uint64_t id, bool soon) {
  if (order->closed_shards)
    set_closed(order, key, true);
  key->soon = soon && !key->closed && !key->more_heads && (!key->head || key->head == id);
  order->heads += key->head == 0;
  order->next_head = order->next_head || (key->head && key->head != id);
  key->head = id;
  key->head_seen = true;
  key->returns = false;
  if (key->called && key->called->id != id)
    key->soon ? recall(order, key) : uncall(order, key->called);
  return !key->soon && forget_waiting(order, key);
}

static bool drop_head(struct order *order, struct order_key *key) {
  order->heads--;
  order->unsure = order->unsure || key->more_heads;
  order->left = order->left || key->closed;
  key->head = 0;
  key->soon = false;
  key->more_heads = false;
  return goes_on(order, key);
}

bool order_block(struct order *order, const struct task *task) {
  struct order_key *key = find_key(order, task->order_key);
  if (!key)
    return false;
  key->blocking++;
  set_closed(order, key, true);
  return true;
}

bool order_blocked_done(struct order *order, const struct task *task) {
  struct order_key *key = find_key(order, task->order_key);
  if (!key || key->blocking == 0 || --key->blocking > 0 || key->head)
    return false;
  (void)forget_waiting(order, key); /* they come after those that are brought back */
  return true;
}

/* A head says nothing of its shard: whoever had one of these may have blocked rows behind any head that we know. */
void order_close_shards(struct order *order, uint64_t shards) {
  for (struct order_key *key = order->heads ? order->keys : NULL; key; key = key->hh.next)
    if (key->head)
      set_closed(order, key, true);
  order->closed_shards |= shards;
  order->shards_return &= ~shards;
}

bool order_awaits_return(const struct order *order) {
  if (order->closed_shards)
    return true;
  for (const struct order_key *key = order->closed ? order->keys : NULL; key; key = key->hh.next)
    if (key->closed && !key->head && !key->blocking)
      return true;
  return false;
}

void order_return_begin(struct order *order) {
  order->shards_return = order->closed_shards;
  for (struct order_key *key = order->closed ? order->keys : NULL; key; key = key->hh.next)
    key->returns = key->closed && !key->head && !key->blocking;
}

bool order_returned(struct order *order) {
  bool sweep = (order->closed_shards & order->shards_return) != 0;
  order->closed_shards &= ~order->shards_return;
  for (struct order_key *key = order->closed ? order->keys : NULL, *next; key; key = next) {
    next = key->hh.next;
    if (!key->returns || key->head)
      continue;
    set_closed(order, key, false);
    sweep = true;
    (void)forget_waiting(order, key); /* what has come back may go before it */
    (void)goes_on(order, key);
  }
  return sweep;
}

bool order_leave(struct order *order, struct flight *flight, enum order_end end) {
  struct order_key *key = find_key(order, flight->task->order_key);
  if (!key || key->out != flight)
    return false;
  key->out = NULL;
  if (end == ORDER_HEAD || end == ORDER_HEAD_SOON)
    return set_head(order, key, flight->id, end == ORDER_HEAD_SOON);
  if (end == ORDER_OVER && key->head == flight->id)
    return drop_head(order, key);
  /* Else a sweep meets it: another is the head, or another task has its id by now. */
  bool again = end == ORDER_AGAIN && (!key->head || key->head == flight->id) && !find_waiting(order, flight->id);
  struct order_wait *wait = again ? make_waiting(order, key, flight->task) : NULL;
  if (!wait)
    return goes_on(order, key);
  key->called = wait;
  enqueue(order, wait);
  return false;
}

/* Near the end: routes wait about as long for each. */
static void enqueue_later(struct order *order, struct order_wait *wait) {
  struct order_wait *behind = order->later_last;
  while (behind && behind->due_us > wait->due_us)
    behind = behind->prev;
  wait->later = true;
  put_in(&order->later, &order->later_last, behind ? behind->next : order->later, wait);
}

void order_call_at(struct order *order, const struct task *task, int64_t due_us) {
  struct order_key *key = find_key(order, task->order_key);
  bool calls = key && key->soon && key->head == task->id && !key->out && !key->called && has_room(order, key) &&
               !find_waiting(order, task->id);
  struct order_wait *wait = calls ? make_waiting(order, key, task) : NULL;
  if (!wait)
    return;
  wait->due_us = due_us;
  key->called = wait;
  enqueue_later(order, wait);
}

int64_t order_calls_at(const struct order *order) { return order->later ? order->later->due_us : INT64_MAX; }

void order_call_due(struct order *order, int64_t now_us) {
  while (order_calls_at(order) <= now_us)
    enqueue(order, order->later);
}

void order_heads_begin(struct order *order) {
  order->next_head = false;
  for (struct order_key *key = order->heads ? order->keys : NULL; key; key = key->hh.next)
    key->head_seen = false; /* more_heads stays as it is known until the key itself is read */
}

bool order_head(struct order *order, struct duebox_bytes name, uint64_t id) {
  struct order_key *key = make_key(order, name);
  if (!key)
    return false; /* without memory: the next time */
  if (key->head && key->head_seen) {
    key->more_heads = key->more_heads || key->head != id;
    if (key->head != id)
      set_closed(order, key, true); /* others of the key may be blocked behind that one */
    return false;
  }
  key->more_heads = false;
  if (key->head == id) {
    key->head_seen = true;
    return false;
  }
  set_closed(order, key, true); /* by whoever was here before */
  return set_head(order, key, id, false);
}

bool order_heads_end(struct order *order, bool *freed) {
  bool sweep = false;
  *freed = order->next_head;
  for (struct order_key *key = order->heads ? order->keys : NULL, *next; key; key = next) {
    next = key->hh.next;
    if (!key->head || key->head_seen || (key->out && key->out->id == key->head))
      continue;
    *freed = true;
    key->more_heads = false; /* the table has none */
    sweep = drop_head(order, key) || sweep;
  }
  return sweep;
}

bool order_knows(const struct order *order, uint64_t id) { return order->waiting && find_waiting(order, id); }

void order_claim(struct order *order, struct duebox_bytes name, uint64_t id) {
  struct order_key *key = make_key(order, name);
  if (!key || (key->out && key->out->id == id))
    return; /* without memory: the next time; or it is being taken back */
  set_elsewhere(order, key, id);
  key->elsewhere_seen = true;
  if (key->called && key->called->id != key->head)
    recall(order, key);
}

void order_claims_begin(struct order *order) {
  for (struct order_key *key = order->elsewhere ? order->keys : NULL; key; key = key->hh.next)
    key->elsewhere_seen = false;
}

bool order_claims_end(struct order *order) {
  bool over = false;
  for (struct order_key *key = order->elsewhere ? order->keys : NULL, *next; key; key = next) {
    next = key->hh.next;
    if (!key->elsewhere || key->elsewhere_seen)
      continue;
    set_elsewhere(order, key, 0);
    (void)forget_waiting(order, key);
    drop_if_idle(order, key);
    over = true;
  }
  return over;
}

bool order_waits_in(const struct order *order, uint8_t shard) { return order->of_shard[shard] > 0; }

size_t order_called(struct order *order, uint64_t *ids, uint8_t *shards, size_t most) {
  size_t n = 0;
  while (n < most && order->called && (n == 0 || (order->called->shard == SHARD_BOUND) == (*shards == SHARD_BOUND))) {
    shards[n] = order->called->shard;
    ids[n++] = order->called->id;
    dequeue_this(order, order->called);
  }
  return n;
}

bool order_missed(struct order *order, uint64_t id, bool again) {
  struct order_wait *wait = find_waiting(order, id);
  if (!wait || wait->key->called != wait)
    return false;
  if (again) {
    if (!wait->queued)
      enqueue(order, wait);
    return false;
  }
  struct order_key *key = wait->key;
  uncall(order, wait);
  return goes_on(order, key);
}

static bool is_in(const struct order_wait *wait, uint64_t shards) { return (shards & shard_bit(wait->shard)) != 0; }

size_t order_behind(const struct order *order, uint64_t shards, uint64_t *ids, size_t most) {
  size_t keys = 0, n = 0;
  for (const struct order_wait *wait = order->called; wait; wait = wait->next)
    keys += is_in(wait, shards);
  for (const struct order_wait *wait = order->called; wait && n < most; wait = wait->next) {
    size_t left = is_in(wait, shards) ? (most - 1) / keys + 1 : 0;
    for (const struct order_wait *behind = wait->key->first; behind && left > 0 && n < most; behind = behind->next)
      if (is_in(behind, shards)) {
        ids[n++] = behind->id;
        left--;
      }
  }
  return n;
}

void order_gone(struct order *order, uint64_t id) {
  struct order_wait *wait = find_waiting(order, id);
  if (wait && wait->key->called != wait)
    (void)leave_key(order, wait);
}

bool order_forget_shards(struct order *order, uint64_t shards) {
  bool sweep = false;
  struct order_wait *wait, *next;
  HASH_ITER(hh, order->waiting, wait, next) {
    if (!is_in(wait, shards))
      continue;
    struct order_key *key = wait->key;
    bool its_turn = key->called == wait;
    if (its_turn) {
      uncall(order, wait);
    } else {
      line_out(wait);
      forget(order, wait);
    }
    /* All of a key are in one shard, but for those that plain SQL gave the key later: these go on. */
    if (its_turn)
      sweep = goes_on(order, key) || sweep;
    else
      drop_if_idle(order, key);
  }
  return sweep;
}

void order_free(struct order *order) {
  struct order_wait *wait = order->waiting;
  struct order_key *key = order->keys;
  HASH_CLEAR(hh, order->waiting);
  HASH_CLEAR(hh, order->keys);
  while (wait) {
    struct order_wait *next = wait->hh.next;
    free(wait);
    wait = next;
  }
  while (key) {
    struct order_key *next = key->hh.next;
    free(key);
    key = next;
  }
  *order = (struct order){0};
}
