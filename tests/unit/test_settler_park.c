/* SPDX-License-Identifier: MIT
 *
 * Outcomes whose rows somebody keeps locked: when they leave their places, and when that is said. No clock runs here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/settler_internal.h"

enum { SECOND = 1000 * 1000, TASKS = 3 };

struct fixture {
  struct settler settler;
  struct mailbox scheduler;
  struct lane lane;
  struct driver driver;
  struct task tasks[TASKS];
  struct flight flights[TASKS];
};

static void make(struct fixture *f) {
  memset(f, 0, sizeof *f);
  mailbox_init(&f->scheduler);
  f->settler.scheduler = &f->scheduler;
  strcpy(f->lane.name, "work");
  for (int i = 0; i < TASKS; i++) {
    f->tasks[i] = (struct task){.payload_len = 10, .message_id = {"m", 1}};
    f->flights[i].task = &f->tasks[i];
    f->flights[i].lane = &f->lane;
    f->flights[i].driver = &f->driver;
    f->flights[i].decision.busy = true;
    f->flights[i].busy_us = 10 * SECOND;
    flight_list_add(&f->settler.busy.flights, &f->flights[i]);
  }
}

static bool was_poked(struct fixture *f) {
  struct flight_list none = {0};
  return mailbox_take(&f->scheduler, 0, &none);
}

static unsigned parked(const struct fixture *f) { return atomic_load(&f->lane.parked.charged); }

static void what_waits_for_long_leaves_its_place(void **state) {
  struct fixture f;
  make(&f);
  f.flights[1].busy_us = 11 * SECOND;          /* later than the others */
  f.flights[2].decision.beside = true;         /* others would need that table as well */
  settler_park(&f.settler, 10 * SECOND + 100); /* as most transactions are */
  assert_int_equal(parked(&f), 0);
  assert_int_equal(gauge_value(&f.settler.locked_since_us), 10 * SECOND);
  assert_false(was_poked(&f));
  settler_park(&f.settler, 11 * SECOND);
  assert_int_equal(parked(&f), 1);
  assert_true(f.flights[0].parked && was_poked(&f));
  settler_park(&f.settler, 11 * SECOND + 1); /* it is not asked for in every turn */
  settler_park(&f.settler, 12 * SECOND);
  settler_park(&f.settler, 13 * SECOND);
  assert_int_equal(parked(&f), 2);
  assert_int_equal(atomic_load(&f.lane.parked.bytes), 20);
  assert_false(f.flights[2].parked);
  lane_unpark(&f.lane, &f.flights[0]);
  lane_unpark(&f.lane, &f.flights[2]);
  assert_int_equal(parked(&f), 1);
  f.settler.busy.flights = (struct flight_list){0};
  settler_park(&f.settler, 13 * SECOND + 1);
  assert_int_equal(gauge_value(&f.settler.locked_since_us), 0);
  mailbox_destroy(&f.scheduler);
}

/* One that is held now and then is not what waits for long: the one that was met first is. */
static void the_oldest_is_named(void **state) {
  struct fixture f;
  char said[1024] = "";
  int ends[2];
  make(&f);
  f.tasks[1].message_id = (struct duebox_bytes){"oldest", 6};
  f.flights[1].busy_us = 9 * SECOND;
  assert_int_equal(pipe(ends), 0);
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, ends[1]);
  settler_park(&f.settler, 13 * SECOND); /* not yet */
  settler_park(&f.settler, 14 * SECOND);
  log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  assert_true(read(ends[0], said, sizeof said - 1) > 0);
  assert_non_null(strstr(said, "id=DUEBOX-SETTLE-LOCKED msg=\"route=work message_id=oldest its outcome"));
  assert_null(strchr(strchr(said, '\n') + 1, '\n'));
  close(ends[0]);
  close(ends[1]);
  mailbox_destroy(&f.scheduler);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_waits_for_long_leaves_its_place),
      cmocka_unit_test(the_oldest_is_named),
  };
  return cmocka_run_group_tests_name("settler_park", tests, NULL, NULL);
}
