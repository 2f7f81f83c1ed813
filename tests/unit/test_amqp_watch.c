/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_watch.c - what ends a connection that keeps a thread inside rabbitmq-c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugins/amqp/amqp_conn.h"
#include "plugins/amqp/amqp_watch.h"

enum { LONG_US = 60000000 };

/* Both ends of a TCP connection. */
static void connected(int ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t len = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
  assert_int_equal(listen(listener, 1), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(connect(ends[0], (struct sockaddr *)&address, len), 0);
  ends[1] = accept(listener, NULL, NULL);
  assert_true(ends[1] >= 0);
  close(listener);
}

static void closed(const int ends[2]) {
  close(ends[0]);
  close(ends[1]);
}

static void ends_when_the_time_is_over(void **state) {
  (void)state;
  int ends[2];
  char c;
  connected(ends);
  struct amqp_watch *watch = amqp_watch_start();
  assert_non_null(watch);
  int64_t end_us = amqp_now_us() + 200000;
  amqp_watch_limit(watch, ends[0], end_us, 1000);
  assert_int_equal(recv(ends[0], &c, 1, 0), 0); /* nobody else ends it */
  assert_true(amqp_now_us() >= end_us);
  assert_string_equal(amqp_watch_stop(watch), "the time for it is over");
  closed(ends);
}

/* What came before does not count, and a limit takes the place of the one before. */
static void ends_when_too_much_has_come(void **state) {
  (void)state;
  int ends[2];
  char bytes[1001] = {0};
  connected(ends);
  struct amqp_watch *watch = amqp_watch_start();
  assert_non_null(watch);
  amqp_watch_limit(watch, ends[0], amqp_now_us() + LONG_US, 1000);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(send(ends[1], bytes, 1000, 0), 1000);
    assert_int_equal(recv(ends[0], bytes, 1000, MSG_WAITALL), 1000);
    amqp_watch_limit(watch, ends[0], amqp_now_us() + LONG_US, 1000);
  }
  assert_int_equal(send(ends[1], bytes, 1001, 0), 1001);
  assert_int_equal(recv(ends[1], bytes, 1, 0), 0);
  assert_string_equal(amqp_watch_stop(watch), "it sent far more than was asked for");
  closed(ends);
}

static void leaves_alone_what_ends_in_time(void **state) {
  (void)state;
  int ends[2];
  char c = 'x';
  connected(ends);
  assert_null(amqp_watch_stop(NULL));
  struct amqp_watch *watch = amqp_watch_start();
  assert_non_null(watch);
  amqp_watch_limit(watch, ends[0], amqp_now_us() + LONG_US, 1000);
  assert_null(amqp_watch_stop(watch));
  assert_int_equal(send(ends[0], &c, 1, 0), 1);
  assert_int_equal(recv(ends[1], &c, 1, 0), 1);
  closed(ends);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ends_when_the_time_is_over),
      cmocka_unit_test(ends_when_too_much_has_come),
      cmocka_unit_test(leaves_alone_what_ends_in_time),
  };
  return cmocka_run_group_tests_name("amqp watch", tests, NULL, NULL);
}
