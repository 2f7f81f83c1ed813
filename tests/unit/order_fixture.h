/* SPDX-License-Identifier: MIT
 *
 * tests/unit/order_fixture.h - a lane's order, and tasks of the keys that a test gives them.
 */
#ifndef ORDER_FIXTURE_H
#define ORDER_FIXTURE_H

#include "core/order.h"

enum { TASKS = 3000 };

/* Tasks 1 to TASKS. */
struct fixture {
  struct order order;
  struct task task[TASKS + 1];
  struct flight flight[TASKS + 1];
};

int set_up(void **state);
int tear_down(void **state);
void name(struct fixture *f, uint64_t id, const char *key);
/* Goes if it may, else waits. */
bool meet(struct fixture *f, uint64_t id);
/* What was blocked is back in the table. */
bool come_back(struct fixture *f);
/* The one that is called, 0 = none. */
uint64_t called(struct fixture *f);

#endif
