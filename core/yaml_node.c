/* SPDX-License-Identifier: MIT
 *
 * core/yaml_node.c - walking a YAML tree and naming places in it. Pure.
 */
#include "core/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key) {
  if (!map || map->kind != YAML_MAP)
    return NULL;
  for (size_t i = 0; i < map->count; i++)
    if (strcmp(map->items[i]->name, key) == 0)
      return map->items[i];
  return NULL;
}

bool yaml_absent(const struct yaml_node *node) { return !node || (node->kind == YAML_TEXT && node->empty); }

void yaml_append(struct arena *arena, struct yaml_node *to, struct yaml_node *item) {
  if ((to->count & (to->count - 1)) == 0) { /* room doubles at every power of two */
    struct yaml_node **items = arena_array(arena, to->count ? to->count * 2 : 1, sizeof *items);
    if (to->count)
      memcpy(items, to->items, to->count * sizeof *items);
    to->items = items;
  }
  item->parent = to;
  item->index = to->count;
  to->items[to->count++] = item;
}

void yaml_path(const struct yaml_node *node, char *out, size_t cap) {
  out[0] = '\0';
  if (!node || !node->parent)
    return;
  yaml_path(node->parent, out, cap); /* the reader limits the depth */
  size_t used = strlen(out);
  if (node->name)
    snprintf(out + used, cap - used, "%s%s", used ? "." : "", node->name);
  else
    snprintf(out + used, cap - used, "[%zu]", node->index);
}

PRINTF(5, 0)
static bool place_err(const struct yaml_node *node, unsigned line, unsigned column, struct err *err, const char *fmt,
                      va_list args) {
  char path[256], text[sizeof err->text];
  yaml_path(node, path, sizeof path);
  vsnprintf(text, sizeof text, fmt, args);
  err_set(err, 1, "%s:%u:%u: %s%s", node->file, line, column, path, path[0] ? ": " : "");
  size_t place = strlen(err->text);
  snprintf(err->text + place, sizeof err->text - place, "%s", text);
  err->place = place;
  err->key = strlen(path);
  return false;
}

bool yaml_err(const struct yaml_node *node, struct err *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  place_err(node, node->line, node->column, err, fmt, args);
  va_end(args);
  return false;
}

bool yaml_key_err(const struct yaml_node *node, struct err *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  bool keyed = node->key_line > 0;
  place_err(node, keyed ? node->key_line : node->line, keyed ? node->key_column : node->column, err, fmt, args);
  va_end(args);
  return false;
}
