/* SPDX-License-Identifier: MIT */
#include "core/expiry.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/rules.h"

enum {
  PAGE_ROWS = 1000,
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
  int order = strcmp(x->route, y->route);
  return order ? order : (int)x->priority - (int)y->priority;
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

static void release(struct task_batch *batch, size_t rows) {
  for (size_t i = 0; i < rows; i++)
    task_release(&batch->tasks[i]);
}

/* Ends these rows; those that another transaction holds are met again. */
static enum store_status end_rows(struct walk *walk, const struct store_group *group, const uint64_t *ids,
                                  size_t id_count, struct err *err) {
  struct expiry *expiry = walk->expiry;
  struct decision decisions[PAGE_ROWS];
  struct task_batch *batch = NULL;
  bool lost[STORE_SHARDS_MAX] = {false};
  size_t applied = 0;
  enum store_status status =
      expiry->store->ops->read_ids(walk->ss, group->state, group->shard, ids, id_count, 0, 0, &batch, err);
  size_t n = batch ? decide(walk, batch, decisions) : 0;
  if (n > 0)
    status = expiry->store->ops->settle(walk->ss, walk->leases, walk->lease_count, decisions, n, lost, err);
  if (batch)
    release(batch, n);
  for (size_t i = 0; status == STORE_OK && i < n; i++)
    applied += decisions[i].applied;
  struct route_metrics *metrics = applied ? expiry->route_metrics(expiry->engine, group->route) : NULL;
  if (metrics)
    count(&metrics->events[EVENT_EXPIRE], applied);
  walk->expired += applied;
  return status;
}

/* Ends the rows of a page, which is of one group, whose time is over. */
static enum store_status end_page(struct walk *walk, const struct store_group *group, const struct found_id *page,
                                  size_t rows, struct err *err) {
  uint64_t ids[PAGE_ROWS];
  for (size_t i = 0; i < rows; i++)
    ids[i] = page[i].id;
  enum store_status status = walk->expiry->store->ops->expired(walk->ss, group->state, group->shard, ids, &rows, err);
  return status == STORE_OK && rows > 0 ? end_rows(walk, group, ids, rows, err) : status;
}

/* Walks over one group from the position where the expiry is. *end is false when the time is up before its end. */
static enum store_status walk_group(struct walk *walk, const struct store_group *group, bool *end, struct err *err) {
  struct expiry *expiry = walk->expiry;
  struct found_id found[PAGE_ROWS];
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
    status = expiry->store->ops->find(walk->ss, &range, (struct store_cursor){INT64_MAX, UINT64_MAX}, found, &n, err);
    if (status == STORE_OK && n > 0)
      status = end_page(walk, group, found, n, err);
    if (status == STORE_OK && n > 0)
      expiry->after = (struct store_cursor){found[n - 1].next_us, found[n - 1].id};
  }
  *end = status == STORE_OK && n < PAGE_ROWS;
  return status;
}

static enum store_status walk_groups(struct walk *walk, const struct store_group *groups, size_t count,
                                     struct err *err) {
  struct expiry *expiry = walk->expiry;
  enum store_status status = STORE_OK;
  bool end = true;
  for (size_t i = 0; status == STORE_OK && end && i < count; i++) {
    int order = by_key(&groups[i], &expiry->at);
    if (order < 0)
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
