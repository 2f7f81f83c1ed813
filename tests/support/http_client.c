/* SPDX-License-Identifier: MIT
 *
 * tests/support/http_client.c - sockets and strings.
 */
#include "support/http_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LIMIT_MS = 15000 };

int http_connect(uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

bool http_send(int fd, const char *data, size_t len) {
  while (len > 0) {
    ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    data += sent;
    len -= (size_t)sent;
  }
  return true;
}

static bool readable(int fd, int limit_ms) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  return poll(&poll_fd, 1, limit_ms) == 1;
}

bool http_header(const struct reply *reply, const char *name, char *out, size_t cap) {
  size_t len = strlen(name);
  const char *end = reply->body ? reply->body : reply->raw + reply->len;
  for (const char *line = strstr(reply->raw, "\r\n"); line && line + 2 < end; line = strstr(line + 2, "\r\n")) {
    if (strncasecmp(line + 2, name, len) != 0 || line[2 + len] != ':')
      continue;
    const char *value = line + 3 + len + strspn(line + 3 + len, " ");
    snprintf(out, cap, "%.*s", (int)strcspn(value, "\r"), value);
    return true;
  }
  return false;
}

/* Whether headers, and as much body as they announce, are there. */
static bool complete(struct reply *reply, bool head) {
  char length[32];
  char *end = strstr(reply->raw, "\r\n\r\n");
  if (!end)
    return false;
  reply->body = end + 4;
  if (head)
    return true;
  return http_header(reply, "Content-Length", length, sizeof(length)) &&
         reply->len >= (size_t)(reply->body - reply->raw) + strtoul(length, NULL, 10);
}

struct reply http_receive(int fd, bool head) {
  size_t cap = 1 << 20;
  struct reply reply = {.raw = calloc(1, cap + 1)};
  if (!reply.raw)
    return reply;
  while (!complete(&reply, head) && reply.len < cap && readable(fd, LIMIT_MS)) {
    ssize_t got = recv(fd, reply.raw + reply.len, cap - reply.len, 0);
    if (got <= 0)
      break;
    reply.len += (size_t)got;
    reply.raw[reply.len] = '\0';
  }
  if (strncmp(reply.raw, "HTTP/1.", 7) == 0 && reply.body)
    reply.status = atoi(reply.raw + 9);
  return reply;
}

struct reply http_raw(uint16_t port, const char *data, size_t len) {
  struct reply reply = {0};
  int fd = http_connect(port);
  if (fd < 0)
    return reply;
  http_send(fd, data, len); /* a server may answer and close before it has read everything */
  reply = http_receive(fd, strncmp(data, "HEAD", 4) == 0);
  close(fd);
  return reply;
}

struct reply http_request(uint16_t port, const char *method, const char *path, const char *headers, const char *body) {
  struct reply reply = {0};
  size_t body_len = body ? strlen(body) : 0, cap = body_len + strlen(path) + strlen(headers) + 256;
  char *text = malloc(cap);
  if (!text)
    return reply;
  bool own_host = strstr(headers, "Host:") != NULL;
  int len = snprintf(text, cap, "%s %s HTTP/1.1\r\n%s%sConnection: close\r\n", method, path,
                     own_host ? "" : "Host: 127.0.0.1\r\n", headers);
  if (body)
    len += snprintf(text + len, cap - (size_t)len, "Content-Length: %zu\r\n", body_len);
  len += snprintf(text + len, cap - (size_t)len, "\r\n%s", body ? body : "");
  reply = http_raw(port, text, (size_t)len);
  free(text);
  return reply;
}

bool http_closed(int fd, int limit_ms) {
  char byte;
  return readable(fd, limit_ms) && recv(fd, &byte, 1, 0) <= 0;
}

void http_free(struct reply *reply) {
  free(reply->raw);
  *reply = (struct reply){0};
}
