/* SPDX-License-Identifier: MIT
 *
 * amqp_watch.h - bounds, from outside, how long and how much blocking calls into rabbitmq-c read.
 *
 * The library looks at its time-outs only when the socket has nothing to read, and keeps each frame of a channel other
 * than the one whose answer it awaits. So whoever answers on the broker's port could hold a thread for ever and fill
 * the memory, before any password counts. A thread of the watch polls clock and socket, and shuts the connection down:
 * the call then ends as after any loss of the connection.
 *
 * The watch has a descriptor of the socket for itself, so the library may close its own at any time.
 */
#ifndef AMQP_WATCH_H
#define AMQP_WATCH_H

#include <stdint.h>

struct amqp_watch;

/* What a broker may send for a login, TLS included; a real one sends some thousand bytes. */
enum { AMQP_WATCH_LOGIN_KIB = 1024 };

/* NULL: no memory, or no thread could be started. */
struct amqp_watch *amqp_watch_start(void);

/* From now on the connection is shut down at end_us (amqp_now_us()), and when `bytes` more have come. Takes the place
 * of an earlier call. */
void amqp_watch_limit(struct amqp_watch *watch, int fd, int64_t end_us, uint64_t bytes);

/* Ends and frees it, or NULL. Says why the connection was shut down; NULL = it was not. */
const char *amqp_watch_stop(struct amqp_watch *watch);

#endif
