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
  BATCH_MAX = 500,
  RETRY_MIN_US = 20 * 1000,
  RETRY_MAX_US = 5 * 1000 * 1000,
  BUSY_EVERY_US = 500 * 1000,       /* how often to look whether rows that others hold are free */
  HELD_SAID_US = 5 * 1000 * 1000,   /* for how long they are held before it is logged */
  LATE_SAID_US = 5 * 1000 * 1000,   /* for how long a record waits for its turn before it is logged */
  EARLY_EVERY_US = 10 * 1000,       /* how often, at first, whether it is recorded what was sent of a changed row ... */
  EARLY_QUICK = 50,                 /* ... and for how many times: mostly that takes milliseconds */
  EARLY_ROOM = ASIDE_PER_ROUTE / 2, /* so many wait; the others count as they come, where they may */
  EARLY_MAX_US = 120 * 1000 * 1000, /* later nobody is going to record it: whoever sent it is gone */
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
}

struct item *inbox_item_of(struct aside_entry *entry) {
  return (struct item *)(void *)((char *)entry - offsetof(struct item, aside));
}

/* It leaves the inbox proper, where it took the room of others. */
static void release_room(struct inbox *inbox, const struct item *item) {
  mutex_lock(&inbox->lock);
  inbox_queues_release(&item->entry);
  mutex_unlock(&inbox->lock);
  if (item->driver)
    driver_resume(item->driver);
}

/* Whether there is no room aside for a record of a source, which is to wait for some in its queue. route: of its task;
 * "" = it has none. */
static bool waits_for_room(struct inbox *inbox, const struct item *item, const char *route) {
  return item->driver && !item->result.unkept &&
         aside_is_to_wait(&inbox->aside, route, item->result.body.len, clock_mono_us(), inbox->env.patience_us);
}

/* It has its turn again, and its source waits when there are many. */
static void leave_queued(struct inbox *inbox, struct item *item) {
  item->result.fate = RESULT_APPLIED; /* none yet */
  inbox_queues_return(&inbox->queues, &item->entry);
  inbox->crowded = true;
}

/* Its row is somebody else's, or what was sent is not recorded yet. first: the result of its task that waits already,
 * or NULL. Where its route has too many such results it is not taken from somebody who waits, and will offer it again.
 * False: nobody would. It is to be applied once more: as one that cannot wait, or as one that is broken and kept in the
 * quarantine, to be replayed. */
static bool put_aside(struct inbox *inbox, struct item *item, struct aside_entry *first) {
  struct store_result *result = &item->result;
  if (first && inbox_join(inbox, item, first))
    return true;
  if (result->early && !result->record.cannot_wait && inbox->aside.count >= EARLY_ROOM) {
    result->record.cannot_wait = true;
    return false;
  }
  if (inbox->aside.count == 0)
    inbox->aside_at_us = clock_mono_us() + BUSY_EVERY_US;
  /* What is broken is of no task, and takes the room of no route. The first one's id lives no longer than the first. */
  const char *task = result->broken ? "" : result->record.message_id, *route = result->broken ? "" : result->route;
  size_t bytes = result->body.len;
  if (!first && waits_for_room(inbox, item, route)) {
    leave_queued(inbox, item);
    return true;
  }
  bool put = first ? aside_follow(&inbox->aside, first, &item->aside, task, bytes)
                   : aside_put(&inbox->aside, &item->aside, route, task, bytes);
  if (put) {
    item->result.fate = RESULT_BUSY;
    release_room(inbox, item);
    if (first)
      inbox_hold_up(inbox, item);
    return true;
  }
  if (result->unkept) {
    leave_queued(inbox, item);
    return true;
  }
  snprintf(item->why, sizeof item->why, "%s, and those of too many others",
           result->early ? "the row of its task was changed while it was sent"
                         : "another transaction holds the row of its task");
  if (!item->driver) {
    inbox_finish(inbox, item, false);
    return true;
  }
  item->result.broken = item->why;
  return false;
}

static bool aside_is_due(const struct inbox *inbox) {
  return inbox->aside.count > 0 && clock_mono_us() >= inbox->aside_at_us;
}

