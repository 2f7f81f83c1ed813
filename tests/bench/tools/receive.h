/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/receive.h - what the three ways of receiving have in common.
 *
 * receive.c owns the book and says when it is over; a way of receiving only fetches messages and calls receive_one().
 * Everything runs on the main thread but the watch of standard input, which sets `over`.
 */
#ifndef TESTS_BENCH_RECEIVE_H
#define TESTS_BENCH_RECEIVE_H

#include <stdatomic.h>

#include "book.h"

enum { RECEIVE_POLL_MS = 20, RECEIVE_IDLE_MS = 100 };

struct receiver {
  const char *where; /* brokers, amqp:// URL or port */
  const char *what;  /* topic or queue */
  bool from_beginning, times;
  const char *answer; /* topic for result records, NULL = no answers */
  struct book book;
  int64_t last_us;  /* the latest copy */
  atomic_bool over; /* standard input has ended */
};

/* Says on standard output that whatever is sent from now on will be received. */
void receive_ready(void);

/* Notes one copy. */
void receive_one(struct receiver *receiver, const char *payload, size_t len, int64_t due_us);

/* False when it is over and nothing has come for RECEIVE_IDLE_MS: copies too many may follow the last expected task. */
bool receive_goes_on(const struct receiver *receiver);

/* Receive while it goes on; end the process with a text on a fault. */
void receive_kafka(struct receiver *receiver);
void receive_amqp(struct receiver *receiver);
void receive_http(struct receiver *receiver);

_Noreturn void receive_fail(const char *what, const char *why);

#endif
