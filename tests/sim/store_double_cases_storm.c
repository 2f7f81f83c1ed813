/* SPDX-License-Identifier: MIT
 *
 * The store double by itself: machines that call it at random while everything goes wrong that can, and are killed in
 * the middle of it. Nothing stays locked, each task ends at most once, none vanishes, and a seed is a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "store_double_fixture.h"

enum { MACHINES = 3, STRANDS = 2, TASKS = 40 };

struct storm {
  struct table db;
  struct machine machines[MACHINES];
  struct store *stores[MACHINES];
  struct chance chance;
  unsigned inserted;
};

struct caller {
  struct storm *storm;
  unsigned machine;
  struct chance chance;
  struct shard_lease leases[SHARDS];
  size_t held;
  char name[8];
};

static enum result_fate done(void *ctx, const struct result_row *row, struct result_record *record,
                             struct decision *out) {
  if (row->attempt != record->attempt || row->state != TASK_AWAITING)
    return RESULT_STALE;
  *out = (struct decision){.event = EVENT_DONE, .attempt = row->attempt, .keep_us = HOUR};
  return RESULT_APPLIED;
}

static void take_shards(struct caller *it, const struct store_ops *ops, struct store_session *ss) {
  struct shard_row rows[STORE_SHARDS_MAX];
  struct err err = {0};
  size_t count;
  uint64_t gone, epoch;
  it->held = 0;
  if (ops->shards(ss, rows, &count, &gone, &err) != STORE_OK)
    return;
  for (size_t i = 0; i < count; i++) {
    epoch = strcmp(rows[i].owner, it->name) == 0 && !rows[i].expired ? rows[i].epoch : 0;
    if (!epoch && rows[i].expired)
      (void)ops->acquire(ss, it->name, &rows[i], 5000, &epoch, &err);
    if (epoch)
      it->leases[it->held++] = (struct shard_lease){.shard = rows[i].shard, .epoch = epoch, .owner = it->name};
  }
}

static void settle_batch(struct caller *it, const struct store_ops *ops, struct store_session *ss,
                         struct task_batch *batch) {
  static const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_PUBLISHED, EVENT_DEAD, EVENT_DEFER};
  size_t count = size_of(batch);
  struct decision *d = calloc(count ? count : 1, sizeof *d);
  bool lost[STORE_SHARDS_MAX];
  struct err err = {0};
  check(d);
  for (size_t i = 0; i < count; i++) {
    d[i] = decide_on_sent(&batch->tasks[i], events[chance_below(&it->chance, 5)]);
    d[i].keep_us = HOUR;
    d[i].delay_us = SECOND;
    d[i].log_attempt = chance_ppm(&it->chance, 500000);
    d[i].head = batch->tasks[i].order_key.len > 0;
  }
  for (int again = 0; count && again < 3; again++)
    if (ops->settle(ss, it->leases, it->held, d, count, lost, &err) == STORE_OK)
      break;
  for (size_t i = 0; i < count; i++)
    task_release(&batch->tasks[i]);
  free(d);
}

static void read_and_settle(struct caller *it, const struct store_ops *ops, struct store_session *ss) {
  struct task_batch *batch = NULL;
  struct err err = {0};
  uint64_t lost;
  if (it->held == 0)
    return;
  const struct store_range range = {.state = chance_ppm(&it->chance, 200000) ? TASK_AWAITING : TASK_SCHEDULED,
                                    .shard = it->leases[chance_below(&it->chance, it->held)].shard,
                                    .priority = STORE_PRIORITY,
                                    .route = "r",
                                    .limit = 5};
  if (ops->read(ss, &range, 1, 0, (struct store_limit){.payload = 99, .bytes = 99}, &batch, NULL, NULL, &err) !=
          STORE_OK ||
      !batch)
    return;
  if (range.state == TASK_SCHEDULED && chance_ppm(&it->chance, 400000)) {
    char message_ids[5][STORE_ID_MAX + 1];
    uint64_t ids[5];
    size_t count = batch->count;
    for (size_t i = 0; i < count; i++) {
      ids[i] = batch->tasks[i].id;
      (void)snprintf(message_ids[i], sizeof message_ids[i], "%s", batch->tasks[i].message_id.data);
    }
    release(batch);
    const struct store_claim claim = {.instance = it->name,
                                      .route = "r",
                                      .host = "",
                                      .leases = it->leases,
                                      .lease_count = it->held,
                                      .ids = ids,
                                      .message_ids = (const char(*)[STORE_ID_MAX + 1]) message_ids,
                                      .count = count,
                                      .timeout_ms = 100,
                                      .lease_ms = 100,
                                      .limit = {.payload = 99, .bytes = 99}};
    if (ops->claim(ss, &claim, &batch, &lost, &err) != STORE_OK)
      return;
  }
  settle_batch(it, ops, ss, batch);
}

static void answer_one(struct caller *it, const struct store_ops *ops, struct store_session *ss) {
  struct store_result result = {.record = {.attempt = 1 + (uint32_t)chance_below(&it->chance, 3),
                                           .progress = -1,
                                           .retry_in_ms = -1,
                                           .extend_ms = -1},
                                .source = "s",
                                .origin = "o",
                                .body = {"{}", 2}};
  struct err err = {0};
  (void)snprintf(result.record.message_id, sizeof result.record.message_id, "t%u",
                 (unsigned)chance_below(&it->chance, TASKS));
  (void)ops->settle_results(ss, &result, 1, done, NULL, &err);
}

static void make_calls(void *arg) {
  struct caller *it = arg;
  const struct store *store = it->storm->stores[it->machine];
  struct store_session *ss = NULL;
  struct err err = {0};
  int64_t now;
  uint32_t moved;
  bool all;
  enum intervened changed;
  (void)store->ops->open(store->self, "storm", 0, &ss, &err);
  for (;;) {
    uint64_t id = 1 + chance_below(&it->chance, TASKS);
    const uint64_t what = chance_below(&it->chance, 12);
    if (it->held == 0 || what == 0)
      take_shards(it, store->ops, ss);
    else if (what == 1)
      answer_one(it, store->ops, ss);
    else if (what == 2)
      (void)store->ops->unblock(ss, it->leases, "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0},
                                &moved, &all, &err);
    else if (what == 3)
      (void)store->ops->intervene(ss, it->leases, INTERVENE_RESCHEDULE, &id, 1, table_clock(&it->storm->db), "a", "",
                                  "", HOUR, &changed, &err);
    else if (what == 4)
      (void)store->ops->now(ss, &now, &err);
    else
      read_and_settle(it, store->ops, ss);
    world_sleep(chance_between(&it->chance, 1, 200000));
  }
}

static void start_machine(struct storm *storm, unsigned machine, unsigned life) {
  storm->machines[machine] = (struct machine){.number = machine + 1, .wall_ahead_us = TABLE_EPOCH_US};
  struct caller *callers[STRANDS];
  unsigned before = memory_belongs_to(machine + 1);
  storm->stores[machine] = store_double_new(&storm->db, &storm->machines[machine]);
  for (unsigned i = 0; i < STRANDS; i++) {
    struct caller *it = callers[i] = calloc(1, sizeof *it);
    check(it);
    it->storm = storm;
    it->machine = machine;
    it->chance = chance_of(life * 100 + machine * 10 + i, 5);
    (void)snprintf(it->name, sizeof it->name, "d%u.%u", machine, life);
    storm->stores[machine]->identify(storm->stores[machine]->self, it->name);
  }
  (void)memory_belongs_to(before);
  for (unsigned i = 0; i < STRANDS; i++)
    world_spawn(&storm->machines[machine], "caller", make_calls, callers[i]);
}

static void use_it(void *arg) {
  struct storm *storm = arg;
  for (unsigned i = 0; i < TASKS; i++) {
    char message_id[16];
    (void)snprintf(message_id, sizeof message_id, "t%u", i);
    struct tx *tx = user_begin(&storm->db);
    struct row *row = user_insert(tx, "r", "p", 1);
    blob_put(&row->text[ROW_MESSAGE_ID], message_id);
    if (i % 3 == 0)
      blob_put(&row->text[ROW_ORDER_KEY], i % 2 ? "odd" : "even");
    uint64_t id = row->id;
    world_sleep(chance_between(&storm->chance, 1, 300000)); /* becomes visible late */
    storm->inserted += user_commit(&tx);
    if (i % 5 == 0) {
      tx = user_begin(&storm->db);
      if (user_lock(tx, LOCK_ROW, id, false))
        world_sleep(chance_between(&storm->chance, 1, 3000000));
      user_rollback(&tx);
    }
  }
}

