/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "order_fixture.h"

enum { LONG = 2000 /* more than wait of one key where there is little room */ };

/* A claim that is taken back holds its key although another was called: that one's turn comes after it. */
static void a_claim_taken_back_goes_before_the_called_one(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  order_reserve(&f->order, &f->task[2]);
  assert_false(order_wait(&f->order, &f->task[3]));
  assert_true(order_enter(&f->order, &f->flight[1]));
  assert_false(order_may_go(&f->order, &f->task[2]));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_int_equal(called(f), 2);
  assert_true(order_enter(&f->order, &f->flight[2]));
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  assert_int_equal(called(f), 3);
}

static void one_of_a_key_goes_at_a_time(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 4; id++)
    name(f, id, id % 2 ? "odd" : "even");
  assert_true(meet(f, 1));
  assert_true(meet(f, 2));
  assert_false(meet(f, 3));
  assert_false(meet(f, 4));
  assert_true(order_knows(&f->order, 3));
  assert_int_equal(called(f), 0);
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  assert_int_equal(called(f), 4);
  assert_int_equal(called(f), 0);
  assert_true(meet(f, 4));
  assert_false(meet(f, 3));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_int_equal(called(f), 3);
}

static void tasks_without_a_key_never_wait(void **state) {
  struct fixture *f = *state;
  assert_true(order_may_go(&f->order, &f->task[1]));
  order_reserve(&f->order, &f->task[1]);
  assert_true(order_may_go(&f->order, &f->task[2]));
}

static void the_urgent_and_the_early_are_called_first(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 5; id++)
    name(f, id, "k");
  f->task[4].priority = 9;
  f->task[2].due_us = 100;
  const uint64_t meeting[] = {1, 5, 2, 3, 4, 3}, expected[] = {4, 3, 5, 2, 0};
  for (size_t i = 0; i < 6; i++)
    meet(f, meeting[i]);
  uint64_t out = 1;
  for (size_t i = 0; i < 5; i++) {
    assert_false(order_leave(&f->order, &f->flight[out], ORDER_OVER));
    out = called(f);
    assert_int_equal(out, expected[i]);
    if (out)
      assert_true(meet(f, out));
  }
  assert_null(f->order.keys);
  assert_null(f->order.waiting);
}

static void one_that_was_handed_back_goes_again_before_the_others(void **state) {
  struct fixture *f = *state;
  name(f, 1, "k");
  name(f, 2, "k");
  meet(f, 1);
  meet(f, 2);
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_AGAIN));
  assert_false(meet(f, 2));
  assert_int_equal(called(f), 1);
  assert_true(meet(f, 1));
}

static void one_that_is_gone_gives_its_turn_on(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k"), meet(f, id);
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_int_equal(called(f), 2);
  assert_false(order_missed(&f->order, 2, true)); /* could not go now */
  assert_int_equal(called(f), 2);
  assert_false(order_missed(&f->order, 3, false)); /* is not called */
  assert_false(order_missed(&f->order, 2, false));
  assert_int_equal(called(f), 3);
  assert_false(order_knows(&f->order, 2));
}

/* An application deletes thousands of one key at once, and each would be asked for by itself. */
static void those_behind_one_that_is_gone_may_be_gone_too(void **state) {
  struct fixture *f = *state;
  uint64_t ids[10];
  for (uint64_t id = 1; id <= 20; id++)
    name(f, id, id % 2 ? "k" : "m"), meet(f, id);
  assert_int_equal(order_behind(&f->order, shard_bit(1), ids, 10), 0); /* nobody is called */
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  assert_int_equal(order_behind(&f->order, shard_bit(2), ids, 10), 0); /* of no other shard */
  assert_int_equal(order_behind(&f->order, shard_bit(1), ids, 4), 4);
  assert_int_equal(ids[0], 5); /* 3 and 4 are called */
  assert_int_equal(ids[1], 7);
  assert_int_equal(ids[2], 6);
  assert_int_equal(ids[3], 8);
  for (uint64_t id = 5; id <= 19; id += 2)
    order_gone(&f->order, id);
  order_gone(&f->order, 3); /* is called: its reading tells */
  assert_int_equal(called(f), 3);
  assert_false(order_missed(&f->order, 3, false));
  assert_int_equal(called(f), 4);
  assert_int_equal(called(f), 0);
  assert_true(order_may_go(&f->order, &f->task[5])); /* the key has nobody left */
}

