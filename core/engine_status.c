/* SPDX-License-Identifier: MIT
 *
 * core/engine_status.c - the engine seen from outside: snapshots, and commands that are handed to the right thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/callback.h"
#include "core/engine_internal.h"

const struct engine_metrics *engine_metrics(const struct engine *engine) { return &engine->metrics; }

static void describe_target(const struct target *target, int64_t now_us, struct target_status *out) {
  const struct health *health = &target->health;
  target_label(target->name, target->task_key, out->name, sizeof out->name);
  out->health = health_state_text(health->state);
  snprintf(out->error_class, sizeof out->error_class, "%s", health->error_class);
  snprintf(out->reason, sizeof out->reason, "%s", health->reason);
  snprintf(out->message_id, sizeof out->message_id, "%s", target->message_id);
  if (health->state == HEALTH_SUSPENDED && health->probe_at_us > now_us)
    out->probe_in_us = health->probe_at_us - now_us;
}

/* Without memory the count alone is there. */
static void describe_targets(const struct lane *lane, struct route_status *out) {
  int64_t now = clock_mono_us();
  size_t n = 0;
  for (const struct target *target = lane->targets.first; target; target = target->next)
    out->target_count += health_suspended(&target->health);
  out->targets = out->target_count ? calloc(out->target_count, sizeof *out->targets) : NULL;
  for (const struct target *target = out->targets ? lane->targets.first : NULL; target; target = target->next)
    if (health_suspended(&target->health))
      describe_target(target, now, &out->targets[n++]);
}

static int64_t age_of(const gauge *since, int64_t now_us) {
  int64_t at = gauge_value(since);
  return at && at < now_us ? now_us - at : 0;
}

static void describe_stall(const struct lane *lane, struct route_status *out) {
  int64_t age = age_of(&lane->stalled_since_us, clock_mono_us());
  if (age < STALL_SHOWN_US)
    return;
  out->stalled_us = age;
  snprintf(out->stalled_target, sizeof out->stalled_target, "%s", lane->stalled_target);
  snprintf(out->stalled_task, sizeof out->stalled_task, "%s", lane->stalled_task);
}

static void describe_held(const struct lane *lane, struct route_status *out) {
  out->held_us = held_claim_age_us(&lane->held_claim, clock_mono_us());
  snprintf(out->held_task, sizeof out->held_task, "%s", out->held_us ? lane->held_claim.message_id : "");
}

static void describe_places(const struct lane *lane, struct route_status *out) {
  out->full_us = age_of(&lane->full_since_us, clock_mono_us());
  snprintf(out->full_task, sizeof out->full_task, "%s", out->full_us ? lane->full_task : "");
}

static void describe_lane(const struct lane *lane, struct route_status *out) {
  out->name = lane->name;
  out->via = lane->route ? lane->route->plugin->name : "";
  out->known = lane->route != NULL;
  out->paused = lane->paused;
  out->suspended = health_suspended(&lane->health);
  out->health = health_state_text(lane->health.state);
  snprintf(out->reason, sizeof out->reason, "%s", out->suspended ? lane->health.reason : "");
  snprintf(out->pause_reason, sizeof out->pause_reason, "%s", lane->pause_reason);
  describe_stall(lane, out);
  describe_held(lane, out);
  describe_places(lane, out);
  describe_targets(lane, out);
  out->metrics = &lane->metrics;
  out->waiting_groups = (uint64_t)gauge_value(&lane->waiting_groups);
  out->next_due_us = gauge_value(&lane->next_due_us);
}

static bool describe_routes(struct engine *engine, struct engine_status *out) {
  struct scheduler *s = &engine->scheduler;
  mutex_lock(&s->lanes_lock);
  size_t lanes = HASH_COUNT(s->by_name);
  out->routes = calloc(lanes + 1, sizeof *out->routes);
  for (struct lane *lane = out->routes ? s->lanes : NULL; lane; lane = lane->next)
    if (!lane->forgotten)
      describe_lane(lane, &out->routes[out->route_count++]);
  mutex_unlock(&s->lanes_lock);
  return out->routes != NULL;
}

