/* SPDX-License-Identifier: MIT
 *
 * core/base/random.h - random bits from the kernel. For ids and jitter; the pure core gets them as arguments.
 */
#ifndef CORE_BASE_RANDOM_H
#define CORE_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

uint64_t random_u64(void);
/* Writes bytes * 2 hexadecimal digits and a NUL. */
void random_hex(char *out, size_t bytes);

#endif
