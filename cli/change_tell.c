/* SPDX-License-Identifier: MIT
 *
 * cli/change_tell.c - what a command that changes tasks says of them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/change_internal.h"
#include "cli/text.h"

static const char *outcome_word(const struct change_run *run, enum change_outcome outcome) {
  static const char *const words[] = {
      [CHANGE_NOT_FOUND] = "not_found", [CHANGE_STATE] = "state",       [CHANGE_EXPIRES] = "expires",
      [CHANGE_IN_FLIGHT] = "in_flight", [CHANGE_CONFLICT] = "conflict", [CHANGE_REFUSED] = "refused",
      [CHANGE_LOCKED] = "locked",       [CHANGE_HELD] = "unavailable",  [CHANGE_OUTCOMES] = "unavailable"};
  return outcome == CHANGE_DONE ? run->rule->done : words[outcome];
}

/* Behind a change: that it does not undo what has left. */
static const char *sent_note(const struct task_target *target) {
  if (!target->maybe_sent)
    return "";
  return target->state == TASK_AWAITING ? " (it was sent, and its result was awaited)"
                                        : " (it may have been sent before)";
}

/* In which way a task is in flight for this verb. */
static const char *flight_note(const struct change_run *run, const struct task_target *target) {
  if (target->state == TASK_SCHEDULED && run->rule->verb == CHANGE_RETRY)
    return "is due already: it goes as soon as a daemon reads its route, or is on its way out";
  if (target->claim_lost)
    return "claimed by a daemon that is gone: try again when another one has taken it back";
  if (target->state == TASK_AWAITING)
    return "was sent, and awaits its result: too late, or try again when the attempt is over";
  return "on its way out: too late, or try again when the attempt is over";
}

/* What a person needs to know about one task. */
static void explain(const struct change_run *run, const struct task_target *target, char *out, size_t cap) {
  bool ended = target->state < TASK_STATES && !task_state_living(target->state);
  switch (target->outcome) {
  case CHANGE_DONE:
    snprintf(out, cap, "%s%s", run->rule->done,
             target->moves      ? " (a daemon takes it to its host, unless it is on its way out)"
             : target->other_id ? " (its row has another id now: look for it by its message id)"
                                : sent_note(target));
    break;
  case CHANGE_NOT_FOUND:
    snprintf(out, cap, target->state == TASK_STATES ? "not found" : "has moved on, or was deleted, just now");
    break;
  case CHANGE_STATE:
    if (!ended && run->rule->allowed == STATE_BIT(TASK_DEAD))
      snprintf(out, cap,
               "is a living task: %s (a dead one with the same id goes by its other one: id:N or message_id:M of `dead "
               "list`)",
               task_state_text(target->state));
    else
      snprintf(out, cap, ended ? "has ended already: %s" : "its state does not allow it: %s",
               task_state_text(target->state));
    break;
  case CHANGE_EXPIRES:
    snprintf(out, cap, "would never be sent: its expires_at would not be later than it is due");
    break;
  case CHANGE_IN_FLIGHT:
    snprintf(out, cap, "%s", flight_note(run, target));
    break;
  case CHANGE_CONFLICT:
    snprintf(out, cap, "another living task has its message id or dedup key");
    break;
  case CHANGE_REFUSED:
    if (target->refused[0])
      snprintf(out, cap, "the server refuses it: %s", target->refused);
    else
      snprintf(out, cap,
               "its row has values that the table does not allow (`duebox task show`): correct it with "
               "UPDATE, or remove it with DELETE");
    break;
  case CHANGE_LOCKED:
    snprintf(out, cap, "another transaction holds its row: not changed, try again");
    break;
  case CHANGE_HELD:
  case CHANGE_OUTCOMES:
    snprintf(out, cap, "not changed");
    break;
  }
}

/* What was typed may come from a script that read it elsewhere: shown as all foreign text is. */
static void print_id(const char *id, const char *between, const char *text) {
  char *safe = text_safe(id, strlen(id), TEXT_ONE_LINE);
  printf("%s%s%s\n", safe ? safe : "?", between, text);
  free(safe);
}

void tell_one(struct change_run *run, const char *id, const struct task_target *target) {
  char text[OPERATOR_REFUSED_MAX + 64];
  explain(run, target, text, sizeof text);
  if (run->cli->output.format == OUTPUT_TEXT) {
    print_id(id, "  ", text);
    return;
  }
  json_t *task =
      json_pack("{s:o, s:s}", "id", output_string(id, strlen(id)), "outcome", outcome_word(run, target->outcome));
  if (target->outcome != CHANGE_DONE)
    json_object_set_new(task, "detail", json_string(text));
  if (target->outcome == CHANGE_DONE && target->maybe_sent)
    json_object_set_new(task, "maybe_sent", json_true());
  if (target->outcome == CHANGE_DONE && target->moves)
    json_object_set_new(task, "moves", json_true());
  if (target->outcome == CHANGE_DONE && target->other_id)
    json_object_set_new(task, "other_id", json_true());
  json_array_append_new(run->tasks, task);
}

