/* SPDX-License-Identifier: MIT */
#include "story_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "memory.h"

struct story story;

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

bool story_run(uint64_t seed, bool trace, struct story_count *count, const char **why) {
  plan_story(seed, trace);
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
