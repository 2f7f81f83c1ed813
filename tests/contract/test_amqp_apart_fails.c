/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_apart_fails.c - the second connection of a sink is refused, ends, freezes or is blocked:
 * what becomes of the messages that are on it or wait for it. Against a broker that a test leads by the hand; needs no
 * server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/contract/amqp_parted.h"

/* --- a second connection that fails --- */

enum { SILENCE_MS = 3000 }; /* connect_timeout where it has to run out, and yet be enough for a slow machine */

/* It is in this mood from the next attempt on. What was never sent is handed back as that, and the others go on. */
static void fails(struct amqp_lab *f, enum amqp_script_mood mood) {
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  unsigned before = amqp_script_connections(f->script);
  for (unsigned i = 1; i <= 100; i++)
    amqp_script_set_mood_of(f->script, before + i, mood);
  amqp_parted_drop(f, p.apart);
  AMQP_PARTED_WAIT(&p, amqp_script_connections(f->script) > before);
  size_t first = amqp_parted_add(&p, f, "bad"), second = amqp_parted_add(&p, f, "bad"),
         good = amqp_parted_add(&p, f, "good");
  struct amqp_script_message m = amqp_parted_next_is(&p, f, good);
  assert_int_equal(m.connection, p.main);
  amqp_lab_confirm(f, m);
  AMQP_PARTED_WAIT(&p, fake_host_outcome(host, good).completed);
  amqp_parted_expect(&p, good, DUEBOX_DELIVERED, "", false);
  amqp_lab_completed(host, fake_host_tasks(host));
  amqp_parted_expect_held_up(&p, first);
  amqp_parted_expect_held_up(&p, second);
  assert_int_equal(fake_host_health(host), 1);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  assert_int_not_equal(amqp_parted_goes_over(&p, f, "bad"), p.main);
  fake_host_free(host);
}

static void one_that_is_refused(void **state) { fails(*state, AMQP_SCRIPT_HANG_UP); }
static void one_that_is_not_let_in(void **state) { fails(*state, AMQP_SCRIPT_NO_LOGIN); }

static void stays_silent(struct amqp_lab *f, enum amqp_script_mood mood) {
  f->options.connect_timeout_ms = SILENCE_MS;
  fails(f, mood);
}

static void one_that_is_not_greeted(void **state) { stays_silent(*state, AMQP_SCRIPT_NO_START); }
static void one_whose_channel_is_not_answered(void **state) { stays_silent(*state, AMQP_SCRIPT_NO_CHANNEL); }

static void one_whose_channel_is_refused(void **state) { fails(*state, AMQP_SCRIPT_REFUSE_CHANNEL); }

/* What had left before may have arrived. */
static void suspects_of_one_that_fails(void **state) {
  static const enum amqp_script_mood moods[] = {AMQP_SCRIPT_HANG_UP, AMQP_SCRIPT_NO_LOGIN, AMQP_SCRIPT_NO_START,
                                                AMQP_SCRIPT_NO_CHANNEL, AMQP_SCRIPT_REFUSE_CHANNEL};
  struct amqp_lab *f = *state;
  f->options.connect_timeout_ms = SILENCE_MS;
  for (size_t i = 0; i < sizeof(moods) / sizeof(moods[0]); i++) {
    struct amqp_parted p = {.host = amqp_lab_open_sink(f)};
    p.seen = amqp_script_published(f->script);
    size_t one = amqp_parted_add(&p, f, "one"), two = amqp_parted_add(&p, f, "two");
    p.main = amqp_parted_next(&p, f).connection;
    assert_int_equal(amqp_parted_next(&p, f).connection, p.main);
    for (unsigned n = 1; n <= 100; n++)
      amqp_script_set_mood_of(f->script, p.main + n, moods[i]);
    amqp_parted_end(f, p.main, AMQP_PARTED_NAMES);
    amqp_lab_completed(p.host, 3);
    amqp_parted_expect(&p, one, DUEBOX_UNKNOWN, "amqp.connection_lost", false);
    amqp_parted_expect(&p, two, DUEBOX_UNKNOWN, "amqp.connection_lost", false);
    assert_int_equal(amqp_script_published(f->script), p.seen);
    amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
    amqp_parted_comes_back(&p, f);
    fake_host_free(p.host);
  }
}

/* The reason is not the message that is on it, so nobody is blamed and nothing waits any longer. */
static void ends(struct amqp_lab *f, void (*how)(struct amqp_lab *f, unsigned connection)) {
  struct amqp_parted p = amqp_parted_open(f);
  size_t out = amqp_parted_add(&p, f, "bad"), fresh = amqp_parted_add(&p, f, "bad");
  struct amqp_script_message m = amqp_parted_next_is(&p, f, out);
  size_t suspect = amqp_parted_suspect(&p, f);
  how(f, m.connection);
  amqp_lab_completed(p.host, fake_host_tasks(p.host));
  amqp_parted_expect(&p, out, DUEBOX_UNKNOWN, "amqp.connection_lost", false);
  amqp_parted_expect(&p, suspect, DUEBOX_UNKNOWN, "amqp.connection_lost", false);
  amqp_parted_expect_held_up(&p, fresh);
  assert_int_equal(amqp_script_published(f->script), p.seen);
  assert_int_equal(fake_host_logged(p.host, "AMQP-CULPRIT"), 1);
  amqp_parted_comes_back(&p, f);
  assert_int_not_equal(amqp_parted_goes_over(&p, f, "bad"), p.main);
  fake_host_free(p.host);
}

