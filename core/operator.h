/* SPDX-License-Identifier: MIT
 *
 * core/operator.h - the port for people: finding tasks, changing many of them with an audit trail, looking after
 * routes.
 *
 * Declared here for its users (command line, admin API), filled by outbox/. It works beside running daemons: what it
 * changes directly is either legal at any time by plain SQL (rows that are scheduled, rows in history) or belongs to a
 * shard that nobody holds, which it verifies and locks in the same transaction. Tasks of a held shard are cancelled and
 * rescheduled by asking the daemon that owner() names.
 *
 * One operator is one connection and belongs to one thread. Times are microseconds since 1970 UTC by the database's
 * clock. Every call is one unit of work, done or not done, except list(), which streams.
 */
#ifndef CORE_OPERATOR_H
#define CORE_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/store.h"
#include "core/task_state.h"

/* In which a request tells a daemon the name that announce() has written. */
#define OUTBOX_HEADER "Duebox-Outbox"

/* --- rows as people see them: named values, for display only --- */

enum field_kind {
  FIELD_TEXT, /* UTF-8 */
  FIELD_BYTES,
  FIELD_ID, /* decimal text of a 64-bit number */
  FIELD_INT,
  FIELD_REAL,
  FIELD_BOOL,
  FIELD_TIME,
};

struct field {
  const char *name;
  enum field_kind kind;
  bool null;
  struct duebox_bytes text; /* TEXT, BYTES, ID */
  int64_t number;           /* INT, BOOL, TIME (microseconds) */
  double real;              /* REAL */
};

/* One row; valid during the call. False ends the listing early. */
typedef bool row_fn(void *ctx, const struct field *fields, size_t count);

/* --- which tasks --- */

#define STATE_BIT(state) (1u << (state))
#define STATES_LIVING                                                                                                  \
  (STATE_BIT(TASK_SCHEDULED) | STATE_BIT(TASK_CLAIMED) | STATE_BIT(TASK_AWAITING) | STATE_BIT(TASK_HELD) |             \
   STATE_BIT(TASK_BLOCKED))
#define STATES_FINAL (STATE_BIT(TASK_DONE) | STATE_BIT(TASK_DEAD) | STATE_BIT(TASK_CANCELLED) | STATE_BIT(TASK_EXPIRED))

/* All conditions must hold; NULL and 0 = no condition. */
struct task_filter {
  uint32_t states; /* bits; 0 = the living */
  const char *route, *key, *error_class;
  uint8_t priority;
  int64_t due_before_us, due_after_us; /* before: exclusive; after: inclusive */
  int64_t created_before_us, created_after_us;
  const char *const *ids; /* row ids or message ids, as operator_ops.find reads them; of digits both */
  size_t id_count;
  bool exact_ids;    /* "id:100" is that row, and no task that is called so */
  bool failed;       /* of living tasks only those with failures */
  const char *where; /* raw SQL, put in brackets as it is: it runs with the rights of the database user */
};

/* --- what becomes of them --- */

/* Bytes of the reason that people give: what the table of routes keeps of one. */
enum { OPERATOR_REASON_MAX = 255 };

/* Bytes of what is kept of a server's refusal, with the NUL. */
enum { OPERATOR_REFUSED_MAX = 320 };

enum change_verb { CHANGE_CANCEL = 0, CHANGE_RESCHEDULE, CHANGE_RETRY, CHANGE_SET, CHANGE_VERBS };

enum change_outcome {
  CHANGE_DONE = 0,
  CHANGE_NOT_FOUND, /* no such row any more */
  CHANGE_STATE,     /* its state does not allow it */
  CHANGE_EXPIRES,   /* it would never be sent: it would be due when its expires_at has come */
  CHANGE_IN_FLIGHT, /* it is on its way out, or, where the verb cannot change that, awaits its result */
  CHANGE_CONFLICT,  /* a living task has its message id or dedup key */
  CHANGE_REFUSED,  /* the server does not write it: its row has values that the table does not allow, or refused says */
  CHANGE_LOCKED,   /* another transaction holds its row, or what would be written with it */
  CHANGE_HELD,     /* a daemon holds its shard: ask it (cancel, reschedule) */
  CHANGE_OUTCOMES, /* not known, or not yet */
};

enum target_order { OLDEST_FIRST, NEWEST_FIRST }; /* by id */

