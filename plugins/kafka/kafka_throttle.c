/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_throttle.c - see kafka_throttle.h.
 */
#include "kafka_throttle.h"

#include <stdlib.h>
#include <string.h>

#define WORTH_SAYING_MS 1000
#define SAY_EVERY_US 60000000

/* Keys as librdkafka writes them. Brokers come before topics, of which there may be megabytes. */
int64_t kafka_throttle_ms(const char *stats) {
  static const char of_broker[] = "\"throttle\": {", highest[] = "\"max\":", topics[] = "\"topics\":";
  const char *end = strstr(stats, topics);
  int64_t most = 0;
  for (const char *at = stats; (at = strstr(at, of_broker)) && (!end || at < end);) {
    at += strlen(of_broker);
    const char *max = strstr(at, highest);
    int64_t ms = max ? strtoll(max + strlen(highest), NULL, 10) : 0;
    if (ms > most)
      most = ms;
  }
  return most;
}

void kafka_throttle_judge(struct kafka_throttle *throttle, const char *stats, int64_t now_us,
                          const struct duebox_host *host) {
  int64_t ms = kafka_throttle_ms(stats);
  if (ms < WORTH_SAYING_MS || (throttle->said_us && now_us - throttle->said_us < SAY_EVERY_US))
    return;
  throttle->said_us = now_us;
  host->log(host->ctx, DUEBOX_LOG_WARN, "KAFKA-THROTTLED",
            "a quota of the cluster holds us back: a broker took nothing for %.1f s. Raise the quota of our user or "
            "client_id, or lower rate or concurrency of the routes: what waits for longer than delivery_timeout is "
            "reported as timed out, and as sent perhaps",
            (double)ms / 1000);
}
