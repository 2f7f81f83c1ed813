/* SPDX-License-Identifier: MIT
 *
 * admin/problem.c - writes problem+json. Stateless.
 */
#include "admin/problem.h"

#include <stdarg.h>

static const struct {
  unsigned status;
  const char *code, *title;
} problems[] = {
#define PROBLEM(symbol, status, code, title) [PROBLEM_##symbol] = {status, code, title},
    PROBLEMS(PROBLEM)
#undef PROBLEM
};

void respond_problem_list(struct response *response, enum problem problem, json_t *list, const char *detail) {
  char type[96];
  snprintf(type, sizeof(type), "urn:duebox:problem:%s", problems[problem].code);

  respond_json(response, problems[problem].status,
               json_pack("{ss ss si ss so so*}", "type", type, "title", problems[problem].title, "status",
                         (int)problems[problem].status, "code", problems[problem].code, "detail", json_any(detail),
                         "problems", list));
  response->type = "application/problem+json";
  if (problem == PROBLEM_UNAUTHORIZED)
    response->challenge = true;
  if (problems[problem].status == 503)
    response->retry_after = HTTP_RETRY_AFTER;
}

enum problem problem_of_database(const struct err *err) {
  return err->denied ? PROBLEM_RIGHTS : err->refused ? PROBLEM_REFUSED : PROBLEM_DATABASE;
}

void respond_problem(struct response *response, enum problem problem, const char *detail, ...) {
  char text[1280];
  va_list args;
  va_start(args, detail);
  vsnprintf(text, sizeof(text), detail, args);
  va_end(args);
  respond_problem_list(response, problem, NULL, text);
}
