/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_message.c - properties and headers of a message, and what AMQP cannot carry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_message.h"
#include "plugins/amqp/amqp_options.h"

static const int64_t wall = 1767323046999999; /* 2026-01-02T03:04:06.999999Z */

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

static struct duebox_task a_task(void) {
  return (struct duebox_task){.struct_size = sizeof(struct duebox_task),
                              .message_id = "id-1",
                              .route = "orders.cancel",
                              .attempt = 3,
                              .due_us = 1767323045123456,
                              .priority = 7,
                              .key = text("k"),
                              .payload = text("{}"),
                              .checkpoint = text("")};
}

static const struct amqp_route a_route = {.exchange = "e",
                                          .routing_key = "{route}",
                                          .content_type = "application/json",
                                          .app_id = "duebox",
                                          .persistent = true};

static bool is(amqp_bytes_t bytes, const char *want) {
  return bytes.len == strlen(want) && memcmp(bytes.bytes, want, bytes.len) == 0;
}

/* The value of a header that must be a long string; NULL when there is none, or when there are two. */
static const amqp_bytes_t *header(const struct amqp_message *m, const char *name) {
  const amqp_bytes_t *found = NULL;
  for (int i = 0; i < m->properties.headers.num_entries; i++) {
    const amqp_table_entry_t *entry = &m->properties.headers.entries[i];
    if (!is(entry->key, name))
      continue;
    assert_int_equal(entry->value.kind, AMQP_FIELD_KIND_UTF8);
    assert_null(found);
    found = &entry->value.value.bytes;
  }
  return found;
}

static void properties_are_as_agreed(void **state) {
  (void)state;
  struct amqp_message m = {0};
  struct duebox_task task = a_task();
  task.reply_to = "answers";
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), 0);
  const amqp_basic_properties_t *p = &m.properties;
  assert_true(is(p->message_id, "id-1"));
  assert_true(is(p->correlation_id, "id-1"));
  assert_true(is(p->reply_to, "answers"));
  assert_true(is(p->content_type, "application/json"));
  assert_true(is(p->app_id, "duebox"));
  assert_int_equal(p->delivery_mode, 2);
  assert_int_equal(p->priority, 7);
  assert_int_equal(p->timestamp, 1767323046); /* seconds */
  const amqp_flags_t want = AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_REPLY_TO_FLAG |
                            AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_APP_ID_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                            AMQP_BASIC_PRIORITY_FLAG | AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_HEADERS_FLAG;
  assert_int_equal(p->_flags, want); /* user_id in particular is not set: the broker would close the channel */
  amqp_message_free(&m);
}

static void absent_properties_are_absent(void **state) {
  (void)state;
  struct amqp_message m = {0};
  struct duebox_task task = a_task();
  struct amqp_route route = a_route;
  route.persistent = false;
  route.app_id = route.content_type = "";
  assert_int_equal(amqp_message_build(&m, &task, &route, wall, 131072), 0);
  assert_int_equal(m.properties.delivery_mode, 1);
  assert_int_equal(
      m.properties._flags & (AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_APP_ID_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG), 0);
  assert_null(header(&m, "duebox-checkpoint"));
  amqp_message_free(&m);
}

static void headers_are_long_strings(void **state) {
  (void)state;
  struct amqp_message m = {0};
  const struct duebox_header headers[] = {{"traceparent", text("00-ab")}, {"x-empty", text("")}};
  struct duebox_task task = a_task();
  task.checkpoint = text("page 7");
  task.headers = headers;
  task.header_count = 2;
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), 0);
  assert_int_equal(m.properties.headers.num_entries, 6);
  assert_true(is(*header(&m, "duebox-attempt"), "3"));
  assert_true(is(*header(&m, "duebox-route"), "orders.cancel"));
  assert_true(is(*header(&m, "duebox-due"), "2026-01-02T03:04:05.123456Z"));
  assert_true(is(*header(&m, "duebox-checkpoint"), "page 7"));
  assert_true(is(*header(&m, "traceparent"), "00-ab"));
  assert_true(is(*header(&m, "x-empty"), ""));
  amqp_message_free(&m);
}

static void a_revision_has_a_header(void **state) {
  (void)state;
  struct amqp_message m = {0};
  struct duebox_task task = a_task();
  task.struct_size = sizeof task;
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), 0);
  assert_null(header(&m, "duebox-revision"));
  task.revision = 12;
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), 0);
  assert_true(is(*header(&m, "duebox-revision"), "12"));
  amqp_message_free(&m);
}

/* Spring gives properties and headers one map, in which the headers come last: a consumer that reads its message's id
 * there, or sends what it read back, answered for another task. */
static void no_header_passes_for_a_property(void **state) {
  (void)state;
  struct amqp_message m = {0};
  const struct duebox_header headers[] = {{"amqp_messageId", text("018f-18")},
                                          {"amqp_correlationId", text("018f-18")},
                                          {"AMQP_replyTo", text("partner-results")},
                                          {"amqp", text("kept")}};
  struct duebox_task task = a_task();
  task.headers = headers;
  task.header_count = 4;
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), 0);
  for (size_t i = 0; i < 3; i++)
    assert_null(header(&m, headers[i].name));
  assert_true(is(*header(&m, "amqp"), "kept"));
  amqp_message_free(&m);
}

