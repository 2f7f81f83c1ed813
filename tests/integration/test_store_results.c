/* SPDX-License-Identifier: MIT
 *
 * Results on a real server: each applied once, whatever comes late, twice, too early or broken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops
#define ROW(...) sql(f, "INSERT INTO outbox " __VA_ARGS__)

/* What the rules of the engine come to, as far as these tests need it. */
/* Where a message said that it is to be answered: as far as a row keeps it. */
#define REFUSES (UINT64_C(0x7edcba9876543210))

static enum result_fate decide(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  int *calls = ctx;
  (*calls)++;
  if (record->entry && strcmp(row->route, record->entry) != 0)
    return RESULT_MISROUTED;
  if (row->answer_to == REFUSES)
    return RESULT_MISROUTED;
  if (record->attempt > row->attempt + (row->attempt == 0)) /* a first attempt that is not recorded yet */
    return RESULT_ORPHAN;
  if (record->attempt < row->attempt && record->status != RESULT_DONE)
    return RESULT_STALE;
  *out = (struct decision){.attempt = record->attempt > row->attempt ? record->attempt : row->attempt,
                           .failures = row->failures + (record->status != RESULT_DONE),
                           .recoveries = row->recoveries,
                           .keep_us = INT64_C(3600000000),
                           .delay_us = 60 * INT64_C(1000000),
                           .error_class = record->error_class,
                           .error = record->error_message};
  static const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_DEAD, EVENT_PROGRESS};
  out->event = events[record->status];
  return RESULT_APPLIED;
}

static struct store_result answer(const char *message_id, uint32_t attempt, enum result_status status) {
  struct store_result result = {
      .record = {.attempt = attempt, .status = status, .retry_in_ms = -1, .extend_ms = -1, .progress = -1},
      .source = "bus#1",
      .origin = "results[0]@7",
      .body = {.data = "{}", .len = 2},
  };
  snprintf(result.record.message_id, sizeof result.record.message_id, "%s", message_id);
  return result;
}

static int apply(struct fixture *f, struct store_result *results, size_t count) {
  int calls = 0;
  ok(f, OPS->settle_results(f->ss, results, count, decide, &calls, &f->err));
  return calls;
}

static enum result_fate apply_one(struct fixture *f, struct store_result result) {
  apply(f, &result, 1);
  return result.fate;
}

static void awaiting(struct fixture *f, int id, const char *message_id) {
  ROW("(id, route, payload, shard, message_id, state, attempt, lease_until, published_at, due_at) VALUES (%d, 'r', "
      "'p', 0, "
      "'%s', 'awaiting', 1, '2035-01-01', '2020-01-01 00:00:01', '2020-01-01')",
      id, message_id);
}

/* Alone, in a group and as rows of a JSON text: what is written with the publishing comes back with the result. */
static void a_row_keeps_where_its_message_said(void **state) {
  struct fixture *f = *state;
  enum { ROWS = 20, OTHERS = 3 };
  struct decision d[ROWS];
  for (int i = 0; i < ROWS; i++) {
    ROW("(id, route, payload, shard, message_id) VALUES (%d, 'r', 'p', 0, 'm%d')", i + 1, i + 1);
    d[i] = decide_on(f, (uint64_t)i + 1, EVENT_PUBLISHED);
    d[i].attempt = 1;
    d[i].answer_to = i < OTHERS ? 7 : REFUSES;
    d[i].delay_us = INT64_C(60000000);
  }
  assert_int_equal(settle(f, d, 1), 1);
  assert_int_equal(settle(f, d + 1, ROWS - 1), ROWS - 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE answer_to = 7 AND id <= %d", OTHERS), OTHERS);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE answer_to = %llu", (unsigned long long)REFUSES),
                   ROWS - OTHERS);
  assert_int_equal(apply_one(f, (struct store_result){.record = {.message_id = "m1", .attempt = 1, .progress = -1},
                                                      .body = {"", 0}}),
                   RESULT_APPLIED);
  assert_int_equal(apply_one(f, (struct store_result){.record = {.message_id = "m20", .attempt = 1, .progress = -1},
                                                      .body = {"", 0}}),
                   RESULT_MISROUTED);
}

