/* SPDX-License-Identifier: MIT */
#include "amqp_pub.h"

#include <stdio.h>
#include <string.h>

bool amqp_pub_init(struct amqp_pub *pub, struct amqp_conn *conn, amqp_channel_t number, uint32_t limit,
                   const struct amqp_pub_user *user, void *ctx) {
  *pub = (struct amqp_pub){.conn = conn, .number = number, .limit = limit, .user = user, .ctx = ctx};
  return amqp_window_init(&pub->window, limit);
}

void amqp_pub_free(struct amqp_pub *pub) { amqp_window_free(&pub->window); }

/* ---- the channel's life --------------------------------------------------------------------------------------- */

static void ask(struct amqp_pub *pub, enum amqp_pub_state state, amqp_method_number_t id, void *method) {
  pub->state = state;
  pub->answer_by_us = amqp_now_us() + pub->conn->target->connect_timeout_ms * 1000;
  (void)amqp_conn_send_method(pub->conn, pub->number, id, method); /* a failure is handled by the connection */
}

void amqp_pub_open(struct amqp_pub *pub) {
  amqp_channel_open_t open = {0};
  amqp_window_reset(&pub->window);
  pub->writing = NULL;
  pub->recalled_upto = 0;
  pub->returning = false;
  ask(pub, AMQP_PUB_OPENING, AMQP_CHANNEL_OPEN_METHOD, &open);
}

void amqp_pub_give_up(struct amqp_pub *pub) {
  amqp_channel_close_t close = {.reply_code = AMQP_REPLY_SUCCESS, .reply_text = amqp_cstring_bytes("no confirm")};
  ask(pub, AMQP_PUB_CLOSING, AMQP_CHANNEL_CLOSE_METHOD, &close);
}

void amqp_pub_lost(struct amqp_pub *pub) {
  amqp_window_reset(&pub->window);
  pub->writing = NULL;
  pub->recalled_upto = 0;
  pub->heard_us = 0;
  pub->state = AMQP_PUB_CLOSED;
}

/* ---- sending -------------------------------------------------------------------------------------------------- */

bool amqp_pub_can_take(const struct amqp_pub *pub) {
  return pub->state == AMQP_PUB_READY && !pub->writing && pub->window.count < pub->limit && amqp_conn_usable(pub->conn);
}

bool amqp_pub_waits(const struct amqp_pub *pub) {
  return pub->state == AMQP_PUB_OPENING || pub->state == AMQP_PUB_SELECTING || pub->state == AMQP_PUB_CLOSING;
}

static bool send_head(struct amqp_pub *pub, const struct amqp_message *message, const char *exchange,
                      const char *routing_key) {
  amqp_basic_publish_t publish = {
      .exchange = amqp_cstring_bytes(exchange), .routing_key = amqp_cstring_bytes(routing_key), .mandatory = 1};
  if (!amqp_conn_send_method(pub->conn, pub->number, AMQP_BASIC_PUBLISH_METHOD, &publish))
    return false;
  amqp_frame_t frame = {.frame_type = AMQP_FRAME_HEADER, .channel = pub->number};
  frame.payload.properties.class_id = AMQP_BASIC_CLASS;
  frame.payload.properties.body_size = pub->writing->payload.len;
  frame.payload.properties.decoded = (void *)&message->properties;
  return amqp_conn_send(pub->conn, &frame, message->head_size + AMQP_CONN_FRAME_OVERHEAD);
}

bool amqp_pub_publish(struct amqp_pub *pub, const struct amqp_message *message, const struct duebox_task *task,
                      const char *exchange, const char *routing_key, int64_t now_us) {
  size_t head = AMQP_CONN_METHOD_SIZE + message->head_size + AMQP_CONN_FRAME_OVERHEAD;
  size_t whole = head + task->payload.len + AMQP_CONN_FRAME_OVERHEAD, piece = amqp_conn_piece(pub->conn);
  size_t begin = whole < piece ? whole : head > piece ? head : piece; /* that leaves at once, not in pieces */
  if (!amqp_conn_has_room(pub->conn, begin))
    return false;
  amqp_window_add(&pub->window, task, now_us);
  pub->writing = task;
  pub->written = 0;
  if (send_head(pub, message, exchange, routing_key))
    amqp_pub_continue(pub, now_us);
  return true;
}