static void describe_driver(struct driver *driver, struct plugin_status *out) {
  snprintf(out->name, sizeof out->name, "%s", driver->name);
  snprintf(out->role, sizeof out->role, "%s", driver->role == DUEBOX_ROLE_SINK ? "sink" : "source");
  driver_health(driver, &out->up, out->text);
  out->unread_us = driver_unread_us(driver);
  out->inflight = atomic_load_explicit(&driver->at_sink, memory_order_relaxed); /* a source has none */
  out->last_poll_age_us = clock_mono_us() - atomic_load(&driver->alive_us);
}

static bool describe_plugins(struct engine *engine, struct engine_status *out) {
  mutex_lock(&engine->drivers_lock);
  out->plugins = calloc(engine->sink_count + engine->source_count + 1, sizeof *out->plugins);
  for (size_t i = 0; out->plugins && i < engine->sink_count; i++)
    describe_driver(engine->sinks[i].driver, &out->plugins[out->plugin_count++]);
  for (size_t i = 0; out->plugins && i < engine->source_count; i++)
    describe_driver(engine->sources[i].driver, &out->plugins[out->plugin_count++]);
  mutex_unlock(&engine->drivers_lock);
  return out->plugins != NULL;
}

static void describe_shards(struct engine *engine, struct engine_status *out) {
  struct leases *leases = &engine->leases;
  mutex_lock(&leases->lock);
  for (int i = 0; i < STORE_SHARDS_MAX; i++)
    if (leases->slot[i].epoch && i != SHARD_BOUND)
      out->shards[out->shard_count++] = (struct shard_status){.shard = (uint8_t)i,
                                                              .epoch = leases->slot[i].epoch,
                                                              .held = true,
                                                              .leaving = leases->slot[i].stage != LEASE_STAYS};
  mutex_unlock(&leases->lock);
}

/* The name of a plugin instance that does not come back from a call; "" = none. */
static void find_hung(struct engine *engine, char name[64]) {
  struct config_ref *config = engine_config(engine);
  int64_t limit_us = config->config->engine.hang_ms * 1000;
  config_ref_drop(config);
  name[0] = '\0';
  mutex_lock(&engine->drivers_lock);
  for (size_t i = 0; i < engine->sink_count + engine->source_count && !name[0]; i++) {
    const struct seat *seat = i < engine->sink_count ? &engine->sinks[i] : &engine->sources[i - engine->sink_count];
    if (driver_stuck(seat->driver, limit_us))
      snprintf(name, 64, "%s", seat->driver->name);
  }
  mutex_unlock(&engine->drivers_lock);
}

