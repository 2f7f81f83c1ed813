/* SPDX-License-Identifier: MIT
 *
 * core/config_routes.c - plugins, results and routes: the parts of the file whose keys belong to plugin modules.
 */
#include <stdlib.h>
#include <string.h>

#include "core/config_internal.h"
#include "core/config_rows.h"
#include "core/plugin_check.h"
#include "core/store.h"
#include "core/template.h"

enum {
  PLUGIN_NAME_MAX = 32,
  CONCURRENCY = 10000,    /* of a route by default */
  CONCURRENCY_LONG = 32,  /* the same where calls are long */
  ROUTES_LONG = 8,        /* that many such routes can be added without a restart */
  INFLIGHT_MAX = 100000,  /* of one plugin instance, whatever its routes add up to */
  TIMEOUT_MS = 30 * 1000, /* of one attempt by default */
  TIMEOUT_RESULT_MS = 15 * 60 * 1000,
  TIMEOUT_FACTOR = 10, /* a row may ask for so many times the route's, */
  TIMEOUT_MAX_LEAST_MS = 5 * 60 * 1000,
  BACKOFF_MAX_MS = 3600 * 1000,
};

static bool name_ok(const char *name, size_t max, const char *others) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  size_t n = strlen(name);
  for (size_t i = 0; i < n; i++)
    if (!strchr(letters, name[i]) && !(i > 0 && strchr(others, name[i])))
      return false;
  return n > 0 && n <= max;
}

bool config_route_name_ok(const char *name) { return name_ok(name, STORE_ROUTE_MAX, "_.:/-"); }

/* The section as a map, or an error; an absent one is an empty map. */
static bool section(const struct config_loader *l, const char *name, enum yaml_kind kind,
                    const struct yaml_node **node) {
  *node = yaml_get(l->config->tree, name);
  if (yaml_absent(*node))
    *node = NULL;
  else if ((*node)->kind != kind)
    return yaml_err(*node, l->err,
                    kind == YAML_MAP ? "must be a map from names to their keys"
                                     : "must be a list, each entry beginning with \"- \"");
  return true;
}

/* The text of a key that the core itself reads from a map with a plugin's keys; NULL with an error. */
static const char *need_text(const struct config_loader *l, const struct yaml_node *map, const char *key,
                             const char *help) {
  const struct yaml_node *node = yaml_get(map, key);
  if (map->kind != YAML_MAP)
    yaml_err(map, l->err, "must be a map of keys and values");
  else if (!node)
    yaml_key_err(map, l->err, "\"%s\" must be given: %s", key, help);
  else if (node->kind != YAML_TEXT || !node->text[0])
    yaml_err(node, l->err, "must be %s", help);
  else
    return node->text;
  return NULL;
}

static bool load_plugin(const struct config_loader *l, const struct yaml_node *node, struct plugin_config *plugin) {
  struct err why = {0};
  struct duebox_error refused = {{0}};
  plugin->name = node->name;
  if (!name_ok(node->name, PLUGIN_NAME_MAX, "_-."))
    return yaml_key_err(node, l->err, "a plugin's name has 1 to %d letters, digits, \"_\", \"-\" or \".\"",
                        PLUGIN_NAME_MAX);
  const char *name = need_text(l, node, "module", "the plugin module: kafka, amqp, http or a path");
  if (!name)
    return false;
  const struct module *module = modules_load(l->modules, name, &why);
  if (!module)
    return yaml_err(yaml_get(node, "module"), l->err, "%s", why.text);
  void *options = arena_alloc(l->arena, module->plugin->options_size);
  plugin->module = module->plugin;
  if (!config_fill(l, module->plugin->options, node, config_plugin_keys, options))
    return false;
  if (module->plugin->check && !module->plugin->check(options, &refused))
    return yaml_key_err(node, l->err, "%.*s", (int)sizeof refused.text, refused.text);
  plugin->options = options;
  return true;
}

