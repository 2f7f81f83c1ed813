/* SPDX-License-Identifier: MIT
 *
 * Recorded claims: outbox/claim.c. The rows are locked in one round trip; the fence, the claims, the COMMIT and the
 * reading of what was claimed are another.
 */
#include <stdlib.h>

#include "core/base/clock.h"
#include "store_double_ops.h"
#include "store_double_rows.h"
#include "store_double_write.h"

#define WHAT "claiming"

struct claim_unit {
  const struct store_claim *claim;
  struct shard_lease leases[STORE_SHARDS_MAX]; /* those of the claim whose shards nobody holds */
  size_t lease_count;
  uint64_t *locked; /* ids */
  size_t locked_count;
  struct task_batch **batch;
  uint64_t *lost;
  int64_t largest; /* row of them, as the claim began */
  bool stuck;      /* nothing was claimed */
};

static const struct shard_lease *lease_of(const struct shard_lease *leases, size_t count, uint8_t shard) {
  for (size_t i = 0; i < count; i++)
    if (leases[i].shard == shard)
      return &leases[i];
  return NULL;
}

static bool may_be_claimed(const struct table *db, const struct claim_unit *u, size_t at, const struct row *row) {
  const struct store_claim *claim = u->claim;
  const struct blob *host = row->text[ROW_TARGET_HOST];
  return blob_is(row->text[ROW_MESSAGE_ID], claim->message_ids[at], strlen(claim->message_ids[at])) &&
         row->state == TASK_SCHEDULED && blob_is(row->text[ROW_ROUTE], claim->route, strlen(claim->route)) &&
         lease_of(u->leases, u->lease_count, row->shard) && !row_moves(row) &&
         (host->len == 0 || (claim->host && blob_is(host, claim->host, strlen(claim->host)))) &&
         row_next_us(row) <= table_clock(db) + claim->ahead_us;
}

/* Locks those rows that can be claimed and that nobody else holds; no other lock. */
static bool lock_rows(struct store_session *ss, struct claim_unit *u, struct err *err) {
  const struct store_claim *claim = u->claim;
  u->locked_count = 0;
  if (!double_begin(ss, SCRIPT_READS, 2, err))
    return false;
  struct tx *tx = double_tx(ss);
  for (size_t i = 0; i < claim->count; i++) {
    const struct row *row = table_row(ss->db, claim->ids[i]);
    if (row && !holds_id(u->locked, u->locked_count, row->id) && may_be_claimed(ss->db, u, i, row) &&
        (!(claim->wary || double_skips(ss, false)) || table_lock(ss->db, tx, LOCK_ENTRY, row->id, false)) &&
        table_lock(ss->db, tx, LOCK_ROW, row->id, false))
      u->locked[u->locked_count++] = row->id;
  }
  double_cost(ss, 0, claim->count);
  return double_end(ss, err);
}

static struct row *claimed_image(struct store_session *ss, const struct claim_unit *u, const struct row *row) {
  const struct store_claim *claim = u->claim;
  struct row *image = record_copy(&ss->db->data.rows, row);
  bool same = row->attempt == 0 || row_untouched(row);
  image->changed_us = same ? row->created_us : row->created_us - 1;
  image->has_digest = false;
  image->state = TASK_CLAIMED;
  image->attempt++;
  blob_put(&image->text[ROW_CLAIMED_BY], claim->instance);
  image->has_epoch = true;
  image->claim_epoch = lease_of(u->leases, u->lease_count, row->shard)->epoch;
  int64_t call_ms = row->timeout_ms ? (int64_t)row->timeout_ms : claim->timeout_ms;
  call_ms = call_ms < claim->timeout_most_ms ? call_ms : claim->timeout_most_ms;
  image->lease_until_us = table_clock(ss->db) + (call_ms + claim->lease_ms) * 1000;
  return image;
}

/* All of the claim's rows that are claimed by us. */
static struct task_batch *read_claims(struct store_session *ss, const struct store_claim *claim, int64_t largest) {
  struct chosen rows = {0};
  for (size_t i = 0; i < ss->db->data.rows.count; i++) {
    const struct row *row = ss->db->data.rows.at[i];
    if (holds_id(claim->ids, claim->count, row->id) && row->state == TASK_CLAIMED &&
        lease_of(claim->leases, claim->lease_count, row->shard) &&
        blob_is(row->text[ROW_CLAIMED_BY], claim->instance, strlen(claim->instance)))
      chosen_add(&rows, row);
  }
  struct store_limit limit = claim->limit;
  if (ss->db->narrow_claims && claim->count > 1)
    limit.bytes = earlier(limit.bytes, largest);
  struct task_batch *batch = double_batch(&rows, limit);
  chosen_free(&rows);
  return batch;
}

