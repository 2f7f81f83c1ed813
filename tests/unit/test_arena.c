/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_arena.c - memory of an arena: zeroed, aligned, apart from each other, of any size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/arena.h"

static void test_alloc(void **state) {
  enum { COUNT = 3000 };
  struct arena *arena = arena_new();
  static unsigned char *blocks[COUNT];
  size_t sizes[] = {0, 1, 15, 16, 17, 1000, 16384, 16385, 100000};
  for (size_t i = 0; i < COUNT; i++) {
    size_t size = sizes[i % (sizeof sizes / sizeof sizes[0])];
    blocks[i] = arena_alloc(arena, size);
    assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
    for (size_t j = 0; j < size; j += 97)
      assert_int_equal(blocks[i][j], 0);
    memset(blocks[i], (int)(i % 251), size);
  }
  for (size_t i = 0; i < COUNT; i++) { /* nobody wrote over anybody */
    size_t size = sizes[i % (sizeof sizes / sizeof sizes[0])];
    if (size)
      assert_true(blocks[i][0] == i % 251 && blocks[i][size - 1] == i % 251);
  }
  arena_free(&arena);
  assert_null(arena);
  arena_free(&arena);
}

static void test_texts(void **state) {
  struct arena *arena = arena_new();
  assert_string_equal(arena_strdup(arena, "abc"), "abc");
  assert_string_equal(arena_strdup(arena, ""), "");
  assert_string_equal(arena_strndup(arena, "abcdef", 3), "abc");
  assert_string_equal(arena_printf(arena, "%s-%d", "x", 7), "x-7");
  const int64_t *numbers = arena_array(arena, 5, sizeof *numbers);
  assert_int_equal(numbers[0] | numbers[4], 0);
  arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_alloc), cmocka_unit_test(test_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
