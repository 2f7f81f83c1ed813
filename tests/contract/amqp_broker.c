/* SPDX-License-Identifier: MIT */
#include "tests/contract/amqp_broker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_vendor.h"
#include "tests/support/fake_host.h"

enum { CHANNEL = 1 };

/* A received message with all that it points to. Properties stand among the headers, with a colon before the name. */
struct held {
  char *id, *body;
  struct duebox_header *headers;
  size_t header_count;
};

struct amqp_broker {
  amqp_connection_state_t link;
  struct tcp_relay *relay;
  char queue[64], url[256], direct[512];
  char *url_copy; /* what `info` points into */
  struct amqp_connection_info info;
  struct amqp_options options;
  struct amqp_route route;
  struct amqp_source_options source;
  struct contract_message *messages;
  struct held *held;
  size_t count, cap, held_cap;
};

const char *amqp_broker_url(void) {
  const char *url = getenv("DUEBOX_TEST_AMQP_URL");
  return url && *url ? url : NULL;
}

bool amqp_broker_can_ask(void) { return getenv("DUEBOX_TEST_AMQP_CONTROL") != NULL; }

void amqp_broker_skip_without_control(void) {
  if (amqp_broker_can_ask())
    return;
  fprintf(stderr, "SKIPPED: nobody here can hurt the broker (DUEBOX_TEST_AMQP_CONTROL)\n");
  skip();
}

static void no_broker(void **state) {
  (void)state;
  fprintf(stderr, "SKIPPED: set DUEBOX_TEST_AMQP_URL to a broker, as in amqp://guest:guest@127.0.0.1:5672/%%2f\n");
  skip();
}

int amqp_broker_skip_all(const char *group) {
  const struct CMUnitTest none[] = {cmocka_unit_test(no_broker)};
  return cmocka_run_group_tests_name(group, none, NULL, NULL);
}

int amqp_broker_set_up(void **state) {
  *state = amqp_broker_open();
  return 0;
}

int amqp_broker_tear_down(void **state) {
  amqp_broker_close(*state);
  return 0;
}

static void check_reply(const amqp_rpc_reply_t *reply, const char *what) {
  if (reply->reply_type == AMQP_RESPONSE_NORMAL)
    return;
  if (reply->reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply->reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const amqp_channel_close_t *close = reply->reply.decoded;
    fail_msg("%s: %.*s", what, (int)close->reply_text.len, (const char *)close->reply_text.bytes);
  }
  fail_msg("%s: %s", what, amqp_error_string2(reply->library_error));
}

static void check(amqp_rpc_reply_t reply, const char *what) { check_reply(&reply, what); }

static void check_last(struct amqp_broker *broker, const char *what) { check(amqp_get_rpc_reply(broker->link), what); }

static void log_in(struct amqp_broker *broker) {
  const struct amqp_connection_info *info = &broker->info;
  broker->link = amqp_new_connection();
  amqp_socket_t *socket = amqp_tcp_socket_new(broker->link);
  if (!socket || amqp_socket_open(socket, info->host, info->port) != AMQP_STATUS_OK)
    fail_msg("no broker at %s", amqp_broker_url());
  check(amqp_login(broker->link, info->vhost, 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, info->user, info->password),
        "login");
  amqp_channel_open(broker->link, CHANNEL);
  check_last(broker, "channel.open");
  amqp_confirm_select(broker->link, CHANNEL);
  check_last(broker, "confirm.select");
}

void amqp_broker_ask(struct amqp_broker *broker, const char *what) {
  char answer[64];
  amqp_destroy_connection(broker->link); /* it may not survive what is asked for */
  printf("@%s\n", what);
  fflush(stdout);
  if (!fgets(answer, sizeof(answer), stdin) || strcmp(answer, "done\n") != 0)
    fail_msg("asked for \"%s\", which was not done", what);
  log_in(broker);
}

