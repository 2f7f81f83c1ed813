/* SPDX-License-Identifier: MIT */
#include "tls_limit.h"

#include <stdint.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/objects.h>

enum {
  CERTIFICATES_MAX = 32768, /* bytes of a chain, or of the names in a request for our certificate; 4 KiB are usual */
  COUNT_MAX = 10,           /* certificates in a chain: parsing one may take 0.6 ms (P-224, compressed) */
  DEPTH_MAX = 8,            /* certificates between the endpoint's and an authority's */
  HEADER = 4,               /* of a handshake message: type and length */
  LENGTH = 3,               /* bytes of a length in it */
  FINITE_FIELD = 1,         /* first byte of a named group in RFC 7919: ffdhe2048 is 0x0100 */
};

/* OpenSSL's own; what is not decided here is left to it. */
typedef int policy_fn(const SSL *, const SSL_CTX *, int, int, int, void *, void *);

/* Asked before a cipher or a group is offered, and again when the endpoint has chosen one. */
static int on_choice(const SSL *ssl, const SSL_CTX *context, int operation, int bits, int nid, void *other, void *arg) {
  policy_fn *policy = (policy_fn *)(uintptr_t)arg;
  int kind = operation & SSL_SECOP_OTHER_TYPE;
  if (kind == SSL_SECOP_OTHER_CIPHER && SSL_CIPHER_get_kx_nid(other) == NID_kx_dhe)
    return 0;
  if (kind == SSL_SECOP_OTHER_CURVE && *(const unsigned char *)other == FINITE_FIELD)
    return 0;
  return policy(ssl, context, operation, bits, nid, other, NULL);
}

/* HelloRequest makes a client of TLS 1.2 begin a new handshake, as often as it comes. Some servers ask for a client
 * certificate in that way once they have seen the request (IIS); those without one have no use for it. */
void tls_limit_context(SSL_CTX *context, bool client_cert) {
  policy_fn *policy = SSL_CTX_get_security_callback(context);
  SSL_CTX_set_security_callback(context, on_choice);
  SSL_CTX_set0_security_ex_data(context, (void *)(uintptr_t)policy);
  SSL_CTX_set_max_cert_list(context, CERTIFICATES_MAX);
  SSL_CTX_set_verify_depth(context, DEPTH_MAX);
  if (!client_cert)
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
  SSL_CTX_set_options(context, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION); /* tls_limit_message() reads certificates */
#endif
}

/* A curve that is not named but written out, which RFC 5480 (2.1.1) forbids. OpenSSL computes with it while it parses
 * the certificate, before it is verified: square roots modulo a prime that was chosen for it take 0.2 s each. The
 * object identifiers are those of ANSI X9.62, without tag and length, which BER lets anybody write in several ways. */
static bool has_own_curve(const void *message, size_t len) {
  static const unsigned char prime[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 1, 1};
  static const unsigned char binary[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 1, 2};
  return memmem(message, len, prime, sizeof(prime)) || memmem(message, len, binary, sizeof(binary));
}

static size_t length_at(const unsigned char *at, size_t bytes) {
  size_t length = 0;
  while (bytes-- > 0)
    length = length << 8 | *at++;
  return length;
}

/* RFC 5246, 7.4.2; in RFC 8446, 4.4.2, a context stands before the list, which is empty here, and extensions behind
 * each certificate. OpenSSL refuses a message that breaks off. */
static bool has_too_many(const unsigned char *message, size_t len, bool tls13) {
  size_t count = 0, extensions = tls13 ? 2 : 0;
  for (size_t at = HEADER + LENGTH + (tls13 ? 1 : 0); at + LENGTH <= len && count <= COUNT_MAX; count++) {
    at += LENGTH + length_at(message + at, LENGTH);
    if (at + extensions <= len)
      at += extensions + length_at(message + at, extensions);
  }
  return count > COUNT_MAX;
}

/* OpenSSL offers no way to refuse a message here, or a key before it is parsed. The message is in its buffer, which it
 * has hashed already: with another first byte the length of the list is wrong (TLS 1.2), or its context (1.3). The
 * first error of the queue is the one raised here. */
void tls_limit_message(int version, const void *message, size_t len) {
  unsigned char *bytes = (unsigned char *)message;
  if (len <= HEADER || bytes[0] != SSL3_MT_CERTIFICATE)
    return;
  bool many = has_too_many(message, len, version >= TLS1_3_VERSION);
  if (!many && !has_own_curve(message, len))
    return;
  bytes[HEADER] = 0xff;
  ERR_raise(ERR_LIB_SSL, many ? SSL_R_EXCESSIVE_MESSAGE_SIZE : SSL_R_BAD_ECC_CERT);
}

/* OpenSSL names the alert or the message; these are the usual reasons. */
static const struct {
  const char *text, *cure;
} cures[] = {
    {"alert handshake failure", "the other side must offer ECDHE (X25519 or P-256), finite-field Diffie-Hellman (DHE, "
                                "ffdhe) is not used; or it wants a client certificate"},
    {"bad ecc cert",
     "a certificate of the other side has an elliptic curve with parameters of its own (RFC 5480 forbids "
     "that); let it be issued with a named curve, such as P-256"},
    {"excessive message size", "the other side sends more than 10 certificates, or 32 KiB of them; let it send its own "
                               "and the intermediate ones only"},
};

const char *tls_limit_cure(const char *text) {
  for (size_t i = 0; i < sizeof(cures) / sizeof(cures[0]); i++)
    if (strstr(text, cures[i].text))
      return cures[i].cure;
  return NULL;
}