static bool write_claims(struct store_session *ss, struct claim_unit *u, struct err *err) {
  bool ours = false;
  uint64_t lost = 0;
  if (!double_begin(ss, SCRIPT_COMMITS, 3 + (u->locked_count > 0), err) ||
      !double_fence(ss, u->leases, u->lease_count, &ours, err))
    return false;
  for (size_t i = 0; i < u->lease_count; i++)
    lost |= double_holds(ss, &u->leases[i]) ? 0 : shard_bit(u->leases[i].shard);
  for (size_t i = 0; i < u->locked_count && ours; i++) {
    if (!double_lock(ss, LOCK_ENTRY, u->locked[i], false, false, err))
      return false;
    int code = row_refused(ss->db, u->locked[i]);
    if (code)
      return double_fail(ss, code, err);
    const struct row *row = table_row(ss->db, u->locked[i]);
    if (row && row->state == TASK_SCHEDULED)
      tx_put_row(double_tx(ss), claimed_image(ss, u, row), EVENT_CLAIM);
  }
  double_cost(ss, 0, 2 * u->locked_count);
  double_do_commit(ss);
  struct task_batch *batch = read_claims(ss, u->claim, u->largest);
  if (double_end(ss, err)) {
    *u->batch = batch;
    *u->lost = lost;
    return true;
  }
  if (batch)
    batch->release(batch);
  return false;
}

static bool claim_rows(struct store_session *ss, struct claim_unit *u, struct err *err) {
  const struct store_claim *claim = u->claim;
  bool locked[STORE_SHARDS_MAX];
  if (!double_locked_shards(ss, double_skips(ss, false), claim->leases, claim->lease_count, locked, err))
    return false;
  u->lease_count = 0;
  for (size_t i = 0; i < claim->lease_count; i++)
    if (!locked[claim->leases[i].shard])
      u->leases[u->lease_count++] = claim->leases[i];
  u->stuck = u->lease_count == 0;
  if (u->stuck)
    return true;
  if (!lock_rows(ss, u, err))
    return false;
  if (u->locked_count == 0 && !ss->unknown)
    return double_rollback(ss, err);
  return write_claims(ss, u, err);
}

static bool claim_unit(struct store_session *ss, void *arg, struct err *err) {
  struct claim_unit *u = arg;
  u->stuck = false;
  if (claim_rows(ss, u, err))
    return true;
  u->stuck = err->code == DB_LOCK_WAIT;
  if (u->stuck)
    double_met_lock(ss);
  return u->stuck && double_rollback(ss, err);
}

static int64_t largest_of(struct table *db, const struct store_claim *claim) {
  int64_t largest = 0;
  for (size_t i = 0; i < claim->count; i++) {
    const struct row *row = table_row(db, claim->ids[i]);
    const struct blob *checkpoint = row ? row->text[ROW_CHECKPOINT] : NULL;
    size_t bytes = row ? row->text[ROW_PAYLOAD]->len + row->text[ROW_HEADERS]->len : 0;
    largest = later(largest, (int64_t)(bytes + (checkpoint ? checkpoint->len : 0)));
  }
  return largest;
}

enum store_status double_claim(struct store_session *ss, const struct store_claim *claim, struct task_batch **batch,
                               uint64_t *lost, struct err *err) {
  *batch = NULL;
  *lost = 0;
  if (claim->count == 0)
    return STORE_OK;
  int64_t largest = largest_of(ss->db, claim);
  if (ss->db->before_claim)
    ss->db->before_claim(ss->db, claim->ids, claim->count);
  struct claim_unit unit = {.claim = claim,
                            .largest = largest,
                            .batch = batch,
                            .lost = lost,
                            .locked = calloc(claim->count, sizeof *unit.locked)};
  if (!unit.locked)
    world_fail("no memory for a claim");
  enum store_status status = double_run(ss, WHAT " rows", claim_unit, &unit, err);
  free(unit.locked);
  bool failed = status != STORE_OK || unit.stuck;
  return !failed ? STORE_OK : ss->unknown ? STORE_DOWN : unit.stuck ? STORE_BUSY : status;
}

/* --- claims that are there --- */

struct found_claims_unit {
  const char *instance; /* whose claims; NULL = of the dead */
  const struct shard_lease *leases;
  size_t lease_count;
  uint64_t after;
  uint32_t limit;
  struct task_batch **batch;
};

static bool is_found(const struct found_claims_unit *u, const struct row *row) {
  const struct shard_lease *lease = lease_of(u->leases, u->lease_count, row->shard);
  if (row->state != TASK_CLAIMED || !lease)
    return false;
  bool lost = (row->has_epoch ? row->claim_epoch : 0) < lease->epoch;
  if (u->instance)
    return !lost && blob_is(row->text[ROW_CLAIMED_BY], u->instance, strlen(u->instance)) && row->id > u->after;
  return lost;
}

/* The rows, and the end of the unit's script. */
static bool give_found(struct store_session *ss, struct chosen *rows, uint32_t limit, struct task_batch **out,
                       struct err *err) {
  if (rows->count > limit)
    rows->count = limit;
  struct task_batch *batch = double_batch(rows, (struct store_limit){0});
  double_cost(ss, 0, rows->count);
  chosen_free(rows);
  if (double_end(ss, err)) {
    *out = batch;
    return true;
  }
  if (batch)
    batch->release(batch);
  return false;
}

