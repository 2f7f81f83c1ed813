/* SPDX-License-Identifier: MIT */
#include "outbox/schema.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "core/store.h"
#include "outbox/db_error.h"
#include "outbox/db_patience.h"
#include "outbox/db_stmt.h"
#include "outbox/schema_columns.h"
#include "outbox/schema_misfit.h"
#include "outbox/schema_tables.h"
#include "query.h"
#include "schema_repair.h"
#include "schema_text.h"

#define WHAT "migrating the schema"

static const struct migration {
  uint32_t version;
  const char *name;
  const char *text;
} migrations[] = {
    {1, "outbox", schema_text_0001_outbox},         {2, "history", schema_text_0002_history},
    {3, "operations", schema_text_0003_operations}, {4, "heads", schema_text_0004_heads},
    {5, "guards", schema_text_0005_guards},         {6, "in_flight", schema_text_0006_in_flight},
    {7, "abandoned", schema_text_0007_abandoned},   {8, "calendar", schema_text_0008_calendar},
};

#define LATEST migrations[ARRAY_LEN(migrations) - 1].version

/* A migration as the database knows it. */
struct applied {
  bool begun, complete;
  uint32_t statements_done;
  char checksum[65];
};

struct history {
  struct applied of[ARRAY_LEN(migrations)];
  uint32_t highest; /* version number in the database, known to us or not */
};

/* "(0),(1),..." */
static void shard_rows(struct text *rows, uint32_t shards) {
  for (uint32_t shard = 0; shard < shards; shard++) {
    text_puts(rows, shard ? ",(" : "(");
    text_u64(rows, shard);
    text_puts(rows, ")");
  }
}

static void expand(struct text *out, const char *text, const char *table, uint32_t shards) {
  struct text rows = {0};
  shard_rows(&rows, shards);
  text_expand(out, text, table, ARGS(UNSIGNED("shards", shards), RAW("shard_rows", rows)));
  out->failed = out->failed || rows.failed;
  text_free(&rows);
}

static bool is_comment(const char *line) { return strncmp(line + strspn(line, " "), "--", 2) == 0; }

static const char *past_comments(const char *statement) {
  for (; is_comment(statement); statement += strspn(statement, " \n"))
    statement += strcspn(statement, "\n");
  return statement;
}

/* Cuts the next statement out of *rest (changed in place): it ends with a semicolon at the end of a line that is not a
 * comment. NULL when there is none left. */
static char *next_statement(char **rest) {
  char *start = *rest + strspn(*rest, " \n");
  char *line = start;
  while (*line) {
    size_t len = strcspn(line, "\n");
    bool ends = len && line[len - 1] == ';' && !is_comment(line);
    *rest = line + len + (line[len] == '\n');
    if (ends) {
      line[len - 1] = '\0';
      return start;
    }
    line = *rest;
  }
  return NULL;
}

/* SHA-256 in hexadecimal. */
static void checksum_of(const char *text, char out[65]) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256((const unsigned char *)text, strlen(text), digest);
  for (size_t i = 0; i < sizeof digest; i++)
    snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* That a migration has been done, so that who runs it by hand need not tell the next migrator. */
static void note_done(struct text *out, const struct migration *migration, const char *table) {
  char checksum[65];
  const struct sql_arg version = UNSIGNED("version", migration->version);
  checksum_of(migration->text, checksum);
  text_query(out, query_schema_begin, table,
             ARGS(version, STRING("name", migration->name), STRING("checksum", checksum)));
  text_puts(out, ";\n");
  text_query(out, query_schema_end, table, ARGS(version));
  text_puts(out, ";\n");
}

bool schema_print(const char *table, uint32_t shards, FILE *out, struct err *err) {
  struct text text = {0};
  /* Whoever runs it may have another mode, in which quotes, types and functions are other ones. */
  text_puts(&text, "SET @duebox_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = '" DB_SQL_MODE "';\n\n");
  expand(&text, schema_text_0000_schema, table, shards);
  for (size_t i = 0; i < ARRAY_LEN(migrations); i++) {
    text_puts(&text, "\n");
    expand(&text, migrations[i].text, table, shards);
    text_puts(&text, "\n");
    note_done(&text, &migrations[i], table);
  }
  /* A session without autocommit would take back what the last migration noted, and an upgrade would come again. */
  text_puts(&text, "\nCOMMIT;\nSET SESSION sql_mode = @duebox_sql_mode;\n");
  bool ok = !text.failed;
  if (ok)
    (void)fputs(text.data, out); /* whoever closes the stream finds its error */
  text_free(&text);
  return ok || err_set(err, DB_E_NO_MEMORY, "out of memory");
}

