/* SPDX-License-Identifier: MIT
 *
 * rabbitmq-c skips heartbeats inside one call. A broker that writes them without a pause must not keep the driver: the
 * host would replace the instance three times and end the daemon then, with all routes. Whoever wakes the driver up
 * ends such a connection, and no other.
 */
#include "plugins/amqp/amqp_conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECOND_US = 1000000 };

static struct amqp_conn conn;
static int other_end;

static int set_up(void **state) {
  int pair[2];
  (void)state;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  conn = (struct amqp_conn){.fd = pair[0], .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  pthread_mutex_init(&conn.lock, NULL);
  other_end = pair[1];
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  close(conn.fd);
  close(conn.wake_fd);
  close(other_end);
  pthread_mutex_destroy(&conn.lock);
  return 0;
}

static bool is_open(void) {
  char byte;
  return recv(other_end, &byte, 1, MSG_DONTWAIT) < 0; /* 0: its other end is shut */
}

static void who_is_kept_for_seconds_is_freed(void **state) {
  (void)state;
  atomic_store(&conn.reading, amqp_now_us() - 4 * SECOND_US);
  amqp_conn_wakeup(&conn);
  assert_false(is_open());
  assert_true(atomic_load(&conn.ended));
}

static void the_first_who_notices_ends_nothing(void **state) {
  (void)state;
  int64_t before = amqp_now_us();
  atomic_store(&conn.reading, 1);
  amqp_conn_wakeup(&conn);
  assert_true(atomic_load(&conn.reading) >= before); /* since when it is known */
  assert_true(is_open());
  assert_false(atomic_load(&conn.ended));
}

static char said[512];

static void note_reason(void *ctx, const char *reason) {
  (void)ctx;
  snprintf(said, sizeof said, "%s", reason);
}

static void drop_health(void *ctx, bool up, const char *text) { (void)ctx, (void)up, (void)text; }

/* What it wrote need not have been heartbeats: over TLS it may be records that hold nothing, of which no frame comes.
 */
static void what_kept_the_driver_is_not_named_beyond_what_is_known(void **state) {
  (void)state;
  static const struct amqp_conn_user user = {.down = note_reason};
  static const struct duebox_host host = {.struct_size = sizeof host, .health = drop_health};
  conn.user = &user;
  conn.host = &host;
  conn.said_down = true;
  conn.state = AMQP_CONN_UP;
  conn.next_beat_us = INT64_MAX;
  conn.link = amqp_new_connection();
  amqp_tcp_socket_set_sockfd(amqp_tcp_socket_new(conn.link), conn.fd);
  atomic_store(&conn.reading, amqp_now_us() - 4 * SECOND_US);
  amqp_conn_wakeup(&conn);
  amqp_conn_poll(&conn, 0, 0);
  assert_string_equal(said, "the broker wrote without a pause and without a frame, except perhaps heartbeats");
  conn.fd = dup(other_end); /* its own was closed with the connection */
}

static void who_does_not_read_is_left_alone(void **state) {
  (void)state;
  eventfd_t count = 0;
  amqp_conn_wakeup(&conn);
  assert_int_equal(atomic_load(&conn.reading), 0);
  assert_true(is_open());
  assert_int_equal(eventfd_read(conn.wake_fd, &count), 0); /* but is woken up */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(who_is_kept_for_seconds_is_freed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_first_who_notices_ends_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_kept_the_driver_is_not_named_beyond_what_is_known, set_up, tear_down),
      cmocka_unit_test_setup_teardown(who_does_not_read_is_left_alone, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("amqp_conn", tests, NULL, NULL);
}
