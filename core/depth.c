/* SPDX-License-Identifier: MIT */
#include "core/depth.h"

enum { ROOM_FOR = 2 }; /* more that a confirm in good time makes room for */

uint32_t depth_now(const struct depth *depth) { return depth->most ? depth->most : DEPTH_FIRST; }

static void grow(struct depth *depth, uint32_t limit) {
  uint32_t now = depth_now(depth);
  depth->most = now + ROOM_FOR < limit ? now + ROOM_FOR : limit > now ? limit : now;
}

/* `ahead` tasks took so long: how many take as long as they may? */
static uint32_t fitting(const struct depth *depth, uint32_t ahead, int64_t took_us) {
  double fits = (double)ahead * (double)(depth->base_us + DEPTH_SLACK_US) / (double)took_us;
  return fits > DEPTH_LEAST ? (uint32_t)fits : DEPTH_LEAST;
}

static void lower(uint32_t *most, uint32_t to) { *most = *most < to ? *most : to; }

static void measure(struct depth *depth, int64_t now_us) {
  depth->kept = depth_now(depth);
  depth->most = DEPTH_LEAST;
  depth->measured_from_us = now_us;
}

static void end_measuring(struct depth *depth, int64_t took_us) {
  depth->base_us = took_us;
  depth->most = depth->kept;
  depth->kept = 0;
}

bool depth_learn(struct depth *depth, uint32_t limit, uint32_t ahead, int64_t handed_us, int64_t confirmed_us) {
  uint32_t before = depth_now(depth);
  int64_t took = confirmed_us > handed_us ? confirmed_us - handed_us : 1;
  if (ahead > depth->used)
    depth->used = ahead;
  if (depth->least_us == 0 || took < depth->least_us)
    depth->least_us = took;
  if (depth->base_us == 0 || took < depth->base_us)
    depth->base_us = took;
  if (depth->kept && handed_us >= depth->measured_from_us)
    end_measuring(depth, took);
  int64_t waited = took - depth->base_us;
  depth->most = depth_now(depth);
  if (waited > DEPTH_SLACK_US)
    lower(depth->kept ? &depth->kept : &depth->most, fitting(depth, ahead, took));
  else if (!depth->kept && waited <= DEPTH_SLACK_US / 2 && ahead >= depth->most / 2)
    grow(depth, limit);
  return depth->most != before;
}

bool depth_tick(struct depth *depth, int64_t now_us) {
  if (depth->kept || now_us - depth->period_us < DEPTH_PERIOD_US)
    return false;
  uint32_t before = depth_now(depth), useful = depth->used > DEPTH_FIRST / 2 ? 2 * depth->used : DEPTH_FIRST;
  depth->most = before;
  lower(&depth->most, useful);
  if (depth->least_us > depth->base_us + DEPTH_SLACK_US / 2)
    measure(depth, now_us);
  else if (depth->least_us > 0)
    depth->base_us = depth->least_us;
  depth->used = 0;
  depth->least_us = 0;
  depth->period_us = now_us;
  return depth->most != before;
}
