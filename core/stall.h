/* SPDX-License-Identifier: MIT
 *
 * core/stall.h - whether a sink takes what it is given: from the times of hand-overs and confirms, and nothing else.
 *
 * A row that is handed over cannot be changed by plain SQL any more until the sink has confirmed it, so a sink that
 * stands still must get no more of them. It stands still when a task has been there unconfirmed for longer than 4 times
 * what confirming takes (50 ms at least, 250 ms for its first tasks), unless one that was handed over later has been
 * confirmed: then it is that task that is slow, not the sink.
 *
 * What confirming takes is the median of the last rounds. A round lasts until a task is confirmed that was handed over
 * in it, and counts once: so a standstill, however many tasks it kept, is one round among others, while a sink that is
 * merely far away is known after the first ones.
 *
 * It may be one target of the sink (a topic, a queue, a URL) that stands still, and only the confirm of another task
 * tells: so one task goes in the time in which it should be confirmed, as a recorded claim, of which the row says what
 * it is.
 *
 * A sink that takes nothing although it has nothing stands still as well: one that is full has tasks to confirm, one
 * that connects does not for long.
 *
 * Hand-overs come from one thread at a time, confirms from any thread, and anybody may ask. Nothing is allocated, and
 * nobody waits. All zero is a sink that was given nothing yet.
 */
#ifndef CORE_STALL_H
#define CORE_STALL_H

#include <duebox/outcome.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STALL_SLOTS = 64, STALL_ROUNDS = 7 };
enum {
  STALL_MIN_US = 50 * 1000,
  STALL_FIRST_US = 250 * 1000, /* until it has confirmed something: it connects, and may be far away */
  STALL_MAX_US = 5 * 1000 * 1000,
  STALL_REFUSED_US = 5 * 1000 * 1000 /* it has taken nothing for so long: no less, since it may be connecting */
};
enum { STALL_OVER_US = 5 * 1000 * 1000 }; /* so long after the last one a stall that was logged may be over */
enum { STALL_SHOWN_US = 1000 * 1000 };    /* shorter ones are nobody's business but the reader's */

struct stall {
  /* Tasks that were handed over at about the same time, the oldest slot first. */
  struct {
    atomic_uint_fast64_t open;   /* number of the slot << 32 | tasks not confirmed */
    atomic_int_fast64_t from_us; /* monotonic: when the first of them was handed over */
  } slot[STALL_SLOTS];
  atomic_uint first, last; /* numbers of slots; `first` may be empty */
  atomic_uint confirmed;   /* the last slot of which a task was confirmed */
  atomic_int_fast64_t limit_us;
  /* Monotonic: the first and the last offer that was refused since it has taken a task; 0 = none was. */
  atomic_int_fast64_t refused_from_us, refused_to_us;
  /* The reader's. */
  int64_t probed_us; /* monotonic: when a task was last read for it although it stands still */
  int64_t said_us;   /* monotonic: since when it stands still, as the log has it; 0 = the log does not say so */
  /* The learner's, which is the same thread. */
  int64_t heard_us; /* monotonic: when it last confirmed a task */
  int64_t round_us; /* monotonic: when this round began */
  int64_t took_us[STALL_ROUNDS];
  unsigned rounds;
};

/* A task is handed over now. The result is to be given to stall_confirmed(), once. */
uint32_t stall_handed_over(struct stall *stall, int64_t now_us);
/* The sink has answered: it takes what it is given. Any thread. */
void stall_confirmed(struct stall *stall, uint32_t slot);
/* The task is there no more, which says nothing of the sink: it did not take it, or has not answered in time. Any
 * thread. */
void stall_withdrawn(struct stall *stall, uint32_t slot);
/* Which of the two an outcome is. What was rejected may never have been there: plugins refuse tasks by themselves. */
static inline bool stall_confirms(enum duebox_outcome_class cls) {
  return cls == DUEBOX_DELIVERED || cls == DUEBOX_RETRY || cls == DUEBOX_GONE;
}
/* The sink was offered tasks while it had none of its instance, and took none. The thread of the hand-overs. */
void stall_refused(struct stall *stall, int64_t now_us);
/* It took one that was offered. The same thread. */
void stall_taken(struct stall *stall);
/* Whether it takes nothing of what it is offered. */
bool stall_refuses(const struct stall *stall, int64_t now_us);
/* Learns from a task that the sink has confirmed. One thread. */
void stall_learn(struct stall *stall, int64_t handed_us, int64_t confirmed_us, int64_t now_us);
/* It has confirmed a task then, however that was claimed. The same thread. */
static inline void stall_heard(struct stall *stall, int64_t confirmed_us) {
  stall->heard_us = confirmed_us > stall->heard_us ? confirmed_us : stall->heard_us;
}
/* How long a task may be unconfirmed. */
int64_t stall_limit_us(const struct stall *stall);
/* When the sink will be standing still unless something is confirmed before; INT64_MAX = nothing is there. */
int64_t stall_at_us(const struct stall *stall);
/* When one task may go although it stands still. The reader's thread, as stall_probed(). */
int64_t stall_probe_at_us(const struct stall *stall);
/* That task is on its way. */
static inline void stall_probed(struct stall *stall, int64_t now_us) { stall->probed_us = now_us; }
/* What the log says: that it has been standing still since then, and that this is over when it has confirmed a task
 * since and has not stood still since flows_us, for STALL_OVER_US. The end of a stall alone proves nothing: what was
 * out may have been given up. */
static inline void stall_say(struct stall *stall, int64_t since_us) { stall->said_us = since_us; }
bool stall_is_over(const struct stall *stall, int64_t flows_us, int64_t now_us);
#ifdef STALL_OFF /* to measure what the rule costs: tests/bench/scenarios/slow.py */
static inline bool stall_is_now(const struct stall *stall, int64_t now_us) { return false; }
#else
static inline bool stall_is_now(const struct stall *stall, int64_t now_us) {
  return stall_at_us(stall) <= now_us || stall_refuses(stall, now_us);
}
#endif

#endif
