/* SPDX-License-Identifier: MIT */
#include "core/keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"

enum {
  WATCH_EVERY_US = 1000 * 1000,
  HOUSEKEEP_EVERY_US = 600 * 1000 * 1000,
  EXPIRE_EVERY_US = 10 * 1000 * 1000,
  ROUTES_GRACE_US = 10 * 1000 * 1000,
  ROUTES_DIGEST = 17, /* bytes */
  LEASE_RENEWALS = 3, /* per lease */
  LEAVE_LIMIT_US = 5 * 1000 * 1000,
};

/* A lease is trusted a little shorter than it is: what was checked just before must still hold when it arrives. */
static int64_t safe_until(int64_t sent_us, int64_t lease_ms) { return sent_us + lease_ms * 1000 * 9 / 10; }

static bool ok(struct keeper *keeper, enum store_status status, const struct err *err) {
  if (status == STORE_OK)
    return true;
  count(&keeper->metrics->db_errors, 1);
  pthread_mutex_lock(&keeper->lock);
  log_repeated(&keeper->trouble, LOG_LEVEL_WARN, "DUEBOX-KEEPER-TROUBLE", "leases cannot be kept up: %s", err->text);
  pthread_mutex_unlock(&keeper->lock);
  return false;
}

static void lose(struct keeper *keeper, uint8_t shard) {
  log_error("DUEBOX-SHARD-LOST", "shard=%u another instance has taken its lease", shard);
  count(&keeper->metrics->leases_lost, 1);
  leases_lose(keeper->leases, shard);
  keeper->shards_changed(keeper->engine);
}

static bool renew(struct keeper *keeper, int64_t lease_ms) {
  struct shard_lease held[STORE_SHARDS_MAX];
  bool kept[STORE_SHARDS_MAX] = {false};
  size_t n = leases_owned(keeper->leases, held);
  int64_t sent = clock_mono_us();
  struct err err = {0};
  if (n == 0)
    return true;
  if (!ok(keeper, keeper->store->ops->renew(keeper->ss, keeper->me.id, held, n, lease_ms, kept, &err), &err))
    return false;
  for (size_t i = 0; i < n; i++) {
    if (kept[i])
      leases_renewed(keeper->leases, held[i].shard, safe_until(sent, lease_ms));
    else
      lose(keeper, held[i].shard);
  }
  return true;
}

static void give_back_quiet(struct keeper *keeper) {
  struct shard_lease held[STORE_SHARDS_MAX];
  size_t n = leases_owned(keeper->leases, held);
  struct err err = {0};
  for (size_t i = 0; i < n; i++) {
    if (!leases_may_give_back(keeper->leases, held[i].shard))
      continue;
    /* Ours no more before the statement runs: nothing may be read under a lease that somebody else may hold next. */
    leases_lose(keeper->leases, held[i].shard);
    if (ok(keeper, keeper->store->ops->give_back(keeper->ss, keeper->me.id, &held[i], &err), &err))
      log_info("DUEBOX-SHARD-GIVEN-BACK", "shard=%u", held[i].shard);
  }
}

static void take(struct keeper *keeper, const struct shard_row *row, int64_t lease_ms) {
  uint64_t epoch = 0;
  int64_t sent = clock_mono_us();
  struct err err = {0};
  if (!ok(keeper, keeper->store->ops->acquire(keeper->ss, keeper->me.id, row, lease_ms, &epoch, &err), &err) ||
      epoch == 0)
    return;
  leases_gain(keeper->leases, row->shard, epoch, safe_until(sent, lease_ms), row->unclean);
  if (row->unclean)
    count(&keeper->metrics->shards_taken, 1);
  log_info("DUEBOX-SHARD-ACQUIRED", "shard=%u epoch=%llu%s", row->shard, (unsigned long long)epoch,
           row->unclean ? " after an unclean end of its owner" : "");
}

