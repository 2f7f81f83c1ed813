/* SPDX-License-Identifier: MIT */
#include "amqp_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CHANNEL = 1,
  BACKOFF_MIN_US = 100000,
  BACKOFF_MAX_US = 10000000,
  TURN_US = 1000000,  /* how often one that stands by asks whether the queue is free */
  STUCK_US = 1000000, /* a record that is open for so long may be so for long */
  TAG_BITS = 48,      /* of a cookie; the generation of the channel stands above them */
};

static uint64_t cookie_of(const struct amqp_source *source, uint64_t tag) {
  return (uint64_t)source->generation << TAG_BITS | tag;
}

/* ---- the channel ---------------------------------------------------------------------------------------------- */

static void ask(struct amqp_source *source, enum amqp_source_state state, amqp_method_number_t id, void *method) {
  source->state = state;
  source->answer_by_us = amqp_now_us() + source->conn.target->connect_timeout_ms * 1000;
  (void)amqp_conn_send_method(&source->conn, CHANNEL, id, method); /* a failure is handled by the connection */
}

/* What was delivered on the channel and not acknowledged, the broker delivers again. */
static void forget_channel(struct amqp_source *source) {
  source->state = AMQP_SOURCE_CLOSED;
  source->subscribed = source->verifying = false;
  source->generation++;
  amqp_acks_reset(&source->acks);
  source->tag = source->unreadable = 0;
  source->has_header = source->waiting = false;
  amqp_conn_pause(&source->conn, source->closed);
}

static void open_channel(struct amqp_source *source) {
  amqp_channel_open_t open = {0};
  ask(source, AMQP_SOURCE_OPENING, AMQP_CHANNEL_OPEN_METHOD, &open);
}

static void count_readers(struct amqp_source *source, enum amqp_source_state state) {
  amqp_queue_declare_t declare = {.queue = amqp_cstring_bytes(source->options->queue), .passive = 1};
  ask(source, state, AMQP_QUEUE_DECLARE_METHOD, &declare);
}

/* Of the next subscription. */
static void limit_deliveries(struct amqp_source *source, uint32_t wanted) {
  amqp_basic_qos_t qos = {.prefetch_count = (uint16_t)wanted};
  source->wanted = wanted;
  ask(source, AMQP_SOURCE_LIMITING, AMQP_BASIC_QOS_METHOD, &qos);
}

static void unsubscribe(struct amqp_source *source) {
  char tag[32];
  snprintf(tag, sizeof tag, "duebox-%u", source->subscription);
  amqp_basic_cancel_t cancel = {.consumer_tag = amqp_cstring_bytes(tag), .nowait = 1};
  (void)amqp_conn_send_method(&source->conn, CHANNEL, AMQP_BASIC_CANCEL_METHOD, &cancel);
}

/* An exclusive one is the only one, so the one before it goes first. The broker does both in a row. */
static void subscribe(struct amqp_source *source) {
  char tag[32];
  if (source->subscribed)
    unsubscribe(source);
  snprintf(tag, sizeof tag, "duebox-%u", ++source->subscription);
  amqp_basic_consume_t consume = {.queue = amqp_cstring_bytes(source->options->queue),
                                  .consumer_tag = amqp_cstring_bytes(tag),
                                  .exclusive = !source->shareable};
  source->read = 0;
  ask(source, AMQP_SOURCE_SUBSCRIBING, AMQP_BASIC_CONSUME_METHOD, &consume);
}

static void begin_reading(struct amqp_source *source) {
  if (!amqp_acks_widen(&source->acks, source->wanted)) {
    amqp_conn_fail(&source->conn, "not enough memory for a prefetch of %u; lower it", source->wanted);
    return;
  }
  source->state = AMQP_SOURCE_READING;
  source->backoff_us = BACKOFF_MIN_US;
  source->host->health(source->host->ctx, true, NULL);
  if (source->said_standing_by)
    source->host->log(source->host->ctx, DUEBOX_LOG_INFO, "AMQP-READING", "queue '%s' is read from here now",
                      source->options->queue);
  source->said_standing_by = false;
  source->verifying = !source->subscribed;
  source->subscribed = true;
  if (source->verifying)
    count_readers(source, AMQP_SOURCE_READING);
}

