/* SPDX-License-Identifier: MIT
 *
 * Cases of the port to the database: instances, shards and reading.
 */
#include <stdio.h>
#include <string.h>

#include "store_double_fixture.h"

/* --- instances and shards --- */

static void instances_live_and_leave(struct fixture *f) {
  struct instance_row me = {.id = "a", .host = "h", .admin_url = "", .version = "1", .routes = "x"};
  uint32_t living, sets;
  ok(f, f->ops->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  check_int(living, 1);
  me.id = "b";
  me.routes = "y";
  ok(f, f->ops->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  check_int(living, 2);
  check_int(sets, 2);
  me.routes = ""; /* it ends, and takes no shards */
  ok(f, f->ops->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  check_int(living, 1);
  check_int(sets, 1);
  me.routes = "y";
  world_sleep(61 * SECOND);
  ok(f, f->ops->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  check_int(living, 1);
  ok(f, f->ops->leave(f->ss, &(struct instance_row){.id = "b", .host = "h"}, &f->err));
  check_int(f->db.data.instances.count, 1);
  f->db.clock_ahead_us += 25 * HOUR;
  f->machine.wall_ahead_us += 25 * HOUR;
  ok(f, f->ops->housekeep(f->ss, 86400000, 86400000, &f->err));
  check_int(f->db.data.instances.count, 0);
}

/* Two that live under one name; one that had it before, and died, is none. */
static void one_of_the_same_name_is_found(struct fixture *f) {
  struct instance_row one = {
      .id = "a", .host = "h", .admin_url = "http://one", .version = "1", .routes = "x", .pid = 7};
  struct instance_row two = {.id = "b", .host = "h", .admin_url = "", .version = "1", .routes = "x"};
  struct instance_row three = {.id = "c", .host = "other", .admin_url = "", .version = "1", .routes = "x"};
  struct store_namesake found;
  uint32_t living, sets;
  ok(f, f->ops->beat(f->ss, &one, 60000, &living, &sets, &f->err));
  world_sleep(SECOND);
  ok(f, f->ops->beat(f->ss, &two, 60000, &living, &sets, &f->err));
  ok(f, f->ops->beat(f->ss, &three, 60000, &living, &sets, &f->err));
  ok(f, f->ops->namesake(f->ss, "b", &found, &f->err)); /* started quickly after the other one had died */
  check(!found.id[0]);
  world_sleep(SECOND);
  ok(f, f->ops->beat(f->ss, &one, 60000, &living, &sets, &f->err));
  ok(f, f->ops->namesake(f->ss, "b", &found, &f->err));
  check(strcmp(found.id, "a") == 0);
  ok(f, f->ops->namesake(f->ss, "c", &found, &f->err));
  check(!found.id[0]);
  one.routes = ""; /* it ends */
  ok(f, f->ops->beat(f->ss, &one, 60000, &living, &sets, &f->err));
  ok(f, f->ops->namesake(f->ss, "b", &found, &f->err));
  check(!found.id[0]);
}

static int64_t leased(struct fixture *f, const struct instance_row *me) {
  struct name_lease lease, seen;
  ok(f, f->ops->lease_name(f->ss, me, me->host, 60000, &lease, &f->err));
  ok(f, f->ops->lease_name(f->ss, me, me->host, 0, &seen, &f->err));
  check(lease.runs && seen.runs && seen.since_us == lease.since_us);
  ok(f, f->ops->lease_name(f->ss, me, "nobody's", 0, &seen, &f->err));
  check(!seen.runs && !seen.since_us);
  return lease.since_us;
}

static void a_name_has_one_holder(struct fixture *f) {
  const struct instance_row one = {.id = "a-1", .host = "h", .admin_url = "", .version = "1", .routes = "x"};
  const struct instance_row two = {.id = "b-2", .host = "h", .admin_url = "", .version = "1", .routes = "x"};
  int64_t since, again;
  since = leased(f, &one);
  check(since > 0);
  world_sleep(SECOND);
  again = leased(f, &one);
  check(again == since);
  again = leased(f, &two);
  check(again == 0);
  world_sleep(61 * SECOND);
  again = leased(f, &one); /* nobody had it meanwhile */
  check(again == since);
  world_sleep(60 * SECOND);
  again = leased(f, &two);
  check(again > since);
  ok(f, f->ops->leave(f->ss, &one, &f->err)); /* not its own any more */
  again = leased(f, &one);
  check(again == 0);
  ok(f, f->ops->leave(f->ss, &two, &f->err));
  again = leased(f, &one);
  check(again > since);
}

static void the_clock_is_the_databases(struct fixture *f) {
  int64_t now;
  f->db.clock_ahead_us += HOUR;
  ok(f, f->ops->now(f->ss, &now, &f->err));
  check(now <= table_clock(&f->db) && table_clock(&f->db) - now < SECOND && now > TABLE_EPOCH_US + HOUR);
}

static void one_of_two_acquires(struct fixture *f) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch, gone;
  the_shard(f, 2)->lease_until_us = table_clock(&f->db) - SECOND;
  ok(f, f->ops->shards(f->ss, rows, &count, &gone, &f->err));
  check_int(count, SHARDS);
  check_int(gone, 0);
  check(rows[2].expired && rows[2].unclean && !rows[1].expired);
  check_text(rows[1].owner, "me");
  ok(f, f->ops->acquire(f->ss, "second", &rows[2], 60000, &epoch, &f->err));
  check(epoch > rows[2].epoch);
  ok(f, f->ops->acquire(f->ss, "third", &rows[2], 60000, &epoch, &f->err));
  check_int(epoch, 0);
  ok(f, f->ops->acquire(f->ss, "third", &rows[1], 60000, &epoch, &f->err));
  check_int(epoch, 0);
  check_text(the_shard(f, 2)->owner, "second");
}

static void a_lease_from_before_the_clock_was_put_back_is_over(struct fixture *f) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t gone;
  the_shard(f, 2)->lease_until_us = table_clock(&f->db) + HOUR;
  ok(f, f->ops->shards(f->ss, rows, &count, &gone, &f->err));
  check(rows[2].expired && !rows[1].expired);
}

static void renewal_tells_what_is_lost(struct fixture *f) {
  enum lease_fate fates[SHARDS];
  int64_t now;
  the_shard(f, 1)->epoch++;
  ok(f, f->ops->renew(f->ss, "me", f->leases, SHARDS, 90000, fates, &now, &f->err));
  check(fates[0] == LEASE_RENEWED && fates[1] == LEASE_LOST && fates[3] == LEASE_RENEWED);
  check(the_shard(f, 0)->lease_until_us > now + 80 * SECOND && the_shard(f, 1)->lease_until_us < now + 80 * SECOND);
}

static void a_shard_that_is_given_back_is_clean(struct fixture *f) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t gone, epoch;
  ok(f, f->ops->give_back(f->ss, "me", &f->leases[0], false, &f->err));
  ok(f, f->ops->shards(f->ss, rows, &count, &gone, &f->err));
  check(rows[0].expired && !rows[0].unclean && !*rows[0].owner && rows[0].epoch == 8);
  rows[0].epoch = 7; /* as it was seen long ago */
  ok(f, f->ops->acquire(f->ss, "she", &rows[0], 60000, &epoch, &f->err));
  check_int(epoch, 0);
}

static void a_deleted_shard_comes_back_and_nobody_takes_it_at_once(struct fixture *f) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t gone, epoch;
  the_shard(f, 1)->present = false;
  ok(f, f->ops->shards(f->ss, rows, &count, &gone, &f->err));
  check_int(gone, shard_bit(1));
  ok(f, f->ops->remake_shards(f->ss, gone, 1000, &f->err));
  ok(f, f->ops->shards(f->ss, rows, &count, &gone, &f->err));
  check(gone == 0 && !rows[1].expired && rows[1].unclean);
  ok(f, f->ops->acquire(f->ss, "me", &rows[1], 1000, &epoch, &f->err));
  check_int(epoch, 0);
  world_sleep(2 * SECOND);
  ok(f, f->ops->acquire(f->ss, "me", &rows[1], 1000, &epoch, &f->err));
  check(epoch > 7);
}

