/* SPDX-License-Identifier: MIT
 *
 * core/config_mask.h - what came from the environment, from a file or as a secret is in no error text. Pure.
 *
 * Errors of the loader, of parsers and of plugins quote values, whole, cut or in parts, and know nothing of where a
 * value came from. So the loader remembers all such values, and takes them out of each text before anybody sees it.
 */
#ifndef CORE_CONFIG_MASK_H
#define CORE_CONFIG_MASK_H

#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/yaml.h"

struct config_secrets {
  const char **items;
  size_t count;
};

/* Remembers a text, each of its lines by itself. */
void config_secrets_add(struct config_secrets *secrets, struct arena *arena, const char *text);
/* Remembers what came from the environment anywhere in the tree, and passwords inside URLs. */
void config_secrets_of(struct config_secrets *secrets, struct arena *arena, const struct yaml_node *node);

/* Replaces them in the text behind err->place. */
void config_mask(const struct config_secrets *secrets, struct err *err);

#endif
