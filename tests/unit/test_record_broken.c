/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_record_broken.c - records that are no valid JSON, so that more than one reading is possible: which
 * task, attempt and status count, and when none does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/record.h"

static const struct record_road nothing_known = {0};
static const struct record_road correlated = {.message_id = "pay-8"}; /* whatever a framework copied there */
static const struct record_road call = {.message_id = "m-1", .attempt = 2};

static bool parse(const char *text, const struct record_road *road, struct result_record *r, struct err *err) {
  return result_record_parse(text, strlen(text), road, r, err);
}

/* Of a record that is broken so that quotes prove nothing, one status counts, not the first of two: a consumer that
 * said retry, and done as well perhaps, has not said done. err->code makes a failure of it where it is the body of a
 * 2xx. */
static void test_a_status_beside_another_is_doubtful(void **state) {
  static const char *const texts[] = {
      "{'\"status\":\"done\",\"note\":\"{ID':'m-9','status':'retry'}\"}",
      "{\"status\":\"retry\",,\"x\":\"{\"status\":\"done\"}\"}",
      "{\"error\":\"\"status\": \"done\"\",\"status\":\"retry\"}",
      "{\"status\":\"done\",\"dir\":\"C:\\out\\\",\"status\":\"retry\"}",
      "{\"status\":\"done\",\"note\":\"5\" pipe\",\"x\":{\"status\":\"retry\"}}",
      "{\"status\":\"done\",\"note\":\"5\" pipe\",'status':'retry'}",
      "{\"status\":\"done\",\"note\":\"5\" pipe\",\"status\"\"retry\"}",
      "{\"status\":\"done\",\"note\":\"5\" pipe\",\"status\":x\"retry\"}",
      "{\"status\":\"done\",\"note\":\"a\"}{\"status\":\"retry\"}",
      "{\"status\":\"done\",\"note\":\"a\"{\"status\":\"retry\"}",
      "{\"status\":\"done\",\"status\":\"retry}",
      "{\"status\":\"done,\"result\":{\"a\":\"b\",\"status\":\"retry\"}}",
      "{\"status\":\"retry,\"result\":{\"a\":\"b\",\"status\":\"done\"}",
      "{\"result\":{\"a\":1},\"status\":\"done\"}}",
      "{\"status\":\"\"retry\"}",
      "{\"status\":[\"retry\"}",
      "{\"note\":\"got {\"id\":\"m-9\",\"status\":\"done\"}",
      "{\"error\":{\"message\":\"no\"},\"status\":\"done\"},\"checkpoint\":",
      "{\"status\":\"retry",
      "{status\":\"retry\"}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (parse(texts[i], &call, &r, &err))
      fail_msg("%s counts as %s", texts[i], result_status_text(r.status));
    if (err.code != RECORD_DOUBTFUL)
      fail_msg("%s: %s", texts[i], err.text);
  }
}

/* Whoever finds a record in the quarantine reads there between which values the choice was, and where they are. */
static void test_the_reason_names_both(void **state) {
  struct result_record r;
  struct err err = {0};
  assert_false(parse("{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\",\"dir\":\"C:\\\",\"id\":\"m-9\"}",
                     &nothing_known, &r, &err));
  assert_string_equal(err.text,
                      "it cannot be told which \"id\" is meant, m-1 or m-9 at byte 58: no valid JSON: byte 53: "
                      "a comma or the end of the object is wanted");
}

/* An answer ends the task that it is about and no other, whatever is broken in it: one that may be about two is about
 * none. */
