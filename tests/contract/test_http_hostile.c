/* SPDX-License-Identifier: MIT
 *
 * plugins/http against a server that misbehaves in every way HTTP and TLS allow: the exact class of each, how often the
 * request arrived, and that the next request on the same instance is not harmed.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/contract/hostile_server.h"
#include "tests/contract/http_case.h"

enum { SHORT_MS = 1500 }; /* a time-out that must come, after the request has left on a busy machine too */

static struct hostile_server *server;

struct expectation {
  const char *path;
  enum duebox_outcome_class cls;
  enum duebox_answer answer;
  const char *error_class; /* NULL = none */
  const char *text;        /* part of the message; NULL = any */
  uint32_t timeout_ms;     /* 0 = HTTP_CASE_TIMEOUT_MS */
};

#define DONE .cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_DONE
#define UNREAD DONE, "http.answer_unread"
#define LATER .cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_LATER
#define RETRY .cls = DUEBOX_RETRY, .answer = DUEBOX_ANSWER_NONE
#define UNKNOWN .cls = DUEBOX_UNKNOWN, .answer = DUEBOX_ANSWER_NONE
#define GONE .cls = DUEBOX_GONE, .answer = DUEBOX_ANSWER_NONE

static const struct expectation behaviours[] = {
    /* ordinary */
    {"/ok", DONE},
    {"/json", DONE},
    {"/jsend", DONE},
    {"/record-done", DONE},
    {"/record-retry", DONE},
    {"/record-202", LATER},
    {"/record-as-html", DONE},
    {"/record-500", RETRY, "http.500", "\"status\":\"done\""},
    {"/record-too-long", DONE},
    {"/record-too-long-done", DONE},
    {"/close-after", DONE},
    {"/http10", DONE},
    {"/no-reason", DONE},
    {"/bare-newlines", DONE},
    {"/folded", DONE},
    {"/error-text", RETRY, "http.500", ": first [31m line second ? line caf\xc3\xa9"},
    /* statuses: none but 2xx, 409 and 425 is taken for success, nothing is followed */
    {"/status-201", DONE},
    {"/status-202", LATER},
    {"/status-203", DONE},
    {"/status-204", DONE},
    {"/status-301", RETRY, "http.redirect", "HTTP 301 from 127.0.0.1:"},
    {"/status-302", RETRY, "http.redirect"},
    {"/status-307", RETRY, "http.redirect"},
    {"/status-308", RETRY, "http.redirect"},
    {"/file-redirect", RETRY, "http.redirect"},
    {"/status-400", RETRY, "http.400"},
    {"/status-401", RETRY, "http.401"},
    {"/auth", RETRY, "http.401"},
    {"/status-403", RETRY, "http.403"},
    {"/status-404", RETRY, "http.404"},
    {"/status-408", RETRY, "http.408"},
    {"/status-409", LATER},
    {"/status-410", GONE, "http.410"},
    {"/status-413", RETRY, "http.413"},
    {"/status-418", RETRY, "http.418"},
    {"/status-422", RETRY, "http.422"},
    {"/status-425", LATER},
    {"/status-429", RETRY, "http.429"},
    {"/status-500", RETRY, "http.500"},
    {"/status-502", RETRY, "http.502"},
    {"/status-503", RETRY, "http.503"},
    {"/status-504", RETRY, "http.504"},
    {"/status-599", RETRY, "http.599"},
    {"/cookie", DONE},
    {"/upgrade", DONE},
    /* interim responses */
    {"/continue", DONE},
    {"/early-hints", DONE},
    {"/switching", UNKNOWN, "http.protocol"},
    {"/interim-flood", UNKNOWN, "http.header_flood"},
    /* slow, endless, enormous */
    {"/never", UNKNOWN, "http.timeout", "may have been received", SHORT_MS},
    {"/slow-headers", UNKNOWN, "http.timeout", NULL, SHORT_MS},
    {"/slow-body", UNKNOWN, "http.timeout", NULL, SHORT_MS},
    {"/slow-but-in-time", DONE},
    {"/endless-body", DONE},
    {"/endless-chunks", DONE},
    {"/endless-error", RETRY, "http.500", "bbbbbbbbbb"},
    {"/huge-body", DONE},
    {"/header-flood", UNKNOWN, "http.header_flood"},
    {"/header-line", UNKNOWN, "http.header_flood"},
    {"/trailer-flood", UNKNOWN, "http.header_flood"},
    /* cut off */
    {"/close", UNKNOWN, "http.no_response"},
    {"/reset", UNKNOWN, "http.no_response"},
    {"/close-in-status", UNKNOWN, "http.no_response"},
    {"/close-in-headers", UNKNOWN, "http.partial"},
    {"/reset-in-headers", UNKNOWN, "http.reset"},
    {"/close-in-body", UNKNOWN, "http.partial"},
    {"/reset-in-body", UNKNOWN, "http.reset"},
    {"/close-in-chunk", UNKNOWN, "http.partial"},
    {"/close-before-last-chunk", UNKNOWN, "http.partial"},
    {"/reset-after-500", UNKNOWN, "http.reset"},
    /* not HTTP */
    {"/garbage", UNKNOWN, "http.protocol"},
    {"/http09", UNKNOWN, "http.protocol"},
    {"/nul", UNKNOWN, "http.protocol"},
    {"/ssh", UNKNOWN, "http.protocol"},
    {"/version-9", UNKNOWN, "http.protocol"},
    {"/status-999", UNKNOWN, "http.protocol"},
    {"/status-letters", UNKNOWN, "http.protocol"},
    {"/negative-length", UNKNOWN, "http.protocol"},
    {"/letters-length", UNKNOWN, "http.protocol"},
    {"/overflow-length", UNKNOWN, "http.protocol"},
    {"/chunk-not-hex", UNKNOWN, "http.reset"},
    {"/chunk-overflow", UNKNOWN, "http.reset"},
    {"/chunk-negative", UNKNOWN, "http.reset"},
    /* more or other than announced: the following /ok must not read the rest */
    {"/short-length", DONE},
    {"/body-with-204", DONE},
    {"/two-answers", DONE},
    {"/length-and-chunked", DONE},
    {"/length-twice", DONE},
    {"/lengths-differ", UNKNOWN, "http.protocol", "Content-Length"},
    {"/lengths-differ-last", UNKNOWN, "http.protocol", "Content-Length"},
    {"/length-list", UNKNOWN, "http.protocol", "Content-Length"},
    {"/length-plus", UNKNOWN, "http.protocol", "Content-Length"},
    {"/bare-newline-chunks", DONE},
    {"/nul-behind-chunked", UNKNOWN, "http.protocol"},
    {"/nul-behind-length", UNKNOWN, "http.protocol"},
    {"/nul-in-name", UNKNOWN, "http.protocol"},
    {"/gzip-bomb", UNREAD, "Content-Encoding"},
    {"/gzip-transfer", UNREAD, "Transfer-Encoding"},
    {"/nested-transfer", UNREAD, "Transfer-Encoding"},
    {"/nested-transfer-500", RETRY, "http.500"},
    /* a status may be in what was not read: the HTTP status counts, and that nobody knows is said */
    {"/gzip-record", UNREAD, "Content-Encoding"},
    {"/gzip-empty", DONE},
    {"/gzip-202", LATER, "http.answer_unread", "Content-Encoding"},
    {"/gzip-503", RETRY, "http.503"},
    {"/odd-coding", DONE},
    {"/utf16-record", DONE},
    {"/late-status", DONE},
    {"/late-status-202", LATER},
    {"/long-object", DONE},
    {"/longer-object", UNREAD, "max_response"},
    {"/close-in-object", UNREAD, "max_response"},
    {"/early-answer", RETRY, "http.413", "too large"},
};

