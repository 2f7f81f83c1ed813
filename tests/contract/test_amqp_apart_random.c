/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_apart_random.c - a sink whose broker does anything at any time: ends connections over a
 * message or for no reason, breaks channels, returns messages, has alarms, lets nobody in; and whose host recalls and
 * stops. Whatever comes, each task has one outcome, the outcome is true, and no copy is sent without a reason.
 *
 * A run follows from its seed as far as threads allow. DUEBOX_TEST_SEED=<n> begins with that one, DUEBOX_TEST_RUNS says
 * how many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/contract/amqp_parted.h"

enum { TASKS = 200, CONNECTIONS = 4096, CHANNELS = 16, PENDING = 1024 };

enum kind { GOOD = 0, POISON, RETURNED };

/* What the broker knows of a task. */
struct known {
  enum kind kind;
  bool confirmed;
  unsigned copies;
  struct amqp_script_message last;
};

/* What it has done to a connection. */
struct done {
  bool over;             /* a message is the reason */
  bool ended;            /* whatever the reason is */
  bool broke[CHANNELS];  /* ever */
  bool closed[CHANNELS]; /* and the plugin has not opened it again */
};

struct run {
  struct amqp_lab *f;
  struct amqp_parted p;
  uint32_t random;
  struct known tasks[TASKS];
  struct done connections[CONNECTIONS];
  struct amqp_script_message pending[PENDING];
  size_t pending_count;
  unsigned blocked; /* the number of a connection; 0 = none */
  bool gentle;      /* connections end over messages only: no other one has a failure counted */
};

static uint32_t roll(struct run *r, uint32_t sides) {
  r->random ^= r->random << 13;
  r->random ^= r->random >> 17;
  r->random ^= r->random << 5;
  return r->random % sides;
}

static struct done *of(struct run *r, unsigned connection) {
  assert_true(connection < CONNECTIONS);
  return &r->connections[connection];
}

/* The broker has forgotten what it does not confirm; no confirm comes for what the plugin has given up. */
static void forget(struct run *r, unsigned connection, uint16_t channel) {
  size_t kept = 0;
  for (size_t i = 0; i < r->pending_count; i++) {
    struct amqp_script_message m = r->pending[i];
    if ((connection && m.connection != connection) || (channel && m.channel != channel))
      r->pending[kept++] = m;
  }
  r->pending_count = kept;
}

static void end(struct run *r, unsigned connection, uint16_t code) {
  of(r, connection)->ended = true;
  of(r, connection)->over |= code == AMQP_PARTED_NAMES;
  forget(r, connection, 0);
  amqp_parted_end(r->f, connection, code);
}

/* Another copy of a task is sent because of what happened to the connection or channel of the one before. */
static void check_reason(struct run *r, const struct known *task, struct amqp_script_message m) {
  const struct done *before = of(r, task->last.connection);
  if (!before->over && !before->broke[task->last.channel])
    fail_msg("%s came on channel %u of connection %u and again on channel %u of connection %u: nothing was wrong", m.id,
             task->last.channel, task->last.connection, m.channel, m.connection);
}

static struct known *count(struct run *r, struct amqp_script_message m) {
  struct known *task = &r->tasks[amqp_parted_task(m)];
  if (task->copies++ > 0)
    check_reason(r, task, m);
  task->last = m;
  return task;
}

static void take(struct run *r, struct amqp_script_message m) {
  const struct known *task = count(r, m);
  struct done *on = of(r, m.connection);
  on->closed[m.channel] &= m.tag != 1;
  if (on->ended || on->closed[m.channel])
    return;
  if (task->kind == POISON) {
    end(r, m.connection, AMQP_PARTED_NAMES);
  } else if (task->kind == RETURNED) {
    amqp_parted_return(r->f, m);
  } else if (r->pending_count < PENDING) {
    r->pending[r->pending_count++] = m;
  }
}

static void read_all(struct run *r) {
  while (r->p.seen < amqp_script_published(r->f->script))
    take(r, amqp_script_message(r->f->script, r->p.seen++));
}

static void confirm(struct run *r, size_t most) {
  for (; most > 0 && r->pending_count > 0; most--) {
    size_t i = roll(r, (uint32_t)r->pending_count);
    struct amqp_script_message m = r->pending[i];
    r->pending[i] = r->pending[--r->pending_count];
    r->tasks[amqp_parted_task(m)].confirmed = true;
    amqp_lab_confirm(r->f, m);
  }
}

static void add(struct run *r) {
  static const char *const routes[] = {"one", "two", "three", "four", "mixed", "bad"};
  uint32_t route = roll(r, 6), fate = roll(r, 100);
  if (fake_host_tasks(r->p.host) == TASKS)
    return;
  size_t task = amqp_parted_add(&r->p, r->f, routes[route]);
  if (route >= 4 && fate < (route == 5 ? 50 : 8))
    r->tasks[task].kind = POISON;
  else if (fate >= 92)
    r->tasks[task].kind = RETURNED;
}

static void unblock(struct run *r) {
  if (r->blocked)
    amqp_parted_block(r->f, r->blocked, false);
  r->blocked = 0;
}

/* Who gives a channel up hears no more of what was on it: what was on its way to the broker comes in first. */
static void jump(struct run *r) {
  amqp_parted_jump_s(20 + roll(r, 30));
  for (int i = 0; i < 20; i++) {
    fake_host_poll(r->p.host, 5);
    read_all(r);
  }
  forget(r, 0, 0);
}

/* To a connection on which something has come, and seldom to the main one, which takes longer to come back each time.
 */
