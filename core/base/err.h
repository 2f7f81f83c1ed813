/* SPDX-License-Identifier: MIT
 *
 * core/base/err.h - a failure with its text, on the caller's stack.
 *
 * A function that can fail takes a struct err * as last argument, returns false (or a status) and has written a text
 * that names the place and the cure. Nobody prints on the way up; the one who decides prints.
 */
#ifndef CORE_BASE_ERR_H
#define CORE_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"

struct err {
  int code;        /* meaning belongs to the module that set it; 0 = none */
  bool denied;     /* a database refused it for want of a right, or a login: whoever grants them must act */
  bool refused;    /* a database answered, and refuses the statement, whoever gives it: a trigger, say */
  size_t place;    /* the text begins with so many bytes that name a place in a file */
  size_t key;      /* of these, as many before the last ": " name the key there, as in routes.orders.topic */
  char text[1024]; /* one line, no trailing full stop */
};

/* Writes text and code; returns false so that a caller can `return err_set(...)`. err may be NULL. */
bool err_set(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);
/* Puts "context: " before the text, unless it begins with that; returns false. */
bool err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);

#endif
