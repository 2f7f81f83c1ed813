/* SPDX-License-Identifier: MIT
 *
 * Stories of isolation: one route is well, the others are not, and a row stands for as many as a flood has.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "story_internal.h"

enum { BAD_MAX = 3, FLOOD_MAX = 300, ROWS_MAX = 800, STRANGE_NAMES = 200, OPEN_US = 3 * 1000 * 1000 };
enum { JOINED_US = 8 * 1000 * 1000 }; /* as long as a hand-over may take */
/* What a good task may wait, beside what is added for slow clocks and far databases. */
enum { BOUND_US = 250 * 1000 };
/* And while another daemon joins: a shard is shut, given back, met by the other one, and read anew. */
enum { JOIN_US = 300 * 1000 };
/* And a bound one, since a daemon whose earliest row is another host's looks for its own so often. */
enum { FOREIGN_US = 250 * 1000 };

/* What the rows of a bad route are like. */
static struct flood {
  const char *route; /* NULL = each has a name that nobody knows */
  unsigned rows;     /* at first */
  unsigned again;    /* so many more at a time, */
  int64_t gap_us;    /* so often */
  unsigned keys;     /* order keys; 0 = none */
  uint8_t priority;  /* 0 = any */
  int64_t later_us;  /* due so much later at most */
  uint32_t expiry_ppm, poison_ppm, bound_ppm, budget_ppm, moves_ppm;
} floods[BAD_MAX + 1];

static unsigned flood_count;
static bool good_is_bound; /* its tasks, to a host that is there */
static int64_t duration_us;
static unsigned inserted;

bool is_good(const struct row *row) { return blob_is(row->text[ROW_ROUTE], GOOD_ROUTE, strlen(GOOD_ROUTE)); }

size_t some_route(void) {
  size_t at = chance_below(&story.faults, story.profile.route_count);
  if (story.isolated && strcmp(story.profile.routes[at].name, GOOD_ROUTE) == 0)
    at = at ? at - 1 : at + 1;
  return at;
}

/* --- the plan --- */

static uint32_t seldom(uint32_t often_ppm, int64_t low, int64_t high) {
  return chance_ppm(&story.plan, often_ppm) ? (uint32_t)chance_log_between(&story.plan, low, high) : 0;
}

static void plan_good(size_t at) {
  struct chance *chance = &story.plan;
  story.profile.routes[at].name = GOOD_ROUTE;
  story.profile.routes[at].claim = chance_ppm(chance, 500000) ? CLAIM_MEMORY : CLAIM_RECORDED;
  story.profile.routes[at].timeout_ms = 5000;
  story.profile.routes[at].concurrency = story.profile.routes[at].concurrency_most = chance_between(chance, 16, 64);
  story.profile.routes[at].backoff_ms = 100;
  story.profile.routes[at].backoff_max_ms = 1000;
}

static void plan_bad(size_t at, const char *name) {
  struct chance *chance = &story.plan;
  story.profile.routes[at].name = name;
  story.profile.routes[at].claim = chance_ppm(chance, 500000) ? CLAIM_MEMORY : CLAIM_RECORDED;
  story.profile.routes[at].result = strcmp(name, "result") == 0 ? RESULT_EXPECTED : RESULT_NONE;
  story.profile.routes[at].order = chance_ppm(chance, 700000) ? ORDER_BLOCK : ORDER_PARK;
  story.profile.routes[at].timeout_ms = chance_log_between(chance, 200, 5000);
  story.profile.routes[at].concurrency = story.profile.routes[at].concurrency_most = chance_log_between(chance, 1, 64);
  story.profile.routes[at].history_ms = chance_ppm(chance, 500000) ? 86400 * 1000 : 0;
  story.profile.routes[at].max_attempts = seldom(300000, 1, 5);
  story.profile.routes[at].give_up_ms = seldom(200000, 100, 10000);
  story.profile.routes[at].backoff_ms = chance_log_between(chance, 5, 2000);
  story.profile.routes[at].backoff_max_ms = later(2000, story.profile.routes[at].backoff_ms);
  story.profile.routes[at].breaker = chance_ppm(chance, 500000) ? 3 : 0;
  story.profile.routes[at].every_attempt = chance_ppm(chance, 300000);
  story.profile.routes[at].absent = chance_ppm(chance, 150000);
  story.profile.routes[at].apart = chance_ppm(chance, 300000);
}