static void results_finish_retry_and_bury(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  awaiting(f, 2, "m2");
  awaiting(f, 3, "m3");
  struct store_result r[] = {answer("m3", 1, RESULT_FAIL), answer("m1", 1, RESULT_DONE), answer("m2", 1, RESULT_RETRY)};
  r[1].record.result_json = "{\"ok\": true}";
  r[1].record.result_json_len = 12;
  r[2].record.error_class = "Busy";
  r[2].record.error_message = "later";
  assert_int_equal(apply(f, r, 3), 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(r[i].fate, RESULT_APPLIED);
    assert_string_equal(r[i].route, "r");
  }
  assert_int_equal(r[0].event, EVENT_DEAD);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id, state, attempt, COALESCE(result, '-'), published_at "
                                  "ORDER BY id) FROM outbox_history"),
                      "m1done1{\"ok\": true}2020-01-01 00:00:01.000000,m3dead1-2020-01-01 00:00:01.000000");
  assert_string_equal(
      ask_text(f, "SELECT CONCAT_WS('|', id, state, attempt, failures, error_class, last_error, first_due_at) "
                  "FROM outbox"),
      "2|scheduled|1|1|Busy|later|2020-01-01 00:00:00.000000");
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id, attempt, kind, outcome ORDER BY message_id) "
                                  "FROM outbox_attempts"),
                      "m11resultdone,m21resultretry,m31resultdead");
}

/* In the order in which they are given. What changes nothing, and progress, is dealt with at once; what is behind one
 * that moves the task meets it as it is then. */
static void several_results_of_one_task_are_judged_in_turn(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  struct store_result r[] = {
      answer("gone", 1, RESULT_DONE), answer("m1", 1, RESULT_PROGRESS), answer("m1", 9, RESULT_DONE),
      answer("gone", 1, RESULT_DONE), answer("m1", 1, RESULT_PROGRESS), answer("m1", 1, RESULT_DONE),
      answer("m1", 1, RESULT_FAIL),   answer("gone", 1, RESULT_FAIL),   answer("m1", 1, RESULT_DONE)};
  r[1].record.checkpoint = "half";
  r[1].record.checkpoint_len = 4;
  r[1].record.progress = 0.5;
  r[4].record.progress = 0.75;
  apply(f, r, 9);
  static const enum result_fate fates[] = {RESULT_ORPHAN, RESULT_APPLIED, RESULT_ORPHAN, RESULT_ORPHAN, RESULT_APPLIED,
                                           RESULT_BUSY,   RESULT_BUSY,    RESULT_ORPHAN, RESULT_BUSY};
  for (size_t i = 0; i < 9; i++) {
    assert_int_equal(r[i].fate, fates[i]);
    assert_int_equal(r[i].behind, fates[i] == RESULT_BUSY);
  }
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', progress, checkpoint, state) FROM outbox"),
                      "0.75|half|awaiting");
  assert_int_equal(ask(f, "SELECT SUM(seen) FROM outbox_quarantine"), 4);
  struct store_result rest[] = {r[5], r[6], r[8]};
  apply(f, rest, 3);
  assert_int_equal(rest[0].fate, RESULT_APPLIED);
  assert_true(rest[1].behind && rest[2].behind);
  apply(f, rest + 1, 2);
  assert_int_equal(rest[1].fate, RESULT_DUPLICATE);
  assert_int_equal(rest[2].fate, RESULT_DUPLICATE);
  assert_true(rest[1].contradicts && !rest[2].contradicts);
}

/* A message id that was used before: a record about an earlier attempt does not make an old result the current one's.
 */
static void a_stale_record_beside_it_makes_no_duplicate(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  sql(f, "INSERT INTO outbox_attempts (message_id, attempt, task_id, route, kind, outcome, due_at, finished_at) VALUES "
         "('m1', 2, 1, 'r', 'result', 'done', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
  sql(f, "UPDATE outbox SET attempt = 2");
  struct store_result r[] = {answer("m1", 1, RESULT_RETRY), answer("m1", 2, RESULT_DONE)};
  apply(f, r, 2);
  assert_int_equal(r[0].fate, RESULT_STALE);
  assert_int_equal(r[1].fate, RESULT_APPLIED);
}

static void the_same_result_again_is_a_duplicate(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  awaiting(f, 2, "m2");
  struct store_result r[] = {answer("m1", 1, RESULT_DONE), answer("m2", 1, RESULT_RETRY)};
  apply(f, r, 2);
  assert_int_equal(apply(f, r, 2), 0);
  assert_int_equal(r[0].fate, RESULT_DUPLICATE);
  assert_int_equal(r[1].fate, RESULT_DUPLICATE);
  assert_string_equal(r[0].route, "r");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 2);
  assert_int_equal(ask(f, "SELECT failures FROM outbox"), 1);
  sql(f, "DELETE FROM outbox_history"); /* a route that keeps no history */
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_DONE)), RESULT_DUPLICATE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), 0);
}

