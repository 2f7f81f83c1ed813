/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_group.c - see kafka_group.h.
 */
#include "kafka_group.h"

#include <stdio.h>
#include <string.h>

/* A database's name holds no dot and a table's no hyphen, so no outbox's prefix is the beginning of another's. */
static void outbox_prefix(const char *outbox, char prefix[KAFKA_NAME_SIZE]) {
  snprintf(prefix, KAFKA_NAME_SIZE, "duebox-%s%s", outbox ? outbox : "", outbox ? "-" : "");
}

const char *kafka_client_id(const struct kafka_options *options, const char *outbox, const char *instance,
                            char id[KAFKA_NAME_SIZE]) {
  char prefix[KAFKA_NAME_SIZE];
  outbox_prefix(outbox, prefix);
  snprintf(id, KAFKA_NAME_SIZE, "%.180s%.64s", prefix, instance);
  return options->client_id ? options->client_id : id;
}

void kafka_group_init(struct kafka_group *group, const struct kafka_options *options,
                      const struct kafka_results *results, const char *outbox) {
  outbox_prefix(outbox, group->prefix);
  snprintf(group->own_name, sizeof(group->own_name), "duebox%s%s", outbox ? "-" : "", outbox ? outbox : "");
  group->topic = results->topic;
  group->name = results->group ? results->group : group->own_name;
  group->ours = options->client_id ? options->client_id : group->prefix;
  group->exactly = options->client_id != NULL;
}

bool kafka_group_is_ours(const struct kafka_group *group, const char *client_id) {
  return group->exactly ? strcmp(client_id, group->ours) == 0
                        : strncmp(client_id, group->ours, strlen(group->ours)) == 0;
}

void kafka_group_ask(const struct kafka_group *group, rd_kafka_t *rk, rd_kafka_queue_t *queue, int timeout_ms) {
  const char *name = group->name;
  rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS);
  rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, NULL, 0);
  rd_kafka_DescribeConsumerGroups(rk, &name, 1, options, queue);
  rd_kafka_AdminOptions_destroy(options);
}

const rd_kafka_ConsumerGroupDescription_t *kafka_group_answer(rd_kafka_event_t *event) {
  size_t count = 0;
  const rd_kafka_DescribeConsumerGroups_result_t *result = rd_kafka_event_DescribeConsumerGroups_result(event);
  const rd_kafka_ConsumerGroupDescription_t **groups =
      result ? rd_kafka_DescribeConsumerGroups_result_groups(result, &count) : NULL;
  return count > 0 ? groups[0] : NULL;
}

static int count_partitions(const rd_kafka_MemberDescription_t *member, const char *topic) {
  const rd_kafka_topic_partition_list_t *list =
      rd_kafka_MemberAssignment_partitions(rd_kafka_MemberDescription_assignment(member));
  int count = 0;
  for (int i = 0; list && i < list->cnt; i++)
    count += strcmp(list->elems[i].topic, topic) == 0;
  return count;
}

struct kafka_readers kafka_group_readers(const struct kafka_group *group,
                                         const rd_kafka_ConsumerGroupDescription_t *answer) {
  struct kafka_readers readers = {0};
  for (size_t i = 0; i < rd_kafka_ConsumerGroupDescription_member_count(answer); i++) {
    const rd_kafka_MemberDescription_t *member = rd_kafka_ConsumerGroupDescription_member(answer, i);
    const char *client_id = rd_kafka_MemberDescription_client_id(member);
    int count = count_partitions(member, group->topic);
    if (count > 0 && !kafka_group_is_ours(group, client_id))
      snprintf(readers.stranger, sizeof(readers.stranger), "%.100s at %.60s", client_id,
               rd_kafka_MemberDescription_host(member));
    readers.partitions += count;
  }
  return readers;
}

const char kafka_group_stranger_cure[] = "end that consumer, or give it, or this source, another group";

void kafka_group_stranger(const struct kafka_group *group, const char *stranger, char text[KAFKA_STRANGER_SIZE]) {
  snprintf(text, KAFKA_STRANGER_SIZE,
           "%s, no daemon of this outbox, takes answers of topic %.100s away: it is in group %.100s", stranger,
           group->topic, group->name);
}
