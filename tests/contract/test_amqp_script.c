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

/* --- confirms --- */

static void confirms_in_any_order(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  enum { N = 500 };
  bool done[N + 1] = {false};
  amqp_lab_add(host, f, N);
  amqp_lab_published(host, f, N + 1);
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
  amqp_lab_completed(host, N + 1);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), N + 1);
  fake_host_free(host);
}

static void every_kind_of_confirm(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 10);
  amqp_lab_published(host, f, 11);
  amqp_script_nack(f->script, AMQP_LAB_FLOW, 3, true);  /* 1..3 */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 5, false);  /* 5 */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 5, false);  /* again: nothing happens */
  amqp_script_nack(f->script, AMQP_LAB_FLOW, 5, false); /* and it does not become worse either */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 6, true);   /* 4 and 6 */
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 0, true);   /* all so far: 7..10 */
  amqp_lab_completed(host, 11);
  amqp_lab_expect_all(host, 1, 4, DUEBOX_RETRY, "amqp.nack");
  amqp_lab_expect_all(host, 4, 11, DUEBOX_DELIVERED, "");
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
}

static void a_late_confirm_finds_nothing(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 3000;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 1);
  amqp_lab_published(host, f, 2);
  uint64_t tag = 2;
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS, after = 5; after > 0 && fake_host_now_ms() < end; tag++) {
    after -= fake_host_outcome(host, 1).completed; /* others are confirmed meanwhile, and some more after it */
    amqp_lab_add(host, f, 1);
    amqp_lab_published(host, f, tag + 1);
    amqp_script_ack(f->script, AMQP_LAB_FLOW, tag, false);
    amqp_lab_completed(host, fake_host_completed(host) + 1);
    for (int i = 0; i < 5; i++)
      fake_host_poll(host, 10);
  }
  amqp_lab_expect(host, 1, DUEBOX_UNKNOWN, "amqp.confirm_timeout");
  for (size_t i = 2; i < fake_host_tasks(host); i++)
    if (fake_host_outcome(host, i).completed)
      amqp_lab_expect(host, i, DUEBOX_DELIVERED, "");
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false); /* now it comes */
  amqp_lab_add(host, f, 1);
  amqp_lab_published(host, f, tag + 1);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 0, true);
  amqp_lab_completed(host, fake_host_tasks(host));
  assert_int_equal(amqp_script_connections(f->script), 1);
  assert_int_equal(fake_host_count(host, DUEBOX_UNKNOWN), 1);
  assert_int_equal(fake_host_logged(host, "AMQP-CONFIRM-TIMEOUT"), 0);
  fake_host_free(host);
}

/* A queue that confirms nothing costs the others nothing, however many of theirs are confirmed meanwhile. */
static void one_without_a_confirm_holds_up_nobody(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  enum { ROUNDS = 50, EACH = 100 }; /* five times what may be open at once */
  amqp_lab_add(host, f, 1);
  amqp_lab_published(host, f, 2);
  for (uint64_t tag = 2, round = 1; round <= ROUNDS; round++) {
    amqp_lab_add(host, f, EACH);
    amqp_lab_published(host, f, 2 + round * EACH);
    for (int i = 0; i < EACH; i++)
      amqp_script_ack(f->script, AMQP_LAB_FLOW, tag++, false);
    amqp_lab_completed(host, 1 + round * EACH);
  }
  assert_false(fake_host_outcome(host, 1).completed);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false);
  amqp_lab_completed(host, 2 + ROUNDS * EACH);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 2 + ROUNDS * EACH);
  fake_host_free(host);
}

static void a_return_decides_before_its_ack(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  char id[64];
  snprintf(id, sizeof(id), "%s", amqp_script_message(f->script, 2).id);
  amqp_script_return(f->script, AMQP_LAB_FLOW, id);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 3, true);
  amqp_lab_completed(host, 4);
  amqp_lab_expect(host, 1, DUEBOX_DELIVERED, "");
  amqp_lab_expect(host, 2, DUEBOX_UNAVAILABLE, "amqp.no_route");
  amqp_lab_expect(host, 3, DUEBOX_DELIVERED, "");
  fake_host_free(host);
}

