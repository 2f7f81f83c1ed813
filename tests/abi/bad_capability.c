/* SPDX-License-Identifier: MIT */
#include "bad_plugin.h"

const struct duebox_plugin duebox_plugin_v1 = {DUEBOX_PLUGIN_PREFIX, SOUND_FIELDS,
                                               .capabilities = DUEBOX_CAP_SINK | 0x4000u};
