/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_template.c - templates: what is accepted, what comes out, and how it is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/template.h"

#define BYTES(text)                                                                                                    \
  { text, sizeof(text) - 1 }

static const struct duebox_header headers[] = {
    {"tenant", BYTES("a/b c")}, {"x.y", BYTES("")}, {"Tenant", BYTES("upper")}};

static const struct duebox_task task = {
    .struct_size = sizeof task,
    .message_id = "0b1f-77",
    .route = "orders.cancel",
    .priority = 7,
    .key = BYTES("k\xc3\xa9y/1"),
    .headers = headers,
    .header_count = 3,
};

static const struct row {
  const char *tmpl;
  const char *plain, *url;
} rows[] = {
    {"", "", ""},
    {"orders", "orders", "orders"},
    {"{task_key}", "k\xc3\xa9y/1", "k%C3%A9y%2F1"},
    {"{route}", "orders.cancel", "orders.cancel"},
    {"{message_id}", "0b1f-77", "0b1f-77"},
    {"{priority}", "7", "7"},
    {"{header.tenant}", "a/b c", "a%2Fb%20c"},
    {"{header.Tenant}", "upper", "upper"},
    {"{header.x.y}", "", ""},
    {"{header.absent}", "", ""},
    {"https://h/{route}?k={task_key}&p={priority}", "https://h/orders.cancel?k=k\xc3\xa9y/1&p=7",
     "https://h/orders.cancel?k=k%C3%A9y%2F1&p=7"},
    {"{{{route}}}", "{orders.cancel}", "{orders.cancel}"},
    {"{{route}}", "{route}", "{route}"},
    {"a b/{route}", "a b/orders.cancel", "a b/orders.cancel"}, /* only what is substituted is escaped */
};

static void test_expand(void **state) {
  char out[128];
  struct err err;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_true(template_check(rows[i].tmpl, &err));
    assert_int_equal(template_expand(rows[i].tmpl, &task, DUEBOX_ESCAPE_NONE, out, sizeof out), strlen(rows[i].plain));
    assert_string_equal(out, rows[i].plain);
    assert_int_equal(template_expand(rows[i].tmpl, &task, DUEBOX_ESCAPE_URL, out, sizeof out), strlen(rows[i].url));
    assert_string_equal(out, rows[i].url);
  }
}

/* Every capacity gives the beginning, a NUL within it, and the full length. */
static void test_cut(void **state) {
  const char *tmpl = "x-{task_key}-{route}", *full = "x-k%C3%A9y%2F1-orders.cancel";
  size_t len = strlen(full);
  assert_int_equal(template_expand(tmpl, &task, DUEBOX_ESCAPE_URL, NULL, 0), len);
  for (size_t cap = 1; cap < len + 3; cap++) {
    char out[64];
    memset(out, '#', sizeof out);
    assert_int_equal(template_expand(tmpl, &task, DUEBOX_ESCAPE_URL, out, cap), len);
    size_t kept = cap - 1 < len ? cap - 1 : len;
    assert_memory_equal(out, full, kept);
    assert_int_equal(out[kept], '\0');
    assert_int_equal(out[cap], '#');
  }
}

static void test_bytes_with_nul(void **state) {
  static const struct duebox_task odd = {.message_id = "m", .route = "r", .priority = 5, .key = BYTES("a\0b")};
  char out[16];
  assert_int_equal(template_expand("{task_key}", &odd, DUEBOX_ESCAPE_NONE, out, sizeof out), 3);
  assert_memory_equal(out, "a\0b", 4);
  assert_int_equal(template_expand("{task_key}", &odd, DUEBOX_ESCAPE_URL, out, sizeof out), 5);
  assert_string_equal(out, "a%00b");
}

static const struct {
  const char *tmpl, *error;
} bad[] = {
    {"{", "\"{\" is not closed; write \"{{\" for a brace that is meant literally"},
    {"a{route", "\"{\" is not closed; write \"{{\" for a brace that is meant literally"},
    {"{rou{te}", "\"{\" is not closed; write \"{{\" for a brace that is meant literally"},
    {"}", "\"}\" has no \"{\" before it; write \"}}\" for a brace that is meant literally"},
    {"{route}}", "\"}\" has no \"{\" before it; write \"}}\" for a brace that is meant literally"},
    {"{}", "unknown placeholder {}; there are {task_key}, {route}, {message_id}, {priority} and {header.NAME}"},
    {"{header.}",
     "unknown placeholder {header.}; there are {task_key}, {route}, {message_id}, {priority} and {header.NAME}"},
    {"{Route}", "unknown placeholder {Route}; did you mean {route}?"},
    {"{messageid}", "unknown placeholder {messageid}; did you mean {message_id}?"},
    {"{payload}",
     "unknown placeholder {payload}; there are {task_key}, {route}, {message_id}, {priority} and {header.NAME}"},
};

static void test_check(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct err err = {0};
    assert_false(template_check(bad[i].tmpl, &err));
    assert_string_equal(err.text, bad[i].error);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_expand), cmocka_unit_test(test_cut),
                                     cmocka_unit_test(test_bytes_with_nul), cmocka_unit_test(test_check)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
