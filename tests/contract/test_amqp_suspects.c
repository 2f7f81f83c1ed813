/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_suspects.c - a channel breaks under many messages: who is to blame, who waits, who pays.
 * Against a broker that a test leads by the hand; needs no server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_vendor.h"
#include "tests/contract/amqp_lab.h"

static size_t add_to(struct fake_host *host, struct amqp_lab *f, const char *route, const char *key, size_t len) {
  static const char zeros[64];
  return fake_host_add(
      host,
      &(struct fake_task){.route = route, .route_data = &f->route, .key = {key, strlen(key)}, .payload = {zeros, len}});
}

static void confirm(struct amqp_lab *f, struct amqp_script_message m) {
  amqp_script_ack(f->script, m.channel, m.tag, false);
}

static void refuse(struct amqp_lab *f, struct amqp_script_message m, uint16_t code, const char *text) {
  amqp_script_close_channel(f->script, m.channel, code, text);
}

/* A channel breaks because of one of five. The confirmed one is not sent again; each of the others goes once more,
 * alone, and stays open: no failure is counted against it. Only the guilty one ends badly. */
static void among_several_the_guilty_one_is_found(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  char id[5][64];
  amqp_lab_add(host, f, 5);
  amqp_lab_published(host, f, 6);
  for (size_t i = 0; i < 5; i++)
    snprintf(id[i], sizeof(id[i]), "%s", amqp_script_message(f->script, i + 1).id);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 2, false);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  static const size_t order[] = {0, 2, 3, 4};
  for (size_t i = 0; i < 4; i++) {
    struct amqp_script_message m = amqp_lab_probed(host, f, 6 + i);
    assert_string_equal(m.id, id[order[i]]);
    assert_int_equal(fake_host_completed(host), 2 + i);
    if (i == 2)
      refuse(f, m, 406, "PRECONDITION_FAILED");
    else
      confirm(f, m);
    amqp_lab_completed(host, 3 + i);
  }
  amqp_lab_expect_all(host, 1, 4, DUEBOX_DELIVERED, "");
  amqp_lab_expect(host, 4, DUEBOX_REJECTED, "amqp.precondition_failed");
  amqp_lab_expect(host, 5, DUEBOX_DELIVERED, "");
  amqp_lab_add(host, f, 1); /* tags of the new channel start at 1 again */
  amqp_lab_published(host, f, 11);
  assert_int_equal(amqp_script_message(f->script, 10).channel, AMQP_LAB_FLOW);
  assert_int_equal(amqp_script_message(f->script, 10).tag, 1);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false);
  amqp_lab_completed(host, 7);
  amqp_lab_expect(host, 6, DUEBOX_DELIVERED, "");
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
}

/* Hundreds of suspects of one route: those of another route do not wait for them, also while the first route's queue
 * confirms nothing. Nor do fresh tasks, for a message that is refused for itself says nothing about the exchange. */
static void suspects_of_one_route_delay_no_other(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  char first[64], second[3][64];
  for (int i = 0; i < 300; i++)
    add_to(host, f, "first", "", 2);
  for (int i = 0; i < 3; i++)
    add_to(host, f, "second", "", 2);
  amqp_lab_published(host, f, 304);
  snprintf(first, sizeof first, "%s", amqp_script_message(f->script, 1).id);
  for (size_t i = 0; i < 3; i++)
    snprintf(second[i], sizeof second[i], "%s", amqp_script_message(f->script, 301 + i).id);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  struct amqp_script_message waits = amqp_lab_probed(host, f, 304); /* for its confirm, to the end */
  assert_string_equal(waits.id, first);
  for (size_t i = 0; i < 3; i++) {
    amqp_lab_published(host, f, 306 + i);
    struct amqp_script_message m = amqp_script_message(f->script, 305 + i);
    assert_string_equal(m.id, second[i]);
    assert_int_not_equal(m.channel, waits.channel);
    confirm(f, m);
    amqp_lab_completed(host, 2 + i);
  }
  add_to(host, f, "second", "", 2);
  amqp_lab_published(host, f, 309);
  assert_int_equal(amqp_script_message(f->script, 308).channel, AMQP_LAB_FLOW);
  fake_host_free(host);
}

