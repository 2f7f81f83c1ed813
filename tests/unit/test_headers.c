/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_headers.c - the headers column: what becomes headers, and what is refused with which words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/headers.h"

static struct duebox_bytes bytes(const char *text) { return (struct duebox_bytes){text, strlen(text)}; }

static void test_none(void **state) {
  static const char *const none[] = {"", "{}", "null", "{ }", " {\n}\t"};
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
    struct duebox_header *list = (struct duebox_header *)1;
    size_t count = 9;
    struct err err;
    assert_true(headers_parse(bytes(none[i]), &list, &count, &err));
    assert_null(list);
    assert_int_equal(count, 0);
  }
}

static void expect(const struct duebox_header *header, const char *name, const char *value) {
  assert_string_equal(header->name, name);
  assert_int_equal(header->value.len, strlen(value));
  assert_memory_equal(header->value.data, value, strlen(value));
}

static void test_values(void **state) {
  struct duebox_header *list;
  size_t count;
  struct err err = {0};
  const char *json = " { \"traceparent\" : \"00-ab-cd-01\",\"e\":\"\", \"\\u00e4\\\"\\\\\":\"t\\tx \\ud83d\\ude00 "
                     "\xc3\xa9\" , \"a,b\":\"1,2\" } ";
  if (!headers_parse(bytes(json), &list, &count, &err))
    fail_msg("%s", err.text);
  assert_int_equal(count, 4);
  expect(&list[0], "traceparent", "00-ab-cd-01");
  expect(&list[1], "e", "");
  expect(&list[2], "\xc3\xa4\"\\", "t\tx \xf0\x9f\x98\x80 \xc3\xa9");
  expect(&list[3], "a,b", "1,2");
  free(list);
}

/* A client that writes a number or a boolean gets its task sent, with the text that it wrote. */
static void test_numbers_and_booleans(void **state) {
  struct duebox_header *list;
  size_t count;
  struct err err = {0};
  if (!headers_parse(bytes("{\"n\":1,\"x\":-2.50e3,\"b\": true ,\"c\":false}"), &list, &count, &err))
    fail_msg("%s", err.text);
  assert_int_equal(count, 4);
  expect(&list[0], "n", "1");
  expect(&list[1], "x", "-2.50e3");
  expect(&list[2], "b", "true");
  expect(&list[3], "c", "false");
  free(list);
}

/* Nobody speaks in duebox's name, whatever the sink makes of upper and lower case; and nobody's task dies of it. */
static void test_names_of_duebox(void **state) {
  struct duebox_header *list;
  size_t count;
  struct err err = {0};
  const char *json =
      "{\"duebox-id\":\"forged\",\"a\":\"1\",\"Duebox-Attempt\":9,\"duebox-mine\":\"x\",\"duebox\":\"2\","
      "\"x-duebox-id\":\"3\",\"DUEBOX-REPLY-TO\":\"\"}";
  if (!headers_parse(bytes(json), &list, &count, &err))
    fail_msg("%s", err.text);
  assert_int_equal(count, 3);
  expect(&list[0], "a", "1");
  expect(&list[1], "duebox", "2");
  expect(&list[2], "x-duebox-id", "3");
  free(list);
  assert_true(headers_parse(bytes("{\"duebox-id\":\"forged\"}"), &list, &count, &err));
  assert_int_equal(count, 0);
  assert_null(list);
}

#define SYNTAX "the headers are no JSON object of strings: byte "

