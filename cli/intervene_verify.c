/* SPDX-License-Identifier: MIT
 *
 * cli/intervene_verify.c - what the rows say of what a daemon was asked to do.
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "cli/intervene_internal.h"
#include "core/base/clock.h"

enum { VERIFY_US = 5 * 1000 * 1000 };

bool intervene_store_failed(enum store_status status, struct err *err) {
  err->code = cli_store_code(status, err);
  return false;
}

bool intervene_read_again(struct intervener *in, const struct task_target *target, struct task_target *now, bool *found,
                          struct err *err) {
  char id[32];
  snprintf(id, sizeof id, "id:%llu", (unsigned long long)target->id);
  enum store_status status = in->op->ops->find_exact(in->op->self, id, 0, now, found, err);
  *found = status == STORE_OK && *found && strcmp(now->message_id, target->message_id) == 0;
  return status == STORE_OK || intervene_store_failed(status, err);
}

bool intervene_is_unchanged(const struct task_change *change, const struct task_target *target,
                            const struct task_target *now) {
  enum { NEAR_US = 1000 * 1000 };
  if (change->verb == CHANGE_CANCEL)
    return now->state != TASK_CANCELLED;
  int64_t away_us = now->next_us - change->due_us;
  return now->state == target->state && now->next_us == target->next_us && (away_us > NEAR_US || away_us < -NEAR_US);
}

/* Nothing but the daemon's word is known, and that is not kept back. */
static bool unseen(const struct shard_owner *owner, const struct task_target *target, struct err *err) {
  char why[sizeof err->text];
  unsigned long long id = target->id;
  memcpy(why, err->text, sizeof why);
  return err_set(err, EX_UNAVAILABLE,
                 "task %llu: the daemon %s says that it was done, and the row cannot be looked at (%.600s): see "
                 "`duebox task show id:%llu`",
                 id, owner->instance, why, id);
}

bool intervene_verify(struct intervener *in, const struct task_change *change, struct task_target *target,
                      struct err *err) {
  const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
  const struct shard_owner *owner = &in->owners[target->shard];
  for (int64_t until_us = clock_mono_us() + VERIFY_US;; nanosleep(&pause, NULL)) {
    struct task_target now;
    bool found, seen = intervene_read_again(in, target, &now, &found, err);
    if (!seen && clock_mono_us() >= until_us)
      return unseen(owner, target, err);
    if (!seen)
      continue; /* the link to the database may have broken: it is opened anew */
    if (!found || !intervene_is_unchanged(change, target, &now)) {
      bool told = found && (change->verb == CHANGE_CANCEL || now.state == target->state); /* else it went since */
      target->maybe_sent = target->maybe_sent || (told && now.maybe_sent);
      target->outcome = CHANGE_DONE;
      return true;
    }
    if (clock_mono_us() >= until_us)
      break;
  }
  return err_set(err, EX_UNAVAILABLE,
                 "task %llu: what answers for the daemon %s at %s says that it was done, but the row is as it was; "
                 "something else may listen there",
                 (unsigned long long)target->id, owner->instance, owner->admin_url);
}

bool intervene_look_again(struct intervener *in, const struct task_change *change, struct task_target *target,
                          struct err *err) {
  char why[sizeof err->text];
  struct task_target now;
  struct err ignored;
  bool found;
  if (change->verb == CHANGE_CANCEL && intervene_read_again(in, target, &now, &found, &ignored) && found &&
      now.state == TASK_CANCELLED) {
    target->maybe_sent = target->maybe_sent || now.maybe_sent;
    target->outcome = CHANGE_DONE;
    return true;
  }
  memcpy(why, err->text, sizeof why);
  return err_set(err, EX_UNAVAILABLE,
                 "task %llu: the daemon %s did not answer (%.600s); whether it was carried out is not known: "
                 "look with `duebox task show id:%llu` and repeat it",
                 (unsigned long long)target->id, in->owners[target->shard].instance, why,
                 (unsigned long long)target->id);
}
