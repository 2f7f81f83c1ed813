/* SPDX-License-Identifier: MIT
 *
 * http_sign.h - the value of `webhook-signature` after Standard Webhooks 1.0 (spec/standard-webhooks.md).
 *
 * Pure: keys as text, id, time and body in; one line of text out. Keys are read for each signature and wiped after it,
 * so nothing here outlives a call. A text of keys holds one or several of them, separated by white space; each makes
 * one signature, so that a receiver can change from an old key to a new one without a gap:
 *   whsec_<base64>  HMAC-SHA256, signature "v1,<base64>"
 *   whsk_<base64>   ed25519 private key (32-byte seed, or seed and public key), signature "v1a,<base64>"
 */
#ifndef PLUGINS_HTTP_SIGN_H
#define PLUGINS_HTTP_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duebox/task.h>

#define HTTP_SIGN_KEYS 4  /* most keys in one text */
#define HTTP_SIGN_PART 96 /* "v1a," + base64 of 64 bytes + separator, rounded up */
#define HTTP_SIGNATURE_CAP (2 * HTTP_SIGN_KEYS * HTTP_SIGN_PART) /* for a current and a previous text */

/* Whether every key in the text can be used; otherwise *why is a constant text that holds no part of the key. */
__attribute__((warn_unused_result)) bool http_sign_check(const char *keys, const char **why);

/* Appends one signature for each key to the list in out (NUL-terminated, HTTP_SIGNATURE_CAP bytes; "" to begin with).
 * The signed bytes are id "." timestamp "." body. id must not contain a dot: the caller has checked. False when a key
 * cannot be used or memory is short; out is unchanged then or holds what came before. */
__attribute__((warn_unused_result)) bool http_sign(const char *keys, const char *id, int64_t timestamp,
                                                   const struct duebox_bytes *body, char out[HTTP_SIGNATURE_CAP]);

#endif
