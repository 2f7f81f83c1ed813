/* SPDX-License-Identifier: MIT */
#include "outbox/schema_tables.h"

#include <stdio.h>
#include <string.h>

#include "outbox/db_error.h"
#include "query.h"

#define WHAT "looking for tables"

enum { OUTBOX = 1 << 0, NAME_ROOM = SCHEMA_NAME_ROOM };

/* Each with a column that it has had since it was made, and that another program's table of that name hardly has. */
static const struct {
  const char *suffix, *column;
} ours[SCHEMA_TABLES] = {{"", "first_due_at"},          {"_schema", "statements_done"}, {"_shards", "unclean"},
                         {"_history", "keep_until"},    {"_attempts", "claimed_by"},    {"_quarantine", "received_at"},
                         {"_instances", "alive_until"}, {"_routes", "paused"},          {"_schedules", "overlap"},
                         {"_audit", "before_image"},    {"_heads", "head_id"}};

static const char *name_of(const struct db_conn *conn, size_t i, char name[static NAME_ROOM]) {
  snprintf(name, NAME_ROOM, "%s%s", conn->config->table, ours[i].suffix);
  return name;
}

static size_t index_of(const struct db_conn *conn, const char *name) {
  char of_ours[NAME_ROOM];
  size_t i = 0;
  while (i < SCHEMA_TABLES && strcmp(name_of(conn, i, of_ours), name) != 0)
    i++;
  return i;
}

bool schema_tables_ask(struct db_conn *conn, const char *query, const char *what, struct db_result *out,
                       struct err *err) {
  struct text script = {0};
  char name[NAME_ROOM];
  for (size_t i = 0; i < SCHEMA_TABLES; i++) {
    text_puts(&script, i ? " UNION ALL " : "");
    text_query(&script, query, conn->config->table,
               ARGS(STRING("name", name_of(conn, i, name)), STRING("column", ours[i].column)));
  }
  bool ok = db_script(conn, &script, what, out, 1, err);
  text_free(&script);
  return ok;
}

bool schema_tables_find(struct db_conn *conn, struct schema_tables *out, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool ok = true;
  *out = (struct schema_tables){0};
  if (!schema_tables_ask(conn, query_schema_table, WHAT, &result, err))
    return false;
  while (ok && db_next(&result, &row, 2)) {
    uint64_t is_ours = 0;
    size_t i = row.fields[0] ? index_of(conn, row.fields[0]) : SCHEMA_TABLES;
    ok = (i < SCHEMA_TABLES && db_u64(&row, 1, 1, &is_ours)) || db_unexpected(err, WHAT);
    if (ok)
      *(is_ours ? &out->ours : &out->foreign) |= 1U << i;
  }
  db_results_free(&result, 1);
  return ok;
}

/* "DROP TABLE `a`, `b`": what a migration made beside an outbox that is not there, or not ours. No task was ever in
 * them. */
static void way_out(const struct db_conn *conn, const struct schema_tables *tables, struct text *out) {
  char name[NAME_ROOM];
  for (size_t i = 0; i < SCHEMA_TABLES; i++) {
    if (!(tables->ours & 1U << i))
      continue;
    text_puts(out, out->len ? ", `" : "DROP TABLE `");
    text_puts(out, name_of(conn, i, name));
    text_puts(out, "`");
  }
}

bool schema_tables_free(const struct db_conn *conn, const struct schema_tables *tables, struct err *err) {
  const struct database_config *config = conn->config;
  struct text drop = {0};
  char name[NAME_ROOM];
  size_t i = 0;
  if (!tables->foreign)
    return true;
  while (!(tables->foreign & 1U << i))
    i++;
  if (!(tables->ours & OUTBOX)) /* else they may hold what became of tasks */
    way_out(conn, tables, &drop);
  err_set(err, DB_E_NOT_MIGRATED,
          "database %s has a table %s of another program: it has no column %s; set database.table to a name that is "
          "free, such as duebox_%s, or database.name to another database%s%s",
          config->name, name_of(conn, i, name), ours[i].column, config->table,
          drop.len ? "; an earlier `duebox migrate` left tables beside it that nothing is in: " : "",
          drop.len ? drop.data : "");
  text_free(&drop);
  return false;
}

const char *schema_tables_lost(const struct schema_tables *tables, size_t n) {
  for (size_t i = 0; i < SCHEMA_TABLES; i++)
    if (!((tables->ours | tables->foreign) & 1U << i) && n-- == 0)
      return ours[i].suffix;
  return NULL;
}

bool schema_tables_kept(struct db_conn *conn, bool complete, struct err *err) {
  const struct database_config *config = conn->config;
  struct schema_tables tables;
  struct text drop = {0};
  if (!schema_tables_find(conn, &tables, err))
    return false;
  if (tables.ours & OUTBOX)
    return true;
  if (!complete)
    way_out(conn, &tables, &drop);
  err_set(err, DB_E_NOT_MIGRATED,
          "database %s has no table %s, though %s_schema says that it was made; restore it%s%s%s", config->name,
          config->table, config->table,
          drop.len ? ". Or, if a table of another program had that name then, nothing is in those beside it: " : "",
          drop.len ? drop.data : "", drop.len ? ", and run `duebox migrate` again" : "");
  text_free(&drop);
  return false;
}

bool schema_tables_flaw(struct db_conn *conn, struct schema_flaw *out, struct err *err) {
  static const char what[] = "looking at engines and collations";
  struct db_result result;
  struct db_row row;
  *out = (struct schema_flaw){SCHEMA_SOUND, ""};
  if (!schema_tables_ask(conn, query_schema_flaws, what, &result, err))
    return false;
  if (db_next(&result, &row, 3) && row.fields[0] && row.fields[2]) {
    out->kind = row.fields[1] ? SCHEMA_COLLATION : SCHEMA_ENGINE;
    snprintf(out->table, sizeof out->table, "%s", row.fields[0]);
    if (row.fields[1])
      err_set(err, DB_E_NOT_MIGRATED,
              "column %s of table %s.%s has the collation %s, by which some different ids or keys are the same",
              row.fields[1], conn->config->name, row.fields[0], row.fields[2]);
    else
      err_set(err, DB_E_NOT_MIGRATED,
              "table %s.%s has the engine %s instead of InnoDB: what is not committed would count in it, and what is "
              "rolled back would stay",
              conn->config->name, row.fields[0], row.fields[2]);
  }
  bool ok = db_is_sound(conn, what, err);
  db_results_free(&result, 1);
  return ok;
}
