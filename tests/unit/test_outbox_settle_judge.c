/* SPDX-License-Identifier: MIT
 *
 * What becomes of decisions, by what their rows are now and what COMMITs without an answer may have written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "outbox/db_error.h"
#include "outbox/settle_judge.h"

enum { COUNT = 4 };

struct fixture {
  struct decision d[COUNT];
  struct decision *list[COUNT], *as_it_was[COUNT];
  size_t matched;
};

/* Retries, of which commit number `commits[i]` got no answer; 0 = none is in doubt. */
static struct fixture retries(const uint32_t commits[COUNT]) {
  struct fixture f = {0};
  for (size_t i = 0; i < COUNT; i++)
    f.d[i] = (struct decision){.from = TASK_SCHEDULED, .event = EVENT_RETRY, .attempt = 1, .unknown = commits[i]};
  return f;
}

static void found_as_it_was(struct fixture *f, size_t i) { f->as_it_was[f->matched++] = &f->d[i]; }

static size_t resolve(struct fixture *f) {
  for (size_t i = 0; i < COUNT; i++)
    f->list[i] = &f->d[i];
  return settle_resolve_unknown(f->list, COUNT, f->as_it_was, f->matched);
}

static void a_commit_is_all_or_nothing(void **state) {
  struct fixture f = retries((uint32_t[]){7, 7, 7, 0});
  found_as_it_was(&f, 3);
  assert_int_equal(resolve(&f), 1);
  assert_true(f.d[0].written && f.d[0].applied && f.d[1].written && f.d[2].written && !f.d[3].written);
  assert_ptr_equal(f.list[0], &f.d[3]);
  f = retries((uint32_t[]){7, 7, 7, 0});
  found_as_it_was(&f, 1);
  assert_int_equal(resolve(&f), COUNT);
  for (size_t i = 0; i < COUNT; i++)
    assert_true(!f.d[i].written && !f.d[i].applied && !f.d[i].unknown);
}

static void each_commit_tells_of_itself(void **state) {
  struct fixture f = retries((uint32_t[]){7, 8, 7, 8});
  found_as_it_was(&f, 1);
  found_as_it_was(&f, 3);
  assert_int_equal(resolve(&f), 2);
  assert_true(f.d[0].written && f.d[2].written && !f.d[1].written && !f.d[3].written);
}

/* A failover may have lost the row, and handed its id out again. */
static void what_is_gone_was_written_where_it_ends(void **state) {
  struct fixture f = retries((uint32_t[]){7, 7, 7, 7});
  f.d[0].event = EVENT_DONE;
  f.d[0].gone = f.d[1].gone = f.d[2].mismatch = f.d[3].busy = true;
  assert_int_equal(resolve(&f), 3);
  assert_true(f.d[0].written && !f.d[0].gone);
  assert_true(!f.d[1].written && f.d[1].gone && !f.d[1].unknown);
  assert_true(!f.d[2].written && !f.d[2].unknown);
  assert_true(!f.d[3].written && f.d[3].unknown == 7); /* it is asked about again */
}

/* Put off without an attempt, a row looks as it did. */
static void what_leaves_no_mark_tells_nothing(void **state) {
  struct fixture f = retries((uint32_t[]){7, 7, 0, 0});
  f.d[1].event = EVENT_DEFER;
  f.d[1].attempt = 0;
  found_as_it_was(&f, 1);
  (void)!resolve(&f);
  assert_true(f.d[0].written);
}

static void only_what_was_to_be_applied_is_in_doubt(void **state) {
  struct decision d = {0};
  settle_note_unknown(&d, 7);
  assert_int_equal(d.unknown, 0);
  d.applied = true;
  settle_note_unknown(&d, 7);
  settle_note_unknown(&d, 8);
  assert_int_equal(d.unknown, 7);
}

static void another_limit_is_decided_by(void **state) {
  const struct task sent = {.max_attempts = 1}, now = {.max_attempts = 20};
  static const enum task_event limited[] = {EVENT_RETRY, EVENT_DEAD}, others[] = {EVENT_DONE, EVENT_PUBLISHED};
  for (size_t i = 0; i < 2; i++) {
    struct decision d = {.event = limited[i], .sent = &sent}, *list[] = {&d};
    settle_compare(&d, &now, true);
    assert_true(d.again && !d.changed);
    assert_int_equal(d.max_attempts, 20);
    assert_int_equal(settle_leave_again(list, 1), 0);
    assert_true(d.busy);
    settle_compare(&d, &sent, true);
    assert_false(d.again);
    settle_compare(&d, &now, false); /* it is another task to its consumer: due again as it is now */
    assert_true(d.changed && !d.again);
    settle_compare(&d, NULL, false);
    assert_true(d.changed && !d.again);
    d = (struct decision){.event = others[i], .sent = &sent};
    settle_compare(&d, &now, true);
    assert_false(d.again);
  }
}

/* What is refused for another reason than a value, or the counter of row ids, is not tried once more for these. */
static void a_form_is_tried_where_it_may_help(void **state) {
  enum { TOO_LONG = 1406, DATA_TRUNCATED = 1265, TRIGGER = 1644 };
  assert_true(settle_form_helps(DECISION_CUT, TOO_LONG) && settle_form_helps(DECISION_CUT, DATA_TRUNCATED));
  assert_false(settle_form_helps(DECISION_CUT, TRIGGER) || settle_form_helps(DECISION_CUT, DB_NO_ROW_ID));
  assert_true(settle_form_helps(DECISION_OWN_ID, DB_NO_ROW_ID));
  assert_false(settle_form_helps(DECISION_OWN_ID, TOO_LONG) || settle_form_helps(DECISION_OWN_ID, TRIGGER));
  for (int form = DECISION_NO_ALERT; form <= DECISION_FORMS; form++)
    assert_true(settle_form_helps((enum decision_form)form, TRIGGER));
}

/* Whatever else is left out, in the end a value that does not fit keeps no task. */
static void the_last_forms_cut(void **state) {
  assert_true(settle_cuts(DECISION_CUT) && settle_cuts(DECISION_OWN_ID) && settle_cuts(DECISION_NO_LINES_CUT));
  assert_false(settle_cuts(DECISION_WHOLE) || settle_cuts(DECISION_NO_ALERT) || settle_cuts(DECISION_NO_LINES));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_commit_is_all_or_nothing),
      cmocka_unit_test(each_commit_tells_of_itself),
      cmocka_unit_test(what_is_gone_was_written_where_it_ends),
      cmocka_unit_test(what_leaves_no_mark_tells_nothing),
      cmocka_unit_test(only_what_was_to_be_applied_is_in_doubt),
      cmocka_unit_test(another_limit_is_decided_by),
      cmocka_unit_test(a_form_is_tried_where_it_may_help),
      cmocka_unit_test(the_last_forms_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
