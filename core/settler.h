/* SPDX-License-Identifier: MIT
 *
 * core/settler.h - writes what became of tasks: outcomes to decisions, decisions to the table, in batches.
 *
 * One thread with a connection of its own. It takes completed flights from its mailbox, waits a moment for company,
 * lets the rules decide, and applies all of it in one fenced transaction. Then the flights go to the scheduler, which
 * gives their credit back. While the database is away the settler keeps what it knows and tries again: a task is never
 * sent twice because its outcome could not be written. A task whose row a foreign transaction holds, or a place that is
 * needed beside it, is put aside and tried again apart from the others, a few at a time and for a tenth of the time at
 * most, so that the others are settled meanwhile; after a second it is parked: it leaves its place to others of its
 * route (core/lane.h). What the server refuses of an outcome is left out, a step at a time; one that it refuses in
 * every form is put aside too, and shown.
 */
#ifndef CORE_SETTLER_H
#define CORE_SETTLER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/base/log_repeat.h"
#include "core/base/sync.h"
#include "core/dead_log.h"
#include "core/lane.h"
#include "core/leases.h"
#include "core/mailbox.h"
#include "core/metrics.h"
#include "core/refusals.h"
#include "core/row_pace.h"
#include "core/store.h"

enum {
  SETTLE_BATCH_MAX = 4096,
  SETTLE_BATCH_BYTES = 512 * 1024, /* that a batch writes: a transaction with many answers of 60 KB takes seconds */
  SETTLE_LARGE_BATCH_MIN_BYTES = 16 * 1024,
  SETTLE_KEYED_US = 2 * 1000, /* an outcome waits so long for company where the next of its order_key waits for it */
  SETTLE_LARGE_BATCH_US = 20 * 1000, /* the others wait so long for a batch of large ones, or of busy ones */
};

/* Outcomes that are tried again in rounds, some of them at a time: between these times the others have the settler for
 * themselves. */
struct settler_round {
  struct flight_list flights;
  size_t left, rows;                  /* how many of them this round has not tried yet; how many it tries at once */
  bool progress;                      /* one of them went through in this round */
  int64_t at_us;                      /* monotonic: when the next ones are tried */
  int64_t wait_us, least_us, most_us; /* how long they wait after a round: longer and longer, until one goes through */
};

/* Lanes with outcomes of a kind that wait, in turn. */
struct settler_lanes {
  enum settling_kind kind;
  struct lane *first, *last;
  size_t count;         /* their outcomes */
  struct row_pace pace; /* of batches of them, where there is little to write */
};

struct settler {
  const struct store *store;
  struct leases *leases;
  struct engine_metrics *metrics;
  struct mailbox *scheduler; /* where settled flights go */
  int64_t (*db_now_us)(void *engine);
  void (*shard_lost)(void *engine, const struct shard_lease *lease); /* the fence has refused it */
  void *engine;
  _Atomic int64_t rows, delay_us; /* when a batch is written; a reload changes them */
  bool realtime;
  gauge writing_since_us; /* monotonic: since when a batch is being written; 0 = none is */
  gauge locked_since_us; /* monotonic: since when an outcome has waited whose row another transaction holds; 0 = none */
  struct mailbox in;
  struct settler_lanes quick; /* the settler's thread: lanes with outcomes that are written at once, */
  struct settler_lanes flood; /* with those of floods, */
  struct settler_lanes large; /* and with those of which there is much to write: the others go first */
  size_t large_bytes;         /* of a batch of them */
  int64_t large_at_us;        /* monotonic: when the next batch of them may be written */
  struct settler_lanes huge;  /* and with those of rows that are larger than any that is sent: one by one, */
  int64_t huge_at_us;         /* monotonic: and the next not before this */
  struct settler_lanes apart; /* the settler's thread: lanes of whose outcomes the server refuses some, */
  struct refusals_pace pace;  /* when a batch of them may be written; */
  bool others;                /* there were others in this turn */
  struct settler_round busy;  /* the settler's thread: flights whose row somebody else holds, */
  int64_t park_at_us;         /* monotonic: when to see which of them wait for long */
  struct settler_round stuck; /* the settler's thread: flights whose outcome the server refuses in every form */
  size_t left;                /* the settler's thread: outcomes that the end came before */
  struct log_repeat trouble;  /* the settler's thread: with the database, as it was logged */
  struct log_repeat flaws;    /* the settler's thread: of consumers' answers, as they were logged */
  struct log_quota dead;      /* lines; the settler's thread */
  struct thread thread;
  atomic_bool stopping; /* end when the mailbox is empty */
  atomic_bool hurry;    /* give up on a database that is away */
};

/* The caller has filled the fields above `in`. */
MUSTCHECK bool settler_start(struct settler *settler, struct err *err);
/* Ends the thread after everything in its mailbox; with a database that is away, after patience_ms. The mailbox stays:
 * a plugin that hung may come back any time. */
void settler_stop(struct settler *settler, int64_t patience_ms);

/* How many bytes of large outcomes the next batch has, after one of `bytes` that took took_us: so many that outcomes
 * with little to write do not wait long for it. Pure. */
size_t settler_large_bytes(size_t bytes, int64_t took_us);
/* How long the others have the settler, and the database, for themselves after the outcome of a huge row, which took
 * took_us: no COMMIT of anybody passes while the row is written to the binlog. Pure. */
int64_t settler_huge_rest_us(int64_t took_us);
/* The same for how many outcomes are tried again at once, after `rows` of them took took_us. Pure. */
size_t settler_again_rows(size_t rows, int64_t took_us);

/* Has an outcome wait in its lane. */
void settler_lanes_put(struct settler_lanes *lanes, struct flight *flight);
/* The next outcome, of the lane whose turn it is; there must be one. turn: the next one is that of the next lane. */
struct flight *settler_lanes_take(struct settler_lanes *lanes, bool turn);

#endif
