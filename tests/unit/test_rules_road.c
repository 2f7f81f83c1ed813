/* SPDX-License-Identifier: MIT
 *
 * A result counts only if it came on a road that its task's route answers on (P7), and ends no task whose own call is
 * still open (P1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/callback_id.h"
#include "core/rules.h"

static const struct duebox_option source_options[] = {{.name = "queue", .type = DUEBOX_OPT_STRING}, {.name = NULL}};
static const struct duebox_plugin broker = {.name = "broker", .source_options = source_options};
static const struct duebox_plugin caller = {.name = "caller", .capabilities = DUEBOX_CAP_ANSWERS};
static const char *const queue_a = "partner-a", *const queue_b = "partner-b", *const queue_c = "c";
static const char *const listed[] = {"sync.*"};

static struct plugin_config rabbit = {.name = "rabbit", .module = &broker};
static struct plugin_config hooks = {.name = "hooks", .module = &caller};

static const struct meeting {
  const char *name;
  const char *route;
  const char *entry; /* NULL = a callback or the API */
  enum task_state state;
  uint32_t row_attempt;
  enum result_fate fate; /* of attempt 1, "done" */
  enum result_fate fail; /* of attempt 1, "fail", "retry" or "progress" */
} meetings[] = {
    {"a's own queue", "a.x", "rabbit#1", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED},
    {"a's own queue, confirm still out", "a.x", "rabbit#1", TASK_CLAIMED, 1, RESULT_APPLIED, RESULT_APPLIED},
    {"a's own queue, memory claim", "a.x", "rabbit#1", TASK_SCHEDULED, 0, RESULT_BUSY, RESULT_BUSY},
    {"b's queue, a's task", "a.x", "rabbit#2", TASK_AWAITING, 1, RESULT_MISROUTED, RESULT_MISROUTED},
    {"b's queue, a's task that waits again", "a.x", "rabbit#2", TASK_SCHEDULED, 1, RESULT_MISROUTED, RESULT_MISROUTED},
    {"b's queue, a's task in a later attempt", "a.x", "rabbit#2", TASK_AWAITING, 2, RESULT_MISROUTED, RESULT_MISROUTED},
    {"b's queue, a's task that is not due", "a.x", "rabbit#2", TASK_HELD, 0, RESULT_MISROUTED, RESULT_MISROUTED},
    {"b's queue, a's task that has ended", "a.x", "rabbit#2", TASK_DONE, 1, RESULT_MISROUTED, RESULT_MISROUTED},
    {"a's own task that has ended", "a.x", "rabbit#1", TASK_DONE, 1, RESULT_LATE, RESULT_LATE},
    {"a queue, an HTTP task", "pay.x", "rabbit#1", TASK_AWAITING, 1, RESULT_MISROUTED, RESULT_MISROUTED},
    {"a queue, an HTTP task whose call is open", "pay.x", "rabbit#1", TASK_CLAIMED, 1, RESULT_MISROUTED,
     RESULT_MISROUTED},
    {"a callback or the API", "pay.x", NULL, TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED},
    {"the API, for a broker's task", "b.x", NULL, TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED},
    {"listed, answered 202", "sync.x", "rabbit#3", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED},
    {"listed, the call is open", "sync.x", "rabbit#3", TASK_CLAIMED, 1, RESULT_BUSY, RESULT_BUSY},
    {"listed, the call is open, another attempt", "sync.x", "rabbit#3", TASK_CLAIMED, 0, RESULT_ORPHAN, RESULT_ORPHAN},
    {"listed, late success", "sync.x", "rabbit#3", TASK_SCHEDULED, 1, RESULT_APPLIED, RESULT_DUPLICATE},
    {"expects none, in flight", "plain.x", "rabbit#1", TASK_CLAIMED, 1, RESULT_BUSY, RESULT_BUSY},
    {"expects none, in memory", "plain.x", "rabbit#1", TASK_SCHEDULED, 0, RESULT_BUSY, RESULT_BUSY},
    {"expects none, to be sent again", "plain.x", "rabbit#1", TASK_SCHEDULED, 1, RESULT_MISROUTED, RESULT_MISROUTED},
    {"expects none by now", "plain.x", "rabbit#1", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED},
    {"a route of another daemon", "else", "rabbit#1", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED},
    {"a route of another daemon, in flight", "else", "rabbit#1", TASK_CLAIMED, 1, RESULT_BUSY, RESULT_BUSY},
    {"a route of another daemon, not listed", "else", "rabbit#3", TASK_AWAITING, 1, RESULT_MISROUTED, RESULT_MISROUTED},
};

