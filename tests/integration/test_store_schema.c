/* SPDX-License-Identifier: MIT
 *
 * Migrations on a real server: from nothing, twice at once, after breaking off, and what is refused.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"
#include "outbox/schema.h"

/* What a migration said, and how it ended. */
struct run {
  const struct database_config *config;
  struct migrate_options options;
  bool ok;
  char *said; /* own allocation */
  struct err err;
};

static void *migrate_now(void *arg) {
  struct run *run = arg;
  struct db_conn *conn;
  size_t len;
  FILE *out = open_memstream(&run->said, &len);
  run->ok = db_open(run->config, DB_MIGRATE, "test", &conn, &run->err);
  if (run->ok) {
    run->ok = schema_migrate(conn, &run->options, out, &run->err);
    db_close(&conn);
  }
  fclose(out);
  return NULL;
}

static struct run migrate_with(const struct fixture *f, struct migrate_options options) {
  struct run run = {.config = &f->config, .options = options};
  migrate_now(&run);
  return run;
}

static void assert_migrated(struct fixture *f, struct run *run) {
  if (!run->ok)
    fail_msg("%s", run->err.text);
  free(run->said);
}

static void assert_refused(struct run *run, const char *why) {
  assert_false(run->ok);
  if (!strstr(run->err.text, why))
    fail_msg("not %s: %s", why, run->err.text);
  free(run->said);
}

static struct schema_status status_of(struct fixture *f) {
  struct schema_status status;
  struct db_conn *conn;
  if (!db_open(&f->config, DB_MIGRATE, "test", &conn, &f->err) || !schema_status(conn, &status, &f->err))
    fail_msg("%s", f->err.text);
  db_close(&conn);
  return status;
}

static void from_nothing_and_again(void **state) {
  struct fixture *f = *state;
  assert_int_equal(status_of(f).version, 0);
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_true(run.ok);
  assert_non_null(strstr(run.said, "0001 outbox (8 shards)\n"));
  assert_non_null(strstr(run.said, "0003 operations"));
  free(run.said);
  struct schema_status status = status_of(f);
  assert_int_equal(status.version, status.latest);
  assert_int_equal(status.shards, 8);
  run = migrate_with(f, (struct migrate_options){0});
  assert_true(run.ok);
  assert_non_null(strstr(run.said, "up to date"));
  assert_null(strstr(run.said, "applying"));
  free(run.said);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_schema WHERE applied_at IS NOT NULL"), status.latest);
}

static void two_at_once(void **state) {
  struct fixture *f = *state;
  enum { N = 4 };
  struct run runs[N] = {0};
  pthread_t threads[N];
  for (int i = 0; i < N; i++) {
    runs[i].config = &f->config;
    assert_int_equal(pthread_create(&threads[i], NULL, migrate_now, &runs[i]), 0);
  }
  int applied = 0;
  for (int i = 0; i < N; i++) {
    pthread_join(threads[i], NULL);
    applied += runs[i].said && strstr(runs[i].said, "applying 0001") != NULL;
    assert_migrated(f, &runs[i]);
  }
  assert_int_equal(applied, 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_shards"), 9);
}

static void one_that_broke_off_goes_on(void **state) {
  struct fixture *f = *state;
  static const char *const where[] = {"CREATE TABLE IF NOT EXISTS `outbox_attempts`",
                                      "SET statements_done = 2 WHERE version = 2",
                                      "SET applied_at = UTC_TIMESTAMP(6) WHERE version = 2"};
  for (int i = 0; i < 3; i++) {
    fault_arm(f, FAULT_ERROR, where[i], 1114, 1);
    struct run run = migrate_with(f, (struct migrate_options){.shards = 5});
    assert_refused(&run, i < 2 ? "migration 2 (history), statement 2" : "1114");
    assert_int_equal(status_of(f).version, 1);
  }
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_true(run.ok);
  assert_null(strstr(run.said, "0001"));
  free(run.said);
  assert_int_equal(status_of(f).shards, 5);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 0);
}

/* Rows that its rules refuse, written by an application beside it, cost no more than another `duebox migrate`: what
 * puts them right is done again. So is what was done and not counted. */
