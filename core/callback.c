/* SPDX-License-Identifier: MIT */
#include "core/callback.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/admin_url.h"
#include "core/base/hash.h"
#include "core/callback_id.h"

enum { COPY_MAX = 56 };

/* "<row>", "<row>-<version>", "<row>-<version>-<lane>": as far as it is known. */
static void name_copy(const struct callback_copy *copy, char out[COPY_MAX]) {
  if (copy->version && copy->lane)
    snprintf(out, COPY_MAX, "%" PRIu64 "-%" PRIu64 "-%" PRIu32, copy->row, copy->version, copy->lane);
  else if (copy->version)
    snprintf(out, COPY_MAX, "%" PRIu64 "-%" PRIu64, copy->row, copy->version);
  else
    snprintf(out, COPY_MAX, "%" PRIu64, copy->row);
}

/* outbox: whose task it is; NULL: of a URL that does not say. */
static bool make_mac(const char *secret, const char *outbox, const char *message_id, const struct callback_copy *copy,
                     char out[CALLBACK_MAC_LEN + 1]) {
  char text[512], name[COPY_MAX];
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned mac_len = 0;
  name_copy(copy, name);
  int len = snprintf(text, sizeof text, "%s.%" PRIu32 ".%s%s%s", message_id, copy->attempt, name, outbox ? "@" : "",
                     outbox ? outbox : "");
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

char *callback_url(const struct callbacks_config *config, const char *message_id, const struct callback_copy *copy) {
  char mac[CALLBACK_MAC_LEN + 1], name[COPY_MAX];
  if (!config->host || !make_mac(config->secret, config->outbox, message_id, copy, mac))
    return NULL;
  name_copy(copy, name);
  char *url = malloc(strlen(config->base_url) + 2 * strlen(message_id) + CALLBACK_MAC_LEN + COPY_MAX + 32);
  if (url) {
    char *at = url + sprintf(url, "%.*s/callback/", (int)base_url_len(config->base_url), config->base_url);
    sprintf(callback_id_write(message_id, at), "/%" PRIu32 "/%s.%s", copy->attempt, name, mac);
  }
  return url;
}

const char *callback_mac(const char *url) {
  const char *dot = strrchr(url, '.');
  return dot && strlen(dot + 1) == CALLBACK_MAC_LEN ? dot + 1 : NULL;
}

static bool is_mac(const char *secret, const char *outbox, const char *message_id, const struct callback_copy *copy,
                   const char *mac) {
  char ours[CALLBACK_MAC_LEN + 1];
  return secret && make_mac(secret, outbox, message_id, copy, ours) && CRYPTO_memcmp(ours, mac, CALLBACK_MAC_LEN) == 0;
}

/* One spelling for each number. A row may have the id 0: SQL mode NO_AUTO_VALUE_ON_ZERO. */
static bool read_number(const char **at, uint64_t least, uint64_t *out) {
  char *end;
  bool number = (**at >= '1' && **at <= '9') || (least == 0 && **at == '0' && (at[0][1] < '0' || at[0][1] > '9'));
  *out = strtoull(*at, &end, 10);
  *at = end;
  return number;
}

bool callback_verify(const struct callbacks_config *config, const char *message_id, const char *token,
                     struct callback_copy *copy) {
  const char *at = token;
  uint64_t lane = 0;
  copy->version = 0;
  if (!read_number(&at, 0, &copy->row) || (*at == '-' && (at++, !read_number(&at, 1, &copy->version))) ||
      (*at == '-' && (at++, !read_number(&at, 1, &lane))) || lane > UINT16_MAX || *at != '.' ||
      strlen(++at) != CALLBACK_MAC_LEN)
    return false;
  copy->lane = (uint32_t)lane;
  return is_mac(config->secret, config->outbox, message_id, copy, at) ||
         is_mac(config->previous_secret, config->outbox, message_id, copy, at) ||
         is_mac(config->previous_secret, NULL, message_id, copy, at); /* of programs that did not know of outboxes */
}