static void describe_readiness(struct engine *engine, struct engine_status *out) {
  int64_t now = clock_mono_us();
  char hung[64];
  struct readiness facts = {.failed = atomic_load(&engine->failed),
                            .stopping = atomic_load(&engine->draining),
                            .on_hold = atomic_load(&engine->scheduler.on_hold),
                            .db_answers = gauge_value(&engine->scheduler.db_answers),
                            .reading_us = age_of(&engine->scheduler.reading_since_us, now),
                            .settling_us = age_of(&engine->settler.writing_since_us, now),
                            .refused = gauge_value(&engine->metrics.settle_stuck),
                            .locked_us = age_of(&engine->settler.locked_since_us, now),
                            .results_us = inbox_delay_us(engine->inbox, now)};
  facts.shards_spoken = keeper_ready(&engine->keeper, &facts.unowned, &facts.unread_shards_us);
  for (size_t i = 0; i < out->shard_count; i++) {
    const struct shard_status *shard = &out->shards[i];
    facts.shards_ours++;
    facts.unsafe += !leases_safe(&engine->leases, shard->shard, shard->epoch, clock_instant());
  }
  for (size_t i = 0; i < out->route_count; i++)
    if (!out->routes[i].suspended && out->routes[i].stalled_us > facts.stalled_us) {
      facts.stalled_us = out->routes[i].stalled_us;
      facts.stalled = out->routes[i].name;
    }
  for (size_t i = 0; i < out->route_count; i++)
    if (out->routes[i].held_us > facts.held_us) {
      facts.held_us = out->routes[i].held_us;
      facts.held = out->routes[i].name;
      facts.held_task = out->routes[i].held_task;
    }
  for (size_t i = 0; i < out->route_count; i++)
    if (out->routes[i].full_us > facts.full_us) {
      facts.full_us = out->routes[i].full_us;
      facts.full = out->routes[i].name;
      facts.full_task = out->routes[i].full_task;
    }
  for (size_t i = 0; i < out->plugin_count; i++)
    if (out->plugins[i].unread_us > facts.unread_us) {
      facts.unread_us = out->plugins[i].unread_us;
      facts.unread = out->plugins[i].name;
      facts.unread_why = out->plugins[i].text;
    }
  find_hung(engine, hung);
  facts.hung = hung[0] && !facts.stopping ? hung : NULL;
  out->db_up = readiness_db_up(&facts);
  readiness_judge(&facts, &out->problems);
  out->ready = out->problems.count == 0;
  readiness_text(&out->problems, out->not_ready, sizeof out->not_ready);
}

bool engine_status(struct engine *engine, struct engine_status *out) {
  *out = (struct engine_status){.draining = atomic_load(&engine->draining),
                                .started_us = engine->started_us,
                                .db_now_us = scheduler_db_now_us(&engine->scheduler)};
  memcpy(out->instance, engine->instance, sizeof out->instance);
  if (!describe_routes(engine, out) || !describe_plugins(engine, out)) {
    engine_status_free(out);
    return false;
  }
  describe_shards(engine, out);
  describe_readiness(engine, out);
  return true;
}

void engine_status_free(struct engine_status *status) {
  for (size_t i = 0; i < status->route_count; i++)
    free(status->routes[i].targets);
  free(status->routes);
  free(status->plugins);
  status->routes = NULL;
  status->route_count = 0;
  status->plugins = NULL;
}

enum command_answer engine_command(struct engine *engine, const struct task_command *command, int64_t timeout_ms,
                                   struct err *err) {
  return scheduler_ask(&engine->scheduler, command, timeout_ms, err);
}

bool engine_commands(struct engine *engine, const struct task_commands *commands, int64_t timeout_ms, struct err *err) {
  return scheduler_ask_many(&engine->scheduler, commands, timeout_ms, err);
}

bool engine_result(struct engine *engine, const struct result_offer *offer, int64_t timeout_ms,
                   struct store_result *result, struct err *err) {
  return inbox_apply(engine->inbox, offer, timeout_ms, result, err);
}

bool engine_pause_route(struct engine *engine, const char *route, bool paused, const char *actor, const char *reason,
                        struct err *err) {
  struct route_setting setting = {.paused = paused};
  snprintf(setting.route, sizeof setting.route, "%s", route);
  snprintf(setting.reason, sizeof setting.reason, "%s", reason ? reason : "");
  struct store_session *ss = NULL;
  const struct store_ops *ops = engine->store->ops;
  bool done = ops->open(engine->store->self, "admin", 0, &ss, err) == STORE_OK &&
              ops->set_route(ss, &setting, actor, err) == STORE_OK;
  if (ss)
    ops->close(&ss);
  return done;
}

bool engine_callback_verify(const struct engine *engine, const char *message_id, const char *token,
                            struct record_road *road) {
  struct callback_copy copy = {.attempt = road->attempt};
  bool ours = callback_verify(&engine->first->config->callbacks, message_id, token, &copy);
  road->row = copy.row;
  road->version = copy.version;
  road->lane = copy.lane;
  return ours;
}