static void a_locked_shard_costs_no_other_lease(struct fixture *f) {
  enum lease_fate fates[SHARDS];
  struct shard_row seen = {.shard = 3, .epoch = 7};
  uint64_t epoch;
  int64_t now;
  the_shard(f, 3)->lease_until_us = 0;
  hold(f, LOCK_SHARD, 1);
  hold(f, LOCK_SHARD, 3);
  check_int(f->ops->acquire(f->ss, "she", &seen, 60000, &epoch, &f->err), STORE_BUSY);
  for (int i = 0; i < 2; i++) {
    ok(f, f->ops->renew(f->ss, "me", f->leases, 3, 90000, fates, &now, &f->err));
    check(fates[0] == LEASE_RENEWED && fates[1] == LEASE_BUSY && fates[2] == LEASE_RENEWED);
  }
  let_go(f);
  ok(f, f->ops->renew(f->ss, "me", f->leases, 3, 90000, fates, &now, &f->err));
  check_int(fates[1], LEASE_RENEWED);
  ok(f, f->ops->acquire(f->ss, "she", &seen, 60000, &epoch, &f->err));
  check(epoch > 7);
}

static void an_acquisition_without_an_answer_is_found_out(struct fixture *f) {
  struct shard_row seen = {.shard = 0, .epoch = 8};
  uint64_t epoch;
  ok(f, f->ops->give_back(f->ss, "me", &f->leases[0], false, &f->err));
  hit(f, HIT_LOST_AFTER, true, 1);
  ok(f, f->ops->acquire(f->ss, "me", &seen, 60000, &epoch, &f->err));
  check(epoch > 8);
}

