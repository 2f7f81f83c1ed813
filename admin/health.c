/* SPDX-License-Identifier: MIT
 *
 * admin/health.c - is it alive, and is it of use.
 *
 * Liveness never asks the database: a daemon that waits for its database is well, and restarting it helps nobody.
 */
#include "admin/problem.h"

void health_live(struct admin *admin, const struct request *request, struct response *response) {
  const char *failed = engine_failed(admin_engine(admin));
  if (failed)
    respond_problem(response, PROBLEM_INTERNAL, "the engine has failed and the daemon must be started anew: %s",
                    request->trusted ? failed : "the log says why");
  else
    respond_static(response, "text/plain; charset=utf-8", "ok\n", 3);
}

void health_ready(struct admin *admin, const struct request *request, struct response *response) {
  struct engine_status status;
  if (!engine_status(admin_engine(admin), &status)) {
    respond_problem(response, PROBLEM_INTERNAL, "no memory for the status");
    return;
  }
  if (status.draining)
    respond_problem(response, PROBLEM_NOT_READY, "the daemon is draining: it finishes what is in flight and stops");
  else if (!status.ready)
    respond_problem(response, PROBLEM_NOT_READY, "%s",
                    request->trusted ? status.not_ready : "the reason is for those who show the token");
  else
    respond_json(response, 200, json_pack("{sb}", "ready", 1));
  engine_status_free(&status);
}