/* ---- running the table ---- */

/* Has the server spoil the idle connection of that request, and drives the instance meanwhile. */
static void spoil(struct fake_host *host, const char *id) {
  char spoilt[128];
  snprintf(spoilt, sizeof(spoilt), "%s:spoilt", id);
  hostile_server_go_on(server);
  for (int64_t end = fake_host_now_ms() + HTTP_CASE_LIMIT_MS; hostile_server_copies(server, spoilt) == 0;
       fake_host_poll(host, 10))
    if (fake_host_now_ms() >= end)
      fail_msg("waited %d ms for the server to spoil an idle connection", HTTP_CASE_LIMIT_MS);
}

/* How often the server has read this request; one that timed out may be read only later. */
static size_t copies_of(const char *id) {
  for (int64_t end = fake_host_now_ms() + HTTP_CASE_LIMIT_MS;
       hostile_server_copies(server, id) == 0 && fake_host_now_ms() < end;)
    usleep(5000);
  return hostile_server_copies(server, id);
}

static bool differs(const char *a, const char *b) { return (a ? strcmp(a, b ? b : "") : b && *b) != 0; }

/* Prints what is wrong; the table is run to its end. */
static bool matches(const struct expectation *e, const struct fake_outcome *o) {
  if (o->cls == e->cls && o->answer == e->answer && !differs(e->error_class, o->error_class) &&
      (!e->text || strstr(o->message, e->text)))
    return true;
  print_error("%s: class %d, answer %d, \"%s\": %s\n", e->path, (int)o->cls, (int)o->answer, o->error_class,
              o->message);
  return false;
}

