/* SPDX-License-Identifier: MIT
 *
 * plugins/http where hundreds of connections are opened at once: what they cost the thread of the instance. Nothing
 * here is told by a clock.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/contract/hostile_server.h"
#include "tests/contract/http_case.h"

extern const struct duebox_plugin duebox_plugin_v1;

enum { MOST = 330 };

static struct hostile_server *server;

/* Stand in front of the libraries': how often the system's authorities are read. */
static size_t reads;

int X509_STORE_load_file(void *store, const char *path);
__attribute__((visibility("default"))) int X509_STORE_load_file(void *store, const char *path) {
  typedef int function(void *, const char *);
  reads++;
  return ((function *)dlsym(RTLD_NEXT, "X509_STORE_load_file"))(store, path);
}

static struct fake_host *open_wide(const struct http_options *o) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1, .role = DUEBOX_ROLE_SINK, .options = o, .max_inflight = MOST});
}

static void add(struct fake_host *host, const struct http_route *route, const char *id) {
  fake_host_add(host,
                &(struct fake_task){.message_id = id, .timeout_ms = 60000, .payload = {"{}", 2}, .route_data = route});
}

/* The system's are a hundred and more: each connection used to read them, for some milliseconds, and a few hundred held
 * up all routes for seconds. They are read anew after ten seconds. */
static void connections_share_the_authorities(void **state) {
  enum { TASKS = 100 };
  struct http_options o = http_case_options();
  char url[HTTP_CASE_URL];
  struct http_route route = http_case_route("https", "localhost", hostile_server_port(server, "good"), "/ok", url);
  struct fake_host *host = open_wide(&o);
  reads = 0;
  for (size_t i = 0; i < TASKS; i++)
    add(host, &route, NULL);
  assert_true(fake_host_settle(host, HTTP_CASE_LIMIT_MS));
  assert_string_equal(fake_host_outcome(host, 0).error_class, "http.tls"); /* which does not know the test's */
  assert_in_range(reads, 1, TASKS / 10);
  fake_host_free(host);
}

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
      cmocka_unit_test(connections_share_the_authorities),
  };
  return cmocka_run_group_tests_name("http_crowd", tests, start, stop);
}
