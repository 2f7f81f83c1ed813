/* SPDX-License-Identifier: MIT
 *
 * outbox/write_group.h - which decisions write the same into their rows, so that a list of ids is all that differs.
 *
 * Of a drain nearly all do: the same state before, the same attempt, no texts. Only the time of publishing differs from
 * row to row; within a millisecond one stands for all, the latest, so no row seems to have been published early.
 *
 * Pure; no connection, no lock.
 */
#ifndef OUTBOX_WRITE_GROUP_H
#define OUTBOX_WRITE_GROUP_H

#include <stddef.h>

#include "core/store.h"

/* Brings decisions that write the same next to each other; those with texts of their own come last. */
void group_sort(struct decision **decisions, size_t count);

/* How many of the sorted decisions, from the first on, write the same; 0 when the first has texts of its own, and so
 * have all behind it. The time of publishing is that of the last. */
size_t group_first(struct decision *const *decisions, size_t count);

/* Which attempt a line in the attempts is about. */
uint32_t attempt_of(const struct decision *decision);

#endif
