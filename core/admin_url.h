/* SPDX-License-Identifier: MIT
 *
 * core/admin_url.h - where the operator's token may go. Pure.
 *
 * The command line sends it to admin.url, and to the address that a daemon has written into outbox_instances. For both
 * there is this one rule: http to this machine, https to any other, and nothing in the address that readers of URLs
 * take in different ways. A user or password in it would be of no use: the token is what a daemon asks for.
 */
#ifndef CORE_ADMIN_URL_H
#define CORE_ADMIN_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"
#include "core/base/err.h"

/* Whether other paths can be put behind this URL: scheme, host, perhaps a port and a path, nothing else. */
MUSTCHECK bool base_url_check(const char *url, struct err *err);

/* How much of such a URL a path that begins with a slash is put behind: all but the slashes at its end. */
size_t base_url_len(const char *url);

/* Whether a daemon may be asked at this URL, with the token or without one. False: err says why and what to do; it
 * quotes no password. */
MUSTCHECK bool admin_url_check(const char *url, bool token, bool allow_plaintext, struct err *err);

#endif
