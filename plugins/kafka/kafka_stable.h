/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_stable.h - notices a transaction that holds back a partition.
 *
 * Who reads committed records gets no further than the last stable offset, where the earliest open transaction begins.
 * A producer that hangs keeps it there, and what others produce behind it is not delivered, while brokers and group are
 * well. Both offsets come with every fetch and stand in librdkafka's statistics (STATISTICS.md, `ls_offset` and
 * `hi_offset`). Pure.
 */
#ifndef PLUGINS_KAFKA_STABLE_H
#define PLUGINS_KAFKA_STABLE_H

#include <stdbool.h>
#include <stdint.h>

#define KAFKA_STABLE_PATIENCE_US 60000000 /* the time-out of transactions that producers have by default */

struct kafka_offsets {
  int32_t partition, broker;
  int64_t position;     /* where it is fetched next */
  int64_t stable, high; /* negative: nothing was fetched */
  bool pending;         /* records from before the position may not have been taken out of the client's queue */
};

struct kafka_stable {
  int64_t offset; /* -1 = it does not stand behind the high watermark */
  int64_t since_us;
};

/* Takes the next partition of a statistics event; *at begins as its text. False: there is none left. */
bool kafka_stable_next(const char **at, struct kafka_offsets *found);
/* Whether the last stable offset has stood behind the high watermark for the time above. excused: nothing is fetched
 * now, so that nothing new is known. */
bool kafka_stable_stands(struct kafka_stable *stable, const struct kafka_offsets *found, bool excused, int64_t now_us);

#endif
