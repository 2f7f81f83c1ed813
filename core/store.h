/* SPDX-License-Identifier: MIT
 *
 * core/store.h - the port to the database: what the running engine needs from an outbox table, and nothing else.
 *
 * Declared here by its user, filled by outbox/. A store makes sessions; a session is one connection that belongs to one
 * thread. Every call is one unit of work: it is either done or not done when it returns. A session connects when it
 * must, verifies time zone, isolation level and schema version on every new connection, and never reconnects in the
 * middle of a unit. Deadlocks (1213, 1020) and lock waits (1205, rolled back first) are redone inside, a few times.
 *
 * Times are microseconds since 1970 UTC by the database's clock. Texts belong to the caller unless said otherwise.
 */
#ifndef CORE_STORE_H
#define CORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/record.h"
#include "core/task.h"
#include "core/task_state.h"

enum store_status {
  STORE_OK = 0,
  STORE_BUSY,    /* rolled back after conflicts: nothing was done, try the unit again later */
  STORE_DOWN,    /* no usable server (gone, read-only, too many connections): nothing was done as far as can be known */
  STORE_REFUSED, /* rights, schema, or a statement the server refuses: an operator must act; err says what to do */
};

/* Rows with a target_host are in a shard of their own that nobody leases: every daemon that holds its name (lease_name)
 * reads it for its own host. Its epoch is always 1. */
enum { SHARD_BOUND = 63 };

/* How many bytes of rows one transaction should change: the binlog takes a changed row as a whole, leases wait for the
 * transaction to be renewed, and commits of others for the binlog. */
enum { STORE_TRANSACTION_BYTES = 512 * 1024 };
/* No daemon writes an epoch beyond this: it is milliseconds since 2000, or one more than the last. */
#define STORE_EPOCH_MAX ((uint64_t)INT64_MAX)
enum { STORE_PRIORITY = 5, STORE_PRIORITY_MAX = 9 }; /* of rows whose application gives none; the highest */
enum { STORE_SHARDS_MAX = 64, STORE_ROUTE_MAX = 64, STORE_ID_MAX = 64, STORE_INSTANCE_MAX = 64, STORE_KEY_MAX = 1020 };
#define STORE_ID_MAY_CHANGE (UINT64_C(1) << 61) /* ids from there on may, while a task lives: row_ids.c */
#define STORE_ID_FAR (UINT64_C(1) << 62)        /* and these do, when the table comes to the end of its ids */
enum { STORE_WIDER = 1 }; /* columns of names are wider than what is allowed, by so many characters */

struct store_session;

/* A shard in a set of shards. */
static inline uint64_t shard_bit(uint8_t shard) { return UINT64_C(1) << shard; }

/* The shards whose rows a unit may touch, each with the epoch of our lease. */
struct shard_lease {
  uint8_t shard;
  uint64_t epoch;
  const char *owner; /* the instance that holds it; after a failover an epoch may be handed out twice. Lives longer than
                        the call. Unused for SHARD_BOUND */
};

struct shard_row {
  uint8_t shard;
  uint64_t epoch;
  char owner[STORE_INSTANCE_MAX + 1]; /* instance id, "" = nobody */
  bool expired;                       /* the lease has ended by the database's clock, or nobody holds it */
  bool unclean;                       /* the last owner did not release it: its claims in memory are lost */
};

/* What became of a lease that was to be renewed. */
enum lease_fate {
  LEASE_LOST, /* it is no longer ours */
  LEASE_RENEWED,
  LEASE_BUSY, /* another transaction holds its row: it runs on as it was */
};

/* What ending the sessions of an instance came to. */
struct store_silent {
  bool silent;             /* it has said nothing for as long as counts, and holds no shard; else nothing was done */
  uint32_t ended, refused; /* sessions; those that we have no right to end are left to the server's own time limits */
};

struct name_lease {
  int64_t since_us; /* since when it is ours without a gap; 0 = it is not */
  bool runs;        /* ours, or another one's */
};
struct store_namesake {
  char id[STORE_INSTANCE_MAX + 1], admin_url[513]; /* id "" = there is none */
  int64_t pid;
};
struct instance_row {
  const char *id;        /* random per process start */
  const char *host;      /* engine.instance: matched against target_host */
  const char *admin_url; /* "" = none */
  const char *version;
  const char *routes; /* a digest of the names of its routes; "" = it ends, and takes no shards */
  int64_t pid;
};

