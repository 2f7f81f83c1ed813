/* SPDX-License-Identifier: MIT */
#include "http_url.h"

#include <string.h>
#include <strings.h>

bool http_url_split(const char *text, struct http_url *out) {
  static const char plain[] = "http://", secure[] = "https://";
  if (strncasecmp(text, plain, sizeof(plain) - 1) == 0) {
    out->plain = true;
    out->authority = text + sizeof(plain) - 1;
  } else if (strncasecmp(text, secure, sizeof(secure) - 1) == 0) {
    out->plain = false;
    out->authority = text + sizeof(secure) - 1;
  } else {
    return false;
  }
  out->authority_len = strcspn(out->authority, "/?#\\");
  out->rest = out->authority + out->authority_len;
  return out->authority_len > 0;
}

bool http_url_has_dot_segment(const struct http_url *url) {
  const char *p = url->rest;
  while (*p == '/' || *p == '\\') {
    p++;
    size_t len = strcspn(p, "/?#\\");
    if ((len == 1 && p[0] == '.') || (len == 2 && p[0] == '.' && p[1] == '.'))
      return true;
    p += len;
  }
  return false;
}
