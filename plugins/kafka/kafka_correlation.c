/* SPDX-License-Identifier: MIT */
#include "kafka_correlation.h"

#include <string.h>
#include <strings.h>

#include <duebox/plugin.h>

static const char *const names[] = {"duebox-id", "correlation_id", "kafka_correlationId"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

bool kafka_correlates(const char *name) {
  for (size_t i = 0; i < NAMES; i++)
    if (strcasecmp(name, names[i]) == 0)
      return true;
  return false;
}

const char *kafka_correlation_of(const rd_kafka_message_t *message, char id[KAFKA_CORRELATION_CAP]) {
  struct duebox_bytes found[NAMES] = {{NULL, 0}};
  bool differs[NAMES] = {false};
  rd_kafka_headers_t *headers;
  const char *name;
  const void *value;
  size_t len;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return NULL;
  for (size_t at = 0; !rd_kafka_header_get_all(headers, at, &name, &value, &len); at++)
    for (size_t i = 0; i < NAMES; i++) {
      if (!value || strcmp(name, names[i]) != 0)
        continue;
      differs[i] = differs[i] || (found[i].data && (found[i].len != len || memcmp(found[i].data, value, len) != 0));
      found[i] = (struct duebox_bytes){value, len};
    }
  for (size_t i = 0; i < NAMES && !differs[i]; i++) {
    if (found[i].len == 0 || found[i].len >= KAFKA_CORRELATION_CAP || memchr(found[i].data, '\0', found[i].len))
      continue;
    memcpy(id, found[i].data, found[i].len);
    id[found[i].len] = '\0';
    return id;
  }
  return NULL;
}
