/* SPDX-License-Identifier: MIT
 *
 * The store double keeps the contract of core/store.h: the cases follow tests/integration/test_store*.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/attr.h"
#include "store_double_fixture.h"

enum { CASES_MAX = 200, SEEDS = 40 };

static void a_storm_leaves_nothing_locked_and_is_a_run(void **state) {
  assert_int_equal(store_double_storm(1, SEEDS), 0);
}

/* All cases, or those whose names match the pattern in argv[1]. */
int main(int argc, char **argv) {
  static const struct store_case *const groups[] = {read_cases, claim_cases, settle_cases, result_cases};
  static struct CMUnitTest tests[CASES_MAX];
  size_t count = 0;
  for (size_t i = 0; i < ARRAY_LEN(groups); i++)
    for (const struct store_case *it = groups[i]; it->name && count + 1 < CASES_MAX; it++)
      tests[count++] = (struct CMUnitTest){.name = it->name, .test_func = run_case, .initial_state = (void *)it};
  tests[count++] = (struct CMUnitTest)cmocka_unit_test(a_storm_leaves_nothing_locked_and_is_a_run);
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return _cmocka_run_group_tests("store double", tests, count, NULL, NULL);
}
