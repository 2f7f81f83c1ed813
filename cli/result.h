/* SPDX-License-Identifier: MIT
 *
 * cli/result.h - a result record that a person hands in, without a daemon.
 */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include "cli/cli.h"
#include "core/store.h"

/* Applies a record (JSON text) by the same code and rules as a daemon; *result says what it did. Exit code.
 * known: what is known of its task beside the record; its checkpoint_max is the configuration's. name: whose record it
 * is, for errors. */
MUSTCHECK int result_settle_directly(const struct config *config, const char *record, const struct record_road *known,
                                     const char *origin, const char *name, struct store_result *result);
/* Prints what became of it; noun ("task") and id are how the person named it. Exit code. */
int result_tell_fate(const struct cli *cli, const char *noun, const char *id, const struct store_result *result);

#endif