static void the_sessions_of_the_silent_are_ended_and_no_others(struct fixture *f) {
  struct store_silent out;
  struct store *other = store_double_new(&f->db, &f->machine);
  struct store_session *theirs;
  uint32_t living, sets;
  const struct instance_row them = {.id = "them", .host = "h", .routes = "x"};
  other->identify(other->self, "them");
  ok(f, other->ops->open(other->self, "test", 0, &theirs, &f->err));
  ok(f, other->ops->beat(theirs, &them, 1000, &living, &sets, &f->err));
  ok(f, f->ops->end_silent(f->ss, "them", &out, &f->err));
  check(!out.silent && out.ended == 0);
  world_sleep(2 * SECOND);
  ok(f, f->ops->end_silent(f->ss, "them", &out, &f->err));
  check(out.silent && out.ended == 1);
  ok(f, f->ops->end_silent(f->ss, "me", &out, &f->err));
  check(!out.silent && out.ended == 0);
  ok(f, other->ops->leave(theirs, &(struct instance_row){.id = "them", .host = "h"}, &f->err)); /* it connects again */
  other->ops->close(&theirs);
  store_double_free(&other);
}

/* --- reading --- */

static void look_finds_the_earliest_of_each_group(struct fixture *f) {
  const struct store_look all = {.leases = f->leases, .lease_count = 2, .states = LIVING};
  const struct store_group *groups;
  size_t count;
  int64_t now;
  insert(f, (struct spec){.id = 1, .due_us = 5 * SECOND});
  insert(f, (struct spec){.id = 2, .due_us = -5 * SECOND});
  insert(f, (struct spec){.id = 3, .route = "a", .shard = 1});
  insert(f, (struct spec){.id = 4, .shard = 2});
  insert(f, (struct spec){.id = 5, .state = TASK_AWAITING});
  insert(f, (struct spec){.id = 6, .route = "b", .priority = 200});
  ok(f, f->ops->look(f->ss, &all, &groups, &count, &now, &f->err));
  check_int(count, 4);
  check(strcmp(groups[0].route, "b") == 0 && groups[0].misfit && groups[0].has_misfits);
  check(strcmp(groups[1].route, "r") == 0 && groups[1].next_us < now && !groups[1].has_misfits);
  check(groups[2].shard == 1 && groups[3].state == TASK_AWAITING);
  struct task_batch *batch;
  ok(f, f->ops->read_misfits(f->ss, &groups[0], 10, &batch, &f->err));
  check(size_of(batch) == 1 && strcmp(batch->tasks[0].unreadable, "priority") == 0);
  release(batch);
}

