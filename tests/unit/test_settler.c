/* SPDX-License-Identifier: MIT
 *
 * A handler's answer that is to be a result record and is none: it is no success.
 *
 * A settling whose fence is refused: the shard is another's, or nobody's. What is dropped is due again in the table,
 * and it leaves again at most once more: this daemon must have lost the shard before it looks there the next time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/config_ref.h"
#include "core/lane.h"
#include "core/settler.h"

enum { TASKS = 2, MANY = 40, LARGE = 60000, LOST_SHARD = 1, PATIENCE_US = 60 * 1000 * 1000 };

struct fixture {
  struct settler settler;
  struct leases leases;
  struct engine_metrics metrics;
  struct mailbox scheduler;
  struct flight_table flights;
  struct config config;
  struct route_config route;
  struct config_ref ref;
  struct lane lane, rare; /* rare: another route that has something now and then */
  struct task_batch batch;
  struct task tasks[TASKS];
  struct store_ops ops;
  struct store store;
  struct shard_lease told;
  unsigned tellings;
  enum decision_form form; /* of what is settled */
  unsigned kept;           /* in the quarantine */
  char why[128], body[64];
  struct task many[MANY + 2];
  size_t calls, counts[MANY + 1]; /* of settle(), for the tests of batches */
  uint64_t first[MANY + 1];       /* row of each */
  size_t call_of[MANY + 3];       /* the call that had the row */
  bool keyed;                     /* the last one has an order_key */
  bool refuses;                   /* what is not settled is refused, and not busy */
  size_t looks;                   /* at what was not settled, and when each was */
  int64_t began_us[MANY], ended_us[MANY];
};

static enum store_status open_any(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                                  struct err *err) {
  *out = store;
  return STORE_OK;
}

static void close_any(struct store_session **ss) { *ss = NULL; }

/* The rows of both shards can be settled, the lease of one is not ours any more. */
static enum store_status settle(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  if (f->calls <= MANY) {
    for (size_t i = 0; i < count; i++)
      f->call_of[decisions[i].id] = f->calls;
    f->counts[f->calls] = count;
    f->first[f->calls++] = decisions[0].id;
  }
  for (size_t i = 0; i < lease_count; i++)
    lost[i] = leases[i].shard == LOST_SHARD;
  for (size_t i = 0; i < count; i++)
    decisions[i].applied = decisions[i].shard != LOST_SHARD;
  return STORE_OK;
}

static enum store_status settle_results(struct store_session *ss, struct store_result *results, size_t count,
                                        result_decide_fn *decide, void *ctx, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  for (size_t i = 0; i < count; i++) {
    f->kept++;
    snprintf(f->why, sizeof f->why, "%s", results[i].broken);
    snprintf(f->body, sizeof f->body, "%.*s", (int)results[i].body.len, results[i].body.data);
  }
  return STORE_OK;
}

static int64_t db_now(void *engine) { return 1; }

static void shard_lost(void *engine, const struct shard_lease *lease) {
  struct fixture *f = engine;
  f->told = *lease;
  f->tellings++;
  assert_true(leases_lose(&f->leases, *lease, NULL));
}

static void release(struct task_batch *batch) {}

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->ops = (struct store_ops){.open = open_any, .close = close_any, .settle = settle, .settle_results = settle_results};
  f->store = (struct store){.ops = &f->ops, .self = f};
  f->ref = (struct config_ref){.users = 1 + TASKS, .config = &f->config}; /* never the last one */
  f->route = (struct route_config){.name = "work"};
  f->config.routes = &f->route;
  f->config.route_count = 1;
  strcpy(f->lane.name, "work");
  strcpy(f->rare.name, "work");
  mailbox_init(&f->scheduler);
  leases_init(&f->leases);
  f->leases.owner = "me";
  for (int shard = 0; shard < TASKS; shard++)
    leases_gain(&f->leases, (uint8_t)shard, 7, clock_instant(), PATIENCE_US, false);
  f->settler = (struct settler){.store = &f->store,
                                .leases = &f->leases,
                                .metrics = &f->metrics,
                                .scheduler = &f->scheduler,
                                .db_now_us = db_now,
                                .shard_lost = shard_lost,
                                .engine = f,
                                .rows = TASKS};
  struct err err = {0};
  assert_true(settler_start(&f->settler, &err));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  settler_stop(&f->settler, 1000);
  mailbox_destroy(&f->scheduler);
  leases_destroy(&f->leases);
  flight_table_free(&f->flights);
  free(f);
  return 0;
}

