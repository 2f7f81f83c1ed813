/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_options.c - what plugins/kafka accepts and refuses, and what reaches librdkafka.
 */
#include "plugins/kafka/kafka_conf.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/support/fake_host.h"

static const char *const one_broker[] = {"127.0.0.1:9092"};

static struct kafka_options defaults(void) {
  struct kafka_options options = {.brokers = {one_broker, 1}};
  fake_options(kafka_option_rows, &options);
  return options;
}

static struct kafka_options passing(const struct duebox_pair *pair) {
  struct kafka_options options = defaults();
  options.rdkafka = (struct duebox_map){pair, 1};
  return options;
}

static const struct duebox_pair refused[] = {
    {"plugin."
     "library.paths",
     "x.so"},
    {"sasl.kerberos.kinit.cmd", "true"},
    {"sasl.kerberos.min.time.before.relogin", "60000"},
    {"ssl.engine.location", "x.so"},
    {"ssl.engine.id", "dynamic"},
    {"ssl_engine_callback_data", "x"},
    {"bootstrap.servers", "other:9092"},
    {"metadata.broker.list", "other:9092"},
    {"client.id", "x"},
    {"message.timeout.ms", "1"},
    {"delivery.timeout.ms", "1"},
    {"group.id", "x"},
    {"group.instance.id", "x"},
    {"sasl.username", "x"},
    {"security.protocol", "sasl_plaintext"},
    {"security.protocol", "ssl"},
    {"sasl.mechanism", "PLAIN"},
    {"sasl.mechanisms", "PLAIN"},
    {"enable.ssl.certificate.verification", "false"},
    {"ssl.endpoint.identification.algorithm", "none"},
    {"ssl.ca.location", "/tmp/x.pem"},
    {"ssl.cipher.suites", "NULL-SHA256:@SECLEVEL=0"},
    {"sasl.password", "x"},
    {"ssl.key.password", "x"},
    {"ssl.keystore.password", "x"},
    {"ssl.key.pem", "x"},
    {"sasl.oauthbearer.client.secret", "x"},
    {"enable.sasl.oauthbearer.unsecure.jwt", "true"},
    {"enable.idempotence", "false"},
    {"acks", "0"},
    {"acks", "1"},
    {"request.required.acks", "1"},
    {"transactional.id", "x"},
    {"max.in.flight.requests.per.connection", "6"},
    {"max.in.flight", "1000000"},
    {"retries", "0"},
    {"message.send.max.retries", "0"},
    {"delivery.report.only.error", "true"},
    {"allow.auto.create.topics", "true"},
    {"test.mock.num.brokers", "3"},
    {"dr_msg_cb", "x"},
    {"error_cb", "x"},
    {"opaque", "x"},
    {"default_topic_conf_opaque", "x"},
    {"interceptors", "x"},
    {"enabled_events", "1"},
    {"log.queue", "false"},
    {"enable.auto.commit", "true"},
    {"auto.commit.enable", "true"},
    {"enable.auto.offset.store", "true"},
    {"auto.offset.reset", "latest"},
    {"partition.assignment.strategy", "cooperative-sticky"},
    {"enable.partition.eof", "true"},
    {"isolation.level", "read_uncommitted"},
    {"offset.store.method", "file"},
    {"offset.store.method", "none"},
    {"topic.blacklist", "^duebox-results$"},
    {"internal.termination.signal", "15"},
};

static void every_refusal_names_the_property(void **state) {
  for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
    struct duebox_error err = {.text = ""};
    struct kafka_options options = passing(&refused[i]);
    if (kafka_check(&options, &err))
      fail_msg("%s=%s is accepted", refused[i].key, refused[i].value);
    if (!strstr(err.text, refused[i].key) || !strstr(err.text, "refused"))
      fail_msg("%s: the text does not name it: %s", refused[i].key, err.text);
  }
}

