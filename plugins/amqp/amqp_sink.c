/* SPDX-License-Identifier: MIT */
#include "amqp_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  FIRST_CHANNEL = 1,       /* of the first route; probe channels and those of other routes follow */
  MOST_INFLIGHT = 1 << 20, /* beyond it the host is told "full" */
  MOST_BELIEVED = 1024,    /* exchanges, and routes; more than that are proven again from time to time */
  GOODBYE_US = 500000,     /* of stop()'s deadline, kept for an orderly end of the connection */
};

/* ---- the channels --------------------------------------------------------------------------------------------- */

/* Those in use. */
static uint32_t channels(const struct amqp_sink *sink) { return AMQP_PROBES + sink->flow_count; }

static struct amqp_pub *channel_at(struct amqp_sink *sink, uint32_t i) {
  bool probe = i > 0 && i <= AMQP_PROBES;
  return probe ? &sink->probes[i - 1].pub : &sink->flows[i ? i - AMQP_PROBES : 0].pub;
}

static bool is_probe(const struct amqp_pub *pub) {
  return pub->number > FIRST_CHANNEL && pub->number <= FIRST_CHANNEL + AMQP_PROBES;
}

/* Whether the messages on the channel had left before, on another one. */
static bool carries_suspect(const struct amqp_sink *sink, const struct amqp_pub *pub) {
  for (int i = 0; i < AMQP_PROBES; i++)
    if (pub == &sink->probes[i].pub)
      return sink->probes[i].suspect;
  return false;
}

/* ---- outcomes ------------------------------------------------------------------------------------------------- */

static void report(void *ctx, const struct duebox_task *task, enum amqp_event event, int code, const char *detail) {
  struct amqp_sink *sink = ctx;
  const struct amqp_outcome_row *row = amqp_outcome_find(event, code);
  struct duebox_outcome outcome = DUEBOX_OUTCOME(.cls = row->cls, .scope = row->scope, .error_class = row->error_class,
                                                 .blameless = row->blameless, .recalled = event == AMQP_EVENT_RECALLED);
  char text[1024];
  if (row->text) {
    snprintf(text, sizeof text, "%s%s%s", detail ? detail : "", detail ? ": " : "", row->text);
    outcome.message = text;
  }
  sink->host->complete(sink->host->ctx, task->token, &outcome);
}

/* ---- the queue for the probe channels ------------------------------------------------------------------------- */

struct handing_back {
  struct amqp_sink *sink;
  enum amqp_event fresh_as, suspects_as;
  const char *detail;
};

static bool goes_on_waiting(void *ctx, const struct amqp_waiting *waiting) {
  const struct handing_back *how = ctx;
  enum amqp_event event = waiting->suspect ? how->suspects_as : how->fresh_as;
  if (event)
    report(how->sink, waiting->task, event, 0, how->detail);
  return !event;
}

/* Hands back what is waiting. Suspects may have been sent: they end as `suspects_as`, or go on waiting when it is 0. */
static void hand_back(struct amqp_sink *sink, enum amqp_event suspects_as, const char *detail) {
  amqp_queue_filter(&sink->queue, goes_on_waiting,
                    &(struct handing_back){sink, AMQP_EVENT_NOT_SENT, suspects_as, detail});
}

void amqp_sink_recall(struct amqp_sink *sink) {
  amqp_queue_filter(&sink->queue, goes_on_waiting,
                    &(struct handing_back){sink, AMQP_EVENT_RECALLED, AMQP_EVENT_UNREPEATED, NULL});
  for (uint32_t i = 0; i < channels(sink); i++)
    amqp_pub_recall(channel_at(sink, i));
  amqp_apart_recall(&sink->apart);
}

/* ---- what is believed ----------------------------------------------------------------------------------------- */

static uint64_t exchange_key(const struct duebox_task *task) {
  const struct amqp_route *route = task->route_data;
  return amqp_set_key('x', route->exchange);
}

static uint64_t route_key(const struct duebox_task *task) { return amqp_set_key('r', task->route); }

/* Of the routing key and the exchange together; never 0. */
static uint64_t target_key(struct amqp_sink *sink, const struct duebox_task *task) {
  int invalid;
  const char *key = amqp_message_key(sink->host, task, task->route_data, sink->routing_key, &invalid);
  uint64_t both = amqp_set_key('k', key ? key : "") ^ exchange_key(task);
  return both ? both : 1;
}

