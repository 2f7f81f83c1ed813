/* SPDX-License-Identifier: MIT */
#include "kafka_sizes.h"

#include <duebox/check.h>

#include <stdlib.h>
#include <string.h>

int64_t kafka_producer_max(const struct kafka_options *options) {
  for (size_t i = 0; i < options->rdkafka.count; i++)
    if (strcmp(options->rdkafka.items[i].key, "message.max.bytes") == 0)
      return strtoll(options->rdkafka.items[i].value, NULL, 10);
  return -1;
}

static int64_t find_max(const rd_kafka_ConfigResource_t *resource) {
  size_t count = 0;
  const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);
  for (size_t i = 0; i < count; i++) {
    const char *value = rd_kafka_ConfigEntry_value(entries[i]);
    if (value && strcmp(rd_kafka_ConfigEntry_name(entries[i]), "max.message.bytes") == 0)
      return strtoll(value, NULL, 10);
  }
  return -1;
}

static int64_t read_answer(rd_kafka_event_t *event) {
  const rd_kafka_DescribeConfigs_result_t *result = event ? rd_kafka_event_DescribeConfigs_result(event) : NULL;
  size_t count = 0;
  if (!result || rd_kafka_event_error(event))
    return -1;
  const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(result, &count);
  return count == 1 && !rd_kafka_ConfigResource_error(resources[0]) ? find_max(resources[0]) : -1;
}

int64_t kafka_topic_max(rd_kafka_t *rk, const char *topic, int timeout_ms) {
  char refused[256];
  rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
  rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
  int64_t max = -1;
  if (options && resource &&
      !rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, refused, sizeof(refused))) {
    rd_kafka_DescribeConfigs(rk, &resource, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
    max = read_answer(event);
    if (event)
      rd_kafka_event_destroy(event);
  }
  rd_kafka_queue_destroy(queue);
  if (resource)
    rd_kafka_ConfigResource_destroy(resource);
  if (options)
    rd_kafka_AdminOptions_destroy(options);
  return max;
}

/* By the payload alone: key, headers and checkpoint come on top, and compression takes off. So it is a doubt, and
 * limits that the largest payload just fits into, as the defaults of both sides, give none. */
void kafka_judge_sizes(struct duebox_check *check, const char *topic, int64_t producer_max, int64_t topic_max) {
  long long largest = check->max_payload;
  if (producer_max >= 0 && producer_max < largest)
    duebox_check_answer(
        check, DUEBOX_CHECK_UNSURE,
        "raise message.max.bytes under rdkafka, or leave it out, for duebox sets one with room; or lower "
        "engine.max_payload",
        "message.max.bytes under rdkafka is %lld, and engine.max_payload %lld: larger tasks are dead "
        "(kafka.msg_size_too_large)",
        (long long)producer_max, largest);
  else if (topic_max >= 0 && topic_max < largest)
    duebox_check_answer(check, DUEBOX_CHECK_UNSURE,
                        "set max.message.bytes of the topic (or message.max.bytes of the brokers) above "
                        "engine.max_payload, with room for headers and checkpoint, or lower engine.max_payload",
                        "topic %s takes messages of %lld bytes, and engine.max_payload is %lld: larger tasks are dead "
                        "(kafka.msg_size_too_large)",
                        topic, (long long)topic_max, largest);
}