struct amqp_broker *amqp_broker_open(void) {
  static int number;
  struct amqp_broker *broker = calloc(1, sizeof(*broker));
  assert_non_null(broker);
  broker->url_copy = strdup(amqp_broker_url());
  assert_int_equal(amqp_parse_url(broker->url_copy, &broker->info), AMQP_STATUS_OK);
  log_in(broker);
  snprintf(broker->queue, sizeof(broker->queue), "duebox-test-%d-%d", (int)getpid(), ++number);
  amqp_broker_declare(broker, broker->queue, 0);
  broker->relay = tcp_relay_start(broker->info.port);
  snprintf(broker->url, sizeof(broker->url), "amqp://%s@127.0.0.1:%d/%s", broker->info.user,
           tcp_relay_port(broker->relay), strcmp(broker->info.vhost, "/") == 0 ? "%2f" : broker->info.vhost);
  fake_options(amqp_route_rows, &broker->route);
  broker->route.routing_key = broker->queue;
  fake_options(amqp_source_rows, &broker->source);
  broker->source.queue = broker->queue;
  broker->source.prefetch = 400; /* the suite leaves 300 records open at once */
  return broker;
}

static void forget(struct amqp_broker *broker) {
  for (size_t i = 0; i < broker->count; i++) {
    struct held *held = &broker->held[i];
    for (size_t h = 0; h < held->header_count; h++) {
      free((void *)held->headers[h].name);
      free((void *)held->headers[h].value.data);
    }
    free(held->headers);
    free(held->id);
    free(held->body);
  }
  free(broker->held);
  free(broker->messages);
}

void amqp_broker_close(struct amqp_broker *broker) {
  tcp_relay_stop(broker->relay);
  amqp_broker_delete(broker, broker->queue);
  amqp_connection_close(broker->link, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(broker->link);
  forget(broker);
  free(broker->url_copy);
  free(broker);
}

const char *amqp_broker_queue(const struct amqp_broker *broker) { return broker->queue; }
const char *amqp_broker_direct_url(struct amqp_broker *broker, const char *user, const char *password) {
  snprintf(broker->direct, sizeof(broker->direct), "amqp://%s:%s@%s:%d/%s", user ? user : broker->info.user,
           password ? password : broker->info.password, broker->info.host, broker->info.port,
           strcmp(broker->info.vhost, "/") == 0 ? "%2f" : broker->info.vhost);
  return broker->direct;
}

struct tcp_relay *amqp_broker_relay(const struct amqp_broker *broker) {
  return broker->relay;
}
struct amqp_route *amqp_broker_route(struct amqp_broker *broker) {
  return &broker->route;
}
struct amqp_source_options *amqp_broker_source(struct amqp_broker *broker) {
  return &broker->source;
}

struct amqp_options *amqp_broker_options(struct amqp_broker *broker) {
  if (!broker->options.url) {
    for (const struct duebox_option *row = amqp_option_rows; row->name; row++) {
      struct duebox_option one[2] = {*row, {0}};
      if (row->type != DUEBOX_OPT_SECRET)
        fake_options(one, &broker->options);
    }
    broker->options.url = broker->url;
    broker->options.password = broker->info.password;
    broker->options.connect_timeout_ms = 10000;
  }
  return &broker->options;
}

/* ---- the broker's own verbs --------------------------------------------------------------------------------- */

void amqp_broker_declare(struct amqp_broker *broker, const char *queue, int max_length) {
  amqp_table_entry_t entries[2] = {{.key = amqp_cstring_bytes("x-max-length")},
                                   {.key = amqp_cstring_bytes("x-overflow")}};
  entries[0].value.kind = AMQP_FIELD_KIND_I32;
  entries[0].value.value.i32 = max_length;
  entries[1].value.kind = AMQP_FIELD_KIND_UTF8;
  entries[1].value.value.bytes = amqp_cstring_bytes("reject-publish");
  amqp_table_t arguments = {.num_entries = max_length ? 2 : 0, .entries = entries};
  amqp_queue_declare(broker->link, CHANNEL, amqp_cstring_bytes(queue), 0, 1, 0, 0, arguments);
  check_last(broker, "queue.declare");
}

void amqp_broker_declare_kind(struct amqp_broker *broker, const char *queue, bool quorum, bool single) {
  amqp_table_entry_t entries[2] = {{.key = amqp_cstring_bytes("x-queue-type")},
                                   {.key = amqp_cstring_bytes("x-single-active-consumer")}};
  entries[0].value.kind = AMQP_FIELD_KIND_UTF8;
  entries[0].value.value.bytes = amqp_cstring_bytes(quorum ? "quorum" : "classic");
  entries[1].value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entries[1].value.value.boolean = single;
  amqp_table_t arguments = {.num_entries = 2, .entries = entries};
  amqp_queue_declare(broker->link, CHANNEL, amqp_cstring_bytes(queue), 0, 1, 0, 0, arguments);
  check_last(broker, "queue.declare");
}

void amqp_broker_delete(struct amqp_broker *broker, const char *queue) {
  amqp_queue_delete(broker->link, CHANNEL, amqp_cstring_bytes(queue), 0, 0);
  check_last(broker, "queue.delete");
}

void amqp_broker_declare_exchange(struct amqp_broker *broker, const char *exchange) {
  amqp_exchange_declare(broker->link, CHANNEL, amqp_cstring_bytes(exchange), amqp_cstring_bytes("topic"), 0, 1, 0, 0,
                        amqp_empty_table);
  check_last(broker, "exchange.declare");
}

void amqp_broker_delete_exchange(struct amqp_broker *broker, const char *exchange) {
  amqp_exchange_delete(broker->link, CHANNEL, amqp_cstring_bytes(exchange), 0);
  check_last(broker, "exchange.delete");
}

void amqp_broker_bind(struct amqp_broker *broker, const char *queue, const char *exchange, const char *routing_key) {
  amqp_queue_bind(broker->link, CHANNEL, amqp_cstring_bytes(queue), amqp_cstring_bytes(exchange),
                  amqp_cstring_bytes(routing_key), amqp_empty_table);
  check_last(broker, "queue.bind");
}

static void publish(struct amqp_broker *broker, const char *queue, const amqp_basic_properties_t *properties,
                    amqp_bytes_t body) {
  int status =
      amqp_basic_publish(broker->link, CHANNEL, amqp_empty_bytes, amqp_cstring_bytes(queue), 0, 0, properties, body);
  assert_int_equal(status, AMQP_STATUS_OK);
  amqp_frame_t frame;
  do
    assert_int_equal(amqp_simple_wait_frame(broker->link, &frame), AMQP_STATUS_OK);
  while (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD);
  amqp_maybe_release_buffers(broker->link);
}

void amqp_broker_publish(struct amqp_broker *broker, const char *body, size_t len) {
  amqp_basic_properties_t properties = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2};
  publish(broker, broker->queue, &properties, (amqp_bytes_t){.len = len, .bytes = (void *)body});
}

