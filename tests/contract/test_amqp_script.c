/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_script.c - a sink of the amqp plugin against a broker that a test leads by the hand:
 * confirms in any order, late ones, false ones, and a protocol broken in every way that matters. Needs no server.
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
#include "tests/support/own_time.h"

static void add(struct fake_host *host, struct amqp_lab *f, int n) {
  for (int i = 0; i < n; i++)
    fake_host_add(host, &(struct fake_task){.route_data = &f->route, .payload = {"{}", 2}});
}

/* Offers and polls until the broker holds `count` messages. */
static void published(struct fake_host *host, struct amqp_lab *f, size_t count) {
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS; amqp_script_published(f->script) < count;) {
    if (amqp_lab_now_ms() >= end)
      fail_msg("%zu of %zu messages were published", amqp_script_published(f->script), count);
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
}

static void completed(struct fake_host *host, size_t count) {
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_completed(host) < count;) {
    if (amqp_lab_now_ms() >= end)
      fail_msg("%zu of %zu tasks were completed", fake_host_completed(host), count);
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
}

/* A sink whose exchange has proven itself: the first message went over the probe channel and was confirmed. */
static struct fake_host *open_sink(struct amqp_lab *f) {
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  size_t before = amqp_script_published(f->script);
  add(host, f, 1);
  published(host, f, before + 1);
  assert_int_equal(amqp_script_message(f->script, before).channel, AMQP_LAB_PROBE);
  amqp_script_ack(f->script, AMQP_LAB_PROBE, 1, false);
  completed(host, 1);
  assert_int_equal(fake_host_outcome(host, 0).cls, DUEBOX_DELIVERED);
  return host;
}

static void expect(struct fake_host *host, size_t index, enum duebox_outcome_class cls, const char *error_class) {
  struct fake_outcome o = fake_host_outcome(host, index);
  if (!o.completed || o.cls != cls || strcmp(o.error_class, error_class) != 0)
    fail_msg("task %zu (%s): class %d %s \"%s\", expected class %d %s", index, o.message_id, (int)o.cls, o.error_class,
             o.message, (int)cls, error_class);
}

static void expect_all(struct fake_host *host, size_t from, size_t to, enum duebox_outcome_class cls,
                       const char *error_class) {
  for (size_t i = from; i < to; i++)
    expect(host, i, cls, error_class);
}

/* After all that was done to it: a new connection, and a message passes. */
static void comes_back(struct fake_host *host, struct amqp_lab *f, unsigned connections) {
  size_t before = amqp_script_published(f->script), delivered = fake_host_count(host, DUEBOX_DELIVERED);
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS;
       amqp_script_published(f->script) == before && amqp_lab_now_ms() < end;) {
    add(host, f, 1);
    fake_host_offer(host);
    for (int i = 0; i < 10 && amqp_script_published(f->script) == before; i++)
      fake_host_poll(host, 10);
  }
  assert_true(amqp_script_published(f->script) > before);
  assert_int_equal(amqp_script_connections(f->script), connections);
  struct amqp_script_message m = amqp_script_message(f->script, before);
  amqp_script_ack(f->script, m.channel, m.tag, false);
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS;
       fake_host_count(host, DUEBOX_DELIVERED) == delivered && amqp_lab_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), delivered + 1);
}

/* --- confirms --- */

static void confirms_in_any_order(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  enum { N = 500 };
  bool done[N + 1] = {false};
  add(host, f, N);
  published(host, f, N + 1);
  srand(5);
  for (int left = N; left > 0;) {
    uint64_t tag = 1 + (uint64_t)rand() % N;
    bool multiple = rand() % 40 == 0 && tag < 30;
    if (done[tag] && !multiple)
      continue;
    for (uint64_t t = multiple ? 1 : tag; t <= tag; t++) {
      left -= !done[t];
      done[t] = true;
    }
    amqp_script_ack(f->script, AMQP_LAB_FLOW, tag, multiple);
    fake_host_poll(host, 0);
  }
  completed(host, N + 1);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), N + 1);
  fake_host_free(host);
}

