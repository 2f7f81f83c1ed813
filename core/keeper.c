/* SPDX-License-Identifier: MIT */
#include "core/keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/keeper_internal.h"

enum {
  WATCH_EVERY_US = 1000 * 1000,
  SEEN_WITHIN_US = 1250 * 1000, /* others see in a round of theirs that a daemon ends */
  ROUTES_GRACE_US = 10 * 1000 * 1000,
  ROUTES_DIGEST = 17, /* bytes */
  NAMESAKE_EVERY_US = 5 * 1000 * 1000,
  LEAVE_LIMIT_US = 5 * 1000 * 1000,
  WANTS_EVERY_US = 50 * 1000, /* how soon a shard that another daemon gives back is met: nobody reads it until then */
};

static const struct {
  const char *id, *text;
} troubles[KEEPER_WORKS] = {
    [KEEPER_LEASES] = {"DUEBOX-LEASE-TROUBLE", "leases cannot be renewed"},
    [KEEPER_SHARDS] = {"DUEBOX-SHARD-TROUBLE", "shards cannot be shared out among the daemons"},
    [KEEPER_ROUTES] = {"DUEBOX-ROUTE-SETTINGS-TROUBLE", "what operators set for routes cannot be read or written"},
    [KEEPER_HOUSE] = {"DUEBOX-HOUSEKEEPING-TROUBLE", "what is not done is tried again"},
    [KEEPER_ROW_IDS] = {"DUEBOX-ROW-IDS-TROUBLE", "row ids cannot be checked or put right"},
    [KEEPER_EXPIRY] = {"DUEBOX-EXPIRY-TROUBLE", "tasks whose time is over cannot be ended"},
};

bool keeper_ok(struct keeper *keeper, enum keeper_work work, enum store_status status, const struct err *err) {
  if (status == STORE_OK)
    return true;
  count(&keeper->metrics->db_errors, 1);
  mutex_lock(&keeper->lock);
  log_repeated(&keeper->trouble[work], LOG_LEVEL_WARN, troubles[work].id, "%s: %s", troubles[work].text, err->text);
  mutex_unlock(&keeper->lock);
  return false;
}

bool keeper_sleep(struct keeper *keeper, int64_t deadline_us) {
  mutex_lock(&keeper->lock);
  while (!keeper->stopping && clock_mono_us() < deadline_us)
    (void)cond_wait_until(&keeper->woken, &keeper->lock, deadline_us);
  bool stop = keeper->stopping;
  mutex_unlock(&keeper->lock);
  return stop;
}

int64_t keeper_lease_ms(struct keeper *keeper) {
  struct config_ref *config = keeper->config(keeper->engine);
  int64_t lease_ms = config->config->engine.lease_ms;
  config_ref_drop(config);
  return lease_ms;
}

bool keeper_open(struct keeper *keeper, const char *name, int64_t lease_ms, struct store_session **ss) {
  struct err err = {0};
  while (keeper->store->ops->open(keeper->store->self, name, lease_ms, ss, &err) == STORE_REFUSED) {
    mutex_lock(&keeper->lock);
    log_repeated(&keeper->refused, LOG_LEVEL_ERROR, "DUEBOX-DB-REFUSED", "keeper: %s", err.text);
    mutex_unlock(&keeper->lock);
    if (keeper_sleep(keeper, clock_mono_us() + WATCH_EVERY_US))
      return false;
  }
  return true;
}

int64_t keeper_safe_us(int64_t lease_ms) { return lease_ms * 1000 * 9 / 10; }

int64_t keeper_round_us(int64_t lease_ms) {
  enum { ROUNDS = 3 }; /* per lease */
  return earlier(lease_ms * 1000 / ROUNDS, WATCH_EVERY_US);
}

static void give_back_quiet(struct keeper *keeper) {
  struct shard_lease held[STORE_SHARDS_MAX];
  size_t n = leases_owned(keeper->leases, held);
  struct err err = {0};
  for (size_t i = 0; i < n; i++) {
    bool left;
    if (leases_give_back(keeper->leases, held[i], &left) &&
        keeper_ok(keeper, KEEPER_SHARDS, keeper->store->ops->give_back(keeper->ss, keeper->me.id, &held[i], left, &err),
                  &err))
      log_info("DUEBOX-SHARD-GIVEN-BACK", "shard=%u", held[i].shard);
  }
}

