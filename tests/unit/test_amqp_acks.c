/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_amqp_acks.c - acknowledgements of deliveries, against a broker that is a list of tags.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plugins/amqp/amqp_acks.h"

enum { TAGS = 3000, PREFETCH = 40 };

enum fate { FATE_NONE = 0, FATE_ACKED, FATE_REQUEUED };

/* What the broker would do: apply a frame to all tags it covers. */
static void apply(enum fate *fates, const struct amqp_ack_frame *frame) {
  for (uint64_t tag = frame->multiple ? 1 : frame->tag; tag <= frame->tag; tag++) {
    if (fates[tag] == FATE_NONE)
      fates[tag] = frame->requeue ? FATE_REQUEUED : FATE_ACKED;
  }
}

/* Sends what there is to send and checks that the broker then knows exactly what was decided. */
static void flush(struct amqp_acks *acks, enum fate *fates, const enum fate *wanted) {
  struct amqp_ack_frame frame;
  while (amqp_acks_next(acks, &frame))
    apply(fates, &frame);
  for (uint64_t tag = 1; tag <= TAGS; tag++)
    assert_int_equal(fates[tag], wanted[tag]);
}

static void any_order_of_decisions(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 10; seed++) {
    struct amqp_acks acks = {0};
    enum fate fates[TAGS + 1] = {0}, wanted[TAGS + 1] = {0};
    uint64_t open[PREFETCH];
    uint32_t open_count = 0;
    srand(seed);
    assert_true(amqp_acks_widen(&acks, PREFETCH));
    for (uint64_t next = 1; next <= TAGS || open_count > 0;) {
      int dice = rand() % 8;
      if (dice < 4 && next <= TAGS && acks.count < PREFETCH) {
        assert_true(amqp_acks_add(&acks, next, 0));
        open[open_count++] = next++;
      } else if (dice < 7 && open_count > 0) {
        uint32_t i = (uint32_t)rand() % open_count;
        bool committed = rand() % 5 != 0;
        wanted[open[i]] = committed ? FATE_ACKED : FATE_REQUEUED;
        assert_true(amqp_acks_decide(&acks, open[i], committed));
        assert_false(amqp_acks_decide(&acks, open[i], committed)); /* once only */
        open[i] = open[--open_count];
      } else {
        flush(&acks, fates, wanted);
      }
    }
    flush(&acks, fates, wanted);
    assert_int_equal(acks.count, 0);
    amqp_acks_free(&acks);
  }
}

static void frames(struct amqp_acks *acks, const struct amqp_ack_frame *want, int count) {
  struct amqp_ack_frame frame;
  for (int i = 0; i < count; i++) {
    assert_true(amqp_acks_next(acks, &frame));
    assert_int_equal(frame.tag, want[i].tag);
    assert_int_equal(frame.multiple, want[i].multiple);
    assert_int_equal(frame.requeue, want[i].requeue);
  }
  assert_false(amqp_acks_next(acks, &frame));
}

static void a_batch_is_one_frame(void **state) {
  (void)state;
  struct amqp_acks acks = {0};
  assert_true(amqp_acks_widen(&acks, 10));
  for (uint64_t tag = 1; tag <= 6; tag++)
    assert_true(amqp_acks_add(&acks, tag, 0));
  for (uint64_t tag = 4; tag >= 1; tag--)
    assert_true(amqp_acks_decide(&acks, tag, true));
  assert_true(amqp_acks_decide(&acks, 6, true));
  /* 5 is open: 1..4 in one frame, 6 on its own */
  frames(&acks, (struct amqp_ack_frame[]){{4, true, false}, {6, false, false}}, 2);
  assert_true(amqp_acks_decide(&acks, 5, false));
  frames(&acks, (struct amqp_ack_frame[]){{5, false, true}}, 1);
  amqp_acks_free(&acks);
}

