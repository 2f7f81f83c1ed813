/* SPDX-License-Identifier: MIT
 *
 * core/inbox_aside.c - results that are set aside: their rows are somebody else's, it is not recorded yet what was sent
 * of them, or the server refuses some results of their route. The last have turns of their own, a few of one route at a
 * time, as outcomes of such routes have with the settler: finding out which are refused takes a while, and the results
 * of all other routes are written between.
 *
 * @thread the inbox's
 */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/driver.h"
#include "core/inbox_internal.h"
#include "core/poll_pace.h"

enum {
  BUSY_EVERY_US = 500 * 1000,           /* how often to look whether rows that others hold are free */
  HELD_SAID_US = 5 * 1000 * 1000,       /* for how long they are held before it is logged */
  AGAIN_TURN_US = 20 * 1000,            /* what is busy is tried for so long at a time, */
  AGAIN_REST = 9,                       /* and then the others have the inbox for so many times as long, */
  AGAIN_REST_MAX_US = 10 * 1000 * 1000, /* up to this: the database may have been away meanwhile */
  APART_TURN_US = 5 * 1000,             /* what is tried apart takes so long at a time, but for one by itself */
  EARLY_EVERY_US = 10 * 1000,       /* how often, at first, whether it is recorded what was sent of a changed row ... */
  EARLY_QUICK = 50,                 /* ... and for how many times: mostly that takes milliseconds */
  EARLY_ROOM = ASIDE_PER_ROUTE / 2, /* so many wait; the others count as they come, where they may */
  EARLY_MAX_US = 120 * 1000 * 1000, /* later nobody is going to record it: whoever sent it is gone */
};

struct item *inbox_item_of(struct aside_entry *entry) {
  return (struct item *)(void *)((char *)entry - offsetof(struct item, aside));
}

/* It leaves the inbox proper, where it took the room of others. */
static void release_room(struct inbox *inbox, const struct item *item) {
  mutex_lock(&inbox->lock);
  inbox_queues_release(&item->entry);
  mutex_unlock(&inbox->lock);
  if (item->driver)
    driver_resume(item->driver);
}

/* What is broken is of no task, and takes the room of no route. */
static const char *route_of(const struct store_result *result) { return result->broken ? "" : result->route; }

/* What waits for the turn of its route waits for as long as that takes: it would count, in the quarantine it would not.
 */
bool inbox_waits_for_room(struct inbox *inbox, const struct item *item, const struct store_result *like) {
  int64_t patience_us = like->left ? INT64_MAX : inbox->env.patience_us;
  return item->driver && !item->result.unkept &&
         aside_is_to_wait(&inbox->aside, route_of(like), item->result.body.len, clock_mono_us(), patience_us);
}

/* It has its turn again, and its source waits when there are many. */
static void leave_queued(struct inbox *inbox, struct item *item) {
  item->result.fate = RESULT_APPLIED; /* none yet */
  inbox_queues_return(&inbox->queues, &item->entry);
  inbox->crowded = true;
}

/* When the busy ones are tried again, if this is the first. */
static void set_time(struct inbox *inbox) {
  if (inbox->aside.tried[ASIDE_BUSY] == 0)
    inbox->aside_at_us = clock_mono_us() + BUSY_EVERY_US;
}

static enum aside_kind kind_of(const struct store_result *result) { return result->left ? ASIDE_APART : ASIDE_BUSY; }

bool inbox_put_aside(struct inbox *inbox, struct item *item, struct aside_entry *first) {
  struct store_result *result = &item->result;
  if (first && inbox_join(inbox, item, first))
    return true;
  if (result->early && !result->record.cannot_wait && inbox->aside.tried[ASIDE_BUSY] >= EARLY_ROOM) {
    result->record.cannot_wait = true;
    return false;
  }
  set_time(inbox);
  /* The first one's id lives no longer than the first. */
  const char *task = result->broken ? "" : result->record.message_id;
  size_t bytes = result->body.len;
  if (!first && inbox_waits_for_room(inbox, item, result)) {
    leave_queued(inbox, item);
    return true;
  }
  bool put = first ? aside_follow(&inbox->aside, first, &item->aside, task, bytes)
                   : aside_put(&inbox->aside, &item->aside, kind_of(result), route_of(result), task, bytes);
  if (put) {
    item->result.fate = RESULT_BUSY;
    release_room(inbox, item);
    if (first || result->left)
      inbox_hold_up(inbox, item);
    return true;
  }
  if (result->left && (item->driver || bytes > ASIDE_BYTES_PER_ROUTE)) { /* there never is room for it */
    result->apart = true;
    return false;
  }
  if (result->unkept) {
    leave_queued(inbox, item);
    return true;
  }
  snprintf(item->why, sizeof item->why, "%s, and those of too many others",
           result->early  ? "the row of its task was changed while it was sent"
           : result->left ? "the server refuses results of its route"
                          : "another transaction holds the row of its task");
  if (!item->driver) {
    inbox_finish(inbox, item, false);
    return true;
  }
  item->result.broken = item->why;
  return false;
}

