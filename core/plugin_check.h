/* SPDX-License-Identifier: MIT
 *
 * core/plugin_check.h - judges a plugin's descriptor before anything of it runs. Pure.
 *
 * A wrong prefix ends the judgement, because nothing behind it can be trusted; otherwise every fault is listed, so that
 * an author mends them all at once.
 */
#ifndef CORE_PLUGIN_CHECK_H
#define CORE_PLUGIN_CHECK_H

#include <duebox/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"

enum { PLUGIN_FAULTS_MAX = 8 };

struct plugin_faults {
  size_t count; /* may be larger than what is kept */
  char text[PLUGIN_FAULTS_MAX][256];
};

/* True when the descriptor is sound and this host can serve it. */
MUSTCHECK bool plugin_check(const struct duebox_plugin *plugin, struct plugin_faults *faults);

/* Optional functions of later minor versions; NULL where the plugin has none, or is older. */
typedef void check_targets_fn(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms);
static inline check_targets_fn *plugin_check_targets(const struct duebox_plugin *plugin) {
  return plugin->size >= offsetof(struct duebox_plugin, max_checkpoint) ? plugin->check_targets : NULL;
}
typedef size_t max_checkpoint_fn(const void *options, const void *route);
static inline max_checkpoint_fn *plugin_max_checkpoint(const struct duebox_plugin *plugin) {
  return plugin->size >= sizeof *plugin ? plugin->max_checkpoint : NULL;
}

#endif
