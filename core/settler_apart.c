/* SPDX-License-Identifier: MIT
 *
 * core/settler_apart.c - outcomes that wait in lanes, whose turn it is one after the other.
 */
#include "core/lane.h"
#include "core/settler.h"

static struct lane_outcomes *of(struct lane *lane, const struct settler_lanes *lanes) {
  return &lane->outcomes[lanes->kind];
}

static void queue(struct settler_lanes *lanes, struct lane *lane) {
  of(lane, lanes)->next = NULL;
  *(lanes->first ? &of(lanes->last, lanes)->next : &lanes->first) = lane;
  lanes->last = lane;
}

void settler_lanes_put(struct settler_lanes *lanes, struct flight *flight) {
  struct lane_outcomes *outcomes = of(flight->lane, lanes);
  if (!outcomes->flights.head)
    queue(lanes, flight->lane);
  flight_list_add(&outcomes->flights, flight);
  lanes->count++;
}

struct flight *settler_lanes_take(struct settler_lanes *lanes, bool turn) {
  struct lane *lane = lanes->first;
  struct flight *flight = flight_list_pop(&of(lane, lanes)->flights);
  lanes->count--;
  bool more = of(lane, lanes)->flights.head != NULL;
  if (more && (!turn || lane == lanes->last)) /* the last one is the only one */
    return flight;
  lanes->first = of(lane, lanes)->next;
  if (more)
    queue(lanes, lane);
  return flight;
}
