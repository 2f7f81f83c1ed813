/* SPDX-License-Identifier: MIT
 *
 * Stories of order keys: one route whose heads block their keys, calls that fail and are tried again soon, and daemons
 * that are stopped and started, so that shards change hands while keys have heads. In some of them tasks expire, have
 * few attempts, are cancelled or deleted, or their consumer answers, whoever has the shard then. In some the tasks of a
 * key have several priorities, are bound to a host, or were due long before they commit.
 *
 * In troubled ones (story_trouble.c) much of what else keeps a task that has its turn happens to them.
 *
 * In calm ones no daemon comes or goes, and nothing is wrong but that all calls fail for a while, several times: what
 * waits then goes on by itself or not at all.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "story_internal.h"

enum { WRITERS = 8, SPREAD = 24, ROWS = 400, TOGETHER = 3, ROW_US = 400 * 1000 };
#define LATE_US (INT64_C(3600) * 1000 * 1000)

static unsigned inserted, users_left;
static int64_t pause_us, stay_us;
static unsigned changes;
static unsigned spread;    /* keys of each writer */
static uint32_t first_ppm; /* how often it is the first daemon that comes or goes */
static uint32_t late_ppm, priority_ppm, nowhere_ppm;

/* --- the plan --- */

static void plan_profile(void) {
  struct chance *chance = &story.plan;
  struct profile *profile = &story.profile;
  *profile = (struct profile){
      .lease_ms = chance_log_between(chance, 1000, 4000),
      .poll_min_ms = chance_log_between(chance, 1, 20),
      .batch = chance_log_between(chance, 1, 100),
      .settle_rows = chance_log_between(chance, 1, 100),
      .settle_delay_ms = chance_between(chance, 0, 5),
      .hang_ms = 8000,
      .drain_timeout_ms = chance_log_between(chance, 100, 5000),
      .max_recoveries = 1000,
      .inflight_bytes = 1 << 20,
      .wake = (enum wake_mode)chance_below(chance, 3),
      .route_count = 1,
  };
  profile->poll_max_ms = profile->poll_min_ms * chance_log_between(chance, 1, 20);
  profile->routes[0].name = "order";
  profile->routes[0].claim = chance_ppm(chance, 500000) ? CLAIM_MEMORY : CLAIM_RECORDED;
  profile->routes[0].order = ORDER_BLOCK;
  profile->routes[0].timeout_ms = 5000;
  profile->routes[0].concurrency = profile->routes[0].concurrency_most = chance_log_between(chance, 2, 64);
  profile->routes[0].backoff_ms = chance_log_between(chance, chance_ppm(chance, 500000) ? 10 : 500, 5000);
  profile->routes[0].backoff_max_ms = profile->routes[0].backoff_ms * chance_between(chance, 1, 2);
}

static void plan_broker(void) {
  struct chance *chance = &story.plan;
  story.broker.low_us = chance_log_between(chance, 10, 20 * 1000);
  story.broker.high_us = story.broker.low_us * chance_log_between(chance, 1, 10);
  story.broker.faults.retry = (uint32_t)chance_between(chance, 50000, 500000);
}

static void plan_database(void) {
  struct chance *chance = &story.plan;
  struct table *db = &story.db;
  db->latency_low_us = chance_log_between(chance, 10, 500);
  db->latency_high_us = db->latency_low_us * chance_log_between(chance, 1, 20);
  db->commit_low_us = chance_log_between(chance, 1, 500);
  db->commit_high_us = db->commit_low_us * chance_log_between(chance, 1, 50);
  db->lock_wait_us = chance_log_between(chance, 10000, 1000 * 1000);
  db->silent_us = story.profile.lease_ms * 1000 / 4;
  db->may_kill = true;
  story.facts.longest_wait_us = story.profile.routes[0].backoff_max_ms * 1250;
  story.facts.round_trip_us = 2 * db->latency_high_us;
}

/* Failures in a row have the route look elsewhere, where nothing may go: all of its tasks have an order_key. */
static void plan_breaker(uint64_t seed) {
  struct chance chance = chance_of(seed, 405);
  if (chance_ppm(&chance, 500000))
    story.profile.routes[0].breaker = (uint32_t)chance_between(&chance, 3, 20);
}

