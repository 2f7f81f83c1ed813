/* SPDX-License-Identifier: MIT
 *
 * The admin listener as a server: limits, slow and hostile clients, hanging handlers, start and stop.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "admin/http.h"
#include "admin/server.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "support/admin_fixture.h"

static void unknown_paths_and_methods(void **state) {
  struct admin_fixture *fixture = *state;
  char allow[32];
  fixture_problem(fixture, "GET", "/nothing", "", NULL, 404, "not_found");
  fixture_problem(fixture, "GET", "/api/v1/tasks/%00/cancel", "", NULL, 404, "not_found");
  fixture_problem(fixture, "BREW", "/", "", NULL, 405, "method_not_allowed");
  struct reply reply = http_request(fixture->port, "DELETE", "/api/v1/reload", "", NULL);
  assert_int_equal(reply.status, 405);
  assert_true(http_header(&reply, "Allow", allow, sizeof(allow)));
  assert_string_equal(allow, "POST");
  http_free(&reply);
}

static void missing_tokens_are_asked_for(void **state) {
  struct admin_fixture *fixture = *state;
  char challenge[64];
  struct reply reply = http_request(fixture->port, "POST", "/api/v1/reload", "", NULL);
  assert_int_equal(reply.status, 401);
  assert_true(http_header(&reply, "WWW-Authenticate", challenge, sizeof(challenge)));
  assert_string_equal(challenge, "Bearer realm=\"duebox\"");
  http_free(&reply);
  fixture_problem(fixture, "GET", "/metrics", "Host: evil.example\r\n", NULL, 403, "host");
  fixture_problem(fixture, "GET", "/metrics", "Via: 1.1 proxy\r\n", NULL, 401, "unauthorized");
  fixture_problem(fixture, "POST", "/api/v1/reload", FIXTURE_BEARER "Content-Type: text/plain\r\n", "{}", 415,
                  "media_type");
  fixture_problem(fixture, "POST", "/api/v1/reload", FIXTURE_COMMAND "Origin: http://evil.example\r\n", "{}", 403,
                  "origin");
  assert_int_equal(fixture->reloads, 0);
}

static void a_command_without_a_body_needs_no_type(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const bodies[] = {NULL, ""};
  for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
    struct reply reply = http_request(fixture->port, "POST", "/api/v1/reload", FIXTURE_BEARER, bodies[i]);
    assert_int_equal(reply.status, 200);
    http_free(&reply);
    fixture_problem(fixture, "POST", "/api/v1/reload", FIXTURE_BEARER "Origin: http://evil.example\r\n", bodies[i], 403,
                    "origin");
  }
  assert_int_equal(fixture->reloads, 2);
  fixture_problem(fixture, "POST", "/api/v1/reload", FIXTURE_BEARER, "{}", 415, "media_type");
  fixture_problem(fixture, "POST", "/api/v1/reload",
                  FIXTURE_BEARER "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", NULL, 415, "media_type");
}

/* Whether somebody else was answered before the guess can have been. */
static bool guess(struct admin_fixture *fixture) {
  const char *text = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess\r\n\r\n";
  int fd = http_connect(fixture->port);
  int64_t start = clock_mono_us();
  assert_true(http_send(fd, text, strlen(text)));
  struct reply other = http_request(fixture->port, "GET", "/metrics", FIXTURE_BEARER, NULL);
  int64_t took = clock_mono_us() - start;
  assert_int_equal(other.status, 200);
  http_free(&other);
  struct reply reply = http_receive(fd, false);
  assert_int_equal(reply.status, 401);
  assert_true(clock_mono_us() - start >= 500000);
  http_free(&reply);
  close(fd);
  return took < 450000;
}

/* A busy machine may be slow once; if others had to wait for the guess, every try would show it. */
static void a_guess_is_answered_late_and_alone(void **state) {
  bool alone = guess(*state);
  for (int again = 0; !alone && again < 10; again++)
    alone = guess(*state);
  assert_true(alone); /* nobody else waits */
}

