/* SPDX-License-Identifier: MIT
 *
 * What each database error means: the facts of the servers' manuals and of our measurements, one row each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/base/attr.h"
#include "outbox/db_error.h"

static void each_error_has_its_class(void **state) {
  static const struct {
    int code;
    enum db_class cls;
    enum store_status status;
  } rows[] = {
      {1213, DB_CONFLICT, STORE_BUSY},   {1205, DB_CONFLICT, STORE_BUSY},   {1020, DB_CONFLICT, STORE_BUSY},
      {1317, DB_CONFLICT, STORE_BUSY},   {3101, DB_CONFLICT, STORE_BUSY},   {2006, DB_LOST, STORE_DOWN},
      {2013, DB_LOST, STORE_DOWN},       {2055, DB_LOST, STORE_DOWN},       {1053, DB_LOST, STORE_DOWN},
      {1927, DB_LOST, STORE_DOWN},       {4031, DB_LOST, STORE_DOWN},       {2002, DB_DOWN, STORE_DOWN},
      {2003, DB_DOWN, STORE_DOWN},       {1040, DB_DOWN, STORE_DOWN},       {1203, DB_DOWN, STORE_DOWN},
      {1226, DB_DOWN, STORE_DOWN},       {1047, DB_DOWN, STORE_DOWN},       {1290, DB_READ_ONLY, STORE_DOWN},
      {1836, DB_READ_ONLY, STORE_DOWN},  {1792, DB_READ_ONLY, STORE_DOWN},  {3100, DB_READ_ONLY, STORE_DOWN},
      {1114, DB_FULL, STORE_DOWN},       {1021, DB_FULL, STORE_DOWN},       {1030, DB_FULL, STORE_DOWN},
      {1, DB_FULL, STORE_DOWN},          {3, DB_FULL, STORE_DOWN},          {5, DB_FULL, STORE_DOWN},
      {23, DB_FULL, STORE_DOWN},         {1016, DB_FULL, STORE_DOWN},       {1180, DB_FULL, STORE_DOWN},
      {1045, DB_REFUSED, STORE_REFUSED}, {1142, DB_REFUSED, STORE_REFUSED}, {1146, DB_REFUSED, STORE_REFUSED},
      {1054, DB_REFUSED, STORE_REFUSED}, {1153, DB_REFUSED, STORE_REFUSED}, {2020, DB_REFUSED, STORE_REFUSED},
      {4025, DB_REFUSED, STORE_REFUSED}, {0, DB_REFUSED, STORE_REFUSED},    {-1, DB_REFUSED, STORE_REFUSED},
      {3032, DB_DOWN, STORE_DOWN},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    assert_int_equal(db_error_class(rows[i].code), rows[i].cls);
    assert_int_equal(db_class_status(rows[i].cls), rows[i].status);
  }
}

static void what_an_operator_must_do_is_said(void **state) {
  static const struct {
    int code;
    const char *word;
  } rows[] = {{1045, "password"},       {4151, "UNLOCK"},
              {3118, "UNLOCK"},         {1142, "grant"},
              {1146, "duebox migrate"}, {1290, "primary"},
              {1114, "disks"},          {1040, "max_connections"},
              {2026, "tls_ca"},         {1153, "max_allowed_packet"},
              {1105, "killed"},         {23, "open files"},
              {1044, "duebox migrate"}, {1142, "grants.sql"},
              {3032, "offline_mode"}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    assert_non_null(strstr(db_error_cure(rows[i].code), rows[i].word));
  assert_string_equal(db_error_cure(4025), "");
}

/* A missing right may be given while we run, and count in a new session only: the others show by themselves. */
static void a_missing_right_is_known_from_a_missing_table(void **state) {
  static const int rights[] = {1044, 1142, 1143, 1227, 1370}, others[] = {1049, 1054, 1146, 1932};
  for (size_t i = 0; i < ARRAY_LEN(rights); i++)
    assert_true(db_error_is_right(rights[i]) && db_error_is_denied(rights[i]));
  for (size_t i = 0; i < ARRAY_LEN(others); i++)
    assert_true(!db_error_is_right(others[i]) && db_error_is_denied(others[i]));
  assert_false(db_error_is_right(1205) || db_error_is_right(4025) || db_error_is_denied(1205));
}

static void our_own_errors_all_have_a_cure(void **state) {
  for (int code = DB_E_FIRST; code < DB_E_END; code++)
    assert_true(*db_error_cure(code));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_error_has_its_class),
      cmocka_unit_test(what_an_operator_must_do_is_said),
      cmocka_unit_test(a_missing_right_is_known_from_a_missing_table),
      cmocka_unit_test(our_own_errors_all_have_a_cure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
