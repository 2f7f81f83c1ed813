/* SPDX-License-Identifier: MIT
 *
 * Cases of the port to the database: what settling writes, guards and fences, and what it makes of locks, refusals and
 * lost answers.
 */
#include <stdlib.h>
#include <string.h>

#include "store_double_fixture.h"

enum { N = 20, ODD = 7 };

static void done_without_history_leaves_nothing(struct fixture *f) {
  insert(f, (struct spec){.id = 1});
  struct decision d = decide_on(f, 1, EVENT_DONE);
  check_int(settle(f, &d, 1), 1);
  check_text(row_of(f, 1), "(none)");
  check_text(over_of(f), "(none)");
  check_text(line_of(f), "(none)");
}

static void done_with_history_keeps_everything(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .payload = "body", .order_key = "k", .due_us = -HOUR});
  int64_t due_us = the_row(f, 1)->due_us;
  struct decision d = decide_on(f, 1, EVENT_DONE);
  d.keep_us = HOUR;
  d.published_us = TABLE_EPOCH_US;
  d.log_attempt = true;
  check_int(settle(f, &d, 1), 1);
  const struct row *over = f->db.data.history.at[0];
  check_text(over_of(f), "done|1|0");
  check_text(line_of(f), "success|done|1");
  check(over->due_us == due_us && over->published_us == TABLE_EPOCH_US && blob_is(over->text[ROW_PAYLOAD], "body", 4));
  check(blob_is(over->text[ROW_CLAIMED_BY], "me", 2) && over->keep_until_us > table_clock(&f->db) + HOUR - SECOND);
  f->db.clock_ahead_us += 26 * HOUR;
  f->machine.wall_ahead_us += 26 * HOUR;
  ok(f, f->ops->housekeep(f->ss, 86400000, 86400000, &f->err));
  check_text(over_of(f), "(none)");
}

static void a_retry_keeps_when_it_was_first_asked_for(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .due_us = -HOUR});
  int64_t due_us = the_row(f, 1)->due_us;
  for (uint32_t i = 1; i <= 2; i++) {
    struct decision d = decide_on(f, 1, EVENT_RETRY);
    d.failures++;
    d.delay_us = HOUR;
    d.log_attempt = true;
    d.error = "late";
    check_int(settle(f, &d, 1), 1);
    check_int(the_row(f, 1)->first_due_us, due_us);
    check_int(the_row(f, 1)->attempt, i);
  }
  check(the_row(f, 1)->due_us > table_clock(&f->db) + HOUR - SECOND && row_untouched(the_row(f, 1)));
  check_text(row_of(f, 1), "scheduled|2|2|0|0");
  check_text(line_of(f), "failure|retry|2");
}

static void a_dead_task_raises_its_alert(struct fixture *f) {
  insert(f, (struct spec){.id = 1});
  struct decision d = decide_on(f, 1, EVENT_DEAD);
  d.failures = 3;
  d.alert_route = "ops.alert";
  check_int(settle(f, &d, 1), 1);
  check_text(over_of(f), "dead|1|3");
  check(blob_is(the_row(f, 2)->text[ROW_ROUTE], "ops.alert", 9));
}

static void a_published_row_awaits_its_result(struct fixture *f) {
  insert(f, (struct spec){.id = 1});
  struct decision d = decide_on(f, 1, EVENT_PUBLISHED);
  d.delay_us = HOUR;
  d.published_us = TABLE_EPOCH_US;
  d.answer_to = 5;
  check_int(settle(f, &d, 1), 1);
  const struct row *row = the_row(f, 1);
  check_text(row_of(f, 1), "awaiting|1|0|0|0");
  check(row->published_us == TABLE_EPOCH_US && row->answer_to == 5 && row->sent_digest == row_content(row));
  check(row_next_us(row) == row->lease_until_us && row->lease_until_us > table_clock(&f->db) + HOUR - SECOND);
}