static bool has_check(const char *migration, const char *name) {
  char text[128];
  snprintf(text, sizeof text, "CONSTRAINT `{table}_%.80s` CHECK", name);
  return strstr(migration, text) != NULL;
}

bool schema_has_check(const char *name) {
  for (size_t i = 0; i < ARRAY_LEN(migrations); i++)
    if (has_check(migrations[i].text, name))
      return true;
  return false;
}

/* Which CHECKs the outbox has: those of its CREATE TABLE, and what ALTERs have added since. Those of other tables come
 * with their CREATE TABLE alone. */
bool schema_check_of_outbox(size_t n, char *name, size_t cap) {
  static const char constraint[] = "CONSTRAINT `{table}_", check[] = "` CHECK";
  for (size_t i = 0; i < ARRAY_LEN(migrations); i++)
    for (const char *at = migrations[i].text; (at = strstr(at, constraint)) != NULL;) {
      bool added = at - migrations[i].text >= 4 && strncmp(at - 4, "ADD ", 4) == 0;
      at += sizeof constraint - 1;
      size_t len = strcspn(at, "`");
      if (strncmp(at + len, check, sizeof check - 1) != 0 || (i > 0 && !added) || len >= cap)
        continue;
      snprintf(name, cap, "%.*s", (int)len, at);
      bool again = false;
      for (size_t k = 0; k < i && !again; k++)
        again = has_check(migrations[k].text, name);
      if (!again && n-- == 0)
        return true;
    }
  return false;
}

static bool read_row(const struct db_row *row, struct history *history) {
  uint64_t version, done, complete;
  char checksum[65];
  if (!db_u64(row, 0, UINT32_MAX, &version) || !db_copy(row, 1, checksum, sizeof checksum) ||
      !db_u64(row, 2, UINT32_MAX, &done) || !db_u64(row, 3, 1, &complete))
    return false;
  history->highest = (uint32_t)version;
  for (size_t i = 0; i < ARRAY_LEN(migrations); i++) {
    if (migrations[i].version != version)
      continue;
    history->of[i] = (struct applied){.begun = true, .complete = complete, .statements_done = (uint32_t)done};
    memcpy(history->of[i].checksum, checksum, sizeof checksum);
  }
  return true;
}

static bool read_history(struct db_conn *conn, struct history *history, struct err *err) {
  struct text script = {0};
  struct db_result result;
  *history = (struct history){0};
  text_statement(&script, query_schema_read, conn->config->table, NO_ARGS);
  bool ok = db_script(conn, &script, "reading the schema's version", &result, 1, err);
  text_free(&script);
  if (!ok)
    return false;
  struct db_row row;
  while (ok && db_next(&result, &row, 4))
    ok = read_row(&row, history) || db_unexpected(err, "reading the schema's version");
  db_results_free(&result, 1);
  return ok;
}

/* One statement that gives one row of one field, at most cap - 1 bytes. */
static bool ask(struct db_conn *conn, const char *statement, const struct sql_arg *args, const char *what, char *out,
                size_t cap, struct err *err) {
  struct text script = {0};
  struct db_result result;
  struct db_row row;
  text_statement(&script, statement, conn->config->table, args);
  bool ok = db_script(conn, &script, what, &result, 1, err);
  text_free(&script);
  if (!ok)
    return false;
  ok = (db_next(&result, &row, 1) && db_copy(&row, 0, out, cap)) || db_unexpected(err, what);
  db_results_free(&result, 1);
  return ok;
}

static bool execute(struct db_conn *conn, const char *statement, const struct sql_arg *args, struct err *err) {
  struct text script = {0};
  struct db_result result;
  text_statement(&script, statement, conn->config->table, args);
  bool ok = db_script(conn, &script, WHAT, &result, 1, err);
  text_free(&script);
  if (ok)
    db_results_free(&result, 1);
  return ok;
}

