/* SPDX-License-Identifier: MIT */
#include "http_lookup.h"

#include <duebox/check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_transfer.h"
#include "http_url.h"

enum { POLL_MS = 100, AT_ONCE = 32 };

/* One host with its port, for all routes that name it. */
struct lookup {
  struct http_transfer transfer;
  struct http_url url;
  struct duebox_check *check;
  bool started;
};

/* As for a task. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to) {
  struct lookup *l = arg;
  return http_transfer_socket(&l->transfer, &l->url, to);
}

static bool start(struct lookup *l, struct http_shared *shared, CURLM *multi, int64_t timeout_ms) {
  char origin[1100];
  int64_t limit = shared->options->connect_timeout_ms < timeout_ms ? shared->options->connect_timeout_ms : timeout_ms;
  if (!http_transfer_init(&l->transfer, shared) ||
      snprintf(origin, sizeof(origin), "http%s://%.*s/", l->url.plain ? "" : "s", (int)l->url.authority_len,
               l->url.authority) >= (int)sizeof(origin))
    return false;
  CURL *easy = l->transfer.easy;
  l->started = curl_easy_setopt(easy, CURLOPT_URL, origin) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, l) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, NULL) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, NULL) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_PRIVATE, l) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)limit) == CURLE_OK &&
               curl_multi_add_handle(multi, easy) == CURLM_OK;
  return l->started;
}

static void finish(struct lookup *l, CURLcode code) {
  const struct http_options *o = l->transfer.shared->options;
  const char *why = http_transfer_denied(&l->transfer) ? l->transfer.denied
                    : l->transfer.error[0]             ? l->transfer.error
                                                       : curl_easy_strerror(code);
  enum duebox_check_verdict verdict = DUEBOX_CHECK_UNSURE;
  const char *cure = "is it running, and does the network let us through?";
  if (code == CURLE_OK) {
    duebox_check_answer(l->check, DUEBOX_CHECK_OK, "", "%.*s answers%s", (int)l->url.authority_len, l->url.authority,
                        o->proxy ? " through the proxy" : "");
    return;
  }
  if (http_transfer_denied(&l->transfer)) {
    verdict = DUEBOX_CHECK_WRONG;
    cure = "";
  } else if (code == CURLE_COULDNT_RESOLVE_HOST) {
    cure = "correct the host in the url, or the name service";
  } else if (code == CURLE_PEER_FAILED_VERIFICATION) {
    verdict = DUEBOX_CHECK_WRONG;
    cure = "the url must name the host as its certificate does, and ca_file hold the authority that signed it";
  } else if (code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM) {
    verdict = DUEBOX_CHECK_WRONG;
    cure = "does it speak TLS on this port, and are ca_file, client_cert and client_key in order?";
  }
  duebox_check_answer(l->check, verdict, cure, "%.*s: %s", (int)l->url.authority_len, l->url.authority, why);
}

/* Whether libcurl is through with all of them; takes what has ended. */
static void run(CURLM *multi, int64_t end_ms) {
  int running = 1;
  while (running > 0 && http_now_ms() < end_ms) {
    int left;
    if (curl_multi_perform(multi, &running) != CURLM_OK)
      return;
    for (CURLMsg *ended; (ended = curl_multi_info_read(multi, &left));) {
      struct lookup *l;
      if (curl_easy_getinfo(ended->easy_handle, CURLINFO_PRIVATE, &l) == CURLE_OK)
        finish(l, ended->data.result);
    }
    if (running > 0)
      (void)curl_multi_poll(multi, NULL, 0, POLL_MS, NULL);
  }
}

static bool same_host(const struct http_url *a, const struct http_url *b) {
  return a->plain == b->plain && a->authority_len == b->authority_len &&
         strncasecmp(a->authority, b->authority, a->authority_len) == 0;
}

/* One round of hosts, beginning at *at. */
static void look_up(struct lookup *lookups, size_t count, struct http_shared *shared, size_t *at, int64_t end_ms) {
  CURLM *multi = curl_multi_init();
  size_t first = *at;
  for (int n = 0; multi && *at < count && n < AT_ONCE; (*at)++) {
    struct lookup *l = &lookups[*at];
    bool again = false;
    for (size_t i = 0; i < *at && !again; i++)
      again = same_host(&lookups[i].url, &l->url);
    if (!again && !start(l, shared, multi, end_ms - http_now_ms()))
      duebox_check_answer(l->check, DUEBOX_CHECK_UNSURE, "", "libcurl could not begin, for want of memory");
    n += !again;
  }
  if (multi)
    run(multi, end_ms);
  else
    *at = count;
  for (size_t i = first; i < *at; i++) {
    if (lookups[i].started)
      curl_multi_remove_handle(multi, lookups[i].transfer.easy);
    if (lookups[i].transfer.easy)
      http_transfer_free(&lookups[i].transfer);
  }
  curl_multi_cleanup(multi);
}

/* What was found out of a host counts for all that name it. */
static void share(struct lookup *lookups, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t first = 0;
    while (!same_host(&lookups[first].url, &lookups[i].url))
      first++;
    const struct duebox_check *from = lookups[first].check;
    if (from->text[0] == '\0')
      duebox_check_answer(lookups[i].check, DUEBOX_CHECK_UNSURE, "", "%.*s has not answered in time",
                          (int)lookups[i].url.authority_len, lookups[i].url.authority);
    else if (first != i)
      duebox_check_answer(lookups[i].check, from->verdict, from->cure, "%s", from->text);
  }
}

void http_check_targets(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms) {
  struct http_shared shared = {.options = options};
  int64_t end_ms = http_now_ms() + timeout_ms;
  struct lookup *lookups = calloc(count ? count : 1, sizeof(*lookups));
  if (!lookups || !http_policy_make(options, &shared.policy) || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    free(lookups);
    http_policy_free(&shared.policy);
    return;
  }
  bool ok = true;
  for (size_t i = 0; ok && i < count; i++) {
    const struct http_route *route = checks[i]->route;
    lookups[i].check = checks[i];
    ok = route && http_url_split(route->url, &lookups[i].url); /* which the check of the route has seen to */
  }
  for (size_t at = 0; ok && at < count && http_now_ms() < end_ms;)
    look_up(lookups, count, &shared, &at, end_ms);
  if (ok)
    share(lookups, count);
  http_sockets_free(&shared.sockets);
  http_policy_free(&shared.policy);
  curl_global_cleanup();
  free(lookups);
}
