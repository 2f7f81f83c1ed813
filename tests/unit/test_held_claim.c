/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_held_claim.c - a due task that claims fail to get is known with its age until it is claimed or gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/held_claim.h"

enum { SECOND = 1000 * 1000 };

static void it_is_followed_while_claims_meet_it(void **state) {
  struct held_claim held = {0};
  assert_int_equal(held_claim_age_us(&held, 5 * SECOND), 0);
  for (int64_t at = 10; at <= 100; at += 10)
    held_claim_met(&held, 7, "m-7", 3, at * SECOND);
  assert_int_equal(held_claim_age_us(&held, 101 * SECOND), 91 * SECOND);
  assert_string_equal(held.message_id, "m-7");
  assert_int_equal(held.due_us, 3);
}

static void the_first_one_is_followed(void **state) {
  struct held_claim held = {0};
  held_claim_met(&held, 7, "m-7", 3, 10 * SECOND);
  held_claim_met(&held, 8, "m-8", 4, 20 * SECOND);
  assert_int_equal(held.id, 7);
  held_claim_got(&held, 8);
  assert_int_equal(held_claim_age_us(&held, 30 * SECOND), 20 * SECOND);
}

static void one_that_was_claimed_makes_room_for_the_next(void **state) {
  struct held_claim held = {0};
  held_claim_met(&held, 7, "m-7", 3, 10 * SECOND);
  held_claim_got(&held, 7);
  assert_int_equal(held_claim_age_us(&held, 11 * SECOND), 0);
  held_claim_met(&held, 8, "m-8", 4, 20 * SECOND);
  assert_int_equal(held_claim_age_us(&held, 21 * SECOND), SECOND);
}

/* Cancelled, or taken by another daemon: no claim meets it any more. */
static void one_that_is_gone_is_forgotten(void **state) {
  struct held_claim held = {0};
  held_claim_met(&held, 7, "m-7", 3, 10 * SECOND);
  assert_true(held_claim_age_us(&held, 39 * SECOND) > 0);
  assert_int_equal(held_claim_age_us(&held, 40 * SECOND), 0);
  held_claim_met(&held, 8, "m-8", 4, 41 * SECOND);
  assert_int_equal(held.id, 8);
  assert_int_equal(held_claim_age_us(&held, 42 * SECOND), SECOND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_followed_while_claims_meet_it),
      cmocka_unit_test(the_first_one_is_followed),
      cmocka_unit_test(one_that_was_claimed_makes_room_for_the_next),
      cmocka_unit_test(one_that_is_gone_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
