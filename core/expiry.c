/* SPDX-License-Identifier: MIT */
#include "core/expiry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/rules.h"

enum {
  PAGE_ROWS = 1000,
  TOGETHER = 250,       /* groups in one step, as long as all of their rows are one page */
  PASS_US = 500 * 1000, /* of the ten seconds between two passes */
};

/* One pass. */
struct walk {
  struct expiry *expiry;
  struct store_session *ss;
  const struct config *config;
  struct shard_lease leases[STORE_SHARDS_MAX];
  size_t lease_count;
  int64_t now_us, deadline_us;
  size_t expired;
};

static int by_key(const void *a, const void *b) {
  const struct store_group *x = a, *y = b;
  if (x->state != y->state)
    return x->state < y->state ? -1 : 1;
  if (x->shard != y->shard)
    return x->shard < y->shard ? -1 : 1;
  if (x->priority != y->priority)
    return x->priority < y->priority ? -1 : 1;
  return strcmp(x->route, y->route);
}

/* The groups to walk over. */
struct walks {
  struct store_group *groups;
  size_t count;
};

/* Adds those of these states and shards that are due. */
static enum store_status add_groups(struct walk *walk, const struct store_look *what, struct walks *out,
                                    struct err *err) {
  const struct store_group *found = NULL;
  size_t count = 0;
  enum store_status status = walk->expiry->store->ops->look(walk->ss, what, &found, &count, &walk->now_us, err);
  struct store_group *groups =
      status == STORE_OK && count ? realloc(out->groups, (out->count + count) * sizeof *groups) : NULL;
  if (!groups)
    return status;
  out->groups = groups;
  for (size_t i = 0; i < count; i++)
    if (found[i].next_us <= walk->now_us && !found[i].misfit)
      groups[out->count++] = found[i];
  return status;
}

/* What is held or blocked, and what is bound to a host; in order. */
static enum store_status find_groups(struct walk *walk, struct walks *out, struct err *err) {
  const struct shard_lease *last = &walk->leases[walk->lease_count - 1];
  const struct store_look aside = {.leases = walk->leases,
                                   .lease_count = walk->lease_count,
                                   .states = TASK_BIT(TASK_HELD) | TASK_BIT(TASK_BLOCKED)},
                          bound = {.leases = last, .lease_count = 1, .states = TASK_BIT(TASK_SCHEDULED)};
  enum store_status status = add_groups(walk, &aside, out, err);
  if (status == STORE_OK && last->shard == SHARD_BOUND)
    status = add_groups(walk, &bound, out, err);
  if (out->count)
    qsort(out->groups, out->count, sizeof *out->groups, by_key);
  return status;
}

/* Decides about the rows of a batch, which the decisions point into. */
static size_t decide(const struct walk *walk, struct task_batch *batch, struct decision *decisions) {
  const struct rules_context context = {.config = walk->config, .now_us = walk->now_us};
  size_t rows = batch->count;
  for (size_t i = 0; i < rows; i++) {
    struct task *task = &batch->tasks[i];
    const struct rules_task facts = {.id = task->id,
                                     .message_id = task->message_id,
                                     .shard = task->shard,
                                     .state = task->state,
                                     .attempt_row = task->attempt,
                                     .attempt_now = task->attempt,
                                     .failures = task->failures,
                                     .recoveries = task->recoveries};
    rules_expire(&context, &facts, &decisions[i]);
    decisions[i].changed_at = task->changed_at;
  }
  return rows;
}

static void count_expired(struct walk *walk, const struct task *task) {
  char route[STORE_ROUTE_MAX + STORE_WIDER + 1];
  snprintf(route, sizeof route, "%.*s", (int)task->route.len, (const char *)task->route.data);
  struct route_metrics *metrics = walk->expiry->route_metrics(walk->expiry->engine, route);
  if (metrics)
    count(&metrics->events[EVENT_EXPIRE], 1);
  walk->expired++;
}

/* How many of these tasks one transaction ends: their rows are copied to the history. */
static size_t as_many_as_fit(const struct task *tasks, size_t count) {
  int64_t bytes = 0;
  size_t n = 0;
  while (n < count && (n == 0 || bytes + task_size(&tasks[n]) <= STORE_TRANSACTION_BYTES))
    bytes += task_size(&tasks[n++]);
  return n;
}

/* Ends these rows; those that another transaction holds, or that the time is up before, are met again. */
static enum store_status end_rows(struct walk *walk, const struct store_group *group, const uint64_t *ids,
                                  size_t id_count, struct err *err) {
  struct expiry *expiry = walk->expiry;
  struct decision decisions[PAGE_ROWS];
  struct task_batch *batch = NULL;
  bool lost[STORE_SHARDS_MAX] = {false};
  enum store_status status = expiry->store->ops->read_ids(walk->ss, group->state, shard_bit(group->shard), NULL, ids,
                                                          id_count, 0, (struct store_limit){0}, &batch, err);
  size_t n = batch ? decide(walk, batch, decisions) : 0;
  for (size_t i = 0, some = 0; status == STORE_OK && i < n && (i == 0 || clock_mono_us() < walk->deadline_us);
       i += some) {
    some = as_many_as_fit(&batch->tasks[i], n - i);
    status = expiry->store->ops->settle(walk->ss, walk->leases, walk->lease_count, &decisions[i], some, lost, err);
    for (size_t j = i; status == STORE_OK && j < i + some; j++)
      if (decisions[j].applied)
        count_expired(walk, &batch->tasks[j]);
  }
  for (size_t i = 0; i < n; i++)
    task_release(&batch->tasks[i]);
  return status;
}

