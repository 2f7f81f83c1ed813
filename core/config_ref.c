/* SPDX-License-Identifier: MIT */
#include "core/config_ref.h"

#include <stdlib.h>

struct config_ref *config_ref_new(struct config *config) {
  struct config_ref *ref = malloc(sizeof *ref);
  if (ref) {
    atomic_init(&ref->users, 1);
    ref->config = config;
  }
  return ref;
}

struct config_ref *config_ref_take(struct config_ref *ref) {
  atomic_fetch_add_explicit(&ref->users, 1, memory_order_relaxed);
  return ref;
}

void config_ref_drop(struct config_ref *ref) {
  if (ref && atomic_fetch_sub_explicit(&ref->users, 1, memory_order_acq_rel) == 1) {
    config_free(&ref->config);
    free(ref);
  }
}
