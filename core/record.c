/* SPDX-License-Identifier: MIT */
#include "core/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/json_salvage.h"
#include "core/json_scan.h"

#define WAIT_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000) /* ten years: more is an error in somebody's unit */

#define ATTEMPT_WANTED "the whole number of the attempt, from 1"

enum { FLAW_MAX = 200 }; /* bytes, with NUL */
enum member_index { MEMBER_ID, MEMBER_ATTEMPT, MEMBER_STATUS, MEMBER_CELERY_ID };

struct reader {
  struct json_scan scan;
  struct result_record *record;
  bool called;     /* it answers a call: which task it is about needs no telling, and is not read */
  char *text;      /* room for the next text, as large as what is left of the JSON */
  char *flaw;      /* FLAW_MAX bytes */
  unsigned seen;   /* bits 1 << enum member_index of what was there and could be used */
  unsigned broken; /* of what was there and could not */
  unsigned unsure; /* of id and attempt: it cannot be told which of two is meant */
  bool celery;     /* it is a record of Celery's result backend, with words of its own */
  char status[16]; /* the word, "" = none */
  bool doubtful;   /* another word is there, or it may belong to something else */
};

static const char *const statuses[] = {
    [RESULT_DONE] = "done", [RESULT_RETRY] = "retry", [RESULT_FAIL] = "fail", [RESULT_PROGRESS] = "progress"};

/* Celery's RETRY says that it will run the task again by itself. */
static const struct {
  const char *word;
  enum result_status status;
} celery_states[] = {{"SUCCESS", RESULT_DONE},    {"FAILURE", RESULT_RETRY},    {"REVOKED", RESULT_FAIL},
                     {"RETRY", RESULT_PROGRESS},  {"STARTED", RESULT_PROGRESS}, {"RECEIVED", RESULT_PROGRESS},
                     {"PENDING", RESULT_PROGRESS}};

const char *result_status_text(enum result_status status) {
  return (size_t)status < ARRAY_LEN(statuses) ? statuses[status] : "?";
}

/* --- what is wrong: the first flaw is kept --- */

static bool wrong(struct reader *r, const char *member, const char *wanted) {
  if (!*r->flaw)
    snprintf(r->flaw, FLAW_MAX, "\"%s\" must be %s", member, wanted);
  return false;
}

static bool syntax(struct reader *r) {
  if (!*r->flaw)
    snprintf(r->flaw, FLAW_MAX, "no valid JSON: byte %zu: %s", (size_t)(r->scan.at - r->scan.start), r->scan.problem);
  return false;
}

/* --- values --- */

/* Takes a string into the record's memory. */
static bool take_text(struct reader *r, const char *member, const char **text, size_t *text_len) {
  size_t len;
  if (json_scan_peek(&r->scan) != SCAN_STRING)
    return wrong(r, member, "a string");
  if (!json_scan_string(&r->scan, r->text, &len)) {
    if (!*r->flaw)
      snprintf(r->flaw, FLAW_MAX, "\"%s\": %s", member, r->scan.problem);
    return false;
  }
  *text = r->text;
  if (text_len)
    *text_len = len;
  r->text += len + 1;
  return true;
}

static bool number_of(const char *text, size_t len, double *value) {
  struct json_scan scan = json_scan_start(text, len);
  return json_scan_double(&scan, value) && json_scan_end(&scan);
}

/* Takes a number, or a string that holds one. */
static bool take_number(struct reader *r, double *value) {
  size_t len;
  if (json_scan_peek(&r->scan) != SCAN_STRING)
    return json_scan_double(&r->scan, value);
  return json_scan_string(&r->scan, r->text, &len) && number_of(r->text, len, value);
}

/* Numbers as far as they matter here are whole in a double. */
static bool is_whole(double value, double low, double high) {
  return value >= low && value <= high && (double)(int64_t)value >= value;
}

/* --- members --- */

bool record_is_id(const char *id, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (id[i] <= ' ' || id[i] > '~')
      return false;
  return len > 0 && len <= RECORD_ID_MAX;
}

/* Of two ids or attempts none counts, not the last one: the answer would end another task. */
static bool two_of(struct reader *r, unsigned bit, const char *member) {
  r->unsure |= bit;
  return wrong(r, member, "one, and two different ones are there");
}

static bool set_id(struct reader *r, const char *id, size_t len) {
  char *known = r->record->message_id;
  if (*known && (strlen(known) != len || memcmp(known, id, len) != 0))
    return two_of(r, 1u << MEMBER_ID, "id");
  memcpy(known, id, len);
  known[len] = '\0';
  return true;
}

