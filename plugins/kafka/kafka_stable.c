/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_stable.c - see kafka_stable.h.
 */
#include "kafka_stable.h"

#include <stdlib.h>
#include <string.h>

/* Moves *at behind the key; false when it is not there. */
static bool number_of(const char **at, const char *key, int64_t *value) {
  const char *found = strstr(*at, key);
  if (!found)
    return false;
  *at = found + strlen(key);
  *value = strtoll(*at, NULL, 10);
  return true;
}

/* Keys in the order in which librdkafka writes them. Brokers, which come before topics, list partitions too. They are
 * passed over once, at the beginning: with thousands of partitions the text has megabytes. */
bool kafka_stable_next(const char **at, struct kafka_offsets *found) {
  int64_t partition, broker, queued, taken;
  const char *topics = **at == '{' ? strstr(*at, "\"topics\":") : NULL;
  if (topics)
    *at = topics;
  if (!number_of(at, "\"partition\":", &partition) || !number_of(at, "\"broker\":", &broker) ||
      !number_of(at, "\"fetchq_cnt\":", &queued) || !number_of(at, "\"next_offset\":", &found->position) ||
      !number_of(at, "\"app_offset\":", &taken) || !number_of(at, "\"hi_offset\":", &found->high) ||
      !number_of(at, "\"ls_offset\":", &found->stable))
    return false;
  found->pending = queued > 0 && taken != found->position; /* one queue for all partitions */
  found->partition = (int32_t)partition;
  found->broker = (int32_t)broker;
  return true;
}

bool kafka_stable_stands(struct kafka_stable *stable, const struct kafka_offsets *found, bool excused, int64_t now_us) {
  bool behind = found->stable >= 0 && found->stable < found->high, same = behind && stable->offset == found->stable;
  bool stood = same && now_us - stable->since_us >= KAFKA_STABLE_PATIENCE_US;
  if (!same || (excused && !stood))
    *stable = (struct kafka_stable){.offset = behind ? found->stable : -1, .since_us = now_us};
  return stood;
}
