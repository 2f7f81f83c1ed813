/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_faults.c - what RabbitMQ does to a publisher, made to happen on a real broker.
 *
 * Needs DUEBOX_TEST_AMQP_URL; tests that need the broker itself to be hurt need DUEBOX_TEST_AMQP_CONTROL too
 * (amqp_broker.h), and are skipped, and say so, without it. Every test closes with the fake host's own checks: each
 * task completed exactly once, no report after stop().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/contract/amqp_broker.h"
#include "tests/support/fake_host.h"
#include "tests/support/own_time.h"

extern const struct duebox_plugin duebox_plugin_v1;

enum { LIMIT_MS = 30000, BLOCKS_MS = 500 };

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

static struct fake_host *open_sink(struct amqp_broker *broker) {
  return fake_host_open(&(struct fake_host_config){.plugin = &duebox_plugin_v1,
                                                   .role = DUEBOX_ROLE_SINK,
                                                   .options = amqp_broker_options(broker),
                                                   .max_payload = 64 << 20,
                                                   .max_inflight = 2000});
}

static size_t add(struct fake_host *host, const struct amqp_route *route, const char *route_name, const char *id,
                  uint32_t attempt) {
  return fake_host_add(host, &(struct fake_task){.message_id = id,
                                                 .attempt = attempt,
                                                 .route = route_name,
                                                 .route_data = route,
                                                 .payload = text("{\"order\":17}")});
}

static void settle(struct fake_host *host, const char *what) {
  if (!fake_host_settle(host, LIMIT_MS))
    fail_msg("%s: %zu of %zu tasks completed", what, fake_host_completed(host), fake_host_tasks(host));
}

static void expect(struct fake_host *host, size_t index, enum duebox_outcome_class cls, const char *error_class) {
  struct fake_outcome o = fake_host_outcome(host, index);
  if (!o.completed || o.cls != cls || (error_class && strcmp(o.error_class, error_class) != 0))
    fail_msg("task %zu (%s): class %d %s \"%s\", expected class %d %s", index, o.message_id, (int)o.cls, o.error_class,
             o.message, (int)cls, error_class ? error_class : "");
}

/* One task, tried again and again until it is delivered: the destination is back. */
static void recover(struct fake_host *host, const struct amqp_route *route) {
  size_t want = fake_host_count(host, DUEBOX_DELIVERED) + 1;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS;
       fake_host_count(host, DUEBOX_DELIVERED) < want && fake_host_now_ms() < end;) {
    add(host, route, NULL, NULL, 1);
    settle(host, "a task after the trouble");
  }
  assert_true(fake_host_count(host, DUEBOX_DELIVERED) >= want);
}

/* What is called delivered is in the queue, what is called not sent is not. */
static void check_honest(struct amqp_broker *broker, struct fake_host *host) {
  size_t count;
  const struct contract_message *messages = amqp_broker_received(broker, &count);
  for (size_t i = 0; i < fake_host_tasks(host); i++) {
    struct fake_outcome o = fake_host_outcome(host, i);
    size_t copies = 0, most = 1 + fake_host_logged(host, "AMQP-CHANNEL-CLOSED"); /* suspects go twice */
    for (size_t m = 0; m < count; m++)
      copies += messages[m].attempt == o.attempt && strcmp(messages[m].id, o.message_id) == 0;
    if (o.cls == DUEBOX_DELIVERED)
      assert_in_range(copies, 1, most);
    if (o.cls == DUEBOX_UNAVAILABLE || o.cls == DUEBOX_REJECTED || o.cls == DUEBOX_RETRY)
      assert_int_equal(copies, 0);
    if (copies > most)
      fail_msg("%s attempt %u stands in the queue %zu times", o.message_id, o.attempt, copies);
  }
}

/* --- what the broker says about a message --- */

