/* SPDX-License-Identifier: MIT
 *
 * People's commands, which the thread that reads runs between two reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/sync.h"
#include "core/flight.h"
#include "core/scheduler.h"

enum { COMMANDS = 200, STATEMENT_US = 1000 };

/* The store: while it looks for the task of one command, the next one comes. */
struct fake {
  struct scheduler s;
  struct asked asked[COMMANDS];
  size_t came, ran;
};

static const struct task_command command = {.verb = INTERVENE_CANCEL, .id = "1"};

static void come(struct fake *fake) {
  struct asked **end = &fake->s.asked;
  if (fake->came == COMMANDS)
    return;
  mutex_lock(&fake->s.ask_lock);
  while (*end)
    end = &(*end)->next;
  *end = &fake->asked[fake->came++];
  (*end)->command = &command;
  mutex_unlock(&fake->s.ask_lock);
}

static enum store_status locate(struct store_session *ss, const char *const *names, size_t count,
                                struct task_place *place, struct err *err) {
  struct fake *fake = (struct fake *)ss;
  thread_sleep(STATEMENT_US);
  fake->ran++;
  come(fake);
  *place = (struct task_place){0};
  return STORE_OK;
}

static void rows_are_read_although_commands_keep_coming(void **state) {
  static const struct store_ops ops = {.locate = locate};
  const struct store store = {.ops = &ops};
  struct fake *fake = calloc(1, sizeof *fake);
  assert_non_null(fake);
  fake->s.store = &store;
  fake->s.ss = (struct store_session *)fake;
  mutex_init(&fake->s.ask_lock);
  cond_init(&fake->s.answered);
  mailbox_init(&fake->s.in);
  come(fake);
  struct flight_list none = {0};
  size_t ran = 0;
  while (fake->s.asked) {
    scheduler_run_commands(&fake->s); /* and then rows are read */
    assert_in_range(fake->ran, ran + 1, ran + COMMANDS / 10);
    assert_true(mailbox_take(&fake->s.in, 0, &none) || !fake->s.asked);
    ran = fake->ran;
  }
  assert_int_equal(ran, COMMANDS);
  mailbox_destroy(&fake->s.in);
  cond_destroy(&fake->s.answered);
  mutex_destroy(&fake->s.ask_lock);
  free(fake);
}

/* A store whose row is held by somebody: the first three times that it is asked. */
struct held {
  struct scheduler s;
  atomic_bool over;
  int asked;
};

static enum store_status locate_held(struct store_session *ss, const char *const *names, size_t count,
                                     struct task_place *place, struct err *err) {
  *place = (struct task_place){.found = true, .id = 1, .route = "r"};
  return STORE_OK;
}

static enum store_status intervene_held(struct store_session *ss, const struct shard_lease *lease,
                                        enum intervention verb, const uint64_t *ids, size_t count, int64_t due_us,
                                        const char *actor, const char *filter, const char *reason, int64_t keep_us,
                                        enum intervened *became, struct err *err) {
  *became = ++((struct held *)ss)->asked > 3 ? INTERVENED_DONE : INTERVENED_LOCKED;
  return STORE_OK;
}

static void run_commands(void *arg) {
  struct held *held = arg;
  while (!atomic_load(&held->over)) {
    scheduler_run_commands(&held->s);
    thread_sleep(STATEMENT_US);
  }
}

/* The reading thread waits for no lock; who asks for a command does, for a moment: a lock of our own housekeeping once
 * made `task cancel` fail. */
