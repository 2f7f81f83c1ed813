/* SPDX-License-Identifier: MIT */
#include "http_sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The specification asks for 24 to 64 random bytes; its own first test vector has 18, and senders in the wild go on
 * both sides. Below 16 a key can be guessed. */
enum { KEY_MIN = 16, KEY_MAX = 128, SEED = 32, ED25519_SIGNATURE = 64, SHA256_SIZE = 32 };

struct key {
  bool ed25519;
  unsigned char bytes[KEY_MAX];
  size_t len;
};

static const char *skip_space(const char *p) { return p + strspn(p, " \t\r\n"); }
static size_t word_len(const char *p) { return strcspn(p, " \t\r\n"); }

/* Strict base64 with padding (RFC 4648 section 4). Returns the length, or 0 for anything else. */
static size_t decode_base64(const char *text, size_t len, unsigned char *out, size_t cap) {
  unsigned char raw[KEY_MAX + 4];
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t padding = 0;
  while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
    padding++;
  if (len == 0 || len % 4 != 0 || len / 4 * 3 > sizeof(raw) || len / 4 * 3 - padding > cap)
    return 0;
  for (size_t i = 0; i < len - padding; i++)
    if (memchr(alphabet, text[i], sizeof(alphabet) - 1) == NULL)
      return 0;
  int written = EVP_DecodeBlock(raw, (const unsigned char *)text, (int)len);
  if (written < 0)
    return 0;
  size_t used = (size_t)written - padding;
  memcpy(out, raw, used);
  OPENSSL_cleanse(raw, sizeof(raw));
  return used;
}

/* A 64-byte private key carries its public half; a pair that does not fit together is a copying mistake. */
static const char *check_pair(const struct key *key) {
  unsigned char public[SEED];
  size_t len = sizeof(public);
  EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->bytes, SEED);
  bool same = pkey && EVP_PKEY_get_raw_public_key(pkey, public, &len) == 1 && len == SEED &&
              (key->len == SEED || memcmp(public, key->bytes + SEED, SEED) == 0);
  EVP_PKEY_free(pkey);
  return same ? NULL : "the public half of a whsk_ key does not belong to its private half";
}

/* Reads one key. Returns NULL, or why it cannot be used. */
static const char *read_key(const char *word, size_t len, struct key *key) {
  static const char hmac[] = "whsec_", ed25519[] = "whsk_";
  size_t prefix;
  if (len > sizeof(hmac) - 1 && memcmp(word, hmac, sizeof(hmac) - 1) == 0)
    prefix = sizeof(hmac) - 1;
  else if (len > sizeof(ed25519) - 1 && memcmp(word, ed25519, sizeof(ed25519) - 1) == 0)
    prefix = sizeof(ed25519) - 1;
  else
    return "a key must begin with whsec_ (shared secret) or whsk_ (ed25519 private key)";
  key->ed25519 = prefix == sizeof(ed25519) - 1;
  key->len = decode_base64(word + prefix, len - prefix, key->bytes, sizeof(key->bytes));
  if (key->len == 0)
    return "what follows whsec_ or whsk_ must be base64 of at most 128 bytes, with padding";
  if (key->ed25519 && key->len != SEED && key->len != 2 * SEED)
    return "a whsk_ key must hold 32 bytes (seed) or 64 bytes (seed and public key)";
  if (!key->ed25519 && key->len < KEY_MIN)
    return "a whsec_ key must hold at least 16 bytes; make one with: echo whsec_$(openssl rand -base64 32)";
  return NULL;
}

bool http_sign_check(const char *keys, const char **why) {
  struct key key;
  size_t count = 0;
  *why = NULL;
  for (const char *p = skip_space(keys); *p && !*why; p = skip_space(p + word_len(p))) {
    *why = read_key(p, word_len(p), &key);
    if (!*why && key.ed25519)
      *why = check_pair(&key);
    if (!*why && ++count > HTTP_SIGN_KEYS)
      *why = "more than 4 keys in one option";
  }
  if (!*why && count == 0)
    *why = "the secret is empty";
  OPENSSL_cleanse(&key, sizeof(key));
  return *why == NULL;
}

