/* SPDX-License-Identifier: MIT
 *
 * Flights and what carries them: a token completes once whoever tries, lists and mailboxes lose nothing, leases end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/leases.h"
#include "core/mailbox.h"

static void release(struct task_batch *batch) {
  free(batch->tasks);
  free(batch);
}

static struct task *make_task(uint64_t id) {
  struct task_batch *batch = calloc(1, sizeof *batch);
  assert_non_null(batch);
  batch->tasks = calloc(1, sizeof *batch->tasks);
  assert_non_null(batch->tasks);
  atomic_init(&batch->open, 1);
  batch->count = 1;
  batch->release = release;
  batch->tasks[0].id = id;
  batch->tasks[0].batch = batch;
  return &batch->tasks[0];
}

static void a_token_completes_once(void **state) {
  struct flight_table table = {0};
  struct flight *flight = flight_take(&table, make_task(1));
  assert_non_null(flight);
  assert_ptr_equal(flight_by_id(&table, 1), flight);
  assert_int_equal(flight_token(flight), 0); /* not open yet */
  uint64_t token = flight_open(flight);
  assert_int_equal(flight_token(flight), token);
  assert_ptr_equal(flight_complete(&table, token), flight);
  assert_null(flight_complete(&table, token));
  flight_give_back(&table, flight);
  assert_null(flight_by_id(&table, 1));
  /* The slot is used again: the old token means nothing to it. */
  struct flight *again = flight_take(&table, make_task(2));
  assert_ptr_equal(again, flight);
  uint64_t fresh = flight_open(again);
  assert_true(fresh != token);
  assert_null(flight_complete(&table, token));
  assert_ptr_equal(flight_complete(&table, fresh), again);
  flight_give_back(&table, again);
  flight_table_free(&table);
}

/* Row ids are handed out again after a failover or a TRUNCATE: the task that has one now is another, and is not kept
 * from going because the one before is in flight. */
static void tasks_with_one_row_id_are_told_apart(void **state) {
  struct flight_table table = {0};
  static const char *const names[] = {"a", "b", "c"};
  struct flight *flight[3];
  for (int order = 0; order < 3; order++) {
    for (int i = 0; i < 3; i++) {
      struct task *task = make_task(7);
      task->message_id = (struct duebox_bytes){names[i], 1};
      assert_null(flight_of(&table, task));
      flight[i] = flight_take(&table, task);
      assert_ptr_equal(flight_of(&table, task), flight[i]);
    }
    for (int i = 0; i < 3; i++) {
      struct flight *gone = flight[(order + i) % 3];
      const struct task same = {.id = 7, .message_id = gone->task->message_id};
      assert_ptr_equal(flight_of(&table, &same), gone);
      flight_give_back(&table, gone);
      assert_null(flight_of(&table, &same));
      assert_true(!flight_by_id(&table, 7) == (i == 2));
    }
  }
  flight_table_free(&table);
}

static void tokens_out_of_nowhere_are_nothing(void **state) {
  struct flight_table table = {0};
  assert_null(flight_complete(&table, 0));
  assert_null(flight_complete(&table, UINT64_MAX));
  assert_null(flight_complete(&table, 1ull << 32 | 5));
  struct flight *flight = flight_take(&table, make_task(1));
  assert_non_null(flight);
  for (uint64_t index = 0; index < FLIGHT_CHUNK; index++)
    assert_null(flight_complete(&table, 1ull << 32 | index));
  flight_give_back(&table, flight);
  flight_table_free(&table);
}

static void many_flights_keep_their_places(void **state) {
  enum { N = 3 * FLIGHT_CHUNK + 1 };
  struct flight_table table = {0};
  struct flight_list list = {0};
  for (uint64_t id = 1; id <= N; id++) {
    struct flight *flight = flight_take(&table, make_task(id));
    assert_non_null(flight);
    flight_list_add(&list, flight);
  }
  assert_int_equal(list.count, N);
  for (uint64_t id = 1; id <= N; id++)
    assert_int_equal(flight_by_id(&table, id)->id, id);
  struct flight *flight;
  uint64_t expected = 1;
  while ((flight = flight_list_pop(&list))) {
    assert_int_equal(flight->id, expected++);
    flight_give_back(&table, flight);
  }
  assert_int_equal(expected, N + 1);
  flight_table_free(&table);
}

