/* SPDX-License-Identifier: MIT
 *
 * http_options.h - what can be configured: an instance (`plugins:`, module http) and a route that goes via it.
 *
 * Owns the option rows and the checks across options. Pure: no I/O, main thread.
 */
#ifndef PLUGINS_HTTP_OPTIONS_H
#define PLUGINS_HTTP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <duebox/plugin.h>

#define HTTP_PLUGIN_VERSION "0.1.0"

enum http_method { HTTP_POST = 0, HTTP_PUT, HTTP_PATCH };

struct http_options {
  bool allow_private;
  bool allow_plaintext;
  struct duebox_list allow_networks;
  int64_t connect_timeout_ms;
  int64_t keep_alive_ms;
  int64_t max_response; /* bytes of a response body */
  bool http2;
  const char *user_agent;
  const char *proxy;             /* NULL = none, whatever the environment says */
  const char *proxy_credentials; /* "user:password" */
  const char *ca_file;           /* NULL = the system's */
  const char *client_cert, *client_key, *client_key_password;
};

struct http_route {
  const char *url; /* template */
  int method;      /* enum http_method */
  const char *secret, *previous_secret;
  const char *authorization;
  const char *content_type;
  struct duebox_map headers, secret_headers;
  bool idempotency_key;
  const char *callback; /* template; see http_callback_of() */
  int64_t retry_after_max_ms;
  struct duebox_list done_on, later_on, retry_on, reject_on;
};

/* What `callback` says: no header, the task's own reply_to, or a URL of the operator's. */
enum http_callback { HTTP_CALLBACK_REPLY_TO = 0, HTTP_CALLBACK_NONE, HTTP_CALLBACK_URL };
enum http_callback http_callback_of(const char *option);

extern const struct duebox_option http_option_rows[];
extern const struct duebox_option http_route_rows[];

/* Whether a request for the URL is one that an HTTP proxy reads and answers. Behind a tunnel, and behind SOCKS, all
 * that comes is the endpoint's. */
bool http_is_relayed(const struct http_options *options, const char *url);

bool http_options_check(const void *options, struct duebox_error *err);
bool http_route_check(const void *options, const void *route, struct duebox_error *err);

#endif