static void who_asks_tries_again_where_somebody_holds_the_row(void **state) {
  static const struct store_ops ops = {.locate = locate_held, .intervene = intervene_held};
  const struct store store = {.ops = &ops};
  struct config config = {0};
  struct config_ref ref = {.config = &config};
  struct flight_table flights = {0};
  struct held *held = calloc(1, sizeof *held);
  struct thread thread;
  struct err err = {0};
  assert_non_null(held);
  held->s.store = &store;
  held->s.ss = (struct store_session *)held;
  held->s.config = &ref;
  held->s.flights = &flights;
  held->s.accepts = true;
  held->s.view[0].epoch = 1;
  mutex_init(&held->s.ask_lock);
  mutex_init(&held->s.lanes_lock);
  cond_init(&held->s.answered);
  mailbox_init(&held->s.in);
  assert_true(thread_start(&thread, "commands", run_commands, held));
  assert_int_equal(scheduler_ask(&held->s, &command, 60000, &err), COMMAND_DONE);
  assert_int_equal(held->asked, 4);
  atomic_store(&held->over, true);
  thread_join(&thread);
  mailbox_destroy(&held->s.in);
  cond_destroy(&held->s.answered);
  mutex_destroy(&held->s.lanes_lock);
  mutex_destroy(&held->s.ask_lock);
  free(held);
}

/* A store whose row is in a state that the command does not allow, or expires at 5. */
static enum store_status locate_state(struct store_session *ss, const char *const *names, size_t count,
                                      struct task_place *place, struct err *err) {
  *place = (struct task_place){
      .found = true, .id = 1, .route = "r", .state = *(const enum task_state *)(const void *)ss, .expires_us = 5};
  return STORE_OK;
}

static enum store_status intervene_never(struct store_session *ss, const struct shard_lease *lease,
                                         enum intervention verb, const uint64_t *ids, size_t count, int64_t due_us,
                                         const char *actor, const char *filter, const char *reason, int64_t keep_us,
                                         enum intervened *became, struct err *err) {
  *became = INTERVENED_NOT;
  return STORE_OK;
}

/* With a daemon and without, a task whose copy is out is answered alike: too late, or try again when its attempt is
 * over (the command line: 75). */
static void what_is_out_is_told_from_what_its_state_forbids(void **state) {
  static const struct store_ops ops = {.locate = locate_state, .intervene = intervene_never};
  static const struct {
    enum task_state state;
    enum command_answer answer;
  } cases[] = {{TASK_CLAIMED, COMMAND_IN_FLIGHT},
               {TASK_AWAITING, COMMAND_IN_FLIGHT},
               {TASK_HELD, COMMAND_STATE},
               {TASK_SCHEDULED, COMMAND_STATE},
               {TASK_BLOCKED, COMMAND_STATE}};
  static const struct task_command reschedule = {.verb = INTERVENE_RESCHEDULE, .id = "1", .due_us = 5};
  const struct store store = {.ops = &ops};
  struct config config = {0};
  struct config_ref ref = {.config = &config};
  struct flight_table flights = {0};
  struct scheduler *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->store = &store;
  s->config = &ref;
  s->flights = &flights;
  s->view[0].epoch = 1;
  mutex_init(&s->ask_lock);
  cond_init(&s->answered);
  mailbox_init(&s->in);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    enum task_state row = cases[i].state;
    struct asked asked = {.command = &reschedule};
    s->ss = (struct store_session *)(void *)&row;
    s->asked = &asked;
    scheduler_run_commands(s);
    assert_true(asked.done);
    assert_int_equal(asked.answer, cases[i].answer);
    assert_int_equal(strstr(asked.err.text, "never be sent") != NULL, row == TASK_SCHEDULED);
  }
  mailbox_destroy(&s->in);
  cond_destroy(&s->answered);
  mutex_destroy(&s->ask_lock);
  free(s);
}

/* Two tasks each of two shards, and one of a shard that others hold; of shard 1 the server refuses some. */
static enum store_status locate_four(struct store_session *ss, const char *const *names, size_t count,
                                     struct task_place *places, struct err *err) {
  for (size_t i = 0; i < count; i++)
    places[i] = (struct task_place){.found = true,
                                    .id = i + 1,
                                    .route = "r",
                                    .shard = (uint8_t)(i / 2),
                                    .bytes = *(const uint64_t *)(const void *)ss,
                                    .maybe_sent = i == 1};
  return STORE_OK;
}