void tell_dry(struct change_run *run, const char *id, const struct task_target *target) {
  const bool note = target->outcome == CHANGE_DONE && target->maybe_sent;
  char text[128];
  snprintf(text, sizeof text, "%s%s", task_state_text(target->state), note ? sent_note(target) : "");
  if (run->cli->output.format == OUTPUT_TEXT) {
    print_id(id, "  is ", text);
    return;
  }
  json_t *task = json_pack("{s:o, s:s}", "id", output_string(id, strlen(id)), "state", task_state_text(target->state));
  if (note)
    json_object_set_new(task, "maybe_sent", json_true());
  json_array_append_new(run->tasks, task);
}

static bool on_terminal(const struct change_run *run) { return isatty(STDERR_FILENO) && !run->cli->output.quiet; }

void tell_progress(const struct change_run *run) {
  if (!run->tasks && on_terminal(run))
    fprintf(stderr, "\r%llu of %llu", (unsigned long long)run->seen, (unsigned long long)run->goal);
}

/* What became of those that were matched and not changed, and what is known of those that were. */
static void tell_rest(const struct change_run *run) {
  static const char *const why[] = {[CHANGE_NOT_FOUND] = "had moved on meanwhile",
                                    [CHANGE_STATE] = "were in a state that does not allow it",
                                    [CHANGE_EXPIRES] = "would expire before they are due, and never be sent",
                                    [CHANGE_IN_FLIGHT] = "were on their way out",
                                    [CHANGE_CONFLICT] = "collide with a living task",
                                    [CHANGE_REFUSED] = "are refused by the server, perhaps for their values",
                                    [CHANGE_LOCKED] = "are held by another transaction"};
  for (int i = CHANGE_NOT_FOUND; i <= CHANGE_LOCKED; i++)
    if (run->outcomes[i])
      printf("; %llu %s%s", (unsigned long long)run->outcomes[i], why[i],
             i == CHANGE_IN_FLIGHT && run->rule->verb != CHANGE_CANCEL ? " or awaited their result" : "");
  if (run->refused[0])
    printf("; the server said: %s", run->refused);
  if (run->maybe_sent)
    printf("; %llu may have been sent before", (unsigned long long)run->maybe_sent);
}

static void tell_total(const struct change_run *run) {
  if (on_terminal(run))
    fputs("\r\033[K", stderr);
  printf("%llu of %llu tasks %s", (unsigned long long)run->outcomes[CHANGE_DONE], (unsigned long long)run->goal,
         run->rule->done);
  tell_rest(run);
  if (run->moves)
    printf("; %llu are taken to their host by a daemon, unless they are on their way out",
           (unsigned long long)run->moves);
  if (run->audit.first)
    printf(run->audit.first == run->audit.last ? " (audit %llu)" : " (audit %llu to %llu)",
           (unsigned long long)run->audit.first, (unsigned long long)run->audit.last);
  puts("");
}

static void tell_foreseen(const struct change_run *run) {
  uint64_t would = run->outcomes[CHANGE_DONE];
  printf("%llu", (unsigned long long)would);
  if (would < run->goal)
    printf(" of %llu", (unsigned long long)run->goal);
  printf(" tasks would be %s (%s)", run->rule->done, run->selection.words);
  tell_rest(run);
  puts("");
}

static json_t *id_json(uint64_t id) { return id ? json_sprintf("%llu", (unsigned long long)id) : json_null(); }

static void tell_json(const struct change_run *run, bool dry_run) {
  json_t *object = json_pack("{s:s, s:b, s:I, s:I}", "verb", run->args->command->verb, "dry_run", dry_run, "matched",
                             (json_int_t)run->goal, "changed", dry_run ? 0 : (json_int_t)run->outcomes[CHANGE_DONE]);
  for (int i = CHANGE_NOT_FOUND; i <= CHANGE_LOCKED; i++)
    json_object_set_new(object, outcome_word(run, (enum change_outcome)i), json_integer((json_int_t)run->outcomes[i]));
  json_object_set_new(object, "refusal", run->refused[0] ? json_string(run->refused) : json_null());
  json_object_set_new(object, "maybe_sent", json_integer((json_int_t)run->maybe_sent));
  if (run->order->verb == CHANGE_SET)
    json_object_set_new(object, "moves", json_integer((json_int_t)run->moves));
  json_object_set_new(object, "audit_first", id_json(run->audit.first));
  json_object_set_new(object, "audit_last", id_json(run->audit.last));
  if (run->tasks)
    json_object_set(object, "tasks", run->tasks);
  output_json(&run->cli->output, object);
  json_decref(object);
}

void tell_whole(const struct change_run *run, bool dry_run) {
  if (run->cli->output.format != OUTPUT_TEXT)
    tell_json(run, dry_run);
  else if (!run->tasks && dry_run)
    tell_foreseen(run);
  else if (!run->tasks)
    tell_total(run);
}
