/* SPDX-License-Identifier: MIT
 *
 * core/config_show.c - a configuration back to text: first a JSON tree from the option rows, then JSON or YAML of it.
 */
#include "core/config_show.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/config_rows.h"
#include "core/options.h"
#include "core/yaml.h"

/* One printed value, in memory of its own. */
static char *printed(const struct duebox_option *row, const void *filled) {
  size_t len = option_print(row, filled, NULL, 0);
  char *text = calloc(1, len + 1);
  if (text)
    option_print(row, filled, text, len + 1);
  return text;
}

static json_t *text_json(const struct duebox_option *row, const void *filled) {
  char *text = printed(row, filled);
  json_t *json = text ? json_string(text) : NULL;
  free(text);
  return json;
}

/* A text as the item of a list or map would be printed, with what looks secret masked. */
static json_t *item_json(const char *text) {
  static const struct duebox_option row = {.type = DUEBOX_OPT_STRING};
  return text_json(&row, &text);
}

static json_t *list_json(const struct duebox_list *list) {
  json_t *json = json_array();
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(json, item_json(list->items[i]));
  return json;
}

static json_t *durations_json(const struct duebox_durations *list) {
  static const struct duebox_option row = {.type = DUEBOX_OPT_DURATION};
  json_t *json = json_array();
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(json, text_json(&row, &list->ms[i]));
  return json;
}

static json_t *map_json(const struct duebox_map *map, uint32_t flags) {
  const struct duebox_option row = {.type = DUEBOX_OPT_MAP, .flags = flags};
  json_t *json = json_object();
  for (size_t i = 0; i < map->count; i++) {
    struct duebox_map one = {.items = &map->items[i], .count = 1};
    char *text = printed(&row, &one); /* "key=value", masked */
    if (text)
      json_object_set_new(json, map->items[i].key, json_string(text + strlen(map->items[i].key) + 1));
    free(text);
  }
  return json;
}

/* NULL for what is not set at all. */
static json_t *value_json(const struct duebox_option *row, const void *filled) {
  const void *field = (const char *)filled + row->offset;
  switch (row->type) {
  case DUEBOX_OPT_STRING:
  case DUEBOX_OPT_SECRET:
    return *(const char *const *)field ? text_json(row, filled) : NULL;
  case DUEBOX_OPT_BOOL:
    return json_boolean(*(const bool *)field);
  case DUEBOX_OPT_INT:
    return json_integer(*(const int64_t *)field);
  case DUEBOX_OPT_NUMBER:
    return json_real(*(const double *)field);
  case DUEBOX_OPT_SIZE:
  case DUEBOX_OPT_DURATION:
  case DUEBOX_OPT_RATE:
  case DUEBOX_OPT_ENUM:
    return text_json(row, filled);
  case DUEBOX_OPT_LIST:
    return ((const struct duebox_list *)field)->count ? list_json(field) : NULL;
  case DUEBOX_OPT_DURATIONS:
    return ((const struct duebox_durations *)field)->count ? durations_json(field) : NULL;
  case DUEBOX_OPT_MAP:
    return ((const struct duebox_map *)field)->count ? map_json(field, row->flags) : NULL;
  }
  return NULL;
}

static void add_rows(json_t *object, const struct duebox_option *rows, const void *filled) {
  for (; rows && rows->name; rows++) {
    json_t *value = value_json(rows, filled);
    if (value)
      json_object_set_new(object, rows->name, value);
  }
}

static json_t *rows_json(const struct duebox_option *rows, const void *filled) {
  json_t *object = json_object();
  add_rows(object, rows, filled);
  return object;
}

static json_t *retry_json(const struct retry_policy *policy) {
  struct retry_rows rows = {
      {policy->levels_ms, policy->level_count}, policy->backoff_ms, policy->multiplier, policy->max_ms, policy->jitter};
  json_t *json = rows_json(config_retry_rows, &rows);
  if (policy->level_count) { /* what has no effect with levels */
    json_object_del(json, "backoff");
    json_object_del(json, "multiplier");
  }
  if (!policy->max_ms)
    json_object_del(json, "max");
  return json;
}