static void connections_are_kept_alive(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const requests[] = {
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "HEAD /api/v1/stats HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_BEARER "\r\n",
      "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "Content-Length: 2\r\n\r\n{}",
      "GET /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody",
      "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n",
  };
  static const int statuses[] = {200, 200, 200, 404, 200};
  int fd = http_connect(fixture->port);
  for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
    assert_true(http_send(fd, requests[i], strlen(requests[i])));
    struct reply reply = http_receive(fd, requests[i][0] == 'H');
    if (reply.status != statuses[i])
      fail_msg("request %zu: %d", i, reply.status);
    http_free(&reply);
  }
  close(fd);
}

static void headers_are_limited(void **state) {
  struct admin_fixture *fixture = *state;
  static const struct {
    size_t size;
    int status;
  } rows[] = {{15000, 200}, {17000, 431}, {100000, 431}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char *header = malloc(rows[i].size + 16);
    assert_non_null(header);
    memcpy(header, "X-Long: ", 8);
    memset(header + 8, 'x', rows[i].size);
    memcpy(header + 8 + rows[i].size, "\r\n", 3);
    struct reply reply = http_request(fixture->port, "GET", "/healthz", header, NULL);
    if (reply.status != rows[i].status)
      fail_msg("%zu bytes of header: %d instead of %d", rows[i].size, reply.status, rows[i].status);
    http_free(&reply);
    free(header);
  }
}

/* A byte a second keeps libmicrohttpd's own clock running for ever; ours counts the whole request. */
static void slow_clients_are_cut_off(void **state) {
  struct admin_fixture *fixture = *state;
  const char *head = "GET /healthz HTTP/1.1\r\nX-Slow: ";
  int64_t start = clock_mono_us();
  int fd = http_connect(fixture->port), silent = http_connect(fixture->port);
  assert_true(http_send(fd, head, strlen(head)));
  int bytes = 0;
  while (bytes < 20 && !http_closed(fd, 1000) && http_send(fd, "x", 1))
    bytes++;
  int64_t took = clock_mono_us() - start;
  if (bytes == 20 || took < 9000000)
    fail_msg("a client of one byte a second was cut off after %lld ms and %d bytes", (long long)took / 1000, bytes);
  assert_true(http_closed(silent, 5000));
  close(fd);
  close(silent);
}

/* Who opens connections and says nothing pushes out only itself: a liveness probe gets its answer all the same. */
static void silent_clients_keep_nobody_out(void **state) {
  struct admin_fixture *fixture = *state;
  int fds[SERVER_CONNECTIONS + MINDER_CROWD]; /* more than it has connections, and as many descriptors of its own */
  struct rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
  for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
    fds[i] = http_connect(fixture->port);
    assert_true(fds[i] >= 0);
    if (i % 2)
      assert_true(http_send(fds[i], "GET /healthz HT", 15));
  }
  int64_t start = clock_mono_us();
  for (int i = 0; i < 5; i++) {
    struct reply reply = http_request(fixture->port, "GET", "/healthz", "", NULL);
    assert_int_equal(reply.status, 200);
    http_free(&reply);
  }
  assert_true(clock_mono_us() - start < SERVER_STEP_MS * 1000LL); /* it did not wait for them to be cut off */
  assert_true(http_closed(fds[0], 5000));                         /* the oldest had to go ... */
  const char *rest = "TP/1.1\r\nHost: localhost\r\n\r\n";
  assert_true(http_send(fds[ARRAY_LEN(fds) - 1], rest, strlen(rest))); /* ... and the newest may still ask */
  struct reply reply = http_receive(fds[ARRAY_LEN(fds) - 1], false);
  assert_int_equal(reply.status, 200);
  http_free(&reply);
  for (size_t i = 0; i < ARRAY_LEN(fds); i++)
    close(fds[i]);
}

