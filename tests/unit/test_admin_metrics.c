/* SPDX-License-Identifier: MIT
 *
 * /metrics in both formats, read by a reader that is stricter than a scraper, and complete: every word of the engine's
 * metrics must come out somewhere.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admin/exposition.h"
#include "admin/http.h"
#include "support/admin_fixture.h"
#include "support/metrics_text.h"

#define OPEN_METRICS "Accept: application/openmetrics-text;version=1.0.0\r\n"

static struct metrics_text *scrape(struct admin_fixture *fixture, bool open_metrics) {
  struct reply reply =
      http_request(fixture->port, "GET", "/metrics", open_metrics ? FIXTURE_BEARER OPEN_METRICS : FIXTURE_BEARER, NULL);
  char type[96];
  assert_int_equal(reply.status, 200);
  assert_true(http_header(&reply, "Content-Type", type, sizeof(type)));
  assert_string_equal(type, open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                         : "text/plain; version=0.0.4; charset=utf-8");
  struct metrics_text *metrics = malloc(sizeof(*metrics));
  assert_non_null(metrics);
  if (!metrics_text_read(metrics, reply.body, open_metrics))
    fail_msg("%s", metrics->error);
  http_free(&reply);
  return metrics;
}

static void expect(const struct metrics_text *metrics, const char *key, double wanted) {
  double value;
  if (!metrics_text_find(metrics, key, &value))
    fail_msg("there is no %s", key);
  if (fabs(value - wanted) > 1e-9)
    fail_msg("%s is %.9f instead of %.9f", key, value, wanted);
}

static void both_formats_are_well_formed(void **state) {
  struct admin_fixture *fixture = *state;
  for (int i = 0; i < 1000; i++)
    histogram_add(&fixture->engine.route_metrics[i % 3].lateness, i * 7919LL % 7200000000);
  for (int open_metrics = 0; open_metrics < 2; open_metrics++) {
    struct metrics_text *metrics = scrape(fixture, open_metrics);
    assert_in_range(metrics->family_count, 40, 100);
    free(metrics);
  }
}

/* Rows may name any route. A terminal shows the answer, and does not obey it; and two names stay two. */
static void no_label_controls_a_terminal(void **state) {
  static const struct {
    const char *value, *text;
  } rows[] = {{"orders \"a\\b\"", "orders \\\"a\\\\b\\\""},
              {"u\x1b[31m", "u\u241b[31m"},
              {"a\nb\tc\x7f", "a\\nb\u2409c\u2421"},
              {"\u00e4\u202e\xc2\x9b", "\u00e4\\\\u202e\\\\u009b"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char *text = NULL, wanted[128];
    size_t len = 0;
    struct exposition ex = {.out = open_memstream(&text, &len)};
    assert_non_null(ex.out);
    exposition_begin(&ex, "some", METRIC_GAUGE, "help");
    exposition_integer(&ex, (struct label[]){{"route", rows[i].value}, {0}}, 1);
    assert_int_equal(fclose(ex.out), 0);
    snprintf(wanted, sizeof wanted, "some{route=\"%s\"} 1\n", rows[i].text);
    if (!strstr(text, wanted))
      fail_msg("row %zu: %s", i, text);
    free(text);
  }
}

static void values_are_in_base_units(void **state) {
  struct admin_fixture *fixture = *state;
  struct engine *engine = &fixture->engine;
  struct route_metrics *route = &engine->route_metrics[0];
  histogram_add(&route->lateness, 250);
  histogram_add(&route->lateness, 251);
  histogram_add(&route->lateness, 7200000000);
  set_gauge(&route->oldest_due_us, engine->status.db_now_us - 1500000);
  set_gauge(&route->first_blocked_us, engine->status.db_now_us - 7200000000);
  set_gauge(&engine->route_metrics[1].first_blocked_us, engine->status.db_now_us + 1);
  set_gauge(&route->claim_gap_us, 1234);
  set_gauge(&engine->metrics.db_clock_offset_us, -1500);
  count(&route->events[EVENT_DEAD], 2);
  count(&route->outcomes[DUEBOX_GONE], 3);
  count(&route->results[RESULT_STALE], 4);
  engine->routes[0].paused = true;
  engine->routes[0].next_due_us = 1896091200250000;
  engine->plugins[1].last_poll_age_us = 20000;
  struct metrics_text *metrics = scrape(fixture, false);
  expect(metrics, "duebox_lateness_seconds_bucket{route=\"orders.cancel\",le=\"0.00025\"}", 1);
  expect(metrics, "duebox_lateness_seconds_bucket{route=\"orders.cancel\",le=\"0.0005\"}", 2);
  expect(metrics, "duebox_lateness_seconds_bucket{route=\"orders.cancel\",le=\"1.0\"}", 2);
  expect(metrics, "duebox_lateness_seconds_bucket{route=\"orders.cancel\",le=\"3600.0\"}", 2);
  expect(metrics, "duebox_lateness_seconds_bucket{route=\"orders.cancel\",le=\"+Inf\"}", 3);
  expect(metrics, "duebox_lateness_seconds_sum{route=\"orders.cancel\"}", 7200.000501);
  expect(metrics, "duebox_lateness_seconds_count{route=\"orders.cancel\"}", 3);
  expect(metrics, "duebox_lateness_seconds_count{route=\"crm.push\"}", 0);
  expect(metrics, "duebox_oldest_due_age_seconds{route=\"orders.cancel\"}", 1.5);
  expect(metrics, "duebox_oldest_due_age_seconds{route=\"crm.push\"}", 0);
  expect(metrics, "duebox_oldest_blocked_age_seconds{route=\"orders.cancel\"}", 7200);
  expect(metrics, "duebox_oldest_blocked_age_seconds{route=\"invoice.send\"}", 0); /* not due yet */
  expect(metrics, "duebox_next_due_timestamp_seconds{route=\"orders.cancel\"}", 1896091200.25);
  expect(metrics, "duebox_claim_gap_seconds{route=\"orders.cancel\"}", 0.001234);
  expect(metrics, "duebox_db_clock_offset_seconds", -0.0015);
  expect(metrics, "duebox_task_events_total{route=\"orders.cancel\",event=\"dead\"}", 2);
  expect(metrics, "duebox_attempts_total{route=\"orders.cancel\",outcome=\"gone\"}", 3);
  expect(metrics, "duebox_results_total{route=\"orders.cancel\",fate=\"stale\"}", 4);
  expect(metrics, "duebox_route_state{route=\"orders.cancel\",state=\"paused\"}", 1);
  expect(metrics, "duebox_route_state{route=\"orders.cancel\",state=\"suspended\"}", 0);
  expect(metrics, "duebox_plugin_up{plugin=\"bus\",role=\"sink\"}", 1);
  expect(metrics, "duebox_plugin_poll_age_seconds{plugin=\"bus#1\",role=\"source\"}", 0.02);
  expect(metrics, "duebox_ready", 1);
  free(metrics);
}

static void the_process_is_measured(void **state) {
  struct metrics_text *metrics = scrape(*state, false);
  static const char *const keys[] = {"process_resident_memory_bytes", "process_virtual_memory_bytes",
                                     "process_open_fds", "process_max_fds", "process_cpu_seconds_total"};
  double value, start;
  for (size_t i = 0; i < ARRAY_LEN(keys); i++)
    if (!metrics_text_find(metrics, keys[i], &value) || value < (i < 4 ? 1 : 0))
      fail_msg("%s is not measured", keys[i]);
  assert_true(metrics_text_find(metrics, "process_start_time_seconds", &start));
  double age = (double)time(NULL) - start;
  assert_true(age >= -2 && age < 600);
  free(metrics);
}

static void open_metrics_names_its_own_way(void **state) {
  struct metrics_text *metrics = scrape(*state, true);
  bool rows_read = false, build = false;
  for (size_t i = 0; i < metrics->family_count; i++) {
    rows_read |= strcmp(metrics->families[i], "duebox_rows_read") == 0;
    build |= strcmp(metrics->families[i], "duebox_build") == 0;
  }
  assert_true(rows_read);
  assert_true(build);
  expect(metrics, "duebox_rows_read_total", 0);
  free(metrics);
}

/* Puts a number of its own into every 64-bit word and looks for each of them, whatever it is called. */
static void fill(void *words, size_t size, int64_t first) {
  for (size_t i = 0; i < size / sizeof(int64_t); i++)
    atomic_store((atomic_int_fast64_t *)words + i, first + (int64_t)i);
}

static bool comes_out(const struct metrics_text *metrics, int64_t wanted) {
  for (size_t i = 0; i < metrics->sample_count; i++) {
    double value = metrics->samples[i].value;
    if (value == (double)wanted || fabs(value * 1e6 - (double)wanted) < 0.5)
      return true;
  }
  return false;
}

static void nothing_is_forgotten(void **state) {
  struct admin_fixture *fixture = *state;
  struct engine *engine = &fixture->engine;
  const size_t words = sizeof(engine->metrics) / sizeof(int64_t);
  fill(&engine->metrics, sizeof(engine->metrics), 700001);
  struct route_metrics *route = &engine->route_metrics[2];
  fill(route, offsetof(struct route_metrics, lateness), 800001);
  fill(&route->inflight, sizeof(*route) - offsetof(struct route_metrics, inflight), 900001);
  engine->status.db_now_us = 900003 + 950000; /* oldest_due_us and first_blocked_us come out as ages */
  struct metrics_text *metrics = scrape(fixture, false);
  for (size_t i = 0; i < words; i++)
    if (!comes_out(metrics, 700001 + (int64_t)i))
      fail_msg("word %zu of struct engine_metrics is not exported; add it to engine_series in admin/metrics.c", i);
  const size_t counters = offsetof(struct route_metrics, lateness) / sizeof(int64_t);
  for (size_t i = 1; i < counters; i++) /* 0 is not an outcome */
    if (!comes_out(metrics, 800001 + (int64_t)i))
      fail_msg("word %zu of struct route_metrics is not exported; add it to admin/metrics.c", i);
  expect(metrics, "duebox_inflight_tasks{route=\"crm.push\"}", 900001);
  expect(metrics, "duebox_inflight_bytes{route=\"crm.push\"}", 900002);
  expect(metrics, "duebox_oldest_due_age_seconds{route=\"crm.push\"}", 0.95);
  expect(metrics, "duebox_oldest_blocked_age_seconds{route=\"crm.push\"}", 0.949999);
  expect(metrics, "duebox_claim_gap_seconds{route=\"crm.push\"}", 0.900005);
  const size_t known = offsetof(struct route_metrics, claim_gap_us) + sizeof(gauge);
  if (sizeof(struct route_metrics) != known)
    fail_msg("a field was added after claim_gap_us: export it, and expect it here");
  free(metrics);
}

static void names_are_escaped(void **state) {
  struct admin_fixture *fixture = *state;
  fixture->engine.routes[0].name = "a\"b\\c\nd";
  fixture->engine.routes[1].name = "\xff<script>";
  fixture->engine.routes[2].name = "r\xc3\xa9sum\xc3\xa9";
  for (int open_metrics = 0; open_metrics < 2; open_metrics++) {
    struct metrics_text *metrics = scrape(fixture, open_metrics);
    expect(metrics, "duebox_inflight_tasks{route=\"a\\\"b\\\\c\\nd\"}", 0);
    expect(metrics, "duebox_inflight_tasks{route=\"?<script>\"}", 0);
    expect(metrics, "duebox_inflight_tasks{route=\"r\xc3\xa9sum\xc3\xa9\"}", 0);
    free(metrics);
  }
}

/* The reader itself must be able to say no. */
static void the_reader_refuses_what_is_wrong(void **state) {
#define FAMILY "# HELP a_total Help.\n# TYPE a_total counter\n"
#define HISTOGRAM "# HELP h Help.\n# TYPE h histogram\n"
  static const struct {
    const char *text;
    bool fine;
  } rows[] = {
      {FAMILY "a_total 1\n", true},
      {FAMILY "a_total{l=\"x\"} 1\na_total{l=\"y\"} 1\n", true},
      {HISTOGRAM "h_bucket{le=\"1.0\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n", true},
      {"a_total 1\n", false},
      {"# HELP a_total Help.\na_total 1\n", false},
      {FAMILY "b_total 1\n", false},
      {FAMILY "a_total 1\na_total 1\n", false},
      {FAMILY "a_total 1\n" FAMILY, false},
      {FAMILY "a_total one\n", false},
      {FAMILY "a_total{l=\"\\x\"} 1\n", false},
      {FAMILY "a_total{l=\"x} 1\n", false},
      {FAMILY "a_total 1", false},
      {FAMILY "\na_total 1\n", false},
      {FAMILY "a_total 1\n# EOF\n", false},
      {"# HELP a Help.\n# TYPE a counter\na 1\n", false},
      {HISTOGRAM "h_bucket{le=\"1.0\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 3\nh_count 1\n", false},
      {HISTOGRAM "h_bucket{le=\"2.0\"} 1\nh_bucket{le=\"1.0\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 3\nh_count 1\n",
       false},
      {HISTOGRAM "h_bucket{le=\"1.0\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 3\n", false},
  };
  struct metrics_text *metrics = malloc(sizeof(*metrics));
  assert_non_null(metrics);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    if (metrics_text_read(metrics, rows[i].text, false) != rows[i].fine)
      fail_msg("row %zu: %s", i, metrics->error);
  free(metrics);
}

#define METRICS_TEST(test) cmocka_unit_test_setup_teardown(test, admin_fixture_setup, admin_fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      METRICS_TEST(both_formats_are_well_formed),
      METRICS_TEST(no_label_controls_a_terminal),
      METRICS_TEST(values_are_in_base_units),
      METRICS_TEST(the_process_is_measured),
      METRICS_TEST(open_metrics_names_its_own_way),
      METRICS_TEST(nothing_is_forgotten),
      METRICS_TEST(names_are_escaped),
      cmocka_unit_test(the_reader_refuses_what_is_wrong),
  };
  return cmocka_run_group_tests_name("admin metrics", tests, NULL, NULL);
}