static void claims_are_released_and_rows_held_or_blocked(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .state = TASK_CLAIMED, .claimed_by = "me", .attempt = 1});
  insert(f, (struct spec){.id = 2, .shard = 1});
  insert(f, (struct spec){.id = 3, .shard = 2});
  struct decision d[] = {decide_on(f, 1, EVENT_RELEASE), decide_on(f, 2, EVENT_HOLD), decide_on(f, 3, EVENT_BLOCK)};
  d[0].recoveries = 1;
  check_int(settle(f, d, 3), 3);
  check_text(row_of(f, 1), "scheduled|1|0|1|0");
  check(!the_row(f, 1)->text[ROW_CLAIMED_BY] && the_row(f, 1)->lease_until_us == TIME_NULL);
  check_text(states_of(f), "scheduled,held,blocked");
}

static void what_the_consumer_said_is_kept(struct fixture *f) {
  struct result_record record = {.attempt = 1,
                                 .progress = 0.25,
                                 .checkpoint = "half",
                                 .checkpoint_len = 4,
                                 .result_json = "{}",
                                 .result_json_len = 2,
                                 .error_stack = "at b"};
  struct decision d[2];
  rows_and_decisions(f, d, 2, EVENT_RETRY);
  d[0].event = EVENT_DONE;
  d[0].record = d[1].record = &record;
  d[0].error = d[1].error = "no";
  check_int(settle(f, d, 2), 2);
  const struct row *over = f->db.data.history.at[0], *row = the_row(f, 2);
  check(blob_is(over->text[ROW_RESULT], "{}", 2) && blob_is(over->text[ROW_CHECKPOINT], "half", 4));
  check(blob_is(row->text[ROW_LAST_ERROR], "no\nat b", 7) && row->progress > 0.2);
  check_text(line_of(f), "result|retry|1");
}

/* --- guards and fences --- */

static void guards_let_only_what_fits_through(struct fixture *f) {
  struct decision d[N];
  rows_and_decisions(f, d, N, EVENT_DONE);
  the_row(f, 1)->state = TASK_HELD;
  the_row(f, 2)->attempt = 1;
  the_row(f, 3)->shard = 1;
  delete_row(f, 4);
  check_int(settle(f, d, N), N - 4);
  for (int i = 0; i < N; i++)
    check_int(d[i].applied, i >= 4);
  check(d[3].gone && !d[2].gone && !d[2].mismatch);
  for (int i = 0; i < 2; i++) /* and alone */
    check_int(settle(f, &d[i], 1), 0);
  check_int(settle(f, d, N), 0);
}

static void impossible_and_repeated_decisions_are_not_applied(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .state = TASK_AWAITING});
  insert(f, (struct spec){.id = 2});
  struct decision d[] = {decide_on(f, 1, EVENT_HOLD), decide_on(f, 2, EVENT_DONE), decide_on(f, 2, EVENT_DONE)};
  check_int(settle(f, d, 3), 1);
  check(!d[0].applied && d[1].applied && d[2].busy);
}

static void a_stale_epoch_settles_nothing(struct fixture *f) {
  struct decision d[N];
  bool lost[SHARDS];
  rows_and_decisions(f, d, N, EVENT_DONE);
  for (uint64_t id = 1; id <= N; id++)
    the_row(f, id)->shard = d[id - 1].shard = (uint8_t)(id % SHARDS);
  the_shard(f, 1)->epoch++;
  memcpy(the_shard(f, 2)->owner, "she", 4);
  ok(f, f->ops->settle(f->ss, f->leases, SHARDS, d, N, lost, &f->err));
  check(!lost[0] && lost[1] && lost[2] && !lost[3]);
  for (int i = 0; i < N; i++)
    check_int(d[i].applied, d[i].shard == 0 || d[i].shard == 3);
  ok(f, f->ops->settle(f->ss, &f->leases[1], 1, d, 1, lost, &f->err)); /* one row alone */
  check(lost[0] && !d[0].applied);
  ok(f, f->ops->settle(f->ss, f->leases, 1, d, N, lost, &f->err)); /* no lease at all for most */
  check_int(f->db.data.rows.count, N / 2);
}

