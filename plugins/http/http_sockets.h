/* SPDX-License-Identifier: MIT
 *
 * http_sockets.h - the open sockets of an instance, to be found by the ends of their connection, and the peers that
 * must not keep one.
 *
 * libcurl says which kept connection it is about to use by addresses and ports only, while what has come in meanwhile
 * can be seen at the socket only. Driver thread, no locks; libcurl opens and closes the sockets through
 * http_transfer.c.
 */
#ifndef PLUGINS_HTTP_SOCKETS_H
#define PLUGINS_HTTP_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

struct http_socket {
  int fd;
  int local_port, peer_port; /* 0 until connected */
};

struct http_sockets {
  struct http_socket *items;
  size_t count, cap;
};

/* How many files of the process may be open when a connection is opened: a quarter of its limit is the daemon's, for
 * its listeners and for the database. */
size_t http_sockets_files(void);

/* Whether a descriptor is one too many by that. The lowest free number is given out, so as many are open. */
bool http_socket_exceeds(int fd);

/* Remembers an open socket. False when memory is short. */
__attribute__((warn_unused_result)) bool http_sockets_add(struct http_sockets *sockets, int fd);
void http_sockets_remove(struct http_sockets *sockets, int fd);
void http_sockets_free(struct http_sockets *sockets);

/* The socket with these ports, or -1. Of two with the same ports, to different hosts, any. */
int http_sockets_find(struct http_sockets *sockets, int local_port, int peer_port);

enum { HTTP_STRAYS = 256 };

/* Peers that sent a response which nobody had asked for: the last ones. */
struct http_strays {
  struct {
    char address[46]; /* INET6_ADDRSTRLEN */
    int port;
  } items[HTTP_STRAYS];
  size_t seen; /* all of them, also those that others have taken the place of */
};
void http_strays_add(struct http_strays *strays, const char *address, int port);
bool http_strays_has(const struct http_strays *strays, const char *address, int port);

/* Whether something can be read: data, the end, or an error. Reads nothing. */
bool http_socket_readable(int fd);

#endif
