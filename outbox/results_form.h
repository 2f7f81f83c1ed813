/* SPDX-License-Identifier: MIT
 *
 * outbox/results_form.h - inside of outbox/: results of routes of which the server refuses some, and in which form
 * those are written whose history, say, it refuses time and again. A session remembers a few such routes
 * (core/refusals.h).
 */
#ifndef OUTBOX_RESULTS_FORM_H
#define OUTBOX_RESULTS_FORM_H

#include "core/refusals.h"
#include "core/store.h"

enum { RESULTS_FORM_ROUTES = 16 };

struct results_forms {
  struct results_form_route {
    char name[STORE_ROUTE_MAX + 1];
    struct outcome_refusals refusals;
  } routes[RESULTS_FORM_ROUTES];
  size_t next; /* whose place the next new one takes */
};

/* Whether the result is to be tried, and then sets result->least and *form, in which it is to be written; otherwise it
 * is left, for a turn of its route. forms: NULL = nothing is known. */
MUSTCHECK bool results_form(struct results_forms *forms, struct store_result *result, const char *route,
                            enum task_event event, enum decision_form *form);
/* The server has refused one of the results: the others of its route among the `behind` ones that follow it, none of
 * which is done, are left. */
void results_form_leave_kin(struct store_result *refused, size_t behind);
/* It is in the quarantine, which knows no route: whose it was is as before. */
void results_form_keep(struct store_result *result, const struct store_result *before);
/* What became of a call's results: remembers it, and says in each that was applied what was written of it. *forms is
 * made when it is needed; the caller frees it. */
void results_form_note(struct results_forms **forms, struct store_result *results, size_t count);

#endif
