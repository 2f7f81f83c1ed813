/* SPDX-License-Identifier: MIT */
#include "story_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"

enum { TOGETHER_MAX = 12 };

/* What no client should write. Its message id begins with a p. */
void poison(struct row *row, unsigned number) {
  static char text[PAYLOAD_LARGE + 1];
  char id[80];
  memset(text, 'x', sizeof text);
  (void)snprintf(id, sizeof id, "p%u", number);
  switch (chance_below(&story.users, 6)) {
  case 0:
    blob_put(&row->text[ROW_HEADERS], "{\"broken\"");
    break;
  case 1:
    row->priority = chance_ppm(&story.users, 500000) ? 0 : 12;
    break;
  case 2:
    blob_set(&row->text[ROW_PAYLOAD], text, story.profile.large ? PAYLOAD_LARGE + 1 : 3 * PAYLOAD_MAX);
    break;
  case 3: /* longer than a message id may be, and as long as the column is */
    memset(id + strlen(id), 'x', STORE_ID_MAX + STORE_WIDER - strlen(id));
    id[STORE_ID_MAX + STORE_WIDER] = '\0';
    break;
  case 4:
    (void)snprintf(id, sizeof id, "p %u", number);
    break;
  default:
    row->expires_us = -1;
    break;
  }
  blob_put(&row->text[ROW_MESSAGE_ID], id);
}

/* More than is read of a row together with others, and nearly as much as may be sent. */
void make_large(struct row *row) {
  static char text[PAYLOAD_LARGE];
  memset(text, 'x', sizeof text);
  blob_set(&row->text[ROW_PAYLOAD], text, (size_t)chance_log_between(&story.users, PAYLOAD_LARGE / 2, PAYLOAD_LARGE));
}

void name_target(struct row *row) {
  char key[] = {(char)('1' + chance_below(&story.users, BROKER_TARGETS)), '\0'};
  blob_put(&row->text[ROW_TASK_KEY], key);
}

/* What an application may ask for beside its time. */
static void ask_more(struct row *row) {
  struct chance *chance = &story.users;
  if (story.profile.large && chance_ppm(chance, 200000))
    make_large(row);
  if (chance_ppm(chance, story.expiry_ppm))
    row->expires_us = row->due_us + chance_log_between(chance, 1000, 10 * 1000 * 1000);
  if (chance_ppm(chance, story.budget_ppm))
    row->max_attempts = (uint32_t)chance_between(chance, 1, 4);
  if (chance_ppm(chance, story.budget_ppm))
    row->timeout_ms = (uint32_t)chance_log_between(chance, 200, 5000);
}

/* Rows of one key often come together: their order is by priority first. Returns how many there were, `most` at most.
 */
static unsigned insert_some(unsigned first, unsigned most) {
  struct chance *chance = &story.users;
  struct tx *tx = user_begin(&story.db);
  size_t which = chance_below(chance, story.profile.route_count);
  const char *route = story.profile.routes[which].name;
  bool keyed = strcmp(route, "order") == 0;
  uint64_t key_number = chance_below(chance, story.key_count);
  uint64_t host = keyed ? key_number : chance_u64(chance); /* those of a key have the same */
  bool bound = story.bound_ppm && (keyed ? key_number % 2 == 0 : chance_ppm(chance, story.bound_ppm));
  int64_t due_us = table_clock(&story.db);
  if (chance_ppm(chance, 700000))
    due_us += chance_log_between(chance, 1, 5 * 1000 * 1000);
  unsigned count = keyed ? (unsigned)chance_log_between(chance, 1, most < TOGETHER_MAX ? most : TOGETHER_MAX) : 1;
  for (unsigned number = first; number < first + count; number++) {
    char payload[32], id[48], key[16];
    int used = snprintf(payload, sizeof payload, "task %u", number);
    struct row *row = user_insert(tx, route, payload, (size_t)used);
    (void)snprintf(id, sizeof id, keyed ? "t%u.%" PRIu64 : "t%u", number, key_number);
    blob_put(&row->text[ROW_MESSAGE_ID], id);
    if (keyed) {
      (void)snprintf(key, sizeof key, "key %" PRIu64, key_number);
      blob_put(&row->text[ROW_ORDER_KEY], key);
    }
    if (bound)
      blob_put(&row->text[ROW_TARGET_HOST], story.processes[host % story.process_count].host);
    if (story.profile.routes[which].targets)
      name_target(row);
    row->due_us = due_us;
    row->priority = (uint8_t)chance_between(chance, 3, 7);
    ask_more(row);
    if (!keyed && chance_ppm(chance, story.poison_ppm))
      poison(row, number);
  }
  if (chance_ppm(chance, 200000))
    world_sleep(chance_log_between(chance, 100, 3 * 1000 * 1000));
  if (chance_ppm(chance, 50000)) {
    user_rollback(&tx);
    return count;
  }
  user_commit(&tx);
  story.count.tasks += count;
  return count;
}

void be_users(void *arg) {
  for (unsigned i = 0; i < story.task_count;) {
    if (chance_ppm(&story.users, 300000))
      world_sleep(chance_log_between(&story.users, 10, 1000 * 1000));
    i += insert_some(i, story.task_count - i);
  }
  story.users_done = true;
}
