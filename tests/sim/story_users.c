/* SPDX-License-Identifier: MIT */
#include "story_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"

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
  uint64_t host = keyed ? key_number : chance_u64(chance); /* those of a key have the same */
  if (story.bound_ppm && (keyed ? key_number % 2 == 0 : chance_ppm(chance, story.bound_ppm)))
    blob_put(&row->text[ROW_TARGET_HOST], story.processes[host % story.process_count].host);
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

void be_users(void *arg) {
  for (unsigned i = 0; i < story.task_count; i++) {
    if (chance_ppm(&story.users, 300000))
      world_sleep(chance_log_between(&story.users, 10, 1000 * 1000));
    insert_one(i);
  }
  story.users_done = true;
}
