/* SPDX-License-Identifier: MIT
 *
 * tests/support/http_client.h - HTTP/1.1 by hand, so that a test can send what no library would.
 *
 * Every wait is limited to fifteen seconds; what goes wrong makes `status` 0.
 */
#ifndef TESTS_SUPPORT_HTTP_CLIENT_H
#define TESTS_SUPPORT_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply {
  int status; /* 0 = no answer */
  char *raw;  /* everything received, NUL-terminated */
  size_t len;
  char *body; /* inside raw */
};

/* A connection to 127.0.0.1, or -1. */
int http_connect(uint16_t port);
bool http_send(int fd, const char *data, size_t len);
/* Reads one answer: up to Content-Length, or to the end of the connection. HEAD has no body. */
struct reply http_receive(int fd, bool head);
/* Connects, sends "METHOD path HTTP/1.1" with Host, Content-Length and the extra header lines (each ended by CRLF),
 * receives, closes. body may be NULL. */
struct reply http_request(uint16_t port, const char *method, const char *path, const char *headers, const char *body);
/* Sends these very bytes, receives, closes. */
struct reply http_raw(uint16_t port, const char *data, size_t len);
/* Copies a header's value; false when it is absent. */
bool http_header(const struct reply *reply, const char *name, char *out, size_t cap);
/* True when the other side closes within the limit. */
bool http_closed(int fd, int limit_ms);
void http_free(struct reply *reply);

#endif
