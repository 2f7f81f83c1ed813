/* SPDX-License-Identifier: MIT */
#include "outbox/results_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

static struct results_form_route *find(struct results_forms *forms, const char *name) {
  for (size_t i = 0; forms && *name && i < RESULTS_FORM_ROUTES; i++)
    if (strcmp(forms->routes[i].name, name) == 0)
      return &forms->routes[i];
  return NULL;
}

/* Without memory for it nothing is remembered. */
static struct results_form_route *remember(struct results_forms **forms, const char *name) {
  if (!*forms)
    *forms = calloc(1, sizeof **forms);
  if (!*forms)
    return NULL;
  struct results_form_route *route = &(*forms)->routes[(*forms)->next++ % RESULTS_FORM_ROUTES];
  *route = (struct results_form_route){0};
  snprintf(route->name, sizeof route->name, "%s", name);
  return route;
}

/* One that was chosen to be tried whole waits for the turn of its route, as others of a route in trouble do. */
static bool is_to_leave(struct results_form_route *route, struct store_result *result, enum task_event event) {
  if (!route || result->apart)
    return false;
  if (result->whole)
    return true;
  enum refusals_way way = refusals_way(&route->refusals, event, clock_mono_us());
  result->whole = way == REFUSALS_PROBE;
  return way != REFUSALS_TOGETHER;
}

bool results_form(struct results_forms *forms, struct store_result *result, const char *name, enum task_event event,
                  enum decision_form *form) {
  struct results_form_route *route = find(forms, name);
  if (is_to_leave(route, result, event))
    return false;
  result->least = route && !result->whole ? refusals_least(&route->refusals, event) : DECISION_WHOLE;
  *form = result->form > result->least ? result->form : result->least;
  return true;
}

void results_form_leave_kin(struct store_result *refused, size_t behind) {
  for (size_t i = 1; !refused->apart && *refused->route && i <= behind; i++)
    refused[i].left = refused[i].left || (!refused[i].broken && strcmp(refused[i].route, refused->route) == 0);
}

void results_form_keep(struct store_result *result, const struct store_result *before) {
  memcpy(result->route, before->route, sizeof result->route);
  result->event = before->event;
}

void results_form_note(struct results_forms **forms, struct store_result *results, size_t count) {
  int64_t now = clock_mono_us();
  for (size_t i = 0; i < count; i++) {
    struct store_result *result = &results[i];
    bool quarantined = result->fate == RESULT_BROKEN && result->form == DECISION_FORMS;
    if ((result->fate != RESULT_APPLIED || result->changed) && !quarantined)
      continue;
    struct results_form_route *route = find(*forms, result->route);
    enum decision_form least = result->least, form = result->form > least ? result->form : least;
    if (!route && form > least)
      route = remember(forms, result->route);
    if (form == least && form)
      snprintf(result->refusal, sizeof result->refusal,
               "as of those of its route before, of which one a second is tried whole");
    result->form = form;
    if (route)
      (void)refusals_note(&route->refusals, result->event, least, form, now);
  }
}
