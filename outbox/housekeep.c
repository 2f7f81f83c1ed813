/* SPDX-License-Identifier: MIT
 *
 * outbox/housekeep.c - partitions of the history and the attempts: made ahead, dropped when their time is over.
 *
 * Dropping a partition costs the same for one row as for ten million, where a DELETE would fill the undo log. Bounds
 * are whole days; a longer retention gets wider partitions rather than more of them, because every lookup by message id
 * visits each. Nothing is made or dropped while two clocks, the server's and ours, differ by a day: one of them is
 * wrong, and what is dropped does not come back. Two daemons may do this at once: the one that comes second finds it
 * done (DDL errors that say so count as success). Each step is by itself: what the server refuses in one of them does
 * not stop the others.
 *
 * DDL that waits for a transaction which has read the table makes everybody else wait behind it. So it is tried once,
 * without waiting where the server can (MariaDB), and otherwise put off until the next housekeeping. It waits for a
 * second only when it is late, because on a busy table nothing that never waits might ever find a free moment.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "outbox/db_error.h"
#include "outbox/ops.h"
#include "outbox/schema_tables.h"
#include "outbox/server.h"
#include "query.h"

#define DAY_US (INT64_C(86400) * 1000000)

enum { PARTITIONS_WANTED = 16, PARTITIONS_MAX = 512, COPIED_ROWS_MAX = 1000000 };

/* Somebody else did the same: the partition is there already, or gone already, or bounds do not rise any more. */
enum { SAME_NAME_PARTITION = 1517, DROP_UNKNOWN_PARTITION = 1507, BOUNDS_DO_NOT_RISE = 1493 };

struct partitions {
  struct partition {
    char name[65];
    int64_t until_us;
    uint64_t rows;      /* about */
  } of[PARTITIONS_MAX]; /* without p_later; oldest first */
  size_t count;
};

/* One table: how long its rows stay counted from now, and from when on they are over. */
struct keeping {
  const char *what, *suffix;
  int64_t ahead_us; /* partitions are needed this far into the future */
  int64_t keep_us;  /* a partition is dropped this long after its bound */
};

static bool read_partitions(struct store_session *ss, const struct keeping *keeping, struct partitions *out,
                            struct err *err) {
  char name[128];
  struct db_result result;
  struct db_row row;
  snprintf(name, sizeof name, "%s%s", ss->outbox->config->table, keeping->suffix);
  session_begin(ss);
  session_add(ss, query_partitions, ARGS(STRING("name", name)));
  if (!session_send(ss, keeping->what, &result, 1, err))
    return false;
  out->count = 0;
  while (out->count < PARTITIONS_MAX && db_next(&result, &row, 3)) {
    struct partition *partition = &out->of[out->count];
    const char *bound = row.fields[1];
    /* The bound is a quoted literal, or MAXVALUE. */
    bool timed = bound && bound[0] == '\'' && row.lengths[1] > 2 &&
                 time_parse(bound + 1, row.lengths[1] - 2, &partition->until_us);
    if (!row.fields[2] || !db_u64(&row, 2, UINT64_MAX, &partition->rows))
      partition->rows = 0;
    if (timed && db_copy(&row, 0, partition->name, sizeof partition->name))
      out->count++;
  }
  db_results_free(&result, 1);
  return true;
}

/* Runs DDL; what another daemon has done meanwhile is done. */
static bool alter(struct store_session *ss, const struct keeping *keeping, struct text *ddl, struct err *err) {
  struct db_result result;
  if (db_script(ss->conn, ddl, keeping->what, &result, 1, err)) {
    db_results_free(&result, 1);
    return true;
  }
  return err->code == SAME_NAME_PARTITION || err->code == DROP_UNKNOWN_PARTITION || err->code == BOUNDS_DO_NOT_RISE;
}

/* late: waits for those who use the table, as long as the session waits for locks: a second. */
static void start_alter(struct store_session *ss, struct text *ddl, const char *suffix, bool late) {
  text_puts(ddl, late ? "" : SERVER_NO_WAIT);
  text_puts(ddl, "ALTER TABLE `");
  text_puts(ddl, ss->outbox->config->table);
  text_puts(ddl, suffix);
  text_puts(ddl, "` ");
}

static bool drop_old(struct store_session *ss, const struct keeping *keeping, const struct partitions *partitions,
                     int64_t now_us, struct err *err) {
  struct text ddl = {0};
  bool any = false;
  bool late = partitions->count && partitions->of[0].until_us + keeping->keep_us + DAY_US <= now_us;
  start_alter(ss, &ddl, keeping->suffix, late);
  for (size_t i = 0; i < partitions->count && partitions->of[i].until_us + keeping->keep_us <= now_us; i++) {
    text_puts(&ddl, any ? ", `" : "DROP PARTITION `");
    text_puts(&ddl, partitions->of[i].name);
    text_puts(&ddl, "`");
    any = true;
  }
  bool ok = !any || alter(ss, keeping, &ddl, err);
  text_free(&ddl);
  return ok;
}

