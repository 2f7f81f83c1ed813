/* SPDX-License-Identifier: MIT */
#include "story_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"

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
    [FAULT_LEASE_LOCK] = "lease lock",
    [FAULT_REFUSED_WRITES] = "refused writes",
    [FAULT_LOST_ANSWERS] = "lost answers",
    [FAULT_BROKER_DOWN] = "broker down",
    [FAULT_BROKER_FROZEN] = "broker frozen",
    [FAULT_SINK_FULL] = "sink full",
    [FAULT_LEASE_ROWS] = "lease rows gone",
    [FAULT_LOG] = "log ends",
    [FAULT_RESULT] = "result offered",
    [FAULT_TRUNCATE] = "TRUNCATE",
    [FAULT_COMMAND] = "command",
    [FAULT_PAUSED_ROUTE] = "route paused",
    [FAULT_CLOCK_STEP] = "clock step",
    [FAULT_UPDATE] = "UPDATE",
    [FAULT_DELETE] = "DELETE",
    [FAULT_SNAPSHOT] = "old snapshot",
    [FAULT_BROKER_FAILS] = "broker fails",
    [FAULT_TARGET_DOWN] = "target down",
};

/* How many more copies of a task in flight each may make. What only delays tasks, or is about one by its name, makes
 * none. */
static const unsigned repeats[FAULT_KINDS] = {
    [FAULT_KILL] = 1,         [FAULT_PAUSE] = 1,        [FAULT_DRAIN] = 1,
    [FAULT_DB_DOWN] = 1,      [FAULT_DB_READ_ONLY] = 1, [FAULT_DB_SLOW] = 1,
    [FAULT_DB_SESSIONS] = 1,  [FAULT_DB_FAILOVER] = 2, /* the lease may be lost as well */
    [FAULT_TABLE_LOCK] = 1,   [FAULT_LEASE_LOCK] = 1,   [FAULT_REFUSED_WRITES] = 1,
    [FAULT_LOST_ANSWERS] = 1, [FAULT_LEASE_ROWS] = 1,   [FAULT_CLOCK_STEP] = 1,
};

struct process *some_process(bool running) {
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

int64_t fault_time(int64_t high_us) { return chance_log_between(&story.faults, 1000, high_us); }

/* A full disk, a right that is missing, a trigger, or a column that is too narrow: about all rows, or about one. */
static void refuse_writes(int64_t until_us) {
  struct table *db = &story.db;
  struct chance *chance = &story.faults;
  const struct row *row = some_row();
  if (story.isolated && !row)
    return;
  unsigned all = LOCK_HISTORY | LOCK_ATTEMPTS | LOCK_HEADS | REFUSE_ALERTS | REFUSE_ROWS;
  db->refuses = (unsigned)chance_below(chance, all + 1);
  db->refuses_id = row && (story.isolated || chance_ppm(chance, 400000)) ? row->id : 0;
  db->denies = chance_ppm(chance, 300000);
  db->refused_bytes = chance_ppm(chance, 200000) ? 4 : 0;
  if (db->refuses & LOCK_HEADS) /* nothing tells then that a task is to be tried again first: core/store.h */
    story.facts.ordered = false;
  world_sleep(until_us - world_now_us());
  story.any_refused = story.any_refused || db->refuses & REFUSE_ROWS;
  db->refuses = 0;
  db->refuses_id = 0;
  db->denies = false;
  db->refused_bytes = 0;
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
    story.facts.round_trip_us = later(story.facts.round_trip_us, 2 * db->latency_high_us * db->slow);
    world_sleep(until - world_now_us());
    db->slow = 0;
    break;
  case FAULT_DB_SESSIONS:
    table_kill_sessions(db);
    break;
  case FAULT_DB_FAILOVER: {
    struct data *backup = table_backup(db);
    world_sleep(fault_time(1000 * 1000));
    if (backup->heads.count != db->data.heads.count) /* a head is lost, or back */
      story.facts.ordered = false;
    table_fail_over(db, backup, chance_ppm(&story.faults, 500000));
    world_trace("another server has taken over");
    table_backup_free(&backup);
    break;
  }
  case FAULT_REFUSED_WRITES:
    refuse_writes(until);
    break;
  case FAULT_SNAPSHOT:
    db->unpurged_until_us = later(db->unpurged_until_us, until);
    break;
  case FAULT_LOG:
    table_altered(db);
    db->no_log = chance_ppm(&story.faults, 500000);
    world_sleep(until - world_now_us());
    db->no_log = false;
    break;
  case FAULT_LOST_ANSWERS:
    db->lost_before_ppm = (uint32_t)chance_log_between(&story.faults, 1000, 300000);
    db->lost_after_ppm = (uint32_t)chance_log_between(&story.faults, 1000, 300000);
    world_sleep(until - world_now_us());
    db->lost_before_ppm = db->lost_after_ppm = 0;
    break;
  default:
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
    story.facts.stood_still = true;
    process->machine.stopped_until_us = world_now_us() + fault_time(10 * 1000 * 1000);
    break;
  case FAULT_DRAIN:
    process->drain = chance_ppm(&story.faults, 700000);
    process_ask(process, PROCESS_END);
    break;
  case FAULT_RELOAD:
    change_routes();
    process_ask(process, PROCESS_RELOAD);
    break;
  default:
    story.facts.stood_still = true;
    process->machine.wall_ahead_us += chance_between(&story.faults, -5, 5) * 1000 * 1000;
    process->machine.boot_ahead_us += chance_ppm(&story.faults, 300000) ? fault_time(10 * 1000 * 1000) : 0;
    break;
  }
  return true;
}

