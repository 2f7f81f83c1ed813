/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_lanes.c - lanes of the scheduler: making them, giving them a configuration, taking settled tasks back.
 *
 * @thread scheduler, except scheduler_lane() and scheduler_reload(), which any thread may call, and
 * scheduler_settings() and scheduler_replace(), which the keeper calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/leave.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/options.h"
#include "core/scheduler.h"

enum { STRANGERS_MAX = 100 }; /* lanes for unknown routes by name; an application may write any number of names */
enum { FORGOTTEN_AFTER = 3 }; /* looks for held rows: two of them met none */
enum { WATCH_EVERY_US = 1000 * 1000 };
enum { CALM_AFTER = 1000 }; /* tasks settled after an unclean takeover until claims may stay in memory again */

struct lane *scheduler_lane(struct scheduler *s, const char *name) {
  struct lane *lane;
  mutex_lock(&s->lanes_lock);
  HASH_FIND(hh, s->by_name, name, strlen(name), lane);
  mutex_unlock(&s->lanes_lock);
  return lane;
}

void scheduler_close(struct lane *lane, uint64_t shards) {
  order_close_shards(&lane->order, shards);
  lane->returned &= ~shards;
  lane->held_shards |= shards;
  lane->old_shards |= shards;
}

void scheduler_close_keys(struct lane *lane) {
  lane->heads_unknown = true;
  lane->heads_come = false;
  scheduler_close(lane, UINT64_MAX);
  if (order_forget_shards(&lane->order, UINT64_MAX))
    lane_sweep_first(lane);
}

/* Whether a route leads elsewhere than it did, as far as its plugin is told. */
static bool leads_elsewhere(const struct route_config *was, const struct route_config *now) {
  return !was || !now || was->plugin->module != now->plugin->module ||
         strcmp(was->plugin->name, now->plugin->name) != 0 ||
         !options_equal(now->plugin->module->route_options, was->options, now->options);
}

/* Whether its failed tasks are heads of their order_keys. */
static bool blocks_keys(const struct route_config *route) { return route && route->order == ORDER_BLOCK; }

/* Under lanes_lock. What was seen of the former one's connection says nothing of this one's. */
static void set_driver(struct lane *lane, struct driver *driver) {
  if (driver != lane->driver)
    lane->ups_seen = 0;
  lane->driver = driver;
}

/* Points the lane at its route in the current configuration, or at none. */
static void configure_lane(struct scheduler *s, struct lane *lane) {
  const struct route_config *route = config_route(s->config->config, lane->name, strlen(lane->name));
  mutex_lock(&s->lanes_lock);
  /* Before the configuration that it belongs to may go. */
  bool elsewhere = leads_elsewhere(lane->route, route), blocked = blocks_keys(lane->route);
  config_ref_drop(lane->config);
  lane->config = config_ref_take(s->config);
  bool comes_back = route && !lane->route;
  lane->route = route;
  set_driver(lane, route ? s->driver_for(s->engine, route->plugin) : NULL);
  lane->shares_line = lane->driver && route->plugin->module->capabilities & DUEBOX_CAP_SHARED_LINE;
  if (lane->driver)
    driver_limit(lane->driver, route->plugin->max_inflight);
  targets_clear(&lane->targets, &s->target_count); /* what they wait for may be mended */
  lane_limit(lane);
  lane->unknown_logged = false;
  mutex_unlock(&s->lanes_lock);
  if (elsewhere) {
    lane->leads_there_us = clock_mono_us();
    scheduler_forget_trouble(s, lane);
  }
  /* What waits here may be held or blocked in the table by now, or has heads there, and comes back after a sweep. */
  if (comes_back || (blocks_keys(route) && !blocked))
    scheduler_close_keys(lane);
}

static void show_lane(struct scheduler *s, struct lane *lane) {
  lane->rows_seen = s->held_looks;
  if (!lane->forgotten)
    return;
  mutex_lock(&s->lanes_lock);
  lane->forgotten = false;
  mutex_unlock(&s->lanes_lock);
}

void scheduler_forget_routes(struct scheduler *s, bool nothing_is_ours) {
  mutex_lock(&s->lanes_lock);
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    if (!lane->route && lane->in_flight == 0 && (nothing_is_ours || s->held_looks - lane->rows_seen >= FORGOTTEN_AFTER))
      lane->forgotten = true;
  mutex_unlock(&s->lanes_lock);
}

