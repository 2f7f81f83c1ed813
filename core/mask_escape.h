/* SPDX-License-Identifier: MIT
 *
 * core/mask_escape.h - inside of core/mask.c: how a character may stand in a text that repeats a secret. Pure. Each
 * reads no further than the NUL behind the text.
 */
#ifndef CORE_MASK_ESCAPE_H
#define CORE_MASK_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* The byte that two hexadecimal digits stand for; -1 = they are none. */
int mask_hex_byte(const char *p);
/* Whether p is "%41", as URLs have it, or "=41", as quoted-printable has it. */
bool mask_hex_escape(const char *p);
/* How many backslashes a quoted character begins with: quoted more than once, there are more of them. */
size_t mask_backslashes(const char *p);
/* How many bytes at p are a character as JSON writes it behind so many backslashes, beyond U+FFFF as a pair, as
 * JavaScript does in braces, as C does in octal, or as HTML writes its number; 0 = none. */
size_t mask_numbered(const char *p, size_t backslashes, unsigned *code);
/* The same for a character that has a name in HTML, or a letter behind backslashes. */
size_t mask_named(const char *p, size_t backslashes, unsigned *code);
/* How many bytes at p are between two parts of a word that was wrapped: blanks, line ends, what cannot be seen, however
 * they are escaped; 0 = none. */
size_t mask_gap(const char *p);
/* How many bytes at p are between two bytes in hexadecimal: a gap, or signs, and what says that one follows. */
size_t mask_hex_gap(const char *p);
/* The same as mask_gap() where quoted-printable says that the line goes on ("=" at its end): what is around it is one
 * word for certain. */
size_t mask_soft_break(const char *p);

#endif
