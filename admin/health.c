/* SPDX-License-Identifier: MIT
 *
 * admin/health.c - is it alive, and is it of use.
 *
 * Liveness never asks the database: a daemon that waits for its database is well, and restarting it helps nobody.
 */
#include "admin/look.h"
#include "admin/problem.h"

void health_live(struct admin *admin, const struct request *request, struct response *response) {
  const char *failed = engine_failed(admin_engine(admin));
  if (failed)
    respond_problem(response, PROBLEM_INTERNAL, "the engine has failed and the daemon must be started anew: %s",
                    request->insight != INSIGHT_NOTHING ? failed : "the log says why");
  else
    respond_static(response, "text/plain; charset=utf-8", "ok\n", 3);
}

/* Each by itself, for programs. */
static json_t *problems_json(const struct problem_list *list) {
  json_t *json = json_array();
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(json, json_any(list->text[i]));
  return json;
}

void health_ready(struct admin *admin, const struct request *request, struct response *response) {
  struct look look;
  if (!look_at(admin, request, &look, response))
    return;
  const struct engine_status *status = &look.status;
  if (status->draining)
    respond_problem(response, PROBLEM_NOT_READY, "the daemon is draining: it finishes what is in flight and stops");
  else if (!status->ready && request->insight != INSIGHT_NOTHING)
    respond_problem_list(response, PROBLEM_NOT_READY, problems_json(&status->problems), status->not_ready);
  else if (!status->ready)
    respond_problem(response, PROBLEM_NOT_READY, "the reason is for those who show the token");
  else
    respond_json(response, 200, json_pack("{sb}", "ready", 1));
  look_end(&look);
}
