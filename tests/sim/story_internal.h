/* SPDX-License-Identifier: MIT
 *
 * tests/sim/story_internal.h - what the parts of a story share: the plan, the users, the operators and the faults.
 */
#ifndef TESTS_SIM_STORY_INTERNAL_H
#define TESTS_SIM_STORY_INTERNAL_H

#include "broker.h"
#include "checker.h"
#include "process.h"
#include "story.h"
#include "table.h"

#define GOOD_ROUTE "good" /* of a story of isolation */
#define AWAY_HOST "away"  /* of no daemon */
enum { PROCESSES = 5, TASKS_MAX = 200, KEYS = 3, HEAL_US = 600 * 1000 * 1000, STORM_US = 2 * 1000 * 1000 };
enum { PUT_OFF_US = 60 * 1000 * 1000 }; /* for so long a task whose target is in trouble waits at most */

extern struct story {
  struct chance plan, users, faults;
  struct world_options options;
  struct profile profile;
  bool isolated;                               /* nobody touches the good route */
  bool calm;                                   /* calls fail, and nothing else is wrong */
  size_t stays;                                /* the route that is always there */
  bool leaves;                                 /* routes come and go with each configuration */
  bool any_absent;                             /* a route was, and its tasks are held */
  bool any_refused;                            /* outcomes were, in every form, and are tried again seldom */
  uint32_t bound_ppm;                          /* so many tasks are bound to a host */
  uint32_t expiry_ppm, budget_ppm, poison_ppm; /* expire; have few attempts of their own; can never be sent */
  uint32_t suspect_ppm, away_ppm, large_ppm;   /* were in a crash; are to move to a host that never comes; are large */
  struct table db;
  struct broker broker;
  struct process processes[PROCESSES];
  unsigned process_count, task_count, key_count;
  uint32_t fault_ppm[FAULT_KINDS]; /* weight; 0 = does not happen in this run */
  unsigned fault_count;
  uint32_t fault_cut; /* bits: those that are left out */
  int64_t fault_gap_us;
  int64_t backlog_us; /* what rows that wait for one another may take beyond the patience with one */
  bool users_done, faults_done;
  struct run_facts facts;
  struct story_count count;
  char why[1024];
} story;

/* story_plan.c: all that a seed decides beforehand. */
void plan_story(uint64_t seed, bool trace);
void plan_world(uint64_t seed, bool trace);
/* Begins a story in which it is judged how long tasks wait; purpose: the first of three for chance_of(). */
void plan_isolated(uint64_t seed, uint64_t purpose, bool trace);
void begin_broker(uint64_t seed);
void plan_processes(uint64_t seed, bool twins);
/* How long a route may stand still while nothing is wrong. */
int64_t still_us(void);

/* story_isolation.c */
void plan_isolation(uint64_t seed, bool trace);
void be_isolated(void *arg);
bool is_good(const struct row *row);
/* A route that is not the good one. */
size_t some_route(void);

/* story_flow.c */
void plan_flow(uint64_t seed, bool trace);
void be_flowing(void *arg);

/* story_keys.c */
void plan_keys(uint64_t seed, bool trace);
void be_writers(void *arg);

/* story_trouble.c: what tasks of a key may meet between their turn and their end, in some stories of keys. */
void plan_trouble(uint64_t seed);

/* story.c */
void start_some(unsigned count);

/* story_users.c: strands of the applications. */
void poison(struct row *row, unsigned number); /* makes it one that can never be sent */
void make_large(struct row *row);              /* not read together with others */
void be_users(void *arg);
void name_target(struct row *row); /* where it goes, on a route with several */

/* story_still.c: fails the run of a calm story in which a route stands still. */
void be_watcher(void *arg);

/* story_faults.c */
void be_faults(void *arg);
/* Some that runs, or that does not; NULL = there is none. */
struct process *some_process(bool running);
int64_t fault_time(int64_t high_us);
void break_some_target(int64_t high_us);

/* story_hands.c: strands of those who hold locks, change or delete tasks, each once. */
struct row *some_row(void); /* NULL = there is none */
void hold_rows(void *arg);
void hold_table(void *arg);
void hold_lease(void *arg);
void update_some_row(void *arg);
void delete_some_row(void *arg);
void forget_leases(void *arg);
void truncate_table(void *arg);

/* story_operators.c: what people do with daemons. False: none takes commands. */
bool command_some_task(void);
bool pause_some_route(void);
/* Somebody says what became of a task, over HTTP or by hand. */
bool offer_result(void);
/* The next configuration has some routes otherwise, or not at all. */
void change_routes(void);
/* All routes are there, and run. */
void restore_routes(void);

#endif