static json_t *route_json(const struct route_config *route) {
  struct route_rows rows = {.route = *route, .max_attempts = route->retry.max_attempts};
  json_t *json = json_object();
  json_object_set_new(json, "via", json_string(route->plugin->name));
  add_rows(json, route->plugin->module->route_options, route->options);
  add_rows(json, config_route_rows, &rows);
  json_object_set_new(json, "retry", retry_json(&route->retry));
  return json;
}

enum { LISTEN_CAP = 300 };

static const char *listen_text(const char *host, uint16_t port, char text[LISTEN_CAP]) {
  if (!host)
    return "off";
  snprintf(text, LISTEN_CAP, strchr(host, ':') ? "[%.255s]:%u" : "%.255s:%u", host, port);
  return text;
}

static json_t *admin_json(const struct admin_config *admin) {
  char listen[LISTEN_CAP];
  struct admin_rows rows = {listen_text(admin->host, admin->port, listen), admin->token, admin->url, admin->ca_file,
                            admin->allow_plaintext};
  return rows_json(config_admin_rows, &rows);
}

static json_t *callbacks_json(const struct callbacks_config *callbacks) {
  char listen[LISTEN_CAP];
  struct callbacks_rows rows = {listen_text(callbacks->host, callbacks->port, listen), callbacks->base_url,
                                callbacks->secret, callbacks->previous_secret};
  return rows_json(config_callbacks_rows, &rows);
}

static json_t *config_json(const struct config *config) {
  json_t *root = json_object(), *plugins = json_object(), *routes = json_object(), *results = json_array();
  for (size_t i = 0; i < config->plugin_count; i++) {
    const struct plugin_config *plugin = &config->plugins[i];
    const struct yaml_node *named = yaml_get(yaml_get(yaml_get(config->tree, "plugins"), plugin->name), "module");
    json_t *json = json_pack("{s:s}", "module", named ? named->text : plugin->module->name);
    add_rows(json, plugin->module->options, plugin->options);
    json_object_set_new(plugins, plugin->name, json);
  }
  for (size_t i = 0; i < config->route_count; i++)
    json_object_set_new(routes, config->routes[i].name, route_json(&config->routes[i]));
  for (size_t i = 0; i < config->source_count; i++) {
    const struct source_config *source = &config->sources[i];
    json_t *json = json_pack("{s:s}", "via", source->plugin->name);
    add_rows(json, config_source_rows, source);
    add_rows(json, source->plugin->module->source_options, source->options);
    json_array_append_new(results, json);
  }
  json_object_set_new(root, "database", rows_json(config_database_rows, &config->database));
  json_object_set_new(root, "plugins", plugins);
  json_object_set_new(root, "routes", routes);
  json_object_set_new(root, "results", results);
  json_object_set_new(root, "alerts",
                      config->dead_alert ? json_pack("{s:{s:s}}", "dead", "route", config->dead_alert->name)
                                         : json_object());
  json_object_set_new(root, "engine", rows_json(config_engine_rows, &config->engine));
  json_object_set_new(root, "admin", admin_json(&config->admin));
  json_object_set_new(root, "callbacks", callbacks_json(&config->callbacks));
  json_object_set_new(root, "log", rows_json(config_log_rows, &config->log));
  return root;
}

/* Where a key's value was written; a secret may be in a file of its own. */
static const struct yaml_node *origin(const struct yaml_node *map, const char *key, bool *file) {
  char file_key[80];
  const struct yaml_node *node = yaml_get(map, key);
  snprintf(file_key, sizeof file_key, "%s_file", key);
  *file = !node && yaml_get(map, file_key);
  return *file ? yaml_get(map, file_key) : node;
}

static json_t *masked(json_t *value, const struct yaml_node *from, bool file);

/* Where a value comes from decides, not what it looks like: what was not written into the configuration file itself
 * was kept out of it, and is kept out of what is shown. */
static void mask_map(json_t *map, const struct yaml_node *node, bool file) {
  const char *key;
  json_t *value;
  void *next;
  json_object_foreach_safe(map, next, key, value) {
    bool from_file = false;
    const struct yaml_node *from = origin(node, key, &from_file);
    json_object_set_new(map, key, masked(value, from, file || from_file));
  }
}

