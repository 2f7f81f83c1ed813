/* SPDX-License-Identifier: MIT
 *
 * http_response.h - what is kept of a response.
 *
 * Pure. A response owns a buffer that grows to the cap and no further. More than that is read only where a consumer may
 * say there what became of the task: of a JSON object after a 2xx, HTTP_SCANNED times the cap, for its status.
 */
#ifndef PLUGINS_HTTP_RESPONSE_H
#define PLUGINS_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http_scan.h"

enum { HTTP_SCANNED = 16 };

#define HTTP_HEADER_MAX 65536 /* bytes of all response header lines, interim responses and trailers included */

struct http_response {
  char *body;
  size_t len, cap;
  size_t limit; /* most bytes kept; set by the owner */
  size_t header_bytes;
  bool success;               /* the status line says 2xx */
  bool coded;                 /* the body is in a Content-Encoding */
  bool cut;                   /* the body is longer than the limit */
  bool late_status;           /* what the scan has found is not in the bytes that are kept */
  bool header_flood;          /* the headers are longer than HTTP_HEADER_MAX */
  bool headed;                /* the headers have come to their end */
  bool interim;               /* the status line says 1xx */
  bool sized, transfer_coded; /* it has a Content-Length, a Transfer-Encoding */
  bool recoded;               /* that is another one than chunked; nothing of the body is read */
  bool doubtful;              /* others may see another end of it: it has both, or lines that end without CR */
  bool very_late;             /* Retry-After has more digits than a number of libcurl's, which takes it for none */
  bool endless;    /* its Content-Length is no number of libcurl's, or two: where its body ends nobody knows */
  uint64_t length; /* of sized: what the first one says */
  size_t scanned;  /* bytes beyond the limit */
  struct http_scan scan;
};

/* Makes it ready for the next response; a buffer that grew large is given back. */
void http_response_reset(struct http_response *response);
void http_response_free(struct http_response *response);

/* Takes body bytes. False: stop reading, because enough has come (cut) or memory is short. */
__attribute__((warn_unused_result)) bool http_response_append(struct http_response *response, const char *data,
                                                              size_t len);
/* Takes a header line, its line end included. False: too much. */
__attribute__((warn_unused_result)) bool http_response_header(struct http_response *response, const char *line,
                                                              size_t len);

enum http_body {
  HTTP_BODY_OTHER,  /* says nothing: no JSON object */
  HTTP_BODY_OBJECT, /* begins as a JSON object: it may be a result record, which the host reads */
  HTTP_BODY_UNREAD, /* what it says nobody can know: it goes on where nothing was read, or is in a content coding */
};

/* What a body may say, whatever its media type. A status that was found only by the scan is put in front of the kept
 * members. */
__attribute__((warn_unused_result)) enum http_body http_response_body(struct http_response *response);

/* Whether the body begins as a JSON object and breaks off within it. */
bool http_response_breaks_off(const struct http_response *response);

/* Retry-After in ms from libcurl's seconds (0 or less: none), at most max_ms (0: not honoured); -1 when there is none.
 */
int64_t http_retry_after_ms(const struct http_response *response, int64_t seconds, int64_t max_ms);

#endif
