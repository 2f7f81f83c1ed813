/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_sink.c - see kafka_sink.h. The way of a task: slot, topic and key, produce, report, completion.
 *
 * A broker judges a batch as a whole: one record too large for the topic, or without the key that a compacted topic
 * demands, fails its neighbours too. As the Java client splits such a batch, the messages of a refused batch are sent
 * once more in batches of one, by a second producer; its verdict is about one task only. Nothing was written, so this
 * is the same attempt.
 */
#include "kafka_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka_message.h"
#include "kafka_outcome.h"

#define EVENTS_PER_POLL 64  /* so that submit() has its turn under a flood of reports */
#define KEY_FIRST_CAP 256   /* bytes; grows */
#define END_MS 400          /* for a client's threads to end; it takes some milliseconds */
#define STOP_MARGIN_MS 1000 /* of stop()'s time, half at most, kept for the reports after the purge */

/* --- slots --- */

static bool make_slots(struct kafka_sink *sink, uint32_t count) {
  sink->slots = calloc(count, sizeof(*sink->slots));
  if (!sink->slots)
    return false;
  sink->slot_count = count;
  for (uint32_t i = count; i-- > 0;) {
    sink->slots[i].next = sink->free_slots;
    sink->free_slots = &sink->slots[i];
  }
  return true;
}

static struct kafka_slot *take_slot(struct kafka_sink *sink, const struct duebox_task *task) {
  struct kafka_slot *slot = sink->free_slots;
  if (slot) {
    sink->free_slots = slot->next;
    *slot = (struct kafka_slot){.task = task};
  }
  return slot;
}

static void free_slot(struct kafka_sink *sink, struct kafka_slot *slot) {
  *slot = (struct kafka_slot){.next = sink->free_slots};
  sink->free_slots = slot;
}

/* --- completion --- */

static void complete(struct kafka_sink *sink, struct kafka_slot *slot, const struct duebox_outcome *outcome) {
  uint64_t token = slot->task->token;
  free_slot(sink, slot);
  sink->host->complete(sink->host->ctx, token, outcome);
}

static void complete_failed(struct kafka_sink *sink, struct kafka_slot *slot, rd_kafka_resp_err_t err,
                            enum duebox_outcome_class cls, enum duebox_scope scope, const char *place) {
  const struct kafka_outcome_row *row = kafka_outcome_find(err);
  char text[512];
  snprintf(text, sizeof(text), "%s: %s; %s", place, rd_kafka_err2str(err), row->cure);
  complete(sink, slot, &DUEBOX_OUTCOME(.cls = cls, .scope = scope, .error_class = row->word, .message = text));
}

/* The host has taken it back. Where no broker can have it, it was never sent. */
static void complete_recalled(struct kafka_sink *sink, struct kafka_slot *slot, rd_kafka_msg_status_t status) {
  bool unsent = status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
  complete(sink, slot,
           &DUEBOX_OUTCOME(.cls = unsent ? DUEBOX_UNAVAILABLE : DUEBOX_UNKNOWN, .scope = DUEBOX_SCOPE_INSTANCE,
                           .recalled = unsent, .blameless = !unsent, .error_class = "kafka.recalled",
                           .message = unsent ? "taken back before it was sent"
                                             : "taken back before a broker had confirmed it: it may have got through"));
}

/* The task cannot be written as it is, whatever the broker says. */
static void complete_rejected(struct kafka_sink *sink, struct kafka_slot *slot, const char *word, const char *text) {
  complete(sink, slot, &DUEBOX_OUTCOME(.cls = DUEBOX_REJECTED, .error_class = word, .message = text));
}

/* --- produce --- */

/* Handed over; no room, and the slot is as it was; completed at once, and the slot is free. */
enum sent { SENT, SENT_FULL, SENT_DONE };

/* The topic's name: as configured, or expanded into out. NULL when the expansion is no topic name. */
static const char *topic_name(struct kafka_sink *sink, const struct duebox_task *task, char *out, size_t cap) {
  const struct kafka_route *route = task->route_data;
  if (!strchr(route->topic, '{'))
    return route->topic;
  size_t len = sink->host->expand(sink->host->ctx, route->topic, task, DUEBOX_ESCAPE_NONE, out, cap);
  return len < cap && strlen(out) == len && kafka_topic_valid(out) ? out : NULL;
}

