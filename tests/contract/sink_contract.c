/* SPDX-License-Identifier: MIT
 *
 * tests/contract/sink_contract.c - see sink_contract.h. Exactly-once completion, use after completion and reports after
 * stop() are watched by the fake host in every test; here is what a test must provoke.
 */
#include "tests/contract/sink_contract_run.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/support/fake_host.h"
#include "tests/support/own_time.h"

#define LIMIT_MS 60000       /* longest wait for something that must come */
#define HOLD_MS 300          /* how long nothing may be called delivered, where nothing is confirmed */
#define RECALLED 50          /* tasks that are taken back */
#define NEVER_BLOCKS_MS 2500 /* own time (own_time.h), submit() of some hundred tasks, with sanitizers */

static struct fake_host_config config_of(const struct run *run) {
  return (struct fake_host_config){
      .plugin = run->c->plugin,
      .module = run->c->module,
      .role = DUEBOX_ROLE_SINK,
      .options = run->c->options(run->fixture),
      .max_payload = run->c->max_payload,
  };
}

static struct fake_host *open_host(const struct run *run, const char *name) {
  struct fake_host_config config = config_of(run);
  config.name = name;
  return fake_host_open(&config);
}

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

static void add(struct fake_host *host, const void *route, uint32_t attempt, const char *id) {
  fake_host_add(host, &(struct fake_task){.message_id = id,
                                          .attempt = attempt,
                                          .route_data = route,
                                          .key = text("order-17"),
                                          .payload = text("{\"order\":17}")});
}

static void add_many(struct fake_host *host, const void *route, size_t n) {
  for (size_t i = 0; i < n; i++)
    add(host, route, 1, NULL);
}

static void settle(struct fake_host *host, int limit_ms, const char *what) {
  if (!fake_host_settle(host, limit_ms))
    fail_msg("%s: %zu of %zu tasks completed within %d ms (%zu accepted)", what, fake_host_completed(host),
             fake_host_tasks(host), limit_ms, fake_host_accepted(host));
}

/* How often the destination holds this id (attempt 0: any attempt). */
static size_t held_copies(const struct run *run, const char *id, uint32_t attempt) {
  size_t count, copies = 0;
  const struct contract_message *messages = run->c->received(run->fixture, &count);
  for (size_t i = 0; i < count; i++)
    copies += strcmp(messages[i].id, id) == 0 && (attempt == 0 || messages[i].attempt == attempt);
  return copies;
}

static void wait_received(const struct run *run, size_t want) {
  size_t count = 0;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_now_ms() < end; usleep(5000)) {
    run->c->received(run->fixture, &count);
    if (count >= want)
      return;
  }
  fail_msg("the destination holds %zu messages, %zu expected", count, want);
}

/* A destination may show what it holds a little later than it confirms it: each that is called delivered must come. */
static void wait_delivered(const struct run *run, struct fake_host *host) {
  int64_t end = fake_host_now_ms() + LIMIT_MS;
  wait_received(run, fake_host_count(host, DUEBOX_DELIVERED));
  for (size_t i = 0; i < fake_host_tasks(host); i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    while (outcome.cls == DUEBOX_DELIVERED && held_copies(run, outcome.message_id, outcome.attempt) == 0 &&
           fake_host_now_ms() < end)
      usleep(5000);
  }
}

/* Delivered: held at least once, and once exactly without a fault. Unavailable: certainly not sent, so never held. */
static void check_honest(const struct run *run, struct fake_host *host, bool fault) {
  wait_delivered(run, host);
  for (size_t i = 0; i < fake_host_tasks(host); i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    size_t copies = held_copies(run, outcome.message_id, outcome.attempt);
    if (outcome.cls == DUEBOX_DELIVERED && copies == 0)
      fail_msg("%s is called delivered and the destination does not hold it", outcome.message_id);
    if (outcome.cls == DUEBOX_DELIVERED && copies > 1 && !fault)
      fail_msg("%s is held %zu times although there was no fault", outcome.message_id, copies);
    if ((outcome.cls == DUEBOX_UNAVAILABLE || outcome.cls == DUEBOX_REJECTED) && copies > 0)
      fail_msg("%s is called \"not sent\" (%s) and the destination holds it", outcome.message_id, outcome.error_class);
  }
}

/* --- normal life --- */

static void every_task_is_completed_once(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "many");
  add_many(host, run->c->route(run->fixture), 500);
  settle(host, LIMIT_MS, "500 tasks");
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 500);
  check_honest(run, host, false);
  assert_int_equal(fake_host_health(host), 1);
  fake_host_free(host);
}

