/* SPDX-License-Identifier: MIT
 *
 * core/expiry.h - ends tasks that nobody would look at again when their expires_at has come: held and blocked ones, and
 * those that are bound to a host which is not there; and of the latter those that others of their order_key wait for,
 * when they are overdue by more than their route's give_up.
 *
 * Whatever is handed out expires where it is read; this walks over the rest, page by page along the index, and goes on
 * where it stopped. A daemon walks in the shards that it leases; the one that holds the first shard walks over bound
 * tasks too. Nothing is lost when two do it at once: decisions are fenced, and guarded by state and attempt.
 *
 * @thread the keeper's housekeeper
 */
#ifndef CORE_EXPIRY_H
#define CORE_EXPIRY_H

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/base/log_repeat.h"
#include "core/config.h"
#include "core/leases.h"
#include "core/metrics.h"
#include "core/store.h"

struct expiry {
  /* Filled by the owner. */
  const struct store *store;
  struct leases *leases;
  struct route_metrics *(*route_metrics)(void *engine, const char *route); /* may give NULL */
  void *engine;

  struct store_group at;     /* the group where the last pass stopped, */
  struct store_cursor after; /* and the position in it */
  uint64_t head;             /* the last head that was looked at; 0 = none */
  struct log_quota dead;     /* lines */
};

/* One pass: walks on for PASS_US at most. */
MUSTCHECK enum store_status expiry_pass(struct expiry *expiry, struct store_session *ss, const struct config *config,
                                        struct err *err);

#endif
