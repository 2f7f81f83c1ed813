/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_source.c - see kafka_source.h. The way of a record: event, window, host, acknowledgement, commit.
 *
 * Flow control. When the host is full, the one record it refused is held and the client's queue is left alone: mostly
 * there is room again within milliseconds. Where that lasts, every partition is paused and polling goes on, so that the
 * group keeps its member (max.poll.interval.ms); a pause drops what was fetched, and fetching again costs some 0.4 s.
 *
 * A cookie is the partition number and the record's sequence number in the partition's window; what comes late, for a
 * partition that was taken away, is ignored.
 */
#include "kafka_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka_correlation.h"

#define EVENTS_PER_POLL 4096     /* one record each */
#define COMMIT_INTERVAL_US 50000 /* a restart repeats at most the records acknowledged in this time */
#define COMMIT_RETRY_US 1000000
#define FULL_PATIENCE_US 2000000
#define REOPEN_US 5000000 /* at most one new client in this time */
#define YIELD_MS 600      /* for the group to be left in order */
#define END_MS 400        /* for the threads of a client that has left its group to end */
/* Nothing is read meanwhile; both of its questions stand behind a fetch, of 500 ms where the topic is quiet. */
#define GROUP_ANSWER_MS 2000
#define SEQUENCE_BITS 48
#define SEQUENCE_MASK ((UINT64_C(1) << SEQUENCE_BITS) - 1)
#define PARTITIONS_MAX 65536

/* --- partitions --- */

/* The partition's place, made when needed; NULL without memory or with a number out of reason. */
static struct kafka_partition *partition_at(struct kafka_source *source, int32_t number) {
  size_t index = (size_t)number;
  if (number < 0 || index >= PARTITIONS_MAX)
    return NULL;
  if (index >= source->partition_count) {
    struct kafka_partition *more = realloc(source->partitions, (index + 1) * sizeof(*more));
    if (!more)
      return NULL;
    for (size_t i = source->partition_count; i <= index; i++)
      more[i] = (struct kafka_partition){
          .window = KAFKA_WINDOW_EMPTY, .obstacle = KAFKA_OBSTACLE_NONE, .stable = {.offset = -1}, .committed = -1};
    source->partitions = more;
    source->partition_count = index + 1;
  }
  return &source->partitions[index];
}

static rd_kafka_topic_partition_list_t *assigned_list(const struct kafka_source *source) {
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)source->partition_count);
  for (size_t i = 0; i < source->partition_count; i++)
    if (source->partitions[i].assigned)
      rd_kafka_topic_partition_list_add(list, source->results->topic, (int32_t)i);
  return list;
}

/* Ends the client without storing more offsets; the next one starts behind what is stored. */
static void give_up(struct kafka_source *source, const char *reason) {
  if (!source->fatal)
    source->host->log(source->host->ctx, DUEBOX_LOG_ERROR, "KAFKA-CONSUMER-LOST",
                      "the consumer of %s is replaced: %s; records that are not committed come again",
                      source->results->topic, reason);
  source->fatal = true;
}

/* Pauses or resumes everything assigned. What the client had fetched ahead is dropped by a pause and fetched again
 * after the record that was handed out last (rdkafka_partition.c: a pause raises the partition's version). */
static void set_paused(struct kafka_source *source, bool paused) {
  if (!source->handle.rk)
    return;
  rd_kafka_topic_partition_list_t *list = assigned_list(source);
  if (paused)
    rd_kafka_pause_partitions(source->handle.rk, list);
  else
    rd_kafka_resume_partitions(source->handle.rk, list);
  for (int i = 0; i < list->cnt; i++)
    if (list->elems[i].err)
      give_up(source, rd_kafka_err2str(list->elems[i].err)); /* it would stand still for ever, or not at all */
  rd_kafka_topic_partition_list_destroy(list);
}

/* --- records --- */

enum kafka_offered kafka_source_offer(struct kafka_source *source, int32_t number, int64_t offset,
                                      struct duebox_record *record) {
  uint64_t sequence;
  char origin[320];
  struct kafka_partition *partition = partition_at(source, number);
  if (!partition || !kafka_window_push(&partition->window, offset, &sequence))
    return KAFKA_NO_MEMORY;
  snprintf(origin, sizeof(origin), "%s[%d]@%lld", source->results->topic, (int)number, (long long)offset);
  record->struct_size = sizeof(*record);
  record->origin = origin;
  if (source->host->result(source->host->ctx, record, (uint64_t)number << SEQUENCE_BITS | (sequence & SEQUENCE_MASK)))
    return KAFKA_TAKEN;
  kafka_window_pop(&partition->window);
  return KAFKA_REFUSED;
}

