/* SPDX-License-Identifier: MIT */
#include "core/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/realtime.h"

enum {
  DB_RETRY_MIN_US = 50 * 1000,
  DB_RETRY_MAX_US = 5 * 1000 * 1000,
  LOOK_AVERAGE = 8,         /* looks that the average of their cost remembers */
  LOOK_SHARE = 20,          /* looking may take this part of the time at most: 1/20 */
  KEPT_STEP_US = 10 * 1000, /* how soon to ask again about a route that may go and has no room */
  WAKE_STEP_US = 200,       /* woken a little early: how soon to ask again */
  NOTE_SLICE_US = 20 * 1000,
  TAKE_BACK_AGAIN_US = 5 * 1000, /* until the next page of claims is taken back */
};

bool scheduler_db_ok(struct scheduler *s, enum store_status status, const struct err *err) {
  set_gauge(&s->db_answers, status == STORE_OK || status == STORE_BUSY);
  if (status == STORE_OK) {
    if (s->retry_wait_us > DB_RETRY_MIN_US) {
      log_info("DUEBOX-DB-BACK", "the database answers again");
      s->trouble = (struct log_repeat){0};
    }
    s->retry_wait_us = 0;
    return true;
  }
  count(&s->metrics->db_errors, 1);
  s->pace = (struct poll_pace){0}; /* another server, perhaps */
  s->retry_wait_us = s->retry_wait_us ? s->retry_wait_us * 2 : DB_RETRY_MIN_US;
  if (s->retry_wait_us > DB_RETRY_MAX_US)
    s->retry_wait_us = DB_RETRY_MAX_US;
  s->retry_at_us = clock_mono_us() + s->retry_wait_us;
  if (status == STORE_REFUSED)
    log_repeated(&s->trouble, LOG_LEVEL_ERROR, "DUEBOX-DB-REFUSED", "%s", err->text);
  else
    log_repeated(&s->trouble, LOG_LEVEL_WARN, "DUEBOX-DB-TROUBLE", "%s", err->text);
  return false;
}

static void show_due(struct lane *lane, int64_t due_us) {
  int64_t oldest = gauge_value(&lane->metrics.oldest_due_us);
  if (due_us > 0 && due_us != STORE_MOVES_US && (oldest == 0 || due_us < oldest))
    set_gauge(&lane->metrics.oldest_due_us, due_us);
}

struct group *scheduler_note_group(struct scheduler *s, struct lane *lane, const struct store_group *found,
                                   int64_t db_now_us) {
  uint64_t epoch = scheduler_epoch(s, lane, found->shard);
  if (!epoch && found->next_us <= db_now_us)
    show_due(lane, found->next_us);
  struct group *group = epoch ? lane_group(lane, found->shard, found->priority, true) : NULL;
  if (!group)
    return NULL; /* not to be read, or no memory now; the next look tries again */
  if (group->epoch != epoch) {
    group->epoch = epoch;
    lane_restart(group);
    group->due = false;
  }
  group->seen = s->look;
  const int64_t now = clock_mono_us();
  bool due = found->next_us <= db_now_us, rests = found->shard == SHARD_BOUND && now < group->bound_at_us;
  s->busy = s->busy || (due && found->next_us > group->cursor.next_us && group->next_us > db_now_us);
  group->next_us = due && rests ? group->next_us : found->next_us;
  group->low_us = found->next_us;
  if (!due)
    return group;
  group->due = group->due || !rests;
  /* In-flight rows are behind the cursor too, and those of other hosts; only the sweep tells them from late ones.
   * Reading beyond the cursor finds none of these, so that it rests says nothing of them. */
  if (!group->sweep && found->next_us <= group->cursor.next_us && now >= group->sweep_at_us)
    lane_sweep(group);
  show_due(lane, found->next_us);
  return group;
}

static bool is_known(const struct scheduler *s, const char *route) {
  return config_route(s->config->config, route, strlen(route)) != NULL;
}

static void note(struct scheduler *s, const struct store_group *found, int64_t db_now_us) {
  struct lane *lane = scheduler_lane_make(s, found->route);
  if (!lane)
    return;
  if (found->state == TASK_SCHEDULED && lane->route)
    (void)scheduler_note_group(s, lane, found, db_now_us);
  else if (atomic_load(&s->on_hold))
    return; /* it is shown, and all others would be moved */
  else if (found->state == TASK_CLAIMED)
    s->bound_claims = s->bound_claims || found->shard == SHARD_BOUND;
}