static void hurt_it(void *arg) {
  struct storm *storm = arg;
  for (unsigned life = 1; life <= 12; life++) {
    unsigned victim = (unsigned)chance_below(&storm->chance, MACHINES);
    world_sleep(chance_between(&storm->chance, 100000, 3000000));
    switch (chance_below(&storm->chance, 3)) {
    case 0:
      table_down(&storm->db, world_now_us() + 500000);
      break;
    case 1:
      storm->machines[victim].stopped_until_us = world_now_us() + 8 * SECOND;
      break;
    default:
      world_kill(&storm->machines[victim]);
      table_machine_gone(&storm->db, &storm->machines[victim]);
      start_machine(storm, victim, life);
    }
  }
  for (unsigned i = 0; i < MACHINES; i++) {
    world_kill(&storm->machines[i]);
    table_machine_gone(&storm->db, &storm->machines[i]);
  }
  world_sleep(60 * SECOND);
  table_pump(&storm->db);
  world_stop();
}

/* What the journal says of each task, and that nothing is left open. */
static void look_at_it(struct storm *storm, uint64_t seed) {
  unsigned ended[TASKS] = {0}, inserted = 0;
  for (size_t i = 0; i < storm->db.journal_count; i++) {
    const struct journal_entry *entry = &storm->db.journal[i];
    inserted += entry->kind == JOURNAL_INSERTED;
    if (entry->kind == JOURNAL_ENDED && ++ended[strtoul(entry->message_id + 1, NULL, 10)] > 1)
      world_fail("seed %llu: %s has ended twice", (unsigned long long)seed, entry->message_id);
  }
  size_t over = 0;
  for (int i = 0; i < TASKS; i++)
    over += ended[i];
  if (inserted != storm->inserted || over + storm->db.data.rows.count != inserted ||
      over != storm->db.data.history.count || storm->db.lock_count)
    world_fail("seed %llu: %u inserted, %zu over, %zu alive, %zu in the history, %zu locks", (unsigned long long)seed,
               inserted, over, storm->db.data.rows.count, storm->db.data.history.count, storm->db.lock_count);
}

