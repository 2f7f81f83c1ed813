/* SPDX-License-Identifier: MIT
 *
 * Stories of flow: tasks of one route and priority come without end, and nothing is wrong. Others of it become visible
 * behind the due times that were passed, since they were backdated or committed late; some of those wait for another of
 * their order_key. The checker judges how long those wait that wait for nobody: what flows must not hide them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "story_internal.h"

enum { PLACES = 20, STRANGE_MAX = 400, BACK_US = 20 * 1000 * 1000, OPEN_US = 3 * 1000 * 1000 };
/* What a task may wait, beside what is added for slow clocks and far databases; and a bound one, since a daemon whose
 * earliest row is another host's looks for its own so often. */
enum { BOUND_US = 300 * 1000, FOREIGN_US = 250 * 1000 };

static int64_t gap_us, late_gap_us, duration_us;
static uint32_t open_ppm;
static unsigned inserted, strange;

/* --- the plan --- */

static void plan_profile(void) {
  struct chance *chance = &story.plan;
  struct profile *profile = &story.profile;
  *profile = (struct profile){
      .lease_ms = chance_log_between(chance, 2000, 10000),
      .poll_min_ms = chance_log_between(chance, 1, 20),
      .batch = chance_log_between(chance, 10, 100),
      .settle_rows = chance_log_between(chance, 10, 100),
      .settle_delay_ms = chance_between(chance, 0, 5),
      .hang_ms = 8000,
      .drain_timeout_ms = 1000,
      .max_recoveries = 3,
      .inflight_bytes = 1 << 20,
      .wake = chance_ppm(chance, 700000) ? WAKE_AUTO : WAKE_POLL,
      .route_count = 1,
  };
  profile->poll_max_ms = chance_between(chance, profile->poll_min_ms, 150);
  profile->routes[0].name = GOOD_ROUTE;
  profile->routes[0].claim = chance_ppm(chance, 500000) ? CLAIM_MEMORY : CLAIM_RECORDED;
  profile->routes[0].timeout_ms = 5000;
  profile->routes[0].concurrency = profile->routes[0].concurrency_most = PROFILE_CONCURRENCY;
  profile->routes[0].backoff_ms = profile->routes[0].backoff_max_ms = 1000;
}

static void plan_database(void) {
  struct chance *chance = &story.plan;
  struct table *db = &story.db;
  db->latency_low_us = chance_log_between(chance, 10, 50);
  db->latency_high_us = db->latency_low_us * chance_log_between(chance, 1, 4);
  db->commit_low_us = chance_log_between(chance, 1, 50);
  db->commit_high_us = db->commit_low_us * chance_log_between(chance, 1, 10);
  db->lock_wait_us = 1000 * 1000;
  db->silent_us = 2 * 1000 * 1000;
}

/* The calls that are out at a time have room at the destination. */
static void plan_traffic(void) {
  struct chance *chance = &story.plan;
  gap_us = chance_log_between(chance, 5 * 1000, 100 * 1000);
  late_gap_us = chance_log_between(chance, 100 * 1000, 4000 * 1000);
  duration_us = chance_between(chance, 3, 8) * 1000 * 1000;
  open_ppm = (uint32_t)(500000 * chance_below(chance, 3));
  strange = chance_ppm(chance, 300000) ? (unsigned)chance_log_between(chance, 1, STRANGE_MAX) : 0;
  story.broker.low_us = chance_log_between(chance, 100, earlier(PLACES * gap_us, 500 * 1000) / 2);
  story.broker.high_us = story.broker.low_us * chance_between(chance, 1, 2);
  story.bound_ppm = chance_ppm(chance, 300000) ? 0 : chance_ppm(chance, 500000) ? 1000000 : 500000;
}

