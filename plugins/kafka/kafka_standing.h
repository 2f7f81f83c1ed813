/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_standing.h - notices a partition that is fetched again and again and never read.
 *
 * librdkafka takes a record that ends too early for the first part of a batch that a fetch had no room for. It asks for
 * more and fetches again, for ever, without an event. But its statistics count what it took for that, for each broker
 * (STATISTICS.md, `rxpartial`), and say where each partition is fetched next (`next_offset`).
 *
 * A partition may stand still for good reasons: the broker is slow or holds us to a quota, its batch is large, or
 * fetches are full of what other partitions bring. Then nothing ends too early, or little is fetched. While records
 * wait in the client's queue none is fetched, and a search would lose them. An open transaction is none of the reasons:
 * fetching stands at the last stable offset. Pure.
 */
#ifndef PLUGINS_KAFKA_STANDING_H
#define PLUGINS_KAFKA_STANDING_H

#include "kafka_stable.h"

/* What a broker has sent so far. */
struct kafka_fetched {
  int64_t fetches, partial, bytes;
};

struct kafka_standing {
  int64_t position; /* -1 = it does not stand */
  int32_t broker;
  int64_t since_us;
  struct kafka_fetched before; /* what had been sent when it began to stand */
};

#define KAFKA_STANDING_NONE ((struct kafka_standing){.position = -1})

/* Who shares fetches with a partition. */
struct kafka_sharers {
  int64_t all;    /* partitions that the same broker serves, */
  int64_t behind; /* and those of them that have not been read to the end; both with the partition itself */
};

/* What a statistics event says of a broker. */
struct kafka_fetched kafka_standing_fetched(const char *stats, int32_t broker);
/* Whether there is more to read at the place where the partition is. */
bool kafka_standing_is_behind(const struct kafka_offsets *found);
/* Follows one partition, with every statistics event. excused: nothing is fetched, for a reason that is known. */
void kafka_standing_follow(struct kafka_standing *standing, const struct kafka_offsets *found,
                           const struct kafka_fetched *fetched, bool excused, int64_t now_us);
/* It is made to stand at a place. */
void kafka_standing_begin(struct kafka_standing *standing, int64_t position, const struct kafka_fetched *fetched,
                          int64_t now_us);
/* Whether it stands since what comes from there ends too early. */
bool kafka_standing_is_proved(const struct kafka_standing *standing, const struct kafka_fetched *fetched,
                              const struct kafka_sharers *sharers);

#endif
