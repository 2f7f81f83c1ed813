/* SPDX-License-Identifier: MIT
 *
 * core/inbox.h - result records on their way into the table.
 *
 * Sources (and the HTTP callback) put records in, one thread takes them out, applies them in batches through the store
 * and only then acknowledges them. Bounded: each source has room for so many, and beyond them keeps its record and is
 * resumed later; the sources are taken from in turn. Records of one task are applied in their order, as many at once as
 * the store can judge of what it has read; the others wait in front of what came later. Nothing that comes in can stop
 * the stream: what cannot be parsed or fits no row ends in quarantine, and what is for a row that a foreign transaction
 * holds is put aside, not acknowledged, and tried again in turn; later results of that task wait behind it. It takes no
 * room from others then. Of a route that has too many of them the rest waits where it comes from, since a lock is
 * mostly over soon; after a while the rest is quarantined. Where somebody waits for the answer it is refused for now.
 * Whoever waits for such a record keeps a thread from others: a few may, one for each task, and the others learn at
 * once that nothing is known yet. A record that comes again while it is aside is one with the first.
 *
 * Results of a route of which the server has just refused some are set aside too, and written a few at a time, by
 * themselves, between those of all others (core/refusals.h).
 */
#ifndef CORE_INBOX_H
#define CORE_INBOX_H

#include <duebox/plugin.h>
#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/metrics.h"
#include "core/store.h"

struct driver;
struct inbox;
struct config_ref;

/* What the inbox needs of the engine. */
struct inbox_env {
  void *engine;
  const struct store *store;
  struct config_ref *(*config)(void *engine);                              /* the current one; the caller drops it */
  int64_t (*db_now_us)(void *engine);                                      /* estimate of the database's clock */
  struct route_metrics *(*route_metrics)(void *engine, const char *route); /* NULL = unknown */
  void (*rows_changed)(void *engine);                                      /* a retry may be due soon: look */
  struct engine_metrics *metrics;
  int64_t patience_us; /* for how long records of sources wait for room aside, before they are quarantined */
};
enum { INBOX_PATIENCE_US = 10 * 1000 * 1000 };

MUSTCHECK struct inbox *inbox_start(const struct inbox_env *env, struct err *err);
/* Nothing is sent: what may have left before counts, for nobody records it any more. Before the first record. */
void inbox_hold(struct inbox *inbox);
/* A record of a source. false = full. Any thread. */
MUSTCHECK bool inbox_offer(struct inbox *inbox, struct driver *driver, const struct duebox_record *record,
                           uint64_t cookie);
/* A record without a driver; waits for its commit, at most timeout_ms. False: it is not known whether it counts, and
 * err says why. No text of *result is valid afterwards; where the record counts and has a flaw, err says which. Any
 * thread but the inbox's. */
MUSTCHECK bool inbox_apply(struct inbox *inbox, const struct result_offer *offer, int64_t timeout_ms,
                           struct store_result *result, struct err *err);
/* For how long results have waited: how long it has been trying to write one batch, or a record has waited in the
 * inbox, or a source has had more of them than there is room for, so that they wait where they come from; 0 = none of
 * these. Any thread. */
int64_t inbox_delay_us(struct inbox *inbox, int64_t now_us);
/* Whether results have not been written for so long that their sources are to give them back, so that another daemon
 * can take them. Any thread. */
bool inbox_is_stuck(const struct inbox *inbox, int64_t now_us);
/* Whether it is worth to offer records of that source again. Any thread. */
bool inbox_has_room(struct inbox *inbox, const struct driver *driver);
/* Ends the thread and takes nothing more; what is not committed by then is acknowledged as not committed. */
void inbox_close(struct inbox *inbox);
/* Frees a closed inbox; no source may call it any more. */
void inbox_free(struct inbox **inbox);

#endif
