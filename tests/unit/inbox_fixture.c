/* SPDX-License-Identifier: MIT */
#include "inbox_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/base/clock.h"

static enum store_status open_session(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                                      struct err *err) {
  *out = store;
  return STORE_OK;
}

static void close_session(struct store_session **ss) { *ss = NULL; }

void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static void note(struct fixture *f, const struct result_record *record) {
  struct said *said = &f->said[f->said_count];
  if (f->said_count == SAID_MAX)
    return;
  snprintf(said->task, sizeof said->task, "%.31s", record->message_id);
  snprintf(said->checkpoint, sizeof said->checkpoint, "%.15s", record->checkpoint ? record->checkpoint : "");
  said->status = record->status;
  said->progress = record->progress;
  said->extend_ms = record->extend_ms;
  f->said_count++;
}

static void note_known(struct fixture *f, const char *task) {
  size_t number = strncmp(task, "task-", 5) == 0 ? strtoul(task + 5, NULL, 10) : SIZE_MAX;
  if (number >= ARRAY_LEN(f->known) || f->known[number])
    return;
  f->known[number] = true;
  f->known_count++;
}

/* As a store does it: behind one that is busy, or moves a task that none of an earlier call has moved. */
static bool is_behind(const struct fixture *f, unsigned said, const struct store_result *results, size_t at) {
  const char *task = results[at].record.message_id;
  bool behind = false, over = false;
  for (size_t i = 0; i < at && !behind; i++)
    behind = strcmp(results[i].record.message_id, task) == 0 &&
             (results[i].fate == RESULT_BUSY || results[i].record.status != RESULT_PROGRESS);
  for (unsigned i = 0; i < said && behind && !over; i++)
    over = f->said[i].status == RESULT_DONE && strcmp(f->said[i].task, task) == 0;
  return behind && !over;
}

/* It meets a lock, and is found to be the one that does. */
static bool meets_lock(struct fixture *f, const char *task) {
  if (!f->beside || strncmp(task, "beside-", 7) != 0)
    return false;
  nanosleep(&(struct timespec){.tv_nsec = BESIDE_MS * 1000000}, NULL);
  f->beside_tried++;
  return true;
}

static enum store_status settle_results(struct store_session *ss, struct store_result *results, size_t count,
                                        result_decide_fn *decide, void *ctx, struct err *err) {
  struct fixture *f = (struct fixture *)(void *)ss;
  unsigned said = f->said_count;
  f->in = true;
  f->calls++;
  while (f->shut)
    nap();
  if (f->away || f->unwritable)
    return STORE_DOWN;
  for (size_t i = 0; i < count; i++) {
    if ((results[i].behind = f->postpones || is_behind(f, said, results, i))) {
      results[i].fate = RESULT_BUSY;
      continue;
    }
    bool poor = strncmp(results[i].record.message_id, "poor-", 5) == 0;
    f->mixed = f->mixed || (results[i].apart && !poor);
    results[i].left = f->refuses && poor && !results[i].apart;
    snprintf(results[i].route, sizeof results[i].route, poor ? "poor" : "work");
    if (results[i].left) {
      results[i].fate = RESULT_BUSY;
      continue;
    }
    results[i].form = f->refuses && poor ? DECISION_NO_HISTORY : DECISION_WHOLE;
    results[i].early = f->early && !results[i].record.cannot_wait;
    bool busy = f->locked || results[i].early || meets_lock(f, results[i].record.message_id) ||
                (f->held && strcmp(results[i].record.message_id, "mine") == 0);
    bool stray = results[i].broken || results[i].record.status == RESULT_FAIL;
    results[i].fate = stray ? RESULT_BROKEN : busy ? RESULT_BUSY : RESULT_APPLIED;
    if (strncmp(results[i].record.message_id, "misrouted-", 10) == 0)
      results[i].fate = RESULT_MISROUTED;
    results[i].contradicts = strncmp(results[i].record.message_id, "opposite-", 9) == 0;
    if (results[i].contradicts)
      results[i].fate = RESULT_DUPLICATE;
    results[i].unkept = stray && f->kept;
    if (results[i].unkept) {
      results[i].fate = RESULT_BUSY;
      snprintf(results[i].refusal, sizeof results[i].refusal, "it fits nothing");
    }
    results[i].event = EVENT_DONE;
    f->tried++;
    f->broken += results[i].fate == RESULT_BROKEN;
    f->applied += results[i].fate == RESULT_APPLIED;
    if (results[i].fate == RESULT_APPLIED && results[i].record.status == RESULT_PROGRESS) {
      f->backwards = f->backwards || results[i].record.progress < f->progress;
      f->progress = results[i].record.progress;
    }
    note_known(f, results[i].record.message_id);
    snprintf(f->place, sizeof f->place, "%s", results[i].origin);
    note(f, &results[i].record);
  }
  return STORE_OK;
}

