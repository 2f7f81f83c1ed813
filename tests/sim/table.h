/* SPDX-License-Identifier: MIT
 *
 * tests/sim/table.h - the database of the simulator: what the tables of an outbox hold, transactions, locks, a journal
 * of all that was committed, and how to hurt it.
 *
 * What is read is what is committed at that instant (READ COMMITTED). A transaction keeps what it has changed to itself
 * until it commits, and holds locks until then. A server goes on executing what was sent to it: a commit may come a
 * moment later, by itself, whatever has become of whoever sent it.
 *
 * There is no time but the world's, and no chance but the table's. Memory that belongs to the database outlives every
 * machine.
 */
#ifndef TESTS_SIM_TABLE_H
#define TESTS_SIM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chance.h"
#include "core/store.h"
#include "world.h"

/* The database's clock when the world begins, unless the table says otherwise. */
#define TABLE_EPOCH_US INT64_C(1800000000000000)
#define TIME_NULL INT64_MIN

/* A text or bytes of a column: never changed, shared by all that hold it. NUL-terminated. */
struct blob {
  unsigned refs;
  size_t len;
  char data[];
};
/* Replaces what *at holds; data NULL = SQL's NULL. */
void blob_set(struct blob **at, const char *data, size_t len);
void blob_put(struct blob **at, const char *text);
void blob_share(struct blob **at, struct blob *other);
bool blob_same(const struct blob *a, const struct blob *b);
bool blob_is(const struct blob *blob, const char *data, size_t len);
/* In the order of bytes; NULL is before everything. */
int blob_order(const struct blob *a, const struct blob *b);

enum row_text {
  ROW_MESSAGE_ID,
  ROW_ROUTE,
  ROW_PAYLOAD,
  ROW_HEADERS,
  ROW_TASK_KEY,
  ROW_ORDER_KEY,
  ROW_DEDUP_KEY, /* may be NULL, as all that follow but the host */
  ROW_TARGET_HOST,
  ROW_MOVE_TO_HOST,
  ROW_CHECKPOINT,
  ROW_ERROR_CLASS,
  ROW_LAST_ERROR,
  ROW_CLAIMED_BY,
  ROW_RESULT, /* in the history alone */
  ROW_TEXTS
};

/* A row of the outbox, or of its history. Numbers: 0 = NULL, times: TIME_NULL = NULL, where the schema allows that. */
struct row {
  struct blob *text[ROW_TEXTS];
  uint64_t id;
  enum task_state state;
  uint8_t shard, priority;
  uint32_t attempt, failures, recoveries, revision, max_attempts, timeout_ms;
  int64_t delay_ms, due_us, created_us, changed_us, expires_us, lease_until_us, first_due_us, published_us;
  int64_t finished_us, keep_until_us; /* of the history */
  double progress;                    /* below 0 = NULL */
  uint64_t sent_digest, claim_epoch, answer_to;
  bool has_digest, has_epoch;
  int move_to_shard; /* below 0 = NULL */
};
enum { SHARD_DEFAULT = 255 }; /* of a new row: computed when it commits */

struct line { /* outbox_attempts */
  struct blob *message_id, *route, *claimed_by, *error_class, *error, *result;
  uint64_t task_id;
  uint32_t attempt;
  const char *kind, *outcome; /* constants */
  int64_t due_us, published_us, finished_us;
};
enum { LINE_TEXTS = 6 };

struct head_row { /* outbox_heads */
  struct blob *route, *order_key, *message_id;
  uint64_t id;
  uint32_t failures;
  uint8_t shard;
};
enum { HEAD_TEXTS = 3 };

struct quarantined {
  struct blob *source, *origin, *reason, *body;
  uint64_t id;
  uint32_t seen;
  int64_t received_us;
};
enum { QUARANTINE_TEXTS = 4 };

struct audit_line {
  struct blob *actor, *reason, *filter;
  uint64_t id;
  const char *verb; /* a constant */
  uint64_t changed;
  int64_t at_us;
};
enum { AUDIT_TEXTS = 3 };

struct instance_entry {
  struct blob *id, *host, *routes;
  struct blob *version; /* of a name: who holds it */
  int64_t started_us, seen_us, alive_until_us;
};
enum { INSTANCE_TEXTS = 4 };

struct route_entry {
  struct route_setting setting;
};

struct shard_entry {
  bool present;
  uint64_t epoch;
  bool owned;
  char owner[STORE_INSTANCE_MAX + 1];
  int64_t lease_until_us; /* TIME_NULL = NULL */
  bool unclean;
  int64_t abandoned_us; /* 0 = NULL */
};

