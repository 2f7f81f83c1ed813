/* SPDX-License-Identifier: MIT */
#include "outbox/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "outbox/db_error.h"
#include "outbox/guard.h"
#include "outbox/row.h"
#include "outbox/settle_judge.h"
#include "outbox/side_tables.h"
#include "outbox/write_group.h"
#include "query.h"

/* A statement's values beyond this are split into several statements; far below any max_allowed_packet. */
enum { VALUES_MAX = 1024 * 1024 };
/* Whole numbers below this are exact, and compared faster, as doubles. */
#define EXACT_DOUBLE (UINT64_C(1) << 53)
/* Fewer rows that get the same than this are cheaper as part of a JSON text than as a statement of their own. */
enum { GROUP_MIN = 8 };
/* What is kept of texts from outside; the columns are TEXT (64 KiB) and VARCHAR(64). */
enum { ERROR_MAX = 60000, ERROR_CUT = 1000, CLASS_MAX = 64 };

bool write_possible(const struct decision *decision) {
  return task_state_next(decision->from, decision->event) != TASK_STATES;
}

static bool wants_history(const struct decision *d) {
  return settle_ends(d) && (d->event != EVENT_DONE || (d->keep_us > 0 && d->form < DECISION_NO_HISTORY));
}
/* Whether a copy of what the row was has left. */
static bool was_sent(const struct decision *d) {
  return d->sent || d->record || (d->changed && d->from == TASK_AWAITING);
}
static bool wants_attempt(const struct decision *d) {
  return (d->changed ? was_sent(d) : d->log_attempt) && d->form < DECISION_NO_LINES;
}
static bool wants_alert(const struct decision *d) {
  return !d->changed && d->event == EVENT_DEAD && d->alert_route && d->form < DECISION_NO_ALERT;
}
static bool is_changed(const struct decision *d) { return d->changed; }
static bool is_retry(const struct decision *d) {
  return !d->changed && (d->event == EVENT_RETRY || d->event == EVENT_DEFER);
}
static bool is_head(const struct decision *d) {
  return (is_retry(d) || (!d->changed && d->event == EVENT_RELEASE)) && d->head && d->form < DECISION_NO_HEAD;
}
static bool is_published(const struct decision *d) { return !d->changed && d->event == EVENT_PUBLISHED; }
static bool is_progress(const struct decision *d) { return !d->changed && d->event == EVENT_PROGRESS; }
static bool is_move(const struct decision *d) {
  return !d->changed && (d->event == EVENT_RELEASE || d->event == EVENT_HOLD || d->event == EVENT_BLOCK);
}

/* What is written for which decisions, in this order: all that reads the row before what changes it. */
static const struct kind {
  const char *statement, *same; /* same: for rows that all get the same; NULL where that is rare */
  bool (*concerns)(const struct decision *d);
  bool uncounted; /* how many rows it changes says nothing; settle_retry counts the same rows */
} kinds[] = {
    {query_settle_attempts, query_settle_attempts_same, wants_attempt, false},
    {query_settle_alert, NULL, wants_alert, false},
    {query_settle_history, query_settle_history_same, wants_history, false},
    {query_settle_head, NULL, is_head, true},
    {query_settle_retry, NULL, is_retry, false},
    {query_settle_published, query_settle_published_same, is_published, false},
    {query_settle_move, NULL, is_move, false},
    {query_settle_progress, NULL, is_progress, false},
    {query_settle_changed, NULL, is_changed, false},
};

unsigned write_tables(const struct decision *d) {
  return (wants_history(d) ? SIDE_HISTORY : 0u) | (wants_attempt(d) ? SIDE_ATTEMPTS : 0u) |
         (is_head(d) ? SIDE_HEADS : 0u);
}

unsigned write_statements(const struct decision *decision) {
  unsigned n = settle_ends(decision);
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    n += kinds[i].concerns(decision);
  return n;
}