/* --- a broken protocol: nothing may be called delivered because of it --- */

static void breaks(struct fake_host *host, struct amqp_lab *f, size_t tasks) {
  amqp_lab_completed(host, tasks);
  amqp_lab_expect_all(host, 1, tasks, DUEBOX_UNKNOWN, "amqp.connection_lost");
  amqp_lab_comes_back(host, f, 2);
  fake_host_free(host);
}

static void a_confirm_for_a_message_never_sent(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 4, true);
  breaks(host, f, 4);
}

/* A large message on its way out, of which the broker has a part, and two that it has; the last tag is 3. */
static struct fake_host *half_sent(struct amqp_lab *f, char **body) {
  struct fake_host *host = amqp_lab_open_sink(f);
  size_t big = 32 << 20;
  *body = calloc(1, big);
  assert_non_null(*body);
  amqp_lab_add(host, f, 2);
  amqp_lab_published(host, f, 3);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_READ);
  fake_host_add(host, &(struct fake_task){.message_id = "large", .route_data = &f->route, .payload = {*body, big}});
  for (int i = 0; i < 20; i++) {
    fake_host_offer(host);
    fake_host_poll(host, 5);
  }
  assert_int_equal(fake_host_accepted(host), 4);
  return host;
}

static void half_sent_breaks(struct fake_host *host, struct amqp_lab *f, char *body) {
  amqp_lab_completed(host, 4);
  amqp_lab_expect_all(host, 1, 3, DUEBOX_UNKNOWN, "amqp.connection_lost");
  amqp_lab_expect(host, 3, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  amqp_lab_comes_back(host, f, 2);
  fake_host_free(host);
  free(body);
}

/* It is no delivery, and the rest of the message would be read where it was. */
static void a_confirm_for_a_message_half_sent(void **state) {
  char *body;
  struct fake_host *host = half_sent(*state, &body);
  amqp_script_ack(((struct amqp_lab *)*state)->script, AMQP_LAB_FLOW, 3, false);
  half_sent_breaks(host, *state, body);
}

static void a_return_of_a_message_half_sent(void **state) {
  char *body;
  struct fake_host *host = half_sent(*state, &body);
  amqp_script_return(((struct amqp_lab *)*state)->script, AMQP_LAB_FLOW, "large");
  half_sent_breaks(host, *state, body);
}

/* Zero stands for all that the broker has. */
static void a_confirm_of_all_so_far_leaves_the_half_sent_one(void **state) {
  struct amqp_lab *f = *state;
  char *body;
  struct fake_host *host = half_sent(f, &body);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 0, true);
  amqp_lab_completed(host, 3);
  amqp_lab_expect_all(host, 1, 3, DUEBOX_DELIVERED, "");
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  amqp_lab_published(host, f, 4);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 3, false);
  amqp_lab_completed(host, 4);
  amqp_lab_expect(host, 3, DUEBOX_DELIVERED, "");
  fake_host_free(host);
  free(body);
}

static void a_return_for_a_message_not_open(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_return(f->script, AMQP_LAB_FLOW, "somebody-elses");
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 3, true); /* one of these three was returned: which? */
  breaks(host, f, 4);
}

/* Which one it was stands in the content that never comes: an ack in its place is no delivery. */
static void a_return_without_its_content(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_basic_return_t back = {.reply_code = AMQP_NO_ROUTE, .reply_text = amqp_cstring_bytes("NO_ROUTE")};
  amqp_script_method(f->script, AMQP_LAB_FLOW, AMQP_BASIC_RETURN_METHOD, &back);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 3, true);
  breaks(host, f, 4);
}