bool config_load_plugins(const struct config_loader *l) {
  const struct yaml_node *node;
  if (!section(l, "plugins", YAML_MAP, &node))
    return false;
  size_t count = node ? node->count : 0;
  l->config->plugins = arena_array(l->arena, count, sizeof *l->config->plugins);
  l->config->plugin_count = count;
  bool ok = true;
  for (size_t i = 0; i < count; i++)
    if (!load_plugin(l, node->items[i], &l->config->plugins[i]))
      ok = config_note(l);
  return ok;
}

/* The plugin that `via` names, with the capability that is needed; NULL with an error, or without one where what is
 * wrong with that plugin is noted. */
static struct plugin_config *find_via(const struct config_loader *l, const struct yaml_node *map, uint32_t capability) {
  const char *via = need_text(l, map, "via", "the name of an entry under plugins");
  if (!via)
    return NULL;
  const struct config *config = l->config;
  const struct yaml_node *place = yaml_get(map, "via");
  const char **names = arena_array(l->arena, config->plugin_count, sizeof *names);
  for (size_t i = 0; i < config->plugin_count; i++) {
    struct plugin_config *plugin = &config->plugins[i];
    names[i] = plugin->name;
    if (strcmp(plugin->name, via) != 0)
      continue;
    if (!plugin->module || plugin->module->capabilities & capability)
      return plugin->module ? plugin : NULL;
    yaml_err(place, l->err, "the module %s of \"%s\" cannot %s; name another plugin", plugin->module->name, via,
             capability == DUEBOX_CAP_SINK ? "send tasks" : "receive results");
    return NULL;
  }
  const char *near = option_suggest(via, names, config->plugin_count);
  if (near)
    yaml_err(place, l->err, "there is no plugin \"%.80s\"; did you mean \"%s\"?", via, near);
  else
    yaml_err(place, l->err, "there is no plugin \"%.80s\"; define it under plugins", via);
  return NULL;
}

/* All keys of a map: the plugin has judged them, and the core takes its own. */
static const char *const *names_of(const struct config_loader *l, const struct yaml_node *map) {
  const char **all = arena_array(l->arena, map->count + 1, sizeof *all);
  for (size_t i = 0; i < map->count; i++)
    all[i] = map->items[i]->name;
  return all;
}

/* The next entry of results, behind those that are there. */
static bool load_source(const struct config_loader *l, const struct yaml_node *node, struct source_config *sources) {
  const struct plugin_config *plugin = find_via(l, node, DUEBOX_CAP_SOURCE);
  if (!plugin)
    return false;
  size_t number = 1, count = l->config->source_count;
  for (size_t i = 0; i < count; i++)
    number += sources[i].plugin == plugin;
  void *options = arena_alloc(l->arena, plugin->module->source_size);
  struct source_config source = {arena_printf(l->arena, "%s#%zu", plugin->name, number), plugin, options, {0}};
  bool ok = config_fill(l, plugin->module->source_options, node, config_source_keys, options);
  if (!config_fill(l, config_source_rows, node, names_of(l, node), &source) || !ok ||
      !config_check_patterns(l, node, &source.routes))
    return false;
  sources[count] = source;
  l->config->source_count++;
  return true;
}

bool config_load_sources(const struct config_loader *l) {
  const struct yaml_node *node;
  l->found->sources = true;
  if (!section(l, "results", YAML_LIST, &node))
    return false;
  size_t count = node ? node->count : 0;
  struct source_config *sources = arena_array(l->arena, count, sizeof *sources);
  l->config->sources = sources;
  for (size_t i = 0; i < count; i++)
    if (!load_source(l, node->items[i], sources))
      config_note(l);
  l->found->sources = l->config->source_count < count;
  return !l->found->sources;
}