static enum store_status intervene_four(struct store_session *ss, const struct shard_lease *lease,
                                        enum intervention verb, const uint64_t *ids, size_t count, int64_t due_us,
                                        const char *actor, const char *filter, const char *reason, int64_t keep_us,
                                        enum intervened *became, struct err *err) {
  assert_string_equal(filter, "all");
  for (size_t i = 0; i < count; i++)
    became[i] = INTERVENED_DONE;
  if (lease->shard == 0)
    return STORE_OK;
  err_set(err, 1644, "not these");
  return STORE_REFUSED;
}

static void some_are_changed_together_by_shard_unless_they_are_large(void **state) {
  static const struct store_ops ops = {.locate = locate_four, .intervene = intervene_four};
  static const char *const ids[] = {"1", "2", "3", "4", "5"};
  enum command_answer answers[5];
  const struct task_commands commands = {
      .each.verb = INTERVENE_RESCHEDULE, .ids = ids, .count = 5, .filter = "all", .answers = answers};
  static const struct {
    uint64_t bytes;
    enum command_answer answers[5];
  } cases[] = {{1000, {COMMAND_DONE, COMMAND_DONE_MAYBE_SENT, COMMAND_FAILED, COMMAND_FAILED, COMMAND_ELSEWHERE}},
               {300000, {COMMAND_DONE, COMMAND_LEFT, COMMAND_LEFT, COMMAND_LEFT, COMMAND_LEFT}},
               {60000000, {COMMAND_DONE, COMMAND_LEFT, COMMAND_LEFT, COMMAND_LEFT, COMMAND_LEFT}}};
  const struct store store = {.ops = &ops};
  struct config config = {0};
  struct config_ref ref = {.config = &config};
  struct flight_table flights = {0};
  struct scheduler *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->store = &store;
  s->config = &ref;
  s->flights = &flights;
  s->view[0].epoch = s->view[1].epoch = 1;
  mutex_init(&s->ask_lock);
  cond_init(&s->answered);
  mailbox_init(&s->in);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t bytes = cases[i].bytes;
    struct asked asked = {.many = &commands};
    s->ss = (struct store_session *)(void *)&bytes;
    s->asked = &asked;
    scheduler_run_commands(s);
    assert_true(asked.done && asked.answer == COMMAND_DONE);
    for (size_t k = 0; k < 5; k++)
      assert_int_equal(answers[k], cases[i].answers[k]);
  }
  mailbox_destroy(&s->in);
  cond_destroy(&s->answered);
  mutex_destroy(&s->ask_lock);
  free(s);
}

/* A store in which somebody holds every third row, or what is written beside one of them. */
struct locked {
  struct scheduler s;
  uint64_t beside;  /* 0 = none */
  int64_t takes_us; /* to find that out */
  unsigned calls;
};

static enum store_status locate_locked(struct store_session *ss, const char *const *names, size_t count,
                                       struct task_place *places, struct err *err) {
  for (size_t i = 0; i < count; i++)
    places[i] = (struct task_place){.found = true, .id = i + 1, .route = "r", .shard = (uint8_t)(i / 32)};
  return STORE_OK;
}

static enum store_status intervene_locked(struct store_session *ss, const struct shard_lease *lease,
                                          enum intervention verb, const uint64_t *ids, size_t count, int64_t due_us,
                                          const char *actor, const char *filter, const char *reason, int64_t keep_us,
                                          enum intervened *became, struct err *err) {
  struct locked *locked = (struct locked *)ss;
  locked->calls++;
  for (size_t i = 0; i < count; i++) {
    became[i] = ids[i] % 3 == 0 ? INTERVENED_LOCKED : INTERVENED_DONE;
    if (locked->takes_us || ids[i] == locked->beside) {
      thread_sleep(locked->takes_us);
      return STORE_BUSY;
    }
  }
  return STORE_OK;
}

