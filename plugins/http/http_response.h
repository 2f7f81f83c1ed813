/* SPDX-License-Identifier: MIT
 *
 * http_response.h - what is kept of a response.
 *
 * Pure. A response owns a buffer that grows to the cap and no further; more than that is not read.
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

/* Makes it ready for the next response; a buffer that grew large is given back. */
void http_response_reset(struct http_response *response);
void http_response_free(struct http_response *response);

/* Takes body bytes. False: stop reading, because the limit is reached (cut) or memory is short. */
__attribute__((warn_unused_result)) bool http_response_append(struct http_response *response, const char *data,
                                                              size_t len);
/* Takes a header line, its line end included. False: too much. */
__attribute__((warn_unused_result)) bool http_response_header(struct http_response *response, const char *line,
                                                              size_t len);

/* Whether the body begins as a JSON object, whatever its media type: it may be a result record, which the host reads.
 */
bool http_response_is_object(const struct http_response *response);

/* Retry-After in ms from seconds (0 or less: none), at most max_ms (0: not honoured); -1 when there is none. */
int64_t http_retry_after_ms(int64_t seconds, int64_t max_ms);

#endif
