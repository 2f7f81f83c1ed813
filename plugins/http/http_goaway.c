/* SPDX-License-Identifier: MIT */
#include "http_goaway.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT = 128 }; /* longer than the texts that are looked for */

/* The number behind the word, a stream's. */
static bool number_behind(const char *text, const char *word, uint32_t *out) {
  const char *at = strstr(text, word);
  if (!at)
    return false;
  char *end;
  at += strlen(word);
  unsigned long number = strtoul(at, &end, 10);
  *out = (uint32_t)number;
  return end > at && number <= INT32_MAX;
}

static bool begins(const char *text, const char *word) { return strncmp(text, word, strlen(word)) == 0; }

/* A server may lower the number with a second GOAWAY, never raise it (nghttp2 watches over that). */
static void note(struct http_goaways *goaways, uintptr_t connection, uint32_t last) {
  for (size_t i = 0; i < HTTP_GOAWAYS; i++) {
    if (goaways->lasts[i].connection != connection)
      continue;
    goaways->lasts[i].id = last;
    return;
  }
  goaways->lasts[goaways->seen++ % HTTP_GOAWAYS] = (struct http_stream){connection, last};
}

/* No text begins with words of the server. "recveived" is libcurl's own spelling, up to 8.0. */
void http_goaway_read(struct http_goaways *goaways, uintptr_t connection, struct http_stream *stream, const char *text,
                      size_t len) {
  char line[TEXT];
  uint32_t number;
  if (connection == 0 || len >= sizeof(line))
    return;
  memcpy(line, text, len);
  line[len] = '\0';
  if (begins(line, "Using Stream ID: ") && number_behind(line, "ID: ", &number))
    *stream = (struct http_stream){connection, number};
  else if ((begins(line, "recveived GOAWAY, ") || begins(line, "received GOAWAY, ")) &&
           number_behind(line, "last_stream=", &number))
    note(goaways, connection, number);
}

/* The last stream that its connection's server took up, NULL: it has not said. */
static const uint32_t *last_of(const struct http_goaways *goaways, const struct http_stream *stream) {
  for (size_t i = 0; stream->id > 0 && i < HTTP_GOAWAYS; i++)
    if (goaways->lasts[i].connection == stream->connection)
      return &goaways->lasts[i].id;
  return NULL;
}

bool http_goaway_unprocessed(const struct http_goaways *goaways, const struct http_stream *stream) {
  const uint32_t *last = last_of(goaways, stream);
  return last && stream->id > *last;
}

bool http_goaway_took_others(const struct http_goaways *goaways, const struct http_stream *stream) {
  const uint32_t *last = last_of(goaways, stream);
  return last && *last > 0 && stream->id > *last;
}