static void a_row_is_read_as_it_was_written(struct fixture *f) {
  insert(f, (struct spec){.id = 9, .payload = "body", .order_key = "k", .attempt = 2, .failures = 1, .timeout_ms = 5});
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  check_int(size_of(batch), 1);
  const struct task *task = &batch->tasks[0];
  check(task->id == 9 && task->attempt == 2 && task->failures == 1 && task->timeout_ms == 5 && !task->unreadable);
  check_text(task->payload.data, "body");
  check_text(task->message_id.data, "m9");
  check_text(task->order_key.data, "k");
  check_int(task->due_us, the_row(f, 9)->due_us);
  check(task_version(&task->changed_at) > 0 && task->changed_at.len == TABLE_TIME_LEN && task->batch == batch);
  release(batch);
}

static void what_is_over_the_limit_comes_with_its_size_alone(struct fixture *f) {
  const struct store_range range = {.priority = STORE_PRIORITY, .route = "r", .limit = 9};
  struct task_batch *batch;
  insert(f, (struct spec){.id = 1, .payload = "four"});
  static const struct {
    struct store_limit limit;
    bool comes;
  } rows[] = {{{.payload = 3, .bytes = 9}, false},
              {{.payload = 4, .bytes = 6}, true},
              {{.payload = 9, .bytes = 5}, false},
              {{.payload = 4, .bytes = 6, .content = true}, true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ok(f, f->ops->read(f->ss, &range, 1, 0, rows[i].limit, &batch, NULL, NULL, &f->err));
    check_int(batch->tasks[0].payload.data != NULL, rows[i].comes);
    check(batch->tasks[0].payload_len == 4 && batch->tasks[0].beside_len == 2);
    release(batch);
  }
}

static void nothing_is_read_early(struct fixture *f) {
  const struct store_range range = {.priority = STORE_PRIORITY, .route = "r", .limit = 9};
  struct task_batch *batch;
  int64_t next_us, now_us;
  insert(f, (struct spec){.id = 1, .due_us = 10 * SECOND});
  ok(f, f->ops->read(f->ss, &range, 1, SECOND, (struct store_limit){.payload = 99, .bytes = 99}, &batch, &next_us,
                     &now_us, &f->err));
  check(!batch && next_us == the_row(f, 1)->due_us);
  ok(f, f->ops->read(f->ss, &range, 1, 10 * SECOND, (struct store_limit){.payload = 99, .bytes = 99}, &batch, &next_us,
                     &now_us, &f->err));
  check(size_of(batch) == 1 && next_us == INT64_MAX);
  release(batch);
}

static void a_cursor_meets_every_row_once(struct fixture *f) {
  struct store_range range = {.priority = STORE_PRIORITY, .route = "r", .limit = 2};
  struct task_batch *batch;
  size_t met = 0;
  for (uint64_t id = 1; id <= 5; id++)
    insert(f, (struct spec){.id = id, .due_us = -(int64_t)id % 2 * SECOND});
  for (;;) {
    ok(f, f->ops->read(f->ss, &range, 1, 0, (struct store_limit){.payload = 99, .bytes = 99}, &batch, NULL, NULL,
                       &f->err));
    if (!batch)
      break;
    met += size_of(batch);
    const struct task *last = &batch->tasks[batch->count - 1];
    range.after = (struct store_cursor){.next_us = last->due_us, .id = last->id};
    release(batch);
  }
  check_int(met, 5);
}

static void groups_are_read_one_after_the_other(struct fixture *f) {
  const struct store_range ranges[] = {{.priority = 5, .route = "b", .limit = 9},
                                       {.priority = 5, .route = "a", .limit = 1}};
  struct task_batch *batch;
  int64_t next_us[2], now_us;
  insert(f, (struct spec){.id = 1, .route = "a"});
  insert(f, (struct spec){.id = 2, .route = "b"});
  insert(f, (struct spec){.id = 3, .route = "a"});
  ok(f, f->ops->read(f->ss, ranges, 2, 0, (struct store_limit){.payload = 99, .bytes = 99}, &batch, next_us, &now_us,
                     &f->err));
  check(size_of(batch) == 2 && batch->tasks[0].id == 2 && batch->tasks[1].id == 1);
  release(batch);
  ok(f, f->ops->next_due(f->ss, ranges, 2, next_us, &now_us, &f->err));
  check(next_us[0] == the_row(f, 2)->due_us && next_us[1] == the_row(f, 1)->due_us);
}

static void what_is_not_committed_is_not_there(struct fixture *f) {
  struct tx *late = user_begin(&f->db);
  uint64_t id = user_insert(late, "r", "late", 4)->id;
  insert(f, (struct spec){.shard = 0});
  check_int(f->db.data.rows.count, 1);
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  check_int(size_of(batch), 1);
  check(batch->tasks[0].id > id);
  struct store_cursor until = {.next_us = batch->tasks[0].due_us, .id = batch->tasks[0].id};
  release(batch);
  check(user_commit(&late));
  uint8_t shard = the_row(f, id)->shard;
  check(shard < SHARDS);
  const struct store_range range = {.shard = shard, .priority = 5, .route = "r", .limit = 9};
  struct found_id found[9];
  size_t count;
  ok(f, f->ops->find(f->ss, &range, &until, 1, found, &count, &f->err)); /* a late commit is behind the cursor */
  check(count >= 1 && found[0].id == id);
}

static void rows_are_read_by_id_while_they_are_due_and_in_state(struct fixture *f) {
  const uint64_t ids[] = {3, 2, 1, 99};
  struct task_batch *batch;
  insert(f, (struct spec){.id = 1});
  insert(f, (struct spec){.id = 2, .due_us = HOUR});
  insert(f, (struct spec){.id = 3, .state = TASK_HELD});
  ok(f, f->ops->read_ids(f->ss, TASK_SCHEDULED, shard_bit(0), NULL, ids, 4, 0,
                         (struct store_limit){.payload = 9, .bytes = 99}, &batch, &f->err));
  check(size_of(batch) == 1 && batch->tasks[0].id == 1);
  release(batch);
}

static void tasks_bound_to_a_host_are_read_by_that_host(struct fixture *f) {
  const struct store_range range = {.shard = SHARD_BOUND, .priority = 5, .route = "r", .host = "h1", .limit = 9};
  const struct store_cursor end = {INT64_MAX, UINT64_MAX};
  const uint64_t ids[] = {1, 2, 3};
  struct task_batch *batch;
  struct found_id found[9];
  size_t count;
  insert(f, (struct spec){.id = 1, .shard = SHARD_BOUND, .host = "h1"});
  insert(f, (struct spec){.id = 2, .shard = SHARD_BOUND, .host = "h2"});
  insert(f, (struct spec){.id = 3, .shard = SHARD_BOUND, .host = "h3", .move_to_host = "h1"});
  ok(f, f->ops->find(f->ss, &range, &end, 1, found, &count, &f->err));
  check(count == 3 && found[0].id == 3 && !found[0].foreign && !found[1].foreign && found[2].foreign);
  ok(f, f->ops->read_ids(f->ss, TASK_SCHEDULED, shard_bit(SHARD_BOUND), "h1", ids, 3, 0,
                         (struct store_limit){.payload = 9, .bytes = 99}, &batch, &f->err));
  check(size_of(batch) == 2 && batch->tasks[0].id == 1 && batch->tasks[1].id == 3 && batch->tasks[1].moves);
  release(batch);
}

static void expired_rows_are_told_from_the_others(struct fixture *f) {
  uint64_t ids[] = {1, 2, 3};
  size_t count = 3;
  insert(f, (struct spec){.id = 1, .expires_us = HOUR});
  insert(f, (struct spec){.id = 2, .expires_us = -SECOND});
  insert(f, (struct spec){.id = 3});
  ok(f, f->ops->expired(f->ss, TASK_SCHEDULED, 0, ids, &count, &f->err));
  check(count == 1 && ids[0] == 2);
}

static void rows_of_many_routes_are_found(struct fixture *f) {
  const struct store_routes which = {
      .priority = 5, .routes = (const char *const[]){"a", "b"}, .route_count = 2, .limit = 2};
  uint64_t ids[2];
  size_t count;
  for (uint64_t id = 1; id <= 4; id++)
    insert(f, (struct spec){.id = id, .route = id == 1 ? "c" : id % 2 ? "a" : "b"});
  ok(f, f->ops->find_routes(f->ss, 0, &which, ids, &count, &f->err));
  check(count == 2 && ids[0] == 3 && ids[1] == 2);
}

static void tasks_are_located_by_either_id(struct fixture *f) {
  enum { TWO = 1000 };
  static const struct {
    const char *name;
    uint64_t id;
  } names[] = {{"m1", 2},     {"2", TWO},  {"id:2", 2},   {"message_id:2", 1},    {"3", 3},
               {"nobody", 0}, {"id:x", 0}, {"id:3", TWO}, {"message_id:id:3", 4}, {"9", 5},
               {"id:9", 0},   {"id:5", 5}, {"id:6", 6},   {"id:99", TWO}};
  struct task_place place;
  insert(f, (struct spec){.id = 1, .message_id = "2"});
  insert(f, (struct spec){.id = 2, .message_id = "m1"});
  insert(f, (struct spec){.id = 3});
  insert(f, (struct spec){.id = 4, .message_id = "id:3"});
  insert(f, (struct spec){.id = 5, .message_id = "9"});
  insert(f, (struct spec){.id = 6, .message_id = "id:6"});
  insert(f, (struct spec){.id = 7, .message_id = "id:99"});
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    ok(f, f->ops->locate(f->ss, &(const char *){names[i].name}, 1, &place, &f->err));
    check_int(place.ambiguous ? TWO : place.found ? place.id : 0, names[i].id);
  }
}

