/* SPDX-License-Identifier: MIT
 *
 * People's commands, rows of unknown routes out of the way and back, and heads of order keys: outbox/intervene.c, and
 * the heads of outbox/read.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "store_double_ops.h"
#include "store_double_rows.h"
#include "store_double_write.h"

#define WHAT "changing tasks"

struct intervene_unit {
  const struct shard_lease *lease;
  enum intervention verb;
  const uint64_t *ids;
  size_t count;
  int64_t due_us, keep_us;
  const char *actor, *filter, *reason;
  enum intervened *became;
  uint64_t *matched; /* ids of the rows that may be changed */
  size_t matched_count;
  bool busy; /* another transaction holds what is written beside the rows */
};

static bool allows(const struct table *db, enum intervention verb, const struct row *row) {
  enum task_state state = row->state;
  if (verb == INTERVENE_RESCHEDULE)
    return state == TASK_SCHEDULED;
  return state == TASK_SCHEDULED || state == TASK_HELD || state == TASK_BLOCKED || state == TASK_AWAITING ||
         claim_lost(db, row);
}

static void mark(struct intervene_unit *u, uint64_t id, enum intervened became) {
  for (size_t i = 0; i < u->count; i++)
    if (u->ids[i] == id)
      u->became[i] = became;
}

/* Locks the rows of which nobody else holds anything. */
static bool lock_rows(struct store_session *ss, struct intervene_unit *u, bool *held, struct err *err) {
  u->matched_count = 0;
  bool before = ss->unknown && u->verb == INTERVENE_CANCEL; /* what is gone was cancelled then */
  for (size_t i = 0; !before && i < u->count; i++)
    u->became[i] = INTERVENED_NOT;
  if (!double_begin(ss, SCRIPT_READS, 4, err))
    return false;
  struct tx *tx = double_tx(ss);
  *held = double_holds(ss, u->lease);
  for (size_t i = 0; i < ss->db->data.rows.count; i++) {
    const struct row *row = ss->db->data.rows.at[i];
    if (row->shard != u->lease->shard || !holds_id(u->ids, u->count, row->id))
      continue;
    mark(u, row->id, INTERVENED_NOT);
    if (!table_lock(ss->db, tx, LOCK_ROW, row->id, false) || !table_lock(ss->db, tx, LOCK_ENTRY, row->id, false)) {
      mark(u, row->id, INTERVENED_LOCKED);
    } else if (*held && allows(ss->db, u->verb, row)) {
      mark(u, row->id, INTERVENED_DONE);
      u->matched[u->matched_count++] = row->id;
    }
  }
  double_cost(ss, 0, u->count);
  return double_end(ss, err);
}

static void write_one(struct store_session *ss, const struct intervene_unit *u, const struct row *row) {
  if (u->verb == INTERVENE_CANCEL) {
    bool doubt = row->attempt == 0 && row->recoveries == 0 && maybe_sent(ss->db, row);
    decision_write(double_tx(ss), row,
                   &(struct decision){.id = row->id,
                                      .shard = row->shard,
                                      .from = row->state,
                                      .attempt_from = row->attempt,
                                      .event = EVENT_CANCEL,
                                      .attempt = row->attempt,
                                      .failures = row->failures,
                                      .recoveries = doubt ? 1 : row->recoveries,
                                      .keep_us = u->keep_us});
    return;
  }
  /* As an UPDATE by anybody: changed_at tells of it. */
  struct row *image = record_copy(&ss->db->data.rows, row);
  image->changed_us = table_clock(ss->db);
  image->due_us = u->due_us;
  image->first_due_us = TIME_NULL;
  tx_put_row(double_tx(ss), image, TASK_EVENTS);
}

static bool write_rows(struct store_session *ss, struct intervene_unit *u, struct err *err) {
  if (!double_begin(ss, SCRIPT_WRITES, 2, err) ||
      (u->verb == INTERVENE_CANCEL && !double_lock(ss, LOCK_HISTORY, 0, true, false, err)))
    return false;
  for (size_t i = 0; i < u->matched_count; i++) {
    if (!double_lock(ss, LOCK_ENTRY, u->matched[i], false, false, err))
      return false;
    write_one(ss, u, table_row(ss->db, u->matched[i]));
  }
  double_cost(ss, 0, 2 * u->matched_count);
  return double_end(ss, err);
}