static void what_amqp_cannot_carry(void **state) {
  (void)state;
  struct amqp_message m = {0};
  char longer[257] = {0};
  memset(longer, 'i', 256);
  struct duebox_task task = a_task();
  task.message_id = longer;
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), AMQP_INVALID_MESSAGE_ID);
  task = a_task();
  task.reply_to = longer;
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), AMQP_INVALID_REPLY_TO);
  const struct duebox_header bad_name = {longer, text("")};
  task = a_task();
  task.headers = &bad_name;
  task.header_count = 1;
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), AMQP_INVALID_HEADER_NAME);
  longer[255] = '\0';
  assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), 0);
  amqp_message_free(&m);
}

/* RabbitMQ closes the channel over a CC or BCC that is not a list, at the cost of all that is open on it. Its names are
 * case-sensitive: `cc` is a header like any other. */
static void a_header_that_closes_the_channel_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int want;
  } rows[] = {{"CC", AMQP_INVALID_CC}, {"BCC", AMQP_INVALID_CC}, {"cc", 0}, {"Bcc", 0}, {"CCC", 0}, {"C", 0}};
  struct amqp_message m = {0};
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const struct duebox_header headers[] = {{"first", text("")}, {rows[i].name, text("audit@example.com")}};
    struct duebox_task task = a_task();
    task.headers = headers;
    task.header_count = 2;
    assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), rows[i].want);
  }
  amqp_message_free(&m);
}

/* The estimate must never be below what the library needs: it would find out between two frames. */
static void the_size_of_the_head_is_an_upper_bound(void **state) {
  (void)state;
  static char big[5000], buffer[16384];
  struct amqp_message m = {0};
  memset(big, 'v', sizeof(big));
  for (size_t len = 0; len <= sizeof(big); len += 250) {
    const struct duebox_header headers[] = {{"one", {big, len}}, {"two", text("2")}};
    struct duebox_task task = a_task();
    task.headers = headers;
    task.header_count = 2;
    task.reply_to = "answers";
    assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, 131072), 0);
    amqp_bytes_t room = {.len = sizeof(buffer), .bytes = buffer};
    int encoded = amqp_encode_properties(AMQP_BASIC_CLASS, &m.properties, room);
    assert_true(encoded > 0);
    assert_true(m.head_size >= (size_t)encoded + 20); /* and the frame around it: 7 + 12 + 1 */
    assert_int_equal(amqp_message_build(&m, &task, &a_route, wall, (size_t)encoded + 19), AMQP_INVALID_HEADERS_SIZE);
  }
  amqp_message_free(&m);
}

static void times(void **state) {
  (void)state;
  static const struct {
    int64_t us;
    const char *want;
  } rows[] = {{0, "1970-01-01T00:00:00.000000Z"},
              {1, "1970-01-01T00:00:00.000001Z"},
              {-1, "1969-12-31T23:59:59.999999Z"},
              {1767323045123456, "2026-01-02T03:04:05.123456Z"},
              {2147483648000000, "2038-01-19T03:14:08.000000Z"},
              {253402300799999999, "9999-12-31T23:59:59.999999Z"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    char out[40];
    amqp_message_time(rows[i].us, out, sizeof(out));
    assert_string_equal(out, rows[i].want);
  }
}

static size_t put_length(char *at, size_t length) {
  for (int i = 0; i < 4; i++)
    at[i] = (char)(length >> (24 - 8 * i));
  return 4;
}

/* rabbitmq-c goes one call deeper for each level: whoever writes to a result queue must not end the daemon by that. */
static void headers_as_deep_as_the_largest_frame_takes_are_read(void **state) {
  const struct duebox_option *row = amqp_option_rows;
  while (strcmp(row->name, "frame_max") != 0)
    row++;
  for (size_t level = 5; level <= 6; level++) { /* lists in a list, or tables in a table */
    const size_t size = (size_t)row->max;
    char *frame = calloc(1, size);
    size_t at = put_length(frame, size - 4);
    if (level == 5) { /* a member without a name, which is a list */
      frame[at + 1] = 'A';
      at += 2;
      at += put_length(frame + at, size - at - 4);
    }
    while (at + level <= size) {
      at += level == 6;
      frame[at++] = level == 6 ? 'F' : 'A';
      at += put_length(frame + at, size - at - 4);
    }
    amqp_pool_t pool;
    amqp_table_t table;
    size_t offset = 0;
    init_amqp_pool(&pool, 4096);
    (void)amqp_decode_table((amqp_bytes_t){at, frame}, &pool, &table, &offset); /* whatever it is; it comes back */
    assert_true(offset > 0);
    empty_amqp_pool(&pool);
    free(frame);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(properties_are_as_agreed),
      cmocka_unit_test(absent_properties_are_absent),
      cmocka_unit_test(a_revision_has_a_header),
      cmocka_unit_test(no_header_passes_for_a_property),
      cmocka_unit_test(headers_are_long_strings),
      cmocka_unit_test(what_amqp_cannot_carry),
      cmocka_unit_test(a_header_that_closes_the_channel_is_refused),
      cmocka_unit_test(the_size_of_the_head_is_an_upper_bound),
      cmocka_unit_test(times),
      cmocka_unit_test(headers_as_deep_as_the_largest_frame_takes_are_read),
  };
  return cmocka_run_group_tests_name("amqp message", tests, NULL, NULL);
}
