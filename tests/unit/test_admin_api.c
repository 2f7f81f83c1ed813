/* SPDX-License-Identifier: MIT
 *
 * What the admin API answers: every answer of the engine to its status and code, and the JSON of the status pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "admin/http.h"
#include "core/base/sync.h"
#include "support/admin_fixture.h"

static const char *text_of(const json_t *json, const char *key) {
  return json_string_value(json_object_get(json, key));
}
static long long number_of(const json_t *json, const char *key) {
  const json_t *value = json_object_get(json, key);
  if (!json_is_integer(value))
    fail_msg("%s is no whole number", key);
  return json_integer_value(value);
}

static void command_answers(void **state) {
  struct admin_fixture *fixture = *state;
  static const struct {
    enum command_answer answer;
    int status;
    const char *code;
  } rows[] = {
      {COMMAND_NOT_FOUND, 404, "not_found"}, {COMMAND_AMBIGUOUS, 409, "ambiguous"},
      {COMMAND_IN_FLIGHT, 409, "in_flight"}, {COMMAND_STATE, 409, "state"},
      {COMMAND_ELSEWHERE, 421, "elsewhere"}, {COMMAND_FAILED, 503, "database"},
      {COMMAND_LOCKED, 503, "locked"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    fixture->engine.answer = rows[i].answer;
    fixture_problem(fixture, "POST", "/api/v1/tasks/17/cancel", FIXTURE_COMMAND, "{}", rows[i].status, rows[i].code);
    fixture_problem(fixture, "POST", "/api/v1/tasks/17/reschedule", FIXTURE_COMMAND, "{\"delay_ms\":0}", rows[i].status,
                    rows[i].code);
  }
  assert_int_equal(fixture->engine.commands, 2 * ARRAY_LEN(rows));
}

static void the_engines_own_words_are_passed_on(void **state) {
  struct admin_fixture *fixture = *state;
  fixture->engine.answer = COMMAND_ELSEWHERE;
  fixture->engine.trouble = "shard 3 is held by host-b, http://host-b:8321";
  json_t *json = fixture_command(fixture, "/api/v1/tasks/17/cancel", NULL, 421);
  assert_string_equal(text_of(json, "detail"), fixture->engine.trouble);
  json_decref(json);
}

/* Each has its own outcome; the audit has what the caller named them by, or how many they were. */
static void some_tasks_together(void **state) {
  static const char *const outcomes[] = {"done",  "done",      "not_found", "ambiguous", "in_flight",
                                         "state", "elsewhere", "locked",    "database",  "left"};
  static const char *const wrong[] = {"{}",
                                      "{\"ids\":[]}",
                                      "{\"ids\":\"1\"}",
                                      "{\"ids\":[1]}",
                                      "{\"ids\":[\"\"]}",
                                      "{\"ids\":[\"1\",\"1\"]}",
                                      "{\"ids\":[\"1\"],\"filter\":1}",
                                      "{\"ids\":[\"1\"],\"id\":\"1\"}"};
  struct admin_fixture *fixture = *state;
  json_t *json = fixture_command(fixture, "/api/v1/tasks/cancel",
                                 "{\"ids\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"]}", 200);
  const json_t *tasks = json_object_get(json, "tasks");
  assert_int_equal(json_array_size(tasks), sizeof outcomes / sizeof outcomes[0]);
  for (size_t i = 0; i < json_array_size(tasks); i++) {
    assert_string_equal(text_of(json_array_get(tasks, i), "outcome"), outcomes[i]);
    assert_int_equal(json_is_true(json_object_get(json_array_get(tasks, i), "maybe_sent")), i == 1);
  }
  assert_string_equal(text_of(json_array_get(tasks, 2), "id"), "c");
  assert_string_equal(fixture->engine.reason, "10 tasks together");
  json_decref(json);
  json = fixture_command(fixture, "/api/v1/tasks/reschedule",
                         "{\"ids\":[\"a\"],\"due_at\":\"2030-01-31T12:00:00Z\",\"filter\":\"--route r\"}", 200);
  assert_int_equal(fixture->engine.verb, INTERVENE_RESCHEDULE);
  assert_int_equal(fixture->engine.due_us, INT64_C(1896091200000000));
  assert_string_equal(fixture->engine.reason, "--route r");
  json_decref(json);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    fixture_problem(fixture, "POST", "/api/v1/tasks/cancel", FIXTURE_COMMAND, wrong[i], 400, "bad_request");
  fixture->engine.trouble = "it is away";
  fixture_problem(fixture, "POST", "/api/v1/tasks/cancel", FIXTURE_COMMAND, "{\"ids\":[\"1\"]}", 503, "database");
}