/* A claim takes the next of many keys, which are in all shards: one shard at a time was a statement for three rows or
 * so. Bound tasks are read for their host alone. */
static void called_ones_of_all_shards_are_read_together(void **state) {
  struct fixture *f = *state;
  static const char *const keys[] = {"", "a", "b", "c", "d"};
  uint64_t ids[10];
  uint8_t shards[10];
  for (uint64_t id = 1; id <= 8; id++) {
    uint64_t key = (id + 1) / 2;
    name(f, id, keys[key]);
    f->task[id].shard = key == 3 ? SHARD_BOUND : (uint8_t)key;
    (void)meet(f, id);
  }
  for (uint64_t id = 1; id <= 7; id += 2)
    assert_false(order_leave(&f->order, &f->flight[id], ORDER_OVER));
  assert_int_equal(order_called(&f->order, ids, shards, 1), 1);
  assert_int_equal(ids[0], 2);
  assert_false(order_missed(&f->order, 2, true)); /* the last one now */
  assert_int_equal(order_called(&f->order, ids, shards, 10), 1);
  assert_int_equal(ids[0], 4);
  assert_int_equal(order_called(&f->order, ids, shards, 10), 1);
  assert_int_equal(ids[0], 6);
  assert_int_equal(shards[0], SHARD_BOUND);
  assert_int_equal(order_called(&f->order, ids, shards, 10), 2);
  assert_int_equal(ids[0], 8);
  assert_int_equal(shards[0], 4);
  assert_int_equal(ids[1], 2);
  assert_int_equal(shards[1], 1);
  assert_int_equal(order_called(&f->order, ids, shards, 10), 0);
}

static void a_reserved_turn_keeps_others_of_the_batch_back(void **state) {
  struct fixture *f = *state;
  name(f, 1, "k");
  name(f, 2, "k");
  order_reserve(&f->order, &f->task[1]);
  assert_false(meet(f, 2));
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_int_equal(called(f), 2);
}

/* Other keys, each with one task out, let so many wait that there is room for `left` more. */
static void let_others_wait(struct fixture *f, size_t left) {
  static const char keys[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijlmnopqrstuvwxyz0123456789+-*/";
  struct task task = {.id = TASKS, .shard = 2};
  size_t others = ORDER_WAITING_MAX - left, waiting = 0;
  for (size_t k = 0; waiting < others; k++) {
    assert_true(k < strlen(keys) && k < TASKS / 4);
    uint64_t head = TASKS - k;
    f->task[head].order_key = task.order_key = (struct duebox_bytes){&keys[k], 1};
    assert_true(order_enter(&f->order, &f->flight[head]));
    for (size_t i = 0; i < ORDER_WAITING_PER_KEY && waiting < others; i++, waiting++) {
      task.id++;
      assert_false(order_wait(&f->order, &task));
      assert_true(order_knows(&f->order, task.id));
    }
  }
}

/* One key with many waiting tasks does not make the daemon read them again and again while there is room for all. */
static void a_long_queue_is_remembered_while_there_is_room(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= TASKS; id++)
    name(f, id, "k"), meet(f, id);
  for (uint64_t id = 2; id <= TASKS; id++)
    assert_true(order_knows(&f->order, id));
}

/* A key takes half of what is left at most: others find room. */
static void a_long_queue_leaves_room_for_other_keys(void **state) {
  struct fixture *f = *state;
  struct task task = {.id = TASKS, .shard = 1, .order_key = {"k", 1}};
  name(f, 1, "k"), meet(f, 1);
  for (size_t i = 0; i < ORDER_WAITING_MAX; i++)
    task.id++, assert_false(order_wait(&f->order, &task));
  assert_false(order_knows(&f->order, task.id));
  for (uint64_t id = 2; id <= TASKS; id++)
    name(f, id, "x"), meet(f, id);
  for (uint64_t id = 3; id <= TASKS; id++)
    assert_true(order_knows(&f->order, id));
}