static bool run(struct fake_host *host, const char *scheme, int port, const struct expectation *e) {
  char url[HTTP_CASE_URL];
  struct http_route route = http_case_route(scheme, "127.0.0.1", port, e->path, url);
  struct fake_outcome outcome = http_case_send(host, &route, e->timeout_ms);
  bool fine = matches(e, &outcome);
  size_t copies = copies_of(outcome.message_id);
  if (copies != 1)
    print_error("%s: the request arrived %zu times\n", e->path, copies);
  return fine && copies == 1;
}

static size_t open_files(void) {
  size_t count = 0;
  DIR *dir = opendir("/proc/self/fd");
  assert_non_null(dir);
  while (readdir(dir))
    count++;
  closedir(dir);
  return count;
}

static void run_all(const char *scheme, const char *listener, const struct http_options *o) {
  static const struct expectation next = {"/ok", DONE};
  int port = hostile_server_port(server, listener);
  size_t before = open_files();
  struct fake_host *host = http_case_open(o);
  size_t bad = 0;
  for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
    bad += !run(host, scheme, port, &behaviours[i]);
    if (!run(host, scheme, port, &next)) {
      print_error("... the request after %s was harmed\n", behaviours[i].path);
      bad++;
    }
  }
  fake_host_free(host);
  assert_int_equal(bad, 0);
  assert_int_equal(open_files(), before);
}

static void every_behaviour_has_its_class(void **state) {
  struct http_options o = http_case_options();
  run_all("http", "plain", &o);
}

static void every_behaviour_has_its_class_over_tls(void **state) {
  struct http_options o = http_case_options();
  char *ca = strdup(hostile_server_file(server, "ca.pem"));
  o.ca_file = ca;
  run_all("https", "good", &o);
  free(ca);
}

/* ---- what the bodies and headers say ---- */