static void one_that_met_a_row_puts_that_right_too(void **state) {
  struct fixture *f = *state;
  static const char *const where[] = {"ADD CONSTRAINT `outbox_counters`", "SET statements_done = 7 WHERE version = 5"};
  for (int i = 0; i < 2; i++) {
    fault_arm(f, FAULT_ERROR, where[i], 4025, 1);
    struct run run = migrate_with(f, (struct migrate_options){0});
    assert_refused(&run, "migration 5 (guards), statement 7");
    assert_int_equal(status_of(f).version, 4);
    if (i == 0)
      sql(f, "INSERT INTO outbox (route, payload, due_at, delay_ms) VALUES ('r', 'x', DEFAULT, 1800000)");
  }
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_migrated(f, &run);
  assert_int_equal(ask(f, "SELECT TIMESTAMPDIFF(MINUTE, created_at, due_at) FROM outbox"), 30);
}

static void a_dry_run_changes_nothing(void **state) {
  struct fixture *f = *state;
  struct run run = migrate_with(f, (struct migrate_options){.dry_run = true, .shards = 3});
  assert_true(run.ok);
  assert_non_null(strstr(run.said, "would apply 0001 outbox (3 shards)\n"));
  free(run.said);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"), 0);
}

static void what_cannot_be_is_refused(void **state) {
  struct fixture *f = *state;
  struct run run = migrate_with(f, (struct migrate_options){.shards = 64});
  assert_refused(&run, "at most 63");
  run = migrate_with(f, (struct migrate_options){.shards = 3});
  assert_migrated(f, &run);
  assert_int_equal(status_of(f).shards, 3);
  run = migrate_with(f, (struct migrate_options){.shards = 4});
  assert_refused(&run, "has 3 shards");
  sql(f, "UPDATE outbox_schema SET checksum = REPEAT('0', 64) WHERE version = 2");
  run = migrate_with(f, (struct migrate_options){0});
  assert_refused(&run, "another text");
  sql(f, "INSERT INTO outbox_schema (version, name, checksum, applied_at) VALUES (9999, 'later', '', '2030-01-01')");
  run = migrate_with(f, (struct migrate_options){0});
  assert_refused(&run, "version 9999");
}

/* CREATE TABLE IF NOT EXISTS would take it for ours. */
static void another_programs_table_is_left_alone(void **state) {
  struct fixture *f = *state;
  static const char *const names[] = {"outbox", "outbox_history"};
  for (int i = 0; i < 2; i++) {
    sql(f, "CREATE TABLE %s (id CHAR(36) PRIMARY KEY, aggregatetype VARCHAR(255), payload JSON)", names[i]);
    for (int dry_run = 0; dry_run < 2; dry_run++) {
      struct run run = migrate_with(f, (struct migrate_options){.dry_run = dry_run});
      char why[100];
      snprintf(why, sizeof why, "has a table %s of another program", names[i]);
      assert_null(strstr(run.err.text, "DROP"));
      assert_non_null(strstr(run.err.text, "database.table"));
      assert_refused(&run, why);
    }
    struct db_conn *conn;
    assert_false(db_open(&f->config, DB_OPERATOR, "test", &conn, &f->err));
    assert_non_null(strstr(f->err.text, "of another program"));
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"), 1);
    sql(f, "DROP TABLE %s", names[i]);
  }
}

/* A daemon that connects migrates nothing, whatever stops it. */
static void one_that_connects_only_reads_the_schema(void **state) {
  struct fixture *f = *state;
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_migrated(f, &run);
  struct db_conn *conn;
  fault_arm(f, FAULT_ERROR, "REGEXP_SUBSTR", 1317, 1);
  assert_false(db_open(&f->config, DB_OPERATOR, "test", &conn, &f->err));
  assert_non_null(strstr(f->err.text, "reading the number of shards: "));
}

/* Runs the statement that an error's text gives. */
static void do_as_told(struct fixture *f, const char *text) {
  const char *drop = strstr(text, "DROP TABLE");
  assert_non_null(drop);
  const char *more = strstr(drop, ", and run");
  sql(f, "%.*s", (int)(more ? (size_t)(more - drop) : strlen(drop)), drop);
}

/* Migrations of a version that did not look before have made their tables beside one of another program. */
static void tables_beside_another_programs_can_be_removed(void **state) {
  struct fixture *f = *state;
  for (int renamed = 0; renamed < 2; renamed++) {
    fault_arm(f, FAULT_ERROR, "MODIFY route", 1054, 1);
    struct run run = migrate_with(f, (struct migrate_options){0});
    assert_refused(&run, "migrate --show-sql");
    assert_null(strstr(run.err.text, "run `duebox migrate`"));
    sql(f, "DROP TABLE outbox");
    if (!renamed)
      sql(f, "CREATE TABLE outbox (id CHAR(36) PRIMARY KEY, payload JSON)");
    run = migrate_with(f, (struct migrate_options){0});
    assert_refused(&run, renamed ? "has no table outbox, though" : "of another program");
    do_as_told(f, run.err.text);
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"),
                     !renamed);
    if (!renamed)
      sql(f, "DROP TABLE outbox");
    run = migrate_with(f, (struct migrate_options){0});
    assert_migrated(f, &run);
    sql(f, "DROP DATABASE %s", f->database);
    sql(f, "CREATE DATABASE %s", f->database);
    sql(f, "USE %s", f->database);
  }
}

