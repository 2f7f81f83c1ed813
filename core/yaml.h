/* SPDX-License-Identifier: MIT
 *
 * core/yaml.h - a YAML file as a small tree in which everything knows its place.
 *
 * libyaml is read at event level, so nothing is typed by its looks: `no`, `1e3` and `012` are texts until an option row
 * says what they mean. Keys that come twice, anchors, aliases, tags and further documents are refused: each of them
 * lets a file mean something other than it seems to say. `${NAME}` inside a value becomes the environment's value (an
 * unset one is an error); `$${` stands for `${`. Nodes belong to the arena. The tree walks are pure (yaml_node.c);
 * reading opens files (yaml.c).
 */
#ifndef CORE_YAML_H
#define CORE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "core/base/arena.h"
#include "core/base/attr.h"
#include "core/base/err.h"

enum yaml_kind { YAML_TEXT = 0, YAML_LIST, YAML_MAP };

struct yaml_node {
  enum yaml_kind kind;
  const char *file;
  unsigned line, column;          /* of the value, from 1 */
  const struct yaml_node *parent; /* NULL at the root */
  const char *name;               /* key in the parent map; NULL in a list */
  unsigned key_line, key_column;  /* of that key */
  size_t index;                   /* in the parent list, from 0 */
  const char *text;               /* YAML_TEXT, after expansion */
  bool empty;                     /* YAML_TEXT: nothing was written at all, as in `key:` */
  const char *from_env;           /* YAML_TEXT: "$" for each byte of text that came from the environment, " " for
                                   * others; NULL = nothing came from there */
  struct yaml_node **items;       /* YAML_LIST, YAML_MAP: in the order of the file */
  size_t count;
};

/* Reads and parses a file. NULL on failure, with file:line:column in err. An empty file is an empty map. */
MUSTCHECK struct yaml_node *yaml_load(const char *path, struct arena *arena, struct err *err);
/* Whether nobody else may change the file, or folder, as yaml_load() demands of what it reads; err says how to mend it.
 */
MUSTCHECK bool yaml_is_ours(const char *path, const struct stat *st, struct err *err);
/* yaml_load() from memory; `file` names it in errors and must live as long as the tree. */
MUSTCHECK struct yaml_node *yaml_parse(const char *file, const char *text, size_t len, struct arena *arena,
                                       struct err *err);

/* The value of that key, or NULL. map may be NULL; a node of another kind has no keys. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
/* Whether the node is absent or written without a value, so that a section with all lines commented out is no error. */
bool yaml_absent(const struct yaml_node *node);
/* Adds a value to a map or list; key NULL for a list. */
void yaml_append(struct arena *arena, struct yaml_node *to, struct yaml_node *item);

/* Writes "file:line:column: a.b.c: <text>" for the value, or for its key; returns false. */
bool yaml_err(const struct yaml_node *node, struct err *err, const char *fmt, ...) PRINTF(3, 4);
bool yaml_key_err(const struct yaml_node *node, struct err *err, const char *fmt, ...) PRINTF(3, 4);
/* Writes the path of keys from the root, "routes.orders.cancel.topic", cut at cap; empty at the root. */
void yaml_path(const struct yaml_node *node, char *out, size_t cap);

#endif