static bool holds(const struct shard_lease *held, size_t count, uint8_t shard) {
  for (size_t i = 0; i < count; i++)
    if (held[i].shard == shard)
      return true;
  return false;
}

/* Begins to give back what we hold beyond our share, the idlest shards first. Nobody reads a shard that is leaving, so
 * a hand-over that long calls keep open is called off, and tried again when another shard may be idler. */
static void leave_beyond(struct keeper *keeper, size_t share) {
  int64_t now = clock_mono_us();
  uint8_t shard;
  leases_stay(keeper->leases, now, LEAVE_LIMIT_US);
  for (size_t staying = leases_staying(keeper->leases); staying > share; staying--)
    if (leases_idlest(keeper->leases, now, &shard))
      leases_leave(keeper->leases, shard, now);
}

/* Spreads the shards evenly over the instances that live: takes free ones up to our share, leaves those beyond it. */
static void balance(struct keeper *keeper, int64_t lease_ms) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t n = 0, mine = 0, unowned = 0;
  struct err err = {0};
  if (!ok(keeper, keeper->store->ops->shards(keeper->ss, rows, &n, &err), &err))
    return;
  struct shard_lease held[STORE_SHARDS_MAX];
  size_t before = leases_owned(keeper->leases, held);
  mine = before;
  size_t share = keeper->living ? (n + keeper->living - 1) / keeper->living : n;
  for (size_t i = 0; i < n; i++) {
    if (!rows[i].expired || holds(held, before, rows[i].shard))
      continue; /* one that says it is ours and is not: giving it back failed, and its lease has ended by now */
    if (mine < share) {
      take(keeper, &rows[i], lease_ms);
      mine = leases_owned(keeper->leases, held);
    } else {
      unowned++;
    }
  }
  leave_beyond(keeper, share);
  set_gauge(&keeper->metrics->shards_held, (int64_t)mine);
  pthread_mutex_lock(&keeper->lock);
  keeper->seen_shards = n > 0;
  keeper->alone = unowned == 0;
  pthread_mutex_unlock(&keeper->lock);
  if (mine != before || mine > share)
    keeper->shards_changed(keeper->engine);
}

/* FNV-1a over the names, which the configuration keeps sorted. */
static void digest_routes(const struct config *config, char out[ROUTES_DIGEST]) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < config->route_count; i++) {
    const char *c = config->routes[i].name;
    do /* the NUL too: it parts the names */
      hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    while (*c++);
  }
  snprintf(out, ROUTES_DIGEST, "%016llx", (unsigned long long)hash);
}

/* A daemon holds due tasks of routes that it does not have, in its own shards, whoever else has them. While daemons are
 * reloaded one after the other, their routes differ for a moment. */
static void judge_routes(struct keeper *keeper, uint32_t route_sets) {
  int64_t now = clock_mono_us();
  if (route_sets <= 1) {
    if (keeper->routes_differ_said)
      log_info("DUEBOX-ROUTES-SAME", "all daemons have the same routes again");
    keeper->routes_differ_us = 0;
    keeper->routes_differ_said = false;
  } else if (keeper->routes_differ_us == 0) {
    keeper->routes_differ_us = now;
  } else if (!keeper->routes_differ_said && now - keeper->routes_differ_us > ROUTES_GRACE_US) {
    log_error("DUEBOX-ROUTES-DIFFER",
              "the %u living daemons of this outbox have %u different sets of routes: tasks are "
              "held in the shards of those that do not know their route; give all daemons the same routes",
              keeper->living, route_sets);
    keeper->routes_differ_said = true;
  }
}

static bool beat(struct keeper *keeper, const struct config *config) {
  char routes[ROUTES_DIGEST];
  uint32_t route_sets = 0;
  struct err err = {0};
  digest_routes(config, routes);
  keeper->me.routes = routes;
  enum store_status status =
      keeper->store->ops->beat(keeper->ss, &keeper->me, config->engine.lease_ms, &keeper->living, &route_sets, &err);
  keeper->me.routes = NULL;
  if (!ok(keeper, status, &err))
    return false;
  judge_routes(keeper, route_sets);
  return true;
}

