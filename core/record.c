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
  unsigned unsure; /* of id, attempt and status: it cannot be told which of two is meant */
  bool celery;     /* it is a record of Celery's result backend, with words of its own */
  char status[16]; /* the word, "" = none */
  /* of a record that is no valid JSON: */
  const char *resume;                 /* behind the last member of the record that surely ended, NULL = there is none */
  struct result_record before;        /* what stands before it says */
  unsigned certain;                   /* bits of what stands before it, or before the first doubt */
  unsigned useless;                   /* the same of what could not be used */
  char rival[MEMBER_STATUS + 1][160]; /* of what is unsure: what it cannot be told apart from */
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

const char *result_stale_text(enum result_status status, bool current_only) {
  if (current_only)
    return "the task is in a later attempt";
  return status == RESULT_DONE ? "the task may have had another content in this attempt: it was changed by SQL, or "
                                 "brought back; only what is said of its current attempt counts"
                               : "the task is in a later attempt; only a success of this one would count";
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
    if (is_status(r->status, strlen(r->status)) || is_status(word, len))
      r->unsure |= 1u << MEMBER_STATUS;
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
    return wrong(r, "result", "a JSON value, nested 32 levels deep at most, without \\u0000 or half a surrogate pair");
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

/* A response that has one is of a hook that starts a Celery task: {"task_id": .., "status": "PENDING"}. */
static bool read_celery_id(struct reader *r) {
  r->celery = !r->called;
  return json_scan_value(&r->scan, NULL) || syntax(r);
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
  for (const char *at = r->scan.at; json_scan_key(&r->scan, &first, r->text, NULL); at = r->scan.at) {
    size_t i = 0;
    if (table == members) { /* behind what was read so far there is a comma, and a name */
      r->resume = at;
      r->before = *r->record;
      r->certain = *seen;
      r->useless = *broken;
    }
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

enum { SALVAGED_MAX = 6 * RECORD_ID_MAX + 1 }; /* of what counts, if all of it is escaped */

/* A string means what it means in JSON; in single quotes only where nothing in it could have needed a backslash. */
static bool salvage_text(struct duebox_bytes *text, char room[SALVAGED_MAX]) {
  struct json_scan scan = json_scan_start(text->data - 1, text->len + 2);
  if (*scan.start == '\'')
    return !memchr(text->data, '\\', text->len) && !memchr(text->data, '\'', text->len);
  if (text->len >= SALVAGED_MAX || !json_scan_string(&scan, room, &text->len) || !json_scan_end(&scan))
    return false;
  text->data = room;
  return true;
}

static bool salvage_value(struct reader *r, unsigned member, struct duebox_bytes value, bool text) {
  double number = 0;
  char room[SALVAGED_MAX];
  if (text ? !salvage_text(&value, room) : !number_of(value.data, value.len, &number))
    return false;
  if (member == MEMBER_STATUS)
    return text && set_status(r, value.data, value.len);
  if (member == MEMBER_ID)
    return record_is_id(value.data, value.len) && set_id(r, value.data, value.len);
  bool is_number = number_of(value.data, value.len, &number);
  return set_attempt(r, is_number, number);
}

/* A member of a record that is no valid JSON. One that the strict reader could use and the salvage cannot is where the
 * defect is. */
static void salvage_member(struct reader *r, const struct duebox_bytes *key, const struct duebox_bytes *value,
                           bool text, bool certain) {
  for (unsigned i = MEMBER_ID; i <= MEMBER_CELERY_ID; i++) {
    const unsigned bit = 1u << i;
    bool null = !text && members[i].null_means_absent && value->len == 4 && memcmp(value->data, "null", 4) == 0;
    if (strlen(members[i].name) != key->len || strncasecmp(members[i].name, key->data, key->len) != 0 || null)
      continue;
    if (i == MEMBER_CELERY_ID)
      r->celery = !r->called;
    else if (r->called && i != MEMBER_STATUS)
      continue;
    else if (salvage_value(r, i, *value, text))
      r->seen |= bit;
    else
      *(r->seen & bit || (i == MEMBER_STATUS && text) ? &r->unsure : &r->broken) |= bit;
    if (certain)
      r->certain |= bit;
  }
}

/* Whether a value that was found by searching the text may be meant instead of the record's own. Beside one that stands
 * before the defect only such as could be used; beside one that is a guess any other. */
static bool is_rival(const struct reader *r, unsigned member, bool guess, struct duebox_bytes *value) {
  const char *own = member == MEMBER_ID ? r->record->message_id : r->status;
  size_t own_len = strlen(own);
  double number = 0;
  if (value->len == own_len && memcmp(own, value->data, own_len) == 0)
    return false;
  size_t len = 0; /* who forgets a quote has values that go on */
  while (len < value->len && (unsigned char)value->data[len] > ' ' && !strchr(",}]", value->data[len]))
    len++;
  value->len = len;
  if (member == MEMBER_ID)
    return guess || record_is_id(value->data, len);
  if (member == MEMBER_STATUS)
    return !(own_len == len && strncasecmp(own, value->data, len) == 0) &&
           (is_status(value->data, len) || (guess && is_status(own, own_len)));
  if (!number_of(value->data, len, &number))
    return guess;
  return number < r->record->attempt || number > r->record->attempt;
}

/* Says what it cannot be told apart from, in characters that every log and column takes. */
static void note_rival(struct reader *r, unsigned member, const struct duebox_bytes *value) {
  const char *own = member == MEMBER_ID ? r->record->message_id : r->status;
  char attempt[16];
  snprintf(attempt, sizeof attempt, "%.0u", r->record->attempt);
  if (member == MEMBER_ATTEMPT)
    own = attempt;
  int len = snprintf(r->rival[member], sizeof r->rival[member], ", %s or %.*s at byte %zu", *own ? own : "none",
                     (int)(value->len < RECORD_ID_MAX ? value->len : RECORD_ID_MAX), value->data,
                     (size_t)(value->data - r->scan.start));
  for (int i = 0; i < len && r->rival[member][i]; i++)
    if (r->rival[member][i] < ' ' || r->rival[member][i] > '~')
      r->rival[member][i] = '?';
}

/* From a defect on that leaves open what belongs to what, quotes prove nothing: the text is searched for other values,
 * also within strings and whatever is nested. A value that was found behind the defect is a guess, so for that one the
 * whole text is searched; none is taken where it may be another object's. */
static void doubt(struct reader *r, const struct json_salvage *s) {
  for (unsigned i = r->called ? MEMBER_STATUS : MEMBER_ID; i <= MEMBER_STATUS; i++) {
    const unsigned bit = 1u << i;
    const bool guess = r->seen & bit & ~r->certain;
    const char *at = guess || r->broken & bit ? r->scan.start : s->doubt;
    struct duebox_bytes value;
    if (guess && s->mixed && (i != MEMBER_STATUS || is_status(r->status, strlen(r->status))))
      r->unsure |= bit;
    while (!*r->rival[i] && json_salvage_search(&at, s->end, members[i].name, &value))
      if (is_rival(r, i, guess, &value)) {
        r->unsure |= bit;
        note_rival(r, i, &value);
      }
  }
}

/* An id that is a guess may be that of something else: the correlation id has to agree, or, where there is none, the
 * end of the record to be in sight. */
static bool is_backed(const struct reader *r, const struct json_salvage *s, const char *correlation_id) {
  return correlation_id ? strcmp(r->record->message_id, correlation_id) == 0 : s->closed;
}

/* What the strict reader did not come to: from the last member on that it began. */
static void salvage(struct reader *r, const char *correlation_id) {
  struct json_salvage s = {.at = r->resume, .end = r->scan.end, .apart = true};
  struct duebox_bytes key, value;
  bool text;
  if (!s.at && !json_salvage_start(&s, r->scan.start, (size_t)(r->scan.end - r->scan.start)))
    return;
  const unsigned counted = 1u << MEMBER_STATUS | (r->called ? 0 : 1u << MEMBER_ID | 1u << MEMBER_ATTEMPT);
  const unsigned touched = r->seen & ~r->certain & counted; /* the defect may be in it: it is read again */
  r->seen &= ~touched;
  r->broken = r->useless;
  while (json_salvage_next(&s, &key, &value, &text))
    salvage_member(r, &key, &value, text, !s.doubt);
  r->unsure |= (touched & ~r->seen) | (r->seen & r->broken & counted); /* of two, one that cannot be read, too */
  if (s.excess)
    r->certain = 0;
  if (s.doubt)
    doubt(r, &s);
  if (r->seen & ~r->certain & counted & 1u << MEMBER_ID && !is_backed(r, &s, correlation_id))
    r->unsure |= 1u << MEMBER_ID;
}

/* --- what was too large to be kept as a whole --- */

enum { CUT_SHOWS = 12 }; /* bytes before the cut from which on it breaks the JSON: half a pair of \u escapes, at most */

/* Whether the JSON is sound as far as it goes. What the strict reader has read is then the record's own, however much
 * within its large part looks like another status; but the member at the cut may go on, as a number does. */
static bool ends_at_cut(struct reader *r, const struct record_road *road) {
  if (!road->full_len || r->scan.end - r->scan.at > CUT_SHOWS)
    return false;
  *r->record = r->before;
  r->seen = r->certain;
  r->broken = r->useless;
  return true;
}

/* --- what it means --- */

static bool cannot_tell(const struct reader *r, unsigned member, struct err *err) {
  return err_set(err, member == MEMBER_STATUS ? RECORD_DOUBTFUL : 1, "it cannot be told which \"%s\" is meant%s: %s",
                 members[member].name, r->rival[member], r->flaw);
}

static bool judge_status(struct reader *r, struct err *err) {
  if (r->unsure & 1u << MEMBER_STATUS)
    return cannot_tell(r, MEMBER_STATUS, err);
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
  for (unsigned i = MEMBER_ID; i <= MEMBER_ATTEMPT; i++)
    if (r->unsure & 1u << i)
      return cannot_tell(r, i, err);
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

/* Its text is at the beginning of the record's memory. */
static void set_flaw(struct result_record *record, const char *error_class) {
  record->error_class = error_class;
  record->flaw = record->memory;
  if (!record->error_message)
    record->error_message = record->flaw;
}

void record_limit_checkpoint(struct result_record *record, size_t most) {
  if (record->checkpoint_len <= most)
    return;
  snprintf(record->memory, FLAW_MAX,
           "the checkpoint has %zu bytes, more than the %zu that engine.max_checkpoint and the plugin of its route "
           "allow; it is not kept",
           record->checkpoint_len, most);
  set_flaw(record, RECORD_CHECKPOINT);
  record->checkpoint = NULL;
  record->checkpoint_len = 0;
}

static void judge_rest(struct reader *r, const struct record_road *road) {
  struct result_record *record = r->record;
  record->row = road->row;
  record->version = road->version;
  record->lane = road->lane;
  record->current_only = road->current_only;
  record->entry = road->entry;
  if (*r->flaw)
    set_flaw(record, RECORD_BROKEN);
  if (road->checkpoint_max)
    record_limit_checkpoint(record, road->checkpoint_max);
}

bool result_record_parse(const char *text, size_t len, const struct record_road *road, struct result_record *out,
                         struct err *err) {
  *out = (struct result_record){.retry_in_ms = -1, .extend_ms = -1, .progress = -1};
  static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark, as .NET writes it: RFC 8259, section 8.1 */
  if (len >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0) {
    text += sizeof mark - 1;
    len -= sizeof mark - 1;
  }
  struct reader r = {.scan = json_scan_start(text, len), .record = out, .called = road->attempt > 0 && !road->binding};
  out->memory = malloc(FLAW_MAX + len + 1); /* no text is longer than it was in JSON with its quotes */
  if (!out->memory)
    return err_set(err, 1, "out of memory for a result record");
  r.before = *out;
  r.flaw = out->memory;
  r.flaw[0] = '\0';
  r.text = out->memory + FLAW_MAX;
  bool whole = read_object(&r, members, ARRAY_LEN(members), &r.seen, &r.broken);
  if ((!whole && !ends_at_cut(&r, road)) || (whole && !json_scan_end(&r.scan) && !syntax(&r)))
    salvage(&r, road->message_id);
  if (judge_status(&r, err) && judge_identity(&r, road, err)) {
    if (road->full_len)
      snprintf(r.flaw, FLAW_MAX, "the record has %zu bytes, more than max_record; behind the first %zu all is lost",
               road->full_len, len);
    judge_rest(&r, road);
    return true;
  }
  if (road->full_len)
    err_wrap(err, "the record has %zu bytes, more than max_record, and its beginning does not say enough",
             road->full_len);
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
