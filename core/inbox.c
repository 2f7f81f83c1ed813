/* SPDX-License-Identifier: MIT */
#include "core/inbox_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "core/aside.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_repeat.h"
#include "core/base/random.h"
#include "core/base/sync.h"
#include "core/config_ref.h"
#include "core/dead_log.h"
#include "core/driver.h"
#include "core/reduced.h"
#include "core/rules.h"

enum {
  RETRY_MIN_US = 20 * 1000,
  RETRY_MAX_US = 5 * 1000 * 1000,
  LATE_SAID_US = 5 * 1000 * 1000, /* for how long a record waits for its turn before it is logged */
  STUCK_US = 15 * 1000 * 1000,    /* for how long a batch is tried before results are given back, the first time */
  STUCK_TIMES = 16,               /* how often that is doubled: ten days */
};

int64_t inbox_delay_us(struct inbox *inbox, int64_t now_us) {
  mutex_lock(&inbox->lock);
  int64_t behind = inbox_queues_behind(&inbox->queues, now_us, &(const char *){NULL});
  mutex_unlock(&inbox->lock);
  const int64_t since[] = {gauge_value(&inbox->writing_since_us), gauge_value(&inbox->waiting_since_us), behind};
  int64_t most = 0;
  for (size_t i = 0; i < sizeof since / sizeof *since; i++)
    if (since[i] && now_us - since[i] > most)
      most = now_us - since[i];
  return most;
}

bool inbox_is_stuck(const struct inbox *inbox, int64_t now_us) {
  int64_t since_us = gauge_value(&inbox->writing_since_us), times = gauge_value(&inbox->given_back);
  return since_us && now_us - since_us > (int64_t)STUCK_US << earlier(times, STUCK_TIMES);
}

bool inbox_has_room(struct inbox *inbox, const struct driver *driver) {
  mutex_lock(&inbox->lock);
  bool room = inbox_queues_has_room(&inbox->queues, driver->name);
  mutex_unlock(&inbox->lock);
  return room;
}

/* Under the lock. */
bool inbox_put(struct inbox *inbox, struct item *item) {
  if (inbox->stopping)
    return false;
  item->entry.since_us = clock_mono_us();
  size_t bytes = item->result.body.len;
  bool room = item->driver ? inbox_queues_put(&inbox->queues, item->driver->name, &item->entry, bytes)
                           : inbox_queues_put_asked(&inbox->queues, item->lane, &item->entry, bytes);
  if (room)
    cond_signal(&inbox->filled);
  return room;
}

bool inbox_offer(struct inbox *inbox, struct driver *driver, const struct duebox_record *record, uint64_t cookie) {
  struct item *item = inbox_new_item(driver->name, record->origin, record->body.data, record->body.len);
  if (!item)
    return false;
  item->driver = driver;
  item->cookie = cookie;
  item->yields = atomic_load(&driver->yields);
  if (record->struct_size > offsetof(struct duebox_record, correlation_id))
    inbox_set_road(item, &(struct record_road){.message_id = record->correlation_id});
  /* By its place the quarantine tells a record from others with the same body, so that names the task, too, if it
   * stands beside the record only. */
  if (item->road.message_id)
    result_origin_write(item->origin, record->origin ? record->origin : "", item->road.message_id);
  item->road.entry = item->source;
  item->truncated = record->truncated;
  item->full_len = record->full_len;
  mutex_lock(&inbox->lock);
  bool taken = inbox_put(inbox, item);
  mutex_unlock(&inbox->lock);
  if (!taken)
    inbox_free_item(item);
  return taken;
}

/* Tells whoever waits, acknowledges to the source, frees. */
void inbox_finish(struct inbox *inbox, struct item *item, bool committed) {
  mutex_lock(&inbox->lock);
  if (!item->aside.route)
    inbox_queues_release(&item->entry);
  if (item->waiter)
    inbox_answer(inbox, item, committed);
  mutex_unlock(&inbox->lock);
  if (item->driver) {
    driver_ack(item->driver, item->cookie, committed);
    driver_resume(item->driver);
  }
  inbox_free_item(item);
}

