/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atomics.h"
#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/base/sync.h"
#include "fiber.h"
#include "memory.h"

enum { STRANDS_MAX = 1024, CHANGES_MAX = 16, BUSY_STEPS_MAX = 30000 };

enum strand_state { RUNNABLE, BLOCKED, OVER };

struct strand {
  unsigned number;
  const char *name;
  struct machine *machine;
  struct fiber *fiber;
  enum strand_state state;
  enum point at;       /* what it did last */
  const void *blocked; /* BLOCKED: the mutex, condition or strand that it waits for; NULL = time alone */
  int64_t until_us;    /* BLOCKED: world time at which it goes on anyway; INT64_MAX = never */
  bool timed_out;
  uint64_t busy_steps;   /* since it waited last */
  bool (*holds)(void *); /* BLOCKED in world_wait() */
  void *holds_arg;
  uint64_t priority; /* PCT */
  int64_t starved_until_us;
  bool detached;
  void (*run)(void *);
  void *arg;
};

static struct {
  struct world_options options;
  struct chance order, slips; /* which strand; when time slips */
  struct strand strands[STRANDS_MAX];
  unsigned count;
  struct strand *living[STRANDS_MAX]; /* those that are not over, in order, and some that are */
  unsigned living_count;
  bool any_over;
  struct strand *current;
  int64_t now_us;
  uint64_t steps, choices, hash;
  uint64_t change_at[CHANGES_MAX];
  unsigned next_object;
  bool stopping;
  char why[1024];
} world;

static const char *const point_names[] = {"lock", "unlock", "wait",  "signal", "sleep", "spawn",
                                          "join", "atomic", "store", "plugin", "user"};

int64_t world_now_us(void) { return world.now_us; }
struct machine *world_machine(void) {
  return world.current ? world.current->machine : NULL;
}
bool world_traces(void) { return world.options.trace; }
struct world_count world_counts(void) {
  return (struct world_count){
      .steps = world.steps, .choices = world.choices, .hash = world.hash, .strands = world.count};
}

static void mix(uint64_t value) { world.hash = (world.hash ^ value) * 0x100000001b3U; }

void world_trace(const char *fmt, ...) {
  if (!world.options.trace)
    return;
  va_list args;
  va_start(args, fmt);
  (void)fprintf(stderr, "%12.6f %8llu %2u %-12s ", (double)world.now_us / 1e6, (unsigned long long)world.steps,
                world.current && world.current->machine ? world.current->machine->number : 0,
                world.current ? world.current->name : "-");
  (void)vfprintf(stderr, fmt, args);
  (void)fputc('\n', stderr);
  va_end(args);
}

void world_begin(const struct world_options *options) {
  memset(&world, 0, sizeof world);
  (void)memory_spoilt(); /* by what ran before */
  world.options = *options;
  world.order = chance_of(options->seed, 1);
  world.slips = chance_of(options->seed, 2);
  world.hash = 0xcbf29ce484222325U;
  world.now_us = 1000 * 1000;
  for (unsigned i = 0; i < options->changes && i < CHANGES_MAX; i++)
    world.change_at[i] = chance_below(&world.order, options->steps_guess ? options->steps_guess : 1);
}

/* --- whose turn it is --- */

static bool may_run(struct strand *strand) {
  if (strand->state == OVER || (strand->machine && strand->machine->stopped_until_us > world.now_us))
    return false;
  if (strand->state == BLOCKED && strand->holds && strand->holds(strand->holds_arg))
    strand->state = RUNNABLE;
  if (strand->state == BLOCKED && strand->until_us <= world.now_us) {
    strand->state = RUNNABLE;
    strand->timed_out = true;
  }
  return strand->state == RUNNABLE;
}

static void drop_those_over(void) {
  unsigned kept = 0;
  for (unsigned i = 0; i < world.living_count; i++)
    if (world.living[i]->state != OVER)
      world.living[kept++] = world.living[i];
  world.living_count = kept;
  world.any_over = false;
}

/* The next moment at which somebody can go on who cannot now. */
static int64_t next_moment(void) {
  int64_t next = INT64_MAX;
  for (unsigned i = 0; i < world.living_count; i++) {
    const struct strand *strand = world.living[i];
    if (strand->state == OVER)
      continue;
    int64_t at = strand->state == RUNNABLE ? world.now_us : strand->until_us;
    if (strand->machine && strand->machine->stopped_until_us > at)
      at = strand->machine->stopped_until_us;
    next = earlier(next, at);
  }
  return next;
}

static bool is_too_busy(struct strand *self) { return self && self->machine && ++self->busy_steps > BUSY_STEPS_MAX; }

