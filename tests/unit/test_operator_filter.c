/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_operator_filter.c - selections as SQL conditions: right for each table, and nothing gets out of its
 * quotes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "outbox/operator_filter.h"

#define ALL_SHARDS " AND shard IN (0,1,63)"
#define DUE "COALESCE(due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND)"
#define LIVING "state IN ('scheduled', 'claimed', 'awaiting', 'held', 'blocked')"

static void check(const struct task_filter *filter, enum operator_table table, const char *expected) {
  struct text sql = {0};
  filter_sql(&sql, filter, table, UINT64_C(1) << 63 | 3);
  assert_false(sql.failed);
  assert_string_equal(sql.data, expected);
  text_free(&sql);
}

static void conditions(void **state) {
  check(&(struct task_filter){0}, TABLE_LIVING, LIVING);
  check(&(struct task_filter){.states = STATE_BIT(TASK_DEAD) | STATE_BIT(TASK_HELD)}, TABLE_LIVING,
        "state IN ('held')");
  check(&(struct task_filter){.states = STATE_BIT(TASK_DEAD) | STATE_BIT(TASK_HELD)}, TABLE_HISTORY,
        "state IN ('dead')");
  check(&(struct task_filter){.states = STATE_BIT(TASK_HELD)}, TABLE_HISTORY, "FALSE");
  check(&(struct task_filter){.route = "a"}, TABLE_LIVING, LIVING " AND route = 'a'" ALL_SHARDS);
  check(&(struct task_filter){.states = STATES_FINAL, .route = "a"}, TABLE_HISTORY,
        "state IN ('done', 'dead', 'cancelled', 'expired') AND route = 'a'");
  check(&(struct task_filter){.route = "caf\xc3\xa9"}, TABLE_LIVING, LIVING " AND FALSE" ALL_SHARDS);
  check(&(struct task_filter){.key = "k", .error_class = "e", .priority = 3, .failed = true}, TABLE_LIVING,
        LIVING " AND task_key = 'k' AND LENGTH(task_key) = 1 AND error_class = 'e' AND LENGTH(error_class) = 1"
               " AND priority = 3 AND failures > 0");
  check(&(struct task_filter){.states = STATE_BIT(TASK_DEAD), .failed = true}, TABLE_HISTORY, "state IN ('dead')");
  check(&(struct task_filter){.due_before_us = 1, .due_after_us = 2, .created_before_us = 3, .created_after_us = 4},
        TABLE_LIVING,
        LIVING " AND " DUE " < '1970-01-01 00:00:00.000001' AND " DUE " >= '1970-01-01 00:00:00.000002'"
               " AND created_at < '1970-01-01 00:00:00.000003' AND created_at >= '1970-01-01 00:00:00.000004'");
}

#define SEEN " AND message_id NOT LIKE '% '"

static void ids(void **state) {
  const char *const list[] = {"17", "m'1", "18446744073709551616"};
  check(&(struct task_filter){.ids = list, .id_count = 3}, TABLE_LIVING,
        LIVING " AND (message_id IN ('17', 'm\\'1', '18446744073709551616')" SEEN " OR id IN (17))");
  check(&(struct task_filter){.ids = list + 1, .id_count = 1}, TABLE_HISTORY,
        "state IN ('done', 'dead', 'cancelled', 'expired') AND (message_id IN ('m\\'1')" SEEN ")");
}

static void exact_ids(void **state) {
  const char *const list[] = {"id:17", "message_id:18"};
  check(&(struct task_filter){.ids = list, .id_count = 2}, TABLE_LIVING,
        LIVING " AND (message_id IN ('id:17', '18', 'message_id:18')" SEEN " OR id IN (17))");
  check(&(struct task_filter){.ids = list, .id_count = 2, .exact_ids = true}, TABLE_LIVING,
        LIVING " AND (message_id IN ('18')" SEEN " OR id IN (17))");
  check(&(struct task_filter){.ids = list, .id_count = 1, .exact_ids = true}, TABLE_LIVING,
        LIVING " AND (FALSE OR id IN (17))");
}

