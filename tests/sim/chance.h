/* SPDX-License-Identifier: MIT
 *
 * tests/sim/chance.h - all that is left to chance in a run, from one seed: apart for the order of threads, for faults
 * and for what users do, so that leaving one out leaves the others as they are.
 */
#ifndef TESTS_SIM_CHANCE_H
#define TESTS_SIM_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
  uint64_t state;
};

/* A stream of its own for each purpose. */
struct chance chance_of(uint64_t seed, uint64_t purpose);
uint64_t chance_u64(struct chance *chance);
/* 0 to n - 1; n > 0. */
uint64_t chance_below(struct chance *chance, uint64_t n);
/* low to high, both inclusive. */
int64_t chance_between(struct chance *chance, int64_t low, int64_t high);
/* Between low and high, each power of two as likely as the next: many small ones and a few large ones. 0 < low. */
int64_t chance_log_between(struct chance *chance, int64_t low, int64_t high);
/* True in so many of a million. */
bool chance_ppm(struct chance *chance, uint32_t ppm);

#endif