static bool needs_probe(struct amqp_sink *sink, const struct duebox_task *task) {
  if (task->payload.len >= sink->too_large || !amqp_set_has(&sink->safe, exchange_key(task)))
    return true;
  return (sink->refused.count > 0 && amqp_set_has(&sink->refused, route_key(task))) ||
         (sink->refused_keys.count > 0 && amqp_set_has(&sink->refused_keys, target_key(sink, task)));
}

/* It was decided alone, whatever the decision was: what it is like breaks no channel. */
static void believe(struct amqp_sink *sink, const struct duebox_task *task) {
  amqp_set_add(&sink->safe, exchange_key(task));
  amqp_set_remove(&sink->refused, route_key(task));
  if (sink->refused_keys.count > 0)
    amqp_set_remove(&sink->refused_keys, target_key(sink, task));
  if (task->payload.len >= sink->too_large)
    sink->too_large = SIZE_MAX;
}

/* ---- what the channels tell ----------------------------------------------------------------------------------- */

static void on_ready(void *ctx, struct amqp_pub *pub) {
  struct amqp_sink *sink = ctx;
  if (pub != &sink->flows[0].pub)
    return;
  sink->ready = true;
  amqp_conn_works(&sink->conn);
  if (!sink->conn.blocked)
    sink->host->health(sink->host->ctx, true, NULL);
}

static void on_decided(void *ctx, struct amqp_pub *pub, const struct duebox_task *task, enum amqp_event event, int code,
                       const char *detail) {
  struct amqp_sink *sink = ctx;
  if (pub->window.taken_us < sink->worked_us)
    sink->worked_us = pub->window.taken_us;
  if (is_probe(pub))
    believe(sink, task);
  report(sink, task, carries_suspect(sink, pub) ? amqp_outcome_of_copy(event, code) : event, code, detail);
}

static bool same_way(const struct duebox_task *a, const struct duebox_task *b) {
  const struct amqp_route *left = a->route_data, *right = b->route_data;
  return strcmp(a->route, b->route) == 0 && strcmp(left->exchange, right->exchange) == 0;
}

/* What is found out of one message, for those that wait to go the same way. */
struct finding {
  struct amqp_sink *sink;
  const struct duebox_task *task;
  enum amqp_event event;
  int code;
  const char *text;
  uint64_t target; /* of the task */
};

static void refuse(const struct finding *finding, const struct amqp_waiting *which) {
  enum amqp_event event = which->suspect ? amqp_outcome_of_copy(finding->event, finding->code) : finding->event;
  report(finding->sink, which->task, event, finding->code, finding->text);
}

static bool may_still_pass(void *ctx, const struct amqp_waiting *waiting) {
  const struct finding *finding = ctx;
  if (!same_way(finding->task, waiting->task) ||
      (finding->event == AMQP_EVENT_KEY_REFUSED && target_key(finding->sink, waiting->task) != finding->target))
    return true;
  refuse(finding, waiting);
  return false;
}

/* The only message that was open on the channel is the one that broke it. A suspect may have left before what it needs
 * went away: then nobody knows. What waits to go the same way need not try. */
static void blame(struct amqp_sink *sink, struct amqp_waiting which, int code, const char *text) {
  struct finding finding = {sink, which.task, amqp_outcome_refusal(code, text),
                            code, text,       target_key(sink, which.task)};
  enum duebox_outcome_class cls = amqp_outcome_find(finding.event, code)->cls;
  if (finding.event == AMQP_EVENT_KEY_REFUSED) {
    amqp_set_add(&sink->refused_keys, finding.target);
  } else if (cls == DUEBOX_UNAVAILABLE) {
    amqp_set_remove(&sink->safe, exchange_key(which.task));
    amqp_set_add(&sink->refused, route_key(which.task));
  } else if (cls == DUEBOX_REJECTED) {
    if (which.task->payload.len < sink->too_large)
      sink->too_large = which.task->payload.len;
  } else {
    amqp_set_clear(&sink->safe);
  }
  if (cls == DUEBOX_UNAVAILABLE)
    amqp_queue_filter(&sink->queue, may_still_pass, &finding);
  refuse(&finding, &which);
}

