/* SPDX-License-Identifier: MIT
 *
 * When a plugin is to give back what it has not begun to send: as soon as the lease under which it was given is lost,
 * or not certain any more, and once for what it has. What the driver makes of what comes back.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/driver.h"
#include "core/lane.h"

enum { SECOND_US = 1000 * 1000, LIMIT_US = 30 * SECOND_US, SHARD = 3, OTHER = 5, EPOCH = 7, TURNS = 30 };

/* --- whether it is due --- */

struct fixture {
  struct leases leases;
  struct recall recall;
  struct instant now;
  int64_t rest_us;
  uint8_t shard;
};

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  leases_init(&f->leases);
  f->now = clock_instant();
  leases_gain(&f->leases, SHARD, EPOCH, f->now, SECOND_US, false);
  leases_gain(&f->leases, OTHER, EPOCH, f->now, 10 * SECOND_US, false);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  leases_destroy(&f->leases);
  free(f);
  return 0;
}

/* So long after the beginning. */
static bool is_due(struct fixture *f, int64_t after_us) {
  struct instant at = {.mono_us = f->now.mono_us + after_us, .boot_us = f->now.boot_us + after_us};
  return recall_due(&f->recall, &f->leases, at, &f->shard, &f->rest_us);
}

static void what_has_nothing_is_never_asked(void **state) {
  struct fixture *f = *state;
  assert_false(is_due(f, 100 * SECOND_US));
  assert_true(f->rest_us == INT64_MAX);
  recall_given(&f->recall, SHARD, EPOCH);
  recall_left(&f->recall, SHARD);
  assert_false(is_due(f, 100 * SECOND_US));
  assert_true(f->rest_us == INT64_MAX);
}

static void it_is_asked_when_a_lease_is_over(void **state) {
  struct fixture *f = *state;
  recall_given(&f->recall, OTHER, EPOCH);
  recall_given(&f->recall, SHARD, EPOCH);
  assert_false(is_due(f, SECOND_US - 1000));
  assert_int_equal(f->rest_us, 1000); /* no later than it ends */
  assert_false(is_due(f, 0));
  assert_int_equal(f->rest_us, RECALL_LOOK_US); /* it may be found lost before */
  assert_true(is_due(f, SECOND_US));
  assert_int_equal(f->shard, SHARD);
}

static void it_is_asked_when_a_lease_is_lost_or_in_doubt(void **state) {
  struct fixture *f = *state;
  const struct shard_lease lease = {.shard = SHARD, .epoch = EPOCH};
  recall_given(&f->recall, SHARD, EPOCH);
  assert_true(leases_lose(&f->leases, lease, NULL));
  assert_true(is_due(f, 0));
  recall_asked(&f->recall);
  recall_given(&f->recall, OTHER, EPOCH);
  assert_false(is_due(f, 0));
  leases_doubt(&f->leases, f->now.boot_us);
  assert_true(is_due(f, 0));
  assert_int_equal(f->shard, OTHER);
}

/* A machine that was suspended: the monotonic clock stood still, and boot time went on. */
static void a_suspended_machine_is_not_safe(void **state) {
  struct fixture *f = *state;
  struct instant at = {.mono_us = f->now.mono_us, .boot_us = f->now.boot_us + 9 * SECOND_US};
  recall_given(&f->recall, OTHER, EPOCH);
  assert_true(recall_due(&f->recall, &f->leases, at, &f->shard, &f->rest_us));
}

/* Lost, and gained again before anybody looked: what it was given before is another lease's. */
static void another_epoch_is_another_lease(void **state) {
  struct fixture *f = *state;
  const struct shard_lease lease = {.shard = SHARD, .epoch = EPOCH};
  recall_given(&f->recall, SHARD, EPOCH);
  assert_true(leases_lose(&f->leases, lease, NULL));
  leases_gain(&f->leases, SHARD, EPOCH + 1, f->now, 10 * SECOND_US, false);
  recall_given(&f->recall, SHARD, EPOCH + 1);
  assert_true(is_due(f, 0));
  recall_asked(&f->recall);
  recall_given(&f->recall, SHARD, EPOCH + 1); /* the first one is there still: it cannot be taken back */
  assert_false(is_due(f, 0));
}

/* What it cannot take back is no reason to ask again: it would give back what it was given since under other leases. */
static void it_is_asked_once_for_what_it_has(void **state) {
  struct fixture *f = *state;
  recall_given(&f->recall, SHARD, EPOCH);
  assert_true(is_due(f, SECOND_US));
  recall_asked(&f->recall);
  recall_given(&f->recall, OTHER, EPOCH);
  assert_false(is_due(f, SECOND_US));
  assert_false(is_due(f, 5 * SECOND_US));
  assert_true(is_due(f, 10 * SECOND_US));
}

/* --- the driver --- */

/* A plugin that takes everything and sends it when it is told to. */
static struct keeper_plugin {
  const struct duebox_host *host;
  uint64_t tokens[4];
  size_t count;
  bool begun;     /* it has begun to send what it has: nothing can be taken back */
  int longest_ms; /* of a poll while it had something */
  atomic_uint submits, recalls, polls;
} keeps;

