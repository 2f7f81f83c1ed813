/* SPDX-License-Identifier: MIT
 *
 * tests/support/amqp_script.h - an AMQP broker that does what a test tells it, also what no real broker would do.
 *
 * It answers the handshake, channel.open, confirm.select, queue.declare, basic.qos, basic.consume and the closing
 * methods by itself,
 * and notes what is published. Confirms, returns, deliveries, errors and plain garbage are sent by the test.
 *
 * It serves any number of connections at once, each on a thread of its own, and numbers them from 1 on as they come.
 * What a test says goes to the newest one, unless it turns to another. Every function may be called from any thread.
 */
#ifndef TESTS_SUPPORT_AMQP_SCRIPT_H
#define TESTS_SUPPORT_AMQP_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct amqp_script;

/* What it leaves out or refuses, from the next frame on. */
enum amqp_script_mood {
  AMQP_SCRIPT_NORMAL = 0,
  AMQP_SCRIPT_HANG_UP,        /* closes connections as they come */
  AMQP_SCRIPT_NO_START,       /* takes connections and says nothing */
  AMQP_SCRIPT_NO_LOGIN,       /* lets nobody in */
  AMQP_SCRIPT_NO_CHANNEL,     /* does not answer channel.open */
  AMQP_SCRIPT_ONE_CHANNEL,    /* allows no more than one */
  AMQP_SCRIPT_REFUSE_CHANNEL, /* closes a channel when confirm.select comes */
  AMQP_SCRIPT_CROSS_CLOSE,    /* answers channel.close with a channel.close of its own, then with close-ok */
  AMQP_SCRIPT_NO_READ,        /* reads nothing */
  /* From then on until the connection ends, and reads nothing any more: */
  AMQP_SCRIPT_FLOOD_HELLO,      /* in answer to the first bytes: HelloRequests of TLS, which OpenSSL skips */
  AMQP_SCRIPT_FLOOD_HEARTBEATS, /* after connection.start */
  AMQP_SCRIPT_FLOOD_OPEN,       /* frames of channel 1 in answer to connection.open */
  AMQP_SCRIPT_FLOOD_CHANNEL,    /* frames of channel 7 in answer to channel.open */
};

struct amqp_script_message {
  unsigned connection;
  uint16_t channel;
  uint64_t tag; /* counted as a broker does */
  char id[64];
  size_t len; /* of the body, as announced */
};

/* Listens on a free port of 127.0.0.1; fails the test when it cannot. */
struct amqp_script *amqp_script_start(void);
void amqp_script_stop(struct amqp_script *script);
int amqp_script_port(const struct amqp_script *script);

void amqp_script_set_mood(struct amqp_script *script, enum amqp_script_mood mood); /* for all, and all to come */
/* The same for one connection, which may still have to come: the next one is amqp_script_connections() + 1. */
void amqp_script_set_mood_of(struct amqp_script *script, unsigned connection, enum amqp_script_mood mood);
/* Whom the test means from now on when it says or drops something; 0, as at first: the newest one. */
void amqp_script_turn_to(struct amqp_script *script, unsigned connection);
void amqp_script_set_channels(struct amqp_script *script, uint16_t most); /* that it permits from the next login on */
void amqp_script_drop(struct amqp_script *script);                        /* closes the connection without a word */
unsigned amqp_script_connections(struct amqp_script *script);             /* so far */
unsigned amqp_script_open(struct amqp_script *script);                    /* of them, now */
uint64_t amqp_script_flooded(struct amqp_script *script);   /* most bytes of a flood that a connection took */
unsigned amqp_script_consumers(struct amqp_script *script); /* basic.consume so far */

unsigned amqp_script_cancels(struct amqp_script *script);  /* basic.cancel so far */
unsigned amqp_script_asked(struct amqp_script *script);    /* queue.declare so far */
unsigned amqp_script_prefetch(struct amqp_script *script); /* by the last basic.qos */
bool amqp_script_exclusive(struct amqp_script *script);    /* whether the last basic.consume asked for that */
/* How many consumers its queue has, as it answers to queue.declare; two from the next basic.consume on; and that it
 * lets nobody read alone. */
void amqp_script_set_readers(struct amqp_script *script, unsigned readers);
void amqp_script_bring_rival(struct amqp_script *script);
void amqp_script_refuse_exclusive(struct amqp_script *script);

unsigned amqp_script_begun(struct amqp_script *script); /* basic.publish so far */
/* Messages that have come with their whole body, so far, over all connections. */
size_t amqp_script_published(struct amqp_script *script);
struct amqp_script_message amqp_script_message(struct amqp_script *script, size_t index);

unsigned amqp_script_goodbyes(struct amqp_script *script); /* connection.close so far */

/* How many deliveries were acknowledged or refused so far: every frame counts once. */
unsigned amqp_script_acks(struct amqp_script *script);
unsigned amqp_script_nacks(struct amqp_script *script);

/* Sends one method (numbers and structs as in amqp_framing.h), content header, body frame, or bytes as they are. */
void amqp_script_method(struct amqp_script *script, uint16_t channel, uint32_t number, void *method);
void amqp_script_header(struct amqp_script *script, uint16_t channel, const char *message_id, uint64_t body_size);
void amqp_script_body(struct amqp_script *script, uint16_t channel, const char *data, size_t len);
void amqp_script_bytes(struct amqp_script *script, const void *data, size_t len);

void amqp_script_ack(struct amqp_script *script, uint16_t channel, uint64_t tag, bool multiple);
void amqp_script_nack(struct amqp_script *script, uint16_t channel, uint64_t tag, bool multiple);
void amqp_script_return(struct amqp_script *script, uint16_t channel, const char *message_id);
void amqp_script_close_channel(struct amqp_script *script, uint16_t channel, uint16_t code, const char *text);
void amqp_script_deliver(struct amqp_script *script, uint16_t channel, uint64_t tag);

#endif
