/* SPDX-License-Identifier: MIT
 *
 * duebox/check.h - how a plugin's check_targets() writes an answer.
 *
 * Nothing to link against.
 */
#ifndef DUEBOX_CHECK_H
#define DUEBOX_CHECK_H

#include <stdarg.h>
#include <stdio.h>

#include <duebox/plugin.h>

/* Fills in verdict, cure ("" = none) and what was found, cut where they do not fit. */
DUEBOX_PRINTF(4, 5)
static inline void duebox_check_answer(struct duebox_check *check, enum duebox_check_verdict verdict, const char *cure,
                                       const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(check->text, sizeof(check->text), fmt, args);
  va_end(args);
  (void)snprintf(check->cure, sizeof(check->cure), "%s", cure);
  check->verdict = verdict;
}

#endif
