/* SPDX-License-Identifier: MIT */
#include "core/poll_pace.h"

enum {
  DEAR_US = 2 * 1000,
  SHARE = 200,      /* polling every group may keep the others waiting for 1/200 of the time, so that of a hundred tasks
                       less than one meets it, */
  ASKED_SHARE = 10, /* or 1/10 when there is a reason */
  BACK_MAX_US = 10 * 1000 * 1000,
  BACK_MIN_US = 2 * 1000 * 1000,
  BACK_DEAR_US = 5 * 1000,
  LATE_DEAR_US = 5 * 1000,
  FOUND_US = 10,   /* a position, on a busy machine */
  PART_FADES = 16, /* with each whole one, so that it is measured again where it was long ago */
};

/* The smaller one: a single hiccup of the database says nothing. */
static int64_t smaller(const int64_t took_us[2]) { return took_us[0] < took_us[1] ? took_us[0] : took_us[1]; }

/* What a part takes less. */
static int64_t saved_us(const struct whole_or_part *w) { return smaller(w->whole_us) - smaller(w->part_us); }

static void note(struct whole_or_part *w, bool whole, int64_t took_us, int64_t ended_us) {
  int64_t *took = whole ? w->whole_us : w->part_us;
  took[1] = took[0];
  took[0] = took_us;
  if (!whole)
    return;
  w->ended_us = ended_us;
  for (int i = 0; i < 2; i++)
    w->part_us[i] -= w->part_us[i] / PART_FADES;
}

bool poll_is_dear(const struct poll_pace *pace) { return saved_us(&pace->poll) > DEAR_US; }

bool poll_every_group(const struct poll_pace *pace, int64_t now_us) {
  int64_t share = pace->asked ? ASKED_SHARE : SHARE;
  return !poll_is_dear(pace) || now_us - pace->poll.ended_us >= saved_us(&pace->poll) * share;
}

int64_t poll_back_us(const struct poll_pace *pace) { return pace->back_us ? pace->back_us : BACK_MAX_US; }

int64_t poll_late_from_us(const struct poll_pace *pace, int64_t db_now_us, int64_t now_us) {
  int64_t saved = saved_us(&pace->late);
  return saved <= LATE_DEAR_US || now_us - pace->late.ended_us >= saved * SHARE ? 0 : db_now_us - BACK_MAX_US;
}

void poll_late_done(struct poll_pace *pace, int64_t from_us, int64_t now_us, int64_t took_us, size_t found) {
  int64_t walked_us = took_us - (int64_t)found * FOUND_US;
  note(&pace->late, from_us == 0, walked_us > 0 ? walked_us : 0, now_us);
}

void poll_done(struct poll_pace *pace, bool every, int64_t began_us, int64_t ended_us) {
  int64_t took_us = ended_us - began_us, back_us = poll_back_us(pace);
  note(&pace->poll, every, took_us, ended_us);
  if (every) {
    pace->asked = false;
    return;
  }
  /* What was deleted in that time is walked over too. */
  if (took_us > BACK_DEAR_US)
    back_us /= 2;
  else if (took_us < BACK_DEAR_US / 4)
    back_us *= 2;
  pace->back_us = back_us < BACK_MIN_US ? BACK_MIN_US : back_us > BACK_MAX_US ? BACK_MAX_US : back_us;
}
