/* SPDX-License-Identifier: MIT
 *
 * core/reader_bound.c - tasks that are bound to our host, among those of other hosts: the index does not know whose a
 * row is, and a host that is away may have any number of them.
 *
 * They are walked over a page at a time, and the cursor goes on with the walk. Rows that committed a little late are
 * met all the same: at the end of a walk the cursor is left before rows of others that are a second old. Others are met
 * by the sweep.
 *
 * A group rests after a page without one of ours. All groups that rest share one part of the time, and each for as long
 * as its own pages take: nobody waits for the turn of another route.
 */
#include "core/base/clock.h"
#include "core/reader.h"

enum {
  BOUND_PAGE = 256,
  BOUND_WALK_SHARE = 2,        /* so many times as long as a page took nothing more of others' is read */
  BOUND_EVERY_US = 250 * 1000, /* how often to look for our own where the earliest row is another host's */
  BOUND_LATE_US = 1000 * 1000,
};

/* A page of the group's rows from its cursor on, due or not. */
struct page {
  struct found_id found[BOUND_PAGE];
  uint64_t ids[BOUND_PAGE];  /* of those that are due and ours, and not known here */
  size_t count, due, wanted; /* due: so many of `found` have been looked at */
};

static bool find_page(struct scheduler *s, const struct group *group, const struct store_range *range,
                      struct page *page) {
  struct err err = {0};
  int64_t until_us = scheduler_db_now_us(s) + s->ahead_us;
  page->count = page->due = page->wanted = 0;
  if (!scheduler_db_ok(s,
                       s->store->ops->find(s->ss, range, &(struct store_cursor){INT64_MAX, UINT64_MAX}, 1, page->found,
                                           &page->count, &err),
                       &err))
    return false;
  for (; page->due < page->count && page->found[page->due].next_us <= until_us; page->due++) {
    const struct found_id *found = &page->found[page->due];
    if (!found->foreign && !flight_by_id(s->flights, found->id) && !order_knows(&group->lane->order, found->id))
      page->ids[page->wanted++] = found->id;
  }
  return true;
}

/* When the next row of ours is due, or the first may be that is not known yet. */
static int64_t next_due(const struct page *page) {
  for (size_t i = page->due; i < page->count; i++)
    if (!page->found[i].foreign)
      return page->found[i].next_us;
  return page->count == BOUND_PAGE ? page->found[page->count - 1].next_us : INT64_MAX;
}

/* Behind all rows of ours that are due, and of others' those that are not new. */
static struct store_cursor read_to(struct store_cursor cursor, const struct page *page, int64_t db_now_us, bool more) {
  for (size_t i = 0; i < page->due; i++)
    if (more || !page->found[i].foreign || page->found[i].next_us <= db_now_us - BOUND_LATE_US)
      cursor = (struct store_cursor){page->found[i].next_us, page->found[i].id};
  return cursor;
}

int64_t reader_bound_rest_until_us(const struct scheduler *s, const struct group *group, int64_t began_us,
                                   int64_t share) {
  const int64_t now = clock_mono_us();
  int64_t resting = 1;
  for (const struct lane *lane = s->lanes; lane; lane = lane->next)
    for (const struct group *other = lane->groups; other; other = other->next)
      resting += other != group && other->shard == SHARD_BOUND &&
                 now < later(other->rest_until_us, other->sweep_rest_until_us);
  return now + pace_rest_us(now - began_us, share * resting, REST_MAX_US * resting);
}

static void move_cursor(struct scheduler *s, struct group *group, const struct page *page, int64_t began_us) {
  const int64_t now = clock_mono_us(), took = now - began_us, db_now = scheduler_db_now_us(s);
  bool more = page->due == BOUND_PAGE;
  group->cursor = read_to(group->cursor, page, db_now, more);
  group->due = group->backlog = more;
  group->bound_at_us = now + BOUND_EVERY_US;
  group->next_us = more ? group->cursor.next_us : next_due(page);
  if (more && page->wanted == 0)
    group->rest_until_us = reader_bound_rest_until_us(s, group, began_us, BOUND_WALK_SHARE);
  else if (page->wanted == 0) /* rows of others that become due do not have us look at each of them */
    group->next_us = later(group->next_us, db_now + pace_rest_us(took, SWEEP_SHARE, BOUND_EVERY_US));
}

bool reader_bound(struct scheduler *s, struct group *group, uint32_t credit) {
  struct lane *lane = group->lane;
  const int64_t began = clock_mono_us();
  const struct store_range range = {.state = TASK_SCHEDULED,
                                    .shard = group->shard,
                                    .priority = group->priority,
                                    .route = lane->name,
                                    .after = scheduler_read_from(s, group, group->cursor),
                                    .limit = BOUND_PAGE,
                                    .host = scheduler_host(s, group->shard),
                                    .ahead_us = EVER_US};
  UNFILLED struct page page;
  struct task_batch *batch = NULL;
  struct err err = {0};
  if (!find_page(s, group, &range, &page))
    return false;
  const struct shard_lease lease = {.shard = group->shard, .epoch = group->epoch, .owner = s->instance};
  struct reading reading = {
      .lane = lane, .recorded = true, .leases = &lease, .lease_count = 1, .began_us = began, .most = credit};
  enum store_status status =
      s->store->ops->read_ids(s->ss, TASK_SCHEDULED, shard_bit(group->shard), range.host, page.ids, page.wanted,
                              AHEAD_MAX_US + AHEAD_MARGIN_US, reader_inline(s, lane, true, page.wanted), &batch, &err);
  if (!scheduler_db_ok(s, status, &err))
    return false;
  reader_sort_by_due(batch);
  if (batch && !reader_keeps_order(s, group, range.after, batch->tasks, batch->count)) {
    reader_give_up(batch);
    return true;
  }
  move_cursor(s, group, &page, began);
  reading.due_until_us = scheduler_db_surely_us(s);
  bool any = batch != NULL;
  (void)reader_take(s, &reading, batch);
  return any;
}
