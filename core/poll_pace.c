/* SPDX-License-Identifier: MIT */
#include "core/poll_pace.h"

enum {
  DEAR_US = 2 * 1000,
  SHARE = 200,      /* polling every group may keep the others waiting for 1/200 of the time, so that of a hundred tasks
                       less than one meets it, */
  ASKED_SHARE = 10, /* or 1/10 when there is a reason, */
  REST_MAX_US = 30 * 1000 * 1000, /* but nothing waits for longer than this */
  BACK_MAX_US = 10 * 1000 * 1000,
  BACK_MIN_US = 2 * 1000 * 1000,
  BACK_DEAR_US = 5 * 1000,
  LATE_DEAR_US = 20 * 1000,
  FOUND_US = 10, /* a position, on a busy machine */
};

int64_t pace_rest_us(int64_t took_us, int64_t share, int64_t most_us) {
  return took_us < most_us / share ? took_us * share : most_us;
}

/* The least: hiccups of the database say nothing. */
static int64_t saved_us(const struct whole_or_part *w) {
  int64_t least = w->saved_us[0];
  for (int i = 1; i < PACE_SAMPLES; i++)
    least = w->saved_us[i] < least ? w->saved_us[i] : least;
  return least;
}

static bool whole_is_next(const struct whole_or_part *w, int64_t dear_us, int64_t share, int64_t now_us) {
  int64_t saved = saved_us(w);
  return saved <= dear_us || now_us - w->ended_us >= pace_rest_us(saved, share, REST_MAX_US);
}

static void note(struct whole_or_part *w, bool whole, int64_t dear_us, int64_t took_us, int64_t ended_us) {
  bool compared = !whole && w->whole_us, cheap = whole && took_us <= dear_us;
  if (compared || cheap) {
    for (int i = PACE_SAMPLES - 1; i > 0; i--)
      w->saved_us[i] = w->saved_us[i - 1];
    w->saved_us[0] = compared && w->whole_us > took_us ? w->whole_us - took_us : 0;
  }
  if (whole || compared)
    w->whole_us = whole && !cheap ? took_us : 0;
  if (whole)
    w->ended_us = ended_us;
}

bool poll_is_dear(const struct poll_pace *pace) { return saved_us(&pace->poll) > DEAR_US; }

bool poll_every_group(const struct poll_pace *pace, int64_t now_us) {
  /* After a long one comes one of known groups, which shows what that would have saved. */
  return !pace->poll.whole_us && whole_is_next(&pace->poll, DEAR_US, pace->asked ? ASKED_SHARE : SHARE, now_us);
}

bool poll_probe_is_next(const struct poll_pace *pace, int64_t now_us) {
  return poll_is_dear(pace) && now_us >= pace->probe.at_us;
}

void poll_probe_done(struct poll_pace *pace, size_t shards, int64_t began_us, int64_t ended_us) {
  struct poll_probe *probe = &pace->probe;
  int64_t took_us = ended_us - began_us;
  probe->at_us = ended_us + pace_rest_us(took_us, SHARE, REST_MAX_US);
  if (took_us - pace->part_us > DEAR_US) {
    probe->quick = 0;
    return;
  }
  probe->turn++;
  if (++probe->quick < shards)
    return;
  probe->quick = 0;
  pace->poll.ended_us = pace->late.ended_us = ended_us - REST_MAX_US;
}

int64_t poll_back_us(const struct poll_pace *pace) { return pace->back_us ? pace->back_us : BACK_MAX_US; }

int64_t poll_late_from_us(const struct poll_pace *pace, int64_t db_now_us, int64_t now_us) {
  bool whole = !pace->late.whole_us && whole_is_next(&pace->late, LATE_DEAR_US, SHARE, now_us);
  return whole ? 0 : db_now_us - BACK_MAX_US;
}

bool poll_late_compares(const struct poll_pace *pace) { return pace->late.whole_us; }

void poll_late_done(struct poll_pace *pace, int64_t from_us, int64_t now_us, int64_t took_us, size_t found,
                    size_t pages) {
  int64_t walked_us = (took_us - (int64_t)found * FOUND_US) / (int64_t)pages;
  note(&pace->late, from_us == 0, LATE_DEAR_US, walked_us > 0 ? walked_us : 0, now_us);
}

int64_t poll_late_bound_from_us(const struct poll_pace *pace, int64_t db_now_us, int64_t now_us) {
  return now_us >= pace->late_bound_at_us ? 0 : db_now_us - BACK_MAX_US;
}

bool poll_late_bound_ends(struct poll_pace *pace, int64_t at_us, int64_t db_now_us, int64_t now_us, int64_t took_us) {
  if (took_us <= LATE_DEAR_US || at_us >= db_now_us - BACK_MAX_US)
    return false;
  pace->late_bound_at_us = now_us + pace_rest_us(took_us, SHARE, REST_MAX_US);
  return true;
}

void poll_done(struct poll_pace *pace, bool every, size_t turns, int64_t began_us, int64_t ended_us) {
  int64_t took_us = ended_us - began_us, back_us = poll_back_us(pace);
  note(&pace->poll, every, DEAR_US, took_us * (int64_t)turns, ended_us);
  if (every) {
    pace->asked = false;
    return;
  }
  pace->part_us = took_us;
  /* What was deleted in that time is walked over too. */
  if (took_us > BACK_DEAR_US)
    back_us /= 2;
  else if (took_us < BACK_DEAR_US / 4)
    back_us *= 2;
  pace->back_us = back_us < BACK_MIN_US ? BACK_MIN_US : back_us > BACK_MAX_US ? BACK_MAX_US : back_us;
}