static void an_outbox_that_is_gone_is_not_up_to_date(void **state) {
  struct fixture *f = *state;
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_migrated(f, &run);
  sql(f, "DROP TABLE outbox");
  run = migrate_with(f, (struct migrate_options){0});
  assert_refused(&run, "restore it");
  assert_null(strstr(run.err.text, "DROP"));
}

/* The columns of the database for which `which` is true, and all keys and constraints; how many columns comes last.
 * MySQL writes the constants of a constraint, and of a default, anew with each ALTER, in the character set that its
 * column has by then: it has no say in what is compared, for they are ASCII. */
static void describe(struct fixture *f, const char *which, char *out, size_t cap) {
  sql(f, "SET SESSION group_concat_max_len = 1000000");
  snprintf(out, cap, "%s",
           ask_text(f,
                    "SELECT CONCAT_WS(' ', SHA2(GROUP_CONCAT(table_name, column_name, ordinal_position, "
                    "REGEXP_REPLACE(COALESCE(column_default, ''), '_(ascii|latin1|utf8mb4)', ''), is_nullable, "
                    "column_type, COALESCE(collation_name, ''), "
                    "COALESCE(generation_expression, '') ORDER BY table_name, ordinal_position), 256), (SELECT "
                    "SHA2(GROUP_CONCAT(table_name, index_name, seq_in_index, column_name ORDER BY table_name, "
                    "index_name, seq_in_index), 256) FROM information_schema.statistics WHERE table_schema = "
                    "DATABASE()), (SELECT SHA2(GROUP_CONCAT(constraint_name, REGEXP_REPLACE(check_clause, "
                    "'_(ascii|latin1|utf8mb4)', '') ORDER BY constraint_name), 256) FROM "
                    "information_schema.check_constraints WHERE constraint_schema = DATABASE()), COUNT(*)) "
                    "FROM information_schema.columns WHERE table_schema = DATABASE() AND %s",
                    which));
}

