/* SPDX-License-Identifier: MIT */
#include "http_transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "http_outcome.h"
#include "http_text.h"
#include "http_tls.h"
#include "http_url.h"
#include "tls_limit.h"

enum {
  DEFAULT_TIMEOUT_MS = 30000,  /* a host that gives no time-out still gets one */
  CONNECTION_LIFETIME_S = 300, /* then a destination's name is resolved, and judged, again */
  TCP_IDLE_S = 30,             /* TCP keep-alive: notices a vanished peer during a long answer */
  TCP_INTERVAL_S = 15,
  BEGINNINGS = 20, /* of an attempt whose connections process nothing: the server is down */
};

/* ---- callbacks of libcurl ---- */

static size_t on_body(char *data, size_t size, size_t count, void *arg) {
  struct http_transfer *t = arg;
  return http_response_append(&t->response, data, size * count) ? size * count : CURL_WRITEFUNC_ERROR;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg) {
  struct http_transfer *t = arg;
  bool taken = http_response_header(&t->response, data, size * count);
  if (t->response.doubtful) /* what follows on this connection may be another's answer (RFC 9112, 6.1 and 11.1) */
    curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
  return taken ? size * count : 0;
}

/* Judges the address after name resolution, when nothing but it is left of the URL. With a proxy the address is the
 * proxy's, which the operator chose. */
static bool may_call(struct http_transfer *t, const struct http_url *url, const struct curl_sockaddr *to) {
  struct http_address address;
  if (t->shared->options->proxy)
    return true;
  if (!http_address_of(&to->addr, &address)) {
    snprintf(t->denied, sizeof(t->denied), "the name resolved to an address that is neither IPv4 nor IPv6");
    return false;
  }
  return http_policy_allows(&t->shared->policy, &address, url->plain, url->authority, url->authority_len, t->denied,
                            sizeof(t->denied));
}

curl_socket_t http_transfer_socket(struct http_transfer *t, const struct http_url *url,
                                   const struct curl_sockaddr *to) {
  if (!may_call(t, url, to))
    return CURL_SOCKET_BAD;
  t->allowed = true;
  curl_socket_t fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
  t->few_files = fd < 0 ? errno == EMFILE || errno == ENFILE : http_socket_exceeds(fd);
  if (fd >= 0 && (t->few_files || !http_sockets_add(&t->shared->sockets, fd))) {
    close(fd);
    fd = CURL_SOCKET_BAD;
  }
  return fd;
}

bool http_transfer_denied(const struct http_transfer *transfer) { return transfer->denied[0] && !transfer->allowed; }

static int on_close(void *arg, curl_socket_t fd) {
  struct http_shared *shared = arg;
  http_sockets_remove(&shared->sockets, fd);
  return close(fd);
}

/* Whether a kept connection must not be used: it has something to read before anything was asked, its end or a stray
 * answer, or its peer has given such an answer before. libcurl 7.88 (cf_socket_is_alive) takes both for life, the
 * second one even for the answer to this request. A new connection is asked nothing: with TLS 1.3 session tickets
 * follow the handshake. Not for HTTP/2, where frames may always come, and say what they answer. */
static bool is_stale(struct http_transfer *t, bool distrusted, const char *peer, int local_port, int peer_port) {
  long connects = 0;
  SSL *tls = http_tls_of(t->easy);
  if (curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects) != CURLE_OK || connects > 0)
    return false;
  int fd = http_sockets_find(&t->shared->sockets, local_port, peer_port);
  if (distrusted || fd < 0 || !http_socket_readable(fd))
    return distrusted;
  if (http_tls_is_http(tls, fd)) {
    const struct duebox_host *host = t->shared->host;
    http_strays_add(&t->shared->strays, peer, peer_port);
    host->log(host->ctx, DUEBOX_LOG_WARN, "HTTP-STRAY",
              "%s port %d sent a response that nobody asked for; its connections are not kept any more "
              "(endpoints=%zu)",
              peer, peer_port, t->shared->strays.seen);
  }
  return true;
}

