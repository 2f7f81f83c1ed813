/* SPDX-License-Identifier: MIT
 *
 * core/order.h - the order keys of one lane: at most one task of a key is on its way, the others wait by their ids.
 *
 * Only ids are kept here; the rows stay in the table, and are read when their turn comes, so plain SQL still changes or
 * deletes them while they wait. The one whose turn it is is "called": nobody else of its key may go until it took off
 * or turned out to be gone. Bounded: what finds no room is met again by the sweep.
 *
 * A key may be blocked by its head: a task that failed and is to be tried again before the others, or that has moved to
 * another shard or host. These wait in the table, in state blocked, also if they are to move to the same place: whoever
 * reads that need not find it before them. Behind a head that is tried again soon they wait here, by their ids, and the
 * key goes on as soon as it is over; but in the table where some may be blocked already.
 *
 * A key may also be held by a task that another instance has claimed (of tasks bound to a host; of others our lease
 * tells that there is none). The others wait here, and are met anew when the claim is over.
 *
 * @thread scheduler
 */
#ifndef CORE_ORDER_H
#define CORE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/flight.h" /* uthash as we use it */

/* Of a lane; some 100 bytes each. A key may take half of what is left, and ORDER_WAITING_PER_KEY as long as there is
 * room at all. */
enum { ORDER_WAITING_MAX = 65536, ORDER_WAITING_PER_KEY = 1024 };

struct order_key;
struct order_wait;

/* All zero is empty. */
struct order {
  struct order_key *keys;                  /* uthash: those with a task out, called or waiting */
  struct order_wait *waiting;              /* uthash by id: the waiting and the called ones */
  struct order_wait *called, *called_last; /* to be read, in this order */
  struct order_wait *later, *later_last;   /* heads that are called at their due times, in the order of these */
  uint32_t of_shard[STORE_SHARDS_MAX];     /* how many of them are rows of that shard */
  size_t heads;                            /* keys that are blocked */
  bool next_head;                          /* a key has another head, since order_heads_begin() */
  bool unsure;                             /* a head is over, and the table may have another of its key, */
  bool left;                               /* or rows that it blocked */
  size_t elsewhere;                        /* keys that claims of other instances hold */
  size_t closed;                           /* keys with rows that may be blocked in the table */
  uint64_t closed_shards;                  /* bits: whose keys may have such rows without being known here */
  uint64_t shards_return;                  /* those for which bringing back has begun */
};

/* A row was met whose id may be known here under another key, which plain SQL has changed since, or as another task,
 * whose id was handed out again after a TRUNCATE: that key goes on without what was known. An id waits, or is called,
 * in one key at most, or the others would wait for it for ever. True: the id was called. That was not the turn of this
 * task, others may come before it: only a sweep from the beginning may meet it. */
MUSTCHECK bool order_changed(struct order *order, const struct task *task);
/* Whether the task may leave now: nobody else of its key is out, or it was called. */
bool order_may_go(const struct order *order, const struct task *task);
/* The task has to wait. Remembers it, once and under the key that it has now, as far as there is room. The result is as
 * that of order_changed(). */
MUSTCHECK bool order_wait(struct order *order, const struct task *task);
/* Reserves the turn of its key for a task that may go, until it takes off (order_enter) or is missed (order_missed). */
void order_reserve(struct order *order, const struct task *task);
/* The task takes off as this flight, and holds its key until order_leave(). False: another flight holds the key, or
 * there is no memory; it holds nothing then, and must not go. */
MUSTCHECK bool order_enter(struct order *order, struct flight *flight);
enum order_end {
  ORDER_OVER,      /* the next of its key is called */
  ORDER_LOST,      /* its lease is over: so it is, but what its row is now the table says */
  ORDER_AGAIN,     /* its row was handed back: it itself is called */
  ORDER_HEAD,      /* it failed or has moved, and is the head of its key from now on, */
  ORDER_HEAD_SOON, /* or failed and is tried again soon */
};

/* The flight is over. True when the
 * next one found no room here: only a sweep from the beginning meets it, and nothing beyond the cursors may be read
 * before that. */
