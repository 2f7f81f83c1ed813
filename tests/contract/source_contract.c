/* SPDX-License-Identifier: MIT
 *
 * tests/contract/source_contract.c - see source_contract.h. Reports after stop(), cookies used twice and offers to a
 * full host are watched by the fake host in every test.
 */
#include "tests/contract/source_contract.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/support/fake_host.h"

#define LIMIT_MS 30000 /* longest wait for something that must come */
#define QUIET_MS 300   /* how long nothing may come, where nothing must come */
#define MAX_RECORD 65536
#define BIG_RECORD (10 << 20)

struct run {
  const struct source_contract *c;
  void *fixture;
};

static struct fake_host *open_host(const struct run *run, const char *name) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = run->c->plugin,
      .module = run->c->module,
      .role = DUEBOX_ROLE_SOURCE,
      .options = run->c->options(run->fixture),
      .source = run->c->source(run->fixture),
      .name = name,
      .max_record = MAX_RECORD,
  });
}

static void publish_numbers(const struct run *run, size_t first, size_t count) {
  char body[32];
  for (size_t i = first; i < first + count; i++)
    run->c->publish(run->fixture, body, (size_t)snprintf(body, sizeof(body), "record %zu", i));
}

static void wait_results(const struct run *run, struct fake_host *host, size_t count) {
  if (!fake_host_wait_results(host, count, run->c->ready_ms + LIMIT_MS))
    fail_msg("%zu of %zu records came", fake_host_results(host), count);
}

static void stays_quiet_for(struct fake_host *host, int ms) {
  size_t before = fake_host_results(host);
  for (int64_t end = fake_host_now_ms() + ms; fake_host_now_ms() < end;)
    fake_host_poll(host, 20);
  assert_int_equal(fake_host_results(host), before);
}

static void stays_quiet(struct fake_host *host) { stays_quiet_for(host, QUIET_MS); }

/* How often "record <number>" was handed over, from result `from` on. */
static size_t seen(struct fake_host *host, size_t from, size_t number) {
  char body[32];
  size_t count = 0, len = (size_t)snprintf(body, sizeof(body), "record %zu", number);
  for (size_t i = from; i < fake_host_results(host); i++) {
    struct fake_result result = fake_host_result(host, i);
    count += result.len == len && memcmp(result.body, body, len) == 0;
  }
  return count;
}

/* All of these numbers, whatever else comes. */
static void wait_seen(const struct run *run, struct fake_host *host, const size_t *numbers, size_t count) {
  for (int64_t limit = fake_host_now_ms() + run->c->ready_ms + LIMIT_MS; fake_host_now_ms() < limit;
       fake_host_poll(host, 20)) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
      found += seen(host, 0, numbers[i]) > 0;
    if (found == count)
      return;
  }
  fail_msg("not all of %zu records came (%zu results in all)", count, fake_host_results(host));
}

static void ack_number(struct fake_host *host, size_t number, bool committed) {
  char body[32];
  size_t len = (size_t)snprintf(body, sizeof(body), "record %zu", number);
  for (size_t i = 0; i < fake_host_results(host); i++) {
    struct fake_result result = fake_host_result(host, i);
    if (result.ack == FAKE_OPEN && result.len == len && memcmp(result.body, body, len) == 0) {
      fake_host_ack(host, i, committed);
      return;
    }
  }
  fail_msg("record %zu is not there to acknowledge", number);
}

static void ack_all(struct fake_host *host, bool committed) {
  for (size_t i = 0; i < fake_host_results(host); i++)
    if (fake_host_result(host, i).ack == FAKE_OPEN)
      fake_host_ack(host, i, committed);
}

/* An orderly end: the host refuses what it will not commit any more, then stops. */
static void end(struct fake_host *host) {
  fake_host_close(host);
  ack_all(host, false);
  fake_host_stop(host, 5000);
  fake_host_free(host);
}

/* --- normal life --- */

static void every_record_comes_once(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "many");
  publish_numbers(run, 0, 300);
  wait_results(run, host, 300);
  stays_quiet(host);
  for (size_t i = 0; i < 300; i++)
    assert_int_equal(seen(host, 0, i), 1);
  ack_all(host, true);
  stays_quiet(host);
  end(host);
}

