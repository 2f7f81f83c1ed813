/* SPDX-License-Identifier: MIT
 *
 * core/rules.h - what follows from what happened to a task: pure functions from facts to a decision.
 *
 * No clock, no randomness of its own, no store: everything comes in as an argument, so every rule is a row in a test.
 * Attempts are a token (how often the task was handed out, it only grows); failures are the budget.
 */
#ifndef CORE_RULES_H
#define CORE_RULES_H

#include <duebox/outcome.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/config.h"
#include "core/record.h"
#include "core/store.h"

/* What rules need to know of the surroundings. */
struct rules_context {
  const struct config *config;
  int64_t now_us;  /* by the database's clock */
  uint64_t random; /* any 64 bits, for jitter; may be the same for many tasks */
};

/* The facts of a task that rules look at, from a row or from a flight. */
struct rules_task {
  uint64_t id;
  struct duebox_bytes message_id;
  uint8_t shard;
  enum task_state state;
  uint32_t attempt_row; /* as the row says now */
  uint32_t attempt_now; /* of the attempt that this is about */
  uint32_t failures, recoveries, max_attempts, timeout_ms;
  int64_t due_us, asked_due_us, expires_us;
  bool probe;        /* it tried whether its suspended route is back */
  bool answer_comes; /* of a flight: an answer after its call has a way to come */
};

/* An attempt came back from its sink. A result record within the outcome has been parsed by the caller (record, NULL
 * when there is none). *written is false when nothing has to be written: an unsent memory claim goes back. */
void rules_outcome(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                   const struct duebox_outcome *outcome, const struct result_record *record, struct decision *out,
                   bool *written);

/* No result came in time. */
void rules_no_result(const struct rules_context *context, const struct route_config *route,
                     const struct rules_task *task, struct decision *out);

/* The daemon ends in good order while the task's sink has it: tried again at once, and no failure. */
void rules_stopped(const struct rules_task *task, struct decision *out);

/* A recorded claim outlived its lease: whoever held it is gone. */
void rules_recover(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                   struct decision *out);

/* The row can never be sent (broken headers, payload over the limit): dead, with the reason. */
void rules_refuse(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                  const char *error_class, const char *error, struct decision *out);

/* expires_at has come. */
void rules_expire(const struct rules_context *context, const struct rules_task *task, struct decision *out);

/* Others of its order_key wait for it, and nobody tries it: its host is silent. Whether it is dead of that, by the
 * give_up by which a failure would end it; error says which host and for how long. */
MUSTCHECK bool rules_strand(const struct rules_context *context, const struct route_config *route,
                            const struct rules_task *task, const char *error, struct decision *out);

/* It was never handed to its sink, which is no failure: back as it was. *written: a recorded claim is to be undone. */
void rules_unsent(const struct rules_task *task, struct decision *out, bool *written);
/* A target that says it is gone for good is asked again after this. Each of its rows that it said it to waits for as
 * long, for only so many targets are known. */
enum { RULES_GONE_MS = 10 * 60 * 1000 };
/* How long a row waits whose target is in trouble: the longer it has waited, the longer, within bounds. */
int64_t rules_patience_us(int64_t age_us);
/* Its target is suspended: it was not sent, and is due again after delay_us, without using an attempt. The reason is
 * the target's. */
void rules_defer(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                 int64_t delay_us, const char *error_class, const char *error, struct decision *out);
/* Given back as it is, for the shard or host that somebody asks for. */
void rules_move(const struct rules_task *task, struct decision *out);
/* A task before it in its order_key has failed. */
void rules_block(const struct rules_task *task, struct decision *out);

/* A result record met its row: a result_decide_fn whose ctx is a struct rules_context. */
enum result_fate rules_result(void *context, const struct result_row *row, struct result_record *record,
                              struct decision *out);

#endif
