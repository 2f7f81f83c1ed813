/* SPDX-License-Identifier: MIT
 *
 * Bodies of requests: their limits, one by one and all together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "admin/http.h"
#include "admin/server.h"
#include "core/base/clock.h"
#include "support/admin_fixture.h"

/* A request whose body is n bytes of spaces, announced or chunked. */
static struct reply post_spaces(uint16_t port, size_t n, bool chunked) {
  char *text = malloc(n + 512);
  assert_non_null(text);
  int head = snprintf(text, 512, "POST /api/v1/results HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s",
                      FIXTURE_COMMAND);
  head += chunked ? snprintf(text + head, 128, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", n)
                  : snprintf(text + head, 128, "Content-Length: %zu\r\n\r\n", n);
  memset(text + head, ' ', n);
  size_t len = (size_t)head + n;
  if (chunked)
    len += (size_t)snprintf(text + len, 16, "\r\n0\r\n\r\n");
  struct reply reply = http_raw(port, text, len);
  free(text);
  return reply;
}

static void bodies_are_limited(void **state) {
  struct admin_fixture *fixture = *state;
  static const struct {
    size_t size;
    bool chunked;
    int status;
  } rows[] = {
      {HTTP_BODY_MAX, false, 200},    {HTTP_BODY_MAX, true, 200},     {HTTP_BODY_MAX + 1, false, 413},
      {HTTP_BODY_MAX + 1, true, 413}, {4 * HTTP_BODY_MAX, true, 413},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct reply reply = post_spaces(fixture->port, rows[i].size, rows[i].chunked);
    if (reply.status != rows[i].status)
      fail_msg("%zu bytes%s: %d instead of %d", rows[i].size, rows[i].chunked ? ", chunked" : "", reply.status,
               rows[i].status);
    http_free(&reply);
  }
  assert_int_equal(fixture->engine.results, 2);
  assert_int_equal(fixture->engine.body_len, HTTP_BODY_MAX);
}

static void endless_bodies_are_cut_off(void **state) {
  struct admin_fixture *fixture = *state;
  const char *announced =
      "POST /api/v1/results HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "Content-Length: 1000000000\r\n\r\n";
  struct reply reply = http_raw(fixture->port, announced, strlen(announced));
  assert_int_equal(reply.status, 413); /* before a byte of it was sent */
  http_free(&reply);

  const char *head =
      "POST /api/v1/results HTTP/1.1\r\nHost: localhost\r\n" FIXTURE_COMMAND "Transfer-Encoding: chunked\r\n\r\n";
  static char chunk[65536 + 9];
  memcpy(chunk, "10000\r\n", 7);
  memset(chunk + 7, ' ', 65536);
  memcpy(chunk + 7 + 65536, "\r\n", 2);
  int fd = http_connect(fixture->port), sent = 0;
  assert_true(http_send(fd, head, strlen(head)));
  while (sent < 1000 && http_send(fd, chunk, sizeof(chunk)))
    sent++;
  assert_in_range(sent, 16, 400); /* the limit, and what the buffers between hold */
  close(fd);
  assert_int_equal(fixture->engine.results, 0);
}

/* Connections that send a body of the largest size but for its last byte, and keep still. */
static void hold_bodies(uint16_t port, const char *path, int *fds, size_t count) {
  char *text = calloc(1, HTTP_BODY_MAX + 512);
  assert_non_null(text);
  int head =
      snprintf(text, 512, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", path, HTTP_BODY_MAX);
  memset(text + head, ' ', HTTP_BODY_MAX - 1);
  for (size_t i = 0; i < count; i++) {
    fds[i] = http_connect(port);
    assert_true(http_send(fds[i], text, (size_t)head + HTTP_BODY_MAX - 1));
  }
  free(text);
}

static void await_bodies(struct admin *admin, size_t bytes) {
  int64_t end = clock_mono_us() + INT64_C(60000000);
  while (atomic_load(&admin->bodies) != bytes && clock_mono_us() < end)
    usleep(1000);
  assert_int_equal(atomic_load(&admin->bodies), bytes);
}

/* Posts "done" with as many blanks behind it as make size bytes; Retry-After comes with 503 only. */
static void report_done(uint16_t port, size_t size, bool chunked, int status) {
  char body[SERVER_BODY_SHORT + 2], chunk[sizeof body + 64], seconds[16];
  snprintf(body, size + 1, "%-*s", (int)size, "{\"status\":\"done\"}");
  snprintf(chunk, sizeof(chunk), "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n", size, body);
  struct reply reply = http_request(port, "POST", "/callback/m-1/2/right", chunked ? chunk : "", chunked ? NULL : body);
  assert_int_equal(reply.status, status);
  assert_int_equal(http_header(&reply, "Retry-After", seconds, sizeof(seconds)), status == 503);
  http_free(&reply);
}

/* The port for the world: whoever was given a callback URL may send long bodies, but all of them together do not take
 * the daemon's memory; who comes then with a long one is told to come again. Short ones, as almost all results are, are
 * kept out by nobody. */
static void bodies_together_are_limited(void **state) {
  enum { ALL = SERVER_BODIES_MAX / HTTP_BODY_MAX };
  struct admin_fixture *fixture = *state;
  int fds[ALL];
  hold_bodies(fixture->callbacks_port, "/callback/m-1/2/right", fds, ALL);
  await_bodies(fixture->callbacks, SERVER_BODIES_MAX);
  report_done(fixture->callbacks_port, 17, false, 200);
  report_done(fixture->callbacks_port, SERVER_BODY_SHORT, false, 200);
  report_done(fixture->callbacks_port, SERVER_BODY_SHORT, true, 200);
  report_done(fixture->callbacks_port, SERVER_BODY_SHORT + 1, false, 503);
  report_done(fixture->callbacks_port, SERVER_BODY_SHORT + 1, true, 503);
  for (size_t i = 0; i < ALL; i++)
    close(fds[i]);
  await_bodies(fixture->callbacks, 0);
  report_done(fixture->callbacks_port, SERVER_BODY_SHORT + 1, false, 200);
}

/* Of a stranger who made up a callback URL nothing is kept. */
static void a_stranger_takes_no_memory(void **state) {
  struct admin_fixture *fixture = *state;
  int fds[4];
  hold_bodies(fixture->callbacks_port, "/callback/m-1/2/wrong", fds, ARRAY_LEN(fds));
  for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
    assert_int_equal(atomic_load(&fixture->callbacks->bodies), 0);
    assert_true(http_send(fds[i], " ", 1));
    struct reply reply = http_receive(fds[i], false);
    assert_int_equal(reply.status, 403);
    http_free(&reply);
    close(fds[i]);
  }
  assert_int_equal(atomic_load(&fixture->callbacks->bodies), 0);
}

/* Whoever is refused is read on for the sake of a readable answer, but no more than that is worth: a byte in a chunk of
 * its own costs as much time as a whole buffer, and the listener has one thread. */
static void a_strangers_chunks_are_soon_cut_off(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const heads[] = {"POST /callback/m-1/2/wrong", "POST /nowhere"};
  static char chunks[6 * 4096];
  enum { BUFFERS = 16 << 20, WHOLE = 40 << 20 };
  for (size_t i = 0; i < sizeof(chunks); i++)
    chunks[i] = "1\r\n \r\n"[i % 6];
  for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
    char head[256];
    size_t sent = 0;
    int fd = http_connect(fixture->callbacks_port);
    snprintf(head, sizeof(head), "%s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", heads[i]);
    assert_true(http_send(fd, head, strlen(head)));
    while (sent < WHOLE && http_send(fd, chunks, sizeof(chunks)))
      sent += sizeof(chunks);
    if (sent > BUFFERS)
      fail_msg("%s: %zu bytes of chunks were read", heads[i], sent);
    close(fd);
  }
}

