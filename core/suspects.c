/* SPDX-License-Identifier: MIT */
#include "core/suspects.h"

enum suspicion suspicion_of(uint32_t recoveries, uint32_t max_recoveries) {
  if (recoveries == 0)
    return SUSPICION_NONE;
  return recoveries + 1 < max_recoveries ? SUSPICION_SHARED : SUSPICION_LAST;
}

bool suspects_may_go(const struct suspects *suspects, enum suspicion suspicion, bool daemon_last) {
  if (suspicion == SUSPICION_SHARED)
    return !suspects->last_out && suspects->out <= suspects->survived;
  return suspicion == SUSPICION_NONE || (suspects->out == 0 && !daemon_last);
}

void suspects_went(struct suspects *suspects, enum suspicion suspicion, bool *daemon_last) {
  if (suspicion == SUSPICION_NONE)
    return;
  suspects->out++;
  if (suspicion == SUSPICION_LAST)
    suspects->last_out = *daemon_last = true;
}

void suspects_back(struct suspects *suspects, enum suspicion suspicion, bool survived, bool *daemon_last) {
  if (suspicion == SUSPICION_NONE)
    return;
  suspects->out--;
  if (suspicion == SUSPICION_LAST)
    suspects->last_out = *daemon_last = false;
  if (survived && suspects->survived < SUSPECTS_MAX - 1)
    suspects->survived++;
}