/* A proxy in front may have seen another request than we do where such headers contradict each other. */
static void ambiguous_requests_are_refused(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const headers[] = {
      "Content-Length: 2\r\nContent-Length: 2\r\n",
      "Content-Length: 2\r\nContent-Length: 3\r\n",
      "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\ncontent-length: 2\r\n",
      "Content-Length: 2\r\nContent-Type: text/plain\r\n",
      "Content-Length: 2\r\nHost: other\r\n",
      "Content-Length: 2\r\nAuthorization: Bearer guess\r\n",
      "Transfer-Encoding : chunked\r\n",
      "Content-Length : 2\r\n",
      "Transfer-Encoding: identity, chunked\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Content-Length: 2\r\nX-Any : 1\r\n",
      "Content-Length: 2\r\nX-Any: a\rTransfer-Encoding: chunked\r\n",
      "Content-Length: 2\r\nX-Any: a\x01z\r\n",
      "Content-Length: 2\r\nX-Any: a\x7fz\r\n",
      "Content-Length: 2\r\nContent\x01Length: 3\r\n",
  };
  for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
    char text[512], connection[16];
    snprintf(text, sizeof(text), "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "%s\r\n{}",
             headers[i]);
    int fd = http_connect(fixture->port);
    assert_true(http_send(fd, text, strlen(text)));
    struct reply reply = http_receive(fd, false);
    if (reply.status != 400 || !http_header(&reply, "Connection", connection, sizeof(connection)))
      fail_msg("%s: %d", headers[i], reply.status);
    assert_string_equal(connection, "close");
    http_free(&reply);
    close(fd);
  }
  assert_int_equal(fixture->reloads, 0);
}

/* RFC 9112 section 6.1: HTTP/1.0 has no Transfer-Encoding, and who forwards one has not understood it. */
static void http_1_0_has_no_chunks(void **state) {
  struct admin_fixture *fixture = *state;
  static const char text[] = "POST /api/v1/reload HTTP/1.0\r\nHost: localhost\r\n" FIXTURE_COMMAND
                             "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
  char connection[16];
  int fd = http_connect(fixture->port);
  assert_true(http_send(fd, text, strlen(text)));
  struct reply reply = http_receive(fd, false);
  assert_int_equal(reply.status, 400);
  assert_true(!http_header(&reply, "Connection", connection, sizeof(connection)) || strcmp(connection, "close") == 0);
  assert_int_equal(fixture->reloads, 0);
  http_free(&reply);
  close(fd);
}

/* A proxy may see the end of chunks elsewhere (libmicrohttpd takes a bare LF for CRLF): what it forwards as their
 * content must not become a request, nor another's request their content for long. */
static void nothing_behind_chunks_is_a_request(void **state) {
  struct admin_fixture *fixture = *state;
  static const char head[] =
      "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "Transfer-Encoding: chunked\r\n\r\n";
  static const char *const chunks[] = {"2\r\n{}\r\n0\r\n\r\n", "2\n{}\n0\n\n", "2\n{}\r\n0\r\n\r\n",
                                       "2;\n{}\n0\r\n\r\n", "0\n\n"};
  static const char smuggled[] =
      "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "Content-Length: 2\r\n\r\n{}";
  for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
    unsigned before = fixture->reloads;
    char connection[16];
    int fd = http_connect(fixture->port);
    assert_true(http_send(fd, head, sizeof(head) - 1) && http_send(fd, chunks[i], strlen(chunks[i])) &&
                http_send(fd, smuggled, sizeof(smuggled) - 1));
    struct reply reply = http_receive(fd, false);
    if (reply.status && !http_header(&reply, "Connection", connection, sizeof(connection)))
      fail_msg("%s: the connection is kept", chunks[i]);
    assert_true(http_closed(fd, 60000));
    assert_in_range(fixture->reloads - before, 0, 1);
    http_free(&reply);
    close(fd);
  }
}

static int connect_from(uint32_t host, uint16_t port) {
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)},
                     to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
  return fd;
}

/* While a database hangs, or is slow: one peer had all workers and all connections, and the callbacks of others waited
 * for its own. */
