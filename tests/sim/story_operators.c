/* SPDX-License-Identifier: MIT
 *
 * People at the admin side of a daemon, and the configuration that they write.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "story_internal.h"

enum { ANSWER_MS = 5000 };

static bool ask_some_process(void (*run)(struct engine *engine)) {
  struct process *process = some_process(true);
  return process && process_command(process, run);
}

static void command_one(struct engine *engine) {
  const struct row *row = some_row();
  char id[STORE_ID_MAX + 2];
  struct err err = {0};
  if (!row)
    return;
  (void)snprintf(id, sizeof id, "%s", row->text[ROW_MESSAGE_ID]->data);
  bool keyed = row->text[ROW_ORDER_KEY]->len > 0;
  struct task_command command = {.verb = keyed || chance_ppm(&story.faults, 400000) ? INTERVENE_CANCEL
                                                                                    : INTERVENE_RESCHEDULE,
                                 .id = id,
                                 .due_us = table_clock(&story.db) + fault_time(2 * 1000 * 1000),
                                 .actor = "sim",
                                 .reason = "simulation"};
  enum command_answer answer = engine_command(engine, &command, ANSWER_MS, &err);
  world_trace("command about %s: %d %s", id, (int)answer, err.text);
}

/* Where nobody judges what becomes of them, people give many at once. */
static void command_task(struct engine *engine) {
  int64_t count = story.isolated ? chance_log_between(&story.faults, 1, 50) : 1;
  while (count-- > 0)
    command_one(engine);
}

bool command_some_task(void) { return ask_some_process(command_task); }

static void pause_route(struct engine *engine) {
  struct err err = {0};
  const char *route = story.profile.routes[some_route()].name;
  bool paused = chance_ppm(&story.faults, 600000);
  bool done = engine_pause_route(engine, route, paused, "sim", "simulation", &err);
  world_trace("%s %s: %s", paused ? "pause" : "resume", route, done ? "done" : err.text);
}

bool pause_some_route(void) { return ask_some_process(pause_route); }

/* What a consumer says by a callback, or a person by hand: early, late, twice or wrong. The checker takes it for a word
 * of the consumer. */
static void give_result(struct engine *engine) {
  static const char *const all[] = {"done", "retry", "fail", "progress", "what"};
  struct chance *chance = &story.faults;
  const struct row *row = some_row();
  char id[STORE_ID_MAX + 2], body[BROKER_RECORD_MAX];
  struct store_result result = {0};
  struct err err = {0};
  if (!row)
    return;
  (void)snprintf(id, sizeof id, "%s", row->text[ROW_MESSAGE_ID]->data);
  const char *status = all[chance_below(chance, 5)];
  int64_t attempt = (int64_t)row->attempt + chance_between(chance, -1, 1);
  (void)snprintf(body, sizeof body, "{\"id\": \"%s\", \"attempt\": %d, \"status\": \"%s\"}", id,
                 attempt < 0 ? 0 : (int)attempt, status);
  broker_said(&story.broker, body);
  struct result_offer offer = {.source = "cli",
                               .origin = "simulation",
                               .body = {body, strlen(body)},
                               .road = {.message_id = chance_ppm(chance, 500000) ? id : NULL},
                               .replied = true};
  bool known = engine_result(engine, &offer, ANSWER_MS, &result, &err);
  world_trace("result %s: %s fate=%d %s", body, known ? "known" : "not known", (int)result.fate, err.text);
}

bool offer_result(void) { return ask_some_process(give_result); }

void change_routes(void) {
  struct chance *chance = &story.faults;
  size_t at = some_route();
  switch (chance_below(chance, story.leaves ? 1 : 5)) {
  case 0:
    story.profile.routes[at].absent = at != story.stays && !story.profile.routes[at].absent;
    story.any_absent = story.any_absent || story.profile.routes[at].absent;
    break;
  case 1:
    story.profile.routes[at].order = story.profile.routes[at].order == ORDER_PARK ? ORDER_BLOCK : ORDER_PARK;
    story.facts.ordered = false;
    break;
  case 2:
    story.profile.routes[at].claim = story.profile.routes[at].claim == CLAIM_MEMORY ? CLAIM_RECORDED : CLAIM_MEMORY;
    break;
  case 3:
    story.profile.routes[at].concurrency = chance_log_between(chance, 1, PROFILE_CONCURRENCY);
    story.profile.routes[at].concurrency_most =
        later(story.profile.routes[at].concurrency_most, story.profile.routes[at].concurrency);
    break;
  default:
    break;
  }
}

static bool nobody_commands(void *arg) {
  for (unsigned i = 0; i < story.process_count; i++)
    if (story.processes[i].running && story.processes[i].commands > 0)
      return false;
  return true;
}

static bool resume_routes(void) {
  struct tx *tx = user_begin(&story.db);
  for (size_t i = 0; i < story.profile.route_count; i++) {
    struct route_entry *route = record_new(&story.db.data.routes);
    (void)snprintf(route->setting.route, sizeof route->setting.route, "%s", story.profile.routes[i].name);
    route->setting.changed_us = table_clock(&story.db);
    tx_add(tx, &story.db.data.routes, route);
  }
  return user_commit(&tx);
}

void restore_routes(void) {
  (void)world_wait(nobody_commands, NULL, INT64_MAX);
  for (size_t i = 0; i < story.profile.route_count; i++)
    story.profile.routes[i].absent = false;
  for (unsigned i = 0; i < story.process_count; i++)
    if (story.processes[i].running && story.processes[i].wish != PROCESS_END)
      process_ask(&story.processes[i], PROCESS_RELOAD);
  while (!resume_routes())
    world_sleep(1000 * 1000);
}
