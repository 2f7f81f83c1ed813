/* SPDX-License-Identifier: MIT
 *
 * core/base/utf8.h - foreign text on a screen: which characters are none, and which deceive the reader.
 *
 * Log lines, tables and JSON share it.
 */
#ifndef CORE_BASE_UTF8_H
#define CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The character at text (len > 0) and how many bytes it takes; 0 = these bytes are not UTF-8. */
size_t utf8_decode(const char *text, size_t len, unsigned *code);

/* The length without a last character that was cut through; len where there is none. */
size_t utf8_whole(const char *text, size_t len);

/* Whether a character controls the terminal (C0, C1, DEL), reorders what is around it, or cannot be seen. */
bool utf8_is_unsafe(unsigned code);

/* Writes '?' over all that is unsafe, but for the characters that are kept ("\n\t"), and over what is not UTF-8. */
void utf8_make_printable(char *text, const char *kept);

#endif
