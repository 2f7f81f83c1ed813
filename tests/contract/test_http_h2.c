/* SPDX-License-Identifier: MIT
 *
 * plugins/http over HTTP/2, against nghttpd (Debian: nghttp2-server): requests share a connection, and what is lost
 * with it is neither sent again nor taken for unsent. And against servers that misbehave.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "http_options.h"
#include "tests/contract/hostile_server.h"
#include "tests/support/fake_host.h"
#include "tests/support/reserved_port.h"

extern const struct duebox_plugin duebox_plugin_v1;
extern char **environ;

enum { LIMIT_MS = 30000, FLOOD_LIMIT_S = 60, TURN_LIMIT_MS = 5000 };

struct fixture {
  struct hostile_server *files; /* for its certificates */
  pid_t pid;
  int port, reserved;
  char *ca;
  char url[64];
  struct http_options options;
  struct http_route route;
};

static int connect_to(int port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int rc = connect(fd, (struct sockaddr *)&address, sizeof(address));
  close(fd);
  return rc;
}

static bool start_nghttpd(struct fixture *f) {
  char port[8];
  char *key = strdup(hostile_server_file(f->files, "good.key"));
  char *cert = strdup(hostile_server_file(f->files, "good.pem"));
  f->reserved = reserved_port_open(&f->port);
  snprintf(port, sizeof(port), "%d", f->port);
  const char *const arguments[] = {"nghttpd", "-a", "127.0.0.1", "--echo-upload", port, key, cert, NULL};
  int failed = posix_spawnp(&f->pid, "nghttpd", NULL, NULL, (char *const *)arguments, environ);
  for (int i = 0; !failed && connect_to(f->port) != 0; i++) {
    if (i == LIMIT_MS / 10)
      fail_msg("waited %d ms for nghttpd to listen on port %d", LIMIT_MS, f->port);
    usleep(10000);
  }
  free(key);
  free(cert);
  return !failed;
}

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof(*f));
  assert_non_null(f);
  *state = f;
  f->files = hostile_server_start();
  if (!start_nghttpd(f))
    return 0; /* the tests skip */
  f->ca = strdup(hostile_server_file(f->files, "ca.pem"));
  fake_options(http_option_rows, &f->options);
  fake_options(http_route_rows, &f->route);
  snprintf(f->url, sizeof(f->url), "https://localhost:%d/hooks", f->port);
  f->options.allow_private = true;
  f->options.http2 = true;
  f->options.ca_file = f->ca;
  f->route.url = f->url;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  if (f->pid > 0) {
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
  }
  close(f->reserved);
  hostile_server_stop(f->files);
  free(f->ca);
  free(f);
  return 0;
}

static struct fixture *fixture(void **state) {
  struct fixture *f = *state;
  if (f->pid <= 0) {
    print_message("nghttpd is not installed (Debian: apt-get install nghttp2-server)\n");
    skip();
  }
  return f;
}

static struct fake_host *open_host(const struct fixture *f) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1, .role = DUEBOX_ROLE_SINK, .options = &f->options, .max_inflight = 50});
}

static void add(struct fake_host *host, const struct fixture *f, size_t n) {
  for (size_t i = 0; i < n; i++)
    fake_host_add(host, &(struct fake_task){.route_data = &f->route, .timeout_ms = 60000, .payload = {"x", 1}});
}

static void settle(struct fake_host *host) {
  if (!fake_host_settle(host, LIMIT_MS))
    fail_msg("%zu of %zu tasks completed within %d ms", fake_host_completed(host), fake_host_tasks(host), LIMIT_MS);
}

static void requests_share_a_connection(void **state) {
  struct fixture *f = fixture(state);
  struct fake_host *host = open_host(f);
  add(host, f, 500);
  settle(host);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 500);
  fake_host_free(host);
}

