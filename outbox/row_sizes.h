/* SPDX-License-Identifier: MIT
 *
 * outbox/row_sizes.h - how many rows one transaction may change: with their content, for the binlog takes a changed row
 * as a whole, before and after, whatever column it is about.
 */
#ifndef OUTBOX_ROW_SIZES_H
#define OUTBOX_ROW_SIZES_H

#include "outbox/session.h"

/* Of payload, headers and checkpoint. */
enum { ROW_SIZES_MOST = STORE_TRANSACTION_BYTES };

/* How many of these rows, from the first on, have no more than `most` bytes of content together: at least one.
 * ids: ascending; rows that are gone have none. Ask before the rows are locked, for locking reads them too. What they
 * are can change until then, and is larger by chance alone.
 * At most 32 large rows are read, and more than four only where those before were small enough. */
MUSTCHECK bool row_sizes_fit(struct store_session *ss, const char *what, const uint64_t *ids, size_t count, size_t most,
                             size_t *fit, struct err *err);

#endif
