/* SPDX-License-Identifier: MIT
 *
 * outbox/move.c - moving rows between scheduled, held and blocked, by the daemon that holds their shard. The rows are
 * found without a lock; as many of them as one transaction may write are locked, as far as nobody else holds them, and
 * moved. The scheduler waits for it, and all routes for the scheduler.
 */
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/guard.h"
#include "outbox/ops.h"
#include "outbox/row_sizes.h"
#include "outbox/server.h"
#include "outbox/side_tables.h"
#include "query.h"

#define MOVING "moving rows"

struct move_unit {
  const struct shard_lease *lease;
  const char *find; /* gives the ids, */
  unsigned reads;   /* from these tables too (side_tables.h) */
  const struct sql_arg *args;
  struct text routes;               /* of any of these: 'a','b' */
  const struct store_routes *which; /* with of_route: how many of each; NULL = that does not matter */
  uint32_t *of_route;
  enum task_state from, to;
  struct store_walk *walk; /* of blocked ones: the position of the next, */
  struct store_walk next;  /* and behind those that were found */
  uint32_t limit;
  uint64_t *found; /* by id */
  size_t found_count;
  struct text ids; /* to be locked, then locked: "1,2" */
  uint32_t *moved;
  bool was_read; /* they were found */
  bool all;      /* that were found were moved */
};

static int by_name(const void *name, const void *route) { return strcmp(name, *(const char *const *)route); }

static void count_route(struct move_unit *u, const char *name) {
  const struct store_routes *which = u->which;
  const char *const *found = bsearch(name, which->routes, which->route_count, sizeof *which->routes, by_name);
  if (found)
    u->of_route[found - which->routes]++;
}

static bool goes_behind(const struct store_walk *a, const struct store_walk *b) {
  if (a->priority != b->priority)
    return a->priority > b->priority;
  return a->after.next_us != b->after.next_us ? a->after.next_us > b->after.next_us : a->after.id > b->after.id;
}

