/* SPDX-License-Identifier: MIT
 *
 * admin/tasks.c - commands for tasks, one or some together: cancel, reschedule.
 *
 * They go to the thread that reads rows (engine_command), which closes the gap that plain SQL leaves on routes with
 * claims in memory.
 */
#include <string.h>

#include "admin/body.h"
#include "admin/look.h"
#include "admin/problem.h"
#include "core/task_time.h"

/* Nobody means a delay beyond this. */
#define DELAY_MAX_MS (100LL * 366 * 24 * 3600 * 1000)

static void respond_done(struct response *response, const struct task_command *command, bool maybe_sent) {
  json_t *body = json_pack("{so ss sb}", "id", json_any(command->id), "state",
                           command->verb == INTERVENE_CANCEL ? "cancelled" : "scheduled", "maybe_sent", maybe_sent);
  if (body && command->verb == INTERVENE_RESCHEDULE)
    json_object_set_new(body, "due_at", json_time(command->due_us));
  respond_json(response, 200, body);
}

static void respond_answer(struct response *response, enum command_answer answer, const struct task_command *command,
                           const struct err *err) {
  const char *why = err->text[0] ? err->text : NULL;
  switch (answer) {
  case COMMAND_DONE:
  case COMMAND_DONE_MAYBE_SENT:
    respond_done(response, command, answer == COMMAND_DONE_MAYBE_SENT);
    break;
  case COMMAND_NOT_FOUND:
    respond_problem(response, PROBLEM_NOT_FOUND, "%s",
                    why ? why : "no living task has this id; if it has ended, it is in outbox_history");
    break;
  case COMMAND_AMBIGUOUS:
    respond_problem(response, PROBLEM_AMBIGUOUS,
                    "a living task has this text as its message id; put message_id: in front of the message id of the "
                    "one that is meant");
    break;
  case COMMAND_IN_FLIGHT:
    respond_problem(response, PROBLEM_IN_FLIGHT, "%s",
                    why ? why
                        : "it was handed to its destination already and cannot be called back; when this attempt is "
                          "over, try again");
    break;
  case COMMAND_STATE:
    respond_problem(response, PROBLEM_STATE, "%s", why ? why : "its state does not allow this");
    break;
  case COMMAND_ELSEWHERE:
    respond_problem(response, PROBLEM_ELSEWHERE, "%s",
                    why ? why : "this instance does not hold its shard; outbox_shards says which one does, if any");
    break;
  case COMMAND_LOCKED:
    respond_problem(response, PROBLEM_LOCKED, "%s", why ? why : "nothing was changed; try again");
    break;
  case COMMAND_LEFT: /* of many only */
  case COMMAND_FAILED:
    respond_problem(response, problem_of_database(err), "%s",
                    why ? why : "nothing was changed as far as is known; try again");
    break;
  }
}

static void run(struct admin *admin, struct task_command *command, struct response *response) {
  struct err err = {0};
  enum command_answer answer = engine_command(admin_engine(admin), command, HTTP_WAIT_MS, &err);
  respond_answer(response, answer, command, &err);
}

void task_cancel(struct admin *admin, const struct request *request, struct response *response) {
  static const char *const known[] = {"actor", "reason", NULL};
  struct motive motive;
  json_t *body = body_object(request, known, response);
  if (body && body_motive(body, &motive, response)) {
    struct task_command command = {
        .verb = INTERVENE_CANCEL, .id = request->params[0], .actor = motive.actor, .reason = motive.reason};
    run(admin, &command, response);
  }
  json_decref(body);
}

/* A delay counts from now by the database's clock, as due times do. */
static bool due_after(struct admin *admin, const struct request *request, const json_t *delay, int64_t *due_us,
                      struct response *response) {
  struct look look;
  if (!json_is_integer(delay) || json_integer_value(delay) < 0 || json_integer_value(delay) > DELAY_MAX_MS) {
    respond_problem(response, PROBLEM_BAD_REQUEST, "\"delay_ms\" must be a whole number from 0 to %lld", DELAY_MAX_MS);
    return false;
  }
  if (!look_at(admin, request, &look, response))
    return false;
  *due_us = look.status.db_now_us + json_integer_value(delay) * 1000;
  bool known = look.status.db_now_us != 0;
  look_end(&look);
  if (!known)
    respond_problem(response, PROBLEM_DATABASE, "the database's clock is not known yet; try again, or give due_at");
  return known;
}

static bool read_due(struct admin *admin, const struct request *request, const json_t *body, int64_t *due_us,
                     struct response *response) {
  const json_t *at = json_object_get(body, "due_at"), *delay = json_object_get(body, "delay_ms");
  if (!at == !delay) {
    respond_problem(response, PROBLEM_BAD_REQUEST, "give either \"due_at\" or \"delay_ms\"");
    return false;
  }
  const char *text = json_string_value(at);
  struct err err = {0};
  if (delay) {
    if (!due_after(admin, request, delay, due_us, response))
      return false;
  } else if (!text || !body_parse_time(text, due_us)) {
    respond_problem(response, PROBLEM_BAD_REQUEST, "\"due_at\" must be a time such as \"2030-01-31T12:00:00Z\"");
    return false;
  }
  if (task_time_valid(*due_us, "a due time", &err))
    return true;
  respond_problem(response, PROBLEM_BAD_REQUEST, "%s", err.text);
  return false;
}

