/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_task_state.c - the state machine as a whole: total, with a text for everything, in the table's order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/task_state.h"

/* The ENUM of the column `state` in this order: appending is the only change that needs no rewrite of the table. */
static const char *const texts[] = {"scheduled", "claimed", "awaiting",  "held",   "blocked",
                                    "done",      "dead",    "cancelled", "expired"};

static void test_texts(void **state) {
  assert_int_equal(sizeof texts / sizeof texts[0], TASK_STATES);
  for (int i = 0; i < TASK_STATES; i++) {
    assert_string_equal(task_state_text((enum task_state)i), texts[i]);
    assert_int_equal(task_state_parse(texts[i]), i);
    assert_int_equal(task_state_living((enum task_state)i), i < TASK_DONE);
  }
  assert_string_equal(task_state_text(TASK_STATES), "?");
  assert_false(task_state_living(TASK_STATES));
  assert_int_equal(task_state_parse("Scheduled"), TASK_STATES);
  assert_int_equal(task_state_parse(""), TASK_STATES);
}

static void test_event_texts(void **state) {
  for (int i = 0; i < TASK_EVENTS; i++) {
    const char *text = task_event_text((enum task_event)i);
    assert_non_null(text);
    assert_string_not_equal(text, "?");
    for (int j = 0; j < i; j++)
      assert_string_not_equal(text, task_event_text((enum task_event)j));
  }
  assert_string_equal(task_event_text(TASK_EVENTS), "?");
}

/* Every cell is a state or says illegal; nothing leaves a final state; only an event moves a task out of one place. */
static void test_total(void **state) {
  for (int from = 0; from < TASK_STATES; from++)
    for (int event = 0; event < TASK_EVENTS; event++) {
      enum task_state to = task_state_next((enum task_state)from, (enum task_event)event);
      assert_in_range(to, 0, TASK_STATES);
      if (!task_state_living((enum task_state)from))
        assert_int_equal(to, TASK_STATES);
    }
}

/* What must always be possible, and where each event leads. */
static void test_events(void **state) {
  static const struct {
    enum task_event event;
    enum task_state to;
  } leads[] = {{EVENT_CLAIM, TASK_CLAIMED},    {EVENT_PUBLISHED, TASK_AWAITING}, {EVENT_DONE, TASK_DONE},
               {EVENT_RETRY, TASK_SCHEDULED},  {EVENT_DEAD, TASK_DEAD},          {EVENT_EXPIRE, TASK_EXPIRED},
               {EVENT_CANCEL, TASK_CANCELLED}, {EVENT_RELEASE, TASK_SCHEDULED},  {EVENT_HOLD, TASK_HELD},
               {EVENT_BLOCK, TASK_BLOCKED},    {EVENT_DEFER, TASK_SCHEDULED}};
  for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
    int reached = 0;
    for (int from = 0; from < TASK_STATES; from++) {
      enum task_state to = task_state_next((enum task_state)from, leads[i].event);
      if (to == TASK_STATES)
        continue;
      assert_int_equal(to, leads[i].to);
      reached++;
    }
    assert_true(reached > 0);
  }
  for (int from = 0; from < TASK_DONE; from++) {
    assert_int_equal(task_state_next((enum task_state)from, EVENT_CANCEL), TASK_CANCELLED);
    assert_int_equal(task_state_next((enum task_state)from, EVENT_EXPIRE), TASK_EXPIRED);
    assert_int_equal(task_state_next((enum task_state)from, EVENT_DEAD), TASK_DEAD);
  }
  /* A sign of life keeps a running task where it is; the publish of a memory claim may not be recorded yet. */
  assert_int_equal(task_state_next(TASK_CLAIMED, EVENT_PROGRESS), TASK_CLAIMED);
  assert_int_equal(task_state_next(TASK_AWAITING, EVENT_PROGRESS), TASK_AWAITING);
  assert_int_equal(task_state_next(TASK_SCHEDULED, EVENT_PROGRESS), TASK_AWAITING);
  assert_int_equal(task_state_next(TASK_CLAIMED, EVENT_CLAIM), TASK_STATES); /* two holders of one row */
  assert_int_equal(task_state_next(TASK_AWAITING, EVENT_CLAIM), TASK_STATES);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_event_texts),
                                     cmocka_unit_test(test_total), cmocka_unit_test(test_events)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
