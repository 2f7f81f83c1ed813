/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_engine.c - the engine's public functions on settable data.
 */
#include "support/fake_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void copy(char *out, size_t cap, const char *text) { snprintf(out, cap, "%s", text ? text : "(null)"); }

static void add_route(struct engine *engine, const char *name, const char *via) {
  size_t i = engine->status.route_count++;
  engine->routes[i] =
      (struct route_status){.name = name, .via = via, .known = true, .metrics = &engine->route_metrics[i]};
}

static void add_plugin(struct engine *engine, const char *name, const char *role) {
  struct plugin_status *plugin = &engine->plugins[engine->status.plugin_count++];
  *plugin = (struct plugin_status){.up = true};
  copy(plugin->name, sizeof(plugin->name), name);
  copy(plugin->role, sizeof(plugin->role), role);
}

void fake_engine_init(struct engine *engine) {
  memset(engine, 0, sizeof(*engine));
  pthread_mutex_init(&engine->lock, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&engine->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  engine->stored = true;
  engine->callback_token = "right";
  copy(engine->status.instance, sizeof(engine->status.instance), "host-a/1234");
  engine->status.ready = true;
  engine->status.routes = engine->routes;
  engine->status.plugins = engine->plugins;
  engine->status.started_us = 1700000000000000;
  engine->status.db_now_us = 1700000100000000;
  add_route(engine, "orders.cancel", "bus");
  add_route(engine, "invoice.send", "rabbit");
  add_route(engine, "crm.push", "hooks");
  add_plugin(engine, "bus", "sink");
  add_plugin(engine, "bus#1", "source");
  engine->status.shard_count = 4;
  for (size_t i = 0; i < 4; i++)
    engine->status.shards[i] = (struct shard_status){.shard = (uint8_t)i, .epoch = 10 + i, .held = i < 2};
}

void fake_engine_destroy(struct engine *engine) {
  pthread_cond_destroy(&engine->changed);
  pthread_mutex_destroy(&engine->lock);
}

void fake_engine_hang(struct engine *engine, bool hang) {
  pthread_mutex_lock(&engine->lock);
  engine->hang = hang;
  pthread_cond_broadcast(&engine->changed);
  pthread_mutex_unlock(&engine->lock);
}

bool fake_engine_await_hanging(struct engine *engine, unsigned calls) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 10;
  pthread_mutex_lock(&engine->lock);
  int rc = 0;
  while (engine->waiting < calls && rc == 0)
    rc = pthread_cond_timedwait(&engine->changed, &engine->lock, &until);
  pthread_mutex_unlock(&engine->lock);
  return rc == 0;
}

/* With the lock held: stays here while the test wants it to. */
static void maybe_hang(struct engine *engine) {
  engine->waiting++;
  pthread_cond_broadcast(&engine->changed);
  while (engine->hang)
    pthread_cond_wait(&engine->changed, &engine->lock);
  engine->waiting--;
}

const char *engine_failed(const struct engine *engine) { return engine->failed; }

const struct engine_metrics *engine_metrics(const struct engine *engine) { return &engine->metrics; }

static void *duplicate(const void *from, size_t size) {
  void *copied = from && size ? malloc(size) : NULL;
  return copied ? memcpy(copied, from, size) : NULL;
}

/* Whoever has a snapshot may change it. */
bool engine_status(struct engine *engine, struct engine_status *out) {
  pthread_mutex_lock(&engine->lock);
  *out = engine->status;
  out->plugins = duplicate(engine->plugins, out->plugin_count * sizeof *out->plugins);
  out->routes = duplicate(engine->routes, out->route_count * sizeof *out->routes);
  for (size_t i = 0; out->routes && i < out->route_count; i++)
    out->routes[i].targets =
        duplicate(out->routes[i].targets, out->routes[i].target_count * sizeof *out->routes[i].targets);
  pthread_mutex_unlock(&engine->lock);
  return out->routes && out->plugins;
}

void engine_status_free(struct engine_status *status) {
  for (size_t i = 0; status->routes && i < status->route_count; i++)
    free(status->routes[i].targets);
  free(status->routes);
  free(status->plugins);
  memset(status, 0, sizeof(*status));
}

enum command_answer engine_command(struct engine *engine, const struct task_command *command, int64_t timeout_ms,
                                   struct err *err) {
  pthread_mutex_lock(&engine->lock);
  engine->commands++;
  engine->verb = command->verb;
  engine->due_us = command->due_us;
  copy(engine->id, sizeof(engine->id), command->id);
  copy(engine->actor, sizeof(engine->actor), command->actor);
  copy(engine->reason, sizeof(engine->reason), command->reason);
  maybe_hang(engine);
  enum command_answer answer = engine->answer;
  if (engine->trouble)
    err_set(err, 0, "%s", engine->trouble);
  pthread_mutex_unlock(&engine->lock);
  return answer;
}

bool engine_commands(struct engine *engine, const struct task_commands *commands, int64_t timeout_ms, struct err *err) {
  pthread_mutex_lock(&engine->lock);
  engine->commands++;
  engine->verb = commands->each.verb;
  engine->due_us = commands->each.due_us;
  copy(engine->id, sizeof(engine->id), commands->ids[commands->count - 1]);
  copy(engine->actor, sizeof(engine->actor), commands->each.actor);
  copy(engine->reason, sizeof(engine->reason), commands->filter);
  for (size_t i = 0; i < commands->count; i++)
    commands->answers[i] = (enum command_answer)i;
  if (engine->trouble)
    err_set(err, 0, "%s", engine->trouble);
  bool ran = !engine->trouble;
  pthread_mutex_unlock(&engine->lock);
  return ran;
}

bool engine_result(struct engine *engine, const struct result_offer *offer, int64_t timeout_ms,
                   struct store_result *result, struct err *err) {
  pthread_mutex_lock(&engine->lock);
  engine->results++;
  copy(engine->source, sizeof(engine->source), offer->source);
  copy(engine->origin, sizeof(engine->origin), offer->origin);
  copy(engine->road_id, sizeof(engine->road_id), offer->road.message_id ? offer->road.message_id : "");
  engine->road_attempt = offer->road.attempt;
  engine->replied = offer->replied;
  engine->body_len = offer->body.len;
  memcpy(engine->body, offer->body.data,
         offer->body.len < sizeof(engine->body) ? offer->body.len : sizeof(engine->body));
  maybe_hang(engine);
  result->fate = engine->fate;
  result->differs = engine->fate == RESULT_DUPLICATE;
  result->cancelled = engine->cancelled;
  result->record.status = engine->said;
  result->extended = engine->extended;
  copy(result->route, sizeof(result->route), "invoice.send");
  bool stored = engine->stored;
  if (!stored)
    err_set(err, 0, "%s", engine->trouble ? engine->trouble : "the database is away");
  pthread_mutex_unlock(&engine->lock);
  return stored;
}

bool engine_pause_route(struct engine *engine, const char *route, bool paused, const char *actor, const char *reason,
                        struct err *err) {
  pthread_mutex_lock(&engine->lock);
  engine->pauses++;
  engine->paused = paused;
  copy(engine->route, sizeof(engine->route), route);
  copy(engine->actor, sizeof(engine->actor), actor);
  copy(engine->reason, sizeof(engine->reason), reason);
  bool stored = engine->stored;
  if (!stored)
    err_set(err, 0, "the database is away");
  pthread_mutex_unlock(&engine->lock);
  return stored;
}

bool engine_callback_verify(const struct engine *engine, const char *message_id, const char *token,
                            struct record_road *road) {
  road->row = 17;
  return strcmp(token, engine->callback_token) == 0;
}
