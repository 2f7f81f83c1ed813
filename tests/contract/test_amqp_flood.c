/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_flood.c - whoever answers on the broker's port writes without a pause before it has let us
 * in: the attempt ends after a bounded amount, the outage is reported, and the broker is found when it is back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <duebox/check.h>

#include "plugins/amqp/amqp_lookup.h"
#include "tests/contract/amqp_lab.h"

/* The limit is 1 MiB. What the other end got rid of holds the kernel's buffers and some steps of the watch too. */
enum { TAKEN_MAX_MIB = 64 };

static void assert_bounded(struct amqp_lab *f) {
  if (amqp_script_flooded(f->script) > (uint64_t)TAKEN_MAX_MIB << 20)
    fail_msg("one connection read more than %d MiB before the login was over", TAKEN_MAX_MIB);
}

static void flooded(struct amqp_lab *f, enum amqp_script_mood mood, const char *scheme) {
  f->options.connect_timeout_ms = 60000; /* it is not the time-out that ends it */
  f->options.allow_unverified = true;
  snprintf(f->url, sizeof(f->url), "%s://127.0.0.1:%d", scheme, amqp_script_port(f->script));
  amqp_script_set_mood(f->script, mood);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       amqp_script_connections(f->script) < 3 && fake_host_now_ms() < end;) {
    assert_bounded(f);
    fake_host_poll(host, 20);
  }
  assert_bounded(f);
  assert_true(amqp_script_flooded(f->script) > 0);
  assert_true(amqp_script_connections(f->script) >= 3); /* with back-off: the first steps of it are short */
  assert_int_equal(fake_host_health(host), 0);
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 1);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  if (strcmp(scheme, "amqp") == 0)
    amqp_lab_comes_back(host, f, 4);
  fake_host_free(host);
}

static void heartbeats_instead_of_connection_tune(void **state) {
  flooded(*state, AMQP_SCRIPT_FLOOD_HEARTBEATS, "amqp");
}

static void frames_of_a_channel_instead_of_connection_open_ok(void **state) {
  flooded(*state, AMQP_SCRIPT_FLOOD_OPEN, "amqp");
}

static void hello_requests_instead_of_a_tls_handshake(void **state) {
  flooded(*state, AMQP_SCRIPT_FLOOD_HELLO, "amqps");
}

/* --- what doctor asks --- */

static bool expand(const struct duebox_check *check, const char *text, char *out, size_t cap) {
  (void)check;
  snprintf(out, cap, "%s", text);
  return true;
}

static void look_up(struct amqp_lab *f, enum amqp_script_mood mood, const char *why) {
  struct duebox_check check = {.struct_size = sizeof(check), .route = &f->route, .expand = expand};
  struct duebox_check *checks[] = {&check};
  amqp_script_set_mood(f->script, mood);
  amqp_check_targets(&f->options, checks, 1, 2 * AMQP_LAB_LIMIT_MS);
  assert_int_equal(check.verdict, DUEBOX_CHECK_UNSURE);
  if (!strstr(check.text, why))
    fail_msg("\"%s\" does not say \"%s\"", check.text, why);
  assert_true(amqp_script_flooded(f->script) > 0);
  assert_bounded(f);
}

static void a_lookup_whose_login_is_flooded(void **state) { look_up(*state, AMQP_SCRIPT_FLOOD_OPEN, "far more than"); }

static void a_lookup_whose_channel_is_flooded(void **state) {
  look_up(*state, AMQP_SCRIPT_FLOOD_CHANNEL, "the broker has not said");
}

int main(void) {
#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_lab_set_up, amqp_lab_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(heartbeats_instead_of_connection_tune),     ROW(frames_of_a_channel_instead_of_connection_open_ok),
      ROW(hello_requests_instead_of_a_tls_handshake), ROW(a_lookup_whose_login_is_flooded),
      ROW(a_lookup_whose_channel_is_flooded),
  };
  return cmocka_run_group_tests_name("amqp flood", tests, NULL, NULL);
}
