/* SPDX-License-Identifier: MIT */
#include "broker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "memory.h"

enum { FORGOTTEN_US = 300 * 1000 }; /* below twice the shortest time-out of a route */
/* For how long a destination asks, at most, and how much later than it is back its plugin knows. */
enum { WISH_MS = 2000, BACK_US = 2 * 1000 * 1000 };

static struct broker *broker;

const char *const broker_event_names[BROKER_EVENTS] = {
    [BROKER_ARRIVED] = "arrived",
    [BROKER_REJECTED] = "rejected",
    [BROKER_RETRY] = "failed",
    [BROKER_UNAVAILABLE] = "unavailable",
    [BROKER_UNKNOWN_THERE] = "unknown, arrived",
    [BROKER_UNKNOWN_LOST] = "unknown, lost",
    [BROKER_HANG] = "hung call",
    [BROKER_FULL] = "full",
    [BROKER_TWICE] = "completed twice",
    [BROKER_ANSWERS] = "answers",
    [BROKER_DIED_ON_THE_WAY] = "died on the way",
    [BROKER_RECALLED] = "recalled",
};

void broker_begin(struct broker *fresh, uint64_t seed) {
  broker = fresh;
  broker->chance = chance_of(seed, 10);
  broker->reach = chance_of(seed, 11);
  broker->next_arrival_us = INT64_MAX;
}

/* --- the world's side --- */

static void answer(const struct message *message, const char *status, const char *more) {
  if (broker->record_count == BROKER_RECORDS)
    world_fail("more than %d result records", BROKER_RECORDS);
  int64_t at = world_now_us() + chance_log_between(&broker->chance, broker->answer_low_us, broker->answer_high_us);
  size_t place = broker->record_count++;
  for (; place > 0 && broker->records[place - 1].at_us > at; place--)
    broker->records[place] = broker->records[place - 1];
  broker->records[place].at_us = at;
  (void)snprintf(broker->records[place].text, BROKER_RECORD_MAX,
                 "{\"id\": \"%s\", \"attempt\": %u, \"status\": \"%s\"%s}", message->message_id, message->attempt,
                 status, more);
  broker->counts[BROKER_ANSWERS]++;
}

static void consume(const struct message *message) {
  const struct broker_faults *faults = &broker->faults;
  struct chance *chance = &broker->chance;
  if (!broker->answers_for || strncmp(message->route, broker->answers_for, strlen(broker->answers_for)) != 0)
    return;
  if (chance_ppm(chance, faults->no_answer))
    return;
  while (chance_ppm(chance, faults->answer_progress))
    answer(message, "progress", ", \"progress\": 0.5, \"checkpoint\": \"half\", \"extend_ms\": 1000");
  if (chance_ppm(chance, faults->answer_unknown)) {
    struct message nobody = *message;
    (void)snprintf(nobody.message_id, sizeof nobody.message_id, "unknown");
    answer(&nobody, "done", "");
  }
  if (chance_ppm(chance, faults->answer_late) && message->attempt > 1) {
    struct message former = *message;
    former.attempt--;
    answer(&former, chance_ppm(chance, 500000) ? "done" : "retry", "");
  }
  if (chance_ppm(chance, faults->answer_retry)) {
    answer(message, "retry", ", \"retry_in_ms\": 50");
  } else if (chance_ppm(chance, faults->answer_fail)) {
    answer(message, "fail", ", \"error\": {\"class\": \"No\", \"message\": \"never\"}");
  } else if (chance_ppm(chance, faults->answer_broken)) {
    answer(message, "what", "");
  } else {
    answer(message, "done", "");
    if (chance_ppm(chance, faults->answer_twice))
      answer(message, "done", "");
  }
}

static int64_t next_arrival(void) {
  int64_t next = INT64_MAX;
  for (size_t i = 0; i < broker->message_count; i++)
    if (!broker->messages[i].arrived && !broker->messages[i].lost)
      next = earlier(next, broker->messages[i].arrives_us);
  return next;
}

