/* SPDX-License-Identifier: MIT */
#include "store_double_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

enum { CONFLICT_TRIES = 5, LOST_TRIES = 2, SKIP_US = 3 * 1000 * 1000, LIMIT_MIN_S = 3 };
enum { OUTLIVE_US = 2 * 1000 * 1000, OUTLIVE_STEP_US = 2 * 1000, CONNECT_SCRIPTS = 3 };
enum { LOST = 2013, NO_SERVER = 2003, READ_ONLY = 1290 };

/* --- messages --- */

static int64_t latency(struct table *db, int64_t low_us, int64_t high_us) {
  return chance_log_between(&db->chance, low_us > 0 ? low_us : 1, high_us > low_us ? high_us : low_us + 1) *
         (db->slow ? db->slow : 1);
}

static bool is_down(const struct table *db) { return world_now_us() < db->down_until_us; }

static bool is_usable(const struct store_session *ss) { return ss->conn && ss->conn->alive && !is_down(ss->db); }

static int64_t limit_of(const struct store_session *ss) {
  int64_t limit_us = ss->limit_us && ss->limit_us < ss->db->read_timeout_us ? ss->limit_us : ss->db->read_timeout_us;
  return limit_us > ss->spent_us ? limit_us - ss->spent_us : 0;
}

/* A message on its way, for no longer than the session waits for an answer. False: for longer. */
static bool travel(struct store_session *ss) {
  int64_t us = latency(ss->db, ss->db->latency_low_us, ss->db->latency_high_us), limit_us = limit_of(ss);
  bool in_time = us <= limit_us;
  world_sleep(in_time ? us : limit_us);
  ss->spent_us += in_time ? us : limit_us;
  table_pump(ss->db);
  return in_time;
}

static bool lost(struct store_session *ss, struct err *err) {
  if (is_down(ss->db) && ss->db->hangs)
    world_sleep(limit_of(ss));
  ss->committing = ss->committing || ss->script == SCRIPT_COMMITS;
  if (ss->conn && ss->conn->alive)
    ss->conn->alive = false; /* the client has given it up; what it has left is rolled back when it closes */
  return err_set(err, LOST, "lost connection to the database");
}

static enum table_hit draw_fault(struct table *db, enum script script) {
  if (db->hit_times > 0 && (!db->hit_commits || script == SCRIPT_COMMITS)) {
    db->hit_times--;
    return db->hit;
  }
  if (chance_ppm(&db->chance, db->lost_before_ppm))
    return HIT_LOST_BEFORE;
  if (chance_ppm(&db->chance, db->lost_after_ppm))
    return HIT_LOST_AFTER;
  return chance_ppm(&db->chance, db->conflict_ppm) ? HIT_CONFLICT : HIT_NOTHING;
}

static void call_fault(struct table *db) {
  void (*call)(struct table *) = db->hit_call;
  db->hit_call = NULL;
  if (call)
    call(db);
}

void double_cost(struct store_session *ss, size_t passed, size_t taken) {
  ss->cost_us += (int64_t)passed * ss->db->walk_us + (int64_t)taken * ss->db->row_us;
}

void double_cost_ghosts(struct store_session *ss, size_t ghosts) { ss->cost_us += (int64_t)ghosts * ss->db->ghost_us; }

/* The server has been at it for so long. */
static void take_time(struct store_session *ss) {
  int64_t us = ss->cost_us < limit_of(ss) ? ss->cost_us : limit_of(ss);
  ss->cost_us = 0;
  if (us == 0)
    return;
  if (ss->conn && ss->conn->tx)
    ss->conn->tx->touched_us = world_now_us() + us;
  world_sleep(us);
  ss->spent_us += us;
}

