/* SPDX-License-Identifier: MIT
 *
 * core/keeper_house.c - the thread that keeps house: partitions, what is old, tasks whose time is over, row ids that
 * come to their end.
 */
#include <inttypes.h>

#include "core/base/clock.h"
#include "core/keeper_internal.h"

enum {
  HOUSEKEEP_EVERY_US = 600 * 1000 * 1000,
  ROUND_EVERY_US = 10 * 1000 * 1000,
};

static void housekeep(struct keeper *keeper, struct store_session *ss, const struct config *config) {
  int64_t longest = config->engine.dead_retention_ms;
  for (size_t i = 0; i < config->route_count; i++)
    if (config->routes[i].history_ms > longest)
      longest = config->routes[i].history_ms;
  struct err err = {0};
  (void)keeper_ok(keeper, KEEPER_HOUSE,
                  keeper->store->ops->housekeep(ss, longest, config->engine.attempts_retention_ms, &err), &err);
}

static void expire(struct keeper *keeper, struct store_session *ss, const struct config *config) {
  struct err err = {0};
  (void)keeper_ok(keeper, KEEPER_EXPIRY, expiry_pass(&keeper->expiry, ss, config, &err), &err);
}

/* *far_since_us: since when far ids are left (monotonic); 0 = there is none. */
static void put_row_ids_right(struct keeper *keeper, struct store_session *ss, int64_t *far_since_us) {
  struct err err = {0};
  bool reset = false;
  uint64_t far = 0;
  const int64_t now = clock_mono_us(), waited_us = *far_since_us ? now - *far_since_us : 0;
  if (!keeper_ok(keeper, KEEPER_ROW_IDS, keeper->store->ops->row_ids(ss, waited_us, &reset, &far, &err), &err))
    return;
  if (reset)
    log_warn("DUEBOX-ROW-IDS-RESET", "a client had inserted a row id near the end of numbers, after which INSERTs fail "
                                     "(error 1467): its rows have ordinary ids now, and INSERTs go on");
  if (far && !*far_since_us)
    log_warn("DUEBOX-ROW-IDS-FAR",
             "a client has inserted a row id near the end of numbers, and INSERTs fail (error 1467) until no row has "
             "such an id: the task with the row id %" PRIu64 " may be on its way, and is given another within a minute",
             far);
  *far_since_us = !far ? 0 : *far_since_us ? *far_since_us : now;
}

void keeper_keeps_house(void *arg) {
  struct keeper *keeper = arg;
  struct store_session *ss = NULL;
  if (keeper->on_hold || !keeper_open(keeper, "housekeeper", 0, &ss))
    return;
  int64_t housekeep_at = 0, far_since_us = 0;
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
    put_row_ids_right(keeper, ss, &far_since_us);
    expire(keeper, ss, config->config);
    config_ref_drop(config);
  } while (!keeper_sleep(keeper, clock_mono_us() + ROUND_EVERY_US));
  keeper->store->ops->close(&ss);
}
