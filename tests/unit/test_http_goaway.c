/* SPDX-License-Identifier: MIT
 *
 * plugins/http: which requests an HTTP/2 server has not processed, as libcurl's log has it.
 */
#include "http_goaway.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct http_goaways goaways;

static int start(void **state) {
  memset(&goaways, 0, sizeof(goaways));
  return 0;
}

static struct http_stream stream_of(uintptr_t connection, const char *id) {
  struct http_stream stream = {0};
  http_goaway_read(&goaways, connection, &stream, id, strlen(id));
  return stream;
}

static void say(uintptr_t connection, const char *text) {
  struct http_stream none = {0};
  http_goaway_read(&goaways, connection, &none, text, strlen(text));
  assert_int_equal(none.id, 0);
}

static void streams_behind_the_last_one_are_unprocessed(void **state) {
  struct http_stream third = stream_of(1, "Using Stream ID: 3 (easy handle 0x1)");
  struct http_stream fifth = stream_of(1, "Using Stream ID: 5 (easy handle 0x2)");
  struct http_stream other = stream_of(2, "Using Stream ID: 5 (easy handle 0x3)");
  assert_int_equal(third.id, 3);
  assert_false(http_goaway_unprocessed(&goaways, &fifth));
  assert_false(http_goaway_took_others(&goaways, &fifth));
  say(1, "recveived GOAWAY, error=0, last_stream=3");
  assert_false(http_goaway_unprocessed(&goaways, &third));
  assert_true(http_goaway_unprocessed(&goaways, &fifth));
  assert_false(http_goaway_unprocessed(&goaways, &other));
}

/* One that takes up a few requests of each connection works; one that takes up nothing is down. */
static void who_took_others_is_told_from_who_took_nothing(void **state) {
  struct http_stream third = stream_of(1, "Using Stream ID: 3 (easy handle 0x1)");
  struct http_stream fifth = stream_of(1, "Using Stream ID: 5 (easy handle 0x2)");
  say(1, "received GOAWAY, error=0, last_stream=3");
  assert_true(http_goaway_took_others(&goaways, &fifth));
  assert_false(http_goaway_took_others(&goaways, &third));
  say(1, "received GOAWAY, error=0, last_stream=0");
  assert_true(http_goaway_unprocessed(&goaways, &third));
  assert_false(http_goaway_took_others(&goaways, &fifth));
}

static void a_request_without_a_stream_is_not_meant(void **state) {
  struct http_stream none = {.connection = 1};
  say(1, "received GOAWAY, error=0, last_stream=3");
  assert_false(http_goaway_unprocessed(&goaways, &none));
  assert_false(http_goaway_took_others(&goaways, &none));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(streams_behind_the_last_one_are_unprocessed, start),
      cmocka_unit_test_setup(who_took_others_is_told_from_who_took_nothing, start),
      cmocka_unit_test_setup(a_request_without_a_stream_is_not_meant, start),
  };
  return cmocka_run_group_tests_name("http_goaway", tests, NULL, NULL);
}
