/* SPDX-License-Identifier: MIT
 *
 * core/json_salvage.h - what can still be read of an object that is no valid JSON. Pure.
 *
 * For answers whose meaning counts although somebody built them by hand. Some defects leave no doubt about what belongs
 * to what: a comma too many, single quotes, a byte of another character set, a line break in a text, a body that was
 * cut off. Others do: a quote or backslash that is not escaped, a bracket that is missing. From there on the reading is
 * a guess, and the same bytes can be searched as text. Nothing is unescaped, and every byte is looked at a bounded
 * number of times.
 */
#ifndef CORE_JSON_SALVAGE_H
#define CORE_JSON_SALVAGE_H

#include <duebox/task.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"

struct json_salvage {
  const char *at, *end;
  const char *doubt; /* from here on it is a guess what belongs to what; NULL = not yet */
  bool apart;        /* a member may begin here: behind a comma or the opening brace */
  bool mixed;        /* what was guessed may be another object's: something follows the end, or is within a string */
  bool closed;       /* its closing brace is there */
  bool excess;       /* what follows the end shows a bracket too many: where it is, nobody knows */
};

/* Stands before the first member; false when the text does not begin as an object. */
MUSTCHECK bool json_salvage_start(struct json_salvage *s, const char *text, size_t len);
/* The next member of the object itself: key and value as they were written, strings without their quotes; *text says
 * that the value is a string. A string that is not closed is no value, and a number that may go on is an empty one.
 * False at the end. */
MUSTCHECK bool json_salvage_next(struct json_salvage *s, struct duebox_bytes *key, struct duebox_bytes *value,
                                 bool *text);

/* The next place from *at on where a member of that name, upper or lower case, seems to have a value, however deep and
 * within strings too: a human would take it for one although a quote or the colon is missing, or rubbish stands before
 * it. The value ends where it would, or where the next quote is; null is none. *at moves behind it. */
MUSTCHECK bool json_salvage_search(const char **at, const char *end, const char *name, struct duebox_bytes *value);

#endif
