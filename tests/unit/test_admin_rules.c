/* SPDX-License-Identifier: MIT
 *
 * The admin listener's pure rules as tables: which path leads where, who may, what time a text means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admin/auth.h"
#include "admin/body.h"
#include "admin/exposition.h"

static void paths_lead_to_endpoints(void **state) {
  static const struct {
    const char *method, *path, *pattern, *params[3];
  } rows[] = {
      {"GET", "/", "/", {0}},
      {"HEAD", "/healthz", "/healthz", {0}},
      {"POST", "/api/v1/tasks/17/cancel", "/api/v1/tasks/{id}/cancel", {"17"}},
      {"POST", "/api/v1/routes/a%2Fb%20c/pause", "/api/v1/routes/{name}/pause", {"a/b c"}},
      {"POST", "/api/v1/routes/%E2%82%AC/resume", "/api/v1/routes/{name}/resume", {"\xe2\x82\xac"}},
      {"POST", "/api/v1/routes/../resume", "/api/v1/routes/{name}/resume", {".."}},
      {"POST", "/callback/m-1/2/t0k", "/callback/{message_id}/{attempt}/{token}", {"m-1", "2", "t0k"}},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct request request = {0};
    const char *allow = NULL;
    if (router_find(rows[i].method, rows[i].path, &request, &allow) != MATCH_FOUND)
      fail_msg("%s %s was not found", rows[i].method, rows[i].path);
    assert_string_equal(request.endpoint->path, rows[i].pattern);
    for (size_t p = 0; p < 3 && rows[i].params[p]; p++)
      assert_string_equal(request.params[p], rows[i].params[p]);
  }
}

static void other_paths_lead_nowhere(void **state) {
  static const char *const paths[] = {
      "",
      "healthz",
      "//",
      "/healthz/",
      "/healthz%00",
      "/HEALTHZ",
      "/api/v1/tasks//cancel",
      "/api/v1/tasks/%/cancel",
      "/api/v1/tasks/%2/cancel",
      "/api/v1/tasks/%zz/cancel",
      "/api/v1/tasks/a%00b/cancel",
      "/api/v1/tasks/a%0ab/cancel",
      "/api/v1/tasks/1/cancel/",
      "/api/v1/tasks/1%2Fcancel",
      "/callback/a/b",
      "/callback/a/b/c/d",
      "*",
  };
  struct request request;
  const char *allow;
  for (size_t i = 0; i < ARRAY_LEN(paths); i++)
    if (router_find("POST", paths[i], &request, &allow) != MATCH_NO_PATH)
      fail_msg("%s leads somewhere", paths[i]);
  char path[600] = "/api/v1/tasks/";
  memset(path + strlen(path), 'a', 300);
  strcat(path, "/cancel");
  assert_int_equal(router_find("POST", path, &request, &allow), MATCH_NO_PATH);
}

static void wrong_methods_learn_the_right_one(void **state) {
  struct request request;
  const char *allow = NULL;
  assert_int_equal(router_find("GET", "/api/v1/reload", &request, &allow), MATCH_NO_METHOD);
  assert_string_equal(allow, "POST");
  assert_int_equal(router_find("DELETE", "/metrics", &request, &allow), MATCH_NO_METHOD);
  assert_string_equal(allow, "GET, HEAD");
  assert_int_equal(router_find("get", "/metrics", &request, &allow), MATCH_NO_METHOD);
}

#define TOKEN "a-token-of-sufficient-length"
#define RIGHT "Bearer " TOKEN
#define WRONG "Bearer another-token-of-that-size"
#define JSON "application/json"

/* One row of the matrix: who asks for what, and the status that says yes (0) or why not. */
struct asking {
  const char *what;
  bool token; /* one is configured */
  enum role role;
  struct caller caller;
  unsigned status;
};

