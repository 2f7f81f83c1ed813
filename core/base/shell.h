/* SPDX-License-Identifier: MIT
 *
 * core/base/shell.h - foreign text in a command that people copy into their shell.
 */
#ifndef CORE_BASE_SHELL_H
#define CORE_BASE_SHELL_H

#include <stddef.h>

#include "core/base/attr.h"

/* Room for a text of this length, whatever is in it. */
#define SHELL_ROOM(len) (4 * (len) + 3)

/* Writes the text as one word of a POSIX shell, in quotes where it needs them, and returns out. One that does not fit
 * is written as '?': half of it could be another command. */
char *shell_word(char *out, size_t cap, const char *text);

#endif
