/* SPDX-License-Identifier: MIT
 *
 * Rows as tasks: what a server may send and what it may not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/store.h"
#include "outbox/row.h"

static const char *const good[ROW_FIELD_COUNT] = {
    [ROW_ID] = "18446744073709551615",
    [ROW_SHARD] = "63",
    [ROW_STATE] = "1",
    [ROW_PRIORITY] = "9",
    [ROW_ATTEMPT] = "1999999999",
    [ROW_FAILURES] = "2",
    [ROW_RECOVERIES] = "1",
    [ROW_REVISION] = "4",
    [ROW_MAX_ATTEMPTS] = "1",
    [ROW_TIMEOUT] = "1",
    [ROW_DUE] = "2020-01-01 00:00:00.000001",
    [ROW_FIRST_DUE] = "2019-01-01 00:00:00.000000",
    [ROW_EXPIRES] = NULL,
    [ROW_ROUTE] = "r",
    [ROW_MESSAGE_ID] = "m",
    [ROW_TASK_KEY] = "",
    [ROW_ORDER_KEY] = "",
    [ROW_HEADERS] = "{}",
    [ROW_CHECKPOINT] = "",
    [ROW_TARGET_HOST] = "h",
    [ROW_PAYLOAD_LEN] = "3",
    [ROW_BESIDE_LEN] = "7",
    [ROW_PAYLOAD] = "a\0b",
};

/* Decodes the good row with one field replaced. */
static bool decode(enum row_field field, const char *value, struct task *task, struct err *err) {
  char *fields[ROW_FIELD_COUNT];
  unsigned long lengths[ROW_FIELD_COUNT];
  for (int i = 0; i < ROW_FIELD_COUNT; i++) {
    fields[i] = (char *)(i == (int)field ? value : good[i]);
    lengths[i] = fields[i] ? strlen(fields[i]) : 0;
  }
  if (field != ROW_PAYLOAD)
    lengths[ROW_PAYLOAD] = 3;
  return row_decode(&(struct db_row){.fields = fields, .lengths = lengths}, task, err);
}

static void a_good_row_is_a_task(void **state) {
  struct task task;
  struct err err = {0};
  assert_true(decode(ROW_EXPIRES, NULL, &task, &err));
  assert_int_equal(task.id, UINT64_MAX);
  assert_int_equal(task.shard, 63);
  assert_int_equal(task.state, TASK_SCHEDULED);
  assert_int_equal(task.attempt, 1999999999);
  assert_int_equal(task.revision, 4);
  assert_int_equal(task.expires_us, 0);
  assert_int_equal(task.due_us, INT64_C(1577836800000001));
  assert_int_equal(task.payload.len, 3);
  assert_memory_equal(task.payload.data, "a\0b", 3);
  assert_true(decode(ROW_EXPIRES, "2020-01-01 00:00:00.5", &task, &err));
  assert_int_equal(task.expires_us, INT64_C(1577836800500000));
}

static void a_payload_over_the_limit_comes_without_data(void **state) {
  struct task task;
  struct err err = {0};
  assert_true(decode(ROW_PAYLOAD, NULL, &task, &err));
  assert_null(task.payload.data);
  assert_int_equal(task.payload_len, 3);
  assert_int_equal(task_size(&task), 10); /* as the server says: what it did not send counts too */
}

/* What comes is counted as it came: the connection may have another character set than the column. */
static void the_size_of_a_task_is_that_of_all_that_may_be_large(void **state) {
  struct task task;
  struct err err = {0};
  assert_true(decode(ROW_CHECKPOINT, "half", &task, &err));
  assert_int_equal(task_size(&task), 3 + 2 + 4);
  assert_true(decode(ROW_CHECKPOINT, NULL, &task, &err));
  assert_null(task.unreadable);
  assert_int_equal(task_size(&task), 3 + 2);
}

#define LONG "0123456789012345678901234567890123456789012345678901234567890123x"

