/* SPDX-License-Identifier: MIT */
#include "core/driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/leave.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/lane.h"
#include "core/realtime.h"

enum {
  SUBMIT_BATCH = 256,
  FULL_POLL_MS = 10,
  IDLE_POLL_MS = 1000,
  JOIN_GRACE_MS = 1000, /* for what a thread does beside its plugin's stop() */
  CLAIM_GAP_MAX_US = 1000 * 1000,
  ROOM_WAIT_US = 50 * 1000,
  TAKEN_SAID_US = 30 * 1000 * 1000 /* who has begun to read, or has ended, is seen by then */
};

static void still_alive(struct driver *driver) {
  atomic_store_explicit(&driver->alive_us, clock_mono_us(), memory_order_relaxed);
}

/* A flight that the plugin never saw goes back to the settler: unsent, or expired. */
static void give_back(struct driver *driver, struct flight *flight, enum flight_end end) {
  if (!flight_complete(driver->env.flights, flight_token(flight)))
    return; /* the driver was abandoned meanwhile: the flight is somebody else's */
  flight->end = end;
  flight->completed_us = clock_mono_us();
  flight_list_add(&driver->done, flight);
}

/* Whether a flight may still be sent: our lease stands, and a claim that is only in memory is fresh. An operator's
 * plain UPDATE or DELETE counts up to the moment of reading; this bounds how much later the task may leave. */
static bool may_send(const struct driver *driver, const struct flight *flight, struct instant now) {
  if (!leases_safe(driver->env.leases, flight->task->shard, flight->epoch, now))
    return false;
  int64_t gap = now.mono_us - flight->read_us;
  if (flight->task->recorded) /* after its own lease somebody else may have taken it */
    return gap < later((int64_t)flight->task->view.timeout_ms, flight->lease_ms) * 1000;
  return gap <= CLAIM_GAP_MAX_US;
}

enum verdict { SEND, WAIT, GIVE_BACK, EXPIRE };

/* A lane whose stall was asked about, since asking costs some steps. */
struct asked_lane {
  const struct lane *lane;
  bool stalled;
};

static bool is_stalled(struct asked_lane *asked, const struct lane *lane, int64_t now) {
  if (asked->lane != lane)
    *asked = (struct asked_lane){lane, stall_is_now(&lane->stall, now)};
  return asked->stalled;
}

/* Whether a flight may go to the sink now. What waits longer than reading ahead is meant to last, for room there or
 * until the sink confirms again, goes back, as all does where the lane is closed: plain SQL must be able to change it.
 * Not at once, for on a busy machine confirms may be there that nobody has had the time to take. A recorded claim says
 * in the table what it is, and waits as long as it may be sent: given back, it would cost an attempt's number. Not so a
 * bound one: another of our name sees its lease_until, and would take it back from under a call that began late. */
static enum verdict judge(const struct driver *driver, const struct flight *flight, struct asked_lane *asked,
                          struct instant now) {
  const struct lane *lane = flight->lane;
  if (flight->task->expires_us && now.mono_us >= flight->expires_mono_us)
    return EXPIRE;
  unsigned most = atomic_load_explicit(&lane->at_sink_max, memory_order_relaxed);
  bool waits = atomic_load_explicit(&lane->at_sink, memory_order_relaxed) >= most ||
               atomic_load_explicit(&driver->at_sink, memory_order_relaxed) >= driver->max_inflight ||
               (!flight->task->recorded && is_stalled(asked, lane, now.mono_us));
  bool patient =
      (flight->task->recorded && flight->task->shard != SHARD_BOUND) || now.mono_us - flight->handed_us <= ROOM_WAIT_US;
  if (!may_send(driver, flight, now) || (waits && (most == 0 || !patient)))
    return GIVE_BACK;
  return waits ? WAIT : SEND;
}

static void give_to_sink(struct driver *driver, struct flight *flight, int64_t now) {
  flight->handed_us = now;
  if (flight->times_sink)
    flight->stall_slot = stall_handed_over(&flight->lane->stall, now);
  flight->ahead = 1 + atomic_fetch_add_explicit(&flight->lane->at_sink, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&driver->at_sink, 1, memory_order_relaxed);
  recall_given(&driver->recall, flight->task->shard, flight->epoch);
  atomic_store_explicit(&flight->submitted, true, memory_order_release);
}

