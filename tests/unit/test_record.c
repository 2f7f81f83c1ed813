/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_record.c - what consumers answer: every member, every wrong type, and the answers to a call.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/record.h"

#define HEAD "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\""

static void test_shortest(void **state) {
  struct result_record r;
  struct err err = {0};
  const char *text = HEAD "}";
  assert_true(result_record_parse(text, strlen(text), &r, &err));
  assert_string_equal(r.message_id, "m-1");
  assert_int_equal(r.attempt, 2);
  assert_int_equal(r.status, RESULT_DONE);
  assert_int_equal(r.retry_in_ms, -1);
  assert_int_equal(r.extend_ms, -1);
  assert_true(fabs(r.progress + 1) < 1e-9);
  assert_null(r.error_class);
  assert_null(r.error_message);
  assert_null(r.error_stack);
  assert_null(r.checkpoint);
  assert_null(r.result_json);
  result_record_free(&r);
  result_record_free(&r); /* twice is fine */
}

static void test_all(void **state) {
  struct result_record r;
  struct err err = {0};
  const char *text =
      " {\"id\": \"0190-abc\", \"attempt\": 4294967295, \"status\": \"progress\", \"retry_in_ms\": 30000,\n"
      "  \"error\": {\"class\": \"Timeout\", \"message\": \"sl\\u00f6w \\\"db\\\"\", \"stack\": \"a\\nb\", \"code\": "
      "5},\n"
      "  \"progress\": 0.4, \"checkpoint\": \"{\\\"page\\\":7}\", \"extend_ms\": 60000, \"extra\": [1, {\"id\": 2}],\n"
      "  \"result\": {\"big\": 123456789012345678901234567890, \"f\": 1.10, \"s\": \"\\u00e9\"} } ";
  if (!result_record_parse(text, strlen(text), &r, &err))
    fail_msg("%s", err.text);
  assert_string_equal(r.message_id, "0190-abc");
  assert_int_equal(r.attempt, UINT32_MAX);
  assert_int_equal(r.status, RESULT_PROGRESS);
  assert_int_equal(r.retry_in_ms, 30000);
  assert_int_equal(r.extend_ms, 60000);
  assert_true(fabs(r.progress - 0.4) < 1e-12);
  assert_string_equal(r.error_class, "Timeout");
  assert_string_equal(r.error_message, "sl\xc3\xb6w \"db\"");
  assert_string_equal(r.error_stack, "a\nb");
  assert_string_equal(r.checkpoint, "{\"page\":7}");
  assert_int_equal(r.checkpoint_len, 10);
  assert_string_equal(r.result_json, "{\"big\": 123456789012345678901234567890, \"f\": 1.10, \"s\": \"\\u00e9\"}");
  assert_int_equal(r.result_json_len, strlen(r.result_json));
  result_record_free(&r);
}

/* Members that make a record; each is put behind HEAD. */
static const struct {
  const char *members;
  double progress;
} good[] = {
    {",\"error\":null,\"checkpoint\":null,\"progress\":null,\"retry_in_ms\":null,\"extend_ms\":null", -1},
    {",\"error\":{\"class\":null,\"message\":null,\"stack\":null}", -1},
    {",\"error\":{}", -1},
    {",\"result\":null", -1},
    {",\"result\":[]", -1},
    {",\"result\":-0.5e+10", -1},
    {",\"other\":null,\"other\":1", -1},
    {",\"progress\":0", 0},
    {",\"progress\":1", 1},
    {",\"progress\":1.0", 1},
    {",\"progress\":1.0E-4", 0.0001},
    {",\"progress\":0.30000000000000004", 0.3},
    {",\"progress\":50e-2", 0.5},
    {",\"progress\":0.0000000000000000000000000000000000000000000000000005", 0},
    {",\"progress\":1e-999999999999", 0},
    {",\"progress\":-0.0", 0},
    {",\"retry_in_ms\":0,\"extend_ms\":315360000000", -1},
};

static void test_good(void **state) {
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    char text[256];
    struct result_record r;
    struct err err = {0};
    snprintf(text, sizeof text, HEAD "%s}", good[i].members);
    if (!result_record_parse(text, strlen(text), &r, &err))
      fail_msg("%s: %s", good[i].members, err.text);
    assert_true(fabs(r.progress - good[i].progress) < 1e-12);
    result_record_free(&r);
  }
}

