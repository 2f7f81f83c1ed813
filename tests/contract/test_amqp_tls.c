/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_tls.c - the amqp plugin over TLS: whom it trusts, and that everything passes.
 *
 * Needs a broker with a plain port (DUEBOX_TEST_AMQP_URL, to look at what arrived) and a TLS port
 * (DUEBOX_TEST_AMQPS_PORT) whose certificate is for "localhost" and that asks the client for one; and
 * DUEBOX_TEST_AMQPS_FOLDER with ca.pem, other-ca.pem, client.pem and client.key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/contract/amqp_broker.h"
#include "tests/support/fake_host.h"

extern const struct duebox_plugin duebox_plugin_v1;

enum { LIMIT_MS = 30000 };

struct fixture {
  struct amqp_broker *broker;
  struct amqp_options *options;
  char url[128], ca[512], other_ca[512], cert[512], key[512];
};

static int open_fixture(void **state) {
  struct fixture *f = calloc(1, sizeof(*f));
  const char *folder = getenv("DUEBOX_TEST_AMQPS_FOLDER"), *port = getenv("DUEBOX_TEST_AMQPS_PORT");
  assert_true(f && folder && port);
  f->broker = amqp_broker_open();
  f->options = amqp_broker_options(f->broker);
  snprintf(f->url, sizeof(f->url), "amqps://guest:guest@localhost:%s/%%2f", port);
  snprintf(f->ca, sizeof(f->ca), "%s/ca.pem", folder);
  snprintf(f->other_ca, sizeof(f->other_ca), "%s/other-ca.pem", folder);
  snprintf(f->cert, sizeof(f->cert), "%s/client.pem", folder);
  snprintf(f->key, sizeof(f->key), "%s/client.key", folder);
  f->options->url = f->url;
  f->options->ca_file = f->ca;
  f->options->cert_file = f->cert;
  f->options->key_file = f->key;
  *state = f;
  return 0;
}

static int close_fixture(void **state) {
  struct fixture *f = *state;
  amqp_broker_close(f->broker);
  free(f);
  return 0;
}

/* Sends n tasks and returns the host. */
static struct fake_host *send(struct fixture *f, int n, struct duebox_bytes payload) {
  struct fake_host *host = fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1, .role = DUEBOX_ROLE_SINK, .options = f->options, .max_payload = 64 << 20});
  for (int i = 0; i < n; i++)
    fake_host_add(host, &(struct fake_task){.route_data = amqp_broker_route(f->broker), .payload = payload});
  if (!fake_host_settle(host, LIMIT_MS))
    fail_msg("%zu of %d tasks completed", fake_host_completed(host), n);
  return host;
}

static void expect_delivered(struct fixture *f, int n, struct duebox_bytes payload) {
  struct fake_host *host = send(f, n, payload);
  if (fake_host_count(host, DUEBOX_DELIVERED) != (size_t)n)
    fail_msg("not delivered: %s", fake_host_outcome(host, 0).message);
  fake_host_free(host);
  size_t count;
  const struct contract_message *messages = amqp_broker_received(f->broker, &count);
  assert_int_equal(count, n);
  assert_int_equal(messages[n - 1].body.len, payload.len);
  assert_memory_equal(messages[n - 1].body.data, payload.data, payload.len);
}

static void expect_refused(struct fixture *f, const char *says) {
  struct fake_host *host = send(f, 1, (struct duebox_bytes){"x", 1});
  struct fake_outcome o = fake_host_outcome(host, 0);
  assert_int_equal(o.cls, DUEBOX_UNAVAILABLE);
  assert_int_equal(o.scope, DUEBOX_SCOPE_INSTANCE);
  if (!strstr(o.message, says))
    fail_msg("refused with: %s", o.message);
  fake_host_free(host);
}

static void many_small_messages_pass(void **state) {
  expect_delivered(*state, 3000, (struct duebox_bytes){"{\"order\":17}", 12});
}

static void a_large_message_passes(void **state) {
  size_t len = 12 << 20;
  char *body = malloc(len);
  assert_non_null(body);
  for (size_t i = 0; i < len; i++)
    body[i] = (char)(i * 7 + (i >> 9));
  expect_delivered(*state, 2, (struct duebox_bytes){body, len});
  free(body);
}

static void results_are_read(void **state) {
  struct fixture *f = *state;
  struct fake_host *host = fake_host_open(&(struct fake_host_config){.plugin = &duebox_plugin_v1,
                                                                     .role = DUEBOX_ROLE_SOURCE,
                                                                     .options = f->options,
                                                                     .source = amqp_broker_source(f->broker),
                                                                     .max_record = 4 << 20});
  char *body = malloc(3 << 20);
  assert_non_null(body);
  memset(body, 'r', 3 << 20);
  for (int i = 0; i < 20; i++)
    amqp_broker_publish(f->broker, body, 3 << 20);
  if (!fake_host_wait_results(host, 20, LIMIT_MS))
    fail_msg("%zu of 20 results came", fake_host_results(host));
  for (size_t i = 0; i < 20; i++) {
    assert_int_equal(fake_host_result(host, i).len, 3 << 20);
    fake_host_ack(host, i, true);
  }
  fake_host_free(host);
  free(body);
}