static void every_kind_of_confirm(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  add(host, f, 10);
  published(host, f, 11);
  amqp_script_nack(f->script, AMQP_LAB_FLOW, 3, true);  /* 1..3 */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 5, false);  /* 5 */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 5, false);  /* again: nothing happens */
  amqp_script_nack(f->script, AMQP_LAB_FLOW, 5, false); /* and it does not become worse either */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 6, true);   /* 4 and 6 */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 0, true);   /* all so far: 7..10 */
  completed(host, 11);
  expect_all(host, 1, 4, DUEBOX_RETRY, "amqp.nack");
  expect_all(host, 4, 11, DUEBOX_DELIVERED, "");
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
}

static void a_late_confirm_finds_nothing(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 3000;
  struct fake_host *host = open_sink(f);
  add(host, f, 1);
  published(host, f, 2);
  uint64_t tag = 2;
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS, after = 5; after > 0 && amqp_lab_now_ms() < end; tag++) {
    after -= fake_host_outcome(host, 1).completed; /* others are confirmed meanwhile, and some more after it */
    add(host, f, 1);
    published(host, f, tag + 1);
    amqp_script_ack(f->script, AMQP_LAB_FLOW, tag, false);
    completed(host, fake_host_completed(host) + 1);
    for (int i = 0; i < 5; i++)
      fake_host_poll(host, 10);
  }
  expect(host, 1, DUEBOX_UNKNOWN, "amqp.confirm_timeout");
  for (size_t i = 2; i < fake_host_tasks(host); i++)
    if (fake_host_outcome(host, i).completed)
      expect(host, i, DUEBOX_DELIVERED, "");
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false); /* now it comes */
  add(host, f, 1);
  published(host, f, tag + 1);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 0, true);
  completed(host, fake_host_tasks(host));
  assert_int_equal(amqp_script_connections(f->script), 1);
  assert_int_equal(fake_host_count(host, DUEBOX_UNKNOWN), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-CONFIRM-TIMEOUT"), 0);
  fake_host_free(host);
}

static void a_return_decides_before_its_ack(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  add(host, f, 3);
  published(host, f, 4);
  char id[64];
  snprintf(id, sizeof(id), "%s", amqp_script_message(f->script, 2).id);
  amqp_script_return(f->script, AMQP_LAB_FLOW, id);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 3, true);
  completed(host, 4);
  expect(host, 1, DUEBOX_DELIVERED, "");
  expect(host, 2, DUEBOX_UNAVAILABLE, "amqp.no_route");
  expect(host, 3, DUEBOX_DELIVERED, "");
  fake_host_free(host);
}

/* --- a broken protocol: nothing may be called delivered because of it --- */

static void breaks(struct fake_host *host, struct amqp_lab *f, size_t tasks) {
  completed(host, tasks);
  expect_all(host, 1, tasks, DUEBOX_UNKNOWN, "amqp.connection_lost");
  comes_back(host, f, 2);
  fake_host_free(host);
}

static void a_confirm_for_a_message_never_sent(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  add(host, f, 3);
  published(host, f, 4);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 4, true);
  breaks(host, f, 4);
}

static void a_return_for_a_message_not_open(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  add(host, f, 3);
  published(host, f, 4);
  amqp_script_return(f->script, AMQP_LAB_FLOW, "somebody-elses");
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 3, true); /* one of these three was returned: which? */
  breaks(host, f, 4);
}

static void garbage(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  add(host, f, 3);
  published(host, f, 4);
  amqp_script_bytes(f->script, "\1\0\1\0\0\0\4\xff\xff\xff\xff\x00garbage", 19);
  breaks(host, f, 4);
}

static void a_frame_larger_than_agreed(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  add(host, f, 3);
  published(host, f, 4);
  amqp_script_bytes(f->script, "\1\0\1\x7f\xff\xff\xff", 7);
  breaks(host, f, 4);
}

static void the_broker_says_goodbye(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  amqp_connection_close_t close = {.reply_code = 320, .reply_text = amqp_cstring_bytes("CONNECTION_FORCED")};
  add(host, f, 3);
  published(host, f, 4);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false);
  amqp_script_method(f->script, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
  completed(host, 4);
  expect(host, 1, DUEBOX_DELIVERED, "");
  expect_all(host, 2, 4, DUEBOX_UNKNOWN, "amqp.connection_lost");
  assert_non_null(strstr(fake_host_outcome(host, 2).message, "320 CONNECTION_FORCED"));
  comes_back(host, f, 2);
  fake_host_free(host);
}

/* --- channels --- */

