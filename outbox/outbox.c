/* SPDX-License-Identifier: MIT */
#include "outbox/outbox.h"

#include <stdio.h>
#include <stdlib.h>

#include "outbox/db_error.h"
#include "outbox/ops.h"

static const struct store_ops ops = {
    .open = session_open,
    .close = session_close,
    .now = ops_now,
    .beat = ops_beat,
    .lease_name = ops_lease_name,
    .leave = ops_leave,
    .namesake = ops_namesake,
    .shards = ops_shards,
    .remake_shards = ops_remake_shards,
    .acquire = ops_acquire,
    .end_silent = ops_end_silent,
    .renew = ops_renew,
    .give_back = ops_give_back,
    .look = ops_look,
    .next_due = ops_next_due,
    .read = ops_read,
    .find = ops_find,
    .read_ids = ops_read_ids,
    .read_misfits = ops_read_misfits,
    .find_routes = ops_find_routes,
    .expired = ops_expired,
    .claim = ops_claim,
    .own_claims = ops_own_claims,
    .lost_claims = ops_lost_claims,
    .lost_bound_claims = ops_lost_bound_claims,
    .settle = ops_settle,
    .settle_results = ops_settle_results,
    .hold = ops_hold,
    .unhold = ops_unhold,
    .heads = ops_heads,
    .stranded = ops_stranded,
    .claims_elsewhere = ops_claims_elsewhere,
    .unblock = ops_unblock,
    .intervene = ops_intervene,
    .locate = ops_locate,
    .route_settings = ops_route_settings,
    .set_route = ops_set_route,
    .housekeep = ops_housekeep,
    .row_ids = ops_row_ids,
    .watch = ops_watch,
    .watch_next = ops_watch_next,
    .watch_end = ops_watch_end,
    .watch_close = ops_watch_close,
};

static uint64_t outbox_server(void *self, char *out) {
  struct outbox *outbox = self;
  pthread_mutex_lock(&outbox->server_lock);
  snprintf(out, STORE_SERVER_MAX, "%s", outbox->server);
  uint64_t changes = atomic_load(&outbox->changes);
  pthread_mutex_unlock(&outbox->server_lock);
  return changes;
}

static void outbox_identify(void *self, const char *instance) {
  struct outbox *outbox = self;
  snprintf(outbox->instance, sizeof outbox->instance, "%s", instance);
}

bool outbox_create(const struct database_config *config, struct store *out, struct err *err) {
  *out = (struct store){0};
  if (!db_init(err))
    return false;
  struct outbox *outbox = calloc(1, sizeof *outbox);
  if (!outbox)
    return err_set(err, DB_E_NO_MEMORY, "making the store: out of memory");
  outbox->config = config;
  atomic_init(&outbox->generation, 0);
  atomic_init(&outbox->has_rights, false);
  atomic_init(&outbox->statements, 0);
  atomic_init(&outbox->changes, 0);
  atomic_init(&outbox->connections, 0);
  pthread_mutex_init(&outbox->server_lock, NULL);
  *out = (struct store){.ops = &ops,
                        .self = outbox,
                        .statements = &outbox->statements,
                        .identify = outbox_identify,
                        .server = outbox_server};
  return true;
}

void outbox_destroy(struct store *store) {
  struct outbox *outbox = store->self;
  if (outbox)
    pthread_mutex_destroy(&outbox->server_lock);
  free(store->self);
  *store = (struct store){0};
}
