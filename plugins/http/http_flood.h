/* SPDX-License-Identifier: MIT
 *
 * http_flood.h - nobody who writes without a pause keeps the driver thread.
 *
 * libcurl 7.88 reads an HTTP/2 connection inside one call until nothing more comes: who writes frames faster than they
 * are read would keep the driver thread, and with it all routes of the instance. OpenSSL tells of each record that is
 * read, on the driver thread, so the time is measured there, and such a connection is ended. Records of TLS itself are
 * read one at a time, whatever the version of HTTP. During a handshake OpenSSL 3.0 skips HelloRequest messages as long
 * as they come, and takes its messages in records of one byte, both of which anybody on the way may write: records and
 * messages are counted there. No locks.
 */
#ifndef PLUGINS_HTTP_FLOOD_H
#define PLUGINS_HTTP_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>
#include <duebox/plugin.h>
#include <openssl/ssl.h>

struct http_flood {
  const struct duebox_host *host;
  const char *authorities; /* http_tls.h: the folder of the system's; NULL = libcurl reads it, or nobody */
  bool client_cert;        /* there is one: endpoints may ask for it in the middle of a connection */
  uintptr_t connections;   /* made so far; each has its number */
  bool measures;           /* HTTP/2 is offered */
  const void *reading;     /* the connection whose record was the last; NULL = libcurl has come back from it */
  int64_t last_us;         /* when that was, in processor time of the thread */
  int64_t spent_us;        /* between records of one connection, in this turn */
  const void *shaking;     /* the connection whose handshake was read last, in this turn */
  unsigned steps;          /* records and messages of it */
};

/* Whether this libcurl does TLS with OpenSSL; with another library nothing is watched. */
__attribute__((warn_unused_result)) bool http_flood_measurable(void);

/* Has the connections that a handle makes watched. False: libcurl refused it. */
__attribute__((warn_unused_result)) bool http_flood_watch(CURL *easy, struct http_flood *flood);

/* The number of a connection that is watched, which no other one has had; 0 for NULL. */
uintptr_t http_flood_connection(const SSL *tls);

/* libcurl has come back from reading for one transfer (CURLOPT_XFERINFOFUNCTION). */
void http_flood_pause(struct http_flood *flood);

/* A turn of the driver begins. */
void http_flood_turn(struct http_flood *flood);

#endif
