/* SPDX-License-Identifier: MIT */
#include "tests/support/tcp_relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/support/reserved_port.h"

enum { PAIRS = 64, BUFFER = 65536 };

/* One direction of a connection: what was read from `from` and is not yet written to the other end. */
struct way {
  int from, to;
  size_t len, done;
  char buffer[BUFFER];
};

struct pair {
  bool used;
  struct way up, down; /* towards the server, towards the client */
};

struct tcp_relay {
  int listener, port, reserved, server_port, wake_fd;
  pthread_t thread;
  pthread_mutex_t lock; /* everything below, and the sockets */
  pthread_cond_t applied;
  bool reachable, muted, frozen, ending;
  unsigned asked, done; /* verbs, and how many of them the thread has seen */
  struct pair pairs[PAIRS];
};

static void drop(struct pair *pair) {
  if (pair->used) {
    close(pair->up.from);
    close(pair->up.to);
  }
  pair->used = false;
}

static void take_client(struct tcp_relay *relay) {
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)relay->server_port)};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int client = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0)
    return;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct pair *pair = NULL;
  for (int i = 0; i < PAIRS && !pair; i++)
    pair = relay->pairs[i].used ? NULL : &relay->pairs[i];
  if (!pair || fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof(server)) != 0) {
    close(client);
    if (fd >= 0)
      close(fd);
    return;
  }
  pair->used = true;
  pair->up.from = pair->down.to = client;
  pair->up.to = pair->down.from = fd;
  pair->up.len = pair->up.done = pair->down.len = pair->down.done = 0;
}

/* Reads when empty, writes when not; false when the connection has ended. */
static bool pass(struct way *way, bool readable, bool writable) {
  if (way->len == 0 && readable) {
    ssize_t n = recv(way->from, way->buffer, BUFFER, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      return false;
    way->len = n > 0 ? (size_t)n : 0;
    way->done = 0;
  }
  if (way->len > 0 && (writable || readable)) {
    ssize_t n = send(way->to, way->buffer + way->done, way->len - way->done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return false;
    way->done += n > 0 ? (size_t)n : 0;
    if (way->done == way->len)
      way->len = way->done = 0;
  }
  return true;
}

/* What to wait for on one end: input for the way that starts there, room for the one that ends there. */
static short events(const struct tcp_relay *relay, const struct way *in, const struct way *out, bool in_is_down) {
  short wanted = 0;
  if (relay->frozen)
    return 0;
  if (in->len == 0 && !(in_is_down && relay->muted))
    wanted |= POLLIN;
  if (out->len > 0)
    wanted |= POLLOUT;
  return wanted;
}

static nfds_t prepare(struct tcp_relay *relay, struct pollfd *fds) {
  nfds_t n = 0;
  fds[n++] = (struct pollfd){.fd = relay->wake_fd, .events = POLLIN};
  fds[n++] = (struct pollfd){.fd = relay->reachable ? relay->listener : -1, .events = POLLIN};
  for (int i = 0; i < PAIRS; i++) {
    struct pair *p = &relay->pairs[i];
    short client = p->used ? events(relay, &p->up, &p->down, false) : 0;
    short server = p->used ? events(relay, &p->down, &p->up, true) : 0;
    fds[n++] = (struct pollfd){.fd = client ? p->up.from : -1, .events = client};
    fds[n++] = (struct pollfd){.fd = server ? p->up.to : -1, .events = server};
  }
  return n;
}

static void apply_verbs(struct tcp_relay *relay) {
  eventfd_t ignored;
  (void)eventfd_read(relay->wake_fd, &ignored);
  for (int i = 0; i < PAIRS && !relay->reachable; i++)
    drop(&relay->pairs[i]);
  relay->done = relay->asked;
  pthread_cond_broadcast(&relay->applied);
}

static void *run(void *arg) {
  struct tcp_relay *relay = arg;
  struct pollfd fds[2 + 2 * PAIRS];
  pthread_mutex_lock(&relay->lock);
  while (!relay->ending) {
    nfds_t n = prepare(relay, fds);
    pthread_mutex_unlock(&relay->lock);
    (void)poll(fds, n, -1);
    pthread_mutex_lock(&relay->lock);
    if (fds[0].revents) {
      apply_verbs(relay);
      continue; /* what was waited for may not be wanted any more */
    }
    for (int i = 0; i < PAIRS; i++) {
      short client = fds[2 + 2 * i].revents, server = fds[3 + 2 * i].revents;
      struct pair *p = &relay->pairs[i];
      bool alive = pass(&p->up, client & (POLLIN | POLLHUP | POLLERR), server & POLLOUT) &&
                   pass(&p->down, server & (POLLIN | POLLHUP | POLLERR), client & POLLOUT);
      if (p->used && !alive)
        drop(p);
    }
    if (fds[1].revents)
      take_client(relay);
  }
  for (int i = 0; i < PAIRS; i++)
    drop(&relay->pairs[i]);
  pthread_mutex_unlock(&relay->lock);
  return NULL;
}

static int listen_on(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(fd, 16), 0);
  return fd;
}

struct tcp_relay *tcp_relay_start(int port) {
  struct tcp_relay *relay = calloc(1, sizeof(*relay));
  assert_non_null(relay);
  relay->server_port = port;
  relay->reachable = true;
  relay->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  relay->reserved = reserved_port_open(&relay->port);
  relay->listener = listen_on(relay->port);
  pthread_mutex_init(&relay->lock, NULL);
  pthread_cond_init(&relay->applied, NULL);
  assert_int_equal(pthread_create(&relay->thread, NULL, run, relay), 0);
  return relay;
}

int tcp_relay_port(const struct tcp_relay *relay) { return relay->port; }

/* Lets the thread see a changed flag. Caller holds the lock. */
static void tell(struct tcp_relay *relay) {
  unsigned mine = ++relay->asked;
  (void)eventfd_write(relay->wake_fd, 1);
  while (relay->done < mine && !relay->ending)
    pthread_cond_wait(&relay->applied, &relay->lock);
}

void tcp_relay_reachable(struct tcp_relay *relay, bool up) {
  pthread_mutex_lock(&relay->lock);
  if (up && !relay->reachable)
    relay->listener = listen_on(relay->port);
  int closing = !up && relay->reachable ? relay->listener : -1;
  relay->reachable = up;
  tell(relay);
  if (closing >= 0) /* now that the thread does not wait for it any more */
    close(closing);
  pthread_mutex_unlock(&relay->lock);
}

void tcp_relay_mute(struct tcp_relay *relay, bool muted) {
  pthread_mutex_lock(&relay->lock);
  relay->muted = muted;
  tell(relay);
  pthread_mutex_unlock(&relay->lock);
}

void tcp_relay_freeze(struct tcp_relay *relay, bool frozen) {
  pthread_mutex_lock(&relay->lock);
  relay->frozen = frozen;
  tell(relay);
  pthread_mutex_unlock(&relay->lock);
}

void tcp_relay_stop(struct tcp_relay *relay) {
  pthread_mutex_lock(&relay->lock);
  relay->ending = true;
  (void)eventfd_write(relay->wake_fd, 1);
  pthread_mutex_unlock(&relay->lock);
  pthread_join(relay->thread, NULL);
  pthread_cond_destroy(&relay->applied);
  pthread_mutex_destroy(&relay->lock);
  if (relay->reachable)
    close(relay->listener);
  close(relay->reserved);
  close(relay->wake_fd);
  free(relay);
}