static void outcomes_are_copied_and_cut(void **state) {
  struct flight_table table = {0};
  struct flight *flight = flight_take(&table, make_task(1));
  assert_non_null(flight);
  char class[200], message[9000], record[] = "{\"a\":1}";
  memset(class, 'c', sizeof class);
  memset(message, 'm', sizeof message);
  class[sizeof class - 1] = message[sizeof message - 1] = '\0';
  flight_set_outcome(flight, &DUEBOX_OUTCOME(.cls = DUEBOX_RETRY, .error_class = class, .message = message,
                                             .record = record, .record_len = sizeof record - 1));
  memset(record, 'x', sizeof record - 1);
  assert_int_equal(strlen(flight->outcome.error_class), 63);
  assert_int_equal(strlen(flight->outcome.message), 4095);
  assert_string_equal(flight->outcome.record, "{\"a\":1}");
  flight_give_back(&table, flight);
  flight_table_free(&table);
}

/* An endpoint's or broker's words end in last_error, which people print on terminals. */
static void messages_hold_nothing_that_moves_a_terminal(void **state) {
  struct flight_table table = {0};
  struct flight *flight = flight_take(&table, make_task(1));
  assert_non_null(flight);
  flight_set_outcome(flight,
                     &DUEBOX_OUTCOME(.cls = DUEBOX_RETRY, .message = "a\x1b[31m\xe2\x80\xaeZ\xff\r\n\xc3\xa4\xc3"));
  assert_string_equal(flight->outcome.message, "a?[31m???Z??\n\xc3\xa4?");
  flight_give_back(&table, flight);
  flight_table_free(&table);
}

/* Plugins that were built before the last field of the struct go on: nothing behind what they give is read. */
static void outcomes_of_older_plugins_end_where_their_struct_ends(void **state) {
  struct flight_table table = {0};
  struct flight *flight = flight_take(&table, make_task(1));
  size_t size = offsetof(struct duebox_outcome, blameless);
  struct duebox_outcome now = DUEBOX_OUTCOME_AFTER(7, .cls = DUEBOX_UNKNOWN, .blameless = true);
  struct duebox_outcome *older = malloc(size); /* AddressSanitizer watches its end */
  assert_non_null(flight);
  assert_non_null(older);
  flight_set_outcome(flight, &now);
  assert_true(flight->outcome.blameless);
  now.struct_size = size;
  memcpy(older, &now, size);
  flight_set_outcome(flight, older);
  assert_int_equal(flight->outcome.cls, DUEBOX_UNKNOWN);
  assert_int_equal(flight->outcome.retry_after_ms, 7);
  assert_false(flight->outcome.blameless);
  free(older);
  now.struct_size = offsetof(struct duebox_outcome, recalled); /* of 1.3 to 1.9, with padding behind blameless */
  now.recalled = true;
  flight_set_outcome(flight, &now);
  assert_true(flight->outcome.blameless);
  assert_false(flight->outcome.recalled);
  now.struct_size = sizeof now;
  flight_set_outcome(flight, &now);
  assert_true(flight->outcome.recalled);
  flight_give_back(&table, flight);
  flight_table_free(&table);
}

struct race {
  struct flight_table *table;
  uint64_t *tokens;
  size_t count;
  atomic_size_t won;
};

static void *complete_all(void *arg) {
  struct race *race = arg;
  for (size_t i = 0; i < race->count; i++)
    if (flight_complete(race->table, race->tokens[i]))
      atomic_fetch_add(&race->won, 1);
  return NULL;
}

/* Rows with a timeout_ms of 1 suspended a route whose endpoint was well and 40 ms away. */
static void the_time_of_a_row_says_nothing_of_the_destination(void **state) {
  struct task task = {.timeout_ms = 20};
  struct flight flight = {.task = &task, .handed_us = 1000, .completed_us = 1000 + 20 * 1000};
  assert_true(flight_own_time_is_up(&flight, 30 * 1000));
  assert_false(flight_own_time_is_up(&flight, 20)); /* all that the route gives */
  flight.completed_us--;                            /* refused before */
  assert_false(flight_own_time_is_up(&flight, 30 * 1000));
  task.timeout_ms = 0;
  assert_false(flight_own_time_is_up(&flight, 30 * 1000));
}