/* next_us of rows that are to move, 2000-01-01: read at once, whenever they are due. */
#define STORE_MOVES_US INT64_C(946684800000000)

/* A group of rows that the index keeps together: one state, shard, route and priority. */
struct store_group {
  enum task_state state;
  uint8_t shard;
  uint8_t priority;
  bool has_misfits; /* some of its rows are due before 1970, or never, or it is a misfit */
  bool misfit;      /* the schema's CHECKs refuse its route or priority: nobody reads it, read_misfits() apart */
  char route[STORE_ROUTE_MAX + STORE_WIDER + 1];
  size_t route_len; /* that of a misfit may hold NULs */
  int64_t next_us;  /* earliest next_at of the group */
};

/* Where a living row was when it was looked for. */
struct task_place {
  uint64_t id, bytes; /* bytes: of its payload */
  uint8_t shard;
  enum task_state state;
  int64_t expires_us;                        /* 0 = never */
  bool found, maybe_sent, misfit, ambiguous; /* a copy may have left; shard or state is none; two may be meant */
  char route[STORE_ROUTE_MAX + STORE_WIDER + 1];
};

/* Which groups to look at. */
struct store_look {
  const struct shard_lease *leases; /* of these shards */
  size_t lease_count;
  unsigned states;           /* in these states: TASK_BIT() of each, or-ed */
  const char *const *routes; /* of these routes; NULL = all */
  size_t route_count;
  uint32_t limit; /* so many at most, the first ones in the order of the index; 0 = all */
};
#define TASK_BIT(state) (1u << (state))

/* Rows of one state, shard and priority, of any of the routes, due by now + ahead_us. */
struct store_routes {
  enum task_state state;
  uint8_t priority;
  const char *const *routes; /* in order */
  size_t route_count;
  int64_t ahead_us;
  uint32_t limit; /* rows */
};

/* What of a row is read: where it has more bytes, only the sizes of its payload, headers and checkpoint come. */
struct store_limit {
  int64_t payload; /* of the payload alone */
  int64_t bytes;   /* of payload, headers and checkpoint */
  bool content;    /* no checkpoint is read, nor counts */
};
/* No answer is to have more in many rows: it has a limit, and memory too. */
enum { STORE_ANSWER_BYTES = 64 * 1024 * 1024 };

/* A position in a group, in index order. {0, 0} is before everything. */
struct store_cursor {
  int64_t next_us;
  uint64_t id;
};

/* Which rows unblock() asks about. */
struct store_unblock {
  const char *route;
  bool failed_too; /* a task that has failed is still a head */
  uint32_t limit;  /* rows in one call, whether they can be moved or not */
};

/* How far a walk over the rows of a route in one state and shard is, by priority, next_at, id; all zero: it begins. */
struct store_walk {
  uint8_t priority;
  struct store_cursor after;
  bool end; /* there are none behind it */
};

struct store_range {
  enum task_state state;
  uint8_t shard, priority;
  unsigned priorities; /* bits: rows of all these in place of one's, one priority after the other. For find() */
  const char *route;
  struct store_cursor after; /* exclusive */
  uint32_t limit;            /* rows */
  const char *host; /* rows bound to another are foreign, unless this one may move them; NULL = none. For find() */
  int64_t ahead_us; /* how much later than now they may be due. For find() */
  bool last;        /* the last ones, backwards, instead of the first. For find() */
};

/* What is to be claimed: rows as judged, with this identity, route and host (or none), scheduled, due by now +
 * ahead_us. */
struct store_claim {
  const char *instance, *route, *host;
  const struct shard_lease *leases;
  size_t lease_count;
  const uint64_t *ids;
  const char (*message_ids)[STORE_ID_MAX + 1];
  size_t count;
  int64_t timeout_ms, timeout_most_ms, lease_ms, ahead_us;
  struct store_limit limit; /* of what comes of a row: it may have grown since it was read */
  bool wary; /* nor of a row that is claimed does anybody hold an entry in another index: it can be settled */
};

struct found_id {
  uint64_t id;
  int64_t next_us;
  bool foreign, keyed; /* not for the range's host; has an order_key */
};

