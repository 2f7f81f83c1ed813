/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker.h"
#include "core/base/arena.h"
#include "memory.h"
#include "store_double.h"

enum { LAST_MOMENT_US = 100 * 1000 };

static const struct broker_topic one_topic, topics = {.topic = "topic.{task_key}"};

static void add_routes(struct arena *arena, const struct profile *profile, struct config *config) {
  config->routes = arena_array(arena, profile->route_count, sizeof *config->routes);
  for (size_t i = 0; i < profile->route_count; i++) {
    if (profile->routes[i].absent)
      continue;
    struct route_config *route = &config->routes[config->route_count++];
    *route = (struct route_config){
        .name = profile->routes[i].name,
        .plugin = &config->plugins[profile->routes[i].apart],
        .options = profile->routes[i].targets ? &topics : &one_topic,
        .many_targets = profile->routes[i].targets,
        .claim = profile->routes[i].claim,
        .result = profile->routes[i].result,
        .order = profile->routes[i].order,
        .timeout_ms = profile->routes[i].timeout_ms,
        .timeout_max_ms = 5000, /* some rows ask for more than their route, some for less */
        .retry = {.backoff_ms = profile->routes[i].backoff_ms,
                  .multiplier = 2,
                  .max_ms = profile->routes[i].backoff_max_ms,
                  .jitter = 0.2,
                  .max_attempts = profile->routes[i].max_attempts},
        .give_up_ms = profile->routes[i].give_up_ms,
        .concurrency = profile->routes[i].concurrency,
        .inflight_bytes = profile->inflight_bytes,
        .history_ms = profile->routes[i].history_ms,
        .every_attempt = profile->routes[i].every_attempt,
        .max_checkpoint = 4096,
        .breaker = profile->routes[i].breaker,
        .rate = profile->routes[i].rate,
    };
    if (profile->routes[i].result == RESULT_EXPECTED) {
      route->reply_to = "results";
      route->answer_to = config_answer_to(config, "bus#1");
    }
    config->plugins[profile->routes[i].apart].max_inflight += (uint32_t)profile->routes[i].concurrency;
  }
  for (size_t i = 0; i < config->plugin_count; i++)
    config->plugins[i].capacity = PROFILE_ROUTES * PROFILE_CONCURRENCY;
}

static const struct broker_source results = {.topic = "results"};

static bool any_apart(const struct profile *profile) {
  for (size_t i = 0; i < profile->route_count; i++)
    if (profile->routes[i].apart)
      return true;
  return false;
}

static struct config *make_config(const struct process *process) {
  const struct profile *profile = process->profile;
  struct arena *arena = arena_new();
  struct config *config = arena_alloc(arena, sizeof *config);
  config->arena = arena;
  config->path = "sim";
  config->database = (struct database_config){.name = "sim",
                                              .table = "outbox",
                                              .outbox = "sim.outbox",
                                              .user = "sim",
                                              .password = "",
                                              .host = "sim",
                                              .wake = profile->wake};
  config->plugins = arena_array(arena, 2, sizeof *config->plugins);
  config->plugin_count = any_apart(profile) ? 2 : 1;
  config->plugins[0] = (struct plugin_config){.name = "bus", .module = &broker_plugin, .options = ""};
  config->plugins[1] = (struct plugin_config){.name = APART, .module = &broker_plugin, .options = ""};
  if (profile->source) {
    config->sources = arena_array(arena, 1, sizeof *config->sources);
    config->source_count = 1;
    config->sources[0] = (struct source_config){.name = "bus#1", .plugin = config->plugins, .options = &results};
  }
  add_routes(arena, profile, config);
  config->engine = (struct engine_config){
      .instance = process->host,
      .lease_ms = profile->lease_ms,
      .poll_min_ms = profile->poll_min_ms,
      .poll_max_ms = profile->poll_max_ms,
      .batch = profile->batch,
      .max_payload = profile->large ? PAYLOAD_LARGE : PAYLOAD_MAX,
      .max_record = 1 << 18,
      .max_checkpoint = 4096,
      .settle_rows = profile->settle_rows,
      .settle_delay_ms = profile->settle_delay_ms,
      .hang_ms = profile->hang_ms,
      .drain_timeout_ms = profile->drain_timeout_ms,
      .dead_retention_ms = INT64_C(30) * 86400 * 1000,
      .attempts_retention_ms = INT64_C(7) * 86400 * 1000,
      .max_recoveries = profile->max_recoveries,
  };
  return config;
}