static void four_threads_complete_each_token_once(void **state) {
  enum { N = 2000 };
  struct flight_table table = {0};
  uint64_t tokens[N];
  struct race race = {.table = &table, .tokens = tokens, .count = N};
  for (uint64_t i = 0; i < N; i++) {
    struct flight *flight = flight_take(&table, make_task(i + 1));
    assert_non_null(flight);
    tokens[i] = flight_open(flight);
  }
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, complete_all, &race), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&race.won), N);
  for (uint64_t i = 0; i < N; i++)
    flight_give_back(&table, flight_by_id(&table, i + 1));
  flight_table_free(&table);
}

static void a_mailbox_waits_and_is_poked(void **state) {
  struct mailbox box;
  struct flight_table table = {0};
  struct flight_list out = {0}, in = {0};
  mailbox_init(&box);
  int64_t began = clock_mono_us();
  assert_false(mailbox_take(&box, began + 20 * 1000, &out));
  assert_true(clock_mono_us() >= began + 20 * 1000);
  mailbox_poke(&box);
  assert_true(mailbox_take(&box, clock_mono_us() + 60 * 1000 * 1000, &out));
  assert_null(out.head);
  struct flight *flight = flight_take(&table, make_task(1));
  assert_non_null(flight);
  flight_list_add(&in, flight);
  mailbox_put(&box, &in);
  assert_null(in.head);
  assert_int_equal(mailbox_count(&box), 1);
  assert_false(mailbox_take(&box, 0, &out));
  assert_ptr_equal(flight_list_pop(&out), flight);
  flight_give_back(&table, flight);
  flight_table_free(&table);
  mailbox_destroy(&box);
}

/* A moment at which the machine has been suspended for `suspended_us` in all. */
static struct instant at(int64_t mono_us, int64_t suspended_us) {
  return (struct instant){.mono_us = mono_us, .boot_us = mono_us + suspended_us};
}

static void a_lease_is_safe_until_its_time_and_under_its_epoch(void **state) {
  struct leases leases;
  leases_init(&leases);
  assert_false(leases_safe(&leases, 3, 0, at(5, 0))); /* nobody's */
  leases_gain(&leases, 3, 9, at(0, 0), 100, true);
  assert_true(leases_safe(&leases, 3, 9, at(99, 0)));
  assert_false(leases_safe(&leases, 3, 9, at(100, 0)));
  assert_false(leases_safe(&leases, 3, 8, at(99, 0)));
  const struct shard_lease former = {.shard = 3, .epoch = 8}, lease = {.shard = 3, .epoch = 9};
  leases_renewed(&leases, former, at(100, 0), 100); /* an answer that comes too late */
  assert_false(leases_safe(&leases, 3, 9, at(100, 0)));
  leases_renewed(&leases, lease, at(100, 0), 100);
  assert_true(leases_safe(&leases, 3, 9, at(199, 0)));
  struct shard_lease held[STORE_SHARDS_MAX];
  assert_int_equal(leases_owned(&leases, held), 1);
  assert_int_equal(held[0].shard, 3);
  assert_int_equal(held[0].epoch, 9);
  assert_false(leases_lose(&leases, former, NULL));
  assert_true(leases_lose(&leases, lease, NULL));
  leases_renewed(&leases, lease, at(150, 0), 100); /* it was given back meanwhile */
  assert_false(leases_safe(&leases, 3, 9, at(151, 0)));
  assert_false(leases_safe(&leases, 3, 0, at(151, 0)));
  assert_int_equal(leases_owned(&leases, held), 0);
  leases_destroy(&leases);
}

/* While a machine is suspended, its leases end and others take its shards: when it comes back it must send nothing that
 * it had in memory before it has asked the database. Monotonic time stands still meanwhile, so it cannot tell. */
static void a_suspended_machine_sends_nothing_under_old_leases(void **state) {
  enum { SECOND = 1000000 };
  struct leases leases;
  const struct shard_lease lease = {.shard = 3, .epoch = 9};
  leases_init(&leases);
  leases_gain(&leases, 3, 9, at(0, 0), 10 * SECOND, false);
  assert_true(leases_safe(&leases, 3, 9, at(1 * SECOND, 0)));
  assert_false(leases_safe(&leases, 3, 9, at(1 * SECOND, 60 * SECOND)));
  assert_false(leases_safe(&leases, 3, 9, at(1 * SECOND, 2 * SECOND))); /* in doubt, though its time is not over */
  leases_renewed(&leases, lease, at(1 * SECOND, 0), 10 * SECOND);       /* what was sent before proves nothing */
  assert_false(leases_safe(&leases, 3, 9, at(1 * SECOND, 2 * SECOND)));
  leases_renewed(&leases, lease, at(1 * SECOND, 60 * SECOND), 10 * SECOND);
  assert_true(leases_safe(&leases, 3, 9, at(2 * SECOND, 60 * SECOND)));
  leases_destroy(&leases);
}

