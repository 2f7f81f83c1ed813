/* SPDX-License-Identifier: MIT */
#include "order_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  for (uint64_t id = 1; id <= TASKS; id++) {
    f->task[id] = (struct task){.id = id, .due_us = (int64_t)id, .priority = 5, .shard = 1};
    f->flight[id] = (struct flight){.id = id, .task = &f->task[id]};
  }
  *state = f;
  return 0;
}

int tear_down(void **state) {
  struct fixture *f = *state;
  order_free(&f->order);
  free(f);
  return 0;
}

void name(struct fixture *f, uint64_t id, const char *key) {
  f->task[id].order_key = (struct duebox_bytes){key, strlen(key)};
}

bool meet(struct fixture *f, uint64_t id) {
  bool go = order_may_go(&f->order, &f->task[id]);
  if (go)
    assert_true(order_enter(&f->order, &f->flight[id]));
  else
    assert_false(order_wait(&f->order, &f->task[id]));
  return go;
}

bool come_back(struct fixture *f) {
  assert_true(order_awaits_return(&f->order));
  order_return_begin(&f->order);
  return order_returned(&f->order);
}

uint64_t called(struct fixture *f) {
  uint64_t id = 0;
  uint8_t shard;
  return order_called(&f->order, &id, &shard, 1) ? id : 0;
}