/* A task that others of its order_key wait for, wherever both are: it is to be tried again, or has moved. */
struct store_head {
  uint64_t id;
  bool failed; /* it has been tried and has failed */
  const char *route;
  struct duebox_bytes order_key;
};
typedef void store_head_fn(void *ctx, const struct store_head *head);

/* A part of the heads: those of the next order keys, one to `keys` of them. All zero but for that: of the first. */
struct store_heads_part {
  uint32_t keys;
  bool more;                       /* out: there may be keys behind it */
  char route[STORE_ROUTE_MAX + 1]; /* in and out: it goes on behind this key */
  char order_key[STORE_KEY_MAX];
  size_t order_key_len;
};

/* How much of a decision was written: what the server refuses is left out, a step at a time, and never stops others. */
enum decision_form {
  DECISION_WHOLE,
  DECISION_CUT,          /* what is longer than a column of the history or of outbox_attempts allows is cut there */
  DECISION_OWN_ID,       /* the same, and its alert has a row id of our own choice: the counter has come to its end */
  DECISION_NO_ALERT,     /* and nothing is cut */
  DECISION_NO_TEXTS,     /* the error cut; without what the consumer said beyond that */
  DECISION_NO_LINES,     /* no line in outbox_attempts, */
  DECISION_NO_HEAD,      /* nor in outbox_heads: the others of its order_key do not wait for it */
  DECISION_NO_LINES_CUT, /* and the history is cut */
  DECISION_NO_HISTORY,   /* of a row that is done; all others keep their history in every form */
  DECISION_FORMS
};

/* What is to become of one row. Guarded: it applies only where the row is still this task, by id and message id (a
 * failover or a TRUNCATE hands ids out again), and has this shard, state and attempt. */
struct decision {
  uint64_t id;
  struct duebox_bytes message_id; /* the caller's; NUL-terminated */
  struct duebox_bytes changed_at; /* the version of the row that was decided about; empty = any */
  const struct task *sent; /* what its destination has seen, to compare with a later version; NULL = it has not */
  uint8_t shard;
  enum task_state from;
  uint32_t attempt_from;
  enum task_event event;
  /* What is written, as far as the event uses it. */
  uint32_t attempt; /* attempts handed out by now */
  uint32_t failures;
  uint32_t recoveries;
  int64_t delay_us;     /* RETRY: due this long after now. PUBLISHED, PROGRESS: the result is due this long after now */
  int64_t published_us; /* when the destination had it; 0 = not published in this attempt */
  uint64_t answer_to;   /* PUBLISHED: where its consumer was told to answer (config_answer_to); 0 = nowhere we read */
  int64_t keep_us;      /* how long the row stays in outbox_history; 0 = a DONE row is deleted */
  bool log_attempt;     /* an outbox_attempts row too */
  const char *error_class;            /* NULL = none */
  const char *error;                  /* NULL = none */
  const char *alert_route;            /* DEAD: insert a task on this route that tells of it; NULL = none */
  bool head;                          /* RETRY, DEFER, RELEASE: others of its order_key wait for it until it is over */
  const struct result_record *record; /* what the consumer said, to be kept; NULL = nothing */
  const void *kin; /* what the server refuses of one it refuses of its kin, likely: these are left then. NULL = none */
  enum decision_form least; /* what is tried at first: more of it has been refused of late */
  /* Set by the store. */
  bool applied; /* false: the row was not there any more in that state and attempt; nothing was written for it */
  bool busy; /* not applied, as another transaction holds the row: give it again later with this still set, so that the
                others do not wait for it. Not set the first time */
  uint32_t unknown; /* not applied as far as is known, but a COMMIT that wrote it got no answer: which one of the
                       session's. Give it again with this still set, and the row tells. 0 the first time */
  bool written;     /* a COMMIT that got no answer has written it, as the row told since. Not set the first time */
  bool mismatch;    /* not applied: the row with this id is another task */
  bool gone;    /* not applied: there is no row with this id. Where a copy was sent, outbox_attempts has a line of it */
  bool changed; /* applied in another way: the row is another than what was decided about, and due again as it is now;
                   where a copy of what it was has left, with that attempt counted and revision + 1. Set by the engine
                   in a decision about a result */
  bool again; /* not applied, and busy: the row allows another number of attempts than it was decided with, this one */
  uint32_t max_attempts; /* again: of the row */
  bool capped;           /* set by the engine: its consumer asked for a longer time than it may */
  bool refused; /* not applied: the server refuses it in every form; err says why. To be given again, at leisure */
  enum decision_form form; /* what was written of it */
  bool left;   /* not applied, and busy: the server refuses one of its kin, or batch; not tried by itself, nor locked */
  bool beside; /* not applied, and busy: somebody holds a table beside that of the tasks as a whole */
};

