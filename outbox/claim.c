/* SPDX-License-Identifier: MIT
 *
 * outbox/claim.c - recorded claims: the row says who runs it before it leaves.
 *
 * The rows are locked first, without waiting: one that somebody else holds (an operator's open transaction, say) is not
 * claimed now and keeps nobody waiting. Whoever was refused an INSERT for the sake of a key holds nothing but the entry
 * of that key in its index: a wary claim passes over those too, which could be claimed and sent, but not settled. All
 * that was judged is compared there; nobody changes it until our commit.
 */
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "outbox/row.h"
#include "outbox/server.h"
#include "outbox/side_tables.h"
#include "query.h"

#define WHAT "claiming"

struct claim_unit {
  const struct store_claim *claim;
  struct shard_lease leases[STORE_SHARDS_MAX]; /* those of the claim whose shards nobody holds */
  size_t lease_count;
  struct text shards, epochs, locked; /* "1,2"; "WHEN 1 THEN 7 .."; the ids whose rows we hold */
  struct task_batch **batch;
  uint64_t *lost;
  bool stuck; /* nothing was claimed */
};

static void name_leases(const struct shard_lease *leases, size_t count, struct text *shards, struct text *epochs) {
  text_clear(shards);
  text_clear(epochs);
  text_shards(shards, leases, count);
  for (size_t i = 0; i < count; i++) {
    text_puts(epochs, " WHEN ");
    text_u64(epochs, leases[i].shard);
    text_puts(epochs, " THEN ");
    text_u64(epochs, leases[i].epoch);
  }
}

/* Adds "(1,'m1'),(2,'m2')". */
static void name_rows(const struct store_claim *claim, struct text *out) {
  for (size_t i = 0; i < claim->count; i++) {
    text_puts(out, i ? ",(" : "(");
    text_u64(out, claim->ids[i]);
    text_puts(out, ",");
    text_sql(out, claim->message_ids[i], strlen(claim->message_ids[i]));
    text_puts(out, ")");
  }
}

/* Locks those rows that can be claimed and that nobody else holds; no other lock. */
static bool lock_rows(struct store_session *ss, struct claim_unit *u, struct err *err) {
  const struct store_claim *claim = u->claim;
  struct db_result results[2];
  struct db_row row;
  uint64_t id;
  struct text rows = {0};
  (void)session_ids(ss, claim->ids, claim->count);
  bool wary = claim->wary || *session_skip(ss, false);
  if (wary && !server_lock_entries(ss, WHAT, &ss->part, err))
    return false;
  name_rows(claim, &rows);
  session_begin_transaction(ss);
  session_add(ss, query_claim_lock,
              ARGS(RAW("ids", ss->part), RAW("rows", rows), STRING("route", claim->route), STRING("host", claim->host),
                   RAW("shards", u->shards), SIGNED("ahead_us", claim->ahead_us)));
  text_free(&rows);
  if (!session_send(ss, WHAT, results, 2, err))
    return false;
  text_clear(&u->locked);
  bool ok = true;
  while (ok && db_next(&results[1], &row, 1)) {
    ok = db_u64(&row, 0, UINT64_MAX, &id) || db_unexpected(err, WHAT);
    text_puts(&u->locked, u->locked.len ? "," : "");
    text_u64(&u->locked, id);
  }
  db_results_free(results, 2);
  return ok;
}

static void add_claim(struct store_session *ss, struct claim_unit *u) {
  const struct store_claim *claim = u->claim;
  struct text leases = {0};
  text_leases(&leases, u->leases, u->lease_count);
  session_add_no_wait(ss, query_claim,
                      ARGS(RAW("ids", u->locked), STRING("instance", claim->instance), RAW("epochs", u->epochs),
                           SIGNED("timeout_ms", claim->timeout_ms), SIGNED("timeout_most_ms", claim->timeout_most_ms),
                           SIGNED("lease_ms", claim->lease_ms), RAW("leases", leases),
                           UNSIGNED("count", u->lease_count)));
  text_free(&leases);
}

