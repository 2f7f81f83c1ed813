/* SPDX-License-Identifier: MIT
 *
 * The store when a script fails behind its COMMIT, or at it, or gets no answer: what it wrote is there, and is found
 * out.
 */
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops
#define ROW(...) sql(f, "INSERT INTO outbox " __VA_ARGS__)

static void claim_two(struct fixture *f, enum store_status wanted) {
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch = NULL;
  uint64_t lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0), (2, 'r', 'p', 0)");
  assert_int_equal(claim_rows(f, &f->leases[0], 1, ids, 2, 1000, 1000, &batch, &lost), wanted);
  assert_int_equal(batch ? batch->count : 0, wanted == STORE_OK ? 2 : 0);
  release(batch);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state, attempt) FROM outbox"), "claimed1,claimed1");
  OPS->own_claims(f->ss, "me", f->leases, 1, 0, 100, &batch, &f->err);
  assert_int_equal(batch->count, 2);
  release(batch);
  sql(f, "DELETE FROM outbox");
}

/* KILL QUERY, or max_statement_time, between the COMMIT of a claim and the reading of what was claimed: the rows are
 * claimed. They were taken for not claimed, nobody sent them before their time-out, and then they counted as having
 * been in a crash (P1). */
static void a_claim_that_is_killed_behind_its_commit_is_found_out(void **state) {
  struct fixture *f = *state;
  fault_arm(f, FAULT_KILL_BEHIND, ";\nCOMMIT", 0, 1);
  claim_two(f, STORE_OK);
  fault_arm(f, FAULT_KILL_BEHIND, ";\nCOMMIT", 0, 4);
  claim_two(f, STORE_OK);
  fault_arm(f, FAULT_KILL_BEHIND, ";\nCOMMIT", 0, 5);
  claim_two(f, STORE_DOWN); /* and own_claims() tells */
}

/* The same with an error that is no reason to try again, and with an error of the COMMIT itself: here a statement that
 * commits and is refused. That is not about rows: it must not have them claimed by halves. */
static void a_claim_that_is_refused_at_its_commit_is_unknown(void **state) {
  struct fixture *f = *state;
  fault_instead(f, ";\nCOMMIT", ";\nCREATE TABLE outbox (a INT)", 1);
  claim_two(f, STORE_DOWN);
}

/* What was read of it has a column too few: claimed all the same. */
static void a_claim_whose_rows_cannot_be_read_is_found_out(void **state) {
  struct fixture *f = *state;
  fault_arm(f, FAULT_FEWER, "task_key, order_key, IF(", 0, 1);
  claim_two(f, STORE_OK);
}

/* What is refused before the COMMIT has changed nothing, and says so. */
static void a_claim_that_is_refused_before_its_commit_is_known(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1};
  struct task_batch *batch = NULL;
  uint64_t lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0)");
  fault_instead(f, "sent_digest = NULL", "sent_digest = nothing", 1);
  assert_int_equal(claim_rows(f, &f->leases[0], 1, ids, 1, 1000, 1000, &batch, &lost), STORE_REFUSED);
  assert_null(batch);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state, attempt) FROM outbox"), "scheduled0");
}

static void settle_and_find_out(struct fixture *f, enum fault fault, const char *statement) {
  struct decision d[2];
  two_rows(f, d, EVENT_DONE);
  fault_arm(f, fault, statement, 0, 1);
  assert_int_equal(settle(f, d, 2), 2);
  assert_done_once(f);
  sql(f, "DELETE FROM outbox_attempts");
  two_rows(f, d, EVENT_RETRY);
  fault_arm(f, fault, statement, 0, 1);
  assert_int_equal(settle(f, d, 2), 2);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(attempt) FROM outbox"), "1,1");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 2);
}

static void an_unknown_commit_of_a_batch_is_found_out(void **state) {
  settle_and_find_out(*state, FAULT_LOSE_ANSWER, "COMMIT");
}

static void what_is_killed_behind_its_commit_is_written_once(void **state) {
  settle_and_find_out(*state, FAULT_KILL_BEHIND, ";\nCOMMIT");
}

static void acquire_and_find_out(struct fixture *f, enum fault fault, const char *statement) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch;
  ok(f, OPS->give_back(f->ss, "me", &f->leases[0], false, &f->err));
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  fault_arm(f, fault, statement, 0, 1);
  ok(f, OPS->acquire(f->ss, "me", &rows[0], 60000, &epoch, &f->err));
  assert_true(epoch > rows[0].epoch);
}

