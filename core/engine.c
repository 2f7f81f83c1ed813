/* SPDX-License-Identifier: MIT
 *
 * core/engine.c - builds, starts, drains and stops the parts in one written order.
 *
 * Start: leases, settler, inbox, sinks, scheduler; then, when nothing else of the process can fail any more, sources,
 * keeper (whose first lease sets everything in motion), watcher.
 * Stop: watcher, scheduler reads no more, sinks end and complete everything, the settler writes what is known, sources
 * and inbox end, the keeper gives the shards back, the scheduler takes note of all of it and ends. What parts know of
 * each other is freed when all have ended.
 */
#include "core/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/leave.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/sync.h"
#include "core/callback.h"
#include "core/engine_internal.h"

enum {
  REPLACEMENTS = 3, /* of one driver, then the process had better start anew */
  SINK_STOP_MS = 5000,
  DRAIN_STEP_US = 20 * 1000,
  BIRTH_STEP_MS = 1000,
  BIRTH_WAIT_MS = 100, /* in the keeper's thread */
};

struct config_ref *engine_config(void *handle) {
  struct engine *engine = handle;
  mutex_lock(&engine->config_lock);
  struct config_ref *ref = config_ref_take(engine->config);
  mutex_unlock(&engine->config_lock);
  return ref;
}

static int64_t db_now(void *handle) { return scheduler_db_now_us(&((struct engine *)handle)->scheduler); }

static struct route_metrics *metrics_of(void *handle, const char *route) {
  struct lane *lane = scheduler_lane(&((struct engine *)handle)->scheduler, route);
  return lane ? &lane->metrics : NULL;
}

static void wake_scheduler(void *handle) { mailbox_poke(&((struct engine *)handle)->scheduler.in); }

static void poke(void *handle) { scheduler_poke(&((struct engine *)handle)->scheduler); }

static struct driver *driver_for(void *handle, const struct plugin_config *plugin) {
  struct engine *engine = handle;
  struct driver *driver = NULL;
  mutex_lock(&engine->drivers_lock);
  for (size_t i = 0; i < engine->sink_count; i++)
    if (strcmp(engine->sinks[i].plugin->name, plugin->name) == 0)
      driver = engine->sinks[i].driver;
  mutex_unlock(&engine->drivers_lock);
  return driver;
}

static void route_gone(void *handle, const char *route, const char *reason, int64_t since_us) {
  log_error("DUEBOX-ROUTE-GONE", "route=%s is paused for all daemons, its destination is closed for good: %s", route,
            reason);
  keeper_pause_route(&((struct engine *)handle)->keeper, route, "duebox", reason, since_us);
}

static void shard_lost(void *handle, const struct shard_lease *lease) {
  keeper_lost(&((struct engine *)handle)->keeper, lease);
}

static void shard_empty(void *handle) { keeper_shard_empty(&((struct engine *)handle)->keeper); }

static void route_settings(void *handle, const struct route_setting *settings, size_t count) {
  scheduler_settings(&((struct engine *)handle)->scheduler, settings, count);
}

static struct driver *start_driver(struct engine *engine, const struct seat *seat, struct err *err) {
  struct driver_env env = {.flights = &engine->flights,
                           .settler = &engine->settler.in,
                           .leases = &engine->leases,
                           .inbox = engine->inbox,
                           .metrics = &engine->metrics,
                           .reachable = wake_scheduler,
                           .engine = engine};
  return driver_start(engine->first->config, seat->plugin, seat->source, &env, err);
}

/* Puts the new driver in the place of the one that hangs. A sink's tasks are ended by the scheduler, which knows them.
 */
static void take_seat(struct engine *engine, struct seat *seat) {
  struct driver *old = seat->driver, *fresh = seat->coming;
  struct flight_list none = {0};
  log_error("DUEBOX-DRIVER-REPLACED", "instance=%s its plugin hung or ended its thread; a new instance takes over",
            old->name);
  count(&engine->metrics.drivers_replaced, 1);
  seat->coming = NULL;
  seat->silent_us = 0;
  atomic_store(&engine->left_thread, true);
  mutex_lock(&engine->drivers_lock);
  seat->driver = fresh;
  mutex_unlock(&engine->drivers_lock);
  if (seat->source)
    driver_abandon(old, &none, &none);
  else
    scheduler_replace(&engine->scheduler, old, fresh);
}

/* Ends one that nobody has used. */
static void give_up(struct engine *engine, struct driver **driver) {
  if (!driver_give_up(driver))
    atomic_store(&engine->left_thread, true);
}