/* Between half and one and a half of a turn: two that came at the same moment do not come back at the same moment. */
static int64_t turn_us(struct amqp_source *source) {
  source->random ^= source->random << 13;
  source->random ^= source->random >> 7;
  source->random ^= source->random << 17;
  return TURN_US / 2 + (int64_t)(source->random % TURN_US);
}

/* The channel, if there is one, stays open. */
static void stand_by(struct amqp_source *source) {
  static const char why[] = "another consumer reads the queue, and this one takes over when that has gone";
  source->retry_at_us = amqp_now_us() + turn_us(source);
  source->backoff_us = BACKOFF_MIN_US;
  source->host->health(source->host->ctx, true, why);
  if (!source->said_standing_by)
    source->host->log(source->host->ctx, DUEBOX_LOG_INFO, "AMQP-STANDBY",
                      "queue '%s': %s; it should be another daemon of this outbox", source->options->queue, why);
  source->said_standing_by = true;
}

static void leave_channel(struct amqp_source *source, const char *why) {
  amqp_channel_close_t close = {.reply_code = AMQP_REPLY_SUCCESS, .reply_text = amqp_cstring_bytes(why)};
  forget_channel(source);
  ask(source, AMQP_SOURCE_CLOSING, AMQP_CHANNEL_CLOSE_METHOD, &close);
}

static void give_way(struct amqp_source *source) {
  leave_channel(source, "another reads");
  stand_by(source);
}

static void on_readers(struct amqp_source *source, uint32_t readers) {
  amqp_conn_works(&source->conn);
  if (source->state == AMQP_SOURCE_ASKING && readers == 0) {
    limit_deliveries(source, source->depth);
  } else if (source->state == AMQP_SOURCE_ASKING) {
    source->shareable = false;
    source->state = AMQP_SOURCE_STANDING_BY;
    stand_by(source);
  } else if (source->verifying) {
    source->verifying = false;
    if (readers > 1)
      give_way(source);
  } else {
    amqp_conn_fail(&source->conn, "the broker answered what it was not asked");
  }
}

static void try_again_later(struct amqp_source *source, const char *text) {
  source->host->unread(source->host->ctx, text);
  if (source->backoff_us == BACKOFF_MIN_US)
    source->host->log(source->host->ctx, DUEBOX_LOG_WARN, "AMQP-QUEUE", "%s; trying again, at least every %d s", text,
                      BACKOFF_MAX_US / 1000000);
  source->retry_at_us = amqp_now_us() + source->backoff_us;
  source->backoff_us = source->backoff_us * 2 > BACKOFF_MAX_US ? BACKOFF_MAX_US : source->backoff_us * 2;
}

/* As RabbitMQ says it, where somebody reads the queue, and also of a queue with a single active consumer. A right that
 * is missing has the same number. */
static bool is_taken(const struct amqp_source *source, const amqp_channel_close_t *close) {
  static const char taken[] = "in exclusive use";
  return source->state == AMQP_SOURCE_SUBSCRIBING && close->reply_code == AMQP_ACCESS_REFUSED &&
         memmem(close->reply_text.bytes, close->reply_text.len, taken, strlen(taken));
}

