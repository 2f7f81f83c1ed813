/* SPDX-License-Identifier: MIT
 *
 * admin/outbox.h - whether a request is meant for the outbox of this daemon.
 *
 * The command line finds a daemon by an address: one in its configuration, or one that stands in its database. Where
 * the database is a copy of another, or two daemons have one address, the daemon that answers there may work on another
 * outbox, with the same token and tasks of the same ids. So a command writes a name that nobody else has into its
 * outbox_instances, and sends it with each request (OUTBOX_HEADER). The daemon that finds it in its own table is meant.
 *
 * A name that was found once needs no second look: whoever wrote it goes on working on this outbox. Any thread.
 */
#ifndef ADMIN_OUTBOX_H
#define ADMIN_OUTBOX_H

#include <pthread.h>

#include "admin/http.h"

struct outbox_names {
  pthread_mutex_t lock;
  char found[16][HTTP_OUTBOX_LEN]; /* the latest, in a ring */
  size_t next;
};

void outbox_names_init(struct outbox_names *names);
void outbox_names_destroy(struct outbox_names *names);

/* True where the request names no outbox, or this one; otherwise the response says why nothing was done. May wait for
 * the database. */
bool outbox_is_meant(struct admin *admin, struct outbox_names *names, const struct request *request,
                     struct response *response);

#endif
