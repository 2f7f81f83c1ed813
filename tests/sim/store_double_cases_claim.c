/* SPDX-License-Identifier: MIT
 *
 * Cases of the port to the database: claims, heads, rows held and blocked, commands, settings, and the server's
 * troubles.
 */
#include <stdio.h>
#include <string.h>

#include "store_double_fixture.h"

static void a_claim_is_in_the_row(struct fixture *f) {
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t lost;
  insert(f, (struct spec){.id = 1, .timeout_ms = UINT32_MAX}); /* as much as its route lets it have: 5 s */
  insert(f, (struct spec){.id = 2});
  ok(f, claim_rows(f, f->leases, SHARDS, ids, 2, &batch, &lost));
  check(size_of(batch) == 2 && lost == 0);
  check(batch->tasks[0].attempt == 1 && batch->tasks[0].state == TASK_CLAIMED);
  check_text(batch->tasks[0].payload.data, "p");
  release(batch);
  const struct row *row = the_row(f, 1);
  check(blob_is(row->text[ROW_CLAIMED_BY], "me", 2) && row->claim_epoch == 7 && row_untouched(row));
  int64_t ahead = row->lease_until_us - table_clock(&f->db);
  check(ahead > 5 * SECOND && ahead <= 6 * SECOND);
}

static void a_claim_compares_what_was_judged(struct fixture *f) {
  const char message_ids[][STORE_ID_MAX + 1] = {"m1", "other", "m3", "m4", "m5"};
  const uint64_t ids[] = {1, 2, 3, 4, 5};
  struct store_claim claim = {.instance = "me",
                              .route = "r",
                              .host = "",
                              .leases = f->leases,
                              .lease_count = 1,
                              .ids = ids,
                              .message_ids = message_ids,
                              .count = 5,
                              .timeout_ms = 1,
                              .lease_ms = 1,
                              .limit = {.payload = 9, .bytes = 99}};
  struct task_batch *batch;
  uint64_t lost;
  insert(f, (struct spec){.id = 1});
  insert(f, (struct spec){.id = 2});
  insert(f, (struct spec){.id = 3, .route = "s"});
  insert(f, (struct spec){.id = 4, .due_us = HOUR});
  insert(f, (struct spec){.id = 5, .move_to_shard = 2});
  ok(f, f->ops->claim(f->ss, &claim, &batch, &lost, &f->err));
  check(size_of(batch) == 1 && batch->tasks[0].id == 1);
  release(batch);
}

static void a_stale_epoch_claims_nothing(struct fixture *f) {
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t lost;
  insert(f, (struct spec){.id = 1});
  insert(f, (struct spec){.id = 2, .shard = 1});
  the_shard(f, 1)->epoch++;
  ok(f, claim_rows(f, f->leases, SHARDS, ids, 2, &batch, &lost));
  check(!batch && lost == shard_bit(1));
  check_text(states_of(f), "scheduled,scheduled");
  struct shard_lease same_epoch = {.shard = 0, .epoch = 7, .owner = "she"};
  ok(f, claim_rows(f, &same_epoch, 1, ids, 1, &batch, &lost));
  check(!batch && lost == shard_bit(0));
}

static void claims_pass_over_a_locked_row(struct fixture *f) {
  const uint64_t ids[] = {1, 2, 3};
  struct task_batch *batch;
  uint64_t lost;
  for (uint64_t id = 1; id <= 3; id++)
    insert(f, (struct spec){.id = id});
  hold(f, LOCK_ROW, 2);
  int64_t before = world_now_us();
  ok(f, claim_rows(f, f->leases, 1, ids, 3, &batch, &lost));
  check(size_of(batch) == 2 && world_now_us() - before < SECOND / 2);
  release(batch);
  check_text(states_of(f), "claimed,scheduled,claimed");
  let_go(f);
  hold(f, LOCK_ENTRY, 2);
  check_int(claim_rows(f, f->leases, 1, &ids[1], 1, &batch, &lost), STORE_BUSY);
  insert(f, (struct spec){.id = 4});
  const uint64_t others[] = {2, 4}; /* which it knows from then on */
  ok(f, claim_rows(f, f->leases, 1, others, 2, &batch, &lost));
  check(size_of(batch) == 1 && batch->tasks[0].id == 4);
  release(batch);
  let_go(f);
  ok(f, claim_rows(f, f->leases, 1, &ids[1], 1, &batch, &lost));
  check_int(size_of(batch), 1);
  release(batch);
}

