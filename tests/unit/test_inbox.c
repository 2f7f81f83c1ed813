/* SPDX-License-Identifier: MIT
 *
 * Results whose rows are locked are set aside, up to a limit for each route. Beyond it one that comes by the callback
 * URL or the API is not taken for now: its sender is to offer it again, and then it counts. (It used to be called
 * broken, with a 400 that no consumer repeats, and was lost.) One of a broker waits where it is, for a while. Many
 * results about one task, or of one source, hold up those of no other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/inbox_queue.h"
#include "inbox_fixture.h"

/* Once the first has ended the task the others change nothing, and are dealt with as many at a time as those of
 * different tasks: one used to take a commit, and thousands kept all others of their source waiting (P7, P8). */
static void many_results_of_one_task_hold_up_no_other(void **state) {
  enum { SAME = 1500, OTHERS = 100 };
  struct fixture *f = *state;
  shut(f);
  for (unsigned i = 0; i < SAME; i++)
    assert_true(say_of(f, &f->source, "same", 0, DONE));
  for (unsigned i = 0; i < OTHERS; i++)
    assert_true(say_of(f, &f->source, "other", i, DONE));
  open_until(f, 1 + SAME + OTHERS);
  assert_in_range(f->calls, 1, 7);
}

static void records_of_one_task_keep_their_order(void **state) {
  enum { ROUNDS = 40 };
  struct fixture *f = *state;
  unsigned seen = 0;
  char more[80];
  shut(f);
  for (unsigned i = 0; i < ROUNDS; i++) {
    if (i % 2 == 0)
      snprintf(more, sizeof more, "\"status\":\"progress\",\"progress\":%.2f", i / 100.0);
    else
      snprintf(more, sizeof more, "\"status\":\"retry\",\"retry_in_ms\":1");
    assert_true(say_of(f, &f->source, "one", 0, more));
    assert_true(say_of(f, &f->source, "other", i, DONE));
  }
  open_until(f, 1 + 2 * ROUNDS);
  for (unsigned i = 0; i < f->said_count; i++) {
    if (strcmp(f->said[i].task, "one-0") != 0)
      continue;
    assert_int_equal(f->said[i].status, seen % 2 == 0 ? RESULT_PROGRESS : RESULT_RETRY);
    assert_true(seen % 2 == 1 || (unsigned)(f->said[i].progress * 100 + 0.5) == seen);
    seen++;
  }
  assert_int_equal(seen, ROUNDS);
}

static void sources_take_turns(void **state) {
  enum { FLOOD = 1500, OTHERS = 10 };
  struct fixture *f = *state;
  shut(f);
  for (unsigned i = 0; i < FLOOD; i++)
    assert_true(say_of(f, &f->partner, "flood", i, DONE));
  for (unsigned i = 0; i < OTHERS; i++)
    assert_true(say_of(f, &f->source, "other", i, DONE));
  open_until(f, 1 + FLOOD + OTHERS);
  assert_true(last_of(f, "other") <= 1 + 2 * OTHERS);
}

static void a_source_that_is_full_leaves_room_to_others(void **state) {
  struct fixture *f = *state;
  struct store_result result;
  struct err err;
  unsigned taken = 0;
  shut(f);
  while (say_of(f, &f->partner, "flood", taken, DONE))
    taken++;
  assert_true(say_of(f, &f->source, "other", 0, DONE));
  assert_false(call_back_within(f, 10, &result, &err));
  assert_non_null(strstr(err.text, "the database did not take it in time"));
  open_until(f, 1 + taken + 2);
}

/* The quarantine tells records apart by place and body. A delivery tag begins at 1 with each channel, and a body need
 * not name the task if the correlation id does; a topic may have 249 characters, with the offset behind them. */
static void a_place_names_what_tells_records_apart(void **state) {
  struct fixture *f = *state;
  char topic[400];
  struct duebox_record record = {.struct_size = sizeof record,
                                 .body = {"{" DONE "}", strlen("{" DONE "}")},
                                 .full_len = strlen("{" DONE "}"),
                                 .origin = "queue#1",
                                 .correlation_id = "task-1"};
  assert_true(inbox_offer(f->inbox, &f->source, &record, 0));
  open_until(f, 1);
  assert_string_equal(f->place, "queue#1 for task-1");
  snprintf(topic, sizeof topic, "%0*d[3]@17", 390, 0);
  record.origin = topic;
  assert_true(inbox_offer(f->inbox, &f->source, &record, 0));
  open_until(f, 2);
  assert_int_equal(strlen(f->place), 255);
  assert_string_equal(f->place + strlen(f->place) - strlen("0[3]@17 for task-1"), "0[3]@17 for task-1");
}