/* Records of one kind. Each begins with so many texts. */
struct list {
  void **at;
  size_t count, cap;
  size_t size;
  unsigned texts;
};

/* All that a backup has. */
struct data {
  struct list rows; /* by id */
  struct list history, attempts, heads, quarantine, audit, instances, routes;
  struct shard_entry shards[STORE_SHARDS_MAX];
  uint64_t next_id, next_quarantine;
};

/* The event of a row that was due again since somebody had changed it. */
enum { EVENT_CHANGED = TASK_EVENTS + 1 };

enum journal_kind {
  JOURNAL_INSERTED,
  JOURNAL_CHANGED,
  JOURNAL_ENDED,   /* by duebox: `to` says how; it may be in the history */
  JOURNAL_DELETED, /* by plain SQL */
  JOURNAL_LOST,    /* the server that took over, or the backup, does not have it */
  JOURNAL_BACK,    /* it is as it was some time ago */
  JOURNAL_SERVER   /* about no row: another server, or another state of it */
};

struct journal_entry {
  int64_t at_us; /* of the world, when it was committed */
  int64_t clock_us;
  enum journal_kind kind;
  unsigned machine; /* 0 = a user */
  int event;        /* of a task; TASK_EVENTS = none */
  enum task_state from, to;
  uint64_t id;
  char message_id[STORE_ID_MAX + 2], route[STORE_ROUTE_MAX + 2];
  char host[16];    /* that it is bound to, its beginning; "" = none */
  uint64_t content; /* a digest of what a copy of the row says */
  uint32_t attempt, failures, recoveries, revision, max_attempts;
  uint8_t shard, priority;
  int64_t next_us, due_us, first_due_us, expires_us;
};

/* What can be locked. The first four are whole tables, with a key of 0; the bits of the first three are also those of
 * tables that refuse what is written to them. */
enum lock_kind {
  LOCK_HISTORY = 1,
  LOCK_ATTEMPTS = 2,
  LOCK_HEADS = 4,
  LOCK_ROWS = 8,
  LOCK_ROW = 16,       /* by id */
  LOCK_ENTRY = 32,     /* something of a row, by id, that only a change of it meets: an entry of another index */
  LOCK_SHARD = 64,     /* by number */
  LOCK_INSTANCE = 128, /* by table_key() of its id */
  LOCK_ROUTE = 256,    /* by table_key() of its name */
};
enum { REFUSE_ALERTS = 8, REFUSE_ROWS = 16 };

struct lock {
  uint64_t tx;
  enum lock_kind kind;
  uint64_t key;
  bool shared;
};

struct connection;
struct change;

/* An open transaction. */
struct tx {
  struct table *db;
  uint64_t number;
  unsigned machine;        /* 0 = a user's */
  struct connection *conn; /* NULL = a user's, who holds locks for as long as it pleases */
  int64_t touched_us;      /* world time: when the client said something last */
  int64_t commit_at_us;    /* world time: it commits by itself; INT64_MAX = not yet */
  bool dead;               /* a user's: the server has dropped it, which the commit finds out */
  struct change *changes;
  size_t count, cap;
};

/* What the log has told a session that follows it, and that it has not taken yet. */
struct feed {
  char host[256]; /* rows bound to others are not told */
  struct store_hint hints[STORE_HINTS_MAX];
  size_t count;
  bool altered; /* the table was */
};

/* A session as the server knows it. */
struct connection {
  uint64_t thread;
  const struct machine *machine; /* NULL = outside of all */
  char instance[STORE_INSTANCE_MAX + 1];
  bool alive;
  struct tx *tx;
  struct feed *feed; /* NULL = it does not follow the log */
};

/* An entry of the index (state, shard, route, priority, next_at, id) that nobody sees any more, and that is walked over
 * until it is purged. */
struct ghost {
  enum task_state state;
  uint8_t shard, priority;
  uint64_t route; /* table_key() */
  int64_t next_us;
  uint64_t id;
};
enum { GHOSTS_MAX = 2048 };

enum table_hit { HIT_NOTHING, HIT_LOST_BEFORE, HIT_LOST_AFTER, HIT_CONFLICT };

enum { CONNECTIONS_MAX = 256, TRANSACTIONS_MAX = 256 };

