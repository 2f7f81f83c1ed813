/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_window.h - the records of one partition that the table has not committed yet.
 *
 * Acknowledgements come in any order; a consumer group stores one offset per partition. The window finds the offset
 * that may be stored: the first record that is not acknowledged, or the lowest that came behind one above it. Pure, no
 * locks.
 */
#ifndef PLUGINS_KAFKA_WINDOW_H
#define PLUGINS_KAFKA_WINDOW_H

#include "kafka_common.h"

struct kafka_window {
  uint64_t *ring; /* (offset + 1) * 2, plus 1 when acknowledged; a power of two of them */
  size_t cap;
  uint64_t first; /* sequence number of the oldest record in the ring */
  uint64_t next;  /* sequence number that the next record gets; never reused, so that late acks are recognized */
  int64_t stored; /* offset that may be stored: one past the last record acknowledged without a gap; -1 = none */
};

#define KAFKA_WINDOW_EMPTY ((struct kafka_window){.stored = -1})

/* Adds a record and gives it a sequence number. False when there is no memory. */
MUSTCHECK bool kafka_window_push(struct kafka_window *window, int64_t offset, uint64_t *sequence);
/* Acknowledges a record. A number from before the last forget() is ignored. */
void kafka_window_ack(struct kafka_window *window, uint64_t sequence);
/* Forgets all records, as another consumer has the partition now. */
void kafka_window_forget(struct kafka_window *window);
/* Takes back the record pushed last, which nobody was told of. */
void kafka_window_pop(struct kafka_window *window);
void kafka_window_free(struct kafka_window *window);

#endif
