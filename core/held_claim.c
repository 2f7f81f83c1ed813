/* SPDX-License-Identifier: MIT */
#include "core/held_claim.h"

#include <stdio.h>

static bool is_there(const struct held_claim *held, int64_t now_us) {
  return held->id && now_us - held->met_us < HELD_CLAIM_GONE_US;
}

void held_claim_met(struct held_claim *held, uint64_t id, const char *message_id, int64_t due_us, int64_t now_us) {
  if (is_there(held, now_us) && held->id != id)
    return;
  if (!is_there(held, now_us)) {
    *held = (struct held_claim){.id = id, .due_us = due_us, .since_us = now_us};
    snprintf(held->message_id, sizeof held->message_id, "%s", message_id);
  }
  held->met_us = now_us;
}

void held_claim_got(struct held_claim *held, uint64_t id) {
  if (held->id == id)
    *held = (struct held_claim){0};
}

int64_t held_claim_age_us(const struct held_claim *held, int64_t now_us) {
  return is_there(held, now_us) ? now_us - held->since_us : 0;
}
