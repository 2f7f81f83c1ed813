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

/* Asks the coordinator who is in the group; within timeout_ms the answer, or that there is none, comes as an event.
 * Never blocks, and changes nothing there. */
void kafka_group_ask(const struct kafka_group *group, rd_kafka_t *rk, rd_kafka_queue_t *queue, int timeout_ms);
/* The answer in such an event, which owns it; NULL = there is none. */
const rd_kafka_ConsumerGroupDescription_t *kafka_group_answer(rd_kafka_event_t *event);
/* Who reads the topic by that answer; nobody, where it is an error. */
struct kafka_readers kafka_group_readers(const struct kafka_group *group,
                                         const rd_kafka_ConsumerGroupDescription_t *answer);

/* What to say of a stranger, and what to do about it. */
enum { KAFKA_STRANGER_SIZE = 448 };
void kafka_group_stranger(const struct kafka_group *group, const char *stranger, char text[KAFKA_STRANGER_SIZE]);
extern const char kafka_group_stranger_cure[];

#endif