static const struct {
  const char *text, *error;
} bad[] = {
    {"", "no valid JSON: byte 0: an object { } is wanted"},
    {"done", "no valid JSON: byte 0: an object { } is wanted"},
    {"[]", "no valid JSON: byte 0: an object { } is wanted"},
    {"{}", "\"id\" is missing"},
    {"{\"id\":\"a\"}", "\"attempt\" is missing"},
    {"{\"id\":\"a\",\"attempt\":1}", "\"status\" is missing"},
    {HEAD, "no valid JSON: byte 39: a comma or the end of the object is wanted"},
    {HEAD "}{}", "no valid JSON: byte 40: something follows behind the end"},
    {HEAD ",\"id\":\"m-1\"}", "\"id\" is there twice"},
    {HEAD ",\"error\":{\"class\":\"a\",\"class\":\"b\"}}", "\"class\" is there twice"},
    {HEAD ",\"x\":nul}", "no valid JSON: byte 44: a value is wanted"},
    {HEAD ",\"x\":01}", "no valid JSON: byte 46: a number begins with a needless zero"},
    {HEAD ",\"x\":\"\xff\"}", "no valid JSON: byte 45: a string is not valid UTF-8"},
    {HEAD ",\"x\":\"\\u0000\"}", "no valid JSON: byte 51: a NUL character (\\u0000) is not allowed"},
    {"{\"id\":17,\"attempt\":1,\"status\":\"done\"}", "\"id\" must be a string"},
    {"{\"id\":null}", "\"id\" must be a string"},
    {"{\"id\":\"\"}", "\"id\" must be the message id: 1 to 64 characters"},
    {"{\"id\":\"0123456789012345678901234567890123456789012345678901234567890123x\"}",
     "\"id\" must be the message id: 1 to 64 characters"},
    {"{\"id\":\"a b\"}", "\"id\" must be the message id: printable ASCII without spaces"},
    {"{\"id\":\"\xc3\xa9\"}", "\"id\" must be the message id: printable ASCII without spaces"},
    {"{\"attempt\":\"1\"}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"attempt\":0}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"attempt\":-1}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"attempt\":1.0}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"attempt\":1e3}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"attempt\":4294967296}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"attempt\":99999999999999999999}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"status\":\"Done\"}", "\"status\" must be one of done, retry, fail, progress"},
    {"{\"status\":true}", "\"status\" must be a string"},
    {HEAD ",\"retry_in_ms\":-1}", "\"retry_in_ms\" must be a whole number of milliseconds, from 0 to ten years"},
    {HEAD ",\"retry_in_ms\":1.5}", "\"retry_in_ms\" must be a whole number of milliseconds, from 0 to ten years"},
    {HEAD ",\"extend_ms\":315360000001}", "\"extend_ms\" must be a whole number of milliseconds, from 0 to ten years"},
    {HEAD ",\"progress\":40}", "\"progress\" must be a number from 0 to 1"},
    {HEAD ",\"progress\":-0.1}", "\"progress\" must be a number from 0 to 1"},
    {HEAD ",\"progress\":\"half\"}", "\"progress\" must be a number from 0 to 1"},
    {HEAD ",\"progress\":1e999}", "\"progress\" must be a number from 0 to 1"},
    {HEAD ",\"checkpoint\":{}}", "\"checkpoint\" must be a string"},
    {HEAD ",\"error\":\"boom\"}", "\"error\" must be an object with class, message and stack"},
    {HEAD ",\"error\":{\"message\":5}}", "\"error.message\" must be a string"},
    {HEAD ",\"error\":{\"class\":\"a\\u0000\"}}", "\"error.class\": a NUL character (\\u0000) is not allowed"},
    {HEAD ",\"result\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
     "\"result\" must be a JSON value"},
};

static void test_bad(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (result_record_parse(bad[i].text, strlen(bad[i].text), &r, &err))
      fail_msg("accepted: %s", bad[i].text);
    assert_string_equal(err.text, bad[i].error);
    assert_null(r.memory);
  }
}

static void test_answer(void **state) {
  static const struct {
    const char *text, *error; /* NULL = good */
  } rows[] = {
      {"{\"status\":\"retry\"}", NULL},
      {"{\"status\":\"retry\",\"id\":\"m-1\",\"attempt\":2}", NULL},
      {"{\"status\":\"retry\",\"id\":\"m-2\"}", "\"id\" is that of another task"},
      {"{\"status\":\"retry\",\"attempt\":1}", "\"attempt\" is 1, this call was attempt 2"},
      {"{\"status\":\"ok\"}", "\"status\" must be one of done, retry, fail, progress"},
      {"{\"ok\":true}", "\"status\" is missing"},
      {"<html>", "no valid JSON: byte 0: an object { } is wanted"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct result_record r;
    struct err err = {0};
    bool ok = result_record_parse_answer(rows[i].text, strlen(rows[i].text), "m-1", 2, &r, &err);
    assert_int_equal(ok, rows[i].error == NULL);
    if (rows[i].error) {
      assert_string_equal(err.text, rows[i].error);
      continue;
    }
    assert_string_equal(r.message_id, "m-1");
    assert_int_equal(r.attempt, 2);
    assert_int_equal(r.status, RESULT_RETRY);
    result_record_free(&r);
  }
}

static void test_status_texts(void **state) {
  assert_string_equal(result_status_text(RESULT_DONE), "done");
  assert_string_equal(result_status_text(RESULT_RETRY), "retry");
  assert_string_equal(result_status_text(RESULT_FAIL), "fail");
  assert_string_equal(result_status_text(RESULT_PROGRESS), "progress");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shortest), cmocka_unit_test(test_all),
                                     cmocka_unit_test(test_good),     cmocka_unit_test(test_bad),
                                     cmocka_unit_test(test_answer),   cmocka_unit_test(test_status_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