static enum store_status now(struct store_session *ss, int64_t *now_us, struct err *err) {
  *now_us = 0;
  return ((struct fixture *)(void *)ss)->away ? STORE_DOWN : STORE_OK;
}

static const struct store_ops ops = {
    .open = open_session, .close = close_session, .now = now, .settle_results = settle_results};

static struct config_ref *config_now(void *engine) { return config_ref_take(&((struct fixture *)engine)->ref); }
static int64_t db_now_us(void *engine) { return 0; }
static struct route_metrics *no_metrics(void *engine, const char *route) { return NULL; }
static void rows_changed(void *engine) {}
static void woken(void *inst) {}
static const struct duebox_plugin source_plugin = {DUEBOX_PLUGIN_PREFIX, .name = "source", .wakeup = woken};

static int set_up_with(void **state, int64_t patience_us) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err err = {0};
  assert_non_null(f);
  f->store = (struct store){.ops = &ops, .self = f};
  f->config.engine.max_checkpoint = 1024;
  f->ref = (struct config_ref){.users = 1, .config = &f->config}; /* never the last one */
  f->source = (struct driver){.name = "source", .module = &source_plugin};
  f->partner = (struct driver){.name = "partner", .module = &source_plugin};
  mutex_init(&f->source.ack_lock);
  mutex_init(&f->partner.ack_lock);
  const struct inbox_env env = {.engine = f,
                                .store = &f->store,
                                .config = config_now,
                                .db_now_us = db_now_us,
                                .route_metrics = no_metrics,
                                .rows_changed = rows_changed,
                                .metrics = &f->metrics,
                                .patience_us = patience_us};
  f->inbox = inbox_start(&env, &err);
  assert_non_null(f->inbox);
  *state = f;
  return 0;
}

int set_up(void **state) { return set_up_with(state, INT64_MAX); }
int set_up_impatient(void **state) { return set_up_with(state, 0); }

void offer(struct fixture *f, unsigned number) {
  char body[80];
  int len = snprintf(body, sizeof body, "{\"id\":\"task-%u\",\"attempt\":1,\"status\":\"done\"}", number);
  const struct duebox_record record = {
      .struct_size = sizeof record, .body = {body, (size_t)len}, .full_len = (size_t)len, .origin = "topic"};
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; !inbox_offer(f->inbox, &f->source, &record, number); nap())
    assert_true(clock_mono_us() < end);
}

bool call_back_within(struct fixture *f, int64_t timeout_ms, struct store_result *result, struct err *err) {
  static const char body[] = "{\"id\":\"mine\",\"attempt\":1,\"status\":\"done\"}";
  const struct result_offer offer = {.source = "callback",
                                     .origin = "/callback",
                                     .body = {body, sizeof body - 1},
                                     .road = {.message_id = "mine", .attempt = 1},
                                     .replied = true};
  *err = (struct err){0};
  return inbox_apply(f->inbox, &offer, timeout_ms, result, err);
}

bool call_back(struct fixture *f, struct store_result *result, struct err *err) {
  return call_back_within(f, LIMIT_MS, result, err);
}

bool say(struct fixture *f, struct driver *driver, const char *text) {
  const struct duebox_record record = {
      .struct_size = sizeof record, .body = {text, strlen(text)}, .full_len = strlen(text), .origin = "topic"};
  return inbox_offer(f->inbox, driver, &record, 0);
}

bool say_of(struct fixture *f, struct driver *driver, const char *kind, unsigned number, const char *more) {
  char text[200];
  snprintf(text, sizeof text, "{\"id\":\"%s-%u\",\"attempt\":1,%s}", kind, number, more);
  return say(f, driver, text);
}

/* What comes from here on waits in the inbox. */
void shut(struct fixture *f) {
  f->shut = true;
  assert_true(say_of(f, &f->source, "shut", 0, DONE));
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; !f->in; nap())
    assert_true(clock_mono_us() < end);
}

void open_until(struct fixture *f, unsigned said) {
  f->shut = false;
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->said_count < said; nap())
    assert_true(clock_mono_us() < end);
}

/* How many records the store got before the last one of that kind. */
unsigned last_of(const struct fixture *f, const char *kind) {
  unsigned last = 0;
  for (unsigned i = 0; i < f->said_count; i++)
    if (strncmp(f->said[i].task, kind, strlen(kind)) == 0)
      last = i;
  return last;
}

int tear_down(void **state) {
  struct fixture *f = *state;
  inbox_close(f->inbox);
  inbox_free(&f->inbox);
  free(f->source.acks);
  free(f->partner.acks);
  free(f);
  return 0;
}
