/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_options.c - see kafka_options.h.
 *
 * The refusals are rows of (key pattern, values, reason). They protect the contract of duebox/plugin.h (acknowledged,
 * never silent, one completion per task), secrets (the map is printed by `config show`) and the process (properties
 * that load code or run a shell; librdkafka CONFIGURATION.md 2.0.2).
 */
#include "kafka_options.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ROW(n, t, s, m, ...)                                                                                           \
  { .name = (n), .type = DUEBOX_OPT_##t, .offset = offsetof(struct s, m), __VA_ARGS__ }

static const char *const sasl_choices[] = {"scram-sha-512", "scram-sha-256", "plain", "gssapi", NULL};

const struct duebox_option kafka_option_rows[] = {
    ROW("brokers", LIST, kafka_options, brokers, .flags = DUEBOX_OPT_REQUIRED,
        .help = "bootstrap servers as host:port, one or several"),
    ROW("client_id", STRING, kafka_options, client_id,
        .help = "name shown in the broker's logs and quotas; default duebox-<database>.<table>-<instance>"),
    ROW("delivery_timeout", DURATION, kafka_options, delivery_timeout_ms, .def = "30s", .min = 1000, .max = 900000,
        .help = "longest time from hand-over to the broker's acknowledgement, retries inside it included"),
    ROW("tls", BOOL, kafka_options, tls, .def = "false",
        .help = "encrypt, and verify the broker's certificate and name"),
    ROW("allow_plaintext", BOOL, kafka_options, allow_plaintext, .def = "false",
        .help = "permit brokers on other hosts without TLS: every message can be read on the way"),
    ROW("ca_file", STRING, kafka_options, ca_file, .flags = DUEBOX_OPT_PATH,
        .help = "CA certificates (PEM); default the system's"),
    ROW("cert_file", STRING, kafka_options, cert_file, .flags = DUEBOX_OPT_PATH,
        .help = "client certificate (PEM) for mutual TLS"),
    ROW("key_file", STRING, kafka_options, key_file, .flags = DUEBOX_OPT_PATH,
        .help = "private key (PEM) of the client certificate"),
    ROW("key_password", SECRET, kafka_options, key_password, .help = "passphrase of the private key"),
    ROW("username", STRING, kafka_options, username, .help = "SASL user; switches SASL on"),
    ROW("password", SECRET, kafka_options, password, .help = "SASL password"),
    ROW("sasl", ENUM, kafka_options, sasl, .def = "scram-sha-512", .choices = sasl_choices,
        .help = "SASL mechanism: scram and plain with username and password, plain with tls only; gssapi is Kerberos"),
    ROW("rdkafka", MAP, kafka_options, rdkafka,
        .help = "properties passed to librdkafka as they are; those that would break delivery are refused"),
    {.name = NULL},
};

const struct duebox_option kafka_route_rows[] = {
    ROW("topic", STRING, kafka_route, topic, .flags = DUEBOX_OPT_REQUIRED | DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET,
        .help = "topic the tasks go to; it must exist"),
    ROW("key", STRING, kafka_route, key, .def = "{task_key}", .flags = DUEBOX_OPT_TEMPLATE,
        .help = "record key; the same key always goes to the same partition"),
    ROW("partition", INT, kafka_route, partition, .def = "-1", .min = -1, .max = INT32_MAX,
        .help = "fixed partition; -1 lets the key decide"),
    {.name = NULL},
};

const struct duebox_option kafka_result_rows[] = {
    ROW("topic", STRING, kafka_results, topic, .flags = DUEBOX_OPT_REQUIRED, .help = "topic the consumers answer on"),
    ROW("group", STRING, kafka_results, group,
        .help = "consumer group; default duebox-<database>.<table>. Daemons of one outbox share it, and nobody else: "
                "whoever is in it, the daemons of another outbox among them, takes a part of the answers away"),
    {.name = NULL},
};

struct refusal {
  const char *key;     /* fnmatch(3) pattern */
  const char *allowed; /* values that may pass all the same, separated by spaces; NULL = none */
  const char *reason;
};

static const struct refusal refusals[] = {
    {"plugin.*", NULL, "it loads code into the daemon"},
    {"ssl.engine*", NULL, "it loads code into the daemon"},
    {"ssl_engine*", NULL, "it loads code into the daemon"},
    {"ssl.providers", NULL, "it loads code into the daemon"},
    {"sasl.kerberos.kinit.cmd", NULL, "it runs a shell command; renew the ticket outside, e.g. with k5start"},
    {"sasl.kerberos.min.time.before.relogin", NULL, "it makes librdkafka run kinit; renew the ticket outside"},
    {"bootstrap.servers", NULL, "use the option brokers"},
    {"metadata.broker.list", NULL, "use the option brokers"},
    {"client.id", NULL, "use the option client_id"},
    {"message.timeout.ms", NULL, "use the option delivery_timeout"},
    {"delivery.timeout.ms", NULL, "use the option delivery_timeout"},
    {"group.id", NULL, "use the option group of the entry under results"},
    {"security.protocol", NULL, "use the options tls, username and sasl"},
    {"sasl.mechanism*", NULL, "use the option sasl"},
    {"enable.ssl.certificate.verification", "true", "any broker could pose as yours; give its authority with ca_file"},
    {"ssl.endpoint.identification.algorithm", "https", "any holder of a certificate could pose as your broker"},
    {"ssl.ca.*", NULL, "use the option ca_file"},
    {"ssl.certificate.location", NULL, "use the option cert_file"},
    {"ssl.key.location", NULL, "use the option key_file"},
    {"ssl.cipher.suites", NULL, "it could switch encryption off; what the TLS library and the broker agree on is used"},
    {"sasl.username", NULL, "use the option username"},
    {"sasl.password", NULL, "it would be printed; use the option password_file"},
    {"ssl.key.password", NULL, "it would be printed; use the option key_password_file"},
    {"ssl.keystore.password", NULL, "it would be printed; use the options cert_file and key_file"},
    {"ssl.key.pem", NULL, "it would be printed; use the option key_file"},
    {"*oauthbearer*", NULL, "it needs a token callback that this plugin does not have; use username and password"},
    {"enable.idempotence", "true", "without idempotence a retry inside the client makes duplicates"},
    {"acks", "all -1", "a task is done only when all in-sync replicas have it"},
    {"request.required.acks", "all -1", "a task is done only when all in-sync replicas have it"},
    {"transactional.id", NULL, "delivery is confirmed task by task, not by transaction"},
    {"max.in.flight*", "1 2 3 4 5", "idempotence allows at most 5"},
    {"retries", NULL, "delivery_timeout is the limit of the retries inside the client"},
    {"message.send.max.retries", NULL, "delivery_timeout is the limit of the retries inside the client"},
    {"delivery.report.only.error", "false", "without the report of success no task would ever be done"},
    {"allow.auto.create.topics", "false", "a mistyped topic would swallow tasks"},
    {"statistics.interval.ms", NULL, "the statistics are how the plugin learns what it tells of its health"},
    {"test.mock.*", NULL, "it invents a broker that keeps nothing"},
    {"*_cb", NULL, "it is code, not configuration"},
    {"*opaque", NULL, "it belongs to the program, not to configuration"},
    {"interceptors", NULL, "it is code, not configuration"},
    {"enabled_events", NULL, "it belongs to the program, not to configuration"},
    {"log.queue", NULL, "it belongs to the program, not to configuration"},
    {"group.instance.id", NULL, "two daemons with one configuration would shut each other out"},
    {"enable.auto.commit", "false", "an offset may advance only after the table has committed"},
    {"auto.commit.enable", "false", "an offset may advance only after the table has committed"},
    {"enable.auto.offset.store", "false", "an offset may advance only after the table has committed"},
    {"auto.offset.reset", "earliest smallest beginning", "results written before the first start would be skipped"},
    {"partition.assignment.strategy", "range roundrobin range,roundrobin", "this plugin hands partitions over at once"},
    {"enable.partition.eof", "false", "the end of a partition is not an error here"},
    {"isolation.level", "read_committed", "results that a consumer took back with its transaction would count"},
    {"offset.store.method", "broker", "offsets belong to the group: all daemons of an outbox read on from them"},
    {"topic.blacklist", NULL, "a topic that matches is taken for missing: no task reaches it and no result is read"},
    {"internal.termination.signal", "0", "librdkafka would take over that signal, which the daemon may need itself"},
};

static bool allowed(const char *values, const char *value) {
  size_t len = strlen(value);
  for (const char *at = values; at && *at; at += strcspn(at, " ")) {
    at += *at == ' ';
    if (strcspn(at, " ") == len && strncasecmp(at, value, len) == 0)
      return true;
  }
  return false;
}

const char *kafka_refusal(const char *key, const char *value) {
  for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
    if (fnmatch(refusals[i].key, key, 0) == 0)
      return allowed(refusals[i].allowed, value) ? NULL : refusals[i].reason;
  return NULL;
}

/* org.apache.kafka.common.internals.Topic: the legal characters and the longest name. */
bool kafka_topic_valid(const char *topic) {
  static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t len = strlen(topic);
  return len > 0 && len <= 249 && strspn(topic, legal) == len && strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0;
}

bool kafka_check_route(const void *options, const void *route, struct duebox_error *err) {
  const struct kafka_route *r = route;
  if (strchr(r->topic, '{') || kafka_topic_valid(r->topic))
    return true;
  return kafka_fail(err, "topic \"%s\" is not a legal Kafka name: use 1 to 249 of A-Z a-z 0-9 . _ -", r->topic);
}

size_t kafka_max_checkpoint(const void *options, const void *route) {
  enum { BESIDE = (16 + 4) * 1024 }; /* the application's headers; key, our headers and framing */
  (void)route;
  const struct duebox_map *passed = &((const struct kafka_options *)options)->rdkafka;
  size_t most = SIZE_MAX; /* duebox sets a limit that has room for any */
  for (size_t i = 0; i < passed->count; i++)
    if (strcmp(passed->items[i].key, "message.max.bytes") == 0)
      most = strtoul(passed->items[i].value, NULL, 10);
  return most > BESIDE ? most - BESIDE : 0;
}
