/* SPDX-License-Identifier: MIT
 *
 * outbox/settle.c - applying the engine's decisions: fenced, guarded, in batches.
 *
 * The quick way sends all statements, the fence and the COMMIT as one script that guards let through to its end: one
 * round trip for any number of rows. A single row that takes a single statement carries its fence inside and commits by
 * itself. When a guard does not hold, or a COMMIT got no answer, the careful way locks the rows first and finds out
 * which decisions still apply; the fence comes with the writes and the COMMIT in the second round trip. So it does when
 * a row is held by a foreign transaction, which may last: the careful way then passes over rows that are locked, and
 * their decisions are busy. Where somebody holds only an entry of another index, that is met in writing: the batch is
 * then settled by halves, down to the row that it is about. So it is when the server refuses something; the row that it
 * refuses is written in a form that it takes.
 *
 * changed_at tells that somebody changed a row after it was read. What was sent is then compared with what is there:
 * with the same content it is settled as decided; otherwise it is due again. What was never sent is left as it is, and
 * where its claim is recorded, put back. Of a row that is gone although a copy of it has left, outbox_attempts has a
 * line. Of a row whose result did not come the table itself says what was sent.
 */
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/guard.h"
#include "outbox/halves.h"
#include "outbox/ops.h"
#include "outbox/row.h"
#include "outbox/server.h"
#include "outbox/settle_compare.h"
#include "outbox/settle_judge.h"
#include "outbox/settle_parts.h"
#include "outbox/side_tables.h"
#include "outbox/write.h"
#include "query.h"

#define WHAT "settling"

struct settle_unit {
  const struct shard_lease *leases;
  size_t lease_count;
  struct decision *decisions;
  size_t count;
  bool *lost;
  struct decision **sorted; /* of those that are possible and whose shard is leased: by id, each id once */
  size_t candidates;
  struct decision **applying;                     /* those of sorted that are to be written */
  size_t matched, busy;                           /* how many are applying; how many rows were passed over */
  struct text shards;                             /* "1,2" */
  struct shard_lease concerned[STORE_SHARDS_MAX]; /* their leases */
  size_t shard_count;
  bool careful, met_again; /* met_again: a row that was busy before */
  bool doubtful;           /* a COMMIT that wrote some of it before got no answer */
  enum stopped stopped;    /* LOCKED: the rows were ours, and the write met a lock all the same; nothing was written */
};

static const struct shard_lease *lease_of(const struct settle_unit *u, uint8_t shard) {
  for (size_t i = 0; i < u->lease_count; i++)
    if (u->leases[i].shard == shard)
      return &u->leases[i];
  return NULL;
}