/* The reply_to of its route was changed since it was sent, or the route of the task. */
static const struct told {
  const char *entry; /* that its last message named */
  struct meeting meeting;
} tellings[] = {
    {"rabbit#1", {"told so", "b.x", "rabbit#1", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED}},
    {"rabbit#1",
     {"told so, where it is another's", "b.x", "rabbit#2", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED}},
    {"rabbit#1",
     {"told so, by now an HTTP task", "pay.x", "rabbit#1", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED}},
    {"rabbit#3",
     {"told so, by now of another daemon", "else", "rabbit#3", TASK_AWAITING, 1, RESULT_APPLIED, RESULT_APPLIED}},
    {"rabbit#1", {"told so, too late", "b.x", "rabbit#1", TASK_SCHEDULED, 1, RESULT_APPLIED, RESULT_DUPLICATE}},
    {"rabbit#2",
     {"the last attempt was told elsewhere", "b.x", "rabbit#1", TASK_AWAITING, 2, RESULT_MISROUTED, RESULT_MISROUTED}},
    {"rabbit#1", {"another was told", "b.x", "rabbit#3", TASK_AWAITING, 1, RESULT_MISROUTED, RESULT_MISROUTED}},
};

/* Where the message of this attempt named is not recorded yet. A consumer that answered at once was told that its
 * answer does not belong there, and its task was sent again, when a reload had changed the route's reply_to since it
 * left. */
static const struct told untold[] = {
    {NULL, {"b's queue, a's task, memory claim", "a.x", "rabbit#2", TASK_SCHEDULED, 0, RESULT_BUSY, RESULT_BUSY}},
    {NULL, {"b's queue, a's task, recorded claim", "a.x", "rabbit#2", TASK_CLAIMED, 1, RESULT_BUSY, RESULT_BUSY}},
    {"rabbit#1",
     {"told so before, and the next is on its way", "b.x", "rabbit#1", TASK_CLAIMED, 1, RESULT_BUSY, RESULT_BUSY}},
    {"rabbit#1",
     {"told so before, of an attempt in memory", "b.x", "rabbit#1", TASK_SCHEDULED, 0, RESULT_BUSY, RESULT_BUSY}},
};

/* Returns what it comes to where it can wait no longer. */
static enum result_fate meet(const struct meeting *m, const char *told) {
  static const enum result_status failures[] = {RESULT_FAIL, RESULT_RETRY, RESULT_PROGRESS};
  struct source_config sources[] = {{"rabbit#1", &rabbit, &queue_a, {0}},
                                    {"rabbit#2", &rabbit, &queue_b, {0}},
                                    {"rabbit#3", &rabbit, &queue_c, {listed, 1}}};
  struct route_config routes[] = {
      {.name = "a.x", .plugin = &rabbit, .result = RESULT_EXPECTED, .reply_to = queue_a, .retry = {.max_attempts = 3}},
      {.name = "b.x", .plugin = &rabbit, .result = RESULT_EXPECTED, .reply_to = queue_b, .retry = {.max_attempts = 3}},
      {.name = "pay.x", .plugin = &hooks, .claim = CLAIM_RECORDED, .retry = {.max_attempts = 3}},
      {.name = "plain.x", .plugin = &rabbit, .retry = {.max_attempts = 3}},
      {.name = "sync.x", .plugin = &hooks, .claim = CLAIM_RECORDED, .retry = {.max_attempts = 3}},
  };
  const struct config config = {.sources = sources, .source_count = 3, .routes = routes, .route_count = 5};
  struct rules_context context = {.config = &config, .now_us = INT64_C(1800000000000000)};
  struct result_row row = {.id = 7,
                           .state = m->state,
                           .attempt = m->row_attempt,
                           .route = m->route,
                           .due_us = context.now_us,
                           .asked_due_us = context.now_us,
                           .now_us = context.now_us,
                           .answer_to = told ? config_answer_to(&config, told) : 0};
  struct result_record record = {
      .attempt = 1, .status = RESULT_DONE, .retry_in_ms = -1, .extend_ms = -1, .progress = -1, .entry = m->entry};
  struct decision d = {0};
  assert_int_equal(rules_result(&context, &row, &record, &d), m->fate);
  if (m->row_attempt > 1) /* of an older attempt only a success counts anyway */
    return m->fate;
  for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
    record.status = failures[i];
    assert_int_equal(rules_result(&context, &row, &record, &d), m->fail);
  }
  /* Publishing sets a deadline when it is recorded: who asks a broker for more time before that is granted it then, or
   * the task would be sent again while its consumer works (P4). */
  bool ahead = m->entry && m->state == TASK_CLAIMED && m->fail == RESULT_APPLIED;
  record.extend_ms = 600000;
  assert_int_equal(rules_result(&context, &row, &record, &d), ahead ? RESULT_BUSY : m->fail);
  record.cannot_wait = ahead;
  assert_int_equal(rules_result(&context, &row, &record, &d), m->fail);
  record.cannot_wait = true;
  return rules_result(&context, &row, &record, &d);
}

