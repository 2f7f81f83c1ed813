/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_change.c - people's changes to tasks: cancel, reschedule, retry, set.
 *
 * A change is one transaction: lock the rows (and for cancel and reschedule first their shards), judge each by what it
 * is now, write, leave an audit row with the values from before. Rows of a shard that a daemon holds are not touched by
 * cancel and reschedule, since that daemon may have them in memory already.
 */
#include <stdio.h>
#include <string.h>

#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/operator_impl.h"
#include "outbox/row.h"

enum { DUPLICATE_KEY = 1062 };

static const char what[] = "changing tasks";

/* One transaction in progress. */
struct change {
  const struct task_change *order;
  struct task_target *targets;
  size_t count;
  struct text before; /* JSON list of the rows as they were */
  uint64_t changed;
  uint64_t audit_id;
  bool at_once;    /* a row that another transaction holds is not waited for */
  bool row_locked; /* it failed because of one */
  bool writing;    /* it has begun to write: before, nothing that fails is about a single row, but for its lock */
};

/* --- what each row allows --- */

/* Whether the change would leave the task due at a time when it has expired: it would never be sent. */
static bool would_expire(const struct task_change *order, const struct task_target *target) {
  bool sets = order->verb == CHANGE_SET && order->given & 1u << SET_EXPIRES_AT;
  int64_t due_us = order->verb == CHANGE_RESCHEDULE ? order->due_us : target->due_us;
  int64_t expires_us = sets ? order->numbers[SET_EXPIRES_AT] : target->expires_us;
  return (sets || order->verb == CHANGE_RESCHEDULE) && expires_us && due_us >= expires_us;
}

/* Whoever had claimed a task and lost its shard may have sent it, and can settle it no more: it is cancelled like one
 * that such a daemon had claimed in its memory. */
static enum change_outcome judge_living(const struct task_change *order, const struct task_target *target,
                                        uint64_t failures) {
  enum task_state state = target->state;
  enum change_verb verb = order->verb;
  bool ends = verb == CHANGE_CANCEL && (state == TASK_AWAITING || target->claim_lost);
  if (!ends && (state == TASK_CLAIMED || state == TASK_AWAITING))
    return CHANGE_IN_FLIGHT;
  switch (verb) {
  case CHANGE_CANCEL:
    return CHANGE_DONE;
  case CHANGE_RETRY:
    return state == TASK_SCHEDULED && failures > 0 ? CHANGE_DONE : CHANGE_STATE;
  default:
    if (state != TASK_SCHEDULED)
      return CHANGE_STATE;
    if (verb == CHANGE_SET && !target->due_us) /* it is due in no calendar: there is nothing to compare with */
      return CHANGE_REFUSED;
    return would_expire(order, target) ? CHANGE_EXPIRES : CHANGE_DONE;
  }
}

/* Whether the verb keeps daemons from the tasks, and says what a dead one may have done with them. */
static bool needs_shards(enum change_verb verb) { return verb == CHANGE_CANCEL || verb == CHANGE_RESCHEDULE; }

static bool sets_host(const struct task_change *order) {
  return order->verb == CHANGE_SET && order->given & 1u << SET_TARGET_HOST;
}

/* Whether a daemon must take the task to its host, when no copy of it is out and its turn has come, as it does for
 * plain SQL (move_to_host). That goes for whatever has an order_key: what else of that is under way daemons alone know.
 * And for what is about to leave a shard: the daemon that has it in memory would not find it again when it settles, and
 * the task would be sent twice. What is bound to a host already is claimed in the table. */
static bool goes_by_daemon(const struct task_change *order, const struct task_target *target, bool soon, bool ordered,
                           const char *host) {
  bool leaves = soon && order->target_host[0] && target->shard != SHARD_BOUND;
  return (ordered || leaves) && strcmp(host, order->target_host) != 0;
}

/* What is due is on its way, or about to be: another due time would make a second copy of it. */
static bool retries_now(const struct task_change *order, const struct task_target *target) {
  return order->verb == CHANGE_RETRY && target->state == TASK_SCHEDULED && target->outcome == CHANGE_DONE;
}

static enum change_outcome judge_ended(enum change_verb verb, enum task_state state) {
  return verb == CHANGE_RETRY && state != TASK_DONE ? CHANGE_DONE : CHANGE_STATE;
}