static struct locked *locked_new(const struct store *store, struct config_ref *config, struct flight_table *flights) {
  struct locked *locked = calloc(1, sizeof *locked);
  assert_non_null(locked);
  locked->s.store = store;
  locked->s.ss = (struct store_session *)locked;
  locked->s.config = config;
  locked->s.flights = flights;
  locked->s.view[0].epoch = locked->s.view[1].epoch = 1;
  mutex_init(&locked->s.ask_lock);
  mutex_init(&locked->s.lanes_lock);
  cond_init(&locked->s.answered);
  mailbox_init(&locked->s.in);
  return locked;
}

static void locked_free(struct locked *locked) {
  mailbox_destroy(&locked->s.in);
  cond_destroy(&locked->s.answered);
  mutex_destroy(&locked->s.lanes_lock);
  mutex_destroy(&locked->s.ask_lock);
  free(locked);
}

static void ask_for_all(struct locked *locked, enum command_answer answers[COMMANDS_TOGETHER]) {
  static const char *const ids[COMMANDS_TOGETHER] = {"1"};
  const struct task_commands commands = {
      .each.verb = INTERVENE_CANCEL, .ids = ids, .count = COMMANDS_TOGETHER, .filter = "all", .answers = answers};
  struct asked asked = {.many = &commands};
  locked->s.asked = &asked;
  scheduler_run_commands(&locked->s);
  assert_true(asked.done && asked.answer == COMMAND_DONE);
}

/* One locked row once kept all of its shard unchanged. */
static void what_is_locked_is_passed_over(void **state) {
  static const struct store_ops ops = {.locate = locate_locked, .intervene = intervene_locked};
  const struct store store = {.ops = &ops};
  struct config config = {0};
  struct config_ref ref = {.config = &config};
  struct flight_table flights = {0};
  struct locked *locked = locked_new(&store, &ref, &flights);
  enum command_answer answers[COMMANDS_TOGETHER];
  ask_for_all(locked, answers);
  assert_int_equal(locked->calls, 2);
  for (unsigned i = 0; i < COMMANDS_TOGETHER; i++)
    assert_int_equal(answers[i], (i + 1) % 3 == 0 ? COMMAND_LOCKED : COMMAND_DONE);
  locked->beside = 40;
  ask_for_all(locked, answers);
  for (unsigned i = 0; i < COMMANDS_TOGETHER; i++)
    assert_int_equal(answers[i], (i + 1) % 3 == 0 || i + 1 == 40 ? COMMAND_LOCKED : COMMAND_DONE);
  locked_free(locked);
}

/* No server tells at once that somebody holds a table: MySQL does so in a second. Nothing is read meanwhile. */
static void a_request_waits_for_one_lock_at_most(void **state) {
  static const struct store_ops ops = {.locate = locate_locked, .intervene = intervene_locked};
  const struct store store = {.ops = &ops};
  struct config config = {0};
  struct config_ref ref = {.config = &config};
  struct flight_table flights = {0};
  struct locked *locked = locked_new(&store, &ref, &flights);
  enum command_answer answers[COMMANDS_TOGETHER];
  locked->takes_us = 300 * 1000;
  for (unsigned requests = 0; requests < 3; requests++) { /* the others ask for nothing while that rests */
    ask_for_all(locked, answers);
    for (unsigned i = 0; i < COMMANDS_TOGETHER; i++)
      assert_int_equal(answers[i], COMMAND_LOCKED);
    assert_int_equal(locked->calls, 1);
  }
  locked->takes_us = 0;
  locked->s.locks_after_us = 0;
  ask_for_all(locked, answers);
  assert_int_equal(answers[0], COMMAND_DONE);
  locked_free(locked);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_read_although_commands_keep_coming),
                                     cmocka_unit_test(who_asks_tries_again_where_somebody_holds_the_row),
                                     cmocka_unit_test(what_is_out_is_told_from_what_its_state_forbids),
                                     cmocka_unit_test(some_are_changed_together_by_shard_unless_they_are_large),
                                     cmocka_unit_test(what_is_locked_is_passed_over),
                                     cmocka_unit_test(a_request_waits_for_one_lock_at_most)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