static void what_breaks_the_protocol_is_refused(void **state) {
  (void)state;
  struct amqp_acks acks = {0};
  assert_true(amqp_acks_widen(&acks, 2));
  assert_false(amqp_acks_decide(&acks, 1, true));
  assert_true(amqp_acks_add(&acks, 5, 0));
  assert_false(amqp_acks_add(&acks, 5, 0)); /* the same tag again */
  assert_false(amqp_acks_add(&acks, 4, 0)); /* a tag that falls */
  assert_true(amqp_acks_add(&acks, 9, 0));
  assert_false(amqp_acks_add(&acks, 10, 0)); /* more than the prefetch */
  assert_false(amqp_acks_decide(&acks, 7, true));
  amqp_acks_reset(&acks);
  assert_false(amqp_acks_decide(&acks, 5, true)); /* of the channel before */
  assert_false(amqp_acks_add(&acks, 1, 0));       /* nothing is subscribed to yet */
  assert_true(amqp_acks_widen(&acks, 2));
  assert_true(amqp_acks_add(&acks, 1, 0));
  amqp_acks_free(&acks);
}

/* The host sets aside what it cannot apply for now, without an acknowledgement. The broker used to deliver nothing more
 * as soon as it had set the prefetch count aside, and all other results of the queue waited with them (P7, P8). */
static void what_stays_open_leaves_room_for_others(void **state) {
  enum { PATIENCE = 1000 };
  (void)state;
  struct amqp_acks acks = {0};
  struct amqp_ack_frame frame;
  assert_int_equal(amqp_acks_want(&acks, INT64_MAX, PATIENCE), 0);
  assert_true(amqp_acks_widen(&acks, 2));
  assert_true(amqp_acks_add(&acks, 1, 100));
  assert_int_equal(amqp_acks_want(&acks, INT64_MAX, PATIENCE), 0); /* one may come */
  assert_true(amqp_acks_add(&acks, 2, 200));
  assert_int_equal(amqp_acks_want(&acks, 1099, PATIENCE), 0);
  assert_int_equal(amqp_acks_want(&acks, 1100, PATIENCE), 2);
  assert_true(amqp_acks_widen(&acks, 2));
  assert_int_equal(amqp_acks_want(&acks, 1100, PATIENCE), 0);
  assert_true(amqp_acks_add(&acks, 3, 1200));
  assert_true(amqp_acks_add(&acks, 4, 1200));
  assert_false(amqp_acks_add(&acks, 5, 1200));
  assert_int_equal(amqp_acks_want(&acks, 1200, PATIENCE), 4);
  assert_true(amqp_acks_decide(&acks, 1, true));
  assert_int_equal(amqp_acks_want(&acks, 1200, PATIENCE), 0); /* its acknowledgement is about to be sent */
  assert_true(amqp_acks_next(&acks, &frame));
  assert_int_equal(amqp_acks_want(&acks, 1200, PATIENCE), 3); /* that was of the subscription before */
  assert_true(amqp_acks_decide(&acks, 4, true));
  assert_true(amqp_acks_next(&acks, &frame));
  assert_int_equal(amqp_acks_want(&acks, 1200, PATIENCE), 0); /* and this one of the present one: one may come */
  assert_true(amqp_acks_add(&acks, 5, 1200));
  assert_false(amqp_acks_add(&acks, 6, 1200));
  amqp_acks_free(&acks);
}

static void the_room_for_others_has_an_end(void **state) {
  (void)state;
  struct amqp_acks acks = {0};
  uint64_t tag = 0;
  assert_true(amqp_acks_widen(&acks, 1));
  for (uint32_t more = 1; more > 0; more = amqp_acks_want(&acks, 10, 1)) {
    assert_true(tag == 0 || amqp_acks_widen(&acks, more));
    while (amqp_acks_add(&acks, tag + 1, 0))
      tag++;
  }
  assert_int_equal(tag, AMQP_ACKS_WIDEST);
  amqp_acks_free(&acks);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_order_of_decisions),
      cmocka_unit_test(a_batch_is_one_frame),
      cmocka_unit_test(what_breaks_the_protocol_is_refused),
      cmocka_unit_test(what_stays_open_leaves_room_for_others),
      cmocka_unit_test(the_room_for_others_has_an_end),
  };
  return cmocka_run_group_tests_name("amqp acks", tests, NULL, NULL);
}