static void on_channel_close(struct amqp_source *source, const amqp_channel_close_t *close) {
  char text[512];
  amqp_channel_close_ok_t ok = {0};
  snprintf(text, sizeof text,
           "cannot read queue '%s' of vhost '%s': %u %.*s; declare the queue, or grant the right to it",
           source->options->queue, source->conn.target->vhost, close->reply_code, (int)close->reply_text.len,
           (const char *)close->reply_text.bytes);
  (void)amqp_conn_send_method(&source->conn, CHANNEL, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
  if (source->state == AMQP_SOURCE_CLOSING)
    return; /* both closed at once: the answer to ours is still to come */
  bool taken = is_taken(source, close);
  forget_channel(source);
  if (taken) { /* a moment ago nobody read it: somebody has just begun to, or it never gives itself to one alone */
    source->shareable = !source->shareable;
    source->retry_at_us = amqp_now_us() + turn_us(source);
  } else {
    try_again_later(source, text);
  }
}

/* The queue was deleted, or its node went away: the channel lives, the subscription does not. */
static void on_cancel(struct amqp_source *source) {
  char text[400];
  snprintf(text, sizeof text, "the broker cancelled the reading of queue '%s': it was deleted, or its node went away",
           source->options->queue);
  leave_channel(source, "cancelled");
  try_again_later(source, text);
}

/* ---- records -------------------------------------------------------------------------------------------------- */

static void offer(struct amqp_source *source) {
  struct duebox_record record = {
      .struct_size = sizeof record,
      .body = {.data = source->kept ? source->body : "", .len = source->kept},
      .full_len = source->full_len,
      .truncated = source->kept < source->full_len,
      .origin = source->origin,
      .correlation_id = source->correlation_id[0] ? source->correlation_id : NULL,
  };
  source->waiting = !source->host->result(source->host->ctx, &record, cookie_of(source, source->tag));
  if (!source->waiting) {
    source->tag = 0;
    source->read++;
  }
  amqp_conn_pause(&source->conn, source->waiting || source->closed);
}

static bool make_room(struct amqp_source *source, size_t size) {
  if (size <= source->capacity)
    return true;
  char *grown = realloc(source->body, size);
  if (!grown)
    return false;
  source->body = grown;
  source->capacity = size;
  return true;
}

static void on_deliver(struct amqp_source *source, const amqp_basic_deliver_t *deliver) {
  if (source->tag || !amqp_acks_add(&source->acks, deliver->delivery_tag, amqp_now_us())) {
    amqp_conn_fail(&source->conn, "the broker delivers out of order, or more than the prefetch allows");
    return;
  }
  source->tag = deliver->delivery_tag;
  source->has_header = false;
  snprintf(source->origin, sizeof source->origin, "%.255s#%llu", source->options->queue,
           (unsigned long long)deliver->delivery_tag);
}

/* One that is longer than any message id, or holds a NUL, answers no message of ours. */
static void keep_correlation(struct amqp_source *source, const amqp_basic_properties_t *properties) {
  source->correlation_id[0] = '\0';
  if (!properties || !(properties->_flags & AMQP_BASIC_CORRELATION_ID_FLAG) ||
      properties->correlation_id.len >= sizeof source->correlation_id ||
      memchr(properties->correlation_id.bytes, '\0', properties->correlation_id.len))
    return;
  memcpy(source->correlation_id, properties->correlation_id.bytes, properties->correlation_id.len);
  source->correlation_id[properties->correlation_id.len] = '\0';
}

static void on_header(struct amqp_source *source, uint64_t body_size, const amqp_basic_properties_t *properties) {
  size_t keep = body_size < source->max_record ? (size_t)body_size : source->max_record;
  if (!source->tag || source->has_header)
    return;
  if (!make_room(source, keep)) {
    amqp_conn_fail(&source->conn, "not enough memory for a result of %zu bytes; lower the limit of results", keep);
    return;
  }
  keep_correlation(source, properties);
  source->has_header = true;
  source->kept = 0;
  source->full_len = source->missing = (size_t)body_size;
  if (body_size == 0)
    offer(source);
}

static void on_body(struct amqp_source *source, amqp_bytes_t piece) {
  if (!source->has_header || piece.len > source->missing) {
    amqp_conn_fail(&source->conn, "the broker sent a body without a header, or longer than its header says");
    return;
  }
  size_t room = source->max_record - source->kept;
  size_t keep = piece.len < room ? piece.len : room;
  memcpy(source->body + source->kept, piece.bytes, keep);
  source->kept += keep;
  source->missing -= piece.len;
  if (source->missing == 0)
    offer(source);
}

/* Only a content header holds what a stranger wrote and the library takes apart. */
static bool on_unreadable(void *ctx) {
  struct amqp_source *source = ctx;
  if (!source->tag || source->has_header)
    return false;
  source->host->log(source->host->ctx, DUEBOX_LOG_ERROR, "AMQP-RECORD-UNREADABLE",
                    "queue '%s': the message of delivery tag %llu cannot be read and goes into quarantine without its "
                    "content: its properties and headers are malformed, or larger than frame_max, as "
                    "dead-lettering can make them",
                    source->options->queue, (unsigned long long)source->tag);
  source->state = AMQP_SOURCE_SETTLING;
  source->unreadable = source->tag;
  source->has_header = true;
  source->correlation_id[0] = '\0';
  source->kept = 0;
  source->full_len = source->max_record + 1;
  offer(source);
  return true;
}

/* ---- frames --------------------------------------------------------------------------------------------------- */

/* Each subscription makes room for more: one that nobody asked for is not to. */
static bool was_asked(struct amqp_source *source, enum amqp_source_state asked) {
  if (source->state == asked)
    return true;
  amqp_conn_fail(&source->conn, "the broker answered what it was not asked");
  return false;
}

static void on_method(struct amqp_source *source, const amqp_method_t *method) {
  switch (method->id) {
  case AMQP_CHANNEL_OPEN_OK_METHOD:
    if (was_asked(source, AMQP_SOURCE_OPENING))
      count_readers(source, AMQP_SOURCE_ASKING);
    break;
  case AMQP_QUEUE_DECLARE_OK_METHOD:
    on_readers(source, ((const amqp_queue_declare_ok_t *)method->decoded)->consumer_count);
    break;
  case AMQP_BASIC_QOS_OK_METHOD:
    if (was_asked(source, AMQP_SOURCE_LIMITING))
      subscribe(source);
    break;
  case AMQP_BASIC_CONSUME_OK_METHOD:
    if (was_asked(source, AMQP_SOURCE_SUBSCRIBING))
      begin_reading(source);
    break;
  case AMQP_BASIC_DELIVER_METHOD:
    on_deliver(source, method->decoded);
    break;
  case AMQP_BASIC_CANCEL_METHOD:
    on_cancel(source);
    break;
  default:
    break;
  }
}

static void on_frame(void *ctx, const amqp_frame_t *frame) {
  struct amqp_source *source = ctx;
  amqp_method_number_t id = frame->frame_type == AMQP_FRAME_METHOD ? frame->payload.method.id : 0;
  if (id == AMQP_CHANNEL_CLOSE_METHOD)
    on_channel_close(source, frame->payload.method.decoded);
  else if (id == AMQP_CHANNEL_CLOSE_OK_METHOD && source->state == AMQP_SOURCE_CLOSING)
    source->state = AMQP_SOURCE_CLOSED;
  else if (source->state == AMQP_SOURCE_CLOSING || source->state == AMQP_SOURCE_CLOSED)
    return; /* of a channel that is given up: the broker delivers it again */
  else if (id)
    on_method(source, &frame->payload.method);
  else if (frame->frame_type == AMQP_FRAME_HEADER)
    on_header(source, frame->payload.properties.body_size, frame->payload.properties.decoded);
  else if (frame->frame_type == AMQP_FRAME_BODY)
    on_body(source, frame->payload.body_fragment);
}

static void on_up(void *ctx) {
  struct amqp_source *source = ctx;
  if (!source->yielded)
    open_channel(source);
}

static void on_down(void *ctx, const char *reason) {
  (void)reason; /* the connection has told it */
  forget_channel(ctx);
}

static void on_blocked(void *ctx, bool blocked, const char *reason) {
  (void)ctx, (void)blocked, (void)reason; /* an alarm stops publishers, not consumers */
}

static const struct amqp_conn_user conn_user = {.channels = CHANNEL,
                                                .reads = true,
                                                .up = on_up,
                                                .down = on_down,
                                                .frame = on_frame,
                                                .unreadable = on_unreadable,
                                                .blocked = on_blocked};

/* ---- acknowledgements ----------------------------------------------------------------------------------------- */

void amqp_source_ack(struct amqp_source *source, uint64_t cookie, bool committed) {
  uint64_t tag = cookie & ((1ull << TAG_BITS) - 1);
  if (cookie_of(source, tag) != cookie) /* the channel is gone, and with it the duty */
    return;
  (void)amqp_acks_decide(&source->acks, tag, committed);
  if (tag == source->unreadable)
    source->unreadable = 0;
}

static void flush_acks(struct amqp_source *source) {
  struct amqp_ack_frame frame;
  while (amqp_conn_usable(&source->conn) &&
         (source->state == AMQP_SOURCE_READING || source->state == AMQP_SOURCE_SETTLING) &&
         amqp_acks_next(&source->acks, &frame)) {
    amqp_basic_ack_t ack = {.delivery_tag = frame.tag, .multiple = frame.multiple};
    amqp_basic_nack_t nack = {.delivery_tag = frame.tag, .requeue = 1};
    if (frame.requeue)
      (void)amqp_conn_send_method(&source->conn, CHANNEL, AMQP_BASIC_NACK_METHOD, &nack);
    else
      (void)amqp_conn_send_method(&source->conn, CHANNEL, AMQP_BASIC_ACK_METHOD, &ack);
  }
}

/* ---- the driver ----------------------------------------------------------------------------------------------- */

static int64_t next_deadline(const struct amqp_source *source) {
  switch (source->state) {
  case AMQP_SOURCE_READING:
  case AMQP_SOURCE_SETTLING:
    return INT64_MAX;
  case AMQP_SOURCE_CLOSED:
  case AMQP_SOURCE_STANDING_BY:
    return source->conn.state == AMQP_CONN_UP && !source->closed && !source->yielded ? source->retry_at_us : INT64_MAX;
  default:
    return source->answer_by_us;
  }
}

/* What is not acknowledged by then the broker delivers again. */
static void leave_when_settled(struct amqp_source *source) {
  if (source->closed || !amqp_conn_usable(&source->conn) || (source->unreadable && !source->yielded))
    return;
  source->depth = 1;
  unsubscribe(source); /* first: the next connection finds the queue free */
  amqp_conn_leave(&source->conn);
}

/* For how many another subscription is to take the place of the present one; 0 = none is to. */
static uint32_t want(struct amqp_source *source, int64_t now_us) {
  uint32_t most = (uint32_t)source->options->prefetch;
  uint32_t more = amqp_acks_want(&source->acks, now_us, STUCK_US);
  if (more || source->depth >= most || source->read < source->wanted)
    return more;
  source->depth = source->depth * 2 < most ? source->depth * 2 : most;
  return source->depth;
}

void amqp_source_poll(struct amqp_source *source, int timeout_ms) {
  flush_acks(source);
  if (source->state == AMQP_SOURCE_SETTLING)
    leave_when_settled(source);
  amqp_conn_poll(&source->conn, timeout_ms, next_deadline(source));
  if (!amqp_conn_usable(&source->conn) || source->state == AMQP_SOURCE_SETTLING)
    return;
  int64_t now = amqp_now_us();
  if (source->yielded && (source->state == AMQP_SOURCE_READING || source->state == AMQP_SOURCE_STANDING_BY))
    leave_channel(source, "results cannot be written");
  if (source->state == AMQP_SOURCE_CLOSED) {
    if (now >= source->retry_at_us && !source->closed && !source->yielded)
      open_channel(source);
  } else if (source->state == AMQP_SOURCE_STANDING_BY) {
    if (now >= source->retry_at_us && !source->closed)
      count_readers(source, AMQP_SOURCE_ASKING);
  } else if (source->state != AMQP_SOURCE_READING && now >= source->answer_by_us) {
    amqp_conn_fail(&source->conn, "the broker did not answer within connect_timeout");
  } else if (source->state == AMQP_SOURCE_READING && !source->waiting && !source->closed) {
    uint32_t more = want(source, now);
    if (more)
      limit_deliveries(source, more);
  }
}

/* The broker delivers what is not acknowledged again, to whoever reads next. */
void amqp_source_yield(struct amqp_source *source) { source->yielded = true; }

void amqp_source_resume(struct amqp_source *source) {
  source->yielded = false;
  if (source->waiting && !source->closed)
    offer(source);
}

void amqp_source_close(struct amqp_source *source) {
  source->closed = true;
  amqp_conn_pause(&source->conn, true);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

bool amqp_source_create(struct amqp_source *source, const struct duebox_instance_config *config,
                        const struct duebox_host *host, struct duebox_error *err) {
  struct amqp_target *target = amqp_target_new(config->options, config->name, err);
  if (!target || !amqp_conn_init(&source->conn, target, host, &conn_user, source, err))
    return false;
  source->host = host;
  source->options = config->source;
  source->max_record = (size_t)config->max_record;
  source->depth = (uint32_t)source->options->prefetch;
  source->backoff_us = BACKOFF_MIN_US;
  source->random = source->conn.random;
  return true;
}

void amqp_source_stop(struct amqp_source *source, int deadline_ms) {
  source->closed = true;
  flush_acks(source);
  amqp_conn_shutdown(&source->conn, amqp_now_us() + (int64_t)deadline_ms * 1000);
}

void amqp_source_destroy(struct amqp_source *source) {
  amqp_acks_free(&source->acks);
  free(source->body);
  source->body = NULL;
  amqp_conn_free(&source->conn);
}
