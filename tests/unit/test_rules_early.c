/* SPDX-License-Identifier: MIT
 *
 * A result record that came before its attempt was due. It waits where its task may have been put off while it was out;
 * when the task has come due meanwhile, and left, it was written for a content that nobody had seen (P1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/rules.h"

enum { SECOND = 1000000 };

static const struct duebox_plugin module = {.name = "broker"};
static struct plugin_config plugin = {.name = "broker", .module = &module};
static struct route_config routes[] = {
    {.name = "r", .plugin = &plugin, .result = RESULT_EXPECTED, .retry = {.max_attempts = 3}}};
static const struct config config = {.routes = routes, .route_count = 1};

static void what_comes_before_its_time_ends_nothing_later(void **state) {
  static const enum result_status statuses[] = {RESULT_DONE, RESULT_RETRY, RESULT_FAIL, RESULT_PROGRESS};
  static const enum task_state later[] = {TASK_AWAITING, TASK_CLAIMED, TASK_SCHEDULED};
  struct rules_context context = {.config = &config, .now_us = INT64_C(1800000000000000)};
  (void)state;
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0] * 3; i++) {
    struct result_row row = {.id = 7,
                             .state = TASK_SCHEDULED,
                             .route = "r",
                             .due_us = context.now_us + SECOND,
                             .now_us = context.now_us,
                             .change = CHANGE_SINCE_SENT};
    struct result_record record = {
        .attempt = 1, .status = statuses[i / 3], .retry_in_ms = -1, .extend_ms = -1, .progress = -1};
    struct decision d = {0};
    assert_int_equal(rules_result(&context, &row, &record, &d), RESULT_BUSY);
    row.now_us += 2 * SECOND; /* it is on its way, perhaps */
    assert_int_equal(rules_result(&context, &row, &record, &d), RESULT_BUSY);
    row.attempt = 1;
    row.state = later[i % 3];
    row.change = CHANGE_NONE;
    assert_true(rules_result(&context, &row, &record, &d) != RESULT_APPLIED);
  }
}

/* Whoever waits for the verdict has it at once: a record that is too soon never counts. Without the configuration of
 * its route too, under which another daemon may send the task. */
static void who_waits_learns_that_it_is_too_soon(void **state) {
  struct rules_context context = {.config = &config, .now_us = INT64_C(1800000000000000)};
  (void)state;
  for (int i = 0; i < 8; i++) {
    bool changed = i & 1, awaited = i & 2;
    struct result_row row = {.id = 7,
                             .state = TASK_SCHEDULED,
                             .route = i & 4 ? "of another daemon" : "r",
                             .due_us = context.now_us + SECOND,
                             .now_us = context.now_us,
                             .change = changed ? CHANGE_SINCE_SENT : CHANGE_NONE};
    struct result_record record = {
        .attempt = 1, .status = RESULT_DONE, .is_awaited = awaited, .retry_in_ms = -1, .extend_ms = -1, .progress = -1};
    struct decision d = {0};
    enum result_fate fate = rules_result(&context, &row, &record, &d);
    assert_int_equal(fate, awaited || !changed ? RESULT_ORPHAN : RESULT_BUSY);
    row.state = TASK_AWAITING;
    row.attempt = 1;
    row.now_us += 2 * SECOND;
    assert_true(fate == RESULT_ORPHAN || rules_result(&context, &row, &record, &d) != RESULT_APPLIED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_comes_before_its_time_ends_nothing_later),
                                     cmocka_unit_test(who_waits_learns_that_it_is_too_soon)};
  return cmocka_run_group_tests_name("early", tests, NULL, NULL);
}