static void unroutable_is_never_called_delivered(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *good = amqp_broker_route(broker), nowhere = *good;
  struct fake_host *host = open_sink(broker);
  nowhere.routing_key = "duebox-test-no-such-queue";
  for (int i = 0; i < 1000; i++)
    add(host, i % 3 ? good : &nowhere, i % 3 ? "good" : "nowhere", NULL, 1);
  settle(host, "a thousand tasks, every third unroutable");
  for (size_t i = 0; i < 1000; i++) {
    if (i % 3) {
      expect(host, i, DUEBOX_DELIVERED, NULL);
      continue;
    }
    expect(host, i, DUEBOX_UNAVAILABLE, "amqp.no_route");
    assert_int_equal(fake_host_outcome(host, i).scope, DUEBOX_SCOPE_TARGET);
  }
  assert_non_null(strstr(fake_host_outcome(host, 0).message, "duebox-test-no-such-queue"));
  check_honest(broker, host);
  fake_host_free(host);
}

static void a_full_queue_says_nack(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route full = *amqp_broker_route(broker);
  struct fake_host *host = open_sink(broker);
  char name[128];
  snprintf(name, sizeof(name), "%s-full", amqp_broker_queue(broker));
  full.routing_key = name;
  amqp_broker_declare(broker, full.routing_key, 5);
  for (int i = 0; i < 60; i++)
    add(host, &full, NULL, NULL, 1);
  settle(host, "sixty tasks into a queue of five");
  size_t delivered = fake_host_count(host, DUEBOX_DELIVERED);
  assert_int_equal(amqp_broker_depth(broker, full.routing_key), delivered);
  assert_true(delivered >= 5 && delivered < 60);
  for (size_t i = 0; i < 60; i++)
    if (fake_host_outcome(host, i).cls != DUEBOX_DELIVERED)
      expect(host, i, DUEBOX_RETRY, "amqp.nack");
  amqp_broker_delete(broker, full.routing_key);
  fake_host_free(host);
}

static void a_missing_exchange_costs_nobody_else_anything(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *good = amqp_broker_route(broker), missing = *good;
  struct fake_host *host = open_sink(broker);
  missing.exchange = "duebox-test-missing";
  for (int i = 0; i < 600; i++)
    add(host, i % 2 ? good : &missing, i % 2 ? "good" : "missing", NULL, 1);
  settle(host, "half of 600 tasks to an exchange that is not there");
  for (size_t i = 0; i < 600; i++)
    if (i % 2)
      expect(host, i, DUEBOX_DELIVERED, NULL);
    else
      expect(host, i, DUEBOX_UNAVAILABLE, "amqp.not_found");
  check_honest(broker, host);
  fake_host_free(host);
}

/* An exchange that is deleted under way breaks the channel for all that is open on it, once. None of the others has a
 * failure to show for it. */
static void a_deleted_exchange_is_found_one_by_one(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *good = amqp_broker_route(broker), doomed = *good;
  struct fake_host *host = open_sink(broker);
  char name[128];
  snprintf(name, sizeof(name), "%s-doomed", amqp_broker_queue(broker));
  doomed.exchange = name;
  amqp_broker_declare_exchange(broker, doomed.exchange);
  amqp_broker_bind(broker, amqp_broker_queue(broker), doomed.exchange, "#");
  add(host, &doomed, "doomed", "before", 1);
  add(host, good, "good", "good-before", 1);
  settle(host, "two tasks while the exchange is there");
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 2);
  amqp_broker_delete_exchange(broker, doomed.exchange);

  char id[32];
  for (uint32_t attempt = 1; attempt <= 3; attempt++) {
    size_t first = fake_host_tasks(host);
    for (int i = 0; i < 100; i++) {
      snprintf(id, sizeof(id), "mixed-%d", i);
      add(host, i == 50 ? &doomed : good, i == 50 ? "doomed" : "good", id, attempt);
    }
    settle(host, "a hundred tasks, one to the deleted exchange");
    for (size_t i = 0; i < 100; i++)
      if (i == 50 && attempt == 1 && fake_host_outcome(host, first + i).cls == DUEBOX_UNKNOWN)
        expect(host, first + i, DUEBOX_UNKNOWN, "amqp.channel_closed"); /* others were open with it */
      else if (i == 50)
        expect(host, first + i, DUEBOX_UNAVAILABLE, "amqp.not_found");
      else
        expect(host, first + i, DUEBOX_DELIVERED, NULL);
  }
  check_honest(broker, host);
  fake_host_free(host);
}

