/* SPDX-License-Identifier: MIT
 *
 * core/config_ref.h - a configuration in use: counted, so that a reload can let go of it while tasks that were read
 * under it are still in flight.
 */
#ifndef CORE_CONFIG_REF_H
#define CORE_CONFIG_REF_H

#include <stdatomic.h>

#include "core/base/attr.h"
#include "core/config.h"

struct config_ref {
  atomic_uint users;
  struct config *config;
};

/* Takes the configuration over; one user. NULL: out of memory, the configuration stays the caller's. */
MUSTCHECK struct config_ref *config_ref_new(struct config *config);
struct config_ref *config_ref_take(struct config_ref *ref);
/* One user less; the last one frees the configuration. */
void config_ref_drop(struct config_ref *ref);

#endif
