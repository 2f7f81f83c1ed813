/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_filter.h - a selection of tasks as an SQL condition. Pure.
 */
#ifndef OUTBOX_OPERATOR_FILTER_H
#define OUTBOX_OPERATOR_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/operator.h"
#include "outbox/sql.h"

/* The table a condition is for: the outbox (living) or its history. */
enum operator_table { TABLE_LIVING, TABLE_HISTORY };

/* Whether the filter can match anything in that table. */
bool filter_touches(const struct task_filter *filter, enum operator_table table);

/* Adds the condition, never empty. Values become quoted literals; only filter->where goes in as it is
 * (operator.c has proved it by then). shards: a bit
 * for each that there is; naming them lets a route be found by the index, which begins with (state, shard, route). */
void filter_sql(struct text *out, const struct task_filter *filter, enum operator_table table, uint64_t shards);

/* The index that finds a route or a state in the table, as a hint, and the part of the filter that it looks at. NULL:
 * the filter names neither. */
const char *filter_index(const struct task_filter *filter, enum operator_table table, struct task_filter *part);

#endif
