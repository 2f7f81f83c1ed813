/* SPDX-License-Identifier: MIT */
#include "core/admin_url.h"

#include <duebox/link.h>
#include <string.h>

#include "core/url_login.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS

/* How many characters of "host", "host:port" or "[v6]:port" are the host; 0 = it is none of them. */
static size_t host_len(const char *authority, size_t len) {
  size_t host;
  if (len > 0 && authority[0] == '[') {
    host = 1 + strspn(authority + 1, LETTERS ":.%");
    host = authority[host] == ']' && host > 1 ? host + 1 : 0;
  } else {
    host = strspn(authority, LETTERS "-._");
  }
  if (host == 0 || host >= len)
    return host == len ? host : 0;
  size_t port = authority[host] == ':' ? strspn(authority + host + 1, DIGITS) : 0;
  return port > 0 && port <= 5 && host + 1 + port == len ? host : 0;
}

bool base_url_check(const char *url, struct err *err) {
  size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
  const char *authority = url + scheme;
  size_t len = strcspn(authority, "/?#\\");
  if (scheme == 0)
    return err_set(err, 0, "\"%.80s\" is no URL; it begins with http:// or https://", url);
  struct url_login login;
  if (memchr(authority, '@', len) || url_login_find(url, &login))
    return err_set(err, 0, "has a user or a password; leave them out: consumers get the URL, and log it");
  for (const char *path = authority + len; *path; path++)
    if (*path <= ' ' || *path > '~' || strchr("?#\\\"<>", *path))
      return err_set(err, 0,
                     "\"%.80s\" is not what a URL begins with; write it as https://host:port/path, without ? and #, "
                     "blanks or control characters",
                     url);
  return host_len(authority, len) > 0 ||
         err_set(err, 0, "\"%.80s\" names no host; write it as https://host:port/path", url);
}

size_t base_url_len(const char *url) {
  size_t len = strlen(url);
  while (len > 0 && url[len - 1] == '/')
    len--;
  return len;
}

bool admin_url_check(const char *url, bool token, bool allow_plaintext, struct err *err) {
  bool tls = strncmp(url, "https://", 8) == 0;
  if (strchr(url, '@'))
    return err_set(err, 0, "has a user or a password; leave them out, a daemon asks for the token of admin.token_file");
  if (!tls && strncmp(url, "http://", 7) != 0)
    return err_set(err, 0, "\"%.80s\" is no URL; it begins with http:// or https://", url);
  const char *authority = url + (tls ? 8 : 7);
  size_t len = strcspn(authority, "/?#\\");
  const struct duebox_link link = {.host = authority,
                                   .host_len = host_len(authority, len),
                                   .tls = tls,
                                   .verified = true,
                                   .allow_plaintext = allow_plaintext || !token};
  if (link.host_len == 0 || authority[len + strspn(authority + len, LETTERS "/-._~")])
    return err_set(err, 0, "\"%.80s\" is no address of a daemon; write it as https://host:port/path", url);
  return duebox_link_judge(&link) == DUEBOX_LINK_ALLOWED ||
         err_set(err, 0,
                 "%.200s is another machine and not https: the token would cross the network readable; make it the "
                 "https:// address of a proxy that encrypts, or set admin.allow_plaintext: true",
                 url);
}
