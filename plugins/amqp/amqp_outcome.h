/* SPDX-License-Identifier: MIT
 *
 * amqp_outcome.h - what an event of the protocol means for a task, as rows of data.
 *
 * The one question behind each row: may the broker have queued the message? Where it may, the class is UNKNOWN. Where
 * it certainly has not, the class says whose fault it was: the message (REJECTED), its routing key (UNAVAILABLE,
 * scope TARGET), the route (scope ROUTE), the broker (UNAVAILABLE, scope INSTANCE) or the moment (RETRY). What may have
 * been queued and only shared a channel with the message that broke it, or its way with one that is refused now, is
 * blameless. Reply codes: AMQP 0-9-1, section 1.2.
 */
#ifndef AMQP_OUTCOME_H
#define AMQP_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>

#include <duebox/outcome.h>

enum amqp_event {
  AMQP_EVENT_ACK = 1,     /* basic.ack, and no basic.return before it */
  AMQP_EVENT_NACK,        /* basic.nack */
  AMQP_EVENT_RETURN,      /* basic.return, with its reply code */
  AMQP_EVENT_REFUSED,     /* the channel was closed, with this reply code, while only this message was open on it */
  AMQP_EVENT_KEY_REFUSED, /* the same, over a right that is missing for its routing key only */
  AMQP_EVENT_UNDECIDED,   /* refused or returned when it was sent alone, after something broke under it: which copy? */
  AMQP_EVENT_UNTRIED,     /* open when a channel broke; not sent alone, for others of its route get no confirm */
  AMQP_EVENT_NO_CONFIRM,  /* nothing came within confirm_timeout */
  AMQP_EVENT_LOST,        /* the connection ended after the message was sent */
  AMQP_EVENT_NOT_SENT,    /* the connection ended, or was blocked, before the whole message was sent */
  AMQP_EVENT_RECALLED,    /* the host took it back before any of it was sent */
  AMQP_EVENT_UNREPEATED,  /* the host took it back, after something broke under it and before it was sent alone */
  AMQP_EVENT_ENDS_CONNECTION, /* the broker ended a connection twice on which there was this message alone */
  AMQP_EVENT_HELD_UP,         /* not sent: its route has ended a connection lately, and waits for one of its own */
  AMQP_EVENT_STOPPED,         /* sent, and the plugin was stopped before the confirm came */
  AMQP_EVENT_INVALID,         /* the message does not fit the protocol; code is an enum amqp_invalid */
  AMQP_EVENT_NO_MEMORY,       /* this process could not build the message */
};

/* Why a message cannot be put into AMQP at all. */
enum amqp_invalid {
  AMQP_INVALID_ROUTING_KEY = 1, /* longer than 255 bytes (shortstr) */
  AMQP_INVALID_KEY_NUL,         /* of a task_key with a NUL: cut there, it would be another's key */
  AMQP_INVALID_KEY_REPLY,       /* of somebody's direct reply-to, which is no queue */
  AMQP_INVALID_MESSAGE_ID,      /* longer than 255 bytes */
  AMQP_INVALID_REPLY_TO,        /* longer than 255 bytes */
  AMQP_INVALID_HEADER_NAME,     /* a name longer than 255 bytes */
  AMQP_INVALID_HEADERS_SIZE,    /* all together do not fit into one frame */
  AMQP_INVALID_CC,              /* a header named CC or BCC: it must be a list there, and here it is a text */
};

struct amqp_outcome_row {
  enum amqp_event event;
  int code; /* 0 = every other code of this event */
  enum duebox_outcome_class cls;
  enum duebox_scope scope;
  bool blameless;
  const char *error_class;
  const char *text; /* what happened and what to do, for people */
};

/* What the close of a channel says about the only message that was open on it. */
enum amqp_event amqp_outcome_refusal(int code, const char *text);

/* The same event for a message of which a copy had left before: that this one was not taken does not say that nothing
 * was sent. */
enum amqp_event amqp_outcome_of_copy(enum amqp_event event, int code);

/* Whether the reply code with which a broker has ended a connection is about something that was sent on it; 0 = it said
 * none. The operator's ends are not: a restart, rabbitmqctl close_connection. */
bool amqp_outcome_names_message(int code);

/* The row for an event; never NULL. */
const struct amqp_outcome_row *amqp_outcome_find(enum amqp_event event, int code);

/* The whole table, for tests and documentation. */
const struct amqp_outcome_row *amqp_outcome_rows(size_t *count);

#endif
