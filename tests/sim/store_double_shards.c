/* SPDX-License-Identifier: MIT
 *
 * Leases of shards and the list of living instances: outbox/shards.c, outbox/silent.c.
 */
#include <stdio.h>
#include <string.h>

#include "store_double_ops.h"

static bool now_unit(struct store_session *ss, void *arg, struct err *err) {
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  *(int64_t *)arg = table_clock(ss->db);
  return double_end(ss, err);
}

enum store_status double_now(struct store_session *ss, int64_t *now_us, struct err *err) {
  return double_run(ss, "reading the database's clock", now_unit, now_us, err);
}

struct beat_unit {
  const struct instance_row *me;
  int64_t ttl_ms;
  uint32_t *living, *route_sets;
};

static struct instance_entry *find_instance(struct table *db, const char *id, size_t *at) {
  struct list *list = &db->data.instances;
  for (size_t i = 0; i < list->count; i++) {
    struct instance_entry *instance = list->at[i];
    if (blob_is(instance->id, id, strlen(id))) {
      *at = i;
      return instance;
    }
  }
  return NULL;
}

static bool is_first_with_routes(const struct table *db, size_t at) {
  const struct list *list = &db->data.instances;
  const struct instance_entry *it = list->at[at];
  for (size_t i = 0; i < at; i++) {
    const struct instance_entry *before = list->at[i];
    if (instance_lives(db, before) && blob_same(before->routes, it->routes))
      return false;
  }
  return true;
}

static void count_living(const struct table *db, struct beat_unit *u) {
  *u->living = *u->route_sets = 0;
  for (size_t i = 0; i < db->data.instances.count; i++) {
    const struct instance_entry *instance = db->data.instances.at[i];
    if (!instance_lives(db, instance) || blob_is(instance->routes, "", 0)) /* it ends */
      continue;
    ++*u->living;
    *u->route_sets += !blob_is(instance->routes, "[]", 2) && is_first_with_routes(db, i);
  }
}

static bool beat_unit(struct store_session *ss, void *arg, struct err *err) {
  struct beat_unit *u = arg;
  struct table *db = ss->db;
  struct list *list = &db->data.instances;
  size_t at = 0;
  if (!double_begin(ss, SCRIPT_COMMITS, 2, err))
    return false;
  if (!double_lock(ss, LOCK_INSTANCE, table_key(u->me->id), false, true, err))
    return false;
  struct instance_entry *me = find_instance(db, u->me->id, &at);
  if (!me) {
    me = record_new(list);
    blob_put(&me->id, u->me->id);
    blob_put(&me->host, u->me->host);
    me->started_us = table_clock(db);
    list_add(list, list->count, me);
  }
  blob_put(&me->routes, u->me->routes);
  me->seen_us = table_clock(db);
  me->alive_until_us = table_clock(db) + u->ttl_ms * 1000;
  count_living(db, u);
  return double_end(ss, err);
}

enum store_status double_beat(struct store_session *ss, const struct instance_row *me, int64_t ttl_ms, uint32_t *living,
                              uint32_t *route_sets, struct err *err) {
  double_limit(ss, ttl_ms);
  return double_try(ss, "saying that this instance lives", beat_unit,
                    &(struct beat_unit){me, ttl_ms, living, route_sets}, err);
}

struct name_unit {
  const struct instance_row *me;
  const char *name;
  int64_t ttl_ms;
  struct name_lease *out;
};

static bool holds(const struct instance_entry *name, const struct instance_row *me) {
  return blob_is(name->version, me->id, strlen(me->id));
}

static struct instance_entry *add_name(struct list *list, const char *name) {
  struct instance_entry *it = record_new(list);
  blob_put(&it->id, name);
  blob_put(&it->host, name);
  blob_put(&it->routes, "");
  list_add(list, list->count, it);
  return it;
}

static void lease_name(struct table *db, struct name_unit *u, struct instance_entry *name) {
  int64_t now_us = table_clock(db);
  if (!name->version || (!holds(name, u->me) && !instance_lives(db, name))) {
    blob_put(&name->version, u->me->id);
    name->started_us = now_us;
  }
  if (holds(name, u->me)) {
    name->seen_us = now_us;
    name->alive_until_us = now_us + u->ttl_ms * 1000;
  }
}

