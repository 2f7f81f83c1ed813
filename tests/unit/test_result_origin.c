/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_result_origin.c - the text of where a record came from gives back what was known of its task.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/result_origin.h"

static const char ids[][RECORD_ID_MAX + 1] = {"m-1",
                                              "01a20518-2419-7c4d-b747-35d58985899e",
                                              "a/b/7",
                                              "for",
                                              "#1",
                                              "~",
                                              "0123456789012345678901234567890123456789012345678901234567890123"};

static void test_a_correlation_id_comes_back(void **state) {
  static const char *const places[] = {"results[2]@17", "answers#17", "orders for shop#3", "a for b", "", " ", "for"};
  char long_place[400];
  memset(long_place, 'x', sizeof long_place - 1);
  memcpy(long_place + sizeof long_place - 4, "#17", 4);
  for (size_t i = 0; i < sizeof places / sizeof *places + 1; i++)
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
      char origin[RESULT_ORIGIN_SIZE], id[RECORD_ID_MAX + 1];
      struct record_road road;
      result_origin_write(origin, i < sizeof places / sizeof *places ? places[i] : long_place, ids[k]);
      assert_true(result_origin_road("rabbit#1", origin, &road, id));
      assert_non_null(road.message_id);
      assert_string_equal(road.message_id, ids[k]);
      assert_false(road.binding);
      assert_int_equal(road.attempt, 0);
    }
}

/* Whatever a queue is called: what nobody knew of a record is not known when it is replayed. */
static void test_none_comes_back_as_none(void **state) {
  static const char *const places[] = {"results[2]@17", "orders for shop#3", "a for b",       " for x", "",
                                       "for x",         "/callback/m-1/2",   "shop for no id"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    char origin[RESULT_ORIGIN_SIZE], id[RECORD_ID_MAX + 1];
    struct record_road road;
    result_origin_write(origin, places[i], NULL);
    assert_true(result_origin_road("rabbit#1", origin, &road, id));
    if (road.message_id)
      fail_msg("\"%s\" became \"%s\" and names %s", places[i], origin, road.message_id);
    assert_non_null(strstr(origin, places[i]));
  }
}

static void test_of_a_long_place_the_end_is_kept(void **state) {
  char place[400], origin[RESULT_ORIGIN_SIZE];
  memset(place, 'x', sizeof place - 1);
  memcpy(place + sizeof place - 4, "@17", 4);
  result_origin_write(origin, place, NULL);
  assert_int_equal(strlen(origin), RESULT_ORIGIN_SIZE - 1);
  assert_string_equal(origin + RESULT_ORIGIN_SIZE - 4, "@17");
}

static void test_a_callback_is_about_its_url(void **state) {
  for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
    char origin[RESULT_ORIGIN_SIZE], id[RECORD_ID_MAX + 1];
    struct record_road road;
    result_origin_callback(origin, ids[k], UINT32_MAX);
    assert_true(result_origin_road(SOURCE_CALLBACK, origin, &road, id));
    assert_string_equal(road.message_id, ids[k]);
    assert_true(road.attempt == UINT32_MAX && road.binding && road.current_only);
  }
  static const char *const broken[] = {"",
                                       "/callback/",
                                       "/callback//1",
                                       "/callback/m",
                                       "/callback/m/",
                                       "/callback/m/0",
                                       "/callback/m/1x",
                                       "/callback/m/4294967296",
                                       "callback/m/1",
                                       "/callback/a b/1"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    char id[RECORD_ID_MAX + 1];
    struct record_road road;
    if (result_origin_road(SOURCE_CALLBACK, broken[i], &road, id))
      fail_msg("%s", broken[i]);
  }
}

static void test_an_answer_to_a_call_is_over(void **state) {
  char id[RECORD_ID_MAX + 1];
  struct record_road road;
  assert_false(result_origin_road(SOURCE_ANSWER, "crm.push", &road, id));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_correlation_id_comes_back),     cmocka_unit_test(test_none_comes_back_as_none),
      cmocka_unit_test(test_of_a_long_place_the_end_is_kept), cmocka_unit_test(test_a_callback_is_about_its_url),
      cmocka_unit_test(test_an_answer_to_a_call_is_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