static void plan_destination(struct broker_route *to, const char *route) {
  struct chance *chance = &story.plan;
  *to = (struct broker_route){.route = route, .low_us = chance_log_between(chance, 500, 300 * 1000)};
  to->high_us = to->low_us * chance_log_between(chance, 1, 20);
  to->faults = (struct broker_faults){.rejected = seldom(300000, 1000, 1000000),
                                      .retry = seldom(500000, 1000, 1000000),
                                      .unavailable = seldom(300000, 1000, 1000000),
                                      .unknown = seldom(200000, 1000, 300000)};
  if (chance_ppm(chance, 200000))
    to->frozen_until_us = chance_log_between(chance, 1000 * 1000, 20 * 1000 * 1000);
}

static void plan_flood(struct flood *flood, const char *route) {
  struct chance *chance = &story.plan;
  *flood = (struct flood){.route = route,
                          .rows = (unsigned)chance_log_between(chance, 1, FLOOD_MAX),
                          .again = (unsigned)chance_log_between(chance, 1, 40),
                          .gap_us = chance_log_between(chance, 20 * 1000, 3 * 1000 * 1000),
                          .keys = (unsigned)seldom(400000, 1, 30),
                          .priority = (uint8_t)(chance_ppm(chance, 600000) ? chance_between(chance, 1, 9) : 0),
                          .later_us = seldom(500000, 1000, 5 * 1000 * 1000),
                          .expiry_ppm = seldom(300000, 10000, 1000000),
                          .poison_ppm = seldom(200000, 10000, 1000000),
                          .bound_ppm = seldom(200000, 10000, 1000000),
                          .budget_ppm = seldom(200000, 10000, 1000000),
                          .moves_ppm = seldom(200000, 10000, 1000000)};
}

static void plan_routes(void) {
  static const char *const names[] = {"another", "bad", GOOD_ROUTE, "result",
                                      "worse"}; /* as a configuration has them */
  struct profile *profile = &story.profile;
  flood_count = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(names[i], GOOD_ROUTE) == 0) {
      plan_good(profile->route_count++);
    } else if (flood_count < BAD_MAX && chance_ppm(&story.plan, 600000)) {
      plan_destination(&story.broker.routes[story.broker.route_count++], names[i]);
      plan_bad(profile->route_count++, names[i]);
      plan_flood(&floods[flood_count++], names[i]);
      profile->source = profile->source || profile->routes[profile->route_count - 1].result == RESULT_EXPECTED;
    }
  }
  if (flood_count == 0 || chance_ppm(&story.plan, 200000))
    plan_flood(&floods[flood_count++], NULL);
}

static void plan_profile(void) {
  struct chance *chance = &story.plan;
  struct profile *profile = &story.profile;
  *profile = (struct profile){
      .lease_ms = chance_log_between(chance, 2000, 10000),
      .poll_min_ms = chance_log_between(chance, 1, 10),
      .batch = chance_log_between(chance, 10, 100),
      .settle_rows = chance_log_between(chance, 10, 100),
      .settle_delay_ms = chance_between(chance, 0, 5),
      .hang_ms = chance_log_between(chance, 2000, 8000),
      .drain_timeout_ms = 1000,
      .max_recoveries = 3,
      .inflight_bytes = 1 << 20,
      .wake = (enum wake_mode)chance_below(chance, 3),
  };
  profile->poll_max_ms = profile->poll_min_ms * chance_log_between(chance, 1, 10);
}

static void plan_broker(void) {
  struct chance *chance = &story.plan;
  struct broker *broker = &story.broker;
  broker->low_us = chance_log_between(chance, 10, 1000);
  broker->high_us = broker->low_us * chance_log_between(chance, 1, 5);
  broker->answer_low_us = chance_log_between(chance, 1, 100 * 1000);
  broker->answer_high_us = broker->answer_low_us * chance_log_between(chance, 1, 50);
  broker->faults.answer_broken = seldom(300000, 1000, 1000000);
  broker->faults.answer_fail = seldom(300000, 1000, 1000000);
  broker->faults.answer_late = seldom(300000, 1000, 1000000);
  broker->faults.answer_retry = seldom(300000, 1000, 1000000);
  broker->faults.answer_unknown = seldom(300000, 1000, 1000000);
  broker->faults.no_answer = seldom(500000, 1000, 1000000);
  broker->hangs = APART;
  broker->faults.hang = seldom(300000, 500, 50000);
  broker->hang_low_us = story.profile.hang_ms * 250;
  broker->hang_high_us = story.profile.hang_ms * 5000;
  broker->hang_forever = 400000;
}