static void a_flood_of_callbacks_keeps_no_other_out(void **state) {
  enum { FLOOD = 400, OTHERS = 4 };
  struct admin_fixture *fixture = *state;
  static const char text[] = "POST /callback/m-1/2/right HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n"
                             "{\"status\":\"done\"}";
  int fds[FLOOD], others[OTHERS];
  unsigned refused = 0, served = 0;
  fake_engine_hang(&fixture->engine, true);
  for (size_t i = 0; i < FLOOD; i++) {
    fds[i] = http_connect(fixture->callbacks_port);
    assert_true(http_send(fds[i], text, sizeof(text) - 1));
  }
  assert_true(fake_engine_await_hanging(&fixture->engine, 64));
  for (size_t i = 0; i < OTHERS; i++) {
    others[i] = connect_from(INADDR_LOOPBACK + 1, fixture->callbacks_port);
    assert_true(http_send(others[i], text, sizeof(text) - 1));
  }
  assert_true(fake_engine_await_hanging(&fixture->engine, 64 + OTHERS));
  fake_engine_hang(&fixture->engine, false);
  for (size_t i = 0; i < OTHERS; i++) {
    struct reply reply = http_receive(others[i], false);
    assert_int_equal(reply.status, 200);
    http_free(&reply);
    close(others[i]);
  }
  for (size_t i = 0; i < FLOOD; i++) {
    char seconds[16];
    struct reply reply = http_receive(fds[i], false);
    served += reply.status == 200;
    refused += reply.status == 503;
    assert_int_equal(http_header(&reply, "Retry-After", seconds, sizeof(seconds)), reply.status == 503);
    http_free(&reply);
    close(fds[i]);
  }
  assert_int_equal(served + refused, FLOOD);
  assert_in_range(refused, 1, FLOOD - 64);
}

/* RFC 9112 section 3.2; HTTP/1.0 has no such rule, and old probes have no such header. */
static void a_host_must_be_named(void **state) {
  struct admin_fixture *fixture = *state;
  static const struct {
    const char *text;
    int status;
  } rows[] = {{"GET /healthz HTTP/1.1\r\n\r\n", 400},
              {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
              {"GET /healthz HTTP/1.0\r\n\r\n", 200}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    int fd = http_connect(fixture->port);
    assert_true(http_send(fd, rows[i].text, strlen(rows[i].text)));
    struct reply reply = http_receive(fd, false);
    assert_int_equal(reply.status, rows[i].status);
    http_free(&reply);
    close(fd);
  }
}

/* Guessing must not become quick, nor pass unseen, by announcing a body that nobody would read. */
static void a_guess_with_a_huge_body_is_late_too(void **state) {
  struct admin_fixture *fixture = *state;
  char line[1024] = "";
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_JSON, ends[1]);
  static const char text[] = "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess\r\n"
                             "Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n";
  int64_t start = clock_mono_us();
  struct reply reply = http_raw(fixture->port, text, sizeof(text) - 1);
  assert_int_equal(reply.status, 401);
  assert_true(clock_mono_us() - start >= SERVER_WRONG_TOKEN_MS * 1000LL);
  http_free(&reply);
  log_setup(LOG_LEVEL_INFO, LOG_FORMAT_AUTO, STDERR_FILENO);
  close(ends[1]); /* without the line reading would have no end */
  assert_true(read(ends[0], line, sizeof line - 1) > 0);
  assert_non_null(strstr(line, "DUEBOX-ADMIN-WRONG-TOKEN"));
  close(ends[0]);
}

/* Nor by chunks that never end: the connection is closed without an answer, and no sooner than one would come. */
static void a_guess_with_endless_chunks_is_late_too(void **state) {
  struct admin_fixture *fixture = *state;
  static const char head[] = "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess\r\n"
                             "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  int64_t start = clock_mono_us();
  int fd = http_connect(fixture->port);
  assert_true(http_send(fd, head, sizeof(head) - 1));
  while (http_send(fd, "1\r\n \r\n1\r\n \r\n", 12))
    continue;
  assert_true(clock_mono_us() - start >= SERVER_WRONG_TOKEN_MS * 1000LL);
  close(fd);
}

static void *ask_to_cancel(void *arg) {
  struct admin_fixture *fixture = arg;
  struct reply reply = http_request(fixture->port, "POST", "/api/v1/tasks/17/cancel", FIXTURE_COMMAND, "{}");
  intptr_t status = reply.status;
  http_free(&reply);
  return (void *)status;
}

enum { ASKERS = 20, SLOW_WORKERS = 7 };

