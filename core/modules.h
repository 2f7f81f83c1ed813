/* SPDX-License-Identifier: MIT
 *
 * core/modules.h - plugin modules: found, distrusted, loaded once, never unloaded.
 *
 * A module is named without a slash and looked for in the plugin directories: those of $DUEBOX_PLUGIN_PATH (separated
 * by colons, for development), <folder of the executable>/../plugins, and the installed folder; or it is an absolute
 * path. The file must be a regular file of root or of the daemon's own user that nobody else may write, below folders
 * in which nobody else may swap it. It is judged by plugin_check before anything of it is used. Main thread only; an
 * unloaded module would leave threads and exit handlers of vendor libraries behind, so none is ever unloaded.
 */
#ifndef CORE_MODULES_H
#define CORE_MODULES_H

#include <duebox/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"
#include "core/base/err.h"

struct module {
  const struct duebox_plugin *plugin;
  const char *path; /* of the file it was loaded from */
};

struct module_registry;

/* An empty registry with the plugin directories of this process. */
struct module_registry *modules_new(void);
/* Frees the registry and sets the pointer to NULL; the modules stay in memory and their descriptors valid. */
void modules_free(struct module_registry **modules);

/* err->code where a module is there, and is refused: for what it holds, or since others could swap it. */
enum { MODULE_REFUSED = 1 };

/* The module of that name or absolute path; the same file gives the same module. NULL with a text that says what was
 * looked for, found and wanted, and as code MODULE_REFUSED, EINVAL for a name that can be none, or the errno of the
 * file: ENOENT where there is none. */
MUSTCHECK const struct module *modules_load(struct module_registry *modules, const char *name, struct err *err);

/* What has been loaded, in that order. */
size_t modules_count(const struct module_registry *modules);
const struct module *modules_at(const struct module_registry *modules, size_t i);
/* The plugin directories in the order of search, whether they exist or not; NULL behind the last. */
const char *modules_dir(const struct module_registry *modules, size_t i);

#endif