static void audit(struct store_session *ss, const char *actor, const char *verb, const char *reason, const char *filter,
                  uint64_t changed) {
  struct audit_line *line = record_new(&ss->db->data.audit);
  blob_put(&line->actor, actor ? actor : "");
  blob_put(&line->reason, reason ? reason : "");
  blob_put(&line->filter, filter ? filter : "");
  line->verb = verb;
  line->changed = changed;
  line->at_us = table_clock(ss->db);
  tx_add(double_tx(ss), &ss->db->data.audit, line);
}

static bool change_rows(struct store_session *ss, struct intervene_unit *u, struct err *err) {
  bool held = false, ours = false, locked[STORE_SHARDS_MAX];
  if (!double_locked_shards(ss, double_skips(ss, false), u->lease, 1, locked, err))
    return false;
  u->busy = locked[u->lease->shard];
  if (u->busy)
    return true;
  if (!lock_rows(ss, u, &held, err))
    return false;
  if (u->matched_count == 0)
    return double_rollback(ss, err);
  bool ok =
      write_rows(ss, u, err) && double_begin(ss, SCRIPT_COMMITS, 3, err) && double_fence(ss, u->lease, 1, &ours, err);
  if (ok && !ours)
    return double_fail(ss, DB_GUARD, err);
  if (ok)
    audit(ss, u->actor, u->verb == INTERVENE_CANCEL ? "cancel" : "reschedule", u->reason, u->filter, u->matched_count);
  return ok && double_commit(ss, err);
}

/* A lock that is met in spite of all is waited for by nobody: this stops all reading. */
static bool intervene_unit(struct store_session *ss, void *arg, struct err *err) {
  struct intervene_unit *u = arg;
  if (change_rows(ss, u, err))
    return true;
  u->busy = err->code == DB_LOCK_WAIT;
  if (u->busy)
    double_met_lock(ss);
  return u->busy && double_rollback(ss, err);
}

enum store_status double_intervene(struct store_session *ss, const struct shard_lease *lease, enum intervention verb,
                                   const uint64_t *ids, size_t count, int64_t due_us, const char *actor,
                                   const char *filter, const char *reason, int64_t keep_us, enum intervened *became,
                                   struct err *err) {
  struct err local = {0};
  if (count == 0)
    return STORE_OK;
  struct intervene_unit unit = {.lease = lease,
                                .verb = verb,
                                .ids = ids,
                                .count = count,
                                .due_us = due_us,
                                .keep_us = keep_us,
                                .actor = actor,
                                .filter = filter,
                                .reason = reason,
                                .became = became,
                                .matched = calloc(count, sizeof *unit.matched)};
  if (!unit.matched)
    world_fail("no memory for a command");
  enum store_status status = double_run(ss, WHAT, intervene_unit, &unit, err ? err : &local);
  bool locked = unit.busy;
  for (size_t i = 0; i < count; i++)
    locked = locked || became[i] == INTERVENED_LOCKED;
  if (ss->unknown && (status == STORE_BUSY || (status == STORE_OK && locked))) {
    status = STORE_DOWN;
  } else if (status == STORE_OK && unit.busy) {
    for (size_t i = 0; i < count; i++)
      became[i] = INTERVENED_LOCKED;
    err_set(err, DB_LOCK_WAIT, WHAT ": another transaction holds what is written beside the row; try again");
    status = STORE_BUSY;
  }
  free(unit.matched);
  return status;
}

/* --- moving rows between scheduled, held and blocked --- */