/* Whether anybody but duebox has changed a row. Where sending is recorded only changes of what was sent count. */
enum row_change {
  CHANGE_NONE,
  CHANGE_BEFORE_SENT, /* not since its last attempt was recorded; earlier ones may have had another content */
  CHANGE_SINCE_SENT,  /* since its last attempt was recorded, or since it was inserted */
};

/* A row as a result meets it. */
struct result_row {
  uint64_t id;
  uint8_t shard;
  enum task_state state;
  uint32_t attempt, failures, recoveries, max_attempts, timeout_ms;
  int64_t due_us, asked_due_us, expires_us;
  int64_t now_us; /* when it was locked, by the database's clock */
  enum row_change change;
  uint64_t version;   /* task_version() */
  uint64_t answer_to; /* of the last copy that left, see struct decision; 0 = none */
  const char *route;  /* NUL-terminated, valid during the call */
};

enum result_fate {
  RESULT_APPLIED,
  RESULT_DUPLICATE, /* this row has had this attempt's result: no-op. Quarantined where that said the opposite */
  RESULT_STALE,     /* of an older attempt and not a success: ignored */
  RESULT_LATE,      /* the row is final already: no-op. Quarantined where it would have ended otherwise */
  RESULT_ORPHAN,    /* fits no row: quarantined */
  RESULT_BROKEN,    /* could not be parsed: quarantined. One with a flaw only is applied, and quarantined too */
  RESULT_MISROUTED, /* its route does not answer on the entry of results that it came from: quarantined */
  RESULT_FATES,
  RESULT_BUSY = RESULT_FATES, /* none yet: another transaction holds the row, or it is early. To be given again */
};

/* A result record as somebody offers it who waits for what becomes of it. */
struct result_offer {
  const char *source, *origin; /* as in store_result */
  struct duebox_bytes body;
  struct record_road road; /* its checkpoint_max is the configuration's */
  uint32_t lane;           /* those of one lane wait for each other, and take turns with the others: any number */
  bool replied;            /* as in store_result */
  bool replayed;           /* as in store_result */
};

struct store_result {
  struct result_record record; /* parsed; ignored when broken is set */
  const char *broken;          /* why it could not be parsed; NULL = parsed */
  const char *source;          /* source instance's name, or "http", "callback", "cli" */
  const char *origin;          /* where it stood */
  bool replied;                /* its sender learns what is wrong: what fits nothing is not kept */
  bool replayed;               /* it is in the quarantine: it is not kept once more */
  bool apart;                  /* given apart from those of other routes: it is tried, whatever is known of its own */
  struct duebox_bytes body;    /* as received, possibly cut */
  enum result_fate fate;       /* set by the store */
  enum decision_form least;    /* set by the store: in which form it was tried first */
  enum decision_form form;     /* set by the store: what was written of it; DECISION_FORMS = refused in every form */
  char refusal[256];           /* set by the store, where form is not DECISION_WHOLE: what the server said; where it is
                                  unkept: why it fits nothing */
  bool unknown;                /* set by the store: a COMMIT with it got no answer; to be given back so */
  bool early;                  /* set by the store, of a busy one: the row was changed, and what was sent of it is
                                  not recorded yet */
  bool behind;                 /* set by the store, of a busy one: what an earlier result of its task in this call
                                  comes to must be known first */
  bool postponed;              /* set by the store, of one that is behind: nothing else than that the transaction had no
                                  room for it, or for an earlier one of its task */
  bool measured;               /* set by the store: row_bytes is known */
  size_t row_bytes;            /* set by the store: of the content of its row; 0 = little, or there is none */
  bool left;                   /* set by the store, of a busy one: the server refuses some of its route, and it was not
                                  tried itself, nor met a lock. To be given again apart from other routes */
  bool whole;                  /* set by the store, of one that is left, and to be given back so: nothing of it is to be
                                  left out at once, whatever is known of its route */
  bool unkept;                 /* set by the store, of a busy one: it fits nothing, and somebody holds the quarantine.
                                  To be given again as broken by its refusal */
  bool waited;                 /* early for so long that nobody is going to record that */
  enum task_event event;       /* set by the store: what was applied */
  char route[STORE_ROUTE_MAX + 1]; /* set by the store when a row was found */
  bool cancelled;                  /* set by the store: the task was cancelled meanwhile (answer to progress) */
  bool extended;                   /* set by the store: progress has moved the time by which the result is due */
  bool unsent;                     /* set by the store, of an orphan: its task lives, and this attempt never left */
  bool contradicts;                /* set by the store, of a duplicate or late one: the task took the opposite */
  bool differs; /* set by the store, of an applied or a duplicate one: its task came to something else
                   than it says, the opposite or not: dead, and this one says retry */
  bool capped;  /* set by the store: applied, with less time than it asked for */
  bool changed; /* set by the store: applied, and the row is due again since it was changed */
};

