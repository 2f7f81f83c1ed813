/* SPDX-License-Identifier: MIT */
#include "core/base/hash.h"

#include <string.h>
#include <sys/auxv.h>

uint64_t hash_text(uint64_t before, const char *text) {
  uint64_t hash = before;
  do
    hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  while (*text++);
  return hash;
}

/* The 16 random bytes that the kernel gives each program when it starts. Copied before main(), and never changed: to
 * ask for them each time is dear. */
static uint64_t secret[2];

__attribute__((constructor)) static void keep_secret(void) {
  memcpy(secret, (const void *)getauxval(AT_RANDOM), sizeof secret);
}

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static void rounds(uint64_t v[4], int count) {
  while (count-- > 0) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
  }
}

static void take_word(uint64_t v[4], uint64_t word) {
  v[3] ^= word;
  rounds(v, 2);
  v[0] ^= word;
}

uint64_t hash_sip(const uint64_t key[2], const void *data, size_t len) {
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                   key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
  const unsigned char *at = data;
  uint64_t word = 0, last = (uint64_t)len << 56;
  for (size_t left = len; left >= sizeof word; left -= sizeof word, at += sizeof word) {
    memcpy(&word, at, sizeof word);
    take_word(v, word);
  }
  for (size_t i = 0; i < len % sizeof word; i++)
    last |= (uint64_t)at[i] << 8 * i;
  take_word(v, last);
  v[2] ^= 0xff;
  rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_keyed(const void *data, size_t len) { return hash_sip(secret, data, len); }

uint64_t hash_number(uint64_t number) { return number * (secret[1] | 1); }
