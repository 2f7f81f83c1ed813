/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_tasks.c - the sink side of the fake host: tasks made, offered, completed and checked.
 *
 * A task view and all it points to live in one allocation that complete() frees.
 */
#include "tests/support/fake_host_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TOKEN_BASE 0x7000000000000000u /* so that a plugin cannot mistake a token for an index */

struct pack {
  char *at;
};

static struct duebox_bytes pack_bytes(struct pack *pack, const char *data, size_t len) {
  struct duebox_bytes bytes = {pack->at, len};
  if (len)
    memcpy(pack->at, data, len);
  pack->at[len] = '\0';
  pack->at += len + 1;
  return bytes;
}

static const char *pack_text(struct pack *pack, const char *text) {
  return text ? pack_bytes(pack, text, strlen(text)).data : NULL;
}

static size_t text_size(const char *text) { return text ? strlen(text) + 1 : 0; }

static size_t pack_size(const struct fake_task *task, const char *message_id, const char *route) {
  size_t size = sizeof(struct duebox_task) + task->header_count * sizeof(struct duebox_header);
  size += text_size(message_id) + text_size(route) + text_size(task->reply_to);
  size += task->key.len + task->payload.len + task->checkpoint.len + 3;
  for (size_t i = 0; i < task->header_count; i++)
    size += text_size(task->headers[i].name) + task->headers[i].value.len + 1;
  return size;
}

static struct duebox_task *make_view(const struct fake_task *task, const char *message_id, uint64_t token) {
  const char *route = task->route ? task->route : "test.route";
  char *block = malloc(pack_size(task, message_id, route));
  assert_non_null(block);
  struct duebox_task *view = (struct duebox_task *)block;
  struct duebox_header *headers = (struct duebox_header *)(view + 1);
  struct pack pack = {(char *)(headers + task->header_count)};
  for (size_t i = 0; i < task->header_count; i++) {
    headers[i].name = pack_text(&pack, task->headers[i].name);
    headers[i].value = pack_bytes(&pack, task->headers[i].value.data, task->headers[i].value.len);
  }
  *view = (struct duebox_task){
      .struct_size = sizeof(*view),
      .token = token,
      .message_id = pack_text(&pack, message_id),
      .route = pack_text(&pack, route),
      .attempt = task->attempt ? task->attempt : 1,
      .timeout_ms = task->timeout_ms ? task->timeout_ms : 30000,
      .due_us = task->due_us ? task->due_us : 1767323045123456, /* 2026-01-02T03:04:05.123456Z */
      .priority = task->priority ? task->priority : 5,
      .key = pack_bytes(&pack, task->key.data, task->key.len),
      .payload = pack_bytes(&pack, task->payload.data, task->payload.len),
      .checkpoint = pack_bytes(&pack, task->checkpoint.data, task->checkpoint.len),
      .headers = headers,
      .header_count = task->header_count,
      .reply_to = pack_text(&pack, task->reply_to),
      .route_data = task->route_data,
      .result_awaited = task->result_awaited,
  };
  return view;
}

void fake_task_drop(struct fake_entry *entry) {
  free(entry->view);
  entry->view = NULL;
}

size_t fake_host_add(struct fake_host *host, const struct fake_task *task) {
  pthread_mutex_lock(&host->lock);
  size_t index = host->task_count++;
  host->tasks = fake_grow(host->tasks, index, &host->task_cap, sizeof(*host->tasks));
  struct fake_entry *entry = &host->tasks[index];
  *entry = (struct fake_entry){.outcome.attempt = task->attempt ? task->attempt : 1};
  if (task->message_id)
    snprintf(entry->outcome.message_id, sizeof(entry->outcome.message_id), "%s", task->message_id);
  else
    snprintf(entry->outcome.message_id, sizeof(entry->outcome.message_id), "%s-%06zu", host->name, index);
  entry->view = make_view(task, entry->outcome.message_id, TOKEN_BASE + index);
  pthread_mutex_unlock(&host->lock);
  return index;
}

static const struct duebox_task **offered_views(struct fake_host *host, size_t *n) {
  pthread_mutex_lock(&host->lock);
  size_t open = 0;
  for (size_t i = 0; i < host->offered; i++)
    open += !host->tasks[i].outcome.completed;
  *n = host->task_count - host->offered;
  if (*n > host->config.max_inflight - open) /* what a host may offer at all */
    *n = host->config.max_inflight - open;
  const struct duebox_task **views = calloc(*n + 1, sizeof(*views));
  if (!views)
    abort();
  for (size_t i = 0; i < *n; i++)
    views[i] = host->tasks[host->offered + i].view;
  host->offer_end = host->offered + *n;
  pthread_mutex_unlock(&host->lock);
  return views;
}

size_t fake_host_offer(struct fake_host *host) {
  size_t n;
  host->driver = pthread_self();
  const struct duebox_task **views = offered_views(host, &n);
  size_t k = n ? host->plugin->sink->submit(host->inst, views, n) : 0;
  free(views);
  pthread_mutex_lock(&host->lock);
  if (k > n) {
    fake_breach(host, "submit() took %zu of %zu tasks", k, n);
    k = n;
  }
  for (size_t i = 0; i < k; i++)
    host->tasks[host->offered + i].outcome.accepted = true;
  for (size_t i = k; i < n; i++)
    if (host->tasks[host->offered + i].outcome.completed)
      fake_breach(host, "task %zu of %zu was completed although submit() took only %zu", i, n, k);
  host->offered += k;
  host->offer_end = host->offered;
  pthread_mutex_unlock(&host->lock);
  return k;
}

