/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_record.c - what consumers answer: every member, every wrong type, the answers to a call, and the
 * promise that an intelligible status counts whatever else is wrong: a consumer that said "retry" is never done.
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

static const struct record_road nothing_known = {0};
static const struct record_road call = {.message_id = "m-1", .attempt = 2};

static bool parse(const char *text, const struct record_road *road, struct result_record *r, struct err *err) {
  return result_record_parse(text, strlen(text), road, r, err);
}

#define HEAD "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\""

static void test_shortest(void **state) {
  struct result_record r;
  struct err err = {0};
  const char *text = HEAD "}";
  assert_true(parse(text, &nothing_known, &r, &err));
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
  if (!parse(text, &nothing_known, &r, &err))
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
    if (!parse(text, &nothing_known, &r, &err))
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
    {"{}", "\"status\" is missing"},
    {"{\"id\":\"a\",\"attempt\":1}", "\"status\" is missing"},
    {"{\"status\":\"done\"}", "\"id\" is missing"},
    {"{\"status\":\"done\",\"id\":null,\"attempt\":1}", "\"id\" is missing"},
    {"{\"status\":\"done\",\"id\":\"a\"}", "\"attempt\" is missing"},
    {"{\"status\":\"fail\",\"id\":\"a\",\"attempt\":0}", "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"status\":\"fail\",\"id\":\"a\",\"attempt\":-1}",
     "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"status\":\"fail\",\"id\":\"a\",\"attempt\":1.5}",
     "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"status\":\"fail\",\"id\":\"a\",\"attempt\":[1]}",
     "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"status\":\"fail\",\"id\":\"a\",\"attempt\":1e30}",
     "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"status\":\"fail\",\"id\":\"a\",\"attempt\":\"x\"}",
     "\"attempt\" must be the whole number of the attempt, from 1"},
    {"{\"status\":\"done\",\"id\":\"\",\"attempt\":1}",
     "\"id\" must be the message id: 1 to 64 characters of printable ASCII without spaces"},
    {"{\"status\":\"done\",\"id\":\"0123456789012345678901234567890123456789012345678901234567890123x\"}",
     "\"id\" must be the message id: 1 to 64 characters of printable ASCII without spaces"},
    {"{\"status\":\"done\",\"id\":\"a b\"}",
     "\"id\" must be the message id: 1 to 64 characters of printable ASCII without spaces"},
    {"{\"status\":\"done\",\"id\":\"\xc3\xa9\"}",
     "\"id\" must be the message id: 1 to 64 characters of printable ASCII without spaces"},
    {"{\"status\":\"done\",\"id\":{}}", "\"id\" must be a string"},
    {"{\"status\":\"finished\",\"id\":\"a\",\"attempt\":1}", "\"status\" must be one of done, retry, fail, progress"},
    {HEAD ",\"status\":\"finished\"}", "it cannot be told which \"status\" is meant: \"status\" is there twice"},
    {"{\"status\":true,\"id\":\"a\",\"attempt\":1}", "\"status\" must be one of done, retry, fail, progress"},
    {"{\"status\":\"SUCCESS\",\"id\":\"a\",\"attempt\":1}", "\"status\" must be one of done, retry, fail, progress"},
    {"{\"id\":\"m-1\",\"attempt\":2,\"data\":{\"status\":\"fail\"}}", "\"status\" is missing"},
    {"{\"id\":\"m-1\",\"attempt\":2,\"stat", "no valid JSON: byte 29: a string is not closed"},
};

static void test_bad(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (parse(bad[i].text, &nothing_known, &r, &err))
      fail_msg("accepted: %s", bad[i].text);
    assert_string_equal(err.text, bad[i].error);
    assert_null(r.memory);
  }
}

