/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_poll.c - polls that are not about every group: known groups while polling all of them would take long,
 * and rows that are held because nobody knows their route.
 *
 * Held rows lie apart in the index, and the poll does not ask for them: an application may write any number of names
 * that no configuration has. They are asked for by the names of known routes, when one of these may be new.
 *
 * @thread scheduler
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/scheduler.h"

enum {
  KNOWN_MAX = 256,  /* groups in one poll */
  HOLD_ROWS = 1000, /* in one unit */
  HOLD_ROUTES = 250,
  HOLD_SLICE_US = 10 * 1000,
  CROWD = 1000,     /* so many unknown groups are held whether they are due or not: each costs every poll a seek */
  HELD_SHOWN = 100, /* groups of held rows of which the first are shown, whatever their routes */
  HELD_EVERY_US = 5 * 1000 * 1000,
  HELD_SHARE = 200, /* looking for held rows of known routes may take 1/200 of the time */
};
#define EVER_US (INT64_C(300) * 365 * 86400 * 1000000) /* later than any due time */

/* --- known groups --- */

struct known {
  size_t skip, count;
  struct lane *lane[KNOWN_MAX];
  struct store_range range[KNOWN_MAX];
  int64_t next_us[KNOWN_MAX];
};

static void add_lane(struct known *known, struct lane *lane, const struct shard_lease *leases, size_t lease_count,
                     int64_t from_us) {
  for (size_t i = 0; i < lease_count; i++)
    for (uint8_t priority = 1; priority <= 9; priority++) {
      if (priority != STORE_PRIORITY && !(lane->priorities & (1u << priority)))
        continue;
      if (known->skip > 0) {
        known->skip--;
        continue;
      }
      if (known->count == KNOWN_MAX)
        return;
      known->lane[known->count] = lane;
      known->range[known->count++] = (struct store_range){.state = TASK_SCHEDULED,
                                                          .shard = leases[i].shard,
                                                          .priority = priority,
                                                          .route = lane->name,
                                                          .after = {.next_us = from_us}};
    }
}

/* Groups of known routes, whether there are rows or not; more than fit into one poll take turns. */
static void choose_known(struct scheduler *s, struct known *known, const struct shard_lease *leases, size_t lease_count,
                         int64_t from_us) {
  known->skip = s->known_after;
  known->count = 0;
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    if (lane->route)
      add_lane(known, lane, leases, lease_count, from_us);
  s->known_after = known->count == KNOWN_MAX ? s->known_after + KNOWN_MAX : 0;
}

/* Nothing of it is out, nor waits for another task: what it may have before that time are rows that committed late. */
static bool is_quiet(const struct group *group) {
  return group->in_flight == 0 && !group->due && !group->sweep && !group->lane->order.keys;
}

static void note_known(struct scheduler *s, struct lane *lane, const struct store_range *range, int64_t next_us,
                       int64_t db_now_us) {
  struct group *group = lane_group(lane, range->shard, range->priority, false);
  int64_t low_us = !group || is_quiet(group) ? earlier(next_us, range->after.next_us) : earlier(group->low_us, next_us);
  if (lane->old_shards & shard_bit(range->shard))
    low_us = 0;
  if (next_us != INT64_MAX) {
    struct store_group found = {
        .state = TASK_SCHEDULED, .shard = range->shard, .priority = range->priority, .next_us = next_us};
    group = scheduler_note_group(s, lane, &found, db_now_us);
  }
  if (group)
    group->low_us = low_us;
}

/* A route that has nothing due now shows nothing; what waits for long is told by the polls of every group. */
static void clear_oldest(struct lane *lane) {
  for (const struct group *group = lane->groups; group; group = group->next)
    if (group->due || group->in_flight)
      return;
  set_gauge(&lane->metrics.oldest_due_us, 0);
}