enum { NO_SUCH_TABLE = 1146, COLUMN_EXISTS = 1060, CHECK_EXISTS = 3822 };

static bool read_shards(struct db_conn *conn, uint32_t *shards, struct err *err) {
  char count[24];
  *shards = 0;
  if (ask(conn, query_schema_shards, ARGS(STRING("name", conn->config->table)), "reading the number of shards", count,
          sizeof count, err)) {
    *shards = (uint32_t)strtoul(count, NULL, 10);
    return true;
  }
  return err->code == NO_SUCH_TABLE;
}

bool schema_columns(struct db_conn *conn, struct err *err) {
  const char *texts[1 + ARRAY_LEN(migrations)] = {schema_text_0000_schema};
  for (size_t i = 0; i < ARRAY_LEN(migrations); i++)
    texts[1 + i] = migrations[i].text;
  return schema_columns_check(conn, texts, ARRAY_LEN(texts), err);
}

/* What somebody has made of the tables. complete: all migrations have been applied. */
static bool find_repair(struct db_conn *conn, bool complete, char *repair, size_t cap, struct err *err) {
  struct schema_flaw flaw;
  struct schema_tables tables;
  if (!schema_tables_flaw(conn, &flaw, err) || !schema_tables_find(conn, &tables, err))
    return false;
  const char *lost = complete ? schema_tables_lost(&tables, 0) : NULL;
  bool whole = flaw.kind == SCHEMA_SOUND && (lost || !complete || schema_columns(conn, err));
  if (whole && lost)
    snprintf(repair, cap, "table %s.%s%s is not there", conn->config->name, conn->config->table, lost);
  else if (!whole)
    snprintf(repair, cap, "%s", err->text);
  return whole || flaw.kind != SCHEMA_SOUND || err->code == DB_E_ROW;
}

/* The record of migrations is not there. Where the outbox is, somebody has lost it. */
static bool unrecorded_status(struct db_conn *conn, struct schema_status *out, struct err *err) {
  struct schema_tables tables;
  if (!schema_tables_find(conn, &tables, err))
    return false;
  const char *lost = schema_tables_lost(&tables, 0);
  if (lost && *lost)
    snprintf(out->repair, sizeof out->repair, "table %s.%s%s is not there", conn->config->name, conn->config->table,
             lost);
  return read_shards(conn, &out->shards, err);
}

bool schema_status(struct db_conn *conn, struct schema_status *out, struct err *err) {
  struct history history;
  *out = (struct schema_status){.latest = LATEST};
  if (!read_history(conn, &history, err))
    return err->code == NO_SUCH_TABLE && unrecorded_status(conn, out, err);
  for (size_t i = 0; i < ARRAY_LEN(migrations) && history.of[i].complete; i++)
    out->version = migrations[i].version;
  if (history.highest > LATEST)
    out->version = history.highest;
  return read_shards(conn, &out->shards, err) &&
         find_repair(conn, out->version >= LATEST, out->repair, sizeof out->repair, err);
}

static bool names_are_free(struct db_conn *conn, struct err *err) {
  struct schema_tables tables;
  return schema_tables_find(conn, &tables, err) && schema_tables_free(conn, &tables, err);
}

/* The record of migrations is not there, and perhaps nothing else is missing. */
static bool fail_unrecorded(struct db_conn *conn, struct err *err) {
  const struct database_config *config = conn->config;
  struct schema_tables tables;
  if (!schema_tables_find(conn, &tables, err) || !schema_tables_free(conn, &tables, err))
    return false;
  const char *lost = schema_tables_lost(&tables, 0);
  return err_set(err, DB_E_NOT_MIGRATED, "database %s has no table %s%s; %s", config->name, config->table,
                 lost ? lost : "", db_error_cure(DB_E_NOT_MIGRATED));
}