/* Sent from memory, one of each shard, and delivered. */
static void deliver(struct fixture *f, const struct duebox_outcome *outcome) {
  struct flight_list done = {0};
  f->batch = (struct task_batch){.open = TASKS, .count = TASKS, .tasks = f->tasks, .release = release};
  for (unsigned i = 0; i < TASKS; i++) {
    f->tasks[i] = (struct task){.id = i + 1,
                                .shard = (uint8_t)i,
                                .state = TASK_SCHEDULED,
                                .attempt_now = 1,
                                .message_id = {"m", 1},
                                .view = {.message_id = "m"},
                                .batch = &f->batch};
    struct flight *flight = flight_take(&f->flights, &f->tasks[i]);
    assert_non_null(flight);
    flight->lane = &f->lane;
    flight->config = &f->ref;
    flight->epoch = 7;
    flight->in_order = f->keyed && i == TASKS - 1;
    flight->end = FLIGHT_OUTCOME;
    flight_set_outcome(flight, outcome);
    flight->handed_us = flight->completed_us = clock_mono_us();
    flight_list_add(&done, flight);
  }
  mailbox_put(&f->settler.in, &done);
}

static void wait_settled(struct fixture *f, struct flight_list *settled) {
  int64_t limit = clock_mono_us() + PATIENCE_US;
  while (settled->count < TASKS && clock_mono_us() < limit)
    mailbox_take(&f->scheduler, limit, settled);
  assert_int_equal(settled->count, TASKS);
}

/* A handler that says "here is a result record" and gives none, or one without a status, has not said that the work is
 * done: the attempt has failed, and people can look at what it gave. An empty one was taken for done, without a word.
 * A body beside "done" that is no record is the destination's own affair. */
static void a_record_without_a_status_is_not_done(void **state) {
  struct fixture *f = *state;
  static const struct {
    const char *record;
    enum duebox_answer answer;
    enum task_event event;
    unsigned kept;
  } rows[] = {{"{\"pad\":\"xx", DUEBOX_ANSWER_RECORD, EVENT_RETRY, TASKS},
              {"", DUEBOX_ANSWER_RECORD, EVENT_RETRY, TASKS},
              {"{\"status\":\"done\",\"pad\":\"xx", DUEBOX_ANSWER_RECORD, EVENT_DONE, TASKS},
              {"{\"status\":\"done\"}", DUEBOX_ANSWER_RECORD, EVENT_DONE, 0},
              {"{\"pad\":\"xx", DUEBOX_ANSWER_DONE, EVENT_DONE, 0},
              {"{}", DUEBOX_ANSWER_LATER, EVENT_PUBLISHED, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct flight_list settled = {0};
    struct flight *flight;
    f->kept = 0;
    deliver(f, &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = rows[i].answer, .record = rows[i].record,
                               .record_len = strlen(rows[i].record)));
    wait_settled(f, &settled);
    if (f->kept != rows[i].kept)
      fail_msg("%s: %u in quarantine", rows[i].record, f->kept);
    if (f->kept)
      assert_string_equal(f->body, rows[i].record);
    if (f->kept)
      assert_memory_equal(f->why, "m: ", 3);
    while ((flight = flight_list_pop(&settled))) {
      if (flight->decision.event != rows[i].event)
        fail_msg("%s: event %d", rows[i].record, (int)flight->decision.event);
      flight_give_back(&f->flights, flight);
    }
    leases_gain(&f->leases, LOST_SHARD, 7, clock_instant(), PATIENCE_US, false);
  }
}

