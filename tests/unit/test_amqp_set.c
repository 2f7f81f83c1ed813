/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_set.c - the set of hashes, against an array of flags.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_set.h"

enum { KEYS = 300 };

static uint64_t key(int i) {
  char text[16];
  snprintf(text, sizeof(text), "text %d", i);
  return amqp_set_key('t', text);
}

static void adds_finds_and_removes(void **state) {
  (void)state;
  struct amqp_set set;
  bool model[KEYS] = {false};
  uint32_t count = 0;
  assert_true(amqp_set_init(&set, KEYS));
  srand(7);
  for (int step = 0; step < 20000; step++) {
    int i = rand() % KEYS;
    assert_int_equal(amqp_set_has(&set, key(i)), model[i]);
    bool add = rand() % 2;
    if (add)
      amqp_set_add(&set, key(i));
    else
      amqp_set_remove(&set, key(i));
    count += (uint32_t)(add - model[i]);
    model[i] = add;
    assert_int_equal(set.count, count);
  }
  for (int i = 0; i < KEYS; i++)
    assert_int_equal(amqp_set_has(&set, key(i)), model[i]);
  amqp_set_clear(&set);
  for (int i = 0; i < KEYS; i++)
    assert_false(amqp_set_has(&set, key(i)));
  amqp_set_free(&set);
}

static void kinds_are_kept_apart(void **state) {
  (void)state;
  assert_int_not_equal(amqp_set_key('x', "orders"), amqp_set_key('r', "orders"));
  assert_int_not_equal(amqp_set_key('x', ""), amqp_set_key('r', ""));
  assert_int_not_equal(amqp_set_key('x', "ab"), amqp_set_key('x', "ba"));
  assert_int_not_equal(amqp_set_key('x', ""), 0);
}

static void forgets_everything_rather_than_overflow(void **state) {
  (void)state;
  struct amqp_set set;
  assert_true(amqp_set_init(&set, 8));
  for (int i = 0; i < 10000; i++) {
    amqp_set_add(&set, key(i));
    assert_true(amqp_set_has(&set, key(i)));
    assert_true(set.count <= set.mask / 2 + 1);
  }
  amqp_set_free(&set);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adds_finds_and_removes),
      cmocka_unit_test(kinds_are_kept_apart),
      cmocka_unit_test(forgets_everything_rather_than_overflow),
  };
  return cmocka_run_group_tests_name("amqp set", tests, NULL, NULL);
}