static void test_an_answer_that_names_two_tasks_or_attempts_is_about_none(void **state) {
  static const char *const texts[] = {
      "{\"status\":\"done\",\"attempt\":1,\"dir\":\"C:\\out\\\",\"x\":[{\"n\":\"x\",\"id\":\"p-2\"}],\"id\":\"p-1\"}",
      "{\"attempt\":1,\"status\":\"done\",\"note:{\"a\":\"x\",\"id\":\"pay-4\"},\"id\":\"pay-3\"}",
      "{\"id\":\"pay-5\",\"attempt\":1,\"status\":\"done\",\"ID\":\"pay-6\"}",
      "{\"id\":\"pay-5\",\"attempt\":1,\"status\":\"done\",\"id\":\"pay-6\"}",
      "{\"id\":5,\"attempt\":1,\"status\":\"done\",\"id\":6,}",
      "{\"id\":\"m-1\",\"attempt\":2,\"attempt\":3,\"status\":\"done\"}",
      "{\"id\":\"m-1\",\"status\":\"done\",\"x\":\"{\"id\":\"m-9\",\"attempt\":7}\",\"attempt\":2}",
      "{\"status\":\"done\",\"attempt\":2,\"x\":{\"a\":\"5\" pipe\",\"id\":\"m-9\"},\"id\":\"m-1\"}",
      "{\"status\":\"done\",\"attempt\":2,\"x\":[{\"id\":\"m-9\"},\"id\":\"m-1\"}",
      "{\"status\":\"done\",\"attempt\":2,\"x\":\"say \\\"id\\\": \\\"m-9\\\"\" ,\"y\":\"\"\",\"id\":\"m-1\"}",
      "{\"note\":\"a\",\"id\":\"m-9\",\"z\":\"c\" d\",\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\"}",
#define KNOWN "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\""
      KNOWN ",\"dir\":\"C:\\\",\"x\":\"y\",\"id\":\"m-9\"}",
      KNOWN ",\"note\":\"5\" pipe\",\"x\":{\"id\":5}}",
      KNOWN ",\"note\":\"5\" pipe, 'attempt': 3\"}",
      KNOWN ",\"note\":\"5\" pipe\",\"id\"\"m-9\"}",
      KNOWN ",\"note\":\"5\" pipe\",\"attempt\"3}",
      KNOWN ",\"note\":\"5\" pipe\",\"id\":\"m-9}",
      KNOWN "}\n{\"id\":\"m-9\",\"attempt\":2,\"status\":\"done\"}",
      KNOWN "{\"id\":\"m-1\",\"attempt\":3,\"status\":\"done\"}",
      KNOWN ",\"x\":{\"a\":1,\"id\":\"m-9\"}",
      KNOWN ",\"x\":[1,\"id\":\"m-9\"]}",
      KNOWN ",\"sta{\"id\":\"m-9\",\"attempt\":2,\"status\":\"done\"}",
#undef KNOWN
      "{'\"id\":\"m-1\",\"attempt\":1,\"status\":\"done\",\"note\":\"{ID':'m-9','attempt':2,'status':'retry'}\"}",
      "{\"note\":'\"id\":\"m-1\",\"attempt\":1,\"x\":\"{','id':'m-9','attempt':2,'status':'retry'}\"}",
      "{\"status\":\"done\",\"result\"::{\"attempt\":2,\"id\":\"m-9\",\"status\"",
      "{\"result\":,\"ID\":\"m-9\",\"attempt\":2,\"status\":\"fail\",",
      "{\"id\":\"m-1\"x\",\"attempt\":2,\"status\":\"done\"}",
      "{\"id\":\"m-1\\\",\"attempt\":2,\"status\":\"done\"}",
      "{\"attempt\":2,\"status\":\"done\",\"id\":\"m-1,\"x\":12}",
      "{\"id\":\"m-1\",\"attempt\":1x2,\"status\":\"done\"}",
      "{\"id\":\"m-1\",\"attempt\":1 2,\"status\":\"done\"}",
      "{\"id\":\"m-1\",\"attempt\":1,2,\"status\":\"done\"}",
      "{\"id\":\"m-1\",\"attempt\":x2,\"status\":\"done\",\"attempt\":3}",
      "{\"id\":\"m-1\",\"status\":\"done\",\"attempt\":1",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (parse(texts[i], &nothing_known, &r, &err) || parse(texts[i], &correlated, &r, &err))
      fail_msg("%s: taken for an answer about %s, attempt %u", texts[i], r.message_id, r.attempt);
  }
}

