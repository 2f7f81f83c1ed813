/* SPDX-License-Identifier: MIT
 *
 * When a driver counts as stuck: an idle one, which gives a sign of life once a second, never does. And what becomes of
 * tasks that a plugin refuses and completes all the same.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/driver.h"
#include "core/lane.h"

enum { SECOND_US = 1000 * 1000, LIMIT_US = 30 * SECOND_US };

static bool stuck_when_silent_for(int64_t silent_us, int64_t limit_us) {
  struct driver driver = {0};
  atomic_store(&driver.alive_us, clock_mono_us() - silent_us);
  return driver_stuck(&driver, limit_us);
}

static void an_idle_one_is_not_stuck(void **state) {
  assert_false(stuck_when_silent_for(0, SECOND_US));
  assert_false(stuck_when_silent_for(SECOND_US + SECOND_US / 10, SECOND_US)); /* one idle poll, and a busy machine */
}

static void a_silent_one_is_stuck(void **state) {
  assert_true(stuck_when_silent_for(3 * SECOND_US, SECOND_US));
  assert_true(stuck_when_silent_for(62 * SECOND_US, 60 * (int64_t)SECOND_US));
}

/* The whole daemon was stopped for a minute, say: each plugin was silent, and answers when it goes on. */
static void one_that_was_stopped_with_the_process_does_not_hang(void **state) {
  struct driver driver = {0};
  int64_t silent_us = 0, now = clock_mono_us();
  atomic_store(&driver.alive_us, now - 62 * (int64_t)SECOND_US);
  assert_false(driver_hangs(&driver, 60 * (int64_t)SECOND_US, now, &silent_us));
  atomic_store(&driver.alive_us, now);
  assert_false(driver_hangs(&driver, 60 * (int64_t)SECOND_US, now + SECOND_US, &silent_us));
  atomic_store(&driver.alive_us, now - 62 * (int64_t)SECOND_US); /* the next time counts anew */
  assert_false(driver_hangs(&driver, 60 * (int64_t)SECOND_US, now + 2 * SECOND_US, &silent_us));
}

static void one_that_answers_no_nudge_hangs(void **state) {
  struct driver driver = {0};
  int64_t silent_us = 0, now = clock_mono_us();
  atomic_store(&driver.alive_us, now - 62 * (int64_t)SECOND_US);
  assert_false(driver_hangs(&driver, 60 * (int64_t)SECOND_US, now, &silent_us));
  assert_false(driver_hangs(&driver, 60 * (int64_t)SECOND_US, now + SECOND_US / 2, &silent_us));
  assert_true(driver_hangs(&driver, 60 * (int64_t)SECOND_US, now + SECOND_US, &silent_us));
}

static void one_whose_thread_ended_is_stuck_unless_it_was_told_to_end(void **state) {
  struct driver driver = {0};
  atomic_store(&driver.alive_us, clock_mono_us());
  atomic_store(&driver.ended, true);
  assert_true(driver_stuck(&driver, SECOND_US));
  atomic_store(&driver.stop_ms, 1);
  assert_false(driver_stuck(&driver, SECOND_US));
}

/* Whoever says that the broker is away has the task, and waits for it. Then it is to answer in time again. */
static void one_that_says_that_its_destination_is_away_forgets_nothing(void **state) {
  struct driver driver = {0};
  int64_t handed = 100 * (int64_t)SECOND_US;
  assert_false(driver_forgot(&driver, handed, LIMIT_US, handed + LIMIT_US - 1));
  assert_true(driver_forgot(&driver, handed, LIMIT_US, handed + LIMIT_US));
  atomic_store(&driver.reaches_us, INT64_MAX);
  assert_false(driver_forgot(&driver, handed, LIMIT_US, handed + 100 * (int64_t)LIMIT_US));
  atomic_store(&driver.reaches_us, handed + SECOND_US);
  assert_false(driver_forgot(&driver, handed, LIMIT_US, handed + LIMIT_US));
  assert_true(driver_forgot(&driver, handed, LIMIT_US, handed + SECOND_US + LIMIT_US));
}

