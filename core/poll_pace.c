/* SPDX-License-Identifier: MIT */
#include "core/poll_pace.h"

enum {
  DEAR_US = 2 * 1000,
  SHARE = 200,      /* polling every group may keep the others waiting for 1/200 of the time, so that of a hundred tasks
                       less than one meets it, */
  ASKED_SHARE = 10, /* or 1/10 when there is a reason */
  BACK_MAX_US = 10 * 1000 * 1000,
  BACK_MIN_US = 200 * 1000,
  BACK_DEAR_US = 5 * 1000,
  LATE_MIN_US = 1000 * 1000,
  FOUND_US = 10, /* a position, on a busy machine */
};

static int64_t cost_us(const struct poll_pace *pace) {
  /* The smaller one: a single hiccup of the database says nothing. */
  return pace->took_us[0] < pace->took_us[1] ? pace->took_us[0] : pace->took_us[1];
}

bool poll_is_dear(const struct poll_pace *pace) { return cost_us(pace) > DEAR_US; }

bool poll_every_group(const struct poll_pace *pace, int64_t now_us) {
  int64_t share = pace->asked ? ASKED_SHARE : SHARE;
  return !poll_is_dear(pace) || now_us - pace->ended_us >= cost_us(pace) * share;
}

int64_t poll_back_us(const struct poll_pace *pace) { return pace->back_us ? pace->back_us : BACK_MAX_US; }

int64_t poll_late_from_us(const struct poll_pace *pace, int64_t db_now_us) {
  return !pace->late_us && !poll_is_dear(pace) ? 0 : db_now_us - (pace->late_us ? pace->late_us : BACK_MAX_US);
}

void poll_late_done(struct poll_pace *pace, int64_t took_us, size_t found) {
  if (took_us > BACK_DEAR_US + (int64_t)found * FOUND_US)
    pace->late_us = !pace->late_us ? BACK_MAX_US : pace->late_us / 2 > LATE_MIN_US ? pace->late_us / 2 : LATE_MIN_US;
  else
    pace->late_us = pace->late_us * 2 > BACK_MAX_US ? 0 : pace->late_us * 2;
}

void poll_done(struct poll_pace *pace, bool every, int64_t began_us, int64_t ended_us) {
  int64_t took_us = ended_us - began_us, back_us = poll_back_us(pace);
  if (every) {
    pace->took_us[1] = pace->took_us[0];
    pace->took_us[0] = took_us;
    pace->ended_us = ended_us;
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
