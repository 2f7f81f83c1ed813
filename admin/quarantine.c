/* SPDX-License-Identifier: MIT
 *
 * admin/quarantine.c - result records that fitted nothing, or were flawed: list, show, replay, purge.
 *
 * As `duebox quarantine`. Each request has a connection of its own, for the daemon's own sessions have other work.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "admin/body.h"
#include "admin/problem.h"
#include "admin/results.h"
#include "core/operator.h"
#include "core/result_origin.h"

enum { LIST_MAX = 100, BODY_SHOWN = 200, BODY_KEPT = 4096 };

/* Opens the port for people; a response on failure. */
static bool open_operator(struct admin *admin, struct operator* op, struct response *response) {
  const struct admin_hooks *hooks = admin_hooks(admin);
  struct err err = {0};
  if (hooks->open_operator && hooks->open_operator(hooks->operator_ctx, op, &err))
    return true;
  respond_problem(response, problem_of_database(&err), "%s", err.text);
  return false;
}

/* Bytes that are no UTF-8 text go as base64 under another name. */
static void set_bytes(json_t *object, const struct field *field) {
  json_t *text = json_stringn(field->text.data, field->text.len);
  char name[64];
  if (text) {
    json_object_set_new(object, field->name, text);
    return;
  }
  char *encoded = malloc((field->text.len + 2) / 3 * 4 + 1);
  if (!encoded)
    return;
  EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)field->text.data, (int)field->text.len);
  snprintf(name, sizeof name, "%s_base64", field->name);
  json_object_set_new(object, name, json_string(encoded));
  free(encoded);
}

static bool add_row(void *ctx, const struct field *fields, size_t count) {
  json_t *list = ctx, *object = json_object();
  for (size_t i = 0; i < count; i++) {
    const struct field *field = &fields[i];
    if (field->null)
      json_object_set_new(object, field->name, json_null());
    else if (field->kind == FIELD_INT)
      json_object_set_new(object, field->name, json_integer(field->number));
    else if (field->kind == FIELD_TIME)
      json_object_set_new(object, field->name, json_time(field->number));
    else
      set_bytes(object, field);
  }
  return json_array_append_new(list, object) == 0;
}

/* The records as a list, or NULL with a response. id 0: the newest. */
static json_t *fetch(const struct operator* op, uint64_t id, uint64_t limit, uint64_t body_cap,
                     struct response *response) {
  struct err err = {0};
  json_t *list = json_array();
  if (list && op->ops->quarantine(op->self, id, limit, body_cap, add_row, list, &err) == STORE_OK)
    return list;
  respond_problem(response, problem_of_database(&err), "%s", list ? err.text : "out of memory");
  json_decref(list);
  return NULL;
}

static bool parse_id(const char *text, uint64_t *id, struct response *response) {
  size_t len = strspn(text, "0123456789");
  *id = strtoull(text, NULL, 10);
  if (text[0] >= '1' && text[len] == '\0' && len < 19)
    return true;
  respond_problem(response, PROBLEM_NOT_FOUND, "this is no number of a quarantined record");
  return false;
}

/* The one of that number with all that is kept of it, or NULL with a response. */
static json_t *find(const struct operator* op, uint64_t id, struct response *response) {
  json_t *list = fetch(op, id, 1, BODY_KEPT, response), *row = json_incref(json_array_get(list, 0));
  if (list && !row)
    respond_problem(response, PROBLEM_NOT_FOUND,
                    "no quarantined record has this number; GET /api/v1/quarantine "
                    "lists them");
  json_decref(list);
  return row;
}

void quarantine_list(struct admin *admin, const struct request *request, struct response *response) {
  struct operator op;
  if (!open_operator(admin, &op, response))
    return;
  json_t *list = fetch(&op, 0, LIST_MAX, BODY_SHOWN, response);
  if (list)
    respond_json(response, 200, json_pack("{so}", "records", list));
  op.ops->close(op.self);
}

