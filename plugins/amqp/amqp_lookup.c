/* SPDX-License-Identifier: MIT */
#include "amqp_lookup.h"

#include <duebox/check.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "amqp_conn.h"
#include "amqp_watch.h"

enum { ANSWER_MAX = 1024 }; /* bytes on the wire for a question: some 300, where the broker refuses */

struct lookup {
  amqp_connection_state_t link;
  amqp_channel_t channel;
  int64_t end_us;
  struct amqp_target *target;
};

/* The broker closes the channel with each refusal, so each question has one of its own. False: no answer in time, or
 * the connection is gone. */
static bool open_channel(struct lookup *lookup) {
  int64_t left_us = lookup->end_us - amqp_now_us();
  struct timeval limit = {.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};
  return left_us > 0 && amqp_set_rpc_timeout(lookup->link, &limit) == AMQP_STATUS_OK &&
         amqp_channel_open(lookup->link, ++lookup->channel) != NULL;
}

static void refused(struct duebox_check *check, const char *what, const char *name, const amqp_rpc_reply_t *reply) {
  char create[256];
  if (reply->reply_type != AMQP_RESPONSE_SERVER_EXCEPTION || reply->reply.id != AMQP_CHANNEL_CLOSE_METHOD) {
    duebox_check_answer(check, DUEBOX_CHECK_UNSURE, "", "%s \"%s\": %s", what, name,
                        reply->reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION ? amqp_error_string2(reply->library_error)
                                                                             : "the broker ended the connection");
    return;
  }
  const amqp_channel_close_t *why = reply->reply.decoded;
  if (check->route && why->reply_code == AMQP_RESOURCE_LOCKED) { /* exclusive is about consuming */
    duebox_check_answer(check, DUEBOX_CHECK_OK, "", "%s \"%s\" is there, and one connection has it for itself alone",
                        what, name);
    return;
  }
  snprintf(create, sizeof create, "%s",
           why->reply_code == AMQP_NOT_FOUND ? "create it at the broker; duebox never creates one"
           : why->reply_code == AMQP_RESOURCE_LOCKED
               ? "another connection uses it alone, so nobody else may read it; declare it without exclusive"
               : "give this user the rights to it (rabbitmqctl set_permissions)");
  duebox_check_answer(check, DUEBOX_CHECK_WRONG, create, "%s \"%s\": %u %.*s", what, name, why->reply_code,
                      (int)why->reply_text.len, (const char *)why->reply_text.bytes);
}

/* One daemon reads a result queue, and the others stand by without being consumers. */
static void answer_queue(struct duebox_check *check, const char *name, const amqp_queue_declare_ok_t *found) {
  bool crowded = check->source && found->consumer_count > 1;
  duebox_check_answer(check, crowded ? DUEBOX_CHECK_UNSURE : DUEBOX_CHECK_OK,
                      crowded ? "rabbitmqctl list_consumers names them; end all that are no daemon of this outbox" : "",
                      "queue \"%s\" is there, with %u messages and %u consumers%s", name, found->message_count,
                      found->consumer_count,
                      crowded         ? ", and only one daemon of this outbox is to be one: what others read does not "
                                        "come here"
                      : check->source ? "; one daemon of this outbox reads it, and the others stand by"
                                      : "");
}

static void ask(struct lookup *lookup, struct duebox_check *check, bool queue, const char *name) {
  const char *what = queue ? "queue" : "exchange";
  if (!open_channel(lookup)) {
    duebox_check_answer(check, DUEBOX_CHECK_UNSURE, "", "the broker has not said in time whether %s \"%s\" is there",
                        what, name);
    return;
  }
  const amqp_queue_declare_ok_t *found = NULL;
  bool there;
  if (queue) {
    found = amqp_queue_declare(lookup->link, lookup->channel, amqp_cstring_bytes(name), 1, 0, 0, 0, amqp_empty_table);
    there = found != NULL;
  } else {
    there = amqp_exchange_declare(lookup->link, lookup->channel, amqp_cstring_bytes(name), amqp_cstring_bytes("direct"),
                                  1, 0, 0, 0, amqp_empty_table) != NULL;
  }
  amqp_rpc_reply_t reply = amqp_get_rpc_reply(lookup->link);
  if (there && queue)
    answer_queue(check, name, found);
  else if (there)
    duebox_check_answer(check, DUEBOX_CHECK_OK, "", "exchange \"%s\" is there", name);
  else
    refused(check, what, name, &reply);
}

static void look_up(struct lookup *lookup, struct duebox_check *check) {
  const struct amqp_route *route = check->route;
  const struct amqp_source_options *source = check->source;
  char key[256];
  if (source)
    ask(lookup, check, true, source->queue);
  else if (*route->exchange)
    ask(lookup, check, false, route->exchange);
  else if (check->expand(check, route->routing_key, key, sizeof key))
    ask(lookup, check, true, key); /* the default exchange */
  else
    duebox_check_answer(check, DUEBOX_CHECK_OK, "", "queue \"%s\" is another one for each task", route->routing_key);
}

/* Connects on the thread that blocks without limit in name resolution, and gives up on it in time. */
static amqp_connection_state_t connect_within(struct amqp_target *target, int64_t end_us,
                                              struct amqp_connect_failure *failure) {
  int fd = eventfd(0, EFD_CLOEXEC);
  struct amqp_connect *attempt = fd >= 0 ? amqp_connect_start(target, fd) : NULL;
  amqp_connection_state_t link = NULL;
  snprintf(failure->text, sizeof failure->text, "%s",
           attempt ? "the broker has not let us in in time" : "no thread could be started");
  for (int64_t left_us; attempt && (left_us = end_us - amqp_now_us()) > 0 && !amqp_connect_ended(attempt);)
    (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)(left_us / 1000) + 1);
  if (attempt && amqp_connect_ended(attempt))
    link = amqp_connect_finish(attempt, failure);
  else if (attempt)
    amqp_connect_abandon(attempt);
  if (fd >= 0)
    close(fd);
  return link;
}

void amqp_check_targets(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms) {
  struct lookup lookup = {.end_us = amqp_now_us() + (int64_t)timeout_ms * 1000};
  struct amqp_connect_failure failure = {.text = ""};
  struct duebox_error err;
  lookup.target = amqp_target_new(options, "duebox doctor", &err);
  if (lookup.target)
    lookup.link = connect_within(lookup.target, lookup.end_us, &failure);
  else
    memcpy(failure.text, err.text, sizeof failure.text);
  struct amqp_watch *watch = lookup.link ? amqp_watch_start() : NULL;
  if (watch)
    amqp_watch_limit(watch, amqp_get_sockfd(lookup.link), lookup.end_us,
                     (uint64_t)AMQP_WATCH_LOGIN_KIB * 1024 + (uint64_t)count * ANSWER_MAX);
  else if (lookup.link)
    snprintf(failure.text, sizeof failure.text, "no thread could be started");
  for (size_t i = 0; i < count; i++)
    if (watch)
      look_up(&lookup, checks[i]);
    else
      duebox_check_answer(checks[i], failure.refused ? DUEBOX_CHECK_WRONG : DUEBOX_CHECK_UNSURE, "", "%s",
                          failure.text);
  (void)amqp_watch_stop(watch); /* each question has said that the broker did not answer */
  if (lookup.link)
    amqp_destroy_connection(lookup.link);
  amqp_target_unref(lookup.target);
}
