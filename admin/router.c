/* SPDX-License-Identifier: MIT
 *
 * admin/router.c - the table of endpoints and the search in it. Pure.
 *
 * Paths are compared raw and segment by segment; only then a parameter is percent-decoded, so that an encoded slash in
 * a route's name stays within its segment.
 */
#include <string.h>

#include "admin/http.h"

static const struct endpoint table[] = {
    {"GET", "/", ROLE_OPEN, RUN_INLINE, true, page_html},
    {"GET", "/style.css", ROLE_OPEN, RUN_INLINE, true, page_style},
    {"GET", "/script.js", ROLE_OPEN, RUN_INLINE, true, page_script},
    {"GET", "/icon.svg", ROLE_OPEN, RUN_INLINE, true, page_icon},
    {"GET", "/robots.txt", ROLE_OPEN, RUN_INLINE, true, page_robots},
    {"GET", "/healthz", ROLE_OPEN, RUN_INLINE, true, health_live},
    {"GET", "/readyz", ROLE_OPEN, RUN_QUICK, true, health_ready},
    {"GET", "/metrics", ROLE_READ, RUN_QUICK, true, metrics_show},
    {"GET", "/api/v1/stats", ROLE_READ, RUN_QUICK, true, status_stats},
    {"GET", "/api/v1/routes", ROLE_READ, RUN_QUICK, false, status_routes},
    {"POST", "/api/v1/routes/{name}/pause", ROLE_OPERATE, RUN_SLOW, false, route_pause},
    {"POST", "/api/v1/routes/{name}/resume", ROLE_OPERATE, RUN_SLOW, false, route_resume},
    {"POST", "/api/v1/tasks/cancel", ROLE_OPERATE, RUN_SLOW, false, tasks_cancel},
    {"POST", "/api/v1/tasks/reschedule", ROLE_OPERATE, RUN_SLOW, false, tasks_reschedule},
    {"POST", "/api/v1/tasks/{id}/cancel", ROLE_OPERATE, RUN_SLOW, false, task_cancel},
    {"POST", "/api/v1/tasks/{id}/reschedule", ROLE_OPERATE, RUN_SLOW, false, task_reschedule},
    {"POST", "/api/v1/results", ROLE_OPERATE, RUN_RESULT, true, result_post},
    {"GET", "/api/v1/quarantine", ROLE_RECORDS, RUN_SLOW, false, quarantine_list},
    {"GET", "/api/v1/quarantine/{number}", ROLE_RECORDS, RUN_SLOW, false, quarantine_show},
    {"POST", "/api/v1/quarantine/{number}/replay", ROLE_OPERATE, RUN_SLOW, false, quarantine_replay},
    {"POST", "/api/v1/quarantine/{number}/purge", ROLE_OPERATE, RUN_SLOW, false, quarantine_purge},
    {"POST", "/api/v1/reload", ROLE_OPERATE, RUN_SLOW, false, reload_post},
    {"POST", "/callback/{message_id}/{attempt}/{token}", ROLE_CALLBACK, RUN_RESULT, true, result_callback},
};

const struct endpoint *router_table(size_t *count) {
  *count = ARRAY_LEN(table);
  return table;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* Decodes one segment; false when it is empty, too long, badly encoded or holds a control character. */
static bool decode(const char *segment, size_t len, char out[HTTP_PARAM_LEN]) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    int c = (unsigned char)segment[i];
    if (c == '%') {
      int high = i + 2 < len ? hex_digit(segment[i + 1]) : -1;
      int low = i + 2 < len ? hex_digit(segment[i + 2]) : -1;
      if (high < 0 || low < 0)
        return false;
      c = high * 16 + low;
      i += 2;
    }
    if (c < 0x20 || c == 0x7f || n + 1 >= HTTP_PARAM_LEN)
      return false;
    out[n++] = (char)c;
  }
  out[n] = '\0';
  return n > 0;
}

/* Walks pattern and path together, one segment at a time. */
static bool matches(const char *pattern, const char *path, struct request *request) {
  size_t params = 0;
  while (*pattern == '/' && *path == '/') {
    size_t wanted = strcspn(++pattern, "/"), given = strcspn(++path, "/");
    if (*pattern == '{') {
      if (params == HTTP_PARAMS_MAX || !decode(path, given, request->params[params++]))
        return false;
    } else if (wanted != given || memcmp(pattern, path, given) != 0) {
      return false;
    }
    pattern += wanted;
    path += given;
  }
  return *pattern == '\0' && *path == '\0';
}

enum route_match router_find(const char *method, const char *path, struct request *request, const char **allow) {
  bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    if (!matches(table[i].path, path, request))
      continue;
    request->endpoint = &table[i];
    if (get ? strcmp(table[i].method, "GET") == 0 : strcmp(table[i].method, method) == 0)
      return MATCH_FOUND;
    *allow = strcmp(table[i].method, "GET") == 0 ? "GET, HEAD" : table[i].method;
    return MATCH_NO_METHOD;
  }
  return MATCH_NO_PATH;
}