/* Shards that may be read now: ours, not shut, lease safe. */
static size_t readable_shards(struct scheduler *s, struct shard_lease out[STORE_SHARDS_MAX]) {
  struct instant now = clock_instant();
  size_t n = 0;
  for (int i = 0; i < STORE_SHARDS_MAX; i++)
    if (s->view[i].epoch && s->view[i].stage != LEASE_SHUT && leases_safe(s->leases, (uint8_t)i, s->view[i].epoch, now))
      out[n++] = (struct shard_lease){.shard = (uint8_t)i, .epoch = s->view[i].epoch, .owner = s->instance};
  return n;
}

/* Keeps the groups of overdue claims and results: they are ended a few rows at a time, until the next look at every
 * group. */
static void keep_overdue(struct scheduler *s, const struct store_group *groups, size_t count, int64_t db_now_us) {
  size_t n = 0;
  for (size_t i = 0; i < count; i++)
    n += (groups[i].state == TASK_CLAIMED || groups[i].state == TASK_AWAITING) && groups[i].next_us <= db_now_us;
  free(s->overdue);
  s->overdue = n ? malloc(n * sizeof *s->overdue) : NULL;
  s->overdue_count = 0;
  for (size_t i = 0; s->overdue && i < count; i++)
    if ((groups[i].state == TASK_CLAIMED || groups[i].state == TASK_AWAITING) && groups[i].next_us <= db_now_us)
      s->overdue[s->overdue_count++] = groups[i];
}

/* Known routes first: they cost no statement. What is blocked, and overdue claims and results, may take a statement
 * each, so each of these kinds gets a slice of time; what is left is met at a later look. */
static void note_all(struct scheduler *s, const struct store_group *groups, size_t count, int64_t db_now_us) {
  int64_t deadline = clock_mono_us() + NOTE_SLICE_US;
  for (size_t i = 0; i < count; i++)
    if (groups[i].state == TASK_SCHEDULED && is_known(s, groups[i].route))
      note(s, &groups[i], db_now_us);
  size_t noted = 0;
  for (; noted < count && s->retry_wait_us == 0 && clock_mono_us() < deadline; noted++) {
    const struct store_group *group = &groups[(noted + s->look) % count]; /* each is first at some look */
    if (group->state != TASK_SCHEDULED)
      note(s, group, db_now_us);
  }
  if (noted < count)
    s->busy = true; /* order_keys may wait for the others */
  keep_overdue(s, groups, count, db_now_us);
  scheduler_overdue(s);
  scheduler_note_unknown(s, groups, count, db_now_us);
}

/* Of each lane only a task that claims failed to get is known to be due, if it is still there. */
static void clear_oldest(struct scheduler *s, const struct store_group *groups, size_t count) {
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (lane->held_claim.id && !held_claim_found(&lane->held_claim, lane->name, groups, count)) {
      mutex_lock(&s->lanes_lock);
      held_claim_forget(&lane->held_claim);
      mutex_unlock(&s->lanes_lock);
    }
    lane_clear_oldest(lane);
  }
}

/* Groups may lie in the session's memory, and what follows uses the session: they are copied first. */
static struct store_group *copy_groups(const struct store_group *groups, size_t count) {
  struct store_group *copy = count ? malloc(count * sizeof *copy) : NULL;
  if (copy)
    memcpy(copy, groups, count * sizeof *copy);
  return copy;
}

/* What a look at every group takes does not count where it is rare. */
static void plan_next_look(struct scheduler *s, bool counts, int64_t began_us, int64_t ended_us) {
  const struct engine_config *engine = &s->config->config->engine;
  int64_t least = engine->poll_min_ms * 1000, most = engine->poll_max_ms * 1000;
  s->look_every_us = s->busy || !s->look_every_us ? least : s->look_every_us * 2;
  s->look_cost_us += counts ? (ended_us - began_us - s->look_cost_us) / LOOK_AVERAGE : 0;
  if (s->look_every_us < s->look_cost_us * LOOK_SHARE)
    s->look_every_us = s->look_cost_us * LOOK_SHARE;
  if (s->look_every_us > most)
    s->look_every_us = most;
  s->busy = false;
  s->look_at_us = (engine->poll_mode == POLL_FIXED_RATE ? began_us : ended_us) + s->look_every_us;
}

