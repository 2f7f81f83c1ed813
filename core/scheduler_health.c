/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_health.c - what outcomes say about destinations: of a plugin instance, of a route, or of one target of
 * a route.
 *
 * Evidence about one target never suspends another, nor the route. Rows of a suspended target are put back with a later
 * due time, so that the others of the route flow.
 *
 * @thread scheduler
 */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/reader.h"
#include "core/rules.h"

static int64_t concurrency(const struct lane *lane) { return lane->route ? lane->route->concurrency : 0; }

static struct health_trouble trouble_of(const struct flight *flight) {
  const struct duebox_outcome *outcome = &flight->outcome;
  return (struct health_trouble){.error_class = outcome->error_class,
                                 .message = outcome->message,
                                 .row = flight->id,
                                 .retry_after_ms = outcome->retry_after_ms};
}

/* --- routes --- */

static void log_suspended(const struct lane *lane, const struct flight *flight) {
  log_warn("DUEBOX-ROUTE-SUSPENDED",
           "route=%s message_id=%s its destination is in trouble, probing from time to time: %s", lane->name,
           flight->task->view.message_id, lane->health.reason);
}

static void log_resumed(const struct lane *lane) {
  log_info("DUEBOX-ROUTE-RESUMED", "route=%s its destination answers again", lane->name);
}

void scheduler_forget_trouble(struct scheduler *s, struct lane *lane) {
  bool was = health_suspended(&lane->health);
  mutex_lock(&s->lanes_lock);
  lane->health = (struct health){0};
  lane->instance_down = false;
  targets_clear(&lane->targets, &s->target_count);
  lane_limit(lane);
  mutex_unlock(&s->lanes_lock);
  if (was)
    log_info("DUEBOX-ROUTE-RESUMED", "route=%s it is tried anew, since it leads elsewhere or somebody resumed it",
             lane->name);
}

static void suspend_lane(struct scheduler *s, struct lane *lane, const struct flight *flight) {
  const struct health_trouble trouble = trouble_of(flight);
  mutex_lock(&s->lanes_lock);
  bool fresh = health_down(&lane->health, &trouble, clock_mono_us());
  lane->instance_down = flight->outcome.scope == DUEBOX_SCOPE_INSTANCE;
  if (fresh && lane->driver)
    lane->ups_seen = atomic_load(&lane->driver->ups);
  lane_limit(lane);
  mutex_unlock(&s->lanes_lock);
  if (fresh)
    log_suspended(lane, flight);
}

static void lane_answered(struct scheduler *s, struct lane *lane, bool success) {
  int64_t ramp = lane->health.ramp;
  if (health_untroubled(&lane->health))
    return;
  mutex_lock(&s->lanes_lock);
  bool resumed = health_answered(&lane->health, success, concurrency(lane));
  if (resumed || ramp != lane->health.ramp)
    lane_limit(lane);
  mutex_unlock(&s->lanes_lock);
  if (resumed)
    log_resumed(lane);
}

/* A failure that is the destination's own. */
static void lane_refused(struct scheduler *s, const struct flight *flight) {
  struct lane *lane = flight->lane;
  const struct health_trouble trouble = trouble_of(flight);
  int64_t now = clock_mono_us();
  bool was = health_suspended(&lane->health);
  mutex_lock(&s->lanes_lock);
  if (trouble.retry_after_ms > 0)
    (void)health_hold(&lane->health, &trouble, now);
  else
    (void)health_refused(&lane->health, &trouble, (uint32_t)lane->route->breaker, concurrency(lane), now);
  lane->instance_down = false;
  lane_limit(lane);
  mutex_unlock(&s->lanes_lock);
  bool is = health_suspended(&lane->health);
  if (is && !was)
    log_suspended(lane, flight);
  else if (was && !is)
    log_resumed(lane);
}

static void lane_gone(struct scheduler *s, const struct flight *flight) {
  struct lane *lane = flight->lane;
  const struct duebox_outcome *outcome = &flight->outcome;
  mutex_lock(&s->lanes_lock);
  lane->paused = lane->gone = true;
  lane->gone_us = flight->handed_us + atomic_load_explicit(&s->db_offset_us, memory_order_relaxed);
  lane_limit(lane);
  snprintf(lane->pause_reason, sizeof lane->pause_reason, "%s",
           outcome->message ? outcome->message : "the destination is gone");
  mutex_unlock(&s->lanes_lock);
  s->route_gone(s->engine, lane->name, lane->pause_reason, lane->gone_us);
}

/* A plugin that says that its destination is back needs no task to prove it: those that wait would be the only ones to
 * notice. Told by a change of its health, or by its health when a probe is due. */