static void what_keeps_the_contract_may_pass(void **state) {
  static const struct duebox_pair accepted[] = {
      {"compression.type", "lz4"},
      {"linger.ms", "0.5"},
      {"acks", "all"},
      {"acks", "-1"},
      {"acks", "ALL"},
      {"enable.idempotence", "true"},
      {"max.in.flight.requests.per.connection", "1"},
      {"enable.auto.commit", "false"},
      {"auto.offset.reset", "earliest"},
      {"partition.assignment.strategy", "roundrobin"},
      {"isolation.level", "read_committed"},
      {"offset.store.method", "broker"},
      {"internal.termination.signal", "0"},
      {"session.timeout.ms", "10000"},
      {"partitioner", "consistent_random"},
      {"enable.ssl.certificate.verification", "true"},
      {"ssl.endpoint.identification.algorithm", "https"},
      {"debug", "broker,msg"},
  };
  for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
    struct duebox_error err = {.text = ""};
    struct kafka_options options = passing(&accepted[i]);
    if (!kafka_check(&options, &err))
      fail_msg("%s=%s: %s", accepted[i].key, accepted[i].value, err.text);
  }
}

static void unknown_properties_and_values_are_errors(void **state) {
  static const struct duebox_pair wrong[] = {{"compresion.type", "lz4"},
                                             {"compression.type", "lz5"},
                                             {"linger.ms", "soon"},
                                             {"acks", "all 1"},
                                             /* not with the others, which librdkafka says only when it starts */
                                             {"linger.ms", "900000"},
                                             {"session.timeout.ms", "3600000"},
                                             {"max.poll.interval.ms", "1"},
                                             {"receive.message.max.bytes", "1000"}};
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
    struct duebox_error err = {.text = ""};
    struct kafka_options options = passing(&wrong[i]);
    assert_false(kafka_check(&options, &err));
    assert_non_null(strstr(err.text, wrong[i].key));
  }
}

static void contradictions_are_errors(void **state) {
  struct duebox_error err = {.text = ""};
  struct kafka_options options = defaults();
  assert_true(kafka_check(&options, &err));
  options.username = "duebox";
  assert_false(kafka_check(&options, &err));
  assert_non_null(strstr(err.text, "password"));
  options.password = "secret";
  assert_true(kafka_check(&options, &err));
  options.cert_file = "cert.pem";
  assert_false(kafka_check(&options, &err));
  assert_non_null(strstr(err.text, "tls"));
  options.tls = true;
  assert_false(kafka_check(&options, &err));
  assert_non_null(strstr(err.text, "key_file"));
  options.key_file = "key.pem";
  assert_true(kafka_check(&options, &err));
  options.brokers.count = 0;
  assert_false(kafka_check(&options, &err));
  assert_non_null(strstr(err.text, "brokers"));
}

/* What rdkafka's own properties could do to the connection cannot be done by them; and by options only by name. */
static void no_message_leaves_the_host_readable(void **state) {
  static const struct {
    const char *broker, *refusal;
    bool tls, plaintext, sasl;
  } rows[] = {
      {"kafka.example:9092", "allow_plaintext", false, false, false},
      {"kafka.example", "allow_plaintext", false, false, false},
      {"localhost:9092,kafka.example:9092", "kafka.example:9092", false, false, false},
      {"PLAINTEXT://kafka.example:9092", "allow_plaintext", false, false, false},
      {"127.evil.example:9092", "allow_plaintext", false, false, false},
      {"127.0.0.1:1 evil.example:9092", "comma between", false, false, false},
      {"127.0.0.1:1, evil.example:9092", "comma between", true, false, false},
      {"[2001:db8::1]:9092", "allow_plaintext", false, false, false},
      {"kafka.example:9092", NULL, false, true, false},
      {"kafka.example:9092", NULL, true, false, false},
      {"[::1]:9092", NULL, false, false, false},
      {"localhost:9092", NULL, false, false, false},
      {"127.0.0.1:9092", "sasl: plain", false, false, true},
      {"kafka.example:9092", "sasl: plain", false, true, true},
      {"kafka.example:9092", NULL, true, false, true},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct duebox_error err = {.text = ""};
    struct kafka_options options = defaults();
    options.brokers.items = &rows[i].broker;
    options.tls = rows[i].tls;
    options.allow_plaintext = rows[i].plaintext;
    options.username = options.password = rows[i].sasl ? "geheim" : NULL;
    options.sasl = KAFKA_SASL_PLAIN;
    bool ok = kafka_check(&options, &err);
    if (ok != !rows[i].refusal || (!ok && !strstr(err.text, rows[i].refusal)))
      fail_msg("row %zu, %s: %s", i, rows[i].broker, ok ? "accepted" : err.text);
  }
}