static void a_return_with_code_zero(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 1);
  amqp_lab_published(host, f, 2);
  amqp_basic_return_t back = {.reply_code = 0, .reply_text = amqp_cstring_bytes("")};
  amqp_script_method(f->script, AMQP_LAB_FLOW, AMQP_BASIC_RETURN_METHOD, &back);
  amqp_script_header(f->script, AMQP_LAB_FLOW, amqp_script_message(f->script, 1).id, 2);
  amqp_script_body(f->script, AMQP_LAB_FLOW, "{}", 2);
  amqp_lab_completed(host, 2);
  amqp_lab_expect(host, 1, DUEBOX_UNAVAILABLE, "amqp.returned");
  fake_host_free(host);
}

/* rabbitmq-c keeps memory for each of 65,535 channels that it has heard of. */
static void a_frame_of_a_channel_that_is_not_open(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_body(f->script, 4711, "whose?", 6);
  breaks(host, f, 4);
}

static void garbage(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_bytes(f->script, "\1\0\1\0\0\0\4\xff\xff\xff\xff\x00garbage", 19);
  breaks(host, f, 4);
}

/* rabbitmq-c makes of it a struct that ends before the message id. What stands behind it is of the frame before: here a
 * length that is right, and a pointer that is not. */
static void a_return_with_content_of_another_class(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  char stray[513] = {0}; /* a head of seven bytes stands before it */
  uint64_t len = strlen(amqp_script_message(f->script, 2).id);
  for (size_t at = 1; at < sizeof(stray); at += sizeof(len))
    memcpy(stray + at, &len, sizeof(len));
  amqp_script_body(f->script, AMQP_LAB_FLOW, stray, sizeof(stray));
  amqp_basic_return_t back = {.reply_code = AMQP_NO_ROUTE, .reply_text = amqp_cstring_bytes("NO_ROUTE")};
  amqp_script_method(f->script, AMQP_LAB_FLOW, AMQP_BASIC_RETURN_METHOD, &back);
  amqp_script_bytes(f->script, "\2\0\1\0\0\0\016\0\24\0\0\0\0\0\0\0\0\0\2\0\200\xce", 22); /* class 20, bit 7 */
  breaks(host, f, 4);
}

static void an_answer_that_nobody_asked_for(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_confirm_select_ok_t select = {0};
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_method(f->script, AMQP_LAB_FLOW, AMQP_CONFIRM_SELECT_OK_METHOD, &select);
  breaks(host, f, 4);
}

static void a_frame_larger_than_agreed(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_bytes(f->script, "\1\0\1\x7f\xff\xff\xff", 7);
  breaks(host, f, 4);
}

static void the_broker_says_goodbye(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_connection_close_t close = {.reply_code = 320, .reply_text = amqp_cstring_bytes("CONNECTION_FORCED")};
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 1, false);
  amqp_script_method(f->script, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
  amqp_lab_completed(host, 4);
  amqp_lab_expect(host, 1, DUEBOX_DELIVERED, "");
  amqp_lab_expect_all(host, 2, 4, DUEBOX_UNKNOWN, "amqp.connection_lost");
  assert_non_null(strstr(fake_host_outcome(host, 2).message, "320 CONNECTION_FORCED"));
  amqp_lab_comes_back(host, f, 2);
  fake_host_free(host);
}

/* --- channels --- */

static void refused_alone(struct amqp_lab *f, uint16_t code, enum duebox_outcome_class cls, const char *error_class) {
  struct fake_host *host = amqp_lab_open_sink(f);
  size_t before = amqp_script_published(f->script);
  amqp_lab_add(host, f, 1);
  amqp_lab_published(host, f, before + 1);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, code, "TEXT");
  amqp_lab_completed(host, 2);
  amqp_lab_expect(host, 1, cls, error_class);
  if (cls == DUEBOX_UNAVAILABLE)
    assert_int_equal(fake_host_outcome(host, 1).scope, DUEBOX_SCOPE_ROUTE);
  amqp_lab_add(host, f, 1); /* the same connection, and with caution */
  amqp_lab_published(host, f, before + 2);
  struct amqp_script_message m = amqp_lab_probed(host, f, before + 1);
  amqp_script_ack(f->script, m.channel, m.tag, false);
  amqp_lab_completed(host, 3);
  amqp_lab_expect(host, 2, DUEBOX_DELIVERED, "");
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

