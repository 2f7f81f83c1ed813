/* SPDX-License-Identifier: MIT */
#include "admin/turns.h"

#include <stdlib.h>
#include <string.h>

/* A lane and a peer live as long as something of theirs waits or is at work: no more than there are connections. */
struct turn_lane {
  STAILQ_ENTRY(turn_lane) link;
  struct turn_peer *peer;
  uint32_t number;
  unsigned waiting, working;
  STAILQ_HEAD(, turn) turns;
};

struct turn_peer {
  STAILQ_ENTRY(turn_peer) link;
  struct in6_addr address;
  unsigned waiting;
  STAILQ_HEAD(, turn_lane) lanes; /* the first has its turn */
};

void turns_init(struct turns *turns, const struct turn_limits *limits) {
  *turns = (struct turns){.limits = *limits};
  STAILQ_INIT(&turns->peers);
}

static struct turn_peer *find_peer(struct turns *turns, const struct in6_addr *address) {
  struct turn_peer *peer;
  STAILQ_FOREACH(peer, &turns->peers, link)
  if (memcmp(&peer->address, address, sizeof *address) == 0)
    return peer;
  if (!(peer = calloc(1, sizeof *peer)))
    return NULL;
  peer->address = *address;
  STAILQ_INIT(&peer->lanes);
  STAILQ_INSERT_TAIL(&turns->peers, peer, link);
  return peer;
}

static struct turn_lane *find_lane(struct turn_peer *peer, uint32_t number) {
  struct turn_lane *lane;
  STAILQ_FOREACH(lane, &peer->lanes, link)
  if (lane->number == number)
    return lane;
  if (!(lane = calloc(1, sizeof *lane)))
    return NULL;
  lane->peer = peer;
  lane->number = number;
  STAILQ_INIT(&lane->turns);
  STAILQ_INSERT_TAIL(&peer->lanes, lane, link);
  return lane;
}

static void forget_idle(struct turns *turns, struct turn_peer *peer, struct turn_lane *lane) {
  if (lane && lane->waiting + lane->working == 0) {
    STAILQ_REMOVE(&peer->lanes, lane, turn_lane, link);
    free(lane);
  }
  if (STAILQ_EMPTY(&peer->lanes)) {
    STAILQ_REMOVE(&turns->peers, peer, turn_peer, link);
    free(peer);
  }
}

bool turns_put(struct turns *turns, const struct turn_key *key, struct turn *turn) {
  struct turn_peer *peer = find_peer(turns, &key->peer);
  struct turn_lane *lane = peer ? find_lane(peer, key->lane) : NULL;
  bool room = lane && lane->waiting < turns->limits.lane_max && peer->waiting < turns->limits.peer_max;
  if (room) {
    turn->lane = lane;
    STAILQ_INSERT_TAIL(&lane->turns, turn, link);
    lane->waiting++;
    peer->waiting++;
    turns->waiting++;
  } else if (peer) {
    forget_idle(turns, peer, lane);
  }
  return room;
}

/* What comes later finds a worker as long as each lane leaves as many as it has. */
static bool is_ready(const struct turns *turns, const struct turn_lane *lane) {
  return lane->waiting > 0 && (lane->working == 0 || lane->working < turns->limits.workers - turns->working);
}

static struct turn_lane *ready_lane(const struct turns *turns, const struct turn_peer *peer) {
  struct turn_lane *lane;
  STAILQ_FOREACH(lane, &peer->lanes, link)
  if (is_ready(turns, lane))
    return lane;
  return NULL;
}

static struct turn_lane *next_lane(const struct turns *turns) {
  struct turn_lane *lane = NULL;
  const struct turn_peer *peer;
  STAILQ_FOREACH(peer, &turns->peers, link)
  if (peer->waiting > 0 && (lane = ready_lane(turns, peer)))
    return lane;
  return NULL;
}

bool turns_ready(const struct turns *turns) { return turns->waiting > 0 && next_lane(turns); }

struct turn *turns_take(struct turns *turns) {
  struct turn_lane *lane = turns->waiting > 0 ? next_lane(turns) : NULL;
  if (!lane)
    return NULL;
  struct turn_peer *peer = lane->peer;
  struct turn *turn = STAILQ_FIRST(&lane->turns);
  STAILQ_REMOVE_HEAD(&lane->turns, link);
  lane->waiting--;
  lane->working++;
  peer->waiting--;
  turns->waiting--;
  turns->working++;
  STAILQ_REMOVE(&peer->lanes, lane, turn_lane, link);
  STAILQ_INSERT_TAIL(&peer->lanes, lane, link);
  STAILQ_REMOVE(&turns->peers, peer, turn_peer, link);
  STAILQ_INSERT_TAIL(&turns->peers, peer, link);
  return turn;
}

void turns_done(struct turns *turns, struct turn_lane *lane) {
  lane->working--;
  turns->working--;
  forget_idle(turns, lane->peer, lane);
}
