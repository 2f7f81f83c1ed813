/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_route.c - routes and instances for people: what waits where, who holds what, pause and resume.
 *
 * Counts look at the index only and stop at a cap, so that the list is quick on a table of any size.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outbox/db_error.h"
#include "outbox/operator_impl.h"
#include "outbox/row.h"
#include "query.h"

enum { LIVING_STATES = TASK_DONE };

static const char what[] = "listing routes";

struct route_info {
  char name[ROW_ROUTE_CAP];
  uint64_t rows[LIVING_STATES];
  uint64_t dead;
  int64_t next_us; /* of scheduled rows; 0 = none */
  bool paused;
  char reason[256 * 4], changed_by[65 * 4];
  int64_t changed_us; /* 0 = no setting */
};

struct route_table {
  struct route_info **items;
  size_t count, cap;
  void *by_name; /* of tsearch(): whoever may INSERT makes up as many names as they like */
};

static int compare_names(const void *a, const void *b) {
  return strcmp(((const struct route_info *)a)->name, ((const struct route_info *)b)->name);
}

static bool has_room(struct route_table *table) {
  if (table->count < table->cap)
    return true;
  size_t cap = table->cap ? table->cap * 2 : 32;
  struct route_info **grown = realloc(table->items, cap * sizeof *grown);
  if (!grown)
    return false;
  table->items = grown;
  table->cap = cap;
  return true;
}

/* The entry of that name, made when it is new; NULL without memory. */
static struct route_info *route_entry(struct route_table *table, const char *name) {
  struct route_info *entry = has_room(table) ? calloc(1, sizeof *entry) : NULL;
  if (!entry)
    return NULL;
  snprintf(entry->name, sizeof entry->name, "%s", name);
  struct route_info **found = (struct route_info **)tsearch(entry, &table->by_name, compare_names);
  if (!found || *found != entry) {
    free(entry);
    return found ? *found : NULL;
  }
  table->items[table->count++] = entry;
  return entry;
}

static void free_routes(struct route_table *table) {
  for (size_t i = 0; i < table->count; i++) {
    (void)tdelete(table->items[i], &table->by_name, compare_names);
    free(table->items[i]);
  }
  free((void *)table->items);
}

static bool out_of_memory(struct err *err) {
  return err_set(err, DB_E_NO_MEMORY, "%s: %s", what, db_error_cure(DB_E_NO_MEMORY));
}

/* One of the queries below: takes a row into the entry of the route that its first column names. */
typedef bool take_fn(struct route_info *entry, const struct db_row *row);

static bool gather(struct outbox_operator *op, struct route_table *table, const char *only, const char *statement,
                   const struct sql_arg *args, unsigned columns, take_fn *take, struct err *err) {
  struct db_result result;
  if (!op_query(op, statement, args, what, &result, err))
    return false;
  struct db_row row;
  bool ok = true;
  while (ok && db_next(&result, &row, columns)) {
    char name[ROW_ROUTE_CAP];
    if (!row_route_shown(&row, 0, name) || (only && strcmp(only, name) != 0))
      continue;
    struct route_info *entry = route_entry(table, name);
    ok = entry ? take(entry, &row) || db_unexpected(err, what) : out_of_memory(err);
  }
  db_results_free(&result, 1);
  return ok;
}

static bool take_group(struct route_info *entry, const struct db_row *row) {
  enum task_state state = row->fields[1] ? task_state_parse(row->fields[1]) : TASK_STATES;
  if (state >= TASK_DONE) /* the living states come first; none that anybody writes in a strict sql_mode */
    return true;
  entry->rows[state] = 1; /* at least; counted later */
  if (state == TASK_SCHEDULED)
    entry->next_us = row_time_or_past(row, 2);
  return true;
}

static bool take_dead(struct route_info *entry, const struct db_row *row) {
  return db_u64(row, 1, UINT64_MAX, &entry->dead);
}

static bool take_setting(struct route_info *entry, const struct db_row *row) {
  uint64_t paused;
  bool ok = db_u64(row, 1, 1, &paused) && db_copy(row, 2, entry->reason, sizeof entry->reason) &&
            db_copy(row, 3, entry->changed_by, sizeof entry->changed_by) && db_time(row, 4, &entry->changed_us);
  entry->paused = ok && paused;
  return ok;
}

static bool count_state(struct outbox_operator *op, struct route_info *entry, enum task_state state, uint64_t cap,
                        const struct text *shards, struct err *err) {
  struct db_result result;
  struct db_row row;
  if (!op_query(op, opsql_route_count,
                ARGS(STRING("state", task_state_text(state)), RAW("shards", *shards), STRING("route", entry->name),
                     UNSIGNED("cap", cap)),
                what, &result, err))
    return false;
  bool ok = db_next(&result, &row, 1) && db_u64(&row, 0, UINT64_MAX, &entry->rows[state]);
  db_results_free(&result, 1);
  return ok || db_unexpected(err, what);
}