static void a_shard_that_the_fence_refuses_is_lost_at_once(void **state) {
  struct fixture *f = *state;
  struct flight_list settled = {0};
  deliver(f, &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
  wait_settled(f, &settled);
  /* Before the scheduler could read what was dropped. */
  assert_int_equal(f->tellings, 1);
  assert_int_equal(f->told.shard, LOST_SHARD);
  assert_int_equal(f->told.epoch, 7);
  assert_false(leases_safe(&f->leases, LOST_SHARD, 7, clock_instant()));
  assert_true(leases_safe(&f->leases, 0, 7, clock_instant()));
  for (struct flight *flight; (flight = flight_list_pop(&settled));) {
    assert_int_equal(flight->settled, flight->task->shard != LOST_SHARD);
    flight_give_back(&f->flights, flight);
  }
}

static enum store_status settle_nothing(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                        struct decision *decisions, size_t count, bool *lost, struct err *err) {
  for (size_t i = 0; i < count; i++)
    decisions[i].busy = true;
  memset(lost, 0, lease_count * sizeof *lost);
  return STORE_OK;
}

/* Copies after a deploy have a cause that somebody can find: an end with exit 0 said nothing of them. */
static void outcomes_that_are_left_at_the_end_are_told(void **state) {
  struct fixture *f = *state;
  struct flight_list settled = {0};
  char said[1024] = "";
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, ends[1]);
  f->ops.settle = settle_nothing;
  deliver(f, &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
  settler_stop(&f->settler, 1000);
  wait_settled(f, &settled);
  for (struct flight *flight; (flight = flight_list_pop(&settled));) {
    assert_true(f->leases.slot[flight->task->shard].left); /* which is how others hear of it */
    flight_give_back(&f->flights, flight);
  }
  assert_true(read(ends[0], said, sizeof said - 1) > 0);
  assert_non_null(strstr(said, "id=DUEBOX-SETTLE-LEFT msg=\"outcomes=2 could not be written"));
  log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  close(ends[0]);
  close(ends[1]);
  struct err err = {0};
  assert_true(settler_start(&f->settler, &err)); /* for tear_down() */
}

static enum store_status settle_reduced(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                        struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  for (size_t i = 0; i < count; i++) {
    decisions[i].applied = true;
    decisions[i].form = f->form;
  }
  memset(lost, 0, lease_count * sizeof *lost);
  return STORE_OK;
}

/* Of each form: a history without a partition for the day, for instance, was "(null)". */
static void what_was_left_out_is_named(void **state) {
  struct fixture *f = *state;
  static const char *const names[DECISION_FORMS] = {
      [DECISION_CUT] = "without what its columns in outbox_history or outbox_attempts do not take, which",
      [DECISION_OWN_ID] = "without the next row id for its alert, which",
      [DECISION_NO_ALERT] = "without the alert, which",
      [DECISION_NO_TEXTS] = "without the alert and the texts, which",
      [DECISION_NO_LINES] = "without alert, texts and line in outbox_attempts, which",
      [DECISION_NO_HEAD] =
          "without alert, texts, line in outbox_attempts and outbox_heads: others of its order_key do not "
          "wait, which",
      [DECISION_NO_LINES_CUT] = "without alert, texts, lines and what its columns in the history do not take, which",
      [DECISION_NO_HISTORY] = "without all that was to be kept of it, its line in the history too, which"};
  FILE *file = tmpfile();
  assert_non_null(file);
  log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, fileno(file));
  f->ops.settle = settle_reduced;
  for (int form = DECISION_CUT; form < DECISION_FORMS; form++) {
    struct flight_list settled = {0};
    char said[1024] = "";
    assert_true(ftruncate(fileno(file), 0) == 0 && lseek(fileno(file), 0, SEEK_SET) == 0);
    f->form = (enum decision_form)form;
    f->settler.trouble = (struct log_repeat){0}; /* each is the first */
    deliver(f, &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
    wait_settled(f, &settled);
    for (struct flight *flight; (flight = flight_list_pop(&settled));)
      flight_give_back(&f->flights, flight);
    assert_true(pread(fileno(file), said, sizeof said - 1, 0) > 0);
    if (!strstr(said, names[form]))
      fail_msg("form %d: %s", form, said);
  }
  log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  fclose(file);
}

static struct flight *add_task(struct fixture *f, unsigned i, struct lane *lane, uint64_t payload_len,
                               enum flight_end end, struct flight_list *done) {
  f->many[i] = (struct task){.id = i + 1,
                             .state = TASK_SCHEDULED,
                             .attempt_now = 1,
                             .payload_len = payload_len,
                             .message_id = {"m", 1},
                             .view = {.message_id = "m"},
                             .batch = &f->batch};
  struct flight *flight = flight_take(&f->flights, &f->many[i]);
  assert_non_null(flight);
  flight->lane = lane;
  flight->config = &f->ref;
  flight->epoch = 7;
  flight->end = end;
  flight->handed_us = flight->completed_us = clock_mono_us();
  flight_list_add(done, flight);
  return flight;
}

static void add_answer(struct fixture *f, unsigned i, struct lane *lane, size_t record_len, struct flight_list *done) {
  static const char record[] = "{\"status\":\"done\",\"result\":\"";
  char *text = calloc(1, record_len + sizeof record + 3);
  assert_non_null(text);
  memcpy(text, record, sizeof record - 1);
  memset(text + sizeof record - 1, 'r', record_len);
  memcpy(text + sizeof record - 1 + record_len, "\"}", 2);
  flight_set_outcome(add_task(f, i, lane, 0, FLIGHT_OUTCOME, done),
                     &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_RECORD, .record = text,
                                     .record_len = strlen(text)));
  free(text);
}