/* Whose lease has ended may stand still in the middle of a transaction, and its locks with it. It may also live, and
 * only have failed to renew: whether it does shows at the latest when its last sign of life has run out. */
static void note_silent(struct keeper *keeper, const struct shard_row *row, int64_t lease_ms) {
  if (!row->expired || !row->unclean || !row->owner[0] || strcmp(row->owner, keeper->me.id) == 0)
    return;
  struct keeper_silent *place = &keeper->silent[0];
  for (size_t i = 0; i < KEEPER_SILENT; i++) {
    struct keeper_silent *silent = &keeper->silent[i];
    if (strcmp(silent->id, row->owner) == 0)
      return;
    if (!silent->id[0])
      place = silent;
  }
  snprintf(place->id, sizeof place->id, "%s", row->owner);
  place->until_us = clock_mono_us() + lease_ms * 1000 * 2;
}

static void say_ended(const char *instance, const struct store_silent *silent) {
  if (silent->ended)
    log_info("DUEBOX-SESSIONS-ENDED", "instance=%s is silent: %u sessions that it had left open were ended", instance,
             silent->ended);
  if (silent->refused)
    log_warn("DUEBOX-SESSIONS-LEFT",
             "instance=%s is silent, and this user may not end %u sessions that it has left open: their locks last "
             "until the server ends them, for some seconds; CONNECTION ADMIN is the right to do so",
             instance, silent->refused);
}

static void end_silent(struct keeper *keeper) {
  for (size_t i = 0; i < KEEPER_SILENT; i++) {
    struct keeper_silent *it = &keeper->silent[i];
    struct store_silent silent = {0};
    struct err err = {0};
    if (!it->id[0])
      continue;
    enum store_status status = keeper->store->ops->end_silent(keeper->ss, it->id, &silent, &err);
    say_ended(it->id, &silent);
    if ((keeper_ok(keeper, KEEPER_SHARDS, status, &err) && silent.silent) || clock_mono_us() > it->until_us)
      it->id[0] = '\0';
  }
}

