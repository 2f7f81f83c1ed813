/* SPDX-License-Identifier: MIT
 *
 * tests/sim/store_double.h - the port to the database (core/store.h), filled by the simulated database: it does what
 * outbox/ does on a server, in the same steps and with the same locks.
 */
#ifndef TESTS_SIM_STORE_DOUBLE_H
#define TESTS_SIM_STORE_DOUBLE_H

#include "core/store.h"
#include "table.h"

/* A store of one daemon on that database. Its memory is the caller's, as is that of its sessions and batches. */
struct store *store_double_new(struct table *db, const struct machine *machine);
void store_double_free(struct store **store);

#endif
