/* SPDX-License-Identifier: MIT */
#include "http_sink.h"

#include <stdio.h>
#include <stdlib.h>

#include "http_tls.h"

enum {
  CUT_OFF = 3,             /* failures in a row */
  WAITING_POLL_MS = 100,   /* libcurl does not know of the time-outs of those that wait for a name */
  OTHER_FILES = 50,        /* of the daemon: log, database, libraries */
  CURL_FORGETS = 0x080100, /* 8.1.0: no handle keeps a pointer to headers that are freed */
};

static void push(struct http_transfer **list, struct http_transfer *transfer) {
  transfer->next = *list;
  *list = transfer;
}

static struct http_transfer *pop(struct http_transfer **list) {
  struct http_transfer *transfer = *list;
  if (transfer)
    *list = transfer->next;
  return transfer;
}

/* ---- create and destroy ---- */

static bool fail(struct duebox_error *err, const char *text) {
  snprintf(err->text, sizeof(err->text), "%s", text);
  return false;
}

/* The pool is pinned: by default libcurl lets it shrink to four times the running transfers, so that a quiet moment
 * would close connections that the next second needs. There is no limit on connections as a whole: routes would wait
 * for one behind those of a dead endpoint. */
static bool set_multi(struct http_sink *sink, size_t transfers) {
  size_t files = http_sockets_files(), kept = transfers < files ? transfers : files;
  long pipelining = sink->shared.options->http2 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING;
  return curl_multi_setopt(sink->multi, CURLMOPT_MAXCONNECTS, (long)kept) == CURLM_OK &&
         curl_multi_setopt(sink->multi, CURLMOPT_PIPELINING, pipelining) == CURLM_OK;
}

/* Without a free file a call fails before it begins. */
static void check_files(const struct duebox_host *host, size_t connections) {
  size_t files = http_sockets_files();
  if (connections + OTHER_FILES > files)
    host->log(host->ctx, DUEBOX_LOG_WARN, "HTTP-FILES-FEW",
              "there may be %zu connections, and there are files for no more than %zu; raise the limit of open files "
              "(LimitNOFILE, ulimit -n), or lower the routes' concurrency",
              connections, files > OTHER_FILES ? files - OTHER_FILES : 0);
}

static bool share_sessions(CURLSH *share) {
  return share && curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) == CURLSHE_OK;
}

bool http_sink_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                      struct duebox_error *err) {
  struct http_sink *sink = inst;
  const struct http_options *options = config->options;
  size_t inflight = config->max_inflight ? config->max_inflight : 1;
  sink->shared.options = options;
  sink->shared.host = sink->shared.flood.host = host;
  sink->shared.flood.measures = options->http2;
  sink->shared.flood.client_cert = options->client_cert != NULL;
  sink->shared.flood.authorities = options->ca_file ? NULL : http_tls_authorities();
  if (options->http2 && !http_flood_measurable())
    return fail(err, "http2 needs a libcurl with OpenSSL; install that one, or remove http2");
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return fail(err, "libcurl could not be initialised");
  sink->global = true;
  sink->multi = curl_multi_init();
  http_resolver_init(&sink->resolver, sink->multi, http_sockets_files());
  sink->shared.renews = curl_version_info(CURLVERSION_NOW)->version_num < CURL_FORGETS;
  sink->shared.sessions = curl_share_init();
  sink->count = inflight;
  sink->transfers = calloc(sink->count, sizeof(*sink->transfers));
  if (!http_policy_make(options, &sink->shared.policy) || !sink->multi || !sink->transfers ||
      !http_turns_init(&sink->shared.turns, inflight) || !share_sessions(sink->shared.sessions) ||
      !set_multi(sink, inflight))
    return fail(err, "out of memory for the HTTP transfers; lower the routes' concurrency or raise the memory limit");
  for (size_t i = 0; i < sink->count; i++) {
    if (!http_transfer_init(&sink->transfers[i], &sink->shared))
      return fail(err, "libcurl refused a setting or is short of memory; this plugin needs libcurl 7.87 or newer with "
                       "HTTPS");
    push(&sink->idle, &sink->transfers[i]);
  }
  check_files(host, inflight);
  return true;
}