static void a_result_of_an_older_attempt(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  sql(f, "UPDATE outbox SET attempt = 3");
  assert_int_equal(apply_one(f, answer("m1", 2, RESULT_RETRY)), RESULT_STALE);
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, attempt) FROM outbox"), "awaiting3");
  assert_int_equal(apply_one(f, answer("m1", 2, RESULT_DONE)), RESULT_APPLIED);
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, attempt) FROM outbox_history"), "done3");
  assert_int_equal(ask(f, "SELECT attempt FROM outbox_attempts"), 2);
}

static void a_duplicate_after_the_next_attempt_began(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_RETRY)), RESULT_APPLIED);
  sql(f, "UPDATE outbox SET state = 'awaiting', attempt = 2, lease_until = '2035-01-01'");
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_RETRY)), RESULT_DUPLICATE);
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, attempt, failures) FROM outbox"), "awaiting21");
}

static void a_result_after_the_end_is_late(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  struct decision dead = decide_on(f, 1, EVENT_DEAD);
  dead.keep_us = INT64_C(3600000000);
  assert_int_equal(settle(f, &dead, 1), 1);
  struct store_result r = answer("m1", 1, RESULT_DONE);
  assert_int_equal(apply(f, &r, 1), 0);
  assert_int_equal(r.fate, RESULT_LATE);
  assert_false(r.cancelled);
  assert_string_equal(ask_text(f, "SELECT state FROM outbox_history"), "dead");
  assert_true(r.contradicts); /* the work was done all the same: somebody has to know */
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', reason, body) FROM outbox_quarantine"),
                      "m1: the task has ended as dead, and this says the opposite: done|{}");
  sql(f, "DELETE FROM outbox_quarantine");
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_FAIL)), RESULT_LATE);
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_PROGRESS)), RESULT_LATE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), 0); /* they say nothing else than the row */
}

static struct store_result second(const char *message_id, enum result_status status, const char *body) {
  struct store_result result = answer(message_id, 1, status);
  result.body = (struct duebox_bytes){.data = body, .len = strlen(body)};
  return result;
}

/* Of two results of one attempt the first counts (P7). Where the second says the opposite, "the money was not taken"
 * after "done", it is not thrown away: whoever looks for the truth finds both. */
static void the_opposite_of_what_was_taken_is_kept(void **state) {
  struct fixture *f = *state;
  static const char list[] =
      "SELECT GROUP_CONCAT(body, ': ', reason ORDER BY id SEPARATOR '; ') FROM outbox_quarantine";
  awaiting(f, 1, "m1");
  awaiting(f, 2, "m2");
  struct store_result r[] = {answer("m1", 1, RESULT_DONE), answer("m2", 1, RESULT_RETRY)};
  apply(f, r, 2);
  struct store_result again[] = {second("m1", RESULT_FAIL, "a"), second("m2", RESULT_DONE, "b")};
  assert_int_equal(apply(f, again, 2), 0);
  assert_true(again[0].fate == RESULT_DUPLICATE && again[0].contradicts);
  assert_true(again[1].fate == RESULT_DUPLICATE && again[1].contradicts);
  assert_string_equal(ask_text(f, "%s", list),
                      "a: m1: attempt 1 has had its result, and this one says the opposite: fail; "
                      "b: m2: attempt 1 has had its result, and this one says the opposite: done");
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, failures) FROM outbox"), "scheduled1");
  struct store_result plain[] = {second("m1", RESULT_DONE, "c"), second("m2", RESULT_FAIL, "d")};
  apply(f, plain, 2);
  assert_true(plain[0].fate == RESULT_DUPLICATE && !plain[0].contradicts && !plain[1].contradicts);
  sql(f, "DELETE FROM outbox_history"); /* a route that keeps none */
  struct store_result told = second("m1", RESULT_RETRY, "e");
  told.replied = true; /* its sender is told, and nobody else would be */
  assert_int_equal(apply_one(f, told), RESULT_DUPLICATE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE body = 'e'"), 1);
  told.replayed = true; /* from there */
  told.origin = "replay";
  apply(f, &told, 1);
  assert_true(told.contradicts);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), 3);
}