/* Ends those of the rows, which are of one state and shard, whose time is over. */
static enum store_status end_page(struct walk *walk, const struct store_group *group, uint64_t *ids, size_t rows,
                                  struct err *err) {
  enum store_status status = walk->expiry->store->ops->expired(walk->ss, group->state, group->shard, ids, &rows, err);
  return status == STORE_OK && rows > 0 ? end_rows(walk, group, ids, rows, err) : status;
}

/* Walks over one group from the position where the expiry is. *end is false when the time is up before its end. */
static enum store_status walk_group(struct walk *walk, const struct store_group *group, bool *end, struct err *err) {
  struct expiry *expiry = walk->expiry;
  struct found_id found[PAGE_ROWS];
  uint64_t ids[PAGE_ROWS];
  size_t n = PAGE_ROWS;
  enum store_status status = STORE_OK;
  expiry->at = *group;
  while (status == STORE_OK && n == PAGE_ROWS && clock_mono_us() < walk->deadline_us) {
    const struct store_range range = {.state = group->state,
                                      .shard = group->shard,
                                      .priority = group->priority,
                                      .route = group->route,
                                      .after = expiry->after,
                                      .limit = PAGE_ROWS};
    status =
        expiry->store->ops->find(walk->ss, &range, &(struct store_cursor){INT64_MAX, UINT64_MAX}, 1, found, &n, err);
    for (size_t i = 0; i < n; i++)
      ids[i] = found[i].id;
    if (status == STORE_OK && n > 0)
      status = end_page(walk, group, ids, n, err);
    if (status == STORE_OK && n > 0)
      expiry->after = (struct store_cursor){found[n - 1].next_us, found[n - 1].id};
  }
  *end = status == STORE_OK && n < PAGE_ROWS;
  return status;
}

/* Walks over as many of the groups as make one page: each has a row or two where somebody wrote thousands of names.
 * *done: how many; 0 = the rows of the first are more than a page, perhaps. */
static enum store_status walk_together(struct walk *walk, const struct store_group *groups, size_t count, size_t *done,
                                       struct err *err) {
  const char *names[TOGETHER];
  uint64_t ids[PAGE_ROWS];
  size_t n = 0, rows = PAGE_ROWS;
  enum store_status status = STORE_OK;
  for (; n < count && n < TOGETHER && groups[n].state == groups->state && groups[n].shard == groups->shard &&
         groups[n].priority == groups->priority;
       n++)
    names[n] = groups[n].route;
  for (; n > 1 && rows == PAGE_ROWS && status == STORE_OK; n = rows == PAGE_ROWS ? n / 2 : n) {
    const struct store_routes which = {
        .state = groups->state, .priority = groups->priority, .routes = names, .route_count = n, .limit = PAGE_ROWS};
    status = walk->expiry->store->ops->find_routes(walk->ss, groups->shard, &which, ids, &rows, err);
  }
  *done = n > 1 ? n : 0;
  if (status != STORE_OK || n < 2)
    return status;
  walk->expiry->at = groups[n - 1];
  walk->expiry->after = (struct store_cursor){INT64_MAX, UINT64_MAX};
  return rows > 0 ? end_page(walk, groups, ids, rows, err) : STORE_OK;
}

static enum store_status walk_groups(struct walk *walk, const struct store_group *groups, size_t count,
                                     struct err *err) {
  struct expiry *expiry = walk->expiry;
  enum store_status status = STORE_OK;
  bool end = true;
  for (size_t i = 0, done; status == STORE_OK && end && i < count; i += done ? done : 1) {
    int order = by_key(&groups[i], &expiry->at);
    done = 0;
    if (order < 0)
      continue;
    end = clock_mono_us() < walk->deadline_us;
    if (order > 0 && end)
      status = walk_together(walk, &groups[i], count - i, &done, err);
    if (done || !end || status != STORE_OK)
      continue;
    if (order > 0) /* there is nothing before its earliest row but what was deleted */
      expiry->after = (struct store_cursor){groups[i].next_us - 1, UINT64_MAX};
    status = walk_group(walk, &groups[i], &end, err);
  }
  if (status == STORE_OK && end) { /* the next pass begins anew */
    expiry->at = (struct store_group){0};
    expiry->after = (struct store_cursor){0};
  }
  return status;
}

enum store_status expiry_pass(struct expiry *expiry, struct store_session *ss, const struct config *config,
                              struct err *err) {
  struct walk walk = {.expiry = expiry, .ss = ss, .config = config, .deadline_us = clock_mono_us() + PASS_US};
  walk.lease_count = leases_held(expiry->leases, walk.leases);
  if (walk.lease_count == 0 || walk.leases[0].shard != 0) /* the last one is the shard of bound tasks */
    walk.lease_count = leases_owned(expiry->leases, walk.leases);
  if (walk.lease_count == 0)
    return STORE_OK;
  struct walks walks = {0};
  enum store_status status = find_groups(&walk, &walks, err);
  if (status == STORE_OK)
    status = walk_groups(&walk, walks.groups, walks.count, err);
  free(walks.groups);
  if (walk.expired)
    log_info("DUEBOX-EXPIRED", "rows=%zu were held, or bound to a host that did not run them, when their time came",
             walk.expired);
  return status;
}
