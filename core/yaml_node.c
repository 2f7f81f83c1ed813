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

/* A key that swallowed its value, as `password:secret` in a flow map does for want of a blank, is shown without. */
static bool hide_value(const struct yaml_node *node, char *path, size_t cap) {
  const char *end = node->name ? strpbrk(node->name, ":=") : NULL;
  size_t len = strlen(path), behind = end ? strlen(end) - 1 : 0;
  if (!behind || len + 1 >= cap || behind >= len) /* or the path is cut */
    return false;
  snprintf(path + len - behind, cap - (len - behind), "..");
  return true;
}

PRINTF(4, 0)
static bool place_err(const struct yaml_node *node, bool keyed, struct err *err, const char *fmt, va_list args) {
  unsigned line = keyed && node->key_line ? node->key_line : node->line;
  unsigned column = keyed && node->key_line ? node->key_column : node->column;
  char path[256], text[sizeof err->text];
  yaml_path(node, path, sizeof path);
  vsnprintf(text, sizeof text, fmt, args);
  if ((keyed || node->empty) && hide_value(node, path, sizeof path)) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "; a value needs a blank behind its key's colon");
  }
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
  place_err(node, false, err, fmt, args);
  va_end(args);
  return false;
}

bool yaml_key_err(const struct yaml_node *node, struct err *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  place_err(node, true, err, fmt, args);
  va_end(args);
  return false;
}
