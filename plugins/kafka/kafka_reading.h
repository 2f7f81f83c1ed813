/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_reading.h - judges whether a result topic is being read, and says so where it is not.
 *
 * librdkafka joins its group again for ever, and of most of what keeps it out it says nothing (no coordinator, another
 * member that holds up the rebalance). So it is not the errors that are judged but the facts, with every statistics
 * event: the group has let us in, and each partition that it gave us was answered when it was fetched last. A member
 * without a partition is well: there are more daemons than partitions. Errors only give the reason.
 *
 * The group is also asked now and then who has the partitions: a member that is no daemon of this outbox takes its
 * share of the answers away, be it all or some. Without an answer (no right, an old broker) nothing is said. And an
 * open transaction of a producer may hold back all that is behind it (kafka_stable.h), and what librdkafka does not get
 * past may do so as well (kafka_obstacle.h). Driver thread.
 */
#ifndef PLUGINS_KAFKA_READING_H
#define PLUGINS_KAFKA_READING_H

#include "kafka_group.h"
#include "kafka_health.h"
#include "kafka_stable.h"

struct kafka_reading {
  const struct kafka_group *group;
  int64_t patience_us; /* a join takes as long as the session of a member that has died, and a little */
  int64_t well_us;     /* when it was well last, or excused */
  char error[160];     /* the last one since it was well; "" = none */
  int64_t ask_us;      /* when the group is asked next */
  char stranger[192];  /* who has partitions and is no daemon of this outbox, when it was asked last; "" = nobody */
  struct kafka_offsets held_back;      /* a partition that a transaction has held back for long; stable -1 = none */
  rd_kafka_topic_partition_t obstacle; /* one that has not got past obstacles for long; offset -1 = none */
};

/* The patience follows from the session's time-out in conf. */
void kafka_reading_init(struct kafka_reading *reading, const struct kafka_group *group, const rd_kafka_conf_t *conf);
/* An error event, which may turn out to be the reason. */
void kafka_reading_error(struct kafka_reading *reading, rd_kafka_event_t *event);
/* Nobody takes records away, and nothing holds them back: those that come are not just some of them. */
bool kafka_reading_is_whole(const struct kafka_reading *reading);
/* The group has let us in, as far as a statistics event tells. */
bool kafka_reading_joined(const char *stats);
/* The partitions have been shared out anew. */
void kafka_reading_rebalanced(struct kafka_reading *reading);
/* Whether the group is to be asked now (kafka_group_readers()), which is taken as done. */
bool kafka_reading_asks(struct kafka_reading *reading);
/* What came of it. */
void kafka_reading_answer(struct kafka_reading *reading, const struct kafka_readers *readers);
/* excused: nothing is read for a reason that is none of the group's: brokers are away, or the host has no room.
 * fetched: each partition of ours was answered when it was fetched last. */
void kafka_reading_judge(struct kafka_reading *reading, const char *stats, bool excused, bool fetched,
                         struct kafka_health *health, const struct duebox_host *host);

#endif
