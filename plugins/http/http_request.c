/* SPDX-License-Identifier: MIT */
#include "http_request.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "http_sign.h"
#include "http_text.h"
#include "http_url.h"

/* ---- header rules ---- */

bool http_header_name_valid(const char *name) {
  static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  return *name != '\0' && name[strspn(name, token)] == '\0';
}

bool http_header_value_valid(const char *value, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
      return false;
  return true;
}

/* WSGI, CGI and PHP make HTTP_DUEBOX_ID of duebox-id and duebox_id, and some of duebox.id or duebox~id too. */
static int as_consumers_read(char c) { return c && !isalnum((unsigned char)c) ? '-' : tolower((unsigned char)c); }

static bool begins_with(const char *name, const char *ours) {
  for (; *ours; name++, ours++)
    if (as_consumers_read(*name) != as_consumers_read(*ours))
      return false;
  return true;
}

static bool is_name(const char *name, const char *ours) {
  return strlen(name) == strlen(ours) && begins_with(name, ours);
}

bool http_header_reserved(const char *name) {
  static const char *const names[] = {
      "host",    "content-length", "transfer-encoding", "connection",      "upgrade", "keep-alive", "te",
      "trailer", "expect",         "http2-settings",    "accept-encoding", "proxy"}; /* HTTP_PROXY is a setting */
  static const char *const prefixes[] = {"webhook-", "duebox-", "proxy-"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (is_name(name, names[i]))
      return true;
  for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
    if (begins_with(name, prefixes[i]))
      return true;
  return false;
}

static char *digits(char *p, int64_t value, int width) {
  for (int i = width - 1; i >= 0; i--, value /= 10)
    p[i] = (char)('0' + value % 10);
  return p + width;
}

/* By hand: snprintf() with seven conversions would be the dearest part of a request. */
void http_format_time(int64_t us, char out[HTTP_TIME_CAP]) {
  int64_t fraction = us % 1000000;
  time_t seconds = (time_t)(us / 1000000);
  struct tm tm = {0};
  if (fraction < 0) {
    fraction += 1000000;
    seconds--;
  }
  gmtime_r(&seconds, &tm);
  const struct {
    int64_t value;
    int width;
    char after;
  } parts[] = {{tm.tm_year + 1900, 4, '-'}, {tm.tm_mon + 1, 2, '-'}, {tm.tm_mday, 2, 'T'}, {tm.tm_hour, 2, ':'},
               {tm.tm_min, 2, ':'},         {tm.tm_sec, 2, '.'},     {fraction, 6, 'Z'}};
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    out = digits(out, parts[i].value, parts[i].width);
    *out++ = parts[i].after;
  }
  *out = '\0';
}

/* ---- the growing text ---- */

static bool reserve(struct http_request *r, size_t more) {
  if (r->short_of_memory)
    return false;
  if (r->cap - r->len >= more)
    return true;
  size_t cap = r->cap ? r->cap : 1024;
  while (cap - r->len < more)
    cap *= 2;
  char *text = realloc(r->text, cap);
  if (!text) {
    r->short_of_memory = true;
    return false;
  }
  r->text = text;
  r->cap = cap;
  return true;
}

static bool is_blank(const char *value, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (value[i] != ' ' && value[i] != '\t')
      return false;
  return true;
}

/* Writes "name" and makes room for a separator and a value of at most max bytes. NULL when memory is short, which is
 * remembered and reported once, at the end. */
static char *begin_line(struct http_request *r, const char *name, size_t max) {
  size_t name_len = strlen(name);
  if (!reserve(r, name_len + max + 3))
    return NULL;
  memcpy(r->text + r->len, name, name_len);
  return r->text + r->len + name_len;
}

static void end_line(struct http_request *r, char *end) {
  *end++ = '\0';
  r->len = (size_t)(end - r->text);
  r->header_count++;
}

static void add(struct http_request *r, const char *name, const char *value, size_t len) {
  char *p = begin_line(r, name, len);
  if (!p)
    return;
  if (is_blank(value, len)) { /* libcurl would take "Name:" for "do not send Name" */
    *p++ = ';';
  } else {
    *p++ = ':';
    *p++ = ' ';
    memcpy(p, value, len);
    p += len;
  }
  end_line(r, p);
}

static void add_text(struct http_request *r, const char *name, const char *value) {
  add(r, name, value, strlen(value));
}

/* A checkpoint may hold any byte, a header may not: what a header would lose or receivers read in different ways
 * (control characters, blanks at the ends, bytes beyond ASCII, the percent sign itself) is percent-encoded. Decoding
 * always gives the checkpoint back, and an ordinary one passes unchanged. */