static void claims_leave_a_locked_shard_alone(struct fixture *f) {
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t lost;
  insert(f, (struct spec){.id = 1, .shard = 0});
  insert(f, (struct spec){.id = 2, .shard = 1});
  hold(f, LOCK_SHARD, 1);
  check_int(claim_rows(f, f->leases, SHARDS, ids, 2, &batch, &lost), STORE_BUSY);
  ok(f, claim_rows(f, f->leases, SHARDS, ids, 2, &batch, &lost));
  check(size_of(batch) == 1 && batch->tasks[0].id == 1 && !lost);
  release(batch);
  check_int(claim_rows(f, &f->leases[1], 1, &ids[1], 1, &batch, &lost), STORE_BUSY);
}

static void an_unknown_claim_is_found_out(struct fixture *f) {
  const uint64_t ids[] = {1, 2};
  const enum table_hit hits[] = {HIT_LOST_AFTER, HIT_LOST_BEFORE};
  struct task_batch *batch;
  uint64_t lost;
  for (int i = 0; i < 2; i++) {
    insert(f, (struct spec){.id = 1});
    insert(f, (struct spec){.id = 2});
    hit(f, hits[i], true, 1);
    ok(f, claim_rows(f, f->leases, 1, ids, 2, &batch, &lost));
    check(size_of(batch) == 2 && batch->tasks[0].attempt == 1);
    release(batch);
    check_text(states_of(f), "claimed,claimed");
    delete_row(f, 1);
    delete_row(f, 2);
  }
}

static void claims_without_an_answer_are_found_by_their_name(struct fixture *f) {
  const uint64_t ids[] = {1, 2};
  struct task_batch *batch;
  uint64_t lost;
  insert(f, (struct spec){.id = 1});
  insert(f, (struct spec){.id = 2});
  insert(f, (struct spec){.id = 3, .state = TASK_CLAIMED, .claimed_by = "she"});
  insert(f, (struct spec){.id = 4, .shard = 3, .state = TASK_CLAIMED, .claimed_by = "me"});
  insert(f, (struct spec){.id = 5, .state = TASK_CLAIMED, .claimed_by = "me"}); /* under an earlier lease */
  hit(f, HIT_LOST_AFTER, true, 2);
  check_int(claim_rows(f, f->leases, 1, ids, 2, &batch, &lost), STORE_DOWN);
  check(!batch);
  ok(f, f->ops->own_claims(f->ss, "me", f->leases, 2, 1, 100, &batch, &f->err));
  check(size_of(batch) == 1 && batch->tasks[0].id == 2);
  release(batch);
  ok(f, f->ops->own_claims(f->ss, "me", f->leases, 2, 0, 100, &batch, &f->err));
  check(size_of(batch) == 2 && batch->tasks[0].attempt == 1);
  release(batch);
}

static void hold_the_shards(struct table *db) {
  struct tx *tx = user_begin(db);
  for (uint64_t shard = 0; shard < SHARDS; shard++)
    check(user_lock(tx, LOCK_SHARD, shard, false));
}