/* What cannot be read is not decrypted either, and its acknowledgement leaves encrypted. */
static void headers_that_outgrew_a_frame(void **state) {
  struct fixture *f = *state;
  struct fake_host *host = fake_host_open(&(struct fake_host_config){.plugin = &duebox_plugin_v1,
                                                                     .role = DUEBOX_ROLE_SOURCE,
                                                                     .options = f->options,
                                                                     .source = amqp_broker_source(f->broker),
                                                                     .max_record = 1 << 20});
  amqp_broker_publish_dead(f->broker, "dead");
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  assert_true(fake_host_result(host, 0).truncated);
  fake_host_ack(host, 0, true);
  amqp_broker_publish(f->broker, "behind", 6);
  assert_true(fake_host_wait_results(host, 2, LIMIT_MS));
  assert_string_equal(fake_host_result(host, 1).body, "behind");
  assert_int_equal(fake_host_logged(host, "AMQP-DOWN"), 0);
  fake_host_ack(host, 1, true);
  fake_host_free(host);
}

static void another_authority_is_not_trusted(void **state) {
  struct fixture *f = *state;
  f->options->ca_file = f->other_ca;
  expect_refused(f, "ca_file");
  f->options->allow_unverified = true; /* said so by the user: then anything goes */
  expect_delivered(f, 1, (struct duebox_bytes){"x", 1});
}

static void another_host_is_not_trusted(void **state) {
  struct fixture *f = *state;
  char *host = strstr(f->url, "localhost");
  memmove(host + 5, host + 9, strlen(host + 9) + 1);
  memcpy(host, "127.1", 5); /* the same machine, by a name that the certificate does not have */
  expect_refused(f, "must name the host");
}

/* A certificate may be for an address, which is then compared as an address and not as a name. */
static void an_address_in_the_certificate_is_trusted(void **state) {
  struct fixture *f = *state;
  memcpy(strstr(f->url, "localhost"), "127.0.0.1", 9);
  expect_delivered(f, 1, (struct duebox_bytes){"x", 1});
}

static void files_that_are_not_there_are_told(void **state) {
  struct fixture *f = *state;
  f->options->ca_file = "/nonexistent/ca.pem";
  expect_refused(f, "/nonexistent/ca.pem");
  f->options->ca_file = f->ca;
  f->options->key_file = f->ca; /* a certificate where a key should be */
  expect_refused(f, "key_file");
}

static void without_our_certificate_the_broker_refuses(void **state) {
  struct fixture *f = *state;
  f->options->cert_file = f->options->key_file = NULL;
  expect_refused(f, "login failed");
}

static void a_plain_port_is_no_tls_port(void **state) {
  struct fixture *f = *state;
  snprintf(f->url, sizeof(f->url), "amqps%s", strchr(amqp_broker_url(), ':'));
  expect_refused(f, "does the broker speak TLS");
}

static void a_tls_port_is_no_plain_port(void **state) {
  struct fixture *f = *state;
  snprintf(f->url, sizeof(f->url), "amqp://guest:guest@localhost:%s/%%2f", getenv("DUEBOX_TEST_AMQPS_PORT"));
  f->options->cert_file = f->options->key_file = NULL;
  expect_refused(f, "amqps://");
}

int main(void) {
  if (!amqp_broker_url() || !getenv("DUEBOX_TEST_AMQPS_PORT") || !getenv("DUEBOX_TEST_AMQPS_FOLDER")) {
    fprintf(stderr, "DUEBOX_TEST_AMQPS_PORT and DUEBOX_TEST_AMQPS_FOLDER are needed too\n");
    return amqp_broker_skip_all("amqp tls");
  }
#define ROW(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)
  const struct CMUnitTest tests[] = {
      ROW(many_small_messages_pass),
      ROW(a_large_message_passes),
      ROW(results_are_read),
      ROW(headers_that_outgrew_a_frame),
      ROW(another_authority_is_not_trusted),
      ROW(another_host_is_not_trusted),
      ROW(an_address_in_the_certificate_is_trusted),
      ROW(files_that_are_not_there_are_told),
      ROW(without_our_certificate_the_broker_refuses),
      ROW(a_plain_port_is_no_tls_port),
      ROW(a_tls_port_is_no_plain_port),
  };
  return cmocka_run_group_tests_name("amqp tls", tests, NULL, NULL);
}