enum change_outcome op_judge(const struct task_change *order, const struct task_target *target) {
  if (target->misfit)
    return CHANGE_REFUSED;
  return task_state_living(target->state) ? judge_living(order, target, 1) : judge_ended(order->verb, target->state);
}

/* Whether this target belongs to the table and may still be changed there. */
static bool is_candidate(const struct task_target *target, bool living) {
  return task_state_living(target->state) == living && target->outcome != CHANGE_HELD && !target->misfit;
}

/* --- lists of ids --- */

enum id_column { ROW_IDS, MESSAGE_IDS, HISTORY_KEYS };

static void add_id(struct text *out, const struct task_target *target, enum id_column column) {
  if (column == MESSAGE_IDS) {
    text_sql(out, target->message_id, strlen(target->message_id));
    return;
  }
  text_puts(out, column == HISTORY_KEYS ? "(" : "");
  text_u64(out, target->id);
  if (column != HISTORY_KEYS)
    return;
  text_puts(out, ", '");
  text_time(out, target->keep_us);
  text_puts(out, "')");
}

/* Adds the ids of the targets that are candidates, or of those that are to be written. False when there is none. */
static bool add_ids(struct text *out, const struct change *change, bool living, bool judged, enum id_column column) {
  const char *separator = "";
  for (size_t i = 0; i < change->count; i++) {
    const struct task_target *target = &change->targets[i];
    if (!is_candidate(target, living) || (judged && target->outcome != CHANGE_DONE))
      continue;
    text_puts(out, separator);
    separator = ", ";
    add_id(out, target, column);
  }
  return *separator != '\0';
}

static void add_shards(struct text *out, const bool shards[STORE_SHARDS_MAX]) {
  for (unsigned i = 0, n = 0; i < STORE_SHARDS_MAX; i++) {
    if (!shards[i])
      continue;
    text_puts(out, n++ ? ", " : "");
    text_u64(out, i);
  }
}

static uint64_t to_write(const struct change *change, bool living) {
  uint64_t n = 0;
  for (size_t i = 0; i < change->count; i++)
    n += is_candidate(&change->targets[i], living) && change->targets[i].outcome == CHANGE_DONE;
  return n;
}

/* --- locking --- */

static bool fence(struct outbox_operator *op, const bool shards[STORE_SHARDS_MAX], struct err *err) {
  struct text list = {0};
  add_shards(&list, shards);
  bool ok = list.len == 0 || op_query(op, opsql_fence_shards, ARGS(RAW("shards", list)), what, NULL, err);
  text_free(&list);
  return ok;
}

/* Locks the shards of the targets. Targets of a shard that somebody holds become HELD; the others' last owners are
 * fenced off, for one whose lease ran out may only be slow. */
static bool lock_shards(struct outbox_operator *op, struct change *change, struct err *err) {
  bool wanted[STORE_SHARDS_MAX] = {false}, held[STORE_SHARDS_MAX] = {false}, lapsed[STORE_SHARDS_MAX] = {false};
  for (size_t i = 0; i < change->count; i++)
    if (is_candidate(&change->targets[i], true))
      wanted[change->targets[i].shard] = true;
  struct text list = {0};
  struct db_result result;
  add_shards(&list, wanted);
  bool ok = list.len == 0 || op_query(op, opsql_lock_shards, ARGS(RAW("shards", list)), what, &result, err);
  if (!ok || list.len == 0) {
    text_free(&list);
    return ok;
  }
  text_free(&list);
  struct db_row row;
  uint64_t shard, owned, alive;
  while (ok && db_next(&result, &row, 3)) {
    ok = db_u64(&row, 0, STORE_SHARDS_MAX - 1, &shard) && db_u64(&row, 1, 1, &owned) && db_u64(&row, 2, 1, &alive);
    if (ok) {
      held[shard] = owned && alive;
      lapsed[shard] = owned && !alive;
    }
  }
  db_results_free(&result, 1);
  for (size_t i = 0; i < change->count; i++)
    if (is_candidate(&change->targets[i], true) && held[change->targets[i].shard])
      change->targets[i].outcome = CHANGE_HELD;
  return ok ? fence(op, lapsed, err) : db_unexpected(err, what);
}

