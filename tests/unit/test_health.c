/* SPDX-License-Identifier: MIT
 *
 * The health of a destination as a table: what happened, and what may be sent after it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/health.h"

enum { MS = 1000, LIMIT = 3, CONCURRENCY = 100 };

enum happening { SENT, DOWN, HELD, REFUSED, SUCCESS, ANSWER, REACHABLE, LOST };

struct step {
  int at_ms;
  enum happening happening;
  int wish_ms; /* of DOWN and HELD */
  enum health_state state;
  int wakes_ms; /* SUSPENDED: when a probe may leave */
};

static void run(const char *name, const struct step *steps, size_t count) {
  struct health health = {0};
  for (size_t i = 0; i < count; i++) {
    const struct step *step = &steps[i];
    int64_t now = (int64_t)step->at_ms * MS;
    struct health_trouble trouble = {
        .error_class = "x.y", .message = "why", .row = i, .retry_after_ms = step->wish_ms ? step->wish_ms : -1};
    switch (step->happening) {
    case SENT:
      assert_true(health_may_send(&health, now));
      assert_true(health_send(&health, i));
      break;
    case DOWN:
      (void)health_down(&health, &trouble, now);
      break;
    case HELD:
      (void)health_hold(&health, &trouble, now);
      break;
    case REFUSED:
      (void)health_refused(&health, &trouble, LIMIT, CONCURRENCY, now);
      break;
    case SUCCESS:
      (void)health_answered(&health, true, CONCURRENCY);
      break;
    case ANSWER:
      (void)health_answered(&health, false, CONCURRENCY);
      break;
    case REACHABLE:
      (void)health_reachable(&health, CONCURRENCY);
      break;
    case LOST:
      health_probe_lost(&health, now);
      break;
    }
    int64_t wakes = health_wakes_at(&health);
    if (health.state != step->state || (step->wakes_ms && wakes != (int64_t)step->wakes_ms * MS))
      fail_msg("%s, step %zu: %s, wakes at %lld us", name, i, health_state_text(health.state), (long long)wakes);
    if (health.state == HEALTH_SUSPENDED) {
      assert_false(health_may_send(&health, wakes - 1));
      assert_true(health_may_send(&health, wakes));
    } else {
      assert_int_equal(health_may_send(&health, now), health.state != HEALTH_PROBING); /* one probe at a time */
    }
  }
}
#define RUN(name, ...)                                                                                                 \
  do {                                                                                                                 \
    static const struct step steps[] = {__VA_ARGS__};                                                                  \
    run(name, steps, sizeof steps / sizeof steps[0]);                                                                  \
  } while (0)

static void tables(void **state) {
  RUN("an outage: probes, ever more seldom, until one is answered", {0, DOWN, 0, HEALTH_SUSPENDED, 250},
      {100, DOWN, 0, HEALTH_SUSPENDED, 250} /* the rest of the same bad news */, {250, SENT, 0, HEALTH_PROBING, 0},
      {260, DOWN, 0, HEALTH_SUSPENDED, 760}, {760, SENT, 0, HEALTH_PROBING, 0}, {770, DOWN, 0, HEALTH_SUSPENDED, 1770},
      {1770, SENT, 0, HEALTH_PROBING, 0}, {1780, SUCCESS, 0, HEALTH_RAMPING, 0},
      {1790, DOWN, 0, HEALTH_SUSPENDED, 2040} /* it answered, so the back-off begins anew */);
  RUN("a probe that says nothing is followed by another", {0, DOWN, 0, HEALTH_SUSPENDED, 250},
      {250, SENT, 0, HEALTH_PROBING, 0}, {300, LOST, 0, HEALTH_SUSPENDED, 550}, {550, SENT, 0, HEALTH_PROBING, 0});
  RUN("a destination that is down may wish for more, up to a minute", {0, DOWN, 5000, HEALTH_SUSPENDED, 5000},
      {5000, SENT, 0, HEALTH_PROBING, 0}, {5000, DOWN, 900000, HEALTH_SUSPENDED, 65000});
  RUN("Retry-After holds, whatever is answered to what was sent before", {0, HELD, 30000, HEALTH_SUSPENDED, 30000},
      {1, SUCCESS, 0, HEALTH_SUSPENDED, 30000}, {2, REFUSED, 0, HEALTH_SUSPENDED, 30000},
      {3, REACHABLE, 0, HEALTH_SUSPENDED, 30000}, {4, HELD, 60000, HEALTH_SUSPENDED, 60004},
      {5, HELD, 10, HEALTH_SUSPENDED, 60004}, {60004, SENT, 0, HEALTH_PROBING, 0},
      {60005, SUCCESS, 0, HEALTH_RAMPING, 0});
  RUN("Retry-After has an end", {0, HELD, 2000000000, HEALTH_SUSPENDED, HEALTH_HOLD_MAX_MS});
  RUN("failures in a row suspend it for a moment, and one success begins anew", {0, REFUSED, 0, HEALTH_OK, 0},
      {1, REFUSED, 0, HEALTH_RAMPING, 0} /* perhaps it is the tasks: others are to come between them */,
      {2, SUCCESS, 0, HEALTH_RAMPING, 0}, {3, REFUSED, 0, HEALTH_RAMPING, 0}, {4, REFUSED, 0, HEALTH_RAMPING, 0},
      {5, REFUSED, 0, HEALTH_SUSPENDED, 255}, {6, REFUSED, 0, HEALTH_SUSPENDED, 255}, {255, SENT, 0, HEALTH_PROBING, 0},
      {300, REFUSED, 0, HEALTH_SUSPENDED, 800}, {800, SENT, 0, HEALTH_PROBING, 0},
      {800, REFUSED, 0, HEALTH_SUSPENDED, 1800}, {1800, SENT, 0, HEALTH_PROBING, 0},
      {1800, REFUSED, 0, HEALTH_SUSPENDED, 2800} /* perhaps it is the tasks: those behind do not wait long */,
      {2800, SENT, 0, HEALTH_PROBING, 0}, {2800, SUCCESS, 0, HEALTH_RAMPING, 0}, {2801, REFUSED, 0, HEALTH_RAMPING, 0});
  RUN("a failure is an answer: the connection is there", {0, DOWN, 0, HEALTH_SUSPENDED, 250},
      {250, SENT, 0, HEALTH_PROBING, 0}, {251, ANSWER, 0, HEALTH_RAMPING, 0});
  RUN("a plugin that says it is back needs no task, and is not trusted more than it deserves",
      {0, DOWN, 0, HEALTH_SUSPENDED, 250}, {100, REACHABLE, 0, HEALTH_RAMPING, 0},
      {110, DOWN, 0, HEALTH_SUSPENDED, 610}, {120, REACHABLE, 0, HEALTH_RAMPING, 0},
      {130, DOWN, 0, HEALTH_SUSPENDED, 1130});
}

