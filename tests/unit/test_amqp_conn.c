/* SPDX-License-Identifier: MIT
 *
 * rabbitmq-c skips heartbeats inside one call. A broker that writes them without a pause must not keep the driver: the
 * host would replace the instance three times and end the daemon then, with all routes. Whoever wakes the driver up
 * ends such a connection, and no other. The same for a frame of which the broker reads nothing.
 */
#include "plugins/amqp/amqp_conn.h"

#include <fcntl.h>
#include <netinet/in.h>
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
  atomic_store(&conn.inside, amqp_now_us() - 4 * SECOND_US);
  amqp_conn_wakeup(&conn);
  assert_false(is_open());
  assert_true(atomic_load(&conn.ended));
}

static void the_first_who_notices_ends_nothing(void **state) {
  (void)state;
  int64_t before = amqp_now_us();
  atomic_store(&conn.inside, 1);
  amqp_conn_wakeup(&conn);
  assert_true(atomic_load(&conn.inside) >= before); /* since when it is known */
  assert_true(is_open());
  assert_false(atomic_load(&conn.ended));
}

static char said[512];

static void note_reason(void *ctx, const char *reason) {
  (void)ctx;
  snprintf(said, sizeof said, "%s", reason);
}

static void drop_health(void *ctx, bool up, const char *text) { (void)ctx, (void)up, (void)text; }
static void drop_line(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) {
  (void)ctx, (void)level, (void)id, (void)fmt;
}

/* What it wrote need not have been heartbeats: over TLS it may be records that hold nothing, of which no frame comes.
 */
static void what_kept_the_driver_is_not_named_beyond_what_is_known(void **state) {
  (void)state;
  static const struct amqp_conn_user user = {.down = note_reason};
  static const struct duebox_host host = {.struct_size = sizeof host, .health = drop_health, .log = drop_line};
  conn.user = &user;
  conn.host = &host;
  conn.state = AMQP_CONN_UP;
  conn.next_beat_us = INT64_MAX;
  conn.link = amqp_new_connection();
  amqp_tcp_socket_set_sockfd(amqp_tcp_socket_new(conn.link), conn.fd);
  atomic_store(&conn.inside, amqp_now_us() - 4 * SECOND_US);
  amqp_conn_wakeup(&conn);
  amqp_conn_poll(&conn, 0, 0);
  assert_string_equal(said, "the broker wrote without a pause and without a frame, except perhaps heartbeats");
  conn.fd = dup(other_end); /* its own was closed with the connection */
}

static void who_does_not_read_is_left_alone(void **state) {
  (void)state;
  eventfd_t count = 0;
  amqp_conn_wakeup(&conn);
  assert_int_equal(atomic_load(&conn.inside), 0);
  assert_true(is_open());
  assert_int_equal(eventfd_read(conn.wake_fd, &count), 0); /* but is woken up */
}

/* --- sending --- */

/* Instead of the pair a connection of TCP, of which the kernel tells how full it is. Nobody reads it, and it is full.
 */
static void fill(void) {
  static const char away[4096];
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t len = sizeof address;
  int size = 32 * 1024, listener = socket(AF_INET, SOCK_STREAM, 0);
  close(conn.fd);
  close(other_end);
  conn.fd = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(listener, 1), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
  assert_int_equal(setsockopt(conn.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
  assert_int_equal(connect(conn.fd, (struct sockaddr *)&address, sizeof address), 0);
  other_end = accept(listener, NULL, NULL);
  close(listener);
  assert_int_equal(fcntl(conn.fd, F_SETFL, O_NONBLOCK), 0);
  while (send(conn.fd, away, sizeof away, 0) > 0)
    continue;
  len = sizeof size;
  assert_int_equal(getsockopt(conn.fd, SOL_SOCKET, SO_SNDBUF, &size, &len), 0);
  conn.send_buffer = (size_t)size;
  conn.state = AMQP_CONN_UP;
  conn.link = amqp_new_connection();
}

static void empty(void) {
  assert_int_equal(amqp_destroy_connection(conn.link), AMQP_STATUS_OK);
  conn.link = NULL;
}

/* poll() tells when a third of the buffer is free: waiting for more by it would spin. */
static void room_for_more_than_a_piece_is_looked_for_by_the_clock(void **state) {
  (void)state;
  char away[4096];
  fill();
  assert_false(amqp_conn_has_room(&conn, 2 * conn.send_buffer));
  assert_false(conn.want_write);
  assert_true(conn.look_at_us > 0);
  assert_false(amqp_conn_has_room(&conn, amqp_conn_piece(&conn)));
  assert_true(conn.want_write);
  while (!amqp_conn_has_room(&conn, 2 * conn.send_buffer)) /* an empty one takes anything */
    if (recv(other_end, away, sizeof away, MSG_DONTWAIT) <= 0)
      usleep(1000);
  empty();
}

static void *notice(void *arg) {
  (void)arg;
  while (atomic_load(&conn.inside) == 0)
    usleep(1000);
  atomic_store(&conn.inside, amqp_now_us() - 4 * SECOND_US);
  amqp_conn_wakeup(&conn);
  return NULL;
}

/* A frame goes out whole, and one that is larger than the buffer waits for a broker that may read nothing for as long
 * as it has an alarm. */
static void who_is_kept_sending_is_freed(void **state) {
  (void)state;
  static char frames[1 << 20];
  pthread_t other;
  struct amqp_target target = {.tls = false};
  conn.target = &target;
  fill();
  conn.gathered = frames;
  conn.gathered_len = sizeof frames;
  assert_int_equal(pthread_create(&other, NULL, notice, NULL), 0);
  amqp_conn_cork(&conn, false);
  pthread_join(other, NULL);
  assert_true(conn.failed);
  assert_string_equal(conn.reason, "the broker read nothing of a frame for some seconds");
  assert_int_equal(atomic_load(&conn.inside), 0);
  conn.gathered = NULL;
  empty();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(who_is_kept_for_seconds_is_freed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_first_who_notices_ends_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_kept_the_driver_is_not_named_beyond_what_is_known, set_up, tear_down),
      cmocka_unit_test_setup_teardown(who_does_not_read_is_left_alone, set_up, tear_down),
      cmocka_unit_test_setup_teardown(room_for_more_than_a_piece_is_looked_for_by_the_clock, set_up, tear_down),
      cmocka_unit_test_setup_teardown(who_is_kept_sending_is_freed, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("amqp_conn", tests, NULL, NULL);
}
