/* SPDX-License-Identifier: MIT
 *
 * admin/server.h - the listener's own state, shared by admin.c (life cycle) and exchange.c (one request).
 */
#ifndef ADMIN_SERVER_H
#define ADMIN_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "admin/auth.h"
#include "admin/http.h"
#include "admin/minder.h"
#include "admin/outbox.h"
#include "admin/pool.h"

enum {
  SERVER_CONNECTIONS = 4 * MINDER_CROWD, /* who comes then waits in the backlog until one is done; but no more than */
  SERVER_FILES = 8,              /* 1/8 of the descriptors, for there may be two listeners and others need most */
  SERVER_STEP_MS = 10000,        /* a client's time for a whole request, and for taking a whole response */
  SERVER_WRONG_TOKEN_MS = 500,   /* how late a guess is answered */
  SERVER_BODIES_MAX = 56 << 20,  /* bytes of all bodies that are kept at once; short ones are kept even so: */
  SERVER_BODY_SHORT = 16 << 10,  /* of so many bytes, one for each connection, which makes another 8 MiB */
  SERVER_DISCARD_MAX = 8 << 20,  /* bytes of an unwanted body read for the sake of a readable answer ... */
  SERVER_STRANGER_MAX = 2 << 20, /* ... of who has shown no secret */
  SERVER_PIECE = 1024,           /* what a piece of such a body costs beside its bytes: chunks may be tiny */
  SERVER_FAREWELL_MS = 1000,     /* admin_stop: how long last answers may take to go out */
};

/* How many connections a listener takes where the limit of open files is this. */
static inline size_t server_connections(uint64_t files) {
  uint64_t share = files / SERVER_FILES;
  return share >= SERVER_CONNECTIONS ? SERVER_CONNECTIONS : share > 4 ? (size_t)share : 4;
}

struct admin {
  struct engine *engine;
  struct admin_hooks hooks;
  bool callbacks; /* consumers answer here, and nothing else is served; otherwise it is the operators' */
  struct auth auth;
  struct MHD_Daemon *daemon;
  struct pool *pool;
  struct minder *minder;
  struct outbox_names outbox_names;
  uint16_t port;
  atomic_bool stopping;
  atomic_int_fast64_t guess_logged_us; /* when a wrong secret was last worth a line */
  atomic_int_fast64_t busy_logged_us;  /* when a request that waited too long was */
  pthread_mutex_t lock;                /* guards open */
  pthread_cond_t idle;                 /* open became 0 */
  unsigned open;                       /* requests begun and not completed */
  atomic_size_t bodies;                /* bytes of buffers for bodies; changed by libmicrohttpd's thread only */
};

/* The three callbacks of libmicrohttpd, on its thread. cls is the admin. */
enum MHD_Result exchange_step(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **state);
void exchange_completed(void *cls, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode how);
void exchange_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what);

#endif
