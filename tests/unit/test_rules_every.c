/* SPDX-License-Identifier: MIT
 *
 * Every result record against every row: what the rules say of each combination is what docs/CONSUMERS.md says, which
 * is written down here once more, sentence by sentence, and not as the rules have it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/rules.h"

enum { SECOND = 1000000 };
static const int64_t NOW = INT64_C(1800000000000000);
enum { ROW = 7, VERSION = 5 };

static const struct duebox_option source_options[] = {{.name = "queue", .type = DUEBOX_OPT_STRING}, {.name = NULL}};
static const struct duebox_plugin broker = {.name = "broker", .source_options = source_options};
static const struct duebox_plugin caller = {.name = "caller", .capabilities = DUEBOX_CAP_ANSWERS};
static struct plugin_config rabbit = {.name = "rabbit", .module = &broker};
static struct plugin_config hooks = {.name = "hooks", .module = &caller};
static const char *const ours = "ours", *const theirs = "theirs";
static const char *const listed[] = {"hook"};
static struct source_config sources[] = {
    {"rabbit#1", &rabbit, &ours, {0}}, {"rabbit#2", &rabbit, &theirs, {0}}, {"rabbit#3", &rabbit, &ours, {listed, 1}}};

enum road { OWN_QUEUE, OTHER_QUEUE, API, CALLBACK, CALLBACK_OF_VERSION, CALLBACK_OF_ANOTHER, ROADS };
enum word { DONE, RETRY, FAIL, PROGRESS, LONGER, WORDS };
enum destination { BROKER, HOOK, UNKNOWN_ROUTE, DESTINATIONS };

static const uint32_t attempts_of_rows[] = {0, 1, 2};
static const uint32_t attempts_of_records[] = {0, 1, 2, 3, UINT32_MAX};

/* One combination. */
struct meeting {
  unsigned state, row_attempt, change, bound, due, road, attempt, word, to, expects, recorded, crowded, early;
};
static const unsigned sizes[] = {TASK_STATES, 3, 3, 2, 2, ROADS, 5, WORDS, DESTINATIONS, 2, 2, 2, 2};
enum { AXES = sizeof sizes / sizeof sizes[0] };

/* What is so of a meeting, in the words of the documents. */
struct facts {
  uint32_t counted, named; /* how many attempts the row counts, which one the record names */
  bool known, hook, expects, ended, waits, on_a_road, proves, to_come;
};

static struct facts facts_of(const struct meeting *m) {
  struct facts f = {.counted = attempts_of_rows[m->row_attempt],
                    .named = attempts_of_records[m->attempt],
                    .known = m->to != UNKNOWN_ROUTE,
                    .hook = m->to == HOOK,
                    .expects = m->to != UNKNOWN_ROUTE && m->expects,
                    .ended = m->state >= TASK_DONE,
                    .waits = m->state == TASK_SCHEDULED || m->state == TASK_HELD || m->state == TASK_BLOCKED,
                    .on_a_road = m->road == OWN_QUEUE || m->road == OTHER_QUEUE,
                    .proves = m->road >= CALLBACK};
  f.to_come = f.named == f.counted + 1 && m->state == TASK_SCHEDULED; /* it may be out, from a daemon's memory */
  return f;
}

/* "On another road than its route's a record changes nothing, and goes to the quarantine. Where the route expects no
 * result, a record on its road waits until the call or the sending is over: it counts if that said that the result
 * comes later, and ends no task before." "..: on the topic or queue that the message named": which is not known of one
 * that is on its way. RESULT_APPLIED: it may count as far as the road goes. */
static enum result_fate by_the_road(const struct meeting *m, const struct facts *f) {
  bool out = f->to_come || (m->state == TASK_CLAIMED && f->named == f->counted);
  if (!f->on_a_road)
    return RESULT_APPLIED;
  if (m->road == OTHER_QUEUE && f->known)
    return out && !f->hook && !m->crowded ? RESULT_BUSY : RESULT_MISROUTED;
  if (f->expects || f->ended || m->state == TASK_AWAITING || f->named > f->counted)
    return RESULT_APPLIED;
  if (m->state == TASK_CLAIMED)
    return RESULT_BUSY;
  return f->hook || !f->known ? RESULT_APPLIED : RESULT_MISROUTED;
}