/* Where it is certain what is the record's own, the ids of other things in a broken one cost it nothing. */
static void test_ids_within_a_broken_record_are_told_apart(void **state) {
  static const char *const texts[] = {
      "{\"result\":{\"id\":\"order-9\",\"attempt\":7},\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",}",
      "{'result': {'id': 'order-9', 'note': \"it's\"}, 'id': 'm-1', 'attempt': 2, 'status': 'retry'}",
      "{\"note\":\"g\xe9n\xe9ral\",\"result\":[{\"id\":\"order-9\"}],\"id\":\"m-1\",\"attempt\":2,\"status\":"
      "\"retry\"}",
      "{\"load\":NaN,\"result\":{\"id\":9},\"id\":\"m-1\",\"attempt\":\"2\",\"status\":\"retry\"}",
      "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"result\":{\"id\":\"order-9\",\"text\":\"and then it was "
      "cut o",
      "{\"text\":\"5\" "
      "pipe\",\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"copy\":{\"id\":\"m-1\",\"attempt\":null}}",
      "{\"id\":\"m-1\",\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\"}",
      "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\"}{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\"}",
      "{\"result\":{\"status\":\"shipped\",\"id\":5},\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"dir\":\"C:"
      "\\\"}",
      "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"result\":{\"id\":5,\"note\":\"5\" pipe\"}}",
      "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"note\":\"5\" pipe\",\"x\":{\"status\":\"shipped\"}}",
      "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"x\":\"{\\\"id\\\":7,\\\"status\\\":\\\"done\\\"}\",}",
      "{'result': '{\"status\": \"done\", \"id\": 9}', 'id': 'm-1', 'attempt': 2, 'status': 'retry'}",
      "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"error\":\"no \"order id\": exit status: 1, HTTP status: "
      "404\"}",

  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (!parse(texts[i], &nothing_known, &r, &err))
      fail_msg("refused: %s: %s", texts[i], err.text);
    if (r.status != RESULT_RETRY || strcmp(r.message_id, "m-1") != 0 || r.attempt != 2)
      fail_msg("%s: status %s of %s, attempt %u", texts[i], result_status_text(r.status), r.message_id, r.attempt);
    result_record_free(&r);
  }
}

/* What a framework copied there says which of two tasks an id may be about that stands behind the defect. */
static void test_a_guess_must_agree_with_the_correlation_id(void **state) {
  static const char text[] = "{\"note\":\"5\" pipe\",\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\"";
  static const struct record_road same = {.message_id = "m-1"};
  struct result_record r;
  struct err err = {0};
  for (int closed = 0; closed < 2; closed++) {
    char whole[sizeof text + 1];
    snprintf(whole, sizeof whole, "%s%s", text, closed ? "}" : "");
    assert_true(parse(whole, &same, &r, &err));
    assert_string_equal(r.message_id, "m-1");
    assert_int_equal(r.status, RESULT_RETRY);
    result_record_free(&r);
    assert_false(parse(whole, &correlated, &r, &err));
  }
  /* Which task a call is about needs no telling. */
  assert_true(parse("{\"attempt\":2,\"status\":\"retry\",\"id\":\"m-1\"", &call, &r, &err));
  result_record_free(&r);
}

/* Of a record of which only the beginning was kept: what it says as a whole counts if it stands before the large part,
 * whatever that part looks like, and what the cut may have changed does not. */
