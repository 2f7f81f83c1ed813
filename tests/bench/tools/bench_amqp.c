/* SPDX-License-Identifier: MIT */
#include "bench_amqp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail(const char *what, const char *why, size_t len) {
  fprintf(stderr, "bench: amqp: %s: %.*s\n", what, (int)len, why);
  exit(1);
}

/* What the client itself met, AMQP_STATUS_OK when it is the broker's answer. */
static int client_error(const amqp_rpc_reply_t *reply) {
  return reply->reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION ? reply->library_error : AMQP_STATUS_OK;
}

bool bench_amqp_timed_out(const amqp_rpc_reply_t *reply) { return client_error(reply) == AMQP_STATUS_TIMEOUT; }

void bench_amqp_check(const char *what, amqp_rpc_reply_t reply) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
    const char *why = amqp_error_string2(client_error(&reply));
    fail(what, why, strlen(why));
  }
  if (reply.reply_type != AMQP_RESPONSE_NORMAL && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const amqp_channel_close_t *close = reply.reply.decoded;
    fail(what, close->reply_text.bytes, close->reply_text.len);
  }
  if (reply.reply_type != AMQP_RESPONSE_NORMAL)
    fail(what, "refused", 7);
}

amqp_connection_state_t bench_amqp_connect(const char *url, const char *who) {
  struct amqp_connection_info info;
  char *copy = strdup(url); /* the parser writes into it */
  amqp_connection_state_t connection = amqp_new_connection();
  if (!copy || !connection)
    fail(who, "out of memory", 13);
  if (amqp_parse_url(copy, &info) != AMQP_STATUS_OK)
    fail(who, url, strlen(url));
  amqp_socket_t *socket = amqp_tcp_socket_new(connection);
  if (!socket || amqp_socket_open(socket, info.host, info.port) != AMQP_STATUS_OK)
    fail(who, "no connection", 13);
  bench_amqp_check("login", amqp_login(connection, info.vhost, 0, BENCH_AMQP_FRAME_MAX, 0, AMQP_SASL_METHOD_PLAIN,
                                       info.user, info.password));
  amqp_channel_open(connection, BENCH_AMQP_CHANNEL);
  bench_amqp_check("channel", amqp_get_rpc_reply(connection));
  free(copy);
  return connection;
}
