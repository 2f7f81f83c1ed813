/* SPDX-License-Identifier: MIT
 *
 * What a caller sees with a token, and what is seen without one where none is configured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/admin_fixture.h"

static const char *text_of(const json_t *json, const char *key) {
  return json_string_value(json_object_get(json, key));
}

#define SECRET "4111-1111"

/* All that tasks, destinations, consumers and operators may have put into the engine's state. */
static void fill(struct admin_fixture *fixture, struct target_status *target) {
  struct engine *engine = &fixture->engine;
  struct route_status *route = &engine->routes[0];
  *target = (struct target_status){
      .name = SECRET, .health = "suspended", .error_class = "http.503", .reason = SECRET, .message_id = SECRET};
  *route = (struct route_status){.name = "orders.cancel",
                                 .metrics = route->metrics,
                                 .via = "bus",
                                 .suspended = true,
                                 .health = "suspended",
                                 .reason = SECRET,
                                 .pause_reason = SECRET,
                                 .stalled_us = 1,
                                 .stalled_target = SECRET,
                                 .stalled_task = SECRET,
                                 .held_task = SECRET,
                                 .targets = target,
                                 .target_count = 1};
  engine->routes[1].paused = true;
  snprintf(engine->routes[1].pause_reason, sizeof engine->routes[1].pause_reason, SECRET);
  snprintf(engine->plugins[0].text, sizeof engine->plugins[0].text, SECRET);
  snprintf(engine->plugins[1].text, sizeof engine->plugins[1].text, PLUGIN_UNHEARD);
  const struct readiness facts = {.db_answers = true,
                                  .shards_spoken = true,
                                  .held = "orders.cancel",
                                  .held_task = SECRET,
                                  .held_us = READY_STUCK_US + 1,
                                  .unread = "bus#1",
                                  .unread_why = SECRET,
                                  .unread_us = READY_STUCK_US + 1};
  engine->status.ready = false;
  readiness_judge(&facts, &engine->status.problems);
  readiness_text(&engine->status.problems, engine->status.not_ready, sizeof engine->status.not_ready);
  fixture->quarantined = SECRET;
}

static size_t secrets_in(const char *text) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, SECRET)) != NULL; at++)
    n++;
  return n;
}

/* Who merely has an account on this machine may know how the daemon is, and not whose tasks are in trouble. */
static void what_tasks_hold_is_shown_for_a_token_only(void **state) {
  static const struct {
    const char *path;
    size_t secrets;
  } rows[] = {{"/api/v1/stats", 11},     {"/api/v1/routes", 8},       {"/readyz", 4},
              {"/api/v1/quarantine", 1}, {"/api/v1/quarantine/7", 1}, {"/metrics", 0}};
  struct admin_fixture *fixture = *state, *open;
  struct target_status target;
  assert_int_equal(admin_fixture_setup_open((void **)&open), 0);
  fill(fixture, &target);
  fill(open, &target);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct reply reply = http_request(fixture->port, "GET", rows[i].path, FIXTURE_BEARER, NULL);
    if (secrets_in(reply.body) != rows[i].secrets)
      fail_msg("%s: shown are %zu of %zu: %s", rows[i].path, secrets_in(reply.body), rows[i].secrets, reply.body);
    http_free(&reply);
    reply = http_request(open->port, "GET", rows[i].path, "", NULL);
    if (reply.status == 404 || secrets_in(reply.body))
      fail_msg("%s without a token: %d %s", rows[i].path, reply.status, reply.body);
    http_free(&reply);
  }
  assert_int_equal(open->lookups, 0); /* nor do strangers make work for the database */
  admin_fixture_teardown((void **)&open);
}

static void how_the_daemon_is_needs_no_token(void **state) {
  struct admin_fixture *fixture = *state;
  struct target_status kept;
  fill(fixture, &kept);
  json_t *json = fixture_ask(fixture, "GET", "/api/v1/stats", "", NULL, 200);
  const json_t *route = json_array_get(json_object_get(json, "routes"), 0);
  const json_t *target = json_array_get(json_object_get(route, "targets"), 0);
  static const char *const hidden[] = {"reason", "trouble", "stalled_target", "stalled_message_id"};
  for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
    assert_true(json_is_null(json_object_get(route, hidden[i])));
  assert_true(json_is_null(json_object_get(target, "target")));
  assert_string_equal(text_of(target, "error_class"), "http.503");
  assert_string_equal(text_of(json_array_get(json_object_get(json, "plugins"), 1), "text"), PLUGIN_UNHEARD);
  assert_true(json_is_null(json_object_get(json_array_get(json_object_get(json, "plugins"), 0), "text")));
  json_decref(json);
  json = fixture_ask(fixture, "GET", "/readyz", "", NULL, 503);
  assert_non_null(strstr(text_of(json, "detail"), "results at bus#1 have not been read for 30 s"));
  assert_int_equal(json_array_size(json_object_get(json, "problems")), 2);
  json_decref(json);
  fixture_problem(fixture, "GET", "/api/v1/quarantine", "", NULL, 403, "forbidden");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_tasks_hold_is_shown_for_a_token_only, admin_fixture_setup,
                                      admin_fixture_teardown),
      cmocka_unit_test_setup_teardown(how_the_daemon_is_needs_no_token, admin_fixture_setup_open,
                                      admin_fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