static bool asked(void *arg) { return ((struct process *)arg)->wish != PROCESS_GO_ON; }

static void serve(struct process *process, struct engine *engine) {
  struct err err = {0};
  for (;;) {
    /* Once a second, as core/daemon.c does: an engine that has failed ends the process. */
    (void)world_wait(asked, process, world_now_us() + 1000 * 1000);
    enum process_wish wish = process->wish;
    process->wish = PROCESS_GO_ON;
    if (wish == PROCESS_END || engine_failed(engine))
      return;
    if (wish == PROCESS_RELOAD) {
      struct config *next = make_config(process);
      if (!engine_reload(engine, next, &err))
        world_fail("a reload was refused: %s", err.text);
      process->reloads++;
      world_trace("reloaded, %zu routes", next->route_count);
    }
  }
}

struct command {
  struct process *process;
  struct engine *engine;
  void (*run)(struct engine *engine);
};

static void run_command(void *arg) {
  struct command command = *(struct command *)arg;
  free(arg);
  command.run(command.engine);
  command.process->commands--;
}

bool process_command(struct process *process, void (*run)(struct engine *engine)) {
  if (!process->engine)
    return false;
  unsigned before = memory_belongs_to(process->machine.number);
  struct command *command = calloc(1, sizeof *command);
  if (!command)
    world_fail("no memory for a command");
  *command = (struct command){process, process->engine, run};
  process->commands++;
  world_spawn(&process->machine, "admin", run_command, command);
  (void)memory_belongs_to(before);
  return true;
}

static bool no_command(void *arg) { return ((struct process *)arg)->commands == 0; }

/* Nothing of it may be left, but for what a plugin may still use. */
static void judge_memory(const struct process *process) {
  if (memory_spoilt())
    world_fail("P6: %s ended, and somebody has written into memory that was freed", process->host);
  size_t left = memory_count(process->machine.number);
  if (left > 0 && !broker_keeps(process->machine.number))
    world_fail("P6: %s ended, and has not freed %zu blocks of memory", process->host, left);
}

/* As core/daemon.c does it. */
static void run(void *arg) {
  struct process *process = arg;
  struct engine *engine;
  struct err err = {0};
  world_trace("process starts");
  struct store *store = store_double_new(process->db, &process->machine);
  if (!engine_start(store, make_config(process), &engine, &err))
    world_fail("a daemon cannot start: %s", err.text);
  if (!engine_join(engine, &err))
    world_fail("a daemon cannot join: %s", err.text);
  process->engine = engine;
  serve(process, engine);
  if (process->drain)
    engine_drain(engine, process->profile->drain_timeout_ms);
  process->engine = NULL;
  (void)world_wait(no_command, process, INT64_MAX);
  engine_stop(engine);
  engine_free(&engine);
  store_double_free(&store);
  world_sleep(LAST_MOMENT_US); /* what hangs in a plugin may come back as long as the process is there */
  judge_memory(process);
  world_exit(); /* threads may hang in a plugin */
  process->running = false;
  world_trace("process ends");
}

void process_start(struct process *process) {
  if (process->running)
    world_fail("%s is started twice", process->host);
  memory_free_all(process->machine.number); /* what the former process had left to threads that hung */
  process->machine.dead = false;
  process->engine = NULL;
  process->commands = 0;
  process->wish = PROCESS_GO_ON;
  process->running = true;
  process->starts++;
  world_spawn(&process->machine, "main", run, process);
}

void process_kill(struct process *process) {
  world_kill(&process->machine);
  process->engine = NULL;
  process->running = false;
}

void process_ask(struct process *process, enum process_wish wish) { process->wish = wish; }
