/* SPDX-License-Identifier: MIT */
#include "store_double_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "outbox/settle_judge.h"

enum { ERROR_MAX = 60000, ERROR_CUT = 1000, CLASS_MAX = 64 };
enum { DENIED = 1142, REFUSED = 1644, TOO_LONG = 1406 };
#define DELAY_MAX INT64_C(315360000000000)
#define KEEP_MAX INT64_C(3153600000000000)

bool decision_possible(const struct decision *decision) {
  return task_state_next(decision->from, decision->event) != TASK_STATES;
}

static bool wants_history(const struct decision *d) {
  return settle_ends(d) && (d->event != EVENT_DONE || (d->keep_us > 0 && d->form < DECISION_NO_HISTORY));
}
static bool was_sent(const struct decision *d) {
  return d->sent || d->record || (d->changed && d->from == TASK_AWAITING);
}
static bool wants_attempt(const struct decision *d) {
  return (d->changed ? was_sent(d) : d->log_attempt) && d->form < DECISION_NO_LINES;
}
static bool wants_alert(const struct decision *d) {
  return !d->changed && d->event == EVENT_DEAD && d->alert_route && d->form < DECISION_NO_ALERT;
}
static bool is_retry(const struct decision *d) {
  return !d->changed && (d->event == EVENT_RETRY || d->event == EVENT_DEFER);
}
static bool is_head(const struct decision *d) {
  return (is_retry(d) || (!d->changed && d->event == EVENT_RELEASE)) && d->head && d->form < DECISION_NO_HEAD;
}
static uint32_t attempt_of(const struct decision *d) {
  return d->record && d->record->attempt ? d->record->attempt : d->attempt;
}

unsigned decision_tables(const struct decision *d) {
  return (wants_history(d) ? LOCK_HISTORY : 0u) | (wants_attempt(d) ? LOCK_ATTEMPTS : 0u) |
         (is_head(d) ? LOCK_HEADS : 0u);
}

unsigned decision_statements(const struct decision *d) {
  return 1u + wants_history(d) + wants_attempt(d) + is_head(d) + wants_alert(d);
}

bool decision_reduce(struct decision *d, int code) {
  const struct {
    enum decision_form form;
    bool helps;
  } steps[] = {{DECISION_CUT, wants_history(d) || wants_attempt(d)},
               {DECISION_OWN_ID, wants_alert(d)},
               {DECISION_NO_ALERT, wants_alert(d)},
               {DECISION_NO_TEXTS, d->error || d->record},
               {DECISION_NO_LINES, wants_attempt(d) || (d->sent && d->gone)},
               {DECISION_NO_HEAD, is_head(d)},
               {DECISION_NO_LINES_CUT, wants_history(d)},
               {DECISION_NO_HISTORY, d->event == EVENT_DONE && wants_history(d)}};
  for (size_t i = 0; i < ARRAY_LEN(steps); i++)
    if (steps[i].form > d->form && steps[i].helps && settle_form_helps(steps[i].form, code)) {
      d->form = steps[i].form;
      return true;
    }
  return false;
}

bool decision_fits(const struct decision *d, const struct row *row, bool versioned) {
  char changed_at[TABLE_TIME_LEN + 1];
  if (!row || !blob_is(row->text[ROW_MESSAGE_ID], d->message_id.data, d->message_id.len) || row->state != d->from ||
      row->attempt != d->attempt_from || row->shard != d->shard)
    return false;
  if (!versioned || !d->changed_at.len)
    return true;
  table_time_text(row->changed_us, changed_at);
  return d->changed_at.len == TABLE_TIME_LEN && memcmp(changed_at, d->changed_at.data, TABLE_TIME_LEN) == 0;
}

/* --- texts --- */

static const struct result_record *said(const struct decision *d) {
  return d->form < DECISION_NO_TEXTS ? d->record : NULL;
}

static void put_cut(struct blob **at, const char *text, size_t max) {
  blob_set(at, text, text ? strnlen(text, max) : 0);
}