/* A database's clock that is set forward ends leases earlier than we count; so does a virtual machine that is stopped,
 * whose own clocks notice nothing. */
static void a_clock_that_jumps_puts_leases_in_doubt(void **state) {
  enum { SECOND = 1000000 };
  struct leases leases;
  struct clock_bounds bounds = {0};
  const struct shard_lease lease = {.shard = 3, .epoch = 9};
  leases_init(&leases);
  leases_gain(&leases, 3, 9, at(0, 0), 10 * SECOND, false);
  assert_int_equal(clock_bounds_moved(&bounds, 100 * SECOND, 0, SECOND), 0);
  assert_int_equal(clock_bounds_moved(&bounds, 101 * SECOND, 1 * SECOND, 1 * SECOND + 5), 0);
  assert_true(clock_bounds_moved(&bounds, 112 * SECOND, 2 * SECOND, 2 * SECOND + 5) > 9 * SECOND);
  assert_int_equal(clock_bounds_moved(&bounds, 113 * SECOND, 3 * SECOND, 3 * SECOND + 5), 0);
  assert_true(clock_bounds_moved(&bounds, 104 * SECOND, 4 * SECOND, 4 * SECOND + 5) < -9 * SECOND);
  leases_doubt(&leases, 4 * SECOND);
  assert_false(leases_safe(&leases, 3, 9, at(4 * SECOND, 0)));
  leases_renewed(&leases, lease, at(3 * SECOND, 0), 10 * SECOND); /* sent before it */
  assert_false(leases_safe(&leases, 3, 9, at(4 * SECOND, 0)));
  leases_renewed(&leases, lease, at(5 * SECOND, 0), 10 * SECOND);
  assert_true(leases_safe(&leases, 3, 9, at(6 * SECOND, 0)));
  leases_destroy(&leases);
}

/* Nobody leases the shard of tasks that are bound to a host: whoever gives no sign of life is dead for the others, so
 * it must not send either. */
static void bound_tasks_need_a_sign_of_life(void **state) {
  struct leases leases;
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  leases_init(&leases);
  assert_false(leases_safe(&leases, SHARD_BOUND, 1, at(0, 0)));
  leases_renewed(&leases, bound, at(0, 0), 100);
  assert_true(leases_safe(&leases, SHARD_BOUND, 1, at(99, 0)));
  assert_false(leases_safe(&leases, SHARD_BOUND, 1, at(100, 0)));
  leases_destroy(&leases);
}

/* After another daemon of our name nothing holds that is known of bound tasks: they are read anew only when the
 * scheduler has noticed. */
static void a_name_that_was_lost_is_taken_again_when_that_was_seen(void **state) {
  struct leases leases;
  struct lease_slot view[STORE_SHARDS_MAX];
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  leases_init(&leases);
  leases_view(&leases, view);
  assert_int_equal(view[SHARD_BOUND].stage, LEASE_SHUT);
  assert_true(leases_hold_name(&leases, true));
  leases_renewed(&leases, bound, at(0, 0), 100);
  leases_view(&leases, view);
  assert_int_equal(view[SHARD_BOUND].stage, LEASE_STAYS);
  assert_false(leases_hold_name(&leases, false));
  assert_false(leases_safe(&leases, SHARD_BOUND, 1, at(1, 0)));
  assert_false(leases_hold_name(&leases, true));
  leases_view(&leases, view);
  assert_int_equal(view[SHARD_BOUND].stage, LEASE_SHUT);
  assert_true(leases_hold_name(&leases, true));
  leases_view(&leases, view);
  assert_int_equal(view[SHARD_BOUND].stage, LEASE_STAYS);
  leases_destroy(&leases);
}

