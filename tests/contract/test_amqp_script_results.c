/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_script_results.c - a result source of the amqp plugin against a broker that a test leads by
 * the hand. Needs no server.
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

static struct fake_host *open_source(struct amqp_lab *f) {
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SOURCE);
  unsigned before = amqp_script_consumers(f->script);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_health(host) != 1 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_health(host), 1);
  assert_true(amqp_script_consumers(f->script) >= before);
  return host;
}

static void is_dropped_and_read_again(struct fake_host *host, struct amqp_lab *f) {
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       amqp_script_consumers(f->script) < 2 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(amqp_script_consumers(f->script), 2);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 5);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "hello", 5);
  size_t before = fake_host_results(host);
  assert_true(fake_host_wait_results(host, before + 1, AMQP_LAB_LIMIT_MS));
  assert_string_equal(fake_host_result(host, before).body, "hello");
  fake_host_free(host);
}

static void a_body_longer_than_announced(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 5);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "too long", 8);
  is_dropped_and_read_again(host, f);
}

static void a_body_without_a_header(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "x", 1);
  is_dropped_and_read_again(host, f);
}

static void a_delivery_on_another_channel(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  amqp_script_deliver(f->script, 4711, 1);
  is_dropped_and_read_again(host, f);
}

static void a_delivery_inside_another(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 2);
  is_dropped_and_read_again(host, f);
}

static void more_than_the_prefetch(void **state) {
  struct amqp_lab *f = *state;
  f->source.prefetch = 3;
  struct fake_host *host = open_source(f);
  for (uint64_t tag = 1; tag <= 4; tag++) {
    amqp_script_deliver(f->script, AMQP_LAB_FLOW, tag);
    amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 1);
    amqp_script_body(f->script, AMQP_LAB_FLOW, "x", 1);
  }
  is_dropped_and_read_again(host, f);
}

/* Each answer to basic.consume makes room for `prefetch` more: a million of them would make it for a million times as
 * many. */
static void a_subscription_that_nobody_asked_for(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  amqp_basic_consume_ok_t consume = {.consumer_tag = amqp_cstring_bytes("c")};
  amqp_script_method(f->script, AMQP_LAB_FLOW, AMQP_BASIC_CONSUME_OK_METHOD, &consume);
  is_dropped_and_read_again(host, f);
}

/* rabbitmq-c makes of it a struct that ends before the correlation id. */
static void a_record_of_another_class(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_bytes(f->script, "\2\0\1\0\0\0\016\0\24\0\0\0\0\0\0\0\0\0\5\4\0\xce", 22); /* class 20, bit 10 */
  amqp_script_body(f->script, AMQP_LAB_FLOW, "stray", 5);
  is_dropped_and_read_again(host, f);
}

/* The host has set all of them aside: others are to come behind them all the same. */
static void what_stays_open_leaves_room_for_others(void **state) {
  struct amqp_lab *f = *state;
  f->source.prefetch = 3;
  struct fake_host *host = open_source(f);
  for (uint64_t tag = 1; tag <= 6; tag++) {
    for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
         tag > 3 && amqp_script_consumers(f->script) < 2 && fake_host_now_ms() < end;)
      fake_host_poll(host, 10);
    amqp_script_deliver(f->script, AMQP_LAB_FLOW, tag);
    amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 1);
    amqp_script_body(f->script, AMQP_LAB_FLOW, "x", 1);
  }
  assert_true(fake_host_wait_results(host, 6, AMQP_LAB_LIMIT_MS));
  assert_int_equal(amqp_script_consumers(f->script), 2);
  assert_int_equal(amqp_script_cancels(f->script), 1); /* an exclusive one is the only one */
  assert_true(amqp_script_exclusive(f->script));
  for (size_t i = 0; i < 6; i++)
    fake_host_ack(host, i, true);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; !amqp_script_acks(f->script) && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(amqp_script_acks(f->script), 1);
  fake_host_free(host);
}

/* A header that announces exabytes costs max_record bytes at most. */
static void an_absurd_size_is_only_read_as_far_as_it_is_kept(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  char piece[4000];
  memset(piece, 'a', sizeof(piece));
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, UINT64_MAX / 2);
  for (int i = 0; i < 10; i++)
    amqp_script_body(f->script, AMQP_LAB_FLOW, piece, sizeof(piece));
  for (int i = 0; i < 20; i++)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_results(host), 0); /* never whole, never handed over */
  amqp_connection_close_t close = {.reply_code = 320, .reply_text = amqp_cstring_bytes("CONNECTION_FORCED")};
  amqp_script_method(f->script, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
  is_dropped_and_read_again(host, f);
}