static void mask_list(json_t *list, const struct yaml_node *node, bool file) {
  size_t i;
  json_t *value;
  json_array_foreach(list, i, value) {
    const struct yaml_node *from = node && node->kind == YAML_LIST && i < node->count ? node->items[i] : NULL;
    json_array_set_new(list, i, masked(value, from, file));
  }
}

/* The value itself or the mask: a new reference. */
static json_t *masked(json_t *value, const struct yaml_node *from, bool file) {
  bool one = !json_is_object(value) && (file || (from && from->kind == YAML_TEXT));
  if (one && (file || from->from_env))
    return json_string(OPTION_MASK);
  if (json_is_object(value))
    mask_map(value, from, file);
  else if (json_is_array(value))
    mask_list(value, from, file);
  return json_incref(value);
}

/* Text that every YAML reader takes as this text without quotes; ours takes all scalars as text. */
static bool plain(const char *text) {
  static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off"};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (strcmp(text, words[i]) == 0)
      return false;
  static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  return text[0] && text[0] != '-' && text[0] != '.' && strspn(text, safe) == strlen(text);
}

static void print_text(const char *text, FILE *out) {
  if (plain(text)) {
    fputs(text, out);
    return;
  }
  json_t *json = json_string(text); /* a JSON string is a YAML double-quoted scalar */
  char *quoted = json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;
  fputs(quoted ? quoted : "\"?\"", out);
  free(quoted);
  json_decref(json);
}

static void print_scalar(const json_t *value, FILE *out) {
  if (json_is_string(value))
    print_text(json_string_value(value), out);
  else if (json_is_integer(value))
    fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  else if (json_is_real(value))
    fprintf(out, "%.15g", json_real_value(value));
  else
    fputs(json_is_true(value) ? "true" : "false", out);
}

static void print_origin(const struct yaml_node *node, FILE *out) {
  if (node)
    fprintf(out, "  # %s:%u\n", node->file, node->line);
  else
    fputs("  # default\n", out);
}

static void print_flow(const json_t *list, FILE *out) {
  size_t i;
  json_t *item;
  fputc('[', out);
  json_array_foreach(list, i, item) {
    fputs(i ? ", " : "", out);
    print_scalar(item, out);
  }
  fputc(']', out);
}

static void print_map(json_t *map, const struct yaml_node *node, int indent, bool first_inline, FILE *out);

static void print_entries(const json_t *list, const struct yaml_node *node, int indent, FILE *out) {
  size_t i;
  json_t *item;
  fputc('\n', out);
  json_array_foreach(list, i, item) {
    fprintf(out, "%*s- ", indent, "");
    print_map(item, node && i < node->count ? node->items[i] : NULL, indent + 2, true, out);
  }
}

static void print_map(json_t *map, const struct yaml_node *node, int indent, bool first_inline, FILE *out) {
  const char *key;
  json_t *value;
  json_object_foreach(map, key, value) {
    bool file;
    const struct yaml_node *from = origin(node, key, &file);
    fprintf(out, "%*s", first_inline ? 0 : indent, "");
    first_inline = false;
    print_text(key, out);
    fputs(":", out);
    if (json_is_object(value) && json_object_size(value) > 0) {
      fputc('\n', out);
      print_map(value, from, indent + 2, false, out);
    } else if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
      print_entries(value, from, indent + 2, out);
    } else {
      fputc(' ', out);
      if (json_is_array(value))
        print_flow(value, out);
      else if (json_is_object(value))
        fputs("{}", out);
      else
        print_scalar(value, out);
      print_origin(from, out);
    }
  }
}

void config_show(const struct config *config, enum config_format format, FILE *out) {
  json_t *root = config_json(config);
  mask_map(root, config->tree, false);
  if (format == CONFIG_YAML) {
    print_map(root, config->tree, 0, false, out);
  } else {
    json_dumpf(root, out, (format == CONFIG_JSON ? JSON_INDENT(2) : JSON_COMPACT) | JSON_REAL_PRECISION(15));
    fputc('\n', out);
  }
  json_decref(root);
}
