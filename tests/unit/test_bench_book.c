/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_bench_book.c - the histogram and the ledger of the measurements in tests/bench.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/bench/tools/book.h"

enum { DUE = 1767323045 };

static const int64_t due_us = (int64_t)DUE * 1000000 + 123456;

static void quantiles_are_within_a_64th(void **state) {
  for (int64_t us = 1; us < INT64_C(4000000000000); us = us * 3 + 7) {
    struct histogram histogram = {.total = 0};
    histogram_add(&histogram, us);
    histogram_add(&histogram, us * 2);
    int64_t found = histogram_quantile(&histogram, 0.25);
    assert_true(found >= us - us / 64 - 1 && found <= us + us / 64 + 1);
    assert_int_equal(histogram.max_us, us * 2);
  }
}

static void quantiles_are_ranks(void **state) {
  struct histogram histogram = {.total = 0};
  for (int64_t us = 0; us < 60; us++)
    histogram_add(&histogram, us);
  assert_int_equal(histogram_quantile(&histogram, 0), 0);
  assert_int_equal(histogram_quantile(&histogram, 0.5), 30);
  assert_int_equal(histogram_quantile(&histogram, 1), 59);
}

static void what_is_early_counts_as_nought(void **state) {
  struct histogram histogram = {.total = 0};
  assert_int_equal(histogram_quantile(&histogram, 0.99), 0);
  histogram_add(&histogram, -5);
  histogram_add(&histogram, INT64_MAX);
  assert_int_equal(histogram.counts[0], 1);
  assert_int_equal(histogram.counts[HISTOGRAM_BUCKETS - 1], 1);
}

static void due_times_are_read(void **state) {
  assert_int_equal(book_parse_due("2026-01-02T03:04:05.123456Z", 27), due_us);
  assert_int_equal(book_parse_due("2026-01-02 03:04:05.123456", 26), due_us);
  assert_int_equal(book_parse_due("2026-01-02 03:04:05.12345", 25), 0);
  assert_int_equal(book_parse_due("2026-01-02 03:04:05,123456", 26), 0);
  assert_int_equal(book_parse_due("", 0), 0);
}

static void arrive(struct book *book, const char *payload, int64_t due, int64_t now) {
  book_arrive(book, payload, strlen(payload), due, now);
}

static void the_ledger_counts(void **state) {
  struct book book;
  book_open(&book, 10, 100);
  arrive(&book, "10 0 xxx", due_us, due_us + 5);
  arrive(&book, "109 0 xxx", due_us, due_us);
  arrive(&book, "10 0 xxx", due_us, due_us + 9); /* twice */
  arrive(&book, "11 0 xxx", due_us, due_us - 1); /* early */
  assert_int_equal(book.arrivals, 4);
  assert_int_equal(book.distinct, 3);
  assert_int_equal(book.early, 1);
  assert_int_equal(book.strangers, 0);
  assert_int_equal(book.lateness.max_us, 9);
  book_close(&book);
}

static void what_nobody_sent_is_a_stranger(void **state) {
  static const char *const others[] = {"9 0 xxx", "110 0 xxx", "", "10", "10 ", "10 0", "x 0 xxx", "-10 0 x"};
  struct book book;
  book_open(&book, 10, 100);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    arrive(&book, others[i], due_us, due_us);
  assert_int_equal(book.strangers, sizeof others / sizeof others[0]);
  assert_int_equal(book.arrivals, 0);
  book_close(&book);
}

static void lateness_counts_from_the_intended_moment(void **state) {
  struct book book;
  char payload[64];
  book_open(&book, 1, 1);
  snprintf(payload, sizeof payload, "1 %lld x", (long long)(due_us - 40));
  arrive(&book, payload, due_us, due_us + 2);
  assert_int_equal(book.lateness.max_us, 42);
  assert_int_equal(book.early, 0);
  book_close(&book);
}

static void the_first_arrival_of_each_is_kept(void **state) {
  struct book book;
  book_open(&book, 10, 64);
  book_keep_times(&book);
  arrive(&book, "73 0 x", due_us, due_us + 1);
  arrive(&book, "73 0 x", due_us, due_us + 2);
  assert_int_equal(book.times[63], due_us + 1);
  assert_int_equal(book.times[0], 0);
  book_close(&book);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quantiles_are_within_a_64th),
      cmocka_unit_test(quantiles_are_ranks),
      cmocka_unit_test(what_is_early_counts_as_nought),
      cmocka_unit_test(due_times_are_read),
      cmocka_unit_test(the_ledger_counts),
      cmocka_unit_test(what_nobody_sent_is_a_stranger),
      cmocka_unit_test(lateness_counts_from_the_intended_moment),
      cmocka_unit_test(the_first_arrival_of_each_is_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
