/* SPDX-License-Identifier: MIT
 *
 * core/config_answers.c - on which entries of results the consumers of a route answer.
 *
 * A message id is no secret: who may write to one topic or queue must not speak for the consumers of another. An entry
 * takes the results of the routes that it lists; without a list, those of the routes whose reply_to it is.
 */
#include <fnmatch.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/config_internal.h"
#include "core/config_rows.h"
#include "core/store.h"
#include "core/template.h"

enum { TARGET_MAX = 256 };

/* Where consumers answer a source: by convention its option "topic" or "queue". NULL = it has none. */
static const char *address_of(const struct source_config *source) {
  for (const struct duebox_option *row = source->plugin->module->source_options; row && row->name; row++)
    if (row->type == DUEBOX_OPT_STRING && (strcmp(row->name, "topic") == 0 || strcmp(row->name, "queue") == 0))
      return *(const char *const *)((const char *)source->options + row->offset);
  return NULL;
}

static bool lists(const struct source_config *source, const char *route) {
  for (size_t i = 0; i < source->routes.count; i++)
    if (fnmatch(source->routes.items[i], route, 0) == 0)
      return true;
  return false;
}

/* The entry of the route's own plugin that its consumers are told of: the first that lists it, or else the first
 * without a list. */
static const struct source_config *own_entry(const struct config *config, const struct route_config *route) {
  const struct source_config *open = NULL;
  for (size_t i = 0; i < config->source_count; i++) {
    const struct source_config *source = &config->sources[i];
    if (source->plugin != route->plugin)
      continue;
    if (lists(source, route->name))
      return source;
    if (source->routes.count == 0 && !open)
      open = source;
  }
  return open;
}

const char *config_reply_to(const struct config *config, const struct route_config *route) {
  const struct source_config *entry = own_entry(config, route);
  return entry ? address_of(entry) : NULL;
}

static bool reads(const struct source_config *source, const char *address) {
  const char *own = address_of(source);
  return own && address && strcmp(own, address) == 0;
}

/* Two instances may lead to one broker however differently its address is written, so the module decides. */
struct duebox_list config_answers_at(const struct config_loader *l, const struct route_config *route) {
  const struct config *config = l->config;
  const char **items = route->many_targets ? arena_array(l->arena, config->source_count, sizeof *items) : NULL;
  size_t count = 0;
  for (size_t i = 0; items && i < config->source_count; i++)
    if (config->sources[i].plugin->module == route->plugin->module && address_of(&config->sources[i]))
      items[count++] = address_of(&config->sources[i]);
  return (struct duebox_list){items, count};
}

static bool takes(const struct config *config, const struct source_config *source, const struct route_config *route) {
  if (source->routes.count)
    return lists(source, route->name);
  if (source->plugin == route->plugin && !address_of(source))
    return true;
  const char *address = route->reply_to ? route->reply_to : config_reply_to(config, route);
  if (!reads(source, address))
    return false;
  /* Two brokers may have topics of one name: that of its own is meant. */
  for (size_t i = 0; source->plugin != route->plugin && i < config->source_count; i++)
    if (config->sources[i].plugin == route->plugin && reads(&config->sources[i], address))
      return false;
  return true;
}

bool config_result_awaited(const struct config *config, const struct route_config *route) {
  bool awaited = route->result == RESULT_EXPECTED;
  for (size_t i = 0; !awaited && i < config->source_count; i++)
    awaited = lists(&config->sources[i], route->name);
  return awaited;
}

/* The broker's name and the address; never 0, which is none. */
static uint64_t digest(const struct source_config *source) {
  const char *address = address_of(source);
  uint64_t hash = hash_text(hash_text(HASH_EMPTY, source->plugin->name), address ? address : "") & INT64_MAX;
  return hash ? hash : 1;
}

uint64_t config_answer_to(const struct config *config, const char *entry) {
  for (size_t i = 0; i < config->source_count; i++)
    if (strcmp(config->sources[i].name, entry) == 0)
      return digest(&config->sources[i]);
  return 0;
}

uint64_t config_told_to(const struct config *config, const struct route_config *route) {
  for (size_t i = 0; i < config->source_count; i++) {
    const struct source_config *source = &config->sources[i];
    bool told = reads(source, route->reply_to) || (source->plugin == route->plugin && !address_of(source));
    if (told && takes(config, source, route))
      return digest(source);
  }
  return 0;
}