void scheduler_follow_plugins(struct scheduler *s) {
  int64_t now = clock_mono_us();
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    if (lane->health.state != HEALTH_SUSPENDED || !lane->instance_down || !lane->driver)
      continue;
    bool up = false;
    char text[PLUGIN_TEXT];
    unsigned ups = atomic_load(&lane->driver->ups);
    if (ups == lane->ups_seen && now < lane->health.probe_at_us)
      continue;
    driver_health(lane->driver, &up, text);
    lane->ups_seen = ups;
    mutex_lock(&s->lanes_lock);
    bool resumed = up && health_reachable(&lane->health, concurrency(lane));
    lane_limit(lane);
    mutex_unlock(&s->lanes_lock);
    if (resumed)
      log_resumed(lane);
  }
}

/* --- targets --- */

/* The flight's target if it is in trouble; nearly always none is, and then this costs nothing. */
static struct target *find_target(const struct flight *flight) {
  const struct lane *lane = flight->lane;
  if (!lane->targets.first || !lane->route || !lane->route->many_targets)
    return NULL;
  char name[TARGET_NAME_MAX + 1]; /* declared here: the compiler's hardening fills it */
  size_t len = target_name(lane->route, &flight->task->view, name);
  return targets_find(&lane->targets, name, len);
}

static void log_target(struct lane *lane, const struct target *target) {
  char label[256];
  target_label(target->name, target->task_key, label, sizeof label);
  log_repeated(&lane->target_trouble, LOG_LEVEL_WARN, "DUEBOX-TARGET-SUSPENDED",
               "route=%s target=%s message_id=%s its tasks wait, those of other targets do not: %s", lane->name, label,
               target->message_id, target->health.reason);
}

/* Trouble of one target: its tasks wait for it, and nobody else. */
static void target_trouble(struct scheduler *s, const struct flight *flight) {
  struct lane *lane = flight->lane;
  char name[TARGET_NAME_MAX + 1];
  size_t len = target_name(lane->route, &flight->task->view, name);
  struct health_trouble trouble = trouble_of(flight);
  int64_t now = clock_mono_us();
  mutex_lock(&s->lanes_lock);
  struct target *target = targets_make(&lane->targets, name, len, now, &s->target_count);
  bool fresh = false;
  if (target) {
    struct health *health = &target->health;
    target->met_us = now;
    if (flight->outcome.cls == DUEBOX_GONE)
      trouble.retry_after_ms = RULES_GONE_MS;
    if (flight->outcome.cls == DUEBOX_UNAVAILABLE)
      fresh = health_down(health, &trouble, now);
    else if (trouble.retry_after_ms > 0)
      fresh = health_hold(health, &trouble, now);
    else
      fresh = health_refused(health, &trouble, (uint32_t)lane->route->breaker, 0, now) && health_suspended(health);
    const struct duebox_bytes key = flight->task->view.key;
    if (fresh)
      snprintf(target->task_key, sizeof target->task_key, "%.*s", (int)(key.len < 64 ? key.len : 64), key.data);
    if (fresh)
      snprintf(target->message_id, sizeof target->message_id, "%s", flight->task->view.message_id);
  }
  mutex_unlock(&s->lanes_lock);
  if (fresh)
    log_target(lane, target);
}

/* The target of a task that it took, if it was in trouble: it is forgotten. */
static void target_answered(struct scheduler *s, const struct flight *flight) {
  struct lane *lane = flight->lane;
  struct target *target = find_target(flight);
  if (!target || target->health.held)
    return;
  char label[256];
  bool was = health_suspended(&target->health);
  target_label(target->name, target->task_key, label, sizeof label);
  mutex_lock(&s->lanes_lock);
  targets_drop(&lane->targets, target, &s->target_count);
  mutex_unlock(&s->lanes_lock);
  if (was)
    log_repeated(&lane->target_resumed, LOG_LEVEL_INFO, "DUEBOX-TARGET-RESUMED", "route=%s target=%s it answers again",
                 lane->name, label);
}

bool scheduler_target_waits(struct scheduler *s, struct flight *flight) {
  struct target *target = find_target(flight);
  if (!target)
    return false;
  int64_t now = clock_mono_us();
  struct health *health = &target->health;
  bool goes = health_may_send(health, now);
  mutex_lock(&s->lanes_lock);
  target->met_us = now;
  if (goes)
    (void)health_send(health, flight->id);
  mutex_unlock(&s->lanes_lock);
  if (goes)
    return false;
  int64_t wait_us = rules_patience_us(scheduler_db_now_us(s) - flight->task->asked_due_us);
  if (health->state == HEALTH_SUSPENDED && health->probe_at_us - now > wait_us)
    wait_us = health->probe_at_us - now;
  flight_set_outcome(flight, &DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE, .scope = DUEBOX_SCOPE_TARGET,
                                             .retry_after_ms = (wait_us + 999) / 1000, .message = health->reason,
                                             .error_class = health->error_class[0] ? health->error_class : NULL));
  flight->end = FLIGHT_DEFERRED;
  return true;
}