static void add_encoded(struct http_request *r, const char *name, const struct duebox_bytes *value) {
  static const char hex[] = "0123456789ABCDEF";
  char *p = begin_line(r, name, 3 * value->len);
  if (!p)
    return;
  *p++ = ':';
  *p++ = ' ';
  for (size_t i = 0; i < value->len; i++) {
    unsigned char c = (unsigned char)value->data[i];
    bool end = i == 0 || i + 1 == value->len;
    if ((c > ' ' && c < 0x7f && c != '%') || (c == ' ' && !end)) {
      *p++ = (char)c;
    } else {
      *p++ = '%';
      *p++ = hex[c >> 4];
      *p++ = hex[c & 15];
    }
  }
  end_line(r, p);
}

/* A string of RFC 8941 section 3.3.3: in double quotes, with a backslash before a quote and a backslash. */
static void add_quoted(struct http_request *r, const char *name, const char *value) {
  char *p = begin_line(r, name, 2 * strlen(value) + 2);
  if (!p)
    return;
  *p++ = ':';
  *p++ = ' ';
  *p++ = '"';
  for (; *value; value++) {
    if (*value == '"' || *value == '\\')
      *p++ = '\\';
    *p++ = *value;
  }
  *p++ = '"';
  end_line(r, p);
}

/* ---- refusing a task ---- */

__attribute__((format(printf, 3, 4))) static bool reject(struct http_problem *problem, const char *error_class,
                                                         const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(problem->text, sizeof(problem->text), fmt, args);
  va_end(args);
  problem->cls = DUEBOX_REJECTED;
  problem->error_class = error_class;
  return false;
}

/* ---- the parts of a request ---- */

static bool add_url(struct http_request *r, const struct duebox_task *task, const struct http_route *route,
                    const struct duebox_host *host, struct http_problem *problem) {
  size_t need = host->expand(host->ctx, route->url, task, DUEBOX_ESCAPE_URL, NULL, 0);
  if (need > HTTP_URL_MAX)
    return reject(problem, "http.url",
                  "the URL of this task would be %zu bytes long, more than %d; shorten the values "
                  "that the route's url takes from the task",
                  need, HTTP_URL_MAX);
  if (!reserve(r, need + 1))
    return true;
  host->expand(host->ctx, route->url, task, DUEBOX_ESCAPE_URL, r->text, need + 1);
  r->len = strlen(r->text) + 1;
  struct http_url url;
  if (!http_url_split(r->text, &url) || http_url_has_dot_segment(&url))
    return reject(
        problem, "http.url",
        "a value of this task makes a \".\" or \"..\" segment in the URL's path, which would leave the folder "
        "that the route names; change the task's key or the route's url");
  return true;
}

static bool announce_callback(struct http_request *r, const char *url) {
  r->callback = true;
  add_text(r, "duebox-callback", url);
  return true;
}

static bool add_callback(struct http_request *r, const struct duebox_task *task, const struct http_route *route,
                         const struct duebox_host *host, struct http_problem *problem) {
  enum http_callback kind = http_callback_of(route->callback);
  if (kind == HTTP_CALLBACK_NONE || (kind == HTTP_CALLBACK_REPLY_TO && !task->reply_to))
    return true;
  if (kind == HTTP_CALLBACK_REPLY_TO) {
    if (!http_header_value_valid(task->reply_to, strlen(task->reply_to)))
      return reject(problem, "http.header", "the callback URL holds a control character; correct the route's reply_to");
    return announce_callback(r, task->reply_to);
  }
  char url[2048];
  size_t need = host->expand(host->ctx, route->callback, task, DUEBOX_ESCAPE_URL, url, sizeof(url));
  if (need >= sizeof(url))
    return reject(problem, "http.url", "the callback URL of this task would be %zu bytes long, more than %zu", need,
                  sizeof(url) - 1);
  return announce_callback(r, url);
}

static bool add_signature(struct http_request *r, const struct duebox_task *task, const struct http_route *route,
                          int64_t now_s, struct http_problem *problem) {
  char list[HTTP_SIGNATURE_CAP] = "";
  if (!route->secret)
    return true;
  if (strchr(task->message_id, '.')) /* the signed text is id.timestamp.body: a dot would make it ambiguous */
    return reject(problem, "http.message_id",
                  "the message id %.64s holds a dot, which a signed webhook must not carry (Standard Webhooks); choose "
                  "message ids without dots, or remove the route's secret",
                  task->message_id);
  if (!http_sign(route->secret, task->message_id, now_s, &task->payload, list) ||
      (route->previous_secret && !http_sign(route->previous_secret, task->message_id, now_s, &task->payload, list))) {
    r->short_of_memory = true; /* the keys have been checked: only memory can be missing */
    return true;
  }
  add_text(r, "webhook-signature", list);
  return true;
}

