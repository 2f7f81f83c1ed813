/* SPDX-License-Identifier: MIT */
#include "story_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"

enum { RATE_LEAST = 5 };

void plan_world(uint64_t seed, bool trace) {
  struct chance *chance = &story.plan;
  static const enum strategy strategies[] = {STRATEGY_PREEMPT, STRATEGY_PREEMPT, STRATEGY_PREEMPT, STRATEGY_RANDOM,
                                             STRATEGY_RANDOM,  STRATEGY_PCT,     STRATEGY_PCT,     STRATEGY_STARVE};
  story.options = (struct world_options){
      .seed = seed,
      .strategy = strategies[chance_below(chance, sizeof strategies / sizeof strategies[0])],
      .preempt_ppm = (uint32_t)chance_log_between(chance, 1000, 500000),
      .changes = (unsigned)chance_between(chance, 1, 5),
      .steps_guess = 20000,
      .spurious_ppm = chance_ppm(chance, 500000) ? 50000 : 0,
      .late_us = chance_ppm(chance, 300000) ? chance_log_between(chance, 10, 20000) : 0,
      .steps_max = 20 * 1000 * 1000,
      .trace = trace,
  };
}

void plan_isolated(uint64_t seed, uint64_t purpose, bool trace) {
  memset(&story, 0, sizeof story);
  story.isolated = true;
  story.plan = chance_of(seed, purpose);
  story.users = chance_of(seed, purpose + 1);
  story.faults = chance_of(seed, purpose + 2);
  plan_world(seed, trace);
  /* Threads that do not run delay everybody. */
  if (story.options.strategy == STRATEGY_STARVE)
    story.options.strategy = STRATEGY_RANDOM;
  story.options.late_us = earlier(story.options.late_us, 200);
}

static void plan_route(const char *name, enum claim_mode claim, enum result_mode result, enum order_mode order) {
  struct chance *chance = &story.plan;
  size_t i = story.profile.route_count++;
  story.profile.routes[i].name = name;
  story.profile.routes[i].claim = claim;
  story.profile.routes[i].result = result;
  story.profile.routes[i].order = order;
  story.profile.routes[i].timeout_ms = chance_log_between(chance, 200, 5000);
  story.profile.routes[i].concurrency = chance_log_between(chance, 1, 64);
  story.profile.routes[i].concurrency_most = story.profile.routes[i].concurrency;
  story.profile.routes[i].history_ms = chance_ppm(chance, 500000) ? 86400 * 1000 : 0;
  story.profile.routes[i].max_attempts = 0;
  story.profile.routes[i].backoff_ms = chance_log_between(chance, 5, 500);
  story.profile.routes[i].backoff_max_ms = 2000;
  story.profile.routes[i].breaker = chance_ppm(chance, 500000) ? 3 : 0;
  story.profile.routes[i].every_attempt = chance_ppm(chance, 300000);
}

static void plan_profile(void) {
  struct chance *chance = &story.plan;
  struct profile *profile = &story.profile;
  *profile = (struct profile){
      .lease_ms = chance_log_between(chance, 1000, 4000),
      .poll_min_ms = chance_log_between(chance, 1, 20),
      .batch = chance_log_between(chance, 1, 100),
      .settle_rows = chance_log_between(chance, 1, 100),
      .settle_delay_ms = chance_between(chance, 0, 10),
      .hang_ms = chance_log_between(chance, 2000, 8000),
      .drain_timeout_ms = chance_log_between(chance, 1, 5000),
      .max_recoveries = 1000,
      .inflight_bytes = 1 << 20,
  };
  profile->wake = (enum wake_mode)chance_below(chance, 3);
  profile->poll_max_ms = profile->poll_min_ms * chance_log_between(chance, 1, 20);
  plan_route("fast", CLAIM_MEMORY, RESULT_NONE, ORDER_BLOCK);
  /* In the order of names, as a configuration has them. */
  if (chance_ppm(chance, 500000))
    plan_route("order", chance_ppm(chance, 500000) ? CLAIM_MEMORY : CLAIM_RECORDED, RESULT_NONE, ORDER_BLOCK);
  if (chance_ppm(chance, 500000))
    plan_route("record", CLAIM_RECORDED, RESULT_NONE, ORDER_BLOCK);
  if (chance_ppm(chance, 500000)) {
    plan_route("result", chance_ppm(chance, 500000) ? CLAIM_MEMORY : CLAIM_RECORDED, RESULT_EXPECTED, ORDER_BLOCK);
    profile->source = true;
  }
}

static int64_t most_at_once(const char *route) {
  for (size_t i = 0; i < story.profile.route_count; i++)
    if (strcmp(story.profile.routes[i].name, route) == 0)
      return story.profile.routes[i].concurrency_most;
  return 0;
}

static uint32_t perhaps(uint32_t high) {
  return chance_ppm(&story.plan, 500000) ? (uint32_t)chance_log_between(&story.plan, 1000, high) : 0;
}