struct task_target {
  uint64_t id;
  uint8_t shard;
  enum task_state state;      /* as it was found; final: the row is in history */
  int64_t next_us;            /* living: when a daemon looks at it next */
  int64_t due_us, expires_us; /* living: 0 = it has none that can be read */
  int64_t keep_us;            /* ended: until when it is kept; tells rows of the history with the same ids apart */
  char message_id[STORE_ID_MAX + STORE_WIDER + 1];
  enum change_outcome outcome; /* set by change() */
  bool maybe_sent; /* a copy of it has left, or may have; change() sets it, to false but for cancel and reschedule */
  bool moves;      /* set by change(), of one that is done: a daemon takes it to its host when no copy of it is out */
  bool other_id;   /* set by change(), of an ended one that is done: its row has another id now */
  bool claim_lost; /* claimed by a daemon that cannot settle it any more */
  bool nameless;   /* its message id is none that anybody could ask for; message_id is how it is shown */
  bool misfit;     /* its shard is none: nothing but CHANGE_REFUSED comes of it */
  char refused[OPERATOR_REFUSED_MAX]; /* set by change(), REFUSED: what the server said; "" = its values do not fit */
};

/* Values of CHANGE_SET. A row takes those that are given. */
enum task_setting {
  SET_PRIORITY = 0,
  SET_MAX_ATTEMPTS,
  SET_TIMEOUT_MS,
  SET_EXPIRES_AT,
  SET_TARGET_HOST,
  TASK_SETTINGS
};

struct task_change {
  enum change_verb verb;
  int64_t due_us;                 /* RESCHEDULE */
  int64_t keep_us;                /* CANCEL: how long the row stays in history */
  uint32_t given;                 /* SET: bits 1 << enum task_setting */
  int64_t numbers[TASK_SETTINGS]; /* SET: of all but the host; EXPIRES_AT in microseconds */
  const char *target_host;        /* SET: "" = any */
  const char *actor, *reason;     /* for the audit row; never NULL */
  const char *filter;             /* the selection in words, for the audit row */
};

/* The first and the last of the audit rows that were written; rows of others may lie between. 0 = none. */
struct audit_span {
  uint64_t first, last;
};

/* Rows that were written later come behind those of the span; one row is {id, id}. */
static inline void audit_span_add(struct audit_span *span, struct audit_span later) {
  span->first = span->first ? span->first : later.first;
  span->last = later.last ? later.last : span->last;
}

struct shard_owner {
  char instance[STORE_INSTANCE_MAX + 1]; /* "" = nobody */
  char host[1024];
  char admin_url[2052]; /* "" = it has no listener, or is not known */
  bool alive;           /* its lease runs */
  int64_t lease_us;     /* when the lease ends or ended */
};

struct new_task {
  const char *route;
  struct duebox_bytes payload;
  const char *headers;                                                /* JSON text or NULL */
  const char *key, *dedup_key, *order_key, *message_id, *target_host; /* NULL = default */
  int64_t delay_ms;                                                   /* -1 = not given */
  int64_t due_us;                                                     /* 0 = not given */
  int64_t expires_us;                                                 /* 0 = never */
  int64_t priority, max_attempts, timeout_ms;                         /* 0 = default */
};

struct task_detail_fns {
  void *ctx;
  row_fn *task;    /* the row: living, or the latest in history; with `payload` cut and `payload_length` whole */
  row_fn *attempt; /* each recorded attempt, oldest first */
};

enum finding { FINDING_OK = 0, FINDING_WARN, FINDING_FAIL };
/* check: stable short name. cure: "" for OK. */
typedef void finding_fn(void *ctx, enum finding level, const char *check, const char *text, const char *cure);

struct doctor_facts {
  int64_t max_payload;         /* bytes */
  int wake;                    /* enum wake_mode */
  int64_t (*wall_clock)(void); /* this machine's clock, microseconds since 1970; compared with the database's */
};

enum { OPERATOR_E_AMBIGUOUS = -100 }; /* err->code: an id names two tasks; the text says how to be exact */

struct operator_ops {
  void (*close)(void *self);
  enum store_status (*now)(void *self, int64_t *now_us, struct err *err);

