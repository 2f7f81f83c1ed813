/* SPDX-License-Identifier: MIT
 *
 * outbox/row_ids.c - row ids that come to their end, and how the table gets ordinary ones again.
 *
 * Nothing in a table keeps a client from choosing the next id: who may INSERT may SET insert_id, in no CHECK, default
 * or generated column may an AUTO_INCREMENT column be named, and the counter stays where it is when the row is rolled
 * back or deleted. After an id near the end every INSERT of everybody fails (error 1467). So the counter is put right:
 * rows with far ids get ordinary ones, then the counter follows the largest. Two daemons may do this at once.
 *
 * What nobody may have in memory moves at once, what awaits its result too: that comes by the message id. What may be
 * in flight keeps its id for a while, since whoever sends it settles it by that; then it moves as well, for no task may
 * keep the INSERTs of others from working. To a daemon that has it in flight its row is gone, and another one there.
 */
#include "core/base/random.h"
#include "outbox/db_error.h"
#include "outbox/next_id.h"
#include "outbox/ops.h"
#include "outbox/row_sizes.h"
#include "outbox/server.h"
#include "query.h"

enum { MOVES = 200, MOVE_ROWS = 1000 }; /* the next time goes on */
enum { RESETS = 50 }; /* one after the other; a moment without a transaction that has touched the table is enough */
enum {
  DUE_AFTER_US = 15 * 1000 * 1000,    /* what is due and not claimed: that long no call from memory should take */
  CLAIMED_AFTER_US = 45 * 1000 * 1000 /* what is claimed */
};

/* What is due within that time may be read any moment. */
#define RESTS                                                                                                          \
  "(state NOT IN ('scheduled', 'claimed') OR state = 'scheduled' AND (next_at > UTC_TIMESTAMP(6) + INTERVAL 10 "       \
  "SECOND "                                                                                                            \
  "OR shard = 63 AND LENGTH(order_key) = 0)) AND NOT EXISTS (SELECT 1 FROM `{table}_heads` AS h WHERE h.head_id = "    \
  "t.id)"
#define UNCLAIMED "state <> 'claimed'"

struct row_ids_unit {
  int64_t waited_us;
  uint64_t from;           /* rows from there on move, in their order, */
  uint64_t last;           /* behind this one, the last one before */
  uint64_t ids[MOVE_ROWS]; /* of rows that are to move, and that we hold */
  size_t count;
  bool reset;
  uint64_t far; /* an id that is left */
};

static bool take_number(struct db_result *result, const char *what, uint64_t *number, struct err *err) {
  struct db_row row;
  *number = 0;
  return !db_next(result, &row, 1) || !row.fields[0] || db_u64(&row, 0, UINT64_MAX, number) || db_unexpected(err, what);
}

/* One number; 0 for NULL. */
static bool read_number(struct store_session *ss, const char *what, uint64_t *number, struct err *err) {
  struct db_result result;
  if (!session_send(ss, what, &result, 1, err))
    return false;
  bool ok = take_number(&result, what, number, err);
  db_results_free(&result, 1);
  return ok;
}

static bool read_last(struct store_session *ss, struct row_ids_unit *u, struct err *err) {
  session_begin(ss);
  session_add(ss, query_ids_last, ARGS(UNSIGNED("below", u->from)));
  return read_number(ss, "looking for the last ordinary row id", &u->last, err);
}

/* New ids come behind all ordinary ones. Where a client has put a row just before the far ones there is no room for
 * them: then they come to where it cannot know, behind the last one before some limit, and whatever is beyond that
 * moves with them, rows that were moved earlier too. The order of ids stays, and so that of an order_key. */
static bool choose_range(struct store_session *ss, struct row_ids_unit *u, struct err *err) {
  u->from = STORE_ID_FAR;
  if (!read_last(ss, u, err))
    return false;
  for (int tries = 0; u->from - u->last <= (uint64_t)MOVES * MOVE_ROWS && tries < 10; tries++) {
    u->from = STORE_ID_FAR - random_u64() % (STORE_ID_FAR - STORE_ID_MAY_CHANGE);
    if (!read_last(ss, u, err))
      return false;
  }
  return true;
}

static const char *which(const struct row_ids_unit *u) {
  return u->waited_us < DUE_AFTER_US ? RESTS : u->waited_us < CLAIMED_AFTER_US ? UNCLAIMED : "TRUE";
}

static bool take_ids(struct row_ids_unit *u, struct db_result *result, const char *what, struct err *err) {
  struct db_row row;
  for (u->count = 0; u->count < MOVE_ROWS && db_next(result, &row, 1); u->count++)
    if (!db_u64(&row, 0, UINT64_MAX, &u->ids[u->count]))
      return db_unexpected(err, what);
  return true;
}