static void a_shard_is_given_back_only_when_shut_quiet_and_empty(void **state) {
  const struct shard_lease lease = {.shard = 1, .epoch = 4}, former = {.shard = 1, .epoch = 3};
  struct leases leases;
  struct lease_slot view[STORE_SHARDS_MAX];
  leases_init(&leases);
  leases_gain(&leases, 1, 4, at(0, 0), 100, false);
  leases_view(&leases, view);
  assert_false(leases_give_back(&leases, lease, &(bool){false})); /* not leaving */
  leases_leave(&leases, 1, 10);
  leases_view(&leases, view);
  assert_int_equal(view[1].stage, LEASE_EMPTIES);
  assert_false(leases_give_back(&leases, lease, &(bool){false})); /* quick lanes read it */
  while (leases_step(&leases, 1, false, 10))
    ;
  assert_false(leases_give_back(&leases, lease, &(bool){false})); /* the scheduler may still read it */
  atomic_store(&leases.in_flight[1], 1);
  leases_view(&leases, view);
  assert_int_equal(view[1].stage, LEASE_SHUT);
  assert_false(leases_give_back(&leases, lease, &(bool){false})); /* one task is out */
  atomic_store(&leases.in_flight[1], 0);
  assert_false(leases_give_back(&leases, former, &(bool){false}));
  assert_int_equal(leases_staying(&leases), 0);
  assert_true(leases_give_back(&leases, lease, &(bool){false}));
  assert_int_equal(leases_held(&leases, (struct shard_lease[STORE_SHARDS_MAX]){0}), 1); /* SHARD_BOUND */
  leases_destroy(&leases);
}

static void a_hand_over_is_called_off_after_its_limit(void **state) {
  struct leases leases;
  struct lease_slot view[STORE_SHARDS_MAX];
  leases_init(&leases);
  leases_gain(&leases, 1, 4, at(0, 0), 100, false);
  leases_leave(&leases, 1, 10);
  leases_stay(&leases, 100, 95); /* not long enough yet */
  assert_int_equal(leases_staying(&leases), 0);
  leases_stay(&leases, 106, 95); /* called off: it is read again */
  assert_int_equal(leases_staying(&leases), 1);
  leases_view(&leases, view);
  assert_int_equal(view[1].stage, LEASE_STAYS);
  assert_false(leases_give_back(&leases, (struct shard_lease){.shard = 1, .epoch = 4}, &(bool){false}));
  leases_gain(&leases, 2, 1, at(0, 0), 100, false);
  atomic_store(&leases.in_flight[2], 5);
  uint8_t idlest = 0;
  assert_true(leases_idlest(&leases, 107, &idlest));
  assert_int_equal(idlest, 2); /* the other one rests, although nothing of it is out */
  leases_destroy(&leases);
}

/* Lanes that were quick have something out for long now: they are slow when it is shut next. */
static void a_shut_shard_is_opened_again_soon(void **state) {
  const struct shard_lease lease = {.shard = 1, .epoch = 4};
  struct leases leases;
  struct lease_slot view[STORE_SHARDS_MAX];
  int64_t now = 10;
  leases_init(&leases);
  leases_gain(&leases, 1, 4, at(0, 0), 100, false);
  leases_leave(&leases, 1, now);
  assert_false(leases_step(&leases, 1, true, now)); /* the slowest have something out */
  while (leases_step(&leases, 1, false, now))
    ;
  leases_view(&leases, view);
  assert_int_equal(view[1].stage, LEASE_SHUT);
  assert_false(leases_step(&leases, 1, true, now + LEASE_SHUT_US - 1));
  now += LEASE_SHUT_US;
  assert_true(leases_step(&leases, 1, true, now));
  assert_false(leases_give_back(&leases, lease, &(bool){false})); /* before the scheduler has seen it, too */
  leases_view(&leases, view);
  assert_int_equal(view[1].stage, LEASE_EMPTIES);
  assert_int_equal(view[1].slow_us, LEASE_SLOW_US);
  assert_false(leases_step(&leases, 1, false, now + LEASE_OPEN_US - 1)); /* not all the time */
  assert_true(leases_step(&leases, 1, false, now + LEASE_OPEN_US));
  leases_destroy(&leases);
}

static void one_that_ends_alone_reads_nothing_more(void **state) {
  const struct shard_lease lease = {.shard = 1, .epoch = 4};
  struct leases leases;
  struct lease_slot view[STORE_SHARDS_MAX];
  leases_init(&leases);
  leases_gain(&leases, 1, 4, at(0, 0), 100, false);
  leases_leave(&leases, 1, 10);
  leases_leave_all(&leases, 20, 0);
  leases_view(&leases, view);
  assert_int_equal(view[1].stage, LEASE_SHUT);
  leases_leave_all(&leases, 30, 100); /* the keeper says so in each of its rounds */
  assert_false(leases_step(&leases, 1, true, INT64_MAX - 1));
  assert_true(leases_give_back(&leases, lease, &(bool){false}));
  leases_destroy(&leases);
}

