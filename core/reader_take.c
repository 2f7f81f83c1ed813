/* SPDX-License-Identifier: MIT
 *
 * core/reader_take.c - what becomes of rows that were read: flights for their drivers, ends without a call, or nothing
 * for now.
 *
 * A row of a recorded claim is read without its payload first, to choose what to claim. A row that was read a little
 * before it is due waits in memory until then (scheduler_send_due).
 */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/reader.h"

enum {
  HELD_SAID_US = 5 * 1000 * 1000,
  CLAIM_BYTES = 1024 * 1024, /* of one claim: its memory lives as long as its slowest task */
  REFUSED_ROWS = 3,
  CLAIMS_MAX = 32,      /* that one reading tries to find out which rows are refused */
  LARGE_US = 20 * 1000, /* for large rows of one route, before the others have their turn again */
};

struct flight *reader_begin_flight(struct scheduler *s, struct lane *lane, struct group *group, struct task *task,
                                   int64_t read_us) {
  struct flight *flight = flight_take(s->flights, task);
  if (!flight) {
    log_error("DUEBOX-MEMORY", "no memory for more tasks in flight");
    return NULL;
  }
  flight->lane = lane;
  flight->group = group;
  flight->config = config_ref_take(s->config);
  flight->lease_ms = s->config->config->engine.lease_ms;
  flight->epoch = s->view[task->shard].epoch;
  flight->read_us = read_us;
  if (group)
    group->in_flight++;
  else
    lane->unread++;
  lane_begin(lane, task);
  atomic_fetch_add(&s->leases->in_flight[task->shard], 1);
  atomic_fetch_add(&s->in_flight, 1);
  return flight;
}

void reader_end_flight(struct flight *flight, enum flight_end end, const char *error_class, const char *text,
                       struct flight_list *ended) {
  flight->end = end;
  flight_set_outcome(flight, &DUEBOX_OUTCOME(.cls = DUEBOX_REJECTED, .error_class = error_class, .message = text));
  flight_list_add(ended, flight);
}

void reader_keep_turn(struct lane *lane, const struct task *task) {
  if (order_may_go(&lane->order, task)) {
    order_reserve(&lane->order, task);
    (void)order_missed(&lane->order, task->id, true);
  } else if (!order_blocked(&lane->order, task) && order_wait(&lane->order, task)) {
    lane_sweep_first(lane);
  }
}

/* A task that must wait although it is due: it was in flight in a crash and others that were are out, or another task
 * of its order_key goes first. It stays in the table; the sweep meets it again, or its order calls it. */
static bool must_wait(struct scheduler *s, struct lane *lane, const struct task *task) {
  bool suspect = task->recoveries > 0;
  if (task->moves || (suspect && !suspects_may_go(&lane->suspects, scheduler_suspicion(s, task), s->last_chance))) {
    lane_sweep_shard(lane, task->shard);
    if (!task->moves && task->order_key.len > 0)
      reader_keep_turn(lane, task);
    return true;
  }
  if (order_may_go(&lane->order, task))
    return false;
  if (order_wait(&lane->order, task))
    lane_sweep_first(lane);
  return true;
}

/* What a batch of rows becomes. */
struct taking {
  const struct reading *reading;
  struct flight_list out, ended;
  struct {
    uint64_t id;
    int64_t bytes;
    uint8_t shard;
  } large[READ_MAX]; /* those that are read by themselves */
  size_t large_count, taken;
  int64_t now_us; /* monotonic: when the batch came */
  struct err err; /* what is wrong with the row at hand */
  bool too_large; /* some rows were, and never leave */
  bool apart;     /* tasks get memory of their own */
  bool put_back;  /* a row has been: those of its order_key do not pass it */
};

void reader_settle_turns(struct scheduler *s, struct lane *lane, const uint64_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    /* In flight and called still: plain SQL gave it another key meanwhile, and its turn goes on. */
    if (order_missed(&lane->order, ids[i], !flight_by_id(s->flights, ids[i])))
      lane_sweep_first(lane);
}