void driver_left(struct flight *flight, bool confirmed) {
  if (!atomic_load_explicit(&flight->submitted, memory_order_acquire))
    return; /* its plugin never had it */
  if (flight->times_sink)
    (confirmed ? stall_confirmed : stall_withdrawn)(&flight->lane->stall, flight->stall_slot);
  atomic_fetch_sub_explicit(&flight->lane->at_sink, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&flight->driver->at_sink, 1, memory_order_relaxed);
  recall_left(&flight->driver->recall, flight->task->shard);
}

/* Detaches up to SUBMIT_BATCH pending flights that may be sent now. A flight that is given to the sink may be completed
 * and used again at any time: it must be in no list of ours by then, and only its view may be looked at, which stays as
 * long as the plugin may have it. */
static size_t take_submittable(struct driver *driver, const struct duebox_task *views[SUBMIT_BATCH],
                               struct lane *lanes[SUBMIT_BATCH]) {
  struct flight_list waiting = {0};
  struct flight *flight;
  struct asked_lane asked = {0};
  struct instant now = clock_instant();
  size_t n = 0;
  while (n < SUBMIT_BATCH && (flight = flight_list_pop(&driver->pending))) {
    switch (judge(driver, flight, &asked, now)) {
    case SEND:
      lanes[n] = flight->lane;
      views[n++] = &flight->task->view;
      give_to_sink(driver, flight, now.mono_us);
      break;
    case WAIT:
      flight_list_add(&waiting, flight);
      break;
    case GIVE_BACK:
      give_back(driver, flight, FLIGHT_UNSENT);
      break;
    case EXPIRE:
      give_back(driver, flight, FLIGHT_EXPIRED);
      break;
    }
  }
  flight_list_join(&waiting, &driver->pending);
  driver->pending = waiting;
  return n;
}

/* Goes into the plugin; coming back tells whether the driver still counts. */
static void enter_plugin(struct driver *driver) { mutex_unlock(&driver->own); }
static bool leave_plugin(struct driver *driver) {
  mutex_lock(&driver->own);
  return !driver->abandoned;
}

static void flush_done(struct driver *driver) { mailbox_put(driver->env.settler, &driver->done); }

/* What the plugin did not take is offered again, under another token: one that it completes nevertheless, before or
 * later, harms nothing. */
static void put_back(struct driver *driver, const struct duebox_task **views, size_t n) {
  struct flight_list rest = {0};
  for (size_t i = 0; i < n; i++) {
    struct flight *flight = flight_complete(driver->env.flights, views[i]->token);
    if (!flight)
      continue;
    driver_left(flight, false);
    atomic_store_explicit(&flight->submitted, false, memory_order_relaxed);
    flight->task->view.token = flight_open(flight);
    flight_list_add(&rest, flight);
  }
  flight_list_join(&rest, &driver->pending);
  driver->pending = rest;
}

/* What the lanes of `n` offered tasks learn of their sink, which took the first of them. */
static void follow_offer(const struct driver *driver, struct lane *const *lanes, size_t taken, size_t n, int64_t now) {
  bool has_none = atomic_load_explicit(&driver->at_sink, memory_order_relaxed) == 0;
  for (size_t i = 0; i < taken; i++)
    if (i == 0 || lanes[i] != lanes[i - 1])
      stall_taken(&lanes[i]->stall);
  for (size_t i = 0; i < n && taken == 0 && has_none; i++)
    if (i == 0 || lanes[i] != lanes[i - 1])
      stall_refused(&lanes[i]->stall, now);
}

static bool submit_pending(struct driver *driver) {
  const struct duebox_task *views[SUBMIT_BATCH];
  struct lane *lanes[SUBMIT_BATCH]; /* of the views; a task that was taken may be gone by then */
  for (size_t n; (n = take_submittable(driver, views, lanes)) > 0;) {
    enter_plugin(driver);
    size_t taken = driver->module->sink->submit(driver->inst, views, n);
    if (!leave_plugin(driver))
      return false;
    taken = taken < n ? taken : n; /* whatever a plugin says */
    if (taken < n)
      put_back(driver, views + taken, n - taken);
    follow_offer(driver, lanes, taken, n, clock_mono_us());
    if (taken < n)
      break;
  }
  flush_done(driver);
  return true;
}