bool double_begin(struct store_session *ss, enum script script, unsigned statements, struct err *err) {
  struct table *db = ss->db;
  atomic_fetch_add(&ss->store->statements, statements);
  world_point(POINT_STORE, ss->conn ? ss->conn->thread : 0);
  enum table_hit fault = draw_fault(db, script);
  ss->spent_us = ss->cost_us = 0;
  ss->lose_answer = fault == HIT_LOST_AFTER;
  ss->script = script;
  if (!travel(ss) || !is_usable(ss) || fault == HIT_LOST_BEFORE) {
    if (ss->conn && fault == HIT_LOST_BEFORE)
      connection_kill(db, ss->conn);
    call_fault(db);
    return lost(ss, err);
  }
  if (ss->conn->tx)
    ss->conn->tx->touched_us = world_now_us();
  if (fault == HIT_CONFLICT) {
    tx_rollback(&ss->conn->tx);
    call_fault(db);
    return double_fail(ss, DB_DEADLOCK, err);
  }
  if (script != SCRIPT_READS && db->read_only)
    return double_fail(ss, READ_ONLY, err);
  return double_lock(ss, LOCK_ROWS, 0, true, true, err);
}

bool double_end(struct store_session *ss, struct err *err) {
  take_time(ss);
  if (ss->conn && ss->conn->alive && ss->conn->tx)
    ss->conn->tx->touched_us = world_now_us();
  bool came = travel(ss) && !ss->lose_answer && is_usable(ss);
  if (!came) {
    call_fault(ss->db);
    return lost(ss, err);
  }
  return true;
}

bool double_fail(struct store_session *ss, int code, struct err *err) {
  static const char *const texts[] = {"Lock wait timeout exceeded", "Deadlock found", "a guard did not hold"};
  bool was_lost = ss->lose_answer;
  ss->lose_answer = false;
  if (!double_end(ss, err) || was_lost)
    return lost(ss, err);
  const char *text = code == DB_LOCK_WAIT  ? texts[0]
                     : code == DB_DEADLOCK ? texts[1]
                     : code == DB_GUARD    ? texts[2]
                                           : "";
  return err_set(err, code, "database error %d%s%s; %s", code, *text ? ": " : "", text, db_error_cure(code));
}

void double_do_commit(struct store_session *ss) {
  struct table *db = ss->db;
  take_time(ss);
  if (!is_usable(ss))
    return; /* double_end() finds it out */
  int64_t us = latency(db, db->commit_low_us, db->commit_high_us);
  struct tx *tx = double_tx(ss);
  ss->sent_tx = tx->number;
  tx_commit_at(&tx, world_now_us() + us);
  world_sleep(us < limit_of(ss) ? us : limit_of(ss));
  ss->spent_us += us;
  table_pump(db);
}

bool double_commit(struct store_session *ss, struct err *err) {
  double_do_commit(ss);
  return double_end(ss, err);
}

bool double_rollback(struct store_session *ss, struct err *err) {
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  tx_rollback(&ss->conn->tx);
  return double_end(ss, err);
}

struct tx *double_tx(struct store_session *ss) {
  return ss->conn->tx ? ss->conn->tx : tx_begin(ss->db, ss->conn);
}

/* --- locks --- */

bool double_locked(const struct store_session *ss, enum lock_kind kind, uint64_t key, bool shared) {
  struct tx none = {.number = ss->conn->tx ? ss->conn->tx->number : 0};
  for (size_t i = 0; i < ss->db->lock_count; i++) {
    const struct lock *lock = &ss->db->locks[i];
    if (lock->kind == kind && lock->key == key && lock->tx != none.number && !(shared && lock->shared))
      return true;
  }
  return false;
}

struct wanted {
  struct store_session *ss;
  enum lock_kind kind;
  uint64_t key;
  bool shared;
};

static bool is_settled(void *arg) {
  const struct wanted *wanted = arg;
  table_pump(wanted->ss->db);
  return !is_usable(wanted->ss) || !double_locked(wanted->ss, wanted->kind, wanted->key, wanted->shared);
}