void break_some_target(int64_t high_us) {
  story.broker.target_down_until_us[chance_below(&story.faults, BROKER_TARGETS)] = world_now_us() + fault_time(high_us);
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
  case FAULT_ROW_LOCK:
    world_spawn(NULL, "locker", hold_rows, NULL);
    break;
  case FAULT_TABLE_LOCK:
    world_spawn(NULL, "locker", hold_table, NULL);
    break;
  case FAULT_LEASE_LOCK:
    world_spawn(NULL, "locker", hold_lease, NULL);
    break;
  case FAULT_BROKER_FAILS:
    story.broker.fails_until_us = world_now_us() + fault_time(8 * 1000 * 1000);
    break;
  case FAULT_TARGET_DOWN:
    break_some_target(8 * 1000 * 1000);
    break;
  case FAULT_SINK_FULL:
    story.broker.full_until_us = world_now_us() + fault_time(8 * 1000 * 1000);
    break;
  case FAULT_LEASE_ROWS:
    world_spawn(NULL, "deleter", forget_leases, NULL);
    break;
  case FAULT_RESULT:
    return offer_result();
  case FAULT_TRUNCATE:
    world_spawn(NULL, "truncater", truncate_table, NULL);
    break;
  case FAULT_COMMAND:
    return command_some_task();
  case FAULT_PAUSED_ROUTE:
    return pause_some_route();
  case FAULT_UPDATE:
    world_spawn(NULL, "updater", update_some_row, NULL);
    break;
  case FAULT_DELETE:
    world_spawn(NULL, "deleter", delete_some_row, NULL);
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

void be_faults(void *arg) {
  for (unsigned i = 0; i < story.fault_count; i++) {
    world_sleep(chance_log_between(&story.faults, 10, story.fault_gap_us));
    enum fault_kind kind = draw_fault();
    if (kind < FAULT_KINDS && !(i < 32 && story.fault_cut >> i & 1)) {
      world_trace("fault: %s", fault_names[kind]);
      if (inflict(kind)) {
        story.count.faults[kind]++;
        story.facts.faults += repeats[kind];
      }
    }
    struct process *down = some_process(false);
    if (down && chance_ppm(&story.faults, 700000))
      process_start(down);
  }
  story.faults_done = true;
}
