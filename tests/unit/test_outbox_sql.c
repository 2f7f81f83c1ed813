/* SPDX-License-Identifier: MIT
 *
 * Building SQL and JSON text, and reading times and numbers back: pure, so every rule is a row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/attr.h"
#include "outbox/sql.h"

static void literals_hold_any_byte(void **state) {
  struct text text = {0};
  text_sql(&text, "a'b\"c\\d\0e\n\r\x1a\xff;--", 16);
  assert_string_equal(text.data, "'a\\'b\\\"c\\\\d\\0e\\n\\r\\Z\xff;--'");
  text_clear(&text);
  text_sql(&text, "", 0);
  assert_string_equal(text.data, "''");
  for (int c = 0; c < 256; c++) /* at each place of a longer one */
    for (size_t at = 0; at < 20; at++) {
      char in[20];
      struct text alone = {0};
      memset(in, 'x', sizeof in);
      in[at] = (char)c;
      text_sql(&alone, in + at, 1);
      text_clear(&text);
      text_sql(&text, in, sizeof in);
      assert_int_equal(text.len, sizeof in - 1 + alone.len);
      assert_memory_equal(text.data + 1 + at, alone.data + 1, alone.len - 2);
      assert_int_equal(alone.len - 2, 1 + (c != 0 && strchr("\n\r\x1a\\'\"", c) != NULL) + (c == 0));
      text_free(&alone);
    }
  text_free(&text);
}

static void numbers_are_exact(void **state) {
  struct text text = {0};
  text_u64(&text, UINT64_MAX);
  text_puts(&text, " ");
  text_i64(&text, INT64_MIN);
  text_puts(&text, " ");
  text_i64(&text, 0);
  assert_string_equal(text.data, "18446744073709551615 -9223372036854775808 0");
  text_free(&text);
}

