/* SPDX-License-Identifier: MIT
 *
 * admin/results.c - result records that come over HTTP: by the API (with the operator's token), or to the callback URL
 * that a consumer was given with its task (with a token for that one attempt).
 *
 * A 200 is sent only after the table has committed. What the API cannot use is handed on all the same, so that it is
 * kept for inspection like records from a broker. A callback is about the task and attempt of its URL and no other: the
 * engine is told which, and what it says otherwise is refused at once and kept nowhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/names.h"
#include "admin/problem.h"
#include "admin/results.h"
#include "core/callback_id.h"
#include "core/record.h"
#include "core/result_origin.h"

/* The engine has kept the record; what is wrong with it, the one who sent it learns from the same rules. */
static void respond_broken(struct response *response, const struct store_result *result,
                           const struct result_offer *offer) {
  struct result_record record = {0};
  struct err err = {0};
  if (result->form == DECISION_FORMS)
    respond_problem(response, PROBLEM_REFUSED, "%s%s", result->refusal,
                    offer->replied ? "" : "; the record is kept in quarantine");
  else if (result_record_parse(offer->body.data, offer->body.len, &offer->road, &record, &err))
    respond_problem(response, PROBLEM_BAD_RECORD, "the record cannot be used; it is kept in quarantine");
  else
    respond_problem(response, PROBLEM_BAD_RECORD, "%s", err.text);
  result_record_free(&record);
}

/* Progress is a question too: whether to go on. Its answer says yes only where that is so. */
static void respond_taken(struct response *response, const struct store_result *result, const struct err *flaw) {
  json_t *answer = json_pack("{ss sb so}", "fate", fate_name(result->fate), "cancelled", result->cancelled, "route",
                             result->route[0] ? json_any(result->route) : json_null());
  if (answer && result->fate != RESULT_LATE)
    json_object_set_new(answer, "differs", json_boolean(result->differs));
  if (answer && result->record.status == RESULT_PROGRESS)
    json_object_set_new(answer, "extended", json_boolean(result->extended));
  if (answer && result->capped)
    json_object_set_new(answer, "capped", json_true());
  if (answer && flaw->text[0])
    json_object_set_new(answer, "flaw", json_any(flaw->text));
  respond_json(response, 200, answer);
}

static void respond_fate(struct response *response, const struct store_result *result, const struct result_offer *offer,
                         const struct err *flaw) {
  switch (result->fate) {
  case RESULT_APPLIED:
  case RESULT_DUPLICATE:
    respond_taken(response, result, flaw);
    break;
  case RESULT_STALE:
    respond_problem(response, PROBLEM_STALE, "%s", result_stale_text(result->record.status, offer->road.current_only));
    break;
  case RESULT_LATE:
    if (result->cancelled && result->record.status == RESULT_PROGRESS)
      respond_taken(response, result, flaw);
    else
      respond_problem(response, PROBLEM_LATE, "the task has ended%s; nothing was changed",
                      result->cancelled ? " (cancelled)" : "");
    break;
  case RESULT_ORPHAN:
    respond_problem(response, result->unsent ? PROBLEM_UNSENT : PROBLEM_NOT_FOUND, "%s%s",
                    result->unsent ? result_unsent_text(result->record.too_soon)
                                   : "there is no task with this message id",
                    offer->replied ? "" : "; the record is kept in quarantine");
    break;
  case RESULT_BROKEN:
  case RESULT_MISROUTED: /* of a stream only */
  case RESULT_FATES:
    respond_broken(response, result, offer);
    break;
  }
}

bool result_take(struct admin *admin, const struct result_offer *offer, struct response *response) {
  struct store_result result = {0};
  struct err err = {0};
  if (!engine_result(admin_engine(admin), offer, HTTP_WAIT_MS, &result, &err)) {
    enum problem problem = result.fate != RESULT_BUSY || result.left ? PROBLEM_DATABASE
                           : result.early                            ? PROBLEM_UNRECORDED
                                                                     : PROBLEM_LOCKED;
    respond_problem(response, problem, "it is not known yet whether the result counts; send it again: %s", err.text);
    return false;
  }
  respond_fate(response, &result, offer, &err);
  return result.fate == RESULT_APPLIED || (result.fate == RESULT_DUPLICATE && !result.differs);
}

void result_post(struct admin *admin, const struct request *request, struct response *response) {
  const struct result_offer offer = {
      .source = "http", .origin = request->endpoint->path, .body = request->body, .lane = request->lane};
  (void)result_take(admin, &offer, response);
}

static bool parse_attempt(const char *text, uint32_t *attempt) {
  char *end;
  unsigned long long value = strtoull(text, &end, 10);
  *attempt = (uint32_t)value;
  return text[0] >= '1' && text[0] <= '9' && *end == '\0' && value <= UINT32_MAX;
}

/* Whether the record can be used and speaks of no other task; otherwise the response says why not. */
static bool accept_callback(const struct result_offer *offer, struct response *response) {
  const struct record_road anywhere = {.message_id = offer->road.message_id, .attempt = offer->road.attempt};
  struct result_record record = {0};
  struct err err = {0};
  bool accepted = result_record_parse(offer->body.data, offer->body.len, &offer->road, &record, &err);
  result_record_free(&record);
  if (accepted)
    return true;
  bool mismatch = result_record_parse(offer->body.data, offer->body.len, &anywhere, &record, &(struct err){0});
  result_record_free(&record);
  respond_problem(response, mismatch ? PROBLEM_MISMATCH : PROBLEM_BAD_RECORD, "%s", err.text);
  return false;
}

/* What a callback URL says, and whether it is one of ours. id: where the road's message id is then. */
static bool read_callback(struct admin *admin, const struct request *request, char id[RECORD_ID_MAX + 1],
                          struct record_road *road) {
  *road = (struct record_road){.message_id = id, .binding = true, .current_only = true};
  return parse_attempt(request->params[1], &road->attempt) && callback_id_read(request->params[0], id) &&
         engine_callback_verify(admin_engine(admin), id, request->params[2], road);
}

bool result_callback_allows(struct admin *admin, struct request *request, struct response *response) {
  char id[RECORD_ID_MAX + 1];
  struct record_road road;
  if (read_callback(admin, request, id, &road)) {
    request->lane = road.lane ? road.lane : request->lane;
    return true;
  }
  respond_problem(response, PROBLEM_FORBIDDEN, "this is not a callback URL of ours; use duebox-callback as it came");
  response->suspicious = response->last = true;
  return false;
}

/* Where it stood is the URL without its token: the body need not name the task, and what is kept of one task must not
 * be taken for what another's consumer said. */
void result_callback(struct admin *admin, const struct request *request, struct response *response) {
  char id[RECORD_ID_MAX + 1], origin[RESULT_ORIGIN_SIZE];
  struct result_offer offer = {
      .source = SOURCE_CALLBACK, .origin = origin, .body = request->body, .lane = request->lane, .replied = true};
  if (!read_callback(admin, request, id, &offer.road) || !accept_callback(&offer, response))
    return;
  result_origin_callback(origin, id, offer.road.attempt);
  (void)result_take(admin, &offer, response);
}