/* RabbitMQ answers a CC header that is not a list with 406 and closes the channel. Such a message is not sent at all.
 */
static void a_header_that_closes_channels_costs_nobody_else_anything(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *good = amqp_broker_route(broker);
  struct fake_host *host = open_sink(broker);
  add(host, good, NULL, "first", 1);
  settle(host, "a task before");
  for (int i = 0; i < 50; i++) {
    const struct duebox_header poison = {i % 2 ? "CC" : "BCC", text("audit@example.com")};
    fake_host_add(host, &(struct fake_task){
                            .route_data = good, .payload = text("x"), .headers = &poison, .header_count = i % 25 == 7});
  }
  settle(host, "fifty tasks, two with such a header");
  for (size_t i = 0; i < 50; i++)
    if (i % 25 == 7)
      expect(host, i + 1, DUEBOX_REJECTED, "amqp.header_reserved");
    else
      expect(host, i + 1, DUEBOX_DELIVERED, NULL);
  assert_int_equal(fake_host_logged(host, "AMQP-CHANNEL-CLOSED"), 0);
  check_honest(broker, host);
  fake_host_free(host);
}

static void what_amqp_cannot_carry_is_rejected_alone(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *good = amqp_broker_route(broker), keyed = *good;
  char long_key[300], *large = calloc(1, 200000);
  assert_non_null(large);
  memset(long_key, 'k', sizeof(long_key));
  memset(large, 'h', 199999);
  const struct duebox_header header = {"x-large", text(large)};
  struct fake_host *host = open_sink(broker);
  keyed.routing_key = "{task_key}";
  add(host, good, NULL, NULL, 1);
  fake_host_add(host, &(struct fake_task){.route_data = &keyed, .key = {long_key, 256}, .payload = text("x")});
  fake_host_add(host,
                &(struct fake_task){.route_data = good, .payload = text("x"), .headers = &header, .header_count = 1});
  add(host, good, NULL, NULL, 1);
  fake_host_add(host, &(struct fake_task){.route_data = &keyed, .key = {"orders\0x", 8}, .payload = text("x")});
  fake_host_add(
      host, &(struct fake_task){.route_data = &keyed, .key = text("amq.rabbitmq.reply-to.x.1"), .payload = text("x")});
  settle(host, "two good tasks among four that AMQP cannot carry");
  expect(host, 0, DUEBOX_DELIVERED, NULL);
  expect(host, 1, DUEBOX_REJECTED, "amqp.routing_key_too_long");
  expect(host, 2, DUEBOX_REJECTED, "amqp.headers_too_large");
  expect(host, 3, DUEBOX_DELIVERED, NULL);
  expect(host, 4, DUEBOX_REJECTED, "amqp.routing_key_nul");      /* it went to "orders" */
  expect(host, 5, DUEBOX_REJECTED, "amqp.routing_key_reserved"); /* RabbitMQ ended the connection, of all routes */
  check_honest(broker, host);
  fake_host_free(host);
  free(large);
}

static void properties_arrive_as_agreed(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker), keyed = *route;
  struct fake_host *host = open_sink(broker);
  keyed.routing_key = "{task_key}";
  fake_host_add(host, &(struct fake_task){.message_id = "id-1",
                                          .route_data = &keyed,
                                          .key = text(amqp_broker_queue(broker)),
                                          .priority = 7,
                                          .reply_to = "answers",
                                          .payload = text("{}")});
  settle(host, "a task with everything");
  expect(host, 0, DUEBOX_DELIVERED, NULL);
  size_t count;
  amqp_broker_received(broker, &count);
  assert_int_equal(count, 1);
  assert_string_equal(amqp_broker_property(broker, 0, "message_id"), "id-1");
  assert_string_equal(amqp_broker_property(broker, 0, "correlation_id"), "id-1");
  assert_string_equal(amqp_broker_property(broker, 0, "reply_to"), "answers");
  assert_string_equal(amqp_broker_property(broker, 0, "content_type"), "application/json");
  assert_string_equal(amqp_broker_property(broker, 0, "app_id"), "duebox");
  assert_string_equal(amqp_broker_property(broker, 0, "delivery_mode"), "2");
  assert_string_equal(amqp_broker_property(broker, 0, "priority"), "7");
  long long sent = strtoll(amqp_broker_property(broker, 0, "timestamp"), NULL, 10);
  assert_in_range(sent, (long long)time(NULL) - 60, (long long)time(NULL) + 1);
  fake_host_free(host);
}

