/* SPDX-License-Identifier: MIT
 *
 * cli/probe.h - asks a plugin by itself, without a daemon, whether what it speaks to can be reached and lets us in.
 */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include <stddef.h>

#include "core/config.h"

enum probe_answer { PROBE_UP = 0, PROBE_DOWN, PROBE_SILENT, PROBE_HANGS /* the plugin has not come back */ };

/* Starts a sink instance that is given no task, and waits for a few seconds at most for what it says of its
 * destination. text says why it is down. Sends and takes nothing. */
enum probe_answer probe_plugin(const struct plugin_config *plugin, char *text, size_t cap);

/* Asks whether the topics, queues or addresses of all its routes and sources are there and may be used. NULL: it has
 * none, or cannot say, or memory is short. Takes some seconds at most. */
struct probe_targets;
struct probe_targets *probe_targets(const struct config *config, const struct plugin_config *plugin);
/* The answers in turn; NULL behind the last. */
const struct duebox_check *probe_targets_at(const struct probe_targets *targets, size_t i);
/* The plugin has not come back: there are no answers. */
bool probe_targets_hang(const struct probe_targets *targets);
void probe_targets_free(struct probe_targets *targets); /* NULL is allowed */

#endif