void amqp_broker_publish_dead(struct amqp_broker *broker, const char *body) {
  static char filling[131072 - 64];
  char dying[128];
  snprintf(dying, sizeof(dying), "%s-dying", broker->queue);
  amqp_table_entry_t entries[] = {{.key = amqp_cstring_bytes("x-dead-letter-exchange")},
                                  {.key = amqp_cstring_bytes("x-dead-letter-routing-key")},
                                  {.key = amqp_cstring_bytes("x-message-ttl")},
                                  {.key = amqp_cstring_bytes("x-expires")}};
  entries[0].value.kind = entries[1].value.kind = AMQP_FIELD_KIND_UTF8;
  entries[1].value.value.bytes = amqp_cstring_bytes(broker->queue);
  entries[2].value.kind = entries[3].value.kind = AMQP_FIELD_KIND_I32;
  entries[3].value.value.i32 = 60000;
  amqp_queue_declare(broker->link, CHANNEL, amqp_cstring_bytes(dying), 0, 0, 0, 0,
                     (amqp_table_t){.num_entries = 4, .entries = entries});
  check_last(broker, "queue.declare");
  amqp_table_entry_t header = {.key = amqp_cstring_bytes("a")};
  header.value.kind = AMQP_FIELD_KIND_UTF8;
  header.value.value.bytes = (amqp_bytes_t){.len = sizeof(filling), .bytes = filling};
  amqp_basic_properties_t properties = {._flags = AMQP_BASIC_HEADERS_FLAG,
                                        .headers = {.num_entries = 1, .entries = &header}};
  publish(broker, dying, &properties, amqp_cstring_bytes(body));
}

unsigned amqp_broker_depth(struct amqp_broker *broker, const char *queue) {
  amqp_queue_declare_ok_t *ok =
      amqp_queue_declare(broker->link, CHANNEL, amqp_cstring_bytes(queue), 1, 1, 0, 0, amqp_empty_table);
  check_last(broker, "queue.declare passive");
  return ok->message_count;
}

