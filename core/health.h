/* SPDX-License-Identifier: MIT
 *
 * core/health.h - how a destination is doing: one small state machine, used for each route and for each expanded target
 * that is in trouble. Pure: times come in as arguments.
 *
 *   ok ──down, hold, too many refusals──▶ suspended ──a task leaves at probe_at──▶ probing
 *   ▲                                         ▲                                       │
 *   └──enough answers── ramping ◀──answered───┴──────────down, or nothing learned─────┘
 *
 * Half as many refusals as suspend it take it from ok to ramping.
 */
#ifndef CORE_HEALTH_H
#define CORE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

enum health_state { HEALTH_OK, HEALTH_SUSPENDED, HEALTH_PROBING, HEALTH_RAMPING };

enum {
  HEALTH_CLASS_MAX = 63,
  HEALTH_REASON_MAX = 255,
  HEALTH_HOLD_MAX_MS = 60 * 60 * 1000, /* a destination's own wish (Retry-After) is honoured up to this */
};

struct health {
  enum health_state state;
  int64_t probe_at_us; /* monotonic; SUSPENDED: when one task may try */
  int64_t backoff_us;  /* doubles with every probe that fails; 0 when the destination answers */
  int64_t ramp;        /* RAMPING: how many tasks may be in flight for now */
  bool held;           /* SUSPENDED by its own wish: answers to what was sent before do not end that */
  uint32_t refusals;   /* in a row, and none of them a success */
  uint64_t suspect;    /* id of the row whose outcome suspended it, or of its probe */
  char error_class[HEALTH_CLASS_MAX + 1];
  char reason[HEALTH_REASON_MAX + 1];
};

/* What went wrong, and with which row. */
struct health_trouble {
  const char *error_class, *message; /* NULL = not known */
  uint64_t row;
  int64_t retry_after_ms; /* the destination's own wish, -1 when it has none */
};

/* Nothing may be sent but, from probe_at on, one probe. */
static inline bool health_suspended(const struct health *health) {
  return health->state == HEALTH_SUSPENDED || health->state == HEALTH_PROBING;
}
/* Neither in trouble nor with anything left of it that an answer would end. */
static inline bool health_untroubled(const struct health *health) {
  return health->state == HEALTH_OK && health->refusals == 0 && health->backoff_us == 0;
}
/* Half as many failures in a row as suspend it, or more: perhaps it is the tasks. */
static inline bool health_doubted(const struct health *health, uint32_t limit) {
  return limit > 0 && health->refusals >= limit - limit / 2;
}
/* Whether a task may be sent now, be it as the probe. */
bool health_may_send(const struct health *health, int64_t now_us);
/* A task is sent: true when it is the probe. */
bool health_send(struct health *health, uint64_t row);
/* The destination is down. Of a burst of bad news the first counts. True when it was not suspended before. */
bool health_down(struct health *health, const struct health_trouble *trouble, int64_t now_us);
/* The destination asks for rest, for trouble->retry_after_ms. True when it was not suspended before. */
bool health_hold(struct health *health, const struct health_trouble *trouble, int64_t now_us);
/* The destination answered with a failure of its own; `limit` of them in a row suspend it (0 = never), half as many
 * bring concurrency down to where it begins after an outage, and fewer are an answer. True when that changed whether it
 * is suspended. */
bool health_refused(struct health *health, const struct health_trouble *trouble, uint32_t limit, int64_t concurrency,
                    int64_t now_us);
/* The destination answered. After an outage concurrency grows step by step, up to `concurrency`; 0 = at once. True when
 * it was suspended. */
bool health_answered(struct health *health, bool success, int64_t concurrency);
/* The plugin reports that its destination is reachable again: as an answer, but the back-off stays until a task has
 * succeeded. */
bool health_reachable(struct health *health, int64_t concurrency);
/* The probe ended without saying anything (never sent, possibly sent): another one, a little later. */
void health_probe_lost(struct health *health, int64_t now_us);
/* Monotonic time at which a probe may leave; INT64_MAX = not by time alone. */
int64_t health_wakes_at(const struct health *health);

const char *health_state_text(enum health_state state);

#endif
