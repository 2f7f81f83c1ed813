/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_window.c - which offset may be stored, for acknowledgements in any order.
 */
#include "plugins/kafka/kafka_window.h"

#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

static uint64_t push(struct kafka_window *window, int64_t offset) {
  uint64_t sequence;
  assert_true(kafka_window_push(window, offset, &sequence));
  return sequence;
}

static void nothing_is_storable_at_first(void **state) {
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  assert_int_equal(window.stored, -1);
  push(&window, 0);
  assert_int_equal(window.stored, -1);
  kafka_window_free(&window);
}

static void the_first_open_record_holds_the_offset_back(void **state) {
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  uint64_t a = push(&window, 10), b = push(&window, 11), c = push(&window, 15); /* 12 to 14 were compacted away */
  kafka_window_ack(&window, c);
  assert_int_equal(window.stored, -1);
  kafka_window_ack(&window, a);
  assert_int_equal(window.stored, 11);
  kafka_window_ack(&window, b);
  assert_int_equal(window.stored, 16);
  kafka_window_free(&window);
}

/* A broker may name any offset; a large one is not stored as a small one, from which all is read again. */
static void the_largest_offsets_are_kept_as_they_are(void **state) {
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  const int64_t large = INT64_C(1) << 62;
  kafka_window_ack(&window, push(&window, large));
  assert_true(window.stored == large + 1);
  kafka_window_ack(&window, push(&window, INT64_MAX - 1));
  assert_true(window.stored == INT64_MAX);
  kafka_window_free(&window);
}

/* A record that claimed an offset of its own choice, within the log: what really is there comes later. */
static void an_offset_that_is_not_above_the_one_before_holds_it_back(void **state) {
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  uint64_t a = push(&window, 10), odd = push(&window, 5000), b = push(&window, 12), c = push(&window, 13);
  kafka_window_ack(&window, a);
  kafka_window_ack(&window, odd);
  assert_int_equal(window.stored, 12);
  kafka_window_ack(&window, b);
  kafka_window_ack(&window, c);
  assert_int_equal(window.stored, 14);
  kafka_window_ack(&window, push(&window, 6000));
  assert_int_equal(window.stored, 6001);
  uint64_t again = push(&window, 0); /* from the beginning */
  assert_int_equal(window.stored, 0);
  kafka_window_ack(&window, again);
  assert_int_equal(window.stored, 1);
  kafka_window_free(&window);
}

static void acks_twice_or_out_of_range_change_nothing(void **state) {
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  uint64_t a = push(&window, 10);
  push(&window, 11);
  kafka_window_ack(&window, a);
  kafka_window_ack(&window, a);
  kafka_window_ack(&window, 99);
  kafka_window_ack(&window, UINT64_MAX);
  assert_int_equal(window.stored, 11);
  kafka_window_free(&window);
}

static void acks_from_before_a_forget_are_ignored(void **state) {
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  uint64_t old = push(&window, 10);
  kafka_window_forget(&window);
  assert_int_equal(window.stored, -1);
  uint64_t again = push(&window, 10); /* the same record, given to us once more */
  assert_int_not_equal(old, again);
  kafka_window_ack(&window, old);
  assert_int_equal(window.stored, -1);
  kafka_window_ack(&window, again);
  assert_int_equal(window.stored, 11);
  kafka_window_free(&window);
}

static void a_record_taken_back_leaves_no_trace(void **state) {
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  uint64_t a = push(&window, 10);
  push(&window, 11);
  kafka_window_pop(&window);
  kafka_window_ack(&window, a);
  assert_int_equal(window.stored, 11);
  kafka_window_ack(&window, push(&window, 11));
  assert_int_equal(window.stored, 12);
  kafka_window_free(&window);
}

/* Against the plain definition: the smallest offset that is not acknowledged. */
static void any_order_agrees_with_the_definition(void **state) {
  enum { COUNT = 3000 };
  uint64_t sequences[COUNT];
  bool acked[COUNT] = {false};
  struct kafka_window window = KAFKA_WINDOW_EMPTY;
  unsigned random = 1;
  size_t pushed = 0, lowest = 0;
  while (lowest < COUNT) {
    random = random * 1103515245u + 12345u;
    if (pushed < COUNT && (random >> 16) % 3 == 0) {
      sequences[pushed] = push(&window, (int64_t)pushed);
      pushed++;
    } else if (pushed > lowest) {
      size_t i = lowest + (random >> 8) % (pushed - lowest);
      kafka_window_ack(&window, sequences[i]);
      acked[i] = true;
      while (lowest < COUNT && acked[lowest])
        lowest++;
    }
    assert_int_equal(window.stored, lowest ? (int64_t)lowest : -1);
  }
  kafka_window_free(&window);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_storable_at_first),
      cmocka_unit_test(the_first_open_record_holds_the_offset_back),
      cmocka_unit_test(the_largest_offsets_are_kept_as_they_are),
      cmocka_unit_test(an_offset_that_is_not_above_the_one_before_holds_it_back),
      cmocka_unit_test(acks_twice_or_out_of_range_change_nothing),
      cmocka_unit_test(acks_from_before_a_forget_are_ignored),
      cmocka_unit_test(a_record_taken_back_leaves_no_trace),
      cmocka_unit_test(any_order_agrees_with_the_definition),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
