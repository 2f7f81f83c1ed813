/* SPDX-License-Identifier: MIT
 *
 * One task and its results, judged by the rules of the engine: what tests of changed and of early results share.
 */
#ifndef TESTS_STORE_ANSWERS_H
#define TESTS_STORE_ANSWERS_H

#include <stdio.h>

#include "core/rules.h"
#include "integration/store_fixture.h"

#define OPS f->store.ops
#define ROW(...) sql(f, "INSERT INTO outbox " __VA_ARGS__)
#define ONE_TASK ROW("(id, route, payload, shard, message_id) VALUES (1, 'r', 'old', 0, 'm1')")
#define OLD_TASK ROW("(id, route, payload, shard, message_id, due_at) VALUES (1, 'r', 'old', 0, 'm1', '2019-12-31')")

static struct plugin_config plugin;
static struct route_config routes[] = {{.name = "r",
                                        .plugin = &plugin,
                                        .result = RESULT_EXPECTED,
                                        .history_ms = 3600 * 1000,
                                        .max_checkpoint = 4096,
                                        .retry = {.max_attempts = 5}}};
static const struct config config = {.routes = routes, .route_count = 1, .engine = {.dead_retention_ms = 3600 * 1000}};

static inline enum result_fate decide(void *ctx, const struct result_row *row, struct result_record *record,
                                      struct decision *out) {
  struct rules_context context = {.config = &config};
  return rules_result(&context, row, record, out);
}

static inline struct store_result answer(uint32_t attempt, enum result_status status) {
  return (struct store_result){.record = {.message_id = "m1",
                                          .attempt = attempt,
                                          .status = status,
                                          .retry_in_ms = -1,
                                          .extend_ms = -1,
                                          .progress = -1},
                               .source = "bus",
                               .origin = "results[0]@7",
                               .body = {.data = "{}", .len = 2}};
}

static inline enum result_fate apply(struct fixture *f, struct store_result *result) {
  ok(f, OPS->settle_results(f->ss, result, 1, decide, NULL, &f->err));
  return result->fate;
}

static inline enum result_fate say(struct fixture *f, uint32_t attempt, enum result_status status) {
  struct store_result result = answer(attempt, status);
  return apply(f, &result);
}

static inline const char *row(struct fixture *f) {
  return ask_text(f, "SELECT CONCAT_WS('|', state, payload, attempt, revision) FROM outbox");
}

static inline void send(struct fixture *f, enum task_event event) {
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  assert_non_null(batch);
  struct decision d = decide_on_sent(&batch->tasks[0], event);
  assert_int_equal(settle(f, &d, 1), 1);
  assert_false(d.changed);
  release(batch);
}

static inline struct task_batch *claim(struct fixture *f) {
  struct task_batch *batch;
  uint64_t lost;
  ok(f, claim_rows(f, f->leases, 1, &(uint64_t){1}, 1, 60000, 1000, &batch, &lost));
  assert_non_null(batch);
  return batch;
}

/* A result for which there is no room to wait counts where the task may have left. */
static inline enum result_fate say_without_room(struct fixture *f, uint32_t attempt, enum result_status status) {
  struct store_result result = answer(attempt, status);
  result.record.cannot_wait = true;
  return apply(f, &result);
}

#endif
