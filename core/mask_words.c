/* SPDX-License-Identifier: MIT */
#include "core/mask_words.h"

#include <string.h>
#include <strings.h>

#include "core/base/attr.h"

bool mask_is_common(const char *text, size_t len) {
  static const char *const words[] = {
      "access",  "address", "admin",   "amqp",     "answer",    "attempt",   "authorization", "basic",   "bearer",
      "broker",  "channel", "client",  "closed",   "column",    "connect",   "connection",    "data",    "database",
      "default", "denied",  "duebox",  "empty",    "error",     "exchange",  "exist",         "failed",  "field",
      "file",    "from",    "group",   "guest",    "handshake", "header",    "headers",       "host",    "http",
      "https",   "insert",  "invalid", "kafka",    "local",     "localhost", "login",         "mariadb", "message",
      "method",  "mysql",   "name",    "null",     "order",     "outbox",    "password",      "path",    "payload",
      "plugin",  "port",    "query",   "queue",    "rabbit",    "rabbitmq",  "read",          "refused", "request",
      "reset",   "result",  "retry",   "root",     "route",     "schema",    "secret",        "select",  "server",
      "session", "shop",    "socket",  "state",    "status",    "table",     "target",        "task",    "tasks",
      "test",    "text",    "that",    "this",     "time",      "timeout",   "token",         "topic",   "type",
      "unknown", "update",  "user",    "username", "using",     "value",     "vhost",         "webhook", "with",
      "write",
  };
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (strlen(words[i]) == len && strncasecmp(words[i], text, len) == 0)
      return true;
  return false;
}