bool write_reduce(struct decision *d, int code) {
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

static void add_texts(struct text *row, const struct decision *d) {
  size_t error_max = d->form < DECISION_NO_TEXTS ? ERROR_MAX : ERROR_CUT;
  text_json(row, d->error_class, d->error_class ? strlen(d->error_class) : 0, CLASS_MAX);
  text_puts(row, ",");
  const char *stack = d->record && d->form < DECISION_NO_TEXTS ? d->record->error_stack : NULL;
  if (stack) {
    struct text both = {0};
    text_puts(&both, d->error ? d->error : "");
    text_puts(&both, d->error ? "\n" : "");
    text_puts(&both, stack);
    row->failed = row->failed || both.failed;
    text_json(row, both.failed ? "" : both.data, both.len, ERROR_MAX);
    text_free(&both);
  } else {
    text_json(row, d->error, d->error ? strlen(d->error) : 0, error_max);
  }
}

/* What the consumer said, or nulls. */
static void add_record(struct text *row, const struct result_record *record) {
  char progress[32] = "null";
  if (record && record->progress >= 0)
    snprintf(progress, sizeof progress, "%.9f", record->progress);
  text_puts(row, progress);
  text_puts(row, ",");
  text_json(row, record ? record->checkpoint : NULL, record ? record->checkpoint_len : 0, SIZE_MAX);
  text_puts(row, ",");
  text_json(row, record ? record->result_json : NULL, record ? record->result_json_len : 0, SIZE_MAX);
}

static const char *attempt_kind(const struct decision *d) {
  if (d->record)
    return "result";
  return d->event == EVENT_DONE || d->event == EVENT_PUBLISHED ? "success" : "failure";
}

static const char *outcome(const struct decision *d) { return d->changed ? "changed" : task_event_text(d->event); }

/* One decision as a JSON array; the positions are those that sql/queries/settle_*.sql read. */
static void add_row(struct text *row, const struct decision *d, bool versioned) {
  const int64_t numbers[] = {
      (int64_t)d->from + 1, d->attempt_from, d->shard,      (int64_t)task_state_next(d->from, d->event) + 1,
      d->attempt,           d->failures,     d->recoveries, d->delay_us > 0 ? d->delay_us : 0};
  text_puts(row, "[");
  text_u64(row, d->id);
  for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
    text_puts(row, ",");
    text_i64(row, numbers[i]);
  }
  text_puts(row, d->published_us ? ",\"" : ",null,");
  if (d->published_us) {
    text_time(row, d->published_us);
    text_puts(row, "\",");
  }
  text_i64(row, d->keep_us > 0 ? d->keep_us : 0);
  text_puts(row, ",");
  add_texts(row, d);
  text_puts(row, ",");
  add_record(row, d->form < DECISION_NO_TEXTS ? d->record : NULL);
  text_puts(row, ",");
  text_u64(row, attempt_of(d));
  text_puts(row, ",\"");
  text_puts(row, attempt_kind(d));
  text_puts(row, "\",\"");
  text_puts(row, outcome(d));
  text_puts(row, "\",");
  text_json(row, d->alert_route, d->alert_route ? strlen(d->alert_route) : 0, STORE_ROUTE_MAX);
  text_puts(row, ",");
  /* JSON_TABLE reads no such bytes: of such a row, which can only end, its version tells that it is the same. */
  bool text = sql_is_ascii(d->message_id.data, d->message_id.len);
  text_json(row, text ? d->message_id.data : NULL, d->message_id.len, STORE_ID_MAX + STORE_WIDER);
  text_puts(row, ",");
  text_json(row, versioned && d->changed_at.len ? d->changed_at.data : NULL, d->changed_at.len, SIZE_MAX);
  text_puts(row, was_sent(d) ? ",1" : ",0");
  if (d->answer_to) {
    text_puts(row, ",");
    text_u64(row, d->answer_to);
  }
  text_puts(row, "]");
}

void write_expect(struct writer *w, int64_t rows) { w->expected[w->statements++] = rows; }

bool write_flush(struct writer *w, struct err *err) {
  struct db_result results[DB_RESULTS_MAX];
  if (w->statements == 0)
    return true;
  if (!session_send(w->ss, w->what, results, w->statements, err))
    return false;
  for (size_t i = 0; i < w->statements; i++)
    w->differs = w->differs || (w->expected[i] != ROWS_ANY && results[i].count != (uint64_t)w->expected[i]);
  db_results_free(results, w->statements);
  w->statements = 0;
  session_begin(w->ss);
  return true;
}

bool write_not_taken(const char *what, struct err *err) {
  return err_set(err, DB_E_NOT_TAKEN, "%s: the server has not written all that it was given; %s", what,
                 db_error_cure(DB_E_NOT_TAKEN));
}

bool write_commit(struct writer *w, const struct shard_lease *leases, size_t count, struct err *err) {
  struct db_result results[DB_RESULTS_MAX + 2];
  guard_leases(w->ss, leases, count);
  if (!guard_commit(w->ss, w->what, w->statements + 2, results, err)) {
    w->fenced = err->code == DB_GUARD && w->ss->conn->untouched == w->statements + 1;
    return false;
  }
  db_results_free(results, w->statements + 2);
  return true;
}

