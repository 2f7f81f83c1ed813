/* SPDX-License-Identifier: MIT */
#include "amqp_apart.h"

#include "amqp_set.h"

enum {
  CHANNEL = 1,
  REST_MIN_US = 100000,
  REST_MAX_US = 2000000,
  LOOK_US = 1000000,
};

static const int64_t SUSPECTED_US = 600000000; /* a route, after one of its messages has ended the connection */

/* ---- routes that ended it ------------------------------------------------------------------------------------- */

static uint64_t key_of(const char *route) { return amqp_set_key('r', route); }

static struct amqp_apart_route *find_route(const struct amqp_apart *apart, const char *route) {
  uint64_t key = apart->route_count ? key_of(route) : 0;
  for (uint32_t i = 0; i < apart->route_count; i++)
    if (apart->routes[i].key == key)
      return (struct amqp_apart_route *)&apart->routes[i];
  return NULL;
}

bool amqp_apart_takes(const struct amqp_apart *apart, const char *route, int64_t now_us) {
  const struct amqp_apart_route *found = find_route(apart, route);
  return found && now_us < found->until_us;
}

/* Its place, new or of the one that is the next to be free. */
static struct amqp_apart_route *note_route(struct amqp_apart *apart, const char *route) {
  struct amqp_apart_route *place = find_route(apart, route);
  if (place)
    return place;
  place = apart->routes;
  for (uint32_t i = 1; i < apart->route_count; i++)
    if (apart->routes[i].until_us < place->until_us)
      place = &apart->routes[i];
  if (apart->route_count < AMQP_APART_ROUTES)
    place = &apart->routes[apart->route_count++];
  *place = (struct amqp_apart_route){.key = key_of(route)};
  return place;
}

static void suspect_route(struct amqp_apart *apart, const char *route, int64_t now_us) {
  struct amqp_apart_route *noted = note_route(apart, route);
  int64_t rest = noted->rest_us ? noted->rest_us * 2 : REST_MIN_US;
  noted->rest_us = rest < REST_MAX_US ? rest : REST_MAX_US;
  noted->rested_us = now_us + noted->rest_us;
  noted->until_us = now_us + SUSPECTED_US;
}

static void absolve(struct amqp_apart *apart, const char *route) {
  struct amqp_apart_route *noted = find_route(apart, route);
  if (noted)
    noted->rest_us = 0;
}

/* ---- what waits ----------------------------------------------------------------------------------------------- */

bool amqp_apart_put(struct amqp_apart *apart, const struct duebox_task *task, bool suspect, int64_t now_us) {
  return amqp_queue_put(&apart->queue, (struct amqp_waiting){.task = task, .suspect = suspect, .since_us = now_us});
}

/* What becomes of a message that is not sent again to see whether it ends a connection. */
static enum amqp_event without_another_try(bool left, bool recalled) {
  if (!left)
    return AMQP_EVENT_NOT_SENT;
  return recalled ? AMQP_EVENT_UNREPEATED : AMQP_EVENT_LOST;
}

void amqp_apart_take_over(struct amqp_apart *apart, struct amqp_pub *pub, bool suspect, const char *reason) {
  uint32_t before = apart->queue.count;
  int64_t now = amqp_now_us();
  for (const struct amqp_slot *oldest; (oldest = amqp_window_oldest(&pub->window)) != NULL;) {
    bool left = suspect || oldest->task != pub->writing, recalled = oldest->tag <= pub->recalled_upto;
    const struct duebox_task *task = amqp_window_take_upto(&pub->window, UINT64_MAX);
    if (recalled || !amqp_apart_put(apart, task, left, now))
      apart->user->report(apart->ctx, task, without_another_try(left, recalled), 0, reason);
  }
  if (apart->queue.count > before)
    apart->host->log(apart->host->ctx, DUEBOX_LOG_WARN, "AMQP-APART",
                     "%u messages were unconfirmed on channel %u as the broker ended the connection; each goes again, "
                     "alone on another one, to find the one that it means: %s",
                     apart->queue.count - before, pub->number, reason);
}

