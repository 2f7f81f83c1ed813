/* SPDX-License-Identifier: MIT
 *
 * admin/outbox.h - whether a request is meant for the outbox of this daemon.
 *
 * The command line finds a daemon by an address: one in its configuration, or one that stands in its database. Where
 * the database is a copy of another, or two daemons have one address, the daemon that answers there may work on another
 * outbox, with the same token and tasks of the same ids. So a command writes a name that nobody else has into its
 * outbox_instances, and sends it with each request (OUTBOX_HEADER). The daemon that finds it in its own table is meant.
 *
 * On a listener without a token any local user may send names, and each that is not known yet has to be looked up. So
 * there is one question to the table at a time, for all names that wait by then, on a connection that is opened for it;
 * and after one with a name that was not found the next has to wait a little. A flood of names costs a few logins a
 * second, and whoever sends a good one waits for two questions at most, but holds no worker meanwhile.
 *
 * Remembered are only names that were found, for a short time: nobody can be told "no" because of what somebody asked
 * before, and only who may write outbox_instances can fill the memory.
 */
#ifndef ADMIN_OUTBOX_H
#define ADMIN_OUTBOX_H

#include <pthread.h>
#include <sys/queue.h>

#include "admin/http.h"
#include "admin/pool.h"

enum {
  OUTBOX_REMEMBERED = 16,
  OUTBOX_REMEMBER_MS = 60000,
  OUTBOX_PAUSE_MS = 100,  /* after a question with a name that was not found */
  OUTBOX_TOGETHER = 1024, /* names in one question */
};

/* A request that waits. Embedded in what it is about. */
struct outbox_ask {
  STAILQ_ENTRY(outbox_ask) next;
  const char *name;          /* lives until `answered` is called */
  struct response *response; /* says why it is not meant */
  void (*answered)(struct outbox_ask *ask, bool meant);
};

struct outbox_names {
  struct admin *admin;
  pthread_mutex_t lock; /* of all that follows, but the job */
  struct {
    char name[HTTP_OUTBOX_LEN];
    int64_t until_us;         /* monotonic */
  } found[OUTBOX_REMEMBERED]; /* the latest, in a ring */
  size_t next;
  STAILQ_HEAD(, outbox_ask) asks;
  bool asking;      /* the job is queued, or runs */
  int64_t pause_us; /* until when the next question waits, monotonic; the job's own */
  struct job job;
};

void outbox_names_init(struct outbox_names *names, struct admin *admin);
/* When no ask waits any more: the pool is stopped. */
void outbox_names_destroy(struct outbox_names *names);

/* True: the name is empty, or was found a short time ago, so this outbox is meant. False: ask->answered() is called,
 * once, on a worker, or in here where the pool stops. Waits for nothing. Any thread. */
bool outbox_is_meant(struct outbox_names *names, struct outbox_ask *ask);

#endif
