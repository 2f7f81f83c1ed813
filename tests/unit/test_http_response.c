/* SPDX-License-Identifier: MIT
 *
 * What plugins/http keeps of a response and reads in it: the cap, the record's status word, Retry-After, clean text.
 */
#include "http_response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http_text.h"

static void the_body_is_cut_at_the_cap(void **state) {
  struct http_response r = {.limit = 10000};
  char block[3000];
  memset(block, 'a', sizeof(block));
  for (int i = 0; i < 3; i++)
    assert_true(http_response_append(&r, block, sizeof(block)));
  assert_false(r.cut);
  assert_false(http_response_append(&r, block, sizeof(block)));
  assert_true(r.cut);
  assert_int_equal(r.len, 10000);
  assert_true(r.cap <= 16384);
  http_response_reset(&r);
  assert_int_equal(r.len, 0);
  assert_false(r.cut);
  http_response_free(&r);
}

static void a_body_of_exactly_the_cap_is_whole(void **state) {
  struct http_response r = {.limit = 5};
  assert_true(http_response_append(&r, "12345", 5));
  assert_false(r.cut);
  assert_true(http_response_append(&r, "", 0));
  assert_false(r.cut);
  assert_false(http_response_append(&r, "6", 1));
  assert_true(r.cut);
  assert_memory_equal(r.body, "12345", 5);
  http_response_free(&r);
}

static void a_large_buffer_is_given_back(void **state) {
  struct http_response r = {.limit = 1 << 20};
  char *block = calloc(1, 100000);
  assert_true(http_response_append(&r, block, 100000));
  assert_true(r.cap >= 100000);
  http_response_reset(&r);
  assert_int_equal(r.cap, 0);
  assert_true(http_response_append(&r, block, 100)); /* a small one is kept */
  http_response_reset(&r);
  assert_true(r.cap > 0);
  http_response_free(&r);
  free(block);
}

static bool header(struct http_response *r, const char *line) { return http_response_header(r, line, strlen(line)); }

static void headers_are_counted(void **state) {
  struct http_response r = {.limit = 1};
  char *lines = calloc(1, HTTP_HEADER_MAX);
  assert_true(http_response_header(&r, lines, HTTP_HEADER_MAX));
  assert_false(r.header_flood);
  assert_false(http_response_header(&r, lines, 1));
  assert_true(r.header_flood);
  http_response_reset(&r);
  assert_true(http_response_header(&r, lines, 100));
  free(lines);
}

static void the_end_of_the_headers_is_seen(void **state) {
  struct http_response r = {.limit = 1};
  assert_true(header(&r, "HTTP/1.1 103 Early Hints\r\n"));
  assert_true(header(&r, "Link: x\r\n"));
  assert_false(r.headed);
  assert_true(header(&r, "\r\n"));
  assert_true(r.headed);
  assert_true(header(&r, "HTTP/1.1 200 OK\r\n")); /* the hints were not the answer */
  assert_false(r.headed);
  assert_true(header(&r, "\n"));
  assert_true(r.headed);
  assert_true(header(&r, "X-Trailer: after the body\r\n"));
  assert_true(r.headed);
  http_response_reset(&r);
  assert_false(r.headed);
}

/* Whatever the media type says: a consumer that answers {"status":"fail"} as text/plain means it. */
static void objects_are_offered_to_the_host(void **state) {
  static const struct {
    const char *body;
    bool object;
  } rows[] = {
      {"{\"status\":\"done\"}", true},
      {" \r\n\t{", true},
      {"\xef\xbb\xbf {}", true},
      {"", false},
      {" ", false},
      {"[{}]", false},
      {"<html>", false},
      {"\xef\xbb\xbf", false},
      {"ok", false},
      {"\"{\"", false},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_response r = {.limit = 1000};
    assert_true(http_response_append(&r, rows[i].body, strlen(rows[i].body)));
    if (http_response_is_object(&r) != rows[i].object)
      fail_msg("%s", rows[i].body);
    http_response_free(&r);
  }
}

static void retry_after_is_capped(void **state) {
  assert_int_equal(http_retry_after_ms(0, 1000), -1);
  assert_int_equal(http_retry_after_ms(-5, 1000), -1);
  assert_int_equal(http_retry_after_ms(7, 86400000), 7000);
  assert_int_equal(http_retry_after_ms(86400, 86400000), 86400000);
  assert_int_equal(http_retry_after_ms(86401, 86400000), 86400000);
  assert_int_equal(http_retry_after_ms(2, 1500), 1500);
  assert_int_equal(http_retry_after_ms(1, 1500), 1000);
  assert_int_equal(http_retry_after_ms(INT64_MAX, 86400000), 86400000);
  assert_int_equal(http_retry_after_ms(5, 0), -1);
}

static void text_is_cleaned(void **state) {
  static const struct {
    const char *in;
    size_t len;
    const char *out;
  } rows[] = {
      {"plain", 5, "plain"},
      {"", 0, ""},
      {"  a\r\n\r\n\tb \n", 11, "a b"},
      {"a\0b", 3, "a b"},
      {"\x1b[31mred\x1b[0m", 12, "[31mred [0m"},
      {"\x7f"
       "del",
       4, "del"},
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 14, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\xc2\x9b"
       "csi",
       5, "csi"},                      /* C1 control in UTF-8 */
      {"\xff\xfe", 2, "??"},           /* not UTF-8 */
      {"a\xc3", 2, "a?"},              /* cut in a character */
      {"\xc0\xaf", 2, "??"},           /* overlong */
      {"\xe0\x80\xaf", 3, "???"},      /* overlong */
      {"\xed\xa0\x80", 3, "???"},      /* surrogate */
      {"\xf4\x90\x80\x80", 4, "????"}, /* beyond U+10FFFF */
      {"\xf5\x80\x80\x80", 4, "????"},
      {"\x80", 1, "?"},
  };
  char out[64];
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    size_t len = http_text_clean(out, sizeof(out), rows[i].in, rows[i].len);
    if (strcmp(out, rows[i].out) != 0 || len != strlen(out))
      fail_msg("row %zu: \"%s\"", i, out);
  }
}

static void a_character_is_never_cut(void **state) {
  static const char text[] = "ab\xe2\x82\xac";
  char out[6];
  assert_int_equal(http_text_clean(out, 6, text, 5), 5);
  assert_int_equal(http_text_clean(out, 5, text, 5), 2);
  assert_string_equal(out, "ab");
  assert_int_equal(http_text_clean(out, 1, text, 5), 0);
  assert_string_equal(out, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_body_is_cut_at_the_cap),     cmocka_unit_test(a_body_of_exactly_the_cap_is_whole),
      cmocka_unit_test(a_large_buffer_is_given_back),   cmocka_unit_test(headers_are_counted),
      cmocka_unit_test(the_end_of_the_headers_is_seen), cmocka_unit_test(objects_are_offered_to_the_host),
      cmocka_unit_test(retry_after_is_capped),          cmocka_unit_test(text_is_cleaned),
      cmocka_unit_test(a_character_is_never_cut),
  };
  return cmocka_run_group_tests_name("http_response", tests, NULL, NULL);
}
