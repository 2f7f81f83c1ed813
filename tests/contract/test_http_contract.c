/* SPDX-License-Identifier: MIT
 *
 * The common suite of sinks against plugins/http, as the module that is shipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http_options.h"
#include "tests/contract/http_server.h"
#include "tests/support/fake_host.h"

struct fixture {
  struct http_server *server;
  struct http_options options;
  struct http_route route, missing;
  char url[64], missing_url[64];
};

static void *open_fixture(void) {
  struct fixture *f = calloc(1, sizeof(*f));
  assert_non_null(f);
  f->server = http_server_start();
  fake_options(http_option_rows, &f->options);
  f->options.allow_private = true;
  fake_options(http_route_rows, &f->route);
  fake_options(http_route_rows, &f->missing);
  snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d/hooks/{route}", http_server_port(f->server));
  snprintf(f->missing_url, sizeof(f->missing_url), "http://127.0.0.1:%d/missing", http_server_port(f->server));
  f->route.url = f->url;
  f->route.secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  f->missing.url = f->missing_url;
  return f;
}

static void close_fixture(void *fixture) {
  struct fixture *f = fixture;
  http_server_stop(f->server);
  free(f);
}

static const void *options(void *fixture) { return &((struct fixture *)fixture)->options; }
static const void *route(void *fixture) { return &((struct fixture *)fixture)->route; }
static const void *missing_route(void *fixture) { return &((struct fixture *)fixture)->missing; }
static void reachable(void *fixture, bool up) { http_server_set_reachable(((struct fixture *)fixture)->server, up); }
static void hold(void *fixture, bool held) { http_server_hold(((struct fixture *)fixture)->server, held); }
static const struct contract_message *received(void *fixture, size_t *count) {
  return http_server_received(((struct fixture *)fixture)->server, count);
}

int main(void) {
  const struct sink_contract contract = {
      .module = HTTP_MODULE,
      .max_payload = 1 << 20,
      .unavailable_ms = 5000,
      .connects_for_each_task = true,
      .open = open_fixture,
      .close = close_fixture,
      .options = options,
      .route = route,
      .missing_route = missing_route,
      .reachable = reachable,
      .hold = hold,
      .received = received,
  };
  return sink_contract_run("http_contract", &contract);
}
