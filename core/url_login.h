/* SPDX-License-Identifier: MIT
 *
 * core/url_login.h - the user and the password in "scheme://user:password@host", for all who keep passwords from being
 * shown. Pure.
 */
#ifndef CORE_URL_LOGIN_H
#define CORE_URL_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"

/* The user is from `user` to `colon`, the password from behind that to `at`. */
struct url_login {
  const char *user, *colon, *at;
};

/* The login in an authority of so many bytes, which is what stands behind "://" and before the path. */
MUSTCHECK bool url_login_at(const char *authority, size_t len, struct url_login *out);
/* That of the first URL in the text that has one; behind out->at there may be another. A password in which a "/", "?"
 * or "#" is not escaped makes no valid URL, and is one all the same. */
MUSTCHECK bool url_login_find(const char *text, struct url_login *out);

#endif