void scheduler_look_soon(struct scheduler *s) {
  s->look_at_us = 0;
  s->look_soon = true;
  s->pace.asked = true;
}

/* Whether claims are to be taken back, as far as the shards are ours. */
static bool any_claims_left(const struct scheduler *s) {
  uint64_t shards = s->claims_lost | s->claims_unknown;
  for (int i = 0; shards && i < STORE_SHARDS_MAX; i++)
    if (shards & shard_bit((uint8_t)i) && s->view[i].epoch)
      return true;
  return false;
}

static void look_at_known(struct scheduler *s, const struct shard_lease *leases, size_t count) {
  int64_t began = clock_mono_us();
  if (!scheduler_poll_known(s, leases, count) || !scheduler_probe(s, leases, count) || !scheduler_heads(s))
    return;
  scheduler_overdue(s);
  if (s->retry_wait_us == 0)
    scheduler_take_back(s, leases, count);
  scheduler_held(s, leases, count);
  plan_next_look(s, true, began, clock_mono_us());
  if (any_claims_left(s))
    s->look_at_us = clock_mono_us() + TAKE_BACK_AGAIN_US;
  s->look_at_us = earlier(s->look_at_us, scheduler_heads_awaited_at(s));
}

static void forget_what_is_gone(struct scheduler *s) {
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    lane_forget_groups(lane, s->look); /* and tells what remains */
  scheduler_forget_routes(s, false);
}

/* What this look has begun goes on before the next one would be. */
static void look_sooner(struct scheduler *s, int64_t ended_us) {
  if (s->look_soon)
    s->look_at_us = 0;
  else if (any_claims_left(s))
    s->look_at_us = ended_us + TAKE_BACK_AGAIN_US;
  else if (s->held_more)
    s->look_at_us = earlier(s->look_at_us, s->held_at_us);
  s->look_at_us = earlier(s->look_at_us, scheduler_heads_awaited_at(s));
}

/* No shard is to be read: whether the database answers is to be known all the same. */
static void look_at_nothing(struct scheduler *s, int64_t began) {
  int64_t db_now;
  struct err err = {0};
  if (!gauge_value(&s->db_answers) && !scheduler_db_ok(s, s->store->ops->now(s->ss, &db_now, &err), &err))
    return;
  plan_next_look(s, true, began, clock_mono_us());
  s->retry_at_us = s->look_at_us;
  set_gauge(&s->reading_since_us, 0);
  scheduler_return_seen(s, NULL, 0, NULL, 0); /* what is blocked is another daemon's to tell of */
  scheduler_forget_routes(s, true);
}

static void look(struct scheduler *s) {
  struct shard_lease leases[STORE_SHARDS_MAX];
  size_t held = readable_shards(s, leases);
  int64_t began = clock_mono_us(), db_now = 0;
  const struct store_group *found = NULL;
  size_t count = 0;
  struct err err = {0};
  atomic_store(&s->look_now, false);
  s->look_soon = false;
  if (held == 0) {
    look_at_nothing(s, began);
    return;
  }
  if (!atomic_load(&s->on_hold) && !poll_every_group(&s->pace, began)) {
    look_at_known(s, leases, held);
    return;
  }
  /* Held rows may be of any number of routes: they are asked for by themselves. */
  const struct store_look what = {.leases = leases,
                                  .lease_count = held,
                                  .states = TASK_BIT(TASK_SCHEDULED) | TASK_BIT(TASK_CLAIMED) |
                                            TASK_BIT(TASK_AWAITING) | TASK_BIT(TASK_BLOCKED)};
  scheduler_return_begin(s);
  enum store_status status = s->store->ops->look(s->ss, &what, &found, &count, &db_now, &err);
  if (!scheduler_db_ok(s, status, &err))
    return;
  int64_t ended = clock_mono_us();
  poll_done(&s->pace, true, 1, began, ended);
  s->look++;
  scheduler_track_clock(s, db_now, began, ended);
  set_gauge(&s->metrics->db_round_trip_us, ended - began);
  struct store_group *groups = copy_groups(found, count);
  if (!scheduler_heads(s)) {
    free(groups);
    return;
  }
  if (groups)
    count = scheduler_end_misfits(s, groups, count);
  if (groups || count == 0) {
    scheduler_return_seen(s, groups, count, leases, held);
    clear_oldest(s, groups, count); /* what is due is noted at once: nobody sees that there is nothing */
  }
  note_all(s, groups, groups ? count : 0, db_now);
  free(groups);
  if (s->retry_wait_us == 0 && !atomic_load(&s->on_hold))
    scheduler_take_back(s, leases, held);
  if (!atomic_load(&s->on_hold))
    scheduler_held(s, leases, held);
  if (s->retry_wait_us == 0 && !atomic_load(&s->on_hold))
    scheduler_unblock(s);
  scheduler_return_end(s);
  forget_what_is_gone(s);
  plan_next_look(s, !poll_is_dear(&s->pace), began, ended);
  look_sooner(s, ended);
}

