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
  BUSY_FOR_US = 2000 * 1000,    /* who asks for one tries so long where somebody holds a lock: most go soon */
  BUSY_MIN_US = 20 * 1000,
  BUSY_MAX_US = 320 * 1000,
  LOCKS_US = 20 * 1000, /* what one request may lose to locks, and one statement beyond it; nothing else is read then */
  LOCKS_REST = 3,       /* times as long as that took no command of any request waits for a lock */
};

static const char locked_text[] =
    "another transaction holds the row; try again, or look for it in information_schema.INNODB_TRX";

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
  if (place->ambiguous)
    return COMMAND_AMBIGUOUS;
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
                                     const struct task_place *place, enum intervened became) {
  bool changed = became == INTERVENED_DONE;
  if (changed && command->verb == INTERVENE_RESCHEDULE)
    scheduler_look_soon(s);
  if (changed && command->verb == INTERVENE_CANCEL)
    count_cancelled(s, place->route);
  if (changed)
    return place->maybe_sent ? COMMAND_DONE_MAYBE_SENT : COMMAND_DONE;
  if (became == INTERVENED_LOCKED)
    return COMMAND_LOCKED;
  /* A copy is out, though not from here: what holds for one in flight holds for it. */
  return place->state == TASK_CLAIMED || place->state == TASK_AWAITING ? COMMAND_IN_FLIGHT : COMMAND_STATE;
}

/* STORE_BUSY: what is written beside the rows is locked. On MariaDB that is found at once, on MySQL in a second;
 * *lost_us counts the time. Where a request has lost its part, the next ones are answered without the server for a
 * while. */
static enum store_status change_rows(struct scheduler *s, const struct task_command *command, uint8_t shard,
                                     const uint64_t *ids, size_t count, const char *filter, int64_t *lost_us,
                                     enum intervened *became, struct err *err) {
  int64_t began = clock_mono_us();
  if (*lost_us >= LOCKS_US || began < s->locks_after_us)
    return STORE_BUSY;
  struct shard_lease lease = {.shard = shard, .epoch = s->view[shard].epoch, .owner = s->instance};
  int64_t keep_us = s->config->config->engine.dead_retention_ms * 1000;
  enum store_status status = s->store->ops->intervene(s->ss, &lease, command->verb, ids, count, command->due_us,
                                                      command->actor, filter, command->reason, keep_us, became, err);
  int64_t now = clock_mono_us();
  *lost_us += status == STORE_BUSY ? now - began : 0;
  if (status == STORE_BUSY && *lost_us >= LOCKS_US)
    s->locks_after_us = now + LOCKS_REST * *lost_us;
  return status;
}

static enum command_answer run_command(struct scheduler *s, struct asked *asked) {
  const struct task_command *command = asked->command;
  struct task_place place = {0};
  struct err err = {0};
  enum intervened became = INTERVENED_NOT;
  int64_t lost_us = 0;
  if (s->store->ops->locate(s->ss, &command->id, 1, &place, &err) != STORE_OK)
    return failed(asked, &err);
  enum command_answer known = judge(s, command, &place);
  if (known == COMMAND_STATE)
    err_set(&asked->err, 0, "%s",
            place.misfit ? "its shard or its state is none: correct its row with UPDATE, or DELETE it"
                         : "it would never be sent: its expires_at is not later than that");
  if (known != COMMAND_DONE)
    return known;
  enum store_status status =
      change_rows(s, command, place.shard, &place.id, 1, named_by(command), &lost_us, &became, &err);
  enum command_answer answer = status == STORE_OK     ? answer_of(s, command, &place, became)
                               : status == STORE_BUSY ? COMMAND_LOCKED
                                                      : failed(asked, &err);
  if (answer == COMMAND_LOCKED)
    err_set(&asked->err, 0, "%s", err.text[0] ? err.text : locked_text);
  return answer;
}

/* Some of a request, of one shard. */
struct some {
  uint64_t ids[COMMANDS_TOGETHER];
  size_t at[COMMANDS_TOGETHER], count; /* their places in the request */
  const struct task_place *places;
  int64_t *lost_us; /* to locks, by the whole request */
};

/* Changes those from first on in one transaction; by halves where what is written beside one of them is locked. */
static void change_some(struct scheduler *s, struct asked *asked, const struct some *some, size_t first, size_t count) {
  const struct task_commands *many = asked->many;
  enum intervened became[COMMANDS_TOGETHER] = {INTERVENED_NOT};
  struct err err = {0};
  enum store_status status = change_rows(s, &many->each, some->places[some->at[first]].shard, some->ids + first, count,
                                         many->filter, some->lost_us, became, &err);
  if (status == STORE_BUSY && count > 1 && *some->lost_us < LOCKS_US && clock_mono_us() >= s->locks_after_us) {
    change_some(s, asked, some, first, count / 2);
    change_some(s, asked, some, first + count / 2, count - count / 2);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    size_t at = some->at[first + i];
    many->answers[at] = status == STORE_OK     ? answer_of(s, &many->each, &some->places[at], became[i])
                        : status == STORE_BUSY ? COMMAND_LOCKED
                                               : failed(asked, &err);
  }
}

/* Changes those of one shard that may be changed. An answer that is DONE before is none yet. */
static void run_shard(struct scheduler *s, struct asked *asked, uint8_t shard, const struct task_place *places,
                      int64_t *lost_us, bool *answered) {
  struct some some = {.places = places, .lost_us = lost_us};
  for (size_t i = 0; i < asked->many->count; i++)
    if (!answered[i] && places[i].shard == shard) {
      some.at[some.count] = i;
      some.ids[some.count++] = places[i].id;
      answered[i] = true;
    }
  change_some(s, asked, &some, 0, some.count);
}

/* As many as there are, but for what is large: that is copied, and all routes wait for it. */
static enum command_answer run_many(struct scheduler *s, struct asked *asked) {
  const struct task_commands *many = asked->many;
  struct task_place places[COMMANDS_TOGETHER];
  bool answered[COMMANDS_TOGETHER] = {false};
  int64_t lost_us = 0;
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
      run_shard(s, asked, places[i].shard, places, &lost_us, answered);
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

static enum command_answer ask_once(struct scheduler *s, struct asked what, int64_t deadline, struct err *err) {
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
  return asked.answer;
}

enum command_answer scheduler_ask(struct scheduler *s, const struct task_command *command, int64_t timeout_ms,
                                  struct err *err) {
  int64_t began = clock_mono_us(), deadline = began + timeout_ms * 1000;
  int64_t last = began + BUSY_FOR_US < deadline ? began + BUSY_FOR_US : deadline;
  for (int64_t pause = BUSY_MIN_US;; pause = 2 * pause < BUSY_MAX_US ? 2 * pause : BUSY_MAX_US) {
    enum command_answer answer = ask_once(s, (struct asked){.command = command}, deadline, err);
    if (answer != COMMAND_LOCKED || clock_mono_us() + pause > last)
      return answer;
    thread_sleep(pause);
  }
}

bool scheduler_ask_many(struct scheduler *s, const struct task_commands *commands, int64_t timeout_ms,
                        struct err *err) {
  struct asked asked = {.many = commands};
  return ask_once(s, asked, clock_mono_us() + timeout_ms * 1000, err) == COMMAND_DONE;
}
