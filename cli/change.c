/* SPDX-License-Identifier: MIT */
#include "cli/change.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cli/change_internal.h"
#include "cli/interrupt.h"
#include "core/base/clock.h"

/* --- changing --- */

static void note(struct change_run *run, const struct task_target *target) {
  if (target->outcome < CHANGE_OUTCOMES)
    run->outcomes[target->outcome]++;
  run->maybe_sent += target->outcome == CHANGE_DONE && target->maybe_sent;
  run->moves += target->outcome == CHANGE_DONE && target->moves;
  if (target->outcome == CHANGE_DONE)
    run->refusals = 0;
  if (target->outcome == CHANGE_REFUSED && target->refused[0]) {
    run->refusals++;
    memcpy(run->refused, target->refused, sizeof run->refused);
  }
}

/* Each that the server refuses takes a transaction of its own to find out. Where that many are, one after the other,
 * it is about all of them, and a hundred thousand would take minutes to say no more. */
static void stop_refused(struct change_run *run) {
  enum { REFUSALS = 1000 };
  if (run->stopped || run->refusals < REFUSALS || run->seen >= run->goal)
    return;
  run->stopped = true;
  err_set(&run->err, EX_DATAERR,
          "the server refused %llu tasks one after the other, and %llu others were not tried; the last time it said: "
          "%s",
          (unsigned long long)run->refusals, (unsigned long long)(run->goal - run->seen), run->refused);
}

/* Stops the run with what the database said. */
static void stop_store(struct change_run *run, enum store_status status, const struct err *err) {
  run->stopped = true;
  err_set(&run->err, cli_store_code(status, err), "%s", cli_store_text(err));
}

/* Changes the targets; stops the run where it cannot go on. A target without a certain outcome has CHANGE_OUTCOMES. */
static void change_step(struct change_run *run, struct task_target *targets, size_t count) {
  struct err err = {0};
  struct audit_span audit = {0};
  if (run->intervener && !intervene(run->intervener, run->order, targets, count, &audit, &err)) {
    run->stopped = true;
    run->err = err;
  }
  if (!run->intervener) {
    for (size_t i = 0; i < count; i++)
      targets[i].outcome = CHANGE_OUTCOMES;
    enum store_status status = run->op->ops->change(run->op->self, run->order, targets, count, &audit, &err);
    if (status != STORE_OK)
      stop_store(run, status, &err);
  }
  for (size_t i = 0; i < count; i++)
    note(run, &targets[i]);
  run->seen += count;
  audit_span_add(&run->audit, audit);
  stop_refused(run);
  tell_progress(run);
}

static void may_be_interrupted(struct change_run *run) {
  interrupt_catch();
  run->cli->interruptible = true;
}

/* Ends the run between two steps where a signal has asked for that and something is left to do. */
static bool obeys(struct change_run *run) {
  if (!run->stopped && run->seen < run->goal && interrupt_caught()) {
    run->stopped = true;
    interrupt_say(&run->err);
  }
  return run->stopped;
}

