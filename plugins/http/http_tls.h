/* SPDX-License-Identifier: MIT
 *
 * http_tls.h - the TLS of a connection of libcurl's, and whom it trusts. Driver's thread.
 *
 * The system's authorities are a file of 140 certificates and a folder of them, in which an issuer is looked for by its
 * name. libcurl reads the file for each connection, for some milliseconds, unless it is told of no folder: then the
 * connections of a multi handle share what was read, and the folder is added to that here.
 */
#ifndef PLUGINS_HTTP_TLS_H
#define PLUGINS_HTTP_TLS_H

#include <stdbool.h>

#include <curl/curl.h>
#include <openssl/ssl.h>

/* The TLS of the connection that a handle has now; NULL without. */
SSL *http_tls_of(CURL *easy);

/* The folder of the system's authorities, to be added for each connection; NULL: it is libcurl's to read. */
const char *http_tls_authorities(void);
/* False: memory is short. */
__attribute__((warn_unused_result)) bool http_tls_add_authorities(SSL_CTX *context, const char *folder);

/* Has a handle trust the authorities in a file, or those of the system where that is NULL. added: somebody adds their
 * folder. False: libcurl refused it. */
__attribute__((warn_unused_result)) bool http_tls_trust(CURL *easy, const char *ca_file, bool added);

/* Whether the two have agreed on HTTP/2. NULL: no. */
__attribute__((warn_unused_result)) bool http_tls_is_http2(const SSL *tls);

/* Whether what can be read on a connection, with TLS or NULL, are bytes of HTTP: not the connection's end, nor a record
 * of TLS itself. Takes none of them. */
__attribute__((warn_unused_result)) bool http_tls_is_http(SSL *tls, int fd);

#endif
