/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_results.c - a result source of the amqp plugin and what a real broker does to it. Needs the
 * same as test_amqp_faults.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/contract/amqp_broker.h"
#include "tests/support/fake_host.h"

extern const struct duebox_plugin duebox_plugin_v1;

enum { LIMIT_MS = 30000 };

static bool is_down(void *host) { return fake_host_health(host) == 0; }
static bool is_up(void *host) { return fake_host_health(host) == 1; }

static struct fake_host *open_source(struct amqp_broker *broker) {
  return fake_host_open(&(struct fake_host_config){.plugin = &duebox_plugin_v1,
                                                   .role = DUEBOX_ROLE_SOURCE,
                                                   .options = amqp_broker_options(broker),
                                                   .source = amqp_broker_source(broker),
                                                   .max_record = 1 << 20});
}

static void publish_text(struct amqp_broker *broker, const char *body) {
  amqp_broker_publish(broker, body, strlen(body));
}

static void ack_all(struct fake_host *host) {
  for (size_t i = 0; i < fake_host_results(host); i++)
    if (fake_host_result(host, i).ack == FAKE_OPEN)
      fake_host_ack(host, i, true);
}

static void a_missing_queue_is_told_and_found_later(void **state) {
  struct amqp_broker *broker = *state;
  amqp_broker_delete(broker, amqp_broker_queue(broker));
  struct fake_host *host = open_source(broker);
  assert_true(fake_host_wait(host, is_down, host, LIMIT_MS));
  for (int i = 0; i < 50; i++)
    fake_host_poll(host, 20);
  assert_int_equal(fake_host_logged(host, "AMQP-QUEUE"), 1); /* once, not at each attempt */
  amqp_broker_declare(broker, amqp_broker_queue(broker), 0);
  publish_text(broker, "late");
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  assert_int_equal(fake_host_health(host), 1);
  ack_all(host);
  fake_host_free(host);
}

static void a_queue_deleted_under_way_is_read_again(void **state) {
  struct amqp_broker *broker = *state;
  struct fake_host *host = open_source(broker);
  publish_text(broker, "one");
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  amqp_broker_delete(broker, amqp_broker_queue(broker));
  assert_true(fake_host_wait(host, is_down, host, LIMIT_MS));
  amqp_broker_declare(broker, amqp_broker_queue(broker), 0);
  publish_text(broker, "two");
  assert_true(fake_host_wait_results(host, 2, LIMIT_MS));
  assert_string_equal(fake_host_result(host, 1).body, "two");
  fake_host_ack(host, 0, true); /* of a channel that is gone, with the tag that "two" has on the new one */
  assert_true(fake_host_wait(host, is_up, host, LIMIT_MS));
  fake_host_close(host);
  fake_host_stop(host, 5000); /* "two" was not acknowledged: it must still be there */
  fake_host_free(host);
  host = open_source(broker);
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  assert_string_equal(fake_host_result(host, 0).body, "two");
  ack_all(host);
  fake_host_free(host);
}

static void a_full_host_does_not_cost_the_connection(void **state) {
  struct amqp_broker *broker = *state;
  amqp_broker_options(broker)->heartbeat_ms = 3000;
  struct fake_host *host = open_source(broker);
  fake_host_set_room(host, 1);
  publish_text(broker, "one");
  publish_text(broker, "two");
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  for (int64_t end = fake_host_now_ms() + 9000; fake_host_now_ms() < end;) /* three heartbeats without reading */
    fake_host_poll(host, 50);
  assert_true(fake_host_refused(host));
  fake_host_resume(host, 10);
  assert_true(fake_host_wait_results(host, 2, LIMIT_MS));
  for (int i = 0; i < 20; i++)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_results(host), 2); /* delivered again would mean: the connection was lost */
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 0);
  ack_all(host);
  fake_host_free(host);
}

static void a_half_open_source_finds_out_and_loses_nothing(void **state) {
  struct amqp_broker *broker = *state;
  amqp_broker_options(broker)->heartbeat_ms = 1000;
  struct fake_host *host = open_source(broker);
  publish_text(broker, "one");
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  ack_all(host);
  fake_host_poll(host, 10);
  tcp_relay_freeze(amqp_broker_relay(broker), true);
  publish_text(broker, "two");
  assert_true(fake_host_wait(host, is_down, host, LIMIT_MS));
  tcp_relay_freeze(amqp_broker_relay(broker), false);
  bool found = false;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; !found && fake_host_now_ms() < end; fake_host_poll(host, 20))
    for (size_t i = 0; i < fake_host_results(host); i++)
      found |= strcmp(fake_host_result(host, i).body, "two") == 0;
  assert_true(found);
  ack_all(host);
  fake_host_free(host);
}

static void a_restart_of_the_broker_loses_no_result(void **state) {
  amqp_broker_skip_without_control();
  struct amqp_broker *broker = *state;
  struct fake_host *host = open_source(broker);
  publish_text(broker, "one");
  publish_text(broker, "two");
  assert_true(fake_host_wait_results(host, 2, LIMIT_MS));
  fake_host_ack(host, 0, true);
  fake_host_poll(host, 50);
  amqp_broker_ask(broker, "restart");
  assert_true(fake_host_wait_results(host, 3, LIMIT_MS)); /* "two" again */
  assert_string_equal(fake_host_result(host, 2).body, "two");
  ack_all(host);
  fake_host_free(host);
}

/* ---- one reads, and others stand by ---- */

static const struct { bool quorum, single; } kinds[] = {{false, false}, {true, false}, {false, true}, {true, true}};