/* --- a plugin that refuses a task --- */

struct liar {
  uint8_t shard;       /* of the task */
  uint32_t timeout_ms; /* of the task; 0 = long. It was claimed longer ago than 1 ms */
  const struct duebox_host *host;
  uint64_t refused; /* the token of the task it did not take */
  bool at_once;     /* completes it before it refuses it, else after it was offered again */
  bool late;        /* another task of the lane has been there for too long, and is confirmed while ours waits */
  bool quotes;      /* says its password whenever it says something */
  bool boasts;      /* says that it took more than it was offered */
  bool stands;      /* while it refuses, another task of the lane has been there for too long */
  atomic_uint submits;
};

static struct liar liar;

/* A driver with one task, of a lane that has places for `places`. */
static struct stand {
  struct flight_table flights;
  struct lane lane;
  struct engine_metrics metrics;
  struct mailbox settler;
  struct leases leases;
  struct config config;
  struct plugin_config plugin;
  struct driver_env env;
  struct task task;
  struct flight *flight;
  struct driver *driver;
} stand;
static uint32_t older; /* the slot of the other task */
static struct driver *_Atomic polled;

static bool lie_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                       struct duebox_error *err) {
  liar.host = host;
  return true;
}

static bool lie_start(void *inst, struct duebox_error *err) { return true; }
static void lie_poll(void *inst, int timeout_ms) {
  const struct driver *driver = polled;
  if (liar.late && driver && driver->pending.head)
    stall_confirmed(&stand.lane.stall, older);
}
static void lie_quiet(void *inst) {}
static void lie_stop(void *inst, int deadline_ms) {}

static void lie_about(uint64_t token) {
  if (liar.quotes)
    liar.host->complete(liar.host->ctx, token, &DUEBOX_OUTCOME(.cls = DUEBOX_RETRY, .message = "no hunter2sekret"));
  else
    liar.host->complete(liar.host->ctx, token, &DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED));
}

static size_t lie_submit(void *inst, const struct duebox_task *const *tasks, size_t n) {
  bool first = liar.submits++ == 0;
  if (first)
    liar.refused = tasks[0]->token;
  if (liar.stands)
    atomic_store(&stand.lane.stall.limit_us, SECOND_US);
  if (first == liar.at_once)
    lie_about(liar.refused);
  if (!first)
    lie_about(tasks[0]->token);
  return liar.boasts ? SIZE_MAX : first ? 0 : n;
}

static const struct lie_options { const char *password; } lie_options = {"hunter2sekret"};
static const struct duebox_option lie_rows[] = {{.name = "password", .type = DUEBOX_OPT_SECRET}, {.name = NULL}};

static const struct duebox_sink_ops lie_sink = {.struct_size = sizeof lie_sink, .submit = lie_submit};
static const struct duebox_plugin lie_plugin = {DUEBOX_PLUGIN_PREFIX, .name = "liar",     .create = lie_create,
                                                .start = lie_start,   .poll = lie_poll,   .wakeup = lie_quiet,
                                                .close = lie_quiet,   .stop = lie_stop,   .destroy = lie_quiet,
                                                .sink = &lie_sink,    .options = lie_rows};

