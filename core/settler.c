/* SPDX-License-Identifier: MIT */
#include "core/settler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/sync.h"
#include "core/config_ref.h"
#include "core/lane.h"
#include "core/poll_pace.h"
#include "core/realtime.h"
#include "core/reduced.h"
#include "core/settler_internal.h"

enum {
  RETRY_MIN_US = 20 * 1000,
  RETRY_MAX_US = 2 * 1000 * 1000,
  BUSY_EVERY_US = 500 * 1000,           /* how often to look at all that is busy whether it is free */
  AGAIN_REST = 9,                       /* times as long as a try took the others have the settler for themselves, */
  AGAIN_REST_MAX_US = 10 * 1000 * 1000, /* up to this: the database may have been away meanwhile */
  STUCK_MIN_US = 1000 * 1000,           /* how often to try what the server refuses: seldomer and seldomer */
  STUCK_MAX_US = 60 * 1000 * 1000,
  LARGE_BYTES = 4096, /* that an outcome writes: beyond that the others go first */
};

/* The others wait for about a batch. */
static const struct row_limits turn_limits = {.least = 50, .most = SETTLE_BATCH_MAX, .turn_us = 50 * 1000};

/* Whether a copy of it has left, as far as can be known. */
static bool was_sent(const struct flight *flight) {
  if (flight->end == FLIGHT_OUTCOME)
    return flight->outcome.cls != DUEBOX_UNAVAILABLE && flight->outcome.cls != DUEBOX_GONE;
  return flight->end == FLIGHT_STOPPED;
}

/* Which version of the row the decision is about: any, where the row only goes back as it is. A move is about its turn,
 * which another route or order_key does not have. */
static struct duebox_bytes version_of(const struct flight *flight) {
  bool any = flight->decision.event == EVENT_RELEASE && flight->end != FLIGHT_MOVES;
  return any ? (struct duebox_bytes){0} : flight->task->changed_at;
}

static void count_outcome(struct settler *settler, const struct flight *flight) {
  struct route_metrics *metrics = &flight->lane->metrics;
  if (flight->end == FLIGHT_RECOVER)
    count(&settler->metrics->recoveries, 1);
  if (flight->end == FLIGHT_OUTCOME) {
    if (flight->outcome.cls <= DUEBOX_GONE)
      count(&metrics->outcomes[flight->outcome.cls], 1);
    histogram_add(&metrics->duration, flight->completed_us - flight->handed_us);
    /* What the destination did not take was a probe, and not handed over. */
    bool taken = flight->outcome.cls != DUEBOX_UNAVAILABLE && flight->outcome.cls != DUEBOX_GONE;
    if (flight->task->attempt_now == 1 && taken)
      histogram_add(&metrics->lateness, flight->handed_us - flight->due_mono_us);
  }
}

static void count_settled(const struct flight *flight) {
  struct route_metrics *metrics = &flight->lane->metrics;
  if (flight->decision.applied && flight->decision.record)
    count(&metrics->results[RESULT_APPLIED], 1);
  if (flight->decision.changed)
    count(&metrics->changed, 1);
  else if (flight->decision.applied)
    count(&metrics->events[flight->decision.event], 1);
  else
    count(&metrics->vanished, 1);
}

/* Drops the decisions of shards that are not ours any more: their new owner decides. Returns how many remain. */
static size_t drop_lost(struct settler *settler, struct batch *batch, const struct shard_lease *leases, size_t held,
                        const bool *lost) {
  bool ours[STORE_SHARDS_MAX] = {false};
  uint64_t epoch[STORE_SHARDS_MAX] = {0};
  for (size_t i = 0; i < held; i++) {
    ours[leases[i].shard] = !lost[i];
    epoch[leases[i].shard] = leases[i].epoch;
  }
  size_t kept = 0;
  for (size_t i = 0; i < batch->count; i++) {
    struct flight *flight = batch->flights[i];
    uint8_t shard = flight->decision.shard;
    if (ours[shard] && epoch[shard] == flight->epoch) {
      batch->flights[kept] = flight;
      if (kept != i)
        batch->decisions[kept] = batch->decisions[i];
      kept++;
    } else {
      count(&settler->metrics->fence_lost, 1);
    }
  }
  return kept;
}

