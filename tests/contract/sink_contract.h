/* SPDX-License-Identifier: MIT
 *
 * tests/contract/sink_contract.h - what every sink must do, written once against duebox/plugin.h.
 *
 * A plugin's test describes its destination with the callbacks below and calls sink_contract_run(). Each test opens a
 * fresh fixture (server, topic or queue) and closes it afterwards. All callbacks run on the test's thread unless noted.
 */
#ifndef TESTS_CONTRACT_SINK_CONTRACT_H
#define TESTS_CONTRACT_SINK_CONTRACT_H

#include <duebox/plugin.h>

/* One message as the destination holds it. The fixture owns everything. */
struct contract_message {
  const char *id;   /* duebox-id, message_id, webhook-id */
  uint32_t attempt; /* duebox-attempt */
  struct duebox_bytes body;
  const struct duebox_header *headers; /* all of them; names are compared without case */
  size_t header_count;
};

struct sink_contract {
  const struct duebox_plugin *plugin; /* linked in, or NULL: */
  const char *module;                 /* path of the .so */
  int64_t max_payload;                /* bytes: the largest payload that must pass */
  int unavailable_ms;                 /* a dead destination must have been reported after this time */

  bool connects_for_each_task; /* so that nothing is known of the destination before the first one */

  /* Starts the destination, reachable, and returns the fixture. Fails the test itself. */
  void *(*open)(void);
  void (*close)(void *fixture);
  /* Options of an instance and of a route to a destination that exists. They live as long as the fixture. */
  const void *(*options)(void *fixture);
  const void *(*route)(void *fixture);
  /* A route to a topic, queue or URL path that does not exist there. NULL = no such thing. */
  const void *(*missing_route)(void *fixture);
  /* Options with which create() must fail. NULL = create() has nothing to refuse. */
  const void *(*broken_options)(void *fixture);
  /* Takes the destination off the network and back. May be called before an instance exists. */
  void (*reachable)(void *fixture, bool up);
  /* While held, the destination takes messages and confirms none; released, it confirms. NULL = cannot. */
  void (*hold)(void *fixture, bool held);
  int held_ms; /* it confirms after this time by itself, at the earliest; 0 = never */
  /* Everything that has arrived so far, in order of arrival. Called again and again until enough is there. */
  const struct contract_message *(*received)(void *fixture, size_t *count);
};

/* Runs the suite as one cmocka group; returns the number of failed tests. */
int sink_contract_run(const char *name, const struct sink_contract *contract);

#endif