static void stand_up(const struct liar *how, bool recorded, unsigned places) {
  struct err err = {0};
  struct flight_list list = {0};
  liar = *how;
  stand =
      (struct stand){.lane = {.at_sink_max = 10, .at_sink = 10 - places, .stall = {.limit_us = LIMIT_US}},
                     .plugin = {.name = "liar", .module = &lie_plugin, .options = &lie_options, .max_inflight = 10},
                     .task = {.id = 1,
                              .attempt_now = 1,
                              .recorded = recorded,
                              .shard = how->shard,
                              .view = {.message_id = "m", .timeout_ms = how->timeout_ms ? how->timeout_ms : 600000}}};
  stand.env = (struct driver_env){
      .flights = &stand.flights, .settler = &stand.settler, .leases = &stand.leases, .metrics = &stand.metrics};
  polled = NULL;
  if (liar.stands || liar.late)
    older = stall_handed_over(&stand.lane.stall, clock_mono_us() - (liar.late ? 2 * LIMIT_US : LIMIT_US / 2));
  mailbox_init(&stand.settler);
  leases_init(&stand.leases);
  leases_gain(&stand.leases, how->shard, 1, clock_instant(), 10 * LIMIT_US, false);
  stand.driver = driver_start(&stand.config, &stand.plugin, NULL, &stand.env, &err);
  assert_non_null(stand.driver);
  assert_int_equal(driver_born(stand.driver, LIMIT_US / 1000, &err), DRIVER_BORN);
  stand.flight = flight_take(&stand.flights, &stand.task);
  assert_non_null(stand.flight);
  stand.flight->lane = &stand.lane;
  stand.flight->driver = stand.driver;
  stand.flight->times_sink = true;
  stand.flight->epoch = 1;
  stand.flight->read_us = clock_mono_us() - (how->timeout_ms ? SECOND_US / 20 : 0);
  stand.flight->lease_ms = 15000;
  stand.flight->handed_us = stand.flight->read_us + (liar.late ? LIMIT_US : 0); /* as if it had not waited yet */
  polled = stand.driver;
  stand.task.view.token = flight_open(stand.flight);
  flight_list_add(&list, stand.flight);
  driver_push(stand.driver, &list);
}

/* What the settler gets, waiting for the first. */
static void stand_take(struct flight_list *out, int64_t limit_us) {
  mailbox_take(&stand.settler, clock_mono_us() + limit_us, out);
}

static void stand_stop(struct flight_list *out) {
  driver_stop(stand.driver, 1000);
  assert_true(driver_join(stand.driver, 10000));
  mailbox_take(&stand.settler, 0, out);
}

static void stand_down(void) {
  driver_free(&stand.driver);
  free(stand.flight->text);
  HASH_DELETE(by_id, stand.flights.by_id, stand.flight);
  flight_table_free(&stand.flights);
  mailbox_destroy(&stand.settler);
  leases_destroy(&stand.leases);
}

/* Sends it one task, which comes out once. twice: completions that meant no open task. */
static void send_to_the_liar(const struct liar *how, enum flight_end end, unsigned submits, unsigned twice) {
  struct flight_list out = {0};
  stand_up(how, false, 10);
  stand_take(&out, LIMIT_US);
  stand_stop(&out);
  assert_int_equal(out.count, 1);
  assert_int_equal(out.head->end, end);
  assert_int_equal(liar.submits, submits);
  assert_int_equal(counted(&stand.metrics.completions_twice), twice);
  assert_int_equal(stand.lane.at_sink, 0);
  assert_int_equal(stand.driver->at_sink, 0);
  stand_down();
}

static void what_is_completed_and_refused_is_over(void **state) {
  send_to_the_liar(&(struct liar){.at_once = true}, FLIGHT_OUTCOME, 1, 0);
}

static void what_is_refused_is_offered_under_another_token(void **state) {
  send_to_the_liar(&(struct liar){0}, FLIGHT_OUTCOME, 2, 1);
}

/* The driver used to read behind its list of lanes, and the daemon ended. */
static void more_than_was_offered_cannot_be_taken(void **state) {
  send_to_the_liar(&(struct liar){.at_once = true, .boasts = true}, FLIGHT_OUTCOME, 1, 0);
}

/* A refusal is no sign that the sink takes tasks: where another has been there for too long, the task goes back to the
 * table. (It used to be offered again and again, as if the sink had confirmed it.) */
static void what_is_refused_confirms_nothing(void **state) {
  send_to_the_liar(&(struct liar){.stands = true}, FLIGHT_UNSENT, 1, 0);
}

static bool refuses_after(int64_t us) {
  struct stall *stall = &stand.lane.stall;
  atomic_store(&stall->refused_to_us, atomic_load(&stall->refused_from_us) + us);
  return stall_refuses(stall, atomic_load(&stall->refused_to_us));
}

