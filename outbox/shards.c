/* SPDX-License-Identifier: MIT
 *
 * outbox/shards.c - leases of shards and the list of living instances. Only the database's clock counts here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "query.h"

#define NO_NAME "?" /* in place of one that is longer than any daemon's: a hand has written it there */

struct now_unit {
  int64_t *now_us;
};

static bool now_unit(struct store_session *ss, void *arg, struct err *err) {
  struct now_unit *u = arg;
  struct db_result result;
  struct db_row row;
  session_begin(ss);
  session_add(ss, query_now, NO_ARGS);
  if (!session_send(ss, "reading the clock", &result, 1, err))
    return false;
  bool ok = (db_next(&result, &row, 1) && db_time(&row, 0, u->now_us)) || db_unexpected(err, "reading the clock");
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_now(struct store_session *ss, int64_t *now_us, struct err *err) {
  return session_run(ss, "reading the database's clock", now_unit, &(struct now_unit){now_us}, err);
}

struct beat_unit {
  const struct instance_row *me;
  int64_t ttl_ms;
  uint32_t *living, *route_sets;
};

static bool beat_unit(struct store_session *ss, void *arg, struct err *err) {
  struct beat_unit *u = arg;
  struct db_result results[2];
  session_begin(ss);
  session_add(ss, query_beat,
              ARGS(STRING("id", u->me->id), STRING("host", u->me->host), STRING("url", u->me->admin_url),
                   STRING("version", u->me->version), STRING("routes", u->me->routes), SIGNED("pid", u->me->pid),
                   SIGNED("ttl_us", u->ttl_ms * 1000)));
  session_add(ss, query_beat_count, NO_ARGS);
  if (!session_send(ss, "beat", results, 2, err))
    return false;
  struct db_row row;
  uint64_t living = 0, sets = 0;
  bool ok =
      (db_next(&results[1], &row, 2) && db_u64(&row, 0, UINT32_MAX, &living) && db_u64(&row, 1, UINT32_MAX, &sets)) ||
      db_unexpected(err, "beat");
  if (ok) {
    *u->living = (uint32_t)living;
    *u->route_sets = (uint32_t)sets;
  }
  db_results_free(results, 2);
  return ok;
}

enum store_status ops_beat(struct store_session *ss, const struct instance_row *me, int64_t ttl_ms, uint32_t *living,
                           uint32_t *route_sets, struct err *err) {
  session_limit(ss, ttl_ms);
  return session_try(ss, "saying that this instance lives", beat_unit,
                     &(struct beat_unit){me, ttl_ms, living, route_sets}, err);
}

struct name_unit {
  const struct instance_row *me;
  const char *name;
  int64_t ttl_ms;
  struct name_lease *out;
};

static bool name_unit(struct store_session *ss, void *arg, struct err *err) {
  struct name_unit *u = arg;
  struct db_result results[2];
  unsigned count = 0;
  session_begin(ss);
  if (u->ttl_ms) {
    session_add(ss, query_lease_name,
                ARGS(STRING("name", u->name), STRING("id", u->me->id), SIGNED("pid", u->me->pid),
                     SIGNED("ttl_us", u->ttl_ms * 1000)));
    count++;
  }
  session_add(ss, query_name_holder, ARGS(STRING("name", u->name), STRING("id", u->me->id)));
  if (!session_send(ss, "lease a name", results, count + 1, err))
    return false;
  struct db_row row;
  uint64_t ours = 0, runs = 0;
  int64_t since_us = 0;
  bool ok = true;
  if (db_next(&results[count], &row, 3)) /* else nobody has leased it, or somebody has deleted it just now */
    ok = (db_u64(&row, 0, 1, &ours) && db_time(&row, 1, &since_us) && db_u64(&row, 2, 1, &runs)) ||
         db_unexpected(err, "lease a name");
  *u->out = (struct name_lease){.since_us = ours ? since_us : 0, .runs = runs};
  db_results_free(results, count + 1);
  return ok;
}

enum store_status ops_lease_name(struct store_session *ss, const struct instance_row *me, const char *name,
                                 int64_t ttl_ms, struct name_lease *out, struct err *err) {
  return session_try(ss, "leasing a name", name_unit, &(struct name_unit){me, name, ttl_ms, out}, err);
}

static bool leave_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct instance_row *me = arg;
  uint64_t gone;
  session_begin(ss);
  session_add(ss, query_leave, ARGS(STRING("id", me->id), STRING("name", me->host)));
  return session_change(ss, "leave", &gone, err);
}

enum store_status ops_leave(struct store_session *ss, const struct instance_row *me, struct err *err) {
  return session_run(ss, "saying that this instance ends", leave_unit, (void *)me, err);
}

struct namesake_unit {
  const char *instance;
  struct store_namesake *out;
};

