/* SPDX-License-Identifier: MIT
 *
 * cli/probe.h - asks a plugin by itself, without a daemon, whether what it speaks to can be reached and lets us in.
 */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include <stddef.h>

#include "core/config.h"

enum probe_answer { PROBE_UP = 0, PROBE_DOWN, PROBE_SILENT };

/* Starts a sink instance that is given no task, and waits for a few seconds at most for what it says of its
 * destination. text says why it is down. Sends and takes nothing. */
enum probe_answer probe_plugin(const struct plugin_config *plugin, char *text, size_t cap);

#endif
