/* SPDX-License-Identifier: MIT
 *
 * Applying the engine's decisions: outbox/settle.c, in the same steps. The quick way is one script; the careful way
 * locks the rows, finds out which decisions still apply, and writes them in a second one.
 */
#include <stdlib.h>
#include <string.h>

#include "outbox/settle_judge.h"
#include "outbox/settle_parts.h"
#include "store_double_ops.h"
#include "store_double_rows.h"
#include "store_double_write.h"

#define WHAT "settling"

struct settle_unit {
  const struct shard_lease *leases;
  size_t lease_count;
  struct decision *decisions;
  size_t count;
  bool *lost;
  struct decision **sorted; /* of those that are possible and whose shard is leased: by id, each id once */
  size_t candidates;
  struct decision **applying; /* those of sorted that are to be written */
  size_t matched;
  struct shard_lease concerned[STORE_SHARDS_MAX];
  size_t shard_count;
  bool careful, met_again, doubtful;
  enum stopped stopped;
};

static const struct shard_lease *lease_of(const struct settle_unit *u, uint8_t shard) {
  for (size_t i = 0; i < u->lease_count; i++)
    if (u->leases[i].shard == shard)
      return &u->leases[i];
  return NULL;
}

static int by_id(const void *a, const void *b) {
  const struct decision *x = *(struct decision *const *)a, *y = *(struct decision *const *)b;
  if (x->id != y->id)
    return x->id < y->id ? -1 : 1;
  return x < y ? -1 : x > y;
}

static void name_shards(struct settle_unit *u) {
  bool used[STORE_SHARDS_MAX] = {0};
  u->shard_count = 0;
  for (size_t i = 0; i < u->candidates; i++)
    used[u->sorted[i]->shard] = true;
  for (size_t i = 0; i < u->lease_count; i++) {
    if (used[u->leases[i].shard])
      u->concerned[u->shard_count++] = u->leases[i];
    used[u->leases[i].shard] = false;
  }
}

/* Which COMMIT of the session got no answer, when that was the last one; 0 = it did. */
static uint32_t lost_commit(const struct store_session *ss) { return ss->unknown ? ss->lost_commits : 0; }

static void choose_candidates(struct settle_unit *u) {
  size_t n = 0;
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
    d->applied = d->busy = d->mismatch = d->gone = d->refused = d->changed = d->again = false;
    if (decision_possible(d) && d->shard < STORE_SHARDS_MAX && lease_of(u, d->shard))
      u->sorted[n++] = d;
  }
  qsort(u->sorted, n, sizeof *u->sorted, by_id);
  for (size_t i = 0; i < n; i++)
    if (u->candidates == 0 || u->sorted[u->candidates - 1]->id != u->sorted[i]->id)
      u->sorted[u->candidates++] = u->sorted[i];
    else
      u->sorted[i]->busy = true; /* a task with the same row id: its turn is the next */
  name_shards(u);
}

/* What the writing of these meets: whatever others hold of their rows and of the tables beside them, and refusals. */
static bool meet(struct store_session *ss, struct decision *const *list, size_t count, bool rows, bool wait,
                 struct err *err) {
  static const enum lock_kind tables[] = {LOCK_ATTEMPTS, LOCK_HISTORY, LOCK_HEADS};
  unsigned needed = 0;
  for (size_t i = 0; i < count; i++)
    needed |= decision_tables(list[i]);
  for (size_t i = 0; i < 3; i++)
    if (needed & tables[i] && !double_lock(ss, tables[i], 0, true, wait, err))
      return false;
  for (size_t i = 0; i < count; i++)
    if ((rows && !double_lock(ss, LOCK_ROW, list[i]->id, false, wait, err)) ||
        !double_lock(ss, LOCK_ENTRY, list[i]->id, false, wait, err))
      return false;
  for (size_t i = 0; i < count; i++) {
    int code = decision_refused(ss->db, list[i]);
    if (code)
      return double_fail(ss, code, err);
  }
  return true;
}

static void write_all(struct store_session *ss, struct decision *const *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    decision_write(double_tx(ss), table_row(ss->db, list[i]->id), list[i]);
  for (size_t i = 0; i < count; i++)
    double_cost(ss, 0, decision_statements(list[i]));
}

static bool all_fit(struct store_session *ss, struct decision *const *list, size_t count, bool versioned) {
  bool fit = true;
  for (size_t i = 0; i < count; i++)
    fit = fit && decision_fits(list[i], table_row(ss->db, list[i]->id), versioned);
  return fit;
}