/* Decides for one result and the row it met: fills out and returns RESULT_APPLIED, or returns why not; RESULT_BUSY when
 * it is early. It may leave out of the record what is not to be kept. Pure. */
typedef enum result_fate result_decide_fn(void *ctx, const struct result_row *row, struct result_record *record,
                                          struct decision *out);

enum intervention { INTERVENE_CANCEL, INTERVENE_RESCHEDULE };
enum intervened { INTERVENED_NOT, INTERVENED_DONE, INTERVENED_LOCKED };

struct route_setting {
  char route[STORE_ROUTE_MAX + 1];
  bool paused;
  char reason[256];
  int64_t changed_us; /* database clock: when it was set */
};

/* Something for the table has committed: rows of that group, the earliest due at due_us. It says where to look, and
 * nothing more: the row may not be visible yet, or gone again. */
struct store_hint {
  char route[STORE_ROUTE_MAX + 1]; /* "" = in whichever group */
  uint8_t shard, priority;
  int64_t due_us; /* INT64_MIN = not known */
  uint64_t id;    /* of the row that is due first; 0 = not known */
};
enum { STORE_SERVER_MAX = 256, STORE_HINTS_MAX = 64 }; /* bytes of a server's name; hints in one call */
struct store_watch;

struct store_ops {
  /* Connects. purpose is for the process list and logs ("scheduler"). lease_ms: of the leases that end unless this
   * session is answered: it waits for an answer no longer than a third of it, from the first on; 0 = as configured. A
   * failure to connect is STORE_DOWN and leaves a session that the next call tries to connect again. *out is NULL only
   * on STORE_REFUSED. */
  enum store_status (*open)(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                            struct err *err);
  void (*close)(struct store_session **ss);

  /* Now, by the database's clock. */
  enum store_status (*now)(struct store_session *ss, int64_t *now_us, struct err *err);

  /* --- instances and shards --- */
  /* Says that this instance lives for ttl_ms more; *living is the number of instances that do and take shards, this one
   * included, and *route_sets how many different digests of routes they have. */
  enum store_status (*beat)(struct store_session *ss, const struct instance_row *me, int64_t ttl_ms, uint32_t *living,
                            uint32_t *route_sets, struct err *err);
  /* Leases a name, that of the daemon (host) until leave(), or renews that. ttl_ms 0: only looks. */
  enum store_status (*lease_name)(struct store_session *ss, const struct instance_row *me, const char *name,
                                  int64_t ttl_ms, struct name_lease *out, struct err *err);
  enum store_status (*leave)(struct store_session *ss, const struct instance_row *me, struct err *err);
  /* Another daemon that lives under the name (host) of this instance, and has beaten since this one began to. */
  enum store_status (*namesake)(struct store_session *ss, const char *id, struct store_namesake *out, struct err *err);
  /* *gone: the shards, SHARD_BOUND among them, whose row somebody has deleted, as shard_bit(). */
  enum store_status (*shards)(struct store_session *ss, struct shard_row rows[STORE_SHARDS_MAX], size_t *count,
                              uint64_t *gone, struct err *err);
  /* Puts rows back that are gone. Nobody takes these shards for lease_ms: whoever held them has noticed by then. */
  enum store_status (*remake_shards)(struct store_session *ss, uint64_t gone, int64_t lease_ms, struct err *err);
  /* Compare-and-set on (shard, seen epoch): only where the lease is expired or nobody's. *epoch = 0: somebody else was
   * quicker. Otherwise our new epoch, higher than any before, also when the row was remade. STORE_BUSY, at once:
   * another transaction holds the shard's row. */
  enum store_status (*acquire)(struct store_session *ss, const char *instance, const struct shard_row *seen,
                               int64_t lease_ms, uint64_t *epoch, struct err *err);
  /* Ends what the server still has open for another instance, if that is silent: transactions of a daemon that stands
   * still, with their locks. Never a session of an instance that lives, nor of anybody else. */
  enum store_status (*end_silent)(struct store_session *ss, const char *instance, struct store_silent *out,
                                  struct err *err);
  /* Renews all leases in one statement; a row of a shard that another transaction holds does not stop the others.
   * *now_us: the database's clock at that time. From the first call on this session waits for the server for no longer
   * than a third of a lease, or three seconds where that is more; so does one that beats. */
  enum store_status (*renew)(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                             size_t count, int64_t lease_ms, enum lease_fate *fates, int64_t *now_us, struct err *err);
  /* Gives a shard back. unclean: tasks of it may have been sent whose rows do not say so; for whoever takes it, it is
   * as if its owner had vanished, without the wait. */
  enum store_status (*give_back)(struct store_session *ss, const char *instance, const struct shard_lease *lease,
                                 bool unclean, struct err *err);