static void records_come_unchanged(void **state) {
  const struct run *run = *state;
  char binary[256], largest[MAX_RECORD];
  for (size_t i = 0; i < sizeof(binary); i++)
    binary[i] = (char)i;
  for (size_t i = 0; i < sizeof(largest); i++)
    largest[i] = (char)(i * 31 + (i >> 8));
  struct fake_host *host = open_host(run, "bytes");
  run->c->publish(run->fixture, binary, sizeof(binary));
  run->c->publish(run->fixture, "", 0);
  run->c->publish(run->fixture, largest, sizeof(largest));
  wait_results(run, host, 3);
  size_t found = 0;
  for (size_t i = 0; i < 3; i++) {
    struct fake_result result = fake_host_result(host, i);
    assert_false(result.truncated);
    const char *want = result.len == sizeof(binary) ? binary : largest;
    found += result.len + 1;
    if (result.len)
      assert_memory_equal(result.body, want, result.len);
  }
  assert_int_equal(found, sizeof(binary) + sizeof(largest) + 3);
  ack_all(host, true);
  end(host);
}

static void a_record_too_large_is_cut_and_marked(void **state) {
  const struct run *run = *state;
  size_t big = run->c->big_records ? BIG_RECORD : MAX_RECORD + 1;
  char *body = malloc(big);
  assert_non_null(body);
  memset(body, 'z', big);
  struct fake_host *host = open_host(run, "oversize");
  run->c->publish(run->fixture, body, big);
  publish_numbers(run, 1, 1);
  wait_results(run, host, 2);
  size_t cut = fake_host_result(host, 0).truncated ? 0 : 1; /* two partitions may swap them */
  struct fake_result result = fake_host_result(host, cut);
  assert_true(result.truncated);
  assert_int_equal(result.full_len, big);
  assert_true(result.len <= MAX_RECORD);
  assert_memory_equal(result.body, body, result.len);
  assert_int_equal(seen(host, 0, 1), 1);
  ack_all(host, true);
  end(host);
  free(body);
}

/* --- acknowledgement --- */

static void committed_is_never_seen_again(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 20);
  struct fake_host *host = open_host(run, "first");
  wait_results(run, host, 20);
  ack_all(host, true);
  end(host);
  host = open_host(run, "second");
  publish_numbers(run, 20, 1);
  wait_results(run, host, 1);
  stays_quiet(host);
  assert_int_equal(seen(host, 0, 20), 1);
  assert_int_equal(fake_host_results(host), 1);
  end(host);
}

static void not_committed_is_seen_again(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 20);
  struct fake_host *host = open_host(run, "first");
  wait_results(run, host, 20);
  for (size_t i = 0; i < 10; i++)
    fake_host_ack(host, i, true);
  bool again[20];
  for (size_t i = 0; i < 20; i++) {
    char number[16];
    struct fake_result result = fake_host_result(host, i);
    snprintf(number, sizeof(number), "%s", result.body + strlen("record "));
    again[strtoul(number, NULL, 10)] = i >= 10;
  }
  end(host);
  host = open_host(run, "second");
  wait_results(run, host, 10);
  stays_quiet(host);
  for (size_t i = 0; i < 20; i++)
    if (again[i])
      assert_int_equal(seen(host, 0, i), 1);
  end(host);
}

/* The third is committed, the others never are: they must come again, whatever the order of the acknowledgements. */
static void an_early_ack_covers_nobody_else(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 5);
  struct fake_host *host = open_host(run, "first");
  wait_results(run, host, 5);
  ack_number(host, 4, true);
  ack_number(host, 2, true);
  stays_quiet(host);
  end(host);
  host = open_host(run, "second");
  static const size_t open[] = {0, 1, 3};
  wait_seen(run, host, open, 3);
  end(host);
}

static void acks_in_any_order_free_everything(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 30);
  struct fake_host *host = open_host(run, "first");
  wait_results(run, host, 30);
  for (size_t i = 0; i < 30; i++)
    ack_number(host, (i * 7 + 3) % 30, true);
  end(host);
  host = open_host(run, "second");
  publish_numbers(run, 30, 1);
  wait_results(run, host, 1);
  stays_quiet(host);
  assert_int_equal(fake_host_results(host), 1);
  assert_int_equal(seen(host, 0, 30), 1);
  end(host);
}

