/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_apart.c - the broker ends the connection over a message, and messages go one by one over a
 * second one: who is blamed, what a recall and a stop make of them, and when that connection comes and goes. Against a
 * broker that a test leads by the hand; needs no server.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/contract/amqp_parted.h"

enum { MAIN = 1 }; /* the number of the first connection */

/* --- who is to blame --- */

/* Each goes once more, alone; one ends that connection twice. From then on its route has that connection, and the
 * others have theirs. */
static void the_culprit_is_found_and_the_others_are_delivered(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = {.host = amqp_lab_open_sink(f), .seen = 1};
  static const char *const routes[] = {"one", "two", "bad", "one", "three"};
  unsigned copies[6] = {0}, ends = 0;
  for (size_t i = 0; i < 5; i++)
    amqp_parted_add(&p, f, routes[i]);
  for (; p.seen < 6; copies[amqp_parted_task(amqp_script_message(f->script, p.seen - 1))]++)
    assert_int_equal(amqp_parted_next(&p, f).connection, MAIN);
  amqp_parted_end(f, MAIN, AMQP_PARTED_NAMES);
  while (fake_host_completed(p.host) < 6) {
    struct amqp_script_message m = amqp_parted_next(&p, f);
    assert_int_not_equal(m.connection, MAIN);
    copies[amqp_parted_task(m)]++;
    amqp_parted_settle(&p);
    assert_int_equal(amqp_script_published(f->script), p.seen); /* no other one beside it */
    size_t before = fake_host_completed(p.host);
    if (amqp_parted_task(m) != 3)
      amqp_lab_confirm(f, m);
    else
      amqp_parted_end(f, m.connection, AMQP_PARTED_NAMES), ends++;
    if (amqp_parted_task(m) != 3 || ends == 2)
      amqp_lab_completed(p.host, before + 1);
  }
  assert_int_equal(ends, 2);
  for (size_t i = 1; i < 6; i++) {
    amqp_parted_expect(&p, i, i == 3 ? DUEBOX_REJECTED : DUEBOX_DELIVERED, i == 3 ? "amqp.connection_closed" : "",
                       false);
    assert_int_equal(copies[i], i == 3 ? 3 : 2);
  }
  assert_int_equal(fake_host_logged(p.host, "AMQP-CULPRIT"), 1);
  amqp_parted_comes_back(&p, f);
  p.apart = amqp_parted_goes_over(&p, f, "bad");
  assert_int_not_equal(p.apart, p.main);
  assert_int_equal(amqp_parted_goes_over(&p, f, "one"), p.main);
  assert_int_equal(amqp_parted_goes_over(&p, f, "bad"), p.apart);
  fake_host_free(p.host);
}

/* It may have arrived before what it needs went away: it is not called unsent, however the second copy fails. */
static void a_suspect_that_comes_back_may_have_arrived(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  size_t returned = amqp_parted_suspect(&p, f);
  struct amqp_script_message m = amqp_parted_next_is(&p, f, returned);
  amqp_parted_return(f, m);
  amqp_lab_completed(p.host, fake_host_tasks(p.host));
  amqp_parted_expect(&p, returned, DUEBOX_UNKNOWN, "amqp.channel_closed", true);
  amqp_parted_comes_back(&p, f);
  size_t refused = amqp_parted_suspect(&p, f);
  m = amqp_parted_next_is(&p, f, refused);
  amqp_parted_refuse(f, m, 404);
  amqp_lab_completed(p.host, fake_host_tasks(p.host));
  amqp_parted_expect(&p, refused, DUEBOX_UNKNOWN, "amqp.channel_closed", true);
  assert_int_equal(amqp_parted_goes_over(&p, f, "bad"), p.apart); /* the channel is open again */
  fake_host_free(p.host);
}

