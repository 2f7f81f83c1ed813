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

/* Whatever the media type says: a consumer that answers {"status":"fail"} as text/plain means it, and in UTF-16, too.
 */
static void objects_are_offered_to_the_host(void **state) {
#define ROW(text) text, sizeof(text) - 1
  static const struct {
    const char *body;
    size_t len;
    enum http_body kind;
    const char *record; /* NULL = the body */
  } rows[] = {
      {ROW("{\"status\":\"done\"}"), HTTP_BODY_OBJECT, NULL},
      {ROW(" \r\n\t{"), HTTP_BODY_OBJECT, NULL},
      {ROW("\xef\xbb\xbf {}"), HTTP_BODY_OBJECT, NULL},
      {ROW("\xff\xfe{\0\"\0s\0t\0a\0t\0u\0s\0\"\0:\0\"\0f\0a\0i\0l\0\"\0}\0"), HTTP_BODY_OBJECT,
       "{\"status\":\"fail\","},
      {ROW("\xfe\xff\0{\0\"\0s\0t\0a\0t\0u\0s\0\"\0:\0\"\0f\0a\0i\0l\0\"\0}"), HTTP_BODY_OBJECT,
       "{\"status\":\"fail\","},
      {ROW("{\0\0\0'\0\0\0S\0\0\0t\0a\0t\0u\0s\0'\0:\0'\0O\0K\0'"), HTTP_BODY_OBJECT, "{\"status\":\"OK\","},
      {ROW("{\0\"\0s\0"), HTTP_BODY_OBJECT, NULL},
      {ROW(""), HTTP_BODY_OTHER, NULL},
      {ROW(" "), HTTP_BODY_OTHER, NULL},
      {ROW("\0\0\0"), HTTP_BODY_OTHER, NULL},
      {ROW("[{}]"), HTTP_BODY_OTHER, NULL},
      {ROW("<html>"), HTTP_BODY_OTHER, NULL},
      {ROW("<\0h\0"), HTTP_BODY_OTHER, NULL},
      {ROW("\xef\xbb\xbf"), HTTP_BODY_OTHER, NULL},
      {ROW("ok"), HTTP_BODY_OTHER, NULL},
      {ROW("\"{\""), HTTP_BODY_OTHER, NULL},
  };
#undef ROW
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_response r = {.limit = 1000};
    const char *record = rows[i].record ? rows[i].record : rows[i].body;
    assert_true(http_response_append(&r, rows[i].body, rows[i].len));
    if (http_response_body(&r) != rows[i].kind)
      fail_msg("row %zu", i);
    assert_memory_equal(r.body ? r.body : "", record, rows[i].record ? strlen(record) : rows[i].len);
    http_response_free(&r);
  }
}

/* A body of `pad` bytes with something behind them, in pieces of `piece` bytes, after a status line. */
static struct http_response long_answer(const char *line, size_t pad, const char *end, size_t piece) {
  struct http_response r = {.limit = 100};
  size_t len = 8 + pad + strlen(end);
  char *body = malloc(len + 1);
  assert_non_null(body);
  snprintf(body, len + 1, "{\"pad\":\"%0*d%s", (int)pad, 0, end);
  assert_true(http_response_header(&r, line, strlen(line)));
  for (size_t at = 0; at < len; at += piece)
    if (!http_response_append(&r, body + at, piece < len - at ? piece : len - at))
      break;
  free(body);
  return r;
}

/* Libraries that sort members write "status" last. What a consumer says behind the bytes that are kept is its word, and
 * is handed over; an endpoint that says nothing of the kind has an ordinary long answer, which is no failure: a task
 * that was done must not be done again. */
