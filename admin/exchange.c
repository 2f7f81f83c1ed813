/* SPDX-License-Identifier: MIT
 *
 * admin/exchange.c - one request from its first header to its last byte.
 *
 * libmicrohttpd calls exchange_step() once when the headers are in, once per piece of body, once when the body is
 * complete, and once more after a suspension. What can be refused is refused at the first call, but answered at the
 * end: a client that is still sending would lose an earlier answer to a connection reset. Handlers that wait run on the
 * pool while the connection is suspended; the exchange belongs to the worker until it resumes the connection, and to
 * libmicrohttpd's thread otherwise.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/problem.h"
#include "admin/results.h"
#include "admin/server.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/operator.h"

struct exchange {
  struct job job; /* first: the pool hands it back */
  struct outbox_ask ask;
  struct admin *admin;
  struct MHD_Connection *connection;
  struct watch *watch;
  struct request request;
  struct response response; /* status 0 = none yet */
  char *body;
  size_t body_len, body_cap;
  size_t discarded; /* bytes of body not kept, and what their pieces cost */
  size_t patience;  /* how many of them are read */
  enum { RECEIVING, REFUSED, WORKING } stage;
  char method[8];
  int64_t ready_us; /* when it was complete */
};

static const char *header(struct exchange *ex, const char *name) {
  return MHD_lookup_connection_value(ex->connection, MHD_HEADER_KIND, name);
}

static const struct sockaddr *peer(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : NULL;
}

