/* SPDX-License-Identifier: MIT */
#include "core/task_state.h"

#include <string.h>

#include "core/base/attr.h"

static const struct {
  const char *text;
  bool living;
} states[TASK_STATES] = {
#define STATE(symbol, text, living, where) {text, living},
#include "core/task_state.def"
#undef STATE
};

static const char *const events[TASK_EVENTS] = {"claim",  "published", "done",    "retry", "dead",  "expire",
                                                "cancel", "defer",     "release", "hold",  "block", "progress"};

#define ILLEGAL TASK_STATES

/* A result may arrive before the publish of a memory claim is recorded, so a row that still says scheduled can become
 * done, dead or retried, or (by a sign of progress) awaiting. A final state takes no event: dead tasks are retried as a
 * new row (insert from history). */
static const enum task_state next[TASK_STATES][TASK_EVENTS] = {
    /*                   claim         published      done       retry           dead       expire        cancel defer
       release       hold       block         progress */
    [TASK_SCHEDULED] = {TASK_CLAIMED, TASK_AWAITING, TASK_DONE, TASK_SCHEDULED, TASK_DEAD, TASK_EXPIRED, TASK_CANCELLED,
                        TASK_SCHEDULED, TASK_SCHEDULED, TASK_HELD, TASK_BLOCKED, TASK_AWAITING},
    [TASK_CLAIMED] = {ILLEGAL, TASK_AWAITING, TASK_DONE, TASK_SCHEDULED, TASK_DEAD, TASK_EXPIRED, TASK_CANCELLED,
                      TASK_SCHEDULED, TASK_SCHEDULED, ILLEGAL, ILLEGAL, TASK_CLAIMED},
    [TASK_AWAITING] = {ILLEGAL, ILLEGAL, TASK_DONE, TASK_SCHEDULED, TASK_DEAD, TASK_EXPIRED, TASK_CANCELLED, ILLEGAL,
                       ILLEGAL, ILLEGAL, ILLEGAL, TASK_AWAITING},
    [TASK_HELD] = {ILLEGAL, ILLEGAL, TASK_DONE, ILLEGAL, TASK_DEAD, TASK_EXPIRED, TASK_CANCELLED, ILLEGAL,
                   TASK_SCHEDULED, TASK_HELD, ILLEGAL, ILLEGAL},
    [TASK_BLOCKED] = {ILLEGAL, ILLEGAL, TASK_DONE, ILLEGAL, TASK_DEAD, TASK_EXPIRED, TASK_CANCELLED, ILLEGAL,
                      TASK_SCHEDULED, ILLEGAL, TASK_BLOCKED, ILLEGAL},
    [TASK_DONE] = {ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL,
                   ILLEGAL},
    [TASK_DEAD] = {ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL,
                   ILLEGAL},
    [TASK_CANCELLED] = {ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL,
                        ILLEGAL, ILLEGAL},
    [TASK_EXPIRED] = {ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL,
                      ILLEGAL},
};

enum task_state task_state_next(enum task_state state, enum task_event event) { return next[state][event]; }

const char *task_state_text(enum task_state state) { return state < TASK_STATES ? states[state].text : "?"; }

enum task_state task_state_parse(const char *text) {
  for (int i = 0; i < TASK_STATES; i++)
    if (strcmp(states[i].text, text) == 0)
      return (enum task_state)i;
  return TASK_STATES;
}

bool task_state_living(enum task_state state) { return state < TASK_STATES && states[state].living; }

const char *task_event_text(enum task_event event) { return event < TASK_EVENTS ? events[event] : "?"; }