/* Looks whether the new driver is there. One that fails is tried again at the next watch. */
static void welcome(struct engine *engine, struct seat *seat, int64_t limit_us) {
  struct flight_list none = {0};
  struct err err = {0};
  switch (driver_born(seat->coming, BIRTH_WAIT_MS, &err)) {
  case DRIVER_BORN:
    take_seat(engine, seat);
    break;
  case DRIVER_FAILED:
    log_error("DUEBOX-DRIVER-REPLACE", "%s", err.text);
    give_up(engine, &seat->coming);
    break;
  case DRIVER_COMING:
    if (!driver_stuck(seat->coming, limit_us))
      break;
    log_error("DUEBOX-DRIVER-REPLACE", "instance=%s a new instance was not made in time", seat->coming->name);
    driver_abandon(seat->coming, &none, &none);
    atomic_store(&engine->left_thread, true);
    seat->coming = NULL;
    break;
  }
}

static void replace(struct engine *engine, struct seat *seat, int64_t limit_us) {
  struct err err = {0};
  if (seat->replaced >= REPLACEMENTS) {
    atomic_store(&engine->failed, "a plugin hung again and again: the process should start anew");
    return;
  }
  if (!(seat->coming = start_driver(engine, seat, &err))) {
    log_error("DUEBOX-DRIVER-REPLACE", "%s", err.text);
    return;
  }
  seat->replaced++;
  log_warn("DUEBOX-DRIVER-COMING", "instance=%s gives no sign of life; a new instance is being made",
           seat->driver->name);
  welcome(engine, seat, limit_us);
}

static void watch_seats(struct engine *engine, struct seat *seats, size_t count, int64_t limit_us) {
  for (size_t i = 0; i < count; i++) {
    driver_nudge(seats[i].driver);
    if (seats[i].coming)
      welcome(engine, &seats[i], limit_us);
    else if (driver_hangs(seats[i].driver, limit_us, clock_mono_us(), &seats[i].silent_us))
      replace(engine, &seats[i], limit_us);
  }
}

/* After a failover ids and epochs may be handed out again. What is in flight is compared in full in any case; people
 * are told, because commits may be lost. */
static void follow_server(struct engine *engine) {
  char server[STORE_SERVER_MAX];
  uint64_t before = atomic_load(&engine->metrics.server_changes);
  uint64_t changes = engine->store->server ? engine->store->server(engine->store->self, server) : 0;
  if (changes == before)
    return;
  atomic_store(&engine->metrics.server_changes, changes);
  log_repeated(&engine->server_changed, LOG_LEVEL_WARN, "DUEBOX-DB-SERVER-CHANGED",
               "connections reach another database server now: %s", server);
}

static void watch(void *handle) {
  struct engine *engine = handle;
  struct config_ref *config = engine_config(engine);
  int64_t limit_us = config->config->engine.hang_ms * 1000;
  config_ref_drop(config);
  if (engine->store->statements)
    atomic_store(&engine->metrics.statements, atomic_load(engine->store->statements));
  follow_server(engine);
  mutex_lock(&engine->watch_lock);
  if (!atomic_load(&engine->draining)) {
    watch_seats(engine, engine->sinks, engine->sink_count, limit_us);
    watch_seats(engine, engine->sources, engine->source_count, limit_us);
  }
  mutex_unlock(&engine->watch_lock);
}

static bool describe_source(void *handle, size_t i, struct keeper_source *out) {
  struct engine *engine = handle;
  mutex_lock(&engine->drivers_lock);
  bool is = i < engine->source_count;
  if (is) {
    out->entry = config_answer_to(engine->first->config, engine->sources[i].source->name);
    driver_reading(engine->sources[i].driver, &out->reads, &out->stands_by);
  }
  mutex_unlock(&engine->drivers_lock);
  return is;
}

static void note_taken(void *handle, size_t i, bool taken) {
  struct engine *engine = handle;
  mutex_lock(&engine->drivers_lock);
  driver_taken(engine->sources[i].driver, taken);
  mutex_unlock(&engine->drivers_lock);
}

/* At the start a plugin that cannot be made stops the daemon, and one that takes its time is waited for. */
static bool fill_seat(struct engine *engine, struct seat *seat, struct err *err) {
  enum driver_birth birth = DRIVER_COMING;
  if (!(seat->driver = start_driver(engine, seat, err)))
    return false;
  while (birth == DRIVER_COMING)
    birth = driver_born(seat->driver, BIRTH_STEP_MS, err);
  if (birth == DRIVER_FAILED)
    give_up(engine, &seat->driver);
  return birth == DRIVER_BORN;
}