static void a_crash_before_the_commit_loses_nothing(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 10);
  struct fake_host *host = open_host(run, "first");
  wait_results(run, host, 10);
  fake_host_stop(host, 200); /* no close, no ack */
  fake_host_free(host);
  host = open_host(run, "second");
  wait_results(run, host, 10);
  for (size_t i = 0; i < 10; i++)
    assert_int_equal(seen(host, 0, i), 1);
  ack_all(host, true);
  end(host);
}

/* --- flow control --- */

static bool refused(void *host) { return fake_host_refused(host); }

/* A host with room for 7 of 50 records, and full. */
static struct fake_host *open_full_host(const struct run *run) {
  publish_numbers(run, 0, 50);
  struct fake_host *host = open_host(run, "full");
  fake_host_set_room(host, 7);
  if (!fake_host_wait(host, refused, host, run->c->ready_ms + LIMIT_MS))
    fail_msg("the host never became full; %zu records came", fake_host_results(host));
  assert_int_equal(fake_host_results(host), 7);
  return host;
}

/* Now there is room for all: the rest comes, each of them once. */
static void gets_the_rest(const struct run *run, struct fake_host *host, size_t count) {
  fake_host_resume(host, SIZE_MAX);
  wait_results(run, host, count);
  stays_quiet(host);
  for (size_t i = 0; i < count; i++)
    assert_int_equal(seen(host, 0, i), 1);
  ack_all(host, true);
  end(host);
}

static void a_full_host_pauses_and_resumes(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_full_host(run);
  stays_quiet(host);
  fake_host_resume(host, 3);
  if (!fake_host_wait(host, refused, host, LIMIT_MS))
    fail_msg("the host was not filled again; %zu records came", fake_host_results(host));
  assert_int_equal(fake_host_results(host), 10);
  for (size_t i = 0; i < 10; i++)
    fake_host_ack(host, i, true); /* acknowledging goes on while the source is paused */
  stays_quiet(host);
  gets_the_rest(run, host, 50);
}

static void a_host_that_stays_full_gets_the_rest_later(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_full_host(run);
  stays_quiet_for(host, run->c->full_ms + QUIET_MS);
  publish_numbers(run, 50, 10);
  stays_quiet(host);
  gets_the_rest(run, host, 60);
}

static void stop_while_full_loses_nothing(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 10);
  struct fake_host *host = open_host(run, "first");
  fake_host_set_room(host, 4);
  assert_true(fake_host_wait(host, refused, host, run->c->ready_ms + LIMIT_MS));
  for (size_t i = 0; i < 4; i++)
    fake_host_ack(host, i, true);
  end(host);
  host = open_host(run, "second");
  wait_results(run, host, 6);
  stays_quiet(host);
  assert_int_equal(fake_host_results(host), 6);
  ack_all(host, true);
  end(host);
}

static void close_stops_reading(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "close");
  publish_numbers(run, 0, 5);
  wait_results(run, host, 5);
  fake_host_close(host);
  publish_numbers(run, 5, 5);
  stays_quiet(host);
  ack_all(host, true);
  end(host);
  host = open_host(run, "second");
  wait_results(run, host, 5);
  for (size_t i = 5; i < 10; i++)
    assert_int_equal(seen(host, 0, i), 1);
  ack_all(host, true);
  end(host);
}

/* --- trouble --- */

static void down_at_start_then_recovery(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 5);
  run->c->reachable(run->fixture, false);
  struct fake_host *host = open_host(run, "down");
  stays_quiet(host);
  run->c->reachable(run->fixture, true);
  wait_results(run, host, 5);
  ack_all(host, true);
  end(host);
}

static bool is_down(void *host) { return fake_host_health(host) == 0; }
static bool is_up(void *host) { return fake_host_health(host) == 1; }

static void an_outage_loses_nothing(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 5);
  struct fake_host *host = open_host(run, "outage");
  wait_results(run, host, 5);
  run->c->reachable(run->fixture, false);
  assert_true(fake_host_wait(host, is_down, host, LIMIT_MS));
  ack_all(host, true); /* committed by the table while the broker is away */
  run->c->reachable(run->fixture, true);
  publish_numbers(run, 5, 5);
  assert_true(fake_host_wait(host, is_up, host, LIMIT_MS));
  static const size_t later[] = {5, 6, 7, 8, 9};
  wait_seen(run, host, later, 5);
  ack_all(host, true);
  end(host);
}