/* A group is not read from its start as long as rows wait there: it would meet them all again. */
static void who_waits_is_counted_by_shard(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k"), meet(f, id);
  assert_true(order_waits_in(&f->order, 1));
  assert_false(order_waits_in(&f->order, 2));
  for (uint64_t id = 1; id < 3; id++) {
    assert_false(order_leave(&f->order, &f->flight[id], ORDER_OVER));
    assert_true(order_waits_in(&f->order, 1));
    assert_true(meet(f, called(f)));
  }
  assert_false(order_waits_in(&f->order, 1));
  name(f, 4, "k"), meet(f, 4);
  assert_true(order_waits_in(&f->order, 1));
  assert_false(order_forget_shards(&f->order, 1u << 1));
  assert_false(order_waits_in(&f->order, 1));
}

static void what_finds_no_room_is_swept_for_in_order(void **state) {
  struct fixture *f = *state;
  let_others_wait(f, ORDER_WAITING_PER_KEY + 100);
  for (uint64_t id = 1; id <= LONG; id++)
    name(f, id, "k"), meet(f, id);
  uint64_t out = 1;
  size_t sweeps = 0;
  for (uint64_t gone = 1; gone < LONG; gone++) {
    if (order_leave(&f->order, &f->flight[out], ORDER_OVER)) {
      sweeps++;
      for (uint64_t id = gone + 1; id <= LONG; id++) /* a sweep meets all that are left, in order */
        meet(f, id);
    } else {
      assert_true(meet(f, called(f)));
    }
    out = gone + 1;
    for (uint64_t id = gone + 1; id <= LONG; id++)
      assert_true(id == out || !order_may_go(&f->order, &f->task[id]));
    if (gone > 1200)
      break;
  }
  assert_int_equal(sweeps, 1);
}

static void a_lost_shard_is_forgotten(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k"), meet(f, id);
  assert_false(order_forget_shards(&f->order, 1u << 2));
  assert_true(order_knows(&f->order, 2));
  assert_false(order_forget_shards(&f->order, 1u << 1));
  assert_false(order_knows(&f->order, 2));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_null(f->order.keys);
}

static void a_failed_head_blocks_its_key(void **state) {
  struct fixture *f = *state;
  bool freed;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k"), meet(f, id);
  name(f, 4, "other");
  assert_true(order_leave(&f->order, &f->flight[1], ORDER_HEAD)); /* a sweep has to block 2 and 3 */
  assert_false(order_knows(&f->order, 2));
  assert_int_equal(called(f), 0);
  assert_true(order_blocked(&f->order, &f->task[2]));
  assert_false(order_may_go(&f->order, &f->task[2]));
  assert_false(order_blocked(&f->order, &f->task[1]));
  assert_false(order_blocked(&f->order, &f->task[4]));
  order_heads_begin(&f->order);
  assert_false(order_head(&f->order, f->task[1].order_key, 1));
  assert_false(order_heads_end(&f->order, &freed));
  assert_false(freed);
  assert_true(meet(f, 1)); /* tried again */
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(order_blocked(&f->order, &f->task[2]));
  assert_null(f->order.keys);
}

static void nobody_passes_one_that_is_being_blocked(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  meet(f, 1);
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD);
  assert_true(order_block(&f->order, &f->task[2])); /* on its way into the table */
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(meet(f, 3));
  assert_true(order_blocked_done(&f->order, &f->task[2]));
  assert_false(order_knows(&f->order, 3)); /* it is read again, after 2 */
  assert_true(come_back(f));
  assert_null(f->order.keys);
}

/* The head of a key is over, and those that it blocked come back from the table a moment later: what is committed
 * meanwhile used to go before them. */