static bool load_retry(const struct config_loader *l, const struct yaml_node *route, struct retry_policy *policy) {
  const struct yaml_node *node = yaml_get(route, "retry");
  struct retry_rows rows = {0};
  if (!config_fill(l, config_retry_rows, node, NULL, &rows))
    return false;
  if (rows.levels.count && rows.backoff_ms)
    return yaml_err(config_place(l, node, "backoff"), l->err, "levels are given too; keep one of the two");
  if (yaml_get(node, "levels") && !rows.levels.count)
    return yaml_err(yaml_get(node, "levels"), l->err, "is empty; list at least one wait, or use max_attempts: 1");
  if (!rows.backoff_ms && yaml_get(node, "multiplier"))
    return yaml_err(yaml_get(node, "multiplier"), l->err, "has no effect without backoff; add it or remove this");
  if (rows.multiplier < 1 || rows.multiplier > 100)
    return yaml_err(config_place(l, node, "multiplier"), l->err, "must be from 1 to 100");
  if (rows.jitter < 0 || rows.jitter > 1)
    return yaml_err(config_place(l, node, "jitter"), l->err, "must be from 0 to 1");
  if (!rows.levels.count && !rows.backoff_ms) {
    static const struct duebox_option defaults[] = {
        {.name = "levels", .type = DUEBOX_OPT_DURATIONS, .def = CONFIG_RETRY_LEVELS}, {.name = NULL}};
    if (!options_fill(defaults, NULL, NULL, NULL, l->arena, &rows.levels, l->err))
      return false;
  }
  if (rows.backoff_ms && !rows.max_ms)
    rows.max_ms = rows.backoff_ms > BACKOFF_MAX_MS ? rows.backoff_ms : BACKOFF_MAX_MS;
  *policy = (struct retry_policy){
      .levels_ms = rows.levels.ms,
      .level_count = rows.levels.count,
      .backoff_ms = rows.backoff_ms,
      .multiplier = rows.multiplier,
      .max_ms = rows.max_ms,
      .jitter = rows.jitter,
      .max_attempts = policy->max_attempts,
  };
  return true;
}

/* Whether its tasks go to different places. */
static bool has_many_targets(const struct route_config *route) {
  for (const struct duebox_option *row = route->plugin->module->route_options; row && row->name; row++) {
    const char *tmpl =
        row->flags & DUEBOX_OPT_TARGET ? *(const char *const *)((const char *)route->options + row->offset) : NULL;
    if (tmpl && template_varies(tmpl))
      return true;
  }
  return false;
}

/* What rows may ask for, by default: they hold places of the route, which all who may insert share. */
static int64_t timeout_max_ms(int64_t timeout_ms) {
  static const int64_t most_ms = INT64_C(30) * 24 * 3600 * 1000;
  if (timeout_ms >= most_ms / TIMEOUT_FACTOR)
    return most_ms;
  return timeout_ms * TIMEOUT_FACTOR > TIMEOUT_MAX_LEAST_MS ? timeout_ms * TIMEOUT_FACTOR : TIMEOUT_MAX_LEAST_MS;
}

static void set_dependent_defaults(const struct config_loader *l, const struct yaml_node *node,
                                   struct route_config *route) {
  bool long_calls = route->plugin->module->capabilities & DUEBOX_CAP_LONG_CALLS;
  if (!yaml_get(node, "claim"))
    route->claim = long_calls ? CLAIM_RECORDED : CLAIM_MEMORY;
  if (!route->concurrency)
    route->concurrency = long_calls ? CONCURRENCY_LONG : CONCURRENCY;
  route->many_targets = has_many_targets(route);
  if (!route->timeout_ms)
    route->timeout_ms = route->result == RESULT_EXPECTED ? TIMEOUT_RESULT_MS : TIMEOUT_MS;
  if (!route->timeout_max_ms)
    route->timeout_max_ms = timeout_max_ms(route->timeout_ms);
  if (route->result == RESULT_EXPECTED && !route->reply_to)
    route->reply_to = config_reply_to(l->config, route);
  route->answer_to = config_told_to(l->config, route);
  route->result_awaited = config_result_awaited(l->config, route);
  route->answers_at = config_answers_at(l, route);
}