/* It has nothing and takes nothing: that counts from the first offer, until it takes one. */
static void one_that_takes_nothing_is_noticed(void **state) {
  send_to_the_liar(&(struct liar){.stands = true}, FLIGHT_UNSENT, 1, 0);
  assert_false(refuses_after(STALL_REFUSED_US - 1));
  assert_true(refuses_after(STALL_REFUSED_US));
  send_to_the_liar(&(struct liar){0}, FLIGHT_OUTCOME, 2, 1);
  assert_false(refuses_after(STALL_REFUSED_US));
}

/* On a busy machine confirms are there that nobody has had the time to take: a task waits for them for a moment before
 * it goes back to the table. (It used to go back at once, and a busy drain read many rows twice.) */
static void a_task_waits_a_moment_for_a_stall_to_end(void **state) {
  send_to_the_liar(&(struct liar){.late = true, .at_once = true}, FLIGHT_OUTCOME, 1, 0);
}

/* Whoever refuses a login may repeat it, and what plugins say goes to the log, the API and a column: whatever plugin it
 * is, its secrets are hidden on the way. */
static void what_a_plugin_says_holds_none_of_its_secrets(void **state) {
  struct flight_list out = {0};
  bool up = true;
  char text[PLUGIN_TEXT], line[512] = "";
  int log[2], error = dup(STDERR_FILENO);
  assert_int_equal(pipe(log), 0);
  stand_up(&(struct liar){.at_once = true, .quotes = true}, false, 10);
  stand_take(&out, LIMIT_US);
  assert_int_equal(out.count, 1);
  assert_string_equal(out.head->outcome.message, "no ***");
  dup2(log[1], STDERR_FILENO);
  liar.host->log(liar.host->ctx, DUEBOX_LOG_ERROR, "LIAR-SAYS", "%s", "hunter2sekret is no password");
  liar.host->health(liar.host->ctx, true, "hunter2sekret is in");
  liar.host->health(liar.host->ctx, false, "hunter2sekret is out");
  dup2(error, STDERR_FILENO);
  close(log[1]);
  close(error);
  for (ssize_t n, at = 0; (n = read(log[0], line + at, sizeof line - 1 - (size_t)at)) > 0;)
    at += n;
  close(log[0]);
  assert_non_null(strstr(line, "*** is no password"));
  assert_non_null(strstr(line, "*** is out"));
  assert_null(strstr(line, "hunter2"));
  driver_health(stand.driver, &up, text);
  assert_false(up);
  assert_string_equal(text, "*** is out");
  assert_int_equal(atomic_load(&stand.driver->reaches_us), INT64_MAX);
  char said[400];
  snprintf(said, sizeof said, "%0380d: its cure", 0); /* the end is what helps */
  liar.host->health(liar.host->ctx, false, said);
  driver_health(stand.driver, &up, text);
  assert_string_equal(text, said);
  stand_stop(&out);
  stand_down();
}

/* No level and no id of a plugin ends the process or forges a line, or a field of one. */
static void a_plugin_may_log_with_any_level_and_id(void **state) {
  struct flight_list out = {0};
  static const struct {
    int level;
    const char *id, *line;
  } rows[] = {
      {DUEBOX_LOG_WARN, "LIAR-SAYS", "level=warn id=LIAR-SAYS msg=\"instance=liar hello 0\"\n"},
      {-1, "LIAR-SAYS", "level=error id=LIAR-SAYS msg="},
      {INT_MIN, "LIAR-SAYS", "level=error id=LIAR-SAYS msg="},
      {42, "LIAR-SAYS", "level=debug id=LIAR-SAYS msg="},
      {DUEBOX_LOG_INFO, NULL, "level=info id=? msg="},
      {DUEBOX_LOG_INFO, "", "level=info id=? msg="},
      {DUEBOX_LOG_INFO, "A\n B\x1b\"=\xc3\xa9.b_c-9", "level=info id=A??B?????.b_c-9 msg="},
      {DUEBOX_LOG_INFO, "hunter2sekret", "level=info id=*** msg="},
  };
  char line[512];
  stand_up(&(struct liar){.at_once = true}, false, 10);
  stand_take(&out, LIMIT_US);
  log_set_level(LOG_LEVEL_DEBUG);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int log[2], error = dup(STDERR_FILENO);
    assert_int_equal(pipe(log), 0);
    dup2(log[1], STDERR_FILENO);
    liar.host->log(liar.host->ctx, (enum duebox_log_level)rows[i].level, rows[i].id, "hello %zu", i);
    dup2(error, STDERR_FILENO);
    close(error);
    close(log[1]);
    ssize_t len = read(log[0], line, sizeof line - 1);
    close(log[0]);
    assert_true(len > 0);
    line[len] = '\0';
    if (!strstr(line, rows[i].line))
      fail_msg("row %zu: %s", i, line);
  }
  log_set_level(LOG_LEVEL_INFO);
  stand_stop(&out);
  stand_down();
}

