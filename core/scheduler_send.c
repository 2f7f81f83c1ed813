/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_send.c - the moment of hand-over: tasks that were read a little early wait here until they are due,
 * those that were read ahead of a busy destination until there is room.
 *
 * A task is due when it surely is by the database's clock, whose distance from ours is known to some 10 us. They wait
 * for milliseconds only, so an UPDATE or DELETE by plain SQL still counts until then.
 *
 * @thread scheduler
 */
#include "core/base/clock.h"
#include "core/scheduler.h"

enum { READY_MAX_US = 50 * 1000 };

struct flight *scheduler_charge(struct flight *flight) {
  struct lane *lane = flight->lane;
  flight->driver = lane->driver;
  flight->solo = flight->task->recoveries > 0;
  lane->solo += flight->solo;
  lane_charge(lane, flight->task, clock_mono_us());
  return flight;
}

void scheduler_open(struct scheduler *s, struct flight *flight, struct flight_list *out) {
  flight->handed_us = clock_mono_us();
  if (flight->task->attempt_now == 1)
    histogram_add(&flight->lane->metrics.lateness, scheduler_db_now_us(s) - flight->task->due_us);
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

/* The driver may have been replaced while the task waited. */
static void follow_driver(struct flight *flight) {
  struct driver *now = flight->lane->driver ? flight->lane->driver : flight->driver;
  flight->driver->inflight--;
  now->inflight++;
  flight->driver = now;
}

void scheduler_send_due(struct scheduler *s) {
  struct flight_list out = {0};
  struct driver *driver = NULL;
  while (s->early.head && s->early.head->task->due_us <= scheduler_db_surely_us(s)) {
    struct flight *flight = flight_list_pop(&s->early);
    follow_driver(flight);
    if (out.head && flight->driver != driver)
      driver_push(driver, &out);
    driver = flight->driver;
    scheduler_open(s, flight, &out);
  }
  if (out.head)
    driver_push(driver, &out);
}

/* Read but not sent: the row is as it was, and is met again. */
static void give_back(struct scheduler *s, struct flight_list *unsent) {
  for (struct flight *flight = unsent->head; flight; flight = flight->next)
    flight->end = FLIGHT_UNSENT;
  mailbox_put(s->settler, unsent);
}

static struct flight *pop_ready(struct lane *lane) {
  struct flight *flight = flight_list_pop(&lane->ready);
  lane->ready_bytes -= (int64_t)flight->task->payload.len;
  return flight;
}

void scheduler_send_when_room(struct flight *flight) {
  flight->lane->ready_bytes += (int64_t)flight->task->payload.len;
  flight_list_add(&flight->lane->ready, flight);
}

/* What waited for longer than read-ahead is meant to last goes back: plain SQL must be able to change it. */
static void hand_over(struct scheduler *s, struct lane *lane) {
  struct flight_list out = {0}, unsent = {0};
  int64_t now = clock_mono_us();
  bool closed = !lane->route || lane->paused || lane->suspended || atomic_load(&s->draining);
  while (lane->ready.head) {
    if (closed || now - lane->ready.head->read_us > READY_MAX_US) {
      flight_list_add(&unsent, pop_ready(lane));
      lane->done_per_ms = 0; /* it is not that quick any more: nothing is read ahead until that is known anew */
    } else if (lane_room(lane) > 0)
      scheduler_open(s, scheduler_charge(pop_ready(lane)), &out);
    else
      break;
  }
  if (out.head)
    driver_push(lane->driver, &out);
  give_back(s, &unsent);
}

void scheduler_hand_over(struct scheduler *s) {
  for (struct lane *lane = s->lanes; lane; lane = lane->next)
    if (lane->ready.head)
      hand_over(s, lane);
}

int64_t scheduler_sends_at(const struct scheduler *s) {
  return s->early.head ? s->early.head->task->due_us - s->offset_low_us : INT64_MAX;
}