/* --- what the network does --- */

static void offer_and_poll(struct fake_host *host, int ms) {
  for (int64_t end = fake_host_now_ms() + ms; fake_host_now_ms() < end;) {
    int64_t begin = own_time_ms();
    fake_host_offer(host);
    fake_host_poll(host, 10);
    int64_t took = own_time_ms() - begin;
    if (took > BLOCKS_MS)
      fail_msg("submit() and poll(10 ms) took %lld ms", (long long)took);
  }
}

static void a_half_open_connection_is_found_by_heartbeats(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker);
  amqp_broker_options(broker)->heartbeat_ms = 1000;
  struct fake_host *host = open_sink(broker);
  recover(host, route);
  tcp_relay_freeze(amqp_broker_relay(broker), true);
  size_t first = fake_host_tasks(host);
  for (int i = 0; i < 20; i++)
    add(host, route, NULL, NULL, 1);
  for (int64_t end = fake_host_now_ms() + 10000; fake_host_health(host) == 1 && fake_host_now_ms() < end;)
    offer_and_poll(host, 20);
  assert_int_equal(fake_host_health(host), 0);
  for (size_t i = 0; i < 20; i++)
    expect(host, first + i, DUEBOX_UNKNOWN, "amqp.connection_lost");
  tcp_relay_freeze(amqp_broker_relay(broker), false);
  recover(host, route);
  check_honest(broker, host);
  fake_host_free(host);
}

/* Hundreds of megabytes towards a broker that takes nothing: the driver must go on, whatever the socket holds. */
static void a_broker_that_reads_nothing_never_blocks_the_driver(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker);
  amqp_broker_options(broker)->confirm_timeout_ms = 3000;
  struct fake_host *host = open_sink(broker);
  size_t big = 8 << 20;
  char *body = malloc(big);
  assert_non_null(body);
  memset(body, 'b', big);
  recover(host, route);
  tcp_relay_freeze(amqp_broker_relay(broker), true);
  size_t first = fake_host_tasks(host);
  for (int i = 0; i < 6; i++)
    fake_host_add(host, &(struct fake_task){.route_data = route, .payload = {body, big}});
  offer_and_poll(host, 1500);
  assert_true(fake_host_accepted(host) < fake_host_tasks(host)); /* the rest stays with the host */
  for (int64_t end = fake_host_now_ms() + LIMIT_MS;
       !fake_host_outcome(host, first).completed && fake_host_now_ms() < end;)
    offer_and_poll(host, 20);
  /* Given up: the one under way was certainly not sent as a whole. */
  expect(host, first, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  tcp_relay_freeze(amqp_broker_relay(broker), false);
  settle(host, "what was left");
  recover(host, route);
  check_honest(broker, host);
  fake_host_free(host);
  free(body);
}

static void a_large_message_survives_a_pause_of_the_network(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker);
  struct fake_host *host = open_sink(broker);
  size_t big = 20 << 20;
  char *body = malloc(big);
  assert_non_null(body);
  for (size_t i = 0; i < big; i++)
    body[i] = (char)(i * 31 + (i >> 12));
  recover(host, route);
  tcp_relay_freeze(amqp_broker_relay(broker), true);
  fake_host_add(host, &(struct fake_task){.message_id = "large", .route_data = route, .payload = {body, big}});
  for (int i = 0; i < 10; i++)
    add(host, route, NULL, NULL, 1);
  offer_and_poll(host, 300);
  tcp_relay_freeze(amqp_broker_relay(broker), false);
  settle(host, "a large message and ten small ones");
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), fake_host_tasks(host));
  size_t count;
  const struct contract_message *messages = amqp_broker_received(broker, &count);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(messages[i].id, "large") != 0)
      continue;
    assert_int_equal(messages[i].body.len, big);
    assert_memory_equal(messages[i].body.data, body, big);
  }
  check_honest(broker, host);
  fake_host_free(host);
  free(body);
}