/* Asked whenever anybody has run. */
static bool something_arrives(void *arg) {
  (void)arg;
  return broker->next_arrival_us <= world_now_us();
}

void broker_run(void *arg) {
  (void)arg;
  for (;;) {
    (void)world_wait(something_arrives, NULL, broker->next_arrival_us);
    for (size_t i = 0; i < broker->message_count; i++) {
      struct message *message = &broker->messages[i];
      if (message->arrived || message->lost || message->arrives_us > world_now_us())
        continue;
      message->arrived = true;
      broker->counts[BROKER_ARRIVED]++;
      world_trace("arrived %s attempt=%u payload=%s", message->message_id, message->attempt, message->payload);
      consume(message);
    }
    broker->next_arrival_us = next_arrival();
  }
}

void broker_machine_gone(struct broker *of, const struct machine *machine) {
  for (size_t i = 0; i < of->message_count; i++) {
    struct message *message = &of->messages[i];
    if (message->machine == machine->number && !message->arrived && chance_ppm(&of->chance, 500000)) {
      message->lost = true;
      of->counts[BROKER_DIED_ON_THE_WAY]++;
    }
  }
  if (of->reader == machine->number)
    of->reader = 0;
}

void broker_said(struct broker *of, const char *text) {
  if (of->said_count == BROKER_SAID)
    world_fail("more than %d results were offered", BROKER_SAID);
  of->said[of->said_count].at_us = world_now_us();
  (void)snprintf(of->said[of->said_count++].text, BROKER_RECORD_MAX, "%s", text);
}

bool broker_keeps(unsigned machine) { return broker->kept >> machine & 1; }

/* --- the plugin --- */

struct instance {
  const struct duebox_host *host;
  uint64_t number;
  char name[16];
  enum duebox_role role;
  bool woken, closed, full;
  bool slow;       /* a call has hung */
  size_t position; /* of a source: the next record that it offers */
  int64_t next_us; /* when the first of its messages is confirmed; INT64_MAX = there is none */
  int64_t up_us;   /* when its destination is back; INT64_MAX = it is there */
};

static bool start(void *inst, struct duebox_error *err) { return true; }

static bool hangs(const struct instance *self) {
  return (!broker->hangs || strcmp(broker->hangs, self->name) == 0) && chance_ppm(&broker->chance, broker->faults.hang);
}

static bool hang_is_over(void *arg) {
  (void)arg;
  return broker->hang_is_over;
}

/* Comes back after a while, or never. What the instance has in hand may be sent once more, by another. */
static void hang(struct instance *self) {
  int64_t us = chance_log_between(&broker->chance, broker->hang_low_us, broker->hang_high_us);
  bool forever = chance_ppm(&broker->chance, broker->hang_forever);
  broker->counts[BROKER_HANG]++;
  self->slow = true;
  if (broker->reader_instance == self->number) /* the group has not heard of it for long */
    broker->reader = broker->reader_instance = 0;
  broker->kept |= UINT64_C(1) << world_machine()->number;
  for (size_t i = 0; i < broker->message_count; i++)
    if (broker->messages[i].instance == self->number && !broker->messages[i].reported)
      broker->messages[i].slow = true;
  world_trace("a call of the plugin hangs%s", forever ? " for ever" : "");
  (void)world_wait(hang_is_over, NULL, forever ? INT64_MAX : world_now_us() + us);
}

static bool create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                   struct duebox_error *err) {
  struct instance *self = inst;
  world_point(POINT_PLUGIN, 0);
  self->host = host;
  self->number = ++broker->instances;
  self->role = config->role;
  self->next_us = self->up_us = INT64_MAX;
  (void)snprintf(self->name, sizeof self->name, "%s", config->name);
  if (broker->create_hangs)
    hang(self);
  self->host->health(self->host->ctx, true, "connected");
  return true;
}