static void cancel_and_reschedule(void **state) {
  struct admin_fixture *fixture = *state;
  struct engine *engine = &fixture->engine;
  json_t *json = fixture_command(fixture, "/api/v1/tasks/18446744073709551615/cancel",
                                 "{\"actor\":\"eve\",\"reason\":\"paid twice\"}", 200);
  assert_string_equal(text_of(json, "id"), "18446744073709551615");
  assert_string_equal(text_of(json, "state"), "cancelled");
  assert_true(json_is_false(json_object_get(json, "maybe_sent")));
  json_decref(json);
  assert_int_equal(engine->verb, INTERVENE_CANCEL);
  assert_string_equal(engine->id, "18446744073709551615");
  assert_string_equal(engine->actor, "eve");
  assert_string_equal(engine->reason, "paid twice");

  json = fixture_command(fixture, "/api/v1/tasks/17/reschedule", "{\"due_at\":\"2030-01-31T13:00:00.25+01:00\"}", 200);
  assert_string_equal(text_of(json, "state"), "scheduled");
  assert_string_equal(text_of(json, "due_at"), "2030-01-31T12:00:00.250000Z");
  json_decref(json);
  assert_int_equal(engine->verb, INTERVENE_RESCHEDULE);
  assert_true(engine->due_us == 1896091200250000);
  assert_string_equal(engine->actor, "api");
  assert_string_equal(engine->reason, "");

  json = fixture_command(fixture, "/api/v1/tasks/17/reschedule", "{\"delay_ms\":1500}", 200);
  json_decref(json);
  assert_true(engine->due_us == engine->status.db_now_us + 1500000);
}

static void what_a_dead_daemon_may_have_sent_is_told(void **state) {
  struct admin_fixture *fixture = *state;
  fixture->engine.answer = COMMAND_DONE_MAYBE_SENT;
  json_t *json = fixture_command(fixture, "/api/v1/tasks/17/cancel", NULL, 200);
  assert_string_equal(text_of(json, "state"), "cancelled");
  assert_true(json_is_true(json_object_get(json, "maybe_sent")));
  json_decref(json);
  json = fixture_command(fixture, "/api/v1/tasks/17/reschedule", "{\"delay_ms\":1500}", 200);
  assert_string_equal(text_of(json, "state"), "scheduled");
  assert_true(json_is_true(json_object_get(json, "maybe_sent")));
  json_decref(json);
}

#define MEANT(name) "Duebox-Outbox: " name "\r\n"

static void what_is_meant_for_another_outbox_is_not_done(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const paths[] = {"/api/v1/tasks/17/cancel", "/api/v1/results", "/api/v1/reload",
                                      "/api/v1/routes/orders.cancel/pause", "/api/v1/quarantine/7/purge"};
  static const char *const reads[] = {"/api/v1/routes", "/api/v1/stats", "/readyz", "/metrics", "/api/v1/quarantine"};
  fixture->announced = "command-1";
  for (size_t i = 0; i < ARRAY_LEN(paths); i++)
    fixture_problem(fixture, "POST", paths[i], FIXTURE_COMMAND MEANT("command-2"), "{}", 421, "outbox");
  for (size_t i = 0; i < ARRAY_LEN(reads); i++)
    fixture_problem(fixture, "GET", reads[i], FIXTURE_BEARER MEANT("command-2"), NULL, 421, "outbox");
  assert_int_equal(fixture->engine.commands + fixture->reloads + fixture->forgets, 0);
}

static void a_name_is_looked_up_once(void **state) {
  struct admin_fixture *fixture = *state;
  fixture->announced = "command-1";
  for (unsigned i = 1; i <= 3; i++) {
    json_decref(fixture_ask(fixture, "POST", "/api/v1/reload", FIXTURE_COMMAND MEANT("command-1"), "{}", 200));
    assert_int_equal(fixture->reloads, i);
  }
  assert_int_equal(fixture->lookups, 1);
}

