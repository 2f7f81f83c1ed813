/* SPDX-License-Identifier: MIT
 *
 * outbox/guard.h - inside of outbox/: transactions that end in one round trip.
 *
 * A script runs up to its first statement that fails. A guard is a statement that fails when what came before it did
 * not do what it should have; behind it comes the COMMIT, which therefore happens only when everything held. So no lock
 * on a shard lives across a round trip: a daemon that is stopped between two of them holds up nobody. The script leaves
 * the transaction open where it stops, with DB_GUARD when that was a guard.
 */
#ifndef OUTBOX_GUARD_H
#define OUTBOX_GUARD_H

#include "outbox/session.h"

/* Adds a guard: the statement before it found `rows` rows to change. */
void guard_rows(struct store_session *ss, uint64_t rows);
/* Adds a guard: all leases are ours, and stay so until the commit. */
void guard_leases(struct store_session *ss, const struct shard_lease *leases, size_t count);
/* Adds the statement that gives the shards of those leases that are ours at the moment. It locks nothing. */
void guard_ask_shards(struct store_session *ss, const struct shard_lease *leases, size_t count);
/* Adds COMMIT and sends the script, of n statements with it. */
MUSTCHECK bool guard_commit(struct store_session *ss, const char *what, size_t n, struct db_result *results,
                            struct err *err);

#endif