enum inbox_batch inbox_aside_due(const struct inbox *inbox, bool waiting) {
  const struct aside *aside = &inbox->aside;
  int64_t now_us = clock_mono_us();
  if (aside->tried[ASIDE_BUSY] > 0 && now_us >= inbox->aside_at_us)
    return BATCH_AGAIN;
  if (aside->tried[ASIDE_APART] == 0 || (waiting && inbox->was_apart))
    return BATCH_NEW;
  return refusals_turn(&inbox->pace, waiting && inbox->others, now_us) ? BATCH_APART : BATCH_NEW;
}

int64_t inbox_aside_at(const struct inbox *inbox) {
  int64_t busy_us = inbox->aside.tried[ASIDE_BUSY] ? inbox->aside_at_us : INT64_MAX,
          apart_us = inbox->aside.tried[ASIDE_APART] ? inbox->pace.at_us : INT64_MAX;
  return busy_us < apart_us ? busy_us : apart_us;
}

size_t inbox_take_again(struct inbox *inbox, enum inbox_batch kind, struct item *items[INBOX_BATCH_MAX]) {
  struct aside_entry *entries[INBOX_BATCH_MAX];
  size_t n = 0, first;
  if (kind == BATCH_APART) {
    first = aside_next_apart(&inbox->aside, entries, inbox->apart_rows ? inbox->apart_rows : 1);
  } else {
    size_t all = inbox->aside.tried[ASIDE_BUSY], most = inbox->aside_rows ? inbox->aside_rows : INBOX_BATCH_MAX;
    inbox->aside_left = inbox->aside_left && inbox->aside_left < all ? inbox->aside_left : all;
    first = aside_next(&inbox->aside, entries, most < inbox->aside_left ? most : inbox->aside_left);
    inbox->aside_left -= first;
    inbox->aside_at_us = clock_mono_us() + BUSY_EVERY_US;
  }
  for (; n < first; n++)
    items[n] = inbox_item_of(entries[n]);
  for (size_t i = 0; i < first; i++)
    for (struct aside_entry *entry = entries[i]->behind; entry && n < INBOX_BATCH_MAX; entry = entry->behind)
      items[n++] = inbox_item_of(entry);
  if (kind == BATCH_APART && n > 0)
    inbox_note_late(inbox, items[0]->source, items[0]->entry.since_us, clock_mono_us());
  return n;
}

/* A lock on something else than a row is met by each half of those that meet it: trying them takes a tenth of the time
 * at most. Those that go through take half of it. When all have been tried they wait. */
static void rest_again(struct inbox *inbox, size_t rows, bool locked, int64_t took_us, int64_t now_us) {
  int64_t rest_us = pace_rest_us(took_us, locked ? AGAIN_REST : 1, AGAIN_REST_MAX_US);
  inbox->aside_rows = refusals_rows(rows, locked ? took_us : 0, AGAIN_TURN_US, INBOX_BATCH_MAX);
  inbox->aside_from_us = took_us > AGAIN_TURN_US ? now_us + rest_us : 0;
  inbox->aside_at_us = now_us + (inbox->aside_left || rest_us > BUSY_EVERY_US ? rest_us : BUSY_EVERY_US);
}

void inbox_turn_over(struct inbox *inbox, enum inbox_batch kind, const struct store_result *results, size_t n,
                     int64_t began_us) {
  int64_t now_us = clock_mono_us();
  bool dear = false, others = false, locked = false;
  for (size_t i = 0; i < n; i++) {
    locked = locked || (results[i].fate == RESULT_BUSY && !results[i].early && !results[i].behind);
    dear = dear || results[i].left || results[i].form > results[i].least;
    others = others || !(results[i].left || (results[i].fate == RESULT_BUSY && results[i].behind));
  }
  if (kind == BATCH_NEW)
    inbox->others = others;
  inbox->was_apart = kind == BATCH_APART;
  if (kind == BATCH_AGAIN)
    rest_again(inbox, n, locked, now_us - began_us, now_us);
  if (kind != BATCH_APART)
    return;
  inbox->apart_rows = refusals_rows(n, now_us - began_us, APART_TURN_US, INBOX_BATCH_MAX);
  refusals_rest(&inbox->pace, dear, began_us, now_us);
}