/* All candidates in one script. *done is false when it had to be rolled back. */
static bool settle_quick(struct store_session *ss, struct settle_unit *u, bool single, bool *done, struct err *err) {
  bool ours = false;
  for (size_t i = 0; i < u->candidates; i++)
    u->sorted[i]->applied = true;
  if (!double_begin(ss, SCRIPT_COMMITS, single ? 1 : (unsigned)(2 * u->candidates + 4), err))
    return false;
  (void)double_tx(ss);
  if (!meet(ss, u->sorted, u->candidates, true, true, err))
    return false;
  bool fits = all_fit(ss, u->sorted, u->candidates, true);
  if (fits && !double_fence(ss, u->concerned, u->shard_count, &ours, err))
    return false;
  if (fits && ours) {
    write_all(ss, u->sorted, u->candidates);
    *done = true;
    return double_commit(ss, err);
  }
  if (single) { /* it met no row, and commits nothing */
    tx_rollback(&ss->conn->tx);
    u->sorted[0]->applied = false;
    return double_end(ss, err);
  }
  (void)double_fail(ss, DB_GUARD, err);
  return err->code == DB_GUARD && double_rollback(ss, err);
}

static bool shard_lost(const struct settle_unit *u, uint8_t shard) { return u->lost[lease_of(u, shard) - u->leases]; }

static void read_shards(struct store_session *ss, struct settle_unit *u) {
  bool used[STORE_SHARDS_MAX] = {0};
  for (size_t i = 0; i < u->candidates; i++)
    used[u->sorted[i]->shard] = true;
  for (size_t i = 0; i < u->lease_count; i++)
    u->lost[i] = used[u->leases[i].shard] && !double_holds(ss, &u->leases[i]);
}

static void match_row(struct settle_unit *u, struct decision *d, const struct row *row) {
  bool same_version = !d->changed_at.len;
  char changed_at[TABLE_TIME_LEN + 1];
  table_time_text(row->changed_us, changed_at);
  same_version = same_version ||
                 (d->changed_at.len == TABLE_TIME_LEN && memcmp(changed_at, d->changed_at.data, TABLE_TIME_LEN) == 0);
  d->mismatch = !blob_is(row->text[ROW_MESSAGE_ID], d->message_id.data, d->message_id.len);
  if (!decision_fits(d, row, false) || shard_lost(u, d->shard) ||
      (!same_version && !d->sent && d->from != TASK_CLAIMED))
    return;
  d->changed = !same_version; /* what was sent of it: until the contents have been compared */
  u->applying[u->matched++] = d;
}

/* Locks the rows; finds what still applies, and what is busy. */
static bool lock_rows(struct store_session *ss, struct settle_unit *u, struct err *err) {
  bool skip = double_skips(ss, u->met_again), any_busy = false;
  if (!double_begin(ss, SCRIPT_READS, skip ? 4 : 3, err))
    return false;
  (void)double_tx(ss);
  read_shards(ss, u);
  for (size_t i = 0; i < u->candidates && !skip; i++)
    if (!double_lock(ss, LOCK_ROW, u->sorted[i]->id, false, true, err))
      return false;
  u->matched = 0;
  for (size_t i = 0; i < u->candidates; i++) {
    struct decision *d = u->sorted[i];
    const struct row *row = table_row(ss->db, d->id);
    d->mismatch = d->changed = false;
    d->gone = !row;
    d->busy = row && skip && !table_lock(ss->db, double_tx(ss), LOCK_ROW, d->id, false);
    any_busy = any_busy || d->busy;
    if (row && !d->busy)
      match_row(u, d, row);
  }
  double_cost(ss, 0, u->candidates);
  if (!double_end(ss, err))
    return false;
  if (any_busy && u->met_again)
    double_met_lock(ss);
  return true;
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

static bool same_bytes(const struct duebox_bytes *a, const struct duebox_bytes *b) {
  return a->len == b->len && (a->len == 0 || (a->data && b->data && memcmp(a->data, b->data, a->len) == 0));
}

static bool same_content(const struct task *now, const struct task *sent) {
  return same_bytes(&now->payload, &sent->payload) && same_bytes(&now->headers, &sent->headers) &&
         same_bytes(&now->route, &sent->route) && same_bytes(&now->task_key, &sent->task_key) &&
         same_bytes(&now->order_key, &sent->order_key) && now->due_us <= sent->due_us;
}

/* Nobody remembers what was sent of it: the row has a digest. */
static bool is_awaited(const struct decision *d) { return d->from == TASK_AWAITING && !d->sent; }

static void compare_sent(struct store_session *ss, struct decision *d) {
  char changed_at[TABLE_TIME_LEN + 1];
  struct task now;
  const struct row *row = table_row(ss->db, d->id);
  bool read = row && double_task(row, (struct store_limit){.payload = INT64_MAX, .bytes = INT64_MAX}, changed_at, &now);
  settle_compare(d, read ? &now : NULL, read && same_content(&now, d->sent));
}

static void compare_digest(struct store_session *ss, struct decision *d) {
  const struct row *row = table_row(ss->db, d->id);
  if (!row || row->state != TASK_AWAITING || row->changed_us == row->created_us - 1 || row_untouched(row))
    return;
  bool same = row->has_digest && row->sent_digest == row_content(row);
  if (!same || (row->published_us != TIME_NULL && row_due_us(row) > row->published_us))
    d->changed = true;
}

/* Of the locked rows finds those that are another task than what was sent: one round trip, if there is any to ask. */
static bool compare(struct store_session *ss, struct settle_unit *u, bool awaited, struct err *err) {
  bool any = false;
  for (size_t i = 0; i < u->matched; i++) {
    const struct decision *d = u->applying[i];
    any = any || (awaited ? is_awaited(d) : d->changed && d->sent);
  }
  if (!any)
    return true;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < u->matched; i++) {
    struct decision *d = u->applying[i];
    if (awaited && is_awaited(d))
      compare_digest(ss, d);
    else if (!awaited && d->changed && d->sent)
      compare_sent(ss, d);
  }
  return double_end(ss, err);
}