static bool add_own(struct http_request *r, const struct duebox_task *task, const struct http_route *route,
                    const struct duebox_host *host, int64_t now_s, struct http_problem *problem) {
  char text[HTTP_TIME_CAP];
  if (!http_header_value_valid(task->message_id, strlen(task->message_id)) ||
      !http_header_value_valid(task->route, strlen(task->route)))
    return reject(problem, "http.header", "the message id or the route's name holds a control character");
  add_text(r, "webhook-id", task->message_id);
  snprintf(text, sizeof(text), "%" PRId64, now_s);
  add_text(r, "webhook-timestamp", text);
  if (!add_signature(r, task, route, now_s, problem))
    return false;
  snprintf(text, sizeof(text), "%" PRIu32, task->attempt);
  add_text(r, "duebox-attempt", text);
  if (duebox_task_revision(task) > 0) {
    snprintf(text, sizeof(text), "%" PRIu32, task->revision);
    add_text(r, "duebox-revision", text);
  }
  add_text(r, "duebox-route", task->route);
  http_format_time(task->due_us, text);
  add_text(r, "duebox-due", text);
  size_t before = r->len;
  if (task->checkpoint.len > 0)
    add_encoded(r, "duebox-checkpoint", &task->checkpoint);
  r->checkpoint_len = r->len - before;
  return add_callback(r, task, route, host, problem);
}

static void add_map(struct http_request *r, const struct duebox_map *headers) {
  for (size_t i = 0; i < headers->count; i++)
    add_text(r, headers->items[i].key, headers->items[i].value);
}

static void add_route_headers(struct http_request *r, const struct duebox_task *task, const struct http_route *route) {
  if (route->idempotency_key) /* quoted: draft-ietf-httpapi-idempotency-key-header, section 2.1 */
    add_quoted(r, "Idempotency-Key", task->message_id);
  if (route->authorization)
    add_text(r, "Authorization", route->authorization);
  add_map(r, &route->headers);
  add_map(r, &route->secret_headers);
}

static bool is_in_map(const struct duebox_map *headers, const char *name) {
  for (size_t i = 0; i < headers->count; i++)
    if (is_name(name, headers->items[i].key))
      return true;
  return false;
}

/* The operator's headers go before the application's: who inserts a row must not replace a credential. */
static bool set_by_route(const struct http_route *route, const char *name) {
  if (route->authorization && is_name(name, "authorization"))
    return true;
  if (route->idempotency_key && is_name(name, "idempotency-key"))
    return true;
  return is_in_map(&route->headers, name) || is_in_map(&route->secret_headers, name);
}

static bool add_application_headers(struct http_request *r, const struct duebox_task *task,
                                    const struct http_route *route, struct http_problem *problem) {
  bool typed = false;
  for (size_t i = 0; i < task->header_count; i++) {
    const struct duebox_header *h = &task->headers[i];
    if (!http_header_name_valid(h->name)) {
      char name[128];
      http_text_clean(name, sizeof(name), h->name, strlen(h->name));
      return reject(problem, "http.header",
                    "\"%s\" cannot be an HTTP header name (letters, digits and !#$%%&'*+-.^_`|~); rename it in the "
                    "task's headers",
                    name);
    }
    if (!http_header_value_valid(h->value.data, h->value.len))
      return reject(problem, "http.header",
                    "the header %.128s holds a control character; remove it from the task's "
                    "headers",
                    h->name);
    if (http_header_reserved(h->name) || set_by_route(route, h->name))
      continue;
    typed = typed || strcasecmp(h->name, "content-type") == 0;
    add(r, h->name, h->value.data, h->value.len);
  }
  if (!typed)
    add_text(r, "Content-Type", route->content_type);
  return true;
}

bool http_request_build(struct http_request *request, const struct duebox_task *task, const struct http_route *route,
                        const struct duebox_host *host, int64_t now_s, struct http_problem *problem) {
  request->len = 0;
  request->header_count = 0;
  request->short_of_memory = false;
  request->callback = false;
  if (!add_url(request, task, route, host, problem))
    return false;
  request->headers_at = request->len;
  if (!add_own(request, task, route, host, now_s, problem))
    return false;
  add_route_headers(request, task, route);
  if (!add_application_headers(request, task, route, problem))
    return false;
  size_t len = request->len - request->headers_at - request->checkpoint_len;
  if (len > HTTP_REQUEST_HEADERS_MAX || task->checkpoint.len > HTTP_REQUEST_CHECKPOINT_MAX)
    return reject(
        problem, "http.headers_too_large",
        "the headers of this task would be %zu bytes long, of at most %d, and its checkpoint has %zu bytes, of "
        "at most %d; shorten what is longer",
        len, HTTP_REQUEST_HEADERS_MAX, task->checkpoint.len, HTTP_REQUEST_CHECKPOINT_MAX);
  if (!request->short_of_memory)
    return true;
  *problem = (struct http_problem){.cls = DUEBOX_UNAVAILABLE,
                                   .error_class = "http.memory",
                                   .text = "out of memory while building the request; nothing was sent"};
  return false;
}

void http_request_free(struct http_request *request) {
  free(request->text);
  *request = (struct http_request){0};
}

const char *http_request_next_header(const struct http_request *request, const char *line) {
  const char *next = line ? line + strlen(line) + 1 : request->text + request->headers_at;
  return next < request->text + request->len ? next : NULL;
}