static void texts_from_outside_are_cleaned(void **state) {
  static const struct {
    const char *in;
    size_t len, max;
    const char *json;
  } rows[] = {
      {"plain", 5, 100, "\"plain\""},
      {"q\"b\\n\n\t\x01", 8, 100, "\"q\\\"b\\\\n\\u000a\\u0009\\u0001\""},
      {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, 100, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
      {"a\0b", 3, 100, "\"a?b\""},
      {"\xff\xc3", 2, 100, "\"??\""},
      {"\xc0\x80", 2, 100, "\"??\""},           /* overlong */
      {"\xe0\x80\x80", 3, 100, "\"???\""},      /* overlong */
      {"\xed\xa0\x80", 3, 100, "\"???\""},      /* surrogate */
      {"\xf4\x90\x80\x80", 4, 100, "\"????\""}, /* above U+10FFFF */
      {"\xf0\x8f\xbf\xbf", 4, 100, "\"????\""}, /* overlong */
      {"ab\xc3\xa9", 4, 3, "\"ab\""},           /* cut between characters */
      {"ab\xc3\xa9", 4, 4, "\"ab\xc3\xa9\""},
      {"\xe2\x82", 2, 100, "\"??\""}, /* ends too early */
      {"", 0, 100, "\"\""},
      {NULL, 0, 100, "null"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct text text = {0};
    text_json(&text, rows[i].in, rows[i].len, rows[i].max);
    assert_string_equal(text.data, rows[i].json);
    text_free(&text);
  }
  struct text text = {0};
  text_clean_sql(&text, "it's\0\xff\\", 7, 6);
  assert_string_equal(text.data, "'it\\'s?"
                                 "?'");
  text_clear(&text);
  text_clean_sql(&text, NULL, 0, 6);
  assert_string_equal(text.data, "NULL");
  text_free(&text);
}

static const struct {
  const char *text;
  int64_t us;
} times[] = {
    {"1970-01-01 00:00:00.000000", 0},
    {"1970-01-01 00:00:00.000001", 1},
    {"1969-12-31 23:59:59.999999", -1},
    {"2000-02-29 23:59:59.999999", INT64_C(951868799999999)},
    {"2038-01-19 03:14:08.000000", INT64_C(2147483648000000)},
    {"2100-03-01 00:00:00.000000", INT64_C(4107542400000000)},
    {"1900-03-01 00:00:00.000000", INT64_C(-2203891200000000)},
    {"9999-12-31 23:59:59.999999", INT64_C(253402300799999999)},
    {"1000-01-01 00:00:00.000000", INT64_C(-30610224000000000)},
};

static void times_go_both_ways(void **state) {
  struct text text = {0};
  for (size_t i = 0; i < ARRAY_LEN(times); i++) {
    int64_t us;
    assert_true(time_parse(times[i].text, strlen(times[i].text), &us));
    assert_int_equal(us, times[i].us);
    text_clear(&text);
    text_time(&text, us);
    assert_string_equal(text.data, times[i].text);
  }
  for (int64_t day = -300000; day < 300000; day += 7) {
    int64_t us = day * INT64_C(86400000000) + 123456, back;
    text_clear(&text);
    text_time(&text, us);
    assert_true(time_parse(text.data, text.len, &back));
    assert_int_equal(back, us);
  }
  text_free(&text);
}

static void times_beyond_the_calendar_are_cut(void **state) {
  struct text text = {0};
  text_time(&text, INT64_MAX);
  text_time(&text, INT64_MIN);
  assert_string_equal(text.data, "9999-12-31 23:59:59.9999991000-01-01 00:00:00.000000");
  text_free(&text);
}

static void what_is_no_time_is_refused(void **state) {
  static const char *const bad[] = {"",
                                    "2020-01-01",
                                    "2020-01-01 00:00:0",
                                    "2020-13-01 00:00:00",
                                    "2020-00-01 00:00:00",
                                    "2020-02-30 00:00:00",
                                    "2021-02-29 00:00:00",
                                    "1900-02-29 00:00:00",
                                    "0000-00-00 00:00:00",
                                    "2020-01-01 24:00:00",
                                    "2020-01-01 00:60:00",
                                    "2020-01-01 00:00:60",
                                    "2020-01-01T00:00:00",
                                    "2020-01-01 00:00:00.",
                                    "2020-01-01 00:00:00.1234567",
                                    "2020-01-01 00:00:00,5",
                                    "2020-01-01 00:00:00.12x",
                                    "2020-01-01 00:00:00.1x3456",
                                    "2020-01-01 00:00:00.12345x",
                                    "2020-01-01 00:00:00.-12345",
                                    "20x0-01-01 00:00:00",
                                    "x020-01-01 00:00:00",
                                    "2020-x1-01 00:00:00",
                                    "2020-01-01 0x:00:00",
                                    "2020-01-01 00:0x:00",
                                    "2020-01-01 00:00:x0",
                                    "-020-01-01 00:00:00",
                                    "2020-01-0a 00:00:00",
                                    "2020-01-00 00:00:00"};
  int64_t us;
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_false(time_parse(bad[i], strlen(bad[i]), &us));
  assert_true(time_parse("2020-01-01 00:00:00", 19, &us));
  assert_int_equal(us, INT64_C(1577836800000000));
  assert_true(time_parse("2020-01-01 00:00:00.5", 21, &us));
  assert_int_equal(us, INT64_C(1577836800500000));
}

static void numbers_are_read_strictly(void **state) {
  static const struct {
    const char *text;
    uint64_t max, value;
    bool ok;
  } rows[] = {
      {"0", 0, 0, true},
      {"18446744073709551615", UINT64_MAX, UINT64_MAX, true},
      {"18446744073709551616", UINT64_MAX, 0, false},
      {"99999999999999999999", UINT64_MAX, 0, false},
      {"256", 255, 0, false},
      {"255", 255, 255, true},
      {"", 9, 0, false},
      {"-1", 9, 0, false},
      {"+1", 9, 0, false},
      {"1 ", 9, 0, false},
      {"0x1", 9, 0, false},
      {"000000000000000000001", 9, 0, false},
  };
  uint64_t value;
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    assert_int_equal(number_parse(rows[i].text, strlen(rows[i].text), rows[i].max, &value), rows[i].ok);
    if (rows[i].ok)
      assert_int_equal(value, rows[i].value);
  }
  assert_false(number_parse(NULL, 0, 9, &value));
}

static void statements_are_filled_in(void **state) {
  struct text text = {0};
  const char *statement =
      "-- why\n-- and more\nSELECT {a} FROM `{table}` WHERE x = {b} AND y = {c} AND z IN ({d}) AND j = '{}' {E} "
      "AND t = {t} AND s = {s};\n";
  text_statement(&text, statement, "box",
                 ARGS(WORD("a", "1 {b}"), STRING("b", "it's {a}"), UNSIGNED("c", 7), WORD("d", "1,2"), TIME("t", 0),
                      SIGNED("s", -1)));
  assert_string_equal(text.data,
                      "SELECT 1 {b} FROM `box` WHERE x = 'it\\'s {a}' AND y = 7 AND z IN (1,2) AND j = '{}' {E} "
                      "AND t = '1970-01-01 00:00:00.000000' AND s = -1");
  text_statement(&text, "COMMIT", "box", NO_ARGS);
  assert_non_null(strstr(text.data, "s = -1;\nCOMMIT"));
  assert_false(text.failed);
  text_free(&text);
}

static void a_forgotten_placeholder_is_not_sent(void **state) {
  struct text text = {0};
  text_statement(&text, "SELECT {a}, {b}", "box", ARGS(UNSIGNED("a", 1)));
  assert_true(text.failed);
  text_clear(&text);
  assert_false(text.failed);
  text_free(&text);
}

/* A list of ids that ends early is valid SQL, and means other rows. */
static void what_memory_was_too_short_for_is_not_sent(void **state) {
  char ids[] = "1,2";
  struct text text = {0}, list = {.data = ids, .len = sizeof ids - 1, .failed = true}, whole = {0};
  text_statement(&text, "SELECT {ids}", "box", ARGS(RAW("ids", list)));
  assert_true(text.failed);
  text_append(&whole, &list);
  assert_true(whole.failed);
  text_free(&text);
  text_free(&whole);
}

static void a_text_grows(void **state) {
  struct text text = {0};
  for (int i = 0; i < 100000; i++)
    text_add(&text, "0123456789", 10);
  assert_int_equal(text.len, 1000000);
  assert_int_equal(strlen(text.data), 1000000);
  text_free(&text);
  assert_null(text.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(literals_hold_any_byte),
      cmocka_unit_test(numbers_are_exact),
      cmocka_unit_test(texts_from_outside_are_cleaned),
      cmocka_unit_test(times_go_both_ways),
      cmocka_unit_test(times_beyond_the_calendar_are_cut),
      cmocka_unit_test(what_is_no_time_is_refused),
      cmocka_unit_test(numbers_are_read_strictly),
      cmocka_unit_test(statements_are_filled_in),
      cmocka_unit_test(a_forgotten_placeholder_is_not_sent),
      cmocka_unit_test(what_memory_was_too_short_for_is_not_sent),
      cmocka_unit_test(a_text_grows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
