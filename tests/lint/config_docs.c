/* SPDX-License-Identifier: MIT
 *
 * tests/lint/config_docs.c - prints the option reference of the core and of the modules named, for
 * docs/CONFIGURATION.md. Modules are found as the daemon finds them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/config_show.h"
#include "core/modules.h"

enum { MAX = 16 };

int main(int argc, char **argv) {
  const struct duebox_plugin *plugins[MAX];
  size_t count = 0;
  struct module_registry *modules = modules_new();
  for (; argv[count + 1] && count < MAX; count++) {
    struct err err = {0};
    const struct module *module = modules_load(modules, argv[count + 1], &err);
    if (!module) {
      fprintf(stderr, "config_docs: %s\n", err.text);
      return EXIT_FAILURE;
    }
    plugins[count] = module->plugin;
  }
  config_docs(plugins, count, stdout);
  modules_free(&modules);
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
