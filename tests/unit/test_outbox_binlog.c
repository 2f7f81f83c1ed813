/* SPDX-License-Identifier: MIT
 *
 * Events of a binlog: what is read of them, what it means, and that no cut or changed byte makes it read beyond them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/binlog_row.h"

/* A table of ours with strangers in between: id, note CHAR(3), route, due_at, price DECIMAL(10,2), priority,
 * target_host, shard, blob, state. */
static const uint8_t types[] = {8, 254, 15, 18, 246, 1, 15, 1, 252, 254};
static const uint8_t metadata[] = {0xfe, 12, 64, 0, 6, 10, 2, 200, 0, 2, 0xf7, 1};
static const struct binlog_columns columns = {.count = sizeof types,
                                              .at = {[BINLOG_ID] = 0,
                                                     [BINLOG_ROUTE] = 2,
                                                     [BINLOG_DUE_AT] = 3,
                                                     [BINLOG_PRIORITY] = 5,
                                                     [BINLOG_TARGET_HOST] = 6,
                                                     [BINLOG_SHARD] = 7,
                                                     [BINLOG_STATE] = 9}};

struct event {
  uint8_t data[512];
  size_t len;
};

static void put(struct event *event, const void *data, size_t len) {
  assert_true(event->len + len <= sizeof event->data);
  memcpy(event->data + event->len, data, len);
  event->len += len;
}

static void put_byte(struct event *event, uint8_t byte) { put(event, &byte, 1); }

static void put_map(struct event *event) {
  put(event, "\x12\0\0\0\0\0\1\0\4shop\0\6outbox\0", 8 + 6 + 8);
  put_byte(event, sizeof types);
  put(event, types, sizeof types);
  put_byte(event, sizeof metadata);
  put(event, metadata, sizeof metadata);
  put(event, "\0\0", 2); /* which may be NULL */
}

static void describe(struct binlog_table *table) {
  struct event event = {0};
  struct binlog_map map;
  put_map(&event);
  assert_true(binlog_read_map(event.data, event.len, &map));
  binlog_describe(table, &map, &columns);
}

struct row {
  const char *route, *host;
  uint8_t seconds; /* due at 2020-01-01 00:00:ss.5 */
  uint8_t priority, shard, state;
};
static const struct row plain = {.route = "orders", .host = "", .seconds = 1, .priority = 5, .shard = 3, .state = 1};
#define DUE(seconds) (INT64_C(1577836800500000) + (seconds)*INT64_C(1000000))

static void put_row(struct event *event, const struct row *row) {
  put(event, "\2\0", 2); /* note is NULL */
  put(event, "\7\0\0\0\0\0\0\0", 8);
  put_byte(event, (uint8_t)strlen(row->route));
  put(event, row->route, strlen(row->route));
  put(event, (uint8_t[]){0x99, 0xa5, 0x42, 0, row->seconds, 0x07, 0xa1, 0x20}, 8);
  put(event, "\x80\0\0\x2a\x32", 5);
  put_byte(event, row->priority);
  put_byte(event, (uint8_t)strlen(row->host));
  put(event, row->host, strlen(row->host));
  put_byte(event, row->shard);
  put(event, "\3\0abc", 5);
  put_byte(event, row->state);
}

static void put_header(struct event *event, uint8_t type) {
  put(event, "\x12\0\0\0\0\0\1\0", 8);
  if (type == BINLOG_INSERT_V2 || type == BINLOG_UPDATE_V2)
    put(event, "\2\0", 2);
  put_byte(event, sizeof types);
  put(event, "\xff\x03", 2);
  if (type == BINLOG_UPDATE_V1 || type == BINLOG_UPDATE_V2)
    put(event, "\xff\x03", 2);
}

static struct binlog_rows open_rows(uint8_t type, const struct event *event) {
  struct binlog_rows rows;
  assert_true(binlog_read_rows(type, event->data, event->len, (struct duebox_bytes){0}, &rows));
  assert_int_equal(rows.table_id, 0x12);
  return rows;
}

/* Whether an update from one row to the other tells something. */
static bool update_tells(const struct row *from, const struct row *to, struct store_hint *hint) {
  struct binlog_table table;
  struct event event = {0};
  struct binlog_image before, after;
  describe(&table);
  put_header(&event, BINLOG_UPDATE_V1);
  put_row(&event, from);
  put_row(&event, to);
  struct binlog_rows rows = open_rows(BINLOG_UPDATE_V1, &event);
  assert_int_equal(binlog_next(&rows, &table, &before, &after), BINLOG_ROW);
  bool tells = binlog_tells(&rows, &before, &after, "here", hint);
  assert_int_equal(binlog_next(&rows, &table, &before, &after), BINLOG_END);
  return tells;
}