static void what_cannot_be_looked_up_is_not_done(void **state) {
  struct admin_fixture *fixture = *state;
  fixture->announced = "command-1";
  fixture->database = "gone fishing";
  fixture_problem(fixture, "POST", "/api/v1/reload", FIXTURE_COMMAND MEANT("command-1"), "{}", 503, "database");
  assert_int_equal(fixture->reloads, 0);
  fixture->database = NULL;
  json_decref(fixture_ask(fixture, "POST", "/api/v1/reload", FIXTURE_COMMAND MEANT("command-1"), "{}", 200));
}

/* On a listener without a token any user of the machine may send names. */
static void many_unknown_names_are_looked_up_together(void **state) {
  enum { FLOOD = 64 };
  struct admin_fixture *fixture = *state;
  int fds[FLOOD];
  fixture->announced = "command-1";
  pthread_mutex_lock(&fixture->table);
  for (int i = 0; i < FLOOD; i++) {
    char text[160];
    int len = snprintf(text, sizeof text,
                       "GET /api/v1/stats HTTP/1.1\r\nHost: localhost\r\nDuebox-Outbox: command-%d\r\n\r\n", 100 + i);
    fds[i] = http_connect(fixture->port);
    assert_true(http_send(fds[i], text, (size_t)len));
  }
  while (atomic_load(&fixture->asking) == 0)
    thread_sleep(1000);
  /* What names no outbox waits for none of them, nor does who sends a command. */
  json_decref(fixture_ask(fixture, "GET", "/api/v1/stats", "", NULL, 200));
  pthread_mutex_unlock(&fixture->table);
  json_decref(fixture_ask(fixture, "GET", "/api/v1/stats", MEANT("command-1"), NULL, 200));
  for (int i = 0; i < FLOOD; i++) {
    struct reply reply = http_receive(fds[i], false);
    assert_int_equal(reply.status, 421);
    http_free(&reply);
    close(fds[i]);
  }
  assert_false(atomic_load(&fixture->asked_twice));
  assert_in_range(atomic_load(&fixture->lookups), 1, FLOOD / 4);
}

static void a_stranger_has_nothing_looked_up(void **state) {
  struct admin_fixture *fixture = *state;
  json_decref(fixture_ask(fixture, "GET", "/readyz", MEANT("command-1"), NULL, 200));
  fixture_problem(fixture, "POST", "/api/v1/reload", MEANT("command-1"), "{}", 401, "unauthorized");
  fixture_problem(fixture, "GET", "/api/v1/routes", FIXTURE_BEARER MEANT("a") MEANT("b"), NULL, 400, "bad_request");
  assert_int_equal(fixture->lookups, 0);
}

static void bad_bodies_change_nothing(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const bodies[] = {
      "{",
      "[]",
      "17",
      "{\"delay_ms\":1,\"delay_ms\":2}",
      "{}",
      "{\"delay_ms\":1,\"due_at\":\"2030-01-31T12:00:00Z\"}",
      "{\"delay_ms\":-1}",
      "{\"delay_ms\":\"1\"}",
      "{\"delay_ms\":1.5}",
      "{\"delay_ms\":9223372036854775807}",
      "{\"due_at\":\"soon\"}",
      "{\"due_at\":17}",
      "{\"due_at\":\"1970-01-01T00:00:00Z\"}",
      "{\"due_at\":\"1999-12-31T23:59:59.999999Z\"}",
      "{\"due_at\":\"2200-01-01T00:00:00Z\"}",
      "{\"delay_ms\":1,\"reasno\":\"typo\"}",
      "{\"delay_ms\":1,\"reason\":17}",
      "{\"delay_ms\":1,\"actor\":\"a name of far more than the sixty-four bytes that the audit table keeps of it\"}",
      "{\"delay_ms\":1,\"reason\":\"\xff\"}",
  };
  for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
    fixture_problem(fixture, "POST", "/api/v1/tasks/17/reschedule", FIXTURE_COMMAND, bodies[i], 400, "bad_request");
  assert_int_equal(fixture->engine.commands, 0);
}