static void fail_locked(void) {
  size_t used = (size_t)snprintf(world.why, sizeof world.why, "deadlock: nobody can go on:");
  for (unsigned i = 0; i < world.count && used < sizeof world.why; i++)
    if (world.strands[i].state != OVER)
      used += (size_t)snprintf(world.why + used, sizeof world.why - used, " %u/%s(%s)",
                               world.strands[i].machine ? world.strands[i].machine->number : 0, world.strands[i].name,
                               point_names[world.strands[i].at]);
  world.stopping = true;
}

static struct strand *choose(struct strand *const *ready, unsigned n) {
  struct strand *current = NULL, *best = ready[0];
  for (unsigned i = 0; i < n; i++) {
    if (ready[i] == world.current)
      current = ready[i];
    if (ready[i]->priority > best->priority)
      best = ready[i];
  }
  switch (world.options.strategy) {
  case STRATEGY_PCT:
    return best;
  case STRATEGY_STARVE:
  case STRATEGY_PREEMPT:
    if (current && !chance_ppm(&world.order, world.options.preempt_ppm))
      return current;
    break;
  case STRATEGY_RANDOM:
  case STRATEGIES:
    break;
  }
  return ready[chance_below(&world.order, n)];
}

/* PCT: at a few points whoever runs becomes the least of all. STARVE: some have to wait for long. */
static void disturb(void) {
  if (world.options.strategy == STRATEGY_PCT && world.current)
    for (unsigned i = 0; i < world.options.changes && i < CHANGES_MAX; i++)
      if (world.change_at[i] == world.steps)
        world.current->priority = i;
  if (world.options.strategy == STRATEGY_STARVE && world.steps % 512 == 0 && chance_ppm(&world.order, 100000)) {
    int64_t until = world.now_us + chance_log_between(&world.order, 100, 2 * 1000 * 1000);
    for (unsigned i = 0; i < world.count; i++)
      if (world.strands[i].machine && chance_ppm(&world.order, 100000))
        world.strands[i].starved_until_us = until;
  }
}

/* Who goes on; time passes until somebody can. NULL: the run is over. */
static struct strand *next_strand(void) {
  struct strand *ready[STRANDS_MAX];
  disturb();
  if (world.any_over)
    drop_those_over();
  for (;;) {
    unsigned n = 0, starved = 0;
    for (unsigned i = 0; i < world.living_count; i++)
      if (may_run(world.living[i])) {
        if (world.living[i]->starved_until_us > world.now_us)
          starved++;
        else
          ready[n++] = world.living[i];
      }
    if (world.stopping)
      return NULL;
    if (n > 1)
      world.choices++;
    if (n > 0)
      return choose(ready, n);
    if (starved > 0) { /* nobody else can: they may */
      for (unsigned i = 0; i < world.count; i++)
        world.strands[i].starved_until_us = 0;
      continue;
    }
    int64_t next = next_moment();
    if (next == INT64_MAX) {
      fail_locked();
      return NULL;
    }
    world.now_us = next;
    if (world.options.late_us > 0)
      world.now_us += chance_between(&world.slips, 0, world.options.late_us);
  }
}

/* One step is over: somebody goes on, perhaps the caller. */
static void reschedule(void) {
  struct strand *self = world.current;
  world.steps++;
  world.now_us++;
  mix(world.steps);
  mix((uint64_t)world.now_us);
  if (world.steps > world.options.steps_max && !world.stopping) {
    (void)snprintf(world.why, sizeof world.why, "more than %llu steps: somebody turns in circles",
                   (unsigned long long)world.options.steps_max);
    world.stopping = true;
  }
  if (is_too_busy(self) && !world.stopping) {
    (void)snprintf(world.why, sizeof world.why, "%u/%s has not waited for %d steps: it turns in circles",
                   self->machine->number, self->name, BUSY_STEPS_MAX);
    world.stopping = true;
  }
  struct strand *next = next_strand();
  mix(next ? next->number : 0);
  if (next == self && next)
    return;
  world.current = next;
  unsigned before = memory_belongs_to(next && next->machine ? next->machine->number : 0);
  fiber_switch(next ? next->fiber : NULL);
  (void)memory_belongs_to(before);
}

bool world_run(const char **why) {
  reschedule();
  world.current = NULL;
  *why = world.why;
  return !world.why[0];
}

void world_end(void) {
  for (unsigned i = 0; i < world.count; i++)
    fiber_drop(world.strands[i].fiber);
  world.count = 0;
}

void world_stop(void) { world.stopping = true; }

