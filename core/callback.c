/* SPDX-License-Identifier: MIT */
#include "core/callback.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_token(const char *secret, const char *message_id, uint32_t attempt,
                       char token[CALLBACK_TOKEN_LEN + 1]) {
  char text[128];
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned mac_len = 0;
  int len = snprintf(text, sizeof text, "%s.%" PRIu32, message_id, attempt);
  if (len < 0 || (size_t)len >= sizeof text ||
      !HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, (size_t)len, mac, &mac_len))
    return false;
  unsigned char base64[64];
  EVP_EncodeBlock(base64, mac, (int)mac_len);
  for (int i = 0; i < CALLBACK_TOKEN_LEN; i++)
    token[i] = base64[i] == '+' ? '-' : base64[i] == '/' ? '_' : (char)base64[i];
  token[CALLBACK_TOKEN_LEN] = '\0';
  return true;
}

/* Message ids may hold any printable ASCII: what is not unreserved (RFC 3986) is percent-encoded. */
static void put_encoded(char **at, const char *text) {
  static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (; *text; text++)
    *at += strchr(unreserved, *text) ? sprintf(*at, "%c", *text) : sprintf(*at, "%%%02X", (unsigned char)*text);
}

char *callback_url(const struct callbacks_config *config, const char *message_id, uint32_t attempt) {
  char token[CALLBACK_TOKEN_LEN + 1];
  if (!config->host || !make_token(config->secret, message_id, attempt, token))
    return NULL;
  char *url = malloc(strlen(config->base_url) + 3 * strlen(message_id) + CALLBACK_TOKEN_LEN + 32);
  if (url) {
    char *at = url + sprintf(url, "%s/callback/", config->base_url);
    put_encoded(&at, message_id);
    sprintf(at, "/%" PRIu32 "/%s", attempt, token);
  }
  return url;
}

static bool is_token(const char *secret, const char *message_id, uint32_t attempt, const char *token) {
  char ours[CALLBACK_TOKEN_LEN + 1];
  return secret && make_token(secret, message_id, attempt, ours) && CRYPTO_memcmp(ours, token, CALLBACK_TOKEN_LEN) == 0;
}

bool callback_verify(const struct callbacks_config *config, const char *message_id, uint32_t attempt,
                     const char *token) {
  return strlen(token) == CALLBACK_TOKEN_LEN && (is_token(config->secret, message_id, attempt, token) ||
                                                 is_token(config->previous_secret, message_id, attempt, token));
}