/* Answers of 60 KB take the database a hundred times longer than empty ones. What came behind them was settled behind
 * them, so that one route's consumers held up all other routes for seconds. Among those with large answers each route
 * has its turn. */
static void settle_all(struct fixture *f, struct flight_list *done, int rows) {
  struct flight_list settled = {0};
  f->batch = (struct task_batch){.open = MANY + 2, .count = MANY + 2, .tasks = f->many, .release = release};
  f->ref.users = 3 + MANY;
  atomic_store(&f->settler.rows, rows);
  mailbox_put(&f->settler.in, done);
  int64_t limit = clock_mono_us() + PATIENCE_US;
  while (settled.count < MANY + 2 && clock_mono_us() < limit)
    mailbox_take(&f->scheduler, limit, &settled);
  assert_int_equal(settled.count, MANY + 2);
  for (struct flight *flight; (flight = flight_list_pop(&settled));)
    flight_give_back(&f->flights, flight);
}

static void much_to_write_lets_the_others_go_first(void **state) {
  struct fixture *f = *state;
  struct flight_list done = {0};
  for (unsigned i = 0; i < MANY; i++)
    add_answer(f, i, &f->lane, LARGE, &done);
  add_answer(f, MANY, &f->lane, 10, &done);
  add_answer(f, MANY + 1, &f->rare, LARGE, &done);
  settle_all(f, &done, 1000);
  assert_int_equal(f->first[0], MANY + 1);
  assert_int_equal(f->counts[0], 1);
  assert_true(f->calls > 3);
  assert_in_range(f->call_of[MANY + 2], 1, 2); /* of a batch of one, the second */
  for (size_t i = 1; i < f->calls; i++)
    assert_true(f->counts[i] * LARGE < 1024 * 1024);
}

/* Rows larger than max_payload die without being loaded, and are copied to the history with all that they hold: thirty
 * rows of 8 MB were written in one transaction, and for ten seconds nothing of any other route. */
static void rows_that_are_large_themselves_let_the_others_go_first(void **state) {
  struct fixture *f = *state;
  struct flight_list done = {0};
  for (unsigned i = 0; i < MANY; i++)
    add_task(f, i, &f->lane, 8 * 1024 * 1024, FLIGHT_REFUSED, &done);
  add_task(f, MANY, &f->lane, 10, FLIGHT_REFUSED, &done);
  add_task(f, MANY + 1, &f->rare, 8 * 1024 * 1024, FLIGHT_EXPIRED, &done);
  settle_all(f, &done, 1000);
  assert_int_equal(f->first[0], MANY + 1);
  assert_int_equal(f->counts[0], 1);
  assert_in_range(f->call_of[MANY + 2], 1, 2);
  for (size_t i = 1; i < f->calls && i <= MANY; i++)
    assert_int_equal(f->counts[i], 1);
}

/* A route that was flooded had tens of thousands of outcomes in line, and those of all others waited behind them: for
 * seconds nothing of theirs was settled, and nobody left who needed a place, or the turn of an order_key, that they
 * had. */
