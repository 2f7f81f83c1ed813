/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_throttle.h - says that brokers hold us back by a quota.
 *
 * A broker whose quota we exceed answers, says for how long it will not read from us, and falls silent for that time:
 * to librdkafka, and in every outcome, it then looks like one that is away. Only its statistics tell (STATISTICS.md,
 * `brokers.*.throttle`, milliseconds of the answers since the event before).
 */
#ifndef PLUGINS_KAFKA_THROTTLE_H
#define PLUGINS_KAFKA_THROTTLE_H

#include "kafka_common.h"

struct kafka_throttle {
  int64_t said_us; /* monotonic; 0 = never */
};

/* The longest rest that a broker demanded, milliseconds, as the text of a statistics event tells; 0 = none. */
int64_t kafka_throttle_ms(const char *stats);
/* Takes a statistics event: a rest of a second or more is said, once a minute at most. Driver thread. */
void kafka_throttle_judge(struct kafka_throttle *throttle, const char *stats, int64_t now_us,
                          const struct duebox_host *host);

#endif