bool scheduler_poll_known(struct scheduler *s, const struct shard_lease *leases, size_t lease_count) {
  int64_t began = clock_mono_us(), db_now = 0;
  struct known known;
  struct err err = {0};
  choose_known(s, &known, leases, lease_count, scheduler_db_now_us(s) - poll_back_us(&s->pace));
  enum store_status status = s->store->ops->next_due(s->ss, known.range, known.count, known.next_us, &db_now, &err);
  if (!scheduler_db_ok(s, status, &err))
    return false;
  int64_t ended = clock_mono_us();
  scheduler_track_clock(s, db_now, began, ended);
  poll_done(&s->pace, false, began, ended);
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    clear_oldest(lane);
  for (size_t i = 0; i < known.count; i++)
    note_known(s, known.lane[i], &known.range[i], known.next_us[i], db_now);
  return true;
}

struct store_cursor scheduler_read_from(const struct scheduler *s, const struct group *group,
                                        struct store_cursor after) {
  int64_t low_us = earlier(group->low_us, scheduler_db_now_us(s) - poll_back_us(&s->pace)) - 1;
  return low_us > after.next_us ? (struct store_cursor){low_us, UINT64_MAX} : after;
}

/* --- rows of unknown routes --- */

/* Rows that one unit holds: those of one lane, shard and priority. Beyond some names all have the same lane. */
struct holding {
  struct scheduler *s;
  int64_t ahead_us;
  struct lane *lane;
  uint8_t shard, priority;
  const char *names[HOLD_ROUTES];
  size_t count;
};

static void hold_now(struct holding *h) {
  struct scheduler *s = h->s;
  struct shard_lease lease = {.shard = h->shard, .epoch = s->view[h->shard].epoch, .owner = s->instance};
  const struct store_hold which = {.priority = h->priority,
                                   .routes = h->names,
                                   .route_count = h->count,
                                   .ahead_us = h->ahead_us,
                                   .limit = HOLD_ROWS};
  struct err err = {0};
  uint32_t moved = 0;
  if (h->count == 0 || !scheduler_db_ok(s, s->store->ops->hold(s->ss, &lease, &which, &moved, &err), &err))
    return;
  count(&h->lane->metrics.events[EVENT_HOLD], moved);
  h->count = 0;
}

static int by_unit(const void *a, const void *b) {
  const struct store_group *x = *(const struct store_group *const *)a, *y = *(const struct store_group *const *)b;
  return x->shard != y->shard ? (int)x->shard - (int)y->shard : (int)y->priority - (int)x->priority;
}

static void add_name(struct holding *h, struct lane *lane, const struct store_group *found) {
  const struct group *group = lane_group(lane, found->shard, found->priority, false);
  if (group && group->in_flight > 0)
    return; /* a reload dropped the route: what is in flight in memory looks due, and is settled first */
  if (!lane->unknown_logged) {
    log_warn("DUEBOX-ROUTE-UNKNOWN", "route=%s is in no configuration: its due rows are held until it is", lane->name);
    lane->unknown_logged = true;
  }
  if (h->count == HOLD_ROUTES || h->lane != lane || h->shard != found->shard || h->priority != found->priority)
    hold_now(h);
  h->lane = lane;
  h->shard = found->shard;
  h->priority = found->priority;
  h->names[h->count++] = found->route;
}

void scheduler_hold_unknown(struct scheduler *s, const struct store_group **unknown, size_t n, int64_t db_now_us) {
  struct holding h = {.s = s, .ahead_us = n > CROWD ? EVER_US : 0};
  int64_t deadline = clock_mono_us() + HOLD_SLICE_US;
  if (n == 0)
    return;
  size_t first = s->look % n; /* each is first at some poll */
  qsort(unknown, n, sizeof *unknown, by_unit);
  for (size_t i = 0; i < n && s->retry_wait_us == 0 && clock_mono_us() < deadline; i++) {
    const struct store_group *found = unknown[(first + i) % n];
    /* In the shard of bound tasks another host may know the route. */
    struct lane *lane = found->shard == SHARD_BOUND ? NULL : scheduler_lane_make(s, found->route);
    if (lane && (h.ahead_us || found->next_us <= db_now_us))
      add_name(&h, lane, found);
  }
  if (s->retry_wait_us == 0)
    hold_now(&h);
}

/* --- held rows come back --- */