/* A probe is over without having said anything: another may go. */
static void probe_lost(struct scheduler *s, const struct flight *flight) {
  struct lane *lane = flight->lane;
  if (!flight->probe && !lane->targets.first)
    return;
  int64_t now = clock_mono_us();
  struct target *target = find_target(flight);
  mutex_lock(&s->lanes_lock);
  lane_probe_lost(lane, flight->id, now);
  if (target && target->health.state == HEALTH_PROBING && target->health.suspect == flight->id)
    health_probe_lost(&target->health, now);
  mutex_unlock(&s->lanes_lock);
}

/* --- stalls --- */

enum whose { OF_STALL, OF_REFUSAL, OF_ALL };

/* The task that the lane's sink has had for longest without an answer, of those that tell of a stall or of all; or,
 * where it refuses all, that has been read for it first. NULL = there is none. */
static const struct flight *oldest_flight(const struct scheduler *s, const struct lane *lane, enum whose whose) {
  const struct flight *oldest = NULL;
  for (const struct flight *one = flight_first(s->flights); one; one = flight_after(s->flights, one)) {
    bool mine = one->lane == lane && flight_token(one) != 0;
    bool there = mine && atomic_load_explicit(&one->submitted, memory_order_acquire);
    if (!mine || !(whose == OF_REFUSAL || (there && (whose == OF_ALL || one->times_sink))))
      continue;
    if (!oldest || (whose == OF_REFUSAL ? one->read_us < oldest->read_us : one->handed_us < oldest->handed_us))
      oldest = one;
  }
  return oldest;
}

/* Notes where it stands still, once for each stall that lasts, and logs the first one. */
static void say_stalled(struct scheduler *s, struct lane *lane, int64_t now_us) {
  bool refuses = stall_refuses(&lane->stall, now_us);
  const struct flight *oldest = oldest_flight(s, lane, refuses ? OF_REFUSAL : OF_STALL);
  if (!oldest || !lane->route)
    return; /* it has just been answered */
  char name[TARGET_NAME_MAX + 1], key[65];
  target_name(lane->route, &oldest->task->view, name);
  const struct duebox_bytes task_key = oldest->task->view.key;
  snprintf(key, sizeof key, "%.*s", (int)(task_key.len < 64 ? task_key.len : 64), task_key.len ? task_key.data : "");
  mutex_lock(&s->lanes_lock);
  target_label(name, key, lane->stalled_target, sizeof lane->stalled_target);
  snprintf(lane->stalled_task, sizeof lane->stalled_task, "%s", oldest->task->view.message_id);
  mutex_unlock(&s->lanes_lock);
  lane->stall_noted = true;
  if (lane->stall.said_us)
    return;
  stall_say(&lane->stall, gauge_value(&lane->stalled_since_us));
  if (refuses)
    log_warn("DUEBOX-ROUTE-STALLED",
             "route=%s target=%s message_id=%s plugin instance %s has no task and takes none (its submit() says full): "
             "tasks wait in the table and one is tried every %.2f s; a restart makes the instance anew",
             lane->name, lane->stalled_target, lane->stalled_task, lane->route->plugin->name,
             (double)stall_limit_us(&lane->stall) / 1e6);
  else
    log_warn("DUEBOX-ROUTE-STALLED",
             "route=%s target=%s message_id=%s it has not confirmed this task for %.1f s, nor any after it: until it "
             "confirms one, the others wait in the table and one is tried every %.2f s",
             lane->name, lane->stalled_target, lane->stalled_task, (double)(now_us - oldest->handed_us) / 1e6,
             (double)stall_limit_us(&lane->stall) / 1e6);
}

static void say_flows(struct scheduler *s, struct lane *lane) {
  mutex_lock(&s->lanes_lock);
  lane->stalled_target[0] = lane->stalled_task[0] = '\0';
  mutex_unlock(&s->lanes_lock);
  stall_say(&lane->stall, 0);
  log_info("DUEBOX-ROUTE-FLOWS", "route=%s its destination takes and confirms tasks again", lane->name);
}

/* --- places --- */