/* The message that is on its way out when its channel breaks was never whole: it goes again, and nobody blames it. */
static void a_channel_closed_under_a_large_message(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open_sink(f);
  size_t big = 32 << 20;
  char *body = calloc(1, big);
  assert_non_null(body);
  amqp_lab_add(host, f, 2);
  amqp_lab_published(host, f, 3);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_READ);
  fake_host_add(host, &(struct fake_task){.message_id = "large", .route_data = &f->route, .payload = {body, big}});
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; amqp_script_begun(f->script) < 4;) {
    assert_true(fake_host_now_ms() < end);
    fake_host_offer(host);
    fake_host_poll(host, 5);
  }
  assert_int_equal(fake_host_accepted(host), 4); /* and no socket holds all of the last one */
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 404, "NOT_FOUND");
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       !fake_host_logged(host, "AMQP-CHANNEL-CLOSED") && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  /* The two that were whole go one by one; when the first is decided, the large one takes turns with them. */
  size_t larges = 0;
  for (size_t i = 0; i < 3; i++) {
    amqp_lab_published(host, f, 3 + i + 1);
    struct amqp_script_message m = amqp_script_message(f->script, 3 + i);
    bool large = strcmp(m.id, "large") == 0;
    larges += large;
    assert_true(large ? m.len == big && i > 0 : m.channel != AMQP_LAB_FLOW);
    amqp_script_ack(f->script, m.channel, m.tag, false);
    amqp_lab_completed(host, 2 + i);
  }
  assert_int_equal(larges, 1);
  amqp_lab_expect_all(host, 1, 4, DUEBOX_DELIVERED, "");
  assert_int_equal(amqp_script_connections(f->script), 1);
  fake_host_free(host);
  free(body);
}

static void both_close_a_channel_at_once(void **state) {
  struct amqp_lab *f = *state;
  f->options.confirm_timeout_ms = 3000;
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_CROSS_CLOSE);
  amqp_lab_add(host, f, 2);
  amqp_lab_published(host, f, 3);
  amqp_lab_completed(host, 3);
  amqp_lab_expect_all(host, 1, 3, DUEBOX_UNKNOWN, "amqp.confirm_timeout");
  assert_int_equal(fake_host_logged(host, "AMQP-CONFIRM-TIMEOUT"), 1);
  amqp_lab_comes_back(host, f, 1);
  fake_host_free(host);
}

static void a_channel_that_is_not_answered(void **state) {
  struct amqp_lab *f = *state;
  f->options.connect_timeout_ms = 1000;
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NO_CHANNEL);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  amqp_lab_add(host, f, 1);
  amqp_lab_completed(host, 1);
  amqp_lab_expect(host, 0, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  fake_host_free(host);
}

/* The first message to an exchange goes over a channel of its own: where there is none it would wait for ever, and the
 * instance would look well. */
