/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_lookup.c - see kafka_lookup.h. The caller's thread, with a client that ends with the call.
 */
#include "kafka_lookup.h"

#include <duebox/check.h>

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "kafka_conf.h"
#include "kafka_group.h"
#include "kafka_handle.h"
#include "kafka_outcome.h"
#include "kafka_sizes.h"

enum { END_MS = 1000 };

struct lookup {
  const struct kafka_options *options;
  const struct kafka_handle *handle;
  int64_t end_us;
  char refused[300];   /* what the brokers said to the login; "" = nothing */
  bool brokers_judged; /* once for all topics */
  bool sizes_untold;   /* the brokers tell nobody, or not this user, how large messages may be */
  struct duebox_check brokers;
};

/* Where a name leads. */
enum way { WAY_HERE, WAY_AWAY, WAY_NOWHERE, WAY_UNSURE };

static enum way way_to(const char *host) {
  const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *list = NULL;
  int failed = getaddrinfo(host, NULL, &wanted, &list);
  if (failed)
    return failed == EAI_NONAME || failed == EAI_NODATA ? WAY_NOWHERE : WAY_UNSURE;
  enum way way = WAY_HERE;
  for (const struct addrinfo *one = list; one; one = one->ai_next)
    if (!kafka_address_local(one->ai_addr))
      way = WAY_AWAY;
  freeaddrinfo(list);
  return way;
}

/* Says so when a broker names an address where the daemon will not (kafka_conf.c) or cannot go. */
static void judge_brokers(struct lookup *lookup, const struct rd_kafka_metadata *data) {
  const struct kafka_options *o = lookup->options;
  bool here_only = !o->tls && !o->allow_plaintext;
  lookup->brokers.verdict = DUEBOX_CHECK_OK;
  for (int i = 0; i < data->broker_cnt && kafka_now_us() < lookup->end_us; i++) {
    const rd_kafka_metadata_broker_t *broker = &data->brokers[i];
    enum way way = way_to(broker->host);
    if (way == WAY_HERE || (way == WAY_AWAY && !here_only))
      continue;
    duebox_check_answer(&lookup->brokers, way == WAY_UNSURE ? DUEBOX_CHECK_UNSURE : DUEBOX_CHECK_WRONG,
                        way == WAY_AWAY
                            ? "correct the broker's advertised.listeners, or set tls: true or allow_plaintext: true"
                            : "correct the broker's advertised.listeners, or the name service of this machine",
                        "broker %d says that it is to be reached as %s:%d, %s", broker->id, broker->host, broker->port,
                        way == WAY_AWAY      ? "which is another host, and tls is off"
                        : way == WAY_NOWHERE ? "a name that is not known here"
                                             : "and the name service has not said where that is");
    return;
  }
}

static void judge(struct duebox_check *check, struct lookup *lookup, const char *topic,
                  const struct rd_kafka_metadata *data) {
  static const rd_kafka_metadata_topic_t none = {.err = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART};
  const rd_kafka_metadata_topic_t *found = data->topic_cnt ? &data->topics[0] : &none;
  const struct kafka_route *route = check->route;
  char create[256];
  if (!lookup->brokers_judged)
    judge_brokers(lookup, data);
  lookup->brokers_judged = true;
  switch (found->err) {
  case RD_KAFKA_RESP_ERR_NO_ERROR:
    break;
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    snprintf(create, sizeof(create), "create it: kafka-topics.sh --create --topic %.120s; duebox never creates one",
             topic);
    duebox_check_answer(check, DUEBOX_CHECK_WRONG, create, "topic %s does not exist, or this user may not see it",
                        topic);
    return;
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    duebox_check_answer(check, DUEBOX_CHECK_WRONG,
                        route ? "give this user WRITE and DESCRIBE on it" : "give this user READ and DESCRIBE on it",
                        "this user may not use topic %s", topic);
    return;
  default:
    duebox_check_answer(check, DUEBOX_CHECK_UNSURE, kafka_outcome_find(found->err)->cure, "topic %s: %s", topic,
                        rd_kafka_err2str(found->err));
    return;
  }
  if (route && route->partition >= found->partition_cnt)
    duebox_check_answer(check, DUEBOX_CHECK_WRONG, "correct partition, or let the key decide: remove it",
                        "topic %s has %d partitions, and partition is %lld", topic, found->partition_cnt,
                        (long long)route->partition);
  else if (lookup->brokers.verdict != DUEBOX_CHECK_OK)
    duebox_check_answer(check, lookup->brokers.verdict, lookup->brokers.cure, "%s", lookup->brokers.text);
  else
    duebox_check_answer(check, DUEBOX_CHECK_OK, "", "topic %s has %d partition%s", topic, found->partition_cnt,
                        found->partition_cnt == 1 ? "" : "s");
}

/* Without an answer what was found of the topic stands. */
static void look_up_group(struct lookup *lookup, struct duebox_check *check) {
  struct kafka_group group;
  char stranger[KAFKA_STRANGER_SIZE];
  int left_ms = (int)((lookup->end_us - kafka_now_us()) / 1000);
  if (left_ms <= 0)
    return;
  kafka_group_init(&group, lookup->options, check->source, check->outbox);
  const struct kafka_readers readers = kafka_group_readers(&group, lookup->handle->rk, left_ms);
  if (readers.known && readers.partitions == 0)
    duebox_check_answer(check, DUEBOX_CHECK_UNSURE,
                        "start the daemon; if it runs, its /readyz and its log say why the group does not let it in",
                        "nobody reads topic %s at the moment: no member of group %s has a partition of it", group.topic,
                        group.name);
  else if (readers.stranger[0]) {
    kafka_group_stranger(&group, readers.stranger, stranger);
    duebox_check_answer(check, DUEBOX_CHECK_WRONG, kafka_group_stranger_cure, "%s", stranger);
  }
}