static void nothing_leaves_its_quotes(void **state) {
  check(&(struct task_filter){.key = "x' OR '1'='1"}, TABLE_LIVING,
        LIVING " AND task_key = 'x\\' OR \\'1\\'=\\'1' AND LENGTH(task_key) = 12");
  check(&(struct task_filter){.key = "\\' OR 1=1 -- "}, TABLE_LIVING,
        LIVING " AND task_key = '\\\\\\' OR 1=1 -- ' AND LENGTH(task_key) = 13");
}

static void a_raw_condition_stands_in_brackets(void **state) {
  check(&(struct task_filter){.where = "1 OR 1 -- all"}, TABLE_LIVING, LIVING " AND (1 OR 1 -- all\n)");
}

static void which_tables(void **state) {
  const char *const id[] = {"1"};
  assert_true(filter_touches(&(struct task_filter){0}, TABLE_LIVING));
  assert_false(filter_touches(&(struct task_filter){0}, TABLE_HISTORY));
  assert_true(filter_touches(&(struct task_filter){.ids = id, .id_count = 1}, TABLE_HISTORY));
  assert_false(filter_touches(&(struct task_filter){.states = STATE_BIT(TASK_DEAD)}, TABLE_LIVING));
}

static void indexes(void **state) {
  struct task_filter part;
  assert_null(filter_index(&(struct task_filter){.key = "k"}, TABLE_LIVING, &part));
  assert_null(filter_index(&(struct task_filter){.states = STATES_LIVING}, TABLE_LIVING, &part));
  assert_string_equal(filter_index(&(struct task_filter){.states = STATE_BIT(TASK_HELD)}, TABLE_LIVING, &part),
                      "FORCE INDEX (ix_next)");
  assert_string_equal(
      filter_index(&(struct task_filter){.states = STATES_FINAL, .route = "r", .key = "k"}, TABLE_HISTORY, &part),
      "FORCE INDEX (ix_route_finished)");
  assert_string_equal(part.route, "r");
  assert_null(part.key);
  assert_string_equal(filter_index(&(struct task_filter){.states = STATE_BIT(TASK_DEAD)}, TABLE_HISTORY, &part),
                      "FORCE INDEX (ix_state_finished)");
}

static void row_ids(void **state) {
  static const struct {
    const char *text;
    bool is_row;
    uint64_t row;
    const char *message_id, *whole;
  } rows[] = {{"18446744073709551615", true, UINT64_MAX, "18446744073709551615", ""},
              {"18446744073709551616", false, 0, "18446744073709551616", ""},
              {"", false, 0, "", ""},
              {"-1", false, 0, "-1", ""},
              {"1a", false, 0, "1a", ""},
              {"id:100", true, 100, "", "id:100"},
              {"id:", false, 0, "id:", ""},
              {"id:1a", false, 0, "id:1a", ""},
              {"id:id:1", false, 0, "id:id:1", ""},
              {"message_id:100", false, 0, "100", "message_id:100"},
              {"message_id:id:100", false, 0, "id:100", "message_id:id:100"},
              {"message_id:message_id:7", false, 0, "message_id:7", "message_id:message_id:7"},
              {"message_id:", false, 0, "", "message_id:"},
              {"message_id:a b", false, 0, "", ""},
              {"..", false, 0, "..", ""}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    struct task_name name = task_name_of(rows[i].text);
    assert_int_equal(name.is_row, rows[i].is_row);
    assert_true(name.row == rows[i].row);
    assert_string_equal(name.message_id, rows[i].message_id);
    assert_string_equal(name.whole, rows[i].whole);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conditions),
      cmocka_unit_test(ids),
      cmocka_unit_test(exact_ids),
      cmocka_unit_test(nothing_leaves_its_quotes),
      cmocka_unit_test(a_raw_condition_stands_in_brackets),
      cmocka_unit_test(which_tables),
      cmocka_unit_test(indexes),
      cmocka_unit_test(row_ids),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