static enum kafka_offered offer(struct kafka_source *source, const rd_kafka_message_t *message) {
  char correlation[KAFKA_CORRELATION_CAP];
  if (!partition_at(source, message->partition))
    return KAFKA_NO_MEMORY;
  size_t kept = message->len < (size_t)source->max_record ? message->len : (size_t)source->max_record;
  struct duebox_record record = {
      .body = {message->payload ? message->payload : "", kept},
      .full_len = message->len,
      .truncated = kept < message->len,
      .correlation_id = kafka_correlation_of(message, correlation),
  };
  int64_t place = kafka_obstacle_place(source, message->partition, message->offset);
  enum kafka_offered result = kafka_source_offer(source, message->partition, place, &record);
  if (result == KAFKA_TAKEN)
    kafka_obstacle_took(source, message->partition, message->offset, place);
  return result;
}

static void drop_held(struct kafka_source *source) {
  if (source->held_event)
    rd_kafka_event_destroy(source->held_event);
  source->held_event = NULL;
  source->held = NULL;
}

/* Takes over the event. */
static void take_record(struct kafka_source *source, rd_kafka_event_t *event) {
  const rd_kafka_message_t *message = rd_kafka_event_message_next(event);
  bool wanted = message && !message->err && !source->closed && !source->fatal;
  enum kafka_offered result = KAFKA_TAKEN;
  if (wanted && kafka_reading_is_whole(&source->reading))
    kafka_health_success(&source->health, source->host);
  if (wanted && source->paused)
    give_up(source, "a record came from a paused partition"); /* dropping it would lose it */
  else if (wanted && !kafka_obstacle_drops(source, message->partition, message->offset))
    result = offer(source, message);
  if (result == KAFKA_NO_MEMORY)
    give_up(source, "out of memory");
  if (result != KAFKA_REFUSED) {
    rd_kafka_event_destroy(event);
    return;
  }
  source->held_event = event;
  source->held = message;
  source->full = true;
  source->full_us = kafka_now_us();
}

/* Whether the client's queue is to be left alone. */
static bool waits_for_room(const struct kafka_source *source) {
  return source->full && !source->paused && !source->closed;
}

/* Pauses where the host has been full for too long; returns the milliseconds until then, -1 for no wish. */
static int pause_in_time(struct kafka_source *source) {
  if (!waits_for_room(source))
    return -1;
  int64_t wait_us = source->full_us + FULL_PATIENCE_US - kafka_now_us();
  if (wait_us > 0)
    return (int)(wait_us / 1000) + 1;
  source->paused = true;
  set_paused(source, true);
  return -1;
}

void kafka_source_resume(struct kafka_source *source) {
  if (source->yielded) {
    source->yielded = source->closed = false; /* mend() opens a client */
    return;
  }
  enum kafka_offered result = source->held && !source->closed ? offer(source, source->held) : KAFKA_TAKEN;
  if (result == KAFKA_REFUSED)
    return;
  if (result == KAFKA_NO_MEMORY)
    give_up(source, "out of memory");
  drop_held(source);
  bool was_paused = source->paused;
  source->full = source->paused = false;
  if (was_paused && !source->closed)
    set_paused(source, false);
}

/* --- offsets --- */

void kafka_source_ack(struct kafka_source *source, uint64_t cookie, bool committed) {
  uint64_t number = cookie >> SEQUENCE_BITS, low = cookie & SEQUENCE_MASK;
  if (number >= source->partition_count || !committed) /* never to be committed: it holds its offset back */
    return;
  struct kafka_window *window = &source->partitions[number].window;
  kafka_window_ack(window, (window->next & ~SEQUENCE_MASK) | low);
  source->dirty = true;
}

/* What is behind a gap is stored when it is known to be one, or in the end: what was read is not repeated then. */
static int64_t storable_offset(const struct kafka_source *source, const struct kafka_partition *partition) {
  int64_t stored = partition->window.stored, doubt = kafka_obstacle_doubt(&partition->obstacle);
  return doubt >= 0 && doubt < stored && !source->closed ? doubt : stored;
}

/* The offsets that may be stored and are not; NULL = none. */
static rd_kafka_topic_partition_list_t *storable(struct kafka_source *source) {
  rd_kafka_topic_partition_list_t *list = NULL;
  for (size_t i = 0; i < source->partition_count; i++) {
    struct kafka_partition *partition = &source->partitions[i];
    int64_t offset = storable_offset(source, partition);
    if (!partition->assigned || offset < 0 || offset == partition->committed)
      continue;
    if (!list)
      list = rd_kafka_topic_partition_list_new(8);
    rd_kafka_topic_partition_list_add(list, source->results->topic, (int32_t)i)->offset = offset;
    partition->committed = offset;
  }
  source->dirty = false;
  return list;
}

