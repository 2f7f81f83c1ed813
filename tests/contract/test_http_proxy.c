/* SPDX-License-Identifier: MIT
 *
 * plugins/http behind a forward proxy: whose trouble it is, the endpoint's or everybody's, when no request gets
 * through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/contract/hostile_server.h"
#include "tests/contract/http_case.h"

static struct hostile_server *server;

static void a_configured_proxy_is_used(void **state) {
  struct http_options o = http_case_options();
  char proxy[64], url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain");
  snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", port);
  o.proxy = proxy;
  o.allow_plaintext = true;
  struct fake_host *host = http_case_open(&o);
  struct http_route route =
      http_case_route("http", "crm.invalid", port, "/ok", url); /* the proxy resolves, or answers itself */
  struct fake_outcome outcome = http_case_send(host, &route, 0);
  assert_int_equal(hostile_server_copies(server, outcome.message_id), 1);
  assert_string_equal(outcome.error_class,
                      "http.404"); /* an absolute-form request line, which the server does not know */
  route = http_case_route("https", "crm.invalid", port, "/ok", url);
  outcome = http_case_send(host, &route, 0); /* CONNECT is refused: nothing of the request has left */
  assert_int_equal(outcome.cls, DUEBOX_UNAVAILABLE);
  assert_string_equal(outcome.error_class, "http.proxy"); /* it is not the endpoint that is to be mended */
  assert_int_equal(hostile_server_copies(server, outcome.message_id), 0);
  fake_host_free(host);
}

/* An expired password of the proxy is no fault of any task, whatever the route says of its endpoint's statuses. An
 * endpoint may say the same in its name, which a proxy passes on: no other route waits for that, and the request may
 * have been received. Without a proxy 407 is the endpoint's word. */
static void a_407_behind_a_proxy_is_the_targets_trouble(void **state) {
  struct http_options o = http_case_options();
  char proxy[64], url[HTTP_CASE_URL];
  const char *rejected[] = {"4xx", "407"};
  int port = hostile_server_port(server, "plain");
  struct fake_host *host = http_case_open(&o);
  struct http_route route = http_case_route("http", "127.0.0.1", port, "/status-407", url);
  assert_string_equal(http_case_send(host, &route, 0).error_class, "http.407");
  fake_host_free(host);
  snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", port);
  o.proxy = proxy;
  o.allow_plaintext = true;
  host = http_case_open(&o);
  route = http_case_route("http", "crm.invalid", 8, "/status-407", url);
  route.reject_on = (struct duebox_list){rejected, 2};
  struct fake_outcome outcome = http_case_send(host, &route, 0);
  assert_int_equal(outcome.cls, DUEBOX_UNKNOWN);
  assert_int_equal(outcome.scope, DUEBOX_SCOPE_TARGET);
  assert_true(outcome.blameless);
  assert_string_equal(outcome.error_class, "http.proxy");
  assert_string_equal(outcome.message, "HTTP 407 from the proxy, or crm.invalid:8: give a password");
  fake_host_free(host);
}

/* libcurl reads the answer to CONNECT inside of one call: all other tasks of the instance wait meanwhile. None has to
 * for longer than 64 KiB take, and the attempt ends before its time is up. */
static void an_endless_answer_to_connect_is_not_read(void **state) {
  static const struct {
    const char *listener, *error_class, *text;
    enum duebox_scope scope;
  } rows[] = {
      {"proxy-407-length", "http.proxy", "proxy_credentials", DUEBOX_SCOPE_INSTANCE},
      {"proxy-407-chunks", "http.proxy", "proxy_credentials", DUEBOX_SCOPE_INSTANCE},
      {"proxy-407-headers", "http.proxy", "proxy_credentials", DUEBOX_SCOPE_INSTANCE},
      {"proxy-200-headers", "http.proxy", "64 KiB", DUEBOX_SCOPE_ROUTE},
      {"proxy-502-length", "http.proxy", "502", DUEBOX_SCOPE_ROUTE},
      {"proxy-interim", "http.reset", "100", DUEBOX_SCOPE_ROUTE},
      {"proxy-line", "http.reset", "too large", DUEBOX_SCOPE_ROUTE},
      {"proxy-blanks", "http.reset", "too large", DUEBOX_SCOPE_ROUTE},
  };
  struct http_options o = http_case_options();
  char proxy[64], url[HTTP_CASE_URL];
  struct http_route route = http_case_route("https", "crm.invalid", 8, "/", url);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * 2; i++) {
    size_t row = i / 2;
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", hostile_server_port(server, rows[row].listener));
    o.proxy = proxy;
    o.proxy_credentials = i % 2 ? "me:secret" : NULL;
    struct fake_host *host = http_case_open(&o);
    struct fake_outcome outcome = http_case_send(host, &route, 0);
    if (outcome.cls != DUEBOX_UNAVAILABLE || strcmp(outcome.error_class, rows[row].error_class) != 0 ||
        outcome.scope != rows[row].scope || !strstr(outcome.message, rows[row].text))
      fail_msg("%s: class %d, scope %d, \"%s\": %s", rows[row].listener, (int)outcome.cls, (int)outcome.scope,
               outcome.error_class, outcome.message);
    fake_host_free(host);
  }
}

/* What a SOCKS proxy says of one endpoint holds up no route to another. Only where it lets nobody in, none gets
 * through; and the daemon's Kerberos ticket is not for it, with which libcurl would wait for it inside of one call. */
static void what_a_socks_proxy_says_of_an_endpoint_concerns_its_route(void **state) {
  static const struct {
    const char *listener, *text;
    enum duebox_scope scope;
  } rows[] = {
      {"socks-refused", "(5)", DUEBOX_SCOPE_ROUTE},
      {"socks-unreachable", "(4)", DUEBOX_SCOPE_ROUTE},
      {"socks-closed", "nothing was sent", DUEBOX_SCOPE_ROUTE},
      {"socks-method", "", DUEBOX_SCOPE_INSTANCE},
      {"socks-user", "rejected", DUEBOX_SCOPE_INSTANCE},
      {"socks-gssapi", "No authentication method", DUEBOX_SCOPE_INSTANCE},
  };
  struct http_options o = http_case_options();
  char proxy[64], url[HTTP_CASE_URL];
  struct http_route route = http_case_route("https", "crm.invalid", 8, "/", url);
  o.proxy = proxy;
  o.proxy_credentials = "me:secret";
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    snprintf(proxy, sizeof(proxy), "socks5h://127.0.0.1:%d", hostile_server_port(server, rows[i].listener));
    struct fake_host *host = http_case_open(&o);
    struct fake_outcome outcome = http_case_send(host, &route, 0);
    if (outcome.cls != DUEBOX_UNAVAILABLE || strcmp(outcome.error_class, "http.proxy") != 0 ||
        outcome.scope != rows[i].scope || !strstr(outcome.message, rows[i].text))
      fail_msg("%s: class %d, scope %d, \"%s\": %s", rows[i].listener, (int)outcome.cls, (int)outcome.scope,
               outcome.error_class, outcome.message);
    fake_host_free(host);
  }
}

/* ---- the group ---- */

static int start(void **state) {
  server = hostile_server_start();
  return 0;
}

static int stop(void **state) {
  hostile_server_stop(server);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_configured_proxy_is_used),
      cmocka_unit_test(a_407_behind_a_proxy_is_the_targets_trouble),
      cmocka_unit_test(an_endless_answer_to_connect_is_not_read),
      cmocka_unit_test(what_a_socks_proxy_says_of_an_endpoint_concerns_its_route),
  };
  return cmocka_run_group_tests_name("http_proxy", tests, start, stop);
}
