/* SPDX-License-Identifier: MIT
 *
 * outbox/claim.c - recorded claims: the row says who runs it before it leaves.
 *
 * The rows are locked first, without waiting: one that somebody else holds (an operator's open transaction, say) is not
 * claimed now and keeps nobody waiting. What is claimed is decided by the guarded UPDATE all the same.
 */
#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "outbox/row.h"
#include "query.h"

#define WHAT "claiming"

struct claim_unit {
  const char *instance;
  const struct shard_lease *leases;
  size_t lease_count;
  const uint64_t *ids;
  size_t count;
  struct text shards, locked; /* "1,2": the shards; the ids whose rows we hold */
  int64_t timeout_ms, lease_ms, ahead_us, max_payload;
  struct task_batch **batch;
  bool *fenced;
  bool stuck; /* nothing was claimed */
};

/* Locks the fence and those rows that nobody else holds. */
static bool lock_rows(struct store_session *ss, struct claim_unit *u, struct err *err) {
  struct db_result results[3];
  struct db_row row;
  uint64_t id;
  session_begin_transaction(ss);
  session_fence(ss, u->leases, u->lease_count);
  session_add(
      ss, query_claim_lock,
      ARGS(RAW("ids", *session_ids(ss, u->ids, u->count)), RAW("shards", u->shards), SIGNED("ahead_us", u->ahead_us)));
  if (!session_send(ss, WHAT, results, 3, err))
    return false;
  *u->fenced = results[1].count != u->lease_count;
  text_clear(&u->locked);
  bool ok = true;
  while (ok && db_next(&results[2], &row)) {
    ok = db_u64(&row, 0, UINT64_MAX, &id) || db_unexpected(err, WHAT);
    text_puts(&u->locked, u->locked.len ? "," : "");
    text_u64(&u->locked, id);
  }
  db_results_free(results, 3);
  return ok;
}

/* Writes the claims and reads all rows that are claimed by us, as they are now. */
static bool write_claims(struct store_session *ss, struct claim_unit *u, struct err *err) {
  struct text columns = {0};
  struct db_result results[2];
  size_t statements = 0;
  const struct sql_arg shard = RAW("shards", u->shards), instance = STRING("instance", u->instance);
  row_columns(&columns, u->max_payload);
  session_begin(ss);
  if (u->locked.len) {
    session_add_no_wait(ss, query_claim,
                        ARGS(RAW("ids", u->locked), shard, instance, SIGNED("timeout_ms", u->timeout_ms),
                             SIGNED("lease_ms", u->lease_ms), SIGNED("ahead_us", u->ahead_us)));
    statements++;
  }
  session_add(ss, query_claim_read,
              ARGS(RAW("ids", *session_ids(ss, u->ids, u->count)), shard, instance, RAW("columns", columns)));
  ss->script.failed = ss->script.failed || columns.failed || u->shards.failed || u->locked.failed;
  text_free(&columns);
  if (!session_send(ss, WHAT, results, statements + 1, err))
    return false;
  bool ok = row_batch(&results[statements], u->batch, err);
  db_results_free(results, statements + 1);
  return ok;
}

/* Redone after a COMMIT without an answer, there is nothing more to claim and the last SELECT finds what was claimed:
 * nobody else writes our name into a row of our shard. */
static bool claim_rows(struct store_session *ss, struct claim_unit *u, struct err *err) {
  if (!lock_rows(ss, u, err))
    return false;
  if (*u->fenced || (u->locked.len == 0 && !ss->unknown))
    return session_rollback(ss, WHAT, err);
  if (!write_claims(ss, u, err))
    return false;
  if (session_commit(ss, WHAT, err))
    return true;
  if (*u->batch) {
    (*u->batch)->release(*u->batch);
    *u->batch = NULL;
  }
  return false;
}

/* A lock that is met in spite of all is an index entry that somebody else holds. Waiting would stop all other reading.
 */
static bool claim_unit(struct store_session *ss, void *arg, struct err *err) {
  struct claim_unit *u = arg;
  u->stuck = false;
  if (claim_rows(ss, u, err))
    return true;
  u->stuck = err->code == DB_LOCK_WAIT;
  return u->stuck && session_rollback(ss, WHAT, err);
}

enum store_status ops_claim(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                            size_t lease_count, const uint64_t *ids, size_t count, int64_t timeout_ms, int64_t lease_ms,
                            int64_t ahead_us, int64_t max_payload, struct task_batch **batch, bool *fenced,
                            struct err *err) {
  *batch = NULL;
  *fenced = false;
  if (count == 0)
    return STORE_OK;
  struct claim_unit unit = {.instance = instance,
                            .leases = leases,
                            .lease_count = lease_count,
                            .ids = ids,
                            .count = count,
                            .timeout_ms = timeout_ms,
                            .lease_ms = lease_ms,
                            .ahead_us = ahead_us,
                            .max_payload = max_payload,
                            .batch = batch,
                            .fenced = fenced};
  for (size_t i = 0; i < lease_count; i++) {
    text_puts(&unit.shards, i ? "," : "");
    text_u64(&unit.shards, leases[i].shard);
  }
  enum store_status status = session_run(ss, WHAT " rows", claim_unit, &unit, err);
  text_free(&unit.shards);
  text_free(&unit.locked);
  return status == STORE_OK && unit.stuck ? STORE_BUSY : status;
}

struct own_claims_unit {
  const char *instance;
  const struct shard_lease *leases;
  size_t lease_count;
  uint32_t limit;
  struct task_batch **batch;
};

static bool own_claims_unit(struct store_session *ss, void *arg, struct err *err) {
  struct own_claims_unit *u = arg;
  struct text columns = {0};
  struct db_result result;
  row_columns(&columns, 0);
  text_clear(&ss->part);
  for (size_t i = 0; i < u->lease_count; i++) {
    text_puts(&ss->part, i ? "," : "");
    text_u64(&ss->part, u->leases[i].shard);
  }
  session_begin(ss);
  session_add(ss, query_own_claims,
              ARGS(RAW("columns", columns), RAW("shards", ss->part), STRING("instance", u->instance),
                   UNSIGNED("limit", u->limit)));
  ss->script.failed = ss->script.failed || columns.failed;
  text_free(&columns);
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  bool ok = row_batch(&result, u->batch, err);
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_own_claims(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                                 size_t lease_count, uint32_t limit, struct task_batch **batch, struct err *err) {
  *batch = NULL;
  if (lease_count == 0)
    return STORE_OK;
  return session_run(ss, "looking for claims of ours", own_claims_unit,
                     &(struct own_claims_unit){instance, leases, lease_count, limit, batch}, err);
}