/* Each up to the cap, so that a table of any size is counted quickly. */
static bool count_each(struct outbox_operator *op, struct route_table *table, uint64_t cap, struct err *err) {
  struct text shards = {0};
  text_shard_set(&shards, op->shards);
  bool ok = true;
  for (size_t i = 0; ok && i < table->count; i++)
    for (int state = 0; ok && state < LIVING_STATES; state++)
      if (table->items[i]->rows[state])
        ok = count_state(op, table->items[i], (enum task_state)state, cap, &shards, err);
  text_free(&shards);
  return ok;
}

static bool take_count(struct route_info *entry, const struct db_row *row) {
  enum task_state state = row->fields[1] ? task_state_parse(row->fields[1]) : TASK_STATES;
  uint64_t rows;
  if (!db_u64(row, 2, UINT64_MAX, &rows))
    return false;
  if (state < TASK_DONE)
    entry->rows[state] = rows;
  return true;
}

enum { FEW_ROUTES = 64, ROWS_AT_ONCE = 4000000 };

/* Many names are hardly routes. To ask for each takes longer than to count all rows, where these are not too many. */
static bool count_all(struct outbox_operator *op, struct route_table *table, uint64_t cap, struct err *err) {
  if (table->count <= FEW_ROUTES)
    return count_each(op, table, cap, err);
  if (!gather(op, table, NULL, opsql_route_counts, ARGS(UNSIGNED("limit", ROWS_AT_ONCE)), 3, take_count, err))
    return false;
  uint64_t rows = 0;
  for (size_t i = 0; i < table->count; i++)
    for (int state = 0; state < LIVING_STATES; state++) {
      uint64_t *of = &table->items[i]->rows[state];
      rows += *of;
      *of = *of < cap ? *of : cap;
    }
  return rows < ROWS_AT_ONCE || count_each(op, table, cap, err);
}

static struct field text_field(const char *name, const char *text) {
  return (struct field){.name = name, .kind = FIELD_TEXT, .null = !*text, .text = {text, strlen(text)}};
}

static struct field number_field(const char *name, enum field_kind kind, int64_t number) {
  return (struct field){.name = name, .kind = kind, .null = kind == FIELD_TIME && number == 0, .number = number};
}

static bool give(const struct route_info *info, row_fn *row, void *ctx) {
  struct field fields[LIVING_STATES + 8];
  size_t n = 0;
  fields[n++] = text_field("route", info->name);
  fields[n++] = number_field("paused", FIELD_BOOL, info->paused);
  for (int state = 0; state < LIVING_STATES; state++)
    fields[n++] = number_field(task_state_text((enum task_state)state), FIELD_INT, (int64_t)info->rows[state]);
  fields[n++] = number_field("dead", FIELD_INT, (int64_t)info->dead);
  fields[n++] = number_field("next_at", FIELD_TIME, info->next_us);
  fields[n++] = text_field("reason", info->reason);
  fields[n++] = text_field("changed_by", info->changed_by);
  fields[n++] = number_field("changed_at", FIELD_TIME, info->changed_us);
  return row(ctx, fields, n);
}

static int by_name(const void *a, const void *b) {
  return compare_names(*(struct route_info *const *)a, *(struct route_info *const *)b);
}

enum store_status op_routes(void *self, const char *only, uint64_t cap, row_fn *row, void *ctx, struct err *err) {
  struct outbox_operator *op = self;
  struct route_table table = {0};
  bool ok = gather(op, &table, only, opsql_route_groups, NO_ARGS, 3, take_group, err) &&
            count_all(op, &table, cap, err) &&
            gather(op, &table, only, opsql_route_dead, ARGS(UNSIGNED("cap", cap)), 2, take_dead, err) &&
            gather(op, &table, only, opsql_route_settings, NO_ARGS, 5, take_setting, err);
  if (ok && table.count)
    qsort((void *)table.items, table.count, sizeof *table.items, by_name);
  for (size_t i = 0; ok && i < table.count; i++)
    if (!give(table.items[i], row, ctx))
      break;
  free_routes(&table);
  return ok ? STORE_OK : op_status(err);
}

/* --- pause and resume --- */

struct pause {
  const char *route, *actor, *reason;
  bool paused;
};

/* The setting as it was, as JSON; "null" when there was none. */
static bool setting_before(struct outbox_operator *op, const struct pause *pause, struct text *before,
                           struct err *err) {
  static const char *const skip[] = {NULL};
  struct db_result result;
  struct db_row row;
  if (!op_query(op, query_route_before, ARGS(STRING("route", pause->route)), "pausing a route", &result, err))
    return false;
  bool ok = true;
  if (!db_next(&result, &row, 2))
    text_puts(before, "null");
  else
    ok = op_row_json(before, &result, &row, skip) || db_unexpected(err, "pausing a route");
  db_results_free(&result, 1);
  return ok;
}

