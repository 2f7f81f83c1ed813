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
  KNOWN_MAX = 256, /* groups in one poll */
  HOLD_ROWS = 250, /* in one unit, */
  HOLD_ROUTES = 250,
  HOLD_SHARE = 100,      /* which may keep the others waiting for 1/100 of the time, */
  HOLD_SHARE_QUICK = 20, /* or 1/20 where there are so few names that polls are quick */
  UNKNOWN_MAX = 20000,   /* groups that are known at a time: those beyond come later */
  CROWD = 1000,          /* so many unknown groups are held whether they are due or not: each costs every poll a seek */
  BACK_ROWS = 1000,      /* brought back in one unit, */
  BACK_SLICE_US = 10 * 1000,          /* and as many units as begin in this time; when that took */
  BACK_LONG_US = 50 * 1000,           /* longer than this, */
  BACK_SHARE = 4,                     /* the others have this many times that for themselves, */
  BACK_REST_MAX_US = 5 * 1000 * 1000, /* but no more than this: the database may have been away */
  HELD_SHOWN = 100,                   /* groups of held rows of which the first are shown, whatever their routes */
  HELD_EVERY_US = 5 * 1000 * 1000,
  HELD_REST_MAX_US = 30 * 1000 * 1000,
  HELD_SHARE = 200, /* looking for held rows of known routes may take 1/200 of the time */
};

/* --- known groups --- */

struct known {
  size_t skip, count, turns; /* turns: polls that it takes to ask for all of them */
  struct lane *lane[KNOWN_MAX];
  struct store_range range[KNOWN_MAX];
  int64_t next_us[KNOWN_MAX];
};

static void add_lane(struct known *known, struct lane *lane, const struct shard_lease *leases, size_t lease_count,
                     int64_t from_us) {
  for (size_t i = 0; i < lease_count; i++)
    for (unsigned priority = 1; priority <= STORE_PRIORITY_MAX; priority++) {
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
                                                          .priority = (uint8_t)priority,
                                                          .route = lane->name,
                                                          .after = {.next_us = from_us}};
    }
}

/* Groups of known routes, whether there are rows or not; more than fit into one poll take turns. */
static void choose_known(struct scheduler *s, struct known *known, const struct shard_lease *leases, size_t lease_count,
                         int64_t from_us) {
  size_t all = 0;
  known->skip = s->known_after;
  known->count = 0;
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (!lane->route)
      continue;
    add_lane(known, lane, leases, lease_count, from_us);
    all += lease_count * (size_t)__builtin_popcount(lane->priorities | 1u << STORE_PRIORITY);
  }
  known->turns = all / KNOWN_MAX + 1;
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
  lane_clear_oldest(lane);
}

bool scheduler_probe(struct scheduler *s, const struct shard_lease *leases, size_t lease_count) {
  int64_t began = clock_mono_us(), db_now;
  if (!poll_probe_is_next(&s->pace, began))
    return true;
  const struct store_look what = {
      .leases = &leases[s->pace.probe.turn % lease_count], .lease_count = 1, .states = TASK_BIT(TASK_SCHEDULED)};
  const struct store_group *found = NULL;
  size_t count = 0;
  struct err err = {0};
  if (!scheduler_db_ok(s, s->store->ops->look(s->ss, &what, &found, &count, &db_now, &err), &err))
    return false;
  poll_probe_done(&s->pace, lease_count, began, clock_mono_us());
  return true;
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
  poll_done(&s->pace, false, known.turns, began, ended);
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

/* Of what waits, for its time or behind another one of its order_key, which may never leave. In the shard of bound
 * tasks another host may know the route. */
static bool is_unknown(const struct scheduler *s, const struct store_group *group) {
  return (group->state == TASK_SCHEDULED || group->state == TASK_BLOCKED) && group->shard != SHARD_BOUND &&
         !config_route(s->config->config, group->route, strlen(group->route));
}

static int by_unit(const void *a, const void *b) {
  const struct store_group *x = a, *y = b;
  int order = x->shard != y->shard         ? (int)x->shard - (int)y->shard
              : x->priority != y->priority ? (int)y->priority - (int)x->priority
                                           : (int)x->state - (int)y->state;
  return order ? order : strcmp(x->route, y->route);
}

static bool same_unit(const struct store_group *a, const struct store_group *b) {
  return a->shard == b->shard && a->priority == b->priority && a->state == b->state;
}

void scheduler_note_unknown(struct scheduler *s, const struct store_group *groups, size_t count, int64_t db_now_us) {
  bool shown = atomic_load(&s->on_hold);
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    bool unknown = is_unknown(s, &groups[i]);
    n += unknown;
    if (unknown && (shown || scheduler_lane(s, groups[i].route))) /* the rows of one that is shown keep it there */
      (void)scheduler_lane_make(s, groups[i].route);
  }
  if (shown || s->unknown_turn < s->unknown_count)
    return; /* the others first: what cannot be held now keeps nobody waiting */
  free(s->unknown);
  s->unknown = n ? malloc((n < UNKNOWN_MAX ? n : UNKNOWN_MAX) * sizeof *s->unknown) : NULL;
  s->unknown_count = s->unknown_turn = 0;
  s->hold_ahead_us = n > CROWD ? EVER_US : 0;
  for (size_t i = 0; s->unknown && i < count && s->unknown_count < UNKNOWN_MAX; i++)
    if ((s->hold_ahead_us || groups[i].next_us <= db_now_us) && is_unknown(s, &groups[i]))
      s->unknown[s->unknown_count++] = groups[i];
  if (s->unknown_count)
    qsort(s->unknown, s->unknown_count, sizeof *s->unknown, by_unit);
}

/* Still unknown, in a shard of ours, and none of it is out: when a reload dropped the route, what is in flight in
 * memory looks due, and is settled first. */