static void a_task_that_got_the_id_of_another_is_left_alone(struct fixture *f) {
  static const enum task_event events[] = {EVENT_DONE, EVENT_DEAD, EVENT_RETRY, EVENT_PUBLISHED, EVENT_HOLD};
  struct decision d[2];
  for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
    rows_and_decisions(f, d, 2, events[i]);
    check(table_truncate(&f->db));
    insert(f, (struct spec){.message_id = "new1"});
    insert(f, (struct spec){.message_id = "new2"});
    check_int(settle(f, d, 2), 0);
    check(d[0].mismatch && d[1].mismatch && !d[0].gone);
    check_int(settle(f, d, 1), 0);
    check_text(states_of(f), "scheduled,scheduled");
    check(table_truncate(&f->db));
  }
}

/* --- changes after reading --- */

static struct decision sent(struct fixture *f, struct task_batch **batch, enum task_event event) {
  insert(f, (struct spec){.id = 1, .due_us = -HOUR});
  *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  check_int(size_of(*batch), 1);
  return decide_on_sent(&(*batch)->tasks[0], event);
}

static void a_change_in_flight_is_sent_too(struct fixture *f) {
  static const enum task_event events[] = {EVENT_DONE, EVENT_RETRY, EVENT_DEAD, EVENT_PUBLISHED};
  struct task_batch *batch;
  for (size_t i = 0; i < 4; i++) {
    struct decision d = sent(f, &batch, events[i]);
    change(f, 1, "new");
    check_int(settle(f, &d, 1), 1);
    check(d.changed);
    check_text(row_of(f, 1), "scheduled|1|0|0|1");
    check_text(line_of(f), i == 1 || i == 2 ? "failure|changed|1" : "success|changed|1");
    release(batch);
    delete_row(f, 1);
  }
}

static void a_change_of_nothing_that_was_sent_is_settled(struct fixture *f) {
  struct task_batch *batch;
  struct decision d = sent(f, &batch, EVENT_DONE);
  change(f, 1, "other");
  change(f, 1, "p");
  check_int(settle(f, &d, 1), 1);
  check(!d.changed);
  check_text(row_of(f, 1), "(none)");
  release(batch);
}

static void what_was_not_sent_is_judged_again(struct fixture *f) {
  struct task_batch *batch;
  struct decision d = sent(f, &batch, EVENT_EXPIRE);
  d.sent = NULL;
  change(f, 1, "other");
  check_int(settle(f, &d, 1), 0);
  check_text(row_of(f, 1), "scheduled|0|0|0|0");
  release(batch);
}

static void a_changed_claim_that_was_never_sent_goes_back(struct fixture *f) {
  struct task_batch *batch;
  uint64_t lost;
  insert(f, (struct spec){.id = 1});
  ok(f, claim_rows(f, f->leases, 1, &(uint64_t){1}, 1, &batch, &lost));
  struct decision d = decide_on_sent(&batch->tasks[0], EVENT_DEFER);
  d.sent = NULL;
  change(f, 1, "new");
  check_int(settle(f, &d, 1), 1);
  check(d.changed);
  check_text(row_of(f, 1), "scheduled|1|0|0|0");
  check_text(line_of(f), "(none)");
  release(batch);
}

static void a_task_that_is_removed_while_its_copy_is_out(struct fixture *f) {
  struct task_batch *batch;
  struct decision d = sent(f, &batch, EVENT_PUBLISHED);
  delete_row(f, 1);
  for (int again = 0; again < 2; again++) {
    check_int(settle(f, &d, 1), 0);
    check(d.gone && !d.busy && !d.refused);
    check_text(line_of(f), "success|sent_then_removed|1");
    check_int(f->db.data.attempts.count, 1);
  }
  release(batch);
}

static void no_result_of_a_task_that_was_changed(struct fixture *f) {
  struct task_batch *batch;
  for (int content = 0; content < 2; content++) {
    struct decision d = sent(f, &batch, EVENT_PUBLISHED);
    check_int(settle(f, &d, 1), 1);
    change(f, 1, content ? "new" : "p");
    d = decide_on(f, 1, EVENT_RETRY);
    d.attempt = 1;
    check_int(settle(f, &d, 1), 1);
    check_int(d.changed, content);
    check_text(row_of(f, 1), content ? "scheduled|1|0|0|1" : "scheduled|1|0|0|0");
    release(batch);
    delete_row(f, 1);
  }
}