static void records_are_handed_over_whole(void **state) {
  static const struct {
    const char *path, *record;
  } rows[] = {{"/record-done", "{\"id\":\"x\",\"attempt\":1,\"status\":\"done\",\"result\":{\"a\":1}}"},
              {"/record-retry", "{\"id\":\"x\",\"attempt\":1,\"status\":\"retry\"}"},
              {"/record-202", "{\"status\":\"progress\",\"progress\":0.4}"},
              {"/record-as-html", "{\"status\":\"retry\"}"},
              {"/odd-coding", "{\"status\":\"fail\"}"},
              {"/utf16-record", "{\"status\":\"fail\","},
              {"/late-status", "{\"status\":\"fail\",\"pad\":\"xx"},
              {"/late-status-202", "{\"status\":\"fail\",\"pad\":\"xx"}};
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char url[HTTP_CASE_URL];
    struct http_route route =
        http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), rows[i].path, url);
    struct fake_outcome outcome = http_case_send(host, &route, 0);
    assert_non_null(outcome.record);
    if (strchr(rows[i].record, '}'))
      assert_string_equal(outcome.record, rows[i].record);
    else
      assert_memory_equal(outcome.record, rows[i].record, strlen(rows[i].record));
  }
  fake_host_free(host);
}

static void retry_after_is_read(void **state) {
  static const struct {
    const char *path;
    int64_t max_ms, least, most;
  } rows[] = {
      {"/retry-after-7", 86400000, 7000, 7000},
      {"/retry-after-7", 5000, 5000, 5000},
      {"/retry-after-7", 0, -1, -1},
      {"/retry-after-429", 86400000, 120000, 120000},
      {"/retry-after-date", 86400000, 95000, 100000},
      {"/retry-after-date", 60000, 60000, 60000},
      {"/retry-after-huge", 86400000, 86400000, 86400000},
      {"/retry-after-overflow", 86400000, 86400000, 86400000},
      {"/retry-after-negative", 86400000, -1, -1},
      {"/retry-after-nonsense", 86400000, -1, -1},
      {"/retry-after-past", 86400000, -1, -1},
      {"/status-503", 86400000, -1, -1},
  };
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char url[HTTP_CASE_URL];
    struct http_route route =
        http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), rows[i].path, url);
    route.retry_after_max_ms = rows[i].max_ms;
    struct fake_outcome outcome = http_case_send(host, &route, 0);
    assert_int_equal(outcome.cls, DUEBOX_RETRY);
    if (outcome.retry_after_ms < rows[i].least || outcome.retry_after_ms > rows[i].most)
      fail_msg("%s, at most %lld ms: %lld ms", rows[i].path, (long long)rows[i].max_ms,
               (long long)outcome.retry_after_ms);
  }
  fake_host_free(host);
}

static void the_request_is_what_was_ordered(void **state) {
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  char url[HTTP_CASE_URL];
  struct http_route route =
      http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), "/echo-headers?a=b", url);
  const char *only[] = {"200"};
  route.retry_on = (struct duebox_list){only, 1}; /* so that the echo comes back as the error text */
  route.method = HTTP_PATCH;
  struct fake_outcome outcome = http_case_send(host, &route, 0);
  assert_non_null(strstr(outcome.message, "PATCH /echo-headers?a=b HTTP/1.1"));
  assert_non_null(strstr(outcome.message, "User-Agent: duebox/"));
  assert_non_null(strstr(outcome.message, "Content-Type: application/json"));
  assert_non_null(strstr(outcome.message, "Content-Length: 12"));
  assert_non_null(strstr(outcome.message, "Accept-Encoding: identity"));
  assert_null(strstr(outcome.message, "Expect"));
  route.method = HTTP_POST; /* the same handle forgets the method before */
  outcome = http_case_send(host, &route, 0);
  assert_non_null(strstr(outcome.message, "POST /echo-headers?a=b HTTP/1.1"));
  fake_host_free(host);
}

