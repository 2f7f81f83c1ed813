/* SPDX-License-Identifier: MIT
 *
 * Watches over a story in which calls fail and nothing else is wrong: a route of which a task may leave does not stand
 * still. What ends a standstill by chance, such as a daemon that starts, would hide it from whoever looks at the end.
 */
#include <inttypes.h>
#include <string.h>

#include "core/base/clock.h"
#include "story_internal.h"

enum { WATCH_US = 50 * 1000 };
/* How often a route is tried that is suspended: core/health.c. Its wait doubles while nothing gets through, and is
 * about as long as the trouble in the end; or the destination asks for some time. */
enum { PROBE_US = 1000 * 1000 + 2 * STORM_US };

static bool is_due(const struct row *row) { return row_next_us(row) <= table_clock(&story.db); }

static bool same_key(const struct row *a, const struct row *b) {
  return blob_same(a->text[ROW_ORDER_KEY], b->text[ROW_ORDER_KEY]) && blob_same(a->text[ROW_ROUTE], b->text[ROW_ROUTE]);
}

/* One that others of its order_key wait for, and that waits for its time itself: it is to be tried again later, or its
 * consumer has it. */
static bool holds_key(const struct row *row) {
  return row->state == TASK_CLAIMED || row->state == TASK_AWAITING ||
         (row->state == TASK_SCHEDULED && row->first_due_us != TIME_NULL && !is_due(row));
}

/* Whether it may leave, or another one of its order_key. */
static bool may_leave(const struct row *row) {
  const struct list *rows = &story.db.data.rows;
  if (row->state != TASK_BLOCKED && !(row->state == TASK_SCHEDULED && is_due(row)))
    return false;
  for (size_t i = 0; i < rows->count && row->text[ROW_ORDER_KEY]->len > 0; i++)
    if (same_key(row, rows->at[i]) && holds_key(rows->at[i]))
      return false;
  return true;
}

/* One of the route that may leave; NULL = there is none. */
static const struct row *some_that_may_leave(const char *route) {
  const struct list *rows = &story.db.data.rows;
  for (size_t i = 0; i < rows->count; i++) {
    const struct row *row = rows->at[i];
    if (blob_is(row->text[ROW_ROUTE], route, strlen(route)) && may_leave(row))
      return row;
  }
  return NULL;
}

/* When a message of the route last left or was confirmed. */
static int64_t last_sign_us(const char *route) {
  int64_t last_us = 0;
  for (size_t i = 0; i < story.broker.message_count; i++) {
    const struct message *message = &story.broker.messages[i];
    if (strcmp(message->route, route) != 0)
      continue;
    last_us = later(last_us, message->submitted_us);
    if (message->confirms_us <= world_now_us())
      last_us = later(last_us, message->confirms_us);
  }
  return last_us;
}

static void watch_route(const char *route, int64_t most_us, int64_t *since_us) {
  int64_t now_us = world_now_us();
  const struct row *row = some_that_may_leave(route);
  if (!row) {
    *since_us = now_us;
    return;
  }
  *since_us = later(*since_us, last_sign_us(route));
  if (now_us - *since_us > most_us)
    world_fail("P8: %s may leave, and nothing of %s has left for %" PRId64 " ms", row->text[ROW_MESSAGE_ID]->data,
               route, (now_us - *since_us) / 1000);
}

void be_watcher(void *arg) {
  int64_t since_us[PROFILE_ROUTES] = {0}, most_us = still_us() + PROBE_US;
  world_sleep(story.facts.quiet_us - world_now_us());
  for (size_t i = 0; i < PROFILE_ROUTES; i++)
    since_us[i] = world_now_us();
  for (;; world_sleep(WATCH_US))
    for (size_t i = 0; i < story.profile.route_count; i++)
      watch_route(story.profile.routes[i].name, most_us, &since_us[i]);
}