bool schema_check(struct db_conn *conn, struct err *err) {
  struct history history;
  const struct database_config *config = conn->config;
  if (!read_history(conn, &history, err))
    return err->code == NO_SUCH_TABLE && fail_unrecorded(conn, err);
  if (history.highest > LATEST)
    return err_set(err, DB_E_NEWER, "table %s.%s has schema version %u, this program knows %u; %s", config->name,
                   config->table, history.highest, LATEST, db_error_cure(DB_E_NEWER));
  for (size_t i = 0; i < ARRAY_LEN(migrations); i++)
    if (!history.of[i].complete)
      return names_are_free(conn, err) &&
             err_set(err, DB_E_NOT_MIGRATED, "table %s.%s lacks schema version %u (%s); %s", config->name,
                     config->table, migrations[i].version, migrations[i].name, db_error_cure(DB_E_NOT_MIGRATED));
  struct schema_flaw flaw;
  if (!read_shards(conn, &conn->shards, err) || !schema_tables_flaw(conn, &flaw, err))
    return false;
  if (flaw.kind == SCHEMA_SOUND)
    return true;
  struct err found = *err;
  return err_set(err, DB_E_NOT_MIGRATED, "%s; %s, which gives it back its own", found.text,
                 db_error_cure(DB_E_NOT_MIGRATED));
}

/* The first counted statement of a migration that is taken up again may have been done without being counted. What is
 * not idempotent by itself is an ALTER that adds columns, and rules with them: all of them, or none. MySQL looks at the
 * rules first. */
static bool was_done_before(bool first, const struct err *err) {
  return first && (err->code == COLUMN_EXISTS || err->code == CHECK_EXISTS);
}

/* What puts rows right is done again when the statement after it failed: somebody may have written others meanwhile. So
 * it is counted with that one. */
static bool is_counted(const char *statement) { return strncmp(past_comments(statement), "UPDATE ", 7) != 0; }

/* A rule refused rows: one that this migration gives, or one before it. Whoever is told to put them right must not find
 * the daemons refused meanwhile, where nothing was done yet. */
static void explain_misfits(struct db_conn *conn, const struct migration *migration, uint32_t shards, struct err *err) {
  bool explained = false;
  struct db_patience patience;
  db_patience_begin(&patience, conn); /* all rows are read for that */
  for (size_t i = (size_t)(migration - migrations) + 1; db_error_is_check(err->code) && !explained && i-- > 0;) {
    struct text text = {0};
    expand(&text, migrations[i].text, conn->config->table, shards);
    explained = !text.failed && schema_misfit_explain(conn, text.data, err);
    text_free(&text);
  }
  struct err unknown = {0};
  if (db_patience_end(&patience, explained, &unknown))
    (void)execute(conn, query_schema_forget, ARGS(UNSIGNED("version", migration->version)), &unknown);
}

static bool run_long(struct db_conn *conn, const char *statement, const char *what, struct err *err) {
  struct db_patience patience;
  db_patience_begin(&patience, conn);
  bool ok = db_run(conn, statement, what, err);
  return db_patience_end(&patience, ok, err);
}

/* retold: the tables may have had all of it, for what told so is lost. */
static bool run_statements(struct db_conn *conn, const struct migration *migration, uint32_t shards, uint32_t skip,
                           bool retold, struct err *err) {
  struct text text = {0};
  expand(&text, migration->text, conn->config->table, shards);
  bool ok = !text.failed || err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory");
  char *rest = text.data, *statement;
  bool first = true;
  for (uint32_t n = 1; ok && (statement = next_statement(&rest)); n++) {
    if (n <= skip)
      continue;
    ok = run_long(conn, statement, WHAT, err) || was_done_before(first || retold, err);
    if (!ok)
      explain_misfits(conn, migration, shards, err);
    if (ok && is_counted(statement)) {
      first = false;
      ok = execute(conn, query_schema_step, ARGS(UNSIGNED("done", n), UNSIGNED("version", migration->version)), err);
    }
    if (!ok)
      err_wrap(err, "migration %u (%s), statement %u", migration->version, migration->name, n);
  }
  text_free(&text);
  return ok;
}

static bool apply(struct db_conn *conn, const struct migration *migration, const struct applied *applied,
                  uint32_t shards, bool retold, bool dry_run, FILE *out, struct err *err) {
  char checksum[65];
  checksum_of(migration->text, checksum);
  if (applied->begun && strcmp(applied->checksum, checksum) != 0)
    return err_set(err, DB_E_NEWER,
                   "migration %u (%s) was applied by a program that has another text for it; install the version that "
                   "migrated this database",
                   migration->version, migration->name);
  if (applied->complete)
    return true;
  fprintf(out, "%s %04u %s (%u shards)\n", dry_run ? "would apply" : "applying", migration->version, migration->name,
          shards);
  if (dry_run)
    return true;
  const struct sql_arg version = UNSIGNED("version", migration->version);
  return execute(conn, query_schema_begin, ARGS(version, STRING("name", migration->name), STRING("checksum", checksum)),
                 err) &&
         run_statements(conn, migration, shards, applied->statements_done, retold, err) &&
         execute(conn, query_schema_end, ARGS(version), err);
}

