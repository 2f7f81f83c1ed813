/* SPDX-License-Identifier: MIT
 *
 * A message id that is used again: what tasks of before had as their route, their results and their end says nothing
 * about the task that has it now. An application that may only insert chooses ids, on a route of its own.
 */
#include <stdio.h>
#include <string.h>

#include "core/rules.h"
#include "integration/store_fixture.h"

#define OPS f->store.ops

static const struct duebox_option source_options[] = {{.name = "queue", .type = DUEBOX_OPT_STRING}, {.name = NULL}};
static const struct duebox_plugin broker = {.name = "broker", .source_options = source_options};
static struct plugin_config rabbit = {.name = "rabbit", .module = &broker};
static const char *const ours = "pay-results", *const theirs = "partner-results";
static struct source_config sources[] = {{"rabbit#1", &rabbit, &ours, {0}}, {"rabbit#2", &rabbit, &theirs, {0}}};
static struct route_config routes[] = {
    {.name = "partner", .plugin = &rabbit, .result = RESULT_EXPECTED, .reply_to = "partner-results"},
    {.name = "pay", .plugin = &rabbit, .result = RESULT_EXPECTED, .reply_to = "pay-results"}};
static const struct config config = {.routes = routes,
                                     .route_count = 2,
                                     .sources = sources,
                                     .source_count = 2,
                                     .engine = {.dead_retention_ms = 3600000}};

static enum result_fate decide(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  struct rules_context context = {.config = &config};
  return rules_result(&context, row, record, out);
}

static struct store_result answer(uint32_t attempt, enum result_status status, const char *entry) {
  return (struct store_result){.record = {.message_id = "invoice-17",
                                          .attempt = attempt,
                                          .status = status,
                                          .retry_in_ms = -1,
                                          .extend_ms = -1,
                                          .progress = -1,
                                          .entry = entry},
                               .source = entry,
                               .origin = "results[0]@7",
                               .body = {.data = "{}", .len = 2}};
}

static enum result_fate say(struct fixture *f, uint32_t attempt, enum result_status status, const char *entry) {
  struct store_result result = answer(attempt, status, entry);
  ok(f, OPS->settle_results(f->ss, &result, 1, decide, NULL, &f->err));
  return result.fate;
}

static void line_of(struct fixture *f, uint64_t task, unsigned attempt, const char *route, const char *outcome) {
  sql(f,
      "INSERT INTO outbox_attempts (message_id, attempt, kind, outcome, task_id, route, due_at, finished_at) "
      "VALUES ('invoice-17', %u, 'result', '%s', %llu, '%s', '2020-01-01', UTC_TIMESTAMP(6))",
      attempt, outcome, (unsigned long long)task, route);
}

/* The task that has the id now, as it is when an attempt of it has left. */
static void task_now(struct fixture *f, const char *state, unsigned attempt) {
  sql(f,
      "INSERT INTO outbox (id, message_id, route, payload, shard, due_at, state, attempt, lease_until, claim_epoch) "
      "VALUES (9, 'invoice-17', 'pay', 'x', 0, '2020-01-01', '%s', %u, IF('%s' = 'awaiting', '2099-01-01', NULL), 7)",
      state, attempt, state);
}

static const char *row(struct fixture *f) {
  return ask_text(f, "SELECT CONCAT_WS('|', id, route, state, attempt) FROM outbox");
}

/* Its own partner's queue, whoever had the id there, answers for no task of another route. */
static void the_route_of_before_is_not_the_road_of_now(void **state) {
  static const char *const states[] = {"scheduled", "held", "blocked", "awaiting"};
  struct fixture *f = *state;
  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
    char as_it_was[64];
    line_of(f, 4, 5, "partner", "retry");
    task_now(f, states[i], 2);
    snprintf(as_it_was, sizeof as_it_was, "%s", row(f));
    for (uint32_t attempt = 1; attempt <= 2; attempt++)
      assert_int_equal(say(f, attempt, RESULT_DONE, "rabbit#2"), RESULT_MISROUTED);
    assert_string_equal(row(f), as_it_was);
    struct store_result both[] = {answer(1, RESULT_FAIL, "rabbit#2"), answer(2, RESULT_FAIL, "rabbit#2")};
    ok(f, OPS->settle_results(f->ss, both, 2, decide, NULL, &f->err));
    assert_int_equal(both[0].fate, RESULT_MISROUTED);
    assert_int_equal(both[1].fate, RESULT_MISROUTED);
    assert_string_equal(row(f), as_it_was);
    assert_int_equal(say(f, 2, RESULT_DONE, "rabbit#1"), RESULT_APPLIED);
    sql(f, "DELETE FROM outbox_attempts");
  }
}

/* A late success counts, whatever an attempt of the same number came to in another task. */
static void the_results_of_before_are_not_those_of_now(void **state) {
  static const char *const outcomes[] = {"done", "retry", "dead"};
  struct fixture *f = *state;
  for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
    line_of(f, 4, 1, "partner", outcomes[i]);
    task_now(f, "scheduled", 1);
    struct store_result result = answer(1, RESULT_DONE, "rabbit#1");
    ok(f, OPS->settle_results(f->ss, &result, 1, decide, NULL, &f->err));
    assert_int_equal(result.fate, RESULT_APPLIED);
    assert_false(result.differs);
    assert_string_equal(row(f), "(none)");
    sql(f, "DELETE FROM outbox_attempts");
    task_now(f, "scheduled", 1);
    line_of(f, 9, 1, "pay", outcomes[i]); /* its own: it has had its result */
    assert_int_equal(say(f, 1, RESULT_DONE, "rabbit#1"), RESULT_DUPLICATE);
    assert_string_equal(row(f), "9|pay|scheduled|1");
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox");
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE reason NOT LIKE '%%opposite%%'"), 0);
}

/* What waits for a row that somebody holds is judged by the road of that row. */
static void a_row_that_somebody_holds_has_its_own_road(void **state) {
  struct fixture *f = *state;
  sql(f, "INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, "
         "target_host, shard, created_at, state, attempt, failures, recoveries, finished_at, keep_until) "
         "VALUES (4, 'invoice-17', 'partner', '', '{}', '', '2020-01-01', 5, '', '', 0, '2020-01-01', 'done', 1, 0, 0, "
         "UTC_TIMESTAMP(6), '2099-01-01')");
  line_of(f, 4, 1, "partner", "done");
  task_now(f, "awaiting", 1);
  other(f, "BEGIN");
  other(f, "SELECT 1 FROM outbox WHERE id = 9 FOR UPDATE");
  assert_int_equal(say(f, 1, RESULT_FAIL, "rabbit#1"), RESULT_BUSY);
  assert_int_equal(say(f, 1, RESULT_FAIL, "rabbit#2"), RESULT_BUSY); /* it may wait: nobody knows yet where it named */
  other(f, "COMMIT");
  assert_int_equal(say(f, 1, RESULT_FAIL, "rabbit#2"), RESULT_MISROUTED);
  assert_string_equal(row(f), "9|pay|awaiting|1");
  assert_int_equal(say(f, 1, RESULT_FAIL, "rabbit#1"), RESULT_APPLIED);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(the_route_of_before_is_not_the_road_of_now),
      TEST(the_results_of_before_are_not_those_of_now),
      TEST(a_row_that_somebody_holds_has_its_own_road),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