/* A broker that says blocked and unblocked in turn must not fill the disk with log lines. */
static void a_destination_that_flaps_writes_few_lines(void **state) {
  enum { FLIPS = 1000, AT_ONCE = 50 };
  struct flight_list out = {0};
  char *text = calloc(1, FLIPS * 64);
  size_t lines = 0;
  int error = dup(STDERR_FILENO);
  FILE *log = tmpfile();
  assert_non_null(text);
  assert_non_null(log);
  stand_up(&(struct liar){.at_once = true}, false, 10);
  stand_take(&out, LIMIT_US);
  dup2(fileno(log), STDERR_FILENO);
  int64_t began = clock_mono_us();
  for (int i = 0; i < FLIPS; i++)
    liar.host->health(liar.host->ctx, i % 2 == 0, i % 2 == 0 ? "up" : "down");
  int64_t seconds = (clock_mono_us() - began) / SECOND_US;
  dup2(error, STDERR_FILENO);
  close(error);
  rewind(log);
  size_t len = fread(text, 1, FLIPS * 64 - 1, log);
  for (const char *p = text; len > 0 && (p = strchr(p, '\n')); p++)
    lines++;
  fclose(log);
  free(text);
  assert_true(lines >= 1);
  assert_true(lines <= AT_ONCE + 2 + (size_t)seconds); /* one a second */
  stand_stop(&out);
  stand_down();
}

/* A plugin says at each attempt why its broker does not let it in. That is one line at first, and another one when the
 * reason changes. */
static void trouble_that_goes_on_is_said_once(void **state) {
  enum { ATTEMPTS = 20 };
  struct flight_list out = {0};
  char text[8192];
  size_t lines = 0;
  int error = dup(STDERR_FILENO);
  FILE *log = tmpfile();
  assert_non_null(log);
  stand_up(&(struct liar){.at_once = true}, false, 10);
  stand_take(&out, LIMIT_US);
  dup2(fileno(log), STDERR_FILENO);
  for (int i = 0; i < 2 * ATTEMPTS; i++)
    liar.host->log(liar.host->ctx, DUEBOX_LOG_WARN, "LIAR-DOWN", "%s; trying again",
                   i < ATTEMPTS ? "nobody listens" : "the password is wrong");
  dup2(error, STDERR_FILENO);
  close(error);
  rewind(log);
  text[fread(text, 1, sizeof text - 1, log)] = '\0';
  for (const char *p = text; (p = strchr(p, '\n')); p++)
    lines++;
  fclose(log);
  assert_int_equal(lines, 2);
  assert_non_null(strstr(text, "nobody listens"));
  assert_non_null(strstr(text, "the password is wrong"));
  stand_stop(&out);
  stand_down();
}

/* --- a destination that is slow all of a sudden --- */

/* A claim in memory goes back, so that plain SQL can change the task. */
static void a_memory_claim_without_room_goes_back(void **state) {
  struct flight_list out = {0};
  stand_up(&(struct liar){0}, false, 0);
  stand_take(&out, LIMIT_US);
  assert_int_equal(out.count, 1);
  assert_int_equal(out.head->end, FLIGHT_UNSENT);
  stand_stop(&out);
  stand_down();
}

