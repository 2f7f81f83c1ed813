/* SPDX-License-Identifier: MIT
 *
 * cli/probe_targets.c - asks a plugin whether the targets of routes and sources are there, on a thread that may hang.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/probe.h"
#include "core/plugin_check.h"
#include "core/template.h"

enum { LIMIT_MS = 6000, PATIENCE_S = 12 };

/* All that the thread uses. A plugin that does not come back keeps it. */
struct probe_targets {
  const struct plugin_config *plugin;
  size_t count;
  struct duebox_check **pointers;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done;    /* under the lock */
  bool lasting; /* the thread has not come back */
  struct duebox_check checks[];
};

static bool expand(const struct duebox_check *check, const char *tmpl, char *out, size_t cap) {
  const struct duebox_task task = {.struct_size = sizeof task, .route = check->name};
  size_t len = template_varies(tmpl) ? cap : template_expand(tmpl, &task, DUEBOX_ESCAPE_NONE, out, cap);
  return len < cap && strlen(out) == len;
}

static size_t collect(const struct config *config, const struct plugin_config *plugin, struct duebox_check *checks) {
  size_t n = 0;
  for (size_t i = 0; i < config->route_count; i++)
    if (config->routes[i].plugin == plugin) {
      if (checks)
        checks[n] = (struct duebox_check){.route = config->routes[i].options, .name = config->routes[i].name};
      n++;
    }
  for (size_t i = 0; i < config->source_count; i++)
    if (config->sources[i].plugin == plugin) {
      if (checks)
        checks[n] = (struct duebox_check){.source = config->sources[i].options, .name = config->sources[i].name};
      n++;
    }
  return n;
}

static void *run(void *arg) {
  struct probe_targets *targets = arg;
  plugin_check_targets(targets->plugin->module)(targets->plugin->options, targets->pointers, targets->count, LIMIT_MS);
  pthread_mutex_lock(&targets->lock);
  targets->done = true;
  pthread_cond_signal(&targets->changed);
  pthread_mutex_unlock(&targets->lock);
  return NULL;
}

/* False: no thread could be started. */
static bool ask(struct probe_targets *targets) {
  pthread_t thread;
  struct timespec end;
  if (pthread_create(&thread, NULL, run, targets) != 0)
    return false;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += PATIENCE_S;
  pthread_mutex_lock(&targets->lock);
  while (!targets->done && pthread_cond_timedwait(&targets->changed, &targets->lock, &end) == 0)
    ;
  targets->lasting = !targets->done;
  pthread_mutex_unlock(&targets->lock);
  if (targets->lasting)
    pthread_detach(thread);
  else
    pthread_join(thread, NULL);
  return true;
}

struct probe_targets *probe_targets(const struct config *config, const struct plugin_config *plugin) {
  size_t count = plugin_check_targets(plugin->module) ? collect(config, plugin, NULL) : 0;
  struct probe_targets *targets = count ? calloc(1, sizeof *targets + count * sizeof *targets->checks) : NULL;
  if (!targets)
    return NULL;
  targets->plugin = plugin;
  targets->count = count;
  targets->pointers = calloc(count, sizeof *targets->pointers);
  collect(config, plugin, targets->checks);
  for (size_t i = 0; targets->pointers && i < count; i++) {
    targets->checks[i].struct_size = sizeof targets->checks[i];
    targets->checks[i].expand = expand;
    targets->pointers[i] = &targets->checks[i];
  }
  pthread_mutex_init(&targets->lock, NULL);
  pthread_cond_init(&targets->changed, NULL);
  if (targets->pointers && ask(targets))
    return targets;
  free(targets->pointers);
  free(targets);
  return NULL;
}

const struct duebox_check *probe_targets_at(const struct probe_targets *targets, size_t i) {
  return !targets->lasting && i < targets->count ? &targets->checks[i] : NULL;
}

bool probe_targets_hang(const struct probe_targets *targets) { return targets->lasting; }

void probe_targets_free(struct probe_targets *targets) {
  if (!targets || targets->lasting)
    return;
  pthread_cond_destroy(&targets->changed);
  pthread_mutex_destroy(&targets->lock);
  free(targets->pointers);
  free(targets);
}