/* Everything else that can be wrong with a record whose status, id and attempt are intelligible. */
static const struct {
  const char *members, *flaw; /* behind HEAD */
} flawed[] = {
    {"", "no valid JSON: byte 39: a comma or the end of the object is wanted"},
    {"}{}", "no valid JSON: byte 40: something follows behind the end"},
    {",\"id\":\"m-1\"}", "\"id\" is there twice"},
    {",\"error\":{\"class\":\"a\",\"class\":\"b\"}}", "\"class\" is there twice"},
    {",\"x\":nul}", "no valid JSON: byte 44: a value is wanted"},
    {",\"x\":01}", "no valid JSON: byte 46: a number begins with a needless zero"},
    {",\"x\":\"\xff\"}", "no valid JSON: byte 45: a string is not valid UTF-8"},
    {",\"x\":\"\\u0000\"}", "no valid JSON: byte 51: a NUL character (\\u0000) is not allowed"},
    {",\"attempt\":1.5}", "\"attempt\" is there twice"},
    {",\"retry_in_ms\":-1}", "\"retry_in_ms\" must be a whole number of milliseconds, from 0 to ten years"},
    {",\"retry_in_ms\":1.5}", "\"retry_in_ms\" must be a whole number of milliseconds, from 0 to ten years"},
    {",\"extend_ms\":315360000001}", "\"extend_ms\" must be a whole number of milliseconds, from 0 to ten years"},
    {",\"extend_ms\":1e999}", "\"extend_ms\" must be a whole number of milliseconds, from 0 to ten years"},
    {",\"progress\":40}", "\"progress\" must be a number from 0 to 1"},
    {",\"progress\":\"half\"}", "\"progress\" must be a number from 0 to 1"},
    {",\"progress\":1e999}", "\"progress\" must be a number from 0 to 1"},
    {",\"checkpoint\":{}}", "\"checkpoint\" must be a string"},
    {",\"error\":\"boom\"}", "\"error\" must be an object with class, message and stack"},
    {",\"error\":17}", "\"error\" must be an object with class, message and stack"},
    {",\"error\":{\"message\":5}}", "\"error.message\" must be a string"},
    {",\"error\":{\"class\":\"a\\u0000\"}}", "\"error.class\": a NUL character (\\u0000) is not allowed"},
    {",\"result\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
     "\"result\" must be a JSON value, nested 32 levels deep at most, without \\u0000 or half a surrogate pair"},
};

static void test_flawed(void **state) {
  for (size_t i = 0; i < sizeof flawed / sizeof flawed[0]; i++) {
    char text[256];
    struct result_record r;
    struct err err = {0};
    snprintf(text, sizeof text, HEAD "%s", flawed[i].members);
    if (!parse(text, &nothing_known, &r, &err))
      fail_msg("refused: %s: %s", text, err.text);
    assert_string_equal(r.message_id, "m-1");
    assert_int_equal(r.attempt, 2);
    assert_int_equal(r.status, RESULT_DONE);
    assert_non_null(r.flaw);
    assert_string_equal(r.flaw, flawed[i].flaw);
    assert_string_equal(r.error_class, RECORD_BROKEN);
    result_record_free(&r);
  }
}

/* Answers of real consumers that used to end as done: a slightly wrong field must not turn a retry into a success. */
static const char *const slips[] = {
    "{\"status\":\"retry\",\"error\":\"partner is closed\"}",
    "{\"status\":\"retry\",\"attempt\":\"2\"}",
    "{\"status\":\"retry\",\"attempt\":1}",
    "{\"status\":\"retry\",\"id\":4711}",
    "{\"status\":\"retry\",\"id\":\"another\"}",
    "{\"status\":\"retry\",\"retry_in_ms\":\"30000\"}",
    "{\"status\":\"retry\",\"retry_in_ms\":30000.5}",
    "{\"status\":\"retry\",\"retry_in_ms\":1e999}",
    "{\"status\":\"retry\",\"progress\":40}",
    "{\"status\":\"retry\",\"error\":{\"class\":404}}",
    "{\"status\":\"retry\",}",
    "{\"status\":\"retry\",\"error\":{\"message\":\"g\xe9n\xe9ral\"}}",
    "{\"error\":{\"message\":\"g\xe9n\xe9ral\"},\"status\":\"retry\"}",
    "\xef\xbb\xbf{\"status\":\"retry\"}",
    "{'status': 'retry', 'error': None}",
    "{\"status\":\"Retry\"}",
    "{\"status\":\"RETRY\"}",
    "{\"Status\":\"Retry\"}",
    "{\"STATUS\":\"RETRY\",\"RETRY_IN_MS\":5}",
    "{\"Error\":{\"Message\":\"closed\"},\"Status\":\"retry\",}",
    "{\"text\":\"5\" pipe\",\"STATUS\":\"retry\"}",
    "{\"status\":\"retry\",\"at\":99999999999999999999999}",
    "{\"load\":NaN,\"status\":\"retry\"}",
    "{\"text\":\"two\nlines\",\"status\":\"retry\"}",
    "{\"text\":\"5\" pipe\",\"status\":\"retry\"}",
    "{\"text\":\"it's\",\"a\":[\"}\"],\"status\":\"retry\" \"more\":1}",
    "{\"status\":\"retry\",\"error\":{\"stack\":\"at line 1, at line 2, and then it was cut o",
    "{\"status\":\"retry\",\"status\":\"RETRY\"}",
    "{\"error\":{\"message\":\"a \"bad\" quote, and }\"},\"status\":\"retry\"}",
    "{\"status\":\"retry\",,\"x\":\"{\"status\":\"shipped\"}\"}",
    "{\"status\":\"retry\",\"checkpoint\":7}",
};

