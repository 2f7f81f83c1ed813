/* SPDX-License-Identifier: MIT
 *
 * core/scheduler.h - the thread that reads: it knows what is due when, sleeps until then, reads rows and hands them
 * out.
 *
 * It owns lanes, groups and flights, and one store session. It writes nothing but recorded claims, holds and people's
 * commands. Between two rounds it sleeps in mailbox_take(), until its next deadline. That it alone reads, and applies
 * what was settled only between reads, is why a row that has just been settled is never taken for a new one.
 *
 * Due times are judged by the database's clock: a row is handed over only when the database itself has said
 * "next_at <= now" for it. The estimate kept here decides when to ask.
 */
#ifndef CORE_SCHEDULER_H
#define CORE_SCHEDULER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/log_repeat.h"
#include "core/base/sync.h"
#include "core/config_ref.h"
#include "core/db_clock.h"
#include "core/engine.h"
#include "core/flight.h"
#include "core/hints.h"
#include "core/lane.h"
#include "core/leases.h"
#include "core/mailbox.h"
#include "core/poll_pace.h"
#include "core/row_pace.h"

#define EVER_US (INT64_C(300) * 365 * 86400 * 1000000) /* later than any due time */

/* A command waiting for the scheduler; lives on the asker's stack, guarded by ask_lock. */
struct asked {
  const struct task_command *command;
  const struct task_commands *many; /* NULL = the one command */
  enum command_answer answer;       /* of the one */
  struct err err;
  bool done;
  struct asked *next;
};

struct scheduler {
  /* Filled by the engine before the start. */
  const struct store *store;
  struct leases *leases;
  struct engine_metrics *metrics;
  struct mailbox *settler;
  struct flight_table *flights;
  struct config_ref *config; /* scheduler thread after the start; a use of its own */
  struct driver *(*driver_for)(void *engine, const struct plugin_config *plugin);
  void (*shard_lost)(void *engine, const struct shard_lease *lease); /* the fence has refused it */
  void (*shard_empty)(void *engine);                                 /* a shard may be given back; NULL = nobody asks */
  /* The destination is closed for good, as it said in answer to a call that began then (database clock). */
  void (*route_gone)(void *engine, const char *route, const char *reason, int64_t since_us);
  void *engine;
  const char *instance; /* id of this process, for claims */
  bool realtime;        /* as configured; core/realtime.h */

  struct mailbox in; /* settled flights; the engine's to init and destroy: the settler knows it before we start */
  struct thread thread;
  atomic_bool stopping, draining;
  atomic_bool on_hold;  /* set before there are leases: it looks, and neither reads nor changes anything by itself */
  atomic_bool resting;  /* it has seen `draining` and reads no more; also when its thread is over */
  atomic_bool look_now; /* something changed outside: look at once */
  atomic_int_fast64_t in_flight;
  atomic_int_fast64_t db_offset_us; /* database clock minus monotonic clock */

  struct mutex ask_lock;
  struct cond answered;
  struct asked *asked;
  struct config_ref *next_config; /* a reload on its way in; under ask_lock */
  bool accepts;                   /* commands: the thread runs */
  int64_t locks_after_us;         /* monotonic: until then no command may wait for a lock */
  struct route_setting *settings; /* of operators, newest; NULL = nothing new */
  size_t setting_count;
  bool settings_came;      /* once at least */
  struct driver *replaced; /* drivers whose successors no lane knows yet, in the order in which they hung */

  struct mutex lanes_lock; /* lanes: the list grows, and what status shows, under this */
  struct lane *lanes;      /* in order of making */
  struct lane *strangers;  /* one lane for unknown routes beyond STRANGERS_MAX; among lanes */
  size_t stranger_count;
  struct lane *by_name; /* uthash over the same lanes */
  size_t target_count;  /* targets in trouble, of all lanes */