static bool name_unit(struct store_session *ss, void *arg, struct err *err) {
  struct name_unit *u = arg;
  size_t at = 0;
  if (!double_begin(ss, u->ttl_ms ? SCRIPT_COMMITS : SCRIPT_READS, u->ttl_ms ? 2 : 1, err))
    return false;
  if (u->ttl_ms && !double_lock(ss, LOCK_INSTANCE, table_key(u->name), false, true, err))
    return false;
  struct instance_entry *name = find_instance(ss->db, u->name, &at);
  if (!name && u->ttl_ms)
    name = add_name(&ss->db->data.instances, u->name);
  if (u->ttl_ms)
    lease_name(ss->db, u, name);
  *u->out = (struct name_lease){.since_us = name && holds(name, u->me) ? name->started_us : 0,
                                .runs = name && instance_lives(ss->db, name)};
  return double_end(ss, err);
}

enum store_status double_lease_name(struct store_session *ss, const struct instance_row *me, const char *name,
                                    int64_t ttl_ms, struct name_lease *out, struct err *err) {
  return double_try(ss, "leasing a name", name_unit, &(struct name_unit){me, name, ttl_ms, out}, err);
}

static bool leave_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct instance_row *me = arg;
  size_t at;
  if (!double_begin(ss, SCRIPT_COMMITS, 1, err))
    return false;
  if (!double_lock(ss, LOCK_INSTANCE, table_key(me->id), false, true, err) ||
      !double_lock(ss, LOCK_INSTANCE, table_key(me->host), false, true, err))
    return false;
  if (find_instance(ss->db, me->id, &at))
    list_remove(&ss->db->data.instances, at);
  const struct instance_entry *name = find_instance(ss->db, me->host, &at);
  if (name && name->version && holds(name, me))
    list_remove(&ss->db->data.instances, at);
  return double_end(ss, err);
}

enum store_status double_leave(struct store_session *ss, const struct instance_row *me, struct err *err) {
  return double_run(ss, "saying that this instance ends", leave_unit, (void *)me, err);
}

struct namesake_unit {
  const char *instance;
  struct store_namesake *out;
};

static bool namesake_unit(struct store_session *ss, void *arg, struct err *err) {
  struct namesake_unit *u = arg;
  size_t at;
  *u->out = (struct store_namesake){0};
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  const struct instance_entry *me = find_instance(ss->db, u->instance, &at);
  for (size_t i = 0; me && i < ss->db->data.instances.count; i++) {
    const struct instance_entry *it = ss->db->data.instances.at[i];
    if (it != me && blob_same(it->host, me->host) && !blob_is(it->routes, "", 0) && instance_lives(ss->db, it) &&
        it->seen_us > me->started_us && !u->out->id[0])
      snprintf(u->out->id, sizeof u->out->id, "%.*s", (int)it->id->len, it->id->data);
  }
  return double_end(ss, err);
}

enum store_status double_namesake(struct store_session *ss, const char *instance, struct store_namesake *out,
                                  struct err *err) {
  return double_run(ss, "looking for another daemon of this name", namesake_unit,
                    &(struct namesake_unit){instance, out}, err);
}

/* --- shards --- */

struct shards_unit {
  struct shard_row *rows;
  size_t *count;
  uint64_t *gone;
};

static bool shards_unit(struct store_session *ss, void *arg, struct err *err) {
  struct shards_unit *u = arg;
  struct table *db = ss->db;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  *u->count = 0;
  *u->gone = (shard_bit((uint8_t)db->shard_count) - 1) | shard_bit(SHARD_BOUND);
  for (unsigned i = 0; i < STORE_SHARDS_MAX; i++) {
    const struct shard_entry *shard = &db->data.shards[i];
    if (!shard->present)
      continue;
    struct shard_row *row = &u->rows[*u->count];
    *row = (struct shard_row){.shard = (uint8_t)i,
                              .epoch = shard->epoch,
                              .expired = !shard->owned || !lease_runs(db, shard),
                              .unclean = shard->unclean};
    if (shard->owned)
      memcpy(row->owner, shard->owner, sizeof row->owner);
    *u->gone &= ~shard_bit((uint8_t)i);
    *u->count += i != SHARD_BOUND;
  }
  return double_end(ss, err);
}

enum store_status double_shards(struct store_session *ss, struct shard_row rows[STORE_SHARDS_MAX], size_t *count,
                                uint64_t *gone, struct err *err) {
  return double_run(ss, "reading the shards", shards_unit, &(struct shards_unit){rows, count, gone}, err);
}

struct remake_unit {
  uint64_t gone;
  int64_t lease_ms;
};