void http_sink_destroy(void *inst) {
  struct http_sink *sink = inst;
  for (size_t i = 0; sink->transfers && i < sink->count; i++)
    http_transfer_free(&sink->transfers[i]);
  free(sink->transfers);
  http_resolver_stop(&sink->resolver);
  http_turns_free(&sink->shared.turns);
  if (sink->multi)
    curl_multi_cleanup(sink->multi);
  curl_share_cleanup(sink->shared.sessions);
  http_policy_free(&sink->shared.policy);
  http_sockets_free(&sink->shared.sockets);
  if (sink->global)
    curl_global_cleanup();
}

/* ---- the work ---- */

/* An instance has many destinations, so one that is down says little: only a row of failures without any answer in
 * between makes the instance look cut off. The breakers of the routes judge single destinations. */
static void note_reach(struct http_sink *sink, enum http_reach reach) {
  const struct duebox_host *host = sink->shared.host;
  if (reach == HTTP_REACH_ANSWERED) {
    sink->failed_in_row = 0;
    if (sink->health != HTTP_HEALTH_UP)
      host->health(host->ctx, true, NULL);
    sink->health = HTTP_HEALTH_UP;
  } else if (reach == HTTP_REACH_FAILED && ++sink->failed_in_row >= CUT_OFF && sink->health != HTTP_HEALTH_DOWN) {
    host->health(host->ctx, false, "no destination could be reached in a row of requests; see the routes' last errors");
    sink->health = HTTP_HEALTH_DOWN;
  }
}

bool http_sink_start(void *inst, struct duebox_error *err) { return true; /* connects for the first request */ }

size_t http_sink_submit(void *inst, const struct duebox_task *const *tasks, size_t n) {
  struct http_sink *sink = inst;
  size_t taken = 0;
  for (; taken < n && !sink->closed && sink->idle; taken++) {
    struct http_transfer *transfer = pop(&sink->idle);
    if (http_transfer_prepare(transfer, tasks[taken])) {
      http_transfer_wait(transfer);
      sink->running++;
    } else {
      push(&sink->refused, transfer); /* the host must not hear of it before submit() has returned */
    }
  }
  return taken;
}

static void finish(struct http_sink *sink, struct http_transfer *transfer, enum http_end end, CURLcode code) {
  note_reach(sink, http_transfer_complete(transfer, end, code));
  push(&sink->idle, transfer);
}

static bool finish_refused(struct http_sink *sink) {
  bool any = sink->refused != NULL;
  for (struct http_transfer *t = pop(&sink->refused); t; t = pop(&sink->refused))
    finish(sink, t, HTTP_END_REFUSED, CURLE_OK);
  return any;
}

/* One transfer that libcurl is done with. Whether its task is completed. */
static bool end_transfer(struct http_sink *sink, CURL *easy, CURLcode code) {
  char *private = NULL;
  if (http_resolver_ended(&sink->resolver, easy, code))
    return false;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
  struct http_transfer *transfer = (struct http_transfer *)private;
  curl_multi_remove_handle(sink->multi, easy);
  if (http_transfer_again(transfer, code)) {
    http_transfer_wait(transfer);
    return false;
  }
  if (transfer->held && !transfer->recalled) {
    http_resolver_wait(&sink->resolver, transfer);
    return false;
  }
  sink->running--;
  if (code == CURLE_OK)
    http_turns_kept(&sink->shared.turns, transfer->task->route_data);
  finish(sink, transfer, HTTP_END_RESULT, code);
  return true;
}

/* Those that have waited for a name go on with their connection when it is their turn, or end. Whether any has ended.
 */
static bool resume(struct http_sink *sink) {
  bool any = false;
  struct http_transfer *list = http_resolver_turn(&sink->resolver);
  for (struct http_transfer *t = pop(&list); t; t = pop(&list)) {
    if (t->lookup_code == CURLE_OK) {
      t->opens = true;
      http_transfer_wait(t);
      continue;
    }
    sink->running--;
    finish(sink, t, HTTP_END_RESULT, t->lookup_code);
    any = true;
  }
  return any;
}

