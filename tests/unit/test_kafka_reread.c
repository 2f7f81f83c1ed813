/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_reread.c - what is read again behind a gap: all that was passed over is taken, nothing twice.
 */
#include "plugins/kafka/kafka_reread.h"

#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

static void no_gap_is_no_doubt(void **state) {
  struct kafka_reread reread = KAFKA_REREAD_NONE;
  kafka_reread_took(&reread, -1, 17, 17); /* where reading began */
  kafka_reread_took(&reread, 17, 18, 18);
  kafka_reread_took(&reread, 18, 3, 3); /* from the beginning */
  assert_false(kafka_reread_is_due(&reread));
  assert_int_equal(kafka_reread_doubt(&reread), -1);
  assert_false(kafka_reread_knows(&reread, 18));
  kafka_reread_forget(&reread);
}

/* A mark of a transaction is at 11, and one at 14. */
static void an_honest_gap_brings_the_same(void **state) {
  struct kafka_reread reread = KAFKA_REREAD_NONE;
  kafka_reread_took(&reread, 9, 10, 10);
  kafka_reread_took(&reread, 10, 12, 12);
  kafka_reread_took(&reread, 12, 13, 13);
  kafka_reread_took(&reread, 13, 15, 15);
  assert_true(kafka_reread_is_due(&reread));
  assert_int_equal(kafka_reread_doubt(&reread), 11);
  assert_int_equal(kafka_reread_begin(&reread), 11);
  assert_false(kafka_reread_is_due(&reread));
  assert_int_equal(kafka_reread_doubt(&reread), 11);
  for (int64_t offset = 12; offset <= 15; offset++)
    if (offset != 14)
      assert_true(kafka_reread_knows(&reread, offset));
  assert_int_equal(kafka_reread_doubt(&reread), -1);
  assert_false(kafka_reread_knows(&reread, 15)); /* over: it would be another record */
  kafka_reread_forget(&reread);
}

/* The record at 11 claims to be at 15. So does the one that is there, which was passed over with 12 to 14. */
static void what_was_passed_over_is_not_known(void **state) {
  struct kafka_reread reread = KAFKA_REREAD_NONE;
  kafka_reread_took(&reread, 10, 15, 15);
  kafka_reread_took(&reread, 15, 16, 16);
  assert_int_equal(kafka_reread_begin(&reread), 11);
  assert_true(kafka_reread_knows(&reread, 15));
  for (int64_t offset = 12; offset <= 15; offset++)
    assert_false(kafka_reread_knows(&reread, offset));
  assert_true(kafka_reread_knows(&reread, 16));
  assert_int_equal(kafka_reread_doubt(&reread), -1);
  kafka_reread_forget(&reread);
}

static void what_comes_meanwhile_waits_for_the_next_time(void **state) {
  struct kafka_reread reread = KAFKA_REREAD_NONE;
  kafka_reread_took(&reread, 10, 12, 12);
  assert_int_equal(kafka_reread_begin(&reread), 11);
  assert_true(kafka_reread_knows(&reread, 12));
  kafka_reread_took(&reread, 12, 14, 14);
  assert_int_equal(kafka_reread_doubt(&reread), 13);
  assert_int_equal(kafka_reread_begin(&reread), 13);
  kafka_reread_end(&reread); /* 14 was compacted away, and never came */
  assert_int_equal(kafka_reread_doubt(&reread), -1);
  kafka_reread_forget(&reread);
}

static void many_that_claim_the_same_are_told_apart(void **state) {
  struct kafka_reread reread = KAFKA_REREAD_NONE;
  for (int64_t i = 0; i < KAFKA_REREAD_MANY; i++)
    kafka_reread_took(&reread, 2 * i, 2 * i + 2, i % 2 ? 7 : 2 * i + 2);
  assert_true(kafka_reread_is_full(&reread));
  assert_int_equal(kafka_reread_begin(&reread), 1);
  assert_false(kafka_reread_is_full(&reread));
  size_t sevens = 0;
  while (kafka_reread_knows(&reread, 7))
    sevens++;
  assert_int_equal(sevens, KAFKA_REREAD_MANY / 2);
  kafka_reread_forget(&reread);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_gap_is_no_doubt),
      cmocka_unit_test(an_honest_gap_brings_the_same),
      cmocka_unit_test(what_was_passed_over_is_not_known),
      cmocka_unit_test(what_comes_meanwhile_waits_for_the_next_time),
      cmocka_unit_test(many_that_claim_the_same_are_told_apart),
  };
  return cmocka_run_group_tests_name("kafka reread", tests, NULL, NULL);
}
