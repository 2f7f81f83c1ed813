/* SPDX-License-Identifier: MIT
 *
 * admin/look.c - takes a snapshot, and takes out what its caller may not see. Stateless; any thread.
 */
#include "admin/look.h"

#include <string.h>

#include "admin/problem.h"

/* Route names stay: rows may name routes that no configuration has, and these are what metrics are by. */
static void conceal_route(struct route_status *route) {
  route->reason[0] = route->pause_reason[0] = '\0';
  route->stalled_target[0] = route->stalled_task[0] = route->held_task[0] = route->full_task[0] = '\0';
  for (size_t i = 0; route->targets && i < route->target_count; i++)
    route->targets[i].name[0] = route->targets[i].reason[0] = route->targets[i].message_id[0] = '\0';
}

static void conceal(struct engine_status *status) {
  for (size_t i = 0; i < status->route_count; i++)
    conceal_route(&status->routes[i]);
  for (size_t i = 0; i < status->plugin_count; i++)
    if (strcmp(status->plugins[i].text, PLUGIN_UNHEARD) != 0)
      status->plugins[i].text[0] = '\0';
  readiness_conceal(&status->problems);
  readiness_text(&status->problems, status->not_ready, sizeof status->not_ready);
}

bool look_at(struct admin *admin, const struct request *request, struct look *out, struct response *response) {
  out->all = request->insight == INSIGHT_ALL;
  if (!engine_status(admin_engine(admin), &out->status)) {
    respond_problem(response, PROBLEM_INTERNAL, "no memory for the status");
    return false;
  }
  if (!out->all)
    conceal(&out->status);
  return true;
}

void look_end(struct look *look) { engine_status_free(&look->status); }

json_t *look_said(const struct look *look, const char *text) { return look->all ? json_any(text) : json_null(); }
