/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_message.c - the headers of a record and the text of a due time.
 */
#include "plugins/kafka/kafka_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>

#include <cmocka.h>

static void due_texts_at_the_edges(void **state) {
  static const struct {
    int64_t us;
    const char *text;
  } rows[] = {
      {0, "1970-01-01T00:00:00.000000Z"},
      {1, "1970-01-01T00:00:00.000001Z"},
      {951782399999999, "2000-02-28T23:59:59.999999Z"},
      {951782400000000, "2000-02-29T00:00:00.000000Z"},
      {951868800000000, "2000-03-01T00:00:00.000000Z"},
      {1767323045123456, "2026-01-02T03:04:05.123456Z"},
      {4107542399000000, "2100-02-28T23:59:59.000000Z"},
      {4107542400000000, "2100-03-01T00:00:00.000000Z"},
      {253402300799999999, "9999-12-31T23:59:59.999999Z"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char text[KAFKA_DUE_SIZE];
    kafka_due_text(rows[i].us, text);
    assert_string_equal(text, rows[i].text);
  }
}

static void due_texts_agree_with_the_c_library(void **state) {
  for (int64_t seconds = 0; seconds < 253402300800; seconds += 86399 * 37) {
    char text[KAFKA_DUE_SIZE], want[64];
    struct tm tm;
    time_t t = (time_t)seconds;
    gmtime_r(&t, &tm);
    strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.000000Z", &tm);
    kafka_due_text(seconds * 1000000, text);
    assert_string_equal(text, want);
  }
}

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

static struct duebox_task task(void) {
  return (struct duebox_task){
      .struct_size = sizeof(struct duebox_task),
      .message_id = "018f-17",
      .route = "orders.cancel",
      .attempt = 1,
      .due_us = 1767323045123456,
      .key = {"", 0},
      .payload = {"", 0},
      .checkpoint = {"", 0},
  };
}

static void check(const rd_kafka_headers_t *headers, size_t index, const char *name, const char *value, size_t len) {
  const char *got_name;
  const void *got;
  size_t got_len;
  assert_int_equal(rd_kafka_header_get_all(headers, index, &got_name, &got, &got_len), RD_KAFKA_RESP_ERR_NO_ERROR);
  assert_string_equal(got_name, name);
  assert_int_equal(got_len, len);
  assert_memory_equal(got, value, len);
}

static void the_least_headers(void **state) {
  struct duebox_task t = task();
  rd_kafka_headers_t *headers = kafka_headers(&t);
  assert_int_equal(rd_kafka_header_cnt(headers), 4);
  check(headers, 0, "duebox-id", "018f-17", 7);
  check(headers, 1, "duebox-attempt", "1", 1);
  check(headers, 2, "duebox-route", "orders.cancel", 13);
  check(headers, 3, "duebox-due", "2026-01-02T03:04:05.123456Z", 27);
  rd_kafka_headers_destroy(headers);
}

/* A consumer that has done the old content can tell that this is another. */
static void a_revision_has_a_header(void **state) {
  struct duebox_task t = task();
  t.struct_size = sizeof t;
  t.revision = 12;
  rd_kafka_headers_t *headers = kafka_headers(&t);
  assert_int_equal(rd_kafka_header_cnt(headers), 5);
  check(headers, 2, "duebox-revision", "12", 2);
  rd_kafka_headers_destroy(headers);
  t.struct_size = offsetof(struct duebox_task, revision); /* of an older host */
  headers = kafka_headers(&t);
  assert_int_equal(rd_kafka_header_cnt(headers), 4);
  rd_kafka_headers_destroy(headers);
}

static void all_headers_in_order(void **state) {
  struct duebox_header own[] = {{"traceparent", text("00-1-2-01")}, {"x-bin", {"\x01\xff", 2}}, {"x-empty", text("")}};
  struct duebox_task t = task();
  t.attempt = 4294967295u;
  t.headers = own;
  t.header_count = 3;
  t.checkpoint = (struct duebox_bytes){"a\0b", 3};
  t.reply_to = "duebox-results";
  rd_kafka_headers_t *headers = kafka_headers(&t);
  assert_int_equal(rd_kafka_header_cnt(headers), 9);
  check(headers, 0, "traceparent", "00-1-2-01", 9);
  check(headers, 1, "x-bin", "\x01\xff", 2);
  check(headers, 2, "x-empty", "", 0);
  check(headers, 3, "duebox-id", "018f-17", 7);
  check(headers, 4, "duebox-attempt", "4294967295", 10);
  check(headers, 7, "duebox-checkpoint", "a\0b", 3);
  check(headers, 8, "duebox-reply-to", "duebox-results", 14);
  rd_kafka_headers_destroy(headers);
}

/* Frameworks copy these into the reply, which would answer for another task then: whoever may only insert ended it. */
static void no_header_names_another_message(void **state) {
  struct duebox_header own[] = {{"kafka_correlationId", text("018f-18")},
                                {"Correlation_ID", text("018f-1")},
                                {"correlation_id", text("")},
                                {"correlation_id", text("018f-17")}};
  struct duebox_task t = task();
  t.headers = own;
  t.header_count = 4;
  rd_kafka_headers_t *headers = kafka_headers(&t);
  assert_int_equal(rd_kafka_header_cnt(headers), 5);
  check(headers, 0, "correlation_id", "018f-17", 7);
  rd_kafka_headers_destroy(headers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(due_texts_at_the_edges), cmocka_unit_test(due_texts_agree_with_the_c_library),
      cmocka_unit_test(the_least_headers),      cmocka_unit_test(a_revision_has_a_header),
      cmocka_unit_test(all_headers_in_order),   cmocka_unit_test(no_header_names_another_message),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
