/* SPDX-License-Identifier: MIT
 *
 * tests/abi/bad_plugin.h - a sound minimal descriptor, of which each bad_*.c breaks one rule.
 */
#ifndef TESTS_ABI_BAD_PLUGIN_H
#define TESTS_ABI_BAD_PLUGIN_H

#include <duebox/plugin.h>

static bool bad_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                       struct duebox_error *err) {
  return true;
}
static bool bad_start(void *inst, struct duebox_error *err) { return true; }
static void bad_poll(void *inst, int timeout_ms) {}
static void bad_wakeup(void *inst) {}
static void bad_close(void *inst) {}
static void bad_stop(void *inst, int deadline_ms) {}
static void bad_destroy(void *inst) {}
static size_t bad_submit(void *inst, const struct duebox_task *const *tasks, size_t n) { return 0; }
static const struct duebox_sink_ops bad_sink = {.struct_size = sizeof bad_sink, .submit = bad_submit};

#define SOUND_FIELDS                                                                                                   \
  .capabilities = DUEBOX_CAP_SINK, .name = "bad", .version = "1", .summary = "breaks one rule", .create = bad_create,  \
  .start = bad_start, .poll = bad_poll, .wakeup = bad_wakeup, .close = bad_close, .stop = bad_stop,                    \
  .destroy = bad_destroy, .sink = &bad_sink

DUEBOX_EXPORT extern const struct duebox_plugin duebox_plugin_v1;

/* What follows SOUND_FIELDS overrides it: designated initialisers may name a field again. */
#pragma GCC diagnostic ignored "-Woverride-init"

#endif