void world_fail(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  if (!world.why[0])
    (void)vsnprintf(world.why, sizeof world.why, fmt, args);
  va_end(args);
  world.stopping = true;
  world.current = NULL;
  fiber_switch(NULL);
  abort(); /* nobody goes on after a failure */
}

void world_point(enum point point, uint64_t object) {
  if (!world.current)
    return; /* before the run, and after it */
  world.current->at = point;
  mix((uint64_t)point << 32 | object);
  if (world.options.trace && point != POINT_ATOMIC)
    world_trace("%s %llu", point_names[point], (unsigned long long)object);
  reschedule();
}

/* --- strands --- */

static void strand_main(void *arg) {
  struct strand *strand = arg;
  strand->run(strand->arg);
  strand->state = OVER;
  world.any_over = true;
  for (unsigned i = 0; i < world.count; i++)
    if (world.strands[i].state == BLOCKED && world.strands[i].blocked == strand)
      world.strands[i].state = RUNNABLE;
  strand->at = POINT_JOIN;
  reschedule();
  abort(); /* nobody switches to what is over */
}

struct strand *world_spawn(struct machine *machine, const char *name, void (*run)(void *arg), void *arg) {
  if (world.count == STRANDS_MAX)
    world_fail("more than %d threads", STRANDS_MAX);
  struct strand *strand = &world.strands[world.count];
  *strand = (struct strand){
      .number = ++world.count,
      .name = name,
      .machine = machine,
      .run = run,
      .arg = arg,
      .until_us = INT64_MAX,
      .priority = CHANGES_MAX + chance_below(&world.order, UINT64_C(1) << 40),
  };
  world.living[world.living_count++] = strand;
  unsigned before = memory_belongs_to(0); /* it outlives its machine */
  strand->fiber = fiber_new(strand_main, strand);
  (void)memory_belongs_to(before);
  return strand;
}

void world_kill(struct machine *machine) {
  machine->dead = true;
  world.any_over = true;
  for (unsigned i = 0; i < world.count; i++)
    if (world.strands[i].machine == machine)
      world.strands[i].state = OVER;
  memory_free_all(machine->number);
}

void world_exit(void) {
  world.any_over = true;
  for (unsigned i = 0; i < world.count; i++)
    if (&world.strands[i] != world.current && world.strands[i].machine == world.current->machine)
      world.strands[i].state = OVER;
}

/* Waits for whatever wakes those that wait for that object, or for the time. False: the time has come. */
static bool block(const void *object, int64_t until_us, enum point point) {
  struct strand *self = world.current;
  self->state = BLOCKED;
  self->blocked = object;
  self->until_us = until_us;
  self->timed_out = false;
  self->busy_steps = 0;
  self->at = point;
  mix((uint64_t)point << 32);
  reschedule();
  self->state = RUNNABLE;
  self->blocked = NULL;
  self->until_us = INT64_MAX;
  return !self->timed_out;
}

void world_sleep(int64_t us) { (void)block(NULL, world.now_us + (us > 0 ? us : 0), POINT_SLEEP); }

bool world_wait(bool (*holds)(void *arg), void *arg, int64_t until_us) {
  struct strand *self = world.current;
  self->holds = holds;
  self->holds_arg = arg;
  bool held = block(NULL, until_us, POINT_WAIT);
  self->holds = NULL;
  return held || holds(arg);
}

static void wake_all(const void *object) {
  for (unsigned i = 0; i < world.count; i++)
    if (world.strands[i].state == BLOCKED && world.strands[i].blocked == object)
      world.strands[i].state = RUNNABLE;
}

static int64_t world_time(int64_t mono_us) {
  const struct machine *machine = world_machine();
  int64_t ahead = machine ? machine->mono_ahead_us : 0;
  return mono_us > INT64_MAX / 2 ? INT64_MAX : mono_us - ahead;
}

/* --- core/base/sync.h --- */

void mutex_init(struct mutex *mutex) { mutex->os = (os_mutex){.number = ++world.next_object}; }

void mutex_destroy(struct mutex *mutex) {
  if (mutex->os.owner)
    world_fail("a locked mutex is destroyed, locked by %s", mutex->os.owner->name);
  mutex->os.number = 0;
}

void mutex_lock(struct mutex *mutex) {
  if (!world.current)
    return;
  if (mutex->os.number == 0 || mutex->os.number > world.next_object)
    world_fail("%s uses a mutex that was not made, or is gone", world.current->name);
  if (mutex->os.owner == world.current)
    world_fail("%s locks a mutex that it has locked", world.current->name);
  world_point(POINT_LOCK, mutex->os.number);
  while (mutex->os.owner)
    (void)block(mutex, INT64_MAX, POINT_LOCK);
  mutex->os.owner = world.current;
}

