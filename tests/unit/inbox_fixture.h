/* SPDX-License-Identifier: MIT
 *
 * tests/unit/inbox_fixture.h - an inbox with a store that a test tells what to say, and two sources.
 */
#ifndef INBOX_FIXTURE_H
#define INBOX_FIXTURE_H

#include <stdatomic.h>

#include "core/aside.h"
#include "core/config_ref.h"
#include "core/driver.h"
#include "core/inbox.h"

enum { LIMIT_MS = 60 * 1000, SAID_MAX = 10000, BESIDE_MS = 30 };

/* A record as the store got it. */
struct said {
  char task[32], checkpoint[16];
  enum result_status status;
  double progress;
  int64_t extend_ms;
};

struct fixture {
  atomic_bool shut; /* the store does not answer ... */
  atomic_bool in;   /* ... and has been asked */
  struct said said[SAID_MAX];
  atomic_uint said_count;
  char place[256]; /* of the last record */
  double progress; /* that was applied last ... */
  bool backwards;  /* ... and one before it was greater */

  atomic_bool away;         /* the server */
  atomic_bool unwritable;   /* it answers, and takes nothing */
  atomic_bool locked;       /* all rows */
  atomic_bool early;        /* all results */
  atomic_bool held;         /* the row of the task "mine" */
  atomic_bool postpones;    /* it comes to none */
  atomic_bool beside;       /* what the tasks "beside-" need beside their rows: each takes a while to find out ... */
  atomic_uint beside_tried; /* ... and how often one was */
  atomic_bool kept;         /* the quarantine: what says `fail` fits nothing */
  atomic_bool refuses;      /* all that the tasks "poor-" come to, which are of a route of their own */
  bool mixed;               /* some of these were tried with others */
  bool known[ASIDE_PER_ROUTE + 1]; /* tasks of offer() that were tried ... */
  atomic_uint known_count;         /* ... each once, however often it is tried again */
  atomic_uint tried, broken, applied, calls;
  struct config config;
  struct config_ref ref;
  struct store store;
  struct engine_metrics metrics;
  struct driver source, partner;
  struct inbox *inbox;
};

int set_up(void **state);
int set_up_impatient(void **state);
void offer(struct fixture *f, unsigned number);
bool call_back_within(struct fixture *f, int64_t timeout_ms, struct store_result *result, struct err *err);
bool call_back(struct fixture *f, struct store_result *result, struct err *err);
bool say(struct fixture *f, struct driver *driver, const char *text);
bool say_of(struct fixture *f, struct driver *driver, const char *kind, unsigned number, const char *more);
/* What comes from here on waits in the inbox. */
void shut(struct fixture *f);
void open_until(struct fixture *f, unsigned said);
/* How many records the store got before the last one of that kind. */
unsigned last_of(const struct fixture *f, const char *kind);
void nap(void);
int tear_down(void **state);

#define DONE "\"status\":\"done\""

#endif
