/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/hash.h"

/* From the test suite of FNV (Noll), whose texts have their NUL too. */
static void it_is_fnv_1a(void **state) {
  (void)state;
  assert_true(hash_text(HASH_EMPTY, "") == UINT64_C(0xaf63bd4c8601b7df));
  assert_true(hash_text(HASH_EMPTY, "a") == UINT64_C(0x089be207b544f1e4));
  assert_true(hash_text(HASH_EMPTY, "foobar") == UINT64_C(0x34531ca7168b8f38));
}

static void texts_are_kept_apart(void **state) {
  (void)state;
  assert_true(hash_text(hash_text(HASH_EMPTY, "ab"), "c") != hash_text(hash_text(HASH_EMPTY, "a"), "bc"));
  assert_true(hash_text(hash_text(HASH_EMPTY, ""), "a") != hash_text(HASH_EMPTY, "a"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_fnv_1a),
      cmocka_unit_test(texts_are_kept_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