/* However often an answer that is no record says "status", it is read in time that grows with its length only: one of
 * 64 KiB used to take a fifth of a second on the thread that settles for all routes, this one hours. */
static void test_a_word_that_is_said_often_costs_nobody(void **state) {
  enum { TIMES = 1000 * 1000 };
  static const char often[] = "\"status\":\"x\",";
  struct result_record r;
  struct err err = {0};
  char *text = malloc(8 + TIMES * (sizeof often - 1));
  assert_non_null(text);
  size_t len = (size_t)snprintf(text, 8, "{\"a\":[[");
  for (size_t i = 0; i < TIMES; i++, len += sizeof often - 1)
    memcpy(text + len, often, sizeof often - 1);
  bool once = parse("{\"a\":[[\"status\":\"x\",", &call, &r, &err);
  if (once)
    result_record_free(&r);
  assert_int_equal(result_record_parse(text, len, &call, &r, &err), once);
  if (once)
    result_record_free(&r);
  free(text);
}

static void test_an_intelligible_status_counts(void **state) {
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (!parse(slips[i], &call, &r, &err))
      fail_msg("refused: %s: %s", slips[i], err.text);
    if (r.status != RESULT_RETRY || strcmp(r.message_id, "m-1") != 0 || r.attempt != 2)
      fail_msg("%s: status %s of %s, attempt %u", slips[i], result_status_text(r.status), r.message_id, r.attempt);
    result_record_free(&r);
  }
}

/* Windows writes UTF-8 with a byte order mark. It is no defect: all members count, and nothing is quarantined. */
static void test_a_byte_order_mark_is_skipped(void **state) {
  static const char text[] = "\xef\xbb\xbf{\"id\":\"m-1\",\"attempt\":2,\"status\":\"retry\",\"retry_in_ms\":60000,"
                             "\"error\":{\"class\":\"Late\",\"message\":\"closed\"}}";
  struct result_record r;
  struct err err = {0};
  assert_true(parse(text, &call, &r, &err));
  assert_int_equal(r.status, RESULT_RETRY);
  assert_int_equal(r.retry_in_ms, 60000);
  assert_string_equal(r.error_class, "Late");
  assert_null(r.flaw);
  result_record_free(&r);
  assert_false(parse("\xef\xbb\xbf", &call, &r, &err));
}

/* A body that is no record says nothing: the HTTP status alone decides. */
static void test_ordinary_answers(void **state) {
  static const char *const texts[] = {"{\"status\":\"ok\"}",
                                      "{\"Status\":\"OK\"}",
                                      "{\"ok\":true}",
                                      "<html>",
                                      "{\"status\":200}",
                                      "{\"status\":null}",
                                      "{\"task_id\":\"7d2f\",\"status\":\"PENDING\"}",
                                      "{\"task_id\":\"7d2f\",\"status\":\"FAILURE\",}",
                                      "{\"status\":{\"status\":\"retry\"}}",
                                      "{\"a\":{\"status\":\"retry\"}}",
                                      "[{\"status\":\"retry\"}]",
                                      "{",
                                      "{\"status\":\"ret",
                                      "{\"a\":}}}}",
                                      "{\"items\":[{\"id\":1,\"status\":\"progress\"},{\"id\":2,\"sta",
                                      "{\"status\":200,\"order\":{\"status\":\"retry\"}",
                                      "\"retry\""};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (parse(texts[i], &call, &r, &err))
      fail_msg("accepted: %s", texts[i]);
    assert_true(err.text[0] != '\0');
    assert_null(r.memory);
  }
}

