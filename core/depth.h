/* SPDX-License-Identifier: MIT
 *
 * core/depth.h - how many tasks of a lane may be at a sink whose routes share one line (DUEBOX_CAP_SHARED_LINE).
 *
 * Such a destination works off what one connection brings it in turn. What is slow there, a fanout to many queues say,
 * must not stand before the others in thousands. So a lane has no more at the sink than is confirmed in a short time,
 * DEPTH_SLACK_US, beyond what confirming takes where nothing waits. That much is distance and costs nobody anything: a
 * far sink gets as many as a near one that is as quick.
 *
 * It begins with DEPTH_FIRST. While confirms come early each one makes room for two more, as long as there is use for
 * them. One that comes late says how many would not have: of those that were there when the task was handed over, the
 * part that its time is too long by. What was of no use for DEPTH_PERIOD_US is taken back, so that a lane which was
 * quick long ago begins carefully.
 *
 * What confirming takes where nothing waits is the least that it took, in a period of which some part was quick. After
 * one of which none was, it is measured anew: with DEPTH_LEAST tasks, until one of them is confirmed.
 *
 * Pure: no clock, no lock. Belongs to the scheduler thread. All zero is a lane that had nothing at its sink yet.
 */
#ifndef CORE_DEPTH_H
#define CORE_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

enum { DEPTH_FIRST = 200, DEPTH_LEAST = 4 }; /* RabbitMQ stops reading behind 200 to 400 unread ones of a channel */
enum { DEPTH_SLACK_US = 200 * 1000, DEPTH_PERIOD_US = 10 * 1000 * 1000 };

struct depth {
  uint32_t most;            /* tasks; 0 = DEPTH_FIRST */
  uint32_t kept;            /* what it was, while it is measured what confirming takes; 0 = it is not */
  uint32_t used;            /* the most that there were in this period */
  int64_t base_us;          /* what confirming takes where nothing waits; 0 = not known */
  int64_t least_us;         /* the least that it took in this period; 0 = nothing was confirmed */
  int64_t measured_from_us; /* monotonic: what is handed over from then on counts */
  int64_t period_us;        /* monotonic: when this period began */
};

uint32_t depth_now(const struct depth *depth);
/* A task was delivered. `ahead`: how many there were when it was handed over, it included; `limit`: how many there may
 * be in any case. True when the depth is another one now. */
bool depth_learn(struct depth *depth, uint32_t limit, uint32_t ahead, int64_t handed_us, int64_t confirmed_us);
/* To be called from time to time, and no less often when nothing is confirmed. True as above. */
bool depth_tick(struct depth *depth, int64_t now_us);

#endif