static bool namesake_unit(struct store_session *ss, void *arg, struct err *err) {
  struct namesake_unit *u = arg;
  struct db_result result;
  struct db_row row;
  *u->out = (struct store_namesake){0};
  session_begin(ss);
  session_add(ss, query_namesake, ARGS(STRING("id", u->instance)));
  if (!session_send(ss, "namesake", &result, 1, err))
    return false;
  if (db_next(&result, &row, 3)) {
    if (!db_copy(&row, 0, u->out->id, sizeof u->out->id))
      snprintf(u->out->id, sizeof u->out->id, NO_NAME);
    if (!db_copy(&row, 2, u->out->admin_url, sizeof u->out->admin_url))
      u->out->admin_url[0] = '\0';
    u->out->pid = row.fields[1] ? strtoll(row.fields[1], NULL, 10) : 0;
  }
  db_results_free(&result, 1);
  return true;
}

enum store_status ops_namesake(struct store_session *ss, const char *instance, struct store_namesake *out,
                               struct err *err) {
  return session_run(ss, "looking for another daemon of this name", namesake_unit,
                     &(struct namesake_unit){instance, out}, err);
}

struct shards_unit {
  struct shard_row *rows;
  size_t *count;
  uint64_t *gone;
};

static bool read_shard(const struct db_row *row, struct shard_row *out) {
  uint64_t shard, expired, unclean;
  if (!db_copy(row, 2, out->owner, sizeof out->owner))
    snprintf(out->owner, sizeof out->owner, NO_NAME);
  if (!db_u64(row, 0, STORE_SHARDS_MAX - 1, &shard) || !db_u64(row, 1, UINT64_MAX, &out->epoch) ||
      !db_u64(row, 3, 1, &expired) || !db_u64(row, 4, 1, &unclean))
    return false;
  out->shard = (uint8_t)shard;
  out->expired = expired;
  out->unclean = unclean;
  return true;
}

