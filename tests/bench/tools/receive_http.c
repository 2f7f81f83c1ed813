/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "receive.h"

enum { EVENTS = 64, BACKLOG = 1024, START_ROOM = 4096, LARGEST = 1 << 24 };

/* What a connection has sent and was not taken yet. */
struct peer {
  int fd;
  char *data;
  size_t len, cap;
};

static int listen_on(const char *port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
      bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, BACKLOG))
    receive_fail("port", strerror(errno));
  return fd;
}

static void watch(int epoll, int fd, void *of) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = of};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
    receive_fail("epoll", strerror(errno));
}

static void take_peer(int epoll, int listener) {
  struct peer *peer = calloc(1, sizeof *peer);
  int one = 1;
  if (!peer)
    receive_fail("connection", "out of memory");
  peer->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (peer->fd < 0)
    receive_fail("accept", strerror(errno));
  setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  watch(epoll, peer->fd, peer);
}

static void drop_peer(struct peer *peer) {
  close(peer->fd);
  free(peer->data);
  free(peer);
}

/* The value of a header line in the head, which ends with an empty line; its length goes to *len, 0 when absent. */
static const char *value_of(const char *head, size_t head_len, const char *name, size_t *len) {
  size_t name_len = strlen(name);
  const char *end = head + head_len;
  *len = 0;
  for (const char *line = head; (line = memchr(line, '\n', (size_t)(end - line))) && ++line + name_len < end;) {
    if (strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
      continue;
    const char *value = line + name_len + 1;
    while (*value == ' ')
      value++;
    *len = strcspn(value, "\r\n");
    return value;
  }
  return "";
}

/* Takes one complete request; returns its length, 0 when there is none yet. */
static size_t take_request(struct receiver *receiver, const struct peer *peer, size_t at) {
  static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const char *head = peer->data + at;
  const char *end = memmem(head, peer->len - at, "\r\n\r\n", 4);
  if (!end)
    return 0;
  size_t head_len = (size_t)(end - head) + 4, len;
  size_t body_len = strtoul(value_of(head, head_len, "Content-Length", &len), NULL, 10);
  if (at + head_len + body_len > peer->len)
    return 0;
  const char *due = value_of(head, head_len, "duebox-due", &len);
  receive_one(receiver, head + head_len, body_len, book_parse_due(due, len));
  if (send(peer->fd, reply, sizeof reply - 1, MSG_NOSIGNAL) != sizeof reply - 1)
    receive_fail("answer", strerror(errno));
  return head_len + body_len;
}

/* False when the peer has closed. */
static bool serve(struct receiver *receiver, struct peer *peer) {
  if (peer->len + 1 >= peer->cap) {
    size_t cap = peer->cap ? 2 * peer->cap : START_ROOM;
    char *grown = cap <= LARGEST ? realloc(peer->data, cap) : NULL;
    if (!grown)
      receive_fail("request", "larger than it may be");
    peer->data = grown;
    peer->cap = cap;
  }
  ssize_t got = recv(peer->fd, peer->data + peer->len, peer->cap - peer->len - 1, 0);
  if (got <= 0)
    return false;
  peer->len += (size_t)got;
  peer->data[peer->len] = '\0'; /* strtoul and strcspn stop here */
  size_t at = 0;
  for (size_t taken; (taken = take_request(receiver, peer, at)) > 0;)
    at += taken;
  memmove(peer->data, peer->data + at, peer->len - at);
  peer->len -= at;
  return true;
}

/* What still runs when it is over ends with the process. */
void receive_http(struct receiver *receiver) {
  struct epoll_event events[EVENTS];
  int listener = listen_on(receiver->where), epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0)
    receive_fail("epoll", strerror(errno));
  watch(epoll, listener, NULL);
  receive_ready();
  while (receive_goes_on(receiver)) {
    int ready = epoll_wait(epoll, events, EVENTS, RECEIVE_POLL_MS);
    for (int i = 0; i < ready; i++) {
      if (!events[i].data.ptr)
        take_peer(epoll, listener);
      else if (!serve(receiver, events[i].data.ptr))
        drop_peer(events[i].data.ptr);
    }
  }
  close(epoll);
  close(listener);
}
