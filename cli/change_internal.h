/* SPDX-License-Identifier: MIT
 *
 * cli/change_internal.h - one run of a command that changes tasks: what change.c does, and change_tell.c says.
 */
#ifndef CLI_CHANGE_INTERNAL_H
#define CLI_CHANGE_INTERNAL_H

#include "cli/change.h"
#include "cli/intervene.h"
#include "cli/select.h"

struct change_run {
  struct cli *cli;
  const struct args *args;
  const struct change_rule *rule;
  const struct operator* op;
  struct task_change *order;
  struct selection selection;
  struct intervener *intervener;      /* cancel and reschedule only */
  uint64_t limit;                     /* of --limit; 0 = none */
  uint64_t goal;                      /* tasks to go through */
  uint64_t seen;                      /* gone through */
  uint64_t unknown;                   /* ids that name no task; the others that are not found were there before */
  uint64_t outcomes[CHANGE_OUTCOMES]; /* what became, or with --dry-run would become, of the tasks */
  uint64_t maybe_sent, moves;         /* of those that were, or would be, changed */
  uint64_t refusals;                  /* of the server, one after the other, with no task changed between them */
  char refused[OPERATOR_REFUSED_MAX]; /* what it said the last time; "" = nothing */
  struct audit_span audit;            /* of what was written from here */
  double rate;                        /* per second; 0 = as fast as it goes */
  int64_t started_us;
  json_t *tasks; /* one object for each id that was given; NULL for filters */
  bool stopped;  /* before the goal; err says why, its code is an exit code */
  struct err err;
};

/* What became of a task that an id names. */
void tell_one(struct change_run *run, const char *id, const struct task_target *target);
/* With --dry-run: what a task is that an id names. */
void tell_dry(struct change_run *run, const char *id, const struct task_target *target);
/* How far it is, on a terminal and for filters. */
void tell_progress(const struct change_run *run);
/* At the end: of those that a filter matched, and in JSON of all. */
void tell_whole(const struct change_run *run, bool dry_run);

#endif