/* Whoever answers by hand learns whether the task came to what he says: of an attempt that was answered, the same again
 * is told from all else. */
static void a_second_answer_says_the_same_or_not(void **state) {
  struct fixture *f = *state;
  static const struct {
    enum result_status first, second;
    bool differs;
  } cases[] = {
      {RESULT_DONE, RESULT_DONE, false}, {RESULT_DONE, RESULT_FAIL, true},    {RESULT_DONE, RESULT_RETRY, true},
      {RESULT_FAIL, RESULT_FAIL, false}, {RESULT_FAIL, RESULT_DONE, true},    {RESULT_FAIL, RESULT_RETRY, true},
      {RESULT_RETRY, RESULT_FAIL, true}, {RESULT_RETRY, RESULT_RETRY, false}, {RESULT_RETRY, RESULT_DONE, true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char id[8];
    snprintf(id, sizeof id, "m%zu", i);
    awaiting(f, i + 1, id);
    assert_int_equal(apply_one(f, answer(id, 1, cases[i].first)), RESULT_APPLIED);
    struct store_result second = answer(id, 1, cases[i].second);
    apply(f, &second, 1);
    if (second.fate != RESULT_DUPLICATE || second.differs != cases[i].differs)
      fail_msg("case %zu", i);
  }
}

/* An attempt that failed while a later one ended the task is no contradiction; a failure of the one that ended it is,
 * and so is a success of any that a person cancelled. */
static void what_a_late_result_contradicts(void **state) {
  struct fixture *f = *state;
  static const struct {
    const char *ended;
    uint32_t attempt;
    enum result_status status;
    bool kept;
  } cases[] = {
      {"done", 2, RESULT_FAIL, false},      {"done", 3, RESULT_FAIL, true},   {"done", 3, RESULT_RETRY, true},
      {"done", 3, RESULT_DONE, false},      {"done", 0, RESULT_FAIL, true},   {"done", 3, RESULT_PROGRESS, false},
      {"dead", 1, RESULT_DONE, true},       {"dead", 3, RESULT_FAIL, false},  {"cancelled", 3, RESULT_DONE, true},
      {"cancelled", 3, RESULT_FAIL, false}, {"expired", 2, RESULT_DONE, true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    awaiting(f, 1, "m1");
    struct decision end = decide_on(f, 1, EVENT_DEAD);
    end.keep_us = INT64_C(3600000000);
    assert_int_equal(settle(f, &end, 1), 1);
    sql(f, "UPDATE outbox_history SET state = '%s', attempt = 3", cases[i].ended);
    struct store_result r = answer("m1", cases[i].attempt, cases[i].status);
    apply(f, &r, 1);
    if (r.fate != RESULT_LATE || r.contradicts != cases[i].kept ||
        ask(f, "SELECT COUNT(*) FROM outbox_quarantine") != cases[i].kept)
      fail_msg("case %zu: fate %d", i, (int)r.fate);
    sql(f, "DELETE FROM outbox_history");
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox_quarantine");
  }
}

static void a_result_before_its_publishing_is_recorded(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, message_id, due_at) VALUES (1, 'r', '', 0, 'm1', '2020-01-01')");
  struct decision published = decide_on(f, 1, EVENT_PUBLISHED);
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_DONE)), RESULT_APPLIED);
  assert_int_equal(settle(f, &published, 1), 0);
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, attempt, published_at > '2020-01-02') FROM outbox_history"),
                      "done11");
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_DONE)), RESULT_DUPLICATE);
}

