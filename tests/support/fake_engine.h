/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_engine.h - core/engine.h without an engine: says what a test has set, remembers what it was asked.
 *
 * Set fields before requests are made, or under `lock`. With `hang` set, commands and results wait until it is cleared
 * and `changed` is signalled, so that a test can hold a worker.
 */
#ifndef TESTS_SUPPORT_FAKE_ENGINE_H
#define TESTS_SUPPORT_FAKE_ENGINE_H

#include <pthread.h>

#include "core/engine.h"

enum { FAKE_ROUTES = 8, FAKE_PLUGINS = 4 };

struct engine {
  pthread_mutex_t lock;
  pthread_cond_t changed;

  /* What it says. */
  struct engine_metrics metrics;
  struct engine_status status; /* routes and plugins point into the arrays below */
  struct route_status routes[FAKE_ROUTES];
  struct route_metrics route_metrics[FAKE_ROUTES];
  struct plugin_status plugins[FAKE_PLUGINS];
  const char *failed;
  enum command_answer answer;
  const char *trouble; /* text of err; NULL = none */
  bool stored;         /* engine_result and engine_pause_route succeed */
  enum result_fate fate;
  bool cancelled;
  enum result_status said;
  bool extended;
  const char *callback_token; /* the only one that is right, for any message */
  bool hang;

  /* What it was asked. */
  unsigned commands, results, pauses, waiting;
  enum intervention verb;
  char id[256], actor[256], reason[512], route[256], source[64], origin[256], body[4096];
  size_t body_len;
  char road_id[128]; /* what the offer of a result says of its task */
  uint32_t road_attempt;
  bool replied;
  int64_t due_us;
  bool paused;
  uint32_t attempt;
};

/* An engine that is ready and says yes to everything, with three routes and two plugins. */
void fake_engine_init(struct engine *engine);
void fake_engine_destroy(struct engine *engine);
void fake_engine_hang(struct engine *engine, bool hang);
/* Waits until so many calls hang; false after ten seconds. */
bool fake_engine_await_hanging(struct engine *engine, unsigned calls);

#endif