  /* --- reading --- */
  /* The earliest next_at of every group that is asked about (loose index scan: a seek for each). *groups is an array of
   * the session, valid until its next call. */
  enum store_status (*look)(struct store_session *ss, const struct store_look *what, const struct store_group **groups,
                            size_t *count, int64_t *now_us, struct err *err);
  /* The earliest next_at of each range at or after range.after.next_us, in one round trip; INT64_MAX = none. A seek for
   * each: what was deleted before that time and cannot be purged costs nothing, unlike in look(). */
  enum store_status (*next_due)(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                                int64_t *next_us, int64_t *now_us, struct err *err);
  /* Whole rows of ranges with next_at <= now + ahead_us, one range after the other, each in (next_at, id) order and up
   * to its own limit, in one round trip. *batch is NULL when there are none. What is over the limit comes without
   * payload, headers and checkpoint. next_us[i]: the earliest next_at of range i beyond that; INT64_MAX = none. With
   * next_us NULL, which is cheaper, neither this nor *now_us is told. */
  enum store_status (*read)(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                            int64_t ahead_us, struct store_limit limit, struct task_batch **batch, int64_t *next_us,
                            int64_t *now_us, struct err *err);
  /* Positions only, in one snapshot, of one range after the other, counts[i] of range i: range.after exclusive,
   * until[i] inclusive, next_at <= now + range.ahead_us. Those of other hosts than range.host are marked as foreign. */
  enum store_status (*find)(struct store_session *ss, const struct store_range *ranges,
                            const struct store_cursor *until, size_t range_count, struct found_id *found,
                            size_t *counts, struct err *err);
  /* Whole rows by id, as far as they are (still) in that state in one of those shards (bits) and due (by now +
   * ahead_us). host: as in store_range; of rows that are not scheduled those that are to move stay their host's. */
  enum store_status (*read_ids)(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                struct task_batch **batch, struct err *err);
  /* Rows, without payloads, of a group that has misfits, at most limit: those that the schema does not allow where they
   * are in the index. */
  enum store_status (*read_misfits)(struct store_session *ss, const struct store_group *group, uint32_t limit,
                                    struct task_batch **batch, struct err *err);
  /* Ids only, by the covering index, of many routes at a time; in no order. */
  enum store_status (*find_routes)(struct store_session *ss, uint8_t shard, const struct store_routes *which,
                                   uint64_t *ids, size_t *count, struct err *err);
  /* Keeps of the ids those whose row, still in that state in that shard, has an expires_at that has come. */
  enum store_status (*expired)(struct store_session *ss, enum task_state state, uint8_t shard, uint64_t *ids,
                               size_t *count, struct err *err);
  /* Recorded claim: moves those of the rows that are still what they were judged by to claimed, attempt + 1, with our
   * name, the epoch of their shard's lease, and lease_until = now + (the row's timeout_ms or timeout_ms, but no more
   * than timeout_most_ms) + lease_ms; and returns them as read after that. Rows that another transaction holds are
   * passed over. *lost: the shards whose leases are lost, as shard_bit(); with one of them nothing was claimed. Knows
   * after an unknown COMMIT whether it happened; STORE_DOWN when it could not find out: own_claims() tells then. */
  enum store_status (*claim)(struct store_session *ss, const struct store_claim *claim, struct task_batch **batch,
                             uint64_t *lost, struct err *err);
  /* Rows, without payloads, claimed in our name under these leases: by id, beyond `after`, at most limit. Those that
   * are not in flight are left from a claim that was committed and whose answer never came: they may go back unsent. */
  enum store_status (*own_claims)(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                                  size_t lease_count, uint64_t after, uint32_t limit, struct task_batch **batch,
                                  struct err *err);
  /* At most limit rows, without payloads, in these shards that nobody works on: claimed before our epoch. */
  enum store_status (*lost_claims)(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                   uint32_t limit, struct task_batch **batch, struct err *err);
  /* The same in SHARD_BOUND: claims of an instance that is dead, of tasks bound to the host or to one that lives
   * nowhere. An instance whose row is missing lives for ttl_ms from when that was first met: somebody may have deleted
   * the row, which its next beat() puts back. STORE_BUSY where nobody can tell now who lives. */
  enum store_status (*lost_bound_claims)(struct store_session *ss, const char *host, int64_t ttl_ms, uint32_t limit,
                                         struct task_batch **batch, struct err *err);

