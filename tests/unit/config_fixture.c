/* SPDX-License-Identifier: MIT */
#include "config_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/config_show.h"

int config_set_up(struct config_fixture *f) {
  char confd[96];
  strcpy(f->folder, "/tmp/duebox-config-XXXXXX");
  if (!mkdtemp(f->folder) || setenv("DUEBOX_PLUGIN_PATH", TEST_PLUGINS, 1) != 0)
    return -1;
  snprintf(confd, sizeof confd, "%s/conf.d", f->folder);
  log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  f->modules = modules_new();
  return mkdir(confd, 0700);
}

void config_tear_down(struct config_fixture *f) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf %s", f->folder);
  if (system(command) != 0)
    fprintf(stderr, "cannot remove %s\n", f->folder);
  modules_free(&f->modules);
}

void config_write(const struct config_fixture *f, const char *name, const char *text, unsigned mode) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", f->folder, name);
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file) != 0 || chmod(path, mode) != 0)
    abort();
}

struct config *config_try(const struct config_fixture *f, struct err *err) {
  char path[256];
  struct config *config;
  snprintf(path, sizeof path, "%s/duebox.yaml", f->folder);
  return config_load(path, f->modules, &config, err) ? config : NULL;
}

void config_place_text(const struct config_fixture *f, const char *text, char *out, size_t cap) {
  size_t used = 0;
  out[0] = '\0';
  while (*text && used + 1 < cap) {
    if (strncmp(text, "@/", 2) == 0) {
      used += (size_t)snprintf(out + used, cap - used, "%s/", f->folder);
      text += 2;
    } else {
      out[used++] = *text++;
      out[used] = '\0';
    }
  }
}

char *config_shown(const struct config *config, bool json) {
  char *text = NULL;
  size_t len;
  FILE *out = open_memstream(&text, &len);
  if (!out)
    abort();
  config_show(config, json ? CONFIG_JSON : CONFIG_YAML, out);
  fclose(out);
  return text;
}