static void wait_connected(struct fake_host *host) {
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_health(host) != 1 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_health(host), 1);
}

/* duebox_plugin_up says 0, and `duebox doctor` warns, as long as it does not. */
static void health_is_told_before_the_first_task(void **state) {
  const struct run *run = *state;
  if (run->c->connects_for_each_task)
    skip();
  struct fake_host *host = open_host(run, "health");
  wait_connected(host);
  fake_host_free(host);
}

static void more_tasks_than_in_flight_all_pass(void **state) {
  const struct run *run = *state;
  struct fake_host_config config = config_of(run);
  config.max_inflight = 8;
  struct fake_host *host = fake_host_open(&config);
  add_many(host, run->c->route(run->fixture), 200);
  settle(host, LIMIT_MS, "200 tasks through a window of 8");
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 200);
  check_honest(run, host, false);
  fake_host_free(host);
}

static const struct contract_message *find(const struct run *run, const char *id) {
  size_t count;
  const struct contract_message *messages = run->c->received(run->fixture, &count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(messages[i].id, id) == 0)
      return &messages[i];
  fail_msg("the destination does not hold %s", id);
  return NULL;
}

static void check_header(const struct contract_message *message, const char *name, const char *value, size_t len) {
  for (size_t i = 0; i < message->header_count; i++) {
    const struct duebox_header *header = &message->headers[i];
    if (strcasecmp(header->name, name) != 0)
      continue;
    if (header->value.len != len || (len && memcmp(header->value.data, value, len) != 0))
      fail_msg("header %s arrived as \"%.*s\"", name, (int)header->value.len, header->value.data);
    return;
  }
  fail_msg("header %s did not arrive", name);
}

static void bodies_arrive_unchanged(void **state) {
  const struct run *run = *state;
  size_t max = (size_t)run->c->max_payload;
  char binary[256], *largest = malloc(max);
  assert_non_null(largest);
  for (size_t i = 0; i < max; i++)
    largest[i] = (char)(i * 31 + (i >> 8));
  for (size_t i = 0; i < sizeof(binary); i++)
    binary[i] = (char)i;
  const struct duebox_bytes bodies[] = {{binary, sizeof(binary)}, {"", 0}, {"\0", 1}, {largest, max}};
  static const char *const ids[] = {"binary", "empty", "one-nul", "largest"};
  struct fake_host *host = open_host(run, "bodies");
  for (size_t i = 0; i < 4; i++)
    fake_host_add(host, &(struct fake_task){
                            .message_id = ids[i], .payload = bodies[i], .route_data = run->c->route(run->fixture)});
  settle(host, LIMIT_MS, "four bodies");
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 4);
  wait_received(run, 4);
  for (size_t i = 0; i < 4; i++) {
    const struct contract_message *message = find(run, ids[i]);
    assert_int_equal(message->body.len, bodies[i].len);
    if (bodies[i].len)
      assert_memory_equal(message->body.data, bodies[i].data, bodies[i].len);
  }
  fake_host_free(host);
  free(largest);
}

static void headers_arrive_unchanged(void **state) {
  const struct run *run = *state;
  char longest[4000];
  memset(longest, 'x', sizeof(longest));
  const struct duebox_header headers[] = {
      {"traceparent", text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
      {"X-Under_score.1", text("a=b, \"c\"; d:e")},
      {"x-utf8", text("caf\xc3\xa9 \xe2\x82\xac")},
      {"x-bytes", text("\xff\xfe\x80")},
      {"x-empty", text("")},
      {"x-long", {longest, sizeof(longest)}},
  };
  struct fake_host *host = open_host(run, "headers");
  fake_host_add(host, &(struct fake_task){.message_id = "with-headers",
                                          .route = "orders.cancel",
                                          .attempt = 3,
                                          .checkpoint = text("page 7"),
                                          .payload = text("x"),
                                          .headers = headers,
                                          .header_count = 6,
                                          .route_data = run->c->route(run->fixture)});
  settle(host, LIMIT_MS, "a task with headers");
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 1);
  wait_received(run, 1);
  const struct contract_message *message = find(run, "with-headers");
  assert_int_equal(message->attempt, 3);
  for (size_t i = 0; i < 6; i++)
    check_header(message, headers[i].name, headers[i].value.data, headers[i].value.len);
  check_header(message, "duebox-route", "orders.cancel", 13);
  check_header(message, "duebox-checkpoint", "page 7", 6);
  check_header(message, "duebox-due", "2026-01-02T03:04:05.123456Z", 27);
  fake_host_free(host);
}