/* A message id that looks like a number may have been written as one. */
static bool read_id(struct reader *r) {
  struct duebox_bytes id = {0};
  const char *text = "";
  if (r->called)
    return json_scan_value(&r->scan, NULL) || syntax(r);
  if (json_scan_peek(&r->scan) == SCAN_NUMBER) {
    if (!json_scan_value(&r->scan, &id))
      return syntax(r);
  } else {
    if (!take_text(r, "id", &text, &id.len))
      return false;
    id.data = text;
  }
  if (!record_is_id(id.data, id.len))
    return wrong(r, "id", "the message id: 1 to 64 characters of printable ASCII without spaces");
  return set_id(r, id.data, id.len);
}

static bool set_attempt(struct reader *r, bool is_number, double value) {
  if (!is_number || !is_whole(value, 1, UINT32_MAX))
    return wrong(r, "attempt", ATTEMPT_WANTED);
  if (r->record->attempt && r->record->attempt != (uint32_t)value)
    return two_of(r, 1u << MEMBER_ATTEMPT, "attempt");
  r->record->attempt = (uint32_t)value;
  return true;
}

static bool read_attempt(struct reader *r) {
  double value = 0;
  if (r->called)
    return json_scan_value(&r->scan, NULL) || syntax(r);
  bool is_number = take_number(r, &value);
  return set_attempt(r, is_number, value);
}

/* Whether it is a word of ours, or of Celery's. */
static bool is_status(const char *word, size_t len) {
  for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
    if (strlen(statuses[i]) == len && strncasecmp(statuses[i], word, len) == 0)
      return true;
  for (size_t i = 0; i < ARRAY_LEN(celery_states); i++)
    if (strlen(celery_states[i].word) == len && memcmp(celery_states[i].word, word, len) == 0)
      return true;
  return false;
}

static bool set_status(struct reader *r, const char *word, size_t len) {
  if (len >= sizeof r->status || memchr(word, '\0', len))
    return wrong(r, "status", "one of done, retry, fail, progress");
  if (*r->status && (strncasecmp(r->status, word, len) != 0 || r->status[len])) {
    r->doubtful |= is_status(r->status, strlen(r->status)) || is_status(word, len);
    return wrong(r, "status", "one word, and two are there");
  }
  memcpy(r->status, word, len);
  r->status[len] = '\0';
  return true;
}

static bool read_status(struct reader *r) {
  const char *text = "";
  size_t len = 0;
  return take_text(r, "status", &text, &len) && set_status(r, text, len);
}

static bool read_wait(struct reader *r, const char *member, int64_t *ms) {
  double value = 0;
  if (!take_number(r, &value) || !is_whole(value, 0, (double)WAIT_MAX_MS))
    return wrong(r, member, "a whole number of milliseconds, from 0 to ten years");
  *ms = (int64_t)value;
  return true;
}

static bool read_retry_in(struct reader *r) { return read_wait(r, "retry_in_ms", &r->record->retry_in_ms); }
static bool read_extend(struct reader *r) { return read_wait(r, "extend_ms", &r->record->extend_ms); }

