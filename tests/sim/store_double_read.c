/* SPDX-License-Identifier: MIT
 *
 * Finding what is due and reading it: outbox/read.c. All of a call is of one instant.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "store_double_ops.h"
#include "store_double_rows.h"

/* --- groups --- */

struct look_unit {
  const struct store_look *what;
  size_t *count;
  int64_t *now_us;
};

static bool is_looked_at(const struct store_look *what, const struct row *row) {
  bool leased = false;
  for (size_t i = 0; i < what->lease_count; i++)
    leased = leased || what->leases[i].shard == row->shard;
  return leased && what->states & TASK_BIT(row->state) &&
         (!what->routes || holds_name(what->routes, what->route_count, row->text[ROW_ROUTE]));
}

static void add_group(struct store_session *ss, size_t *count, const struct row *row) {
  struct store_group *group = &ss->groups[*count - (*count > 0)];
  const char *route = row->text[ROW_ROUTE]->data;
  bool same = *count > 0 && group->state == row->state && group->shard == row->shard &&
              group->priority == row->priority && strcmp(group->route, route) == 0;
  if (same)
    return; /* the first one is the earliest */
  group = &ss->groups[(*count)++];
  int64_t next_us = row_next_us(row);
  *group = (struct store_group){.state = row->state,
                                .shard = row->shard,
                                .priority = row->priority,
                                .misfit = row_is_misfit(row),
                                .next_us = next_us < 0 ? 0 : next_us};
  group->has_misfits = group->misfit || (row->state == TASK_SCHEDULED && next_us < 0);
  (void)snprintf(group->route, sizeof group->route, "%s", route);
  group->route_len = strlen(group->route);
}

static struct ghost group_of(const struct row *row) {
  return (struct ghost){.state = row->state,
                        .shard = row->shard,
                        .priority = row->priority,
                        .route = table_key(row->text[ROW_ROUTE]->data)};
}

static bool same_group(const struct row *a, const struct row *b) {
  return a->state == b->state && a->shard == b->shard && a->priority == b->priority &&
         blob_same(a->text[ROW_ROUTE], b->text[ROW_ROUTE]);
}

static struct ghost group_of_range(const struct store_range *range) {
  return (struct ghost){
      .state = range->state, .shard = range->shard, .priority = range->priority, .route = table_key(range->route)};
}

/* A seek for each group, which passes over what is before its first row. */
static size_t before_groups(const struct table *db, const struct chosen *rows) {
  size_t passed = 0;
  for (size_t i = 0; i < rows->count && db->ghost_us; i++) {
    const struct ghost group = group_of(rows->at[i]);
    if (i == 0 || !same_group(rows->at[i - 1], rows->at[i]))
      passed += table_ghosts(db, &group, INT64_MIN, row_next_us(rows->at[i]));
  }
  return passed;
}

static bool look_unit(struct store_session *ss, void *arg, struct err *err) {
  struct look_unit *u = arg;
  struct chosen rows = {0};
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < ss->db->data.rows.count; i++)
    if (is_looked_at(u->what, ss->db->data.rows.at[i]))
      chosen_add(&rows, ss->db->data.rows.at[i]);
  chosen_sort(&rows);
  free(ss->groups);
  ss->groups = calloc(rows.count + 1, sizeof *ss->groups);
  if (!ss->groups)
    world_fail("no memory for groups");
  *u->count = 0;
  for (size_t i = 0; i < rows.count; i++)
    add_group(ss, u->count, rows.at[i]);
  if (u->what->limit && *u->count > u->what->limit)
    *u->count = u->what->limit;
  *u->now_us = table_clock(ss->db);
  double_cost_ghosts(ss, before_groups(ss->db, &rows));
  double_cost(ss, 0, *u->count);
  chosen_free(&rows);
  return double_end(ss, err);
}

enum store_status double_look(struct store_session *ss, const struct store_look *what,
                              const struct store_group **groups, size_t *count, int64_t *now_us, struct err *err) {
  *count = 0;
  if (what->lease_count == 0 || what->states == 0 || (what->routes && what->route_count == 0))
    return double_now(ss, now_us, err);
  enum store_status status =
      double_run(ss, "looking for the next due times", look_unit, &(struct look_unit){what, count, now_us}, err);
  *groups = ss->groups;
  return status;
}

/* --- ranges --- */

static bool is_of_group(const struct store_range *range, const struct row *row) {
  return row_is_in(row, range->state, range->shard) && row->priority == range->priority &&
         blob_is(row->text[ROW_ROUTE], range->route, strlen(range->route));
}

