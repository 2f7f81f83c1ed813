/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_outcome.h - what an error of librdkafka or of the broker means for a task.
 *
 * Data, not code: one row per error. Pure. The README prints the table; the unit test reads it row by row.
 */
#ifndef PLUGINS_KAFKA_OUTCOME_H
#define PLUGINS_KAFKA_OUTCOME_H

#include <librdkafka/rdkafka.h>

#include "kafka_common.h"

struct kafka_outcome_row {
  rd_kafka_resp_err_t err;
  const char *word; /* error class for the table: "kafka.msg_size_too_large" */
  enum duebox_outcome_class cls;
  enum duebox_scope scope;
  bool whole_batch; /* the broker judges a batch by its worst message: the others may be innocent */
  const char *cure; /* for people */
};

extern const struct kafka_outcome_row kafka_outcome_rows[];
extern const size_t kafka_outcome_count;

/* Of a client that librdkafka does not start: nothing was sent, and no error of the table says so. */
extern const struct kafka_outcome_row kafka_outcome_no_client;

/* The row of an error; an error that has none is answered with the row for all others. */
const struct kafka_outcome_row *kafka_outcome_find(rd_kafka_resp_err_t err);

/* The class once it is known how far the message got. Whatever may have been written is UNKNOWN, never anything else:
 * calling it "not sent" or "rejected" would lose track of a message that a consumer sees. */
enum duebox_outcome_class kafka_outcome_class(const struct kafka_outcome_row *row, rd_kafka_msg_status_t status);

#endif