static void the_smallest_frames_carry_a_large_message(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker);
  amqp_broker_options(broker)->frame_max = 4096;
  struct fake_host *host = open_sink(broker);
  size_t big = 1 << 20;
  char *body = malloc(big);
  assert_non_null(body);
  for (size_t i = 0; i < big; i++)
    body[i] = (char)(i * 13 + (i >> 11));
  const struct duebox_header header = {"x-large", {body, 4000}};
  fake_host_add(host, &(struct fake_task){.message_id = "large", .route_data = route, .payload = {body, big}});
  fake_host_add(host,
                &(struct fake_task){.route_data = route, .payload = text("x"), .headers = &header, .header_count = 1});
  settle(host, "a large message, and one whose headers are too large, in frames of 4 KiB");
  expect(host, 0, DUEBOX_DELIVERED, NULL);
  expect(host, 1, DUEBOX_REJECTED, "amqp.headers_too_large");
  size_t count;
  const struct contract_message *messages = amqp_broker_received(broker, &count);
  assert_int_equal(count, 1);
  assert_int_equal(messages[0].body.len, big);
  assert_memory_equal(messages[0].body.data, body, big);
  fake_host_free(host);
  free(body);
}

static void a_confirm_that_never_comes_costs_the_channel_only(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker);
  amqp_broker_options(broker)->confirm_timeout_ms = 5000; /* what a busy broker does confirm is in time */
  struct fake_host *host = open_sink(broker);
  recover(host, route);
  tcp_relay_mute(amqp_broker_relay(broker), true);
  size_t first = fake_host_tasks(host);
  for (int i = 0; i < 20; i++)
    add(host, route, NULL, NULL, 1);
  settle(host, "twenty tasks that nobody confirms");
  for (size_t i = 0; i < 20; i++)
    expect(host, first + i, DUEBOX_UNKNOWN, "amqp.confirm_timeout");
  tcp_relay_mute(amqp_broker_relay(broker), false); /* the late confirms come now, and find nothing */
  recover(host, route);
  assert_int_equal(fake_host_logged(host, "AMQP-CONFIRM-TIMEOUT"), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 0);
  check_honest(broker, host);
  fake_host_free(host);
}