/* The server is stopped with 20 requests on their way, then killed: their bytes had left. */
static void what_was_sent_is_unknown(void **state) {
  struct fixture *f = fixture(state);
  struct fake_host *host = open_host(f);
  add(host, f, 1);
  settle(host);
  kill(f->pid, SIGSTOP);
  assert_int_equal(waitpid(f->pid, NULL, WUNTRACED), f->pid); /* until then some of its threads go on */
  add(host, f, 20);
  for (int i = 0; i < 20; i++) {
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
  assert_int_equal(fake_host_completed(host), 1);
  kill(f->pid, SIGKILL);
  waitpid(f->pid, NULL, 0);
  f->pid = 0;
  settle(host);
  for (size_t i = 1; i <= 20; i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    if (outcome.cls != DUEBOX_UNKNOWN)
      fail_msg("task %zu: class %d, \"%s\": %s", i, (int)outcome.cls, outcome.error_class, outcome.message);
  }
  add(host, f, 1);
  settle(host);
  assert_int_equal(fake_host_outcome(host, 21).cls, DUEBOX_UNAVAILABLE);
  fake_host_free(host);
}

struct awaited {
  struct fake_host *host;
  size_t index;
};

static bool has_come(void *arg) {
  const struct awaited *awaited = arg;
  return fake_host_outcome(awaited->host, awaited->index).completed;
}

static int64_t worked_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* One more task for the good endpoint, which must not wait for anybody else's. Processor time is looked at: it is the
 * same on a busy machine. Returns the longest turn. */
static int64_t send_good(struct fake_host *host, const struct fixture *f) {
  struct awaited good = {host, fake_host_tasks(host)};
  int64_t longest = 0;
  add(host, f, 1);
  fake_host_offer(host);
  for (time_t began = time(NULL); !has_come(&good) && time(NULL) - began <= FLOOD_LIMIT_S;) {
    int64_t before = worked_ms();
    fake_host_poll(host, 10);
    int64_t took = worked_ms() - before;
    longest = took > longest ? took : longest;
  }
  if (!has_come(&good))
    fail_msg("a good task was not delivered within %d s while another endpoint was flooding", FLOOD_LIMIT_S);
  assert_int_equal(fake_host_outcome(host, good.index).cls, DUEBOX_DELIVERED);
  return longest;
}

/* The route of a task for a listener that floods. */
struct flood {
  char url[64];
  struct http_route route;
};

static struct awaited offer_flood(struct fixture *f, const char *listener, struct flood *flood) {
  snprintf(flood->url, sizeof(flood->url), "https://localhost:%d/", hostile_server_port(f->files, listener));
  flood->route = f->route;
  flood->route.url = flood->url;
  struct fake_host *host = open_host(f);
  const struct fake_task task = {.route_data = &flood->route, .timeout_ms = 600000, .payload = {"x", 1}};
  return (struct awaited){host, fake_host_add(host, &task)};
}

/* Who writes frames faster than they are read delays no task of another host: its connection is ended. On a machine on
 * which libcurl is the faster one the flood goes on beside the good tasks. */
static void check_flood(struct fixture *f, const char *listener) {
  int64_t longest = 0;
  struct flood it;
  struct awaited flood = offer_flood(f, listener, &it);
  struct fake_host *host = flood.host;
  for (int i = 0; i < 100 && !has_come(&flood); i++) {
    int64_t turn = send_good(host, f);
    longest = turn > longest ? turn : longest;
  }
  print_message("%s: ended %zu times, longest turn %lld ms\n", listener, fake_host_logged(host, "HTTP-FLOOD"),
                (long long)longest);
  if (longest > TURN_LIMIT_MS)
    fail_msg("%s: reading one connection kept the thread for %lld ms", listener, (long long)longest);
  if (has_come(&flood))
    assert_int_equal(fake_host_outcome(host, flood.index).cls, DUEBOX_UNKNOWN);
  fake_host_free(host);
}

static void flood_delays_nobody(void **state) {
  struct fixture *f = fixture(state);
  check_flood(f, "flood-window");
  check_flood(f, "flood-unknown");
  check_flood(f, "flood-settings");
}

/* Anybody on the way may write the beginning of a handshake, before a certificate is looked at. OpenSSL skips
 * HelloRequests, and takes a message piece by piece, inside of one call. */
static void check_handshake(struct fixture *f, const char *listener) {
  struct flood it;
  struct awaited flood = offer_flood(f, listener, &it);
  struct fake_host *host = flood.host;
  do
    send_good(host, f);
  while (!has_come(&flood));
  assert_string_equal(fake_host_outcome(host, flood.index).error_class, "http.tls");
  assert_true(fake_host_logged(host, "HTTP-FLOOD") > 0);
  fake_host_free(host);
}

static void handshakes_without_end_delay_nobody(void **state) {
  struct fixture *f = fixture(state);
  check_handshake(f, "hello-flood");
  check_handshake(f, "tiny-records");
}

/* Delivered means a whole response: one that is given up in the middle may have been going to say "fail". */
static void response_that_is_given_up_is_unknown(void **state) {
  struct fixture *f = fixture(state);
  snprintf(f->url, sizeof(f->url), "https://localhost:%d/", hostile_server_port(f->files, "given-up"));
  struct fake_host *host = open_host(f);
  add(host, f, 1);
  settle(host);
  struct fake_outcome outcome = fake_host_outcome(host, 0);
  if (outcome.cls != DUEBOX_UNKNOWN)
    fail_msg("class %d, \"%s\": %s", (int)outcome.cls, outcome.error_class, outcome.message);
  fake_host_free(host);
}

/* Tasks for a listener that says GOAWAY; the body of each is its message id. */
static struct fake_host *send_to(struct fixture *f, const char *listener, size_t n) {
  snprintf(f->url, sizeof(f->url), "https://localhost:%d/", hostile_server_port(f->files, listener));
  struct fake_host *host = open_host(f);
  for (size_t i = 0; i < n; i++) {
    char id[32];
    int len = snprintf(id, sizeof(id), "%s-%zu", listener, i);
    fake_host_add(host,
                  &(struct fake_task){
                      .message_id = id, .route_data = &f->route, .timeout_ms = 60000, .payload = {id, (size_t)len}});
  }
  settle(host);
  return host;
}

/* A server may end a connection after any number of requests (nginx: 1000). It says which ones it has not processed:
 * none of them fails for that. */
static void what_goaway_says_is_unprocessed_is_sent_again(void **state) {
  struct fixture *f = fixture(state);
  struct fake_host *host = send_to(f, "goaway", 500);
  for (size_t i = 0; i < 500; i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    if (outcome.cls != DUEBOX_DELIVERED)
      fail_msg("task %zu: class %d, \"%s\": %s", i, (int)outcome.cls, outcome.error_class, outcome.message);
    assert_int_equal(hostile_server_copies(f->files, outcome.message_id), 1);
  }
  fake_host_free(host);
}

/* One request of each connection is cancelled after it was taken up, behind the GOAWAY. */
static void what_goaway_says_may_be_processed_is_not_sent_again(void **state) {
  struct fixture *f = fixture(state);
  struct fake_host *host = send_to(f, "goaway-cancel", 500);
  size_t unknown = fake_host_count(host, DUEBOX_UNKNOWN);
  assert_true(unknown > 0);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED) + unknown, 500);
  for (size_t i = 0; i < 500; i++)
    assert_int_equal(hostile_server_copies(f->files, fake_host_outcome(host, i).message_id), 1);
  fake_host_free(host);
}

/* No attempt is burnt at a server that takes up nothing, and none goes on for ever. */
static void who_processes_nothing_is_unavailable(void **state) {
  struct fixture *f = fixture(state);
  struct fake_host *host = send_to(f, "goaway-none", 100);
  for (size_t i = 0; i < 100; i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    if (outcome.cls != DUEBOX_UNAVAILABLE || strcmp(outcome.error_class, "http.goaway") != 0)
      fail_msg("task %zu: class %d, \"%s\": %s", i, (int)outcome.cls, outcome.error_class, outcome.message);
  }
  fake_host_free(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(requests_share_a_connection, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_was_sent_is_unknown, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_goaway_says_is_unprocessed_is_sent_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_goaway_says_may_be_processed_is_not_sent_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(who_processes_nothing_is_unavailable, set_up, tear_down),
      cmocka_unit_test_setup_teardown(flood_delays_nobody, set_up, tear_down),
      cmocka_unit_test_setup_teardown(handshakes_without_end_delay_nobody, set_up, tear_down),
      cmocka_unit_test_setup_teardown(response_that_is_given_up_is_unknown, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("http_h2", tests, NULL, NULL);
}