/* "An attempt that was never handed out has no result: the task is not due yet, is held, or waits for its turn. Such a
 * record goes to the quarantine, of a task that is due, or that somebody changed and may have put off while it was out,
 * after two minutes". A callback's URL proves that its attempt left. */
static enum result_fate of_no_attempt_yet(const struct meeting *m, const struct facts *f) {
  if (!f->to_come)
    return RESULT_ORPHAN;
  if (f->proves)
    return RESULT_APPLIED;
  if (!f->known)
    return RESULT_BUSY;
  if (m->bound || (!m->due && m->change != CHANGE_SINCE_SENT))
    return RESULT_ORPHAN;
  return m->due && m->crowded && f->expects && !m->recorded ? RESULT_APPLIED : RESULT_BUSY;
}

/* "A late success counts .. Not where that attempt may have had another content", and what was changed while it was out
 * is known to who sent it. */
static enum result_fate by_the_content(const struct meeting *m, const struct facts *f) {
  bool out = f->named > f->counted || m->state == TASK_CLAIMED;
  if (m->word == PROGRESS || m->word == LONGER || m->road == CALLBACK_OF_VERSION)
    return RESULT_APPLIED;
  if (f->named < f->counted)
    return m->change == CHANGE_NONE ? RESULT_APPLIED : RESULT_STALE;
  if (m->change != CHANGE_SINCE_SENT || m->state == TASK_AWAITING)
    return RESULT_APPLIED;
  return out ? RESULT_BUSY : RESULT_STALE;
}

static enum result_fate says_the_document(const struct meeting *m) {
  const struct facts f = facts_of(m);
  enum result_fate road = by_the_road(m, &f), fate;
  bool failure = m->word != DONE;
  if (road == RESULT_MISROUTED)
    return road;
  if (f.ended || m->road == CALLBACK_OF_ANOTHER) /* "a later task that uses the message id again has other URLs" */
    return RESULT_LATE;
  if (f.named == 0)
    return RESULT_ORPHAN;
  if (f.named > f.counted && (fate = of_no_attempt_yet(m, &f)) != RESULT_APPLIED)
    return fate;
  if (road == RESULT_BUSY)
    return road;
  /* Publishing sets the deadline that is to be put off. */
  if (m->word == LONGER && m->state == TASK_CLAIMED && f.named == f.counted && f.on_a_road && !m->crowded)
    return RESULT_BUSY;
  /* "The URL is good .. while that attempt is the current one"; "Whatever else an earlier attempt says is stale" */
  if (f.named < f.counted && (f.proves || failure))
    return RESULT_STALE;
  /* "The first result of an attempt counts. A second one .. changes nothing", and a time-out was its end, too. */
  if (f.named == f.counted && f.waits && failure)
    return RESULT_DUPLICATE;
  return by_the_content(m, &f);
}

/* "One that came before its attempt was due does not end that attempt when it has left by then." */
static enum result_fate with_what_came_early(const struct meeting *m, enum result_fate fate) {
  return fate == RESULT_APPLIED && m->early ? RESULT_ORPHAN : fate;
}

