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

/* From the reference implementation: key 00 01 .. 0f, data 00 01 .. of so many bytes. */
static void it_is_siphash_2_4(void **state) {
  (void)state;
  static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
  static const struct {
    size_t len;
    uint64_t hash;
  } known[] = {{0, UINT64_C(0x726fdb47dd0e0e31)},
               {1, UINT64_C(0x74f839c593dc67fd)},
               {7, UINT64_C(0xab0200f58b01d137)},
               {8, UINT64_C(0x93f5f5799a932462)},
               {15, UINT64_C(0xa129ca6149be45e5)}};
  unsigned char data[64];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (unsigned char)i;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    assert_true(hash_sip(key, data, known[i].len) == known[i].hash);
}

static void keyed_hashes_are_of_their_text(void **state) {
  (void)state;
  assert_true(hash_keyed("ab", 2) == hash_keyed("abc", 2));
  assert_true(hash_keyed("ab", 2) != hash_keyed("ab", 3));
  assert_true(hash_number(1) != hash_number(2));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_fnv_1a),
      cmocka_unit_test(texts_are_kept_apart),
      cmocka_unit_test(it_is_siphash_2_4),
      cmocka_unit_test(keyed_hashes_are_of_their_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