static void is_closed(struct amqp_lab *f, unsigned connection) { amqp_parted_end(f, connection, AMQP_PARTED_NO_NAME); }

static void confirms_what_was_never_sent(struct amqp_lab *f, unsigned connection) {
  amqp_parted_ack(f, connection, 1, 4711);
}

static void speaks_on_another_channel(struct amqp_lab *f, unsigned connection) { amqp_parted_ack(f, connection, 2, 1); }

static void one_that_an_operator_closes(void **state) { ends(*state, is_closed); }
static void one_that_is_reset(void **state) { ends(*state, amqp_parted_drop); }
static void one_that_confirms_what_was_never_sent(void **state) { ends(*state, confirms_what_was_never_sent); }
static void one_that_speaks_on_another_channel(void **state) { ends(*state, speaks_on_another_channel); }

/* With nothing on it that could be meant: it is tried again, with growing waits, and nobody waits for that. */
static void one_that_is_ended_again_and_again(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  unsigned before = amqp_script_connections(f->script);
  for (unsigned i = 1; i <= 200; i++)
    amqp_script_set_mood_of(f->script, before + i, AMQP_SCRIPT_REFUSE_CHANNEL);
  amqp_parted_drop(f, p.apart);
  AMQP_PARTED_WAIT(&p, amqp_script_connections(f->script) > before);
  for (int64_t begin = fake_host_now_ms(); fake_host_now_ms() - begin < 2000;)
    fake_host_poll(host, 50);
  assert_in_range(amqp_script_connections(f->script), before + 2, before + 12); /* 0.05 s to 0.1 s, then doubling */
  fake_host_free(host);
}

/* A message that has ended it rests, and the broker ends it again meanwhile. */
static void an_end_with_nothing_on_it_means_nobody(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  size_t bad = amqp_parted_add(&p, f, "bad");
  struct amqp_script_message m = amqp_parted_rest(&p, f, bad);
  amqp_lab_confirm(f, m);
  AMQP_PARTED_WAIT(&p, fake_host_outcome(host, amqp_parted_task(m)).completed);
  amqp_parted_comes_back(&p, f);
  size_t fresh = amqp_parted_add(&p, f, "bad");
  fake_host_offer(host);
  amqp_parted_end(f, m.connection, AMQP_PARTED_NAMES);
  amqp_lab_completed(host, fake_host_tasks(host));
  amqp_parted_expect(&p, bad, DUEBOX_UNKNOWN, "amqp.connection_lost", false);
  amqp_parted_expect_held_up(&p, fresh);
  assert_int_equal(fake_host_logged(host, "AMQP-CULPRIT"), 1);
  fake_host_free(host);
}

/* --- a second connection that freezes --- */

static void one_that_confirms_nothing(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  size_t out = amqp_parted_add(&p, f, "bad"), fresh = amqp_parted_add(&p, f, "bad");
  (void)amqp_parted_next_is(&p, f, out);
  size_t suspect = amqp_parted_suspect(&p, f);
  amqp_parted_jump_s(40);
  amqp_lab_completed(host, fake_host_tasks(host));
  amqp_parted_expect(&p, out, DUEBOX_UNKNOWN, "amqp.confirm_timeout", false);
  amqp_parted_expect_held_up(&p, fresh);
  amqp_parted_expect(&p, suspect, DUEBOX_UNKNOWN, "amqp.channel_closed", true);
  assert_int_equal(amqp_script_published(f->script), p.seen);
  amqp_parted_comes_back(&p, f);
  assert_int_equal(amqp_parted_goes_over(&p, f, "bad"), p.apart);
  fake_host_free(host);
}

/* A message that never was there whole is unsent, and one that was is not. */
static void reads_nothing(struct amqp_lab *f, bool suspect) {
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  size_t large = amqp_parted_add_large(&p, f, suspect ? "good" : "bad");
  if (suspect)
    assert_int_equal(amqp_parted_next_is(&p, f, large).connection, p.main);
  amqp_script_set_mood_of(f->script, p.apart, AMQP_SCRIPT_NO_READ);
  unsigned begun = amqp_script_begun(f->script);
  if (suspect)
    amqp_parted_end(f, p.main, AMQP_PARTED_NAMES);
  AMQP_PARTED_WAIT(&p, amqp_script_begun(f->script) > begun);
  if (suspect)
    amqp_parted_comes_back(&p, f);
  size_t fresh = amqp_parted_add(&p, f, "bad");
  AMQP_PARTED_WAIT(&p, fake_host_accepted(host) == fake_host_tasks(host));
  amqp_parted_jump_s(40);
  amqp_lab_completed(host, fake_host_tasks(host));
  if (suspect)
    amqp_parted_expect(&p, large, DUEBOX_UNKNOWN, "amqp.connection_lost", false);
  else
    amqp_parted_expect_held_up(&p, large);
  amqp_parted_expect_held_up(&p, fresh);
  amqp_script_set_mood(f->script, AMQP_SCRIPT_NORMAL);
  amqp_parted_comes_back(&p, f);
  assert_int_not_equal(amqp_parted_goes_over(&p, f, "bad"), p.main);
  fake_host_free(host);
}

