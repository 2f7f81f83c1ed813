/* SPDX-License-Identifier: MIT
 *
 * The supervisor's socket: what is sent there, and that one who does not read it holds nobody up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/notify.h"

/* A supervisor that reads when it is asked to. */
static int supervisor(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char name[64];
  int len = snprintf(name, sizeof name, "@duebox-test-notify-%d", (int)getpid());
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
  assert_int_equal(
      bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)), 0);
  setenv("NOTIFY_SOCKET", name, 1);
  return fd;
}

static const char *next_of(int fd) {
  static char text[64];
  ssize_t len = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
  text[len > 0 ? len : 0] = '\0';
  return text;
}

static void a_state_arrives(void **state) {
  struct notifier n;
  int fd = supervisor();
  notify_init(&n);
  notify_state(&n, "READY=1");
  notify_alive(&n);
  assert_string_equal(next_of(fd), "READY=1");
  assert_string_equal(next_of(fd), "WATCHDOG=1");
  assert_string_equal(next_of(fd), "");
  close(fd);
  notify_destroy(&n);
}

/* One that stands still, while its socket is open, used to stop the main thread in a call, and with it all signals. */
static void what_is_not_read_waits_for_nobody(void **state) {
  enum { MANY = 10000 }; /* more than a socket holds (net.unix.max_dgram_qlen) */
  struct notifier n;
  int fd = supervisor();
  notify_init(&n);
  for (int i = 0; i < MANY; i++)
    notify_alive(&n);
  notify_state(&n, "READY=1");
  notify_state(&n, "STOPPING=1");
  while (*next_of(fd))
    ;
  notify_alive(&n); /* the last state first, once */
  notify_alive(&n);
  assert_string_equal(next_of(fd), "STOPPING=1");
  assert_string_equal(next_of(fd), "WATCHDOG=1");
  assert_string_equal(next_of(fd), "WATCHDOG=1");
  assert_string_equal(next_of(fd), "");
  close(fd);
  notify_destroy(&n);
}

static void without_a_supervisor_nothing_happens(void **state) {
  static const char *const sockets[] = {"", "@", "/nonexistent/socket"};
  struct notifier n;
  char longest[300];
  notify_init(&n);
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  for (size_t i = 0; i < sizeof sockets / sizeof sockets[0]; i++) {
    setenv("NOTIFY_SOCKET", sockets[i], 1);
    notify_state(&n, "READY=1");
    notify_alive(&n);
  }
  setenv("NOTIFY_SOCKET", longest, 1);
  notify_state(&n, "READY=1");
  unsetenv("NOTIFY_SOCKET");
  notify_state(&n, "READY=1");
  notify_alive(&n);
  notify_destroy(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_state_arrives),
      cmocka_unit_test(what_is_not_read_waits_for_nobody),
      cmocka_unit_test(without_a_supervisor_nothing_happens),
  };
  return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