void amqp_pub_continue(struct amqp_pub *pub, int64_t now_us) {
  const struct duebox_task *task = pub->writing;
  if (!task || !amqp_conn_usable(pub->conn))
    return;
  size_t most = amqp_conn_piece(pub->conn) - AMQP_CONN_FRAME_OVERHEAD;
  while (pub->written < task->payload.len) {
    size_t left = task->payload.len - pub->written;
    size_t len = left < most ? left : most;
    if (!amqp_conn_has_room(pub->conn, len + AMQP_CONN_FRAME_OVERHEAD))
      return;
    amqp_frame_t frame = {.frame_type = AMQP_FRAME_BODY, .channel = pub->number};
    frame.payload.body_fragment = (amqp_bytes_t){.len = len, .bytes = (void *)(task->payload.data + pub->written)};
    pub->written += len;
    if (pub->written == task->payload.len)
      pub->writing = NULL; /* from here on the broker may have all of it */
    if (!amqp_conn_send(pub->conn, &frame, len + AMQP_CONN_FRAME_OVERHEAD))
      return;
    amqp_window_touch(&pub->window, now_us);
  }
  pub->writing = NULL;
}

void amqp_pub_recall(struct amqp_pub *pub) { pub->recalled_upto = pub->window.next - 1; }

/* ---- receiving ------------------------------------------------------------------------------------------------ */

/* The last tag of which the broker may have the whole message. */
static uint64_t last_sent(const struct amqp_pub *pub) { return pub->window.next - (pub->writing ? 2 : 1); }

static void on_confirm(struct amqp_pub *pub, uint64_t tag, bool multiple, enum amqp_event event) {
  if (pub->returning) { /* it may be for the message that comes back */
    amqp_conn_fail(pub->conn, "the broker began to return a message and did not say which: %s", pub->return_text);
    return;
  }
  if (multiple && tag == 0)
    tag = last_sent(pub); /* AMQP 0-9-1, basic.ack: zero stands for all so far */
  if (!amqp_window_knows(&pub->window, tag) || tag > last_sent(pub)) {
    amqp_conn_fail(pub->conn, "the broker confirmed message %llu of channel %u, which was never sent to its end",
                   (unsigned long long)tag, pub->number);
    return;
  }
  pub->heard_us = amqp_now_us();
  const struct duebox_task *task;
  if (!multiple) {
    task = amqp_window_take(&pub->window, tag);
    if (task)
      pub->user->decided(pub->ctx, pub, task, event, 0, NULL);
    return;
  }
  while ((task = amqp_window_take_upto(&pub->window, tag)) != NULL)
    pub->user->decided(pub->ctx, pub, task, event, 0, NULL);
}

static void on_return(struct amqp_pub *pub, const amqp_basic_return_t *method) {
  pub->returning = true;
  pub->return_code = method->reply_code;
  snprintf(pub->return_text, sizeof pub->return_text, "%u %.*s, exchange '%.*s', routing key '%.*s'",
           method->reply_code, (int)method->reply_text.len, (const char *)method->reply_text.bytes,
           (int)method->exchange.len, (const char *)method->exchange.bytes, (int)method->routing_key.len,
           (const char *)method->routing_key.bytes);
}