static void deliver_acks(struct driver *driver) {
  if (driver->role != DUEBOX_ROLE_SOURCE)
    return;
  mutex_lock(&driver->ack_lock);
  struct ack *acks = driver->acks;
  size_t count = driver->ack_count;
  driver->acks = NULL;
  driver->ack_count = driver->ack_cap = 0;
  mutex_unlock(&driver->ack_lock);
  for (size_t i = 0; i < count; i++)
    driver->module->source->ack(driver->inst, acks[i].cookie, acks[i].committed);
  free(acks);
  if (atomic_load(&driver->wants_resume) && !driver->yielded && inbox_has_room(driver->env.inbox, driver)) {
    atomic_store(&driver->wants_resume, false);
    driver->module->source->resume(driver->inst);
  }
}

/* Results that cannot be written for long are given back: another daemon may be able to. Driver thread, inside the
 * plugin. */
static void yield_or_resume(struct driver *driver) {
  const struct duebox_source_ops *ops = driver->module->source;
  bool stuck = inbox_is_stuck(driver->env.inbox, clock_mono_us());
  if (stuck == driver->yielded || ops->struct_size <= offsetof(struct duebox_source_ops, yield) || !ops->yield)
    return;
  driver->yielded = stuck;
  if (!stuck) {
    log_info("DUEBOX-RESULTS-RESUMED", "instance=%s results are read again", driver->name);
    atomic_store(&driver->wants_resume, false);
    ops->resume(driver->inst);
    return;
  }
  log_warn("DUEBOX-RESULTS-YIELDED",
           "instance=%s results cannot be written for long: those that were read go back, for another daemon to read, "
           "and nothing is read here until they can",
           driver->name);
  atomic_fetch_add(&driver->yields, 1);
  ops->yield(driver->inst);
}

static bool can_recall(const struct driver *driver) {
  const struct duebox_sink_ops *ops = driver->module->sink;
  return driver->role == DUEBOX_ROLE_SINK && ops->struct_size > offsetof(struct duebox_sink_ops, recall) && ops->recall;
}

/* Takes back what the plugin has not begun to send, where a lease of it is not ours any more, or not certainly. What
 * comes back of other shards is handed over again. false: abandoned meanwhile. */
static bool recall_lost(struct driver *driver) {
  uint8_t shard;
  int64_t rest_us;
  if (!can_recall(driver) || !recall_due(&driver->recall, driver->env.leases, clock_instant(), &shard, &rest_us))
    return true;
  recall_asked(&driver->recall);
  log_warn("DUEBOX-RECALLED",
           "instance=%s shard=%u its lease is lost or not certain any more: what the plugin has not begun to send is "
           "taken back",
           driver->name, shard);
  enter_plugin(driver);
  driver->module->sink->recall(driver->inst);
  return leave_plugin(driver);
}

/* For how long the plugin may be left alone: at most so long. */
static int poll_ms(struct driver *driver, int most_ms) {
  uint8_t shard;
  int64_t rest_us;
  if (!can_recall(driver))
    return most_ms;
  if (recall_due(&driver->recall, driver->env.leases, clock_instant(), &shard, &rest_us))
    return 0;
  return rest_us < (int64_t)most_ms * 1000 ? (int)(rest_us / 1000) + 1 : most_ms;
}

/* One turn: what came in goes to the plugin, what the plugin reported goes out. false: abandoned meanwhile. */
static bool turn(struct driver *driver) {
  mailbox_take(&driver->in, 0, &driver->pending);
  if (driver->role == DUEBOX_ROLE_SINK && (!recall_lost(driver) || !submit_pending(driver)))
    return false;
  int timeout_ms = poll_ms(driver, driver->pending.head ? FULL_POLL_MS : IDLE_POLL_MS);
  enter_plugin(driver);
  deliver_acks(driver);
  if (driver->role == DUEBOX_ROLE_SOURCE)
    yield_or_resume(driver);
  driver->module->poll(driver->inst, timeout_ms);
  if (!leave_plugin(driver))
    return false;
  flush_done(driver);
  still_alive(driver);
  return true;
}