/* --- locks --- */

static void settles_all_but_a_locked_row(struct fixture *f) {
  struct decision d[3];
  rows_and_decisions(f, d, 3, EVENT_DONE);
  hold(f, LOCK_ROW, 2);
  int64_t before = world_now_us();
  check_int(settle(f, d, 3), 2);
  check(d[1].busy && !d[1].applied && !d[0].busy && world_now_us() - before < 2 * SECOND);
  before = world_now_us();
  check_int(settle(f, &d[1], 1), 0); /* again: it costs no waiting */
  check(d[1].busy && world_now_us() - before < SECOND);
  let_go(f);
  check_int(settle(f, &d[1], 1), 1);
  check(!d[1].busy);
}

static void a_locked_row_that_goes_is_no_longer_busy(struct fixture *f) {
  struct decision d;
  rows_and_decisions(f, &d, 1, EVENT_DONE);
  f->other = user_begin(&f->db);
  check(user_delete(f->other, 1));
  check_int(settle(f, &d, 1), 0);
  check(d.busy);
  let_go(f);
  check_int(settle(f, &d, 1), 0);
  check(!d.busy && !d.applied);
}

static void settles_all_but_a_locked_shard(struct fixture *f) {
  struct decision d[N];
  rows_and_decisions(f, d, N, EVENT_DONE);
  for (uint64_t id = 1; id <= N; id++)
    the_row(f, id)->shard = d[id - 1].shard = (uint8_t)(id % SHARDS);
  hold(f, LOCK_SHARD, 1);
  check_int(settle(f, d, N), N * 3 / 4);
  for (int i = 0; i < N; i++)
    check_int(d[i].busy, d[i].shard == 1);
}

static void settles_all_but_a_row_whose_index_entry_is_locked(struct fixture *f) {
  struct decision d[N];
  rows_and_decisions(f, d, N, EVENT_DONE);
  hold(f, LOCK_ENTRY, ODD);
  check_int(settle(f, d, N), N - 1);
  for (int i = 0; i < N; i++)
    check_int(d[i].busy, d[i].id == ODD);
  let_go(f);
  check_int(settle(f, &d[ODD - 1], 1), 1);
}

static void a_locked_table_holds_up_what_needs_it_and_nothing_else(struct fixture *f) {
  static const enum lock_kind tables[] = {LOCK_HISTORY, LOCK_ATTEMPTS, LOCK_HEADS};
  struct decision d[N];
  for (size_t t = 0; t < 3; t++) {
    rows_and_decisions(f, d, N, EVENT_DONE);
    for (int i = 0; i < N; i++) {
      bool needy = i % 4 == 0;
      d[i].keep_us = t == 0 && needy ? HOUR : 0;
      d[i].log_attempt = t == 1 && needy;
      d[i].head = t == 2 && needy;
      d[i].event = d[i].head ? EVENT_RETRY : EVENT_DONE;
    }
    hold(f, tables[t], 0);
    check_int(settle(f, d, N), N * 3 / 4);
    for (int i = 0; i < N; i++)
      check_int(d[i].busy, i % 4 == 0);
    let_go(f);
    check_int(settle(f, d, N), N / 4);
    check(table_truncate(&f->db));
  }
}

/* --- refusals --- */