static void apply_route_settings(struct keeper *keeper) {
  const struct route_setting *settings = NULL;
  size_t n = 0;
  struct err err = {0};
  pthread_mutex_lock(&keeper->lock);
  struct pause_request *requests = keeper->requests;
  keeper->requests = NULL;
  pthread_mutex_unlock(&keeper->lock);
  while (requests) {
    struct pause_request *request = requests;
    requests = request->next;
    if (ok(keeper, keeper->store->ops->set_route(keeper->ss, &request->setting, request->actor, &err), &err)) {
      free(request);
      continue;
    }
    pthread_mutex_lock(&keeper->lock); /* again in a second */
    request->next = keeper->requests;
    keeper->requests = request;
    pthread_mutex_unlock(&keeper->lock);
  }
  if (ok(keeper, keeper->store->ops->route_settings(keeper->ss, &settings, &n, &err), &err))
    keeper->route_setting(keeper->engine, settings, n);
}

static void housekeep(struct keeper *keeper, struct store_session *ss, const struct config *config) {
  int64_t longest = config->engine.dead_retention_ms;
  for (size_t i = 0; i < config->route_count; i++)
    if (config->routes[i].history_ms > longest)
      longest = config->routes[i].history_ms;
  struct err err = {0};
  (void)ok(keeper, keeper->store->ops->housekeep(ss, longest, config->engine.attempts_retention_ms, &err), &err);
}

static void expire(struct keeper *keeper, struct store_session *ss, const struct config *config) {
  struct err err = {0};
  (void)ok(keeper, expiry_pass(&keeper->expiry, ss, config, &err), &err);
}

/* Sleeps until the time comes or the keeper is to stop. True: stop. */
static bool sleep_until(struct keeper *keeper, int64_t deadline_us) {
  struct timespec until = {.tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000};
  pthread_mutex_lock(&keeper->lock);
  while (!keeper->stopping && clock_mono_us() < deadline_us)
    pthread_cond_timedwait(&keeper->woken, &keeper->lock, &until);
  bool stop = keeper->stopping;
  pthread_mutex_unlock(&keeper->lock);
  return stop;
}

static void *keep_house(void *arg) {
  struct keeper *keeper = arg;
  struct store_session *ss = NULL;
  struct err err = {0};
  pthread_setname_np(pthread_self(), "housekeeper");
  while (keeper->store->ops->open(keeper->store->self, "housekeeper", &ss, &err) == STORE_REFUSED)
    if (sleep_until(keeper, clock_mono_us() + HOUSEKEEP_EVERY_US)) /* the keeper has said why */
      return NULL;
  int64_t housekeep_at = 0;
  keeper->expiry = (struct expiry){.store = keeper->store,
                                   .leases = keeper->leases,
                                   .route_metrics = keeper->route_metrics,
                                   .engine = keeper->engine};
  do {
    struct config_ref *config = keeper->config(keeper->engine);
    if (clock_mono_us() >= housekeep_at) {
      housekeep(keeper, ss, config->config);
      housekeep_at = clock_mono_us() + HOUSEKEEP_EVERY_US;
    }
    expire(keeper, ss, config->config);
    config_ref_drop(config);
  } while (!sleep_until(keeper, clock_mono_us() + EXPIRE_EVERY_US));
  keeper->store->ops->close(&ss);
  return NULL;
}

static void say_goodbye(struct keeper *keeper) {
  struct shard_lease held[STORE_SHARDS_MAX];
  size_t n = leases_owned(keeper->leases, held);
  struct err err = {0};
  for (size_t i = 0; i < n; i++) {
    leases_lose(keeper->leases, held[i].shard);
    if (!ok(keeper, keeper->store->ops->give_back(keeper->ss, keeper->me.id, &held[i], &err), &err))
      break; /* the leases end by themselves */
  }
  (void)ok(keeper, keeper->store->ops->leave(keeper->ss, keeper->me.id, &err), &err);
}