/* Only where the topic is there. Who may not ask for its settings may not for those of any. */
static void look_up_size(struct lookup *lookup, struct duebox_check *check) {
  const struct kafka_route *route = check->route;
  char topic[256];
  int64_t most = -1;
  int left_ms = (int)((lookup->end_us - kafka_now_us()) / 1000);
  bool named = check->expand(check, route->topic, topic, sizeof(topic));
  if (named && left_ms > 0 && !lookup->sizes_untold) {
    most = kafka_topic_max(lookup->handle->rk, topic, left_ms);
    lookup->sizes_untold = most < 0;
  }
  kafka_judge_sizes(check, topic, kafka_producer_max(lookup->options), most);
}

/* A question that nobody lets us ask has no answer of its own: the client tells why among its events. */
static void hear_refusal(struct lookup *lookup) {
  rd_kafka_event_t *event;
  while ((event = rd_kafka_queue_poll(lookup->handle->queue, 0)) != NULL) {
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR &&
        strcmp(kafka_outcome_find(rd_kafka_event_error(event))->word, "kafka.authentication") == 0)
      snprintf(lookup->refused, sizeof(lookup->refused), "%s", rd_kafka_event_error_string(event));
    rd_kafka_event_destroy(event);
  }
}

static void say_refused(struct duebox_check *check, const struct lookup *lookup, const char *topic) {
  duebox_check_answer(check, DUEBOX_CHECK_WRONG, kafka_outcome_find(RD_KAFKA_RESP_ERR__AUTHENTICATION)->cure,
                      "topic %s: %s", topic, lookup->refused);
}

static void look_up(struct lookup *lookup, struct duebox_check *check) {
  const struct kafka_route *route = check->route;
  const struct kafka_results *results = check->source;
  char expanded[256];
  const char *topic = route ? expanded : results->topic;
  const struct rd_kafka_metadata *data = NULL;
  int64_t left_us = lookup->end_us - kafka_now_us();
  rd_kafka_topic_t *handle;
  if (route && !check->expand(check, route->topic, expanded, sizeof(expanded))) {
    duebox_check_answer(check, DUEBOX_CHECK_OK, "", "topic %s is another one for each task", route->topic);
    return;
  }
  if (lookup->refused[0]) {
    say_refused(check, lookup, topic);
    return;
  }
  if (left_us <= 0) {
    duebox_check_answer(check, DUEBOX_CHECK_UNSURE, "", "there was no time left to ask for topic %s", topic);
    return;
  }
  if (!(handle = rd_kafka_topic_new(lookup->handle->rk, topic, NULL))) {
    duebox_check_answer(check, DUEBOX_CHECK_WRONG, "correct its name", "librdkafka refuses topic %s", topic);
    return;
  }
  rd_kafka_resp_err_t err = rd_kafka_metadata(lookup->handle->rk, 0, handle, &data, (int)(left_us / 1000) + 1);
  if (err)
    hear_refusal(lookup);
  if (err && lookup->refused[0])
    say_refused(check, lookup, topic);
  else if (err)
    duebox_check_answer(check, DUEBOX_CHECK_UNSURE, kafka_outcome_find(err)->cure, "topic %s: %s", topic,
                        rd_kafka_err2str(err));
  else
    judge(check, lookup, topic, data);
  if (data)
    rd_kafka_metadata_destroy(data);
  rd_kafka_topic_destroy(handle);
}

void kafka_check_targets(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms) {
  const struct kafka_limits limits = {.name = "doctor", .max_payload = 1 << 20, .max_inflight = 1};
  struct kafka_handle handle = {0};
  struct lookup lookup = {.options = options, .handle = &handle, .end_us = kafka_now_us() + (int64_t)timeout_ms * 1000};
  struct kafka_wake wake = {-1};
  struct duebox_error err = {.text = ""};
  rd_kafka_conf_t *conf = kafka_conf_producer(options, &limits, &err);
  bool open = conf && kafka_wake_open(&wake, &err) && kafka_handle_open(&handle, RD_KAFKA_PRODUCER, conf, &wake, &err);
  for (size_t i = 0; i < count; i++)
    if (open)
      look_up(&lookup, checks[i]);
    else
      duebox_check_answer(checks[i], DUEBOX_CHECK_WRONG, kafka_outcome_no_client.cure, "%s", err.text);
  for (size_t i = 0; open && i < count; i++)
    if (checks[i]->route && checks[i]->verdict == DUEBOX_CHECK_OK)
      look_up_size(&lookup, checks[i]);
  for (size_t i = 0; open && i < count; i++) /* last: a coordinator may be slow to be found */
    if (checks[i]->source && checks[i]->verdict == DUEBOX_CHECK_OK)
      look_up_group(&lookup, checks[i]);
  kafka_handle_end(&handle, END_MS);
  kafka_wake_close(&wake);
  if (conf)
    rd_kafka_conf_destroy(conf);
}