struct move_unit {
  const struct shard_lease *lease;
  enum task_state from, to;
  const struct store_routes *which; /* hold: many routes */
  const char *route;                /* of one */
  const char *host;                 /* of bound ones: its, and those of hosts that are dead */
  bool failed_heads;
  struct store_walk *walk; /* unblock: the position of the next, */
  struct store_walk next;  /* and behind those that were asked about */
  bool was_read;
  uint32_t limit;
  uint32_t *of_route;
  uint64_t *ids;
  size_t count;
  uint32_t *moved;
  bool all;
};

static bool is_of_routes(const struct move_unit *u, const struct row *row) {
  return u->which ? holds_name(u->which->routes, u->which->route_count, row->text[ROW_ROUTE])
                  : blob_is(row->text[ROW_ROUTE], u->route, strlen(u->route));
}

static bool has_own_head(const struct table *db, const struct row *row) {
  for (size_t i = 0; i < db->data.heads.count; i++) {
    const struct head_row *head = db->data.heads.at[i];
    if (head->id == row->id && blob_same(head->route, row->text[ROW_ROUTE]) &&
        blob_same(head->order_key, row->text[ROW_ORDER_KEY]) &&
        (head->message_id->len == 0 ||
         (blob_same(head->message_id, row->text[ROW_MESSAGE_ID]) && head->failures == row->failures)))
      return true;
  }
  return false;
}

static bool goes_before(const struct row *a, const struct row *b) {
  if (a->priority != b->priority)
    return a->priority > b->priority;
  int64_t x = row_first_due_us(a), y = row_first_due_us(b);
  return x != y ? x < y : a->id < b->id;
}

static bool waits_for_a_head(const struct table *db, const struct row *row, bool failed_too) {
  const struct row *task;
  bool own = has_own_head(db, row);
  for (size_t i = 0; i < db->data.heads.count; i++) {
    const struct head_row *head = db->data.heads.at[i];
    if (head->id != row->id && blob_same(head->route, row->text[ROW_ROUTE]) &&
        blob_same(head->order_key, row->text[ROW_ORDER_KEY]) && head_lives(db, head, &task) &&
        (failed_too || task->failures == 0) && (!own || goes_before(task, row)))
      return true;
  }
  return false;
}

/* May be found to be moved: the index alone tells. */
static bool is_met(const struct table *db, const struct move_unit *u, const struct row *row) {
  if (!row_is_in(row, u->from, u->lease->shard) || !is_of_routes(u, row))
    return false;
  if (u->which)
    return row->priority == u->which->priority && row_next_us(row) != TIME_NULL &&
           row_next_us(row) <= table_clock(db) + u->which->ahead_us;
  if (!u->walk || row->priority != u->walk->priority)
    return !u->walk || row->priority > u->walk->priority;
  return row_next_us(row) > u->walk->after.next_us ||
         (row_next_us(row) == u->walk->after.next_us && row->id > u->walk->after.id);
}

static bool is_free(const struct table *db, const struct move_unit *u, const struct row *row) {
  bool ours = row->shard != SHARD_BOUND || blob_is(row->text[ROW_TARGET_HOST], u->host, strlen(u->host)) ||
              !host_lives(db, row->text[ROW_TARGET_HOST]);
  return !u->walk || (ours && !waits_for_a_head(db, row, u->failed_heads));
}

static int by_position(const void *a, const void *b) {
  const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
  if (x->priority != y->priority)
    return x->priority < y->priority ? -1 : 1;
  if (row_next_us(x) != row_next_us(y))
    return row_next_us(x) < row_next_us(y) ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static void take_found(struct store_session *ss, struct move_unit *u, const struct chosen *rows) {
  free(u->ids);
  u->ids = calloc(rows->count + 1, sizeof *u->ids);
  if (!u->ids)
    world_fail("no memory for ids");
  u->count = 0;
  u->next = u->walk ? *u->walk : (struct store_walk){0};
  for (size_t i = 0; i < rows->count && i < u->limit; i++) {
    const struct row *row = rows->at[i];
    u->next = (struct store_walk){.priority = row->priority, .after = {row_next_us(row), row->id}};
    if (is_free(ss->db, u, row))
      u->ids[u->count++] = row->id;
  }
  u->next.end = rows->count < u->limit;
}

static bool find_rows(struct store_session *ss, struct move_unit *u, struct err *err) {
  struct chosen rows = {0};
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < ss->db->data.rows.count; i++) {
    const struct row *row = ss->db->data.rows.at[i];
    if (is_met(ss->db, u, row))
      chosen_add(&rows, row);
  }
  if (u->walk && rows.count)
    qsort(rows.at, rows.count, sizeof *rows.at, by_position);
  else
    chosen_sort(&rows);
  take_found(ss, u, &rows);
  double_cost(ss, 0, rows.count < u->limit ? rows.count : u->limit);
  chosen_free(&rows);
  return double_end(ss, err);
}

