/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_topics.c - see kafka_topics.h. Open addressing with linear probing, nothing is ever removed
 * singly.
 */
#include "kafka_topics.h"

#include <string.h>

/* FNV-1a, 32 bits. */
static uint32_t hash(const char *name) {
  uint32_t h = 2166136261u;
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * 16777619u;
  return h;
}

rd_kafka_topic_t *kafka_topics_get(struct kafka_topics *topics, rd_kafka_t *rk, const char *name) {
  size_t at = hash(name);
  for (;; at++) {
    rd_kafka_topic_t *topic = topics->slots[at % KAFKA_TOPICS_SLOTS];
    if (!topic)
      break;
    if (strcmp(rd_kafka_topic_name(topic), name) == 0)
      return topic;
  }
  if (topics->count >= KAFKA_TOPICS_SLOTS / 4 * 3) {
    kafka_topics_clear(topics);
    at = hash(name);
  }
  rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
  if (topic) {
    topics->slots[at % KAFKA_TOPICS_SLOTS] = topic;
    topics->count++;
  }
  return topic;
}

void kafka_topics_clear(struct kafka_topics *topics) {
  for (size_t i = 0; i < KAFKA_TOPICS_SLOTS; i++)
    if (topics->slots[i])
      rd_kafka_topic_destroy(topics->slots[i]);
  memset(topics, 0, sizeof(*topics));
}