/* The content header of a returned message names it. Its body follows and is of no use. */
static void on_returned_header(struct amqp_pub *pub, const amqp_basic_properties_t *properties) {
  const struct duebox_task *task = NULL;
  if (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
    task = amqp_window_take_returned(&pub->window, last_sent(pub), properties->message_id.bytes,
                                     properties->message_id.len);
  pub->returning = false;
  pub->heard_us = amqp_now_us();
  if (task)
    pub->user->decided(pub->ctx, pub, task, AMQP_EVENT_RETURN, pub->return_code, pub->return_text);
  else /* its ack would be taken for a delivery */
    amqp_conn_fail(pub->conn, "the broker returned a message that is not open here: %s", pub->return_text);
}

static void on_close(struct amqp_pub *pub, const amqp_channel_close_t *close) {
  char text[300];
  amqp_channel_close_ok_t ok = {0};
  enum amqp_pub_state before = pub->state;
  snprintf(text, sizeof text, "%u %.*s", close->reply_code, (int)close->reply_text.len,
           (const char *)close->reply_text.bytes);
  (void)amqp_conn_send_method(pub->conn, pub->number, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
  if (before == AMQP_PUB_CLOSING)
    return; /* both closed at once: its close-ok to ours is still to come */
  pub->state = AMQP_PUB_CLOSED;
  if (before == AMQP_PUB_READY)
    pub->user->closed(pub->ctx, pub, close->reply_code, text);
  else /* opening it again at once would go round and round */
    amqp_conn_fail(pub->conn, "the broker refused a channel with confirms: %s", text);
}

/* Before confirm.select is answered nothing may be published: it would have no tag. */
static bool was_asked(struct amqp_pub *pub, enum amqp_pub_state asked) {
  if (pub->state == asked)
    return true;
  amqp_conn_fail(pub->conn, "the broker answered on channel %u what it was not asked", pub->number);
  return false;
}

static void on_method(struct amqp_pub *pub, const amqp_method_t *method) {
  amqp_confirm_select_t select = {0};
  const amqp_basic_ack_t *ack = method->decoded;
  const amqp_basic_nack_t *nack = method->decoded;
  switch (method->id) {
  case AMQP_CHANNEL_OPEN_OK_METHOD:
    if (was_asked(pub, AMQP_PUB_OPENING))
      ask(pub, AMQP_PUB_SELECTING, AMQP_CONFIRM_SELECT_METHOD, &select);
    break;
  case AMQP_CONFIRM_SELECT_OK_METHOD:
    if (!was_asked(pub, AMQP_PUB_SELECTING))
      break;
    pub->state = AMQP_PUB_READY;
    pub->heard_us = amqp_now_us();
    pub->user->ready(pub->ctx, pub);
    break;
  case AMQP_BASIC_ACK_METHOD:
    on_confirm(pub, ack->delivery_tag, ack->multiple, AMQP_EVENT_ACK);
    break;
  case AMQP_BASIC_NACK_METHOD:
    on_confirm(pub, nack->delivery_tag, nack->multiple, AMQP_EVENT_NACK);
    break;
  case AMQP_BASIC_RETURN_METHOD:
    on_return(pub, method->decoded);
    break;
  default:
    break;
  }
}

void amqp_pub_frame(struct amqp_pub *pub, const amqp_frame_t *frame) {
  bool is_method = frame->frame_type == AMQP_FRAME_METHOD;
  if (is_method && frame->payload.method.id == AMQP_CHANNEL_CLOSE_METHOD)
    on_close(pub, frame->payload.method.decoded);
  else if (pub->state == AMQP_PUB_CLOSING && is_method && frame->payload.method.id == AMQP_CHANNEL_CLOSE_OK_METHOD)
    amqp_pub_open(pub);
  else if (pub->state == AMQP_PUB_CLOSING || pub->state == AMQP_PUB_CLOSED)
    return; /* of a generation that is given up already */
  else if (is_method)
    on_method(pub, &frame->payload.method);
  else if (frame->frame_type == AMQP_FRAME_HEADER && pub->returning)
    on_returned_header(pub, frame->payload.properties.decoded);
}
