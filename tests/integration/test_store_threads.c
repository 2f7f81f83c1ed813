/* SPDX-License-Identifier: MIT
 *
 * Several sessions at once, each on its thread: races for shards, and results that meet the settling of their rows.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops

/* Calls of the store on another thread, where cmocka's assertions may not be used: the first failure is kept. */
struct worker {
  struct fixture *f;
  pthread_t thread;
  const char *name;
  struct store_session *ss;
  struct err err;
  bool failed;
};

static bool works(struct worker *w, enum store_status status) {
  w->failed = w->failed || status != STORE_OK;
  return !w->failed;
}

static bool open_session(struct worker *w) {
  struct fixture *f = w->f;
  return works(w, OPS->open(f->store.self, w->name, 0, &w->ss, &w->err));
}

static void join(struct worker *w) {
  struct fixture *f = w->f;
  assert_int_equal(pthread_join(w->thread, NULL), 0);
  OPS->close(&w->ss);
  if (w->failed)
    fail_msg("%s: %s", w->name, w->err.text);
}

static void start(struct worker *w, struct fixture *f, const char *name, void *(*run)(void *)) {
  w->f = f;
  w->name = name;
  assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

/* --- the race for shards --- */

enum { ROUNDS = 50 };

struct racer {
  struct worker w; /* first: a worker's argument is its racer */
  pthread_barrier_t *barrier;
  uint64_t epochs[ROUNDS]; /* 0 = the other was quicker */
};

static void *race(void *arg) {
  struct racer *r = arg;
  struct fixture *f = r->w.f;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  open_session(&r->w);
  for (int i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(r->barrier);
    if (!r->w.failed)
      works(&r->w, OPS->shards(r->w.ss, rows, &count, &(uint64_t){0}, &r->w.err));
    pthread_barrier_wait(r->barrier);
    if (!r->w.failed) {
      enum store_status status = OPS->acquire(r->w.ss, r->w.name, &rows[0], 60000, &r->epochs[i], &r->w.err);
      if (status != STORE_BUSY) /* the other is at it */
        works(&r->w, status);
    }
    pthread_barrier_wait(r->barrier);
    struct shard_lease lease = {.shard = 0, .epoch = r->epochs[i], .owner = r->w.name};
    if (!r->w.failed && lease.epoch)
      works(&r->w, OPS->give_back(r->w.ss, r->w.name, &lease, false, &r->w.err));
  }
  return NULL;
}

static void one_of_two_wins_every_time(void **state) {
  struct fixture *f = *state;
  pthread_barrier_t barrier;
  struct racer *r = calloc(2, sizeof *r);
  assert_non_null(r);
  assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
  ok(f, OPS->give_back(f->ss, "me", &f->leases[0], false, &f->err));
  r[0].barrier = r[1].barrier = &barrier;
  start(&r[0].w, f, "one", race);
  start(&r[1].w, f, "two", race);
  join(&r[0].w);
  join(&r[1].w);
  uint64_t last = f->leases[0].epoch;
  for (int i = 0; i < ROUNDS; i++) {
    assert_true(!r[0].epochs[i] != !r[1].epochs[i]);
    uint64_t epoch = r[0].epochs[i] + r[1].epochs[i];
    assert_true(epoch > last);
    last = epoch;
  }
  pthread_barrier_destroy(&barrier);
  free(r);
}

/* --- results against settling --- */

enum { TASKS = 4000, BATCH = 200 };

/* Batches that the reader has read, for the two others to take in order. */
struct flow {
  pthread_mutex_t lock;
  pthread_cond_t more;
  struct task_batch *batches[TASKS];
  char ids[TASKS][STORE_ID_MAX + 1];
  size_t count; /* batches */
  size_t read;  /* ids */
  bool ended;
};

struct flow_worker {
  struct worker w;
  struct flow *flow;
};

/* Waits until there are more than `seen` of *counter, or no more will come. Returns how many there are. */
static size_t await_more(struct flow *flow, const size_t *counter, size_t seen) {
  pthread_mutex_lock(&flow->lock);
  while (*counter == seen && !flow->ended)
    pthread_cond_wait(&flow->more, &flow->lock);
  size_t now = *counter;
  pthread_mutex_unlock(&flow->lock);
  return now;
}

static void pass_on(struct flow *flow, struct task_batch *batch) {
  pthread_mutex_lock(&flow->lock);
  for (size_t i = 0; i < batch->count; i++)
    snprintf(flow->ids[flow->read++], STORE_ID_MAX + 1, "%s", batch->tasks[i].message_id.data);
  flow->batches[flow->count++] = batch;
  pthread_cond_broadcast(&flow->more);
  pthread_mutex_unlock(&flow->lock);
}

static void *read_all(void *arg) {
  struct flow_worker *r = arg;
  struct fixture *f = r->w.f;
  open_session(&r->w);
  for (uint8_t shard = 0; shard < SHARDS; shard++) {
    struct store_range range = {.state = TASK_SCHEDULED, .shard = shard, .priority = 5, .route = "r", .limit = BATCH};
    struct task_batch *batch;
    int64_t now;
    while (!r->w.failed &&
           works(&r->w, OPS->read(r->w.ss, &range, 1, 0, (struct store_limit){.payload = 1000, .bytes = INT64_MAX},
                                  &batch, (int64_t[8]){0}, &now, &r->w.err)) &&
           batch) {
      const struct task *last = &batch->tasks[batch->count - 1];
      range.after = (struct store_cursor){.next_us = last->due_us, .id = last->id};
      pass_on(r->flow, batch);
    }
  }
  pthread_mutex_lock(&r->flow->lock);
  r->flow->ended = true;
  pthread_cond_broadcast(&r->flow->more);
  pthread_mutex_unlock(&r->flow->lock);
  return NULL;
}

/* Moves those that met a row locked by the other for longer than the store waits to the front. Returns how many. */
static size_t gather_busy(struct decision *decisions, size_t count) {
  size_t busy = 0;
  for (size_t i = 0; i < count; i++)
    if (decisions[i].busy)
      decisions[busy++] = decisions[i];
  return busy;
}

/* Records what was published and releases the rows, whose memory the reader made. */
static void *record_published(void *arg) {
  struct flow_worker *s = arg;
  struct fixture *f = s->w.f;
  struct decision decisions[BATCH];
  bool lost[SHARDS];
  size_t done = 0, there;
  open_session(&s->w);
  while ((there = await_more(s->flow, &s->flow->count, done)) > done && !s->w.failed) {
    struct task_batch *batch = s->flow->batches[done++];
    size_t count = batch->count;
    for (size_t i = 0; i < count; i++)
      decisions[i] = (struct decision){.id = batch->tasks[i].id,
                                       .message_id = batch->tasks[i].message_id,
                                       .shard = batch->tasks[i].shard,
                                       .event = EVENT_PUBLISHED,
                                       .attempt = 1,
                                       .delay_us = INT64_C(3600000000),
                                       .published_us = 1};
    for (size_t left = count; left > 0 && !s->w.failed; left = gather_busy(decisions, left)) {
      enum store_status status;
      do
        status = OPS->settle(s->w.ss, f->leases, SHARDS, decisions, left, lost, &s->w.err);
      while (status == STORE_BUSY);
      works(&s->w, status);
    }
    release(batch);
  }
  return NULL;
}

static enum result_fate accept(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  *out = (struct decision){.event = EVENT_DONE, .attempt = 1, .keep_us = INT64_C(3600000000)};
  return RESULT_APPLIED;
}

/* Each is applied, or met a row that the other had locked for longer than the store waits; those come again. */
static size_t check_fates(struct worker *w, struct store_result *results, size_t count) {
  size_t busy = 0;
  for (size_t i = 0; i < count && !w->failed; i++)
    if (results[i].fate == RESULT_BUSY)
      results[busy++] = results[i];
    else if (results[i].fate != RESULT_APPLIED)
      w->failed = !err_set(&w->err, 0, "result %s has fate %d", results[i].record.message_id, (int)results[i].fate);
  return busy;
}

static void *answer(void *arg) {
  struct flow_worker *a = arg;
  struct fixture *f = a->w.f;
  struct store_result results[BATCH];
  size_t done = 0, there;
  open_session(&a->w);
  while ((there = await_more(a->flow, &a->flow->read, done)) > done && !a->w.failed) {
    size_t count = there - done < BATCH ? there - done : BATCH;
    for (size_t i = 0; i < count; i++) {
      results[i] = (struct store_result){.record = {.attempt = 1, .progress = -1}, .body = {"", 0}};
      memcpy(results[i].record.message_id, a->flow->ids[done + count - 1 - i], STORE_ID_MAX + 1);
    }
    for (size_t left = count; left > 0 && !a->w.failed;) {
      enum store_status status;
      do
        status = OPS->settle_results(a->w.ss, results, left, accept, NULL, &a->w.err);
      while (status == STORE_BUSY);
      works(&a->w, status);
      left = check_fates(&a->w, results, left);
    }
    done += count;
  }
  return NULL;
}

static void results_meet_the_record_of_their_publishing(void **state) {
  struct fixture *f = *state;
  struct flow *flow = calloc(1, sizeof *flow);
  assert_non_null(flow);
  pthread_mutex_init(&flow->lock, NULL);
  pthread_cond_init(&flow->more, NULL);
  sql(f, "INSERT INTO outbox (route, payload, shard, due_at) SELECT 'r', 'x', seq %% %d, '2020-01-01' FROM seq_1_to_%d",
      SHARDS, TASKS);
  struct flow_worker reader = {.flow = flow}, settler = {.flow = flow}, answerer = {.flow = flow};
  start(&reader.w, f, "reader", read_all);
  start(&settler.w, f, "settler", record_published);
  start(&answerer.w, f, "answerer", answer);
  join(&reader.w);
  join(&settler.w);
  join(&answerer.w);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
  assert_int_equal(ask(f, "SELECT COUNT(DISTINCT message_id) FROM outbox_history WHERE state = 'done'"), TASKS);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), TASKS);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), TASKS);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE published_at IS NULL"), 0);
  free(flow);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(one_of_two_wins_every_time),
      TEST(results_meet_the_record_of_their_publishing),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
