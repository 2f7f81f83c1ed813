/* SPDX-License-Identifier: MIT
 *
 * outbox/outbox.h - the MySQL/MariaDB store behind core/store.h.
 */
#ifndef OUTBOX_OUTBOX_H
#define OUTBOX_OUTBOX_H

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/store.h"

/* Makes a store. Opens no connection: sessions do (store_ops.open). config must outlive the store. Main thread, once
 * for each store; the client library is prepared by the first. False: out of memory. */
MUSTCHECK bool outbox_create(const struct database_config *config, struct store *out, struct err *err);
/* Frees a store whose sessions are all closed. */
void outbox_destroy(struct store *store);

#endif