static bool is_unprocessed(const struct http_transfer *t) {
  return t->requested && t->response.header_bytes == 0 && http_goaway_unprocessed(&t->shared->goaways, &t->stream);
}

/* OpenSSL gets 64 KiB of it at once; where the kernel takes less, records leave and OpenSSL tells of none, nor does
 * libcurl count them later. */
bool http_transfer_may_be_received(const struct http_transfer *t) {
  long sent = 0;
  curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent);
  return t->requested && (t->in_records || sent > t->sent_before) && !is_unprocessed(t);
}

/* A second time, that is. */
static bool may_not_begin(const struct http_transfer *t) { return t->recalled || http_transfer_may_be_received(t); }

/* Runs when a new connection is needed: for the first beginning, or for a second one (see on_request(), which ends
 * those that have had all of theirs: they must not wait for a turn once more). */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to) {
  struct http_transfer *t = arg;
  struct http_url url;
  t->second_refused = may_not_begin(t);
  if (t->second_refused || (t->beginnings < BEGINNINGS && !http_turns_open(&t->shared->turns, t)))
    return CURL_SOCKET_BAD;
  return http_url_split(http_request_url(&t->request), &url) ? http_transfer_socket(t, &url, to) : CURL_SOCKET_BAD;
}

void http_transfer_begin_anew(struct http_transfer *t) {
  int64_t now = http_now_ms(), left = t->begun_ms + t->timeout_ms - now;
  t->timeout_ms = left > 1 ? (long)left : 1; /* 0 is no limit */
  t->connect_ms = t->connect_ms < t->timeout_ms ? t->connect_ms : t->timeout_ms;
  t->begun_ms = now;
}

/* Runs when a connection is ready and the request is about to be written.
 *
 * When a kept connection closes before the first byte of an answer, libcurl (Curl_retry_request) sends the request
 * again on another one, up to five times. The receiver may have done the work, and POST must not be repeated without
 * its knowledge (RFC 9110 section 9.2.2), so a second beginning is refused once bytes of the first have left, unless
 * the receiver has said that it did not process it; the host then decides, and counts. A kept connection that is stale
 * already is refused before anything has left. */
static int on_request(void *arg, char *peer, char *local, int peer_port, int local_port) {
  struct http_transfer *t = arg;
  const SSL *tls = http_tls_of(t->easy);
  bool http2 = http_tls_is_http2(tls), distrusted = http_strays_has(&t->shared->strays, peer, peer_port);
  t->second_refused = may_not_begin(t);
  t->stale = !t->second_refused && !http2 && is_stale(t, distrusted, peer, local_port, peer_port);
  if (t->second_refused || t->stale)
    return CURL_PREREQFUNC_ABORT;
  /* Where a server takes up a few requests of each connection, those that it passes over have their turn later. */
  if (!http_goaway_took_others(&t->shared->goaways, &t->stream) && t->beginnings++ == BEGINNINGS)
    return CURL_PREREQFUNC_ABORT;
  if (distrusted && !http2)
    curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(t->easy, CURLOPT_VERBOSE, http2 ? 1L : 0L); /* for http_goaway.h */
  curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &t->sent_before);
  t->stream = (struct http_stream){0};
  t->in_records = tls && !http2;
  t->requested = true;
  return CURL_PREREQFUNC_OK;
}

static int on_log(CURL *easy, curl_infotype type, char *text, size_t len, void *arg) {
  struct http_transfer *t = arg;
  if (type == CURLINFO_TEXT)
    http_goaway_read(&t->shared->goaways, http_flood_connection(http_tls_of(easy)), &t->stream, text, len);
  return 0;
}

/* Runs when libcurl needs a name that its cache does not hold. A transfer whose request has left needs it for a second
 * beginning (see on_request()); any other one waits until the name has been looked up (http_resolver.h). */