static void nobody_passes_those_that_come_back(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  meet(f, 1);
  (void)order_leave(&f->order, &f->flight[1], ORDER_HEAD);
  assert_true(order_block(&f->order, &f->task[2]));
  assert_false(order_blocked_done(&f->order, &f->task[2])); /* the head is not over */
  assert_false(order_awaits_return(&f->order));
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(meet(f, 3)); /* committed now */
  assert_false(order_knows(&f->order, 3));
  assert_true(come_back(f)); /* a sweep meets 2, then 3 */
  assert_true(meet(f, 2));
  assert_false(meet(f, 3));
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  assert_int_equal(called(f), 3);
}

/* A key that gets another head, or blocked rows, while it is asked about waits for the next time. */
static void what_is_blocked_meanwhile_is_asked_for_again(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 4; id++)
    name(f, id, id < 3 ? "a" : "b");
  for (uint64_t id = 1; id <= 3; id += 2) {
    assert_false(order_head(&f->order, f->task[id].order_key, id));
    assert_true(meet(f, id));
    assert_false(order_leave(&f->order, &f->flight[id], ORDER_OVER));
  }
  order_return_begin(&f->order);
  assert_false(order_head(&f->order, f->task[1].order_key, 9));
  assert_true(order_block(&f->order, &f->task[4]));
  (void)order_blocked_done(&f->order, &f->task[4]);
  assert_false(order_returned(&f->order));
  assert_false(order_may_go(&f->order, &f->task[2]));
  assert_false(order_may_go(&f->order, &f->task[4]));
  assert_true(come_back(f));
  assert_true(order_may_go(&f->order, &f->task[4]));
  assert_false(order_may_go(&f->order, &f->task[2])); /* 9 lives */
}

/* A daemon that takes a shard over knows nothing of what was blocked there, and its keys wait until it has asked. */
static void keys_of_a_new_shard_wait_until_it_was_asked(void **state) {
  struct fixture *f = *state;
  name(f, 1, "k");
  order_close_shards(&f->order, UINT64_C(1) << 1);
  assert_false(meet(f, 1));
  assert_true(order_may_go(&f->order, &f->task[2])); /* without a key */
  order_return_begin(&f->order);
  order_close_shards(&f->order, UINT64_C(1) << 1); /* lost and taken again meanwhile */
  assert_false(order_returned(&f->order));
  assert_false(meet(f, 1));
  assert_true(come_back(f));
  assert_true(meet(f, 1));
}

static void a_head_that_is_gone_blocks_nobody(void **state) {
  struct fixture *f = *state;
  bool freed;
  name(f, 2, "k");
  assert_false(order_head(&f->order, f->task[2].order_key, 1)); /* as the table of heads says after a take-over */
  assert_true(order_blocked(&f->order, &f->task[2]));
  order_heads_begin(&f->order);
  assert_false(order_heads_end(&f->order, &freed));
  assert_true(freed);
  assert_false(meet(f, 2)); /* there may be some before it */
  assert_true(come_back(f));
  assert_true(meet(f, 2));
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  assert_null(f->order.keys);
}

/* Of several heads the first counts; when it ends here the table is asked about the others before anybody goes. */
static void the_first_of_several_heads_counts(void **state) {
  struct fixture *f = *state;
  bool freed;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  order_heads_begin(&f->order);
  for (uint64_t id = 1; id <= 2; id++)
    assert_false(order_head(&f->order, f->task[id].order_key, id));
  assert_false(order_heads_end(&f->order, &freed));
  assert_false(freed);
  assert_true(order_blocked(&f->order, &f->task[2]) && !order_blocked(&f->order, &f->task[1]));
  assert_true(meet(f, 1));
  assert_false(f->order.unsure);
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_true(f->order.unsure);
}

