/* SPDX-License-Identifier: MIT */
#include "tests/contract/amqp_parted.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

static _Atomic int64_t ahead_us;

int64_t __real_amqp_now_us(void);
int64_t __wrap_amqp_now_us(void);
int64_t __wrap_amqp_now_us(void) { return __real_amqp_now_us() + atomic_load(&ahead_us); }

void amqp_parted_jump_s(int64_t seconds) { atomic_fetch_add(&ahead_us, seconds * 1000000); }

int amqp_parted_set_up(void **state) {
  atomic_store(&ahead_us, 0);
  return amqp_lab_set_up(state);
}

/* --- tasks --- */

size_t amqp_parted_add(struct amqp_parted *p, struct amqp_lab *f, const char *route) {
  return fake_host_add(p->host, &(struct fake_task){.route = route, .route_data = &f->route, .payload = {"{}", 2}});
}

size_t amqp_parted_add_large(struct amqp_parted *p, struct amqp_lab *f, const char *route) {
  static const char zeros[AMQP_PARTED_LARGE];
  return fake_host_add(
      p->host, &(struct fake_task){.route = route, .route_data = &f->route, .payload = {zeros, AMQP_PARTED_LARGE}});
}

size_t amqp_parted_task(struct amqp_script_message m) { return strtoul(strrchr(m.id, '-') + 1, NULL, 10); }

struct amqp_script_message amqp_parted_next(struct amqp_parted *p, struct amqp_lab *f) {
  amqp_lab_published(p->host, f, p->seen + 1);
  return amqp_script_message(f->script, p->seen++);
}

struct amqp_script_message amqp_parted_next_is(struct amqp_parted *p, struct amqp_lab *f, size_t task) {
  struct amqp_script_message m = amqp_parted_next(p, f);
  assert_int_equal(amqp_parted_task(m), task);
  return m;
}

/* Adds tasks of the route until one comes to the broker: while no connection is there they are handed back. */
static struct amqp_script_message passes(struct amqp_parted *p, struct amqp_lab *f, const char *route) {
  for (;;) {
    size_t task = amqp_parted_add(p, f, route);
    AMQP_PARTED_WAIT(p, fake_host_outcome(p->host, task).completed || amqp_script_published(f->script) > p->seen);
    if (amqp_script_published(f->script) > p->seen)
      return amqp_parted_next_is(p, f, task);
    assert_int_equal(fake_host_outcome(p->host, task).cls, DUEBOX_UNAVAILABLE);
  }
}

unsigned amqp_parted_goes_over(struct amqp_parted *p, struct amqp_lab *f, const char *route) {
  struct amqp_script_message m = passes(p, f, route);
  size_t task = amqp_parted_task(m);
  amqp_lab_confirm(f, m);
  AMQP_PARTED_WAIT(p, fake_host_outcome(p->host, task).completed);
  amqp_parted_expect(p, task, DUEBOX_DELIVERED, "", false);
  return m.connection;
}

void amqp_parted_comes_back(struct amqp_parted *p, struct amqp_lab *f) {
  p->main = amqp_parted_goes_over(p, f, "home");
}

struct amqp_parted amqp_parted_open(struct amqp_lab *f) {
  struct amqp_parted p = {.host = amqp_lab_open_sink(f), .seen = 1};
  size_t bad = amqp_parted_add(&p, f, "bad");
  for (int i = 0; i < 3; i++) /* on the main connection, and twice on the other one */
    amqp_parted_end(f, amqp_parted_next_is(&p, f, bad).connection, AMQP_PARTED_NAMES);
  amqp_lab_completed(p.host, 2);
  amqp_parted_expect(&p, bad, DUEBOX_REJECTED, "amqp.connection_closed", false);
  amqp_parted_comes_back(&p, f);
  p.apart = amqp_parted_goes_over(&p, f, "bad");
  assert_int_not_equal(p.apart, p.main);
  return p;
}