/* Each of them may be the one that broke the channel, or be in its queue already. They stay open and go again, one at a
 * time over the probe channel, which tells the guilty one from the others. */
static void suspect_all(struct amqp_sink *sink, struct amqp_pub *pub, int code, const char *text) {
  const struct duebox_task *task;
  if (pub->window.count > 0 && amqp_outcome_find(AMQP_EVENT_REFUSED, code)->cls != DUEBOX_REJECTED)
    amqp_set_clear(&sink->safe); /* the fault is an exchange's, and any may be meant */
  for (const struct amqp_slot *oldest; (oldest = amqp_window_oldest(&pub->window)) != NULL;) {
    bool recalled = oldest->tag <= pub->recalled_upto;
    task = amqp_window_take_upto(&pub->window, UINT64_MAX);
    if (recalled || !amqp_queue_put(&sink->queue, (struct amqp_waiting){.task = task, .suspect = true}))
      report(sink, task, recalled ? AMQP_EVENT_UNREPEATED : AMQP_EVENT_UNDECIDED, code, text);
  }
}

static void on_closed(void *ctx, struct amqp_pub *pub, int code, const char *text) {
  struct amqp_sink *sink = ctx;
  const struct duebox_task *unsent = pub->writing; /* the newest; the broker never had all of it */
  bool probe = is_probe(pub);
  uint32_t open = pub->window.count;
  bool recalled = pub->window.next - 1 <= pub->recalled_upto; /* the newest */
  sink->host->log(sink->host->ctx, DUEBOX_LOG_WARN, "AMQP-CHANNEL-CLOSED",
                  "the broker closed a channel with %u unconfirmed messages%s: %s", open,
                  open > 1 ? "; they are sent again one by one to find the one it means" : "", text);
  if (unsent && !probe)
    amqp_window_take(&pub->window, pub->window.next - 1);
  if (pub->window.count == 1)
    blame(sink,
          (struct amqp_waiting){.task = amqp_window_take_upto(&pub->window, UINT64_MAX),
                                .suspect = carries_suspect(sink, pub)},
          code, text);
  suspect_all(sink, pub, code, text);
  if (unsent && !probe && (recalled || !amqp_queue_put(&sink->queue, (struct amqp_waiting){.task = unsent})))
    report(sink, unsent, recalled ? AMQP_EVENT_RECALLED : AMQP_EVENT_NOT_SENT, 0, text);
  amqp_pub_open(pub);
}

static const struct amqp_pub_user pub_user = {.ready = on_ready, .decided = on_decided, .closed = on_closed};

/* ---- what the connection tells -------------------------------------------------------------------------------- */

static void on_up(void *ctx) {
  struct amqp_sink *sink = ctx;
  int most = amqp_get_channel_max(sink->conn.link); /* 0 = as many as there are numbers */
  if (most == 1)
    amqp_conn_fail(&sink->conn, "the broker allows one channel only (channel_max); this needs two, and uses %d or more",
                   1 + AMQP_PROBES);
  int flows = most == 0 || most > AMQP_FLOWS + AMQP_PROBES ? AMQP_FLOWS : most - AMQP_PROBES;
  sink->most_flows = flows > 1 ? (uint32_t)flows : 1;
  for (uint32_t i = 0; i < channels(sink) && (most == 0 || i < (uint32_t)most); i++)
    amqp_pub_open(channel_at(sink, i));
}

/* Completes all that is open on a channel. */
static void empty(struct amqp_sink *sink, struct amqp_pub *pub, enum amqp_event event, const char *detail) {
  const struct duebox_task *task;
  bool suspect = carries_suspect(sink, pub);
  while ((task = amqp_window_take_upto(&pub->window, UINT64_MAX)) != NULL)
    report(sink, task, task == pub->writing && !suspect ? AMQP_EVENT_NOT_SENT : event, 0, detail);
}