/* Those whose copies have left and whose rows are gone, behind those that apply. */
static size_t find_removed(const struct store_session *ss, const struct settle_unit *u) {
  size_t removed = 0;
  for (size_t i = 0; i < u->candidates; i++) {
    struct decision *d = u->sorted[i];
    if (!d->gone || !d->sent || d->applied || d->form >= DECISION_NO_LINES || shard_lost(u, d->shard))
      continue;
    if (ss->locked_tables & LOCK_ATTEMPTS)
      d->busy = true;
    else
      u->applying[u->matched + removed++] = d;
  }
  return removed;
}

static bool leave_locked(struct store_session *ss, struct settle_unit *u, struct err *err) {
  bool locked[STORE_SHARDS_MAX];
  size_t kept = 0;
  if (!double_locked_shards(ss, double_skips(ss, u->met_again), u->concerned, u->shard_count, locked, err))
    return false;
  for (size_t i = 0; i < u->candidates; i++) {
    struct decision *d = u->sorted[i];
    if (!locked[d->shard] && !(decision_tables(d) & ss->locked_tables)) {
      u->sorted[kept++] = d;
      continue;
    }
    d->busy = true;
    settle_note_unknown(d, lost_commit(ss));
    d->applied = false;
  }
  if (kept < u->candidates) {
    u->candidates = kept;
    name_shards(u);
  }
  return true;
}

static bool write_removed(struct store_session *ss, struct decision *const *gone, size_t count, bool wait,
                          struct err *err) {
  if (count == 0)
    return true;
  if (!double_lock(ss, LOCK_ATTEMPTS, 0, true, wait, err))
    return false;
  if (ss->db->refuses & LOCK_ATTEMPTS)
    return double_fail(ss, ss->db->denies ? 1142 : 1644, err);
  for (size_t i = 0; i < count; i++)
    decision_write_removed(double_tx(ss), gone[i]);
  return true;
}

static bool settle_careful(struct store_session *ss, struct settle_unit *u, struct err *err) {
  struct shard_lease held[STORE_SHARDS_MAX];
  size_t held_count = 0;
  bool ours = false;
  if (!leave_locked(ss, u, err))
    return false;
  if (u->candidates == 0)
    return true;
  if (!lock_rows(ss, u, err) || !compare(ss, u, false, err) || !compare(ss, u, true, err))
    return false;
  resolve_unknown(ss, u);
  u->matched = settle_leave_again(u->applying, u->matched);
  size_t removed = find_removed(ss, u);
  if (u->matched + removed == 0)
    return double_rollback(ss, err);
  for (size_t i = 0; i < u->shard_count; i++)
    if (!shard_lost(u, u->concerned[i].shard))
      held[held_count++] = u->concerned[i];
  bool wait = !double_skips(ss, u->met_again);
  for (size_t i = 0; i < u->matched; i++)
    u->applying[i]->applied = true;
  if (!double_begin(ss, SCRIPT_COMMITS, (unsigned)(2 * u->matched + removed + 3), err) ||
      !write_removed(ss, u->applying + u->matched, removed, wait, err) ||
      !meet(ss, u->applying, u->matched, false, wait, err))
    return false;
  bool fits = all_fit(ss, u->applying, u->matched, false);
  if (fits && !double_fence(ss, held, held_count, &ours, err))
    return false;
  if (!fits || !ours)
    return double_fail(ss, DB_GUARD, err);
  write_all(ss, u->applying, u->matched);
  return double_commit(ss, err);
}