static enum result_fate say_the_rules(const struct meeting *m, struct decision *d) {
  static const enum result_status statuses[] = {[DONE] = RESULT_DONE,
                                                [RETRY] = RESULT_RETRY,
                                                [FAIL] = RESULT_FAIL,
                                                [PROGRESS] = RESULT_PROGRESS,
                                                [LONGER] = RESULT_PROGRESS};
  static const char *const names[] = {[BROKER] = "mail", [HOOK] = "hook", [UNKNOWN_ROUTE] = "else"};
  enum result_mode result = m->expects ? RESULT_EXPECTED : RESULT_NONE;
  enum claim_mode claim = m->recorded ? CLAIM_RECORDED : CLAIM_MEMORY;
  struct route_config routes[] = {
      {.name = "hook", .plugin = &hooks, .result = result, .claim = claim, .retry = {.max_attempts = 9}},
      {.name = "mail",
       .plugin = &rabbit,
       .result = result,
       .claim = claim,
       .reply_to = "ours",
       .retry = {.max_attempts = 9}}};
  const struct config config = {.sources = sources, .source_count = 3, .routes = routes, .route_count = 2};
  struct rules_context context = {.config = &config, .now_us = NOW};
  const struct result_row row = {.id = ROW,
                                 .version = VERSION,
                                 .shard = m->bound ? SHARD_BOUND : 2,
                                 .state = (enum task_state)m->state,
                                 .attempt = attempts_of_rows[m->row_attempt],
                                 .change = (enum row_change)m->change,
                                 .due_us = m->due ? NOW - SECOND : NOW + 3600LL * SECOND,
                                 .asked_due_us = NOW - SECOND,
                                 .now_us = NOW,
                                 .route = names[m->to]};
  bool callback = m->road >= CALLBACK;
  struct result_record record = {.attempt = attempts_of_records[m->attempt],
                                 .status = statuses[m->word],
                                 .row = !callback                        ? 0
                                        : m->road == CALLBACK_OF_ANOTHER ? ROW - 1
                                                                         : ROW,
                                 .version = !callback                        ? 0
                                            : m->road == CALLBACK_OF_VERSION ? VERSION
                                                                             : VERSION + 1,
                                 .current_only = callback,
                                 .cannot_wait = m->crowded,
                                 .too_soon = m->early,
                                 .entry = m->road == OTHER_QUEUE ? "rabbit#2"
                                          : m->road != OWN_QUEUE ? NULL
                                          : m->to == HOOK        ? "rabbit#3"
                                                                 : "rabbit#1",
                                 .retry_in_ms = -1,
                                 .extend_ms = m->word == LONGER ? 600000 : -1,
                                 .progress = -1};
  return rules_result(&context, &row, &record, d);
}

/* What can be written follows: nothing is said to have counted that no state of a row takes. */
static bool fits(const struct meeting *m, const struct decision *d) {
  uint32_t counted = attempts_of_rows[m->row_attempt];
  bool changed = m->change == CHANGE_SINCE_SENT && m->state == TASK_AWAITING && m->word < PROGRESS;
  static const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_DEAD, EVENT_PROGRESS, EVENT_PROGRESS};
  return task_state_next((enum task_state)m->state, d->event) != TASK_STATES && d->attempt >= counted &&
         d->changed == changed && d->event == (changed ? EVENT_RETRY : events[m->word]);
}

static bool exists(const struct meeting *m) {
  bool called = m->state == TASK_CLAIMED || m->state == TASK_AWAITING;
  return !(called && attempts_of_rows[m->row_attempt] == 0);
}

static void every_record_meets_every_row(void **state) {
  unsigned at[AXES] = {0}, met = 0, wrong = 0, axis = 0;
  (void)state;
  while (axis < AXES) {
    const struct meeting m = {at[0], at[1], at[2], at[3],  at[4],  at[5], at[6],
                              at[7], at[8], at[9], at[10], at[11], at[12]};
    struct decision d = {0};
    if (exists(&m)) {
      enum result_fate wanted = with_what_came_early(&m, says_the_document(&m)), got = say_the_rules(&m, &d);
      met++;
      if (wanted != got || (got == RESULT_APPLIED && !fits(&m, &d))) {
        if (wrong++ < 20)
          print_error(
              "state %s, counts %u, change %u, bound %u, due %u, road %u, attempt %u, word %u, to %u, expects %u, "
              "recorded %u, crowded %u, early %u: fate %d, not %d (event %d)\n",
              task_state_text((enum task_state)m.state), attempts_of_rows[m.row_attempt], m.change, m.bound, m.due,
              m.road, attempts_of_records[m.attempt], m.word, m.to, m.expects, m.recorded, m.crowded, m.early, (int)got,
              (int)wanted, (int)d.event);
      }
    }
    for (axis = 0; axis < AXES && ++at[axis] == sizes[axis]; axis++)
      at[axis] = 0;
  }
  print_message("%u meetings, %u other than the documents say\n", met, wrong);
  assert_true(met > 1000000);
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_record_meets_every_row)};
  return cmocka_run_group_tests_name("every", tests, NULL, NULL);
}