static void an_acquisition_without_an_answer_is_found_out(void **state) {
  acquire_and_find_out(*state, FAULT_LOSE_ANSWER, "UPDATE");
}

static void an_acquisition_that_is_killed_behind_its_commit_is_found_out(void **state) {
  acquire_and_find_out(*state, FAULT_KILL_BEHIND, ";\nCOMMIT");
}

static enum result_fate accept(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  *out = (struct decision){.event = EVENT_DONE, .attempt = 1, .keep_us = INT64_C(3600000000)};
  return RESULT_APPLIED;
}

static void apply_once(struct fixture *f, enum fault fault, const char *statement) {
  ROW("(id, route, payload, shard, message_id) VALUES (1, 'r', 'p', 0, 'm1'), (2, 'r', 'p', 1, 'm2')");
  struct store_result r[2] = {{.record = {.message_id = "m2", .attempt = 1, .progress = -1}, .body = {"", 0}},
                              {.record = {.message_id = "m1", .attempt = 1, .progress = -1}, .body = {"", 0}}};
  fault_arm(f, fault, statement, 0, 1);
  ok(f, OPS->settle_results(f->ss, r, 2, accept, NULL, &f->err));
  assert_int_equal(r[0].fate, RESULT_APPLIED);
  assert_int_equal(r[1].fate, RESULT_APPLIED);
  assert_done_once(f);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), 0);
}

static void results_without_an_answer_are_applied_once(void **state) {
  apply_once(*state, FAULT_LOSE_ANSWER, "COMMIT");
}

static void results_that_are_killed_behind_their_commit_are_applied_once(void **state) {
  apply_once(*state, FAULT_KILL_BEHIND, "COMMIT");
}

static void cancel_and_find_out(struct fixture *f, enum fault fault, const char *statement) {
  const uint64_t ids[] = {1, 2};
  enum intervened changed[2];
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0), (2, 'r', 'p', 0)");
  fault_arm(f, fault, statement, 0, 1);
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_CANCEL, ids, 2, 0, "ann", "m", "", 0, changed, &f->err));
  assert_true(changed[0] && changed[1]);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 1);
}

static void a_cancellation_without_an_answer_is_found_out(void **state) {
  cancel_and_find_out(*state, FAULT_LOSE_ANSWER, "COMMIT");
}

static void a_cancellation_that_is_killed_behind_its_commit_is_found_out(void **state) {
  cancel_and_find_out(*state, FAULT_KILL_BEHIND, ";\nCOMMIT");
}

/* The commit did not happen, and the task was done before the command was tried again: it was not cancelled, and nobody
 * is told that it was. */
static void a_cancellation_that_came_to_nothing_is_not_said_to_be_one(void **state) {
  struct fixture *f = *state;
  const uint64_t id = 1;
  enum intervened changed;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'p', 0)");
  fault_instead(f, ";\nCOMMIT", ";\nROLLBACK;\nDELETE FROM outbox WHERE id = 1;\nKILL CONNECTION_ID()", 1);
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_CANCEL, &id, 1, 0, "ann", "m", "", 0, &changed, &f->err));
  assert_false(changed);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 0);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  static const struct CMUnitTest tests[] = {
      TEST(a_claim_that_is_killed_behind_its_commit_is_found_out),
      TEST(a_claim_that_is_refused_at_its_commit_is_unknown),
      TEST(a_claim_whose_rows_cannot_be_read_is_found_out),
      TEST(a_claim_that_is_refused_before_its_commit_is_known),
      TEST(an_unknown_commit_of_a_batch_is_found_out),
      TEST(what_is_killed_behind_its_commit_is_written_once),
      TEST(an_acquisition_without_an_answer_is_found_out),
      TEST(an_acquisition_that_is_killed_behind_its_commit_is_found_out),
      TEST(results_without_an_answer_are_applied_once),
      TEST(results_that_are_killed_behind_their_commit_are_applied_once),
      TEST(a_cancellation_without_an_answer_is_found_out),
      TEST(a_cancellation_that_is_killed_behind_its_commit_is_found_out),
      TEST(a_cancellation_that_came_to_nothing_is_not_said_to_be_one),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