void begin_broker(uint64_t seed) {
  struct broker *broker = &story.broker;
  broker_begin(broker, seed);
  broker->answers_for = "result";
  broker->clock = (int64_t(*)(const void *))table_clock;
  broker->database = &story.db;
  broker->most = most_at_once;
}

static void plan_broker(uint64_t seed, bool clean) {
  struct broker *broker = &story.broker;
  struct chance hangs = chance_of(seed, 110);
  broker->low_us = chance_log_between(&story.plan, 10, 1000);
  broker->high_us = broker->low_us * chance_log_between(&story.plan, 1, 50);
  broker->answer_low_us = chance_log_between(&story.plan, 1, 10000);
  broker->answer_high_us = broker->answer_low_us * chance_log_between(&story.plan, 1, 50);
  broker->faults.full = perhaps(300000);
  broker->hang_low_us = story.profile.hang_ms * 1000 / 4;
  broker->hang_forever = 400000;
  broker->hang_high_us = story.profile.hang_ms * 1000 * 5;
  if (clean)
    return;
  broker->faults.rejected = perhaps(50000);
  broker->faults.answer_fail = perhaps(100000);
  broker->faults.answer_broken = perhaps(100000);
  broker->faults.answer_unknown = perhaps(200000);
  broker->faults.answer_late = perhaps(200000);
  broker->faults.retry = perhaps(300000);
  broker->faults.unavailable = perhaps(100000);
  broker->faults.unknown = perhaps(100000);
  broker->faults.twice = perhaps(100000);
  broker->faults.no_answer = perhaps(100000);
  broker->faults.answer_twice = perhaps(200000);
  broker->faults.answer_retry = perhaps(200000);
  broker->faults.answer_progress = perhaps(200000);
  broker->faults.hang = chance_ppm(&hangs, 300000) ? (uint32_t)chance_log_between(&hangs, 500, 50000) : 0;
}

static void plan_faults(bool clean) {
  struct chance *chance = &story.plan;
  story.fault_count = clean ? 0 : (unsigned)chance_log_between(chance, 1, 12);
  story.fault_gap_us = chance_log_between(chance, 1000, 2 * 1000 * 1000);
  for (int kind = 0; kind < FAULT_SNAPSHOT; kind++)
    story.fault_ppm[kind] = chance_ppm(chance, 500000) ? (uint32_t)chance_between(chance, 1, 100) : 0;
  story.facts = (struct run_facts){.clean = clean, .ordered = true, .told = true};
}

/* Where round trips differ by more than two milliseconds, a
 * poll of every group may seem to be what takes them: it is done for a 200th of the time then (core/poll_pace.h). */
int64_t still_us(void) {
  int64_t starved_us = story.options.strategy == STRATEGY_STARVE ? 3 * 1000 * 1000 : 0;
  int64_t varies_us = 2 * (story.db.latency_high_us - story.db.latency_low_us + story.options.late_us);
  int64_t rare_us = varies_us > 2000 ? 200 * varies_us : 0;
  return 500 * 1000 + story.profile.poll_max_ms * 1000 + 10 * story.options.late_us + starved_us + rare_us;
}

static void plan_database(bool clean) {
  struct table *db = &story.db;
  db->latency_low_us = chance_log_between(&story.plan, 10, 500);
  db->latency_high_us = db->latency_low_us * chance_log_between(&story.plan, 1, 20);
  story.facts.longest_wait_us = 2500 * 1000; /* backoff_max_ms, with its jitter */
  story.facts.round_trip_us = 2 * db->latency_high_us;
  db->commit_low_us = chance_log_between(&story.plan, 1, 100);
  db->commit_high_us = db->commit_low_us * chance_log_between(&story.plan, 1, 50);
  db->lock_wait_us = chance_log_between(&story.plan, 10000, 1000 * 1000);
  db->silent_us = story.profile.lease_ms * 1000 / 4;
  db->may_kill = chance_ppm(&story.plan, 800000);
  if (!clean)
    db->conflict_ppm = perhaps(50000);
}

/* What the rows ask for, and how little the routes allow. */
static void plan_rows(uint64_t seed) {
  struct chance chance = chance_of(seed, 111);
  struct profile *profile = &story.profile;
  uint32_t *parts[] = {&story.expiry_ppm, &story.budget_ppm, &story.poison_ppm};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    *parts[i] = chance_ppm(&chance, 300000) ? (uint32_t)chance_log_between(&chance, 10000, 500000) : 0;
  if (chance_ppm(&chance, 200000))
    profile->max_recoveries = chance_between(&chance, 1, 4);
  story.facts.few_attempts = profile->max_recoveries < 1000;
  for (size_t i = 0; i < profile->route_count; i++) {
    if (chance_ppm(&chance, 200000))
      profile->routes[i].max_attempts = (uint32_t)chance_between(&chance, 1, 5);
    if (chance_ppm(&chance, 200000))
      profile->routes[i].give_up_ms = chance_log_between(&chance, 100, 10000);
    story.facts.few_attempts |= profile->routes[i].max_attempts > 0 || profile->routes[i].give_up_ms > 0;
  }
}

