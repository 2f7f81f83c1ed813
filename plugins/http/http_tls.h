/* SPDX-License-Identifier: MIT
 *
 * http_tls.h - what an endpoint may choose in a TLS handshake costs milliseconds, whatever it is.
 *
 * A handshake runs on the driver thread, inside one call of libcurl: what takes long there holds up all routes of the
 * instance. So there is no Diffie-Hellman over finite fields, whose numbers OpenSSL takes with up to 10,000 bits; no
 * certificate whose elliptic curve is made of the endpoint's own numbers; no long chain; no second handshake on a
 * connection. Everything else stays as the system's configuration of OpenSSL has it. No locks.
 */
#ifndef PLUGINS_HTTP_TLS_H
#define PLUGINS_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>
#include <openssl/ssl.h>

struct http_tls {
  bool client_cert; /* there is a client certificate: endpoints may ask for it in the middle of a connection */
  int (*policy)(const SSL *, const SSL_CTX *, int, int, int, void *, void *); /* OpenSSL's own */
};

/* Sets the limits for the connections of a context; tls must outlive them. */
void http_tls_limit(struct http_tls *tls, SSL_CTX *context);

/* To be called with each handshake message that was read, before OpenSSL parses it. One that is too dear to parse is
 * spoilt, so that the handshake fails; the error that OpenSSL reports then says why. */
void http_tls_inspect(int version, const void *message, size_t len);

/* The TLS of the connection that a handle has now; NULL without. */
SSL *http_tls_of(CURL *easy);

/* Whether the two have agreed on HTTP/2. NULL: no. */
__attribute__((warn_unused_result)) bool http_tls_is_http2(const SSL *tls);

#endif