  /* Scheduler thread. */
  struct store_session *ss;
  struct lease_slot view[STORE_SHARDS_MAX];
  uint64_t look;                      /* number of the last look */
  gauge db_answers;                   /* 1 while the last unit of work succeeded, or met a lock */
  gauge reading_since_us;             /* monotonic: since when no look, with the reading after it, has succeeded */
  int64_t look_at_us;                 /* monotonic: when to look again */
  int64_t look_every_us;              /* adaptive */
  int64_t look_cost_us;               /* moving average */
  struct poll_pace pace;              /* whether a look is at every group */
  size_t known_after;                 /* which known groups the next poll of these begins with */
  int64_t overdue_at_us;              /* monotonic: when to end overdue ones again */
  struct store_group *overdue;        /* the groups of these, as of the last look at every group */
  size_t overdue_count, overdue_turn; /* and which of them is next */
  struct store_group *unknown;        /* groups of unknown routes, as of a poll of every group, */
  size_t unknown_count, unknown_turn; /* which of them is to be held next, */
  int64_t hold_ahead_us, hold_at_us;  /* how long before they are due; and when (monotonic) */
  int64_t held_at_us;                 /* monotonic: when to look for held rows, */
  size_t held_turn;                   /* whose groups take turns, */
  bool held_more;                     /* and are on their way back: then is the next look, too */
  uint64_t held_looks;                /* that found all of them, whatever their routes */
  struct db_clock db_clock;           /* db_offset_us is what it says */
  int64_t retry_at_us;                /* the database is away: when to try again */
  int64_t retry_wait_us;
  struct log_repeat trouble;                     /* with the database, as it was logged */
  struct log_repeat claim_refusals, claims_held; /* of rows, the same */
  bool busy;                                     /* looking found what was not known: rows arrive */
  struct row_pace pace_turns;                    /* of lanes with a backlog */
  uint64_t round;                                /* of reading: number of the last one, */
  bool read_more;                                /* which left something due */
  size_t probes_from;                            /* lanes: those before have had their turn, see read_suspended() */
  struct found_id *found;                        /* room for one find */
  int64_t read_mean_us, read_spread_us;          /* what a small read takes: moving average, and distance from it */
  struct route_setting *known_settings;          /* of operators, as they count now; NULL = nothing is known yet, and */
  size_t known_setting_count;                    /* nothing is read */
  bool look_soon;                                /* asked for while looking: the next look comes at once */
  uint64_t claims_unknown;                       /* bit per shard: a claim may have been written without our knowing */
  uint64_t claims_lost;                          /* bit per shard: there may be claims of earlier leases */
  struct lane *read_first[LANE_TURNS];           /* whose turn it is, of each kind; NULL = the first */
  bool bound_claims;                             /* there are claims of bound tasks, perhaps of a dead instance */
  int64_t bound_claims_at_us;                    /* monotonic: when to look at them next */
  bool heads_came;  /* shards came to us: what heads they have is not known, and their keys are closed until it is */
  bool heads_stale; /* shards came to us: their heads are not known */
  int64_t heads_at_us, heads_rest_us; /* monotonic: when to read heads again; and after how long */
  struct store_heads_part heads_part; /* how far they are read, where there are many */
  /* Monotonic: when to bring blocked rows back, and from when on that has had no more than its share of the time. */
  int64_t unblock_at_us, unblock_paid_us;
  struct lane *unblock_lane;             /* whose turn it is; NULL = the first */
  int64_t elsewhere_at_us;               /* monotonic: when to see again which keys other instances hold */
  int64_t watch_at_us;                   /* monotonic: when to look for forgotten flights again */
  int64_t leave_at_us;                   /* monotonic: when to see to shards that are leaving; INT64_MAX = none */
  uint64_t emptied;                      /* bits: shards of which the keeper knows that they may be given back */
  uint64_t expire_pass;                  /* number of the pass over rows that wait and may expire meanwhile, */
  int64_t expire_at_us, expire_cost_us;  /* monotonic: when it goes on; and what it has taken so far */
  int64_t ahead_us;                      /* how long before their due times rows are read */
  struct flight_list early;              /* read but not due: in order of due_us */
  bool last_chance;                      /* a suspect is out that the next crash makes poison */
  uint64_t calm_count[STORE_SHARDS_MAX]; /* settled since an unclean takeover */
  struct hints hints;
};

MUSTCHECK bool scheduler_start(struct scheduler *scheduler, struct err *err);
/* Ends the thread; what is in flight must have been settled or given up. */
void scheduler_stop(struct scheduler *scheduler);
/* Frees lanes and groups, once no plugin can come back with one of their tasks. */
void scheduler_free(struct scheduler *scheduler);
/* Reads nothing more; in_flight falls to zero as tasks end. Any thread. */
void scheduler_drain(struct scheduler *scheduler);
void scheduler_poke(struct scheduler *scheduler);
/* Something for the table has committed. Any thread, between start and stop. */
void scheduler_hint(struct scheduler *scheduler, const struct store_hint *hints, size_t count);
/* Any thread: runs the command between two reads and waits for the answer. */
enum command_answer scheduler_ask(struct scheduler *scheduler, const struct task_command *command, int64_t timeout_ms,
                                  struct err *err);
