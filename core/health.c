/* SPDX-License-Identifier: MIT */
#include "core/health.h"

#include <stdio.h>

enum {
  BACKOFF_MIN_US = 250 * 1000,
  BACKOFF_MAX_US = 30 * 1000 * 1000,
  REFUSED_MAX_US = 1000 * 1000, /* of one that answers with failures: perhaps it is the tasks, and others wait behind */
  WISH_MAX_US = 60 * 1000 * 1000, /* of a destination that is down; one that answers may ask for more */
  RAMP_FIRST = 4,                 /* after an outage: so many at first, one more for each that was taken */
};

static void note(struct health *health, const struct health_trouble *trouble) {
  health->suspect = trouble->row;
  snprintf(health->error_class, sizeof health->error_class, "%s", trouble->error_class ? trouble->error_class : "");
  snprintf(health->reason, sizeof health->reason, "%s",
           trouble->message ? trouble->message : "the destination is down");
}

static int64_t wish_us(const struct health_trouble *trouble, int64_t most_us) {
  if (trouble->retry_after_ms <= 0)
    return 0;
  return trouble->retry_after_ms < most_us / 1000 ? trouble->retry_after_ms * 1000 : most_us;
}

bool health_may_send(const struct health *health, int64_t now_us) {
  return health->state == HEALTH_SUSPENDED ? now_us >= health->probe_at_us : health->state != HEALTH_PROBING;
}

bool health_send(struct health *health, uint64_t row) {
  if (health->state != HEALTH_SUSPENDED)
    return false;
  health->state = HEALTH_PROBING;
  health->held = false;
  health->suspect = row;
  return true;
}

static bool suspend(struct health *health, const struct health_trouble *trouble, int64_t least_us, int64_t most_us,
                    int64_t now_us) {
  bool was = health_suspended(health);
  health->backoff_us = health->backoff_us ? health->backoff_us * 2 : BACKOFF_MIN_US;
  if (health->backoff_us > most_us)
    health->backoff_us = most_us;
  health->probe_at_us = now_us + (least_us > health->backoff_us ? least_us : health->backoff_us);
  health->state = HEALTH_SUSPENDED;
  health->ramp = 0;
  note(health, trouble);
  return !was;
}

/* Of a burst of bad news the first counts. */
static bool is_known(const struct health *health, int64_t now_us) {
  return health->state == HEALTH_SUSPENDED && now_us < health->probe_at_us;
}

bool health_down(struct health *health, const struct health_trouble *trouble, int64_t now_us) {
  return !is_known(health, now_us) && suspend(health, trouble, wish_us(trouble, WISH_MAX_US), BACKOFF_MAX_US, now_us);
}

bool health_hold(struct health *health, const struct health_trouble *trouble, int64_t now_us) {
  int64_t until_us = now_us + wish_us(trouble, (int64_t)HEALTH_HOLD_MAX_MS * 1000);
  health->held = true;
  if (!is_known(health, now_us))
    return suspend(health, trouble, until_us - now_us, BACKOFF_MAX_US, now_us);
  if (health->probe_at_us < until_us) {
    health->probe_at_us = until_us;
    note(health, trouble);
  }
  return false;
}

bool health_refused(struct health *health, const struct health_trouble *trouble, uint32_t limit, int64_t concurrency,
                    int64_t now_us) {
  if (health->refusals < UINT32_MAX)
    health->refusals++;
  if (limit > 0 && health->refusals >= limit)
    return !is_known(health, now_us) && suspend(health, trouble, 0, REFUSED_MAX_US, now_us);
  bool changed = health_answered(health, false, concurrency);
  if (!health_suspended(health) && health_doubted(health, limit) && concurrency > RAMP_FIRST) {
    health->state = HEALTH_RAMPING; /* few at a time: one that is taken comes between them */
    health->ramp = RAMP_FIRST;
  }
  return changed;
}

static bool rise(struct health *health, int64_t concurrency) {
  bool was = health_suspended(health);
  if (was) {
    health->state = concurrency > RAMP_FIRST ? HEALTH_RAMPING : HEALTH_OK;
    health->ramp = concurrency > RAMP_FIRST ? RAMP_FIRST : 0;
    health->error_class[0] = health->reason[0] = '\0';
  } else if (health->state == HEALTH_RAMPING && ++health->ramp >= concurrency) {
    health->state = HEALTH_OK;
    health->ramp = 0;
  }
  return was;
}

bool health_answered(struct health *health, bool success, int64_t concurrency) {
  if (success)
    health->refusals = 0;
  if (health->held)
    return false;
  health->backoff_us = 0;
  return rise(health, concurrency);
}

bool health_reachable(struct health *health, int64_t concurrency) {
  return health_suspended(health) && !health->held && rise(health, concurrency);
}

void health_probe_lost(struct health *health, int64_t now_us) {
  if (!health_suspended(health))
    return;
  health->state = HEALTH_SUSPENDED;
  if (health->probe_at_us < now_us + BACKOFF_MIN_US)
    health->probe_at_us = now_us + BACKOFF_MIN_US;
}

int64_t health_wakes_at(const struct health *health) {
  return health->state == HEALTH_SUSPENDED ? health->probe_at_us : INT64_MAX;
}

const char *health_state_text(enum health_state state) {
  static const char *const texts[] = {
      [HEALTH_OK] = "ok", [HEALTH_SUSPENDED] = "suspended", [HEALTH_PROBING] = "probing", [HEALTH_RAMPING] = "ramping"};
  return texts[state];
}
