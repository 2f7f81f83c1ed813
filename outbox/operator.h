/* SPDX-License-Identifier: MIT
 *
 * outbox/operator.h - makes the port for people (core/operator.h) on a database connection.
 */
#ifndef OUTBOX_OPERATOR_H
#define OUTBOX_OPERATOR_H

#include "core/config.h"
#include "core/operator.h"

/* Connects. On STORE_OK *out is to be closed with out->ops->close(out->self). config outlives it. db_init() first. */
MUSTCHECK enum store_status outbox_operator_open(const struct database_config *config, struct operator* out,
                                                 struct err *err);

#endif