static void a_result_comes_on_a_road(void **state) { (void)meet(*state, NULL); }

static void a_result_comes_where_the_message_said(void **state) {
  const struct told *told = *state;
  (void)meet(&told->meeting, told->entry);
}

static void a_result_comes_before_it_is_known_where_the_message_said(void **state) {
  const struct told *told = *state;
  assert_int_equal(meet(&told->meeting, told->entry), RESULT_MISROUTED);
}

/* A row that gave up a large id is known by the version that was sent: its consumer has the URL of before. Whoever has
 * the URL of another route's task with the same two ids ends none of this one. */
static void a_callback_is_for_its_row_and_its_route(void **state) {
  static const struct {
    uint64_t row, version;
    const char *route; /* NULL = not known */
    enum row_change change;
    enum result_fate fate;
  } cases[] = {{7, 0, NULL, CHANGE_NONE, RESULT_APPLIED},
               {STORE_ID_FAR, 5, NULL, CHANGE_NONE, RESULT_APPLIED},
               {STORE_ID_FAR, 6, NULL, CHANGE_NONE, RESULT_LATE},
               {STORE_ID_FAR, 0, NULL, CHANGE_NONE, RESULT_LATE},
               {STORE_ID_MAY_CHANGE, 5, NULL, CHANGE_NONE, RESULT_APPLIED},
               {STORE_ID_MAY_CHANGE - 1, 5, NULL, CHANGE_NONE, RESULT_LATE},
               {7, 5, "pay.x", CHANGE_NONE, RESULT_APPLIED},
               {7, 6, "mine", CHANGE_NONE, RESULT_LATE},
               {7, 6, "mine", CHANGE_BEFORE_SENT, RESULT_LATE},
               {7, 6, "mine", CHANGE_SINCE_SENT, RESULT_APPLIED}}; /* its own route was changed; it is sent again */
  struct route_config routes[] = {{.name = "pay.x", .plugin = &hooks, .retry = {.max_attempts = 3}}};
  const struct config config = {.routes = routes, .route_count = 1};
  struct rules_context context = {.config = &config, .now_us = INT64_C(1800000000000000)};
  struct result_row row = {.id = 7, .state = TASK_AWAITING, .attempt = 1, .route = "pay.x", .version = 5};
  struct decision d = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct result_record record = {.row = cases[i].row,
                                   .version = cases[i].version,
                                   .lane = cases[i].route ? callback_lane(cases[i].route) : 0,
                                   .attempt = 1,
                                   .status = RESULT_DONE,
                                   .retry_in_ms = -1,
                                   .extend_ms = -1,
                                   .progress = -1};
    row.change = cases[i].change;
    assert_int_equal(rules_result(&context, &row, &record, &d), cases[i].fate);
    if (cases[i].fate == RESULT_APPLIED)
      assert_int_equal(d.changed, row.change == CHANGE_SINCE_SENT);
  }
}

int main(void) {
  enum { MEETINGS = sizeof meetings / sizeof meetings[0], TELLINGS = sizeof tellings / sizeof tellings[0] };
  enum { UNTOLD = sizeof untold / sizeof untold[0], ALL = MEETINGS + TELLINGS + UNTOLD };
  struct CMUnitTest tests[ALL + 1] = {{0}};
  for (size_t i = 0; i < MEETINGS; i++)
    tests[i] = (struct CMUnitTest){.name = meetings[i].name,
                                   .test_func = a_result_comes_on_a_road,
                                   .initial_state = (void *)(uintptr_t)&meetings[i]};
  for (size_t i = 0; i < TELLINGS; i++)
    tests[MEETINGS + i] = (struct CMUnitTest){.name = tellings[i].meeting.name,
                                              .test_func = a_result_comes_where_the_message_said,
                                              .initial_state = (void *)(uintptr_t)&tellings[i]};
  for (size_t i = 0; i < UNTOLD; i++)
    tests[MEETINGS + TELLINGS + i] =
        (struct CMUnitTest){.name = untold[i].meeting.name,
                            .test_func = a_result_comes_before_it_is_known_where_the_message_said,
                            .initial_state = (void *)(uintptr_t)&untold[i]};
  tests[ALL] =
      (struct CMUnitTest){.name = "a callback's row and route", .test_func = a_callback_is_for_its_row_and_its_route};
  return _cmocka_run_group_tests("roads", tests, ALL + 1, NULL, NULL);
}
