/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_routes.c - one route of an amqp instance delays no other. (All of them used to share a
 * channel, of which RabbitMQ works off one message after the other: a fanout to many queues held up everything else,
 * and what waited behind it was given up and sent twice.) Against a broker that a test leads by the hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/contract/amqp_lab.h"

enum { LAST_PROBE = 5 };

static void add_to(struct fake_host *host, struct amqp_lab *f, const char *route, int n) {
  for (int i = 0; i < n; i++)
    fake_host_add(host, &(struct fake_task){.route = route, .route_data = &f->route, .payload = {"{}", 2}});
}

/* Confirms single tasks of the route until one comes over a channel that is no probe channel, and returns that. */
static uint16_t channel_of(struct fake_host *host, struct amqp_lab *f, const char *route) {
  for (;;) {
    size_t before = amqp_script_published(f->script), done = fake_host_completed(host);
    add_to(host, f, route, 1);
    amqp_lab_published(host, f, before + 1);
    struct amqp_script_message m = amqp_script_message(f->script, before);
    amqp_script_ack(f->script, m.channel, m.tag, false);
    amqp_lab_completed(host, done + 1);
    if (m.channel == AMQP_LAB_FLOW || m.channel > LAST_PROBE)
      return m.channel;
  }
}

/* What breaks the channel of one route leaves those of the others alone, and what nothing confirms as well. */
static void routes_have_channels_of_their_own(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  uint16_t first = channel_of(host, f, "first"), second = channel_of(host, f, "second");
  assert_int_not_equal(first, second);
  size_t done = fake_host_completed(host), before = amqp_script_published(f->script);
  add_to(host, f, "first", 5);
  add_to(host, f, "second", 3);
  amqp_lab_published(host, f, before + 8);
  amqp_script_close_channel(f->script, first, 406, "PRECONDITION_FAILED");
  amqp_script_ack(f->script, second, 0, true);
  amqp_lab_completed(host, done + 3);
  amqp_lab_expect_all(host, done + 5, done + 8, DUEBOX_DELIVERED, "");
  amqp_lab_published(host, f, before + 9); /* the first one of "first", alone; nothing of "second" again */
  assert_string_equal(amqp_script_message(f->script, before + 8).id, amqp_script_message(f->script, before).id);
  assert_int_equal(fake_host_completed(host), done + 3);
  assert_int_equal(channel_of(host, f, "second"), second);
  fake_host_free(host);
}

/* The first task of a route does not wait until its channel is open: it goes alone, at once. */
static void a_channel_that_does_not_open_yet_holds_up_nobody(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  (void)channel_of(host, f, "first");
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_CHANNEL);
  for (size_t done = fake_host_completed(host), i = 0; i < 3; i++) {
    add_to(host, f, "second", 1);
    struct amqp_script_message m = amqp_lab_probed(host, f, done + i);
    amqp_script_ack(f->script, m.channel, m.tag, false);
    amqp_lab_completed(host, done + i + 1);
  }
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), fake_host_completed(host));
  fake_host_free(host);
}

/* More routes than the broker permits channels: some share one. */
static void more_routes_than_channels(void **state) {
  struct amqp_lab *f = *state;
  amqp_script_set_channels(f->script, LAST_PROBE + 2);
  struct fake_host *host = amqp_lab_open_sink(f);
  bool used[16] = {false};
  for (char route[] = "a"; route[0] <= 'h'; route[0]++) {
    uint16_t channel = channel_of(host, f, route);
    assert_true(channel <= LAST_PROBE + 2);
    used[channel] = true;
  }
  assert_true(used[LAST_PROBE + 1] && used[LAST_PROBE + 2]);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), fake_host_tasks(host));
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
}

/* RabbitMQ reads one connection in order: while it is at work on what one route has sent before, confirm_timeout does
 * not run for another. Nothing is given up here, and so nothing is sent twice. Nobody looks at the time between a
 * confirm and the one before, so this does not depend on the machine. */
static void no_route_pays_for_the_wait_behind_another(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 1000;
  struct fake_host *host = amqp_lab_open_sink(f);
  uint16_t first = channel_of(host, f, "first"), second = channel_of(host, f, "second");
  size_t done = fake_host_completed(host);
  add_to(host, f, "first", 10);
  amqp_lab_published(host, f, done + 10);
  add_to(host, f, "second", 1);
  amqp_lab_published(host, f, done + 11);
  uint64_t tag = amqp_script_message(f->script, done).tag;
  for (size_t i = 0; i < 10; i++) {
    usleep(200 * 1000);
    amqp_script_ack(f->script, first, tag + i, false);
    amqp_lab_completed(host, done + 1 + i);
  }
  amqp_script_ack(f->script, second, 0, true);
  amqp_lab_completed(host, done + 11);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), done + 11);
  assert_int_equal(amqp_script_published(f->script), done + 11);
  fake_host_free(host);
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_lab_set_up, amqp_lab_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(routes_have_channels_of_their_own),
      ROW(a_channel_that_does_not_open_yet_holds_up_nobody),
      ROW(more_routes_than_channels),
      ROW(no_route_pays_for_the_wait_behind_another),
  };
  return cmocka_run_group_tests_name("amqp routes", tests, NULL, NULL);
}