static void progress_keeps_a_task_alive(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  sql(f, "UPDATE outbox SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 1 SECOND");
  struct store_result r = answer("m1", 1, RESULT_PROGRESS);
  r.record.progress = 0.5;
  r.record.checkpoint = "page 7";
  r.record.checkpoint_len = 6;
  apply(f, &r, 1);
  assert_int_equal(r.fate, RESULT_APPLIED);
  assert_int_equal(r.event, EVENT_PROGRESS);
  assert_true(r.extended);
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, progress, checkpoint, attempt, failures) FROM outbox"),
                      "awaiting|0.5|page 7|1|0");
  assert_in_range(ask(f, "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), lease_until) FROM outbox"), 50, 60);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 0);
  r.record.progress = -1;
  r.record.checkpoint = NULL;
  apply(f, &r, 1);
  assert_int_equal(r.fate, RESULT_APPLIED);
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', progress, checkpoint) FROM outbox"), "0.5|page 7");
  sql(f, "UPDATE outbox SET lease_until = '2035-01-01'");
  apply(f, &r, 1); /* never shortens */
  assert_string_equal(ask_text(f, "SELECT lease_until FROM outbox"), "2035-01-01 00:00:00.000000");
}

/* An open call ends at its own time-out, whatever its consumer asks for, and then a second copy comes: nobody is told
 * that the time was extended. */
static void progress_of_an_open_call_extends_nothing(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  sql(f, "UPDATE outbox SET state = 'claimed', claimed_by = 'me', lease_until = '2035-01-01'");
  struct store_result r = answer("m1", 1, RESULT_PROGRESS);
  r.record.extend_ms = 3600000;
  r.record.progress = 0.5;
  apply(f, &r, 1);
  assert_int_equal(r.fate, RESULT_APPLIED);
  assert_false(r.extended);
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, progress) FROM outbox"), "claimed|0.5");
  sql(f, "UPDATE outbox SET state = 'scheduled', claimed_by = NULL, lease_until = NULL, attempt = 0"); /* in memory */
  apply(f, &r, 1);
  assert_int_equal(r.fate, RESULT_APPLIED);
  assert_false(r.extended);
}

static void progress_learns_of_a_cancellation(void **state) {
  struct fixture *f = *state;
  const uint64_t id = 1;
  enum intervened changed;
  awaiting(f, 1, "m1");
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_CANCEL, &id, 1, 0, "ann", "m", "no", INT64_C(3600000000),
                       &changed, &f->err));
  assert_true(changed);
  struct store_result r = answer("m1", 1, RESULT_PROGRESS);
  apply(f, &r, 1);
  assert_int_equal(r.fate, RESULT_LATE);
  assert_true(r.cancelled);
  sql(f, "UPDATE outbox_history SET finished_at = '2020-01-01', id = 7"); /* cancelled, brought back by hand, and dead
                                                                             since */
  awaiting(f, 1, "m1");
  struct decision dead = decide_on(f, 1, EVENT_DEAD);
  assert_int_equal(settle(f, &dead, 1), 1);
  apply(f, &r, 1);
  assert_int_equal(r.fate, RESULT_LATE);
  assert_false(r.cancelled);
}

static void what_fits_nothing_is_quarantined(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  char *huge = malloc(100000);
  assert_non_null(huge);
  memset(huge, '\'', 100000);
  struct store_result r[] = {answer("unknown", 1, RESULT_DONE), answer("m1", 9, RESULT_DONE),
                             answer("", 0, RESULT_DONE), answer("m1 ", 1, RESULT_DONE)};
  r[2].broken = "not JSON: \"\xff\"";
  r[2].origin = "q#2";
  r[2].body = (struct duebox_bytes){.data = huge, .len = 100000};
  r[0].body = (struct duebox_bytes){.data = "\0\xff'", .len = 3};
  r[1].origin = "q#1";
  r[3].origin = "q#3";
  apply(f, r, 4);
  assert_int_equal(r[0].fate, RESULT_ORPHAN);
  assert_int_equal(r[1].fate, RESULT_ORPHAN);
  assert_int_equal(r[2].fate, RESULT_BROKEN);
  assert_int_equal(r[3].fate, RESULT_ORPHAN);
  assert_string_equal(ask_text(f, "SELECT state FROM outbox"), "awaiting");
  assert_string_equal(
      ask_text(f, "SELECT CONCAT_WS('|', source, length, HEX(body), HEX(sha256), seen) FROM outbox_quarantine "
                  "WHERE origin = 'results[0]@7'"),
      "bus#1|3|00FF27|34161B9E204118FA27A71F5268309031C18467831A8C5F3427C5B3EB71267C50|1");
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', reason, length, LENGTH(body)) FROM outbox_quarantine "
                                  "WHERE origin = 'q#2'"),
                      "not JSON: \"?\"|100000|4096");
  apply(f, r, 4); /* received again after a crash: counted, not doubled */
  assert_string_equal(ask_text(f, "SELECT CONCAT(COUNT(*), MIN(seen), MAX(seen)) FROM outbox_quarantine"), "422");
  free(huge);
}

