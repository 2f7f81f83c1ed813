/* SPDX-License-Identifier: MIT
 *
 * What `duebox check` says about plugins/http before anything runs: each mistake with the option's name and a cure.
 */
#include "http_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/fake_host.h"

#define LIST(...)                                                                                                      \
  (struct duebox_list) {                                                                                               \
    .items = (const char *const[]){__VA_ARGS__}, .count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)  \
  }

static struct http_options defaults(void) {
  struct http_options options = {0};
  fake_options(http_option_rows, &options);
  return options;
}

static struct http_route a_route(const char *url) {
  struct http_route route = {0};
  fake_options(http_route_rows, &route);
  route.url = url;
  return route;
}

static void expect_options(const struct http_options *options, const char *why) {
  struct duebox_error err = {""};
  bool fine = http_options_check(options, &err);
  if (fine != (why == NULL) || (why && !strstr(err.text, why)))
    fail_msg("expected \"%s\", got \"%s\"", why ? why : "fine", fine ? "fine" : err.text);
}

static void expect_route(const struct http_options *options, const struct http_route *route, const char *why) {
  struct duebox_error err = {""};
  bool fine = http_route_check(options, route, &err);
  if (fine != (why == NULL) || (why && !strstr(err.text, why)))
    fail_msg("%s: expected \"%s\", got \"%s\"", route->url, why ? why : "fine", fine ? "fine" : err.text);
}

static void the_defaults_are_safe(void **state) {
  struct http_options o = defaults();
  assert_false(o.allow_private || o.allow_plaintext || o.http2);
  assert_null(o.proxy);
  assert_int_equal(o.connect_timeout_ms, 5000);
  assert_int_equal(o.max_response, 65536);
  expect_options(&o, NULL);
  struct http_route r = a_route("https://crm.example/hooks/{route}");
  assert_int_equal(r.method, HTTP_POST);
  assert_string_equal(r.content_type, "application/json");
  assert_int_equal(r.retry_after_max_ms, 86400000);
  expect_route(&o, &r, NULL);
}

static void rows_are_in_order(void **state) {
  const struct duebox_option *const tables[] = {http_option_rows, http_route_rows};
  const size_t sizes[] = {sizeof(struct http_options), sizeof(struct http_route)};
  for (size_t t = 0; t < 2; t++)
    for (const struct duebox_option *row = tables[t]; row->name; row++) {
      assert_true(row->offset < sizes[t]);
      assert_non_null(row->help);
      assert_true(row->help[strlen(row->help) - 1] != '.');
      for (const struct duebox_option *other = row + 1; other->name; other++) {
        assert_string_not_equal(row->name, other->name);
        assert_int_not_equal(row->offset, other->offset);
      }
    }
}

static void instance_mistakes(void **state) {
  struct http_options o = defaults();
  o.allow_networks = LIST("10.1.0.0/16", "10.0.0.1/8");
  expect_options(&o, "allow_networks: \"10.0.0.1/8\"");
  o = defaults();
  o.client_key = "key.pem";
  expect_options(&o, "client_cert");
  o = defaults();
  o.client_cert = "cert.pem";
  expect_options(&o, "client_key");
  o.client_key = "key.pem";
  expect_options(&o, NULL);
  o = defaults();
  o.proxy = "proxy.example:3128";
  expect_options(&o, "scheme");
  o.proxy = "http://me:secret@proxy.example:3128";
  expect_options(&o, "proxy_credentials_file");
  o.proxy = "http://proxy.example:3128";
  expect_options(&o, NULL);
  o = defaults();
  o.proxy_credentials = "me:secret";
  expect_options(&o, "without proxy");
}

static void url_mistakes(void **state) {
  static const struct {
    const char *url, *why;
  } rows[] = {
      {"https://crm.example", NULL},
      {"https://crm.example:8443/a/{task_key}?p={priority}&h={header.x}", NULL},
      {"https://8.8.8.8/x", NULL},
      {"https://[2606:4700:4700::1111]/x", NULL},
      {"crm.example/x", "must begin with https://"},
      {"ftp://crm.example/x", "must begin with https://"},
      {"file:///etc/passwd", "must begin with https://"},
      {"https:///x", "must begin with https://"},
      {"https://{task_key}/x", "placeholder in the host"},
      {"https://a.{header.tenant}.example/x", "placeholder in the host"},
      {"https://user:pw@crm.example/x", "authorization_file"},
      {"https://crm.example/a/../b", "\"..\""},
      {"https://crm.example/a b", "percent-encoded"},
      {"https://crm.example/a\nb", "percent-encoded"},
      {"https://crm.example\\@evil.example:81/x", "percent-encoded"},
      {"https://crm.example\\.evil.example:81/x", "percent-encoded"},
      {"https://crm.example/a\\b", "percent-encoded"},
      {"https://crm.example?x\\@{task_key}:81/x", "percent-encoded"},
      {"https://crm.example:99999/x", "not a host"},
      {"https://[::1/x", "not a host"},
      {"http://crm.example/x", "http:// would send"},
      {"https://127.0.0.1/x", "loopback address 127.0.0.1"},
      {"https://2130706433/x", "loopback address 127.0.0.1"},
      {"https://0x7f.1/x", "loopback address 127.0.0.1"},
      {"https://[::ffff:127.0.0.1]/x", "loopback address 127.0.0.1"},
      {"https://10.0.0.1:8443/{task_key}", "allow_private: true or allow_networks: [10.0.0.1]"},
      {"https://169.254.169.254/latest/meta-data", "link-local address 169.254.169.254"},
      {"https://0/", "special-purpose address 0.0.0.0"},
      {"https://[fe80::1%25eth0]/", "link-local address fe80::1"},
  };
  struct http_options o = defaults();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_route r = a_route(rows[i].url);
    expect_route(&o, &r, rows[i].why);
  }
}

