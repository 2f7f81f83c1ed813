/* SPDX-License-Identifier: MIT
 *
 * core/order_internal.h - between order.c, who goes when, and order_return.c, what comes back from the table before.
 */
#ifndef CORE_ORDER_INTERNAL_H
#define CORE_ORDER_INTERNAL_H

#include "core/order.h"

/* How the blocked rows of a key come back whose head is over. */
enum order_back {
  BACK_BY_WALK, /* nobody knows all of them here */
  BACK_READY,   /* by their ids, which are to be asked for */
  BACK_DONE,    /* that has happened, and a look is to see their groups, */
  BACK_SEEN,    /* which has begun */
};

struct order_wait {
  uint64_t id;
  uint64_t of; /* hash of its message_id: the id may be another task's by now */
  int64_t due_us;
  uint8_t shard, priority;
  bool queued; /* in the lane's queue of called ones */
  struct order_key *key;
  struct order_wait *next; /* waiting: in its key's list; called: in the queue */
  UT_hash_handle hh;
};

struct order_key {
  struct flight *out;              /* on its way; NULL = nobody */
  struct order_wait *called;       /* its turn, not read yet; NULL = nobody */
  struct order_wait *first, *last; /* waiting, the next one first */
  uint32_t waiting;
  bool missed;       /* some wait in the table alone */
  uint32_t blocking; /* being blocked in the table */
  bool closed;       /* some may be blocked there, also when there is no head any more */
  bool returns;      /* bringing them back has begun, and nothing was blocked since */
  bool own;          /* all of them are rows of this shard that were blocked here: these, */
  uint8_t shard;
  uint64_t *blocked;
  uint32_t blocked_count, blocked_room, back; /* of which the first so many are back */
  uint32_t asked;                             /* and the next so many are asked for */
  enum order_back back_state;
  uint64_t head;       /* blocks the others; 0 = none */
  bool more_heads;     /* there are others behind it, in the table */
  bool head_seen;      /* in the table, since order_heads_begin() */
  uint64_t elsewhere;  /* claimed by another instance; 0 = none */
  bool elsewhere_seen; /* in the table, since order_claims_begin() */
  UT_hash_handle hh;
  size_t len;
  char text[];
};

struct order_key *order_find(const struct order *order, struct duebox_bytes name);
/* Nobody of the key is called while others stand before it that are not known here. True when the next one waits in the
 * table alone. */
bool order_goes_on(struct order *order, struct order_key *key);
/* What waits is met again by a sweep. True when there was any. */
bool order_forget_waiting(struct order *order, struct order_key *key);
/* Rows of the key may be blocked in the table, or are not any more. */
void order_set_closed(struct order *order, struct order_key *key, bool closed);
/* The key has another head, or none any more: whether what it blocked comes back, and how. */
void order_head_comes(struct order *order, struct order_key *key);
void order_head_over(struct order *order, struct order_key *key);
void order_blocked_by_others(struct order *order, struct order_key *key);
/* Somebody else may block rows of these shards, or has: what was blocked here is not all. */
void order_not_own(struct order *order, uint64_t shards);

#endif