/* Whatever its task does: a result on another road than its route's changes nothing, nor waits for a lock. */
static void a_result_on_another_road_is_quarantined(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  awaiting(f, 2, "m2");
  awaiting(f, 3, "m3");
  awaiting(f, 4, "m4");
  struct store_result ends[] = {answer("m3", 1, RESULT_DONE), answer("m4", 1, RESULT_RETRY)};
  ends[0].record.entry = ends[1].record.entry = "r";
  apply(f, ends, 2);
  assert_true(ends[0].fate == RESULT_APPLIED && ends[1].fate == RESULT_APPLIED);
  other(f, "UPDATE outbox SET answer_to = 1 WHERE id = 2"); /* else its message may have named the other road */
  other(f, "START TRANSACTION");
  other(f, "SELECT id FROM outbox WHERE id = 2 FOR UPDATE");
  struct store_result r[] = {answer("m1", 1, RESULT_DONE), answer("m2", 1, RESULT_DONE), answer("m3", 1, RESULT_FAIL),
                             answer("m4", 1, RESULT_DONE)};
  static const char *const bodies[] = {"1", "2", "3", "4"};
  for (size_t i = 0; i < 4; i++) {
    r[i].record.entry = "else";
    r[i].body = (struct duebox_bytes){bodies[i], 1};
  }
  apply(f, r, 4);
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(r[i].fate, RESULT_MISROUTED);
    assert_string_equal(r[i].route, "r");
    assert_false(r[i].contradicts);
  }
  other(f, "ROLLBACK");
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(message_id, state, attempt ORDER BY id) FROM outbox"),
                      "m1awaiting1,m2awaiting1,m4scheduled1");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 2);
  assert_string_equal(
      ask_text(f, "SELECT CONCAT(COUNT(*), MIN(reason)) FROM outbox_quarantine"),
      "4route r takes no results from bus#1: its reply_to, with result: expected, must be that topic or "
      "queue, or `routes` of that entry of results must list it");
}

/* Rubbish from one place must not fill a disk, and who is told at once what is wrong leaves nothing behind. */
static void the_quarantine_is_bounded(void **state) {
  enum { JUNK = 300, KEPT = 200 };
  struct fixture *f = *state;
  char text[JUNK][24];
  awaiting(f, 1, "m1");
  assert_int_equal(apply_one(f, answer("m1", 1, RESULT_DONE)), RESULT_APPLIED);
  struct store_result r[JUNK];
  for (int i = 0; i < JUNK; i++) {
    snprintf(text[i], sizeof text[i], "junk %d", i);
    r[i] = answer("", 0, RESULT_DONE);
    r[i].broken = "no JSON";
    r[i].body = (struct duebox_bytes){.data = text[i], .len = strlen(text[i])};
  }
  apply(f, r, JUNK);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), KEPT);
  struct store_result told = answer("unknown", 1, RESULT_DONE);
  told.origin = "elsewhere";
  told.replied = true;
  assert_int_equal(apply_one(f, told), RESULT_ORPHAN);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), KEPT);
  struct store_result opposite = answer("m1", 1, RESULT_FAIL);
  opposite.body.data = "[]";
  assert_int_equal(apply_one(f, opposite), RESULT_DUPLICATE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), KEPT);
}

/* What counts although something in it is wrong is kept with its task's name; a record without an attempt (a
 * correlation id named its task) is about the current one. */
static void flawed_records_count_and_are_kept(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  struct store_result flawed = answer("m1", 0, RESULT_RETRY);
  flawed.record.flaw = flawed.record.error_message = "\"error\" must be an object";
  flawed.record.error_class = RECORD_BROKEN;
  assert_int_equal(apply_one(f, flawed), RESULT_APPLIED);
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, attempt, failures, error_class) FROM outbox"),
                      "scheduled|1|1|answer.broken");
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', reason, body) FROM outbox_quarantine"),
                      "m1: \"error\" must be an object|{}");
  assert_int_equal(apply_one(f, flawed), RESULT_DUPLICATE); /* delivered again: counted once */
  assert_int_equal(ask(f, "SELECT failures FROM outbox"), 1);
}