/* What ends a head, and what a result may meet, in stories that have it. */
static void plan_ends(uint64_t seed) {
  static const enum fault_kind ends[] = {FAULT_COMMAND, FAULT_DELETE, FAULT_TABLE_LOCK, FAULT_LOST_ANSWERS,
                                         FAULT_DB_SESSIONS};
  struct chance chance = chance_of(seed, 404);
  if (!chance_ppm(&chance, 600000))
    return;
  story.fault_count += (unsigned)chance_log_between(&chance, 1, 60);
  story.fault_gap_us = chance_log_between(&chance, 100 * 1000, story.fault_gap_us);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
    story.fault_ppm[ends[i]] = chance_ppm(&chance, 500000) ? (uint32_t)chance_log_between(&chance, 1, 100) : 0;
  story.expiry_ppm = chance_ppm(&chance, 500000) ? (uint32_t)chance_log_between(&chance, 10000, 300000) : 0;
  story.budget_ppm = chance_ppm(&chance, 500000) ? (uint32_t)chance_log_between(&chance, 10000, 300000) : 0;
  if (!chance_ppm(&chance, 400000))
    return;
  story.profile.routes[0].result = RESULT_EXPECTED;
  story.profile.source = true;
  story.broker.answers_for = story.profile.routes[0].name;
  story.broker.answer_low_us = chance_log_between(&chance, 1, 10000);
  story.broker.answer_high_us = story.broker.answer_low_us * chance_log_between(&chance, 1, 100);
  uint32_t *faults[] = {&story.broker.faults.no_answer,       &story.broker.faults.answer_twice,
                        &story.broker.faults.answer_retry,    &story.broker.faults.answer_fail,
                        &story.broker.faults.answer_progress, &story.broker.faults.answer_late};
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
    *faults[i] = chance_ppm(&chance, 400000) ? (uint32_t)chance_log_between(&chance, 1000, 200000) : 0;
}

/* Beside daemons that come and go. */
static void plan_faults(void) {
  static const enum fault_kind others[] = {FAULT_KILL, FAULT_PAUSE, FAULT_RELOAD, FAULT_DB_SLOW, FAULT_ROW_LOCK};
  struct chance *chance = &story.plan;
  story.fault_count = (unsigned)chance_between(chance, 0, 10);
  story.fault_gap_us = chance_log_between(chance, 1000 * 1000, 15 * 1000 * 1000);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    story.fault_ppm[others[i]] = chance_ppm(chance, 300000) ? (uint32_t)chance_log_between(chance, 1, 100) : 0;
}

/* What else calls end with, in calm stories. */
static void plan_outcomes(uint64_t seed) {
  struct chance chance = chance_of(seed, 407);
  struct broker_faults *faults = &story.broker.faults;
  uint32_t *outcomes[] = {&faults->unknown, &faults->unavailable, &faults->wish, &faults->instance, &faults->blameless};
  for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++)
    *outcomes[i] = chance_ppm(&chance, 400000) ? (uint32_t)chance_log_between(&chance, 1000, 300000) : 0;
  if (chance_ppm(&chance, 300000))
    story.profile.inflight_bytes = chance_log_between(&chance, 1, 1000);
  story.profile.routes[0].targets = chance_ppm(&chance, 300000);
  if (story.profile.routes[0].targets)
    story.facts.longest_wait_us = PUT_OFF_US;
}

/* Where a task may come into the index after others of its key that it goes before. */
static void plan_places(uint64_t seed) {
  struct chance chance = chance_of(seed, 408);
  story.bound_ppm = chance_ppm(&chance, 300000) ? (uint32_t)chance_log_between(&chance, 100000, 1000000) : 0;
  late_ppm = chance_ppm(&chance, 500000) ? (uint32_t)chance_log_between(&chance, 10000, 500000) : 0;
  priority_ppm = chance_ppm(&chance, 500000) ? (uint32_t)chance_log_between(&chance, 10000, 1000000) : 0;
  nowhere_ppm = chance_ppm(&chance, 500000) ? (uint32_t)chance_log_between(&chance, 10000, 500000) : 0;
}

