/* SPDX-License-Identifier: MIT
 *
 * From a task to a request in plugins/http: the header lines and the URL, and every injection that must not get
 * through.
 */
#include "http_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "http_url.h"

enum { NOW = 1767323045 }; /* 2026-01-02T03:04:05Z */

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

/* Expands {task_key} only, percent-encoding nothing: what is tested here must not rest on the host's escaping. */
static size_t expand(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *out,
                     size_t cap) {
  const char *at = strstr(tmpl, "{task_key}");
  assert_int_equal(escape, DUEBOX_ESCAPE_URL);
  if (!at)
    return (size_t)snprintf(out, cap, "%s", tmpl);
  return (size_t)snprintf(out, cap, "%.*s%.*s%s", (int)(at - tmpl), tmpl, (int)task->key.len, task->key.data, at + 10);
}
static const struct duebox_host host = {.struct_size = sizeof(host), .expand = expand};

static struct duebox_task a_task(void) {
  return (struct duebox_task){.struct_size = sizeof(struct duebox_task),
                              .message_id = "0194-abcd",
                              .route = "crm.push",
                              .attempt = 2,
                              .due_us = INT64_C(1767323045123456),
                              .key = {"order-17", 8},
                              .payload = {"{\"order\":17}", 12},
                              .checkpoint = {"", 0}};
}

static struct http_route a_route(void) {
  return (struct http_route){
      .url = "https://crm.example/hooks/x", .content_type = "application/json", .callback = "reply_to"};
}

static const char *find(const struct http_request *request, const char *name) {
  const char *found = NULL;
  size_t len = strlen(name);
  for (const char *line = http_request_next_header(request, NULL); line;
       line = http_request_next_header(request, line)) {
    if (strncasecmp(line, name, len) != 0 || (line[len] != ':' && line[len] != ';'))
      continue;
    assert_null(found); /* no header twice */
    found = line;
  }
  return found;
}

static void check_line(const struct http_request *request, const char *name, const char *line) {
  const char *found = find(request, name);
  if (!found)
    fail_msg("%s is missing", name);
  assert_string_equal(found, line);
}

static void build(struct http_request *request, const struct duebox_task *task, const struct http_route *route) {
  struct http_problem problem = {0};
  if (!http_request_build(request, task, route, &host, NOW, &problem))
    fail_msg("refused: %s", problem.text);
}

static struct http_problem refuse(const struct duebox_task *task, const struct http_route *route) {
  struct http_request request = {0};
  struct http_problem problem = {0};
  if (http_request_build(&request, task, route, &host, NOW, &problem))
    fail_msg("a request was built");
  http_request_free(&request);
  return problem;
}

static void a_revision_has_a_header(void **state) {
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  task.struct_size = sizeof task;
  build(&request, &task, &route);
  assert_null(find(&request, "duebox-revision"));
  http_request_free(&request);
  task.revision = 12;
  request = (struct http_request){0};
  build(&request, &task, &route);
  check_line(&request, "duebox-revision", "duebox-revision: 12");
  http_request_free(&request);
}

static void the_plain_request(void **state) {
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  build(&request, &task, &route);
  assert_string_equal(http_request_url(&request), "https://crm.example/hooks/x");
  check_line(&request, "webhook-id", "webhook-id: 0194-abcd");
  check_line(&request, "webhook-timestamp", "webhook-timestamp: 1767323045");
  check_line(&request, "duebox-attempt", "duebox-attempt: 2");
  check_line(&request, "duebox-route", "duebox-route: crm.push");
  check_line(&request, "duebox-due", "duebox-due: 2026-01-02T03:04:05.123456Z");
  check_line(&request, "content-type", "Content-Type: application/json");
  assert_int_equal(request.header_count, 6);
  assert_null(find(&request, "webhook-signature"));
  assert_null(find(&request, "duebox-checkpoint"));
  assert_null(find(&request, "duebox-callback"));
  http_request_free(&request);
}