/* There is no room for its flight. If it is claimed, it is found again by the name in it. */
static void note_unknown_claim(struct scheduler *s, const struct task *task) {
  if (task->state != TASK_CLAIMED)
    return;
  s->claims_unknown |= shard_bit(task->shard);
  scheduler_look_soon(s);
}

/* Goes back to the table as it was, to be met there again. Where it was its turn (group: it is the lane's still) nobody
 * of its order_key goes before that. */
static void hand_back(struct scheduler *s, struct lane *lane, struct group *group, struct task *task,
                      struct taking *taking) {
  struct flight *flight = reader_begin_flight(s, lane, group, task, taking->reading->began_us);
  if (!flight) {
    note_unknown_claim(s, task);
    task_release(task);
    return;
  }
  task->attempt_now = task->attempt;
  if (group && task->order_key.len > 0 && order_may_go(&lane->order, task))
    flight->in_order = order_enter(&lane->order, flight);
  reader_end_flight(flight, FLIGHT_UNSENT, NULL, NULL, &taking->ended);
}

void reader_refuse_unreadable(struct flight *flight, struct flight_list *ended) {
  struct err err = {0};
  err_set(&err, 0,
          "the row has no valid value in %s: it was inserted with the table's CHECKs switched off, or before `duebox "
          "migrate` gave the table the CHECK that refuses it; correct the client, and insert the task again",
          flight->task->unreadable ? flight->task->unreadable : "its columns");
  reader_end_flight(flight, FLIGHT_REFUSED, "row.unreadable", err.text, ended);
}

/* It can never be sent: it ends dead by itself, with the reason. */
static void refuse(struct scheduler *s, struct group *group, struct task *task, struct taking *taking) {
  struct lane *lane = group->lane;
  struct flight *flight = reader_begin_flight(s, lane, group, task, taking->reading->began_us);
  if (!flight) {
    task_release(task);
    return;
  }
  reader_refuse_unreadable(flight, &taking->ended);
}

/* There is no memory for it: it is met again, and nobody of its order_key goes before that. */
static void leave_in_table(struct lane *lane, struct task *task) {
  lane_sweep_shard(lane, task->shard);
  if (task->order_key.len > 0)
    reader_keep_turn(lane, task);
  task_release(task);
}

/* One due row: hands it to its driver (list `out`), has it wait for its moment, or ends it (list `ended`). */
static void take_off(struct scheduler *s, struct group *group, struct task *task, struct taking *taking) {
  struct lane *lane = group->lane;
  const char *error_class = NULL;
  taking->err.text[0] = '\0';
  if (taking->apart)
    task = task_apart(task);
  struct flight *flight = reader_begin_flight(s, lane, group, task, taking->reading->began_us);
  if (!flight) {
    note_unknown_claim(s, task);
    leave_in_table(lane, task);
    return;
  }
  if (task->order_key.len > 0 && !(flight->in_order = order_enter(&lane->order, flight))) {
    task->attempt_now = task->attempt;
    reader_end_flight(flight, FLIGHT_UNSENT, NULL, NULL, &taking->ended);
    return;
  }
  taking->taken++;
  if (task->expires_us && scheduler_db_now_us(s) >= task->expires_us) {
    reader_end_flight(flight, FLIGHT_EXPIRED, NULL, NULL, &taking->ended);
  } else if (!reader_prepare(s, lane->route, task, &error_class, &taking->err)) {
    lane_note_size(lane, task); /* the server has read all of it: not many such rows in one statement */
    taking->too_large = taking->too_large || reader_too_large(s, task);
    reader_end_flight(flight, FLIGHT_REFUSED, error_class, taking->err.text, &taking->ended);
  } else if (scheduler_target_waits(s, flight)) {
    flight_list_add(&taking->ended, flight);
  } else if (task->due_us > taking->reading->due_until_us) {
    scheduler_send_later(s, scheduler_charge(s, flight, taking->now_us));
  } else {
    scheduler_open(s, scheduler_charge(s, flight, taking->now_us), taking->now_us, &taking->out);
  }
}

