/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_search.h - finds the first offset behind an obstacle, and which offsets to believe.
 *
 * An obstacle is a part of a partition that the client does not get past: a batch that it cannot unpack, or a record
 * whose offset lies beyond the log, behind which it would go on. How far the obstacle reaches is not known. But from
 * wherever in it reading begins, the obstacle comes first; so reading begins at one place after the other, in growing
 * steps and then back by halves, until the first place is found from which something else comes first. A place that
 * is taken for free too early costs another search; records behind the obstacle are never passed over.
 *
 * That holds where the obstacle is known by its offset. From one that is never told (kafka_standing.h) nothing comes,
 * as from another one behind it, and a growing step would pass over what is between: many steps of one come first.
 * Pure.
 */
#ifndef PLUGINS_KAFKA_SEARCH_H
#define PLUGINS_KAFKA_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

struct kafka_search {
  int64_t obstacle; /* the offset under which it is delivered or reported; -1 = no search */
  int64_t taken;    /* reading from here begins with the obstacle */
  int64_t free;     /* reading from here does not */
  int64_t at;       /* where reading was made to begin last */
  int64_t stride;
  int singles; /* steps of one that are left before they grow */
};

#define KAFKA_SEARCH_NONE ((struct kafka_search){.obstacle = -1})
#define KAFKA_SEARCH_NOTHING (-2) /* nothing comes from there */

#define KAFKA_SEARCH_SINGLES 32 /* past what is never told: a minute */

/* Begins a search, or ends it at once; reading is to begin at `at`. high: where the log ended when the obstacle was
 * met, so that nothing which comes later can be passed over. */
void kafka_search_begin(struct kafka_search *search, int64_t obstacle, int64_t taken, int64_t high, int singles);
/* Reading from `at` began with `first`. True: that is the first thing behind the obstacle, and to be taken. False:
 * reading is to begin at `at` next, be the search at its end or not. */
bool kafka_search_saw(struct kafka_search *search, int64_t first);

/* Whether a record is where it says it is. A producer writes the offset of a record within its batch, and brokers do
 * not check that of every batch. last: the record before it; high: where the log ends. One that is not believed is
 * behind `last` wherever it is. */
bool kafka_search_believes(int64_t last, int64_t claimed, int64_t high);

#endif
