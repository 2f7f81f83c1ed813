/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_group.h - the consumer group that the daemons of one outbox share for a result topic: what it is
 * called, what they call themselves in it, and who else reads there.
 *
 * Whoever is in the group takes a part of the topic's partitions, and the group tells nobody. All that its coordinator
 * says of a member is its client id and address, so both names hold the outbox unless they are configured.
 */
#ifndef PLUGINS_KAFKA_GROUP_H
#define PLUGINS_KAFKA_GROUP_H

#include <librdkafka/rdkafka.h>

#include "kafka_options.h"

enum { KAFKA_NAME_SIZE = 256 };

/* Points into itself and into the options: not to be copied. */
struct kafka_group {
  const char *topic;
  const char *name;
  const char *ours; /* the client id of our daemons, or what theirs begin with */
  bool exactly;
  char own_name[KAFKA_NAME_SIZE];
  char prefix[KAFKA_NAME_SIZE];
};

struct kafka_readers {
  bool known;         /* there was an answer; a group that is in it nowhere has no member */
  int partitions;     /* of the topic, that members have between them */
  char stranger[192]; /* one of these members that is no daemon of ours: "name at host"; "" = none */
};

/* outbox: as the host says it; NULL = not known. */
void kafka_group_init(struct kafka_group *group, const struct kafka_options *options,
                      const struct kafka_results *results, const char *outbox);
/* The client id of an instance, as configured or by default, then written to id. */
const char *kafka_client_id(const struct kafka_options *options, const char *outbox, const char *instance,
                            char id[KAFKA_NAME_SIZE]);
/* Whether a member with that client id is a daemon of this outbox. */
bool kafka_group_is_ours(const struct kafka_group *group, const char *client_id);

/* Asks the brokers who reads the topic, and waits for that, timeout_ms at most. Changes nothing there. Not by
 * rd_kafka_DescribeConsumerGroups(): librdkafka ends the process where the coordinator's connection is lost meanwhile
 * (its issue 4605). Groups that this user may not describe are as good as absent. */
MUSTCHECK struct kafka_readers kafka_group_readers(const struct kafka_group *group, rd_kafka_t *rk, int timeout_ms);
/* How many partitions of the topic a member's assignment has (ConsumerProtocolAssignment of Kafka's protocol). What is
 * cut off or malformed has none from there on. Pure. */
int kafka_group_count(const void *assignment, size_t size, const char *topic);

/* What to say of a stranger, and what to do about it. */
enum { KAFKA_STRANGER_SIZE = 448 };
void kafka_group_stranger(const struct kafka_group *group, const char *stranger, char text[KAFKA_STRANGER_SIZE]);
extern const char kafka_group_stranger_cure[];

#endif