static const struct broker_route *destination(const struct message *message) {
  for (size_t i = 0; i < broker->route_count; i++)
    if (strcmp(broker->routes[i].route, message->route) == 0)
      return &broker->routes[i];
  return NULL;
}

/* Its own target is in trouble, and no other. True when that is so. */
static bool draw_target(struct message *message) {
  if (!message->target || broker->target_down_until_us[message->target - 1] <= world_now_us())
    return false;
  message->outcome = chance_ppm(&broker->reach, 500000) ? DUEBOX_UNAVAILABLE : DUEBOX_RETRY;
  message->scope = DUEBOX_SCOPE_TARGET;
  message->wish_ms = -1;
  message->lost = true;
  return true;
}

/* How far its trouble reaches, and what the destination asks for. */
static void draw_reach(struct message *message, const struct broker_faults *faults) {
  struct chance *chance = &broker->reach;
  bool down = message->outcome == DUEBOX_UNAVAILABLE, failed = message->outcome == DUEBOX_RETRY;
  message->wish_ms = -1;
  /* A failure of its own, as HTTP's 500: many in a row are doubted, and suspend the route. */
  message->scope = failed ? DUEBOX_SCOPE_TARGET : DUEBOX_SCOPE_ROUTE;
  message->blameless = message->outcome == DUEBOX_UNKNOWN && chance_ppm(chance, faults->blameless);
  if ((down || failed) && chance_ppm(chance, faults->wish))
    message->wish_ms = chance_log_between(chance, 1, WISH_MS);
  if (down && message->target && chance_ppm(chance, 500000))
    message->scope = DUEBOX_SCOPE_TARGET;
  else if (down && chance_ppm(chance, faults->instance))
    message->scope = DUEBOX_SCOPE_INSTANCE;
  else if (down && chance_ppm(chance, faults->gone))
    message->outcome = DUEBOX_GONE;
}

static void draw(struct message *message, int64_t timeout_us) {
  const struct broker_route *own = destination(message);
  const struct broker_faults *faults = own ? &own->faults : &broker->faults;
  struct chance *chance = &broker->chance;
  int64_t now = world_now_us(), low_us = own ? own->low_us : broker->low_us,
          high_us = own ? own->high_us : broker->high_us;
  int64_t frozen_until_us = later(broker->frozen_until_us, own ? own->frozen_until_us : 0);
  message->arrives_us = now + chance_log_between(chance, low_us, high_us);
  if (frozen_until_us > now && chance_ppm(chance, 500000)) /* it stands in the plugin meanwhile */
    message->arrives_us = frozen_until_us + chance_log_between(chance, low_us, high_us);
  message->confirms_us = later(message->arrives_us, frozen_until_us) + chance_log_between(chance, low_us, high_us);
  message->slow = message->slow || message->confirms_us > now + 1000 * 1000;
  if (message->confirms_us > now + FORGOTTEN_US)
    broker->kept |= UINT64_C(1) << world_machine()->number;
  message->outcome = DUEBOX_DELIVERED;
  if (draw_target(message))
    return;
  if (broker->down_until_us > now || chance_ppm(chance, faults->unavailable)) {
    message->outcome = DUEBOX_UNAVAILABLE;
    broker->counts[BROKER_UNAVAILABLE]++;
  } else if (chance_ppm(chance, faults->rejected)) {
    message->outcome = DUEBOX_REJECTED;
    broker->counts[BROKER_REJECTED]++;
  } else if (broker->fails_until_us > now || chance_ppm(chance, faults->retry)) {
    message->outcome = DUEBOX_RETRY;
    broker->counts[BROKER_RETRY]++;
  } else if (chance_ppm(chance, faults->unknown)) {
    message->outcome = DUEBOX_UNKNOWN;
    bool there = chance_ppm(chance, 500000);
    broker->counts[there ? BROKER_UNKNOWN_THERE : BROKER_UNKNOWN_LOST]++;
    message->lost = !there;
    draw_reach(message, faults);
    return;
  }
  message->lost = message->outcome != DUEBOX_DELIVERED;
  draw_reach(message, faults);
  if (own && message->confirms_us > now + timeout_us) { /* the plugin waits for no longer */
    message->confirms_us = now + timeout_us;
    message->outcome = DUEBOX_UNKNOWN;
  }
}