static void refused_alone(struct amqp_lab *f, uint16_t code, enum duebox_outcome_class cls, const char *error_class) {
  struct fake_host *host = open_sink(f);
  size_t before = amqp_script_published(f->script);
  add(host, f, 1);
  published(host, f, before + 1);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, code, "TEXT");
  completed(host, 2);
  expect(host, 1, cls, error_class);
  if (cls == DUEBOX_UNAVAILABLE)
    assert_int_equal(fake_host_outcome(host, 1).scope, DUEBOX_SCOPE_ROUTE);
  add(host, f, 1); /* the same connection, and with caution */
  published(host, f, before + 2);
  assert_int_equal(amqp_script_message(f->script, before + 1).channel, AMQP_LAB_PROBE);
  amqp_script_ack(f->script, AMQP_LAB_PROBE, 2, false);
  completed(host, 3);
  expect(host, 2, DUEBOX_DELIVERED, "");
  fake_host_free(host);
}

static void a_message_alone_on_its_channel_is_the_culprit(void **state) {
  struct amqp_lab *f = *state;
  refused_alone(f, 403, DUEBOX_UNAVAILABLE, "amqp.access_refused");
  refused_alone(f, 404, DUEBOX_UNAVAILABLE, "amqp.not_found");
  refused_alone(f, 405, DUEBOX_UNAVAILABLE, "amqp.resource_locked");
  refused_alone(f, 406, DUEBOX_REJECTED, "amqp.precondition_failed");
  refused_alone(f, 311, DUEBOX_REJECTED, "amqp.content_too_large");
  refused_alone(f, 541, DUEBOX_UNKNOWN, "amqp.channel_closed");
  assert_int_equal(amqp_script_connections(f->script), 6); /* one for each of the six */
}

/* The next message comes over the probe channel; the broker holds none of the others back meanwhile. */
static struct amqp_script_message probed(struct fake_host *host, struct amqp_lab *f, size_t index) {
  published(host, f, index + 1);
  struct amqp_script_message m = amqp_script_message(f->script, index);
  assert_int_equal(m.channel, AMQP_LAB_PROBE);
  return m;
}

/* A channel breaks because of one of five. The confirmed one is not sent again; each of the others goes once more,
 * alone, and stays open: no failure is counted against it. Only the guilty one ends badly. */
static void among_several_the_guilty_one_is_found(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  char id[5][64];
  add(host, f, 5);
  published(host, f, 6);
  for (size_t i = 0; i < 5; i++)
    snprintf(id[i], sizeof(id[i]), "%s", amqp_script_message(f->script, i + 1).id);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 2, false);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  static const size_t order[] = {0, 2, 3, 4};
  for (size_t i = 0; i < 4; i++) {
    struct amqp_script_message m = probed(host, f, 6 + i);
    assert_string_equal(m.id, id[order[i]]);
    assert_int_equal(fake_host_completed(host), 2 + i);
    if (i == 2)
      amqp_script_close_channel(f->script, AMQP_LAB_PROBE, 406, "PRECONDITION_FAILED");
    else
      amqp_script_ack(f->script, AMQP_LAB_PROBE, m.tag, false);
    completed(host, 3 + i);
  }
  expect_all(host, 1, 4, DUEBOX_DELIVERED, "");
  expect(host, 4, DUEBOX_REJECTED, "amqp.precondition_failed");
  expect(host, 5, DUEBOX_DELIVERED, "");
  add(host, f, 1); /* tags of the new channel start at 1 again */
  published(host, f, 11);
  assert_int_equal(amqp_script_message(f->script, 10).channel, AMQP_LAB_FLOW);
  assert_int_equal(amqp_script_message(f->script, 10).tag, 1);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false);
  completed(host, 7);
  expect(host, 6, DUEBOX_DELIVERED, "");
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
}

/* The exchange went away under them. One copy of each may be in a queue, so none may be called unsent; and the others
 * need not break a channel each to learn it. */
static void suspects_of_an_exchange_that_is_gone(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  add(host, f, 4);
  published(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 404, "NOT_FOUND");
  (void)probed(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_PROBE, 404, "NOT_FOUND");
  completed(host, 5);
  expect_all(host, 1, 5, DUEBOX_UNKNOWN, "amqp.channel_closed");
  assert_int_equal(amqp_script_published(f->script), 6);
  fake_host_free(host);
}