/* When to wake: the next task to be sent, the next look, the next due time that is known, or a lane that gets credit by
 * time alone. */
static int64_t next_deadline(struct scheduler *s) {
  int64_t now = clock_mono_us(), sends = earlier(scheduler_sends_at(s), s->leave_at_us);
  if (atomic_load(&s->draining))
    return earlier(sends, now + 1000 * 1000);
  if (s->retry_wait_us)
    return earlier(sends, s->retry_at_us);
  if (atomic_load(&s->on_hold))
    return earlier(s->look_at_us, s->leave_at_us);
  if (s->read_more)
    return now;
  int64_t deadline = earlier(earlier(earlier(sends, scheduler_hints_at(s)), s->look_at_us), s->expire_at_us);
  deadline = earlier(deadline, earlier(scheduler_holds_at(s), s->unblock_at_us));
  int64_t offset = atomic_load_explicit(&s->db_offset_us, memory_order_relaxed) + s->ahead_us;
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (scheduler_credit(s, lane, now) == 0) {
      int64_t wakes = lane_wakes_at(lane, now);
      deadline = earlier(deadline, wakes > now ? wakes : now + KEPT_STEP_US); /* something else keeps it */
      continue;
    }
    if (lane_must_sweep(lane) && !lane_swept_group(lane))
      continue; /* that rests, and nothing else is read before */
    int64_t calls_at = order_calls_at(&lane->order);
    if (calls_at != INT64_MAX)
      deadline = earlier(deadline, later(calls_at - offset, now + WAKE_STEP_US));
    if (lane->order.called)
      deadline = earlier(deadline, later(lane->call_at_us, now + WAKE_STEP_US));
    for (struct group *group = lane->groups; group; group = group->next) {
      if (group->next_us == INT64_MAX || !group->readable)
        continue;
      int64_t rests_until = group->rests ? group->rest_until_us : 0;
      deadline = earlier(deadline, later(later(group->next_us - offset, rests_until), now + WAKE_STEP_US));
    }
  }
  return deadline;
}

/* Looks and reads what is due. While that fails, tasks become due that no look tells of: they are shown as far as they
 * are known. */
static void look_and_read(struct scheduler *s) {
  if (gauge_value(&s->reading_since_us) == 0)
    set_gauge(&s->reading_since_us, clock_mono_us());
  if (s->retry_wait_us || clock_mono_us() >= s->look_at_us || atomic_load(&s->look_now))
    look(s); /* after trouble too: it is what tells that the database is back */
  if (s->retry_wait_us == 0 && s->known_settings && !atomic_load(&s->on_hold))
    scheduler_read(s);
  if (s->retry_wait_us == 0) {
    set_gauge(&s->reading_since_us, 0);
    return;
  }
  int64_t db_now = scheduler_db_now_us(s);
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    for (const struct group *group = lane->groups; group; group = group->next)
      if (group->next_us <= db_now)
        show_due(lane, group->next_us);
}

