/* SPDX-License-Identifier: MIT
 *
 * Every result record against every row: what the rules say of each combination is what docs/CONSUMERS.md says
 * (support/result_oracle.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/rules.h"
#include "support/result_oracle.h"

enum { SECOND = 1000000 };
static const int64_t NOW = INT64_C(1800000000000000);
enum { ROW = 7, VERSION = 5 };

static const unsigned sizes[] = {TASK_STATES, 3, 3, 2, 2, ROADS, 5, WORDS, DESTINATIONS, 2, 2, 2, 2, 2};
enum { AXES = sizeof sizes / sizeof sizes[0] };

static enum result_fate say_the_rules(const struct meeting *m, struct decision *d) {
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
                                 .route = route_names[m->to]};
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
                                 .is_awaited = m->awaited,
                                 .entry = entry_of(m),
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
    const struct meeting m = {at[0], at[1], at[2], at[3],  at[4],  at[5],  at[6],
                              at[7], at[8], at[9], at[10], at[11], at[12], at[13]};
    struct decision d = {0};
    if (exists(&m)) {
      enum result_fate wanted = with_what_came_early(&m, says_the_document(&m)), got = say_the_rules(&m, &d);
      met++;
      if (wanted != got || (got == RESULT_APPLIED && !fits(&m, &d))) {
        if (wrong++ < 20)
          print_error(
              "state %s, counts %u, change %u, bound %u, due %u, road %u, attempt %u, word %u, to %u, expects %u, "
              "recorded %u, crowded %u, early %u, awaited %u: fate %d, not %d (event %d)\n",
              task_state_text((enum task_state)m.state), attempts_of_rows[m.row_attempt], m.change, m.bound, m.due,
              m.road, attempts_of_records[m.attempt], m.word, m.to, m.expects, m.recorded, m.crowded, m.early,
              m.awaited, (int)got, (int)wanted, (int)d.event);
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
