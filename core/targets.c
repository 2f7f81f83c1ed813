/* SPDX-License-Identifier: MIT */
#include "core/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/template.h"

enum { NAME_MAX_OF_BROKERS = 255 };

size_t target_name(const struct route_config *route, const struct duebox_task *task, char name[TARGET_NAME_MAX + 1]) {
  size_t len = 0;
  for (const struct duebox_option *row = route->plugin->module->route_options; row && row->name; row++) {
    const char *tmpl =
        row->flags & DUEBOX_OPT_TARGET ? *(const char *const *)((const char *)route->options + row->offset) : NULL;
    if (!tmpl || !tmpl[0] || len + 1 >= TARGET_NAME_MAX)
      continue;
    if (len > 0)
      name[len++] = '/';
    size_t room = TARGET_NAME_MAX - len;
    size_t wants = template_expand(tmpl, task, DUEBOX_ESCAPE_NONE, name + len, room + 1);
    len += wants < room ? wants : room;
  }
  name[len] = '\0';
  return len;
}

bool target_permitted(const struct route_config *route, const struct duebox_task *task, struct err *err) {
  if (!route->answers_at.count)
    return true;
  char name[NAME_MAX_OF_BROKERS + 2]; /* declared here: the compiler's hardening fills it */
  for (const struct duebox_option *row = route->plugin->module->route_options; row && row->name; row++) {
    const char *tmpl =
        row->flags & DUEBOX_OPT_TARGET ? *(const char *const *)((const char *)route->options + row->offset) : NULL;
    if (!tmpl)
      continue;
    (void)template_expand(tmpl, task, DUEBOX_ESCAPE_NONE, name, sizeof name);
    for (size_t i = 0; i < route->answers_at.count; i++)
      if (strcmp(name, route->answers_at.items[i]) == 0) /* of a value with a NUL the beginning, as brokers get it */
        return err_set(err, 0,
                       "its %s is \"%s\", from where results are read: what the row holds would answer for other "
                       "tasks; correct the row, or the template %s of the route",
                       row->name, name, row->name);
  }
  return true;
}

struct target *targets_find(const struct targets *targets, const char *name, size_t len) {
  struct target *target = targets->first;
  while (target && (target->len != len || memcmp(target->name, name, len) != 0))
    target = target->next;
  return target;
}

void targets_drop(struct targets *targets, struct target *target, size_t *total) {
  struct target **at = &targets->first;
  while (*at != target)
    at = &(*at)->next;
  *at = target->next;
  free(target);
  targets->count--;
  --*total;
}

void targets_clear(struct targets *targets, size_t *total) {
  while (targets->first)
    targets_drop(targets, targets->first, total);
}

/* Forgets the one that was met longest ago, never one whose probe is out. False: there is none to forget. */
static bool forget_oldest(struct targets *targets, size_t *total) {
  struct target *oldest = NULL;
  for (struct target *target = targets->first; target; target = target->next)
    if (target->health.state != HEALTH_PROBING && (!oldest || target->met_us < oldest->met_us))
      oldest = target;
  if (oldest)
    targets_drop(targets, oldest, total);
  return oldest != NULL;
}

struct target *targets_make(struct targets *targets, const char *name, size_t len, int64_t now_us, size_t *total) {
  struct target *target = targets_find(targets, name, len);
  if (target)
    return target;
  bool full = targets->count >= TARGETS_PER_ROUTE || (*total >= TARGETS_MAX && targets->count >= TARGETS_LEAST);
  if (full && !forget_oldest(targets, total))
    return NULL;
  target = calloc(1, sizeof *target + len + 1);
  if (!target)
    return NULL;
  memcpy(target->name, name, len);
  target->len = len;
  target->met_us = now_us;
  target->next = targets->first;
  targets->first = target;
  targets->count++;
  ++*total;
  return target;
}

void target_label(const char *name, const char *task_key, char *out, size_t cap) {
  const char *slashes = strstr(name, "://");
  if (!slashes) {
    snprintf(out, cap, "%s", name);
    return;
  }
  int scheme = (int)(slashes - name) + 3, authority = (int)strcspn(name + scheme, "/?"), user = 0;
  for (int i = 0; i < authority; i++)
    if (name[scheme + i] == '@')
      user = i + 1;
  snprintf(out, cap, "%.*s%.*s/.. (task_key %s)", scheme, name, authority - user, name + scheme + user, task_key);
}