/* --- trouble --- */

static void each_task_has_its_own_outcome(void **state) {
  const struct run *run = *state;
  if (!run->c->missing_route)
    skip();
  const void *good = run->c->route(run->fixture), *missing = run->c->missing_route(run->fixture);
  struct fake_host *host = open_host(run, "mixed");
  for (size_t i = 0; i < 30; i++) /* first, middle and last go nowhere */
    add(host, i == 0 || i == 15 || i == 29 ? missing : good, 1, NULL);
  settle(host, LIMIT_MS, "27 good and 3 bad tasks");
  for (size_t i = 0; i < 30; i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    if (i == 0 || i == 15 || i == 29)
      assert_int_not_equal(outcome.cls, DUEBOX_DELIVERED);
    else if (outcome.cls != DUEBOX_DELIVERED)
      fail_msg("task %zu, a good one, ended as class %d: %s", i, (int)outcome.cls, outcome.message);
    if (outcome.cls == DUEBOX_UNAVAILABLE)
      assert_int_not_equal(outcome.scope, DUEBOX_SCOPE_INSTANCE);
  }
  check_honest(run, host, true);
  fake_host_free(host);
}

static void submit_never_blocks(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "stuck");
  run->c->reachable(run->fixture, false);
  add_many(host, run->c->route(run->fixture), 600);
  for (int i = 0; i < 20; i++) {
    int64_t begin = own_time_ms();
    fake_host_offer(host);
    int64_t took = own_time_ms() - begin;
    if (took > NEVER_BLOCKS_MS)
      fail_msg("submit() took %lld ms while the destination was away", (long long)took);
    fake_host_poll(host, 1);
  }
  settle(host, run->c->unavailable_ms + LIMIT_MS, "600 tasks towards a dead destination");
  run->c->reachable(run->fixture, true);
  check_honest(run, host, true);
  fake_host_free(host);
}

static void down_at_start_then_recovery(void **state) {
  const struct run *run = *state;
  run->c->reachable(run->fixture, false);
  struct fake_host *host = open_host(run, "down");
  const void *route = run->c->route(run->fixture);
  static const char *const ids[] = {"early-0", "early-1", "early-2"};
  for (size_t i = 0; i < 3; i++)
    add(host, route, 1, ids[i]);
  int64_t begin = own_time_ms();
  settle(host, run->c->unavailable_ms + LIMIT_MS, "tasks towards a destination that was never there");
  int64_t took = own_time_ms() - begin;
  if (took > run->c->unavailable_ms)
    fail_msg("a destination that was never there was reported after %lld ms", (long long)took);
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(fake_host_outcome(host, i).cls, DUEBOX_UNAVAILABLE);
  assert_int_equal(fake_host_health(host), 0);

  run->c->reachable(run->fixture, true);
  uint32_t attempt = 1;
  bool all = false;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; !all && fake_host_now_ms() < end;) {
    size_t before = fake_host_tasks(host);
    attempt++;
    for (size_t i = 0; i < 3; i++)
      add(host, route, attempt, ids[i]);
    settle(host, LIMIT_MS, "tasks after the destination came back");
    all = true;
    for (size_t i = before; i < before + 3; i++)
      all = all && fake_host_outcome(host, i).cls == DUEBOX_DELIVERED;
  }
  assert_true(all);
  assert_int_equal(fake_host_health(host), 1);
  check_honest(run, host, true);
  fake_host_free(host);
}

static void goes_down_and_up_in_the_middle(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "outage");
  const void *route = run->c->route(run->fixture);
  add_many(host, route, 50);
  settle(host, LIMIT_MS, "tasks before the outage");
  run->c->reachable(run->fixture, false);
  add_many(host, route, 50);
  settle(host, run->c->unavailable_ms + LIMIT_MS, "tasks during the outage");
  run->c->reachable(run->fixture, true);
  size_t delivered = fake_host_count(host, DUEBOX_DELIVERED), want = delivered + 1;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; delivered < want && fake_host_now_ms() < end;) {
    add(host, route, 1, NULL);
    settle(host, LIMIT_MS, "a task after the outage");
    delivered = fake_host_count(host, DUEBOX_DELIVERED);
  }
  assert_int_equal(delivered, want);
  check_honest(run, host, true);
  fake_host_free(host);
}

