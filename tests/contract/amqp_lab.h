/* SPDX-License-Identifier: MIT
 *
 * tests/contract/amqp_lab.h - an instance of the amqp plugin beside a scripted broker, for one test.
 */
#ifndef TESTS_CONTRACT_AMQP_LAB_H
#define TESTS_CONTRACT_AMQP_LAB_H

#include "plugins/amqp/amqp_options.h"
#include "tests/support/amqp_script.h"
#include "tests/support/fake_host.h"

enum {
  AMQP_LAB_LIMIT_MS = 20000, /* longest wait for something that must come */
  AMQP_LAB_FLOW = 1,         /* the plugin's channels; a source has the first one only */
  AMQP_LAB_PROBE = 2,        /* of the sink: the first of several, and the one that is taken when all are free */
};

struct amqp_lab {
  struct amqp_script *script;
  struct amqp_options options; /* may be changed before an instance is opened */
  struct amqp_route route;
  struct amqp_source_options source;
  char url[64];
};

/* Set-up and tear-down of a cmocka test whose state is a struct amqp_lab. */
int amqp_lab_set_up(void **state);
int amqp_lab_tear_down(void **state);

/* Creates and starts an instance; records are kept up to 1000 bytes. */
struct fake_host *amqp_lab_open(struct amqp_lab *lab, enum duebox_role role);

void amqp_lab_add(struct fake_host *host, struct amqp_lab *f, int n);
/* Offers and polls until the broker holds `count` messages. */
void amqp_lab_published(struct fake_host *host, struct amqp_lab *f, size_t count);
void amqp_lab_completed(struct fake_host *host, size_t count);
/* The broker confirms it. */
void amqp_lab_confirm(struct amqp_lab *f, struct amqp_script_message m);
/* A sink whose exchange has proven itself: the first message went over the probe channel and was confirmed. */
struct fake_host *amqp_lab_open_sink(struct amqp_lab *f);
void amqp_lab_expect(struct fake_host *host, size_t index, enum duebox_outcome_class cls, const char *error_class);
void amqp_lab_expect_all(struct fake_host *host, size_t from, size_t to, enum duebox_outcome_class cls,
                         const char *error_class);
/* After all that was done to it: a new connection, the one of that number (0: any), and a message passes. */
void amqp_lab_comes_back(struct fake_host *host, struct amqp_lab *f, unsigned connections);
/* The next message comes alone over a probe channel. */
struct amqp_script_message amqp_lab_probed(struct fake_host *host, struct amqp_lab *f, size_t index);

#endif
