/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_outcome.c - see kafka_outcome.h.
 *
 * Error names and meanings: Kafka protocol guide "Error codes" and librdkafka 2.0.2 rdkafka.h (local errors start with
 * an underscore). Transient broker errors are retried inside librdkafka until delivery_timeout; they show up here only
 * when that has passed, or not at all.
 */
#include "kafka_outcome.h"

#define E(name) RD_KAFKA_RESP_ERR_##name
#define REJECTED DUEBOX_REJECTED, DUEBOX_SCOPE_ROUTE
#define RETRY DUEBOX_RETRY, DUEBOX_SCOPE_ROUTE
#define TOPIC_DOWN DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_TARGET
#define INSTANCE_DOWN DUEBOX_UNAVAILABLE, DUEBOX_SCOPE_INSTANCE

static const char broker_away[] = "no broker answered in time: check that the brokers run and can be reached";
static const char no_topic[] =
    "create the topic, or correct its name in the configuration; it is tried again by itself";
static const char no_right[] = "grant the daemon's user the right in the cluster's ACLs; it is tried again by itself";
static const char not_in_sync[] = "too few in-sync replicas: check the topic's replicas and min.insync.replicas";
static const char too_large[] = "raise the topic's max.message.bytes, or make the payload or the checkpoint smaller";
static const char malformed[] = "the broker refuses the record itself; a compacted topic needs a key";
static const char changed[] = "the bytes were changed on the way, or the topic is compacted and wants a key";
static const char wrong_clock[] =
    "the clocks of this machine and of the broker differ, or the record waited, for longer than the topic's "
    "message.timestamp.before.max.ms and message.timestamp.after.max.ms allow; it is tried again by itself";
static const char old_format[] = "let the topic's message.format.version be 0.11 or later: ours have headers";
static const char no_login[] = "check username, password, TLS options and the cluster's ACLs";
static const char no_session[] = "set rdkafka: {session.timeout.ms: ..} of the plugin between the broker's group.min. "
                                 "and group.max.session.timeout.ms";
static const char group_full[] = "raise the broker's group.max.size, or run fewer daemons";
static const char group_taken[] = "another kind of consumer is in this group: give results a group of its own";
static const char no_group[] = "correct group of the entry under results";
static const char no_client[] = "are ca_file, cert_file and key_file there, readable, in PEM format and a pair, and is "
                                "key_password right? It is tried again by itself";
static const char stopped[] = "the client or its topic went away before the broker answered";
static const char moving[] =
    "no leader takes messages there: check the topic and its brokers; it is tried again by itself";