static int on_lookup(void *resolver, void *reserved, void *arg) {
  struct http_transfer *t = arg;
  t->second_refused = may_not_begin(t);
  t->held = !t->second_refused;
  if (t->held && t->requested)
    http_transfer_begin_anew(t);
  return 1;
}

/* Runs when libcurl has read for the transfer, and after each byte of a proxy's answer to CONNECT. libcurl reads that
 * answer for as long as there are bytes, without looking at the time: up to 300 KiB of headers, and with a 407 its
 * body, which may have no end. As only Basic credentials are sent, with the first CONNECT, a 407 is final: nothing
 * behind its status line matters. */
static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up) {
  struct http_transfer *t = arg;
  long status = 0, headers = 0;
  http_flood_pause(&t->shared->flood);
  if (t->requested || !t->shared->options->proxy)
    return 0;
  curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &status);
  curl_easy_getinfo(t->easy, CURLINFO_HEADER_SIZE, &headers);
  t->response.header_flood = headers > HTTP_HEADER_MAX;
  return status == HTTP_PROXY_WANTS_PASSWORD || t->response.header_flood;
}

/* ---- making the handle ---- */

/* Collects failures so that a list of settings stays a list. */
#define SET(option, value) (ok = curl_easy_setopt(easy, option, value) == CURLE_OK && ok)

static bool set_safety(CURL *easy) {
  bool ok = true;
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_PROTOCOLS_STR, "http,https");
  SET(CURLOPT_FOLLOWLOCATION, 0L);
  SET(CURLOPT_UNRESTRICTED_AUTH, 0L);
  SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
  SET(CURLOPT_SSL_VERIFYPEER, 1L);
  SET(CURLOPT_SSL_VERIFYHOST, 2L);
  SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  SET(CURLOPT_PROXY_SSL_VERIFYPEER, 1L);
  SET(CURLOPT_PROXY_SSL_VERIFYHOST, 2L);
  SET(CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  SET(CURLOPT_HTTP09_ALLOWED, 0L);
  SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  SET(CURLOPT_QUICK_EXIT, 1L); /* a time-out must not wait for getaddrinfo() in libcurl's resolver thread */
  return ok;
}