static void note_written(struct settler *settler, struct flight *flight, const struct decision *decision) {
  flight->decision = *decision;
  if (decision->again) /* by people, while it was out: what follows from its end is decided by that */
    flight->task->max_attempts = decision->max_attempts;
  if (decision->busy || decision->refused)
    return;
  flight->settled = true;
  count(&settler->metrics->settled_rows, 1);
  count_settled(flight);
  if (decision->event == EVENT_DEAD && decision->applied && !decision->changed)
    dead_log_write(&settler->dead, flight->lane->name, flight->task->message_id.data, decision->attempt,
                   decision->error_class);
}

/* One line for a batch, however many there are. */
static void note_mismatches(struct settler *settler, const struct batch *batch) {
  const struct decision *first = NULL;
  size_t n = 0;
  for (size_t i = 0; i < batch->count; i++)
    if (batch->decisions[i].mismatch && n++ == 0)
      first = &batch->decisions[i];
  if (!first)
    return;
  count(&settler->metrics->identity_mismatches, n);
  log_warn(
      "DUEBOX-OTHER-TASK",
      "tasks=%zu first_id=%llu first_message_id=%s: sent, and not in the table any more: the id belongs to another "
      "task, which is left as it is",
      n, (unsigned long long)first->id, first->message_id.data);
}

/* What is written of a lane's outcomes from now on. */
static void note_change(struct settler *settler, const struct lane *lane, const struct decision *d) {
  if (d->form == DECISION_WHOLE)
    log_info("DUEBOX-SETTLE-WHOLE", "route=%s event=%s outcomes are written whole again", lane->name,
             task_event_text(d->event));
  else
    log_error(
        "DUEBOX-SETTLE-REDUCED",
        "route=%s event=%s the server refuses the same of each one: all are settled without it from now on, and one "
        "a second is tried whole",
        lane->name, task_event_text(d->event));
}

/* What the server refused of the batch. */
static void note_refusals(struct settler *settler, const struct batch *batch, const char *why) {
  int64_t now = clock_mono_us();
  for (size_t i = 0; i < batch->count; i++) {
    const struct decision *d = &batch->decisions[i];
    struct lane *lane = batch->flights[i]->lane;
    if (d->refused) {
      log_repeated(&settler->trouble, LOG_LEVEL_ERROR, "DUEBOX-SETTLE-REFUSED",
                   "route=%s message_id=%s its outcome is refused in every form, and tried again: %s", lane->name,
                   d->message_id.data, why);
    } else if (d->applied && d->form > d->least) {
      reduced_note(&settler->trouble, settler->metrics, lane->name, d->message_id.data, d->form, why);
    } else if (d->applied && d->form) {
      count(&settler->metrics->settled_reduced, 1);
    }
    if ((d->applied || d->refused) &&
        refusals_note(&lane->refusals, d->event, d->least, d->refused ? DECISION_FORMS : d->form, now))
      note_change(settler, lane, d);
  }
}

/* The end comes before its outcome is written. */
static void leave(struct settler *settler, const struct flight *flight) {
  settler->left++;
  leases_note_left(settler->leases, flight->task->shard);
}

