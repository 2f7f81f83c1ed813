/* SPDX-License-Identifier: MIT */
#include "core/base/hash.h"

uint64_t hash_text(uint64_t before, const char *text) {
  uint64_t hash = before;
  do
    hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  while (*text++);
  return hash;
}