static void what_is_refused_is_left_out(struct fixture *f) {
  static const struct {
    unsigned refuses;
    enum task_event event;
    enum decision_form form;
  } cases[] = {{REFUSE_ALERTS, EVENT_DEAD, DECISION_NO_ALERT},
               {LOCK_ATTEMPTS, EVENT_RETRY, DECISION_NO_LINES},
               {LOCK_HEADS, EVENT_RETRY, DECISION_NO_HEAD},
               {LOCK_HISTORY, EVENT_DONE, DECISION_NO_HISTORY}};
  struct decision d[N];
  for (size_t i = 0; i < 4; i++) {
    rows_and_decisions(f, d, N, cases[i].event);
    f->db.refuses = cases[i].refuses;
    f->db.refuses_id = ODD;
    for (int k = 0; k < N; k++) {
      d[k].alert_route = cases[i].event == EVENT_DEAD ? "ops.alert" : NULL;
      d[k].head = cases[i].refuses == LOCK_HEADS;
    }
    check_int(settle(f, d, N), N);
    for (int k = 0; k < N; k++)
      check_int(d[k].form, d[k].id == ODD ? cases[i].form : DECISION_WHOLE);
    f->db.refuses = 0;
    check(table_truncate(&f->db));
  }
}

static void what_is_refused_in_every_form_waits_alone(struct fixture *f) {
  struct decision d[N];
  rows_and_decisions(f, d, N, EVENT_DEAD);
  f->db.refuses = LOCK_HISTORY;
  f->db.refuses_id = ODD;
  check_int(settle(f, d, N), N - 1);
  check(d[ODD - 1].refused && !d[ODD - 1].busy);
  f->db.refuses = 0;
  check_int(settle(f, &d[ODD - 1], 1), 1);
  check_int(d[ODD - 1].form, DECISION_WHOLE);
}

static void a_right_that_is_missing_costs_only_what_needs_it(struct fixture *f) {
  struct decision d[N];
  rows_and_decisions(f, d, N, EVENT_RETRY);
  for (int i = 0; i < N; i++)
    d[i].head = d[i].id == ODD;
  f->db.refuses = LOCK_HEADS;
  f->db.denies = true;
  check_int(settle(f, d, N), N - 1);
  check(d[ODD - 1].refused && d[ODD - 1].form == DECISION_WHOLE);
}

static void a_table_that_refuses_everything_is_not_asked_for_ever(struct fixture *f) {
  struct decision d[N];
  rows_and_decisions(f, d, N, EVENT_DONE);
  f->db.refuses = REFUSE_ROWS;
  check_int(settle(f, d, N), 0);
  for (int i = 0; i < N; i++)
    check(d[i].refused && !d[i].busy);
  f->db.refuses = 0;
  check_int(settle(f, d, N), N);
}

static void texts_that_are_refused_are_cut(struct fixture *f) {
  struct decision d[2];
  char *large = calloc(1, 5000);
  check(large);
  memset(large, 'e', 4999);
  rows_and_decisions(f, d, 2, EVENT_RETRY);
  d[0].error = large;
  f->db.refused_bytes = 2000;
  check_int(settle(f, d, 2), 2);
  check(d[0].form == DECISION_NO_TEXTS && d[1].form == DECISION_WHOLE);
  check_int(the_row(f, 1)->text[ROW_LAST_ERROR]->len, 1000);
  free(large);
}

/* --- lost answers and conflicts --- */

static void an_unknown_commit_is_found_out(struct fixture *f) {
  static const enum table_hit hits[] = {HIT_LOST_AFTER, HIT_LOST_BEFORE};
  static const enum task_event events[] = {EVENT_DONE, EVENT_RETRY};
  struct decision d[2];
  for (int i = 0; i < 4; i++) {
    size_t lines = f->db.data.attempts.count;
    rows_and_decisions(f, d, 2, events[i / 2]);
    hit(f, hits[i % 2], true, 1);
    check_int(settle(f, d, 2), 2);
    check_int(f->db.data.attempts.count, lines + 2);
    if (i / 2)
      check_text(row_of(f, 1), "scheduled|1|0|0|0");
    check(table_truncate(&f->db));
  }
}

static void an_unknown_commit_of_one_row_is_found_out(struct fixture *f) {
  struct decision d;
  for (int i = 0; i < 2; i++) {
    rows_and_decisions(f, &d, 1, EVENT_DONE);
    d.keep_us = d.log_attempt = 0;
    hit(f, i ? HIT_LOST_AFTER : HIT_LOST_BEFORE, true, 1);
    check_int(settle(f, &d, 1), 1);
    check_text(row_of(f, 1), "(none)");
  }
}

