/* SPDX-License-Identifier: MIT
 *
 * tests/unit/config_fixture.h - a private folder with a configuration, its drop-ins and secrets, and the test plugins.
 */
#ifndef TESTS_UNIT_CONFIG_FIXTURE_H
#define TESTS_UNIT_CONFIG_FIXTURE_H

#include "core/config.h"
#include "core/modules.h"

struct config_fixture {
  char folder[64];
  struct module_registry *modules;
};

int config_set_up(struct config_fixture *f);
void config_tear_down(struct config_fixture *f);

/* Writes a file below the folder with that mode. */
void config_write(const struct config_fixture *f, const char *name, const char *text, unsigned mode);
/* Loads duebox.yaml of the folder. */
struct config *config_try(const struct config_fixture *f, struct err *err);
/* What `config show` prints, to be freed. */
char *config_shown(const struct config *config, bool json);
/* Copies text with each "@/" replaced by the folder and a slash. */
void config_place_text(const struct config_fixture *f, const char *text, char *out, size_t cap);

#endif