static const struct asking askings[] = {
    {"open to all", true, ROLE_OPEN, {.host = "127.0.0.1:8321"}, 0},
    {"open, strange host", true, ROLE_OPEN, {.loopback = true, .host = "evil.example"}, 403},
    /* A proxy on this machine makes every caller local, and need not say so. */
    {"read, local", true, ROLE_READ, {.loopback = true, .host = "localhost:8321"}, 401},
    {"read, local with token", true, ROLE_READ, {.loopback = true, .authorization = RIGHT}, 0},
    {"read, local, no token set, by name", false, ROLE_READ, {.loopback = true, .host = "localhost:8321"}, 0},
    {"read, local, no token set", false, ROLE_READ, {.loopback = true, .host = "[::1]:8321"}, 0},
    {"read, local, useless token shown",
     false,
     ROLE_READ,
     {.loopback = true, .host = "[::1]", .authorization = WRONG},
     0},
    {"read, remote", true, ROLE_READ, {.host = "10.0.0.1:8321"}, 401},
    {"read, remote, no token set", false, ROLE_READ, {.host = "10.0.0.1:8321"}, 403},
    {"read, remote with token", true, ROLE_READ, {.host = "10.0.0.1", .authorization = RIGHT}, 0},
    {"read, remote, scheme in capitals", true, ROLE_READ, {.host = "10.0.0.1", .authorization = "BEARER " TOKEN}, 0},
    {"read, local with wrong token", true, ROLE_READ, {.loopback = true, .authorization = WRONG}, 401},
    {"read, local but forwarded", true, ROLE_READ, {.loopback = true, .forwarded = true, .host = "localhost"}, 401},
    {"records, local, no token set", false, ROLE_RECORDS, {.loopback = true}, 403},
    {"records, local, nothing shown", true, ROLE_RECORDS, {.loopback = true}, 401},
    {"records, wrong token", true, ROLE_RECORDS, {.loopback = true, .authorization = WRONG}, 401},
    {"records, remote with token", true, ROLE_RECORDS, {.host = "10.0.0.1", .authorization = RIGHT}, 0},
    {"read, forwarded, no token set", false, ROLE_READ, {.loopback = true, .forwarded = true}, 403},
    {"read, forwarded with token", true, ROLE_READ, {.loopback = true, .forwarded = true, .authorization = RIGHT}, 0},
    {"read, rebound name", false, ROLE_READ, {.loopback = true, .host = "evil.example:8321"}, 403},
    {"read, name that ends like ours", false, ROLE_READ, {.loopback = true, .host = "xlocalhost"}, 403},
    {"read, name that begins like ours", false, ROLE_READ, {.loopback = true, .host = "localhost.evil.example"}, 403},
    {"read, brackets and more", false, ROLE_READ, {.loopback = true, .host = "[::1].evil.example"}, 403},
    {"read, name of admin.url", false, ROLE_READ, {.loopback = true, .host = "Outbox.Example:8321"}, 0},
    {"read, name of admin.listen", false, ROLE_READ, {.loopback = true, .host = "db7.lan:1"}, 0},
    {"read, no host (HTTP/1.0)", false, ROLE_READ, {.loopback = true}, 0},
    {"read, empty host", false, ROLE_READ, {.loopback = true, .host = ""}, 403},
    {"command, no token set",
     false,
     ROLE_OPERATE,
     {.loopback = true, .authorization = RIGHT, .content_type = JSON},
     403},
    {"command, local, nothing shown", true, ROLE_OPERATE, {.loopback = true, .content_type = JSON}, 401},
    {"command, wrong token", true, ROLE_OPERATE, {.authorization = WRONG, .content_type = JSON}, 401},
    {"command, longer token", true, ROLE_OPERATE, {.authorization = RIGHT "x", .content_type = JSON}, 401},
    {"command, shorter token", true, ROLE_OPERATE, {.authorization = "Bearer a", .content_type = JSON}, 401},
    {"command, empty token", true, ROLE_OPERATE, {.authorization = "Bearer ", .content_type = JSON}, 401},
    {"command, other scheme", true, ROLE_OPERATE, {.authorization = "Basic " TOKEN, .content_type = JSON}, 401},
    {"command", true, ROLE_OPERATE, {.authorization = RIGHT, .content_type = JSON}, 0},
    {"command, charset", true, ROLE_OPERATE, {.authorization = RIGHT, .content_type = JSON "; charset=utf-8"}, 0},
    {"command, no type", true, ROLE_OPERATE, {.authorization = RIGHT}, 415},
    {"command, no type and no body", true, ROLE_OPERATE, {.authorization = RIGHT, .bodiless = true}, 0},
    {"command, form without a body",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = "text/plain", .bodiless = true},
     415},
    {"command, no body, nothing shown", true, ROLE_OPERATE, {.bodiless = true}, 401},
    {"command, no body, other origin",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .bodiless = true, .origin = "http://evil.example"},
     403},
    {"command, form", true, ROLE_OPERATE, {.authorization = RIGHT, .content_type = "text/plain"}, 415},
    {"command, longer type", true, ROLE_OPERATE, {.authorization = RIGHT, .content_type = JSON "p"}, 415},
    {"command, own page",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT,
      .content_type = JSON,
      .host = "127.0.0.1:8321",
      .origin = "http://127.0.0.1:8321",
      .fetch_site = "same-origin"},
     0},
    {"command, page behind a proxy",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1:8321", .origin = "https://outbox.example"},
     0},
    {"command, page behind a proxy, with the port",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1:8321", .origin = "https://Outbox.Example:443"},
     0},
    {"command, another program behind the same name",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1:8321", .origin = "https://outbox.example:9999"},
     403},
    {"command, the same name without encryption",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1:8321", .origin = "http://outbox.example"},
     403},
    {"command, a port that is none",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1:8321", .origin = "https://outbox.example:65979"},
     403},
    {"command, other port",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1:8321", .origin = "http://127.0.0.1:9999"},
     403},
    {"command, other origin",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1", .origin = "http://evil.example"},
     403},
    {"command, null origin",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1", .origin = "null"},
     403},
    {"command, cross-site",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1", .fetch_site = "cross-site"},
     403},
    {"command, same-site",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1", .fetch_site = "same-site"},
     403},
    {"command, typed in",
     true,
     ROLE_OPERATE,
     {.authorization = RIGHT, .content_type = JSON, .host = "127.0.0.1", .fetch_site = "none"},
     0},
    {"callback from anywhere", true, ROLE_CALLBACK, {.host = "some.name.of.ours"}, 0},
};

