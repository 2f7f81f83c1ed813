/* SPDX-License-Identifier: MIT
 *
 * core/readiness.h - why the daemon is not of use: what should make progress and does not. Pure.
 *
 * One list for /readyz, doctor, the page and the metrics. Empty means ready; every entry is a reason for people.
 */
#ifndef CORE_READINESS_H
#define CORE_READINESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PROBLEMS_MAX = 17,
  PLUGIN_TEXT = 512, /* what a plugin says of its destination: what is wrong, and behind that the cure */
  PROBLEM_TEXT = PLUGIN_TEXT + 160,
};

#define PLUGIN_UNHEARD "not yet connected" /* in place of its text, before it has said anything */

struct problem_list {
  size_t count;
  char text[PROBLEMS_MAX][PROBLEM_TEXT];
  size_t own_len[PROBLEMS_MAX]; /* so much of it is about the daemon; the rest names a task, or quotes a destination */
};

enum { READY_STUCK_US = 30 * 1000 * 1000 };

/* What the parts of the engine are doing. Times are ages in microseconds; 0 = not at all. */
struct readiness {
  const char *failed; /* why the process must be started anew; NULL = it need not */
  bool stopping;
  bool on_hold;             /* started to look only */
  bool db_answers;          /* the reader's last statement succeeded, or met a lock */
  bool shards_spoken;       /* every shard has a living owner */
  uint64_t unowned;         /* those that have none, a bit for each */
  int64_t unread_shards_us; /* for how long nobody could see who holds which */
  unsigned shards_ours;     /* held by us */
  unsigned unsafe;          /* of these: their leases could not be renewed in time, so nothing of them is sent */
  int64_t reading_us;       /* how long the scheduler has been trying to find due tasks, and to read them */
  const char *held;         /* the route with the due task that claims have failed to get for longest; NULL = none */
  const char *held_task;
  int64_t held_us;
  int64_t settling_us; /* how long the settler has been trying to write one batch */
  int64_t refused;     /* outcomes that the server refuses in every form */
  int64_t locked_us;   /* age of the oldest outcome whose row somebody else has locked */
  int64_t results_us;  /* how long results have waited to be written, in the inbox or for room in it */
  const char *stalled; /* the route whose destination has confirmed nothing for longest; NULL = none */
  int64_t stalled_us;
  const char *full; /* the route of which no place has become free for longest, with tasks waiting; NULL = none */
  const char *full_task;
  int64_t full_us;
  const char *unread; /* the source that has not been read for longest although its broker answers; NULL = none */
  const char *unread_why;
  int64_t unread_us;
  const char *hung; /* a plugin instance that gives no sign of life; NULL = none */
};

/* The database answers, and lets us find and read what is due. */
bool readiness_db_up(const struct readiness *facts);
void readiness_judge(const struct readiness *facts, struct problem_list *out);
/* Leaves of each what is about the daemon itself. */
void readiness_conceal(struct problem_list *list);
/* All problems as one text, separated by "; ". */
void readiness_text(const struct problem_list *list, char *out, size_t cap);

#endif
