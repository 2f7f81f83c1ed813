/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_reading.c - which statistics mean that a result topic is not read, and what is said then.
 */
#include "plugins/kafka/kafka_reading.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define STATS(state, join)                                                                                             \
  "{ \"brokers\":{ \"b\": { \"state\":\"UP\" } }, \"cgrp\": { \"state\": \"" state "\", \"stateage\": 1, "             \
  "\"join_state\": \"" join "\", \"assignment_size\": 0 } }"

struct said {
  char last[512]; /* "up", "down: ..", "unread: .." */
};

static void on_log(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) {
  (void)ctx, (void)level, (void)id, (void)fmt;
}

static void on_health(void *ctx, bool up, const char *text) {
  struct said *said = ctx;
  snprintf(said->last, sizeof(said->last), "%s%s", up ? "up" : "down: ", text ? text : "");
}

static void on_unread(void *ctx, const char *text) {
  struct said *said = ctx;
  snprintf(said->last, sizeof(said->last), "unread: %s", text);
}

static const struct kafka_group group = {.topic = "answers", .name = "duebox", .ours = "duebox-shop.outbox-"};

static struct kafka_reading reading_for(const char *session_ms) {
  char text[64];
  struct kafka_reading reading;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  assert_int_equal(rd_kafka_conf_set(conf, "session.timeout.ms", session_ms, text, sizeof(text)), RD_KAFKA_CONF_OK);
  kafka_reading_init(&reading, &group, conf);
  rd_kafka_conf_destroy(conf);
  return reading;
}