static void the_instance_decides_about_addresses(void **state) {
  struct http_options o = defaults();
  o.allow_private = true;
  struct http_route r = a_route("http://127.0.0.1:8080/x");
  expect_route(&o, &r, NULL);
  r.url = "http://crm.internal/x"; /* another host until the contrary is known */
  expect_route(&o, &r, "allow_plaintext");
  r.url = "http://localhost:8080/x";
  expect_route(&o, &r, NULL);
  r.url = "http://8.8.8.8/x";
  expect_route(&o, &r, "allow_plaintext");
  r.url = "https://169.254.169.254/x";
  expect_route(&o, &r, "link-local");
  o = defaults();
  o.allow_networks = LIST("169.254.169.253", "10.1.0.0/16");
  r.url = "http://10.1.2.3/x";
  expect_route(&o, &r, "allow_plaintext");
  o.allow_plaintext = true;
  expect_route(&o, &r, NULL);
  r.url = "http://10.2.2.3/x";
  expect_route(&o, &r, "private address");
  r.url = "https://169.254.169.253/x";
  expect_route(&o, &r, NULL);
  o = defaults();
  o.allow_plaintext = true;
  r.url = "http://8.8.8.8/x";
  expect_route(&o, &r, NULL);
  o = defaults();
  o.proxy = "http://proxy.example:3128"; /* the proxy decides */
  r.url = "https://10.1.2.3/x";
  expect_route(&o, &r, NULL);
}

static void secret_mistakes(void **state) {
  struct http_options o = defaults();
  struct http_route r = a_route("https://crm.example/x");
  r.secret = "hunter2-hunter2-hunter2";
  struct duebox_error err;
  assert_false(http_route_check(&o, &r, &err));
  assert_non_null(strstr(err.text, "whsec_"));
  assert_null(strstr(err.text, "hunter2")); /* never printed */
  r.secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  expect_route(&o, &r, NULL);
  r.previous_secret = "whsec_short";
  expect_route(&o, &r, "previous_secret: ");
  r.previous_secret = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
  expect_route(&o, &r, NULL);
  r.secret = NULL;
  expect_route(&o, &r, "previous_secret without secret");
  r = a_route("https://crm.example/x");
  r.authorization = "Bearer x\r\nx-evil: 1";
  expect_route(&o, &r, "authorization: ");
}

static void header_mistakes(void **state) {
  static const struct {
    struct duebox_pair header;
    const char *why;
  } rows[] = {
      {{"x-api-version", "2"}, NULL},
      {{"x api", "2"}, "not a header name"},
      {{"", "2"}, "not a header name"},
      {{"Host", "other"}, "set by duebox"},
      {{"Content-Length", "0"}, "set by duebox"},
      {{"webhook-id", "1"}, "set by duebox"},
      {{"duebox-route", "1"}, "set by duebox"},
      {{"Content-Type", "text/plain"}, "content_type"},
      {{"Authorization", "Bearer x"}, "authorization_file"},
      {{"x-a", "1\r\nx-evil: 2"}, "control character"},
      {{"x-key", "{task_key}"}, "would be sent as it stands"}, /* it went out with its braces */
      {{"x-key", "a {id} b"}, "{id} would be sent"},
      {{"x-json", "{\"a\": {}}"}, NULL},
  };
  struct http_options o = defaults();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct http_route r = a_route("https://crm.example/x");
    r.headers = (struct duebox_map){&rows[i].header, 1};
    expect_route(&o, &r, rows[i].why);
  }
  struct http_route r = a_route("https://crm.example/x");
  r.content_type = "";
  expect_route(&o, &r, "content_type");
  r.content_type = "a\nb";
  expect_route(&o, &r, "content_type");
}

static void callback_and_status_mistakes(void **state) {
  struct http_options o = defaults();
  struct http_route r = a_route("https://crm.example/x");
  r.callback = "nonsense";
  expect_route(&o, &r, "callback");
  r.callback = "none";
  expect_route(&o, &r, NULL);
  r.callback = "https://in.example/{message_id}";
  expect_route(&o, &r, NULL);
  r.done_on = LIST("404");
  r.reject_on = LIST("4xx", "501");
  expect_route(&o, &r, NULL);
  r.reject_on = LIST("teapot");
  expect_route(&o, &r, "reject_on: \"teapot\"");
  r.reject_on = LIST("404");
  expect_route(&o, &r, "done_on and reject_on both name 404");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_defaults_are_safe),
      cmocka_unit_test(rows_are_in_order),
      cmocka_unit_test(instance_mistakes),
      cmocka_unit_test(url_mistakes),
      cmocka_unit_test(the_instance_decides_about_addresses),
      cmocka_unit_test(secret_mistakes),
      cmocka_unit_test(header_mistakes),
      cmocka_unit_test(callback_and_status_mistakes),
  };
  return cmocka_run_group_tests_name("http_options", tests, NULL, NULL);
}
