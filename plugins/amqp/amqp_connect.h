/* SPDX-License-Identifier: MIT
 *
 * amqp_connect.h - one attempt to connect and log in, on a thread of its own.
 *
 * Name resolution, TCP, TLS and the AMQP handshake of rabbitmq-c block, the first without any limit; poll() of a plugin
 * may not. So a short-lived thread does them and hands over a connection that is logged in, or a text. The driver never
 * waits for it: an attempt that is no longer wanted is abandoned and cleans up after itself when its time-outs end it.
 *
 * Locks: one mutex per attempt, held for a few instructions. The thread touches nothing of the instance but the
 * eventfd, and that only under the mutex and only while it is not abandoned.
 */
#ifndef AMQP_CONNECT_H
#define AMQP_CONNECT_H

#include <stdbool.h>
#include <stddef.h>

#include "amqp_target.h"
#include "amqp_vendor.h"

struct amqp_connect;

/* Starts an attempt, which writes to wake_fd when it ends; NULL when no thread could be started. */
struct amqp_connect *amqp_connect_start(struct amqp_target *target, int wake_fd);

/* Whether it has ended. */
bool amqp_connect_ended(struct amqp_connect *attempt);

/* Why an attempt has failed. */
struct amqp_connect_failure {
  char text[512];
  bool refused; /* the broker has answered and does not let us in: user, password, vhost, rights, a limit */
};

/* Takes the result of an attempt that has ended, and frees it. NULL with `failure` when it failed. */
amqp_connection_state_t amqp_connect_finish(struct amqp_connect *attempt, struct amqp_connect_failure *failure);

/* Gives up an attempt in any state; never blocks. */
void amqp_connect_abandon(struct amqp_connect *attempt);

#endif
