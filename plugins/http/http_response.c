/* SPDX-License-Identifier: MIT */
#include "http_response.h"

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

/* ---- a reader of one top-level member ---- */

struct cursor {
  const char *p, *end;
};

static void skip_space(struct cursor *c) {
  while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
    c->p++;
}

static bool take(struct cursor *c, char wanted) {
  skip_space(c);
  if (c->p == c->end || *c->p != wanted)
    return false;
  c->p++;
  return true;
}

/* Reads a string; *text and *len are its bytes as written, escapes and all. */
static bool read_string(struct cursor *c, const char **text, size_t *len) {
  if (!take(c, '"'))
    return false;
  *text = c->p;
  for (; c->p < c->end; c->p++) {
    if (*c->p == '"') {
      *len = (size_t)(c->p - *text);
      c->p++;
      return true;
    }
    if (*c->p == '\\' && ++c->p == c->end)
      return false;
  }
  return false;
}

/* Skips a value: to the comma or closing brace on its own level. */
static bool skip_value(struct cursor *c) {
  size_t depth = 0;
  const char *text;
  size_t len;
  while (c->p < c->end) {
    if (*c->p == '"') {
      if (!read_string(c, &text, &len))
        return false;
      continue;
    }
    if (depth == 0 && (*c->p == ',' || *c->p == '}'))
      return true;
    if (*c->p == '{' || *c->p == '[')
      depth++;
    else if ((*c->p == '}' || *c->p == ']') && depth-- == 0)
      return false;
    c->p++;
  }
  return false;
}

static enum http_record status_word(const char *text, size_t len) {
  static const struct {
    const char *word;
    enum http_record record;
  } words[] = {{"done", HTTP_RECORD_DONE},
               {"retry", HTTP_RECORD_RETRY},
               {"fail", HTTP_RECORD_FAIL},
               {"progress", HTTP_RECORD_PROGRESS}};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (strlen(words[i].word) == len && memcmp(words[i].word, text, len) == 0)
      return words[i].record;
  return HTTP_RECORD_NONE;
}

/* "application/json", "application/problem+json; charset=utf-8": the media type, without its parameters. */
static bool names_json(const char *content_type) {
  if (!content_type)
    return false;
  size_t len = strcspn(content_type, "; \t");
  return len >= 4 && strncasecmp(content_type + len - 4, "json", 4) == 0;
}

enum http_record http_response_record(const struct http_response *response, const char *content_type) {
  struct cursor c = {response->body, response->body + response->len};
  const char *name, *text;
  size_t name_len, len;
  if (response->len == 0 || !names_json(content_type) || !take(&c, '{'))
    return HTTP_RECORD_NONE;
  do {
    if (!read_string(&c, &name, &name_len) || !take(&c, ':'))
      return HTTP_RECORD_NONE;
    skip_space(&c);
    if (name_len == 6 && memcmp(name, "status", 6) == 0)
      return read_string(&c, &text, &len) ? status_word(text, len) : HTTP_RECORD_NONE;
    if (!skip_value(&c))
      return HTTP_RECORD_NONE;
  } while (take(&c, ','));
  return HTTP_RECORD_NONE;
}

int64_t http_retry_after_ms(int64_t seconds, int64_t max_ms) {
  if (seconds <= 0 || max_ms <= 0)
    return -1;
  return seconds > max_ms / 1000 ? max_ms : seconds * 1000;
}
