/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory.h"
#include "store_double_fixture.h"

static case_fn *running;

static void main_strand(void *arg) {
  struct fixture *f = arg;
  table_begin(&f->db, SHARDS, chance_of(7, 3));
  f->store = store_double_new(&f->db, &f->machine);
  f->ops = f->store->ops;
  f->store->identify(f->store->self, "me");
  for (unsigned i = 0; i < SHARDS; i++) {
    struct shard_entry *shard = &f->db.data.shards[i];
    *shard = (struct shard_entry){
        .present = true, .epoch = 7, .owned = true, .owner = "me", .lease_until_us = table_clock(&f->db) + 60 * SECOND};
    shard->unclean = true;
    f->leases[i] = (struct shard_lease){.shard = (uint8_t)i, .epoch = 7, .owner = "me"};
  }
  ok(f, f->ops->open(f->store->self, "test", 0, &f->ss, &f->err));
  running(f);
  if (f->other)
    user_rollback(&f->other);
  f->ops->close(&f->ss);
  store_double_free(&f->store);
  check_int(f->db.lock_count, 0);
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    check(!f->db.connections[i]);
  table_end(&f->db);
  world_stop();
}

void run_case(void **state) {
  const struct store_case *it = *state;
  struct fixture *f = calloc(1, sizeof *f);
  const char *why;
  assert_non_null(f);
  f->machine.number = 1;
  f->machine.wall_ahead_us = TABLE_EPOCH_US;
  running = it->run;
  world_begin(&(struct world_options){.seed = 1, .strategy = STRATEGY_RANDOM, .steps_max = 1000000});
  world_spawn(&f->machine, "test", main_strand, f);
  bool done = world_run(&why);
  char said[1024];
  (void)snprintf(said, sizeof said, "%s", why);
  world_end();
  memory_free_all(f->machine.number);
  free(f);
  if (!done)
    fail_msg("%s", said);
}

void case_failed(const char *file, int line, const char *fmt, ...) {
  char text[800];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  world_fail("%s:%d: %s", file, line, text);
}

void insert(struct fixture *f, struct spec spec) {
  struct tx *tx = user_begin(&f->db);
  const char *payload = spec.payload ? spec.payload : "p";
  struct row *row = user_insert(tx, spec.route ? spec.route : "r", payload, strlen(payload));
  int64_t now_us = table_clock(&f->db);
  char message_id[32];
  if (spec.id)
    row->id = spec.id;
  (void)snprintf(message_id, sizeof message_id, "m%llu", (unsigned long long)row->id);
  blob_put(&row->text[ROW_MESSAGE_ID], spec.message_id ? spec.message_id : message_id);
  blob_put(&row->text[ROW_ORDER_KEY], spec.order_key ? spec.order_key : "");
  blob_put(&row->text[ROW_TARGET_HOST], spec.host ? spec.host : "");
  blob_put(&row->text[ROW_CLAIMED_BY], spec.claimed_by);
  blob_put(&row->text[ROW_MOVE_TO_HOST], spec.move_to_host);
  row->shard = spec.shard;
  row->priority = spec.priority ? spec.priority : STORE_PRIORITY;
  row->state = spec.state;
  row->attempt = spec.attempt;
  row->failures = spec.failures;
  row->timeout_ms = spec.timeout_ms;
  row->due_us = now_us + spec.due_us;
  row->expires_us = spec.expires_us ? now_us + spec.expires_us : TIME_NULL;
  row->has_epoch = spec.epoch;
  row->claim_epoch = spec.epoch;
  row->move_to_shard = spec.move_to_shard - 1;
  if (spec.state == TASK_CLAIMED || spec.state == TASK_AWAITING)
    row->lease_until_us = now_us + (spec.lease_until_us ? spec.lease_until_us : HOUR);
  check(user_commit(&tx));
}

struct row *the_row(struct fixture *f, uint64_t id) {
  table_pump(&f->db);
  return table_row(&f->db, id);
}

struct shard_entry *the_shard(struct fixture *f, uint8_t shard) {
  table_pump(&f->db);
  return &f->db.data.shards[shard];
}

const char *row_of(struct fixture *f, uint64_t id) {
  const struct row *row = the_row(f, id);
  (void)snprintf(f->text, sizeof f->text, "(none)");
  if (row)
    (void)snprintf(f->text, sizeof f->text, "%s|%u|%u|%u|%u", task_state_text(row->state), row->attempt, row->failures,
                   row->recoveries, row->revision);
  return f->text;
}

const char *states_of(struct fixture *f) {
  size_t used = 0;
  f->text[0] = '\0';
  table_pump(&f->db);
  for (size_t i = 0; i < f->db.data.rows.count; i++)
    used += (size_t)snprintf(f->text + used, sizeof f->text - used, "%s%s", i ? "," : "",
                             task_state_text(((const struct row *)f->db.data.rows.at[i])->state));
  return f->text;
}

const char *over_of(struct fixture *f) {
  table_pump(&f->db);
  const struct list *list = &f->db.data.history;
  const struct row *row = list->count ? list->at[list->count - 1] : NULL;
  (void)snprintf(f->text, sizeof f->text, "(none)");
  if (row)
    (void)snprintf(f->text, sizeof f->text, "%s|%u|%u", task_state_text(row->state), row->attempt, row->failures);
  return f->text;
}

const char *line_of(struct fixture *f) {
  table_pump(&f->db);
  const struct list *list = &f->db.data.attempts;
  const struct line *line = list->count ? list->at[list->count - 1] : NULL;
  (void)snprintf(f->text, sizeof f->text, "(none)");
  if (line)
    (void)snprintf(f->text, sizeof f->text, "%s|%s|%u", line->kind, line->outcome, line->attempt);
  return f->text;
}