static bool left_out(const struct scheduler *s, const struct task *task) {
  return !task->payload.data && !reader_too_large(s, task);
}

/* Another task of its order_key failed and goes first: it is put aside, where people see why. */
static void block(struct scheduler *s, struct group *group, struct task *task, struct taking *taking) {
  struct flight *flight = reader_begin_flight(s, group->lane, group, task, taking->reading->began_us);
  if (!flight) {
    task_release(task);
    return;
  }
  bool known = order_block(&group->lane->order, task);
  reader_end_flight(flight, known ? FLIGHT_BLOCKED : FLIGHT_UNSENT, NULL, NULL, &taking->ended);
}

/* A row that came early and finds no room is read again when it is due. */
static void read_again_when_due(struct scheduler *s, struct group *group, const struct task *task) {
  struct store_cursor *cursor = &group->cursor;
  if (task->due_us > cursor->next_us || (task->due_us == cursor->next_us && task->id > cursor->id))
    return; /* as one before it */
  *cursor = (struct store_cursor){task->due_us, task->id - 1};
  group->due = group->backlog = false;
  group->next_us = task->due_us + s->ahead_us;
}

static bool is_full(const struct taking *taking) { return taking->taken >= taking->reading->most; }

/* A row that may not go although nothing of its own keeps it: no room, or not now, or it was in flight in a crash and
 * no other would count, for its claim would be kept in memory: claims of its shard are written from now on. Where a
 * route is suspended there is no room, and its probe goes all the same. False: it may go. */
static bool put_back(struct scheduler *s, struct group *group, const struct task *task, struct taking *taking) {
  struct lane *lane = group->lane;
  bool keyed = task->order_key.len > 0;
  bool room = lane_room(lane) > 0 || health_suspended(&lane->health);
  bool uncounted = task->recoveries > 0 && !taking->reading->recorded;
  if (task->state != TASK_SCHEDULED || (room && !uncounted && !is_full(taking) && !(keyed && taking->put_back)))
    return false;
  if (uncounted) {
    leases_worry(s->leases, task->shard);
    s->view[task->shard].cautious = true;
    s->calm_count[task->shard] = 0;
  }
  if (task->due_us > taking->reading->due_until_us) {
    read_again_when_due(s, group, task);
  } else if (task->recoveries > 0 || is_full(taking) || (keyed && taking->put_back)) {
    lane_sweep(group);
    order_reserve(&lane->order, task); /* its turn stays, whatever is read before it is met again */
    (void)order_missed(&lane->order, task->id, true);
  } else {
    return false;
  }
  taking->put_back = true;
  return true;
}

/* Somebody asks for another shard or host. The row goes there when nothing of it is out and its turn has come, instead
 * of to its destination: whoever reads it next cannot meet a copy of ours, nor overtake one of its order_key. It is the
 * head of that from then on, so that nobody overtakes it where it was. */
static void move(struct scheduler *s, struct group *group, struct task *task, struct taking *taking) {
  struct lane *lane = group->lane;
  if (!order_may_go(&lane->order, task)) {
    if (order_wait(&lane->order, task))
      lane_sweep_first(lane);
    task_release(task);
    return;
  }
  bool keyed = task->order_key.len > 0, waits = keyed && put_back(s, group, task, taking);
  struct flight *flight = waits ? NULL : reader_begin_flight(s, lane, group, task, taking->reading->began_us);
  if (!flight) {
    waits ? task_release(task) : leave_in_table(lane, task);
    return;
  }
  task->attempt_now = task->attempt;
  flight->in_order = keyed && order_enter(&lane->order, flight);
  reader_end_flight(flight, keyed && !flight->in_order ? FLIGHT_UNSENT : FLIGHT_MOVES, NULL, NULL, &taking->ended);
}