/* Adds "PARTITION p20300131 VALUES LESS THAN ('2030-01-31 00:00:00')". */
static void add_partition(struct text *ddl, int64_t until_us) {
  struct text bound = {0};
  text_time(&bound, until_us);
  if (!bound.failed) {
    char name[16];
    snprintf(name, sizeof name, "p%.4s%.2s%.2s", bound.data, bound.data + 5, bound.data + 8);
    text_puts(ddl, "PARTITION `");
    text_puts(ddl, name);
    text_puts(ddl, "` VALUES LESS THAN ('");
    text_add(ddl, bound.data, strlen("2030-01-31 00:00:00"));
    text_puts(ddl, "')");
  }
  ddl->failed = ddl->failed || bound.failed;
  text_free(&bound);
}

/* How many partitions stay as they are. After a clock that was years ahead, or a retention that was far longer, the
 * partition of what is written now is over in years: from there on they are made anew, which copies their rows. */
static size_t staying(const struct partitions *partitions, int64_t now_us, int64_t far_us) {
  size_t current = 0;
  uint64_t rows = 0;
  while (current < partitions->count && partitions->of[current].until_us <= now_us)
    current++;
  if (current == partitions->count || partitions->of[current].until_us <= far_us)
    return partitions->count;
  for (size_t i = current; i < partitions->count; i++)
    rows += partitions->of[i].rows;
  return rows <= COPIED_ROWS_MAX ? current : partitions->count;
}

/* Splits partitions off p_later until they reach far enough. The last of them always lies wholly in the future, so
 * p_later is as good as empty and the split copies nothing. */
static bool make_ahead(struct store_session *ss, const struct keeping *keeping, const struct partitions *partitions,
                       int64_t now_us, struct err *err) {
  int64_t width = ((keeping->ahead_us + keeping->keep_us) / PARTITIONS_WANTED / DAY_US + 1) * DAY_US;
  int64_t until = now_us - now_us % DAY_US;
  size_t stay = staying(partitions, now_us, now_us + keeping->ahead_us + keeping->keep_us + 2 * width);
  if (stay && partitions->of[stay - 1].until_us > until)
    until = partitions->of[stay - 1].until_us;
  struct text ddl = {0};
  bool any = false;
  bool late = until <= now_us + keeping->ahead_us; /* rows may come into p_later, and the split would copy them */
  start_alter(ss, &ddl, keeping->suffix, late);
  text_puts(&ddl, "REORGANIZE PARTITION ");
  for (size_t i = stay; i < partitions->count; i++) {
    text_puts(&ddl, "`");
    text_puts(&ddl, partitions->of[i].name);
    text_puts(&ddl, "`, ");
  }
  while (until < now_us + keeping->ahead_us + width) {
    until += width;
    text_puts(&ddl, any ? ", " : "p_later INTO (");
    add_partition(&ddl, until);
    any = true;
  }
  text_puts(&ddl, ", PARTITION p_later VALUES LESS THAN (MAXVALUE))");
  bool ok = !any || alter(ss, keeping, &ddl, err);
  text_free(&ddl);
  return ok;
}

static bool keep_table(struct store_session *ss, const struct keeping *keeping, int64_t now_us, struct err *err) {
  struct partitions partitions;
  return read_partitions(ss, keeping, &partitions, err) && drop_old(ss, keeping, &partitions, now_us, err) &&
         make_ahead(ss, keeping, &partitions, now_us, err);
}

struct housekeep_unit {
  int64_t longest_keep_ms, attempts_keep_ms, now_us;
};

static bool keep_history(struct store_session *ss, void *arg, struct err *err) {
  const struct housekeep_unit *u = arg;
  /* keep_until is in the future when a row is written. */
  const struct keeping history = {"keeping the history's partitions", "_history", u->longest_keep_ms * 1000, 0};
  return keep_table(ss, &history, u->now_us, err);
}

static bool keep_attempts(struct store_session *ss, void *arg, struct err *err) {
  const struct housekeep_unit *u = arg;
  /* finished_at is now when a row is written. */
  const struct keeping attempts = {"keeping the attempts' partitions", "_attempts", DAY_US, u->attempts_keep_ms * 1000};
  return keep_table(ss, &attempts, u->now_us, err);
}

/* Tables without partitions: few rows, deleted a thousand at a time. */
enum { HOUSEKEEP_ROWS = 1000, HOUSEKEEP_DELETES = 200 }; /* rows as in sql/queries/housekeep_*.sql */
enum { QUARANTINE_MAX = 100000 };                        /* rows: who floods a topic with rubbish fills no disk */

static bool delete_old(struct store_session *ss, const char *what, const char *suffix, const char *column,
                       const struct housekeep_unit *u, struct err *err) {
  uint64_t deleted = HOUSEKEEP_ROWS;
  /* A bounded part of what is old: the next housekeeping goes on with the rest. */
  for (int i = 0; i < HOUSEKEEP_DELETES && deleted == HOUSEKEEP_ROWS; i++) {
    session_begin(ss);
    session_add(ss, query_housekeep_old,
                ARGS(WORD("suffix", suffix), WORD("column", column), SIGNED("keep_ms", u->attempts_keep_ms)));
    if (!session_change(ss, what, &deleted, err))
      return false;
  }
  return true;
}

