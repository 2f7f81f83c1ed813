/* SPDX-License-Identifier: MIT
 *
 * cli/probe_targets.c - asks a plugin whether the targets of routes and sources are there, on a thread that may hang.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/patience.h"
#include "cli/probe.h"
#include "core/mask.h"
#include "core/plugin_check.h"
#include "core/template.h"

enum { LIMIT_MS = 6000, PATIENCE_S = 12 };

/* All that the thread uses. A plugin that does not come back keeps it. */
struct probe_targets {
  const struct plugin_config *plugin;
  size_t count;
  struct duebox_check **pointers;
  bool lasting; /* the plugin has not come back */
  struct duebox_check checks[];
};

static bool expand(const struct duebox_check *check, const char *tmpl, char *out, size_t cap) {
  const struct duebox_task task = {.struct_size = sizeof task, .route = check->name};
  size_t len = template_varies(tmpl) ? cap : template_expand(tmpl, &task, DUEBOX_ESCAPE_NONE, out, cap);
  return len < cap && strlen(out) == len;
}

static size_t collect(const struct config *config, const struct plugin_config *plugin, struct duebox_check *checks) {
  size_t n = 0;
  for (size_t i = 0; i < config->route_count; i++)
    if (config->routes[i].plugin == plugin) {
      if (checks)
        checks[n] = (struct duebox_check){.route = config->routes[i].options, .name = config->routes[i].name};
      n++;
    }
  for (size_t i = 0; i < config->source_count; i++)
    if (config->sources[i].plugin == plugin) {
      if (checks)
        checks[n] = (struct duebox_check){.source = config->sources[i].options, .name = config->sources[i].name};
      n++;
    }
  return n;
}

static void run(void *arg) {
  struct probe_targets *targets = arg;
  const struct duebox_plugin *module = targets->plugin->module;
  plugin_check_targets(module)(targets->plugin->options, targets->pointers, targets->count, LIMIT_MS);
  for (size_t i = 0; i < targets->count; i++) {
    struct duebox_check *check = targets->pointers[i];
    mask_said(module, targets->plugin->options, check->source, check->route, NULL, check->text);
    mask_said(module, targets->plugin->options, check->source, check->route, NULL, check->cure);
  }
}

struct probe_targets *probe_targets(const struct config *config, const struct plugin_config *plugin) {
  size_t count = plugin_check_targets(plugin->module) ? collect(config, plugin, NULL) : 0;
  struct probe_targets *targets = count ? calloc(1, sizeof *targets + count * sizeof *targets->checks) : NULL;
  if (!targets)
    return NULL;
  targets->plugin = plugin;
  targets->count = count;
  targets->pointers = calloc(count, sizeof *targets->pointers);
  collect(config, plugin, targets->checks);
  for (size_t i = 0; targets->pointers && i < count; i++) {
    targets->checks[i].struct_size = sizeof targets->checks[i];
    targets->checks[i].expand = expand;
    targets->checks[i].outbox = config->database.outbox;
    targets->checks[i].max_payload = config->engine.max_payload;
    targets->pointers[i] = &targets->checks[i];
  }
  enum patience patience = targets->pointers ? patience_run(run, targets, PATIENCE_S) : PATIENCE_REFUSED;
  targets->lasting = patience == PATIENCE_LASTING;
  if (patience != PATIENCE_REFUSED)
    return targets;
  free(targets->pointers);
  free(targets);
  return NULL;
}

const struct duebox_check *probe_targets_at(const struct probe_targets *targets, size_t i) {
  return !targets->lasting && i < targets->count ? &targets->checks[i] : NULL;
}

bool probe_targets_hang(const struct probe_targets *targets) { return targets->lasting; }

void probe_targets_free(struct probe_targets *targets) {
  if (!targets || targets->lasting)
    return;
  free(targets->pointers);
  free(targets);
}