static void a_status_behind_the_cap_is_found(void **state) {
  static const struct {
    const char *line;
    size_t pad;
    const char *end;
    enum http_body kind;
    const char *first; /* of the record */
  } rows[] = {
      {"HTTP/1.1 200 OK\r\n", 500, "\",\"status\":\"fail\"}", HTTP_BODY_OBJECT, "{\"status\":\"fail\",\"pad\":\"00"},
      {"HTTP/2 202 \r\n", 85, "\",\"status\":\"fail\"}", HTTP_BODY_OBJECT, "{\"status\":\"fail\",\"pad\":\"00"},
      {"HTTP/1.1 200\r\n", 500, "\",\"Status\" : \"RETRY\"", HTTP_BODY_OBJECT, "{\"status\":\"RETRY\",\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 60, "\",\"status\":\"fail\",\"z\":\"zzzzzzzzzzzzzzzzzz\"}", HTTP_BODY_OBJECT,
       "{\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 500, "\",\"status\":\"shipped\"}", HTTP_BODY_OBJECT,
       "{\"status\":\"shipped\",\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 500, "\",\"status\":\"a b\"}", HTTP_BODY_OBJECT, "{\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 500, "\",\"orders\":[{\"status\":\"fail\"}]}", HTTP_BODY_OBJECT, "{\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 500, "\"}{\"status\":\"fail\"}", HTTP_BODY_OBJECT, "{\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 1400, "\",\"status\":\"fail\"}", HTTP_BODY_OBJECT, "{\"status\":\"fail\",\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 3000, "\",\"status\":\"fail\"}", HTTP_BODY_UNREAD, "{\"pad\":\"00"},
      {"HTTP/1.1 200 OK\r\n", 500, "", HTTP_BODY_UNREAD, "{\"pad\":\"00"}, /* the connection broke */
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (size_t piece = 1; piece <= 1000; piece = piece * 3 + 1) {
      struct http_response r = long_answer(rows[i].line, rows[i].pad, rows[i].end, piece);
      assert_true(r.cut && r.len == r.limit);
      if (http_response_body(&r) != rows[i].kind)
        fail_msg("row %zu, pieces of %zu", i, piece);
      assert_memory_equal(r.body, rows[i].first, strlen(rows[i].first));
      http_response_free(&r);
    }
}

/* Of any other long body no more is read than is kept. */
static void nothing_is_read_in_vain(void **state) {
  struct http_response r = long_answer("HTTP/1.1 500 Sorry\r\n", 500, "\",\"status\":\"fail\"}", 90);
  assert_true(r.cut && r.scanned == 0);
  http_response_free(&r);
  r = (struct http_response){.limit = 100};
  char page[200];
  memset(page, '<', sizeof(page));
  assert_true(header(&r, "HTTP/1.1 200 OK\r\n"));
  assert_false(http_response_append(&r, page, sizeof(page)));
  assert_int_equal(r.scanned, 0);
  assert_int_equal(http_response_body(&r), HTTP_BODY_OTHER);
  http_response_free(&r);
}

static void a_coding_is_noticed(void **state) {
  static const struct {
    const char *line, *body;
    enum http_body kind;
  } rows[] = {{"Content-Encoding: gzip\r\n", "\x1f\x8b", HTTP_BODY_UNREAD},
              {"content-encoding:br\r\n", "x", HTTP_BODY_UNREAD},
              {"Content-Encoding: gzip\r\n", "", HTTP_BODY_OTHER},
              {"Content-Encoding: identity\r\n", "ok", HTTP_BODY_OTHER},
              {"Content-Encoding: \r\n", "ok", HTTP_BODY_OTHER},
              {"Content-Encoding: UTF-8\r\n", "{}", HTTP_BODY_OBJECT}, /* some servers think that it goes here */
              {"Content-Encodings: gzip\r\n", "ok", HTTP_BODY_OTHER}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_response r = {.limit = 100};
    assert_true(header(&r, "HTTP/1.1 200 OK\r\n"));
    assert_true(header(&r, rows[i].line));
    assert_true(http_response_append(&r, rows[i].body, strlen(rows[i].body)));
    if (http_response_body(&r) != rows[i].kind)
      fail_msg("%s%s", rows[i].line, rows[i].body);
    http_response_reset(&r);
    assert_true(http_response_append(&r, "ok", 2));
    assert_int_equal(http_response_body(&r), HTTP_BODY_OTHER);
    http_response_free(&r);
  }
}

static void the_first_status_of_the_object_itself_counts(void **state) {
  static const struct {
    const char *body;
    enum http_scan_state state;
    const char *text;
  } rows[] = {
      {"{\"status\":\"fail\"", HTTP_SCAN_FOUND, "fail"},
      {"\xef\xbb\xbf {\"a\":[{\"status\":\"x\"},\"status\"],\"STATUS\" :\n\"Done\"}", HTTP_SCAN_FOUND, "Done"},
      {"{'status': 'retry'}", HTTP_SCAN_FOUND, "retry"},
      {"{'a': \"it's\", 'status': 'retry'}", HTTP_SCAN_FOUND, "retry"},
      {"{\"a\":\"\\\"status\\\":\\\"fail\\\"\\\\\",\"status\":\"done\"}", HTTP_SCAN_FOUND, "done"},
      {"{\"a\":\"}\",\"status\":\"done\"}", HTTP_SCAN_FOUND, "done"},
      {"{\"a\":\"b\" \"status\":\"done\"}", HTTP_SCAN_FOUND, "done"},
      {"{\"status\":200,\"status\":\"fail\"}", HTTP_SCAN_FOUND, "fail"},
      {"{\"status\":\"retry\",\"status\":\"fail\"}", HTTP_SCAN_FOUND, "retry"},
      {"{\"a\":\"status\",\"b\":\"fail\"}", HTTP_SCAN_NONE, NULL},
      {"{\"status\":{\"status\":\"fail\"}}", HTTP_SCAN_NONE, NULL},
      {"{\"status\":[\"fail\"]}", HTTP_SCAN_NONE, NULL},
      {"{\"statuses\":\"fail\",\"xstatus\":\"fail\"}", HTTP_SCAN_NONE, NULL},
      {"{\"status\":\"\"", HTTP_SCAN_NONE, NULL},
      {"{\"status\":\"failfailfailfail\"", HTTP_SCAN_NONE, NULL},
      {"{\"status\":\"fa\\u0069l\"", HTTP_SCAN_NONE, NULL},
      {"{}", HTTP_SCAN_NONE, NULL},
      {"{]", HTTP_SCAN_NONE, NULL},
      {"{\"status\":\"fai", HTTP_SCAN_GOES_ON, NULL},
      {"{\"status", HTTP_SCAN_GOES_ON, NULL},
      {"", HTTP_SCAN_GOES_ON, NULL},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_scan whole = {0}, pieces = {0};
    (void)http_scan_read(&whole, rows[i].body, strlen(rows[i].body));
    for (const char *at = rows[i].body; *at; at++)
      (void)http_scan_read(&pieces, at, 1);
    if (whole.state != rows[i].state || pieces.state != rows[i].state)
      fail_msg("%s: %d", rows[i].body, (int)whole.state);
    if (rows[i].text)
      assert_string_equal(whole.text, rows[i].text);
    if (rows[i].text)
      assert_string_equal(pieces.text, rows[i].text);
  }
}

/* "Done" may stand in front of a "fail" that was lost. */
static void an_object_that_breaks_off_is_noticed(void **state) {
  static const struct {
    const char *body;
    bool breaks_off;
  } rows[] = {
      {"", false},
      {"ok", false},
      {"[1", false},
      {"{}", false},
      {" {\"status\":\"done\"}\n", false},
      {"{\"status\":\"done\",\"result\":{\"a\":[1,\"}\"]}}", false},
      {"{\"status\":7}", false},
      {"{", true},
      {"{\"status\":\"fa", true},
      {"{\"status\":\"done\"", true},
      {"{\"result\":{\"a\":1}", true},
      {"{\"error\":\"}", true},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_response r = {.limit = 1000};
    assert_true(http_response_append(&r, rows[i].body, strlen(rows[i].body)));
    if (http_response_breaks_off(&r) != rows[i].breaks_off)
      fail_msg("%s", rows[i].body);
    http_response_free(&r);
  }
}

/* libcurl reads on to the end of the connection where a length is beyond its numbers, and calls that the whole body. */
static void a_length_that_no_body_has_is_noticed(void **state) {
  static const struct {
    const char *line;
    bool endless;
    const char *next; /* NULL = no other */
  } rows[] = {{"Content-Length: 2\r\n", false, "Content-Length: 2\r\n"},
              {"Content-Length: 2\r\n", true, "Content-Length: 40\r\n"},
              {"Content-Length: 40\r\n", true, "Content-Length: 2\r\n"},
              {"Content-Length: 2, 2\r\n", false, "content-length: 02\r\n"},
              {"Content-Length: 2, 40\r\n", true, NULL},
              {"Content-Length: 40 , 2\r\n", true, NULL},
              {"Content-Length: 2,\r\n", true, NULL},
              {"Content-Length: +2\r\n", true, NULL},
              {"Content-Length: -2\r\n", true, NULL},
              {"Content-Length: 2x\r\n", true, NULL},
              {"Content-Length: 2 2\r\n", true, NULL},
              {"Content-Length: 0x2\r\n", true, NULL},
              {"Content-Length:\r\n", true, NULL},
              {"Content-Length: 0\r\n", false, NULL},
              {"Content-Length:\t2 \n", false, NULL},
              {"Content-Length: 999999999999999999\r\n", false, NULL},
              {"Content-Length: 1000000000000000000\r\n", true, NULL},
              {"Content-Length: 18446744073709551615\r\n", true, NULL},
              {"content-length:99999999999999999999999\r\n", true, NULL},
              {"Content-Length: 00000000000000000000000000002\r\n", false, NULL},
              {"Content-Length: 2\r\n", false, NULL},
              {"X-Length: 18446744073709551615\r\n", false, NULL}};
  struct http_response r = {.limit = 1};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    assert_true(header(&r, "HTTP/1.1 200 OK\r\n"));
    assert_true(header(&r, rows[i].line));
    assert_true(!rows[i].next || header(&r, rows[i].next));
    if (r.endless != rows[i].endless || (r.endless && !r.doubtful))
      fail_msg("%s %s", rows[i].line, rows[i].next ? rows[i].next : "");
  }
}