static const struct {
  const char *json, *error;
} bad[] = {
    {"[]", SYNTAX "0: an object { } is wanted"},
    {"\"a\"", SYNTAX "0: an object { } is wanted"},
    {"{", SYNTAX "1: a key in double quotes is wanted"},
    {"{\"a\"", SYNTAX "4: a colon is wanted after a key"},
    {"{\"a\":\"b\"", SYNTAX "8: a comma or the end of the object is wanted"},
    {"{\"a\":\"b\",}", SYNTAX "9: a key in double quotes is wanted"},
    {"{\"a\":\"b\"} x", SYNTAX "10: something follows behind the end"},
    {"{a:\"b\"}", SYNTAX "1: a key in double quotes is wanted"},
    {"{\"a\":01}", "header \"a\": a number begins with a needless zero"},
    {"{\"a\":tru}", "header \"a\": a value is wanted"},
    {"{\"a\":{}}", "header \"a\": the value must be a string, a number, true or false"},
    {"{\"a\":null}", "header \"a\": the value must be a string, a number, true or false"},
    {"{\"a\":[\"b\"]}", "header \"a\": the value must be a string, a number, true or false"},
    {"{\"a\":", "header \"a\": the value must be a string, a number, true or false"},
    {"{\"a\":\"b", "header \"a\": a string is not closed"},
    {"{\"a\":\"b\\x\"}", "header \"a\": unknown escape in a string"},
    {"{\"a\":\"\\u12\"}", "header \"a\": \\u needs four hexadecimal digits"},
    {"{\"a\":\"\\ud800\"}", "header \"a\": half of a surrogate pair"},
    {"{\"a\":\"\\ud800\\u0041\"}", "header \"a\": half of a surrogate pair"},
    {"{\"a\":\"\\udc00\"}", "header \"a\": half of a surrogate pair"},
    {"{\"a\":\"\\u0000\"}", "header \"a\": a NUL character (\\u0000) is not allowed"},
    {"{\"a\":\"x\\ny\"}", "header \"a\": the value holds a line break"},
    {"{\"a\":\"x\\r\"}", "header \"a\": the value holds a line break"},
    {"{\"a\":\"x\ny\"}", "header \"a\": a control character stands in a string; write it as \\u00XX"},
    {"{\"a\":\"\xff\"}", "header \"a\": a string is not valid UTF-8"},
    {"{\"a\":\"\xc0\xaf\"}", "header \"a\": a string is not valid UTF-8"},
    {"{\"a\":\"\xed\xa0\x80\"}", "header \"a\": a string is not valid UTF-8"},
    {"{\"a\":\"\xf4\x90\x80\x80\"}", "header \"a\": a string is not valid UTF-8"},
    {"{\"a\":\"\xe2\x82\"}", "header \"a\": a string is not valid UTF-8"},
    {"{\"\":\"b\"}", "a header has an empty name"},
    {"{\"a\\nb\":\"b\"}", "a header's name holds a line break"},
    {"{\"a\":\"1\",\"b\":\"2\",\"\\u0061\":\"3\"}", "header \"a\" is there twice"},
};

static void test_bad(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct duebox_header *list;
    size_t count;
    struct err err = {0};
    assert_false(headers_parse(bytes(bad[i].json), &list, &count, &err));
    assert_string_equal(err.text, bad[i].error);
    assert_null(list);
    assert_int_equal(count, 0);
  }
}

static void test_limits(void **state) {
  static char json[HEADERS_TEXT_MAX + 2];
  struct duebox_header *list;
  size_t count, len = 0;
  struct err err = {0};
  for (int n = HEADERS_MAX; n <= HEADERS_MAX + 1; n++) {
    len = 0;
    for (int i = 0; i < n; i++)
      len += (size_t)snprintf(json + len, sizeof json - len, "%c\"h%d\":\"v\"", i ? ',' : '{', i);
    strcat(json, "}");
    bool ok = headers_parse(bytes(json), &list, &count, &err);
    assert_int_equal(ok, n == HEADERS_MAX);
    assert_int_equal(count, ok ? HEADERS_MAX : 0);
    free(list);
  }
  assert_string_equal(err.text, "more than 64 headers");

  memset(json, 'x', HEADERS_TEXT_MAX + 1);
  memcpy(json, "{\"a\":\"", 6);
  memcpy(json + HEADERS_TEXT_MAX - 2, "\"}", 3); /* exactly at the limit */
  assert_true(headers_parse(bytes(json), &list, &count, &err));
  assert_int_equal(list[0].value.len, HEADERS_TEXT_MAX - 8);
  free(list);
  json[HEADERS_TEXT_MAX] = ' ';
  json[HEADERS_TEXT_MAX + 1] = '\0';
  assert_false(headers_parse(bytes(json), &list, &count, &err));
  assert_string_equal(err.text, "the headers have 16385 bytes, at most 16384 are allowed");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_none),
                                     cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_numbers_and_booleans),
                                     cmocka_unit_test(test_names_of_duebox),
                                     cmocka_unit_test(test_bad),
                                     cmocka_unit_test(test_limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
