/* SPDX-License-Identifier: MIT */
#include "tests/contract/http_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

extern const struct duebox_plugin duebox_plugin_v1;

struct http_options http_case_options(void) {
  struct http_options options = {0};
  fake_options(http_option_rows, &options);
  options.allow_private = true;
  return options;
}

struct http_route http_case_route(const char *scheme, const char *host, int port, const char *path,
                                  char url[HTTP_CASE_URL]) {
  struct http_route route = {0};
  fake_options(http_route_rows, &route);
  snprintf(url, HTTP_CASE_URL, "%s://%s:%d%s", scheme, host, port, path);
  route.url = url;
  return route;
}

struct fake_host *http_case_open(const struct http_options *options) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1, .role = DUEBOX_ROLE_SINK, .options = options, .max_inflight = 4});
}

struct fake_outcome http_case_send(struct fake_host *host, const struct http_route *route, uint32_t timeout_ms) {
  static const char payload[] = "{\"order\":17}";
  static int sent;
  char id[32];
  snprintf(id, sizeof(id), "case-%d", sent++);
  size_t index = fake_host_add(host, &(struct fake_task){.message_id = id,
                                                         .timeout_ms = timeout_ms ? timeout_ms : HTTP_CASE_TIMEOUT_MS,
                                                         .payload = {payload, sizeof(payload) - 1},
                                                         .route_data = route,
                                                         .result_awaited = true});
  if (!fake_host_settle(host, HTTP_CASE_LIMIT_MS))
    fail_msg("waited %d ms for the outcome of %s", HTTP_CASE_LIMIT_MS, route->url);
  return fake_host_outcome(host, index);
}