static bool is_maybe_sent(struct fixture *f, uint64_t id) {
  struct task_place place = {0};
  char name[32];
  (void)snprintf(name, sizeof name, "id:%llu", (unsigned long long)id);
  ok(f, f->ops->locate(f->ss, &(const char *){name}, 1, &place, &f->err));
  check(place.found);
  return place.maybe_sent;
}

static void what_was_due_when_its_shard_was_abandoned_may_have_been_sent(struct fixture *f) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t gone, epoch;
  insert(f, (struct spec){.id = 1, .shard = 1, .due_us = -HOUR});
  insert(f, (struct spec){.id = 2, .shard = 1, .due_us = HOUR});
  check(!is_maybe_sent(f, 1));
  the_shard(f, 1)->lease_until_us = table_clock(&f->db) - SECOND;
  check(is_maybe_sent(f, 1) && !is_maybe_sent(f, 2));
  ok(f, f->ops->shards(f->ss, rows, &count, &gone, &f->err));
  ok(f, f->ops->acquire(f->ss, "she", &rows[1], 60000, &epoch, &f->err));
  check(epoch > 7 && is_maybe_sent(f, 1) && !is_maybe_sent(f, 2));
  struct shard_lease hers = {.shard = 1, .epoch = epoch, .owner = "she"};
  ok(f, f->ops->give_back(f->ss, "she", &hers, false, &f->err));
  world_sleep(2 * HOUR);
  check(is_maybe_sent(f, 1) && !is_maybe_sent(f, 2));
}