bool double_lock(struct store_session *ss, enum lock_kind kind, uint64_t key, bool shared, bool wait, struct err *err) {
  struct wanted wanted = {ss, kind, key, shared};
  struct table *db = ss->db;
  if (wait && double_locked(ss, kind, key, shared)) {
    if (ss->conn->tx)
      ss->conn->tx->touched_us = world_now_us() + db->lock_wait_us;
    (void)world_wait(is_settled, &wanted, world_now_us() + db->lock_wait_us);
  }
  if (!is_usable(ss))
    return lost(ss, err);
  if (double_locked(ss, kind, key, shared))
    return double_fail(ss, DB_LOCK_WAIT, err);
  if (ss->conn->tx) {
    ss->conn->tx->touched_us = world_now_us();
    return kind == LOCK_ROWS || table_lock(db, ss->conn->tx, kind, key, shared);
  }
  return true;
}

void double_met_lock(struct store_session *ss) { ss->skip_until_us = clock_mono_us() + SKIP_US; }

bool double_skips(const struct store_session *ss, bool met_again) {
  return met_again || clock_mono_us() < ss->skip_until_us;
}

bool double_locked_shards(struct store_session *ss, bool skip, const struct shard_lease *leases, size_t count,
                          bool locked[STORE_SHARDS_MAX], struct err *err) {
  bool any = false;
  memset(locked, 0, STORE_SHARDS_MAX * sizeof *locked);
  if (!skip || count == 0)
    return true;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < count; i++) {
    uint8_t shard = leases[i].shard;
    locked[shard] = !ss->db->data.shards[shard].present || double_locked(ss, LOCK_SHARD, shard, true);
    any = any || locked[shard];
  }
  if (any)
    double_met_lock(ss);
  return double_end(ss, err);
}

bool double_holds(const struct store_session *ss, const struct shard_lease *lease) {
  const struct shard_entry *shard = &ss->db->data.shards[lease->shard];
  return shard->present && shard->epoch == lease->epoch &&
         (lease->shard == SHARD_BOUND || (shard->owned && strcmp(shard->owner, lease->owner ? lease->owner : "") == 0));
}

bool double_fence(struct store_session *ss, const struct shard_lease *leases, size_t count, bool *all,
                  struct err *err) {
  (void)double_tx(ss);
  for (size_t i = 0; i < count; i++)
    if (!double_lock(ss, LOCK_SHARD, leases[i].shard, true, true, err))
      return false;
  *all = true;
  for (size_t i = 0; i < count; i++)
    *all = *all && double_holds(ss, &leases[i]);
  return true;
}

/* --- units --- */

static void note_server(struct store_double *store) {
  store->changes += store->server && store->server != store->db->server;
  store->server = store->db->server;
}

/* The server goes on executing a script whose client is gone: what it commits must not come after the next unit has
 * judged whether it did. */
static void outlive_lost(struct store_session *ss) {
  int64_t deadline = clock_mono_us() + OUTLIVE_US;
  for (table_pump(ss->db); ss->lost_tx && table_executes(ss->db, ss->lost_tx) && clock_mono_us() < deadline;
       table_pump(ss->db))
    world_sleep(OUTLIVE_STEP_US);
  ss->lost_tx = 0;
}

bool double_connect(struct store_session *ss, struct err *err) {
  struct table *db = ss->db;
  ss->spent_us = 0;
  world_point(POINT_STORE, 0);
  for (int i = 0; i < CONNECT_SCRIPTS; i++)
    if (!travel(ss) || is_down(db)) {
      if (is_down(db) && db->hangs)
        world_sleep(ss->limit_us && ss->limit_us < db->connect_timeout_us ? ss->limit_us : db->connect_timeout_us);
      return err_set(err, NO_SERVER, "connecting to the database: no server");
    }
  if (db->read_only)
    return err_set(err, DB_E_READ_ONLY, "connecting to the database: the server is read-only; %s",
                   db_error_cure(DB_E_READ_ONLY));
  ss->conn = connection_open(db, ss->store->machine, ss->store->instance);
  note_server(ss->store);
  outlive_lost(ss);
  return true;
}

