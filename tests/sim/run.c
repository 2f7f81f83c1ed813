/* SPDX-License-Identifier: MIT
 *
 * tests/sim/run.c - the command: simulates seeds, and prints what was simulated and which seeds broke a promise.
 *
 *   sim --seeds 0-9999       each of these seeds
 *   sim --seed 17 --trace    one seed, every step to stderr
 *   sim --minutes 10         seeds from a random one on, for so long
 *   sim --seed 17 --shrink   leaves out of a seed that fails what it fails without, and prints what is left
 *   sim --seed 17 --cut 3:1:f:1   one seed, cut like that
 *   sim --isolation --seeds 0-99  stories of isolation; with any of the others
 *   sim --keys --seeds 0-99  stories of order keys; likewise
 *   sim --flow --seeds 0-99  stories of flow; likewise
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker.h"
#include "core/base/attr.h"
#include "core/base/log.h"
#include "story.h"

enum { WORKERS_MAX = 64, CHUNK = 50, REPLAY_EVERY = 20, SHOWN_MAX = 20, SHRUNK_MAX = 1024 };

/* Shared by the workers. */
struct tally {
  uint64_t next, last; /* seeds; the latter is the last of all */
  uint64_t seeds, failed, steps, choices, tasks, deliveries, replayed;
  uint64_t thin; /* runs with fewer than 200 choices, or no delivery */
  int64_t virtual_us;
  uint64_t faults[FAULT_KINDS], broker[BROKER_EVENTS];
  uint64_t at[WORKERS_MAX]; /* the seed that a worker is busy with */
};

static struct tally *tally;
static int trace, kind = STORY_PROMISES, shrinks;
static struct story_cut cut;
static int log_level = -1;

static void add(uint64_t *to, uint64_t value) { __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }

static void report(uint64_t seed, const char *why) {
  add(&tally->failed, 1);
  if (tally->failed <= SHOWN_MAX)
    (void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, why);
}

static void simulate(uint64_t seed) {
  struct story_count count, again;
  const char *why;
  bool kept = story_run((enum story_kind)kind, seed, &cut, trace, &count, &why);
  add(&tally->seeds, 1);
  add(&tally->steps, count.world.steps);
  add(&tally->choices, count.world.choices);
  add(&tally->tasks, count.tasks);
  add(&tally->deliveries, count.deliveries);
  add(&tally->thin, count.world.choices < 200 || count.deliveries == 0);
  add((uint64_t *)&tally->virtual_us, (uint64_t)count.virtual_us);
  for (int i = 0; i < FAULT_KINDS; i++)
    add(&tally->faults[i], count.faults[i]);
  for (int event = 0; event < BROKER_EVENTS; event++)
    add(&tally->broker[event], count.broker[event]);
  if (!kept) {
    report(seed, why);
  } else if (seed % REPLAY_EVERY == 0 && !trace) {
    add(&tally->replayed, 1);
    if (!story_run((enum story_kind)kind, seed, &cut, false, &again, &why) || again.world.hash != count.world.hash)
      report(seed, "the same seed gave another run");
  }
}

static void work(unsigned worker) {
  if (log_level >= 0)
    log_setup((enum log_level)log_level, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  else
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, -1);
  for (int i = 0; i < CHUNK; i++) {
    uint64_t seed = __atomic_fetch_add(&tally->next, 1, __ATOMIC_RELAXED);
    if (seed > tally->last)
      return;
    tally->at[worker] = seed;
    simulate(seed);
  }
}

/* --- shrinking --- */

static char *shrunk; /* shared: why the last attempt failed; "" = it did not */

/* In a process of its own, since it may crash. */
static bool fails(uint64_t seed, const struct story_cut *with) {
  int status = 0;
  shrunk[0] = '\0';
  pid_t pid = fork();
  if (pid == 0) {
    struct story_count count;
    const char *why;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, -1);
    if (!story_run((enum story_kind)kind, seed, with, false, &count, &why))
      (void)snprintf(shrunk, SHRUNK_MAX, "%s", why);
    _exit(0);
  }
  if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
    (void)snprintf(shrunk, SHRUNK_MAX, "%s", strsignal(WTERMSIG(status)));
  return shrunk[0];
}

/* Whether it still fails for the same reason: the promise before the colon. */
static bool still_fails(uint64_t seed, const struct story_cut *with, const char *why) {
  return fails(seed, with) && strncmp(shrunk, why, strcspn(why, ":")) == 0;
}

static bool try_cut(uint64_t seed, const struct story_cut *with, const char *why) {
  bool holds = still_fails(seed, with, why);
  if (holds)
    cut = *with;
  return holds;
}

/* The fewest that it fails with. */
static void try_fewer(uint64_t seed, unsigned *number, struct story_cut *with, unsigned most, const char *why) {
  for (*number = 1; *number < most && !try_cut(seed, with, why);)
    *number += 1 + *number / 4;
  *with = cut;
}