void task_reschedule(struct admin *admin, const struct request *request, struct response *response) {
  static const char *const known[] = {"due_at", "delay_ms", "actor", "reason", NULL};
  struct motive motive;
  int64_t due_us;
  json_t *body = body_object(request, known, response);
  if (body && read_due(admin, request, body, &due_us, response) && body_motive(body, &motive, response)) {
    struct task_command command = {.verb = INTERVENE_RESCHEDULE,
                                   .id = request->params[0],
                                   .due_us = due_us,
                                   .actor = motive.actor,
                                   .reason = motive.reason};
    run(admin, &command, response);
  }
  json_decref(body);
}

/* --- some together --- */

static json_t *outcome_json(const char *id, enum command_answer answer, const struct err *err) {
  static const char *const words[] = {[COMMAND_DONE] = "done",           [COMMAND_DONE_MAYBE_SENT] = "done",
                                      [COMMAND_NOT_FOUND] = "not_found", [COMMAND_IN_FLIGHT] = "in_flight",
                                      [COMMAND_STATE] = "state",         [COMMAND_ELSEWHERE] = "elsewhere",
                                      [COMMAND_AMBIGUOUS] = "ambiguous", [COMMAND_LOCKED] = "locked",
                                      [COMMAND_FAILED] = "database",     [COMMAND_LEFT] = "left"};
  const char *word = answer != COMMAND_FAILED ? words[answer]
                     : err->denied            ? "rights"
                     : err->refused           ? "refused"
                                              : words[answer];
  json_t *task = json_pack("{so ss}", "id", json_any(id), "outcome", word);
  if (task && (answer == COMMAND_DONE || answer == COMMAND_DONE_MAYBE_SENT))
    json_object_set_new(task, "maybe_sent", json_boolean(answer == COMMAND_DONE_MAYBE_SENT));
  if (task && answer == COMMAND_FAILED)
    json_object_set_new(task, "detail", json_any(err->text));
  return task;
}

static bool read_ids(const json_t *body, const char *ids[COMMANDS_TOGETHER], size_t *count, struct response *response) {
  const json_t *list = json_object_get(body, "ids");
  bool ok = json_is_array(list) && json_array_size(list) > 0 && json_array_size(list) <= COMMANDS_TOGETHER;
  *count = ok ? json_array_size(list) : 0;
  for (size_t i = 0; ok && i < *count; i++) {
    ids[i] = json_string_value(json_array_get(list, i));
    ok = ids[i] && *ids[i];
    for (size_t k = 0; ok && k < i; k++)
      ok = strcmp(ids[i], ids[k]) != 0;
  }
  if (!ok)
    respond_problem(response, PROBLEM_BAD_REQUEST, "\"ids\" must be a list of 1 to %d texts, each another",
                    (int)COMMANDS_TOGETHER);
  return ok;
}

static void run_many(struct admin *admin, struct task_command each, const json_t *body, struct response *response) {
  const char *ids[COMMANDS_TOGETHER];
  enum command_answer answers[COMMANDS_TOGETHER];
  struct task_commands commands = {.each = each, .ids = ids, .answers = answers};
  struct motive motive;
  char filter[32];
  struct err err = {0};
  if (!read_ids(body, ids, &commands.count, response) || !body_motive(body, &motive, response) ||
      !body_text(body, "filter", BODY_FILTER_MAX, &commands.filter, response))
    return;
  commands.each.actor = motive.actor;
  commands.each.reason = motive.reason;
  snprintf(filter, sizeof filter, "%zu tasks together", commands.count);
  commands.filter = *commands.filter ? commands.filter : filter;
  if (!engine_commands(admin_engine(admin), &commands, HTTP_WAIT_MS, &err)) {
    respond_problem(response, problem_of_database(&err), "%s", err.text);
    return;
  }
  json_t *tasks = json_array();
  for (size_t i = 0; i < commands.count; i++)
    json_array_append_new(tasks, outcome_json(ids[i], answers[i], &err));
  respond_json(response, 200, json_pack("{so}", "tasks", tasks));
}

void tasks_cancel(struct admin *admin, const struct request *request, struct response *response) {
  static const char *const known[] = {"ids", "actor", "reason", "filter", NULL};
  json_t *body = body_object(request, known, response);
  if (body)
    run_many(admin, (struct task_command){.verb = INTERVENE_CANCEL}, body, response);
  json_decref(body);
}

void tasks_reschedule(struct admin *admin, const struct request *request, struct response *response) {
  static const char *const known[] = {"ids", "due_at", "delay_ms", "actor", "reason", "filter", NULL};
  int64_t due_us;
  json_t *body = body_object(request, known, response);
  if (body && read_due(admin, request, body, &due_us, response))
    run_many(admin, (struct task_command){.verb = INTERVENE_RESCHEDULE, .due_us = due_us}, body, response);
  json_decref(body);
}