struct lane *scheduler_lane_make(struct scheduler *s, const char *name) {
  struct lane *lane = scheduler_lane(s, name);
  bool known = config_route(s->config->config, name, strlen(name)) != NULL;
  if (!lane && !known)
    lane = s->strangers;
  if (lane) {
    show_lane(s, lane);
    return lane;
  }
  bool last = !known && ++s->stranger_count > STRANGERS_MAX;
  lane = calloc(1, sizeof *lane);
  if (!lane)
    return NULL;
  snprintf(lane->name, sizeof lane->name, "%s", last ? "(other unknown routes)" : name);
  lane->rows_seen = s->held_looks;
  configure_lane(s, lane);
  if (last)
    s->strangers = lane;
  mutex_lock(&s->lanes_lock);
  struct lane **end = &s->lanes;
  while (*end)
    end = &(*end)->next;
  *end = lane;
  HASH_ADD_KEYPTR(hh, s->by_name, lane->name, strlen(lane->name), lane);
  mutex_unlock(&s->lanes_lock);
  return lane;
}

void scheduler_reload(struct scheduler *s, struct config_ref *config) {
  mutex_lock(&s->ask_lock);
  struct config_ref *passed_over = s->next_config;
  s->next_config = config;
  mutex_unlock(&s->ask_lock);
  config_ref_drop(passed_over);
  scheduler_poke(s);
}

void scheduler_settings(struct scheduler *s, const struct route_setting *settings, size_t count) {
  struct route_setting *copy = calloc(count + 1, sizeof *copy);
  if (!copy)
    return; /* they come again in a second */
  if (count)
    memcpy(copy, settings, count * sizeof *copy);
  mutex_lock(&s->ask_lock);
  free(s->settings);
  s->settings = copy;
  s->setting_count = count;
  bool first = !s->settings_came;
  s->settings_came = true;
  mutex_unlock(&s->ask_lock);
  if (first)
    mailbox_poke(&s->in); /* nothing was read so far */
}

void scheduler_replace(struct scheduler *s, struct driver *old, struct driver *new) {
  mutex_lock(&s->ask_lock);
  struct driver **end = &s->replaced;
  while (*end)
    end = &(*end)->next_replaced;
  old->successor = new;
  *end = old;
  mutex_unlock(&s->ask_lock);
  scheduler_poke(s);
}

static void apply_setting(struct scheduler *s, struct lane *lane) {
  const struct route_setting *mine = NULL;
  for (size_t i = 0; i < s->known_setting_count && !mine; i++)
    if (strcmp(s->known_settings[i].route, lane->name) == 0)
      mine = &s->known_settings[i];
  bool paused = mine && mine->paused;
  if (paused || (mine && mine->changed_us > lane->gone_us))
    lane->gone = false; /* the table knows, or somebody has resumed it since */
  if (mine && !paused && mine->changed_us > lane->set_us)
    scheduler_forget_trouble(s, lane);
  lane->set_us = mine ? mine->changed_us : 0;
  if (paused == lane->paused || lane->gone)
    return;
  mutex_lock(&s->lanes_lock);
  lane->paused = paused;
  lane_limit(lane);
  snprintf(lane->pause_reason, sizeof lane->pause_reason, "%s", mine ? mine->reason : "");
  mutex_unlock(&s->lanes_lock);
  s->look_at_us = 0;
  log_info(paused ? "DUEBOX-ROUTE-PAUSED" : "DUEBOX-ROUTE-UNPAUSED", "route=%s %s", lane->name, lane->pause_reason);
}

/* Completes a flight in the place of its plugin, which may still read the task: it is never freed. */
static bool answer_for_plugin(struct scheduler *s, struct flight *flight, uint64_t token, const char *error_class,
                              const char *text, struct flight_list *done) {
  if (!flight_complete(s->flights, token))
    return false;
  driver_left(flight, false);
  flight->end = FLIGHT_OUTCOME;
  flight->leaked = true;
  flight->completed_us = clock_mono_us();
  flight_set_outcome(flight, &DUEBOX_OUTCOME(.cls = DUEBOX_UNKNOWN, .error_class = error_class, .message = text));
  flight_list_add(done, flight);
  return true;
}

/* Plugins keep time-outs themselves. One that forgets a task must not hold its row for ever. Not so one whose broker is
 * away, or takes nothing for want of memory: it has the task, and says so. */
