/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_send.c - the moment of hand-over: tasks that were read a little early wait here until they are due.
 *
 * A task is due when it surely is by the database's clock, whose distance from ours is known to some 10 us. They wait
 * for milliseconds only, so an UPDATE or DELETE by plain SQL still counts until then.
 *
 * What a task's plugin needs of its route (route_data) was made when it was read, for the driver that the route had
 * then: no other one gets it. A reload that sends the route another way gives back to the table what waits here.
 *
 * @thread scheduler
 */
#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/scheduler.h"

enum suspicion scheduler_suspicion(const struct scheduler *s, const struct task *task) {
  return suspicion_of(task->recoveries, (uint32_t)s->config->config->engine.max_recoveries);
}

struct flight *scheduler_charge(struct scheduler *s, struct flight *flight, int64_t now_us) {
  struct lane *lane = flight->lane;
  flight->driver = lane->driver;
  if (flight->task->recoveries > 0) {
    flight->suspicion = scheduler_suspicion(s, flight->task);
    suspects_went(&lane->suspects, flight->suspicion, &s->last_chance);
  }
  lane_ended(lane, flight->task); /* it does not end without its sink */
  lane_charge(lane, flight->task, now_us);
  flight->times_sink = !flight->task->recorded || lane->stalled;
  if (lane->stalled)
    stall_probed(&lane->stall, now_us);
  if (health_suspended(&lane->health)) {
    mutex_lock(&s->lanes_lock);
    flight->probe = lane_send(lane, flight->task);
    mutex_unlock(&s->lanes_lock);
  }
  return flight;
}

void scheduler_open(struct scheduler *s, struct flight *flight, int64_t now_us, struct flight_list *out) {
  flight->handed_us = now_us; /* from now on it waits for room at the sink */
  int64_t offset = atomic_load_explicit(&s->db_offset_us, memory_order_relaxed);
  flight->due_mono_us = flight->task->due_us - offset;
  flight->expires_mono_us = flight->task->expires_us - offset;
  flight->task->view.token = flight_open(flight);
  flight_list_add(out, flight);
}

/* In order of due times. They come nearly so from the index. */
void scheduler_send_later(struct scheduler *s, struct flight *flight) {
  int64_t due = flight->task->due_us;
  struct flight **at = &s->early.head;
  if (s->early.tail && s->early.tail->task->due_us <= due)
    at = &s->early.tail->next;
  while (*at && (*at)->task->due_us <= due)
    at = &(*at)->next;
  flight->next = *at;
  *at = flight;
  if (!flight->next)
    s->early.tail = flight;
  s->early.count++;
}

void scheduler_send_due(struct scheduler *s) {
  struct flight_list out = {0}, unsent = {0};
  struct driver *driver = NULL;
  while (s->early.head && s->early.head->task->due_us <= scheduler_db_surely_us(s)) {
    struct flight *flight = flight_list_pop(&s->early);
    if (flight->driver != flight->lane->driver) { /* its route is gone, or goes another way */
      flight->end = FLIGHT_UNSENT;
      flight_list_add(&unsent, flight);
      continue;
    }
    if (out.head && flight->driver != driver)
      driver_push(driver, &out);
    driver = flight->driver;
    scheduler_open(s, flight, clock_mono_us(), &out);
  }
  if (out.head)
    driver_push(driver, &out);
  mailbox_put(s->settler, &unsent);
}

int64_t scheduler_sends_at(const struct scheduler *s) {
  return s->early.head ? db_clock_reaches_us(&s->db_clock, s->early.head->task->due_us) : INT64_MAX;
}