/* There are fewer probe channels than routes: each of these has its turn before one has a second. */
static void routes_take_turns(void **state) {
  enum { ROUTES = 9, EACH = 20 };
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  unsigned turns[ROUTES] = {0};
  for (int i = 0; i < ROUTES * EACH; i++) {
    char route[] = {(char)('a' + i / EACH), '\0'};
    add_to(host, f, route, "", 2);
  }
  amqp_lab_published(host, f, 1 + ROUTES * EACH);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  size_t at = 1 + ROUTES * EACH;
  for (size_t i = 0; i < (size_t)ROUTES * 3; i++) {
    amqp_lab_published(host, f, at + i + 1);
    struct amqp_script_message m = amqp_script_message(f->script, at + i);
    assert_int_not_equal(m.channel, AMQP_LAB_FLOW);
    turns[(strtoul(strrchr(m.id, '-') + 1, NULL, 10) - 1) / EACH]++;
    for (size_t r = 0; r < ROUTES; r++)
      assert_in_range(turns[r] + 1, turns[0], turns[0] + 2);
    amqp_script_ack(f->script, m.channel, m.tag, false);
  }
  fake_host_free(host);
}

/* A right that is missing for one routing key: others of the route that were on the channel are delivered, and the key
 * itself, of which a copy may have left, pays no failure. Later ones of it break the channel of nobody else. */
static void a_refused_routing_key_costs_nobody_a_failure(void **state) {
  static const char text[] = "ACCESS_REFUSED - write access to topic 'bad' in exchange 'x' in vhost '/' refused";
  struct amqp_lab *f = *state;
  f->route.exchange = "x";
  f->route.routing_key = "{task_key}";
  struct fake_host *host = amqp_lab_open_sink(f);
  static const char *const keys[] = {"good", "bad", "good", "bad"};
  for (size_t i = 0; i < 4; i++)
    add_to(host, f, "topics", keys[i], 2);
  amqp_lab_published(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 403, text);
  confirm(f, amqp_lab_probed(host, f, 5));
  amqp_lab_completed(host, 2);
  refuse(f, amqp_lab_probed(host, f, 6), 403, text);
  amqp_lab_completed(host, 4);
  confirm(f, amqp_lab_probed(host, f, 7));
  amqp_lab_completed(host, 5);
  for (size_t i = 1; i < 5; i++) {
    bool good = i % 2;
    amqp_lab_expect(host, i, good ? DUEBOX_DELIVERED : DUEBOX_UNKNOWN, good ? "" : "amqp.channel_closed");
    assert_int_equal(fake_host_outcome(host, i).blameless, !good);
  }
  add_to(host, f, "topics", "good", 2);
  add_to(host, f, "topics", "bad", 2);
  amqp_lab_published(host, f, 10);
  assert_int_equal(amqp_script_message(f->script, 8).channel, AMQP_LAB_FLOW);
  refuse(f, amqp_lab_probed(host, f, 9), 403, text);
  amqp_lab_completed(host, 6);
  amqp_lab_expect(host, 6, DUEBOX_UNAVAILABLE, "amqp.access_refused");
  assert_int_equal(fake_host_outcome(host, 6).scope, DUEBOX_SCOPE_TARGET);
  assert_false(fake_host_outcome(host, 5).completed); /* its channel is whole */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false);
  amqp_lab_completed(host, 7);
  add_to(host, f, "topics", "bad", 2); /* the right was given */
  confirm(f, amqp_lab_probed(host, f, 10));
  amqp_lab_completed(host, 8);
  add_to(host, f, "topics", "bad", 2);
  amqp_lab_published(host, f, 12);
  assert_int_equal(amqp_script_message(f->script, 11).channel, AMQP_LAB_FLOW);
  fake_host_free(host);
}

/* A producer of messages that are too large breaks the channel of the others once, not with each of them. */
static void a_size_that_was_refused_goes_alone(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  add_to(host, f, "small", "", 2);
  add_to(host, f, "large", "", 50);
  amqp_lab_published(host, f, 3);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED - message size 50 is larger than 40");
  confirm(f, amqp_lab_probed(host, f, 3));
  amqp_lab_completed(host, 2);
  refuse(f, amqp_lab_probed(host, f, 4), 406, "PRECONDITION_FAILED");
  amqp_lab_completed(host, 3);
  amqp_lab_expect(host, 2, DUEBOX_REJECTED, "amqp.precondition_failed");
  add_to(host, f, "small", "", 49);
  add_to(host, f, "other", "", 60);
  amqp_lab_published(host, f, 7);
  assert_int_equal(amqp_script_message(f->script, 5).channel, AMQP_LAB_FLOW);
  refuse(f, amqp_lab_probed(host, f, 6), 406, "PRECONDITION_FAILED");
  amqp_lab_completed(host, 4);
  amqp_lab_expect(host, 4, DUEBOX_REJECTED, "amqp.precondition_failed");
  add_to(host, f, "large", "", 50); /* the limit was raised */
  confirm(f, amqp_lab_probed(host, f, 7));
  amqp_lab_completed(host, 5);
  add_to(host, f, "large", "", 50);
  amqp_lab_published(host, f, 9);
  assert_int_equal(amqp_script_message(f->script, 8).channel, AMQP_LAB_FLOW);
  assert_false(fake_host_outcome(host, 3).completed);
  fake_host_free(host);
}

