/* SPDX-License-Identifier: MIT
 *
 * http_policy.h - an instance's rule about addresses, made from its options, and the text that explains a refusal.
 *
 * Pure but for the memory of the networks. The rule is the same for every route of an instance, because a kept
 * connection is used again by any of them.
 */
#ifndef PLUGINS_HTTP_POLICY_H
#define PLUGINS_HTTP_POLICY_H

#include "http_address.h"
#include "http_options.h"

struct http_policy {
  struct http_address_policy rule;
  struct http_network *networks; /* owned; rule points to it */
};

/* The options have passed http_options_check(). False when memory is short. */
__attribute__((warn_unused_result)) bool http_policy_make(const struct http_options *options, struct http_policy *out);
void http_policy_free(struct http_policy *policy);

/* The address that a host as libcurl's parser gives it stands for; false when it is a name. */
__attribute__((warn_unused_result)) bool http_policy_literal(const char *host, struct http_address *out);

/* Whether it may be called. If not, why says which address of which host, and the cure (cap bytes, NUL-terminated). */
bool http_policy_allows(const struct http_policy *policy, const struct http_address *address, bool plain,
                        const char *host, size_t host_len, char *why, size_t cap);

#endif
