/* SPDX-License-Identifier: MIT
 *
 * core/keeper_renew.c - the thread that renews our leases, and does nothing else: it waits for nothing.
 */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/keeper_internal.h"

void keeper_lost(struct keeper *keeper, const struct shard_lease *lease) {
  if (lease->shard == SHARD_BOUND) /* nobody leases it: our own sign of life counts there */
    return;
  if (!leases_lose(keeper->leases, *lease, NULL))
    return; /* it was given back while the statement ran, or is known to be lost */
  log_error("DUEBOX-SHARD-LOST", "shard=%u its lease is not ours any more", lease->shard);
  count(&keeper->metrics->leases_lost, 1);
  keeper->shards_changed(keeper->engine);
}

/* A database whose clock jumps ends leases sooner or later than we count; a machine that was stopped counts less. */
static bool clocks_agree(struct keeper *keeper, int64_t db_now_us, struct instant sent) {
  struct instant got = clock_instant();
  int64_t moved_us = clock_bounds_moved(&keeper->db_clock, db_now_us, sent.boot_us, got.boot_us);
  int64_t suspended_us = (got.boot_us - got.mono_us) - (sent.boot_us - sent.mono_us);
  if (moved_us == 0 && suspended_us < KEEPER_JUMP_US)
    return true;
  log_warn("DUEBOX-CLOCK-JUMP",
           "the database's clock and ours have moved by %lld ms against each other, or this machine was suspended: "
           "nothing is sent until the leases are renewed",
           (long long)((moved_us ? moved_us : suspended_us) / 1000));
  leases_doubt(keeper->leases, got.boot_us);
  return false;
}

/* Leases run on while somebody holds their rows, and mostly that is over before it matters. */
static void say_held(struct keeper *keeper, unsigned shards) {
  struct err err;
  err_set(
      &err, 0,
      "the rows of %u of our shards, or the tables as a whole, are locked, and nothing of these shards is sent; look "
      "in SHOW PROCESSLIST (LOCK TABLES, FLUSH TABLES WITH READ LOCK, a backup) and in information_schema.INNODB_TRX "
      "for who holds them; where it is nobody but duebox, the server is slow in committing",
      shards);
  (void)keeper_ok(keeper, KEEPER_LEASES, STORE_BUSY, &err);
}

/* False: to be done again at once. */
static bool renew(struct keeper *keeper, struct store_session *ss, int64_t lease_ms) {
  struct shard_lease held[STORE_SHARDS_MAX];
  enum lease_fate fates[STORE_SHARDS_MAX];
  size_t n = leases_owned(keeper->leases, held);
  struct instant sent = clock_instant();
  int64_t db_now_us = 0;
  struct err err = {0};
  enum store_status status = keeper->store->ops->renew(ss, keeper->me.id, held, n, lease_ms, fates, &db_now_us, &err);
  if (!keeper_ok(keeper, KEEPER_LEASES, status, &err))
    return true;
  bool agree = clocks_agree(keeper, db_now_us, sent);
  struct instant now = clock_instant();
  unsigned unsafe = 0;
  for (size_t i = 0; i < n; i++) {
    if (fates[i] == LEASE_RENEWED)
      leases_renewed(keeper->leases, held[i], sent, keeper_safe_us(lease_ms));
    else if (fates[i] == LEASE_LOST)
      keeper_lost(keeper, &held[i]);
    else if (!leases_safe(keeper->leases, held[i].shard, held[i].epoch, now))
      unsafe++;
  }
  if (unsafe)
    say_held(keeper, unsafe);
  return agree;
}

void keeper_renews(void *arg) {
  struct keeper *keeper = arg;
  struct store_session *ss = NULL;
  if (!keeper_open(keeper, "leases", keeper_lease_ms(keeper), &ss))
    return;
  int64_t next_us;
  do {
    int64_t lease_ms = keeper_lease_ms(keeper);
    next_us = clock_mono_us() + keeper_round_us(lease_ms);
    if (!renew(keeper, ss, lease_ms))
      (void)renew(keeper, ss, lease_ms);
  } while (!keeper_sleep(keeper, later(next_us, clock_mono_us())));
  keeper->store->ops->close(&ss);
}