static void a_claim_that_cannot_be_asked_about_is_unknown(struct fixture *f) {
  const uint64_t ids[] = {1};
  struct task_batch *batch;
  uint64_t lost;
  insert(f, (struct spec){.id = 1});
  f->db.hit_call = hold_the_shards;
  hit(f, HIT_LOST_AFTER, true, 1);
  check_int(claim_rows(f, f->leases, 1, ids, 1, &batch, &lost), STORE_DOWN);
  check(!batch);
  table_down(&f->db, 0);
  ok(f, f->ops->own_claims(f->ss, "me", f->leases, 2, 0, 100, &batch, &f->err));
  check_int(size_of(batch), 1);
  release(batch);
}

static void claims_of_the_dead_are_found(struct fixture *f) {
  const struct shard_lease lease = {.shard = 0, .epoch = 7, .owner = "me"};
  struct instance_row she = {.id = "she", .host = "h", .routes = "x"};
  struct task_batch *batch;
  uint32_t living, sets;
  ok(f, f->ops->beat(f->ss, &she, 60000, &living, &sets, &f->err));
  insert(f, (struct spec){.id = 1, .state = TASK_CLAIMED, .epoch = 6, .claimed_by = "old"});
  insert(f, (struct spec){.id = 2, .state = TASK_CLAIMED, .epoch = 7, .claimed_by = "me"});
  insert(f, (struct spec){.id = 3, .state = TASK_CLAIMED, .shard = SHARD_BOUND, .host = "h", .claimed_by = "she"});
  insert(f, (struct spec){.id = 4, .state = TASK_CLAIMED, .shard = SHARD_BOUND, .host = "h", .claimed_by = "dead"});
  ok(f, f->ops->lost_claims(f->ss, &lease, 1, 10, &batch, &f->err));
  check(size_of(batch) == 1 && batch->tasks[0].id == 1);
  release(batch);
  ok(f, f->ops->lost_bound_claims(f->ss, "h", 60000, 10, &batch, &f->err));
  check(!batch); /* what is not known may live */
  world_sleep(61 * SECOND);
  ok(f, f->ops->beat(f->ss, &she, 60000, &living, &sets, &f->err));
  ok(f, f->ops->lost_bound_claims(f->ss, "h", 60000, 10, &batch, &f->err));
  check(size_of(batch) == 1 && batch->tasks[0].id == 4);
  release(batch);
}

/* --- order keys --- */

static void note_head(void *ctx, const struct store_head *head) {
  char *text = ctx;
  size_t used = strlen(text);
  (void)snprintf(text + used, 100 - used, "%llu%s ", (unsigned long long)head->id, head->failed ? "!" : "");
}

static void retry_as_head(struct fixture *f, uint64_t id) {
  struct decision d = decide_on(f, id, EVENT_RETRY);
  d.head = true;
  d.failures++;
  check_int(settle(f, &d, 1), 1);
}

static void heads_are_told_in_their_order(struct fixture *f) {
  char text[100] = "";
  insert(f, (struct spec){.id = 1, .order_key = "k", .due_us = -SECOND});
  insert(f, (struct spec){.id = 2, .order_key = "k", .due_us = -2 * SECOND});
  insert(f, (struct spec){.id = 3, .order_key = "l", .priority = 9});
  for (uint64_t id = 1; id <= 3; id++)
    retry_as_head(f, id);
  ok(f, f->ops->heads(f->ss, NULL, note_head, text, &f->err));
  check_text(text, "3! 2! 1! ");
  struct decision d = decide_on(f, 2, EVENT_DONE);
  check_int(settle(f, &d, 1), 1);
  change(f, 3, "new");
  text[0] = '\0';
  ok(f, f->ops->heads(f->ss, NULL, note_head, text, &f->err));
  check_text(text, "3! 1! ");
  check_int(f->db.data.heads.count, 3);
  ok(f, f->ops->housekeep(f->ss, 86400000, 86400000, &f->err));
  check_int(f->db.data.heads.count, 2);
}