/* The database may have been away: that has a line of its own. */
static void note_late(struct inbox *inbox, const char *source, int64_t since_us, int64_t now_us) {
  if (since_us < inbox->trouble_us)
    since_us = inbox->trouble_us;
  if (now_us - since_us > LATE_SAID_US)
    log_repeated(&inbox->late, LOG_LEVEL_WARN, "DUEBOX-RESULTS-LATE",
                 "for more than %d s more results have come than can be written, source=%s: they wait, also where they "
                 "come from, and a task whose answer waits for longer than its timeout is sent again",
                 LATE_SAID_US / 1000000, source);
}

/* Waits for records, and collects them. False: the inbox stops, or it is time for those that were put aside. */
static bool wait_for_records(struct inbox *inbox, bool *again) {
  struct inbox_queues *queues = &inbox->queues;
  mutex_lock(&inbox->lock);
  *again = false;
  while (!inbox->stopping && !(*again = aside_is_due(inbox)) && queues->arrived + queues->waiting == 0)
    if (inbox->aside.count == 0)
      cond_wait(&inbox->filled, &inbox->lock);
    else
      (void)cond_wait_until(&inbox->filled, &inbox->lock, inbox->aside_at_us);
  bool any = !inbox->stopping && !*again;
  if (any)
    inbox_queues_collect(queues);
  const char *source;
  int64_t now_us = clock_mono_us(), behind_us = inbox_queues_behind(queues, now_us, &source);
  mutex_unlock(&inbox->lock);
  if (behind_us)
    note_late(inbox, source, behind_us, now_us);
  return any;
}

/* Some of those put aside, of every route, and what waits behind them. They stay there. */
static size_t take_again(struct inbox *inbox, struct item *items[BATCH_MAX]) {
  struct aside_entry *entries[BATCH_MAX];
  size_t first = aside_next(&inbox->aside, entries, BATCH_MAX), n = 0;
  for (; n < first; n++)
    items[n] = inbox_item_of(entries[n]);
  for (size_t i = 0; i < first; i++)
    for (struct aside_entry *entry = entries[i]->behind; entry && n < BATCH_MAX; entry = entry->behind)
      items[n++] = inbox_item_of(entry);
  inbox->aside_at_us = clock_mono_us() + BUSY_EVERY_US;
  return n;
}

static void read_limits(struct inbox *inbox) {
  struct config_ref *ref = inbox->env.config(inbox->env.engine);
  inbox->checkpoint_max = (size_t)ref->config->engine.max_checkpoint;
  config_ref_drop(ref);
}

/* A result of a task that has one aside goes there, behind it, or stays where it is until there is room: then those
 * after it do too, since some are of its task. True: it is one of the batch. */
