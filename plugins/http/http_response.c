/* SPDX-License-Identifier: MIT */
#include "http_response.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 4096, KEEP = 16384 }; /* bytes of a buffer: to begin with, and at most between two responses */

void http_response_reset(struct http_response *response) {
  if (response->cap > KEEP) {
    free(response->body);
    response->body = NULL;
    response->cap = 0;
  }
  response->len = 0;
  response->header_bytes = 0;
  response->cut = false;
  response->header_flood = false;
  response->headed = false;
}

void http_response_free(struct http_response *response) {
  free(response->body);
  response->body = NULL;
  response->len = response->cap = 0;
}

static bool grow(struct http_response *response, size_t need) {
  size_t cap = response->cap ? response->cap : FIRST;
  while (cap < need)
    cap *= 2;
  char *body = cap == response->cap ? response->body : realloc(response->body, cap);
  if (!body)
    return false;
  response->body = body;
  response->cap = cap;
  return true;
}

bool http_response_append(struct http_response *response, const char *data, size_t len) {
  size_t room = response->limit - response->len;
  size_t take = len < room ? len : room;
  if (take > 0) {
    if (!grow(response, response->len + take))
      return false;
    memcpy(response->body + response->len, data, take);
    response->len += take;
  }
  response->cut = take < len;
  return !response->cut;
}

/* libcurl takes headers that are cut off for a response without a body; the empty line tells the difference. A status
 * line begins anew: the headers before it were those of an interim response. */
bool http_response_header(struct http_response *response, const char *line, size_t len) {
  if (len > 5 && memcmp(line, "HTTP/", 5) == 0)
    response->headed = false;
  else if (len > 0 && (line[0] == '\r' || line[0] == '\n'))
    response->headed = true;
  response->header_bytes += len;
  response->header_flood = response->header_bytes > HTTP_HEADER_MAX;
  return !response->header_flood;
}

bool http_response_is_object(const struct http_response *response) {
  static const char mark[] = "\xef\xbb\xbf"; /* what some libraries put before UTF-8 */
  size_t i = response->len >= 3 && memcmp(response->body, mark, 3) == 0 ? 3 : 0;
  while (i < response->len && strchr(" \t\r\n", response->body[i]) && response->body[i])
    i++;
  return i < response->len && response->body[i] == '{';
}

int64_t http_retry_after_ms(int64_t seconds, int64_t max_ms) {
  if (seconds <= 0 || max_ms <= 0)
    return -1;
  return seconds > max_ms / 1000 ? max_ms : seconds * 1000;
}