/* What it brings is written all the time, and yet its records wait, where nobody here sees them: for readiness they
 * have since it was full for the first time. A while after it found room enough nothing waits there any more. */
static void a_source_that_brings_too_much_is_behind(void **state) {
  struct fixture *f = *state;
  unsigned said = 0;
  shut(f);
  while (say_of(f, &f->source, "first", said, DONE))
    said++;
  int64_t full_us = clock_mono_us();
  f->shut = false;
  for (unsigned i = 0; i < 10 * INBOX_QUEUE_RECORDS; i++)
    said += say_of(f, &f->source, "more", i, DONE);
  while (say_of(f, &f->source, "last", said, DONE))
    said++;
  int64_t now_us = clock_mono_us(), later_us = now_us + 60 * INT64_C(1000000);
  assert_true(inbox_delay_us(f->inbox, now_us) >= now_us - full_us);
  for (int64_t end = now_us + LIMIT_MS * 1000; f->tried < said; nap())
    assert_true(clock_mono_us() < end);
  while (inbox_delay_us(f->inbox, later_us))
    nap();
}

/* The log is where an operator learns of which source more comes than can be written. */
static void records_that_wait_for_long_are_logged(void **state) {
  struct fixture *f = *state;
  char text[512] = "";
  FILE *file = tmpfile();
  assert_non_null(file);
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, fileno(file));
  assert_int_equal(inbox_delay_us(f->inbox, INT64_MAX), 0);
  shut(f);
  assert_true(say_of(f, &f->partner, "late", 0, DONE));
  int64_t before_us = inbox_delay_us(f->inbox, clock_mono_us());
  while (inbox_delay_us(f->inbox, clock_mono_us()) <= before_us + 5 * 1000 * 1000)
    nap();
  open_until(f, 2);
  text[pread(fileno(file), text, sizeof text - 1, 0)] = '\0';
  assert_non_null(strstr(text, "DUEBOX-RESULTS-LATE"));
  assert_non_null(strstr(text, "source=partner"));
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  fclose(file);
}

/* Locks all rows, and has so many results tried. */
static void set_aside(struct fixture *f, unsigned count) {
  f->locked = true;
  for (unsigned i = 0; i < count; i++)
    offer(f, i);
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->known_count < count; nap())
    assert_true(clock_mono_us() < end);
}

static void one_that_finds_no_room_aside_is_to_be_offered_again(void **state) {
  struct fixture *f = *state;
  struct store_result result;
  struct err err;
  set_aside(f, ASIDE_PER_ROUTE);
  assert_false(call_back(f, &result, &err));
  assert_non_null(strstr(err.text, "another transaction holds the row"));
  assert_int_equal(f->broken, 0);
  f->locked = false;
  assert_true(call_back(f, &result, &err));
  assert_int_equal(result.fate, RESULT_APPLIED);
}

/* A store that came to none of a batch was asked again as fast as it answered: ten thousand statements a second (P6).
 */
static void a_batch_that_comes_to_nothing_is_not_tried_again_at_once(void **state) {
  enum { CALLS = 10, LEAST_MS = 20 };
  struct fixture *f = *state;
  f->postpones = true;
  offer(f, 1);
  int64_t began = clock_mono_us(), end = began + LIMIT_MS * 1000;
  for (; f->calls < CALLS; nap())
    assert_true(clock_mono_us() < end);
  assert_true(clock_mono_us() - began >= (CALLS - 2) * LEAST_MS * 1000);
}

/* A statement that changes thousands of rows holds them for seconds. What found no room aside used to go to the
 * quarantine at once, where nobody applies it: its task was sent again though its consumer had answered (P4, P7). */