/* True when there are none left. */
static bool bring_back(struct scheduler *s, const struct store_group *found) {
  struct lane *lane = scheduler_lane_make(s, found->route);
  struct shard_lease lease = {.shard = found->shard, .epoch = s->view[found->shard].epoch, .owner = s->instance};
  struct err err = {0};
  uint32_t moved = 0;
  bool all = false;
  if (!lane || !lane->route)
    return true;
  enum store_status status = s->store->ops->unhold(s->ss, &lease, found->route, HOLD_ROWS, &moved, &all, &err);
  if (!scheduler_db_ok(s, status, &err))
    return false;
  if (all)
    lane->held_shards &= ~shard_bit(found->shard);
  if (moved == 0)
    return all;
  lane->old_shards |= shard_bit(found->shard);
  log_info("DUEBOX-ROUTE-UNHELD", "route=%s rows=%u are scheduled again", lane->name, moved);
  scheduler_look_soon(s);
  return all;
}

/* Held groups of these routes, copied: what is done about them uses the session. False: nothing is known. */
static bool find_held(struct scheduler *s, const struct store_look *what, struct store_group **groups, size_t *count) {
  const struct store_group *found = NULL;
  struct err err = {0};
  int64_t db_now;
  *groups = NULL;
  *count = 0;
  if (!scheduler_db_ok(s, s->store->ops->look(s->ss, what, &found, count, &db_now, &err), &err))
    return false;
  if (*count == 0)
    return true;
  *groups = malloc(*count * sizeof **groups);
  if (*groups)
    memcpy(*groups, found, *count * sizeof **groups);
  else
    *count = 0;
  return *groups;
}

/* No other shard of these has held rows of the lane. */
static void note_held(struct lane *lane, const struct store_look *what, const struct store_group *groups,
                      size_t count) {
  uint64_t asked = 0, held = 0;
  for (size_t i = 0; i < what->lease_count; i++)
    asked |= shard_bit(what->leases[i].shard);
  for (size_t i = 0; i < count; i++)
    if (strcmp(groups[i].route, lane->name) == 0)
      held |= shard_bit(groups[i].shard);
  lane->held_shards &= ~asked | held;
}

static void bring_back_known(struct scheduler *s, struct store_look *what) {
  const struct config *config = s->config->config;
  const char **names = malloc((config->route_count + 1) * sizeof *names);
  struct store_group *groups = NULL;
  int64_t began_us = clock_mono_us();
  size_t n = 0, i = 0;
  bool all = true;
  if (!names)
    return;
  for (; i < config->route_count; i++)
    names[i] = config->routes[i].name;
  what->routes = names;
  what->route_count = config->route_count;
  bool known = find_held(s, what, &groups, &n);
  free(names);
  int64_t cost_us = clock_mono_us() - began_us;
  for (struct lane *lane = known ? s->lanes : NULL; lane; lane = lane->next)
    if (lane->route && lane->held_shards)
      note_held(lane, what, groups, n);
  for (i = 0; groups && i < n && s->retry_wait_us == 0 && clock_mono_us() - began_us <= cost_us + HOLD_SLICE_US; i++)
    all = bring_back(s, &groups[i]) && all;
  all = all && i == n && s->retry_wait_us == 0;
  s->held_at_us = clock_mono_us() + later(all ? HELD_EVERY_US : 0, cost_us * HELD_SHARE);
  free(groups);
}

void scheduler_held(struct scheduler *s, const struct shard_lease *leases, size_t lease_count) {
  struct store_look what = {
      .leases = leases, .lease_count = lease_count, .states = TASK_BIT(TASK_HELD), .limit = HELD_SHOWN};
  struct store_group *shown = NULL;
  size_t n = 0;
  if (clock_mono_us() < s->held_at_us || s->retry_wait_us || !find_held(s, &what, &shown, &n))
    return;
  for (size_t i = 0; i < n; i++)
    (void)scheduler_lane_make(s, shown[i].route);
  free(shown);
  what.limit = 0;
  if (n > 0)
    bring_back_known(s, &what);
  else
    s->held_at_us = clock_mono_us() + HELD_EVERY_US;
  for (struct lane *lane = n == 0 ? s->lanes : NULL; lane; lane = lane->next)
    note_held(lane, &what, NULL, 0);
}