static void one_that_reads_nothing(void **state) { reads_nothing(*state, false); }
static void one_that_reads_nothing_of_a_suspect(void **state) { reads_nothing(*state, true); }

/* --- alarms --- */

/* What may have left waits, and its time stands still; what has not is handed back, and what is handed over later. */
static void one_that_is_blocked(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  size_t out = amqp_parted_add(&p, f, "bad"), fresh = amqp_parted_add(&p, f, "bad");
  struct amqp_script_message m = amqp_parted_next_is(&p, f, out);
  size_t suspect = amqp_parted_suspect(&p, f);
  amqp_parted_comes_back(&p, f);
  amqp_parted_block(f, p.apart, true);
  AMQP_PARTED_WAIT(&p, fake_host_outcome(host, fresh).completed);
  amqp_parted_expect_held_up(&p, fresh);
  assert_non_null(strstr(fake_host_outcome(host, fresh).message, "low on memory"));
  size_t later = amqp_parted_add(&p, f, "bad");
  AMQP_PARTED_WAIT(&p, fake_host_outcome(host, later).completed);
  amqp_parted_expect_held_up(&p, later);
  assert_int_not_equal(amqp_parted_goes_over(&p, f, "good"), p.apart);
  amqp_parted_jump_s(40);
  amqp_parted_sleeps(&p);
  assert_false(fake_host_outcome(host, out).completed || fake_host_outcome(host, suspect).completed);
  amqp_parted_block(f, p.apart, false);
  amqp_parted_settle(&p);
  assert_false(fake_host_outcome(host, out).completed || fake_host_outcome(host, suspect).completed);
  amqp_lab_confirm(f, m);
  m = amqp_parted_next_is(&p, f, suspect);
  amqp_parted_expect(&p, out, DUEBOX_DELIVERED, "", false);
  amqp_lab_confirm(f, m);
  amqp_lab_completed(host, fake_host_tasks(host));
  amqp_parted_expect(&p, suspect, DUEBOX_DELIVERED, "", false);
  fake_host_free(host);
}

/* A rest that ends meanwhile is nothing to wake up for. */
static void the_driver_sleeps_while_it_is_blocked(void **state) {
  struct amqp_lab *f = *state;
  struct amqp_parted p = amqp_parted_open(f);
  struct fake_host *host = p.host;
  size_t bad = amqp_parted_add(&p, f, "bad");
  struct amqp_script_message m = amqp_parted_rest(&p, f, bad);
  amqp_parted_block(f, m.connection, true);
  amqp_lab_confirm(f, m);
  AMQP_PARTED_WAIT(&p, fake_host_outcome(host, amqp_parted_task(m)).completed);
  amqp_parted_jump_s(60);
  amqp_parted_comes_back(&p, f);
  amqp_parted_sleeps(&p);
  assert_int_equal(amqp_script_published(f->script), p.seen);
  amqp_parted_block(f, m.connection, false);
  amqp_lab_confirm(f, amqp_parted_next_is(&p, f, bad));
  amqp_lab_completed(host, fake_host_tasks(host));
  amqp_parted_expect(&p, bad, DUEBOX_DELIVERED, "", false);
  fake_host_free(host);
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, amqp_parted_set_up, amqp_lab_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(one_that_is_refused),
      ROW(one_that_is_not_let_in),
      ROW(one_that_is_not_greeted),
      ROW(one_whose_channel_is_not_answered),
      ROW(one_whose_channel_is_refused),
      ROW(suspects_of_one_that_fails),
      ROW(one_that_an_operator_closes),
      ROW(one_that_is_reset),
      ROW(one_that_confirms_what_was_never_sent),
      ROW(one_that_speaks_on_another_channel),
      ROW(one_that_is_ended_again_and_again),
      ROW(an_end_with_nothing_on_it_means_nobody),
      ROW(one_that_confirms_nothing),
      ROW(one_that_reads_nothing),
      ROW(one_that_reads_nothing_of_a_suspect),
      ROW(one_that_is_blocked),
      ROW(the_driver_sleeps_while_it_is_blocked),
  };
  cmocka_set_test_filter(getenv("DUEBOX_TEST_ONLY"));
  return cmocka_run_group_tests_name("amqp apart fails", tests, NULL, NULL);
}