static bool set_connection(CURL *easy, const struct http_shared *shared) {
  const struct http_options *o = shared->options;
  bool ok = http_tls_trust(easy, o->ca_file, shared->flood.authorities != NULL);
  SET(CURLOPT_TCP_NODELAY, 1L);
  SET(CURLOPT_TCP_KEEPALIVE, 1L);
  SET(CURLOPT_TCP_KEEPIDLE, (long)TCP_IDLE_S);
  SET(CURLOPT_TCP_KEEPINTVL, (long)TCP_INTERVAL_S);
  SET(CURLOPT_MAXLIFETIME_CONN, (long)CONNECTION_LIFETIME_S);
  SET(CURLOPT_MAXAGE_CONN, (long)((o->keep_alive_ms + 999) / 1000)); /* libcurl counts whole seconds */
  SET(CURLOPT_HTTP_VERSION, (long)(o->http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  SET(CURLOPT_PIPEWAIT, o->http2 ? 1L : 0L);
  SET(CURLOPT_PROXY, o->proxy ? o->proxy : ""); /* "" also shuts out http_proxy and the like */
  SET(CURLOPT_NOPROXY, "");
  SET(CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_BASIC); /* for GSSAPI libcurl waits for the proxy inside of one call */
  if (o->proxy_credentials)
    SET(CURLOPT_PROXYUSERPWD, o->proxy_credentials);
  if (o->client_cert) {
    SET(CURLOPT_SSLCERT, o->client_cert);
    SET(CURLOPT_SSLKEY, o->client_key);
  }
  if (o->client_key_password)
    SET(CURLOPT_KEYPASSWD, o->client_key_password);
  if (o->user_agent && *o->user_agent)
    SET(CURLOPT_USERAGENT, o->user_agent);
  return ok;
}

static bool set_callbacks(CURL *easy, struct http_transfer *t) {
  bool ok = true;
  SET(CURLOPT_PRIVATE, t);
  SET(CURLOPT_ERRORBUFFER, t->error);
  SET(CURLOPT_WRITEFUNCTION, on_body);
  SET(CURLOPT_WRITEDATA, t);
  SET(CURLOPT_HEADERFUNCTION, on_header);
  SET(CURLOPT_HEADERDATA, t);
  SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
  SET(CURLOPT_OPENSOCKETDATA, t);
  SET(CURLOPT_CLOSESOCKETFUNCTION, on_close);
  SET(CURLOPT_CLOSESOCKETDATA, t->shared);
  SET(CURLOPT_PREREQFUNCTION, on_request);
  SET(CURLOPT_PREREQDATA, t);
  SET(CURLOPT_RESOLVER_START_FUNCTION, on_lookup);
  SET(CURLOPT_RESOLVER_START_DATA, t);
  SET(CURLOPT_DEBUGFUNCTION, on_log);
  SET(CURLOPT_DEBUGDATA, t);
  SET(CURLOPT_SHARE, t->shared->sessions);
  if (t->shared->flood.measures || t->shared->options->proxy) {
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
  }
  return http_flood_watch(easy, &t->shared->flood) && ok;
}

/* A fresh handle like the last one, which has had a response: before 8.1.0 libcurl keeps in a handle a pointer to the
 * last header of a response, which is freed before the next, and writes there when that begins with a folded line, as
 * any server can have it. False: memory is short. */
static bool renew(struct http_transfer *t) {
  if (!t->used || !t->shared->renews)
    return true;
  CURL *fresh = curl_easy_duphandle(t->easy);
  if (!fresh)
    return false;
  curl_easy_cleanup(t->easy);
  t->easy = fresh;
  return curl_easy_setopt(fresh, CURLOPT_SHARE, t->shared->sessions) == CURLE_OK; /* which is not duplicated */
}

bool http_transfer_init(struct http_transfer *transfer, struct http_shared *shared) {
  transfer->shared = shared;
  transfer->response.limit = (size_t)shared->options->max_response;
  transfer->easy = curl_easy_init();
  return transfer->easy && set_safety(transfer->easy) && set_connection(transfer->easy, shared) &&
         set_callbacks(transfer->easy, transfer);
}

void http_transfer_free(struct http_transfer *transfer) {
  curl_easy_cleanup(transfer->easy);
  http_request_free(&transfer->request);
  http_response_free(&transfer->response);
  free(transfer->headers);
  *transfer = (struct http_transfer){0};
}

/* ---- preparing a task ---- */

/* Links the lines for libcurl, which only reads them, through nodes of our own: no allocation for each line. "Expect:"
 * switches off its wait for "100 Continue" with large bodies. A body that is compressed could not be read. */
static struct curl_slist *link_headers(struct http_transfer *t) {
  static const char *const ours[] = {"Expect:", "Accept-Encoding: identity"};
  enum { OURS = sizeof(ours) / sizeof(ours[0]) };
  size_t count = t->request.header_count + OURS;
  if (count > t->headers_cap) {
    struct curl_slist *nodes = realloc(t->headers, count * sizeof(*nodes));
    if (!nodes)
      return NULL;
    t->headers = nodes;
    t->headers_cap = count;
  }
  const char *line = NULL;
  for (size_t i = 0; i < count; i++) {
    line = i < OURS ? ours[i] : http_request_next_header(&t->request, i == OURS ? NULL : line);
    t->headers[i] = (struct curl_slist){.data = (char *)line, .next = i + 1 < count ? &t->headers[i + 1] : NULL};
  }
  return t->headers;
}

static bool set_times(struct http_transfer *t, long spent_ms) {
  CURL *easy = t->easy;
  bool ok = true;
  SET(CURLOPT_TIMEOUT_MS, t->timeout_ms - spent_ms);
  SET(CURLOPT_CONNECTTIMEOUT_MS, t->connect_ms - spent_ms);
  return ok;
}

static bool set_task(struct http_transfer *t, const struct http_route *route) {
  static const char *const methods[] = {[HTTP_POST] = NULL, [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH"};
  const struct duebox_task *task = t->task;
  const struct http_options *o = t->shared->options;
  struct curl_slist *headers = link_headers(t);
  CURL *easy = t->easy;
  bool ok = headers != NULL;
  SET(CURLOPT_URL, http_request_url(&t->request));
  SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)task->payload.len);
  SET(CURLOPT_POSTFIELDS, task->payload.data); /* read in place until the transfer has ended */
  SET(CURLOPT_CUSTOMREQUEST, methods[route->method]);
  SET(CURLOPT_HTTPHEADER, headers);
  SET(CURLOPT_FRESH_CONNECT, 0L);
  /* To libcurl one connection to the proxy is as good as another, whichever endpoint it was for. There are proxies
   * (tinyproxy 1.11) that send all that comes over it to the first one: it would get what is for others, and answer. */
  SET(CURLOPT_FORBID_REUSE, o->keep_alive_ms == 0 || http_is_relayed(o, http_request_url(&t->request)) ? 1L : 0L);
  t->timeout_ms = task->timeout_ms ? (long)task->timeout_ms : DEFAULT_TIMEOUT_MS;
  t->connect_ms = o->connect_timeout_ms < t->timeout_ms ? (long)o->connect_timeout_ms : t->timeout_ms;
  t->begun_ms = http_now_ms();
  return ok;
}
#undef SET

bool http_transfer_prepare(struct http_transfer *transfer, const struct duebox_task *task) {
  const struct http_route *route = task->route_data;
  transfer->task = task;
  transfer->requested = transfer->second_refused = transfer->stale = transfer->allowed = transfer->held = false;
  transfer->few_files = transfer->opens = transfer->may_open = transfer->recalled = false;
  transfer->sent_before = transfer->beginnings = 0;
  transfer->denied[0] = transfer->error[0] = '\0';
  http_response_reset(&transfer->response);
  if (!http_request_build(&transfer->request, task, route, transfer->shared->host, (int64_t)time(NULL),
                          &transfer->problem))
    return false;
  if (renew(transfer) && set_task(transfer, route))
    return transfer->used = true;
  http_transfer_refuse(transfer);
  return false;
}

void http_transfer_refuse(struct http_transfer *transfer) {
  transfer->problem = (struct http_problem){
      .cls = DUEBOX_UNAVAILABLE, .error_class = "http.memory", .text = "libcurl is short of memory; nothing was sent"};
}

void http_transfer_wait(struct http_transfer *transfer) {
  transfer->waits_ms = http_now_ms();
  http_turns_put(&transfer->shared->turns, transfer);
}

/* libcurl repeats by itself most of what was not processed, but not where the whole connection ended with it. */
bool http_transfer_again(struct http_transfer *transfer, CURLcode code) {
  if (transfer->opens || transfer->recalled)
    return transfer->opens && !transfer->recalled;
  if (code != CURLE_OK && code != CURLE_OPERATION_TIMEDOUT && is_unprocessed(transfer) &&
      transfer->beginnings < BEGINNINGS) {
    http_transfer_begin_anew(transfer);
    return true;
  }
  if (code != CURLE_ABORTED_BY_CALLBACK || !transfer->stale)
    return false;
  transfer->stale = false;
  transfer->opens = true;
  return curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
}

/* Waiting for a turn is none of the time to connect, but of that of the attempt. */
bool http_transfer_turn(struct http_transfer *transfer) {
  int64_t now = http_now_ms(), waited = now - transfer->waits_ms;
  transfer->begun_ms += waited;
  transfer->timeout_ms = waited < transfer->timeout_ms ? transfer->timeout_ms - (long)waited : 1; /* 0 is no limit */
  transfer->connect_ms = transfer->connect_ms < transfer->timeout_ms ? transfer->connect_ms : transfer->timeout_ms;
  long spent = (long)(now - transfer->begun_ms);
  transfer->held = transfer->requested = transfer->allowed = transfer->few_files = false;
  transfer->sent_before = 0; /* libcurl counts anew */
  transfer->denied[0] = transfer->error[0] = '\0';
  return set_times(transfer, spent < transfer->connect_ms ? spent : transfer->connect_ms - 1);
}

/* ---- the outcome ---- */

/* Never the URL: paths and queries of hooks often hold a token. */
static int host_of(const struct http_transfer *t, const char **name) {
  struct http_url url;
  if (!http_url_split(http_request_url(&t->request), &url))
    url.authority_len = 0;
  *name = url.authority_len ? url.authority : "";
  return (int)url.authority_len;
}

/* What the consumer wrote into a response that was taken. Where that cannot be known, the HTTP status decides, for most
 * endpoints write no result records, and the outcome says that nobody has read it. */
static void offer_body(struct http_transfer *t, long status, struct http_verdict *verdict,
                       struct duebox_outcome *outcome, char text[HTTP_MESSAGE_CAP]) {
  enum http_body body = http_response_body(&t->response);
  if (body == HTTP_BODY_OTHER)
    return;
  outcome->record = t->response.body;
  outcome->record_len = t->response.len;
  if (body == HTTP_BODY_OBJECT)
    return;
  const char *host;
  int host_len = host_of(t, &host);
  snprintf(verdict->error_class, sizeof(verdict->error_class), "http.answer_unread");
  snprintf(text, HTTP_MESSAGE_CAP,
           "HTTP %ld from %.*s counts; whether there is a result in the answer is not known: %s", status,
           host_len > 255 ? 255 : host_len, host,
           t->response.recoded ? "it is in a Transfer-Encoding that nobody asked for"
           : t->response.cut   ? "it was not read to its end (max_response), write the status first"
                               : "it is in a Content-Encoding, and identity was asked for");
}

/* For http:// a proxy answers 407 in the endpoint's place when it does not know us (RFC 9110, 15.5.8). */
static bool may_be_the_proxys(const struct http_transfer *t, long status) {
  return status == HTTP_PROXY_WANTS_PASSWORD && http_is_relayed(t->shared->options, http_request_url(&t->request));
}

/* A whole response, or one whose body was cut on purpose. */
static struct http_verdict judge_response(struct http_transfer *t, struct duebox_outcome *outcome,
                                          char text[HTTP_MESSAGE_CAP]) {
  const struct http_route *route = t->task->route_data;
  long status = 0;
  curl_off_t retry_after = 0;
  curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
  if (may_be_the_proxys(t, status))
    return http_verdict_of_407();
  struct http_verdict verdict =
      http_verdict_of_status(status, route, t->request.callback || duebox_task_result_awaited(t->task));
  if (verdict.cls == DUEBOX_DELIVERED && status >= 200 && status <= 299)
    offer_body(t, status, &verdict, outcome, text);
  if (verdict.cls == DUEBOX_RETRY) {
    curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after);
    outcome->retry_after_ms = http_retry_after_ms(&t->response, retry_after, route->retry_after_max_ms);
  }
  return verdict;
}

static void describe_response(const struct http_transfer *t, char text[HTTP_MESSAGE_CAP]) {
  const char *host;
  long status = 0;
  int host_len = host_of(t, &host);
  curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
  int at = snprintf(text, HTTP_MESSAGE_CAP, "HTTP %ld from %s%.*s", status,
                    may_be_the_proxys(t, status) ? "the proxy, or " : "", host_len > 255 ? 255 : host_len, host);
  if (at < 0 || at >= HTTP_MESSAGE_CAP - 3 || t->response.len == 0)
    return;
  memcpy(text + at, ": ", 3);
  http_text_clean(text + at + 2, (size_t)(HTTP_MESSAGE_CAP - at - 2), t->response.body, t->response.len);
}

/* No complete response: libcurl's code and whether bytes had left decide. */
static struct http_verdict judge_code(struct http_transfer *t, CURLcode code, char text[HTTP_MESSAGE_CAP]) {
  bool sent = http_transfer_may_be_received(t);
  long tunnel = 0; /* what the proxy answered to CONNECT; for libcurl its refusal is a broken connection */
  curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &tunnel);
  if (t->second_refused) /* perhaps by on_lookup() or on_socket() */
    code = CURLE_ABORTED_BY_CALLBACK;
  struct http_verdict verdict = http_verdict_of_code(code, sent, t->shared->options->proxy != NULL);
  if (code == CURLE_PROXY) {
    long said = CURLPX_OK;
    curl_easy_getinfo(t->easy, CURLINFO_PROXY_ERROR, &said);
    verdict.scope = http_scope_of_socks((CURLproxycode)said);
  }
  if (!sent && (tunnel >= 300 || (tunnel > 0 && t->response.header_flood)))
    verdict = http_verdict_of_proxy(tunnel);
  const char *host, *what = t->error[0] ? t->error : curl_easy_strerror(code);
  int host_len = host_of(t, &host);
  if (t->second_refused) {
    what = "the kept connection closed without an answer";
  } else if (!sent && tunnel == HTTP_PROXY_WANTS_PASSWORD) {
    what = "the proxy answered CONNECT with 407; it wants a user and a password that it knows (proxy_credentials)";
  } else if (!sent && t->response.header_flood) {
    what = "the headers of the proxy's answer to CONNECT are longer than 64 KiB";
  } else if (t->beginnings >= BEGINNINGS && is_unprocessed(t)) {
    what = "the endpoint ends its connections without processing the request (HTTP/2 GOAWAY)";
    snprintf(verdict.error_class, sizeof(verdict.error_class), "http.goaway");
  } else if (t->response.header_flood) {
    what = "the response headers are longer than 64 KiB";
    snprintf(verdict.error_class, sizeof(verdict.error_class), "http.header_flood");
  } else if (t->response.endless && (code == CURLE_WRITE_ERROR || code == CURLE_PARTIAL_FILE)) {
    what = "the Content-Length of the response is not one number, so that nobody knows where it ends";
    snprintf(verdict.error_class, sizeof(verdict.error_class), "http.protocol");
  } else if (code == CURLE_OUT_OF_MEMORY && sent) { /* what libcurl says of a line beyond 100 KiB, too */
    what = "a line of the response headers is too long, or memory is short";
    snprintf(verdict.error_class, sizeof(verdict.error_class), "http.header_flood");
    verdict.scope = DUEBOX_SCOPE_ROUTE;
  } else if (code == CURLE_COULDNT_CONNECT && http_transfer_denied(t)) {
    snprintf(verdict.error_class, sizeof(verdict.error_class), "http.address_denied");
    verdict.scope = DUEBOX_SCOPE_ROUTE;
    snprintf(text, HTTP_MESSAGE_CAP, "%s", t->denied);
    return verdict;
  } else if (code == CURLE_COULDNT_CONNECT && t->few_files) {
    what = "no file is left for a connection; raise the limit of open files (LimitNOFILE), or lower the concurrency of "
           "routes whose endpoints do not answer";
    snprintf(verdict.error_class, sizeof(verdict.error_class), "http.files");
  }
  char clean[CURL_ERROR_SIZE + 1];
  const char *cure = code == CURLE_SSL_CONNECT_ERROR ? tls_limit_cure(what) : NULL;
  http_text_clean(clean, sizeof(clean), what, strlen(what));
  snprintf(text, HTTP_MESSAGE_CAP, "%.*s: %s; %s%s%s", host_len > 255 ? 255 : host_len, host, clean,
           sent                ? "the request may have been received"
           : is_unprocessed(t) ? "the request was not processed"
                               : "nothing was sent",
           cure ? "; " : "", cure ? cure : "");
  return verdict;
}

