/* SPDX-License-Identifier: MIT
 *
 * When there are more connections than the listener likes, those are closed that keep it waiting, and no other: a
 * consumer whose callback has arrived, or is just arriving, gets an answer however many others call at that moment.
 * (All calls come from one address where a proxy is in front; the 65th used to be closed without a word.)
 */
#include "admin/minder.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"

enum { CLIENTS = 2 * MINDER_CROWD, LIMIT_US = 60 * 1000 * 1000 };

struct fixture {
  struct minder *minder;
  struct {
    int ours, theirs;
    struct watch *watch;
  } clients[CLIENTS];
};

static struct fixture fixture;

static void nap(int64_t ms) { nanosleep(&(struct timespec){.tv_nsec = (long)(ms * 1000000)}, NULL); }

static bool is_closed(const struct fixture *f, size_t i) {
  char byte;
  return recv(f->clients[i].theirs, &byte, 1, MSG_DONTWAIT) == 0;
}

static size_t count_closed(const struct fixture *f) {
  size_t count = 0;
  for (size_t i = 0; i < CLIENTS; i++)
    count += is_closed(f, i);
  return count;
}

static void arm(struct fixture *f, size_t i) {
  minder_arm(f->minder, f->clients[i].watch, clock_mono_us() + 2 * (int64_t)LIMIT_US);
}

/* Clients of one address, each of which has sent a byte that nobody has read yet. */
static int open_clients(void **state) {
  struct fixture *f = *state = &fixture;
  const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct err err;
  assert_true(minder_start(MINDER_CROWD, &f->minder, &err));
  for (size_t i = 0; i < CLIENTS; i++) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    f->clients[i].ours = pair[0];
    f->clients[i].theirs = pair[1];
    assert_int_equal(write(pair[1], "P", 1), 1);
    f->clients[i].watch = minder_watch(f->minder, pair[0], (const struct sockaddr *)(const void *)&address);
    assert_non_null(f->clients[i].watch);
    arm(f, i);
  }
  return 0;
}

static int close_clients(void **state) {
  struct fixture *f = *state;
  for (size_t i = 0; i < CLIENTS; i++) {
    minder_unwatch(f->minder, f->clients[i].watch);
    close(f->clients[i].ours);
    close(f->clients[i].theirs);
  }
  minder_stop(&f->minder);
  return 0;
}

static void read_byte(struct fixture *f, size_t i) {
  char byte;
  assert_int_equal(read(f->clients[i].ours, &byte, 1), 1);
}

static void wait_closed(struct fixture *f, size_t i) {
  for (int64_t end = clock_mono_us() + LIMIT_US; !is_closed(f, i); nap(1))
    assert_true(clock_mono_us() < end);
}

static void requests_that_have_arrived_are_not_closed(void **state) {
  struct fixture *f = *state;
  assert_true(minder_is_crowded(f->minder));
  nap(3 * MINDER_QUIET_MS);
  assert_int_equal(count_closed(f), 0);
  for (size_t i = 0; i < 10; i++) { /* they are complete, and it is our turn */
    minder_begun(f->minder, f->clients[i].watch, true);
    minder_arm(f->minder, f->clients[i].watch, 0);
    read_byte(f, i);
  }
  nap(3 * MINDER_QUIET_MS);
  assert_int_equal(count_closed(f), 0);
}

static void who_says_nothing_makes_room(void **state) {
  struct fixture *f = *state;
  read_byte(f, 20);
  wait_closed(f, 20);
  assert_int_equal(count_closed(f), 1);
  minder_begun(f->minder, f->clients[30].watch, true); /* its body never comes */
  read_byte(f, 30);
  wait_closed(f, 30);
  assert_int_equal(count_closed(f), 2);
}

/* As many as there are too many, not one more. */
static void the_oldest_make_room(void **state) {
  struct fixture *f = *state;
  for (size_t i = 0; i < CLIENTS; i++)
    read_byte(f, i);
  for (size_t i = 0; i < CLIENTS - MINDER_CROWD; i++)
    wait_closed(f, i);
  nap(3 * MINDER_QUIET_MS);
  assert_int_equal(count_closed(f), CLIENTS - MINDER_CROWD);
  assert_false(minder_is_crowded(f->minder));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(requests_that_have_arrived_are_not_closed, open_clients, close_clients),
      cmocka_unit_test_setup_teardown(who_says_nothing_makes_room, open_clients, close_clients),
      cmocka_unit_test_setup_teardown(the_oldest_make_room, open_clients, close_clients),
  };
  return cmocka_run_group_tests_name("minder", tests, NULL, NULL);
}
