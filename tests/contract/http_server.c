/* SPDX-License-Identifier: MIT */
#include "tests/contract/http_server.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/reserved_port.h"

enum { HEADERS = 64, HELD = 1024 };

struct message {
  struct contract_message view;
  struct duebox_header headers[HEADERS];
  char *body;
  size_t len;
};

struct http_server {
  struct MHD_Daemon *daemon;
  int port, reserved;
  pthread_mutex_t lock;
  bool held;
  struct MHD_Connection *waiting[HELD];
  size_t waiting_count;
  struct message **messages;
  size_t count, cap;
  struct contract_message *snapshot;
};

static char *copy(const char *from, size_t len) {
  char *to = malloc(len + 1);
  if (!to)
    abort();
  memcpy(to, from, len);
  to[len] = '\0';
  return to;
}

static void append_body(struct message *message, const char *data, size_t len) {
  message->body = realloc(message->body, message->len + len + 1);
  if (!message->body)
    abort();
  memcpy(message->body + message->len, data, len);
  message->len += len;
}

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                 const char *value, size_t len) {
  struct message *message = arg;
  if (message->view.header_count == HEADERS)
    return MHD_NO;
  struct duebox_header *header = &message->headers[message->view.header_count++];
  *header = (struct duebox_header){copy(name, name_len), {value ? copy(value, len) : copy("", 0), len}};
  if (strcasecmp(name, "webhook-id") == 0)
    message->view.id = header->value.data;
  if (strcasecmp(name, "duebox-attempt") == 0)
    message->view.attempt = (uint32_t)strtoul(header->value.data, NULL, 10);
  return MHD_YES;
}

static void free_message(struct message *message) {
  for (size_t i = 0; i < message->view.header_count; i++) {
    free((char *)message->headers[i].name);
    free((char *)message->headers[i].value.data);
  }
  free(message->body);
  free(message);
}

/* Keeps the request; called with the lock. */
static void keep(struct http_server *server, struct message *message) {
  if (server->count == server->cap) {
    server->cap = server->cap ? 2 * server->cap : 256;
    server->messages = realloc(server->messages, server->cap * sizeof(struct message *));
    if (!server->messages)
      abort();
  }
  message->view.headers = message->headers;
  message->view.body = (struct duebox_bytes){message->body ? message->body : "", message->len};
  server->messages[server->count++] = message;
}

static enum MHD_Result answer(struct MHD_Connection *connection, const char *url) {
  struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  unsigned status = strncmp(url, "/missing", 8) == 0 ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK;
  enum MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *len, void **state) {
  struct http_server *server = arg;
  struct message *message = *state;
  if (message == NULL) {
    message = *state = calloc(1, sizeof(*message));
    if (!message)
      abort();
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_header, message);
    return MHD_YES;
  }
  if (*len > 0) {
    append_body(message, data, *len);
    *len = 0;
    return MHD_YES;
  }
  pthread_mutex_lock(&server->lock);
  bool first = message->view.headers == NULL, wait = first && server->held && server->waiting_count < HELD;
  if (first && strncmp(url, "/missing", 8) != 0)
    keep(server, message);
  if (wait) {
    MHD_suspend_connection(connection);
    server->waiting[server->waiting_count++] = connection;
  }
  pthread_mutex_unlock(&server->lock);
  return wait ? MHD_YES : answer(connection, url);
}

/* A request that was not kept, or not whole, ends here. */
static void on_end(void *arg, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code) {
  struct message *message = *state;
  if (message && message->view.headers == NULL)
    free_message(message);
  *state = NULL;
}

static bool start_daemon(struct http_server *server) {
  uint16_t port = (uint16_t)server->port;
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  server->daemon = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, port, NULL, NULL, on_request, server,
      MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_CONNECTION_LIMIT, 2000u,
      MHD_OPTION_LISTEN_BACKLOG_SIZE, 1024u, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
  return server->daemon != NULL;
}

struct http_server *http_server_start(void) {
  struct http_server *server = calloc(1, sizeof(*server));
  assert_non_null(server);
  pthread_mutex_init(&server->lock, NULL);
  server->reserved = reserved_port_open(&server->port);
  assert_true(start_daemon(server));
  return server;
}

void http_server_hold(struct http_server *server, bool held) {
  pthread_mutex_lock(&server->lock);
  server->held = held;
  for (size_t i = 0; !held && i < server->waiting_count; i++)
    MHD_resume_connection(server->waiting[i]);
  server->waiting_count = held ? server->waiting_count : 0;
  pthread_mutex_unlock(&server->lock);
}

void http_server_set_reachable(struct http_server *server, bool up) {
  if (up && !server->daemon)
    assert_true(start_daemon(server));
  if (!up && server->daemon) {
    http_server_hold(server, false);
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
  }
}

void http_server_stop(struct http_server *server) {
  http_server_set_reachable(server, false);
  for (size_t i = 0; i < server->count; i++)
    free_message(server->messages[i]);
  close(server->reserved);
  pthread_mutex_destroy(&server->lock);
  free(server->messages);
  free(server->snapshot);
  free(server);
}

int http_server_port(const struct http_server *server) { return server->port; }

const struct contract_message *http_server_received(struct http_server *server, size_t *count) {
  pthread_mutex_lock(&server->lock);
  *count = server->count;
  server->snapshot = realloc(server->snapshot, (*count + 1) * sizeof(*server->snapshot));
  if (!server->snapshot)
    abort();
  for (size_t i = 0; i < *count; i++)
    server->snapshot[i] = server->messages[i]->view;
  pthread_mutex_unlock(&server->lock);
  return server->snapshot;
}
