/* SPDX-License-Identifier: MIT
 *
 * duebox/link.h - the one rule for every kind of connection: database, Kafka, AMQP and HTTP.
 *
 * Between hosts a connection is encrypted and the peer's certificate and name are verified, unless the operator asks
 * for less by name: allow_plaintext, allow_unverified. Off or on the host, no password is sent where a reader of the
 * connection, or a stranger who answers on the port, would learn it, if the protocol has another method.
 *
 * Pure; nothing to link against.
 */
#ifndef DUEBOX_LINK_H
#define DUEBOX_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct duebox_link {
  const char *host; /* name or address, "[v6]" too; NULL: a unix socket */
  size_t host_len;
  bool tls;
  bool verified;         /* certificate and name of the peer are checked */
  bool reveals_password; /* the login sends the password itself although the protocol has other methods */
  bool allow_plaintext, allow_unverified;
};

enum duebox_link_verdict {
  DUEBOX_LINK_ALLOWED = 0,
  DUEBOX_LINK_PLAINTEXT,  /* not encrypted, to another host */
  DUEBOX_LINK_UNVERIFIED, /* encrypted for whoever answers */
  DUEBOX_LINK_PASSWORD,   /* the password would be readable */
};

/* One number of a dotted address: 0 to 255 without leading zeros. Moves *at behind it. */
static inline bool duebox_link_octet(const char **at, const char *end) {
  unsigned value = 0;
  const char *first = *at;
  while (*at < end && **at >= '0' && **at <= '9' && *at - first < 3)
    value = value * 10 + (unsigned)(*(*at)++ - '0');
  return *at > first && value <= 255 && (*first != '0' || *at == first + 1);
}

/* Whether a host is this machine by its very name: localhost, 127.x.x.x or ::1. Any other name may resolve to any
 * machine. */
static inline bool duebox_link_is_local(const char *host, size_t len) {
  static const char *const names[] = {"localhost", "::1", "0:0:0:0:0:0:0:1"};
  if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
    host++;
    len -= 2;
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t same = 0;
    while (same < len && names[i][same] &&
           (host[same] >= 'A' && host[same] <= 'Z' ? host[same] + ('a' - 'A') : host[same]) == names[i][same])
      same++;
    if (same == len && names[i][same] == '\0')
      return true;
  }
  if (len < 4 || memcmp(host, "127.", 4) != 0)
    return false;
  const char *at = host + 4, *end = host + len;
  return duebox_link_octet(&at, end) && at < end && *at++ == '.' && duebox_link_octet(&at, end) && at < end &&
         *at++ == '.' && duebox_link_octet(&at, end) && at == end;
}

static inline enum duebox_link_verdict duebox_link_judge(const struct duebox_link *link) {
  bool local = !link->host || duebox_link_is_local(link->host, link->host_len);
  if (!link->tls && !local && !link->allow_plaintext)
    return DUEBOX_LINK_PLAINTEXT;
  if (link->tls && !link->verified && !link->allow_unverified)
    return DUEBOX_LINK_UNVERIFIED;
  if (link->host && link->reveals_password && !(link->tls && link->verified))
    return DUEBOX_LINK_PASSWORD;
  return DUEBOX_LINK_ALLOWED;
}

#endif