static void cookies_are_not_kept(void **state) {
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  char url[HTTP_CASE_URL], echo[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain");
  const char *only[] = {"200"};
  struct http_route route = http_case_route("http", "127.0.0.1", port, "/cookie", url);
  http_case_send(host, &route, 0);
  route = http_case_route("http", "127.0.0.1", port, "/echo-headers", echo);
  route.retry_on = (struct duebox_list){only, 1};
  assert_null(strstr(http_case_send(host, &route, 0).message, "ookie"));
  fake_host_free(host);
}

/* A header line that goes on with the one before, where there is none before: libcurl 7.88 took the last one of the
 * handle's former response for that, which was freed, and the daemon died (P8). Whatever becomes of the task, the next
 * one is not harmed. */
static void a_folded_first_line_harms_nobody(void **state) {
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  char good_url[HTTP_CASE_URL], bad_url[HTTP_CASE_URL];
  int port = hostile_server_port(server, "plain");
  struct http_route good = http_case_route("http", "127.0.0.1", port, "/folded", good_url);
  struct http_route bad = http_case_route("http", "127.0.0.1", port, "/folded-first", bad_url);
  for (int i = 0; i < 8; i++) { /* more often than the instance has transfers */
    assert_int_equal(http_case_send(host, &good, 0).cls, DUEBOX_DELIVERED);
    struct fake_outcome outcome = http_case_send(host, &bad, 0);
    if (outcome.cls != DUEBOX_DELIVERED)
      assert_string_equal(outcome.error_class, "http.protocol");
  }
  fake_host_free(host);
}

/* ---- kept connections ---- */

/* The server reads the second request of a connection and drops it: libcurl would send it again by itself. */
static void nothing_is_sent_twice(void **state) {
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  char url[HTTP_CASE_URL];
  struct http_route route =
      http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), "/read-then-close-if-kept", url);
  struct fake_outcome outcome = http_case_send(host, &route, 0);
  assert_int_equal(outcome.cls, DUEBOX_DELIVERED);
  outcome = http_case_send(host, &route, 0);
  assert_int_equal(hostile_server_copies(server, outcome.message_id), 1);
  assert_int_equal(outcome.cls, DUEBOX_UNKNOWN);
  assert_string_equal(outcome.error_class, "http.no_response");
  outcome = http_case_send(host, &route, 0); /* a new connection */
  assert_int_equal(outcome.cls, DUEBOX_DELIVERED);
  fake_host_free(host);
}

/* Closed, or filled with something nobody asked for, while it lay idle: not a failure, and never a wrong answer. */
static void stale_connections_are_left_alone(void **state) {
  static const char *const paths[] = {"/close-when-idle", "/late-second-answer"};
  static const char *const schemes[] = {"http", "https"};
  static const char *const listeners[] = {"plain", "good"};
  char *ca = strdup(hostile_server_file(server, "ca.pem"));
  struct http_options o = http_case_options();
  o.ca_file = ca;
  struct fake_host *host = http_case_open(&o);
  size_t before = open_files();
  for (size_t s = 0; s < 2; s++)
    for (size_t p = 0; p < 2; p++)
      for (int round = 0; round < 3; round++) {
        char url[HTTP_CASE_URL];
        int port = hostile_server_port(server, listeners[s]);
        struct http_route route = http_case_route(schemes[s], "127.0.0.1", port, paths[p], url);
        struct fake_outcome outcome = http_case_send(host, &route, 0);
        if (outcome.cls != DUEBOX_DELIVERED || outcome.answer != DUEBOX_ANSWER_DONE)
          fail_msg("%s, round %d: class %d, %s", url, round, (int)outcome.cls, outcome.message);
        assert_int_equal(hostile_server_copies(server, outcome.message_id), 1);
        spoil(host, outcome.message_id);
      }
  assert_true(open_files() <= before + 2); /* a stale connection is closed: one is left for each listener */
  fake_host_free(host);
  free(ca);
}

/* An answer too many is found on an idle connection by chance: the next one could come behind the next request, and be
 * taken for its answer. So there are no idle connections to that endpoint any more. One that merely closes keeps them.
 */