/* keep_us: of a row of the history. Two of them may have both ids: whoever may INSERT may choose them. */
static struct task_target *target_of(struct change *change, uint64_t id, const char *message_id, bool living,
                                     int64_t keep_us) {
  for (size_t i = 0; i < change->count; i++) {
    struct task_target *target = &change->targets[i];
    if (target->id == id && is_candidate(target, living) && strcmp(target->message_id, message_id) == 0 &&
        (living || target->keep_us == keep_us))
      return target;
  }
  return NULL;
}

/* Of lock_living.sql, behind what both tables have. */
enum {
  COL_SHARD = 3,
  COL_FAILURES = 5,
  COL_DUE_AT = 6,
  COL_EXPIRES_AT = 11,
  COL_HOST = 12,
  COL_MAYBE_SENT,
  COL_DUE,
  COL_SOON,
  COL_CLAIM_LOST,
  COL_ORDERED,
  COL_MOVE_TO_HOST,
  LIVING_COLUMNS
};
enum { COL_KEEP_UNTIL = 9, COL_OTHER_ID, HISTORY_COLUMNS };

static bool judge_living_row(const struct change *change, const struct db_row *row, struct task_target *target) {
  uint64_t shard, failures, maybe_sent, due, soon, claim_lost, ordered;
  if (!db_u64(row, COL_SHARD, STORE_SHARDS_MAX - 1, &shard) || !db_u64(row, COL_FAILURES, UINT64_MAX, &failures) ||
      !db_u64(row, COL_MAYBE_SENT, 1, &maybe_sent) || !db_u64(row, COL_DUE, 1, &due) ||
      !db_u64(row, COL_SOON, 1, &soon) || !db_u64(row, COL_CLAIM_LOST, 1, &claim_lost) ||
      !db_u64(row, COL_ORDERED, 1, &ordered) || !row->fields[COL_HOST])
    return false;
  bool moved = target->shard != shard;
  target->shard = (uint8_t)shard;
  target->claim_lost = claim_lost;
  target->due_us = row_time_or_past(row, COL_DUE_AT);
  target->expires_us = row_time_or_past(row, COL_EXPIRES_AT);
  target->outcome = judge_living(change->order, target, failures);
  if (due && retries_now(change->order, target))
    target->outcome = CHANGE_IN_FLIGHT;
  if (moved && needs_shards(change->order->verb))
    target->outcome = CHANGE_HELD; /* nobody keeps the daemon of its new shard from it */
  target->moves = target->outcome == CHANGE_DONE && sets_host(change->order) &&
                  goes_by_daemon(change->order, target, soon, ordered, row->fields[COL_HOST]);
  target->maybe_sent = maybe_sent && needs_shards(change->order->verb);
  return true;
}

static bool judge_ended_row(const struct change *change, const struct db_row *row, struct task_target *target) {
  uint64_t other_id;
  if (!db_u64(row, COL_OTHER_ID, 1, &other_id))
    return false;
  target->outcome = judge_ended(change->order->verb, target->state);
  target->other_id = other_id && target->outcome == CHANGE_DONE;
  target->maybe_sent = false;
  return true;
}

static bool judge_row(struct change *change, const struct db_result *result, const struct db_row *row, bool living) {
  static const char *const all[] = {"due", "soon", "claim_lost", "ordered", "move_to_host", "other_id", NULL};
  static const char *const but_host[] = {"due", "soon", "claim_lost", "ordered", "other_id", NULL};
  const char *const *skip = sets_host(change->order) ? but_host : all;
  uint64_t id;
  if (!db_u64(row, 0, UINT64_MAX, &id) || !row->fields[1] || !row->fields[2])
    return false;
  int64_t keep_us = living ? 0 : row_time_or_past(row, COL_KEEP_UNTIL);
  struct task_target *target = target_of(change, id, row->fields[1], living, keep_us);
  if (!target)
    return true; /* the id has another message now: not the task that was meant */
  target->state = task_state_parse(row->fields[2]);
  if (!(living ? judge_living_row(change, row, target) : judge_ended_row(change, row, target)))
    return false;
  if (target->outcome != CHANGE_DONE)
    return true;
  text_puts(&change->before, change->before.len > 1 ? ", " : "");
  return op_row_json(&change->before, result, row, skip);
}

