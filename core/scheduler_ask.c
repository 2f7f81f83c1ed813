/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_ask.c - people's commands for single tasks, run by the scheduler between two reads.
 *
 * The scheduler is the only reader of its shards, so between its reads a row is either in flight, and the command is
 * told so, or it cannot leave before the command's statement has committed. What an owner before us had in its memory
 * when it died is known to nobody: the table says of which rows that may be so.
 */
#include <string.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/scheduler.h"

enum {
  COMMANDS_SLICE_US = 5 * 1000, /* beyond one */
  COMMANDS_BYTES = 512 << 10,   /* of many together, beyond the first */
  BUSY_FOR_US = 2000 * 1000,    /* who asks tries so long where somebody holds a lock: most go soon */
  BUSY_MIN_US = 20 * 1000,
  BUSY_MAX_US = 320 * 1000,
};

static enum command_answer failed(struct asked *asked, const struct err *err) {
  asked->err = *err;
  return COMMAND_FAILED;
}

/* What the audit says that people named, as it does without a daemon: a prefix that tells which kind of name it is was
 * perhaps put there by the command line. */
static const char *named_by(const struct task_command *command) {
  static const char prefix[] = "message_id:";
  size_t len = sizeof prefix - 1;
  return command->id + (strncmp(command->id, prefix, len) == 0 ? len : 0);
}

static void count_cancelled(struct scheduler *s, const char *route) {
  struct lane *lane = scheduler_lane(s, route);
  if (lane)
    count(&lane->metrics.events[EVENT_CANCEL], 1);
}

/* What is known before the row is locked; DONE: it may be changed. */
static enum command_answer judge(const struct scheduler *s, const struct task_command *command,
                                 const struct task_place *place) {
  if (!place->found)
    return COMMAND_NOT_FOUND;
  if (place->misfit)
    return COMMAND_STATE;
  if (!s->view[place->shard].epoch)
    return COMMAND_ELSEWHERE;
  if (flight_by_id(s->flights, place->id))
    return COMMAND_IN_FLIGHT;
  bool expires = place->state == TASK_SCHEDULED && command->verb == INTERVENE_RESCHEDULE && place->expires_us &&
                 command->due_us >= place->expires_us;
  return expires ? COMMAND_STATE : COMMAND_DONE;
}

static enum command_answer answer_of(struct scheduler *s, const struct task_command *command,
                                     const struct task_place *place, bool changed) {
  if (changed && command->verb == INTERVENE_RESCHEDULE)
    scheduler_look_soon(s);
  if (changed && command->verb == INTERVENE_CANCEL)
    count_cancelled(s, place->route);
  if (changed)
    return place->maybe_sent ? COMMAND_DONE_MAYBE_SENT : COMMAND_DONE;
  /* A copy is out, though not from here: what holds for one in flight holds for it. */
  return place->state == TASK_CLAIMED || place->state == TASK_AWAITING ? COMMAND_IN_FLIGHT : COMMAND_STATE;
}

static enum store_status change_rows(struct scheduler *s, const struct task_command *command, uint8_t shard,
                                     const uint64_t *ids, size_t count, const char *filter, bool *changed,
                                     struct err *err) {
  struct shard_lease lease = {.shard = shard, .epoch = s->view[shard].epoch, .owner = s->instance};
  int64_t keep_us = s->config->config->engine.dead_retention_ms * 1000;
  return s->store->ops->intervene(s->ss, &lease, command->verb, ids, count, command->due_us, command->actor, filter,
                                  command->reason, keep_us, changed, err);
}

static enum command_answer run_command(struct scheduler *s, struct asked *asked) {
  const struct task_command *command = asked->command;
  struct task_place place = {0};
  struct err err = {0};
  bool changed = false;
  if (s->store->ops->locate(s->ss, &command->id, 1, &place, &err) != STORE_OK)
    return failed(asked, &err);
  enum command_answer known = judge(s, command, &place);
  if (known == COMMAND_STATE)
    err_set(&asked->err, 0, "%s",
            place.misfit ? "its shard or its state is none: correct its row with UPDATE, or DELETE it"
                         : "it would never be sent: its expires_at is not later than that");
  if (known != COMMAND_DONE)
    return known;
  enum store_status status = change_rows(s, command, place.shard, &place.id, 1, named_by(command), &changed, &err);
  asked->busy = status == STORE_BUSY;
  return status == STORE_OK ? answer_of(s, command, &place, changed) : failed(asked, &err);
}

/* Changes those of one shard that may be changed, in one transaction. An answer that is DONE before is none yet. */
static void run_shard(struct scheduler *s, struct asked *asked, uint8_t shard, const struct task_place *places,
                      bool *answered) {
  const struct task_commands *many = asked->many;
  uint64_t ids[COMMANDS_TOGETHER];
  size_t at[COMMANDS_TOGETHER], count = 0;
  bool changed[COMMANDS_TOGETHER] = {false};
  struct err err = {0};
  for (size_t i = 0; i < many->count; i++)
    if (!answered[i] && places[i].shard == shard) {
      at[count] = i;
      ids[count++] = places[i].id;
    }
  enum store_status status = change_rows(s, &many->each, shard, ids, count, many->filter, changed, &err);
  for (size_t i = 0; i < count; i++) {
    many->answers[at[i]] = status == STORE_OK     ? answer_of(s, &many->each, &places[at[i]], changed[i])
                           : status == STORE_BUSY ? COMMAND_LOCKED
                                                  : failed(asked, &err);
    answered[at[i]] = true;
  }
}

