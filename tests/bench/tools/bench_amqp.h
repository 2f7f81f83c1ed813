/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/bench_amqp.h - a connection to the broker with one open channel, for receive and raw_loop. A fault
 * ends the process.
 */
#ifndef TESTS_BENCH_BENCH_AMQP_H
#define TESTS_BENCH_BENCH_AMQP_H

#include <stdbool.h>

#include "plugins/amqp/amqp_vendor.h"

enum { BENCH_AMQP_CHANNEL = 1, BENCH_AMQP_FRAME_MAX = 131072 };

/* @param url  amqp://user:password@host:port/vhost
 * @param who  the program, for its error texts */
amqp_connection_state_t bench_amqp_connect(const char *url, const char *who);

/* Whether nothing came in time. */
bool bench_amqp_timed_out(const amqp_rpc_reply_t *reply);

/* Ends the process unless the reply is a normal one. */
void bench_amqp_check(const char *what, amqp_rpc_reply_t reply);

#endif