static void what_has_had_an_attempt_may_have_been_sent(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .due_us = HOUR, .attempt = 1});
  insert(f, (struct spec){.id = 2, .state = TASK_AWAITING, .due_us = HOUR, .attempt = 1});
  insert(f, (struct spec){.id = 3, .due_us = HOUR});
  check(is_maybe_sent(f, 1) && is_maybe_sent(f, 2) && !is_maybe_sent(f, 3));
}

static void a_shard_that_is_given_back_unclean_is_abandoned(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .shard = 0, .due_us = -HOUR});
  insert(f, (struct spec){.id = 2, .shard = 1, .due_us = -HOUR});
  ok(f, f->ops->give_back(f->ss, "me", &f->leases[0], true, &f->err));
  check(is_maybe_sent(f, 1) && !is_maybe_sent(f, 2));
}

/* --- users --- */

static void update_the_first(void *db) {
  struct tx *tx = user_begin(db);
  (void)user_update(tx, 1);
  world_sleep(100);
  (void)user_commit(&tx);
}

static void truncate_it(void *db) { (void)table_truncate(db); }

static bool nobody_waits(void *db) {
  return ((struct table *)db)->open_end == 0 && ((struct table *)db)->data.rows.count == 0;
}

/* Both wait for whoever has the row, and it is free at once for both. */
static void a_truncate_and_an_update_follow_one_another(struct fixture *f) {
  for (int i = 0; i < 20; i++) {
    insert(f, (struct spec){.id = 1, .due_us = HOUR});
    hold(f, LOCK_ROW, 1);
    world_spawn(NULL, "truncater", truncate_it, &f->db);
    world_spawn(NULL, "updater", update_the_first, &f->db);
    world_sleep(1000);
    let_go(f);
    check(world_wait(nobody_waits, &f->db, world_now_us() + SECOND));
    world_sleep(1000);
    check_int(f->db.data.rows.count, 0);
  }
}

