/* SPDX-License-Identifier: MIT
 *
 * outbox/read.c - finding what is due and reading it. Takes no lock and opens no transaction.
 */
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "outbox/row.h"
#include "outbox/side_tables.h"
#include "query.h"

static const struct text *lease_shards(struct store_session *ss, const struct shard_lease *leases, size_t count) {
  text_clear(&ss->part);
  text_shards(&ss->part, leases, count);
  return &ss->part;
}

struct look_unit {
  const struct store_look *what;
  size_t *count;
  int64_t *now_us;
};

/* As read_misfits.sql has it. Not every text of the server is a time, but their order is that of the times. */
static bool is_before_all(const struct db_row *row, unsigned field) {
  return !row->fields[field] || strcmp(row->fields[field], "1970-01-01 00:00:00") < 0;
}

static bool read_group(const struct db_row *row, struct store_group *out) {
  uint64_t state, shard, priority;
  if (!db_u64(row, 1, TASK_STATES, &state) || state == 0 || !db_u64(row, 2, STORE_SHARDS_MAX - 1, &shard) ||
      !row_route(row, 3, out->route, &out->route_len) || !db_u64(row, 4, UINT8_MAX, &priority))
    return false;
  out->misfit = !row_name_fits(out->route, out->route_len, STORE_ROUTE_MAX) || !row_priority_fits(priority);
  out->next_us = row_time_or_past(row, 5);
  out->state = (enum task_state)(state - 1);
  out->has_misfits = out->misfit || (out->state == TASK_SCHEDULED && is_before_all(row, 5));
  out->shard = (uint8_t)shard;
  out->priority = (uint8_t)priority;
  return true;
}

static bool reserve_groups(struct store_session *ss, size_t count, struct err *err) {
  if (count <= ss->group_cap)
    return true;
  struct store_group *groups = realloc(ss->groups, count * sizeof *groups);
  if (!groups)
    return err_set(err, DB_E_NO_MEMORY, "no memory for %zu groups; %s", count, db_error_cure(DB_E_NO_MEMORY));
  ss->groups = groups;
  ss->group_cap = count;
  return true;
}

static void add_states(struct text *out, unsigned states) {
  for (int state = 0; state < TASK_STATES; state++) {
    const char *name = task_state_text((enum task_state)state);
    if (!(states & TASK_BIT(state)))
      continue;
    text_puts(out, out->len ? "," : "");
    text_sql(out, name, strlen(name));
  }
}

static void add_routes(struct text *out, const struct store_look *what) {
  text_puts(out, what->routes ? "route IN (" : "TRUE");
  if (what->routes)
    session_names(out, what->routes, what->route_count);
  text_puts(out, what->routes ? ")" : "");
}