static void who_wrote_unasked_keeps_no_connection(void **state) {
  static const struct {
    const char *scheme, *listener, *path;
    bool kept;
  } rows[] = {{"http", "plain", "/late-second-answer", false},
              {"https", "good", "/late-second-answer", false},
              {"http", "plain", "/close-when-idle", true},
              {"https", "good", "/close-when-idle", true}};
  char *ca = strdup(hostile_server_file(server, "ca.pem"));
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (int http2 = 0; http2 < 2; http2++) { /* offered, and the server does not speak it */
      struct http_options o = http_case_options();
      o.ca_file = ca;
      o.http2 = http2;
      struct fake_host *host = http_case_open(&o);
      char url[HTTP_CASE_URL], next_url[HTTP_CASE_URL];
      int port = hostile_server_port(server, rows[i].listener);
      struct http_route route = http_case_route(rows[i].scheme, "127.0.0.1", port, rows[i].path, url);
      struct http_route next = http_case_route(rows[i].scheme, "127.0.0.1", port, "/read-then-close-if-kept", next_url);
      struct fake_outcome outcome = http_case_send(host, &route, 0);
      assert_int_equal(outcome.cls, DUEBOX_DELIVERED);
      spoil(host, outcome.message_id);
      for (int round = 0; round < 3; round++) {
        outcome = http_case_send(host, &next, 0);
        enum duebox_outcome_class wanted = rows[i].kept && round == 1 ? DUEBOX_UNKNOWN : DUEBOX_DELIVERED;
        if (outcome.cls != wanted)
          fail_msg("%s, round %d: class %d, %s", url, round, (int)outcome.cls, outcome.message);
      }
      assert_int_equal(fake_host_logged(host, "HTTP-STRAY"), !rows[i].kept);
      fake_host_free(host);
    }
  free(ca);
}

/* Somebody between here and the receiver may see another end of such a response, and the rest as another one. */
static void a_response_of_doubtful_length_ends_its_connection(void **state) {
  static const struct {
    const char *path;
    bool kept;
  } rows[] = {{"/ok", true},
              {"/length-twice", true},
              {"/lengths-differ", false},
              {"/length-list", false},
              {"/bare-newlines", false},
              {"/nul-behind-chunked", false},
              {"/nul-behind-length", false},
              {"/nul-in-name", false},
              {"/length-and-chunked", false}};
  struct http_options o = http_case_options();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct fake_host *host = http_case_open(&o);
    char url[HTTP_CASE_URL], next_url[HTTP_CASE_URL];
    int port = hostile_server_port(server, "plain");
    struct http_route route = http_case_route("http", "127.0.0.1", port, rows[i].path, url);
    struct http_route next = http_case_route("http", "127.0.0.1", port, "/read-then-close-if-kept", next_url);
    (void)http_case_send(host, &route, 0);
    struct fake_outcome outcome = http_case_send(host, &next, 0); /* answered as the first one of a connection only */
    if ((outcome.cls == DUEBOX_DELIVERED) == rows[i].kept)
      fail_msg("%s: class %d, %s", rows[i].path, (int)outcome.cls, outcome.message);
    fake_host_free(host);
  }
}

static void an_impossible_task_is_rejected_unsent(void **state) {
  const struct duebox_header bad = {"x y", {"v", 1}};
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  char url[HTTP_CASE_URL];
  struct http_route route = http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), "/ok", url);
  size_t index = fake_host_add(
      host, &(struct fake_task){.message_id = "impossible", .headers = &bad, .header_count = 1, .route_data = &route});
  struct fake_outcome next = http_case_send(host, &route, 0), outcome = fake_host_outcome(host, index);
  assert_int_equal(outcome.cls, DUEBOX_REJECTED);
  assert_string_equal(outcome.error_class, "http.header");
  assert_non_null(strstr(outcome.message, "\"x y\""));
  assert_int_equal(hostile_server_copies(server, "impossible"), 0);
  assert_int_equal(next.cls, DUEBOX_DELIVERED);
  fake_host_free(host);
}

/* A body too large for the socket's buffers, to a server that answers without reading it and closes. Whether the answer
 * is seen before the reset is a race; either way it is no success and not sent again. */
