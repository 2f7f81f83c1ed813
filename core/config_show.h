/* SPDX-License-Identifier: MIT
 *
 * core/config_show.h - the effective configuration for people and programs, and the reference of all options.
 *
 * Both are made from the option rows and the loaded values, so they cannot drift from what the daemon does. Secrets are
 * masked. Any thread; nothing is changed.
 */
#ifndef CORE_CONFIG_SHOW_H
#define CORE_CONFIG_SHOW_H

#include <duebox/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/config.h"

enum config_format { CONFIG_YAML, CONFIG_JSON, CONFIG_JSON_LINE };

/* Prints every effective value: as YAML that could be loaded again but for the masked secrets, with "# file:line" or
 * "# default" behind each, or as one JSON document, on many lines or on one. */
void config_show(const struct config *config, enum config_format format, FILE *out);

/* Prints the options of the core and of these modules as Markdown tables, for docs/CONFIGURATION.md. */
void config_docs(const struct duebox_plugin *const *modules, size_t count, FILE *out);

#endif