static bool insert_tells(uint8_t type, const struct row *row, struct store_hint *hint) {
  struct binlog_table table;
  struct event event = {0};
  struct binlog_image before, after;
  describe(&table);
  put_header(&event, type);
  put_row(&event, row);
  struct binlog_rows rows = open_rows(type, &event);
  assert_int_equal(binlog_next(&rows, &table, &before, &after), BINLOG_ROW);
  return binlog_tells(&rows, &before, &after, "here", hint);
}

static void a_new_row_tells_its_group_and_time(void **state) {
  static const uint8_t both[] = {BINLOG_INSERT_V1, BINLOG_INSERT_V2};
  for (size_t i = 0; i < sizeof both; i++) {
    struct store_hint hint;
    assert_true(insert_tells(both[i], &plain, &hint));
    assert_string_equal(hint.route, "orders");
    assert_int_equal(hint.id, 7);
    assert_int_equal(hint.priority, 5);
    assert_int_equal(hint.shard, 3);
    assert_int_equal(hint.due_us, DUE(1));
  }
}

static void rows_for_others_or_not_scheduled_tell_nothing(void **state) {
  struct store_hint hint;
  struct row row = plain;
  row.state = 3;
  assert_false(insert_tells(BINLOG_INSERT_V1, &row, &hint));
  row = plain;
  row.host = "there";
  assert_false(insert_tells(BINLOG_INSERT_V1, &row, &hint));
  row.host = "here";
  assert_true(insert_tells(BINLOG_INSERT_V1, &row, &hint));
}

static void an_update_tells_what_is_due_earlier_or_elsewhere(void **state) {
  struct store_hint hint;
  struct row from = plain, to = plain;
  assert_false(update_tells(&from, &to, &hint)); /* of another column */
  to.seconds = 2;
  assert_false(update_tells(&from, &to, &hint)); /* a retry: later */
  assert_true(update_tells(&to, &from, &hint));
  assert_int_equal(hint.due_us, DUE(1));
  to = plain;
  to.state = 2;
  assert_false(update_tells(&from, &to, &hint)); /* a claim */
  assert_true(update_tells(&to, &from, &hint));  /* back from it */
  to = plain;
  to.route = "billing";
  assert_true(update_tells(&from, &to, &hint));
  assert_string_equal(hint.route, "billing");
  to = plain;
  to.priority = 9;
  assert_true(update_tells(&from, &to, &hint));
  to = plain;
  to.shard = 1;
  assert_true(update_tells(&from, &to, &hint));
}

static void what_an_image_lacks_makes_the_hint_general(void **state) {
  struct binlog_table table;
  struct event event = {0};
  struct binlog_image before, after;
  struct store_hint hint;
  describe(&table);
  /* binlog_row_image = MINIMAL: the key before, the due time after. */
  put(&event, "\x12\0\0\0\0\0\1\0", 8);
  put_byte(&event, sizeof types);
  put(&event, "\1\0\x08\0", 4);
  put(&event, "\0\7\0\0\0\0\0\0\0", 9);
  put(&event, (uint8_t[]){0, 0x99, 0xa5, 0x42, 0, 9, 0x07, 0xa1, 0x20}, 9);
  struct binlog_rows rows = open_rows(BINLOG_UPDATE_V1, &event);
  assert_int_equal(binlog_next(&rows, &table, &before, &after), BINLOG_ROW);
  assert_true(binlog_tells(&rows, &before, &after, "here", &hint));
  assert_string_equal(hint.route, "");
  assert_int_equal(hint.due_us, DUE(9));
}

static void columns_that_are_not_as_expected_are_not_read(void **state) {
  struct event event = {0};
  struct binlog_map map;
  struct binlog_table table;
  struct binlog_columns other = columns;
  put_map(&event);
  assert_true(binlog_read_map(event.data, event.len, &map));
  binlog_describe(&table, &map, &columns);
  assert_true(table.known);
  other.at[BINLOG_PRIORITY] = 2;
  binlog_describe(&table, &map, &other);
  assert_false(table.known);
  other = columns;
  other.count++;
  binlog_describe(&table, &map, &other);
  assert_false(table.known);
  other = columns;
  other.at[BINLOG_STATE] = -1;
  binlog_describe(&table, &map, &other);
  assert_false(table.known);
  struct event rows_event = {0};
  struct binlog_image before, after;
  put_header(&rows_event, BINLOG_INSERT_V1);
  put_row(&rows_event, &plain);
  struct binlog_rows rows = open_rows(BINLOG_INSERT_V1, &rows_event);
  assert_int_equal(binlog_next(&rows, &table, &before, &after), BINLOG_BROKEN);
}

