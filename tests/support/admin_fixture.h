/* SPDX-License-Identifier: MIT
 *
 * tests/support/admin_fixture.h - a listener on a free loopback port in front of a fake engine, one per test.
 */
#ifndef TESTS_SUPPORT_ADMIN_FIXTURE_H
#define TESTS_SUPPORT_ADMIN_FIXTURE_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "admin/admin.h"
#include "support/fake_engine.h"
#include "support/http_client.h"

#define FIXTURE_TOKEN "0123456789abcdef0123456789abcdef"
#define FIXTURE_BEARER "Authorization: Bearer " FIXTURE_TOKEN "\r\n"
#define FIXTURE_COMMAND FIXTURE_BEARER "Content-Type: application/json\r\n"

struct admin_fixture {
  struct engine engine;
  struct admin *admin, *callbacks;
  uint16_t port, callbacks_port;
  unsigned reloads, forgets;
  const char *reload_trouble; /* NULL = the reload succeeds */
  const char *announced;      /* the name in the table, NULL = there is none */
  const char *database;       /* why it cannot be asked, NULL = it can */
  atomic_uint lookups;        /* connections to it */
  atomic_uint asking;         /* questions that it has not answered */
  atomic_bool asked_twice;    /* two at a time */
  pthread_mutex_t table;      /* it answers no question while somebody holds it */
  const char *quarantined;    /* body of the one record, of number 7; NULL = there is none */
};

/* cmocka setups: with the token, and without. */
int admin_fixture_setup(void **state);
int admin_fixture_setup_open(void **state);
int admin_fixture_teardown(void **state);

/* Asks, asserts the status, and returns the body as JSON (the caller's reference). */
json_t *fixture_ask(struct admin_fixture *fixture, const char *method, const char *path, const char *headers,
                    const char *body, int status);
/* A command with token and media type. */
json_t *fixture_command(struct admin_fixture *fixture, const char *path, const char *body, int status);
/* Asserts that the answer is that problem. */
void fixture_problem(struct admin_fixture *fixture, const char *method, const char *path, const char *headers,
                     const char *body, int status, const char *code);

#endif