/* Adds a statement; sends what is there when the script is full. */
static bool add(struct writer *w, const char *statement, const struct sql_arg *args, int64_t rows, struct err *err) {
  if (w->no_wait)
    session_add_no_wait(w->ss, statement, args);
  else
    session_add(w->ss, statement, args);
  write_expect(w, rows);
  if (w->guarded && rows != ROWS_ANY) {
    guard_rows(w->ss, (uint64_t)rows);
    write_expect(w, 0);
  }
  if (w->statements + 2 <= DB_RESULTS_MAX && w->ss->script.len < VALUES_MAX)
    return true;
  return write_flush(w, err);
}

static const char *ignore_word(const struct decision *d) { return settle_cuts(d->form) ? "IGNORE" : ""; }

/* How far behind the last row the ids begin that are not the counter's: nobody else who takes some is likely to take
 * the same at this moment. */
static uint64_t random_gap(void) { return random_u64() % (1024 * 1024); }

/* Decisions as the rows of one or more JSON texts. */
static bool write_json(struct writer *w, const struct kind *kind, struct decision *const *list, size_t count,
                       struct err *err) {
  struct text *values = &w->ss->part;
  int64_t rows = 0;
  text_clear(values);
  for (size_t i = 0; i < count; i++) {
    text_puts(values, rows++ ? "," : "[");
    add_row(values, list[i], w->versioned);
    if (i + 1 < count && values->len <= VALUES_MAX)
      continue;
    text_puts(values, "]");
    if (values->failed)
      w->ss->script.failed = true;
    const struct sql_arg json = {.name = "rows", .kind = SQL_STRING, .string = values->data, .len = values->len};
    if (!add(w, kind->statement,
             ARGS(json, WORD("content", ROW_CONTENT), WORD("fence", w->fence), WORD("ignore", ignore_word(list[0])),
                  WORD("own_id", list[0]->form == DECISION_OWN_ID ? "TRUE" : "FALSE"),
                  UNSIGNED("far", STORE_ID_MAY_CHANGE), UNSIGNED("gap", random_gap()),
                  UNSIGNED("shard_count", w->ss->conn->shards)),
             kind->uncounted ? ROWS_ANY : rows, err))
      return false;
    text_clear(values);
    rows = 0;
  }
  return true;
}

static void add_removed(struct text *row, const struct decision *d) {
  const struct task *sent = d->sent;
  text_puts(row, "[");
  text_u64(row, d->id);
  text_puts(row, ",");
  text_u64(row, d->shard);
  text_puts(row, ",");
  text_u64(row, attempt_of(d));
  text_puts(row, ",\"");
  text_puts(row, attempt_kind(d));
  text_puts(row, "\",");
  text_json(row, d->message_id.data, d->message_id.len, STORE_ID_MAX + STORE_WIDER);
  text_puts(row, ",");
  text_json(row, sent->route.data, sent->route.len, STORE_ROUTE_MAX);
  text_puts(row, ",\"");
  text_time(row, sent->due_us);
  text_puts(row, d->published_us ? "\",\"" : "\",null]");
  if (d->published_us) {
    text_time(row, d->published_us);
    text_puts(row, "\"]");
  }
}

bool write_removed(struct writer *w, struct decision *const *gone, size_t count, struct err *err) {
  struct text *values = &w->ss->part;
  text_clear(values);
  for (size_t i = 0; i < count; i++) {
    text_puts(values, values->len ? "," : "[");
    add_removed(values, gone[i]);
    if (i + 1 < count && values->len <= VALUES_MAX)
      continue;
    text_puts(values, "]");
    w->ss->script.failed = w->ss->script.failed || values->failed;
    const struct sql_arg json = {.name = "rows", .kind = SQL_STRING, .string = values->data, .len = values->len};
    if (!add(w, query_settle_removed, ARGS(json), ROWS_ANY, err))
      return false;
    text_clear(values);
  }
  return true;
}

static bool is_versioned(const struct writer *w, const struct decision *d) { return w->versioned && d->changed_at.len; }

static size_t known_by_len(const struct writer *w, const struct decision *d) {
  return d->message_id.len + (is_versioned(w, d) ? 1 + d->changed_at.len : 0);
}

/* What the row is known by, in width bytes: spaces at the end do not count in a comparison of ASCII texts. The version
 * comes first: rows of one time have much of it in common. */