static bool key_is_claimed(const struct table *db, const struct row *row) {
  for (size_t i = 0; i < db->data.rows.count; i++) {
    const struct row *it = db->data.rows.at[i];
    if (row_is_in(it, TASK_CLAIMED, row->shard) && blob_same(it->text[ROW_ROUTE], row->text[ROW_ROUTE]) &&
        blob_same(it->text[ROW_ORDER_KEY], row->text[ROW_ORDER_KEY]))
      return true;
  }
  return false;
}

static bool key_has_head(const struct table *db, const struct row *row) {
  const struct row *task;
  for (size_t i = 0; i < db->data.heads.count; i++) {
    const struct head_row *head = db->data.heads.at[i];
    if (head->id != row->id && blob_same(head->route, row->text[ROW_ROUTE]) &&
        blob_same(head->order_key, row->text[ROW_ORDER_KEY]) && head_lives(db, head, &task))
      return true;
  }
  return false;
}

static bool changes_host(const struct row *row) {
  return row->text[ROW_MOVE_TO_HOST] && !blob_same(row->text[ROW_MOVE_TO_HOST], row->text[ROW_TARGET_HOST]);
}

/* Bound rows that are a daemon's: those for its host, and those of others that are to move. */
static bool is_for_host(const struct table *db, const char *host, const struct row *row) {
  if (!host || blob_is(row->text[ROW_TARGET_HOST], host, strlen(host)))
    return true;
  return row->state == TASK_SCHEDULED && row_moves(row) &&
         (row->text[ROW_ORDER_KEY]->len == 0 || (changes_host(row) && !host_lives(db, row->text[ROW_TARGET_HOST]) &&
                                                 !key_is_claimed(db, row) && !key_has_head(db, row)));
}

static bool is_behind(const struct row *row, struct store_cursor after) {
  int64_t next_us = row_next_us(row);
  return next_us > after.next_us || (next_us == after.next_us && row->id > after.id);
}

struct range_unit {
  const struct store_range *ranges;
  size_t range_count;
  int64_t ahead_us;
  struct store_limit limit;
  struct task_batch **batch;
  int64_t *next_us, *now_us;
};

static void read_range(struct store_session *ss, const struct range_unit *u, size_t at, struct chosen *out) {
  const struct table *db = ss->db;
  const struct store_range *range = &u->ranges[at];
  const struct ghost group = group_of_range(range);
  int64_t until_us = table_clock(db) + u->ahead_us;
  struct chosen rows = {0};
  size_t passed = 0;
  if (u->next_us)
    u->next_us[at] = INT64_MAX;
  for (size_t i = 0; i < db->data.rows.count; i++) {
    const struct row *row = db->data.rows.at[i];
    if (!is_of_group(range, row) || row_next_us(row) == TIME_NULL)
      continue;
    if (!is_for_host(db, range->host, row)) {
      passed += is_behind(row, range->after);
      continue;
    }
    if (row_next_us(row) <= until_us && is_behind(row, range->after))
      chosen_add(&rows, row);
    if (u->next_us && row_next_us(row) > until_us && row_next_us(row) < u->next_us[at])
      u->next_us[at] = row_next_us(row);
  }
  chosen_sort(&rows);
  size_t taken = rows.count < range->limit ? rows.count : range->limit;
  for (size_t i = 0; i < taken; i++)
    chosen_add(out, rows.at[i]);
  int64_t end_us = u->next_us                       ? u->next_us[at]
                   : taken && taken == range->limit ? row_next_us(rows.at[taken - 1])
                                                    : until_us;
  double_cost_ghosts(ss, table_ghosts(db, &group, range->after.next_us, end_us));
  double_cost(ss, passed, taken);
  chosen_free(&rows);
}

static bool range_unit(struct store_session *ss, void *arg, struct err *err) {
  struct range_unit *u = arg;
  struct chosen rows = {0};
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < u->range_count; i++)
    read_range(ss, u, i, &rows);
  if (u->next_us)
    *u->now_us = table_clock(ss->db);
  struct task_batch *batch = double_batch(&rows, u->limit);
  chosen_free(&rows);
  if (double_end(ss, err)) {
    *u->batch = batch;
    return true;
  }
  if (batch)
    batch->release(batch);
  return false;
}

enum store_status double_read(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                              int64_t ahead_us, struct store_limit limit, struct task_batch **batch, int64_t *next_us,
                              int64_t *now_us, struct err *err) {
  *batch = NULL;
  struct range_unit unit = {ranges, range_count, ahead_us, limit, batch, next_us, now_us};
  return double_run(ss, "reading due rows", range_unit, &unit, err);
}