static int by_id(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static size_t content_of(const struct row *row) {
  static const enum row_text texts[] = {ROW_PAYLOAD, ROW_HEADERS, ROW_CHECKPOINT};
  size_t bytes = 0;
  for (size_t i = 0; row && i < ARRAY_LEN(texts); i++)
    bytes += row->text[texts[i]] ? row->text[texts[i]]->len : 0;
  return bytes;
}

/* Those that one transaction may write: the others are found by the next call. */
static bool choose_rows(struct store_session *ss, struct move_unit *u, struct err *err) {
  size_t bytes = 0, fit = 0;
  qsort(u->ids, u->count, sizeof *u->ids, by_id);
  if (u->count == 1)
    return true;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (; fit < u->count; fit++) {
    bytes += content_of(table_row(ss->db, u->ids[fit]));
    if (fit > 0 && bytes > STORE_TRANSACTION_BYTES)
      break;
  }
  double_cost(ss, 0, u->count);
  u->count = fit;
  return double_end(ss, err);
}

static void count_route(struct move_unit *u, const struct row *row) {
  for (size_t i = 0; u->which && i < u->which->route_count; i++)
    if (blob_is(row->text[ROW_ROUTE], u->which->routes[i], strlen(u->which->routes[i])))
      u->of_route[i]++;
}

static bool lock_found(struct store_session *ss, struct move_unit *u, struct err *err) {
  size_t kept = 0;
  if (!double_begin(ss, SCRIPT_READS, 3, err))
    return false;
  struct tx *tx = double_tx(ss);
  if (u->which)
    memset(u->of_route, 0, u->which->route_count * sizeof *u->of_route);
  for (size_t i = 0; i < u->count; i++) {
    const struct row *row = table_row(ss->db, u->ids[i]);
    if (!row || !row_is_in(row, u->from, u->lease->shard) || !is_of_routes(u, row) ||
        !table_lock(ss->db, tx, LOCK_ROW, row->id, false))
      continue;
    count_route(u, row);
    u->ids[kept++] = row->id;
  }
  double_cost(ss, 0, u->count);
  u->count = double_holds(ss, u->lease) ? kept : 0;
  return double_end(ss, err);
}

static bool write_moves(struct store_session *ss, struct move_unit *u, struct err *err) {
  bool ours = false;
  if (!double_begin(ss, SCRIPT_COMMITS, 3, err))
    return false;
  for (size_t i = 0; i < u->count; i++) {
    if (!double_lock(ss, LOCK_ENTRY, u->ids[i], false, false, err))
      return false;
    struct row *image = record_copy(&ss->db->data.rows, table_row(ss->db, u->ids[i]));
    image->state = u->to;
    tx_put_row(double_tx(ss), image, u->to == TASK_HELD ? EVENT_HOLD : EVENT_RELEASE);
  }
  double_cost(ss, 0, u->count);
  if (!double_fence(ss, u->lease, 1, &ours, err))
    return false;
  return ours ? double_commit(ss, err) : double_fail(ss, DB_GUARD, err);
}

static bool move_unit(struct store_session *ss, void *arg, struct err *err) {
  struct move_unit *u = arg;
  bool locked[STORE_SHARDS_MAX];
  *u->moved = 0;
  u->all = u->was_read = false;
  if (!double_locked_shards(ss, double_skips(ss, false), u->lease, 1, locked, err))
    return false;
  if (locked[u->lease->shard])
    return true;
  if (!find_rows(ss, u, err))
    return false;
  u->was_read = true;
  size_t found = u->count;
  u->all = found == 0;
  if (found == 0)
    return true;
  if (!choose_rows(ss, u, err) || !lock_found(ss, u, err))
    return false;
  if (u->count == 0)
    return double_rollback(ss, err);
  if (!write_moves(ss, u, err)) {
    if (err->code == DB_LOCK_WAIT)
      double_met_lock(ss);
    return false;
  }
  *u->moved = (uint32_t)u->count;
  u->all = u->count == found;
  return true;
}

/* Rows that are locked are met again at some later look: that is no trouble of the database, and trying again now would
 * stop all reading. */
static enum store_status move_rows(struct store_session *ss, struct move_unit *unit, const char *what,
                                   struct err *err) {
  struct err local = {0};
  enum store_status status = double_try(ss, what, move_unit, unit, err ? err : &local);
  free(unit->ids);
  return status == STORE_BUSY ? STORE_OK : status;
}

enum store_status double_hold(struct store_session *ss, const struct shard_lease *lease,
                              const struct store_routes *which, uint32_t *moved, struct err *err) {
  uint32_t all = 0;
  struct move_unit unit = {.lease = lease,
                           .from = which->state,
                           .to = TASK_HELD,
                           .which = which,
                           .limit = which->limit,
                           .of_route = moved,
                           .moved = &all};
  enum store_status status = move_rows(ss, &unit, "holding rows of an unknown route", err);
  if (all == 0)
    memset(moved, 0, which->route_count * sizeof *moved);
  return status;
}

enum store_status double_unhold(struct store_session *ss, const struct shard_lease *lease, const char *route,
                                uint32_t limit, uint32_t *moved, bool *all, struct err *err) {
  struct move_unit unit = {
      .lease = lease, .from = TASK_HELD, .to = TASK_SCHEDULED, .route = route, .limit = limit, .moved = moved};
  enum store_status status = move_rows(ss, &unit, "bringing held rows back", err);
  *all = status == STORE_OK && unit.all && *moved < limit;
  return status;
}

enum store_status double_unblock(struct store_session *ss, const struct shard_lease *lease, const char *host,
                                 const struct store_unblock *what, struct store_walk *walk, uint32_t *moved, bool *all,
                                 struct err *err) {
  struct move_unit unit = {.lease = lease,
                           .from = TASK_BLOCKED,
                           .to = TASK_SCHEDULED,
                           .route = what->route,
                           .host = host,
                           .failed_heads = what->failed_too,
                           .walk = walk,
                           .next = *walk,
                           .limit = what->limit,
                           .moved = moved};
  enum store_status status = move_rows(ss, &unit, "bringing blocked rows back", err);
  *all = status == STORE_OK && unit.all;
  if (status == STORE_OK && unit.was_read && (unit.all || *moved == 0))
    *walk = unit.next;
  return status;
}

/* --- heads --- */

struct heads_unit {
  struct store_heads_part *part; /* NULL = all */
  store_head_fn *each;
  void *ctx;
};

/* A head as it was at that instant. */
struct head_copy {
  uint64_t id;
  struct row order; /* what it is ordered by; its texts are not its own */
  const struct blob *route, *order_key;
  struct store_head told;
  char *texts; /* of told */
};

static void copy_texts(struct head_copy *head) {
  size_t route = head->route->len + 1, key = head->order_key->len + 1;
  head->texts = calloc(1, route + key);
  if (!head->texts)
    world_fail("no memory for a head");
  memcpy(head->texts, head->route->data, route);
  memcpy(head->texts + route, head->order_key->data, key);
  head->told = (struct store_head){.id = head->id,
                                   .failed = head->order.failures > 0,
                                   .route = head->texts,
                                   .order_key = {head->texts + route, key - 1}};
}

static int by_key(const struct blob *route, const struct blob *key, const struct head_copy *b) {
  int found = blob_order(route, b->route);
  return found ? found : blob_order(key, b->order_key);
}

static int head_order(const void *a, const void *b) {
  const struct head_copy *x = a, *y = b;
  if (x->id == y->id)
    return 0;
  return goes_before(&x->order, &y->order) ? -1 : 1;
}

static int key_order(const void *a, const void *b) {
  const struct head_copy *x = a, *y = b;
  int found = by_key(x->route, x->order_key, y);
  return found ? found : (x->id > y->id) - (x->id < y->id);
}

static bool is_behind(const struct head_copy *head, const struct store_heads_part *at) {
  if (!at->more)
    return true;
  struct blob *route = NULL, *key = NULL;
  blob_put(&route, at->route);
  blob_set(&key, at->order_key, at->order_key_len);
  bool behind = by_key(route, key, head) < 0;
  blob_put(&route, NULL);
  blob_put(&key, NULL);
  return behind;
}

/* Cuts what is behind the first keys, over or not; says where the part ends. */
static void cut_part(struct head_copy *heads, size_t *count, struct store_heads_part *next) {
  /* A key may be there several times: an entry of the index is what is counted. */
  size_t last = next->keys - 1;
  next->more = *count > last;
  if (!next->more)
    return;
  const struct head_copy *end = &heads[last];
  while (last + 1 < *count && by_key(heads[last + 1].route, heads[last + 1].order_key, end) == 0)
    last++;
  *count = last + 1;
  (void)snprintf(next->route, sizeof next->route, "%s", end->route->data);
  next->order_key_len = end->order_key->len < STORE_KEY_MAX ? end->order_key->len : STORE_KEY_MAX;
  memcpy(next->order_key, end->order_key->data, next->order_key_len);
}

static size_t keep_living(const struct table *db, struct head_copy *heads, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    const struct row *task;
    for (size_t k = 0; k < db->data.heads.count; k++) {
      const struct head_row *head = db->data.heads.at[k];
      if (head->id != heads[i].id || !head_lives(db, head, &task))
        continue;
      heads[kept] = heads[i];
      heads[kept++].order = *task;
      break;
    }
  }
  return kept;
}

