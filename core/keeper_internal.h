/* SPDX-License-Identifier: MIT
 *
 * core/keeper_internal.h - what the keeper's threads share.
 */
#ifndef CORE_KEEPER_INTERNAL_H
#define CORE_KEEPER_INTERNAL_H

#include "core/keeper.h"

/* The threads. */
void keeper_renews(void *keeper);
void keeper_keeps_house(void *keeper);

/* Whether a call of the store has succeeded; counts and logs it otherwise. */
bool keeper_ok(struct keeper *keeper, enum keeper_work work, enum store_status status, const struct err *err);
/* Sleeps until that time (monotonic) or until the keeper is to stop. True: stop. */
bool keeper_sleep(struct keeper *keeper, int64_t deadline_us);
/* Opens a session, as often as it is refused. False: stop. */
MUSTCHECK bool keeper_open(struct keeper *keeper, const char *name, int64_t lease_ms, struct store_session **ss);
/* engine.lease as of now. */
int64_t keeper_lease_ms(struct keeper *keeper);

/* A lease is trusted a little shorter than it is: what was checked just before must still hold when it arrives. */
int64_t keeper_safe_us(int64_t lease_ms);
/* How often leases are renewed. */
int64_t keeper_round_us(int64_t lease_ms);

#endif
