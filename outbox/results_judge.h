/* SPDX-License-Identifier: MIT
 *
 * outbox/results_judge.h - inside of outbox/: what becomes of results, by what the database says about their tasks.
 * Pure.
 */
#ifndef OUTBOX_RESULTS_JUDGE_H
#define OUTBOX_RESULTS_JUDGE_H

#include "core/store.h"
#include "outbox/halves.h"
#include "outbox/results_form.h"

struct slot {
  struct store_result *result;
  struct result_row row;
  uint32_t attempt; /* that it names, or else the one that its row counts; a first one may not be recorded yet */
  char route[STORE_ROUTE_MAX + 1];
  char reason[256]; /* why it is quarantined */
  size_t row_bytes; /* of its content, once it is read */
  bool postponed;   /* the transaction has no room for it */
  bool living;      /* row is what it met, locked */
  bool busy;        /* there is a row, and another transaction holds it */
  bool unreadable;  /* what the database has about the task is nothing that the schema allows */
  bool seen;        /* this attempt's result was applied before ... */
  bool agreed;      /* ... and said as much */
  bool same;        /* ... and came to what this one says */
  bool finished;    /* the task is in the history, in state `final`, with that many attempts */
  int64_t finished_us;
  enum task_state final;
  uint32_t final_attempt;
  struct decision decision;
  struct slot *progress;       /* the last progress of this task that is to be written, up to this one; NULL = none */
  struct result_record joined; /* this progress, with what those before it said and it does not */
  bool closed;                 /* nothing behind it is judged: it moves the task on, or is busy */
};

struct results_unit {
  struct slot *slots; /* those with a parsed record first, by message id; then the broken ones */
  size_t parsed, count;
  size_t bytes;                /* of the records */
  struct decision **decisions; /* those to write, by id */
  size_t writes;
  bool keeps;           /* nobody holds the quarantine as a whole */
  bool met_again;       /* a row was busy before */
  enum stopped stopped; /* LOCKED: the rows were ours, and the write met a lock all the same; nothing was written */
  result_decide_fn *decide;
  void *ctx;
  bool (*possible)(const struct decision *decision); /* can be written */
  struct results_forms *forms;                       /* what the server has refused of late; NULL = nothing */
};

/* Its row was read. */
void results_met(struct slot *slot);

/* Whether a line about a task with its message id and that row id is about this task, and not about one of before. What
 * has no row is about any of them. */
bool results_may_be_of(const struct slot *slot, uint64_t id);

/* A result of its attempt was applied before; outcome: what followed from that (task_event_text()). Of several lines of
 * an attempt a success is the last one: nothing changes it. */
void results_seen(struct slot *slot, const char *outcome);

/* Gives each result its fate, those of one task in their order, and collects what is to be written. unknown: a commit
 * of an earlier try may have happened. */
void results_judge(struct results_unit *unit, bool unknown, size_t max_packet);

#endif
