/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_flood.c - whoever answers on the broker's port writes without a pause before it has let us
 * in: the attempt ends after a bounded amount, the outage is reported, and the broker is found when it is back.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/ssl.h>

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
  assert_true(fake_host_logged(host, "AMQP-DOWN") >= 2); /* the host says it once */
  assert_int_equal(fake_host_logged(host, "AMQP-UP"), 0);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  if (strcmp(scheme, "amqp") == 0)
    amqp_lab_comes_back(host, f, 0); /* the third may have come as the mood changed */
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

/* --- a second handshake --- */

/* A broker of TLS 1.2 that asks for another handshake as soon as the client has said something. */
struct second {
  SSL_CTX *context;
  int listener;
  unsigned hellos; /* of the client: handshakes that it took part in */
  atomic_bool over;
};

static void on_message(int written, int version, int type, const void *data, size_t len, SSL *ssl, void *arg) {
  (void)version, (void)ssl;
  struct second *second = arg;
  second->hellos += !written && type == SSL3_RT_HANDSHAKE && len > 0 && *(const char *)data == SSL3_MT_CLIENT_HELLO;
}

static void *ask_for_a_second(void *arg) {
  struct second *second = arg;
  char header[8];
  int fd = accept(second->listener, NULL, NULL);
  SSL *ssl = SSL_new(second->context);
  if (fd >= 0 && ssl && SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1 &&
      SSL_read(ssl, header, sizeof header) == sizeof header && SSL_renegotiate(ssl) == 1 && SSL_do_handshake(ssl) == 1)
    (void)SSL_read(ssl, header, sizeof header); /* what it answers; there is nothing else to say */
  SSL_free(ssl);
  close(fd);
  atomic_store(&second->over, true);
  return NULL;
}

static void start_second(struct second *second, const char *certificate, const char *key) {
  second->context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_msg_callback(second->context, on_message);
  SSL_CTX_set_msg_callback_arg(second->context, second);
  assert_int_equal(SSL_CTX_set_max_proto_version(second->context, TLS1_2_VERSION), 1);
  assert_int_equal(SSL_CTX_use_certificate_file(second->context, certificate, SSL_FILETYPE_PEM), 1);
  assert_int_equal(SSL_CTX_use_PrivateKey_file(second->context, key, SSL_FILETYPE_PEM), 1);
  second->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(listen(second->listener, 4), 0); /* on a free port of any address */
}

/* Each would be as dear as the first. No broker needs one: they ask for our certificate in the first. */
static void a_second_handshake_with_a_certificate_of_ours(void **state) {
  struct amqp_lab *f = *state;
  struct second second = {0};
  struct sockaddr_in address = {0};
  socklen_t len = sizeof address;
  pthread_t thread;
  char folder[] = "/tmp/duebox-amqp-XXXXXX", certificate[64], key[64], command[512];
  assert_non_null(mkdtemp(folder));
  snprintf(certificate, sizeof certificate, "%s/cert.pem", folder);
  snprintf(key, sizeof key, "%s/key.pem", folder);
  snprintf(command, sizeof command,
           "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=duebox -keyout %s -out %s "
           "2>%s/log",
           key, certificate, folder);
  assert_int_equal(system(command), 0);
  start_second(&second, certificate, key);
  assert_int_equal(getsockname(second.listener, (struct sockaddr *)&address, &len), 0);
  snprintf(f->url, sizeof f->url, "amqps://127.0.0.1:%d", ntohs(address.sin_port));
  f->options.allow_unverified = true;
  f->options.cert_file = certificate;
  f->options.key_file = key;
  assert_int_equal(pthread_create(&thread, NULL, ask_for_a_second, &second), 0);
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; !atomic_load(&second.over) && fake_host_now_ms() < end;)
    fake_host_poll(host, 20);
  fake_host_free(host);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(second.hellos, 1);
  SSL_CTX_free(second.context);
  close(second.listener);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
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
      ROW(a_lookup_whose_channel_is_flooded),         ROW(a_second_handshake_with_a_certificate_of_ours),
  };
  return cmocka_run_group_tests_name("amqp flood", tests, NULL, NULL);
}
