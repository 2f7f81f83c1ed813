/* SPDX-License-Identifier: MIT */
#include "core/record.h"

#include <stdlib.h>
#include <string.h>

#include "core/json_scan.h"

#define WAIT_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000) /* ten years: more is an error in somebody's unit */

struct reader {
  struct json_scan scan;
  struct result_record *record;
  char *text; /* room for the next text, as large as what is left of the JSON */
  struct err *err;
};

static const char *const statuses[] = {
    [RESULT_DONE] = "done", [RESULT_RETRY] = "retry", [RESULT_FAIL] = "fail", [RESULT_PROGRESS] = "progress"};

const char *result_status_text(enum result_status status) {
  return (size_t)status < ARRAY_LEN(statuses) ? statuses[status] : "?";
}

static bool wrong(struct reader *r, const char *member, const char *wanted) {
  return err_set(r->err, 1, "\"%s\" must be %s", member, wanted);
}

static bool syntax(struct reader *r) {
  return err_set(r->err, 1, "no valid JSON: byte %zu: %s", (size_t)(r->scan.at - r->scan.start), r->scan.problem);
}

/* Takes a string into the record's memory. */
static bool take_text(struct reader *r, const char *member, const char **text, size_t *text_len) {
  size_t len;
  if (json_scan_peek(&r->scan) != SCAN_STRING)
    return wrong(r, member, "a string");
  if (!json_scan_string(&r->scan, r->text, &len))
    return err_set(r->err, 1, "\"%s\": %s", member, r->scan.problem);
  *text = r->text;
  if (text_len)
    *text_len = len;
  r->text += len + 1;
  return true;
}

static bool read_id(struct reader *r) {
  const char *id = "";
  size_t len = 0;
  if (!take_text(r, "id", &id, &len))
    return false;
  for (size_t i = 0; i < len; i++)
    if (id[i] <= ' ' || id[i] > '~')
      return wrong(r, "id", "the message id: printable ASCII without spaces");
  if (len == 0 || len > RECORD_ID_MAX)
    return wrong(r, "id", "the message id: 1 to 64 characters");
  memcpy(r->record->message_id, id, len + 1);
  return true;
}

static bool read_attempt(struct reader *r) {
  int64_t value;
  if (!json_scan_int(&r->scan, &value) || value < 1 || value > UINT32_MAX)
    return wrong(r, "attempt", "the whole number of the attempt, from 1");
  r->record->attempt = (uint32_t)value;
  return true;
}

static bool read_status(struct reader *r) {
  const char *text = "";
  if (!take_text(r, "status", &text, NULL))
    return false;
  for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
    if (strcmp(statuses[i], text) == 0) {
      r->record->status = (enum result_status)i;
      return true;
    }
  return wrong(r, "status", "one of done, retry, fail, progress");
}

static bool read_wait(struct reader *r, const char *member, int64_t *ms) {
  return (json_scan_int(&r->scan, ms) && *ms >= 0 && *ms <= WAIT_MAX_MS) ||
         wrong(r, member, "a whole number of milliseconds, from 0 to ten years");
}

static bool read_retry_in(struct reader *r) { return read_wait(r, "retry_in_ms", &r->record->retry_in_ms); }
static bool read_extend(struct reader *r) { return read_wait(r, "extend_ms", &r->record->extend_ms); }

static bool read_progress(struct reader *r) {
  return (json_scan_double(&r->scan, &r->record->progress) && r->record->progress >= 0 && r->record->progress <= 1) ||
         wrong(r, "progress", "a number from 0 to 1");
}

static bool read_checkpoint(struct reader *r) {
  return take_text(r, "checkpoint", &r->record->checkpoint, &r->record->checkpoint_len);
}

static bool read_result(struct reader *r) {
  struct duebox_bytes span;
  if (!json_scan_value(&r->scan, &span))
    return wrong(r, "result", "a JSON value");
  memcpy(r->text, span.data, span.len);
  r->text[span.len] = '\0';
  r->record->result_json = r->text;
  r->record->result_json_len = span.len;
  r->text += span.len + 1;
  return true;
}

static bool read_error_class(struct reader *r) { return take_text(r, "error.class", &r->record->error_class, NULL); }
static bool read_message(struct reader *r) { return take_text(r, "error.message", &r->record->error_message, NULL); }
static bool read_stack(struct reader *r) { return take_text(r, "error.stack", &r->record->error_stack, NULL); }

