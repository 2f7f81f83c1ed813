/* SPDX-License-Identifier: MIT
 *
 * tests/sim/world.h - the simulated operating system: machines, their threads, and time.
 *
 * Every thread of the core is a strand, a coroutine in the one real thread. At each lock, wait, sleep, atomic operation
 * and call to a store or plugin the world may go on with another strand; which one follows from the seed. Time passes
 * by a microsecond or so with each step, and jumps to the next deadline when nobody can run.
 *
 * What the core sees of time is a machine's: its clocks may run apart from those of others, and it may stand still.
 * There is one world at a time.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chance.h"
#include "core/base/attr.h"

struct strand;

/* One process of duebox on a host of its own. */
struct machine {
  unsigned number;  /* from 1 */
  const char *host; /* its name */
  bool dead;
  int64_t stopped_until_us; /* world time: none of its strands runs before */
  int64_t mono_ahead_us;    /* its clocks before the world's */
  int64_t boot_ahead_us;
  int64_t wall_ahead_us;
  struct chance chance; /* what its kernel's random source gives */
};

enum strategy {
  STRATEGY_RANDOM,  /* any strand after each step */
  STRATEGY_PREEMPT, /* the same strand, interrupted with a probability that differs from seed to seed */
  STRATEGY_PCT,     /* the highest priority, changed at a few points: Burckhardt et al., ASPLOS 2010 */
  STRATEGY_STARVE,  /* as PREEMPT, and now and then some strands do not run for a while */
  STRATEGIES
};

struct world_options {
  uint64_t seed;
  enum strategy strategy;
  uint32_t preempt_ppm;  /* PREEMPT, STARVE: after a step somebody else runs */
  unsigned changes;      /* PCT: points at which priorities change */
  uint64_t steps_guess;  /* PCT: among so many steps */
  uint32_t spurious_ppm; /* a wait for a condition ends without reason */
  int64_t late_us;       /* deadlines are noticed up to so much late */
  uint64_t steps_max;    /* more are a failure: somebody turns in circles */
  bool trace;            /* every step to stderr */
};

struct world_count {
  uint64_t steps, choices; /* steps with more than one strand to go on with */
  uint64_t hash;           /* of every step: equal runs have equal ones */
  unsigned strands;
};

void world_begin(const struct world_options *options);
/* Runs what was spawned until somebody calls world_stop() or world_fail(). False: it failed, *why says why. */
MUSTCHECK bool world_run(const char **why);
/* Drops all strands. */
void world_end(void);
struct world_count world_counts(void);

int64_t world_now_us(void);
/* machine: NULL = outside of all machines: users, servers, faults. */
struct strand *world_spawn(struct machine *machine, const char *name, void (*run)(void *arg), void *arg);
/* Whose strand runs; NULL outside of all. */
struct machine *world_machine(void);
/* Ends all strands of a machine in the middle of whatever they do. Not from one of them. */
void world_kill(struct machine *machine);
/* Ends all other strands of the caller's machine, as exit() does. */
void world_exit(void);
void world_stop(void);
NORETURN void world_fail(const char *fmt, ...) PRINTF(1, 2);

/* What a strand does next, seen by all: here another may go on. */
enum point {
  POINT_LOCK,
  POINT_UNLOCK,
  POINT_WAIT,
  POINT_SIGNAL,
  POINT_SLEEP,
  POINT_SPAWN,
  POINT_JOIN,
  POINT_ATOMIC,
  POINT_STORE,
  POINT_PLUGIN,
  POINT_USER,
};
void world_point(enum point point, uint64_t object);
void world_sleep(int64_t us);
/* Waits until the condition holds or the time (of the world) has come; asks it whenever anybody has run. False: the
 * time has come. */
bool world_wait(bool (*holds)(void *arg), void *arg, int64_t until_us);
/* One line for the trace, where that is on. */
void world_trace(const char *fmt, ...) PRINTF(1, 2);
bool world_traces(void);

#endif
