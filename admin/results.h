/* SPDX-License-Identifier: MIT
 *
 * admin/results.h - hands a result record to the engine and answers with what became of it.
 */
#ifndef ADMIN_RESULTS_H
#define ADMIN_RESULTS_H

#include "admin/http.h"

/* True when it counts, now or before. */
bool result_take(struct admin *admin, const struct result_offer *offer, struct response *response);

/* Whether the path is a callback URL that this daemon gave away; otherwise the response says no. Sets the request's
 * lane where the URL tells it. Waits for nothing. */
bool result_callback_allows(struct admin *admin, struct request *request, struct response *response);

#endif
