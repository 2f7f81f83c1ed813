/* SPDX-License-Identifier: MIT
 *
 * cli/intervene_internal.h - what the files of the intervener share.
 */
#ifndef CLI_INTERVENE_INTERNAL_H
#define CLI_INTERVENE_INTERNAL_H

#include "cli/daemon.h"
#include "cli/intervene.h"

struct intervener {
  const struct operator* op;
  struct daemon_client *client;
  struct shard_owner owners[STORE_SHARDS_MAX];
  bool known[STORE_SHARDS_MAX];  /* owners[i] has been read */
  bool lives[STORE_SHARDS_MAX];  /* owners[i] has renewed its lease after another daemon had answered for it */
  bool bare[STORE_SHARDS_MAX];   /* owners[i] is of a version that knows message ids without their prefix only */
  bool singly[STORE_SHARDS_MAX]; /* owners[i] is of a version that is asked for one task at a time only */
  size_t together;               /* so many tasks are asked for in the next request; 0 = as many as it takes */
  uint64_t asked;                /* tasks that daemons have changed */
  int64_t waited_us;             /* for locks */
};

/* The exit code of a failed call of the port, put into err. */
bool intervene_store_failed(enum store_status status, struct err *err);

/* --- intervene_verify.c --- */
/* What the table says of the task now. *found: under its message id still. */
MUSTCHECK bool intervene_read_again(struct intervener *in, const struct task_target *target, struct task_target *now,
                                    bool *found, struct err *err);
/* Whether a task is still what it was before the change. */
bool intervene_is_unchanged(const struct task_change *change, const struct task_target *target,
                            const struct task_target *now);
/* Whoever answered at the address of the daemon: what counts is the row. Another node of a cluster may need a moment
 * until it has it. */
MUSTCHECK bool intervene_verify(struct intervener *in, const struct task_change *change, struct task_target *target,
                                struct err *err);
/* No answer came though the request may have: a cancelled row shows itself in the history, with the attempts that it
 * had. Whether a daemon that died may have sent it is as it was when the row was read. */
MUSTCHECK bool intervene_look_again(struct intervener *in, const struct task_change *change, struct task_target *target,
                                    struct err *err);

#endif
