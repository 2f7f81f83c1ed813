/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_cli_output.c - the same rows as a table, as JSON and as JSON lines; fields as JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/rows.h"

/* Standard output of `act` as text, to free(). */
static char *printed(void (*act)(const struct output *), const struct output *output) {
  char *text = calloc(1, 8192);
  int saved = dup(STDOUT_FILENO);
  FILE *file = tmpfile();
  assert_non_null(text);
  assert_non_null(file);
  fflush(stdout);
  dup2(fileno(file), STDOUT_FILENO);
  act(output);
  fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  rewind(file);
  text[fread(text, 1, 8191, file)] = '\0';
  fclose(file);
  return text;
}

static const struct column columns[] = {{"id", "ID", CELL_NUMBER, false},
                                        {"state", "STATE", CELL_STATE, false},
                                        {"at", "AT", CELL_TIME, false},
                                        {"key", "KEY", CELL_TEXT, false},
                                        {"list", "LIST", CELL_TEXT, false}};

static void two_rows(const struct output *output) {
  struct listing *listing = listing_open(output, columns, ARRAY_LEN(columns));
  assert_non_null(listing);
  assert_true(listing_add(listing, json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "id", "18446744073709551615", "state",
                                             "dead", "at", "2026-01-31T08:00:00.123456Z", "key", "\x1b[31m\x7f\xc2\x9b",
                                             "list", "a", "b")));
  assert_true(listing_add(
      listing, json_pack("{s:s, s:s, s:n, s:s, s:[]}", "id", "7", "state", "done", "at", "key", "", "list")));
  assert_int_equal(listing_rows(listing), 2);
  listing_close(listing, NULL);
}

static void no_row(const struct output *output) {
  struct listing *listing = listing_open(output, columns, ARRAY_LEN(columns));
  assert_non_null(listing);
  listing_close(listing, NULL);
}

static void one_record(const struct output *output) {
  static const struct column fields[] = {{"id", "id", CELL_TEXT, false},
                                         {"none", "none", CELL_TEXT, false},
                                         {"ok", "is ok", CELL_STATE, false},
                                         {"text", "text", CELL_LINES, false}};
  output_record(output, fields, ARRAY_LEN(fields),
                json_pack("{s:s, s:n, s:b, s:s}", "id", "1", "none", "ok", 1, "text", "a\nb\x1b"));
}

static void check(void (*act)(const struct output *), struct output output, const char *expected) {
  char *text = printed(act, &output);
  assert_string_equal(text, expected);
  free(text);
}

static void three_formats(void **state) {
  check(two_rows, (struct output){.format = OUTPUT_TEXT},
        "                  ID STATE AT                      KEY              LIST\n"
        "18446744073709551615 dead  2026-01-31 08:00:00.123 \\x1b[31m\\x7f\\x9b a, b\n"
        "                   7 done  -                       -                -\n");
  check(two_rows, (struct output){.format = OUTPUT_JSONL},
        "{\"id\":\"18446744073709551615\",\"state\":\"dead\",\"at\":\"2026-01-31T08:00:00.123456Z\","
        "\"key\":\"\\u001B[31m\\u007f\\u009b\",\"list\":[\"a\",\"b\"]}\n"
        "{\"id\":\"7\",\"state\":\"done\",\"at\":null,\"key\":\"\",\"list\":[]}\n");
  check(no_row, (struct output){.format = OUTPUT_JSON}, "[]\n");
  check(no_row, (struct output){.format = OUTPUT_JSONL}, "");
  check(no_row, (struct output){.format = OUTPUT_TEXT}, "");
}

static void json_is_one_document(void **state) {
  struct output output = {.format = OUTPUT_JSON};
  char *text = printed(two_rows, &output);
  json_t *rows = json_loads(text, 0, NULL);
  assert_int_equal(json_array_size(rows), 2);
  assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "key")), "\x1b[31m\x7f\xc2\x9b");
  json_decref(rows);
  free(text);
}

static void records(void **state) {
  check(one_record, (struct output){.format = OUTPUT_TEXT}, "id     1\nis ok  yes\ntext\na\nb\\x1b\n");
  check(one_record, (struct output){.format = OUTPUT_JSONL},
        "{\"id\":\"1\",\"none\":null,\"ok\":true,\"text\":\"a\\nb\\u001B\"}\n");
}

static void colour_only_where_it_is_wanted(void **state) {
  struct output output = {.format = OUTPUT_TEXT, .color = true};
  char *text = printed(two_rows, &output);
  assert_non_null(strstr(text, "\033[31mdead"));
  assert_non_null(strstr(text, "\\x1b[31m"));
  free(text);
}

static void fields_as_json(void **state) {
  const struct field fields[] = {
      {.name = "id", .kind = FIELD_ID, .text = {"18446744073709551615", 20}},
      {.name = "n", .kind = FIELD_INT, .number = -5},
      {.name = "b", .kind = FIELD_BOOL, .number = 1},
      {.name = "t", .kind = FIELD_TIME, .number = INT64_C(1769846400123456)},
      {.name = "null", .kind = FIELD_TEXT, .null = true},
      {.name = "bad", .kind = FIELD_TEXT, .text = {"a\xff", 2}},
      {.name = "text", .kind = FIELD_BYTES, .text = {"{}", 2}},
      {.name = "raw", .kind = FIELD_BYTES, .text = {"\xff\x00\x10\x83", 4}},
  };
  json_t *row = row_json(fields, ARRAY_LEN(fields), false);
  char *text = json_dumps(row, JSON_COMPACT);
  assert_string_equal(text,
                      "{\"id\":\"18446744073709551615\",\"n\":-5,\"b\":true,\"t\":\"2026-01-31T08:00:00.123456Z\","
                      "\"null\":null,\"bad\":\"a\xef\xbf\xbd\",\"text\":\"{}\",\"raw_base64\":\"/wAQgw==\"}");
  assert_int_equal(row_time(row, "t"), INT64_C(1769846400123456));
  assert_int_equal(row_time(row, "n"), 0);
  free(text);
  json_decref(row);
  row = row_json(&fields[7], 1, true);
  assert_string_equal(json_string_value(json_object_get(row, "raw")), "hex:ff001083");
  json_decref(row);
}

static void base64_of_every_length(void **state) {
  static const char *const expected[] = {"/w==", "//4=", "//79", "//79/A=="};
  static const char bytes[] = "\xff\xfe\xfd\xfc";
  for (size_t len = 1; len <= 4; len++) {
    struct field field = {.name = "x", .kind = FIELD_BYTES, .text = {bytes, len}};
    json_t *row = row_json(&field, 1, false);
    assert_string_equal(json_string_value(json_object_get(row, "x_base64")), expected[len - 1]);
    json_decref(row);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_formats),  cmocka_unit_test(json_is_one_document),
      cmocka_unit_test(records),        cmocka_unit_test(colour_only_where_it_is_wanted),
      cmocka_unit_test(fields_as_json), cmocka_unit_test(base64_of_every_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
