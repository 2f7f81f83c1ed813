/* SPDX-License-Identifier: MIT */
#include "chance.h"

#include <math.h>

/* SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
uint64_t chance_u64(struct chance *chance) {
  uint64_t z = chance->state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

struct chance chance_of(uint64_t seed, uint64_t purpose) {
  struct chance chance = {.state = seed};
  chance.state = chance_u64(&chance) ^ purpose * 0xda942042e4dd58b5U;
  (void)chance_u64(&chance);
  return chance;
}

uint64_t chance_below(struct chance *chance, uint64_t n) {
  return (uint64_t)(((unsigned __int128)chance_u64(chance) * n) >> 64);
}

int64_t chance_between(struct chance *chance, int64_t low, int64_t high) {
  return low + (int64_t)chance_below(chance, (uint64_t)(high - low) + 1);
}

int64_t chance_log_between(struct chance *chance, int64_t low, int64_t high) {
  double part = (double)chance_below(chance, 1U << 20) / (double)(1U << 20);
  int64_t value = (int64_t)((double)low * exp(part * log((double)high / (double)low)));
  return value < low ? low : value > high ? high : value;
}

bool chance_ppm(struct chance *chance, uint32_t ppm) { return chance_below(chance, 1000000) < ppm; }
