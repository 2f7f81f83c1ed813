/* SPDX-License-Identifier: MIT
 *
 * cli/text.h - text from the database made fit for a terminal.
 *
 * Anybody who may insert a row chooses these bytes, so control characters, escape sequences, bytes that are no UTF-8
 * and characters that reorder a line are shown as \n, \x1b or \u202e and never acted out. Functions are pure.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"

enum text_lines { TEXT_ONE_LINE, TEXT_KEEP_LINES /* line ends and tabs stay */ };

/* A copy to free(), or NULL without memory. */
MUSTCHECK char *text_safe(const char *text, size_t len, enum text_lines lines);

/* What belongs in front of a message id so that a command takes it for nothing else when it is copied there: an
 * application may call a task as a row is named, or as an option. "" = nothing. */
const char *text_name_prefix(const char *message_id);

/* Whether the bytes are UTF-8 without NUL. */
bool text_is_utf8(const char *text, size_t len);

#endif
