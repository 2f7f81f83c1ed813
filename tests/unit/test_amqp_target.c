/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_target.c - urls taken apart, and passwords from the right place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <duebox/link.h>

#include "plugins/amqp/amqp_target.h"

static struct amqp_options with_url(const char *url, const char *password) {
  return (struct amqp_options){.url = url,
                               .password = password,
                               .connect_timeout_ms = 10000,
                               .confirm_timeout_ms = 30000,
                               .heartbeat_ms = 30000,
                               .frame_max = 131072};
}

struct good {
  const char *url, *option;
  const char *host, *vhost, *user, *password;
  int port;
  bool tls, local;
};

static const struct good goods[] = {
    {"amqp://127.0.0.1", NULL, "127.0.0.1", "/", "guest", "guest", 5672, false, true},
    {"amqp://guest@127.0.0.1:5672/%2f", "s3cret", "127.0.0.1", "/", "guest", "s3cret", 5672, false, true},
    {"amqp://app:in-url@mq.example:1234/shop", NULL, "mq.example", "shop", "app", "in-url", 1234, false, false},
    {"amqp://app:in-url@mq.example/shop", "option", "mq.example", "shop", "app", "option", 5672, false, false},
    {"amqps://app:x@mq.example/", NULL, "mq.example", "/", "app", "x", 5671, true, false},
    {"amqp://a%40b:p%2Fw%3A@localhost/v%2Fh", NULL, "localhost", "v/h", "a@b", "p/w:", 5672, false, true},
    {"amqp://u:p@[::1]:5673/", NULL, "::1", "/", "u", "p", 5673, false, true},
    {"amqp://u:@127.9.9.9/", NULL, "127.9.9.9", "/", "u", "", 5672, false, true},
    {"amqp://u:p@127.evil.example/", NULL, "127.evil.example", "/", "u", "p", 5672, false, false},
    {"amqp://j%C3%bcrgen:p%E2%82%acss%2f@mq.example/b%c3%bcro", NULL, "mq.example", "b\xc3\xbcro", "j\xc3\xbcrgen",
     "p\xe2\x82\xacss/", 5672, false, false},
    {"amqp://app:%ff%80@mq.example/", NULL, "mq.example", "/", "app", "\xff\x80", 5672, false, false},
    {"amqp://127.0.0.1", "option", "127.0.0.1", "/", "guest", "option", 5672, false, true},
};

static void good_urls(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(goods) / sizeof(*goods); i++) {
    const struct good *g = &goods[i];
    struct amqp_options options = with_url(g->url, g->option);
    struct duebox_error err = {""};
    struct amqp_target *target = amqp_target_new(&options, "name", &err);
    if (!target)
      fail_msg("%s: %s", g->url, err.text);
    assert_string_equal(target->host, g->host);
    assert_string_equal(target->vhost, g->vhost);
    assert_string_equal(target->user, g->user);
    assert_string_equal(target->password, g->password);
    assert_int_equal(target->port, g->port);
    assert_int_equal(target->tls, g->tls);
    assert_int_equal(duebox_link_is_local(target->host, strlen(target->host)), g->local);
    amqp_target_unref(target);
  }
}

struct bad {
  const char *url;
  const char *says; /* part of the error */
};

static const struct bad bads[] = {
    {"", "url: write"},
    {"127.0.0.1:5672", "url: write"},
    {"http://127.0.0.1/", "url: write"},
    {"amqp://u:p@127.0.0.1:port/", "url: write"},
    {"amqp://u:p@127.0.0.1:0/", "between 1 and 65535"},
    {"amqp://u:p@127.0.0.1:70000/", "url:"},
    {"amqp://u:p@h/%zz", "url: write"},
    {"amqp://u:p@h/%8", "url: write"},
    {"amqp://u:p%00word@h/", "%00"},
    {"amqp://u:p@h/v?heartbeat=5", "behind a ?"},
    {"amqp://app@127.0.0.1/", "password_file"},
};

static void bad_urls(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
    struct amqp_options options = with_url(bads[i].url, NULL);
    struct duebox_error err = {""};
    assert_null(amqp_target_new(&options, "name", &err));
    if (!strstr(err.text, bads[i].says))
      fail_msg("\"%s\" is refused with: %s", bads[i].url, err.text);
  }
}

static void no_error_repeats_a_password(void **state) {
  (void)state;
  struct amqp_options options = with_url("amqp://u:topsecret@h:99999999/", "alsosecret");
  struct duebox_error err = {""};
  assert_null(amqp_target_new(&options, "name", &err));
  assert_null(strstr(err.text, "secret"));
}

static void numbers_are_taken_over(void **state) {
  (void)state;
  struct amqp_options options = with_url("amqp://u:p@h/", NULL);
  struct duebox_error err;
  options.heartbeat_ms = 1500;
  options.ca_file = "/ca.pem";
  struct amqp_target *target = amqp_target_new(&options, "rabbit", &err);
  assert_int_equal(target->heartbeat_s, 2); /* whole seconds, rounded up: 0 would switch heartbeats off */
  assert_int_equal(target->frame_max, 131072);
  assert_string_equal(target->connection_name, "rabbit");
  assert_string_equal(target->ca_file, "/ca.pem");
  assert_null(target->key_file);
  struct amqp_target *second = amqp_target_ref(target);
  amqp_target_unref(target);
  assert_string_equal(second->host, "h"); /* the last owner frees */
  amqp_target_unref(second);
  amqp_target_unref(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_urls),
      cmocka_unit_test(bad_urls),
      cmocka_unit_test(no_error_repeats_a_password),
      cmocka_unit_test(numbers_are_taken_over),
  };
  return cmocka_run_group_tests_name("amqp target", tests, NULL, NULL);
}