static void only_what_lasts_is_told(void **state) {
  static const struct {
    const char *stats;
    bool excused, fetched;
    int waited_s; /* the session has 6 s */
    const char *told;
  } rows[] = {
      {STATS("up", "steady"), false, true, 60, "up"},  /* also a member without a partition */
      {STATS("up", "wait-join"), false, true, 10, ""}, /* a member that has died is waited for */
      {STATS("up", "wait-join"), false, true, 12, "unread: kafka.unread: group duebox does not let us in (wait-join)"},
      {STATS("query-coord", "init"), false, true, 12, "unread: kafka.unread: group duebox finds no coordinator"},
      {STATS("up", "steady"), false, false, 12, "unread: kafka.unread: partitions of answers are not answered"},
      {STATS("up", "steady"), true, false, 12, ""},       /* the host is full: nothing is fetched */
      {STATS("query-coord", "init"), true, true, 12, ""}, /* the brokers are away */
      {"{}", false, true, 12, "unread: kafka.unread: group duebox finds no coordinator"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct said said = {""};
    const struct duebox_host host = {.ctx = &said, .log = on_log, .health = on_health, .unread = on_unread};
    struct kafka_health health = {.of_source = true};
    struct kafka_reading reading = reading_for("6000");
    reading.well_us -= (int64_t)rows[i].waited_s * 1000000;
    kafka_reading_judge(&reading, rows[i].stats, rows[i].excused, rows[i].fetched, &health, &host);
    if (strncmp(said.last, rows[i].told, strlen(rows[i].told)) != 0 || !said.last[0] != !rows[i].told[0])
      fail_msg("row %zu: %s", i, said.last);
  }
}

static void the_patience_follows_the_session(void **state) {
  struct said said = {""};
  const struct duebox_host host = {.ctx = &said, .log = on_log, .health = on_health, .unread = on_unread};
  struct kafka_health health = {.of_source = true};
  struct kafka_reading reading = reading_for("45000");
  reading.well_us -= 40000000;
  kafka_reading_judge(&reading, STATS("up", "wait-join"), false, true, &health, &host);
  assert_string_equal(said.last, "");
  reading.well_us -= 20000000;
  kafka_reading_judge(&reading, STATS("up", "wait-join"), false, true, &health, &host);
  assert_non_null(strstr(said.last, "unread"));
  kafka_reading_judge(&reading, STATS("up", "steady"), false, true, &health, &host);
  assert_string_equal(said.last, "up");
}

/* Records that come from the other partitions do not make up for those that somebody else has. */
static void a_stranger_with_partitions_is_told(void **state) {
  struct said said = {""};
  const struct duebox_host host = {.ctx = &said, .log = on_log, .health = on_health, .unread = on_unread};
  struct kafka_health health = {.of_source = true};
  struct kafka_reading reading = reading_for("6000");
  strcpy(reading.stranger, "console at /10.1.2.3");
  kafka_reading_judge(&reading, STATS("up", "steady"), true, true, &health, &host); /* the host is full */
  assert_string_equal(said.last, "");
  kafka_reading_judge(&reading, STATS("up", "steady"), false, true, &health, &host);
  assert_string_equal(said.last,
                      "unread: kafka.stranger: console at /10.1.2.3, no daemon of this outbox, takes answers "
                      "of topic answers away: it is in group duebox. end that consumer, or give it, or this "
                      "source, another group");
  reading.stranger[0] = '\0';
  kafka_reading_judge(&reading, STATS("up", "steady"), false, true, &health, &host);
  assert_string_equal(said.last, "up");
}

static void the_group_is_asked_now_and_then(void **state) {
  struct kafka_reading reading = reading_for("6000");
  assert_false(kafka_reading_asks(&reading));
  reading.ask_us -= 31000000;
  assert_true(kafka_reading_asks(&reading));
  assert_false(kafka_reading_asks(&reading));
  kafka_reading_rebalanced(&reading); /* soon, however often that happens */
  assert_false(kafka_reading_asks(&reading));
  reading.ask_us -= 6000000;
  kafka_reading_rebalanced(&reading);
  assert_true(kafka_reading_asks(&reading));
}

/* As librdkafka writes it: partitions of brokers first, and one that nobody fetches. */
#define OFFSETS(stable, high)                                                                                          \
  "{ \"brokers\":{ \"b\":{ \"toppars\":{ \"answers-7\":{ \"topic\":\"answers\", \"partition\":7} } } }, \"topics\":{ " \
  "\"answers\": { \"partitions\":{ \"2\": { \"partition\":2, \"broker\":1, \"fetchq_cnt\":2, \"next_offset\":9, "      \
  "\"app_offset\":8, \"hi_offset\":" #high ", \"ls_offset\":" #stable                                                  \
  ", \"consumer_lag\":1} , \"-1\": { \"partition\":-1, \"broker\":-1, \"fetchq_cnt\":0, \"next_offset\":0, "           \
  "\"app_offset\":-1001, "                                                                                             \
  "\"hi_offset\":-1001, \"ls_offset\":-1001, \"msgs\": 3} } } }, "                                                     \
  "\"cgrp\": { \"state\": \"up\", \"join_state\": \"steady\" } }"

static void offsets_are_found_in_statistics(void **state) {
  const char *at = OFFSETS(17, 40);
  struct kafka_offsets found;
  assert_true(kafka_stable_next(&at, &found));
  assert_int_equal(found.partition, 2);
  assert_int_equal(found.stable, 17);
  assert_int_equal(found.high, 40);
  assert_int_equal(found.position, 9);
  assert_true(found.pending);
  assert_int_equal(found.broker, 1);
  assert_true(kafka_stable_next(&at, &found));
  assert_int_equal(found.partition, -1);
  assert_int_equal(found.stable, -1001);
  assert_false(kafka_stable_next(&at, &found));
  at = STATS("up", "steady");
  assert_false(kafka_stable_next(&at, &found));
}

/* Brokers list partitions too, before the topics; from there on all is read once, from one to the next, however many
 * there are. */
static void partitions_are_read_in_one_go(void **state) {
  const char *at = "{ \"brokers\":{ \"toppars\":{ \"partition\":7} }, \"topics\":{ "
                   "\"partition\":0, \"broker\":1, \"fetchq_cnt\":2, \"next_offset\":1, \"app_offset\":1, "
                   "\"hi_offset\":1, \"ls_offset\":1, "
                   "\"partition\":1, \"broker\":1, \"fetchq_cnt\":0, \"next_offset\":2, \"app_offset\":1, "
                   "\"hi_offset\":2, \"ls_offset\":2 }, "
                   "\"behind\":{ \"topics\":{} } }";
  struct kafka_offsets found;
  for (int i = 0; i < 2; i++) {
    assert_true(kafka_stable_next(&at, &found));
    assert_int_equal(found.partition, i);
    assert_false(found.pending);
  }
  assert_false(kafka_stable_next(&at, &found));
}

static void only_a_transaction_that_lasts_stands(void **state) {
  static const int64_t last = KAFKA_STABLE_PATIENCE_US, start = 1000000;
  static const struct {
    int64_t at_us, stable, high;
    bool excused, stands;
  } rows[] = {
      {0, 17, 40, false, false},
      {last - 1, 17, 50, false, false},
      {last, 17, 60, false, true},
      {last + 1, 17, 60, true, true},   /* nothing is fetched: it still stands */
      {last + 2, 20, 60, false, false}, /* it moves */
      {2 * last, 20, 60, true, false},  /* what was seen last is old */
      {2 * last + 3, 20, 60, false, false},
      {3 * last, 60, 60, false, false}, /* over */
      {4 * last, 60, 60, false, false},
      {5 * last, -1001, -1001, false, false},
  };
  struct kafka_stable stable = {.offset = -1};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct kafka_offsets found = {.stable = rows[i].stable, .high = rows[i].high};
    if (kafka_stable_stands(&stable, &found, rows[i].excused, start + rows[i].at_us) != rows[i].stands)
      fail_msg("row %zu", i);
  }
}

