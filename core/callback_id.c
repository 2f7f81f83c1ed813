/* SPDX-License-Identifier: MIT */
#include "core/callback_id.h"

#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"

/* Whether it comes through as it is, however clients and proxies decode and normalise a path. */
static bool is_plain(const char *id) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  size_t len = strlen(id);
  return len > 0 && strspn(id, plain) == len && id[0] != '.' && id[len - 1] != '.' && !strstr(id, "..");
}

char *callback_id_write(const char *id, char *at) {
  if (is_plain(id))
    return stpcpy(at, id);
  *at++ = '~';
  for (; *id; id++)
    at += snprintf(at, 3, "%02x", (unsigned char)*id);
  return at;
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static bool decode_id(const char *hex, char id[RECORD_ID_MAX + 1]) {
  size_t len = 0;
  for (; *hex && len < RECORD_ID_MAX; hex += 2) {
    int high = hex_digit(hex[0]), low = high < 0 ? -1 : hex_digit(hex[1]);
    if (low < 0 || high * 16 + low <= ' ' || high * 16 + low > '~')
      return false;
    id[len++] = (char)(high * 16 + low);
  }
  id[len] = '\0';
  return !*hex && len > 0 && !is_plain(id);
}

bool callback_id_read(const char *segment, char id[RECORD_ID_MAX + 1]) {
  if (*segment == '~' && decode_id(segment + 1, id))
    return true;
  return snprintf(id, RECORD_ID_MAX + 1, "%s", segment) <= RECORD_ID_MAX;
}

uint32_t callback_lane(const char *route) { return (uint32_t)(hash_text(HASH_EMPTY, route) % UINT16_MAX) + 1; }
