/* SPDX-License-Identifier: MIT
 *
 * tests/sim/memory.h - whose memory is whose: what a machine has allocated is freed when it is killed in mid-call.
 *
 * malloc() and its relatives are wrapped by the linker (--wrap) for everything in the simulator, the core included.
 * What the C library allocates by itself and hands out (strdup, open_memstream) is not: it is lost with a killed
 * machine.
 */
#ifndef TESTS_SIM_MEMORY_H
#define TESTS_SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whose memory is allocated from now on: the machine's of that number, 0 = the world's. Returns the one before. The
 * world sets it at each switch; a server does so for what is its own. */
unsigned memory_belongs_to(unsigned machine);
/* Frees all that belongs to it. */
void memory_free_all(unsigned machine);
size_t memory_count(unsigned machine);
/* Whether anybody has written into memory that was freed, not long before, since this was asked last. */
bool memory_spoilt(void);

#endif