static void release(struct mutex *mutex) {
  if (mutex->os.owner != world.current)
    world_fail("%s unlocks a mutex that it has not locked", world.current->name);
  mutex->os.owner = NULL;
  wake_all(mutex);
}

void mutex_unlock(struct mutex *mutex) {
  if (!world.current)
    return;
  release(mutex);
  world_point(POINT_UNLOCK, mutex->os.number);
}

void cond_init(struct cond *cond) { cond->os = (os_cond){.number = ++world.next_object}; }
void cond_destroy(struct cond *cond) {
  for (unsigned i = 0; i < world.count; i++)
    if (world.strands[i].state == BLOCKED && world.strands[i].blocked == cond)
      world_fail("a condition is destroyed for which %s waits", world.strands[i].name);
}

/* pthread_cond_signal() wakes one of those that wait, no matter which. */
void cond_signal(struct cond *cond) {
  struct strand *waiting[STRANDS_MAX];
  unsigned n = 0;
  if (!world.current)
    return;
  for (unsigned i = 0; i < world.count; i++)
    if (world.strands[i].state == BLOCKED && world.strands[i].blocked == cond)
      waiting[n++] = &world.strands[i];
  if (n > 0)
    waiting[chance_below(&world.order, n)]->state = RUNNABLE;
  world_point(POINT_SIGNAL, cond->os.number);
}

void cond_broadcast(struct cond *cond) {
  if (!world.current)
    return;
  wake_all(cond);
  world_point(POINT_SIGNAL, cond->os.number);
}

static bool wait_until(struct cond *cond, struct mutex *mutex, int64_t until_us) {
  release(mutex);
  if (chance_ppm(&world.slips, world.options.spurious_ppm))
    until_us = earlier(until_us, world.now_us + chance_log_between(&world.slips, 1, 1000 * 1000));
  bool woken = block(cond, until_us, POINT_WAIT);
  while (mutex->os.owner)
    (void)block(mutex, INT64_MAX, POINT_LOCK);
  mutex->os.owner = world.current;
  return woken;
}

void cond_wait(struct cond *cond, struct mutex *mutex) { (void)wait_until(cond, mutex, INT64_MAX); }

bool cond_wait_until(struct cond *cond, struct mutex *mutex, int64_t deadline_us) {
  (void)wait_until(cond, mutex, world_time(deadline_us));
  return clock_mono_us() < deadline_us;
}

static void run_thread(void *arg) {
  struct thread *thread = arg;
  thread->run(thread->arg);
  if (thread->ended)
    thread->ended(thread->arg);
}

bool thread_start(struct thread *thread, const char *name, thread_fn *run, void *arg) {
  thread->name = name;
  thread->run = run;
  thread->arg = arg;
  thread->os = world_spawn(world_machine(), name, run_thread, thread);
  world_point(POINT_SPAWN, thread->os->number);
  return true;
}

static bool join(struct thread *thread, int64_t until_us) {
  world_point(POINT_JOIN, thread->os->number);
  while (thread->os->state != OVER)
    if (!block(thread->os, until_us, POINT_JOIN))
      return thread->os->state == OVER;
  return true;
}

void thread_join(struct thread *thread) { (void)join(thread, INT64_MAX); }
bool thread_join_within(struct thread *thread, int64_t timeout_ms) {
  return join(thread, world.now_us + timeout_ms * 1000);
}
void thread_detach(struct thread *thread) { thread->os->detached = true; }
bool thread_is_caller(const struct thread *thread) { return thread->os == world.current; }
void thread_sleep(int64_t us) { world_sleep(us); }

/* --- core/base/clock.h, core/base/random.h --- */

int64_t clock_mono_us(void) { return world.now_us + (world_machine() ? world_machine()->mono_ahead_us : 0); }
int64_t clock_boot_us(void) { return clock_mono_us() + (world_machine() ? world_machine()->boot_ahead_us : 0); }
int64_t clock_wall_us(void) { return world.now_us + (world_machine() ? world_machine()->wall_ahead_us : 0); }
struct instant clock_instant(void) {
  int64_t boot_us = clock_boot_us();
  return (struct instant){.mono_us = clock_mono_us(), .boot_us = boot_us};
}

uint64_t random_u64(void) {
  struct machine *machine = world_machine();
  return chance_u64(machine ? &machine->chance : &world.slips);
}

void random_hex(char *out, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    (void)sprintf(out + 2 * i, "%02x", (unsigned)(random_u64() & 0xff));
}

/* --- tests/sim/atomics.h --- */

void sim_atomic_point(void) { world_point(POINT_ATOMIC, 0); }
