/* SPDX-License-Identifier: MIT
 *
 * cli/daemon.h - asking a running daemon over its HTTP API.
 *
 * One client keeps connections open over many requests. It follows no redirect, uses no proxy, and asks nobody at a URL
 * that core/admin_url.h refuses: the bearer token goes where it was sent and nowhere else. Whoever answers
 * is believed only in the words of docs/openapi.yaml, and the token is hidden in what it says. Main thread.
 *
 * Each request names the outbox that it is for (admin/outbox.h), and the daemon of another one does nothing. Daemons of
 * versions before do not look.
 */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/operator.h"

struct daemon_client;

enum {
  DAEMON_NEVER_SENT = -1,
  DAEMON_UNNAMED = -2, /* not sent: our database did not take the name of this command */
  DAEMON_OTHER = -3,   /* it works on another outbox, and has done nothing */
};

struct daemon_answer {
  long status;      /* HTTP status: 200, or that of a problem; 0 = no answer of a daemon came */
  char code[64];    /* of a problem+json answer, "" otherwise */
  char detail[512]; /* what the daemon said, for people */
  json_t *body;     /* the caller's */
};

/* What the body of a 200 has, by which a daemon is told from other web servers. */
enum daemon_proof { DAEMON_READY, DAEMON_RELOADED, DAEMON_ROUTES, DAEMON_TASK, DAEMON_TASKS, DAEMON_FATE };

/* admin and op outlive the client. op: on the outbox whose daemons are meant; NULL = whoever gets the request. */
MUSTCHECK bool daemon_client_new(const struct admin_config *admin, const struct operator* op,
                                 struct daemon_client **out, struct err *err);
void daemon_client_free(struct daemon_client **client);

/* Sends body (JSON text; NULL = GET) to base_url + path and waits for at most timeout_ms; `proof` is what the body
 * of a 200 must have. False: no answer of a daemon of this outbox came, and err says why with an exit code. Whether the
 * request was carried out is not known then, unless answer->status is one of the above: then it was not. */
MUSTCHECK bool daemon_ask(struct daemon_client *client, const char *base_url, const char *path, enum daemon_proof proof,
                          const char *body, long timeout_ms, struct daemon_answer *answer, struct err *err);

/* What the daemon at admin.url answers to a GET, an object with that in it. NULL: nothing of that kind, err says why.
 * Waits a few seconds at most. */
MUSTCHECK json_t *daemon_get(const struct admin_config *admin, const struct operator* op, const char *path,
                             enum daemon_proof proof, struct err *err);
/* What it says of its routes: name to object, as GET /api/v1/routes has them. */
MUSTCHECK json_t *daemon_routes(const struct admin_config *admin, const struct operator* op, struct err *err);

/* What the daemon repeats of a task or destination, "?" where that is nothing, and a remark where it is not shown to
 * who has no token. */
const char *daemon_said(const json_t *of, const char *key);
/* What belongs in front of that where it is a message id (text_name_prefix()). */
const char *daemon_said_prefix(const json_t *of, const char *key);

/* A path segment, percent-encoded, to free(). */
MUSTCHECK char *daemon_segment(const char *text);

#endif