static void take(struct keeper *keeper, const struct shard_row *row, int64_t lease_ms) {
  uint64_t epoch = 0;
  struct instant sent = clock_instant();
  struct err err = {0};
  enum store_status status = keeper->store->ops->acquire(keeper->ss, keeper->me.id, row, lease_ms, &epoch, &err);
  if (status == STORE_BUSY || !keeper_ok(keeper, KEEPER_SHARDS, status, &err) || epoch == 0)
    return;
  leases_gain(keeper->leases, row->shard, epoch, sent, keeper_safe_us(lease_ms), row->unclean);
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

/* Begins to give back what we hold beyond our share, the idlest shards first. Slow routes do not read a shard that is
 * leaving, so a hand-over that their calls keep open is called off, and tried again when another shard may be idler. */
static void leave_beyond(struct keeper *keeper, size_t share) {
  int64_t now = clock_mono_us();
  uint8_t shard;
  if (atomic_load(&keeper->draining)) {
    leases_leave_all(keeper->leases, now, atomic_load(&keeper->others) ? SEEN_WITHIN_US : 0);
    return;
  }
  leases_stay(keeper->leases, now, LEAVE_LIMIT_US);
  for (size_t staying = leases_staying(keeper->leases); staying > share; staying--)
    if (leases_idlest(keeper->leases, now, &shard))
      leases_leave(keeper->leases, shard, now);
}

/* Rows that somebody has deleted; without them nobody would read those shards ever again. */
static void remake(struct keeper *keeper, uint64_t gone, int64_t lease_ms) {
  struct err err = {0};
  if (!gone ||
      !keeper_ok(keeper, KEEPER_SHARDS, keeper->store->ops->remake_shards(keeper->ss, gone, lease_ms, &err), &err))
    return;
  for (unsigned shard = 0; shard < STORE_SHARDS_MAX; shard++)
    if (gone & shard_bit((uint8_t)shard))
      log_warn(
          "DUEBOX-SHARD-REMADE",
          "shard=%u its row had been deleted from the table of shards, and is there again; whoever held it may still "
          "send, so nobody takes it for %lld ms",
          shard, (long long)(shard == SHARD_BOUND ? 0 : lease_ms));
}

/* Whether another daemon is to give us a shard: it has more than its share, or all of them together have more than is
 * theirs. */
static bool wants(const struct keeper *keeper, const struct shard_row *rows, size_t n, size_t mine, size_t share) {
  bool more = keeper->living && n - mine > (keeper->living - 1) * share;
  for (size_t i = 0; i < n && !more; i++) {
    size_t theirs = 0;
    for (size_t j = 0; j < n; j++)
      theirs += strcmp(rows[j].owner, rows[i].owner) == 0;
    more = rows[i].owner[0] && strcmp(rows[i].owner, keeper->me.id) != 0 && theirs > share;
  }
  return mine < share && more;
}

static size_t bits(uint64_t set) {
  size_t n = 0;
  for (; set; set &= set - 1)
    n++;
  return n;
}

/* What was seen last says less and less about who lives. */
static void note_read(struct keeper *keeper, bool read) {
  mutex_lock(&keeper->lock);
  if (read)
    keeper->unread_since_us = 0;
  else if (!keeper->unread_since_us)
    keeper->unread_since_us = clock_mono_us();
  mutex_unlock(&keeper->lock);
}

/* Spreads the shards evenly over the instances that live: takes free ones up to our share, leaves those beyond it. */
static void balance(struct keeper *keeper, int64_t lease_ms, bool round) {
  keeper->wants_shards = false;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t n = 0, mine = 0;
  uint64_t gone = 0, unowned;
  struct err err = {0};
  bool read = keeper_ok(keeper, KEEPER_SHARDS, keeper->store->ops->shards(keeper->ss, rows, &n, &gone, &err), &err);
  note_read(keeper, read);
  if (!read)
    return;
  remake(keeper, gone, lease_ms);
  unowned = gone;
  for (size_t i = 0; i < n; i++)
    note_silent(keeper, &rows[i], lease_ms);
  if (round)
    end_silent(keeper);
  struct shard_lease held[STORE_SHARDS_MAX];
  size_t before = leases_owned(keeper->leases, held);
  mine = before;
  size_t share = atomic_load(&keeper->draining) ? 0 : keeper->living ? (n + keeper->living - 1) / keeper->living : n;
  for (size_t i = 0; i < n; i++) {
    if (!rows[i].expired && !rows[i].owner[0]) /* remade a moment ago */
      unowned |= shard_bit(rows[i].shard);
    if (!rows[i].expired || holds(held, before, rows[i].shard))
      continue; /* one that says it is ours and is not: giving it back failed, and its lease has ended by now */
    if (mine < share) {
      size_t had = mine;
      take(keeper, &rows[i], lease_ms);
      mine = leases_owned(keeper->leases, held);
      unowned |= mine == had ? shard_bit(rows[i].shard) : 0;
    } else {
      unowned |= shard_bit(rows[i].shard);
    }
  }
  leave_beyond(keeper, share);
  keeper->wants_shards = wants(keeper, rows, n, mine, share);
  set_gauge(&keeper->metrics->shards_held, (int64_t)mine);
  set_gauge(&keeper->metrics->shards_unowned, (int64_t)bits(unowned));
  mutex_lock(&keeper->lock);
  keeper->seen_shards = n > 0;
  keeper->unowned = unowned;
  mutex_unlock(&keeper->lock);
  if (mine != before || mine > share)
    keeper->shards_changed(keeper->engine);
}

/* The configuration keeps the names sorted. */
static void digest_routes(const struct config *config, char out[ROUTES_DIGEST]) {
  uint64_t hash = HASH_EMPTY;
  for (size_t i = 0; i < config->route_count; i++)
    hash = hash_text(hash, config->routes[i].name);
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

static void say_name(struct keeper *keeper, bool ours) {
  if (!ours && !keeper->name_awaited)
    log_info(
        "DUEBOX-NAME-AWAITED",
        "the name %s is held by another daemon of this outbox, or was by one that has crashed: what is bound to it "
        "(target_host) is run from here when that one has ended, or its lease has",
        keeper->me.host);
  else if (ours && keeper->name_awaited)
    log_info("DUEBOX-NAME-TAKEN", "the name %s is ours now: what is bound to it is run from here", keeper->me.host);
  keeper->name_awaited = !ours;
}

/* beat_at: before the sign of life, by which others see whether we live. Where somebody else had our name for a while,
 * and we were stopped meanwhile, what is known of bound tasks is out of date. */
static void hold_name(struct keeper *keeper, struct instant beat_at, int64_t lease_ms) {
  struct name_lease lease;
  struct err err = {0};
  if (!keeper_ok(keeper, KEEPER_SHARDS,
                 keeper->store->ops->lease_name(keeper->ss, &keeper->me, keeper->me.host, lease_ms, &lease, &err),
                 &err))
    return;
  const int64_t since_us = lease.since_us;
  bool ours = since_us && (!keeper->name_since_us || keeper->name_since_us == since_us);
  keeper->name_since_us = since_us;
  say_name(keeper, since_us != 0);
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  bool open = leases_hold_name(keeper->leases, ours);
  if (open)
    leases_renewed(keeper->leases, bound, beat_at, keeper_safe_us(lease_ms));
  if (open != keeper->name_open)
    keeper->shards_changed(keeper->engine);
  keeper->name_open = open;
}

/* Said when the same one is found twice: where a daemon is replaced by a new one, both may run for a moment. */
static void look_for_namesake(struct keeper *keeper) {
  struct store_namesake found;
  struct err err = {0};
  int64_t now = clock_mono_us();
  if (now < keeper->namesake_at_us)
    return;
  keeper->namesake_at_us = now + NAMESAKE_EVERY_US;
  if (!keeper_ok(keeper, KEEPER_SHARDS, keeper->store->ops->namesake(keeper->ss, keeper->me.id, &found, &err), &err))
    return;
  bool same = strcmp(keeper->namesake, found.id) == 0;
  if (same && found.id[0] && !keeper->namesake_said) {
    log_warn(
        "DUEBOX-NAME-TWICE",
        "another daemon of this outbox has the name %s, too: instance=%s pid=%lld url=%s; %s one runs the tasks that "
        "are bound to it (target_host), and the other stands by for them. Give each an engine.instance of its own, or "
        "end one",
        keeper->me.host, found.id, (long long)found.pid, found.admin_url[0] ? found.admin_url : "none",
        keeper->name_since_us ? "this" : "that");
    keeper->namesake_said = true;
  } else if (!found.id[0] && keeper->namesake_said) {
    log_info("DUEBOX-NAME-ONCE", "no other daemon of this outbox has the name %s any more", keeper->me.host);
    keeper->namesake_said = false;
  }
  memcpy(keeper->namesake, found.id, sizeof keeper->namesake);
}

/* A daemon that reads an entry of results says so to those that stand by on it: these know then that it is no stranger,
 * who takes the results away. */
static void tell_readers(struct keeper *keeper, int64_t lease_ms) {
  struct keeper_source source;
  for (size_t i = 0; keeper->source(keeper->engine, i, &source); i++) {
    char name[40];
    struct name_lease lease = {0};
    struct err err = {0};
    if (!source.stands_by && !(source.reads && keeper->living > 1))
      continue;
    snprintf(name, sizeof name, "results %016llx", (unsigned long long)source.entry);
    if (keeper_ok(
            keeper, KEEPER_SHARDS,
            keeper->store->ops->lease_name(keeper->ss, &keeper->me, name, source.reads ? lease_ms : 0, &lease, &err),
            &err) &&
        source.stands_by)
      keeper->source_taken(keeper->engine, i, !lease.runs || lease.since_us);
  }
}

/* Seldom enough to cost nothing, and so often that a lease outlives a few failures; our name at once where what is
 * bound to it waits for that: it is another one's, or a clock has jumped. */
static void lease_names(struct keeper *keeper, struct instant beat_at, int64_t lease_ms) {
  enum { TIMES = 4 }; /* in a lease */
  bool due = beat_at.mono_us >= keeper->names_at_us;
  if (due)
    keeper->names_at_us = beat_at.mono_us + lease_ms * 1000 / TIMES;
  if (due || !leases_safe(keeper->leases, SHARD_BOUND, 1, beat_at))
    hold_name(keeper, beat_at, lease_ms);
  if (due)
    tell_readers(keeper, lease_ms);
}

static bool beat(struct keeper *keeper, const struct config *config, bool drains) {
  char routes[ROUTES_DIGEST] = "";
  uint32_t route_sets = 0;
  struct err err = {0};
  if (!drains)
    digest_routes(config, routes);
  keeper->me.routes = routes;
  struct instant sent = clock_instant();
  enum store_status status =
      keeper->store->ops->beat(keeper->ss, &keeper->me, config->engine.lease_ms, &keeper->living, &route_sets, &err);
  keeper->me.routes = NULL;
  bool ok = keeper_ok(keeper, KEEPER_SHARDS, status, &err);
  atomic_store(&keeper->others, ok && keeper->living > (drains ? 0 : 1));
  if (!ok)
    return false;
  lease_names(keeper, sent, config->engine.lease_ms);
  judge_routes(keeper, route_sets);
  if (!drains)
    look_for_namesake(keeper);
  return true;
}

static void apply_route_settings(struct keeper *keeper) {
  const struct route_setting *settings = NULL;
  size_t n = 0;
  struct err err = {0};
  mutex_lock(&keeper->lock);
  struct pause_request *requests = keeper->requests;
  keeper->requests = NULL;
  mutex_unlock(&keeper->lock);
  bool written = true;
  while (requests) {
    struct pause_request *request = requests;
    requests = request->next;
    written =
        written && keeper_ok(keeper, KEEPER_ROUTES,
                             keeper->store->ops->set_route(keeper->ss, &request->setting, request->actor, &err), &err);
    if (written) {
      free(request);
      continue;
    }
    mutex_lock(&keeper->lock); /* again in a second, as all behind it: one failure may take long */
    request->next = keeper->requests;
    keeper->requests = request;
    mutex_unlock(&keeper->lock);
  }
  if (keeper_ok(keeper, KEEPER_ROUTES, keeper->store->ops->route_settings(keeper->ss, &settings, &n, &err), &err))
    keeper->route_setting(keeper->engine, settings, n);
}

static void say_goodbye(struct keeper *keeper) {
  struct shard_lease held[STORE_SHARDS_MAX];
  size_t n = leases_owned(keeper->leases, held);
  struct err err = {0};
  for (size_t i = 0; i < n; i++) {
    bool left;
    (void)leases_lose(keeper->leases, held[i], &left);
    if (!keeper_ok(keeper, KEEPER_SHARDS,
                   keeper->store->ops->give_back(keeper->ss, keeper->me.id, &held[i], left, &err), &err))
      break; /* the leases end by themselves */
  }
  (void)keeper_ok(keeper, KEEPER_SHARDS, keeper->store->ops->leave(keeper->ss, &keeper->me, &err), &err);
}

/* Sleeps as keeper_sleep(), and wakes where a shard may be given back. */
static bool sleep_or_wake(struct keeper *keeper, int64_t deadline_us) {
  mutex_lock(&keeper->lock);
  while (!keeper->stopping && !keeper->emptied && clock_mono_us() < deadline_us)
    (void)cond_wait_until(&keeper->woken, &keeper->lock, deadline_us);
  bool stop = keeper->stopping;
  keeper->emptied = false;
  mutex_unlock(&keeper->lock);
  return stop;
}

/* Until the next round only shards change hands: nobody reads one that is on its way. The next round is now where a
 * drain has begun since this one. True: stop. */
static bool rest(struct keeper *keeper, int64_t until_us, int64_t lease_ms, bool drains) {
  int64_t now = clock_mono_us(), see_us = now + WANTS_EVERY_US;
  do {
    if (sleep_or_wake(keeper, keeper->wants_shards ? earlier(see_us, until_us) : until_us))
      return true;
    give_back_quiet(keeper);
    now = clock_mono_us();
    if (keeper->wants_shards && now >= see_us && now < until_us) {
      balance(keeper, lease_ms, false);
      see_us = clock_mono_us() + WANTS_EVERY_US;
    }
  } while (now < until_us && atomic_load(&keeper->draining) == drains);
  return false;
}

static void run(void *arg) {
  struct keeper *keeper = arg;
  if (!keeper_open(keeper, "keeper", keeper_lease_ms(keeper), &keeper->ss))
    return;
  int64_t now, lease_ms;
  bool drains;
  do {
    drains = atomic_load(&keeper->draining);
    struct config_ref *config = keeper->config(keeper->engine);
    lease_ms = config->config->engine.lease_ms;
    keeper->wants_shards = false;
    now = clock_mono_us();
    if (beat(keeper, config->config, drains))
      balance(keeper, lease_ms, true);
    give_back_quiet(keeper);
    apply_route_settings(keeper);
    keeper->watch(keeper->engine);
    config_ref_drop(config);
    now = later(now + keeper_round_us(lease_ms), clock_mono_us());
  } while (!rest(keeper, now, lease_ms, drains));
  say_goodbye(keeper);
  keeper->store->ops->close(&keeper->ss);
}

void keeper_init(struct keeper *keeper) {
  mutex_init(&keeper->lock);
  cond_init(&keeper->woken);
}

bool keeper_start(struct keeper *keeper, struct err *err) {
  static const struct {
    const char *name;
    thread_fn *run;
  } threads[KEEPER_THREADS] = {{"leases", keeper_renews}, {"keeper", run}, {"housekeeper", keeper_keeps_house}};
  for (; keeper->running < KEEPER_THREADS; keeper->running++)
    if (!thread_start(&keeper->threads[keeper->running], threads[keeper->running].name, threads[keeper->running].run,
                      keeper))
      return err_set(err, 0, "no thread for the keeper of leases: the process limit is reached");
  return true;
}

void keeper_shard_empty(struct keeper *keeper) {
  mutex_lock(&keeper->lock);
  keeper->emptied = true;
  cond_broadcast(&keeper->woken);
  mutex_unlock(&keeper->lock);
}

void keeper_drain(struct keeper *keeper) {
  atomic_store(&keeper->draining, true);
  keeper_shard_empty(keeper); /* wakes it */
}

bool keeper_hands_over(struct keeper *keeper) {
  return atomic_load(&keeper->others) && leases_read(keeper->leases) > 0;
}

void keeper_stop(struct keeper *keeper) {
  mutex_lock(&keeper->lock);
  keeper->stopping = true;
  cond_broadcast(&keeper->woken);
  mutex_unlock(&keeper->lock);
  for (unsigned i = 0; i < keeper->running; i++)
    thread_join(&keeper->threads[i]);
  while (keeper->requests) {
    struct pause_request *request = keeper->requests;
    keeper->requests = request->next;
    free(request);
  }
  cond_destroy(&keeper->woken);
  mutex_destroy(&keeper->lock);
}

void keeper_pause_route(struct keeper *keeper, const char *route, const char *actor, const char *reason,
                        int64_t since_us) {
  struct pause_request *request = calloc(1, sizeof *request);
  if (!request) {
    log_error("DUEBOX-MEMORY", "no memory to pause route %s in the table", route);
    return;
  }
  snprintf(request->setting.route, sizeof request->setting.route, "%s", route);
  snprintf(request->setting.reason, sizeof request->setting.reason, "%s", reason);
  snprintf(request->actor, sizeof request->actor, "%s", actor);
  request->setting.paused = true;
  request->setting.changed_us = since_us;
  mutex_lock(&keeper->lock);
  request->next = keeper->requests;
  keeper->requests = request;
  mutex_unlock(&keeper->lock);
}

bool keeper_ready(struct keeper *keeper, uint64_t *unowned, int64_t *unread_us) {
  mutex_lock(&keeper->lock);
  bool ready = keeper->seen_shards && !keeper->unowned;
  *unowned = keeper->unowned;
  *unread_us = keeper->unread_since_us ? clock_mono_us() - keeper->unread_since_us : 0;
  mutex_unlock(&keeper->lock);
  return ready;
}