/* What becomes of a row: it takes off, is given back to the table, or is noted as large. */
static void judge_row(struct scheduler *s, struct group *group, struct task *task, struct taking *taking) {
  bool fresh = task->state == TASK_SCHEDULED;
  if (task->unreadable) {
    refuse(s, group, task, taking);
  } else if (!fresh &&
             (order_blocked(&group->lane->order, task) || must_wait(s, group->lane, task) || left_out(s, task))) {
    hand_back(s, group->lane, group, task, taking); /* plain SQL changed it between reading and claiming */
  } else if (fresh && order_blocked(&group->lane->order, task)) {
    block(s, group, task, taking);
  } else if (fresh && task->moves) {
    move(s, group, task, taking);
  } else if (fresh && (must_wait(s, group->lane, task) || put_back(s, group, task, taking))) {
    task_release(task);
  } else if (left_out(s, task)) {
    order_reserve(&group->lane->order, task);
    size_t n = taking->large_count++;
    taking->large[n].id = task->id;
    taking->large[n].bytes = task_size(task);
    taking->large[n].shard = task->shard;
    task_release(task);
  } else {
    take_off(s, group, task, taking);
  }
}

/* Whether it has no turn here any more: plain SQL has given it to another route since we knew its id, or to another
 * order_key; or the id is another task's by now. To the database the route 'a ' is 'a': such a row is a misfit of this
 * lane, and ends here. */
static bool lost_turn(struct lane *lane, const struct task *task) {
  size_t len = task->route.len;
  while (len > 0 && task->route.data[len - 1] == ' ')
    len--;
  bool same_route = len == strlen(lane->name) && memcmp(task->route.data, lane->name, len) == 0;
  bool sweep = same_route ? order_changed(&lane->order, task) : order_missed(&lane->order, task->id, false);
  if (sweep)
    lane_sweep_first(lane);
  return !same_route || sweep;
}

static void take_batch(struct scheduler *s, struct taking *taking, struct task_batch *batch) {
  struct lane *lane = taking->reading->lane;
  struct driver *driver = lane->driver;
  struct group *group = NULL;
  size_t rows = batch->count;
  taking->now_us = clock_mono_us();
  taking->apart = lane_holds_much(lane);
  task_batch_count(batch, &lane->held_bytes);
  for (size_t i = 0; i < rows; i++) {
    struct task *task = &batch->tasks[i]; /* the batch may be gone with its last task: no look at it after that */
    if (!group || group->shard != task->shard || group->priority != task->priority)
      group = lane_group(lane, task->shard, task->priority, true);
    bool ours = group && !lost_turn(lane, task), in_flight = flight_of(s->flights, task) != NULL;
    if (ours && !in_flight)
      judge_row(s, group, task, taking);
    else if (!in_flight && task->state == TASK_CLAIMED)
      hand_back(s, lane, NULL, task, taking);
    else
      task_release(task);
  }
  if (taking->out.head)
    driver_push(driver, &taking->out);
  mailbox_put(s->settler, &taking->ended);
}

/* Reads large rows one after the other, as far as the byte credit goes (one in any case where nothing is
 * in flight) and time, for other routes wait meanwhile; the sweep, or their order, brings the others again. */
static void take_large(struct scheduler *s, struct taking *taking) {
  struct lane *lane = taking->reading->lane;
  const struct engine_config *engine = &s->config->config->engine;
  const struct store_limit limit = {.payload = engine->max_payload, .bytes = INT64_MAX};
  size_t large = taking->large_count;
  int64_t until_us = clock_mono_us() + LARGE_US;
  taking->large_count = 0;
  for (size_t i = 0; i < large; i++) {
    uint64_t id = taking->large[i].id;
    uint8_t shard = taking->large[i].shard;
    struct task_batch *batch = NULL;
    struct err err = {0};
    bool fits = s->retry_wait_us == 0 && !is_full(taking) && (i == 0 || clock_mono_us() < until_us) &&
                lane_fits(lane, taking->large[i].bytes);
    if (fits)
      fits = scheduler_db_ok(s,
                             s->store->ops->read_ids(s->ss, TASK_SCHEDULED, shard_bit(shard), scheduler_host(s, shard),
                                                     &id, 1, AHEAD_MAX_US + AHEAD_MARGIN_US, limit, &batch, &err),
                             &err);
    if (!fits)
      lane_sweep_shard(lane, shard);
    if (batch) {
      count(&s->metrics->rows_read, batch->count);
      take_batch(s, taking, batch);
    }
    reader_settle_turns(s, lane, &id, 1);
  }
}