/* Locks the rows of one table and judges them. */
static bool lock_rows(struct outbox_operator *op, struct change *change, bool living, struct err *err) {
  struct text ids = {0}, keys = {0};
  struct db_result result;
  bool any = add_ids(&ids, change, living, false, ROW_IDS);
  add_ids(&keys, change, living, false, HISTORY_KEYS);
  bool ok = !any || op_query(op, living ? opsql_lock_living : opsql_lock_history,
                             ARGS(RAW("ids", ids), RAW("keys", keys), WORD("wait", change->at_once ? "NOWAIT" : ""),
                                  UNSIGNED("far", STORE_ID_MAY_CHANGE)),
                             what, &result, err);
  text_free(&ids);
  text_free(&keys);
  change->row_locked = any && !ok && err->code == DB_LOCK_WAIT;
  if (!ok || !any)
    return ok;
  struct db_row row;
  while (ok && db_next(&result, &row, living ? LIVING_COLUMNS : HISTORY_COLUMNS))
    ok = judge_row(change, &result, &row, living) || db_unexpected(err, what);
  db_results_free(&result, 1);
  return ok;
}

/* --- writing --- */

/* Runs a statement over the living rows that are to be written and expects it to find every one: they are locked. */
static bool write_rows(struct outbox_operator *op, const struct change *change, const char *statement,
                       const struct text *assignments, struct err *err) {
  struct text ids = {0}, message_ids = {0};
  add_ids(&ids, change, true, true, ROW_IDS);
  add_ids(&message_ids, change, true, true, MESSAGE_IDS);
  uint64_t found;
  bool ok = op_change(op, statement,
                      ARGS(RAW("ids", ids), RAW("message_ids", message_ids), TIME("due", change->order->due_us),
                           SIGNED("keep_us", change->order->keep_us), RAW("assignments", *assignments)),
                      what, &found, err);
  text_free(&ids);
  text_free(&message_ids);
  if (ok && found != to_write(change, true))
    ok = db_unexpected(err, what);
  return ok;
}

/* "id IN (1, 2)": those that daemons take to their host. */
static void add_moving(struct text *out, const struct change *change) {
  const char *separator = "id IN (";
  for (size_t i = 0; i < change->count; i++) {
    if (!change->targets[i].moves)
      continue;
    text_puts(out, separator);
    text_u64(out, change->targets[i].id);
    separator = ", ";
  }
  text_puts(out, *separator == ',' ? ")" : "FALSE");
}

/* The host, and the shard that goes with it: that of bound tasks, or, of one that was in it, as the column's default
 * has it. For those that a daemon is to take there, the wish alone. No assignment reads what another one writes. */
static void add_host(struct text *out, const struct change *change, uint64_t shards) {
  const char *host = change->order->target_host;
  struct text moving = {0}, quoted = {0}, shard = {0};
  add_moving(&moving, change);
  text_sql(&quoted, host, strlen(host));
  if (*host)
    text_u64(&shard, SHARD_BOUND);
  else
    text_expand(&shard,
                "IF(shard < {bound}, shard, CRC32(IF(LENGTH(order_key) = 0, message_id, order_key)) MOD {spread})", "",
                ARGS(UNSIGNED("bound", SHARD_BOUND),
                     UNSIGNED("spread", (uint64_t)__builtin_popcountll(shards & ~(UINT64_C(1) << SHARD_BOUND)))));
  text_expand(out,
              "move_to_host = IF({moving}, {host}, NULL), shard = IF({moving}, shard, {shard}), "
              "target_host = IF({moving}, target_host, {host})",
              "", ARGS(RAW("moving", moving), RAW("host", quoted), RAW("shard", shard)));
  out->failed = out->failed || moving.failed || quoted.failed || shard.failed;
  text_free(&moving);
  text_free(&quoted);
  text_free(&shard);
}

static void add_setting(struct text *out, enum task_setting setting, const struct change *change, uint64_t shards) {
  static const char *const columns[SET_TARGET_HOST] = {"priority", "max_attempts", "timeout_ms", "expires_at"};
  int64_t number = change->order->numbers[setting];
  text_puts(out, out->len ? ", " : "");
  if (setting == SET_TARGET_HOST) {
    add_host(out, change, shards);
    return;
  }
  text_puts(out, columns[setting]);
  text_puts(out, " = ");
  if (number == 0) {
    text_puts(out, "NULL");
  } else if (setting == SET_EXPIRES_AT) {
    text_puts(out, "'");
    text_time(out, number);
    text_puts(out, "'");
  } else {
    text_i64(out, number);
  }
}