static void put_error(struct blob **at, const struct decision *d) {
  const struct result_record *record = said(d);
  if (!record || !record->error_stack) {
    put_cut(at, d->error, d->form < DECISION_NO_TEXTS ? ERROR_MAX : ERROR_CUT);
    return;
  }
  size_t error = d->error ? strlen(d->error) : 0, stack = strlen(record->error_stack);
  char *both = calloc(1, error + stack + 2);
  if (!both)
    world_fail("no memory for an error's text");
  (void)snprintf(both, error + stack + 2, "%s%s%s", d->error ? d->error : "", d->error ? "\n" : "",
                 record->error_stack);
  put_cut(at, both, ERROR_MAX);
  free(both);
}

/* A trigger, or a right that is missing. */
static int refusal(const struct table *db, unsigned wants, uint64_t id) {
  bool refused = wants & db->refuses && (!db->refuses_id || db->refuses_id == id);
  return !refused ? 0 : db->denies ? DENIED : REFUSED;
}

int row_refused(const struct table *db, uint64_t id) { return refusal(db, REFUSE_ROWS, id); }

int decision_refused(const struct table *db, const struct decision *d) {
  const struct result_record *record = said(d);
  unsigned wants = decision_tables(d) | (wants_alert(d) ? REFUSE_ALERTS : 0u) | REFUSE_ROWS;
  int code = refusal(db, wants, d->id);
  if (code)
    return code;
  size_t error = d->error ? strnlen(d->error, d->form < DECISION_NO_TEXTS ? ERROR_MAX : ERROR_CUT) : 0;
  size_t longest = record && record->result_json_len > error ? record->result_json_len : error;
  longest = record && record->checkpoint_len > longest ? record->checkpoint_len : longest;
  bool cut = settle_cuts(d->form) && wants_history(d);
  return db->refused_bytes && longest > db->refused_bytes && !cut ? TOO_LONG : 0;
}

/* --- what is written --- */

static int64_t clock_of(const struct tx *tx) { return table_clock(tx->db); }

static const char *kind_of(const struct decision *d) {
  if (d->record)
    return "result";
  return d->event == EVENT_DONE || d->event == EVENT_PUBLISHED ? "success" : "failure";
}

static void put_claimer(struct tx *tx, struct blob **at, const struct row *row) {
  const struct shard_entry *shard = &tx->db->data.shards[row->shard];
  if (row->text[ROW_CLAIMED_BY])
    blob_share(at, row->text[ROW_CLAIMED_BY]);
  else if (shard->owned)
    blob_put(at, shard->owner);
}

static void add_line(struct tx *tx, const struct row *row, const struct decision *d) {
  struct line *line = record_new(&tx->db->data.attempts);
  const struct result_record *record = said(d);
  blob_share(&line->message_id, row->text[ROW_MESSAGE_ID]);
  blob_share(&line->route, row->text[ROW_ROUTE]);
  put_claimer(tx, &line->claimed_by, row);
  put_cut(&line->error_class, d->error_class, CLASS_MAX);
  put_error(&line->error, d);
  if (record)
    blob_set(&line->result, record->result_json, record->result_json_len);
  line->task_id = row->id;
  line->attempt = attempt_of(d);
  line->kind = kind_of(d);
  line->outcome = d->changed ? "changed" : task_event_text(d->event);
  line->due_us = row_due_us(row);
  line->published_us = d->published_us ? d->published_us : row->published_us;
  line->finished_us = clock_of(tx);
  tx_add(tx, &tx->db->data.attempts, line);
}

static void add_alert(struct tx *tx, const struct row *row, const struct decision *d) {
  char payload[512];
  (void)snprintf(payload, sizeof payload,
                 "{\"message_id\": \"%s\", \"route\": \"%s\", \"attempt\": %u, \"failures\": %u}",
                 row->text[ROW_MESSAGE_ID]->data, row->text[ROW_ROUTE]->data, d->attempt, d->failures);
  struct row *alert = user_insert(tx, d->alert_route, payload, strlen(payload));
  blob_share(&alert->text[ROW_TASK_KEY], row->text[ROW_TASK_KEY]);
}

static void put_said(struct row *image, const struct decision *d) {
  const struct result_record *record = said(d);
  if (record && record->progress >= 0)
    image->progress = record->progress;
  if (record && record->checkpoint)
    blob_set(&image->text[ROW_CHECKPOINT], record->checkpoint, record->checkpoint_len);
}

