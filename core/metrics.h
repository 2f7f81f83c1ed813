/* SPDX-License-Identifier: MIT
 *
 * core/metrics.h - counters, gauges and histograms of the running engine.
 *
 * Every field is written with relaxed atomics by whichever thread saw the event and read by the admin listener; nobody
 * waits for anybody. A route keeps its metrics over reloads. Names and help of what is exported stand in admin/.
 */
#ifndef CORE_METRICS_H
#define CORE_METRICS_H

#include <duebox/outcome.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/store.h"
#include "core/task_state.h"

typedef atomic_uint_fast64_t counter;
typedef atomic_int_fast64_t gauge;

/* Upper bounds in microseconds of the exported buckets; the last one is +Inf. */
enum { HISTOGRAM_BUCKETS = 24 };
extern const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS - 1];

struct histogram {
  counter bucket[HISTOGRAM_BUCKETS]; /* not cumulative */
  counter count;
  counter sum_us;
  gauge max_us;
};

void histogram_add(struct histogram *histogram, int64_t value_us);
/* The value under which share (0..1) of what was added lies, interpolated within its bucket and never more than the
 * largest that was added; 0 when empty. */
int64_t histogram_quantile_us(const struct histogram *histogram, double share);

struct route_metrics {
  counter outcomes[DUEBOX_GONE + 1]; /* of attempts, by enum duebox_outcome_class */
  counter events[TASK_EVENTS];       /* settled, by enum task_event */
  counter results[RESULT_FATES];     /* result records, by fate */
  counter changed;           /* changed by plain SQL while they were at the sink: due again with their new content */
  counter vanished;          /* settled rows that were not there any more (plain SQL was quicker) */
  struct histogram lateness; /* hand-over to the sink minus due time, first attempts */
  struct histogram duration; /* hand-over to outcome */
  counter stalls;            /* how often its destination stood still */
  gauge inflight;
  gauge inflight_bytes;
  gauge oldest_due_us;    /* due time of the oldest task that is due and not in flight; 0 = none */
  gauge first_blocked_us; /* first due time, passed or not, of those that are blocked by their order_key; 0 = none */
  gauge claim_gap_us;     /* memory claims: widest time seen between reading a row and its confirm */
};

/* Why a result record was put into quarantine. */
enum quarantine_kind {
  QUARANTINED_BROKEN,        /* no status and task can be made out */
  QUARANTINED_ORPHAN,        /* no such task, or no such attempt of it */
  QUARANTINED_MISROUTED,     /* its route does not answer there */
  QUARANTINED_FLAWED,        /* its status counts, and something else in it is wrong */
  QUARANTINED_CONTRADICTION, /* its task took the opposite */
  QUARANTINED_REFUSED,       /* the server refuses what it would write */
  QUARANTINED_KINDS
};

struct engine_metrics {
  counter rows_read;
  counter statements;
  counter server_changes; /* a connection reached another server than the one before it */
  counter settle_batches;
  counter settled_rows;
  counter fence_lost;          /* decisions dropped because the shard's lease was lost */
  counter settled_reduced;     /* rows settled without something that the server refused */
  counter identity_mismatches; /* rows that were another task than the one to be settled */
  counter leases_lost;
  counter shards_taken; /* after an unclean end of their owner */
  counter db_errors;
  counter completions_twice; /* a plugin completed a token twice or completed an unknown one */
  counter results_unrouted;  /* result records that fit no row or could not be parsed */
  counter results_quarantined[QUARANTINED_KINDS];
  counter reloads, reloads_refused;
  counter drivers_replaced;
  counter recoveries; /* rows recovered from a dead daemon's recorded claims */
  counter hints;      /* of the store's watch */
  gauge watch_up;     /* 1 while the store's watch tells what commits */
  gauge shards_held;
  gauge shards_unowned; /* without a living owner, of all daemons */
  gauge db_round_trip_us;
  gauge db_clock_offset_us; /* database clock minus local wall clock */
  gauge settle_queue;
  gauge settle_stuck; /* outcomes that the server refuses in every form */
};

static inline void count(counter *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }
static inline void set_gauge(gauge *g, int64_t v) { atomic_store_explicit(g, v, memory_order_relaxed); }
/* Only ever upwards. */
static inline void raise_gauge(gauge *g, int64_t v) {
  int_fast64_t seen = atomic_load_explicit(g, memory_order_relaxed);
  while (v > seen && !atomic_compare_exchange_weak_explicit(g, &seen, v, memory_order_relaxed, memory_order_relaxed))
    ;
}
static inline uint64_t counted(const counter *c) {
  return atomic_load_explicit((counter *)(uintptr_t)c, memory_order_relaxed);
}
static inline int64_t gauge_value(const gauge *g) {
  return atomic_load_explicit((gauge *)(uintptr_t)g, memory_order_relaxed);
}

/* How long what was due then has been due; 0 = it is not, or there is none. */
static inline int64_t due_age_us(const gauge *due_us, int64_t now_us) {
  int64_t due = gauge_value(due_us);
  return due != 0 && now_us > due ? now_us - due : 0;
}

#endif
