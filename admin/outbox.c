/* SPDX-License-Identifier: MIT */
#include "admin/outbox.h"

#include <string.h>

#include "admin/problem.h"
#include "core/operator.h"

void outbox_names_init(struct outbox_names *names) { pthread_mutex_init(&names->lock, NULL); }

void outbox_names_destroy(struct outbox_names *names) { pthread_mutex_destroy(&names->lock); }

static bool is_remembered(struct outbox_names *names, const char *name) {
  bool found = false;
  pthread_mutex_lock(&names->lock);
  for (size_t i = 0; i < ARRAY_LEN(names->found) && !found; i++)
    found = strcmp(names->found[i], name) == 0;
  pthread_mutex_unlock(&names->lock);
  return found;
}

static void remember(struct outbox_names *names, const char *name) {
  pthread_mutex_lock(&names->lock);
  snprintf(names->found[names->next++ % ARRAY_LEN(names->found)], HTTP_OUTBOX_LEN, "%s", name);
  pthread_mutex_unlock(&names->lock);
}

/* Asks the table. False: it could not be asked. */
static bool look_up(struct admin *admin, const char *name, bool *found, struct err *err) {
  const struct admin_hooks *hooks = admin_hooks(admin);
  struct operator op;
  if (!hooks->open_operator)
    return err_set(err, 0, "there is no database");
  if (!hooks->open_operator(hooks->operator_ctx, &op, err))
    return false;
  bool ok = op.ops->announced(op.self, name, found, err) == STORE_OK;
  op.ops->close(op.self);
  return ok;
}

bool outbox_is_meant(struct admin *admin, struct outbox_names *names, const struct request *request,
                     struct response *response) {
  struct err err = {0};
  bool found = false;
  if (!request->outbox[0] || is_remembered(names, request->outbox))
    return true;
  if (!look_up(admin, request->outbox, &found, &err)) {
    respond_problem(response, problem_of_database(&err),
                    "nothing was done, for it cannot be looked up whether this outbox is meant: %s", err.text);
    return false;
  }
  if (found)
    remember(names, request->outbox);
  else
    respond_problem(response, PROBLEM_OUTBOX,
                    "nothing was done: who asks works on another outbox, its name in " OUTBOX_HEADER
                    " is not in our table outbox_instances");
  return found;
}
