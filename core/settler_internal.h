/* SPDX-License-Identifier: MIT
 *
 * core/settler_internal.h - between the files of the settler: a batch, and deciding about what is in it.
 *
 * @thread the settler's
 */
#ifndef CORE_SETTLER_INTERNAL_H
#define CORE_SETTLER_INTERNAL_H

#include "core/record.h"
#include "core/settler.h"

enum { FLAWED_MAX = 16 }; /* answers with a flaw that are kept of one batch; more would say the same */

/* A consumer's answer that is not as it should be, on its way to the quarantine. */
struct flawed {
  struct flight *flight;
  const char *status; /* that counts all the same; NULL = none could be made out, and the attempt has failed */
  char flaw[256];
};

/* The pieces of one batch: flights that need a write, and their decisions in the same order. */
struct batch {
  struct flight **flights;
  struct decision *decisions;
  struct result_record *records; /* parsed from answers, to be freed after the write */
  struct flawed flawed[FLAWED_MAX];
  size_t count, record_count, flawed_count;
  uint64_t random;        /* for jitter; drawn once, since it costs a system call */
  int64_t mono_us, db_us; /* when it was begun, by our monotonic clock and by the database's */
};

/* Lets the rules decide about one flight; false when there is nothing to write. */
bool settler_decide(struct flight *flight, struct batch *batch);
/* Has those that are busy for long leave their places to others, and says so. To be called in every turn. */
void settler_park(struct settler *settler, int64_t now_us);
/* Keeps for inspection what consumers should not have written like that. Their status counts either way, so what cannot
 * be stored now is not tried again. */
void settler_keep_flawed(struct settler *settler, struct store_session *ss, const struct batch *batch);

#endif
