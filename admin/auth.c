/* SPDX-License-Identifier: MIT
 *
 * admin/auth.c - the rules of admin.h, in the order in which they are applied: host, token, media type, origin.
 *
 * The host rule stops DNS rebinding: a browser that was lured to a name that resolves to this machine sends that name,
 * and only names that we go by (or plain addresses, which cannot be rebound) are answered. There are no cookies, so a
 * foreign page has no authority to borrow; media type and origin are the second wall.
 */
#include "admin/auth.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>
#include <strings.h>

#include "admin/problem.h"

/* Fewer characters cannot hold 96 bits, even in base64. */
enum { TOKEN_MIN = 16 };

/* Copies the host of "host[:port]" or "[v6][:port]" without brackets; false when it is not one. */
static bool split_host(const char *text, size_t len, char host[AUTH_HOST_MAX]) {
  size_t host_len = strcspn(text, ":");
  if (len > 0 && *text == '[') {
    const char *end = memchr(text, ']', len);
    if (!end || (end + 1 < text + len && end[1] != ':'))
      return false;
    text++;
    host_len = (size_t)(end - text);
  } else if (host_len > len) {
    host_len = len;
  }
  if (host_len == 0 || host_len >= AUTH_HOST_MAX)
    return false;
  memcpy(host, text, host_len);
  host[host_len] = '\0';
  return true;
}

static bool is_address(const char *host) {
  unsigned char any[sizeof(struct in6_addr)];
  return inet_pton(AF_INET, host, any) == 1 || inet_pton(AF_INET6, host, any) == 1;
}

/* The authority part of an http or https URL; *len = 0 when it has none. */
static const char *authority(const char *url, size_t *len) {
  *len = 0;
  if (strncasecmp(url, "http://", 7) == 0)
    url += 7;
  else if (strncasecmp(url, "https://", 8) == 0)
    url += 8;
  else
    return url;
  *len = strcspn(url, "/?#");
  return url;
}

/* The port of an authority, or that of the scheme; 0 = it is none. */
static unsigned port_of(const char *authority, size_t len, bool tls) {
  const char *at = authority + len;
  unsigned port = 0;
  while (at > authority && at[-1] >= '0' && at[-1] <= '9')
    at--;
  if (at == authority || at[-1] != ':' || at == authority + len)
    return len > 0 && authority[len - 1] == ':' ? 0 : tls ? 443 : 80;
  for (; at < authority + len && port <= UINT16_MAX; at++)
    port = port * 10 + (unsigned)(*at - '0');
  return port <= UINT16_MAX ? port : 0;
}

static bool is_tls(const char *url) { return strncasecmp(url, "https://", 8) == 0; }

bool auth_init(struct auth *auth, const struct admin_config *config, struct err *err) {
  *auth = (struct auth){0};
  size_t len;
  const char *host = config->url ? authority(config->url, &len) : NULL;
  if (host && !split_host(host, len, auth->url_host))
    return err_set(err, 0, "admin.url: \"%s\" is not an http:// or https:// address with a host", config->url);
  if (host) {
    auth->url_tls = is_tls(config->url);
    auth->url_port = port_of(host, len, auth->url_tls);
  }
  if (strlen(config->host) >= AUTH_HOST_MAX)
    return err_set(err, 0, "admin.listen: the host is longer than %d characters", AUTH_HOST_MAX - 1);
  memcpy(auth->listen_host, config->host, strlen(config->host) + 1);
  if (!config->token)
    return true;
  if (strlen(config->token) < TOKEN_MIN)
    return err_set(err, 0,
                   "admin.token: it has fewer than %d characters and could be guessed; "
                   "make one with: openssl rand -hex 32",
                   TOKEN_MIN);
  SHA256((const unsigned char *)config->token, strlen(config->token), auth->digest);
  auth->has_token = true;
  return true;
}

static bool host_is_ours(const struct auth *auth, const char *header) {
  char host[AUTH_HOST_MAX];
  if (!header) /* HTTP/1.0 probes; every browser sends it */
    return true;
  if (!split_host(header, strlen(header), host))
    return false;
  return is_address(host) || strcasecmp(host, "localhost") == 0 || strcasecmp(host, auth->listen_host) == 0 ||
         strcasecmp(host, auth->url_host) == 0;
}

enum shown { SHOWN_NOTHING, SHOWN_WRONG, SHOWN_RIGHT };

