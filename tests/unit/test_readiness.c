/* SPDX-License-Identifier: MIT
 *
 * Readiness turns false whenever something that should make progress does not, and only with a reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/readiness.h"

#define WELL .db_answers = true, .shards_spoken = true, .shards_ours = 4

static void each_problem_is_named(void **state) {
  static const struct {
    struct readiness facts;
    const char *reason; /* NULL = ready */
  } rows[] = {
      {{WELL}, NULL},
      {{WELL, .failed = "a plugin hung again and again"}, "a plugin hung again and again"},
      {{WELL, .stopping = true}, "stopping"},
      {{.shards_spoken = true}, "database"},
      {{.db_answers = true}, "shard"},
      {{.db_answers = true, .unowned = 1 << 3 | UINT64_C(1) << 61}, "not every shard has a living owner yet: 3, 61"},
      {{WELL, .unread_shards_us = READY_STUCK_US}, NULL},
      {{WELL, .unread_shards_us = READY_STUCK_US + 1}, "the table of shards could not be read for 30 s"},
      {{WELL, .unsafe = 3}, "leases of 3 of our 4 shards"},
      {{WELL, .reading_us = READY_STUCK_US}, NULL},
      {{WELL, .reading_us = READY_STUCK_US + 1},
       "polling the table, or reading due tasks from it, has failed for 30 s"},
      {{WELL, .held = "orders", .held_task = "m-1", .held_us = READY_STUCK_US}, NULL},
      {{WELL, .held = "orders", .held_task = "m-1", .held_us = READY_STUCK_US + 1},
       "a due task of route orders could not be claimed for 30 s"},
      {{WELL, .settling_us = READY_STUCK_US}, NULL}, /* a slow moment is none */
      {{WELL, .settling_us = READY_STUCK_US + 1}, "outcomes have not been written for 30 s"},
      {{WELL, .refused = 2}, "refuses the outcomes of 2 tasks"},
      {{WELL, .locked_us = READY_STUCK_US}, NULL},
      {{WELL, .locked_us = READY_STUCK_US + 1}, "another transaction holds its row"},
      {{WELL, .results_us = READY_STUCK_US}, NULL},
      {{WELL, .results_us = READY_STUCK_US + 1}, "results have waited for 30 s to be written"},
      {{WELL, .stalled = "orders", .stalled_us = READY_STUCK_US}, NULL},
      {{WELL, .stalled = "orders", .stalled_us = READY_STUCK_US + 1}, "route orders is stalled"},
      {{WELL, .full = "hooks", .full_task = "m-1", .full_us = 61 * INT64_C(1000000)},
       "route hooks is full: none of its places has become free for 61 s, and due tasks wait; see DUEBOX-ROUTE-FULL; "
       "for longest it is task m-1"},
      {{WELL, .unread = "bus#0", .unread_why = "refused", .unread_us = READY_STUCK_US}, NULL}, /* it is rejoining */
      {{WELL, .unread = "bus#0", .unread_why = "refused", .unread_us = READY_STUCK_US + 1},
       "results at bus#0 have not been read for 30 s: refused"},
      {{WELL, .hung = "bus"}, "plugin instance bus"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct problem_list list;
    readiness_judge(&rows[i].facts, &list);
    if (list.count != (rows[i].reason != NULL) || (rows[i].reason && !strstr(list.text[0], rows[i].reason)))
      fail_msg("row %zu: %zu problems, the first is: %s", i, list.count, list.count ? list.text[0] : "");
  }
}

static void the_database_is_up_while_it_lets_us_work(void **state) {
  assert_true(readiness_db_up(&(struct readiness){WELL}));
  assert_true(readiness_db_up(&(struct readiness){WELL, .reading_us = READY_STUCK_US}));
  assert_false(readiness_db_up(&(struct readiness){WELL, .reading_us = READY_STUCK_US + 1}));
  assert_false(readiness_db_up(&(struct readiness){.shards_spoken = true}));
}

static void all_problems_are_listed(void **state) {
  const struct readiness facts = {.failed = "f",
                                  .stopping = true,
                                  .on_hold = true,
                                  .unread_shards_us = INT64_MAX,
                                  .unsafe = 1,
                                  .shards_ours = 1,
                                  .reading_us = INT64_MAX,
                                  .refused = 1,
                                  .held = "orders",
                                  .held_task = "m-1",
                                  .held_us = INT64_MAX,
                                  .settling_us = INT64_MAX,
                                  .locked_us = INT64_MAX,
                                  .results_us = INT64_MAX,
                                  .stalled = "orders",
                                  .stalled_us = INT64_MAX,
                                  .full = "hooks",
                                  .full_task = "m-1",
                                  .unread = "bus#0",
                                  .unread_why = "refused",
                                  .unread_us = INT64_MAX,
                                  .hung = "bus"};
  struct problem_list list;
  char text[1024], little[8];
  readiness_judge(&facts, &list);
  assert_int_equal(list.count, PROBLEMS_MAX); /* as many as there are kinds */
  readiness_text(&list, text, sizeof text);
  assert_non_null(strstr(text, "f; the daemon is stopping; held: "));
  readiness_text(&list, little, sizeof little);
  assert_int_equal(strlen(little), sizeof little - 1);
  readiness_text(&(struct problem_list){0}, text, sizeof text);
  assert_string_equal(text, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_problem_is_named),
      cmocka_unit_test(the_database_is_up_while_it_lets_us_work),
      cmocka_unit_test(all_problems_are_listed),
  };
  return cmocka_run_group_tests_name("readiness", tests, NULL, NULL);
}
