/* SPDX-License-Identifier: MIT
 *
 * core/config_reload.c - what a running daemon can take over without a restart. Pure.
 *
 * Plugin instances, database connections and the HTTP listener are made once at start with their own options; all else
 * is swapped under them. The option rows say which is which (CONFIG_RESTART).
 */
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/config_rows.h"
#include "core/options.h"

static bool needs_restart(struct err *err, const char *what) {
  return err_set(err, 1, "%s changed; this needs a restart, nothing was taken over. Run: systemctl restart duebox",
                 what);
}

/* Compares the rows of a section that need a restart, one by one, so that the key can be named. */
static bool same_rows(const char *section, const struct duebox_option *rows, const void *now, const void *next,
                      struct err *err) {
  for (; rows->name; rows++) {
    const struct duebox_option one[2] = {*rows, {0}};
    char name[128];
    if (!(rows->flags & CONFIG_RESTART) || options_equal(one, now, next))
      continue;
    snprintf(name, sizeof name, "%s.%s", section, rows->name);
    return needs_restart(err, name);
  }
  return true;
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
         same_text(a->url, b->url) && same_text(a->ca_file, b->ca_file) && a->allow_plaintext == b->allow_plaintext;
}

static bool same_callbacks(const struct callbacks_config *a, const struct callbacks_config *b) {
  return same_text(a->host, b->host) && a->port == b->port && same_text(a->base_url, b->base_url) &&
         same_text(a->secret, b->secret) && same_text(a->previous_secret, b->previous_secret);
}

/* Whether the plugin instances, which were made at the start, can hold what the routes ask for now. */
static bool has_room(const struct config *now, const struct config *next, struct err *err) {
  for (size_t i = 0; i < now->plugin_count; i++) {
    char what[256];
    if (next->plugins[i].max_inflight <= now->plugins[i].capacity)
      continue;
    snprintf(what, sizeof what, "the concurrency of the routes via %s, %u in all, beyond the %u that it was made for,",
             now->plugins[i].name, next->plugins[i].max_inflight, now->plugins[i].capacity);
    return needs_restart(err, what);
  }
  return true;
}

bool config_reloadable(const struct config *now, const struct config *next, struct err *err) {
  if (!same_rows("database", config_database_rows, &now->database, &next->database, err) ||
      !same_rows("engine", config_engine_rows, &now->engine, &next->engine, err))
    return false;
  if (!same_plugins(now, next))
    return needs_restart(err, "the section plugins");
  if (!same_sources(now, next))
    return needs_restart(err, "the section results");
  if (!same_admin(&now->admin, &next->admin))
    return needs_restart(err, "the section admin");
  if (!same_callbacks(&now->callbacks, &next->callbacks))
    return needs_restart(err, "the section callbacks");
  return has_room(now, next, err);
}