static struct http_verdict judge_stop(const struct http_transfer *t, char text[HTTP_MESSAGE_CAP]) {
  bool sent = http_transfer_may_be_received(t);
  snprintf(text, HTTP_MESSAGE_CAP, "%s before an answer came; %s", t->recalled ? "taken back" : "stopped",
           sent ? "the request may have been received" : "nothing was sent");
  struct http_verdict verdict = {.cls = sent ? DUEBOX_UNKNOWN : DUEBOX_UNAVAILABLE};
  snprintf(verdict.error_class, sizeof(verdict.error_class), t->recalled ? "http.recalled" : "http.stopped");
  return verdict;
}

static struct http_verdict judge_refusal(const struct http_transfer *t, char text[HTTP_MESSAGE_CAP]) {
  struct http_verdict verdict = {.cls = t->problem.cls};
  snprintf(verdict.error_class, sizeof(verdict.error_class), "%s", t->problem.error_class);
  snprintf(text, HTTP_MESSAGE_CAP, "%s", t->problem.text);
  return verdict;
}

/* Whether the response was given up in the middle. For libcurl 7.88 an HTTP/2 stream that is reset with NO_ERROR has
 * ended well; only a Content-Length, or the body itself, tells otherwise. */
static bool is_given_up(const struct http_transfer *t) {
  long version = 0;
  curl_off_t length = -1;
  curl_easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version);
  curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  return t->response.endless ||
         (version == CURL_HTTP_VERSION_2_0 && length < 0 && http_response_breaks_off(&t->response));
}

