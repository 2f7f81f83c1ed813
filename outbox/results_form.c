/* SPDX-License-Identifier: MIT */
#include "outbox/results_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

static struct results_form_route *find(const struct store_session *ss, const char *name) {
  for (size_t i = 0; ss->forms && *name && i < RESULTS_FORM_ROUTES; i++)
    if (strcmp(ss->forms->routes[i].name, name) == 0)
      return &ss->forms->routes[i];
  return NULL;
}

/* Without memory for it nothing is remembered. */
static struct results_form_route *remember(struct store_session *ss, const char *name) {
  if (!ss->forms)
    ss->forms = calloc(1, sizeof *ss->forms);
  if (!ss->forms)
    return NULL;
  struct results_form_route *route = &ss->forms->routes[ss->forms->next++ % RESULTS_FORM_ROUTES];
  *route = (struct results_form_route){0};
  snprintf(route->name, sizeof route->name, "%s", name);
  return route;
}

enum decision_form results_form(struct store_session *ss, struct store_result *result, const char *name,
                                enum task_event event, const struct store_result **probe) {
  struct results_form_route *route = find(ss, name);
  result->least = DECISION_WHOLE;
  if (route && !*probe && refusals_way(&route->refusals, event, clock_mono_us()) == REFUSALS_PROBE)
    *probe = result;
  if (route && *probe != result)
    result->least = refusals_least(&route->refusals, event);
  return result->form > result->least ? result->form : result->least;
}

void results_form_note(struct store_session *ss, struct store_result *results, size_t count) {
  int64_t now = clock_mono_us();
  for (size_t i = 0; i < count; i++) {
    struct store_result *result = &results[i];
    if (result->fate != RESULT_APPLIED || result->changed)
      continue;
    struct results_form_route *route = find(ss, result->route);
    enum decision_form least = result->least, form = result->form > least ? result->form : least;
    if (!route && form > least)
      route = remember(ss, result->route);
    if (form == least && form)
      snprintf(result->refusal, sizeof result->refusal,
               "as of those of its route before, of which one a second is tried whole");
    result->form = form;
    if (route)
      (void)refusals_note(&route->refusals, result->event, least, form, now);
  }
}