bool config_answers_on(const struct config *config, const char *entry, const char *name,
                       const struct route_config *route) {
  for (size_t i = 0; i < config->source_count; i++) {
    const struct source_config *source = &config->sources[i];
    if (strcmp(source->name, entry) == 0)
      return route ? takes(config, source, route) : source->routes.count == 0 || lists(source, name);
  }
  return false;
}

/* --- what `duebox check` says --- */

static bool is_pattern(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-*?";
  size_t len = strlen(text);
  return len > 0 && len <= STORE_ROUTE_MAX && strspn(text, letters) == len;
}

bool config_check_patterns(const struct config_loader *l, const struct yaml_node *entry,
                           const struct duebox_list *routes) {
  for (size_t i = 0; i < routes->count; i++)
    if (!is_pattern(routes->items[i]))
      return yaml_err(config_place(l, entry, "routes"), l->err,
                      "\"%.80s\" is no name of a route, which may hold * for any characters and ? for one",
                      routes->items[i]);
  return yaml_get(entry, "routes") && !routes->count
             ? yaml_err(config_place(l, entry, "routes"), l->err,
                        "is empty; list the routes that answer there, or leave it out")
             : true;
}

static void warn(const struct yaml_node *node, const char *what, const char *text) {
  log_warn("DUEBOX-CONFIG-ANSWERS", "%s:%u:%u: %s: %s", node->file, node->line, node->column, what, text);
}

/* A name that is nearly that of a route is perhaps a slip of the pen, or the route of another daemon. */
static void check_names(const struct config_loader *l, const struct yaml_node *entry,
                        const struct source_config *source) {
  const struct config *config = l->config;
  const char **names = arena_array(l->arena, config->route_count, sizeof *names);
  for (size_t i = 0; i < config->route_count; i++)
    names[i] = config->routes[i].name;
  for (size_t i = 0; i < source->routes.count; i++) {
    const char *name = source->routes.items[i], *near = NULL;
    if (!strpbrk(name, "*?") && !config_route(config, name, strlen(name)))
      near = option_suggest(name, names, config->route_count);
    if (near)
      warn(config_place(l, entry, "routes"), source->name,
           arena_printf(l->arena, "a route that it lists is not here; was \"%s\" meant?", near));
  }
}

/* An entry on which nothing would count. */
static void check_entry(const struct config *config, const struct source_config *source, const struct yaml_node *node) {
  bool used = source->routes.count > 0 || config->route_count == 0;
  for (size_t i = 0; !used && i < config->route_count; i++)
    used = takes(config, source, &config->routes[i]);
  if (!used)
    warn(node, source->name,
         "no route of this configuration answers there, and their results would go to the quarantine; set reply_to of "
         "a route to it, or list those that answer there under its key routes");
}

/* The host, port and what follows of a URL: whoever logs in, it is one broker. */
static const char *without_user(const char *url) {
  const char *at = strrchr(url, '@'), *scheme = strstr(url, "://");
  return at ? at + 1 : scheme ? scheme + 3 : url;
}

static bool share_one(const struct duebox_list *a, const struct duebox_list *b) {
  for (size_t i = 0; i < a->count; i++)
    for (size_t k = 0; k < b->count; k++)
      if (strcmp(a->items[i], b->items[k]) == 0)
        return true;
  return false;
}

/* As far as their addresses tell: by convention the option "url" or "brokers". */
static bool same_broker(const struct plugin_config *a, const struct plugin_config *b) {
  for (const struct duebox_option *row = a->module->options; a->module == b->module && row && row->name; row++) {
    const void *one = (const char *)a->options + row->offset, *other = (const char *)b->options + row->offset;
    if (row->type == DUEBOX_OPT_LIST && strcmp(row->name, "brokers") == 0)
      return share_one(one, other);
    if (row->type != DUEBOX_OPT_STRING || strcmp(row->name, "url") != 0)
      continue;
    const char *url = *(const char *const *)one, *other_url = *(const char *const *)other;
    return url && other_url && strcmp(without_user(url), without_user(other_url)) == 0;
  }
  return false;
}

