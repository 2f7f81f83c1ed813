/* SPDX-License-Identifier: MIT
 *
 * tests/contract/amqp_parted.h - a sink of the amqp plugin with two connections, one of them for messages that go one
 * by one, beside a scripted broker.
 *
 * The plugin's clock is the test's: a jump takes the place of a wait. amqp_conn.c, with its heartbeats and its
 * back-off, keeps the real one.
 */
#ifndef TESTS_CONTRACT_AMQP_PARTED_H
#define TESTS_CONTRACT_AMQP_PARTED_H

#include "plugins/amqp/amqp_vendor.h"
#include "tests/contract/amqp_lab.h"

enum {
  AMQP_PARTED_NAMES = 541,   /* reply codes: a message is the reason, */
  AMQP_PARTED_NO_NAME = 320, /* and an operator is */
  AMQP_PARTED_LARGE = 32 << 20,
};

/* Set-up of a cmocka test whose state is a struct amqp_lab; amqp_lab_tear_down() belongs to it. */
int amqp_parted_set_up(void **state);

/* Moves the plugin's clock. */
void amqp_parted_jump_s(int64_t seconds);

/* The route "bad" has had a message refused that ended connections: it goes over the one apart, and the others over the
 * main one, which is up again. */
struct amqp_parted {
  struct fake_host *host;
  size_t seen;    /* messages so far */
  unsigned main;  /* the number of the connection */
  unsigned apart; /* and of the other one */
};

struct amqp_parted amqp_parted_open(struct amqp_lab *f);

/* Adds a task, and returns its number. */
size_t amqp_parted_add(struct amqp_parted *p, struct amqp_lab *f, const char *route);
size_t amqp_parted_add_large(struct amqp_parted *p, struct amqp_lab *f, const char *route);

/* The next message that comes to the broker; it is of that task. */
struct amqp_script_message amqp_parted_next(struct amqp_parted *p, struct amqp_lab *f);
struct amqp_script_message amqp_parted_next_is(struct amqp_parted *p, struct amqp_lab *f, size_t task);
size_t amqp_parted_task(struct amqp_script_message m);

/* Has one task of the route delivered, as soon as it can go; returns the number of its connection. */
unsigned amqp_parted_goes_over(struct amqp_parted *p, struct amqp_lab *f, const char *route);
/* Waits until the main connection carries messages again. */
void amqp_parted_comes_back(struct amqp_parted *p, struct amqp_lab *f);

/* Ends the main connection under a message that is open on it, which waits for the other one then; returns its task. */
size_t amqp_parted_suspect(struct amqp_parted *p, struct amqp_lab *f);

/* Has that task of "bad" end the connection apart once, and lets it rest until a jump by 60 s. Returns a message that
 * is alone on the connection meanwhile. */
struct amqp_script_message amqp_parted_rest(struct amqp_parted *p, struct amqp_lab *f, size_t bad);

/* What the broker says on a connection. */
void amqp_parted_end(struct amqp_lab *f, unsigned connection, uint16_t code);
void amqp_parted_block(struct amqp_lab *f, unsigned connection, bool blocked);
void amqp_parted_return(struct amqp_lab *f, struct amqp_script_message m);
void amqp_parted_refuse(struct amqp_lab *f, struct amqp_script_message m, uint16_t code);
void amqp_parted_ack(struct amqp_lab *f, unsigned connection, uint16_t channel, uint64_t tag);
void amqp_parted_drop(struct amqp_lab *f, unsigned connection);

void amqp_parted_expect(struct amqp_parted *p, size_t task, enum duebox_outcome_class cls, const char *error_class,
                        bool blameless);
/* Handed back as not sent, because of the second connection. */
void amqp_parted_expect_held_up(struct amqp_parted *p, size_t task);
/* Whatever can happen by itself happens. */
void amqp_parted_settle(struct amqp_parted *p);
/* poll() waits as long as it may. */
void amqp_parted_sleeps(struct amqp_parted *p);

/* Offers and polls until it is so. */
#define AMQP_PARTED_WAIT(p, condition)                                                                                 \
  do {                                                                                                                 \
    for (int64_t limit = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; !(condition);) {                                      \
      if (fake_host_now_ms() >= limit)                                                                                 \
        fail_msg("it did not come to: %s", #condition);                                                                \
      fake_host_offer((p)->host);                                                                                      \
      fake_host_poll((p)->host, 10);                                                                                   \
    }                                                                                                                  \
  } while (0)

#endif