static void delivered_only_after_the_confirmation(void **state) {
  const struct run *run = *state;
  if (!run->c->hold)
    skip();
  struct fake_host *host = open_host(run, "held");
  const void *route = run->c->route(run->fixture);
  add_many(host, route, 5); /* connects first, so that the next ones really reach the destination */
  settle(host, LIMIT_MS, "tasks before the hold");
  run->c->hold(run->fixture, true);
  int64_t begin = fake_host_now_ms();
  add_many(host, route, 20);
  while (fake_host_now_ms() - begin < HOLD_MS) {
    fake_host_offer(host);
    fake_host_poll(host, 10);
    size_t delivered = fake_host_count(host, DUEBOX_DELIVERED);
    if (run->c->held_ms && fake_host_now_ms() - begin >= run->c->held_ms)
      break; /* too slow a machine to tell: some may be confirmed by now */
    assert_int_equal(delivered, 5);
  }
  run->c->hold(run->fixture, false);
  settle(host, LIMIT_MS, "tasks after the hold");
  check_honest(run, host, true);
  fake_host_free(host);
}

/* --- taken back --- */

static size_t recalled(struct fake_host *host) {
  size_t count = 0;
  for (size_t i = 0; i < fake_host_accepted(host); i++)
    count += fake_host_outcome(host, i).recalled;
  return count;
}

/* What the plugin has accepted and not begun to send comes back at once, though the destination stands still; it does
 * not arrive, and what is handed over later does. */
static void what_is_recalled_never_leaves(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "recall");
  const void *route = run->c->route(run->fixture);
  if (!run->c->connects_for_each_task)
    wait_connected(host);
  if (run->c->hold)
    run->c->hold(run->fixture, true);
  add_many(host, route, RECALLED);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_accepted(host) == 0 && fake_host_now_ms() < end;) {
    if (fake_host_offer(host) == 0)
      fake_host_poll(host, 10); /* it connects */
  }
  if (!fake_host_recall(host)) {
    if (run->c->hold)
      run->c->hold(run->fixture, false);
    settle(host, LIMIT_MS, "tasks of a plugin that cannot take them back");
    fake_host_free(host);
    skip();
  }
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; recalled(host) == 0 && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_true(recalled(host) > 0);
  assert_true(fake_host_recall(host)); /* there may be nothing left to take back */
  if (run->c->hold)
    run->c->hold(run->fixture, false);
  settle(host, LIMIT_MS, "tasks after a recall");
  size_t delivered = fake_host_count(host, DUEBOX_DELIVERED);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS;
       fake_host_count(host, DUEBOX_DELIVERED) < delivered + RECALLED && fake_host_now_ms() < end;) {
    add_many(host, route, 1);
    settle(host, LIMIT_MS, "a task after a recall");
  }
  assert_true(fake_host_count(host, DUEBOX_DELIVERED) >= delivered + RECALLED);
  check_honest(run, host, true);
  fake_host_free(host);
}

/* --- the end --- */

static void check_stopped(const struct run *run, struct fake_host *host, int64_t took, int deadline_ms) {
  if (took > deadline_ms + 1000) /* a second for sanitizers */
    fail_msg("stop(%d ms) took %lld ms", deadline_ms, (long long)took);
  for (size_t i = 0; i < fake_host_accepted(host); i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    assert_true(outcome.completed);
    if (outcome.cls != DUEBOX_DELIVERED && outcome.cls != DUEBOX_UNKNOWN && outcome.cls != DUEBOX_UNAVAILABLE)
      fail_msg("%s ended as class %d in stop()", outcome.message_id, (int)outcome.cls);
  }
  check_honest(run, host, true);
}

static void check_stop_while_away(const struct run *run, int deadline_ms) {
  struct fake_host *host = open_host(run, deadline_ms ? "stop-down" : "stop-at-once");
  run->c->reachable(run->fixture, false);
  add_many(host, run->c->route(run->fixture), 50);
  fake_host_offer(host);
  fake_host_close(host);
  int64_t took = fake_host_stop(host, deadline_ms);
  run->c->reachable(run->fixture, true);
  check_stopped(run, host, took, deadline_ms);
  fake_host_free(host);
}

static void stop_ends_what_is_open(void **state) { check_stop_while_away(*state, 500); }
static void stop_without_time_ends_what_is_open(void **state) { check_stop_while_away(*state, 0); }

static void stop_ends_what_is_unconfirmed(void **state) {
  const struct run *run = *state;
  if (!run->c->hold)
    skip();
  struct fake_host *host = open_host(run, "stop-held");
  add_many(host, run->c->route(run->fixture), 5);
  settle(host, LIMIT_MS, "tasks before the hold");
  run->c->hold(run->fixture, true);
  add_many(host, run->c->route(run->fixture), 50);
  fake_host_offer(host);
  for (int i = 0; i < 20; i++)
    fake_host_poll(host, 10);
  fake_host_close(host);
  int64_t took = fake_host_stop(host, 500);
  run->c->hold(run->fixture, false);
  check_stopped(run, host, took, 500);
  fake_host_free(host);
}