static void on_down(void *ctx, const char *reason) {
  struct amqp_sink *sink = ctx;
  if (amqp_outcome_names_message(sink->conn.closed)) {
    for (uint32_t i = 0; i < channels(sink); i++)
      amqp_apart_take_over(&sink->apart, channel_at(sink, i), carries_suspect(sink, channel_at(sink, i)), reason);
    amqp_apart_take_over_waiting(&sink->apart, &sink->queue);
  }
  for (uint32_t i = 0; i < channels(sink); i++) {
    empty(sink, channel_at(sink, i), AMQP_EVENT_LOST, reason);
    amqp_pub_lost(channel_at(sink, i));
  }
  sink->flow_count = 1;
  sink->flows[0].route = 0;
  sink->ready = false;
  hand_back(sink, AMQP_EVENT_LOST, reason);
  amqp_set_clear(&sink->safe); /* exchanges may be gone when it comes back, and limits different */
  sink->too_large = SIZE_MAX;
}

static void on_frame(void *ctx, const amqp_frame_t *frame) {
  struct amqp_sink *sink = ctx;
  if (frame->channel < FIRST_CHANNEL + channels(sink))
    amqp_pub_frame(channel_at(sink, frame->channel - FIRST_CHANNEL), frame);
  else
    amqp_conn_fail(&sink->conn, "the broker sent something on channel %u, which was never opened", frame->channel);
}

static void on_blocked(void *ctx, bool blocked, const char *reason) {
  struct amqp_sink *sink = ctx;
  sink->host->health(sink->host->ctx, !blocked, reason);
  if (blocked) {
    sink->host->log(sink->host->ctx, DUEBOX_LOG_WARN, "AMQP-BLOCKED", "%s", reason);
    hand_back(sink, 0, reason);
  } else {
    sink->unblocked_us = amqp_now_us();
    sink->host->log(sink->host->ctx, DUEBOX_LOG_INFO, "AMQP-UNBLOCKED", "the broker takes messages again");
  }
}

static const struct amqp_conn_user conn_user = {
    .channels = AMQP_PROBES + AMQP_FLOWS, .up = on_up, .down = on_down, .frame = on_frame, .blocked = on_blocked};

/* ---- publishing ----------------------------------------------------------------------------------------------- */

static int64_t wall_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Publishes a task, or completes it when AMQP cannot carry it; false = not now. */
static bool publish(void *ctx, struct amqp_pub *pub, const struct duebox_task *task, int64_t now_us) {
  struct amqp_sink *sink = ctx;
  if (!amqp_pub_can_take(pub))
    return false;
  const struct amqp_route *route = task->route_data;
  int invalid;
  const char *key = amqp_message_key(sink->host, task, route, sink->routing_key, &invalid);
  if (key)
    invalid = amqp_message_build(&sink->message, task, route, wall_us(), (size_t)amqp_get_frame_max(pub->conn->link));
  if (invalid == 0)
    return amqp_pub_publish(pub, &sink->message, task, route->exchange, key, now_us);
  if (invalid < 0)
    report(sink, task, AMQP_EVENT_NO_MEMORY, 0, NULL);
  else
    report(sink, task, AMQP_EVENT_INVALID, invalid, NULL);
  return true;
}

static const struct amqp_apart_user apart_user = {.publish = publish, .report = report};

/* A probe channel for the task; NULL = none is free, or one carries a message of its route: a route whose queue
 * confirms nothing holds up nobody else. */
static struct amqp_probe *free_probe(struct amqp_sink *sink, const struct duebox_task *task) {
  struct amqp_probe *found = NULL;
  for (int i = 0; i < AMQP_PROBES; i++) {
    const struct amqp_slot *open = amqp_window_oldest(&sink->probes[i].pub.window);
    if (open && strcmp(open->task->route, task->route) == 0)
      return NULL;
    if (!found && amqp_pub_can_take(&sink->probes[i].pub))
      found = &sink->probes[i];
  }
  return found;
}

/* Begins to open one more; NULL = none may be, or no memory. */
static struct amqp_flow *add_flow(struct amqp_sink *sink) {
  struct amqp_flow *flow = &sink->flows[sink->flow_count];
  if (sink->flow_count == sink->most_flows)
    return NULL;
  amqp_channel_t number = (amqp_channel_t)(FIRST_CHANNEL + channels(sink));
  if (!flow->pub.conn && !amqp_pub_init(&flow->pub, &sink->conn, number, sink->inflight, &pub_user, sink)) {
    flow->pub.conn = NULL;
    return NULL;
  }
  sink->flow_count++;
  amqp_pub_open(&flow->pub);
  return flow;
}

