/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_hints.c - hints of the store's watch make groups due, without a look.
 *
 * However many hints come, they cost one read for all groups of a lane at a time, and reading for them takes a bounded
 * share of the time. Hints for shards that others hold, and for rows that the next look finds early enough, cost
 * nothing.
 *
 * @thread scheduler, except scheduler_hint()
 */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/scheduler.h"

enum {
  SOON_US = 20 * 1000, /* a look that comes sooner may still miss a row that is told now */
  ROUND_SHARE = 2,     /* reading for hints rests for this many times what it took, */
  REST_MAX_US = 3000,  /* but not longer: what took long had much to read, and perhaps for another lane */
  LOOK_SHARE = 4,      /* the same for looks */
  SWEEP_TRIES = 2,     /* a row behind the cursor is looked for when it should be visible */
};

/* From one try to the next; visible is a row within some 100 us, but for machines that are busy. */
static const int64_t steps_us[] = {300, 600, 1200, 2500, 5000, 10000, SOON_US};
enum { TRIES = ARRAY_LEN(steps_us) };
/* From one look to the next, for what was told of no group. */
static const int64_t look_steps_us[] = {1500, 5000, SOON_US};

/* --- any thread --- */

static bool is_useless(struct scheduler *s, const struct store_hint *hint) {
  if (hint->route[0] && atomic_load(&s->leases->epoch[hint->shard]) == 0)
    return true;
  int64_t now = clock_mono_us(), look_at = atomic_load_explicit(&s->hints.look_at_us, memory_order_relaxed);
  int64_t ahead_us = hint->due_us == INT64_MIN ? 0 : hint->due_us - scheduler_db_now_us(s);
  return look_at > now + SOON_US && now + ahead_us > look_at;
}

/* What was told last counts, unless it is for later and the other for now. */
static void put(struct hints *hints, const struct store_hint *hint, int64_t db_now_us) {
  struct promised_row row = {.due_us = hint->due_us, .id = hint->id};
  size_t i = 0;
  while (i < hints->fresh_count &&
         (hints->fresh[i].shard != hint->shard || hints->fresh[i].priority != hint->priority ||
          strcmp(hints->fresh[i].route, hint->route) != 0))
    i++;
  if (!hint->route[0] || i == STORE_HINTS_MAX) {
    hints->general = true;
    return;
  }
  struct promise *promise = &hints->fresh[i];
  if (i == hints->fresh_count) {
    hints->fresh_count++;
    *promise = (struct promise){.shard = hint->shard, .priority = hint->priority, .first = row, .last = row};
    snprintf(promise->route, sizeof promise->route, "%s", hint->route);
    return;
  }
  if (row.due_us < promise->first.due_us)
    promise->first = row;
  if (row.due_us <= db_now_us || promise->last.due_us > db_now_us)
    promise->last = row;
}

void scheduler_hint(struct scheduler *s, const struct store_hint *hints, size_t count) {
  bool put_some = false;
  int64_t db_now = scheduler_db_now_us(s);
  for (size_t i = 0; i < count; i++) {
    if (is_useless(s, &hints[i]))
      continue;
    mutex_lock(&s->hints.lock);
    put(&s->hints, &hints[i], db_now);
    mutex_unlock(&s->hints.lock);
    put_some = true;
  }
  if (put_some && !atomic_exchange(&s->hints.waiting, true))
    mailbox_poke(&s->in);
}

/* --- scheduler --- */

static bool is_kept(const struct scheduler *s, const struct lane *lane, const struct promised_row *row) {
  return row->id == 0 || flight_by_id(s->flights, row->id) || order_knows(&lane->order, row->id);
}

static bool is_due(const struct scheduler *s, const struct promised_row *row) {
  return row->due_us <= scheduler_db_now_us(s) + s->ahead_us;
}

/* One promise for each group: an older one is fulfilled with it, but for a row behind the cursor that is still looked
 * for. */
static void keep(struct scheduler *s, const struct promise *promise) {
  struct hints *hints = &s->hints;
  const struct lane *lane = scheduler_lane(s, promise->route);
  size_t i = 0;
  while (i < hints->kept_count &&
         (hints->kept[i].shard != promise->shard || hints->kept[i].priority != promise->priority ||
          strcmp(hints->kept[i].route, promise->route) != 0))
    i++;
  if (!lane || i == STORE_HINTS_MAX) {
    hints->general = hints->general || lane;
    return;
  }
  if (i == hints->kept_count)
    hints->kept[hints->kept_count++] = (struct promise){0};
  struct promise before = hints->kept[i];
  hints->kept[i] = *promise;
  if (before.first.id && before.first.due_us < promise->first.due_us && !is_kept(s, lane, &before.first)) {
    hints->kept[i].first = before.first;
    hints->kept[i].tries = before.tries;
  }
}