static void parse(struct inbox *inbox, struct item *item) {
  struct err err = {0};
  item->road.checkpoint_max = inbox->checkpoint_max;
  item->road.full_len = item->truncated ? item->full_len : 0;
  if (!result_record_parse(item->body, item->result.body.len, &item->road, &item->result.record, &err))
    snprintf(item->why, sizeof item->why, "%.290s", err.text);
  item->result.broken = *item->why ? item->why : NULL;
  item->result.record.cannot_wait = atomic_load(&inbox->on_hold);
  item->result.record.is_awaited = !item->driver;
}

/* The database may have been away: that has a line of its own. */
void inbox_note_late(struct inbox *inbox, const char *source, int64_t since_us, int64_t now_us) {
  if (since_us < inbox->trouble_us)
    since_us = inbox->trouble_us;
  if (now_us - since_us > LATE_SAID_US)
    log_repeated(&inbox->late, LOG_LEVEL_WARN, "DUEBOX-RESULTS-LATE",
                 "for more than %d s more results have come than can be written, source=%s: they wait, also where they "
                 "come from, and a task whose answer waits for longer than its timeout is sent again",
                 LATE_SAID_US / 1000000, source);
}

/* Waits for records, and collects them. False: the inbox stops, or it is time for some that were put aside. */
static bool wait_for_records(struct inbox *inbox, enum inbox_batch *kind) {
  struct inbox_queues *queues = &inbox->queues;
  mutex_lock(&inbox->lock);
  for (;;) {
    bool waiting = queues->arrived + queues->waiting > 0;
    *kind = inbox->stopping ? BATCH_NEW : inbox_aside_due(inbox, waiting);
    if (inbox->stopping || waiting || *kind != BATCH_NEW)
      break;
    int64_t at_us = inbox_aside_at(inbox);
    if (at_us == INT64_MAX)
      cond_wait(&inbox->filled, &inbox->lock);
    else
      (void)cond_wait_until(&inbox->filled, &inbox->lock, at_us);
  }
  bool any = !inbox->stopping && *kind == BATCH_NEW;
  if (any)
    inbox_queues_collect(queues);
  const char *source;
  int64_t now_us = clock_mono_us(), behind_us = inbox_queues_behind(queues, now_us, &source);
  mutex_unlock(&inbox->lock);
  if (behind_us)
    inbox_note_late(inbox, source, behind_us, now_us);
  return any;
}

static void read_limits(struct inbox *inbox) {
  struct config_ref *ref = inbox->env.config(inbox->env.engine);
  inbox->checkpoint_max = (size_t)ref->config->engine.max_checkpoint;
  config_ref_drop(ref);
}

/* Whether its source has given it back since. */
static bool is_given_back(const struct item *item) {
  return item->driver && item->yields != atomic_load(&item->driver->yields);
}

/* A result of a task that has one aside goes there, behind it, or stays where it is until there is room: then those
 * after it do too, since some are of its task. So does one that has found no room already. True: it is one of the
 * batch. */
static bool take_record(struct inbox *inbox, struct item *item, int64_t now_us) {
  const char *task = item->result.record.message_id;
  if (is_given_back(item)) {
    inbox_queues_take(&inbox->queues, &item->entry);
    inbox_finish(inbox, item, false);
    return false;
  }
  if (!item->result.broken && !*task)
    parse(inbox, item);
  struct aside_entry *first = item->result.broken ? NULL : aside_find(&inbox->aside, task);
  const struct store_result *like = first ? &inbox_item_of(first)->result : item->result.left ? &item->result : NULL;
  if (like && item->driver && ((first && inbox->crowded) || inbox_waits_for_room(inbox, item, like))) {
    inbox->crowded = true;
    return false;
  }
  inbox_queues_take(&inbox->queues, &item->entry);
  inbox_note_late(inbox, item->source, item->entry.since_us, now_us);
  return !first || !inbox_put_aside(inbox, item, first);
}

static struct item *item_in(struct inbox_entry *entry) {
  return (struct item *)(void *)((char *)entry - offsetof(struct item, entry));
}

