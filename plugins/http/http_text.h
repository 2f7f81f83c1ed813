/* SPDX-License-Identifier: MIT
 *
 * http_text.h - foreign bytes made fit for an error text that ends up in a table column, a log and a terminal.
 *
 * Pure.
 */
#ifndef PLUGINS_HTTP_TEXT_H
#define PLUGINS_HTTP_TEXT_H

#include <stddef.h>

/* Copies text into out (cap > 0 bytes, always NUL-terminated): runs of white space and control characters (C0, DEL, C1)
 * become one blank, bytes that are not UTF-8 become '?', and a character is never cut in two. Returns the length. */
size_t http_text_clean(char *out, size_t cap, const char *text, size_t len);

#endif