/* Those whose turn it is begin. */
static void begin(struct http_sink *sink) {
  http_turns_next(&sink->shared.turns);
  for (struct http_transfer *t = http_turns_take(&sink->shared.turns); t; t = http_turns_take(&sink->shared.turns)) {
    if (http_transfer_turn(t) && curl_multi_add_handle(sink->multi, t->easy) == CURLM_OK)
      continue;
    sink->running--;
    http_transfer_refuse(t);
    push(&sink->refused, t);
  }
}

/* Lets libcurl do what can be done without waiting, and completes what has ended. Whether anything has. */
static bool drive(struct http_sink *sink) {
  int left = 0;
  begin(sink);
  bool any = finish_refused(sink);
  http_flood_turn(&sink->shared.flood);
  curl_multi_perform(sink->multi, &left);
  for (CURLMsg *msg = curl_multi_info_read(sink->multi, &left); msg; msg = curl_multi_info_read(sink->multi, &left)) {
    CURL *easy = msg->easy_handle; /* the message is gone after curl_multi_remove_handle() */
    CURLcode code = msg->data.result;
    if (msg->msg == CURLMSG_DONE && end_transfer(sink, easy, code))
      any = true;
  }
  return resume(sink) || any;
}

/* Sends before it waits, never after: the host comes first when the process goes on after it stood still. */
void http_sink_poll(void *inst, int timeout_ms) {
  struct http_sink *sink = inst;
  if (drive(sink) || !http_turns_empty(&sink->shared.turns)) /* the host's other tasks are to come in between */
    return;
  if (sink->resolver.waiting && timeout_ms > WAITING_POLL_MS)
    timeout_ms = WAITING_POLL_MS;
  curl_multi_poll(sink->multi, NULL, 0, timeout_ms, NULL);
}

static void take_back(struct http_sink *sink, struct http_transfer *transfer) {
  transfer->recalled = true;
  sink->running--;
  finish(sink, transfer, HTTP_END_RECALLED, CURLE_OK);
}

/* Of those that wait nothing has left, or the endpoint has said that it did not process it. */
void http_sink_recall(void *inst) {
  struct http_sink *sink = inst;
  struct http_transfer *waiting = http_resolver_drop(&sink->resolver);
  (void)finish_refused(sink);
  for (struct http_transfer *t = pop(&waiting); t; t = pop(&waiting))
    take_back(sink, t);
  for (struct http_transfer *t = http_turns_drop(&sink->shared.turns); t; t = http_turns_drop(&sink->shared.turns))
    take_back(sink, t);
  for (size_t i = 0; i < sink->count; i++) {
    struct http_transfer *t = &sink->transfers[i];
    if (!t->task)
      continue;
    t->recalled = true;
    if (http_transfer_may_be_received(t))
      continue;
    curl_multi_remove_handle(sink->multi, t->easy);
    take_back(sink, t);
  }
}

void http_sink_wakeup(void *inst) {
  struct http_sink *sink = inst;
  curl_multi_wakeup(sink->multi);
}

void http_sink_close(void *inst) {
  struct http_sink *sink = inst;
  sink->closed = true;
}

void http_sink_stop(void *inst, int deadline_ms) {
  struct http_sink *sink = inst;
  int64_t end = http_now_ms() + deadline_ms;
  sink->closed = true;
  for (int64_t now = http_now_ms(); (sink->running > 0 || sink->refused) && now < end; now = http_now_ms())
    http_sink_poll(sink, (int)(end - now));
  finish_refused(sink);
  http_resolver_stop(&sink->resolver);
  for (size_t i = 0; i < sink->count; i++) {
    struct http_transfer *transfer = &sink->transfers[i];
    if (!transfer->task)
      continue;
    curl_multi_remove_handle(sink->multi, transfer->easy);
    sink->running--;
    finish(sink, transfer, HTTP_END_STOPPED, CURLE_OK);
  }
}