struct next_unit {
  const struct store_range *ranges;
  size_t range_count;
  int64_t *next_us, *now_us;
};

static bool next_unit(struct store_session *ss, void *arg, struct err *err) {
  struct next_unit *u = arg;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  *u->now_us = table_clock(ss->db);
  for (size_t i = 0; i < u->range_count; i++) {
    u->next_us[i] = INT64_MAX;
    for (size_t k = 0; k < ss->db->data.rows.count; k++) {
      const struct row *row = ss->db->data.rows.at[k];
      int64_t next_us = row_next_us(row);
      if (is_of_group(&u->ranges[i], row) && next_us != TIME_NULL && next_us >= u->ranges[i].after.next_us &&
          next_us < u->next_us[i])
        u->next_us[i] = next_us;
    }
    const struct ghost group = group_of_range(&u->ranges[i]);
    double_cost_ghosts(ss, table_ghosts(ss->db, &group, u->ranges[i].after.next_us, u->next_us[i]));
    double_cost(ss, 0, 1);
  }
  return double_end(ss, err);
}

enum store_status double_next_due(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                                  int64_t *next_us, int64_t *now_us, struct err *err) {
  return double_run(ss, "looking for the next due times", next_unit,
                    &(struct next_unit){ranges, range_count, next_us, now_us}, err);
}

struct find_unit {
  const struct store_range *ranges;
  const struct store_cursor *until;
  size_t range_count;
  struct found_id *found;
  size_t *counts;
};

static bool is_found_in(const struct store_range *range, const struct row *row) {
  struct store_range one = *range;
  if (row->priority <= STORE_PRIORITY_MAX && range->priorities & 1u << row->priority)
    one.priority = row->priority;
  return is_of_group(&one, row);
}

/* Adds those of one range behind the ones found before. */
static void find_range(struct store_session *ss, const struct find_unit *u, size_t at, struct found_id *found) {
  const struct store_range *range = &u->ranges[at];
  struct chosen rows = {0};
  size_t count = 0;
  for (size_t i = 0; i < ss->db->data.rows.count; i++) {
    const struct row *row = ss->db->data.rows.at[i];
    if (is_found_in(range, row) && row_next_us(row) != TIME_NULL &&
        row_next_us(row) <= table_clock(ss->db) + range->ahead_us && is_behind(row, range->after) &&
        !is_behind(row, u->until[at]))
      chosen_add(&rows, row);
  }
  chosen_sort(&rows);
  for (size_t i = 0; i < rows.count && count < range->limit; i++) {
    const struct row *row = rows.at[range->last ? rows.count - 1 - i : i];
    found[count++] = (struct found_id){.id = row->id,
                                       .next_us = row_next_us(row),
                                       .keyed = row->text[ROW_ORDER_KEY]->len > 0,
                                       .foreign = !is_for_host(ss->db, range->host, row)};
  }
  const struct ghost group = group_of_range(range);
  int64_t end_us = count && count == range->limit && !range->last ? found[count - 1].next_us : u->until[at].next_us;
  double_cost_ghosts(ss, table_ghosts(ss->db, &group, range->after.next_us, end_us));
  double_cost(ss, 0, count);
  chosen_free(&rows);
  u->counts[at] = count;
}

static bool find_unit(struct store_session *ss, void *arg, struct err *err) {
  struct find_unit *u = arg;
  size_t total = 0;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < u->range_count; i++) {
    find_range(ss, u, i, &u->found[total]);
    total += u->counts[i];
  }
  return double_end(ss, err);
}

enum store_status double_find(struct store_session *ss, const struct store_range *ranges,
                              const struct store_cursor *until, size_t range_count, struct found_id *found,
                              size_t *counts, struct err *err) {
  return double_run(ss, "looking for rows that came late", find_unit,
                    &(struct find_unit){ranges, until, range_count, found, counts}, err);
}

/* --- rows by id, and misfits --- */

struct ids_unit {
  enum task_state state;
  uint64_t shards;
  const char *host;
  const uint64_t *ids;
  size_t count;
  int64_t ahead_us;
  struct store_limit limit;
  const struct store_group *misfits; /* of this group; NULL = rows by id */
  uint32_t most;
  struct task_batch **batch;
};

static bool is_in_any(const struct row *row, enum task_state state, uint64_t shards) {
  return row->shard < STORE_SHARDS_MAX && (shards & shard_bit(row->shard)) && row->state == state;
}

