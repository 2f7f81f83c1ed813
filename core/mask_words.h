/* SPDX-License-Identifier: MIT
 *
 * core/mask_words.h - words of many messages: our own, those of servers and of libraries. Pure.
 *
 * Over each of them in every text "***" would hide nothing: what is missing in "no such *** in the queue" everybody can
 * tell, and has the password then. So a secret that is such a word, as a whole, is looked for only where somebody may
 * repeat a value. No other word of a language is treated like that, however short: a text that has it by chance is too
 * rare to let a secret go for it.
 */
#ifndef CORE_MASK_WORDS_H
#define CORE_MASK_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the text is one of them, in upper or lower case. */
bool mask_is_common(const char *text, size_t len);

#endif