/* A recorded one has its attempt's number already: without a fault, attempt 2 follows an attempt 1 that was sent. */
static void a_recorded_claim_waits_for_room(void **state) {
  struct flight_list out = {0};
  stand_up(&(struct liar){.at_once = true}, true, 0);
  stand_take(&out, SECOND_US / 4);
  assert_int_equal(out.count, 0);
  atomic_store(&stand.lane.at_sink, 0);
  stand_take(&out, LIMIT_US);
  assert_int_equal(out.count, 1);
  assert_int_equal(out.head->end, FLIGHT_OUTCOME);
  stand_stop(&out);
  stand_down();
}

/* A time-out of a millisecond is over before a claim is written. The task is given to its sink all the same, and what
 * comes of it is a failure that counts: it used to be claimed again and again, for ever. */
static void a_short_timeout_is_tried(void **state) {
  struct flight_list out = {0};
  stand_up(&(struct liar){.at_once = true, .timeout_ms = 1}, true, 10);
  stand_take(&out, LIMIT_US);
  assert_int_equal(out.count, 1);
  assert_int_equal(out.head->end, FLIGHT_OUTCOME);
  stand_stop(&out);
  stand_down();
}

/* Other daemons see a bound task's lease_until: a call that began late would outlast it, and the task came twice. */
static void a_bound_claim_without_room_goes_back(void **state) {
  struct flight_list out = {0};
  stand_up(&(struct liar){.shard = SHARD_BOUND}, true, 0);
  stand_take(&out, LIMIT_US);
  assert_int_equal(out.count, 1);
  assert_int_equal(out.head->end, FLIGHT_UNSENT);
  stand_stop(&out);
  stand_down();
}

static void a_recorded_claim_of_a_closed_lane_goes_back(void **state) {
  struct flight_list out = {0};
  stand_up(&(struct liar){0}, true, 0);
  atomic_store(&stand.lane.at_sink_max, 0);
  stand_take(&out, LIMIT_US);
  assert_int_equal(out.count, 1);
  assert_int_equal(out.head->end, FLIGHT_UNSENT);
  stand_stop(&out);
  stand_down();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_idle_one_is_not_stuck),
      cmocka_unit_test(a_silent_one_is_stuck),
      cmocka_unit_test(one_that_was_stopped_with_the_process_does_not_hang),
      cmocka_unit_test(one_that_answers_no_nudge_hangs),
      cmocka_unit_test(one_whose_thread_ended_is_stuck_unless_it_was_told_to_end),
      cmocka_unit_test(one_that_says_that_its_destination_is_away_forgets_nothing),
      cmocka_unit_test(what_is_completed_and_refused_is_over),
      cmocka_unit_test(what_is_refused_is_offered_under_another_token),
      cmocka_unit_test(more_than_was_offered_cannot_be_taken),
      cmocka_unit_test(what_is_refused_confirms_nothing),
      cmocka_unit_test(one_that_takes_nothing_is_noticed),
      cmocka_unit_test(what_a_plugin_says_holds_none_of_its_secrets),
      cmocka_unit_test(a_plugin_may_log_with_any_level_and_id),
      cmocka_unit_test(a_destination_that_flaps_writes_few_lines),
      cmocka_unit_test(trouble_that_goes_on_is_said_once),
      cmocka_unit_test(a_task_waits_a_moment_for_a_stall_to_end),
      cmocka_unit_test(a_memory_claim_without_room_goes_back),
      cmocka_unit_test(a_recorded_claim_waits_for_room),
      cmocka_unit_test(a_short_timeout_is_tried),
      cmocka_unit_test(a_bound_claim_without_room_goes_back),
      cmocka_unit_test(a_recorded_claim_of_a_closed_lane_goes_back),
  };
  return cmocka_run_group_tests_name("driver", tests, NULL, NULL);
}