static void go_away(struct table *db) { table_down(db, world_now_us() + 10 * SECOND); }

static void an_unknown_commit_is_known_when_the_server_is_back(struct fixture *f) {
  struct decision d[2];
  bool lost[SHARDS];
  for (int happened = 0; happened < 2; happened++) {
    rows_and_decisions(f, d, 2, EVENT_RETRY);
    f->db.hit_call = go_away;
    hit(f, happened ? HIT_LOST_AFTER : HIT_LOST_BEFORE, true, 1);
    check_int(f->ops->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_DOWN);
    check_int(f->ops->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_DOWN);
    check(!d[0].applied && d[0].unknown && d[1].unknown);
    world_sleep(11 * SECOND);
    check_int(settle(f, d, 2), 2);
    check(!d[0].unknown);
    check_text(row_of(f, 1), "scheduled|1|0|0|0");
    check(table_truncate(&f->db));
  }
}

/* By a failover, which hands the id out again. */
static void an_unknown_commit_is_not_told_of_rows_that_are_lost(struct fixture *f) {
  struct decision d[3];
  bool lost[SHARDS];
  rows_and_decisions(f, d, 3, EVENT_RETRY);
  d[2].event = EVENT_DONE;
  f->db.hit_call = go_away;
  hit(f, HIT_LOST_AFTER, true, 1);
  check_int(f->ops->settle(f->ss, f->leases, SHARDS, d, 3, lost, &f->err), STORE_DOWN);
  check(d[0].unknown && d[1].unknown && d[2].unknown);
  world_sleep(11 * SECOND);
  delete_row(f, 1);
  delete_row(f, 2);
  insert(f, (struct spec){.id = 1, .message_id = "other"});
  check_int(settle(f, d, 3), 1);
  check(!d[0].applied && d[0].mismatch && !d[0].unknown);
  check(!d[1].applied && d[1].gone && !d[1].unknown);
  check(d[2].applied && !d[2].gone);
}

static void an_unknown_commit_that_was_found_out_stays_known(struct fixture *f) {
  for (size_t others = 0; others < 2; others++) {
    struct decision d[3];
    bool lost[SHARDS];
    rows_and_decisions(f, d, 3, EVENT_RETRY);
    f->db.hit_call = go_away;
    hit(f, HIT_LOST_AFTER, true, 1);
    check_int(f->ops->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_DOWN);
    world_sleep(11 * SECOND);
    hit(f, HIT_LOST_BEFORE, others, 1);
    check_int(settle(f, d, 2 + others), 2 + others);
    check(d[0].applied && d[1].applied && !d[0].gone && !d[0].busy);
    check_text(row_of(f, 1), "scheduled|1|0|0|0");
    check(table_truncate(&f->db));
  }
}

/* Two commits without an answer, of which one has happened: each tells of itself. */
static void unknown_commits_are_told_apart(struct fixture *f) {
  static const enum table_hit hits[] = {HIT_LOST_AFTER, HIT_LOST_BEFORE};
  struct decision d[4], given[4];
  bool lost[SHARDS];
  rows_and_decisions(f, d, 4, EVENT_RETRY);
  for (size_t i = 0; i < 2; i++) { /* the first and the third, and the others */
    struct decision some[] = {d[i], d[i + 2]};
    f->db.hit_call = go_away;
    hit(f, hits[i], true, 1);
    check_int(f->ops->settle(f->ss, f->leases, SHARDS, some, 2, lost, &f->err), STORE_DOWN);
    world_sleep(11 * SECOND);
    given[i] = some[0];
    given[i + 2] = some[1];
  }
  check_int(settle(f, given, 4), 4);
  for (size_t i = 0; i < 4; i++)
    check(given[i].applied && !given[i].unknown && given[i].written == (i % 2 == 0));
  check_text(row_of(f, 2), "scheduled|1|0|0|0");
}