static void a_wrong_password_is_told(void **state) {
  struct amqp_broker *broker = *state;
  struct amqp_options *options = amqp_broker_options(broker);
  options->url = amqp_broker_direct_url(broker, NULL, "wrong-password");
  options->password = NULL;
  struct fake_host *host = open_sink(broker);
  add(host, amqp_broker_route(broker), NULL, NULL, 1);
  settle(host, "a task towards a broker that does not let us in");
  expect(host, 0, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  struct fake_outcome o = fake_host_outcome(host, 0);
  assert_int_equal(o.scope, DUEBOX_SCOPE_INSTANCE);
  assert_non_null(strstr(o.message, "ACCESS_REFUSED"));
  assert_null(strstr(o.message, "wrong-password"));
  assert_true(fake_host_logged(host, "AMQP-DOWN") > 0);
  fake_host_free(host);
}

/* --- what an operator does to the broker --- */

static bool is_down(void *host) { return fake_host_health(host) == 0; }

static void an_alarm_stops_publishing_and_loses_nothing(void **state) {
  amqp_broker_skip_without_control();
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker);
  amqp_broker_options(broker)->confirm_timeout_ms = 5000; /* must not run while the broker has its alarm */
  struct fake_host *host = open_sink(broker);
  recover(host, route);
  amqp_broker_ask(broker, "alarm on");
  size_t first = fake_host_tasks(host);
  for (int i = 0; i < 3; i++) /* the first one makes the broker say that it blocks */
    add(host, route, NULL, NULL, 1);
  fake_host_offer(host);
  assert_true(fake_host_wait(host, is_down, host, LIMIT_MS));
  assert_int_equal(fake_host_logged(host, "AMQP-BLOCKED"), 1);
  for (int i = 0; i < 50; i++)
    add(host, route, NULL, NULL, 1);
  offer_and_poll(host, 7500);
  assert_int_equal(fake_host_accepted(host), first + 3); /* the others stay with the host */
  assert_int_equal(fake_host_completed(host), first);    /* and nobody burnt an attempt */
  amqp_broker_ask(broker, "alarm off");
  settle(host, "everything after the alarm");
  for (size_t i = first; i < first + 53; i++)
    expect(host, i, DUEBOX_DELIVERED, NULL);
  assert_int_equal(fake_host_health(host), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-UNBLOCKED"), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 0);
  check_honest(broker, host);
  fake_host_free(host);
}

static void stop_is_in_time_during_an_alarm(void **state) {
  amqp_broker_skip_without_control();
  struct amqp_broker *broker = *state;
  struct amqp_route *route = amqp_broker_route(broker);
  struct fake_host *host = open_sink(broker);
  recover(host, route);
  amqp_broker_ask(broker, "alarm on");
  for (int i = 0; i < 3; i++)
    add(host, route, NULL, NULL, 1);
  fake_host_offer(host);
  assert_true(fake_host_wait(host, is_down, host, LIMIT_MS));
  fake_host_close(host);
  int64_t took = fake_host_stop(host, 1000);
  if (took > 2000)
    fail_msg("stop(1000 ms) took %lld ms", (long long)took);
  assert_int_equal(fake_host_count(host, DUEBOX_UNKNOWN), 3);
  fake_host_free(host);
  amqp_broker_ask(broker, "alarm off");
}

static void hurt_under_load(struct amqp_broker *broker, const char *what) {
  struct amqp_route *route = amqp_broker_route(broker);
  struct fake_host *host = open_sink(broker);
  recover(host, route);
  for (int i = 0; i < 300; i++)
    add(host, route, NULL, NULL, 1);
  fake_host_offer(host);
  amqp_broker_ask(broker, what);
  settle(host, what);
  recover(host, route);
  check_honest(broker, host);
  assert_true(fake_host_logged(host, "AMQP-DOWN") > 0);
  assert_int_equal(fake_host_logged(host, "AMQP-UP"), 1);
  fake_host_free(host);
}

static void a_restart_of_the_broker_is_survived(void **state) {
  amqp_broker_skip_without_control();
  hurt_under_load(*state, "restart");
}

static void a_connection_closed_by_an_operator_comes_back(void **state) {
  amqp_broker_skip_without_control();
  hurt_under_load(*state, "close connections");
}

int main(void) {
  if (!amqp_broker_url())
    return amqp_broker_skip_all("amqp faults");
#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_broker_set_up, amqp_broker_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(unroutable_is_never_called_delivered),
      ROW(a_full_queue_says_nack),
      ROW(a_missing_exchange_costs_nobody_else_anything),
      ROW(a_deleted_exchange_is_found_one_by_one),
      ROW(a_header_that_closes_channels_costs_nobody_else_anything),
      ROW(what_amqp_cannot_carry_is_rejected_alone),
      ROW(properties_arrive_as_agreed),
      ROW(a_half_open_connection_is_found_by_heartbeats),
      ROW(a_broker_that_reads_nothing_never_blocks_the_driver),
      ROW(a_large_message_survives_a_pause_of_the_network),
      ROW(the_smallest_frames_carry_a_large_message),
      ROW(a_confirm_that_never_comes_costs_the_channel_only),
      ROW(a_wrong_password_is_told),
      ROW(an_alarm_stops_publishing_and_loses_nothing),
      ROW(stop_is_in_time_during_an_alarm),
      ROW(a_restart_of_the_broker_is_survived),
      ROW(a_connection_closed_by_an_operator_comes_back),
  };
  return cmocka_run_group_tests_name("amqp faults", tests, NULL, NULL);
}
