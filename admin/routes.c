/* SPDX-License-Identifier: MIT
 *
 * admin/routes.c - pausing and resuming a route, for all daemons.
 */
#include <string.h>

#include "admin/body.h"
#include "admin/look.h"
#include "admin/problem.h"

/* A name that neither the configuration nor a row knows is a typing error, not a wish. */
static bool route_exists(struct admin *admin, const struct request *request, const char *name,
                         struct response *response) {
  struct look look;
  if (!look_at(admin, request, &look, response))
    return false;
  bool found = false;
  for (size_t i = 0; i < look.status.route_count && !found; i++)
    found = strcmp(look.status.routes[i].name, name) == 0;
  look_end(&look);
  if (!found)
    respond_problem(response, PROBLEM_NOT_FOUND, "no route has this name; GET /api/v1/routes lists them");
  return found;
}

static void set_paused(struct admin *admin, const struct request *request, struct response *response, bool paused) {
  static const char *const known[] = {"actor", "reason", NULL};
  const char *route = request->params[0];
  struct motive motive;
  struct err err = {0};
  json_t *body = body_object(request, known, response);
  if (!body || !body_motive(body, &motive, response) || !route_exists(admin, request, route, response))
    goto done;
  if (engine_pause_route(admin_engine(admin), route, paused, motive.actor, motive.reason, &err))
    respond_json(response, 200, json_pack("{so sb}", "route", json_any(route), "paused", paused));
  else
    respond_problem(response, problem_of_database(&err), "%s", err.text);
done:
  json_decref(body);
}

void route_pause(struct admin *admin, const struct request *request, struct response *response) {
  set_paused(admin, request, response, true);
}

void route_resume(struct admin *admin, const struct request *request, struct response *response) {
  set_paused(admin, request, response, false);
}