static struct stand {
  struct flight_table flights;
  struct lane lane;
  struct engine_metrics metrics;
  struct mailbox settler;
  struct leases leases;
  struct config config;
  struct plugin_config plugin;
  struct driver_env env;
  struct task tasks[2];
  struct flight *flight[2];
  struct driver *driver;
} stand;

static bool keep_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                        struct duebox_error *err) {
  keeps.host = host;
  return true;
}
static bool keep_start(void *inst, struct duebox_error *err) { return true; }
static void keep_quiet(void *inst) {}
static void keep_poll(void *inst, int timeout_ms) {
  keeps.longest_ms = keeps.count && timeout_ms > keeps.longest_ms ? timeout_ms : keeps.longest_ms;
  thread_sleep(1000);
  keeps.polls++;
}

static size_t keep_submit(void *inst, const struct duebox_task *const *tasks, size_t n) {
  for (size_t i = 0; i < n; i++)
    keeps.tokens[keeps.count++] = tasks[i]->token;
  keeps.submits++;
  return n;
}

static void end_all(const struct duebox_outcome *outcome) {
  while (keeps.count > 0)
    keeps.host->complete(keeps.host->ctx, keeps.tokens[--keeps.count], outcome);
}

static void keep_recall(void *inst) {
  keeps.recalls++;
  if (!keeps.begun)
    end_all(&DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE, .scope = DUEBOX_SCOPE_INSTANCE, .recalled = true,
                            .error_class = "keep.recalled", .message = "taken back"));
}

static void keep_stop(void *inst, int deadline_ms) {
  end_all(&DUEBOX_OUTCOME(.cls = DUEBOX_UNKNOWN, .error_class = "keep.stopped", .message = "stopped"));
}

static const struct duebox_sink_ops keep_sink = {
    .struct_size = sizeof keep_sink, .submit = keep_submit, .recall = keep_recall};
static const struct duebox_sink_ops old_sink = {
    .struct_size = offsetof(struct duebox_sink_ops, recall), .submit = keep_submit, .recall = keep_recall};
static const struct duebox_option no_rows[] = {{.name = NULL}};

static struct duebox_plugin keep_plugin = {DUEBOX_PLUGIN_PREFIX, .name = "keeps",   .create = keep_create,
                                           .start = keep_start,  .poll = keep_poll, .wakeup = keep_quiet,
                                           .close = keep_quiet,  .stop = keep_stop, .destroy = keep_quiet,
                                           .sink = &keep_sink,   .options = no_rows};

static void stand_up(const struct duebox_sink_ops *sink) {
  struct err err = {0};
  memset(&keeps, 0, sizeof keeps);
  keep_plugin.sink = sink;
  stand = (struct stand){.lane = {.at_sink_max = 10, .stall = {.limit_us = LIMIT_US}},
                         .plugin = {.name = "keeps", .module = &keep_plugin, .max_inflight = 10}};
  stand.env = (struct driver_env){
      .flights = &stand.flights, .settler = &stand.settler, .leases = &stand.leases, .metrics = &stand.metrics};
  mailbox_init(&stand.settler);
  leases_init(&stand.leases);
  leases_gain(&stand.leases, SHARD, EPOCH, clock_instant(), 10 * LIMIT_US, false);
  leases_gain(&stand.leases, OTHER, EPOCH, clock_instant(), 10 * LIMIT_US, false);
  stand.driver = driver_start(&stand.config, &stand.plugin, NULL, &stand.env, &err);
  assert_non_null(stand.driver);
  assert_int_equal(driver_born(stand.driver, LIMIT_US / 1000, &err), DRIVER_BORN);
}

static void give(size_t i, uint8_t shard) {
  struct flight_list list = {0};
  stand.tasks[i] = (struct task){.id = i + 1,
                                 .attempt_now = 1,
                                 .recorded = true,
                                 .shard = shard,
                                 .view = {.message_id = "m", .timeout_ms = 600000}};
  struct flight *flight = stand.flight[i] = flight_take(&stand.flights, &stand.tasks[i]);
  assert_non_null(flight);
  flight->lane = &stand.lane;
  flight->driver = stand.driver;
  flight->times_sink = true;
  flight->epoch = EPOCH;
  flight->read_us = clock_mono_us();
  flight->handed_us = flight->read_us;
  flight->lease_ms = 15000;
  stand.tasks[i].view.token = flight_open(flight);
  unsigned before = atomic_load(&keeps.submits);
  flight_list_add(&list, flight);
  driver_push(stand.driver, &list);
  for (int64_t end = clock_mono_us() + LIMIT_US; atomic_load(&keeps.submits) == before && clock_mono_us() < end;)
    thread_sleep(1000);
  assert_int_equal(atomic_load(&keeps.submits), before + 1);
}

static void free_texts(struct flight_list *out) {
  for (struct flight *flight; (flight = flight_list_pop(out));) {
    free(flight->text);
    flight->text = NULL;
  }
}

