/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_reread.h - reads once more what came behind a gap between offsets, and takes none of it twice.
 *
 * Gaps are ordinary: compaction makes them, and transactions. But behind a record that claims an offset above its own
 * the client goes on there, if nothing else came with it, and what is between is passed over. Read again from where the
 * gap begins, that record comes first and with it what is behind: an honest gap brings the same offsets as before,
 * another one those that were passed over. Pure.
 */
#ifndef PLUGINS_KAFKA_REREAD_H
#define PLUGINS_KAFKA_REREAD_H

#include "kafka_common.h"

#define KAFKA_REREAD_MANY 65536 /* when so many records are remembered it is time */

struct kafka_reread_offset {
  int64_t offset; /* as claimed */
  size_t count;   /* of records that claimed it */
};

struct kafka_reread_list {
  struct kafka_reread_offset *items;
  size_t count, cap;
};

struct kafka_reread {
  int64_t gap;                    /* where the first gap begins that was met since the last reading again; -1 = none */
  struct kafka_reread_list taken; /* since */
  int64_t from;                   /* where reading began again; -1 = that is over */
  struct kafka_reread_list known; /* what was taken before and has not come again; by offset */
  size_t left;                    /* of the records in it */
};

#define KAFKA_REREAD_NONE ((struct kafka_reread){.gap = -1, .from = -1})

/* A record was taken, at a place behind that of the one before (-1 = none). */
void kafka_reread_took(struct kafka_reread *reread, int64_t last, int64_t place, int64_t claimed);
/* Whether there is a gap to look into, and nothing is read again already. */
bool kafka_reread_is_due(const struct kafka_reread *reread);
bool kafka_reread_is_full(const struct kafka_reread *reread);
/* Reading begins again, at the offset that is returned. */
int64_t kafka_reread_begin(struct kafka_reread *reread);
/* Whether a record was taken before, and is not to be taken again. */
bool kafka_reread_knows(struct kafka_reread *reread, int64_t claimed);
/* Nothing more is expected to come again. */
void kafka_reread_end(struct kafka_reread *reread);
/* Where the first gap begins of which it is not known that it is one; -1 = there is none. */
int64_t kafka_reread_doubt(const struct kafka_reread *reread);
void kafka_reread_forget(struct kafka_reread *reread);

#endif
