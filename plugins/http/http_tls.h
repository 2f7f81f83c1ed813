/* SPDX-License-Identifier: MIT
 *
 * http_tls.h - the TLS of a connection of libcurl's. Driver's thread.
 */
#ifndef PLUGINS_HTTP_TLS_H
#define PLUGINS_HTTP_TLS_H

#include <stdbool.h>

#include <curl/curl.h>
#include <openssl/ssl.h>

/* The TLS of the connection that a handle has now; NULL without. */
SSL *http_tls_of(CURL *easy);

/* Whether the two have agreed on HTTP/2. NULL: no. */
__attribute__((warn_unused_result)) bool http_tls_is_http2(const SSL *tls);

#endif
