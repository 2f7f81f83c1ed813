/* SPDX-License-Identifier: MIT
 *
 * admin/reload.c - asks the daemon to load its configuration again.
 */
#include "admin/problem.h"

void reload_post(struct admin *admin, const struct request *request, struct response *response) {
  const struct admin_hooks *hooks = admin_hooks(admin);
  struct err err = {0};
  if (hooks->reload(hooks->ctx, &err))
    respond_json(response, 200, json_pack("{sb}", "reloaded", 1));
  else
    respond_problem(response, PROBLEM_CONFIG, "nothing was changed: %s", err.text);
}