static bool stopping(struct inbox *inbox) {
  mutex_lock(&inbox->lock);
  bool yes = inbox->stopping;
  mutex_unlock(&inbox->lock);
  return yes;
}

/* Waits, unless the inbox stops. */
static void rest(struct inbox *inbox, int64_t us) {
  int64_t deadline = clock_mono_us() + us;
  mutex_lock(&inbox->lock);
  while (!inbox->stopping && clock_mono_us() < deadline)
    (void)cond_wait_until(&inbox->filled, &inbox->lock, deadline);
  mutex_unlock(&inbox->lock);
}

/* What found no room aside is not tried again at once, but what makes room there may have its turn. */
static void rest_where_crowded(struct inbox *inbox) {
  int64_t us = inbox_aside_at(inbox) - clock_mono_us();
  if (inbox->crowded && us > 0)
    rest(inbox, us < RETRY_MIN_US ? us : RETRY_MIN_US);
  inbox->crowded = false;
}

/* The next records, of each source in turn, or some that were put aside. Waits for the first. 0 = the inbox stops. */
static size_t take_batch(struct inbox *inbox, struct item *items[INBOX_BATCH_MAX], enum inbox_batch *kind) {
  size_t n = 0;
  read_limits(inbox);
  while (n == 0) {
    struct inbox_entry *entry;
    if (!wait_for_records(inbox, kind))
      return *kind == BATCH_NEW ? 0 : inbox_take_again(inbox, *kind, items);
    int64_t now_us = clock_mono_us();
    while (n < INBOX_BATCH_MAX && (entry = inbox_queues_next(&inbox->queues)))
      if (take_record(inbox, item_in(entry), now_us))
        items[n++] = item_in(entry);
    set_gauge(&inbox->waiting_since_us, inbox_queues_oldest(&inbox->queues));
    inbox->others = inbox->others && n > 0;
    inbox->was_apart = false;
    if (n == 0)
      rest_where_crowded(inbox);
  }
  return n;
}

static void measure(struct inbox *inbox, const struct store_result *result) {
  struct route_metrics *metrics = result->route[0] ? inbox->env.route_metrics(inbox->env.engine, result->route) : NULL;
  if (!metrics) {
    count(&inbox->env.metrics->results_unrouted, 1);
    return;
  }
  count(&metrics->results[result->fate], 1);
  if (result->fate == RESULT_APPLIED)
    count(result->changed ? &metrics->changed : &metrics->events[result->event], 1);
  if (result->fate == RESULT_APPLIED && result->form)
    reduced_note(&inbox->trouble, inbox->env.metrics, result->route, result->record.message_id, result->form,
                 result->refusal);
}

/* Which of them the store has put into quarantine; QUARANTINED_KINDS: not this one. */
static enum quarantine_kind quarantined_as(const struct store_result *result) {
  if (result->replayed || (result->replied && !result->contradicts))
    return QUARANTINED_KINDS;
  return result->form == DECISION_FORMS                          ? QUARANTINED_REFUSED
         : result->fate == RESULT_BROKEN                         ? QUARANTINED_BROKEN
         : result->fate == RESULT_MISROUTED                      ? QUARANTINED_MISROUTED
         : result->fate == RESULT_ORPHAN                         ? QUARANTINED_ORPHAN
         : result->fate == RESULT_APPLIED && result->record.flaw ? QUARANTINED_FLAWED
         : result->contradicts                                   ? QUARANTINED_CONTRADICTION
                                                                 : QUARANTINED_KINDS;
}