MUSTCHECK bool scheduler_ask_many(struct scheduler *scheduler, const struct task_commands *commands, int64_t timeout_ms,
                                  struct err *err);
/* Takes routes and limits of the configuration from the next tick on; the reference goes over. */
void scheduler_reload(struct scheduler *scheduler, struct config_ref *config);
/* What operators have set for routes; copied. A route that is in no setting is not paused. */
void scheduler_settings(struct scheduler *scheduler, const struct route_setting *settings, size_t count);
/* Moves lanes to the new driver and ends what the old one had in flight: unseen tasks go back, others are unknown. Once
 * for each old driver. */
void scheduler_replace(struct scheduler *scheduler, struct driver *old, struct driver *new);
int64_t scheduler_db_now_us(const struct scheduler *scheduler);
/* The lane of that name, or NULL. Any thread; lanes stay. */
struct lane *scheduler_lane(struct scheduler *scheduler, const char *name);

/* --- between the files of the scheduler --- */
/* scheduler_lanes.c: the lane of a route that rows were met of, or that is configured. */
struct lane *scheduler_lane_make(struct scheduler *s, const char *name);
/* Routes that nobody knows, and that have no rows any more, are not shown. After a look at every group, or where no
 * shard is ours. scheduler_lanes.c */
void scheduler_forget_routes(struct scheduler *s, bool nothing_is_ours);
void scheduler_configure(struct scheduler *s);                             /* scheduler_lanes.c */
void scheduler_watch_flights(struct scheduler *s);                         /* scheduler_lanes.c */
void scheduler_arrivals(struct scheduler *s, struct flight_list *settled); /* scheduler_lanes.c */
/* scheduler_health.c: */
void scheduler_follow_outcome(struct scheduler *s, const struct flight *flight); /* what it says of its destination */
void scheduler_follow_plugins(struct scheduler *s); /* routes whose plugin is connected again go on */
void scheduler_follow_stalls(struct scheduler *s);  /* routes whose destinations stand still: since when, and where */
/* Nothing that was heard of the route's destination counts any more, nor of its targets. */
void scheduler_forget_trouble(struct scheduler *s, struct lane *lane);
/* Whether a task that was read must wait for its target: the flight is ended as deferred then. */
bool scheduler_target_waits(struct scheduler *s, struct flight *flight);
/* scheduler_heads.c: */
void scheduler_leave_order(struct scheduler *s, struct flight *flight, bool handed_back); /* the flight is over */
void scheduler_is_blocked(struct scheduler *s, struct flight *flight); /* it was written that it is */
/* Reads the heads of order keys when it is time. False: the database did not answer, nothing may be read. */
bool scheduler_heads(struct scheduler *s);
/* Monotonic: when it is time again, where order keys wait for that; INT64_MAX = none does. */
int64_t scheduler_heads_awaited_at(const struct scheduler *s);
/* Notes which order keys of bound tasks of the lane are held by claims of other instances: before any is taken. Until
 * when they are, scheduler_heads() finds out. False: the database did not answer. */
bool scheduler_note_elsewhere(struct scheduler *s, struct lane *lane);
/* Keys whose heads are over, shards (bits) that came to us, and routes that came back, wait until blocked and held rows
 * are brought back: what was committed later would overtake them. _close for shards and routes, _begin before a look at
 * every group, _seen with what it found, _end after it; that may take several looks. _unblock brings some of the
 * blocked rows back, when it is time: unblock_at_us. */
void scheduler_close(struct lane *lane, uint64_t shards); /* scheduler_lanes.c */
/* Nobody knows which heads the lane has: its keys wait until they were read and what they block was brought back.
 * scheduler_lanes.c */
void scheduler_close_keys(struct lane *lane);
void scheduler_return_begin(struct scheduler *s);
void scheduler_return_seen(struct scheduler *s, const struct store_group *groups, size_t count,
                           const struct shard_lease *leases, size_t lease_count);
void scheduler_return_end(struct scheduler *s);
void scheduler_unblock(struct scheduler *s);

/* A poll found the earliest row of a group. NULL: no memory. scheduler.c */
struct group *scheduler_note_group(struct scheduler *s, struct lane *lane, const struct store_group *found,
                                   int64_t db_now_us);