static void claims_of_others_for_our_host_are_told(struct fixture *f) {
  const struct spec claim = {
      .state = TASK_CLAIMED, .shard = SHARD_BOUND, .host = "h", .order_key = "k", .claimed_by = "other"};
  struct spec specs[] = {claim, claim, claim, claim, claim};
  char text[100] = "";
  specs[1].order_key = NULL;
  specs[2].claimed_by = "me";
  specs[3].host = "elsewhere";
  specs[4].state = TASK_SCHEDULED;
  for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
    specs[i].id = i + 1;
    insert(f, specs[i]);
  }
  ok(f, f->ops->claims_elsewhere(f->ss, "me", "h", "r", note_head, text, &f->err));
  check_text(text, "1 ");
}

static void many_heads_are_read_in_parts(struct fixture *f) {
  struct store_heads_part part = {.keys = 2};
  char text[100] = "", key[8];
  for (uint64_t id = 1; id <= 5; id++) {
    (void)snprintf(key, sizeof key, "k%llu", (unsigned long long)id);
    insert(f, (struct spec){.id = id, .order_key = key});
    retry_as_head(f, id);
  }
  int parts = 0;
  do {
    ok(f, f->ops->heads(f->ss, &part, note_head, text, &f->err));
    parts++;
  } while (part.more);
  check_text(text, "1! 2! 3! 4! 5! ");
  check_int(parts, 3);
}

static void blocked_rows_come_back_when_their_head_is_over(struct fixture *f) {
  uint32_t moved;
  bool all;
  insert(f, (struct spec){.id = 1, .order_key = "k"});
  insert(f, (struct spec){.id = 2, .order_key = "k"});
  insert(f, (struct spec){.id = 3, .order_key = "l"});
  retry_as_head(f, 1);
  for (uint64_t id = 2; id <= 3; id++) {
    struct decision d = decide_on(f, id, EVENT_BLOCK);
    check_int(settle(f, &d, 1), 1);
  }
  ok(f, f->ops->unblock(f->ss, f->leases, "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0}, &moved,
                        &all, &f->err));
  check(moved == 1 && all);
  check_text(states_of(f), "scheduled,blocked,scheduled");
  ok(f, f->ops->unblock(f->ss, f->leases, "h", &(struct store_unblock){"r", false, 10}, &(struct store_walk){0}, &moved,
                        &all, &f->err)); /* a failed one is no head */
  check(moved == 1 && all);
}

static void bound_rows_are_left_to_their_host_while_it_lives(struct fixture *f) {
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  const uint64_t ids[] = {1, 2, 3};
  static const char *const hosts[] = {"h", "other", "away"};
  struct instance_row two = {.id = "two", .host = "other", .routes = "x"};
  struct task_batch *batch;
  uint32_t moved, living, sets;
  bool all;
  ok(f, f->ops->beat(f->ss, &two, 60000, &living, &sets, &f->err));
  for (uint64_t id = 1; id <= 3; id++)
    insert(f, (struct spec){.id = id, .shard = SHARD_BOUND, .host = hosts[id - 1], .order_key = "k"});
  ok(f, f->ops->read_ids(f->ss, TASK_SCHEDULED, shard_bit(SHARD_BOUND), "h", ids, 3, 0, (struct store_limit){0}, &batch,
                         &f->err));
  check(size_of(batch) == 1 && batch->tasks[0].id == 1);
  release(batch);
  for (uint64_t id = 1; id <= 3; id++)
    the_row(f, id)->state = TASK_BLOCKED;
  ok(f, f->ops->unblock(f->ss, &bound, "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0}, &moved,
                        &all, &f->err));
  check(moved == 2 && all);
  check_text(states_of(f), "scheduled,blocked,scheduled");
  for (uint64_t id = 4; id <= 6; id++)
    insert(f, (struct spec){
                  .id = id, .state = TASK_CLAIMED, .shard = SHARD_BOUND, .host = hosts[id - 4], .claimed_by = "dead"});
  ok(f, f->ops->lost_bound_claims(f->ss, "h", 60000, 10, &batch, &f->err));
  check(size_of(batch) == 0); /* what is not known may live */
  world_sleep(61 * SECOND);
  ok(f, f->ops->beat(f->ss, &two, 60000, &living, &sets, &f->err));
  ok(f, f->ops->lost_bound_claims(f->ss, "h", 60000, 10, &batch, &f->err));
  check(size_of(batch) == 2 && batch->tasks[0].id == 4 && batch->tasks[1].id == 6);
  release(batch);
}

