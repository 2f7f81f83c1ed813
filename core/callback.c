/* SPDX-License-Identifier: MIT */
#include "core/callback.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_mac(const char *secret, const char *message_id, uint64_t row, uint32_t attempt,
                     char out[CALLBACK_MAC_LEN + 1]) {
  char text[128];
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned mac_len = 0;
  int len = snprintf(text, sizeof text, "%s.%" PRIu32 ".%" PRIu64, message_id, attempt, row);
  if (len < 0 || (size_t)len >= sizeof text ||
      !HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, (size_t)len, mac, &mac_len))
    return false;
  unsigned char base64[64];
  EVP_EncodeBlock(base64, mac, (int)mac_len);
  for (int i = 0; i < CALLBACK_MAC_LEN; i++)
    out[i] = base64[i] == '+' ? '-' : base64[i] == '/' ? '_' : (char)base64[i];
  out[CALLBACK_MAC_LEN] = '\0';
  return true;
}

/* Message ids may hold any printable ASCII: what is not unreserved (RFC 3986) is percent-encoded. */
static void put_encoded(char **at, const char *text) {
  static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (; *text; text++)
    *at += strchr(unreserved, *text) ? sprintf(*at, "%c", *text) : sprintf(*at, "%%%02X", (unsigned char)*text);
}

char *callback_url(const struct callbacks_config *config, const char *message_id, uint64_t row, uint32_t attempt) {
  char mac[CALLBACK_MAC_LEN + 1];
  if (!config->host || !make_mac(config->secret, message_id, row, attempt, mac))
    return NULL;
  char *url = malloc(strlen(config->base_url) + 3 * strlen(message_id) + CALLBACK_MAC_LEN + 64);
  if (url) {
    char *at = url + sprintf(url, "%s/callback/", config->base_url);
    put_encoded(&at, message_id);
    sprintf(at, "/%" PRIu32 "/%" PRIu64 ".%s", attempt, row, mac);
  }
  return url;
}

static bool is_mac(const char *secret, const char *message_id, uint64_t row, uint32_t attempt, const char *mac) {
  char ours[CALLBACK_MAC_LEN + 1];
  return secret && make_mac(secret, message_id, row, attempt, ours) && CRYPTO_memcmp(ours, mac, CALLBACK_MAC_LEN) == 0;
}

bool callback_verify(const struct callbacks_config *config, const char *message_id, uint32_t attempt, const char *token,
                     uint64_t *row) {
  char *mac;
  *row = strtoull(token, &mac, 10);
  if (token[0] < '1' || token[0] > '9' || *mac != '.' || strlen(++mac) != CALLBACK_MAC_LEN)
    return false;
  return is_mac(config->secret, message_id, *row, attempt, mac) ||
         is_mac(config->previous_secret, message_id, *row, attempt, mac);
}