static void a_request_is_used_again(void **state) {
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  task.checkpoint = text("page 7");
  build(&request, &task, &route);
  assert_int_equal(request.header_count, 7);
  char *before = request.text;
  task.checkpoint = text("");
  task.message_id = "second";
  build(&request, &task, &route);
  assert_ptr_equal(request.text, before); /* no allocation */
  assert_int_equal(request.header_count, 6);
  check_line(&request, "webhook-id", "webhook-id: second");
  http_request_free(&request);
}

static void the_signature_covers_id_time_and_body(void **state) {
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  struct http_problem problem;
  task.message_id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
  task.payload = text("{\"test\": 2432232314}");
  route.secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  route.previous_secret = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
  assert_true(http_request_build(&request, &task, &route, &host, 1614265330, &problem));
  check_line(&request, "webhook-timestamp", "webhook-timestamp: 1614265330");
  check_line(&request, "webhook-signature",
             "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= "
             "v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw==");
  http_request_free(&request);
}

static void a_signed_id_holds_no_dot(void **state) {
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  task.message_id = "order.17";
  build(&request, &task, &route); /* without a signature it may */
  http_request_free(&request);
  route.secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  struct http_problem problem = refuse(&task, &route);
  assert_int_equal(problem.cls, DUEBOX_REJECTED);
  assert_string_equal(problem.error_class, "http.message_id");
  assert_non_null(strstr(problem.text, "order.17"));
}

static void checkpoints_pass_and_are_reversible(void **state) {
  static const struct {
    const char *checkpoint;
    size_t len;
    const char *line;
  } rows[] = {
      {"page 7", 6, "duebox-checkpoint: page 7"},
      {"{\"a\": 1}", 8, "duebox-checkpoint: {\"a\": 1}"},
      {"100%", 4, "duebox-checkpoint: 100%25"},
      {"%31", 3, "duebox-checkpoint: %2531"},
      {"a\r\nx-evil: 1", 12, "duebox-checkpoint: a%0D%0Ax-evil: 1"},
      {"a\0b\tc\x7f", 6, "duebox-checkpoint: a%00b%09c%7F"},
      {" x ", 3, "duebox-checkpoint: %20x%20"},
      {" ", 1, "duebox-checkpoint: %20"},
      {"caf\xc3\xa9", 5, "duebox-checkpoint: caf%C3%A9"},
      {"\xff", 1, "duebox-checkpoint: %FF"},
  };
  struct http_route route = a_route();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_request request = {0};
    struct duebox_task task = a_task();
    task.checkpoint = (struct duebox_bytes){rows[i].checkpoint, rows[i].len};
    build(&request, &task, &route);
    check_line(&request, "duebox-checkpoint", rows[i].line);
    http_request_free(&request);
  }
}