static bool heads_unit(struct store_session *ss, void *arg, struct err *err) {
  struct heads_unit *u = arg;
  struct store_heads_part next = u->part ? *u->part : (struct store_heads_part){0};
  struct table *db = ss->db;
  if (!double_begin(ss, SCRIPT_READS, u->part ? 2 : 1, err) || !double_lock(ss, LOCK_HEADS, 0, true, false, err))
    return false;
  struct head_copy *heads = calloc(db->data.heads.count + 1, sizeof *heads);
  size_t count = 0;
  if (!heads)
    world_fail("no memory for heads");
  for (size_t i = 0; i < db->data.heads.count; i++) {
    const struct head_row *head = db->data.heads.at[i];
    heads[count] = (struct head_copy){.id = head->id, .route = head->route, .order_key = head->order_key};
    count += is_behind(&heads[count], &next);
  }
  qsort(heads, count, sizeof *heads, key_order);
  if (u->part)
    cut_part(heads, &count, &next);
  double_cost(ss, u->part ? 0 : count, u->part ? count : 0);
  count = keep_living(db, heads, count);
  qsort(heads, count, sizeof *heads, head_order);
  for (size_t i = 0; i < count; i++) /* they may be gone when the answer comes */
    copy_texts(&heads[i]);
  bool ok = double_end(ss, err);
  for (size_t i = 0; i < count; i++) {
    if (ok)
      u->each(u->ctx, &heads[i].told);
    free(heads[i].texts);
  }
  free(heads);
  if (ok && u->part)
    *u->part = next;
  return ok;
}

enum store_status double_heads(struct store_session *ss, struct store_heads_part *part, store_head_fn *each, void *ctx,
                               struct err *err) {
  struct err local = {0};
  return double_try(ss, "reading the heads of order keys", heads_unit, &(struct heads_unit){part, each, ctx},
                    err ? err : &local);
}
