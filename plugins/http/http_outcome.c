/* SPDX-License-Identifier: MIT */
#include "http_outcome.h"

#include <stdio.h>
#include <string.h>

/* First match wins; a row that says LATER matches only where a later answer has a way. RFC 9110 section 15; 409 and 425
 * as "still going on" by the contract with consumers. A NULL error class stands for "http.<status>". What is in no row
 * is no final status of HTTP: UNKNOWN, "http.protocol". */
static const struct {
  long from, to;
  enum duebox_outcome_class cls;
  enum duebox_answer answer;
  const char *error_class;
} statuses[] = {
    {202, 202, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, NULL},
    {200, 299, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE, NULL},
    {300, 399, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, "http.redirect"}, /* never followed: the target was not configured */
    {409, 409, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, NULL},
    {425, 425, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER, NULL},
    {410, 410, DUEBOX_GONE, DUEBOX_ANSWER_NONE, NULL},
    {400, 599, DUEBOX_RETRY, DUEBOX_ANSWER_NONE, NULL},
};

/* Failures that speak of the URL, whatever the task: the others are its own. */
static bool speaks_of_target(long status) {
  static const long client[] = {401, 403, 404, 405, 407, 408, 410, 429};
  for (size_t i = 0; i < sizeof(client) / sizeof(client[0]); i++)
    if (status == client[i])
      return true;
  return status >= 500;
}

/* Codes that can come from our settings; all others are "http.curl". instance: concerns every route. */
static const struct {
  CURLcode code;
  bool instance;
  const char *error_class;
} codes[] = {
    {CURLE_COULDNT_RESOLVE_HOST, false, "http.dns"},
    {CURLE_COULDNT_RESOLVE_PROXY, true, "http.proxy"},
    {CURLE_PROXY, false, "http.proxy"}, /* SOCKS; see http_scope_of_socks() */
    {CURLE_COULDNT_CONNECT, false, "http.connect"},
    {CURLE_OPERATION_TIMEDOUT, false, "http.timeout"},
    {CURLE_SSL_CONNECT_ERROR, false, "http.tls"},
    {CURLE_PEER_FAILED_VERIFICATION, false, "http.tls"},
    {CURLE_SSL_ISSUER_ERROR, false, "http.tls"},
    {CURLE_SSL_INVALIDCERTSTATUS, false, "http.tls"},
    {CURLE_SSL_CERTPROBLEM, true, "http.tls"}, /* our own certificate or key */
    {CURLE_SSL_CACERT_BADFILE, true, "http.tls"},
    {CURLE_SSL_CIPHER, true, "http.tls"},
    {CURLE_SSL_CLIENTCERT, false, "http.tls"},
    {CURLE_GOT_NOTHING, false, "http.no_response"},
    {CURLE_ABORTED_BY_CALLBACK, false, "http.no_response"}, /* http_transfer.c forbade a second sending */
    {CURLE_SEND_ERROR, false, "http.send"},
    {CURLE_RECV_ERROR, false, "http.reset"},
    {CURLE_PARTIAL_FILE, false, "http.partial"},
    {CURLE_WRITE_ERROR, false, "http.memory"}, /* the body could not be stored */
    {CURLE_OUT_OF_MEMORY, true, "http.memory"},
    {CURLE_UNSUPPORTED_PROTOCOL, false, "http.protocol"}, /* HTTP/0.9, that is: garbage */
    {CURLE_WEIRD_SERVER_REPLY, false, "http.protocol"},
    {CURLE_BAD_FUNCTION_ARGUMENT, false, "http.protocol"}, /* a header line that is none */
    {CURLE_HTTP2, false, "http.protocol"},
    {CURLE_HTTP2_STREAM, false, "http.protocol"},
    {CURLE_BAD_CONTENT_ENCODING, false, "http.protocol"},
};

enum { EXACT = 3 }; /* digits */

bool http_status_item_valid(const char *item) {
  if (strlen(item) != EXACT || item[0] < '2' || item[0] > '5')
    return false;
  bool number = item[1] >= '0' && item[1] <= '9' && item[2] >= '0' && item[2] <= '9';
  return number || strcmp(item + 1, "xx") == 0;
}

static bool listed(const struct duebox_list *list, const char *item) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i], item) == 0)
      return true;
  return false;
}

/* Whether one of the route's lists names the item; *out is filled then. */
static bool override(const struct http_route *route, const char *item, struct http_verdict *out) {
  const struct {
    const struct duebox_list *list;
    enum duebox_outcome_class cls;
    enum duebox_answer answer;
  } rows[] = {
      {&route->done_on, DUEBOX_DELIVERED, DUEBOX_ANSWER_DONE},
      {&route->later_on, DUEBOX_DELIVERED, DUEBOX_ANSWER_LATER},
      {&route->retry_on, DUEBOX_RETRY, DUEBOX_ANSWER_NONE},
      {&route->reject_on, DUEBOX_REJECTED, DUEBOX_ANSWER_NONE},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (!listed(rows[i].list, item))
      continue;
    out->cls = rows[i].cls;
    out->answer = rows[i].answer;
    return true;
  }
  return false;
}

