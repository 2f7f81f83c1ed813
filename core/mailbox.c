/* SPDX-License-Identifier: MIT */
#include "core/mailbox.h"

void mailbox_init(struct mailbox *box) {
  *box = (struct mailbox){0};
  mutex_init(&box->lock);
  cond_init(&box->filled);
}

void mailbox_destroy(struct mailbox *box) {
  cond_destroy(&box->filled);
  mutex_destroy(&box->lock);
}

void mailbox_put(struct mailbox *box, struct flight_list *list) {
  if (!list->head)
    return;
  mutex_lock(&box->lock);
  flight_list_join(&box->list, list);
  cond_signal(&box->filled);
  mutex_unlock(&box->lock);
}

void mailbox_poke(struct mailbox *box) {
  mutex_lock(&box->lock);
  box->poked = true;
  cond_signal(&box->filled);
  mutex_unlock(&box->lock);
}

bool mailbox_take(struct mailbox *box, int64_t deadline_us, struct flight_list *out) {
  mutex_lock(&box->lock);
  while (deadline_us > 0 && !box->list.head && !box->poked)
    if (!cond_wait_until(&box->filled, &box->lock, deadline_us))
      break;
  bool poked = box->poked;
  box->poked = false;
  flight_list_join(out, &box->list);
  mutex_unlock(&box->lock);
  return poked;
}

size_t mailbox_count(struct mailbox *box) {
  mutex_lock(&box->lock);
  size_t count = box->list.count;
  mutex_unlock(&box->lock);
  return count;
}