static void take_verdict(struct item *item, const struct store_result *result) {
  item->result.record = result->record; /* less what was not to be kept */
  item->result.fate = result->fate;
  item->result.event = result->event;
  item->result.cancelled = result->cancelled;
  item->result.extended = result->extended;
  item->result.unknown = result->unknown;
  item->result.early = result->early;
  item->result.left = result->left;
  item->result.whole = result->whole;
  item->result.unkept = result->unkept;
  item->result.unsent = result->unsent;
  item->result.contradicts = result->contradicts;
  item->result.differs = result->differs;
  item->result.capped = result->capped;
  item->result.form = result->form;
  memcpy(item->result.refusal, result->refusal, sizeof item->result.refusal);
  memcpy(item->result.route, result->route, sizeof result->route);
}

/* It fits nothing, and goes to the quarantine for that when nobody else holds it: it is not judged again, nor do others
 * of its task wait behind it. */
static void wait_for_quarantine(struct item *item, const struct store_result *result) {
  snprintf(item->why, sizeof item->why, "%s", result->refusal);
  item->result.broken = item->why;
}

/* What is early is looked at again soon, for a while, and has an end. True: soon. */
static bool pace_early(struct item *item) {
  int64_t now_us = clock_mono_us();
  item->early_us = !item->result.early ? 0 : item->early_us ? item->early_us : now_us;
  item->result.waited = item->early_us && now_us - item->early_us > EARLY_MAX_US;
  return item->early_us && ++item->early_tries < EARLY_QUICK;
}

/* Somebody forgot to commit, perhaps; nobody else would say so where the consumer only tries again. */
static void note_held(struct inbox *inbox, struct item *item) {
  int64_t now_us = clock_mono_us();
  if (!item->busy_us)
    item->busy_us = now_us;
  if (now_us - item->busy_us > HELD_SAID_US)
    log_repeated(
        &inbox->held, LOG_LEVEL_WARN, "DUEBOX-RESULT-ROW-HELD",
        "a result waits: the row of its task, or a place that is needed beside it, has been locked for more than %d s, "
        "by an application or by a session of duebox itself route=%s",
        HELD_SAID_US / 1000000, item->result.route);
}

/* What is behind another of its task goes back to where it waited, in front of what came later. */
static void return_behind(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n) {
  for (size_t i = n; i-- > 0;) {
    if (results[i].fate != RESULT_BUSY || !results[i].behind)
      continue;
    items[i]->result.unknown = results[i].unknown;
    if (items[i]->result.fate != RESULT_BUSY)
      inbox_queues_return(&inbox->queues, &items[i]->entry);
  }
}

/* Whose rows are large has turns of its own from now on. */
static void weigh(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (results[i].measured)
      inbox_queues_weigh(&items[i]->entry, results[i].row_bytes);
}

/* With whom one is tried again that is aside: what keeps it there may be something else by now. */
static void try_among(struct inbox *inbox, struct item *item) {
  enum aside_kind kind = kind_of(&item->result);
  if (kind == ASIDE_BUSY)
    set_time(inbox);
  aside_turn_to(&inbox->aside, &item->aside, kind);
}

void inbox_sort_busy(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n,
                     struct item **refused, size_t *refused_count) {
  bool soon = false, any = false;
  *refused_count = 0;
  weigh(inbox, items, results, n);
  return_behind(inbox, items, results, n);
  for (size_t i = 0; i < n; i++) {
    bool was_aside = items[i]->result.fate == RESULT_BUSY;
    if (results[i].fate == RESULT_BUSY && results[i].behind) {
      soon = soon || (was_aside && results[i].postponed);
      continue;
    }
    any = true;
    take_verdict(items[i], &results[i]);
    if (results[i].fate == RESULT_BUSY && results[i].unkept)
      wait_for_quarantine(items[i], &results[i]);
    bool item_soon = pace_early(items[i]);
    soon = item_soon || soon;
    if (results[i].fate == RESULT_BUSY && !results[i].early && !results[i].unkept && !results[i].left)
      note_held(inbox, items[i]);
    if (results[i].fate == RESULT_BUSY && was_aside)
      try_among(inbox, items[i]);
    if (results[i].fate == RESULT_BUSY && was_aside && !item_soon)
      inbox_hold_up(inbox, items[i]);
    if (results[i].fate == RESULT_BUSY && !was_aside && !inbox_put_aside(inbox, items[i], NULL))
      refused[(*refused_count)++] = items[i];
    else if (results[i].fate != RESULT_BUSY && was_aside)
      aside_remove(&inbox->aside, &items[i]->aside);
  }
  int64_t soon_us = clock_mono_us() + EARLY_EVERY_US;
  soon_us = soon_us > inbox->aside_from_us ? soon_us : inbox->aside_from_us;
  if (soon && soon_us < inbox->aside_at_us)
    inbox->aside_at_us = soon_us;
  inbox->crowded = inbox->crowded || !any; /* they would be given again at once */
}
