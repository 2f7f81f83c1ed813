/* SPDX-License-Identifier: MIT
 *
 * tests/abi/hang_check.c - a sound sink that never comes back when it is asked for its targets, and goes on reading its
 * options: it aborts the process as soon as they are not what they were. What its library would do at the end of the
 * process takes a while.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bad_plugin.h"

struct hang_options {
  const char *text;
};

static const struct duebox_option options[] = {{"text", DUEBOX_OPT_STRING, "the text that was given", 0, 0, 0,
                                                offsetof(struct hang_options, text), NULL,
                                                "what is read again and again"},
                                               {.name = NULL}};

static void end_slowly(void) { nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); }

static void check_targets(const void *filled, struct duebox_check *const *checks, size_t count, int timeout_ms) {
  const struct hang_options *o = filled;
  const char *text = o->text;
  char *copy = strdup(text);
  if (atexit(end_slowly) != 0)
    abort();
  while (copy && *(const char *const volatile *)&o->text == text && strcmp(text, copy) == 0)
    nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
  abort();
}

static bool start_up(void *inst, struct duebox_error *err) {
  const struct duebox_host *host = *(const struct duebox_host **)inst;
  host->health(host->ctx, true, NULL);
  return true;
}

static bool create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                   struct duebox_error *err) {
  *(const struct duebox_host **)inst = host;
  return true;
}

const struct duebox_plugin duebox_plugin_v1 = {DUEBOX_PLUGIN_PREFIX,
                                               SOUND_FIELDS,
                                               .name = "hang_check",
                                               .create = create,
                                               .start = start_up,
                                               .instance_size = sizeof(void *),
                                               .options = options,
                                               .options_size = sizeof(struct hang_options),
                                               .check_targets = check_targets};