  /* --- writing --- */
  /* Applies decisions in one transaction that first verifies and locks (shared) our epoch of every shard concerned.
   * Decisions of a shard whose lease is lost are not applied: lost[i] = true for its index in leases. In primary-key
   * order, a few statements for all. An unknown COMMIT is redone: the guards make that harmless. Rows that another
   * transaction holds for long are busy and do not stop the others. */
  enum store_status (*settle)(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                              struct decision *decisions, size_t count, bool *lost, struct err *err);
  /* Applies results by message id, whoever holds the shard: locks each living row, asks decide, writes, quarantines
   * what fits nothing. Those of one task are judged in the order in which they are given: any number that changes
   * nothing, and progress, of which the last is written for all. What comes behind one that moves the task on, or is
   * busy, is busy and `behind`. Busy rows as in settle. When the server refuses one, the others of its route are left,
   * and so are those of later calls, for some seconds, unless they are given apart. A call takes as many as hold some
   * 512 KiB with their rows, and at least the first; the others are busy, `behind` and `postponed`. */
  enum store_status (*settle_results)(struct store_session *ss, struct store_result *results, size_t count,
                                      result_decide_fn *decide, void *ctx, struct err *err);
  /* hold(), unhold() and unblock() move at most limit rows, and of large ones no more than have STORE_TRANSACTION_BYTES
   * of content, but at least one: the others are found by the next call. hold() moves scheduled or blocked rows of
   * unknown routes, fenced: many routes at a time, for an application may write any number. moved[i]: of routes[i]. */
  enum store_status (*hold)(struct store_session *ss, const struct shard_lease *lease, const struct store_routes *which,
                            uint32_t *moved, struct err *err);
  /* Brings held rows of a route back to scheduled, fenced. *all: none is left, nor held by another transaction. */
  enum store_status (*unhold)(struct store_session *ss, const struct shard_lease *lease, const char *route,
                              uint32_t limit, uint32_t *moved, bool *all, struct err *err);
  /* The heads of order keys that are alive, in whichever shards, one after the other: those of one key in the order in
   * which they are to go. part: NULL = all of them; moved on only when it was read. */
  enum store_status (*heads)(struct store_session *ss, struct store_heads_part *part, store_head_fn *each, void *ctx,
                             struct err *err);
  /* Of the next heads, those that wait in SHARD_BOUND for a host that lives nowhere; but not while their route is
   * paused. *count: in, heads that are looked at; out, ids. *after: the last one; 0 = before the first, behind all. */
  enum store_status (*stranded)(struct store_session *ss, uint64_t *after, uint64_t *ids, size_t *count, struct err *);
  /* Tasks of a route that are bound to the host, have an order_key and are claimed by another instance than this,
   * whether it lives or not. */
  enum store_status (*claims_elsewhere)(struct store_session *ss, const char *instance, const char *host,
                                        const char *route, store_head_fn *each, void *ctx, struct err *err);
  /* Brings those of the next blocked rows of a route back to scheduled that wait for no head of their order_key;
   * fenced. In SHARD_BOUND those that are bound to the host, or to one that lives nowhere. *all: all of these were
   * moved. walk goes on behind them, but where some did not fit into one transaction. */
  enum store_status (*unblock)(struct store_session *ss, const struct shard_lease *lease, const char *host,
                               const struct store_unblock *what, struct store_walk *walk, uint32_t *moved, bool *all,
                               struct err *err);
  /* People's commands for rows of one shard, fenced. CANCEL: scheduled, held, blocked, awaiting rows, and those whose
   * claim is lost, to history as cancelled. RESCHEDULE: scheduled rows to due_us. became[i]: NOT, the state of ids[i]
   * does not allow it; LOCKED, another transaction holds the row, which is passed over. STORE_BUSY, with nothing
   * changed: somebody holds what is written beside rows. filter: what people named the rows by. */
  enum store_status (*intervene)(struct store_session *ss, const struct shard_lease *lease, enum intervention verb,
                                 const uint64_t *ids, size_t count, int64_t due_us, const char *actor,
                                 const char *filter, const char *reason, int64_t keep_us, enum intervened *became,
                                 struct err *err);
  /* Finds living rows by id or message id, a place for each name. "message_id:" in front is exact; digits are ambiguous
   * where they name two, and so is "id:17" where another task than that row is called so. */
  enum store_status (*locate)(struct store_session *ss, const char *const *names, size_t count,
                              struct task_place *places, struct err *err);

