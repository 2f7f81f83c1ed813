/* SPDX-License-Identifier: MIT */
#include "store_double.h"

#include <stdio.h>
#include <stdlib.h>

#include "store_double_ops.h"

static const struct store_ops ops = {
    .open = double_open,
    .close = double_close,
    .now = double_now,
    .beat = double_beat,
    .lease_name = double_lease_name,
    .leave = double_leave,
    .namesake = double_namesake,
    .shards = double_shards,
    .remake_shards = double_remake_shards,
    .acquire = double_acquire,
    .end_silent = double_end_silent,
    .renew = double_renew,
    .give_back = double_give_back,
    .look = double_look,
    .next_due = double_next_due,
    .read = double_read,
    .find = double_find,
    .read_ids = double_read_ids,
    .read_misfits = double_read_misfits,
    .find_routes = double_find_routes,
    .expired = double_expired,
    .claim = double_claim,
    .own_claims = double_own_claims,
    .lost_claims = double_lost_claims,
    .lost_bound_claims = double_lost_bound_claims,
    .settle = double_settle,
    .settle_results = double_settle_results,
    .hold = double_hold,
    .unhold = double_unhold,
    .heads = double_heads,
    .stranded = double_stranded,
    .claims_elsewhere = double_claims_elsewhere,
    .unblock = double_unblock,
    .intervene = double_intervene,
    .locate = double_locate,
    .route_settings = double_route_settings,
    .set_route = double_set_route,
    .housekeep = double_housekeep,
    .row_ids = double_row_ids,
    .watch = double_watch,
    .watch_next = double_watch_next,
    .watch_end = double_watch_end,
    .watch_close = double_watch_close,
};

static void identify(void *self, const char *instance) {
  struct store_double *store = self;
  (void)snprintf(store->instance, sizeof store->instance, "%s", instance);
}

static uint64_t server(void *self, char *out) {
  const struct store_double *store = self;
  out[0] = '\0';
  if (store->server)
    (void)snprintf(out, STORE_SERVER_MAX, "simulated:%llu", (unsigned long long)store->server);
  return store->changes;
}

struct store *store_double_new(struct table *db, const struct machine *machine) {
  struct store_double *store = calloc(1, sizeof *store);
  if (!store)
    world_fail("no memory for a store");
  store->db = db;
  store->machine = machine;
  atomic_init(&store->statements, 0);
  store->store = (struct store){
      .ops = &ops, .self = store, .statements = &store->statements, .identify = identify, .server = server};
  return &store->store;
}

void store_double_free(struct store **store) {
  if (*store)
    free((*store)->self);
  *store = NULL;
}