/* Of many keys more tasks are due at once than the route may have at work. */
static void plan_calm(uint64_t seed) {
  struct chance chance = chance_of(seed, 406);
  spread = chance_ppm(&chance, 300000) ? (unsigned)chance_log_between(&chance, 2, SPREAD) : 1;
  story.calm = chance_ppm(&chance, 200000);
  if (!story.calm)
    return;
  story.process_count = (unsigned)chance_between(&chance, 1, 2);
  story.fault_count = 0;
  story.profile.routes[0].breaker = chance_between(&chance, 3, 20);
  plan_outcomes(seed);
}

void plan_keys(uint64_t seed, bool trace) {
  memset(&story, 0, sizeof story);
  story.plan = chance_of(seed, 400);
  story.users = chance_of(seed, 401);
  story.faults = chance_of(seed, 402);
  plan_world(seed, trace);
  plan_profile();
  begin_broker(seed);
  plan_broker();
  plan_faults();
  plan_breaker(seed);
  plan_ends(seed);
  world_begin(&story.options);
  table_begin(&story.db, (unsigned)chance_log_between(&story.plan, 1, 8), chance_of(seed, 403));
  plan_database();
  story.process_count = chance_ppm(&story.plan, 800000) ? 2 : 3;
  plan_calm(seed);
  story.key_count = (unsigned)chance_between(&story.plan, 1, WRITERS);
  story.task_count = ROWS;
  story.facts.ordered = story.facts.told = true;
  story.backlog_us = ROW_US * ROWS;
  changes = (unsigned)chance_between(&story.plan, 4, 24);
  stay_us = chance_log_between(&story.plan, 300 * 1000, 3 * 1000 * 1000);
  first_ppm = chance_ppm(&story.plan, 300000) ? (uint32_t)chance_log_between(&story.plan, 10000, 300000) : 0;
  pause_us = 2 * changes * stay_us * story.key_count / ROWS; /* they last as long as daemons come and go */
  inserted = users_left = 0;
  plan_places(seed);
  if (!story.calm)
    plan_trouble(seed);
  plan_processes(seed, false);
}

/* --- users --- */

/* Changes whenever a shard changes hands, or is given back, and a daemon starts. */
static uint64_t hands(void) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < story.db.shard_count; i++)
    sum += 2 * story.db.data.shards[i].epoch + story.db.data.shards[i].owned;
  for (unsigned i = 0; i < story.process_count; i++)
    sum += story.processes[i].starts;
  return sum;
}

static bool hands_changed(void *arg) { return hands() != *(uint64_t *)arg; }

/* Until something changes hands, or for a while: what is inserted then is met by one daemon or by the other. */
static void wait_for_hands(void) {
  struct chance *chance = &story.users;
  uint64_t before = hands();
  if (chance_ppm(chance, 500000))
    (void)world_wait(hands_changed, &before, world_now_us() + chance_between(chance, 0, 2 * pause_us));
  world_sleep(chance_log_between(chance, 10, 300 * 1000));
}

/* All tasks of a key have the same host, or none. */
static const char *host_of(unsigned key_number) {
  struct chance chance = chance_of(key_number, 409);
  return chance_ppm(&chance, story.bound_ppm) ? story.processes[chance_below(&chance, story.process_count)].host : "";
}

/* Somebody asks for what it is bound to already, or for a shard, which means nothing then. */
static void move_nowhere(struct row *row, const char *host) {
  if (chance_ppm(&story.users, 500000))
    blob_put(&row->text[ROW_MOVE_TO_HOST], host);
  else
    row->move_to_shard = (int)chance_below(&story.users, story.db.shard_count);
}