/* Of the shards that were fenced, which are not ours any more. */
static bool read_fence(struct claim_unit *u, struct db_result *held, struct err *err) {
  struct db_row row;
  uint64_t shard;
  *u->lost = 0;
  for (size_t i = 0; i < u->lease_count; i++)
    *u->lost |= shard_bit(u->leases[i].shard);
  while (db_next(held, &row, 2)) {
    if (!db_u64(&row, 0, STORE_SHARDS_MAX - 1, &shard))
      return db_unexpected(err, WHAT);
    *u->lost &= ~shard_bit((uint8_t)shard);
  }
  return true;
}

/* Takes the fence, writes the claims, commits, and reads all rows that are claimed by us, in one round trip: no lock on
 * a shard outlives it. The last SELECT finds what was claimed also when this is redone because the COMMIT had no
 * answer, or this SELECT failed behind it: nobody else writes our name into a row of our shard. */
static bool write_claims(struct store_session *ss, struct claim_unit *u, struct err *err) {
  const struct store_claim *claim = u->claim;
  struct text columns = {0};
  struct text shards = {0}; /* all of the claim: it may have been written before one of them was locked */
  struct db_result results[4];
  size_t n = 0;
  row_columns(&columns, claim->limit);
  text_shards(&shards, claim->leases, claim->lease_count);
  session_begin(ss);
  session_fence(ss, u->leases, u->lease_count);
  n++;
  if (u->locked.len) {
    add_claim(ss, u);
    n++;
  }
  session_add_commit(ss);
  session_add(ss, query_claim_read,
              ARGS(RAW("ids", *session_ids(ss, claim->ids, claim->count)), RAW("shards", shards),
                   STRING("instance", claim->instance), RAW("columns", columns)));
  n += 2;
  text_free(&columns);
  text_free(&shards);
  if (!session_send_commit(ss, WHAT, results, n, n - 2, err))
    return false;
  bool ok =
      read_fence(u, &results[0], err) && row_batch(&results[n - 1], u->batch, err) && db_is_sound(ss->conn, WHAT, err);
  ss->committing = !ok; /* they are claimed, whatever is wrong with the answer */
  db_results_free(results, n);
  return ok;
}

/* Chooses the leases of the shards that can be fenced without waiting. */
static bool choose_leases(struct store_session *ss, struct claim_unit *u, struct err *err) {
  const struct store_claim *claim = u->claim;
  bool locked[STORE_SHARDS_MAX];
  if (!session_locked_shards(ss, session_skip(ss, false), claim->leases, claim->lease_count, locked, err))
    return false;
  u->lease_count = 0;
  for (size_t i = 0; i < claim->lease_count; i++)
    if (!locked[claim->leases[i].shard])
      u->leases[u->lease_count++] = claim->leases[i];
  name_leases(u->leases, u->lease_count, &u->shards, &u->epochs);
  return true;
}

static bool claim_rows(struct store_session *ss, struct claim_unit *u, struct err *err) {
  if (!choose_leases(ss, u, err))
    return false;
  if (u->lease_count == 0) {
    u->stuck = true;
    return true;
  }
  if (!lock_rows(ss, u, err))
    return false;
  if (u->locked.len == 0 && !ss->unknown)
    return session_rollback(ss, WHAT, err);
  return write_claims(ss, u, err);
}

/* A lock that is met in spite of all is an index entry that somebody else holds. Waiting would stop all other reading.
 */
static bool claim_unit(struct store_session *ss, void *arg, struct err *err) {
  struct claim_unit *u = arg;
  u->stuck = false;
  if (claim_rows(ss, u, err))
    return true;
  u->stuck = err->code == DB_LOCK_WAIT;
  if (u->stuck)
    session_met_lock(ss);
  return u->stuck && session_rollback(ss, WHAT, err);
}