static bool take_record(struct inbox *inbox, struct item *item, int64_t now_us) {
  const char *task = item->result.record.message_id;
  if (!item->result.broken && !*task)
    parse(inbox, item);
  struct aside_entry *first = item->result.broken ? NULL : aside_find(&inbox->aside, task);
  if (first && item->driver && (inbox->crowded || waits_for_room(inbox, item, inbox_item_of(first)->result.route))) {
    inbox->crowded = true;
    return false;
  }
  inbox_queues_take(&inbox->queues, &item->entry);
  note_late(inbox, item->source, item->entry.since_us, now_us);
  return !first || !put_aside(inbox, item, first);
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

/* What found no room aside is not tried again at once. */
static void rest_where_crowded(struct inbox *inbox) {
  if (inbox->crowded)
    rest(inbox, RETRY_MIN_US);
  inbox->crowded = false;
}

/* The next records, of each source in turn. Waits for the first. 0 = the inbox stops. */
static size_t take_batch(struct inbox *inbox, struct item *items[BATCH_MAX]) {
  size_t n = 0;
  read_limits(inbox);
  while (n == 0) {
    bool again;
    struct inbox_entry *entry;
    if (!wait_for_records(inbox, &again))
      return again ? take_again(inbox, items) : 0;
    int64_t now_us = clock_mono_us();
    while (n < BATCH_MAX && (entry = inbox_queues_next(&inbox->queues)))
      if (take_record(inbox, item_in(entry), now_us))
        items[n++] = item_in(entry);
    set_gauge(&inbox->waiting_since_us, inbox_queues_oldest(&inbox->queues));
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

/* One line per kind and source, and seldom again: what each is about is in the quarantine. */
static void log_stray(struct inbox *inbox, const struct store_result *result) {
  const char *kind = result->form == DECISION_FORMS  ? "the server refuses what it would write, in every form"
                     : result->fate == RESULT_BROKEN ? "no status and task can be made out"
                     : result->fate == RESULT_MISROUTED
                         ? "the route of its task does not answer there, see `routes` in docs/CONFIGURATION"
                     : result->fate == RESULT_ORPHAN ? "there is no such task, or no such attempt of it"
                     : result->fate == RESULT_APPLIED && result->record.flaw
                         ? "its status counts, but something else in it is wrong"
                     : result->contradicts ? "its task took the opposite for a fact"
                                           : NULL;
  if (kind && !result->replayed && (!result->replied || result->contradicts))
    log_repeated(&inbox->strays, LOG_LEVEL_WARN, "DUEBOX-RESULT-QUARANTINE",
                 "a result record was put into quarantine source=%s: %s; see `duebox quarantine list`", result->source,
                 kind);
  if (result->capped)
    log_repeated(&inbox->strays, LOG_LEVEL_WARN, "DUEBOX-RESULT-CAPPED",
                 "a consumer asked for more time than it may, and has the most that is allowed route=%s: see "
                 "retry_in_ms and extend_ms in docs/CONSUMERS",
                 result->route);
}

/* Applies a batch; true when committed. Tries until it is or the inbox stops. */
static bool apply(struct inbox *inbox, struct store_session *ss, struct store_result *results, size_t n) {
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
    if (stopping(inbox))
      return false;
    wait_us = wait_us * 2 < RETRY_MAX_US ? wait_us * 2 : RETRY_MAX_US;
  }
}

static void take_verdict(struct item *item, const struct store_result *result) {
  item->result.record = result->record; /* less what was not to be kept */
  item->result.fate = result->fate;
  item->result.event = result->event;
  item->result.cancelled = result->cancelled;
  item->result.extended = result->extended;
  item->result.unknown = result->unknown;
  item->result.early = result->early;
  item->result.unkept = result->unkept;
  item->result.unsent = result->unsent;
  item->result.contradicts = result->contradicts;
  item->result.differs = result->differs;
  item->result.capped = result->capped;
  item->result.form = result->form;
  memcpy(item->result.refusal, result->refusal, sizeof item->result.refusal);
  memcpy(item->result.route, result->route, sizeof result->route);
}

/* It fits nothing, and goes to the quarantine for that when nobody else holds it: it is not judged again, nor do others
 * of its task wait behind it. */
static void wait_for_quarantine(struct item *item, const struct store_result *result) {
  snprintf(item->why, sizeof item->why, "%s", result->refusal);
  item->result.broken = item->why;
}

/* What is early is looked at again soon, for a while, and has an end. True: soon. */
static bool pace_early(struct item *item) {
  int64_t now_us = clock_mono_us();
  item->early_us = !item->result.early ? 0 : item->early_us ? item->early_us : now_us;
  item->result.waited = item->early_us && now_us - item->early_us > EARLY_MAX_US;
  return item->early_us && ++item->early_tries < EARLY_QUICK;
}

/* Somebody forgot to commit, perhaps; nobody else would say so where the consumer only tries again. */
static void note_held(struct inbox *inbox, struct item *item) {
  int64_t now_us = clock_mono_us();
  if (!item->busy_us)
    item->busy_us = now_us;
  if (now_us - item->busy_us > HELD_SAID_US)
    log_repeated(&inbox->held, LOG_LEVEL_WARN, "DUEBOX-RESULT-ROW-HELD",
                 "a result waits: another transaction has held the row of its task for more than %d s route=%s",
                 HELD_SAID_US / 1000000, item->result.route);
}

/* What is behind another of its task goes back to where it waited, in front of what came later. */
static void return_behind(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n) {
  for (size_t i = n; i-- > 0;) {
    if (results[i].fate != RESULT_BUSY || !results[i].behind)
      continue;
    items[i]->result.unknown = results[i].unknown;
    if (items[i]->result.fate != RESULT_BUSY)
      inbox_queues_return(&inbox->queues, &items[i]->entry);
  }
}

/* Whose rows are large has turns of its own from now on. */
static void weigh(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (results[i].measured)
      inbox_queues_weigh(&items[i]->entry, results[i].row_bytes);
}

/* What was busy is set aside, or stays there; what was aside and is not busy any more leaves it. *refused: there was no
 * room for these. */
static void sort_busy(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n,
                      struct item **refused, size_t *refused_count) {
  bool soon = false, any = false;
  *refused_count = 0;
  weigh(inbox, items, results, n);
  return_behind(inbox, items, results, n);
  for (size_t i = 0; i < n; i++) {
    bool was_aside = items[i]->result.fate == RESULT_BUSY;
    if (results[i].fate == RESULT_BUSY && results[i].behind) {
      soon = soon || (was_aside && results[i].postponed);
      continue;
    }
    any = true;
    take_verdict(items[i], &results[i]);
    if (results[i].fate == RESULT_BUSY && results[i].unkept)
      wait_for_quarantine(items[i], &results[i]);
    bool item_soon = pace_early(items[i]);
    soon = item_soon || soon;
    if (results[i].fate == RESULT_BUSY && !results[i].early && !results[i].unkept)
      note_held(inbox, items[i]);
    if (results[i].fate == RESULT_BUSY && was_aside && !item_soon)
      inbox_hold_up(inbox, items[i]);
    if (results[i].fate == RESULT_BUSY && !was_aside && !put_aside(inbox, items[i], NULL))
      refused[(*refused_count)++] = items[i];
    else if (results[i].fate != RESULT_BUSY && was_aside)
      aside_remove(&inbox->aside, &items[i]->aside);
  }
  int64_t soon_us = clock_mono_us() + EARLY_EVERY_US;
  if (soon && soon_us < inbox->aside_at_us)
    inbox->aside_at_us = soon_us;
  inbox->crowded = inbox->crowded || !any; /* they would be given again at once */
}

/* What becomes of a batch that was committed. True: a retry may be due soon. */
static bool finish_batch(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n) {
  bool retry = false;
  for (size_t i = 0; i < n; i++) {
    if (results[i].fate == RESULT_BUSY)
      continue;
    measure(inbox, &results[i]);
    log_stray(inbox, &results[i]);
    if (results[i].fate == RESULT_APPLIED && results[i].event == EVENT_DEAD)
      dead_log_write(&inbox->dead, results[i].route, results[i].record.message_id, results[i].record.attempt,
                     results[i].record.error_class);
    retry = retry || (results[i].fate == RESULT_APPLIED && results[i].event == EVENT_RETRY);
    inbox_finish(inbox, items[i], true);
  }
  return retry;
}

/* Applies a batch, and then what of it was busy and found no room aside, which is broken by now. */
static void apply_batch(struct inbox *inbox, struct store_session *ss, struct item **items,
                        struct store_result *results, size_t n) {
  while (n > 0) {
    struct item *refused[BATCH_MAX];
    size_t refused_count;
    for (size_t i = 0; i < n; i++)
      results[i] = items[i]->result;
    set_gauge(&inbox->writing_since_us, clock_mono_us());
    bool applied = apply(inbox, ss, results, n);
    set_gauge(&inbox->writing_since_us, 0);
    if (!applied) {
      for (size_t i = 0; i < n; i++) /* those aside are finished with the inbox */
        if (items[i]->result.fate != RESULT_BUSY)
          inbox_finish(inbox, items[i], false);
      return;
    }
    sort_busy(inbox, items, results, n, refused, &refused_count);
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
  struct item *items[BATCH_MAX];
  struct store_result *results = calloc(BATCH_MAX, sizeof *results);
  size_t n;
  while (results && (n = take_batch(inbox, items)) > 0) {
    apply_batch(inbox, ss, items, results, n);
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