/* The channel of the task's route. */
static struct amqp_pub *flow_of(struct amqp_sink *sink, const struct duebox_task *task) {
  uint64_t key = route_key(task);
  for (uint32_t i = 0; i < sink->flow_count; i++)
    if (sink->flows[i].route == key)
      return &sink->flows[i].pub;
  struct amqp_flow *flow = sink->flows[0].route ? add_flow(sink) : &sink->flows[0];
  if (!flow) /* then flows[0] is in use; clang-tidy does not see that the count is not zero */
    return &sink->flows[sink->flow_count ? key % sink->flow_count : 0].pub;
  flow->route = key;
  return &flow->pub;
}

/* The same, where the task goes with others, perhaps after the channel has been opened again; NULL = it goes alone. */
static struct amqp_pub *shared_flow(struct amqp_sink *sink, const struct duebox_task *task) {
  struct amqp_pub *flow = flow_of(sink, task);
  return flow->heard_us && !needs_probe(sink, task) ? flow : NULL;
}

static bool send_waiting(struct amqp_sink *sink, const struct amqp_waiting *next, int64_t now_us) {
  struct amqp_pub *flow = next->suspect ? NULL : shared_flow(sink, next->task);
  if (flow)
    return publish(sink, flow, next->task, now_us);
  struct amqp_probe *probe = free_probe(sink, next->task);
  if (!probe || !publish(sink, &probe->pub, next->task, now_us))
    return false;
  probe->suspect = next->suspect;
  return true;
}

/* Lets waiting tasks go: alone over a probe channel, or with the others once they are believed harmless. */
static void pump(struct amqp_sink *sink, int64_t now_us) {
  for (uint32_t tries = sink->queue.lanes; tries > 0 && amqp_conn_usable(&sink->conn) && !sink->conn.blocked;) {
    if (send_waiting(sink, amqp_queue_next(&sink->queue), now_us)) {
      amqp_queue_take(&sink->queue);
      tries = sink->queue.lanes;
    } else {
      amqp_queue_skip(&sink->queue);
      tries--;
    }
  }
}

/* The broker could not be reached when it was last tried. At the very start nothing is known yet. */
static bool known_to_be_down(const struct amqp_sink *sink) {
  return sink->conn.state != AMQP_CONN_UP && sink->conn.said_down;
}

size_t amqp_sink_submit(struct amqp_sink *sink, const struct duebox_task *const *tasks, size_t n) {
  size_t k = 0;
  if (sink->closed)
    return 0;
  if (known_to_be_down(sink)) {
    for (; k < n; k++)
      report(sink, tasks[k], AMQP_EVENT_NOT_SENT, 0, sink->conn.reason);
    return n;
  }
  if (!sink->ready || sink->conn.blocked || !amqp_conn_usable(&sink->conn))
    return 0;
  int64_t now = amqp_now_us();
  bool taken = true;
  amqp_conn_cork(&sink->conn, true);
  while (k < n && taken) {
    bool apart = amqp_apart_takes(&sink->apart, tasks[k]->route, now);
    struct amqp_pub *flow = apart ? NULL : shared_flow(sink, tasks[k]);
    taken = apart ? amqp_apart_put(&sink->apart, tasks[k], false, now)
            : flow && flow->state == AMQP_PUB_READY
                ? publish(sink, flow, tasks[k], now)
                : amqp_queue_put(&sink->queue, (struct amqp_waiting){.task = tasks[k]});
    k += taken;
  }
  pump(sink, now);
  amqp_conn_cork(&sink->conn, false);
  return k;
}

/* ---- the driver ----------------------------------------------------------------------------------------------- */

/* When the oldest message of a channel is overdue. The clock stands still while the broker has an alarm, and while it
 * is at work on what was sent before, for whatever route: it reads one connection in order. */
static int64_t overdue_at(const struct amqp_sink *sink, const struct amqp_pub *pub) {
  const struct amqp_slot *oldest = amqp_window_oldest(&pub->window);
  if (!oldest || sink->conn.blocked)
    return INT64_MAX;
  int64_t since = oldest->sent_us > sink->unblocked_us ? oldest->sent_us : sink->unblocked_us;
  return (since > pub->behind_us ? since : pub->behind_us) + sink->confirm_timeout_us;
}