static bool remake_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct remake_unit *u = arg;
  if (!double_begin(ss, SCRIPT_COMMITS, 1, err))
    return false;
  for (unsigned i = 0; i < STORE_SHARDS_MAX; i++) {
    struct shard_entry *shard = &ss->db->data.shards[i];
    if (!(u->gone & shard_bit((uint8_t)i)) || shard->present)
      continue;
    bool bound = i == SHARD_BOUND;
    *shard = (struct shard_entry){.present = true,
                                  .epoch = bound,
                                  .owned = !bound,
                                  .lease_until_us = bound ? TIME_NULL : table_clock(ss->db) + u->lease_ms * 1000,
                                  .unclean = !bound};
  }
  return double_end(ss, err);
}

enum store_status double_remake_shards(struct store_session *ss, uint64_t gone, int64_t lease_ms, struct err *err) {
  return double_try(ss, "putting back rows of the table of shards", remake_unit, &(struct remake_unit){gone, lease_ms},
                    err);
}

struct acquire_unit {
  const char *instance;
  const struct shard_row *seen;
  int64_t lease_ms;
  uint64_t *epoch;
};

static bool is_owner(const struct shard_entry *shard, const char *instance) {
  return shard->present && shard->owned && strcmp(shard->owner, instance) == 0;
}

/* What counts is what is in the table afterwards, so an acquisition whose answer was lost is found as well. */
static bool acquire_unit(struct store_session *ss, void *arg, struct err *err) {
  enum { MILLENNIUM_S = 946684800 };
  struct acquire_unit *u = arg;
  struct table *db = ss->db;
  struct shard_entry *shard = &db->data.shards[u->seen->shard];
  if (!double_begin(ss, SCRIPT_COMMITS, 5, err))
    return false;
  if (shard->present && !double_lock(ss, LOCK_SHARD, u->seen->shard, false, false, err))
    return false;
  if (shard->present && shard->epoch == u->seen->epoch && (!shard->owned || !lease_runs(db, shard))) {
    uint64_t by_time = (uint64_t)(table_clock(db) / 1000 - INT64_C(1000) * MILLENNIUM_S);
    if (shard->unclean)
      shard->abandoned_us = abandoned_until(db, shard);
    shard->epoch = by_time > shard->epoch + 1 ? by_time : shard->epoch + 1;
    shard->owned = shard->unclean = true;
    shard->lease_until_us = table_clock(db) + u->lease_ms * 1000;
    (void)snprintf(shard->owner, sizeof shard->owner, "%s", u->instance);
  }
  *u->epoch = is_owner(shard, u->instance) && shard->epoch > u->seen->epoch ? shard->epoch : 0;
  return double_end(ss, err);
}

enum store_status double_acquire(struct store_session *ss, const char *instance, const struct shard_row *seen,
                                 int64_t lease_ms, uint64_t *epoch, struct err *err) {
  static const char what[] = "acquiring a shard";
  struct acquire_unit unit = {instance, seen, lease_ms, epoch};
  *epoch = 0;
  if (seen->epoch > STORE_EPOCH_MAX) {
    err_set(err, DB_E_ROW, "%s: shard %u has an epoch that no daemon writes", what, seen->shard);
    return STORE_REFUSED;
  }
  enum store_status status = double_try(ss, what, acquire_unit, &unit, err);
  status = status == STORE_BUSY && ss->unknown ? double_try(ss, what, acquire_unit, &unit, err) : status;
  if (status != STORE_OK)
    *epoch = 0; /* of a try whose answer did not come */
  return status;
}

struct renew_unit {
  const char *instance;
  const struct shard_lease *leases;
  size_t count;
  bool no_wait; /* one lease: fails at once when another transaction holds its row */
  int64_t lease_ms;
  enum lease_fate *fates;
  int64_t *now_us;
};

static bool renew_unit(struct store_session *ss, void *arg, struct err *err) {
  struct renew_unit *u = arg;
  struct table *db = ss->db;
  if (!double_begin(ss, u->no_wait ? SCRIPT_COMMITS : SCRIPT_WRITES, u->no_wait ? 6 : 3, err))
    return false;
  for (size_t i = 0; i < u->count; i++) /* it waits with what it has locked before, and gives that up with the rest */
    if (!double_lock(ss, LOCK_SHARD, u->leases[i].shard, false, !u->no_wait, err))
      return false;
  *u->now_us = table_clock(db);
  for (size_t i = 0; i < u->count; i++) {
    struct shard_entry *shard = &db->data.shards[u->leases[i].shard];
    bool ours = is_owner(shard, u->instance) && shard->epoch == u->leases[i].epoch &&
                (!u->leases[i].owner || strcmp(shard->owner, u->leases[i].owner) == 0);
    if (ours)
      shard->lease_until_us = *u->now_us + u->lease_ms * 1000;
    /* What is asked for afterwards is whose it is, and under which epoch. */
    u->fates[i] = ours && shard->lease_until_us > *u->now_us ? LEASE_RENEWED : LEASE_LOST;
  }
  return double_end(ss, err);
}

