/* SPDX-License-Identifier: MIT
 *
 * http_mask.h - the route's secrets in what an endpoint answered.
 *
 * Error pages name the path that was asked for, and debugging pages all of the request. Both can hold what the operator
 * keeps in a file: the URL of a hook, an API key, the MAC of a callback URL. So they are taken out of a text before it
 * becomes an error text, which goes to the log, the API and a table column. The host hides secret options in every text
 * of a plugin; only here it is known what of a URL is one, and no text is shown where one cannot be looked for. Pure.
 */
#ifndef PLUGINS_HTTP_MASK_H
#define PLUGINS_HTTP_MASK_H

#include "http_options.h"

/* Copies text into out (cap > 0 bytes, always NUL-terminated) with "***" for each of the route's secrets and each of
 * their words, and for all of the text where one has no word; reply_to is the task's, or NULL. A word of the URL that
 * could be one of a language ("hooks") is replaced only where it is part of a URL. */
void http_mask(char *out, size_t cap, const char *text, const struct http_route *route, const char *reply_to);

#endif
