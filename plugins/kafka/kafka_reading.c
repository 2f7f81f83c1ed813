/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_reading.c - see kafka_reading.h. The statistics are those of librdkafka's STATISTICS.md, `cgrp`.
 */
#include "kafka_reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN_US 5000000
#define ASK_US 30000000
#define ASK_SETTLED_US 5000000 /* before, a group that shares out its partitions tells of none */

void kafka_reading_init(struct kafka_reading *reading, const struct kafka_group *group, const rd_kafka_conf_t *conf) {
  char session_ms[24] = "";
  size_t size = sizeof(session_ms);
  rd_kafka_conf_res_t found = rd_kafka_conf_get(conf, "session.timeout.ms", session_ms, &size);
  int64_t now = kafka_now_us();
  *reading = (struct kafka_reading){.group = group,
                                    .well_us = now,
                                    .patience_us = MARGIN_US,
                                    .ask_us = now + ASK_US,
                                    .held_back = {.stable = -1},
                                    .obstacle = {.offset = -1}};
  if (found == RD_KAFKA_CONF_OK)
    reading->patience_us += strtoll(session_ms, NULL, 10) * 1000;
}

void kafka_reading_error(struct kafka_reading *reading, rd_kafka_event_t *event) {
  snprintf(reading->error, sizeof(reading->error), "%s", rd_kafka_event_error_string(event));
}

void kafka_reading_rebalanced(struct kafka_reading *reading) {
  int64_t soon = kafka_now_us() + ASK_SETTLED_US;
  if (soon < reading->ask_us)
    reading->ask_us = soon;
}

bool kafka_reading_asks(struct kafka_reading *reading) {
  int64_t now = kafka_now_us();
  if (now < reading->ask_us)
    return false;
  reading->ask_us = now + ASK_US;
  return true;
}

void kafka_reading_answer(struct kafka_reading *reading, const struct kafka_readers *readers) {
  snprintf(reading->stranger, sizeof(reading->stranger), "%s", readers->stranger);
}

/* The text of a key of the statistics' `cgrp`; "" = it is not there. */
static void group_word(const char *stats, const char *key, char word[32]) {
  char quoted[32];
  const char *at = strstr(stats, "\"cgrp\"");
  snprintf(quoted, sizeof(quoted), "\"%s\"", key);
  at = at ? strstr(at, quoted) : NULL;
  at = at ? at + strlen(quoted) : "";
  at += strspn(at, ": \"");
  snprintf(word, 32, "%.*s", (int)strcspn(at, "\""), at);
}

bool kafka_reading_joined(const char *stats) {
  char state[32];
  group_word(stats, "join_state", state);
  return strcmp(state, "steady") == 0;
}

static void say_unread(const struct kafka_reading *reading, const char *stats, struct kafka_health *health,
                       const struct duebox_host *host) {
  char coordinator[32], join[32], text[320];
  const char *group = reading->group->name, *topic = reading->group->topic, *cure;
  group_word(stats, "state", coordinator);
  group_word(stats, "join_state", join);
  if (strcmp(coordinator, "up") != 0) {
    snprintf(text, sizeof(text), "group %.64s finds no coordinator (%s)", group, coordinator);
    cure = "check the brokers and the topic __consumer_offsets";
  } else if (kafka_reading_joined(stats)) {
    snprintf(text, sizeof(text), "partitions of %.64s are not answered", topic);
    cure = "check their leaders, and the right to READ the topic and the group";
  } else {
    snprintf(text, sizeof(text), "group %.64s does not let us in (%s)", group, join);
    cure = "see kafka-consumer-groups.sh --describe --members";
  }
  size_t len = strlen(text);
  if (reading->error[0])
    snprintf(text + len, sizeof(text) - len, "; %s", reading->error);
  kafka_health_unread(health, host, "kafka.unread", text, cure);
}

static void say_stranger(const struct kafka_reading *reading, struct kafka_health *health,
                         const struct duebox_host *host) {
  char text[KAFKA_STRANGER_SIZE];
  kafka_group_stranger(reading->group, reading->stranger, text);
  kafka_health_unread(health, host, "kafka.stranger", text, kafka_group_stranger_cure);
}

static void say_held_back(const struct kafka_reading *reading, struct kafka_health *health,
                          const struct duebox_host *host) {
  char text[320];
  snprintf(text, sizeof(text),
           "a producer's transaction has been open for %d s at %.100s[%d]@%lld, and nothing behind it is delivered",
           KAFKA_STABLE_PATIENCE_US / 1000000, reading->group->topic, (int)reading->held_back.partition,
           (long long)reading->held_back.stable);
  kafka_health_unread(health, host, "kafka.transaction", text,
                      "end that producer, or abort its transaction: kafka-transactions.sh describe-producers and "
                      "find-hanging name it; its transaction.timeout.ms is how long it may hang");
}

static void say_obstacle(const struct kafka_reading *reading, struct kafka_health *health,
                         const struct duebox_host *host) {
  char text[320];
  snprintf(text, sizeof(text),
           "for more than ten seconds reading has not got past %.100s[%d]@%lld, though there is more behind it",
           reading->group->topic, (int)reading->obstacle.partition, (long long)reading->obstacle.offset);
  kafka_health_unread(health, host, "kafka.obstacle", text,
                      "the way past records that cannot be read is being searched (KAFKA-RECORD-UNREADABLE, "
                      "KAFKA-OFFSET-UNTRUE): see who writes them, and take the right to WRITE from him");
}

bool kafka_reading_is_whole(const struct kafka_reading *reading) {
  return !reading->stranger[0] && reading->held_back.stable < 0 && reading->obstacle.offset < 0;
}

void kafka_reading_judge(struct kafka_reading *reading, const char *stats, bool excused, bool fetched,
                         struct kafka_health *health, const struct duebox_host *host) {
  int64_t now = kafka_now_us();
  bool well = fetched && kafka_reading_joined(stats);
  if (well && kafka_reading_is_whole(reading))
    kafka_health_success(health, host);
  else if (well && !excused && reading->stranger[0])
    say_stranger(reading, health, host);
  else if (well && !excused && reading->obstacle.offset >= 0)
    say_obstacle(reading, health, host);
  else if (well && !excused)
    say_held_back(reading, health, host);
  else if (!excused && now - reading->well_us > reading->patience_us)
    say_unread(reading, stats, health, host);
  if (well || excused)
    reading->well_us = now;
  if (well)
    reading->error[0] = '\0';
}