static uint64_t storm_of(uint64_t seed) {
  static struct storm storm;
  const char *why;
  storm = (struct storm){.chance = chance_of(seed, 8)};
  world_begin(&(struct world_options){
      .seed = seed, .strategy = (enum strategy)(seed % STRATEGIES), .preempt_ppm = 100000, .steps_max = 10000000});
  table_begin(&storm.db, SHARDS, chance_of(seed, 9));
  storm.db.lost_before_ppm = storm.db.lost_after_ppm = storm.db.conflict_ppm = 20000;
  storm.db.latency_high_us = 20000;
  storm.db.commit_high_us = 5000;
  for (unsigned i = 0; i < MACHINES; i++)
    start_machine(&storm, i, 0);
  world_spawn(NULL, "user", use_it, &storm);
  world_spawn(NULL, "faults", hurt_it, &storm);
  bool ran = world_run(&why);
  struct world_count count = world_counts();
  if (ran)
    look_at_it(&storm, seed);
  for (unsigned i = 0; i < MACHINES; i++)
    memory_free_all(i + 1);
  if (!ran)
    (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, why);
  table_end(&storm.db);
  world_end();
  return ran ? count.hash : 0;
}

uint64_t store_double_storm(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; seed++) {
    uint64_t hash = storm_of(seed);
    if (!hash || hash != storm_of(seed))
      return seed;
  }
  return 0;
}
