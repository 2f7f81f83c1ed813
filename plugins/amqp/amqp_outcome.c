/* SPDX-License-Identifier: MIT */
#include "amqp_outcome.h"

#include <string.h>

#include "amqp_vendor.h"

#define ROUTE DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_ROUTE, false
#define TARGET DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_TARGET, false
#define INSTANCE DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_INSTANCE, false
#define BLAMELESS DUEBOX_UNKNOWN, DUEBOX_SCOPE_ROUTE, true
#define CLASS(c) DUEBOX_##c, DUEBOX_SCOPE_ROUTE, false

/* First match wins; a row with code 0 ends the rows of its event. */
static const struct amqp_outcome_row rows[] = {
    {AMQP_EVENT_ACK, 0, CLASS(DELIVERED), NULL, NULL},

    /* A nack is not only an internal error: a full queue with x-overflow reject-publish says it too. Other queues that
     * the message was routed to may have it. */
    {AMQP_EVENT_NACK, 0, DUEBOX_RETRY, DUEBOX_SCOPE_TARGET, false, "amqp.nack",
     "the broker refused the message (nack): the queue is full with overflow reject-publish, or the broker failed"},

    {AMQP_EVENT_RETURN, AMQP_NO_ROUTE, TARGET, "amqp.no_route",
     "no queue takes it: declare the queue, or bind one to the exchange for this routing key"},
    {AMQP_EVENT_RETURN, AMQP_NO_CONSUMERS, TARGET, "amqp.no_consumers", "the queue has no consumer"},
    {AMQP_EVENT_RETURN, 0, TARGET, "amqp.returned", "the broker returned the message"},

    {AMQP_EVENT_REFUSED, AMQP_CONTENT_TOO_LARGE, CLASS(REJECTED), "amqp.content_too_large",
     "larger than the broker takes: raise max_message_size there, or send less"},
    {AMQP_EVENT_REFUSED, AMQP_PRECONDITION_FAILED, CLASS(REJECTED), "amqp.precondition_failed",
     "the broker does not take this message: look at its size and headers"},
    {AMQP_EVENT_REFUSED, AMQP_ACCESS_REFUSED, ROUTE, "amqp.access_refused",
     "grant the user of this connection the write permission on the exchange"},
    {AMQP_EVENT_REFUSED, AMQP_NOT_FOUND, ROUTE, "amqp.not_found", "declare the exchange, or correct the route"},
    {AMQP_EVENT_REFUSED, AMQP_RESOURCE_LOCKED, ROUTE, "amqp.resource_locked",
     "another connection has the exchange or queue for itself alone"},
    {AMQP_EVENT_REFUSED, 0, CLASS(UNKNOWN), "amqp.channel_closed", "the broker closed the channel"},

    {AMQP_EVENT_KEY_REFUSED, 0, TARGET, "amqp.access_refused",
     "grant the user of this connection the topic permission for this routing key (rabbitmqctl set_topic_permissions)"},

    {AMQP_EVENT_UNDECIDED, 0, BLAMELESS, "amqp.channel_closed",
     "the broker refuses it now; a copy that left before may have got through"},
    {AMQP_EVENT_UNTRIED, 0, BLAMELESS, "amqp.channel_closed",
     "another message broke the channel under it, and its route gets no confirms now; it may have got through"},
    {AMQP_EVENT_NO_CONFIRM, 0, CLASS(UNKNOWN), "amqp.confirm_timeout",
     "no confirm came within confirm_timeout: look for a slow disk or a queue without a leader"},
    {AMQP_EVENT_LOST, 0, CLASS(UNKNOWN), "amqp.connection_lost", "the connection ended before the confirm came"},
    {AMQP_EVENT_NOT_SENT, 0, INSTANCE, "amqp.not_sent", "the broker could not take it"},
    {AMQP_EVENT_RECALLED, 0, INSTANCE, "amqp.recalled", "taken back before it was sent"},
    {AMQP_EVENT_UNREPEATED, 0, BLAMELESS, "amqp.recalled",
     "another message broke the channel or the connection under it, and it was taken back before it was sent again; it "
     "may have got through"},
    {AMQP_EVENT_ENDS_CONNECTION, 0, CLASS(REJECTED), "amqp.connection_closed",
     "RabbitMQ ends the connection over this message: look at its routing key and headers, and into the broker's log"},
    {AMQP_EVENT_HELD_UP, 0, ROUTE, "amqp.apart",
     "a message of this route ended the connection lately; the route goes over another one, which is not up or busy"},
    {AMQP_EVENT_STOPPED, 0, CLASS(UNKNOWN), "amqp.stopped", "stopped before the confirm came"},

    {AMQP_EVENT_INVALID, AMQP_INVALID_ROUTING_KEY, CLASS(REJECTED), "amqp.routing_key_too_long",
     "AMQP takes a routing key of at most 255 bytes"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_KEY_NUL, CLASS(REJECTED), "amqp.routing_key_nul",
     "its task_key has a NUL, and no queue or binding has a name with one: correct the row"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_KEY_REPLY, CLASS(REJECTED), "amqp.routing_key_reserved",
     "the routing key begins with amq.rabbitmq.reply-to, which RabbitMQ keeps for direct replies: it is no queue"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_MESSAGE_ID, CLASS(REJECTED), "amqp.message_id_too_long",
     "AMQP takes a message_id of at most 255 bytes"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_REPLY_TO, CLASS(REJECTED), "amqp.reply_to_too_long",
     "AMQP takes a reply_to of at most 255 bytes"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_HEADER_NAME, CLASS(REJECTED), "amqp.header_name_too_long",
     "AMQP takes a header name of at most 255 bytes"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_HEADERS_SIZE, CLASS(REJECTED), "amqp.headers_too_large",
     "headers and properties together must fit into one frame, 128 KiB unless frame_max or the broker says less: send "
     "less"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_CC, CLASS(REJECTED), "amqp.header_reserved",
     "the headers CC and BCC are lists of more routing keys to RabbitMQ, which closes the channel over a text: give "
     "the "
     "header another name"},
    {AMQP_EVENT_INVALID, 0, CLASS(REJECTED), "amqp.invalid", "AMQP cannot carry this message"},

    {AMQP_EVENT_NO_MEMORY, 0, CLASS(RETRY), "amqp.no_memory", "not enough memory to build the message"},
};

