/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_options.c - option rows, and what is checked across them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_options.h"
#include "tests/support/fake_host.h"

static struct amqp_options options_for(const char *url) { return (struct amqp_options){.url = url}; }

static bool accepted(const struct amqp_options *options, const char *says) {
  struct duebox_error err = {""};
  bool ok = amqp_options_check(options, &err);
  if (!ok && (!says || !strstr(err.text, says)))
    fail_msg("refused with: %s", err.text);
  return ok;
}

static void clear_text_stays_on_this_machine(void **state) {
  (void)state;
  struct amqp_options local = options_for("amqp://u:p@localhost/");
  struct amqp_options far = options_for("amqp://u:p@mq.example/");
  struct amqp_options tls = options_for("amqps://u:p@mq.example/");
  assert_true(accepted(&local, NULL));
  assert_true(accepted(&tls, NULL));
  assert_false(accepted(&far, "allow_plaintext"));
  far.allow_plaintext = true;
  assert_true(accepted(&far, NULL));
}

static void certificate_and_key_come_together(void **state) {
  (void)state;
  struct amqp_options options = options_for("amqps://u:p@mq.example/");
  options.cert_file = "/cert.pem";
  assert_false(accepted(&options, "cert_file and key_file"));
  options.key_file = "/key.pem";
  assert_true(accepted(&options, NULL));
  options.cert_file = NULL;
  assert_false(accepted(&options, "cert_file and key_file"));
}

static void a_broken_url_is_refused(void **state) {
  (void)state;
  struct amqp_options options = options_for("mq.example");
  assert_false(accepted(&options, "url: write"));
}

static void short_strings_are_short(void **state) {
  (void)state;
  char longer[258];
  struct duebox_error err;
  memset(longer, 'e', sizeof(longer) - 1);
  longer[256] = '\0';
  struct amqp_route route = {.exchange = "", .routing_key = "{route}", .content_type = "text/plain", .app_id = ""};
  assert_true(amqp_route_check(NULL, &route, &err));
  route.exchange = longer;
  assert_false(amqp_route_check(NULL, &route, &err));
  assert_non_null(strstr(err.text, "exchange"));
  longer[255] = '\0';
  assert_true(amqp_route_check(NULL, &route, &err));
}

static void rows_are_sound(void **state) {
  (void)state;
  const struct duebox_option *const tables[] = {amqp_option_rows, amqp_route_rows, amqp_source_rows};
  const size_t sizes[] = {sizeof(struct amqp_options), sizeof(struct amqp_route), sizeof(struct amqp_source_options)};
  for (int t = 0; t < 3; t++) {
    for (const struct duebox_option *row = tables[t]; row->name; row++) {
      assert_true(row->offset < sizes[t]);
      assert_true(row->help && row->help[0] >= 'a' && row->help[0] <= 'z');
      assert_true(row->help[strlen(row->help) - 1] != '.');
    }
  }
}

static void defaults(void **state) {
  (void)state;
  struct amqp_route route = {0};
  fake_options(amqp_route_rows, &route);
  assert_string_equal(route.exchange, "");
  assert_string_equal(route.routing_key, "{route}");
  assert_string_equal(route.content_type, "application/json");
  assert_true(route.persistent);
  struct amqp_source_options source = {0};
  fake_options(amqp_source_rows, &source);
  assert_int_equal(source.prefetch, 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clear_text_stays_on_this_machine),
      cmocka_unit_test(certificate_and_key_come_together),
      cmocka_unit_test(a_broken_url_is_refused),
      cmocka_unit_test(short_strings_are_short),
      cmocka_unit_test(rows_are_sound),
      cmocka_unit_test(defaults),
  };
  return cmocka_run_group_tests_name("amqp options", tests, NULL, NULL);
}