static int64_t next_deadline(struct amqp_sink *sink) {
  int64_t next = amqp_apart_next(&sink->apart);
  for (uint32_t i = 0; i < channels(sink); i++) {
    const struct amqp_pub *pub = channel_at(sink, i);
    int64_t at = amqp_pub_waits(pub) ? pub->answer_by_us : overdue_at(sink, pub);
    next = at < next ? at : next;
  }
  return next;
}

static bool is_not_stuck(void *ctx, const struct amqp_waiting *waiting) {
  const struct finding *finding = ctx;
  if (!waiting->suspect || !same_way(finding->task, waiting->task))
    return true;
  bool same = target_key(finding->sink, waiting->task) == finding->target;
  report(finding->sink, waiting->task, same ? AMQP_EVENT_NO_CONFIRM : AMQP_EVENT_UNTRIED, 0, NULL);
  return false;
}

/* A suspect that is not confirmed alone either: the others that go its way might each wait as long, one by one. */
static void give_up_suspects(struct amqp_sink *sink, const struct duebox_task *task) {
  struct finding finding = {.sink = sink, .task = task, .target = target_key(sink, task)};
  amqp_queue_filter(&sink->queue, is_not_stuck, &finding);
}

/* A message that is overdue while others are confirmed waits for a queue that is stuck: it alone is given up, and a
 * late confirm finds nothing. When nothing was confirmed for as long, the channel itself is given up. */
static void check_overdue(struct amqp_sink *sink, struct amqp_pub *pub, int64_t now_us) {
  if (amqp_pub_waits(pub)) {
    if (now_us >= pub->answer_by_us)
      amqp_conn_fail(&sink->conn, "the broker did not answer on channel %u within connect_timeout", pub->number);
    return;
  }
  while (now_us >= overdue_at(sink, pub) && amqp_conn_usable(&sink->conn)) {
    if (carries_suspect(sink, pub))
      give_up_suspects(sink, amqp_window_oldest(&pub->window)->task);
    if (pub->writing && pub->window.count == 1) {
      amqp_conn_fail(&sink->conn, "the broker read nothing within confirm_timeout");
    } else if (pub->writing || now_us - pub->heard_us < sink->confirm_timeout_us) {
      report(sink, amqp_window_take_upto(&pub->window, UINT64_MAX), AMQP_EVENT_NO_CONFIRM, 0, NULL);
    } else {
      sink->host->log(sink->host->ctx, DUEBOX_LOG_WARN, "AMQP-CONFIRM-TIMEOUT",
                      "no confirm within confirm_timeout; giving up a channel with %u messages", pub->window.count);
      empty(sink, pub, AMQP_EVENT_NO_CONFIRM, NULL);
      amqp_pub_give_up(pub);
    }
  }
}

static void follow_work(struct amqp_sink *sink, int64_t now_us) {
  for (uint32_t i = 0; i < channels(sink); i++) {
    const struct amqp_slot *oldest = amqp_window_oldest(&channel_at(sink, i)->window);
    if (oldest && oldest->sent_us >= sink->worked_us)
      channel_at(sink, i)->behind_us = now_us;
  }
  sink->worked_us = INT64_MAX;
}

/* Goes on with what is half sent, and lets go what waits. */
static void send_on(struct amqp_sink *sink, int64_t now_us) {
  bool writing = false;
  for (uint32_t i = 0; i < channels(sink); i++)
    writing |= channel_at(sink, i)->writing != NULL;
  if (!writing && !sink->queue.count)
    return;
  amqp_conn_cork(&sink->conn, true);
  for (uint32_t i = 0; i < channels(sink); i++)
    amqp_pub_continue(channel_at(sink, i), now_us);
  pump(sink, now_us);
  amqp_conn_cork(&sink->conn, false);
}