static void end_instance(struct driver *driver) {
  mailbox_take(&driver->in, 0, &driver->pending);
  struct flight *flight;
  while ((flight = flight_list_pop(&driver->pending)))
    give_back(driver, flight, FLIGHT_UNSENT);
  if (!recall_lost(driver))
    return;
  enter_plugin(driver);
  deliver_acks(driver);
  driver->module->stop(driver->inst, atomic_load(&driver->stop_ms));
  deliver_acks(driver);
  if (leave_plugin(driver))
    flush_done(driver);
}

static void tell_birth(struct driver *driver, enum driver_birth birth, const char *error) {
  mutex_lock(&driver->own);
  if (driver->birth == DRIVER_COMING) {
    driver->birth = birth;
    snprintf(driver->birth_error.text, sizeof driver->birth_error.text, "%s", error);
    cond_broadcast(&driver->born);
  }
  mutex_unlock(&driver->own);
}

static void mark_ended(void *arg) {
  struct driver *driver = arg;
  tell_birth(driver, DRIVER_FAILED, "its plugin ended the thread");
  atomic_store(&driver->ended, true);
}

static void work(struct driver *driver) {
  bool closed = false, counts = true;
  mutex_lock(&driver->own);
  while (counts && atomic_load(&driver->stop_ms) == 0) {
    if (atomic_load(&driver->closing) && !closed) {
      enter_plugin(driver);
      driver->module->close(driver->inst);
      closed = true;
      counts = leave_plugin(driver);
    }
    counts = counts && turn(driver);
  }
  if (counts)
    end_instance(driver);
  mutex_unlock(&driver->own);
}

/* create() runs here, so that a plugin which blocks in it holds up nobody else. False: nothing to start. */
static bool create_instance(struct driver *driver) {
  struct duebox_error err = {{0}};
  bool made = driver->module->create(driver->inst, &driver->instance, &driver->host, &err);
  still_alive(driver);
  host_hide(driver, NULL, err.text);
  tell_birth(driver, made ? DRIVER_BORN : DRIVER_FAILED, err.text);
  mutex_lock(&driver->own);
  bool wanted = made && !driver->abandoned;
  mutex_unlock(&driver->own);
  return wanted;
}

static void start_and_work(struct driver *driver) {
  struct duebox_error err = {{0}};
  if (driver->module->start(driver->inst, &err)) {
    work(driver);
  } else {
    host_hide(driver, NULL, err.text);
    log_error("DUEBOX-PLUGIN-START", "instance=%s cannot start: %s", driver->name, err.text);
    host_set_health(driver, false, err.text);
  }
}

static void drive(void *arg) {
  struct driver *driver = arg;
  realtime_thread(driver->realtime, driver->name);
  if (create_instance(driver))
    start_and_work(driver);
}

static void init_locks(struct driver *driver) {
  mutex_init(&driver->own);
  mutex_init(&driver->ack_lock);
  mutex_init(&driver->health_lock);
  cond_init(&driver->born);
}

struct driver *driver_start(const struct config *config, const struct plugin_config *plugin,
                            const struct source_config *source, const struct driver_env *env, struct err *err) {
  struct driver *driver = calloc(1, sizeof *driver);
  size_t size = plugin->module->instance_size ? plugin->module->instance_size : 1;
  if (!driver || !(driver->inst = calloc(1, size))) {
    free(driver);
    err_set(err, 0, "out of memory for plugin instance %s", plugin->name);
    return NULL;
  }
  driver->name = source ? source->name : plugin->name;
  driver->module = plugin->module;
  driver->role = source ? DUEBOX_ROLE_SOURCE : DUEBOX_ROLE_SINK;
  driver->env = *env;
  driver->capacity = plugin->capacity ? plugin->capacity : plugin->max_inflight;
  driver->max_inflight = plugin->max_inflight;
  driver->realtime = config->engine.realtime;
  driver->host = host_table(driver);
  driver->instance = (struct duebox_instance_config){
      .struct_size = sizeof driver->instance,
      .role = driver->role,
      .name = driver->name,
      .options = plugin->options,
      .source = source ? source->options : NULL,
      .max_payload = config->engine.max_payload,
      .max_record = config->engine.max_record,
      .max_inflight = driver->capacity,
      .outbox = config->database.outbox,
  };
  mailbox_init(&driver->in);
  init_locks(driver);
  snprintf(driver->health, sizeof driver->health, PLUGIN_UNHEARD);
  still_alive(driver);
  driver->thread.ended = mark_ended; /* a plugin that ends its thread by itself is noticed like one that hangs */
  if (thread_start(&driver->thread, driver->name, drive, driver)) {
    driver->started = true;
    return driver;
  }
  err_set(err, 0, "no thread for plugin instance %s: the process limit is reached", driver->name);
  driver->destroyed = true; /* there is nothing to destroy */
  driver_free(&driver);
  return NULL;
}