static void has(const rd_kafka_conf_t *conf, const char *key, const char *want) {
  char value[256];
  size_t size = sizeof(value);
  assert_int_equal(rd_kafka_conf_get(conf, key, value, &size), RD_KAFKA_CONF_OK);
  assert_string_equal(value, want);
}

static void the_producer_is_safe(void **state) {
  const struct kafka_limits limits = {"bus", 16 << 20, 5000, "shop.outbox"};
  struct kafka_options options = defaults();
  struct duebox_error err = {.text = ""};
  rd_kafka_conf_t *conf = kafka_conf_producer(&options, &limits, &err);
  assert_non_null(conf);
  has(conf, "enable.idempotence", "true");
  has(conf, "acks", "-1");
  has(conf, "message.timeout.ms", "30000");
  has(conf, "allow.auto.create.topics", "false");
  has(conf, "queue.buffering.max.messages", "5000");
  has(conf, "queue.buffering.max.kbytes", "2147483647");
  has(conf, "client.id", "duebox-shop.outbox-bus");
  has(conf, "security.protocol", "plaintext");
  char value[32];
  size_t size = sizeof(value);
  assert_int_equal(rd_kafka_conf_get(conf, "message.max.bytes", value, &size), RD_KAFKA_CONF_OK);
  assert_true(strtol(value, NULL, 10) > 16 << 20);
  rd_kafka_conf_destroy(conf);
}

static void the_operator_overrides_defaults_only(void **state) {
  static const struct duebox_pair passed[] = {{"linger.ms", "5"}, {"partitioner", "random"}};
  const struct kafka_limits limits = {"bus", 1 << 20, 10, NULL};
  struct kafka_options options = defaults();
  struct duebox_error err = {.text = ""};
  options.rdkafka = (struct duebox_map){passed, 2};
  options.client_id = "shop";
  rd_kafka_conf_t *conf = kafka_conf_producer(&options, &limits, &err);
  assert_non_null(conf);
  has(conf, "linger.ms", "5");
  has(conf, "partitioner", "random");
  has(conf, "client.id", "shop");
  rd_kafka_conf_destroy(conf);
}

static void the_consumer_commits_nothing_by_itself(void **state) {
  const struct kafka_limits limits = {"bus", 1 << 20, 10, NULL};
  struct kafka_options options = defaults();
  struct duebox_error err = {.text = ""};
  rd_kafka_conf_t *conf = kafka_conf_consumer(&options, "shop", &limits, &err);
  assert_non_null(conf);
  has(conf, "enable.auto.commit", "false");
  has(conf, "enable.auto.offset.store", "false");
  has(conf, "isolation.level", "read_committed");
  has(conf, "auto.offset.reset", "smallest"); /* librdkafka's first name for earliest */
  has(conf, "group.id", "shop");
  rd_kafka_conf_destroy(conf);
}

/* Nobody reads the partitions of a member that was killed until its session is over: tasks whose answers wait there
 * would time out and be done again. */