void scheduler_watch_flights(struct scheduler *s) {
  int64_t now = clock_mono_us();
  struct flight_list done = {0};
  if (now < s->watch_at_us)
    return;
  s->watch_at_us = now + WATCH_EVERY_US;
  for (struct flight *flight = flight_first(s->flights); flight; flight = flight_after(s->flights, flight)) {
    int64_t limit_us = 1000 * (2 * (int64_t)flight->task->view.timeout_ms + s->config->config->engine.hang_ms);
    uint64_t token = flight_token(flight); /* before the rest: what is put back meanwhile has another */
    bool submitted = atomic_load_explicit(&flight->submitted, memory_order_acquire);
    if (!submitted || !driver_forgot(flight->driver, flight->handed_us, limit_us, now))
      continue; /* what the plugin has not been given yet is the driver's */
    if (answer_for_plugin(s, flight, token, "plugin.forgot", "the plugin has not answered in twice the time-out",
                          &done))
      log_error("DUEBOX-PLUGIN-FORGOT", "route=%s message_id=%s its plugin has not answered in twice the time-out",
                flight->lane->name, flight->task->view.message_id);
  }
  mailbox_put(s->settler, &done);
}

static void replace_driver(struct scheduler *s, struct driver *old) {
  struct driver *new = old->successor;
  struct flight_list unsent = {0}, done = {0};
  driver_abandon(old, &unsent, &done);
  for (struct flight *flight = flight_first(s->flights); flight; flight = flight_after(s->flights, flight))
    if (flight->driver == old)
      (void)answer_for_plugin(s, flight, flight_token(flight), "plugin.hang",
                              "the plugin did not come back from a call", &done);
  flight_list_join(&done, &unsent);
  mailbox_put(s->settler, &done);
  for (struct flight *flight = s->early.head; flight; flight = flight->next)
    if (flight->driver == old) /* which drives the same plugin instance */
      flight->driver = new;
  mutex_lock(&s->lanes_lock);
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    if (lane->driver == old) {
      set_driver(lane, new);
      driver_limit(new, atomic_load(&old->max_inflight));
    }
  mutex_unlock(&s->lanes_lock);
}

static void take_over(struct scheduler *s, struct config_ref *next) {
  config_ref_drop(s->config);
  s->config = next;
  s->heads_at_us = 0; /* a route that is new here may have some, */
  s->held_at_us = 0;  /* and rows that were held */
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    configure_lane(s, lane);
  for (size_t i = 0; i < next->config->route_count; i++)
    if (!scheduler_lane_make(s, next->config->routes[i].name))
      log_error("DUEBOX-MEMORY", "no memory for the lane of route %s", next->config->routes[i].name);
}

/* What came from outside since the last tick takes effect between two reads: every lane changes in the same tick. A
 * route that is new here may have been paused before. */
void scheduler_configure(struct scheduler *s) {
  mutex_lock(&s->ask_lock);
  struct config_ref *next = s->next_config;
  struct route_setting *settings = s->settings;
  size_t setting_count = s->setting_count;
  struct driver *replaced = s->replaced;
  s->next_config = NULL;
  s->settings = NULL;
  s->replaced = NULL;
  mutex_unlock(&s->ask_lock);
  if (next)
    take_over(s, next);
  if (settings) {
    free(s->known_settings);
    s->known_settings = settings;
    s->known_setting_count = setting_count;
  }
  for (struct lane *lane = next || settings ? s->lanes : NULL; lane; lane = lane->next)
    apply_setting(s, lane);
  for (; replaced; replaced = replaced->next_replaced)
    replace_driver(s, replaced);
}

/* What a task that its sink has answered says about the time that takes. */
static void follow_confirm(const struct flight *flight, int64_t now_us) {
  struct lane *lane = flight->lane;
  bool confirmed = stall_confirms(flight->outcome.cls);
  if (confirmed)
    stall_heard(&lane->stall, flight->completed_us);
  if (confirmed && flight->times_sink)
    stall_learn(&lane->stall, flight->handed_us, flight->completed_us, now_us);
  if (flight->outcome.cls == DUEBOX_DELIVERED)
    lane_follow_delivery(lane, flight);
  if (!flight->task->recorded)
    raise_gauge(&lane->metrics.claim_gap_us, flight->completed_us - flight->read_us);
}

/* The row may be due still, unless somebody else changed it. */
static bool handed_back(const struct flight *flight) {
  return !flight->settled || !flight->decision.applied || flight->decision.changed ||
         flight->decision.event == EVENT_RELEASE;
}

static bool is_later(enum task_event event) { return event == EVENT_RETRY || event == EVENT_DEFER; }

/* The group that an overdue task, or one that was taken back, belongs to from now on; NULL: it is not scheduled again.
 */