static void what_finds_no_room_aside_waits_for_some(void **state) {
  enum { MORE = 1000, OF_ONE = 50 };
  struct fixture *f = *state;
  char more[80];
  set_aside(f, ASIDE_PER_ROUTE + 1);
  for (unsigned i = 1; i <= OF_ONE; i++) { /* of a task that has one aside: in their order, too */
    snprintf(more, sizeof more, "\"status\":\"progress\",\"progress\":%.2f", i / 100.0);
    assert_true(say_of(f, &f->source, "task", 0, more));
  }
  for (unsigned i = 1; i <= MORE; i++)
    offer(f, ASIDE_PER_ROUTE + i);
  for (unsigned calls = f->calls; f->calls < calls + 3; nap())
    ;
  assert_int_equal(f->broken + f->applied, 0);
  f->locked = false;
  unsigned all = ASIDE_PER_ROUTE + 1 + MORE + OF_ONE;
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->applied < all; nap())
    assert_true(clock_mono_us() < end);
  assert_int_equal(f->broken, 0);
  assert_false(f->backwards);
}

/* Whoever never gives a row back does not keep all others waiting. */
static void what_finds_no_room_for_long_is_quarantined(void **state) {
  struct fixture *f = *state;
  set_aside(f, ASIDE_PER_ROUTE + 1);
  assert_true(say_of(f, &f->source, "task", 0, "\"status\":\"progress\""));
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->broken < 2; nap())
    assert_true(clock_mono_us() < end);
  assert_int_equal(f->applied, 0);
}

/* Results that overtake the records of their sending wait for them, as many as there is room for. Beyond that they
 * count as they come: to quarantine them would be to lose what a consumer has said in time (P7). */
static void of_many_that_are_early_none_is_lost(void **state) {
  struct fixture *f = *state;
  struct store_result result;
  struct err err;
  f->early = true;
  for (unsigned i = 0; i < ASIDE_PER_ROUTE; i++)
    offer(f, i);
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->known_count < ASIDE_PER_ROUTE; nap())
    assert_true(clock_mono_us() < end);
  offer(f, ASIDE_PER_ROUTE);
  assert_true(call_back(f, &result, &err));
  assert_int_equal(result.fate, RESULT_APPLIED);
  assert_int_equal(f->broken, 0);
}

struct caller {
  pthread_t thread;
  struct fixture *f;
  atomic_uint *back;
  bool known;
};

static void *wait_for_mine(void *arg) {
  struct caller *caller = arg;
  struct store_result result;
  struct err err;
  caller->known = call_back_within(caller->f, 10 * LIMIT_MS, &result, &err) && result.fate == RESULT_APPLIED;
  ++*caller->back;
  return NULL;
}

/* One consumer that calls back again and again while somebody locks the row of its task keeps one thread from the
 * consumers of other tasks, not all of them (P8). The others learn at once that nothing is known yet. */
static void one_waits_for_a_row_that_is_held(void **state) {
  enum { CALLERS = 20 };
  struct fixture *f = *state;
  atomic_uint back = 0;
  struct caller callers[CALLERS];
  unsigned known = 0;
  f->held = true;
  for (size_t i = 0; i < CALLERS; i++) {
    callers[i] = (struct caller){.f = f, .back = &back};
    assert_int_equal(pthread_create(&callers[i].thread, NULL, wait_for_mine, &callers[i]), 0);
  }
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; back < CALLERS - 1; nap())
    assert_true(clock_mono_us() < end);
  f->held = false;
  for (size_t i = 0; i < CALLERS; i++) {
    assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
    known += callers[i].known;
  }
  assert_int_equal(known, 1);
  assert_int_equal(f->applied, 1);
}

/* Nor does it take the room of its route: what is aside already is there once. */
static void a_record_that_comes_again_is_aside_once(void **state) {
  struct fixture *f = *state;
  struct store_result result;
  struct err err;
  f->held = true;
  for (unsigned i = 0; i < 10; i++)
    assert_false(call_back_within(f, 50, &result, &err));
  f->held = false;
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->applied == 0; nap())
    assert_true(clock_mono_us() < end);
  unsigned tried = f->tried;
  assert_true(call_back(f, &result, &err)); /* behind all that was aside */
  assert_int_equal(f->applied, 2);
  assert_int_equal(f->tried, tried + 1);
}

/* The consumer tries again and again, and all others go on: the log is where an operator learns that somebody forgot to
 * commit. */
static void a_row_that_is_held_for_long_is_logged(void **state) {
  struct fixture *f = *state;
  struct store_result result;
  struct err err;
  char text[512] = "";
  FILE *file = tmpfile();
  assert_non_null(file);
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, fileno(file));
  f->held = true;
  assert_false(call_back_within(f, 50, &result, &err));
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; !strstr(text, "DUEBOX-RESULT-ROW-HELD"); nap()) {
    assert_true(clock_mono_us() < end);
    text[pread(fileno(file), text, sizeof text - 1, 0)] = '\0';
  }
  assert_non_null(strstr(text, "route=work"));
  f->held = false;
  assert_true(call_back(f, &result, &err)); /* nothing writes there any more */
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  fclose(file);
}