/* The record's key; without bytes it has none, and any partition will do. False when there is no memory. */
static bool record_key(struct kafka_sink *sink, const struct duebox_task *task, struct duebox_bytes *key) {
  const struct kafka_route *route = task->route_data;
  if (strcmp(route->key, "{task_key}") == 0) {
    *key = task->key;
    return true;
  }
  for (;;) {
    size_t len = sink->host->expand(sink->host->ctx, route->key, task, DUEBOX_ESCAPE_NONE, sink->key, sink->key_cap);
    if (len < sink->key_cap) {
      *key = (struct duebox_bytes){sink->key, len};
      return true;
    }
    char *larger = realloc(sink->key, len + 1);
    if (!larger)
      return false;
    sink->key = larger;
    sink->key_cap = len + 1;
  }
}

static rd_kafka_resp_err_t produce(struct kafka_producer *producer, rd_kafka_topic_t *topic, struct kafka_slot *slot,
                                   struct duebox_bytes key) {
  const struct duebox_task *task = slot->task;
  const struct kafka_route *route = task->route_data;
  rd_kafka_headers_t *headers = kafka_headers(task);
  /* No message flags: the payload is neither copied nor freed; it stays valid until complete(). */
  rd_kafka_resp_err_t err =
      rd_kafka_producev(producer->handle.rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION((int32_t)route->partition),
                        RD_KAFKA_V_VALUE((void *)task->payload.data, task->payload.len),
                        RD_KAFKA_V_KEY(key.len ? key.data : NULL, key.len), RD_KAFKA_V_HEADERS(headers),
                        RD_KAFKA_V_OPAQUE(slot), RD_KAFKA_V_END);
  if (err)
    rd_kafka_headers_destroy(headers); /* taken only on success */
  else
    producer->open++;
  return err;
}