static bool write_living(struct outbox_operator *op, const struct change *change, struct err *err) {
  static const char *const statements[CHANGE_VERBS] = {
      [CHANGE_CANCEL] = opsql_cancel_insert,
      [CHANGE_RESCHEDULE] = opsql_reschedule,
      [CHANGE_RETRY] = opsql_retry_living,
      [CHANGE_SET] = opsql_set,
  };
  struct text assignments = {0};
  for (int i = 0; i < TASK_SETTINGS; i++)
    if (change->order->verb == CHANGE_SET && change->order->given & 1u << i)
      add_setting(&assignments, (enum task_setting)i, change, op->shards);
  bool ok = write_rows(op, change, statements[change->order->verb], &assignments, err);
  if (ok && change->order->verb == CHANGE_CANCEL)
    ok = write_rows(op, change, opsql_cancel_delete, &assignments, err);
  text_free(&assignments);
  return ok;
}

/* "(id, keep_until) IN ((1, '..'))": those that come back under another id. */
static bool add_others(struct text *out, const struct change *change) {
  const char *separator = "(id, keep_until) IN (";
  for (size_t i = 0; i < change->count; i++) {
    const struct task_target *target = &change->targets[i];
    if (!is_candidate(target, false) || target->outcome != CHANGE_DONE || !target->other_id)
      continue;
    text_puts(out, separator);
    add_id(out, target, HISTORY_KEYS);
    separator = ", ";
  }
  text_puts(out, *separator == ',' ? ")" : "FALSE");
  return *separator == ',';
}

static bool write_ended(struct outbox_operator *op, const struct change *change, struct err *err) {
  struct text ids = {0}, keys = {0}, others = {0};
  uint64_t inserted, deleted, lines, count = to_write(change, false);
  add_ids(&ids, change, false, true, ROW_IDS);
  add_ids(&keys, change, false, true, HISTORY_KEYS);
  bool any = add_others(&others, change);
  const struct sql_arg *args = ARGS(RAW("ids", ids), RAW("keys", keys), RAW("other_id", others));
  bool ok = op_change(op, opsql_retry_insert, args, what, &inserted, err) &&
            (!any || op_change(op, opsql_retry_attempts, args, what, &lines, err)) &&
            op_change(op, opsql_retry_delete, args, what, &deleted, err);
  text_free(&ids);
  text_free(&keys);
  text_free(&others);
  return ok && ((inserted == count && deleted == count) || db_unexpected(err, what));
}

static const char *const verbs[CHANGE_VERBS] = {"cancel", "reschedule", "retry", "set"};

static bool change_body(struct outbox_operator *op, void *ctx, struct err *err) {
  struct change *change = ctx;
  enum change_verb verb = change->order->verb;
  for (size_t i = 0; i < change->count; i++) {
    change->targets[i].outcome = change->targets[i].misfit ? CHANGE_REFUSED : CHANGE_NOT_FOUND;
    change->targets[i].refused[0] = '\0';
  }
  text_clear(&change->before);
  text_puts(&change->before, "[");
  change->audit_id = 0;
  change->writing = false;
  if (needs_shards(verb) && !lock_shards(op, change, err))
    return false;
  if (!lock_rows(op, change, true, err) || !lock_rows(op, change, false, err))
    return false;
  uint64_t living = to_write(change, true), ended = to_write(change, false);
  change->changed = living + ended;
  text_puts(&change->before, "]");
  if (change->changed == 0)
    return true;
  change->writing = true;
  if ((living && !write_living(op, change, err)) || (ended && !write_ended(op, change, err)))
    return false;
  return op_audit(op, verbs[verb], change->order->actor, change->order->reason, change->order->filter, change->changed,
                  &change->before, &change->audit_id, err);
}

/* Nothing is certain of these. */
static void forget_outcomes(struct task_target *targets, size_t count) {
  for (size_t i = 0; i < count; i++)
    targets[i].outcome = CHANGE_OUTCOMES;
}