/* ---- what has arrived ----------------------------------------------------------------------------------------- */

static char *copy(const void *data, size_t len) {
  char *made = malloc(len + 1);
  assert_non_null(made);
  if (len)
    memcpy(made, data, len);
  made[len] = '\0';
  return made;
}

static void keep_header(struct held *held, const char *name, size_t name_len, const void *data, size_t len) {
  held->headers[held->header_count++] =
      (struct duebox_header){.name = copy(name, name_len), .value = {.data = copy(data, len), .len = len}};
}

static void keep_text(struct held *held, const char *name, amqp_bytes_t value) {
  keep_header(held, name, strlen(name), value.bytes, value.len);
}

static void keep_number(struct held *held, const char *name, unsigned long long value) {
  char text[24];
  snprintf(text, sizeof(text), "%llu", value);
  keep_header(held, name, strlen(name), text, strlen(text));
}

static void keep_properties(struct held *held, const amqp_basic_properties_t *p) {
  enum { PROPERTIES = 8 };
  held->headers = calloc((size_t)p->headers.num_entries + PROPERTIES, sizeof(*held->headers));
  assert_non_null(held->headers);
  for (int i = 0; i < p->headers.num_entries; i++) {
    const amqp_table_entry_t *entry = &p->headers.entries[i];
    assert_int_equal(entry->value.kind, AMQP_FIELD_KIND_UTF8); /* a byte array breaks consumers in Python */
    keep_header(held, entry->key.bytes, entry->key.len, entry->value.value.bytes.bytes, entry->value.value.bytes.len);
  }
  keep_text(held, ":message_id", p->message_id);
  keep_text(held, ":correlation_id", p->correlation_id);
  if (p->_flags & AMQP_BASIC_REPLY_TO_FLAG)
    keep_text(held, ":reply_to", p->reply_to);
  keep_text(held, ":content_type", p->content_type);
  keep_text(held, ":app_id", p->app_id);
  keep_number(held, ":delivery_mode", p->delivery_mode);
  keep_number(held, ":priority", p->priority);
  keep_number(held, ":timestamp", p->timestamp);
}

static void keep(struct amqp_broker *broker, const amqp_message_t *message) {
  if (broker->count == broker->cap) {
    broker->cap = broker->cap ? broker->cap * 2 : 64;
    broker->held = realloc(broker->held, broker->cap * sizeof(*broker->held));
    broker->messages = realloc(broker->messages, broker->cap * sizeof(*broker->messages));
    assert_true(broker->held && broker->messages);
  }
  struct held *held = &broker->held[broker->count];
  *held = (struct held){.id = copy(message->properties.message_id.bytes, message->properties.message_id.len),
                        .body = copy(message->body.bytes, message->body.len)};
  keep_properties(held, &message->properties);
  struct contract_message *view = &broker->messages[broker->count++];
  *view = (struct contract_message){.id = held->id,
                                    .body = {held->body, message->body.len},
                                    .headers = held->headers,
                                    .header_count = held->header_count};
  for (size_t i = 0; i < held->header_count; i++)
    if (strcmp(held->headers[i].name, "duebox-attempt") == 0)
      view->attempt = (uint32_t)strtoul(held->headers[i].value.data, NULL, 10);
}

const struct contract_message *amqp_broker_received(struct amqp_broker *broker, size_t *count) {
  for (;;) {
    amqp_rpc_reply_t reply = amqp_basic_get(broker->link, CHANNEL, amqp_cstring_bytes(broker->queue), 1);
    check(reply, "basic.get");
    if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD)
      break;
    amqp_message_t message;
    check(amqp_read_message(broker->link, CHANNEL, &message, 0), "reading a message");
    keep(broker, &message);
    amqp_destroy_message(&message);
    amqp_maybe_release_buffers(broker->link);
  }
  *count = broker->count;
  return broker->messages;
}

const char *amqp_broker_property(struct amqp_broker *broker, size_t index, const char *name) {
  assert_true(index < broker->count);
  const struct held *held = &broker->held[index];
  for (size_t i = 0; i < held->header_count; i++)
    if (held->headers[i].name[0] == ':' && strcmp(held->headers[i].name + 1, name) == 0)
      return held->headers[i].value.data;
  return NULL;
}
