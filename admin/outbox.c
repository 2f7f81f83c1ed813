/* SPDX-License-Identifier: MIT */
#include "admin/outbox.h"

#include <stddef.h>
#include <string.h>

#include "admin/problem.h"
#include "admin/server.h"
#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/operator.h"

static void ask_the_table(struct job *job);

void outbox_names_init(struct outbox_names *names, struct admin *admin) {
  *names = (struct outbox_names){.admin = admin, .job.run = ask_the_table};
  STAILQ_INIT(&names->asks);
  pthread_mutex_init(&names->lock, NULL);
}

void outbox_names_destroy(struct outbox_names *names) { pthread_mutex_destroy(&names->lock); }

/* Under the lock. */
static bool is_remembered(const struct outbox_names *names, const char *name) {
  int64_t now = clock_mono_us();
  for (size_t i = 0; i < OUTBOX_REMEMBERED; i++)
    if (now < names->found[i].until_us && strcmp(names->found[i].name, name) == 0)
      return true;
  return false;
}

static void remember(struct outbox_names *names, const char *name) {
  pthread_mutex_lock(&names->lock);
  size_t at = names->next++ % OUTBOX_REMEMBERED;
  snprintf(names->found[at].name, HTTP_OUTBOX_LEN, "%s", name);
  names->found[at].until_us = clock_mono_us() + OUTBOX_REMEMBER_MS * INT64_C(1000);
  pthread_mutex_unlock(&names->lock);
}

/* False: the table could not be asked. */
static bool look_up(struct admin *admin, const char *const *list, size_t count, bool *found, struct err *err) {
  const struct admin_hooks *hooks = admin_hooks(admin);
  struct operator op;
  if (!hooks->open_operator)
    return err_set(err, 0, "there is no database");
  if (!hooks->open_operator(hooks->operator_ctx, &op, err))
    return false;
  bool ok = op.ops->announced(op.self, list, count, found, err) == STORE_OK;
  op.ops->close(op.self);
  return ok;
}

/* What waits longest, as much as one question takes. 0: nothing waits, and the job is over. */
static size_t take_asks(struct outbox_names *names, struct outbox_ask **asks) {
  size_t count = 0;
  pthread_mutex_lock(&names->lock);
  for (; count < OUTBOX_TOGETHER && (asks[count] = STAILQ_FIRST(&names->asks)) != NULL; count++)
    STAILQ_REMOVE_HEAD(&names->asks, next);
  names->asking = count > 0;
  pthread_mutex_unlock(&names->lock);
  return count;
}

static bool stops(const struct outbox_names *names) { return atomic_load(&names->admin->stopping); }

/* Those that come meanwhile are asked for together. */
static void pause_between(const struct outbox_names *names) {
  int64_t wait_us = names->pause_us - clock_mono_us();
  if (wait_us > 0 && !stops(names))
    thread_sleep(wait_us);
}

static void answer(struct outbox_names *names, struct outbox_ask *ask, bool found) {
  if (found)
    remember(names, ask->name);
  else
    respond_problem(ask->response, PROBLEM_OUTBOX,
                    "nothing was done: who asks works on another outbox, its name in " OUTBOX_HEADER
                    " is not in our table outbox_instances");
  ask->answered(ask, found);
}

static void refuse(struct outbox_names *names, struct outbox_ask *ask, const struct err *err) {
  if (stops(names))
    respond_problem(ask->response, PROBLEM_STOPPING, "nothing was done; ask again in a moment");
  else
    respond_problem(ask->response, problem_of_database(err),
                    "nothing was done, for it cannot be looked up whether this outbox is meant: %s", err->text);
  ask->answered(ask, false);
}

static void ask_the_table(struct job *job) {
  struct outbox_names *names = (struct outbox_names *)(void *)((char *)job - offsetof(struct outbox_names, job));
  struct outbox_ask *asks[OUTBOX_TOGETHER];
  const char *list[OUTBOX_TOGETHER];
  bool found[OUTBOX_TOGETHER] = {false};
  for (size_t count; pause_between(names), (count = take_asks(names, asks)) > 0;) {
    struct err err = {0};
    size_t good = 0;
    for (size_t i = 0; i < count; i++)
      list[i] = asks[i]->name;
    bool asked = !stops(names) && look_up(names->admin, list, count, found, &err);
    for (size_t i = 0; asked && i < count; i++)
      good += found[i];
    if (good < count)
      names->pause_us = clock_mono_us() + OUTBOX_PAUSE_MS * INT64_C(1000);
    for (size_t i = 0; i < count; i++)
      if (asked)
        answer(names, asks[i], found[i]);
      else
        refuse(names, asks[i], &err);
  }
}

bool outbox_is_meant(struct outbox_names *names, struct outbox_ask *ask) {
  if (!ask->name[0])
    return true;
  pthread_mutex_lock(&names->lock);
  bool meant = is_remembered(names, ask->name), first = !meant && !names->asking;
  if (!meant) {
    STAILQ_INSERT_TAIL(&names->asks, ask, next);
    names->asking = true;
  }
  pthread_mutex_unlock(&names->lock);
  /* A pool that stops takes no job, and by then the listener stops: nothing is asked, and all who wait hear so. */
  if (first && pool_submit(names->admin->pool, &names->job, POOL_SLOW) != POOL_TAKEN)
    ask_the_table(&names->job);
  return meant;
}