/* Whether what went wrong may be about some of the targets, so that the others can be changed without them. */
static bool is_about_some(const struct change *change, const struct err *err) {
  return err->code == DUPLICATE_KEY || err->code == DB_LOCK_WAIT || db_error_is_value(err->code) ||
         (change->writing && err->refused);
}

/* Whether what went wrong is about one target, which stays. Finding out that its row is held takes no time; what is
 * held beside a row is waited for, so others that meet it are not tried any more. */
static bool is_its_own(struct outbox_operator *op, const struct change *one, const struct err *err) {
  enum { WAITS = 3 };
  struct task_target *target = one->targets;
  if (!is_about_some(one, err) || (err->code == DB_LOCK_WAIT && !one->row_locked && ++op->waits > WAITS))
    return false;
  if (err->code == DUPLICATE_KEY) {
    target->outcome = CHANGE_CONFLICT;
  } else if (err->code == DB_LOCK_WAIT) {
    target->outcome = CHANGE_LOCKED;
  } else {
    target->outcome = CHANGE_REFUSED;
    if (!db_error_is_value(err->code))
      snprintf(target->refused, sizeof target->refused, "%.*s", OPERATOR_REFUSED_MAX - 1, err->text);
  }
  return true;
}

/* A row that collides, that another transaction holds, or that the server does not write, undoes the whole transaction:
 * then the targets go in smaller ones, half as many where one fails and twice as many where one does not, and the
 * culprits stay. One of many costs some ten transactions, all of them one each. What is held beside rows is waited for
 * in each transaction: one that met such a lock is followed by single targets only. */
static enum store_status change_in_parts(struct outbox_operator *op, struct change *change, bool singly,
                                         struct audit_span *audit, struct err *err) {
  enum store_status status = STORE_OK;
  size_t step = change->count / 2, at = 0;
  while (status == STORE_OK && at < change->count) {
    size_t left = change->count - at, count = singly || step < 1 ? 1 : step;
    count = count < left ? count : left;
    struct change part = {.order = change->order, .targets = &change->targets[at], .count = count, .at_once = true};
    status = op_transaction(op, change_body, &part, err);
    if (status == STORE_OK) {
      audit_span_add(audit, (struct audit_span){part.audit_id, part.audit_id});
      step = 2 * count;
      at += count;
    } else if (count > 1 && is_about_some(&part, err)) {
      step = count / 2;
      singly = singly || (err->code == DB_LOCK_WAIT && !part.row_locked);
      status = STORE_OK;
    } else if (count == 1 && is_its_own(op, &part, err)) {
      at++;
      status = STORE_OK;
    }
    text_free(&part.before);
  }
  if (status != STORE_OK)
    forget_outcomes(&change->targets[at], change->count - at);
  return status;
}

enum store_status op_change_tasks(void *self, const struct task_change *order, struct task_target *targets,
                                  size_t count, struct audit_span *audit, struct err *err) {
  struct outbox_operator *op = self;
  struct change change = {.order = order, .targets = targets, .count = count, .at_once = op->met_lock};
  enum store_status status = op_transaction(op, change_body, &change, err);
  *audit = (struct audit_span){0};
  if (status == STORE_OK)
    audit_span_add(audit, (struct audit_span){change.audit_id, change.audit_id});
  else if (count == 1 && is_its_own(op, &change, err))
    status = STORE_OK;
  else if (count > 1 && is_about_some(&change, err))
    status = change_in_parts(op, &change, err->code == DB_LOCK_WAIT && !change.row_locked, audit, err);
  else
    forget_outcomes(targets, count);
  text_free(&change.before);
  return status;
}

/* --- an audit row for what was done elsewhere --- */

struct audit_unit {
  const struct task_change *order;
  uint64_t changed, audit_id;
};

static bool audit_body(struct outbox_operator *op, void *ctx, struct err *err) {
  struct audit_unit *unit = ctx;
  return op_audit(op, verbs[unit->order->verb], unit->order->actor, unit->order->reason, unit->order->filter,
                  unit->changed, NULL, &unit->audit_id, err);
}

enum store_status op_audit_change(void *self, const struct task_change *order, uint64_t changed, uint64_t *audit_id,
                                  struct err *err) {
  struct audit_unit unit = {.order = order, .changed = changed};
  enum store_status status = op_transaction(self, audit_body, &unit, err);
  *audit_id = unit.audit_id;
  return status;
}
