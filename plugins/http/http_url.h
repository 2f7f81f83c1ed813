/* SPDX-License-Identifier: MIT
 *
 * http_url.h - the few facts about a URL that decide where a request may go.
 *
 * Pure. Splits only what libcurl's own parser is asked about in the same way: scheme, authority, the rest.
 */
#ifndef PLUGINS_HTTP_URL_H
#define PLUGINS_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>

struct http_url {
  bool plain;            /* http, not https */
  const char *authority; /* points into the text: host and port */
  size_t authority_len;
  const char *rest; /* path, query, fragment; may be empty */
};

/* False when the text does not begin with http:// or https:// and a non-empty authority. */
__attribute__((warn_unused_result)) bool http_url_split(const char *text, struct http_url *out);

/* Whether a path segment is "." or "..", which receivers resolve: "/hooks/{task_key}" with the key ".." would leave
 * the folder. The query does not count. */
bool http_url_has_dot_segment(const struct http_url *url);

#endif