static void a_row_goes_where_it_is_asked_to(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .move_to_shard = 4});
  insert(f, (struct spec){.id = 2, .move_to_host = "h"});
  check_int(row_next_us(the_row(f, 1)), STORE_MOVES_US);
  for (uint64_t id = 1; id <= 2; id++) {
    struct decision d = decide_on(f, id, EVENT_RELEASE);
    check_int(settle(f, &d, 1), 1);
  }
  check(the_row(f, 1)->shard == 3 && !row_moves(the_row(f, 1)));
  check(the_row(f, 2)->shard == SHARD_BOUND && blob_is(the_row(f, 2)->text[ROW_TARGET_HOST], "h", 1));
}

static void heads_whose_host_is_silent_are_found(struct fixture *f) {
  const struct route_setting paused = {.route = "paused", .paused = true};
  struct instance_row two = {.id = "two", .host = "there", .routes = "x"};
  static const char *const hosts[] = {"away", "there", NULL, "away", "away"};
  uint64_t ids[5], after = 0;
  uint32_t living, sets;
  ok(f, f->ops->beat(f->ss, &two, 60000, &living, &sets, &f->err));
  ok(f, f->ops->set_route(f->ss, &paused, "ann", &f->err));
  for (uint64_t id = 1; id <= 5; id++) {
    insert(f, (struct spec){
                  .id = id, .order_key = "k", .route = id == 4 ? "paused" : NULL, .move_to_host = hosts[id - 1]});
    struct decision d = decide_on(f, id, EVENT_RELEASE);
    d.head = true;
    check_int(settle(f, &d, 1), 1);
  }
  size_t count = 3;
  ok(f, f->ops->stranded(f->ss, &after, ids, &count, &f->err));
  check(count == 1 && ids[0] == 1 && after == 3);
  count = 3;
  ok(f, f->ops->stranded(f->ss, &after, ids, &count, &f->err));
  check(count == 1 && ids[0] == 5 && after == 0);
}

/* --- held rows and commands --- */

static void rows_of_an_unknown_route_are_held_and_come_back(struct fixture *f) {
  const struct store_routes which = {
      .priority = 5, .routes = (const char *const[]){"q", "r"}, .route_count = 2, .limit = 10};
  uint32_t moved[2], back;
  bool all;
  for (uint64_t id = 1; id <= 3; id++)
    insert(f, (struct spec){.id = id, .route = id == 1 ? "q" : "r"});
  hold(f, LOCK_ROW, 2);
  ok(f, f->ops->hold(f->ss, f->leases, &which, moved, &f->err));
  check(moved[0] == 1 && moved[1] == 1);
  check_text(states_of(f), "held,scheduled,held");
  let_go(f);
  hold(f, LOCK_ROW, 3);
  ok(f, f->ops->unhold(f->ss, f->leases, "r", 10, &back, &all, &f->err));
  check(back == 0 && !all);
  let_go(f);
  ok(f, f->ops->unhold(f->ss, f->leases, "r", 10, &back, &all, &f->err));
  check(back == 1 && all);
  check(row_untouched(the_row(f, 3)));
  the_shard(f, 0)->epoch++;
  ok(f, f->ops->hold(f->ss, f->leases, &which, moved, &f->err));
  check(moved[0] == 0 && moved[1] == 0);
}

