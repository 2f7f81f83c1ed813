/* SPDX-License-Identifier: MIT
 *
 * outbox/row.h - rows of the outbox as tasks: which columns are read, and how they become a struct task in place.
 *
 * Pure decoding, with every field checked: whatever a server sends, it gives a task or an error, never a wild read.
 */
#ifndef OUTBOX_ROW_H
#define OUTBOX_ROW_H

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/store.h"
#include "core/task.h"
#include "outbox/db_stmt.h"

#ifdef DUEBOX_UNGUARDED
#define ROW_VERSION "NULL"
#else
#define ROW_VERSION "changed_at"
#endif

/* A digest of what is sent of a row: the same columns as row_same_content(). */
#define ROW_CONTENT                                                                                                    \
  "((CRC32(payload) << 32) | CRC32(CONCAT_WS('|', route, CHAR_LENGTH(task_key), task_key, CHAR_LENGTH(order_key), "    \
  "order_key, headers)))"

/* ROW(symbol, "expression"): what a query with {columns} selects, in this order. */
#define ROW_FIELDS(ROW)                                                                                                \
  ROW(ID, "id")                                                                                                        \
  ROW(SHARD, "shard")                                                                                                  \
  ROW(STATE, "state + 0")                                                                                              \
  ROW(PRIORITY, "priority")                                                                                            \
  ROW(ATTEMPT, "attempt")                                                                                              \
  ROW(FAILURES, "failures")                                                                                            \
  ROW(RECOVERIES, "recoveries")                                                                                        \
  ROW(REVISION, "revision")                                                                                            \
  ROW(MAX_ATTEMPTS, "max_attempts")                                                                                    \
  ROW(TIMEOUT, "timeout_ms")                                                                                           \
  ROW(DUE, "COALESCE(due_at, " SQL_BY_DELAY("") ")")                                                                   \
  ROW(FIRST_DUE, "first_due_at")                                                                                       \
  ROW(EXPIRES, "expires_at")                                                                                           \
  ROW(ROUTE, SQL_BYTES("route"))                                                                                       \
  ROW(MESSAGE_ID, SQL_BYTES("message_id"))                                                                             \
  ROW(TASK_KEY, "task_key")                                                                                            \
  ROW(ORDER_KEY, "order_key")                                                                                          \
  ROW(HEADERS, "IF({fits}, headers, NULL)")                                                                            \
  ROW(CHECKPOINT, "IF({fits}, {checkpoint}, NULL)")                                                                    \
  ROW(TARGET_HOST, "IF(move_to_shard IS NULL AND move_to_host IS NULL, target_host, NULL)")                            \
  ROW(CHANGED, ROW_VERSION)                                                                                            \
  ROW(PAYLOAD_LEN, "OCTET_LENGTH(payload)")                                                                            \
  ROW(BESIDE_LEN, "OCTET_LENGTH(headers) + COALESCE(OCTET_LENGTH(checkpoint), 0)")                                     \
  ROW(PAYLOAD, "IF({fits}, payload, NULL)")

enum row_field {
#define ROW(symbol, expression) ROW_##symbol,
  ROW_FIELDS(ROW)
#undef ROW
      ROW_FIELD_COUNT,
};

/* Writes the list of expressions into out, for {columns}. */
void row_columns(struct text *out, struct store_limit limit);

/* Decodes one row. The task's bytes point into the row. A value that the schema does not allow, which a client may
 * have got past it (a lenient sql_mode, CHECKs that it switched off), makes the task unreadable. False: what guards its
 * end, its id, shard, state and message id, cannot be told, and err says what of it is wrong. */
MUSTCHECK bool row_decode(const struct db_row *row, struct task *task, struct err *err);

/* Writes a SELECT that gives one row of the same shape, which tells two times instead of a task: `next`, an expression
 * that may be NULL, and the server's clock. */
void row_times(struct text *out, const char *next);
/* Decodes such a row. *next_us is INT64_MAX for NULL. */
MUSTCHECK bool row_decode_times(const struct db_row *row, int64_t *next_us, int64_t *now_us);

/* Whether the schema's CHECKs allow it: a message id or the name of a route, and a priority. */
bool row_name_fits(const char *name, size_t len, size_t max);
static inline bool row_priority_fits(uint64_t priority) { return priority >= 1 && priority <= STORE_PRIORITY_MAX; }

/* The name of a route as the database compares it, to which 'a' and 'a ' are one: without spaces at its end. It may
 * hold NULs. False: it is longer than the column. */
enum { ROW_ROUTE_CAP = STORE_ROUTE_MAX + STORE_WIDER + 1 };
MUSTCHECK bool row_route(const struct db_row *row, unsigned field, char out[ROW_ROUTE_CAP], size_t *len);
/* The same for people, where no NUL ends it, and nothing is "(empty)": a misfit is not taken for the route of which it
 * has the beginning. */
MUSTCHECK bool row_route_shown(const struct db_row *row, unsigned field, char out[ROW_ROUTE_CAP]);

/* A time, or the beginning of time where the field has none that is valid: what is due then is looked at. */
int64_t row_time_or_past(const struct db_row *row, unsigned field);

/* Whether a copy of what is there now would be none but a second one of what was sent. Expiry, an earlier due time and
 * the checkpoint change nothing about what has left. */
bool row_same_content(const struct task *now, const struct task *sent);

/* Makes a batch of all rows of a result that have not been fetched, and takes the result over. Rows that cannot be
 * decoded are left out: they stay in the table, and cost nobody else anything. *batch is NULL when there are none. On
 * failure the result still belongs to the caller. */
MUSTCHECK bool row_batch(struct db_result *result, struct task_batch **batch, struct err *err);

#endif
