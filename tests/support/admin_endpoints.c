/* SPDX-License-Identifier: MIT
 *
 * tests/support/admin_endpoints.c - prints the routing table, the problem codes, and one answer of /api/v1/stats, for
 * the comparison with docs/openapi.yaml.
 */
#include <stdio.h>

#include "admin/problem.h"
#include "support/fake_engine.h"
#include "support/http_client.h"

static bool reload(void *ctx, struct err *err) { return true; }

static bool print_stats(void) {
  static struct engine engine;
  struct admin *admin;
  struct err err;
  struct admin_config config = {.host = "127.0.0.1"};
  struct admin_hooks hooks = {.reload = reload};
  fake_engine_init(&engine);
  if (!admin_start(&engine, &config, &hooks, &admin, &err))
    return false;
  struct reply reply = http_request(admin_port(admin), "GET", "/api/v1/stats", "", NULL);
  bool fine = reply.status == 200;
  if (fine)
    printf("stats %s\n", reply.body);
  http_free(&reply);
  admin_stop(&admin);
  fake_engine_destroy(&engine);
  return fine;
}

int main(void) {
  static const char *const roles[] = {"open", "read", "operate", "callback"};
  size_t count;
  const struct endpoint *table = router_table(&count);
  for (size_t i = 0; i < count; i++)
    printf("endpoint %s %s %s\n", table[i].method, table[i].path, roles[table[i].role]);
#define PROBLEM(symbol, status, code, title) printf("problem %s %d\n", code, status);
  PROBLEMS(PROBLEM)
#undef PROBLEM
  return print_stats() ? 0 : 1;
}