/* A restored copy of a database is looked at with --hold: what was sent before the failure, and is not recorded in the
 * copy, is settled by its result and need not be sent again. Nobody would record it. */
/* While somebody holds the quarantine as a whole, what fits nothing waits for it, and nothing else does: not what comes
 * about the same task, nor what comes from elsewhere, however much rubbish there is. */
static void what_fits_nothing_waits_for_the_quarantine_alone(void **state) {
  enum { STRAYS = ASIDE_PER_ROUTE + INBOX_QUEUE_RECORDS / 2 };
  struct fixture *f = *state;
  f->kept = true;
  for (unsigned i = 0; i < STRAYS; i++)
    for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; !say_of(f, &f->partner, "task", i, "\"status\":\"fail\"");
         nap())
      assert_true(clock_mono_us() < end);
  assert_true(say_of(f, &f->source, "task", 0, DONE));
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->applied == 0; nap())
    assert_true(clock_mono_us() < end);
  assert_int_equal(f->broken, 0);
  f->kept = false;
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->broken < STRAYS; nap())
    assert_true(clock_mono_us() < end);
  assert_int_equal(f->applied, 1);
}

/* With its reason: an alert that rings for each is set on this, and a duplicate that says the opposite is one of them.
 */
static void what_is_put_into_quarantine_is_counted(void **state) {
  struct fixture *f = *state;
  static const uint64_t wanted[QUARANTINED_KINDS] = {
      [QUARANTINED_BROKEN] = 1, [QUARANTINED_MISROUTED] = 2, [QUARANTINED_CONTRADICTION] = 1};
  const counter *counts = f->metrics.results_quarantined;
  assert_true(say_of(f, &f->source, "task", 1, "\"status\":\"fail\""));
  assert_true(say_of(f, &f->source, "misrouted", 1, DONE));
  assert_true(say_of(f, &f->source, "misrouted", 2, DONE));
  assert_true(say_of(f, &f->source, "opposite", 1, DONE));
  assert_true(say_of(f, &f->source, "task", 2, DONE));
  for (int kind = 0; kind < QUARANTINED_KINDS; kind++)
    for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; counted(&counts[kind]) < wanted[kind]; nap())
      assert_true(clock_mono_us() < end);
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->applied == 0; nap())
    assert_true(clock_mono_us() < end);
  for (int kind = 0; kind < QUARANTINED_KINDS; kind++)
    assert_int_equal(counted(&counts[kind]), wanted[kind]);
}

static void nothing_is_early_on_hold(void **state) {
  struct fixture *f = *state;
  struct store_result result;
  struct err err;
  f->early = true;
  inbox_hold(f->inbox);
  assert_true(call_back(f, &result, &err));
  assert_int_equal(result.fate, RESULT_APPLIED);
  assert_int_equal(f->tried, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(one_that_finds_no_room_aside_is_to_be_offered_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_finds_no_room_aside_waits_for_some, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_finds_no_room_for_long_is_quarantined, set_up_impatient, tear_down),
      cmocka_unit_test_setup_teardown(of_many_that_are_early_none_is_lost, set_up, tear_down),
      cmocka_unit_test_setup_teardown(many_results_of_one_task_hold_up_no_other, set_up, tear_down),
      cmocka_unit_test_setup_teardown(records_of_one_task_keep_their_order, set_up, tear_down),
      cmocka_unit_test_setup_teardown(sources_take_turns, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_source_that_is_full_leaves_room_to_others, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_batch_that_comes_to_nothing_is_not_tried_again_at_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_source_that_brings_too_much_is_behind, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_place_names_what_tells_records_apart, set_up, tear_down),
      cmocka_unit_test_setup_teardown(records_that_wait_for_long_are_logged, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_is_early_on_hold, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_put_into_quarantine_is_counted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_fits_nothing_waits_for_the_quarantine_alone, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_waits_for_a_row_that_is_held, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_record_that_comes_again_is_aside_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_row_that_is_held_for_long_is_logged, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("inbox", tests, NULL, NULL);
}