static void an_answer_before_the_body_is_never_success(void **state) {
  struct http_options o = http_case_options();
  struct fake_host *host = http_case_open(&o);
  size_t len = 8 << 20;
  char url[HTTP_CASE_URL], *body = calloc(1, len);
  assert_non_null(body);
  struct http_route route =
      http_case_route("http", "127.0.0.1", hostile_server_port(server, "plain"), "/early-answer", url);
  for (int i = 0; i < 5; i++) {
    char id[32];
    snprintf(id, sizeof(id), "early-%d", i);
    size_t index = fake_host_add(
        host, &(struct fake_task){
                  .message_id = id, .timeout_ms = HTTP_CASE_TIMEOUT_MS, .payload = {body, len}, .route_data = &route});
    if (!fake_host_settle(host, HTTP_CASE_LIMIT_MS))
      fail_msg("waited %d ms for an early answer", HTTP_CASE_LIMIT_MS);
    struct fake_outcome outcome = fake_host_outcome(host, index);
    if (outcome.cls != DUEBOX_UNKNOWN && strcmp(outcome.error_class, "http.413") != 0)
      fail_msg("class %d, \"%s\": %s", (int)outcome.cls, outcome.error_class, outcome.message);
    assert_int_equal(hostile_server_copies(server, id), 1);
  }
  fake_host_free(host);
  free(body);
}

/* OpenSSL says that it has sent nothing until it has sent all that it was given, which is 64 KiB: where the kernel
 * takes less, all of a request may leave without libcurl's count of it. The server reads it and closes. */
static void a_request_that_left_in_pieces_may_have_been_received(void **state) {
  struct http_options o = http_case_options();
  char *ca = strdup(hostile_server_file(server, "ca.pem")), url[HTTP_CASE_URL];
  o.ca_file = ca;
  struct fake_host *host = http_case_open(&o);
  struct http_route route = http_case_route("https", "localhost", hostile_server_port(server, "narrow"), "/close", url);
  size_t len = 60000;
  char *body = calloc(1, len);
  assert_non_null(body);
  size_t index = fake_host_add(host, &(struct fake_task){.message_id = "in-pieces",
                                                         .timeout_ms = HTTP_CASE_TIMEOUT_MS,
                                                         .payload = {body, len},
                                                         .route_data = &route});
  if (!fake_host_settle(host, HTTP_CASE_LIMIT_MS))
    fail_msg("waited %d ms for the end of a request in pieces", HTTP_CASE_LIMIT_MS);
  struct fake_outcome outcome = fake_host_outcome(host, index);
  assert_int_equal(hostile_server_copies(server, "in-pieces"), 1);
  if (outcome.cls != DUEBOX_UNKNOWN)
    fail_msg("class %d, \"%s\": %s", (int)outcome.cls, outcome.error_class, outcome.message);
  fake_host_free(host);
  free(body);
  free(ca);
}

/* ---- the group ---- */

static int start(void **state) {
  server = hostile_server_start();
  return 0;
}

static int stop(void **state) {
  hostile_server_stop(server);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_behaviour_has_its_class),
      cmocka_unit_test(every_behaviour_has_its_class_over_tls),
      cmocka_unit_test(records_are_handed_over_whole),
      cmocka_unit_test(retry_after_is_read),
      cmocka_unit_test(the_request_is_what_was_ordered),
      cmocka_unit_test(cookies_are_not_kept),
      cmocka_unit_test(a_folded_first_line_harms_nobody),
      cmocka_unit_test(nothing_is_sent_twice),
      cmocka_unit_test(stale_connections_are_left_alone),
      cmocka_unit_test(who_wrote_unasked_keeps_no_connection),
      cmocka_unit_test(a_response_of_doubtful_length_ends_its_connection),
      cmocka_unit_test(an_impossible_task_is_rejected_unsent),
      cmocka_unit_test(an_answer_before_the_body_is_never_success),
      cmocka_unit_test(a_request_that_left_in_pieces_may_have_been_received),
  };
  return cmocka_run_group_tests_name("http_hostile", tests, start, stop);
}
