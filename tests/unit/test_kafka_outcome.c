/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_outcome.c - the outcome table of plugins/kafka, row by row.
 */
#include "plugins/kafka/kafka_outcome.h"

#include <stdarg.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define E(name) RD_KAFKA_RESP_ERR_##name

/* What each error must mean, written down apart from the table. Ends with NO_ERROR. */
struct expectation {
  const char *name;
  enum duebox_outcome_class cls;
  enum duebox_scope scope;
  bool whole_batch;
  rd_kafka_resp_err_t errors[24];
};

static const struct expectation expectations[] = {
    {"the cluster is away: no attempt burnt, everything behind the instance waits",
     DUEBOX_UNAVAILABLE,
     DUEBOX_SCOPE_INSTANCE,
     false,
     {E(_MSG_TIMED_OUT), E(_TIMED_OUT), E(_TIMED_OUT_QUEUE), E(_TRANSPORT), E(_RESOLVE), E(_ALL_BROKERS_DOWN),
      E(_WAIT_COORD), E(REQUEST_TIMED_OUT), E(NETWORK_EXCEPTION), E(BROKER_NOT_AVAILABLE),
      E(COORDINATOR_NOT_AVAILABLE)}},
    {"the cluster refuses us",
     DUEBOX_UNAVAILABLE,
     DUEBOX_SCOPE_INSTANCE,
     false,
     {E(_AUTHENTICATION), E(_SSL), E(SASL_AUTHENTICATION_FAILED), E(CLUSTER_AUTHORIZATION_FAILED),
      E(GROUP_AUTHORIZATION_FAILED), E(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), E(INVALID_SESSION_TIMEOUT),
      E(GROUP_MAX_SIZE_REACHED), E(INCONSISTENT_GROUP_PROTOCOL), E(_UNKNOWN_PROTOCOL), E(INVALID_GROUP_ID)}},
    {"the client ended before anything was sent",
     DUEBOX_UNAVAILABLE,
     DUEBOX_SCOPE_INSTANCE,
     false,
     {E(_PURGE_QUEUE), E(_PURGE_INFLIGHT), E(_FATAL), E(OUT_OF_ORDER_SEQUENCE_NUMBER), E(INVALID_PRODUCER_EPOCH),
      E(UNKNOWN_PRODUCER_ID)}},
    {"only this topic is in trouble, and its tasks alone wait",
     DUEBOX_UNAVAILABLE,
     DUEBOX_SCOPE_TARGET,
     false,
     {E(_DESTROY), E(_UNKNOWN_TOPIC), E(_UNKNOWN_PARTITION), E(UNKNOWN_TOPIC_OR_PART), E(TOPIC_EXCEPTION),
      E(TOPIC_AUTHORIZATION_FAILED), E(LEADER_NOT_AVAILABLE), E(NOT_LEADER_FOR_PARTITION), E(REPLICA_NOT_AVAILABLE),
      E(FENCED_LEADER_EPOCH), E(UNKNOWN_LEADER_EPOCH), E(NOT_ENOUGH_REPLICAS), E(NOT_ENOUGH_REPLICAS_AFTER_APPEND),
      E(UNSUPPORTED_FOR_MESSAGE_FORMAT)}},
    {"this record can never be written there",
     DUEBOX_REJECTED,
     DUEBOX_SCOPE_ROUTE,
     true,
     {E(MSG_SIZE_TOO_LARGE), E(RECORD_LIST_TOO_LARGE), E(INVALID_MSG_SIZE), E(INVALID_RECORD)}},
    {"the clock of this machine is not the record's fault, and each attempt has a timestamp of its own",
     DUEBOX_UNAVAILABLE,
     DUEBOX_SCOPE_TARGET,
     true,
     {E(INVALID_TIMESTAMP)}},
    {"a checksum that is wrong once is right the next time", DUEBOX_RETRY, DUEBOX_SCOPE_ROUTE, true, {E(INVALID_MSG)}},
    {"anything else may pass next time",
     DUEBOX_RETRY,
     DUEBOX_SCOPE_ROUTE,
     false,
     {E(UNKNOWN), E(_BAD_MSG), E(KAFKA_STORAGE_ERROR), E(POLICY_VIOLATION), E(_FAIL)}},
};

static void each_error_means_what_is_expected(void **state) {
  for (size_t i = 0; i < ARRAY_LEN(expectations); i++)
    for (const rd_kafka_resp_err_t *err = expectations[i].errors; *err; err++) {
      const struct kafka_outcome_row *row = kafka_outcome_find(*err);
      if (row->cls != expectations[i].cls || row->scope != expectations[i].scope ||
          row->whole_batch != expectations[i].whole_batch)
        fail_msg("%s (%s): class %d, scope %d, whole_batch %d", rd_kafka_err2name(*err), expectations[i].name,
                 (int)row->cls, (int)row->scope, row->whole_batch);
    }
}

static bool expected(rd_kafka_resp_err_t wanted) {
  for (size_t i = 0; i < ARRAY_LEN(expectations); i++)
    for (const rd_kafka_resp_err_t *err = expectations[i].errors; *err; err++)
      if (*err == wanted)
        return true;
  return false;
}

static void each_row_is_expected_complete_and_unique(void **state) {
  for (size_t i = 0; i < kafka_outcome_count; i++) {
    const struct kafka_outcome_row *row = &kafka_outcome_rows[i];
    if (!expected(row->err))
      fail_msg("row %s is not covered by this test", rd_kafka_err2name(row->err));
    assert_ptr_equal(kafka_outcome_find(row->err), row);
    assert_memory_equal(row->word, "kafka.", 6);
    assert_true(strlen(row->word) < 64);
    assert_true(row->cure[0]);
  }
  assert_int_equal(kafka_outcome_rows[kafka_outcome_count - 1].err, E(UNKNOWN));
}

static void possibly_written_is_always_unknown(void **state) {
  for (size_t i = 0; i < kafka_outcome_count; i++) {
    const struct kafka_outcome_row *row = &kafka_outcome_rows[i];
    assert_int_equal(kafka_outcome_class(row, RD_KAFKA_MSG_STATUS_NOT_PERSISTED), row->cls);
    assert_int_equal(kafka_outcome_class(row, RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED), DUEBOX_UNKNOWN);
    assert_int_equal(kafka_outcome_class(row, RD_KAFKA_MSG_STATUS_PERSISTED), DUEBOX_UNKNOWN);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_error_means_what_is_expected),
      cmocka_unit_test(each_row_is_expected_complete_and_unique),
      cmocka_unit_test(possibly_written_is_always_unknown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