/* Writes the batch, however long the database takes; gives up only on lost leases or in a hurry. */
static void write_batch(struct settler *settler, struct store_session *ss, struct batch *batch) {
  int64_t wait_us = RETRY_MIN_US;
  set_gauge(&settler->writing_since_us, clock_mono_us());
  for (;;) {
    struct shard_lease leases[STORE_SHARDS_MAX];
    bool lost[STORE_SHARDS_MAX] = {false};
    size_t held = leases_held(settler->leases, leases);
    batch->count = drop_lost(settler, batch, leases, held, lost);
    if (batch->count == 0)
      return;
    struct err err = {0};
    enum store_status status =
        settler->store->ops->settle(ss, leases, held, batch->decisions, batch->count, lost, &err);
    if (status == STORE_OK) {
      for (size_t i = 0; i < held; i++)
        if (lost[i]) /* before the scheduler learns what was dropped: it would read it again */
          settler->shard_lost(settler->engine, &leases[i]);
      batch->count = drop_lost(settler, batch, leases, held, lost);
      count(&settler->metrics->settle_batches, 1);
      note_mismatches(settler, batch);
      note_refusals(settler, batch, err.text);
      for (size_t i = 0; i < batch->count; i++)
        note_written(settler, batch->flights[i], &batch->decisions[i]);
      return;
    }
    count(&settler->metrics->db_errors, 1);
    log_repeated(&settler->trouble, LOG_LEVEL_WARN, "DUEBOX-SETTLE-WAIT", "rows=%zu cannot be settled yet: %s",
                 batch->count, err.text);
    if (atomic_load(&settler->hurry)) {
      for (size_t i = 0; i < batch->count; i++)
        leave(settler, batch->flights[i]);
      return;
    }
    thread_sleep(wait_us);
    wait_us = wait_us * 2 < RETRY_MAX_US ? wait_us * 2 : RETRY_MAX_US;
  }
}