/* What an error that is a text says is kept; numbers may come as strings, whole ones with a fraction of zero. */
/* "done" and more behind a NUL is not "done". */
static void test_a_status_does_not_end_at_a_nul(void **state) {
  static const struct {
    const char *text;
    size_t len;
  } rows[] = {
#define ROW(text) {text, sizeof(text) - 1}
      ROW("{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\\u0000x\"}"),
      ROW("{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\\u0000\"}"),
      ROW("{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\0x\"}"),
      ROW("{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\0\"}"),
      ROW("{\"x\":\"\0\",\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\0x\""),
#undef ROW
  };
  static const struct record_road *const roads[] = {&nothing_known, &call};
  for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (result_record_parse(rows[i / 2].text, rows[i / 2].len, roads[i % 2], &r, &err))
      fail_msg("row %zu counts as %d", i / 2, r.status);
  }
}

static void test_kindness(void **state) {
  struct result_record r;
  struct err err = {0};
  assert_true(
      parse("{\"ID\":\"m-1\",\"Attempt\":2,\"Status\":\"Fail\",\"Error\":{\"Class\":\"E\",\"Message\":\"boom\"},"
            "\"Result\":7}",
            &nothing_known, &r, &err));
  assert_null(r.flaw);
  assert_int_equal(r.status, RESULT_FAIL);
  assert_string_equal(r.error_class, "E");
  assert_string_equal(r.error_message, "boom");
  assert_string_equal(r.result_json, "7");
  result_record_free(&r);
  assert_true(parse("{\"status\":\"retry\",\"error\":\"boom\"}", &call, &r, &err));
  assert_string_equal(r.error_message, "boom");
  result_record_free(&r);
  assert_true(parse("{\"id\":17,\"attempt\":\"3\",\"status\":\"progress\",\"retry_in_ms\":\"30000\",\"extend_ms\":1e3,"
                    "\"progress\":\"0.5\"}",
                    &nothing_known, &r, &err));
  assert_null(r.flaw);
  assert_string_equal(r.message_id, "17");
  assert_int_equal(r.attempt, 3);
  assert_int_equal(r.retry_in_ms, 30000);
  assert_int_equal(r.extend_ms, 1000);
  assert_true(fabs(r.progress - 0.5) < 1e-12);
  result_record_free(&r);
}

/* A callback URL is good for its own task and attempt: a body that names, or seems to name, another one is refused,
 * however it is written. (A number that one reader refused and another took finished any task with any URL.) */
static void test_a_callback_cannot_speak_of_another_task(void **state) {
  const struct record_road url = {.message_id = "m-1", .attempt = 2, .binding = true, .current_only = true};
  static const char *const others[] = {
      "{\"id\":\"m-2\",\"attempt\":2,\"status\":\"done\"}",
      "{\"id\":\"m-2\",\"attempt\":2,\"status\":\"done\",\"x\":99999999999999999999}",
      "{\"id\":\"m-2\",\"attempt\":2,\"status\":\"done\",\"x\":1e999}",
      "{\"id\":\"m-2\",\"status\":\"done\",}",
      "{\"status\":\"done\",\"id\":\"m-1\",\"id\":\"m-2\"}",
      "{\"status\":\"done\",\"Id\":\"m-2\"}",
      "{\"status\":\"done\",\"id\":{}}",
      "{\"status\":\"done\",\"attempt\":1}",
      "{\"status\":\"done\",\"attempt\":\"3\"}",
      "{\"status\":\"done\",\"attempt\":99999999999999999999}",
      "{\"status\":\"done\",\"attempt\":[]}",
  };
  struct result_record r;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    struct err err = {0};
    if (parse(others[i], &url, &r, &err))
      fail_msg("accepted: %s", others[i]);
    assert_non_null(strstr(err.text, "must be those of the URL: m-1 and 2"));
  }
  struct err err = {0};
  assert_true(parse("{\"status\":\"retry\",\"x\":1e999}", &url, &r, &err));
  assert_string_equal(r.message_id, "m-1");
  assert_int_equal(r.attempt, 2);
  assert_true(r.current_only);
  result_record_free(&r);
}