/* What destinations say beside that they fail: for how long, for how many, and for good. */
static void plan_reach(uint64_t seed) {
  struct chance chance = chance_of(seed, 113);
  struct broker_faults *faults = &story.broker.faults;
  const struct {
    uint32_t *often, often_ppm, high;
  } parts[] = {{&faults->wish, 300000, 1000000},
               {&faults->instance, 300000, 1000000},
               {&faults->gone, 100000, 200000},
               {&faults->blameless, 300000, 1000000}};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    *parts[i].often =
        chance_ppm(&chance, parts[i].often_ppm) ? (uint32_t)chance_log_between(&chance, 10000, parts[i].high) : 0;
  if (chance_ppm(&chance, 200000))
    story.fault_ppm[FAULT_BROKER_FAILS] = (uint32_t)chance_between(&chance, 1, 100);
}

/* Where tasks of a route go to different places, one may be in trouble alone: its tasks are put off, the longer the
 * older they are. */
static void plan_targets(uint64_t seed) {
  struct chance chance = chance_of(seed, 116);
  if (!chance_ppm(&chance, 300000))
    return;
  story.fault_ppm[FAULT_TARGET_DOWN] = (uint32_t)chance_between(&chance, 1, 100);
  for (size_t i = 0; i < story.profile.route_count; i++)
    story.profile.routes[i].targets = chance_ppm(&chance, 600000);
  story.facts.longest_wait_us = PUT_OFF_US;
}

/* How much may be at work. One task may in any case, however large it is. */
static void plan_bytes(uint64_t seed) {
  struct chance chance = chance_of(seed, 115);
  story.profile.large = chance_ppm(&chance, 200000);
  if (chance_ppm(&chance, 300000))
    story.profile.inflight_bytes = chance_log_between(&chance, 1, 100 * 1000);
}

/* How many tasks of a route may leave in a second. */
static void plan_rates(uint64_t seed) {
  struct chance chance = chance_of(seed, 114);
  for (size_t i = 0; i < story.profile.route_count; i++)
    if (chance_ppm(&chance, 150000))
      story.profile.routes[i].rate = (double)chance_log_between(&chance, RATE_LEAST, 200);
  story.backlog_us = story.task_count * INT64_C(1000000) / RATE_LEAST;
}

/* A server without a short limit leaves what a daemon that stands still has open to the other daemons. */
static void plan_silence(uint64_t seed) {
  struct chance chance = chance_of(seed, 112);
  if (chance_ppm(&chance, 300000))
    story.db.silent_us = chance_log_between(&chance, story.db.silent_us, 30 * 1000 * 1000);
}

void plan_story(uint64_t seed, bool trace) {
  memset(&story, 0, sizeof story);
  story.plan = chance_of(seed, 100);
  story.users = chance_of(seed, 101);
  story.faults = chance_of(seed, 102);
  bool clean = chance_ppm(&story.plan, 150000);
  plan_world(seed, trace);
  plan_profile();
  begin_broker(seed);
  plan_broker(seed, clean);
  plan_faults(clean);
  story.process_count = (unsigned)chance_between(&story.plan, 1, 3);
  story.task_count = (unsigned)chance_log_between(&story.plan, 1, 60);
  story.key_count = (unsigned)chance_between(&story.plan, 1, KEYS);
  world_begin(&story.options);
  table_begin(&story.db, (unsigned)chance_log_between(&story.plan, 1, 8), chance_of(seed, 103));
  plan_database(clean);
  story.facts.still_us = clean ? still_us() : 0;
  plan_bytes(seed);
  if (!clean) {
    plan_rows(seed);
    plan_silence(seed);
    plan_reach(seed);
    plan_targets(seed);
    plan_rates(seed);
  }
  story.bound_ppm = chance_ppm(&story.plan, 400000) ? (uint32_t)chance_log_between(&story.plan, 10000, 900000) : 0;
  bool twins = chance_ppm(&story.plan, 300000);
  plan_processes(seed, twins);
}

void plan_processes(uint64_t seed, bool twins) {
  for (unsigned i = 0; i < story.process_count; i++) {
    struct process *process = &story.processes[i];
    process->machine = (struct machine){.number = i + 1,
                                        .chance = chance_of(seed, 200 + i),
                                        .mono_ahead_us = chance_log_between(&story.plan, 1, 1000000000),
                                        .wall_ahead_us = TABLE_EPOCH_US};
    process->profile = &story.profile;
    (void)snprintf(process->host, sizeof process->host, "host%u", twins ? 1 : i + 1);
    process->machine.host = process->host;
    process->db = &story.db;
  }
}
