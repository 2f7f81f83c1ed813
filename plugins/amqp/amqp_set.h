/* SPDX-License-Identifier: MIT
 *
 * amqp_set.h - a small set of texts, kept as 64-bit hashes.
 *
 * Used for what the sink believes about exchanges, routes and messages. Two texts with the same hash are taken for one:
 * the price is one message sent with too much or too little caution, never a wrong outcome. When it is full it forgets
 * everything, for the same price. Pure; belongs to the driver's thread.
 */
#ifndef AMQP_SET_H
#define AMQP_SET_H

#include <stdbool.h>
#include <stdint.h>

struct amqp_set {
  uint64_t *slots; /* 0 = free */
  uint32_t mask;
  uint32_t count;
};

/* Makes room for `capacity` texts; false = no memory. amqp_set_free() is safe in both cases. */
bool amqp_set_init(struct amqp_set *set, uint32_t capacity) __attribute__((warn_unused_result));
void amqp_set_free(struct amqp_set *set);
void amqp_set_clear(struct amqp_set *set);

/* The key of a text of some kind; kinds keep an exchange and a route of the same name apart. Never 0. */
uint64_t amqp_set_key(char kind, const char *text);

bool amqp_set_has(const struct amqp_set *set, uint64_t key);
void amqp_set_add(struct amqp_set *set, uint64_t key);
void amqp_set_remove(struct amqp_set *set, uint64_t key);

#endif
