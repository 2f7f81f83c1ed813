/* SPDX-License-Identifier: MIT
 *
 * http_response.h - what is kept of a response, and what its body says.
 *
 * Pure. A response owns a buffer that grows to the cap and no further; more than that is not read. The JSON reader here
 * only looks for one member; the host parses the record.
 */
#ifndef PLUGINS_HTTP_RESPONSE_H
#define PLUGINS_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEADER_MAX 65536 /* bytes of all response header lines, interim responses and trailers included */

struct http_response {
  char *body;
  size_t len, cap;
  size_t limit; /* most bytes kept; set by the owner */
  size_t header_bytes;
  bool cut;          /* the body is longer than the limit */
  bool header_flood; /* the headers are longer than HTTP_HEADER_MAX */
  bool headed;       /* the headers have come to their end */
};

/* Status words of a result record. */
enum http_record { HTTP_RECORD_NONE = 0, HTTP_RECORD_DONE, HTTP_RECORD_RETRY, HTTP_RECORD_FAIL, HTTP_RECORD_PROGRESS };

/* Makes it ready for the next response; a buffer that grew large is given back. */
void http_response_reset(struct http_response *response);
void http_response_free(struct http_response *response);

/* Takes body bytes. False: stop reading, because the limit is reached (cut) or memory is short. */
__attribute__((warn_unused_result)) bool http_response_append(struct http_response *response, const char *data,
                                                              size_t len);
/* Takes a header line, its line end included. False: too much. */
__attribute__((warn_unused_result)) bool http_response_header(struct http_response *response, const char *line,
                                                              size_t len);

/* What the body says as a result record: its content type names JSON, it is an object, and the top-level member
 * "status" is one of the four words. Any other body is not a record: {"status":"ok"} is an ordinary answer. The body
 * may be cut. content_type may be NULL. */
enum http_record http_response_record(const struct http_response *response, const char *content_type);

/* Retry-After in ms from seconds (0 or less: none), at most max_ms (0: not honoured); -1 when there is none. */
int64_t http_retry_after_ms(int64_t seconds, int64_t max_ms);

#endif
