/* SPDX-License-Identifier: MIT
 *
 * core/task_state.h - the states of a task, the events that move it, and the one total table of both.
 */
#ifndef CORE_TASK_STATE_H
#define CORE_TASK_STATE_H

#include <stdbool.h>

enum task_state {
#define STATE(symbol, text, living, where) TASK_##symbol,
#include "core/task_state.def"
#undef STATE
  TASK_STATES,
};

enum task_event {
  EVENT_CLAIM,     /* a recorded claim was committed */
  EVENT_PUBLISHED, /* the sink confirmed it and a result is expected */
  EVENT_DONE,      /* confirmed and no result expected, or the result says done */
  EVENT_RETRY,     /* failed with budget left */
  EVENT_DEAD,      /* failed for good */
  EVENT_EXPIRE,    /* expires_at has come */
  EVENT_CANCEL,    /* people */
  EVENT_DEFER,     /* not taken by its destination, which is no failure of the task: later, without using an attempt */
  EVENT_RELEASE,   /* handed back unsent: destination down, shutdown, crash recovery */
  EVENT_HOLD,      /* its route is unknown */
  EVENT_BLOCK,     /* a task before it in its order_key failed */
  EVENT_PROGRESS,  /* the consumer says that it still works: keeps the attempt alive, stores the checkpoint */
  TASK_EVENTS,
};

/* The state that follows, or TASK_STATES where the event cannot happen in that state. Pure and total. */
enum task_state task_state_next(enum task_state state, enum task_event event);

const char *task_state_text(enum task_state state);
/* The state of that text, or TASK_STATES. */
enum task_state task_state_parse(const char *text);
bool task_state_living(enum task_state state);
const char *task_event_text(enum task_event event);

#endif
