/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_rules_limits.c - how far the next attempt may be put off, whatever a plugin or a consumer says, what
 * a failure is called whose consumer does not say, what it comes to that a consumer goes on where none hears it, and
 * for how long a silent host is waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/rules.h"

enum { SECOND_MS = 1000 };
static const int64_t DAY_MS = 86400000, NOW_US = INT64_C(1800000000) * 1000000;

struct try {
  struct duebox_outcome outcome;
  const struct result_record *record;
  int64_t give_up_ms;
  uint32_t failures;
};

static int64_t wait_ms(struct try try) {
  const struct route_config route = {
      .name = "orders", .retry = {.backoff_ms = 2000, .multiplier = 1, .max_ms = 2000}, .give_up_ms = try.give_up_ms};
  const struct config config = {.engine = {.dead_retention_ms = 1000}};
  const struct rules_context context = {.config = &config, .now_us = NOW_US};
  const struct rules_task task = {
      .id = 7, .state = TASK_CLAIMED, .attempt_now = 1, .failures = try.failures, .asked_due_us = NOW_US};
  struct decision decision;
  bool written;
  rules_outcome(&context, &route, &task, &try.outcome, try.record, &decision, &written);
  assert_int_equal(decision.event, EVENT_RETRY);
  return decision.delay_us / 1000;
}

static void retry_after_is_bounded(void **state) {
  const struct duebox_outcome never = DUEBOX_OUTCOME_AFTER(INT64_MAX, .cls = DUEBOX_RETRY);
  const struct duebox_outcome hour = DUEBOX_OUTCOME_AFTER(3600 * SECOND_MS, .cls = DUEBOX_UNKNOWN);
  const struct duebox_outcome before = DUEBOX_OUTCOME_AFTER(INT64_MIN, .cls = DUEBOX_RETRY);
  assert_int_equal(wait_ms((struct try){.outcome = never}), 30 * DAY_MS);
  assert_int_equal(wait_ms((struct try){.outcome = never, .give_up_ms = DAY_MS}), DAY_MS);
  assert_int_equal(wait_ms((struct try){.outcome = hour, .give_up_ms = DAY_MS}), 3600 * SECOND_MS);
  assert_int_equal(wait_ms((struct try){.outcome = before}), 2 * SECOND_MS);
}

/* A row may ask for 49 days. */
static void no_result_is_awaited_for_longer_than_the_route_lets_rows_ask(void **state) {
  const struct route_config route = {
      .name = "orders", .result = RESULT_EXPECTED, .timeout_ms = 30 * SECOND_MS, .timeout_max_ms = 300 * SECOND_MS};
  const struct config config = {.engine = {.dead_retention_ms = 1000}};
  const struct rules_context context = {.config = &config, .now_us = NOW_US};
  const struct rules_task task = {
      .id = 7, .state = TASK_CLAIMED, .attempt_now = 1, .timeout_ms = UINT32_MAX, .asked_due_us = NOW_US};
  const struct duebox_outcome taken = DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED);
  struct decision decision;
  bool written;
  rules_outcome(&context, &route, &task, &taken, NULL, &decision, &written);
  assert_int_equal(decision.event, EVENT_PUBLISHED);
  assert_int_equal(decision.delay_us, INT64_C(300) * SECOND_MS * 1000);
}

/* Who always asks to be tried at once would be tried as fast as it answers. */
static void nobody_is_tried_without_a_pause(void **state) {
  const struct result_record now = {.status = RESULT_RETRY, .retry_in_ms = 0};
  const struct duebox_outcome answer = DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_RECORD);
  assert_int_equal(wait_ms((struct try){.outcome = answer, .record = &now, .failures = 2}), 0);
  assert_int_equal(wait_ms((struct try){.outcome = answer, .record = &now, .failures = 3}), SECOND_MS);
  assert_int_equal(wait_ms((struct try){.outcome = answer, .record = &now, .failures = 1000}), SECOND_MS);
}