/* Whatever is still ours is tried again. When the group has moved on, the records come again elsewhere and change
 * nothing. */
static void commit_failed(struct kafka_source *source, rd_kafka_resp_err_t err) {
  for (size_t i = 0; i < source->partition_count; i++)
    source->partitions[i].committed = -1;
  source->dirty = true;
  source->commit_us = kafka_now_us() + COMMIT_RETRY_US;
  bool moved = err == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || err == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
               err == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
  source->host->log(source->host->ctx, moved ? DUEBOX_LOG_DEBUG : DUEBOX_LOG_WARN, "KAFKA-COMMIT-FAILED",
                    "offsets of %s were not stored: %s", source->results->topic, rd_kafka_err2str(err));
}

/* Sends the commit; its answer is an event. While the cluster is away it would be kept inside the client, and keep the
 * client from ending: better later. */
static void commit(struct kafka_source *source) {
  bool possible = source->handle.rk && source->health.state != KAFKA_HEALTH_AWAY;
  rd_kafka_topic_partition_list_t *list = possible ? storable(source) : NULL;
  if (!list)
    return;
  rd_kafka_resp_err_t err = rd_kafka_commit_queue(source->handle.rk, list, source->handle.queue, NULL, NULL);
  rd_kafka_topic_partition_list_destroy(list);
  source->commit_open = !err;
  source->commit_us = kafka_now_us() + COMMIT_INTERVAL_US;
  if (err)
    commit_failed(source, err);
}

/* Commits when it is time; returns the milliseconds until it wants to be called again, -1 for no wish. */
static int commit_in_time(struct kafka_source *source) {
  if (!source->dirty || source->commit_open || source->health.state == KAFKA_HEALTH_AWAY)
    return -1;
  int64_t wait_us = source->commit_us - kafka_now_us();
  if (wait_us > 0)
    return (int)(wait_us / 1000) + 1;
  commit(source);
  return -1;
}

static void take_commit(struct kafka_source *source, rd_kafka_event_t *event) {
  rd_kafka_resp_err_t err = rd_kafka_event_error(event);
  source->commit_open = false;
  if (err)
    commit_failed(source, err);
}

/* --- rebalance --- */

static void forget_all(struct kafka_source *source) {
  drop_held(source);
  for (size_t i = 0; i < source->partition_count; i++) {
    kafka_window_forget(&source->partitions[i].window);
    kafka_obstacle_forget(&source->partitions[i].obstacle);
    source->partitions[i].stable.offset = -1;
    source->partitions[i].committed = -1;
    source->partitions[i].assigned = false;
  }
  source->dirty = false;
}

static void assign(struct kafka_source *source, const rd_kafka_topic_partition_list_t *list) {
  rd_kafka_resp_err_t err = rd_kafka_assign(source->handle.rk, list);
  if (err && !source->closed)
    give_up(source, rd_kafka_err2str(err));
}

static void take_assignment(struct kafka_source *source, const rd_kafka_topic_partition_list_t *list) {
  forget_all(source);
  for (int i = 0; i < list->cnt; i++) {
    struct kafka_partition *partition = partition_at(source, list->elems[i].partition);
    if (partition)
      partition->assigned = true;
    else
      give_up(source, "no memory for its partitions");
  }
  assign(source, list);
  if (source->paused || source->closed)
    set_paused(source, true);
}

/* The commit is sent before the partitions are let go, on the same connection, so that it counts. */
static void take_rebalance(struct kafka_source *source, rd_kafka_event_t *event) {
  rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
  bool given = rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
  source->host->log(source->host->ctx, DUEBOX_LOG_INFO, "KAFKA-REBALANCE", "%d partitions of %s %s",
                    list ? list->cnt : 0, source->results->topic, given ? "assigned" : "revoked");
  kafka_reading_rebalanced(&source->reading);
  if (given && list) {
    take_assignment(source, list);
    return;
  }
  commit(source);
  forget_all(source);
  assign(source, NULL);
}

/* --- events --- */

/* The topic was deleted, or its broker says so. Where it is made again the client would go on behind the records that
 * it has read of the one before, and pass over as many; a new one begins where the group is, which the broker forgets
 * with the topic. */
static bool is_gone(rd_kafka_resp_err_t err) { return err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION; }

