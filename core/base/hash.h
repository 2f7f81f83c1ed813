/* SPDX-License-Identifier: MIT
 *
 * core/base/hash.h - FNV-1a with 64 bits. For digests of what operators and this program write, not against anybody who
 * looks for two texts with the same one.
 */
#ifndef CORE_BASE_HASH_H
#define CORE_BASE_HASH_H

#include <stdint.h>

#define HASH_EMPTY UINT64_C(0xcbf29ce484222325)

/* The hash of what went before and of the text behind it. The NUL counts, so "ab", "c" differs from "a", "bc". Daemons
 * of several versions compare such hashes in the database: they stay as they are. */
uint64_t hash_text(uint64_t before, const char *text);

#endif
