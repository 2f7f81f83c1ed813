/* SPDX-License-Identifier: MIT
 *
 * core/config_reload.c - what a running daemon can take over without a restart. Pure.
 *
 * Plugin instances, database connections and the HTTP listener are made once at start with their own options; routes,
 * limits, alerts and the log can be swapped under them.
 */
#include <string.h>

#include "core/config.h"
#include "core/config_rows.h"
#include "core/options.h"

static bool needs_restart(struct err *err, const char *what) {
  return err_set(err, 1, "%s changed; this needs a restart, nothing was taken over. Run: systemctl restart duebox",
                 what);
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool same_plugins(const struct config *now, const struct config *next) {
  bool same = now->plugin_count == next->plugin_count;
  for (size_t i = 0; same && i < now->plugin_count; i++) {
    const struct plugin_config *a = &now->plugins[i], *b = &next->plugins[i];
    same = strcmp(a->name, b->name) == 0 && a->module == b->module &&
           options_equal(a->module->options, a->options, b->options);
  }
  return same;
}

static bool same_sources(const struct config *now, const struct config *next) {
  bool same = now->source_count == next->source_count;
  for (size_t i = 0; same && i < now->source_count; i++) {
    const struct source_config *a = &now->sources[i], *b = &next->sources[i];
    same = strcmp(a->name, b->name) == 0 && a->plugin->module == b->plugin->module &&
           options_equal(a->plugin->module->source_options, a->options, b->options);
  }
  return same;
}

static bool same_admin(const struct admin_config *a, const struct admin_config *b) {
  return same_text(a->host, b->host) && a->port == b->port && same_text(a->token, b->token) &&
         same_text(a->url, b->url);
}

static bool same_callbacks(const struct callbacks_config *a, const struct callbacks_config *b) {
  return same_text(a->host, b->host) && a->port == b->port && same_text(a->base_url, b->base_url) &&
         same_text(a->secret, b->secret) && same_text(a->previous_secret, b->previous_secret);
}

bool config_reloadable(const struct config *now, const struct config *next, struct err *err) {
  if (!options_equal(config_database_rows, &now->database, &next->database))
    return needs_restart(err, "the section database");
  if (!same_plugins(now, next))
    return needs_restart(err, "the section plugins");
  if (!same_sources(now, next))
    return needs_restart(err, "the section results");
  if (!same_admin(&now->admin, &next->admin))
    return needs_restart(err, "the section admin");
  if (!same_callbacks(&now->callbacks, &next->callbacks))
    return needs_restart(err, "the section callbacks");
  if (!same_text(now->engine.instance, next->engine.instance))
    return needs_restart(err, "engine.instance");
  if (now->engine.realtime != next->engine.realtime || !same_text(now->engine.cpus, next->engine.cpus))
    return needs_restart(err, "engine.realtime or engine.cpus");
  return true;
}