static void shrink(uint64_t seed) {
  char why[SHRUNK_MAX];
  struct story_cut with = cut;
  shrunk = mmap(NULL, SHRUNK_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shrunk == MAP_FAILED || !fails(seed, &cut)) {
    (void)printf("seed %" PRIu64 " does not fail\n", seed);
    return;
  }
  (void)snprintf(why, sizeof why, "%s", shrunk);
  for (int fault = 0; fault < 32; fault++, with = cut) {
    with.faults |= UINT32_C(1) << fault;
    (void)try_cut(seed, &with, why);
  }
  with.quiet = 1;
  (void)try_cut(seed, &with, why);
  with = cut;
  try_fewer(seed, &with.processes, &with, 3, why);
  try_fewer(seed, &with.tasks, &with, 60, why);
  (void)still_fails(seed, &cut, why);
  (void)printf("sim --seed %" PRIu64 " --cut %u:%u:%x:%u\n%s\n", seed, cut.tasks, cut.processes, cut.faults, cut.quiet,
               shrunk);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A worker is a process of its own for some seeds: one that crashes takes no other with it. */
static void run_workers(unsigned workers, int64_t end_ms) {
  pid_t pids[WORKERS_MAX] = {0};
  for (;;) {
    bool more = tally->next <= tally->last && (end_ms == 0 || now_ms() < end_ms);
    unsigned busy = 0;
    for (unsigned i = 0; i < workers; i++) {
      if (!pids[i] && more && (pids[i] = fork()) == 0) {
        work(i);
        _exit(0);
      }
      busy += pids[i] > 0;
    }
    if (!busy)
      return;
    int status;
    pid_t pid = wait(&status);
    for (unsigned i = 0; i < workers; i++)
      if (pids[i] == pid) {
        pids[i] = 0;
        if (WIFSIGNALED(status)) {
          report(tally->at[i], strsignal(WTERMSIG(status)));
        } else if (WEXITSTATUS(status) != 0) {
          report(tally->at[i], "the process ended, see above");
        }
      }
  }
}

static void print_tally(int64_t took_ms) {
  double seconds = took_ms > 0 ? (double)took_ms / 1000 : 0.001;
  (void)printf("%" PRIu64 " seeds in %.1f s (%.0f a second), %" PRIu64 " failed, %" PRIu64 " replayed, %" PRIu64
               " thin\n",
               tally->seeds, seconds, (double)tally->seeds / seconds, tally->failed, tally->replayed, tally->thin);
  (void)printf("%.1f simulated hours, %" PRIu64 " steps, %" PRIu64 " choices, %" PRIu64 " tasks, %" PRIu64
               " deliveries\n",
               (double)tally->virtual_us / 3.6e9, tally->steps, tally->choices, tally->tasks, tally->deliveries);
  for (int i = 0; i < FAULT_KINDS; i++)
    (void)printf("%s%s %" PRIu64, i ? ", " : "faults: ", fault_names[i], tally->faults[i]);
  for (int event = 0; event < BROKER_EVENTS; event++)
    (void)printf("%s%s %" PRIu64, event ? ", " : "\nbroker: ", broker_event_names[event], tally->broker[event]);
  (void)printf("\n");
}

NORETURN static void usage(void) {
  (void)fprintf(stderr, "usage: sim --seeds FIRST-LAST | --seed N [--trace] [--log LEVEL] [--shrink] [--cut T:P:F:Q] | "
                        "--minutes M, with --isolation, --keys or --flow before\n");
  exit(64);
}

/* T:P:F:Q, F in hexadecimal. Returns what is behind it. */
static char *read_cut(const char *text) {
  unsigned *const parts[] = {&cut.tasks, &cut.processes, &cut.faults, &cut.quiet};
  char *rest = (char *)(uintptr_t)text;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    *parts[i] = (unsigned)strtoul(rest + (i > 0 && *rest == ':'), &rest, i == 2 ? 16 : 10);
  return rest;
}

static void run_all(int64_t end_ms) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  unsigned workers = processors < 1 ? 1 : processors > WORKERS_MAX ? WORKERS_MAX : (unsigned)processors;
  if (tally->next == tally->last)
    simulate(tally->next);
  else
    run_workers(workers, end_ms);
}

static const struct option options[] = {{"seeds", required_argument, NULL, 's'},
                                        {"seed", required_argument, NULL, '1'},
                                        {"minutes", required_argument, NULL, 'm'},
                                        {"log", required_argument, NULL, 'l'},
                                        {"cut", required_argument, NULL, 'c'},
                                        {"trace", no_argument, &trace, 1},
                                        {"shrink", no_argument, &shrinks, 1},
                                        {"isolation", no_argument, &kind, STORY_ISOLATION},
                                        {"keys", no_argument, &kind, STORY_KEYS},
                                        {"flow", no_argument, &kind, STORY_FLOW},
                                        {NULL, 0, NULL, 0}};

int main(int argc, char **argv) {
  int64_t minutes = 0;
  int option;
  tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (tally == MAP_FAILED)
    return 71;
  bool given = false;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    char *rest = NULL;
    given = true;
    switch (option) {
    case 's':
      tally->next = strtoull(optarg, &rest, 10);
      tally->last = *rest == '-' ? strtoull(rest + 1, &rest, 10) : tally->next;
      break;
    case '1':
      tally->next = tally->last = strtoull(optarg, &rest, 10);
      break;
    case 'm':
      minutes = strtoll(optarg, &rest, 10);
      tally->last = UINT64_MAX - 1;
      if (getrandom(&tally->next, sizeof tally->next, 0) != (ssize_t)sizeof tally->next)
        return 71;
      tally->next >>= 16;
      break;
    case 'l':
      log_level = (int)strtol(optarg, &rest, 10);
      break;
    case 0: /* a flag */
      break;
    case 'c':
      rest = read_cut(optarg);
      break;
    default:
      usage();
    }
    if (rest && (*rest || rest == optarg))
      usage();
  }
  if (!given || optind < argc)
    usage();
  if (shrinks) {
    shrink(tally->next);
    return 0;
  }
  int64_t began = now_ms();
  run_all(minutes ? began + minutes * 60000 : 0);
  print_tally(now_ms() - began);
  return tally->failed ? 1 : 0;
}