static bool start_sinks(struct engine *engine, struct err *err) {
  const struct config *config = engine->first->config;
  engine->sinks = calloc(config->plugin_count + 1, sizeof *engine->sinks);
  engine->sources = calloc(config->source_count + 1, sizeof *engine->sources);
  if (!engine->sinks || !engine->sources)
    return err_set(err, 0, "out of memory for plugin instances");
  for (size_t i = 0; i < config->plugin_count; i++) {
    struct seat *seat = &engine->sinks[engine->sink_count];
    seat->plugin = &config->plugins[i];
    if (!(seat->plugin->module->capabilities & DUEBOX_CAP_SINK))
      continue;
    if (!fill_seat(engine, seat, err))
      return false;
    engine->sink_count++;
  }
  return true;
}

static bool start_sources(struct engine *engine, struct err *err) {
  const struct config *config = engine->first->config;
  for (size_t i = 0; i < config->source_count; i++) {
    struct seat *seat = &engine->sources[i];
    seat->plugin = config->sources[i].plugin;
    seat->source = &config->sources[i];
    if (!fill_seat(engine, seat, err))
      return false;
    mutex_lock(&engine->drivers_lock); /* the admin listener looks at them already */
    engine->source_count++;
    mutex_unlock(&engine->drivers_lock);
  }
  return true;
}

static bool start_settler(struct engine *engine, struct err *err) {
  const struct engine_config *config = &engine->first->config->engine;
  struct settler *settler = &engine->settler;
  settler->store = engine->store;
  settler->leases = &engine->leases;
  settler->metrics = &engine->metrics;
  settler->scheduler = &engine->scheduler.in;
  settler->db_now_us = db_now;
  settler->shard_lost = shard_lost;
  settler->engine = engine;
  settler->rows = config->settle_rows;
  settler->delay_us = config->settle_delay_ms * 1000;
  settler->realtime = config->realtime;
  return engine->settler_runs = settler_start(settler, err);
}

static bool start_inbox(struct engine *engine, struct err *err) {
  struct inbox_env env = {.engine = engine,
                          .store = engine->store,
                          .config = engine_config,
                          .db_now_us = db_now,
                          .route_metrics = metrics_of,
                          .rows_changed = poke,
                          .metrics = &engine->metrics,
                          .patience_us = INBOX_PATIENCE_US};
  return (engine->inbox = inbox_start(&env, err)) != NULL;
}

static bool start_scheduler(struct engine *engine, struct err *err) {
  struct scheduler *scheduler = &engine->scheduler;
  scheduler->store = engine->store;
  scheduler->leases = &engine->leases;
  scheduler->metrics = &engine->metrics;
  scheduler->settler = &engine->settler.in;
  scheduler->flights = &engine->flights;
  scheduler->config = config_ref_take(engine->config);
  scheduler->driver_for = driver_for;
  scheduler->shard_lost = shard_lost;
  scheduler->shard_empty = shard_empty;
  scheduler->route_gone = route_gone;
  scheduler->engine = engine;
  scheduler->instance = engine->instance;
  scheduler->realtime = engine->first->config->engine.realtime;
  return engine->scheduler_runs = scheduler_start(scheduler, err);
}

static bool start_keeper(struct engine *engine, struct err *err) {
  const struct config *config = engine->first->config;
  struct keeper *keeper = &engine->keeper;
  keeper->store = engine->store;
  keeper->leases = &engine->leases;
  keeper->metrics = &engine->metrics;
  keeper->me = (struct instance_row){.id = engine->instance,
                                     .host = config->engine.instance,
                                     .admin_url = config->admin.host ? config->admin.url : "",
                                     .version = DUEBOX_VERSION,
                                     .pid = getpid()};
  keeper->config = engine_config;
  keeper->shards_changed = poke;
  keeper->route_setting = route_settings;
  keeper->watch = watch;
  keeper->source = describe_source;
  keeper->source_taken = note_taken;
  keeper->route_metrics = metrics_of;
  keeper->engine = engine;
  engine->keeper_runs = true; /* it is to be stopped also if it has not started all its threads */
  return keeper_start(keeper, err);
}

