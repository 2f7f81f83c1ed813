/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_standing.c - a partition whose records end too early is told from those that stand for good
 * reasons.
 */
#include "plugins/kafka/kafka_standing.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "plugins/kafka/kafka_common.h"

/* As librdkafka writes it: broker 1 has a second connection for the group. */
static const char stats[] =
    "{ \"brokers\":{ \"a/1\": { \"nodeid\":1, \"rxbytes\":500, \"rxpartial\":7, \"req\": { \"Fetch\": 30 }, "
    "\"toppars\":{ \"t-0\": { \"topic\":\"t\", \"partition\":0} } } , \"b/11\": { \"nodeid\":11, \"rxbytes\":9, "
    "\"rxpartial\":8, \"req\": { \"Fetch\": 4 } } , \"GroupCoordinator\": { \"nodeid\":1, \"rxbytes\":20, "
    "\"rxpartial\":0, \"req\": { \"Fetch\": 0 } } }, \"topics\":{ \"nodeid\":1, \"Fetch\": 77 } }";

static void what_a_broker_sent_is_found(void **state) {
  struct kafka_fetched fetched = kafka_standing_fetched(stats, 1);
  assert_int_equal(fetched.fetches, 30);
  assert_int_equal(fetched.partial, 7);
  assert_int_equal(fetched.bytes, 520);
  fetched = kafka_standing_fetched(stats, 11);
  assert_int_equal(fetched.fetches, 4);
  assert_int_equal(kafka_standing_fetched(stats, 3).fetches, 0);
  assert_int_equal(kafka_standing_fetched("{}", 1).fetches, 0);
}

/* Ten seconds of each. */
static const struct {
  const char *what;
  int64_t position, later, stable;
  int32_t broker;               /* later; it was 1 */
  bool pending;                 /* later */
  struct kafka_fetched fetched; /* since */
  struct kafka_sharers sharers;
  bool excused, proved;
} rows[] = {
    {"alone", 5, 5, 9, 1, false, {20, 20, 9000}, {1, 1}, false, true},
    {"alone, much behind it", 5, 5, 9, 1, false, {20, 20, 80000000}, {1, 1}, false, true},
    {"beside 99 that are quiet", 5, 5, 9, 1, false, {30, 15, 9000}, {100, 1}, false, true},
    {"beside one that is in the same case", 5, 5, 9, 1, false, {14, 20, 9000}, {3, 2}, false, true},
    {"others fill the fetches, for long", 5, 5, 9, 1, false, {28, 28, 80000000}, {10, 9}, false, true},
    {"read to the end", 9, 9, 9, 1, false, {20, 20, 9000}, {2, 1}, false, false},
    {"behind an open transaction", 5, 5, 5, 1, false, {20, 20, 9000}, {2, 1}, false, false},
    {"it moves", 5, 6, 9, 1, false, {20, 20, 9000}, {1, 1}, false, false},
    {"records wait in the queue", 5, 5, 9, 1, true, {20, 20, 9000}, {2, 2}, false, false},
    {"the host was full", 5, 5, 9, 1, false, {20, 20, 9000}, {1, 1}, true, false},
    {"a large batch on a slow line", 5, 5, 9, 1, false, {1, 0, 90000000}, {1, 1}, false, false},
    {"held to a quota", 5, 5, 9, 1, false, {20, 0, 900}, {1, 1}, false, false},
    {"the leader is away", 5, 5, 9, 1, false, {0, 0, 0}, {1, 1}, false, false},
    {"the leader has moved", 5, 5, 9, 2, false, {20, 20, 9000}, {1, 1}, false, false},
    {"others fill the fetches", 5, 5, 9, 1, false, {20, 20, 80000000}, {10, 1}, false, false},
    {"it may be another one", 5, 5, 9, 1, false, {20, 20, 9000}, {10, 2}, false, false},
    {"nothing was fetched", 5, 5, -1001, 1, false, {20, 20, 9}, {1, 1}, false, false},
};

static void only_what_ends_too_early_is_proved(void **state) {
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct kafka_offsets then = {.broker = 1, .position = rows[i].position, .stable = rows[i].stable};
    const struct kafka_offsets found = {
        .broker = rows[i].broker, .position = rows[i].later, .stable = rows[i].stable, .pending = rows[i].pending};
    const struct kafka_fetched before = {100, 40, 5000};
    const struct kafka_fetched now = {before.fetches + rows[i].fetched.fetches,
                                      before.partial + rows[i].fetched.partial, before.bytes + rows[i].fetched.bytes};
    struct kafka_standing standing = KAFKA_STANDING_NONE;
    kafka_standing_follow(&standing, &then, &before, false, 1000000);
    kafka_standing_follow(&standing, &found, &now, rows[i].excused, 11000000);
    if (kafka_standing_is_proved(&standing, &now, &rows[i].sharers) != rows[i].proved)
      fail_msg("%s", rows[i].what);
    if (rows[i].proved)
      assert_int_equal(standing.since_us, 1000000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_broker_sent_is_found),
      cmocka_unit_test(only_what_ends_too_early_is_proved),
  };
  return cmocka_run_group_tests_name("kafka standing", tests, NULL, NULL);
}
