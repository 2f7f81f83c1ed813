/* SPDX-License-Identifier: MIT
 *
 * tests/sim/atomics.h - included before everything else of the core (-include): each atomic operation is a point at
 * which another strand may go on. All are sequentially consistent here: one real thread knows no weaker order.
 */
#ifndef TESTS_SIM_ATOMICS_H
#define TESTS_SIM_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>

void sim_atomic_point(void);

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_sub_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak

#define atomic_load(at) (sim_atomic_point(), __atomic_load_n((at), __ATOMIC_SEQ_CST))
#define atomic_load_explicit(at, order) atomic_load(at)
#define atomic_store(at, value)                                                                                        \
  do {                                                                                                                 \
    sim_atomic_point();                                                                                                \
    __atomic_store_n((at), (value), __ATOMIC_SEQ_CST);                                                                 \
  } while (0)
#define atomic_store_explicit(at, value, order) atomic_store(at, value)
#define atomic_exchange(at, value) (sim_atomic_point(), __atomic_exchange_n((at), (value), __ATOMIC_SEQ_CST))
#define atomic_exchange_explicit(at, value, order) atomic_exchange(at, value)
#define atomic_fetch_add(at, value) (sim_atomic_point(), __atomic_fetch_add((at), (value), __ATOMIC_SEQ_CST))
#define atomic_fetch_add_explicit(at, value, order) atomic_fetch_add(at, value)
#define atomic_fetch_sub(at, value) (sim_atomic_point(), __atomic_fetch_sub((at), (value), __ATOMIC_SEQ_CST))
#define atomic_fetch_sub_explicit(at, value, order) atomic_fetch_sub(at, value)
#define atomic_compare_exchange_strong(at, expected, value)                                                            \
  (sim_atomic_point(),                                                                                                 \
   __atomic_compare_exchange_n((at), (expected), (value), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
#define atomic_compare_exchange_weak(at, expected, value) atomic_compare_exchange_strong(at, expected, value)
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_compare_exchange_strong_explicit(at, expected, value, won, lost)                                        \
  atomic_compare_exchange_strong(at, expected, value)
#define atomic_compare_exchange_weak_explicit(at, expected, value, won, lost)                                          \
  atomic_compare_exchange_strong(at, expected, value)

#endif