static void close_refuses_new_work_and_finishes_the_old(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "close");
  add_many(host, run->c->route(run->fixture), 40);
  size_t taken = 0;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; taken == 0 && fake_host_now_ms() < end;
       fake_host_poll(host, taken ? 0 : 10))
    taken = fake_host_offer(host); /* nothing at first is allowed: not connected yet */
  assert_true(taken > 0);
  fake_host_close(host);
  add_many(host, run->c->route(run->fixture), 10);
  assert_int_equal(fake_host_offer(host), 0);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_completed(host) < taken && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), taken);
  fake_host_stop(host, 1000);
  check_honest(run, host, false);
  fake_host_free(host);
}

static void every_shortened_life_is_safe(void **state) {
  const struct run *run = *state;
  struct fake_host_config config = config_of(run);
  struct duebox_error err = {.text = ""};
  struct fake_host *host = fake_host_new(&config);
  assert_true(fake_host_create(host, &err));
  fake_host_free(host); /* created, never started */
  host = fake_host_open(&config);
  fake_host_free(host); /* started, never polled */
  host = fake_host_open(&config);
  fake_host_close(host);
  fake_host_stop(host, 0);
  fake_host_free(host); /* closed and stopped at once */
  if (!run->c->broken_options)
    return;
  config.options = run->c->broken_options(run->fixture);
  host = fake_host_new(&config);
  assert_false(fake_host_create(host, &err));
  assert_true(err.text[0]);
  fake_host_free(host);
}

/* --- threads --- */

static void wakeup_ends_poll(void **state) {
  struct fake_host *host = open_host(*state, "wakeup");
  fake_host_check_wakeup(host);
  fake_host_free(host);
}

struct lane {
  const void *route;
  struct fake_host *host;
  bool settled;
};

static void *drive_lane(void *arg) {
  struct lane *lane = arg;
  add_many(lane->host, lane->route, 200);
  lane->settled = fake_host_settle(lane->host, LIMIT_MS);
  fake_host_close(lane->host);
  fake_host_stop(lane->host, 1000);
  return NULL;
}

static void two_instances_at_once(void **state) {
  const struct run *run = *state;
  struct lane lanes[2];
  struct fake_host_config config = config_of(run);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    config.name = i ? "right" : "left";
    lanes[i] = (struct lane){run->c->route(run->fixture), fake_host_open(&config), false};
  }
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, drive_lane, &lanes[i]), 0);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) {
    assert_true(lanes[i].settled);
    assert_int_equal(fake_host_count(lanes[i].host, DUEBOX_DELIVERED), 200);
    check_honest(run, lanes[i].host, false);
    fake_host_free(lanes[i].host);
  }
}

/* --- the group --- */

static int set_up(void **state) {
  struct run *run = *state;
  run->fixture = run->c->open();
  return run->fixture ? 0 : -1;
}

static int tear_down(void **state) {
  struct run *run = *state;
  run->c->close(run->fixture);
  run->fixture = NULL;
  return 0;
}

int sink_contract_run(const char *name, const struct sink_contract *contract) {
  struct run run = {contract, NULL};
#define ROW(f)                                                                                                         \
  { #f, f, set_up, tear_down, &run }
  const struct CMUnitTest tests[] = {
      ROW(every_task_is_completed_once),
      ROW(health_is_told_before_the_first_task),
      ROW(more_tasks_than_in_flight_all_pass),
      ROW(bodies_arrive_unchanged),
      ROW(ids_of_every_form_are_told_apart),
      ROW(headers_arrive_unchanged),
      ROW(each_task_has_its_own_outcome),
      ROW(submit_never_blocks),
      ROW(down_at_start_then_recovery),
      ROW(goes_down_and_up_in_the_middle),
      ROW(delivered_only_after_the_confirmation),
      ROW(what_is_recalled_never_leaves),
      ROW(stop_ends_what_is_open),
      ROW(stop_without_time_ends_what_is_open),
      ROW(stop_ends_what_is_unconfirmed),
      ROW(close_refuses_new_work_and_finishes_the_old),
      ROW(every_shortened_life_is_safe),
      ROW(wakeup_ends_poll),
      ROW(two_instances_at_once),
  };
#undef ROW
  cmocka_set_test_filter(getenv("DUEBOX_TEST_ONLY")); /* a pattern such as "stop_*"; all when unset */
  return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