/* What was open when a channel broke may have arrived: it is never handed back as unsent, whatever comes next. */
static void suspects_are_never_called_unsent(void **state) {
  struct amqp_lab *f = *state;
  amqp_connection_blocked_t blocked = {.reason = amqp_cstring_bytes("low on memory")};
  amqp_connection_unblocked_t unblocked = {0};
  struct fake_host *host = open_sink(f);
  add(host, f, 4);
  published(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  struct amqp_script_message m = probed(host, f, 5);
  amqp_script_method(f->script, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
  amqp_script_ack(f->script, AMQP_LAB_PROBE, m.tag, false);
  completed(host, 2);
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_health(host) == 1 && amqp_lab_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_completed(host), 2); /* the others wait for the end of the alarm */
  amqp_script_method(f->script, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &unblocked);
  (void)probed(host, f, 6);
  amqp_script_drop(f->script);
  completed(host, 5);
  expect(host, 1, DUEBOX_DELIVERED, "");
  expect_all(host, 2, 5, DUEBOX_UNKNOWN, "amqp.connection_lost");
  fake_host_free(host);
}

/* A queue that does not confirm holds its suspects for one confirm_timeout, not for one each. */
static void suspects_that_are_not_confirmed_either(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 8000; /* all is sent again long before */
  struct fake_host *host = open_sink(f);
  add(host, f, 4);
  published(host, f, 5);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  (void)probed(host, f, 5);
  completed(host, 5);
  expect_all(host, 1, 5, DUEBOX_UNKNOWN, "amqp.confirm_timeout");
  assert_int_equal(amqp_script_published(f->script), 6);
  comes_back(host, f, 1);
  fake_host_free(host);
}

/* The message that is on its way out when its channel breaks was never whole: it goes again, and nobody blames it. */
static void a_channel_closed_under_a_large_message(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_sink(f);
  size_t big = 32 << 20;
  char *body = calloc(1, big);
  assert_non_null(body);
  add(host, f, 2);
  published(host, f, 3);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_READ);
  fake_host_add(host, &(struct fake_task){.message_id = "large", .route_data = &f->route, .payload = {body, big}});
  for (int i = 0; i < 20; i++) {
    fake_host_offer(host);
    fake_host_poll(host, 5);
  }
  assert_int_equal(fake_host_accepted(host), 4);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 404, "NOT_FOUND");
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS;
       !fake_host_logged(host, "AMQP-CHANNEL-CLOSED") && amqp_lab_now_ms() < end;)
    fake_host_poll(host, 10);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  for (size_t i = 0; i < 2; i++) { /* the two that were whole, first */
    amqp_script_ack(f->script, AMQP_LAB_PROBE, probed(host, f, 3 + i).tag, false);
    completed(host, 2 + i);
  }
  expect_all(host, 1, 3, DUEBOX_DELIVERED, "");
  published(host, f, 6);
  struct amqp_script_message m = amqp_script_message(f->script, 5);
  assert_string_equal(m.id, "large");
  assert_int_equal(m.len, big);
  amqp_script_ack(f->script, m.channel, m.tag, false);
  completed(host, 4);
  expect(host, 3, DUEBOX_DELIVERED, "");
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
  free(body);
}

static void both_close_a_channel_at_once(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 3000;
  struct fake_host *host = open_sink(f);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_CROSS_CLOSE);
  add(host, f, 2);
  published(host, f, 3);
  completed(host, 3);
  expect_all(host, 1, 3, DUEBOX_UNKNOWN, "amqp.confirm_timeout");
  assert_int_equal(fake_host_logged(host, "AMQP-CONFIRM-TIMEOUT"), 1);
  comes_back(host, f, 1);
  fake_host_free(host);
}

static void a_channel_that_is_not_answered(void **state) {
  struct amqp_lab *f = *state;
  f->options.connect_timeout_ms = 1000;
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_CHANNEL);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  add(host, f, 1);
  completed(host, 1);
  expect(host, 0, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  fake_host_free(host);
}