static bool pause_body(struct outbox_operator *op, void *ctx, struct err *err) {
  const struct pause *pause = ctx;
  struct text before = {0}, reason = {0}, actor = {0}, filter = {0};
  uint64_t audit_id;
  text_clean_sql(&reason, pause->reason, strlen(pause->reason), 255);
  text_clean_sql(&actor, pause->actor, strlen(pause->actor), 64);
  text_puts(&filter, "--route ");
  text_puts(&filter, pause->route);
  bool ok = !(reason.failed || actor.failed || filter.failed) || out_of_memory(err);
  ok = ok && setting_before(op, pause, &before, err) &&
       op_query(op, query_set_route,
                ARGS(STRING("route", pause->route), WORD("paused", pause->paused ? "TRUE" : "FALSE"),
                     RAW("reason", reason), RAW("actor", actor)),
                "pausing a route", NULL, err) &&
       op_audit(op, pause->paused ? "pause" : "resume", pause->actor, pause->reason, filter.data, 1, &before, &audit_id,
                err);
  text_free(&before);
  text_free(&reason);
  text_free(&actor);
  text_free(&filter);
  return ok;
}

enum store_status op_pause(void *self, const char *route, bool paused, const char *actor, const char *reason,
                           struct err *err) {
  struct pause pause = {.route = route, .paused = paused, .actor = actor, .reason = reason};
  return op_transaction(self, pause_body, &pause, err);
}

/* --- instances --- */

enum store_status op_list_instances(void *self, row_fn *row, void *ctx, struct err *err) {
  struct db_result result;
  bool ok = op_query(self, opsql_instances, NO_ARGS, "listing instances", &result, err) &&
            op_rows(&result, row, ctx, "listing instances", err);
  return ok ? STORE_OK : op_status(err);
}

static bool announce_body(struct outbox_operator *op, void *ctx, struct err *err) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return op_query(op, opsql_announce,
                  ARGS(STRING("id", (const char *)ctx), STRING("host", host), SIGNED("pid", getpid())),
                  "announcing this command", NULL, err);
}

enum store_status op_announce(void *self, const char *name, struct err *err) {
  return op_transaction(self, announce_body, (void *)(uintptr_t)name, err);
}

enum store_status op_announced(void *self, const char *const *names, size_t count, bool *found, struct err *err) {
  static const char looking[] = "looking for commands";
  struct outbox_operator *op = self;
  struct text list = {0};
  struct db_result result;
  struct db_row row;
  for (size_t i = 0; i < count; i++) {
    const char *name = message_id_or_none(names[i]); /* a text that is no UTF-8 would be an error for all of them */
    found[i] = false;
    text_puts(&list, i ? "," : "");
    text_sql(&list, name, strlen(name));
  }
  bool ok =
      list.failed ? out_of_memory(err) : op_query(op, opsql_announced, ARGS(RAW("ids", list)), looking, &result, err);
  text_free(&list);
  if (!ok)
    return op_status(err);
  while (db_next(&result, &row, 1))
    for (size_t i = 0; i < count; i++)
      found[i] = found[i] || (row.fields[0] && *row.fields[0] && strcmp(row.fields[0], names[i]) == 0);
  db_results_free(&result, 1);
  return db_is_sound(op->conn, looking, err) ? STORE_OK : op_status(err);
}

static bool withdraw_body(struct outbox_operator *op, void *ctx, struct err *err) {
  return op_query(op, opsql_withdraw, ARGS(STRING("id", (const char *)ctx)), "withdrawing this command", NULL, err);
}

enum store_status op_withdraw(void *self, const char *name, struct err *err) {
  return op_transaction(self, withdraw_body, (void *)(uintptr_t)name, err);
}

enum store_status op_shard_owner(void *self, uint8_t shard, struct shard_owner *owner, struct err *err) {
  static const char asking[] = "asking who holds the shard";
  *owner = (struct shard_owner){0};
  struct db_result result;
  struct db_row row;
  if (!op_query(self, opsql_owner, ARGS(UNSIGNED("shard", shard)), asking, &result, err))
    return op_status(err);
  uint64_t alive = 0;
  bool ok = true;
  if (db_next(&result, &row, 5)) {
    ok = db_copy(&row, 0, owner->instance, sizeof owner->instance) &&
         (!row.fields[1] || db_time(&row, 1, &owner->lease_us)) && db_u64(&row, 2, 1, &alive) &&
         db_copy(&row, 3, owner->host, sizeof owner->host) &&
         db_copy(&row, 4, owner->admin_url, sizeof owner->admin_url);
    owner->alive = alive && owner->instance[0];
  }
  db_results_free(&result, 1);
  return ok || db_unexpected(err, asking) ? STORE_OK : op_status(err);
}
