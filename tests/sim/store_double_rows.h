/* SPDX-License-Identifier: MIT
 *
 * tests/sim/store_double_rows.h - inside of the store double: choosing rows, and rows as tasks (outbox/row.h).
 */
#ifndef TESTS_SIM_STORE_DOUBLE_ROWS_H
#define TESTS_SIM_STORE_DOUBLE_ROWS_H

#include <string.h>

#include "store_double_session.h"

/* Rows that a statement has found. */
struct chosen {
  const struct row **at;
  size_t count, cap;
};
void chosen_add(struct chosen *chosen, const struct row *row);
/* In the order of the index (state, shard, route, priority, next_at, id). */
void chosen_sort(struct chosen *chosen);
void chosen_free(struct chosen *chosen);

/* Copies rows into a batch of tasks; NULL when there are none. */
struct task_batch *double_batch(const struct chosen *rows, struct store_limit limit);
/* One row as a task whose texts are the row's own. False: what guards its end cannot be told. */
MUSTCHECK bool double_task(const struct row *row, struct store_limit limit, char changed_at[TABLE_TIME_LEN + 1],
                           struct task *task);
bool row_is_misfit(const struct row *row);
bool name_fits(const struct blob *name, size_t max);
static inline bool row_is_in(const struct row *row, enum task_state state, uint8_t shard) {
  return row->state == state && row->shard == shard;
}
static inline bool holds_id(const uint64_t *ids, size_t count, uint64_t id) {
  for (size_t i = 0; i < count; i++)
    if (ids[i] == id)
      return true;
  return false;
}
static inline bool holds_name(const char *const *names, size_t count, const struct blob *name) {
  for (size_t i = 0; i < count; i++)
    if (blob_is(name, names[i], strlen(names[i])))
      return true;
  return false;
}

#endif
