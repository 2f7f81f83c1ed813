/* SPDX-License-Identifier: MIT */
#include "core/mailbox.h"

#include <errno.h>
#include <time.h>

void mailbox_init(struct mailbox *box) {
  *box = (struct mailbox){0};
  pthread_mutex_init(&box->lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&box->filled, &attr);
  pthread_condattr_destroy(&attr);
}

void mailbox_destroy(struct mailbox *box) {
  pthread_cond_destroy(&box->filled);
  pthread_mutex_destroy(&box->lock);
}

void mailbox_put(struct mailbox *box, struct flight_list *list) {
  if (!list->head)
    return;
  pthread_mutex_lock(&box->lock);
  flight_list_join(&box->list, list);
  pthread_cond_signal(&box->filled);
  pthread_mutex_unlock(&box->lock);
}

void mailbox_poke(struct mailbox *box) {
  pthread_mutex_lock(&box->lock);
  box->poked = true;
  pthread_cond_signal(&box->filled);
  pthread_mutex_unlock(&box->lock);
}

bool mailbox_take(struct mailbox *box, int64_t deadline_us, struct flight_list *out) {
  struct timespec until = {.tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000};
  pthread_mutex_lock(&box->lock);
  while (deadline_us > 0 && !box->list.head && !box->poked)
    if (pthread_cond_timedwait(&box->filled, &box->lock, &until) == ETIMEDOUT)
      break;
  bool poked = box->poked;
  box->poked = false;
  flight_list_join(out, &box->list);
  pthread_mutex_unlock(&box->lock);
  return poked;
}

size_t mailbox_count(struct mailbox *box) {
  pthread_mutex_lock(&box->lock);
  size_t count = box->list.count;
  pthread_mutex_unlock(&box->lock);
  return count;
}