/* Two entries that read one queue or topic each get answers for the routes of the other. */
static void check_twins(const struct config_loader *l, size_t which, const struct yaml_node *node) {
  const struct config *config = l->config;
  const struct source_config *source = &config->sources[which];
  for (size_t i = 0; i < which; i++) {
    const struct source_config *twin = &config->sources[i];
    bool differ = false;
    if (!reads(twin, address_of(source)) ||
        (twin->plugin != source->plugin && !same_broker(twin->plugin, source->plugin)))
      continue;
    for (size_t k = 0; !differ && k < config->route_count; k++)
      differ = takes(config, source, &config->routes[k]) != takes(config, twin, &config->routes[k]);
    if (differ)
      warn(node, source->name,
           arena_printf(l->arena,
                        "%s reads \"%s\" of the same broker for other routes: each gets answers that only the other "
                        "takes, and they go to the quarantine; keep one entry and set reply_to of the other's routes "
                        "to it, or list the same routes in both",
                        twin->name, address_of(source)));
  }
}

/* A route whose answers would not count anywhere. */
static void check_answers(const struct config *config, const struct route_config *route, const struct yaml_node *node) {
  bool by_url = route->plugin->module->capabilities & DUEBOX_CAP_ANSWERS;
  bool taken = route->result != RESULT_EXPECTED || (by_url && config->callbacks.host);
  for (size_t i = 0; !taken && i < config->source_count; i++)
    taken = takes(config, &config->sources[i], route);
  if (!taken && by_url && !route->reply_to)
    warn(node, route->name,
         "callbacks.listen is off, so that its consumers are told no URL for their answers, which count only where the "
         "HTTP API or another daemon gets them; set callbacks.listen");
  else if (!taken)
    warn(node, route->name,
         "its reply_to is no topic or queue of results here, so that its answers count only where the HTTP API or "
         "another daemon gets them; list the route under the key routes of the entry that they come on");
}

/* A route all of whose tasks would be read as results. */
static bool check_target(const struct config_loader *l, const struct route_config *route,
                         const struct source_config *source, const struct yaml_node *node) {
  const struct duebox_task task = {.struct_size = sizeof task, .route = route->name};
  for (const struct duebox_option *row = route->plugin->module->route_options; row && row->name; row++) {
    char name[TARGET_MAX];
    const char *tmpl =
        row->flags & DUEBOX_OPT_TARGET ? *(const char *const *)((const char *)route->options + row->offset) : NULL;
    if (!tmpl || template_varies(tmpl) ||
        template_expand(tmpl, &task, DUEBOX_ESCAPE_NONE, name, sizeof name) >= sizeof name || !reads(source, name))
      continue;
    if (source->plugin == route->plugin || same_broker(source->plugin, route->plugin))
      return yaml_err(config_place(l, node, row->name), l->err,
                      "\"%s\" is where %s reads results: whoever inserts a task would answer for others; send them "
                      "elsewhere, or correct results",
                      name, source->name);
    warn(config_place(l, node, row->name), route->name,
         arena_printf(l->arena,
                      "\"%s\" is where %s reads results: where the two lead to one broker, whoever inserts a task "
                      "answers for others; send them elsewhere",
                      name, source->name));
  }
  return true;
}

static bool check_targets(const struct config_loader *l, const struct route_config *route,
                          const struct yaml_node *node) {
  const struct config *config = l->config;
  for (size_t i = 0; i < config->source_count; i++)
    if (config->sources[i].plugin->module == route->plugin->module &&
        !check_target(l, route, &config->sources[i], node))
      return config_note(l);
  return true;
}

bool config_check_answers(const struct config_loader *l) {
  const struct config *config = l->config;
  const struct yaml_node *results = yaml_get(config->tree, "results"), *routes = yaml_get(config->tree, "routes");
  if (l->found->count) /* what is wrong already is not judged further */
    return true;
  for (size_t i = 0; i < config->source_count; i++) {
    check_names(l, results->items[i], &config->sources[i]);
    check_entry(config, &config->sources[i], results->items[i]);
    check_twins(l, i, results->items[i]);
  }
  bool ok = true;
  for (size_t i = 0; i < config->route_count; i++) {
    const struct yaml_node *node = yaml_get(routes, config->routes[i].name);
    check_answers(config, &config->routes[i], node);
    ok = check_targets(l, &config->routes[i], node) && ok;
  }
  return ok;
}