/* What becomes of a row that is not to be claimed. */
static void end_unclaimed(struct scheduler *s, struct group *group, struct task *task, bool blocked,
                          struct taking *taking) {
  if (task->unreadable)
    refuse(s, group, task, taking);
  else if (blocked)
    block(s, group, task, taking);
  else
    move(s, group, task, taking);
}

/* Of rows that were read without payloads, the ids to claim: those that need not wait, as many as the byte credit buys.
 */
static size_t choose_claims(struct scheduler *s, struct taking *taking, struct task_batch *batch, uint64_t *ids,
                            char (*message_ids)[STORE_ID_MAX + 1], struct held_place *places) {
  struct lane *lane = taking->reading->lane;
  size_t wanted = 0, rows = batch->count;
  uint64_t untried = 0;
  bool ended[READ_MAX] = {false};
  bool alone;
  int64_t credit = lane_bytes(lane, &alone), bytes_chosen = 0, largest = 0;
  struct suspects suspects = lane->suspects; /* as they are when those chosen have left */
  bool last_chance = s->last_chance;
  const int64_t now_us = scheduler_db_now_us(s) + AHEAD_MAX_US + AHEAD_MARGIN_US; /* as claims take them */
  for (size_t i = 0; i < rows; i++) {
    struct task *task = &batch->tasks[i];
    int64_t bytes = task_size(task);
    if (flight_of(s->flights, task) || lost_turn(lane, task))
      continue;
    bool blocked = order_blocked(&lane->order, task);
    bool ends = task->unreadable || blocked || task->moves;
    struct group *group = ends ? lane_group(lane, task->shard, task->priority, true) : NULL;
    ended[i] = group != NULL;
    if (ended[i])
      end_unclaimed(s, group, task, blocked, taking);
    if (ended[i] || task->unreadable || must_wait(s, lane, task))
      continue;
    /* It never leaves. A claim would write all of it twice, while every route waits for this thread. */
    group = reader_too_large(s, task) ? lane_group(lane, task->shard, task->priority, true) : NULL;
    ended[i] = group != NULL;
    if (ended[i]) {
      take_off(s, group, task, taking);
      continue;
    }
    order_reserve(&lane->order, task);
    bool first = wanted == 0 && alone;
    int64_t larger = bytes > largest ? bytes : largest; /* each has the same share of the answer */
    bool room = wanted == 0 || (bytes_chosen + bytes <= CLAIM_BYTES && wanted < taking->reading->most &&
                                (int64_t)(wanted + 1) * larger <= STORE_ANSWER_BYTES);
    enum suspicion suspicion = scheduler_suspicion(s, task);
    if (!room || (credit < bytes && !first) || !suspects_may_go(&suspects, suspicion, last_chance)) {
      lane_sweep_shard(lane, task->shard);
      (void)order_missed(&lane->order, task->id, true);
      untried = untried ? untried : task->id;
      continue;
    }
    untried = 0;
    ids[wanted] = task->id;
    places[wanted] = (struct held_place){task->due_us, now_us, task->shard, task->priority};
    snprintf(message_ids[wanted++], sizeof *message_ids, "%s", task->message_id.data);
    bytes_chosen += bytes;
    largest = larger;
    credit -= bytes;
    suspects_went(&suspects, suspicion, &last_chance);
  }
  for (size_t i = 0; i < rows; i++)
    if (!ended[i])
      task_release(&batch->tasks[i]);
  mailbox_put(s->settler, &taking->ended);
  if (taking->reading->untried)
    *taking->reading->untried = wanted ? untried : 0;
  return wanted;
}