static bool look_unit(struct store_session *ss, void *arg, struct err *err) {
  struct look_unit *u = arg;
  struct db_result result;
  struct db_row row;
  struct text states = {0}, routes = {0};
  add_states(&states, u->what->states);
  add_routes(&routes, u->what);
  session_begin(ss);
  session_add(ss, query_look,
              ARGS(RAW("shards", *lease_shards(ss, u->what->leases, u->what->lease_count)), RAW("states", states),
                   RAW("routes", routes), UNSIGNED("limit", u->what->limit ? u->what->limit : UINT32_MAX)));
  text_free(&states);
  text_free(&routes);
  if (!session_send(ss, "look", &result, 1, err))
    return false;
  bool ok = reserve_groups(ss, result.count, err);
  *u->count = 0;
  for (uint64_t i = 0; ok && i < result.count; i++) {
    ok = db_next(&result, &row, 6) && db_time(&row, 0, u->now_us);
    bool none = ok && !row.fields[1]; /* the only row: it just tells the time */
    ok = ok && (none || read_group(&row, &ss->groups[(*u->count)++]));
    if (!ok)
      db_unexpected(err, "look");
  }
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_look(struct store_session *ss, const struct store_look *what, const struct store_group **groups,
                           size_t *count, int64_t *now_us, struct err *err) {
  *count = 0;
  if (what->lease_count == 0 || what->states == 0 || (what->routes && what->route_count == 0))
    return ops_now(ss, now_us, err);
  enum store_status status =
      session_run(ss, "looking for the next due times", look_unit, &(struct look_unit){what, count, now_us}, err);
  *groups = ss->groups;
  return status;
}

/* Reading whole rows. The server's max_allowed_packet bounds what is sent to it, and no row that it gives. */
struct read_unit {
  const char *what;
  struct store_limit limit;
  struct task_batch **batch;
};

static bool read_batch(struct store_session *ss, const struct read_unit *u, struct err *err) {
  struct db_result result;
  if (!session_send(ss, u->what, &result, 1, err))
    return false;
  bool ok = row_batch(&result, u->batch, err);
  db_results_free(&result, 1);
  return ok;
}

struct range_unit {
  struct read_unit read;
  const struct store_range *ranges;
  size_t range_count;
  int64_t ahead_us;
  int64_t *next_us, *now_us;
};

/* Bound rows of other hosts that are to move. What has an order_key moves in its turn, which its own host alone knows
 * while it lives; afterwards the table tells what is out and which head goes first. One that stays where it is, since
 * it is asked for its own host or a shard, would be a head for nothing: it waits for its host, in its turn. */
static const char moving_rows[] = "(move_to_host IS NOT NULL OR move_to_shard IS NOT NULL) AND (LENGTH(order_key) = 0";
static const char moving_keys[] =
    " OR move_to_host <> target_host AND NOT {host_lives} AND NOT EXISTS ("
    "SELECT 1 FROM `{table}` c FORCE INDEX (ix_next) WHERE c.state = 'claimed' AND c.shard = `{table}`.shard AND "
    "c.route = `{table}`.route AND c.order_key = `{table}`.order_key) AND NOT EXISTS ("
    "SELECT 1 FROM `{table}_heads` h FORCE INDEX (ix_order_key) STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY) ON "
    "{head_lives} WHERE "
    "h.route = `{table}`.route AND h.order_key = `{table}`.order_key AND LENGTH(h.order_key) = "
    "LENGTH(`{table}`.order_key) AND h.head_id <> `{table}`.id)";

/* Which rows are a daemon's, as a condition: those for its host, and scheduled ones that are to move. */
static void add_host(struct store_session *ss, struct text *out, enum task_state state, const char *host) {
  const char *table = ss->outbox->config->table;
  if (!host) {
    text_puts(out, "TRUE");
    return;
  }
  text_expand(out, "(target_host = {host}", table, ARGS(STRING("host", host)));
  if (state == TASK_SCHEDULED) {
    text_puts(out, " OR ");
    text_puts(out, moving_rows);
    if (side_tables_usable(ss, SIDE_HEADS | SIDE_INSTANCES))
      text_expand(out, moving_keys, table, NO_ARGS);
    text_puts(out, ")");
  }
  text_puts(out, ")");
}

/* Adds a query about one range to out, in brackets. {columns} is ss->part. */
static void add_range(struct store_session *ss, struct text *out, const struct range_unit *u, const char *query,
                      const struct store_range *range) {
  text_puts(out, "(");
  text_query(out, query, ss->outbox->config->table,
             ARGS(RAW("columns", ss->part), STRING("state", task_state_text(range->state)),
                  UNSIGNED("shard", range->shard), STRING("route", range->route), UNSIGNED("priority", range->priority),
                  TIME("after_at", range->after.next_us), UNSIGNED("after_id", range->after.id),
                  UNSIGNED("limit", range->limit), SIGNED("ahead_us", u->ahead_us)));
  text_puts(out, ")");
}

/* For each range a row that tells what follows it. */
static void add_times(struct store_session *ss, const struct range_unit *u) {
  struct text next = {0};
  text_clear(&ss->part);
  for (size_t i = 0; i < u->range_count; i++) {
    text_clear(&next);
    add_range(ss, &next, u, query_read_next, &u->ranges[i]);
    row_times(&ss->script, next.failed ? "" : next.data);
    text_puts(&ss->script, " UNION ALL ");
    ss->script.failed = ss->script.failed || next.failed;
  }
  text_free(&next);
}

static bool read_times(const struct range_unit *u, struct db_result *result, struct err *err) {
  struct db_row row;
  for (size_t i = 0; i < u->range_count; i++)
    if (!db_next(result, &row, ROW_FIELD_COUNT) || !row_decode_times(&row, &u->next_us[i], u->now_us))
      return db_unexpected(err, u->read.what);
  return true;
}

/* One statement, so one snapshot: what follows each range, then the rows of one range after the other. The branches of
 * a UNION ALL without an order of its own are streamed, not sorted. */
static bool range_unit(struct store_session *ss, void *arg, struct err *err) {
  struct range_unit *u = arg;
  struct db_result result;
  session_begin(ss);
  if (u->next_us)
    add_times(ss, u);
  row_columns(&ss->part, u->read.limit);
  for (size_t i = 0; i < u->range_count; i++) {
    text_puts(&ss->script, i ? " UNION ALL " : "");
    add_range(ss, &ss->script, u, query_read, &u->ranges[i]);
  }
  if (!session_send(ss, u->read.what, &result, 1, err))
    return false;
  bool ok = (!u->next_us || read_times(u, &result, err)) && row_batch(&result, u->read.batch, err);
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_read(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                           int64_t ahead_us, struct store_limit limit, struct task_batch **batch, int64_t *next_us,
                           int64_t *now_us, struct err *err) {
  *batch = NULL;
  struct range_unit unit = {.read = {.what = "read", .limit = limit, .batch = batch},
                            .ranges = ranges,
                            .range_count = range_count,
                            .ahead_us = ahead_us,
                            .next_us = next_us,
                            .now_us = now_us};
  return session_run(ss, "reading due rows", range_unit, &unit, err);
}

struct next_unit {
  const struct store_range *ranges;
  size_t range_count;
  int64_t *next_us, *now_us;
};

static bool read_next_due(const struct next_unit *u, struct db_result *result, struct err *err) {
  struct db_row row;
  uint64_t number;
  for (size_t i = 0; i < u->range_count; i++)
    u->next_us[i] = INT64_MAX;
  bool ok = db_next(result, &row, 2) && db_time(&row, 1, u->now_us);
  while (ok && db_next(result, &row, 2)) {
    ok = u->range_count > 0 && db_u64(&row, 0, u->range_count - 1, &number);
    if (ok && row.fields[1])
      u->next_us[number] = row_time_or_past(&row, 1);
  }
  return ok || db_unexpected(err, "next due");
}

static bool next_unit(struct store_session *ss, void *arg, struct err *err) {
  struct next_unit *u = arg;
  struct db_result result;
  session_begin(ss);
  text_puts(&ss->script, "SELECT NULL, UTC_TIMESTAMP(6)");
  for (size_t i = 0; i < u->range_count; i++) {
    const struct store_range *range = &u->ranges[i];
    text_puts(&ss->script, " UNION ALL (");
    text_query(&ss->script, query_next_due, ss->outbox->config->table,
               ARGS(UNSIGNED("number", i), STRING("state", task_state_text(range->state)),
                    UNSIGNED("shard", range->shard), STRING("route", range->route),
                    UNSIGNED("priority", range->priority), TIME("from_at", range->after.next_us)));
    text_puts(&ss->script, ")");
  }
  if (!session_send(ss, "next due", &result, 1, err))
    return false;
  bool ok = read_next_due(u, &result, err);
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_next_due(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                               int64_t *next_us, int64_t *now_us, struct err *err) {
  return session_run(ss, "looking for the next due times", next_unit,
                     &(struct next_unit){ranges, range_count, next_us, now_us}, err);
}

struct heads_unit {
  struct store_heads_part *part; /* NULL = all */
  store_head_fn *each;
  void *ctx;
};

/* Keys behind, or up to, a key: two ranges of the index. */
static void add_keys(struct text *out, const char *how, const struct store_heads_part *at) {
  text_expand(out, how, "",
              ARGS(STRING("route", at->route),
                   {.name = "key", .kind = SQL_STRING, .string = at->order_key, .len = at->order_key_len}));
}

/* Where the part ends: *until is its last key, unless it is the last part. */
static bool find_until(struct store_session *ss, const struct text *behind, uint32_t keys,
                       struct store_heads_part *until, struct err *err) {
  struct db_result result;
  struct db_row row;
  session_begin(ss);
  session_add_no_wait(ss, query_heads_until, ARGS(RAW("behind", *behind), UNSIGNED("others", keys - 1)));
  if (!session_send(ss, "heads until", &result, 1, err))
    return false;
  until->more = db_next(&result, &row, 2);
  bool ok = !until->more ||
            (row.fields[0] && row.fields[1] && row.lengths[0] <= STORE_ROUTE_MAX && row.lengths[1] <= STORE_KEY_MAX);
  if (until->more && ok) {
    memcpy(until->route, row.fields[0], row.lengths[0] + 1);
    memcpy(until->order_key, row.fields[1], row.lengths[1]);
    until->order_key_len = row.lengths[1];
  }
  db_results_free(&result, 1);
  return ok || db_unexpected(err, "heads until");
}

/* Sends the script, whose rows tell the id, failures, route and order_key of a task each. */
static bool each_head(struct store_session *ss, const char *what, store_head_fn *each, void *ctx, struct err *err) {
  struct db_result result;
  struct db_row row;
  if (!session_send(ss, what, &result, 1, err))
    return false;
  bool ok = true;
  while (ok && db_next(&result, &row, 4)) {
    struct store_head head = {.route = row.fields[2], .order_key = {.data = row.fields[3], .len = row.lengths[3]}};
    uint64_t failures = 0;
    ok = (head.route && head.order_key.data && db_u64(&row, 0, UINT64_MAX, &head.id) &&
          db_u64(&row, 1, UINT32_MAX, &failures)) ||
         db_unexpected(err, what);
    head.failed = failures > 0;
    if (ok)
      each(ctx, &head);
  }
  db_results_free(&result, 1);
  return ok;
}

static bool heads_unit(struct store_session *ss, void *arg, struct err *err) {
  struct heads_unit *u = arg;
  struct store_heads_part next = u->part ? *u->part : (struct store_heads_part){0};
  struct text behind = {0}, until = {0};
  if (next.more)
    add_keys(&behind, "(h.route > {route} OR h.route = {route} AND h.order_key > {key})", &next);
  else
    text_puts(&behind, "TRUE");
  next.more = false;
  bool ok = !behind.failed && (!u->part || find_until(ss, &behind, next.keys, &next, err));
  if (ok && next.more)
    add_keys(&until, "(h.route < {route} OR h.route = {route} AND h.order_key <= {key})", &next);
  else
    text_puts(&until, "TRUE");
  const char *index = u->part ? "FORCE INDEX (ix_order_key)" : "";
  ok = ok && !until.failed;
  if (ok) {
    session_begin(ss);
    session_add_no_wait(ss, query_heads, ARGS(WORD("index", index), RAW("behind", behind), RAW("until", until)));
    ok = each_head(ss, "heads", u->each, u->ctx, err);
  }
  if (ok && u->part)
    *u->part = next;
  text_free(&behind);
  text_free(&until);
  return ok;
}

enum store_status ops_heads(struct store_session *ss, struct store_heads_part *part, store_head_fn *each, void *ctx,
                            struct err *err) {
  return session_try(ss, "reading the heads of order keys", heads_unit, &(struct heads_unit){part, each, ctx}, err);
}

struct elsewhere_unit {
  const char *instance, *host, *route;
  store_head_fn *each;
  void *ctx;
};

static bool elsewhere_unit(struct store_session *ss, void *arg, struct err *err) {
  struct elsewhere_unit *u = arg;
  session_begin(ss);
  session_add(ss, query_claims_elsewhere,
              ARGS(STRING("instance", u->instance), STRING("host", u->host), STRING("route", u->route)));
  return each_head(ss, "claims elsewhere", u->each, u->ctx, err);
}

enum store_status ops_claims_elsewhere(struct store_session *ss, const char *instance, const char *host,
                                       const char *route, store_head_fn *each, void *ctx, struct err *err) {
  return session_run(ss, "looking for claims of other instances", elsewhere_unit,
                     &(struct elsewhere_unit){instance, host, route, each, ctx}, err);
}

struct find_unit {
  const struct store_range *ranges;
  const struct store_cursor *until;
  size_t range_count;
  struct found_id *found;
  size_t *counts;
};

static void add_find(struct store_session *ss, const struct find_unit *u, size_t at) {
  const struct store_range *range = &u->ranges[at];
  struct text priorities = {0};
  range->priorities ? text_shard_set(&priorities, range->priorities) : text_u64(&priorities, range->priority);
  text_clear(&ss->part);
  add_host(ss, &ss->part, range->state, range->host);
  text_puts(&ss->script, at ? " UNION ALL (" : "(");
  text_query(&ss->script, query_find, ss->outbox->config->table,
             ARGS(UNSIGNED("number", at), RAW("host", ss->part), STRING("state", task_state_text(range->state)),
                  UNSIGNED("shard", range->shard), STRING("route", range->route), RAW("priorities", priorities),
                  TIME("after_at", range->after.next_us), UNSIGNED("after_id", range->after.id),
                  TIME("until_at", u->until[at].next_us), UNSIGNED("until_id", u->until[at].id),
                  SIGNED("ahead_us", range->ahead_us), WORD("direction", range->last ? "DESC" : "ASC"),
                  UNSIGNED("limit", range->limit)));
  text_puts(&ss->script, ")");
  text_free(&priorities);
}

/* One statement, so one snapshot. */
static bool find_unit(struct store_session *ss, void *arg, struct err *err) {
  struct find_unit *u = arg;
  struct db_result result;
  struct db_row row;
  if (!side_tables_again(ss, err))
    return false;
  session_begin(ss);
  for (size_t i = 0; i < u->range_count; i++) {
    add_find(ss, u, i);
    u->counts[i] = 0;
  }
  if (!session_send(ss, "find", &result, 1, err))
    return false;
  bool ok = true;
  for (size_t n = 0; ok && db_next(&result, &row, 5); n++) {
    uint64_t number = 0, ours = 0, keyed = 0;
    ok = (db_u64(&row, 4, u->range_count - 1, &number) && u->counts[number] < u->ranges[number].limit &&
          db_u64(&row, 0, UINT64_MAX, &u->found[n].id) && db_u64(&row, 2, 1, &ours) && db_u64(&row, 3, 1, &keyed)) ||
         db_unexpected(err, "find");
    if (!ok)
      break;
    u->counts[number]++;
    u->found[n].next_us = row_time_or_past(&row, 1);
    u->found[n].foreign = !ours;
    u->found[n].keyed = keyed;
  }
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_find(struct store_session *ss, const struct store_range *ranges, const struct store_cursor *until,
                           size_t range_count, struct found_id *found, size_t *counts, struct err *err) {
  return session_run(ss, "looking for rows that came late", find_unit,
                     &(struct find_unit){ranges, until, range_count, found, counts}, err);
}

struct ids_unit {
  struct read_unit read;
  enum task_state state;
  uint64_t shards;
  const char *host;
  const uint64_t *ids;
  size_t count;
  int64_t ahead_us;
};

static bool ids_unit(struct store_session *ss, void *arg, struct err *err) {
  struct ids_unit *u = arg;
  struct text columns = {0}, host = {0}, shards = {0};
  if (!side_tables_again(ss, err))
    return false;
  row_columns(&columns, u->read.limit);
  text_shard_set(&shards, u->shards);
  add_host(ss, &host, u->state, u->host);
  session_begin(ss);
  session_add(ss, query_read_ids,
              ARGS(RAW("columns", columns), RAW("ids", *session_ids(ss, u->ids, u->count)),
                   STRING("state", task_state_text(u->state)), RAW("shards", shards), RAW("host", host),
                   SIGNED("ahead_us", u->ahead_us)));
  text_free(&columns);
  text_free(&host);
  text_free(&shards);
  return read_batch(ss, &u->read, err);
}

enum store_status ops_read_ids(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                               const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                               struct task_batch **batch, struct err *err) {
  *batch = NULL;
  if (count == 0)
    return STORE_OK;
  struct ids_unit unit = {.read = {.what = "read by id", .limit = limit, .batch = batch},
                          .state = state,
                          .shards = shards,
                          .host = host,
                          .ids = ids,
                          .count = count,
                          .ahead_us = ahead_us};
  return session_run(ss, "reading rows by id", ids_unit, &unit, err);
}

struct misfits_unit {
  const struct store_group *group;
  uint32_t limit;
  struct task_batch **batch;
};

static bool misfits_unit(struct store_session *ss, void *arg, struct err *err) {
  struct misfits_unit *u = arg;
  const struct read_unit read = {.what = "read misfits", .batch = u->batch};
  struct text route = {0};
  text_ascii(&route, u->group->route, u->group->route_len);
  row_columns(&ss->part, (struct store_limit){0});
  session_begin(ss);
  session_add(ss, query_read_misfits,
              ARGS(RAW("columns", ss->part), STRING("state", task_state_text(u->group->state)),
                   UNSIGNED("shard", u->group->shard), RAW("route", route), UNSIGNED("priority", u->group->priority),
                   UNSIGNED("limit", u->limit), WORD("all", u->group->misfit ? "TRUE" : "FALSE")));
  text_free(&route);
  return read_batch(ss, &read, err);
}

enum store_status ops_read_misfits(struct store_session *ss, const struct store_group *group, uint32_t limit,
                                   struct task_batch **batch, struct err *err) {
  *batch = NULL;
  return session_run(ss, "reading rows that the schema does not allow", misfits_unit,
                     &(struct misfits_unit){group, limit, batch}, err);
}

struct routes_unit {
  uint8_t shard;
  const struct store_routes *which;
  uint64_t *ids;
  size_t *count;
};

/* The rows of an answer, at most `most` of them. */
static bool take_ids(struct db_result *result, const char *what, uint64_t *ids, size_t most, size_t *count,
                     struct err *err) {
  struct db_row row;
  bool ok = true;
  *count = 0;
  while (ok && *count < most && db_next(result, &row, 1))
    ok = db_u64(&row, 0, UINT64_MAX, &ids[(*count)++]) || db_unexpected(err, what);
  db_results_free(result, 1);
  return ok;
}

static bool routes_unit(struct store_session *ss, void *arg, struct err *err) {
  struct routes_unit *u = arg;
  struct db_result result;
  struct text routes = {0};
  session_names(&routes, u->which->routes, u->which->route_count);
  session_begin(ss);
  session_add(ss, query_find_routes,
              ARGS(STRING("state", task_state_text(u->which->state)), UNSIGNED("shard", u->shard),
                   RAW("routes", routes), UNSIGNED("priority", u->which->priority),
                   SIGNED("ahead_us", u->which->ahead_us), UNSIGNED("limit", u->which->limit)));
  text_free(&routes);
  return session_send(ss, "find", &result, 1, err) && take_ids(&result, "find", u->ids, u->which->limit, u->count, err);
}

enum store_status ops_find_routes(struct store_session *ss, uint8_t shard, const struct store_routes *which,
                                  uint64_t *ids, size_t *count, struct err *err) {
  return session_run(ss, "looking for rows of many routes", routes_unit,
                     &(struct routes_unit){shard, which, ids, count}, err);
}

struct expired_unit {
  enum task_state state;
  uint8_t shard;
  uint64_t *ids;
  size_t count, *kept;
};

static bool expired_unit(struct store_session *ss, void *arg, struct err *err) {
  struct expired_unit *u = arg;
  struct db_result result;
  session_begin(ss);
  session_add(ss, query_expired,
              ARGS(RAW("ids", *session_ids(ss, u->ids, u->count)), STRING("state", task_state_text(u->state)),
                   UNSIGNED("shard", u->shard)));
  return session_send(ss, "expired", &result, 1, err) && take_ids(&result, "expired", u->ids, u->count, u->kept, err);
}

enum store_status ops_expired(struct store_session *ss, enum task_state state, uint8_t shard, uint64_t *ids,
                              size_t *count, struct err *err) {
  if (*count == 0)
    return STORE_OK;
  struct expired_unit unit = {state, shard, ids, *count, count};
  return session_run(ss, "looking for rows whose time is over", expired_unit, &unit, err);
}