static void test_what_stands_before_a_large_part(void **state) {
  static const struct {
    const char *kept;
    uint32_t attempt; /* 0 = it does not count */
    enum result_status status;
    int64_t retry_in_ms;
  } rows[] = {
      {"{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\",\"result\":\"xxxx", 2, RESULT_DONE, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\",\"result\":[{\"id\":\"m-9\",\"attempt\":1,\"status\":"
       "\"fail\"},",
       2, RESULT_DONE, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"retry_in_ms\":5000,\"status\":\"retry\",\"error\":{\"class\":\"E\",\"stack\":"
       "\"at \\ud83d",
       2, RESULT_RETRY, 5000},
      {"{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"retry_in_ms\":5", 2, RESULT_RETRY, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"status\":\"fail\",\"checkpoint\":\"caf\xc3", 2, RESULT_FAIL, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\"}      ", 2, RESULT_DONE, -1},
      {"{\"id\":\"m-1\",\"status\":\"done\",\"attempt\":2", 0, RESULT_DONE, -1},
      {"{\"status\":\"done\",\"attempt\":2,\"id\":17", 0, RESULT_DONE, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"result\":{\"status\":\"done\"", 0, RESULT_DONE, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"result\":\"status\\\":\\\"done", 0, RESULT_DONE, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\",\"status\":\"fail\",\"result\":\"xx", 0, RESULT_DONE, -1},
      {"{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\"}{\"id\":\"m-2\",\"status\":\"fail\"", 0, RESULT_DONE, -1},
      {"", 0, RESULT_DONE, -1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    static const struct record_road road = {.full_len = 300000};
    struct result_record r;
    struct err err = {0};
    bool counts = parse(rows[i].kept, &road, &r, &err);
    if (counts != (rows[i].attempt > 0))
      fail_msg("%s: %s", rows[i].kept, counts ? "counts" : err.text);
    if (!counts)
      continue;
    assert_string_equal(r.message_id, "m-1");
    assert_int_equal(r.attempt, rows[i].attempt);
    assert_int_equal(r.status, rows[i].status);
    assert_int_equal(r.retry_in_ms, rows[i].retry_in_ms);
    assert_null(r.result_json);
    assert_string_equal(r.error_class, RECORD_BROKEN);
    assert_non_null(strstr(r.flaw, "300000 bytes, more than max_record"));
    result_record_free(&r);
  }
}

/* A payment is not done because a step of it was: what is cut off, or quoted without care, has no status then. */
static void test_a_status_of_something_else_is_nobodys_word(void **state) {
  static const char *const texts[] = {
      "\"attempt\":2,\"error\":{\"class\":\"Declined\",\"step\":{\"name\":\"reserve\",\"status\":\"done\"},\"message\":"
      "\"funds",
      "\"attempt\":2,\"result\":{\"order\":17,\"status\":\"done\"},}",
      "attempt\":2,\"error\":{\"status\":\"retry\"},\"stat",
      "\"attempt\":2,\"error\":{},\"result\":{\"id\":\"}\",\"status\":\"done\"},",
      "\"attempt\":2,\"error\":{\"message\":\"]}\",\"status\":\"done\"},\"note\":\"x\",\"ch",
      "\"attempt\":2,\"statu\xffs\":\"fail\",\"result\":{\"status\":\"retry\"}}",
      "\"attempt\":2,\"x\":\"{\"b\":\"q\",\"status\":\"done\"}\",\"status\":\"fail\"}",
      "\"attempt\":2,\"x\":\"{\"status\":\"done\"}\"}",
      "\"attempt\":2,\"status\":\"fail\",\"status\":\"done\"}",
      "\"attempt\":2,,\"status\":\"fail\",\"status\":\"done\"}",
      "\"attempt\":2,\"status\":\"ok\",\"status\":\"done\"}",
  };
  static const struct record_road *const roads[] = {&nothing_known, &call};
  for (size_t i = 0; i < 2 * sizeof texts / sizeof texts[0]; i++) {
    char text[256];
    struct result_record r;
    struct err err = {0};
    snprintf(text, sizeof text, "{\"id\":\"m-1\",%s", texts[i / 2]);
    if (parse(text, roads[i % 2], &r, &err))
      fail_msg("%s counts as %s", text, result_status_text(r.status));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_stands_before_a_large_part),
                                     cmocka_unit_test(test_a_status_beside_another_is_doubtful),
                                     cmocka_unit_test(test_the_reason_names_both),
                                     cmocka_unit_test(test_an_answer_that_names_two_tasks_or_attempts_is_about_none),
                                     cmocka_unit_test(test_ids_within_a_broken_record_are_told_apart),
                                     cmocka_unit_test(test_a_guess_must_agree_with_the_correlation_id),
                                     cmocka_unit_test(test_a_status_of_something_else_is_nobodys_word)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
