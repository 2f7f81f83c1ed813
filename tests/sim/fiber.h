/* SPDX-License-Identifier: MIT
 *
 * tests/sim/fiber.h - coroutines: many stacks in one thread of the operating system.
 *
 * A switch costs some nanoseconds. Sanitizers are told of every switch. A fiber that is dropped in the middle of a call
 * leaves what it had allocated to whoever keeps book of it (tests/sim/memory.h).
 */
#ifndef TESTS_SIM_FIBER_H
#define TESTS_SIM_FIBER_H

struct fiber;

typedef void fiber_fn(void *arg);

/* A fiber that begins at its first switch; run must not return, but switch away for good. */
struct fiber *fiber_new(fiber_fn *run, void *arg);
/* Goes on in another fiber; NULL = where the program began. Returns when somebody switches back. */
void fiber_switch(struct fiber *to);
/* Its stack is used again. Not the one that runs. */
void fiber_drop(struct fiber *fiber);

#endif