/* The body is read where it lies; only the prefix id.timestamp. is made. */
static bool hmac_sha256(const struct key *key, const char *prefix, size_t prefix_len, const struct duebox_bytes *body,
                        unsigned char out[SHA256_SIZE]) {
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0), OSSL_PARAM_construct_end()};
  EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
  EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
  size_t len = 0;
  bool ok = ctx && EVP_MAC_init(ctx, key->bytes, key->len, params) &&
            EVP_MAC_update(ctx, (const unsigned char *)prefix, prefix_len) &&
            EVP_MAC_update(ctx, (const unsigned char *)body->data, body->len) &&
            EVP_MAC_final(ctx, out, &len, SHA256_SIZE) && len == SHA256_SIZE;
  EVP_MAC_CTX_free(ctx);
  EVP_MAC_free(mac);
  return ok;
}

/* Ed25519 hashes its message twice (RFC 8032 5.1.6), so libcrypto wants it in one piece: the one copy of a body. */
static bool sign_ed25519(const struct key *key, const char *prefix, size_t prefix_len, const struct duebox_bytes *body,
                         unsigned char out[ED25519_SIGNATURE]) {
  size_t len = ED25519_SIGNATURE;
  unsigned char *message = malloc(prefix_len + body->len);
  EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->bytes, SEED);
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  bool ok = message && pkey && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) == 1;
  if (ok) {
    memcpy(message, prefix, prefix_len);
    memcpy(message + prefix_len, body->data, body->len);
    ok = EVP_DigestSign(ctx, out, &len, message, prefix_len + body->len) == 1 && len == ED25519_SIGNATURE;
  }
  EVP_MD_CTX_free(ctx);
  EVP_PKEY_free(pkey);
  free(message);
  return ok;
}

static bool append(char out[HTTP_SIGNATURE_CAP], const char *version, const unsigned char *raw, size_t raw_len) {
  unsigned char text[HTTP_SIGN_PART];
  size_t at = strlen(out);
  EVP_EncodeBlock(text, raw, (int)raw_len);
  int len = snprintf(out + at, HTTP_SIGNATURE_CAP - at, "%s%s,%s", at ? " " : "", version, (const char *)text);
  return len > 0 && (size_t)len < HTTP_SIGNATURE_CAP - at;
}

static bool sign_with(const struct key *key, const char *prefix, size_t prefix_len, const struct duebox_bytes *body,
                      char out[HTTP_SIGNATURE_CAP]) {
  unsigned char raw[ED25519_SIGNATURE];
  if (key->ed25519)
    return sign_ed25519(key, prefix, prefix_len, body, raw) && append(out, "v1a", raw, ED25519_SIGNATURE);
  return hmac_sha256(key, prefix, prefix_len, body, raw) && append(out, "v1", raw, SHA256_SIZE);
}

bool http_sign(const char *keys, const char *id, int64_t timestamp, const struct duebox_bytes *body,
               char out[HTTP_SIGNATURE_CAP]) {
  struct key key;
  bool ok = true;
  size_t id_len = strlen(id);
  char *prefix = malloc(id_len + 24); /* two dots, at most 20 digits and a sign, NUL */
  if (!prefix)
    return false;
  size_t prefix_len = (size_t)snprintf(prefix, id_len + 24, "%s.%lld.", id, (long long)timestamp);
  for (const char *p = skip_space(keys); *p && ok; p = skip_space(p + word_len(p)))
    ok = read_key(p, word_len(p), &key) == NULL && sign_with(&key, prefix, prefix_len, body, out);
  OPENSSL_cleanse(&key, sizeof(key));
  free(prefix);
  return ok;
}