size_t amqp_parted_suspect(struct amqp_parted *p, struct amqp_lab *f) {
  size_t logged = fake_host_logged(p->host, "AMQP-APART"), task = amqp_parted_add(p, f, "good");
  assert_int_equal(amqp_parted_next_is(p, f, task).connection, p->main);
  amqp_parted_end(f, p->main, AMQP_PARTED_NAMES);
  AMQP_PARTED_WAIT(p, fake_host_logged(p->host, "AMQP-APART") > logged);
  return task;
}

struct amqp_script_message amqp_parted_rest(struct amqp_parted *p, struct amqp_lab *f, size_t bad) {
  unsigned before = amqp_script_connections(f->script);
  amqp_parted_end(f, amqp_parted_next_is(p, f, bad).connection, AMQP_PARTED_NAMES);
  AMQP_PARTED_WAIT(p, amqp_script_connections(f->script) > before); /* it has been noticed, and no channel is open */
  amqp_parted_jump_s(-60);
  return amqp_parted_next_is(p, f, amqp_parted_suspect(p, f));
}

/* --- what the broker says --- */

#define ON(f, connection, statement)                                                                                   \
  do {                                                                                                                 \
    amqp_script_turn_to((f)->script, connection);                                                                      \
    statement;                                                                                                         \
    amqp_script_turn_to((f)->script, 0);                                                                               \
  } while (0)

void amqp_parted_end(struct amqp_lab *f, unsigned connection, uint16_t code) {
  amqp_connection_close_t close = {.reply_code = code, .reply_text = amqp_cstring_bytes("ENDED")};
  ON(f, connection, amqp_script_method(f->script, 0, AMQP_CONNECTION_CLOSE_METHOD, &close));
}

void amqp_parted_block(struct amqp_lab *f, unsigned connection, bool blocked) {
  amqp_connection_blocked_t begins = {.reason = amqp_cstring_bytes("low on memory")};
  amqp_connection_unblocked_t ends = {0};
  if (blocked)
    ON(f, connection, amqp_script_method(f->script, 0, AMQP_CONNECTION_BLOCKED_METHOD, &begins));
  else
    ON(f, connection, amqp_script_method(f->script, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &ends));
}

void amqp_parted_return(struct amqp_lab *f, struct amqp_script_message m) {
  ON(f, m.connection, amqp_script_return(f->script, m.channel, m.id));
  amqp_lab_confirm(f, m);
}

void amqp_parted_refuse(struct amqp_lab *f, struct amqp_script_message m, uint16_t code) {
  ON(f, m.connection, amqp_script_close_channel(f->script, m.channel, code, "REFUSED"));
}

void amqp_parted_ack(struct amqp_lab *f, unsigned connection, uint16_t channel, uint64_t tag) {
  ON(f, connection, amqp_script_ack(f->script, channel, tag, false));
}

void amqp_parted_drop(struct amqp_lab *f, unsigned connection) { ON(f, connection, amqp_script_drop(f->script)); }

/* --- what is expected --- */

void amqp_parted_expect(struct amqp_parted *p, size_t task, enum duebox_outcome_class cls, const char *error_class,
                        bool blameless) {
  struct fake_outcome outcome = fake_host_outcome(p->host, task);
  amqp_lab_expect(p->host, task, cls, error_class);
  assert_int_equal(outcome.blameless, blameless);
  assert_int_equal(outcome.recalled, cls == DUEBOX_UNAVAILABLE && strcmp(error_class, "amqp.recalled") == 0);
}

void amqp_parted_expect_held_up(struct amqp_parted *p, size_t task) {
  amqp_parted_expect(p, task, DUEBOX_UNAVAILABLE, "amqp.apart", false);
  assert_int_equal(fake_host_outcome(p->host, task).scope, DUEBOX_SCOPE_ROUTE);
}

void amqp_parted_settle(struct amqp_parted *p) {
  for (int i = 0; i < 30; i++)
    fake_host_poll(p->host, 10);
}

void amqp_parted_sleeps(struct amqp_parted *p) {
  int64_t begin = fake_host_now_ms();
  for (int i = 0; i < 10; i++)
    fake_host_poll(p->host, 100);
  assert_true(fake_host_now_ms() - begin > 500);
}
