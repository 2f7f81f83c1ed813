/* SPDX-License-Identifier: MIT
 *
 * admin/results.c - result records that come over HTTP: by the API (with the operator's token), or to the callback URL
 * that a consumer was given with its task (with a token for that one attempt).
 *
 * A 200 is sent only after the table has committed. Records that cannot be used are handed on all the same, so that
 * they are kept for inspection like those from a broker.
 */
#include <stdlib.h>
#include <string.h>

#include "admin/names.h"
#include "admin/problem.h"
#include "core/record.h"

/* The engine has kept the record; what is wrong with it, the one who sent it learns from the same rules. */
static void respond_broken(struct response *response, const struct duebox_bytes *body) {
  struct result_record record = {0};
  struct err err = {0};
  if (result_record_parse(body->data, body->len, &record, &err))
    respond_problem(response, PROBLEM_BAD_RECORD, "the record cannot be used; it is kept in quarantine");
  else
    respond_problem(response, PROBLEM_BAD_RECORD, "%s", err.text);
  result_record_free(&record);
}

static void respond_fate(struct response *response, const struct store_result *result,
                         const struct duebox_bytes *body) {
  switch (result->fate) {
  case RESULT_APPLIED:
  case RESULT_DUPLICATE:
    respond_json(response, 200,
                 json_pack("{ss sb so}", "fate", fate_name(result->fate), "cancelled", result->cancelled, "route",
                           result->route[0] ? json_any(result->route) : json_null()));
    break;
  case RESULT_STALE:
    respond_problem(response, PROBLEM_STALE, "the task is in a later attempt; only a success of this one would count");
    break;
  case RESULT_LATE:
    respond_problem(response, PROBLEM_LATE, "the task has ended; nothing was changed");
    break;
  case RESULT_ORPHAN:
    respond_problem(response, PROBLEM_NOT_FOUND, "no task has this message id; the record is kept in quarantine");
    break;
  case RESULT_BROKEN:
  case RESULT_FATES:
    respond_broken(response, body);
    break;
  }
}

static void take(struct admin *admin, const char *source, const struct request *request, struct response *response) {
  struct store_result result = {0};
  struct err err = {0};
  if (!engine_result(admin_engine(admin), source, request->endpoint->path, request->body.data, request->body.len,
                     HTTP_WAIT_MS, &result, &err))
    respond_problem(response, PROBLEM_DATABASE, "the result is not stored, send it again: %s", err.text);
  else
    respond_fate(response, &result, &request->body);
}

void result_post(struct admin *admin, const struct request *request, struct response *response) {
  take(admin, "http", request, response);
}

/* Whether the record names the task and attempt of the URL. What cannot be read is left to the engine to judge. */
static bool belongs(const struct request *request, const char *message_id, uint32_t attempt) {
  json_t *record = json_loadb(request->body.data, request->body.len, 0, NULL);
  const json_t *id = json_object_get(record, "id"), *number = json_object_get(record, "attempt");
  bool same = (!json_is_string(id) || strcmp(json_string_value(id), message_id) == 0) &&
              (!json_is_integer(number) || json_integer_value(number) == attempt);
  json_decref(record);
  return same;
}

static bool parse_attempt(const char *text, uint32_t *attempt) {
  char *end;
  unsigned long long value = strtoull(text, &end, 10);
  *attempt = (uint32_t)value;
  return text[0] >= '1' && text[0] <= '9' && *end == '\0' && value <= UINT32_MAX;
}

void result_callback(struct admin *admin, const struct request *request, struct response *response) {
  const char *message_id = request->params[0], *token = request->params[2];
  uint32_t attempt;
  if (!parse_attempt(request->params[1], &attempt) ||
      !engine_callback_verify(admin_engine(admin), message_id, attempt, token)) {
    respond_problem(response, PROBLEM_FORBIDDEN, "this is not a callback URL of ours; use duebox-callback as it came");
    response->suspicious = true;
    return;
  }
  if (!belongs(request, message_id, attempt)) {
    respond_problem(response, PROBLEM_MISMATCH, "\"id\" and \"attempt\" must be those of the URL: %s and %u",
                    message_id, attempt);
    return;
  }
  take(admin, "callback", request, response);
}
