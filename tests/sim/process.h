/* SPDX-License-Identifier: MIT
 *
 * tests/sim/process.h - one `duebox run` in the simulation: the engine with its configuration, started, reloaded,
 * drained, killed and started again on its machine.
 */
#ifndef TESTS_SIM_PROCESS_H
#define TESTS_SIM_PROCESS_H

#include <stdbool.h>

#include "core/config.h"
#include "core/engine.h"
#include "table.h"
#include "world.h"

enum { PROFILE_ROUTES = 6, PROFILE_CONCURRENCY = 64, PAYLOAD_MAX = 200, PAYLOAD_LARGE = 40 * 1000 };

#define APART "apart" /* the plugin instance of some routes */

/* What all daemons are configured with; the engine gets a copy of its own at each start and reload. */
struct profile {
  struct {
    const char *name;
    enum claim_mode claim;
    enum result_mode result;
    enum order_mode order;
    int64_t timeout_ms, give_up_ms, concurrency, history_ms;
    uint32_t max_attempts;
    int64_t backoff_ms, backoff_max_ms;
    int64_t breaker;
    double rate;              /* 0 = no limit */
    bool targets;             /* its tasks go where their task_key says */
    int64_t concurrency_most; /* that any configuration had so far */
    bool every_attempt;
    bool absent; /* no configuration has it at present */
    bool apart;  /* its plugin instance is another than that of the others */
  } routes[PROFILE_ROUTES];
  size_t route_count;
  bool source; /* the topic of results is read */
  enum wake_mode wake;
  int64_t lease_ms, poll_min_ms, poll_max_ms, batch, settle_rows, settle_delay_ms, hang_ms, drain_timeout_ms;
  int64_t max_recoveries, inflight_bytes;
  bool large; /* rows may have up to PAYLOAD_LARGE, else PAYLOAD_MAX */
};

enum process_wish { PROCESS_GO_ON, PROCESS_RELOAD, PROCESS_END };

struct process {
  struct machine machine;
  const struct profile *profile;
  struct table *db;
  char host[16];
  enum process_wish wish;
  bool drain; /* PROCESS_END: what is in flight may end */
  bool running;
  unsigned starts, reloads;
  struct engine *engine; /* while commands are taken; NULL = they are not */
  unsigned commands;     /* under way */
};

/* Starts the main thread of the process; profile and database outlive it. */
void process_start(struct process *process);
/* Ends it at once, as kill -9 would. */
void process_kill(struct process *process);
/* Asks for a reload or an end; process->running says when it is over. */
/* Has a strand of its admin side do something with the engine. False: it takes no commands. */
MUSTCHECK bool process_command(struct process *process, void (*run)(struct engine *engine));
void process_ask(struct process *process, enum process_wish wish);

#endif
