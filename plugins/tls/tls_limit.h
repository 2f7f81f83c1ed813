/* SPDX-License-Identifier: MIT
 *
 * tls_limit.h - what the other side may choose in a TLS handshake costs milliseconds, whatever it is.
 *
 * Plugins whose library lets them have its SSL_CTX share this; each has a copy of its own. It costs the thread that
 * does the handshake, and for HTTP that is the driver: what takes long there holds up all routes of the instance. So
 * there is no Diffie-Hellman over finite fields, whose numbers OpenSSL takes with up to 10,000 bits; no certificate
 * whose elliptic curve is made of the other side's own numbers; no long chain; no second handshake on a connection.
 * Everything else stays as the system's configuration of OpenSSL has it. No state, no locks.
 */
#ifndef PLUGINS_TLS_LIMIT_H
#define PLUGINS_TLS_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

/* Sets the limits for the connections of a context, once. client_cert: there is one, and the other side may ask for it
 * in the middle of a connection (HTTP). */
void tls_limit_context(SSL_CTX *context, bool client_cert);

/* To be called with each handshake message that was read, before OpenSSL parses it. One that is too dear to parse is
 * spoilt, so that the handshake fails; the error that OpenSSL reports then says why. */
void tls_limit_message(int version, const void *message, size_t len);

/* What to change where a handshake failed with that text of OpenSSL; NULL = nothing is known. */
const char *tls_limit_cure(const char *text);

#endif
