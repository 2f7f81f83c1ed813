/* SPDX-License-Identifier: MIT */
#include "core/expiry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/dead_log.h"
#include "core/options.h"
#include "core/rules.h"

enum {
  PAGE_ROWS = 1000,
  TOGETHER = 250,       /* groups in one step, as long as all of their rows are one page */
  PASS_US = 500 * 1000, /* of the ten seconds between two passes */
  HEADS_ROWS = 250,     /* are looked at together, */
  HEADS_PAGES = 20,     /* and so many times in one pass */
  WHY_BYTES = 512,
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

/* Rows of a batch that end, and how. */
struct ending {
  const struct task *tasks[PAGE_ROWS];
  struct decision decisions[PAGE_ROWS];
  size_t count;
};

static struct rules_task facts_of(const struct task *task) {
  return (struct rules_task){.id = task->id,
                             .message_id = task->message_id,
                             .shard = task->shard,
                             .state = task->state,
                             .attempt_row = task->attempt,
                             .attempt_now = task->attempt,
                             .failures = task->failures,
                             .recoveries = task->recoveries,
                             .due_us = task->due_us,
                             .asked_due_us = task->asked_due_us,
                             .expires_us = task->expires_us};
}

static struct rules_context context_of(const struct walk *walk) {
  return (struct rules_context){.config = walk->config, .now_us = walk->now_us};
}

static void add_ending(struct ending *ending, const struct task *task) {
  ending->decisions[ending->count].changed_at = task->changed_at;
  ending->tasks[ending->count++] = task;
}

static void note_ended(struct walk *walk, const struct task *task, const struct decision *decision) {
  char route[STORE_ROUTE_MAX + STORE_WIDER + 1];
  snprintf(route, sizeof route, "%.*s", (int)task->route.len, (const char *)task->route.data);
  struct route_metrics *metrics = walk->expiry->route_metrics(walk->expiry->engine, route);
  if (metrics)
    count(&metrics->events[decision->event], 1);
  if (decision->event == EVENT_DEAD)
    dead_log_write(&walk->expiry->dead, route, task->message_id.data, decision->attempt, decision->error_class);
  else
    walk->expired++;
}

/* How many of these tasks one transaction ends: their rows are copied to the history. */
static size_t as_many_as_fit(const struct task *const *tasks, size_t count) {
  int64_t bytes = 0;
  size_t n = 0;
  while (n < count && (n == 0 || bytes + task_size(tasks[n]) <= STORE_TRANSACTION_BYTES))
    bytes += task_size(tasks[n++]);
  return n;
}

/* Those that another transaction holds, or that the time is up before, are met again. */
static enum store_status settle(struct walk *walk, struct ending *ending, struct err *err) {
  bool lost[STORE_SHARDS_MAX] = {false};
  enum store_status status = STORE_OK;
  for (size_t i = 0, some = 0;
       status == STORE_OK && i < ending->count && (i == 0 || clock_mono_us() < walk->deadline_us); i += some) {
    some = as_many_as_fit(&ending->tasks[i], ending->count - i);
    status = walk->expiry->store->ops->settle(walk->ss, walk->leases, walk->lease_count, &ending->decisions[i], some,
                                              lost, err);
    for (size_t j = i; status == STORE_OK && j < i + some; j++)
      if (ending->decisions[j].applied)
        note_ended(walk, ending->tasks[j], &ending->decisions[j]);
  }
  return status;
}

static enum store_status read_rows(struct walk *walk, enum task_state state, uint8_t shard, const uint64_t *ids,
                                   size_t count, struct task_batch **batch, struct err *err) {
  return walk->expiry->store->ops->read_ids(walk->ss, state, shard_bit(shard), NULL, ids, count, 0,
                                            (struct store_limit){0}, batch, err);
}

static void release(struct task_batch *batch) {
  for (size_t i = 0, n = batch ? batch->count : 0; i < n; i++)
    task_release(&batch->tasks[i]);
}

/* Ends these rows, whose time is over. */
static enum store_status end_rows(struct walk *walk, const struct store_group *group, const uint64_t *ids,
                                  size_t id_count, struct err *err) {
  const struct rules_context context = context_of(walk);
  struct ending ending = {.count = 0};
  struct task_batch *batch = NULL;
  enum store_status status = read_rows(walk, group->state, group->shard, ids, id_count, &batch, err);
  for (size_t i = 0; status == STORE_OK && batch && i < batch->count; i++) {
    const struct rules_task facts = facts_of(&batch->tasks[i]);
    rules_expire(&context, &facts, &ending.decisions[ending.count]);
    add_ending(&ending, &batch->tasks[i]);
  }
  if (status == STORE_OK)
    status = settle(walk, &ending, err);
  release(batch);
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

/* Whether it is overdue by so much that others of its order_key wait for its host no more. why: room for the reason. */
static bool is_given_up(const struct walk *walk, const struct task *task, char why[WHY_BYTES], struct decision *out) {
  const struct rules_context context = context_of(walk);
  const struct route_config *route = config_route(walk->config, task->route.data, task->route.len);
  const struct rules_task facts = facts_of(task);
  char give_up[32] = "";
  if (!route)
    return false;
  (void)option_print_duration(route->give_up_ms, give_up, sizeof give_up);
  snprintf(
      why, WHY_BYTES,
      "its host %.*s is not there, others of its order_key wait for it, and it is overdue by more than give_up (%s)",
      (int)task->target_host.len, (const char *)task->target_host.data, give_up);
  return rules_strand(&context, route, &facts, why, out);
}

static enum store_status end_stranded(struct walk *walk, const uint64_t *ids, size_t id_count, struct err *err) {
  char why[HEADS_ROWS][WHY_BYTES];
  struct ending ending = {.count = 0};
  struct task_batch *batch = NULL;
  enum store_status status = read_rows(walk, TASK_SCHEDULED, SHARD_BOUND, ids, id_count, &batch, err);
  for (size_t i = 0; status == STORE_OK && batch && i < batch->count; i++)
    if (is_given_up(walk, &batch->tasks[i], why[ending.count], &ending.decisions[ending.count]))
      add_ending(&ending, &batch->tasks[i]);
  if (status == STORE_OK)
    status = settle(walk, &ending, err);
  release(batch);
  return status;
}

/* Nobody but its host tries a bound task, and nobody goes before a head. */
static enum store_status walk_heads(struct walk *walk, struct err *err) {
  uint64_t ids[HEADS_ROWS];
  enum store_status status = STORE_OK;
  bool more = walk->leases[walk->lease_count - 1].shard == SHARD_BOUND;
  for (int page = 0; more && page < HEADS_PAGES; page++) {
    size_t n = HEADS_ROWS;
    status = walk->expiry->store->ops->stranded(walk->ss, &walk->expiry->head, ids, &n, err);
    if (status == STORE_OK && n > 0)
      status = end_stranded(walk, ids, n, err);
    more = status == STORE_OK && walk->expiry->head > 0;
  }
  return status == STORE_BUSY ? STORE_OK : status; /* somebody holds a table: the next pass looks again */
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
    status = walk_heads(&walk, err);
  if (status == STORE_OK)
    status = walk_groups(&walk, walks.groups, walks.count, err);
  free(walks.groups);
  if (walk.expired)
    log_info("DUEBOX-EXPIRED", "rows=%zu were held, or bound to a host that did not run them, when their time came",
             walk.expired);
  return status;
}
