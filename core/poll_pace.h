/* SPDX-License-Identifier: MIT
 *
 * core/poll_pace.h - what a poll of the table asks for: every group of rows, or only the groups that are known. Pure:
 * times come in as arguments.
 *
 * Asking for every group costs a seek for each, and a walk over what was deleted at its beginning and not purged yet.
 * Usually that is a millisecond. While a long transaction pins the purge it may be hundreds, for which all routes would
 * wait: then it is done now and then, and the polls between look into the known groups from some time on. With so many
 * groups that asking all the known ones takes as long, in turns, there is nothing to win by that.
 */
#ifndef CORE_POLL_PACE_H
#define CORE_POLL_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACE_SAMPLES = 4 };

/* What is done whole, or in part where that takes much less. One is compared with the other right after it, several
 * times in a row: where only the server or the network is slow now and then, nothing is won by leaving something out.
 */
struct whole_or_part {
  int64_t saved_us[PACE_SAMPLES]; /* by the last parts, against the whole one before each; 0 = nothing */
  int64_t whole_us;               /* the last whole one took so long, and no part has followed yet; 0 = none */
  int64_t ended_us;               /* monotonic: when the last whole one ended */
};

/* Polls of one shard, which end the rest between whole ones soon after its reason is gone: a bulk load that has been
 * committed, say. Who finds a shard that takes long stays there, and goes on with the others when it is quick. */
struct poll_probe {
  size_t turn;   /* counts shards */
  size_t quick;  /* shards in a row that took no longer than known groups do */
  int64_t at_us; /* monotonic: when to look at the next one */
};

struct poll_pace {
  struct whole_or_part poll; /* of every group, or of those that are known, from some time on */
  struct poll_probe probe;   /* while that of every group is dear */
  int64_t part_us;           /* the last poll of known groups took so long */
  struct whole_or_part late; /* looks for rows that came late: from the beginning, or from some time on */
  int64_t late_bound_at_us;  /* monotonic: when to look for bound rows that came late from the beginning again */
  bool asked;                /* something changed that only a poll of every group finds */
  int64_t back_us;           /* how far back from now the polls between go; 0 = as far as they ever do */
};

/* How long to rest after something that took so long, for it to take one share of the time: most_us at the longest,
 * since one slow moment of the server says nothing of the next. */
int64_t pace_rest_us(int64_t took_us, int64_t share, int64_t most_us);

/* Whether polling every group takes so long that it is done rarely. */
bool poll_is_dear(const struct poll_pace *pace);
/* Whether the next poll asks for every group. */
bool poll_every_group(const struct poll_pace *pace, int64_t now_us);
/* Whether to poll one shard as a whole now, only to see how long that takes: probe.turn says which. */
bool poll_probe_is_next(const struct poll_pace *pace, int64_t now_us);
/* That was done, with so many shards of ours. When all of them have been quick, every group is polled next. */
void poll_probe_done(struct poll_pace *pace, size_t shards, int64_t began_us, int64_t ended_us);
/* How far back from now a poll of known groups goes: rows that committed later than that after their due times are
 * found by a poll of every group. */
int64_t poll_back_us(const struct poll_pace *pace);
/* From what due time on to look for rows that came late, before others of their order_key go: from the beginning, or
 * ten seconds back from now, most of the time, while what was deleted there and cannot be purged makes that dear. */
int64_t poll_late_from_us(const struct poll_pace *pace, int64_t db_now_us, int64_t now_us);
/* A look from that due time on ended now, took so long, and found so many in so many pages. */
void poll_late_done(struct poll_pace *pace, int64_t from_us, int64_t now_us, int64_t took_us, size_t found,
                    size_t pages);
/* Whether another look is to follow at once, from poll_late_from_us(): it shows what it would have saved. */
bool poll_late_compares(const struct poll_pace *pace);
/* The same for bound rows, among which those of other hosts are walked over, however many there are. Such a look goes
 * backwards. _ends: one that has come to that due time and has taken so long stops there, behind the last ten seconds;
 * the next ones do not go farther then, most of the time. */
int64_t poll_late_bound_from_us(const struct poll_pace *pace, int64_t db_now_us, int64_t now_us);
bool poll_late_bound_ends(struct poll_pace *pace, int64_t at_us, int64_t db_now_us, int64_t now_us, int64_t took_us);
/* A poll was made, of every group or of those that are known, who are asked in so many turns (1 for every group). */
void poll_done(struct poll_pace *pace, bool every, size_t turns, int64_t began_us, int64_t ended_us);

#endif