static void a_hanging_database_blinds_nobody(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const paths[] = {"/healthz", "/metrics", "/api/v1/stats", "/readyz", "/"};
  pthread_t threads[ASKERS];
  fake_engine_hang(&fixture->engine, true);
  for (int i = 0; i < ASKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, ask_to_cancel, fixture), 0);
  assert_true(fake_engine_await_hanging(&fixture->engine, SLOW_WORKERS));
  for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
    struct reply reply = http_request(fixture->port, "GET", paths[i], FIXTURE_BEARER, NULL);
    assert_int_equal(reply.status, 200);
    http_free(&reply);
  }
  fake_engine_hang(&fixture->engine, false);
  for (int i = 0; i < ASKERS; i++) {
    void *status;
    pthread_join(threads[i], &status);
    assert_int_equal((intptr_t)status, 200);
  }
  assert_int_equal(fixture->engine.commands, ASKERS);
}

static void *stop(void *arg) {
  admin_stop(arg);
  return NULL;
}

/* What runs is finished and answered, what has not begun is refused, and nothing is left hanging. */
static void stopping_answers_everyone(void **state) {
  struct admin_fixture *fixture = *state;
  pthread_t threads[ASKERS], stopper;
  fake_engine_hang(&fixture->engine, true);
  for (int i = 0; i < ASKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, ask_to_cancel, fixture), 0);
  assert_true(fake_engine_await_hanging(&fixture->engine, SLOW_WORKERS));
  assert_int_equal(pthread_create(&stopper, NULL, stop, &fixture->admin), 0);
  int64_t limit = clock_mono_us() + 10000000;
  for (int fd; clock_mono_us() < limit && (fd = http_connect(fixture->port)) >= 0; usleep(1000))
    close(fd); /* until the listener is gone: then it is stopping */
  fake_engine_hang(&fixture->engine, false);
  int done = 0, refused = 0, lost = 0;
  for (int i = 0; i < ASKERS; i++) {
    void *status;
    pthread_join(threads[i], &status);
    done += (intptr_t)status == 200;
    refused += (intptr_t)status == 503;
    lost += (intptr_t)status == 0;
  }
  pthread_join(stopper, NULL);
  assert_null(fixture->admin);
  assert_int_equal(done, fixture->engine.commands); /* who was told 200 was served, and nobody else */
  assert_in_range(done, SLOW_WORKERS, ASKERS);
  assert_int_equal(done + refused + lost, ASKERS);
  assert_in_range(lost, 0, ASKERS - SLOW_WORKERS); /* connections that were never accepted */
}

static void a_guesser_does_not_hold_up_the_stop(void **state) {
  struct admin_fixture *fixture = *state;
  const char *guess = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess\r\n\r\n";
  int fds[16];
  for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
    fds[i] = http_connect(fixture->port);
    assert_true(http_send(fds[i], guess, strlen(guess)));
  }
  struct reply reply = http_request(fixture->port, "GET", "/healthz", "", NULL); /* accepted after the others */
  assert_int_equal(reply.status, 200);
  http_free(&reply);
  int64_t start = clock_mono_us();
  admin_stop(&fixture->admin);
  assert_true(clock_mono_us() - start < 3000000);
  for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
    reply = http_receive(fds[i], false);
    assert_true(reply.status == 401 || reply.status == 0);
    http_free(&reply);
    assert_true(http_closed(fds[i], 5000));
    close(fds[i]);
  }
}

static void what_cannot_start_says_why(void **state) {
  struct admin_fixture *fixture = *state;
  struct admin_hooks hooks = {0};
  struct admin *admin;
  struct err err = {0};
  struct admin_config taken = {.host = "127.0.0.1", .port = fixture->port};
  assert_false(admin_start(&fixture->engine, &taken, &hooks, &admin, &err));
  assert_null(admin);
  assert_non_null(strstr(err.text, "another daemon"));
  assert_non_null(strstr(err.text, "other listener"));
  struct admin_config open = {.host = "0.0.0.0"};
  assert_false(admin_start(&fixture->engine, &open, &hooks, &admin, &err));
  assert_non_null(strstr(err.text, "admin.token_file"));
}

