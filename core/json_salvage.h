/* SPDX-License-Identifier: MIT
 *
 * core/json_salvage.h - what can still be read of an object that is no valid JSON. Pure.
 *
 * For answers whose meaning counts although somebody built them by hand: a trailing comma, single quotes, a byte of
 * another character set, a line break in a text, a body that was cut off. Nothing is unescaped, nothing is promised but
 * that every byte is looked at a bounded number of times.
 */
#ifndef CORE_JSON_SALVAGE_H
#define CORE_JSON_SALVAGE_H

#include <duebox/task.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"

struct json_salvage {
  const char *at, *end;
  bool unsure; /* what belongs to the object itself, and what to something within it, is a guess */
};

/* Stands before the first member; false when the text does not begin as an object. */
MUSTCHECK bool json_salvage_start(struct json_salvage *s, const char *text, size_t len);
/* The next member of the object itself: key and value as they were written, strings without their quotes; *text says
 * that the value is a string. A string that is not closed is no value. False at the end. */
MUSTCHECK bool json_salvage_next(struct json_salvage *s, struct duebox_bytes *key, struct duebox_bytes *value,
                                 bool *text);
/* After the last member: false when something stands behind the end of the object, so that its end, and with it what
 * belongs to it, is in doubt. */
MUSTCHECK bool json_salvage_ended(struct json_salvage *s);
/* Whether a member of that name, upper or lower case, has another value than this anywhere in a text, however deep, and
 * within strings too. null is none. */
MUSTCHECK bool json_salvage_other(const char *text, size_t len, const char *name, const char *value);

#endif