void plan_flow(uint64_t seed, bool trace) {
  plan_isolated(seed, 500, trace);
  plan_profile();
  begin_broker(seed);
  plan_traffic();
  world_begin(&story.options);
  table_begin(&story.db, (unsigned)chance_log_between(&story.plan, 1, 4), chance_of(seed, 503));
  plan_database();
  story.process_count = (unsigned)chance_between(&story.plan, 1, 2);
  story.task_count = UINT32_MAX;
  inserted = 0;
  story.facts = (struct run_facts){
      .good = GOOD_ROUTE,
      .bound_us = BOUND_US + 2 * story.profile.poll_max_ms * 1000 + 10 * story.options.late_us +
                  (story.bound_ppm ? FOREIGN_US : 0),
  };
  plan_processes(seed, false);
}

/* --- users --- */

/* What has a dot in its message id may wait. */
static struct row *insert_one(struct tx *tx, const char *host, unsigned key) {
  char id[32], name[16];
  struct row *row = user_insert(tx, GOOD_ROUTE, "flow", 4);
  bool waits = key > 0 || strcmp(host, "nowhere") == 0;
  (void)snprintf(id, sizeof id, waits ? "t%u.%u" : "t%u", inserted++, key);
  (void)snprintf(name, sizeof name, "key %u", key);
  blob_put(&row->text[ROW_MESSAGE_ID], id);
  if (key > 0)
    blob_put(&row->text[ROW_ORDER_KEY], name);
  blob_put(&row->text[ROW_TARGET_HOST], host);
  return row;
}

static const char *some_host(void) {
  bool bound = chance_ppm(&story.users, story.bound_ppm);
  return bound ? story.processes[chance_below(&story.users, story.process_count)].host : "";
}

static void insert_flowing(const char *host, unsigned key) {
  struct tx *tx = user_begin(&story.db);
  (void)insert_one(tx, host, key);
  story.count.tasks += user_commit(&tx);
}

static void be_flow(void *arg) {
  for (;; world_sleep(chance_between(&story.users, gap_us / 2, gap_us * 3 / 2)))
    insert_flowing(some_host(), 0);
}

static void commit_late(void *arg) {
  struct tx *tx = arg;
  world_sleep(chance_log_between(&story.users, 1000, OPEN_US));
  story.count.tasks += user_commit(&tx);
}

/* One behind what was passed. */
static void insert_late(const char *host, unsigned key) {
  struct tx *tx = user_begin(&story.db);
  struct row *row = insert_one(tx, host, key);
  if (chance_ppm(&story.users, open_ppm)) {
    world_spawn(NULL, "late", commit_late, tx);
    return;
  }
  row->due_us -= chance_log_between(&story.users, 1000, BACK_US);
  story.count.tasks += user_commit(&tx);
}

/* Some of them may wait for one that is out. */
static void be_late(void *arg) {
  for (unsigned key = 1;; key++) {
    const char *host = some_host();
    world_sleep(chance_between(&story.users, late_gap_us / 2, late_gap_us));
    bool keyed = chance_ppm(&story.users, 700000);
    if (keyed)
      insert_flowing(host, key);
    for (int64_t i = chance_between(&story.users, 1, 3); i > 0; i--) {
      world_sleep(chance_log_between(&story.users, 10, 50 * 1000));
      insert_late(host, keyed && chance_ppm(&story.users, 500000) ? key : 0);
    }
  }
}

/* Of a host that is away. */
static void insert_strange(void) {
  struct tx *tx = user_begin(&story.db);
  for (unsigned i = 0; i < strange; i++)
    insert_one(tx, "nowhere", 0)->due_us -= chance_between(&story.users, 0, BACK_US);
  (void)user_commit(&tx);
}

void be_flowing(void *arg) {
  insert_strange();
  start_some(story.process_count);
  world_sleep(story.facts.quiet_us - world_now_us());
  world_spawn(NULL, "flow", be_flow, NULL);
  world_spawn(NULL, "late ones", be_late, NULL);
  world_sleep(duration_us);
  story.facts.end_us = world_now_us();
  world_stop();
}