static bool stays(void *ctx, const struct amqp_waiting *waiting) {
  return !waiting->suspect || !amqp_apart_put(ctx, waiting->task, true, amqp_now_us());
}

void amqp_apart_take_over_waiting(struct amqp_apart *apart, struct amqp_queue *queue) {
  amqp_queue_filter(queue, stays, apart);
}

struct handing_back {
  struct amqp_apart *apart;
  enum amqp_event fresh_as, suspects_as; /* 0: these go on waiting */
  int64_t before_us;                     /* what came later goes on waiting */
  const char *detail;
};

static bool goes_on_waiting(void *ctx, const struct amqp_waiting *waiting) {
  const struct handing_back *how = ctx;
  enum amqp_event event = waiting->suspect ? how->suspects_as : how->fresh_as;
  if (!event || waiting->since_us > how->before_us)
    return true;
  how->apart->user->report(how->apart->ctx, waiting->task, event, 0, how->detail);
  return false;
}

static void hand_back(struct amqp_apart *apart, enum amqp_event fresh_as, enum amqp_event suspects_as,
                      const char *detail) {
  amqp_queue_filter(&apart->queue, goes_on_waiting,
                    &(struct handing_back){apart, fresh_as, suspects_as, INT64_MAX, detail});
}

void amqp_apart_recall(struct amqp_apart *apart) {
  hand_back(apart, AMQP_EVENT_RECALLED, AMQP_EVENT_UNREPEATED, NULL);
  amqp_pub_recall(&apart->pub);
}

/* While the broker has an alarm time stands still for what it may have already, and the others do not wait for it. */
static void look(struct amqp_apart *apart, int64_t now_us) {
  if (apart->conn.blocked) {
    hand_back(apart, AMQP_EVENT_HELD_UP, 0, apart->conn.reason);
    return;
  }
  bool soon = now_us - apart->looked_us < LOOK_US || now_us - apart->unblocked_us < apart->most_us;
  if (!apart->queue.count || soon)
    return;
  apart->looked_us = now_us;
  amqp_queue_filter(
      &apart->queue, goes_on_waiting,
      &(struct handing_back){apart, AMQP_EVENT_HELD_UP, AMQP_EVENT_UNTRIED, now_us - apart->most_us, NULL});
}

static bool rests(const struct amqp_apart *apart, const char *route, int64_t now_us) {
  const struct amqp_apart_route *noted = find_route(apart, route);
  return noted && now_us < noted->rested_us;
}

static void pump(struct amqp_apart *apart, int64_t now_us) {
  if (!amqp_conn_usable(&apart->conn) || apart->conn.blocked)
    return;
  amqp_pub_continue(&apart->pub, now_us);
  apart->pumped_us = now_us;
  for (uint32_t tries = apart->queue.lanes; tries > 0 && amqp_pub_can_take(&apart->pub);) {
    struct amqp_waiting next = *amqp_queue_next(&apart->queue);
    if (!rests(apart, next.task->route, now_us) && apart->user->publish(apart->ctx, &apart->pub, next.task, now_us)) {
      apart->out = next;
      amqp_queue_take(&apart->queue);
      tries = apart->queue.lanes;
    } else {
      amqp_queue_skip(&apart->queue);
      tries--;
    }
  }
}

/* ---- the channel ---------------------------------------------------------------------------------------------- */

static void on_ready(void *ctx, struct amqp_pub *pub) { (void)ctx, (void)pub; }

/* Of the message on it, by what the broker says of that. */
static void report(struct amqp_apart *apart, const struct duebox_task *task, enum amqp_event event, int code,
                   const char *detail) {
  apart->user->report(apart->ctx, task, apart->out.suspect ? amqp_outcome_of_copy(event, code) : event, code, detail);
}

static void on_decided(void *ctx, struct amqp_pub *pub, const struct duebox_task *task, enum amqp_event event, int code,
                       const char *detail) {
  struct amqp_apart *apart = ctx;
  (void)pub;
  absolve(apart, task->route);
  report(apart, task, event, code, detail);
}