/* What was not answered for long may have been given up. */
static void judge_concurrency(const struct message *message) {
  int64_t count = 0;
  for (size_t i = 0; i < broker->message_count; i++) {
    const struct message *other = &broker->messages[i];
    count += other->instance == message->instance && !other->reported && !other->slow &&
             strcmp(other->route, message->route) == 0;
  }
  if (count > broker->most(message->route))
    world_fail("P6: one instance is given %" PRId64 " tasks of %s at once", count, message->route);
}

static struct message *add_message(const struct instance *self, const struct duebox_task *task) {
  if (broker->message_count == BROKER_MESSAGES)
    world_fail("more than %d messages", BROKER_MESSAGES);
  struct message *message = &broker->messages[broker->message_count++];
  *message = (struct message){.attempt = task->attempt,
                              .revision = task->revision,
                              .machine = world_machine()->number,
                              .instance = self->number,
                              .token = task->token,
                              .target = task->key.len == 1 ? (unsigned)(task->key.data[0] - '0') : 0,
                              .submitted_us = world_now_us(),
                              .clock_us = broker->clock(broker->database),
                              .slow = self->slow};
  (void)snprintf(message->message_id, sizeof message->message_id, "%s", task->message_id);
  (void)snprintf(message->route, sizeof message->route, "%s", task->route);
  (void)snprintf(message->payload, sizeof message->payload, "%.*s", (int)task->payload.len, task->payload.data);
  (void)snprintf(message->host, sizeof message->host, "%s", world_machine()->host ? world_machine()->host : "");
  return message;
}

/* A call hangs with these. It may hand them over when it comes back. */
static void hang_with(struct instance *self, const struct duebox_task *const *tasks, size_t n) {
  for (size_t i = 0; i < n; i++) {
    struct message *message = add_message(self, tasks[i]);
    message->arrives_us = message->confirms_us = INT64_MAX;
    message->outcome = DUEBOX_UNKNOWN;
    message->lost = message->reported = true;
    world_trace("given %s attempt=%u", message->message_id, message->attempt);
  }
  hang(self);
}

static size_t submit(void *inst, const struct duebox_task *const *tasks, size_t n) {
  struct instance *self = inst;
  unsigned before = memory_belongs_to(0);
  size_t take = n;
  if (hangs(self))
    hang_with(self, tasks, n);
  if (broker->full_until_us > world_now_us())
    take = 0;
  else if (chance_ppm(&broker->chance, broker->faults.full)) {
    take = chance_below(&broker->chance, n + 1);
    broker->counts[BROKER_FULL]++;
  }
  for (size_t i = 0; i < take; i++) {
    struct message *message = add_message(self, tasks[i]);
    judge_concurrency(message);
    draw(message, (int64_t)tasks[i]->timeout_ms * 1000);
    self->next_us = earlier(self->next_us, message->confirms_us);
    if (!message->lost)
      broker->next_arrival_us = earlier(broker->next_arrival_us, message->arrives_us);
    world_trace("submit %s attempt=%u outcome=%d%s", message->message_id, message->attempt, (int)message->outcome,
                message->lost ? " lost" : "");
  }
  (void)memory_belongs_to(before);
  world_point(POINT_PLUGIN, take);
  return take;
}

static bool is_due(const struct instance *self, const struct message *message) {
  return message->instance == self->number && !message->reported && message->confirms_us <= world_now_us();
}

