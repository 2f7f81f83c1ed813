/* SPDX-License-Identifier: MIT */
#include "core/held_claim.h"

#include <stdio.h>
#include <string.h>

static bool is_there(const struct held_claim *held, int64_t now_us) {
  return held->id && now_us - held->met_us < HELD_CLAIM_GONE_US;
}

void held_claim_met(struct held_claim *held, uint64_t id, const char *message_id, const struct held_place *place,
                    int64_t now_us) {
  bool there = is_there(held, now_us);
  if (there && held->id != id)
    return;
  if (!there || held->place.due_us != place->due_us) {
    *held = (struct held_claim){.id = id, .place = *place, .since_us = now_us};
    snprintf(held->message_id, sizeof held->message_id, "%s", message_id);
  }
  held->met_us = now_us;
  held->place.now_us = place->now_us;
}

bool held_claim_found(const struct held_claim *held, const char *route, const struct store_group *groups,
                      size_t count) {
  const struct held_place *place = &held->place;
  for (size_t i = 0; i < count; i++)
    if (groups[i].state == TASK_SCHEDULED && groups[i].shard == place->shard && groups[i].priority == place->priority &&
        groups[i].next_us <= place->now_us && strcmp(groups[i].route, route) == 0)
      return true;
  return false;
}

void held_claim_forget(struct held_claim *held) { *held = (struct held_claim){0}; }

void held_claim_got(struct held_claim *held, uint64_t id) {
  if (held->id == id)
    held_claim_forget(held);
}

int64_t held_claim_age_us(const struct held_claim *held, int64_t now_us) {
  return is_there(held, now_us) ? now_us - held->since_us : 0;
}
