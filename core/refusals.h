/* SPDX-License-Identifier: MIT
 *
 * core/refusals.h - what the server refuses of a lane's outcomes: a history without a partition for the day, a trigger,
 * a CHECK.
 *
 * A lane of whose outcomes one was refused a moment ago has its outcomes written apart from those of others, which
 * would have to be found out again among them. What comes to an event is refused in the same form time and again,
 * without one that is taken whole between: then the others are written in that form at once, with those of all lanes,
 * and one now and then is tried whole. Where some are only cut, others that are taken whole do not count until there
 * are many in a row. What is written apart has turns of its own, and the others have theirs between. Pure.
 *
 * @thread the owner's: a lane's are the settler's, those of results the session's that writes them
 */
#ifndef CORE_REFUSALS_H
#define CORE_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/store.h"

enum {
  REFUSALS_APART_US = 5 * 1000 * 1000, /* after the last refusal outcomes are written with those of others again */
  REFUSALS_WHOLE_US = 1000 * 1000,     /* how often one is tried whole */
  REFUSALS_ALIKE = 64,                 /* so many in a row, and none of them was taken whole: the next will not be */
};

/* All zero: nothing is refused. */
struct outcome_refusals {
  int64_t apart_until_us; /* monotonic */
  uint64_t count;         /* of refusals so far */
  struct refusals_of {
    enum decision_form form; /* in which the last ones were taken */
    unsigned alike;          /* how many of them in a row, */
    unsigned wholes;         /* and how many in a row were taken whole since */
    int64_t whole_at_us;     /* monotonic: when the next one is tried whole, where all are alike */
  } of[TASK_EVENTS];
};

enum refusals_way {
  REFUSALS_TOGETHER, /* with those of other lanes */
  REFUSALS_APART,    /* with those of its lane alone */
  REFUSALS_PROBE,    /* the same, and whole, whatever is known */
};

/* How an outcome that comes to this event is to be written. */
MUSTCHECK enum refusals_way refusals_way(struct outcome_refusals *refusals, enum task_event event, int64_t now_us);
/* In which form it is to be tried first: DECISION_WHOLE, where nothing is known. */
enum decision_form refusals_least(const struct outcome_refusals *refusals, enum task_event event);
/* An outcome was tried in the form `least` at first and written in another one; DECISION_FORMS = it is refused in every
 * form. True: from now on others are written in that form at once, or whole again, which they were not before. */
bool refusals_note(struct outcome_refusals *refusals, enum task_event event, enum decision_form least,
                   enum decision_form written, int64_t now_us);

/* When those that are written apart have their turn. All zero: at once. */
struct refusals_pace {
  int64_t at_us;   /* monotonic: not before; */
  int64_t rest_us; /* and so much later where others wait */
};

/* Whether it is their turn. others: some wait that are not written apart. */
bool refusals_turn(const struct refusals_pace *pace, bool others, int64_t now_us);
/* A turn is over. dear: something was refused, or found out. */
void refusals_rest(struct refusals_pace *pace, bool dear, int64_t began_us, int64_t now_us);
/* How many are tried in the next turn, after `rows` of them took took_us: as many as take about turn_us. */
size_t refusals_rows(size_t rows, int64_t took_us, int64_t turn_us, size_t most);

#endif
