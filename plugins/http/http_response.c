/* SPDX-License-Identifier: MIT */
#include "http_response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FIRST = 4096, KEEP = 16384 }; /* bytes of a buffer: to begin with, and at most between two responses */

void http_response_reset(struct http_response *response) {
  if (response->cap > KEEP) {
    free(response->body);
    response->body = NULL;
    response->cap = 0;
  }
  response->len = 0;
  response->header_bytes = 0;
  response->success = response->coded = false;
  response->cut = response->late_status = false;
  response->header_flood = false;
  response->headed = response->doubtful = response->recoded = response->endless = false;
  response->scanned = 0;
  response->scan = (struct http_scan){0};
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

/* Where the body begins as a JSON object; its length when it does not. */
static size_t object_at(const struct http_response *response) {
  /* white space and byte order marks, also those of UTF-16 and 32 */
  static const char before[] = {' ', '\t', '\r', '\n', '\0', '\xef', '\xbb', '\xbf', '\xfe', '\xff'};
  size_t i = 0;
  while (i < response->len && memchr(before, response->body[i], sizeof before))
    i++;
  return i < response->len && response->body[i] == '{' ? i : response->len;
}

/* Takes what comes behind the limit. False: no more of it is of interest. */
static bool scan_rest(struct http_response *response, const char *data, size_t len) {
  if (!response->cut) {
    response->cut = true;
    if (!response->success || object_at(response) == response->len ||
        http_scan_read(&response->scan, response->body, response->len) != HTTP_SCAN_GOES_ON)
      return false;
  }
  response->scanned += len;
  response->late_status = http_scan_read(&response->scan, data, len) == HTTP_SCAN_FOUND;
  return response->scan.state == HTTP_SCAN_GOES_ON && response->scanned < (HTTP_SCANNED - 1) * response->limit;
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
  return take == len || scan_rest(response, data + take, len - take);
}

static bool is_coding(const char *line, size_t len) {
  static const char name[] = "content-encoding:";
  size_t at = sizeof(name) - 1;
  if (len < at || strncasecmp(line, name, at) != 0)
    return false;
  while (at < len && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r' || line[at] == '\n'))
    at++;
  return at < len && (len - at < 8 || strncasecmp(line + at, "identity", 8) != 0);
}

static bool is_named(const char *line, size_t len, const char *name) {
  return len > strlen(name) && strncasecmp(line, name, strlen(name)) == 0;
}

/* libcurl undoes gzip, deflate and br as a Transfer-Encoding, in five layers, whether they were asked for or not. Some
 * hundred bytes can be made to cost minutes that way, in one read, before a callback or a time-out is looked at. */
static bool is_recoding(const char *line, size_t len) {
  static const char name[] = "transfer-encoding:", chunked[] = "chunked";
  enum { CHUNKED = sizeof(chunked) - 1 };
  if (!is_named(line, len, name))
    return false;
  const char *at = line + sizeof(name) - 1, *end = line + len;
  while (at < end && (*at == ' ' || *at == '\t'))
    at++;
  while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r' || end[-1] == '\n'))
    end--;
  return end - at != CHUNKED || strncasecmp(at, chunked, CHUNKED) != 0;
}

static size_t run_of(const char *at, const char *end, const char *set) {
  size_t n = 0;
  while (at + n < end && strchr(set, at[n]) && at[n])
    n++;
  return n;
}

static bool is_huge(const char *line, size_t len, const char *name) {
  enum { DIGITS = 18 }; /* fit into 64 bits, whatever they are */
  size_t i = strlen(name), digits = 0;
  if (!is_named(line, len, name))
    return false;
  while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '0'))
    i++;
  while (i + digits < len && line[i + digits] >= '0' && line[i + digits] <= '9')
    digits++;
  return digits > DIGITS;
}

