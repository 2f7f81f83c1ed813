/* SPDX-License-Identifier: MIT
 *
 * admin/turns.h - results that wait for a worker: whose turn it is.
 *
 * They wait in lanes, one for each peer and route (as far as that is known). The peers take turns, and so do the lanes
 * of each. A lane may have no more workers than are left, so that one whose results take long leaves some to others,
 * however many of them come. What waits is bounded per lane and per peer; who has more than that is refused at once,
 * and nobody else notices. Pure: no clock, no lock, no memory but its own.
 *
 * @locks the caller's
 */
#ifndef ADMIN_TURNS_H
#define ADMIN_TURNS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/base/attr.h"

struct turn_lane;

/* Where something waits. */
struct turn_key {
  struct in6_addr peer; /* IPv4 as mapped */
  uint32_t lane;        /* of the peer */
};

/* Part of what waits. */
struct turn {
  STAILQ_ENTRY(turn) link;
  struct turn_lane *lane;
};

struct turn_limits {
  unsigned workers;            /* that there may be */
  unsigned lane_max, peer_max; /* that may wait */
};

struct turns {
  struct turn_limits limits;
  STAILQ_HEAD(, turn_peer) peers; /* the first has its turn */
  unsigned waiting, working;
};

void turns_init(struct turns *turns, const struct turn_limits *limits);
/* Has it wait for its turn. False: so many of its lane or of its peer wait already, or there is no memory. */
MUSTCHECK bool turns_put(struct turns *turns, const struct turn_key *key, struct turn *turn);
/* What a worker is to do next; NULL = nothing that waits may have one more worker now. Its lane is at work until
 * turns_done(). */
struct turn *turns_take(struct turns *turns);
/* Whether turns_take() would find something. */
bool turns_ready(const struct turns *turns);
/* A worker is free again that worked for this lane. */
void turns_done(struct turns *turns, struct turn_lane *lane);

#endif