static bool shards_unit(struct store_session *ss, void *arg, struct err *err) {
  struct shards_unit *u = arg;
  struct db_result result;
  struct db_row row;
  session_begin(ss);
  session_add(ss, query_shards, NO_ARGS);
  if (!session_send(ss, "shards", &result, 1, err))
    return false;
  bool ok = true;
  *u->count = 0;
  *u->gone = (shard_bit((uint8_t)ss->conn->shards) - 1) | shard_bit(SHARD_BOUND);
  while (ok && *u->count < STORE_SHARDS_MAX && db_next(&result, &row, 5)) {
    struct shard_row *shard = &u->rows[*u->count];
    ok = read_shard(&row, shard) || db_unexpected(err, "shards");
    if (!ok)
      break;
    *u->gone &= ~shard_bit(shard->shard);
    *u->count += shard->shard != SHARD_BOUND;
  }
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_shards(struct store_session *ss, struct shard_row rows[STORE_SHARDS_MAX], size_t *count,
                             uint64_t *gone, struct err *err) {
  return session_run(ss, "reading the shards", shards_unit, &(struct shards_unit){rows, count, gone}, err);
}

struct remake_unit {
  uint64_t gone;
  int64_t lease_ms;
};

static bool remake_unit(struct store_session *ss, void *arg, struct err *err) {
  const struct remake_unit *u = arg;
  uint64_t made; /* fewer: another daemon was quicker */
  text_clear(&ss->part);
  text_shard_set(&ss->part, u->gone);
  session_begin(ss);
  session_add(ss, query_remake_shards, ARGS(RAW("shards", ss->part), SIGNED("lease_us", u->lease_ms * 1000)));
  return session_change(ss, "remake shards", &made, err);
}

enum store_status ops_remake_shards(struct store_session *ss, uint64_t gone, int64_t lease_ms, struct err *err) {
  return session_try(ss, "putting back rows of the table of shards", remake_unit, &(struct remake_unit){gone, lease_ms},
                     err);
}

struct acquire_unit {
  const char *instance;
  const struct shard_row *seen;
  int64_t lease_ms;
  uint64_t *epoch;
};

/* What counts is what is in the table afterwards, so an acquisition whose answer was lost is found as well. */
static bool acquire_unit(struct store_session *ss, void *arg, struct err *err) {
  struct acquire_unit *u = arg;
  struct db_result results[5];
  const struct sql_arg owner = STRING("owner", u->instance), shard = UNSIGNED("shard", u->seen->shard),
                       epoch = UNSIGNED("epoch", u->seen->epoch);
  session_begin_transaction(ss);
  session_add(ss, query_shard_lock, ARGS(shard));
  session_add(ss, query_acquire, ARGS(owner, shard, epoch, SIGNED("lease_us", u->lease_ms * 1000)));
  session_add_commit(ss);
  session_add(ss, query_acquire_read, ARGS(owner, shard, epoch));
  if (!session_send_commit(ss, "acquire", results, 5, 3, err))
    return false;
  struct db_row row;
  bool ok = true;
  *u->epoch = 0;
  if (db_next(&results[4], &row, 1))
    ok = db_u64(&row, 0, UINT64_MAX, u->epoch) || db_unexpected(err, "acquire");
  db_results_free(results, 5);
  return ok;
}

enum store_status ops_acquire(struct store_session *ss, const char *instance, const struct shard_row *seen,
                              int64_t lease_ms, uint64_t *epoch, struct err *err) {
  static const char what[] = "acquiring a shard";
  struct acquire_unit unit = {instance, seen, lease_ms, epoch};
  *epoch = 0;
  if (seen->epoch > STORE_EPOCH_MAX) {
    err_set(err, DB_E_ROW,
            "%s: shard %u has epoch %" PRIu64
            " in %s_shards, which no daemon writes, and nobody sends its tasks; put it "
            "right: UPDATE `%s_shards` SET epoch = 0 WHERE shard = %u",
            what, seen->shard, seen->epoch, ss->outbox->config->table, ss->outbox->config->table, seen->shard);
    return STORE_REFUSED;
  }
  enum store_status status = session_try(ss, what, acquire_unit, &unit, err);
  /* It may be ours: without our knowing it nobody would read it until the lease ends. */
  return status == STORE_BUSY && ss->unknown ? session_try(ss, what, acquire_unit, &unit, err) : status;
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

static void mark_renewed(struct renew_unit *u, uint64_t shard, uint64_t epoch) {
  for (size_t i = 0; i < u->count; i++)
    if (u->leases[i].shard == shard && u->leases[i].epoch == epoch)
      u->fates[i] = LEASE_RENEWED;
}

static bool read_renewed(struct renew_unit *u, struct db_result *leases, struct db_result *now, struct err *err) {
  struct db_row row;
  uint64_t shard = 0, epoch = 0;
  for (size_t i = 0; i < u->count; i++)
    u->fates[i] = LEASE_LOST;
  while (db_next(leases, &row, 2)) {
    if (!db_u64(&row, 0, STORE_SHARDS_MAX - 1, &shard) || !db_u64(&row, 1, UINT64_MAX, &epoch))
      return db_unexpected(err, "renew");
    mark_renewed(u, shard, epoch);
  }
  return (db_next(now, &row, 1) && db_time(&row, 0, u->now_us)) || db_unexpected(err, "renew");
}

static bool renew_unit(struct store_session *ss, void *arg, struct err *err) {
  struct renew_unit *u = arg;
  struct db_result results[6];
  size_t n = u->no_wait ? 6 : 3;
  const struct sql_arg owner = STRING("owner", u->instance);
  text_clear(&ss->part);
  text_leases(&ss->part, u->leases, u->count);
  session_begin(ss);
  if (u->no_wait) {
    session_begin_transaction(ss);
    session_add(ss, query_shard_lock, ARGS(UNSIGNED("shard", u->leases[0].shard)));
  }
  session_add(ss, query_renew, ARGS(owner, SIGNED("lease_us", u->lease_ms * 1000), RAW("leases", ss->part)));
  if (u->no_wait)
    session_add_commit(ss);
  session_add(ss, query_renew_read, ARGS(owner));
  session_add(ss, query_now, NO_ARGS);
  bool ok = u->no_wait ? session_send_commit(ss, "renew", results, n, n - 3, err)
                       : session_send(ss, "renew", results, n, err);
  if (!ok)
    return false;
  ok = read_renewed(u, &results[n - 2], &results[n - 1], err);
  db_results_free(results, n);
  return ok;
}

static enum store_status renew(struct store_session *ss, struct renew_unit *unit, struct err *err) {
  return session_try(ss, "renewing shard leases", renew_unit, unit, err);
}

/* One statement waits a second at most, for a lock that should last milliseconds. After that each lease is renewed by
 * itself, without waiting, for some seconds. */
enum store_status ops_renew(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                            size_t count, int64_t lease_ms, enum lease_fate *fates, int64_t *now_us, struct err *err) {
  struct renew_unit all = {instance, leases, count, false, lease_ms, fates, now_us};
  session_limit(ss, lease_ms);
  if (count == 0)
    return ops_now(ss, now_us, err);
  enum store_status status = *session_skip(ss, false) ? STORE_BUSY : renew(ss, &all, err);
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
    session_met_lock(ss);
  return ops_now(ss, now_us, err);
}

struct give_back_unit {
  const char *instance;
  const struct shard_lease *lease;
  bool unclean;
};

static bool give_back_unit(struct store_session *ss, void *arg, struct err *err) {
  struct give_back_unit *u = arg;
  uint64_t changed; /* none: the lease was lost before, which is as good */
  session_begin(ss);
  session_add(ss, query_give_back,
              ARGS(UNSIGNED("shard", u->lease->shard), UNSIGNED("epoch", u->lease->epoch), STRING("owner", u->instance),
                   UNSIGNED("unclean", u->unclean)));
  return session_change(ss, "give back", &changed, err);
}

enum store_status ops_give_back(struct store_session *ss, const char *instance, const struct shard_lease *lease,
                                bool unclean, struct err *err) {
  return session_try(ss, "giving a shard back", give_back_unit, &(struct give_back_unit){instance, lease, unclean},
                     err);
}
