/* SPDX-License-Identifier: MIT */
#include "http_options.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <duebox/link.h>

#include "http_outcome.h"
#include "http_policy.h"
#include "http_request.h"
#include "http_sign.h"
#include "http_url.h"

static const char *const methods[] = {"POST", "PUT", "PATCH", NULL};

#define ROW(field, kind, ...)                                                                                          \
  { .name = #field, .type = kind, .offset = offsetof(struct http_options, field), __VA_ARGS__ }
const struct duebox_option http_option_rows[] = {
    ROW(allow_private, DUEBOX_OPT_BOOL, .def = "false",
        .help = "call loopback and private addresses too; link-local and reserved ones stay refused"),
    ROW(allow_networks, DUEBOX_OPT_LIST,
        .help = "networks that may be called whatever their kind, such as 10.1.0.0/16 or fd00:1::/32"),
    ROW(allow_plaintext, DUEBOX_OPT_BOOL, .def = "false",
        .help = "permit http:// to other hosts: every request can be read on the way"),
    {.name = "connect_timeout",
     .type = DUEBOX_OPT_DURATION,
     .def = "5s",
     .min = 1,
     .max = 600000,
     .offset = offsetof(struct http_options, connect_timeout_ms),
     .help = "name resolution, connect and TLS handshake together"},
    {.name = "keep_alive",
     .type = DUEBOX_OPT_DURATION,
     .def = "4s",
     .min = 0,
     .max = 3600000,
     .offset = offsetof(struct http_options, keep_alive_ms),
     .help = "use an idle connection again for this long; keep it below the receivers' own idle time-out"},
    ROW(max_response, DUEBOX_OPT_SIZE, .def = "64KiB", .min = 4096, .max = 16777216,
        .help = "keep at most this much of a response body; of a JSON object that may hold a result, scan up to 16 "
                "times as much"),
    ROW(http2, DUEBOX_OPT_BOOL, .def = "false",
        .help = "offer HTTP/2 over TLS and share connections; what a server has not processed when it ends one "
                "(GOAWAY) is sent again within the attempt, a stream that it refuses alone costs one"),
    ROW(user_agent, DUEBOX_OPT_STRING, .def = "duebox/" HTTP_PLUGIN_VERSION, .help = "value of User-Agent"),
    ROW(proxy, DUEBOX_OPT_STRING,
        .help = "URL of a forward proxy; it then decides which addresses may be called; the environment is never read"),
    ROW(proxy_credentials, DUEBOX_OPT_SECRET, .help = "user:password for the proxy"),
    ROW(ca_file, DUEBOX_OPT_STRING, .flags = DUEBOX_OPT_PATH,
        .help = "certificates to trust instead of the system's, PEM"),
    ROW(client_cert, DUEBOX_OPT_STRING, .flags = DUEBOX_OPT_PATH,
        .help = "file with the client certificate for mutual TLS, PEM"),
    ROW(client_key, DUEBOX_OPT_STRING, .flags = DUEBOX_OPT_PATH, .help = "file with its private key, PEM"),
    ROW(client_key_password, DUEBOX_OPT_SECRET, .help = "password of the private key"),
    {.name = NULL},
};
#undef ROW

#define ROW(field, kind, ...)                                                                                          \
  { .name = #field, .type = kind, .offset = offsetof(struct http_route, field), __VA_ARGS__ }
const struct duebox_option http_route_rows[] = {
    ROW(url, DUEBOX_OPT_STRING,
        .flags = DUEBOX_OPT_REQUIRED | DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET | DUEBOX_OPT_FILE,
        .help = "where to send; placeholders are percent-encoded and may stand in the path and the query only"),
    ROW(method, DUEBOX_OPT_ENUM, .def = "POST", .choices = methods, .help = "request method"),
    ROW(secret, DUEBOX_OPT_SECRET,
        .help = "sign with this key: whsec_<base64> (HMAC-SHA256, v1) or whsk_<base64> (ed25519, v1a)"),
    ROW(previous_secret, DUEBOX_OPT_SECRET, .help = "sign with this key as well, while receivers change over"),
    ROW(authorization, DUEBOX_OPT_SECRET, .help = "value of Authorization, such as: Bearer <token>"),
    ROW(content_type, DUEBOX_OPT_STRING, .def = "application/json",
        .help = "Content-Type of a task that brings none in its headers"),
    ROW(headers, DUEBOX_OPT_MAP,
        .help = "headers of every request, without placeholders; they go before a task's header of the same name"),
    ROW(secret_headers, DUEBOX_OPT_MAP, .flags = DUEBOX_OPT_FILE,
        .help = "further headers whose values are secrets, such as an API key; with _file: header names and files"),
    ROW(idempotency_key, DUEBOX_OPT_BOOL, .def = "false", .help = "send the message id as Idempotency-Key too"),
    ROW(callback, DUEBOX_OPT_STRING, .def = "reply_to", .flags = DUEBOX_OPT_TEMPLATE,
        .help = "what duebox-callback announces: reply_to (the route's callback URL), none, or a URL"),
    {.name = "retry_after_max",
     .type = DUEBOX_OPT_DURATION,
     .def = "24h",
     .min = 0,
     .max = INT64_C(366) * 86400000,
     .offset = offsetof(struct http_route, retry_after_max_ms),
     .help = "the longest Retry-After that is honoured; longer ones are cut to it"},
    ROW(done_on, DUEBOX_OPT_LIST, .help = "further statuses that mean done, such as 404 or 3xx"),
    ROW(later_on, DUEBOX_OPT_LIST, .help = "further statuses that mean: taken, the answer comes later"),
    ROW(retry_on, DUEBOX_OPT_LIST, .help = "further statuses that mean: try again, such as 409"),
    ROW(reject_on, DUEBOX_OPT_LIST, .help = "statuses after which a task is never tried again, such as 400, 404, 422"),
    {.name = NULL},
};
#undef ROW

__attribute__((format(printf, 2, 3))) static bool fail(struct duebox_error *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(err->text, sizeof(err->text), fmt, args);
  va_end(args);
  return false;
}

enum http_callback http_callback_of(const char *option) {
  static const char *const none[] = {"none", "no", "false", "off", NULL};
  static const char *const reply_to[] = {"reply_to", "yes", "true", "on", NULL};
  if (!option)
    return HTTP_CALLBACK_REPLY_TO;
  for (size_t i = 0; none[i]; i++)
    if (strcmp(option, none[i]) == 0)
      return HTTP_CALLBACK_NONE;
  for (size_t i = 0; reply_to[i]; i++)
    if (strcmp(option, reply_to[i]) == 0)
      return HTTP_CALLBACK_REPLY_TO;
  return HTTP_CALLBACK_URL;
}

/* Whoever reads the connection to a proxy learns its password. */
static bool check_proxy(const struct http_options *o, struct duebox_error *err) {
  const char *host = strstr(o->proxy, "://") + 3;
  size_t len = strcspn(host, "/");
  while (len > 0 && host[len - 1] >= '0' && host[len - 1] <= '9')
    len--;
  const struct duebox_link link = {.host = host,
                                   .host_len = len > 0 && host[len - 1] == ':' ? len - 1 : strcspn(host, "/"),
                                   .tls = strncasecmp(o->proxy, "https://", 8) == 0,
                                   .verified = true,
                                   .allow_plaintext = o->allow_plaintext};
  if (duebox_link_judge(&link) == DUEBOX_LINK_ALLOWED)
    return true;
  return fail(err, "proxy: its password would cross the network readable; use https://, or set allow_plaintext: true");
}

bool http_options_check(const void *options, struct duebox_error *err) {
  const struct http_options *o = options;
  struct http_network network;
  for (size_t i = 0; i < o->allow_networks.count; i++)
    if (!http_network_parse(o->allow_networks.items[i], &network))
      return fail(err, "allow_networks: \"%s\" is not a network; write 10.1.0.0/16 or fd00:1::/32, host bits zero",
                  o->allow_networks.items[i]);
  if (o->client_key && !o->client_cert)
    return fail(err, "client_key needs client_cert, the certificate that belongs to it");
  if (o->client_cert && !o->client_key)
    return fail(err, "client_cert needs client_key, its private key");
  if (o->proxy && strstr(o->proxy, "://") == NULL)
    return fail(err, "proxy: \"%s\" has no scheme; write http://host:port, https://host:port or socks5h://host:port",
                o->proxy);
  if (o->proxy && strchr(o->proxy, '@'))
    return fail(err,
                "proxy: a user does not belong into the URL, where it would be printed; use proxy_credentials_file");
  if (o->proxy_credentials && !o->proxy)
    return fail(err, "proxy_credentials without proxy: name the proxy or remove them");
  return !o->proxy_credentials || check_proxy(o, err);
}

/* A host given as an address can be judged before anything is sent; names are judged when they are connected to.
 * libcurl's parser turns 2130706433 or 0x7f.1 into the address that would be called. */
static bool check_literal(const struct http_options *o, const struct http_url *url, struct duebox_error *err) {
  char *origin = NULL, *host = NULL;
  struct http_address address;
  struct http_policy policy;
  bool ok = true;
  CURLU *parsed = curl_url();
  if (asprintf(&origin, "http%s://%.*s/", url->plain ? "" : "s", (int)url->authority_len, url->authority) < 0)
    origin = NULL;
  if (!origin || !parsed || !http_policy_make(o, &policy)) {
    ok = fail(err, "out of memory");
    goto done;
  }
  if (curl_url_set(parsed, CURLUPART_URL, origin, 0) != CURLUE_OK ||
      curl_url_get(parsed, CURLUPART_HOST, &host, 0) != CURLUE_OK)
    ok = fail(err, "url: \"%.*s\" is not a host that can be called", (int)url->authority_len, url->authority);
  else if (http_policy_literal(host, &address))
    ok = http_policy_allows(&policy, &address, url->plain, url->authority, url->authority_len, err->text,
                            sizeof(err->text));
  http_policy_free(&policy);
done:
  curl_free(host);
  curl_url_cleanup(parsed);
  free(origin);
  return ok;
}

/* The host of an authority, without its port. */
static const char *host_in(const struct http_url *url, size_t *len) {
  const char *end = url->authority + url->authority_len, *colon = end;
  while (colon > url->authority && colon[-1] >= '0' && colon[-1] <= '9')
    colon--;
  *len = (size_t)((colon > url->authority && colon[-1] == ':' ? colon - 1 : end) - url->authority);
  return url->authority;
}

static bool check_url(const struct http_options *o, const struct http_route *r, struct duebox_error *err) {
  struct http_url url;
  size_t host_len = 0;
  if (!http_url_split(r->url, &url))
    return fail(err, "url: it must begin with https:// (or http://) and name a host");
  if (memchr(url.authority, '{', url.authority_len) || memchr(url.authority, '}', url.authority_len))
    return fail(err, "url: a placeholder in the host would let a task choose where it is sent; name the host, and use "
                     "placeholders in the path or the query");
  if (memchr(url.authority, '@', url.authority_len))
    return fail(err, "url: a user or password does not belong into the URL; use authorization_file");
  if (http_url_has_dot_segment(&url))
    return fail(err, "url: it has a \".\" or \"..\" in its path; write the path it stands for");
  for (const char *p = r->url; *p; p++)
    if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\') /* some take a backslash for a slash, where a host ends */
      return fail(err, "url: blanks, backslashes and control characters must be percent-encoded");
  /* Through a proxy the request leaves for wherever the proxy sends it. */
  const struct duebox_link link = {.host = o->proxy ? "" : host_in(&url, &host_len),
                                   .host_len = o->proxy ? 0 : host_len,
                                   .tls = !url.plain,
                                   .verified = true,
                                   .allow_plaintext = o->allow_plaintext};
  if (duebox_link_judge(&link) != DUEBOX_LINK_ALLOWED)
    return fail(err,
                "url: http:// would send every request readable to another host; use https://, or set allow_plaintext "
                "on the plugin instance");
  return o->proxy || check_literal(o, &url, err);
}

/* Where a placeholder such as {task_key} begins; NULL = nowhere. Its length with both braces in *len. */
static const char *find_placeholder(const char *text, size_t *len) {
  for (const char *p = strchr(text, '{'); p; p = strchr(p + 1, '{')) {
    size_t name = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
    *len = name + 2;
    if (name > 0 && p[name + 1] == '}')
      return p;
  }
  return NULL;
}

static bool check_header_value(const char *option, const struct duebox_pair *h, struct duebox_error *err) {
  size_t len;
  const char *placeholder = find_placeholder(h->value, &len);
  if (!http_header_value_valid(h->value, strlen(h->value)))
    return fail(err, "%s: the value of %s holds a control character", option, h->key);
  if (placeholder)
    return fail(err,
                "%s: %s: %.*s would be sent as it stands, placeholders are for url and callback; let the "
                "application put it into the headers of its tasks",
                option, h->key, (int)len, placeholder);
  return true;
}

static bool check_header_map(const char *option, const struct duebox_map *headers, struct duebox_error *err) {
  for (size_t i = 0; i < headers->count; i++) {
    const struct duebox_pair *h = &headers->items[i];
    if (!http_header_name_valid(h->key))
      return fail(err, "%s: \"%s\" is not a header name (letters, digits and !#$%%&'*+-.^_`|~)", option, h->key);
    if (http_header_reserved(h->key))
      return fail(err, "%s: %s is set by duebox itself", option, h->key);
    if (strcasecmp(h->key, "content-type") == 0)
      return fail(err, "%s: use the option content_type for %s", option, h->key);
    if (strcasecmp(h->key, "authorization") == 0)
      return fail(err, "%s: use authorization_file for %s", option, h->key);
    if (!check_header_value(option, h, err))
      return false;
  }
  return true;
}

static bool check_headers(const struct http_route *r, struct duebox_error *err) {
  if (!check_header_map("headers", &r->headers, err) || !check_header_map("secret_headers", &r->secret_headers, err))
    return false;
  for (size_t i = 0; i < r->secret_headers.count; i++)
    for (size_t k = 0; k < r->headers.count; k++)
      if (strcasecmp(r->secret_headers.items[i].key, r->headers.items[k].key) == 0)
        return fail(err, "secret_headers: %s is under headers too; keep one of the two", r->headers.items[k].key);
  if (!r->content_type || !*r->content_type || !http_header_value_valid(r->content_type, strlen(r->content_type)))
    return fail(err, "content_type: must not be empty or hold a control character");
  if (r->authorization && !http_header_value_valid(r->authorization, strlen(r->authorization)))
    return fail(err, "authorization: holds a control character");
  if (http_callback_of(r->callback) == HTTP_CALLBACK_URL) {
    struct http_url url;
    if (!http_url_split(r->callback, &url) || !http_header_value_valid(r->callback, strlen(r->callback)))
      return fail(err, "callback: \"%s\" is neither reply_to, none, nor a URL", r->callback);
  }
  return true;
}

static bool check_statuses(const struct http_route *r, struct duebox_error *err) {
  const struct {
    const char *name;
    const struct duebox_list *list;
  } lists[] = {
      {"done_on", &r->done_on}, {"later_on", &r->later_on}, {"retry_on", &r->retry_on}, {"reject_on", &r->reject_on}};
  enum { LISTS = sizeof(lists) / sizeof(lists[0]) };
  for (size_t a = 0; a < LISTS; a++) {
    for (size_t i = 0; i < lists[a].list->count; i++) {
      const char *item = lists[a].list->items[i];
      if (!http_status_item_valid(item))
        return fail(err, "%s: \"%s\" is not a status; write a number from 200 to 599, or 2xx to 5xx", lists[a].name,
                    item);
      for (size_t b = a + 1; b < LISTS; b++)
        for (size_t k = 0; k < lists[b].list->count; k++)
          if (strcmp(item, lists[b].list->items[k]) == 0)
            return fail(err, "%s and %s both name %s; it can mean one thing only", lists[a].name, lists[b].name, item);
    }
  }
  return true;
}

bool http_route_check(const void *options, const void *route, struct duebox_error *err) {
  const struct http_route *r = route;
  const char *why;
  if (r->secret && !http_sign_check(r->secret, &why))
    return fail(err, "secret: %s", why);
  if (r->previous_secret && !http_sign_check(r->previous_secret, &why))
    return fail(err, "previous_secret: %s", why);
  if (r->previous_secret && !r->secret)
    return fail(err, "previous_secret without secret: the current key is missing");
  return check_url(options, r, err) && check_headers(r, err) && check_statuses(r, err);
}

bool http_is_relayed(const struct http_options *options, const char *url) {
  struct http_url proxy, endpoint;
  return options->proxy && http_url_split(options->proxy, &proxy) && http_url_split(url, &endpoint) && endpoint.plain;
}
