/* SPDX-License-Identifier: MIT
 *
 * Tasks whose turn has come by their order_key, as they are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "reader_fixture.h"

static const char called_keys[] = "abcdef";
static unsigned called_reads;

static enum store_status read_called(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                     const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                     struct task_batch **batch, struct err *err) {
  called_reads++;
  *batch = make_batch(ids, count, state);
  for (size_t i = 0; i < count; i++) {
    struct task *task = &(*batch)->tasks[i];
    assert_true(shards & shard_bit((uint8_t)ids[i]));
    task->shard = (uint8_t)ids[i];
    task->order_key = (struct duebox_bytes){&called_keys[ids[i]], 1};
  }
  return STORE_OK;
}

/* The next of many keys are in as many shards: each had a statement of its own, and a claim of its own. One whose shard
 * may not be read for now keeps its turn. */
static void tasks_called_in_several_shards_are_read_at_once(void **state) {
  enum { KEYS = 5, NOT_SAFE = 4 };
  static const struct store_ops ops = {.read_ids = read_called};
  static const struct store store = {.ops = &ops};
  struct fixture *f = *state;
  f->s.store = &store;
  f->s.ss = (struct store_session *)f;
  f->leases.owner = "me";
  called_reads = 0;
  for (uint64_t id = 1; id <= KEYS; id++) {
    const struct task task = {
        .id = id, .shard = (uint8_t)id, .message_id = {"m", 1}, .order_key = {&called_keys[id], 1}};
    f->s.view[id].epoch = 1;
    if (id != NOT_SAFE)
      leases_gain(&f->leases, (uint8_t)id, 1, clock_instant(), INT64_C(3600) * 1000 * 1000, false);
    order_reserve(&f->lane.order, &task);
    assert_false(order_missed(&f->lane.order, id, true));
  }
  assert_int_equal(reader_take_called(&f->s, &f->lane, 10), KEYS - 1);
  assert_int_equal(called_reads, 1);
  assert_int_equal(mailbox_count(&f->driver.in), KEYS - 1);
  assert_true(order_knows(&f->lane.order, NOT_SAFE));
  assert_int_equal(reader_take_called(&f->s, &f->lane, 10), 0);
  assert_int_equal(called_reads, 1);
  order_free(&f->lane.order);
  f->released = 1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(tasks_called_in_several_shards_are_read_at_once, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("reader_called", tests, NULL, NULL);
}
