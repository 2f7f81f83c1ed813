/* SPDX-License-Identifier: MIT
 *
 * tests/sim/broker.h - where tasks go in the simulation, and where their answers come from.
 *
 * One broker for all daemons. A message that was submitted arrives a little later and is confirmed a little later
 * still; what a fault does to it is drawn when it is submitted. Every copy that arrives stays in the list for the
 * checker. On routes with a result a consumer answers by the result topic, which one source reads at a time, from the
 * last position that was acknowledged.
 */
#ifndef TESTS_SIM_BROKER_H
#define TESTS_SIM_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duebox/plugin.h>

#include "chance.h"
#include "world.h"

enum { BROKER_MESSAGES = 8192, BROKER_RECORDS = 8192, BROKER_RECORD_MAX = 256, BROKER_SAID = 256 };

/* How often what goes wrong, per million messages or calls; 0 = never. */
struct broker_faults {
  uint32_t rejected, retry, unavailable, unknown; /* outcomes; of UNKNOWN every other one has arrived */
  uint32_t hang;                                  /* a call of the plugin returns late, or never */
  uint32_t full;                                  /* submit() takes fewer than it is given */
  uint32_t twice;                                 /* a task is completed twice */
  uint32_t wish;                                  /* RETRY and UNAVAILABLE: it asks for some time */
  uint32_t instance;                              /* UNAVAILABLE: all of the instance; it says when that is over */
  uint32_t gone, blameless; /* GONE in place of UNAVAILABLE; UNKNOWN without a fault of the task */
  uint32_t no_answer, answer_twice, answer_retry, answer_fail, answer_progress, answer_broken, answer_unknown,
      answer_late;
};

/* The destination of one route, where it is another than those of all others. */
struct broker_route {
  const char *route;
  int64_t low_us, high_us; /* how long a message is on its way */
  struct broker_faults faults;
  int64_t frozen_until_us;
};
enum { BROKER_ROUTES = 6, BROKER_TARGETS = 4 };

struct message {
  char message_id[65], route[65];
  uint32_t attempt, revision;
  char payload[32]; /* its beginning */
  unsigned machine;
  char host[16]; /* the machine's */
  uint64_t instance, token;
  unsigned target;                               /* of its route's, from 1; 0 = that has one */
  int64_t submitted_us, arrives_us, confirms_us; /* INT64_MAX = never */
  enum duebox_outcome_class outcome;
  enum duebox_scope scope;
  int64_t wish_ms; /* -1 = none */
  bool blameless;
  int64_t clock_us;             /* the database's, when it was submitted */
  bool arrived, reported, lost; /* lost: its sender died before it left */
  bool slow;                    /* not confirmed within a time-out of any length, or its sender hung */
};

struct broker {
  int64_t (*clock)(const void *database); /* the database's clock */
  const void *database;
  int64_t (*most)(const char *route); /* that one instance may have of it at once */
  struct chance chance, reach;        /* the second: how far trouble reaches, and for how long */
  struct broker_faults faults;
  int64_t low_us, high_us; /* how long a message is on its way */
  int64_t answer_low_us, answer_high_us;
  int64_t hang_low_us, hang_high_us; /* how long a call hangs that comes back */
  uint32_t hang_forever;             /* of a million that hang so many do not */
  bool create_hangs;                 /* instances that are made from now on */
  bool hang_is_over;                 /* all come back */
  int64_t down_until_us;             /* takes nothing */
  int64_t fails_until_us;            /* takes everything, and answers with a failure of its own */
  int64_t target_down_until_us[BROKER_TARGETS];
  int64_t full_until_us;   /* submit() takes none */
  int64_t frozen_until_us; /* takes everything and confirms nothing */
  struct broker_route routes[BROKER_ROUTES];
  size_t route_count;
  const char *hangs;       /* only calls of the instance with that name; NULL = of any */
  const char *answers_for; /* a prefix of the routes whose consumer answers */
  struct message messages[BROKER_MESSAGES];
  size_t message_count;
  int64_t next_arrival_us; /* of any that are on their way, or earlier; INT64_MAX = of none */
  struct {
    char text[BROKER_RECORD_MAX];
    int64_t at_us;
    bool acked;              /* by its present reader */
  } records[BROKER_RECORDS]; /* the result topic, in order of time */
  size_t record_count, committed;
  struct {
    char text[BROKER_RECORD_MAX];
    int64_t at_us;
  } said[BROKER_SAID]; /* results that came otherwise */
  size_t said_count;
  unsigned reader; /* machine whose source reads it; 0 = nobody */
  uint64_t reader_instance;
  uint64_t instances;  /* made so far */
  uint64_t kept;       /* machines on which an instance may still use tasks that were given up, a bit each */
  uint64_t counts[16]; /* what happened, by enum broker_event */
};

enum broker_event {
  BROKER_ARRIVED,
  BROKER_REJECTED,
  BROKER_RETRY,
  BROKER_UNAVAILABLE,
  BROKER_UNKNOWN_THERE,
  BROKER_UNKNOWN_LOST,
  BROKER_HANG,
  BROKER_FULL,
  BROKER_TWICE,
  BROKER_ANSWERS,
  BROKER_DIED_ON_THE_WAY,
  BROKER_RECALLED,
  BROKER_EVENTS
};
extern const char *const broker_event_names[BROKER_EVENTS];

/* The broker that instances of the plugin talk to from now on. */
void broker_begin(struct broker *broker, uint64_t seed);
/* A world's strand: lets messages arrive, and consumers answer. */
void broker_run(void *broker);
/* A machine is gone: what it had not sent yet may be lost. */
void broker_machine_gone(struct broker *broker, const struct machine *machine);

/* Notes what was said of a task otherwise than by the topic of results. */
void broker_said(struct broker *broker, const char *text);
/* Whether a process of that machine must leave memory to its plugin: a call has hung, or a task was not answered. */
bool broker_keeps(unsigned machine);

/* The options of a route whose tasks go where their task_key says: "1" to BROKER_TARGETS. */
struct broker_topic {
  const char *topic;
};
/* The options of an entry of results. */
struct broker_source {
  const char *topic;
};
/* Sink and source; instances have no options. */
extern const struct duebox_plugin broker_plugin;

#endif
