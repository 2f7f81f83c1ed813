/* SPDX-License-Identifier: MIT
 *
 * tests/sim/store_double_write.h - decisions as changes of rows: what outbox/write.h says in statements.
 */
#ifndef TESTS_SIM_STORE_DOUBLE_WRITE_H
#define TESTS_SIM_STORE_DOUBLE_WRITE_H

#include "store_double_session.h"

bool decision_possible(const struct decision *decision);
bool decision_reduce(struct decision *decision, int code);
/* LOCK_HISTORY, LOCK_ATTEMPTS, LOCK_HEADS */
unsigned decision_tables(const struct decision *decision);
unsigned decision_statements(const struct decision *decision);
/* Whether the row is the one that was decided about, as it was then. */
bool decision_fits(const struct decision *decision, const struct row *row, bool versioned);
/* What the server says to it: an error number, 0 = it takes it. */
int decision_refused(const struct table *db, const struct decision *decision);
/* What it says to any change of the row. */
int row_refused(const struct table *db, uint64_t id);
/* Adds all that the decision asks for to the transaction. */
void decision_write(struct tx *tx, const struct row *row, const struct decision *decision);
/* Adds a line of a task whose copy has left and whose row is gone. */
void decision_write_removed(struct tx *tx, const struct decision *decision);

#endif
