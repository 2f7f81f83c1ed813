/* SPDX-License-Identifier: MIT
 *
 * http_turns.h - whose turn it is to begin a request, and to open a connection.
 *
 * A request on a kept connection costs the driver thread some hundredths of a millisecond. One that needs a new
 * connection costs much more, over TLS some tenths of a millisecond before the endpoint has said anything and a
 * millisecond where it answers: hundreds at once would hold up all routes of the instance. So transfers wait in lines,
 * one for each route. Routes take turns, and in one turn of the driver few requests begin, and fewer connections are
 * opened. Nobody knows whether a request needs a new one until libcurl asks for its socket; one that needs it and finds
 * none left comes back, and the others of its line wait with it until it has got one in a later turn, or until a
 * request of their route has ended, whose connection one of them can use.
 *
 * Pure. Driver thread, no locks.
 */
#ifndef PLUGINS_HTTP_TURNS_H
#define PLUGINS_HTTP_TURNS_H

#include <stdbool.h>
#include <stddef.h>

struct http_transfer;

/* In one turn of the driver: requests that begin, and connections that are opened. */
enum { HTTP_TURN_BEGINS = 64, HTTP_TURN_OPENS = 8 };

struct http_queue {
  struct http_transfer *first, *last;
};

/* Who of a line goes first. Those that have begun before, and whose endpoint processed nothing, go before those that
 * have not: beginnings of an attempt are numbered, and an endpoint that takes few requests on a connection would
 * otherwise take all from others. */
enum http_place { HTTP_OPENS /* needs a new connection */, HTTP_AGAIN, HTTP_FIRST, HTTP_PLACES };

/* Transfers of one route. */
struct http_line {
  const void *route;
  struct http_queue queues[HTTP_PLACES];
  size_t kept; /* connections that may have become free: so many may try whether they need a new one */
  struct http_line *next;
};

struct http_turns {
  struct http_line *all;            /* as many as there are transfers */
  struct http_line *first, *last;   /* lines in which somebody waits; the first has its turn */
  struct http_line *free;           /* list */
  unsigned begins_left, opens_left; /* of this turn */
};

/* For so many transfers. False: memory is short; http_turns_free() still works. */
__attribute__((warn_unused_result)) bool http_turns_init(struct http_turns *turns, size_t transfers);
void http_turns_free(struct http_turns *turns);

/* A transfer that has a task waits for its turn; where transfer->opens, for one to open a connection. */
void http_turns_put(struct http_turns *turns, struct http_transfer *transfer);

/* A request of that route has ended, and its connection may be kept. */
void http_turns_kept(struct http_turns *turns, const void *route);

/* Whether nobody waits. */
__attribute__((warn_unused_result)) bool http_turns_empty(const struct http_turns *turns);

/* A turn of the driver begins. */
void http_turns_next(struct http_turns *turns);

/* Who begins now; NULL: nobody more in this turn. Somebody does in every turn if anybody waits. */
__attribute__((warn_unused_result)) struct http_transfer *http_turns_take(struct http_turns *turns);

/* Who waits, whoever it is, waits no longer; NULL: nobody does. */
__attribute__((warn_unused_result)) struct http_transfer *http_turns_drop(struct http_turns *turns);

/* Whether a transfer that has begun may open a connection in this turn. Otherwise transfer->opens is set: it is to end,
 * and to wait again. A transfer that may goes on to be allowed, for one beginning may try several addresses. */
__attribute__((warn_unused_result)) bool http_turns_open(struct http_turns *turns, struct http_transfer *transfer);

#endif