static void do_harm(struct run *r) {
  struct amqp_script_message m = amqp_script_message(r->f->script, r->p.seen - 1 - roll(r, r->p.seen < 5 ? 1 : 5));
  if (of(r, m.connection)->ended || (m.channel > 1 && roll(r, 3)))
    return;
  switch (roll(r, 6)) {
  case 0:
    of(r, m.connection)->ended = true;
    forget(r, m.connection, 0);
    amqp_parted_drop(r->f, m.connection);
    break;
  case 1:
    end(r, m.connection, AMQP_PARTED_NO_NAME);
    break;
  case 2:
    unblock(r);
    amqp_parted_block(r->f, r->blocked = m.connection, true);
    break;
  case 3:
    forget(r, m.connection, m.channel);
    of(r, m.connection)->broke[m.channel] = of(r, m.connection)->closed[m.channel] = true;
    amqp_parted_refuse(r->f, m, 404);
    break;
  case 4:
    amqp_script_set_mood(r->f->script, AMQP_SCRIPT_HANG_UP + roll(r, 2) * (AMQP_SCRIPT_NO_LOGIN - AMQP_SCRIPT_HANG_UP));
    break;
  default:
    jump(r);
    break;
  }
}

static void step(struct run *r) {
  for (uint32_t n = roll(r, 8); n > 0 && (fake_host_health(r->p.host) == 1 || roll(r, 20) == 0); n--)
    add(r);
  fake_host_offer(r->p.host);
  if (roll(r, 60) == 0)
    fake_host_recall(r->p.host);
  fake_host_poll(r->p.host, 1 + (int)roll(r, 8));
  read_all(r);
  if (roll(r, 3))
    confirm(r, roll(r, 8));
  if (!r->gentle && roll(r, 12) == 0)
    do_harm(r);
  if (roll(r, 10) == 0)
    amqp_script_set_mood(r->f->script, AMQP_SCRIPT_NORMAL);
  if (roll(r, 20) == 0)
    unblock(r);
}

/* The broker is well again, but for what its messages do to it. */
static void end_well(struct run *r) {
  amqp_script_set_mood(r->f->script, AMQP_SCRIPT_NORMAL);
  unblock(r);
  int64_t limit = fake_host_now_ms() + 2 * AMQP_LAB_LIMIT_MS;
  for (int i = 1; fake_host_completed(r->p.host) < fake_host_tasks(r->p.host); i++) {
    if (fake_host_now_ms() >= limit)
      fail_msg("%zu of %zu tasks were completed", fake_host_completed(r->p.host), fake_host_tasks(r->p.host));
    fake_host_offer(r->p.host);
    fake_host_poll(r->p.host, 5);
    read_all(r);
    confirm(r, PENDING);
    amqp_parted_jump_s(i % 10 == 0); /* for what is not confirmed any more */
  }
}

static bool is(const struct fake_outcome *outcome, const char *error_class) {
  return strcmp(outcome->error_class, error_class) == 0;
}

static void check(struct run *r, size_t task) {
  struct fake_outcome o = fake_host_outcome(r->p.host, task);
  const struct known *known = &r->tasks[task];
  bool refused = is(&o, "amqp.no_route") || is(&o, "amqp.not_found"), wrong = false;
  if (!o.accepted)
    return;
  if (o.cls == DUEBOX_DELIVERED)
    wrong = !known->confirmed;
  else if (o.cls == DUEBOX_UNKNOWN)
    wrong = r->gentle && known->kind != POISON && !o.blameless;
  else if (o.cls == DUEBOX_UNAVAILABLE)
    wrong = known->copies > (refused ? 1 : 0);
  else if (o.cls == DUEBOX_REJECTED)
    wrong = known->kind != POISON || known->copies < 2;
  else
    wrong = true;
  if (wrong)
    fail_msg("task %zu of kind %d, %u copies, %sconfirmed: class %d %s \"%s\"", task, (int)known->kind, known->copies,
             known->confirmed ? "" : "not ", (int)o.cls, o.error_class, o.message);
}

static void run(struct amqp_lab *f, uint32_t seed) {
  struct run *r = calloc(1, sizeof(*r));
  assert_non_null(r);
  *r = (struct run){.f = f, .random = seed * 2654435761u | 1, .gentle = seed % 3 == 1};
  r->p = (struct amqp_parted){.host = amqp_lab_open_sink(f), .seen = amqp_script_published(f->script)};
  r->tasks[0].confirmed = true;
  r->tasks[0].copies = 1;
  while (fake_host_tasks(r->p.host) < TASKS)
    step(r);
  if (seed % 3 > 0)
    end_well(r);
  fake_host_stop(r->p.host, 300);
  for (int64_t limit = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; amqp_script_open(f->script) > 0;) {
    assert_true(fake_host_now_ms() < limit);
    usleep(1000); /* the broker reads to the end */
  }
  while (r->p.seen < amqp_script_published(f->script))
    count(r, amqp_script_message(f->script, r->p.seen++));
  for (size_t i = 0; i < TASKS; i++)
    check(r, i);
  fake_host_free(r->p.host);
  free(r);
}

static uint32_t number(const char *name, uint32_t otherwise) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static void anything_at_any_time(void **state) {
  uint32_t first = number("DUEBOX_TEST_SEED", 1), runs = number("DUEBOX_TEST_RUNS", 12);
  for (uint32_t seed = first; seed < first + runs; seed++) {
    print_message("seed %u\n", seed);
    assert_int_equal(amqp_parted_set_up(state), 0);
    run(*state, seed);
    assert_int_equal(amqp_lab_tear_down(state), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(anything_at_any_time)};
  return cmocka_run_group_tests_name("amqp apart random", tests, NULL, NULL);
}
