/* SPDX-License-Identifier: MIT
 *
 * Troubled stories of keys: tasks that have their turn are set aside for whatever reason there is, and those behind
 * them must not leave before. They were in flight in a crash, and leave one at a time; change between their reading and
 * their claim; have a target that is in trouble, a route that is paused or leaves the configuration, outcomes that the
 * server refuses in part; or are to move to a host that never comes, until their route gives them up.
 */
#include <string.h>

#include "story_internal.h"

enum { ROWS_MAX = 120, LARGE = 1000, TROUBLED_PPM = 500000 };

static struct chance changes; /* what becomes of rows that are claimed */
static uint32_t change_ppm;

/* Somebody's UPDATE, committed at this moment. */
static void change_now(struct table *db, uint64_t id) {
  static char large[LARGE];
  const struct row *row = table_row(db, id);
  struct tx *tx = tx_begin(db, NULL);
  if (row && row->state == TASK_SCHEDULED && table_lock(db, tx, LOCK_ROW, id, false) &&
      table_lock(db, tx, LOCK_ENTRY, id, false)) {
    struct row *image = record_copy(&db->data.rows, row);
    image->changed_us = table_clock(db);
    if (chance_ppm(&changes, 800000)) {
      memset(large, 'x', sizeof large);
      blob_set(&image->text[ROW_PAYLOAD], large,
               (size_t)chance_between(&changes, 1, story.profile.large ? LARGE : PAYLOAD_MAX));
    } else {
      blob_put(&image->text[ROW_MOVE_TO_HOST], image->text[ROW_TARGET_HOST]->data);
    }
    tx_put_row(tx, image, TASK_EVENTS);
  }
  tx_commit(&tx);
}

static void change_claimed(struct table *db, const uint64_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (chance_ppm(&changes, change_ppm))
      change_now(db, ids[i]);
}

static uint32_t often(struct chance *chance, uint32_t often_ppm, int64_t high) {
  return chance_ppm(chance, often_ppm) ? (uint32_t)chance_log_between(chance, high / 50, high) : 0;
}

static void plan_faults(struct chance *chance) {
  static const enum fault_kind kinds[] = {FAULT_KILL,   FAULT_REFUSED_WRITES, FAULT_COMMAND,
                                          FAULT_UPDATE, FAULT_PAUSED_ROUTE,   FAULT_LOST_ANSWERS};
  story.fault_count = (unsigned)chance_log_between(chance, 5, 80);
  story.fault_gap_us = chance_log_between(chance, 50 * 1000, 2 * 1000 * 1000);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    story.fault_ppm[kinds[i]] = often(chance, 400000, 100);
}

/* Targets that are in trouble by themselves, and what they say. */
static void plan_reach(struct chance *chance) {
  struct broker_faults *faults = &story.broker.faults;
  faults->unknown = often(chance, 300000, 200000);
  faults->unavailable = often(chance, 400000, 300000);
  faults->wish = often(chance, 300000, 500000);
  faults->instance = often(chance, 200000, 500000);
  faults->gone = often(chance, 200000, 200000);
  faults->blameless = often(chance, 300000, 1000000);
  story.profile.routes[0].targets = chance_ppm(chance, 400000);
  story.fault_ppm[FAULT_TARGET_DOWN] = story.profile.routes[0].targets ? often(chance, 700000, 100) : 0;
  if (story.profile.routes[0].targets)
    story.facts.longest_wait_us = PUT_OFF_US;
}

static void plan_claims(struct chance *chance) {
  changes = *chance;
  change_ppm = often(chance, 500000, 500000);
  story.db.before_claim = change_ppm ? change_claimed : NULL;
  story.db.narrow_claims = chance_ppm(chance, 700000);
  story.profile.large = chance_ppm(chance, 300000);
  story.large_ppm = story.profile.large ? often(chance, 800000, 500000) : 0;
}

/* Another route is always there: a configuration has one. */
static void plan_leaving(struct chance *chance) {
  story.leaves = chance_ppm(chance, 300000);
  story.fault_ppm[FAULT_RELOAD] = often(chance, story.leaves ? 1000000 : 200000, 100);
  if (!story.leaves)
    return;
  story.stays = story.profile.route_count++;
  story.profile.routes[story.stays] = story.profile.routes[0];
  story.profile.routes[story.stays].name = "other";
  story.profile.routes[story.stays].result = RESULT_NONE;
}

void plan_trouble(uint64_t seed) {
  struct chance chance = chance_of(seed, 410);
  if (!chance_ppm(&chance, TROUBLED_PPM))
    return;
  story.task_count = (unsigned)chance_log_between(&chance, 10, ROWS_MAX);
  plan_faults(&chance);
  plan_reach(&chance);
  plan_claims(&chance);
  plan_leaving(&chance);
  story.suspect_ppm = often(&chance, 400000, 1000000);
  if (chance_ppm(&chance, 300000)) {
    story.away_ppm = often(&chance, 1000000, 300000);
    story.facts.away = AWAY_HOST;
    story.profile.routes[0].give_up_ms = chance_log_between(&chance, 1000, 20 * 1000);
    story.facts.few_attempts = true;
  }
  if (chance_ppm(&chance, 200000)) {
    story.profile.max_recoveries = chance_between(&chance, 2, 5);
    story.facts.few_attempts = true;
  }
}
