/* SPDX-License-Identifier: MIT
 *
 * Lists of processors, as in engine.cpus.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/realtime.h"

static void lists_are_read(void **state) {
  static const struct {
    const char *text;
    unsigned mask;
  } rows[] = {{"0", 0x1}, {"3", 0x8}, {"0-1", 0x3}, {"2-2", 0x4}, {"0,2", 0x5}, {"0-1,4-5,7", 0xb3}, {"1,0-2", 0x7}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cpu_set_t set;
    assert_true(cpus_parse(rows[i].text, &set));
    for (size_t cpu = 0; cpu < 64; cpu++)
      assert_int_equal(CPU_ISSET(cpu, &set) != 0, cpu < 8 && (rows[i].mask >> cpu & 1));
  }
  cpu_set_t last;
  assert_true(cpus_parse("1023", &last));
  assert_true(CPU_ISSET(CPU_SETSIZE - 1, &last));
}

static void what_is_no_list_is_refused(void **state) {
  static const char *const texts[] = {"",     "-",    "0-",  "-1",  "1-0",  "0,",     ",0",
                                      "a",    "0 1",  "0-x", "0x1", "1024", "0-1024", "99999999999999999999",
                                      "0--1", "0-1-2"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    cpu_set_t set;
    assert_false(cpus_parse(texts[i], &set));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_read), cmocka_unit_test(what_is_no_list_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