static bool read_error(struct reader *r);

struct member {
  const char *name;
  bool (*read)(struct reader *r);
  bool null_means_absent;
};

enum { MEMBER_ID, MEMBER_ATTEMPT, MEMBER_STATUS };

static const struct member members[] = {
    [MEMBER_ID] = {"id", read_id, false},
    [MEMBER_ATTEMPT] = {"attempt", read_attempt, false},
    [MEMBER_STATUS] = {"status", read_status, false},
    {"retry_in_ms", read_retry_in, true},
    {"extend_ms", read_extend, true},
    {"progress", read_progress, true},
    {"checkpoint", read_checkpoint, true},
    {"error", read_error, true},
    {"result", read_result, false},
};

static const struct member error_members[] = {
    {"class", read_error_class, true},
    {"message", read_message, true},
    {"stack", read_stack, true},
};

/* Reads an object by a table. *seen gets a bit for each member that was there. */
static bool read_object(struct reader *r, const struct member *table, size_t count, unsigned *seen) {
  bool first = true;
  *seen = 0;
  if (!json_scan_enter(&r->scan))
    return syntax(r);
  while (json_scan_key(&r->scan, &first, r->text, NULL)) {
    size_t i = 0;
    while (i < count && strcmp(table[i].name, r->text) != 0)
      i++;
    if (i == count || (table[i].null_means_absent && json_scan_peek(&r->scan) == SCAN_NULL)) {
      if (!json_scan_value(&r->scan, NULL))
        return syntax(r);
      continue;
    }
    if (*seen & 1u << i)
      return err_set(r->err, 1, "\"%s\" is there twice", table[i].name);
    *seen |= 1u << i;
    if (!table[i].read(r))
      return false;
  }
  return !r->scan.problem || syntax(r);
}

static bool read_error(struct reader *r) {
  unsigned seen;
  if (json_scan_peek(&r->scan) != SCAN_OBJECT)
    return wrong(r, "error", "an object with class, message and stack");
  return read_object(r, error_members, ARRAY_LEN(error_members), &seen);
}

/* Reads the whole text; required is the set of members that must be there. */
static bool parse(const char *text, size_t len, unsigned required, struct result_record *out, struct err *err) {
  *out = (struct result_record){.retry_in_ms = -1, .extend_ms = -1, .progress = -1};
  struct reader r = {.scan = json_scan_start(text, len), .record = out, .err = err};
  unsigned seen;
  out->memory = malloc(len + 1); /* no text is longer than it was in JSON with its quotes */
  if (!out->memory)
    return err_set(err, 1, "out of memory for a result record");
  r.text = out->memory;
  if (!read_object(&r, members, ARRAY_LEN(members), &seen))
    return false;
  if (!json_scan_end(&r.scan))
    return syntax(&r);
  for (unsigned i = 0; i < ARRAY_LEN(members); i++)
    if (required & ~seen & 1u << i)
      return err_set(err, 1, "\"%s\" is missing", members[i].name);
  return true;
}

bool result_record_parse(const char *text, size_t len, struct result_record *out, struct err *err) {
  if (parse(text, len, 1u << MEMBER_ID | 1u << MEMBER_ATTEMPT | 1u << MEMBER_STATUS, out, err))
    return true;
  result_record_free(out);
  return false;
}

bool result_record_parse_answer(const char *text, size_t len, const char *message_id, uint32_t attempt,
                                struct result_record *out, struct err *err) {
  bool ok = parse(text, len, 1u << MEMBER_STATUS, out, err);
  if (ok && out->message_id[0] && strcmp(out->message_id, message_id) != 0)
    ok = err_set(err, 1, "\"id\" is that of another task");
  if (ok && out->attempt && out->attempt != attempt)
    ok = err_set(err, 1, "\"attempt\" is %u, this call was attempt %u", out->attempt, attempt);
  if (!ok) {
    result_record_free(out);
    return false;
  }
  if (!out->message_id[0])
    strncpy(out->message_id, message_id, RECORD_ID_MAX);
  out->attempt = attempt;
  return true;
}

void result_record_free(struct result_record *record) {
  free(record->memory);
  record->memory = NULL;
  record->error_class = record->error_message = record->error_stack = NULL;
  record->checkpoint = record->result_json = NULL;
}