static void as_many_rows_are_moved_as_one_transaction_may_write(struct fixture *f) {
  const struct store_routes which = {
      .priority = 5, .routes = (const char *const[]){"r"}, .route_count = 1, .limit = 10};
  static char large[STORE_TRANSACTION_BYTES * 2 / 3];
  uint32_t moved;
  bool all;
  memset(large, 'x', sizeof large - 1);
  for (uint64_t id = 1; id <= 6; id++)
    insert(f, (struct spec){.id = id, .payload = id > 3 ? large : "small"});
  for (uint32_t wanted = 4; wanted; wanted = wanted > 1) {
    ok(f, f->ops->hold(f->ss, f->leases, &which, &moved, &f->err));
    check_int(moved, wanted);
  }
  check_text(states_of(f), "held,held,held,held,held,scheduled");
  the_row(f, 6)->state = TASK_HELD;
  for (uint32_t wanted = 4; wanted; wanted = wanted > 1) {
    ok(f, f->ops->unhold(f->ss, f->leases, "r", 10, &moved, &all, &f->err));
    check(moved == wanted && !all);
  }
  ok(f, f->ops->unhold(f->ss, f->leases, "r", 10, &moved, &all, &f->err));
  check(moved == 1 && all);
}

static void people_cancel_and_reschedule(struct fixture *f) {
  const uint64_t ids[] = {1, 2, 3, 99};
  enum intervened changed[4];
  insert(f, (struct spec){.id = 1});
  insert(f, (struct spec){.id = 2, .state = TASK_AWAITING, .attempt = 1});
  insert(f, (struct spec){.id = 3, .state = TASK_CLAIMED, .attempt = 1, .epoch = 7});
  int64_t due_us = table_clock(&f->db) + HOUR;
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_RESCHEDULE, ids, 4, due_us, "ann", "f", "", 0, changed, &f->err));
  check(changed[0] && !changed[1] && !changed[2] && !changed[3]);
  check(the_row(f, 1)->due_us == due_us && !row_untouched(the_row(f, 1)));
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_CANCEL, ids, 4, 0, "ann", "f", "", HOUR, changed, &f->err));
  check(changed[0] && changed[1] && !changed[2]);
  check_text(over_of(f), "cancelled|1|0");
  check_text(states_of(f), "claimed");
  check_int(f->db.data.audit.count, 2);
}

/* Whoever had claimed it holds its shard no longer: it is ended like one that is claimed in the memory of the dead. */
static void people_cancel_what_the_dead_have_claimed(struct fixture *f) {
  const uint64_t id = 1;
  enum intervened changed;
  insert(f, (struct spec){.id = 1, .state = TASK_CLAIMED, .attempt = 1, .epoch = 6});
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_RESCHEDULE, &id, 1, HOUR, "ann", "f", "", 0, &changed, &f->err));
  check(!changed);
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_CANCEL, &id, 1, 0, "ann", "f", "", HOUR, &changed, &f->err));
  check(changed);
  check_text(over_of(f), "cancelled|1|0");
}

static void commands_pass_over_a_locked_row(struct fixture *f) {
  const uint64_t ids[] = {1, 2};
  enum intervened changed[2];
  insert(f, (struct spec){.id = 1});
  insert(f, (struct spec){.id = 2});
  hold(f, LOCK_ROW, 2);
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_CANCEL, ids, 2, 0, "ann", "f", "", 0, changed, &f->err));
  check(changed[0] == INTERVENED_DONE && changed[1] == INTERVENED_LOCKED);
  let_go(f);
  the_shard(f, 0)->epoch++;
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_CANCEL, ids, 2, 0, "ann", "f", "", 0, changed, &f->err));
  check(!changed[0] && !changed[1]);
  check_text(states_of(f), "scheduled");
}

static void a_cancellation_without_an_answer_is_found_out(struct fixture *f) {
  const uint64_t ids[] = {1, 2};
  enum intervened changed[2];
  insert(f, (struct spec){.id = 1});
  insert(f, (struct spec){.id = 2});
  hit(f, HIT_LOST_AFTER, true, 1);
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_CANCEL, ids, 2, 0, "ann", "f", "", 0, changed, &f->err));
  check(changed[0] && changed[1]);
  check_int(f->db.data.audit.count, 1);
}