/* It works without; only where nobody wants it there is none. */
static bool start_watcher(struct engine *engine, struct err *err) {
  const struct config *config = engine->first->config;
  struct watcher *watcher = &engine->watcher;
  if (config->database.wake == WAKE_POLL || !engine->store->ops->watch)
    return true;
  watcher->store = engine->store;
  watcher->scheduler = &engine->scheduler;
  watcher->metrics = &engine->metrics;
  watcher->host = config->engine.instance;
  watcher->max_payload = config->engine.max_payload;
  watcher->wanted = config->database.wake == WAKE_BINLOG;
  return engine->watcher_runs = watcher_start(watcher, err);
}

/* The name that people gave it, or its host's, and some digits: a restart on the same host is another instance. */
static void name_instance(struct engine *engine, const char *name) {
  enum { DIGITS = 8 };
  char digits[DIGITS + 1];
  random_hex(digits, DIGITS / 2);
  snprintf(engine->instance, sizeof engine->instance, "%.*s-%s", STORE_INSTANCE_MAX - DIGITS - 1, name, digits);
}

bool engine_start(const struct store *store, struct config *config, struct engine **out, struct err *err) {
  struct engine *engine = calloc(1, sizeof *engine);
  *out = NULL;
  if (!engine || !(engine->config = config_ref_new(config))) {
    free(engine);
    return err_set(err, 0, "out of memory for the engine");
  }
  engine->store = store;
  engine->started_us = clock_wall_us();
  engine->first = config_ref_take(engine->config);
  name_instance(engine, config->engine.instance);
  if (store->identify)
    store->identify(store->self, engine->instance);
  mutex_init(&engine->config_lock);
  mutex_init(&engine->watch_lock);
  mutex_init(&engine->drivers_lock);
  leases_init(&engine->leases);
  engine->leases.owner = engine->instance;
  keeper_init(&engine->keeper);
  mailbox_init(&engine->scheduler.in);
  if (start_settler(engine, err) && start_inbox(engine, err) && start_sinks(engine, err) &&
      start_scheduler(engine, err)) {
    *out = engine;
    return true;
  }
  config_ref_take(engine->config); /* one use that nobody drops: on failure the configuration stays the caller's */
  engine_stop(engine);
  engine_free(&engine);
  return false;
}

void engine_hold(struct engine *engine) {
  atomic_store(&engine->scheduler.on_hold, true);
  engine->keeper.on_hold = true;
  inbox_hold(engine->inbox);
}

bool engine_join(struct engine *engine, struct err *err) {
  return start_sources(engine, err) && start_keeper(engine, err) && start_watcher(engine, err);
}

bool engine_reload(struct engine *engine, struct config *next, struct err *err) {
  struct config_ref *ref = NULL;
  if (config_reloadable(engine->first->config, next, err))
    ref = config_ref_new(next);
  if (!ref)
    return err->text[0] ? false : err_set(err, 0, "out of memory for the new configuration");
  mutex_lock(&engine->config_lock);
  struct config_ref *former = engine->config;
  engine->config = config_ref_take(ref);
  mutex_unlock(&engine->config_lock);
  config_ref_drop(former);
  engine->settler.rows = next->engine.settle_rows;
  engine->settler.delay_us = next->engine.settle_delay_ms * 1000;
  scheduler_reload(&engine->scheduler, ref);
  count(&engine->metrics.reloads, 1);
  return true;
}

void engine_reload_refused(struct engine *engine) { count(&engine->metrics.reloads_refused, 1); }

/* Others take the shards over as these are shut: until then they are read, so that nothing waits for a call that is not
 * of its route. What is read last has a quarter of the time to end. */
static void hand_over(struct engine *engine, int64_t began_us, int64_t timeout_us) {
  int64_t deadline = began_us + timeout_us / 4 * 3;
  while (keeper_hands_over(&engine->keeper) && clock_mono_us() < deadline && !atomic_load(&engine->hurry))
    thread_sleep(DRAIN_STEP_US);
}

void engine_drain(struct engine *engine, int64_t timeout_ms) {
  int64_t began = clock_mono_us(), deadline = began + timeout_ms * 1000;
  atomic_store(&engine->draining, true);
  keeper_drain(&engine->keeper);
  hand_over(engine, began, timeout_ms * 1000);
  scheduler_drain(&engine->scheduler);
  while (atomic_load(&engine->scheduler.in_flight) > 0 && clock_mono_us() < deadline && !atomic_load(&engine->hurry))
    thread_sleep(DRAIN_STEP_US);
}

void engine_hurry(struct engine *engine) { atomic_store(&engine->hurry, true); }