static bool is_asked_for(const struct table *db, const struct ids_unit *u, const struct row *row) {
  if (!u->misfits)
    return holds_id(u->ids, u->count, row->id) && is_in_any(row, u->state, u->shards) &&
           row_next_us(row) != TIME_NULL && row_next_us(row) <= table_clock(db) + u->ahead_us &&
           is_for_host(db, u->host, row);
  return is_in_any(row, u->state, u->shards) && row->priority == u->misfits->priority &&
         strcmp(row->text[ROW_ROUTE]->data, u->misfits->route) == 0 && (u->misfits->misfit || row_next_us(row) < 0);
}

static bool ids_unit(struct store_session *ss, void *arg, struct err *err) {
  struct ids_unit *u = arg;
  struct chosen rows = {0};
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < ss->db->data.rows.count && rows.count < u->most; i++)
    if (is_asked_for(ss->db, u, ss->db->data.rows.at[i]))
      chosen_add(&rows, ss->db->data.rows.at[i]);
  struct task_batch *batch = double_batch(&rows, u->limit);
  double_cost(ss, 0, u->misfits ? rows.count : u->count);
  chosen_free(&rows);
  if (double_end(ss, err)) {
    *u->batch = batch;
    return true;
  }
  if (batch)
    batch->release(batch);
  return false;
}

enum store_status double_read_ids(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                  const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                  struct task_batch **batch, struct err *err) {
  *batch = NULL;
  if (count == 0)
    return STORE_OK;
  struct ids_unit unit = {state, shards, host, ids, count, ahead_us, limit, NULL, UINT32_MAX, batch};
  return double_run(ss, "reading rows by id", ids_unit, &unit, err);
}

enum store_status double_read_misfits(struct store_session *ss, const struct store_group *group, uint32_t limit,
                                      struct task_batch **batch, struct err *err) {
  *batch = NULL;
  struct ids_unit unit = {
      .state = group->state, .shards = shard_bit(group->shard), .misfits = group, .most = limit, .batch = batch};
  return double_run(ss, "reading rows that the schema does not allow", ids_unit, &unit, err);
}

struct which_unit {
  enum task_state state;
  uint8_t shard;
  const struct store_routes *which; /* NULL = those of ids that have expired */
  uint64_t *ids;
  size_t given, *count;
};

static bool is_of_which(const struct which_unit *u, const struct row *row, int64_t now_us) {
  if (!row_is_in(row, u->state, u->shard))
    return false;
  if (!u->which)
    return holds_id(u->ids, u->given, row->id) && row->expires_us != TIME_NULL && row->expires_us <= now_us;
  return holds_name(u->which->routes, u->which->route_count, row->text[ROW_ROUTE]) &&
         row->priority == u->which->priority && row_next_us(row) != TIME_NULL &&
         row_next_us(row) <= now_us + u->which->ahead_us;
}

static bool which_unit(struct store_session *ss, void *arg, struct err *err) {
  struct which_unit *u = arg;
  struct chosen rows = {0};
  size_t found = 0;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < ss->db->data.rows.count; i++)
    if (is_of_which(u, ss->db->data.rows.at[i], table_clock(ss->db)))
      chosen_add(&rows, ss->db->data.rows.at[i]);
  if (u->which)
    chosen_sort(&rows);
  uint64_t *ids = calloc(rows.count + 1, sizeof *ids);
  if (!ids)
    world_fail("no memory for ids");
  for (; found < rows.count && (!u->which || found < u->which->limit); found++)
    ids[found] = rows.at[found]->id;
  chosen_free(&rows);
  double_cost(ss, 0, u->which ? found : u->given);
  bool ok = double_end(ss, err);
  if (ok) {
    memcpy(u->ids, ids, found * sizeof *ids);
    *u->count = found;
  }
  free(ids);
  return ok;
}

enum store_status double_find_routes(struct store_session *ss, uint8_t shard, const struct store_routes *which,
                                     uint64_t *ids, size_t *count, struct err *err) {
  return double_run(ss, "looking for rows of many routes", which_unit,
                    &(struct which_unit){which->state, shard, which, ids, 0, count}, err);
}

enum store_status double_expired(struct store_session *ss, enum task_state state, uint8_t shard, uint64_t *ids,
                                 size_t *count, struct err *err) {
  if (*count == 0)
    return STORE_OK;
  struct which_unit unit = {state, shard, NULL, ids, *count, count};
  return double_run(ss, "looking for rows whose time is over", which_unit, &unit, err);
}
