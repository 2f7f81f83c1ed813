/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_health.c - see kafka_health.h. Driver thread.
 */
#include "kafka_health.h"

#include <stdio.h>
#include <string.h>

#include "kafka_outcome.h"

/* librdkafka says the same of a broker again after 30 s, at its next attempt, which comes within 10 s. */
#define REFUSAL_HOLDS_US 60000000

/* That all brokers are down may be told before why they are, or after it, and again with each attempt. */
static bool says_why(const char *word) { return word != kafka_outcome_find(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)->word; }

static void say_down(struct kafka_health *health, const struct duebox_host *host, enum kafka_health_state state,
                     const char *word, const char *text, const char *cure) {
  char line[512];
  bool same =
      health->state == state && (strcmp(health->word, word) == 0 || (state == KAFKA_HEALTH_AWAY && !says_why(word)));
  if (same || (health->state == KAFKA_HEALTH_REFUSED && state == KAFKA_HEALTH_AWAY && !health->of_source))
    return;
  health->state = state;
  health->word = word;
  snprintf(line, sizeof(line), "%s: %s. %s", word, text, cure);
  host->log(host->ctx, DUEBOX_LOG_WARN, "KAFKA-DOWN", "%s", line);
  if (health->of_source && state == KAFKA_HEALTH_REFUSED)
    host->unread(host->ctx, line);
  else
    host->health(host->ctx, false, line);
}

/* The state is AWAY, so what else is said of the connections does not take it back. */
static void say_login_refused(struct kafka_health *health, const struct duebox_host *host, const char *word,
                              const char *text, const char *cure) {
  bool said = health->state == KAFKA_HEALTH_AWAY && health->refused_us;
  char line[512];
  if (!health->of_source) {
    say_down(health, host, KAFKA_HEALTH_AWAY, word, text, cure);
    return;
  }
  health->state = KAFKA_HEALTH_AWAY;
  health->word = word;
  health->refused_us = kafka_now_us();
  if (said)
    return;
  snprintf(line, sizeof(line), "%s: %s. %s", word, text, cure);
  host->log(host->ctx, DUEBOX_LOG_WARN, "KAFKA-DOWN", "%s", line);
  host->unread(host->ctx, line);
}

void kafka_health_no_client(struct kafka_health *health, const struct duebox_host *host, const char *text) {
  const struct kafka_outcome_row *row = &kafka_outcome_no_client;
  say_login_refused(health, host, row->word, text, row->cure);
}

/* The brokers that refused the login are not reached any more. */
static void forget_refusal(struct kafka_health *health, const struct duebox_host *host, const char *text) {
  if (!health->refused_us || kafka_now_us() - health->refused_us < REFUSAL_HOLDS_US)
    return;
  health->refused_us = 0;
  host->health(host->ctx, false, text);
}

static void say_up(struct kafka_health *health, const struct duebox_host *host) {
  if (health->state == KAFKA_HEALTH_AWAY || health->state == KAFKA_HEALTH_REFUSED)
    host->log(host->ctx, DUEBOX_LOG_INFO, "KAFKA-UP", "the cluster answers again");
  health->state = KAFKA_HEALTH_UP;
  health->refused_us = 0;
  host->health(host->ctx, true, NULL);
}

bool kafka_health_reached(const struct kafka_health *health) {
  return health->state == KAFKA_HEALTH_UP || health->state == KAFKA_HEALTH_REFUSED;
}

void kafka_health_success(struct kafka_health *health, const struct duebox_host *host) {
  if (health->state != KAFKA_HEALTH_UP)
    say_up(health, host);
}

void kafka_health_connected(struct kafka_health *health, const struct duebox_host *host) {
  if (health->state == KAFKA_HEALTH_UNKNOWN || health->state == KAFKA_HEALTH_AWAY)
    say_up(health, host);
}

void kafka_health_strayed(struct kafka_health *health, const struct duebox_host *host) {
  if (health->strayed)
    return;
  health->strayed = true;
  say_down(health, host, KAFKA_HEALTH_REFUSED, "kafka.plaintext",
           "a broker says that it is to be reached on another host, and without TLS nothing goes there",
           "correct its advertised.listeners, or set tls: true or allow_plaintext: true");
}

void kafka_health_unread(struct kafka_health *health, const struct duebox_host *host, const char *word,
                         const char *text, const char *cure) {
  if (health->state != KAFKA_HEALTH_REFUSED)
    say_down(health, host, KAFKA_HEALTH_REFUSED, word, text, cure);
}

bool kafka_health_error(struct kafka_health *health, const struct duebox_host *host, rd_kafka_event_t *event) {
  rd_kafka_resp_err_t err = rd_kafka_event_error(event);
  const char *text = rd_kafka_event_error_string(event);
  const struct kafka_outcome_row *row = kafka_outcome_find(err);
  switch (err) {
  case RD_KAFKA_RESP_ERR__AUTHENTICATION: /* a connection that stands has passed these three */
  case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    say_login_refused(health, host, row->word, text, row->cure);
    break;
  case RD_KAFKA_RESP_ERR__SSL:
  case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    say_down(health, host, KAFKA_HEALTH_AWAY, row->word, text, row->cure);
    break;
  case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
  case RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED:
  case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
  case RD_KAFKA_RESP_ERR__UNKNOWN_PROTOCOL:
  case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    say_down(health, host, KAFKA_HEALTH_REFUSED, row->word, text, row->cure);
    break;
  case RD_KAFKA_RESP_ERR__TRANSPORT:
  case RD_KAFKA_RESP_ERR__RESOLVE:
    forget_refusal(health, host, text);
    break;
  default:
    host->log(host->ctx, DUEBOX_LOG_DEBUG, "KAFKA-EVENT", "%s: %s", rd_kafka_err2name(err), text);
  }
  return rd_kafka_event_error_is_fatal(event);
}