static bool may_read(const struct instance *self) {
  return self->role == DUEBOX_ROLE_SOURCE && !self->closed && !self->full && broker->reader_instance == self->number &&
         self->position < broker->record_count && broker->records[self->position].at_us <= world_now_us();
}

static bool something_to_do(void *arg) {
  struct instance *self = arg;
  if (self->woken || may_read(self))
    return true;
  if (self->role == DUEBOX_ROLE_SOURCE)
    return !self->closed && broker->reader == 0;
  return earlier(self->next_us, self->up_us) <= world_now_us();
}

static int64_t next_confirm(const struct instance *self) {
  int64_t next = INT64_MAX;
  for (size_t i = 0; i < broker->message_count; i++)
    if (broker->messages[i].instance == self->number && !broker->messages[i].reported)
      next = earlier(next, broker->messages[i].confirms_us);
  return next;
}

static int64_t next_due(const struct instance *self) {
  int64_t next = earlier(self->next_us, self->up_us);
  if (broker->reader_instance == self->number && !self->full && self->position < broker->record_count)
    next = earlier(next, broker->records[self->position].at_us);
  return next;
}

/* All of its destination is down, and it says when that is back. */
static void note_down(struct instance *self) {
  int64_t back_us = later(world_now_us(), broker->down_until_us);
  self->up_us = back_us + chance_log_between(&broker->reach, 1000, BACK_US);
  self->host->health(self->host->ctx, false, "down");
}

static void say_up(struct instance *self) {
  self->up_us = INT64_MAX;
  self->host->health(self->host->ctx, true, "connected");
}

static void complete(struct instance *self, struct message *message, enum duebox_outcome_class cls) {
  message->reported = true;
  bool twice = chance_ppm(&broker->chance, broker->faults.twice);
  for (int i = 0; i <= twice; i++)
    self->host->complete(self->host->ctx, message->token,
                         &DUEBOX_OUTCOME_AFTER(message->wish_ms, .cls = cls, .scope = message->scope,
                                               .blameless = message->blameless,
                                               .error_class = cls == DUEBOX_DELIVERED ? NULL : "sim.outcome"));
  if (cls == DUEBOX_UNAVAILABLE && message->scope == DUEBOX_SCOPE_INSTANCE)
    note_down(self);
  broker->counts[BROKER_TWICE] += twice;
}

static void read_records(struct instance *self) {
  if (broker->reader == 0 && !self->closed) { /* the group gives the topic to whoever asks first */
    broker->reader = world_machine()->number;
    broker->reader_instance = self->number;
    self->position = broker->committed;
    self->full = false;
    for (size_t i = broker->committed; i < broker->record_count; i++)
      broker->records[i].acked = false;
  }
  while (may_read(self)) {
    char text[BROKER_RECORD_MAX], origin[32];
    size_t at = self->position;
    (void)snprintf(text, sizeof text, "%s", broker->records[at].text);
    (void)snprintf(origin, sizeof origin, "results[0]@%zu", at);
    self->position = at + 1;
    if (!self->host->result(self->host->ctx,
                            &(struct duebox_record){.struct_size = sizeof(struct duebox_record),
                                                    .body = {text, strlen(text)},
                                                    .full_len = strlen(text),
                                                    .origin = origin},
                            at)) {
      self->position = at;
      self->full = true;
    }
  }
}

/* Of what has not arrived some has begun to leave, and some has not: that never arrives. */
static void recall(void *inst) {
  struct instance *self = inst;
  for (size_t i = 0; i < broker->message_count; i++) {
    struct message *message = &broker->messages[i];
    if (message->instance != self->number || message->reported || message->arrived ||
        chance_ppm(&broker->chance, 500000))
      continue;
    message->reported = message->lost = true;
    broker->counts[BROKER_RECALLED]++;
    world_trace("recalled %s attempt=%u", message->message_id, message->attempt);
    self->host->complete(self->host->ctx, message->token,
                         &DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE, .scope = DUEBOX_SCOPE_INSTANCE, .recalled = true,
                                         .error_class = "sim.recalled"));
  }
  world_point(POINT_PLUGIN, 0);
}