/* Whether something is due of it, as of the last look: what is claimed does not count. */
static bool something_waits(const struct scheduler *s, const struct lane *lane) {
  int64_t db_now = scheduler_db_now_us(s);
  for (const struct group *group = lane->groups; group; group = group->next)
    if (group->seen == s->look && group->shard != SHARD_BOUND && group->next_us <= db_now)
      return true;
  return false;
}

/* Rows may ask for more time than their route gives them: where those have all places, all others wait. */
static void follow_places(struct scheduler *s, struct lane *lane, int64_t now_us) {
  if (!lane_follow_places(lane, lane_is_full(lane) && something_waits(s, lane), now_us))
    return;
  const struct flight *oldest = gauge_value(&lane->full_since_us) ? oldest_flight(s, lane, OF_ALL) : NULL;
  bool said = lane->full_task[0];
  mutex_lock(&s->lanes_lock);
  snprintf(lane->full_task, sizeof lane->full_task, "%s", oldest ? oldest->task->view.message_id : "");
  mutex_unlock(&s->lanes_lock);
  if (oldest)
    log_warn(
        "DUEBOX-ROUTE-FULL",
        "route=%s message_id=%s tasks are due and none could go for %lld s: all %lld places are taken, for longest "
        "by this task, which may last %lld s; see timeout_ms of these rows, and timeout_max of the route",
        lane->name, lane->full_task, (long long)((now_us - lane->full_from_us) / 1000000),
        (long long)atomic_load_explicit(&lane->at_sink, memory_order_relaxed),
        (long long)(oldest->task->view.timeout_ms / 1000));
  else if (said)
    log_info("DUEBOX-ROUTE-ROOM", "route=%s one of its places has become free, or nothing waits for one", lane->name);
}

void scheduler_follow_stalls(struct scheduler *s) {
  int64_t now = clock_mono_us();
  for (struct lane *lane = s->lanes; lane; lane = lane->next) {
    follow_places(s, lane, now);
    bool was = lane->stalled;
    lane_follow_stall(lane, now);
    if (lane->stalled && !was) {
      set_gauge(&lane->stalled_since_us, now);
      count(&lane->metrics.stalls, 1);
    } else if (was && !lane->stalled) {
      set_gauge(&lane->stalled_since_us, 0);
      lane->flows_since_us = now;
      lane->stall_noted = false;
    }
    if (lane->stalled && !lane->stall_noted && now - gauge_value(&lane->stalled_since_us) >= STALL_SHOWN_US)
      say_stalled(s, lane, now);
    if (!lane->stalled && stall_is_over(&lane->stall, lane->flows_since_us, now))
      say_flows(s, lane);
  }
}

/* --- outcomes --- */

static void not_taken(struct scheduler *s, const struct flight *flight) {
  for (struct lane *other = s->lanes; other; other = other->next)
    if (other == flight->lane || (flight->outcome.scope == DUEBOX_SCOPE_INSTANCE && other->driver == flight->driver))
      suspend_lane(s, other, flight);
}

/* What the outcome says about the destination, beyond its own task: nothing, where a reload has sent the route another
 * way since. */
void scheduler_follow_outcome(struct scheduler *s, const struct flight *flight) {
  struct lane *lane = flight->lane;
  const struct duebox_outcome *outcome = &flight->outcome;
  bool of_target = outcome->scope == DUEBOX_SCOPE_TARGET && lane->route;
  bool own_target = of_target && lane->route->many_targets;
  bool tells =
      flight->end == FLIGHT_OUTCOME && flight->driver == lane->driver && flight->read_us >= lane->leads_there_us;
  /* What the destination answered in somebody's name, and only that: it failed, whatever became of the task. */
  bool failed = outcome->cls == DUEBOX_UNKNOWN && outcome->blameless && of_target;
  switch (!tells ? DUEBOX_UNKNOWN : failed ? DUEBOX_RETRY : outcome->cls) {
  case DUEBOX_UNAVAILABLE:
  case DUEBOX_GONE:
    if (own_target) {
      lane_answered(s, lane, false);
      target_trouble(s, flight);
    } else if (outcome->cls == DUEBOX_GONE) {
      lane_gone(s, flight);
    } else {
      not_taken(s, flight);
    }
    break;
  case DUEBOX_RETRY:
    if (own_target) {
      lane_answered(s, lane, false);
      target_trouble(s, flight);
    } else if (of_target) {
      lane_refused(s, flight);
    } else {
      lane_answered(s, lane, false);
    }
    break;
  case DUEBOX_DELIVERED:
  case DUEBOX_REJECTED:
    lane_answered(s, lane, true);
    target_answered(s, flight);
    break;
  case DUEBOX_UNKNOWN:
    break; /* says nothing about now */
  }
  probe_lost(s, flight);
}