static bool found_claims_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct found_claims_unit *u = arg;
  struct chosen rows = {0};
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < ss->db->data.rows.count; i++)
    if (is_found(u, ss->db->data.rows.at[i]))
      chosen_add(&rows, ss->db->data.rows.at[i]);
  if (!u->instance)
    chosen_sort(&rows);
  return give_found(ss, &rows, u->limit, u->batch, err);
}

enum store_status double_own_claims(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                                    size_t lease_count, uint64_t after, uint32_t limit, struct task_batch **batch,
                                    struct err *err) {
  *batch = NULL;
  if (lease_count == 0)
    return STORE_OK;
  return double_run(ss, "looking for claims of ours", found_claims_unit,
                    &(struct found_claims_unit){instance, leases, lease_count, after, limit, batch}, err);
}

enum store_status double_lost_claims(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                     uint32_t limit, struct task_batch **batch, struct err *err) {
  *batch = NULL;
  if (lease_count == 0)
    return STORE_OK;
  return double_run(ss, "looking for claims of the dead", found_claims_unit,
                    &(struct found_claims_unit){NULL, leases, lease_count, 0, limit, batch}, err);
}

struct bound_claims_unit {
  const char *host;
  int64_t ttl_ms;
  uint32_t limit;
  struct task_batch **batch;
};

/* sql/queries/remake_instances.sql */
static void remake_instances(struct table *db, const struct bound_claims_unit *u) {
  struct list *list = &db->data.instances;
  for (size_t i = 0; i < db->data.rows.count; i++) {
    const struct row *row = db->data.rows.at[i];
    if (row->state != TASK_CLAIMED || row->shard != SHARD_BOUND || !row->text[ROW_CLAIMED_BY] || claimer(db, row))
      continue;
    struct instance_entry *made = record_new(list);
    blob_share(&made->id, row->text[ROW_CLAIMED_BY]);
    blob_share(&made->host, row->text[ROW_TARGET_HOST]);
    blob_put(&made->routes, "[]");
    made->seen_us = table_clock(db);
    made->alive_until_us = table_clock(db) + u->ttl_ms * 1000;
    list_add(list, list->count, made);
  }
}

static bool is_dead(const struct table *db, const char *host, const struct row *row) {
  const struct blob *bound_to = row->text[ROW_TARGET_HOST];
  return row->state == TASK_CLAIMED && row->shard == SHARD_BOUND &&
         (blob_is(bound_to, host, strlen(host)) || !host_lives(db, bound_to)) && claimer_gone(db, row);
}

static bool bound_claims_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct bound_claims_unit *u = arg;
  struct chosen rows = {0};
  if (!double_begin(ss, SCRIPT_COMMITS, 2, err))
    return false;
  remake_instances(ss->db, u);
  for (size_t i = 0; i < ss->db->data.rows.count; i++)
    if (is_dead(ss->db, u->host, ss->db->data.rows.at[i]))
      chosen_add(&rows, ss->db->data.rows.at[i]);
  chosen_sort(&rows);
  return give_found(ss, &rows, u->limit, u->batch, err);
}

enum store_status double_lost_bound_claims(struct store_session *ss, const char *host, int64_t ttl_ms, uint32_t limit,
                                           struct task_batch **batch, struct err *err) {
  *batch = NULL;
  return double_run(ss, "looking for bound claims of the dead", bound_claims_unit,
                    &(struct bound_claims_unit){host, ttl_ms, limit, batch}, err);
}

struct elsewhere_unit {
  const char *instance, *host, *route;
  store_head_fn *each;
  void *ctx;
};

static bool is_elsewhere(const struct elsewhere_unit *u, const struct row *row) {
  const struct blob *key = row->text[ROW_ORDER_KEY];
  return row->state == TASK_CLAIMED && row->shard == SHARD_BOUND && key && key->len > 0 &&
         blob_is(row->text[ROW_ROUTE], u->route, strlen(u->route)) &&
         blob_is(row->text[ROW_TARGET_HOST], u->host, strlen(u->host)) &&
         !blob_is(row->text[ROW_CLAIMED_BY], u->instance, strlen(u->instance));
}

static bool elsewhere_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct elsewhere_unit *u = arg;
  struct chosen rows = {0};
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < ss->db->data.rows.count; i++)
    if (is_elsewhere(u, ss->db->data.rows.at[i]))
      chosen_add(&rows, ss->db->data.rows.at[i]);
  struct task_batch *batch = double_batch(&rows, (struct store_limit){0}); /* they may be gone when the answer comes */
  chosen_free(&rows);
  bool ok = double_end(ss, err);
  for (size_t i = 0; ok && batch && i < batch->count; i++) {
    const struct task *task = &batch->tasks[i];
    u->each(u->ctx, &(struct store_head){task->id, task->failures > 0, task->route.data, task->order_key});
  }
  if (batch)
    batch->release(batch);
  return ok;
}

enum store_status double_claims_elsewhere(struct store_session *ss, const char *instance, const char *host,
                                          const char *route, store_head_fn *each, void *ctx, struct err *err) {
  return double_run(ss, "looking for claims of other instances", elsewhere_unit,
                    &(struct elsewhere_unit){instance, host, route, each, ctx}, err);
}