/* It is read until others have seen that they are to take it, and not opened again after that. */
static void one_that_ends_beside_others_empties_for_good(void **state) {
  const struct shard_lease lease = {.shard = 1, .epoch = 4};
  struct leases leases;
  struct lease_slot view[STORE_SHARDS_MAX];
  leases_init(&leases);
  leases_gain(&leases, 1, 4, at(0, 0), 100, false);
  leases_leave_all(&leases, 20, 100);
  leases_view(&leases, view);
  assert_int_equal(view[1].stage, LEASE_EMPTIES);
  assert_int_equal(leases_staying(&leases), 0);
  while (leases_step(&leases, 1, false, 119))
    ;
  leases_leave_all(&leases, 119, 100);
  assert_int_equal(leases_read(&leases), 1);
  assert_false(leases_step(&leases, 1, true, 120)); /* a slow call is out */
  assert_true(leases_step(&leases, 1, false, 120));
  assert_int_equal(leases_read(&leases), 0);
  assert_false(leases_step(&leases, 1, true, INT64_MAX - 1));
  leases_view(&leases, view);
  assert_true(leases_give_back(&leases, lease, &(bool){false}));
  leases_destroy(&leases);
}

struct chosen {
  char key[16];
  UT_hash_handle hh;
};

/* Applications choose ids and keys. uthash stops to expand a table whose keys are all in one place, which is a list
 * then: 50,000 such order keys of one route stopped all routes for a minute. These have the same lower bits by uthash's
 * own hash. */
static void keys_that_are_chosen_to_collide_do_not(void **state) {
  enum { KEYS = 2000, SAME_BITS = 255 };
  struct chosen *all = calloc(KEYS, sizeof *all), *table = NULL;
  assert_non_null(all);
  for (unsigned number = 0, found = 0; found < KEYS; number++) {
    unsigned hash;
    struct chosen *it = &all[found];
    snprintf(it->key, sizeof it->key, "%u", number);
    HASH_JEN(it->key, strlen(it->key), hash);
    if (hash & SAME_BITS)
      continue;
    HASH_ADD_STR(table, key, it);
    found++;
  }
  assert_false(table->hh.tbl->noexpand);
  assert_true(table->hh.tbl->num_buckets >= KEYS / 10);
  HASH_CLEAR(hh, table);
  free(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keys_that_are_chosen_to_collide_do_not),
      cmocka_unit_test(a_token_completes_once),
      cmocka_unit_test(tasks_with_one_row_id_are_told_apart),
      cmocka_unit_test(tokens_out_of_nowhere_are_nothing),
      cmocka_unit_test(many_flights_keep_their_places),
      cmocka_unit_test(outcomes_are_copied_and_cut),
      cmocka_unit_test(messages_hold_nothing_that_moves_a_terminal),
      cmocka_unit_test(outcomes_of_older_plugins_end_where_their_struct_ends),
      cmocka_unit_test(the_time_of_a_row_says_nothing_of_the_destination),
      cmocka_unit_test(four_threads_complete_each_token_once),
      cmocka_unit_test(a_mailbox_waits_and_is_poked),
      cmocka_unit_test(a_lease_is_safe_until_its_time_and_under_its_epoch),
      cmocka_unit_test(a_suspended_machine_sends_nothing_under_old_leases),
      cmocka_unit_test(a_clock_that_jumps_puts_leases_in_doubt),
      cmocka_unit_test(bound_tasks_need_a_sign_of_life),
      cmocka_unit_test(a_name_that_was_lost_is_taken_again_when_that_was_seen),
      cmocka_unit_test(a_shard_is_given_back_only_when_shut_quiet_and_empty),
      cmocka_unit_test(a_hand_over_is_called_off_after_its_limit),
      cmocka_unit_test(a_shut_shard_is_opened_again_soon),
      cmocka_unit_test(one_that_ends_alone_reads_nothing_more),
      cmocka_unit_test(one_that_ends_beside_others_empties_for_good),
  };
  return cmocka_run_group_tests_name("flight", tests, NULL, NULL);
}