static void the_outcomes_of_a_flood_let_others_have_their_turn(void **state) {
  struct fixture *f = *state;
  struct flight_list done = {0};
  for (unsigned i = 0; i < MANY + 2; i++)
    flight_set_outcome(add_task(f, i, i < MANY ? &f->lane : &f->rare, 10, FLIGHT_OUTCOME, &done),
                       &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
  settle_all(f, &done, 4);
  assert_int_equal(f->call_of[MANY + 1], 0);
  assert_int_equal(f->call_of[MANY + 2], 0);
  for (unsigned i = 2; i <= MANY; i++)
    assert_true(f->call_of[i] >= f->call_of[i - 1]); /* of one route in the order in which they came */
}

/* The next of an order_key waited for as many batches as the turns of all flooded routes take, each time. */
static void one_that_is_not_flooded_waits_for_no_turn_of_those_that_are(void **state) {
  static struct lane floods[MANY];
  struct fixture *f = *state;
  struct flight_list done = {0};
  for (unsigned i = 0; i < MANY + 2; i++) {
    struct lane *lane = i < MANY ? &floods[i] : &f->rare;
    strcpy(lane->name, "work");
    set_gauge(&lane->flooded_until_us, i < MANY ? INT64_MAX : 0);
    flight_set_outcome(add_task(f, i, lane, 10, FLIGHT_OUTCOME, &done), &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
  }
  settle_all(f, &done, 4);
  assert_true(f->call_of[MANY + 2] == 0 && f->counts[0] == 2); /* nor for a batch of theirs */
}

enum { BUSY = 8, LOOKS = 6, LOOK_US = 30 * 1000 };

/* The first ones are not settled, and each look at them takes its time. */
static enum store_status settle_slowly(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                       struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  bool again = decisions[0].busy;
  if (again && f->looks < LOOKS) {
    f->counts[f->looks] = count;
    f->began_us[f->looks] = clock_mono_us();
    thread_sleep(LOOK_US);
  }
  for (size_t i = 0; i < count; i++) {
    bool left = decisions[i].id <= BUSY && f->looks < LOOKS;
    decisions[i].busy = left && !f->refuses;
    decisions[i].refused = left && f->refuses;
    decisions[i].applied = !left;
  }
  if (again && f->looks < LOOKS)
    f->ended_us[f->looks++] = clock_mono_us();
  memset(lost, 0, lease_count * sizeof *lost);
  return STORE_OK;
}

/* Looks again and again at the outcomes of one route, one at a time, and lets others go between. */
static void look_again(struct fixture *f) {
  struct flight_list done = {0}, settled = {0};
  f->batch = (struct task_batch){.open = BUSY + 1, .count = BUSY + 1, .tasks = f->many, .release = release};
  f->ref.users = 2 + BUSY;
  f->ops.settle = settle_slowly;
  atomic_store(&f->settler.rows, 1000);
  for (unsigned i = 0; i < BUSY; i++)
    add_answer(f, i, &f->lane, 10, &done);
  add_answer(f, BUSY, &f->rare, 10, &done);
  mailbox_put(&f->settler.in, &done);
  int64_t limit = clock_mono_us() + PATIENCE_US;
  while (settled.count < BUSY + 1 && clock_mono_us() < limit)
    mailbox_take(&f->scheduler, limit, &settled);
  assert_int_equal(settled.count, BUSY + 1);
  assert_int_equal(settled.head->id, BUSY + 1);
  for (size_t i = 0; i < LOOKS; i++)
    assert_int_equal(f->counts[i], 1);
  for (size_t i = 1; i < LOOKS; i++)
    assert_true(f->began_us[i] - f->ended_us[i - 1] >= 8 * LOOK_US);
  for (struct flight *flight; (flight = flight_list_pop(&settled));)
    flight_give_back(&f->flights, flight);
}

/* People have allowed nine attempts while the only one was out. */
static enum store_status settle_by_nine(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                        struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  assert_int_equal(decisions[0].event, f->calls == 0 ? EVENT_DEAD : EVENT_RETRY);
  assert_false(decisions[0].again);
  decisions[0].again = decisions[0].busy = f->calls++ == 0;
  decisions[0].max_attempts = 9;
  decisions[0].applied = !decisions[0].busy;
  memset(lost, 0, lease_count * sizeof *lost);
  return STORE_OK;
}

static void a_limit_that_was_changed_meanwhile_decides(void **state) {
  struct fixture *f = *state;
  struct flight_list done = {0}, settled = {0};
  f->batch = (struct task_batch){.open = 1, .count = 1, .tasks = f->many, .release = release};
  f->ref.users = 2;
  f->ops.settle = settle_by_nine;
  struct flight *flight = add_task(f, 0, &f->lane, 0, FLIGHT_OUTCOME, &done);
  flight->task->max_attempts = 1;
  flight_set_outcome(flight, &DUEBOX_OUTCOME(.cls = DUEBOX_RETRY));
  mailbox_put(&f->settler.in, &done);
  mailbox_take(&f->scheduler, clock_mono_us() + PATIENCE_US, &settled);
  assert_int_equal(settled.count, 1);
  assert_int_equal(flight->task->max_attempts, 9);
  flight_give_back(&f->flights, flight_list_pop(&settled));
}

/* Somebody held the place that the outcomes of one route needed: all of them were tried again, one by one, each half
 * second, and for seconds on end the outcomes of all other routes waited for that. */
static void busy_outcomes_leave_most_of_the_time_to_the_others(void **state) { look_again(*state); }

/* The server refused the outcomes of one route (a trigger, a CHECK): all of them were tried again at once, each in
 * every form, while the outcomes of all other routes waited. */
static void refused_outcomes_leave_most_of_the_time_to_the_others(void **state) {
  struct fixture *f = *state;
  f->refuses = true;
  look_again(f);
}

/* The server refuses the history of one route: of each batch one of it is written without, and the others of its kin
 * are left. */
static enum store_status settle_refusing(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                         struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  const void *kin = NULL;
  bool mixed = false, any = false;
  for (size_t i = 0; i < count; i++) {
    struct decision *d = &decisions[i];
    bool theirs = d->id == MANY + 1, refused = !theirs && d->least < DECISION_NO_HISTORY;
    mixed = mixed || theirs;
    any = any || refused;
    d->left = d->busy = refused && kin && d->kin == kin;
    d->applied = !d->left;
    d->form = refused && d->applied ? DECISION_NO_HISTORY : d->least;
    kin = refused && d->applied ? d->kin : kin;
    f->call_of[d->id] = f->calls;
  }
  if (mixed && any)
    f->looks++;
  f->calls++;
  memset(lost, 0, lease_count * sizeof *lost);
  return STORE_OK;
}

/* The outcomes of all routes were found out about together: as long as one of them was refused, with every batch, those
 * of the others waited for that. */
static void what_is_refused_of_one_route_is_found_out_apart(void **state) {
  struct fixture *f = *state;
  f->ops.settle = settle_refusing;
  for (unsigned round = 0; round < 3; round++) {
    struct flight_list done = {0}, settled = {0};
    f->batch = (struct task_batch){.open = MANY + 1, .count = MANY + 1, .tasks = f->many, .release = release};
    f->ref.users = 2 + MANY;
    atomic_store(&f->settler.rows, 1000);
    f->calls = 0;
    for (unsigned i = 0; i < MANY; i++)
      add_answer(f, i, &f->lane, 10, &done);
    add_answer(f, MANY, &f->rare, 10, &done);
    mailbox_put(&f->settler.in, &done);
    int64_t limit = clock_mono_us() + PATIENCE_US;
    while (settled.count < MANY + 1 && clock_mono_us() < limit)
      mailbox_take(&f->scheduler, limit, &settled);
    assert_int_equal(settled.count, MANY + 1);
    assert_int_equal(f->call_of[MANY + 1], 0);
    assert_int_equal(f->looks, 1);
    for (struct flight *flight; (flight = flight_list_pop(&settled));) {
      assert_true(flight->settled && flight->decision.applied);
      flight_give_back(&f->flights, flight);
    }
  }
  assert_int_equal(refusals_least(&f->lane.refusals, EVENT_DONE), DECISION_NO_HISTORY);
  assert_int_equal(f->metrics.settled_reduced, 3 * MANY);
}

/* The next of an order_key waits for the outcome of the one before: such ones are not kept for a long settle_delay, nor
 * are those that they find waiting. (A key went at one task each ten seconds.) */
static void outcomes_of_order_keys_do_not_wait_for_company(void **state) {
  struct fixture *f = *state;
  struct flight_list settled = {0};
  f->settler.delay_us = INT64_C(3600) * 1000 * 1000;
  f->settler.rows = 1000;
  f->keyed = true;
  deliver(f, &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
  wait_settled(f, &settled);
  for (struct flight *flight; (flight = flight_list_pop(&settled));)
    flight_give_back(&f->flights, flight);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_record_without_a_status_is_not_done, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_shard_that_the_fence_refuses_is_lost_at_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(outcomes_that_are_left_at_the_end_are_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_was_left_out_is_named, set_up, tear_down),
      cmocka_unit_test_setup_teardown(much_to_write_lets_the_others_go_first, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rows_that_are_large_themselves_let_the_others_go_first, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_outcomes_of_a_flood_let_others_have_their_turn, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_that_is_not_flooded_waits_for_no_turn_of_those_that_are, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_limit_that_was_changed_meanwhile_decides, set_up, tear_down),
      cmocka_unit_test_setup_teardown(busy_outcomes_leave_most_of_the_time_to_the_others, set_up, tear_down),
      cmocka_unit_test_setup_teardown(refused_outcomes_leave_most_of_the_time_to_the_others, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_refused_of_one_route_is_found_out_apart, set_up, tear_down),
      cmocka_unit_test_setup_teardown(outcomes_of_order_keys_do_not_wait_for_company, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