/* No watch is under way any more, and none begins. */
static void end_watch(struct engine *engine) {
  mutex_lock(&engine->watch_lock);
  for (size_t i = 0; i < engine->sink_count; i++)
    if (engine->sinks[i].coming)
      give_up(engine, &engine->sinks[i].coming);
  for (size_t i = 0; i < engine->source_count; i++)
    if (engine->sources[i].coming)
      give_up(engine, &engine->sources[i].coming);
  mutex_unlock(&engine->watch_lock);
}

static void join(struct engine *engine, struct driver *driver, int timeout_ms) {
  if (!driver_join(driver, timeout_ms))
    atomic_store(&engine->left_thread, true);
}

static void stop_sinks(struct engine *engine) {
  int stop_ms = atomic_load(&engine->hurry) ? 100 : SINK_STOP_MS;
  for (size_t i = 0; i < engine->sink_count; i++)
    driver_close(engine->sinks[i].driver);
  for (size_t i = 0; i < engine->sink_count; i++)
    driver_stop(engine->sinks[i].driver, stop_ms);
  for (size_t i = 0; i < engine->sink_count; i++)
    join(engine, engine->sinks[i].driver, stop_ms + 1000);
}

static void stop_sources(struct engine *engine) {
  for (size_t i = 0; i < engine->source_count; i++)
    driver_close(engine->sources[i].driver);
  if (engine->inbox)
    inbox_close(engine->inbox); /* acknowledges what it has, committed or not */
  for (size_t i = 0; i < engine->source_count; i++)
    driver_stop(engine->sources[i].driver, SINK_STOP_MS);
  for (size_t i = 0; i < engine->source_count; i++)
    join(engine, engine->sources[i].driver, SINK_STOP_MS + 1000);
  if (atomic_load(&engine->left_thread)) /* one of them may come back with a record before the process ends */
    leave_behind(engine->inbox);
  else
    inbox_free(&engine->inbox);
}

/* The scheduler and the keeper have known them to their own ends. */
static void free_drivers(struct engine *engine) {
  for (size_t i = 0; i < engine->sink_count; i++)
    driver_free(&engine->sinks[i].driver);
  for (size_t i = 0; i < engine->source_count; i++)
    driver_free(&engine->sources[i].driver);
}

/* A statement may be under way in the scheduler, and what it reads still takes off: until it rests, sinks and settler
 * are needed. The session's own time-outs bound the wait. */
static void wait_for_rest(struct engine *engine) {
  scheduler_drain(&engine->scheduler);
  while (!atomic_load(&engine->scheduler.resting))
    thread_sleep(DRAIN_STEP_US);
}

void engine_stop(struct engine *engine) {
  atomic_store(&engine->draining, true);
  if (engine->watcher_runs)
    watcher_stop(&engine->watcher);
  if (engine->scheduler_runs)
    wait_for_rest(engine);
  end_watch(engine);
  stop_sinks(engine);
  stop_sources(engine);
  if (engine->settler_runs)
    settler_stop(&engine->settler, atomic_load(&engine->hurry) ? 500 : SINK_STOP_MS);
  if (atomic_load(&engine->left_thread)) /* what a hung plugin has is settled by nobody */
    leases_note_all_left(&engine->leases);
  if (engine->keeper_runs) /* before the scheduler, which it tells what changes */
    keeper_stop(&engine->keeper);
  if (engine->scheduler_runs)
    scheduler_stop(&engine->scheduler);
}

void engine_free(struct engine **handle) {
  struct engine *engine = *handle;
  *handle = NULL;
  free_drivers(engine);
  if (atomic_load(&engine->left_thread)) { /* it may come back any time, and what it asks for must be there */
    leave_behind(engine);
    return;
  }
  if (engine->scheduler_runs)
    scheduler_free(&engine->scheduler);
  mailbox_destroy(&engine->scheduler.in);
  if (engine->settler_runs)
    mailbox_destroy(&engine->settler.in);
  flight_table_free(&engine->flights);
  leases_destroy(&engine->leases);
  mutex_destroy(&engine->drivers_lock);
  mutex_destroy(&engine->watch_lock);
  mutex_destroy(&engine->config_lock);
  config_ref_drop(engine->config);
  config_ref_drop(engine->first);
  free(engine->sinks);
  free(engine->sources);
  free(engine);
}

const char *engine_failed(const struct engine *engine) {
  return atomic_load(&((struct engine *)(uintptr_t)engine)->failed);
}