static int by_id(const void *a, const void *b) {
  const struct decision *x = *(struct decision *const *)a, *y = *(struct decision *const *)b;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* Names the shards of the candidates, for the fence. */
static void name_shards(struct settle_unit *u) {
  bool used[STORE_SHARDS_MAX] = {0};
  text_clear(&u->shards);
  u->shard_count = 0;
  for (size_t i = 0; i < u->candidates; i++)
    used[u->sorted[i]->shard] = true;
  for (size_t i = 0; i < u->lease_count; i++) {
    const struct shard_lease *lease = &u->leases[i];
    if (!used[lease->shard])
      continue;
    used[lease->shard] = false;
    text_puts(&u->shards, u->shard_count ? "," : "");
    text_u64(&u->shards, lease->shard);
    u->concerned[u->shard_count++] = *lease;
  }
}

/* Which COMMIT of the session got no answer, when that was the last one; 0 = it did. */
static uint32_t lost_commit(const struct store_session *ss) { return ss->unknown ? ss->lost_commits : 0; }

static void choose_candidates(struct settle_unit *u) {
  size_t n = 0;
  bool in_order = true;
  for (size_t i = 0; i < u->count; i++) {
    struct decision *d = &u->decisions[i];
    if (d->written) {
      d->applied = true;
      continue;
    }
    if (d->left) {
      d->busy = true;
      continue;
    }
    u->met_again = u->met_again || d->busy;
    u->doubtful = u->doubtful || d->unknown;
    d->applied = d->busy = d->mismatch = d->gone = d->refused = d->changed = d->again = d->beside = false;
    if (write_possible(d) && d->shard < STORE_SHARDS_MAX && lease_of(u, d->shard)) {
      in_order = in_order && (n == 0 || u->sorted[n - 1]->id <= d->id);
      u->sorted[n++] = d;
    }
  }
  if (!in_order)
    qsort(u->sorted, n, sizeof *u->sorted, by_id);
  for (size_t i = 0; i < n; i++)
    if (u->candidates == 0 || u->sorted[u->candidates - 1]->id != u->sorted[i]->id)
      u->sorted[u->candidates++] = u->sorted[i];
    else
      u->sorted[i]->busy = true; /* a task with the same row id: its turn is the next */
  name_shards(u);
}

/* All candidates in one transaction of one script. *done is false when it had to be rolled back. */
static bool settle_quick(struct store_session *ss, struct settle_unit *u, bool *done, struct err *err) {
  struct writer w = {.ss = ss,
                     .what = WHAT,
                     .decisions = u->sorted,
                     .count = u->candidates,
                     .fence = "TRUE",
                     .shards = &u->shards,
                     .versioned = true,
                     .guarded = true};
  session_begin_transaction(ss);
  write_expect(&w, 0);
  for (size_t i = 0; i < u->candidates; i++)
    u->sorted[i]->applied = true;
  *done = write_decisions(&w, err) && write_commit(&w, u->concerned, u->shard_count, err);
  if (*done || err->code != DB_GUARD)
    return *done;
  return session_rollback(ss, WHAT, err);
}

/* One row, one statement, which is its own transaction and holds the fence. *done is false when it met no row. */
static bool settle_single(struct store_session *ss, struct settle_unit *u, bool *done, struct err *err) {
  struct text lease = {0}, fence = {0};
  text_leases(&lease, u->concerned, 1);
  text_expand(&fence, "EXISTS (SELECT 1 FROM `{table}_shards` WHERE {lease} LOCK IN SHARE MODE)",
              ss->outbox->config->table, ARGS(RAW("lease", lease)));
  text_free(&lease);
  struct writer w = {.ss = ss,
                     .what = WHAT,
                     .decisions = u->sorted,
                     .count = 1,
                     .shards = &u->shards,
                     .versioned = true,
                     .fence = fence.failed ? "" : fence.data};
  session_begin(ss);
  ss->script.failed = fence.failed;
  u->sorted[0]->applied = true;
  bool ok = write_decisions(&w, err) && write_flush(&w, err);
  text_free(&fence);
  if (!ok) {
    session_change_failed(ss);
    return err->code == DB_GUARD ? write_not_taken(WHAT, err) : false; /* of a trigger: it has no guard */
  }
  *done = u->sorted[0]->applied = !w.differs;
  return true;
}

/* Marks which shards are not ours any more. */
static bool read_shards(struct settle_unit *u, struct db_result *result, struct err *err) {
  bool held[STORE_SHARDS_MAX] = {0}, used[STORE_SHARDS_MAX] = {0};
  struct db_row row;
  uint64_t shard;
  while (db_next(result, &row, 1)) {
    if (!db_u64(&row, 0, STORE_SHARDS_MAX - 1, &shard))
      return db_unexpected(err, WHAT);
    held[shard] = true;
  }
  for (size_t i = 0; i < u->candidates; i++)
    used[u->sorted[i]->shard] = true;
  for (size_t i = 0; i < u->lease_count; i++)
    u->lost[i] = used[u->leases[i].shard] && !held[u->leases[i].shard];
  return true;
}

static bool shard_lost(const struct settle_unit *u, uint8_t shard) { return u->lost[lease_of(u, shard) - u->leases]; }

/* Whether it is the row that the decision is about: ids may have been handed out again. */
static bool same_task(const struct decision *d, const struct db_row *row, unsigned message_id) {
  return row->fields[message_id] && row->lengths[message_id] == d->message_id.len &&
         memcmp(row->fields[message_id], d->message_id.data, d->message_id.len) == 0;
}

static bool match_row(struct settle_unit *u, struct decision *d, const struct db_row *row, struct err *err) {
  uint64_t shard, state, attempt;
  if (!db_u64(row, 1, UINT8_MAX, &shard) || !db_u64(row, 2, TASK_STATES, &state) ||
      !db_u64(row, 3, UINT32_MAX, &attempt))
    return db_unexpected(err, WHAT);
  d->busy = d->gone = false;
  d->mismatch = !same_task(d, row, 4);
  bool other_version = d->changed_at.len && (!row->fields[5] || row->lengths[5] != d->changed_at.len ||
                                             memcmp(row->fields[5], d->changed_at.data, d->changed_at.len) != 0);
  if (d->mismatch || d->shard != shard || (uint64_t)d->from + 1 != state || d->attempt_from != attempt ||
      shard_lost(u, d->shard) || (other_version && !d->sent && d->from != TASK_CLAIMED))
    return true;
  d->changed = other_version; /* what was sent of it: until the contents have been compared */
  u->applying[u->matched++] = d;
  return true;
}

/* The candidate with this id, or NULL. Rows and candidates are gone through together, both by id. */
static struct decision *candidate(const struct settle_unit *u, size_t *at, uint64_t id) {
  while (*at < u->candidates && u->sorted[*at]->id < id)
    ++*at;
  return *at < u->candidates && u->sorted[*at]->id == id ? u->sorted[*at] : NULL;
}

/* Keeps those of the locked rows whose guard holds. */
static bool match_rows(struct settle_unit *u, struct db_result *rows, struct err *err) {
  struct db_row row;
  uint64_t id;
  size_t at = 0;
  u->matched = 0;
  while (db_next(rows, &row, 6)) {
    if (!db_u64(&row, 0, UINT64_MAX, &id))
      return db_unexpected(err, WHAT);
    struct decision *d = candidate(u, &at, id);
    if (d && !match_row(u, d, &row, err))
      return false;
  }
  return true;
}

/* Marks all rows that there are as busy; match_rows takes the mark from those that we hold. */
static bool mark_living(struct settle_unit *u, struct db_result *rows, struct err *err) {
  struct db_row row;
  uint64_t id;
  size_t at = 0;
  while (db_next(rows, &row, 1)) {
    if (!db_u64(&row, 0, UINT64_MAX, &id))
      return db_unexpected(err, WHAT);
    struct decision *d = candidate(u, &at, id);
    if (d) {
      d->busy = true;
      d->gone = false;
    }
  }
  return true;
}

/* Locks the rows; finds what still applies, and what is busy. */
static bool lock_rows(struct store_session *ss, struct settle_unit *u, struct err *err) {
  struct db_result results[4] = {0};
  const char *skip = session_skip(ss, u->met_again);
  size_t n = *skip ? 4 : 3;
  text_clear(&ss->part);
  for (size_t i = 0; i < u->candidates; i++) {
    text_puts(&ss->part, i ? "," : "");
    text_u64(&ss->part, u->sorted[i]->id);
  }
  struct text own = {0};
  text_append(&own, &ss->part);
  if (!server_lock_rows(ss, WHAT, skip, &own, err)) {
    text_free(&own);
    return false;
  }
  session_begin_transaction(ss);
  guard_ask_shards(ss, u->concerned, u->shard_count);
  session_add(ss, query_settle_lock, ARGS(RAW("ids", own), WORD("skip", skip)));
  text_free(&own);
  if (*skip)
    session_add(ss, query_settle_living, ARGS(RAW("ids", ss->part)));
  if (!session_send(ss, WHAT, results, n, err))
    return false;
  for (size_t i = 0; i < u->candidates; i++) {
    u->sorted[i]->busy = u->sorted[i]->mismatch = u->sorted[i]->changed = false;
    u->sorted[i]->gone = true;
  }
  bool ok = read_shards(u, &results[1], err) && mark_living(u, &results[3], err) && match_rows(u, &results[2], err);
  db_results_free(results, n);
  u->busy = 0;
  for (size_t i = 0; i < u->candidates; i++)
    u->busy += u->sorted[i]->busy;
  if (u->busy && u->met_again)
    session_met_lock(ss);
  return ok;
}

static void resolve_unknown(struct store_session *ss, struct settle_unit *u) {
  for (size_t i = 0; i < u->candidates; i++) {
    settle_note_unknown(u->sorted[i], lost_commit(ss));
    u->sorted[i]->applied = false;
  }
  size_t kept = settle_resolve_unknown(u->sorted, u->candidates, u->applying, u->matched);
  if (kept < u->candidates) {
    u->candidates = kept;
    name_shards(u);
  }
  ss->unknown = false;
}

/* Leaves the fence to the shards that are ours. */
static void drop_lost_shards(struct settle_unit *u) {
  size_t kept = 0;
  for (size_t i = 0; i < u->shard_count; i++)
    if (!shard_lost(u, u->concerned[i].shard))
      u->concerned[kept++] = u->concerned[i];
  u->shard_count = kept;
}

/* Those whose copies have left and whose rows are gone, though no commit of ours has ended them: behind those that
 * apply. Returns how many. Where the lines about them cannot be written now they are given again. */
static size_t find_removed(const struct store_session *ss, const struct settle_unit *u) {
  size_t removed = 0;
  for (size_t i = 0; i < u->candidates; i++) {
    struct decision *d = u->sorted[i];
    if (!d->gone || !d->sent || d->applied || d->form >= DECISION_NO_LINES || shard_lost(u, d->shard))
      continue;
    if (ss->locked_tables & SIDE_ATTEMPTS)
      d->busy = d->beside = true;
    else
      u->applying[u->matched + removed++] = d;
  }
  return removed;
}

/* Leaves the decisions of shards whose rows somebody holds for later, for the fence would wait for them, and those that
 * need a table that somebody holds. */
static bool leave_locked(struct store_session *ss, struct settle_unit *u, struct err *err) {
  bool locked[STORE_SHARDS_MAX] = {false};
  size_t kept = 0;
  if (!(ss->locked_tables & SIDE_TASKS) &&
      !session_locked_shards(ss, session_skip(ss, u->met_again), u->concerned, u->shard_count, locked, err))
    return false;
  for (size_t i = 0; i < u->candidates; i++) {
    struct decision *d = u->sorted[i];
    if (!locked[d->shard] && !((SIDE_TASKS | write_tables(d)) & ss->locked_tables)) {
      u->sorted[kept++] = d;
      continue;
    }
    d->busy = true;
    d->beside = !locked[d->shard];
    settle_note_unknown(d, lost_commit(ss));
    d->applied = false;
  }
  if (kept < u->candidates) {
    u->candidates = kept;
    name_shards(u);
  }
  return true;
}

static bool settle_careful(struct store_session *ss, struct settle_unit *u, struct err *err) {
  if (!leave_locked(ss, u, err))
    return false;
  if (u->candidates == 0)
    return true;
  bool ok = lock_rows(ss, u, err);
  for (size_t at = 0; ok && at < u->matched;)
    ok = settle_compare_changed(ss, u->applying, u->matched, &at, err);
  if (!ok || !settle_compare_awaited(ss, u->applying, u->matched, err))
    return false;
  resolve_unknown(ss, u);
  u->matched = settle_leave_again(u->applying, u->matched);
  size_t removed = find_removed(ss, u);
  if (u->matched + removed == 0)
    return session_rollback(ss, WHAT, err);
  drop_lost_shards(u);
  struct writer w = {.ss = ss,
                     .what = WHAT,
                     .decisions = u->applying,
                     .count = u->matched,
                     .fence = "TRUE",
                     .shards = &u->shards,
                     .no_wait = *session_skip(ss, u->met_again),
                     .guarded = true};
  session_begin(ss);
  for (size_t i = 0; i < u->matched; i++)
    u->applying[i]->applied = true;
  ok = write_removed(&w, u->applying + u->matched, removed, err) && write_decisions(&w, err) &&
       write_commit(&w, u->concerned, u->shard_count, err);
  /* The rows are locked and were as they should be: nobody has changed them. */
  return ok || (err->code == DB_GUARD && !w.fenced ? write_not_taken(WHAT, err) : false);
}

static bool any_published(const struct settle_unit *u) {
  for (size_t i = 0; i < u->candidates; i++)
    if (u->sorted[i]->event == EVENT_PUBLISHED)
      return true;
  return false;
}

static bool any_awaited(const struct settle_unit *u) {
  for (size_t i = 0; i < u->candidates; i++)
    if (settle_is_awaited(u->sorted[i]))
      return true;
  return false;
}

static bool settle_some(struct store_session *ss, struct settle_unit *u, struct err *err) {
  bool done = false;
  u->careful = u->careful || u->doubtful || ss->locked_tables || *session_skip(ss, u->met_again);
  /* Results overtake the record of their publishing so often that trying and rolling back would cost more. */
  u->careful = u->careful || (u->candidates > 1 && any_published(u)) || any_awaited(u);
  if (!u->careful && !ss->unknown) {
    bool single = u->candidates == 1 && write_statements(u->sorted[0]) == 1;
    if (!(single ? settle_single(ss, u, &done, err) : settle_quick(ss, u, &done, err)))
      return false;
    u->careful = !done;
  }
  return done || settle_careful(ss, u, err);
}

/* Whether the lock that was met is on a table as a whole: then this is redone without what needs it. */
static bool find_locked_table(struct store_session *ss, const struct settle_unit *u, bool *found, struct err *err) {
  unsigned tables = SIDE_TASKS, before = ss->locked_tables;
  for (size_t i = 0; i < u->candidates; i++)
    tables |= write_tables(u->sorted[i]);
  bool ok = side_tables_find(ss, tables & ~before, err);
  *found = ss->locked_tables != before;
  return ok;
}

static bool settle_unit(struct store_session *ss, void *arg, struct err *err) {
  struct settle_unit *u = arg;
  bool skips = *session_skip(ss, u->met_again);
  u->stopped = STOPPED_NOT;
  if (u->candidates == 0) /* a try before has found that all were written */
    return true;
  if (!side_tables_again(ss, err))
    return false;
  if (settle_some(ss, u, err))
    return true;
  if (db_error_is_refusal(err->code) || db_error_is_denied(err->code))
    u->stopped = STOPPED_REFUSED; /* for good, unless it is redone and goes through */
  if (err->code != DB_LOCK_WAIT)
    return false;
  session_met_lock(ss); /* redone, it does not wait again */
  bool table = false;
  struct err locked = *err;
  if (!session_rollback(ss, WHAT, err) || !find_locked_table(ss, u, &table, err))
    return false;
  *err = locked;
  u->stopped = skips && !table ? STOPPED_LOCKED : STOPPED_NOT;
  return skips && !table;
}

static enum store_status no_memory(size_t rows, struct err *err) {
  err_set(err, DB_E_NO_MEMORY, WHAT " %zu rows: out of memory; %s", rows, db_error_cure(DB_E_NO_MEMORY));
  return STORE_DOWN;
}

/* A call of ops_settle. */
struct settle_call {
  struct store_session *ss;
  const struct shard_lease *leases;
  size_t lease_count;
  bool *lost;
  struct decision *decisions;
};

static enum store_status settle_at_once(void *arg, size_t first, size_t count, enum stopped *stopped, struct err *err) {
  const struct settle_call *call = arg;
  struct decision *decisions = call->decisions + first;
  bool lost[STORE_SHARDS_MAX] = {false};
  struct settle_unit unit = {
      .leases = call->leases, .lease_count = call->lease_count, .decisions = decisions, .count = count, .lost = lost};
  unit.sorted = calloc(count ? 2 * count : 1, sizeof *unit.sorted);
  if (!unit.sorted)
    return no_memory(count, err);
  unit.applying = unit.sorted + count;
  choose_candidates(&unit);
  enum store_status status = STORE_OK;
  if (unit.shards.failed)
    status = no_memory(count, err);
  else if (unit.candidates)
    status = session_run(call->ss, WHAT, settle_unit, &unit, err);
  for (size_t i = 0; i < count && (status != STORE_OK || unit.stopped); i++) {
    if (decisions[i].written)
      continue;
    if (status != STORE_OK)
      settle_note_unknown(&decisions[i], lost_commit(call->ss));
    decisions[i].applied = false;
    decisions[i].busy = status == STORE_OK;
  }
  for (size_t i = 0; i < call->lease_count && status == STORE_OK; i++)
    call->lost[i] = call->lost[i] || lost[i];
  *stopped = status == STORE_DOWN ? STOPPED_NOT : unit.stopped;
  text_free(&unit.shards);
  free(unit.sorted);
  return status;
}

static enum store_status settle_alone(void *arg, size_t at, size_t behind, bool *done, struct err *err) {
  struct decision *d = &((const struct settle_call *)arg)->decisions[at];
  enum stopped stopped = STOPPED_REFUSED;
  bool denied = db_error_is_denied(err->code);
  settle_leave_kin(d, behind);
  int code = err->code;
  while (stopped == STOPPED_REFUSED && !denied && write_reduce(d, code)) {
    struct err local = {0};
    enum store_status status = settle_at_once(arg, at, 1, &stopped, &local);
    if (status != STORE_OK && stopped != STOPPED_REFUSED) {
      *err = local;
      return status;
    }
    denied = db_error_is_denied(code = local.code);
  }
  d->refused = stopped == STOPPED_REFUSED;
  *done = !d->refused;
  return STORE_OK;
}

static void mark_left(void *arg, size_t first, size_t count, enum left why) {
  const struct settle_call *call = arg;
  for (size_t i = first; i < first + count; i++)
    settle_mark_left(&call->decisions[i], why);
}

enum store_status ops_settle(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                             struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct settle_call call = {ss, leases, lease_count, lost, decisions};
  memset(lost, 0, lease_count * sizeof *lost);
  for (size_t i = 0; i < count; i++) {
    decisions[i].form = decisions[i].least;
    decisions[i].left = false;
  }
  return settle_parts((struct halves){settle_at_once, settle_alone, mark_left, &call, false}, &call.decisions, count,
                      err);
}
