/* SPDX-License-Identifier: MIT */
#include "outbox/schema_columns.h"

#include <ctype.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/db_stmt.h"
#include "outbox/schema_tables.h"
#include "query.h"

#define WHAT "looking at columns"
#define TABLE "`{table}"

enum { COLUMNS_MAX = 256 };

/* Words in the text of a migration. */
struct word {
  const char *at;
  size_t len;
};

struct column {
  struct word suffix, name; /* suffix: of its table */
  bool table_seen, seen;
};

struct columns {
  struct column of[COLUMNS_MAX];
  size_t count;
};

static bool is(const struct word *word, const char *text, size_t len) {
  return word->len == len && memcmp(word->at, text, len) == 0;
}

static struct word word_at(const char *at) {
  size_t len = 0;
  while (islower((unsigned char)at[len]) || isdigit((unsigned char)at[len]) || at[len] == '_')
    len++;
  return (struct word){at, len};
}

static bool starts_with(const char *line, const char *with) { return strncmp(line, with, strlen(with)) == 0; }

/* The columns in one line: "  name TYPE .." of a CREATE TABLE, and ".. ADD COLUMN name TYPE .." of an ALTER. */
static bool add_line(struct columns *columns, const char *line, size_t len, const struct word *suffix, bool creates) {
  static const char adds[] = "ADD COLUMN ";
  const char *added = memmem(line, len, adds, sizeof adds - 1);
  struct word name = added                                ? word_at(added + sizeof adds - 1)
                     : creates && starts_with(line, "  ") ? word_at(line + 2)
                                                          : (struct word){line, 0};
  if (name.len == 0 || starts_with(line + strspn(line, " "), "--"))
    return true;
  if (columns->count == COLUMNS_MAX)
    return false;
  columns->of[columns->count++] = (struct column){.suffix = *suffix, .name = name};
  return true;
}

/* A statement begins at the beginning of a line. */
static bool add_migration(struct columns *columns, const char *text) {
  static const char create[] = "CREATE TABLE IF NOT EXISTS " TABLE, alter[] = "ALTER TABLE " TABLE;
  struct word suffix = {text, 0};
  bool creates = false, ours = false, ok = true;
  for (const char *line = text; ok && *line;) {
    size_t len = strcspn(line, "\n");
    if (starts_with(line, create) || starts_with(line, alter)) {
      creates = *line == 'C';
      ours = true;
      suffix.at = line + strlen(creates ? create : alter);
      suffix.len = strcspn(suffix.at, "`");
    } else if (isupper((unsigned char)*line)) {
      ours = false;
    }
    ok = !ours || add_line(columns, line, len, &suffix, creates);
    line += len + (line[len] == '\n');
  }
  return ok;
}

/* What the tables have: table, column, and whether each row must give that a value. */
static bool compare(const struct db_conn *conn, struct columns *columns, const struct db_row *row, struct err *err) {
  const char *suffix = row->fields[0] + strlen(conn->config->table), *name = row->fields[1];
  bool known = false;
  for (size_t i = 0; i < columns->count; i++) {
    struct column *column = &columns->of[i];
    if (!is(&column->suffix, suffix, strlen(suffix)))
      continue;
    column->table_seen = true;
    if (is(&column->name, name, strlen(name)))
      column->seen = known = true;
  }
  return known || strcmp(row->fields[2], "1") != 0 ||
         err_set(err, DB_E_ROW,
                 "table %s.%s has a column %s that is not of duebox and has no default, so the rows that duebox "
                 "inserts are "
                 "refused: give it one (ALTER TABLE .. ALTER COLUMN .. SET DEFAULT ..), or let it be NULL",
                 conn->config->name, row->fields[0], name);
}

static bool all_seen(const struct db_conn *conn, const struct columns *columns, struct err *err) {
  for (size_t i = 0; i < columns->count; i++) {
    const struct column *column = &columns->of[i];
    if (column->table_seen && !column->seen)
      return err_set(err, DB_E_ROW,
                     "table %s.%s%.*s lacks the column %.*s, which somebody has dropped: ALTER TABLE .. ADD COLUMN it "
                     "again, as `duebox migrate --show-sql` prints it",
                     conn->config->name, conn->config->table, (int)column->suffix.len, column->suffix.at,
                     (int)column->name.len, column->name.at);
  }
  return true;
}

bool schema_columns_check(struct db_conn *conn, const char *const *migrations, size_t count, struct err *err) {
  struct columns columns = {.count = 0};
  struct db_result result;
  struct db_row row;
  for (size_t i = 0; i < count; i++)
    if (!add_migration(&columns, migrations[i]))
      return err_set(err, DB_E_NO_MEMORY, WHAT ": COLUMNS_MAX is too small");
  if (!schema_tables_ask(conn, query_schema_columns, WHAT, &result, err))
    return false;
  bool ok = true;
  while (ok && db_next(&result, &row, 3) && row.fields[0] && row.fields[1] && row.fields[2])
    ok = compare(conn, &columns, &row, err);
  ok = ok && db_is_sound(conn, WHAT, err);
  db_results_free(&result, 1);
  return ok && all_seen(conn, &columns, err);
}