/* By another collation ABC-1 is abc-1: a result would end another task. */
static void ids_that_no_longer_compare_byte_by_byte_are_repaired(void **state) {
  struct fixture *f = *state;
  static const char *const tables[] = {"outbox",        "outbox_history", "outbox_attempts", "outbox_heads",
                                       "outbox_routes", "outbox_shards",  "outbox_instances"};
  static const char *const to[] = {"utf8mb4 COLLATE utf8mb4_general_ci", "latin1"};
  static const char ids[] = "column_name IN ('message_id', 'route', 'task_key', 'order_key', 'dedup_key', "
                            "'target_host', 'move_to_host', 'claimed_by', 'owner', 'id')";
  char before[512], after[512];
  struct db_conn *conn;
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_migrated(f, &run);
  describe(f, ids, before, sizeof before);
  sql(f, "INSERT INTO outbox (route, payload, message_id, order_key) VALUES ('r', '', 'abc-1', 'k')");
  sql(f, "ALTER TABLE outbox CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
  assert_true(db_open(&f->config, DB_OPERATOR, "test", &conn, &f->err)); /* byte by byte all the same */
  db_close(&conn);
  for (size_t i = 0; i < 2 * sizeof tables / sizeof tables[0]; i++) {
    const char *table = tables[i / 2];
    sql(f, "ALTER TABLE %s CONVERT TO CHARACTER SET %s", table, to[i % 2]);
    assert_false(db_open(&f->config, DB_OPERATOR, "test", &conn, &f->err));
    assert_non_null(strstr(f->err.text, table));
    assert_non_null(strstr(f->err.text, "run `duebox migrate`"));
    run = migrate_with(f, (struct migrate_options){.dry_run = true});
    assert_non_null(strstr(run.said, "would repair"));
    assert_migrated(f, &run);
    run = migrate_with(f, (struct migrate_options){0});
    assert_null(strstr(run.said, "up to date"));
    assert_migrated(f, &run);
    describe(f, ids, after, sizeof after);
    assert_string_equal(after, before);
    assert_true(db_open(&f->config, DB_OPERATOR, "test", &conn, &f->err));
    db_close(&conn);
  }
  sql(f, "INSERT INTO outbox (route, payload, message_id, order_key) VALUES ('r', '', 'ABC-1', 'K')");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE message_id = 'abc-1'"), 1);
}

/* In a table without transactions, what is not committed is there to be sent, and what settling undoes stays. */
static void tables_without_transactions_are_converted_back(void **state) {
  struct fixture *f = *state;
  static const char *const tables[] = {"outbox_shards", "outbox_audit", "outbox_instances"};
  static const char other[] = "FROM information_schema.tables WHERE table_schema = DATABASE() AND engine <> 'InnoDB'";
  enum { TABLES = sizeof tables / sizeof tables[0] };
  struct db_conn *conn;
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_migrated(f, &run);
  for (size_t i = 0; i < TABLES; i++) {
    sql(f, "ALTER TABLE %s ENGINE = MyISAM", tables[i]);
    assert_false(db_open(&f->config, DB_OPERATOR, "test", &conn, &f->err));
    assert_non_null(strstr(f->err.text, "the engine MyISAM"));
    assert_non_null(strstr(f->err.text, "run `duebox migrate`"));
  }
  run = migrate_with(f, (struct migrate_options){.dry_run = true});
  assert_non_null(strstr(run.said, "would repair"));
  assert_migrated(f, &run);
  assert_int_equal(ask(f, "SELECT COUNT(*) %s", other), TABLES);
  run = migrate_with(f, (struct migrate_options){0});
  assert_null(strstr(run.said, "up to date"));
  assert_migrated(f, &run);
  assert_int_equal(ask(f, "SELECT COUNT(*) %s", other), 0);
  assert_true(db_open(&f->config, DB_OPERATOR, "test", &conn, &f->err));
  db_close(&conn);
}

static void several_tables_live_in_one_database(void **state) {
  struct fixture *f = *state;
  f->config.table = "jobs";
  struct run run = migrate_with(f, (struct migrate_options){.shards = 2});
  assert_migrated(f, &run);
  f->config.table = "outbox";
  run = migrate_with(f, (struct migrate_options){.shards = 3});
  assert_migrated(f, &run);
  sql(f, "INSERT INTO jobs (route, payload) VALUES ('r', '')");
  assert_int_equal(ask(f, "SELECT shard < 2 FROM jobs"), 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_shards"), 4);
}

static void what_is_shown_is_what_is_done(void **state) {
  struct fixture *f = *state;
  char *shown, by_hand[512], migrated[512];
  size_t len;
  FILE *out = open_memstream(&shown, &len);
  assert_true(schema_print("outbox", 6, out, &f->err));
  fclose(out);
  assert_null(strstr(shown, "{table}"));
  shown[strlen(shown) - 2] = '\0'; /* the last semicolon: no empty statement after it */
  sql(f, "%s", shown);
  free(shown);
  struct run run = migrate_with(f, (struct migrate_options){0});
  assert_true(run.ok);
  assert_null(strstr(run.said, "applying"));
  free(run.said);
  describe(f, "TRUE", by_hand, sizeof by_hand);
  sql(f, "DROP DATABASE %s", f->database);
  sql(f, "CREATE DATABASE %s CHARACTER SET utf16", f->database);
  sql(f, "USE %s", f->database);
  run = migrate_with(f, (struct migrate_options){.shards = 6});
  assert_migrated(f, &run);
  describe(f, "TRUE", migrated, sizeof migrated);
  assert_string_equal(by_hand, migrated);
  assert_true(strtol(strrchr(migrated, ' '), NULL, 10) > 100);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup_empty, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(from_nothing_and_again),
      TEST(two_at_once),
      TEST(one_that_broke_off_goes_on),
      TEST(a_dry_run_changes_nothing),
      TEST(what_cannot_be_is_refused),
      TEST(one_that_connects_only_reads_the_schema),
      TEST(several_tables_live_in_one_database),
      TEST(what_is_shown_is_what_is_done),
      TEST(one_that_met_a_row_puts_that_right_too),
      TEST(another_programs_table_is_left_alone),
      TEST(tables_beside_another_programs_can_be_removed),
      TEST(an_outbox_that_is_gone_is_not_up_to_date),
      TEST(ids_that_no_longer_compare_byte_by_byte_are_repaired),
      TEST(tables_without_transactions_are_converted_back),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