static void tick(struct scheduler *s) {
  scheduler_send_due(s);
  scheduler_configure(s);
  scheduler_follow_leases(s);
  scheduler_run_commands(s);
  scheduler_watch_flights(s);
  scheduler_follow_plugins(s);
  scheduler_follow_stalls(s);
  if (atomic_load(&s->draining)) {
    atomic_store(&s->resting, true);
    return;
  }
  if (s->retry_wait_us && clock_mono_us() < s->retry_at_us)
    return;
  bool on_hold = atomic_load(&s->on_hold);
  if (!on_hold)
    scheduler_take_hints(s);
  s->pace.asked = s->pace.asked || atomic_load(&s->look_now);
  look_and_read(s);
  if (on_hold)
    return;
  if (s->retry_wait_us == 0)
    scheduler_expire(s);
  if (s->retry_wait_us == 0)
    scheduler_hold(s);
  if (s->retry_wait_us == 0 && clock_mono_us() >= s->unblock_at_us) {
    scheduler_unblock(s);
    scheduler_return_end(s);
  }
  scheduler_check_hints(s);
  scheduler_send_due(s);
}

static bool open_session(struct scheduler *s) {
  struct err err = {0};
  while (s->store->ops->open(s->store->self, "scheduler", 0, &s->ss, &err) == STORE_REFUSED) {
    (void)scheduler_db_ok(s, STORE_REFUSED, &err);
    struct flight_list none = {0};
    mailbox_take(&s->in, s->retry_at_us, &none);
    if (atomic_load(&s->stopping) || atomic_load(&s->draining))
      return false;
    scheduler_refuse_commands(s);
  }
  return true;
}

static void run(void *arg) {
  struct scheduler *s = arg;
  realtime_thread(s->realtime, "scheduler");
  realtime_punctual();
  if (!open_session(s)) {
    atomic_store(&s->resting, true);
    return;
  }
  struct flight_list settled = {0};
  while (!atomic_load(&s->stopping)) {
    tick(s);
    mailbox_take(&s->in, next_deadline(s), &settled);
    scheduler_arrivals(s, &settled);
  }
  mailbox_take(&s->in, 0, &settled);
  flight_list_join(&settled, &s->early); /* never sent: they stay in the table */
  scheduler_arrivals(s, &settled);
  s->store->ops->close(&s->ss);
}

bool scheduler_start(struct scheduler *s, struct err *err) {
  mutex_init(&s->ask_lock);
  mutex_init(&s->lanes_lock);
  mutex_init(&s->hints.lock);
  cond_init(&s->answered);
  atomic_store(&s->db_offset_us, clock_wall_us() - clock_mono_us());
  s->next_config = s->config;
  s->config = NULL;
  scheduler_configure(s);
  s->accepts = true;
  if (thread_start(&s->thread, "scheduler", run, s))
    return true;
  s->accepts = false;
  return err_set(err, 0, "no thread for the scheduler: the process limit is reached");
}

void scheduler_poke(struct scheduler *s) {
  atomic_store(&s->look_now, true);
  mailbox_poke(&s->in);
}

void scheduler_drain(struct scheduler *s) {
  atomic_store(&s->draining, true);
  mailbox_poke(&s->in);
}

void scheduler_stop(struct scheduler *s) {
  mutex_lock(&s->ask_lock);
  s->accepts = false;
  mutex_unlock(&s->ask_lock);
  atomic_store(&s->stopping, true);
  mailbox_poke(&s->in);
  thread_join(&s->thread);
  scheduler_refuse_commands(s);
}

void scheduler_free(struct scheduler *s) {
  HASH_CLEAR(hh, s->by_name);
  while (s->lanes) {
    struct lane *lane = s->lanes;
    s->lanes = lane->next;
    for (struct group *group = lane->groups; group;) {
      struct group *next = group->next;
      free(group);
      group = next;
    }
    order_free(&lane->order);
    targets_clear(&lane->targets, &s->target_count);
    config_ref_drop(lane->config);
    free(lane);
  }
  free(s->found);
  free(s->overdue);
  free(s->unknown);
  config_ref_drop(s->config);
  config_ref_drop(s->next_config);
  free(s->settings);
  free(s->known_settings);
  cond_destroy(&s->answered);
  mutex_destroy(&s->ask_lock);
  mutex_destroy(&s->lanes_lock);
}
