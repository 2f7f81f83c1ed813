/* SPDX-License-Identifier: MIT
 *
 * core/callback.h - callback URLs of HTTP tasks: each attempt has a token that only this installation can make. It is
 * for one row of one outbox: a task that uses a message id again has other URLs.
 */
#ifndef CORE_CALLBACK_H
#define CORE_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/config.h"

enum { CALLBACK_MAC_LEN = 43 }; /* HMAC-SHA256, base64url without padding */

/* What a URL was given with: an attempt of a row, in that version of it (task_version()); 0 = not known. */
struct callback_copy {
  uint32_t attempt;
  uint64_t row, version;
  uint32_t lane; /* of its route; in the URL where the version is */
};

/* "<callbacks.base_url>/callback/<message id>/<attempt>/<row>-<version>-<lane>.<mac>", to be freed; NULL without a
 * listener or memory. */
char *callback_url(const struct callbacks_config *config, const char *message_id, const struct callback_copy *copy);
/* The MAC in such a URL, the only part of it that is a secret; NULL where it has none. */
const char *callback_mac(const char *url);
/* Whether a token is ours for this attempt, and for which row and version, and of which lane. Constant-time comparison.
 */
MUSTCHECK bool callback_verify(const struct callbacks_config *config, const char *message_id, const char *token,
                               struct callback_copy *copy);

#endif
