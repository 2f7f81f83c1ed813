/* SPDX-License-Identifier: MIT
 *
 * The two tables of plugins/http: every status and every libcurl code that has a meaning, row by row.
 */
#include "http_outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct row {
  long status;
  enum duebox_outcome_class cls;
  enum duebox_answer answer;
  const char *error_class;
};

static void check_statuses(const struct http_route *route, bool awaited, const struct row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct http_verdict v = http_verdict_of_status(rows[i].status, route, awaited);
    if (v.cls != rows[i].cls || v.answer != rows[i].answer || strcmp(v.error_class, rows[i].error_class) != 0)
      fail_msg("%ld: class %d, answer %d, \"%s\"", rows[i].status, (int)v.cls, (int)v.answer, v.error_class);
  }
}
#define CHECK(route, rows) check_statuses(route, true, rows, sizeof(rows) / sizeof((rows)[0]))

/* What speaks of the URL counts for all tasks that go there; what may be the task's own fault is the task's alone. */
static void scopes_of_statuses(void **state) {
  static const struct http_route route;
  static const long of_target[] = {401, 403, 404, 405, 407, 408, 410, 429, 500, 502, 503, 504, 599};
  static const long of_task[] = {300, 302, 400, 413, 415, 422, 499};
  for (size_t i = 0; i < sizeof(of_target) / sizeof(of_target[0]); i++)
    if (http_verdict_of_status(of_target[i], &route, true).scope != DUEBOX_SCOPE_TARGET)
      fail_msg("%ld is not the target's", of_target[i]);
  for (size_t i = 0; i < sizeof(of_task) / sizeof(of_task[0]); i++)
    if (http_verdict_of_status(of_task[i], &route, true).scope != DUEBOX_SCOPE_ROUTE)
      fail_msg("%ld is not the task's", of_task[i]);
}