/* Rows that are to be claimed. */
struct chosen {
  const uint64_t *ids;
  const char (*message_ids)[STORE_ID_MAX + 1];
  const struct held_place *places;
  size_t count;
};

/* Notes which tasks the claim has got. */
static void follow_held(struct scheduler *s, struct lane *lane, const struct chosen *chosen) {
  struct held_claim *held = &lane->held_claim;
  int64_t now = clock_mono_us();
  mutex_lock(&s->lanes_lock);
  for (size_t i = 0; i < chosen->count; i++)
    if (flight_by_id(s->flights, chosen->ids[i]))
      held_claim_got(held, chosen->ids[i]);
    else
      held_claim_met(held, chosen->ids[i], chosen->message_ids[i], &chosen->places[i], now);
  mutex_unlock(&s->lanes_lock);
  if (held_claim_age_us(held, now) > HELD_SAID_US)
    log_repeated(&s->claims_held, LOG_LEVEL_WARN, "DUEBOX-CLAIM-HELD",
                 "route=%s message_id=%s is due and cannot be claimed: each try has met a lock on its row, or on the "
                 "place of its entry in an index; look for transactions that are open for long; where there are none "
                 "the server is slow",
                 lane->name, held->message_id);
}

/* Claims in the table, and hands out what was claimed. Busy is about these rows, not about the database. */
static enum store_status claim_once(struct scheduler *s, struct taking *taking, const struct chosen *chosen,
                                    struct err *err) {
  const struct reading *reading = taking->reading;
  struct lane *lane = reading->lane;
  const struct engine_config *engine = &s->config->config->engine;
  struct task_batch *batch = NULL;
  uint64_t lost = 0;
  int64_t bytes = chosen->count == 1 ? INT64_MAX : STORE_ANSWER_BYTES / (int64_t)chosen->count;
  const struct store_claim claim = {.instance = s->instance,
                                    .route = lane->name,
                                    .host = engine->instance,
                                    .leases = reading->leases,
                                    .lease_count = reading->lease_count,
                                    .ids = chosen->ids,
                                    .message_ids = chosen->message_ids,
                                    .count = chosen->count,
                                    .timeout_ms = lane->route->timeout_ms,
                                    .timeout_most_ms = route_timeout_most_ms(lane->route),
                                    .lease_ms = engine->lease_ms,
                                    .ahead_us = AHEAD_MAX_US + AHEAD_MARGIN_US,
                                    .limit = {engine->max_payload, bytes},
                                    .wary = lane_is_wary(lane)};
  enum store_status status = s->store->ops->claim(s->ss, &claim, &batch, &lost, err);
  if (status != STORE_BUSY && status != STORE_REFUSED && !scheduler_db_ok(s, status, err))
    for (size_t i = 0; i < reading->lease_count; i++)
      s->claims_unknown |= shard_bit(reading->leases[i].shard);
  for (size_t i = 0; lost && i < reading->lease_count; i++)
    if (lost & shard_bit(reading->leases[i].shard))
      s->shard_lost(s->engine, &reading->leases[i]);
  if (batch) {
    count(&lane->metrics.events[EVENT_CLAIM], batch->count);
    take_batch(s, taking, batch);
  }
  bool all = true;
  for (size_t i = 0; i < chosen->count; i++)
    all = all && flight_by_id(s->flights, chosen->ids[i]);
  if (status != STORE_REFUSED || chosen->count == 1) /* of more it may refuse another one */
    follow_held(s, lane, chosen);
  /* Held by somebody, changed meanwhile, or not claimed at all: the next reading tells. */
  for (size_t j = 0; !all && j < reading->lease_count; j++)
    lane_sweep_shard(lane, reading->leases[j].shard);
  reader_settle_turns(s, lane, chosen->ids, chosen->count);
  return status;
}

/* Finding out which rows the server refuses to claim. */
struct search {
  unsigned claims;      /* that may still be tried */
  unsigned from, depth; /* bits: which half comes first, at which depth */
  size_t rows;          /* that were refused by themselves */
  bool none;            /* no claim has passed */
  struct err err;
};