/* What guards the end of a row must be right. */
static void what_the_schema_does_not_allow_is_named(void **state) {
  static const struct {
    enum row_field field;
    const char *value, *named;
  } rows[] = {
      {ROW_ID, NULL, "id"},
      {ROW_ID, "x", "id"},
      {ROW_SHARD, "64", "shard"},
      {ROW_STATE, "0", "state + 0"},
      {ROW_STATE, "10", "state + 0"},
      {ROW_MESSAGE_ID, NULL, "message_id"},
      {ROW_MESSAGE_ID, LONG "x", "message_id"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct task task;
    struct err err = {0};
    assert_false(decode(rows[i].field, rows[i].value, &task, &err));
    assert_non_null(strstr(err.text, rows[i].named));
  }
}

/* A row that a lenient sql_mode let past the schema ends by itself; it used to fail the reading of all. */
static void a_bad_value_makes_one_task_unreadable(void **state) {
  static const struct {
    enum row_field field;
    const char *value, *named;
  } rows[] = {
      {ROW_PRIORITY, "10", "priority"},
      {ROW_PRIORITY, "0", "priority"},
      {ROW_PRIORITY, "256", "priority"},
      {ROW_ROUTE, NULL, "route"},
      {ROW_ROUTE, "", "route"},
      {ROW_ROUTE, "a b", "route"},
      {ROW_ROUTE, LONG, "route"},
      {ROW_MESSAGE_ID, LONG, "message_id"},
      {ROW_MESSAGE_ID, "01234567 1234567", "message_id"},
      {ROW_MESSAGE_ID, "0123456\x7f", "message_id"},
      {ROW_MESSAGE_ID, "\x80", "message_id"},
      {ROW_TASK_KEY, LONG LONG LONG LONG, "task_key"},
      {ROW_MAX_ATTEMPTS, "0", "max_attempts"},
      {ROW_TIMEOUT, "0", "timeout_ms"},
      {ROW_TARGET_HOST, "", "target_host"},
      {ROW_TARGET_HOST, LONG, "target_host"},
      {ROW_ATTEMPT, "2000000000", "attempt"}, /* its next one could not be written */
      {ROW_ATTEMPT, "4294967295", "attempt"},
      {ROW_ATTEMPT, "4294967296", "attempt"},
      {ROW_FIRST_DUE, "0000-00-00 00:00:00.000000", "first_due_at"},
      {ROW_DUE, NULL, "due_at"},
      {ROW_DUE, "0000-00-00 00:00:00.000000", "due_at"},
      {ROW_EXPIRES, "never", "expires_at"},
      {ROW_PAYLOAD_LEN, NULL, "OCTET_LENGTH(payload)"},
      {ROW_PAYLOAD, "ab", "payload"},
      {ROW_HEADERS, NULL, "headers"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct task task;
    struct err err = {0};
    assert_true(decode(rows[i].field, rows[i].value, &task, &err));
    assert_non_null(task.unreadable);
    if (!strstr(task.unreadable, rows[i].named))
      fail_msg("%s is named, not %s", task.unreadable, rows[i].named);
    assert_true(strlen(task.unreadable) < 24); /* the column, and no condition about it */
    assert_true(task.id > 0 && task.message_id.len > 0);
  }
}

/* A group may come under either name where rows of both are in it: all of it used to be taken for a misfit, and ended.
 */
static void a_route_is_named_as_the_database_compares_it(void **state) {
  static const struct {
    const char *name;
    size_t len, named_len;
    const char *shown;
  } rows[] = {{"a", 1, 1, "a"},         {"a ", 2, 1, "a"},      {"a  ", 3, 1, "a"}, {" a", 2, 2, " a"},
              {"  ", 2, 0, "(empty)"},  {"a\0", 2, 2, "a?"},    {"\0", 1, 1, "?"},  {"a\0 ", 3, 2, "a?"},
              {"a\0b\0", 4, 4, "a?b?"}, {NULL, 0, 0, "(empty)"}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char *fields[] = {(char *)(uintptr_t)rows[i].name};
    unsigned long lengths[] = {rows[i].len};
    const struct db_row row = {.fields = fields, .lengths = lengths};
    char name[ROW_ROUTE_CAP];
    size_t len;
    assert_true(row_route(&row, 0, name, &len));
    assert_int_equal(len, rows[i].named_len);
    assert_int_equal(name[len], '\0');
    assert_true(row_route_shown(&row, 0, name));
    assert_string_equal(name, rows[i].shown);
  }
}

static void columns_are_selected_in_the_order_of_the_fields(void **state) {
  struct text text = {0};
  row_columns(&text, (struct store_limit){.payload = 4096, .bytes = 8192});
  assert_ptr_equal(strstr(text.data, "id, shard, state + 0, priority"), text.data);
#define WHOLE                                                                                                          \
  "IF(OCTET_LENGTH(payload) <= 4096 AND OCTET_LENGTH(payload) + OCTET_LENGTH(headers) + "                              \
  "COALESCE(OCTET_LENGTH(checkpoint), 0) <= 8192, "
  assert_non_null(strstr(text.data, WHOLE "payload, NULL)"));
  assert_non_null(strstr(text.data, WHOLE "checkpoint, NULL)"));
  row_columns(&text, (struct store_limit){.payload = 10, .bytes = 20, .content = true});
  assert_non_null(strstr(text.data, "OCTET_LENGTH(payload) + OCTET_LENGTH(headers) <= 20, payload, NULL)"));
  assert_null(strstr(text.data, "checkpoint, NULL)"));
  text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_good_row_is_a_task),
      cmocka_unit_test(a_payload_over_the_limit_comes_without_data),
      cmocka_unit_test(the_size_of_a_task_is_that_of_all_that_may_be_large),
      cmocka_unit_test(what_the_schema_does_not_allow_is_named),
      cmocka_unit_test(a_bad_value_makes_one_task_unreadable),
      cmocka_unit_test(a_route_is_named_as_the_database_compares_it),
      cmocka_unit_test(columns_are_selected_in_the_order_of_the_fields),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
