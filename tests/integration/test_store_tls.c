/* SPDX-License-Identifier: MIT
 *
 * Connections with TLS, on a server that offers it: the chain and the name are checked. DUEBOX_TEST_TLS names a folder
 * with ca.pem, which signed the server's certificate for 127.0.0.1, and other.pem, which did not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops

/* Connects over TCP with the CA of that name; returns what became of it. */
static enum store_status open_with(struct fixture *f, const char *host, const char *ca) {
  const char *folder = getenv("DUEBOX_TEST_TLS");
  struct store_session *ss;
  char path[4096];
  assert_non_null(folder);
  snprintf(path, sizeof path, "%s/%s", folder, ca);
  f->config.socket = NULL;
  f->config.host = host;
  f->config.port = ask(f, "SELECT @@port");
  f->config.tls = true;
  f->config.tls_ca = path;
  enum store_status status = OPS->open(f->store.self, "test", 0, &ss, &f->err);
  if (status == STORE_OK)
    OPS->close(&f->ss);
  if (status == STORE_OK)
    f->ss = ss;
  else
    OPS->close(&ss);
  return status;
}

static void tls_is_used(void **state) {
  struct fixture *f = *state;
  int64_t now;
  if (open_with(f, "127.0.0.1", "ca.pem") != STORE_OK)
    fail_msg("%s", f->err.text);
  ok(f, OPS->now(f->ss, &now, &f->err));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'duebox' AND host LIKE "
                          "'127.0.0.1:%%'"),
                   1);
}

static void tls_is_refused_with_a_certificate_of_another_ca(void **state) {
  struct fixture *f = *state;
  assert_int_not_equal(open_with(f, "127.0.0.1", "other.pem"), STORE_OK);
  assert_non_null(strstr(f->err.text, "TLS failed"));
}

static void tls_is_refused_under_another_name(void **state) {
  struct fixture *f = *state;
  assert_int_not_equal(open_with(f, "localhost", "ca.pem"), STORE_OK);
  assert_non_null(strstr(f->err.text, "TLS failed"));
}

static void tls_is_refused_without_the_ca(void **state) {
  struct fixture *f = *state;
  assert_int_not_equal(open_with(f, "127.0.0.1", "absent.pem"), STORE_OK);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(tls_is_used),
      TEST(tls_is_refused_with_a_certificate_of_another_ca),
      TEST(tls_is_refused_under_another_name),
      TEST(tls_is_refused_without_the_ca),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