static void add_known_by(struct writer *w, struct text *names, const struct decision *d, size_t width) {
  char *out = text_room(names, width);
  if (!out)
    return;
  memset(out, ' ', width);
  if (is_versioned(w, d)) {
    memcpy(out, d->changed_at.data, d->changed_at.len);
    out += d->changed_at.len + 1;
  }
  memcpy(out, d->message_id.data, d->message_id.len);
}

/* With how many bytes all of the names begin that are the same. */
static size_t shared_bytes(const struct text *names, size_t width) {
  size_t shared = width;
  for (const char *name = names->data + width; name < names->data + names->len; name += width)
    if (memcmp(names->data, name, shared) != 0)
      for (shared = 0; names->data[shared] == name[shared];)
        shared++;
  return shared;
}

/* Takes as many bytes from the beginning of each name. */
static void cut_shared(struct text *names, size_t width, size_t shared) {
  size_t rest = width - shared, count = names->len / width;
  for (size_t i = 0; i < count; i++)
    memmove(names->data + i * rest, names->data + i * width + shared, rest);
  names->len = count * rest;
}

/* Writes the name that belongs to o.id. ids: those of the names but the first, each after a comma. The server reads and
 * copies a long text slowly, so what all names begin with is there once. */
static void add_name_of(struct text *out, struct text *names, size_t width, const char *ids, size_t ids_len,
                        bool exact) {
  size_t shared = shared_bytes(names, width), rest = width - shared;
  text_puts(out, rest ? "CONCAT(" : "");
  text_ascii(out, names->data, shared);
  if (!rest)
    return;
  cut_shared(names, width, shared);
  text_puts(out, ", SUBSTR(");
  text_ascii(out, names->data, names->len);
  text_puts(out, ", 1 + ");
  text_u64(out, rest);
  text_puts(out, exact ? " * INTERVAL(o.id + 0e0" : " * INTERVAL(o.id");
  text_add(out, ids, ids_len);
  text_puts(out, "), ");
  text_u64(out, rest);
  text_puts(out, "))");
}

/* Makes the session's part the ids of the rows, which come in their order, and identity the condition that a row is
 * still the task, in the version where that counts, that was decided about. INTERVAL finds the place of its id among
 * the ids, and there, in one text of all, is what it is known by. */
static void list_rows(struct writer *w, struct decision *const *list, size_t count, struct text *identity) {
  struct text *ids = &w->ss->part, names = {0};
  size_t width = 0, first = 0;
  text_clear(ids);
  for (size_t i = 0; i < count; i++) {
    size_t len = known_by_len(w, list[i]);
    width = len > width ? len : width;
    if (i)
      text_add(ids, ",", 1);
    text_u64(ids, list[i]->id);
    first = i == 0 ? ids->len : first;
  }
#ifdef DUEBOX_UNGUARDED
  text_puts(identity, "TRUE");
  w->ss->script.failed = w->ss->script.failed || ids->failed || identity->failed;
  return;
#endif
  for (size_t i = 0; i < count; i++)
    add_known_by(w, &names, list[i], width);
  text_puts(identity,
            is_versioned(w, list[0]) ? "CONCAT(o.changed_at, _ascii' ', o.message_id) = " : "o.message_id = ");
  if (!names.failed && !ids->failed)
    add_name_of(identity, &names, width, ids->data + first, ids->len - first, list[count - 1]->id < EXACT_DOUBLE);
  w->ss->script.failed = w->ss->script.failed || ids->failed || names.failed || identity->failed;
  text_free(&names);
}

