/* SPDX-License-Identifier: MIT */
#include "story.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker.h"
#include "checker.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "memory.h"
#include "process.h"
#include "table.h"

enum { PROCESSES = 5, TASKS_MAX = 200, KEYS = 3, HEAL_US = 600 * 1000 * 1000 };

const char *const fault_names[FAULT_KINDS] = {
    [FAULT_KILL] = "kill",
    [FAULT_PAUSE] = "pause",
    [FAULT_DRAIN] = "drain",
    [FAULT_RELOAD] = "reload",
    [FAULT_DB_DOWN] = "database down",
    [FAULT_DB_READ_ONLY] = "read-only",
    [FAULT_DB_SLOW] = "database slow",
    [FAULT_DB_SESSIONS] = "sessions ended",
    [FAULT_DB_FAILOVER] = "failover",
    [FAULT_ROW_LOCK] = "row lock",
    [FAULT_TABLE_LOCK] = "table lock",
    [FAULT_REFUSED_WRITES] = "refused writes",
    [FAULT_LOST_ANSWERS] = "lost answers",
    [FAULT_BROKER_DOWN] = "broker down",
    [FAULT_BROKER_FROZEN] = "broker frozen",
    [FAULT_CLOCK_STEP] = "clock step",
    [FAULT_UPDATE] = "UPDATE",
    [FAULT_DELETE] = "DELETE",
};

static struct {
  struct chance plan, users, faults;
  struct world_options options;
  struct profile profile;
  struct table db;
  struct broker broker;
  struct process processes[PROCESSES];
  unsigned process_count, task_count, key_count;
  uint32_t fault_ppm[FAULT_KINDS]; /* weight; 0 = does not happen in this run */
  unsigned fault_count;
  int64_t fault_gap_us;
  bool users_done, faults_done;
  struct run_facts facts;
  struct story_count count;
  char why[1024];
} story;

/* --- the plan: all that a seed decides beforehand --- */

