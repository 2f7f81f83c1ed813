/* SPDX-License-Identifier: MIT
 *
 * tests/contract/amqp_broker.h - a real AMQP broker as the tests of the amqp plugin see it: its own connection beside
 * the plugin's, to declare, to publish and to look at what has arrived, and a relay in front of the plugin's.
 *
 * The broker is the one that DUEBOX_TEST_AMQP_URL names; amqp_broker_url() is NULL without it, and the test skips.
 */
#ifndef TESTS_CONTRACT_AMQP_BROKER_H
#define TESTS_CONTRACT_AMQP_BROKER_H

#include "plugins/amqp/amqp_options.h"
#include "tests/contract/sink_contract.h"
#include "tests/support/tcp_relay.h"

struct amqp_broker;

const char *amqp_broker_url(void);

/* Has whoever runs this test do something to the broker: "alarm on", "alarm off", "restart", "close connections". The
 * word goes to stdout behind an @, the answer comes on stdin when it is done. Possible only where
 * DUEBOX_TEST_AMQP_CONTROL is set. */
bool amqp_broker_can_ask(void);
void amqp_broker_ask(struct amqp_broker *broker, const char *what);

/* Skips the running test, saying so, where nobody can be asked. */
void amqp_broker_skip_without_control(void);
/* For main() where there is no broker: a group of one skipped test; returns what cmocka returns. */
int amqp_broker_skip_all(const char *group);
/* Set-up and tear-down of a cmocka test whose state is a struct amqp_broker. */
int amqp_broker_set_up(void **state);
int amqp_broker_tear_down(void **state);

/* Connects, declares a queue of its own, starts the relay; fails the test when it cannot. */
struct amqp_broker *amqp_broker_open(void);
/* Deletes the queue and disconnects. */
void amqp_broker_close(struct amqp_broker *broker);

const char *amqp_broker_queue(const struct amqp_broker *broker);
/* The url of the broker itself, without the relay, and with another user or password if they are not NULL. */
const char *amqp_broker_direct_url(struct amqp_broker *broker, const char *user, const char *password);
struct tcp_relay *amqp_broker_relay(const struct amqp_broker *broker);

/* Options of an instance that goes through the relay, of a route to the queue, and of a result source on it. */
struct amqp_options *amqp_broker_options(struct amqp_broker *broker);
struct amqp_route *amqp_broker_route(struct amqp_broker *broker);
struct amqp_source_options *amqp_broker_source(struct amqp_broker *broker);

/* Declares the queue with limits (0 = none): "max-length" with overflow "reject-publish". */
void amqp_broker_declare(struct amqp_broker *broker, const char *queue, int max_length);
/* The same, as a quorum queue or with a single active consumer. */
void amqp_broker_declare_kind(struct amqp_broker *broker, const char *queue, bool quorum, bool single);
void amqp_broker_delete(struct amqp_broker *broker, const char *queue);
void amqp_broker_declare_exchange(struct amqp_broker *broker, const char *exchange);
void amqp_broker_bind(struct amqp_broker *broker, const char *queue, const char *exchange, const char *routing_key);
void amqp_broker_delete_exchange(struct amqp_broker *broker, const char *exchange);

/* Publishes one persistent message to the queue and waits for the confirm. */
void amqp_broker_publish(struct amqp_broker *broker, const char *body, size_t len);

/* Publishes one with as many headers as fit into a frame, to a queue that gives it to the broker's queue as a dead
 * letter: RabbitMQ adds to the headers, and delivers a frame that is larger than it may be. */
void amqp_broker_publish_dead(struct amqp_broker *broker, const char *body);

/* Everything that has arrived in the queue so far, in order. The messages are taken out of it. */
const struct contract_message *amqp_broker_received(struct amqp_broker *broker, size_t *count);
/* Properties of a received message as text: message_id, correlation_id, reply_to, content_type, app_id, delivery_mode,
 * priority, timestamp. NULL when it has none of this name. */
const char *amqp_broker_property(struct amqp_broker *broker, size_t index, const char *name);
/* How many messages are ready in a queue. */
unsigned amqp_broker_depth(struct amqp_broker *broker, const char *queue);

#endif