/* Sends before it waits, never after: the host comes first when the process goes on after it stood still. */
void amqp_sink_poll(struct amqp_sink *sink, int timeout_ms) {
  amqp_apart_poll(&sink->apart);
  if (amqp_conn_usable(&sink->conn))
    send_on(sink, amqp_now_us());
  amqp_conn_poll(&sink->conn, timeout_ms, next_deadline(sink));
  if (!amqp_conn_usable(&sink->conn))
    return;
  int64_t now = amqp_now_us();
  follow_work(sink, now);
  for (uint32_t i = 0; i < channels(sink); i++)
    check_overdue(sink, channel_at(sink, i), now);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

bool amqp_sink_create(struct amqp_sink *sink, const struct duebox_instance_config *config,
                      const struct duebox_host *host, struct duebox_error *err) {
  const struct amqp_options *options = config->options;
  uint32_t inflight = config->max_inflight < MOST_INFLIGHT ? config->max_inflight : MOST_INFLIGHT;
  struct amqp_target *target = amqp_target_new(options, config->name, err);
  if (!target || !amqp_conn_init(&sink->conn, target, host, &conn_user, sink, err))
    return false;
  inflight += inflight == 0;
  sink->conn.beside = &sink->apart.conn;
  if (!amqp_apart_init(&sink->apart, target, host, inflight, &apart_user, sink, err))
    return false;
  sink->host = host;
  sink->confirm_timeout_us = options->confirm_timeout_ms * 1000;
  sink->too_large = SIZE_MAX;
  sink->worked_us = INT64_MAX;
  sink->inflight = inflight;
  sink->flow_count = 1;
  bool ok = amqp_pub_init(&sink->flows[0].pub, &sink->conn, FIRST_CHANNEL, inflight, &pub_user, sink);
  for (int i = 0; i < AMQP_PROBES; i++)
    ok &= amqp_pub_init(&sink->probes[i].pub, &sink->conn, (amqp_channel_t)(FIRST_CHANNEL + 1 + i), 1, &pub_user, sink);
  ok &= amqp_set_init(&sink->safe, MOST_BELIEVED);
  ok &= amqp_set_init(&sink->refused, MOST_BELIEVED);
  ok &= amqp_set_init(&sink->refused_keys, MOST_BELIEVED);
  ok &= amqp_queue_init(&sink->queue, inflight);
  if (!ok) {
    snprintf(err->text, sizeof err->text, "not enough memory for %u messages in flight; lower max_inflight", inflight);
    return false;
  }
  return true;
}

/* Whether something is open that may still be decided: what the connection apart holds it decides, or hands back. */
static bool is_busy(struct amqp_sink *sink) {
  uint32_t open = sink->queue.count;
  for (uint32_t i = 0; i < channels(sink); i++)
    open += channel_at(sink, i)->window.count;
  return (open > 0 && amqp_conn_usable(&sink->conn)) || amqp_apart_open(&sink->apart) > 0;
}

void amqp_sink_stop(struct amqp_sink *sink, int deadline_ms) {
  int64_t deadline = amqp_now_us() + (int64_t)deadline_ms * 1000;
  int64_t goodbye = (int64_t)deadline_ms * 250 < GOODBYE_US ? (int64_t)deadline_ms * 250 : GOODBYE_US;
  sink->closed = true;
  for (int64_t left = 1; left > 0 && is_busy(sink);) {
    left = deadline - goodbye - amqp_now_us();
    amqp_sink_poll(sink, left > 0 ? (int)((left + 999) / 1000) : 0);
  }
  for (uint32_t i = 0; i < channels(sink); i++)
    empty(sink, channel_at(sink, i), AMQP_EVENT_STOPPED, NULL);
  hand_back(sink, AMQP_EVENT_STOPPED, "stopped");
  amqp_apart_stop(&sink->apart, deadline);
  amqp_conn_shutdown(&sink->conn, deadline);
}

void amqp_sink_destroy(struct amqp_sink *sink) {
  for (int i = 0; i < AMQP_FLOWS; i++)
    amqp_pub_free(&sink->flows[i].pub);
  for (int i = 0; i < AMQP_PROBES; i++)
    amqp_pub_free(&sink->probes[i].pub);
  amqp_set_free(&sink->safe);
  amqp_set_free(&sink->refused);
  amqp_set_free(&sink->refused_keys);
  amqp_message_free(&sink->message);
  amqp_queue_free(&sink->queue);
  amqp_apart_free(&sink->apart);
  amqp_conn_free(&sink->conn);
}