static struct row *history_of(struct tx *tx, const struct row *row, const struct decision *d) {
  struct row *over = record_copy(&tx->db->data.history, row);
  const struct result_record *record = said(d);
  over->due_us = row_first_due_us(row);
  over->state = task_state_next(d->from, d->event);
  over->attempt = d->attempt;
  over->failures = d->failures;
  over->recoveries = d->recoveries;
  if (d->event != EVENT_CANCEL)
    put_claimer(tx, &over->text[ROW_CLAIMED_BY], row);
  if (d->published_us)
    over->published_us = d->published_us;
  over->finished_us = clock_of(tx);
  over->keep_until_us = clock_of(tx) + (d->keep_us < 0 ? 0 : d->keep_us < KEEP_MAX ? d->keep_us : KEEP_MAX);
  if (d->error_class)
    put_cut(&over->text[ROW_ERROR_CLASS], d->error_class, CLASS_MAX);
  if (d->error || (record && record->error_stack))
    put_error(&over->text[ROW_LAST_ERROR], d);
  put_said(over, d);
  if (record)
    blob_set(&over->text[ROW_RESULT], record->result_json, record->result_json_len);
  return over;
}

static void add_head(struct tx *tx, const struct row *row, const struct decision *d) {
  struct head_row *head = record_new(&tx->db->data.heads);
  blob_share(&head->route, row->text[ROW_ROUTE]);
  blob_share(&head->order_key, row->text[ROW_ORDER_KEY]);
  blob_share(&head->message_id, row->text[ROW_MESSAGE_ID]);
  head->id = row->id;
  head->shard = row->shard;
  head->failures = d->failures;
  tx_add(tx, &tx->db->data.heads, head);
}

static int64_t in_a_while(const struct tx *tx, int64_t delay_us) {
  return clock_of(tx) + (delay_us < 0 ? 0 : delay_us < DELAY_MAX ? delay_us : DELAY_MAX);
}

static void put_counters(struct row *image, const struct decision *d) {
  image->attempt = d->attempt;
  image->failures = d->failures;
  image->recoveries = d->recoveries;
}

static void unclaim(struct row *image, enum task_state state) {
  image->state = state;
  image->lease_until_us = TIME_NULL;
  blob_put(&image->text[ROW_CLAIMED_BY], NULL);
}

/* Recorded: a copy of what is there has left. */
static void record_sent(struct row *image, const struct row *row) {
  image->changed_us = row->attempt == 0 || row_untouched(row) ? row->created_us : row->created_us - 1;
  image->has_digest = true;
  image->sent_digest = row_content(row);
}

static void put_retry(struct tx *tx, struct row *image, const struct row *row, const struct decision *d) {
  if (was_sent(d))
    record_sent(image, row);
  image->first_due_us = row_first_due_us(row);
  image->due_us = in_a_while(tx, d->delay_us);
  unclaim(image, TASK_SCHEDULED);
  put_counters(image, d);
  if (d->published_us)
    image->published_us = d->published_us;
  put_cut(&image->text[ROW_ERROR_CLASS], d->error_class, CLASS_MAX);
  put_error(&image->text[ROW_LAST_ERROR], d);
  put_said(image, d);
}

static void put_published(struct tx *tx, struct row *image, const struct row *row, const struct decision *d) {
  record_sent(image, row);
  if (!row->has_epoch)
    image->claim_epoch = 0;
  image->has_epoch = true;
  image->answer_to = d->answer_to;
  image->state = TASK_AWAITING;
  image->lease_until_us = in_a_while(tx, d->delay_us);
  put_counters(image, d);
  if (d->published_us)
    image->published_us = d->published_us;
  put_said(image, d);
}

/* A waiting row that is given back although it was not claimed goes where somebody asked for. */
static void put_elsewhere(struct tx *tx, struct row *image, const struct row *row) {
  struct blob *host = row->text[ROW_MOVE_TO_HOST] ? row->text[ROW_MOVE_TO_HOST] : row->text[ROW_TARGET_HOST];
  if (!row_moves(row))
    return;
  if (host->len)
    image->shard = SHARD_BOUND;
  else if (row->move_to_shard >= 0 && row->move_to_shard < SHARD_BOUND)
    image->shard = (uint8_t)row->move_to_shard;
  else if (row->shard == SHARD_BOUND)
    image->shard = table_shard_of(tx->db, row);
  blob_share(&image->text[ROW_TARGET_HOST], host);
  image->move_to_shard = -1;
  blob_put(&image->text[ROW_MOVE_TO_HOST], NULL);
}