static void statuses(void **state) {
  static const struct http_route route;
  static const struct row rows[] = {
      {0, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
      {100, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
      {101, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
      {199, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
      {200, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},
      {201, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},
      {202, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, ""},
      {203, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},
      {204, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},
      {299, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},
      {300, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {301, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {302, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {304, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {307, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {308, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {399, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {400, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.400"},
      {401, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.401"},
      {403, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.403"},
      {404, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.404"},
      {408, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.408"},
      {409, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, ""},
      {410, DUEBOX_GONE, DUEBOX_ANSWER_NONE, "http.410"},
      {413, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.413"},
      {422, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.422"},
      {425, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, ""},
      {429, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.429"},
      {499, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.499"},
      {500, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.500"},
      {502, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.502"},
      {503, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.503"},
      {504, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.504"},
      {599, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.599"},
      {600, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
      {999, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
      {1000, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
      {-1, DUEBOX_UNKNOWN, DUEBOX_ANSWER_NONE, "http.protocol"},
  };
  CHECK(&route, rows);
}

#define LIST(...)                                                                                                      \
  { .items = (const char *const[]){__VA_ARGS__}, .count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) }

static void a_route_changes_the_table(void **state) {
  const struct http_route route = {.done_on = LIST("404", "302"),
                                   .later_on = LIST("201"),
                                   .retry_on = LIST("409", "410", "204"),
                                   .reject_on = LIST("400", "4xx", "501")};
  static const struct row rows[] = {
      {200, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},        {201, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, ""},
      {202, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, ""},       {204, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.204"},
      {302, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},        {303, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"},
      {400, DUEBOX_REJECTED, DUEBOX_ANSWER_NONE, "http.400"}, {404, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},
      {409, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.409"},    {410, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.410"},
      {422, DUEBOX_REJECTED, DUEBOX_ANSWER_NONE, "http.422"}, {429, DUEBOX_REJECTED, DUEBOX_ANSWER_NONE, "http.429"},
      {500, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.500"},    {501, DUEBOX_REJECTED, DUEBOX_ANSWER_NONE, "http.501"},
  };
  CHECK(&route, rows);
}

/* A task would wait for nothing, and fail for having been taken. */
static void nothing_is_waited_for_that_cannot_come(void **state) {
  static const struct http_route route;
  static const struct row rows[] = {
      {200, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},     {202, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, ""},
      {409, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.409"}, {425, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.425"},
      {503, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.503"},
  };
  check_statuses(&route, false, rows, sizeof(rows) / sizeof(rows[0]));
  const struct http_route told = {.later_on = LIST("202", "409")}; /* by the operator, who knows of a way */
  static const struct row later[] = {{202, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, ""},
                                     {409, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, ""}};
  check_statuses(&told, false, later, sizeof(later) / sizeof(later[0]));
}

static void a_status_item_is_a_number_or_a_class(void **state) {
  static const char *const good[] = {"200", "299", "404", "599", "2xx", "3xx", "4xx", "5xx"};
  static const char *const bad[] = {"",    "4",   "40",  "4000", "199", "600", "1xx",
                                    "6xx", "x04", "40x", "4x4",  "4XX", "+04", "4 4"};
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
    assert_true(http_status_item_valid(good[i]));
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    if (http_status_item_valid(bad[i]))
      fail_msg("\"%s\" was accepted", bad[i]);
}

static void codes(void **state) {
  static const struct {
    CURLcode code;
    enum duebox_scope scope;
    const char *error_class;
  } rows[] = {
      {CURLE_COULDNT_RESOLVE_HOST, DUEBOX_SCOPE_ROUTE, "http.dns"},
      {CURLE_COULDNT_RESOLVE_PROXY, DUEBOX_SCOPE_INSTANCE, "http.proxy"},
      {CURLE_PROXY, DUEBOX_SCOPE_ROUTE, "http.proxy"},
      {CURLE_COULDNT_CONNECT, DUEBOX_SCOPE_ROUTE, "http.connect"},
      {CURLE_OPERATION_TIMEDOUT, DUEBOX_SCOPE_ROUTE, "http.timeout"},
      {CURLE_SSL_CONNECT_ERROR, DUEBOX_SCOPE_ROUTE, "http.tls"},
      {CURLE_PEER_FAILED_VERIFICATION, DUEBOX_SCOPE_ROUTE, "http.tls"},
      {CURLE_SSL_ISSUER_ERROR, DUEBOX_SCOPE_ROUTE, "http.tls"},
      {CURLE_SSL_INVALIDCERTSTATUS, DUEBOX_SCOPE_ROUTE, "http.tls"},
      {CURLE_SSL_CERTPROBLEM, DUEBOX_SCOPE_INSTANCE, "http.tls"},
      {CURLE_SSL_CACERT_BADFILE, DUEBOX_SCOPE_INSTANCE, "http.tls"},
      {CURLE_SSL_CIPHER, DUEBOX_SCOPE_INSTANCE, "http.tls"},
      {CURLE_SSL_CLIENTCERT, DUEBOX_SCOPE_ROUTE, "http.tls"},
      {CURLE_GOT_NOTHING, DUEBOX_SCOPE_ROUTE, "http.no_response"},
      {CURLE_ABORTED_BY_CALLBACK, DUEBOX_SCOPE_ROUTE, "http.no_response"},
      {CURLE_SEND_ERROR, DUEBOX_SCOPE_ROUTE, "http.send"},
      {CURLE_RECV_ERROR, DUEBOX_SCOPE_ROUTE, "http.reset"},
      {CURLE_PARTIAL_FILE, DUEBOX_SCOPE_ROUTE, "http.partial"},
      {CURLE_WRITE_ERROR, DUEBOX_SCOPE_ROUTE, "http.memory"},
      {CURLE_OUT_OF_MEMORY, DUEBOX_SCOPE_INSTANCE, "http.memory"},
      {CURLE_WEIRD_SERVER_REPLY, DUEBOX_SCOPE_ROUTE, "http.protocol"},
      {CURLE_BAD_FUNCTION_ARGUMENT, DUEBOX_SCOPE_ROUTE, "http.protocol"},
      {CURLE_HTTP2, DUEBOX_SCOPE_ROUTE, "http.protocol"},
      {CURLE_HTTP2_STREAM, DUEBOX_SCOPE_ROUTE, "http.protocol"},
      {CURLE_BAD_CONTENT_ENCODING, DUEBOX_SCOPE_ROUTE, "http.protocol"},
      {CURLE_FTP_WEIRD_PASS_REPLY, DUEBOX_SCOPE_ROUTE, "http.curl"}, /* any other */
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_verdict before = http_verdict_of_code(rows[i].code, false, false);
    struct http_verdict after = http_verdict_of_code(rows[i].code, true, false);
    if (before.cls != DUEBOX_UNAVAILABLE || after.cls != DUEBOX_UNKNOWN || before.scope != rows[i].scope ||
        strcmp(before.error_class, rows[i].error_class) != 0 || strcmp(after.error_class, rows[i].error_class) != 0)
      fail_msg("code %d: class %d or %d, scope %d, \"%s\"", (int)rows[i].code, (int)before.cls, (int)after.cls,
               (int)before.scope, before.error_class);
  }
}

static void an_impossible_url_is_the_tasks_fault_unless_sent(void **state) {
  struct http_verdict v = http_verdict_of_code(CURLE_URL_MALFORMAT, false, false);
  assert_int_equal(v.cls, DUEBOX_REJECTED);
  assert_string_equal(v.error_class, "http.url");
  v = http_verdict_of_code(CURLE_UNSUPPORTED_PROTOCOL, false, false);
  assert_int_equal(v.cls, DUEBOX_REJECTED);
  v = http_verdict_of_code(CURLE_UNSUPPORTED_PROTOCOL, true, false); /* HTTP/0.9: garbage came back */
  assert_int_equal(v.cls, DUEBOX_UNKNOWN);
  assert_string_equal(v.error_class, "http.protocol");
}

static void a_dead_proxy_concerns_every_route(void **state) {
  assert_int_equal(http_verdict_of_code(CURLE_COULDNT_CONNECT, false, true).scope, DUEBOX_SCOPE_INSTANCE);
  assert_int_equal(http_verdict_of_code(CURLE_COULDNT_CONNECT, false, false).scope, DUEBOX_SCOPE_ROUTE);
  assert_int_equal(http_verdict_of_code(CURLE_SSL_CONNECT_ERROR, false, true).scope, DUEBOX_SCOPE_ROUTE);
}

/* A SOCKS proxy that cannot reach one endpoint, for whatever reason, reaches others. */
static void a_socks_proxy_speaks_of_one_endpoint_unless_it_lets_nobody_in(void **state) {
  static const CURLproxycode of_all[] = {CURLPX_NO_AUTH, CURLPX_USER_REJECTED, CURLPX_BAD_VERSION};
  static const CURLproxycode of_one[] = {CURLPX_REPLY_GENERAL_SERVER_FAILURE,
                                         CURLPX_REPLY_NOT_ALLOWED,
                                         CURLPX_REPLY_NETWORK_UNREACHABLE,
                                         CURLPX_REPLY_HOST_UNREACHABLE,
                                         CURLPX_REPLY_CONNECTION_REFUSED,
                                         CURLPX_REPLY_TTL_EXPIRED,
                                         CURLPX_REQUEST_FAILED,
                                         CURLPX_RECV_REQACK,
                                         CURLPX_CLOSED,
                                         CURLPX_OK};
  for (size_t i = 0; i < sizeof(of_all) / sizeof(of_all[0]); i++)
    assert_int_equal(http_scope_of_socks(of_all[i]), DUEBOX_SCOPE_INSTANCE);
  for (size_t i = 0; i < sizeof(of_one) / sizeof(of_one[0]); i++)
    assert_int_equal(http_scope_of_socks(of_one[i]), DUEBOX_SCOPE_ROUTE);
}

static void a_proxy_that_refuses_burns_no_attempt(void **state) {
  static const long refusals[] = {403, 407, 502};
  for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
    struct http_verdict v = http_verdict_of_proxy(refusals[i]);
    assert_int_equal(v.cls, DUEBOX_UNAVAILABLE);
    assert_int_equal(v.scope, refusals[i] == 407 ? DUEBOX_SCOPE_INSTANCE : DUEBOX_SCOPE_ROUTE);
    assert_string_equal(v.error_class, "http.proxy");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scopes_of_statuses),
      cmocka_unit_test(statuses),
      cmocka_unit_test(a_route_changes_the_table),
      cmocka_unit_test(nothing_is_waited_for_that_cannot_come),
      cmocka_unit_test(a_status_item_is_a_number_or_a_class),
      cmocka_unit_test(codes),
      cmocka_unit_test(an_impossible_url_is_the_tasks_fault_unless_sent),
      cmocka_unit_test(a_dead_proxy_concerns_every_route),
      cmocka_unit_test(a_socks_proxy_speaks_of_one_endpoint_unless_it_lets_nobody_in),
      cmocka_unit_test(a_proxy_that_refuses_burns_no_attempt),
  };
  return cmocka_run_group_tests_name("http_outcome", tests, NULL, NULL);
}
