/* SPDX-License-Identifier: MIT
 *
 * admin/auth.h - who is calling, and may they.
 *
 * Pure but for the digest it keeps: no libmicrohttpd, no clock, so that the whole matrix is tested as data.
 */
#ifndef ADMIN_AUTH_H
#define ADMIN_AUTH_H

#include "admin/http.h"

enum { AUTH_DIGEST_LEN = 32, AUTH_HOST_MAX = 256 };

struct auth {
  bool has_token;
  unsigned char digest[AUTH_DIGEST_LEN]; /* SHA-256 of the token */
  char listen_host[AUTH_HOST_MAX];       /* admin.listen without port */
  char url_host[AUTH_HOST_MAX];          /* host of admin.url, "" = none */
  unsigned url_port;                     /* its port, given or not */
  bool url_tls;
};

/* What a request says of its sender. Texts may be NULL: header absent. */
struct caller {
  bool loopback;  /* by the socket's peer address */
  bool forwarded; /* a proxy's header is there: the peer is not the sender */
  bool bodiless;  /* neither a length above 0 nor chunks are announced */
  const char *host, *authorization, *origin, *fetch_site, *content_type;
};

MUSTCHECK bool auth_init(struct auth *auth, const struct admin_config *config, struct err *err);
/* What the caller may see, whichever endpoint is asked. */
enum insight auth_insight(const struct auth *auth, const struct caller *caller);
/* True when the caller may use the endpoint; false = *response says why not. */
MUSTCHECK bool auth_allows(const struct auth *auth, const struct caller *caller, enum role role,
                           struct response *response);

#endif