enum driver_birth driver_born(struct driver *driver, int wait_ms, struct err *err) {
  int64_t deadline = clock_mono_us() + (int64_t)wait_ms * 1000;
  mutex_lock(&driver->own);
  while (driver->birth == DRIVER_COMING && cond_wait_until(&driver->born, &driver->own, deadline))
    ;
  enum driver_birth birth = driver->birth;
  if (birth == DRIVER_FAILED)
    err_set(err, 0, "plugin instance %s cannot be made: %s", driver->name, driver->birth_error.text);
  mutex_unlock(&driver->own);
  return birth;
}

bool driver_give_up(struct driver **driver) {
  atomic_store(&(*driver)->stop_ms, 1); /* no wakeup(): the instance may not be there yet */
  bool ended = driver_join(*driver, IDLE_POLL_MS);
  driver_free(driver);
  return ended;
}

void driver_limit(struct driver *driver, uint32_t max_inflight) {
  atomic_store_explicit(&driver->max_inflight, max_inflight < driver->capacity ? max_inflight : driver->capacity,
                        memory_order_relaxed);
}

void driver_push(struct driver *driver, struct flight_list *list) {
  mailbox_put(&driver->in, list);
  driver->module->wakeup(driver->inst);
}

void driver_ack(struct driver *driver, uint64_t cookie, bool committed) {
  mutex_lock(&driver->ack_lock);
  if (driver->ack_count == driver->ack_cap) {
    size_t cap = driver->ack_cap ? driver->ack_cap * 2 : 64;
    struct ack *bigger = realloc(driver->acks, cap * sizeof *bigger);
    if (bigger) {
      driver->acks = bigger;
      driver->ack_cap = cap;
    }
  }
  if (driver->ack_count < driver->ack_cap)
    driver->acks[driver->ack_count++] = (struct ack){cookie, committed};
  else /* a record that is never acknowledged comes again after a reconnect: a duplicate, which is a no-op */
    log_error("DUEBOX-ACK-MEMORY", "instance=%s out of memory for an acknowledgement", driver->name);
  mutex_unlock(&driver->ack_lock);
  driver->module->wakeup(driver->inst);
}

void driver_resume(struct driver *driver) {
  if (atomic_load(&driver->wants_resume))
    driver->module->wakeup(driver->inst);
}

void driver_close(struct driver *driver) {
  atomic_store(&driver->closing, true);
  driver->module->wakeup(driver->inst);
}

void driver_stop(struct driver *driver, int timeout_ms) {
  atomic_store(&driver->stop_ms, timeout_ms > 0 ? timeout_ms : 1);
  driver->module->wakeup(driver->inst);
}

bool driver_stuck(const struct driver *d, int64_t limit_us) {
  if (atomic_load(&d->stop_ms) != 0)
    return false;
  /* An idle one gives its sign of life when its poll ends, which is no earlier: that much silence says nothing. */
  return atomic_load(&d->ended) || clock_mono_us() - atomic_load(&d->alive_us) > limit_us + IDLE_POLL_MS * 1000;
}

bool driver_hangs(const struct driver *driver, int64_t limit_us, int64_t now_us, int64_t *silent_us) {
  if (!driver_stuck(driver, limit_us))
    *silent_us = 0;
  else if (*silent_us == 0)
    *silent_us = now_us;
  return *silent_us && now_us - *silent_us >= DRIVER_SILENT_US;
}

void driver_nudge(struct driver *driver) {
  if (driver_stuck(driver, 0) && !atomic_load(&driver->ended))
    driver->module->wakeup(driver->inst);
}

