/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_impl.h - what the files operator*.c share. Nobody else includes it.
 *
 * Statements are sent one by one: the connection has several statements in one text switched off, because the raw
 * condition of an operator becomes part of some of them.
 */
#ifndef OUTBOX_OPERATOR_IMPL_H
#define OUTBOX_OPERATOR_IMPL_H

#include "core/operator.h"
#include "opsql.h" /* generated: sql/queries/operator */
#include "outbox/db_stmt.h"
#include "outbox/operator_filter.h"
#include "outbox/sql.h"

struct outbox_operator {
  struct db_conn *conn;
  const char *table;
  uint64_t shards; /* a bit for each that there is */
  unsigned waits;  /* for locks beside single rows, in vain */
  bool met_lock; /* one was waited for in vain: from then on rows are passed over, and nothing is tried again for a lock
                  */
};

/* The status that belongs to err->code. */
enum store_status op_status(const struct err *err);

/* Runs one statement of sql/queries/operator. result may be NULL. False: err has the server's error number. */
MUSTCHECK bool op_query(struct outbox_operator *op, const char *statement, const struct sql_arg *args, const char *what,
                        struct db_result *result, struct err *err);
/* The same with the number of rows that were changed. */
MUSTCHECK bool op_change(struct outbox_operator *op, const char *statement, const struct sql_arg *args,
                         const char *what, uint64_t *changed, struct err *err);

/* Runs body in a transaction, again after conflicts with others. body may run several times. */
typedef bool op_body(struct outbox_operator *op, void *ctx, struct err *err);
MUSTCHECK enum store_status op_transaction(struct outbox_operator *op, op_body *body, void *ctx, struct err *err);

/* Calls row for one row of a result. *goes_on: it wants another. False where a value is not what its type says. */
MUSTCHECK bool op_row(struct db_result *result, const struct db_row *raw, row_fn *row, void *ctx, bool *goes_on,
                      const char *what, struct err *err);
/* Calls row for each row of a result, then frees it. */
MUSTCHECK bool op_rows(struct db_result *result, row_fn *row, void *ctx, const char *what, struct err *err);

/* Adds a JSON object of a row's values, without those columns whose name is in `skip` (NULL-terminated). */
MUSTCHECK bool op_row_json(struct text *out, const struct db_result *result, const struct db_row *row,
                           const char *const *skip);

/* An audit row, in the transaction of the caller. before: JSON text or NULL. */
MUSTCHECK bool op_audit(struct outbox_operator *op, const char *verb, const char *actor, const char *reason,
                        const char *filter, uint64_t changed, const struct text *before, uint64_t *audit_id,
                        struct err *err);

/* Parts of the port that have a file of their own. */
enum change_outcome op_judge(const struct task_change *order, const struct task_target *target);
enum store_status op_change_tasks(void *self, const struct task_change *change, struct task_target *targets,
                                  size_t count, struct audit_span *audit, struct err *err);
enum store_status op_audit_change(void *self, const struct task_change *change, uint64_t changed, uint64_t *audit_id,
                                  struct err *err);
enum store_status op_insert(void *self, const struct new_task *task, uint64_t *id, char message_id[STORE_ID_MAX + 1],
                            struct err *err);
enum store_status op_shard_owner(void *self, uint8_t shard, struct shard_owner *owner, struct err *err);
enum store_status op_routes(void *self, const char *only, uint64_t cap, row_fn *row, void *ctx, struct err *err);
enum store_status op_pause(void *self, const char *route, bool paused, const char *actor, const char *reason,
                           struct err *err);
enum store_status op_list_instances(void *self, row_fn *row, void *ctx, struct err *err);
enum store_status op_announce(void *self, const char *name, struct err *err);
enum store_status op_announced(void *self, const char *const *names, size_t count, bool *found, struct err *err);
enum store_status op_withdraw(void *self, const char *name, struct err *err);
enum store_status op_quarantine(void *self, uint64_t id, uint64_t limit, uint64_t body_cap, row_fn *row, void *ctx,
                                struct err *err);
enum store_status op_quarantine_forget(void *self, uint64_t id, int64_t before_us, const char *actor,
                                       const char *reason, uint64_t *forgotten, struct err *err);
enum store_status op_doctor(void *self, const struct doctor_facts *facts, finding_fn *say, void *ctx, struct err *err);

#endif