/* scheduler_poll.c: */
/* Looks into the groups of known routes alone. False: the database did not answer. */
bool scheduler_poll_known(struct scheduler *s, const struct shard_lease *leases, size_t lease_count);
/* Polls one shard, when its turn is, to see whether polls of every group would be quick again. */
bool scheduler_probe(struct scheduler *s, const struct shard_lease *leases, size_t lease_count);
/* Where to read a group from that has been read up to there: not over what was deleted before the group's earliest row
 * and is not purged yet, but over what may have committed late. */
struct store_cursor scheduler_read_from(const struct scheduler *s, const struct group *group,
                                        struct store_cursor after);
/* Rows of routes that nobody knows are set aside where people see them, and come back with the route: _note_unknown
 * keeps which groups a poll of every group found, and _hold sets some of them aside when it is time. */
void scheduler_note_unknown(struct scheduler *s, const struct store_group *groups, size_t count, int64_t db_now_us);
void scheduler_hold(struct scheduler *s);
int64_t scheduler_holds_at(const struct scheduler *s); /* monotonic; INT64_MAX = there are none */
/* Brings held rows of known routes back when it is time. */
void scheduler_held(struct scheduler *s, const struct shard_lease *leases, size_t lease_count);

/* scheduler_clock.c: a statement that was sent and answered at these monotonic times told the database's time. */
void scheduler_track_clock(struct scheduler *s, int64_t db_now_us, int64_t before_us, int64_t after_us);
int64_t scheduler_db_surely_us(const struct scheduler *s); /* by the database's clock it is at least this time */

/* scheduler_send.c: */
enum suspicion scheduler_suspicion(const struct scheduler *s, const struct task *task);
/* Enters a flight in the accounts of its lane and driver. now_us here and below: monotonic. */
struct flight *scheduler_charge(struct scheduler *s, struct flight *flight, int64_t now_us);
/* Opens a flight for its driver now and adds it to a list to be pushed there. */
void scheduler_open(struct scheduler *s, struct flight *flight, int64_t now_us, struct flight_list *out);
void scheduler_send_later(struct scheduler *s, struct flight *flight); /* when it is due */
void scheduler_send_due(struct scheduler *s);                          /* those that are due by now */
int64_t scheduler_sends_at(const struct scheduler *s); /* monotonic: when the next one is due; INT64_MAX = none */

/* scheduler_hints.c: */
void scheduler_take_hints(struct scheduler *s);  /* before reading: groups become due, or a look does */
void scheduler_check_hints(struct scheduler *s); /* after reading: whether what was promised has been found */
int64_t scheduler_hints_at(struct scheduler *s); /* monotonic: when to see to them next; INT64_MAX = never */

/* scheduler_leases.c: */
/* Leases that came, went or are leaving. */
void scheduler_follow_leases(struct scheduler *s);
/* The epoch under which the lane reads the shard; 0 = it does not: it is not ours, or leaving. */
uint64_t scheduler_epoch(const struct scheduler *s, const struct lane *lane, uint8_t shard);

/* Whose rows of the shard are ours: in SHARD_BOUND those of our host, elsewhere everybody's (NULL). Nobody else blocks,
 * moves or brings them back: their order is known here alone. reader.c */
const char *scheduler_host(const struct scheduler *s, uint8_t shard);
/* Rows that may be read for the lane now: lane_credit() with the batch size of the configuration. reader.c */
uint32_t scheduler_credit(const struct scheduler *s, const struct lane *lane, int64_t now_us);
void scheduler_read(struct scheduler *s); /* reader.c: one step for every lane */
/* Ends rows whose time is over and that nobody reads: their lane is closed, or others go first. reader_sweep.c */
void scheduler_expire(struct scheduler *s);
/* Ends rows of groups that the schema does not allow; returns how many of the groups it does, which come first then.
 * reader_sweep.c */
size_t scheduler_end_misfits(struct scheduler *s, struct store_group *groups, size_t count);
/* Ends claims and results that are overdue: some rows of some of their groups, which take turns. reader_sweep.c */
void scheduler_overdue(struct scheduler *s);
/* After a claim whose answer was lost: rows in our name that are not in flight go back unsent. reader_sweep.c */
void scheduler_take_back(struct scheduler *s, const struct shard_lease *leases, size_t count);
void scheduler_look_soon(struct scheduler *s);       /* scheduler.c */
void scheduler_run_commands(struct scheduler *s);    /* scheduler_ask.c */
void scheduler_refuse_commands(struct scheduler *s); /* scheduler_ask.c */
/* Notes success or failure of a store call; false = trouble, and the tick ends. */
bool scheduler_db_ok(struct scheduler *s, enum store_status status, const struct err *err);

#endif