/* An HMAC is not found by trying, so nobody is kept waiting: a crowd of strangers holds no connections. */
static void strangers_are_answered_at_once(void **state) {
  struct admin_fixture *fixture = *state;
  static const char text[] = "POST /callback/m-1/2/wrong HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
  int fds[MINDER_CROWD * 3 / 2];
  for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
    fds[i] = http_connect(fixture->callbacks_port);
    assert_true(http_send(fds[i], text, sizeof(text) - 1));
  }
  for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
    struct reply reply = http_receive(fds[i], false);
    if (reply.status != 403)
      fail_msg("stranger %zu: %d", i, reply.status);
    http_free(&reply);
    assert_true(http_closed(fds[i], 60000));
    close(fds[i]);
  }
}

#define BODY_TEST(test) cmocka_unit_test_setup_teardown(test, admin_fixture_setup, admin_fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      BODY_TEST(bodies_are_limited),
      BODY_TEST(endless_bodies_are_cut_off),
      BODY_TEST(bodies_together_are_limited),
      BODY_TEST(a_stranger_takes_no_memory),
      BODY_TEST(a_strangers_chunks_are_soon_cut_off),
      BODY_TEST(strangers_are_answered_at_once),
  };
  return cmocka_run_group_tests_name("admin bodies", tests, NULL, NULL);
}
