/* SPDX-License-Identifier: MIT
 *
 * core/config_mask.h - what came from the environment, from a file or as a secret is in no error text. Pure.
 *
 * Errors of the loader, of parsers and of plugins quote values, whole, cut or in parts, and know nothing of where a
 * value came from. So the loader remembers all such values, each with the map that it belongs to, and takes them out of
 * each text before anybody sees it. A value that is one plain word, such as guest, is in many texts by chance: it is
 * taken out of those only that are about its own map, or about a route or source where it belongs to a plugin; and one
 * that is a word of messages (core/mask_words.h), such as password, only where a text repeats a value: in quotes, or at
 * its beginning. A part of a value that holds nothing but such words stays.
 */
#ifndef CORE_CONFIG_MASK_H
#define CORE_CONFIG_MASK_H

#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/yaml.h"

struct config_secret {
  const char *text;
  const char *map; /* path of the map that it stands in; NULL = none */
};

struct config_secrets {
  struct config_secret *items;
  size_t count;
};

/* Remembers a text that belongs to a map (NULL = to none), each of its lines by itself. */
void config_secrets_add(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *map,
                        const char *text);
/* Remembers what came from the environment anywhere in the tree, with the rest of the words that it is a part of, and
 * passwords inside URLs. */
void config_secrets_of(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *node);

/* Replaces them in the text behind err->place. */
void config_mask(const struct config_secrets *secrets, struct err *err);

#endif
