/* SPDX-License-Identifier: MIT
 *
 * tests/support/admin_endpoints.c - prints the routing table, the problem codes, one answer of /api/v1/stats, and which
 * bodies are accepted, for the comparison with docs/openapi.yaml.
 */
#include <stdio.h>
#include <string.h>

#include "admin/problem.h"
#include "core/record.h"
#include "support/fake_engine.h"
#include "support/http_client.h"

static bool reload(void *ctx, struct err *err) { return true; }

#define TOKEN "0123456789abcdef"
#define COMMAND "Authorization: Bearer " TOKEN "\r\nContent-Type: application/json\r\n"
#define TEN "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN
#define RESCHEDULE "/api/v1/tasks/{id}/reschedule"
#define CANCEL "/api/v1/tasks/{id}/cancel"
#define RESULTS "/api/v1/results"

/* At the edges of what is accepted, on both sides. */
static const char *const bodies[][2] = {
    {RESCHEDULE, "{}"},
    {RESCHEDULE, "{\"delay_ms\":0}"},
    {RESCHEDULE, "{\"delay_ms\":-1}"},
    {RESCHEDULE, "{\"delay_ms\":3162240000001}"},
    {RESCHEDULE, "{\"delay_ms\":\"1\"}"},
    {RESCHEDULE, "{\"due_at\":\"2000-01-01T00:00:00Z\"}"},
    {RESCHEDULE, "{\"due_at\":\"2199-12-31T23:59:59.999999Z\"}"},
    {RESCHEDULE, "{\"due_at\":\"1999-12-31T23:59:59Z\"}"},
    {RESCHEDULE, "{\"due_at\":\"2200-01-01T00:00:00Z\"}"},
    {RESCHEDULE, "{\"due_at\":\"2030-01-31T12:00:00Z\",\"delay_ms\":0}"},
    {RESCHEDULE, "{\"delay_ms\":0,\"new\":0}"},
    {CANCEL, "{}"},
    {CANCEL, "[]"},
    {CANCEL, "{\"actor\":\"" SIXTY "1234\"}"},
    {CANCEL, "{\"actor\":\"" SIXTY "12345\"}"},
    {CANCEL, "{\"reason\":\"" SIXTY SIXTY SIXTY SIXTY TEN "12345\"}"},
    {CANCEL, "{\"reason\":\"" SIXTY SIXTY SIXTY SIXTY TEN "123456\"}"},
    {CANCEL, "{\"reason\":1}"},
    {CANCEL, "{\"reason\":\"\\u0000\"}"},
    {RESULTS, "{\"id\":\"!~\",\"attempt\":1,\"status\":\"done\"}"},
    {RESULTS, "{\"id\":\"" SIXTY "1234\",\"attempt\":4294967295,\"status\":\"progress\"}"},
    {RESULTS, "{\"id\":\"" SIXTY "12345\",\"attempt\":1,\"status\":\"done\"}"},
    {RESULTS, "{\"id\":\"\",\"attempt\":1,\"status\":\"done\"}"},
    {RESULTS, "{\"id\":\"a b\",\"attempt\":1,\"status\":\"done\"}"},
    {RESULTS, "{\"id\":\"m-1\",\"attempt\":0,\"status\":\"done\"}"},
    {RESULTS, "{\"id\":\"m-1\",\"attempt\":4294967296,\"status\":\"done\"}"},
    {RESULTS, "{\"id\":\"m-1\",\"attempt\":1,\"status\":\"maybe\"}"},
    {RESULTS, "{\"attempt\":1,\"status\":\"done\"}"},
    {RESULTS, "{\"id\":\"m-1\",\"attempt\":1}"},
};

/* The engine takes any record here, so the rules for records are asked themselves. */
static bool is_accepted(struct admin *admin, const char *path, const char *body) {
  if (strcmp(path, RESULTS) == 0) {
    struct result_record record = {0};
    struct err err;
    bool accepted = result_record_parse(body, strlen(body), &(struct record_road){0}, &record, &err);
    result_record_free(&record);
    return accepted;
  }
  char url[64];
  snprintf(url, sizeof url, "/api/v1/tasks/17/%s", strrchr(path, '/') + 1);
  struct reply reply = http_request(admin_port(admin), "POST", url, COMMAND, body);
  bool accepted = reply.status == 200;
  http_free(&reply);
  return accepted;
}

static bool print_answers(void) {
  static struct engine engine;
  struct admin *admin;
  struct err err;
  struct admin_config config = {.host = "127.0.0.1", .token = TOKEN};
  struct admin_hooks hooks = {.reload = reload};
  fake_engine_init(&engine);
  if (!admin_start(&engine, &config, &hooks, &admin, &err))
    return false;
  struct reply reply = http_request(admin_port(admin), "GET", "/api/v1/stats", COMMAND, NULL);
  bool fine = reply.status == 200;
  if (fine)
    printf("stats %s\n", reply.body);
  http_free(&reply);
  for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
    printf("body %s %s %s\n", is_accepted(admin, bodies[i][0], bodies[i][1]) ? "accepted" : "refused", bodies[i][0],
           bodies[i][1]);
  admin_stop(&admin);
  fake_engine_destroy(&engine);
  return fine;
}

int main(void) {
  static const char *const roles[] = {"open", "read", "records", "operate", "callback"};
  size_t count;
  const struct endpoint *table = router_table(&count);
  for (size_t i = 0; i < count; i++)
    printf("endpoint %s %s %s\n", table[i].method, table[i].path, roles[table[i].role]);
#define PROBLEM(symbol, status, code, title) printf("problem %s %d\n", code, status);
  PROBLEMS(PROBLEM)
#undef PROBLEM
  return print_answers() ? 0 : 1;
}