static void a_delay_needs_the_databases_clock(void **state) {
  struct admin_fixture *fixture = *state;
  fixture->engine.status.db_now_us = 0;
  fixture_problem(fixture, "POST", "/api/v1/tasks/17/reschedule", FIXTURE_COMMAND, "{\"delay_ms\":1}", 503, "database");
  assert_int_equal(fixture->engine.commands, 0);
}

static const struct {
  enum result_fate fate;
  int status;
  const char *code; /* NULL = accepted */
} fates[] = {
    {RESULT_APPLIED, 200, NULL},           {RESULT_DUPLICATE, 200, NULL},
    {RESULT_STALE, 409, "stale"},          {RESULT_LATE, 409, "late"},
    {RESULT_ORPHAN, 404, "not_found"},     {RESULT_BROKEN, 400, "bad_record"},
    {RESULT_MISROUTED, 400, "bad_record"},
};

#define RECORD "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"done\"}"

static void result_answers(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const paths[] = {"/api/v1/results", "/callback/m-1/2/right"};
  static const char *const headers[] = {FIXTURE_COMMAND, ""};
  static const char *const names[] = {"applied", "duplicate"};
  _Static_assert(ARRAY_LEN(fates) == RESULT_FATES, "every fate has its answer");
  fixture->engine.cancelled = true;
  for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
    for (size_t i = 0; i < ARRAY_LEN(fates); i++) {
      fixture->engine.fate = fates[i].fate;
      if (fates[i].code) {
        fixture_problem(fixture, "POST", paths[p], headers[p], RECORD, fates[i].status, fates[i].code);
        continue;
      }
      json_t *json = fixture_ask(fixture, "POST", paths[p], headers[p], RECORD, 200);
      assert_string_equal(text_of(json, "fate"), names[fates[i].fate]);
      assert_true(fates[i].fate != RESULT_DUPLICATE || json_is_true(json_object_get(json, "differs")));
      assert_true(json_is_true(json_object_get(json, "cancelled")));
      assert_string_equal(text_of(json, "route"), "invoice.send");
      json_decref(json);
    }
    assert_string_equal(fixture->engine.source, p == 0 ? "http" : "callback");
    assert_int_equal(fixture->engine.body_len, strlen(RECORD));
    assert_memory_equal(fixture->engine.body, RECORD, strlen(RECORD));
  }
}

static void results_not_stored_are_to_be_sent_again(void **state) {
  struct admin_fixture *fixture = *state;
  char seconds[16];
  fixture->engine.stored = false;
  fixture_problem(fixture, "POST", "/api/v1/results", FIXTURE_COMMAND, RECORD, 503, "database");
  struct reply reply = http_request(fixture->callbacks_port, "POST", "/callback/m-1/2/right", "", RECORD);
  assert_int_equal(reply.status, 503);
  assert_true(http_header(&reply, "Retry-After", seconds, sizeof(seconds)));
  assert_string_equal(seconds, "2");
  http_free(&reply);
}