static void acknowledgements_are_gathered(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  for (uint64_t tag = 1; tag <= 100; tag++) {
    amqp_script_deliver(f->script, AMQP_LAB_FLOW, tag);
    amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 1);
    amqp_script_body(f->script, AMQP_LAB_FLOW, "x", 1);
  }
  assert_true(fake_host_wait_results(host, 100, AMQP_LAB_LIMIT_MS));
  assert_int_equal(amqp_script_acks(f->script), 0);
  for (size_t i = 0; i < 100; i++)
    fake_host_ack(host, i, i != 50);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       amqp_script_acks(f->script) < 2 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(amqp_script_nacks(f->script), 1);
  assert_int_equal(amqp_script_acks(f->script), 2); /* 1..50 and 52..100 */
  fake_host_free(host);
}

/* Closing a socket with unread input resets the connection, and with it what the broker has not read yet. */
static void the_last_acknowledgements_arrive(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  char piece[900];
  memset(piece, 'p', sizeof(piece));
  fake_host_set_room(host, 1);
  for (uint64_t tag = 1; tag <= 150; tag++) {
    amqp_script_deliver(f->script, AMQP_LAB_FLOW, tag);
    amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, sizeof(piece));
    amqp_script_body(f->script, AMQP_LAB_FLOW, piece, sizeof(piece));
  }
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; !fake_host_refused(host) && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  fake_host_close(host);
  fake_host_ack(host, 0, true);
  fake_host_stop(host, 5000);
  assert_int_equal(amqp_script_acks(f->script), 1); /* stop() has waited for the broker to say so */
  assert_int_equal(amqp_script_goodbyes(f->script), 1);
  fake_host_free(host);
}

/* The host has acknowledged nothing and reads nothing; that the broker is gone must be found out all the same. */
static void a_broker_that_goes_while_the_host_is_full(void **state) {
  struct amqp_lab *f = *state;
  f->options.heartbeat_ms = 4000; /* the script sends none: a connection lives for eight seconds */
  struct fake_host *host = open_source(f);
  fake_host_set_room(host, 0);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 1);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "x", 1);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; !fake_host_refused(host) && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_true(fake_host_refused(host));
  amqp_script_drop(f->script);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       amqp_script_consumers(f->script) < 2 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  fake_host_resume(host, 10); /* of a record that is gone: nothing comes of it */
  is_dropped_and_read_again(host, f);
}

static void a_source_whose_channel_is_not_answered(void **state) {
  struct amqp_lab *f = *state;
  f->options.connect_timeout_ms = 1000;
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_CHANNEL);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SOURCE);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_health(host) != 0 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_health(host), 0);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_health(host) != 1 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_health(host), 1);
  fake_host_free(host);
}

static void poll_until_asked(struct fake_host *host, struct amqp_lab *f, unsigned times) {
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       amqp_script_asked(f->script) < times && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_true(amqp_script_asked(f->script) >= times);
}

/* Records about one task that two daemons read would be applied in no order. */
static void a_queue_that_somebody_reads_is_left_alone(void **state) {
  struct amqp_lab *f = *state;
  amqp_script_set_readers(f->script, 1);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SOURCE);
  poll_until_asked(host, f, 3);
  assert_int_equal(amqp_script_consumers(f->script), 0);
  assert_int_equal(fake_host_health(host), 1); /* nothing is wrong: it need not be unready for that */
  assert_int_equal(fake_host_logged(host, "AMQP-STANDBY"), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-QUEUE"), 0);
  amqp_script_set_readers(f->script, 0);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       fake_host_logged(host, "AMQP-READING") == 0 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_logged(host, "AMQP-READING"), 1);
  assert_true(amqp_script_exclusive(f->script));
  fake_host_free(host);
}