/* Opening it again at once would go round and round. */
static void a_channel_that_is_refused_is_asked_for_with_back_off(void **state) {
  struct amqp_lab *f = *state;
  amqp_script_set_mood(f->script, AMQP_SCRIPT_REFUSE_CHANNEL);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  int64_t begin = amqp_lab_now_ms();
  while (amqp_lab_now_ms() - begin < 2000)
    fake_host_poll(host, 50);
  assert_true(amqp_script_connections(f->script) <= 12); /* 0.05 s to 0.1 s, then doubling */
  while (amqp_script_connections(f->script) < 2 && amqp_lab_now_ms() - begin < AMQP_LAB_LIMIT_MS)
    fake_host_poll(host, 50);
  assert_true(amqp_script_connections(f->script) >= 2);
  assert_int_equal(fake_host_health(host), 0);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  fake_host_free(host);
}

/* --- connecting --- */

static void a_broker_that_says_nothing(void **state) {
  struct amqp_lab *f = *state;
  f->options.connect_timeout_ms = 60000;
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_START);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  add(host, f, 1);
  for (int i = 0; i < 20; i++) {
    int64_t begin = own_time_ms();
    assert_int_equal(fake_host_offer(host), 0);
    fake_host_poll(host, 10);
    assert_true(own_time_ms() - begin < 500);
  }
  int64_t took = fake_host_stop(host, 300); /* the attempt is given up, nobody waits for its minute */
  if (took > 1300)
    fail_msg("stop(300 ms) took %lld ms", (long long)took);
  fake_host_free(host);
}

/* --- alarms --- */

static void a_connection_blocked_in_the_middle(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 3000;
  struct fake_host *host = open_sink(f);
  amqp_connection_blocked_t blocked = {.reason = amqp_cstring_bytes("low on memory")};
  amqp_connection_unblocked_t unblocked = {0};
  add(host, f, 3);
  published(host, f, 4);
  amqp_script_method(f->script, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
  for (int64_t end = amqp_lab_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_health(host) == 1 && amqp_lab_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_health(host), 0);
  add(host, f, 5);
  for (int64_t end = amqp_lab_now_ms() + 4500; amqp_lab_now_ms() < end; fake_host_poll(host, 20))
    assert_int_equal(fake_host_offer(host), 0);
  assert_int_equal(fake_host_completed(host), 1); /* confirm_timeout stood still */
  amqp_script_method(f->script, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &unblocked);
  published(host, f, 9);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 0, true);
  completed(host, 9);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 9);
  assert_int_equal(fake_host_health(host), 1);
  fake_host_free(host);
}

/* What waits for the probe channel was not sent: it goes back to the host. */
static void a_connection_blocked_hands_back_what_waits(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  amqp_connection_blocked_t blocked = {.reason = amqp_cstring_bytes("low on disk")};
  add(host, f, 4);
  published(host, f, 1); /* one on the probe channel, three behind it */
  amqp_script_method(f->script, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
  completed(host, 3);
  expect_all(host, 1, 4, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  assert_int_equal(fake_host_outcome(host, 1).scope, DUEBOX_SCOPE_INSTANCE);
  assert_non_null(strstr(fake_host_outcome(host, 1).message, "low on disk"));
  amqp_script_ack(f->script, AMQP_LAB_PROBE, 1, false);
  completed(host, 4);
  expect(host, 0, DUEBOX_DELIVERED, "");
  fake_host_free(host);
}

int main(void) {
#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_lab_set_up, amqp_lab_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(confirms_in_any_order),
      ROW(every_kind_of_confirm),
      ROW(a_late_confirm_finds_nothing),
      ROW(a_return_decides_before_its_ack),
      ROW(a_confirm_for_a_message_never_sent),
      ROW(a_return_for_a_message_not_open),
      ROW(garbage),
      ROW(a_frame_larger_than_agreed),
      ROW(the_broker_says_goodbye),
      ROW(a_message_alone_on_its_channel_is_the_culprit),
      ROW(among_several_the_guilty_one_is_found),
      ROW(suspects_of_an_exchange_that_is_gone),
      ROW(suspects_are_never_called_unsent),
      ROW(suspects_that_are_not_confirmed_either),
      ROW(a_channel_closed_under_a_large_message),
      ROW(both_close_a_channel_at_once),
      ROW(a_channel_that_is_not_answered),
      ROW(a_channel_that_is_refused_is_asked_for_with_back_off),
      ROW(a_broker_that_says_nothing),
      ROW(a_connection_blocked_in_the_middle),
      ROW(a_connection_blocked_hands_back_what_waits),
  };
  return cmocka_run_group_tests_name("amqp script", tests, NULL, NULL);
}