/* One line per kind and source, and seldom again: what each is about is in the quarantine. */
static void tell_stray(struct inbox *inbox, const struct store_result *result) {
  static const char *const texts[QUARANTINED_KINDS] = {
      [QUARANTINED_BROKEN] = "no status and task can be made out",
      [QUARANTINED_ORPHAN] = "there is no such task, or no such attempt of it",
      [QUARANTINED_MISROUTED] = "the route of its task does not answer there, see `routes` in docs/CONFIGURATION",
      [QUARANTINED_FLAWED] = "its status counts, but something else in it is wrong",
      [QUARANTINED_CONTRADICTION] = "its task took the opposite for a fact",
      [QUARANTINED_REFUSED] = "the server refuses what it would write, in every form"};
  enum quarantine_kind kind = quarantined_as(result);
  if (kind < QUARANTINED_KINDS) {
    count(&inbox->env.metrics->results_quarantined[kind], 1);
    log_repeated(&inbox->strays, LOG_LEVEL_WARN, "DUEBOX-RESULT-QUARANTINE",
                 "a result record was put into quarantine source=%s: %s; see `duebox quarantine list`", result->source,
                 texts[kind]);
  }
  if (result->capped)
    log_repeated(&inbox->strays, LOG_LEVEL_WARN, "DUEBOX-RESULT-CAPPED",
                 "a consumer asked for more time than it may, and has the most that is allowed route=%s: see "
                 "retry_in_ms and extend_ms in docs/CONSUMERS",
                 result->route);
}

static bool any_given_back(struct item *const *items, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (is_given_back(items[i]))
      return true;
  return false;
}

/* Whether the database answers. Where results are given back before it does, whoever gave them comes with them again
 * and again, and brokers count that. */
static bool answers(struct inbox *inbox, struct store_session *ss) {
  int64_t now_us;
  struct err err = {0};
  return inbox->env.store->ops->now(ss, &now_us, &err) == STORE_OK;
}

/* Applies a batch; true when committed. Tries until it is, or the inbox stops, or, when some of it was given back,
 * until the database answers. */
static bool apply(struct inbox *inbox, struct store_session *ss, struct item *const *items,
                  struct store_result *results, size_t n) {
  int64_t wait_us = RETRY_MIN_US;
  for (;;) {
    struct err err = {0};
    struct config_ref *ref = inbox->env.config(inbox->env.engine);
    struct rules_context context = {
        .config = ref->config, .now_us = inbox->env.db_now_us(inbox->env.engine), .random = random_u64()};
    enum store_status status = inbox->env.store->ops->settle_results(ss, results, n, rules_result, &context, &err);
    config_ref_drop(ref);
    if (status == STORE_OK)
      return true;
    inbox->trouble_us = clock_mono_us();
    count(&inbox->env.metrics->db_errors, 1);
    log_repeated(&inbox->trouble, LOG_LEVEL_WARN, "DUEBOX-RESULTS-WAIT", "results=%zu cannot be stored yet: %s", n,
                 err.text);
    rest(inbox, wait_us);
    if (stopping(inbox) || (any_given_back(items, n) && answers(inbox, ss)))
      return false;
    wait_us = wait_us * 2 < RETRY_MAX_US ? wait_us * 2 : RETRY_MAX_US;
  }
}

/* What becomes of a batch that was committed. True: a retry may be due soon. */
static bool finish_batch(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n) {
  bool retry = false;
  for (size_t i = 0; i < n; i++) {
    if (results[i].fate == RESULT_BUSY)
      continue;
    measure(inbox, &results[i]);
    tell_stray(inbox, &results[i]);
    if (results[i].fate == RESULT_APPLIED && results[i].event == EVENT_DEAD)
      dead_log_write(&inbox->dead, results[i].route, results[i].record.message_id, results[i].record.attempt,
                     results[i].record.error_class);
    retry = retry || (results[i].fate == RESULT_APPLIED && results[i].event == EVENT_RETRY);
    inbox_finish(inbox, items[i], true);
  }
  return retry;
}

/* Leaves what was given back out of a batch, or all of it where the inbox stops: those aside are finished with the
 * inbox. Returns how many are left. */
static size_t leave_out(struct inbox *inbox, struct item **items, size_t n) {
  const bool all = stopping(inbox);
  size_t left = 0;
  for (size_t i = 0; i < n; i++)
    if (items[i]->result.fate == RESULT_BUSY ? all : !all && !is_given_back(items[i]))
      items[left++] = items[i];
    else if (items[i]->result.fate != RESULT_BUSY)
      inbox_finish(inbox, items[i], false);
  return all ? 0 : left;
}

