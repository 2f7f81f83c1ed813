/* SPDX-License-Identifier: MIT */
#include "outbox/rights.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/db_stmt.h"
#include "query.h"

#define WHAT "trying the rights of the database user"
#define TABLE "`{table}"

enum { NO_SUCH_COLUMN = 1054, NO_SUCH_TABLE = 1146 };

const char *const right_names[RIGHTS] = {"SELECT", "INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "DROP"};

/* --- what the statements need --- */

static bool need(struct rights *rights, const char *suffix, unsigned what) {
  size_t i = 0;
  if (strchr(suffix, '{')) /* for any of several tables: see rights_of() */
    return true;
  while (i < rights->count && strcmp(rights->tables[i].suffix, suffix) != 0)
    i++;
  if (i == RIGHTS_TABLES)
    return false;
  if (i == rights->count)
    snprintf(rights->tables[rights->count++].suffix, RIGHTS_SUFFIX, "%s", suffix);
  rights->tables[i].need |= what;
  return true;
}

/* The last words before a table's name: they say what is done with it. */
struct reader {
  char words[3][16]; /* the latest first */
  char into[RIGHTS_SUFFIX];
  bool inserting;
};

static void keep_word(struct reader *reader, const char *word, size_t len) {
  memmove(reader->words[1], reader->words[0], 2 * sizeof reader->words[0]);
  snprintf(reader->words[0], sizeof reader->words[0], "%.*s", (int)len, word);
}

static bool is_word(const struct reader *reader, int back, const char *word) {
  return strcmp(reader->words[back], word) == 0;
}

static unsigned right_for(struct reader *reader, const char *suffix) {
  if (is_word(reader, 0, "INTO")) {
    reader->inserting = true;
    snprintf(reader->into, sizeof reader->into, "%s", suffix);
    return RIGHT_INSERT;
  }
  if (is_word(reader, 0, "UPDATE"))
    return RIGHT_UPDATE | RIGHT_SELECT;
  if (is_word(reader, 0, "TABLE") && is_word(reader, 1, "ALTER"))
    return RIGHT_ALTER;
  /* DELETE FROM t, and DELETE alias FROM t alias JOIN ..: we delete from the first table. */
  if (is_word(reader, 0, "FROM") && (is_word(reader, 1, "DELETE") || is_word(reader, 2, "DELETE")))
    return RIGHT_DELETE | RIGHT_SELECT;
  return RIGHT_SELECT;
}

bool rights_add(struct rights *rights, const char *statement) {
  struct reader reader = {0};
  const char *at = statement;
  while (*at) {
    if (strncmp(at, "-- ", 3) == 0 || strncmp(at, "--\n", 3) == 0) {
      at += strcspn(at, "\n");
    } else if (strncmp(at, TABLE, strlen(TABLE)) == 0) {
      char suffix[RIGHTS_SUFFIX];
      size_t len = strcspn(at + strlen(TABLE), "`");
      snprintf(suffix, sizeof suffix, "%.*s", (int)len, at + strlen(TABLE));
      if (!need(rights, suffix, right_for(&reader, suffix)))
        return false;
      at += strlen(TABLE) + len + 1;
      keep_word(&reader, "", 0);
    } else if (isalpha((unsigned char)*at) || *at == '_') {
      size_t len = 1;
      while (isalnum((unsigned char)at[len]) || at[len] == '_')
        len++;
      keep_word(&reader, at, len);
      at += len;
      if (reader.inserting && is_word(&reader, 0, "UPDATE") && is_word(&reader, 1, "KEY") &&
          !need(rights, reader.into, RIGHT_UPDATE))
        return false;
    } else {
      reader.inserting = reader.inserting && *at != ';';
      at++;
    }
  }
  return true;
}

bool rights_of(const char *const *catalogue, struct rights *rights) {
  *rights = (struct rights){0};
  for (; *catalogue; catalogue++)
    if (!rights_add(rights, *catalogue))
      return false;
  /* What housekeep_old.sql and table_free.sql are for; and whoever may do nothing with a table does not see that it is
   * there. */
  if (!need(rights, "_quarantine", RIGHT_DELETE | RIGHT_SELECT) ||
      !need(rights, "_audit", RIGHT_DELETE | RIGHT_SELECT) || !need(rights, "_attempts", RIGHT_DELETE | RIGHT_SELECT) ||
      !need(rights, "_schedules", RIGHT_SELECT))
    return false;
  /* Partitions of what is over: housekeep.c writes these statements itself. */
  enum { PARTITIONS = RIGHT_ALTER | RIGHT_CREATE | RIGHT_DROP };
  if (!need(rights, "_history", PARTITIONS) || !need(rights, "_attempts", PARTITIONS))
    return false;
  /* Only `duebox migrate` writes it, as a user of its own. */
  for (size_t i = 0; i < rights->count; i++)
    if (strcmp(rights->tables[i].suffix, "_schema") == 0)
      rights->tables[i].need = RIGHT_SELECT;
  return true;
}

/* --- whether we have them --- */

/* The server checks rights before it looks for columns, so none of these gets as far as a row. */
static const char *const tries[] = {
    "SELECT 1 FROM `{table}{suffix}` WHERE FALSE",
    "INSERT INTO `{table}{suffix}` (duebox_tries_its_rights) VALUES (1)",
    "UPDATE `{table}{suffix}` SET duebox_tries_its_rights = 1 WHERE FALSE",
    "DELETE FROM `{table}{suffix}` WHERE FALSE",
};

/* *granted; false with err when the answer says nothing about rights. */
static bool try_one(struct db_conn *conn, const char *statement, const char *suffix, bool *granted, struct err *err) {
  struct text script = {0};
  struct db_result result;
  text_statement(&script, statement, conn->config->table, ARGS(WORD("suffix", suffix)));
  bool ran = db_script(conn, &script, WHAT, &result, 1, err);
  text_free(&script);
  if (ran)
    db_results_free(&result, 1);
  *granted = ran || !db_error_is_right(err->code);
  enum db_class cls = ran ? DB_REFUSED : db_error_class(err->code);
  return ran || !*granted || err->code == NO_SUCH_COLUMN || cls == DB_READ_ONLY;
}

/* The account that the server takes us for, as a GRANT names it. */
static bool account(struct db_conn *conn, char *out, size_t cap, struct err *err) {
  struct text script = {0};
  struct db_result result;
  struct db_row row;
  text_puts(&script, "SELECT CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', "
                     "QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))");
  bool ran = db_script(conn, &script, WHAT, &result, 1, err);
  text_free(&script);
  if (!ran)
    return false;
  bool ok = db_next(&result, &row, 1) && db_copy(&row, 0, out, cap);
  db_results_free(&result, 1);
  return ok || db_unexpected(err, WHAT);
}

static void add_lost(struct text *lost, const char *table, const char *suffix) {
  text_puts(lost, lost->len ? ", " : "");
  text_puts(lost, table);
  text_puts(lost, suffix);
}

bool rights_try(struct db_conn *conn, const struct rights *rights, struct text *missing, struct text *lost,
                struct err *err) {
  char user[320];
  if (!account(conn, user, sizeof user, err))
    return false;
  for (size_t i = 0; i < rights->count; i++) {
    const char *suffix = rights->tables[i].suffix, *between = "GRANT ";
    size_t before = missing->len;
    for (size_t r = 0; r < ARRAY_LEN(tries); r++) {
      bool granted = true;
      if (!(rights->tables[i].need & 1u << r))
        continue;
      if (!try_one(conn, tries[r], suffix, &granted, err)) {
        if (err->code != NO_SUCH_TABLE)
          return false;
        add_lost(lost, conn->config->table, suffix);
        break;
      }
      if (granted)
        continue;
      text_puts(missing, missing->len == before && before ? "; " : "");
      text_puts(missing, between);
      text_puts(missing, right_names[r]);
      between = ", ";
    }
    if (missing->len == before)
      continue;
    static const char target[] = " ON `{name}`.`{table}{suffix}` TO {user}";
    text_expand(missing, target, conn->config->table,
                ARGS(WORD("name", conn->config->name), WORD("suffix", suffix), WORD("user", user)));
  }
  return (!missing->failed && !lost->failed) || err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory");
}

bool rights_check(struct db_conn *conn, struct err *err) {
  struct rights rights;
  struct text missing = {0}, lost = {0};
  bool ok = rights_of(query_all, &rights) || err_set(err, DB_E_NO_MEMORY, WHAT ": RIGHTS_TABLES is too small");
  ok = ok && rights_try(conn, &rights, &missing, &lost, err);
  if (ok && lost.len)
    ok = err_set(err, DB_E_NOT_MIGRATED, "database %s lacks %s, which a migration made; %s", conn->config->name,
                 lost.data, db_error_cure(DB_E_NOT_MIGRATED));
  if (ok && missing.len) {
    ok = err_set(err, DB_E_RIGHTS, "user %s lacks rights that the daemon needs; run: %s", conn->config->user,
                 missing.data);
    err->denied = true;
  }
  text_free(&missing);
  text_free(&lost);
  return ok;
}