static void route_settings_are_kept_and_audited(struct fixture *f) {
  const struct route_setting *settings;
  struct route_setting pause = {.route = "r", .paused = true, .reason = "why"};
  size_t count;
  ok(f, f->ops->set_route(f->ss, &pause, "ann", &f->err));
  pause.paused = false;
  pause.changed_us = table_clock(&f->db) - HOUR; /* of before */
  ok(f, f->ops->set_route(f->ss, &pause, "ann", &f->err));
  ok(f, f->ops->route_settings(f->ss, &settings, &count, &f->err));
  check(count == 1 && settings[0].paused && strcmp(settings[0].reason, "why") == 0 && settings[0].changed_us > 0);
  check_int(f->db.data.audit.count, 1);
}

static void ids_at_their_end_are_put_right(struct fixture *f) {
  const uint64_t far = UINT64_C(1) << 63;
  uint64_t left;
  bool reset;
  insert(f, (struct spec){.id = 5});
  insert(f, (struct spec){.id = far, .due_us = HOUR});
  insert(f, (struct spec){.id = far + 1, .state = TASK_AWAITING});
  insert(f, (struct spec){.id = far + 2});
  insert(f, (struct spec){.id = far + 3, .state = TASK_CLAIMED});
  ok(f, f->ops->row_ids(f->ss, 0, &reset, &left, &f->err));
  check(!reset && left == far + 3 && the_row(f, 6) && the_row(f, 7)->state == TASK_AWAITING);
  ok(f, f->ops->row_ids(f->ss, 15 * SECOND, &reset, &left, &f->err));
  check(!reset && left == far + 3 && the_row(f, 8)->recoveries == 1);
  ok(f, f->ops->row_ids(f->ss, 45 * SECOND, &reset, &left, &f->err));
  check(reset && !left && f->db.data.next_id == 10);
  check(the_row(f, 9)->state == TASK_SCHEDULED && the_row(f, 9)->recoveries == 0);
}

/* --- the server --- */

static void a_server_that_is_down_says_so(struct fixture *f) {
  int64_t now;
  char server[STORE_SERVER_MAX];
  table_down(&f->db, world_now_us() + 10 * SECOND);
  check_int(f->ops->now(f->ss, &now, &f->err), STORE_DOWN);
  world_sleep(11 * SECOND);
  ok(f, f->ops->now(f->ss, &now, &f->err));
  check_int(f->store->server(f->store->self, server), 0);
}

static void a_read_only_server_is_left(struct fixture *f) {
  struct decision d[2];
  bool lost[SHARDS];
  rows_and_decisions(f, d, 2, EVENT_DONE);
  f->db.read_only = true;
  check_int(f->ops->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_DOWN);
  f->db.read_only = false;
  check_int(settle(f, d, 2), 2);
}

static void another_server_is_noticed(struct fixture *f) {
  char server[STORE_SERVER_MAX];
  int64_t now;
  insert(f, (struct spec){.id = 1});
  struct data *backup = table_backup(&f->db);
  insert(f, (struct spec){.id = 2});
  change(f, 1, "newer");
  table_fail_over(&f->db, backup, true);
  table_backup_free(&backup);
  ok(f, f->ops->now(f->ss, &now, &f->err));
  check_int(f->store->server(f->store->self, server), 1);
  check(!the_row(f, 2) && blob_is(the_row(f, 1)->text[ROW_PAYLOAD], "p", 1));
  check_int(user_put(&f->db, "r", "p", NULL), 2); /* the id is handed out again */
}

static void a_silent_session_keeps_no_locks(struct fixture *f) {
  struct connection *conn = connection_open(&f->db, NULL, "frozen");
  insert(f, (struct spec){.id = 1});
  check(table_lock(&f->db, tx_begin(&f->db, conn), LOCK_ROW, 1, false));
  world_sleep(3 * SECOND);
  change(f, 1, "free");
  check(!conn->alive);
  connection_close(&f->db, &conn);
}