static void a_broker_that_allows_one_channel_only(void **state) {
  struct amqp_lab *f = *state;
  amqp_script_set_mood(f->script, AMQP_SCRIPT_ONE_CHANNEL);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  amqp_lab_add(host, f, 1);
  amqp_lab_completed(host, 1);
  amqp_lab_expect(host, 0, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  assert_non_null(strstr(fake_host_outcome(host, 0).message, "channel_max"));
  assert_int_equal(fake_host_health(host), 0);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  fake_host_free(host);
}

/* Opening it again at once would go round and round. */
static void a_channel_that_is_refused_is_asked_for_with_back_off(void **state) {
  struct amqp_lab *f = *state;
  amqp_script_set_mood(f->script, AMQP_SCRIPT_REFUSE_CHANNEL);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  int64_t begin = fake_host_now_ms();
  while (fake_host_now_ms() - begin < 2000)
    fake_host_poll(host, 50);
  assert_true(amqp_script_connections(f->script) <= 12); /* 0.05 s to 0.1 s, then doubling */
  while (amqp_script_connections(f->script) < 2 && fake_host_now_ms() - begin < AMQP_LAB_LIMIT_MS)
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
  amqp_lab_add(host, f, 1);
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
  struct fake_host *host = amqp_lab_open_sink(f);
  amqp_connection_blocked_t blocked = {.reason = amqp_cstring_bytes("low on memory")};
  amqp_connection_unblocked_t unblocked = {0};
  amqp_lab_add(host, f, 3);
  amqp_lab_published(host, f, 4);
  amqp_script_method(f->script, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_health(host) == 1 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_health(host), 0);
  amqp_lab_add(host, f, 5);
  for (int64_t end = fake_host_now_ms() + 4500; fake_host_now_ms() < end; fake_host_poll(host, 20))
    assert_int_equal(fake_host_offer(host), 0);
  assert_int_equal(fake_host_completed(host), 1); /* confirm_timeout stood still */
  amqp_script_method(f->script, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &unblocked);
  amqp_lab_published(host, f, 9);
  amqp_script_ack(f->script, AMQP_LAB_FLOW, 0, true);
  amqp_lab_completed(host, 9);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 9);
  assert_int_equal(fake_host_health(host), 1);
  fake_host_free(host);
}

/* What waits for the probe channel was not sent: it goes back to the host. */
static void a_connection_blocked_hands_back_what_waits(void **state) {
  struct amqp_lab *f = *state;
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  amqp_connection_blocked_t blocked = {.reason = amqp_cstring_bytes("low on disk")};
  amqp_lab_add(host, f, 4);
  amqp_lab_published(host, f, 1); /* one on the probe channel, three behind it */
  amqp_script_method(f->script, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
  amqp_lab_completed(host, 3);
  amqp_lab_expect_all(host, 1, 4, DUEBOX_UNAVAILABLE, "amqp.not_sent");
  assert_int_equal(fake_host_outcome(host, 1).scope, DUEBOX_SCOPE_INSTANCE);
  assert_non_null(strstr(fake_host_outcome(host, 1).message, "low on disk"));
  amqp_script_ack(f->script, AMQP_LAB_PROBE, 1, false);
  amqp_lab_completed(host, 4);
  amqp_lab_expect(host, 0, DUEBOX_DELIVERED, "");
  fake_host_free(host);
}

int main(void) {
#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_lab_set_up, amqp_lab_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(confirms_in_any_order),
      ROW(every_kind_of_confirm),
      ROW(a_late_confirm_finds_nothing),
      ROW(one_without_a_confirm_holds_up_nobody),
      ROW(a_return_decides_before_its_ack),
      ROW(a_confirm_for_a_message_never_sent),
      ROW(a_confirm_for_a_message_half_sent),
      ROW(a_return_of_a_message_half_sent),
      ROW(a_confirm_of_all_so_far_leaves_the_half_sent_one),
      ROW(a_return_for_a_message_not_open),
      ROW(a_return_without_its_content),
      ROW(a_return_with_code_zero),
      ROW(a_frame_of_a_channel_that_is_not_open),
      ROW(garbage),
      ROW(a_return_with_content_of_another_class),
      ROW(an_answer_that_nobody_asked_for),
      ROW(a_frame_larger_than_agreed),
      ROW(the_broker_says_goodbye),
      ROW(a_message_alone_on_its_channel_is_the_culprit),
      ROW(a_channel_closed_under_a_large_message),
      ROW(both_close_a_channel_at_once),
      ROW(a_channel_that_is_not_answered),
      ROW(a_broker_that_allows_one_channel_only),
      ROW(a_channel_that_is_refused_is_asked_for_with_back_off),
      ROW(a_broker_that_says_nothing),
      ROW(a_connection_blocked_in_the_middle),
      ROW(a_connection_blocked_hands_back_what_waits),
  };
  return cmocka_run_group_tests_name("amqp script", tests, NULL, NULL);
}