/* The exchange went away under them. One copy of each may be in a queue, so none may be called unsent; and the others
 * need not break a channel each to learn it. */
static void suspects_of_an_exchange_that_is_gone(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 4);
  amqp_lab_published(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 404, "NOT_FOUND");
  refuse(f, amqp_lab_probed(host, f, 5), 404, "NOT_FOUND");
  amqp_lab_completed(host, 5);
  amqp_lab_expect_all(host, 1, 5, DUEBOX_UNKNOWN, "amqp.channel_closed");
  for (size_t i = 1; i < 5; i++)
    assert_true(fake_host_outcome(host, i).blameless);
  assert_int_equal(amqp_script_published(f->script), 6);
  fake_host_free(host);
}

/* Its queue went away, perhaps, after the first copy was in it. */
static void a_suspect_that_is_returned_may_have_arrived(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 2);
  amqp_lab_published(host, f, 3);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  struct amqp_script_message m = amqp_lab_probed(host, f, 3);
  amqp_script_return(f->script, m.channel, m.id);
  confirm(f, m);
  amqp_lab_completed(host, 2);
  amqp_lab_expect(host, 1, DUEBOX_UNKNOWN, "amqp.channel_closed");
  assert_true(fake_host_outcome(host, 1).blameless);
  confirm(f, amqp_lab_probed(host, f, 4));
  amqp_lab_completed(host, 3);
  amqp_lab_expect(host, 2, DUEBOX_DELIVERED, "");
  fake_host_free(host);
}

/* What was open when a channel broke may have arrived: it is never handed back as unsent, whatever comes next. */
static void suspects_are_never_called_unsent(void **state) {
  struct amqp_lab *f = *state;
  amqp_connection_blocked_t blocked = {.reason = amqp_cstring_bytes("low on memory")};
  amqp_connection_unblocked_t unblocked = {0};
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 4);
  amqp_lab_published(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  struct amqp_script_message m = amqp_lab_probed(host, f, 5);
  amqp_script_method(f->script, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
  confirm(f, m);
  amqp_lab_completed(host, 2);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_health(host) == 1 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_completed(host), 2); /* the others wait for the end of the alarm */
  amqp_script_method(f->script, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &unblocked);
  (void)amqp_lab_probed(host, f, 6);
  amqp_script_drop(f->script);
  amqp_lab_completed(host, 5);
  amqp_lab_expect(host, 1, DUEBOX_DELIVERED, "");
  amqp_lab_expect_all(host, 2, 5, DUEBOX_UNKNOWN, "amqp.connection_lost");
  fake_host_free(host);
}

/* A queue that does not confirm holds its suspects for one confirm_timeout, not for one each. Those of other queues are
 * not to blame for it. */
static void suspects_that_are_not_confirmed_either(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 8000; /* all is sent again long before */
  f->route.routing_key = "{task_key}";
  struct fake_host *host = amqp_lab_open_sink(f);
  for (size_t i = 0; i < 4; i++)
    add_to(host, f, "queues", i % 2 ? "other" : "stuck", 2);
  amqp_lab_published(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  (void)amqp_lab_probed(host, f, 5);
  amqp_lab_completed(host, 5);
  for (size_t i = 1; i < 5; i++) {
    amqp_lab_expect(host, i, DUEBOX_UNKNOWN, i % 2 ? "amqp.confirm_timeout" : "amqp.channel_closed");
    assert_int_equal(fake_host_outcome(host, i).blameless, i % 2 == 0);
  }
  assert_int_equal(amqp_script_published(f->script), 6);
  amqp_lab_comes_back(host, f, 1);
  fake_host_free(host);
}

/* All routes share the channel that is left beside the probe channels. */
static int set_up(void **state) {
  amqp_lab_set_up(state);
  struct amqp_lab *f = *state;
  amqp_script_set_channels(f->script, 5);
  return 0;
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, amqp_lab_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(among_several_the_guilty_one_is_found),
      ROW(suspects_of_one_route_delay_no_other),
      ROW(routes_take_turns),
      ROW(a_refused_routing_key_costs_nobody_a_failure),
      ROW(a_size_that_was_refused_goes_alone),
      ROW(suspects_of_an_exchange_that_is_gone),
      ROW(a_suspect_that_is_returned_may_have_arrived),
      ROW(suspects_are_never_called_unsent),
      ROW(suspects_that_are_not_confirmed_either),
  };
  return cmocka_run_group_tests_name("amqp suspects", tests, NULL, NULL);
}