/* A claim that the server refuses is tried by halves, down to the rows that it is about: the others are claimed. When
 * it refuses some rows and has let none pass it is mostly not about rows. What is left is met again: another half comes
 * first then. */
static void claim_by_halves(struct scheduler *s, struct taking *taking, const struct chosen *chosen,
                            struct search *search) {
  if (search->claims == 0 || (search->none && search->rows >= REFUSED_ROWS))
    return;
  search->claims--;
  enum store_status status = claim_once(s, taking, chosen, &search->err);
  search->none = search->none && status != STORE_OK;
  if (status != STORE_REFUSED)
    return;
  if (chosen->count == 1) {
    search->rows++;
    log_repeated(&s->claim_refusals, LOG_LEVEL_ERROR, "DUEBOX-CLAIM-REFUSED",
                 "route=%s message_id=%s its claim is refused, and tried again: %s", taking->reading->lane->name,
                 chosen->message_ids[0], search->err.text);
    return;
  }
  size_t half = chosen->count / 2;
  const struct chosen halves[] = {
      {chosen->ids, chosen->message_ids, chosen->places, half},
      {chosen->ids + half, chosen->message_ids + half, chosen->places + half, chosen->count - half}};
  unsigned first = search->from >> search->depth & 1;
  search->depth++;
  claim_by_halves(s, taking, &halves[first], search);
  if (s->retry_wait_us == 0)
    claim_by_halves(s, taking, &halves[!first], search);
  search->depth--;
}

static void claim_and_take(struct scheduler *s, struct taking *taking, const struct chosen *chosen) {
  struct lane *lane = taking->reading->lane;
  struct search search = {.claims = CLAIMS_MAX, .from = lane->refused_claims.turns++, .none = true};
  int64_t began = clock_mono_us();
  claim_by_halves(s, taking, chosen, &search);
  bool all = search.none && search.rows >= REFUSED_ROWS;
  if (all)
    log_repeated(&s->trouble, LOG_LEVEL_ERROR, "DUEBOX-DB-REFUSED", "%s", search.err.text);
  lane_note_claims(lane, search.rows > 0, all, began, clock_mono_us());
}

static bool any_bound_key(const struct task_batch *batch) {
  for (size_t i = 0; i < batch->count; i++)
    if (batch->tasks[i].shard == SHARD_BOUND && batch->tasks[i].order_key.len > 0)
      return true;
  return false;
}

size_t reader_take(struct scheduler *s, const struct reading *reading, struct task_batch *batch) {
  if (!batch)
    return 0;
  count(&s->metrics->rows_read, batch->count);
  if (any_bound_key(batch) && !scheduler_note_elsewhere(s, reading->lane)) {
    reader_give_up(batch);
    for (size_t i = 0; i < reading->lease_count; i++) /* they are behind the cursors by now */
      lane_sweep_shard(reading->lane, reading->leases[i].shard);
    return 0;
  }
  UNFILLED struct taking taking;
  taking.reading = reading;
  taking.out = taking.ended = (struct flight_list){0};
  taking.large_count = taking.taken = 0;
  taking.apart = taking.put_back = taking.too_large = false;
  if (reading->recorded) {
    UNFILLED uint64_t ids[READ_MAX];
    UNFILLED char message_ids[READ_MAX][STORE_ID_MAX + 1];
    UNFILLED struct held_place places[READ_MAX];
    const struct chosen chosen = {ids, (const char(*)[STORE_ID_MAX + 1]) message_ids, places,
                                  choose_claims(s, &taking, batch, ids, message_ids, places)};
    if (chosen.count)
      claim_and_take(s, &taking, &chosen);
  } else {
    take_batch(s, &taking, batch);
    take_large(s, &taking);
  }
  if (taking.too_large)
    lane_note_too_large(reading->lane, reading->began_us, clock_mono_us());
  return taking.taken;
}