static void auth_matrix(void **state) {
  struct admin_config config = {.host = "db7.lan", .url = "https://outbox.example/"};
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(askings); i++) {
    const struct asking *ask = &askings[i];
    struct auth auth;
    struct response response = {0};
    config.token = ask->token ? TOKEN : NULL;
    assert_true(auth_init(&auth, &config, &err));
    bool allowed = auth_allows(&auth, &ask->caller, ask->role, &response);
    if (allowed != (ask->status == 0) || response.status != ask->status)
      fail_msg("%s: %u instead of %u", ask->what, response.status, ask->status);
    /* Only a secret that was shown and is wrong makes the answer late. */
    bool guess = ask->status == 401 && ask->caller.authorization != NULL;
    if (response.suspicious != guess)
      fail_msg("%s: %s", ask->what, guess ? "answered at once" : "answered late");
    response_clear(&response);
  }
}

static void settings_are_judged(void **state) {
  static const struct {
    struct admin_config config;
    const char *trouble; /* NULL = fine */
  } rows[] = {
      {{.host = "127.0.0.1"}, NULL},
      {{.host = "::1"}, NULL},
      {{.host = "127.8.8.8"}, NULL},
      {{.host = "0.0.0.0"}, "admin.token_file"},
      {{.host = "::"}, "admin.token_file"},
      {{.host = "0.0.0.0", .token = TOKEN}, NULL},
      {{.host = "127.0.0.1", .token = "short"}, "openssl rand"},
      {{.host = "127.0.0.1", .token = ""}, "openssl rand"},
      {{.host = "127.0.0.1", .url = "outbox.example"}, "admin.url"},
      {{.host = "127.0.0.1", .url = "http://"}, "admin.url"},
      {{.host = "127.0.0.1", .url = "https://outbox.example/duebox/"}, NULL},
      {{.host = "no such host"}, "admin.listen"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct err err = {0};
    bool fine = admin_check(&rows[i].config, &err);
    if (fine != (rows[i].trouble == NULL) || (!fine && !strstr(err.text, rows[i].trouble)))
      fail_msg("row %zu: %s", i, err.text);
  }
}

static void times_are_rfc3339(void **state) {
  static const struct {
    const char *text;
    int64_t us; /* -1 = refused */
  } rows[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2030-01-31T12:00:00Z", 1896091200000000},
      {"2030-01-31T12:00:00.5Z", 1896091200500000},
      {"2030-01-31t12:00:00.123456789z", 1896091200123456},
      {"2030-01-31 14:30:00+02:30", 1896091200000000},
      {"2030-01-31T11:00:00-01:00", 1896091200000000},
      {"2028-02-29T00:00:00Z", 1835395200000000},
      {"2030-02-29T00:00:00Z", -1},
      {"2030-02-30T00:00:00Z", -1},
      {"2030-13-01T00:00:00Z", -1},
      {"2030-01-31T24:00:00Z", -1},
      {"2030-01-31T12:00:00", -1},
      {"2030-01-31T12:00:00+25:00", -1},
      {"2030-01-31T12:00:00+0200", -1},
      {"2030-01-31T12:00:00.Z", -1},
      {"2030-01-31T12:00:00Z ", -1},
      {"2030-01-31T12:00Z", -1},
      {"1969-12-31T23:59:59Z", -1},
      {"1970-01-01T00:00:00+01:00", -1},
      {"30-01-31T12:00:00Z", -1},
      {"tomorrow", -1},
      {"", -1},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    int64_t us = -1;
    bool fine = body_parse_time(rows[i].text, &us);
    if (fine != (rows[i].us >= 0) || (fine && us != rows[i].us))
      fail_msg("%s: %lld", rows[i].text, fine ? (long long)us : -1);
  }
}

static void accept_headers_choose_the_format(void **state) {
  static const struct {
    const char *accept;
    bool open_metrics;
  } rows[] = {
      {"", false},
      {"*/*", false},
      {"text/plain", false},
      {"application/openmetrics-text", true},
      {"application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", true},
      {"text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5", false},
      {"application/openmetrics-text;q=0", false},
      {"application/openmetrics-text;q=0.001", true},
      {"text/html, application/openmetrics-text", true},
      {",,;q=1", false},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    if (exposition_prefers_open_metrics(rows[i].accept) != rows[i].open_metrics)
      fail_msg("Accept: %s", rows[i].accept);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(paths_lead_to_endpoints),
      cmocka_unit_test(other_paths_lead_nowhere),
      cmocka_unit_test(wrong_methods_learn_the_right_one),
      cmocka_unit_test(auth_matrix),
      cmocka_unit_test(settings_are_judged),
      cmocka_unit_test(times_are_rfc3339),
      cmocka_unit_test(accept_headers_choose_the_format),
  };
  return cmocka_run_group_tests_name("admin rules", tests, NULL, NULL);
}