static void results_are_read_soon_after_a_crash(void **state) {
  static const struct duebox_pair longer = {"session.timeout.ms", "45000"};
  const struct kafka_limits limits = {"bus", 1 << 20, 10, NULL};
  struct duebox_error err = {.text = ""};
  struct kafka_options options = defaults(), chosen = passing(&longer);
  rd_kafka_conf_t *conf = kafka_conf_consumer(&options, "shop", &limits, &err);
  assert_non_null(conf);
  has(conf, "session.timeout.ms", "6000"); /* what brokers allow by default */
  has(conf, "heartbeat.interval.ms", "2000");
  rd_kafka_conf_destroy(conf);
  conf = kafka_conf_consumer(&chosen, "shop", &limits, &err);
  assert_non_null(conf);
  has(conf, "session.timeout.ms", "45000");
  rd_kafka_conf_destroy(conf);
}

static void security_follows_from_tls_and_username(void **state) {
  static const char *const want[2][2] = {{"plaintext", "ssl"}, {"sasl_plaintext", "sasl_ssl"}};
  const struct kafka_limits limits = {"bus", 1 << 20, 10, NULL};
  for (int sasl = 0; sasl < 2; sasl++)
    for (int tls = 0; tls < 2; tls++) {
      struct kafka_options options = defaults();
      struct duebox_error err = {.text = ""};
      options.tls = tls;
      options.username = sasl ? "u" : NULL;
      options.password = sasl ? "p" : NULL;
      options.sasl = KAFKA_SASL_SCRAM_256;
      rd_kafka_conf_t *conf = kafka_conf_producer(&options, &limits, &err);
      assert_non_null(conf);
      has(conf, "security.protocol", want[sasl][tls]);
      if (sasl)
        has(conf, "sasl.mechanism", "SCRAM-SHA-256");
      if (sasl)
        has(conf, "sasl.username", "u");
      has(conf, "enable.ssl.certificate.verification", "true");
      rd_kafka_conf_destroy(conf);
    }
}

static void route_topics_are_checked(void **state) {
  char longest[251];
  memset(longest, 'a', 250);
  longest[250] = '\0';
  static const struct {
    const char *topic;
    bool ok;
  } rows[] = {{"orders-cancel", true}, {"a.b_c-D9", true}, {"orders.{route}", true}, {"", false},   {".", false},
              {"..", false},           {"a b", false},     {"caf\xc3\xa9", false},   {"a/b", false}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct kafka_route route = {rows[i].topic, "{task_key}", -1};
    struct duebox_error err = {.text = ""};
    if (kafka_check_route(NULL, &route, &err) != rows[i].ok)
      fail_msg("topic \"%s\"", rows[i].topic);
    assert_true(rows[i].ok || err.text[0]);
  }
  assert_false(kafka_topic_valid(longest));
  longest[249] = '\0';
  assert_true(kafka_topic_valid(longest));
}

static void rows_fit_their_structs(void **state) {
  struct kafka_options options = defaults();
  struct kafka_route route = {0};
  struct kafka_results results = {0};
  fake_options(kafka_route_rows, &route);
  fake_options(kafka_result_rows, &results);
  assert_int_equal(options.delivery_timeout_ms, 30000);
  assert_int_equal(options.sasl, KAFKA_SASL_SCRAM_512);
  assert_string_equal(route.key, "{task_key}");
  assert_int_equal(route.partition, -1);
  assert_null(results.group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_refusal_names_the_property),
      cmocka_unit_test(what_keeps_the_contract_may_pass),
      cmocka_unit_test(unknown_properties_and_values_are_errors),
      cmocka_unit_test(contradictions_are_errors),
      cmocka_unit_test(no_message_leaves_the_host_readable),
      cmocka_unit_test(the_producer_is_safe),
      cmocka_unit_test(the_operator_overrides_defaults_only),
      cmocka_unit_test(the_consumer_commits_nothing_by_itself),
      cmocka_unit_test(results_are_read_soon_after_a_crash),
      cmocka_unit_test(security_follows_from_tls_and_username),
      cmocka_unit_test(route_topics_are_checked),
      cmocka_unit_test(rows_fit_their_structs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