/* A channel error means the only message on it. */
static void on_closed(void *ctx, struct amqp_pub *pub, int code, const char *text) {
  struct amqp_apart *apart = ctx;
  const struct duebox_task *task = amqp_window_take_upto(&pub->window, UINT64_MAX);
  amqp_pub_open(pub);
  if (task)
    report(apart, task, amqp_outcome_refusal(code, text), code, text);
}

static const struct amqp_pub_user pub_user = {.ready = on_ready, .decided = on_decided, .closed = on_closed};

/* ---- the connection ------------------------------------------------------------------------------------------- */

static void on_up(void *ctx) {
  struct amqp_apart *apart = ctx;
  amqp_pub_open(&apart->pub);
}

static void on_frame(void *ctx, const amqp_frame_t *frame) {
  struct amqp_apart *apart = ctx;
  amqp_pub_frame(&apart->pub, frame);
}

static void on_blocked(void *ctx, bool blocked, const char *reason) {
  struct amqp_apart *apart = ctx;
  (void)reason;
  if (!blocked)
    apart->unblocked_us = amqp_now_us();
}

static void on_barred(void *ctx, const char *reason) { hand_back(ctx, AMQP_EVENT_HELD_UP, AMQP_EVENT_LOST, reason); }

/* The broker ended the connection, and this was all that it had of us. */
static void blame(struct amqp_apart *apart, const struct duebox_task *task, bool left, bool recalled,
                  const char *reason) {
  int64_t now = amqp_now_us();
  suspect_route(apart, task->route, now);
  if (apart->out.ended) {
    apart->host->log(apart->host->ctx, DUEBOX_LOG_WARN, "AMQP-CULPRIT",
                     "task %s of route %s ended a connection twice that it had for itself, and is refused; for ten "
                     "minutes the tasks of its route go over that, one by one: %s",
                     task->message_id, task->route, reason);
    apart->user->report(apart->ctx, task, AMQP_EVENT_ENDS_CONNECTION, 0, reason);
    return;
  }
  struct amqp_waiting again = {.task = task, .suspect = left, .ended = true, .since_us = now};
  if (recalled || !amqp_queue_put(&apart->queue, again))
    apart->user->report(apart->ctx, task, left ? AMQP_EVENT_LOST : AMQP_EVENT_HELD_UP, 0, reason);
}

static void on_down(void *ctx, const char *reason) {
  struct amqp_apart *apart = ctx;
  const struct amqp_slot *oldest = amqp_window_oldest(&apart->pub.window);
  bool recalled = oldest && oldest->tag <= apart->pub.recalled_upto, left = !apart->pub.writing || apart->out.suspect;
  const struct duebox_task *task = amqp_window_take_upto(&apart->pub.window, UINT64_MAX);
  amqp_pub_lost(&apart->pub);
  if (task && amqp_outcome_names_message(apart->conn.closed)) {
    blame(apart, task, left, recalled, reason);
    amqp_conn_retry_soon(&apart->conn);
    return;
  }
  if (task)
    apart->user->report(apart->ctx, task, left ? AMQP_EVENT_LOST : AMQP_EVENT_HELD_UP, 0, reason);
  hand_back(apart, AMQP_EVENT_HELD_UP, AMQP_EVENT_LOST, reason);
}

static const struct amqp_conn_user conn_user = {.channels = CHANNEL,
                                                .aside = true,
                                                .up = on_up,
                                                .down = on_down,
                                                .barred = on_barred,
                                                .frame = on_frame,
                                                .blocked = on_blocked};

/* ---- the driver ----------------------------------------------------------------------------------------------- */

static int64_t overdue_at(const struct amqp_apart *apart) {
  const struct amqp_slot *oldest = amqp_window_oldest(&apart->pub.window);
  if (!oldest || apart->conn.blocked)
    return INT64_MAX;
  return (oldest->sent_us > apart->unblocked_us ? oldest->sent_us : apart->unblocked_us) + apart->most_us;
}