static bool delete_quarantine(struct store_session *ss, void *arg, struct err *err) {
  return delete_old(ss, "deleting old quarantined results", "quarantine", "received_at", arg, err);
}

static bool delete_excess(struct store_session *ss, void *arg, struct err *err) {
  uint64_t deleted = HOUSEKEEP_ROWS;
  for (int i = 0; i < HOUSEKEEP_DELETES && deleted == HOUSEKEEP_ROWS; i++) {
    session_begin(ss);
    session_add(ss, query_housekeep_excess, ARGS(SIGNED("keep", QUARANTINE_MAX)));
    if (!session_change(ss, "deleting quarantined results beyond the newest", &deleted, err))
      return false;
  }
  return true;
}

static bool delete_audit(struct store_session *ss, void *arg, struct err *err) {
  return delete_old(ss, "deleting old audit lines", "audit", "at", arg, err);
}

static bool forget_heads(struct store_session *ss, void *arg, struct err *err) {
  uint64_t forgotten;
  session_begin(ss);
  session_add(ss, query_heads_forget, NO_ARGS);
  return session_change(ss, "deleting heads of order keys that are over", &forgotten, err);
}

/* The rows are locked only if nobody else has them: an operator who looks at one must not stop a daemon. */
static bool forget_instances(struct store_session *ss, void *arg, struct err *err) {
  static const char what[] = "deleting old instances";
  struct db_result results[2];
  struct db_row row;
  session_begin_transaction(ss);
  session_add(ss, query_old_instances, NO_ARGS);
  if (!session_send(ss, what, results, 2, err))
    return false;
  text_clear(&ss->part);
  while (db_next(&results[1], &row, 1)) {
    text_puts(&ss->part, ss->part.len ? "," : "");
    text_sql(&ss->part, row.fields[0], row.lengths[0]);
  }
  db_results_free(results, 2);
  if (ss->part.len == 0)
    return session_rollback(ss, what, err);
  session_begin(ss);
  session_add(ss, query_forget_instances, ARGS(RAW("ids", ss->part)));
  session_add_commit(ss);
  if (!session_send_commit(ss, what, results, 2, 1, err))
    return false;
  db_results_free(results, 2);
  return true;
}

/* Each connection looks at the tables when it is made. Where somebody has converted one since, all are to be made anew,
 * and are refused then. A newer schema is none of this: it lets those go on that are there. */
static bool look_at_tables(struct store_session *ss, void *arg, struct err *err) {
  (void)arg;
  struct schema_flaw flaw;
  if (!schema_tables_flaw(ss->conn, &flaw, err))
    return false;
  if (flaw.kind == SCHEMA_SOUND)
    return true;
  atomic_fetch_add(&ss->outbox->generation, 1);
  struct err found = *err;
  return err_set(err, DB_E_NOT_MIGRATED, "%s; %s", found.text, db_error_cure(DB_E_NOT_MIGRATED));
}

/* Whether time is what both clocks say, within a day. */
static bool clocks_agree(int64_t server_us, struct err *err) {
  int64_t ours_us = clock_wall_us();
  if (server_us - ours_us < DAY_US && ours_us - server_us < DAY_US)
    return true;
  return err_set(err, 0,
                 "housekeeping: the database's clock and ours differ by %lld hours: nothing old is deleted and no "
                 "partition is made until they agree",
                 (long long)((server_us - ours_us) / (DAY_US / 24)));
}

enum store_status ops_housekeep(struct store_session *ss, int64_t longest_keep_ms, int64_t attempts_keep_ms,
                                struct err *err) {
  static const struct {
    enum store_status (*run)(struct store_session *, const char *, unit_fn *, void *, struct err *);
    unit_fn *unit;
  } steps[] = {
      {session_try, look_at_tables},    {session_try, keep_history},  {session_try, keep_attempts},
      {session_run, delete_quarantine}, {session_run, delete_excess}, {session_run, delete_audit},
      {session_run, forget_instances},  {session_run, forget_heads},
  };
  struct housekeep_unit unit = {.longest_keep_ms = longest_keep_ms, .attempts_keep_ms = attempts_keep_ms};
  enum store_status first = ops_now(ss, &unit.now_us, err);
  if (first == STORE_OK && !clocks_agree(unit.now_us, err))
    return STORE_REFUSED;
  for (size_t i = 0; first != STORE_DOWN && i < sizeof steps / sizeof steps[0]; i++) {
    struct err step = {0};
    enum store_status status = steps[i].run(ss, "housekeeping", steps[i].unit, &unit, &step);
    if (first == STORE_OK && status != STORE_OK) {
      first = status;
      *err = step;
    }
  }
  return first;
}