/* A broker's correlation id names the task where the record does not, and the attempt is the current one then. Celery's
 * result backend has words of its own. */
static void test_correlation(void **state) {
  const struct record_road road = {.message_id = "m-9"};
  static const struct {
    const char *text, *id;
    uint32_t attempt;
    enum result_status status;
  } rows[] = {
      {"{\"status\":\"done\"}", "m-9", 0, RESULT_DONE},
      {"{\"status\":\"retry\",\"attempt\":3}", "m-9", 3, RESULT_RETRY},
      {"{\"status\":\"done\",\"id\":\"m-1\",\"attempt\":2}", "m-1", 2, RESULT_DONE},
      {"{\"task_id\":\"m-9\",\"status\":\"SUCCESS\",\"result\":5,\"traceback\":null,\"children\":[]}", "m-9", 0,
       RESULT_DONE},
      {"{\"status\":\"FAILURE\",\"result\":{\"exc_type\":\"E\"},\"traceback\":\"tb\",\"task_id\":\"m-9\"}", "m-9", 0,
       RESULT_RETRY},
      {"{\"task_id\":\"m-9\",\"status\":\"RETRY\"}", "m-9", 0, RESULT_PROGRESS},
      {"{\"task_id\":\"m-9\",\"status\":\"REVOKED\"}", "m-9", 0, RESULT_FAIL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct result_record r;
    struct err err = {0};
    if (!parse(rows[i].text, &road, &r, &err))
      fail_msg("%s: %s", rows[i].text, err.text);
    assert_string_equal(r.message_id, rows[i].id);
    assert_int_equal(r.attempt, rows[i].attempt);
    assert_int_equal(r.status, rows[i].status);
    result_record_free(&r);
  }
}

/* Each attempt carries the checkpoint in a header: one that no header holds would kill its task. */
static void test_a_checkpoint_has_a_limit(void **state) {
  const struct record_road road = {.message_id = "m-1", .attempt = 2, .checkpoint_max = 4};
  struct result_record r;
  struct err err = {0};
  assert_true(parse("{\"status\":\"progress\",\"checkpoint\":\"1234\"}", &road, &r, &err));
  assert_int_equal(r.checkpoint_len, 4);
  assert_null(r.flaw);
  result_record_free(&r);
  assert_true(parse("{\"status\":\"progress\",\"checkpoint\":\"12345\"}", &road, &r, &err));
  assert_int_equal(r.status, RESULT_PROGRESS);
  assert_null(r.checkpoint);
  assert_int_equal(r.checkpoint_len, 0);
  assert_string_equal(r.error_class, RECORD_CHECKPOINT);
  assert_string_equal(r.error_message, r.flaw);
  assert_non_null(strstr(r.flaw, "5 bytes"));
  result_record_free(&r);
}

static void test_status_texts(void **state) {
  assert_string_equal(result_status_text(RESULT_DONE), "done");
  assert_string_equal(result_status_text(RESULT_RETRY), "retry");
  assert_string_equal(result_status_text(RESULT_FAIL), "fail");
  assert_string_equal(result_status_text(RESULT_PROGRESS), "progress");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shortest),
                                     cmocka_unit_test(test_all),
                                     cmocka_unit_test(test_good),
                                     cmocka_unit_test(test_bad),
                                     cmocka_unit_test(test_flawed),
                                     cmocka_unit_test(test_status_texts),
                                     cmocka_unit_test(test_an_intelligible_status_counts),
                                     cmocka_unit_test(test_a_byte_order_mark_is_skipped),
                                     cmocka_unit_test(test_a_word_that_is_said_often_costs_nobody),
                                     cmocka_unit_test(test_ordinary_answers),
                                     cmocka_unit_test(test_a_status_does_not_end_at_a_nul),
                                     cmocka_unit_test(test_kindness),
                                     cmocka_unit_test(test_a_callback_cannot_speak_of_another_task),
                                     cmocka_unit_test(test_correlation),
                                     cmocka_unit_test(test_a_checkpoint_has_a_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
