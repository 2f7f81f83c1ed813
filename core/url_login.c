/* SPDX-License-Identifier: MIT */
#include "core/url_login.h"

#include <string.h>

bool url_login_at(const char *authority, size_t len, struct url_login *out) {
  const char *at = memrchr(authority, '@', len);
  const char *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
  *out = (struct url_login){authority, colon, at};
  return colon != NULL;
}

/* Whether what stands behind the host's colon is no port, and so a password. A port may come from a template. */
static bool has_no_port(const char *authority, size_t len) {
  const char *colon = *authority == '[' ? NULL : memchr(authority, ':', len);
  return colon && colon[1] != '{' && strspn(colon + 1, "0123456789") < (size_t)(authority + len - colon - 1);
}

bool url_login_find(const char *text, struct url_login *out) {
  for (const char *scheme = text; (scheme = strstr(scheme, "://")); scheme += 3) {
    const char *authority = scheme + 3;
    size_t len = strcspn(authority, "/?#");
    if (url_login_at(authority, len, out) ||
        (has_no_port(authority, len) && url_login_at(authority, strcspn(authority, " \t\r\n"), out)))
      return true;
  }
  return false;
}