/* As many as there are, but for what is large: that is copied, and all routes wait for it. */
static enum command_answer run_many(struct scheduler *s, struct asked *asked) {
  const struct task_commands *many = asked->many;
  struct task_place places[COMMANDS_TOGETHER];
  bool answered[COMMANDS_TOGETHER] = {false};
  struct err err = {0};
  if (s->store->ops->locate(s->ss, many->ids, many->count, places, &err) != STORE_OK)
    return failed(asked, &err);
  uint64_t bytes = 0;
  for (size_t i = 0; i < many->count; i++) {
    bytes += places[i].bytes;
    many->answers[i] = i > 0 && bytes > COMMANDS_BYTES ? COMMAND_LEFT : judge(s, &many->each, &places[i]);
    answered[i] = many->answers[i] != COMMAND_DONE;
  }
  for (size_t i = 0; i < many->count; i++)
    if (!answered[i])
      run_shard(s, asked, places[i].shard, places, answered);
  return COMMAND_DONE;
}

static struct asked *take_asked(struct scheduler *s) {
  mutex_lock(&s->ask_lock);
  struct asked *asked = s->asked;
  if (asked)
    s->asked = asked->next;
  mutex_unlock(&s->ask_lock);
  return asked;
}

static void answer(struct scheduler *s, struct asked *asked, enum command_answer with) {
  mutex_lock(&s->ask_lock);
  asked->answer = with;
  asked->done = true;
  cond_broadcast(&s->answered);
  mutex_unlock(&s->ask_lock);
}

/* Some at a time: a few clients, each with its next command as soon as it is answered, would keep all routes waiting.
 */
void scheduler_run_commands(struct scheduler *s) {
  int64_t deadline = clock_mono_us() + COMMANDS_SLICE_US;
  struct asked *asked;
  while ((asked = take_asked(s))) {
    answer(s, asked, asked->many ? run_many(s, asked) : run_command(s, asked));
    if (clock_mono_us() >= deadline) {
      mailbox_poke(&s->in); /* for those that are left, when rows were read */
      return;
    }
  }
}

void scheduler_refuse_commands(struct scheduler *s) {
  struct asked *asked;
  struct err err;
  err_set(&err, 0, "the daemon is stopping or has no database; nothing was changed");
  while ((asked = take_asked(s)))
    answer(s, asked, failed(asked, &err));
}

/* Takes a command back that nobody has begun to run. True when it was still waiting. */
static bool withdraw(struct scheduler *s, struct asked *asked) {
  for (struct asked **at = &s->asked; *at; at = &(*at)->next)
    if (*at == asked) {
      *at = asked->next;
      return true;
    }
  return false;
}

static enum command_answer ask_once(struct scheduler *s, struct asked what, int64_t deadline, bool *busy,
                                    struct err *err) {
  struct asked asked = what;
  mutex_lock(&s->ask_lock);
  if (!s->accepts) {
    mutex_unlock(&s->ask_lock);
    err_set(err, 0, "the daemon is stopping; nothing was changed");
    return COMMAND_FAILED;
  }
  struct asked **end = &s->asked;
  while (*end)
    end = &(*end)->next;
  *end = &asked;
  mailbox_poke(&s->in);
  bool withdrawn = false;
  while (!asked.done && !withdrawn)
    if (!cond_wait_until(&s->answered, &s->ask_lock, deadline) && !asked.done) {
      withdrawn = withdraw(s, &asked);
      if (!withdrawn) { /* it runs now: its statement has time-outs of its own */
        while (!asked.done)
          cond_wait(&s->answered, &s->ask_lock);
      }
    }
  mutex_unlock(&s->ask_lock);
  if (withdrawn) {
    err_set(err, 0, "the database was busy for too long; nothing was changed");
    return COMMAND_FAILED;
  }
  *err = asked.err;
  *busy = asked.busy;
  return asked.answer;
}

enum command_answer scheduler_ask(struct scheduler *s, const struct task_command *command, int64_t timeout_ms,
                                  struct err *err) {
  int64_t began = clock_mono_us(), deadline = began + timeout_ms * 1000;
  int64_t last = began + BUSY_FOR_US < deadline ? began + BUSY_FOR_US : deadline;
  for (int64_t pause = BUSY_MIN_US;; pause = 2 * pause < BUSY_MAX_US ? 2 * pause : BUSY_MAX_US) {
    bool busy = false;
    enum command_answer answer = ask_once(s, (struct asked){.command = command}, deadline, &busy, err);
    if (answer != COMMAND_FAILED || !busy || clock_mono_us() + pause > last)
      return answer == COMMAND_FAILED && busy ? COMMAND_LOCKED : answer;
    thread_sleep(pause);
  }
}

bool scheduler_ask_many(struct scheduler *s, const struct task_commands *commands, int64_t timeout_ms,
                        struct err *err) {
  bool busy;
  struct asked asked = {.many = commands};
  return ask_once(s, asked, clock_mono_us() + timeout_ms * 1000, &busy, err) == COMMAND_DONE;
}
