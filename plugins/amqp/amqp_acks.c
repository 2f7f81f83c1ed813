/* SPDX-License-Identifier: MIT */
#include "amqp_acks.h"

#include <stdlib.h>
#include <string.h>

bool amqp_acks_init(struct amqp_acks *acks, uint32_t capacity) {
  *acks = (struct amqp_acks){.capacity = capacity};
  acks->list = calloc(capacity, sizeof *acks->list);
  return acks->list != NULL;
}

void amqp_acks_free(struct amqp_acks *acks) {
  free(acks->list);
  acks->list = NULL;
}

void amqp_acks_reset(struct amqp_acks *acks) { acks->count = acks->decided = 0; }

bool amqp_acks_add(struct amqp_acks *acks, uint64_t tag) {
  if (acks->count == acks->capacity || (acks->count && acks->list[acks->count - 1].tag >= tag))
    return false;
  acks->list[acks->count++] = (struct amqp_delivery){.tag = tag};
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