static void plan_world(uint64_t seed, bool trace) {
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

static void plan_route(const char *name, enum claim_mode claim, enum result_mode result, enum order_mode order) {
  struct chance *chance = &story.plan;
  size_t i = story.profile.route_count++;
  story.profile.routes[i].name = name;
  story.profile.routes[i].claim = claim;
  story.profile.routes[i].result = result;
  story.profile.routes[i].order = order;
  story.profile.routes[i].timeout_ms = chance_log_between(chance, 200, 5000);
  story.profile.routes[i].concurrency = chance_log_between(chance, 1, 64);
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

static uint32_t perhaps(uint32_t high) {
  return chance_ppm(&story.plan, 500000) ? (uint32_t)chance_log_between(&story.plan, 1000, high) : 0;
}

static void plan_broker(bool clean) {
  struct broker *broker = &story.broker;
  broker->low_us = chance_log_between(&story.plan, 10, 1000);
  broker->high_us = broker->low_us * chance_log_between(&story.plan, 1, 50);
  broker->answer_low_us = chance_log_between(&story.plan, 1, 10000);
  broker->answer_high_us = broker->answer_low_us * chance_log_between(&story.plan, 1, 50);
  broker->answers_for = "result";
  broker->clock = (int64_t(*)(const void *))table_clock;
  broker->database = &story.db;
  broker->faults.full = perhaps(300000);
  if (clean)
    return;
  broker->faults.retry = perhaps(300000);
  broker->faults.unavailable = perhaps(100000);
  broker->faults.unknown = perhaps(100000);
  broker->faults.twice = perhaps(100000);
  broker->faults.no_answer = perhaps(100000);
  broker->faults.answer_twice = perhaps(200000);
  broker->faults.answer_retry = perhaps(200000);
  broker->faults.answer_progress = perhaps(200000);
}

static void plan_faults(bool clean) {
  struct chance *chance = &story.plan;
  story.fault_count = clean ? 0 : (unsigned)chance_log_between(chance, 1, 12);
  story.fault_gap_us = chance_log_between(chance, 1000, 2 * 1000 * 1000);
  for (int kind = 0; kind < FAULT_KINDS; kind++)
    story.fault_ppm[kind] = chance_ppm(chance, 500000) ? (uint32_t)chance_between(chance, 1, 100) : 0;
  story.facts = (struct run_facts){.clean = clean, .ordered = true};
}

static void plan_database(bool clean) {
  struct table *db = &story.db;
  db->latency_low_us = chance_log_between(&story.plan, 10, 500);
  db->latency_high_us = db->latency_low_us * chance_log_between(&story.plan, 1, 20);
  db->commit_low_us = chance_log_between(&story.plan, 1, 100);
  db->commit_high_us = db->commit_low_us * chance_log_between(&story.plan, 1, 50);
  db->lock_wait_us = chance_log_between(&story.plan, 10000, 1000 * 1000);
  db->silent_us = story.profile.lease_ms * 1000 / 4;
  db->may_kill = chance_ppm(&story.plan, 800000);
  if (!clean)
    db->conflict_ppm = perhaps(50000);
}

/* --- users --- */

static void insert_one(unsigned number) {
  struct chance *chance = &story.users;
  struct tx *tx = user_begin(&story.db);
  size_t which = chance_below(chance, story.profile.route_count);
  const char *route = story.profile.routes[which].name;
  char payload[32], id[48], key[16];
  int used = snprintf(payload, sizeof payload, "task %u", number);
  struct row *row = user_insert(tx, route, payload, (size_t)used);
  bool keyed = strcmp(route, "order") == 0;
  uint64_t key_number = chance_below(chance, story.key_count);
  (void)snprintf(id, sizeof id, keyed ? "t%u.%" PRIu64 : "t%u", number, key_number);
  blob_put(&row->text[ROW_MESSAGE_ID], id);
  if (keyed) {
    (void)snprintf(key, sizeof key, "key %" PRIu64, key_number);
    blob_put(&row->text[ROW_ORDER_KEY], key);
  }
  if (chance_ppm(chance, 700000))
    row->due_us = table_clock(&story.db) + chance_log_between(chance, 1, 5 * 1000 * 1000);
  if (!keyed) /* the order of a key is by priority first */
    row->priority = (uint8_t)chance_between(chance, 4, 6);
  if (chance_ppm(chance, 200000))
    world_sleep(chance_log_between(chance, 100, 3 * 1000 * 1000));
  if (chance_ppm(chance, 50000)) {
    user_rollback(&tx);
    return;
  }
  user_commit(&tx);
  story.count.tasks++;
}

static void be_users(void *arg) {
  for (unsigned i = 0; i < story.task_count; i++) {
    if (chance_ppm(&story.users, 300000))
      world_sleep(chance_log_between(&story.users, 10, 1000 * 1000));
    insert_one(i);
  }
  story.users_done = true;
}

/* --- faults --- */

static struct process *some_process(bool running) {
  struct process *fit[PROCESSES];
  unsigned n = 0;
  for (unsigned i = 0; i < story.process_count; i++)
    if (story.processes[i].running == running)
      fit[n++] = &story.processes[i];
  return n ? fit[chance_below(&story.faults, n)] : NULL;
}

static void kill_process(struct process *process) {
  process_kill(process);
  broker_machine_gone(&story.broker, &process->machine);
  table_machine_gone(&story.db, &process->machine);
}

static struct row *some_row(void) {
  const struct list *rows = &story.db.data.rows;
  return rows->count ? rows->at[chance_below(&story.faults, rows->count)] : NULL;
}

static int64_t fault_time(int64_t high_us) { return chance_log_between(&story.faults, 1000, high_us); }

static void hold_lock(void *arg) {
  struct chance *chance = &story.faults;
  struct tx *tx = user_begin(&story.db);
  struct row *row = some_row();
  bool locked = arg ? user_lock(tx, (enum lock_kind)(1U << chance_below(chance, 3)), 0, false)
                    : row && user_lock(tx, LOCK_ROW, row->id, false);
  if (locked)
    world_sleep(fault_time(3 * 1000 * 1000));
  user_rollback(&tx);
}

static void update_some_row(void) {
  struct row *found = some_row();
  struct tx *tx = user_begin(&story.db);
  struct row *row = found ? user_update(tx, found->id) : NULL;
  if (row && row->state == TASK_SCHEDULED && row->text[ROW_ORDER_KEY]->len == 0) /* whose due time is their order */
    row->due_us = table_clock(&story.db) + chance_between(&story.faults, -1000 * 1000, 2 * 1000 * 1000);
  user_commit(&tx);
}

static void delete_some_row(void) {
  struct row *found = some_row();
  struct tx *tx = user_begin(&story.db);
  if (found)
    (void)user_delete(tx, found->id);
  user_commit(&tx);
}

static void database_fault(enum fault_kind kind) {
  struct table *db = &story.db;
  int64_t until = world_now_us() + fault_time(8 * 1000 * 1000);
  switch (kind) {
  case FAULT_DB_DOWN:
    table_down(db, until);
    break;
  case FAULT_DB_READ_ONLY:
    db->read_only = true;
    world_sleep(until - world_now_us());
    db->read_only = false;
    break;
  case FAULT_DB_SLOW:
    db->slow = (unsigned)chance_log_between(&story.faults, 2, 1000);
    world_sleep(until - world_now_us());
    db->slow = 0;
    break;
  case FAULT_DB_SESSIONS:
    table_kill_sessions(db);
    break;
  case FAULT_DB_FAILOVER: {
    struct data *backup = table_backup(db);
    world_sleep(fault_time(1000 * 1000));
    table_fail_over(db, backup, chance_ppm(&story.faults, 500000));
    world_trace("another server has taken over");
    table_backup_free(&backup);
    break;
  }
  case FAULT_REFUSED_WRITES:
    db->refuses = (unsigned)chance_below(&story.faults, 8);
    if (db->refuses & LOCK_HEADS) /* nothing tells then that a task is to be tried again first: core/store.h */
      story.facts.ordered = false;
    world_sleep(until - world_now_us());
    db->refuses = 0;
    break;
  case FAULT_LOST_ANSWERS:
    db->lost_before_ppm = (uint32_t)chance_log_between(&story.faults, 1000, 300000);
    db->lost_after_ppm = (uint32_t)chance_log_between(&story.faults, 1000, 300000);
    world_sleep(until - world_now_us());
    db->lost_before_ppm = db->lost_after_ppm = 0;
    break;
  default:
    world_spawn(NULL, "locker", hold_lock, kind == FAULT_TABLE_LOCK ? &story : NULL);
    break;
  }
}

static bool process_fault(enum fault_kind kind) {
  struct process *process = some_process(true);
  if (!process)
    return false;
  switch (kind) {
  case FAULT_KILL:
    kill_process(process);
    break;
  case FAULT_PAUSE:
    process->machine.stopped_until_us = world_now_us() + fault_time(10 * 1000 * 1000);
    break;
  case FAULT_DRAIN:
    process->drain = chance_ppm(&story.faults, 700000);
    process_ask(process, PROCESS_END);
    break;
  case FAULT_RELOAD:
    process_ask(process, PROCESS_RELOAD);
    break;
  default:
    process->machine.wall_ahead_us += chance_between(&story.faults, -5, 5) * 1000 * 1000;
    process->machine.boot_ahead_us += chance_ppm(&story.faults, 300000) ? fault_time(10 * 1000 * 1000) : 0;
    break;
  }
  return true;
}

static bool inflict(enum fault_kind kind) {
  switch (kind) {
  case FAULT_KILL:
  case FAULT_PAUSE:
  case FAULT_DRAIN:
  case FAULT_RELOAD:
  case FAULT_CLOCK_STEP:
    return process_fault(kind);
  case FAULT_BROKER_DOWN:
    story.broker.down_until_us = world_now_us() + fault_time(8 * 1000 * 1000);
    break;
  case FAULT_BROKER_FROZEN:
    story.broker.frozen_until_us = world_now_us() + fault_time(8 * 1000 * 1000);
    break;
  case FAULT_UPDATE:
    update_some_row();
    break;
  case FAULT_DELETE:
    delete_some_row();
    break;
  default:
    database_fault(kind);
    break;
  }
  return true;
}

static enum fault_kind draw_fault(void) {
  uint64_t sum = 0;
  for (int kind = 0; kind < FAULT_KINDS; kind++)
    sum += story.fault_ppm[kind];
  uint64_t at = sum ? chance_below(&story.faults, sum) : 0;
  for (int kind = 0; kind < FAULT_KINDS; kind++) {
    if (at < story.fault_ppm[kind])
      return (enum fault_kind)kind;
    at -= story.fault_ppm[kind];
  }
  return FAULT_KINDS;
}

static void be_faults(void *arg) {
  for (unsigned i = 0; i < story.fault_count; i++) {
    world_sleep(chance_log_between(&story.faults, 10, story.fault_gap_us));
    enum fault_kind kind = draw_fault();
    if (kind < FAULT_KINDS) {
      world_trace("fault: %s", fault_names[kind]);
      if (inflict(kind)) {
        story.count.faults[kind]++;
        story.facts.faults += kind == FAULT_DB_FAILOVER ? 2 : 1; /* the lease may be lost as well */
      }
    }
    struct process *down = some_process(false);
    if (down && chance_ppm(&story.faults, 700000))
      process_start(down);
  }
  story.faults_done = true;
}

/* --- the whole --- */

static bool first_part_is_over(void *arg) { return story.users_done && story.faults_done; }

static bool all_tasks_are_over(void *arg) {
  for (int i = 0; i < TRANSACTIONS_MAX; i++)
    if (story.db.open[i])
      return false;
  return story.db.data.rows.count == 0;
}

static void heal(void) {
  story.broker.faults = (struct broker_faults){0};
  story.broker.down_until_us = story.broker.frozen_until_us = 0;
  story.db.conflict_ppm = 0;
  story.db.slow = 0;
  for (unsigned i = 0; i < story.process_count; i++)
    story.processes[i].machine.stopped_until_us = 0;
  if (!some_process(true))
    process_start(&story.processes[0]);
}

static bool nobody_runs(void *arg) { return !some_process(true); }

static void end_processes(void) {
  for (unsigned i = 0; i < story.process_count; i++)
    if (story.processes[i].running) {
      story.processes[i].drain = true;
      process_ask(&story.processes[i], PROCESS_END);
    }
  if (!world_wait(nobody_runs, NULL, world_now_us() + HEAL_US))
    world_fail("a daemon that was asked to end does not");
}

static void be_referee(void *arg) {
  for (unsigned i = 0; i < story.process_count; i++) {
    process_start(&story.processes[i]);
    world_sleep(chance_log_between(&story.faults, 1, 3 * 1000 * 1000));
  }
  (void)world_wait(first_part_is_over, NULL, INT64_MAX);
  heal();
  world_trace("faults are over");
  /* A process that ends of its own accord is started again by its supervisor. */
  int64_t until = world_now_us() + HEAL_US;
  while (!world_wait(all_tasks_are_over, NULL, earlier(until, world_now_us() + 1000 * 1000)) && world_now_us() < until)
    if (!some_process(true))
      process_start(&story.processes[0]);
  end_processes();
  world_stop();
}

static void begin(uint64_t seed, bool trace) {
  memset(&story, 0, sizeof story);
  story.plan = chance_of(seed, 100);
  story.users = chance_of(seed, 101);
  story.faults = chance_of(seed, 102);
  bool clean = chance_ppm(&story.plan, 150000);
  plan_world(seed, trace);
  plan_profile();
  broker_begin(&story.broker, seed);
  plan_broker(clean);
  plan_faults(clean);
  story.process_count = (unsigned)chance_between(&story.plan, 1, 3);
  story.task_count = (unsigned)chance_log_between(&story.plan, 1, 60);
  story.key_count = (unsigned)chance_between(&story.plan, 1, KEYS);
  world_begin(&story.options);
  table_begin(&story.db, (unsigned)chance_log_between(&story.plan, 1, 8), chance_of(seed, 103));
  plan_database(clean);
  for (unsigned i = 0; i < story.process_count; i++) {
    struct process *process = &story.processes[i];
    process->machine = (struct machine){.number = i + 1,
                                        .chance = chance_of(seed, 200 + i),
                                        .mono_ahead_us = chance_log_between(&story.plan, 1, 1000000000),
                                        .wall_ahead_us = TABLE_EPOCH_US};
    process->profile = &story.profile;
    (void)snprintf(process->host, sizeof process->host, "host%u", i + 1);
    process->db = &story.db;
  }
}

bool story_run(uint64_t seed, bool trace, struct story_count *count, const char **why) {
  begin(seed, trace);
  world_spawn(NULL, "broker", broker_run, &story.broker);
  world_spawn(NULL, "referee", be_referee, NULL);
  world_spawn(NULL, "users", be_users, NULL);
  world_spawn(NULL, "faults", be_faults, NULL);
  bool ok = world_run(why);
  const char *verdict = ok ? checker_judge(&story.db, &story.broker, &story.facts) : *why;
  if (verdict)
    (void)snprintf(story.why, sizeof story.why, "%s", verdict);
  story.count.world = world_counts();
  story.count.virtual_us = world_now_us();
  memcpy(story.count.broker, story.broker.counts, sizeof story.count.broker);
  story.count.deliveries = story.broker.counts[BROKER_ARRIVED];
  *count = story.count;
  world_end();
  for (unsigned i = 0; i < story.process_count; i++)
    memory_free_all(i + 1);
  table_end(&story.db);
  *why = story.why;
  return !verdict;
}