/* Applies a batch, and then what of it was busy and found no room aside, which is broken by now. */
static void apply_batch(struct inbox *inbox, struct store_session *ss, struct item **items,
                        struct store_result *results, size_t n, enum inbox_batch kind) {
  while (n > 0) {
    struct item *refused[INBOX_BATCH_MAX];
    size_t refused_count;
    for (size_t i = 0; i < n; i++) {
      results[i] = items[i]->result;
      results[i].apart = results[i].apart || kind == BATCH_APART;
    }
    int64_t began_us = clock_mono_us();
    set_gauge(&inbox->writing_since_us, began_us);
    bool applied = apply(inbox, ss, items, results, n);
    set_gauge(&inbox->given_back, applied ? 0 : gauge_value(&inbox->given_back) + 1);
    set_gauge(&inbox->writing_since_us, 0);
    if (!applied) {
      n = leave_out(inbox, items, n);
      continue;
    }
    inbox_turn_over(inbox, kind, results, n, began_us);
    inbox_sort_busy(inbox, items, results, n, refused, &refused_count);
    if (finish_batch(inbox, items, results, n))
      inbox->env.rows_changed(inbox->env.engine);
    for (size_t i = 0; i < refused_count; i++) {
      items[i] = refused[i];
      items[i]->result.fate = RESULT_APPLIED; /* none yet */
    }
    n = refused_count;
  }
}

static void work(struct inbox *inbox, struct store_session *ss) {
  struct item *items[INBOX_BATCH_MAX];
  struct store_result *results = calloc(INBOX_BATCH_MAX, sizeof *results);
  size_t n;
  enum inbox_batch kind;
  while (results && (n = take_batch(inbox, items, &kind)) > 0) {
    apply_batch(inbox, ss, items, results, n, kind);
    rest_where_crowded(inbox);
  }
  if (!results)
    log_error("DUEBOX-MEMORY", "no memory for result batches");
  free(results);
}

static void run(void *arg) {
  struct inbox *inbox = arg;
  struct store_session *ss = NULL;
  struct err err = {0};
  while (inbox->env.store->ops->open(inbox->env.store->self, "results", 0, &ss, &err) == STORE_REFUSED) {
    log_repeated(&inbox->trouble, LOG_LEVEL_ERROR, "DUEBOX-DB-REFUSED", "results: %s", err.text);
    thread_sleep(1000 * 1000);
    if (stopping(inbox))
      return;
  }
  work(inbox, ss);
  inbox->env.store->ops->close(&ss);
}

struct inbox *inbox_start(const struct inbox_env *env, struct err *err) {
  struct inbox *inbox = calloc(1, sizeof *inbox);
  if (!inbox) {
    err_set(err, 0, "out of memory for the result inbox");
    return NULL;
  }
  inbox->env = *env;
  mutex_init(&inbox->lock);
  cond_init(&inbox->filled);
  if (thread_start(&inbox->thread, "inbox", run, inbox))
    return inbox;
  err_set(err, 0, "no thread for results: the process limit is reached");
  free(inbox);
  return NULL;
}

void inbox_hold(struct inbox *inbox) { atomic_store(&inbox->on_hold, true); }

void inbox_close(struct inbox *inbox) {
  mutex_lock(&inbox->lock);
  inbox->stopping = true;
  cond_broadcast(&inbox->filled);
  mutex_unlock(&inbox->lock);
  thread_join(&inbox->thread);
  for (struct aside_entry *entry; (entry = aside_pop(&inbox->aside));)
    inbox_finish(inbox, inbox_item_of(entry), false);
  for (struct inbox_entry *entry; inbox->queues.arrived + inbox->queues.waiting > 0;) {
    inbox_queues_collect(&inbox->queues);
    while ((entry = inbox_queues_next(&inbox->queues))) {
      inbox_queues_take(&inbox->queues, entry);
      inbox_finish(inbox, item_in(entry), false);
    }
  }
}

void inbox_free(struct inbox **handle) {
  struct inbox *inbox = *handle;
  *handle = NULL;
  if (!inbox)
    return;
  inbox_queues_free(&inbox->queues);
  cond_destroy(&inbox->filled);
  mutex_destroy(&inbox->lock);
  free(inbox);
}