static int by_id(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* A row of a walk: its position, and whether it is to be moved. */
static bool take_step(struct move_unit *u, const struct db_row *row, bool *wanted) {
  uint64_t priority, free_of_heads;
  struct store_walk at = {0};
  if (!db_u64(row, 0, UINT64_MAX, &at.after.id) || !db_u64(row, 1, UINT8_MAX, &priority) ||
      !db_time(row, 2, &at.after.next_us) || !db_u64(row, 3, 1, &free_of_heads))
    return false;
  at.priority = (uint8_t)priority;
  if (goes_behind(&at, &u->next))
    u->next = at;
  *wanted = free_of_heads;
  return true;
}

static bool take_found(struct move_unit *u, struct db_result *result, struct err *err) {
  struct db_row row;
  u->found_count = 0;
  if (u->walk)
    u->next = *u->walk;
  while (db_next(result, &row, u->walk ? 4 : 1)) {
    bool wanted = true;
    if (!db_u64(&row, 0, UINT64_MAX, &u->found[u->found_count]) || (u->walk && !take_step(u, &row, &wanted)))
      return db_unexpected(err, MOVING);
    u->found_count += wanted;
  }
  u->next.end = result->count < u->limit;
  qsort(u->found, u->found_count, sizeof *u->found, by_id);
  return true;
}

static bool find_rows(struct store_session *ss, struct move_unit *u, struct err *err) {
  struct db_result result;
  session_begin(ss);
  session_add(ss, u->find, u->args);
  if (!session_send(ss, MOVING, &result, 1, err))
    return false;
  free(u->found);
  u->found = calloc(result.count + 1, sizeof *u->found);
  bool ok = u->found ? take_found(u, &result, err)
                     : err_set(err, DB_E_NO_MEMORY, MOVING ": out of memory; %s", db_error_cure(DB_E_NO_MEMORY));
  db_results_free(&result, 1);
  return ok;
}

/* Those that are left are found again by the next call. Where all that were chosen are locked it goes on behind them:
 * a few large ones that somebody holds stop no others. */
static bool choose_rows(struct store_session *ss, struct move_unit *u, struct err *err) {
  size_t from = 0, fit = 0;
  while (from < u->found_count && u->found[from] <= ss->moves_after)
    from++;
  if (from == u->found_count)
    from = 0;
  if (!row_sizes_fit(ss, MOVING, &u->found[from], u->found_count - from, ROW_SIZES_MOST, &fit, err))
    return false;
  text_clear(&u->ids);
  for (size_t i = from; i < from + fit; i++) {
    text_puts(&u->ids, i > from ? "," : "");
    text_u64(&u->ids, u->found[i]);
  }
  ss->moves_after = u->found[from + fit - 1];
  return true;
}

/* Notes the rows that were locked: id, route. */
static bool take_locked(struct move_unit *u, struct db_result *result, struct err *err) {
  struct db_row row;
  uint64_t id;
  text_clear(&u->ids);
  if (u->which)
    memset(u->of_route, 0, u->which->route_count * sizeof *u->of_route);
  while (db_next(result, &row, 2)) {
    if (!db_u64(&row, 0, UINT64_MAX, &id))
      return db_unexpected(err, MOVING);
    text_puts(&u->ids, u->ids.len ? "," : "");
    text_u64(&u->ids, id);
    if (u->which && row.fields[1])
      count_route(u, row.fields[1]);
  }
  return true;
}

/* Locks the rows; the fence comes with the COMMIT. */
static bool lock_found(struct store_session *ss, struct move_unit *u, struct err *err) {
  struct db_result results[3];
  if (!server_lock_rows(ss, MOVING, session_skip(ss, false), &u->ids, err))
    return false;
  session_begin_transaction(ss);
  guard_ask_shards(ss, u->lease, 1);
  session_add(ss, query_hold_lock,
              ARGS(RAW("ids", u->ids), STRING("from", task_state_text(u->from)), UNSIGNED("shard", u->lease->shard),
                   RAW("routes", u->routes)));
  if (!session_send(ss, MOVING, results, 3, err))
    return false;
  bool ok = take_locked(u, &results[2], err);
  if (results[1].count != 1)
    text_clear(&u->ids);
  db_results_free(results, 3);
  return ok;
}

static bool move_unit(struct store_session *ss, void *arg, struct err *err) {
  struct move_unit *u = arg;
  struct db_result results[3];
  bool locked[STORE_SHARDS_MAX];
  *u->moved = 0;
  u->all = u->was_read = false;
  if (!side_tables_again(ss, err))
    return false;
  if (!side_tables_usable(ss, u->reads))
    return true;
  if (!session_locked_shards(ss, session_skip(ss, false), u->lease, 1, locked, err))
    return false;
  if (locked[u->lease->shard])
    return true;
  if (!find_rows(ss, u, err))
    return false;
  u->was_read = true;
  u->all = u->found_count == 0;
  if (u->all)
    return true;
  if (!choose_rows(ss, u, err) || !lock_found(ss, u, err))
    return false;
  if (u->ids.len == 0)
    return session_rollback(ss, MOVING, err);
  ss->moves_after = 0;
  session_begin(ss);
  session_add_no_wait(ss, query_hold,
                      ARGS(RAW("ids", u->ids), STRING("from", task_state_text(u->from)),
                           STRING("to", task_state_text(u->to)), UNSIGNED("shard", u->lease->shard),
                           RAW("routes", u->routes)));
  guard_leases(ss, u->lease, 1);
  if (!guard_commit(ss, MOVING, 3, results, err)) {
    if (err->code == DB_LOCK_WAIT)
      session_met_lock(ss);
    return false;
  }
  *u->moved = (uint32_t)results[0].count;
  u->all = *u->moved == u->found_count;
  db_results_free(results, 3);
  return true;
}

/* Rows that are locked are met again at some later look: that is no trouble of the database, and trying again now would
 * stop all reading. */
static enum store_status move_rows(struct store_session *ss, struct move_unit *unit, const char *what,
                                   struct err *err) {
  enum store_status status = session_try(ss, what, move_unit, unit, err);
  free(unit->found);
  text_free(&unit->ids);
  text_free(&unit->routes);
  return status == STORE_BUSY ? STORE_OK : status;
}

enum store_status ops_hold(struct store_session *ss, const struct shard_lease *lease, const struct store_routes *which,
                           uint32_t *moved, struct err *err) {
  uint32_t all = 0;
  struct move_unit unit = {.lease = lease,
                           .find = query_find_routes,
                           .from = which->state,
                           .to = TASK_HELD,
                           .which = which,
                           .of_route = moved,
                           .moved = &all};
  session_names(&unit.routes, which->routes, which->route_count);
  unit.args =
      ARGS(STRING("state", task_state_text(unit.from)), UNSIGNED("shard", lease->shard), RAW("routes", unit.routes),
           UNSIGNED("priority", which->priority), SIGNED("ahead_us", which->ahead_us), UNSIGNED("limit", which->limit));
  enum store_status status = move_rows(ss, &unit, "holding rows of an unknown route", err);
  if (all == 0)
    memset(moved, 0, which->route_count * sizeof *moved);
  return status;
}

/* Rows of one route back to scheduled. */
static enum store_status move_back(struct store_session *ss, struct move_unit *unit, const char *route,
                                   const char *what, struct err *err) {
  session_names(&unit->routes, &route, 1);
  unit->to = TASK_SCHEDULED;
  return move_rows(ss, unit, what, err);
}

enum store_status ops_unhold(struct store_session *ss, const struct shard_lease *lease, const char *route,
                             uint32_t limit, uint32_t *moved, bool *all, struct err *err) {
  struct move_unit unit = {.lease = lease,
                           .find = query_unhold_find,
                           .args =
                               ARGS(UNSIGNED("shard", lease->shard), STRING("route", route), UNSIGNED("limit", limit)),
                           .from = TASK_HELD,
                           .moved = moved};
  enum store_status status = move_back(ss, &unit, route, "bringing held rows back", err);
  *all = status == STORE_OK && unit.all && *moved < limit;
  return status;
}

/* Where all that can be moved are, or are locked, it goes on behind them; others that did not fit are next. */
enum store_status ops_unblock(struct store_session *ss, const struct shard_lease *lease, const char *host,
                              const struct store_unblock *what, struct store_walk *walk, uint32_t *moved, bool *all,
                              struct err *err) {
  bool bound = lease->shard == SHARD_BOUND;
  struct text ours = {0};
  text_expand(&ours, bound ? SQL_OURS_TO_TAKE : "TRUE", ss->outbox->config->table, ARGS(STRING("host", host)));
  struct move_unit unit = {.lease = lease,
                           .find = query_unblock_find,
                           .reads = SIDE_HEADS | (bound ? SIDE_INSTANCES : 0u),
                           .args =
                               ARGS(UNSIGNED("shard", lease->shard), STRING("route", what->route), RAW("ours", ours),
                                    UNSIGNED("priority", walk->priority), TIME("after_at", walk->after.next_us),
                                    UNSIGNED("after_id", walk->after.id), UNSIGNED("limit", what->limit),
                                    WORD("failed_too", what->failed_too ? "TRUE" : "FALSE")),
                           .from = TASK_BLOCKED,
                           .walk = walk,
                           .limit = what->limit,
                           .moved = moved};
  enum store_status status = move_back(ss, &unit, what->route, "bringing blocked rows back", err);
  text_free(&ours);
  *all = status == STORE_OK && unit.all;
  if (status == STORE_OK && unit.was_read && (unit.all || *moved == 0))
    *walk = unit.next;
  return status;
}