static void check_overdue(struct amqp_apart *apart, int64_t now_us) {
  struct amqp_pub *pub = &apart->pub;
  if (!amqp_conn_usable(&apart->conn))
    return;
  if (amqp_pub_waits(pub) && now_us >= pub->answer_by_us)
    amqp_conn_fail(&apart->conn, "the broker did not answer on channel %u within connect_timeout", pub->number);
  if (now_us < overdue_at(apart))
    return;
  if (pub->writing) {
    amqp_conn_fail(&apart->conn, "the broker read nothing within confirm_timeout");
    return;
  }
  apart->user->report(apart->ctx, amqp_window_take_upto(&pub->window, UINT64_MAX), AMQP_EVENT_NO_CONFIRM, 0, NULL);
  amqp_pub_give_up(pub);
}

static bool is_needed(const struct amqp_apart *apart, int64_t now_us) {
  bool needed = amqp_apart_open(apart) > 0;
  for (uint32_t i = 0; i < apart->route_count; i++)
    needed |= now_us < apart->routes[i].until_us;
  return needed;
}

static void come_or_go(struct amqp_apart *apart, int64_t now_us) {
  bool idle = apart->conn.state == AMQP_CONN_IDLE;
  if (idle && apart->queue.count > 0) {
    apart->conn.user = &conn_user; /* the last goodbye took it away */
    amqp_conn_start(&apart->conn);
  } else if (!idle && !is_needed(apart, now_us)) {
    amqp_conn_shutdown(&apart->conn, now_us);
    amqp_pub_lost(&apart->pub);
    apart->route_count = 0;
  }
}

void amqp_apart_poll(struct amqp_apart *apart) {
  int64_t now = amqp_now_us();
  look(apart, now);
  come_or_go(apart, now);
  if (apart->conn.state == AMQP_CONN_IDLE)
    return;
  amqp_conn_poll(&apart->conn, 0, INT64_MAX);
  now = amqp_now_us();
  check_overdue(apart, now);
  pump(apart, now);
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t amqp_apart_next(const struct amqp_apart *apart) {
  if (apart->conn.state == AMQP_CONN_IDLE)
    return apart->queue.count ? 0 : INT64_MAX;
  int64_t next = amqp_pub_waits(&apart->pub) ? apart->pub.answer_by_us : overdue_at(apart);
  bool may_go = apart->queue.count > 0 && amqp_pub_can_take(&apart->pub) && !apart->conn.blocked;
  for (uint32_t i = 0; i < apart->route_count && may_go; i++)
    if (apart->routes[i].rested_us > apart->pumped_us) /* else it was asked then */
      next = earlier(next, apart->routes[i].rested_us);
  return next;
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

bool amqp_apart_init(struct amqp_apart *apart, struct amqp_target *target, const struct duebox_host *host,
                     uint32_t size, const struct amqp_apart_user *user, void *ctx, struct duebox_error *err) {
  *apart = (struct amqp_apart){.host = host, .user = user, .ctx = ctx, .most_us = target->confirm_timeout_ms * 1000};
  return amqp_conn_init(&apart->conn, amqp_target_ref(target), host, &conn_user, apart, err) &&
         amqp_pub_init(&apart->pub, &apart->conn, CHANNEL, 1, &pub_user, apart) && amqp_queue_init(&apart->queue, size);
}

uint32_t amqp_apart_open(const struct amqp_apart *apart) { return apart->queue.count + apart->pub.window.count; }

void amqp_apart_stop(struct amqp_apart *apart, int64_t deadline_us) {
  const struct duebox_task *task = amqp_window_take_upto(&apart->pub.window, UINT64_MAX);
  bool unsent = apart->pub.writing && !apart->out.suspect;
  if (task)
    apart->user->report(apart->ctx, task, unsent ? AMQP_EVENT_NOT_SENT : AMQP_EVENT_STOPPED, 0, "stopped");
  hand_back(apart, AMQP_EVENT_NOT_SENT, AMQP_EVENT_STOPPED, "stopped");
  amqp_conn_shutdown(&apart->conn, deadline_us);
}

void amqp_apart_free(struct amqp_apart *apart) {
  amqp_pub_free(&apart->pub);
  amqp_queue_free(&apart->queue);
  amqp_conn_free(&apart->conn);
}
