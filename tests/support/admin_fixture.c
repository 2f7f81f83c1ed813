/* SPDX-License-Identifier: MIT
 *
 * tests/support/admin_fixture.c - start, ask, stop.
 */
#include "support/admin_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/operator.h"

static bool reload(void *ctx, struct err *err) {
  struct admin_fixture *fixture = ctx;
  fixture->reloads++;
  return fixture->reload_trouble ? err_set(err, 0, "%s", fixture->reload_trouble) : true;
}

static void close_operator(void *self) {}

static enum store_status list(void *self, uint64_t id, uint64_t limit, uint64_t body_cap, row_fn *row, void *ctx,
                              struct err *err) {
  const struct admin_fixture *fixture = self;
  const struct field fields[] = {
      {.name = "id", .kind = FIELD_INT, .number = 7},
      {.name = "reason", .kind = FIELD_TEXT, .text = {"test", 4}},
      {.name = "body",
       .kind = FIELD_BYTES,
       .text = {fixture->quarantined, fixture->quarantined ? strlen(fixture->quarantined) : 0}},
  };
  if (fixture->quarantined)
    row(ctx, fields, ARRAY_LEN(fields));
  return STORE_OK;
}

static enum store_status forget_none(void *self, uint64_t id, int64_t before_us, const char *actor, const char *reason,
                                     uint64_t *forgotten, struct err *err) {
  struct admin_fixture *fixture = self;
  fixture->forgets++;
  *forgotten = 0;
  return STORE_OK;
}

static enum store_status announced(void *self, const char *const *names, size_t count, bool *found, struct err *err) {
  struct admin_fixture *fixture = self;
  for (size_t i = 0; i < count; i++)
    found[i] = fixture->announced && strcmp(fixture->announced, names[i]) == 0;
  atomic_fetch_add(&fixture->asking, 1);
  pthread_mutex_lock(&fixture->table); /* a test holds it that wants the answer to be late */
  pthread_mutex_unlock(&fixture->table);
  if (atomic_fetch_sub(&fixture->asking, 1) > 1)
    atomic_store(&fixture->asked_twice, true);
  return STORE_OK;
}

static bool open_operator(void *ctx, struct operator* out, struct err *err) {
  static const struct operator_ops ops = {
      .close = close_operator, .announced = announced, .quarantine = list, .quarantine_forget = forget_none};
  struct admin_fixture *fixture = ctx;
  fixture->lookups++;
  if (fixture->database)
    return err_set(err, 0, "%s", fixture->database);
  *out = (struct operator){.ops = &ops, .self = ctx};
  return true;
}

static int setup(void **state, const char *token) {
  struct admin_fixture *fixture = calloc(1, sizeof(*fixture));
  struct err err = {0};
  if (!fixture)
    return -1;
  fake_engine_init(&fixture->engine);
  pthread_mutex_init(&fixture->table, NULL);
  struct admin_config config = {.host = "127.0.0.1", .token = token, .url = "http://outbox.example:8321"};
  struct admin_hooks hooks = {
      .ctx = fixture, .reload = reload, .operator_ctx = fixture, .open_operator = open_operator};
  if (!admin_start(&fixture->engine, &config, &hooks, &fixture->admin, &err)) {
    fprintf(stderr, "%s\n", err.text);
    return -1;
  }
  fixture->port = admin_port(fixture->admin);
  struct callbacks_config callbacks = {.host = "127.0.0.1"};
  if (!admin_start_callbacks(&fixture->engine, &callbacks, &fixture->callbacks, &err)) {
    fprintf(stderr, "%s\n", err.text);
    return -1;
  }
  fixture->callbacks_port = admin_port(fixture->callbacks);
  *state = fixture;
  return 0;
}

int admin_fixture_setup(void **state) { return setup(state, FIXTURE_TOKEN); }
int admin_fixture_setup_open(void **state) { return setup(state, NULL); }

int admin_fixture_teardown(void **state) {
  struct admin_fixture *fixture = *state;
  fake_engine_hang(&fixture->engine, false);
  admin_stop(&fixture->callbacks);
  admin_stop(&fixture->admin);
  fake_engine_destroy(&fixture->engine);
  pthread_mutex_destroy(&fixture->table);
  free(fixture);
  return 0;
}

/* Consumers have a listener of their own. */
static uint16_t port_of(const struct admin_fixture *fixture, const char *path) {
  return strncmp(path, "/callback/", 10) == 0 ? fixture->callbacks_port : fixture->port;
}

static json_t *parse(const struct reply *reply, int status, const char *method, const char *path) {
  json_error_t error;
  if (reply->status != status)
    fail_msg("%s %s: %d instead of %d: %s", method, path, reply->status, status, reply->body ? reply->body : "");
  json_t *json = json_loads(reply->body, 0, &error);
  if (!json)
    fail_msg("%s %s: no JSON: %s in %s", method, path, error.text, reply->body);
  return json;
}

json_t *fixture_ask(struct admin_fixture *fixture, const char *method, const char *path, const char *headers,
                    const char *body, int status) {
  struct reply reply = http_request(port_of(fixture, path), method, path, headers, body);
  json_t *json = parse(&reply, status, method, path);
  http_free(&reply);
  return json;
}

json_t *fixture_command(struct admin_fixture *fixture, const char *path, const char *body, int status) {
  return fixture_ask(fixture, "POST", path, FIXTURE_COMMAND, body, status);
}

void fixture_problem(struct admin_fixture *fixture, const char *method, const char *path, const char *headers,
                     const char *body, int status, const char *code) {
  struct reply reply = http_request(port_of(fixture, path), method, path, headers, body);
  char type[64], urn[96];
  json_t *json = parse(&reply, status, method, path);
  assert_true(http_header(&reply, "Content-Type", type, sizeof(type)));
  assert_string_equal(type, "application/problem+json");
  assert_string_equal(json_string_value(json_object_get(json, "code")), code);
  snprintf(urn, sizeof(urn), "urn:duebox:problem:%s", code);
  assert_string_equal(json_string_value(json_object_get(json, "type")), urn);
  assert_int_equal(json_integer_value(json_object_get(json, "status")), status);
  assert_non_null(json_string_value(json_object_get(json, "title")));
  assert_non_null(json_string_value(json_object_get(json, "detail")));
  json_decref(json);
  http_free(&reply);
}