static bool read_progress(struct reader *r) {
  double value = 0;
  if (!take_number(r, &value) || value < 0 || value > 1)
    return wrong(r, "progress", "a number from 0 to 1");
  r->record->progress = value;
  return true;
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
static bool read_traceback(struct reader *r) { return take_text(r, "traceback", &r->record->error_stack, NULL); }

static bool read_celery_id(struct reader *r) {
  r->celery = json_scan_value(&r->scan, NULL);
  return r->celery || syntax(r);
}

static bool read_error(struct reader *r);

struct member {
  const char *name;
  bool (*read)(struct reader *r);
  bool null_means_absent;
};

static const struct member members[] = {
    [MEMBER_ID] = {"id", read_id, true},
    [MEMBER_ATTEMPT] = {"attempt", read_attempt, true},
    [MEMBER_STATUS] = {"status", read_status, false},
    [MEMBER_CELERY_ID] = {"task_id", read_celery_id, true},
    {"retry_in_ms", read_retry_in, true},
    {"extend_ms", read_extend, true},
    {"progress", read_progress, true},
    {"checkpoint", read_checkpoint, true},
    {"error", read_error, true},
    {"result", read_result, false},
    {"traceback", read_traceback, true},
};

static const struct member error_members[] = {
    {"class", read_error_class, true},
    {"message", read_message, true},
    {"stack", read_stack, true},
};

/* Reads a member's value; one that cannot be used is skipped. False: the JSON ends here. */
static bool read_value(struct reader *r, const struct member *member, unsigned bit, unsigned *seen, unsigned *broken) {
  const char *at = r->scan.at;
  char *text = r->text;
  if (*seen & bit && !*r->flaw)
    snprintf(r->flaw, FLAW_MAX, "\"%s\" is there twice", member->name);
  if (member->read(r)) {
    *seen |= bit;
    return true;
  }
  *broken |= bit;
  r->text = text;
  r->scan.at = at;
  r->scan.problem = NULL;
  return json_scan_value(&r->scan, NULL) || syntax(r);
}

/* Reads an object by a table. Of a member that is there twice the last one counts, as with every reader of JSON. */
static bool read_object(struct reader *r, const struct member *table, size_t count, unsigned *seen, unsigned *broken) {
  bool first = true;
  if (!json_scan_enter(&r->scan))
    return syntax(r);
  while (json_scan_key(&r->scan, &first, r->text, NULL)) {
    size_t i = 0;
    while (i < count && strcasecmp(table[i].name, r->text) != 0)
      i++;
    if (i == count || (table[i].null_means_absent && json_scan_peek(&r->scan) == SCAN_NULL)) {
      if (!json_scan_value(&r->scan, NULL))
        return syntax(r);
    } else if (!read_value(r, &table[i], 1u << i, seen, broken)) {
      return false;
    }
  }
  return !r->scan.problem || syntax(r);
}

/* An error that is a text is taken for its message. */
static bool read_error(struct reader *r) {
  unsigned seen = 0, broken = 0;
  if (json_scan_peek(&r->scan) == SCAN_OBJECT)
    return read_object(r, error_members, ARRAY_LEN(error_members), &seen, &broken);
  wrong(r, "error", "an object with class, message and stack");
  return json_scan_peek(&r->scan) == SCAN_STRING && read_message(r);
}

/* --- what is no JSON --- */

/* known: what the strict reader read, which stays; of id and attempt no other value may be there then. */
static void salvage_member(struct reader *r, unsigned known, const struct duebox_bytes *key,
                           const struct duebox_bytes *value, bool text) {
  double number = 0;
  for (unsigned i = r->called ? MEMBER_STATUS : MEMBER_ID; i <= MEMBER_CELERY_ID; i++) {
    bool ok = strlen(members[i].name) == key->len && strncasecmp(members[i].name, key->data, key->len) == 0;
    if (!ok || (i >= MEMBER_STATUS && known & 1u << i))
      continue;
    if (i == MEMBER_ID) {
      ok = record_is_id(value->data, value->len) && set_id(r, value->data, value->len);
    } else if (i == MEMBER_ATTEMPT) {
      bool is_number = number_of(value->data, value->len, &number);
      ok = set_attempt(r, is_number, number);
    } else if (i == MEMBER_STATUS) {
      ok = text && set_status(r, value->data, value->len);
    } else if (i == MEMBER_CELERY_ID) {
      r->celery = true;
    }
    if (known & 1u << i)
      continue;
    *(ok ? &r->seen : &r->broken) |= 1u << i;
  }
}

/* Where it is a guess what belongs to the record and what to something within it: an id or attempt that the strict
 * reader did not come to, or that is missing, is in doubt as soon as another one is anywhere, however deep. */
static void doubt_identity(struct reader *r, unsigned known, bool ended) {
  const size_t len = (size_t)(r->scan.end - r->scan.start);
  char attempt[16] = "";
  if (r->called)
    return;
  if (r->record->attempt)
    snprintf(attempt, sizeof attempt, "%u", r->record->attempt);
  const char *const values[] = {[MEMBER_ID] = r->record->message_id, [MEMBER_ATTEMPT] = attempt};
  for (unsigned i = MEMBER_ID; i <= MEMBER_ATTEMPT; i++)
    if (!(known & 1u << i) &&
        ((!ended && r->seen & 1u << i) || json_salvage_other(r->scan.start, len, members[i].name, values[i])))
      (void)two_of(r, 1u << i, members[i].name);
}

/* What the strict reader did not come to. A "status" of something within the record is not the consumer's word about
 * the task, whatever else is broken; nor is any where the end of the record is in doubt. */
static void salvage(struct reader *r) {
  struct json_salvage s;
  struct duebox_bytes key, value;
  bool text;
  if (!json_salvage_start(&s, r->scan.start, (size_t)(r->scan.end - r->scan.start)))
    return;
  unsigned known = r->seen;
  while (json_salvage_next(&s, &key, &value, &text))
    salvage_member(r, known, &key, &value, text);
  bool unsure = s.unsure, ended = json_salvage_ended(&s);
  if (!(known & 1u << MEMBER_STATUS) && !ended)
    r->doubtful |= is_status(r->status, strlen(r->status));
  if (unsure || !ended)
    doubt_identity(r, known, ended);
}

/* --- what it means --- */

static bool judge_status(struct reader *r, struct err *err) {
  if (r->doubtful)
    return err_set(err, RECORD_DOUBTFUL, "it cannot be told which \"status\" is meant: %s", r->flaw);
  for (size_t i = 0; r->celery && i < ARRAY_LEN(celery_states); i++)
    if (strcmp(celery_states[i].word, r->status) == 0) {
      r->record->status = celery_states[i].status;
      return true;
    }
  for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
    if (strcasecmp(statuses[i], r->status) == 0) {
      r->record->status = (enum result_status)i;
      return true;
    }
  if ((r->seen | r->broken) & 1u << MEMBER_STATUS)
    return err_set(err, 1, "\"status\" must be one of done, retry, fail, progress");
  return err_set(err, 1, "%s", *r->flaw ? r->flaw : "\"status\" is missing");
}

/* Which task and attempt it is about. */
static bool judge_identity(struct reader *r, const struct record_road *road, struct err *err) {
  struct result_record *record = r->record;
  bool other_id = road->message_id && record->message_id[0] && strcmp(record->message_id, road->message_id) != 0;
  bool other_attempt = road->attempt && record->attempt && record->attempt != road->attempt;
  bool unreadable = (r->broken | r->unsure) & (1u << MEMBER_ID | 1u << MEMBER_ATTEMPT);
  if (road->binding && (other_id || other_attempt || unreadable))
    return err_set(err, 1, "\"id\" and \"attempt\" must be those of the URL: %s and %u", road->message_id,
                   road->attempt);
  if (r->unsure & 1u << MEMBER_ATTEMPT)
    return err_set(err, 1, "it cannot be told which \"attempt\" is meant: %s", r->flaw);
  if (r->unsure & 1u << MEMBER_ID)
    return err_set(err, 1, "it cannot be told which \"id\" is meant: %s", r->flaw);
  if (road->attempt)
    record->attempt = road->attempt;
  if (road->message_id && !record->message_id[0])
    snprintf(record->message_id, sizeof record->message_id, "%s", road->message_id);
  if (!record->message_id[0])
    return err_set(err, 1, "%s", r->broken & 1u << MEMBER_ID ? r->flaw : "\"id\" is missing");
  if (!record->attempt && r->broken & 1u << MEMBER_ATTEMPT)
    return err_set(err, 1, "\"attempt\" must be " ATTEMPT_WANTED);
  if (!record->attempt && !road->message_id)
    return err_set(err, 1, "\"attempt\" is missing");
  return true;
}

static void judge_rest(struct reader *r, const struct record_road *road) {
  struct result_record *record = r->record;
  record->row = road->row;
  record->version = road->version;
  record->current_only = road->current_only;
  record->entry = road->entry;
  if (*r->flaw)
    record->error_class = RECORD_BROKEN;
  if (road->checkpoint_max && record->checkpoint_len > road->checkpoint_max) {
    snprintf(r->flaw, FLAW_MAX, "the checkpoint has %zu bytes, more than engine.max_checkpoint (%zu); it is not kept",
             record->checkpoint_len, road->checkpoint_max);
    record->error_class = RECORD_CHECKPOINT;
    record->checkpoint = NULL;
    record->checkpoint_len = 0;
  }
  if (!*r->flaw)
    return;
  record->flaw = r->flaw;
  if (!record->error_message)
    record->error_message = r->flaw;
}

bool result_record_parse(const char *text, size_t len, const struct record_road *road, struct result_record *out,
                         struct err *err) {
  *out = (struct result_record){.retry_in_ms = -1, .extend_ms = -1, .progress = -1};
  struct reader r = {.scan = json_scan_start(text, len), .record = out, .called = road->attempt > 0 && !road->binding};
  out->memory = malloc(FLAW_MAX + len + 1); /* no text is longer than it was in JSON with its quotes */
  if (!out->memory)
    return err_set(err, 1, "out of memory for a result record");
  r.flaw = out->memory;
  r.flaw[0] = '\0';
  r.text = out->memory + FLAW_MAX;
  bool whole = read_object(&r, members, ARRAY_LEN(members), &r.seen, &r.broken);
  if (!whole || (!json_scan_end(&r.scan) && !syntax(&r)))
    salvage(&r);
  if (judge_status(&r, err) && judge_identity(&r, road, err)) {
    judge_rest(&r, road);
    return true;
  }
  result_record_free(out);
  return false;
}

void result_record_free(struct result_record *record) {
  free(record->memory);
  record->memory = NULL;
  record->error_class = record->error_message = record->error_stack = NULL;
  record->checkpoint = record->result_json = record->flaw = NULL;
  record->checkpoint_len = record->result_json_len = 0;
}