/* Many heads are read in parts: until a key's own part is read, it is known that it has another one. */
static void other_heads_are_not_forgotten_while_heads_are_read(void **state) {
  struct fixture *f = *state;
  bool freed;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k");
  for (uint64_t id = 1; id <= 2; id++)
    assert_false(order_head(&f->order, f->task[id].order_key, id));
  order_heads_begin(&f->order);
  assert_true(meet(f, 1));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_true(f->order.unsure); /* the table is asked before 3 may go */
  f->order.unsure = false;
  order_heads_begin(&f->order);
  assert_false(order_head(&f->order, f->task[2].order_key, 2));
  assert_false(order_heads_end(&f->order, &freed));
  assert_true(meet(f, 2));
  (void)order_leave(&f->order, &f->flight[2], ORDER_OVER);
  assert_false(f->order.unsure); /* it was the only one by then */
}

/* Another daemon's task has moved, and is the head from then on: whoever waits here meets it by a sweep. */
static void a_head_elsewhere_stops_those_that_wait(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++)
    name(f, id, "k"), meet(f, id);
  assert_true(order_head(&f->order, f->task[1].order_key, 9));
  assert_false(order_knows(&f->order, 2));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_AGAIN));
  assert_false(order_knows(&f->order, 1));
  assert_true(order_blocked(&f->order, &f->task[1]));
}

/* Plain SQL gives rows of several shards the same key. When the shard of the one whose turn it is is lost, the turn
 * goes on to the others; they used to wait for ever, and all that came later with them. */
static void a_lost_shard_gives_the_turn_to_the_others(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 4; id++) {
    name(f, id, "k");
    f->task[id].shard = id == 2 || id == 3 ? 2 : 1;
    meet(f, id);
  }
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER)); /* 2 is called */
  assert_false(order_forget_shards(&f->order, 1u << 2));
  assert_false(order_knows(&f->order, 3));
  assert_int_equal(called(f), 4);
  assert_true(meet(f, 4));
  assert_false(order_leave(&f->order, &f->flight[4], ORDER_OVER));
  assert_null(f->order.keys);
}

/* A claimed row may have got another key between reading and claiming: its own task keeps the key's turn, and leaving
 * without ever having entered ends nobody else's. (Entering used to replace the flight, and leaving twice crashed.) */
static void a_key_that_is_taken_is_entered_by_nobody_else(void **state) {
  struct fixture *f = *state;
  name(f, 1, "k");
  name(f, 2, "k");
  name(f, 3, "unheard of");
  assert_true(meet(f, 1));
  assert_false(order_enter(&f->order, &f->flight[2]));
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  assert_false(order_may_go(&f->order, &f->task[2]));
  assert_false(order_leave(&f->order, &f->flight[3], ORDER_OVER));
  assert_false(order_block(&f->order, &f->task[3]));
  assert_false(order_blocked_done(&f->order, &f->task[3]));
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_null(f->order.keys);
}

/* Rows that wait are known by their ids alone, and plain SQL may change their keys meanwhile: two whose turn came, each
 * by then of the other's key, must not wait for each other for ever. */
static void those_that_changed_keys_do_not_wait_for_each_other(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 6; id++) {
    name(f, id, id % 2 ? "odd" : "even");
    (void)meet(f, id);
  }
  for (uint64_t id = 3; id <= 6; id++)
    name(f, id, id % 2 ? "even" : "odd");
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_false(order_leave(&f->order, &f->flight[2], ORDER_OVER));
  for (size_t gone = 0, calls = 0; gone < 4; calls++) {
    uint64_t id = called(f);
    assert_true(id > 0 && calls < 20);
    (void)!order_changed(&f->order, &f->task[id]); /* then a sweep meets it */
    if (meet(f, id)) {
      assert_false(order_missed(&f->order, id, false));
      assert_false(order_leave(&f->order, &f->flight[id], ORDER_OVER));
      gone++;
    } else {
      assert_false(order_missed(&f->order, id, true));
    }
  }
  assert_null(f->order.keys);
  assert_null(f->order.waiting);
}

/* A row has the id of one that was called: it is another task, whose turn comes when a sweep has met those before it.
 */