enum store_status ops_claim(struct store_session *ss, const struct store_claim *claim, struct task_batch **batch,
                            uint64_t *lost, struct err *err) {
  *batch = NULL;
  *lost = 0;
  if (claim->count == 0)
    return STORE_OK;
  struct claim_unit unit = {.claim = claim, .batch = batch, .lost = lost};
  enum store_status status = session_run(ss, WHAT " rows", claim_unit, &unit, err);
  text_free(&unit.shards);
  text_free(&unit.epochs);
  text_free(&unit.locked);
  bool failed = status != STORE_OK || unit.stuck;
  return !failed ? STORE_OK : ss->unknown ? STORE_DOWN : unit.stuck ? STORE_BUSY : status;
}

struct found_claims_unit {
  const char *instance; /* whose claims; NULL = of the dead */
  const struct shard_lease *leases;
  size_t lease_count;
  uint64_t after;
  uint32_t limit;
  struct task_batch **batch;
};

static bool send_found(struct store_session *ss, struct task_batch **batch, struct err *err) {
  struct db_result result;
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  bool ok = row_batch(&result, batch, err);
  db_results_free(&result, 1);
  return ok;
}

static bool found_claims_unit(struct store_session *ss, void *arg, struct err *err) {
  struct found_claims_unit *u = arg;
  struct text columns = {0}, epochs = {0};
  row_columns(&columns, (struct store_limit){0});
  name_leases(u->leases, u->lease_count, &ss->part, &epochs);
  const struct sql_arg column = RAW("columns", columns), shards = RAW("shards", ss->part),
                       epoch = RAW("epochs", epochs), limit = UNSIGNED("limit", u->limit);
  session_begin(ss);
  if (u->instance)
    session_add(ss, query_own_claims,
                ARGS(column, shards, STRING("instance", u->instance), UNSIGNED("after", u->after), epoch, limit));
  else
    session_add(ss, query_lost_claims, ARGS(column, shards, epoch, limit));
  text_free(&columns);
  text_free(&epochs);
  return send_found(ss, u->batch, err);
}

enum store_status ops_own_claims(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                                 size_t lease_count, uint64_t after, uint32_t limit, struct task_batch **batch,
                                 struct err *err) {
  *batch = NULL;
  if (lease_count == 0)
    return STORE_OK;
  return session_run(ss, "looking for claims of ours", found_claims_unit,
                     &(struct found_claims_unit){instance, leases, lease_count, after, limit, batch}, err);
}

enum store_status ops_lost_claims(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                  uint32_t limit, struct task_batch **batch, struct err *err) {
  *batch = NULL;
  if (lease_count == 0)
    return STORE_OK;
  return session_run(ss, "looking for claims of the dead", found_claims_unit,
                     &(struct found_claims_unit){NULL, leases, lease_count, 0, limit, batch}, err);
}

struct bound_claims_unit {
  const char *host;
  int64_t ttl_ms;
  uint32_t limit;
  struct task_batch **batch;
  bool stuck; /* nobody can tell who lives */
};

static bool bound_claims_unit(struct store_session *ss, void *arg, struct err *err) {
  struct bound_claims_unit *u = arg;
  uint64_t remade;
  if (!side_tables_again(ss, err))
    return false;
  u->stuck = !side_tables_usable(ss, SIDE_INSTANCES);
  if (u->stuck)
    return true;
  session_begin(ss); /* rows of instances that have claims and whose row somebody has deleted */
  session_add(ss, query_remake_instances, ARGS(SIGNED("ttl_us", u->ttl_ms * 1000)));
  if (!session_change(ss, "remaking instances", &remade, err))
    return false;
  text_clear(&ss->part);
  row_columns(&ss->part, (struct store_limit){0});
  session_begin(ss);
  session_add(ss, query_lost_bound_claims,
              ARGS(RAW("columns", ss->part), STRING("host", u->host), UNSIGNED("limit", u->limit)));
  return send_found(ss, u->batch, err);
}

enum store_status ops_lost_bound_claims(struct store_session *ss, const char *host, int64_t ttl_ms, uint32_t limit,
                                        struct task_batch **batch, struct err *err) {
  *batch = NULL;
  struct bound_claims_unit unit = {host, ttl_ms, limit, batch, false};
  enum store_status status = session_run(ss, "looking for bound claims of the dead", bound_claims_unit, &unit, err);
  return status == STORE_OK && unit.stuck ? STORE_BUSY : status;
}