struct table {
  /* --- what a test or the harness may set at any time --- */
  struct chance chance;
  int64_t clock_ahead_us;                  /* the database's clock before the world's */
  int64_t latency_low_us, latency_high_us; /* of a message, one way */
  int64_t commit_low_us, commit_high_us;   /* between the last judgement of a script and its commit */
  unsigned slow;                           /* factor of both; 0 = 1 */
  int64_t lock_wait_us;                    /* how long a statement waits for a lock */
  /* What a statement costs beside its way. A row in here stands for as many as a flood has: what is passed over costs
   * walk_us, which is a story's measure of how many these are; what is read or written, of which every statement has a
   * limit, costs row_us. */
  int64_t walk_us, row_us;
  int64_t ghost_us;          /* what nobody sees any more: the same for hundreds of entries of an index */
  int64_t unpurged_until_us; /* world time: somebody has a snapshot open, and entries of the index that were deleted or
                                moved remain */
  int64_t silent_us;         /* how long an open transaction of a daemon may be idle */
  int64_t read_timeout_us;   /* how long a session waits for an answer, unless it has a limit of its own */
  int64_t down_until_us;     /* world time. table_down() ends the sessions too */
  bool hangs;                /* while it is down it answers nothing, and does not refuse connections */
  int64_t connect_timeout_us;
  bool read_only;
  uint32_t lost_before_ppm, lost_after_ppm, conflict_ppm; /* of each script */
  unsigned refuses;     /* LOCK_HISTORY, LOCK_ATTEMPTS, LOCK_HEADS, REFUSE_*: writes fail */
  uint64_t refuses_id;  /* those about this row; 0 = about any */
  bool denies;          /* those fail since a right is missing */
  size_t refused_bytes; /* texts of a result, checkpoint or error above it are refused; 0 = none */
  uint64_t max_packet;
  bool may_kill; /* daemons have the right to end each other's sessions */
  /* What hits the next scripts whose COMMIT, or which at all, is on its way: for tests that name the place. */
  enum table_hit hit;
  bool hit_commits; /* only scripts that commit */
  int hit_times;
  void (*hit_call)(struct table *db); /* called once, when the answer of such a script was lost or the script undone */

  bool no_log; /* nobody may follow it */
  /* Called as rows are about to be claimed: they may be others by then than those that were read. NULL = nobody does.
   */
  void (*before_claim)(struct table *db, const uint64_t *ids, size_t count);
  bool narrow_claims; /* of rows of a claim that have grown since it began no payloads come, unless it is of one */

  /* --- its own --- */
  unsigned shard_count;
  struct data data;
  uint64_t server; /* another number is another server */
  uint64_t next_tx, next_thread;
  struct tx *open[TRANSACTIONS_MAX];
  int open_end; /* there are none from there on */
  struct connection *connections[CONNECTIONS_MAX];
  struct lock *locks;
  size_t lock_count, lock_cap;
  struct journal_entry *journal;
  size_t journal_count, journal_cap;
  struct ghost ghosts[GHOSTS_MAX];
  size_t ghost_count;
};

/* Memory of the database. */
void *table_alloc(size_t size);
void table_free(void *at);
/* Makes room for one more element of that size. */
void *table_grow(void *at, size_t count, size_t *cap, size_t size);

void table_begin(struct table *db, unsigned shards, struct chance chance);
void table_end(struct table *db);
int64_t table_clock(const struct table *db);
/* Does what the server does by itself by now. Called by all that look at the data. */
void table_pump(struct table *db);

/* --- rows; pointers are valid until the next point at which another strand may run --- */
struct row *table_row(struct table *db, uint64_t id);
/* The row that has that message id; NULL = none. */
struct row *table_find(struct table *db, const char *message_id, size_t len);
int64_t row_next_us(const struct row *row);
int64_t row_due_us(const struct row *row);
int64_t row_first_due_us(const struct row *row);
int64_t row_ripe_us(const struct row *row);
bool row_moves(const struct row *row);
/* Of what is sent of a row. */
uint64_t row_content(const struct row *row);
/* Whether anybody but duebox has changed it, as changed_at tells: see sql/queries/result_lock.sql. */
bool row_untouched(const struct row *row);
/* Stands for a text as the key of a lock. */
uint64_t table_key(const char *text);
/* "2027-01-15 08:00:00.000000" */
enum { TABLE_TIME_LEN = 26 };
void table_time_text(int64_t us, char out[TABLE_TIME_LEN + 1]);
bool head_lives(const struct table *db, const struct head_row *head, const struct row **task);
bool instance_lives(const struct table *db, const struct instance_entry *instance);
bool host_lives(const struct table *db, const struct blob *host);
bool lease_runs(const struct table *db, const struct shard_entry *shard);
/* The row of the instance that has claimed the row; NULL = none. */
const struct instance_entry *claimer(const struct table *db, const struct row *row);
/* outbox/sql.h: SQL_CLAIMER_GONE, SQL_CLAIM_LOST, SQL_ABANDONED_UNTIL, SQL_MAYBE_SENT */
bool claimer_gone(const struct table *db, const struct row *row);
bool claim_lost(const struct table *db, const struct row *row);
int64_t abandoned_until(const struct table *db, const struct shard_entry *shard);
bool maybe_sent(const struct table *db, const struct row *row);