static void poll(void *inst, int timeout_ms) {
  struct instance *self = inst;
  if (hangs(self))
    hang(self);
  int64_t until = world_now_us() + (int64_t)timeout_ms * 1000;
  while (!something_to_do(self) && world_now_us() < until)
    (void)world_wait(something_to_do, self, earlier(until, next_due(self)));
  self->woken = false;
  if (self->role == DUEBOX_ROLE_SOURCE)
    read_records(self);
  if (self->up_us <= world_now_us())
    say_up(self);
  if (self->next_us <= world_now_us()) {
    for (size_t i = 0; i < broker->message_count; i++)
      if (is_due(self, &broker->messages[i]))
        complete(self, &broker->messages[i], broker->messages[i].outcome);
    self->next_us = next_confirm(self);
  }
  world_point(POINT_PLUGIN, 0);
}

static void wakeup(void *inst) {
  ((struct instance *)inst)->woken = true;
  world_point(POINT_PLUGIN, 0);
}

static void leave_topic(struct instance *self) {
  self->closed = true;
  if (broker->reader_instance == self->number)
    broker->reader = 0;
}

static void close_instance(void *inst) { leave_topic(inst); }

static void stop(void *inst, int deadline_ms) {
  struct instance *self = inst;
  int64_t until = world_now_us() + (int64_t)deadline_ms * 1000;
  leave_topic(self);
  for (size_t i = 0; i < broker->message_count; i++) {
    struct message *message = &broker->messages[i];
    if (message->instance != self->number || message->reported)
      continue;
    if (message->confirms_us <= until && message->confirms_us > world_now_us())
      world_sleep(message->confirms_us - world_now_us());
    complete(self, message, message->confirms_us <= world_now_us() ? message->outcome : DUEBOX_UNKNOWN);
  }
}

static void destroy(void *inst) { (void)inst; }

static void ack(void *inst, uint64_t cookie, bool committed) {
  struct instance *self = inst;
  if (committed && broker->reader_instance == self->number)
    broker->records[cookie].acked = true;
  while (broker->committed < broker->record_count && broker->records[broker->committed].acked)
    broker->committed++;
  world_point(POINT_PLUGIN, cookie);
}

static void resume(void *inst) { ((struct instance *)inst)->full = false; }

static const struct duebox_option no_options[] = {{.name = NULL}};
static const struct duebox_option route_options[] = {{"topic", DUEBOX_OPT_STRING, NULL, 0, 0,
                                                      DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET,
                                                      offsetof(struct broker_topic, topic), NULL, "where its tasks go"},
                                                     {.name = NULL}};
static const struct duebox_option source_options[] = {
    {"topic", DUEBOX_OPT_STRING, NULL, 0, 0, 0, offsetof(struct broker_source, topic), NULL, "where consumers answer"},
    {.name = NULL}};
static const struct duebox_sink_ops sink = {.struct_size = sizeof sink, .submit = submit, .recall = recall};
static const struct duebox_source_ops source = {.struct_size = sizeof source, .ack = ack, .resume = resume};

const struct duebox_plugin broker_plugin = {
    DUEBOX_PLUGIN_PREFIX,
    .capabilities = DUEBOX_CAP_SINK | DUEBOX_CAP_SOURCE,
    .name = "sim",
    .version = "1",
    .summary = "the broker of the simulation",
    .options = no_options,
    .route_options = route_options,
    .route_size = sizeof(struct broker_topic),
    .source_options = source_options,
    .source_size = sizeof(struct broker_source),
    .instance_size = sizeof(struct instance),
    .create = create,
    .start = start,
    .poll = poll,
    .wakeup = wakeup,
    .close = close_instance,
    .stop = stop,
    .destroy = destroy,
    .sink = &sink,
    .source = &source,
};
