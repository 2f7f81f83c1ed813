/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_standing.c - see kafka_standing.h.
 */
#include "kafka_standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* librdkafka doubles its limit up to 1 GiB first. Of a batch that a fetch has room for nothing is missing then. */
#define PARTIAL_MIN 8
/* So little that no fetch was full, and nothing was left out for want of room. */
#define LITTLE_BYTES 1000000

static int64_t number_at(const char *text, const char *end, const char *key) {
  const char *at = text ? strstr(text, key) : NULL;
  return at && at < end ? strtoll(at + strlen(key), NULL, 10) : 0;
}

/* The connection to the group's coordinator is one more of the same broker. */
struct kafka_fetched kafka_standing_fetched(const char *stats, int32_t broker) {
  char key[40];
  struct kafka_fetched sum = {0};
  const char *end = strstr(stats, "\"topics\":"), *at = stats;
  int len = snprintf(key, sizeof(key), "\"nodeid\":%d,", (int)broker);
  while (end && (at = strstr(at, key)) != NULL && at < end) {
    at += len;
    const char *next = strstr(at, "\"nodeid\":"), *last = next && next < end ? next : end;
    sum.bytes += number_at(at, last, "\"rxbytes\":");
    sum.partial += number_at(at, last, "\"rxpartial\":");
    sum.fetches += number_at(at, last, "\"Fetch\":");
  }
  return sum;
}

bool kafka_standing_is_behind(const struct kafka_offsets *found) {
  return found->position >= 0 && found->stable >= 0 && found->position < found->stable;
}

void kafka_standing_follow(struct kafka_standing *standing, const struct kafka_offsets *found,
                           const struct kafka_fetched *fetched, bool excused, int64_t now_us) {
  bool stands = kafka_standing_is_behind(found) && !found->pending && !excused;
  if (stands && standing->position == found->position && standing->broker == found->broker)
    return;
  *standing = (struct kafka_standing){
      .position = stands ? found->position : -1, .broker = found->broker, .since_us = now_us, .before = *fetched};
}

void kafka_standing_begin(struct kafka_standing *standing, int64_t position, const struct kafka_fetched *fetched,
                          int64_t now_us) {
  standing->position = position;
  standing->since_us = now_us;
  standing->before = *fetched;
}

/* A broker sends what there is of one partition after the other, beginning with the first that a fetch names, of which
 * it sends at least a whole batch. Each fetch names another one first. So this one was sent whole when there were
 * enough fetches, or when no other one can have been cut off and little was sent. */
bool kafka_standing_is_proved(const struct kafka_standing *standing, const struct kafka_fetched *fetched,
                              const struct kafka_sharers *sharers) {
  const struct kafka_fetched *before = &standing->before;
  if (standing->position < 0 || fetched->partial - before->partial < PARTIAL_MIN)
    return false;
  return (sharers->behind <= 1 && fetched->bytes - before->bytes < LITTLE_BYTES) ||
         fetched->fetches - before->fetches >= 2 * sharers->all + PARTIAL_MIN;
}
