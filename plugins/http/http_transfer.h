/* SPDX-License-Identifier: MIT
 *
 * http_transfer.h - one task on its way: an easy handle of libcurl with its request, its response and their outcome.
 *
 * A transfer is used for one task after the other and keeps its buffers, and its handle where libcurl allows it. All
 * functions and libcurl's callbacks run on the driver thread; no locks. It sends no request twice that may have been
 * received, which libcurl would do by itself when a kept connection closes without an answer (see on_request()).
 */
#ifndef PLUGINS_HTTP_TRANSFER_H
#define PLUGINS_HTTP_TRANSFER_H

#include <stdbool.h>
#include <time.h>

#include <curl/curl.h>
#include <duebox/plugin.h>

#include "http_flood.h"
#include "http_goaway.h"
#include "http_options.h"
#include "http_policy.h"
#include "http_request.h"
#include "http_response.h"
#include "http_sockets.h"
#include "http_turns.h"

#define HTTP_MESSAGE_CAP 4096 /* the host keeps 4095 bytes */

/* What all transfers of an instance share. */
struct http_shared {
  const struct http_options *options;
  const struct duebox_host *host;
  struct http_policy policy;
  struct http_sockets sockets;
  struct http_strays strays;
  struct http_flood flood;
  struct http_goaways goaways;
  struct http_turns turns;
  CURLSH *sessions; /* of TLS: a handle's own ones would end with it */
  bool renews;      /* libcurl is one whose handles must not have a second response */
};

struct http_url;

struct http_transfer {
  struct http_shared *shared;
  const struct duebox_task *task; /* NULL when idle */
  struct http_transfer *next;     /* of the list it is in: idle, refused, waiting for its turn or for a name */
  CURL *easy;
  bool used;     /* the handle may have had a response */
  bool recalled; /* the host has taken it back: the request does not begin once more */
  struct http_request request;
  struct http_response response;
  struct curl_slist *headers; /* nodes that point into the request's text */
  size_t headers_cap;
  struct http_problem problem; /* set when the task was refused before anything was sent */
  bool requested;              /* the connection was ready and the request began */
  bool in_records;             /* of TLS: how much of it has left nobody tells */
  bool second_refused;         /* libcurl wanted to send it once more */
  bool stale;                  /* the kept connection that libcurl chose was closed or held a stray answer */
  bool held;                   /* ended only because it needs a name; nothing was sent */
  int64_t waits_ms;            /* since when it waits for a turn */
  bool opens;                  /* waits for a turn to open a connection (http_turns.h) */
  bool may_open;               /* has got one for this beginning */
  uint64_t name;               /* hash of the one that it waits for (http_resolver.h) */
  struct http_lookup *lookup;  /* of that name; NULL = none yet */
  CURLcode lookup_code;        /* how that ended */
  int64_t begun_ms;            /* of http_now_ms() */
  long timeout_ms, connect_ms; /* from then on; connect_ms is no longer than timeout_ms */
  unsigned beginnings;         /* of the request, but for those behind others that the server took up */
  struct http_stream stream;   /* of HTTP/2, in which the request is */
  long sent_before;            /* bytes that had been sent when the request began: a proxy's CONNECT */
  bool allowed;                /* an address of the host may be called, and was tried */
  bool few_files;              /* there was no descriptor for a connection */
  char denied[512];            /* why another one may not; "" = none was refused */
  char error[CURL_ERROR_SIZE];
};

/* Makes the handle with everything that no task changes. False when memory is short; http_transfer_free() still works.
 */
__attribute__((warn_unused_result)) bool http_transfer_init(struct http_transfer *transfer, struct http_shared *shared);
void http_transfer_free(struct http_transfer *transfer);

/* Makes a socket for one address of the host in the URL, or refuses that address. */
curl_socket_t http_transfer_socket(struct http_transfer *transfer, const struct http_url *url,
                                   const struct curl_sockaddr *to);
/* Whether no address of the host may be called. One that may and does not answer is merely down. */
bool http_transfer_denied(const struct http_transfer *transfer);

/* Prepares the handle for a task. False: transfer->problem says why it cannot be sent. Either way the task is held
 * until http_transfer_complete(). */
__attribute__((warn_unused_result)) bool http_transfer_prepare(struct http_transfer *transfer,
                                                               const struct duebox_task *task);

/* Says that libcurl could not take a prepared transfer. */
void http_transfer_refuse(struct http_transfer *transfer);

/* Whether libcurl ended the transfer only because no connection might be opened in this turn, because the kept one it
 * chose was stale, or because the server ended the connection and has not processed the request. It is to wait for its
 * turn once more then. */
bool http_transfer_again(struct http_transfer *transfer, CURLcode code);

/* The attempt goes on, with another connection or with a lookup of its name, in what is left of its time. */
void http_transfer_begin_anew(struct http_transfer *transfer);

/* Whether the receiver may have got the request that was begun last, and begun to work on it. */
bool http_transfer_may_be_received(const struct http_transfer *transfer);

/* Has a transfer wait for its turn. The handle must not be in a multi handle. */
void http_transfer_wait(struct http_transfer *transfer);

/* It is the transfer's turn: makes its handle ready to be added, for what is left of its time. False: libcurl refused
 * it. */
__attribute__((warn_unused_result)) bool http_transfer_turn(struct http_transfer *transfer);

static inline int64_t http_now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* How a transfer ended. */
enum http_end {
  HTTP_END_RESULT,   /* libcurl is done with it: code says how */
  HTTP_END_REFUSED,  /* nothing was begun: transfer->problem says why */
  HTTP_END_STOPPED,  /* the instance is stopping */
  HTTP_END_RECALLED, /* the host has taken it back, and nothing of the request has been received */
};

/* What the end of a transfer says about the network. */
enum http_reach { HTTP_REACH_SAYS_NOTHING = 0, HTTP_REACH_ANSWERED, HTTP_REACH_FAILED };

/* Reports the outcome to the host and makes the transfer idle. The handle must not be in a multi handle any more. */
enum http_reach http_transfer_complete(struct http_transfer *transfer, enum http_end end, CURLcode code);

#endif
