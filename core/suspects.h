/* SPDX-License-Identifier: MIT
 *
 * core/suspects.h - how tasks leave again that were in flight in a crash: one of them may be what kills the process.
 *
 * All that is kept of it is how many crashes in a row a row was in flight in (its recoveries). Where another one makes
 * it poison, it goes when no other suspect of its route is out, and no other last chance of the daemon: a crash then
 * costs nobody else. Earlier the suspects of a route go in a group that begins with one, grows by one with each that
 * came to an end, and begins anew with the process: whoever shared a crash with the poison is one of a small group.
 *
 * Pure. @thread scheduler
 */
#ifndef CORE_SUSPECTS_H
#define CORE_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

enum { SUSPECTS_MAX = 64 }; /* of a route out at a time: so many may need a last chance after the next crash */

enum suspicion {
  SUSPICION_NONE,
  SUSPICION_SHARED, /* it has another chance after this one */
  SUSPICION_LAST,
};

/* Those of a route; all zero is none. */
struct suspects {
  uint32_t out;
  uint32_t survived; /* came to an end in this process, as far as the group grows */
  bool last_out;     /* the one that is out has its last chance */
};

enum suspicion suspicion_of(uint32_t recoveries, uint32_t max_recoveries);
/* Whether another one may leave now. daemon_last: a last chance of the daemon is out. */
bool suspects_may_go(const struct suspects *suspects, enum suspicion suspicion, bool daemon_last);
void suspects_went(struct suspects *suspects, enum suspicion suspicion, bool *daemon_last);
/* One that left is back. survived: it came to an end, and we are still here. */
void suspects_back(struct suspects *suspects, enum suspicion suspicion, bool survived, bool *daemon_last);

#endif
