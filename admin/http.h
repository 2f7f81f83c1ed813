/* SPDX-License-Identifier: MIT
 *
 * admin/http.h - what a handler sees of HTTP: a request in, a response out, and the table of endpoints between.
 *
 * Handlers never touch libmicrohttpd. A request is complete (body read, limits checked, caller judged) before its
 * handler runs, and lives until the response has been sent.
 */
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

#include <duebox/task.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "admin/admin.h"
#include "core/base/attr.h"

enum {
  HTTP_BODY_MAX = 1024 * 1024, /* bytes */
  HTTP_HEADER_MAX = 16 * 1024, /* bytes, request line included */
  HTTP_PARAMS_MAX = 3,
  HTTP_PARAM_LEN = 256, /* longest decoded path parameter, with its NUL */
  HTTP_OUTBOX_LEN = 72, /* longest name of admin/outbox.h, with its NUL */
  HTTP_WAIT_MS = 5000,  /* how long a handler waits for the engine, and a request for its handler */
  HTTP_RETRY_AFTER = 2, /* seconds: what a client is told when the database is away */
};

/* Who may call an endpoint. */
enum role {
  ROLE_OPEN,     /* anyone who reaches the listener */
  ROLE_READ,     /* the token; local callers where none is configured, who see how the daemon is, and no more */
  ROLE_RECORDS,  /* the token: what consumers sent is nobody's who merely has an account on this machine */
  ROLE_OPERATE,  /* the token, JSON, same origin */
  ROLE_CALLBACK, /* the token in the path, judged before any body is taken */
};

/* What a caller may see. The lesser is for whoever has an account on this machine, where no token is configured. */
enum insight {
  INSIGHT_NOTHING,
  INSIGHT_STATE, /* how the daemon is: counts, states, times, names of routes and plugins */
  INSIGHT_ALL,   /* also what tasks hold, and what destinations, consumers and operators have said */
};

/* Where a handler runs. */
enum run {
  RUN_INLINE, /* on the listener's thread: must not wait for anything */
  RUN_QUICK,  /* on a worker; one worker is kept for these */
  RUN_SLOW,   /* on a worker; may wait for the database */
  RUN_RESULT, /* on a worker of those for results; waits for a commit */
};

struct request {
  const struct endpoint *endpoint;
  char params[HTTP_PARAMS_MAX][HTTP_PARAM_LEN]; /* decoded {...} parts of the path, in order */
  char accept[512];                             /* the Accept header, "" = none */
  struct duebox_bytes body;
  enum insight insight;
  char outbox[HTTP_OUTBOX_LEN]; /* who is asked for, "" = whoever gets it (admin/outbox.h) */
  uint32_t lane; /* of a result: what it waits with, and others do not: its route where that is known, or its peer */
};

struct response {
  unsigned status;
  const char *type; /* media type */
  const char *body; /* malloc()ed when owned */
  size_t len;
  bool owned;
  const char *cache;    /* Cache-Control, NULL = no-store */
  const char *allow;    /* Allow, NULL = none */
  unsigned retry_after; /* seconds, 0 = none */
  bool challenge;       /* WWW-Authenticate: Bearer */
  bool last;            /* the connection is closed after it */
  bool suspicious;      /* a wrong secret was shown: logged, and a token answered late */
};

typedef void handler_fn(struct admin *admin, const struct request *request, struct response *response);

struct endpoint {
  const char *method; /* "GET" (answers HEAD too) or "POST" */
  const char *path;   /* "/api/v1/tasks/{id}/cancel" */
  enum role role;
  enum run run;
  bool quiet; /* not worth a line in the log */
  handler_fn *handle;
};

/* --- what handlers know of their surroundings (admin.c) --- */
struct engine *admin_engine(const struct admin *admin);
const struct admin_hooks *admin_hooks(const struct admin *admin);

/* --- responses (response.c) --- */
/* Takes the reference to json. NULL (out of memory) becomes a 500. */
void respond_json(struct response *response, unsigned status, json_t *json);
/* Takes the malloc()ed text. NULL (out of memory) becomes a 500. */
void respond_text(struct response *response, unsigned status, const char *type, char *text, size_t len);
/* Static text that outlives everything. */
void respond_static(struct response *response, const char *type, const char *text, size_t len);
/* Frees the body. */
void response_clear(struct response *response);
/* Text as it is when it is UTF-8, otherwise a copy in buffer with question marks for all that is not ASCII. */
const char *text_utf8(const char *text, char *buffer, size_t cap);
/* A JSON string of any bytes, by text_utf8(). */
json_t *json_any(const char *text);
/* RFC 3339 in UTC with microseconds; null for 0. */
json_t *json_time(int64_t us);

/* --- the routing table (router.c) --- */
enum route_match { MATCH_FOUND, MATCH_NO_PATH, MATCH_NO_METHOD };
/* Finds the endpoint of a raw (still percent-encoded) path and decodes its parameters into request. With NO_METHOD,
 * *allow names the methods that the path has. Pure; safe for any bytes. */
enum route_match router_find(const char *method, const char *path, struct request *request, const char **allow);
/* The whole table, for tests against docs/openapi.yaml. */
const struct endpoint *router_table(size_t *count);

/* --- handlers, one file per noun --- */
handler_fn health_live, health_ready;
handler_fn metrics_show;
handler_fn status_stats, status_routes;
handler_fn task_cancel, task_reschedule, tasks_cancel, tasks_reschedule;
handler_fn result_post, result_callback;
handler_fn route_pause, route_resume;
handler_fn quarantine_list, quarantine_show, quarantine_replay, quarantine_purge;
handler_fn reload_post;
handler_fn page_html, page_style, page_script, page_icon, page_robots;

#endif