static bool ensure_connected(struct store_session *ss, struct err *err) {
  if (ss->conn && ss->generation != ss->store->generation)
    connection_close(ss->db, &ss->conn);
  if (ss->conn)
    return true;
  ss->generation = ss->store->generation;
  return double_connect(ss, err);
}

static void wait_before(struct store_session *ss, int try) {
  world_sleep(chance_between(&ss->db->chance, 5000, 50000) << (try - 1));
}

/* Leaves the session without an open transaction, by closing it where nothing else helps. */
static void clean_up(struct store_session *ss, int code) {
  enum db_class cls = db_error_class(code);
  struct err ignored = {0};
  bool usable = cls == DB_CONFLICT || cls == DB_REFUSED || cls == DB_FULL;
  if (ss->committing) {
    ss->unknown = true;
    ss->lost_commits++;
    ss->lost_tx = usable ? 0 : ss->sent_tx;
  }
  ss->committing = false;
  if (cls == DB_READ_ONLY)
    ss->store->generation++;
  if (!usable || (ss->conn && ss->conn->tx && !double_rollback(ss, &ignored)))
    connection_close(ss->db, &ss->conn);
}

static enum store_status run_unit(struct store_session *ss, const char *what, unit_fn *unit, void *arg, int tries,
                                  struct err *err) {
  struct err local = {0};
  struct err *seen = err ? err : &local;
  int conflicts = 0, losses = 0;
  ss->unknown = ss->committing = false;
  for (;;) {
    bool connected = ensure_connected(ss, seen);
    if (connected && unit(ss, arg, seen))
      return STORE_OK;
    enum db_class cls = db_error_class(seen->code);
    clean_up(ss, seen->code);
    if (connected && cls == DB_CONFLICT && ++conflicts < tries) {
      wait_before(ss, conflicts);
    } else if (!connected || cls != DB_LOST || ++losses >= LOST_TRIES) {
      if (connected)
        err_wrap(seen, "%s", what);
      return db_class_status(cls);
    }
  }
}

static enum store_status run(struct store_session *ss, const char *what, unit_fn *unit, void *arg, int tries,
                             struct err *err) {
  int64_t began_us = world_now_us();
  enum store_status status = run_unit(ss, what, unit, arg, tries, err);
  world_trace("%s: %lld us, %d", what, (long long)(world_now_us() - began_us), (int)status);
  return status;
}

enum store_status double_run(struct store_session *ss, const char *what, unit_fn *unit, void *arg, struct err *err) {
  return run(ss, what, unit, arg, CONFLICT_TRIES, err);
}

enum store_status double_try(struct store_session *ss, const char *what, unit_fn *unit, void *arg, struct err *err) {
  return run(ss, what, unit, arg, 1, err);
}

static bool nothing(struct store_session *ss, void *arg, struct err *err) { return true; }

enum store_status double_open(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                              struct err *err) {
  struct store_session *ss = calloc(1, sizeof *ss);
  *out = ss;
  if (!ss)
    return STORE_REFUSED;
  ss->store = store;
  ss->db = ss->store->db;
  (void)snprintf(ss->purpose, sizeof ss->purpose, "%s", purpose);
  enum store_status status = double_run(ss, "opening a database session", nothing, NULL, err);
  if (status == STORE_REFUSED)
    double_close(out);
  return status;
}

void double_close(struct store_session **ss) {
  if (!*ss)
    return;
  connection_close((*ss)->db, &(*ss)->conn);
  free((*ss)->groups);
  free((*ss)->settings);
  free((*ss)->forms);
  free(*ss);
  *ss = NULL;
}

void double_limit(struct store_session *ss, int64_t lease_ms) {
  int64_t seconds = lease_ms / 3 / 1000;
  int64_t limit_us = (seconds < LIMIT_MIN_S ? LIMIT_MIN_S : seconds) * 1000000;
  if (limit_us == ss->limit_us)
    return;
  ss->limit_us = limit_us;
  connection_close(ss->db, &ss->conn); /* the limits of a connection are those that it was made with */
}
