/* SPDX-License-Identifier: MIT
 *
 * core/callback.h - callback URLs of HTTP tasks: each attempt has a token that only this installation can make. It is
 * for one row: a task that uses a message id again has other URLs.
 */
#ifndef CORE_CALLBACK_H
#define CORE_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"

enum { CALLBACK_MAC_LEN = 43 }; /* HMAC-SHA256, base64url without padding */

/* "<callbacks.base_url>/callback/<message id>/<attempt>/<row>.<mac>", to be freed; NULL without a listener or memory.
 */
char *callback_url(const struct callbacks_config *config, const char *message_id, uint64_t row, uint32_t attempt);
/* The row that a token is for. Constant-time comparison. */
bool callback_verify(const struct callbacks_config *config, const char *message_id, uint32_t attempt, const char *token,
                     uint64_t *row);

#endif