/* A row that somebody got past the table's CHECKs costs its own result alone, which is kept where people see it: all
 * others of the batch used to be tried again with it for ever. */
static void a_result_whose_row_cannot_be_read_is_not_in_the_way_of_others(void **state) {
  struct fixture *f = *state;
  sql(f, "ALTER TABLE outbox DROP CONSTRAINT outbox_expires_at");
  sql(f, "SET sql_mode = ''");
  static const char *const names[] = {"first", "misfit", "last"};
  for (int i = 0; i < 3; i++)
    awaiting(f, i + 1, names[i]);
  sql(f, "UPDATE outbox SET expires_at = '0000-00-00' WHERE id = 2");
  for (int twice = 0; twice < 2; twice++) {
    struct store_result r[3];
    for (int i = 0; i < 3; i++)
      r[i] = answer(names[i], 1, RESULT_DONE);
    apply(f, r, 3);
    assert_int_equal(r[0].fate, twice ? RESULT_DUPLICATE : RESULT_APPLIED);
    assert_int_equal(r[1].fate, RESULT_BROKEN);
    assert_int_equal(r[2].fate, twice ? RESULT_DUPLICATE : RESULT_APPLIED);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE reason LIKE '%%does not allow%%'"), 1);
  sql(f, "UPDATE outbox SET expires_at = NULL");
  assert_int_equal(apply_one(f, answer("misfit", 1, RESULT_DONE)), RESULT_APPLIED);
}

static void a_broken_one_is_not_in_the_way_of_others(void **state) {
  struct fixture *f = *state;
  awaiting(f, 1, "m1");
  struct store_result r[] = {answer("", 0, RESULT_DONE), answer("m1", 1, RESULT_DONE), answer("x", 1, RESULT_DONE)};
  r[0].broken = "no id";
  r[2].record.checkpoint_len = (size_t)1 << 40; /* never looked into: refused by its size */
  r[2].record.checkpoint = "";
  apply(f, r, 3);
  assert_int_equal(r[1].fate, RESULT_APPLIED);
  assert_int_equal(r[2].fate, RESULT_BROKEN);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE reason LIKE '%%max_allowed_packet%%'"), 1);
}

static void a_thousand_at_once(void **state) {
  struct fixture *f = *state;
  enum { N = 1000 };
  struct store_result *r = calloc(N, sizeof *r);
  assert_non_null(r);
  sql(f,
      "INSERT INTO outbox (route, payload, shard, message_id, state, attempt, lease_until) SELECT 'r', 'p', seq %% 4, "
      "CONCAT('m', seq), 'awaiting', 1, '2035-01-01' FROM seq_1_to_%d",
      N);
  for (int i = 0; i < N; i++) {
    char id[32];
    snprintf(id, sizeof id, "m%d", N - i);
    r[i] = answer(id, 1, i % 2 ? RESULT_DONE : RESULT_RETRY);
  }
  statements_sent();
  assert_int_equal(apply(f, r, N), N);
  assert_in_range(statements_sent(), 4, 10);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE state = 'done'"), N / 2);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'scheduled'"), N / 2);
  assert_int_equal(apply(f, r, N), 0);
  free(r);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_row_keeps_where_its_message_said),
      TEST(results_finish_retry_and_bury),
      TEST(several_results_of_one_task_are_judged_in_turn),
      TEST(a_stale_record_beside_it_makes_no_duplicate),
      TEST(the_same_result_again_is_a_duplicate),
      TEST(a_result_of_an_older_attempt),
      TEST(a_duplicate_after_the_next_attempt_began),
      TEST(a_result_after_the_end_is_late),
      TEST(a_result_before_its_publishing_is_recorded),
      TEST(progress_keeps_a_task_alive),
      TEST(progress_of_an_open_call_extends_nothing),
      TEST(progress_learns_of_a_cancellation),
      TEST(the_opposite_of_what_was_taken_is_kept),
      TEST(a_second_answer_says_the_same_or_not),
      TEST(what_a_late_result_contradicts),
      TEST(what_fits_nothing_is_quarantined),
      TEST(a_result_on_another_road_is_quarantined),
      TEST(the_quarantine_is_bounded),
      TEST(flawed_records_count_and_are_kept),
      TEST(a_broken_one_is_not_in_the_way_of_others),
      TEST(a_result_whose_row_cannot_be_read_is_not_in_the_way_of_others),
      TEST(a_thousand_at_once),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
