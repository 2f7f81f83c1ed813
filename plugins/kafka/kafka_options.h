/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_options.h - what an operator may set, as rows, and what is refused and why.
 *
 * Pure: no I/O, no librdkafka. The filled structs are const and belong to the host.
 */
#ifndef PLUGINS_KAFKA_OPTIONS_H
#define PLUGINS_KAFKA_OPTIONS_H

#include "kafka_common.h"

enum kafka_sasl { KAFKA_SASL_SCRAM_512 = 0, KAFKA_SASL_SCRAM_256, KAFKA_SASL_PLAIN, KAFKA_SASL_GSSAPI };

/* An entry under `plugins:`. */
struct kafka_options {
  struct duebox_list brokers;
  const char *client_id; /* NULL: kafka_client_id() */
  int64_t delivery_timeout_ms;
  bool tls;
  bool allow_plaintext;
  const char *ca_file;
  const char *cert_file;
  const char *key_file;
  const char *key_password;
  const char *username; /* NULL: no SASL but Kerberos */
  const char *password;
  int sasl; /* enum kafka_sasl */
  struct duebox_map rdkafka;
};

/* A route via this plugin. */
struct kafka_route {
  const char *topic; /* template */
  const char *key;   /* template */
  int64_t partition; /* -1: by key */
};

/* An entry under `results:`. */
struct kafka_results {
  const char *topic;
  const char *group; /* NULL: kafka_group_init() */
};

extern const struct duebox_option kafka_option_rows[];
extern const struct duebox_option kafka_route_rows[];
extern const struct duebox_option kafka_result_rows[];

/* Why a key of the `rdkafka` map is refused with this value; NULL = it may pass. */
const char *kafka_refusal(const char *key, const char *value);

/* True for a name that Kafka accepts: 1 to 249 of [A-Za-z0-9._-], not "." or "..". */
bool kafka_topic_valid(const char *topic);

/* check_route() of the plugin. */
MUSTCHECK bool kafka_check_route(const void *options, const void *route, struct duebox_error *err);

/* max_checkpoint() of the plugin: what the operator's message.max.bytes leaves of a message without a payload. */
size_t kafka_max_checkpoint(const void *options, const void *route);

#endif