static void plan_database(void) {
  struct chance *chance = &story.plan;
  struct table *db = &story.db;
  /* Near: what round trips take is time in which a thread does nothing for anybody, whosever row it is about. */
  db->latency_low_us = chance_log_between(chance, 10, 50);
  db->latency_high_us = db->latency_low_us * chance_log_between(chance, 1, 4);
  db->commit_low_us = chance_log_between(chance, 1, 50);
  db->commit_high_us = db->commit_low_us * chance_log_between(chance, 1, 10);
  db->lock_wait_us = chance_log_between(chance, 10 * 1000, 1000 * 1000);
  db->silent_us = 2 * 1000 * 1000;
  db->walk_us = chance_log_between(chance, 1, 2000); /* 300 rows cost like 300,000 */
  db->row_us = chance_log_between(chance, 5, 50);
  db->ghost_us = chance_log_between(chance, 1, 100);
}

static void plan_faults(void) {
  static const enum fault_kind kinds[] = {FAULT_RELOAD, FAULT_ROW_LOCK, FAULT_TABLE_LOCK, FAULT_REFUSED_WRITES,
                                          FAULT_LOG,    FAULT_RESULT,   FAULT_COMMAND,    FAULT_PAUSED_ROUTE,
                                          FAULT_UPDATE, FAULT_DELETE,   FAULT_SNAPSHOT};
  struct chance *chance = &story.plan;
  story.fault_count = (unsigned)chance_log_between(chance, 1, 60);
  story.fault_gap_us = chance_log_between(chance, 10 * 1000, 1000 * 1000);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    story.fault_ppm[kinds[i]] = seldom(500000, 1, 100);
}

/* Where the good tasks are bound to a host, so are many of the others, some of them to one that is not there. */
static void plan_hosts(uint64_t seed) {
  struct chance chance = chance_of(seed, 304);
  good_is_bound = chance_ppm(&chance, 200000);
  if (!good_is_bound)
    return;
  story.facts.bound_us += FOREIGN_US;
  for (unsigned i = 0; i < flood_count; i++)
    floods[i].bound_ppm = (uint32_t)chance_log_between(&chance, 100000, 1000000);
}

void plan_isolation(uint64_t seed, bool trace) {
  plan_isolated(seed, 300, trace);
  plan_profile();
  begin_broker(seed);
  plan_routes();
  plan_broker();
  plan_faults();
  world_begin(&story.options);
  table_begin(&story.db, (unsigned)chance_log_between(&story.plan, 1, 8), chance_of(seed, 303));
  plan_database();
  story.process_count = (unsigned)chance_between(&story.plan, 1, 2);
  story.bound_ppm = 1;
  story.task_count = UINT32_MAX;
  inserted = 0;
  duration_us = chance_between(&story.plan, 2, 5) * 1000 * 1000;
  story.facts = (struct run_facts){
      .good = GOOD_ROUTE,
      .bound_us = BOUND_US + story.profile.poll_max_ms * 1000 + 10 * story.options.late_us,
  };
  plan_hosts(seed);
  plan_processes(seed, false);
}

/* --- users --- */

static void insert_good(void) {
  struct chance *chance = &story.users;
  struct tx *tx = user_begin(&story.db);
  for (int64_t i = chance_between(chance, 1, 3); i > 0; i--) {
    char id[16];
    struct row *row = user_insert(tx, GOOD_ROUTE, "good", 4);
    (void)snprintf(id, sizeof id, "g%u", inserted++);
    blob_put(&row->text[ROW_MESSAGE_ID], id);
    row->priority = (uint8_t)chance_between(chance, 4, 5); /* groups rest for one another */
    row->due_us += chance_ppm(chance, 500000) ? chance_log_between(chance, 1000, 2 * 1000 * 1000) : 0;
    if (good_is_bound)
      blob_put(&row->text[ROW_TARGET_HOST], story.processes[0].host);
  }
  story.count.tasks += user_commit(&tx);
}