/* Waits until as many as have been done were allowed, or a signal comes. */
static void keep_pace(struct change_run *run) {
  if (obeys(run) || run->rate <= 0)
    return;
  int64_t wait_us = run->started_us + (int64_t)((double)run->seen / run->rate * 1e6) - clock_mono_us();
  if (wait_us <= 0)
    return;
  struct timespec pause = {.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
  nanosleep(&pause, NULL);
  (void)obeys(run);
}

/* Small steps where a rate is asked for, so that the pace is even. */
static size_t step_size(const struct change_run *run) {
  uint64_t left = run->goal - run->seen, step = CHANGE_CHUNK;
  if (run->rate > 0 && run->rate / 4 < CHANGE_CHUNK)
    step = run->rate >= 4 ? (uint64_t)(run->rate / 4) : 1;
  return (size_t)(left < step ? left : step);
}

/* Says of the targets what would become of them. */
static void foresee_step(struct change_run *run, struct task_target *targets, size_t count) {
  for (size_t i = 0; i < count; i++) {
    targets[i].outcome = run->op->ops->judge(run->order, &targets[i]);
    targets[i].maybe_sent = targets[i].maybe_sent && run->intervener;
    note(run, &targets[i]);
  }
  run->seen += count;
}

/* What is to be kept from leaving, from the newest on: the oldest are mostly due first, and leave while we are at it.
 */
static enum target_order order_of(const struct change_run *run) {
  bool hurries = run->order->verb == CHANGE_CANCEL || run->order->verb == CHANGE_RESCHEDULE;
  return hurries && !run->limit ? NEWEST_FIRST : OLDEST_FIRST;
}

static void change_table(struct change_run *run, bool living, bool dry_run) {
  struct task_target *targets = calloc(CHANGE_CHUNK, sizeof *targets);
  if (!targets) {
    err_set(&run->err, EX_OSERR, "out of memory");
    run->stopped = true;
  }
  struct task_target last;
  const struct task_target *behind = NULL;
  for (size_t count = 1, want; !run->stopped && count > 0 && (want = step_size(run)) > 0;) {
    struct err err = {0};
    enum store_status status = run->op->ops->targets(run->op->self, &run->selection.filter, living, order_of(run),
                                                     behind, targets, want, &count, &err);
    if (status != STORE_OK) {
      stop_store(run, status, &err);
    } else if (count > 0) {
      last = targets[count - 1];
      behind = &last;
      if (dry_run) {
        foresee_step(run, targets, count);
      } else {
        change_step(run, targets, count);
        keep_pace(run);
      }
    }
  }
  free(targets);
}

/* --- by ids --- */

/* Whether the verb has no business with a task in this state, named by its id. Living states are judged by the database
 * side, which knows what each means at that moment. */
static bool is_excluded(const struct change_rule *rule, enum task_state state) {
  return !(rule->allowed & STATE_BIT(state)) && !(task_state_living(state) && rule->allowed & STATES_LIVING);
}

/* The task that an id names. A message id may have been used again: a task of it that ended otherwise hides no dead one
 * from who would retry that. */
static enum store_status find_target(const struct change_run *run, const char *id, struct task_target *target,
                                     bool *found, struct err *err) {
  const struct operator_ops *ops = run->op->ops;
  uint32_t ended = run->rule->states & STATES_FINAL;
  struct task_target other;
  bool has_other = false;
  enum store_status status = ops->find(run->op->self, id, 0, target, found, err);
  if (status != STORE_OK || !*found || !ended || task_state_living(target->state) ||
      !is_excluded(run->rule, target->state))
    return status;
  status = ops->find(run->op->self, id, ended, &other, &has_other, err);
  if (has_other)
    *target = other;
  return status;
}

/* The one of count targets that is this task, which its row id and its message id both name; NULL if none is. */
static struct task_target *same_task(struct task_target *targets, size_t count, const struct task_target *task) {
  for (size_t i = 0; i < count; i++)
    if (targets[i].id == task->id && strcmp(targets[i].message_id, task->message_id) == 0)
      return &targets[i];
  return NULL;
}

/* The tasks that ids name. */
struct named {
  struct task_target *known;  /* each once, in the order in which they were named */
  struct task_target **of;    /* by place of the id */
  struct task_target *chosen; /* of a step: those that are to be changed */
  size_t count;               /* known */
};

static bool named_new(struct named *named, size_t ids) {
  *named = (struct named){.known = calloc(ids, sizeof *named->known),
                          .of = calloc(ids, sizeof *named->of),
                          .chosen = calloc(CHANGE_CHUNK, sizeof *named->chosen)};
  return named->known && named->of && named->chosen;
}

static void named_free(struct named *named) {
  free(named->known);
  free(named->of);
  free(named->chosen);
}

/* Finds the task of an id. One that an id before it has named is counted, and changed, once. */
static enum store_status name_one(struct change_run *run, struct named *named, size_t at, struct err *err) {
  struct task_target *target = &named->known[named->count];
  const char *id = run->selection.filter.ids[at];
  bool found = false;
  *target = (struct task_target){.state = TASK_STATES};
  enum store_status status = find_target(run, id, target, &found, err);
  if (status != STORE_OK)
    return status;
  struct task_target *before = found ? same_task(named->known, named->count, target) : NULL;
  target->outcome = !found ? CHANGE_NOT_FOUND : is_excluded(run->rule, target->state) ? CHANGE_STATE : CHANGE_OUTCOMES;
  named->of[at] = before ? before : target;
  named->count += !before;
  run->goal -= before != NULL;
  run->unknown += !found;
  return status;
}

/* Changes those that are known from `from` on, as far as they may be, or says what would become of them. */
static void change_known(struct change_run *run, bool dry_run, struct named *named, size_t from) {
  size_t count = 0;
  for (size_t i = from; i < named->count; i++)
    if (named->known[i].outcome == CHANGE_OUTCOMES)
      named->chosen[count++] = named->known[i];
    else
      note(run, &named->known[i]);
  run->seen += named->count - from - count;
  if (count > 0 && dry_run)
    foresee_step(run, named->chosen, count);
  else if (count > 0 && !obeys(run))
    change_step(run, named->chosen, count);
  for (size_t i = named->count; count > 0; i--)
    if (named->known[i - 1].outcome == CHANGE_OUTCOMES)
      named->known[i - 1] = named->chosen[--count];
}

static void tell_named(struct change_run *run, bool dry_run, const char *id, const struct task_target *target) {
  if (dry_run && target->outcome != CHANGE_NOT_FOUND)
    tell_dry(run, id, target);
  else if (!run->stopped || target->outcome != CHANGE_OUTCOMES)
    tell_one(run, id, target);
}

/* Daemons are asked for many tasks at once; what else is changed goes one by one, so that each answer stands by itself.
 * What cannot be found ends the run behind what was named before it. */
static void change_each(struct change_run *run, bool dry_run, struct named *named) {
  size_t ids = run->selection.filter.id_count;
  for (size_t at = 0; at < ids && !run->stopped;) {
    size_t first = at, from = named->count, step = run->intervener ? step_size(run) : 1;
    enum store_status status = STORE_OK;
    struct err err = {0};
    do
      status = name_one(run, named, at, &err);
    while (status == STORE_OK && ++at < ids && at - first < step && !interrupt_caught());
    change_known(run, dry_run, named, from);
    for (size_t i = first; i < at; i++)
      tell_named(run, dry_run, run->selection.filter.ids[i], named->of[i]);
    if (status != STORE_OK && !run->stopped)
      stop_store(run, status, &err);
    if (!dry_run)
      keep_pace(run);
  }
}

static void change_ids(struct change_run *run, bool dry_run) {
  struct named named;
  run->tasks = json_array();
  run->goal = run->selection.filter.id_count;
  if (named_new(&named, run->goal)) {
    change_each(run, dry_run, &named);
  } else {
    err_set(&run->err, EX_OSERR, "out of memory");
    run->stopped = true;
  }
  named_free(&named);
}

/* --- by filter --- */

/* y or yes. Anything else may be a word of somebody who hesitates. */
static bool is_yes(char *answer) {
  answer[strcspn(answer, "\r\n")] = '\0';
  return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* Asks on a terminal; elsewhere --yes is the answer. */
static int confirm(const struct change_run *run) {
  char answer[16];
  if (args_has(run->args, OPT_YES))
    return EX_OK;
  if (!isatty(STDIN_FILENO))
    return cli_fail(EX_USAGE, "%llu tasks would be %s (%s); give --yes to do it, or --dry-run",
                    (unsigned long long)run->goal, run->rule->done, run->selection.words);
  fprintf(stderr, "%llu tasks will be %s (%s). Go on? [y/N] ", (unsigned long long)run->goal, run->rule->done,
          run->selection.words);
  if (fgets(answer, sizeof answer, stdin) && is_yes(answer))
    return EX_OK;
  return cli_fail(EX_TEMPFAIL, "nothing was changed");
}

/* What daemons did has an audit row of theirs for each task. This one says which command they belong to; it counts no
 * task, or a sum over the rows would count each of them twice. */
static void audit_whole(struct change_run *run) {
  uint64_t id, asked = run->intervener ? intervener_asked(run->intervener) : 0;
  struct task_change whole = *run->order;
  char filter[1024];
  struct err err;
  if (asked == 0)
    return;
  snprintf(filter, sizeof filter, "%s (%llu by daemons, in rows of their own)", run->order->filter,
           (unsigned long long)asked);
  whole.filter = filter;
  if (run->op->ops->audit(run->op->self, &whole, 0, &id, &err) != STORE_OK) {
    cli_remark(run->cli, "no audit row was left for the command as a whole: %s", err.text);
    return;
  }
  audit_span_add(&run->audit, (struct audit_span){id, id});
}

static int change_filtered(struct change_run *run, bool dry_run) {
  struct err err = {0};
  enum store_status status = run->op->ops->count(run->op->self, &run->selection.filter, run->limit, &run->goal, &err);
  if (status != STORE_OK)
    return select_fail(status, &run->selection, &err);
  int code = dry_run || run->goal == 0 ? EX_OK : confirm(run);
  if (run->goal == 0 || code)
    return code;
  may_be_interrupted(run); /* before, nothing was changed */
  change_table(run, true, dry_run);
  change_table(run, false, dry_run);
  if (!run->stopped && run->seen < run->goal) /* counted, and no longer selected */
    run->outcomes[CHANGE_NOT_FOUND] += run->goal - run->seen;
  audit_whole(run);
  return EX_OK;
}

/* --- the command --- */

/* What the line says, and whether it makes sense; needs no database. */
static bool read_line(struct change_run *run, struct err *err) {
  const struct args *args = run->args;
  const struct change_rule *rule = run->rule;
  struct task_filter *filter = &run->selection.filter;
  const char *noun = args->command->noun, *verb = args->command->verb;
  int64_t limit = 0;
  if (!select_read(args, rule->verb != CHANGE_SET, &run->selection, err) ||
      !args_int(args, OPT_LIMIT, 1, INT64_MAX, &limit, err) || !args_rate(args, OPT_RATE, &run->rate, err))
    return false;
  run->limit = (uint64_t)limit;
  if (run->selection.by_ids && limit)
    return err_set(err, EX_USAGE, "give ids or --limit, not both: --limit is for filters");
  if (run->selection.by_ids)
    return true;
  if (!run->selection.filtered)
    return err_set(err, EX_USAGE, "%s %s: which tasks? Give ids or filters%s", noun, verb,
                   command_takes(args->command, OPT_STATE) ? "; --state with a state stands for all in it" : "");
  if (!run->selection.states_given)
    filter->states = rule->states;
  else if (filter->states & ~rule->allowed)
    return err_set(err, EX_USAGE, "%s %s: --state names a state in which a task cannot be %s", noun, verb, rule->done);
  filter->failed = rule->failed_only && (filter->states & STATES_LIVING);
  return true;
}

/* Who, why and which, for the audit row. */
static void fill_order(struct change_run *run, const struct config *config, char *actor, size_t cap) {
  enum { ACTOR_MAX = 64 };
  const char *reason = args_text(run->args, OPT_REASON);
  cli_actor(actor, cap < ACTOR_MAX + 1 ? cap : ACTOR_MAX + 1);
  run->order->verb = run->rule->verb;
  run->order->actor = actor;
  run->order->reason = reason ? reason : "";
  run->order->filter = run->selection.words;
  run->order->keep_us = config->engine.dead_retention_ms * 1000;
}

/* The worst of what happened. Success says that every task that was named, or that the filter matched, is changed: for
 * whoever asked it is all one why one is not. What may have left before is no failure of the change, and is said with
 * it. */
static int exit_code(const struct change_run *run, bool dry_run) {
  if (run->stopped)
    return cli_fail_err(&run->err);
  if (!dry_run && (run->outcomes[CHANGE_IN_FLIGHT] || run->outcomes[CHANGE_LOCKED]))
    return EX_TEMPFAIL;
  if (!dry_run && (run->outcomes[CHANGE_CONFLICT] || run->outcomes[CHANGE_STATE] || run->outcomes[CHANGE_EXPIRES] ||
                   run->outcomes[CHANGE_REFUSED] || run->outcomes[CHANGE_NOT_FOUND] > run->unknown))
    return EX_DATAERR;
  return run->unknown ? EX_NOINPUT : EX_OK;
}

int change_check_line(const struct args *args, const struct change_rule *rule) {
  struct change_run run = {.args = args, .rule = rule};
  struct err err = {0};
  return read_line(&run, &err) ? EX_OK : cli_fail_err(&err);
}

int change_tasks(struct cli *cli, const struct args *args, const struct change_rule *rule, struct task_change *order) {
  struct change_run run = {.cli = cli, .args = args, .rule = rule, .order = order, .started_us = clock_mono_us()};
  const struct config *config;
  struct err err = {0};
  char actor[128];
  bool dry_run = args_has(args, OPT_DRY_RUN), asks = rule->verb == CHANGE_CANCEL || rule->verb == CHANGE_RESCHEDULE;
  if (!read_line(&run, &err))
    return cli_fail_err(&err);
  int code = cli_config(cli, &config);
  if (code || (code = select_open(cli, &run.selection, &run.op)))
    return code;
  fill_order(&run, config, actor, sizeof actor);
  if (asks && !intervener_new(run.op, &config->admin, &run.intervener, &err))
    return cli_fail_err(&err);

  if (run.selection.by_ids) {
    may_be_interrupted(&run);
    change_ids(&run, dry_run);
  } else {
    code = change_filtered(&run, dry_run);
  }
  if (code == EX_OK) {
    tell_whole(&run, dry_run);
    code = exit_code(&run, dry_run);
  }
  json_decref(run.tasks);
  intervener_free(&run.intervener);
  return code;
}
