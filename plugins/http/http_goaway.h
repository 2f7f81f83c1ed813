/* SPDX-License-Identifier: MIT
 *
 * http_goaway.h - which requests an HTTP/2 server has certainly not processed.
 *
 * A server that ends a connection in order says with GOAWAY which stream is the last that it has, or may have, taken
 * up; later ones may be sent again (RFC 9113, 6.8). libcurl 7.88 begins those again by itself, but it does the same
 * when a kept connection breaks, and nothing but its log tells one from the other: there it writes the number of each
 * stream, and each GOAWAY. Both are read here. A libcurl that words its log otherwise is not understood, and then every
 * second beginning counts as one of a broken connection. Driver thread, no locks.
 */
#ifndef PLUGINS_HTTP_GOAWAY_H
#define PLUGINS_HTTP_GOAWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_stream {
  uintptr_t connection; /* its number (http_flood.h) */
  uint32_t id;          /* 0 = none */
};

enum { HTTP_GOAWAYS = 256 };

/* The latest connections that have said GOAWAY. */
struct http_goaways {
  struct http_stream lasts[HTTP_GOAWAYS];
  size_t seen;
};

/* Takes a text of libcurl's log, about a transfer on this connection; *stream is the transfer's. */
void http_goaway_read(struct http_goaways *goaways, uintptr_t connection, struct http_stream *stream, const char *text,
                      size_t len);

/* Whether the stream's server has said that it has not processed it. */
__attribute__((warn_unused_result)) bool http_goaway_unprocessed(const struct http_goaways *goaways,
                                                                 const struct http_stream *stream);

/* Whether the server has said so, and that it has, or may have, taken up others of that connection. */
__attribute__((warn_unused_result)) bool http_goaway_took_others(const struct http_goaways *goaways,
                                                                 const struct http_stream *stream);

#endif
