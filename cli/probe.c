/* SPDX-License-Identifier: MIT */
#include "cli/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/patience.h"
#include "core/base/clock.h"
#include "core/mask.h"

enum { PATIENCE_S = 15, LIMIT_US = 8000000, SURE_US = 1000000, POLL_MS = 50, STOP_MS = 2000 };

/* Shared with the plugin's threads; one that does not come back keeps it. */
struct probe {
  const struct plugin_config *plugin;
  pthread_mutex_t lock;
  enum probe_answer answer;
  char text[512];
};

static void complete(void *ctx, uint64_t token, const struct duebox_outcome *outcome) {}
static bool result(void *ctx, const struct duebox_record *record, uint64_t cookie) { return false; }
static void note(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) {}

static size_t expand(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *out,
                     size_t cap) {
  if (cap > 0)
    out[0] = '\0';
  return 0;
}

static void health(void *ctx, bool up, const char *text) {
  struct probe *probe = ctx;
  pthread_mutex_lock(&probe->lock);
  probe->answer = up ? PROBE_UP : PROBE_DOWN;
  snprintf(probe->text, sizeof probe->text, "%s", text ? text : "");
  mask_said(probe->plugin->module, probe->plugin->options, NULL, NULL, NULL, probe->text);
  pthread_mutex_unlock(&probe->lock);
}

static enum probe_answer answer_of(struct probe *probe) {
  pthread_mutex_lock(&probe->lock);
  enum probe_answer answer = probe->answer;
  pthread_mutex_unlock(&probe->lock);
  return answer;
}

/* "Down" may be the first of several addresses: it counts when it has lasted. */
static void wait_for_answer(const struct duebox_plugin *module, void *inst, struct probe *probe) {
  int64_t end = clock_mono_us() + LIMIT_US, down_since = 0;
  for (int64_t now; (now = clock_mono_us()) < end;) {
    module->poll(inst, POLL_MS);
    enum probe_answer answer = answer_of(probe);
    if (answer == PROBE_UP)
      return;
    if (answer != PROBE_DOWN)
      down_since = 0;
    else if (!down_since)
      down_since = now;
    else if (now - down_since > SURE_US)
      return;
  }
}

static void run(void *arg) {
  struct probe *probe = arg;
  const struct duebox_plugin *module = probe->plugin->module;
  const struct duebox_host host = {.struct_size = sizeof host,
                                   .ctx = probe,
                                   .complete = complete,
                                   .result = result,
                                   .log = note,
                                   .expand = expand,
                                   .health = health};
  const struct duebox_instance_config config = {.struct_size = sizeof config,
                                                .role = DUEBOX_ROLE_SINK,
                                                .name = "doctor",
                                                .options = probe->plugin->options,
                                                .max_payload = 1 << 20,
                                                .max_inflight = 1};
  struct duebox_error err = {.text = "out of memory"};
  void *inst = calloc(1, module->instance_size ? module->instance_size : 1);
  bool created = inst && module->create(inst, &config, &host, &err);
  if (created && module->start(inst, &err)) {
    wait_for_answer(module, inst, probe);
    module->close(inst);
    module->stop(inst, STOP_MS);
  } else {
    health(probe, false, err.text);
  }
  if (inst)
    module->destroy(inst);
  free(inst);
}

enum probe_answer probe_plugin(const struct plugin_config *plugin, char *text, size_t cap) {
  struct probe *probe = calloc(1, sizeof *probe);
  text[0] = '\0';
  if (!probe)
    return PROBE_SILENT;
  *probe = (struct probe){.plugin = plugin, .lock = PTHREAD_MUTEX_INITIALIZER, .answer = PROBE_SILENT};
  if (patience_run(run, probe, PATIENCE_S) == PATIENCE_LASTING)
    return PROBE_HANGS;
  enum probe_answer answer = probe->answer;
  snprintf(text, cap, "%s", probe->text);
  pthread_mutex_destroy(&probe->lock);
  free(probe);
  return answer;
}
