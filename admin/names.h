/* SPDX-License-Identifier: MIT
 *
 * admin/names.h - the words by which API and metrics call the core's enums. Part of the contract: never renamed.
 */
#ifndef ADMIN_NAMES_H
#define ADMIN_NAMES_H

#include <duebox/outcome.h>

#include "core/metrics.h"
#include "core/store.h"

const char *outcome_name(enum duebox_outcome_class cls); /* "delivered" */
const char *quarantined_name(enum quarantine_kind kind); /* "orphan" */
const char *fate_name(enum result_fate fate);            /* "applied" */

#endif