static void take_error(struct kafka_source *source, rd_kafka_event_t *event) {
  rd_kafka_topic_partition_t *place = rd_kafka_event_topic_partition(event);
  if (is_gone(rd_kafka_event_error(event)) && !source->closed)
    give_up(source, "its topic, or a partition of it, is gone");
  else if (place && kafka_obstacle_is_batch(rd_kafka_event_error(event)))
    kafka_obstacle_batch(source, place->partition, place->offset, rd_kafka_event_error_string(event));
  if (place)
    rd_kafka_topic_partition_destroy(place);
  kafka_reading_error(&source->reading, event);
  if (kafka_health_error(&source->health, source->host, event))
    give_up(source, rd_kafka_event_error_string(event));
}

/* A fetch that is refused leaves no high watermark (rdkafka_fetcher.c). */
static bool fetches(const struct kafka_source *source) {
  int64_t low, high;
  for (size_t i = 0; i < source->partition_count; i++)
    if (source->partitions[i].assigned &&
        (rd_kafka_get_watermark_offsets(source->handle.rk, source->results->topic, (int32_t)i, &low, &high) ||
         high < 0))
      return false;
  return true;
}

static void follow_transactions(struct kafka_source *source, const char *stats, bool excused) {
  struct kafka_offsets found;
  int64_t now = kafka_now_us();
  source->reading.held_back = (struct kafka_offsets){.stable = -1};
  while (kafka_stable_next(&stats, &found)) {
    struct kafka_partition *partition = found.partition >= 0 && (size_t)found.partition < source->partition_count
                                            ? &source->partitions[found.partition]
                                            : NULL;
    if (partition && partition->assigned && kafka_stable_stands(&partition->stable, &found, excused, now))
      source->reading.held_back = found;
  }
}

static void take_stats(struct kafka_source *source, rd_kafka_event_t *event) {
  bool connected = kafka_stats_connected(event), excused = !connected || source->full || source->closed;
  if (connected)
    kafka_health_connected(&source->health, source->host);
  follow_transactions(source, rd_kafka_event_stats(event), excused);
  kafka_obstacle_stats(source, rd_kafka_event_stats(event), excused);
  source->reading.obstacle = kafka_obstacle_lasting(source);
  kafka_reading_judge(&source->reading, rd_kafka_event_stats(event), excused, fetches(source), &source->health,
                      source->host);
  if (connected && !source->closed && kafka_reading_asks(&source->reading)) {
    struct kafka_readers readers = kafka_group_readers(&source->group, source->handle.rk, GROUP_ANSWER_MS);
    kafka_reading_answer(&source->reading, &readers);
  }
}

static void take_event(struct kafka_source *source, rd_kafka_event_t *event) {
  if (kafka_handle_strayed(&source->handle))
    kafka_health_strayed(&source->health, source->host);
  switch (rd_kafka_event_type(event)) {
  case RD_KAFKA_EVENT_FETCH:
    take_record(source, event);
    return; /* it has the event now */
  case RD_KAFKA_EVENT_REBALANCE:
    take_rebalance(source, event);
    break;
  case RD_KAFKA_EVENT_OFFSET_COMMIT:
    take_commit(source, event);
    break;
  case RD_KAFKA_EVENT_ERROR:
    take_error(source, event);
    break;
  case RD_KAFKA_EVENT_LOG:
    kafka_log_event(source->host, event);
    break;
  case RD_KAFKA_EVENT_STATS:
    take_stats(source, event);
    break;
  default:
    break;
  }
  rd_kafka_event_destroy(event);
}

static int drain(struct kafka_source *source) {
  int count = 0;
  rd_kafka_event_t *event;
  while (source->handle.rk && !source->fatal && !waits_for_room(source) && count < EVENTS_PER_POLL &&
         (event = rd_kafka_queue_poll(source->handle.queue, 0)) != NULL) {
    take_event(source, event);
    count++;
  }
  kafka_obstacle_go_on(source);
  return count;
}

/* --- life --- */

static bool open_client(struct kafka_source *source, struct duebox_error *err) {
  source->opened_us = kafka_now_us();
  if (!kafka_handle_open(&source->handle, RD_KAFKA_CONSUMER, source->conf, source->wake, err))
    return false;
  source->fatal = false;
  source->commit_open = false;
  rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, source->results->topic, RD_KAFKA_PARTITION_UA);
  rd_kafka_resp_err_t code = rd_kafka_subscribe(source->handle.rk, topics);
  rd_kafka_topic_partition_list_destroy(topics);
  if (!code)
    return true;
  kafka_handle_end(&source->handle, 0);
  return kafka_fail(err, "cannot subscribe to %s: %s", source->results->topic, rd_kafka_err2str(code));
}