/* --- following what commits --- */

static void what_commits_is_told(struct fixture *f) {
  const struct store_hint *hints;
  struct store_watch *watch;
  struct task_batch *batch;
  uint64_t lost;
  size_t count;
  ok(f, f->ops->watch(f->store->self, "h", 1 << 20, &watch, &f->err));
  ok(f, f->ops->watch_next(watch, &hints, &count, &f->err));
  check_int(count, 0);
  insert(f, (struct spec){.id = 1, .due_us = -HOUR});
  insert(f, (struct spec){.id = 2, .due_us = -2 * HOUR});
  insert(f, (struct spec){.id = 3, .shard = SHARD_BOUND, .host = "else"});
  ok(f, f->ops->watch_next(watch, &hints, &count, &f->err));
  check(count == 1 && hints[0].id == 2 && strcmp(hints[0].route, "r") == 0 && hints[0].shard == 0);
  check_int(hints[0].due_us, the_row(f, 2)->due_us);
  ok(f, claim_rows(f, f->leases, 1, &(uint64_t){1}, 1, &batch, &lost)); /* says nothing */
  release(batch);
  ok(f, f->ops->watch_next(watch, &hints, &count, &f->err));
  check_int(count, 0);
  struct decision d = decide_on(f, 1, EVENT_RELEASE); /* comes back to scheduled */
  check_int(settle(f, &d, 1), 1);
  ok(f, f->ops->watch_next(watch, &hints, &count, &f->err));
  check(count == 1 && hints[0].id == 1);
  table_altered(&f->db);
  check_int(f->ops->watch_next(watch, &hints, &count, &f->err), STORE_BUSY);
  table_kill_sessions(&f->db);
  check_int(f->ops->watch_next(watch, &hints, &count, &f->err), STORE_DOWN);
  f->ops->watch_close(&watch);
  f->db.no_log = true;
  check_int(f->ops->watch(f->store->self, "h", 1 << 20, &watch, &f->err), STORE_REFUSED);
  check(!watch);
}

#define CASE(name)                                                                                                     \
  { #name, name }
const struct store_case claim_cases[] = {
    CASE(a_claim_is_in_the_row),
    CASE(a_claim_compares_what_was_judged),
    CASE(a_stale_epoch_claims_nothing),
    CASE(claims_pass_over_a_locked_row),
    CASE(claims_leave_a_locked_shard_alone),
    CASE(an_unknown_claim_is_found_out),
    CASE(claims_without_an_answer_are_found_by_their_name),
    CASE(a_claim_that_cannot_be_asked_about_is_unknown),
    CASE(claims_of_the_dead_are_found),
    CASE(heads_are_told_in_their_order),
    CASE(many_heads_are_read_in_parts),
    CASE(claims_of_others_for_our_host_are_told),
    CASE(blocked_rows_come_back_when_their_head_is_over),
    CASE(bound_rows_are_left_to_their_host_while_it_lives),
    CASE(a_row_goes_where_it_is_asked_to),
    CASE(heads_whose_host_is_silent_are_found),
    CASE(rows_of_an_unknown_route_are_held_and_come_back),
    CASE(as_many_rows_are_moved_as_one_transaction_may_write),
    CASE(people_cancel_and_reschedule),
    CASE(people_cancel_what_the_dead_have_claimed),
    CASE(commands_pass_over_a_locked_row),
    CASE(a_cancellation_without_an_answer_is_found_out),
    CASE(route_settings_are_kept_and_audited),
    CASE(ids_at_their_end_are_put_right),
    CASE(a_server_that_is_down_says_so),
    CASE(a_read_only_server_is_left),
    CASE(another_server_is_noticed),
    CASE(a_silent_session_keeps_no_locks),
    CASE(what_commits_is_told),
    {NULL, NULL},
};
