/* SPDX-License-Identifier: MIT
 *
 * tests/sim/table_tx.h - inside of the database: what its parts share.
 */
#ifndef TESTS_SIM_TABLE_TX_H
#define TESTS_SIM_TABLE_TX_H

#include "table.h"

enum change_kind { CHANGE_PUT, CHANGE_END, CHANGE_ADD };

struct change {
  enum change_kind kind;
  bool fresh; /* PUT: a row that is inserted */
  int event;
  enum task_state to;
  uint64_t id;
  struct row *row;   /* PUT: the image; END: its record in the history, or NULL */
  struct list *list; /* ADD: to where */
  void *record;
};

void list_clear(struct list *list);
void list_copy(struct list *to, const struct list *from);
void data_clear(struct data *data);
void data_copy(struct data *to, const struct data *from);
/* Where the row with that id is, or would be. */
size_t row_place(const struct data *data, uint64_t id);
/* All sessions end, and what they had not committed. */
void table_drop_all(struct table *db);
/* Users' transactions end without a commit, which those will find out. */
void table_drop_users(struct table *db);
/* The row as the transaction leaves it, if it has changed it. */
struct row *tx_image(struct tx *tx, uint64_t id);

#endif