static void a_transaction_that_holds_back_records_is_told(void **state) {
  struct said said = {""};
  const struct duebox_host host = {.ctx = &said, .log = on_log, .health = on_health, .unread = on_unread};
  struct kafka_health health = {.of_source = true};
  struct kafka_reading reading = reading_for("6000");
  assert_true(kafka_reading_is_whole(&reading));
  reading.held_back = (struct kafka_offsets){.partition = 2, .stable = 17, .high = 40};
  assert_false(kafka_reading_is_whole(&reading));
  kafka_reading_judge(&reading, STATS("up", "steady"), false, true, &health, &host);
  assert_non_null(strstr(said.last, "unread: kafka.transaction: a producer's transaction has been open for 60 s at "
                                    "answers[2]@17, and nothing behind it is delivered. end that producer"));
  reading.held_back.stable = -1;
  kafka_reading_judge(&reading, STATS("up", "steady"), false, true, &health, &host);
  assert_string_equal(said.last, "up");
}

static void records_that_are_long_in_the_way_are_told(void **state) {
  struct said said = {""};
  const struct duebox_host host = {.ctx = &said, .log = on_log, .health = on_health, .unread = on_unread};
  struct kafka_health health = {.of_source = true};
  struct kafka_reading reading = reading_for("6000");
  reading.obstacle = (rd_kafka_topic_partition_t){.partition = 2, .offset = 17};
  assert_false(kafka_reading_is_whole(&reading));
  kafka_reading_judge(&reading, STATS("up", "steady"), true, true, &health, &host);
  assert_string_equal(said.last, "");
  kafka_reading_judge(&reading, STATS("up", "steady"), false, true, &health, &host);
  assert_non_null(strstr(said.last, "unread: kafka.obstacle: for more than ten seconds reading has not got past "
                                    "answers[2]@17, though there is more behind it"));
  reading.obstacle.offset = -1;
  kafka_reading_judge(&reading, STATS("up", "steady"), false, true, &health, &host);
  assert_string_equal(said.last, "up");
}

/* Names that daemons of one outbox share, and no other outbox has. */
static void outboxes_are_told_apart(void **state) {
  struct kafka_options options = {0};
  struct kafka_results results = {.topic = "answers"};
  struct kafka_group shop, other;
  char id[KAFKA_NAME_SIZE];
  kafka_group_init(&shop, &options, &results, "shop.outbox");
  kafka_group_init(&other, &options, &results, "shop-2.outbox");
  assert_string_equal(shop.name, "duebox-shop.outbox");
  assert_string_equal(other.name, "duebox-shop-2.outbox");
  assert_string_equal(kafka_client_id(&options, "shop.outbox", "bus#1", id), "duebox-shop.outbox-bus#1");
  assert_true(kafka_group_is_ours(&shop, id));
  assert_false(kafka_group_is_ours(&other, id));
  assert_false(kafka_group_is_ours(&shop, "duebox-shop.outbox_2-bus#1"));
  assert_false(kafka_group_is_ours(&shop, "duebox-bus#1"));

  options.client_id = "till";
  results.group = "duebox";
  kafka_group_init(&shop, &options, &results, "shop.outbox");
  assert_string_equal(shop.name, "duebox");
  assert_string_equal(kafka_client_id(&options, "shop.outbox", "bus#1", id), "till");
  assert_true(kafka_group_is_ours(&shop, "till"));
  assert_false(kafka_group_is_ours(&shop, "till-2"));
}

/* Two topics with two and one partitions, and what librdkafka appends; cut off anywhere it counts what is whole. */
static void partitions_of_a_topic_are_counted(void **state) {
  static const uint8_t assignment[] = {0, 0, 0, 0, 0, 2, 0, 5,   'o', 't', 'h', 'e', 'r', 0,   0, 0,
                                       1, 0, 0, 0, 0, 0, 7, 'a', 'n', 's', 'w', 'e', 'r', 's', 0, 0,
                                       0, 2, 0, 0, 0, 0, 0, 0,   0,   1,   0,   0,   0,   0};
  const size_t whole = sizeof(assignment) - 4;
  for (size_t size = 0; size <= sizeof(assignment); size++) {
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, assignment, size);
    assert_int_equal(kafka_group_count(copy, size, "answers"), size < whole ? 0 : 2);
    free(copy);
  }
  assert_int_equal(kafka_group_count(assignment, sizeof(assignment), "other"), 1);
  assert_int_equal(kafka_group_count(assignment, sizeof(assignment), "answer"), 0);
  static const uint8_t many[] = {0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 1, 'a', 0xff, 0xff, 0xff, 0xff};
  assert_int_equal(kafka_group_count(many, sizeof(many), "a"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_what_lasts_is_told),
      cmocka_unit_test(the_patience_follows_the_session),
      cmocka_unit_test(a_stranger_with_partitions_is_told),
      cmocka_unit_test(offsets_are_found_in_statistics),
      cmocka_unit_test(partitions_are_read_in_one_go),
      cmocka_unit_test(only_a_transaction_that_lasts_stands),
      cmocka_unit_test(a_transaction_that_holds_back_records_is_told),
      cmocka_unit_test(the_group_is_asked_now_and_then),
      cmocka_unit_test(records_that_are_long_in_the_way_are_told),
      cmocka_unit_test(outboxes_are_told_apart),
      cmocka_unit_test(partitions_of_a_topic_are_counted),
  };
  return cmocka_run_group_tests_name("kafka reading", tests, NULL, NULL);
}
