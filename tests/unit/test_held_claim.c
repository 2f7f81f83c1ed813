/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_held_claim.c - a due task that claims fail to get is known with its age until it is claimed or gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/held_claim.h"

enum { SECOND = 1000 * 1000 };

static void met(struct held_claim *held, uint64_t id, int64_t due_us, int64_t now_us) {
  const struct held_place place = {.due_us = due_us, .now_us = now_us, .shard = 5, .priority = 1};
  char message_id[8];
  snprintf(message_id, sizeof message_id, "m-%d", (int)id);
  held_claim_met(held, id, message_id, &place, now_us);
}

static void it_is_followed_while_claims_meet_it(void **state) {
  struct held_claim held = {0};
  assert_int_equal(held_claim_age_us(&held, 5 * SECOND), 0);
  for (int64_t at = 10; at <= 100; at += 10)
    met(&held, 7, 3, at * SECOND);
  assert_int_equal(held_claim_age_us(&held, 101 * SECOND), 91 * SECOND);
  assert_string_equal(held.message_id, "m-7");
  assert_int_equal(held.place.due_us, 3);
}

static void the_first_one_is_followed(void **state) {
  struct held_claim held = {0};
  met(&held, 7, 3, 10 * SECOND);
  met(&held, 8, 4, 20 * SECOND);
  assert_int_equal(held.id, 7);
  held_claim_got(&held, 8);
  assert_int_equal(held_claim_age_us(&held, 30 * SECOND), 20 * SECOND);
}

static void one_that_was_claimed_makes_room_for_the_next(void **state) {
  struct held_claim held = {0};
  met(&held, 7, 3, 10 * SECOND);
  held_claim_got(&held, 7);
  assert_int_equal(held_claim_age_us(&held, 11 * SECOND), 0);
  met(&held, 8, 4, 20 * SECOND);
  assert_int_equal(held_claim_age_us(&held, 21 * SECOND), SECOND);
}

/* Taken by another daemon: no claim meets it any more. */
static void one_that_nobody_meets_is_forgotten(void **state) {
  struct held_claim held = {0};
  met(&held, 7, 3, 10 * SECOND);
  assert_true(held_claim_age_us(&held, 39 * SECOND) > 0);
  assert_int_equal(held_claim_age_us(&held, 40 * SECOND), 0);
  met(&held, 8, 4, 41 * SECOND);
  assert_int_equal(held.id, 8);
  assert_int_equal(held_claim_age_us(&held, 42 * SECOND), SECOND);
}

static bool found(int64_t next_us, uint8_t shard, uint8_t priority, enum task_state state, const char *route) {
  struct held_claim held = {0};
  met(&held, 7, 3, 10 * SECOND);
  struct store_group groups[] = {{.state = TASK_CLAIMED, .shard = 5, .priority = 1, .route = "r", .next_us = 3},
                                 {.state = state, .shard = shard, .priority = priority, .next_us = next_us}};
  snprintf(groups[1].route, sizeof groups[1].route, "%s", route);
  return held_claim_found(&held, "r", groups, 2);
}

/* Otherwise it was cancelled, put off, moved, or belongs to another daemon. */
static void a_look_finds_it_where_it_was(void **state) {
  assert_true(found(3, 5, 1, TASK_SCHEDULED, "r"));
  assert_true(found(10 * SECOND, 5, 1, TASK_SCHEDULED, "r")); /* of a retry: later than due_us */
  assert_false(found(10 * SECOND + 1, 5, 1, TASK_SCHEDULED, "r"));
  assert_false(found(3, 6, 1, TASK_SCHEDULED, "r"));
  assert_false(found(3, 5, 2, TASK_SCHEDULED, "r"));
  assert_false(found(3, 5, 1, TASK_BLOCKED, "r"));
  assert_false(found(3, 5, 1, TASK_SCHEDULED, "q"));
}

static void one_that_was_put_off_begins_anew(void **state) {
  struct held_claim held = {0};
  met(&held, 7, 3, 10 * SECOND);
  met(&held, 7, 20 * SECOND, 20 * SECOND);
  assert_int_equal(held_claim_age_us(&held, 21 * SECOND), SECOND);
  assert_int_equal(held.place.due_us, 20 * SECOND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_followed_while_claims_meet_it),
      cmocka_unit_test(the_first_one_is_followed),
      cmocka_unit_test(one_that_was_claimed_makes_room_for_the_next),
      cmocka_unit_test(one_that_nobody_meets_is_forgotten),
      cmocka_unit_test(a_look_finds_it_where_it_was),
      cmocka_unit_test(one_that_was_put_off_begins_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