struct list list_of(size_t size, unsigned texts);
void *record_new(const struct list *list);
void *record_copy(const struct list *list, const void *record);
void record_free(const struct list *list, void *record);
void list_add(struct list *list, size_t at, void *record);
void list_remove(struct list *list, size_t at);

/* --- transactions (table_tx.c) --- */
/* Takes a lock, which the transaction keeps until its end. False: another one has it. tx NULL: asks only. */
bool table_lock(struct table *db, struct tx *tx, enum lock_kind kind, uint64_t key, bool shared);
struct tx *tx_begin(struct table *db, struct connection *conn);
void tx_commit(struct tx **tx);
void tx_rollback(struct tx **tx);
/* It commits by itself at that time of the world. Its owner must not use it any more. */
void tx_commit_at(struct tx **tx, int64_t at_us);
/* A change that becomes visible with the commit; takes the record over. */
void tx_put_row(struct tx *tx, struct row *image, int event);
void tx_end_row(struct tx *tx, const struct row *row, struct row *history, int event, enum task_state to);
void tx_add(struct tx *tx, struct list *list, void *record);

/* Whether the server is still about to commit it. */
bool table_executes(const struct table *db, uint64_t tx);
/* The shard that the schema gives to a row that is bound to no host. */
uint8_t table_shard_of(const struct table *db, const struct row *row);

struct connection *connection_open(struct table *db, const struct machine *machine, const char *instance);
/* The server ends it; who had it finds out. */
void connection_kill(struct table *db, struct connection *conn);
void connection_close(struct table *db, struct connection **conn);

/* How many entries of the group's part of the index from one time up to another nobody sees: ghosts, and those of open
 * transactions of users. Of `group` its id and time do not count. */
size_t table_ghosts(const struct table *db, const struct ghost *group, int64_t from_us, int64_t until_us);

/* The log tells those who follow it, a moment before the rows can be seen, what may be due earlier than anybody knew.
 */
void tx_tell(struct tx *tx);

/* --- users: strands of no machine (table_users.c) --- */
struct tx *user_begin(struct table *db);
/* A new row with the schema's defaults, to be filled until the commit. */
struct row *user_insert(struct tx *tx, const char *route, const char *payload, size_t len);
/* The row as this transaction leaves it, to be changed until the commit. Waits for its lock, 50 s at most. NULL: it is
 * not there, or remains locked. A change that is no UPDATE by anybody but duebox sets changed_us back. */
struct row *user_update(struct tx *tx, uint64_t id);
bool user_delete(struct tx *tx, uint64_t id);
/* Waits too. False: in vain. */
bool user_lock(struct tx *tx, enum lock_kind kind, uint64_t key, bool shared);
/* False: the server has gone away meanwhile, and nothing was done. */
bool user_commit(struct tx **tx);
void user_rollback(struct tx **tx);
/* One row in a transaction of its own; its id, or 0 when the server is not there. */
uint64_t user_put(struct table *db, const char *route, const char *payload, const char *message_id);

/* --- faults (table_users.c) --- */
void table_down(struct table *db, int64_t until_us);
/* All sessions end, for whatever reason; the server is there. */
void table_kill_sessions(struct table *db);
/* A machine is gone in the middle of whatever it did: its transactions are rolled back. What was already sent to be
 * committed may still be. */
void table_machine_gone(struct table *db, const struct machine *machine);
/* Copies what is committed. */
struct data *table_backup(struct table *db);
void table_backup_free(struct data **backup);
/* Another server takes over, or this one is restored, with the data of that time: ids are handed out again. */
void table_fail_over(struct table *db, const struct data *backup, bool other_server);
/* Whoever follows the log has to begin anew. */
void table_altered(struct table *db);
/* TRUNCATE of the outbox, by a user's strand: waits for open transactions, and ids begin with 1 again. False: in vain.
 */
bool table_truncate(struct table *db);

struct journal_entry *journal_add(struct table *db, enum journal_kind kind, unsigned machine, const struct row *row);

#endif