/* What was open when a channel broke had left as well, and waits to go alone as the connection ends. */
static void suspects_of_a_channel_go_on_apart(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = {.host = amqp_lab_open_sink(f), .seen = 4};
  amqp_lab_add(p.host, f, 3);
  amqp_lab_published(p.host, f, 4);
  amqp_script_close_channel(f->script, AMQP_LAB_FLOW, 406, "PRECONDITION_FAILED");
  assert_int_equal(amqp_parted_next(&p, f).connection, MAIN); /* one of the route at a time: two wait */
  amqp_parted_end(f, MAIN, AMQP_PARTED_NAMES);
  for (size_t i = 0; i < 3; i++) {
    struct amqp_script_message m = amqp_parted_next(&p, f);
    assert_int_not_equal(m.connection, MAIN);
    amqp_lab_confirm(f, m);
    amqp_lab_completed(p.host, 2 + i);
  }
  amqp_lab_expect_all(p.host, 1, 4, DUEBOX_DELIVERED, "");
  fake_host_free(p.host);
}

/* It says why and hangs up. That is read, and what it has confirmed before, though the next message finds that nothing
 * can be written any more. */
static void the_last_words_of_the_broker_count(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = {.host = amqp_lab_open_sink(f), .seen = 1};
  amqp_lab_add(p.host, f, 2);
  struct amqp_script_message first = amqp_parted_next_is(&p, f, 1);
  (void)amqp_parted_next_is(&p, f, 2);
  amqp_lab_confirm(f, first);
  amqp_parted_end(f, MAIN, AMQP_PARTED_NAMES);
  amqp_parted_drop(f, MAIN);
  for (int64_t limit = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; amqp_script_open(f->script) > 0; usleep(1000))
    assert_true(fake_host_now_ms() < limit);
  for (int i = 0; i < 3; i++) { /* the first of these is answered with a reset */
    amqp_lab_add(p.host, f, 1);
    fake_host_offer(p.host);
  }
  struct amqp_script_message m = amqp_parted_next_is(&p, f, 2);
  amqp_parted_expect(&p, 1, DUEBOX_DELIVERED, "", false);
  assert_int_not_equal(m.connection, MAIN);
  amqp_lab_confirm(f, m);
  AMQP_PARTED_WAIT(&p, fake_host_outcome(p.host, 2).completed);
  amqp_parted_expect(&p, 2, DUEBOX_DELIVERED, "", false);
  fake_host_free(p.host);
}

/* --- recall --- */

static void what_waits_is_handed_back(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  size_t out = amqp_parted_add(&p, f, "bad"), fresh = amqp_parted_add(&p, f, "bad");
  struct amqp_script_message m = amqp_parted_next_is(&p, f, out);
  size_t suspect = amqp_parted_suspect(&p, f);
  assert_true(fake_host_recall(p.host));
  amqp_parted_settle(&p);
  amqp_parted_expect(&p, fresh, DUEBOX_UNAVAILABLE, "amqp.recalled", false);
  amqp_parted_expect(&p, suspect, DUEBOX_UNKNOWN, "amqp.recalled", true);
  assert_false(fake_host_outcome(p.host, out).completed); /* it is awaited */
  assert_int_equal(amqp_script_published(f->script), p.seen);
  amqp_lab_confirm(f, m);
  amqp_lab_completed(p.host, fake_host_tasks(p.host));
  amqp_parted_expect(&p, out, DUEBOX_DELIVERED, "", false);
  assert_int_equal(amqp_parted_goes_over(&p, f, "bad"), p.apart); /* what is handed over later is not meant */
  fake_host_free(p.host);
}

/* It may be the one, and is not sent once more to find out. Its route has the connection apart all the same. */
static void a_recalled_one_that_ends_the_connection_is_not_sent_again(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  size_t suspect = amqp_parted_suspect(&p, f);
  struct amqp_script_message m = amqp_parted_next_is(&p, f, suspect);
  assert_true(fake_host_recall(p.host));
  amqp_parted_end(f, m.connection, AMQP_PARTED_NAMES);
  amqp_lab_completed(p.host, fake_host_tasks(p.host));
  amqp_parted_expect(&p, suspect, DUEBOX_UNKNOWN, "amqp.connection_lost", false);
  amqp_parted_settle(&p);
  assert_int_equal(amqp_script_published(f->script), p.seen);
  amqp_parted_comes_back(&p, f);
  assert_int_not_equal(amqp_parted_goes_over(&p, f, "good"), p.main);
  fake_host_free(p.host);
}