static void put_move(struct tx *tx, struct row *image, const struct row *row, const struct decision *d) {
  enum task_state to = task_state_next(d->from, d->event);
  if (d->from == TASK_SCHEDULED && to == TASK_SCHEDULED)
    put_elsewhere(tx, image, row);
  unclaim(image, to);
  put_counters(image, d);
  if (d->from == TASK_SCHEDULED && to == TASK_SCHEDULED && row_moves(row) && image->recoveries == 0 &&
      d->attempt == 0 && row_ripe_us(row) <= tx->db->data.shards[row->shard].abandoned_us)
    image->recoveries = 1;
  if (d->error_class)
    put_cut(&image->text[ROW_ERROR_CLASS], d->error_class, CLASS_MAX);
  if (d->error)
    put_error(&image->text[ROW_LAST_ERROR], d);
}

static void put_progress(struct tx *tx, struct row *image, const struct decision *d) {
  put_said(image, d);
  if (image->lease_until_us != TIME_NULL)
    image->lease_until_us = later(image->lease_until_us, in_a_while(tx, d->delay_us));
}

static void put_changed(struct row *image, const struct decision *d) {
  unclaim(image, TASK_SCHEDULED);
  image->attempt = d->attempt;
  image->revision += was_sent(d);
  image->has_digest = false;
}

void decision_write(struct tx *tx, const struct row *row, const struct decision *d) {
  struct list *rows = &tx->db->data.rows;
  if (wants_attempt(d))
    add_line(tx, row, d);
  if (wants_alert(d))
    add_alert(tx, row, d);
  if (is_head(d))
    add_head(tx, row, d);
  if (settle_ends(d)) {
    tx_end_row(tx, row, wants_history(d) ? history_of(tx, row, d) : NULL, (int)d->event,
               task_state_next(d->from, d->event));
    return;
  }
  struct row *image = record_copy(rows, row);
  if (d->changed)
    put_changed(image, d);
  else if (is_retry(d))
    put_retry(tx, image, row, d);
  else if (d->event == EVENT_PUBLISHED)
    put_published(tx, image, row, d);
  else if (d->event == EVENT_PROGRESS)
    put_progress(tx, image, d);
  else
    put_move(tx, image, row, d);
  tx_put_row(tx, image, d->changed ? (int)EVENT_CHANGED : (int)d->event);
}

static bool has_ended(const struct table *db, const struct decision *d) {
  for (size_t i = 0; i < db->data.attempts.count; i++) {
    const struct line *line = db->data.attempts.at[i];
    if (blob_is(line->message_id, d->message_id.data, d->message_id.len) &&
        (line->attempt == attempt_of(d) || (strcmp(line->kind, "result") == 0 && (strcmp(line->outcome, "done") == 0 ||
                                                                                  strcmp(line->outcome, "dead") == 0))))
      return true;
  }
  for (size_t i = 0; i < db->data.history.count; i++) {
    const struct row *over = db->data.history.at[i];
    if (blob_is(over->text[ROW_MESSAGE_ID], d->message_id.data, d->message_id.len) && over->attempt >= attempt_of(d))
      return true;
  }
  return false;
}

void decision_write_removed(struct tx *tx, const struct decision *d) {
  if (has_ended(tx->db, d))
    return;
  struct line *line = record_new(&tx->db->data.attempts);
  const struct shard_entry *shard = &tx->db->data.shards[d->shard];
  blob_set(&line->message_id, d->message_id.data, d->message_id.len);
  blob_set(&line->route, d->sent->route.data, d->sent->route.len);
  if (shard->owned)
    blob_put(&line->claimed_by, shard->owner);
  line->task_id = d->id;
  line->attempt = attempt_of(d);
  line->kind = kind_of(d);
  line->outcome = "sent_then_removed";
  line->due_us = d->sent->due_us;
  line->published_us = d->published_us ? d->published_us : TIME_NULL;
  line->finished_us = clock_of(tx);
  tx_add(tx, &tx->db->data.attempts, line);
}