static void retry_after_is_capped(void **state) {
  struct http_response response = {0};
  assert_int_equal(http_retry_after_ms(&response, 0, 1000), -1);
  assert_int_equal(http_retry_after_ms(&response, -5, 1000), -1);
  assert_int_equal(http_retry_after_ms(&response, 7, 86400000), 7000);
  assert_int_equal(http_retry_after_ms(&response, 86400, 86400000), 86400000);
  assert_int_equal(http_retry_after_ms(&response, 86401, 86400000), 86400000);
  assert_int_equal(http_retry_after_ms(&response, 2, 1500), 1500);
  assert_int_equal(http_retry_after_ms(&response, 1, 1500), 1000);
  assert_int_equal(http_retry_after_ms(&response, INT64_MAX, 86400000), 86400000);
  assert_int_equal(http_retry_after_ms(&response, 5, 0), -1);
  /* More digits than libcurl reads: very late, and not at once. */
  static const struct {
    const char *line;
    int64_t ms;
  } rows[] = {{"Retry-After: 99999999999999999999\r\n", 86400000}, {"retry-after:\t9999999999999999999\r\n", 86400000},
              {"Retry-After: 00000000000000000000\r\n", -1},       {"Retry-After: 0\r\n", -1},
              {"Retry-Later: 99999999999999999999\r\n", -1},       {"Retry-After: soon\r\n", -1}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    assert_true(http_response_header(&response, "HTTP/1.1 503 Later\r\n", 20));
    assert_true(http_response_header(&response, rows[i].line, strlen(rows[i].line)));
    assert_int_equal(http_retry_after_ms(&response, 0, 86400000), rows[i].ms);
  }
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
      cmocka_unit_test(the_body_is_cut_at_the_cap),
      cmocka_unit_test(a_body_of_exactly_the_cap_is_whole),
      cmocka_unit_test(a_large_buffer_is_given_back),
      cmocka_unit_test(headers_are_counted),
      cmocka_unit_test(the_end_of_the_headers_is_seen),
      cmocka_unit_test(objects_are_offered_to_the_host),
      cmocka_unit_test(a_status_behind_the_cap_is_found),
      cmocka_unit_test(nothing_is_read_in_vain),
      cmocka_unit_test(a_coding_is_noticed),
      cmocka_unit_test(the_first_status_of_the_object_itself_counts),
      cmocka_unit_test(an_object_that_breaks_off_is_noticed),
      cmocka_unit_test(a_length_that_no_body_has_is_noticed),
      cmocka_unit_test(retry_after_is_capped),
      cmocka_unit_test(text_is_cleaned),
      cmocka_unit_test(a_character_is_never_cut),
  };
  return cmocka_run_group_tests_name("http_response", tests, NULL, NULL);
}