/* On the heap, so that a sanitizer sees a read beyond the end. */
static void read_cut(const struct event *event, size_t len, uint8_t type) {
  uint8_t *copy = malloc(len ? len : 1);
  struct binlog_table table;
  struct binlog_image before, after;
  struct binlog_rows rows;
  describe(&table);
  memcpy(copy, event->data, len);
  if (binlog_read_rows(type, copy, len, (struct duebox_bytes){0}, &rows))
    while (binlog_next(&rows, &table, &before, &after) == BINLOG_ROW)
      assert_true(rows.at <= copy + len);
  free(copy);
}

static void no_cut_reads_beyond_the_end(void **state) {
  struct event event = {0};
  put_header(&event, BINLOG_UPDATE_V1);
  put_row(&event, &plain);
  put_row(&event, &plain);
  for (size_t len = 0; len <= event.len; len++)
    read_cut(&event, len, BINLOG_UPDATE_V1);
  struct event map = {0};
  struct binlog_map out;
  put_map(&map);
  for (size_t len = 0; len < map.len - 2; len++)
    assert_false(binlog_read_map(map.data, len, &out));
}

static enum binlog_meaning judge(const char *statement, const char *session) {
  return binlog_judge((struct duebox_bytes){.data = statement, .len = strlen(statement)},
                      (struct duebox_bytes){.data = session, .len = strlen(session)}, "shop", "outbox");
}

static void statements_are_judged_by_their_first_word(void **state) {
  assert_int_equal(judge("INSERT INTO outbox (route) VALUES ('x')", "shop"), BINLOG_CHANGE);
  assert_int_equal(judge("/* by app */ insert into `outbox` values (1)", "shop"), BINLOG_CHANGE);
  assert_int_equal(judge("UPDATE shop.outbox SET due_at = NOW()", "other"), BINLOG_CHANGE);
  assert_int_equal(judge("INSERT INTO outbox (route) VALUES ('x')", "other"), BINLOG_NOTHING);
  assert_int_equal(judge("INSERT INTO outbox_history VALUES (1)", "shop"), BINLOG_NOTHING);
  assert_int_equal(judge("DELETE FROM outbox", "shop"), BINLOG_NOTHING);
  assert_int_equal(judge("ALTER TABLE outbox ADD x INT", "shop"), BINLOG_DEFINITION);
  assert_int_equal(judge("ALTER TABLE outbox_history ADD x INT", "shop"), BINLOG_NOTHING);
  assert_int_equal(judge("RENAME TABLE x TO outbox", "shop"), BINLOG_DEFINITION);
  assert_int_equal(judge("COMMIT", "shop"), BINLOG_NOTHING);
  assert_int_equal(judge("", "shop"), BINLOG_NOTHING);
  assert_int_equal(judge("/* never closed", "shop"), BINLOG_NOTHING);
}

/* As MySQL logs "COMMIT" in database shop, with three bytes of settings between. */
static void a_statement_is_read_with_its_database(void **state) {
  static const char text[] = "\1\2\3\4\0\0\0\0\4\0\0\3\0abcshop\0COMMIT";
  const size_t len = sizeof text - 1, statement_len = strlen("COMMIT");
  struct duebox_bytes database, statement;
  for (size_t cut = 0; cut <= len; cut++) {
    uint8_t *body = malloc(cut + 1); /* exactly as long, so that a tool sees a read beyond it */
    memcpy(body, text, cut);
    bool whole = binlog_read_query(body, cut, &database, &statement);
    assert_int_equal(whole, cut >= len - statement_len);
    if (whole) {
      assert_int_equal(database.len, 4);
      assert_memory_equal(database.data, "shop", 4);
      assert_int_equal(statement.len, cut - (len - statement_len));
      assert_memory_equal(statement.data, "COMMIT", statement.len);
    }
    free(body);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_new_row_tells_its_group_and_time),
      cmocka_unit_test(rows_for_others_or_not_scheduled_tell_nothing),
      cmocka_unit_test(an_update_tells_what_is_due_earlier_or_elsewhere),
      cmocka_unit_test(what_an_image_lacks_makes_the_hint_general),
      cmocka_unit_test(columns_that_are_not_as_expected_are_not_read),
      cmocka_unit_test(no_cut_reads_beyond_the_end),
      cmocka_unit_test(statements_are_judged_by_their_first_word),
      cmocka_unit_test(a_statement_is_read_with_its_database),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
