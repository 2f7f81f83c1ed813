/* SPDX-License-Identifier: MIT */
#include "bad_plugin.h"

/* One fault in each row but the first. */
struct values {
  int64_t number;
  bool flag;
};

static const struct duebox_option rows[] = {
    {"number", DUEBOX_OPT_INT, "5", 1, 9, 0, 0, NULL, "a sound row"},
    {"beyond", DUEBOX_OPT_INT, NULL, 0, 0, 0, sizeof(struct values), NULL, "lies behind the struct"},
    {"number", DUEBOX_OPT_BOOL, "true", 0, 0, 0, offsetof(struct values, flag), NULL, "a name that is taken"},
    {"limit", DUEBOX_OPT_BOOL, "maybe", 0, 0, 0, offsetof(struct values, flag) + 1, NULL, "a default that is none"},
    {"module", DUEBOX_OPT_BOOL, NULL, 0, 0, 0, offsetof(struct values, flag) + 2, NULL, "a name of the host"},
    {.name = NULL}};

const struct duebox_plugin duebox_plugin_v1 = {DUEBOX_PLUGIN_PREFIX, SOUND_FIELDS, .options = rows,
                                               .options_size = sizeof(struct values)};