/* Replaces a client that is lost. Returns the milliseconds until it wants to be called again, -1 for no wish. */
static int mend(struct kafka_source *source) {
  struct duebox_error err;
  if (source->fatal && source->handle.rk) {
    forget_all(source);
    kafka_handle_end(&source->handle, 0);
  }
  if (source->handle.rk || source->closed)
    return -1;
  int64_t wait_us = source->opened_us + REOPEN_US - kafka_now_us();
  if (wait_us > 0)
    return (int)(wait_us / 1000) + 1;
  if (open_client(source, &err))
    return -1;
  kafka_health_no_client(&source->health, source->host, err.text);
  return REOPEN_US / 1000;
}

static int shorter(int timeout_ms, int wish_ms) {
  return wish_ms >= 0 && (timeout_ms < 0 || wish_ms < timeout_ms) ? wish_ms : timeout_ms;
}

void kafka_source_poll(struct kafka_source *source, int timeout_ms) {
  timeout_ms = shorter(timeout_ms, mend(source));
  timeout_ms = shorter(timeout_ms, pause_in_time(source));
  if (drain(source) > 0)
    timeout_ms = 0;
  timeout_ms = shorter(timeout_ms, commit_in_time(source));
  kafka_wake_wait(source->wake, timeout_ms);
  drain(source);
}

bool kafka_source_create(struct kafka_source *source, const struct duebox_instance_config *config,
                         const struct duebox_host *host, const struct kafka_wake *wake, struct duebox_error *err) {
  const struct kafka_limits limits = {config->name, config->max_payload, config->max_inflight, config->outbox};
  source->host = host;
  source->results = config->source;
  source->wake = wake;
  source->max_record = config->max_record;
  kafka_group_init(&source->group, config->options, source->results, config->outbox);
  source->conf = kafka_conf_consumer(config->options, source->group.name, &limits, err);
  source->health.of_source = true;
  return source->conf != NULL;
}

void kafka_source_start(struct kafka_source *source) {
  struct duebox_error err;
  kafka_reading_init(&source->reading, &source->group, source->conf);
  if (!open_client(source, &err))
    kafka_health_no_client(&source->health, source->host, err.text);
}

void kafka_source_close(struct kafka_source *source) {
  source->closed = true;
  source->yielded = false;
  set_paused(source, true);
}

/* Serves events until done or the end of time. */
static void serve_until(struct kafka_source *source, bool (*done)(const struct kafka_source *), int64_t end_us) {
  for (int64_t now; !done(source) && (now = kafka_now_us()) < end_us;) {
    kafka_wake_wait(source->wake, drain(source) > 0 ? 0 : (int)((end_us - now) / 1000) + 1);
  }
}

static bool commit_answered(const struct kafka_source *source) { return !source->commit_open || source->fatal; }

static bool client_closed(const struct kafka_source *source) {
  return source->fatal || rd_kafka_consumer_closed(source->handle.rk);
}

/* Stores the last offsets and leaves the group, so that the others need not wait for the session to time out. Half of
 * the time is for the answer of the commit: when the broker is away there is none. */
static void leave_group(struct kafka_source *source, int deadline_ms) {
  int64_t now = kafka_now_us(), end_us = now + (int64_t)deadline_ms * 1000;
  source->closed = true;
  if (!source->handle.rk)
    return;
  serve_until(source, commit_answered, now + (int64_t)deadline_ms * 250);
  commit(source);
  serve_until(source, commit_answered, now + (int64_t)deadline_ms * 500);
  rd_kafka_error_t *error = rd_kafka_consumer_close_queue(source->handle.rk, source->handle.queue);
  if (!error)
    serve_until(source, client_closed, end_us);
  else
    rd_kafka_error_destroy(error); /* it is closed already, or beyond closing: the end is the same */
  forget_all(source);
  kafka_handle_end(&source->handle, rd_kafka_consumer_closed(source->handle.rk) ? END_MS : 0);
}

void kafka_source_stop(struct kafka_source *source, int deadline_ms) { leave_group(source, deadline_ms); }

void kafka_source_yield(struct kafka_source *source) {
  if (source->closed)
    return;
  leave_group(source, YIELD_MS);
  source->full = source->paused = false;
  source->yielded = true;
}

void kafka_source_destroy(struct kafka_source *source) {
  drop_held(source);
  kafka_handle_end(&source->handle, 0);
  if (source->conf)
    rd_kafka_conf_destroy(source->conf);
  for (size_t i = 0; i < source->partition_count; i++) {
    kafka_window_free(&source->partitions[i].window);
    kafka_obstacle_forget(&source->partitions[i].obstacle);
  }
  free(source->partitions);
}
