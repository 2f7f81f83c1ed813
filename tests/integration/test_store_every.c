/* SPDX-License-Identifier: MIT
 *
 * Every result record against every row of a table: what becomes of each is what docs/CONSUMERS.md says
 * (support/result_oracle.h), and the row shows it. What a row is, and whether it was changed, is read by SQL here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rules.h"
#include "integration/store_fixture.h"
#include "support/result_oracle.h"

#define OPS f->store.ops
#define ROW_NOW "CONCAT_WS('|', o.state, o.attempt, o.due_at, o.failures, o.lease_until, o.progress, o.changed_at)"

enum { BATCH = 150 };

static struct route_config routes[] = {
    {.name = "hook", .plugin = &hooks, .retry = {.max_attempts = 9}},
    {.name = "mail", .plugin = &rabbit, .reply_to = "ours", .retry = {.max_attempts = 9}}};
static const struct config config = {.sources = sources,
                                     .source_count = 3,
                                     .routes = routes,
                                     .route_count = 2,
                                     .engine = {.dead_retention_ms = 3600000}};

static enum result_fate decide(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  struct rules_context context = {.config = &config};
  return rules_result(&context, row, record, out);
}

/* The axes that the table has a say in; of the statuses one that ends it, one that fails it and one that does not. */
static const unsigned words[] = {DONE, FAIL, PROGRESS};
static const unsigned roads[] = {OWN_QUEUE, OTHER_QUEUE, API, CALLBACK, CALLBACK_OF_ANOTHER};
static const unsigned sizes[] = {TASK_DONE, 3, 3, 2, 5, 3, 3, DESTINATIONS};
enum { AXES = sizeof sizes / sizeof sizes[0] };

static void insert(struct fixture *f, const struct meeting *m, size_t at) {
  bool called = m->state == TASK_CLAIMED || m->state == TASK_AWAITING;
  sql(f,
      "INSERT INTO outbox (id, message_id, route, payload, shard, state, attempt, due_at, lease_until, claim_epoch, "
      "created_at, changed_at) VALUES (%zu, 'm%zu', '%s', 'sent', 0, '%s', %u, '%s', %s, 7, '2020-01-01', "
      "'2020-01-01' - INTERVAL %d MICROSECOND)",
      at + 1, at, route_names[m->to], task_state_text((enum task_state)m->state), attempts_of_rows[m->row_attempt],
      m->due ? "2020-01-01" : "2099-01-01", called ? "'2099-01-01'" : "NULL", m->change == CHANGE_BEFORE_SENT);
  if (m->change == CHANGE_SINCE_SENT)
    sql(f, "UPDATE outbox SET payload = 'changed' WHERE id = %zu", at + 1);
}

static struct store_result record_of(const struct meeting *m, size_t at) {
  bool callback = m->road >= CALLBACK;
  struct store_result result = {.record = {.attempt = attempts_of_records[m->attempt],
                                           .status = statuses[m->word],
                                           .row = !callback             ? 0
                                                  : m->road == CALLBACK ? at + 1
                                                                        : at + 1000,
                                           .current_only = callback,
                                           .entry = entry_of(m),
                                           .retry_in_ms = -1,
                                           .extend_ms = -1,
                                           .progress = 0.5},
                                .source = "bus",
                                .origin = "results[0]@7",
                                .body = {.data = "{}", .len = 2}};
  snprintf(result.record.message_id, sizeof result.record.message_id, "m%zu", at);
  return result;
}

/* All are given until each has been judged: a transaction takes what it has room for. */
static void apply(struct fixture *f, struct store_result *results, size_t count) {
  struct store_result again[BATCH];
  size_t place[BATCH], left = count;
  for (size_t i = 0; i < count; i++)
    place[i] = i;
  while (left > 0) {
    size_t rest = 0;
    for (size_t i = 0; i < left; i++)
      again[i] = results[place[i]];
    ok(f, OPS->settle_results(f->ss, again, left, decide, NULL, &f->err));
    for (size_t i = 0; i < left; i++) {
      results[place[i]] = again[i];
      if (again[i].postponed)
        place[rest++] = place[i];
    }
    assert_true(rest < left);
    left = rest;
  }
}

static unsigned meet(struct fixture *f, const struct meeting *meetings, size_t count) {
  static struct store_result results[BATCH];
  char applied[BATCH * 4 + 2] = "0";
  unsigned wrong = 0;
  sql(f, "START TRANSACTION");
  for (size_t i = 0; i < count; i++) {
    insert(f, &meetings[i], i);
    results[i] = record_of(&meetings[i], i);
  }
  sql(f, "COMMIT");
  sql(f, "INSERT INTO rows_before SELECT id, " ROW_NOW " FROM outbox o");
  apply(f, results, count);
  for (size_t i = 0; i < count; i++) {
    const struct meeting *m = &meetings[i];
    enum result_fate wanted = says_the_document(m);
    if (results[i].fate == RESULT_APPLIED)
      snprintf(applied + strlen(applied), sizeof applied - strlen(applied), ",%zu", i + 1);
    if (results[i].fate != wanted && wrong++ < 5)
      print_error(
          "state %s, counts %u, change %u, due %u, road %u, attempt %u, word %u, to %u, expects %u: fate %d, not "
          "%d\n",
          task_state_text((enum task_state)m->state), attempts_of_rows[m->row_attempt], m->change, m->due, m->road,
          attempts_of_records[m->attempt], m->word, m->to, m->expects, (int)results[i].fate, (int)wanted);
  }
  assert_int_equal(ask(f,
                       "SELECT COUNT(*) FROM rows_before b LEFT JOIN outbox o ON o.id = b.id WHERE (b.id IN (%s)) = "
                       "(o.id IS NOT NULL AND b.was = " ROW_NOW ")",
                       applied),
                   0);
  sql(f, "DELETE FROM rows_before");
  sql(f, "DELETE FROM outbox");
  sql(f, "DELETE FROM outbox_attempts");
  sql(f, "DELETE FROM outbox_history");
  sql(f, "DELETE FROM outbox_quarantine");
  return wrong;
}

static unsigned meet_all(struct fixture *f, bool expects) {
  static struct meeting meetings[BATCH];
  unsigned at[AXES] = {0}, axis = 0, wrong = 0, met = 0;
  size_t count = 0;
  routes[0].result = routes[1].result = expects ? RESULT_EXPECTED : RESULT_NONE;
  while (axis < AXES) {
    const struct meeting m = {.state = at[0],
                              .row_attempt = at[1],
                              .change = at[2],
                              .due = at[3],
                              .road = roads[at[4]],
                              .attempt = 1 + at[5],
                              .word = words[at[6]],
                              .to = at[7],
                              .expects = expects};
    bool called = m.state == TASK_CLAIMED || m.state == TASK_AWAITING;
    if (!called || at[1] > 0)
      meetings[count++] = m;
    for (axis = 0; axis < AXES && ++at[axis] == sizes[axis]; axis++)
      at[axis] = 0;
    if (count == BATCH || (axis == AXES && count)) {
      wrong += meet(f, meetings, count);
      met += (unsigned)count;
      count = 0;
    }
  }
  print_message("%u meetings, %u other than the documents say\n", met, wrong);
  assert_true(met > 10000);
  return wrong;
}

static void every_record_meets_every_row(void **state) {
  struct fixture *f = *state;
  sql(f, "CREATE TABLE rows_before (id BIGINT UNSIGNED PRIMARY KEY, was VARCHAR(200) CHARACTER SET ascii)");
  assert_int_equal(meet_all(f, true) + meet_all(f, false), 0);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(every_record_meets_every_row),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