/* Locks the next rows that are to move, and keeps as many of them as one transaction may write. */
static bool lock_rows(struct store_session *ss, struct row_ids_unit *u, struct err *err) {
  static const char what[] = "looking for rows with far ids";
  struct db_result results[3];
  struct text condition = {0};
  text_expand(&condition, which(u), ss->outbox->config->table, NO_ARGS);
  session_begin_transaction(ss);
  session_add(ss, query_ids_find,
              ARGS(UNSIGNED("far", u->from), RAW("which", condition), UNSIGNED("limit", MOVE_ROWS)));
  session_add(ss, query_ids_last, ARGS(UNSIGNED("below", u->from)));
  text_free(&condition);
  if (!session_send(ss, what, results, 3, err))
    return false;
  bool ok = take_ids(u, &results[1], what, err) && take_number(&results[2], what, &u->last, err);
  db_results_free(results, 3);
  return ok && (u->count == 0 || row_sizes_fit(ss, what, u->ids, u->count, ROW_SIZES_MOST, &u->count, err));
}

/* What a client wrote in a lenient sql_mode, with CHECKs switched off, stays as it is; MySQL lets no such row in. */
#define ANY_VALUE "/*M!100303 SET STATEMENT sql_mode = '' FOR */ "

static bool move_rows(struct store_session *ss, struct row_ids_unit *u, struct err *err) {
  static const char what[] = "giving rows ordinary ids";
  const char *table = ss->outbox->config->table;
  struct db_result results[5];
  struct text list = {0};
  text_puts(&list, "'[");
  for (size_t i = 0; i < u->count; i++) {
    text_puts(&list, i ? "," : "");
    text_u64(&list, u->ids[i]);
  }
  text_puts(&list, "]'");
  const struct sql_arg ids = RAW("ids", list), last = UNSIGNED("last", u->last), count = UNSIGNED("count", u->count);
  session_begin(ss);
  session_add(ss, query_ids_heads_forget, ARGS(last, count));
  session_add(ss, query_ids_heads, ARGS(ids, last));
  session_add(ss, query_ids_attempts, ARGS(ids, last));
  text_puts(&ss->script, ";\n" ANY_VALUE);
  text_query(&ss->script, query_ids_move, table, ARGS(ids, last));
  session_add_commit(ss);
  text_free(&list);
  if (!session_send_commit(ss, what, results, 5, 4, err))
    return false;
  db_results_free(results, 5);
  return true;
}

static bool move_all(struct store_session *ss, struct row_ids_unit *u, struct err *err) {
  if (!choose_range(ss, u, err))
    return false;
  for (int i = 0; i < MOVES; i++) {
    if (!lock_rows(ss, u, err))
      return false;
    if (u->count == 0)
      return session_rollback(ss, "looking for rows with far ids", err);
    if (!move_rows(ss, u, err))
      return false;
  }
  return true;
}

static bool reset_counter(struct store_session *ss, struct err *err) {
  uint64_t ignored;
  for (int tries = 1;; tries++) {
    session_begin(ss);
    session_add(ss, query_ids_reset, NO_ARGS);
    if (session_change(ss, "putting the row ids' counter back", &ignored, err))
      return true;
    if (err->code != DB_LOCK_WAIT || tries == RESETS || server_is_mysql(ss->conn)) /* that one waits */
      return false;
  }
}

static bool put_right(struct store_session *ss, void *arg, struct err *err) {
  struct row_ids_unit *u = arg;
  uint64_t next;
  u->reset = false;
  u->far = 0;
  if (!next_id_read(ss->conn, "reading the next row id", &next, err))
    return false;
  if (!next_id_ends(next))
    return true;
  if (!move_all(ss, u, err))
    return false;
  session_begin(ss);
  session_add(ss, query_ids_far, ARGS(UNSIGNED("far", STORE_ID_FAR)));
  if (!read_number(ss, "looking for far row ids", &u->far, err))
    return false;
  if (u->far)
    return true; /* of tasks that may be on their way */
  u->reset = reset_counter(ss, err);
  return u->reset;
}

enum store_status ops_row_ids(struct store_session *ss, int64_t waited_us, bool *reset, uint64_t *far,
                              struct err *err) {
  struct row_ids_unit unit = {.waited_us = waited_us};
  enum store_status status = session_try(ss, "row ids", put_right, &unit, err);
  *reset = unit.reset;
  *far = unit.far;
  return status;
}
