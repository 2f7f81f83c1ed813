/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_group.c - see kafka_group.h.
 */
#include "kafka_group.h"

#include <stddef.h>
#include <stdint.h>
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

/* A big-endian number of `width` bytes; false where the bytes end before. */
static bool take_number(const uint8_t **at, const uint8_t *end, size_t width, int32_t *value) {
  uint32_t number = 0;
  if ((size_t)(end - *at) < width)
    return false;
  for (size_t i = 0; i < width; i++)
    number = number << 8 | *(*at)++;
  *value = (int32_t)number;
  return true;
}

int kafka_group_count(const void *assignment, size_t size, const char *topic) {
  const uint8_t *at = assignment, *end = at + size;
  int32_t version, topics, len, partitions;
  int count = 0;
  if (!take_number(&at, end, 2, &version) || !take_number(&at, end, 4, &topics))
    return 0;
  for (int32_t i = 0; i < topics; i++) {
    if (!take_number(&at, end, 2, &len) || end - at < len)
      return count;
    bool same = strlen(topic) == (size_t)len && memcmp(at, topic, (size_t)len) == 0;
    at += len;
    if (!take_number(&at, end, 4, &partitions) || partitions < 0 || (end - at) / 4 < partitions)
      return count;
    at += (ptrdiff_t)partitions * 4;
    count += same ? partitions : 0;
  }
  return count;
}

static void note_member(struct kafka_readers *readers, const struct kafka_group *group,
                        const struct rd_kafka_group_member_info *member) {
  int count = member->member_assignment_size > 0
                  ? kafka_group_count(member->member_assignment, (size_t)member->member_assignment_size, group->topic)
                  : 0;
  if (count > 0 && !kafka_group_is_ours(group, member->client_id))
    snprintf(readers->stranger, sizeof(readers->stranger), "%.100s at %.60s", member->client_id, member->client_host);
  readers->partitions += count;
}

struct kafka_readers kafka_group_readers(const struct kafka_group *group, rd_kafka_t *rk, int timeout_ms) {
  const struct rd_kafka_group_list *list = NULL;
  struct kafka_readers readers = {0};
  rd_kafka_resp_err_t err = rd_kafka_list_groups(rk, group->name, &list, timeout_ms);
  if (err && err != RD_KAFKA_RESP_ERR__PARTIAL) /* which is: another broker has not answered */
    return readers;
  readers.known = !err;
  for (int i = 0; i < list->group_cnt; i++) {
    readers.known = !list->groups[i].err;
    for (int j = 0; j < list->groups[i].member_cnt; j++)
      note_member(&readers, group, &list->groups[i].members[j]);
  }
  rd_kafka_group_list_destroy(list);
  return readers;
}

const char kafka_group_stranger_cure[] = "end that consumer, or give it, or this source, another group";

void kafka_group_stranger(const struct kafka_group *group, const char *stranger, char text[KAFKA_STRANGER_SIZE]) {
  snprintf(text, KAFKA_STRANGER_SIZE,
           "%s, no daemon of this outbox, takes answers of topic %.100s away: it is in group %.100s", stranger,
           group->topic, group->name);
}