static bool may_be_held(struct scheduler *s, const struct store_group *found) {
  const struct lease_slot *slot = &s->view[found->shard];
  struct lane *lane =
      slot->epoch && slot->stage != LEASE_SHUT && is_unknown(s, found) ? scheduler_lane_make(s, found->route) : NULL;
  const struct group *group = lane ? lane_group(lane, found->shard, found->priority, false) : NULL;
  if (!lane || (group && group->in_flight > 0))
    return false;
  if (!lane->unknown_logged) {
    log_warn("DUEBOX-ROUTE-UNKNOWN", "route=%s is in no configuration: its due rows are held until it is", lane->name);
    lane->unknown_logged = true;
  }
  return true;
}

/* Holds the next rows, of many names in one unit: an application may write any number of them. */
static void hold_some(struct scheduler *s) {
  const struct store_group *first = &s->unknown[s->unknown_turn];
  const char *names[HOLD_ROUTES];
  size_t turns[HOLD_ROUTES] = {0};
  uint32_t moved[HOLD_ROUTES] = {0}, rows = 0;
  struct store_routes which = {.state = first->state,
                               .priority = first->priority,
                               .routes = names,
                               .ahead_us = s->hold_ahead_us,
                               .limit = HOLD_ROWS};
  struct shard_lease lease = {.shard = first->shard, .epoch = s->view[first->shard].epoch, .owner = s->instance};
  struct err err = {0};
  for (; s->unknown_turn < s->unknown_count && which.route_count < HOLD_ROUTES; s->unknown_turn++) {
    const struct store_group *found = &s->unknown[s->unknown_turn];
    if (!same_unit(found, first))
      break;
    if (!may_be_held(s, found))
      continue;
    turns[which.route_count] = s->unknown_turn;
    names[which.route_count++] = found->route;
  }
  if (which.route_count == 0 || !scheduler_db_ok(s, s->store->ops->hold(s->ss, &lease, &which, moved, &err), &err))
    return;
  for (size_t i = 0; i < which.route_count && rows < HOLD_ROWS; i++) {
    struct lane *lane = moved[i] ? scheduler_lane_make(s, names[i]) : NULL;
    if (lane)
      count(&lane->metrics.events[EVENT_HOLD], moved[i]);
    rows += moved[i];
    if (rows == HOLD_ROWS) /* in the order of the names: there was no room for the others */
      s->unknown_turn = turns[i] + 1;
  }
}

int64_t scheduler_holds_at(const struct scheduler *s) {
  return s->unknown_turn < s->unknown_count ? s->hold_at_us : INT64_MAX;
}

void scheduler_hold(struct scheduler *s) {
  int64_t began = clock_mono_us();
  if (began < scheduler_holds_at(s))
    return;
  hold_some(s);
  int64_t ended = clock_mono_us();
  s->hold_at_us = ended + (ended - began) * (poll_is_dear(&s->pace) ? HOLD_SHARE : HOLD_SHARE_QUICK);
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
  enum store_status status = s->store->ops->unhold(s->ss, &lease, found->route, BACK_ROWS, &moved, &all, &err);
  if (!scheduler_db_ok(s, status, &err))
    return false;
  if (all)
    lane->held_shards &= ~shard_bit(found->shard);
  if (moved == 0)
    return all;
  lane->old_shards |= shard_bit(found->shard);
  lane->unseen |= shard_bit(found->shard);
  s->held_more = true;
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

/* Brings rows of some of the groups back, which take turns. True when none is left. */
static bool bring_back_some(struct scheduler *s, const struct store_group *groups, size_t count) {
  int64_t until_us = clock_mono_us() + BACK_SLICE_US;
  size_t n = 0, first = count ? s->held_turn % count : 0;
  bool all = true;
  for (; n < count && s->retry_wait_us == 0 && clock_mono_us() <= until_us; n++)
    all = bring_back(s, &groups[(first + n) % count]) && all;
  s->held_turn = first + n;
  return all && n == count && s->retry_wait_us == 0;
}

static void bring_back_known(struct scheduler *s, struct store_look *what) {
  const struct config *config = s->config->config;
  const char **names = malloc((config->route_count + 1) * sizeof *names);
  struct store_group *groups = NULL;
  int64_t began_us = clock_mono_us();
  size_t n = 0;
  if (!names)
    return;
  for (size_t i = 0; i < config->route_count; i++)
    names[i] = config->routes[i].name;
  what->routes = names;
  what->route_count = config->route_count;
  bool known = find_held(s, what, &groups, &n);
  free(names);
  int64_t found_us = clock_mono_us();
  for (struct lane *lane = known ? s->lanes : NULL; lane; lane = lane->next)
    if (lane->route && lane->held_shards)
      note_held(lane, what, groups, n);
  s->held_more = false;
  bool all = bring_back_some(s, groups, groups ? n : 0);
  s->held_more = s->held_more && !all;
  int64_t ended_us = clock_mono_us(), took_us = ended_us - found_us;
  int64_t rest_us = pace_rest_us(found_us - began_us, HELD_SHARE, HELD_REST_MAX_US);
  if (took_us > BACK_LONG_US)
    rest_us = later(rest_us, pace_rest_us(took_us, BACK_SHARE, BACK_REST_MAX_US));
  s->held_at_us = ended_us + later(all ? HELD_EVERY_US : 0, rest_us);
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
  s->held_looks += n < HELD_SHOWN; /* that was all of them */
  what.limit = 0;
  if (n > 0)
    bring_back_known(s, &what);
  else
    s->held_at_us = clock_mono_us() + HELD_EVERY_US;
  for (struct lane *lane = n == 0 ? s->lanes : NULL; lane; lane = lane->next)
    note_held(lane, &what, NULL, 0);
}