static bool settle_some(struct store_session *ss, struct settle_unit *u, struct err *err) {
  bool published = false, awaited = false, done = false;
  for (size_t i = 0; i < u->candidates; i++) {
    published = published || u->sorted[i]->event == EVENT_PUBLISHED;
    awaited = awaited || is_awaited(u->sorted[i]);
  }
  u->careful = u->careful || u->doubtful || ss->locked_tables || double_skips(ss, u->met_again);
  u->careful = u->careful || (u->candidates > 1 && published) || awaited;
  if (!u->careful && !ss->unknown) {
    bool single = u->candidates == 1 && decision_statements(u->sorted[0]) == 1;
    if (!settle_quick(ss, u, single, &done, err))
      return false;
    u->careful = !done;
  }
  return done || settle_careful(ss, u, err);
}

/* --- tables that somebody holds as a whole --- */

static bool find_tables(struct store_session *ss, unsigned tables, struct err *err) {
  static const enum lock_kind all[] = {LOCK_HISTORY, LOCK_ATTEMPTS, LOCK_HEADS};
  for (size_t i = 0; i < 3; i++) {
    if (!(tables & all[i]))
      continue;
    if (!double_begin(ss, SCRIPT_READS, 1, err))
      return false;
    bool locked = double_locked(ss, all[i], 0, true);
    if (!double_end(ss, err))
      return false;
    ss->locked_tables = locked ? ss->locked_tables | all[i] : ss->locked_tables & ~(unsigned)all[i];
  }
  return true;
}

static bool find_locked_table(struct store_session *ss, const struct settle_unit *u, bool *found, struct err *err) {
  unsigned tables = 0, before = ss->locked_tables;
  for (size_t i = 0; i < u->candidates; i++)
    tables |= decision_tables(u->sorted[i]);
  bool ok = find_tables(ss, tables & ~before, err);
  *found = ss->locked_tables != before;
  return ok;
}

static bool settle_unit(struct store_session *ss, void *arg, struct err *err) {
  struct settle_unit *u = arg;
  bool skips = double_skips(ss, u->met_again);
  u->stopped = STOPPED_NOT;
  if (u->candidates == 0) /* a try before has found that all were written */
    return true;
  if (ss->locked_tables && !find_tables(ss, ss->locked_tables, err))
    return false;
  if (settle_some(ss, u, err))
    return true;
  if (db_error_is_refusal(err->code) || db_error_is_denied(err->code))
    u->stopped = STOPPED_REFUSED; /* for good, unless it is redone and goes through */
  if (err->code != DB_LOCK_WAIT)
    return false;
  double_met_lock(ss); /* redone, it does not wait again */
  bool table = false;
  struct err locked = *err;
  if (!double_rollback(ss, err) || !find_locked_table(ss, u, &table, err))
    return false;
  *err = locked;
  u->stopped = skips && !table ? STOPPED_LOCKED : STOPPED_NOT;
  return skips && !table;
}

/* --- the call --- */

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
    world_fail("no memory for decisions");
  unit.applying = unit.sorted + count;
  choose_candidates(&unit);
  enum store_status status = STORE_OK;
  if (unit.candidates)
    status = double_run(call->ss, WHAT, settle_unit, &unit, err);
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
  free(unit.sorted);
  return status;
}

static enum store_status settle_alone(void *arg, size_t at, size_t behind, bool *done, struct err *err) {
  const struct settle_call *call = arg;
  struct decision *d = &call->decisions[at];
  enum stopped stopped = STOPPED_REFUSED;
  bool denied = db_error_is_denied(err->code);
  settle_leave_kin(d, behind);
  int code = err->code;
  while (stopped == STOPPED_REFUSED && !denied && decision_reduce(d, code)) {
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

enum store_status double_settle(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct settle_call call = {ss, leases, lease_count, lost, decisions};
  struct err local = {0};
  for (size_t i = 0; i < lease_count; i++)
    lost[i] = false;
  for (size_t i = 0; i < count; i++) {
    decisions[i].form = decisions[i].least;
    decisions[i].left = false;
  }
  return halves_run(&(struct halves){settle_at_once, settle_alone, mark_left, &call, false}, count, err ? err : &local);
}