static void stand_down(void) {
  struct flight_list out = {0};
  driver_stop(stand.driver, 1000);
  assert_true(driver_join(stand.driver, 10000));
  mailbox_take(&stand.settler, 0, &out);
  free_texts(&out);
  assert_int_equal(stand.driver->at_sink, 0);
  assert_int_equal(stand.lane.at_sink, 0);
  assert_int_equal(stand.driver->recall.open[SHARD], 0);
  driver_free(&stand.driver);
  HASH_CLEAR(by_id, stand.flights.by_id);
  flight_table_free(&stand.flights);
  mailbox_destroy(&stand.settler);
  leases_destroy(&stand.leases);
}

static void lose(void) {
  const struct shard_lease lease = {.shard = SHARD, .epoch = EPOCH};
  assert_true(leases_lose(&stand.leases, lease, NULL));
}

/* As many turns of the driver as there may be: in each it could ask. */
static void wait_turns(void) {
  unsigned upto = atomic_load(&keeps.polls) + TURNS;
  for (int64_t end = clock_mono_us() + LIMIT_US; atomic_load(&keeps.polls) < upto && clock_mono_us() < end;)
    thread_sleep(1000);
  assert_true(atomic_load(&keeps.polls) >= upto);
}

static void wait_recalled(void) {
  for (int64_t end = clock_mono_us() + LIMIT_US; atomic_load(&keeps.recalls) == 0 && clock_mono_us() < end;)
    thread_sleep(1000);
  assert_int_equal(atomic_load(&keeps.recalls), 1);
}

/* Both come back as if the plugin had never had them: the one whose lease stands is handed over again. */
static void what_is_recalled_was_never_sent(void **state) {
  struct flight_list out = {0};
  stand_up(&keep_sink);
  give(0, SHARD);
  give(1, OTHER);
  lose();
  while (out.count < 2)
    mailbox_take(&stand.settler, clock_mono_us() + LIMIT_US, &out);
  for (const struct flight *flight = out.head; flight; flight = flight->next) {
    assert_int_equal(flight->end, FLIGHT_UNSENT);
    assert_false(flight->submitted);
  }
  free_texts(&out);
  assert_int_equal(keeps.recalls, 1);
  stand_down();
  assert_true(keeps.longest_ms <= RECALL_LOOK_US / 1000 + 1);
}

/* Cut off from the database: nobody tells, and the lease ends by itself. */
static void a_lease_that_ends_by_itself_is_noticed(void **state) {
  struct flight_list out = {0};
  stand_up(&keep_sink);
  give(0, SHARD);
  leases_renewed(&stand.leases, (struct shard_lease){.shard = SHARD, .epoch = EPOCH}, clock_instant(), SECOND_US / 20);
  while (out.count < 1)
    mailbox_take(&stand.settler, clock_mono_us() + LIMIT_US, &out);
  assert_int_equal(out.head->end, FLIGHT_UNSENT);
  free_texts(&out);
  stand_down();
}

/* What has begun to leave goes on, and the plugin is not asked again and again. */
static void what_has_begun_to_leave_is_its_plugins(void **state) {
  struct flight_list out = {0};
  stand_up(&keep_sink);
  keeps.begun = true;
  give(0, SHARD);
  lose();
  wait_recalled();
  give(1, OTHER);
  wait_turns();
  assert_int_equal(keeps.recalls, 1);
  assert_false(mailbox_count(&stand.settler));
  driver_stop(stand.driver, 1000);
  assert_true(driver_join(stand.driver, 10000));
  mailbox_take(&stand.settler, 0, &out);
  assert_int_equal(out.count, 2);
  assert_int_equal(out.head->end, FLIGHT_STOPPED);
  free_texts(&out);
  assert_int_equal(stand.driver->at_sink, 0);
  driver_free(&stand.driver);
  HASH_CLEAR(by_id, stand.flights.by_id);
  flight_table_free(&stand.flights);
  mailbox_destroy(&stand.settler);
  leases_destroy(&stand.leases);
}

/* The host does not look behind what an older plugin has compiled. */
static void an_older_plugin_is_not_asked(void **state) {
  stand_up(&old_sink);
  give(0, SHARD);
  lose();
  wait_turns();
  assert_int_equal(keeps.recalls, 0);
  stand_down();
}

int main(void) {
#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      ROW(what_has_nothing_is_never_asked),
      ROW(it_is_asked_when_a_lease_is_over),
      ROW(it_is_asked_when_a_lease_is_lost_or_in_doubt),
      ROW(a_suspended_machine_is_not_safe),
      ROW(another_epoch_is_another_lease),
      ROW(it_is_asked_once_for_what_it_has),
      cmocka_unit_test(what_is_recalled_was_never_sent),
      cmocka_unit_test(a_lease_that_ends_by_itself_is_noticed),
      cmocka_unit_test(what_has_begun_to_leave_is_its_plugins),
      cmocka_unit_test(an_older_plugin_is_not_asked),
  };
#undef ROW
  return cmocka_run_group_tests(tests, NULL, NULL);
}