  /* --- tasks --- */
  /* How many match, counted up to cap (0 = all of them). */
  enum store_status (*count)(void *self, const struct task_filter *filter, uint64_t cap, uint64_t *count,
                             struct err *err);
  /* The newest `limit` matching rows (0 = all) of living and ended tasks together, by falling id, paged by key. */
  enum store_status (*list)(void *self, const struct task_filter *filter, uint64_t limit, row_fn *row, void *ctx,
                            struct err *err);
  /* The task of that id, living, else the newest in history: "id:100" is a row id, "message_id:100" a message id,
   * digits are the one or the other, everything else is a message id. Where digits name two tasks, or what has a prefix
   * is another task's message id as it is: STORE_REFUSED with OPERATOR_E_AMBIGUOUS. find() says which it is, among
   * those in `states` (bits; 0 = all), show() gives everything, with payload_cap bytes of payload. */
  enum store_status (*show)(void *self, const char *id, uint64_t payload_cap, const struct task_detail_fns *fns,
                            bool *found, struct err *err);
  enum store_status (*find)(void *self, const char *id, uint32_t states, struct task_target *target, bool *found,
                            struct err *err);
  /* The same for a name that this program has made, with a prefix: nothing that is called so is in its way. */
  enum store_status (*find_exact)(void *self, const char *id, uint32_t states, struct task_target *target, bool *found,
                                  struct err *err);
  /* Whether what people give for a task names the one with this id and message id; one may name two. Pure. */
  bool (*names)(const char *text, uint64_t id, const char *message_id);
  /* What change() would make of a task that is as the target says. Pure. Of a living one for RETRY: that has failed. */
  enum change_outcome (*judge)(const struct task_change *order, const struct task_target *target);
  /* Up to cap matching tasks of one table (living or history, as `living` says) behind the row `last` (its id and
   * keep_us) in that order; NULL = from the first on. */
  enum store_status (*targets)(void *self, const struct task_filter *filter, bool living, enum target_order order,
                               const struct task_target *last, struct task_target *targets, size_t cap, size_t *count,
                               struct err *err);
  /* Changes up to CHANGE_CHUNK targets in one transaction, guarded by what each row is at that moment, with one audit
   * row; where one of them collides with a living task, is locked, or the server refuses to write it, in some smaller
   * ones, so that only such a one is not changed. Sets outcome in each target; CHANGE_OUTCOMES: it failed before, or
   * with, this one. */
  enum store_status (*change)(void *self, const struct task_change *change, struct task_target *targets, size_t count,
                              struct audit_span *audit, struct err *err);
  /* An audit row for what was done elsewhere. */
  enum store_status (*audit)(void *self, const struct task_change *change, uint64_t changed, uint64_t *audit_id,
                             struct err *err);
  enum store_status (*owner)(void *self, uint8_t shard, struct shard_owner *owner, struct err *err);
  enum store_status (*insert)(void *self, const struct new_task *task, uint64_t *id, char message_id[STORE_ID_MAX + 1],
                              struct err *err);

  /* --- routes and instances --- */
  /* Every route that has rows or a setting: counts of living rows per state (each up to cap), settings, earliest due.
   */
  enum store_status (*routes)(void *self, const char *only, uint64_t cap, row_fn *row, void *ctx, struct err *err);
  enum store_status (*pause)(void *self, const char *route, bool paused, const char *actor, const char *reason,
                             struct err *err);
  enum store_status (*instances)(void *self, row_fn *row, void *ctx, struct err *err);
  /* A command that asks daemons writes a name into the table that nobody else has, and takes it away at its end. A
   * daemon that is asked in that name looks for it in its own table: in a copy of the database, or another, it is not.
   */
  enum store_status (*announce)(void *self, const char *name, struct err *err);
  /* Of each of these names, at least one, whether it is there: found has as many elements. Names are ASCII without
   * blanks; others are never there. */
  enum store_status (*announced)(void *self, const char *const *names, size_t count, bool *found, struct err *err);
  enum store_status (*withdraw)(void *self, const char *name, struct err *err);

  /* --- quarantined result records --- */
  /* The newest `limit` (0 = all), or the one of that id; bodies cut to body_cap bytes. */
  enum store_status (*quarantine)(void *self, uint64_t id, uint64_t limit, uint64_t body_cap, row_fn *row, void *ctx,
                                  struct err *err);
  /* Forgets the one of that id, or with id 0 all that were received before; leaves an audit row. */
  enum store_status (*quarantine_forget)(void *self, uint64_t id, int64_t before_us, const char *actor,
                                         const char *reason, uint64_t *forgotten, struct err *err);

  /* Looks at the server and the tables with an operator's eyes. Only a lost connection is an error. */
  enum store_status (*doctor)(void *self, const struct doctor_facts *facts, finding_fn *say, void *ctx,
                              struct err *err);
};

enum { CHANGE_CHUNK = 500 };

struct operator{
  const struct operator_ops *ops;
  void *self;
};

#endif
