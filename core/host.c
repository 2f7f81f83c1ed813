/* SPDX-License-Identifier: MIT */
#include "core/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/callback.h"
#include "core/config_ref.h"
#include "core/driver.h"
#include "core/inbox.h"
#include "core/lane.h"
#include "core/mask.h"
#include "core/stall.h"
#include "core/template.h"

void host_hide(const struct driver *driver, const struct duebox_task *task, char *text) {
  mask_said(driver->module, driver->instance.options, driver->instance.source, task ? task->route_data : NULL,
            task && task->reply_to ? callback_mac(task->reply_to) : NULL, text);
}

/* The row's own timeout_ms is over, and it is less than the route's. */
static bool own_time_is_up(const struct flight *flight) {
  if (!flight->task->timeout_ms)
    return false;
  const struct route_config *route =
      config_route(flight->config->config, flight->lane->name, strlen(flight->lane->name));
  return route && flight_own_time_is_up(flight, route->timeout_ms);
}

static void host_complete(void *ctx, uint64_t token, const struct duebox_outcome *outcome) {
  struct driver *driver = ctx;
  struct flight *flight = flight_complete(driver->env.flights, token);
  if (!flight) {
    count(&driver->env.metrics->completions_twice, 1);
    return;
  }
  driver_left(flight, stall_confirms(outcome->cls));
  flight->end = outcome->cls == DUEBOX_UNKNOWN && atomic_load(&driver->stop_ms) ? FLIGHT_STOPPED : FLIGHT_OUTCOME;
  flight->completed_us = clock_mono_us();
  flight_set_outcome(flight, outcome);
  if (flight->outcome.recalled && flight->outcome.cls == DUEBOX_UNAVAILABLE) { /* as if it had never been submitted */
    flight->end = FLIGHT_UNSENT;
    atomic_store_explicit(&flight->submitted, false, memory_order_relaxed);
  } else if (flight->outcome.cls == DUEBOX_UNAVAILABLE && own_time_is_up(flight)) {
    flight->outcome.cls = DUEBOX_UNKNOWN; /* an attempt of its own, and no word about the destination */
  }
  if (flight->outcome.message) /* a copy, in flight->text */
    host_hide(driver, &flight->task->view, flight->text + (flight->outcome.message - flight->text));
  /* Handed on after the current call, many at once: the driver thread comes back within its poll time-out. */
  struct flight_list straight = {0};
  mutex_lock(&driver->own);
  flight_list_add(driver->abandoned ? &straight : &driver->done,
                  flight); /* nobody empties `done` of an abandoned one */
  mutex_unlock(&driver->own);
  mailbox_put(driver->env.settler, &straight);
  if (!thread_is_caller(&driver->thread))
    driver->module->wakeup(driver->inst);
}

static bool host_result(void *ctx, const struct duebox_record *record, uint64_t cookie) {
  struct driver *driver = ctx;
  if (inbox_offer(driver->env.inbox, driver, record, cookie))
    return true;
  atomic_store(&driver->wants_resume, true);
  return false;
}

/* Writes a line of a plugin's, within the quota of its instance. same: how often it came since it was written last. */
static void say(struct driver *driver, enum log_level level, const char *id, const char *text, uint64_t same) {
  uint64_t unsaid = 0;
  char again[64] = "", others[32] = "";
  mutex_lock(&driver->health_lock);
  bool due = level == LOG_LEVEL_DEBUG || log_quota_due(&driver->said.quota, clock_mono_us(), &unsaid);
  mutex_unlock(&driver->health_lock);
  if (same)
    snprintf(again, sizeof again, " (%llu more times since this was said last)", (unsigned long long)same);
  if (unsaid)
    snprintf(others, sizeof others, " unsaid=%llu", (unsigned long long)unsaid);
  if (due)
    log_write(level, id, "instance=%s %s%s%s", driver->name, text, again, others);
}

/* Trouble that goes on is news at once, and then seldom: a plugin says it at each attempt. */
static bool is_news(struct driver *driver, enum log_level level, const char *id, const char *text, uint64_t *same) {
  char line[2200];
  if (level > LOG_LEVEL_WARN)
    return true;
  snprintf(line, sizeof line, "%s %s", id, text);
  mutex_lock(&driver->health_lock);
  bool news = log_repeat_comes(&driver->said, line, clock_mono_us(), same);
  mutex_unlock(&driver->health_lock);
  return news;
}

/* The word as it stands in a line: nothing in it can end the field that it is in. */
static void log_id(const struct driver *driver, const char *id, char *out, size_t cap) {
  snprintf(out, cap, "%s", id && id[0] ? id : "?");
  host_hide(driver, NULL, out);
  for (char *c = out; *c; c++)
    if (*c <= ' ' || *c > '~' || strchr("\"\\=", *c))
      *c = '?';
}

static enum log_level log_level_of(int level) {
  return level < LOG_LEVEL_ERROR ? LOG_LEVEL_ERROR : level > LOG_LEVEL_DEBUG ? LOG_LEVEL_DEBUG : (enum log_level)level;
}

static void host_log(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) {
  struct driver *driver = ctx;
  char text[2048], word[64];
  uint64_t same = 0;
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  host_hide(driver, NULL, text);
  log_id(driver, id, word, sizeof word);
  if (is_news(driver, log_level_of((int)level), word, text, &same))
    say(driver, log_level_of((int)level), word, text, same);
}

static size_t host_expand(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape,
                          char *out, size_t cap) {
  return template_expand(tmpl, task, escape, out, cap);
}

static void set_health(struct driver *driver, bool up, bool unread, const char *said) {
  char text[sizeof driver->health];
  snprintf(text, sizeof text, "%s", said ? said : up ? "connected" : "down");
  host_hide(driver, NULL, text);
  mutex_lock(&driver->health_lock);
  bool changed = driver->up != up;
  driver->up = up;
  driver->stands_by = up && said && driver->role == DUEBOX_ROLE_SOURCE;
  if (!driver->stands_by)
    driver->taken_since_us = 0;
  if (!unread)
    driver->unread_since_us = 0;
  else if (!driver->unread_since_us)
    driver->unread_since_us = clock_mono_us();
  if (changed && up)
    atomic_fetch_add(&driver->ups, 1);
  if (!up)
    atomic_store(&driver->reaches_us, INT64_MAX);
  else if (atomic_load(&driver->reaches_us) == INT64_MAX)
    atomic_store(&driver->reaches_us, clock_mono_us());
  snprintf(driver->health, sizeof driver->health, "%s", text);
  mutex_unlock(&driver->health_lock);
  if (changed && up && driver->env.reachable)
    driver->env.reachable(driver->env.engine);
  if (changed && up)
    say(driver, LOG_LEVEL_INFO, "DUEBOX-PLUGIN-UP", text, 0);
  else if (changed)
    say(driver, LOG_LEVEL_WARN, "DUEBOX-PLUGIN-DOWN", text, 0);
}

void host_set_health(struct driver *driver, bool up, const char *said) { set_health(driver, up, false, said); }

static void host_health(void *ctx, bool up, const char *text) { set_health(ctx, up, false, text); }

static void host_unread(void *ctx, const char *text) { set_health(ctx, false, true, text); }

struct duebox_host host_table(struct driver *driver) {
  return (struct duebox_host){
      .struct_size = sizeof(struct duebox_host),
      .ctx = driver,
      .complete = host_complete,
      .result = host_result,
      .log = host_log,
      .expand = host_expand,
      .health = host_health,
      .unread = host_unread,
  };
}