enum http_reach http_transfer_complete(struct http_transfer *transfer, enum http_end end, CURLcode code) {
  const struct duebox_host *host = transfer->shared->host;
  struct duebox_outcome outcome = DUEBOX_OUTCOME(.cls = DUEBOX_UNKNOWN);
  struct http_verdict verdict;
  enum http_reach reach = HTTP_REACH_SAYS_NOTHING;
  char text[HTTP_MESSAGE_CAP] = "";
  if (end == HTTP_END_REFUSED) {
    verdict = judge_refusal(transfer, text);
  } else if (end == HTTP_END_STOPPED || end == HTTP_END_RECALLED) {
    verdict = judge_stop(transfer, text);
    outcome.recalled = end == HTTP_END_RECALLED && verdict.cls == DUEBOX_UNAVAILABLE;
  } else if (transfer->response.headed && (code == CURLE_OK || transfer->response.cut) && !is_given_up(transfer)) {
    verdict = judge_response(transfer, &outcome, text);
    reach = verdict.cls == DUEBOX_UNAVAILABLE ? HTTP_REACH_FAILED : HTTP_REACH_ANSWERED;
    if (verdict.cls != DUEBOX_DELIVERED)
      describe_response(transfer, text);
  } else {
    verdict = judge_code(transfer, code == CURLE_OK ? CURLE_PARTIAL_FILE : code, text);
    reach = verdict.cls == DUEBOX_UNAVAILABLE ? HTTP_REACH_FAILED : HTTP_REACH_SAYS_NOTHING;
  }
  outcome.cls = verdict.cls;
  outcome.scope = verdict.scope;
  outcome.blameless = verdict.blameless;
  outcome.answer = verdict.answer;
  outcome.error_class = verdict.error_class[0] ? verdict.error_class : NULL;
  outcome.message = text[0] ? text : NULL;
  uint64_t token = transfer->task->token;
  transfer->task = NULL;
  host->complete(host->ctx, token, &outcome);
  return reach;
}
