/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_producer.c - see kafka_producer.h.
 */
#include "kafka_producer.h"

#define REOPEN_US 5000000 /* at most one new client in this time */

bool kafka_producer_open(struct kafka_producer *producer, const rd_kafka_conf_t *conf, const struct kafka_wake *wake,
                         struct duebox_error *err) {
  producer->opened_us = kafka_now_us();
  producer->fatal = false;
  producer->missing = !kafka_handle_open(&producer->handle, RD_KAFKA_PRODUCER, conf, wake, err);
  return !producer->missing;
}

bool kafka_producer_close(struct kafka_producer *producer, int timeout_ms) {
  kafka_topics_clear(&producer->topics);
  return kafka_handle_end(&producer->handle, timeout_ms);
}

bool kafka_producer_ready(const struct kafka_producer *producer) { return producer->handle.rk && !producer->fatal; }

void kafka_producer_break(struct kafka_producer *producer, const struct duebox_host *host) {
  char text[400] = "no reason given";
  if (producer->fatal || !producer->handle.rk)
    return;
  producer->fatal = true;
  rd_kafka_fatal_error(producer->handle.rk, text, sizeof(text));
  host->log(host->ctx, DUEBOX_LOG_ERROR, "KAFKA-FATAL",
            "the producer lost its sequence and is replaced; %zu open tasks are reported as possibly sent or not "
            "sent: %s",
            producer->open, text);
  rd_kafka_purge(producer->handle.rk,
                 RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

int kafka_producer_mend(struct kafka_producer *producer, const rd_kafka_conf_t *conf, const struct kafka_wake *wake,
                        struct kafka_health *health, const struct duebox_host *host) {
  if (producer->fatal && producer->open == 0)
    kafka_producer_close(producer, 0);
  if (producer->handle.rk)
    return -1;
  int64_t wait_us = producer->opened_us + REOPEN_US - kafka_now_us();
  if (wait_us > 0)
    return (int)(wait_us / 1000) + 1;
  struct duebox_error err;
  if (kafka_producer_open(producer, conf, wake, &err)) {
    producer->recreations++;
    host->log(host->ctx, DUEBOX_LOG_WARN, "KAFKA-RECREATED", "a new producer took over (number %lld)",
              (long long)producer->recreations);
    return -1;
  }
  kafka_health_no_client(health, host, err.text);
  return REOPEN_US / 1000;
}