static struct group *group_of_unread(const struct scheduler *s, const struct flight *flight) {
  const struct task *task = flight->task;
  bool again =
      flight->settled && flight->decision.applied &&
      (is_later(flight->decision.event) || flight->decision.event == EVENT_RELEASE || flight->decision.changed);
  struct group *group =
      again && flight->lane->route ? lane_group(flight->lane, task->shard, task->priority, true) : NULL;
  if (group && group->epoch == 0 && group->seen == 0)
    group->epoch = scheduler_epoch(s, flight->lane, task->shard); /* it is new */
  return group;
}

/* What the settling means for the group's reading. */
static void follow_group(struct scheduler *s, const struct flight *flight) {
  struct group *group = flight->group ? flight->group : group_of_unread(s, flight);
  if (flight->group)
    group->in_flight--;
  else
    flight->lane->unread--;
  if (!group)
    return;
  if (handed_back(flight)) { /* the row may be due still, behind the cursor */
    bool as_it_was = flight->settled && flight->decision.applied && !flight->decision.changed;
    group->low_us = as_it_was ? earlier(group->low_us, flight->task->due_us) : 0;
    lane_sweep(group);
  }
  if (flight->settled && flight->decision.applied && !flight->decision.changed && is_later(flight->decision.event)) {
    int64_t due = scheduler_db_now_us(s) + flight->decision.delay_us;
    group->low_us = earlier(group->low_us, flight->task->due_us);
    if (due < group->next_us)
      group->next_us = due;
    if (due <= group->cursor.next_us)
      lane_sweep(group);
  }
  if (flight->group && group->in_flight == 0 && !group->due && group->shard != SHARD_BOUND &&
      !order_waits_in(&group->lane->order, group->shard)) {
    /* Nothing of it is out or waits here, and it was read to the end: reading from the start costs nothing and misses
     * nothing, but for rows of other hosts. */
    group->due = group->sweep;
    lane_restart(group);
  }
}

static void arrive(struct scheduler *s, struct flight *flight, int64_t now_us) {
  uint8_t shard = flight->task->shard;
  /* A hung plugin may still read the route's options of a leaked flight: its configuration stays. */
  struct config_ref *config = flight->config;
  bool leaked = flight->leaked;
  lane_unpark(flight->lane, flight);
  follow_group(s, flight);
  if (flight->decision.mismatch) /* sweeps took the row that has its id now for this one */
    for (struct lane *lane = s->lanes; lane; lane = lane->next)
      lane_sweep_first(lane);
  if (flight->driver) {
    bool sent = atomic_load_explicit(&flight->submitted, memory_order_relaxed);
    lane_refund(flight->lane, flight->task, sent);
    if (sent)
      lane_note_left(flight->lane);
    if (flight->end == FLIGHT_UNSENT)
      lane_note_unsent(flight->lane);
    else
      lane_note_done(flight->lane, now_us);
    lane_note_out(flight->lane, now_us - flight->read_us);
    scheduler_follow_outcome(s, flight);
    if (flight->end == FLIGHT_OUTCOME)
      follow_confirm(flight, now_us);
  } else {
    lane_ended(flight->lane, flight->task);
  }
  if (flight->in_order)
    scheduler_leave_order(s, flight, handed_back(flight) && !flight->decision.mismatch);
  if (flight->end == FLIGHT_BLOCKED)
    scheduler_is_blocked(s, flight);
  if (flight->suspicion)
    suspects_back(&flight->lane->suspects, flight->suspicion, !handed_back(flight), &s->last_chance);
  if (flight->task->state == TASK_CLAIMED && !flight->settled) { /* its lease was lost, and may be ours again */
    s->claims_lost |= shard_bit(shard);
    scheduler_look_soon(s);
  }
  if (flight->settled && flight->decision.applied && s->view[shard].cautious && ++s->calm_count[shard] >= CALM_AFTER)
    leases_calm(s->leases, shard);
  atomic_fetch_sub(&s->leases->in_flight[shard], 1);
  atomic_fetch_sub(&s->in_flight, 1);
  flight_give_back(s->flights, flight);
  if (leaked)
    leave_behind(config);
  else
    config_ref_drop(config);
}

void scheduler_arrivals(struct scheduler *s, struct flight_list *settled) {
  struct flight *flight;
  int64_t now_us = settled->head ? clock_mono_us() : 0;
  while ((flight = flight_list_pop(settled)))
    arrive(s, flight, now_us);
}
