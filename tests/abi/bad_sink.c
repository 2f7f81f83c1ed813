/* SPDX-License-Identifier: MIT */
#include "bad_plugin.h"

const struct duebox_plugin duebox_plugin_v1 = {DUEBOX_PLUGIN_PREFIX, SOUND_FIELDS, .sink = NULL};