static void a_deferred_row_does_not_tell_whether_a_commit_happened(struct fixture *f) {
  for (int happened = 0; happened < 2; happened++) {
    struct decision d[2];
    rows_and_decisions(f, d, 2, EVENT_DONE);
    d[1].event = EVENT_DEFER;
    d[1].attempt = d[1].attempt_from;
    hit(f, happened ? HIT_LOST_AFTER : HIT_LOST_BEFORE, true, 1);
    check_int(settle(f, d, 2), 2);
    check_text(states_of(f), "scheduled");
    check(the_row(f, 2)->due_us > table_clock(&f->db) + HOUR / 2);
    check(table_truncate(&f->db));
  }
}

static void conflicts_are_redone_and_leave_nothing_done(struct fixture *f) {
  struct decision d[2];
  bool lost[SHARDS];
  rows_and_decisions(f, d, 2, EVENT_DONE);
  hit(f, HIT_CONFLICT, false, 1000);
  check_int(f->ops->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_BUSY);
  check(!d[0].applied && !d[1].applied && strstr(f->err.text, "1213"));
  check_int(f->db.lock_count, 0);
  hit(f, HIT_CONFLICT, false, 3);
  check_int(settle(f, d, 2), 2);
}

static void a_connection_that_dies_again_is_down(struct fixture *f) {
  struct decision d[2];
  bool lost[SHARDS];
  rows_and_decisions(f, d, 2, EVENT_DONE);
  hit(f, HIT_LOST_BEFORE, false, 2);
  check_int(f->ops->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err), STORE_DOWN);
  check_text(states_of(f), "scheduled,scheduled");
  check_int(settle(f, d, 2), 2);
}

#define CASE(name)                                                                                                     \
  { #name, name }
const struct store_case settle_cases[] = {
    CASE(done_without_history_leaves_nothing),
    CASE(done_with_history_keeps_everything),
    CASE(a_retry_keeps_when_it_was_first_asked_for),
    CASE(a_dead_task_raises_its_alert),
    CASE(a_published_row_awaits_its_result),
    CASE(claims_are_released_and_rows_held_or_blocked),
    CASE(what_the_consumer_said_is_kept),
    CASE(guards_let_only_what_fits_through),
    CASE(impossible_and_repeated_decisions_are_not_applied),
    CASE(a_stale_epoch_settles_nothing),
    CASE(a_task_that_got_the_id_of_another_is_left_alone),
    CASE(a_change_in_flight_is_sent_too),
    CASE(a_change_of_nothing_that_was_sent_is_settled),
    CASE(what_was_not_sent_is_judged_again),
    CASE(a_changed_claim_that_was_never_sent_goes_back),
    CASE(a_task_that_is_removed_while_its_copy_is_out),
    CASE(no_result_of_a_task_that_was_changed),
    CASE(settles_all_but_a_locked_row),
    CASE(a_locked_row_that_goes_is_no_longer_busy),
    CASE(settles_all_but_a_locked_shard),
    CASE(settles_all_but_a_row_whose_index_entry_is_locked),
    CASE(a_locked_table_holds_up_what_needs_it_and_nothing_else),
    CASE(what_is_refused_is_left_out),
    CASE(what_is_refused_in_every_form_waits_alone),
    CASE(a_right_that_is_missing_costs_only_what_needs_it),
    CASE(a_table_that_refuses_everything_is_not_asked_for_ever),
    CASE(texts_that_are_refused_are_cut),
    CASE(an_unknown_commit_is_found_out),
    CASE(an_unknown_commit_of_one_row_is_found_out),
    CASE(an_unknown_commit_is_known_when_the_server_is_back),
    CASE(an_unknown_commit_is_not_told_of_rows_that_are_lost),
    CASE(an_unknown_commit_that_was_found_out_stays_known),
    CASE(unknown_commits_are_told_apart),
    CASE(a_deferred_row_does_not_tell_whether_a_commit_happened),
    CASE(conflicts_are_redone_and_leave_nothing_done),
    CASE(a_connection_that_dies_again_is_down),
    {NULL, NULL},
};
