/* SPDX-License-Identifier: MIT */
#include "core/base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static void fill(void *out, size_t len) {
  /* Up to 256 bytes getrandom() neither fails nor returns less, once the kernel's pool is ready. */
  if (getrandom(out, len, 0) != (ssize_t)len)
    abort();
}

uint64_t random_u64(void) {
  uint64_t bits;
  fill(&bits, sizeof bits);
  return bits;
}

void random_hex(char *out, size_t bytes) {
  unsigned char raw[64];
  if (bytes > sizeof raw)
    abort();
  fill(raw, bytes);
  for (size_t i = 0; i < bytes; i++)
    snprintf(out + 2 * i, 3, "%02x", raw[i]);
}