/* With a single active consumer RabbitMQ refuses to let one read alone, in the same words as when another does. */
static void a_queue_that_refuses_exclusive_reading_is_read_without(void **state) {
  struct amqp_lab *f = *state;
  amqp_script_refuse_exclusive(f->script);
  struct fake_host *host = open_source(f);
  assert_int_equal(amqp_script_consumers(f->script), 2);
  assert_false(amqp_script_exclusive(f->script));
  assert_int_equal(fake_host_logged(host, "AMQP-QUEUE"), 0);
  fake_host_free(host);
}

/* A quorum queue lets two in that come at the same moment: each sees the other, and goes. */
static void one_that_came_with_another_gives_way(void **state) {
  struct amqp_lab *f = *state;
  amqp_script_bring_rival(f->script);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SOURCE);
  poll_until_asked(host, f, 3); /* twice on the first channel, and again after a while */
  assert_int_equal(amqp_script_consumers(f->script), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-STANDBY"), 1);
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
}

static void poll_until(struct fake_host *host, struct amqp_lab *f, unsigned (*count)(struct amqp_script *),
                       unsigned n) {
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; count(f->script) < n && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(count(f->script), n);
}

/* Delivery 1 with a content header of 200,000 bytes: dead-lettering adds to it, and no broker divides headers. */
static void deliver_too_large(struct amqp_lab *f) {
  static char frame[200000];
  memcpy(frame, "\2\0\1\0\3\xd\x38\0\74\0\0\0\0\0\0\0\0\0\5\x20\0", 21); /* basic, 5 bytes of body, headers */
  frame[sizeof(frame) - 1] = '\xce';
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_bytes(f->script, frame, sizeof(frame));
  amqp_script_body(f->script, AMQP_LAB_FLOW, "hello", 5);
}

/* A header named "a" of the kind "Z", which AMQP does not have. */
static void deliver_undecodable(struct amqp_lab *f) {
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_bytes(f->script, "\2\0\1\0\0\0\x15\0\74\0\0\0\0\0\0\0\0\0\5\x20\0\0\0\0\3\1aZ\xce", 29);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "hello", 5);
}

/* It would come again on each new connection, first of all: the queue would stand still. */
static void is_handed_over_as_unreadable(struct amqp_lab *f, void (*deliver)(struct amqp_lab *)) {
  struct fake_host *host = open_source(f);
  deliver(f);
  assert_true(fake_host_wait_results(host, 1, AMQP_LAB_LIMIT_MS));
  assert_true(fake_host_result(host, 0).truncated);
  assert_int_equal(fake_host_result(host, 0).len, 0);
  assert_true(fake_host_result(host, 0).full_len > 1000);
  for (int i = 0; i < 20; i++)
    fake_host_poll(host, 10);
  assert_int_equal(amqp_script_acks(f->script), 0); /* not before the table has it */
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_ack(host, 0, true);
  poll_until(host, f, amqp_script_consumers, 2);
  assert_int_equal(amqp_script_acks(f->script), 1);
  assert_int_equal(amqp_script_cancels(f->script), 1);
  assert_int_equal(amqp_script_goodbyes(f->script), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-RECORD-UNREADABLE"), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 0); /* no outage */
  assert_int_equal(fake_host_health(host), 1);
  is_dropped_and_read_again(host, f);
}

static void a_header_larger_than_a_frame(void **state) { is_handed_over_as_unreadable(*state, deliver_too_large); }

static void a_header_that_cannot_be_decoded(void **state) { is_handed_over_as_unreadable(*state, deliver_undecodable); }

static void an_unreadable_record_waits_for_a_full_host(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  fake_host_set_room(host, 0);
  deliver_too_large(f);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; !fake_host_refused(host) && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_true(fake_host_refused(host));
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_resume(host, 10);
  assert_true(fake_host_wait_results(host, 1, AMQP_LAB_LIMIT_MS));
  fake_host_ack(host, 0, true);
  poll_until(host, f, amqp_script_acks, 1);
  is_dropped_and_read_again(host, f);
}

/* One that was read before it is acknowledged too: the library still sends. */
static void what_came_before_an_unreadable_record_is_settled(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 1);
  amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 1);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "x", 1);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, 2);
  amqp_script_bytes(f->script, "\2\0\1\0\0\0\x15\0\74\0\0\0\0\0\0\0\0\0\5\x20\0\0\0\0\3\1aZ\xce", 29);
  assert_true(fake_host_wait_results(host, 2, AMQP_LAB_LIMIT_MS));
  fake_host_ack(host, 0, true);
  poll_until(host, f, amqp_script_acks, 1);
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_ack(host, 1, false); /* the host ends: the broker has it again */
  poll_until(host, f, amqp_script_nacks, 1);
  is_dropped_and_read_again(host, f);
}

