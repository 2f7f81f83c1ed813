/* SPDX-License-Identifier: MIT */
#include "http_sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

size_t http_sockets_files(void) {
  struct rlimit files;
  return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur / 4 * 3 : SIZE_MAX;
}

bool http_socket_exceeds(int fd) { return fd >= 0 && (size_t)fd >= http_sockets_files(); }

bool http_sockets_add(struct http_sockets *sockets, int fd) {
  if (sockets->count == sockets->cap) {
    size_t cap = sockets->cap ? 2 * sockets->cap : 16;
    struct http_socket *items = realloc(sockets->items, cap * sizeof(*items));
    if (!items)
      return false;
    sockets->items = items;
    sockets->cap = cap;
  }
  sockets->items[sockets->count++] = (struct http_socket){.fd = fd};
  return true;
}

void http_sockets_remove(struct http_sockets *sockets, int fd) {
  for (size_t i = 0; i < sockets->count; i++) {
    if (sockets->items[i].fd != fd)
      continue;
    sockets->items[i] = sockets->items[--sockets->count];
    return;
  }
}

void http_sockets_free(struct http_sockets *sockets) {
  free(sockets->items);
  *sockets = (struct http_sockets){0};
}

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

static int port_of(const union address *address) {
  return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
}

static void learn_ports(struct http_socket *socket) {
  union address local = {0}, peer = {0};
  socklen_t local_len = sizeof(local), peer_len = sizeof(peer);
  if (getsockname(socket->fd, &local.any, &local_len) != 0 || getpeername(socket->fd, &peer.any, &peer_len) != 0)
    return; /* not connected yet */
  socket->local_port = port_of(&local);
  socket->peer_port = port_of(&peer);
}

int http_sockets_find(struct http_sockets *sockets, int local_port, int peer_port) {
  for (size_t i = 0; i < sockets->count; i++) {
    struct http_socket *socket = &sockets->items[i];
    if (socket->local_port == 0)
      learn_ports(socket);
    if (socket->local_port == local_port && socket->peer_port == peer_port)
      return socket->fd;
  }
  return -1;
}

void http_strays_add(struct http_strays *strays, const char *address, int port) {
  size_t at = strays->seen++ % HTTP_STRAYS;
  snprintf(strays->items[at].address, sizeof(strays->items[at].address), "%s", address);
  strays->items[at].port = port;
}

bool http_strays_has(const struct http_strays *strays, const char *address, int port) {
  for (size_t i = 0; i < HTTP_STRAYS && i < strays->seen; i++)
    if (strays->items[i].port == port && strcmp(strays->items[i].address, address) == 0)
      return true;
  return false;
}

bool http_socket_readable(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
         (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}
