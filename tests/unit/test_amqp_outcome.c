/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_outcome.c - the table of outcomes, row by row, and what holds for all rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_outcome.h"

struct expectation {
  enum amqp_event event;
  int code;
  enum duebox_outcome_class cls;
  enum duebox_scope scope;
  const char *error_class;
};

/* Written down a second time on purpose: a change of the table must be meant. */
static const struct expectation expected[] = {
    {AMQP_EVENT_ACK, 0, DUEBOX_DELIVERED, 0, NULL},
    {AMQP_EVENT_NACK, 0, DUEBOX_RETRY, DUEBOX_SCOPE_TARGET, "amqp.nack"},
    {AMQP_EVENT_RETURN, 312, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_TARGET, "amqp.no_route"},
    {AMQP_EVENT_RETURN, 313, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_TARGET, "amqp.no_consumers"},
    {AMQP_EVENT_RETURN, 999, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_TARGET, "amqp.returned"},
    {AMQP_EVENT_REFUSED, 311, DUEBOX_REJECTED, 0, "amqp.content_too_large"},
    {AMQP_EVENT_REFUSED, 406, DUEBOX_REJECTED, 0, "amqp.precondition_failed"},
    {AMQP_EVENT_REFUSED, 403, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_ROUTE, "amqp.access_refused"},
    {AMQP_EVENT_REFUSED, 404, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_ROUTE, "amqp.not_found"},
    {AMQP_EVENT_REFUSED, 405, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_ROUTE, "amqp.resource_locked"},
    {AMQP_EVENT_REFUSED, 541, DUEBOX_UNKNOWN, 0, "amqp.channel_closed"},
    {AMQP_EVENT_KEY_REFUSED, 403, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_TARGET, "amqp.access_refused"},
    {AMQP_EVENT_UNDECIDED, 404, DUEBOX_UNKNOWN, 0, "amqp.channel_closed"},
    {AMQP_EVENT_UNTRIED, 0, DUEBOX_UNKNOWN, 0, "amqp.channel_closed"},
    {AMQP_EVENT_NO_CONFIRM, 0, DUEBOX_UNKNOWN, 0, "amqp.confirm_timeout"},
    {AMQP_EVENT_LOST, 0, DUEBOX_UNKNOWN, 0, "amqp.connection_lost"},
    {AMQP_EVENT_NOT_SENT, 0, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_INSTANCE, "amqp.not_sent"},
    {AMQP_EVENT_RECALLED, 0, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_INSTANCE, "amqp.recalled"},
    {AMQP_EVENT_UNREPEATED, 0, DUEBOX_UNKNOWN, 0, "amqp.recalled"},
    {AMQP_EVENT_ENDS_CONNECTION, 0, DUEBOX_REJECTED, 0, "amqp.connection_closed"},
    {AMQP_EVENT_HELD_UP, 0, DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_ROUTE, "amqp.apart"},
    {AMQP_EVENT_STOPPED, 0, DUEBOX_UNKNOWN, 0, "amqp.stopped"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_ROUTING_KEY, DUEBOX_REJECTED, 0, "amqp.routing_key_too_long"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_KEY_NUL, DUEBOX_REJECTED, 0, "amqp.routing_key_nul"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_KEY_REPLY, DUEBOX_REJECTED, 0, "amqp.routing_key_reserved"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_MESSAGE_ID, DUEBOX_REJECTED, 0, "amqp.message_id_too_long"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_REPLY_TO, DUEBOX_REJECTED, 0, "amqp.reply_to_too_long"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_HEADER_NAME, DUEBOX_REJECTED, 0, "amqp.header_name_too_long"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_HEADERS_SIZE, DUEBOX_REJECTED, 0, "amqp.headers_too_large"},
    {AMQP_EVENT_INVALID, AMQP_INVALID_CC, DUEBOX_REJECTED, 0, "amqp.header_reserved"},
    {AMQP_EVENT_INVALID, 99, DUEBOX_REJECTED, 0, "amqp.invalid"},
    {AMQP_EVENT_NO_MEMORY, 0, DUEBOX_RETRY, 0, "amqp.no_memory"},
};