static bool check_route(const struct config_loader *l, const struct yaml_node *node, const struct route_config *route) {
  const struct duebox_plugin *module = route->plugin->module;
  struct duebox_error refused = {{0}};
  if (!route->retry.max_attempts && !route->give_up_ms)
    return yaml_err(config_place(l, node, "give_up"), l->err,
                    "without a limit on attempts (max_attempts: 0) and on age (give_up: 0) a task would be retried for "
                    "ever; set one of them");
  if (route->result == RESULT_EXPECTED && !route->reply_to && !(module->capabilities & DUEBOX_CAP_ANSWERS) &&
      !l->found->sources)
    return yaml_err(yaml_get(node, "result"), l->err,
                    "nothing receives the answers: no entry of results reads via \"%s\"; add one, or say with reply_to "
                    "where consumers answer",
                    route->plugin->name);
  const void *options = route->plugin->options; /* NULL: they are wrong, which is noted */
  if (module->check_route && options && !module->check_route(options, route->options, &refused))
    return yaml_key_err(node, l->err, "%.*s", (int)sizeof refused.text, refused.text);
  return true;
}

/* The most that comes back with the next attempt. */
static size_t max_checkpoint(const struct config_loader *l, const struct route_config *route) {
  max_checkpoint_fn *carried = plugin_max_checkpoint(route->plugin->module);
  size_t kept = (size_t)l->config->engine.max_checkpoint;
  size_t most = carried && route->plugin->options ? carried(route->plugin->options, route->options) : kept;
  return most < kept ? most : kept;
}

/* Every key of a route that is not the core's must be one of its plugin; both tables see the other's keys as known. */
static bool fill_route(const struct config_loader *l, const struct yaml_node *node, struct route_config *route) {
  const struct duebox_plugin *module = route->plugin->module;
  struct route_rows rows = {.route = *route};
  void *options = arena_alloc(l->arena, module->route_size);
  bool ok = config_fill(l, module->route_options, node, config_route_keys, options);
  ok = config_fill(l, config_route_rows, node, names_of(l, node), &rows) && ok;
  *route = rows.route;
  route->options = options;
  route->retry.max_attempts = (uint32_t)rows.max_attempts;
  return load_retry(l, node, &route->retry) && ok;
}

static bool load_route(const struct config_loader *l, const struct yaml_node *node, struct route_config *route) {
  route->name = node->name;
  if (!config_route_name_ok(node->name))
    return yaml_key_err(node, l->err,
                        "a route's name has 1 to %d letters, digits or one of _ . : / -, and begins with "
                        "a letter or digit",
                        STORE_ROUTE_MAX);
  struct plugin_config *plugin = find_via(l, node, DUEBOX_CAP_SINK);
  if (!plugin)
    return false;
  route->plugin = plugin;
  if (!fill_route(l, node, route))
    return false;
  set_dependent_defaults(l, node, route);
  int64_t sum = (int64_t)plugin->max_inflight + route->concurrency;
  plugin->max_inflight = (uint32_t)(sum < INFLIGHT_MAX ? sum : INFLIGHT_MAX);
  if (!check_route(l, node, route))
    return false;
  route->max_checkpoint = max_checkpoint(l, route);
  return true;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct route_config *)a)->name, ((const struct route_config *)b)->name);
}

/* An instance is made for twice what its routes ask for now, and for one that is not used yet. */
static uint32_t capacity_of(const struct plugin_config *plugin) {
  bool long_calls = plugin->module && plugin->module->capabilities & DUEBOX_CAP_LONG_CALLS;
  uint32_t least = long_calls ? ROUTES_LONG * CONCURRENCY_LONG : CONCURRENCY;
  uint32_t twice = plugin->max_inflight < INFLIGHT_MAX / 2 ? 2 * plugin->max_inflight : INFLIGHT_MAX;
  return twice > least ? twice : least;
}

bool config_load_routes(const struct config_loader *l) {
  const struct yaml_node *node;
  if (!section(l, "routes", YAML_MAP, &node))
    return false;
  size_t count = node ? node->count : 0;
  l->config->routes = arena_array(l->arena, count, sizeof *l->config->routes);
  l->config->route_count = count;
  bool ok = true;
  for (size_t i = 0; i < count; i++) {
    if (!load_route(l, node->items[i], &l->config->routes[i]))
      ok = config_note(l);
  }
  for (size_t i = 0; i < l->config->plugin_count; i++)
    l->config->plugins[i].capacity = capacity_of(&l->config->plugins[i]);
  qsort(l->config->routes, count, sizeof *l->config->routes, by_name);
  return ok;
}