/* Failures in a row bring concurrency down before they suspend: what is taken comes between them, and begins the count
 * anew. */
static void failures_in_a_row_come_few_at_a_time(void **state) {
  struct health health = {0};
  const struct health_trouble trouble = {.message = "500", .retry_after_ms = -1};
  for (int i = 1; i < 10; i++)
    assert_false(health_refused(&health, &trouble, 20, CONCURRENCY, 0));
  assert_int_equal(health.ramp, 0);
  for (int i = 10; i < 20; i++) {
    assert_false(health_refused(&health, &trouble, 20, CONCURRENCY, 0));
    assert_true(health_doubted(&health, 20));
    assert_int_equal(health.ramp, 4);
  }
  assert_false(health_answered(&health, true, CONCURRENCY));
  assert_false(health_doubted(&health, 20));
  assert_int_equal(health.ramp, 5);
  for (int i = 1; i < 20; i++)
    assert_false(health_refused(&health, &trouble, 20, CONCURRENCY, 0));
  assert_int_equal(health.ramp, 4);
  assert_true(health_refused(&health, &trouble, 20, CONCURRENCY, 0));
  struct health narrow = {0};
  for (int i = 1; i < 20; i++)
    assert_false(health_refused(&narrow, &trouble, 20, 1, 0));
  assert_int_equal(narrow.ramp, 0);
  assert_false(health_doubted(&narrow, 0));
}

static void concurrency_grows_by_answers(void **state) {
  struct health health = {0};
  const struct health_trouble trouble = {.message = "down", .retry_after_ms = -1};
  assert_true(health_down(&health, &trouble, 0));
  assert_false(health_down(&health, &trouble, 300 * MS)); /* told once */
  assert_true(health_answered(&health, true, CONCURRENCY));
  assert_int_equal(health.ramp, 4);
  for (int i = 5; i < CONCURRENCY; i++) {
    assert_false(health_answered(&health, true, CONCURRENCY));
    assert_int_equal(health.ramp, i);
  }
  assert_false(health_answered(&health, true, CONCURRENCY));
  assert_int_equal(health.state, HEALTH_OK);
  assert_true(health_down(&health, &trouble, 0));
  assert_true(health_answered(&health, true, 2)); /* nothing to grow to */
  assert_int_equal(health.state, HEALTH_OK);
}

static void without_a_limit_failures_never_suspend(void **state) {
  struct health health = {0};
  const struct health_trouble trouble = {.retry_after_ms = -1};
  for (int i = 0; i < 100000; i++)
    (void)health_refused(&health, &trouble, 0, CONCURRENCY, i);
  assert_int_equal(health.state, HEALTH_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables),
      cmocka_unit_test(concurrency_grows_by_answers),
      cmocka_unit_test(failures_in_a_row_come_few_at_a_time),
      cmocka_unit_test(without_a_limit_failures_never_suspend),
  };
  return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
