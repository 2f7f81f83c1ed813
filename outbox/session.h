/* SPDX-License-Identifier: MIT
 *
 * outbox/session.h - inside of outbox/: a session, and how a unit of work is run on it.
 *
 * A unit is a function that does everything from its first statement to its commit and can be run again from the
 * start: it is redone after conflicts and, on a new connection, after the connection was lost. A unit whose COMMIT may
 * have happened although it failed finds `unknown` set when it is redone and judges by what it finds in the table: the
 * COMMIT got no answer, or an error, or it was done and what came behind it in its script was not.
 *
 * A session belongs to one thread. What sessions share (struct outbox) is constant but for the generation, raised when
 * a server turns out to be read-only, so that all sessions connect again; and for which server was reached last.
 */
#ifndef OUTBOX_SESSION_H
#define OUTBOX_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/log_repeat.h"
#include "core/store.h"
#include "outbox/db_conn.h"
#include "outbox/db_stmt.h"
#include "outbox/sql.h"

struct outbox {
  const struct database_config *config;
  atomic_uint generation;
  atomic_bool has_rights;                /* all that our statements need, tried once before anything is taken */
  atomic_uint_fast64_t statements;       /* sent so far */
  atomic_uint connections;               /* opened so far */
  char instance[STORE_INSTANCE_MAX + 1]; /* whose sessions these are; "" = a command's. Constant once one is open */
  atomic_uint_fast64_t changes;  /* of the server: how often a session met another one than the session before */
  pthread_mutex_t server_lock;   /* guards server */
  char server[STORE_SERVER_MAX]; /* the one that a session reached last, "" = none yet */
};

/* Names for the sessions of one instance: more than it has open at any time, for old ones end a little later. */
enum { SESSION_NAMES = 64 };

struct store_session {
  struct outbox *outbox;
  struct database_config config; /* the outbox's when the connection was made, but for shorter time limits */
  int64_t limit_ms;              /* for the server's answers, see session_limit(); 0 = as configured */
  char purpose[32];
  struct db_conn *conn; /* NULL = not connected */
  unsigned generation;  /* of the store when conn was opened */
  int64_t opened_us;    /* monotonic: when conn was opened, */
  int64_t used_us;      /* and used last */
  bool in_transaction;
  bool continues;          /* the next session_begin_transaction finds one that server_lock_rows opened */
  bool committing;         /* what was sent may have been committed, and nobody knows it yet */
  bool unknown;            /* the unit was run before, and its commit may have happened */
  uint32_t lost_commits;   /* how many got no answer so far */
  uint64_t lost_thread;    /* the server's name for the session that was to commit it; 0 = none */
  uint64_t random;         /* for the waits between tries */
  int64_t skip_until_us;   /* monotonic: until then rows are locked without waiting for those that others hold */
  uint64_t moves_after;    /* rows to be moved, up to this id, were locked: the next ones have their turn; 0 = none */
  size_t results_like;     /* bytes: what a row held in the last transaction of results; 0 = there was none */
  unsigned locked_tables;  /* those that somebody holds as a whole (side_tables.h) */
  unsigned reads_beside;   /* those that the unit which runs reads */
  int64_t tables_asked_us; /* monotonic: when the locked ones were found */
  /* Buffers that are reused from unit to unit. */
  struct text script, part;
  struct store_group *groups;
  size_t group_cap;
  struct route_setting *settings;
  size_t setting_cap;
  struct log_repeat late;      /* what was redone because an answer was late */
  struct results_forms *forms; /* results_form.h; NULL = nothing is known */
};

/* One unit of work. On failure err->code is the database error that decides what follows. */
typedef bool unit_fn(struct store_session *ss, void *arg, struct err *err);

/* Runs a unit until it is done or given up. what names it in error texts. May wait some 100 ms between tries. */
MUSTCHECK enum store_status session_run(struct store_session *ss, const char *what, unit_fn *unit, void *arg,
                                        struct err *err);
/* The same without redoing it after a conflict: for a thread that must not wait and comes back anyway. */
MUSTCHECK enum store_status session_try(struct store_session *ss, const char *what, unit_fn *unit, void *arg,
                                        struct err *err);