bool order_leave(struct order *order, struct flight *flight, enum order_end end);
/* The task is the head of its key (ORDER_HEAD_SOON), and due again at that time, microseconds of the database's clock:
 * it is called then, with others whose turn it is, instead of being read where the index has it, behind all that waits.
 * Does nothing where it is not, or the others are blocked, or there is no room. */
void order_call_at(struct order *order, const struct task *task, int64_t due_us);
/* When order_call_due() is to be called next; INT64_MAX = not at all. It calls those that are due by now_us. */
int64_t order_calls_at(const struct order *order);
void order_call_due(struct order *order, int64_t now_us);
/* Whether the task is to be blocked in the table, behind the head of its key. */
bool order_blocked(const struct order *order, const struct task *task);
/* It is being blocked in the table; nobody else of its key but the head may go until that is written and, once the head
 * is over, what was blocked is brought back: who came later would overtake it. False: its key is not known here. */
MUSTCHECK bool order_block(struct order *order, const struct task *task);
/* It was written. True when the head is over meanwhile: the blocked ones are to be brought back. */
bool order_blocked_done(struct order *order, const struct task *task);
/* Shards that came to us: what somebody else blocked there is brought back before any key of theirs goes, and before
 * any goes whose head is over later. */
void order_close_shards(struct order *order, uint64_t shards);
/* Whether a key, or a shard, waits for blocked rows to be brought back. */
bool order_awaits_return(const struct order *order);
/* Bringing back begins for those that wait for it now, before the table is asked for blocked rows; it is over when none
 * of our shards had any left that waits for no head. True: a sweep from the beginning is to meet them before anything
 * beyond the cursors is read. */
void order_return_begin(struct order *order);
MUSTCHECK bool order_returned(struct order *order);
/* What the table says about heads: order_heads_begin(), order_head() for each that is alive, order_heads_end(). Of one
 * key the first that is named counts. A head that was not named is none any more; *freed says that there was one. The
 * results are as that of order_leave(). */
void order_heads_begin(struct order *order);
MUSTCHECK bool order_head(struct order *order, struct duebox_bytes key, uint64_t id);
bool order_heads_end(struct order *order, bool *freed);
/* Another instance has claimed the task of that id: nobody of its key but a head goes until that is over, or taken back
 * here. order_claims_begin(), order_claim() for each that there is, order_claims_end(): a claim that was not named is
 * over; true when there was one. What it was may be due again, or a head by now: heads are to be read, and a sweep is
 * to meet the others, before anything else is taken. */
void order_claim(struct order *order, struct duebox_bytes key, uint64_t id);
void order_claims_begin(struct order *order);
MUSTCHECK bool order_claims_end(struct order *order);
/* Whether the row of that id waits or is called. */
bool order_knows(const struct order *order, uint64_t id);
/* Whether rows of the shard wait or are called: reading its groups from the start meets them all again. */
bool order_waits_in(const struct order *order, uint8_t shard);
/* Called tasks that are to be read now, those of bound ones by themselves: takes up to `most` off the queue. shards[i]:
 * of ids[i]. Returns how many. */
size_t order_called(struct order *order, uint64_t *ids, uint8_t *shards, size_t most);
/* What was called did not take off: again = it is called once more, else it is gone and the next of its key is called.
 * Does nothing for an id that is not called. True as order_leave(). */
bool order_missed(struct order *order, uint64_t id, bool again);
/* Tasks of the shards (bits) that wait behind those in the queue of called ones, of each key the next ones: up to
 * `most` ids. Returns how many. */
size_t order_behind(const struct order *order, uint64_t shards, uint64_t *ids, size_t most);
/* A task that waits is gone, or not due any more. */
void order_gone(struct order *order, uint64_t id);
/* Shards (bits) are not ours any more, or what waits in them may not be there now: forgets what waits of them. Heads
 * stay, whichever shard they are in. True as order_leave(). */
MUSTCHECK bool order_forget_shards(struct order *order, uint64_t shards);
void order_free(struct order *order);

#endif
