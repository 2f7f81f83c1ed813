/* SPDX-License-Identifier: MIT
 *
 * tests/contract/source_contract.h - what every result source must do, written once against duebox/plugin.h.
 *
 * As sink_contract.h: callbacks describe the broker, each test opens a fresh fixture.
 */
#ifndef TESTS_CONTRACT_SOURCE_CONTRACT_H
#define TESTS_CONTRACT_SOURCE_CONTRACT_H

#include <duebox/plugin.h>

struct source_contract {
  const struct duebox_plugin *plugin; /* linked in, or NULL: */
  const char *module;                 /* path of the .so */
  int ready_ms;                       /* the first record must be there after this time (joining a group takes some) */
  bool big_records;                   /* the broker holds records of 10 MiB */
  int full_ms;                        /* a host that is full for longer makes it do something else; 0 = it does not */

  void *(*open)(void);
  void (*close)(void *fixture);
  const void *(*options)(void *fixture); /* of an instance */
  const void *(*source)(void *fixture);  /* of the entry under `results:` */
  /* Puts one record where the source reads. Returns once the broker holds it. */
  void (*publish)(void *fixture, const char *body, size_t len);
  void (*reachable)(void *fixture, bool up);
};

/* Runs the suite as one cmocka group; returns the number of failed tests. */
int source_contract_run(const char *name, const struct source_contract *contract);

#endif
