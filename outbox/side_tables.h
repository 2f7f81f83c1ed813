/* SPDX-License-Identifier: MIT
 *
 * outbox/side_tables.h - tables that somebody holds as a whole: by LOCK TABLES, by a dump, by an ALTER that runs. A
 * session remembers them, so that what needs none of them does not wait. Where it is that of the tasks, or all of them
 * (FLUSH TABLES WITH READ LOCK), nobody has to look for the row that keeps the others waiting.
 */
#ifndef OUTBOX_SIDE_TABLES_H
#define OUTBOX_SIDE_TABLES_H

#include "outbox/session.h"

/* Bits of store_session.locked_tables. */
enum { SIDE_HISTORY = 1, SIDE_ATTEMPTS = 2, SIDE_HEADS = 4, SIDE_INSTANCES = 8, SIDE_QUARANTINE = 16, SIDE_TASKS = 32 };

/* Finds out, outside any transaction, which of these tables are held. Asking costs a second for each one that is, where
 * the server cannot be told not to wait (MySQL); when that of the tasks is held no other is asked for. */
MUSTCHECK bool side_tables_find(struct store_session *ss, unsigned tables, struct err *err);
/* The same for those that were held, when it is time to ask again. */
MUSTCHECK bool side_tables_again(struct store_session *ss, struct err *err);
/* Whether the unit that runs may read these: nobody is known to hold one. A lock that the unit meets is looked for
 * among them (session_run), and when it is redone it does without. */
bool side_tables_usable(struct store_session *ss, unsigned tables);

#endif