static int by_id(const void *a, const void *b) {
  const struct flight *const *x = a, *const *y = b;
  return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static bool in_order(const struct batch *batch) {
  for (size_t i = 1; i < batch->count; i++)
    if (batch->flights[i - 1]->id > batch->flights[i]->id)
      return false;
  return true;
}

/* Hands flights on to the scheduler; those whose row is busy, or whose outcome is refused, stay here, and so do those
 * that were not tried because others of their lane are refused. */
static void hand_on(struct settler *settler, struct flight_list *list) {
  struct flight_list ready = {0};
  struct flight *flight;
  if (!settler->busy.flights.head)
    settler->busy.at_us = clock_mono_us() + BUSY_EVERY_US;
  while ((flight = flight_list_pop(list))) {
    bool held = flight->decision.busy && !flight->decision.left;
    if (!held)
      flight->busy_us = 0;
    else if (!flight->busy_us)
      flight->busy_us = clock_mono_us();
    if (flight->decision.busy && flight->decision.left)
      settler_lanes_put(&settler->apart, flight);
    else
      flight_list_add(flight->decision.refused ? &settler->stuck.flights
                      : flight->decision.busy  ? &settler->busy.flights
                                               : &ready,
                      flight);
  }
  set_gauge(&settler->metrics->settle_stuck, (int64_t)settler->stuck.flights.count);
  mailbox_put(settler->scheduler, &ready);
}

/* How many rows one transaction settles: it holds the shards' rows shared, which renewing a lease waits for. */
static size_t batch_size(const struct settler *settler) {
  return settler->rows < SETTLE_BATCH_MAX ? (size_t)settler->rows : SETTLE_BATCH_MAX;
}

/* How much an outcome writes: its texts; and the row, which is copied to the history or logged before and after a
 * change, or, once it was delivered, mostly deleted, which is an eighth of the work. */
static size_t outcome_bytes(const struct flight *flight) {
  const struct duebox_outcome *outcome = &flight->outcome;
  bool delivered = flight->end == FLIGHT_OUTCOME && outcome->cls == DUEBOX_DELIVERED;
  size_t row = (size_t)task_size(flight->task), texts = outcome->message ? strlen(outcome->message) : 0;
  return outcome->record_len + texts + (delivered ? row / 8 : row);
}

/* Whether its row is larger than any that is sent: as large as whoever inserted it liked. */
static bool is_huge(const struct flight *flight) {
  return flight->task->payload_len > (uint64_t)flight->config->config->engine.max_payload;
}

/* Has it wait for its turn. */
static void put_in_line(struct settler *settler, struct flight *flight) {
  flight->outcome_bytes = outcome_bytes(flight);
  if (flight->outcome_bytes > LARGE_BYTES)
    settler_lanes_put(is_huge(flight) ? &settler->huge : &settler->large, flight);
  else
    settler_lanes_put(lane_flooded(flight->lane, clock_mono_us()) ? &settler->flood : &settler->quick, flight);
}

/* A destination took the task and said what its plugin could not read: what the plugin makes of it counts. */
static void note_unread(struct settler *settler, const struct flight *flight) {
  const struct duebox_outcome *outcome = &flight->outcome;
  if (flight->end == FLIGHT_OUTCOME && outcome->cls == DUEBOX_DELIVERED && outcome->error_class &&
      flight->decision.error_class == outcome->error_class)
    log_repeated(&settler->flaws, LOG_LEVEL_WARN, "DUEBOX-ANSWER-UNREAD", "route=%s message_id=%s %s",
                 flight->lane->name, flight->task->view.message_id,
                 outcome->message ? outcome->message : outcome->error_class);
}

/* What a batch is made of. */
enum settling {
  SETTLE_TOGETHER, /* of all lanes: those of lanes of which the server refuses some are put apart */
  SETTLE_APART,    /* of one of these lanes */
  SETTLE_AGAIN,    /* they were busy, or refused, before */
};

/* Takes one of a list into the batch, decided about: anew where it was before, because the texts of a record live no
 * longer than its batch. False: it is to be written apart. */
static bool take(struct settler *settler, struct batch *batch, struct flight *flight, enum settling how) {
  const uint32_t unknown = flight->decision.unknown;
  const bool refused = flight->decision.refused;
  size_t flaws = batch->flawed_count, records = batch->record_count;
  bool written = settler_decide(flight, batch);
  struct decision *d = &flight->decision;
  d->unknown = unknown;
  d->busy = d->refused = d->left = d->again = false;
  if (how == SETTLE_TOGETHER && written) {
    enum refusals_way way = refusals_way(&flight->lane->refusals, d->event, batch->mono_us);
    flight->whole = way == REFUSALS_PROBE;
    if (way != REFUSALS_TOGETHER) {
      batch->flawed_count = flaws;
      while (batch->record_count > records)
        result_record_free(&batch->records[--batch->record_count]);
      return false;
    }
  }
  d->kin = how == SETTLE_TOGETHER ? flight->lane : NULL;
  d->least = flight->whole || refused ? DECISION_WHOLE : refusals_least(&flight->lane->refusals, d->event);
  if (!flight->counted) {
    count_outcome(settler, flight);
    note_unread(settler, flight);
  }
  flight->counted = true;
  d->changed_at = version_of(flight);
  d->sent = was_sent(flight) ? flight->task : NULL;
  if (written)
    batch->flights[batch->count++] = flight;
  else
    flight->settled = true;
  return true;
}

/* Decides about a batch of flights, writes what must be written and hands them on. */
static void settle_some(struct settler *settler, struct store_session *ss, struct batch *batch,
                        struct flight_list *list, enum settling how) {
  struct flight_list some = {0};
  batch->count = batch->record_count = batch->flawed_count = 0;
  batch->random = random_u64();
  batch->mono_us = clock_mono_us();
  batch->db_us = settler->db_now_us(settler->engine);
  struct flight *flight;
  size_t bytes = 0;
  while (some.count < batch_size(settler) && bytes < SETTLE_BATCH_BYTES && (flight = flight_list_pop(list))) {
    if (!take(settler, batch, flight, how)) {
      settler_lanes_put(&settler->apart, flight);
      continue;
    }
    bytes += flight->outcome_bytes;
    flight_list_add(&some, flight);
  }
  /* Primary-key order: two writers that lock rows in the same order do not deadlock. Mostly they come in it. */
  if (!in_order(batch))
    qsort(batch->flights, batch->count, sizeof *batch->flights, by_id);
  for (size_t i = 0; i < batch->count; i++) {
    batch->decisions[i] = batch->flights[i]->decision;
    batch->decisions[i].busy = how == SETTLE_AGAIN;
  }
  if (batch->count)
    write_batch(settler, ss, batch);
  set_gauge(&settler->writing_since_us, 0);
  settler_keep_flawed(settler, ss, batch);
  for (size_t i = 0; i < batch->record_count; i++)
    result_record_free(&batch->records[i]);
  hand_on(settler, &some);
}

/* Tries some of them again, in a batch of their own: each may cost some round trips, or a second, and the others wait
 * meanwhile. */
static void settle_again(struct settler *settler, struct store_session *ss, struct batch *batch,
                         struct settler_round *round) {
  struct flight_list some = {0};
  int64_t began = clock_mono_us();
  if (!round->flights.head || began < round->at_us)
    return;
  if (!round->left) {
    round->left = round->flights.count;
    round->progress = false;
  }
  size_t before = round->flights.count;
  for (; round->left && some.count < round->rows; round->left--)
    flight_list_add(&some, flight_list_pop(&round->flights));
  while (some.head)
    settle_some(settler, ss, batch, &some, SETTLE_AGAIN);
  int64_t now = clock_mono_us(), rest_us = pace_rest_us(now - began, AGAIN_REST, AGAIN_REST_MAX_US);
  round->rows = settler_again_rows(round->rows, now - began);
  round->progress = round->progress || round->flights.count < before;
  if (!round->left) {
    round->wait_us =
        round->progress ? round->least_us : earlier(later(round->wait_us * 2, round->least_us), round->most_us);
    rest_us = later(rest_us, round->wait_us);
  }
  round->at_us = now + rest_us;
}

/* Writes some outcomes of a lane of which the server refuses some. Finding out which takes a while: as many at once as
 * keep the others waiting for some milliseconds. Then these have the settler for themselves for as long, and much
 * longer where they never leave it idle. */
static void settle_apart(struct settler *settler, struct store_session *ss, struct batch *batch) {
  struct flight_list some = {0};
  int64_t began = clock_mono_us();
  bool turn = atomic_load(&settler->stopping) || refusals_turn(&settler->pace, settler->others, began);
  if (!settler->apart.first || !turn)
    return;
  struct lane *lane = settler->apart.first;
  uint64_t refused = lane->refusals.count;
  size_t rows = lane->apart_rows ? lane->apart_rows : 1, waiting = lane->outcomes[SETTLING_APART].flights.count;
  rows = rows < waiting ? rows : waiting;
  while (some.count < rows)
    flight_list_add(&some, settler_lanes_take(&settler->apart, some.count + 1 == rows));
  while (some.head)
    settle_some(settler, ss, batch, &some, SETTLE_APART);
  int64_t now = clock_mono_us();
  lane->apart_rows = settler_again_rows(rows, now - began);
  refusals_rest(&settler->pace, lane->refusals.count != refused, began, now);
}

static struct store_session *open_session(struct settler *settler) {
  struct store_session *ss = NULL;
  struct err err = {0};
  while (settler->store->ops->open(settler->store->self, "settler", 0, &ss, &err) == STORE_REFUSED) {
    log_repeated(&settler->trouble, LOG_LEVEL_ERROR, "DUEBOX-DB-REFUSED", "settler: %s", err.text);
    if (atomic_load(&settler->stopping))
      return NULL;
    thread_sleep(1000 * 1000);
  }
  return ss;
}

/* Whether one of the list has an order_key: of those behind `seen`, which goes on to the last of them. */
static bool any_keyed(const struct flight_list *list, const struct flight **seen) {
  for (const struct flight *flight = *seen ? (*seen)->next : list->head; flight; flight = flight->next) {
    *seen = flight;
    if (flight->in_order)
      return true;
  }
  return false;
}

/* Takes what is there; when that is little, waits the settle delay for company: a commit costs the same for one row as
 * for a thousand. */
static void gather(struct settler *settler, struct flight_list *list) {
  int64_t limit = clock_mono_us() + 1000 * 1000;
  if (settler->busy.flights.head && settler->busy.at_us < limit)
    limit = settler->busy.at_us;
  if (settler->stuck.left && settler->stuck.at_us < limit)
    limit = settler->stuck.at_us;
  if (settler->apart.first && settler->pace.at_us < limit)
    limit = settler->pace.at_us;
  if (settler->large.first)
    limit = earlier(settler->large_at_us, limit);
  if (settler->huge.first)
    limit = atomic_load(&settler->stopping) ? 0 : earlier(settler->huge_at_us, limit);
  bool waits = settler->quick.first || settler->flood.first;
  mailbox_take(&settler->in, waits ? 0 : limit, list);
  if (!list->head || waits || settler->large.first)
    return;
  const struct flight *seen = NULL;
  int64_t began = clock_mono_us(), delay_us = settler->delay_us;
  while ((int64_t)list->count < settler->rows && !atomic_load(&settler->stopping)) {
    if (delay_us > SETTLE_KEYED_US && any_keyed(list, &seen))
      delay_us = SETTLE_KEYED_US;
    if (clock_mono_us() >= began + delay_us)
      return;
    mailbox_take(&settler->in, began + delay_us, list);
  }
}

/* A batch of them, from each lane in turn: one that has thousands lets others go that have one now and then. */
static void take_turns(const struct settler *settler, struct settler_lanes *lanes, size_t most_bytes, size_t most,
                       struct flight_list *some) {
  most = most < batch_size(settler) ? most : batch_size(settler);
  for (size_t bytes = 0; lanes->first && some->count < most && bytes < most_bytes;) {
    struct flight *flight = settler_lanes_take(lanes, true);
    bytes += flight->outcome_bytes;
    flight_list_add(some, flight);
  }
}

/* Settles a batch of outcomes with little to write. True: there were some. */
static bool settle_small(struct settler *settler, struct store_session *ss, struct batch *batch,
                         struct settler_lanes *lanes) {
  struct flight_list some = {0};
  take_turns(settler, lanes, SETTLE_BATCH_BYTES, row_pace_rows(&lanes->pace, &turn_limits), &some);
  size_t rows = some.count;
  int64_t began = clock_mono_us();
  while (some.head)
    settle_some(settler, ss, batch, &some, SETTLE_TOGETHER);
  if (rows)
    row_pace_note(&lanes->pace, &turn_limits, rows, clock_mono_us() - began);
  return rows > 0;
}

/* Settles a batch of outcomes with little to write, those of floods by themselves and behind the others, and then one
 * of those with much: how many routes are flooded, how many outcomes one has, what its consumers answer, or the size of
 * its rows, holds up no other route. Where a batch of large ones takes long, the others have as long a turn. */
static void settle_in_turn(struct settler *settler, struct store_session *ss, struct batch *batch,
                           struct flight_list *list) {
  struct flight_list some = {0};
  struct flight *flight;
  while ((flight = flight_list_pop(list)))
    put_in_line(settler, flight);
  bool quick = settle_small(settler, ss, batch, &settler->quick);
  bool others = settle_small(settler, ss, batch, &settler->flood) || quick;
  settler->others = others;
  int64_t began = clock_mono_us();
  if (!settler->large.first || began < settler->large_at_us)
    return;
  take_turns(settler, &settler->large, settler->large_bytes, SETTLE_BATCH_MAX, &some);
  settle_some(settler, ss, batch, &some, SETTLE_TOGETHER);
  int64_t took = clock_mono_us() - began;
  settler->large_bytes = settler_large_bytes(settler->large_bytes, took);
  settler->large_at_us = others && took > SETTLE_LARGE_BATCH_US ? began + 2 * took : 0;
}

/* Settles the outcome of one huge row. At the end nobody waits for the others' turn. */
static void settle_huge(struct settler *settler, struct store_session *ss, struct batch *batch) {
  struct flight_list some = {0};
  int64_t began = clock_mono_us();
  if (!settler->huge.first || (began < settler->huge_at_us && !atomic_load(&settler->stopping)))
    return;
  take_turns(settler, &settler->huge, SETTLE_BATCH_BYTES, 1, &some);
  settle_some(settler, ss, batch, &some, SETTLE_TOGETHER);
  int64_t now = clock_mono_us();
  settler->huge_at_us = now + settler_huge_rest_us(now - began);
}

/* At the end what is refused or busy is left; what was put apart is tried, as long as there is time. */
static bool is_to_go_on(struct settler *settler) {
  return !atomic_load(&settler->stopping) || mailbox_count(&settler->in) > 0 || settler->quick.first ||
         settler->flood.first || settler->large.first || settler->huge.first ||
         (settler->apart.first && !atomic_load(&settler->hurry));
}

static void run(void *arg) {
  struct settler *settler = arg;
  realtime_thread(settler->realtime, "settler");
  settler->large_bytes = SETTLE_LARGE_BATCH_MIN_BYTES;
  settler->flood.kind = SETTLING_FLOOD;
  settler->large.kind = SETTLING_LARGE;
  settler->huge.kind = SETTLING_HUGE;
  settler->apart.kind = SETTLING_APART;
  settler->busy = (struct settler_round){.rows = 1, .least_us = BUSY_EVERY_US, .most_us = BUSY_EVERY_US};
  settler->stuck = (struct settler_round){.rows = 1, .least_us = STUCK_MIN_US, .most_us = STUCK_MAX_US};
  struct batch batch = {
      .flights = calloc(SETTLE_BATCH_MAX, sizeof *batch.flights),
      .decisions = calloc(SETTLE_BATCH_MAX, sizeof *batch.decisions),
      .records = calloc(SETTLE_BATCH_MAX, sizeof *batch.records),
  };
  struct store_session *ss = batch.flights && batch.decisions && batch.records ? open_session(settler) : NULL;
  struct flight_list list = {0};
  while (ss && is_to_go_on(settler)) {
    gather(settler, &list);
    set_gauge(&settler->metrics->settle_queue,
              (int64_t)(list.count + settler->quick.count + settler->flood.count + settler->large.count +
                        settler->huge.count + settler->apart.count + settler->busy.flights.count +
                        settler->stuck.flights.count));
    settle_in_turn(settler, ss, &batch, &list);
    settle_huge(settler, ss, &batch);
    settle_apart(settler, ss, &batch);
    settle_again(settler, ss, &batch, &settler->busy);
    settler_park(settler, clock_mono_us());
    settle_again(settler, ss, &batch, &settler->stuck);
  }
  flight_list_join(&settler->busy.flights, &settler->stuck.flights);
  while (settler->apart.first)
    flight_list_add(&settler->busy.flights, settler_lanes_take(&settler->apart, false));
  for (const struct flight *flight = settler->busy.flights.head; flight; flight = flight->next)
    leave(settler, flight);
  if (settler->left)
    log_warn("DUEBOX-SETTLE-LEFT",
             "outcomes=%zu could not be written before the end: whoever holds their shards next may send those tasks "
             "again",
             settler->left);
  mailbox_put(settler->scheduler, &settler->busy.flights); /* not settled: whoever holds the shard next meets them */
  if (ss)
    settler->store->ops->close(&ss);
  free(batch.flights);
  free(batch.decisions);
  free(batch.records);
}

bool settler_start(struct settler *settler, struct err *err) {
  mailbox_init(&settler->in);
  if (thread_start(&settler->thread, "settler", run, settler))
    return true;
  mailbox_destroy(&settler->in);
  return err_set(err, 0, "no thread for the settler: the process limit is reached");
}

void settler_stop(struct settler *settler, int64_t patience_ms) {
  atomic_store(&settler->stopping, true);
  mailbox_poke(&settler->in);
  if (!thread_join_within(&settler->thread, patience_ms)) {
    atomic_store(&settler->hurry, true);
    thread_join(&settler->thread);
  }
}