static int by_id(const void *a, const void *b) {
  const struct decision *x = *(struct decision *const *)a, *y = *(struct decision *const *)b;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* Decisions that write the same, as a list of ids. */
static bool write_same(struct writer *w, const char *statement, struct decision **list, size_t count, struct err *err) {
  struct text identity = {0};
  const struct decision *d = list[count - 1]; /* the latest */
  qsort(list, count, sizeof *list, by_id);
  list_rows(w, list, count, &identity);
  bool ok = add(w, statement,
                ARGS(RAW("ids", w->ss->part), RAW("identity", identity), STRING("state", task_state_text(d->from)),
                     UNSIGNED("attempt_from", d->attempt_from), RAW("shards", *w->shards), WORD("fence", w->fence),
                     STRING("state_to", task_state_text(task_state_next(d->from, d->event))),
                     UNSIGNED("attempt", d->attempt), UNSIGNED("failures", d->failures),
                     UNSIGNED("recoveries", d->recoveries), SIGNED("delay", d->delay_us > 0 ? d->delay_us : 0),
                     d->published_us ? TIME("published", d->published_us) : WORD("published", "o.published_at"),
                     SIGNED("keep", d->keep_us > 0 ? d->keep_us : 0), UNSIGNED("attempt_of", attempt_of(d)),
                     d->answer_to ? UNSIGNED("answer_to", d->answer_to) : WORD("answer_to", "NULL"),
                     WORD("content", ROW_CONTENT), STRING("kind", attempt_kind(d)), STRING("outcome", outcome(d)),
                     WORD("ignore", ignore_word(d))),
                (int64_t)count, err);
  text_free(&identity);
  return ok;
}

/* Writes the groups that are worth a statement of their own, and takes them out of the list; returns in *count how many
 * are left, by id again. */
static bool write_groups(struct writer *w, const char *statement, struct decision **list, size_t *count,
                         struct err *err) {
  size_t left = 0, at = 0, n;
  group_sort(list, *count);
  while ((n = group_first(list + at, *count - at)) > 0) {
    if (n < GROUP_MIN && n < *count) {
      for (size_t i = 0; i < n; i++)
        list[left++] = list[at + i];
    } else if (!write_same(w, statement, list + at, n, err)) {
      return false;
    }
    at += n;
  }
  while (at < *count)
    list[left++] = list[at++];
  *count = left;
  qsort(list, left, sizeof *list, by_id);
  return true;
}

/* Those in one form: a statement that cuts would cut what others have, and say nothing of it. */
static bool write_kind(struct writer *w, const struct kind *kind, enum decision_form form, struct decision **list,
                       struct err *err) {
  size_t count = 0;
  for (size_t i = 0; i < w->count; i++)
    if (w->decisions[i]->form == form && kind->concerns(w->decisions[i]))
      list[count++] = w->decisions[i];
  if (count && kind->same && !write_groups(w, kind->same, list, &count, err))
    return false;
  return write_json(w, kind, list, count, err);
}

static bool same_guard(const struct decision *a, const struct decision *b) {
  return a->from == b->from && a->attempt_from == b->attempt_from && !a->changed_at.len == !b->changed_at.len;
}

/* Whether a final decision with the guard of decisions[i] comes before i. */
static bool seen_before(const struct writer *w, size_t i) {
  for (size_t k = i; k-- > 0;)
    if (settle_ends(w->decisions[k]) && same_guard(w->decisions[k], w->decisions[i]))
      return true;
  return false;
}

/* The finished rows with the guard of decisions[first]. */
static bool write_delete(struct writer *w, size_t first, struct decision **list, struct err *err) {
  const struct decision *guard = w->decisions[first];
  struct text identity = {0};
  size_t count = 1;
  list[0] = w->decisions[first];
  for (size_t i = first + 1; i < w->count; i++)
    if (settle_ends(w->decisions[i]) && same_guard(w->decisions[i], guard))
      list[count++] = w->decisions[i];
  list_rows(w, list, count, &identity);
  bool ok = add(w, query_settle_delete,
                ARGS(RAW("ids", w->ss->part), RAW("identity", identity), STRING("state", task_state_text(guard->from)),
                     UNSIGNED("attempt", guard->attempt_from), RAW("shards", *w->shards), WORD("fence", w->fence)),
                (int64_t)count, err);
  text_free(&identity);
  return ok;
}

/* Deletes the finished rows, one statement for each state and attempt that they have. */
static bool write_deletes(struct writer *w, struct decision **list, struct err *err) {
  for (size_t first = 0; first < w->count; first++)
    if (settle_ends(w->decisions[first]) && !seen_before(w, first) && !write_delete(w, first, list, err))
      return false;
  return true;
}

/* Whether its row just goes: it is of no kind. */
static bool only_ends(const struct decision *d) {
  return !d->changed && d->event == EVENT_DONE && !wants_attempt(d) && !wants_history(d);
}

bool write_decisions(struct writer *w, struct err *err) {
  struct decision **list = calloc(w->count ? w->count : 1, sizeof *list);
  if (!list)
    return err_set(err, DB_E_NO_MEMORY, "%s: out of memory", w->what);
  bool ok = true, forms[DECISION_FORMS] = {false};
  for (size_t i = 0; i < w->count; i++)
    if (!only_ends(w->decisions[i]))
      forms[w->decisions[i]->form] = true;
  for (size_t i = 0; ok && i < ARRAY_LEN(kinds); i++)
    for (int form = 0; ok && form < DECISION_FORMS; form++)
      ok = !forms[form] || write_kind(w, &kinds[i], (enum decision_form)form, list, err);
  ok = ok && write_deletes(w, list, err);
  free(list);
  return ok;
}
