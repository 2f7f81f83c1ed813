/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_config.c - the whole way from bytes to a configuration, with the null plugins as modules.
 *
 * The bytes are loaded through a memory file, so that the path is the daemon's own. Whatever comes in, there is either
 * a configuration that can be shown, or an error with a text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/config.h"
#include "core/config_show.h"
#include "core/modules.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct module_registry *modules;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  setenv("DUEBOX_PLUGIN_PATH", TEST_PLUGINS, 1);
  setenv("DUEBOX_FUZZ", "from the environment", 1);
  modules = modules_new();
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  struct config *config;
  struct err err = {0};
  int fd = memfd_create("duebox.yaml", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size)
    abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (config_load(path, modules, &config, &err)) {
    FILE *out = fopen("/dev/null", "w");
    config_show(config, CONFIG_YAML, out);
    config_show(config, CONFIG_JSON, out);
    fclose(out);
    if (!config_reloadable(config, config, &err))
      abort();
    config_free(&config);
  } else if (!err.text[0] || config) {
    abort();
  }
  close(fd);
  return 0;
}
