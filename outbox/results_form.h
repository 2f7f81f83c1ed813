/* SPDX-License-Identifier: MIT
 *
 * outbox/results_form.h - inside of outbox/: in which form results are written whose route's history, say, the server
 * refuses time and again. A session remembers a few such routes (core/refusals.h).
 */
#ifndef OUTBOX_RESULTS_FORM_H
#define OUTBOX_RESULTS_FORM_H

#include "core/refusals.h"
#include "outbox/session.h"

enum { RESULTS_FORM_ROUTES = 16 };

struct results_forms {
  struct results_form_route {
    char name[STORE_ROUTE_MAX + 1];
    struct outcome_refusals refusals;
  } routes[RESULTS_FORM_ROUTES];
  size_t next; /* whose place the next new one takes */
};

/* Sets result->least and returns the form in which it is to be written, which is no more than result->form. *probe: the
 * one result of the call that is tried whole whatever is known; NULL = none is yet. */
enum decision_form results_form(struct store_session *ss, struct store_result *result, const char *route,
                                enum task_event event, const struct store_result **probe);
/* What became of a call's results: remembers it, and says in each that was applied what was written of it. */
void results_form_note(struct store_session *ss, struct store_result *results, size_t count);

#endif
