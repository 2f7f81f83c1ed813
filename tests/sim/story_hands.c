/* SPDX-License-Identifier: MIT
 *
 * Foreign hands in the tables: transactions that are open for a while, with what they hold.
 */
#include <string.h>

#include "story_internal.h"

enum { HELD_MAX_US = 10 * 1000 * 1000 };

struct row *some_row(void) {
  const struct list *rows = &story.db.data.rows;
  struct row *row = rows->count ? rows->at[chance_below(&story.faults, rows->count)] : NULL;
  return row && story.isolated && is_good(row) ? NULL : row;
}

/* The rows from some one on, in the order of their ids: SELECT FOR UPDATE locks them, a gap their entries in other
 * indexes, an UPDATE both. */
void hold_rows(void *arg) {
  struct chance *chance = &story.faults;
  struct tx *tx = user_begin(&story.db);
  struct row *first = some_row();
  uint64_t id = first ? first->id : 0, count = (uint64_t)chance_log_between(chance, 1, 64);
  unsigned kinds[] = {LOCK_ROW, LOCK_ENTRY, LOCK_ROW | LOCK_ENTRY}, held = kinds[chance_below(chance, 3)];
  for (uint64_t last = id + count; first && id < last; id++) {
    const struct row *row = table_row(&story.db, id);
    if (!row || (story.isolated && is_good(row)))
      continue;
    if ((held & LOCK_ROW && !user_lock(tx, LOCK_ROW, id, false)) ||
        (held & LOCK_ENTRY && !user_lock(tx, LOCK_ENTRY, id, false)))
      break;
  }
  world_sleep(fault_time(HELD_MAX_US));
  user_rollback(&tx);
}

/* LOCK TABLES, ALTER, a backup. */
void hold_table(void *arg) {
  static const enum lock_kind tables[] = {LOCK_HISTORY, LOCK_ATTEMPTS, LOCK_HEADS, LOCK_ROWS};
  struct tx *tx = user_begin(&story.db);
  if (user_lock(tx, tables[chance_below(&story.faults, story.isolated ? 3 : 4)], 0, false))
    world_sleep(fault_time(HELD_MAX_US));
  user_rollback(&tx);
}

static uint64_t some_instance(void) {
  const struct list *instances = &story.db.data.instances;
  if (instances->count == 0)
    return 0;
  const struct instance_entry *instance = instances->at[chance_below(&story.faults, instances->count)];
  return table_key(instance->id->data);
}

/* Rows of the tables that duebox keeps for itself. */
void hold_lease(void *arg) {
  struct chance *chance = &story.faults;
  struct tx *tx = user_begin(&story.db);
  bool locked = true;
  switch (chance_below(chance, 3)) {
  case 0:
    locked =
        user_lock(tx, LOCK_SHARD, chance_ppm(chance, 200000) ? SHARD_BOUND : chance_below(chance, story.db.shard_count),
                  chance_ppm(chance, 300000));
    break;
  case 1:
    for (uint64_t shard = 0; shard < story.db.shard_count && locked; shard++)
      locked = user_lock(tx, LOCK_SHARD, shard, false);
    break;
  default:
    locked = user_lock(tx, LOCK_INSTANCE, some_instance(), false);
    break;
  }
  if (locked)
    world_sleep(fault_time(HELD_MAX_US));
  user_rollback(&tx);
}

/* Now and then a transaction goes on for long after it has changed something. */
static void commit_later(struct tx **tx) {
  if (chance_ppm(&story.faults, 400000))
    world_sleep(fault_time(HELD_MAX_US));
  if (chance_ppm(&story.faults, 100000))
    user_rollback(tx);
  else
    (void)user_commit(tx);
}

static void change_row(struct row *row) {
  struct chance *chance = &story.faults;
  bool keyed = row->text[ROW_ORDER_KEY]->len > 0; /* their order is by priority and due time */
  switch (chance_below(chance, 5)) {
  case 0:
  case 1:
    if (row->state == TASK_SCHEDULED && !keyed)
      row->due_us = table_clock(&story.db) + chance_between(chance, -1000 * 1000, 2 * 1000 * 1000);
    break;
  case 2:
    blob_put(&row->text[ROW_PAYLOAD], "changed");
    break;
  case 3:
    if (!keyed)
      row->priority = (uint8_t)chance_between(chance, 1, 9);
    break;
  default:
    if (story.away_ppm && keyed && row->state == TASK_SCHEDULED && !row->text[ROW_TARGET_HOST]->len)
      blob_put(&row->text[ROW_MOVE_TO_HOST], AWAY_HOST);
    else if (story.bound_ppm && row->state == TASK_SCHEDULED && !keyed)
      blob_put(&row->text[ROW_MOVE_TO_HOST],
               chance_ppm(chance, 500000) ? "" : story.processes[chance_below(chance, story.process_count)].host);
    break;
  }
}

void update_some_row(void *arg) {
  struct row *found = some_row();
  struct tx *tx = user_begin(&story.db);
  struct row *row = found ? user_update(tx, found->id) : NULL;
  if (row)
    change_row(row);
  commit_later(&tx);
}

void delete_some_row(void *arg) {
  struct row *found = some_row();
  struct tx *tx = user_begin(&story.db);
  if (found)
    (void)user_delete(tx, found->id);
  commit_later(&tx);
}

/* DELETE FROM outbox_shards, outbox_instances or outbox_heads. */
void forget_leases(void *arg) {
  struct chance *chance = &story.faults;
  struct tx *tx = user_begin(&story.db);
  struct data *data = &story.db.data;
  uint64_t which = chance_below(chance, 4);
  unsigned shards = (unsigned)chance_between(chance, 1, story.db.shard_count);
  if (which != 1)
    story.facts.told = false;
  if (which == 0 && story.bound_ppm)
    story.facts.ordered = false; /* a claim counts as one of the dead then */
  if (which == 1)
    story.facts.ordered = false;
  if (which == 0)
    while (!tx->dead && data->instances.count > 0) {
      const struct instance_entry *instance = data->instances.at[0];
      if (!user_lock(tx, LOCK_INSTANCE, table_key(instance->id->data), false) || tx->dead)
        break;
      if (data->instances.count > 0)
        list_remove(&data->instances, 0);
    }
  else if (which == 1 && user_lock(tx, LOCK_HEADS, 0, false) && !tx->dead)
    while (data->heads.count > 0)
      list_remove(&data->heads, 0);
  else if (which > 1)
    for (unsigned i = 0; i < shards && user_lock(tx, LOCK_SHARD, i, false) && !tx->dead; i++)
      data->shards[i] = (struct shard_entry){0};
  user_rollback(&tx);
}

/* Row ids are handed out once more. */
void truncate_table(void *arg) { (void)table_truncate(&story.db); }