/* clang-format off */
const struct kafka_outcome_row kafka_outcome_rows[] = {
    /* Nobody answered. */
    {E(_MSG_TIMED_OUT),                     "kafka.timed_out",                INSTANCE_DOWN, false, broker_away},
    {E(_TIMED_OUT),                         "kafka.timed_out",                INSTANCE_DOWN, false, broker_away},
    {E(_TIMED_OUT_QUEUE),                   "kafka.timed_out",                INSTANCE_DOWN, false, broker_away},
    {E(_TRANSPORT),                         "kafka.transport",                INSTANCE_DOWN, false, broker_away},
    {E(_RESOLVE),                           "kafka.resolve",                  INSTANCE_DOWN, false, broker_away},
    {E(_ALL_BROKERS_DOWN),                  "kafka.all_brokers_down",         INSTANCE_DOWN, false, broker_away},
    {E(_WAIT_COORD),                        "kafka.wait_coord",               INSTANCE_DOWN, false, broker_away},
    {E(REQUEST_TIMED_OUT),                  "kafka.request_timed_out",        INSTANCE_DOWN, false, broker_away},
    {E(NETWORK_EXCEPTION),                  "kafka.network_exception",        INSTANCE_DOWN, false, broker_away},
    {E(BROKER_NOT_AVAILABLE),               "kafka.broker_not_available",     INSTANCE_DOWN, false, broker_away},
    {E(COORDINATOR_NOT_AVAILABLE),          "kafka.coordinator_not_available", INSTANCE_DOWN, false, broker_away},

    /* Nobody lets us in. */
    {E(_AUTHENTICATION),                    "kafka.authentication",           INSTANCE_DOWN, false, no_login},
    {E(_SSL),                               "kafka.ssl",                      INSTANCE_DOWN, false, no_login},
    {E(SASL_AUTHENTICATION_FAILED),         "kafka.authentication",           INSTANCE_DOWN, false, no_login},
    {E(CLUSTER_AUTHORIZATION_FAILED),       "kafka.cluster_authorization",    INSTANCE_DOWN, false, no_login},
    {E(GROUP_AUTHORIZATION_FAILED),         "kafka.group_authorization",      INSTANCE_DOWN, false, no_right},
    {E(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), "kafka.cluster_authorization", INSTANCE_DOWN, false, no_login},

    /* The group of a result topic does not let us in. */
    {E(INVALID_SESSION_TIMEOUT),            "kafka.session_timeout",          INSTANCE_DOWN, false, no_session},
    {E(GROUP_MAX_SIZE_REACHED),             "kafka.group_full",               INSTANCE_DOWN, false, group_full},
    {E(INCONSISTENT_GROUP_PROTOCOL),        "kafka.group_protocol",           INSTANCE_DOWN, false, group_taken},
    {E(_UNKNOWN_PROTOCOL),                  "kafka.group_protocol",           INSTANCE_DOWN, false, group_taken},
    {E(INVALID_GROUP_ID),                   "kafka.invalid_group",            INSTANCE_DOWN, false, no_group},

    /* The client itself ended. */
    {E(_PURGE_QUEUE),                       "kafka.stopped",                  INSTANCE_DOWN, false, stopped},
    {E(_PURGE_INFLIGHT),                    "kafka.stopped",                  INSTANCE_DOWN, false, stopped},
    {E(_FATAL),                             "kafka.fatal",                    INSTANCE_DOWN, false, stopped},
    {E(OUT_OF_ORDER_SEQUENCE_NUMBER),       "kafka.out_of_order_sequence",    INSTANCE_DOWN, false, stopped},
    {E(INVALID_PRODUCER_EPOCH),             "kafka.producer_epoch",           INSTANCE_DOWN, false, stopped},
    {E(UNKNOWN_PRODUCER_ID),                "kafka.unknown_producer_id",      INSTANCE_DOWN, false, stopped},

    /* This topic is not there, or does not take records. */
    {E(_UNKNOWN_TOPIC),                     "kafka.unknown_topic",            TOPIC_DOWN, false, no_topic},
    {E(_UNKNOWN_PARTITION),                 "kafka.unknown_partition",        TOPIC_DOWN, false, no_topic},
    {E(UNKNOWN_TOPIC_OR_PART),              "kafka.unknown_topic",            TOPIC_DOWN, false, no_topic},
    /* Of a topic that was deleted; when it is the client that ends, its instance does so anyway. */
    {E(_DESTROY),                           "kafka.stopped",                  TOPIC_DOWN, false, stopped},
    {E(TOPIC_EXCEPTION),                    "kafka.invalid_topic",            TOPIC_DOWN, false, no_topic},
    {E(TOPIC_AUTHORIZATION_FAILED),         "kafka.topic_authorization",      TOPIC_DOWN, false, no_right},
    {E(LEADER_NOT_AVAILABLE),               "kafka.leader_not_available",     TOPIC_DOWN, false, moving},
    {E(NOT_LEADER_FOR_PARTITION),           "kafka.not_leader",               TOPIC_DOWN, false, moving},
    {E(REPLICA_NOT_AVAILABLE),              "kafka.replica_not_available",    TOPIC_DOWN, false, moving},
    {E(FENCED_LEADER_EPOCH),                "kafka.leader_epoch",             TOPIC_DOWN, false, moving},
    {E(UNKNOWN_LEADER_EPOCH),               "kafka.leader_epoch",             TOPIC_DOWN, false, moving},
    {E(NOT_ENOUGH_REPLICAS),                "kafka.not_enough_replicas",      TOPIC_DOWN, false, not_in_sync},
    {E(NOT_ENOUGH_REPLICAS_AFTER_APPEND),   "kafka.not_enough_replicas",      TOPIC_DOWN, false, not_in_sync},
    /* Of what our clock says or the topic is set to: no task is to blame, and each attempt has a timestamp of its own. */
    {E(INVALID_TIMESTAMP),                  "kafka.invalid_timestamp",        TOPIC_DOWN, true, wrong_clock},
    {E(UNSUPPORTED_FOR_MESSAGE_FORMAT),     "kafka.message_format",           TOPIC_DOWN, false, old_format},

    /* This record can never be written there. */
    {E(MSG_SIZE_TOO_LARGE),                 "kafka.msg_size_too_large",       REJECTED, true, too_large},
    {E(RECORD_LIST_TOO_LARGE),              "kafka.record_list_too_large",    REJECTED, true, too_large},
    {E(INVALID_MSG_SIZE),                   "kafka.invalid_msg_size",         REJECTED, true, malformed},
    {E(INVALID_RECORD),                     "kafka.invalid_record",           REJECTED, true, malformed},

    /* The checksum is wrong, says the broker. One before 2.4 says so of a record without a key in a compacted topic. */
    {E(INVALID_MSG),                        "kafka.invalid_msg",              RETRY, true, changed},

    /* Anything else: it failed now and may succeed later. Keep this row last. */
    {E(UNKNOWN),                            "kafka.other",                    RETRY, false, "see the broker's log"},
};
/* clang-format on */

const struct kafka_outcome_row kafka_outcome_no_client = {E(_FAIL), "kafka.no_client", INSTANCE_DOWN, false, no_client};

const size_t kafka_outcome_count = ARRAY_LEN(kafka_outcome_rows);

const struct kafka_outcome_row *kafka_outcome_find(rd_kafka_resp_err_t err) {
  size_t i = 0;
  while (i < ARRAY_LEN(kafka_outcome_rows) - 1 && kafka_outcome_rows[i].err != err)
    i++;
  return &kafka_outcome_rows[i];
}

enum duebox_outcome_class kafka_outcome_class(const struct kafka_outcome_row *row, rd_kafka_msg_status_t status) {
  return status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED ? row->cls : DUEBOX_UNKNOWN;
}