static void be_good(void *arg) {
  for (;;) {
    insert_good();
    world_sleep(chance_log_between(&story.users, 5 * 1000, 300 * 1000));
  }
}

static void name_host(struct blob **at) {
  uint64_t number = chance_below(&story.users, story.process_count + 1);
  blob_put(at, number < story.process_count ? story.processes[number].host : "nowhere");
}

static void fill_row(const struct flood *flood, struct row *row, unsigned number) {
  struct chance *chance = &story.users;
  char id[48], key[16];
  (void)snprintf(id, sizeof id, "b%u", number);
  blob_put(&row->text[ROW_MESSAGE_ID], id);
  row->priority = flood->priority ? flood->priority : (uint8_t)chance_between(chance, 1, 9);
  row->due_us += flood->later_us ? chance_between(chance, 0, flood->later_us) : 0;
  if (flood->keys) {
    (void)snprintf(key, sizeof key, "key %" PRIu64, chance_below(chance, flood->keys));
    blob_put(&row->text[ROW_ORDER_KEY], key);
  }
  if (chance_ppm(chance, flood->expiry_ppm))
    row->expires_us = row->due_us + chance_log_between(chance, 1000, 10 * 1000 * 1000);
  if (chance_ppm(chance, flood->budget_ppm))
    row->max_attempts = (uint32_t)chance_between(chance, 1, 4);
  if (chance_ppm(chance, flood->bound_ppm))
    name_host(&row->text[ROW_TARGET_HOST]);
  if (chance_ppm(chance, flood->moves_ppm)) {
    if (chance_ppm(chance, 500000))
      name_host(&row->text[ROW_MOVE_TO_HOST]);
    else
      row->move_to_shard = (int)chance_below(chance, story.db.shard_count);
  }
  if (chance_ppm(chance, flood->poison_ppm))
    poison(row, number);
}

static void insert_rows(const struct flood *flood, unsigned count) {
  struct chance *chance = &story.users;
  struct tx *tx = user_begin(&story.db);
  for (; count > 0; count--) {
    char name[32];
    (void)snprintf(name, sizeof name, "strange%" PRIu64, chance_below(chance, STRANGE_NAMES));
    fill_row(flood, user_insert(tx, flood->route ? flood->route : name, "bad", 3), inserted++);
  }
  if (chance_ppm(chance, 200000))
    world_sleep(chance_log_between(chance, 1000, OPEN_US));
  if (chance_ppm(chance, 50000))
    user_rollback(&tx);
  else
    (void)user_commit(&tx);
}

static void be_flood(void *arg) {
  const struct flood *flood = arg;
  insert_rows(flood, flood->rows);
  while (story.db.data.rows.count < ROWS_MAX) {
    world_sleep(chance_log_between(&story.users, 1000, flood->gap_us));
    insert_rows(flood, flood->again);
  }
}

static void begin_trouble(void) {
  for (unsigned i = 0; i < flood_count; i++)
    world_spawn(NULL, "flood", be_flood, &floods[i]);
  world_spawn(NULL, "faults", be_faults, NULL);
}

static void be_joining(void *arg) {
  world_sleep(chance_between(&story.plan, 0, 2 * 1000 * 1000));
  if (!story.processes[1].running) /* somebody was quicker */
    process_start(&story.processes[1]);
}

void be_isolated(void *arg) {
  bool before = story.process_count == 1 && chance_ppm(&story.plan, 500000);
  bool joins = story.process_count == 2 && chance_ppm(&story.plan, 500000);
  if (before)
    begin_trouble();
  start_some(joins ? 1 : story.process_count);
  world_spawn(NULL, "good", be_good, NULL);
  world_sleep(story.facts.quiet_us - world_now_us());
  if (!before)
    begin_trouble();
  if (joins) {
    story.facts.bound_us += JOIN_US;
    world_spawn(NULL, "joining", be_joining, NULL);
    world_sleep(JOINED_US);
  }
  world_sleep(duration_us);
  story.facts.end_us = world_now_us();
  world_stop();
}
