/* SPDX-License-Identifier: MIT
 *
 * tests/support/own_time.h - a clock for what must not take long: it stands still while the calling thread could run
 * and got no processor, so that a busy machine is not taken for a plugin that waits.
 *
 * What a thread calculates and what it waits for counts in full. Differences are good on one thread only.
 */
#ifndef TESTS_SUPPORT_OWN_TIME_H
#define TESTS_SUPPORT_OWN_TIME_H

#include <stdint.h>

int64_t own_time_ms(void);
/* The part that own_time_ms() leaves out, in all of this thread's life; 0 where the kernel does not tell it. */
int64_t own_time_starved_ms(void);

#endif
