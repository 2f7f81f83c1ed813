/* SPDX-License-Identifier: MIT
 *
 * tests/support/admin_show.c - the operator's page on made-up, moving figures: admin_show <port> [calm].
 *
 * For looking at the page while working on it. Runs until it is interrupted.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin/admin.h"
#include "core/base/clock.h"
#include "support/fake_engine.h"

static volatile sig_atomic_t ended;
static void end(int sig) { ended = sig; }

static bool reload(void *ctx, struct err *err) { return true; }

static void trouble(struct engine *engine) {
  engine->routes[1].suspended = true;
  snprintf(engine->routes[1].reason, sizeof(engine->routes[1].reason), "rabbit: connection refused (127.0.0.1:5672)");
  engine->routes[3].known = false;
  engine->routes[3].via = NULL;
  engine->routes[4].paused = true;
  snprintf(engine->routes[4].pause_reason, sizeof(engine->routes[4].pause_reason),
           "partner migrates its API until 14:00");
  engine->plugins[2].up = false;
  snprintf(engine->plugins[2].text, sizeof(engine->plugins[2].text), "connection refused (127.0.0.1:5672)");
  set_gauge(&engine->route_metrics[1].oldest_due_us, clock_wall_us() - 754000000);
}

static void prepare(struct engine *engine, bool calm) {
  static const char *const names[] = {"ops.alert", "<script>alert(1)</script>", "partner.settlement.nightly",
                                      "search.reindex", "mail.welcome"};
  static const char *const vias[] = {"hooks", "bus", "hooks", "bus", "rabbit"};
  for (size_t i = 0; i < 5; i++)
    engine->routes[3 + i] = (struct route_status){
        .name = names[i], .via = vias[i], .known = true, .metrics = &engine->route_metrics[3 + i]};
  engine->status.route_count = FAKE_ROUTES;
  snprintf(engine->plugins[2].name, sizeof(engine->plugins[2].name), "rabbit");
  snprintf(engine->plugins[2].role, sizeof(engine->plugins[2].role), "sink");
  snprintf(engine->plugins[3].name, sizeof(engine->plugins[3].name), "hooks");
  snprintf(engine->plugins[3].role, sizeof(engine->plugins[3].role), "sink");
  snprintf(engine->plugins[0].text, sizeof(engine->plugins[0].text), "3 brokers");
  engine->plugins[2].up = engine->plugins[3].up = true;
  engine->status.plugin_count = FAKE_PLUGINS;
  engine->status.shard_count = 16;
  for (size_t i = 0; i < 16; i++)
    engine->status.shards[i] =
        (struct shard_status){.shard = (uint8_t)i, .epoch = 40 + i, .held = i < 9, .leaving = i == 8};
  engine->status.db_up = true;
  set_gauge(&engine->metrics.db_round_trip_us, 340);
  set_gauge(&engine->metrics.db_clock_offset_us, -1250);
  engine->status.started_us = clock_wall_us() - 9 * 3600 * 1000000LL;
  if (!calm)
    trouble(engine);
}

/* A hundred milliseconds of a busy life. */
static void live(struct engine *engine) {
  pthread_mutex_lock(&engine->lock);
  engine->status.db_now_us = clock_wall_us();
  for (size_t r = 0; r < engine->status.route_count; r++) {
    struct route_metrics *metrics = &engine->route_metrics[r];
    bool flows = engine->routes[r].known && !engine->routes[r].paused && !engine->routes[r].suspended;
    for (int i = 0; flows && i < (int)(rand() % (1 << r)); i++) {
      count(&metrics->events[rand() % 50 ? EVENT_DONE : EVENT_RETRY], 1);
      histogram_add(&metrics->lateness, 200 + rand() % 600 + (rand() % 60 == 0) * 9000);
    }
    count(&metrics->events[EVENT_DEAD], flows && rand() % 900 == 0);
    set_gauge(&metrics->inflight, flows ? rand() % 20 : 0);
    engine->routes[r].next_due_us = engine->status.db_now_us + (int64_t)(r * r * r) * 47000000 + 2000000;
  }
  for (size_t i = 0; i < engine->status.plugin_count; i++) {
    engine->plugins[i].last_poll_age_us = rand() % 9000;
    engine->plugins[i].inflight = engine->plugins[i].up ? (uint32_t)(rand() % 30) : 0;
  }
  count(&engine->metrics.statements, (uint64_t)(10 + rand() % 5));
  pthread_mutex_unlock(&engine->lock);
}

int main(int argc, char **argv) {
  static struct engine engine;
  struct admin *admin;
  struct err err = {0};
  if (argc < 2)
    return 64;
  struct admin_config config = {
      .host = "127.0.0.1", .port = (uint16_t)atoi(argv[1]), .token = "0123456789abcdef0123456789abcdef"};
  struct admin_hooks hooks = {.reload = reload};
  fake_engine_init(&engine);
  prepare(&engine, argc > 2 && strcmp(argv[2], "calm") == 0);
  signal(SIGINT, end);
  signal(SIGTERM, end);
  if (!admin_start(&engine, &config, &hooks, &admin, &err)) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  while (!ended) {
    live(&engine);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  }
  admin_stop(&admin);
  fake_engine_destroy(&engine);
  return 0;
}