static void each_row(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
    const struct expectation *e = &expected[i];
    const struct amqp_outcome_row *row = amqp_outcome_find(e->event, e->code);
    assert_int_equal(row->cls, e->cls);
    assert_int_equal(row->scope, e->scope);
    assert_int_equal(row->blameless, e->event == AMQP_EVENT_UNDECIDED || e->event == AMQP_EVENT_UNTRIED ||
                                         e->event == AMQP_EVENT_UNREPEATED);
    if (e->error_class)
      assert_string_equal(row->error_class, e->error_class);
    else
      assert_null(row->error_class);
  }
}

/* Where a copy had left before, nothing says any more that nothing was sent. What else it says holds. */
static void a_second_copy_is_never_called_unsent(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
    enum amqp_event event = amqp_outcome_of_copy(expected[i].event, expected[i].code);
    assert_int_equal(event, expected[i].cls == DUEBOX_UNAVAILABLE ? AMQP_EVENT_UNDECIDED : expected[i].event);
  }
}

static void no_row_is_forgotten_here(void **state) {
  (void)state;
  size_t count;
  const struct amqp_outcome_row *rows = amqp_outcome_rows(&count);
  assert_int_equal(count, sizeof(expected) / sizeof(*expected));
  for (size_t i = 0; i < count; i++) /* reachable: no earlier row hides it */
    assert_ptr_equal(amqp_outcome_find(rows[i].event, rows[i].code), &rows[i]);
}

static void every_failure_says_what_to_do(void **state) {
  (void)state;
  size_t count;
  const struct amqp_outcome_row *rows = amqp_outcome_rows(&count);
  for (size_t i = 0; i < count; i++) {
    if (rows[i].cls == DUEBOX_DELIVERED)
      continue;
    assert_true(rows[i].text && strlen(rows[i].text) > 10);
    assert_int_equal(strncmp(rows[i].error_class, "amqp.", 5), 0);
    assert_true(strlen(rows[i].error_class) <= 63);
  }
}

/* Only what the broker decided, or never had, may be anything but UNKNOWN. */
static void nothing_doubtful_is_called_safe(void **state) {
  (void)state;
  for (int code = 0; code < 600; code++) {
    assert_int_equal(amqp_outcome_find(AMQP_EVENT_UNDECIDED, code)->cls, DUEBOX_UNKNOWN);
    assert_int_equal(amqp_outcome_find(AMQP_EVENT_UNTRIED, code)->cls, DUEBOX_UNKNOWN);
    assert_int_equal(amqp_outcome_find(AMQP_EVENT_LOST, code)->cls, DUEBOX_UNKNOWN);
    assert_int_equal(amqp_outcome_find(AMQP_EVENT_NO_CONFIRM, code)->cls, DUEBOX_UNKNOWN);
    assert_int_equal(amqp_outcome_find(AMQP_EVENT_STOPPED, code)->cls, DUEBOX_UNKNOWN);
    assert_int_not_equal(amqp_outcome_find(AMQP_EVENT_RETURN, code)->cls, DUEBOX_DELIVERED);
  }
  assert_int_equal(amqp_outcome_find(99, 0)->cls, DUEBOX_UNKNOWN);
}

/* The texts of RabbitMQ 3.10 and 4: a right that is missing for one routing key says nothing of the others. */
static void a_right_to_a_routing_key_is_told_from_one_to_the_exchange(void **state) {
  (void)state;
  assert_int_equal(amqp_outcome_refusal(403, "403 ACCESS_REFUSED - write access to topic 'a' in exchange 'x' in vhost "
                                             "'/' refused for user 'u'"),
                   AMQP_EVENT_KEY_REFUSED);
  assert_int_equal(amqp_outcome_refusal(403, "403 ACCESS_REFUSED - access to exchange 'x' in vhost '/' refused for "
                                             "user 'u'"),
                   AMQP_EVENT_REFUSED);
  assert_int_equal(amqp_outcome_refusal(404, "404 NOT_FOUND - no exchange 'access to topic '"), AMQP_EVENT_REFUSED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_row),
      cmocka_unit_test(a_second_copy_is_never_called_unsent),
      cmocka_unit_test(no_row_is_forgotten_here),
      cmocka_unit_test(every_failure_says_what_to_do),
      cmocka_unit_test(nothing_doubtful_is_called_safe),
      cmocka_unit_test(a_right_to_a_routing_key_is_told_from_one_to_the_exchange),
  };
  return cmocka_run_group_tests_name("amqp outcome", tests, NULL, NULL);
}