#define CASE(name)                                                                                                     \
  { #name, name }
const struct store_case read_cases[] = {
    CASE(instances_live_and_leave),
    CASE(one_of_the_same_name_is_found),
    CASE(a_name_has_one_holder),
    CASE(the_clock_is_the_databases),
    CASE(one_of_two_acquires),
    CASE(a_lease_from_before_the_clock_was_put_back_is_over),
    CASE(renewal_tells_what_is_lost),
    CASE(a_shard_that_is_given_back_is_clean),
    CASE(what_was_due_when_its_shard_was_abandoned_may_have_been_sent),
    CASE(what_has_had_an_attempt_may_have_been_sent),
    CASE(a_shard_that_is_given_back_unclean_is_abandoned),
    CASE(a_deleted_shard_comes_back_and_nobody_takes_it_at_once),
    CASE(a_locked_shard_costs_no_other_lease),
    CASE(an_acquisition_without_an_answer_is_found_out),
    CASE(the_sessions_of_the_silent_are_ended_and_no_others),
    CASE(look_finds_the_earliest_of_each_group),
    CASE(a_row_is_read_as_it_was_written),
    CASE(what_is_over_the_limit_comes_with_its_size_alone),
    CASE(nothing_is_read_early),
    CASE(a_cursor_meets_every_row_once),
    CASE(groups_are_read_one_after_the_other),
    CASE(what_is_not_committed_is_not_there),
    CASE(rows_are_read_by_id_while_they_are_due_and_in_state),
    CASE(tasks_bound_to_a_host_are_read_by_that_host),
    CASE(expired_rows_are_told_from_the_others),
    CASE(rows_of_many_routes_are_found),
    CASE(tasks_are_located_by_either_id),
    CASE(a_truncate_and_an_update_follow_one_another),
    {NULL, NULL},
};