enum store_status session_open(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                               struct err *err);
void session_close(struct store_session **ss);

/* The session must not wait for long for a server that says nothing: a third of a lease, in which a new connection may
 * still be made and used. No less than the server itself lets it wait for a lock. Takes effect at once. */
void session_limit(struct store_session *ss, int64_t lease_ms);

/* Begins a script: an empty one, or one that opens a transaction. Both use ss->script. */
void session_begin(struct store_session *ss);
void session_begin_transaction(struct store_session *ss);
/* Opens a transaction now, where there is nothing to send with it. */
MUSTCHECK bool session_start(struct store_session *ss, const char *what, struct err *err);
/* Adds a statement of sql/queries/ to the script. */
void session_add(struct store_session *ss, const char *statement, const struct sql_arg *args);
/* Ends the script's transaction in the same round trip: no lock outlives it. */
void session_add_commit(struct store_session *ss);
/* Sends the script of n statements. */
MUSTCHECK bool session_send(struct store_session *ss, const char *what, struct db_result *results, size_t n,
                            struct err *err);
/* The same for a script whose statement number `commit`, from 0 on, is the COMMIT. */
MUSTCHECK bool session_send_commit(struct store_session *ss, const char *what, struct db_result *results, size_t n,
                                   size_t commit, struct err *err);
/* The script of one statement that commits by itself has failed. */
void session_change_failed(struct store_session *ss);
/* Sends a script of one statement that commits by itself and gives no rows. */
MUSTCHECK bool session_change(struct store_session *ss, const char *what, uint64_t *count, struct err *err);
MUSTCHECK bool session_commit(struct store_session *ss, const char *what, struct err *err);
MUSTCHECK bool session_rollback(struct store_session *ss, const char *what, struct err *err);

/* Rows that a foreign transaction holds for long must not make the others wait. Whoever has waited for one in vain, or
 * finds it locked a second time, says so; for some seconds from then on session_skip() gives the words that let a
 * locking read of this session pass over what is locked, and always for a unit with a row that was locked before
 * (met_again). Otherwise it gives "": locks of our own sessions last milliseconds, and are waited for. Nothing relies
 * on a server that honours the words: all statements are guarded, and one that does not (TiDB) waits. */
void session_met_lock(struct store_session *ss);
const char *session_skip(const struct store_session *ss, bool met_again);

/* As session_add, for a statement about rows that are locked already: it fails with DB_LOCK_WAIT rather than wait for
 * an index entry that somebody else holds. Only MariaDB reads the words; others wait as the session does, a second. */
void session_add_no_wait(struct store_session *ss, const char *statement, const struct sql_arg *args);

/* When rows are locked without waiting (session_skip), the fence must not wait either: finds the shards whose rows
 * somebody else holds, so that the unit goes on without them. Before the unit's transaction; otherwise, and with no
 * such shard, none is locked and nothing is asked. */
MUSTCHECK bool session_locked_shards(struct store_session *ss, const char *skip, const struct shard_lease *leases,
                                     size_t count, bool locked[STORE_SHARDS_MAX], struct err *err);

/* Adds the statement that gives one row for each of the leases that is still ours, and keeps it so until the commit. */
void session_fence(struct store_session *ss, const struct shard_lease *leases, size_t count);
/* Adds an audit line. before: JSON, empty = nothing to restore. */
void session_audit(struct store_session *ss, const char *actor, const char *verb, const char *reason,
                   const char *filter, uint64_t changed, const struct text *before);
/* Adds "1,2". */
void text_shards(struct text *text, const struct shard_lease *leases, size_t count);
/* Adds "shard = 1 AND epoch = 7 AND owner = '..' OR ..". */
void text_leases(struct text *text, const struct shard_lease *leases, size_t count);

/* Writes "1,2,3" into ss->part and returns it. */
const struct text *session_ids(struct store_session *ss, const uint64_t *ids, size_t count);
/* Adds names as a list of texts: 'a','b'. */
void session_names(struct text *out, const char *const *names, size_t count);

#endif