static void ipv6_is_served_too(void **state) {
  struct admin_fixture *fixture = *state;
  struct admin_hooks hooks = {0};
  struct admin_config config = {.host = "::1"};
  struct admin *admin;
  struct err err = {0};
  if (!admin_start(&fixture->engine, &config, &hooks, &admin, &err))
    skip(); /* a machine without IPv6 */
  assert_int_not_equal(admin_port(admin), 0);
  admin_stop(&admin);
}

static void the_page_is_strict(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const files[][2] = {
      {"/", "text/html; charset=utf-8"},
      {"/style.css", "text/css; charset=utf-8"},
      {"/script.js", "text/javascript; charset=utf-8"},
      {"/icon.svg", "image/svg+xml"},
      {"/robots.txt", "text/plain; charset=utf-8"},
  };
  static const char *const headers[][2] = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
  };
  static const char *const inline_code[] = {
      "<script>",           "<style",         " style=", " onclick", " onload", "javascript:", "innerHTML", "outerHTML",
      "insertAdjacentHTML", "document.write", "eval("};
  char value[512];
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    struct reply reply = http_request(fixture->port, "GET", files[i][0], "", NULL);
    assert_int_equal(reply.status, 200);
    assert_true(http_header(&reply, "Content-Type", value, sizeof(value)));
    assert_string_equal(value, files[i][1]);
    for (size_t h = 0; h < ARRAY_LEN(headers); h++) {
      assert_true(http_header(&reply, headers[h][0], value, sizeof(value)));
      assert_string_equal(value, headers[h][1]);
    }
    for (size_t c = 0; c < ARRAY_LEN(inline_code); c++)
      if (strstr(reply.body, inline_code[c]))
        fail_msg("%s holds \"%s\"", files[i][0], inline_code[c]);
    http_free(&reply);
  }
}

static void garbage_harms_nobody(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const texts[] = {
      "\r\n\r\n\r\n",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET /\0/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      "POST /api/v1/results HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "Content-Length: -1\r\n\r\n",
      "POST /api/v1/results HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND
      "Content-Length: 99999999999999999999999\r\n\r\n",
      "POST /api/v1/results HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  };
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    int fd = http_connect(fixture->port);
    assert_true(http_send(fd, texts[i], strlen(texts[i])));
    close(fd);
  }
  struct reply reply = http_request(fixture->port, "GET", "/healthz", "", NULL);
  assert_int_equal(reply.status, 200);
  http_free(&reply);
  assert_int_equal(fixture->engine.results, 0);
}

#define SERVER_TEST(test) cmocka_unit_test_setup_teardown(test, admin_fixture_setup, admin_fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      SERVER_TEST(unknown_paths_and_methods),
      SERVER_TEST(missing_tokens_are_asked_for),
      SERVER_TEST(a_command_without_a_body_needs_no_type),
      SERVER_TEST(a_guess_is_answered_late_and_alone),
      SERVER_TEST(connections_are_kept_alive),
      SERVER_TEST(headers_are_limited),
      SERVER_TEST(slow_clients_are_cut_off),
      SERVER_TEST(silent_clients_keep_nobody_out),
      SERVER_TEST(ambiguous_requests_are_refused),
      SERVER_TEST(http_1_0_has_no_chunks),
      SERVER_TEST(a_host_must_be_named),
      SERVER_TEST(nothing_behind_chunks_is_a_request),
      SERVER_TEST(a_flood_of_callbacks_keeps_no_other_out),
      SERVER_TEST(a_guess_with_a_huge_body_is_late_too),
      SERVER_TEST(a_guess_with_endless_chunks_is_late_too),
      SERVER_TEST(a_hanging_database_blinds_nobody),
      SERVER_TEST(stopping_answers_everyone),
      SERVER_TEST(a_guesser_does_not_hold_up_the_stop),
      SERVER_TEST(what_cannot_start_says_why),
      SERVER_TEST(ipv6_is_served_too),
      SERVER_TEST(the_page_is_strict),
      SERVER_TEST(garbage_harms_nobody),
  };
  return cmocka_run_group_tests_name("admin server", tests, NULL, NULL);
}