static void a_broker_that_goes_at_an_unreadable_record(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  deliver_too_large(f);
  assert_true(fake_host_wait_results(host, 1, AMQP_LAB_LIMIT_MS));
  amqp_script_drop(f->script);
  poll_until(host, f, amqp_script_consumers, 2);
  fake_host_ack(host, 0, true); /* of a channel that is gone */
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 1);
  is_dropped_and_read_again(host, f);
  assert_int_equal(amqp_script_acks(f->script), 0);
}

static void read_one(struct fake_host *host, struct amqp_lab *f, uint64_t tag) {
  size_t before = fake_host_results(host);
  amqp_script_deliver(f->script, AMQP_LAB_FLOW, tag);
  amqp_script_header(f->script, AMQP_LAB_FLOW, NULL, 1);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "x", 1);
  assert_true(fake_host_wait_results(host, before + 1, AMQP_LAB_LIMIT_MS));
}

/* What is delivered behind one is delivered again, and queues with a delivery limit drop what that happens to often. */
static void few_are_read_at_once_after_an_unreadable_record(void **state) {
  struct amqp_lab *f = *state;
  f->source.prefetch = 5;
  struct fake_host *host = open_source(f);
  assert_int_equal(amqp_script_prefetch(f->script), 5);
  deliver_too_large(f);
  assert_true(fake_host_wait_results(host, 1, AMQP_LAB_LIMIT_MS));
  fake_host_ack(host, 0, true);
  uint64_t tag = 0;
  unsigned subscriptions = 2;
  for (unsigned most = 1; most < 5; most *= 2) { /* twice as many when all are read */
    poll_until(host, f, amqp_script_consumers, subscriptions++);
    assert_int_equal(amqp_script_prefetch(f->script), most);
    for (unsigned i = 0; i < most; i++)
      read_one(host, f, ++tag);
  }
  poll_until(host, f, amqp_script_consumers, subscriptions);
  assert_int_equal(amqp_script_prefetch(f->script), 5);
  assert_int_equal(amqp_script_connections(f->script), 2);
  fake_host_free(host);
}

static void the_end_at_an_unreadable_record(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = open_source(f);
  deliver_too_large(f);
  assert_true(fake_host_wait_results(host, 1, AMQP_LAB_LIMIT_MS));
  fake_host_close(host);
  fake_host_ack(host, 0, true);
  assert_true(fake_host_stop(host, 10000) < 5000);
  assert_int_equal(amqp_script_acks(f->script), 1);
  assert_int_equal(amqp_script_goodbyes(f->script), 1);
  fake_host_free(host);
}

int main(void) {
#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_lab_set_up, amqp_lab_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(a_body_longer_than_announced),
      ROW(a_body_without_a_header),
      ROW(a_delivery_on_another_channel),
      ROW(a_delivery_inside_another),
      ROW(more_than_the_prefetch),
      ROW(a_subscription_that_nobody_asked_for),
      ROW(a_record_of_another_class),
      ROW(a_header_larger_than_a_frame),
      ROW(a_header_that_cannot_be_decoded),
      ROW(an_unreadable_record_waits_for_a_full_host),
      ROW(what_came_before_an_unreadable_record_is_settled),
      ROW(a_broker_that_goes_at_an_unreadable_record),
      ROW(few_are_read_at_once_after_an_unreadable_record),
      ROW(the_end_at_an_unreadable_record),
      ROW(what_stays_open_leaves_room_for_others),
      ROW(an_absurd_size_is_only_read_as_far_as_it_is_kept),
      ROW(acknowledgements_are_gathered),
      ROW(the_last_acknowledgements_arrive),
      ROW(a_broker_that_goes_while_the_host_is_full),
      ROW(a_source_whose_channel_is_not_answered),
      ROW(a_queue_that_somebody_reads_is_left_alone),
      ROW(a_queue_that_refuses_exclusive_reading_is_read_without),
      ROW(one_that_came_with_another_gives_way),
  };
  return cmocka_run_group_tests_name("amqp script results", tests, NULL, NULL);
}