/* The number of shards is in the table's own rules: it is chosen once. */
static bool choose_shards(struct db_conn *conn, uint32_t wanted, uint32_t *shards, struct err *err) {
  if (wanted > SHARD_BOUND)
    return err_set(err, DB_E_NOT_MIGRATED, "%u shards are too many; at most %d are possible", wanted, SHARD_BOUND);
  if (!read_shards(conn, shards, err))
    return false;
  if (*shards == 0)
    *shards = wanted ? wanted : SCHEMA_SHARDS_DEFAULT;
  if (wanted && *shards != wanted)
    return err_set(err, DB_E_NOT_MIGRATED,
                   "table %s has %u shards and keeps them; leave out --shards, or make another table",
                   conn->config->table, *shards);
  return true;
}

/* Whether it makes that table, or changes what it is. */
static bool shapes(const char *statement, const char *table) {
  static const char *const begins[] = {"CREATE TABLE IF NOT EXISTS `", "ALTER TABLE `"};
  const size_t len = strlen(table);
  statement = past_comments(statement);
  for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
    const char *name = statement + strlen(begins[i]);
    if (strncmp(statement, begins[i], strlen(begins[i])) == 0 && strncmp(name, table, len) == 0 && name[len] == '`')
      return true;
  }
  return false;
}

/* What the migration has done to the shape of that table, once more. *made: whether there was anything. */
static bool reshape(struct db_conn *conn, const struct migration *migration, const struct applied *applied,
                    uint32_t shards, const char *table, bool dry_run, bool *made, struct err *err) {
  struct text text = {0};
  expand(&text, migration->text, conn->config->table, shards);
  bool ok = !text.failed || err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory");
  char *rest = text.data, *statement;
  for (uint32_t n = 1; ok && (statement = next_statement(&rest)); n++) {
    if (!shapes(statement, table) || !(applied->complete || n <= applied->statements_done))
      continue;
    *made = true;
    ok = dry_run || run_long(conn, statement, "making a table again", err);
  }
  text_free(&text);
  return ok;
}

/* Tables that migrations made and that somebody has dropped, or left out when he restored the others. They are empty
 * again: the rows of shards, for one, are put back by daemons, who know what that means for leases. */
static bool remake_tables(struct db_conn *conn, const struct history *history, uint32_t shards, bool dry_run,
                          bool *changed, FILE *out, struct err *err) {
  struct schema_tables tables;
  const char *suffix;
  if (!schema_tables_find(conn, &tables, err))
    return false;
  for (size_t n = 0; (suffix = schema_tables_lost(&tables, n)) != NULL; n++) {
    char table[SCHEMA_NAME_ROOM];
    bool made = false, ok = true;
    snprintf(table, sizeof table, "%s%s", conn->config->table, suffix);
    for (size_t i = 0; ok && i < ARRAY_LEN(migrations); i++)
      ok = reshape(conn, &migrations[i], &history->of[i], shards, table, dry_run, &made, err);
    if (!ok)
      return false;
    if (made)
      fprintf(out, "%s table %s, which was lost: it is empty\n", dry_run ? "would make" : "made", table);
    *changed = *changed || made;
  }
  return true;
}

static bool repair(struct db_conn *conn, const struct schema_flaw *flaw, struct err *err) {
  struct text text = {0};
  struct text name = {0};
  text_puts(&name, flaw->table);
  text_expand(&text, flaw->kind == SCHEMA_ENGINE ? schema_repair_engine : schema_repair_collations, conn->config->table,
              ARGS(RAW("name", name)));
  bool ok = (!text.failed && !name.failed) || err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory");
  char *rest = text.data, *statement;
  while (ok && (statement = next_statement(&rest)))
    ok = run_long(conn, statement, "repairing a table", err);
  text_free(&text);
  text_free(&name);
  return ok;
}