void change(struct fixture *f, uint64_t id, const char *payload) {
  struct tx *tx = user_begin(&f->db);
  struct row *row = user_update(tx, id);
  check(row);
  blob_put(&row->text[ROW_PAYLOAD], payload);
  check(user_commit(&tx));
}

void delete_row(struct fixture *f, uint64_t id) {
  struct tx *tx = user_begin(&f->db);
  check(user_delete(tx, id));
  check(user_commit(&tx));
}

void hold(struct fixture *f, enum lock_kind kind, uint64_t key) {
  if (!f->other)
    f->other = user_begin(&f->db);
  check(user_lock(f->other, kind, key, false));
}

void let_go(struct fixture *f) { check(user_commit(&f->other)); }

void hit(struct fixture *f, enum table_hit with, bool commits, int times) {
  f->db.hit = with;
  f->db.hit_commits = commits;
  f->db.hit_times = times;
}

struct task_batch *read_group(struct fixture *f, enum task_state state, uint8_t shard, const char *route) {
  const struct store_range range = {
      .state = state, .shard = shard, .priority = STORE_PRIORITY, .route = route, .limit = 1000};
  struct task_batch *batch;
  ok(f, f->ops->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 1 << 20, .bytes = 1 << 20}, &batch, NULL,
                     NULL, &f->err));
  return batch;
}

void release(struct task_batch *batch) {
  for (size_t i = 0, count = size_of(batch); i < count; i++)
    task_release(&batch->tasks[i]);
}

size_t size_of(const struct task_batch *batch) { return batch ? batch->count : 0; }

enum store_status claim_rows(struct fixture *f, const struct shard_lease *leases, size_t lease_count,
                             const uint64_t *ids, size_t count, struct task_batch **batch, uint64_t *lost) {
  char(*message_ids)[STORE_ID_MAX + 1] = calloc(count, sizeof *message_ids);
  const struct row *first = the_row(f, ids[0]);
  char route[STORE_ROUTE_MAX + 1], host[STORE_ID_MAX + 1];
  check(message_ids && first);
  (void)snprintf(route, sizeof route, "%s", first->text[ROW_ROUTE]->data);
  (void)snprintf(host, sizeof host, "%s", first->text[ROW_TARGET_HOST]->data);
  for (size_t i = 0; i < count; i++) {
    const struct row *row = the_row(f, ids[i]);
    (void)snprintf(message_ids[i], sizeof message_ids[i], "%s", row ? row->text[ROW_MESSAGE_ID]->data : "gone");
  }
  const struct store_claim claim = {.instance = "me",
                                    .route = route,
                                    .host = host,
                                    .leases = leases,
                                    .lease_count = lease_count,
                                    .ids = ids,
                                    .message_ids = (const char(*)[STORE_ID_MAX + 1]) message_ids,
                                    .count = count,
                                    .timeout_ms = 1000,
                                    .timeout_most_ms = 5000,
                                    .lease_ms = 1000,
                                    .limit = {.payload = 1 << 20, .bytes = 1 << 20}};
  enum store_status status = f->ops->claim(f->ss, &claim, batch, lost, &f->err);
  free(message_ids);
  return status;
}

struct decision decide_on(struct fixture *f, uint64_t id, enum task_event event) {
  const struct row *row = the_row(f, id);
  check(row);
  const struct blob *message_id = row->text[ROW_MESSAGE_ID];
  char *text = strdup(message_id->data); /* freed with the machine */
  bool runs = event == EVENT_RELEASE || event == EVENT_CANCEL || event == EVENT_PROGRESS || event == EVENT_HOLD ||
              event == EVENT_BLOCK || event == EVENT_EXPIRE || event == EVENT_DEFER || row->state != TASK_SCHEDULED;
  return (struct decision){.id = id,
                           .message_id = {text, message_id->len},
                           .shard = row->shard,
                           .from = row->state,
                           .attempt_from = row->attempt,
                           .event = event,
                           .attempt = row->attempt + !runs,
                           .failures = row->failures,
                           .recoveries = row->recoveries};
}

struct decision decide_on_sent(const struct task *task, enum task_event event) {
  return (struct decision){.id = task->id,
                           .message_id = task->message_id,
                           .changed_at = task->changed_at,
                           .sent = task,
                           .shard = task->shard,
                           .from = task->state,
                           .attempt_from = task->attempt,
                           .event = event,
                           .attempt = task->attempt + (task->state == TASK_SCHEDULED),
                           .failures = task->failures,
                           .recoveries = task->recoveries,
                           .published_us = TABLE_EPOCH_US,
                           .delay_us = HOUR};
}

size_t settle(struct fixture *f, struct decision *decisions, size_t count) {
  bool lost[SHARDS];
  size_t applied = 0;
  ok(f, f->ops->settle(f->ss, f->leases, SHARDS, decisions, count, lost, &f->err));
  for (size_t i = 0; i < count; i++)
    applied += decisions[i].applied;
  return applied;
}

void rows_and_decisions(struct fixture *f, struct decision *d, size_t count, enum task_event event) {
  for (size_t i = 0; i < count; i++)
    insert(f, (struct spec){.id = i + 1});
  for (size_t i = 0; i < count; i++) {
    d[i] = decide_on(f, i + 1, event);
    d[i].keep_us = d[i].delay_us = HOUR;
    d[i].log_attempt = true;
  }
}