/* Who looks for failures by their class finds these too. */
static void every_failure_has_a_class(void **state) {
  static const struct {
    enum result_status status;
    const char *said, *kept;
  } rows[] = {{RESULT_RETRY, NULL, "result.retry"},
              {RESULT_FAIL, NULL, "result.fail"},
              {RESULT_FAIL, "bank.closed", "bank.closed"},
              {RESULT_DONE, NULL, NULL}};
  const struct route_config route = {.name = "orders", .retry = {.backoff_ms = 2000, .multiplier = 1, .max_ms = 2000}};
  const struct config config = {.engine = {.dead_retention_ms = 1000}};
  const struct rules_context context = {.config = &config, .now_us = NOW_US};
  const struct rules_task task = {.id = 7, .state = TASK_CLAIMED, .attempt_now = 1, .asked_due_us = NOW_US};
  const struct duebox_outcome answer = DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_RECORD);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct result_record record = {.status = rows[i].status, .error_class = rows[i].said, .retry_in_ms = -1};
    struct decision decision;
    bool written;
    rules_outcome(&context, &route, &task, &answer, &record, &decision, &written);
    if (rows[i].kept)
      assert_string_equal(decision.error_class, rows[i].kept);
    else
      assert_null(decision.error_class);
  }
}

/* A 200 whose body says that it is still at it, where nothing that it says later can come: it used to await its
 * time-out, and was sent again though it was taken. */
static void progress_without_a_way_for_more_is_done(void **state) {
  static const struct {
    enum duebox_answer answer;
    bool comes;
    enum task_event event;
  } rows[] = {{DUEBOX_ANSWER_DONE, false, EVENT_DONE},
              {DUEBOX_ANSWER_RECORD, false, EVENT_DONE},
              {DUEBOX_ANSWER_DONE, true, EVENT_PUBLISHED},
              {DUEBOX_ANSWER_LATER, false, EVENT_PUBLISHED}}; /* the route itself says that it comes: later_on */
  const struct route_config route = {.name = "orders", .timeout_ms = 1000};
  const struct config config = {0};
  const struct rules_context context = {.config = &config, .now_us = NOW_US};
  const struct result_record record = {.status = RESULT_PROGRESS, .retry_in_ms = -1, .extend_ms = 5000};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct rules_task task = {
        .id = 7, .state = TASK_CLAIMED, .attempt_now = 1, .asked_due_us = NOW_US, .answer_comes = rows[i].comes};
    const struct duebox_outcome outcome = DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = rows[i].answer);
    struct decision decision;
    bool written;
    rules_outcome(&context, &route, &task, &outcome, &record, &decision, &written);
    assert_int_equal(decision.event, rows[i].event);
  }
}

/* Nobody but its host tries it, which is silent: it used to hold up its order_key for ever. */
static void what_waits_for_a_silent_host_is_given_up_like_any_other(void **state) {
  static const struct {
    int64_t give_up_ms, age_ms;
    bool dead;
  } rows[] = {{SECOND_MS, SECOND_MS + 1, true}, {SECOND_MS, SECOND_MS, false}, {0, 3650 * INT64_C(86400000), false}};
  const struct config config = {.engine = {.dead_retention_ms = 1000}};
  const struct rules_context context = {.config = &config, .now_us = NOW_US};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct route_config route = {.name = "orders", .give_up_ms = rows[i].give_up_ms};
    const struct rules_task task = {.id = 7,
                                    .shard = SHARD_BOUND,
                                    .state = TASK_SCHEDULED,
                                    .attempt_row = 2,
                                    .failures = 1,
                                    .due_us = NOW_US,
                                    .asked_due_us = NOW_US - rows[i].age_ms * 1000};
    struct decision decision;
    assert_int_equal(rules_strand(&context, &route, &task, "away", &decision), rows[i].dead);
    if (!rows[i].dead)
      continue;
    assert_int_equal(decision.event, EVENT_DEAD);
    assert_int_equal(decision.attempt, 2);
    assert_int_equal(decision.failures, 1);
    assert_string_equal(decision.error_class, "host.silent");
    assert_string_equal(decision.error, "away");
  }
  const struct rules_task task = {.id = 7, .state = TASK_SCHEDULED};
  struct decision decision;
  assert_false(rules_strand(&context, NULL, &task, "away", &decision)); /* another daemon may know its route */
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(retry_after_is_bounded),
      cmocka_unit_test(no_result_is_awaited_for_longer_than_the_route_lets_rows_ask),
      cmocka_unit_test(nobody_is_tried_without_a_pause),
      cmocka_unit_test(every_failure_has_a_class),
      cmocka_unit_test(progress_without_a_way_for_more_is_done),
      cmocka_unit_test(what_waits_for_a_silent_host_is_given_up_like_any_other)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