/* A list of one number, as RFC 9112 lets it be (6.3). False: it is none, or another one than before. */
static bool is_one_length(struct http_response *response, const char *at, const char *end) {
  enum { DIGITS = 18 };
  for (;;) {
    uint64_t number = 0;
    size_t digits = 0, zeros = 0;
    at += run_of(at, end, " \t");
    for (; at < end && *at == '0'; at++)
      zeros++;
    for (; at < end && *at >= '0' && *at <= '9' && digits <= DIGITS; at++, digits++)
      number = number * 10 + (uint64_t)(*at - '0');
    if (digits + zeros == 0 || digits > DIGITS || (response->sized && number != response->length))
      return false;
    response->sized = true;
    response->length = number;
    at += run_of(at, end, " \t\r\n");
    if (at == end || *at != ',')
      return at == end;
    at++;
  }
}

static void take_length(struct http_response *response, const char *line, size_t len) {
  static const char name[] = "content-length:";
  if (!is_named(line, len, name))
    return;
  if (!is_one_length(response, line + sizeof(name) - 1, line + len))
    response->endless = true;
  response->sized = true;
}

/* libcurl takes headers that are cut off for a response without a body; the empty line tells the difference. A status
 * line begins anew: the headers before it were those of an interim response. */
bool http_response_header(struct http_response *response, const char *line, size_t len) {
  if (len > 5 && memcmp(line, "HTTP/", 5) == 0) {
    const char *status = memchr(line, ' ', len - 1);
    response->headed = response->coded = response->very_late = response->endless = false;
    response->sized = response->transfer_coded = response->recoded = false;
    response->success = status && status[1] == '2';
    response->interim = status && status[1] == '1';
  } else if (len > 0 && (line[0] == '\r' || line[0] == '\n')) {
    response->headed = true;
    response->cut = response->cut || (response->recoded && !response->interim);
  } else if (!response->headed) {
    response->coded = response->coded || is_coding(line, len);
    response->very_late = response->very_late || is_huge(line, len, "retry-after:");
    take_length(response, line, len);
    response->transfer_coded = response->transfer_coded || is_named(line, len, "transfer-encoding:");
    response->recoded = response->recoded || is_recoding(line, len);
  }
  bool bare = len < 2 || line[len - 2] != '\r';
  response->doubtful = response->doubtful || bare || response->endless || (response->sized && response->transfer_coded);
  response->header_bytes += len;
  response->header_flood = response->header_bytes > HTTP_HEADER_MAX;
  bool lost = response->headed && response->endless && !response->interim; /* nothing of the body is of use */
  return !response->header_flood && !response->cut && !lost;
}

/* The scan's status in front of the other members, which are read as far as they go. False: memory is short. */
static bool put_first(struct http_response *response, size_t brace) {
  char first[HTTP_SCAN_TEXT + 16];
  size_t len = (size_t)snprintf(first, sizeof(first), "{\"status\":\"%s\",", response->scan.text);
  size_t rest = response->len - brace - 1;
  if (!grow(response, len + rest))
    return false;
  memmove(response->body + len, response->body + brace + 1, rest);
  memcpy(response->body, first, len);
  response->len = len + rest;
  return true;
}

enum http_body http_response_body(struct http_response *response) {
  size_t brace = object_at(response);
  if (brace == response->len)
    return response->recoded || (response->coded && response->len > 0) ? HTTP_BODY_UNREAD : HTTP_BODY_OTHER;
  size_t begin = brace + 2 < response->len ? brace + 2 : response->len;
  bool wide = memchr(response->body, '\0', begin); /* UTF-16 or 32: no JSON in UTF-8 holds a NUL */
  if (wide && !response->cut)
    (void)http_scan_read(&response->scan, response->body, response->len);
  if (response->scan.state == HTTP_SCAN_FOUND && (wide || response->late_status) && !put_first(response, brace))
    return HTTP_BODY_UNREAD;
  return response->cut && response->scan.state == HTTP_SCAN_GOES_ON ? HTTP_BODY_UNREAD : HTTP_BODY_OBJECT;
}

bool http_response_breaks_off(const struct http_response *response) {
  size_t brace = object_at(response);
  return !response->cut && brace < response->len && !http_scan_closes(response->body + brace, response->len - brace);
}

int64_t http_retry_after_ms(const struct http_response *response, int64_t seconds, int64_t max_ms) {
  if (seconds <= 0 && response->very_late)
    seconds = INT64_MAX;
  if (seconds <= 0 || max_ms <= 0)
    return -1;
  return seconds > max_ms / 1000 ? max_ms : seconds * 1000;
}