void quarantine_show(struct admin *admin, const struct request *request, struct response *response) {
  struct operator op;
  uint64_t id;
  if (!parse_id(request->params[0], &id, response) || !open_operator(admin, &op, response))
    return;
  json_t *row = find(&op, id, response);
  if (row)
    respond_json(response, 200, row);
  op.ops->close(op.self);
}

/* --- replay and purge --- */

struct command {
  struct operator op;
  uint64_t id;
  json_t *body;
  struct motive motive;
};

static bool begin(struct admin *admin, const struct request *request, struct command *command,
                  struct response *response) {
  static const char *const known[] = {"actor", "reason", NULL};
  *command = (struct command){0};
  if (parse_id(request->params[0], &command->id, response) &&
      (command->body = body_object(request, known, response)) != NULL &&
      body_motive(command->body, &command->motive, response) && open_operator(admin, &command->op, response))
    return true;
  json_decref(command->body);
  return false;
}

static void end(struct command *command) {
  command->op.ops->close(command->op.self);
  json_decref(command->body);
}

static bool forget(const struct command *command, const char *reason, uint64_t *forgotten, struct err *err) {
  const struct operator* op = & command->op;
  return op->ops->quarantine_forget(op->self, command->id, 1, command->motive.actor, reason, forgotten, err) ==
         STORE_OK;
}

void quarantine_purge(struct admin *admin, const struct request *request, struct response *response) {
  struct command command;
  struct err err = {0};
  uint64_t forgotten = 0;
  if (!begin(admin, request, &command, response))
    return;
  if (!forget(&command, command.motive.reason, &forgotten, &err))
    respond_problem(response, problem_of_database(&err), "%s", err.text);
  else if (forgotten == 0)
    respond_problem(response, PROBLEM_NOT_FOUND, "no quarantined record has this number");
  else
    respond_json(response, 200, json_pack("{so sb}", "id", json_sprintf("%" PRIu64, command.id), "purged", true));
  end(&command);
}

static const char *text_of(const json_t *row, const char *name) {
  const char *text = json_string_value(json_object_get(row, name));
  return text ? text : "";
}

/* A record that counts by today's rules leaves the quarantine; any other stays as it is. */
static void replay(struct admin *admin, const struct command *command, const json_t *row, struct response *response) {
  const json_t *body = json_object_get(row, "body");
  struct result_offer offer = {.source = "http",
                               .origin = "quarantine replay",
                               .body = {json_string_value(body), json_string_length(body)},
                               .replied = true,
                               .replayed = true};
  char id[RECORD_ID_MAX + 1], reason[BODY_REASON_MAX + 32];
  struct err err = {0};
  uint64_t forgotten;
  if (!body || json_integer_value(json_object_get(row, "length")) > BODY_KEPT) {
    respond_problem(response, PROBLEM_BAD_RECORD,
                    "only the first %d bytes are kept, or it is no text; POST the whole record to /api/v1/results",
                    BODY_KEPT);
    return;
  }
  if (!result_origin_road(text_of(row, "source"), text_of(row, "origin"), &offer.road, id)) {
    respond_problem(response, PROBLEM_BAD_RECORD, "%s", result_origin_settled);
    return;
  }
  if (!result_take(admin, &offer, response))
    return;
  snprintf(reason, sizeof reason, "replayed%s%s", command->motive.reason[0] ? ": " : "", command->motive.reason);
  reason[BODY_REASON_MAX] = '\0';
  if (!forget(command, reason, &forgotten, &err)) {
    response_clear(response);
    *response = (struct response){0};
    respond_problem(response, problem_of_database(&err), "the record counts now, but it is still in quarantine: %s",
                    err.text);
  }
}

void quarantine_replay(struct admin *admin, const struct request *request, struct response *response) {
  struct command command;
  if (!begin(admin, request, &command, response))
    return;
  json_t *row = find(&command.op, command.id, response);
  if (row)
    replay(admin, &command, row, response);
  json_decref(row);
  end(&command);
}