void driver_abandon(struct driver *driver, struct flight_list *unsent, struct flight_list *done) {
  struct flight_list waiting = {0};
  mutex_lock(&driver->own);
  driver->abandoned = true;
  mailbox_take(&driver->in, 0, &waiting);
  flight_list_join(&waiting, &driver->pending);
  flight_list_join(done, &driver->done);
  mutex_unlock(&driver->own);
  struct flight *flight;
  while ((flight = flight_list_pop(&waiting)))
    if (flight_complete(driver->env.flights, flight_token(flight))) {
      flight->end = FLIGHT_UNSENT;
      flight_list_add(unsent, flight);
    }
  leave_behind(driver); /* its thread may come back; nobody waits for it */
  thread_detach(&driver->thread);
  log_error("DUEBOX-DRIVER-ABANDONED", "instance=%s its plugin did not come back; the thread is left alone",
            driver->name);
}

bool driver_join(struct driver *driver, int timeout_ms) {
  if (driver->started) {
    if (!thread_join_within(&driver->thread, timeout_ms + JOIN_GRACE_MS)) {
      struct flight_list unsent = {0}, done = {0};
      driver_abandon(driver, &unsent, &done);
      flight_list_join(&done, &unsent);
      mailbox_put(driver->env.settler, &done);
      return false;
    }
  }
  driver->module->destroy(driver->inst);
  driver->destroyed = true;
  return true;
}

void driver_free(struct driver **handle) {
  struct driver *driver = *handle;
  *handle = NULL;
  if (!driver || !driver->destroyed)
    return;
  free(driver->inst);
  free(driver->acks);
  mailbox_destroy(&driver->in);
  cond_destroy(&driver->born);
  mutex_destroy(&driver->own);
  mutex_destroy(&driver->ack_lock);
  mutex_destroy(&driver->health_lock);
  free(driver);
}

bool driver_forgot(const struct driver *driver, int64_t handed_us, int64_t limit_us, int64_t now_us) {
  int64_t reaches_us = atomic_load_explicit(&driver->reaches_us, memory_order_relaxed);
  return now_us > later(handed_us, reaches_us) && now_us - later(handed_us, reaches_us) >= limit_us;
}

void driver_health(struct driver *driver, bool *up, char text[PLUGIN_TEXT]) {
  static const char taken[] = "no daemon of this outbox reads it: ";
  mutex_lock(&driver->health_lock);
  *up = driver->up;
  if (driver->taken_since_us)
    snprintf(text, PLUGIN_TEXT, "%s%.*s", taken, PLUGIN_TEXT - (int)sizeof taken, driver->health);
  else
    snprintf(text, PLUGIN_TEXT, "%s", driver->health);
  mutex_unlock(&driver->health_lock);
}

void driver_reading(struct driver *driver, bool *reads, bool *stands_by) {
  mutex_lock(&driver->health_lock);
  *stands_by = driver->stands_by;
  *reads = driver->up && !driver->stands_by;
  mutex_unlock(&driver->health_lock);
}

/* Whoever has begun to read is seen here a moment later. */
void driver_taken(struct driver *driver, bool taken) {
  int64_t now = clock_mono_us();
  mutex_lock(&driver->health_lock);
  if (!taken || !driver->stands_by)
    driver->taken_since_us = 0;
  else if (!driver->taken_since_us)
    driver->taken_since_us = now;
  bool says = driver->taken_since_us && now - driver->taken_since_us > TAKEN_SAID_US && !driver->taken_said;
  driver->taken_said = driver->taken_since_us && (driver->taken_said || says);
  mutex_unlock(&driver->health_lock);
  if (says)
    log_error(
        "DUEBOX-RESULTS-TAKEN",
        "instance=%s another consumer reads its results, and that is no living daemon of this outbox: answers are "
        "lost to it, or wait. End it; the broker names it (rabbitmqctl list_consumers)",
        driver->name);
}

int64_t driver_unread_us(struct driver *driver) {
  mutex_lock(&driver->health_lock);
  int64_t since = driver->unread_since_us ? driver->unread_since_us : driver->taken_since_us;
  mutex_unlock(&driver->health_lock);
  return since ? clock_mono_us() - since : 0;
}
