/* SPDX-License-Identifier: MIT
 *
 * plugins/http where hundreds of connections are opened at once: what they cost the thread of the instance, and who
 * comes in between. Nothing here is told by a clock.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugins/http/http_turns.h"
#include "tests/contract/hostile_server.h"
#include "tests/contract/http_case.h"

extern const struct duebox_plugin duebox_plugin_v1;

enum { ROUTES = 20, EACH = 16 };

static struct hostile_server *server;

/* Stand in front of the libraries': how often the system's authorities are read, and where connections go. */
static size_t reads, connections, connections_to_other;
static int other_port;

int X509_STORE_load_file(void *store, const char *path);
__attribute__((visibility("default"))) int X509_STORE_load_file(void *store, const char *path) {
  typedef int function(void *, const char *);
  reads++;
  return ((function *)dlsym(RTLD_NEXT, "X509_STORE_load_file"))(store, path);
}

__attribute__((visibility("default"))) int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len) {
  typedef int function(int, __CONST_SOCKADDR_ARG, socklen_t);
  if (to.__sockaddr__->sa_family == AF_INET) {
    connections++;
    connections_to_other += ntohs(to.__sockaddr_in__->sin_port) == other_port;
  }
  return ((function *)dlsym(RTLD_NEXT, "connect"))(fd, to, len);
}

/* A listener that nobody accepts from: connections are made, and silent. */
static int listen_silently(int *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
  assert_int_equal(listen(fd, 1024), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
  *port = ntohs(address.sin_port);
  return fd;
}

static struct fake_host *open_wide(const struct http_options *o) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1, .role = DUEBOX_ROLE_SINK, .options = o, .max_inflight = ROUTES * EACH + 10});
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
  reads = connections = 0;
  for (size_t i = 0; i < TASKS; i++)
    add(host, &route, NULL);
  assert_true(fake_host_settle(host, HTTP_CASE_LIMIT_MS));
  assert_string_equal(fake_host_outcome(host, 0).error_class, "http.tls"); /* which does not know the test's */
  assert_true(connections >= TASKS);
  assert_in_range(reads, 1, TASKS / 10);
  fake_host_free(host);
}

/* 20 routes want 320 connections to an endpoint that never answers. One after the other they get some, while a route
 * with a connection goes on at once, and one that needs its first gets it when it is its turn. */
static void a_crowd_lets_others_in_between(void **state) {
  enum { NAMES = 4 }; /* turns that looking them up may take, at first */
  struct http_options o = http_case_options();
  o.connect_timeout_ms = o.keep_alive_ms = 60000;
  int port, silent = listen_silently(&port), other_silent = listen_silently(&other_port);
  char urls[ROUTES][HTTP_CASE_URL], good_url[HTTP_CASE_URL], other_url[HTTP_CASE_URL];
  struct http_route routes[ROUTES];
  struct http_route good = http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), "/ok", good_url);
  struct http_route other = http_case_route("http", "127.0.0.1", other_port, "/ok", other_url);
  struct fake_host *host = open_wide(&o);
  assert_int_equal(http_case_send(host, &good, 0).cls, DUEBOX_DELIVERED);
  for (size_t i = 0; i < ROUTES; i++) {
    routes[i] = http_case_route("https", "127.0.0.1", port, "/ok", urls[i]);
    for (size_t k = 0; k < EACH; k++)
      add(host, &routes[i], NULL);
  }
  add(host, &good, "good");
  add(host, &other, NULL);
  fake_host_offer(host);
  connections = connections_to_other = 0;
  size_t opened = 0, turns = 0, other_turns = 0;
  while (opened < (size_t)ROUTES * EACH + 1) {
    fake_host_poll(host, 0);
    turns++;
    assert_in_range(connections, 0, HTTP_TURN_OPENS);
    opened += connections;
    connections = 0;
    if (turns == 1)
      while (hostile_server_copies(server, "good") == 0) /* it has left in the first turn */
        usleep(1000);
    if (connections_to_other == 0)
      other_turns = turns;
  }
  assert_in_range(other_turns, 0, NAMES + (ROUTES + 1) / HTTP_TURN_OPENS);
  assert_int_equal(connections_to_other, 1);
  fake_host_free(host);
  close(silent);
  close(other_silent);
}

/* Those that wait for their turn end with the instance, and nothing of them has been sent. */
static void a_crowd_ends_with_its_instance(void **state) {
  struct http_options o = http_case_options();
  char url[HTTP_CASE_URL];
  int port, silent = listen_silently(&port);
  struct http_route route = http_case_route("https", "127.0.0.1", port, "/ok", url);
  struct fake_host *host = open_wide(&o);
  for (size_t i = 0; i < (size_t)ROUTES * EACH; i++)
    add(host, &route, NULL);
  fake_host_offer(host);
  fake_host_poll(host, 0);
  fake_host_stop(host, 1);
  assert_int_equal(fake_host_count(host, DUEBOX_UNAVAILABLE), ROUTES * EACH);
  assert_non_null(strstr(fake_host_outcome(host, ROUTES * EACH - 1).message, "nothing was sent"));
  fake_host_free(host);
  close(silent);
}

/* A kept connection that closes without an answer costs no new one: the request will not be sent once more. */
static void no_connection_is_opened_for_what_is_not_sent_again(void **state) {
  struct http_options o = http_case_options();
  o.keep_alive_ms = 60000;
  char url[HTTP_CASE_URL], close_url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain");
  struct http_route good = http_case_route("http", "127.0.0.1", port, "/ok", url);
  struct http_route closing = http_case_route("http", "127.0.0.1", port, "/close", close_url);
  struct fake_host *host = http_case_open(&o);
  assert_int_equal(http_case_send(host, &good, 0).cls, DUEBOX_DELIVERED);
  connections = 0;
  struct fake_outcome outcome = http_case_send(host, &closing, 0);
  assert_int_equal(outcome.cls, DUEBOX_UNKNOWN);
  assert_string_equal(outcome.error_class, "http.no_response");
  assert_non_null(strstr(outcome.message, "the kept connection closed without an answer"));
  assert_int_equal(connections, 0);
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

/* How many connections two requests for http:// take, one after the other. */
static size_t connections_of_two(const char *proxy) {
  struct http_options o = http_case_options();
  char url[HTTP_CASE_URL];
  o.keep_alive_ms = 60000;
  o.proxy = proxy;
  o.allow_plaintext = true;
  struct fake_host *host = http_case_open(&o);
  struct http_route route =
      http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), "/status-404", url);
  connections = 0;
  for (int i = 0; i < 2; i++)
    assert_string_equal(http_case_send(host, &route, 0).error_class, "http.404");
  fake_host_free(host);
  return connections;
}

/* A proxy may send all that comes over one connection to the endpoint of the first request: tasks of other routes, with
 * their secrets, went to it, and its answers counted for them. */
static void a_connection_to_a_proxy_serves_one_endpoint(void **state) {
  char proxy[64];
  snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", hostile_server_port(server, "plain"));
  assert_int_equal(connections_of_two(NULL), 1);
  assert_int_equal(connections_of_two(proxy), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(connections_share_the_authorities),
      cmocka_unit_test(a_connection_to_a_proxy_serves_one_endpoint),
      cmocka_unit_test(a_crowd_lets_others_in_between),
      cmocka_unit_test(a_crowd_ends_with_its_instance),
      cmocka_unit_test(no_connection_is_opened_for_what_is_not_sent_again),
  };
  return cmocka_run_group_tests_name("http_crowd", tests, start, stop);
}