static void declare_kind(struct amqp_broker *broker, size_t kind) {
  amqp_broker_delete(broker, amqp_broker_queue(broker));
  amqp_broker_declare_kind(broker, amqp_broker_queue(broker), kinds[kind].quorum, kinds[kind].single);
}

static void expect_from(struct fake_host *host, size_t first, int number) {
  char body[16];
  for (size_t i = first; i < fake_host_results(host); i++) {
    snprintf(body, sizeof(body), "%d", number++);
    assert_string_equal(fake_host_result(host, i).body, body);
  }
}

static void publish_numbers(struct amqp_broker *broker, int from, int to) {
  char body[16];
  for (int i = from; i <= to; i++) {
    snprintf(body, sizeof(body), "%d", i);
    publish_text(broker, body);
  }
}

/* What the first one had and did not acknowledge comes to the second one, in front of the rest. */
static void one_of_two_reads_and_the_other_takes_over(void **state) {
  struct amqp_broker *broker = *state;
  for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
    declare_kind(broker, kind);
    struct fake_host *one = open_source(broker);
    publish_numbers(broker, 1, 4);
    assert_true(fake_host_wait_results(one, 4, LIMIT_MS));
    struct fake_host *two = open_source(broker);
    for (int64_t end = fake_host_now_ms() + LIMIT_MS;
         fake_host_logged(two, "AMQP-STANDBY") == 0 && fake_host_now_ms() < end;)
      fake_host_poll(two, 10);
    assert_int_equal(fake_host_logged(two, "AMQP-STANDBY"), 1);
    publish_numbers(broker, 5, 6);
    assert_true(fake_host_wait_results(one, 6, LIMIT_MS));
    fake_host_ack(one, 0, true);
    fake_host_poll(one, 10);
    for (int64_t end = fake_host_now_ms() + 2500; fake_host_now_ms() < end;) { /* it asks again, and in vain */
      fake_host_poll(one, 10);
      fake_host_poll(two, 10);
    }
    assert_int_equal(fake_host_results(two), 0);
    assert_int_equal(fake_host_health(two), 1);
    fake_host_close(one);
    fake_host_stop(one, 5000);
    fake_host_free(one);
    assert_true(fake_host_wait_results(two, 5, LIMIT_MS));
    expect_from(two, 0, 2);
    assert_int_equal(fake_host_logged(two, "AMQP-READING"), 1);
    assert_int_equal(fake_host_logged(two, "AMQP-QUEUE"), 0);
    ack_all(two);
    fake_host_free(two);
  }
}

/* The host has set all aside that the prefetch count permits. Others come behind them all the same, and in order. */
static void what_is_set_aside_leaves_room(void **state) {
  struct amqp_broker *broker = *state;
  amqp_broker_source(broker)->prefetch = 3;
  for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
    declare_kind(broker, kind);
    struct fake_host *host = open_source(broker);
    publish_numbers(broker, 1, 20);
    assert_true(fake_host_wait_results(host, 20, LIMIT_MS));
    expect_from(host, 0, 1);
    ack_all(host);
    publish_numbers(broker, 21, 60);
    for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_results(host) < 60 && fake_host_now_ms() < end;) {
      fake_host_poll(host, 10);
      ack_all(host);
    }
    assert_int_equal(fake_host_results(host), 60);
    expect_from(host, 0, 1);
    fake_host_close(host);
    fake_host_stop(host, 5000);
    fake_host_free(host);
    assert_int_equal(amqp_broker_depth(broker, amqp_broker_queue(broker)), 0);
  }
}

/* Each costs the connection, and none the results around it. Some come twice: the broker may lose an acknowledgement
 * with the connection. */
static void headers_that_outgrew_a_frame(void **state) {
  enum { DEAD = 20 };
  struct amqp_broker *broker = *state;
  struct fake_host *host = open_source(broker);
  char body[16];
  for (int i = 0; i < DEAD; i++) {
    snprintf(body, sizeof(body), "%d", i);
    amqp_broker_publish_dead(broker, "dead");
    publish_text(broker, body);
  }
  bool read[DEAD] = {false};
  size_t dead = 0, distinct = 0, seen = 0;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; (dead < DEAD || distinct < DEAD) && fake_host_now_ms() < end;) {
    fake_host_poll(host, 10);
    ack_all(host);
    for (; seen < fake_host_results(host); seen++) {
      struct fake_result result = fake_host_result(host, seen);
      int number = result.truncated ? 0 : atoi(result.body);
      dead += result.truncated;
      distinct += !result.truncated && !read[number];
      read[number] |= !result.truncated;
    }
  }
  assert_true(dead >= DEAD);
  assert_int_equal(distinct, DEAD);
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 0);
  assert_int_equal(fake_host_logged(host, "AMQP-STANDBY"), 0); /* it takes nobody for another reader */
  fake_host_close(host);
  fake_host_stop(host, 5000);
  fake_host_free(host);
}

int main(void) {
  if (!amqp_broker_url())
    return amqp_broker_skip_all("amqp results");
#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_broker_set_up, amqp_broker_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(a_missing_queue_is_told_and_found_later),
      ROW(a_queue_deleted_under_way_is_read_again),
      ROW(a_full_host_does_not_cost_the_connection),
      ROW(a_half_open_source_finds_out_and_loses_nothing),
      ROW(a_restart_of_the_broker_loses_no_result),
      ROW(one_of_two_reads_and_the_other_takes_over),
      ROW(what_is_set_aside_leaves_room),
      ROW(headers_that_outgrew_a_frame),
  };
  return cmocka_run_group_tests_name("amqp results", tests, NULL, NULL);
}
