/* SPDX-License-Identifier: MIT */
#include "story_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "memory.h"

/* What is held is looked for in a hundredth of the time, after half a minute at most. */
enum { HELD_MS = 40 * 1000 };
/* What a daemon takes to start; and what sharing the shards out takes when another has come: some rounds of a second at
 * most. */
enum { STARTED_US = 300 * 1000, SHARED_OUT_US = 4 * 1000 * 1000 };
/* What is refused is tried again after twice the time, at most as long again as it was refused. */
enum { REFUSED_MS = 20 * 1000 };
/* What a plugin may take to be found hanging beyond engine.hang_ms, and to be replaced; or the process, where that
 * is to start anew. */
enum { REPLACED_MS = 15 * 1000 };

struct story story;

static bool first_part_is_over(void *arg) { return story.users_done && story.faults_done; }

static bool all_tasks_are_over(void *arg) {
  for (int i = 0; i < story.db.open_end; i++)
    if (story.db.open[i])
      return false;
  return story.db.data.rows.count == 0;
}

static bool nobody_holds(void *arg) {
  for (int i = 0; i < story.db.open_end; i++)
    if (story.db.open[i] && !story.db.open[i]->conn && story.db.open[i]->machine == 0)
      return false;
  return true;
}

static void start_missing(void) {
  for (unsigned i = 0; i < story.process_count; i++) /* each host that tasks are bound to, or one */
    if (!story.processes[i].running && (story.bound_ppm || !some_process(true)))
      process_start(&story.processes[i]);
}

static void heal(void) {
  story.broker.faults = (struct broker_faults){0};
  story.broker.full_until_us = story.broker.down_until_us = story.broker.frozen_until_us = 0;
  story.broker.fails_until_us = 0;
  memset(story.broker.target_down_until_us, 0, sizeof story.broker.target_down_until_us);
  story.db.conflict_ppm = 0;
  story.db.slow = 0;
  for (unsigned i = 0; i < story.process_count; i++)
    story.processes[i].machine.stopped_until_us = 0;
  start_missing();
}

/* When the last of the tasks that wait is due, or now. */
static int64_t last_due_us(void) {
  int64_t last_us = world_now_us(), now_us = table_clock(&story.db);
  for (size_t i = 0; i < story.db.data.rows.count; i++) {
    const struct row *row = story.db.data.rows.at[i];
    if (row->state == TASK_SCHEDULED)
      last_us = later(last_us, world_now_us() + row_next_us(row) - now_us);
  }
  return last_us;
}

/* How long a task may take from there to its end, when nothing is wrong any more: a lease that has to run out, a result
 * that never came, a plugin that hangs, retries, and what tasks of a key wait for one another. */
static int64_t patience_us(void) {
  int64_t timeout_ms = 0, backoff_ms = 0;
  for (size_t i = 0; i < story.profile.route_count; i++) {
    timeout_ms = later(timeout_ms, story.profile.routes[i].timeout_ms);
    backoff_ms = later(backoff_ms, story.profile.routes[i].backoff_max_ms);
  }
  int64_t hang_ms = story.broker.counts[BROKER_HANG] > 0 ? story.profile.hang_ms + REPLACED_MS : 0;
  return 1000 * (3 * story.profile.lease_ms + 2 * timeout_ms + 2 * backoff_ms + 3000 + hang_ms +
                 (story.any_absent ? HELD_MS : 0) + (story.any_refused ? REFUSED_MS : 0));
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

void start_some(unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    if (!story.processes[i].running) /* somebody was quicker */
      process_start(&story.processes[i]);
    world_sleep(chance_log_between(&story.faults, 1, 3 * 1000 * 1000));
  }
  story.facts.quiet_us = world_now_us() + (count > 1 ? SHARED_OUT_US : STARTED_US);
}

static void be_referee(void *arg) {
  start_some(story.process_count);
  if (story.calm)
    world_spawn(NULL, "watcher", be_watcher, NULL);
  (void)world_wait(first_part_is_over, NULL, INT64_MAX);
  heal();
  world_trace("faults are over");
  (void)world_wait(nobody_holds, NULL, INT64_MAX);
  restore_routes();
  /* A process that ends of its own accord is started again by its supervisor. */
  int64_t until = last_due_us() + patience_us() + story.backlog_us;
  while (!world_wait(all_tasks_are_over, NULL, earlier(until, world_now_us() + 1000 * 1000)) && world_now_us() < until)
    start_missing();
  end_processes();
  world_stop();
}

static void leave_out(const struct story_cut *cut) {
  story.fault_cut = cut->faults;
  if (cut->tasks && cut->tasks < story.task_count)
    story.task_count = cut->tasks;
  if (cut->processes && cut->processes < story.process_count)
    story.process_count = cut->processes;
  if (cut->quiet)
    story.broker.faults = (struct broker_faults){0};
}

bool story_run(enum story_kind kind, uint64_t seed, const struct story_cut *cut, bool trace, struct story_count *count,
               const char **why) {
  static void (*const plans[])(uint64_t seed, bool trace) = {[STORY_PROMISES] = plan_story,
                                                             [STORY_ISOLATION] = plan_isolation,
                                                             [STORY_KEYS] = plan_keys,
                                                             [STORY_FLOW] = plan_flow};
  static void (*const referees[])(void *arg) = {[STORY_PROMISES] = be_referee,
                                                [STORY_ISOLATION] = be_isolated,
                                                [STORY_KEYS] = be_referee,
                                                [STORY_FLOW] = be_flowing};
  bool isolated = kind == STORY_ISOLATION || kind == STORY_FLOW;
  plans[kind](seed, trace);
  leave_out(cut);
  world_spawn(NULL, "broker", broker_run, &story.broker);
  world_spawn(NULL, "referee", referees[kind], NULL);
  if (!isolated) {
    world_spawn(NULL, "users", kind == STORY_KEYS ? be_writers : be_users, NULL);
    world_spawn(NULL, "faults", be_faults, NULL);
  }
  bool ok = world_run(why);
  story.facts.stood_still |= story.broker.counts[BROKER_HANG] > 0;
  const char *verdict =
      ok ? (isolated ? checker_judge_isolation : checker_judge)(&story.db, &story.broker, &story.facts) : *why;
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
