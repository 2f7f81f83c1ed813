/* SPDX-License-Identifier: MIT
 *
 * core/reader.h - the parts of the scheduler's reading: which rows (reader.c), those behind the cursors
 * (reader_sweep.c), others than those whose turn it is (reader_pick.c), and what becomes of a batch of rows
 * (reader_take.c).
 *
 * @thread scheduler
 */
#ifndef CORE_READER_H
#define CORE_READER_H

#include "core/scheduler.h"

enum {
  READ_MAX = 4096,      /* rows in one batch */
  AHEAD_MAX_US = 20000, /* rows are read so long before they are due at most, */
  AHEAD_MARGIN_US =
      300,          /* and this: woken for a row, it is to be found although clocks are known to some 100 us only */
  SWEEP_SHARE = 20, /* looking for what may not be there (behind the cursors, for our host) may take 1/20 of the time */
  REST_MAX_US = 500 * 1000,            /* after one page of that, */
  PASS_REST_MAX_US = 10 * 1000 * 1000, /* and after all pages */
};

/* What may come with each of so many rows at most; larger ones are read by themselves, as far as the byte credit goes.
 * Nothing for recorded claims, which are chosen first. */
struct store_limit reader_inline(const struct scheduler *s, const struct lane *lane, bool recorded, size_t rows);

/* A batch of rows, as the reader got it, all of one lane and of leased shards. */
struct reading {
  size_t most; /* so many may take off */
  struct lane *lane;
  bool recorded; /* claims are written into the table; the rows came without payloads */
  const struct shard_lease *leases;
  size_t lease_count;
  int64_t began_us;     /* monotonic: before the statement */
  int64_t due_until_us; /* database clock: rows that are due up to here may leave at once, later ones wait */
  uint64_t *untried;    /* NULL = not wanted: set to the id of the first row behind those that were tried to claim for
                           which there was no room; 0 = there is none */
};

/* Hands the rows of a batch (NULL = none) out: each takes off, or ends, or is given back to the table. The batch is
 * used up. Returns how many took off or ended. */
size_t reader_take(struct scheduler *s, const struct reading *reading, struct task_batch *batch);
/* Enters a task as a flight of a lane; NULL: it stays in the table for now. */
struct flight *reader_begin_flight(struct scheduler *s, struct lane *lane, struct group *group, struct task *task,
                                   int64_t read_us);
/* Nobody of its order_key goes before a task that is left for now, whatever is read first. */
void reader_keep_turn(struct lane *lane, const struct task *task);
/* After called or chosen tasks were dealt with: those that did not take off keep their turn, those that did have had
 * it. */
void reader_settle_turns(struct scheduler *s, struct lane *lane, const uint64_t *ids, size_t count);
/* Adds a flight that goes to the settler without having seen its sink. */
void reader_end_flight(struct flight *flight, enum flight_end end, const char *error_class, const char *text,
                       struct flight_list *ended);
/* Ends a flight whose task is unreadable: dead, with the reason. */
void reader_refuse_unreadable(struct flight *flight, struct flight_list *ended);
/* Whether the payload is larger than any may be: it ends dead, and is never loaded. */
bool reader_too_large(const struct scheduler *s, const struct task *task);
/* Makes what the plugin will see. False: the row can never be sent; *error_class and err say why. */
MUSTCHECK bool reader_prepare(const struct scheduler *s, const struct route_config *route, struct task *task,
                              const char **error_class, struct err *err);
/* Whether claims of that lane and shard are written into the table. */
bool reader_records_claims(const struct scheduler *s, const struct lane *lane, uint8_t shard);

/* Whether the lane's rows of that shard may be read now: the lease of that epoch is safe, and no claim of the lane is
 * to be taken back there. */
bool reader_may_read(const struct scheduler *s, const struct lane *lane, uint8_t shard, uint64_t epoch,
                     const struct instant *now);

/* Before rows of a group are handed out that were read from a position on: what is behind that, was not known and has
 * an order_key of theirs keeps its turn. False: these rows are not to be handed out, as if they had not been read; a
 * sweep goes first, or the database does not answer. */
MUSTCHECK bool reader_keeps_order(struct scheduler *s, struct group *group, struct store_cursor from,
                                  const struct task *tasks, size_t count);
/* The rows of a batch (NULL = none) are not handed out. */
void reader_give_up(struct task_batch *batch);
/* Room for READ_MAX positions, used by one find at a time; NULL: no memory. */
struct found_id *reader_found(struct scheduler *s);
/* Rows read by id come in its order; of one order_key the earlier due one goes first. NULL = none. _by_due compares two
 * tasks, for qsort(). */
int reader_by_due(const void *a, const void *b);
void reader_sort_by_due(struct task_batch *batch);
/* Reads on beyond the cursor of a group of bound tasks: one page. True when there were rows of ours. */
bool reader_bound(struct scheduler *s, struct group *group, uint32_t credit);
/* Monotonic: until when a group of bound tasks rests after a page since began_us in which none was ours. All groups
 * that rest from that, of whichever route, have a part of the time together: the others `share` times as much. */
int64_t reader_bound_rest_until_us(const struct scheduler *s, const struct group *group, int64_t began_us,
                                   int64_t share);
/* Hands out one task of the lane that may go and is not the one whose turn it is, if there is one. True when one took
 * off or ended. *rest_us: for how long the lane reads nothing after this turn. */
bool reader_pick(struct scheduler *s, struct lane *lane, int64_t *rest_us);
/* Up to which due time the n-th of these is looked for, where the oldest is due at that time: now for two of four, else
 * from some milliseconds before to as long as that. Pure. */
int64_t reader_pick_until_us(uint32_t n, int64_t oldest_us, int64_t now_us);
/* Looks behind the cursor of a group for rows that came late: one page. True when it took something or there is more to
 * look at. */
bool reader_sweep(struct scheduler *s, struct group *group, uint32_t credit);
/* Reads tasks whose turn it is by their order_key. Returns how many took off or ended, or are not there any more. */
size_t reader_take_called(struct scheduler *s, struct lane *lane, uint32_t credit);

#endif
