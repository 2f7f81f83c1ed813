/* SPDX-License-Identifier: MIT
 *
 * tests/contract/sink_contract_run.h - what the files of the suite share. Nobody else includes it.
 */
#ifndef TESTS_CONTRACT_SINK_CONTRACT_RUN_H
#define TESTS_CONTRACT_SINK_CONTRACT_RUN_H

#include "tests/contract/sink_contract.h"

struct run {
  const struct sink_contract *c;
  void *fixture;
};

/* A test of the suite; *state is the struct run. sink_contract_ids.c */
void ids_of_every_form_are_told_apart(void **state);

#endif
