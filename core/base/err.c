/* SPDX-License-Identifier: MIT */
#include "core/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool err_set(struct err *err, int code, const char *fmt, ...) {
  if (err) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    err->code = code;
    err->denied = err->refused = false;
    err->place = err->key = 0;
  }
  return false;
}

bool err_wrap(struct err *err, const char *fmt, ...) {
  if (err) {
    char inner[sizeof err->text];
    memcpy(inner, err->text, sizeof inner);
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    size_t used = strlen(err->text);
    strncat(err->text, ": ", sizeof err->text - used - 1);
    used = strlen(err->text);
    /* A unit of work and the statement that fails in it may have one name. */
    const char *rest = strncmp(inner, err->text, used) == 0 ? inner + used : inner;
    size_t len = strnlen(rest, sizeof err->text - used - 1);
    memcpy(err->text + used, rest, len);
    err->text[used + len] = '\0';
    err->place = err->key = 0;
  }
  return false;
}
