/* SPDX-License-Identifier: MIT */
#include "amqp_acks.h"

#include <stdlib.h>
#include <string.h>

void amqp_acks_free(struct amqp_acks *acks) {
  free(acks->list);
  *acks = (struct amqp_acks){0};
}

void amqp_acks_reset(struct amqp_acks *acks) { acks->count = acks->decided = acks->limit = acks->old = acks->late = 0; }

uint32_t amqp_acks_want(const struct amqp_acks *acks, int64_t now_us, int64_t patience_us) {
  bool stuck = acks->count > acks->old && acks->count - acks->old >= acks->limit &&
               acks->list[0].state == AMQP_ACK_OPEN && now_us - acks->list[0].at_us >= patience_us;
  return stuck && acks->count < AMQP_ACKS_WIDEST ? acks->count : 0;
}

bool amqp_acks_widen(struct amqp_acks *acks, uint32_t more) {
  uint32_t present = acks->count - acks->old, late = present < acks->limit ? acks->limit - present : 0;
  uint32_t most = acks->count + late + more;
  if (most > acks->room) {
    struct amqp_delivery *wider = realloc(acks->list, most * sizeof *wider);
    if (!wider)
      return false;
    acks->list = wider;
    acks->room = most;
  }
  acks->old = acks->count;
  acks->late = late;
  acks->limit = more;
  return true;
}

bool amqp_acks_add(struct amqp_acks *acks, uint64_t tag, int64_t at_us) {
  if (acks->count - acks->old >= acks->limit + acks->late || (acks->count && acks->list[acks->count - 1].tag >= tag))
    return false;
  acks->list[acks->count++] = (struct amqp_delivery){.tag = tag, .at_us = at_us};
  return true;
}

static struct amqp_delivery *find(const struct amqp_acks *acks, uint64_t tag) {
  uint32_t low = 0, high = acks->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (acks->list[middle].tag < tag)
      low = middle + 1;
    else
      high = middle;
  }
  return low < acks->count && acks->list[low].tag == tag ? &acks->list[low] : NULL;
}

bool amqp_acks_decide(struct amqp_acks *acks, uint64_t tag, bool committed) {
  struct amqp_delivery *delivery = find(acks, tag);
  if (!delivery || delivery->state != AMQP_ACK_OPEN)
    return false;
  delivery->state = committed ? AMQP_ACK_COMMITTED : AMQP_ACK_REFUSED;
  acks->decided++;
  return true;
}

static void forget(struct amqp_acks *acks, uint32_t from, uint32_t n) {
  uint32_t old = from < acks->old ? acks->old - from : 0;
  acks->old -= n < old ? n : old;
  acks->count -= n;
  acks->decided -= n;
  memmove(&acks->list[from], &acks->list[from + n], (acks->count - from) * sizeof acks->list[0]);
}

bool amqp_acks_next(struct amqp_acks *acks, struct amqp_ack_frame *frame) {
  if (!acks->decided)
    return false;
  uint32_t run = 0;
  while (run < acks->count && acks->list[run].state == AMQP_ACK_COMMITTED)
    run++;
  if (run) {
    *frame = (struct amqp_ack_frame){.tag = acks->list[run - 1].tag, .multiple = run > 1};
    forget(acks, 0, run);
    return true;
  }
  uint32_t i = 0;
  while (acks->list[i].state == AMQP_ACK_OPEN)
    i++;
  *frame = (struct amqp_ack_frame){.tag = acks->list[i].tag, .requeue = acks->list[i].state == AMQP_ACK_REFUSED};
  forget(acks, i, 1);
  return true;
}