static void place(struct row *row, unsigned key_number) {
  struct chance *chance = &story.users;
  const char *host = host_of(key_number);
  blob_put(&row->text[ROW_TARGET_HOST], host);
  if (*host && chance_ppm(chance, nowhere_ppm))
    move_nowhere(row, host);
  if (chance_ppm(chance, late_ppm))
    row->due_us -= chance_log_between(chance, 1000, LATE_US);
  if (chance_ppm(chance, priority_ppm))
    row->priority = (uint8_t)chance_between(chance, 1, 9);
  if (story.large_ppm && chance_ppm(chance, story.large_ppm))
    make_large(row);
  if (story.suspect_ppm && chance_ppm(chance, story.suspect_ppm))
    row->recoveries = 1;
  if (story.away_ppm && !*host && chance_ppm(chance, story.away_ppm))
    blob_put(&row->text[ROW_MOVE_TO_HOST], AWAY_HOST);
}

static void insert_next(unsigned writer) {
  struct chance *chance = &story.users;
  unsigned key_number = writer + story.key_count * (unsigned)chance_below(chance, spread);
  struct tx *tx = user_begin(&story.db);
  for (int64_t i = chance_between(chance, 1, TOGETHER); i > 0; i--) {
    char id[48], key[16];
    struct row *row = user_insert(tx, "order", "task", 4);
    (void)snprintf(id, sizeof id, "t%u.%u", inserted++, key_number);
    (void)snprintf(key, sizeof key, "key %u", key_number);
    blob_put(&row->text[ROW_MESSAGE_ID], id);
    blob_put(&row->text[ROW_ORDER_KEY], key);
    if (story.profile.routes[0].targets)
      name_target(row);
    place(row, key_number);
    if (chance_ppm(chance, story.expiry_ppm))
      row->expires_us = row->due_us + chance_log_between(chance, 100 * 1000, 10 * 1000 * 1000);
    if (chance_ppm(chance, story.budget_ppm))
      row->max_attempts = (uint32_t)chance_between(chance, 1, 4);
    if (chance_ppm(chance, 300000))
      world_sleep(chance_log_between(chance, 10, 100 * 1000));
  }
  if (chance_ppm(chance, 100000))
    world_sleep(chance_log_between(chance, 100, 1000 * 1000));
  story.count.tasks += user_commit(&tx);
}

/* The one writer of some keys: its transactions follow one another. */
static void be_writer(void *arg) {
  unsigned writer = *(unsigned *)arg;
  while (changes > 0 && inserted < story.task_count) {
    insert_next(writer);
    wait_for_hands();
  }
  story.users_done = --users_left == 0;
}

/* All calls fail for a while, or the broker is not there. */
static void be_storms(void *arg) {
  for (; changes > 0; changes--) {
    world_sleep(chance_between(&story.users, 0, stay_us));
    bool down = chance_ppm(&story.faults, 200000);
    break_some_target(STORM_US);
    *(down ? &story.broker.down_until_us : &story.broker.fails_until_us) = world_now_us() + fault_time(STORM_US);
    story.count.faults[down ? FAULT_BROKER_DOWN : FAULT_BROKER_FAILS]++;
  }
  story.users_done = --users_left == 0;
}

/* A daemon is asked to end, or started. */
static void be_changes(void *arg) {
  for (; changes > 0; changes--) {
    bool first = chance_ppm(&story.users, first_ppm);
    struct process *process = &story.processes[first ? 0 : chance_between(&story.users, 1, story.process_count - 1)];
    world_sleep(chance_between(&story.users, process->running ? stay_us / 4 : 0, stay_us));
    process->drain = chance_ppm(&story.users, 900000);
    if (process->running) {
      process_ask(process, PROCESS_END);
      story.facts.faults++; /* what is in flight may arrive once more */
      story.count.faults[FAULT_DRAIN]++;
    } else {
      process_start(process);
    }
  }
  story.users_done = --users_left == 0;
}

void be_writers(void *arg) {
  static unsigned numbers[WRITERS];
  users_left = 1 + story.key_count;
  world_spawn(NULL, "changes", story.calm ? be_storms : be_changes, NULL);
  for (unsigned i = 0; i < story.key_count; i++) {
    numbers[i] = i;
    world_spawn(NULL, "writer", be_writer, &numbers[i]);
  }
}