/* What the route itself says about the status, if anything. */
static bool overridden(const struct http_route *route, long status, struct http_verdict *out) {
  char exact[24], class[] = {(char)('0' + status / 100 % 10), 'x', 'x', '\0'};
  if (route->done_on.count + route->later_on.count + route->retry_on.count + route->reject_on.count == 0)
    return false;
  snprintf(exact, sizeof(exact), "%ld", status);
  if (!override(route, exact, out) && !override(route, class, out))
    return false;
  if (out->cls == DUEBOX_RETRY && speaks_of_target(status))
    out->scope = DUEBOX_SCOPE_TARGET;
  if (out->cls != DUEBOX_DELIVERED)
    snprintf(out->error_class, sizeof(out->error_class), "http.%s", exact);
  return true;
}

struct http_verdict http_verdict_of_status(long status, const struct http_route *route, bool awaited) {
  struct http_verdict verdict = {.cls = DUEBOX_UNKNOWN};
  if (overridden(route, status, &verdict))
    return verdict;
  for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
    if (status < statuses[i].from || status > statuses[i].to)
      continue;
    if (statuses[i].answer == DUEBOX_ANSWER_LATER && !awaited)
      continue;
    verdict.cls = statuses[i].cls;
    verdict.answer = statuses[i].answer;
    if (verdict.cls != DUEBOX_DELIVERED && speaks_of_target(status))
      verdict.scope = DUEBOX_SCOPE_TARGET;
    if (verdict.cls == DUEBOX_DELIVERED)
      return verdict;
    if (statuses[i].error_class)
      snprintf(verdict.error_class, sizeof(verdict.error_class), "%s", statuses[i].error_class);
    else
      snprintf(verdict.error_class, sizeof(verdict.error_class), "http.%ld", status);
    return verdict;
  }
  snprintf(verdict.error_class, sizeof(verdict.error_class), "http.protocol");
  return verdict;
}

/* A 407 for http:// is the proxy's, or the endpoint's, which the proxy passes on: nobody can tell. So it speaks of the
 * one address, which may have had the request, and of no task. */
struct http_verdict http_verdict_of_407(void) {
  return (struct http_verdict){
      .cls = DUEBOX_UNKNOWN, .blameless = true, .scope = DUEBOX_SCOPE_TARGET, .error_class = "http.proxy"};
}

/* Where it wants a password it wants it of every route; else it speaks of the one address. */
struct http_verdict http_verdict_of_proxy(long status) {
  return (struct http_verdict){.cls = DUEBOX_UNAVAILABLE,
                               .scope =
                                   status == HTTP_PROXY_WANTS_PASSWORD ? DUEBOX_SCOPE_INSTANCE : DUEBOX_SCOPE_ROUTE,
                               .error_class = "http.proxy"};
}

/* What it says before it has heard which endpoint is meant. */
enum duebox_scope http_scope_of_socks(CURLproxycode said) {
  static const CURLproxycode lets_nobody_in[] = {CURLPX_BAD_VERSION, CURLPX_GSSAPI,        CURLPX_GSSAPI_PERMSG,
                                                 CURLPX_IDENTD,      CURLPX_IDENTD_DIFFER, CURLPX_LONG_PASSWD,
                                                 CURLPX_LONG_USER,   CURLPX_NO_AUTH,       CURLPX_RECV_AUTH,
                                                 CURLPX_SEND_AUTH,   CURLPX_UNKNOWN_MODE,  CURLPX_USER_REJECTED};
  for (size_t i = 0; i < sizeof(lets_nobody_in) / sizeof(lets_nobody_in[0]); i++)
    if (said == lets_nobody_in[i])
      return DUEBOX_SCOPE_INSTANCE;
  return DUEBOX_SCOPE_ROUTE;
}

struct http_verdict http_verdict_of_code(CURLcode code, bool sent, bool by_proxy) {
  struct http_verdict verdict = {.cls = sent ? DUEBOX_UNKNOWN : DUEBOX_UNAVAILABLE, .error_class = "http.curl"};
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
    if (codes[i].code != code)
      continue;
    snprintf(verdict.error_class, sizeof(verdict.error_class), "%s", codes[i].error_class);
    if (codes[i].instance || (code == CURLE_COULDNT_CONNECT && by_proxy))
      verdict.scope = DUEBOX_SCOPE_INSTANCE;
    break;
  }
  if (!sent && (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)) {
    verdict.cls = DUEBOX_REJECTED; /* this task's data made a URL that nothing can be sent to */
    snprintf(verdict.error_class, sizeof(verdict.error_class), "http.url");
  }
  return verdict;
}
