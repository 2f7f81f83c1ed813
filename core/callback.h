/* SPDX-License-Identifier: MIT
 *
 * core/callback.h - callback URLs of HTTP tasks: each attempt has a token that only this installation can make.
 */
#ifndef CORE_CALLBACK_H
#define CORE_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"

enum { CALLBACK_TOKEN_LEN = 43 }; /* HMAC-SHA256, base64url without padding */

/* "<callbacks.base_url>/callback/<message id>/<attempt>/<token>", to be freed; NULL without a listener or memory. */
char *callback_url(const struct callbacks_config *config, const char *message_id, uint32_t attempt);
/* Constant-time comparison. */
bool callback_verify(const struct callbacks_config *config, const char *message_id, uint32_t attempt,
                     const char *token);

#endif