static void *run(void *arg) {
  struct keeper *keeper = arg;
  pthread_setname_np(pthread_self(), "keeper");
  struct err err = {0};
  int64_t beat_at = 0;
  while (keeper->store->ops->open(keeper->store->self, "keeper", &keeper->ss, &err) == STORE_REFUSED) {
    pthread_mutex_lock(&keeper->lock);
    log_repeated(&keeper->trouble, LOG_LEVEL_ERROR, "DUEBOX-DB-REFUSED", "keeper: %s", err.text);
    pthread_mutex_unlock(&keeper->lock);
    if (sleep_until(keeper, clock_mono_us() + 1000 * 1000))
      return NULL;
  }
  do {
    struct config_ref *config = keeper->config(keeper->engine);
    int64_t lease_ms = config->config->engine.lease_ms, now = clock_mono_us();
    if (now >= beat_at) {
      if (beat(keeper, config->config) && renew(keeper, lease_ms))
        balance(keeper, lease_ms);
      int64_t third = lease_ms * 1000 / LEASE_RENEWALS;
      beat_at = now + (third < WATCH_EVERY_US ? third : WATCH_EVERY_US);
    }
    give_back_quiet(keeper);
    apply_route_settings(keeper);
    keeper->watch(keeper->engine);
    config_ref_drop(config);
    now = clock_mono_us();
    if (beat_at < now)
      beat_at = now;
    if (sleep_until(keeper, beat_at < now + WATCH_EVERY_US ? beat_at : now + WATCH_EVERY_US))
      break;
  } while (true);
  say_goodbye(keeper);
  keeper->store->ops->close(&keeper->ss);
  return NULL;
}

static void stop_thread(struct keeper *keeper) {
  pthread_mutex_lock(&keeper->lock);
  keeper->stopping = true;
  pthread_cond_broadcast(&keeper->woken);
  pthread_mutex_unlock(&keeper->lock);
  pthread_join(keeper->thread, NULL);
}

bool keeper_start(struct keeper *keeper, struct err *err) {
  pthread_mutex_init(&keeper->lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&keeper->woken, &attr);
  pthread_condattr_destroy(&attr);
  if (pthread_create(&keeper->thread, NULL, run, keeper) == 0) {
    if (pthread_create(&keeper->housekeeper, NULL, keep_house, keeper) == 0)
      return true;
    stop_thread(keeper);
  }
  return err_set(err, 0, "no thread for the keeper of leases: the process limit is reached");
}

void keeper_stop(struct keeper *keeper) {
  stop_thread(keeper);
  pthread_join(keeper->housekeeper, NULL);
  while (keeper->requests) {
    struct pause_request *request = keeper->requests;
    keeper->requests = request->next;
    free(request);
  }
  pthread_cond_destroy(&keeper->woken);
  pthread_mutex_destroy(&keeper->lock);
}

void keeper_pause_route(struct keeper *keeper, const char *route, const char *actor, const char *reason) {
  struct pause_request *request = calloc(1, sizeof *request);
  if (!request) {
    log_error("DUEBOX-MEMORY", "no memory to pause route %s in the table", route);
    return;
  }
  snprintf(request->setting.route, sizeof request->setting.route, "%s", route);
  snprintf(request->setting.reason, sizeof request->setting.reason, "%s", reason);
  snprintf(request->actor, sizeof request->actor, "%s", actor);
  request->setting.paused = true;
  pthread_mutex_lock(&keeper->lock);
  request->next = keeper->requests;
  keeper->requests = request;
  pthread_mutex_unlock(&keeper->lock);
}

bool keeper_ready(struct keeper *keeper) {
  pthread_mutex_lock(&keeper->lock);
  bool ready = keeper->seen_shards && keeper->alone;
  pthread_mutex_unlock(&keeper->lock);
  return ready;
}