static void stop_is_in_time_while_the_broker_is_away(void **state) {
  const struct run *run = *state;
  publish_numbers(run, 0, 5);
  struct fake_host *host = open_host(run, "stop");
  wait_results(run, host, 5);
  run->c->reachable(run->fixture, false);
  ack_all(host, true);
  fake_host_close(host);
  int64_t took = fake_host_stop(host, 1000);
  if (took > 3000)
    fail_msg("stop(1000 ms) took %lld ms", (long long)took);
  run->c->reachable(run->fixture, true);
  fake_host_free(host);
}

/* --- threads --- */

static void wakeup_ends_poll(void **state) {
  const struct run *run = *state;
  struct fake_host *host = open_host(run, "wakeup");
  publish_numbers(run, 0, 1);
  wait_results(run, host, 1);
  stays_quiet(host);
  fake_host_check_wakeup(host);
  end(host);
}

struct lane {
  struct fake_host *host;
  _Atomic bool done;
};

static void *drive_lane(void *arg) {
  struct lane *lane = arg;
  while (!lane->done) {
    fake_host_poll(lane->host, 20);
    ack_all(lane->host, true);
  }
  fake_host_close(lane->host);
  ack_all(lane->host, true);
  fake_host_stop(lane->host, 5000);
  return NULL;
}

static bool both_saw_all(struct lane *lanes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (seen(lanes[0].host, 0, i) + seen(lanes[1].host, 0, i) == 0)
      return false;
  return true;
}

/* Two daemons, or two entries under `results:`, on one stream: together they see everything. */
static void two_instances_share_the_stream(void **state) {
  const struct run *run = *state;
  struct lane lanes[2] = {{.host = open_host(run, "left")}, {.host = open_host(run, "right")}};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, drive_lane, &lanes[i]), 0);
  publish_numbers(run, 0, 100);
  bool all = false;
  for (int64_t limit = fake_host_now_ms() + run->c->ready_ms + LIMIT_MS; !all && fake_host_now_ms() < limit;
       usleep(20000))
    all = both_saw_all(lanes, 100);
  for (int i = 0; i < 2; i++)
    lanes[i].done = true;
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  assert_true(all);
  for (int i = 0; i < 2; i++)
    fake_host_free(lanes[i].host);
}

static void every_shortened_life_is_safe(void **state) {
  const struct run *run = *state;
  struct fake_host_config config = {
      .plugin = run->c->plugin,
      .module = run->c->module,
      .role = DUEBOX_ROLE_SOURCE,
      .options = run->c->options(run->fixture),
      .source = run->c->source(run->fixture),
  };
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

int source_contract_run(const char *name, const struct source_contract *contract) {
  struct run run = {contract, NULL};
#define ROW(f)                                                                                                         \
  { #f, f, set_up, tear_down, &run }
  const struct CMUnitTest tests[] = {
      ROW(every_record_comes_once),
      ROW(records_come_unchanged),
      ROW(a_record_too_large_is_cut_and_marked),
      ROW(committed_is_never_seen_again),
      ROW(not_committed_is_seen_again),
      ROW(an_early_ack_covers_nobody_else),
      ROW(acks_in_any_order_free_everything),
      ROW(a_crash_before_the_commit_loses_nothing),
      ROW(a_full_host_pauses_and_resumes),
      ROW(a_host_that_stays_full_gets_the_rest_later),
      ROW(stop_while_full_loses_nothing),
      ROW(close_stops_reading),
      ROW(down_at_start_then_recovery),
      ROW(an_outage_loses_nothing),
      ROW(stop_is_in_time_while_the_broker_is_away),
      ROW(wakeup_ends_poll),
      ROW(two_instances_share_the_stream),
      ROW(every_shortened_life_is_safe),
  };
#undef ROW
  cmocka_set_test_filter(getenv("DUEBOX_TEST_ONLY")); /* a pattern such as "stop_*"; all when unset */
  return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