static void a_recalled_one_that_ends_it_again_is_the_culprit(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  size_t bad = amqp_parted_add(&p, f, "bad");
  amqp_parted_end(f, amqp_parted_next_is(&p, f, bad).connection, AMQP_PARTED_NAMES);
  struct amqp_script_message m = amqp_parted_next_is(&p, f, bad);
  assert_true(fake_host_recall(p.host));
  amqp_parted_end(f, m.connection, AMQP_PARTED_NAMES);
  amqp_lab_completed(p.host, fake_host_tasks(p.host));
  amqp_parted_expect(&p, bad, DUEBOX_REJECTED, "amqp.connection_closed", false);
  fake_host_free(p.host);
}

/* Of two on the main connection that were taken back and one that was handed over later, only the last goes again; the
 * others are nobody's fault. */
static void what_was_recalled_before_the_end_is_not_sent_again(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = {.host = amqp_lab_open_sink(f), .seen = 1};
  amqp_lab_add(p.host, f, 2);
  for (size_t i = 1; i < 3; i++)
    (void)amqp_parted_next_is(&p, f, i);
  assert_true(fake_host_recall(p.host));
  amqp_lab_add(p.host, f, 1);
  (void)amqp_parted_next_is(&p, f, 3);
  amqp_parted_end(f, MAIN, AMQP_PARTED_NAMES);
  struct amqp_script_message m = amqp_parted_next_is(&p, f, 3);
  assert_int_not_equal(m.connection, MAIN);
  amqp_lab_confirm(f, m);
  amqp_lab_completed(p.host, 4);
  amqp_parted_expect(&p, 1, DUEBOX_UNKNOWN, "amqp.recalled", true);
  amqp_parted_expect(&p, 2, DUEBOX_UNKNOWN, "amqp.recalled", true);
  amqp_parted_expect(&p, 3, DUEBOX_DELIVERED, "", false);
  amqp_parted_settle(&p);
  assert_int_equal(amqp_script_published(f->script), p.seen);
  fake_host_free(p.host);
}

/* --- stop --- */

static void stop_tells_what_has_left_from_what_has_not(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  size_t out = amqp_parted_add(&p, f, "bad"), fresh = amqp_parted_add(&p, f, "bad");
  (void)amqp_parted_next_is(&p, f, out);
  size_t suspect = amqp_parted_suspect(&p, f);
  unsigned goodbyes = amqp_script_goodbyes(f->script);
  int64_t took = fake_host_stop(p.host, 300);
  if (took > 1300)
    fail_msg("stop(300 ms) took %lld ms", (long long)took);
  amqp_parted_expect(&p, out, DUEBOX_UNKNOWN, "amqp.stopped", false);
  amqp_parted_expect(&p, fresh, DUEBOX_UNAVAILABLE, "amqp.not_sent", false);
  amqp_parted_expect(&p, suspect, DUEBOX_UNKNOWN, "amqp.stopped", false);
  assert_true(amqp_script_goodbyes(f->script) > goodbyes);
  fake_host_free(p.host);
}

static void a_message_half_written_at_the_stop_was_not_sent(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  unsigned begun = amqp_script_begun(f->script);
  amqp_script_set_mood_of(f->script, p.apart, AMQP_SCRIPT_NO_READ);
  size_t large = amqp_parted_add_large(&p, f, "bad");
  AMQP_PARTED_WAIT(&p, amqp_script_begun(f->script) > begun);
  int64_t took = fake_host_stop(host, 300);
  if (took > 1300)
    fail_msg("stop(300 ms) took %lld ms", (long long)took);
  amqp_parted_expect(&p, large, DUEBOX_UNAVAILABLE, "amqp.not_sent", false);
  fake_host_free(host);
}

struct confirming {
  struct amqp_lab *f;
  struct amqp_script_message m;
};

/* A thread of the broker's, while the plugin is in stop(). */
static void *confirm_later(void *arg) {
  struct confirming *what = arg;
  usleep(200000);
  amqp_lab_confirm(what->f, what->m);
  return NULL;
}