static const size_t row_count = sizeof rows / sizeof rows[0];

/* RabbitMQ has one code for the right to write to an exchange and for that to a routing key of it, and two texts. */
enum amqp_event amqp_outcome_refusal(int code, const char *text) {
  bool of_key = code == AMQP_ACCESS_REFUSED && strstr(text, "access to topic '");
  return of_key ? AMQP_EVENT_KEY_REFUSED : AMQP_EVENT_REFUSED;
}

enum amqp_event amqp_outcome_of_copy(enum amqp_event event, int code) {
  return amqp_outcome_find(event, code)->cls == DUEBOX_UNAVAILABLE ? AMQP_EVENT_UNDECIDED : event;
}

bool amqp_outcome_names_message(int code) {
  return code != 0 && code != AMQP_REPLY_SUCCESS && code != AMQP_CONNECTION_FORCED;
}

const struct amqp_outcome_row *amqp_outcome_rows(size_t *count) {
  *count = row_count;
  return rows;
}

const struct amqp_outcome_row *amqp_outcome_find(enum amqp_event event, int code) {
  static const struct amqp_outcome_row unlisted = {0, 0, CLASS(UNKNOWN), "amqp.unlisted", "an event without a row"};
  for (size_t i = 0; i < row_count; i++) {
    if (rows[i].event == event && (rows[i].code == code || rows[i].code == 0))
      return &rows[i];
  }
  return &unlisted;
}
