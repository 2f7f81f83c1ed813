/* SPDX-License-Identifier: MIT
 *
 * core/base/hash.h - two hashes. FNV-1a for digests of what operators and this program write, not against anybody who
 * looks for two texts with the same one. SipHash with a key of the process for what others choose: ids, keys, names,
 * addresses. Whoever could make thousands of these collide would turn a table into a list, and stop all routes.
 */
#ifndef CORE_BASE_HASH_H
#define CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_EMPTY UINT64_C(0xcbf29ce484222325)

/* The hash of what went before and of the text behind it. The NUL counts, so "ab", "c" differs from "a", "bc". Daemons
 * of several versions compare such hashes in the database: they stay as they are. */
uint64_t hash_text(uint64_t before, const char *text);

/* SipHash-2-4 (Aumasson, Bernstein 2012) under a key that the kernel gives each process when it starts: other processes
 * have other hashes. Any thread. */
uint64_t hash_keyed(const void *data, size_t len);
/* The same under a given key. */
uint64_t hash_sip(const uint64_t key[2], const void *data, size_t len);
/* Of a number, cheaper: a multiplication by a secret odd one. Its upper bits are the good ones. */
uint64_t hash_number(uint64_t number);

#endif