static enum store_status renew(struct store_session *ss, struct renew_unit *unit, struct err *err) {
  return double_try(ss, "renewing shard leases", renew_unit, unit, err);
}

enum store_status double_renew(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                               size_t count, int64_t lease_ms, enum lease_fate *fates, int64_t *now_us,
                               struct err *err) {
  struct renew_unit all = {instance, leases, count, false, lease_ms, fates, now_us};
  double_limit(ss, lease_ms);
  if (count == 0)
    return double_now(ss, now_us, err);
  enum store_status status = double_skips(ss, false) ? STORE_BUSY : renew(ss, &all, err);
  if (status != STORE_BUSY)
    return status;
  bool met = false;
  for (size_t i = 0; i < count; i++) {
    struct renew_unit one = {instance, &leases[i], 1, true, lease_ms, &fates[i], now_us};
    status = renew(ss, &one, err);
    if (status == STORE_BUSY)
      fates[i] = LEASE_BUSY;
    else if (status != STORE_OK)
      return status;
    met = met || status == STORE_BUSY;
  }
  if (met)
    double_met_lock(ss);
  return double_now(ss, now_us, err);
}

struct give_back_unit {
  const char *instance;
  const struct shard_lease *lease;
  bool unclean;
};

static bool give_back_unit(struct store_session *ss, void *arg, struct err *err) {
  struct give_back_unit *u = arg;
  struct shard_entry *shard = &ss->db->data.shards[u->lease->shard];
  if (!double_begin(ss, SCRIPT_COMMITS, 1, err) || !double_lock(ss, LOCK_SHARD, u->lease->shard, false, true, err))
    return false;
  if (is_owner(shard, u->instance) && shard->epoch == u->lease->epoch)
    *shard = (struct shard_entry){.present = true,
                                  .epoch = shard->epoch + 1,
                                  .unclean = u->unclean,
                                  .lease_until_us = TIME_NULL,
                                  .abandoned_us = shard->abandoned_us};
  return double_end(ss, err);
}

enum store_status double_give_back(struct store_session *ss, const char *instance, const struct shard_lease *lease,
                                   bool unclean, struct err *err) {
  return double_try(ss, "giving a shard back", give_back_unit, &(struct give_back_unit){instance, lease, unclean}, err);
}

/* --- the silent --- */

#define SILENT "ending the sessions of an instance that is silent"

struct silent_unit {
  const char *instance;
  struct store_silent *out;
};

static bool is_silent(const struct table *db, const char *instance) {
  for (size_t i = 0; i < db->data.instances.count; i++) {
    const struct instance_entry *it = db->data.instances.at[i];
    if (blob_is(it->id, instance, strlen(instance)) && instance_lives(db, it))
      return false;
  }
  for (unsigned i = 0; i < STORE_SHARDS_MAX; i++)
    if (is_owner(&db->data.shards[i], instance) && lease_runs(db, &db->data.shards[i]))
      return false;
  return true;
}

static bool silent_unit(struct store_session *ss, void *arg, struct err *err) {
  struct silent_unit *u = arg;
  struct table *db = ss->db;
  uint64_t threads[CONNECTIONS_MAX];
  size_t count = 0;
  *u->out = (struct store_silent){0};
  if (!double_begin(ss, SCRIPT_READS, 2, err))
    return false;
  u->out->silent = is_silent(db, u->instance);
  for (int i = 0; i < CONNECTIONS_MAX && u->out->silent; i++)
    if (db->connections[i] && db->connections[i]->alive && strcmp(db->connections[i]->instance, u->instance) == 0)
      threads[count++] = db->connections[i]->thread;
  if (!double_end(ss, err))
    return false;
  for (size_t k = 0; k < count; k++) {
    if (!double_begin(ss, SCRIPT_READS, 1, err))
      return false;
    u->out->refused += !db->may_kill;
    for (int i = 0; i < CONNECTIONS_MAX && db->may_kill; i++)
      if (db->connections[i] && db->connections[i]->alive && db->connections[i]->thread == threads[k]) {
        connection_kill(db, db->connections[i]);
        u->out->ended++;
      }
    if (!double_end(ss, err))
      return false;
  }
  return true;
}

enum store_status double_end_silent(struct store_session *ss, const char *instance, struct store_silent *out,
                                    struct err *err) {
  return double_try(ss, SILENT, silent_unit, &(struct silent_unit){instance, out}, err);
}