/* What a refusal at the door means; nothing was queued. */
static enum sent refused(struct kafka_sink *sink, struct kafka_producer *producer, struct kafka_slot *slot,
                         rd_kafka_resp_err_t err, const char *topic) {
  const struct kafka_outcome_row *row = kafka_outcome_find(err);
  if (err == RD_KAFKA_RESP_ERR__FATAL)
    kafka_producer_break(producer, sink->host);
  if (err == RD_KAFKA_RESP_ERR__FATAL || err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
    return SENT_FULL;
  complete_failed(sink, slot, err, row->cls, row->scope, topic);
  return SENT_DONE;
}

static enum sent send_task(struct kafka_sink *sink, struct kafka_producer *producer, struct kafka_slot *slot) {
  char buffer[250];
  struct duebox_bytes key;
  const char *name = topic_name(sink, slot->task, buffer, sizeof(buffer));
  if (!name) {
    complete_rejected(sink, slot, "kafka.invalid_topic",
                      "the route's topic template gives no legal topic name for this task: check its key and headers");
    return SENT_DONE;
  }
  rd_kafka_topic_t *topic = kafka_topics_get(&producer->topics, producer->handle.rk, name);
  if (!topic || !record_key(sink, slot->task, &key))
    return SENT_FULL; /* no memory now: the host offers it again */
  rd_kafka_resp_err_t err = produce(producer, topic, slot, key);
  return err ? refused(sink, producer, slot, err, name) : SENT;
}

/* Nobody could send them. */
static size_t refuse_all(struct kafka_sink *sink, const struct duebox_task *const *tasks, size_t n) {
  const struct kafka_outcome_row *row = &kafka_outcome_no_client;
  for (size_t k = 0; k < n; k++)
    sink->host->complete(
        sink->host->ctx, tasks[k]->token,
        &DUEBOX_OUTCOME(.cls = row->cls, .scope = row->scope, .error_class = row->word, .message = row->cure));
  return n;
}

size_t kafka_sink_submit(struct kafka_sink *sink, const struct duebox_task *const *tasks, size_t n) {
  size_t k = 0;
  if (!sink->closed && sink->main.missing)
    return refuse_all(sink, tasks, n);
  for (; k < n && !sink->closed && kafka_producer_ready(&sink->main); k++) {
    struct kafka_slot *slot = take_slot(sink, tasks[k]);
    if (!slot)
      break;
    if (send_task(sink, &sink->main, slot) == SENT_FULL) {
      free_slot(sink, slot);
      break;
    }
  }
  return k;
}

/* --- reports --- */

/* Sends the message of a refused batch once more, alone. False when that is not possible now. */
static bool send_alone(struct kafka_sink *sink, struct kafka_slot *slot) {
  struct duebox_error err;
  if (sink->stopping || sink->alone.fatal)
    return false;
  if (!sink->alone.handle.rk) {
    if (!kafka_producer_open(&sink->alone, sink->alone_conf, sink->wake, &err)) {
      sink->host->log(sink->host->ctx, DUEBOX_LOG_ERROR, "KAFKA-SECOND-PRODUCER", "%s", err.text);
      return false;
    }
    sink->host->log(sink->host->ctx, DUEBOX_LOG_WARN, "KAFKA-BATCH-REFUSED",
                    "a broker refused a whole batch; its messages are sent one by one to find the one it means");
  }
  slot->alone = true;
  return send_task(sink, &sink->alone, slot) != SENT_FULL;
}

/* What the report means. A message that timed out unsent while brokers are connected is not the cluster's trouble: its
 * topic is unknown to all (it never got a partition), or its partition has no leader that takes it. */
static rd_kafka_resp_err_t meaning(const struct kafka_sink *sink, const rd_kafka_message_t *message) {
  if (message->err != RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || !kafka_health_reached(&sink->health) ||
      rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
    return message->err;
  return message->partition == RD_KAFKA_PARTITION_UA ? RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
                                                     : RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
}

static bool is_purged(rd_kafka_resp_err_t err) {
  return err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
}

static void report_failed(struct kafka_sink *sink, const rd_kafka_message_t *message, size_t batch) {
  struct kafka_slot *slot = message->_private;
  rd_kafka_resp_err_t err = meaning(sink, message);
  const struct kafka_outcome_row *row = kafka_outcome_find(err);
  rd_kafka_msg_status_t status = rd_kafka_message_status(message);
  bool innocent = row->whole_batch && batch > 1 && !slot->alone; /* or not known to be guilty */
  if (slot->recalled && (innocent || is_purged(message->err))) {
    complete_recalled(sink, slot, status);
    return;
  }
  if (innocent && status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED && send_alone(sink, slot))
    return;
  enum duebox_outcome_class cls = kafka_outcome_class(row, status);
  if (innocent && cls == DUEBOX_REJECTED)
    cls = DUEBOX_RETRY;
  char place[300];
  snprintf(place, sizeof(place), "%s [%d]", rd_kafka_topic_name(message->rkt), (int)message->partition);
  complete_failed(sink, slot, err, cls, row->scope, place);
}

static void take_reports(struct kafka_sink *sink, struct kafka_producer *producer, rd_kafka_event_t *event) {
  static const struct duebox_outcome delivered = {
      .struct_size = sizeof(delivered), .cls = DUEBOX_DELIVERED, .retry_after_ms = -1};
  size_t batch = rd_kafka_event_message_count(event);
  const rd_kafka_message_t *message;
  bool success = false;
  while ((message = rd_kafka_event_message_next(event))) {
    producer->open--;
    if (message->err) {
      report_failed(sink, message, batch);
    } else {
      complete(sink, message->_private, &delivered);
      success = true;
    }
  }
  if (success)
    kafka_health_success(&sink->health, sink->host);
}

static void take_event(struct kafka_sink *sink, struct kafka_producer *producer, rd_kafka_event_t *event) {
  if (kafka_handle_strayed(&producer->handle))
    kafka_health_strayed(&sink->health, sink->host);
  switch (rd_kafka_event_type(event)) {
  case RD_KAFKA_EVENT_DR:
    take_reports(sink, producer, event);
    break;
  case RD_KAFKA_EVENT_ERROR:
    if (kafka_health_error(&sink->health, sink->host, event))
      kafka_producer_break(producer, sink->host);
    break;
  case RD_KAFKA_EVENT_LOG:
    kafka_log_event(sink->host, event);
    break;
  case RD_KAFKA_EVENT_STATS:
    if (kafka_stats_connected(event))
      kafka_health_connected(&sink->health, sink->host);
    kafka_throttle_judge(&sink->throttle, rd_kafka_event_stats(event), kafka_now_us(), sink->host);
    break;
  default:
    break;
  }
}

/* Takes what is there, up to the limit; returns how many events that was. */
static int drain(struct kafka_sink *sink, struct kafka_producer *producer) {
  int count = 0;
  rd_kafka_event_t *event;
  while (producer->handle.rk && count < EVENTS_PER_POLL &&
         (event = rd_kafka_queue_poll(producer->handle.queue, 0)) != NULL) {
    take_event(sink, producer, event);
    rd_kafka_event_destroy(event);
    count++;
  }
  return count;
}

/* All that has no report yet is reported. Requests are purged before the queues, so that what was written whole is
 * told from what was not; a request that is half written ends with its connection, and no broker can read it. */
static void purge(struct kafka_producer *producer) {
  if (producer->handle.rk)
    rd_kafka_purge(producer->handle.rk,
                   RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* What is in flight is given up with the rest: librdkafka would send it once more after a broken connection, and
 * without it nobody could tell which messages of a half written request's connection were whole (librdkafka 2.0.2,
 * rd_kafka_broker_fail() of a purge calls them all not persisted). The gap that stays in the producer's sequence is
 * closed by a new epoch, as after a message time-out. */
void kafka_sink_recall(struct kafka_sink *sink) {
  for (uint32_t i = 0; i < sink->slot_count; i++)
    sink->slots[i].recalled = sink->slots[i].task != NULL;
  purge(&sink->main);
  purge(&sink->alone);
}

static int shorter(int timeout_ms, int wish_ms) {
  return wish_ms >= 0 && (timeout_ms < 0 || wish_ms < timeout_ms) ? wish_ms : timeout_ms;
}

void kafka_sink_poll(struct kafka_sink *sink, int timeout_ms) {
  if (drain(sink, &sink->main) + drain(sink, &sink->alone) > 0)
    timeout_ms = 0;
  if (!sink->stopping)
    timeout_ms =
        shorter(timeout_ms, kafka_producer_mend(&sink->main, sink->conf, sink->wake, &sink->health, sink->host));
  if (sink->alone.fatal && sink->alone.open == 0)
    kafka_producer_close(&sink->alone, 0); /* the next refused batch starts it again */
  kafka_wake_wait(sink->wake, timeout_ms);
  drain(sink, &sink->main);
  drain(sink, &sink->alone);
}

/* --- life --- */

bool kafka_sink_create(struct kafka_sink *sink, const struct duebox_instance_config *config,
                       const struct duebox_host *host, const struct kafka_wake *wake, struct duebox_error *err) {
  const struct kafka_limits limits = {config->name, config->max_payload, config->max_inflight, config->outbox};
  char text[256];
  sink->host = host;
  sink->options = config->options;
  sink->wake = wake;
  sink->key = malloc(KEY_FIRST_CAP);
  sink->key_cap = KEY_FIRST_CAP;
  if (!sink->key || !make_slots(sink, config->max_inflight))
    return kafka_fail(err, "out of memory for %u open tasks", config->max_inflight);
  sink->conf = kafka_conf_producer(sink->options, &limits, err);
  if (!sink->conf)
    return false;
  sink->alone_conf = rd_kafka_conf_dup(sink->conf);
  if (rd_kafka_conf_set(sink->alone_conf, "batch.num.messages", "1", text, sizeof(text)) != RD_KAFKA_CONF_OK)
    return kafka_fail(err, "librdkafka refuses batch.num.messages: %s", text);
  return true;
}

void kafka_sink_start(struct kafka_sink *sink) {
  struct duebox_error err;
  if (!kafka_producer_open(&sink->main, sink->conf, sink->wake, &err))
    kafka_health_no_client(&sink->health, sink->host, err.text);
}

void kafka_sink_close(struct kafka_sink *sink) { sink->closed = true; }

static size_t open_messages(const struct kafka_sink *sink) { return sink->main.open + sink->alone.open; }

static void poll_until(struct kafka_sink *sink, int64_t end_us) {
  for (int64_t now; open_messages(sink) > 0 && (now = kafka_now_us()) < end_us;)
    kafka_sink_poll(sink, (int)((end_us - now) / 1000) + 1);
}

/* Waits for the reports, gives up what has none yet, and ends the clients. A request that is half written cannot be
 * purged: its tasks are completed here, after the client that pointed into them is gone. */
void kafka_sink_stop(struct kafka_sink *sink, int deadline_ms) {
  int margin_ms = deadline_ms / 2 < STOP_MARGIN_MS ? deadline_ms / 2 : STOP_MARGIN_MS;
  int64_t end_us = kafka_now_us() + (int64_t)deadline_ms * 1000;
  sink->closed = true;
  poll_until(sink, end_us - (int64_t)margin_ms * 1000);
  sink->stopping = true;
  purge(&sink->main);
  purge(&sink->alone);
  poll_until(sink, end_us);
  kafka_producer_close(&sink->alone, END_MS);
  kafka_producer_close(&sink->main, END_MS);
  for (uint32_t i = 0; i < sink->slot_count; i++)
    if (sink->slots[i].task)
      complete_failed(sink, &sink->slots[i], RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, DUEBOX_UNKNOWN, DUEBOX_SCOPE_INSTANCE,
                      "stop");
}

void kafka_sink_destroy(struct kafka_sink *sink) {
  kafka_producer_close(&sink->alone, 0);
  kafka_producer_close(&sink->main, 0);
  if (sink->conf)
    rd_kafka_conf_destroy(sink->conf);
  if (sink->alone_conf)
    rd_kafka_conf_destroy(sink->alone_conf);
  free(sink->slots);
  free(sink->key);
}
