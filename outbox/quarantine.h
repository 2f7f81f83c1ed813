/* SPDX-License-Identifier: MIT
 *
 * outbox/quarantine.h - inside of outbox/: result records that are kept for inspection, within a transaction of theirs.
 */
#ifndef OUTBOX_QUARANTINE_H
#define OUTBOX_QUARANTINE_H

#include "outbox/session.h"

/* All zero but the session, which has begun a script, and no_wait. */
struct quarantine {
  struct store_session *ss;
  bool no_wait; /* for a row that somebody else holds */
  size_t count; /* statements in the script */
};

/* Keeps a record; sends the script when it is full. */
MUSTCHECK bool quarantine_add(struct quarantine *quarantine, const struct store_result *result, const char *reason,
                              struct err *err);
/* Sends what is left. */
MUSTCHECK bool quarantine_flush(struct quarantine *quarantine, struct err *err);

#endif