static void callbacks_belong_to_one_attempt(void **state) {
  struct admin_fixture *fixture = *state;
  static const struct {
    const char *path, *body;
    int status;
    const char *code;
  } rows[] = {
      {"/callback/m-1/2/wrong", RECORD, 403, "forbidden"},
      {"/callback/m-1/0/right", RECORD, 403, "forbidden"},
      {"/callback/m-1/-2/right", RECORD, 403, "forbidden"},
      {"/callback/m-1/+2/right", RECORD, 403, "forbidden"},
      {"/callback/m-1/2x/right", RECORD, 403, "forbidden"},
      {"/callback/m-1/4294967298/right", RECORD, 403, "forbidden"},
      {"/callback/m-1/3/right", RECORD, 400, "mismatch"},
      {"/callback/m-2/2/right", RECORD, 400, "mismatch"},
      {"/callback/m-1/2/right", "{\"id\":\"M-1\",\"attempt\":2,\"status\":\"done\"}", 400, "mismatch"},
      /* What one reader of JSON refuses and another takes finished any task with any URL. */
      {"/callback/m-2/2/right", "{\"id\":\"m-1\",\"status\":\"done\",\"x\":99999999999999999999}", 400, "mismatch"},
      {"/callback/m-2/2/right", "{\"id\":\"m-1\",\"status\":\"done\",\"x\":1e999}", 400, "mismatch"},
      {"/callback/m-1/2/right", "nonsense", 400, "bad_record"},
      {"/callback/m-1/2/right", "{\"status\":\"finished\"}", 400, "bad_record"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    fixture_problem(fixture, "POST", rows[i].path, "", rows[i].body, rows[i].status, rows[i].code);
  assert_int_equal(fixture->engine.results, 0); /* neither applied nor kept: junk makes nothing grow */
}

/* The engine is told which task and attempt the URL is for; the body alone never says. */
static void a_callback_is_about_its_url(void **state) {
  struct admin_fixture *fixture = *state;
  json_decref(fixture_ask(fixture, "POST", "/callback/m-1/2/right", "", "{\"status\":\"retry\",}", 200));
  assert_string_equal(fixture->engine.road_id, "m-1");
  assert_int_equal(fixture->engine.road_attempt, 2);
  assert_true(fixture->engine.replied);
  /* An id that a path cannot hold everywhere, as its URL has it, and as it had it before. */
  static const char *const urls[] = {"/callback/~612f62/2/right", "/callback/%7E612f62/2/right",
                                     "/callback/a%2Fb/2/right"};
  for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
    json_decref(fixture_ask(fixture, "POST", urls[i], "", "{\"id\":\"a/b\",\"status\":\"done\"}", 200));
    assert_string_equal(fixture->engine.road_id, "a/b");
  }
}

/* Whoever is to reach the callbacks of HTTP tasks reaches nothing else, and the operators' port takes no callbacks. */
static void callbacks_have_a_listener_of_their_own(void **state) {
  struct admin_fixture *fixture = *state;
  size_t count;
  const struct endpoint *table = router_table(&count);
  for (size_t i = 0; i < count; i++) {
    bool callback = table[i].role == ROLE_CALLBACK;
    const char *path = callback ? "/callback/m-1/2/right" : table[i].path;
    struct reply reply = http_request(callback ? fixture->port : fixture->callbacks_port, table[i].method, path,
                                      FIXTURE_COMMAND, callback ? RECORD : "{}");
    if (reply.status != 404 || !strstr(reply.body, "not_found"))
      fail_msg("%s: %d", path, reply.status);
    http_free(&reply);
  }
  assert_int_equal(fixture->engine.results, 0);
}

static void broken_records_of_the_api_reach_the_engine(void **state) {
  struct admin_fixture *fixture = *state;
  fixture->engine.fate = RESULT_BROKEN;
  json_t *json =
      fixture_command(fixture, "/api/v1/results", "{\"id\":\"m-1\",\"attempt\":2,\"status\":\"finished\"}", 400);
  assert_non_null(strstr(text_of(json, "detail"), "status"));
  json_decref(json);
  assert_int_equal(fixture->engine.results, 1); /* where it is put into quarantine */
  assert_false(fixture->engine.replied);
}

/* A consumer asks by progress whether it is to go on: the answer must say that the task was cancelled, and must not say
 * that its time was extended where it was not. */
static void progress_is_answered_truly(void **state) {
  struct admin_fixture *fixture = *state;
  static const char progress[] = "{\"status\":\"progress\",\"extend_ms\":60000}";
  fixture->engine.said = RESULT_PROGRESS;
  json_t *json = fixture_ask(fixture, "POST", "/callback/m-1/2/right", "", progress, 200);
  assert_true(json_is_false(json_object_get(json, "extended")));
  assert_true(json_is_false(json_object_get(json, "cancelled")));
  json_decref(json);
  fixture->engine.extended = true;
  json = fixture_ask(fixture, "POST", "/callback/m-1/2/right", "", progress, 200);
  assert_true(json_is_true(json_object_get(json, "extended")));
  json_decref(json);
  fixture->engine.fate = RESULT_LATE;
  fixture_problem(fixture, "POST", "/callback/m-1/2/right", "", progress, 409, "late");
  fixture->engine.cancelled = true;
  fixture->engine.extended = false;
  json = fixture_ask(fixture, "POST", "/callback/m-1/2/right", "", progress, 200);
  assert_true(json_is_true(json_object_get(json, "cancelled")));
  assert_string_equal(text_of(json, "fate"), "late");
  json_decref(json);
}

static void routes_pause_and_resume(void **state) {
  struct admin_fixture *fixture = *state;
  json_t *json = fixture_command(fixture, "/api/v1/routes/orders.cancel/pause", "{\"reason\":\"deploy\"}", 200);
  assert_string_equal(text_of(json, "route"), "orders.cancel");
  assert_true(json_is_true(json_object_get(json, "paused")));
  json_decref(json);
  assert_true(fixture->engine.paused);
  assert_string_equal(fixture->engine.reason, "deploy");
  json = fixture_command(fixture, "/api/v1/routes/orders.cancel/resume", NULL, 200);
  json_decref(json);
  assert_false(fixture->engine.paused);
  assert_string_equal(fixture->engine.actor, "api");

  fixture_problem(fixture, "POST", "/api/v1/routes/orders.cancle/pause", FIXTURE_COMMAND, NULL, 404, "not_found");
  assert_int_equal(fixture->engine.pauses, 2);
  fixture->engine.stored = false;
  fixture_problem(fixture, "POST", "/api/v1/routes/orders.cancel/pause", FIXTURE_COMMAND, NULL, 503, "database");
}

static void reload_says_what_happened(void **state) {
  struct admin_fixture *fixture = *state;
  json_t *json = fixture_command(fixture, "/api/v1/reload", NULL, 200);
  assert_true(json_is_true(json_object_get(json, "reloaded")));
  json_decref(json);
  fixture->reload_trouble = "duebox.yaml:7:3: unknown key \"retires\"; did you mean \"retries\"?";
  json = fixture_command(fixture, "/api/v1/reload", NULL, 422);
  assert_non_null(strstr(text_of(json, "detail"), fixture->reload_trouble));
  json_decref(json);
  assert_int_equal(fixture->reloads, 2);
}

static void health_and_readiness(void **state) {
  struct admin_fixture *fixture = *state;
  struct reply reply = http_request(fixture->port, "GET", "/healthz", "", NULL);
  assert_int_equal(reply.status, 200);
  assert_string_equal(reply.body, "ok\n");
  http_free(&reply);
  json_decref(fixture_ask(fixture, "GET", "/readyz", "", NULL, 200));

  fixture->engine.status.ready = false;
  snprintf(fixture->engine.status.not_ready, sizeof(fixture->engine.status.not_ready), "the database is away");
  fixture->engine.status.problems = (struct problem_list){.count = 2, .text = {"the database is away", "it hangs"}};
  json_t *json = fixture_ask(fixture, "GET", "/readyz", "", NULL, 503);
  assert_null(strstr(text_of(json, "detail"), "database")); /* not for strangers */
  assert_null(json_object_get(json, "problems"));
  json_decref(json);
  json = fixture_ask(fixture, "GET", "/readyz", FIXTURE_BEARER, NULL, 503);
  assert_string_equal(text_of(json, "code"), "not_ready");
  assert_string_equal(text_of(json, "detail"), "the database is away");
  assert_int_equal(json_array_size(json_object_get(json, "problems")), 2); /* each by itself */
  assert_string_equal(json_string_value(json_array_get(json_object_get(json, "problems"), 1)), "it hangs");
  json_decref(json);
  reply = http_request(fixture->port, "GET", "/healthz", "", NULL); /* not its fault */
  assert_int_equal(reply.status, 200);
  http_free(&reply);

  fixture->engine.status.ready = true;
  fixture->engine.status.draining = true;
  fixture_problem(fixture, "GET", "/readyz", "", NULL, 503, "not_ready");
  fixture->engine.failed = "out of memory";
  fixture_problem(fixture, "GET", "/healthz", "", NULL, 500, "internal");
}

static void stats_tell_what_the_engine_knows(void **state) {
  struct admin_fixture *fixture = *state;
  struct engine *engine = &fixture->engine;
  struct route_metrics *metrics = &engine->route_metrics[1];
  count(&metrics->events[EVENT_DONE], 7);
  count(&metrics->outcomes[DUEBOX_DELIVERED], 8);
  count(&metrics->results[RESULT_LATE], 9);
  set_gauge(&metrics->inflight, 3);
  set_gauge(&metrics->oldest_due_us, engine->status.db_now_us - 2500000);
  set_gauge(&metrics->first_blocked_us, engine->status.db_now_us - 3500000);
  for (int i = 0; i < 100; i++)
    histogram_add(&metrics->lateness, 400);
  engine->routes[1].paused = true;
  engine->routes[1].next_due_us = 1896091200000000;
  snprintf(engine->routes[1].pause_reason, sizeof(engine->routes[1].pause_reason), "month end");
  engine->routes[1].suspended = true;
  snprintf(engine->routes[1].reason, sizeof(engine->routes[1].reason), "connection refused");
  engine->status.db_up = true;

  json_t *json = fixture_ask(fixture, "GET", "/api/v1/stats", FIXTURE_BEARER, NULL, 200);
  assert_string_equal(text_of(json, "instance"), "host-a/1234");
  assert_string_equal(text_of(json, "started_at"), "2023-11-14T22:13:20.000000Z");
  assert_true(json_is_true(json_object_get(json_object_get(json, "database"), "up")));
  assert_int_equal(json_array_size(json_object_get(json, "shards")), 4);
  assert_string_equal(text_of(json_array_get(json_object_get(json, "shards"), 1), "epoch"), "11");
  assert_int_equal(json_array_size(json_object_get(json, "plugins")), 2);
  const json_t *routes = json_object_get(json, "routes");
  assert_int_equal(json_array_size(routes), 3);
  const json_t *route = json_array_get(routes, 1);
  assert_string_equal(text_of(route, "name"), "invoice.send");
  assert_string_equal(text_of(route, "reason"), "month end");
  assert_string_equal(text_of(route, "trouble"), "connection refused"); /* two things: who set the one, what ails it */
  assert_string_equal(text_of(route, "next_due_at"), "2030-01-31T12:00:00.000000Z");
  assert_true(json_is_true(json_object_get(route, "paused")));
  assert_int_equal(number_of(route, "inflight"), 3);
  assert_int_equal(number_of(route, "oldest_due_age_us"), 2500000);
  assert_int_equal(number_of(route, "oldest_blocked_age_us"), 3500000);
  assert_int_equal(number_of(json_object_get(route, "events"), "done"), 7);
  assert_int_equal(number_of(json_object_get(route, "outcomes"), "delivered"), 8);
  assert_int_equal(number_of(json_object_get(route, "results"), "late"), 9);
  const json_t *lateness = json_object_get(route, "lateness");
  assert_int_equal(number_of(lateness, "count"), 100);
  assert_in_range(number_of(lateness, "p99_us"), 250, 500);
  assert_int_equal(json_array_size(json_object_get(lateness, "buckets")),
                   json_array_size(json_object_get(json, "bucket_bounds_us")) + 1);
  json_decref(json);

  json = fixture_ask(fixture, "GET", "/api/v1/routes", FIXTURE_BEARER, NULL, 200);
  assert_int_equal(json_array_size(json_object_get(json, "routes")), 3);
  json_decref(json);
}

/* Names come from rows that anyone may have inserted. They must come out as data, whatever they hold. */
static void names_stay_data(void **state) {
  struct admin_fixture *fixture = *state;
  static const char *const names[] = {"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>",
                                      "a\\\"\n{\xc3\xa9"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    fixture->engine.routes[i].name = names[i];
  struct reply reply = http_request(fixture->port, "GET", "/api/v1/stats", FIXTURE_BEARER, NULL);
  char type[64], sniff[32];
  assert_true(http_header(&reply, "Content-Type", type, sizeof(type)));
  assert_string_equal(type, "application/json");
  assert_true(http_header(&reply, "X-Content-Type-Options", sniff, sizeof(sniff)));
  assert_string_equal(sniff, "nosniff");
  json_t *json = json_loads(reply.body, 0, NULL);
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    assert_string_equal(text_of(json_array_get(json_object_get(json, "routes"), i), "name"), names[i]);
  json_decref(json);
  http_free(&reply);

  fixture->engine.routes[0].name = "not \xff\xfe UTF-8";
  json = fixture_ask(fixture, "GET", "/api/v1/stats", FIXTURE_BEARER, NULL, 200);
  assert_string_equal(text_of(json_array_get(json_object_get(json, "routes"), 0), "name"), "not ?? UTF-8");
  json_decref(json);
  fixture_problem(fixture, "POST", "/api/v1/routes/%3Cscript%3E/pause", FIXTURE_COMMAND, NULL, 404, "not_found");
  json = fixture_command(fixture, "/api/v1/routes/%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E/pause", NULL, 200);
  assert_string_equal(text_of(json, "route"), names[1]);
  json_decref(json);
}

/* Whatever its path, a GET asks the engine for nothing but its state; and no command passes without the token. */
static void only_commands_change_anything(void **state) {
  struct admin_fixture *fixture = *state;
  size_t count;
  const struct endpoint *table = router_table(&count);
  for (size_t i = 0; i < count; i++) {
    bool get = strcmp(table[i].method, "GET") == 0;
    uint16_t port = table[i].role == ROLE_CALLBACK ? fixture->callbacks_port : fixture->port;
    struct reply reply = http_request(port, "GET", table[i].path, FIXTURE_COMMAND, NULL);
    assert_int_equal(reply.status, !get ? 405 : strchr(table[i].path, '{') ? 404 : 200);
    http_free(&reply);
    if (!get) {
      reply = http_request(port, "POST", table[i].path, "Content-Type: application/json\r\n", "{}");
      assert_int_equal(reply.status, table[i].role == ROLE_CALLBACK ? 403 : 401);
      http_free(&reply);
    }
  }
  assert_int_equal(fixture->engine.commands + fixture->engine.results + fixture->engine.pauses + fixture->reloads +
                       fixture->forgets,
                   0);
}

static void without_a_token_there_are_no_commands(void **state) {
  struct admin_fixture *fixture = *state;
  json_decref(fixture_ask(fixture, "GET", "/api/v1/stats", "", NULL, 200));
  fixture_problem(fixture, "POST", "/api/v1/tasks/17/cancel", FIXTURE_COMMAND, "{}", 403, "read_only");
  fixture_problem(fixture, "GET", "/api/v1/stats", "X-Forwarded-For: 10.0.0.1\r\n", NULL, 403, "forbidden");
  assert_int_equal(fixture->engine.commands, 0);
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, admin_fixture_setup, admin_fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      API_TEST(command_answers),
      API_TEST(the_engines_own_words_are_passed_on),
      API_TEST(what_a_dead_daemon_may_have_sent_is_told),
      API_TEST(some_tasks_together),
      API_TEST(cancel_and_reschedule),
      API_TEST(what_is_meant_for_another_outbox_is_not_done),
      API_TEST(a_name_is_looked_up_once),
      API_TEST(what_cannot_be_looked_up_is_not_done),
      API_TEST(a_stranger_has_nothing_looked_up),
      API_TEST(bad_bodies_change_nothing),
      API_TEST(a_delay_needs_the_databases_clock),
      API_TEST(result_answers),
      API_TEST(results_not_stored_are_to_be_sent_again),
      API_TEST(callbacks_belong_to_one_attempt),
      API_TEST(a_callback_is_about_its_url),
      API_TEST(broken_records_of_the_api_reach_the_engine),
      API_TEST(progress_is_answered_truly),
      API_TEST(callbacks_have_a_listener_of_their_own),
      API_TEST(routes_pause_and_resume),
      API_TEST(reload_says_what_happened),
      API_TEST(health_and_readiness),
      API_TEST(stats_tell_what_the_engine_knows),
      API_TEST(names_stay_data),
      API_TEST(only_commands_change_anything),
      cmocka_unit_test_setup_teardown(many_unknown_names_are_looked_up_together, admin_fixture_setup_open,
                                      admin_fixture_teardown),
      cmocka_unit_test_setup_teardown(without_a_token_there_are_no_commands, admin_fixture_setup_open,
                                      admin_fixture_teardown),
  };
  return cmocka_run_group_tests_name("admin api", tests, NULL, NULL);
}