  /* --- housekeeping --- */
  /* What operators have set for routes, all rows. *settings belongs to the session until its next call. */
  enum store_status (*route_settings)(struct store_session *ss, const struct route_setting **settings, size_t *count,
                                      struct err *err);
  /* changed_us: what the setting is about happened then; nothing is done when somebody has set the route since. 0 = it
   * is set in any case. */
  enum store_status (*set_route)(struct store_session *ss, const struct route_setting *setting, const char *actor,
                                 struct err *err);
  /* Creates partitions ahead and drops those whose time is over; forgets old attempts, quarantine and audit rows, and
   * instances that have been silent for long. What fails does not stop the rest; err is about the first. Safe when two
   * daemons do it at once. */
  enum store_status (*housekeep)(struct store_session *ss, int64_t longest_keep_ms, int64_t attempts_keep_ms,
                                 struct err *err);
  /* Where the ids of rows come to their end, since somebody chose a far one, makes them ordinary again; *reset: it did.
   * *far: one that is left to the next call, 0 = none; waited_us: for how long calls have said so. What is due keeps
   * its id for 15 s, what is claimed for 45: who has it in flight settles it by that. Safe when two daemons do it. */
  enum store_status (*row_ids)(struct store_session *ss, int64_t waited_us, bool *reset, uint64_t *far, struct err *);

  /* --- watching --- */
  /* Begins to follow what commits from now on; a look after that finds what committed before. host: rows bound to
   * others are not told. What is far larger than max_payload ends the watch, whosever row it is. STORE_REFUSED: the
   * server, the user's rights or this build do not allow it, err says which; nothing but the speed of noticing depends
   * on it. On a connection of its own, for one thread. Reads only. */
  enum store_status (*watch)(void *store, const char *host, int64_t max_payload, struct store_watch **watch,
                             struct err *err);
  /* Waits for the next hints: *hints is valid until the next call. After a quiet time it returns without any. Only rows
   * that may be due earlier than anybody knew are told, not what settling does. STORE_BUSY: the table was altered,
   * watch anew. */
  enum store_status (*watch_next)(struct store_watch *watch, const struct store_hint **hints, size_t *count,
                                  struct err *err);
  /* Has watch_next return soon, with a failure. The one call that another thread may make. */
  void (*watch_end)(struct store_watch *watch);
  void (*watch_close)(struct store_watch **watch);
};

struct store {
  const struct store_ops *ops;
  void *self;
  atomic_uint_fast64_t *statements; /* sent by all sessions so far; the store's own */
  /* Says which instance opens its sessions, before the first one: others end them when it is silent. */
  void (*identify)(void *self, const char *instance);
  /* Writes which server a session reached last into out (STORE_SERVER_MAX bytes with the NUL; "" = none yet), and
   * returns how often that was another one than the session before had reached. Any thread; NULL = not known. */
  uint64_t (*server)(void *self, char *out);
};

#endif