static void the_id_of_another_task_gives_no_turn(void **state) {
  struct fixture *f = *state;
  for (uint64_t id = 1; id <= 3; id++) {
    name(f, id, "k");
    f->task[id].message_id = (struct duebox_bytes){"before", 6};
    (void)meet(f, id);
  }
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_int_equal(called(f), 2);
  assert_false(order_changed(&f->order, &f->task[2]));
  f->task[2].message_id = f->task[3].message_id = (struct duebox_bytes){"after", 5};
  assert_false(order_changed(&f->order, &f->task[3])); /* it only waited */
  assert_true(order_changed(&f->order, &f->task[2]));
  assert_false(order_knows(&f->order, 2) || order_knows(&f->order, 3));
  assert_null(f->order.keys);
}

/* Nobody passes a task that another instance has claimed, nor what may have become of it; taken back here it goes
 * first, as any other claim. */
static void a_claim_elsewhere_holds_its_key(void **state) {
  struct fixture *f = *state;
  const struct duebox_bytes key = {"k", 1};
  for (uint64_t id = 1; id <= 4; id++)
    name(f, id, "k");
  order_reserve(&f->order, &f->task[2]);
  assert_false(order_missed(&f->order, 2, true));
  order_claim(&f->order, key, 1);
  order_claim(&f->order, key, 1);
  assert_int_equal(f->order.elsewhere, 1);
  assert_int_equal(called(f), 0);
  assert_false(meet(f, 2));
  assert_false(meet(f, 3));
  order_claims_begin(&f->order);
  order_claim(&f->order, key, 1);
  assert_false(order_claims_end(&f->order));
  assert_false(order_may_go(&f->order, &f->task[2]));
  order_claims_begin(&f->order);
  assert_true(order_claims_end(&f->order)); /* a sweep meets 2 and 3, or whoever is before them now */
  assert_int_equal(called(f), 0);
  assert_null(f->order.keys);
  assert_null(f->order.waiting);

  order_claim(&f->order, key, 1);
  assert_false(meet(f, 2));
  assert_true(order_enter(&f->order, &f->flight[1])); /* its instance is dead */
  order_claim(&f->order, key, 1);                     /* that is not written yet */
  assert_int_equal(f->order.elsewhere, 0);
  assert_false(order_leave(&f->order, &f->flight[1], ORDER_OVER));
  assert_int_equal(called(f), 2);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(one_of_a_key_goes_at_a_time),
      ROW(tasks_without_a_key_never_wait),
      ROW(the_urgent_and_the_early_are_called_first),
      ROW(one_that_was_handed_back_goes_again_before_the_others),
      ROW(one_that_is_gone_gives_its_turn_on),
      ROW(those_behind_one_that_is_gone_may_be_gone_too),
      ROW(called_ones_of_all_shards_are_read_together),
      ROW(a_reserved_turn_keeps_others_of_the_batch_back),
      ROW(a_claim_taken_back_goes_before_the_called_one),
      ROW(a_long_queue_is_remembered_while_there_is_room),
      ROW(a_long_queue_leaves_room_for_other_keys),
      ROW(who_waits_is_counted_by_shard),
      ROW(what_finds_no_room_is_swept_for_in_order),
      ROW(a_lost_shard_is_forgotten),
      ROW(a_lost_shard_gives_the_turn_to_the_others),
      ROW(a_failed_head_blocks_its_key),
      ROW(nobody_passes_one_that_is_being_blocked),
      ROW(nobody_passes_those_that_come_back),
      ROW(what_is_blocked_meanwhile_is_asked_for_again),
      ROW(keys_of_a_new_shard_wait_until_it_was_asked),
      ROW(the_first_of_several_heads_counts),
      ROW(other_heads_are_not_forgotten_while_heads_are_read),
      ROW(a_head_elsewhere_stops_those_that_wait),
      ROW(a_head_that_is_gone_blocks_nobody),
      ROW(a_key_that_is_taken_is_entered_by_nobody_else),
      ROW(those_that_changed_keys_do_not_wait_for_each_other),
      ROW(the_id_of_another_task_gives_no_turn),
      ROW(a_claim_elsewhere_holds_its_key),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