/* The main connection is away; what is under way on the other one has the time that stop() gives all the same. */
static void stop_waits_for_a_confirm(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  pthread_t thread;
  for (unsigned i = 1; i <= 20; i++)
    amqp_script_set_mood_of(f->script, amqp_script_connections(f->script) + i, AMQP_SCRIPT_HANG_UP);
  size_t suspect = amqp_parted_suspect(&p, f);
  struct confirming what = {.f = f, .m = amqp_parted_next_is(&p, f, suspect)};
  fake_host_close(p.host);
  assert_int_equal(pthread_create(&thread, NULL, confirm_later, &what), 0);
  fake_host_stop(p.host, 10000);
  pthread_join(thread, NULL);
  amqp_parted_expect(&p, suspect, DUEBOX_DELIVERED, "", false);
  fake_host_free(p.host);
}

/* --- coming and going --- */

/* The host wakes it up for each task. */
static void the_driver_sleeps_after_a_wakeup(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = {.host = amqp_lab_open_sink(f)};
  fake_host_wakeup(p.host);
  amqp_parted_sleeps(&p);
  fake_host_free(p.host);
}

static void it_goes_when_nobody_was_to_blame(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = {.host = amqp_lab_open_sink(f), .seen = 1};
  struct fake_host *host = p.host;
  for (int i = 0; i < 3; i++) { /* and comes again each time */
    p.main = amqp_parted_goes_over(&p, f, "good");
    size_t suspect = amqp_parted_suspect(&p, f);
    struct amqp_script_message m = amqp_parted_next_is(&p, f, suspect);
    assert_int_not_equal(m.connection, p.main);
    amqp_parted_comes_back(&p, f);
    assert_int_equal(amqp_script_open(f->script), 2);
    amqp_lab_confirm(f, m);
    amqp_lab_completed(host, fake_host_tasks(host));
    amqp_parted_expect(&p, suspect, DUEBOX_DELIVERED, "", false);
    AMQP_PARTED_WAIT(&p, amqp_script_open(f->script) == 1);
    assert_int_equal(amqp_parted_goes_over(&p, f, "good"), p.main);
  }
  assert_int_equal(amqp_script_goodbyes(f->script), 3);
  fake_host_free(host);
}

static void it_goes_ten_minutes_after_the_last_end(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  amqp_parted_jump_s(500);
  assert_int_equal(amqp_parted_goes_over(&p, f, "bad"), p.apart);
  amqp_parted_settle(&p);
  assert_int_equal(amqp_script_open(f->script), 2);
  amqp_parted_jump_s(110);
  AMQP_PARTED_WAIT(&p, amqp_script_open(f->script) == 1);
  assert_int_equal(amqp_script_goodbyes(f->script), 1);
  assert_int_equal(amqp_parted_goes_over(&p, f, "bad"), p.main);
  size_t bad = amqp_parted_add(&p, f, "bad"); /* and it comes again */
  for (int i = 0; i < 3; i++)
    amqp_parted_end(f, amqp_parted_next_is(&p, f, bad).connection, AMQP_PARTED_NAMES);
  amqp_lab_completed(host, fake_host_tasks(host));
  amqp_parted_expect(&p, bad, DUEBOX_REJECTED, "amqp.connection_closed", false);
  amqp_parted_comes_back(&p, f);
  assert_int_not_equal(amqp_parted_goes_over(&p, f, "bad"), p.main);
  fake_host_free(host);
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_parted_set_up, amqp_lab_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(the_culprit_is_found_and_the_others_are_delivered),
      ROW(a_suspect_that_comes_back_may_have_arrived),
      ROW(suspects_of_a_channel_go_on_apart),
      ROW(the_last_words_of_the_broker_count),
      ROW(what_waits_is_handed_back),
      ROW(a_recalled_one_that_ends_the_connection_is_not_sent_again),
      ROW(a_recalled_one_that_ends_it_again_is_the_culprit),
      ROW(what_was_recalled_before_the_end_is_not_sent_again),
      ROW(stop_tells_what_has_left_from_what_has_not),
      ROW(a_message_half_written_at_the_stop_was_not_sent),
      ROW(stop_waits_for_a_confirm),
      ROW(the_driver_sleeps_after_a_wakeup),
      ROW(it_goes_when_nobody_was_to_blame),
      ROW(it_goes_ten_minutes_after_the_last_end),
  };
  cmocka_set_test_filter(getenv("DUEBOX_TEST_ONLY"));
  return cmocka_run_group_tests_name("amqp apart", tests, NULL, NULL);
}