static void the_callback_is_announced(void **state) {
  static const char reply_to[] = "https://duebox.example/api/v1/results?sig=1";
  static const struct {
    const char *option, *reply_to, *line;
  } rows[] = {
      {"reply_to", reply_to, "duebox-callback: https://duebox.example/api/v1/results?sig=1"},
      {"true", reply_to, "duebox-callback: https://duebox.example/api/v1/results?sig=1"},
      {NULL, reply_to, "duebox-callback: https://duebox.example/api/v1/results?sig=1"},
      {"reply_to", NULL, NULL},
      {"none", reply_to, NULL},
      {"false", reply_to, NULL},
      {"https://in.example/r/{task_key}", NULL, "duebox-callback: https://in.example/r/order-17"},
      {"https://in.example/r/{task_key}", reply_to, "duebox-callback: https://in.example/r/order-17"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_request request = {0};
    struct duebox_task task = a_task();
    struct http_route route = a_route();
    route.callback = rows[i].option;
    task.reply_to = rows[i].reply_to;
    request.callback = !rows[i].line; /* of the last one that it was used for */
    build(&request, &task, &route);
    assert_int_equal(request.callback, rows[i].line != NULL);
    if (rows[i].line)
      check_line(&request, "duebox-callback", rows[i].line);
    else
      assert_null(find(&request, "duebox-callback"));
    http_request_free(&request);
  }
}

static void application_headers_are_copied(void **state) {
  char longest[5000];
  memset(longest, 'y', sizeof(longest));
  const struct duebox_header headers[] = {
      {"traceparent", text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
      {"X-Odd.name_1~|", text("a: b; \"c\", \\d")},
      {"x-utf8", text("caf\xc3\xa9")},
      {"x-tab", text("a\tb")},
      {"x-empty", text("")},
      {"x-blank", text("  ")},
      {"content-type", text("text/xml; charset=utf-8")},
      {"User-Agent", text("shop/2")},
      {"x-long", {longest, sizeof(longest)}},
  };
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  task.headers = headers;
  task.header_count = sizeof(headers) / sizeof(headers[0]);
  build(&request, &task, &route);
  check_line(&request, "traceparent", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  check_line(&request, "X-Odd.name_1~|", "X-Odd.name_1~|: a: b; \"c\", \\d");
  check_line(&request, "x-utf8", "x-utf8: caf\xc3\xa9");
  check_line(&request, "x-tab", "x-tab: a\tb");
  check_line(&request, "x-empty", "x-empty;");
  check_line(&request, "x-blank", "x-blank;");
  check_line(&request, "content-type", "content-type: text/xml; charset=utf-8"); /* the route's is only the default */
  check_line(&request, "user-agent", "User-Agent: shop/2");
  assert_int_equal(strlen(find(&request, "x-long")), 8 + 5000);
  http_request_free(&request);
}

static void reserved_headers_are_not_copied(void **state) {
  static const char *const names[] = {"Host",
                                      "host",
                                      "Content-Length",
                                      "content-length",
                                      "Transfer-Encoding",
                                      "Connection",
                                      "Keep-Alive",
                                      "TE",
                                      "Trailer",
                                      "Upgrade",
                                      "Expect",
                                      "HTTP2-Settings",
                                      "Accept-Encoding",
                                      "Proxy-Authorization",
                                      "Proxy-Connection",
                                      "webhook-id",
                                      "Webhook-Signature",
                                      "WEBHOOK-TIMESTAMP",
                                      "webhook-other",
                                      "webhook_id", /* the same to WSGI, CGI and PHP */
                                      "Duebox_Id",
                                      "duebox_attempt",
                                      "webhook.id", /* to lighttpd, and in PHP */
                                      "duebox.attempt",
                                      "Duebox~Attempt",
                                      "Proxy", /* HTTP_PROXY there, which their HTTP clients obey */
                                      "Content_Length",
                                      "duebox-attempt",
                                      "Duebox-Route",
                                      "duebox-anything"};
  enum { COUNT = sizeof(names) / sizeof(names[0]) };
  struct duebox_header headers[COUNT];
  for (size_t i = 0; i < COUNT; i++)
    headers[i] = (struct duebox_header){names[i], text("forged")};
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  task.headers = headers;
  task.header_count = COUNT;
  build(&request, &task, &route);
  assert_int_equal(request.header_count, 6);
  for (const char *line = http_request_next_header(&request, NULL); line;
       line = http_request_next_header(&request, line))
    assert_null(strstr(line, "forged"));
  http_request_free(&request);
}

static void the_routes_headers_win(void **state) {
  static const struct duebox_pair fixed[] = {{"X-Api-Key", "operator"}, {"x-extra", "1"}};
  static const struct duebox_pair secret[] = {{"X-Secret", "operator's"}};
  const struct duebox_header headers[] = {{"x-api-key", text("forged")},       {"AUTHORIZATION", text("forged")},
                                          {"Idempotency-Key", text("forged")}, {"x-secret", text("forged")},
                                          {"X.Api_Key", text("forged")},       {"x-other", text("2")}};
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  route.headers = (struct duebox_map){fixed, 2};
  route.secret_headers = (struct duebox_map){secret, 1};
  route.authorization = "Bearer t0ken";
  route.idempotency_key = true;
  task.message_id = "say \"hi\" \\";
  task.headers = headers;
  task.header_count = 6;
  build(&request, &task, &route);
  assert_null(find(&request, "X.Api_Key"));
  check_line(&request, "x-secret", "X-Secret: operator's");
  check_line(&request, "x-api-key", "X-Api-Key: operator");
  check_line(&request, "x-extra", "x-extra: 1");
  check_line(&request, "authorization", "Authorization: Bearer t0ken");
  check_line(&request, "idempotency-key", "Idempotency-Key: \"say \\\"hi\\\" \\\\\"");
  check_line(&request, "x-other", "x-other: 2");
  http_request_free(&request);
}

static void impossible_headers_are_refused_by_name(void **state) {
  static const struct {
    const char *name, *value;
    size_t len;
    const char *text; /* in the problem's text */
  } rows[] = {
      {"", "v", 1, "\"\""},
      {"x y", "v", 1, "x y"},
      {"x:y", "v", 1, "x:y"},
      {"x\r\ny", "v", 1, "x y"},
      {"x\x1b[31m", "v", 1, "x [31m"},
      {"caf\xc3\xa9", "v", 1, "caf\xc3\xa9"},
      {"(x)", "v", 1, "(x)"},
      {"Host ", "v", 1, "Host"},
      {"x-value", "a\r\nx-evil: 1", 12, "x-value"},
      {"x-value", "a\nb", 3, "x-value"},
      {"x-value", "a\0b", 3, "x-value"},
      {"x-value", "\x1b[2J", 4, "x-value"},
      {"x-value", "\x7f", 1, "x-value"},
      {"host", "a\nb", 3, "host"}, /* would not be copied, but says that somebody tries */
  };
  struct http_route route = a_route();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const struct duebox_header header = {rows[i].name, {rows[i].value, rows[i].len}};
    struct duebox_task task = a_task();
    task.headers = &header;
    task.header_count = 1;
    struct http_problem problem = refuse(&task, &route);
    assert_int_equal(problem.cls, DUEBOX_REJECTED);
    assert_string_equal(problem.error_class, "http.header");
    if (!strstr(problem.text, rows[i].text))
      fail_msg("row %zu: %s", i, problem.text);
  }
}

/* A request that libcurl has no room for is a failure of its own task, whatever made it so large. (libcurl is "out of
 * memory" then, which suspended every route of the instance.) */
static void one_that_is_too_large_costs_its_own_task(void **state) {
  enum { LARGE = 1 << 20 };
  static char large[LARGE];
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  memset(large, 'x', LARGE);
  task.checkpoint = (struct duebox_bytes){large, LARGE};
  struct http_problem problem = refuse(&task, &route);
  assert_int_equal(problem.cls, DUEBOX_REJECTED);
  assert_string_equal(problem.error_class, "http.headers_too_large");
  /* What the plugin says that it takes is sent, however it is written and whatever comes with it. */
  static char headers[HTTP_REQUEST_HEADERS_MAX - 1024];
  const struct duebox_header header = {"x-large", {memset(headers, 'x', sizeof headers), sizeof headers}};
  memset(large, '%', LARGE);
  task.headers = &header;
  task.header_count = 1;
  task.checkpoint.len = HTTP_REQUEST_CHECKPOINT_MAX;
  struct http_request request = {0};
  build(&request, &task, &route);
  assert_true(request.len + HTTP_URL_MAX < LARGE);
  http_request_free(&request);
  task.checkpoint.len++;
  assert_string_equal(refuse(&task, &route).error_class, "http.headers_too_large");
}

static void our_own_headers_cannot_be_injected(void **state) {
  struct http_route route = a_route();
  struct duebox_task task = a_task();
  task.message_id = "a\r\nx-evil: 1";
  assert_string_equal(refuse(&task, &route).error_class, "http.header");
  task = a_task();
  task.route = "a\nb";
  assert_string_equal(refuse(&task, &route).error_class, "http.header");
  task = a_task();
  task.reply_to = "https://x/\r\nx-evil: 1";
  assert_string_equal(refuse(&task, &route).error_class, "http.header");
}

static void a_key_cannot_leave_the_folder(void **state) {
  static const struct {
    const char *url, *key;
    bool refused;
  } rows[] = {
      {"https://crm.example/hooks/{task_key}", "..", true},
      {"https://crm.example/hooks/{task_key}", ".", true},
      {"https://crm.example/hooks/{task_key}/in", "..", true},
      {"https://crm.example/hooks/{task_key}", "...", false},
      {"https://crm.example/hooks/{task_key}", "a..b", false},
      {"https://crm.example/hooks/v{task_key}", "..", false},
      {"https://crm.example/hooks?key={task_key}", "..", false},
      {"https://crm.example/hooks?key=/{task_key}/", "..", false},
      {"https://crm.example/hooks/{task_key}", "", false},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_request request = {0};
    struct http_problem problem = {0};
    struct duebox_task task = a_task();
    struct http_route route = a_route();
    route.url = rows[i].url;
    task.key = text(rows[i].key);
    if (http_request_build(&request, &task, &route, &host, NOW, &problem) == rows[i].refused)
      fail_msg("%s with %s", rows[i].url, rows[i].key);
    if (rows[i].refused)
      assert_string_equal(problem.error_class, "http.url");
    http_request_free(&request);
  }
}

static void a_url_has_an_end(void **state) {
  char key[HTTP_URL_MAX];
  struct http_request request = {0};
  struct duebox_task task = a_task();
  struct http_route route = a_route();
  memset(key, 'k', sizeof(key));
  route.url = "https://crm.example/{task_key}";
  task.key = (struct duebox_bytes){key, HTTP_URL_MAX - 20};
  build(&request, &task, &route);
  assert_int_equal(strlen(http_request_url(&request)), HTTP_URL_MAX);
  http_request_free(&request);
  task.key.len++;
  struct http_problem problem = refuse(&task, &route);
  assert_int_equal(problem.cls, DUEBOX_REJECTED);
  assert_string_equal(problem.error_class, "http.url");
}

static void times_are_rfc3339(void **state) {
  static const struct {
    int64_t us;
    const char *text;
  } rows[] = {
      {0, "1970-01-01T00:00:00.000000Z"},
      {1, "1970-01-01T00:00:00.000001Z"},
      {-1, "1969-12-31T23:59:59.999999Z"},
      {INT64_C(1767323045123456), "2026-01-02T03:04:05.123456Z"},
      {INT64_C(2147483648000000), "2038-01-19T03:14:08.000000Z"},
      {INT64_C(1709164800000000), "2024-02-29T00:00:00.000000Z"},
      {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z"},
  };
  char out[HTTP_TIME_CAP];
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    http_format_time(rows[i].us, out);
    assert_string_equal(out, rows[i].text);
  }
}

static void urls_are_split(void **state) {
  struct http_url url;
  assert_true(http_url_split("HTTPS://Crm.example:8443/a?b", &url));
  assert_false(url.plain);
  assert_int_equal(url.authority_len, 16);
  assert_string_equal(url.rest, "/a?b");
  assert_true(http_url_split("http://[::1]:80", &url));
  assert_true(url.plain);
  assert_int_equal(url.authority_len, 8);
  assert_string_equal(url.rest, "");
  assert_true(http_url_split("https://a\\@b/", &url)); /* a backslash ends the host, as browsers have it */
  assert_int_equal(url.authority_len, 1);
  static const char *const bad[] = {"",           "crm.example", "//crm.example", "ftp://crm.example", "https:/x",
                                    "https:///x", "https://",    "http://?x",     " https://x"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    assert_false(http_url_split(bad[i], &url));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_revision_has_a_header),
      cmocka_unit_test(the_plain_request),
      cmocka_unit_test(a_request_is_used_again),
      cmocka_unit_test(the_signature_covers_id_time_and_body),
      cmocka_unit_test(a_signed_id_holds_no_dot),
      cmocka_unit_test(checkpoints_pass_and_are_reversible),
      cmocka_unit_test(the_callback_is_announced),
      cmocka_unit_test(application_headers_are_copied),
      cmocka_unit_test(reserved_headers_are_not_copied),
      cmocka_unit_test(the_routes_headers_win),
      cmocka_unit_test(impossible_headers_are_refused_by_name),
      cmocka_unit_test(our_own_headers_cannot_be_injected),
      cmocka_unit_test(one_that_is_too_large_costs_its_own_task),
      cmocka_unit_test(a_key_cannot_leave_the_folder),
      cmocka_unit_test(a_url_has_an_end),
      cmocka_unit_test(times_are_rfc3339),
      cmocka_unit_test(urls_are_split),
  };
  return cmocka_run_group_tests_name("http_request", tests, NULL, NULL);
}