/* Compares digests, so that neither content nor length of the secret shows in the time it takes. */
static enum shown token_shown(const struct auth *auth, const char *header) {
  unsigned char digest[AUTH_DIGEST_LEN];
  if (!header)
    return SHOWN_NOTHING;
  if (!auth->has_token || strncasecmp(header, "Bearer ", 7) != 0)
    return SHOWN_WRONG;
  const char *token = header + 7 + strspn(header + 7, " ");
  SHA256((const unsigned char *)token, strlen(token), digest);
  return CRYPTO_memcmp(digest, auth->digest, sizeof(digest)) == 0 ? SHOWN_RIGHT : SHOWN_WRONG;
}

static bool refuse_token(enum shown shown, struct response *response) {
  if (shown == SHOWN_WRONG)
    respond_problem(response, PROBLEM_UNAUTHORIZED, "the token is not the one in admin.token_file");
  else
    respond_problem(response, PROBLEM_UNAUTHORIZED,
                    "send the token of admin.token_file: Authorization: Bearer <token>");
  response->suspicious = shown == SHOWN_WRONG;
  return false;
}

/* A page of another origin cannot send this media type without asking first (CORS), and is never told yes. A
 * request without a body has no type; the token in it takes the same question, and Origin says where it is from. */
static bool is_json_or_nothing(const struct caller *caller) {
  static const char wanted[] = "application/json";
  size_t len = sizeof(wanted) - 1;
  const char *content_type = caller->content_type;
  if (!content_type)
    return caller->bodiless;
  return strncasecmp(content_type, wanted, len) == 0 && strchr("; \t", content_type[len]);
}

static bool same_origin(const struct auth *auth, const struct caller *caller) {
  if (caller->fetch_site && strcmp(caller->fetch_site, "same-origin") != 0 && strcmp(caller->fetch_site, "none") != 0)
    return false;
  if (!caller->origin)
    return true;
  size_t len;
  char host[AUTH_HOST_MAX];
  const char *origin = authority(caller->origin, &len);
  if (caller->host && strlen(caller->host) == len && strncasecmp(caller->host, origin, len) == 0)
    return true;
  bool tls = is_tls(caller->origin);
  return split_host(origin, len, host) && strcasecmp(host, auth->url_host) == 0 && tls == auth->url_tls &&
         port_of(origin, len, tls) == auth->url_port;
}

enum insight auth_insight(const struct auth *auth, const struct caller *caller) {
  if (auth->has_token)
    return token_shown(auth, caller->authorization) == SHOWN_RIGHT ? INSIGHT_ALL : INSIGHT_NOTHING;
  return caller->loopback && !caller->forwarded ? INSIGHT_STATE : INSIGHT_NOTHING;
}

static bool allows_reading(const struct auth *auth, const struct caller *caller, enum insight needed,
                           struct response *response) {
  enum insight insight = auth_insight(auth, caller);
  if (insight >= needed)
    return true;
  if (auth->has_token)
    return refuse_token(token_shown(auth, caller->authorization), response);
  if (insight == INSIGHT_STATE) {
    respond_problem(response, PROBLEM_FORBIDDEN, "what consumers sent is shown for a token; set admin.token_file");
    return false;
  }
  respond_problem(response, PROBLEM_FORBIDDEN,
                  "this listener answers local callers only; set admin.token_file to let others read");
  return false;
}

static bool allows_operating(const struct auth *auth, const struct caller *caller, struct response *response) {
  if (!auth->has_token) {
    respond_problem(response, PROBLEM_READ_ONLY, "commands need a token; set admin.token_file");
    return false;
  }
  enum shown shown = token_shown(auth, caller->authorization);
  if (shown != SHOWN_RIGHT)
    return refuse_token(shown, response);
  if (!is_json_or_nothing(caller)) {
    respond_problem(response, PROBLEM_MEDIA_TYPE, "send Content-Type: application/json");
    return false;
  }
  if (!same_origin(auth, caller)) {
    respond_problem(response, PROBLEM_ORIGIN, "commands from pages of another origin are refused");
    return false;
  }
  return true;
}

bool auth_allows(const struct auth *auth, const struct caller *caller, enum role role, struct response *response) {
  if (role == ROLE_CALLBACK)
    return true;
  if (!host_is_ours(auth, caller->host)) {
    respond_problem(response, PROBLEM_HOST,
                    "this daemon does not go by the name in the Host header; use its address, or put the name into "
                    "admin.url");
    return false;
  }
  if (role == ROLE_READ || role == ROLE_RECORDS)
    return allows_reading(auth, caller, role == ROLE_READ ? INSIGHT_STATE : INSIGHT_ALL, response);
  return role == ROLE_OPEN || allows_operating(auth, caller, response);
}
