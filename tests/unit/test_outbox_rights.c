/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_outbox_rights.c - the rights that the daemon is asked for are those that its statements need.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "outbox/embedded/query.h"
#include "outbox/rights.h"

static unsigned needed(const struct rights *rights, const char *suffix) {
  for (size_t i = 0; i < rights->count; i++)
    if (strcmp(rights->tables[i].suffix, suffix) == 0)
      return rights->tables[i].need;
  return 0;
}

static void a_statement_says_what_it_needs(void **state) {
  static const struct {
    const char *statement, *suffix;
    unsigned need;
  } rows[] = {
      {"SELECT 1 FROM `{table}` o", "", RIGHT_SELECT},
      {"-- UPDATE `{table}_x`\nSELECT 1 FROM `{table}_y`", "_x", 0},
      {"DELETE FROM `{table}_heads` WHERE 1", "_heads", RIGHT_DELETE | RIGHT_SELECT},
      {"DELETE h FROM `{table}_heads` h LEFT JOIN `{table}` o ON 1", "_heads", RIGHT_DELETE | RIGHT_SELECT},
      {"DELETE h FROM `{table}_heads` h LEFT JOIN `{table}` o ON 1", "", RIGHT_SELECT},
      {"UPDATE `{table}` o JOIN `{table}_shards` s SET o.x = 1", "", RIGHT_UPDATE | RIGHT_SELECT},
      {"UPDATE `{table}` o JOIN `{table}_shards` s SET o.x = 1", "_shards", RIGHT_SELECT},
      {"INSERT INTO `{table}_heads` (a) SELECT 1 FROM `{table}` FOR UPDATE", "_heads", RIGHT_INSERT},
      {"INSERT INTO `{table}_heads` (a) SELECT b FROM `{table}` ON DUPLICATE KEY UPDATE a = 1", "_heads",
       RIGHT_INSERT | RIGHT_UPDATE},
      {"INSERT INTO `{table}_heads` (a) SELECT b FROM `{table}` ON DUPLICATE KEY UPDATE a = 1", "", RIGHT_SELECT},
      {"-- x\nALTER TABLE `{table}` /*M! NOWAIT */ AUTO_INCREMENT = 1", "", RIGHT_ALTER},
      {"INSERT IGNORE INTO `{table}_routes` VALUES (1); UPDATE `{table}` SET a = 1", "_routes", RIGHT_INSERT},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct rights rights = {0};
    assert_true(rights_add(&rights, rows[i].statement));
    if (needed(&rights, rows[i].suffix) != rows[i].need)
      fail_msg("\"%s\" needs %u of \"%s\"", rows[i].statement, needed(&rights, rows[i].suffix), rows[i].suffix);
  }
}

/* One right that was forgotten on this table once stopped the settling of every route. */
static void the_catalogue_needs_what_it_uses(void **state) {
  enum { ALL = RIGHT_SELECT | RIGHT_INSERT | RIGHT_UPDATE | RIGHT_DELETE };
  struct rights rights;
  assert_true(rights_of(query_all, &rights));
  assert_int_equal(needed(&rights, "_heads"), ALL);
  assert_int_equal(needed(&rights, "_schema"), RIGHT_SELECT);
  assert_int_equal(needed(&rights, "") & RIGHT_ALTER, RIGHT_ALTER);
  assert_int_equal(needed(&rights, "_attempts") & (RIGHT_ALTER | RIGHT_CREATE | RIGHT_DROP),
                   RIGHT_ALTER | RIGHT_CREATE | RIGHT_DROP);
  assert_int_equal(needed(&rights, "") & (RIGHT_SELECT | RIGHT_UPDATE | RIGHT_DELETE),
                   RIGHT_SELECT | RIGHT_UPDATE | RIGHT_DELETE);
  assert_true(needed(&rights, "_history") & RIGHT_INSERT);
  assert_true(needed(&rights, "_instances") & RIGHT_DELETE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_statement_says_what_it_needs),
      cmocka_unit_test(the_catalogue_needs_what_it_uses),
  };
  return cmocka_run_group_tests_name("outbox rights", tests, NULL, NULL);
}