/* Looks, and a few times more: what was told may not be visible yet. What looking costs bounds how often it is done. */
static void look_for_general(struct scheduler *s, int64_t now) {
  struct hints *hints = &s->hints;
  int64_t looked = s->look_at_us - s->look_every_us;
  if (!hints->look_us || now < hints->look_us)
    return;
  s->pace.asked = true;
  s->look_at_us = earlier(s->look_at_us, later(looked + s->look_cost_us * LOOK_SHARE, now));
  hints->look_us =
      hints->looks < ARRAY_LEN(look_steps_us) ? later(s->look_at_us, now) + look_steps_us[hints->looks] : 0;
  hints->looks++;
}

static void take_fresh(struct scheduler *s, int64_t now) {
  struct hints *hints = &s->hints;
  if (now < hints->not_before_us || !atomic_exchange(&hints->waiting, false))
    return;
  mutex_lock(&hints->lock);
  for (size_t i = 0; i < hints->fresh_count; i++)
    keep(s, &hints->fresh[i]);
  bool general = hints->general;
  hints->fresh_count = 0;
  hints->general = false;
  mutex_unlock(&hints->lock);
  if (general) {
    hints->looks = 0;
    hints->look_us = now;
  }
}

/* Has the group read when the row is due, or now. One behind the cursor is for the sweep. */
static void expect(struct scheduler *s, struct group *group, const struct promise *promise,
                   const struct promised_row *row) {
  bool behind =
      row->due_us < group->cursor.next_us || (row->due_us == group->cursor.next_us && row->id <= group->cursor.id);
  if (is_kept(s, group->lane, row))
    return;
  group->low_us = earlier(group->low_us, row->due_us);
  if (!behind)
    group->next_us = earlier(group->next_us, row->due_us);
  else if (promise->tries >= SWEEP_TRIES && !group->sweep && clock_mono_us() >= group->sweep_at_us)
    lane_sweep(group);
}

/* False: there is nothing to be done for it here. */
static bool act_on(struct scheduler *s, const struct promise *promise) {
  struct lane *lane = scheduler_lane(s, promise->route);
  uint64_t epoch = lane && lane->route ? scheduler_epoch(s, lane, promise->shard) : 0;
  if (!epoch)
    return false;
  struct group *group = lane_group(lane, promise->shard, promise->priority, true);
  if (!group)
    return false;
  if (group->epoch != epoch) {
    group->epoch = epoch;
    lane_restart(group);
    group->low_us = 0;
    group->due = false;
  }
  expect(s, group, promise, &promise->first);
  expect(s, group, promise, &promise->last);
  return true;
}

static void drop(struct hints *hints, size_t i) { hints->kept[i] = hints->kept[--hints->kept_count]; }

void scheduler_take_hints(struct scheduler *s) {
  struct hints *hints = &s->hints;
  int64_t now = clock_mono_us();
  hints->round_us = 0;
  take_fresh(s, now);
  look_for_general(s, now);
  for (size_t i = 0; i < hints->kept_count && now >= hints->not_before_us;) {
    if (hints->kept[i].at_us > now) {
      i++;
    } else if (act_on(s, &hints->kept[i])) {
      hints->round_us = now;
      i++;
    } else {
      drop(hints, i);
    }
  }
}

/* Whether a promise that was acted on needs more: its rows are due and cannot be seen yet. Without credit nothing was
 * read; the group stays due until there is some, and its rows are visible by then. */
static bool is_open(struct scheduler *s, const struct promise *promise, int64_t now) {
  struct lane *lane = scheduler_lane(s, promise->route);
  if (!lane || !lane->route || promise->tries >= TRIES)
    return false;
  bool all = is_kept(s, lane, &promise->first) && is_kept(s, lane, &promise->last);
  return !all && scheduler_credit(s, lane, now) > 0;
}

void scheduler_check_hints(struct scheduler *s) {
  struct hints *hints = &s->hints;
  if (!hints->round_us)
    return;
  int64_t now = clock_mono_us();
  for (size_t i = 0; i < hints->kept_count;) {
    struct promise *promise = &hints->kept[i];
    bool later_on = !is_due(s, &promise->first);
    if (promise->at_us > hints->round_us) {
      i++;
    } else if (!is_open(s, promise, now)) {
      drop(hints, i);
    } else {
      /* What is due later needs one more note only: a look may have been there before the row. */
      promise->tries = later_on ? (promise->tries ? TRIES : TRIES - 1) : promise->tries;
      promise->at_us = now + steps_us[promise->tries < TRIES ? promise->tries : TRIES - 1];
      promise->tries++;
      i++;
    }
  }
  hints->not_before_us = now + earlier((now - hints->round_us) * ROUND_SHARE, REST_MAX_US);
}

int64_t scheduler_hints_at(struct scheduler *s) {
  struct hints *hints = &s->hints;
  int64_t at = hints->look_us ? hints->look_us : INT64_MAX;
  atomic_store_explicit(&hints->look_at_us, s->look_at_us, memory_order_relaxed);
  if (atomic_load(&hints->waiting))
    at = hints->not_before_us;
  for (size_t i = 0; i < hints->kept_count; i++)
    at = earlier(at, later(hints->kept[i].at_us, hints->not_before_us));
  return at;
}