/* Not a migration, as it can become necessary at any time. */
static bool repair_tables(struct db_conn *conn, bool dry_run, bool *changed, FILE *out, struct err *err) {
  struct schema_flaw flaw;
  for (int tries = 0; tries <= SCHEMA_TABLES + 1; tries++) { /* all collations are one */
    if (!schema_tables_flaw(conn, &flaw, err))
      return false;
    if (flaw.kind == SCHEMA_SOUND)
      return true;
    *changed = true;
    fprintf(out, "%s %s: %s\n", dry_run ? "would repair" : "repairing",
            flaw.kind == SCHEMA_ENGINE ? "the engine of a table" : "the collations of ids and keys", err->text);
    if (dry_run || !repair(conn, &flaw, err))
      return dry_run;
  }
  return false; /* the server keeps them as they are */
}

/* Tables are made with literals that this character set lacks: the statement would break off in the middle. */
static bool charset_fits(struct db_conn *conn, struct err *err) {
  char charset[65];
  uint32_t shards;
  if (!read_shards(conn, &shards, err))
    return false;
  return shards > 0 || (ask(conn, query_schema_charset, NO_ARGS, WHAT, charset, sizeof charset, err) &&
                        (strcmp(charset, "swe7") != 0 ||
                         err_set(err, DB_E_NOT_MIGRATED,
                                 "the default character set of database %s is swe7, which lacks characters of ASCII; "
                                 "nothing was made. ALTER DATABASE `%s` CHARACTER SET utf8mb4, and migrate again",
                                 conn->config->name, conn->config->name)));
}

static bool migrate_locked(struct db_conn *conn, const struct migrate_options *options, FILE *out, struct err *err) {
  struct history history = {0};
  uint32_t shards = 0;
  if (!names_are_free(conn, err) || !charset_fits(conn, err))
    return false;
  if (!options->dry_run && !execute(conn, schema_text_0000_schema, NO_ARGS, err))
    return false;
  if (!choose_shards(conn, options->shards, &shards, err))
    return false;
  if (!read_history(conn, &history, err) && !(options->dry_run && err->code == NO_SUCH_TABLE))
    return false;
  if (history.highest > LATEST)
    return schema_check(conn, err);
  if (history.of[0].complete && !schema_tables_kept(conn, history.of[ARRAY_LEN(migrations) - 1].complete, err))
    return false;
  bool changed = false, dry_run = options->dry_run, retold = !history.of[0].begun;
  if (!remake_tables(conn, &history, shards, dry_run, &changed, out, err))
    return false;
  for (size_t i = 0; i < ARRAY_LEN(migrations); i++) {
    changed = changed || !history.of[i].complete;
    if (!apply(conn, &migrations[i], &history.of[i], shards, retold, dry_run, out, err))
      return false;
  }
  if (!repair_tables(conn, dry_run, &changed, out, err) || !((dry_run && changed) || schema_columns(conn, err)))
    return false;
  if (!changed)
    fprintf(out, "table %s is up to date (version %u, %u shards)\n", conn->config->table, LATEST, shards);
  return true;
}

/* Whoever may connect to the server may take that lock. */
static bool locked_by_another(struct db_conn *conn, struct err *err) {
  char holder[24];
  return ask(conn, query_schema_lock_holder, ARGS(STRING("name", conn->config->table)), WHAT, holder, sizeof holder,
             err) &&
         err_set(err, 0,
                 WHAT ": connection %s of the server has held the lock of migrations for a minute: wait where it is "
                      "another migration, which SHOW PROCESSLIST tells; otherwise end it: KILL %s",
                 holder, holder);
}

enum { LOCK_WAIT_MS = 60000 }; /* schema_lock.sql */

bool schema_migrate(struct db_conn *conn, const struct migrate_options *options, FILE *out, struct err *err) {
  char got[8];
  const int64_t limit_ms = conn->limit_ms;
  conn->limit_ms += LOCK_WAIT_MS;
  bool asked = ask(conn, query_schema_lock, ARGS(STRING("name", conn->config->table)), WHAT, got, sizeof got, err);
  conn->limit_ms = limit_ms;
  if (!asked)
    return false;
  if (strcmp(got, "1") != 0)
    return locked_by_another(conn, err);
  return migrate_locked(conn, options, out, err) && db_run(conn, "DO RELEASE_ALL_LOCKS()", WHAT, err);
}
