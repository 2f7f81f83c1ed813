/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_outbox_table_checks.c - the CHECKs of a table, as both servers print it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "outbox/table_checks.h"

struct heard {
  char text[400];
};

static void hear(void *ctx, const char *name, bool of_column) {
  struct heard *heard = ctx;
  size_t len = strlen(heard->text);
  snprintf(heard->text + len, sizeof heard->text - len, "%s%s%s", len ? ", " : "", of_column ? "column " : "", name);
}

static void expect(const char *create, const char *expected) {
  struct heard heard = {""};
  table_checks(create, hear, &heard);
  assert_string_equal(heard.text, expected);
}

static void test_both_servers(void **state) {
  expect("CREATE TABLE `outbox` (\n"
         "  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,\n"
         "  `headers` text CHARACTER SET utf8mb4 NOT NULL DEFAULT '{}' CHECK (json_valid(`headers`)),\n"
         "  `due_at` datetime(6) DEFAULT (utc_timestamp(6) + interval `delay_ms` * 1000 microsecond),\n"
         "  PRIMARY KEY (`id`),\n"
         "  KEY `check` (`headers`(10)),\n"
         "  CONSTRAINT `outbox_priority` CHECK (`priority` between 1 and 9),\n"
         "  CONSTRAINT `my``own` CHECK (`task_key` <> 'CHECK (')\n"
         ") ENGINE=InnoDB COMMENT='CHECK (1)'\n PARTITION BY RANGE (`id`)\n(PARTITION `p` VALUES LESS THAN (1))",
         "column headers, outbox_priority, my`own");
  expect("CREATE TABLE `outbox` (\n  `id` bigint unsigned NOT NULL,\n"
         "  CONSTRAINT `of_task` FOREIGN KEY (`id`) REFERENCES `a` (`id`),\n"
         "  CONSTRAINT `outbox_chk_1` CHECK ((`id` > 1)) /*!80016 NOT ENFORCED */,\n"
         "  CONSTRAINT `two` CHECK ((`id` in (1,2)))\n) ENGINE=InnoDB",
         "outbox_chk_1, two");
}

/* Comments, defaults and names say what they like. */
static void test_texts_and_names(void **state) {
  expect("CREATE TABLE t (a int COMMENT 'it''s, \\'x\\' CHECK (1', `CHECK` int DEFAULT (1), `constraint` int,"
         " `a,b(` varchar(9) DEFAULT ',' CHECK (`a,b(` <> ')'))",
         "column a,b(");
  expect("CREATE TABLE t (a int, CONSTRAINT mine CHECK (a > 0), check_it int)", "mine");
  expect("CREATE TABLE \"t\" (\"a\" int, CONSTRAINT \"m\"\"y\" CHECK (\"a\" > 0))", "m\"y");
  expect("", "");
  expect("CREATE TABLE `t", "");
  expect(") CHECK", "");
  expect("CREATE TABLE t (a text DEFAULT 'no end CHECK (", "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_servers), cmocka_unit_test(test_texts_and_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