static bool is_loopback(const struct sockaddr *address) {
  if (address && address->sa_family == AF_INET)
    return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
  if (!address || address->sa_family != AF_INET6)
    return false;
  const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

static void peer_text(struct MHD_Connection *connection, char out[INET6_ADDRSTRLEN]) {
  const struct sockaddr *address = peer(connection);
  const void *raw = NULL;
  if (address && address->sa_family == AF_INET)
    raw = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
  else if (address && address->sa_family == AF_INET6)
    raw = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
  if (!raw || !inet_ntop(address->sa_family, raw, out, INET6_ADDRSTRLEN))
    memcpy(out, "?", 2);
}

/* Which endpoints this listener has. */
static bool is_here(const struct exchange *ex) {
  return (ex->request.endpoint->role == ROLE_CALLBACK) == ex->admin->callbacks;
}

/* Whether a line of one kind is due again. */
static bool once_a_second(atomic_int_fast64_t *last_us) {
  int64_t now = clock_mono_us(), last = atomic_load(last_us);
  return (last == 0 || now - last > 1000000) && atomic_compare_exchange_strong(last_us, &last, now);
}

/* How long the body will be, 0 = not known. */
static unsigned long long announced(struct exchange *ex) {
  const char *length = header(ex, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return length ? strtoull(length, NULL, 10) : 0;
}

/* Where the route of a result is not known, it waits with those of its peer. */
static uint32_t lane_of_peer(struct MHD_Connection *connection) {
  char from[INET6_ADDRSTRLEN];
  peer_text(connection, from);
  return (uint32_t)hash_keyed(from, strlen(from));
}

/* Strangers cannot have the table asked. One that is too long for its place is too long for the table. */
static void note_outbox(struct exchange *ex) {
  const char *name = ex->request.insight != INSIGHT_NOTHING ? header(ex, OUTBOX_HEADER) : NULL;
  snprintf(ex->request.outbox, sizeof ex->request.outbox, "%s", name ? name : "");
}

/* Finds the endpoint and judges the caller; false = the response says why not. */
static bool admit(struct exchange *ex, const char *url, const char *method) {
  const char *allow = NULL;
  enum route_match match = router_find(method, url, &ex->request, &allow);
  if (match == MATCH_NO_PATH || !is_here(ex)) {
    ex->request.endpoint = NULL;
    respond_problem(&ex->response, PROBLEM_NOT_FOUND, "no such path; docs/openapi.yaml lists them all");
    return false;
  }
  if (match == MATCH_NO_METHOD) {
    respond_problem(&ex->response, PROBLEM_METHOD, "this path takes %s", allow);
    ex->response.allow = allow;
    return false;
  }
  struct caller caller = {
      .loopback = is_loopback(peer(ex->connection)),
      .forwarded =
          header(ex, "Forwarded") || header(ex, "X-Forwarded-For") || header(ex, "X-Real-IP") || header(ex, "Via"),
      .bodiless = announced(ex) == 0 && !header(ex, MHD_HTTP_HEADER_TRANSFER_ENCODING),
      .host = header(ex, MHD_HTTP_HEADER_HOST),
      .authorization = header(ex, MHD_HTTP_HEADER_AUTHORIZATION),
      .origin = header(ex, "Origin"),
      .fetch_site = header(ex, "Sec-Fetch-Site"),
      .content_type = header(ex, MHD_HTTP_HEADER_CONTENT_TYPE),
  };
  const struct endpoint *endpoint = ex->request.endpoint;
  ex->request.lane = lane_of_peer(ex->connection);
  ex->request.insight = auth_insight(&ex->admin->auth, &caller);
  note_outbox(ex);
  return auth_allows(&ex->admin->auth, &caller, endpoint->role, &ex->response) &&
         (endpoint->role != ROLE_CALLBACK || result_callback_allows(ex->admin, &ex->request, &ex->response));
}

static void refuse_body(struct exchange *ex) {
  respond_problem(&ex->response, PROBLEM_TOO_LARGE, "a body has at most %d bytes", HTTP_BODY_MAX);
}

static enum MHD_Result send_response(struct exchange *ex) {
  struct response *rs = &ex->response;
  struct MHD_Response *response = MHD_create_response_from_buffer(
      rs->len, (void *)(uintptr_t)rs->body, rs->owned ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
  if (!response)
    return MHD_NO;
  rs->owned = false; /* libmicrohttpd frees it */
  /* Where chunks end libmicrohttpd and a proxy may see in two ways (a bare LF, an extension), and what comes behind
   * them would be another's request to one of them. */
  bool chunked = header(ex, MHD_HTTP_HEADER_TRANSFER_ENCODING);
  bool last = rs->last || chunked || minder_is_crowded(ex->admin->minder);
  char seconds[16];
  snprintf(seconds, sizeof(seconds), "%u", rs->retry_after);
  const char *const headers[][2] = {
      {MHD_HTTP_HEADER_CONTENT_TYPE, rs->type},
      {MHD_HTTP_HEADER_CACHE_CONTROL, rs->cache ? rs->cache : "no-store"},
      {MHD_HTTP_HEADER_ALLOW, rs->allow},
      {MHD_HTTP_HEADER_CONNECTION, last ? "close" : NULL},
      {MHD_HTTP_HEADER_RETRY_AFTER, rs->retry_after ? seconds : NULL},
      {MHD_HTTP_HEADER_WWW_AUTHENTICATE, rs->challenge ? "Bearer realm=\"duebox\"" : NULL},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'"},
  };
  enum MHD_Result sent = MHD_YES;
  for (size_t i = 0; i < ARRAY_LEN(headers) && sent == MHD_YES; i++)
    if (headers[i][1])
      sent = MHD_add_response_header(response, headers[i][0], headers[i][1]);
  if (sent == MHD_YES)
    sent = MHD_queue_response(ex->connection, rs->status, response);
  MHD_destroy_response(response);
  minder_arm(ex->admin->minder, ex->watch, clock_mono_us() + SERVER_STEP_MS * 1000LL);
  return sent;
}

/* Who has more waiting than its share learns so at once, and makes room for others. */
static void refuse_beyond(struct exchange *ex) {
  char from[INET6_ADDRSTRLEN];
  respond_problem(&ex->response, PROBLEM_BUSY, "too many results of this peer wait; nothing was done, send it again");
  ex->response.last = true;
  peer_text(ex->connection, from);
  if (once_a_second(&ex->admin->busy_logged_us))
    log_warn("DUEBOX-ADMIN-BUSY", "too many results of one peer wait, those beyond are refused peer=%s path=%s", from,
             ex->request.endpoint->path);
}

/* Too many wait for a database that is slow or away. */
static void refuse_late(struct exchange *ex) {
  respond_problem(&ex->response, PROBLEM_BUSY, "too many requests wait; nothing was done, send it again");
  if (once_a_second(&ex->admin->busy_logged_us))
    log_warn("DUEBOX-ADMIN-BUSY", "requests waited %d s for their turn and were refused path=%s", HTTP_WAIT_MS / 1000,
             ex->request.endpoint->path);
}

static void work(struct job *job) {
  struct exchange *ex = (struct exchange *)(void *)job;
  if (atomic_load(&ex->admin->stopping))
    respond_problem(&ex->response, PROBLEM_STOPPING, "nothing was done; ask again in a moment");
  else if (clock_mono_us() - ex->ready_us > HTTP_WAIT_MS * 1000LL)
    refuse_late(ex);
  else
    ex->request.endpoint->handle(ex->admin, &ex->request, &ex->response);
  MHD_resume_connection(ex->connection);
}

/* Queues a suspended exchange for its handler, or resumes it with a response that says why not. */
static void hand_over(struct exchange *ex) {
  enum run run = ex->request.endpoint->run;
  enum pool_queue queue = run == RUN_RESULT ? POOL_RESULTS : run == RUN_SLOW ? POOL_SLOW : POOL_QUICK;
  enum pool_answer answer = pool_submit(ex->admin->pool, &ex->job, queue);
  if (answer == POOL_TAKEN)
    return;
  if (answer == POOL_FULL)
    refuse_beyond(ex);
  else
    respond_problem(&ex->response, PROBLEM_STOPPING, "nothing was done; ask again in a moment");
  MHD_resume_connection(ex->connection);
}

static void outbox_known(struct outbox_ask *ask, bool meant) {
  struct exchange *ex = (struct exchange *)(void *)((char *)ask - offsetof(struct exchange, ask));
  if (meant)
    hand_over(ex);
  else
    MHD_resume_connection(ex->connection);
}

/* The request is complete: answers it, or hands it to whoever will. */
static enum MHD_Result dispatch(struct exchange *ex) {
  const struct endpoint *endpoint = ex->request.endpoint;
  if (ex->response.status == 0 && endpoint->run == RUN_INLINE)
    endpoint->handle(ex->admin, &ex->request, &ex->response);
  if (ex->response.status != 0)
    return send_response(ex);
  ex->request.body = (struct duebox_bytes){ex->body ? ex->body : "", ex->body_len};
  ex->job.run = work;
  ex->job.from = (struct turn_key){.peer = minder_address(peer(ex->connection)), .lane = ex->request.lane};
  ex->ask = (struct outbox_ask){.name = ex->request.outbox, .response = &ex->response, .answered = outbox_known};
  ex->stage = WORKING;
  ex->ready_us = clock_mono_us();
  MHD_suspend_connection(ex->connection);
  if (outbox_is_meant(&ex->admin->outbox_names, &ex->ask))
    hand_over(ex);
  return MHD_YES;
}

/* Whoever showed a wrong token has to wait, without holding a thread meanwhile. Not so at a callback URL: its HMAC is
 * not found by trying, and strangers who wait would take the connections of others. */
static bool hold_back(struct exchange *ex) {
  if (!ex->response.suspicious || ex->stage == REFUSED)
    return false;
  char from[INET6_ADDRSTRLEN];
  if (once_a_second(&ex->admin->guess_logged_us)) {
    peer_text(ex->connection, from);
    log_warn("DUEBOX-ADMIN-WRONG-TOKEN", "a request with a wrong token was refused peer=%s path=%s", from,
             ex->request.endpoint->path);
  }
  ex->stage = REFUSED;
  if (ex->admin->callbacks)
    return false;
  MHD_suspend_connection(ex->connection);
  if (!minder_delay(ex->admin->minder, ex->watch, ex->connection, clock_mono_us() + SERVER_WRONG_TOKEN_MS * 1000LL))
    MHD_resume_connection(ex->connection);
  return true;
}

static enum MHD_Result finish(struct exchange *ex) { return hold_back(ex) ? MHD_YES : send_response(ex); }

static void drop_body(struct exchange *ex) {
  ex->admin->bodies -= ex->body_cap;
  free(ex->body);
  ex->body = NULL;
  ex->body_cap = ex->body_len = 0;
}

/* Too many long bodies at once. */
static void refuse_crowd(struct exchange *ex) {
  drop_body(ex);
  respond_problem(&ex->response, PROBLEM_BUSY, "too many long bodies at once; nothing was done, send it again");
  if (once_a_second(&ex->admin->busy_logged_us))
    log_warn("DUEBOX-ADMIN-BUSY", "bodies of requests take %d MiB and those beyond %d KiB are refused path=%s",
             SERVER_BODIES_MAX >> 20, SERVER_BODY_SHORT >> 10, ex->request.endpoint->path);
}

/* Makes room for so many bytes of body, and no more than are announced. False: memory is short, or the response says
 * why not. */
static bool make_room(struct exchange *ex, size_t need) {
  if (need <= ex->body_cap)
    return true;
  unsigned long long length = announced(ex);
  size_t whole = need > length ? HTTP_BODY_MAX : (size_t)length;
  size_t cap = need <= SERVER_BODY_SHORT ? SERVER_BODY_SHORT : need * 2;
  cap = cap < whole ? cap : whole;
  if (cap > SERVER_BODY_SHORT && ex->admin->bodies - ex->body_cap + cap > SERVER_BODIES_MAX) {
    refuse_crowd(ex);
    return false;
  }
  char *body = realloc(ex->body, cap);
  if (!body)
    return false;
  ex->admin->bodies += cap - ex->body_cap;
  ex->body = body;
  ex->body_cap = cap;
  return true;
}

/* Keeps a piece of body; false when the client is to be cut off. */
static bool receive(struct exchange *ex, const char *data, size_t size) {
  if (ex->response.status == 0 && ex->body_len + size > HTTP_BODY_MAX) {
    drop_body(ex);
    refuse_body(ex);
  }
  bool wanted = ex->response.status == 0 && strcmp(ex->request.endpoint->method, "GET") != 0;
  if (wanted && !make_room(ex, ex->body_len + size)) {
    if (ex->response.status == 0)
      return false;
    wanted = false;
  }
  if (!wanted) {
    ex->discarded += size + SERVER_PIECE;
    return ex->discarded <= ex->patience;
  }
  memcpy(ex->body + ex->body_len, data, size);
  ex->body_len += size;
  return true;
}

/* What decides where a request ends, and for whom it is. */
struct framing {
  unsigned counts[6];
  bool odd; /* a header that readers take in different ways */
};

/* In a header, beyond a tab; a bare CR ends a line for some readers. */
static bool has_control(const char *text) {
  for (; text && *text; text++)
    if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
      return true;
  return false;
}

static enum MHD_Result read_one(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value) {
  static const char *const once[] = {"Content-Length", "Transfer-Encoding", "Content-Type", "Authorization",
                                     "Host",           OUTBOX_HEADER};
  struct framing *framing = ctx;
  for (size_t i = 0; i < ARRAY_LEN(once); i++)
    framing->counts[i] += strcasecmp(name, once[i]) == 0;
  framing->odd |= name[strcspn(name, " \t")] != '\0' || /* "Transfer-Encoding : chunked" */
                  has_control(name) || has_control(value) ||
                  (strcasecmp(name, "Transfer-Encoding") == 0 && (!value || strcasecmp(value, "chunked") != 0));
  return MHD_YES;
}

/* Whether a proxy before us may have read the request in another way than we do (RFC 9112 sections 3.2, 5.1 and 6).
 * Lines that were folded (5.2) libmicrohttpd has joined before. */
static bool is_ambiguous(struct exchange *ex, const char *version) {
  struct framing framing = {0};
  MHD_get_connection_values(ex->connection, MHD_HEADER_KIND, read_one, &framing);
  bool ambiguous = framing.odd || (framing.counts[4] == 0 && strcmp(version, MHD_HTTP_VERSION_1_1) == 0) ||
                   (framing.counts[0] && framing.counts[1]) ||
                   (framing.counts[1] && strcmp(version, MHD_HTTP_VERSION_1_1) != 0);
  for (size_t i = 0; i < ARRAY_LEN(framing.counts); i++)
    ambiguous = ambiguous || framing.counts[i] > 1;
  return ambiguous;
}

static enum MHD_Result begin(struct admin *admin, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, void **state) {
  struct exchange *ex = calloc(1, sizeof(*ex));
  if (!ex)
    return MHD_NO;
  *state = ex;
  ex->admin = admin;
  ex->connection = connection;
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  ex->watch = info ? info->socket_context : NULL;
  minder_begun(admin->minder, ex->watch, true);
  snprintf(ex->method, sizeof(ex->method), "%s", method);
  pthread_mutex_lock(&admin->lock);
  admin->open++;
  pthread_mutex_unlock(&admin->lock);

  const char *accept = header(ex, MHD_HTTP_HEADER_ACCEPT);
  snprintf(ex->request.accept, sizeof(ex->request.accept), "%s", accept ? accept : "");
  info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  ex->patience = SERVER_STRANGER_MAX;
  if (is_ambiguous(ex, version)) {
    respond_problem(&ex->response, PROBLEM_BAD_REQUEST,
                    "a header that must be there once is missing, is there twice, or can be read in two ways");
    ex->response.last = true;
    return finish(ex);
  }
  if (info && info->header_size > HTTP_HEADER_MAX)
    respond_problem(&ex->response, PROBLEM_HEADERS, "a request has at most %d bytes of headers", HTTP_HEADER_MAX);
  else if (admit(ex, url, method)) {
    if (ex->request.endpoint->role >= ROLE_OPERATE)
      ex->patience = SERVER_DISCARD_MAX;
    if (announced(ex) > HTTP_BODY_MAX)
      refuse_body(ex);
  }
  return announced(ex) > ex->patience ? finish(ex) : MHD_YES;
}

enum MHD_Result exchange_step(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **state) {
  struct exchange *ex = *state;
  if (!ex)
    return begin(cls, connection, url, method, version, state);
  if (*size > 0) {
    if (ex->stage == REFUSED || !receive(ex, data, *size))
      return hold_back(ex) ? MHD_YES : MHD_NO;
    *size = 0;
    return MHD_YES;
  }
  minder_arm(ex->admin->minder, ex->watch, 0);
  if (ex->stage == RECEIVING && !ex->response.suspicious)
    return dispatch(ex);
  return finish(ex);
}

/* Commands are news; so is whatever fails here. Results and refused strangers would only fill the log. */
static void log_exchange(const struct exchange *ex) {
  const struct endpoint *endpoint = ex->request.endpoint;
  unsigned status = ex->response.status;
  if (!endpoint || status == 0 || (endpoint->quiet && status < 500))
    return;
  bool refused = status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN;
  bool command = strcmp(ex->method, "POST") == 0 && endpoint->role == ROLE_OPERATE;
  char from[INET6_ADDRSTRLEN];
  peer_text(ex->connection, from);
  /* The name comes last, so that nothing in it can pass for another key. */
  log_write(command && !refused ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "DUEBOX-ADMIN-REQUEST",
            "method=%s path=%s status=%u peer=%s name=%s", ex->method, endpoint->path, status, from,
            endpoint->role == ROLE_OPERATE ? ex->request.params[0] : "");
}

void exchange_completed(void *cls, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode how) {
  struct admin *admin = cls;
  struct exchange *ex = *state;
  if (!ex)
    return;
  *state = NULL;
  log_exchange(ex);
  minder_begun(admin->minder, ex->watch, false);
  minder_arm(admin->minder, ex->watch, clock_mono_us() + SERVER_STEP_MS * 1000LL);
  response_clear(&ex->response);
  drop_body(ex);
  free(ex);
  pthread_mutex_lock(&admin->lock);
  if (--admin->open == 0)
    pthread_cond_signal(&admin->idle);
  pthread_mutex_unlock(&admin->lock);
}

void exchange_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what) {
  struct admin *admin = cls;
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    minder_unwatch(admin->minder, *context);
    *context = NULL;
    return;
  }
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (!info)
    return;
  *context = minder_watch(admin->minder, info->connect_fd, peer(connection));
  minder_arm(admin->minder, *context, clock_mono_us() + SERVER_STEP_MS * 1000LL);
}
