/* SPDX-License-Identifier: MIT
 *
 * http_lookup.h - whether the hosts of URLs can be called: check_targets() of the plugin.
 *
 * Resolves, judges the address, connects, and does the TLS handshake. No request is sent.
 */
#ifndef PLUGINS_HTTP_LOOKUP_H
#define PLUGINS_HTTP_LOOKUP_H

#include <duebox/plugin.h>

void http_check_targets(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms);

#endif
