/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_throttle.c - that a quota holds us back is found in the statistics, and said now and then.
 */
#include "plugins/kafka/kafka_throttle.h"

#include <stdarg.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

/* As librdkafka 2.0.2 writes it, shortened. */
#define WINDOW(name, max) "\"" name "\": { \"min\":0, \"max\":" max ", \"avg\":7, \"sum\":9, \"cnt\":3 }, "
#define BROKER(max) "\"b\": { \"state\":\"UP\", " WINDOW("rtt", "90000") WINDOW("throttle", max) "\"req\": { } } "
#define STATS(brokers, topics) "{ \"brokers\":{ " brokers "}, \"topics\":{ " topics "} }"

static void the_longest_rest_of_a_broker_counts(void **state) {
  (void)state;
  assert_int_equal(kafka_throttle_ms(STATS(BROKER("0"), "")), 0);
  assert_int_equal(kafka_throttle_ms(STATS(BROKER("20") ", " BROKER("4711") ", " BROKER("3"), "")), 4711);
  assert_int_equal(kafka_throttle_ms(STATS(BROKER("5"), WINDOW("throttle", "800"))), 5); /* the name of a topic */
  assert_int_equal(kafka_throttle_ms("{}"), 0);
  assert_int_equal(kafka_throttle_ms("{ \"throttle\": {"), 0);
}

static void count_lines(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) {
  (void)fmt;
  assert_int_equal(level, DUEBOX_LOG_WARN);
  assert_string_equal(id, "KAFKA-THROTTLED");
  ++*(int *)ctx;
}

static void it_is_said_once_a_minute(void **state) {
  (void)state;
  int lines = 0;
  const struct duebox_host host = {.ctx = &lines, .log = count_lines};
  struct kafka_throttle throttle = {0};
  kafka_throttle_judge(&throttle, STATS(BROKER("999"), ""), 1000000, &host);
  assert_int_equal(lines, 0); /* that is how quotas work */
  kafka_throttle_judge(&throttle, STATS(BROKER("1000"), ""), 2000000, &host);
  assert_int_equal(lines, 1);
  kafka_throttle_judge(&throttle, STATS(BROKER("30000"), ""), 61999999, &host);
  assert_int_equal(lines, 1);
  kafka_throttle_judge(&throttle, STATS(BROKER("30000"), ""), 62000000, &host);
  assert_int_equal(lines, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_longest_rest_of_a_broker_counts),
      cmocka_unit_test(it_is_said_once_a_minute),
  };
  return cmocka_run_group_tests_name("kafka throttle", tests, NULL, NULL);
}