bool fake_host_recall(struct fake_host *host) {
  const struct duebox_sink_ops *ops = host->plugin->sink;
  if (ops->struct_size <= offsetof(struct duebox_sink_ops, recall) || !ops->recall)
    return false;
  pthread_mutex_lock(&host->lock);
  host->recalled = true;
  pthread_mutex_unlock(&host->lock);
  host->driver = pthread_self();
  ops->recall(host->inst);
  return true;
}

static void check_outcome(struct fake_host *host, const char *id, const struct duebox_outcome *outcome) {
  if (outcome->struct_size != sizeof(*outcome))
    fake_breach(host, "%s: the outcome does not carry its size", id);
  if (outcome->cls < DUEBOX_DELIVERED || outcome->cls > DUEBOX_GONE)
    fake_breach(host, "%s: outcome class %d does not exist", id, (int)outcome->cls);
  if (outcome->cls != DUEBOX_DELIVERED &&
      (!outcome->error_class || !outcome->error_class[0] || !outcome->message || !outcome->message[0]))
    fake_breach(host, "%s: a failure without error class or message", id);
  if (outcome->blameless && outcome->cls != DUEBOX_UNKNOWN)
    fake_breach(host, "%s: outcome class %d is blameless by itself, or never", id, (int)outcome->cls);
  if (outcome->recalled && (outcome->cls != DUEBOX_UNAVAILABLE || !host->recalled))
    fake_breach(host, "%s: outcome class %d is recalled and may have left, or nobody has recalled it", id,
                (int)outcome->cls);
  if (outcome->answer == DUEBOX_ANSWER_RECORD && !outcome->record)
    fake_breach(host, "%s: ANSWER_RECORD without a record", id);
}

static void keep_outcome(struct fake_outcome *kept, const struct duebox_outcome *outcome) {
  kept->completed = true;
  kept->cls = outcome->cls;
  kept->scope = outcome->scope;
  kept->answer = outcome->answer;
  kept->retry_after_ms = outcome->retry_after_ms;
  kept->blameless = outcome->blameless;
  kept->recalled = outcome->recalled;
  snprintf(kept->error_class, sizeof(kept->error_class), "%s", outcome->error_class ? outcome->error_class : "");
  snprintf(kept->message, sizeof(kept->message), "%s", outcome->message ? outcome->message : "");
  if (outcome->record) {
    kept->record = calloc(1, outcome->record_len + 1);
    if (!kept->record)
      abort();
    memcpy(kept->record, outcome->record, outcome->record_len);
    kept->record_len = outcome->record_len;
  }
}

void fake_complete(void *ctx, uint64_t token, const struct duebox_outcome *outcome) {
  struct fake_host *host = ctx;
  pthread_mutex_lock(&host->lock);
  uint64_t index = token - TOKEN_BASE;
  if (index >= host->task_count || index >= (host->offer_end > host->offered ? host->offer_end : host->offered)) {
    fake_breach(host, "completion of token %#llx, which was never handed over", (unsigned long long)token);
    goto out;
  }
  struct fake_entry *entry = &host->tasks[index];
  if (host->stopped)
    fake_breach(host, "%s completed after stop()", entry->outcome.message_id);
  if (entry->outcome.completed) {
    fake_breach(host, "%s completed twice", entry->outcome.message_id);
    goto out;
  }
  check_outcome(host, entry->outcome.message_id, outcome);
  keep_outcome(&entry->outcome, outcome);
  fake_task_drop(entry);
out:
  pthread_mutex_unlock(&host->lock);
}

struct fake_outcome fake_host_outcome(struct fake_host *host, size_t index) {
  pthread_mutex_lock(&host->lock);
  assert_true(index < host->task_count);
  struct fake_outcome outcome = host->tasks[index].outcome;
  pthread_mutex_unlock(&host->lock);
  return outcome;
}

size_t fake_host_tasks(struct fake_host *host) { return host->task_count; }

size_t fake_host_accepted(struct fake_host *host) { return host->offered; }

size_t fake_host_completed(struct fake_host *host) {
  size_t count = 0;
  pthread_mutex_lock(&host->lock);
  for (size_t i = 0; i < host->task_count; i++)
    count += host->tasks[i].outcome.completed;
  pthread_mutex_unlock(&host->lock);
  return count;
}

size_t fake_host_count(struct fake_host *host, enum duebox_outcome_class cls) {
  size_t count = 0;
  pthread_mutex_lock(&host->lock);
  for (size_t i = 0; i < host->task_count; i++)
    count += host->tasks[i].outcome.completed && host->tasks[i].outcome.cls == cls;
  pthread_mutex_unlock(&host->lock);
  return count;
}

bool fake_host_settle(struct fake_host *host, int timeout_ms) {
  int64_t end = fake_host_now_ms() + timeout_ms;
  while (fake_host_completed(host) < host->task_count) {
    if (fake_host_now_ms() >= end)
      return false;
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
  return true;
}
