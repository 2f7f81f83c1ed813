/* SPDX-License-Identifier: MIT
 *
 * core/inbox_wait.c - those who wait for the end of one record, each with a thread that others need.
 *
 * @thread any, under the inbox's lock, which is held for a few instructions
 */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/inbox_internal.h"

enum {
  WAITERS_PER_TASK = 4,  /* may wait for results of one task ... */
  HELD_UP_MAX = 16,      /* ... and so many, of all tasks, while what they wait for is set aside, */
  IN_TURN_MAX = 48,      /* or more, if that has a turn: it lasts less long than a lock */
  OFFERED_PER_TASK = 16, /* results of one task that may be aside, of those that come without a driver */
};

/* Why somebody does not learn the verdict. */
static const char in_time[] = "the database did not take it in time, and may still do";
static const char row_in_use[] = "the row of its task is in use by another transaction";
static const char unrecorded[] = "it is not recorded yet whether this attempt was handed out";
static const char in_turn[] = "the server refuses results of its route, and it waits for its turn";

/* Under the lock. Who waits already for a task whose row somebody holds is enough: more would only keep threads from
 * other tasks, as long as somebody likes to hold the row. */
static bool may_wait(const struct inbox *inbox, const char *task) {
  unsigned same = 0;
  const struct waiter *waiter;
  LIST_FOREACH(waiter, &inbox->waiters, link) {
    if (!task || strcmp(waiter->item->road_id, task) != 0)
      continue;
    if (waiter->held_up || ++same == WAITERS_PER_TASK)
      return false;
  }
  return true;
}

/* Under the lock: the waiter and its item part. */
static void part(struct inbox *inbox, struct waiter *waiter) {
  waiter->item->waiter = NULL;
  waiter->item = NULL;
  inbox->held_up -= waiter->held_up;
  LIST_REMOVE(waiter, link);
}

/* Under the lock: it waits no longer, and does not know. */
static void send_away(struct inbox *inbox, struct waiter *waiter, const char *why) {
  part(inbox, waiter);
  err_set(waiter->flaw, 0, "%s", why);
  if (why != in_time)
    *waiter->result = (struct store_result){.fate = RESULT_BUSY, .early = why == unrecorded, .left = why == in_turn};
  waiter->done = true;
  cond_signal(&waiter->done_cond);
}

bool inbox_apply(struct inbox *inbox, const struct result_offer *offer, int64_t timeout_ms, struct store_result *result,
                 struct err *err) {
  struct item *item = inbox_new_item(offer->source, offer->origin, offer->body.data, offer->body.len);
  if (!item)
    return err_set(err, 0, "out of memory");
  inbox_set_road(item, &offer->road);
  item->lane = offer->lane;
  item->result.replied = offer->replied;
  item->result.replayed = offer->replayed;
  struct waiter waiter = {.item = item, .result = result, .flaw = err};
  cond_init(&waiter.done_cond);
  int64_t deadline = clock_mono_us() + timeout_ms * 1000;
  mutex_lock(&inbox->lock);
  bool welcome = may_wait(inbox, offer->road.message_id), taken = welcome && inbox_put(inbox, item);
  if (taken) {
    item->waiter = &waiter;
    LIST_INSERT_HEAD(&inbox->waiters, &waiter, link);
    while (!waiter.done && cond_wait_until(&waiter.done_cond, &inbox->lock, deadline))
      ;
    if (!waiter.done)
      send_away(inbox, &waiter, waiter.held_up ? waiter.why : in_time);
  }
  mutex_unlock(&inbox->lock);
  if (!taken) {
    inbox_free_item(item);
    err_set(err, 0, "%s", welcome ? "too many results are waiting for the database" : row_in_use);
    if (!welcome)
      result->fate = RESULT_BUSY;
  }
  cond_destroy(&waiter.done_cond);
  return waiter.committed;
}

void inbox_answer(struct inbox *inbox, struct item *item, bool committed) {
  struct waiter *waiter = item->waiter;
  if (!committed)
    err_set(waiter->flaw, 0, "%s", item->why[0] ? item->why : "the daemon is stopping");
  else if (item->result.record.flaw)
    err_set(waiter->flaw, 0, "%s", item->result.record.flaw);
  *waiter->result = item->result;
  waiter->result->record = (struct result_record){.status = item->result.record.status, /* texts go with the item */
                                                  .too_soon = item->result.record.too_soon};
  waiter->result->broken = NULL;
  waiter->result->body = (struct duebox_bytes){"", 0};
  waiter->result->source = waiter->result->origin = "";
  part(inbox, waiter);
  waiter->committed = committed;
  waiter->done = true;
  cond_signal(&waiter->done_cond);
}

void inbox_hold_up(struct inbox *inbox, struct item *item) {
  mutex_lock(&inbox->lock);
  struct waiter *waiter = item->waiter;
  const char *why = item->result.left ? in_turn : item->result.early ? unrecorded : row_in_use;
  if (waiter && !waiter->held_up && inbox->held_up >= (item->result.left ? IN_TURN_MAX : HELD_UP_MAX)) {
    send_away(inbox, waiter, why);
  } else if (waiter) {
    inbox->held_up += !waiter->held_up;
    waiter->held_up = true;
    waiter->why = why;
  }
  mutex_unlock(&inbox->lock);
}

/* Behind the first result of its task that is aside, those that came as it did: the one that says the same, or NULL.
 * *count: how many they are. */
static struct item *find_same(struct aside_entry *first, const struct item *item, size_t *count) {
  struct item *same = NULL;
  *count = 0;
  for (struct aside_entry *entry = first; entry; entry = entry->behind) {
    struct item *other = inbox_item_of(entry);
    if (other->driver)
      continue;
    ++*count;
    if (other->result.body.len == item->result.body.len && other->road.attempt == item->road.attempt &&
        strcmp(other->road_id, item->road_id) == 0 && memcmp(other->body, item->body, item->full_len) == 0)
      same = other;
  }
  return same;
}

bool inbox_join(struct inbox *inbox, struct item *item, struct aside_entry *first) {
  size_t count;
  struct item *same = item->driver ? NULL : find_same(first, item, &count);
  if (item->driver || (!same && count < OFFERED_PER_TASK))
    return false;
  mutex_lock(&inbox->lock);
  struct waiter *waiter = item->waiter;
  if (waiter && same && !same->waiter) {
    item->waiter = NULL;
    same->waiter = waiter;
    waiter->item = same;
  } else if (waiter) {
    send_away(inbox, waiter, row_in_use);
  }
  mutex_unlock(&inbox->lock);
  if (same)
    inbox_hold_up(inbox, same);
  inbox_finish(inbox, item, false);
  return true;
}
